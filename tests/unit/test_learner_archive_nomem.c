/* Every allocation of keeping and taking back a learner, and of a row with first values, fails once: it says
 * so, and nothing is lost or leaked; and no count makes it take room that its bytes do not hold. Linked with
 * --wrap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/nomem.h"

#include "support/learner_walk.h"

static struct walk some_walk(int kind) {
    struct walk w = {
        .d = 3, .most = 9, .classes = 6, .spread = 1, .ids = WALK_ALL_IDS, .late = true, .seed = 9};
    svs_options_default(&w.o);
    w.o.window = kind ? 3000 : 0;
    w.forgets = kind;
    w.o.class_rule = kind == 2 ? SVS_CLASSES_BALANCED : SVS_CLASSES_ALIKE;
    return w;
}

/* Loads with the n-th allocation failing; true: it did not come to that. */
static bool load_nth(const svs_options *o, const struct svi_bytes *bytes, long n, struct svi_bytes *again) {
    struct svi_archive_in in;
    svs_error err = {0};
    svs_learner *l = svs_learner_new(o, 0, &err);
    assert_non_null(l);
    left = n;
    svi_archive_in_begin(&in, bytes->data, bytes->size, "learner", &err);
    svi_learner_archive(&in.archive, l);
    svs_code code = svi_archive_in_end(&in);
    bool whole = left >= 0;
    left = -1;
    if (whole) {
        assert_int_equal(code, SVS_OK);
        assert_int_equal(walk_save(l, again, &err), SVS_OK);
        assert_int_equal(again->size, bytes->size);
        assert_memory_equal(again->data, bytes->data, bytes->size);
    } else {
        assert_int_equal(code, SVS_NO_MEMORY);
        assert_true(strlen(err.text) > 10);
    }
    svs_learner_free(&l);
    return whole;
}

static void each_of_loading_fails_once(void **unused) {
    (void)unused;
    for (int kind = 0; kind < 3; kind++) {
        struct walk w = some_walk(kind);
        struct svi_bytes bytes = {0}, again = {0};
        svs_error err;
        svs_learner *l = walk_far(&w, 4000);
        assert_int_equal(walk_save(l, &bytes, &err), SVS_OK);
        long n = 0;
        while (!load_nth(&w.o, &bytes, n, &again))
            assert_true(++n < 1000);
        assert_true(n > 10);
        svs_learner_free(&l);
        svi_bytes_clear(&bytes);
        svi_bytes_clear(&again);
    }
}

/* Saving again afterwards gives what it would have given. */
static void each_of_saving_fails_once(void **unused) {
    (void)unused;
    struct walk w = some_walk(1);
    struct svi_bytes good = {0};
    svs_error err;
    svs_learner *l = walk_far(&w, 1000);
    assert_int_equal(walk_save(l, &good, &err), SVS_OK);
    long n = 0;
    for (bool whole = false; !whole; n++) {
        struct svi_bytes bytes = {0};
        left = n;
        svs_code code = walk_save(l, &bytes, &err);
        whole = left >= 0;
        left = -1;
        assert_int_equal(code, whole ? SVS_OK : SVS_NO_MEMORY);
        assert_int_equal(bytes.size, whole ? good.size : 0);
        if (whole)
            assert_memory_equal(bytes.data, good.data, good.size);
        svi_bytes_clear(&bytes);
    }
    assert_true(n > 5);
    left = 0;
    double error;
    assert_int_equal(svi_learner_verify(l, &error, &err), SVS_NO_MEMORY);
    left = -1;
    svs_learner_free(&l);
    svi_bytes_clear(&good);
}

/* Other options: the learner is as it was, or it has them. */
static void each_of_configuring_fails_once(void **unused) {
    (void)unused;
    struct walk w = some_walk(1);
    struct svi_bytes before = {0}, after = {0};
    svs_error err;
    svs_learner *l = walk_far(&w, 1500);
    svs_options o = w.o;
    assert_int_equal(walk_save(l, &before, &err), SVS_OK);
    o.C = 3;
    o.window = 400;
    long n = 0;
    for (bool whole = false; !whole; n++) {
        left = n;
        svs_code code = svs_learner_configure(l, &o, &err);
        whole = left >= 0;
        left = -1;
        assert_int_equal(code, whole ? SVS_OK : SVS_NO_MEMORY);
        assert_int_equal(walk_save(l, &after, &err), SVS_OK);
        assert_int_equal(before.size == after.size && memcmp(before.data, after.data, after.size) == 0,
                         !whole);
    }
    assert_true(n > 20);
    assert_true(svs_learner_check(l) < 1e-9);
    svs_learner_free(&l);
    svi_bytes_clear(&before);
    svi_bytes_clear(&after);
}

/* Counts that only claim: what is taken stays within a small multiple of the bytes that are there. */
static void bombs_take_no_room(void **unused) {
    (void)unused;
    static const struct {
        const char *field;
        int64_t value;
    } bombs[] = {{"features", 100000},        {"features", 700},
                 {"classes", 100000},         {"window count", 500000000},
                 {"window pushed", 1 << 30},  {"waiting count", 900000000},
                 {"waiting pushed", 1 << 30}, {"pending", 8}};
    struct walk w = some_walk(1);
    struct svi_bytes bytes = {0};
    svs_error err;
    w.o.max_features = 100000;
    w.o.max_classes = 100000;
    w.o.window = w.o.labels_max = 1000000000;
    w.ids = WALK_INTS;
    w.o.window_seconds = 100;
    svs_learner *made = svs_learner_new(&w.o, 0, &err), *l = walk_far(&w, 500);
    svs_learner_free(&made);
    for (size_t i = 0; i < sizeof bombs / sizeof *bombs; i++) {
        assert_int_equal(walk_save(l, &bytes, &err), SVS_OK);
        uint64_t v = htobe64((uint64_t)bombs[i].value);
        memcpy(walk_field(&bytes, bombs[i].field), &v, sizeof v);
        struct svi_archive_in in;
        made = svs_learner_new(&w.o, 0, &err);
        taken = 0;
        svi_archive_in_begin(&in, bytes.data, bytes.size, "learner", &err);
        svi_learner_archive(&in.archive, made);
        svs_code code = svi_archive_in_end(&in);
        print_message("%s: %.0f bytes taken for %zu\n", bombs[i].field, taken, bytes.size);
        assert_true(strstr(bombs[i].field, "pushed") || code == SVS_DAMAGED);
        assert_true(taken < 100e6);
        svs_learner_free(&made);
    }
    svs_learner_free(&l);
    svi_bytes_clear(&bytes);
}

