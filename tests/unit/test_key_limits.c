/* Keys that are forgotten, and keys that are too many: by the clock of the stream and in the order of the
 * elements, so that a repetition and any number of threads come to the same. */
#include "support/engine.h"

#include "fleet/fleet_internal.h"

static const char *const small_settings[] = {
    "key",       "key", "novelty",         "none", "window",    "10",  "alert.rules", "none", "refit", "none",
    "key.prior", "0",   "publish.seconds", "0",    "keys.idle", "100", "threads",     "1",    NULL};

static bool has_key(struct speaker *f, const char *key) {
    json_t *reply = ask(f, "{'op': 'status', 'key': '%s'}", key);
    const bool known = json_is_true(json_object_get(reply, "ok"));
    if (!known)
        assert_string_equal(text_of(reply, "code"), "unknown_key");
    json_decref(reply);
    return known;
}

static double rows_of(struct speaker *f, const char *key) {
    json_t *reply = ask(f, "{'op': 'status', 'key': '%s'}", key);
    const double rows = number(reply, "seen");
    json_decref(reply);
    return rows;
}

static void learn_one(struct speaker *f, const char *key) {
    assert_int_equal(say(f, "{'key': '%s', 'x': [1, 2], 'y': 1}", key), SVS_OK);
}

static void test_forgotten(void **unused) {
    (void)unused;
    struct speaker f;
    speaker_open(&f, small_settings);
    learn_one(&f, "a");
    learn_one(&f, "b");
    learn_one(&f, "b");
    f.now = NOW + 50;
    learn_one(&f, "b");
    f.now = NOW + 100; /* not longer than that */
    learn_one(&f, "c");
    assert_true(has_key(&f, "a"));
    f.now = NOW + 100.5;
    assert_true(has_key(&f, "a")); /* asking forgets nothing */
    learn_one(&f, "c");
    assert_false(has_key(&f, "a"));
    assert_int_equal(rows_of(&f, "b"), 3);
    f.now = NOW + 150.5; /* itself, though no other sample came between */
    learn_one(&f, "b");
    assert_int_equal(rows_of(&f, "b"), 1);
    assert_int_equal(stat(&f, "keys"), 2);
    assert_int_equal(stat(&f, "seen"), 7);
    f.now = NOW + 1000; /* what is about a sample of it finds none */
    say(&f, "{'op': 'forget', 'key': 'b', 'id': 1}");
    assert_int_equal(f.error, SVS_UNKNOWN_KEY);
    assert_int_equal(stat(&f, "keys"), 0);
    speaker_close(&f);
}

/* A clock that is moved is no silence; nor is a setting of 0. */
static void test_clock_moved(void **unused) {
    (void)unused;
    struct speaker f;
    speaker_open(&f, small_settings);
    learn_one(&f, "a");
    f.now += 500;
    svi_stream_move_clock(f.e, 500, f.now);
    learn_one(&f, "b");
    assert_true(has_key(&f, "a"));
    speaker_take_up_again(&f);
    f.now += 99;
    learn_one(&f, "b");
    assert_true(has_key(&f, "a"));
    f.now += 2;
    learn_one(&f, "b");
    assert_false(has_key(&f, "a"));
    json_decref(ask(&f, "{'op': 'config', 'set': {'keys.idle': 0}}"));
    f.now += 1e6;
    learn_one(&f, "c");
    assert_true(has_key(&f, "b"));
    json_decref(ask(&f, "{'op': 'config', 'set': {'keys.idle': 1000}}"));
    learn_one(&f, "c");
    assert_false(has_key(&f, "b"));
    speaker_close(&f);
}

/* Where all are silent no sample waits for all of them to go: those that were heard first go first, from a
 * state that was written between, too. */
