/* A kept state: whatever the moment at which a process ends, the next one goes on as if it had not. */
#include "support/engine.h"
#include "support/folder.h"
#include "support/problem.h"

#include "base/random.h"
#include "state/write_ahead.h"
#include "state/recovery.h"
#include "support/apply.h"

#define ACTIONS 600

/* What one run leaves behind: the events that depend on the inputs alone. */
struct run {
    struct speaker f; /* for its settings, its control and its way to build frames */
    svi_write_ahead *keeper;
    bool begun;
    struct svi_bytes told, event;
    char path[200];
};

static void sink(void *user, const struct svi_event *event) {
    struct run *r = user;
    if (event->topic == SVI_TOPIC_STATS || event->topic == SVI_TOPIC_ERROR)
        return;
    assert_int_equal(svi_event_encode(event, &r->event), SVS_OK);
    assert_int_equal(svi_bytes_append(&r->told, r->event.data, r->event.size), SVS_OK);
}

static void set_all(struct svi_settings *s, const char *const *settings, const char *path) {
    svs_error err = {0};
    svi_settings_default(s);
    svi_settings_set(s, "method", "alsvm", &err); /* unless it is among them */
    for (; settings[0]; settings += 2)
        if (svi_settings_set(s, settings[0], settings[1], &err) != SVS_OK)
            fail_msg("%s", err.text);
    svi_settings_settle_method(s);
    if (path && svi_settings_set(s, "state.dir", path, &err) != SVS_OK)
        fail_msg("%s", err.text);
}

static void begin(struct run *r, const char *const *settings) {
    svs_error err = {0};
    set_all(&r->f.s, settings, r->path);
    for (int i = 0; r->begun && i < SVI_SETTING_MAX;
         i++) /* the kept ones hold, `config` may have changed them */
        r->f.s.given[i] = false;
    r->begun = true;
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

static void drop(struct run *r) {
    end(r);
    svi_bytes_clear(&r->told);
    svi_bytes_clear(&r->event);
    svi_bytes_clear(&r->f.frame);
    if (r->path[0])
        test_folder_remove(r->path);
}

/* ---- the script: action i is always the same */

static double uniform(struct svi_random *random) {
    return (double)(svi_random_next(random) >> 11) * 0x1p-53;
}

static double at(int i, int k) {
    struct svi_random random = {(uint64_t)i * 16 + (uint64_t)k + 1};
    return 2 * uniform(&random) - 1;
}

static void build_sample(struct run *r, int i) {
    const double x = at(i, 0) + (i % 97 == 0 ? 20 : 0), y = at(i, 1), z = i > 300 ? at(i, 2) : 0;
    const int label = x - y + 0.2 * at(i, 3) > 0, late = i % 5 == 2;
    if (i % 11 == 0)
        speaker_build(&r->f, "{'op': 'forget', 'id': %d, 'src': 'a', 'n': %d}", i - 20, i);
    else if (i % 5 == 4)
        speaker_build(&r->f, "{'op': 'label', 'id': %d, 'y': %d, 'src': 'a', 'n': %d}", i - 2, i % 2, i);
    else if (late)
        speaker_build(&r->f, "{'x': {'u': %.17g, 'v': %.17g}, 'id': %d, 'ts': %d, 'src': 'a', 'n': %d}", x, y,
                      i, 1000 + i, i);
    else
        speaker_build(&r->f,
                      "{'x': {'u': %.17g, 'v': %.17g, 'w': %.17g}, 'y': %d, 'id': %d, 'ts': %d, 'src': 'a', "
                      "'n': %d}",
                      x, y, z, label, i, 1000 + i, i);
}

static void apply_frame(struct run *r) {
    apply_bytes(r->f.e, r->f.frame.data, r->f.frame.size, NOW, true, NULL);
}

static void request(struct run *r, const char *text) {
    struct svi_bytes out = {0};
    speaker_build(&r->f, "%s", text);
    assert_int_equal(svi_control_handle(&r->f.control, r->f.frame.data, r->f.frame.size, NOW, &out), SVS_OK);
    svi_bytes_clear(&out);
}

static const char *request_of(int i) {
    return i == 250   ? "{'op': 'config', 'set': {'alert.cooldown': 1, 'publish.every': 7}}"
           : i == 400 ? "{'op': 'reset', 'yes': true}"
           : i == 420 ? "{'op': 'publish'}"
                      : NULL;
}

static void plain_action(struct run *r, int i) {
    if (request_of(i)) {
        request(r, request_of(i));
        return;
    }
    build_sample(r, i);
    apply_frame(r);
}

/* The same, written down before; may be cut off at three places. Returns whether it counts as done. */
static bool kept_action(struct run *r, int i, int cut) {
    svs_error err = {0};
    if (request_of(i)) {
        request(r, request_of(i));
        return true;
    }
    build_sample(r, i);
    assert_int_equal(
        svi_write_ahead_append(r->keeper, SVI_RECORD_SOURCED, NOW, r->f.frame.data, r->f.frame.size, &err),
        SVS_OK);
    if (cut == 1)
        return false;
    if (svi_write_ahead_commit(r->keeper, &err) != SVS_OK)
        fail_msg("%s", err.text);
    if (cut == 2)
        return true;
    apply_frame(r);
    return true;
}

/* Names the section that differs, if one does. */
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
        if (s->hashed && !same)
            fail_msg("section %s differs", s->name);
    }
    svi_checkpoint_clear(&one);
    svi_checkpoint_clear(&other);
}

