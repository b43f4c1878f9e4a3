/* Conformal p-values: against brute force, and their promise on exchangeable scores; the tail beyond them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "novelty/calibration.h"

static bool quick(void) {
    return getenv("SVMSTREAM_QUICK") != NULL;
}

static double uniform(struct svi_random *r) {
    return ((double)(svi_random_next(r) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(struct svi_random *r) {
    return sqrt(-2 * log(uniform(r))) * cos(6.283185307179586 * uniform(r));
}

/* ---- against brute force */

#define ROOM 37

struct plain {
    double all[6000]; /* every score since it was empty */
    int n;
};

static int plain_count(const struct plain *b) {
    return b->n < ROOM ? b->n : ROOM;
}

static double plain_p(const struct plain *b, double s) {
    int high = 0;
    for (int i = b->n - plain_count(b); i < b->n; i++)
        high += b->all[i] >= s;
    return (1.0 + high) / (1.0 + plain_count(b));
}

/* Few values, so that ties are common; now and then an infinite one. */
static double coarse(struct svi_random *r) {
    const uint32_t k = svi_random_below(r, 40);
    return k == 0 ? INFINITY : k == 1 ? -INFINITY : floor(k / 3.0) / 4;
}

static void assert_as_plain(struct svi_calibration *c, const struct plain *b, struct svi_random *r) {
    const double tries[] = {coarse(r), coarse(r) + 0.1, -INFINITY, INFINITY, 0};
    assert_int_equal(c->ring.filled, plain_count(b));
    for (int i = 1; i < c->ring.filled; i++)
        assert_true(c->sorted[i - 1] <= c->sorted[i]);
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        assert_true(svi_calibration_p(c, tries[i]) == plain_p(b, tries[i]));
        assert_true(svi_calibration_tail(c, tries[i]) <= plain_p(b, tries[i]));
    }
}

/* The level is where p comes to be at most the given one. */
static void assert_level(const struct svi_calibration *c, const struct plain *b, double p) {
    const double level = svi_calibration_level(c, p);
    if (level == INFINITY)
        assert_true(1.0 / (1 + c->ring.filled) > p || c->sorted[c->ring.filled - 1] == INFINITY);
    else
        assert_true(plain_p(b, nextafter(level, INFINITY)) <= p);
    if (level > -INFINITY)
        assert_true(plain_p(b, level) > p);
}

static void test_walk_agrees_with_brute_force(void **state) {
    struct svi_random r = {5};
    struct svi_calibration c;
    struct plain *b = calloc(1, sizeof *b);
    (void)state;
    assert_int_equal(svi_calibration_init(&c, ROOM, ROOM, NULL), SVS_OK);
    for (int step = 0; step < 5000; step++) {
        if (svi_random_below(&r, 500) == 0) {
            svi_calibration_empty(&c);
            b->n = 0;
            assert_true(svi_calibration_p(&c, 3) == 1 && svi_calibration_tail(&c, 3) == 1);
        }
        const double s = coarse(&r);
        assert_int_equal(svi_calibration_add(&c, s), b->n % ROOM);
        b->all[b->n++] = s;
        assert_as_plain(&c, b, &r);
        assert_level(&c, b, 0.05);
        assert_level(&c, b, 0.5);
    }
    free(b);
    svi_calibration_clear(&c);
}

static void test_replaced_scores_keep_their_places(void **state) {
    struct svi_random r = {6};
    struct svi_calibration c, fresh;
    double scores[ROOM];
    (void)state;
    assert_int_equal(svi_calibration_init(&c, ROOM, ROOM, NULL), SVS_OK);
    assert_int_equal(svi_calibration_init(&fresh, ROOM, ROOM, NULL), SVS_OK);
    for (int i = 0; i < ROOM; i++) {
        svi_calibration_add(&c, normal(&r));
        svi_calibration_add(&fresh, scores[i] = normal(&r));
    }
    svi_calibration_replace(&c, scores);
    for (int i = 0; i < 3 * ROOM; i++) {
        const double s = normal(&r);
        assert_true(svi_calibration_p(&c, s) == svi_calibration_p(&fresh, s));
        assert_int_equal(svi_calibration_add(&c, s), svi_calibration_add(&fresh, s));
    }
    svi_calibration_clear(&c);
    svi_calibration_clear(&fresh);
}

