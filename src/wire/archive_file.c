/* Archives as bytes, in two forms: with field names (sections of files) and without (states of keys).
 *
 * Both forms append to one buffer and read from one range of bytes; they differ in how an integer, a double
 * and a block are written. The named form is one msgpack map, whose head is filled in at the end; the packed
 * form has no head. Bytes that are read are not trusted: every length is compared with the bytes that are
 * left before anything is copied, and a failure is final (base/archive.h). The order of this file: appending,
 * both forms out, both forms in, and the coding of zero runs that is applied to packed states. */
#include "wire/archive_file.h"

#include <stdio.h>
#include <string.h>

#include "wire/cursor.h"
#include "wire/fields.h"
#include "wire/pack.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "blocks are copied as they are");

#define MAP32   0xdf
#define INT64   0xd3
#define FLOAT64 0xcb
#define BIN32   0xc6
#define EXT32   0xc9

#define MAX_VARINT 10  /* bytes of a varint: 64 bits in groups of 7 */
#define RUN        128 /* most literal bytes, or zeros, of one token */
#define MIN_RUN    3   /* fewest zeros that shorten the result: they may end and begin a literal token */

/* The msgpack extension of a block of each type; 0: bin. */
static const uint8_t exts[] = {[SVI_ARCHIVE_BYTES] = 0,
                               [SVI_ARCHIVE_DOUBLES] = 2,
                               [SVI_ARCHIVE_INT32] = 3,
                               [SVI_ARCHIVE_INT64] = 4,
                               [SVI_ARCHIVE_FLOATS] = 5};

/* Counts even without a buffer: a first run yields the size to reserve. */
static void archive_append(struct svi_archive *a, const void *bytes, size_t size) {
    struct svi_archive_out *o = (struct svi_archive_out *)a;
    o->size += size;
    if (size > 0 && o->bytes && svi_archive_ok(a) && svi_bytes_append(o->bytes, bytes, size) != SVS_OK)
        svi_archive_fail(a, SVS_NO_MEMORY, "no memory for its bytes");
}

static void append_key(struct svi_archive *a, const char *name) {
    const uint8_t head[2] = {0xd9, (uint8_t)strlen(name)}; /* str 8 */
    archive_append(a, head, sizeof head);
    archive_append(a, name, head[1]);
    ((struct svi_archive_out *)a)->fields++;
}

static void append_word(struct svi_archive *a, uint8_t lead, uint64_t bits) {
    uint8_t item[9];
    svi_pack_store_word(item, lead, bits);
    archive_append(a, item, sizeof item);
}

static void archive_put_integer(struct svi_archive *a, const char *name, int64_t *v) {
    append_key(a, name);
    append_word(a, INT64, (uint64_t)*v);
}

static void archive_put_real(struct svi_archive *a, const char *name, double *v) {
    uint64_t bits;
    memcpy(&bits, v, sizeof bits);
    append_key(a, name);
    append_word(a, FLOAT64, bits);
}

static void archive_put_piece(struct svi_archive *a, const char *name, enum svi_archive_type type,
                              const void *v, size_t size) {
    uint32_t length = htobe32((uint32_t)size);
    uint8_t head[6] = {exts[type] ? EXT32 : BIN32};
    memcpy(head + 1, &length, sizeof length);
    head[5] = exts[type];
    append_key(a, name);
    archive_append(a, head, exts[type] ? 6 : 5);
    archive_append(a, v, size);
}

static void archive_put_block(struct svi_archive *a, const char *name, enum svi_archive_type type, void *v,
                              int64_t count) {
    /* Whole elements per piece; the last piece is written even if empty, so that the name always appears. */
    const int64_t piece =
        ((struct svi_archive_out *)a)->piece / svi_archive_size[type] * svi_archive_size[type];
    const uint8_t *from = v;
    int64_t size = count * svi_archive_size[type];
    for (; size > piece; from += piece, size -= piece)
        archive_put_piece(a, name, type, from, (size_t)piece);
    archive_put_piece(a, name, type, from, (size_t)size);
}

static const struct svi_archive_form named_out = {archive_put_integer, archive_put_real, archive_put_block,
                                                  NULL};

static struct svi_archive archive_begin(const struct svi_archive_form *form, bool loading,
                                        const char *section, svs_error *err) {
    err->code = SVS_OK;
    err->text[0] = '\0';
    return (struct svi_archive){form, loading, section, err};
}

void svi_archive_out_begin(struct svi_archive_out *o, struct svi_bytes *bytes, const char *section,
                           svs_error *err) {
    const uint8_t head[5] = {MAP32}; /* svi_archive_out_end fills in the number of fields */
    *o = (struct svi_archive_out){archive_begin(&named_out, false, section, err), .bytes = bytes,
                                  .start = bytes ? bytes->size : 0, .piece = SVI_ARCHIVE_PIECE};
    archive_append(&o->archive, head, sizeof head);
}

