/* target.h: what the fuzz targets share: input taken piece by piece, folders in memory, small engines of many
 * kinds and samples for them. */
#ifndef FUZZ_TARGET_H
#define FUZZ_TARGET_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fleet/fleet.h"
#include "server/control.h"
#include "wire/cursor.h"
#include "wire/pack.h"
#include "support/apply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_NOW 1000000.0

#define must(holds) must_at((holds), #holds, __LINE__)

static inline void must_at(bool holds, const char *what, int line) {
    if (holds)
        return;
    fprintf(stderr, "line %d: %s\n", line, what);
    abort();
}

/* ---- input, 0 behind its end */

struct input {
    const uint8_t *at, *end;
};

static inline uint64_t input_take(struct input *in, int bytes) {
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++)
        v = v << 8 | (in->at < in->end ? *in->at++ : 0);
    return v;
}

static inline size_t input_left(const struct input *in) {
    return (size_t)(in->end - in->at);
}

/* A reply must be one map that tells {ok: true} or {error, code}; false: the latter. */
static inline bool reply_is_ok(const struct svi_bytes *b) {
    const uint8_t *at = b->data, *end = b->data + b->size;
    struct svi_item map, item;
    bool ok = false, error = false, code = false;
    must(b->size > 0 && svi_walk(&at, end, SVI_WALK_MAX) == SVS_OK && at == end);
    at = svi_item_read(b->data, &map);
    must(map.type == SVI_MAP);
    for (uint32_t i = 0; i < map.length; i++) {
        svi_item_read(at, &item);
        must(item.type == SVI_STRING);
        ok = ok || (item.length == 2 && memcmp(item.body, "ok", 2) == 0);
        error = error || (item.length == 5 && memcmp(item.body, "error", 5) == 0);
        code = code || (item.length == 4 && memcmp(item.body, "code", 4) == 0);
        must(svi_walk(&at, end, SVI_WALK_MAX) == SVS_OK && svi_walk(&at, end, SVI_WALK_MAX) == SVS_OK);
    }
    must(error == code && (ok || error));
    return ok;
}

/* ---- a folder, made at the first call and empty at the end of the process as good as it can be */

static char fuzz_path[200];

static inline void fuzz_folder_away(void) {
    rmdir(fuzz_path);
}

static inline const char *fuzz_folder(void) {
    const char *where = getenv("TMPDIR");
    if (!fuzz_path[0]) {
        snprintf(fuzz_path, sizeof fuzz_path, "%.150s/fuzz-XXXXXX", where ? where : "/dev/shm");
        must(mkdtemp(fuzz_path) != NULL);
        atexit(fuzz_folder_away);
    }
    return fuzz_path;
}

/* ---- engines */

#define FUZZ_SMALL                                                                                           \
    "max.features", "8", "max.classes", "4", "max.sources", "4", "labels.max", "8", "publish.every", "7",    \
        "publish.seconds", "2", "novelty.max", "6", "novelty.window", "60", "novelty.calibration", "16",     \
        "novelty.warmup", "5", "novelty.confirm", "3", "alert.p", "0.1", "alert.clear", "0.2",               \
        "alert.cooldown", "1"

static const char *const fuzz_settings[][64] = {
    {FUZZ_SMALL, "window", "24", "refit", "none", "novelty", "none"},
    {FUZZ_SMALL, "window", "24", "refit", "dcd", "refit.every", "10", "serve", "best", "novelty", "fosvm1",
     "novelty.lags", "2"},
    {FUZZ_SMALL, "task", "regress", "window", "30", "window.seconds", "20", "scale", "none", "refit", "none",
     "novelty", "fosvm2", "novelty.m", "5", "novelty.lags", "3", "novelty.differences", "yes"},
    {FUZZ_SMALL, "window", "0", "forget", "0.98", "missing", "carry", "refit", "none", "novelty", "none"},
    {FUZZ_SMALL, "method",        "falsvm",     "window",          "40", "missing",   "drop",  "refit",
     "alm",      "refit.every",   "12",         "refit.loss",      "l1", "serve",     "refit", "novelty",
     "fosvm1",   "novelty.learn", "persistent", "novelty.persist", "4",  "alert.fdr", "0.2"},
    {FUZZ_SMALL, "method", "none", "refit", "none", "novelty", "fosvm1", "novelty.kernel", "rbf",
     "novelty.gamma", "scale", "novelty.learn", "all"},
    {FUZZ_SMALL, "window", "20", "features", "a,b,c,d", "refit", "none", "novelty", "fosvm1", "novelty.learn",
     "labelled", "scores", "3"},
    {FUZZ_SMALL, "method", "auto", "novelty", "none", "score.members", "yes"},
};
#define FUZZ_ENGINES (sizeof fuzz_settings / sizeof fuzz_settings[0])

