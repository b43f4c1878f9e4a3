/* command.h: the joint between the command-line frame and the commands.
 *
 * A command is one file (cmd_feed.c) that defines one row, `const struct cli_command cli_feed`, and one name
 * in commands.h. The frame (main.c, options.c) reads the command line; the command gets what came of
 * it: the settings (defaults, then the file named by -f/--config, then flags; contradictions already refused
 * if its help lists the learner's settings), its own options and its positional arguments. It returns the
 * exit code. Help, man page and shell completion come from the rows (help.c). A new option is one row of the
 * command's options, and the call that asks for it. No environment variable is read.
 *
 *     static const struct cli_option options[] = {
 *         CLI_NUMBER("rate", 0, "N", "0", 0, 1e9, "samples per second, 0 = flat out"),
 *         CLI_SWITCH("packed", 0, "send features as packed doubles"),
 *         CLI_END};
 *
 *     static int feed_run(const struct cli_args *a)
 *     {
 *         const double rate = cli_number(a, "rate");
 *         return cli_end(a, feed_all(a->positional[0], rate, cli_has(a, "packed"), &err), &err);
 *     }
 *
 *     const struct cli_command cli_feed = {.name = "feed",
 *                                          .text = "send a file to a running process",
 *                                          .usage = "FILE",
 *                                          .keys = "in in.format label",
 *                                          .options = options,
 *                                          .run = feed_run};
 */
#ifndef SVI_COMMAND_H
#define SVI_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "config/settings.h"

#define CLI_OPTION_MAX 32 /* options of one command, at most */

