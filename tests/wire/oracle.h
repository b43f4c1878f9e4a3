/* oracle.h: what msgpack-c thinks of the bytes that our decoder was given. Shared by the differential test
 * and the fuzz target; each call returns NULL when both agree, else what they differ in. */
#ifndef TEST_ORACLE_H
#define TEST_ORACLE_H

#include <math.h>
#include <msgpack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "features/category.h"
#include "support/schema.h"
#include "wire/decode.h"

/* msgpack-c reserves containers from their headers alone: with a 16-bit or 32-bit count that is not backed by
 * bytes it would ask for gigabytes. */
static inline bool oracle_may_claim_much(const uint8_t *bytes, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (bytes[i] >= 0xdc && bytes[i] <= 0xdf)
            return true;
    return false;
}

static inline const char *oracle_form_of(svs_code code, msgpack_unpack_return got, size_t off,
                                         size_t length) {
    if (code == SVS_OK)
        return got == MSGPACK_UNPACK_SUCCESS && off == length ? NULL : "accepted, but not by msgpack-c";
    if (code == SVS_TRAILING)
        return got == MSGPACK_UNPACK_SUCCESS && off < length ? NULL : "trailing, but not to msgpack-c";
    if (code == SVS_TRUNCATED) /* we refuse a count that cannot be met before we look at what does follow */
        return got != MSGPACK_UNPACK_SUCCESS ? NULL : "truncated, but not to msgpack-c";
    return got == MSGPACK_UNPACK_PARSE_ERROR ? NULL : "not msgpack, but to msgpack-c it is";
}

/* Is `bytes` well-formed to both? */
static inline const char *oracle_form(const uint8_t *bytes, size_t length) {
    svs_code code = svi_msgpack_check(bytes, length, SVI_DEPTH_MAX, NULL);
    if (length == 0)
        return code == SVS_EMPTY ? NULL : "no bytes are not empty";
    if (code == SVS_TOO_DEEP || (code != SVS_OK && oracle_may_claim_much(bytes, length)))
        return NULL;
    msgpack_unpacked u;
    size_t off = 0;
    msgpack_unpacked_init(&u);
    msgpack_unpack_return got = msgpack_unpack_next(&u, (const char *)bytes, length, &off);
    msgpack_unpacked_destroy(&u);
    return oracle_form_of(code, got, off, length);
}

static inline bool oracle_is(const msgpack_object *o, const char *text) {
    return o->type == MSGPACK_OBJECT_STR && o->via.str.size == strlen(text) &&
           memcmp(o->via.str.ptr, text, strlen(text)) == 0;
}

/* The value of a key that is there and not nil. */
static inline const msgpack_object *oracle_get(const msgpack_object *map, const char *key) {
    for (uint32_t i = 0; i < map->via.map.size; i++)
        if (oracle_is(&map->via.map.ptr[i].key, key)) {
            const msgpack_object *o = &map->via.map.ptr[i].val;
            return o->type == MSGPACK_OBJECT_NIL ? NULL : o;
        }
    return NULL;
}

static inline double oracle_number(const msgpack_object *o) {
    switch (o->type) {
    case MSGPACK_OBJECT_POSITIVE_INTEGER:
        return (double)o->via.u64;
    case MSGPACK_OBJECT_NEGATIVE_INTEGER:
        return (double)o->via.i64;
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64:
        return o->via.f64;
    default:
        return NAN; /* nil among features */
    }
}

static inline bool oracle_same(double a, double b) {
    return a == b || (isnan(a) && isnan(b));
}

static inline bool oracle_is_value(svs_value v, const msgpack_object *o) {
    if (!o)
        return v.kind == SVS_NONE;
    if (o->type == MSGPACK_OBJECT_STR)
        return v.kind == SVS_STR && v.length == o->via.str.size &&
               memcmp(v.as.s, o->via.str.ptr, v.length) == 0;
    if (o->type == MSGPACK_OBJECT_BOOLEAN)
        return v.kind == SVS_INT && v.as.i == o->via.boolean;
    if (v.kind == SVS_INT && o->type == MSGPACK_OBJECT_POSITIVE_INTEGER)
        return v.as.i >= 0 && (uint64_t)v.as.i == o->via.u64;
    if (v.kind == SVS_INT && o->type == MSGPACK_OBJECT_NEGATIVE_INTEGER)
        return v.as.i == o->via.i64;
    return v.kind == SVS_INT ? (double)v.as.i == oracle_number(o)
                             : v.kind == SVS_REAL && v.as.r == oracle_number(o);
}

static inline bool oracle_is_array(const struct svi_message *m, const msgpack_object *x) {
    bool same = m->d == (int)x->via.array.size;
    for (int j = 0; same && j < m->d; j++)
        same = oracle_same(m->x[j], oracle_number(&x->via.array.ptr[j]));
    return same;
}

static inline bool oracle_is_packed(const struct svi_message *m, const msgpack_object *x) {
    size_t size = x->via.ext.type == 2 ? 8 : 4;
    bool same = (size_t)m->d * size == x->via.ext.size;
    for (int j = 0; same && j < m->d; j++) {
        double v = 0;
        float f = 0;
        memcpy(size == 8 ? (void *)&v : (void *)&f, x->via.ext.ptr + (size_t)j * size, size);
        same = m->x[j] == (size == 8 ? v : (double)f);
    }
    return same;
}

