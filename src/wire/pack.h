/* pack.h: packs msgpack into a growing buffer, through msgpack-c's packer. Part of the encoders.
 *
 * Failures stick: after the first failed allocation `failed` is set and everything further is dropped, so an
 * encoder checks once, at its end. */
#ifndef SVI_PACK_H
#define SVI_PACK_H

#include <assert.h>
#include <endian.h>
#include <stdbool.h>
#include <string.h>

#include <msgpack.h>

#include "base/bytes.h"
#include "svmstream/error.h"
#include "svmstream/value.h"

struct svi_pack {
    msgpack_packer packer;
    struct svi_bytes *out; /* not owned */
    size_t start;          /* size of out at the beginning, restored after a failure */
    size_t keys;           /* pairs of the innermost open map so far */
    bool failed;
};

void svi_pack_begin(struct svi_pack *p, struct svi_bytes *out);

/* SVS_OK, or SVS_NO_MEMORY: `out` is then as at the beginning. */
svs_code svi_pack_end(struct svi_pack *p);

void svi_pack_map(struct svi_pack *p, size_t pairs);
void svi_pack_array(struct svi_pack *p, size_t elements);

/* A map whose pairs are counted while they are put, each with a key by svi_pack_key or svi_pack_name; closing
 * it writes its head. Its values may be maps of either kind. The bytes equal those of svi_pack_map. */
struct svi_open_map {
    size_t at;     /* offset of its head in out */
    size_t around; /* pairs so far of the enclosing open map */
};
struct svi_open_map svi_pack_open(struct svi_pack *p);
void svi_pack_close(struct svi_pack *p, struct svi_open_map m);

/* Appends pairs of the open map that are already msgpack. */
void svi_pack_pairs(struct svi_pack *p, const void *bytes, size_t size, size_t pairs);

/* Announces pairs of the open map that the caller appends after closing it. */
void svi_pack_promise(struct svi_pack *p, size_t pairs);

/* Low level: reserves one byte for the head of a container, whose number of elements svi_pack_fill writes
 * there; the content moves up if the head is longer. */
size_t svi_pack_hole(struct svi_pack *p);
void svi_pack_fill(struct svi_pack *p, size_t hole, size_t count, bool map);

void svi_pack_nil(struct svi_pack *p);
void svi_pack_bool(struct svi_pack *p, bool b);
void svi_pack_int(struct svi_pack *p, int64_t i);
void svi_pack_uint(struct svi_pack *p, uint64_t u);
void svi_pack_real(struct svi_pack *p, double r); /* NAN becomes nil */
void svi_pack_text(struct svi_pack *p, const char *text);
void svi_pack_string(struct svi_pack *p, const void *bytes, size_t length);
void svi_pack_name(struct svi_pack *p, const void *bytes, size_t length); /* a key, of any length */
void svi_pack_value(struct svi_pack *p, svs_value v);
void svi_pack_bin(struct svi_pack *p, const void *bytes, size_t size);
void svi_pack_doubles(struct svi_pack *p, const double *v,
                      size_t count); /* ext 2, little-endian; NULL: nil */
void svi_pack_floats(struct svi_pack *p, const double *v,
                     size_t count); /* ext 1, rounded to single precision, little-endian */
void svi_pack_values(struct svi_pack *p, const svs_value *values, int count);
void svi_pack_names(struct svi_pack *p, const char *const *names, int count); /* NULL: nil */

/* Appends bytes that are already msgpack. */
void svi_pack_raw(struct svi_pack *p, const void *bytes, size_t size);

/* Writes an item of 64 bits (9 bytes): lead byte and big-endian bits. Returns the address after it. */
static inline uint8_t *svi_pack_store_word(uint8_t *to, uint8_t lead, uint64_t bits) {
    *to = lead;
    bits = htobe64(bits);
    memcpy(to + 1, &bits, sizeof bits);
    return to + 9;
}

/* Packs a key of at most 31 bytes. For a literal the compiler computes the msgpack form, and while capacity
 * is left, packing is a store or two. */
static inline void svi_pack_key(struct svi_pack *p, const char *key) {
    char piece[32];
    struct svi_bytes *out = p->out;
    size_t n = strlen(key);
    assert(n < sizeof piece);
    p->keys++;
    piece[0] = (char)(0xa0 | n);
    memcpy(piece + 1, key, n);
    if (out->capacity - out->size <= n) {
        svi_pack_raw(p, piece, n + 1);
        return;
    }
    memcpy(out->data + out->size, piece, n + 1);
    out->size += n + 1;
}

/* ---- pairs of a map: a key and its value */

static inline void svi_put_bool(struct svi_pack *p, const char *key, bool b) {
    svi_pack_key(p, key);
    svi_pack_bool(p, b);
}

static inline void svi_put_int(struct svi_pack *p, const char *key, int64_t i) {
    svi_pack_key(p, key);
    svi_pack_int(p, i);
}

static inline void svi_put_uint(struct svi_pack *p, const char *key, uint64_t u) {
    svi_pack_key(p, key);
    svi_pack_uint(p, u);
}

static inline void svi_put_real(struct svi_pack *p, const char *key, double r) {
    svi_pack_key(p, key);
    svi_pack_real(p, r);
}

static inline void svi_put_text(struct svi_pack *p, const char *key, const char *text) {
    svi_pack_key(p, key);
    svi_pack_text(p, text);
}

static inline void svi_put_value(struct svi_pack *p, const char *key, svs_value v) {
    svi_pack_key(p, key);
    svi_pack_value(p, v);
}

/* A key, and the head of an array or of a map that is not open: the caller packs the content. */
static inline void svi_put_array(struct svi_pack *p, const char *key, size_t elements) {
    svi_pack_key(p, key);
    svi_pack_array(p, elements);
}

static inline void svi_put_map(struct svi_pack *p, const char *key, size_t pairs) {
    svi_pack_key(p, key);
    svi_pack_map(p, pairs);
}

/* An array of numbers. */
static inline void svi_put_reals(struct svi_pack *p, const char *key, const double *v, int count) {
    svi_put_array(p, key, (size_t)count);
    for (int i = 0; i < count; i++)
        svi_pack_real(p, v[i]);
}

/* The two pairs of a refusal: `error` and `code`. */
static inline void svi_put_error(struct svi_pack *p, const svs_error *err) {
    svi_put_text(p, "error", err->text);
    svi_put_text(p, "code", svs_code_name(err->code));
}

static inline void svi_put_doubles(struct svi_pack *p, const char *key, const double *v, size_t count) {
    svi_pack_key(p, key);
    svi_pack_doubles(p, v, count);
}

#endif
