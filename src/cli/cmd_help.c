/* Hidden commands that print what `make install` installs beside the program. */
#include "cli/options.h"

static int print_man(const struct cli_args *a) {
    (void)a;
    cli_write_man(stdout);
    return CLI_OK;
}

static int print_completion(const struct cli_args *a) {
    (void)a;
    cli_write_completion(stdout);
    return CLI_OK;
}

const struct cli_command cli_help_man = {.name = "help-man",
                                         .text = "print the man page (roff)",
                                         .usage = "",
                                         .keys = "",
                                         .hidden = true,
                                         .unchecked = true,
                                         .run = print_man};

const struct cli_command cli_help_completion = {.name = "help-completion",
                                                .text = "print the bash completion",
                                                .usage = "",
                                                .keys = "",
                                                .hidden = true,
                                                .unchecked = true,
                                                .run = print_completion};
