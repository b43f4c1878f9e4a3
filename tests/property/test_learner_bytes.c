/* Bytes that are not a learner's are refused with a message, or do no harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "support/learner_walk.h"
#include "support/ring.h"

static bool quick(void) {
    return getenv("SVMSTREAM_QUICK") != NULL;
}

static void save(svs_learner *l, struct svi_bytes *bytes) {
    svs_error err;
    assert_int_equal(walk_save(l, bytes, &err), SVS_OK);
}

static struct walk small_walk(int kind) {
    struct walk w = {.d = 2, .most = 2, .classes = kind == 2 ? 2 : 4, .spread = 1, .seed = 77};
    svs_options_default(&w.o);
    w.o.window = kind == 1 ? 0 : 9;
    w.ids = WALK_ALL_IDS;
    w.late = w.forgets = true;
    w.o.task = kind == 2 ? SVS_REGRESS : SVS_CLASSIFY;
    w.o.forget = kind == 3 ? 0.9 : 1;
    w.o.max_classes = 6;
    w.o.labels_max = 6;
    w.o.max_features = 50;
    return w;
}

static void refused(const svs_options *o, const struct svi_bytes *bytes, size_t size, const char *what) {
    svs_error err = {0};
    svs_learner *l = walk_load(o, 0, bytes->data, size, &err);
    if (l)
        fail_msg("%s was taken", what);
    assert_int_equal(err.code, SVS_DAMAGED);
    assert_non_null(strstr(err.text, "learner"));
}

static void cut_short(void **state) {
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        struct walk w = small_walk(kind);
        struct svi_bytes bytes = {0};
        svs_learner *l = walk_far(&w, 150);
        save(l, &bytes);
        for (size_t size = 0; size < bytes.size; size += 1 + size / 100)
            refused(&w.o, &bytes, size, "a part");
        svs_learner_free(&l);
        svi_bytes_clear(&bytes);
    }
}

/* 200 calls on what was loaded from flipped bytes; nothing is asked of the answers. */
static void survives(svs_learner *l, struct walk w) {
    struct walk_outcome out;
    struct svi_bytes bytes = {0};
    svs_error err;
    w.d = l->d;
    w.most = l->d + 3;
    for (int i = 0; i < 200; i++) {
        struct walk_call c = walk_next(&w);
        walk_do(l, &c, &out);
    }
    assert_null(ring_check(&l->window));
    assert_null(ring_check(&l->waiting));
    assert_int_equal(walk_save(l, &bytes, &err), SVS_OK);
    svi_bytes_clear(&bytes);
}

static void flipped_bytes(void **state) {
    (void)state;
    int taken = 0, given_back = 0;
    uint64_t seed = 3;
    for (int kind = 0; kind < 4; kind++) {
        struct walk w = small_walk(kind);
        struct svi_bytes bytes = {0}, bad = {0};
        svs_learner *l = walk_far(&w, 140 + kind);
        save(l, &bytes);
        for (int i = 0; i < (quick() ? 150 : 2500); i++) {
            svs_error err = {0};
            bad.size = 0;
            assert_int_equal(svi_bytes_append(&bad, bytes.data, bytes.size), SVS_OK);
            for (int k = 0; k <= i % 3; k++) {
                static const uint8_t odd[] = {0, 0xff, 0x7f, 0x80, 1};
                uint64_t at = ref_next(&seed) % bad.size, how = ref_next(&seed);
                bad.data[at] = how % 2 ? bad.data[at] ^ (uint8_t)(1 << (how >> 8) % 8) : odd[(how >> 8) % 5];
            }
            svs_learner *m = walk_load(&w.o, 0, bad.data, bad.size, &err);
            assert_true(m || (err.code != SVS_OK && strlen(err.text) > 10));
            taken += m != NULL;
            given_back += m == NULL;
            if (m)
                survives(m, w);
            svs_learner_free(&m);
        }
        svs_learner_free(&l);
        svi_bytes_clear(&bytes);
        svi_bytes_clear(&bad);
    }
    print_message("%d taken, %d refused\n", taken, given_back);
    assert_true(taken > 20 && given_back > 20);
}

enum spoil { INTEGER, DOUBLE, SMALL, BYTE };

/* One field's value (its `element`-th) replaced. */
static void spoil(const struct svi_bytes *bytes, const char *name, enum spoil type, int element,
                  double value) {
    uint8_t *at = walk_field(bytes, name);
    assert_non_null(at);
    if (type == INTEGER) {
        uint64_t v = htobe64((uint64_t)(int64_t)value);
        memcpy(at, &v, sizeof v);
    } else if (type == DOUBLE) {
        memcpy(at + 8 * element, &value, sizeof value);
    } else if (type == SMALL) {
        int32_t v = (int32_t)value;
        memcpy(at + 4 * element, &v, sizeof v);
    } else {
        at[element] = (uint8_t)value;
    }
}

