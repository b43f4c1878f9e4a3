/* msgpack items, each written where it stands in the buffer.
 *
 * Room for the longest head, or a number, is reserved before each item, so that an item is one test and a few
 * stores (pack_bits): a lead byte, and its 1, 2, 4 or 8 bytes as the upper part of one word that is stored
 * whole. Of the forms that an item may have the shortest is taken, as msgpack-c does, byte for byte:
 * tests/wire/test_pack.c compares the two.
 *
 * Read pack_bits and pack_count first; open maps (svi_pack_open) leave a hole for their head. */
#include "wire/pack.h"

#include <endian.h>
#include <math.h>
#include <string.h>

#include "wire/cursor.h"

#define ITEM_MAX 9 /* bytes of a number, or of the head of anything else */

/* Where n bytes are written; NULL: there is no memory. */
static inline uint8_t *pack_room(struct svi_pack *p, size_t n) {
    struct svi_bytes *out = p->out;
    if (p->failed || (out->capacity - out->size < n && svi_bytes_reserve(out, n) != SVS_OK)) {
        p->failed = true;
        return NULL;
    }
    return out->data + out->size;
}

void svi_pack_raw(struct svi_pack *p, const void *bytes, size_t size) {
    p->failed = p->failed || svi_bytes_append(p->out, bytes, size) != SVS_OK;
}

static inline void pack_byte(struct svi_pack *p, unsigned byte) {
    uint8_t *to = pack_room(p, 1);
    if (!to)
        return;
    *to = (uint8_t)byte;
    p->out->size++;
}

/* A lead byte and the lowest 1 << order bytes of `bits`, the highest first. */
static inline void pack_bits(struct svi_pack *p, unsigned lead, unsigned order, uint64_t bits) {
    uint8_t *to = pack_room(p, ITEM_MAX);
    const unsigned size = 1u << order;
    if (!to)
        return;
    svi_store_word(to, (uint8_t)lead, bits << (64 - 8 * size));
    p->out->size += 1 + size;
}

/* A count: its lead byte is `lead` for one byte, and one or two more for two bytes or four. */
static inline void pack_count(struct svi_pack *p, unsigned lead, size_t count) {
    const unsigned order = (count > UINT8_MAX) + (count > UINT16_MAX);
    pack_bits(p, lead + order, order, count);
}

static void pack_container(struct svi_pack *p, unsigned brief, unsigned lead, size_t count) {
    if (count < 16)
        pack_byte(p, brief | (unsigned)count);
    else
        pack_bits(p, lead + (count > UINT16_MAX), 1 + (count > UINT16_MAX), count);
}

void svi_pack_begin(struct svi_pack *p, struct svi_bytes *out) {
    *p = (struct svi_pack){.out = out, .start = out->size};
}

svs_code svi_pack_end(struct svi_pack *p) {
    if (!p->failed)
        return SVS_OK;
    p->out->size = p->start;
    return SVS_NO_MEMORY;
}

/* The keys that are to come are not of the open map around it: its number goes back by them (below 0 it
 * wraps), and each of them brings it forward by one. */
void svi_pack_map(struct svi_pack *p, size_t pairs) {
    p->keys -= pairs;
    pack_container(p, 0x80, 0xde, pairs);
}

struct svi_open_map svi_pack_open(struct svi_pack *p) {
    const struct svi_open_map m = {svi_pack_hole(p), p->keys};
    p->keys = 0;
    return m;
}

void svi_pack_close(struct svi_pack *p, struct svi_open_map m) {
    svi_pack_fill(p, m.at, p->keys, true);
    p->keys = m.around;
}

void svi_pack_promise(struct svi_pack *p, size_t pairs) {
    p->keys += pairs;
}

size_t svi_pack_hole(struct svi_pack *p) {
    const size_t at = p->out->size;
    svi_pack_raw(p, "", 1);
    return at;
}

