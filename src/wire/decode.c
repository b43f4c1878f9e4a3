/* Decodes the values of one element into a message and the row of the shape.
 *
 * envelope.c has found the values of the known keys. Here each value is checked and stored, in the order of
 * the message, so that the first bad one determines the error. All work is bounded by the bytes of the
 * element, and nothing allocates except a name that is seen for the first time. Arrays of doubles are read
 * four at a time with one test for finiteness; only if it fails is the bad value searched for.
 *
 * x has three forms: an array or packed numbers in the order of the columns (dense), a map of column numbers
 * (sparse) or of names (named). An array becomes a row of names ("listed") if `columns` names its values and
 * it holds words or omits columns. Reading order: decode_take_x and what is above it for features,
 * decode_table for the other keys, svi_envelope_next last. */
#include "wire/decode.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>

#include "base/fail.h"
#include "base/limits.h"
#include "base/text.h"
#include "wire/columns.h"
#include "wire/fields.h"
#include "wire/packed.h"

/* One element while it is decoded. */
struct reading {
    const uint8_t *at; /* after the head of the current value */
    const uint8_t *end;
    struct svi_schema *schema;
    struct svi_shape *shape; /* the schema's */
    struct svi_envelope *env;
    struct svi_message *m;
    svs_error *err;
    bool names_come; /* the message has `columns`, which name the values of arrays */
    bool array;      /* x is an array or packed numbers, to be reordered by `columns` */
    int values;      /* values of a map of names so far: the likely column of the next one */
};

/* ---- features: x */

/* Writes x[3], or x["temp"] in a named sample, for error texts. */
static const char *decode_where(const struct reading *r, int column, char out[100]) {
    const char *name = r->m->kind == SVI_NAMED ? svs_features_name(r->shape->names, column) : NULL;
    char text[80];
    if (name)
        snprintf(out, 100, "x[\"%s\"]", svi_escape(text, sizeof text, name, strlen(name)));
    else
        snprintf(out, 100, "x[%d]", column);
    return out;
}

static svs_code refuse_not_finite(const struct reading *r, const char *where, double v) {
    /* NaN is refused rather than taken as missing: it is mostly the result of a failed computation. */
    const char *what = isnan(v) ? "NaN" : v > 0 ? "infinite" : "minus infinite";
    return svi_fail(r->err, SVS_NOT_FINITE, "%s is %s: send nil (null, None) for a missing value", where,
                    what);
}

static svs_code refuse_number(const struct reading *r, int column, double v) {
    char at[100];
    return refuse_not_finite(r, decode_where(r, column, at), v);
}

static svs_code refuse_type(const struct reading *r, const char *where, const struct svi_item *item) {
    const bool word = item->type == SVI_STRING;
    return svi_fail(r->err, SVS_WRONG_TYPE, "%s is %s: a feature is a number, or nil when it is missing%s",
                    where, svi_item_name(item), word ? "; words need names (a map, or `columns`)" : "");
}

/* Stores a value in its column of a dense or sparse row; nil becomes NaN. */
static svs_code decode_put_value(struct reading *r, int column, const struct svi_item *item) {
    char at[100];
    double v;
    if (item->type == SVI_NIL) {
        r->m->missing++;
        r->m->x[column] = NAN;
        return SVS_OK;
    }
    if (!svi_item_number(item, &v))
        return refuse_type(r, decode_where(r, column, at), item);
    if (!isfinite(v))
        return refuse_number(r, column, v);
    r->m->x[column] = v;
    return SVS_OK;
}

/* Begins a dense row of n values. Its size is checked before any value is written. */
static svs_code begin_dense(struct reading *r, uint32_t n) {
    r->array = true; /* the values are in the order of the message; svi_columns_order sorts them later */
    r->m->kind = r->names_come && r->shape->kind == SVI_NAMED ? SVI_NAMED : SVI_DENSE;
    r->m->d = n < INT_MAX ? (int)n : INT_MAX; /* too many either way: svi_shape_fits refuses it */
    return svi_shape_fits(r->shape, r->m, r->err);
}

/* Loads the double that follows the lead byte at p. Returns its carry, whose top bit is set if it is not
 * finite (packed.h). */
