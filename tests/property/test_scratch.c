/* Learners that work in one scratch by turns give the bits that each gives in a scratch of its own, whatever
 * is called and wherever they move meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "learner/learner_held.h"
#include "learner/learner_prune.h"
#include "learner/learner_renew.h"
#include "support/learner_walk.h"

enum { PAIRS = 9, SCRATCHES = 2 };

/* The same life twice. */
struct pair {
    struct walk w;
    svs_learner *own, *shared;
};

static bool quick(void) {
    return getenv("SVMSTREAM_QUICK") != NULL;
}

static void same_state(struct pair *p) {
    struct svi_bytes a = {0}, b = {0};
    svs_error err;
    assert_int_equal(walk_save(p->own, &a, &err), SVS_OK);
    assert_int_equal(walk_save(p->shared, &b, &err), SVS_OK);
    assert_int_equal(a.size, b.size);
    assert_memory_equal(a.data, b.data, a.size);
    svi_bytes_clear(&a);
    svi_bytes_clear(&b);
}

static void same_call(struct pair *p) {
    struct walk_outcome a, b;
    const struct walk_call c = walk_next(&p->w);
    walk_do(p->own, &c, &a);
    walk_do(p->shared, &c, &b);
    assert_true(walk_same(&a, &b));
}

/* Kept and taken back, each in another place than before. */
static void round_trip(struct pair *p, struct svi_learner_scratch *s) {
    struct svi_bytes bytes = {0};
    struct svi_archive_in in;
    svs_error err;
    assert_int_equal(walk_save(p->own, &bytes, &err), SVS_OK);
    svs_learner_free(&p->shared);
    p->shared = svi_learner_new(&p->w.o, 0, s, &err);
    svi_archive_in_begin(&in, bytes.data, bytes.size, "learner", &err);
    svi_learner_archive(&in.archive, p->shared);
    assert_int_equal(svi_archive_in_end(&in), SVS_OK);
    svi_bytes_clear(&bytes);
}

static void other_options(struct pair *p) {
    svs_options o = p->w.o;
    o.C = 0.25 + ref_uniform(&p->w.seed);
    if (o.window)
        o.window = 20 + (int64_t)(100 * ref_uniform(&p->w.seed));
    const svs_code code = svs_learner_configure(p->own, &o, NULL);
    assert_int_equal(svs_learner_configure(p->shared, &o, NULL), code);
    p->w.o = code == SVS_OK ? o : p->w.o;
}

/* What looks at the model. */
static void same_answers(struct pair *p) {
    svs_model a, b;
    svs_tuning t = {0}, u = {0};
    double error, again;
    assert_int_equal(svs_learner_model(p->own, &a, NULL), SVS_OK);
    assert_int_equal(svs_learner_model(p->shared, &b, NULL), SVS_OK);
    assert_memory_equal(a.W, b.W, (size_t)a.rows * (size_t)a.d * sizeof(double));
    assert_memory_equal(a.b, b.b, (size_t)a.rows * sizeof(double));
    assert_int_equal(svi_learner_verify(p->own, &error, NULL), SVS_OK);
    assert_int_equal(svi_learner_verify(p->shared, &again, NULL), SVS_OK);
    assert_true(walk_same_double(error, again));
    assert_true(
        walk_same_double(svi_learner_leverage(p->own, p->w.x), svi_learner_leverage(p->shared, p->w.x)));
    assert_true(walk_same_double(svi_learner_residual(p->own), svi_learner_residual(p->shared)));
    assert_int_equal(svs_learner_tune(p->own, &t, NULL), svs_learner_tune(p->shared, &u, NULL));
    assert_memory_equal(&t, &u, sizeof t);
    for (int j = 0; j < p->w.d; j++)
        assert_true(walk_same_double(svi_learner_mean(p->own, j), svi_learner_mean(p->shared, j)));
}

/* Features and classes that no held sample has go; where none is held, a feature becomes another one. */
static void less_of_it(struct pair *p) {
    bool features[WALK_MAX_D], classes[64], any;
    if (svi_learner_held(p->own, features, classes, &any, NULL) != SVS_OK)
        return;
    assert_int_equal(svi_learner_prune(p->own, features, classes, NULL), SVS_OK);
    assert_int_equal(svi_learner_prune(p->shared, features, classes, NULL), SVS_OK);
    p->w.d = svs_learner_dimension(p->own);
    if (p->own->window.live == 0 && p->own->waiting.live == 0) {
        svi_learner_renew(p->own, 0);
        svi_learner_renew(p->shared, 0);
    }
}