/* One call after 700 others, its n-th allocation failing: the state is as it was, and the call can be made
 * again. True: it did not come to that. */
static bool call_nth(int kind, long n) {
    struct walk w = some_walk(kind % 2);
    struct svi_bytes before = {0}, after = {0};
    struct walk_outcome out;
    svs_error err;
    w.classes = 3;
    svs_learner *l = walk_far(&w, 700);
    double x[9] = {1, 2, 3};
    struct walk_call c = {.verb = kind < 2 ? WALK_GROW : WALK_STEP, .d = l->d + 30, .time = w.time};
    c.s = (svs_sample){x, l->d, svs_int(5), svs_str("new"), 1};
    assert_int_equal(walk_save(l, &before, &err), SVS_OK);
    left = n;
    walk_do(l, &c, &out);
    bool whole = left >= 0;
    left = -1;
    assert_int_equal(out.code, whole ? SVS_OK : SVS_NO_MEMORY);
    assert_int_equal(walk_save(l, &after, &err), SVS_OK);
    bool same = after.size == before.size && memcmp(after.data, before.data, after.size) == 0;
    assert_int_equal(same, !whole);
    walk_do(l, &c, &out);
    assert_int_equal(out.code, SVS_OK);
    double error;
    assert_int_equal(svi_learner_verify(l, &error, &err), SVS_OK);
    assert_true(error < 1e-8);
    svs_learner_free(&l);
    svi_bytes_clear(&before);
    svi_bytes_clear(&after);
    return whole;
}

static void failed_calls_change_nothing(void **unused) {
    (void)unused;
    for (int kind = 0; kind < 4; kind++) {
        long n = 0;
        while (!call_nth(kind, n))
            assert_true(++n < 100);
        assert_true(n > (kind < 2));
    }
}

/* A learner with either kind of class weights: made whole or not at all. */
static void each_of_making_fails_once(void **unused) {
    (void)unused;
    const svs_class_weight given[] = {{svs_str("rare"), 50}, {svs_int(1), 2}};
    for (int rule = SVS_CLASSES_BALANCED; rule <= SVS_CLASSES_GIVEN; rule++) {
        bool whole = false;
        for (long n = 0; !whole; n++) {
            svs_options o;
            svs_error err = {0};
            svs_options_default(&o);
            o.class_rule = (svs_class_rule)rule;
            o.class_weight = given;
            o.class_weight_count = 2;
            left = n;
            svs_learner *l = svs_learner_new(&o, 2, &err);
            whole = left >= 0;
            left = -1;
            assert_true(whole == (l != NULL));
            assert_int_equal(err.code, whole ? SVS_OK : SVS_NO_MEMORY);
            svs_learner_free(&l);
        }
    }
}

/* A row with the first values of many features, and of a class that is new: learned or not at all. */
static void each_of_first_values_fails_once(void **unused) {
    (void)unused;
    bool whole = false;
    long n = 0;
    for (; !whole; n++) {
        svs_options o;
        svs_step step;
        double x[60] = {0};
        svs_options_default(&o);
        o.window = 30;
        svs_learner *l = svs_learner_new(&o, 60, NULL);
        for (int j = 2; j < 60; j++)
            svs_learner_unscaled(l, j);
        svs_sample s = {.x = x, .d = 60, .id = svs_none(), .weight = 1};
        for (int i = 0; i < 50; i++) {
            x[0] = i % 7;
            x[2 + i % 3] = 1;
            s.y = svs_int(i % 2);
            assert_int_equal(svs_learner_step(l, &s, i, &step, NULL), SVS_OK);
            x[2 + i % 3] = 0;
        }
        x[59] = 1;
        s.y = svs_str("a third one");
        left = n;
        svs_code code = svs_learner_step(l, &s, 50, &step, NULL);
        whole = left >= 0;
        left = -1;
        assert_int_equal(code, whole ? SVS_OK : SVS_NO_MEMORY);
        assert_int_equal(svs_learner_class_count(l), whole ? 3 : 2);
        assert_true(svs_learner_check(l) < 1e-10);
        if (!whole)
            assert_int_equal(svs_learner_step(l, &s, 50, &step, NULL), SVS_OK);
        assert_int_equal(svs_learner_class_count(l), 3);
        assert_true(svs_learner_check(l) < 1e-10);
        svs_learner_free(&l);
    }
    assert_true(n > 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_of_first_values_fails_once), cmocka_unit_test(each_of_loading_fails_once),
        cmocka_unit_test(each_of_making_fails_once),       cmocka_unit_test(each_of_saving_fails_once),
        cmocka_unit_test(each_of_configuring_fails_once),  cmocka_unit_test(bombs_take_no_room),
        cmocka_unit_test(failed_calls_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