static void test_level_at_the_edges(void **state) {
    struct svi_calibration c;
    (void)state;
    assert_int_equal(svi_calibration_init(&c, 2000, 2000, NULL), SVS_OK);
    assert_true(svi_calibration_level(&c, 0.5) == INFINITY);
    for (int i = 0; i < 998; i++)
        svi_calibration_add(&c, i);
    assert_true(svi_calibration_level(&c, 0.001) == INFINITY); /* 1 / 999 > 0.001 */
    svi_calibration_add(&c, 998);
    assert_true(svi_calibration_level(&c, 0.001) == 998); /* 1 / 1000 */
    svi_calibration_add(&c, 999);
    assert_true(svi_calibration_level(&c, 0.001) == 999);
    svi_calibration_clear(&c);
}

/* ---- the promise */

/* Every second sample calibrates and is not counted. se: of the samples counted and of the scores they are
 * compared with. */
static void assert_promise(uint64_t seed, double (*draw)(struct svi_random *)) {
    static const double a[] = {0.1, 0.01, 0.001};
    const int n = quick() ? 60000 : 600000;
    int at_most[3] = {0};
    struct svi_random r = {seed};
    struct svi_calibration c;
    assert_int_equal(svi_calibration_init(&c, 2000, 2000, NULL), SVS_OK);
    for (int i = 0; i < 2000; i++)
        svi_calibration_add(&c, draw(&r));
    for (int i = 0; i < n; i++) {
        const double p = svi_calibration_p(&c, draw(&r));
        for (int k = 0; k < 3; k++)
            at_most[k] += p <= a[k];
        svi_calibration_add(&c, draw(&r));
    }
    for (int k = 0; k < 3; k++) {
        const double share = (double)at_most[k] / n, se = sqrt(a[k] * (1 - a[k]) * 2 / n);
        assert_true(share <= a[k] + 2 * se);
        assert_true(share >= a[k] / 2);
    }
    svi_calibration_clear(&c);
}

static double heavy(struct svi_random *r) {
    return pow(uniform(r), -1);
}

/* Ties make p larger, never smaller: at most one value in 2000 here. */
static double rounded(struct svi_random *r) {
    return floor(uniform(r) * 20000);
}

static void test_p_keeps_its_promise(void **state) {
    (void)state;
    assert_promise(1, normal);
    assert_promise(2, uniform);
    assert_promise(3, heavy);
    assert_promise(4, rounded);
}

/* Far more ties than 1 in 1 / a: then p is too large, and still never too small. */
static void test_coarse_scores_are_safe(void **state) {
    struct svi_random r = {8};
    struct svi_calibration c;
    int novel = 0;
    (void)state;
    assert_int_equal(svi_calibration_init(&c, 999, 999, NULL), SVS_OK);
    for (int i = 0; i < 999; i++)
        svi_calibration_add(&c, svi_random_below(&r, 20));
    for (int i = 0; i < 20000; i++)
        novel += svi_calibration_p(&c, svi_random_below(&r, 20)) <= 0.01;
    assert_int_equal(novel, 0);
    svi_calibration_clear(&c);
}

/* ---- the tail */

static double exponential(struct svi_random *r) {
    return -log(uniform(r));
}

static double student3(struct svi_random *r) {
    const double a = normal(r), b = normal(r), c = normal(r);
    return fabs(normal(r)) / sqrt((a * a + b * b + c * c) / 3);
}

static double above_normal(double x) {
    return erfc(x / sqrt(2));
}

static double above_exponential(double x) {
    return exp(-x);
}

static double above_student3(double x) {
    const double t = x / sqrt(3);
    return 1 - 2 / 3.141592653589793 * (atan(t) + t / (1 + t * t));
}

static double size(struct svi_random *r) {
    return fabs(normal(r));
}

/* Where the tail falls to p. */
static double tail_score(struct svi_calibration *c, double p) {
    double low = c->sorted[c->ring.filled - 1], high = low + 1;
    while (svi_calibration_tail(c, high) > p)
        high = low + 2 * (high - low);
    for (int i = 0; i < 50; i++) {
        const double middle = (low + high) / 2;
        *(svi_calibration_tail(c, middle) > p ? &low : &high) = middle;
    }
    return high;
}

