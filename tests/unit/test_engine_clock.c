/* The clock that arrival times are read from is moved: what is held for some seconds is held as long as
 * without that, and time stamps that cannot be true any more do not hold anything up. */
#include "support/engine.h"

#include "base/arrival_clock.h"
#include "alerts/alert.h"
#include "state/record.h"
#include "store/checkpoint_file.h"

#define DAY   86400.0
#define STEPS 4

static const char *const settings[] = {"window.seconds", "10",    "labels.ttl", "5",       "scale",
                                       "none",           "refit", "none",       "novelty", "none",
                                       "ts.ahead",       "60",    NULL};

static double held(struct speaker *f) {
    return 1000 * stat(f, "held") + stat(f, "waiting");
}

/* A sample a second, every third without a label. */
static void learn_for(struct speaker *f, int seconds, int *at, double *counts) {
    for (int i = 0; i < seconds; i++, (*at)++, f->now++) {
        const char *how = *at % 3 ? "{'x': [%d, 1], 'id': %d, 'y': 1}" : "{'x': [%d, 1], 'id': %d}";
        assert_int_equal(say(f, how, *at % 7, *at), SVS_OK);
        counts[*at] = held(f);
    }
}

static void move(struct speaker *f, double step) {
    const int before = f->count[SVI_TOPIC_ERROR];
    f->now += step;
    svi_stream_move_clock(f->e, step, f->now);
    assert_int_equal(f->count[SVI_TOPIC_ERROR], before + 1);
    assert_int_equal(f->error, SVS_CLOCK_MOVED);
    assert_true(number(f->last[SVI_TOPIC_ERROR], "ts") == f->now);
}

static void test_arrivals_keep_their_age(void **unused) {
    (void)unused;
    static const double steps[STEPS] = {40 * DAY, -40 * DAY, -7, 3600};
    double moved[200], still[200];
    struct speaker f, g;
    speaker_open(&f, settings);
    speaker_open(&g, settings);
    int at = 0, there = 0;
    for (int i = 0; i < STEPS; i++) {
        learn_for(&f, 15, &at, moved);
        move(&f, steps[i]);
    }
    learn_for(&f, 15, &at, moved);
    learn_for(&g, at, &there, still);
    assert_int_equal(at, there);
    for (int i = 0; i < at; i++)
        assert_true(moved[i] == still[i]);
    assert_true(still[at - 1] < 11 * 1000); /* something has left */
    svi_stream_publish_stats(f.e, NULL, f.now);
    assert_in_range(number(f.last[SVI_TOPIC_STATS], "uptime"), at - 2, at);
    speaker_close(&f);
    speaker_close(&g);
}

static void test_a_state_taken_up_moves_alike(void **unused) {
    (void)unused;
    struct speaker f, g;
    struct svi_checkpoint c = {0};
    double counts[100];
    char one[SVI_HASH_TEXT], other[SVI_HASH_TEXT];
    int at = 0, there;
    speaker_open(&f, settings);
    speaker_open(&g, settings);
    learn_for(&f, 20, &at, counts);
    there = at;
    assert_int_equal(svi_stream_save(f.e, &c, NULL), SVS_OK);
    assert_int_equal(svi_stream_load(g.e, &c, NULL), SVS_OK);
    g.now = f.now;
    memcpy(g.count, f.count, sizeof g.count);
    move(&f, -DAY);
    move(&g, -DAY);
    learn_for(&f, 20, &at, counts);
    learn_for(&g, 20, &there, counts);
    assert_int_equal(svi_stream_hash(f.e, one, NULL), SVS_OK);
    assert_int_equal(svi_stream_hash(g.e, other, NULL), SVS_OK);
    assert_string_equal(one, other);
    svi_checkpoint_clear(&c);
    speaker_close(&f);
    speaker_close(&g);
}

/* A sample a second by the producer's clock, which the clock here is so far ahead of. */
static void learn_stamped(struct speaker *f, int count, double *ts, double ahead) {
    for (int i = 0; i < count; i++, ++*ts, f->now = *ts + ahead)
        assert_int_equal(say(f, "{'x': [%d, 1], 'y': 1, 'ts': %.3f}", i % 7, *ts), SVS_OK);
}

static void test_time_stamps(void **unused) {
    (void)unused;
    struct speaker f;
    double ts = NOW;
    speaker_open(&f, settings);
    learn_stamped(&f, 30, &ts, 0);
    assert_true(stat(&f, "held") == 11);
    move(&f, 40 * DAY); /* here alone: the producer's clock is right */
    learn_stamped(&f, 5, &ts, 40 * DAY);
    assert_true(stat(&f, "held") == 11);
    move(&f, -40 * DAY);
    learn_stamped(&f, 30, &ts, 0);
    assert_true(stat(&f, "held") == 11);
    move(&f, 40 * DAY); /* now the producer's too, which empties the window, for that is what it says */
    ts += 40 * DAY;
    learn_stamped(&f, 5, &ts, 0);
    assert_true(stat(&f, "held") == 5);
    move(&f, -40 * DAY);
    ts -= 40 * DAY;
    learn_stamped(&f, 30, &ts, 0);
    assert_true(stat(&f, "held") == 11);
    speaker_close(&f);
}

