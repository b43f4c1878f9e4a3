/* help.h: the texts generated from the tables of commands, options and settings. */
#ifndef SVI_HELP_H
#define SVI_HELP_H

#include "cli/command.h"

/* The help of all commands and of one; the man page; the bash completion. `all` ends in NULL. */
void cli_write_overview(FILE *to, const struct cli_command *const *all);
void cli_write_help(FILE *to, const struct cli_command *command);
void cli_write_man(FILE *to, const struct cli_command *const *all);
void cli_write_completion(FILE *to, const struct cli_command *const *all);

/* Reports an unknown "command" or "topic" (a page of the manual, or a command) and the nearest known one.
 * Returns CLI_USAGE. */
int cli_unknown(const struct cli_command *const *all, const char *what, const char *name);

#endif
