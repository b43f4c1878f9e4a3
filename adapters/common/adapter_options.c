#include "adapter_options.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <svmstream/svmstream.h>

#include "base/fail.h"
#include "base/text.h"
#include "wire/event.h"

#define NAMES_MAX 64

static void adapter_options_help(const struct adapter_command *c) {
    fputs(c->before, stdout);
    for (int i = 0; i < c->count; i++) {
        const struct adapter_option *row = &c->options[i];
        char head[48];
        if (row->name) {
            snprintf(head, sizeof head, "--%s %s", row->name, row->argument ? row->argument : "");
            printf("  %-*s %s\n", c->column, head, row->text);
        } else {
            printf("\n%s\n", row->text);
        }
    }
    printf("  %-*s %s\n  %-*s %s\n", c->column, "--help", "this text", c->column, "--version",
           "the version of svmstream that it belongs to");
    fputs(c->after, stdout);
}

int adapter_options_wrong(const char *program, const char *format, ...) {
    char text[800];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s: %s; --help lists the options\n", program, text);
    return 2;
}

/* strtod serves both kinds, so 1e5 is a whole number too. Every high limit of a WHOLE lies far below 2^53,
 * where a double still holds each integer. */
static int adapter_options_number(const struct adapter_command *c, const struct adapter_option *row,
                                  const char *text, void *field) {
    char *end;
    errno = 0;
    const double value = strtod(text, &end);
    const bool whole = row->type != OPTION_WHOLE || value == floor(value);
    /* isfinite is needed: nan passes both range tests, as every comparison with it is false. */
    if (end == text || *end || errno || !isfinite(value) || value < row->low || value > row->high || !whole)
        return adapter_options_wrong(c->program, "--%s takes %s from %.15g to %.15g, not %s", row->name,
                                     row->type == OPTION_WHOLE ? "a whole number" : "a number", row->low,
                                     row->high, text);
    if (row->type == OPTION_WHOLE)
        *(int64_t *)field = (int64_t)value;
    else
        *(double *)field = value;
    return 0;
}

static int adapter_options_set(const struct adapter_command *c, void *options,
                               const struct adapter_option *row, const char *value) {
    void *field = (char *)options + row->at;
    if (row->type == OPTION_OWN)
        return c->own(options, row, value);
    if (!*value)
        return adapter_options_wrong(c->program, "--%s needs a value", row->name);
    if (row->type == OPTION_WHOLE || row->type == OPTION_REAL)
        return adapter_options_number(c, row, value, field);
    /* Values are not copied: argv outlives the options. */
    *(const char **)field = value;
    return 0;
}

/* A name without a row. */
static int adapter_options_unknown(const struct adapter_command *c, const char *name) {
    const char *names[NAMES_MAX + 1];
    char shown[80];
    int n = 0;
    /* A likely slip that deserves more than a similar name: the command line is public to every listing of
     * processes. The value is not repeated. */
    if (strncmp(name, c->secret, strlen(c->secret)) == 0)
        return adapter_options_wrong(c->program, "%s", c->secret_text);
    for (int i = 0; i < c->count && n < NAMES_MAX; i++)
        if (c->options[i].name)
            names[n++] = c->options[i].name;
    names[n] = NULL;
    const char *nearest = svi_nearest(name, names);
    return adapter_options_wrong(
        c->program, "--%s is not an option%s%s%s", svi_escape(shown, sizeof shown, name, strlen(name)),
        nearest ? "; did you mean --" : "", nearest ? nearest : "", nearest ? "?" : "");
}

/* One option at argv[*i]; *i is moved to its value. */
static int adapter_options_take(const struct adapter_command *c, void *options, int argc, char *const *argv,
                                int *i) {
    const bool letter = strcmp(argv[*i], c->letter) == 0;
    const char *word = argv[*i], *equals = letter ? NULL : strchr(word, '=');
    const struct adapter_option *row = NULL;
    char name[64], shown[80]; /* no known name is longer, so a truncated one stays unknown */
    if (!letter && c->word && (word[0] != '-' || !word[1]))
        return c->word(options, word);
    if (!letter && strncmp(word, "--", 2) != 0)
        return adapter_options_wrong(c->program, "%s is not an option",
                                     svi_escape(shown, sizeof shown, word, strlen(word)));
    snprintf(name, sizeof name, "%.*s", equals ? (int)(equals - word - 2) : (int)sizeof name - 1,
             letter ? c->letter_name : word + 2);
    for (int k = 0; k < c->count && !row; k++)
        if (c->options[k].name && strcmp(c->options[k].name, name) == 0)
            row = &c->options[k];
    if (!row)
        return adapter_options_unknown(c, name);
    if (row->type == OPTION_FLAG && equals)
        return adapter_options_wrong(c->program, "--%s takes no value", row->name);
    if (row->type == OPTION_FLAG)
        return *((bool *)options + row->at) = true, 0;
    if (!equals && *i + 1 >= argc)
        return adapter_options_wrong(c->program, "--%s needs a value: %s", row->name, row->argument);
    return adapter_options_set(c, options, row, equals ? equals + 1 : argv[++*i]);
}

int adapter_options_read(const struct adapter_command *c, void *options, int argc, char *const *argv,
                         bool *done) {
    *done = false;
    for (int i = 1; i < argc; i++) {
        const bool help = strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0;
        if (help)
            adapter_options_help(c);
        else if (strcmp(argv[i], "--version") == 0)
            printf("%s %s\n", c->program, svs_version());
        if (help || strcmp(argv[i], "--version") == 0) {
            *done = true;
            return 0;
        }
        const int code = adapter_options_take(c, options, argc, argv, &i);
        if (code)
            return code;
    }
    return 0;
}

/* svi_topic_name is the one list of kinds, for the message too. */
int adapter_options_kinds(const char *program, const char *list, unsigned *kinds) {
    char copy[200], all[200] = "", *rest = copy, *word;
    if (strcmp(list, "none") == 0)
        return 0;
    if (strlen(list) >= sizeof copy)
        return adapter_options_wrong(program, "--publish %s is too long", list);
    strcpy(copy, list);
    while ((word = strsep(&rest, ","))) {
        int k = 0;
        while (k < SVI_TOPIC_COUNT && strcmp(word, svi_topic_name((enum svi_topic)k)) != 0)
            k++;
        if (k < SVI_TOPIC_COUNT) {
            *kinds |= 1u << k;
            continue;
        }
        for (k = 0; k < SVI_TOPIC_COUNT; k++)
            snprintf(all + strlen(all), sizeof all - strlen(all), "%s, ", svi_topic_name((enum svi_topic)k));
        return adapter_options_wrong(program, "--publish %s: %s is no kind of event: %sor none", list, word,
                                     all);
    }
    return 0;
}