static void something_else(struct pair *p, struct svi_learner_scratch *const *s) {
    const int what = (int)(ref_uniform(&p->w.seed) * 9), to = (int)(ref_uniform(&p->w.seed) * SCRATCHES);
    const int last = (int)(100 * ref_uniform(&p->w.seed));
    if (what == 0)
        round_trip(p, s[to]);
    else if (what == 1)
        other_options(p);
    else if (what == 2)
        same_answers(p);
    else if (what == 3)
        less_of_it(p);
    else if (what == 4)
        svi_learner_release_scratch(p->shared);
    else if (what == 5)
        assert_int_equal(svi_learner_use_scratch(p->shared, NULL, NULL), SVS_OK);
    else if (what == 6)
        assert_int_equal(svi_learner_shrink(p->own, last, 3), svi_learner_shrink(p->shared, last, 3));
    else
        assert_int_equal(svi_learner_use_scratch(p->shared, s[to], NULL), SVS_OK);
    same_state(p);
}

static struct pair pair_of(int k, int round, struct svi_learner_scratch *s) {
    struct pair p = {.w = {.d = k % 3 ? 2 + 3 * k : k,
                           .most = k == 4 ? 100 : 12 + 3 * k,
                           .classes = k % 2 ? 2 : 6,
                           .spread = 1,
                           .ids = (enum walk_ids)(k % 4),
                           .weights = k % 3 == 0,
                           .late = k % 3 != 1,
                           .forgets = k % 2,
                           .resets = k == 5,
                           .bursts = k == 6 ? 1e4 : 0,
                           .seed = 31 * (uint64_t)round + (uint64_t)k}};
    svs_options_default(&p.w.o);
    p.w.o.window = k == 3 ? 0 : 30 + 17 * k;
    p.w.o.forget = k == 7 || k == 3 ? 0.97 : 1;
    p.w.o.rule = k == 5 ? SVS_FALSVM : SVS_ALSVM;
    p.w.o.task = k == 2 ? SVS_REGRESS : SVS_CLASSIFY;
    p.w.o.class_rule = k == 1 ? SVS_CLASSES_BALANCED : SVS_CLASSES_ALIKE;
    p.w.o.scale = k == 8 ? SVS_SCALE_NONE : SVS_SCALE_STANDARD;
    p.w.o.window_seconds = k == 4 ? 25 : 0;
    p.w.o.labels_max = 15;
    p.own = svs_learner_new(&p.w.o, p.w.d, NULL);
    p.shared = svi_learner_new(&p.w.o, p.w.d, s, NULL);
    assert_non_null(p.own);
    assert_non_null(p.shared);
    return p;
}

static void sharing_does_not_show(void **unused) {
    (void)unused;
    for (int round = 0; round < (quick() ? 2 : 8); round++) {
        struct svi_learner_scratch *s[SCRATCHES];
        struct pair p[PAIRS];
        uint64_t seed = 5 + (uint64_t)round;
        for (int i = 0; i < SCRATCHES; i++)
            s[i] = svi_learner_scratch_new(NULL);
        for (int k = 0; k < PAIRS; k++)
            p[k] = pair_of(k, round, s[0]);
        for (int i = 0; i < 9000; i++) {
            struct pair *now = &p[(int)(ref_uniform(&seed) * PAIRS)];
            same_call(now);
            if (ref_uniform(&seed) < 0.01)
                something_else(now, s);
        }
        for (int k = 0; k < PAIRS; k++) {
            same_state(&p[k]);
            svs_learner_free(&p[k].own);
            svs_learner_free(&p[k].shared);
        }
        for (int i = 0; i < SCRATCHES; i++)
            svi_learner_scratch_free(&s[i]);
    }
}

/* The walk above would see it: a bit of the packed state matters. */
static void a_bit_shows(void **unused) {
    (void)unused;
    struct svi_learner_scratch *s = svi_learner_scratch_new(NULL);
    struct pair p = pair_of(0, 0, s);
    for (int i = 0; i < 300; i++)
        same_call(&p);
    const size_t size = svi_packed_capacity(p.shared->d, svi_rows(p.shared));
    int seen = 0;
    for (size_t at = 0; at < size; at++) {
        struct svi_bytes a = {0}, b = {0};
        svs_error err;
        svi_learner_release_scratch(p.shared);
        double *value = &p.shared->packed[at], before = *value;
        assert_int_equal(walk_save(p.own, &a, &err), SVS_OK);
        *value = nextafter(before, 2 * before + 1);
        assert_int_equal(walk_save(p.shared, &b, &err), SVS_OK);
        seen += a.size != b.size || memcmp(a.data, b.data, a.size) != 0;
        svi_learner_release_scratch(p.shared);
        *value = before;
        svi_bytes_clear(&a);
        svi_bytes_clear(&b);
    }
    print_message("%d of %d values\n", seen, (int)size);
    assert_true(seen > (int)size / 2); /* but for room of changes that are not pending */
    same_state(&p);
    svs_learner_free(&p.own);
    svs_learner_free(&p.shared);
    svi_learner_scratch_free(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sharing_does_not_show),
        cmocka_unit_test(a_bit_shows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