static void test_bit_by_bit(void **unused) {
    (void)unused;
    struct speaker f;
    char key[16];
    speaker_open(&f, small_settings);
    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof key, "k%d", i * 37 % 100);
        learn_one(&f, key);
    }
    learn_one(&f, "k0"); /* the first of them is the last now */
    f.now += 101;
    learn_one(&f, "k50");
    assert_int_equal(rows_of(&f, "k50"), 1);
    const double left = stat(&f, "keys");
    assert_in_range((int)left, 50, 99);
    assert_false(has_key(&f, "k37"));
    speaker_take_up_again(&f);
    for (int i = 0; i < 100 && stat(&f, "keys") > 1; i++) {
        assert_true(stat(&f, "keys") == 2 || has_key(&f, "k0"));
        learn_one(&f, "k50");
    }
    assert_int_equal(stat(&f, "keys"), 1);
    assert_true(has_key(&f, "k50"));
    speaker_close(&f);
}

/* One source that begins keys without end, and then many of them, push nobody out: what there was learns on,
 * and there is room for the next one. */
static void test_too_many(void **unused) {
    (void)unused;
    struct speaker f;
    const char *const settings[] = {"key",     "key",  "keys.max",        "1000", "window", "10",
                                    "novelty", "none", "publish.seconds", "0",    NULL};
    int64_t n = 0;
    speaker_open(&f, settings);
    json_decref(route(&f, "{'key': 'mine', 'x': [1], 'src': 'good', 'n': 0}"));
    for (int i = 0; i < 1100; i++, n++)
        json_decref(route(&f, "{'key': 'a%d', 'x': [1], 'src': 'bad', 'n': %d}", i, (int)n));
    assert_in_range((int)stat(&f, "keys"), 890, 902);
    json_t *reply = route(&f, "{'key': 'more', 'x': [1], 'src': 'bad', 'n': %d}", (int)n);
    assert_string_equal(text_of(reply, "code"), "limit");
    assert_non_null(strstr(text_of(reply, "error"), "the share of keys.max"));
    json_decref(reply);
    for (int source = 0; source < 50; source++)
        for (int i = 0; i < 60; i++)
            json_decref(
                route(&f, "{'key': 'b%d-%d', 'x': [1], 'src': 'bad%d', 'n': %d}", source, i, source, i));
    assert_true(stat(&f, "keys") < 1000);
    reply = route(&f, "{'key': 'mine', 'x': [1], 'src': 'good', 'n': 1}");
    assert_string_equal(text_of(reply, "code"), "(none)");
    json_decref(reply);
    reply = route(&f, "{'key': 'mine too', 'x': [1], 'src': 'late', 'n': 0}");
    assert_string_equal(text_of(reply, "code"), "(none)");
    json_decref(reply);
    assert_int_equal(rows_of(&f, "mine"), 2);
    assert_int_equal(rows_of(&f, "mine too"), 1);
    assert_int_equal(rows_of(&f, "a0"), 1);
    speaker_close(&f);
}

/* Nobody need name himself to send: who does not begins no more than 100,000 keys of the million that there
 * may be. Who does, and a file, whose rows come without a name, begin more. */
