#include "formats/checked_file.h"

#include <zlib.h>

#include "base/fail.h"
#include "wire/decode.h"

#define CRC_KEY                                                                                              \
    "\xa3"                                                                                                   \
    "crc"
#define KEY_BYTES (sizeof CRC_KEY - 1)

static uint32_t checked_file_crc(const uint8_t *bytes, size_t size) {
    return (uint32_t)crc32(0, bytes, (uInt)size);
}

struct svi_open_map svi_checked_file_begin(struct svi_pack *p, struct svi_bytes *out, const char *format,
                                           int version) {
    svi_pack_begin(p, out);
    const struct svi_open_map map = svi_pack_open(p);
    svi_put_text(p, "format", format);
    svi_put_int(p, "v", version);
    return map;
}

svs_code svi_checked_file_end(struct svi_pack *p, struct svi_open_map map) {
    /* The checksum covers the head of the map with its pair count. So the pair of the checksum is counted
     * before it exists, and appended after the map is closed. */
    svi_pack_promise(p, 1);
    svi_pack_close(p, map);
    const uint32_t crc = p->failed ? 0 : checked_file_crc(p->out->data + p->start, p->out->size - p->start);
    const uint32_t wide = htobe32(crc);
    svi_pack_raw(p, CRC_KEY "\xce",
                 KEY_BYTES + 1); /* always a uint 32: the length does not depend on the value */
    svi_pack_raw(p, &wide, sizeof wide);
    return svi_pack_end(p);
}

bool svi_checked_file_looks(const uint8_t *bytes, size_t size) {
    /* fixmap, map 16, map 32. */
    return size > 0 && ((bytes[0] & 0xf0) == 0x80 || bytes[0] == 0xde || bytes[0] == 0xdf);
}

svs_code svi_checked_file_open(struct svi_checked_file *c, const uint8_t *bytes, size_t size,
                               svs_error *err) {
    static const struct svi_field fields[] = {
        SVI_FIELD_STRING(struct svi_checked_file, format),
        SVI_FIELD(struct svi_checked_file, v, INTEGER, 0, SVI_FIELD_UNLIMITED),
        SVI_FIELD(struct svi_checked_file, crc, ANY, 0, 0)};
    *c = (struct svi_checked_file){.v = -1, .bytes = bytes, .end = bytes + size};
    if (!svi_checked_file_looks(bytes, size))
        return svi_fail(err, SVS_WRONG_TYPE,
                        "this is not a model file: expected one of `svmstream train` or `novelty train`, a "
                        "saved model event, or one of LIBLINEAR or LIBSVM");
    SVI_TRY(svi_msgpack_check(bytes, size, SVI_DEPTH_MAX, err));
    /* Missing or odd fields are not an error yet: the caller looks at the format first, and it may be a
     * foreign map. */
    (void)svi_fields_read("file", SVI_FIELDS(fields), bytes, c->end, c, NULL);
    return SVS_OK;
}

/* True if the checksum is present, is the last key, and is right. */
static bool checked_file_is_sound(const struct svi_checked_file *c) {
    struct svi_item crc;
    if (!c->crc || (size_t)(c->crc - c->bytes) <= KEY_BYTES || svi_item_read(c->crc, &crc) != c->end)
        return false;
    /* The key stands directly before its value; everything before the key is covered. */
    const uint8_t *key = c->crc - KEY_BYTES;
    return crc.type == SVI_INT && memcmp(key, CRC_KEY, KEY_BYTES) == 0 &&
           (uint32_t)crc.i == checked_file_crc(c->bytes, (size_t)(key - c->bytes));
}

svs_code svi_checked_file_read(const struct svi_checked_file *c, int version, const char *what,
                               const struct svi_field *fields, size_t count, void *to, svs_error *err) {
    /* Version before checksum: a newer version may have another one. */
    if (c->v != version)
        return svi_fail(err, SVS_UNAVAILABLE,
                        "the model file has version %lld; this program reads version %d: use a newer one",
                        (long long)c->v, version);
    if (!checked_file_is_sound(c))
        return svi_fail(err, SVS_INVALID, "the checksum of the model file is wrong: the file is damaged");
    return svi_fields_read(what, fields, count, c->bytes, c->end, to, err);
}