enum cli_exit { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

/* An option of one command only. Settings, --config, --help, --version and --quiet are taken by all and not
 * listed here; a name must not be that of a setting which the command lists. The frame checks the value that
 * is given. */
struct cli_option {
    const char *name;     /* without dashes; NULL ends the array */
    char letter;          /* short form (-n), 0 = none; not f, h or q */
    const char *argument; /* what the help calls its value ("N", "FILE"), or its words ("json|csv") */
    const char *value;    /* default as text, NULL = none */
    const char *text;     /* one sentence, lower case, no full stop */
    bool integer;
    double low, high; /* of a number; 0, 0 = it is none */
};

#define CLI_SWITCH(name, letter, text)                                                                       \
    { name, letter, NULL, NULL, text, false, 0, 0 }
#define CLI_OPTION(name, letter, argument, value, text)                                                      \
    { name, letter, argument, value, text, false, 0, 0 }
#define CLI_NUMBER(name, letter, argument, value, low, high, text)                                           \
    { name, letter, argument, value, text, false, low, high }
#define CLI_INTEGER(name, letter, argument, value, low, high, text)                                          \
    { name, letter, argument, value, text, true, low, high }
#define CLI_UNLIMITED 1e18 /* `high` of a count without a limit of its own */
/* A switch that may be followed by 0 (as if it were not given) or 1. */
#define CLI_0_1 "[0|1]"
#define CLI_END                                                                                              \
    { NULL, 0, NULL, NULL, NULL, false, 0, 0 }

struct cli_args;

/* What the first positional may be, where a command does several things: `curve new`, `curve list`. */
struct cli_verb {
    const char *name;                     /* NULL ends the list */
    int (*run)(const struct cli_args *a); /* instead of the command's */
    const char *usage;                    /* what follows it */
    const char *options; /* of the command's, those that it takes, separated by spaces; NULL = all */
};

/* A command line after it was read. Strings live as long as argv. */
struct cli_args {
    const struct cli_command *command;
    const struct cli_command *const *all; /* commands, in the order of the help; ends in NULL */
    struct svi_settings settings;
    bool flagged[SVI_SETTING_MAX]; /* rows that a flag has set */
    const char *settled;   /* the setting that made the method alsvm (svi_settings_settle_method), or NULL */
    const char *no_budget; /* the one that made alert.budget none (svi_settings_settle_alerts), or NULL */
    const char *config;    /* file of -f/--config, NULL = none */
    bool quiet;            /* -q/--quiet: no progress, no summary, no addresses; errors only */
    bool help, version;    /* -h/--help, --version: nothing after it was read */
    /* By row of command->options: the value as given ("" for a switch), NULL = not given. */
    const char *value[CLI_OPTION_MAX];
    char pairs[1024];        /* of -wLABEL VALUE: "LABEL:VALUE,..." */
    const char **positional; /* positional_count of them, then NULL; "-" is one */
    int positional_count;
    const struct cli_verb
        *verb; /* the first positional; NULL = the command has no verbs, or none was given */
};

struct cli_command {
    const char *name;
    const char *text; /* one line for the list of commands, lower case, no full stop */
    /* What follows the name: FILE must be there, [FILE] may be, FILE... any number of times; "" = nothing.
     * With verbs, theirs counts, and this is for the help alone. */
    const char *usage;
    /* Paragraphs and examples for --help and the man page, lines of at most 100 characters; NULL = none. */
    const char *help;
    /* Settings that its help lists, separated by spaces ("in." = the whole group in.*); NULL = all, "" =
     * none. In a file every command accepts all of them, so that one file serves all; a flag that is not
     * listed does nothing and is refused. */
    const char *keys;
    const struct cli_option *options; /* NULL = none */
    const struct cli_verb *verbs;     /* what the first positional may be; NULL = anything */
    /* For the completion, where there are no verbs: the i-th word that may follow the name, or (`config`) the
     * i-th setting that may follow that word; NULL: no further one. The member may be NULL. */
    const char *(*word)(bool config, int i);
    bool hidden;    /* not in the list of commands */
    bool unchecked; /* run even when settings contradict each other, though `keys` lists the learner's */
    int (*run)(const struct cli_args *a); /* returns enum cli_exit; not called when there is a verb */
};

/* The command of that name in a list that ends in NULL; NULL when there is none. */
const struct cli_command *cli_find(const struct cli_command *const *all, const char *name);

/* Was the option given? An unknown name is a bug (assert). */
bool cli_has(const struct cli_args *a, const char *name);

/* The option's value as given, or its default (NULL when it has none and was not given). */
const char *cli_value(const struct cli_args *a, const char *name);

/* The same as a number, or as the place of a word among those of the row. The option must have a default or
 * have been given. */
double cli_number(const struct cli_args *a, const char *name);
int64_t cli_integer(const struct cli_args *a, const char *name);
int cli_word(const struct cli_args *a, const char *name);

/* The place of a word in "json|csv"; -1 = it is not there. */
int cli_word_place(const char *words, const char *word);

/* Was the setting asked for (svi_settings_chosen)? */
bool cli_given(const struct cli_args *a, const char *key);

/* Was the setting given by a flag of this command line? */
bool cli_flagged(const struct cli_args *a, const char *key);

/* The file that a command writes: its positional `index` or, without one, the name of its input (positional
 * `input`) and `ending`, in the working directory as LIBLINEAR does: PATH/NAME.svm.gz -> NAME.svm.gz.model.
 */
void cli_output_name(const struct cli_args *a, int index, int input, const char *ending, char *out,
                     size_t size);

/* Text of a file or a peer: as it is, but on a terminal escaped. */
void cli_put_text(FILE *to, const char *text, size_t length);

/* Says on standard error that `address` is waited for, unless --quiet is given; `args`: struct cli_args. */
void cli_waiting(void *args, const char *address);

/* `svmstream feed: text` on stderr. Return their result: CLI_FAILED, CLI_FAILED (CLI_USAGE for SVS_SETTING),
 * CLI_USAGE. */
int cli_fail(const struct cli_args *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
int cli_error(const struct cli_args *a, const svs_error *err);
int cli_usage(const struct cli_args *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* CLI_OK, or cli_error when `code` is not SVS_OK. */
int cli_end(const struct cli_args *a, svs_code code, const svs_error *err);

#endif
