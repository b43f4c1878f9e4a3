/* options.h: reads a command line: `--key value` or `--key=value` for every row of the settings table and
 * every option of the command, -f/--config FILE, -h/--help, --version, -q/--quiet, positional arguments; `--`
 * ends the options. */
#ifndef SVI_CLI_OPTIONS_H
#define SVI_CLI_OPTIONS_H

#include "cli/command.h"

enum cli_wish { CLI_RUN, CLI_HELP, CLI_VERSION };

enum cli_fault { CLI_FAULT_LINE, CLI_FAULT_FILE };

/* Reads argv[0 .. count), the words behind the command's name, into *a. The file of --config is read first,
 * so that flags win wherever they stand. `positional` is room for count + 1 pointers. *wish: what is asked
 * for; with CLI_HELP and CLI_VERSION nothing behind it is judged. *fault tells where the fault lies when the
 * result is not SVS_OK: in the command line (exit 2) or in the file (exit 1). Contradictions are not looked
 * for. */
svs_code cli_parse(struct cli_args *a, const struct cli_command *command, int count, char *const *argv,
                   const char **positional, enum cli_wish *wish, enum cli_fault *fault, svs_error *err);

/* Reads the command line and runs the command: the whole of main, with the exit code as result. */
int cli_main(int argc, char *const *argv);

/* Help of all commands, or of one; man page; bash completion. All from the tables. */
void cli_write_overview(FILE *to);
void cli_write_help(FILE *to, const struct cli_command *command);
void cli_write_man(FILE *to);
void cli_write_completion(FILE *to);

/* The options that every command takes, in the order of the help; ends in a row without name. */
const struct cli_option *cli_common_options(void);

#endif
