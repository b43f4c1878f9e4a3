/* help.h: the texts that are made of the tables of commands, options and settings. */
#ifndef SVI_HELP_H
#define SVI_HELP_H

#include "cli/command.h"

/* Help of all commands, or of one; man page; bash completion. `all` ends in NULL. */
void cli_write_overview(FILE *to, const struct cli_command *const *all);
void cli_write_help(FILE *to, const struct cli_command *command);
void cli_write_man(FILE *to, const struct cli_command *const *all);
void cli_write_completion(FILE *to, const struct cli_command *const *all);

/* Reports a "command" or "topic" (a page of the manual, or a command) that is not known, with the nearest one
 * that is. Returns CLI_USAGE. */
int cli_unknown(const struct cli_command *const *all, const char *what, const char *name);

#endif
