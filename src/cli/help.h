/* help.h: pieces of text about options and settings that help, man page and completion share. */
#ifndef SVI_CLI_HELP_H
#define SVI_CLI_HELP_H

#include "cli/command.h"

/* What stands for the value of a setting: its words ("pull|router|sub") or its kind ("N"). Static. */
const char *cli_argument_name(const struct svi_setting *row);

/* Does the command's help list this setting? */
bool cli_lists(const struct cli_command *command, const struct svi_setting *row);

/* Sentence, range and default into out; 512 bytes are enough. */
void cli_describe_setting(const struct svi_setting *row, char *out, size_t size);
void cli_describe_option(const struct cli_option *option, char *out, size_t size);

/* "-n, --rate N" into out. */
void cli_option_left(const struct cli_option *option, char *out, size_t size);

#endif