static void test_a_state_of_the_future(void **unused) {
    (void)unused;
    struct speaker f;
    double counts[100], step, ts;
    int at = 0;
    speaker_open(&f, settings);
    assert_false(svi_engine_ahead(svi_stream_root(f.e), NOW, &step)); /* nothing came */
    learn_for(&f, 20, &at, counts);
    assert_false(svi_engine_ahead(svi_stream_root(f.e), f.now, &step));
    assert_true(svi_engine_ahead(svi_stream_root(f.e), f.now - DAY, &step) &&
                step == 1 - DAY); /* the last came a second ago */
    ts = f.now + 50;
    learn_stamped(&f, 1, &ts, -51);
    assert_false(svi_engine_ahead(svi_stream_root(f.e), f.now, &step)); /* ts.ahead allows that */
    assert_true(svi_engine_ahead(svi_stream_root(f.e), f.now - DAY, &step) &&
                fabs(step + DAY) < 2); /* its arrival is not */
    f.now -= DAY;
    move(&f, 0);
    assert_non_null(strstr(text_of(f.last[SVI_TOPIC_ERROR], "reason"), "moved back"));
    learn_for(&f, 20, &at, counts);
    assert_true(stat(&f, "held") <= 8); /* of ten seconds, every third without a label */
    speaker_close(&f);
}

static void test_an_alert_cools_down(void **unused) {
    (void)unused;
    const struct svi_alert_options o = {.p = 0.01, .clear = 0.1, .cooldown = 60};
    struct svi_alert a;
    svi_alert_init(&a, &o);
    svi_alert_move_times(&a, -INFINITY, DAY); /* before there was one */
    assert_int_equal(svi_alert_step(&a, 0.001, 1, 0.5, 100), SVI_ALERT_OPEN);
    svi_alert_move_times(&a, -INFINITY, DAY);
    assert_true(a.since == 100 + DAY);
    assert_int_equal(svi_alert_step(&a, 0.5, 1, 0, 110 + DAY), SVI_ALERT_CLOSE);
    svi_alert_move_times(&a, 200, -DAY);
    assert_int_equal(svi_alert_step(&a, 0.001, 1, 0.5, 169), SVI_ALERT_NONE);
    assert_int_equal(svi_alert_step(&a, 0.001, 1, 0.5, 170), SVI_ALERT_OPEN);
}

static void test_the_record(void **unused) {
    (void)unused;
    struct speaker f;
    struct svi_bytes step = {0};
    svs_error err;
    double counts[100];
    int at = 0;
    speaker_open(&f, settings);
    learn_for(&f, 20, &at, counts);
    assert_int_equal(svi_record_pack_clock(-DAY, &step), SVS_OK);
    f.now -= DAY;
    struct svi_record r = {.kind = SVI_RECORD_CLOCK, .now = f.now, .payload = step.data, .size = step.size};
    assert_int_equal(svi_record_apply(&f.e, &f.s, &r, NULL, &err), SVS_OK);
    assert_int_equal(f.count[SVI_TOPIC_ERROR], 1);
    learn_for(&f, 20, &at, counts);
    assert_true(stat(&f, "held") <= 8);
    for (r.size = 0; r.size < step.size; r.size++)
        assert_int_equal(svi_record_apply(&f.e, &f.s, &r, NULL, &err), SVS_DAMAGED);
    static const double wild[] = {1e13, -1e300, INFINITY, NAN};
    for (int i = 0; i < 4; i++) {
        step.size = 0;
        assert_int_equal(svi_record_pack_clock(wild[i], &step), SVS_OK);
        r.payload = step.data;
        assert_int_equal(svi_record_apply(&f.e, &f.s, &r, NULL, &err), SVS_DAMAGED);
    }
    assert_int_equal(f.count[SVI_TOPIC_ERROR], 1);
    svi_bytes_clear(&step);
    speaker_close(&f);
}

static void test_the_clock(void **unused) {
    (void)unused;
    struct svi_arrival_clock c;
    svi_arrival_clock_start(&c);
    const double began = svi_arrival_clock_now(&c);
    assert_true(svi_arrival_clock_offset(&c) == 0);
    svi_arrival_clock_move(&c, 3600);
    assert_true(svi_arrival_clock_now(&c) - began >= 3600);
    assert_true(fabs(svi_arrival_clock_offset(&c) + 3600) < 0.1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arrivals_keep_their_age),
        cmocka_unit_test(test_a_state_taken_up_moves_alike),
        cmocka_unit_test(test_time_stamps),
        cmocka_unit_test(test_a_state_of_the_future),
        cmocka_unit_test(test_an_alert_cools_down),
        cmocka_unit_test(test_the_record),
        cmocka_unit_test(test_the_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