static inline uint64_t take_double(const uint8_t *p, double *out) {
    uint64_t bits = svi_load64(p + 1);
    memcpy(out, &bits, sizeof bits);
    return svi_carry_of(bits);
}

static inline bool four_doubles(const uint8_t *p) {
    const uint8_t lead = SVI_LEAD_DOUBLE;
    return ((p[0] ^ lead) | (p[9] ^ lead) | (p[18] ^ lead) | (p[27] ^ lead)) == 0;
}

/* Reads a run of doubles at p into the columns from *i on, with one branch for four; returns its end. *bad:
 * one of them is not finite. */
static const uint8_t *decode_take_doubles(const uint8_t *p, const uint8_t *end, double *row, int *i, int n,
                                          bool *bad) {
    int column = *i;
    uint64_t carry = 0;
    for (; column + 4 <= n && end - p >= 36 && four_doubles(p); column += 4, p += 36) {
        carry |= take_double(p, &row[column]) | take_double(p + 9, &row[column + 1]);
        carry |= take_double(p + 18, &row[column + 2]) | take_double(p + 27, &row[column + 3]);
    }
    /* The array was walked: while columns are left, p is inside it, and an item of this lead byte is whole.
     */
    for (; column < n && *p == SVI_LEAD_DOUBLE; column++, p += 9)
        carry |= take_double(p, &row[column]);
    *i = column;
    *bad |= carry >> 63;
    return p;
}

/* Reads the same array again, one value at a time, for an error text that names the bad one. */
static svs_code blame_element(struct reading *r, const uint8_t *p) {
    svs_code code = SVS_OK;
    for (int i = 0; code == SVS_OK && i < r->m->d; i++) {
        struct svi_item item;
        p = svi_item_read(p, &item);
        code = decode_put_value(r, i, &item);
    }
    return code;
}

/* Stores a value in a named column, which decides what a number or a word means there. */
static svs_code decode_put_named(struct reading *r, int column, const struct svi_item *item) {
    char at[100];
    double v;
    if (item->type == SVI_NIL)
        return svi_schema_missing(r->schema, r->m, column, r->err);
    if (item->type == SVI_STRING)
        return svi_schema_word(r->schema, r->m, column, (const char *)item->body, item->length, r->err);
    const bool number = svi_item_number(item, &v);
    if (number && isfinite(v))
        return svi_schema_number(r->schema, r->m, column, v, r->err);
    const char *name = svi_schema_column_name(r->schema, column);
    char text[80];
    snprintf(at, sizeof at, "x[\"%s\"]", svi_escape(text, sizeof text, name, strlen(name)));
    return number ? refuse_not_finite(r, at, v) : refuse_type(r, at, item);
}

/* Begins a row of names from an array of `count` values, starting over if a dense row was begun: the names
 * are matched first, because the order of the values is only known from them. */
static svs_code decode_begin_listed(struct reading *r, uint32_t count) {
    /* A list may omit columns only where the policy fills them. */
    const bool part = svi_schema_policy(r->schema, r->m) != SVI_MISSING_REFUSE;
    struct svi_columns *c = r->env->order;
    r->array = false; /* values go to their columns at once: nothing is left to reorder */
    r->m->missing = 0;
    svs_code code = svi_columns_match(c, r->schema, r->env, part, r->err);
    if (code == SVS_OK && count != (uint32_t)c->count)
        code =
            svi_fail(r->err, SVS_WRONG_DIMENSION, "x has %u values, but columns names %d", count, c->count);
    return code == SVS_OK ? svi_schema_begin_row(r->schema, r->m, r->err) : code;
}

static inline double decode_packed_at(const struct svi_item *ext, int i) {
    return ext->ext == SVI_EXT_FLOAT64 ? svi_load_double(ext->body + (size_t)i * 8)
                                       : svi_load_float(ext->body + (size_t)i * 4);
}

