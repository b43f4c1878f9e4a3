/* commands.h: all commands, in the order of the help. A new command is a name here and a file that defines
 * cli_NAME. */
#ifndef SVI_COMMANDS_H
#define SVI_COMMANDS_H

#include "cli/command.h"

// clang-format off
#define CLI_COMMANDS(X)                                                                                      \
    X(run) X(merge) X(feed) X(watch) X(train) X(predict) X(eval) X(novelty) X(model) X(ctl) X(config)        \
    X(keys) X(curve) X(replay) X(state) X(help) X(help_man) X(help_markdown) X(help_completion)
// clang-format on

#define X(name) extern const struct cli_command cli_##name;
CLI_COMMANDS(X)
#undef X

/* The table: `static const struct cli_command *const all[] = {CLI_COMMANDS(CLI_COMMAND_ROW) NULL};` */
#define CLI_COMMAND_ROW(name) &cli_##name,

#endif
