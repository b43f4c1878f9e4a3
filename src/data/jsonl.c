/* JSON lines: samples in the form of the wire ({"x": ..., "y": ...}), or flat maps with columns for label,
 * id, ts, weight and key.
 *
 * json_in.h checks the line once; after that values are walked in place, and nothing here looks at a length.
 * A line with an x or an op is a sample, any other a flat map. Both are one walk over the keys of an object
 * (jsonl_each) with one function a key. An array x is a vector; an object x and a flat map are cells; objects
 * inside give further columns, load.cpu. null counts as an absent key, and as a missing value of a feature.
 *
 * Strings without escapes are views of the line. Others, and joined names, are made in memory of the state,
 * which must not move within a row: `strings` is fixed, `text` is reserved once a row (jsonl_reserve).
 *
 * Order: values by type, the keys of a sample, cells, flat maps, the line, the first lines. */
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

#define COLUMNS_MAX 1000000
#define NESTED_BYTES                                                                                         \
    32 /* bytes of `text` a byte of line: a key of 5 bytes may become a name of SVS_NAME_MAX bytes, twice    \
          where it has escapes */

enum { STRING_ID, STRING_Y, STRING_STREAM, STRING_SRC, STRING_KEY, STRING_COUNT };

struct jsonl {
    const struct svi_reader_options *options;
    svi_guess *guess;
    struct svi_missing_words missing;
    svs_features *names;                      /* the columns of the guess, in its order */
    bool flat;                                /* a flat map was among the first lines */
    enum svi_time_unit unit;                  /* of the column of times, once known */
    enum svi_time_order order;                /* of dates in that column */
    char strings[STRING_COUNT][SVS_NAME_MAX]; /* strings of the current row that had escapes */
    struct svi_cell *cells;                   /* of the current row; owned */
    size_t cell_capacity;
    char *text; /* names and words of the current row that had escapes or were joined; owned */
    size_t text_capacity, used;
};

/* The row being read. Error texts name the key whose value is being read, or the index in an array (`column`,
 * else -1). */
struct jsonl_row {
    struct jsonl *state;
    struct svi_shape *shape;
    struct svi_message *m;
    svs_error *err;
    struct svi_span line;
    struct svi_span key;
    struct svi_span inside; /* the name of the enclosing object; empty at the top */
    int column;
    bool flat;     /* a flat map, not a sample in the form of the wire */
    int guess;     /* the probable column of the next name: names mostly follow the order of the columns */
    unsigned seen; /* bits of the keys that were seen */
};

typedef svs_code jsonl_taker(struct jsonl_row *r, const char *value);

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
    /* NaN and Infinity are words here, not numbers, but the error is the same as for an overflow. */
    *number = INFINITY;
    if (type == SVI_JSON_NUMBER)
        svi_number(value, number);
    if (!isfinite(*number))
        return jsonl_refuse(r, SVS_NOT_FINITE, "is not finite: write null for a missing value");
    return SVS_OK;
}

/* Reads a string of 1 to SVS_NAME_MAX bytes of UTF-8; `slot` is its memory if it has escapes. `too_long` and
 * `malformed` are the error codes. */
static svs_code jsonl_take_string(const struct jsonl_row *r, const char *value, int slot, svs_value *out,
                                  svs_code too_long, svs_code malformed) {
    struct svi_span raw, text;
    svi_json_string_at(value, &raw);
    if (!svi_json_unescape(raw, r->state->strings[slot], SVS_NAME_MAX, &text))
        return jsonl_refuse(r, too_long, "is a string of more than %d bytes", SVS_NAME_MAX);
    size_t length = (size_t)(text.end - text.at);
    if (length == 0 || !svi_utf8_valid(text.at, length))
        return jsonl_refuse(r, malformed, "is a string that is empty or not valid UTF-8");
    *out = (svs_value){.kind = SVS_STR, .length = (uint32_t)length, .as.s = text.at};
    return SVS_OK;
}

/* Is the number at `value` an integer that fits, without point and exponent? */
static bool jsonl_is_integer(const char *value, int64_t *i) {
    const char *stop = svi_integer(value, i);
    return stop != value && *stop != '.' && *stop != 'e' && *stop != 'E';
}

