/* options.h: reads a command line: `--key value` or `--key=value` for every row of the settings table and
 * every option of the command, -f/--config FILE, -h/--help, --version, -q/--quiet, positional arguments; `--`
 * ends the options. */
#ifndef SVI_OPTIONS_H
#define SVI_OPTIONS_H

#include "cli/command.h"

/* Reads argv[0 .. count), the words after the name of the command, which is one of `all`, into *a. The file
 * of --config is read first, so that flags win wherever they stand. `positional` is room for count + 1
 * pointers. After --help and --version nothing is checked any more. *in_file: the fault lies in the file
 * (exit 1) and not in the command line (exit 2). Contradictions are not looked for. */
svs_code cli_parse(struct cli_args *a, const struct cli_command *command,
                   const struct cli_command *const *all, int count, char *const *argv,
                   const char **positional, bool *in_file, svs_error *err);

/* The options that every command takes, in the order of the help; ends in a row without name. */
extern const struct cli_option cli_common_options[];

/* The settings as they would be if the command began now: the file may have changed, the flags have not.
 * Codes of svi_settings_load. */
svs_code cli_settings_again(const struct cli_args *a, struct svi_settings *s, svs_error *err);

/* Does the command's help list this setting? */
bool cli_lists(const struct cli_command *command, const struct svi_setting *row);

#endif
