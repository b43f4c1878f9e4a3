#include "wire/pack.h"

#include <endian.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"

#define FIRST_ROOM  256
#define EXT_FLOAT64 2

void svi_bytes_clear(struct svi_bytes *b) {
    svi_free(b->data);
    *b = (struct svi_bytes){0};
}

static svs_code make_room(struct svi_bytes *b, size_t n) {
    size_t capacity = b->capacity ? b->capacity : FIRST_ROOM;
    if (n > PTRDIFF_MAX / 2 - b->size)
        return SVS_NO_MEMORY;
    while (capacity < b->size + n)
        capacity *= 2;
    void *data = svi_realloc(b->data, b->size, capacity);
    if (!data)
        return SVS_NO_MEMORY;
    b->data = data;
    b->capacity = capacity;
    return SVS_OK;
}

/* The pieces of an event are a few bytes each: two copies of a fixed size that may overlap beat a call of
 * memcpy. */
static inline void copy(uint8_t *to, const uint8_t *from, size_t n) {
    if (n > 16)
        memcpy(to, from, n);
    else if (n >= 8) {
        memcpy(to, from, 8);
        memcpy(to + n - 8, from + n - 8, 8);
    } else if (n >= 4) {
        memcpy(to, from, 4);
        memcpy(to + n - 4, from + n - 4, 4);
    } else if (n >= 2) {
        memcpy(to, from, 2);
        memcpy(to + n - 2, from + n - 2, 2);
    } else if (n == 1)
        *to = *from;
}

svs_code svi_bytes_append(struct svi_bytes *b, const void *data, size_t n) {
    if (n > b->capacity - b->size && make_room(b, n) != SVS_OK)
        return SVS_NO_MEMORY;
    if (n > 0) /* else there may be no buffer at all */
        copy(b->data + b->size, data, n);
    b->size += n;
    return SVS_OK;
}

/* The packer's callback. */
static int append(void *user, const char *data, size_t n) {
    struct svi_pack *p = user;
    p->failed = p->failed || svi_bytes_append(p->out, data, n) != SVS_OK;
    return p->failed ? -1 : 0;
}

void svi_pack_raw(struct svi_pack *p, const void *bytes, size_t size) {
    append(p, bytes, size);
}

void svi_pack_begin(struct svi_pack *p, struct svi_bytes *out) {
    *p = (struct svi_pack){.out = out, .start = out->size};
    msgpack_packer_init(&p->packer, p, append);
}

svs_code svi_pack_end(struct svi_pack *p) {
    if (!p->failed)
        return SVS_OK;
    p->out->size = p->start;
    return SVS_NO_MEMORY;
}

void svi_pack_map(struct svi_pack *p, size_t pairs) {
    msgpack_pack_map(&p->packer, pairs);
}

void svi_pack_array(struct svi_pack *p, size_t elements) {
    msgpack_pack_array(&p->packer, elements);
}

void svi_pack_nil(struct svi_pack *p) {
    msgpack_pack_nil(&p->packer);
}

void svi_pack_bool(struct svi_pack *p, bool b) {
    if (b)
        msgpack_pack_true(&p->packer);
    else
        msgpack_pack_false(&p->packer);
}

void svi_pack_int(struct svi_pack *p, int64_t i) {
    msgpack_pack_int64(&p->packer, i);
}

void svi_pack_uint(struct svi_pack *p, uint64_t u) {
    msgpack_pack_uint64(&p->packer, u);
}

void svi_pack_real(struct svi_pack *p, double r) {
    if (isnan(r))
        msgpack_pack_nil(&p->packer);
    else
        msgpack_pack_double(&p->packer, r);
}

void svi_pack_text(struct svi_pack *p, const char *text) {
    msgpack_pack_str_with_body(&p->packer, text, strlen(text));
}

void svi_pack_value(struct svi_pack *p, svs_value v) {
    if (v.kind == SVS_INT)
        svi_pack_int(p, v.as.i);
    else if (v.kind == SVS_REAL)
        svi_pack_real(p, v.as.r);
    else if (v.kind == SVS_STR)
        msgpack_pack_str_with_body(&p->packer, v.as.s, v.length);
    else
        svi_pack_nil(p);
}

void svi_pack_bin(struct svi_pack *p, const void *bytes, size_t size) {
    msgpack_pack_bin(&p->packer, size);
    append(p, bytes, size);
}

void svi_pack_doubles(struct svi_pack *p, const double *v, size_t count) {
    msgpack_pack_ext(&p->packer, count * sizeof *v, EXT_FLOAT64);
    for (size_t i = 0; i < count; i++) {
        uint64_t bits;
        memcpy(&bits, &v[i], sizeof bits);
        bits = htole64(bits);
        append(p, (const char *)&bits, sizeof bits);
    }
}
