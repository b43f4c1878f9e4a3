/* command.h: the interface between the command-line frame and the commands.
 *
 * A command is one file (cmd_feed.c) that defines one row, `const struct cli_command cli_feed`, and
 * one name in commands.h. The frame (main.c, options.c) reads the command line and passes the
 * result to the command: the settings, the command's own options and its positional arguments.
 * Settings are the defaults, then the file named by -f/--config, then flags. If the command's help
 * lists the learner's settings, contradictions are already refused. The command returns the exit
 * code. Help, man page and shell completion are generated from the rows (help.c). A new option is
 * one row in the command's options and the call that reads it. No environment variable is read.
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

#define CLI_OPTION_MAX 32 /* maximum number of options of one command */

enum cli_exit { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

/* An option of one command. All commands accept settings, --config, --help, --version and --quiet, which are
 * not listed here. A name must not be that of a setting which the command lists. The frame checks values. */
struct cli_option {
    const char *name;     /* without dashes; NULL ends the array */
    char letter;          /* short form (-n), 0 = none; not f, h or q */
    const char *argument; /* name of its value in the help ("N", "FILE"), or its words ("json|csv") */
    const char *value;    /* default as text, NULL = none */
    const char *text;     /* one sentence, lower case, no full stop */
    bool integer;
    double low, high; /* range of a number, inclusive; 0, 0 = not a number */
};

#define CLI_SWITCH(name, letter, text)                                                                       \
    { name, letter, NULL, NULL, text, false, 0, 0 }
#define CLI_OPTION(name, letter, argument, value, text)                                                      \
    { name, letter, argument, value, text, false, 0, 0 }
#define CLI_NUMBER(name, letter, argument, value, low, high, text)                                           \
    { name, letter, argument, value, text, false, low, high }
#define CLI_INTEGER(name, letter, argument, value, low, high, text)                                          \
    { name, letter, argument, value, text, true, low, high }
#define CLI_UNLIMITED 1e18 /* `high` of a count without a limit */
/* The argument of a switch that may be followed by 0 (as if it were absent) or 1. */
#define CLI_0_1 "[0|1]"
#define CLI_END                                                                                              \
    { NULL, 0, NULL, NULL, NULL, false, 0, 0 }

struct cli_args;

/* A value of the first positional of a command with several actions: `curve new`, `curve list`. */
struct cli_verb {
    const char *name;                     /* NULL ends the list */
    int (*run)(const struct cli_args *a); /* replaces the command's */
    const char *usage;                    /* positionals after the verb */
    const char *options; /* the command's options that it accepts, separated by spaces; NULL = all */
};

/* A command line that was read. Strings live as long as argv. */
struct cli_args {
    const struct cli_command *command;
    const struct cli_command *const *all; /* commands, in the order of the help; ends in NULL */
    struct svi_settings settings;
    bool flagged[SVI_SETTING_MAX]; /* by row of the settings table: set by a flag */
    const char *settled;   /* the setting that implied method alsvm (svi_settings_settle_method), or NULL */
    const char *no_budget; /* the one that implied alert.budget none (svi_settings_settle_alerts), or NULL */
    const char *config;    /* file of -f/--config, NULL = none */
    bool quiet;            /* -q/--quiet: no progress, no summary, no addresses; errors only */
    bool help, version;    /* -h/--help, --version: the rest of the line was not read */
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
    /* Positionals after the name: FILE is required, [FILE] optional, FILE... repeatable; "" = none. With
     * verbs, the verb's usage is checked instead, and this one is only for the help. */
    const char *usage;
    const char *unexpected; /* advice after an argument too many; NULL = none */
    /* Paragraphs and examples for --help and the man page, lines of at most 100 characters; NULL = none. */
    const char *help;
    /* Settings that its help lists, separated by spaces ("in." = the whole group in.*); NULL = all, "" =
     * none. In a file every command accepts all settings, so that one file serves all commands; a flag of a
     * setting that is not listed would do nothing and is refused. */
    const char *keys;
    const struct cli_option *options; /* NULL = none */
    const struct cli_verb *verbs;     /* what the first positional may be; NULL = anything */
    /* For the completion of a command without verbs: the i-th word that may follow the name, or with `config`
     * the i-th setting that may follow that word; NULL: no more. The member may be NULL. */
    const char *(*word)(bool config, int i);
    bool hidden;    /* omitted from the list of commands */
    bool unchecked; /* runs even when settings contradict each other, although `keys` lists the learner's */
    int (*run)(const struct cli_args *a); /* returns enum cli_exit; not called with a verb */
};

/* The command of that name in a list that ends in NULL, or NULL. */
const struct cli_command *cli_find(const struct cli_command *const *all, const char *name);

/* True when the option was given. An unknown name is a bug (assert). */
bool cli_has(const struct cli_args *a, const char *name);

/* The option's value as given, or its default; NULL when it was not given and has no default. */
const char *cli_value(const struct cli_args *a, const char *name);

/* The same as a number, or as the index of a word among those of the row. The option must have a default or
 * have been given (assert). */
double cli_number(const struct cli_args *a, const char *name);
int64_t cli_integer(const struct cli_args *a, const char *name);
int cli_word(const struct cli_args *a, const char *name);

/* The index of a word in "json|csv", or -1. */
int cli_word_place(const char *words, const char *word);

/* True when the setting was chosen by the user (svi_settings_chosen). */
bool cli_given(const struct cli_args *a, const char *key);

/* True when a flag of this command line set it. */
bool cli_flagged(const struct cli_args *a, const char *key);

/* The name of the file that a command writes: its positional `index`, or else the name of its input
 * (positional `input`) plus `ending`, in the working directory as LIBLINEAR does: PATH/NAME.svm.gz ->
 * NAME.svm.gz.model.
 */
void cli_output_name(const struct cli_args *a, int index, int input, const char *ending, char *out,
                     size_t size);

/* Writes text from a file or a peer: unchanged, but escaped when `to` is a terminal. */
void cli_put_text(FILE *to, const char *text, size_t length);

/* Prints "waiting for ADDRESS" on standard error, unless --quiet is given; `args`: struct cli_args. */
void cli_waiting(void *args, const char *address);

/* Print `svmstream feed: text` on stderr. Return CLI_FAILED, CLI_FAILED (CLI_USAGE for SVS_SETTING) and
 * CLI_USAGE. */
int cli_fail(const struct cli_args *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
int cli_error(const struct cli_args *a, const svs_error *err);
int cli_usage(const struct cli_args *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* CLI_OK, or cli_error when `code` is not SVS_OK. */
int cli_end(const struct cli_args *a, svs_code code, const svs_error *err);

#endif
