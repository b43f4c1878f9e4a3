#include "wire/model_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "data/number.h"
#include "wire/cursor.h"
#include "wire/decode.h"
#include "wire/kernel_wire.h"
#include "wire/model_text_in.h"
#include "wire/pack.h"

#define FORMAT    "svmstream-model"
#define VERSION   1
#define BEHIND    (SVI_NUMBER_PAD + 1)
#define FILE_MAX  ((size_t)1 << 31)
#define CRC_BYTES 9 /* "\xa3crc" and a 32-bit number */

/* ---- writing */

static uint32_t checksum(const void *bytes, size_t size) {
    return (uint32_t)crc32(0, bytes, (uInt)size);
}

static svs_code encode(const struct svi_machine *m, struct svi_bytes *out) {
    struct svi_bytes model = {0};
    struct svi_pack p;
    svs_code code =
        m->linear ? svi_model_encode(m->linear, NULL, 0, &model) : svi_kernel_encode(m->kernel, &model);
    if (code == SVS_OK) {
        svi_pack_begin(&p, out);
        svi_pack_map(&p, 5);
        svi_pack_key(&p, "format");
        svi_pack_text(&p, FORMAT);
        svi_pack_key(&p, "v");
        svi_pack_int(&p, VERSION);
        svi_pack_key(&p, "kind");
        svi_pack_text(&p, m->linear ? "linear" : "kernel");
        svi_pack_key(&p, "model");
        svi_pack_raw(&p, model.data, model.size);
        uint32_t crc = checksum(out->data, out->size);
        const uint8_t tail[CRC_BYTES] = {
            0xa3,        'c', 'r', 'c', 0xce, (uint8_t)(crc >> 24), (uint8_t)(crc >> 16), (uint8_t)(crc >> 8),
            (uint8_t)crc};
        svi_pack_raw(&p, tail, sizeof tail);
        code = svi_pack_end(&p);
    }
    svi_bytes_clear(&model);
    return code;
}

static svs_code write_own(const struct svi_machine *m, FILE *to, svs_error *err) {
    struct svi_bytes bytes = {0};
    svs_code code = encode(m, &bytes);
    if (code != SVS_OK)
        svi_fail_memory(err, "a model file");
    else if (fwrite(bytes.data, 1, bytes.size, to) != bytes.size)
        code = svi_fail(err, SVS_IO, "the model could not be written: is the disk full?");
    svi_bytes_clear(&bytes);
    return code;
}

static svs_code write_as(const struct svi_machine *m, FILE *to, enum svi_model_format format,
                         svs_error *err) {
    if (format == SVI_FORMAT_LIBSVM)
        return svi_libsvm_write(m, to, err);
    if (format == SVI_FORMAT_OWN)
        return write_own(m, to, err);
    if (m->kernel)
        return svi_fail(err, SVS_UNAVAILABLE,
                        "LIBLINEAR's format holds linear models only: take the format libsvm or own");
    return svs_model_write_liblinear(m->linear, to, err);
}

static svs_code close_file(FILE *to, const char *path, svs_code code, svs_error *err) {
    bool written = fflush(to) == 0 && fsync(fileno(to)) == 0;
    if (fclose(to) != 0)
        written = false;
    return code != SVS_OK || written ? code : svi_fail(err, SVS_IO, "%.150s: %s", path, strerror(errno));
}

svs_code svi_machine_write(const struct svi_machine *m, const char *path, enum svi_model_format format,
                           svs_error *err) {
    char beside[4096];
    if (strcmp(path, "-") == 0) {
        svs_code code = write_as(m, stdout, format, err);
        return code != SVS_OK || fflush(stdout) == 0
                   ? code
                   : svi_fail(err, SVS_IO, "standard output: %s", strerror(errno));
    }
    if (snprintf(beside, sizeof beside, "%s.tmp", path) >= (int)sizeof beside)
        return svi_fail(err, SVS_IO, "the path of the model file is too long");
    FILE *to = fopen(beside, "wb");
    if (!to)
        return svi_fail(err, SVS_IO, "%.150s: %s", beside, strerror(errno));
    svs_code code = close_file(to, beside, write_as(m, to, format, err), err);
    if (code == SVS_OK && rename(beside, path) != 0)
        code = svi_fail(err, SVS_IO, "%.150s: %s", path, strerror(errno));
    if (code != SVS_OK)
        unlink(beside);
    return code;
}

/* ---- reading */

/* What the outer map says. */
struct envelope {
    const uint8_t *model;
    size_t model_size;
    bool format, kernel, crc;
    int64_t version;
    uint32_t sum, said;
};