static void random_crashes(const char *const *settings, uint64_t seed) {
    struct run kept = {.f = {.e = NULL}}, whole = {.f = {.e = NULL}};
    svs_error err = {0};
    assert_non_null(test_folder(kept.path));
    begin(&kept, settings);
    set_all(&whole.f.s, settings, kept.path); /* not used: journal.* would contradict without */
    whole.f.e = svi_stream_new(&whole.f.s, svi_stream_epoch(kept.f.e), sink, &whole, &err);
    whole.f.control = (struct svi_control){.stream = whole.f.e, .settings = &whole.f.s};
    struct svi_random random = {seed};
    for (int i = 0; i < ACTIONS;) {
        const double chance = uniform(&random);
        const int cut = chance < 0.02 ? 1 : chance < 0.04 ? 2 : 0;
        const bool done = kept_action(&kept, i, cut);
        if (done)
            plain_action(&whole, i++);
        if (chance > 0.98 && svi_write_ahead_save(kept.keeper, NULL, NULL, &err) != SVS_OK)
            fail_msg("%s", err.text);
        if (svi_write_ahead_turn(kept.keeper, 0.001, &err) != SVS_OK)
            fail_msg("%s", err.text);
        if (cut || chance > 0.96) {
            end(&kept);
            const size_t lost = whole.told.size - kept.told.size; /* told by nobody: it was cut off before */
            if (lost > 0)
                assert_int_equal(svi_bytes_append(&kept.told, whole.told.data + kept.told.size, lost),
                                 SVS_OK);
            begin(&kept, settings);
            assert_int_equal(svi_entry_next(svi_stream_entry(kept.f.e), "a"),
                             svi_entry_next(svi_stream_entry(whole.f.e), "a"));
        }
    }
    assert_same_state(kept.f.e, whole.f.e);
    assert_int_equal(kept.told.size, whole.told.size);
    assert_memory_equal(kept.told.data, whole.told.data, whole.told.size);
    drop(&kept);
    drop(&whole);
}

static const char *const plain[] = {"window",
                                    "40",
                                    "refit",
                                    "none",
                                    "publish.every",
                                    "20",
                                    "publish.seconds",
                                    "0",
                                    "novelty.calibration",
                                    "60",
                                    "novelty.max",
                                    "20",
                                    "alert.p",
                                    "0.05",
                                    "novelty.window",
                                    "100",
                                    "checkpoint.seconds",
                                    "0.05",
                                    NULL};
