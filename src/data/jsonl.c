/* JSON lines: samples as on the wire, or flat maps of feature names with columns for label, id, ts and
 * weight. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text.h"
#include "data/cell.h"
#include "data/features.h"
#include "data/json_in.h"
#include "data/number.h"

enum { ROOM_ID, ROOM_Y, ROOM_STREAM, ROOM_SRC, ROOM_COUNT };

struct jsonl {
    const struct svi_reader_options *options;
    struct svi_shape *shape;
    char rooms[ROOM_COUNT][SVS_NAME_MAX]; /* strings of the present row that had escapes */
};

/* The row being read. For error texts: the key whose value is taken, the column in an array (else -1). */
struct row {
    struct jsonl *state;
    struct svi_shape *shape;
    struct svi_message *m;
    svs_error *err;
    struct svi_span key;
    int column;
};

__attribute__((format(printf, 3, 4))) static svs_code refuse(const struct row *r, svs_code code,
                                                             const char *format, ...) {
    char name[80], what[120];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    if (r->column < 0)
        svi_span_text(r->key, name, sizeof name);
    else
        snprintf(name, sizeof name, "x[%d]", r->column);
    return svi_fail(r->err, code, "\"%s\" %s", name, what);
}

static svs_code wrong_type(const struct row *r, const char *value, const char *wanted) {
    return refuse(r, SVS_WRONG_TYPE, "is %s: it must be %s", svi_json_type_name(svi_json_type(value)),
                  wanted);
}

static svs_code take_number(const struct row *r, const char *value, double *number, const char *wanted) {
    enum svi_json_type type = svi_json_type(value);
    if (type != SVI_JSON_NUMBER && type != SVI_JSON_NOT_FINITE)
        return wrong_type(r, value, wanted);
    *number = INFINITY;
    if (type == SVI_JSON_NUMBER)
        svi_number(value, number);
    if (!isfinite(*number))
        return refuse(r, SVS_NOT_FINITE, "is not finite: write null for a missing value");
    return SVS_OK;
}

/* A string of 1 to SVS_NAME_MAX bytes of UTF-8; `too_long` and `malformed` are the codes of other ones. */
static svs_code take_string(const struct row *r, const char *value, int room, svs_value *out,
                            svs_code too_long, svs_code malformed) {
    struct svi_span raw, text;
    svi_json_string_at(value, &raw);
    if (!svi_json_unescape(raw, r->state->rooms[room], SVS_NAME_MAX, &text))
        return refuse(r, too_long, "is a string of more than %d bytes", SVS_NAME_MAX);
    size_t length = (size_t)(text.end - text.at);
    if (length == 0 || !svi_utf8_valid(text.at, length))
        return refuse(r, malformed, "is a string that is empty or not valid UTF-8");
    *out = (svs_value){.kind = SVS_STR, .length = (uint32_t)length, .as.s = text.at};
    return SVS_OK;
}

/* Does the number at `value` have no point and no exponent, and fit? */
static bool is_integer(const char *value, int64_t *i) {
    const char *stop = svi_integer(value, i);
    return stop != value && *stop != '.' && *stop != 'e' && *stop != 'E';
}

static svs_code take_y(struct row *r, const char *value) {
    svs_value *y = &r->m->y;
    enum svi_json_type type = svi_json_type(value);
    int64_t i = 0;
    double number = 0;
    if (type == SVI_JSON_STRING)
        return take_string(r, value, ROOM_Y, y, SVS_TOO_LARGE, SVS_BAD_LABEL);
    if (type == SVI_JSON_TRUE || type == SVI_JSON_FALSE)
        return *y = svs_int(type == SVI_JSON_TRUE), SVS_OK;
    if (type == SVI_JSON_NUMBER && is_integer(value, &i))
        return *y = svs_int(i), SVS_OK;
    svs_code code = take_number(r, value, &number, "a number, a bool or a string");
    if (code == SVS_OK)
        *y = svi_label_number(number);
    return code;
}

