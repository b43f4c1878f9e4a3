/* LIBSVM: `label index:value index:value ... # comment`, indices from 1 (column 0), ascending.
 *
 * A row is written into the shape's row, or, for a caller that asked for sparse rows, into `column` and
 * `value`, whose cost does not depend on the number of columns. Indices must ascend: that finds duplicates
 * without marks, and delivers sparse rows sorted.
 *
 * The label is recognised by what it is not: a first token with a colon is a pair, and the row has no label
 * then.
 *
 * Order: tokens, entries, the label, the row, recognising the format. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "data/cell.h"
#include "data/reader_internal.h"
#include "data/number.h"

static const char *libsvm_skip_blanks(const char *p, const char *end) {
    while (p < end && svi_is_blank(*p))
        p++;
    return p;
}

static bool libsvm_ends_token(const char *p, const char *end) {
    return p == end || svi_is_blank(*p) || *p == '#';
}

static struct svi_span libsvm_token_at(const char *p, const char *end) {
    const char *q = p;
    while (!libsvm_ends_token(q, end))
        q++;
    return (struct svi_span){p, q};
}

/* Reads index:value. Returns the byte after it; NULL: something else stands there. */
static const char *libsvm_read_pair(const char *p, const char *end, int64_t *index, double *value) {
    /* The number is read in place: a blank, # or the line end stops it. */
    const char *colon = svi_integer(p, index);
    if (colon == p || *colon != ':')
        return NULL;
    const char *q = svi_number(colon + 1, value);
    return q != colon + 1 && libsvm_ends_token(q, end) ? q : NULL;
}

/* Refuses a token that is not a pair, and separates values that are not finite from text that is not a
 * number. */
static svs_code libsvm_refuse_pair(const char *p, const char *end, svs_error *err) {
    char text[60];
    struct svi_span token = libsvm_token_at(p, end);
    const char *colon = memchr(token.at, ':', (size_t)(token.end - token.at));
    svi_span_text(token, text, sizeof text);
    struct svi_span value = {colon ? colon + 1 : token.end, token.end};
    if (svi_cell_infinite(value) || (value.at < value.end && svi_span_is_any(value, "nan,na,null")))
        return svi_fail(err, SVS_NOT_FINITE, "\"%s\": the value is not finite", text);
    return svi_fail(err, SVS_WRONG_TYPE, "\"%s\" is not index:value", text);
}

/* The row as columns and values, for callers that ask for sparse rows. */
struct libsvm {
    bool sparse;
    int32_t *column;
    double *value;
    size_t columns, values; /* capacity of column and of value */
};

/* The line being read. */
struct libsvm_row {
    struct libsvm *state;
    struct svi_shape *shape;
    struct svi_message *m;
    svs_error *err;
    int64_t previous; /* index of the previous pair, 0 at first */
};

/* Appends an entry to the sparse row. Indices ascend, so the highest column is the last one. */
static svs_code libsvm_add_entry(struct libsvm_row *r, int32_t column, double value) {
    struct libsvm *s = r->state;
    struct svi_message *m = r->m;
    const size_t count = (size_t)m->count + 1;
    if (!svi_row_reserve((void **)&s->column, &s->columns, count, sizeof *s->column) ||
        !svi_row_reserve((void **)&s->value, &s->values, count, sizeof *s->value))
        return svi_fail_memory(r->err, "a row of LIBSVM text");
    s->column[m->count] = column;
    s->value[m->count++] = value;
    m->d = column < m->d ? m->d : column + 1;
    return SVS_OK;
}

static svs_code libsvm_put_value(struct libsvm_row *r, int64_t index, double value) {
    const struct svi_shape *s = r->shape;
    /* A dense stream and one with fixed names take no further columns; otherwise an index may widen the
     * stream. */
    bool closed = r->m->kind == SVI_DENSE || s->fixed_names;
    /* Each refusal has its own text, from malformed to beyond the limits; the limit guards the writes below.
     */
    if (index < 1)
        return svi_fail(r->err, SVS_BAD_COLUMN, "index %lld: indices count from 1", (long long)index);
    if (index == r->previous)
        return svi_fail(r->err, SVS_DUPLICATE_KEY, "index %lld is a duplicate", (long long)index);
    if (index < r->previous)
        return svi_fail(r->err, SVS_BAD_COLUMN, "index %lld follows %lld: they must ascend", (long long)index,
                        (long long)r->previous);
    if (closed && index > s->d)
        return svi_fail(r->err, SVS_BAD_COLUMN, "index %lld: this stream has %d features", (long long)index,
                        s->d);
    if (index > s->max_features)
        return svi_fail(r->err, SVS_LIMIT,
                        "index %lld, but at most %d features are allowed: raise max.features",
                        (long long)index, s->max_features);
    if (!isfinite(value))
        return svi_fail(r->err, SVS_NOT_FINITE, "index %lld: the value is not finite", (long long)index);
    r->previous = index;
    if (r->state->sparse)
        return libsvm_add_entry(r, (int32_t)index - 1, value);
    /* The columns up to this one become 0 as the row grows, so x needs no clearing beyond the shape's d. */
    svi_message_reach(r->m, (int)index - 1);
    r->m->x[index - 1] = value;
    return SVS_OK;
}