/* Is the value a word for a missing value? Only flat maps have those words: the wire's form has null. */
static bool jsonl_is_missing_word(const struct jsonl_row *r, const char *value) {
    const struct svi_missing_words *missing = &r->state->missing;
    const enum svi_json_type type = svi_json_type(value);
    struct svi_span raw;
    if (!r->flat || (type != SVI_JSON_STRING && (type != SVI_JSON_NUMBER || !missing->numbers)))
        return false;
    if (type == SVI_JSON_STRING)
        svi_json_string_at(value, &raw);
    else
        raw = (struct svi_span){value, svi_json_skip(value)};
    return svi_cell_missing(missing, raw);
}

/* Is the value the string None? It is a class here, because JSON has null for a missing label. */
static bool jsonl_is_none(const char *value) {
    struct svi_span raw;
    if (svi_json_type(value) != SVI_JSON_STRING)
        return false;
    svi_json_string_at(value, &raw);
    return svi_cell_none(raw);
}

static svs_code jsonl_take_y(struct jsonl_row *r, const char *value) {
    svs_value *y = &r->m->y;
    enum svi_json_type type = svi_json_type(value);
    int64_t i = 0;
    double number = 0;
    if (!jsonl_is_none(value) && jsonl_is_missing_word(r, value))
        return SVS_OK;
    if (type == SVI_JSON_STRING)
        return jsonl_take_string(r, value, STRING_Y, y, SVS_TOO_LARGE, SVS_BAD_LABEL);
    if (type == SVI_JSON_TRUE || type == SVI_JSON_FALSE)
        return *y = svs_int(type == SVI_JSON_TRUE), SVS_OK;
    /* Integers are read as such: as doubles, classes beyond 2^53 would collide. */
    if (type == SVI_JSON_NUMBER && jsonl_is_integer(value, &i))
        return *y = svs_int(i), SVS_OK;
    SVI_TRY(jsonl_take_number(r, value, &number, "a number, a bool or a string"));
    *y = svi_label_number(number);
    return SVS_OK;
}

static svs_code jsonl_take_id(struct jsonl_row *r, const char *value) {
    enum svi_json_type type = svi_json_type(value);
    int64_t i = 0;
    if (type == SVI_JSON_STRING)
        return jsonl_take_string(r, value, STRING_ID, &r->m->id, SVS_BAD_ID, SVS_BAD_ID);
    if (type != SVI_JSON_NUMBER || !jsonl_is_integer(value, &i))
        return jsonl_refuse(r, SVS_BAD_ID, "is %s: an id is an integer (below 2^63) or a string",
                            svi_json_type_name(type));
    r->m->id = svs_int(i);
    return SVS_OK;
}

/* Reads the key of the sample: a string, or an integer whose digits become the key; an empty string means no
 * key. */
static svs_code jsonl_take_key_of(struct jsonl_row *r, const char *value) {
    const enum svi_json_type type = svi_json_type(value);
    struct svi_span raw;
    int64_t i = 0;
    if (type == SVI_JSON_STRING) {
        svi_json_string_at(value, &raw);
        if (jsonl_is_missing_word(r, value))
            return SVS_OK;
        if (raw.at == raw.end) /* explicitly without a key */
            return r->m->key = svs_str(""), SVS_OK;
        return jsonl_take_string(r, value, STRING_KEY, &r->m->key, SVS_BAD_KEY, SVS_BAD_KEY);
    }
    if (type != SVI_JSON_NUMBER || !jsonl_is_integer(value, &i))
        return jsonl_refuse(r, SVS_BAD_KEY, "is %s: a key is an integer (below 2^63) or a string",
                            svi_json_type_name(type));
    char *digits = r->state->strings[STRING_KEY];
    const int length = snprintf(digits, SVS_NAME_MAX, "%lld", (long long)i);
    r->m->key = (svs_value){.kind = SVS_STR, .length = (uint32_t)length, .as.s = digits};
    return SVS_OK;
}

/* Reads the time: text, or seconds since 1970; in a flat map the size of the numbers decides their unit
 * (j->unit). */
static svs_code jsonl_take_ts(struct jsonl_row *r, const char *value) {
    struct svi_span raw;
    if (jsonl_is_missing_word(r, value))
        return SVS_OK;
    if (svi_json_type(value) == SVI_JSON_STRING) {
        /* Text is read in the format of the settings only in flat maps: the wire knows ISO 8601. */
        svi_json_string_at(value, &raw);
        return svi_cell_time(raw, r->flat ? r->state->options->ts_format : NULL, r->state->order, &r->m->ts)
                   ? SVS_OK
                   : jsonl_refuse(r, SVS_WRONG_TYPE,
                                  "is not a time: it must be seconds since 1970, or 2026-11-22T10:00:00Z");
    }
    SVI_TRY(jsonl_take_number(r, value, &r->m->ts, "seconds since 1970, or 2026-11-22T10:00:00Z"));
    if (r->flat)
        r->m->ts = svi_time_of_number(r->m->ts, &r->state->unit);
    return SVS_OK;
}