static void test_nameless(void **unused) {
    (void)unused;
    enum { MOST = 100000, BATCH = 500 };
    static const char *const settings[] = {
        "key",         "key",  "window",  "2",    "novelty",         "none",
        "alert.rules", "none", "refit",   "none", "publish.seconds", "0",
        "keys.memory", "10",   "threads", "1",    "key.prior",       "0",
        NULL};
    struct speaker f;
    struct svi_pack p;
    char key[16];
    speaker_open(&f, settings);
    for (int i = 0; i < MOST + BATCH; i += BATCH) {
        f.frame.size = 0;
        svi_pack_begin(&p, &f.frame);
        svi_pack_array(&p, BATCH);
        for (int k = i; k < i + BATCH; k++) {
            snprintf(key, sizeof key, "n%d", k);
            svi_pack_map(&p, 3);
            svi_put_text(&p, "key", key);
            svi_put_int(&p, "y", 1);
            svi_pack_key(&p, "x");
            svi_pack_array(&p, 1);
            svi_pack_real(&p, 1);
        }
        assert_int_equal(svi_pack_end(&p), SVS_OK);
        apply_bytes(f.e, f.frame.data, f.frame.size, f.now, false, NULL);
    }
    assert_int_equal(stat(&f, "keys"), MOST);
    assert_int_equal(f.error, SVS_LIMIT);
    assert_non_null(
        strstr(text_of(f.last[SVI_TOPIC_ERROR], "reason"), "let producers send src"));
    assert_int_equal(rows_of(&f, "n99999"), 1);
    assert_int_equal(say(&f, "{'key': 'n7', 'x': [1], 'y': 1}"), SVS_OK);
    assert_int_equal(rows_of(&f, "n7"), 2);
    json_decref(route(&f, "{'key': 'mine', 'x': [1], 'src': 'named', 'n': 0}"));
    assert_int_equal(rows_of(&f, "mine"), 1);
    speaker_close(&f);
    svs_error err;
    struct svi_settings s;
    svi_settings_default(&s);
    svi_settings_set(&s, "key", "machine", &err);
    svi_settings_set(&s, "in", "-", &err);
    svi_settings_settle_method(&s);
    assert_int_equal(s.keys_quota, s.keys_max);
}

/* Without keys.memory as many keys are in memory as half of what the process may have holds, as large as the
 * largest are once all is full: fewer where they have more features, and where many are on disk. */
static void test_by_the_machine(void **unused) {
    (void)unused;
    struct svi_settings s;
    struct svi_keys_memory narrow, wide;
    svs_error err;
    svi_settings_default(&s);
    svi_settings_set(&s, "key", "key", &err);
    svi_settings_settle_method(&s);
    assert_int_equal(s.keys_memory, 0);
    svi_keys_memory(&s, 10, 2, &narrow);
    svi_keys_memory(&s, 60, 2, &wide);
    assert_true(narrow.share <= 0.5 * narrow.machine && narrow.machine >= 64 << 20);
    assert_true(wide.most < narrow.most && wide.each > narrow.each);
    assert_true((double)narrow.most * narrow.each <= narrow.share);
    narrow.share = 1e9;
    narrow.each = 1e5;
    assert_int_equal(svi_keys_in_memory(&s, &narrow, 0), 10000);
    assert_true(wide.entry > narrow.entry && narrow.entry > SVI_KEY_ENTRY); /* key.prior is on */
    const double left = 1e9 - 100000 * narrow.entry;
    assert_int_equal(svi_keys_in_memory(&s, &narrow, 100000), (int)(left / 1e5));
    assert_int_equal(svi_keys_in_memory(&s, &narrow, 100000000), 1);
    s.keys_memory = 77;
    assert_int_equal(svi_keys_in_memory(&s, &narrow, 100000000), 77);
}

/* How large keys are is known again after a restart, whoever works on them: the limit by memory goes by it.
 */
static void test_measured_by_workers(void **unused) {
    (void)unused;
    static const char *const more[] = {"key",   "key",  "novelty", "none", "alert.rules", "none",
                                       "refit", "none", "threads", "3",    NULL};
    struct speaker f;
    speaker_open(&f, more);
    for (int again = 0; again < 2; again++) {
        for (int i = 0; i < 40; i++)
            assert_int_equal(say(&f, "{'key': 'k%d', 'x': [1, 2, %d], 'y': %d}", i % 4, i, i / 4 % 2),
                             SVS_OK);
        svi_stream_settle(f.e);
        assert_int_equal(svi_fleet_of(f.e)->largest.columns, 3);
        assert_int_equal(svi_fleet_of(f.e)->largest.classes, 2);
        speaker_take_up_again(&f);
        assert_int_equal(svi_fleet_of(f.e)->largest.columns, 0);
    }
    speaker_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forgotten),     cmocka_unit_test(test_clock_moved),
        cmocka_unit_test(test_bit_by_bit),    cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_nameless),      cmocka_unit_test(test_measured_by_workers),
        cmocka_unit_test(test_by_the_machine)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