static bool is_text(const struct svi_item *item, const char *text) {
    return item->type == SVI_STRING && item->length == strlen(text) &&
           memcmp(item->body, text, item->length) == 0;
}

/* One pair of checked bytes. */
static svs_code take_pair(struct envelope *e, const uint8_t *start, const uint8_t **at, const uint8_t *end) {
    struct svi_item key, item;
    const uint8_t *key_at = *at, *value_at = svi_item_read(*at, &key);
    *at = value_at;
    svs_code code = svi_walk(at, end, SVI_DEPTH_MAX);
    if (code != SVS_OK)
        return code;
    svi_item_read(value_at, &item);
    if (is_text(&key, "format"))
        e->format = is_text(&item, FORMAT);
    else if (is_text(&key, "v"))
        e->version = item.type == SVI_INT ? item.i : -1;
    else if (is_text(&key, "kind"))
        e->kernel = is_text(&item, "kernel");
    else if (is_text(&key, "model")) {
        e->model = value_at;
        e->model_size = (size_t)(*at - value_at);
    } else if (is_text(&key, "crc")) {
        e->crc = item.type == SVI_INT && *at == end;
        e->said = (uint32_t)item.i;
        e->sum = checksum(start, (size_t)(key_at - start));
    }
    return SVS_OK;
}

static svs_code open_envelope(struct envelope *e, const uint8_t *bytes, size_t size, svs_error *err) {
    const uint8_t *at = bytes, *end = bytes + size;
    struct svi_item map;
    svs_code code = svi_msgpack_check(bytes, size, SVI_DEPTH_MAX, err);
    if (code != SVS_OK)
        return code;
    at = svi_item_read(at, &map);
    if (map.type != SVI_MAP)
        return svi_fail(err, SVS_WRONG_TYPE, "the file is no model: it holds %s", svi_item_name(&map));
    for (uint32_t i = 0; i < map.length && code == SVS_OK; i++)
        code = take_pair(e, bytes, &at, end);
    return code;
}

static svs_code read_own(struct svi_machine *m, const uint8_t *bytes, size_t size, svs_error *err) {
    struct envelope e = {.version = -1};
    svs_error mine = {0};
    svs_code code = open_envelope(&e, bytes, size, err);
    if (code != SVS_OK)
        return code;
    if (!e.format) { /* the payload of a `model.` event is a model too */
        m->linear = svs_model_decode(bytes, size, &mine);
    } else {
        if (e.version != VERSION)
            return svi_fail(
                err, SVS_UNAVAILABLE,
                "the model file has version %lld; this program reads version %d: take a newer one",
                (long long)e.version, VERSION);
        if (!e.crc || e.sum != e.said)
            return svi_fail(err, SVS_INVALID, "the checksum of the model file is wrong: the file is damaged");
        if (!e.model)
            return svi_fail(err, SVS_WRONG_TYPE, "the model file has no model");
        if (e.kernel)
            m->kernel = svi_kernel_decode(e.model, e.model_size, &mine);
        else
            m->linear = svs_model_decode(e.model, e.model_size, &mine);
    }
    return m->linear || m->kernel ? SVS_OK : svi_fail(err, mine.code, "%s", mine.text);
}

static svs_code read_bytes(struct svi_machine *m, char *bytes, size_t size, svs_error *err) {
    if (size == 0)
        return svi_fail(err, SVS_EMPTY, "the file is empty");
    if (strncmp(bytes, "solver_type ", 12) == 0)
        return svi_liblinear_read(m, bytes, err);
    if (strncmp(bytes, "svm_type ", 9) == 0)
        return svi_libsvm_read(m, bytes, err);
    return read_own(m, (const uint8_t *)bytes, size, err);
}

/* The whole file with a NUL and the bytes behind it that the reader of numbers may look at. */
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

svs_code svi_machine_read(struct svi_machine *m, const char *path, svs_error *err) {
    char *bytes = NULL;
    size_t size = 0;
    svs_error mine = {0};
    *m = (struct svi_machine){0};
    FILE *from = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (!from)
        return svi_fail(err, SVS_IO, "%.150s: %s", path, strerror(errno));
    svs_code code = slurp(from, &bytes, &size, &mine);
    if (from != stdin)
        fclose(from);
    if (code == SVS_OK)
        code = read_bytes(m, bytes, size, &mine);
    svi_free(bytes);
    if (code != SVS_OK) {
        svi_machine_clear(m);
        return svi_fail(err, code, "%.100s: %.150s", path, mine.text);
    }
    return SVS_OK;
}

void svi_machine_clear(struct svi_machine *m) {
    svs_model_free(&m->linear);
    svs_kernel_model_free(&m->kernel);
}