static svs_code jsonl_take_w(struct jsonl_row *r, const char *value) {
    svs_code code = jsonl_take_number(r, value, &r->m->weight, "a number above 0");
    return code == SVS_OK ? svi_check_weight(r->m->weight, r->err) : code;
}

/* Reads the key stream or src. */
static svs_code jsonl_take_name(struct jsonl_row *r, const char *value) {
    const bool src = svi_span_is(r->key, "src");
    if (svi_json_type(value) != SVI_JSON_STRING)
        return jsonl_wrong_type(r, value, "a string");
    return jsonl_take_string(r, value, src ? STRING_SRC : STRING_STREAM, src ? &r->m->src : &r->m->stream,
                             SVS_TOO_LARGE, SVS_WRONG_TYPE);
}

static svs_code jsonl_take_n(struct jsonl_row *r, const char *value) {
    if (svi_json_type(value) != SVI_JSON_NUMBER || !jsonl_is_integer(value, &r->m->n) || r->m->n < 0)
        return jsonl_wrong_type(r, value, "an integer from 0");
    return SVS_OK;
}

/* Only the three operations of samples: control commands are not read from files. */
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
    return svi_fail(r->err, SVS_UNKNOWN_OP, "op is \"%s\": it must be learn, label or forget",
                    svi_span_text(raw, text, sizeof text));
}

/* Reads a value of an array into its column (below max_features): a number, a truth value as 1 or 0, or null,
 * which is missing (NAN). */
static svs_code jsonl_put_value(const struct jsonl_row *r, int column, const char *value) {
    double *x = &r->m->x[column];
    const enum svi_json_type type = svi_json_type(value);
    if (type == SVI_JSON_TRUE || type == SVI_JSON_FALSE) {
        *x = type == SVI_JSON_TRUE;
        return SVS_OK;
    }
    if (type != SVI_JSON_NULL)
        return jsonl_take_number(
            r, value, x,
            "a number, true or false, or null when it is missing; words need the names of "
            "their columns");
    *x = NAN;
    r->m->missing++;
    return SVS_OK;
}