static void wrong_values(void **state) {
    (void)state;
    static const struct {
        int kind;
        const char *field;
        enum spoil type;
        int element;
        double value;
    } all[] = {
        {0, "features", INTEGER, 0, 51},
        {0, "features", INTEGER, 0, -1},
        {0, "features", INTEGER, 0, 49},
        {0, "classes", INTEGER, 0, 7},
        {0, "classes", INTEGER, 0, 3},
        {0, "class 0 kind", INTEGER, 0, SVS_REAL},
        {0, "class 0 length", INTEGER, 0, 0},
        {0, "class 0", BYTE, 0, 0xff},
        {0, "arrivals", INTEGER, 0, 0x1p61},
        {0, "next_rebuild", INTEGER, 0, 1},
        {0, "order", INTEGER, 0, 0x1p59},
        {0, "base", INTEGER, 0, 0x1p59},
        {3, "base", INTEGER, 0, -1},
        {0, "held_learned", INTEGER, 0, 1},
        {0, "means", DOUBLE, 1, NAN},
        {0, "inverse deviations", DOUBLE, 0, 0},
        {0, "inverse deviations", DOUBLE, 1, -2},
        {0, "inverse deviations", DOUBLE, 1, INFINITY},
        {3, "ridge", DOUBLE, 2, -1},
        {3, "ridge", DOUBLE, 2, NAN},
        {0, "P", DOUBLE, 3, INFINITY},
        {0, "pending", INTEGER, 0, 9},
        {0, "signs", INTEGER, 0, 255},
        {0, "w 3", DOUBLE, 0, NAN},
        {0, "window count", INTEGER, 0, 10},
        {0, "window count", INTEGER, 0, 3},
        {0, "window pushed", INTEGER, 0, 1},
        {0, "window 0 states", BYTE, 0, 0xff},
        {0, "window 0 states", BYTE, 8, 2},
        {0, "window 0 weights", DOUBLE, 8, 0},
        {0, "window 0 weights", DOUBLE, 8, 1e101},
        {0, "window 0 weights", DOUBLE, 8, NAN},
        {0, "window 0 times", DOUBLE, 8, NAN},
        {0, "window 0 labels", SMALL, 8, 4},
        {0, "window 0 labels", SMALL, 8, -1},
        {0, "window 0 orders", DOUBLE, 8, 1e300},
        {0, "window 0 orders", DOUBLE, 8, 0},
        {0, "window 0 rows", DOUBLE, 17, 2e100},
        {0, "window 0 rows", DOUBLE, 16, NAN},
        {2, "window 0 targets", DOUBLE, 8, NAN},
        {0, "waiting count", INTEGER, 0, 7},
        {0, "bucket", INTEGER, 0, 2},
        {1, "bucket", INTEGER, 0, 1},
        {1, "gram", DOUBLE, 0, NAN},
        {1, "sums", DOUBLE, 0, INFINITY},
        {1, "gathered", INTEGER, 0, 64},
        {1, "gathered weights", DOUBLE, 0, -1},
        {1, "gathered rows", DOUBLE, 0, NAN},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct walk w = small_walk(all[i].kind);
        struct svi_bytes bytes = {0};
        svs_error err;
        w.forgets = false;
        svs_learner *l = walk_far(&w, 171);
        save(l, &bytes);
        svs_learner_free(&l);
        l = walk_load(&w.o, 2, bytes.data, bytes.size, &err);
        assert_non_null(l);
        svs_learner_free(&l);
        spoil(&bytes, all[i].field, all[i].type, all[i].element, all[i].value);
        refused(&w.o, &bytes, bytes.size, all[i].field);
        svi_bytes_clear(&bytes);
    }
}

static void equal_classes(void **state) {
    (void)state;
    struct walk w = small_walk(0);
    struct svi_bytes bytes = {0};
    svs_error err;
    svs_step step;
    svs_learner *l = svs_learner_new(&w.o, 1, &err);
    const char *const names[] = {"red", "tea", "rye"};
    for (int i = 0; i < 3; i++) {
        double x = i;
        svs_sample s = {&x, 1, svs_none(), svs_str(names[i]), 1};
        assert_int_equal(svs_learner_step(l, &s, i, &step, &err), SVS_OK);
    }
    save(l, &bytes);
    memcpy(walk_field(&bytes, "class 2"), "red", 3);
    refused(&w.o, &bytes, bytes.size, "a class twice");
    svs_learner_free(&l);
    svi_bytes_clear(&bytes);
}

static void needs_a_new_learner(void **state) {
    (void)state;
    struct walk w = small_walk(0);
    struct svi_bytes bytes = {0};
    struct svi_archive_in in;
    svs_error err = {0};
    svs_learner *l = walk_far(&w, 50);
    save(l, &bytes);
    svi_archive_in_begin(&in, bytes.data, bytes.size, "learner", &err);
    svi_learner_archive(&in.archive, l);
    assert_int_equal(svi_archive_in_end(&in), SVS_DAMAGED);
    assert_null(walk_load(&w.o, 3, bytes.data, bytes.size, &err)); /* more features than it had */
    assert_int_equal(err.code, SVS_DAMAGED);
    svs_learner_free(&l);
    svi_bytes_clear(&bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cut_short),           cmocka_unit_test(flipped_bytes),
        cmocka_unit_test(wrong_values),        cmocka_unit_test(equal_classes),
        cmocka_unit_test(needs_a_new_learner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
