/* JSON lines: samples as on the wire ({"x": ..., "y": ...}), or flat maps of feature names with columns for
 * label, id, ts and weight.
 *
 * json_in.h checks the line once; after that values are walked where they stand, and nothing here looks at a
 * length. A line with an x or an op is a sample, any other a flat map; both are one walk over the keys of an
 * object (jsonl_each) with a function for each key. Strings without escapes are views of the line, others are
 * unescaped into the state's rooms. null is as if the key were not there, and a missing value as a feature.
 *
 * Order: values by type, the keys of a sample, features and columns, the line. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text.h"
#include "data/cell.h"
#include "data/feature_names.h"
#include "data/json_in.h"
#include "data/reader_internal.h"
#include "data/number.h"

enum { ROOM_ID, ROOM_Y, ROOM_STREAM, ROOM_SRC, ROOM_COUNT };

struct jsonl {
    const struct svi_reader_options *options;
    struct svi_shape *shape;
    char rooms[ROOM_COUNT][SVS_NAME_MAX]; /* strings of the present row that had escapes */
};

/* The row being read. For error texts: the key whose value is taken, the column in an array (else -1). */
struct jsonl_row {
    struct jsonl *state;
    struct svi_shape *shape;
    struct svi_message *m;
    svs_error *err;
    struct svi_span key;
    int column;
    bool flat;     /* no sample as on the wire */
    int guess;     /* the column of the next name: names mostly come in the order of their columns */
    unsigned seen; /* bits of the keys that were met */
};