struct fuzz_engine {
    struct svi_settings settings;
    svi_stream *stream;
    struct svi_control control;
    struct svi_bytes frame, event, reply;
    unsigned kind;
    uint32_t events;
};

static inline void fuzz_sink(void *user, const struct svi_event *event) {
    struct fuzz_engine *f = user;
    const uint8_t *at;
    must(svi_event_encode(event, &f->event) == SVS_OK);
    at = f->event.data;
    must(svi_walk(&at, f->event.data + f->event.size, SVI_WALK_MAX) == SVS_OK);
    must(at == f->event.data + f->event.size);
    f->events++;
}

static inline void fuzz_engine_settings(struct svi_settings *s, unsigned kind) {
    svs_error err;
    svi_settings_default(s);
    for (const char *const *pair = fuzz_settings[kind % FUZZ_ENGINES]; *pair; pair += 2)
        must(svi_settings_set(s, pair[0], pair[1], &err) == SVS_OK);
    svi_settings_settle_method(s);
    must(svi_settings_check(s, &err) == SVS_OK);
}

static inline void fuzz_engine_open(struct fuzz_engine *f, unsigned kind) {
    svs_error err;
    *f = (struct fuzz_engine){.kind = kind % FUZZ_ENGINES};
    fuzz_engine_settings(&f->settings, kind);
    f->stream = svi_stream_new(&f->settings, 77, fuzz_sink, f, &err);
    must(f->stream != NULL);
    f->control =
        (struct svi_control){.stream = f->stream, .settings = &f->settings, .started = FUZZ_NOW, .run = 1};
}

static inline void fuzz_engine_close(struct fuzz_engine *f) {
    svi_stream_free(&f->stream);
    svi_control_clear(&f->control);
    svi_bytes_clear(&f->frame);
    svi_bytes_clear(&f->event);
    svi_bytes_clear(&f->reply);
}

/* What a thread of its own would do. */
static inline void fuzz_refit(struct fuzz_engine *f) {
    struct svi_refit *job = svi_engine_refit_take(svi_stream_root(f->stream));
    if (!job)
        return;
    svi_refit_run(job);
    svi_engine_refit_give(svi_stream_root(f->stream));
}

/* Sample i of a stream that has everything: labels now and later, ids, weights, gaps, new classes, outliers.
 */
static inline void fuzz_sample(struct fuzz_engine *f, int i) {
    const bool regress = f->settings.task != 0, late = i % 5 == 4;
    struct svi_pack p;
    f->frame.size = 0;
    svi_pack_begin(&p, &f->frame);
    svi_pack_map(&p, late ? 5 : 6);
    svi_pack_text(&p, "x");
    if (f->settings.features[0])
        svi_pack_map(&p, 3);
    else
        svi_pack_array(&p, 4);
    for (int j = 0; j < (f->settings.features[0] ? 3 : 4); j++) {
        if (f->settings.features[0])
            svi_pack_text(&p, (const char *[]){"a", "b", "c", "d"}[(i + j) % 4]);
        if (f->settings.missing && (i + j) % 11 == 3)
            svi_pack_nil(&p);
        else
            svi_pack_real(&p, (i * (j + 3) % 17) * 0.37 - 2 + (i % 23 == 22 ? 40 : 0));
    }
    svi_pack_text(&p, "id");
    svi_pack_int(&p, i);
    svi_pack_text(&p, "ts");
    svi_pack_real(&p, FUZZ_NOW + i * 0.5);
    svi_pack_text(&p, "src");
    svi_pack_text(&p, i % 2 ? "left" : "right");
    svi_pack_text(&p, "n");
    svi_pack_int(&p, i / 2);
    if (!late) {
        svi_pack_text(&p, "y");
        if (regress)
            svi_pack_real(&p, i % 7 * 0.25);
        else
            svi_pack_text(&p, i % 3 && f->kind != 4 ? "yes" : i % 13 == 12 ? "perhaps" : "no");
    }
    must(svi_pack_end(&p) == SVS_OK);
    (void)apply_bytes(f->stream, f->frame.data, f->frame.size, FUZZ_NOW + i * 0.5, true, NULL);
    fuzz_refit(f);
}

/* Samples from..to-1, late labels, a removal; then everything that can be asked. */
static inline void fuzz_go_on(struct fuzz_engine *f, int from, int to) {
    const double now = FUZZ_NOW + to * 0.5;
    for (int i = from; i < to; i++) {
        fuzz_sample(f, i);
        if (i % 10 == 9)
            (void)svi_engine_label(svi_stream_root(f->stream), svs_int(i - 5),
                                   f->settings.task ? svs_real(0.5) : svs_str("yes"), now, NULL);
    }
    (void)svi_engine_forget(svi_stream_root(f->stream), svs_int(to - 3), now, NULL, NULL);
    svi_engine_publish_model(svi_stream_root(f->stream), true);
    svi_stream_publish_stats(f->stream, NULL, now);
}

#endif
