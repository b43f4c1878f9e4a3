/* A CSV as rows of JSON. The first line names the columns; the separator is the one of comma, semicolon and
 * tab that occurs most often in it. A cell that reads as a number of JSON is copied as it is; other spellings
 * of numbers (+1, .5, 1.) are written as JSON has them; 007 is a word, as a key or an id must keep its zeros.
 * Where semicolons separate, a comma is a decimal comma: spreadsheets write semicolons for that reason.
 * Quotes only protect: "7" is a number as well.
 * Everything else is a string: what it means, the settings of the stream decide. */
#include "csv_rows.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text.h"
#include "data/number.h"
#include "wire/json.h"

#define COLUMNS_MAX 65536
#define NUMBER_MAX  64         /* characters of a cell that may be a number */
#define BYTES_MAX   (64 << 20) /* of the rows as JSON, as much as may be under way */

struct csv_text {
    const char *at, *end;
    char separator;
    int64_t line; /* of `at` */
    struct svi_bytes cell;
    bool last; /* the cell read last ends its line */
    bool one_line;
    /* the names of the columns, as JSON strings with a colon, one after another */
    struct svi_bytes names;
    size_t *name; /* [columns + 1] their offsets */
    int64_t columns, capacity;
};

static svs_code csv_put(struct csv_text *c, const char *bytes, size_t size) {
    return svi_bytes_append(&c->cell, bytes, size);
}

/* The inside of quotes; two of them stand for one. */
static svs_code csv_quoted(struct csv_text *c, svs_error *err) {
    const int64_t line = c->line;
    for (c->at++;;) {
        const char *quote = memchr(c->at, '"', (size_t)(c->end - c->at));
        if (!quote)
            return svi_fail(err, SVS_TRUNCATED, "line %lld: the quotes of a cell do not end",
                            (long long)line);
        for (const char *p = c->at; p < quote; p++)
            c->line += *p == '\n';
        SVI_TRY(csv_put(c, c->at, (size_t)(quote - c->at)));
        c->at = quote + 1;
        if (c->at == c->end || *c->at != '"')
            return SVS_OK;
        SVI_TRY(csv_put(c, "\"", 1));
        c->at++;
    }
}

/* Reads a cell, without the separator or the line end after it. */
static svs_code csv_cell(struct csv_text *c, svs_error *err) {
    c->cell.size = 0;
    const bool quoted = c->at < c->end && *c->at == '"';
    if (quoted)
        SVI_TRY(csv_quoted(c, err));
    const char *start = c->at;
    while (c->at < c->end && *c->at != c->separator && *c->at != '\n')
        c->at++;
    const char *stop = c->at;
    c->last = c->at == c->end || *c->at == '\n';
    if (c->at < c->end) {
        c->line += *c->at == '\n';
        c->at++;
    }
    /* Blanks around a cell, and the CR of a line end, do not count. */
    while (stop > start && (stop[-1] == '\r' || stop[-1] == ' ' || stop[-1] == '\t'))
        stop--;
    while (start < stop && (*start == ' ' || *start == '\t'))
        start++;
    if (quoted && start < stop)
        return svi_fail(err, SVS_TRAILING, "line %lld: text follows the closing quote of a cell",
                        (long long)(c->line - c->last));
    if (quoted)
        return SVS_OK;
    return csv_put(c, start, (size_t)(stop - start));
}

static bool csv_blank_line(const struct csv_text *c) {
    const char *p = c->at;
    while (p < c->end && (*p == ' ' || *p == '\t' || *p == '\r'))
        p++;
    return p == c->end || *p == '\n';
}

static void csv_choose_separator(struct csv_text *c) {
    static const char candidates[] = {',', ';', '\t'};
    int64_t most = 0;
    c->separator = ',';
    for (int i = 0; i < 3; i++) {
        int64_t count = 0;
        bool quoted = false;
        for (const char *p = c->at; p < c->end && (quoted || *p != '\n'); p++) {
            quoted = quoted != (*p == '"');
            count += !quoted && *p == candidates[i];
        }
        if (count > most) {
            most = count;
            c->separator = candidates[i];
        }
    }
}