/* Reads an array, or `count` packed numbers, as a row of named values. It holds words or omits columns. */
static svs_code decode_take_listed(struct reading *r, const struct svi_item *x, uint32_t count) {
    const struct svi_columns *c = r->env->order;
    svs_code code = decode_begin_listed(r, count);
    r->at = x->body; /* from the first value again, even if a dense row had been begun */
    for (int i = 0; code == SVS_OK && i < c->count; i++) {
        struct svi_item item = {.type = SVI_REAL};
        if (x->type == SVI_EXT)
            item.r = decode_packed_at(x, i);
        else
            r->at = svi_item_read(r->at, &item);
        code = decode_put_named(r, c->place[i], &item);
    }
    if (code == SVS_OK)
        svi_schema_end_row(r->schema, r->m);
    return code;
}

/* Does this value turn an array into a row of names? A word does. So does nil at the start of a stream,
 * because a column of which only a missing value is known may become a column of words. */
static bool decode_asks_for_names(const struct reading *r, const struct svi_item *item) {
    return r->names_come && r->env->order &&
           (item->type == SVI_STRING ||
            (item->type == SVI_NIL && r->m->absent != SVI_MISSING_AUTO && r->shape->kind == SVI_UNSET));
}

/* Is the array a row of names whatever it holds? It is if the schema distinguishes columns from features, or
 * if the array omits columns that the policy fills. */
static bool decode_is_listed(const struct reading *r, uint32_t count) {
    const bool fewer = count < (uint32_t)svi_schema_columns(r->schema) &&
                       svi_schema_policy(r->schema, r->m) != SVI_MISSING_REFUSE;
    return r->names_come && r->env->order && (r->schema->columns || fewer);
}

static svs_code decode_take_array(struct reading *r, const struct svi_item *array) {
    if (decode_is_listed(r, array->length))
        return decode_take_listed(r, array, array->length);
    svs_code code = begin_dense(r, array->length);
    const uint8_t *p = array->body;
    bool bad = false;
    /* Runs of doubles take the fast path; any other value in between is taken alone. */
    for (int i = 0; code == SVS_OK && i < r->m->d;) {
        p = decode_take_doubles(p, r->end, r->m->x, &i, r->m->d, &bad);
        if (i == r->m->d)
            break;
        struct svi_item item;
        p = svi_item_read(p, &item);
        /* The dense row is abandoned: nothing of it has left r->m. */
        if (decode_asks_for_names(r, &item))
            return decode_take_listed(r, array, array->length);
        code = decode_put_value(r, i++, &item);
    }
    /* After the loop: an earlier fault of another kind has its own error already. */
    if (code == SVS_OK && bad)
        return blame_element(r, array->body);
    r->at = p;
    return code;
}

static svs_code take_packed(struct reading *r, const struct svi_item *ext) {
    if (ext->ext != SVI_EXT_FLOAT32 && ext->ext != SVI_EXT_FLOAT64)
        return svi_fail(r->err, SVS_WRONG_TYPE,
                        "x is an extension of type %d: 1 is packed float32, 2 is packed float64", ext->ext);
    uint32_t size = ext->ext == SVI_EXT_FLOAT64 ? 8 : 4;
    if (ext->length % size != 0)
        return svi_fail(r->err, SVS_WRONG_TYPE, "packed x has %u bytes, not a multiple of %u", ext->length,
                        size);
    if (decode_is_listed(r, ext->length / size))
        return decode_take_listed(r, ext, ext->length / size);
    SVI_TRY(begin_dense(r, ext->length / size));
    double *row = r->m->x;
    if (size == 8 ? svi_packed_float64(ext->body, r->m->d, row) : svi_packed_float32(ext->body, r->m->d, row))
        return SVS_OK;
    int i = 0;
    while (isfinite(row[i])) /* ends: one of them is not finite */
        i++;
    return refuse_number(r, i, row[i]);
}

/* Begins a row that a map of column numbers fills: all columns that it does not set are 0. */
static svs_code decode_begin_map(struct reading *r, enum svi_kind kind) {
    r->m->kind = kind;
    r->m->d = r->shape->d;
    SVI_TRY(svi_shape_fits(r->shape, r->m, r->err));
    if (r->m->d > 0) /* the row has no memory before the first column */
        memset(r->m->x, 0, (size_t)r->m->d * sizeof *r->m->x);
    svi_shape_begin_row(r->shape);
    return SVS_OK;
}

