/* Novelty on a second thread: whatever is done with two engines, of which one has it, both say the same, byte
 * for byte, and come to the same state. */
#include "support/engine.h"
#include "support/problem.h"

#include "base/random.h"
#include "config/settings_record.h"
#include "store/checkpoint_file.h"

#define ROUNDS 300
#define BURST  500

struct pair {
    struct speaker one, two;
    struct svi_bytes told[2];
    struct svi_random random;
    bool words; /* the stream has a column of words */
    int n;      /* samples sent */
    int alerts, scores, errors;
};

static struct pair *now_at; /* whose sinks write */

static void pair_sink(void *user, const struct svi_event *event) {
    struct svi_bytes bytes = {0};
    char topic[SVI_TOPIC_MAX];
    const int which = user == &now_at->two;
    assert_int_equal(svi_event_encode(event, &bytes), SVS_OK);
    const size_t length = svi_topic_write(event->topic, event->stream, event->key, topic);
    assert_int_equal(svi_bytes_append(&now_at->told[which], topic, length), SVS_OK);
    assert_int_equal(svi_bytes_append(&now_at->told[which], bytes.data, bytes.size), SVS_OK);
    now_at->alerts += event->topic == SVI_TOPIC_ALERT;
    now_at->scores += event->topic == SVI_TOPIC_SCORE;
    now_at->errors += event->topic == SVI_TOPIC_ERROR;
    svi_bytes_clear(&bytes);
}

static void speaker_begin(struct speaker *f, const char *const *settings) {
    svs_error err = {0};
    speaker_open(f, settings);
    svi_stream_free(&f->e);
    f->e = svi_stream_new(&f->s, 77, pair_sink, f, &err);
    assert_non_null(f->e);
    f->control.stream = f->e;
}

static double pair_random(struct pair *p) {
    return (double)(svi_random_next(&p->random) >> 11) * 0x1p-53;
}

static int below(struct pair *p, int n) {
    return (int)svi_random_below(&p->random, (uint32_t)n);
}

/* One element of a batch as JSON. */
static int put_element(struct pair *p, char *to, size_t size) {
    const int n = p->n++, kind = below(p, 60);
    const double far = (n / 150) % 3 == 2 && n % 150 < 25 ? 9 : 0, a = pair_random(p) + far,
                 b = pair_random(p) - 0.5, c = sin(0.05 * n);
    if (kind == 0)
        return snprintf(to, size, "{'op': 'forget', 'id': %d}", n - 30);
    if (kind == 1)
        return snprintf(to, size, "{'op': 'label', 'id': 's%d', 'y': 'class %d'}", n - 5, n % 2);
    if (kind == 2)
        return snprintf(to, size, "{'x': 'nothing', 'y': 1}");
    if (kind == 3)
        return snprintf(to, size, "{'x': %s, 'id': 's%d'}",
                        p->words ? "{'u': 1, 'w': 'rare'}" : "[0.5, null, 0.25]", n);
    if (p->words && kind < 8)
        return snprintf(to, size, "{'x': {'u': %.6f, 'w': 'v%d', 'extra%d': 1}, 'y': 'class %d'}", a, n / 40,
                        n % 5, b > 0);
    if (p->words)
        return snprintf(to, size, "{'x': {'u': %.6f, 'v': %.6f, 'w': 'v%d'}, 'y': 'class %d', 'ts': %d}", a,
                        b, (n / 60 + below(p, 2)), a + b > 0.5, n);
    return snprintf(to, size, "{'x': [%.6f, %.6f, %.6f], 'y': %d, 'id': %d, 'ts': %d}", a, b, c, a + b > 0.5,
                    n, n);
}

static void both_say(struct pair *p, const char *text) {
    say(&p->one, "%s", text);
    say(&p->two, "%s", text);
}

static void pair_batch(struct pair *p) {
    char text[4000] = "";
    const int count = 1 + (below(p, 3) ? below(p, 28) : 0);
    size_t at = (size_t)snprintf(text, sizeof text, "[");
    for (int i = 0; i < count && at < sizeof text - 200; i++) {
        at += i > 0 ? (size_t)snprintf(text + at, sizeof text - at, ", ") : 0;
        at += (size_t)put_element(p, text + at, sizeof text - at);
    }
    snprintf(text + at, sizeof text - at, "]");
    both_say(p, text);
}

static void both_ask(struct pair *p, const char *text) {
    json_t *a = ask(&p->one, "%s", text), *b = ask(&p->two, "%s", text);
    assert_true(json_equal(a, b));
    json_decref(a);
    json_decref(b);
}

