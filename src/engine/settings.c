#include "engine/settings.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/text.h"

/* The `index`-th word of "a|b|c" and its length; NULL behind the last. */
static const char *choice_at(const char *choices, int index, size_t *length) {
    for (; choices; index--) {
        *length = strcspn(choices, "|");
        if (index == 0)
            return choices;
        choices = choices[*length] ? choices + *length + 1 : NULL;
    }
    return NULL;
}

static int choice_index(const char *choices, const char *value) {
    size_t length;
    const char *word;
    for (int i = 0; (word = choice_at(choices, i, &length)); i++)
        if (strlen(value) == length && memcmp(word, value, length) == 0)
            return i;
    return -1;
}

static char *write_choices(const char *choices, char *out, size_t size) {
    size_t length, next;
    const char *word;
    int at = 0;
    out[0] = '\0';
    for (int i = 0; (word = choice_at(choices, i, &length)); i++) {
        const char *before = i == 0 ? "" : choice_at(choices, i + 1, &next) ? ", " : " or ";
        at += snprintf(out + at, size - (size_t)at, "%s%.*s", before, (int)length, word);
        if (at >= (int)size)
            break;
    }
    return out;
}

/* 1e9 and 1e-9 rather than rows of zeros, but only where they may be written so: integers take digits alone.
 */
static char *write_bound(const struct svi_setting *row, double bound, char *out, size_t size) {
    double power = bound > 0 && row->type == SVI_SET_NUMBER ? log10(bound) : 0;
    bool round = fabs(power - rint(power)) < 1e-9;
    if (round && (power > 5.5 || power < -3.5))
        snprintf(out, size, "1e%d", (int)rint(power));
    else
        snprintf(out, size, "%.16g", bound);
    return out;
}

static void write_interval(const struct svi_setting *row, char *out, size_t size) {
    char low[32], high[32];
    const char *words = row->type == SVI_SET_SCORES ? "all, none or " : "";
    snprintf(out, size, "%s%s to %s%s%s", words, write_bound(row, row->low, low, sizeof low),
             write_bound(row, row->high, high, sizeof high), row->unit[0] ? " " : "", row->unit);
}

char *svi_settings_range(const struct svi_setting *row, char *out, size_t size) {
    if (row->type == SVI_SET_CHOICE || (row->type == SVI_SET_TEXT && row->choices))
        return write_choices(row->choices, out, size);
    if (row->type == SVI_SET_TEXT)
        snprintf(out, size, "text of at most %zu bytes", row->size - 1);
    else if (row->type == SVI_SET_NAME)
        snprintf(out, size, "1 to %zu letters, digits, _ or -", row->size - 1);
    else if (row->type == SVI_SET_ADDRESS)
        snprintf(out, size, "an address like tcp://127.0.0.1:5555%s%s", row->choices ? " or " : "",
                 row->choices ? row->choices : "");
    else
        write_interval(row, out, size);
    return out;
}

/* Every refusal of a value: the key, the value, what is wrong with it, what the row takes. */
static svs_code refuse(const struct svi_setting *row, const char *value, const char *fault, svs_error *err) {
    char shown[64], range[96];
    svi_escape(shown, sizeof shown, value, strlen(value));
    return svi_fail(err, SVS_SETTING, "%s: '%s' %s; it takes %s", row->key, shown, fault,
                    svi_settings_range(row, range, sizeof range));
}

static void *field(struct svi_settings *s, const struct svi_setting *row) {
    return (char *)s + row->offset;
}

/* Control characters, line separators and what is no character: nothing that a name or address holds, and
 * YAML could not give them back. */
static bool unprintable(const char *text) {
    static const char *const codes[] = {"\u2028", "\u2029", "\ufeff", "\xef\xbf\xbe", "\xef\xbf\xbf"};
    for (const unsigned char *at = (const unsigned char *)text; *at; at++)
        if (*at < 0x20 || *at == 0x7f || (at[0] == 0xc2 && at[1] < 0xa0))
            return true;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (strstr(text, codes[i]))
            return true;
    return false;
}