/* Stores one column of a sparse row and widens the row if necessary. 0 <= column < max_features. */
static svs_code put_column(struct reading *r, int column, const struct svi_item *item) {
    struct svi_message *m = r->m;
    /* Columns between the old width and this one are 0, like all others that the map does not set. */
    if (column >= m->d) {
        memset(m->x + m->d, 0, (size_t)(column + 1 - m->d) * sizeof *m->x);
        m->d = column + 1;
    }
    if (!svi_shape_mark(r->shape, column)) { /* two values for one column: neither may win silently */
        char at[100];
        return svi_fail(r->err, SVS_DUPLICATE_KEY, "%s is a duplicate", decode_where(r, column, at));
    }
    return decode_put_value(r, column, item);
}

static svs_code wrong_key(const struct reading *r, const struct svi_item *key) {
    const char *others = r->m->kind == SVI_NAMED ? "strings" : "integers";
    return svi_fail(r->err, SVS_WRONG_TYPE,
                    "x is a map with %s among its keys, the others are %s: use one kind", svi_item_name(key),
                    others);
}

/* The column of an integer key. A dense stream, or one with fixed names, cannot get further columns. */
static svs_code column_of(const struct reading *r, const struct svi_item *key, int *column) {
    const struct svi_shape *s = r->shape;
    /* Order of the checks: type, sign, the columns of the stream, the limit of the settings. */
    bool closed = r->m->kind == SVI_DENSE || s->fixed_names;
    if (key->type != SVI_INT && key->type != SVI_HUGE_INT)
        return wrong_key(r, key);
    if (key->type == SVI_INT && key->i < 0)
        return svi_fail(r->err, SVS_BAD_COLUMN, "x has column %lld: columns count from 0", (long long)key->i);
    bool huge = key->type == SVI_HUGE_INT;
    if (closed && (huge || key->i >= s->d))
        return svi_fail(r->err, SVS_BAD_COLUMN, "x has a column above %d: this stream has %d features",
                        s->d - 1, s->d);
    if (huge || key->i >= s->max_features)
        return svi_fail(r->err, SVS_LIMIT, "x has a column above %d: raise max.features",
                        s->max_features - 1);
    *column = (int)key->i;
    return SVS_OK;
}

/* The column of a name. Producers mostly send names in the order of the columns, so `guess`, the place in the
 * map, mostly avoids a search. */
static svs_code name_of(const struct reading *r, const struct svi_item *key, int guess, int *column) {
    if (key->type != SVI_STRING)
        return wrong_key(r, key);
    *column = svi_schema_column(r->schema, r->m, (const char *)key->body, key->length, guess, r->err);
    return *column >= 0 ? SVS_OK : r->err->code;
}

static svs_code refuse_joined(const struct reading *r, const struct svi_item *outer,
                              const struct svi_item *key) {
    char text[2][60];
    return svi_fail(r->err, SVS_BAD_COLUMN,
                    "x has a map under \"%s\", whose key \"%s\" makes a name of more than %d bytes",
                    svi_escape(text[0], sizeof text[0], (const char *)outer->body, outer->length),
                    svi_escape(text[1], sizeof text[1], (const char *)key->body, key->length), SVS_NAME_MAX);
}

/* The kind of the column that has the name of a nested map. Open: there is no such column, so the pairs of
 * the map are columns with joined names. */
static enum svi_column_kind decode_kind(const struct reading *r, const struct svi_item *name) {
    const char *text = (const char *)name->body;
    const int column = svi_schema_find(r->schema, text, name->length, r->values);
    if (svi_schema_ignores(r->schema, text, name->length))
        return SVI_COLUMN_IGNORED;
    return column < 0 ? SVI_COLUMN_OPEN : svi_schema_kind(r->schema, column);
}

static svs_code decode_take_nested(struct reading *r, const struct svi_item *outer, uint32_t pairs);

/* Decodes the value at r->at under its full name. A nested map recurses, bounded by the depth of the message.
 */