/* One byte is left for the head; what has more than 15 elements moves up by two bytes or four. */
void svi_pack_fill(struct svi_pack *p, size_t hole, size_t count, bool map) {
    const size_t more = count < 16 ? 0 : count < 65536 ? 2 : 4;
    svi_pack_raw(p, "\0\0\0", more);
    if (p->failed)
        return;
    uint8_t *head = p->out->data + hole;
    if (more == 0) {
        *head = (uint8_t)((map ? 0x80 : 0x90) | count);
        return;
    }
    memmove(head + 1 + more, head + 1, p->out->size - hole - 1 - more);
    *head = (uint8_t)((map ? 0xde : 0xdc) + (more == 4));
    for (size_t i = more; i > 0; i--, count >>= 8)
        head[i] = (uint8_t)count;
}

void svi_pack_array(struct svi_pack *p, size_t elements) {
    pack_container(p, 0x90, 0xdc, elements);
}

void svi_pack_nil(struct svi_pack *p) {
    pack_byte(p, 0xc0);
}

void svi_pack_bool(struct svi_pack *p, bool b) {
    pack_byte(p, b ? 0xc3 : 0xc2);
}

void svi_pack_int(struct svi_pack *p, int64_t i) {
    if (i >= 0)
        svi_pack_uint(p, (uint64_t)i);
    else if (i >= -32)
        pack_byte(p, (unsigned)i & 0xff);
    else {
        const unsigned order = (unsigned)(i < INT8_MIN) + (i < INT16_MIN) + (i < INT32_MIN);
        pack_bits(p, 0xd0 + order, order, (uint64_t)i);
    }
}

void svi_pack_uint(struct svi_pack *p, uint64_t u) {
    const unsigned order = (unsigned)(u > UINT8_MAX) + (u > UINT16_MAX) + (u > UINT32_MAX);
    if (u < 0x80)
        pack_byte(p, (unsigned)u);
    else
        pack_bits(p, 0xcc + order, order, u);
}

void svi_pack_real(struct svi_pack *p, double r) {
    uint64_t bits;
    memcpy(&bits, &r, sizeof bits);
    if (isnan(r))
        svi_pack_nil(p);
    else
        pack_bits(p, 0xcb, 3, bits);
}

void svi_pack_text(struct svi_pack *p, const char *text) {
    svi_pack_string(p, text, strlen(text));
}

void svi_pack_string_head(struct svi_pack *p, size_t length) {
    if (length < 32)
        pack_byte(p, 0xa0 | (unsigned)length);
    else
        pack_count(p, 0xd9, length);
}

void svi_pack_string(struct svi_pack *p, const void *bytes, size_t length) {
    svi_pack_string_head(p, length);
    svi_pack_raw(p, bytes, length);
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

void svi_pack_bin_head(struct svi_pack *p, size_t size) {
    pack_count(p, 0xc4, size);
}

void svi_pack_bin(struct svi_pack *p, const void *bytes, size_t size) {
    svi_pack_bin_head(p, size);
    svi_pack_raw(p, bytes, size);
}

/* 1, 2, 4, 8 and 16 bytes have a lead byte of their own. */
static void pack_ext_head(struct svi_pack *p, size_t size, int type) {
    if (size > 0 && size <= 16 && (size & (size - 1)) == 0)
        pack_byte(p, 0xd4 + (unsigned)__builtin_ctzll(size));
    else
        pack_count(p, 0xc7, size);
    pack_byte(p, (unsigned)type);
}

void svi_pack_doubles(struct svi_pack *p, const double *v, size_t count) {
    if (!v && count > 0) {
        svi_pack_nil(p);
        return;
    }
    pack_ext_head(p, count * sizeof *v, SVI_EXT_FLOAT64);
    if (htole64(1) == 1) { /* this machine's order is the wire's */
        svi_pack_raw(p, v, count * sizeof *v);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t bits;
        memcpy(&bits, &v[i], sizeof bits);
        bits = htole64(bits);
        svi_pack_raw(p, &bits, sizeof bits);
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