static svs_code csv_string(struct svi_bytes *out, const struct svi_bytes *text, int64_t line,
                           svs_error *err) {
    const char *bytes = text->size > 0 ? (const char *)text->data : "";
    if (!svi_utf8_valid(bytes, text->size) || memchr(bytes, 0, text->size))
        return svi_fail(err, SVS_NOT_JSON,
                        "line %lld: the text is not UTF-8; if it is Latin-1, convert it with "
                        "iconv -f LATIN1 -t UTF-8",
                        (long long)line);
    return svi_json_string(out, bytes, text->size);
}

static bool csv_is_json_number(const char *p, const char *end);

/* Of a text without line ends, for what is wrong with its only line. */
static const char *csv_advice(const struct csv_text *c) {
    return c->one_line ? "; with curl, --data-binary @FILE sends a file with its line ends (-d removes them)"
                       : "";
}

/* A name with a decimal point is a value: the file has no line of names, and its first row would be lost. */
static svs_code csv_check_name(const struct csv_text *c, svs_error *err) {
    char name[4 * 40 + 1];
    const char *text = (const char *)c->cell.data;
    if (c->cell.size == 0 || !memchr(text, '.', c->cell.size) ||
        !csv_is_json_number(text, text + c->cell.size))
        return SVS_OK;
    return svi_fail(
        err, SVS_BAD_COLUMN, "line 1: column %lld is called %s: the first line must name the columns%s",
        (long long)c->columns + 1, svi_escape(name, sizeof name, text, c->cell.size < 40 ? c->cell.size : 40),
        csv_advice(c));
}

/* The names, each as `"name":`. */
static svs_code csv_header(struct csv_text *c, svs_error *err) {
    do {
        SVI_TRY(csv_cell(c, err));
        if (c->columns == COLUMNS_MAX)
            return svi_fail(err, SVS_LIMIT, "line 1: there are more than %d columns", COLUMNS_MAX);
        if (c->cell.size == 0 && !(c->columns == 0 && !c->last))
            return svi_fail(err, SVS_BAD_COLUMN, "line 1: column %lld has no name",
                            (long long)c->columns + 1);
        SVI_TRY(csv_check_name(c, err));
        if (!svi_grow(&c->name, c->columns + 1, &c->capacity, 64, sizeof *c->name))
            return svi_fail_memory(err, "the columns");
        c->name[c->columns++] = c->names.size;
        SVI_TRY(csv_string(&c->names, &c->cell, 1, err));
        SVI_TRY(svi_bytes_append(&c->names, ":", 1));
        c->name[c->columns] = c->names.size;
    } while (!c->last);
    return SVS_OK;
}

/* Is the whole cell a number of JSON's grammar? */
static bool csv_is_json_number(const char *p, const char *end) {
    p += p < end && *p == '-';
    const char *digits = p;
    while (p < end && *p >= '0' && *p <= '9')
        p++;
    if (p == digits || (*digits == '0' && p > digits + 1))
        return false;
    if (p < end && *p == '.') {
        const char *fraction = ++p;
        while (p < end && *p >= '0' && *p <= '9')
            p++;
        if (p == fraction)
            return false;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        p += p < end && (*p == '+' || *p == '-');
        const char *exponent = p;
        while (p < end && *p >= '0' && *p <= '9')
            p++;
        if (p == exponent)
            return false;
    }
    return p == end;
}

/* A number in another spelling: +1, .5, 1. and, where `comma` is a decimal comma, 12,5. */
static bool csv_other_number(const char *text, size_t size, bool comma, double *value) {
    char copy[NUMBER_MAX + SVI_NUMBER_PAD + 1] = {0};
    const char *digits = text + (*text == '-' || *text == '+');
    if (size > NUMBER_MAX ||
        (digits[0] == '0' && digits + 1 < text + size && digits[1] >= '0' && digits[1] <= '9'))
        return false;
    memcpy(copy, text, size);
    char *const point = comma && !memchr(copy, '.', size) ? memchr(copy, ',', size) : NULL;
    if (point)
        *point = '.';
    const char *start = copy + (*copy == '+');
    if (!strchr("0123456789.-", *start) || (start > copy && *start == '-'))
        return false;
    return svi_number(start, value) == copy + size && isfinite(*value);
}

