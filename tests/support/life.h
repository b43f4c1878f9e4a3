/* life.h: processes that keep their state in one folder, one after another, without the pipeline. */
#ifndef TEST_SUPPORT_LIFE_H
#define TEST_SUPPORT_LIFE_H

#include "support/engine.h"
#include "support/folder.h"

#include "base/alloc.h"
#include "state/write_ahead.h"
#include "store/journal_internal.h"
#include "support/apply.h"

struct life {
    char path[200], log[4096];
    const char *const *more; /* settings, as speaker_open takes them */
    struct svi_settings s;
    svi_write_ahead *keeper;
    svi_stream *stream;
    svs_error error;
    struct speaker speaker; /* its frames alone */
    struct svi_bytes model; /* the last model event */
};

static inline void life_sink(void *user, const struct svi_event *event) {
    struct life *l = user;
    if (event->topic == SVI_TOPIC_MODEL)
        assert_int_equal(svi_event_encode(event, &l->model), SVS_OK);
}

static inline void set(struct life *l, const char *name, const char *value) {
    if (svi_settings_set(&l->s, name, value, &l->error) != SVS_OK)
        fail_msg("%s", l->error.text);
}

static inline int setup(void **state) {
    struct life *l = calloc(1, sizeof *l);
    assert_non_null(l);
    assert_non_null(test_folder(l->path));
    l->speaker.now = NOW;
    *state = l;
    return 0;
}

static inline int teardown(void **state) {
    struct life *l = *state;
    test_folder_remove(l->path);
    svi_bytes_clear(&l->speaker.frame);
    svi_bytes_clear(&l->model);
    free(l);
    return 0;
}

/* What it says while it starts is in l->log. */
static inline svs_code begin(struct life *l, bool accept_loss) {
    FILE *log = fmemopen(l->log, sizeof l->log, "w");
    assert_non_null(log);
    svi_settings_default(&l->s);
    set(l, "in.mode", "router");
    set(l, "state.dir", l->path);
    set(l, "method", "alsvm"); /* its state is the smaller one */
    set(l, "refit", "none");
    set(l, "novelty", "none");
    set(l, "journal.segment", "4096");
    for (const char *const *more = l->more; more && more[0]; more += 2)
        set(l, more[0], more[1]);
    svi_settings_settle_method(&l->s);
    l->s.accept_loss = accept_loss;
    l->keeper = svi_write_ahead_open(&l->s, life_sink, l, log, &l->stream, &l->error);
    fclose(log);
    return l->keeper ? SVS_OK : l->error.code;
}

static inline void assert_begins(struct life *l, bool accept_loss) {
    if (begin(l, accept_loss) != SVS_OK)
        fail_msg("%s", l->error.text);
}

static inline void end(struct life *l) {
    svi_write_ahead_free(&l->keeper);
    svi_stream_free(&l->stream);
}

static inline void feed(struct life *l, int count) {
    struct svi_receipt r;
    for (int i = 0; i < count; i++) {
        const int n = (int)svi_entry_next(svi_stream_entry(l->stream), "a");
        speaker_build(&l->speaker, "{'x': [%d, %d], 'y': %d, 'src': 'a', 'n': %d, 'ts': %d}", n % 5, n % 3,
                      n % 2, n, n + 1);
        const struct svi_bytes *f = &l->speaker.frame;
        assert_int_equal(svi_write_ahead_write(l->keeper, SVI_RECORD_SOURCED, NOW, f->data, f->size, NULL),
                         SVS_OK);
        apply_bytes(l->stream, f->data, f->size, NOW, true, &r);
        assert_int_equal(r.n, n);
    }
}

static inline void save(struct life *l) {
    if (svi_write_ahead_save(l->keeper, NULL, NULL, &l->error) != SVS_OK)
        fail_msg("%s", l->error.text);
}

static inline int64_t seen(const struct life *l) {
    return svi_stream_seen(l->stream);
}

static inline void path_of(const struct life *l, const char *prefix, uint64_t number, char out[300]) {
    char name[SVI_FILE_NAME];
    snprintf(out, 300, "%s/%s", l->path, svi_state_dir_name(name, prefix, number));
}

/* The numbers of its files of this kind; how many. */
static inline int list(const struct life *l, const char *prefix, uint64_t **numbers) {
    struct svi_state_dir f;
    int count;
    assert_int_equal(svi_state_dir_open(&f, l->path, false, NULL), SVS_OK);
    assert_int_equal(svi_state_dir_list(&f, prefix, numbers, &count, NULL), SVS_OK);
    svi_state_dir_close(&f);
    return count;
}

static inline void remove_file(const struct life *l, const char *prefix, uint64_t number) {
    char path[300];
    path_of(l, prefix, number, path);
    assert_int_equal(unlink(path), 0);
}

#endif
