/* options.h: reads a command line: `--key value` or `--key=value` for every row of the settings table and
 * every option of the command, -f/--config FILE, -h/--help, --version, -q/--quiet, positional arguments; `--`
 * ends the options. */
#ifndef SVI_OPTIONS_H
#define SVI_OPTIONS_H

#include "cli/command.h"

/* Reads argv[0 .. count), the words after the name of the command, which is one of `all`, into *a. The file
 * of --config is applied first, so flags override it wherever they are. `positional`: space for count + 1
 * pointers. After --help or --version nothing is checked. *in_file: the error is in the file, not in the
 * command line. Contradictions between settings are not checked. */
svs_code cli_parse(struct cli_args *a, const struct cli_command *command,
                   const struct cli_command *const *all, int count, char *const *argv,
                   const char **positional, bool *in_file, svs_error *err);

/* The options that every command accepts, in the order of the help; ends in a row without name. */
extern const struct cli_option cli_common_options[];

/* The settings that a start at this moment would have: the file may have changed, the flags are those of the
 * command line. Codes of svi_settings_load. */
svs_code cli_settings_again(const struct cli_args *a, struct svi_settings *s, svs_error *err);

/* True when the command's help lists this setting. */
bool cli_lists(const struct cli_command *command, const struct svi_setting *row);

#endif