static svs_code csv_value(struct svi_bytes *out, const struct csv_text *c, int64_t line, svs_error *err) {
    const char *text = (const char *)c->cell.data;
    char number[40];
    double value;
    if (c->cell.size == 0)
        return svi_json_text(out, "null");
    if (csv_is_json_number(text, text + c->cell.size))
        return svi_bytes_append(out, text, c->cell.size);
    if (csv_other_number(text, c->cell.size, c->separator == ';', &value)) {
        snprintf(number, sizeof number, "%.17g", value);
        return svi_json_text(out, number);
    }
    return csv_string(out, &c->cell, line, err);
}

static svs_code csv_rows_one(struct csv_text *c, struct svi_bytes *out, svs_error *err) {
    const int64_t line = c->line;
    int64_t i = 0;
    SVI_TRY(svi_json_text(out, "{"));
    do {
        SVI_TRY(csv_cell(c, err));
        if (i == c->columns)
            return svi_fail(err, SVS_WRONG_DIMENSION,
                            "line %lld has more cells than the %lld columns of line 1", (long long)line,
                            (long long)c->columns);
        SVI_TRY(svi_json_text(out, i > 0 ? "," : ""));
        SVI_TRY(svi_bytes_append(out, c->names.data + c->name[i], c->name[i + 1] - c->name[i]));
        SVI_TRY(csv_value(out, c, line, err));
        i++;
    } while (!c->last);
    if (i < c->columns)
        return svi_fail(err, SVS_WRONG_DIMENSION, "line %lld has %lld cells, and line 1 names %lld columns",
                        (long long)line, (long long)i, (long long)c->columns);
    return svi_json_text(out, "}");
}

static svs_code csv_rows_all(struct csv_text *c, struct svi_bytes *out, int64_t most, int64_t *count,
                             svs_error *err) {
    if (c->end - c->at >= 3 && memcmp(c->at, "\xef\xbb\xbf", 3) == 0)
        c->at += 3;
    csv_choose_separator(c);
    SVI_TRY(csv_header(c, err));
    while (c->at < c->end) {
        if (csv_blank_line(c)) {
            const char *end = memchr(c->at, '\n', (size_t)(c->end - c->at));
            c->at = end ? end + 1 : c->end;
            c->line++;
            continue;
        }
        /* Each row repeats the names: a long first line would make a small body a huge one. */
        if (out->size > BYTES_MAX)
            return svi_fail(err, SVS_LIMIT,
                            "line %lld: the rows up to here, with their names, have more than %d MiB: send "
                            "fewer at a time",
                            (long long)c->line, BYTES_MAX >> 20);
        if (*count == most)
            return svi_fail(err, SVS_LIMIT,
                            "line %lld: the body has more than %lld rows: send fewer at a time",
                            (long long)c->line, (long long)most);
        SVI_TRY(svi_json_text(out, *count > 0 ? "," : ""));
        SVI_TRY(csv_rows_one(c, out, err));
        ++*count;
    }
    if (*count == 0)
        return svi_fail(err, SVS_EMPTY, "the first line names the columns, and no row follows it%s",
                        csv_advice(c));
    return SVS_OK;
}

svs_code http_csv_rows(struct svi_bytes *out, const char *text, size_t size, int64_t most, int64_t *count,
                       svs_error *err) {
    struct csv_text c = {
        .at = text, .end = text + size, .line = 1, .one_line = size == 0 || !memchr(text, '\n', size)};
    svi_fail_memory(err, "the rows");
    *count = 0;
    const svs_code code = csv_rows_all(&c, out, most, count, err);
    svi_bytes_clear(&c.cell);
    svi_bytes_clear(&c.names);
    svi_free(c.name);
    return code;
}
