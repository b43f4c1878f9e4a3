/* All that waits for a time by key moves with the arrival clock: a silence, an age, keys.idle, a group of
 * alerts; and a process that begins takes the time before it for no silence. */
#include "support/engine.h"

#define DAY  86400.0
#define FAR  (40 * DAY)
#define KEYS 4

static const char *const settings[] = {
    "key",          "key", "novelty",         "none", "window",    "10",  "refit", "none", "key.prior", "0",
    "alert.absent", "40",  "publish.seconds", "0",    "keys.idle", "100", NULL};

static void learn_key(struct speaker *f, int k) {
    assert_int_equal(say(f, "{'key': 'm%d', 'x': [1, 2], 'y': 1}", k), SVS_OK);
}

static void learn_all(struct speaker *f) {
    for (int k = 0; k < KEYS; k++)
        learn_key(f, k);
}

static void move(struct speaker *f, double step) {
    f->now += step;
    svi_stream_move_clock(f->e, step, f->now);
    (void)svi_stream_deadline(f->e); /* which a process asks for in each turn */
}

static double absent(struct speaker *f) {
    svi_stream_pass(f->e, f->now);
    return stat(f, "keys_alerts_open");
}

static double age(struct speaker *f, int k) {
    json_t *reply = ask(f, "{'op': 'keys', 'like': 'm%d'}", k), *keys = json_object_get(reply, "keys");
    assert_int_equal(json_array_size(keys), 1);
    const double age = number(json_array_get(keys, 0), "age");
    json_decref(reply);
    return age;
}

/* Keys with a sample of that age at least. */
static int silent(struct speaker *f, double seconds) {
    json_t *reply = ask(f, "{'op': 'keys', 'sort': 'age', 'silent': %g}", seconds);
    const int count = (int)number(reply, "matching");
    json_decref(reply);
    return count;
}

/* For half a second the clock is 40 days ahead, or behind. */
static void test_silence_there_and_back(void **unused) {
    (void)unused;
    static const double steps[] = {FAR, -FAR, -3600, 7};
    for (int i = 0; i < 4; i++) {
        struct speaker f;
        speaker_open(&f, settings);
        learn_all(&f);
        f.now += 10;
        move(&f, steps[i]);
        f.now += 0.5;
        assert_int_equal(absent(&f), 0);
        move(&f, -steps[i]);
        learn_key(&f, KEYS); /* one more, so that others stand behind it */
        assert_int_equal(absent(&f), 0);
        f.now += 29;
        assert_int_equal(absent(&f), 0);
        f.now += 1;
        assert_int_equal(absent(&f), KEYS);
        f.now += 10;
        assert_int_equal(absent(&f), KEYS + 1);
        speaker_close(&f);
    }
}

/* What opens on both sides of a move is one group, and it lasted as long as it did. */
static void test_a_group_moves_along(void **unused) {
    (void)unused;
    struct speaker f;
    speaker_open(&f, settings);
    learn_key(&f, 0);
    f.now += 5;
    learn_key(&f, 1);
    f.now += 36;
    assert_int_equal(absent(&f), 1);
    move(&f, FAR);
    move(&f, -FAR / 2);
    f.now += 5;
    assert_int_equal(absent(&f), 2);
    f.now += 5; /* a key that joins is reported after five seconds */
    assert_int_equal(absent(&f), 2);
    assert_int_equal(number(f.last[SVI_TOPIC_ALERT], "keys_count"), 2);
    f.now += 15;
    for (int i = 0; i < 1001; i++) {
        learn_key(&f, 0);
        learn_key(&f, 1);
    }
    assert_string_equal(text_of(f.last[SVI_TOPIC_ALERT], "state"), "close");
    assert_non_null(strstr(text_of(f.last[SVI_TOPIC_ALERT], "text"), "ended after 66 s"));
    speaker_close(&f);
}

