/* A stream as bytes: a header with what the library has besides the stream, then the stream as a checkpoint
 * (store/checkpoint_file.h).
 *
 *   header   {format: "svmstream-stream", v: layout, program, interval, latest, taken, given: [key, value,
 *            ...], check}
 *
 * Loading takes the way of the maker with the settings that were given, then those that the checkpoint
 * recorded, which may have changed since, and then the state. Bytes are not trusted: the header and each
 * object of the checkpoint have checks, and what they hold is checked again when it is read. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "config/settings_record.h"
#include "library/library_internal.h"
#include "linalg/kernels.h"
#include "store/checkpoint_file.h"
#include "store/checksum.h"
#include "svmstream/svmstream.h"
#include "wire/fields.h"
#include "wire/view.h"

#define SAVE_FORMAT "svmstream-stream"
#define SAVE_PAIRS  8
#define SAVE_NAME   "the saved stream" /* in error texts */

void svs_bytes_free(void **bytes) {
    if (bytes) {
        svi_free(*bytes);
        *bytes = NULL;
    }
}

/* ---- save */

static svs_code save_header(const svs_stream *s, struct svi_bytes *out) {
    struct svi_pack p;
    svi_pack_begin(&p, out);
    svi_pack_map(&p, SAVE_PAIRS);
    svi_put_text(&p, "format", SAVE_FORMAT);
    svi_put_uint(&p, "v", SVI_STATE_LAYOUT);
    svi_put_text(&p, "program", SVS_VERSION);
    svi_put_real(&p, "interval", s->interval);
    svi_put_real(&p, "latest", s->latest);
    svi_put_int(&p, "taken", s->taken);
    svi_put_array(&p, "given", (size_t)s->given.count * 2);
    for (int i = 0; i < 2 * s->given.count; i++)
        svi_pack_text(&p, s->given.of[i]);
    svi_pack_key(&p, "check");
    svi_check_append(&p, 0, 0);
    return svi_pack_end(&p);
}

svs_code svs_stream_save(svs_stream *s, void **bytes, size_t *size, svs_error *err) {
    svs_error local;
    struct svi_checkpoint c = {0};
    struct svi_bytes out = {0};
    err = err ? err : &local;
    *bytes = NULL;
    *size = 0;
    svi_engine_refit_as_loaded(svi_stream_settle(s->stream));
    svs_code code = svi_stream_save(s->stream, &c, err);
    if (code == SVS_OK && (code = save_header(s, &out)) != SVS_OK)
        svi_fail_memory(err, "a saved stream");
    if (code == SVS_OK)
        code = svi_checkpoint_encode(&c, &out, err);
    svi_checkpoint_clear(&c);
    if (code != SVS_OK) {
        svi_bytes_clear(&out);
        return code;
    }
    *bytes = out.data;
    *size = out.size;
    return SVS_OK;
}

svs_code svs_stream_hash(svs_stream *s, char *hash, svs_error *err) {
    return svi_stream_hash(s->stream, hash, err);
}

/* ---- load */

struct save_parts {
    char program[16];
    double interval, latest;
    int64_t taken;
    const uint8_t *given;
};

static svs_code save_damaged(svs_error *err, const char *what) {
    return svi_fail(err, SVS_DAMAGED, SAVE_NAME " is damaged: %s", what);
}

