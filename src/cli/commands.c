/* The table of commands, and main() but for its name. */
#include <stdlib.h>
#include <string.h>

#include <cblas.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/nearest.h"
#include "cli/help.h"
#include "cli/options.h"
#include "svmstream/svmstream.h"

static const struct cli_command *const commands[] = {
    &cli_run,  &cli_feed,    &cli_watch, &cli_train,    &cli_predict,
    &cli_eval, &cli_novelty, &cli_model, &cli_ctl,      &cli_config,
    &cli_keys, &cli_replay,  &cli_state, &cli_help_man, &cli_help_completion,
};
#define COMMANDS ((int)(sizeof commands / sizeof commands[0]))

const struct cli_command *const *cli_commands(int *count) {
    *count = COMMANDS;
    return commands;
}

const struct cli_command *cli_find(const char *name) {
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static int unknown_command(const char *name) {
    const char *names[COMMANDS + 1];
    char shown[80];
    int count = 0;
    for (int i = 0; i < COMMANDS; i++)
        if (!commands[i]->hidden)
            names[count++] = commands[i]->name;
    names[count] = NULL;
    const char *nearest = svi_nearest(name, names);
    svi_escape(shown, sizeof shown, name, strlen(name));
    fprintf(stderr,
            "svmstream: unknown command '%s', the nearest known one is '%s'\nsee `svmstream --help`\n", shown,
            nearest ? nearest : names[0]);
    return CLI_USAGE;
}

static int show_version(void) {
    printf("svmstream %s\n", svs_version());
    return CLI_OK;
}

static int refuse(const struct cli_args *a, enum cli_fault fault, const svs_error *err) {
    return fault == CLI_FAULT_FILE ? cli_fail(a, "%s", err->text) : cli_usage(a, "%s", err->text);
}

/* Contradictions matter to a command that starts an engine; it takes the learner's settings then. */
static bool starts_engine(const struct cli_command *command) {
    return !command->unchecked && cli_lists(command, svi_settings_row("method"));
}

/* A kept state may have settings that were not given. */
static svs_code check(const struct svi_settings *s, svs_error *err) {
    return s->state_dir[0] ? svi_settings_check_outside(s, err) : svi_settings_check(s, err);
}

static int run_with(struct cli_args *a, const struct cli_command *command, int count, char *const *argv,
                    const char **positional) {
    svs_error err;
    enum cli_wish wish;
    enum cli_fault fault;
    if (cli_parse(a, command, count, argv, positional, &wish, &fault, &err) != SVS_OK)
        return refuse(a, fault, &err);
    if (wish == CLI_VERSION)
        return show_version();
    if (wish == CLI_HELP) {
        cli_write_help(stdout, command);
        return CLI_OK;
    }
    if (starts_engine(command) && check(&a->settings, &err) != SVS_OK)
        return refuse(a, CLI_FAULT_LINE, &err);
    openblas_set_num_threads((int)a->settings.threads);
    return command->run(a);
}

static int run_command(const struct cli_command *command, int count, char *const *argv) {
    struct cli_args *a = svi_alloc(sizeof *a);
    const char **positional = svi_alloc_array((size_t)count + 1, sizeof *positional);
    int code = CLI_FAILED;
    if (a && positional)
        code = run_with(a, command, count, argv, positional);
    else
        fprintf(stderr, "svmstream: no memory for the command line\n");
    svi_free(positional);
    svi_free(a);
    return code;
}

/* `svmstream help [COMMAND]`, for those who expect it. */
static int show_help(const char *name) {
    const struct cli_command *command = name ? cli_find(name) : NULL;
    if (name && !command)
        return unknown_command(name);
    if (command)
        cli_write_help(stdout, command);
    else
        cli_write_overview(stdout);
    return CLI_OK;
}

static int dispatch(int argc, char *const *argv) {
    const char *first = argc > 1 ? argv[1] : NULL;
    if (!first) {
        cli_write_overview(stderr);
        return CLI_USAGE;
    }
    if (strcmp(first, "--version") == 0)
        return show_version();
    if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0)
        return show_help(NULL);
    if (strcmp(first, "help") == 0)
        return show_help(argc > 2 ? argv[2] : NULL);
    const struct cli_command *command = cli_find(first);
    if (!command && first[0] == '-') {
        fprintf(stderr, "svmstream: options stand behind the command: svmstream COMMAND [options]\n");
        return CLI_USAGE;
    }
    if (command)
        return run_command(command, argc - 2, argv + 2);
    return unknown_command(first);
}

int cli_main(int argc, char *const *argv) {
    int code = dispatch(argc, argv);
    bool lost = ferror(stdout) != 0; /* a full disk or a closed pipe must not look like success */
    if ((fflush(stdout) != 0 || lost) && code == CLI_OK) {
        fprintf(stderr, "svmstream: cannot write to standard output\n");
        code = CLI_FAILED;
    }
    return code;
}
