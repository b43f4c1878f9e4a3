/* svmstream: finds the command, checks its settings and runs it. */
#include <string.h>

#include <cblas.h>

#include "base/alloc.h"
#include "cli/commands.h"
#include "cli/help.h"
#include "cli/options.h"
#include "cli/address_space.h"
#include "cli/blas_begin.h"
#include "store/state_dir.h"
#include "svmstream/svmstream.h"

static const struct cli_command *const commands[] = {CLI_COMMANDS(CLI_COMMAND_ROW) NULL};

static int show_version(void) {
    printf("svmstream %s\n", svs_version());
    return CLI_OK;
}

/* Contradictions matter only to commands that start an engine: those whose help lists the learner's settings.
 * With a kept state the check is weaker: the state may supply settings that are not given here. */
static svs_code check_settings(const struct cli_command *command, const struct svi_settings *s,
                               svs_error *err) {
    if (command->unchecked || !cli_lists(command, svi_settings_row("method")))
        return SVS_OK;
    return s->state_dir[0] ? svi_settings_check_start(s, err) : svi_settings_check(s, err);
}

/* True when a setting implied the method and that is worth a line. An existing state decides the method
 * itself, whatever else is set. */
static bool method_settled(const struct cli_command *command, const struct cli_args *a) {
    return a->settled && !a->quiet && !command->unchecked && command != &cli_replay &&
           cli_lists(command, svi_settings_row("method")) &&
           !(a->settings.state_dir[0] && svi_state_dir_begun(a->settings.state_dir));
}

/* A wrong setting does not pass by itself, wherever it stands: 2, so that a service does not start again and
 * again. A file that cannot be read may be back soon: 1. `config` reports what it finds in a file: 1. */
static int fail_in_file(const struct cli_args *a, const struct cli_command *command, const svs_error *err) {
    const int failed = cli_fail(a, "%s", err->text);
    return err->code == SVS_SETTING && command != &cli_config ? CLI_USAGE : failed;
}

static int run_parsed(struct cli_args *a, const struct cli_command *command, int count, char *const *argv,
                      const char **positional) {
    svs_error err;
    bool in_file;
    svs_code code = cli_parse(a, command, commands, count, argv, positional, &in_file, &err);
    if (code == SVS_OK && a->version)
        return show_version();
    if (code == SVS_OK && a->help)
        return cli_write_help(stdout, command), CLI_OK;
    if (code == SVS_OK)
        code = check_settings(command, &a->settings, &err);
    if (code != SVS_OK)
        return in_file ? fail_in_file(a, command, &err) : cli_usage(a, "%s", err.text);
    if (method_settled(command, a))
        fprintf(stderr, "method alsvm: method auto does not use %s (set method alsvm to omit this line)\n",
                a->settled);
    if (a->no_budget && !a->quiet && !command->unchecked && cli_lists(command, svi_settings_row("alert.p")))
        fprintf(stderr, "alert.budget none: %s replaces it (set alert.budget none to omit this line)\n",
                a->no_budget);
    /* Before the first call of BLAS, which would take a buffer by itself and might hang. */
    if (svi_take_buffers(svi_settings_blas_threads(&a->settings) - 1, &a->settings.threads, &err) != SVS_OK)
        return cli_fail(a, "%s", err.text);
    openblas_set_num_threads(svi_settings_blas_threads(&a->settings));
    return a->verb ? a->verb->run(a) : command->run(a);
}

static int run_command(const struct cli_command *command, int count, char *const *argv) {
    struct cli_args *a = svi_alloc(sizeof *a);
    const char **positional = svi_alloc_array((size_t)count + 1, sizeof *positional);
    int code = CLI_FAILED;
    if (a && positional)
        code = run_parsed(a, command, count, argv, positional);
    else
        fprintf(stderr, "svmstream: out of memory\n");
    svi_free(positional);
    svi_free(a);
    return code;
}

static int run_line(int argc, char *const *argv) {
    const char *first = argc > 1 ? argv[1] : NULL;
    if (!first || strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0) {
        cli_write_overview(first ? stdout : stderr, commands);
        return first ? CLI_OK : CLI_USAGE;
    }
    if (strcmp(first, "--version") == 0 || strcmp(first, "-V") == 0 || strcmp(first, "version") == 0)
        return show_version();
    const struct cli_command *command = cli_find(commands, first);
    if (command)
        return run_command(command, argc - 2, argv + 2);
    if (first[0] != '-')
        return cli_unknown(commands, "command", first);
    fprintf(stderr, "svmstream: write options after the command: svmstream COMMAND [options]\n");
    return CLI_USAGE;
}

int main(int argc, char **argv) {
    svi_blas_begun();
    int code = run_line(argc, argv);
    bool lost = ferror(stdout) != 0; /* a full disk or a closed pipe must not look like success */
    if ((fflush(stdout) != 0 || lost) && code == CLI_OK) {
        fprintf(stderr, "svmstream: cannot write to standard output\n");
        code = CLI_FAILED;
    }
    return code;
}
