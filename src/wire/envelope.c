#include "wire/envelope.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "data/number.h"
#include "wire/decode.h"
#include "wire/fields.h"

#define BEHIND    (SVI_NUMBER_PAD + 1)
#define FILE_MAX  ((size_t)1 << 31)
#define CRC_BYTES 9 /* "\xa3crc" and a 32-bit number */

static uint32_t checksum(const void *bytes, size_t size) {
    return (uint32_t)crc32(0, bytes, (uInt)size);
}

void svi_envelope_begin(struct svi_pack *p, struct svi_bytes *out, const char *format, int version,
                        size_t more) {
    svi_pack_begin(p, out);
    svi_pack_map(p, more + 3);
    svi_pack_key(p, "format");
    svi_pack_text(p, format);
    svi_pack_key(p, "v");
    svi_pack_int(p, version);
}

svs_code svi_envelope_end(struct svi_pack *p) {
    const uint32_t crc = p->failed ? 0 : checksum(p->out->data + p->start, p->out->size - p->start);
    const uint8_t tail[CRC_BYTES] = {
        0xa3,        'c', 'r', 'c', 0xce, (uint8_t)(crc >> 24), (uint8_t)(crc >> 16), (uint8_t)(crc >> 8),
        (uint8_t)crc};
    svi_pack_raw(p, tail, sizeof tail);
    return svi_pack_end(p);
}

/* One pair of checked bytes. */
static svs_code take_pair(struct svi_envelope *e, const uint8_t **at) {
    struct svi_item key, item;
    const uint8_t *key_at = *at, *value_at = svi_item_read(*at, &key);
    *at = value_at;
    svs_code code = svi_walk(at, e->end, SVI_DEPTH_MAX);
    if (code != SVS_OK)
        return code;
    svi_item_read(value_at, &item);
    if (svi_item_is(&key, "format"))
        e->format = item;
    else if (svi_item_is(&key, "v"))
        e->version = item.type == SVI_INT ? item.i : -1;
    else if (svi_item_is(&key, "crc"))
        e->sound = item.type == SVI_INT && *at == e->end &&
                   (uint32_t)item.i == checksum(e->bytes, (size_t)(key_at - e->bytes));
    return SVS_OK;
}

svs_code svi_envelope_open(struct svi_envelope *e, const uint8_t *bytes, size_t size, svs_error *err) {
    struct svi_item map;
    *e = (struct svi_envelope){.version = -1, .bytes = bytes, .end = bytes + size};
    svs_code code = svi_msgpack_check(bytes, size, SVI_DEPTH_MAX, err);
    if (code != SVS_OK)
        return code;
    const uint8_t *at = svi_item_read(bytes, &map);
    if (map.type != SVI_MAP)
        return svi_fail(err, SVS_WRONG_TYPE, "the file is no model: it holds %s", svi_item_name(&map));
    for (uint32_t i = 0; i < map.length && code == SVS_OK; i++)
        code = take_pair(e, &at);
    return code;
}

svs_code svi_envelope_check(const struct svi_envelope *e, int version, svs_error *err) {
    if (e->version != version)
        return svi_fail(err, SVS_UNAVAILABLE,
                        "the model file has version %lld; this program reads version %d: take a newer one",
                        (long long)e->version, version);
    if (!e->sound)
        return svi_fail(err, SVS_INVALID, "the checksum of the model file is wrong: the file is damaged");
    return SVS_OK;
}

/* ---- files */

static svs_code close_file(FILE *to, const char *path, svs_code code, svs_error *err) {
    bool written = fflush(to) == 0 && fsync(fileno(to)) == 0;
    if (fclose(to) != 0)
        written = false;
    return code != SVS_OK || written ? code : svi_fail(err, SVS_IO, "%.150s: %s", path, strerror(errno));
}

/* Or not there yet. */
static bool is_plain_file(const char *path) {
    struct stat about;
    return stat(path, &about) != 0 || S_ISREG(about.st_mode);
}

svs_code svi_file_write(const char *path, svs_code (*body)(void *user, FILE *to, svs_error *err), void *user,
                        svs_error *err) {
    char beside[4096];
    if (strcmp(path, "-") == 0) {
        svs_code code = body(user, stdout, err);
        return code != SVS_OK || fflush(stdout) == 0
                   ? code
                   : svi_fail(err, SVS_IO, "standard output: %s", strerror(errno));
    }
    if (!is_plain_file(path)) { /* a pipe or a device is written to; a rename would put a file in its place */
        FILE *to = fopen(path, "wb");
        if (!to)
            return svi_fail(err, SVS_IO, "%.150s: %s", path, strerror(errno));
        svs_code code = body(user, to, err);
        return fclose(to) == 0 || code != SVS_OK ? code
                                                 : svi_fail(err, SVS_IO, "%.150s: %s", path, strerror(errno));
    }
    if (snprintf(beside, sizeof beside, "%s.tmp", path) >= (int)sizeof beside)
        return svi_fail(err, SVS_IO, "the path of the file is too long");
    FILE *to = fopen(beside, "wb");
    if (!to)
        return svi_fail(err, SVS_IO, "%.150s: %s", beside, strerror(errno));
    svs_code code = close_file(to, beside, body(user, to, err), err);
    if (code == SVS_OK && rename(beside, path) != 0)
        code = svi_fail(err, SVS_IO, "%.150s: %s", path, strerror(errno));
    if (code != SVS_OK)
        unlink(beside);
    return code;
}

static svs_code slurp(FILE *from, char **bytes, size_t *size, svs_error *err) {
    size_t room = 1 << 16;
    *bytes = svi_alloc(room);
    *size = 0;
    while (*bytes) {
        *size += fread(*bytes + *size, 1, room - BEHIND - *size, from);
        if (ferror(from))
            return svi_fail(err, SVS_IO, "%s", strerror(errno));
        if (feof(from))
            return SVS_OK;
        if (room >= FILE_MAX)
            return svi_fail(err, SVS_TOO_LARGE, "the file is larger than 2 GiB");
        char *more = svi_realloc(*bytes, room, 2 * room);
        if (!more)
            break;
        *bytes = more;
        room *= 2;
    }
    return svi_fail_memory(err, "a model file");
}

svs_code svi_file_read(const char *path, char **bytes, size_t *size, svs_error *err) {
    *bytes = NULL;
    FILE *from = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (!from)
        return svi_fail(err, SVS_IO, "%.150s", strerror(errno));
    svs_code code = slurp(from, bytes, size, err);
    if (from != stdin)
        fclose(from);
    return code == SVS_OK && *size == 0 ? svi_fail(err, SVS_EMPTY, "the file is empty") : code;
}