static svs_code decode_take_value(struct reading *r, const struct svi_item *name) {
    const uint8_t *past = r->at;
    struct svi_item value;
    int column = -1;
    r->at = svi_item_read(past, &value);
    const bool map = value.type == SVI_MAP && name->type == SVI_STRING;
    const enum svi_column_kind kind = map ? decode_kind(r, name) : SVI_COLUMN_NUMBER;
    if (kind == SVI_COLUMN_OPEN)
        return decode_take_nested(r, name, value.length);
    if (kind == SVI_COLUMN_IGNORED) { /* the whole map is skipped, whatever it holds */
        svi_walk(&past, r->end, SVI_DEPTH_MAX);
        r->at = past;
        return SVS_OK;
    }
    const svs_code code = name_of(r, name, r->values, &column);
    r->values += r->values < INT_MAX; /* a guess only: it may stop counting, but not overflow */
    return code == SVS_OK ? decode_put_named(r, column, &value) : code;
}

/* Decodes the pairs of a map under the name `outer`: the columns outer.key. */
static svs_code decode_take_nested(struct reading *r, const struct svi_item *outer, uint32_t pairs) {
    char text[SVS_NAME_MAX];
    svs_code code = SVS_OK;
    for (uint32_t i = 0; code == SVS_OK && i < pairs; i++) {
        struct svi_item key, name = {.type = SVI_STRING, .body = (const uint8_t *)text};
        r->at = svi_item_read(r->at, &key);
        if (key.type != SVI_STRING)
            return wrong_key(r, &key);
        /* `name` points to `text`, so each level of nesting has a buffer of its own on the stack. */
        name.length = (uint32_t)svi_join_names((const char *)outer->body, outer->length,
                                               (const char *)key.body, key.length, text, sizeof text);
        code = name.length > 0 ? decode_take_value(r, &name) : refuse_joined(r, outer, &key);
    }
    return code;
}

/* A row of names. svi_schema_end_row settles the columns that the map does not name. */
static svs_code decode_take_names(struct reading *r, uint32_t pairs) {
    svs_code code = svi_schema_begin_row(r->schema, r->m, r->err);
    r->values = 0;
    for (uint32_t i = 0; code == SVS_OK && i < pairs; i++) {
        struct svi_item key;
        r->at = svi_item_read(r->at, &key);
        code = decode_take_value(r, &key);
    }
    if (code == SVS_OK)
        svi_schema_end_row(r->schema, r->m);
    return code;
}

static svs_code decode_take_pairs(struct reading *r, uint32_t pairs, enum svi_kind kind) {
    svs_code code = decode_begin_map(r, kind);
    for (uint32_t i = 0; code == SVS_OK && i < pairs; i++) {
        struct svi_item key, value;
        int column = -1;
        const uint8_t *p = svi_item_read(r->at, &key);
        code = column_of(r, &key, &column);
        if (code != SVS_OK)
            break;
        r->at = svi_item_read(p, &value);
        code = put_column(r, column, &value);
    }
    return code;
}

static svs_code decode_take_map(struct reading *r, const struct svi_item *map) {
    const struct svi_shape *s = r->shape;
    struct svi_item key;
    r->at = map->body;
    /* An empty map has no key that shows its kind. If the message states a policy (`missing`) and the columns
     * have names, all of them are missing; otherwise it is a row of zeros of the stream's kind, also a future
     * one. */
    if (map->length == 0 && r->m->absent != SVI_MISSING_AUTO && s->kind != SVI_UNSET &&
        s->kind != SVI_SPARSE && svi_schema_columns(r->schema) > 0)
        return decode_take_names(r, 0);
    if (map->length == 0)
        return decode_begin_map(r, s->kind);
    svi_item_read(map->body, &key);
    if (key.type == SVI_STRING)
        return decode_take_names(r, map->length);
    if (key.type != SVI_INT && key.type != SVI_HUGE_INT)
        return svi_fail(r->err, SVS_WRONG_TYPE,
                        "x is a map whose first key is %s: keys are column numbers or names",
                        svi_item_name(&key));
    return decode_take_pairs(r, map->length, s->kind == SVI_DENSE ? SVI_DENSE : SVI_SPARSE);
}

