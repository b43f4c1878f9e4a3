#include "wire/features_in.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>

#include "base/fail.h"
#include "data/features.h"

#define EXT_FLOAT32 1
#define EXT_FLOAT64 2

/* The exponent bits of a double: all set in NaN and the infinities alone. */
#define EXPONENT 0x7ff0000000000000u

static bool not_finite(uint64_t bits) {
    return (bits & EXPONENT) == EXPONENT;
}

/* x[3], or x["temp"] in a named sample. */
static const char *where(const struct svi_reading *r, int column, char out[100]) {
    const char *name = r->m->kind == SVI_NAMED ? svs_features_name(r->shape->names, column) : NULL;
    char text[80];
    if (name)
        snprintf(out, 100, "x[\"%s\"]", svi_escape(text, sizeof text, name, strlen(name)));
    else
        snprintf(out, 100, "x[%d]", column);
    return out;
}

static svs_code refuse_number(const struct svi_reading *r, int column, double v) {
    char at[100];
    const char *what = isnan(v) ? "NaN" : v > 0 ? "infinite" : "minus infinite";
    return svi_fail(r->err, SVS_NOT_FINITE, "%s is %s: send nil for a missing value", where(r, column, at),
                    what);
}

/* Any single value into its column. */
static svs_code put_value(struct svi_reading *r, int column, const struct svi_item *item) {
    char at[100];
    double v;
    if (item->type == SVI_NIL) {
        r->m->missing++;
        r->m->x[column] = NAN;
        return SVS_OK;
    }
    if (!svi_item_number(item, &v))
        return svi_fail(r->err, SVS_WRONG_TYPE, "%s is %s: a feature is a number, or nil when it is missing",
                        where(r, column, at), svi_item_name(item));
    if (!isfinite(v))
        return refuse_number(r, column, v);
    r->m->x[column] = v;
    return SVS_OK;
}

/* Does a dense row of n values fit, before any is written? */
static svs_code begin_dense(struct svi_reading *r, uint32_t n) {
    r->m->kind = SVI_DENSE;
    r->m->d = n < INT_MAX ? (int)n : INT_MAX;
    return svi_shape_fits(r->shape, r->m, r->err);
}

/* The double behind a lead byte at p, its bytes turned; returns its exponent. */
static inline uint64_t take_double(const uint8_t *p, double *out) {
    uint64_t bits = svi_load64(p + 1);
    memcpy(out, &bits, sizeof bits);
    return bits & EXPONENT;
}

static inline bool four_doubles(const uint8_t *p) {
    const uint8_t lead = SVI_LEAD_DOUBLE;
    return ((p[0] ^ lead) | (p[9] ^ lead) | (p[18] ^ lead) | (p[27] ^ lead)) == 0;
}

/* A run of doubles at p, from column *i on, with one branch for four; returns where it ends. *bad: one is not
 * finite. */
static const uint8_t *take_doubles(const uint8_t *p, const uint8_t *end, double *row, int *i, int n,
                                   bool *bad) {
    int column = *i;
    bool wild = false;
    for (; column + 4 <= n && end - p >= 36 && four_doubles(p); column += 4, p += 36) {
        uint64_t a = take_double(p, &row[column]), b = take_double(p + 9, &row[column + 1]);
        uint64_t c = take_double(p + 18, &row[column + 2]), d = take_double(p + 27, &row[column + 3]);
        wild |= (a == EXPONENT) | (b == EXPONENT) | (c == EXPONENT) | (d == EXPONENT);
    }
    for (; column < n && *p == SVI_LEAD_DOUBLE; column++, p += 9)
        wild |= take_double(p, &row[column]) == EXPONENT;
    *i = column;
    *bad |= wild;
    return p;
}

/* The same array once more, one value at a time, for the text that names the culprit. */
static svs_code blame_element(struct svi_reading *r, const uint8_t *p) {
    svs_code code = SVS_OK;
    for (int i = 0; code == SVS_OK && i < r->m->d; i++) {
        struct svi_item item;
        p = svi_item_read(p, &item);
        code = put_value(r, i, &item);
    }
    return code;
}

