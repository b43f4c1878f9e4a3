/* What a command asks of its command line, and how it says that something failed. */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"

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
    const struct svi_setting *row = svi_settings_row(key);
    assert(row);
    return svi_settings_given(&a->settings, row);
}

bool cli_number(const struct cli_args *a, const char *name, double low, double high, double *out) {
    const char *value = cli_value(a, name);
    assert(value);
    char *end;
    *out = strtod(value, &end);
    bool plain = value[0] != '\0' && value[strspn(value, "0123456789+-.eE")] == '\0' && *end == '\0';
    if (plain && *out >= low && *out <= high)
        return true;
    cli_usage(a, "--%s: '%s' is not a number from %g to %g", name, value, low, high);
    return false;
}

bool cli_integer(const struct cli_args *a, const char *name, int64_t low, int64_t high, int64_t *out) {
    const char *value = cli_value(a, name);
    assert(value);
    char *end;
    errno = 0;
    *out = strtoll(value, &end, 10);
    bool plain = value[0] != '\0' && value[strspn(value, "0123456789+-")] == '\0' && *end == '\0';
    if (plain && errno == 0 && *out >= low && *out <= high)
        return true;
    cli_usage(a, "--%s: '%s' is not a whole number from %lld to %lld", name, value, (long long)low,
              (long long)high);
    return false;
}

void cli_default_name(const char *path, const char *ending, char *out, size_t size) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    snprintf(out, size, "%s%s", strcmp(path, "-") == 0 ? "stdin" : name, ending);
}

static void say(const struct cli_args *a, const char *format, va_list arguments) {
    fprintf(stderr, "svmstream %s: ", a->command->name);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
}

int cli_fail(const struct cli_args *a, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say(a, format, arguments);
    va_end(arguments);
    return CLI_FAILED;
}

int cli_usage(const struct cli_args *a, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say(a, format, arguments);
    va_end(arguments);
    fprintf(stderr, "see `svmstream %s --help`\n", a->command->name);
    return CLI_USAGE;
}

int cli_error(const struct cli_args *a, const svs_error *err) {
    if (err->code == SVS_SETTING)
        return cli_usage(a, "%s", err->text);
    return cli_fail(a, "%s", err->text);
}
