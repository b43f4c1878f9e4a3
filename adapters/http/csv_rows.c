/* A CSV as rows of JSON. Cells are cut like those of a file that is fed (data/csv_cells.h), so that
 * a POST of the file gives the same values. The first line names the columns.
 *
 * A cell that reads as a number of JSON is copied as it is. Other spellings of numbers (+1, .5, 1.)
 * are rewritten as JSON has them. 007 is a word, as a key or an id must keep its zeros. With
 * semicolons as separators, a comma is a decimal comma: spreadsheets write semicolons for that
 * reason. Quotes only protect: "7" is a number as well. Everything else is a string, and the
 * settings of the stream decide what it means. */
#include "csv_rows.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text.h"
#include "data/csv_cells.h"
#include "data/json_in.h"
#include "data/number.h"
#include "wire/json.h"

#define COLUMNS_MAX 65536
#define BYTES_MAX   (64 << 20) /* of the rows as JSON, as much as may be under way */

struct csv_text {
    const char *at, *end;
    const char *line_end, *next; /* of the line of `at`, without its line end; the line after it */
    char delimiter;
    int64_t line;          /* of `at` */
    struct svi_bytes cell; /* without quotes; zeros follow, as data/number.h and data/json_in.h ask for */
    bool last;             /* the cell read last ends its row */
    bool one_line;
    /* the names of the columns, as JSON strings with a colon, one after another */
    struct svi_bytes names;
    size_t *name; /* [columns + 1] their offsets */
    int64_t columns, capacity;
};

/* Finds the line end after `from`, which is in the line. */
static void csv_find_line_end(struct csv_text *c, const char *from) {
    const char *newline = memchr(from, '\n', (size_t)(c->end - from));
    c->line_end = newline ? newline : c->end;
    c->next = newline ? newline + 1 : c->end;
    c->line_end -= c->line_end > from && c->line_end[-1] == '\r';
}

/* Cuts the cell at `at`, whose quotes may hold line ends: its row continues in the line of the closing quote.
 * That quote is looked for in the whole text, so a cell of many lines is read twice, not once a line. */
static svs_code csv_cut(struct csv_text *c, struct svi_span *cell, const char **stop, svs_error *err) {
    *stop = svi_csv_cut(c->at, c->line_end, c->delimiter, cell);
    if (!*stop && cell->end == c->line_end) {
        const char *quote = svi_csv_closing_quote(cell->at, c->end);
        if (quote == c->end)
            return svi_fail(err, SVS_TRUNCATED, "line %lld: the quotes of a cell do not end",
                            (long long)c->line);
        for (const char *p = cell->at; p < quote; p++)
            c->line += *p == '\n';
        csv_find_line_end(c, quote);
        *stop = svi_csv_cut(c->at, c->line_end, c->delimiter, cell);
    }
    if (!*stop)
        return svi_fail(err, SVS_TRAILING, "line %lld: text follows the closing quote of a cell",
                        (long long)c->line);
    return SVS_OK;
}

/* Reads a cell, and steps over the separator or the line end after it. */
static svs_code csv_cell(struct csv_text *c, svs_error *err) {
    struct svi_span cell;
    const char *stop;
    SVI_TRY(csv_cut(c, &cell, &stop, err));
    c->cell.size = 0;
    SVI_TRY(svi_bytes_reserve(&c->cell, (size_t)(cell.end - cell.at) + SVI_NUMBER_PAD + 1));
    const struct svi_span text = svi_csv_unquote(cell, (char *)c->cell.data);
    c->cell.size = (size_t)(text.end - text.at);
    memset(c->cell.data + c->cell.size, 0, SVI_NUMBER_PAD + 1);
    c->last = stop == c->line_end;
    c->at = c->last ? c->next : stop + 1;
    c->line += c->last;
    return SVS_OK;
}

/* By the first line; names may hold line ends, so it is the first one that ends outside of quotes. */
static void csv_choose_delimiter(struct csv_text *c) {
    int count;
    bool quoted = false;
    const char *end = c->at;
    for (; end < c->end && (quoted || *end != '\n'); end++)
        quoted = quoted != (*end == '"');
    c->delimiter = svi_csv_delimiter((struct svi_span){c->at, end}, &count);
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

/* Is the whole cell a number of JSON's grammar? It is copied then; the check would also admit blanks around
 * it, which quotes keep, and words. */
static bool csv_is_json_number(const struct csv_text *c) {
    const char *text = (const char *)c->cell.data, *end = text + c->cell.size;
    return c->cell.size > 0 && (isdigit((unsigned char)*text) || *text == '-') &&
           isdigit((unsigned char)end[-1]) &&
           svi_json_check_value((struct svi_span){text, end}, 0, NULL) == SVS_OK;
}

/* Of a text without line ends, for what is wrong with its only line. */
static const char *csv_advice(const struct csv_text *c) {
    return c->one_line ? "; with curl, --data-binary @FILE sends a file with its line ends (-d removes them)"
                       : "";
}

/* A name with a decimal point is a value: the file has no line of names, and its first row would be lost. */
static svs_code csv_check_name(const struct csv_text *c, svs_error *err) {
    char name[4 * 40 + 1];
    const char *text = (const char *)c->cell.data;
    if (!csv_is_json_number(c) || !memchr(text, '.', c->cell.size))
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

/* A number in another spelling: +1, .5, 1. and, between semicolons, 12,5. */
static bool csv_other_number(struct csv_text *c, double *value) {
    char *const text = (char *)c->cell.data;
    const char *digits = text + (*text == '-' || *text == '+');
    if (digits[0] == '0' && isdigit((unsigned char)digits[1]))
        return false;
    char *const comma =
        c->delimiter == ';' && !memchr(text, '.', c->cell.size) ? memchr(text, ',', c->cell.size) : NULL;
    if (comma)
        *comma = '.';
    const bool whole = svi_number(text, value) == text + c->cell.size;
    /* What is no number is written as it was. */
    if (comma)
        *comma = ',';
    return whole && isfinite(*value);
}

static svs_code csv_value(struct svi_bytes *out, struct csv_text *c, int64_t line, svs_error *err) {
    char number[40];
    double value;
    if (c->cell.size == 0)
        return svi_json_text(out, "null");
    if (csv_is_json_number(c))
        return svi_bytes_append(out, c->cell.data, c->cell.size);
    if (csv_other_number(c, &value)) {
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
    csv_choose_delimiter(c);
    csv_find_line_end(c, c->at);
    SVI_TRY(csv_header(c, err));
    while (c->at < c->end) {
        csv_find_line_end(c, c->at);
        if (svi_csv_is_blank((struct svi_span){c->at, c->line_end}, c->delimiter)) {
            c->at = c->next;
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
    text = size > 0 ? text : "";
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
