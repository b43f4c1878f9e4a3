/* command.h: the joint between the command-line frame and the commands.
 *
 * A command is one file (cmd_feed.c) with one row, `const struct cli_command cli_feed`, declared below and
 * listed in the table of commands.c. The frame (options.c) reads the command line; the command gets what came
 * of it: the settings (defaults, then the file named by -f/--config, then flags; contradictions already
 * refused if its help lists the learner's settings), its own options and its positional arguments. It returns
 * the exit code. Help, man page and shell completion come from the rows. No environment variable is read.
 *
 *     static const struct cli_option options[] = {
 *         {"rate", 0, "N", "0", "samples per second, 0 = flat out"},
 *         {"packed", 0, NULL, NULL, "send features as packed doubles"},
 *         {NULL, 0, NULL, NULL, NULL}};
 *
 *     static int run(const struct cli_args *a)
 *     {
 *         double rate;
 *         if (!cli_number(a, "rate", 0, 1e9, &rate))
 *             return CLI_USAGE;
 *         if (feed_all(a->positional[0], rate, cli_has(a, "packed"), &err) != SVS_OK)
 *             return cli_error(a, &err);
 *         return CLI_OK;
 *     }
 *
 *     const struct cli_command cli_feed = {.name = "feed",
 *                                          .text = "send a file to a running process",
 *                                          .usage = "FILE",
 *                                          .keys = "in in.format label",
 *                                          .options = options,
 *                                          .positional_min = 1,
 *                                          .positional_max = 1,
 *                                          .run = run};
 */
#ifndef SVI_CLI_COMMAND_H
#define SVI_CLI_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "engine/settings.h"

#define CLI_OPTION_MAX 32 /* options of one command, at most */

enum cli_exit { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

/* An option of one command only. Settings, --config, --help, --version and --quiet are taken by all and not
 * listed here; a name must not be that of a setting. */
struct cli_option {
    const char *name;     /* without dashes; NULL ends the array */
    char letter;          /* short form (-n), 0 = none; not f, h or q */
    const char *argument; /* what the help calls its value ("N", "FILE"); NULL = a switch without value */
    const char *value;    /* default as text, NULL = none */
    const char *text;     /* one sentence, lower case, no full stop */
};

struct cli_command;

/* A command line after it was read. Strings live as long as argv. */
struct cli_args {
    const struct cli_command *command;
    struct svi_settings settings;
    const char *config; /* file of -f/--config, NULL = none */
    bool quiet;         /* -q/--quiet: no progress, no summary, no addresses; errors only */
    /* By row of command->options: the value as given ("" for a switch), NULL = not given. */
    const char *value[CLI_OPTION_MAX];
    const char **positional; /* positional_count of them, then NULL; "-" is one */
    int positional_count;
};

struct cli_command {
    const char *name;
    const char *text;  /* one line for the list of commands, lower case, no full stop */
    const char *usage; /* what follows the name ("FILE..."), "" = nothing */
    /* Paragraphs and examples for --help and the man page, lines of at most 100 characters; NULL = none. */
    const char *help;
    /* Settings that its help lists, separated by spaces ("in." = the whole group in.*); NULL = all, "" =
     * none. Every command accepts all of them, so that one file serves all. */
    const char *keys;
    const struct cli_option *options;   /* NULL = none */
    int positional_min, positional_max; /* -1 = any number */
    const char *words; /* what the first positional may be ("show check default"); NULL = anything */
    bool hidden;       /* not in the list of commands */
    bool unchecked;    /* run even when settings contradict each other, though `keys` lists the learner's */
    int (*run)(const struct cli_args *a); /* returns enum cli_exit */
};

extern const struct cli_command cli_run, cli_feed, cli_watch, cli_train, cli_predict, cli_eval, cli_model,
    cli_novelty, cli_ctl, cli_config, cli_keys, cli_replay, cli_state;
extern const struct cli_command cli_help_man, cli_help_completion;

/* All commands, in the order of the help. */
const struct cli_command *const *cli_commands(int *count);

/* NULL when there is none of that name. */
const struct cli_command *cli_find(const char *name);

/* Was the option given? An unknown name is a bug (assert). */
bool cli_has(const struct cli_args *a, const char *name);

/* The option's value as given, or its default (NULL when it has none and was not given). */
const char *cli_value(const struct cli_args *a, const char *name);

/* The option's value as a number in [low, high]. False after saying on stderr what is wrong: return CLI_USAGE
 * then. The option must have a default or have been given. */
bool cli_number(const struct cli_args *a, const char *name, double low, double high, double *out);
bool cli_integer(const struct cli_args *a, const char *name, int64_t low, int64_t high, int64_t *out);

/* Was the setting set by flag or file, rather than by default? */
bool cli_given(const struct cli_args *a, const char *key);

/* Where a command writes that was not told: PATH/NAME.svm.gz -> NAME.svm.gz and `ending`, in the working
 * directory as LIBLINEAR does. */
void cli_default_name(const char *path, const char *ending, char *out, size_t size);

/* `svmstream feed: text` on stderr. Return their result: CLI_FAILED, CLI_FAILED (CLI_USAGE for SVS_SETTING),
 * CLI_USAGE. */
int cli_fail(const struct cli_args *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
int cli_error(const struct cli_args *a, const svs_error *err);
int cli_usage(const struct cli_args *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