static svs_code take_id(struct row *r, const char *value) {
    enum svi_json_type type = svi_json_type(value);
    int64_t i = 0;
    if (type == SVI_JSON_STRING)
        return take_string(r, value, ROOM_ID, &r->m->id, SVS_BAD_ID, SVS_BAD_ID);
    if (type != SVI_JSON_NUMBER || !is_integer(value, &i))
        return refuse(r, SVS_BAD_ID, "is %s: an id is an integer (below 2^63) or a string",
                      svi_json_type_name(type));
    r->m->id = svs_int(i);
    return SVS_OK;
}

static svs_code take_ts(struct row *r, const char *value) {
    return take_number(r, value, &r->m->ts, "a number, seconds since 1970");
}

static svs_code take_w(struct row *r, const char *value) {
    svs_code code = take_number(r, value, &r->m->weight, "a number above 0");
    return code == SVS_OK ? svi_check_weight(r->m->weight, r->err) : code;
}

static svs_code take_name(struct row *r, const char *value, int room, svs_value *out) {
    if (svi_json_type(value) != SVI_JSON_STRING)
        return wrong_type(r, value, "a string");
    return take_string(r, value, room, out, SVS_TOO_LARGE, SVS_WRONG_TYPE);
}

static svs_code take_stream(struct row *r, const char *value) {
    return take_name(r, value, ROOM_STREAM, &r->m->stream);
}

static svs_code take_src(struct row *r, const char *value) {
    return take_name(r, value, ROOM_SRC, &r->m->src);
}

static svs_code take_n(struct row *r, const char *value) {
    if (svi_json_type(value) != SVI_JSON_NUMBER || !is_integer(value, &r->m->n) || r->m->n < 0)
        return wrong_type(r, value, "an integer from 0");
    return SVS_OK;
}

static svs_code take_op(struct row *r, const char *value) {
    static const char *const ops[] = {[SVI_LEARN] = "learn", [SVI_LABEL] = "label", [SVI_FORGET] = "forget"};
    struct svi_span raw;
    char text[40];
    if (svi_json_type(value) != SVI_JSON_STRING)
        return wrong_type(r, value, "a string");
    svi_json_string_at(value, &raw);
    for (int op = 0; op < 3; op++)
        if (svi_span_is(raw, ops[op])) {
            r->m->op = (enum svi_op)op;
            return SVS_OK;
        }
    return svi_fail(r->err, SVS_UNKNOWN_OP, "\"op\" is \"%s\": learn, label and forget are known",
                    svi_span_text(raw, text, sizeof text));
}

/* A value into its column (below max_features): a number, or null when it is missing. */
static svs_code put_value(const struct row *r, int column, const char *value) {
    double *x = &r->m->x[column];
    if (svi_json_type(value) != SVI_JSON_NULL)
        return take_number(r, value, x, "a number, or null when it is missing");
    *x = NAN;
    r->m->missing++;
    return SVS_OK;
}

static svs_code take_array(struct row *r, const char *array) {
    r->m->kind = SVI_DENSE;
    for (const char *p = svi_json_first(array); p; p = svi_json_next(svi_json_skip(p))) {
        r->column = r->m->d;
        if (r->m->d >= r->shape->max_features)
            return svi_fail(r->err, SVS_LIMIT, "x has more than %d features: raise max.features",
                            r->shape->max_features);
        svs_code code = put_value(r, r->m->d, p);
        if (code != SVS_OK)
            return code;
        r->m->d++;
    }
    r->column = -1;
    return SVS_OK;
}

/* A map sets some columns; all others of the stream are 0. */
static svs_code begin_map(struct row *r) {
    struct svi_message *m = r->m;
    m->has_x = true;
    m->kind = SVI_NAMED;
    m->d = r->shape->d;
    svi_shape_begin_row(r->shape);
    svs_code code = svi_shape_fits(r->shape, m, r->err); /* first: a row that is refused adds no names */
    if (code == SVS_OK && m->d > 0)
        memset(m->x, 0, (size_t)m->d * sizeof *m->x);
    return code;
}