static const char *const other[] = {"window",
                                    "30",
                                    "refit",
                                    "none",
                                    "method",
                                    "falsvm",
                                    "forget",
                                    "0.99",
                                    "novelty.lags",
                                    "3",
                                    "novelty.calibration",
                                    "50",
                                    "alert.p",
                                    "0.05",
                                    "novelty.kernel",
                                    "rbf",
                                    "missing",
                                    "carry",
                                    "journal.segment",
                                    "4096",
                                    "publish.seconds",
                                    "10",
                                    "novelty.learn",
                                    "persistent",
                                    NULL};
static const char *const unlimited[] = {
    "window", "0",      "refit", "none",          "novelty", "none", "journal.segment",
    "4096",   "scores", "3",     "journal.fsync", "always",  NULL};

static const char *const weighed[] = {"window",  "40",   "class.weight", "balanced", "refit", "none",
                                      "novelty", "none", "scores",       "3",        NULL};
static const char *const weighed_all[] = {"window", "0",    "class.weight", "balanced", "forget", "0.99",
                                          "refit",  "none", "novelty",      "none",     NULL};
static const char *const given[] = {"window", "30",      "class.weight", "1=5,0=0.5", "refit",
                                    "none",   "novelty", "none",         NULL};

static const char *const bank[] = {"method", "auto", "novelty", "none", "publish.every", "20", NULL};
static const char *const bank_values[] = {"task", "regress", "method", "auto", "novelty", "none", NULL};
static const char *const bank_weighed[] = {"method",  "auto", "class.weight", "balanced", "serve", "linear",
                                           "novelty", "none", "missing",      "carry",    NULL};

static void test_crashes(void **unused) {
    (void)unused;
    const char *const *all[] = {plain, other, unlimited,   weighed,     weighed_all,
                                given, bank,  bank_values, bank_weighed};
    const int rounds = getenv("SVMSTREAM_QUICK") ? 1 : 3;
    for (int k = 0; k < 9; k++)
        for (int seed = 1; seed <= (k < 3 ? rounds : 1); seed++)
            random_crashes(all[k], (uint64_t)seed);
}

/* A limit that was reached is raised by the next process; the one after it repeats that. */
static void test_raised_limits(void **unused) {
    (void)unused;
    struct run r = {.f = {.e = NULL}};
    static const char *const narrow[] = {"max.features", "2", "labels.max", "2", "refit", "none", NULL},
                             *const wide[] = {"max.features", "5", "labels.max", "9", "refit", "none", NULL};
    char before[SVI_HASH_TEXT], after[SVI_HASH_TEXT];
    svs_error err = {0};
    assert_non_null(test_folder(r.path));
    begin(&r, narrow);
    for (int i = 1; i < 40; i++)
        kept_action(&r, i, 0);
    svi_write_ahead_save(r.keeper, NULL, NULL, &err);
    end(&r);
    set_all(&r.f.s, narrow, r.path);
    assert_int_equal(svi_settings_set(&r.f.s, "max.features", "1", &err), SVS_OK);
    assert_null(svi_write_ahead_open(&r.f.s, sink, &r, NULL, &r.f.e, &err));
    assert_int_equal(err.code, SVS_SETTING);
    assert_non_null(strstr(err.text, "can only be raised"));
    r.begun = false;
    begin(&r, wide);
    for (int i = 300; i < 340; i++) { /* with a third feature */
        speaker_build(&r.f, "{'x': {'u': %d, 'v': %d, 'w': %d}, 'y': %d}", i % 7, i % 5, i % 3, i % 2);
        assert_int_equal(
            svi_write_ahead_write(r.keeper, SVI_RECORD_FRAME, NOW, r.f.frame.data, r.f.frame.size, &err),
            SVS_OK);
        assert_int_equal(apply_bytes(r.f.e, r.f.frame.data, r.f.frame.size, NOW, false, NULL), SVS_OK);
    }
    assert_int_equal(svi_engine_schema(svi_stream_root(r.f.e))->shape.d, 3);
    assert_int_equal(svi_stream_hash(r.f.e, before, &err), SVS_OK);
    end(&r);
    begin(&r, wide);
    assert_int_equal(svi_stream_hash(r.f.e, after, &err), SVS_OK);
    assert_string_equal(before, after);
    assert_int_equal(r.f.s.max_features, 5);
    drop(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crashes),
        cmocka_unit_test(test_raised_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
