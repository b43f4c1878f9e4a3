/* CSV: a header line, then one cell a column. Numbers are read where they stand; only what is none is cut
 * out. */
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "data/cell.h"
#include "data/csv_header.h"
#include "data/number.h"

static bool is_space(const struct svi_csv_header *h, char c) {
    return c == ' ' || (c == '\t' && h->delimiter != '\t');
}

/* A quoted cell; `p` is behind the opening quote. */
static const char *cut_quoted(const struct svi_csv_header *h, const char *p, const char *end,
                              struct svi_span *cell) {
    cell->at = p;
    for (; p < end; p++)
        if (*p == '"' && (p + 1 == end || p[1] != '"'))
            break;
        else if (*p == '"')
            p++;
    if (p >= end)
        return NULL;
    cell->end = p++;
    while (p < end && is_space(h, *p))
        p++;
    return p == end || *p == h->delimiter ? p : NULL;
}

const char *svi_csv_cut(const struct svi_csv_header *h, const char *p, const char *end,
                        struct svi_span *cell) {
    while (p < end && is_space(h, *p))
        p++;
    if (p < end && *p == '"')
        return cut_quoted(h, p + 1, end, cell);
    const char *stop = memchr(p, h->delimiter, (size_t)(end - p));
    if (!stop)
        stop = end;
    *cell = svi_trim((struct svi_span){p, stop});
    return stop;
}

struct svi_span svi_csv_unquote(struct svi_span cell, char *out) {
    char *to = out;
    for (const char *p = cell.at; p < cell.end; p++) {
        *to++ = *p;
        p += *p == '"';
    }
    return (struct svi_span){out, to};
}

/* How many cells the line has; what stands behind an open quote is one. */
static int count_cells(const struct svi_csv_header *h, struct svi_span line) {
    int count = 0;
    for (const char *p = line.at; p; p++) {
        struct svi_span cell;
        count++;
        p = svi_csv_cut(h, p, line.end, &cell);
        if (!p || p == line.end)
            break;
    }
    return count;
}

static svs_code refuse_count(const struct svi_csv_header *h, struct svi_span line, svs_error *err) {
    return svi_fail(err, SVS_WRONG_DIMENSION, "the row has %d cells, the header %d columns",
                    count_cells(h, line), h->columns);
}

/* The row being read. */
struct row {
    struct svi_csv_header *h;
    struct svi_span line;
    struct svi_message *m;
    svs_error *err;
};

/* A row with too few or too many cells is called that, whatever else is wrong with it. */
static svs_code refuse_cell(const struct row *r, int column, struct svi_span cell, const char *wanted) {
    char name[80], text[60];
    if (count_cells(r->h, r->line) != r->h->columns)
        return refuse_count(r->h, r->line, r->err);
    svi_span_text(r->h->names[column], name, sizeof name);
    svi_span_text(cell, text, sizeof text);
    double v = 0;
    if (svi_cell_infinite(cell) || (svi_cell_number(cell, &v) && !isfinite(v)))
        return svi_fail(r->err, SVS_NOT_FINITE, "column \"%s\": \"%s\" is not finite", name, text);
    return svi_fail(r->err, SVS_WRONG_TYPE, "column \"%s\": \"%s\" is not %s", name, text, wanted);
}

static svs_code take_number(const struct row *r, int column, struct svi_span cell, double *value,
                            const char *wanted) {
    if (!svi_cell_number(cell, value) || !isfinite(*value))
        return refuse_cell(r, column, cell, wanted);
    return SVS_OK;
}

static svs_code take_feature(const struct row *r, int column, struct svi_span cell) {
    double *x = &r->m->x[r->h->roles[column]];
    if (!svi_cell_missing(cell))
        return take_number(r, column, cell, x, "a number");
    *x = NAN;
    r->m->missing++;
    return SVS_OK;
}

static svs_code take_time(const struct row *r, int column, struct svi_span cell) {
    if (svi_cell_missing(cell))
        return SVS_OK;
    return take_number(r, column, cell, &r->m->ts, "a time in seconds since 1970");
}

static svs_code take_weight(const struct row *r, int column, struct svi_span cell) {
    if (svi_cell_missing(cell))
        return SVS_OK;
    svs_code code = take_number(r, column, cell, &r->m->weight, "a weight");
    return code == SVS_OK ? svi_check_weight(r->m->weight, r->err) : code;
}

/* A label or id with doubled quotes is undoubled into `room`, if it is not too long anyway. */
static struct svi_span plain_text(struct svi_span cell, char room[SVI_CSV_TEXT]) {
    size_t length = (size_t)(cell.end - cell.at);
    if (length > SVI_CSV_TEXT || !memchr(cell.at, '"', length))
        return cell;
    return svi_csv_unquote(cell, room);
}

static svs_code take_cell(const struct row *r, int column, struct svi_span cell) {
    switch (r->h->roles[column]) {
    case SVI_CSV_IGNORED:
        return SVS_OK;
    case SVI_CSV_LABEL:
        return svi_cell_label(plain_text(cell, r->h->label_text), &r->m->y, r->err);
    case SVI_CSV_ID:
        return svi_cell_id(plain_text(cell, r->h->id_text), &r->m->id, r->err);
    case SVI_CSV_TS:
        return take_time(r, column, cell);
    case SVI_CSV_WEIGHT:
        return take_weight(r, column, cell);
    default:
        return take_feature(r, column, cell);
    }
}

/* Any cell but a feature that is simply a number. Returns its end, NULL when it is refused with *code. */
static const char *other_cell(const struct row *r, int column, const char *p, svs_code *code) {
    struct svi_span cell;
    const char *q = svi_csv_cut(r->h, p, r->line.end, &cell);
    if (!q) {
        *code = svi_fail(r->err, SVS_WRONG_TYPE, "cell %d: a quote is not closed, or text follows it",
                         column + 1);
        return NULL;
    }
    *code = take_cell(r, column, cell);
    return *code == SVS_OK ? q : NULL;
}

static svs_code take_row(const struct row *r) {
    const struct svi_csv_header *h = r->h;
    const char *p = r->line.at, *end = r->line.end;
    int last = h->columns - 1;
    for (int i = 0; i <= last; i++) {
        double v = INFINITY;
        const char *q = h->roles[i] >= 0 ? svi_number(p, &v) : p;
        if (fabs(v) < INFINITY && (*q == h->delimiter || q == end)) {
            r->m->x[h->roles[i]] = v;
        } else {
            svs_code code;
            q = other_cell(r, i, p, &code);
            if (!q)
                return code;
        }
        if ((q == end) != (i == last))
            return refuse_count(h, r->line, r->err);
        p = q + 1;
    }
    return SVS_OK;
}

static svs_code csv_row(void *state, struct svi_span line, struct svi_message *m, svs_error *err) {
    struct row r = {.h = state, .line = line, .m = m, .err = err};
    if (line.at == line.end || (is_space(r.h, *line.at) && svi_trim(line).at == line.end))
        return SVS_EMPTY;
    m->has_x = true;
    m->kind = SVI_DENSE;
    m->d = r.h->d;
    return take_row(&r);
}

static void *csv_begin(const struct svi_reader_options *o, struct svi_shape *shape, struct svi_span line,
                       svs_error *err) {
    return svi_csv_header_new(o, shape, line, err);
}

static void csv_end(void *state) {
    svi_csv_header_free(state);
}

const struct svi_format svi_csv = {"csv", true, csv_begin, csv_row, csv_end};