__attribute__((format(printf, 3, 4))) static svs_code jsonl_refuse(const struct jsonl_row *r, svs_code code,
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

static svs_code jsonl_wrong_type(const struct jsonl_row *r, const char *value, const char *wanted) {
    return jsonl_refuse(r, SVS_WRONG_TYPE, "is %s: it must be %s", svi_json_type_name(svi_json_type(value)),
                        wanted);
}

static svs_code jsonl_take_number(const struct jsonl_row *r, const char *value, double *number,
                                  const char *wanted) {
    enum svi_json_type type = svi_json_type(value);
    if (type != SVI_JSON_NUMBER && type != SVI_JSON_NOT_FINITE)
        return jsonl_wrong_type(r, value, wanted);
    *number = INFINITY;
    if (type == SVI_JSON_NUMBER)
        svi_number(value, number);
    if (!isfinite(*number))
        return jsonl_refuse(r, SVS_NOT_FINITE, "is not finite: write null for a missing value");
    return SVS_OK;
}

/* A string of 1 to SVS_NAME_MAX bytes of UTF-8; `too_long` and `malformed` are the codes of other ones. */
static svs_code jsonl_take_string(const struct jsonl_row *r, const char *value, int room, svs_value *out,
                                  svs_code too_long, svs_code malformed) {
    struct svi_span raw, text;
    svi_json_string_at(value, &raw);
    if (!svi_json_unescape(raw, r->state->rooms[room], SVS_NAME_MAX, &text))
        return jsonl_refuse(r, too_long, "is a string of more than %d bytes", SVS_NAME_MAX);
    size_t length = (size_t)(text.end - text.at);
    if (length == 0 || !svi_utf8_valid(text.at, length))
        return jsonl_refuse(r, malformed, "is a string that is empty or not valid UTF-8");
    *out = (svs_value){.kind = SVS_STR, .length = (uint32_t)length, .as.s = text.at};
    return SVS_OK;
}

/* Does the number at `value` have no point and no exponent, and fit? */
static bool jsonl_is_integer(const char *value, int64_t *i) {
    const char *stop = svi_integer(value, i);
    return stop != value && *stop != '.' && *stop != 'e' && *stop != 'E';
}

static svs_code jsonl_take_y(struct jsonl_row *r, const char *value) {
    svs_value *y = &r->m->y;
    enum svi_json_type type = svi_json_type(value);
    int64_t i = 0;
    double number = 0;
    if (type == SVI_JSON_STRING)
        return jsonl_take_string(r, value, ROOM_Y, y, SVS_TOO_LARGE, SVS_BAD_LABEL);
    if (type == SVI_JSON_TRUE || type == SVI_JSON_FALSE)
        return *y = svs_int(type == SVI_JSON_TRUE), SVS_OK;
    if (type == SVI_JSON_NUMBER && jsonl_is_integer(value, &i))
        return *y = svs_int(i), SVS_OK;
    svs_code code = jsonl_take_number(r, value, &number, "a number, a bool or a string");
    if (code == SVS_OK)
        *y = svi_label_number(number);
    return code;
}

static svs_code jsonl_take_id(struct jsonl_row *r, const char *value) {
    enum svi_json_type type = svi_json_type(value);
    int64_t i = 0;
    if (type == SVI_JSON_STRING)
        return jsonl_take_string(r, value, ROOM_ID, &r->m->id, SVS_BAD_ID, SVS_BAD_ID);
    if (type != SVI_JSON_NUMBER || !jsonl_is_integer(value, &i))
        return jsonl_refuse(r, SVS_BAD_ID, "is %s: an id is an integer (below 2^63) or a string",
                            svi_json_type_name(type));
    r->m->id = svs_int(i);
    return SVS_OK;
}

static svs_code jsonl_take_ts(struct jsonl_row *r, const char *value) {
    return jsonl_take_number(r, value, &r->m->ts, "a number, seconds since 1970");
}

static svs_code jsonl_take_w(struct jsonl_row *r, const char *value) {
    svs_code code = jsonl_take_number(r, value, &r->m->weight, "a number above 0");
    return code == SVS_OK ? svi_check_weight(r->m->weight, r->err) : code;
}

/* Stream or src. */
static svs_code jsonl_take_name(struct jsonl_row *r, const char *value) {
    const bool src = svi_span_is(r->key, "src");
    if (svi_json_type(value) != SVI_JSON_STRING)
        return jsonl_wrong_type(r, value, "a string");
    return jsonl_take_string(r, value, src ? ROOM_SRC : ROOM_STREAM, src ? &r->m->src : &r->m->stream,
                             SVS_TOO_LARGE, SVS_WRONG_TYPE);
}

static svs_code jsonl_take_n(struct jsonl_row *r, const char *value) {
    if (svi_json_type(value) != SVI_JSON_NUMBER || !jsonl_is_integer(value, &r->m->n) || r->m->n < 0)
        return jsonl_wrong_type(r, value, "an integer from 0");
    return SVS_OK;
}

static svs_code jsonl_take_op(struct jsonl_row *r, const char *value) {
    static const char *const ops[] = {[SVI_LEARN] = "learn", [SVI_LABEL] = "label", [SVI_FORGET] = "forget"};
    struct svi_span raw;
    char text[40];
    if (svi_json_type(value) != SVI_JSON_STRING)
        return jsonl_wrong_type(r, value, "a string");
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
static svs_code jsonl_put_value(const struct jsonl_row *r, int column, const char *value) {
    double *x = &r->m->x[column];
    const enum svi_json_type type = svi_json_type(value);
    if (type == SVI_JSON_TRUE || type == SVI_JSON_FALSE) {
        *x = type == SVI_JSON_TRUE;
        return SVS_OK;
    }
    if (type != SVI_JSON_NULL)
        return jsonl_take_number(r, value, x, "a number, true or false, or null when it is missing");
    *x = NAN;
    r->m->missing++;
    return SVS_OK;
}

static svs_code jsonl_take_array(struct jsonl_row *r, const char *array) {
    r->m->kind = SVI_DENSE;
    for (const char *p = svi_json_first(array); p; p = svi_json_next(svi_json_skip(p))) {
        r->column = r->m->d;
        if (r->m->d >= r->shape->max_features)
            return svi_fail(r->err, SVS_LIMIT, "x has more than %d features: raise max.features",
                            r->shape->max_features);
        svs_code code = jsonl_put_value(r, r->m->d, p);
        if (code != SVS_OK)
            return code;
        r->m->d++;
    }
    r->column = -1;
    return SVS_OK;
}

/* A value into the column of its name. Names mostly come in the order of their columns: `guess`. Unknown ones
 * become columns, unless the names are fixed. */
static svs_code jsonl_take_feature(struct jsonl_row *r, const char *value) {
    svs_features *names = r->shape->names;
    const int guess = r->guess++;
    char room[SVS_NAME_MAX];
    struct svi_span name;
    if (!svi_json_unescape(r->key, room, SVS_NAME_MAX, &name))
        return jsonl_refuse(r, SVS_BAD_COLUMN, "is too long: a feature name has at most %d bytes",
                            SVS_NAME_MAX);
    const size_t length = (size_t)(name.end - name.at);
    int column =
        svi_features_is(names, guess, name.at, length) ? guess : svs_features_find(names, name.at, length);
    if (column < 0 && r->shape->fixed_names) /* a flat map may have others, as a CSV may; an x may not */
        return r->flat ? SVS_OK : jsonl_refuse(r, SVS_BAD_COLUMN, "is not a name in the setting `features`");
    svs_error why = {.code = SVS_LIMIT};
    if (column < 0 && (column = svs_features_add(names, name.at, length, &why)) < 0)
        return svi_fail(r->err, why.code, "%s", why.text);
    svi_message_reach(r->m, column);
    if (!svi_shape_mark(r->shape, column))
        return jsonl_refuse(r, SVS_DUPLICATE_KEY, "is a duplicate");
    return jsonl_put_value(r, column, value);
}

/* `take` gets the value of each key of the object, r->key being the key. */
static svs_code jsonl_each(struct jsonl_row *r, const char *object,
                           svs_code (*take)(struct jsonl_row *r, const char *value)) {
    svs_code code = SVS_OK;
    for (const char *p = svi_json_first(object); p && code == SVS_OK;) {
        const char *value = svi_json_key(p, &r->key);
        code = take(r, value);
        p = svi_json_next(svi_json_skip(value));
    }
    return code;
}

/* A map sets some columns; all others of the stream are 0. */
static svs_code jsonl_take_map(struct jsonl_row *r, const char *map,
                               svs_code (*take)(struct jsonl_row *r, const char *value)) {
    struct svi_message *m = r->m;
    m->has_x = true;
    m->kind = SVI_NAMED;
    m->d = r->shape->d;
    svi_shape_begin_row(r->shape);
    svs_code code = svi_shape_fits(r->shape, m, r->err); /* first: a row that is refused adds no names */
    if (code != SVS_OK)
        return code;
    if (m->d > 0)
        memset(m->x, 0, (size_t)m->d * sizeof *m->x);
    return jsonl_each(r, map, take);
}

static svs_code jsonl_take_x(struct jsonl_row *r, const char *value) {
    const enum svi_json_type type = svi_json_type(value);
    r->m->has_x = true;
    if (type == SVI_JSON_OBJECT)
        return jsonl_take_map(r, value, jsonl_take_feature);
    return type == SVI_JSON_ARRAY
               ? jsonl_take_array(r, value)
               : jsonl_wrong_type(r, value, "an array of numbers or an object of named ones");
}

/* A key that has a meaning, number k of its kind: null is as if it were not there. */
static svs_code jsonl_take_once(struct jsonl_row *r, int k, const char *value,
                                svs_code (*take)(struct jsonl_row *, const char *value)) {
    if (r->seen & 1u << k)
        return jsonl_refuse(r, SVS_DUPLICATE_KEY, "is a duplicate");
    r->seen |= 1u << k;
    return svi_json_type(value) == SVI_JSON_NULL ? SVS_OK : take(r, value);
}

static svs_code jsonl_take_key(struct jsonl_row *r, const char *value) {
    static const struct {
        const char *name;
        svs_code (*take)(struct jsonl_row *, const char *value);
    } keys[] = {{"x", jsonl_take_x},         {"y", jsonl_take_y},      {"id", jsonl_take_id},
                {"ts", jsonl_take_ts},       {"w", jsonl_take_w},      {"op", jsonl_take_op},
                {"stream", jsonl_take_name}, {"src", jsonl_take_name}, {"n", jsonl_take_n}};
    for (int k = 0; k < (int)(sizeof keys / sizeof keys[0]); k++)
        if (svi_span_is(r->key, keys[k].name))
            return jsonl_take_once(r, k, value, keys[k].take);
    return SVS_OK;
}

static svs_code jsonl_take_sample(struct jsonl_row *r, const char *object) {
    const struct svi_message *m = r->m;
    svs_code code = jsonl_each(r, object, jsonl_take_key);
    if (code != SVS_OK)
        return code;
    if (m->op == SVI_LEARN && !m->has_x)
        return svi_fail(r->err, SVS_MISSING_X, "the sample has no x");
    if (m->op != SVI_LEARN && m->id.kind == SVS_NONE)
        return svi_fail(r->err, SVS_BAD_ID, "%s needs an id", m->op == SVI_LABEL ? "label" : "forget");
    if (m->op == SVI_LABEL && m->y.kind == SVS_NONE)
        return svi_fail(r->err, SVS_BAD_LABEL, "label needs a y");
    return SVS_OK;
}

/* A flat map: the columns of the options, all others are features. */
static svs_code jsonl_take_column(struct jsonl_row *r, const char *value) {
    static svs_code (*const take[])(struct jsonl_row *, const char *) = {jsonl_take_y, jsonl_take_id,
                                                                         jsonl_take_ts, jsonl_take_w};
    const struct svi_reader_options *o = r->state->options;
    const char *names[] = {o->label ? o->label : "label", o->id, o->ts, o->weight};
    for (int k = 0; k < 4; k++)
        if (names[k] && svi_span_is(r->key, names[k]))
            return jsonl_take_once(r, k, value, take[k]);
    return jsonl_take_feature(r, value);
}

/* A sample as on the wire has an x or an op. */
static bool jsonl_is_sample(const char *object) {
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
    struct jsonl_row r = {.state = j, .shape = j->shape, .m = m, .err = err, .column = -1};
    line = svi_trim(line);
    if (line.at == line.end)
        return SVS_EMPTY;
    svs_code code = svi_json_check(line, err);
    if (code != SVS_OK)
        return code;
    r.flat = !jsonl_is_sample(line.at);
    return r.flat ? jsonl_take_map(&r, line.at, jsonl_take_column) : jsonl_take_sample(&r, line.at);
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

const struct svi_format svi_jsonl = {"jsonl", false, jsonl_begin, jsonl_row, svi_free, NULL};
