#include "wire/pack.h"

#include <endian.h>
#include <math.h>
#include <string.h>

#include "wire/cursor.h"

/* The callback of msgpack-c's packer. */
static int pack_append(void *user, const char *data, size_t n) {
    struct svi_pack *p = user;
    p->failed = p->failed || svi_bytes_append(p->out, data, n) != SVS_OK;
    return p->failed ? -1 : 0;
}

void svi_pack_raw(struct svi_pack *p, const void *bytes, size_t size) {
    pack_append(p, bytes, size);
}

void svi_pack_begin(struct svi_pack *p, struct svi_bytes *out) {
    /* What is in `out` already stays: encoders append, and a failure removes only their own bytes. */
    *p = (struct svi_pack){.out = out, .start = out->size};
    msgpack_packer_init(&p->packer, p, pack_append);
}

svs_code svi_pack_end(struct svi_pack *p) {
    if (!p->failed)
        return SVS_OK;
    p->out->size = p->start;
    return SVS_NO_MEMORY;
}

/* The keys of this map must not count for the enclosing open map. Its count is reduced by them in advance (it
 * may wrap below 0), and each of them raises it by one again. */
void svi_pack_map(struct svi_pack *p, size_t pairs) {
    p->keys -= pairs;
    msgpack_pack_map(&p->packer, pairs);
}

/* The count of the enclosing map is saved in the result, so open maps nest like the calls that make them. */
struct svi_open_map svi_pack_open(struct svi_pack *p) {
    const struct svi_open_map m = {svi_pack_hole(p), p->keys};
    p->keys = 0;
    return m;
}

void svi_pack_close(struct svi_pack *p, struct svi_open_map m) {
    svi_pack_fill(p, m.at, p->keys, true);
    p->keys = m.around;
}

void svi_pack_pairs(struct svi_pack *p, const void *bytes, size_t size, size_t pairs) {
    p->keys += pairs;
    svi_pack_raw(p, bytes, size);
}

void svi_pack_promise(struct svi_pack *p, size_t pairs) {
    p->keys += pairs;
}

size_t svi_pack_hole(struct svi_pack *p) {
    const size_t at = p->out->size;
    svi_pack_raw(p, "", 1);
    return at;
}

/* The hole is one byte, enough for up to 15 elements; otherwise the content moves up by two or four bytes. */
void svi_pack_fill(struct svi_pack *p, size_t hole, size_t count, bool map) {
    const size_t more = count < 16 ? 0 : count < 65536 ? 2 : 4;
    svi_pack_raw(p, "\0\0\0", more); /* makes space at the end; the literal has four bytes with its NUL */
    if (p->failed)
        return;
    uint8_t *head = p->out->data + hole;
    if (more == 0) {
        *head = (uint8_t)((map ? 0x80 : 0x90) | count);
        return;
    }
    memmove(head + 1 + more, head + 1, p->out->size - hole - 1 - more);
    *head = (uint8_t)((map ? 0xde : 0xdc) + (more == 4));
    for (size_t i = more; i > 0; i--, count >>= 8) /* big-endian */
        head[i] = (uint8_t)count;
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
    svi_pack_string(p, text, strlen(text));
}

void svi_pack_string(struct svi_pack *p, const void *bytes, size_t length) {
    msgpack_pack_str_with_body(&p->packer, bytes, length);
}

void svi_pack_name(struct svi_pack *p, const void *bytes, size_t length) {
    p->keys++;
    svi_pack_string(p, bytes, length);
}

void svi_pack_value(struct svi_pack *p, svs_value v) {
    if (v.kind == SVS_INT)
        svi_pack_int(p, v.as.i);
    else if (v.kind == SVS_REAL)
        svi_pack_real(p, v.as.r);
    else if (v.kind == SVS_STR)
        svi_pack_string(p, v.as.s, v.length);
    else
        svi_pack_nil(p);
}

void svi_pack_bin(struct svi_pack *p, const void *bytes, size_t size) {
    msgpack_pack_bin(&p->packer, size);
    pack_append(p, bytes, size);
}

void svi_pack_doubles(struct svi_pack *p, const double *v, size_t count) {
    if (!v && count > 0) { /* an empty array may have no memory */
        svi_pack_nil(p);
        return;
    }
    msgpack_pack_ext(&p->packer, count * sizeof *v, SVI_EXT_FLOAT64);
    if (htole64(1) == 1) { /* this machine has the byte order of the wire */
        pack_append(p, (const char *)v, count * sizeof *v);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t bits;
        memcpy(&bits, &v[i], sizeof bits);
        bits = htole64(bits);
        pack_append(p, (const char *)&bits, sizeof bits);
    }
}

void svi_pack_floats(struct svi_pack *p, const double *v, size_t count) {
    msgpack_pack_ext(&p->packer, count * sizeof(float), SVI_EXT_FLOAT32);
    for (size_t i = 0; i < count; i++) {
        const float single = (float)v[i];
        uint32_t bits;
        memcpy(&bits, &single, sizeof bits);
        bits = htole32(bits);
        pack_append(p, (const char *)&bits, sizeof bits);
    }
}

void svi_pack_values(struct svi_pack *p, const svs_value *values, int count) {
    svi_pack_array(p, (size_t)count);
    for (int i = 0; i < count; i++)
        svi_pack_value(p, values[i]);
}

void svi_pack_names(struct svi_pack *p, const char *const *names, int count) {
    if (!names) {
        svi_pack_nil(p);
        return;
    }
    svi_pack_array(p, (size_t)count);
    for (int i = 0; i < count; i++)
        svi_pack_text(p, names[i]);
}
