/* Stands in for the commands whose files are not there yet, so that the rest links; goes when they are. */
#include <stddef.h>

#include "cli/command.h"

static int absent(const struct cli_args *a) {
    return cli_fail(a, "this command is not built in yet");
}

#define ABSENT(word)                                                                                         \
    __attribute__((weak)) const struct cli_command cli_##word = {                                            \
        .name = #word, .text = "(not built in yet)", .usage = "", .positional_max = -1, .run = absent};

ABSENT(run)
ABSENT(feed)
ABSENT(watch)
ABSENT(eval)
ABSENT(model)
ABSENT(ctl)