/* The column of a name. Names mostly come in the order of their columns: `guess`. Unknown ones become
 * columns; when the names are fixed, *column stays -1. */
static svs_code find_column(const struct row *r, struct svi_span name, int guess, int *column) {
    svs_features *names = r->shape->names;
    size_t length = (size_t)(name.end - name.at);
    *column =
        svi_features_is(names, guess, name.at, length) ? guess : svs_features_find(names, name.at, length);
    if (*column >= 0 || r->shape->fixed_names)
        return SVS_OK;
    svs_error why = {.code = SVS_LIMIT};
    *column = svs_features_add(names, name.at, length, &why);
    return *column >= 0 ? SVS_OK : svi_fail(r->err, why.code, "%s", why.text);
}

static svs_code put_named(struct row *r, int column, const char *value) {
    struct svi_message *m = r->m;
    if (column >= m->d) {
        memset(m->x + m->d, 0, (size_t)(column + 1 - m->d) * sizeof *m->x);
        m->d = column + 1;
    }
    if (!svi_shape_mark(r->shape, column))
        return refuse(r, SVS_DUPLICATE_KEY, "is there twice");
    return put_value(r, column, value);
}

static svs_code take_feature(struct row *r, struct svi_span raw, const char *value, int guess, bool flat) {
    char room[SVS_NAME_MAX];
    struct svi_span name;
    int column = -1;
    r->key = raw;
    if (!svi_json_unescape(raw, room, SVS_NAME_MAX, &name))
        return refuse(r, SVS_BAD_COLUMN, "is too long: a feature name has at most %d bytes", SVS_NAME_MAX);
    svs_code code = find_column(r, name, guess, &column);
    if (code != SVS_OK)
        return code;
    if (column >= 0)
        return put_named(r, column, value);
    /* Fixed names: a flat map may have other columns, as a CSV may; an x may not. */
    if (flat)
        return SVS_OK;
    return refuse(r, SVS_BAD_COLUMN, "is none of the names in the setting `features`");
}

static svs_code take_map(struct row *r, const char *map) {
    svs_code code = begin_map(r);
    int guess = 0;
    const char *p = svi_json_first(map);
    while (p && code == SVS_OK) {
        struct svi_span key;
        const char *value = svi_json_key(p, &key);
        code = take_feature(r, key, value, guess++, false);
        p = svi_json_next(svi_json_skip(value));
    }
    return code;
}

static svs_code take_x(struct row *r, const char *value) {
    r->m->has_x = true;
    switch (svi_json_type(value)) {
    case SVI_JSON_ARRAY:
        return take_array(r, value);
    case SVI_JSON_OBJECT:
        return take_map(r, value);
    default:
        return wrong_type(r, value, "an array of numbers or an object of named ones");
    }
}

struct key {
    const char *name;
    svs_code (*take)(struct row *, const char *value);
};

static const struct key keys[] = {{"x", take_x},           {"y", take_y},     {"id", take_id},
                                  {"ts", take_ts},         {"w", take_w},     {"op", take_op},
                                  {"stream", take_stream}, {"src", take_src}, {"n", take_n}};

#define KEY_COUNT (int)(sizeof keys / sizeof keys[0])

/* A key and its value; null is as if it were not there. `seen`: bits of the keys that were met. */
static svs_code take_key(struct row *r, struct svi_span key, const char *value, unsigned *seen) {
    int k = 0;
    r->key = key;
    while (k < KEY_COUNT && !svi_span_is(key, keys[k].name))
        k++;
    if (k == KEY_COUNT)
        return SVS_OK;
    if (*seen & 1u << k)
        return refuse(r, SVS_DUPLICATE_KEY, "is there twice");
    *seen |= 1u << k;
    return svi_json_type(value) == SVI_JSON_NULL ? SVS_OK : keys[k].take(r, value);
}