svs_code svi_archive_out_end(struct svi_archive_out *o) {
    uint32_t fields = htobe32(o->fields);
    /* After a failure nothing of the section stays: it would have no head. */
    if (o->bytes && svi_archive_ok(&o->archive))
        memcpy(o->bytes->data + o->start + 1, &fields, sizeof fields);
    else if (o->bytes)
        o->bytes->size = o->start;
    return o->archive.err->code;
}

/* ---- the packed form */

static void packed_put_integer(struct svi_archive *a, const char *name, int64_t *v) {
    uint64_t bits = (uint64_t)*v << 1 ^ (*v < 0 ? UINT64_MAX : 0); /* zigzag: small negatives stay short */
    uint8_t out[MAX_VARINT];
    size_t size = 0;
    (void)name;
    for (; bits >= 0x80; bits >>= 7)
        out[size++] = (uint8_t)(bits | 0x80);
    out[size++] = (uint8_t)bits;
    archive_append(a, out, size);
}

static void packed_put_real(struct svi_archive *a, const char *name, double *v) {
    (void)name;
    archive_append(a, v, sizeof *v);
}

static void packed_put_block(struct svi_archive *a, const char *name, enum svi_archive_type type, void *v,
                             int64_t count) {
    (void)name;
    archive_append(a, v, (size_t)count * svi_archive_size[type]);
}

static const struct svi_archive_form packed_out = {packed_put_integer, packed_put_real, packed_put_block,
                                                   NULL};

void svi_packed_out_begin(struct svi_archive_out *o, struct svi_bytes *bytes, const char *section,
                          svs_error *err) {
    *o = (struct svi_archive_out){archive_begin(&packed_out, false, section, err), .bytes = bytes};
}

/* ---- reading the named form */

static void archive_damaged(struct svi_archive *a, const char *name, const char *what) {
    char text[128];
    snprintf(text, sizeof text, "the field %s %s", name, what);
    svi_archive_fail(a, SVS_DAMAGED, text);
}

#define WRONG "has another type or length"

/* Reads the next field, which must have this name: the order of fields is part of the format. A container is
 * refused, because it would not be skipped as a whole. */
static bool archive_next(struct svi_archive *a, const char *name, struct svi_item *value) {
    struct svi_archive_in *in = (struct svi_archive_in *)a;
    struct svi_item key;
    if (in->at < in->end) {
        const uint8_t *at = svi_item_read(in->at, &key);
        if (svi_item_is(&key, name)) {
            in->at = svi_item_read(at, value);
            bool scalar = value->type != SVI_ARRAY && value->type != SVI_MAP;
            return svi_archive_check(a, scalar, "a field is a container");
        }
    }
    archive_damaged(a, name, "is not where it should be");
    return false;
}

static bool archive_get(struct svi_archive *a, const char *name, enum svi_item_type type,
                        struct svi_item *item) {
    if (!archive_next(a, name, item))
        return false;
    if (item->type != type)
        archive_damaged(a, name, WRONG);
    return item->type == type;
}

static void archive_get_integer(struct svi_archive *a, const char *name, int64_t *v) {
    struct svi_item item;
    if (archive_get(a, name, SVI_INT, &item))
        *v = item.i;
}

static void archive_get_real(struct svi_archive *a, const char *name, double *v) {
    struct svi_item item;
    if (archive_get(a, name, SVI_REAL, &item))
        *v = item.r;
}

static void archive_get_block(struct svi_archive *a, const char *name, enum svi_archive_type type, void *v,
                              int64_t count) {
    struct svi_item item;
    const uint8_t ext = exts[type];
    uint64_t left = (uint64_t)count * svi_archive_size[type], done = 0;
    /* The pieces must fill the block exactly; an empty piece is valid only for an empty block. */
    do {
        if (!archive_next(a, name, &item))
            return;
        const bool right = ext ? item.type == SVI_EXT && item.ext == ext : item.type == SVI_BIN;
        if (!right || count < 0 || item.length > left || (item.length == 0 && left > 0)) {
            archive_damaged(a, name, WRONG);
            return;
        }
        if (item.length > 0) /* v may be NULL for an empty block */
            memcpy((uint8_t *)v + done, item.body, item.length);
        done += item.length;
        left -= item.length;
    } while (left > 0);
}

static int64_t archive_bytes_left(const struct svi_archive *a) {
    const struct svi_archive_in *in = (const struct svi_archive_in *)a;
    return in->end - in->at;
}

static const struct svi_archive_form named_in = {archive_get_integer, archive_get_real, archive_get_block,
                                                 archive_bytes_left};

void svi_archive_in_begin(struct svi_archive_in *i, const void *bytes, size_t size, const char *section,
                          svs_error *err) {
    struct svi_item map;
    const uint8_t *at = bytes;
    *i = (struct svi_archive_in){archive_begin(&named_in, true, section, err), bytes, at + size};
    /* Exactly one map and nothing after it: from here on, the bytes left are the fields left. Depth 2 is the
     * map and a container in it, which archive_next then refuses. */
    if (svi_walk(&at, i->end, 2) == SVS_OK && at == i->end) {
        i->at = svi_item_read(bytes, &map);
        if (map.type == SVI_MAP)
            return;
    }
    svi_archive_fail(&i->archive, SVS_DAMAGED, "its bytes are not one msgpack map");
}

