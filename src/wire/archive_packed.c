#include "wire/archive_packed.h"

#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements are copied as they are");

#define VARINT_MOST 10  /* bytes of one */
#define RUN         128 /* literal bytes, and zeros, of one token at most */
#define RUN_LEAST   3   /* zeros that are worth a token */

static void packed_append(struct svi_archive *a, const void *bytes, size_t size) {
    struct svi_packed_out *o = (struct svi_packed_out *)a;
    if (size > 0 && svi_bytes_append(o->bytes, bytes, size) != SVS_OK)
        svi_archive_fail(a, SVS_NO_MEMORY, "no memory for its bytes");
}

static void packed_put_integer(struct svi_archive *a, const char *name, int64_t *v) {
    uint64_t bits = (uint64_t)*v << 1 ^ (*v < 0 ? UINT64_MAX : 0);
    uint8_t out[VARINT_MOST];
    size_t size = 0;
    (void)name;
    for (; bits >= 0x80; bits >>= 7)
        out[size++] = (uint8_t)(bits | 0x80);
    out[size++] = (uint8_t)bits;
    packed_append(a, out, size);
}

static void packed_put_real(struct svi_archive *a, const char *name, double *v) {
    (void)name;
    packed_append(a, v, sizeof *v);
}

static void packed_put_block(struct svi_archive *a, const char *name, enum svi_archive_type type, void *v,
                             int64_t count) {
    (void)name;
    packed_append(a, v, (size_t)count * svi_archive_size[type]);
}

static const struct svi_archive_form packed_out_form = {packed_put_integer, packed_put_real, packed_put_block,
                                                        NULL};

void svi_packed_out_begin(struct svi_packed_out *o, struct svi_bytes *bytes, const char *section,
                          svs_error *err) {
    err->code = SVS_OK;
    err->text[0] = '\0';
    *o = (struct svi_packed_out){{&packed_out_form, false, section, err}, bytes};
}

/* ---- reading */

static bool packed_take(struct svi_archive *a, void *v, uint64_t size) {
    struct svi_packed_in *in = (struct svi_packed_in *)a;
    if (!svi_archive_check(a, size <= (uint64_t)(in->end - in->at), "it is truncated"))
        return false;
    if (size > 0) /* v may be NULL else */
        memcpy(v, in->at, (size_t)size);
    in->at += size;
    return true;
}

static void packed_get_integer(struct svi_archive *a, const char *name, int64_t *v) {
    uint64_t bits = 0;
    uint8_t byte = 0x80;
    (void)name;
    for (int i = 0; byte & 0x80; i++) {
        if (!svi_archive_check(a, i < VARINT_MOST, "an integer has too many bytes") ||
            !packed_take(a, &byte, 1))
            return;
        bits |= (uint64_t)(byte & 0x7f) << 7 * i;
    }
    bits = bits >> 1 ^ (bits & 1 ? UINT64_MAX : 0);
    memcpy(v, &bits, sizeof bits);
}

static void packed_get_real(struct svi_archive *a, const char *name, double *v) {
    (void)name;
    packed_take(a, v, sizeof *v);
}

static void packed_get_block(struct svi_archive *a, const char *name, enum svi_archive_type type, void *v,
                             int64_t count) {
    const struct svi_packed_in *in = (const struct svi_packed_in *)a;
    (void)name;
    if (svi_archive_check(a, count >= 0 && count <= (in->end - in->at) / svi_archive_size[type],
                          "it is truncated"))
        packed_take(a, v, (uint64_t)count * svi_archive_size[type]);
}

static int64_t packed_left(const struct svi_archive *a) {
    const struct svi_packed_in *in = (const struct svi_packed_in *)a;
    return in->end - in->at;
}

static const struct svi_archive_form packed_in_form = {packed_get_integer, packed_get_real, packed_get_block,
                                                       packed_left};

void svi_packed_in_begin(struct svi_packed_in *i, const void *bytes, size_t size, const char *section,
                         svs_error *err) {
    err->code = SVS_OK;
    err->text[0] = '\0';
    *i = (struct svi_packed_in){{&packed_in_form, true, section, err}, bytes, (const uint8_t *)bytes + size};
}

svs_code svi_packed_in_end(struct svi_packed_in *i) {
    svi_archive_check(&i->archive, i->at == i->end, "it has unknown fields");
    return i->archive.err->code;
}

/* ---- zeros: a token below RUN is followed by that many bytes and one, the others are as many zeros */

static size_t zeros_at(const uint8_t *at, const uint8_t *end) {
    const size_t most = end - at < RUN ? (size_t)(end - at) : RUN;
    size_t n = 0;
    while (n < most && at[n] == 0)
        n++;
    return n;
}

static size_t literals_at(const uint8_t *at, const uint8_t *end) {
    const size_t most = end - at < RUN ? (size_t)(end - at) : RUN;
    size_t n = 0;
    while (n < most &&
           !(at[n] == 0 && end - at - (ptrdiff_t)n >= RUN_LEAST && at[n + 1] == 0 && at[n + 2] == 0))
        n++;
    return n;
}

svs_code svi_pack_zeros(const uint8_t *bytes, size_t size, struct svi_bytes *out) {
    const uint8_t *at = bytes, *const end = bytes + size;
    if (svi_bytes_reserve(out, size + size / RUN + 1) != SVS_OK)
        return SVS_NO_MEMORY;
    uint8_t *to = out->data + out->size;
    while (at < end) {
        size_t n = zeros_at(at, end);
        if (n >= RUN_LEAST) {
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

svs_code svi_unpack_zeros(const uint8_t *bytes, size_t size, size_t most, struct svi_bytes *out) {
    const uint8_t *at = bytes, *const end = bytes + size;
    out->size = 0;
    while (at < end) {
        const bool zeros = *at >= RUN;
        const size_t n = (size_t)(*at & (RUN - 1)) + 1;
        at++;
        if (n > most - out->size || (!zeros && n > (size_t)(end - at)))
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
