/* pack.h: msgpack into a growing buffer, through msgpack-c's packer. Part of the encoders.
 *
 * Failures stick: once memory could not be had, `failed` is set and everything further is dropped, so that an
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
    struct svi_bytes *out;
    size_t start; /* size of out at the beginning: where svi_pack_end goes back to on failure */
    size_t keys;  /* of the open map in hand, so far */
    bool failed;
};

void svi_pack_begin(struct svi_pack *p, struct svi_bytes *out);

/* SVS_OK, or SVS_NO_MEMORY with `out` as it was at the beginning. */
svs_code svi_pack_end(struct svi_pack *p);

void svi_pack_map(struct svi_pack *p, size_t pairs);
void svi_pack_array(struct svi_pack *p, size_t elements);

/* A map that says how many pairs it has when it is closed: they are counted as they are put, each with a key
 * by svi_pack_key or svi_pack_name. Its values may be maps of either kind. The bytes are those of
 * svi_pack_map. */
struct svi_open_map {
    size_t at;     /* of its head, in out */
    size_t around; /* pairs so far of the map that it is in */
};
struct svi_open_map svi_pack_open(struct svi_pack *p);
void svi_pack_close(struct svi_pack *p, struct svi_open_map m);

/* Pairs of the open map that are msgpack already. */
void svi_pack_pairs(struct svi_pack *p, const void *bytes, size_t size, size_t pairs);

/* Pairs of the open map that are appended to it after it is closed. */
void svi_pack_promise(struct svi_pack *p, size_t pairs);

/* By hand: a byte is kept for the head of a container, where svi_pack_fill writes it; the content moves up if
 * the head is longer. */
size_t svi_pack_hole(struct svi_pack *p);
void svi_pack_fill(struct svi_pack *p, size_t hole, size_t count, bool map);

void svi_pack_nil(struct svi_pack *p);
void svi_pack_bool(struct svi_pack *p, bool b);
void svi_pack_int(struct svi_pack *p, int64_t i);
void svi_pack_uint(struct svi_pack *p, uint64_t u);
void svi_pack_real(struct svi_pack *p, double r); /* NAN is nil */
void svi_pack_text(struct svi_pack *p, const char *text);
void svi_pack_string(struct svi_pack *p, const void *bytes, size_t length);
void svi_pack_name(struct svi_pack *p, const void *bytes, size_t length); /* a key, of any length */
void svi_pack_value(struct svi_pack *p, svs_value v);
void svi_pack_bin(struct svi_pack *p, const void *bytes, size_t size);
void svi_pack_doubles(struct svi_pack *p, const double *v,
                      size_t count); /* ext 2, little-endian; NULL is nil */
void svi_pack_values(struct svi_pack *p, const svs_value *values, int count);
void svi_pack_names(struct svi_pack *p, const char *const *names, int count); /* NULL is nil */

/* msgpack that is ready. */
void svi_pack_raw(struct svi_pack *p, const void *bytes, size_t size);

/* An item of 64 bits: its lead byte and they. Returns what follows. */
static inline uint8_t *svi_store_word(uint8_t *to, uint8_t lead, uint64_t bits) {
    *to = lead;
    bits = htobe64(bits);
    memcpy(to + 1, &bits, sizeof bits);
    return to + 9;
}

/* A key of at most 31 bytes. Of a literal the compiler knows the msgpack form, and where there is room
 * already, it is a store or two. */
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

/* ---- pairs of a map: a key as above and its value */

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

/* The head of an array, or of a map that is not open. */
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

/* `error` and `code`, the two pairs of a refusal. */
static inline void svi_put_error(struct svi_pack *p, const svs_error *err) {
    svi_put_text(p, "error", err->text);
    svi_put_text(p, "code", svs_code_name(err->code));
}

static inline void svi_put_doubles(struct svi_pack *p, const char *key, const double *v, size_t count) {
    svi_pack_key(p, key);
    svi_pack_doubles(p, v, count);
}

#endif