/* The feature that a value of a category sets: `column=word`, or what further values share. */
static inline int oracle_category(const struct svi_schema *s, const msgpack_object *column, const char *word,
                                  size_t length) {
    const int at = svi_schema_find(s, column->via.str.ptr, column->via.str.size, -1);
    char name[2 * SVS_NAME_MAX + 2];
    if (at < 0)
        return -1;
    if (column->via.str.size + 1 + length > SVS_NAME_MAX) /* cut: by our own rule */
        return svi_category_known(s, at, word, length);
    const int size = snprintf(name, sizeof name, "%.*s=", (int)column->via.str.size, column->via.str.ptr);
    memcpy(name + size, word, length);
    const int feature = svs_features_find(s->shape.names, name, (size_t)size + length);
    memcpy(name + size, "(other)", 7);
    return feature >= 0 ? feature : svs_features_find(s->shape.names, name, (size_t)size + 7);
}

/* The feature that a pair sets, with its value; -1: it sets none. */
static inline int oracle_feature(const struct svi_schema *s, const msgpack_object_kv *pair, double *v) {
    const msgpack_object *k = &pair->key;
    char text[32];
    *v = oracle_number(&pair->val);
    if (k->type != MSGPACK_OBJECT_STR)
        return (int)k->via.u64;
    if (pair->val.type != MSGPACK_OBJECT_STR) {
        const int own = svs_features_find(s->shape.names, k->via.str.ptr, k->via.str.size);
        if (own >= 0 || isnan(*v))
            return own;
    }
    const double number = *v;
    *v = 1;
    if (pair->val.type == MSGPACK_OBJECT_STR)
        return oracle_category(s, k, pair->val.via.str.ptr, pair->val.via.str.size);
    for (int digits = 15; digits <= 17; digits++) { /* a number among words is the shortest word for it */
        snprintf(text, sizeof text, "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    return oracle_category(s, k, text, strlen(text));
}

/* Every pair is in its feature, and the others are 0, or missing where the message says that what it leaves
 * out is. */
static inline bool oracle_is_map(const struct svi_message *m, const struct svi_schema *s,
                                 const msgpack_object *x) {
    const bool may_miss = m->absent != SVI_MISSING_AUTO && m->absent != SVI_MISSING_ZERO;
    double *want = calloc((size_t)m->d + 1, sizeof *want);
    bool same = want != NULL;
    for (uint32_t i = 0; same && i < x->via.map.size; i++) {
        double v;
        const int j = oracle_feature(s, &x->via.map.ptr[i], &v);
        const bool nothing = j < 0 && x->via.map.ptr[i].val.type == MSGPACK_OBJECT_NIL;
        same = nothing || (j >= 0 && j < m->d);
        if (same && !nothing)
            want[j] = v;
    }
    for (int j = 0; same && j < m->d; j++)
        same = oracle_same(m->x[j], want[j]) || (may_miss && want[j] == 0 && isnan(m->x[j]));
    free(want);
    return same;
}

static inline bool oracle_is_x(const struct svi_message *m, const struct svi_schema *s,
                               const msgpack_object *x) {
    if (!x)
        return !m->has_x;
    if (x->type == MSGPACK_OBJECT_ARRAY)
        return oracle_is_array(m, x);
    return x->type == MSGPACK_OBJECT_EXT ? oracle_is_packed(m, x) : oracle_is_map(m, s, x);
}

/* Only what is missing may be NaN. */
static inline bool oracle_is_finite(const struct svi_message *m) {
    int missing = 0;
    for (int j = 0; m->has_x && j < m->d; j++) {
        missing += isnan(m->x[j]);
        if (isinf(m->x[j]))
            return false;
    }
    return missing == m->missing;
}

static inline const char *oracle_message(const struct svi_message *m, const struct svi_schema *s,
                                         const msgpack_object *o) {
    if (o->type != MSGPACK_OBJECT_MAP)
        return "an element that is no map was accepted";
    const msgpack_object *ts = oracle_get(o, "ts"), *w = oracle_get(o, "w");
    if (!oracle_is_x(m, s, oracle_get(o, "x")))
        return "x differs";
    if (!oracle_is_finite(m))
        return "a number that is not finite was accepted";
    if (!oracle_is_value(m->y, oracle_get(o, "y")) || !oracle_is_value(m->id, oracle_get(o, "id")))
        return "y or id differs";
    if (!oracle_is_value(m->stream, oracle_get(o, "stream")) ||
        !oracle_is_value(m->src, oracle_get(o, "src")))
        return "stream or src differs";
    if (!oracle_same(m->ts, ts ? oracle_number(ts) : NAN) || m->weight != (w ? oracle_number(w) : 1))
        return "ts or w differs";
    return NULL;
}

/* Decodes the whole frame both ways. *taken (may be NULL): elements that were accepted. */
static inline const char *oracle_values(const uint8_t *bytes, size_t length, struct svi_schema *s,
                                        int *taken) {
    struct svi_envelope f;
    struct svi_message m;
    svs_error err;
    msgpack_unpacked u;
    const char *problem = NULL;
    if (svi_envelope_read(&f, bytes, length) != SVS_OK)
        return NULL;
    msgpack_unpacked_init(&u);
    if (msgpack_unpack_next(&u, (const char *)bytes, length, NULL) != MSGPACK_UNPACK_SUCCESS)
        problem = "opened, but msgpack-c does not read it";
    bool batch = u.data.type == MSGPACK_OBJECT_ARRAY;
    for (uint32_t i = 0; !problem && f.left > 0; i++) {
        svs_code code = svi_envelope_next(&f, s, &m, &err);
        if (code == SVS_OK)
            code = svi_shape_fits(&s->shape, &m, &err);
        if (code == SVS_OK) {
            problem = oracle_message(&m, s, batch ? &u.data.via.array.ptr[i] : &u.data);
            svi_schema_commit(s, &m);
            if (taken)
                ++*taken;
        } else {
            svi_schema_restore(s);
        }
    }
    msgpack_unpacked_destroy(&u);
    return !problem && f.next && f.next != f.bytes + f.size ? "the cursor does not end at the end" : problem;
}

#endif