static svs_code decode_take_x(struct reading *r, const struct svi_item *item) {
    r->m->has_x = true;
    switch (item->type) {
    case SVI_ARRAY:
        return decode_take_array(r, item);
    case SVI_EXT:
        return take_packed(r, item);
    case SVI_MAP:
        return decode_take_map(r, item);
    default:
        return svi_fail(r->err, SVS_WRONG_TYPE,
                        "x is %s: send an array of numbers, packed numbers (ext 1 or 2) or a map",
                        svi_item_name(item));
    }
}

/* ---- the other keys */

static svs_code decode_wrong_type(const struct reading *r, enum svi_key key, const struct svi_item *item,
                                  const char *wanted) {
    return svi_fail(r->err, SVS_WRONG_TYPE, "%s is %s: it must be %s", svi_key_name(key), svi_item_name(item),
                    wanted);
}

static svs_value decode_view(const struct svi_item *item) {
    return (svs_value){.kind = SVS_STR, .length = item->length, .as.s = (const char *)item->body};
}

static bool decode_is_text(const struct svi_item *item) {
    const char *s = (const char *)item->body;
    return item->length > 0 && svi_utf8_valid(s, item->length);
}

static svs_code take_label_text(struct reading *r, const struct svi_item *item) {
    if (item->length > SVS_NAME_MAX)
        return svi_fail(r->err, SVS_TOO_LARGE, "y is a string of %u bytes: a label has at most %d",
                        item->length, SVS_NAME_MAX);
    if (!decode_is_text(item))
        return svi_fail(r->err, SVS_BAD_LABEL, "y is a string that is empty or not valid UTF-8");
    r->m->y = decode_view(item);
    return SVS_OK;
}

/* 1.0 and 1 are one class: integral labels are integers, whatever their type on the wire. */
static svs_code take_label_real(struct reading *r, double y) {
    if (!isfinite(y))
        return svi_fail(r->err, SVS_NOT_FINITE, "y is %s: leave it out if the label is not known",
                        isnan(y) ? "NaN" : "infinite");
    bool integral = y == trunc(y) && fabs(y) <= SVI_EXACT_MAX;
    r->m->y = integral ? svs_int((int64_t)y) : svs_real(y);
    return SVS_OK;
}

static svs_code decode_take_y(struct reading *r, const struct svi_item *item) {
    switch (item->type) {
    case SVI_INT:
    case SVI_BOOL:
        r->m->y = svs_int(item->i);
        return SVS_OK;
    case SVI_REAL:
        return take_label_real(r, item->r);
    case SVI_STRING:
        return take_label_text(r, item);
    case SVI_HUGE_INT:
        return svi_fail(r->err, SVS_BAD_LABEL, "y is an integer above 2^63 - 1");
    default:
        return decode_wrong_type(r, SVI_KEY_Y, item, "a number, a bool or a string");
    }
}

static svs_code decode_take_id(struct reading *r, const struct svi_item *item) {
    if (item->type == SVI_INT) {
        r->m->id = svs_int(item->i);
        return SVS_OK;
    }
    if (item->type != SVI_STRING)
        return svi_fail(r->err, SVS_BAD_ID, "id is %s: it must be an integer (below 2^63) or a string",
                        svi_item_name(item));
    if (item->length > SVS_NAME_MAX)
        return svi_fail(r->err, SVS_BAD_ID, "id is a string of %u bytes: at most %d are allowed",
                        item->length, SVS_NAME_MAX);
    if (!decode_is_text(item))
        return svi_fail(r->err, SVS_BAD_ID, "id is a string that is empty or not valid UTF-8");
    r->m->id = decode_view(item);
    return SVS_OK;
}

static svs_code decode_take_ts(struct reading *r, const struct svi_item *item) {
    if (!svi_item_number(item, &r->m->ts))
        return decode_wrong_type(r, SVI_KEY_TS, item, "a number, seconds since 1970");
    if (!isfinite(r->m->ts))
        return svi_fail(r->err, SVS_NOT_FINITE, "ts is not finite: leave it out if the time is not known");
    return SVS_OK;
}