/* Likewise of alerts about rows, unless their times are those of producers, which are true. */
static void test_a_group_of_rows(void **unused) {
    (void)unused;
    const char *const limited[] = {"key",   "key",  "novelty", "none",    "window",          "10",
                                   "refit", "none", "limits",  "0:-5..5", "publish.seconds", "0",
                                   NULL};
    static const char *const samples[] = {"{'key': 'm%d', 'x': [%d, 2], 'y': 1}",
                                          "{'key': 'm%d', 'x': [%d, 2], 'y': 1, 'ts': %d}"};
    for (int stamped = 0; stamped < 2; stamped++) {
        struct speaker f;
        speaker_open(&f, limited);
        int ts = 5000;
        for (int k = 0; k < 2; k++)
            say(&f, samples[stamped], k, 1, ts);
        f.now += 1;
        say(&f, samples[stamped], 0, 9, ts + 1);
        assert_int_equal(stat(&f, "keys_alerts_open"), 1);
        move(&f, FAR);
        f.now += 3;
        say(&f, samples[stamped], 1, 9, ts + 4);
        assert_int_equal(stat(&f, "keys_alerts_open"), 2);
        f.now += 5;
        assert_int_equal(absent(&f), 2);
        assert_int_equal(number(f.last[SVI_TOPIC_ALERT], "keys_count"), 2);
        speaker_close(&f);
    }
}

static void test_ages(void **unused) {
    (void)unused;
    struct speaker f;
    speaker_open(&f, settings);
    learn_all(&f);
    f.now += 10;
    move(&f, FAR);
    learn_key(&f, 1);
    assert_int_equal(silent(&f, 100), 0);
    move(&f, -FAR);
    f.now += 3;
    assert_true(fabs(age(&f, 0) - 13) < 1e-3 && fabs(age(&f, 1) - 3) < 1e-3);
    assert_int_equal(silent(&f, 12), KEYS - 1);
    assert_int_equal(silent(&f, 100), 0);
    speaker_close(&f);
}

/* One start with a clock that is ahead, which is then set right: no key goes for it, and none is silent for
 * longer than it was; what it then is silent for counts. */
static void test_a_start_is_no_silence(void **unused) {
    (void)unused;
    struct speaker f;
    speaker_open(&f, settings);
    learn_all(&f);
    f.now += 30;
    learn_key(&f, 0);
    speaker_take_up_again(&f);
    f.now += FAR;
    svi_stream_begin(f.e, f.now);
    f.now += 1;
    assert_int_equal(absent(&f), 0);
    learn_key(&f, 0);
    assert_int_equal(stat(&f, "keys"), KEYS);
    assert_true(fabs(age(&f, 1) - 31) < 1e-3);
    speaker_take_up_again(&f);
    move(&f, -FAR);
    learn_key(&f, 0);
    assert_int_equal(stat(&f, "keys"), KEYS);
    assert_true(fabs(age(&f, 1) - 31) < 1e-3);
    f.now += 68;
    learn_key(&f, 0);
    assert_int_equal(stat(&f, "keys"), KEYS);
    f.now += 2;
    learn_key(&f, 0);
    assert_int_equal(stat(&f, "keys"), 1);
    speaker_close(&f);
}

/* A state that was kept under a clock that was ahead: no sample without a key need have come. */
static void test_a_state_of_a_later_time(void **unused) {
    (void)unused;
    static const char *const samples[] = {"{'key': 'm%d', 'x': [1, 2], 'y': 1}",
                                          "{'key': 'm%d', 'x': [1, 2], 'y': 1, 'ts': 1000}"};
    for (int i = 0; i < 2; i++) {
        double step;
        struct speaker f;
        speaker_open(&f, settings);
        assert_false(svi_stream_ahead(f.e, NOW - FAR, &step));
        for (int k = 0; k < KEYS; k++)
            assert_int_equal(say(&f, samples[i], k), SVS_OK);
        speaker_take_up_again(&f);
        assert_false(svi_stream_ahead(f.e, f.now, &step));
        f.now -= FAR;
        svi_stream_begin(f.e, f.now);
        f.now += 1;
        assert_true(svi_stream_ahead(f.e, f.now, &step) && fabs(step - (1 - FAR)) < 1e-3);
        svi_stream_move_clock(f.e, step, f.now);
        assert_false(svi_stream_ahead(f.e, f.now, &step));
        f.now += 39;
        assert_int_equal(absent(&f), 0);
        f.now += 2;
        assert_int_equal(absent(&f), KEYS);
        speaker_close(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_silence_there_and_back), cmocka_unit_test(test_a_group_moves_along),
        cmocka_unit_test(test_a_group_of_rows),        cmocka_unit_test(test_ages),
        cmocka_unit_test(test_a_start_is_no_silence),  cmocka_unit_test(test_a_state_of_a_later_time)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