static svs_code check_complete(const struct row *r) {
    const struct svi_message *m = r->m;
    if (m->op == SVI_LEARN && !m->has_x)
        return svi_fail(r->err, SVS_MISSING_X, "the sample has no x");
    if (m->op != SVI_LEARN && m->id.kind == SVS_NONE)
        return svi_fail(r->err, SVS_BAD_ID, "%s needs an id", m->op == SVI_LABEL ? "label" : "forget");
    if (m->op == SVI_LABEL && m->y.kind == SVS_NONE)
        return svi_fail(r->err, SVS_BAD_LABEL, "label needs a y");
    return SVS_OK;
}

static svs_code take_sample(struct row *r, const char *object) {
    svs_code code = SVS_OK;
    unsigned seen = 0;
    const char *p = svi_json_first(object);
    while (p && code == SVS_OK) {
        struct svi_span key;
        const char *value = svi_json_key(p, &key);
        code = take_key(r, key, value, &seen);
        p = svi_json_next(svi_json_skip(value));
    }
    return code == SVS_OK ? check_complete(r) : code;
}

/* The column of a flat map that is no feature: its place in the list below, or -1. */
static int column_role(const struct svi_reader_options *o, struct svi_span key) {
    const char *names[] = {o->label ? o->label : "label", o->id, o->ts, o->weight};
    for (int k = 0; k < 4; k++)
        if (names[k] && svi_span_is(key, names[k]))
            return k;
    return -1;
}

static svs_code take_column(struct row *r, int role, const char *value, unsigned *seen) {
    static svs_code (*const take[])(struct row *, const char *) = {take_y, take_id, take_ts, take_w};
    if (*seen & 1u << role)
        return refuse(r, SVS_DUPLICATE_KEY, "is there twice");
    *seen |= 1u << role;
    return svi_json_type(value) == SVI_JSON_NULL ? SVS_OK : take[role](r, value);
}

static svs_code take_flat(struct row *r, const char *object) {
    svs_code code = begin_map(r);
    unsigned seen = 0;
    int guess = 0;
    const char *p = svi_json_first(object);
    while (p && code == SVS_OK) {
        struct svi_span key;
        const char *value = svi_json_key(p, &key);
        int role = column_role(r->state->options, key);
        r->key = key;
        code = role >= 0 ? take_column(r, role, value, &seen) : take_feature(r, key, value, guess++, true);
        p = svi_json_next(svi_json_skip(value));
    }
    return code;
}

/* A sample as on the wire has an x or an op. */
static bool is_sample(const char *object) {
    for (const char *p = svi_json_first(object); p;) {
        struct svi_span key;
        const char *value = svi_json_key(p, &key);
        if (svi_span_is(key, "x") || svi_span_is(key, "op"))
            return true;
        p = svi_json_next(svi_json_skip(value));
    }
    return false;
}

static svs_code jsonl_row(void *state, struct svi_span line, struct svi_message *m, svs_error *err) {
    struct jsonl *j = state;
    struct row r = {.state = j, .shape = j->shape, .m = m, .err = err, .column = -1};
    line = svi_trim(line);
    if (line.at == line.end)
        return SVS_EMPTY;
    svs_code code = svi_json_check(line, err);
    if (code != SVS_OK)
        return code;
    return is_sample(line.at) ? take_sample(&r, line.at) : take_flat(&r, line.at);
}

static void *jsonl_begin(const struct svi_reader_options *o, struct svi_shape *shape, struct svi_span line,
                         svs_error *err) {
    (void)line;
    struct jsonl *j = svi_alloc(sizeof *j);
    if (!j) {
        svi_fail_memory(err, "the JSON reader");
        return NULL;
    }
    j->options = o;
    j->shape = shape;
    return j;
}

const struct svi_format svi_jsonl = {"jsonl", false, jsonl_begin, jsonl_row, svi_free};
