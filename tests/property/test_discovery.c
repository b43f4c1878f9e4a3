/* Online false-discovery control: the levels against the sum they stand for, what they may spend, and the
 * share of false alerts on streams with known anomalies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/random.h"
#include "alerts/alert.h"
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

/* ---- the levels */

/* What is spent of one coin at the n-th test after it, n from 1. */
static double spent(int n) {
    double sum = 0;
    for (double length = 64; length <= 16384; length *= 2)
        sum += pow(1 - 1 / length, n - 1) / length / 9;
    return sum;
}

#define TESTS 3000

/* LORD++ as it is written: a sum over all discoveries. */
static void test_levels_are_the_sum_over_all_discoveries(void **state) {
    struct svi_random r = {1};
    struct svi_discovery d;
    int when[TESTS], found = 0;
    (void)state;
    svi_discovery_init(&d, 0.1);
    for (int t = 1; t <= TESTS; t++) {
        double coins = 0.5 * spent(t);
        for (int j = 0; j < found; j++)
            coins += (j == 0 ? 0.5 : 1) * spent(t - when[j]);
        assert_true(fabs(svi_discovery_level(&d) - 0.1 * coins) < 1e-12 * coins);
        const double p = svi_random_below(&r, 50) == 0 ? 0 : uniform(&r);
        const bool below = p <= svi_discovery_level(&d);
        assert_int_equal(svi_discovery_test(&d, p), below);
        if (below)
            when[found++] = t;
    }
    assert_true(found > TESTS / 100);
    assert_true(d.found == found && d.tested == TESTS);
}

/* The levels of all tests together never exceed fdr times the discoveries and the quiet times. */
static void assert_within_means(uint64_t seed, double fdr, uint32_t every) {
    const int tests = quick() ? 100000 : 400000;
    struct svi_random r = {seed};
    struct svi_discovery d;
    double sum = 0, quiet = 0;
    svi_discovery_init(&d, fdr);
    for (int t = 0; t < tests; t++) {
        const double coins = (d.found > 1 ? (double)d.found : 1) + quiet / SVI_DISCOVERY_IDLE;
        assert_true(sum <= fdr * coins * (1 + 1e-9));
        quiet += d.idle >= SVI_DISCOVERY_IDLE;
        sum += svi_discovery_level(&d);
        svi_discovery_test(&d, svi_random_below(&r, every) == 0 ? 0 : 1);
    }
}

static void test_no_more_is_spent_than_earned(void **state) {
    (void)state;
    assert_within_means(1, 0.1, 2);
    assert_within_means(2, 0.1, 300);
    assert_within_means(3, 0.05, 20000);
    assert_within_means(4, 0.5, UINT32_MAX);
}

/* A discovery more, or earlier, never makes a later level smaller: what the proof asks for. */
static void test_discoveries_only_raise_levels(void **state) {
    struct svi_random r = {7};
    struct svi_discovery more, fewer;
    (void)state;
    svi_discovery_init(&more, 0.1);
    svi_discovery_init(&fewer, 0.1);
    for (int t = 0; t < 5000; t++) {
        const uint32_t k = svi_random_below(&r, 100);
        svi_discovery_test(&more, k < 3 ? 0 : 1);
        svi_discovery_test(&fewer, k < 1 ? 0 : 1);
        assert_true(svi_discovery_level(&more) >= svi_discovery_level(&fewer));
    }
}

static void test_something_is_found_after_a_long_quiet(void **state) {
    struct svi_discovery d;
    (void)state;
    svi_discovery_init(&d, 0.1);
    for (int t = 0; t < 2000000; t++)
        assert_false(svi_discovery_test(&d, 1));
    assert_true(svi_discovery_level(&d) > 3e-6 && svi_discovery_level(&d) < 4e-6);
    assert_true(svi_discovery_test(&d, 3e-6));
    assert_true(svi_discovery_level(&d) > 1e-5);
}

/* ---- the share of false discoveries, p-values given */

static void test_share_with_independent_p_values(void **state) {
    static const double rates[] = {0.001, 0.01, 0.1, 0.5};
    const int tests = quick() ? 50000 : 200000;
    (void)state;
    for (size_t k = 0; k < sizeof rates / sizeof *rates; k++) {
        struct svi_random r = {k};
        struct svi_discovery d;
        int64_t wrong = 0, anomalies = 0, quiet = 0;
        svi_discovery_init(&d, 0.1);
        for (int t = 0; t < tests; t++) {
            const bool anomaly = uniform(&r) < rates[k];
            quiet += d.idle >= SVI_DISCOVERY_IDLE;
            const bool found = svi_discovery_test(&d, pow(uniform(&r), anomaly ? 6 : 1));
            wrong += found && !anomaly;
            anomalies += anomaly;
        }
        const double allowed = 0.1 * ((double)d.found + (double)quiet / SVI_DISCOVERY_IDLE);
        assert_true((double)wrong <= allowed + 2 * sqrt(allowed) && d.found > 1);
        assert_true((double)(d.found - wrong) >= 0.1 * (double)anomalies);
    }
}

/* ---- the whole chain: scores, sliding calibration, tail, alerts */

enum { NORMAL, EXPONENTIAL, CHI_SQUARE, STUDENT };