/* The mean, over fits, of the true probability at the score where `p` is reported. */
static double true_over_told(double (*draw)(struct svi_random *), double (*above)(double), double p) {
    const int fits = quick() ? 10 : 60;
    struct svi_random r = {9};
    struct svi_calibration c;
    double sum = 0;
    assert_int_equal(svi_calibration_init(&c, 2000, 2000, NULL), SVS_OK);
    for (int i = 0; i < fits; i++) {
        for (int k = 0; k < 2000; k++)
            svi_calibration_add(&c, draw(&r));
        sum += above(tail_score(&c, p)) / p / fits;
    }
    svi_calibration_clear(&c);
    return sum;
}

static void test_tail_is_rather_too_large(void **state) {
    (void)state;
    for (double p = 1e-4; p > 1e-7; p /= 10) {
        assert_true(true_over_told(size, above_normal, p) < 0.1);
        assert_true(true_over_told(exponential, above_exponential, p) < 0.3);
        const double student = true_over_told(student3, above_student3, p);
        assert_true(student < 1.5);
        assert_true(student > 0.2); /* and not far too large where the shape is as it was assumed */
    }
}

static void test_tail_falls_with_the_score(void **state) {
    struct svi_random r = {10};
    struct svi_calibration c;
    (void)state;
    assert_int_equal(svi_calibration_init(&c, 2000, 2000, NULL), SVS_OK);
    for (int i = 0; i < 2000; i++)
        svi_calibration_add(&c, exponential(&r));
    double before = 1, top = c.sorted[1999];
    for (double s = 0; s < 60; s += 0.1) {
        const double tail = svi_calibration_tail(&c, s);
        assert_true(tail <= before && tail > 0);
        assert_true(s > top || tail == svi_calibration_p(&c, s));
        before = tail;
    }
    assert_true(before < 1e-6);
    assert_true(svi_calibration_tail(&c, INFINITY) == 0);
    svi_calibration_clear(&c);
}

static void assert_no_fit(int n, double (*score)(int)) {
    struct svi_calibration c;
    assert_int_equal(svi_calibration_init(&c, 2000, 2000, NULL), SVS_OK);
    for (int i = 0; i < n; i++)
        svi_calibration_add(&c, score(i));
    assert_true(svi_calibration_tail(&c, 1e9) == 1.0 / (1 + n));
    svi_calibration_clear(&c);
}

static double same(int i) {
    (void)i;
    return 4;
}

static double counted(int i) {
    return i;
}

static double endless(int i) {
    return i % 400 == 0 ? INFINITY : i;
}

static void test_without_a_fit_the_tail_is_p(void **state) {
    struct svi_calibration c;
    (void)state;
    assert_no_fit(2000, same);
    assert_no_fit(199, counted);
    assert_int_equal(svi_calibration_init(&c, 2000, 2000, NULL), SVS_OK);
    for (int i = 0; i < 2000; i++)
        svi_calibration_add(&c, endless(i));
    assert_true(svi_calibration_tail(&c, INFINITY) == svi_calibration_p(&c, INFINITY));
    svi_calibration_clear(&c);
}

/* ---- the tail of few scores */

static double above_uniform(double x) {
    return x < 1 ? 1 - x : 0;
}

static double above_lognormal(double x) {
    return 0.5 * erfc(log(x) / sqrt(2));
}

static double above_counted(double x) {
    return exp(-ceil(x) / 3);
}

static double lognormal(struct svi_random *r) {
    return exp(normal(r));
}

static double counts(struct svi_random *r) {
    return floor(-3 * log(uniform(r)));
}

/* The probability of a score whose early tail is at most p: where it falls to p, or in ranks alone. */
static double told_early(struct svi_calibration *c, double p, double (*above)(double)) {
    double low = c->sorted[0], high = low + 1;
    while (svi_calibration_tail_early(c, high) > p && high < 1e9)
        high = low + 2 * (high - low);
    for (int i = 0; i < 60; i++) {
        const double middle = (low + high) / 2;
        *(svi_calibration_tail_early(c, middle) > p ? &low : &high) = middle;
    }
    return high < 1e9 ? above(high) : 0;
}

