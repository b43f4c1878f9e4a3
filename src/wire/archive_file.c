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

/* The msgpack extension of a block of each type; 0: bin. */
static const uint8_t exts[] = {[SVI_ARCHIVE_BYTES] = 0,
                               [SVI_ARCHIVE_DOUBLES] = 2,
                               [SVI_ARCHIVE_INT32] = 3,
                               [SVI_ARCHIVE_INT64] = 4,
                               [SVI_ARCHIVE_FLOATS] = 5};

static void archive_append(struct svi_archive *a, const void *bytes, size_t size) {
    struct svi_archive_out *o = (struct svi_archive_out *)a;
    o->size += size;
    if (o->bytes && svi_archive_ok(a) && svi_bytes_append(o->bytes, bytes, size) != SVS_OK)
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
    svi_store_word(item, lead, bits);
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
    if (size > 0)
        archive_append(a, v, size);
}

static void archive_put_block(struct svi_archive *a, const char *name, enum svi_archive_type type, void *v,
                              int64_t count) {
    const int64_t piece =
        ((struct svi_archive_out *)a)->piece / svi_archive_size[type] * svi_archive_size[type];
    const uint8_t *from = v;
    int64_t size = count * svi_archive_size[type];
    for (; size > piece; from += piece, size -= piece)
        archive_put_piece(a, name, type, from, (size_t)piece);
    archive_put_piece(a, name, type, from, (size_t)size);
}

static const struct svi_archive_form out_form = {archive_put_integer, archive_put_real, archive_put_block,
                                                 NULL};

void svi_archive_out_begin(struct svi_archive_out *o, struct svi_bytes *bytes, const char *section,
                           svs_error *err) {
    const uint8_t head[5] = {MAP32};
    err->code = SVS_OK;
    err->text[0] = '\0';
    *o = (struct svi_archive_out){
        {&out_form, false, section, err}, bytes, bytes ? bytes->size : 0, 0, 0, SVI_ARCHIVE_PIECE};
    archive_append(&o->archive, head, sizeof head);
}

svs_code svi_archive_out_end(struct svi_archive_out *o) {
    uint32_t fields = htobe32(o->fields);
    if (o->bytes && svi_archive_ok(&o->archive))
        memcpy(o->bytes->data + o->start + 1, &fields, sizeof fields);
    else if (o->bytes)
        o->bytes->size = o->start;
    return o->archive.err->code;
}

/* ---- reading */

static void archive_damaged(struct svi_archive *a, const char *name, const char *what) {
    char text[128];
    snprintf(text, sizeof text, "the field %s %s", name, what);
    svi_archive_fail(a, SVS_DAMAGED, text);
}

#define WRONG "has another type or length"

/* The next field, which must have this name. */
static bool archive_next(struct svi_archive *a, const char *name, struct svi_item *value) {
    struct svi_archive_in *in = (struct svi_archive_in *)a;
    struct svi_item key;
    if (in->left > 0) {
        const uint8_t *at = svi_item_read(in->at, &key);
        if (svi_item_is(&key, name)) {
            in->at = svi_item_read(at, value);
            in->left--;
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
    do {
        if (!archive_next(a, name, &item))
            return;
        const bool right = ext ? item.type == SVI_EXT && item.ext == ext : item.type == SVI_BIN;
        if (!right || count < 0 || item.length > left || (item.length == 0 && left > 0)) {
            archive_damaged(a, name, WRONG);
            return;
        }
        if (item.length > 0) /* v may be NULL else */
            memcpy((uint8_t *)v + done, item.body, item.length);
        done += item.length;
        left -= item.length;
    } while (left > 0);
}

static int64_t archive_bytes_left(const struct svi_archive *a) {
    const struct svi_archive_in *in = (const struct svi_archive_in *)a;
    return in->end - in->at;
}

static const struct svi_archive_form in_form = {archive_get_integer, archive_get_real, archive_get_block,
                                                archive_bytes_left};

void svi_archive_in_begin(struct svi_archive_in *i, const void *bytes, size_t size, const char *section,
                          svs_error *err) {
    struct svi_item map;
    const uint8_t *at = bytes;
    err->code = SVS_OK;
    err->text[0] = '\0';
    *i = (struct svi_archive_in){{&in_form, true, section, err}, bytes, (const uint8_t *)bytes + size, 0};
    if (svi_walk(&at, i->end, 2) != SVS_OK || at != i->end) {
        svi_archive_fail(&i->archive, SVS_DAMAGED, "its bytes are not one msgpack map");
        return;
    }
    i->at = svi_item_read(bytes, &map);
    if (svi_archive_check(&i->archive, map.type == SVI_MAP, "its bytes are not one msgpack map"))
        i->left = map.length;
}

svs_code svi_archive_in_end(struct svi_archive_in *i) {
    svi_archive_check(&i->archive, i->left == 0, "it has unknown fields");
    return i->archive.err->code;
}