static double score(struct svi_random *r, int kind) {
    double sum = 0;
    switch (kind) {
    case NORMAL:
        return fabs(normal(r));
    case EXPONENTIAL:
        return -log(uniform(r));
    case STUDENT:
        for (int i = 0; i < 3; i++)
            sum += pow(normal(r), 2);
        return fabs(normal(r)) / sqrt(sum / 3);
    default:
        for (int i = 0; i < 5; i++)
            sum -= 2 * log(uniform(r)); /* 10 degrees of freedom */
        return sum;
    }
}

struct stream {
    int kind;
    double rate;  /* share of the samples that are anomalies */
    int run;      /* they come in runs of so many */
    double shift; /* added to their scores */
};

struct outcome {
    int64_t alerts, wrong; /* opened; opened by a normal sample */
    int64_t runs, hit;     /* disturbances; those with an alert */
};

#define LASTS 5 /* a run of so many samples with p <= clear is a disturbance: none of them calibrates */

struct held {
    double scores[LASTS];
    int count, run;
};

/* Every second sample calibrates; those of a run wait until it is known whether it lasts. */
static void calibrate(struct svi_calibration *c, struct held *h, bool chosen, bool low, double s) {
    h->run = low ? h->run + 1 : 0;
    if (h->run >= LASTS)
        h->count = 0;
    else if (chosen)
        h->scores[h->count++] = s;
    for (int i = 0; i < h->count && !low; i++)
        svi_calibration_add(c, h->scores[i]);
    h->count = low ? h->count : 0;
}

static struct outcome watch(const struct stream *s, int64_t samples, uint64_t seed) {
    const struct svi_alert_options options = {.p = 0.001, .clear = 0.02, .fdr = 0.1, .warmup = 0};
    struct svi_random r = {seed};
    struct outcome o = {0};
    struct svi_calibration c;
    struct svi_alert a;
    struct held held = {0};
    int left = 0;
    bool hit = false;
    assert_int_equal(svi_calibration_init(&c, 2000, 2000, NULL), SVS_OK);
    for (int i = 0; i < 2000; i++)
        svi_calibration_add(&c, score(&r, s->kind));
    svi_alert_init(&a, &options);
    for (int64_t t = 0; t < samples; t++) {
        if (left == 0 && uniform(&r) < s->rate / s->run) {
            left = s->run;
            o.runs++;
            hit = false;
        }
        const bool anomaly = left > 0;
        left -= anomaly;
        const double now = score(&r, s->kind) + (anomaly ? s->shift : 0);
        const double p = svi_calibration_p(&c, now), tail = svi_calibration_tail(&c, now);
        if (svi_alert_step(&a, p, tail, 0, (double)t) == SVI_ALERT_OPEN) {
            o.alerts++;
            o.wrong += !anomaly;
        }
        o.hit += anomaly && a.open && !hit;
        hit = hit || (anomaly && a.open);
        calibrate(&c, &held, t % 2 == 0, p <= options.clear, now);
    }
    svi_calibration_clear(&c);
    return o;
}

/* Shifts are about four 0.999-quantiles of the normal scores. */
static void test_share_of_false_alerts_with_known_anomalies(void **state) {
    static const struct stream streams[] = {
        {NORMAL, 0.01, 20, 13},      {NORMAL, 0.05, 20, 13},      {EXPONENTIAL, 0.01, 20, 28},
        {EXPONENTIAL, 0.05, 20, 28}, {CHI_SQUARE, 0.01, 20, 120}, {CHI_SQUARE, 0.001, 20, 120},
        {STUDENT, 0.01, 20, 400},
    };
    const int64_t samples = quick() ? 40000 : 150000;
    (void)state;
    for (size_t k = 0; k < sizeof streams / sizeof *streams; k++) {
        const struct outcome o = watch(&streams[k], samples, 20 + k);
        print_message("kind %d, %g %% in runs of %d: %ld alerts, %ld false; %ld of %ld disturbances found\n",
                      streams[k].kind, 100 * streams[k].rate, streams[k].run, (long)o.alerts, (long)o.wrong,
                      (long)o.hit, (long)o.runs);
        assert_true((double)o.wrong <= 0.1 * (double)o.alerts);
        assert_true((double)o.hit >= 0.5 * (double)o.runs);
    }
}

/* At most one in SVI_DISCOVERY_IDLE / fdr samples, the start's half coin and chance on top. */
static void test_few_false_alerts_when_there_is_nothing(void **state) {
    const int64_t samples = quick() ? 50000 : 300000;
    (void)state;
    for (int kind = NORMAL; kind <= STUDENT; kind++) {
        const struct stream s = {kind, 0, 1, 0};
        const double expected = 0.1 * (1 + (double)samples / SVI_DISCOVERY_IDLE);
        assert_true((double)watch(&s, samples, 40).wrong <= expected + 2 * sqrt(expected));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels_are_the_sum_over_all_discoveries),
        cmocka_unit_test(test_no_more_is_spent_than_earned),
        cmocka_unit_test(test_discoveries_only_raise_levels),
        cmocka_unit_test(test_something_is_found_after_a_long_quiet),
        cmocka_unit_test(test_share_with_independent_p_values),
        cmocka_unit_test(test_share_of_false_alerts_with_known_anomalies),
        cmocka_unit_test(test_few_false_alerts_when_there_is_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
