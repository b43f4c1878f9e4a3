/* adapter_options.h: the command line of an adapter, `--name VALUE` or `--name=VALUE`. One table of rows
 * makes the parser, the ranges, the hints and the help. */
#ifndef ADAPTER_OPTIONS_H
#define ADAPTER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

/* What lies at `at`: TEXT a const char *, WHOLE an int64_t, REAL a double, FLAG a bool. The value of an OWN
 * goes to `own` of the command, which stores it. A HEADING of the help has a text and no name. */
enum adapter_type { OPTION_HEADING, OPTION_TEXT, OPTION_WHOLE, OPTION_REAL, OPTION_FLAG, OPTION_OWN };

/* A type that does not fit its field overwrites the neighbours. */
struct adapter_option {
    const char *name, *argument, *text;
    enum adapter_type type;
    size_t at; /* in the struct of options */
    double low, high;
};

struct adapter_command {
    const char *program;
    const struct adapter_option *options;
    int count;
    int column;                       /* width of the names in the help */
    const char *before, *after;       /* in the help */
    const char *letter, *letter_name; /* "-q" stands for the option "quiet" */
    /* An unknown name that begins with `secret` is answered with this text: the user is about to show a
     * secret in the list of processes. */
    const char *secret, *secret_text;
    /* Stores the value of an OWN, which may be empty. Returns 0, or adapter_options_wrong. */
    int (*own)(void *options, const struct adapter_option *row, const char *value);
    /* Stores a word that is no option ("-" or a name), returning likewise. NULL: the command takes none. */
    int (*word)(void *options, const char *word);
};

/* Reads argv[1 .. argc) into `options`, which holds the defaults; texts are pointers into argv. Returns 0, or
 * 2 after reporting what is wrong. *done: --help or --version was answered on standard output, and the words
 * behind it were not read. */
int adapter_options_read(const struct adapter_command *c, void *options, int argc, char *const *argv,
                         bool *done);

/* Reads a list of kinds of events, `score,alert`, or `none`, which is the value of the option `publish`: sets
 * a bit 1u << topic (enum svi_topic of wire/event.h) for each. Returns 0, or 2 after reporting what is
 * wrong. */
int adapter_options_kinds(const char *program, const char *list, unsigned *kinds);

/* Reports a mistake in the command line, with the advice to read --help. Returns 2, the exit code. */
int adapter_options_wrong(const char *program, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
