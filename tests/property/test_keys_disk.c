/* A stream whose keys are out of memory for the most part, killed again and again while they are written bit
 * by bit, comes to what one comes to that has all in memory and is never killed: what it tells, and the state
 * of each key, bit for bit. */
#include "support/engine.h"
#include "support/folder.h"
#include "support/quick.h"

#include "base/clock.h"
#include "base/random.h"
#include "state/recovery.h"
#include "state/write_ahead.h"
#include "store/key_files.h"

#define KEYS    60
#define ACTIONS 3000

struct run {
    struct speaker f; /* for its settings, its control and its way to build frames */
    svi_write_ahead *keeper;
    struct svi_bytes told, event;
    char path[200];
};

struct walk {
    struct run kept, whole;
    struct svi_random random;
    int64_t n;
    double now;
    int sent[KEYS];
};

static void sink(void *user, const struct svi_event *event) {
    struct run *r = user;
    struct svi_event bare = *event;
    if (event->topic == SVI_TOPIC_STATS)
        return;
    if (event->topic == SVI_TOPIC_ERROR) /* of a change that a start brings about */
        bare.ts = 0;
    assert_int_equal(svi_event_encode(&bare, &r->event), SVS_OK);
    assert_int_equal(svi_bytes_append(&r->told, r->event.data, r->event.size), SVS_OK);
}

static void set_all(struct svi_settings *s, const char *const *settings, const char *memory,
                    const char *path) {
    const char *const always[] = {"key",
                                  "key",
                                  "keys.memory",
                                  memory,
                                  "refit",
                                  "none",
                                  "alert.rules",
                                  "none",
                                  "checkpoint.seconds",
                                  "0.01",
                                  "alert.budget",
                                  "none",
                                  "publish.seconds",
                                  "0",
                                  NULL};
    svs_error err = {0};
    svi_settings_default(s);
    for (int i = 0; always[i]; i += 2)
        if (svi_settings_set(s, always[i], always[i + 1], &err) != SVS_OK)
            fail_msg("%s", err.text);
    for (; settings[0]; settings += 2)
        if (svi_settings_set(s, settings[0], settings[1], &err) != SVS_OK)
            fail_msg("%s", err.text);
    svi_settings_settle_method(s);
    if (path && svi_settings_set(s, "state.dir", path, &err) != SVS_OK)
        fail_msg("%s", err.text);
}

static void begin(struct run *r, const char *const *settings, const char *memory, bool again) {
    svs_error err = {0};
    set_all(&r->f.s, settings, memory, r->path);
    for (int i = 0; again && i < SVI_SETTING_MAX;
         i++) /* the kept ones hold, `config` may have changed them */
        r->f.s.given[i] = false;
    r->keeper = svi_write_ahead_open(&r->f.s, sink, r, NULL, &r->f.e, &err);
    if (!r->keeper)
        fail_msg("%s", err.text);
    r->f.control = (struct svi_control){.stream = r->f.e, .settings = &r->f.s, .write_ahead = r->keeper};
}

/* As a kill does: nothing more is written. */
static void end(struct run *r) {
    svi_write_ahead_free(&r->keeper);
    svi_stream_free(&r->f.e);
}

static void clear(struct run *r) {
    end(r);
    svi_bytes_clear(&r->told);
    svi_bytes_clear(&r->event);
    svi_bytes_clear(&r->f.frame);
}

/* ---- what is done to both */

static void both_frame(struct walk *w) {
    svs_error err = {0};
    const struct svi_bytes *b = &w->kept.f.frame;
    if (svi_write_ahead_write(w->kept.keeper, SVI_RECORD_SOURCED, w->now, b->data, b->size, &err) != SVS_OK)
        fail_msg("%s", err.text);
    const svs_code one = apply_bytes(w->kept.f.e, b->data, b->size, w->now, true, NULL);
    assert_int_equal(apply_bytes(w->whole.f.e, b->data, b->size, w->now, true, NULL), one);
}