static svs_code jsonl_take_array(struct jsonl_row *r, const char *array) {
    r->m->kind = SVI_DENSE;
    for (const char *p = svi_json_first(array); p; p = svi_json_next(svi_json_skip(p))) {
        /* For error texts, which name the index of the value. */
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

/* Reserves `text` once a row, before anything points into it, for the longest case: without inner objects
 * unescaped text is shorter than the line; with them each key may be joined to a full name. */
static bool jsonl_reserve(const struct jsonl_row *r) {
    struct jsonl *j = r->state;
    const size_t whole = (size_t)(r->line.end - r->line.at);
    if (j->used > 0)
        return true;
    const char *brace = memchr(r->line.at + 1, '{', whole - 1);
    if (brace && !r->flat) /* the first brace is that of x */
        brace = memchr(brace + 1, '{', (size_t)(r->line.end - brace) - 1);
    return svi_row_reserve((void **)&j->text, &j->text_capacity,
                           (brace ? NESTED_BYTES : 1) * whole + SVI_NUMBER_PAD, 1);
}

/* A string without its escapes, NUL-terminated so that it can be read as a number. */
static svs_code jsonl_plain_text(const struct jsonl_row *r, struct svi_span raw, struct svi_span *text) {
    struct jsonl *j = r->state;
    const size_t length = (size_t)(raw.end - raw.at);
    *text = raw;
    if (!memchr(raw.at, '\\', length))
        return SVS_OK;
    if (!jsonl_reserve(r))
        return svi_fail_memory(r->err, "a row");
    svi_json_unescape(raw, j->text + j->used, length, text);
    j->used += (size_t)(text->end - text->at);
    j->text[j->used++] = 0; /* within the reserve: an escape is longer than its character */
    return SVS_OK;
}

/* Adds a cell under the current key. The array may move, so m->cells is set each time. */
static svs_code jsonl_add_cell(struct jsonl_row *r, struct svi_cell **cell) {
    struct jsonl *j = r->state;
    struct svi_span name;
    SVI_TRY(jsonl_plain_text(r, r->key, &name));
    const size_t length = (size_t)(name.end - name.at), count = (size_t)r->m->cell_count;
    if (length == 0 || length > SVS_NAME_MAX || !svi_utf8_valid(name.at, length))
        return jsonl_refuse(r, SVS_BAD_COLUMN, "is not a column's name: a name has 1 to %d bytes of UTF-8",
                            SVS_NAME_MAX);
    if (!svi_row_reserve((void **)&j->cells, &j->cell_capacity, count + 1, sizeof *j->cells))
        return svi_fail_memory(r->err, "a row");
    r->m->cells = j->cells;
    *cell = &j->cells[r->m->cell_count++];
    **cell = (struct svi_cell){.name = name.at, .name_length = (uint32_t)length};
    return SVS_OK;
}

static svs_code jsonl_put_word(struct jsonl_row *r, struct svi_cell *cell, struct svi_span word) {
    return svi_cell_word(cell, word) ? SVS_OK
                                     : jsonl_refuse(r, SVS_WRONG_TYPE, "is a string that is not valid UTF-8");
}

/* Reads a string into a cell: missing, a number where the column holds numbers, else a word. In a flat map
 * the missing words count, in a sample only the empty string. */
static svs_code jsonl_put_string(struct jsonl_row *r, struct svi_cell *cell, const char *value,
                                 enum svi_use use) {
    struct svi_span raw, text;
    svi_json_string_at(value, &raw);
    SVI_TRY(jsonl_plain_text(r, raw, &text));
    if (r->flat ? svi_cell_missing(&r->state->missing, text) : text.at == text.end)
        return SVS_OK;
    if (use != SVI_USE_NUMBER)
        return jsonl_put_word(r, cell, text);
    char shown[40];
    if (!svi_cell_number(text, &cell->number) || !isfinite(cell->number))
        return jsonl_refuse(r, SVS_WRONG_TYPE, "is \"%s\", not a number (--categories reads words)",
                            svi_span_text(text, shown, sizeof shown));
    cell->kind = SVI_CELL_NUMBER;
    return SVS_OK;
}

/* Reads the value of the current key into a cell. `use`: a number, a word, or open, where the type of the
 * value decides. */
static svs_code jsonl_put_cell(struct jsonl_row *r, const char *value, enum svi_use use) {
    const enum svi_json_type type = svi_json_type(value);
    struct svi_cell *cell = NULL;
    svs_code code = jsonl_add_cell(r, &cell);
    if (code != SVS_OK)
        return code;
    if (type == SVI_JSON_NULL || (type == SVI_JSON_NOT_FINITE && *value == 'N'))
        return SVS_OK;
    if (type == SVI_JSON_STRING)
        return jsonl_put_string(r, cell, value, use);
    if (r->state->missing.numbers && jsonl_is_missing_word(r, value))
        return SVS_OK;
    /* Anything but null and strings: a truth value, a number, or an error. */
    const bool truth = type == SVI_JSON_TRUE || type == SVI_JSON_FALSE;
    /* A category of codes is written with numbers by some producers: their text is the word. */
    if (use == SVI_USE_WORD && (truth || type == SVI_JSON_NUMBER))
        return jsonl_put_word(r, cell, (struct svi_span){value, svi_json_skip(value)});
    cell->number = type == SVI_JSON_TRUE;
    if (!truth)
        code = jsonl_take_number(r, value, &cell->number,
                                 "a number, a string, true or false, or null when it is missing");
    if (code == SVS_OK)
        cell->kind = SVI_CELL_NUMBER;
    return code;
}

/* Joins object.key into `to`, which has SVS_NAME_MAX bytes. False: the name is longer. */
static bool jsonl_join(struct svi_span object, struct svi_span key, char *to, struct svi_span *name) {
    const size_t length = svi_join_names(object.at, (size_t)(object.end - object.at), key.at,
                                         (size_t)(key.end - key.at), to, SVS_NAME_MAX);
    *name = (struct svi_span){to, to + length};
    return length > 0;
}

/* Calls `take` with the value of each key of the object; r->key is the key. */
static svs_code jsonl_each(struct jsonl_row *r, const char *object, jsonl_taker *take) {
    svs_code code = SVS_OK;
    for (const char *p = svi_json_first(object); p && code == SVS_OK;) {
        const char *value = svi_json_key(p, &r->key);
        code = take(r, value);
        p = svi_json_next(svi_json_skip(value));
    }
    return code;
}

static svs_code jsonl_take_object(struct jsonl_row *r, const char *object);

/* Reads a key of x: a nested object gives further columns. */
static svs_code jsonl_take_cell(struct jsonl_row *r, const char *value) {
    return svi_json_type(value) == SVI_JSON_OBJECT ? jsonl_take_object(r, value)
                                                   : jsonl_put_cell(r, value, SVI_USE_OPEN);
}

/* Reads a map as cells, by `take`; absent columns and nulls ask for the mean. */
static svs_code jsonl_take_map(struct jsonl_row *r, const char *map, jsonl_taker *take) {
    struct jsonl *j = r->state;
    r->m->has_x = true;
    r->m->kind = SVI_NAMED;
    r->m->absent = SVI_MISSING_MEAN;
    if (!svi_row_reserve((void **)&j->cells, &j->cell_capacity, 1, sizeof *j->cells))
        return svi_fail_memory(r->err, "a row");
    r->m->cells = j->cells; /* not NULL even for an empty map: NULL means that x is a vector */
    return jsonl_each(r, map, take);
}

static svs_code jsonl_take_x(struct jsonl_row *r, const char *value) {
    const enum svi_json_type type = svi_json_type(value);
    r->m->has_x = true;
    if (type == SVI_JSON_OBJECT) {
        /* The walk over x changes r->key; the caller's error texts need the outer one. */
        const struct svi_span key = r->key;
        svs_code code = jsonl_take_map(r, value, jsonl_take_cell);
        if (code == SVS_OK)
            r->key = key;
        return code;
    }
    if (type == SVI_JSON_ARRAY)
        r->m->absent = SVI_MISSING_MEAN;
    return type == SVI_JSON_ARRAY
               ? jsonl_take_array(r, value)
               : jsonl_wrong_type(r, value, "an array of numbers or an object of named ones");
}

/* Reads a key that may appear once; `k` is its bit in `seen`. null counts as an absent key. */
static svs_code jsonl_take_once(struct jsonl_row *r, int k, const char *value, jsonl_taker *take) {
    if (r->seen & 1u << k)
        return jsonl_refuse(r, SVS_DUPLICATE_KEY, "is a duplicate");
    r->seen |= 1u << k;
    return svi_json_type(value) == SVI_JSON_NULL ? SVS_OK : take(r, value);
}

static svs_code jsonl_take_key(struct jsonl_row *r, const char *value) {
    static const struct {
        const char *name;
        jsonl_taker *take;
    } keys[] = {{"x", jsonl_take_x},         {"y", jsonl_take_y},      {"id", jsonl_take_id},
                {"ts", jsonl_take_ts},       {"w", jsonl_take_w},      {"op", jsonl_take_op},
                {"stream", jsonl_take_name}, {"src", jsonl_take_name}, {"n", jsonl_take_n},
                {"key", jsonl_take_key_of}};
    for (int k = 0; k < (int)(sizeof keys / sizeof keys[0]); k++)
        if (svi_span_is(r->key, keys[k].name))
            return jsonl_take_once(r, k, value, keys[k].take);
    return SVS_OK;
}

static svs_code jsonl_take_sample(struct jsonl_row *r, const char *object) {
    const struct svi_message *m = r->m;
    SVI_TRY(jsonl_each(r, object, jsonl_take_key));
    /* After all keys, because their order is free. */
    if (m->op == SVI_LEARN && !m->has_x)
        return svi_fail(r->err, SVS_MISSING_X, "the sample has no x");
    if (m->op != SVI_LEARN && m->id.kind == SVS_NONE)
        return svi_fail(r->err, SVS_BAD_ID, "%s needs an id", m->op == SVI_LABEL ? "label" : "forget");
    if (m->op == SVI_LABEL && m->y.kind == SVS_NONE)
        return svi_fail(r->err, SVS_BAD_LABEL, "label needs a y");
    return SVS_OK;
}

/* The use of the current key's column: by the guess, or, where the key is new since then, by settings and
 * stream. */
static enum svi_use jsonl_use(struct jsonl_row *r) {
    const struct jsonl *j = r->state;
    const size_t length = (size_t)(r->key.end - r->key.at);
    /* Rows mostly have the same keys in the same order, so the next column is tried before a lookup. */
    const int guess = r->guess++;
    const int column = svi_feature_names_is(j->names, guess, r->key.at, length)
                           ? guess
                           : svs_features_find(j->names, r->key.at, length);
    if (column < 0)
        return svi_guess_late(j->guess, r->key);
    r->guess = column + 1;
    return svi_guess_of(j->guess, column)->use;
}

static svs_code jsonl_take_column(struct jsonl_row *r, const char *value);

/* Reads a key of a nested object under its joined name. In a flat map a name that would be too long is
 * ignored, as the line about the columns states; in a sample it is refused. */
static svs_code jsonl_take_inner(struct jsonl_row *r, const char *value) {
    struct jsonl *j = r->state;
    struct svi_span name;
    if (!jsonl_reserve(r))
        return svi_fail_memory(r->err, "a row");
    if (!jsonl_join(r->inside, r->key, j->text + j->used, &name))
        return r->flat ? SVS_OK
                       : jsonl_refuse(r, SVS_BAD_COLUMN,
                                      "has, with the name of its object, more than %d bytes", SVS_NAME_MAX);
    r->key = name;
    /* The name stays in `text`: cells point to it until the row is done. */
    j->used += (size_t)(name.end - name.at);
    return r->flat ? jsonl_take_column(r, value) : jsonl_take_cell(r, value);
}

static svs_code jsonl_take_object(struct jsonl_row *r, const char *object) {
    /* Nested objects restore the enclosing name; svi_json_check has bounded the depth of this recursion. */
    const struct svi_span outer = r->inside;
    if (svi_span_listed(r->key, r->state->options->ignore))
        return SVS_OK;
    r->inside = r->key;
    svs_code code = jsonl_each(r, object, jsonl_take_inner);
    r->inside = outer;
    return code;
}

/* Reads a key of a flat map by the use of its column. An object under an open or unused name is a set of
 * further columns, which have uses of their own. */
static svs_code jsonl_take_column(struct jsonl_row *r, const char *value) {
    static jsonl_taker *const take[] = {
        [SVI_USE_LABEL] = jsonl_take_y,  [SVI_USE_ID] = jsonl_take_id,      [SVI_USE_TIME] = jsonl_take_ts,
        [SVI_USE_WEIGHT] = jsonl_take_w, [SVI_USE_KEY] = jsonl_take_key_of,
    };
    const enum svi_use use = jsonl_use(r);
    if ((use == SVI_USE_OPEN || use == SVI_USE_NONE) && svi_json_type(value) == SVI_JSON_OBJECT)
        return jsonl_take_object(r, value);
    if (use == SVI_USE_NONE)
        return SVS_OK;
    return use <= SVI_USE_WORD ? jsonl_put_cell(r, value, use) : jsonl_take_once(r, use, value, take[use]);
}

/* Is the line a sample in the form of the wire? It has an x or an op. */
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

static svs_code jsonl_row(void *state, struct svi_shape *shape, struct svi_span line, struct svi_message *m,
                          svs_error *err) {
    struct jsonl *j = state;
    line = svi_trim(line);
    struct jsonl_row r = {.state = j, .shape = shape, .m = m, .err = err, .line = line, .column = -1};
    if (line.at == line.end)
        return SVS_EMPTY;
    /* One check of the whole line; nothing after it compares with an end. */
    SVI_TRY(svi_json_check(line, err));
    j->used = 0;
    r.flat = !jsonl_is_sample(line.at);
    return r.flat ? jsonl_take_map(&r, line.at, jsonl_take_column) : jsonl_take_sample(&r, line.at);
}

/* ---- the first lines */

static void jsonl_end(void *state) {
    struct jsonl *j = state;
    svs_features_free(&j->names);
    svi_free(j->cells);
    svi_free(j->text);
    svi_free(j);
}

static void *jsonl_begin(const struct svi_reader_options *o, svi_guess *guess, struct svi_span line,
                         svs_error *err) {
    (void)line;
    struct jsonl *j = svi_alloc(sizeof *j);
    if (!j) {
        svi_fail_memory(err, "the JSON reader");
        return NULL;
    }
    j->options = o;
    svi_missing_words_init(&j->missing, o->missing);
    j->guess = guess;
    /* The registry gives the guess's columns by name; it is freed by jsonl_end like the rest. */
    j->names = svs_features_new(COLUMNS_MAX, err);
    if (j->names)
        return j;
    jsonl_end(j);
    return NULL;
}

static svs_code jsonl_sample_object(struct jsonl *j, struct svi_span inside, const char *object,
                                    svs_error *err);

/* Gives the value of a column to the guess. Objects recurse; their inner keys are columns. */
static svs_code jsonl_sample_value(struct jsonl *j, struct svi_span key, const char *value, svs_error *err) {
    const int before = svs_features_count(j->names);
    const enum svi_json_type type = svi_json_type(value);
    svs_error why = {0};
    if (type == SVI_JSON_OBJECT && svi_json_first(value) && !svi_span_listed(key, j->options->ignore))
        return jsonl_sample_object(j, key, value, err);
    struct svi_span text = {value, svi_json_skip(value)};
    const int column = svs_features_add(j->names, key.at, (size_t)(key.end - key.at), &why);
    svs_code code = column == before ? svi_guess_column(j->guess, key, err) : SVS_OK;
    if (column < 0) /* not a name: its row will be refused */
        return why.code == SVS_NO_MEMORY ? svi_fail_memory(err, "the columns of a file") : SVS_OK;
    if (code != SVS_OK || type == SVI_JSON_NULL)
        return code;
    if (type == SVI_JSON_ARRAY || type == SVI_JSON_OBJECT)
        return svi_guess_nested(j->guess, column), SVS_OK;
    if (type == SVI_JSON_STRING)
        svi_json_string_at(value, &text);
    /* Truth values count as 1 and 0; the digits are padded as the guess requires. */
    if (type == SVI_JSON_TRUE || type == SVI_JSON_FALSE) {
        static const char digits[2][SVI_NUMBER_PAD] = {"0", "1"};
        text.at = digits[type == SVI_JSON_TRUE];
        text.end = text.at + 1;
    }
    return svi_guess_value(j->guess, column, text, err);
}

/* Samples all keys of an object; `inside`: its name, empty for the line itself. */
static svs_code jsonl_sample_object(struct jsonl *j, struct svi_span inside, const char *object,
                                    svs_error *err) {
    svs_code code = SVS_OK;
    for (const char *p = svi_json_first(object); p && code == SVS_OK;) {
        char joined[SVS_NAME_MAX];
        struct svi_span key, name;
        const char *value = svi_json_key(p, &key);
        /* A name that would be too long marks the object as a column without single values. */
        if (inside.at == inside.end)
            code = jsonl_sample_value(j, key, value, err);
        else if (jsonl_join(inside, key, joined, &name))
            code = jsonl_sample_value(j, name, value, err);
        else
            code = jsonl_sample_value(j, inside, "[]", err);
        p = svi_json_next(svi_json_skip(value));
    }
    return code;
}

static svs_code jsonl_sample(void *state, struct svi_span line, bool *enough, svs_error *err) {
    struct jsonl *j = state;
    svs_code code = SVS_OK;
    line = svi_trim(line);
    *enough = false;
    /* A malformed line is refused later, as a row with its number. */
    if (line.at == line.end || svi_json_check(line, NULL) != SVS_OK)
        return SVS_OK;
    /* A sample in the form of the wire has no columns to guess. */
    if (jsonl_is_sample(line.at)) {
        *enough = true;
        return SVS_OK;
    }
    code = jsonl_sample_object(j, (struct svi_span){line.at, line.at}, line.at, err);
    svi_guess_row(j->guess);
    /* From one flat map on there are columns to decide. */
    j->flat = true;
    return code;
}

static svs_code jsonl_decide(void *state, bool whole, svs_error *err) {
    struct jsonl *j = state;
    if (!j->flat)
        return SVS_OK;
    svs_code code = svi_guess_decide(j->guess, whole, NULL, err);
    /* Of the columns only the unit and order of times are needed later; uses are looked up a key. */
    for (int i = 0; i < svs_features_count(j->names); i++)
        if (svi_guess_of(j->guess, i)->use == SVI_USE_TIME)
            j->unit = svi_guess_of(j->guess, i)->unit, j->order = svi_guess_of(j->guess, i)->order;
    return code;
}

const struct svi_format svi_jsonl = {.name = "jsonl",
                                     .begin = jsonl_begin,
                                     .sample = jsonl_sample,
                                     .decide = jsonl_decide,
                                     .row = jsonl_row,
                                     .end = jsonl_end};