/* P(tail <= a) <= a over fresh scores of six laws, from 30 scores on: ranks and what goes beyond them. */
static void test_early_tail_keeps_the_promise(void **state) {
    static const struct {
        double (*draw)(struct svi_random *);
        double (*above)(double);
    } laws[] = {{size, above_normal},     {student3, above_student3},   {exponential, above_exponential},
                {uniform, above_uniform}, {lognormal, above_lognormal}, {counts, above_counted}};
    static const int scores[] = {30, 60, 199};
    const int fits = quick() ? 5 : 60;
    (void)state;
    for (size_t law = 0; law < sizeof laws / sizeof *laws; law++)
        for (int k = 0; k < 3; k++)
            for (double p = 0.1; p > 1e-6; p /= 10) {
                struct svi_random r = {3 + law};
                double sum = 0, squares = 0;
                for (int i = 0; i < fits; i++) {
                    struct svi_calibration c;
                    assert_int_equal(svi_calibration_init(&c, 200, 200, NULL), SVS_OK);
                    for (int j = 0; j < scores[k]; j++)
                        svi_calibration_add(&c, laws[law].draw(&r));
                    const double share = told_early(&c, p, laws[law].above) / p;
                    sum += share / fits;
                    squares += share * share / fits;
                    svi_calibration_clear(&c);
                }
                assert_true(sum <= 1 + 3 * sqrt(fmax(0, squares - sum * sum) / fits));
            }
}

/* It says more than ranks do, is never above them, and goes over into the tail of 200 scores. */
static void test_early_tail_is_useful(void **state) {
    struct svi_random r = {8};
    struct svi_calibration c;
    (void)state;
    assert_int_equal(svi_calibration_init(&c, 300, 300, NULL), SVS_OK);
    for (int n = 1; n <= 300; n++) {
        svi_calibration_add(&c, size(&r));
        for (double s = 0; s < 20; s += 2.5) {
            const double p = svi_calibration_p(&c, s), early = svi_calibration_tail_early(&c, s);
            assert_true(early <= p && early > 0);
            assert_true(n < 200 ? n >= 30 || early == p : early == svi_calibration_tail(&c, s));
        }
        assert_true(n < 30 || svi_calibration_tail_early(&c, 30) < 0.1 / (1 + n));
    }
    svi_calibration_clear(&c);
    assert_int_equal(svi_calibration_init(&c, 100, 100, NULL), SVS_OK);
    for (int i = 0; i < 100; i++)
        svi_calibration_add(&c, 4); /* without differences there is no tail */
    assert_true(svi_calibration_tail_early(&c, 1e9) == 1.0 / 101);
    svi_calibration_clear(&c);
}

/* The fit follows the scores: when the scale of the scores has grown, so has the tail. */
static void test_tail_follows(void **state) {
    struct svi_random r = {12};
    struct svi_calibration c;
    (void)state;
    assert_int_equal(svi_calibration_init(&c, 1000, 1000, NULL), SVS_OK);
    for (int i = 0; i < 1000; i++)
        svi_calibration_add(&c, exponential(&r));
    assert_true(svi_calibration_tail(&c, 40) < 1e-5);
    for (int i = 0; i < 1000; i++)
        svi_calibration_add(&c, 5 * exponential(&r));
    assert_true(svi_calibration_tail(&c, 40) > 2e-4);
    svi_calibration_clear(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_walk_agrees_with_brute_force),
        cmocka_unit_test(test_replaced_scores_keep_their_places),
        cmocka_unit_test(test_level_at_the_edges),
        cmocka_unit_test(test_p_keeps_its_promise),
        cmocka_unit_test(test_coarse_scores_are_safe),
        cmocka_unit_test(test_tail_is_rather_too_large),
        cmocka_unit_test(test_tail_falls_with_the_score),
        cmocka_unit_test(test_without_a_fit_the_tail_is_p),
        cmocka_unit_test(test_tail_follows),
        cmocka_unit_test(test_early_tail_keeps_the_promise),
        cmocka_unit_test(test_early_tail_is_useful),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