static svs_code take_array(struct svi_reading *r, const struct svi_item *array) {
    svs_code code = begin_dense(r, array->length);
    const uint8_t *p = array->body;
    bool bad = false;
    for (int i = 0; code == SVS_OK && i < r->m->d;) {
        p = take_doubles(p, r->end, r->m->x, &i, r->m->d, &bad);
        if (i == r->m->d)
            break;
        struct svi_item item;
        p = svi_item_read(p, &item);
        code = put_value(r, i++, &item);
    }
    if (code == SVS_OK && bad)
        return blame_element(r, array->body);
    r->at = p;
    return code;
}

static double packed_double(const uint8_t *p) {
    uint64_t bits;
    double v;
    memcpy(&bits, p, sizeof bits);
    bits = le64toh(bits);
    memcpy(&v, &bits, sizeof v);
    return v;
}

static double packed_float(const uint8_t *p) {
    uint32_t bits;
    float v;
    memcpy(&bits, p, sizeof bits);
    bits = le32toh(bits);
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* True if all of them are finite. */
static bool unpack_doubles(const uint8_t *p, double *row, int n) {
    bool bad = false;
    for (int i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, p + 8 * (size_t)i, sizeof bits);
        bits = le64toh(bits);
        memcpy(&row[i], &bits, sizeof bits);
        bad |= not_finite(bits);
    }
    return !bad;
}

static bool unpack_floats(const uint8_t *p, double *row, int n) {
    bool bad = false;
    for (int i = 0; i < n; i++) {
        row[i] = packed_float(p + 4 * (size_t)i);
        bad |= !isfinite(row[i]);
    }
    return !bad;
}

static svs_code blame_packed(struct svi_reading *r, const struct svi_item *ext, uint32_t size) {
    for (int i = 0; i < r->m->d; i++) {
        const uint8_t *p = ext->body + (size_t)i * size;
        double v = size == 8 ? packed_double(p) : packed_float(p);
        if (!isfinite(v))
            return refuse_number(r, i, v);
    }
    return SVS_OK;
}

static svs_code take_packed(struct svi_reading *r, const struct svi_item *ext) {
    if (ext->ext != EXT_FLOAT32 && ext->ext != EXT_FLOAT64)
        return svi_fail(r->err, SVS_WRONG_TYPE,
                        "x is an extension of type %d: 1 is packed float32, 2 is packed float64", ext->ext);
    uint32_t size = ext->ext == EXT_FLOAT64 ? 8 : 4;
    if (ext->length % size != 0)
        return svi_fail(r->err, SVS_WRONG_TYPE, "packed x has %u bytes, not a multiple of %u", ext->length,
                        size);
    svs_code code = begin_dense(r, ext->length / size);
    if (code != SVS_OK)
        return code;
    bool good =
        size == 8 ? unpack_doubles(ext->body, r->m->x, r->m->d) : unpack_floats(ext->body, r->m->x, r->m->d);
    return good ? SVS_OK : blame_packed(r, ext, size);
}

/* A map sets some columns; all others of the stream are 0. */
static svs_code begin_map(struct svi_reading *r, enum svi_kind kind) {
    r->m->kind = kind;
    r->m->d = r->shape->d;
    svs_code code = svi_shape_fits(r->shape, r->m, r->err);
    if (code != SVS_OK)
        return code;
    if (r->m->d > 0)
        memset(r->m->x, 0, (size_t)r->m->d * sizeof *r->m->x);
    svi_shape_begin_row(r->shape);
    return SVS_OK;
}

/* One column of a map, which widens the row if it lies beyond it. 0 <= column < max_features. */
static svs_code put_column(struct svi_reading *r, int column, const struct svi_item *item) {
    struct svi_message *m = r->m;
    if (column >= m->d) {
        memset(m->x + m->d, 0, (size_t)(column + 1 - m->d) * sizeof *m->x);
        m->d = column + 1;
    }
    if (!svi_shape_mark(r->shape, column)) {
        char at[100];
        return svi_fail(r->err, SVS_DUPLICATE_KEY, "%s is there twice", where(r, column, at));
    }
    return put_value(r, column, item);
}

