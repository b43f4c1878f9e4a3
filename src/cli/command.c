/* What a command reads from its command line, and how it reports failures. */
#include "cli/command.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"

const struct cli_command *cli_find(const struct cli_command *const *all, const char *name) {
    while (*all && strcmp((*all)->name, name) != 0)
        all++;
    return *all;
}

static int option_row(const struct cli_args *a, const char *name) {
    const struct cli_option *options = a->command->options;
    int row = 0;
    while (options && options[row].name && strcmp(options[row].name, name) != 0)
        row++;
    assert(options && options[row].name);
    return row;
}

bool cli_has(const struct cli_args *a, const char *name) {
    return a->value[option_row(a, name)] != NULL;
}

const char *cli_value(const struct cli_args *a, const char *name) {
    int row = option_row(a, name);
    return a->value[row] ? a->value[row] : a->command->options[row].value;
}

bool cli_given(const struct cli_args *a, const char *key) {
    return svi_settings_chosen(&a->settings, key);
}

bool cli_flagged(const struct cli_args *a, const char *key) {
    return a->flagged[svi_settings_row(key) - svi_settings_table];
}

double cli_number(const struct cli_args *a, const char *name) {
    const char *value = cli_value(a, name);
    assert(value);
    return strtod(value, NULL);
}

int64_t cli_integer(const struct cli_args *a, const char *name) {
    const char *value = cli_value(a, name);
    assert(value);
    return strtoll(value, NULL, 10);
}

int cli_word(const struct cli_args *a, const char *name) {
    const char *value = cli_value(a, name);
    assert(value);
    return cli_word_place(a->command->options[option_row(a, name)].argument, value);
}

int cli_word_place(const char *words, const char *word) {
    for (int place = 0;; place++) {
        const size_t length = strcspn(words, "|");
        if (strlen(word) == length && memcmp(words, word, length) == 0)
            return place;
        if (words[length] == '\0')
            return -1;
        words += length + 1;
    }
}

void cli_output_name(const struct cli_args *a, int index, int input, const char *ending, char *out,
                     size_t size) {
    const char *path = a->positional[input], *slash = strrchr(path, '/');
    if (a->positional_count > index)
        snprintf(out, size, "%s", a->positional[index]);
    else
        snprintf(out, size, "%s%s", strcmp(path, "-") == 0 ? "stdin" : slash ? slash + 1 : path, ending);
}

void cli_put_text(FILE *to, const char *text, size_t length) {
    char safe[4 * SVS_NAME_MAX + 8];
    if (isatty(fileno(to)))
        fputs(svi_escape(safe, sizeof safe, text, length), to);
    else
        fwrite(text, 1, length, to);
}

static void print_message(const struct cli_args *a, const char *format, va_list arguments) {
    fprintf(stderr, "svmstream %s: ", a->command->name);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
}

int cli_fail(const struct cli_args *a, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print_message(a, format, arguments);
    va_end(arguments);
    return CLI_FAILED;
}

void cli_waiting(void *args, const char *address) {
    const struct cli_args *a = args;
    if (!a->quiet)
        cli_fail(a, "waiting for %.200s", address);
}

int cli_usage(const struct cli_args *a, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print_message(a, format, arguments);
    va_end(arguments);
    fprintf(stderr, "see `svmstream %s --help`\n", a->command->name);
    return CLI_USAGE;
}

int cli_error(const struct cli_args *a, const svs_error *err) {
    return err->code == SVS_SETTING ? cli_usage(a, "%s", err->text) : cli_fail(a, "%s", err->text);
}

int cli_end(const struct cli_args *a, svs_code code, const svs_error *err) {
    return code == SVS_OK ? CLI_OK : cli_error(a, err);
}