static svs_code set_text(struct svi_settings *s, const struct svi_setting *row, const char *value,
                         svs_error *err) {
    size_t length = strlen(value);
    if (length >= row->size)
        return refuse(row, value, "is too long", err);
    if (!svi_utf8_valid(value, length))
        return refuse(row, value, "is not valid UTF-8", err);
    if (unprintable(value))
        return refuse(row, value, "holds a control character", err);
    memset(field(s, row), 0, row->size);
    memcpy(field(s, row), value, length);
    return SVS_OK;
}

static svs_code set_word(struct svi_settings *s, const struct svi_setting *row, const char *value,
                         svs_error *err) {
    if (row->choices && choice_index(row->choices, value) < 0)
        return refuse(row, value, "is none of its words", err);
    return set_text(s, row, value, err);
}

static svs_code set_name(struct svi_settings *s, const struct svi_setting *row, const char *value,
                         svs_error *err) {
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    if (value[0] == '\0')
        return refuse(row, value, "is empty", err);
    if (value[strspn(value, allowed)] != '\0')
        return refuse(row, value, "holds another character", err);
    return set_text(s, row, value, err);
}

/* ZeroMQ would take 70001 for 4465. */
static bool is_port(const char *text) {
    const size_t n = strlen(text);
    return strcmp(text, "*") == 0 ||
           (n >= 1 && n <= 5 && strspn(text, "0123456789") == n && strtol(text, NULL, 10) <= 65535);
}

static svs_code set_address(struct svi_settings *s, const struct svi_setting *row, const char *value,
                            svs_error *err) {
    const char *colon = strstr(value, "://");
    bool word = row->choices && choice_index(row->choices, value) >= 0;
    if (!word && (!colon || colon == value || colon[3] == '\0'))
        return refuse(row, value, "is no address", err);
    if (strncmp(value, "tcp://", 6) == 0 && !is_port(strrchr(value, ':') + 1))
        return refuse(row, value, "has no port from 0 to 65535 at its end", err);
    return set_text(s, row, value, err);
}

static svs_code set_choice(struct svi_settings *s, const struct svi_setting *row, const char *value,
                           svs_error *err) {
    int index = choice_index(row->choices, value);
    if (index < 0)
        return refuse(row, value, "is none of its words", err);
    *(int *)field(s, row) = index;
    return SVS_OK;
}

static svs_code store_integer(struct svi_settings *s, const struct svi_setting *row, const char *value,
                              int64_t n, svs_error *err) {
    if ((double)n < row->low || (double)n > row->high || errno == ERANGE)
        return refuse(row, value, "is out of range", err);
    *(int64_t *)field(s, row) = n;
    return SVS_OK;
}

/* The digits of a whole number, with a sign at most: strtoll alone would pass spaces. */
static bool whole(const char *value, int64_t *n, const char **rest) {
    const char *digits = value + (value[0] == '-' || value[0] == '+');
    if (digits[0] < '0' || digits[0] > '9')
        return false;
    char *end;
    errno = 0;
    *n = strtoll(value, &end, 10);
    *rest = end;
    return true;
}

static svs_code set_integer(struct svi_settings *s, const struct svi_setting *row, const char *value,
                            svs_error *err) {
    int64_t n;
    const char *rest;
    if (!whole(value, &n, &rest) || rest[0] != '\0')
        return refuse(row, value, "is not a whole number", err);
    return store_integer(s, row, value, n, err);
}

static svs_code set_scores(struct svi_settings *s, const struct svi_setting *row, const char *value,
                           svs_error *err) {
    if (strcmp(value, "all") == 0)
        value = "1";
    else if (strcmp(value, "none") == 0)
        value = "0";
    return set_integer(s, row, value, err);
}

static const struct {
    const char *name;
    int64_t bytes;
} sizes[] = {{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}, {"", 1}};
#define SIZES ((int)(sizeof sizes / sizeof sizes[0]))

static svs_code set_bytes(struct svi_settings *s, const struct svi_setting *row, const char *value,
                          svs_error *err) {
    int64_t n;
    const char *rest;
    if (!whole(value, &n, &rest))
        return refuse(row, value, "is not a whole number of bytes, KiB, MiB or GiB", err);
    if (rest[0] == ' ' && rest[1] != '\0')
        rest++;
    for (int i = 0; i < SIZES; i++) {
        if (strcmp(rest, sizes[i].name) != 0)
            continue;
        bool fits = n >= 0 && n <= INT64_MAX / sizes[i].bytes;
        return store_integer(s, row, value, fits ? n * sizes[i].bytes : -1, err);
    }
    return refuse(row, value, "is not a whole number of bytes, KiB, MiB or GiB", err);
}