static void learn(struct walk *w, int k) {
    double x[3];
    const int id = w->sent[k]++, kind = (int)svi_random_below(&w->random, 20);
    const int64_t n = w->n++;
    for (int j = 0; j < 3; j++)
        x[j] = (svi_random_below(&w->random, 2001) - 1000.0) / 500 + k % 7;
    struct speaker *f = &w->kept.f;
    if (kind == 0)
        speaker_build(f, "{'op': 'label', 'key': 'k%d', 'id': %d, 'y': %d, 'src': 'a', 'n': %d}", k,
                      id - 1 - (int)svi_random_below(&w->random, 4), (int)svi_random_below(&w->random, 2), n);
    else if (kind == 1)
        speaker_build(f, "{'op': 'forget', 'key': 'k%d', 'id': %d, 'src': 'a', 'n': %d}", k, id - 3, n);
    else if (kind == 2) /* refused, unless it is the first */
        speaker_build(f, "{'key': 'k%d', 'x': [%.17g], 'src': 'a', 'n': %d}", k, x[0], n);
    else if (kind < 6)
        speaker_build(f, "{'key': 'k%d', 'x': [%.17g, %.17g, %.17g], 'id': %d, 'src': 'a', 'n': %d}", k, x[0],
                      x[1], x[2], id, n);
    else
        speaker_build(f, "{'key': 'k%d', 'x': [%.17g, %.17g, %.17g], 'y': %d, 'id': %d, 'src': 'a', 'n': %d}",
                      k, x[0], x[1], x[2], x[0] + x[1] > 2 * (k % 7), id, n);
    both_frame(w);
}

static void both_request(struct walk *w, const char *format, int k) {
    struct svi_bytes one = {0}, other = {0};
    speaker_build(&w->kept.f, format, k);
    const struct svi_bytes *b = &w->kept.f.frame;
    assert_int_equal(svi_control_handle(&w->kept.f.control, b->data, b->size, w->now, &one), SVS_OK);
    assert_int_equal(svi_control_handle(&w->whole.f.control, b->data, b->size, w->now, &other), SVS_OK);
    svi_bytes_clear(&one);
    svi_bytes_clear(&other);
}

static void both_clock(struct walk *w) {
    const double step = svi_random_below(&w->random, 2) ? 3600 : -1800;
    struct svi_bytes payload = {0};
    svs_error err = {0};
    w->now += step;
    assert_int_equal(svi_record_pack_clock(step, &payload), SVS_OK);
    if (svi_write_ahead_write(w->kept.keeper, SVI_RECORD_CLOCK, w->now, payload.data, payload.size, &err) !=
        SVS_OK)
        fail_msg("%s", err.text);
    svi_stream_move_clock(w->kept.f.e, step, w->now);
    svi_stream_move_clock(w->whole.f.e, step, w->now);
    svi_bytes_clear(&payload);
}

/* Asking for a key changes nothing, though it may bring it back into memory. */
static void look(struct walk *w, int k) {
    struct svi_bytes out = {0};
    speaker_build(&w->kept.f, "{'op': 'status', 'key': 'k%d'}", k);
    const struct svi_bytes *b = &w->kept.f.frame;
    assert_int_equal(svi_control_handle(&w->kept.f.control, b->data, b->size, w->now, &out), SVS_OK);
    svi_bytes_clear(&out);
}

static void restart(struct walk *w, const char *const *settings, const char *memory) {
    svs_error err = {0};
    end(&w->kept);
    begin(&w->kept, settings, memory, true);
    assert_int_equal(svi_entry_next(svi_stream_entry(w->kept.f.e), "a"),
                     svi_entry_next(svi_stream_entry(w->whole.f.e), "a"));
    /* What a start does to the one that goes on. */
    assert_int_equal(svi_stream_configure(w->whole.f.e, &w->whole.f.s, w->now, NULL, &err), SVS_OK);
    svi_stream_begin(w->whole.f.e, svi_wall_clock());
}

/* ---- what it comes to */

/* All that is hashed but the list of what reaches all keys, which has the time at which a process began. */
static void assert_same_state(svi_stream *a, svi_stream *b) {
    struct svi_checkpoint one = {.sections = 0}, other = {.sections = 0};
    svs_error err = {0};
    assert_int_equal(svi_stream_save(a, &one, &err), SVS_OK);
    assert_int_equal(svi_stream_save(b, &other, &err), SVS_OK);
    assert_int_equal(one.sections, other.sections);
    for (int i = 0; i < one.sections; i++) {
        const struct svi_section *s = &one.section[i], *t = &other.section[i];
        const bool same = s->size == t->size &&
                          memcmp(one.bodies.data + s->offset, other.bodies.data + t->offset, s->size) == 0;
        if (s->hashed && !same && strcmp(s->name, "keys") != 0)
            fail_msg("section %s differs", s->name);
    }
    svi_checkpoint_clear(&one);
    svi_checkpoint_clear(&other);
}

static void assert_same_told(struct walk *w) {
    assert_int_equal(w->kept.told.size, w->whole.told.size);
    assert_memory_equal(w->kept.told.data, w->whole.told.data, w->whole.told.size);
    w->kept.told.size = w->whole.told.size = 0;
}