static svs_code save_read_header(const void *bytes, size_t size, struct svi_header *h,
                                 struct save_parts *parts, svs_error *err) {
    static const struct svi_field fields[] = {
        SVI_FIELD_STRING(struct save_parts, program), SVI_FIELD(struct save_parts, interval, REAL, 0, 1e300),
        SVI_FIELD(struct save_parts, latest, REAL, -1e300, 1e300),
        SVI_FIELD(struct save_parts, taken, INTEGER, 0, SVI_FIELD_UNLIMITED),
        SVI_FIELD(struct save_parts, given, ANY, 0, 0)};
    uint64_t check;
    *parts = (struct save_parts){0};
    if (size == 0 || !svi_header_open(h, bytes, size, SVI_FIELDS(fields), parts))
        return save_damaged(err, "it does not begin with a header");
    switch (svi_header_check(h, SAVE_FORMAT, 0, &check)) {
    case SVI_HEADER_SOUND:
        return SVS_OK;
    case SVI_HEADER_LAYOUT:
        return svi_fail(err, SVS_UNAVAILABLE,
                        SAVE_NAME " was written by version %s with layout %llu, and version %s reads layout "
                                  "%d: load it with the version that wrote it",
                        parts->program, (unsigned long long)h->v, SVS_VERSION, SVI_STATE_LAYOUT);
    case SVI_HEADER_INCOMPLETE:
        return save_damaged(err, "a field of the header is absent or of another type");
    default:
        return save_damaged(err, strcmp(h->format, SAVE_FORMAT) == 0 ? "the check of the header is wrong"
                                                                     : "it is not one of " SAVE_FORMAT);
    }
}

/* The settings of the header, as texts in one block. NULL: err says why. Owner: the caller. */
static svs_setting *save_read_given(const uint8_t *at, const uint8_t *end, int *count, svs_error *err) {
    struct svi_item list, item;
    svi_item_read(at, &list);
    const uint8_t *next = list.body;
    size_t size = 0;
    bool good = list.type == SVI_ARRAY && list.length % 2 == 0 && list.length <= 2 * SVI_SETTING_MAX;
    for (uint32_t i = 0; good && i < list.length; i++) {
        svi_item_read(next, &item);
        good = item.type == SVI_STRING && !memchr(item.body, 0, item.length) &&
               svi_walk(&next, end, 1) == SVS_OK;
        size += good ? item.length + 1 : 0;
    }
    if (!good) {
        save_damaged(err, "its settings are not a list of texts");
        return NULL;
    }
    *count = (int)list.length / 2;
    svs_setting *given = svi_alloc_plain((size_t)(*count + 1) * sizeof *given + size);
    if (!given) {
        svi_fail_memory(err, "the settings of a stream");
        return NULL;
    }
    char *text = (char *)(given + *count + 1);
    next = list.body;
    for (int i = 0; i < 2 * *count; i++) {
        svi_item_read(next, &item);
        svi_walk(&next, end, 1);
        memcpy(text, item.body, item.length);
        text[item.length] = '\0';
        *(i % 2 == 0 ? &given[i / 2].key : &given[i / 2].value) = text;
        text += item.length + 1;
    }
    return given;
}

/* The state was made by kernels with other rounding, or by another program: the model is computed again. */
static void save_rebuild(svs_stream *s, const struct svi_checkpoint *c) {
    if (strcmp(c->program, SVS_VERSION) != 0 || strcmp(c->isa, svi_kernels_get(SVS_ISA_BEST)->name) != 0)
        svi_stream_rebuild(s->stream);
}

static svs_stream *save_load(const struct svi_checkpoint *c, const struct save_parts *parts,
                             const uint8_t *end, svs_error *err) {
    int count;
    svs_setting *given = save_read_given(parts->given, end, &count, err);
    svs_stream *s = given ? svi_library_new_kept(given, count, &c->settings, err) : NULL;
    svi_free(given);
    if (s && svi_stream_load(s->stream, c, err) != SVS_OK)
        svs_stream_free(&s);
    if (!s)
        return NULL;
    save_rebuild(s, c);
    svi_engine_refit_restart(svi_stream_root(s->stream));
    s->interval = parts->interval;
    s->latest = parts->latest;
    s->taken = parts->taken;
    return s;
}

svs_stream *svs_stream_load(const void *bytes, size_t size, svs_error *err) {
    svs_error local;
    struct svi_header h;
    struct save_parts parts;
    struct svi_checkpoint c = {0};
    svs_stream *s = NULL;
    err = err ? err : &local;
    if (save_read_header(bytes, size, &h, &parts, err) != SVS_OK)
        return NULL;
    const uint8_t *at = (const uint8_t *)bytes + h.size;
    if (svi_checkpoint_parse(at, size - h.size, NULL, SAVE_NAME, &c, err) == SVS_OK)
        s = save_load(&c, &parts, at, err);
    svi_checkpoint_clear(&c);
    return s;
}