static svs_code set_number(struct svi_settings *s, const struct svi_setting *row, const char *value,
                           svs_error *err) {
    char *end = NULL;
    double number = strtod(value, &end);
    /* The characters are checked first because strtod also takes spaces, hexadecimals, NaN and infinities. */
    if (value[0] == '\0' || value[strspn(value, "0123456789+-.eE")] != '\0' || *end != '\0')
        return refuse(row, value, "is not a number", err);
    if (!(number >= row->low && number <= row->high))
        return refuse(row, value, "is out of range", err);
    *(double *)field(s, row) = number + 0.0; /* -0 would not survive being written and read */
    return SVS_OK;
}

typedef svs_code setter(struct svi_settings *s, const struct svi_setting *row, const char *value,
                        svs_error *err);

static setter *const setters[] = {
    [SVI_SET_TEXT] = set_word,     [SVI_SET_NAME] = set_name,       [SVI_SET_ADDRESS] = set_address,
    [SVI_SET_CHOICE] = set_choice, [SVI_SET_INTEGER] = set_integer, [SVI_SET_NUMBER] = set_number,
    [SVI_SET_BYTES] = set_bytes,   [SVI_SET_SCORES] = set_scores,
};

svs_code svi_settings_set(struct svi_settings *s, const char *key, const char *value, svs_error *err) {
    const struct svi_setting *row = svi_settings_row(key);
    if (!row)
        return svi_settings_unknown(key, err);
    svs_code code = setters[row->type](s, row, value, err);
    if (code == SVS_OK)
        s->given[svi_settings_place(row)] = true;
    return code;
}

void svi_settings_default(struct svi_settings *s) {
    memset(s, 0, sizeof *s);
    int rows;
    const struct svi_setting *table = svi_settings_table(&rows);
    for (int i = 0; i < rows; i++)
        (void)svi_settings_set(s, table[i].key, table[i].value, NULL);
    memset(s->given, 0, sizeof s->given);
}

static void write_bytes(int64_t bytes, char *out, size_t size) {
    for (int i = 0; i < SIZES; i++)
        if (bytes % sizes[i].bytes == 0 && bytes >= sizes[i].bytes) {
            snprintf(out, size, "%lld%s%s", (long long)(bytes / sizes[i].bytes),
                     sizes[i].bytes > 1 ? " " : "", sizes[i].bytes > 1 ? sizes[i].name : "");
            return;
        }
    snprintf(out, size, "0");
}

/* The shortest form that reads back as the same double. */
static void write_number(double value, char *out, size_t size) {
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, size, "%.*g", digits, value);
        if (strtod(out, NULL) == value)
            return;
    }
}

static void write_integer(const struct svi_setting *row, int64_t n, char *out, size_t size) {
    if (row->type == SVI_SET_BYTES)
        write_bytes(n, out, size);
    else if (row->type == SVI_SET_SCORES && n <= 1)
        snprintf(out, size, "%s", n == 1 ? "all" : "none");
    else
        snprintf(out, size, "%lld", (long long)n);
}

char *svi_settings_value(const struct svi_settings *s, const struct svi_setting *row, char *out,
                         size_t size) {
    const void *at = (const char *)s + row->offset;
    size_t length;
    const char *word;
    switch (row->type) {
    case SVI_SET_TEXT:
    case SVI_SET_NAME:
    case SVI_SET_ADDRESS:
        snprintf(out, size, "%s", (const char *)at);
        break;
    case SVI_SET_CHOICE:
        word = choice_at(row->choices, *(const int *)at, &length);
        snprintf(out, size, "%.*s", word ? (int)length : 0, word ? word : "");
        break;
    case SVI_SET_NUMBER:
        write_number(*(const double *)at, out, size);
        break;
    default:
        write_integer(row, *(const int64_t *)at, out, size);
    }
    return out;
}