static void compare_states(struct pair *p) {
    struct svi_checkpoint a = {0}, b = {0};
    svs_error err;
    assert_int_equal(svi_stream_save(p->one.e, &a, &err), SVS_OK);
    assert_int_equal(svi_stream_save(p->two.e, &b, &err), SVS_OK);
    assert_int_equal(a.bodies.size, b.bodies.size);
    assert_memory_equal(a.bodies.data, b.bodies.data, a.bodies.size);
    assert_int_equal(a.settings.size, b.settings.size);
    assert_memory_equal(a.settings.data, b.settings.data, a.settings.size);
    svi_checkpoint_clear(&a);
    svi_checkpoint_clear(&b);
}

/* All that was said since the last time. */
static void compare_events(struct pair *p) {
    svi_stream_settle(p->two.e);
    assert_true(svi_stream_taken(p->two.e) == svi_stream_published(p->two.e));
    assert_int_equal(p->told[0].size, p->told[1].size);
    if (p->told[0].size > 0)
        assert_memory_equal(p->told[0].data, p->told[1].data, p->told[0].size);
    p->told[0].size = p->told[1].size = 0;
}

static void both_widen(struct pair *p) {
    svs_error err;
    p->one.s.max_features++;
    p->two.s.max_features++;
    assert_int_equal(svi_stream_widen(&p->one.e, &p->one.s, &err), SVS_OK);
    assert_int_equal(svi_stream_widen(&p->two.e, &p->two.s, &err), SVS_OK);
    p->one.control.stream = p->one.e;
    p->two.control.stream = p->two.e;
}

static void both_go_back(struct pair *p) {
    struct svi_checkpoint c = {0};
    svs_error err;
    svi_stream *engines[2] = {p->one.e, p->two.e};
    assert_int_equal(svi_stream_save(p->one.e, &c, &err), SVS_OK);
    pair_batch(p);
    for (int i = 0; i < 2; i++) {
        svi_stream *then = svi_stream_then(engines[i], &c, &err);
        assert_non_null(then);
        svi_stream_go_back(engines[i], &then, "back", NOW);
    }
    svi_checkpoint_clear(&c);
}

static void pair_act(struct pair *p) {
    static const char *const requests[] = {"{'op': 'reset', 'yes': true}",
                                           "{'op': 'config', 'set': {'alert.cooldown': 2, 'scores': 2}}",
                                           "{'op': 'config', 'set': {'C': 3}}",
                                           "{'op': 'config', 'set': {'novelty.max': 40, 'scores': 1}}",
                                           "{'op': 'publish'}",
                                           "{'op': 'prune'}"};
    const int what = below(p, 100);
    if (what < 6)
        both_ask(p, requests[what]);
    else if (what == 6)
        both_widen(p);
    else if (what == 7)
        both_go_back(p);
    else if (what < 12)
        both_ask(p, p->words ? "{'op': 'score', 'x': {'u': 1, 'v': 2}}" : "{'op': 'score', 'x': [1, 2, 3]}");
    else if (what < 15)
        compare_states(p);
    else if (what < 25)
        svi_stream_leave_open(p->two.e, what < 22);
    if (what == 15) {
        svi_stream_move_clock(p->one.e, 0.5, NOW);
        svi_stream_move_clock(p->two.e, 0.5, NOW);
    } else if (what == 16) {
        svi_stream_publish_stats(p->one.e, NULL, NOW);
        svi_stream_publish_stats(p->two.e, NULL, NOW);
    }
}

/* How long it took is reported, too: that is the same. */
static void both_refit(struct pair *p) {
    struct svi_refit *a = svi_engine_refit_take(svi_stream_root(p->one.e)),
                     *b = svi_engine_refit_take(svi_stream_root(p->two.e));
    assert_true((a == NULL) == (b == NULL));
    if (!a)
        return;
    svi_refit_run(a);
    svi_refit_run(b);
    a->result.milliseconds = b->result.milliseconds = 1;
    svi_engine_refit_give(svi_stream_root(p->one.e));
    svi_engine_refit_give(svi_stream_root(p->two.e));
}

static void pair_end(struct pair *p) {
    speaker_close(&p->one);
    speaker_close(&p->two);
    svi_bytes_clear(&p->told[0]);
    svi_bytes_clear(&p->told[1]);
}