static svs_code decode_take_w(struct reading *r, const struct svi_item *item) {
    double *w = &r->m->weight; /* 1 unless given */
    if (!svi_item_number(item, w))
        return decode_wrong_type(r, SVI_KEY_W, item, "a number above 0");
    if (!(*w > 0 && isfinite(*w)))
        return svi_fail(r->err, SVS_BAD_WEIGHT, "w is %g: a weight is finite and above 0", *w);
    return SVS_OK;
}

/* Decodes a name: `stream` or `src`. */
static svs_code decode_take_name(struct reading *r, const struct svi_item *item, enum svi_key key,
                                 svs_value *out) {
    if (item->type != SVI_STRING)
        return decode_wrong_type(r, key, item, "a string");
    if (item->length > SVS_NAME_MAX)
        return svi_fail(r->err, SVS_TOO_LARGE, "%s is a string of %u bytes: at most %d are allowed",
                        svi_key_name(key), item->length, SVS_NAME_MAX);
    if (!decode_is_text(item) || memchr(item->body, 0, item->length))
        return svi_fail(r->err, SVS_WRONG_TYPE, "%s is empty or not valid UTF-8 text", svi_key_name(key));
    *out = decode_view(item);
    return SVS_OK;
}

static svs_code decode_take_stream(struct reading *r, const struct svi_item *item) {
    return decode_take_name(r, item, SVI_KEY_STREAM, &r->m->stream);
}

static svs_code decode_take_src(struct reading *r, const struct svi_item *item) {
    return decode_take_name(r, item, SVI_KEY_SRC, &r->m->src);
}

static svs_code decode_take_n(struct reading *r, const struct svi_item *item) {
    double v = -1;
    bool number = svi_item_number(item, &v);
    /* A real counts up to 2^53: beyond it, two sequence numbers could be the same double. */
    bool whole = item->type == SVI_INT || (number && v == trunc(v) && fabs(v) <= SVI_EXACT_MAX);
    if (!whole || v < 0)
        return decode_wrong_type(r, SVI_KEY_N, item, "an integer from 0");
    r->m->n = item->type == SVI_INT ? item->i : (int64_t)v;
    return SVS_OK;
}

static svs_code decode_take_op(struct reading *r, const struct svi_item *item) {
    static const char *const ops[] = {[SVI_LEARN] = "learn", [SVI_LABEL] = "label", [SVI_FORGET] = "forget"};
    char text[40];
    if (item->type != SVI_STRING)
        return decode_wrong_type(r, SVI_KEY_OP, item, "a string");
    for (int op = 0; op < 3; op++)
        if (svi_item_is(item, ops[op])) {
            r->m->op = (enum svi_op)op;
            return SVS_OK;
        }
    if (svi_item_is(item, "message"))
        return svi_fail(r->err, SVS_UNKNOWN_OP, "op message must be the first element of an array");
    return svi_fail(r->err, SVS_UNKNOWN_OP, "op is \"%s\": it must be learn, label or forget",
                    svi_escape(text, sizeof text, (const char *)item->body, item->length));
}

static svs_code decode_take_columns(struct reading *r, const struct svi_item *item) {
    if (item->type != SVI_ARRAY && !(item->type == SVI_BOOL && item->i))
        return decode_wrong_type(r, SVI_KEY_COLUMNS, item, "an array of names");
    return SVS_OK; /* svi_columns_match reads the names */
}

static svs_code decode_take_missing(struct reading *r, const struct svi_item *item) {
    static const struct {
        const char *word;
        enum svi_missing is;
    } words[] = {{"refuse", SVI_MISSING_REFUSE},
                 {"drop", SVI_MISSING_DROP},
                 {"mean", SVI_MISSING_MEAN},
                 {"zero", SVI_MISSING_ZERO}};
    if (item->type == SVI_STRING)
        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
            if (svi_item_is(item, words[i].word)) {
                r->m->absent = words[i].is;
                return SVS_OK;
            }
    return decode_wrong_type(r, SVI_KEY_MISSING, item, "mean, zero, drop or refuse");
}

/* These were read before: `key` to find the model that decodes this element, `reply` and `at` with the
 * message. */
static svs_code decode_take_known(struct reading *r, const struct svi_item *item) {
    (void)r, (void)item;
    return SVS_OK;
}

