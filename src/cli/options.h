/* options.h: reads a command line: `--key value` or `--key=value` for every row of the settings table and every option of the
 * command, -f/--config FILE, -h/--help, --version, -q/--quiet, positional arguments; `--` ends the options. */
#ifndef SVI_CLI_OPTIONS_H
#define SVI_CLI_OPTIONS_H

#include "cli/command.h"

enum cli_wish { CLI_RUN, CLI_HELP, CLI_VERSION };

/* Reads argv[0 .. count), the words behind the command's name, into *a. The file of --config is read first, so that flags win
 * wherever they stand. `positional` is room for count + 1 pointers. *wish: what is asked for (with CLI_HELP and CLI_VERSION
 * the rest is not judged). SVS_SETTING: a flag is wrong (exit 2); SVS_INVALID: a positional is (exit 2); `from_file` tells
 * that the fault lies in the file (exit 1). */
svs_code cli_parse(struct cli_args *a, const struct cli_command *command, int count, char *const *argv, const char **positional,
                   enum cli_wish *wish, bool *from_file, svs_error *err);

/* The word of `words` (NULL-terminated) nearest to `word`, near enough to be meant; NULL when none is. */
const char *cli_nearest(const char *word, const char *const *words);

/* Reads the command line and runs the command: the whole of main, with the exit code as result. */
int cli_main(int argc, char *const *argv);

/* Help of all commands, or of one; man page; bash completion. All from the tables. */
void cli_write_overview(FILE *to);
void cli_write_help(FILE *to, const struct cli_command *command);
void cli_write_man(FILE *to);
void cli_write_completion(FILE *to);

#endif