static int walk(const char *const *settings, bool words, uint64_t seed) {
    struct pair p = {.words = words, .random = {seed}};
    now_at = &p;
    speaker_begin(&p.one, settings);
    speaker_begin(&p.two, settings);
    svi_stream_use_threads(p.two.e);
    svi_stream_leave_open(p.two.e, true);
    for (int i = 0; i < ROUNDS; i++) {
        pair_batch(&p);
        both_refit(&p);
        if (below(&p, 3) == 0)
            pair_act(&p);
        if (below(&p, 8) == 0)
            compare_events(&p);
    }
    compare_states(&p);
    compare_events(&p);

    assert_true(p.scores > 500 && p.errors > 10);
    pair_end(&p);
    return p.alerts;
}

/* Alerts change all the time. */
static const char *const often[] = {"novelty.warmup",
                                    "60",
                                    "alert.p",
                                    "0.05",
                                    "alert.clear",
                                    "0.2",
                                    "refit",
                                    "none",
                                    "alert.cooldown",
                                    "0",
                                    "novelty.calibration",
                                    "100",
                                    "missing",
                                    "mean",
                                    "novelty.confirm",
                                    "200",
                                    NULL};

/* The same by a budget of so many that alerts open all the time. */
static const char *const budgeted[] = {
    "novelty.warmup", "60",   "alert.budget", "10000/hour", "alert.group", "0",
    "refit",          "none", "missing",      "mean",       NULL};

/* Messages that come as fast as they are taken, so that the other thread is at work whenever it is to stop.
 */
static int hurry(uint64_t seed, const char *const *settings) {
    struct pair p = {.random = {seed}};
    struct svi_bytes frames[BURST] = {{0}};
    now_at = &p;
    speaker_begin(&p.one, settings);
    speaker_begin(&p.two, settings);
    svi_stream_use_threads(p.two.e);
    svi_stream_leave_open(p.two.e, true);
    for (int round = 0; round < 15; round++) {
        for (int i = 0; i < BURST; i++) {
            const double far = below(&p, 25) == 0 ? 5 : 0;
            const int n = p.n++;
            speaker_build(&p.one, "{'x': [%.6f, %.6f, %.6f], 'y': %d, 'ts': %d}", pair_random(&p) + far,
                          pair_random(&p), pair_random(&p), n % 2, n);
            frames[i].size = 0;
            assert_int_equal(svi_bytes_append(&frames[i], p.one.frame.data, p.one.frame.size), SVS_OK);
            apply_bytes(p.one.e, frames[i].data, frames[i].size, NOW, false, NULL);
        }
        const int stop = 33 + below(&p, 60); /* the other thread hears of lots of 32 */
        for (int i = 0; i < BURST; i++) {
            apply_bytes(p.two.e, frames[i].data, frames[i].size, NOW, false, NULL);
            if (i % stop == stop - 1)
                svi_stream_settle(p.two.e);
        }
        compare_events(&p);
    }
    compare_states(&p);
    for (int i = 0; i < BURST; i++)
        svi_bytes_clear(&frames[i]);
    pair_end(&p);
    return p.alerts;
}

static void test_in_a_hurry(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed < 4; seed++)
        assert_true(hurry(seed, often) > 100);
    assert_true(hurry(4, budgeted) > 10);
}

static void test_both_say_the_same(void **state) {
    static const char *const plain[] = {
        "window",         "200", "refit.every", "300", "publish.every", "50", "novelty.warmup", "100",
        "alert.cooldown", "0",   NULL};
    static const char *const lagged[] = {
        "window",       "100",    "novelty.lags",   "3", "novelty.warmup", "100",  "scores", "3",
        "drift.action", "shrink", "alert.cooldown", "0", "missing",        "drop", NULL};
    static const char *const late[] = {
        "novelty.learn",  "labelled", "missing",        "mean", "method", "none",
        "novelty.warmup", "100",      "alert.cooldown", "0",    NULL};
    static const char *const words[] = {"window",
                                        "60",
                                        "categories.max",
                                        "3",
                                        "novelty.warmup",
                                        "100",
                                        "alert.cooldown",
                                        "0",
                                        "missing",
                                        "mean",
                                        "max.features",
                                        "14",
                                        NULL};
    (void)state;
    assert_true(walk(plain, false, 1) > 4);
    assert_true(walk(lagged, false, 2) > 4);
    int alerts = walk(late, false, 3);
    for (uint64_t seed = 4; seed < 8; seed++)
        alerts += walk(words, true, seed);
    assert_true(alerts > 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_both_say_the_same),
                                       cmocka_unit_test(test_in_a_hurry)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