/* The fingerprint is that of the checkpoint, and what a repetition from the checkpoint before comes to. */
static void assert_kept_hash(struct walk *w, const char *const *settings, const char *memory) {
    char saved[SVI_HASH_TEXT], now[SVI_HASH_TEXT];
    uint64_t record;
    svs_error err = {0};
    assert_int_equal(svi_stream_hash(w->kept.f.e, now, &err), SVS_OK);
    if (svi_write_ahead_save(w->kept.keeper, &record, saved, &err) != SVS_OK)
        fail_msg("%s", err.text);
    assert_string_equal(now, saved);
    struct svi_state_dir dir;
    assert_int_equal(svi_state_dir_open(&dir, w->kept.path, false, &err), SVS_OK);
    const struct svi_recovery_options o = {.from = SVI_FROM_OLDEST,
                                           .until = record,
                                           .otherwise = &w->kept.f.s,
                                           .log = getenv("DEBUG") ? stderr : NULL};
    struct svi_recovery *r = svi_recovery_new(&dir, &o, &err);
    if (!r)
        fail_msg("%s", err.text);
    assert_int_equal(r->damaged, 0);
    assert_int_equal(svi_stream_hash(r->stream, now, &err), SVS_OK);
    assert_string_equal(now, saved);
    svi_recovery_free(&r);
    svi_state_dir_close(&dir);
    (void)settings, (void)memory;
}

static void act(struct walk *w, const char *const *settings, const char *memory) {
    const int k = (int)svi_random_below(&w->random, KEYS), what = (int)svi_random_below(&w->random, 1000);
    svs_error err = {0};
    w->now += 0.25;
    if (what < 6)
        restart(w, settings, memory);
    else if (what < 16)
        both_request(w, "{'op': 'drop', 'key': 'k%d'}", k);
    else if (what < 18)
        both_clock(w);
    else if (what < 20)
        both_request(w, "{'op': 'config', 'set': {'publish.every': %d}}", 20 + k);
    else if (what == 20)
        both_request(w, "{'op': 'config', 'set': {'C': %d}}", 1 + k);
    else if (what < 30)
        look(w, k);
    else if (what == 31)
        assert_kept_hash(w, settings, memory);
    else if (what < 34)
        both_request(w, "{'op': 'reset', 'yes': true, 'key': 'k%d'}", k);
    else
        learn(w, svi_random_below(&w->random, 3) ? k % 9 : k);
    /* Where little was done, little of a checkpoint is written. */
    if (svi_write_ahead_turn(w->kept.keeper, what % 16 == 0 ? 0.016 : 0, &err) != SVS_OK)
        fail_msg("%s", err.text);
}

static void walk(const char *const *settings, const char *memory, uint64_t seed) {
    /* Starts read the clock: all samples are of a later time, so that none finds a gap before it. */
    struct walk w = {.random = {seed}, .now = svi_wall_clock() + 1e6};
    svs_error err = {0};
    assert_non_null(test_folder(w.kept.path));
    begin(&w.kept, settings, memory, false);
    set_all(&w.whole.f.s, settings, "1000", w.kept.path); /* which is not used */
    w.whole.f.e = svi_stream_new(&w.whole.f.s, svi_stream_epoch(w.kept.f.e), sink, &w.whole, &err);
    w.whole.f.control = (struct svi_control){.stream = w.whole.f.e, .settings = &w.whole.f.s};
    if (svi_stream_configure(w.whole.f.e, &w.whole.f.s, w.now, NULL, &err) != SVS_OK)
        fail_msg("%s", err.text);
    svi_stream_begin(w.whole.f.e, svi_wall_clock());
    for (int i = 0; i < often(ACTIONS, 300); i++) {
        act(&w, settings, memory);
        assert_same_told(&w);
        if (i % 500 == 499)
            assert_same_state(w.kept.f.e, w.whole.f.e);
    }
    restart(&w, settings, memory);
    for (int k = 0; k < KEYS; k++)
        learn(&w, k);
    assert_same_told(&w);
    assert_same_state(w.kept.f.e, w.whole.f.e);
    assert_kept_hash(&w, settings, memory);
    clear(&w.kept);
    test_folder_remove(w.kept.path);
    clear(&w.whole);
}

static const char *const plain[] = {"window", "20", "novelty", "none", "publish.every", "20", NULL};
static const char *const forgets[] = {"window", "20",        "novelty", "none", "publish.every",
                                      "20",     "keys.idle", "50",      NULL};
static const char *const judged[] = {
    "window", "30", "publish.every", "20", "novelty.calibration", "60", "alert.p", "0.05", "novelty.window",
    "100",    NULL};

static void test_walks(void **unused) {
    (void)unused;
    for (uint64_t seed = 1; seed <= 3; seed++)
        walk(plain, "5", seed);
    walk(plain, "1", 4);
    walk(forgets, "4", 6);
    walk(judged, "7", 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_walks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