/* Reads the label, unless the first token is a pair; *p moves past it. */
static svs_code libsvm_take_label(const char **p, const char *end, struct svi_message *m, svs_error *err) {
    struct svi_span token = libsvm_token_at(*p, end);
    if (memchr(token.at, ':', (size_t)(token.end - token.at)))
        return SVS_OK;
    double number = 0;
    if (!svi_cell_number(token, &number)) {
        char text[60];
        return svi_fail(err, SVS_BAD_LABEL, "the label \"%s\" is not a number",
                        svi_span_text(token, text, sizeof text));
    }
    *p = token.end;
    return svi_cell_label(token, NULL, &m->y, err);
}

static svs_code libsvm_row(void *state, struct svi_shape *shape, struct svi_span line, struct svi_message *m,
                           svs_error *err) {
    struct libsvm *s = state;
    struct libsvm_row r = {.state = s, .shape = shape, .m = m, .err = err};
    const char *p = libsvm_skip_blanks(line.at, line.end);
    if (p == line.end || *p == '#')
        return SVS_EMPTY;
    m->has_x = true;
    m->kind = r.shape->kind == SVI_DENSE ? SVI_DENSE : SVI_SPARSE;
    m->d = r.shape->d;
    /* Columns that the row does not name are 0, also in a dense stream. A sparse row lists only what it has.
     */
    if (m->d > 0 && !s->sparse)
        memset(m->x, 0, (size_t)m->d * sizeof *m->x);
    svs_code code = libsvm_take_label(&p, line.end, m, err);
    while (p = libsvm_skip_blanks(p, line.end), code == SVS_OK && p < line.end && *p != '#') {
        int64_t index = 0;
        double value = 0;
        const char *q = libsvm_read_pair(p, line.end, &index, &value);
        code = q ? libsvm_put_value(&r, index, value) : libsvm_refuse_pair(p, line.end, err);
        /* After a refusal `code` ends the loop. */
        p = q ? q : p;
    }
    m->column = s->column;
    m->value = s->value;
    return code;
}

static void libsvm_end(void *state) {
    struct libsvm *s = state;
    svi_free(s->column);
    svi_free(s->value);
    svi_free(s);
}

static void *libsvm_begin(const struct svi_reader_options *o, svi_guess *guess, struct svi_span line,
                          svs_error *err) {
    (void)guess, (void)line;
    struct libsvm *s = svi_alloc_plain(sizeof *s);
    if (!s) {
        svi_fail_memory(err, "the reader");
        return NULL;
    }
    s->sparse = o->sparse;
    /* Reserves one entry, so that m->column is not NULL even for an empty row: NULL would mean that x is set.
     */
    if (s->sparse && !(svi_row_reserve((void **)&s->column, &s->columns, 1, sizeof *s->column) &&
                       svi_row_reserve((void **)&s->value, &s->values, 1, sizeof *s->value))) {
        libsvm_end(s);
        svi_fail_memory(err, "the reader");
        return NULL;
    }
    return s;
}

bool svi_libsvm_looks(struct svi_span line) {
    int64_t index;
    double value;
    const char *p = libsvm_skip_blanks(line.at, line.end);
    /* An optional label, then one well-formed pair. */
    const char *q = svi_number(p, &value);
    if (q != p && libsvm_ends_token(q, line.end))
        p = libsvm_skip_blanks(q, line.end);
    return libsvm_read_pair(p, line.end, &index, &value) != NULL;
}

const struct svi_format svi_libsvm = {
    .name = "libsvm", .begin = libsvm_begin, .row = libsvm_row, .end = libsvm_end};
