/* LIBSVM: `label index:value index:value ... # comment`, indices from 1, ascending. */
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "data/cell.h"
#include "data/number.h"

static const char *skip_blanks(const char *p, const char *end) {
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\r'))
        p++;
    return p;
}

static bool ends_token(const char *p, const char *end) {
    return p == end || *p == ' ' || *p == '\t' || *p == '\r' || *p == '#';
}

static struct svi_span token_at(const char *p, const char *end) {
    const char *q = p;
    while (!ends_token(q, end))
        q++;
    return (struct svi_span){p, q};
}

/* index:value. Returns what follows, NULL when it is something else. */
static const char *read_pair(const char *p, const char *end, int64_t *index, double *value) {
    const char *colon = svi_integer(p, index);
    if (colon == p || *colon != ':')
        return NULL;
    const char *q = svi_number(colon + 1, value);
    return q != colon + 1 && ends_token(q, end) ? q : NULL;
}

static svs_code refuse_pair(const char *p, const char *end, svs_error *err) {
    char text[60];
    struct svi_span token = token_at(p, end);
    const char *colon = memchr(token.at, ':', (size_t)(token.end - token.at));
    svi_span_text(token, text, sizeof text);
    struct svi_span value = {colon ? colon + 1 : token.end, token.end};
    if (svi_cell_infinite(value) || (value.at < value.end && svi_cell_missing(value) && *value.at != '?'))
        return svi_fail(err, SVS_NOT_FINITE, "\"%s\": the value is not finite", text);
    return svi_fail(err, SVS_WRONG_TYPE, "\"%s\" is not index:value", text);
}

/* The line being read. */
struct row {
    struct svi_shape *shape;
    struct svi_message *m;
    svs_error *err;
    int64_t previous; /* index of the pair before, 0 at first */
};

static svs_code check_index(const struct row *r, int64_t index) {
    const struct svi_shape *s = r->shape;
    bool closed = r->m->kind == SVI_DENSE || s->fixed_names;
    if (index < 1)
        return svi_fail(r->err, SVS_BAD_COLUMN, "index %lld: indices count from 1", (long long)index);
    if (index == r->previous)
        return svi_fail(r->err, SVS_DUPLICATE_KEY, "index %lld is there twice", (long long)index);
    if (index < r->previous)
        return svi_fail(r->err, SVS_BAD_COLUMN, "index %lld follows %lld: they must ascend", (long long)index,
                        (long long)r->previous);
    if (closed && index > s->d)
        return svi_fail(r->err, SVS_BAD_COLUMN, "index %lld: this stream has %d features", (long long)index,
                        s->d);
    if (index > s->max_features)
        return svi_fail(r->err, SVS_LIMIT,
                        "index %lld, but at most %d features are taken: raise max.features", (long long)index,
                        s->max_features);
    return SVS_OK;
}

static svs_code put_value(struct row *r, int64_t index, double value) {
    svs_code code = check_index(r, index);
    if (code != SVS_OK)
        return code;
    if (!isfinite(value))
        return svi_fail(r->err, SVS_NOT_FINITE, "index %lld: the value is not finite", (long long)index);
    struct svi_message *m = r->m;
    int column = (int)index - 1;
    if (column >= m->d) {
        memset(m->x + m->d, 0, (size_t)(column + 1 - m->d) * sizeof *m->x);
        m->d = column + 1;
    }
    m->x[column] = value;
    r->previous = index;
    return SVS_OK;
}

static svs_code take_pairs(struct row *r, const char *p, const char *end) {
    while (p = skip_blanks(p, end), p < end && *p != '#') {
        int64_t index = 0;
        double value = 0;
        const char *q = read_pair(p, end, &index, &value);
        svs_code code = q ? put_value(r, index, value) : refuse_pair(p, end, r->err);
        if (code != SVS_OK)
            return code;
        p = q;
    }
    return SVS_OK;
}

/* The first token is the label unless it is a pair. *p moves behind it. */
static svs_code take_label(const char **p, const char *end, struct svi_message *m, svs_error *err) {
    struct svi_span token = token_at(*p, end);
    if (memchr(token.at, ':', (size_t)(token.end - token.at)))
        return SVS_OK;
    double number = 0;
    if (!svi_cell_number(token, &number)) {
        char text[60];
        return svi_fail(err, SVS_BAD_LABEL, "the label \"%s\" is not a number",
                        svi_span_text(token, text, sizeof text));
    }
    *p = token.end;
    return svi_cell_label(token, &m->y, err);
}

static svs_code libsvm_row(void *state, struct svi_span line, struct svi_message *m, svs_error *err) {
    struct row r = {.shape = state, .m = m, .err = err};
    const char *p = skip_blanks(line.at, line.end);
    if (p == line.end || *p == '#')
        return SVS_EMPTY;
    m->has_x = true;
    m->kind = r.shape->kind == SVI_DENSE ? SVI_DENSE : SVI_SPARSE;
    m->d = r.shape->d;
    if (m->d > 0)
        memset(m->x, 0, (size_t)m->d * sizeof *m->x);
    svs_code code = take_label(&p, line.end, m, err);
    return code == SVS_OK ? take_pairs(&r, p, line.end) : code;
}

static void *libsvm_begin(const struct svi_reader_options *o, struct svi_shape *shape, struct svi_span line,
                          svs_error *err) {
    (void)o, (void)line, (void)err;
    return shape;
}

static void libsvm_end(void *state) {
    (void)state; /* the shape is the caller's */
}

bool svi_libsvm_looks(struct svi_span line) {
    int64_t index;
    double value;
    const char *p = skip_blanks(line.at, line.end);
    const char *q = svi_number(p, &value);
    if (q != p && ends_token(q, line.end))
        p = skip_blanks(q, line.end);
    return read_pair(p, line.end, &index, &value) != NULL;
}

const struct svi_format svi_libsvm = {"libsvm", false, libsvm_begin, libsvm_row, libsvm_end};
