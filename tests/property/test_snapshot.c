/* A snapshot of the window is the window of its moment, whatever happens while it is copied. */
#include "support/problem.h"

#include "learner/learner_internal.h"

struct copy {
    int64_t count, number[400];
    double x[400][4];
    int32_t label[400];
};

static void take_copy(const svs_learner *l, struct copy *c) {
    c->count = 0;
    for (int32_t i = 0; i < l->window.count; i++) {
        int32_t slot = svi_ring_at(&l->window, i);
        const struct svi_slot s = svi_ring_slot(&l->window, slot);
        if (!s.live)
            continue;
        c->number[c->count] = s.number;
        c->label[c->count] = s.label;
        memcpy(c->x[c->count++], svi_ring_row(&l->window, slot), (size_t)l->d * sizeof(double));
    }
}

static void assert_same(const struct svi_snapshot *s, const struct copy *c, int d) {
    assert_int_equal(s->count, c->count);
    assert_int_equal(s->d, d);
    for (int64_t i = 0; i < c->count; i++) {
        assert_int_equal(s->number[i], c->number[i]);
        assert_int_equal(s->label[i], c->label[i]);
        assert_memory_equal(s->rows + i * s->stride, c->x[i], (size_t)d * sizeof(double));
        for (int j = d; j < s->stride; j++)
            assert_true(s->rows[i * s->stride + j] == 0);
    }
}

static void step(svs_learner *l, uint64_t *random, int64_t id, double time) {
    double x[4];
    svs_step out;
    for (int j = 0; j < 4; j++)
        x[j] = test_normal(random);
    svs_sample s = {.x = x,
                    .d = svs_learner_dimension(l),
                    .id = svs_int(id),
                    .y = svs_int((int64_t)(test_random(random) % 3)),
                    .weight = 1};
    assert_int_equal(svs_learner_step(l, &s, time, &out, NULL), SVS_OK);
}

static void walk(uint64_t seed, int64_t window, double seconds) {
    svs_options o;
    struct svi_snapshot s = {0};
    static struct copy c;
    uint64_t random = seed;
    svs_options_default(&o);
    o.window = window;
    o.window_seconds = seconds;
    svs_learner *l = svs_learner_new(&o, 2, NULL);
    int taken = 0, d = 2;
    bool copying = false;
    for (int64_t i = 0; i < 4000; i++) {
        double time = (double)i + (test_random(&random) % 50 == 0 ? 60 : 0);
        step(l, &random, i % 90, (double)i);
        if (test_random(&random) % 20 == 0)
            svs_learner_forget(l, svs_int((int64_t)(test_random(&random) % 90)), time > i ? (double)i : time,
                               NULL, NULL);
        if (i == 2000)
            assert_int_equal(svs_learner_grow(l, 4, NULL), SVS_OK);
        if (copying && !s.active) {
            assert_same(&s, &c, d);
            copying = false;
            taken++;
        }
        if (!copying && test_random(&random) % 7 == 0) {
            assert_int_equal(svi_snapshot_begin(&s, l, NULL), SVS_OK);
            take_copy(l, &c);
            d = svs_learner_dimension(l);
            copying = true;
            if (test_random(&random) % 40 == 0) {
                svs_learner_reset(l);
                assert_false(s.active);
                copying = false;
            }
        }
    }
    assert_true(taken > 50);
    svs_learner_free(&l);
    svi_snapshot_clear(&s);
}

static void test_walk(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        walk(seed, 300, 0);
        walk(seed, 399, 120);
        walk(seed, 70, 0);
    }
}

static void test_weights_decay(void **state) {
    (void)state;
    svs_options o;
    struct svi_snapshot s = {0};
    uint64_t random = 9;
    svs_options_default(&o);
    o.window = 50;
    o.forget = 0.9;
    svs_learner *l = svs_learner_new(&o, 2, NULL);
    for (int i = 0; i < 20; i++)
        step(l, &random, i, i);
    assert_int_equal(svi_snapshot_begin(&s, l, NULL), SVS_OK);
    svi_snapshot_copy(&s, l, INT64_MAX);
    for (int i = 0; i < 20; i++)
        assert_true(fabs(s.weight[i] - pow(0.9, 20 - i)) < 1e-12);
    svs_learner_free(&l);
    svi_snapshot_clear(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_walk), cmocka_unit_test(test_weights_decay)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