svs_code svi_archive_in_end(struct svi_archive_in *i) {
    svi_archive_check(&i->archive, i->at == i->end, "it has unknown fields");
    return i->archive.err->code;
}

/* ---- reading the packed form */

static bool packed_take(struct svi_archive *a, void *v, uint64_t size) {
    struct svi_archive_in *in = (struct svi_archive_in *)a;
    if (!svi_archive_check(a, size <= (uint64_t)(in->end - in->at), "it is truncated"))
        return false;
    if (size > 0) /* v may be NULL for an empty block */
        memcpy(v, in->at, (size_t)size);
    in->at += size;
    return true;
}

static void packed_get_integer(struct svi_archive *a, const char *name, int64_t *v) {
    uint64_t bits = 0;
    uint8_t byte = 0x80;
    (void)name;
    for (int i = 0; byte & 0x80; i++) { /* bounded: shifts stay below 64 */
        if (!svi_archive_check(a, i < MAX_VARINT, "an integer has too many bytes") ||
            !packed_take(a, &byte, 1))
            return;
        bits |= (uint64_t)(byte & 0x7f) << 7 * i;
    }
    bits = bits >> 1 ^ (bits & 1 ? UINT64_MAX : 0); /* undoes the zigzag */
    memcpy(v, &bits, sizeof bits);
}

static void packed_get_real(struct svi_archive *a, const char *name, double *v) {
    (void)name;
    packed_take(a, v, sizeof *v);
}

static void packed_get_block(struct svi_archive *a, const char *name, enum svi_archive_type type, void *v,
                             int64_t count) {
    const struct svi_archive_in *in = (const struct svi_archive_in *)a;
    (void)name;
    /* Divided, not multiplied: count * size may overflow before it is compared. */
    if (svi_archive_check(a, count >= 0 && count <= (in->end - in->at) / svi_archive_size[type],
                          "it is truncated"))
        packed_take(a, v, (uint64_t)count * svi_archive_size[type]);
}

static const struct svi_archive_form packed_in = {packed_get_integer, packed_get_real, packed_get_block,
                                                  archive_bytes_left};

void svi_packed_in_begin(struct svi_archive_in *i, const void *bytes, size_t size, const char *section,
                         svs_error *err) {
    *i = (struct svi_archive_in){archive_begin(&packed_in, true, section, err), bytes,
                                 (const uint8_t *)bytes + size};
}

/* ---- zeros: a token t < RUN is followed by t + 1 literal bytes; a token RUN + t stands for t + 1 zeros */

/* Number of zeros at `at`, at most RUN. */
static size_t zeros_at(const uint8_t *at, const uint8_t *end) {
    const size_t limit = end - at < RUN ? (size_t)(end - at) : RUN;
    size_t n = 0;
    while (n < limit && at[n] == 0)
        n++;
    return n;
}

/* Number of bytes before the next MIN_RUN zeros, at most RUN. */
static size_t literals_at(const uint8_t *at, const uint8_t *end) {
    const size_t limit = end - at < RUN ? (size_t)(end - at) : RUN;
    size_t n = 0;
    while (n < limit &&
           !(at[n] == 0 && end - at - (ptrdiff_t)n >= MIN_RUN && at[n + 1] == 0 && at[n + 2] == 0))
        n++;
    return n;
}

svs_code svi_pack_zeros(const uint8_t *bytes, size_t size, struct svi_bytes *out) {
    const uint8_t *at = bytes, *const end = bytes + size;
    /* Worst case, no zeros: one token for each RUN bytes. So the loop writes without checks: a zero run of at
     * least MIN_RUN bytes leaves space for its own token and for that of the literals after it. */
    if (svi_bytes_reserve(out, size + size / RUN + 1) != SVS_OK)
        return SVS_NO_MEMORY;
    uint8_t *to = out->data + out->size;
    while (at < end) {
        size_t n = zeros_at(at, end);
        if (n >= MIN_RUN) {
            *to++ = (uint8_t)(RUN + n - 1);
        } else {
            n = literals_at(at, end);
            *to++ = (uint8_t)(n - 1);
            memcpy(to, at, n);
            to += n;
        }
        at += n;
    }
    out->size = (size_t)(to - out->data);
    return SVS_OK;
}

svs_code svi_unpack_zeros(const uint8_t *bytes, size_t size, size_t max_size, struct svi_bytes *out) {
    const uint8_t *at = bytes, *const end = bytes + size;
    out->size = 0;
    while (at < end) {
        const bool zeros = *at >= RUN;
        const size_t n = (size_t)(*at & (RUN - 1)) + 1;
        at++;
        if (n > max_size - out->size || (!zeros && n > (size_t)(end - at)))
            return SVS_DAMAGED;
        if (svi_bytes_reserve(out, n) != SVS_OK)
            return SVS_NO_MEMORY;
        if (zeros)
            memset(out->data + out->size, 0, n);
        else
            memcpy(out->data + out->size, at, n);
        out->size += n;
        at += zeros ? 0 : n;
    }
    return SVS_OK;
}