static svs_code wrong_key(const struct svi_reading *r, const struct svi_item *key) {
    const char *others = r->m->kind == SVI_NAMED ? "strings" : "integers";
    return svi_fail(r->err, SVS_WRONG_TYPE,
                    "x is a map with %s among its keys, the others are %s: use one kind", svi_item_name(key),
                    others);
}

static svs_code column_of(const struct svi_reading *r, const struct svi_item *key, int *column) {
    const struct svi_shape *s = r->shape;
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

/* Names mostly come in the order of their columns, so the place in the map is a good guess. */
static svs_code name_of(const struct svi_reading *r, const struct svi_item *key, int guess, int *column) {
    if (key->type != SVI_STRING)
        return wrong_key(r, key);
    const char *name = (const char *)key->body;
    *column = guess;
    if (svi_features_is(r->shape->names, guess, name, key->length))
        return SVS_OK;
    *column = svs_features_find(r->shape->names, name, key->length);
    if (*column >= 0)
        return SVS_OK;
    if (r->shape->fixed_names) {
        char text[80];
        return svi_fail(r->err, SVS_BAD_COLUMN, "\"%s\" is none of the names in the setting `features`",
                        svi_escape(text, sizeof text, name, key->length));
    }
    svs_error why = {.code = SVS_LIMIT};
    *column = svs_features_add(r->shape->names, name, key->length, &why);
    return *column >= 0 ? SVS_OK : svi_fail(r->err, why.code, "%s", why.text);
}

static svs_code take_pairs(struct svi_reading *r, uint32_t pairs, enum svi_kind kind) {
    svs_code code = begin_map(r, kind);
    for (uint32_t i = 0; code == SVS_OK && i < pairs; i++) {
        struct svi_item key, value;
        int column = -1, guess = i < INT_MAX ? (int)i : -1;
        const uint8_t *p = svi_item_read(r->at, &key);
        code = kind == SVI_NAMED ? name_of(r, &key, guess, &column) : column_of(r, &key, &column);
        if (code != SVS_OK)
            break;
        r->at = svi_item_read(p, &value);
        code = put_column(r, column, &value);
    }
    return code;
}

/* An empty map is a row of zeros of whatever kind the stream has. */
static enum svi_kind kind_of_empty(const struct svi_shape *s) {
    if (s->kind != SVI_UNSET)
        return s->kind;
    return s->fixed_names ? SVI_NAMED : SVI_SPARSE;
}

static svs_code take_map(struct svi_reading *r, const struct svi_item *map) {
    struct svi_item key;
    r->at = map->body;
    if (map->length == 0)
        return begin_map(r, kind_of_empty(r->shape));
    svi_item_read(map->body, &key);
    if (key.type == SVI_STRING)
        return take_pairs(r, map->length, SVI_NAMED);
    if (key.type != SVI_INT && key.type != SVI_HUGE_INT)
        return svi_fail(r->err, SVS_WRONG_TYPE,
                        "x is a map whose first key is %s: keys are column numbers or names",
                        svi_item_name(&key));
    return take_pairs(r, map->length, r->shape->kind == SVI_DENSE ? SVI_DENSE : SVI_SPARSE);
}

svs_code svi_take_x(struct svi_reading *r, const struct svi_item *item) {
    r->m->has_x = true;
    switch (item->type) {
    case SVI_ARRAY:
        return take_array(r, item);
    case SVI_EXT:
        return take_packed(r, item);
    case SVI_MAP:
        return take_map(r, item);
    default:
        return svi_fail(r->err, SVS_WRONG_TYPE,
                        "x is %s: send an array of numbers, packed numbers (ext 1 or 2) or a map",
                        svi_item_name(item));
    }
}
