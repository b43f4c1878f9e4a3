#include "state/load_record.h"

#include <stdio.h>

#include "base/fail.h"
#include "config/settings_record.h"
#include "store/checkpoint_file.h"
#include "wire/archive_file.h"

#define LARGEST ((size_t)1 << 30) /* bytes of a state that a record can hold */

void svi_load_clear(struct svi_load *l) {
    svi_stream_free(&l->then);
}

/* The table of the sections, which follow one another in c->bodies without gaps: offsets are not kept, and a
 * size may not exceed the bytes left, so that a damaged record cannot point beyond the block. */
static void load_archive_sections(struct svi_archive *a, struct svi_checkpoint *c) {
    char key[SVI_KEY_MAX];
    size_t offset = 0;
    svi_archive_int(a, "sections", &c->sections, 0, SVI_SECTIONS_MAX);
    for (int i = 0; i < c->sections && svi_archive_ok(a); i++) {
        struct svi_section *s = &c->section[i];
        int64_t size = (int64_t)s->size;
        svi_archive_text(a, svi_archive_key(key, "section", i), s->name, sizeof s->name);
        svi_archive_int64(a, svi_archive_key(key, "bytes", i), &size, 0,
                          (int64_t)(c->bodies.size > offset ? c->bodies.size - offset : 0));
        s->offset = offset;
        s->size = (size_t)size;
        offset += s->size;
    }
}

/* Saves and loads the payload. The bodies come before their table, whose check needs their size. */
static void load_archive(struct svi_archive *a, struct svi_load *l, struct svi_checkpoint *c) {
    static const char truncated[] = "a state is truncated", no_memory[] = "no memory for a state";
    svi_archive_text(a, "reason", l->reason, sizeof l->reason);
    svi_archive_int64(a, "relearned", &l->relearned, 0, INT64_MAX / 4);
    svi_archive_uint64(a, "epoch", &c->epoch);
    svi_archive_block(a, "settings size", "settings", &c->settings, (int64_t)LARGEST, truncated, no_memory);
    svi_archive_block(a, "state size", "state", &c->bodies, (int64_t)LARGEST, truncated, no_memory);
    load_archive_sections(a, c);
}

svs_code svi_load_pack(struct svi_load *l, struct svi_bytes *out, svs_error *err) {
    struct svi_archive_out to;
    struct svi_checkpoint c = {0};
    const size_t size = svi_stream_size(l->then);
    /* Checked before the state is saved, which would take that memory. */
    if (size > LARGEST)
        return svi_fail(err, SVS_TOO_LARGE,
                        "that state has %zu bytes, but a record of the journal at most %zu: reduce the "
                        "window or the number of features",
                        size, LARGEST);
    svs_code code = svi_stream_save(l->then, &c, err);
    if (code == SVS_OK) {
        svi_archive_out_begin(&to, out, "load", err);
        load_archive(&to.archive, l, &c);
        code = svi_archive_out_end(&to);
    }
    svi_checkpoint_clear(&c);
    return code;
}

svs_code svi_load_unpack(struct svi_load *l, const svi_stream *stream, const void *bytes, size_t size,
                         svs_error *err) {
    struct svi_archive_in from;
    struct svi_checkpoint c = {0};
    svi_archive_in_begin(&from, bytes, size, "load", err);
    /* The record has no name, since it lies in the journal of this stream; svi_stream_then compares it. */
    snprintf(c.stream, sizeof c.stream, "%s", svi_stream_settings(stream)->stream);
    load_archive(&from.archive, l, &c);
    svs_code code = svi_archive_in_end(&from);
    if (code == SVS_OK && !(l->then = svi_stream_then(stream, &c, err)))
        code = err->code;
    svi_checkpoint_clear(&c);
    return code;
}

void svi_load_apply(struct svi_load *l, svi_stream *stream, struct svi_settings *s, double now) {
    svi_stream_go_back(stream, &l->then, l->reason, now);
    svi_settings_go_back(s, svi_stream_settings(stream));
}