static svs_code (*const decode_table[SVI_KEY_COUNT])(struct reading *, const struct svi_item *) = {
    [SVI_KEY_X] = decode_take_x,
    [SVI_KEY_Y] = decode_take_y,
    [SVI_KEY_ID] = decode_take_id,
    [SVI_KEY_TS] = decode_take_ts,
    [SVI_KEY_W] = decode_take_w,
    [SVI_KEY_N] = decode_take_n,
    [SVI_KEY_STREAM] = decode_take_stream,
    [SVI_KEY_OP] = decode_take_op,
    [SVI_KEY_SRC] = decode_take_src,
    [SVI_KEY_COLUMNS] = decode_take_columns,
    [SVI_KEY_MISSING] = decode_take_missing,
    [SVI_KEY_KEY] = decode_take_known,
    [SVI_KEY_REPLY] = decode_take_known,
    [SVI_KEY_AT] = decode_take_known,
};

/* Does the message have what its operation needs? `names`: it has `columns`, and may be nothing else. */
static svs_code decode_check_complete(const struct svi_message *m, bool names, svs_error *err) {
    bool has_id = m->id.kind != SVS_NONE, has_y = m->y.kind != SVS_NONE;
    if (m->op == SVI_LEARN && !m->has_x && !names)
        return svi_fail(err, SVS_MISSING_X, "the sample has no x");
    if (m->op != SVI_LEARN && !has_id)
        return svi_fail(err, SVS_BAD_ID, "%s needs an id", m->op == SVI_LABEL ? "label" : "forget");
    if (m->op == SVI_LABEL && !has_y)
        return svi_fail(err, SVS_BAD_LABEL, "label needs a y");
    return SVS_OK;
}

static svs_code refuse_key(const struct reading *r, const struct svi_element *el) {
    struct svi_item key;
    if (el->repeated != SVI_KEY_UNKNOWN)
        return svi_fail(r->err, SVS_DUPLICATE_KEY, "duplicate key %s",
                        svi_key_name((enum svi_key)el->repeated));
    svi_item_read(el->bad_key, &key);
    return svi_fail(r->err, SVS_WRONG_TYPE, "a key of the sample is %s: keys are strings",
                    svi_item_name(&key));
}

static svs_code decode_element(struct reading *r, const struct svi_element *el) {
    struct svi_item item;
    if (!el->is_map) {
        svi_item_read(el->at, &item);
        return svi_fail(r->err, SVS_WRONG_TYPE, "the element is %s: a sample is a map", svi_item_name(&item));
    }
    /* `missing` is read before x, which depends on it, wherever it stands in the map. Its errors are reported
     * in its turn below, so that the first bad value of the message determines the error. */
    if (el->seen >> SVI_KEY_MISSING & 1) {
        svs_error *err = r->err, unused;
        r->err = &unused;
        svi_item_read(el->value[SVI_KEY_MISSING], &item);
        if (item.type != SVI_NIL)
            decode_take_missing(r, &item);
        r->err = err;
    }
    for (int i = 0; i < el->count; i++) {
        r->at = svi_item_read(el->ordered[i], &item);
        svs_code code =
            item.type == SVI_NIL ? SVS_OK : decode_table[el->keys[i]](r, &item); /* nil: as if absent */
        if (code != SVS_OK)
            return code;
    }
    /* `ordered` ends at a bad key, so everything before it was checked. */
    return el->bad_key ? refuse_key(r, el)
                       : decode_check_complete(r->m, el->seen >> SVI_KEY_COLUMNS & 1, r->err);
}

svs_code svi_envelope_next(struct svi_envelope *e, struct svi_schema *schema, struct svi_message *m,
                           svs_error *err) {
    const uint8_t *end = e->bytes + e->size;
    svi_envelope_pass(e); /* first: a refused element is consumed too */
    const struct svi_element *el = &e->first;
    struct reading r = {.end = end,
                        .schema = schema,
                        .shape = &schema->shape,
                        .env = e,
                        .m = m,
                        .err = err,
                        .names_come = e->columns};
    svi_message_begin(m,
                      schema->shape.row); /* x is decoded into the row of the shape, which later stages use */
    svs_code code = decode_element(&r, el);
    e->array = r.array;
    return code;
}
