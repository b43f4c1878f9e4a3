/* The quality alarm's detector: no more false alarms than stated while the errors are independent and of one
 * rate; rises found no later than by ADWIN at an equal rate of false alarms; the state bit for bit. The
 * tables of the study come with SVMSTREAM_STUDY=1. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "quality/drift.h"
#include "support/adwin.h"
#include "support/archived.h"
#include "support/quick.h"

#define RATE    1e-4
#define STREAMS 100

static bool study(void) {
    return getenv("SVMSTREAM_STUDY") != NULL;
}

static double drift_uniform(struct svi_random *r) {
    return (double)(svi_random_next(r) >> 11) * 0x1p-53;
}

static double drift_normal(struct svi_random *r) {
    return sqrt(-2 * log(drift_uniform(r) + 0x1p-60)) * cos(6.283185307179586 * drift_uniform(r));
}

static bool drift_rises(struct svi_drift *d, double size, int64_t i) {
    const struct svi_drift_sample s = {size, (double)i, i};
    if (svi_drift_step(d, &s) != SVI_DRIFT_RISE)
        return false;
    assert_true(d->found.before.n >= 32 && d->found.after.n >= 3);
    assert_int_equal(d->found.before.n + d->found.after.n, d->all.n);
    assert_true(svi_drift_share(&d->found.before) < svi_drift_share(&d->found.after));
    svi_drift_cut(d, &d->found);
    return true;
}

/* ---- false alarms */

static int64_t count_alarms(double p, double rate, int streams, int length) {
    static struct svi_drift d;
    int64_t alarms = 0;
    for (int s = 0; s < streams; s++) {
        struct svi_random r = {(uint64_t)s * 7919 + (uint64_t)(p * 1e6) + 1};
        svi_drift_init(&d, false, rate);
        for (int i = 0; i < length; i++)
            alarms += drift_rises(&d, drift_uniform(&r) < p, i);
    }
    return alarms;
}

/* Of as many as are allowed a Poisson number would have so many at most, in 999 of 1000 cases. */
static double allowed(double mean) {
    return mean + 3.1 * sqrt(mean);
}

static void false_alarms_are_as_stated(void **state) {
    (void)state;
    static const double p[] = {0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7};
    const int length = often(20000, 2000);
    double all = 0;
    for (size_t k = 0; k < sizeof p / sizeof *p; k++) {
        const int64_t alarms = count_alarms(p[k], RATE, STREAMS, length);
        const double most = RATE * STREAMS * length;
        all += (double)alarms;
        if (study())
            printf("error rate %.3f: %lld alarms in %d streams of %d samples, stated: %.0f at most\n", p[k],
                   (long long)alarms, STREAMS, length, most);
        assert_true((double)alarms <= allowed(most));
    }
    assert_true(all <= RATE * STREAMS * length * 10);
}

static void rarer_alarms_too(void **state) {
    (void)state;
    static const double rates[] = {1e-2, 1e-3, 1e-5, 1e-6}, p[] = {0.01, 0.2, 0.5};
    const int length = often(20000, 2000);
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < 3; i++) {
            const int64_t alarms = count_alarms(p[i], rates[k], study() ? 5000 : STREAMS / 2, length);
            const double most = rates[k] * (study() ? 5000 : STREAMS / 2) * length;
            if (study())
                printf("rate %g, error rate %g: %lld alarms, stated: %.1f at most\n", rates[k], p[i],
                       (long long)alarms, most);
            assert_true((double)alarms <= allowed(most));
        }
    static struct svi_drift d;
    svi_drift_init(&d, false, 0);
    for (int i = 0; i < 1000; i++)
        assert_false(drift_rises(&d, i > 500, i));
}

/* A model that learns makes fewer and fewer errors: no rise. */
static void learning_is_no_rise(void **state) {
    (void)state;
    static struct svi_drift d;
    int64_t alarms = 0;
    for (int s = 0; s < STREAMS; s++) {
        struct svi_random r = {(uint64_t)s + 99};
        svi_drift_init(&d, false, RATE);
        for (int i = 0; i < 5000; i++)
            alarms += drift_rises(&d, drift_uniform(&r) < 0.05 + 0.45 * exp(-i / 300.), i);
    }
    assert_true((double)alarms <= allowed(RATE * STREAMS * 5000));
}

/* ---- delays against ADWIN */

struct kind {
    double from, to;
    int before, ramp; /* samples before the change; over which it comes */
};

static int drift_compare_delays(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median delays of both over so many streams. */
static void find_delays(const struct kind *k, double rate, double delta, int streams, double medians[2]) {
    static struct svi_drift d;
    double(*delay)[2] = calloc((size_t)streams, sizeof *delay), *one = calloc((size_t)streams, sizeof *one);
    assert_true(delay && one);
    for (int s = 0; s < streams; s++) {
        struct svi_random r = {(uint64_t)s * 104729 + (uint64_t)k->before + (uint64_t)(k->to * 1000)};
        struct adwin a;
        adwin_init(&a, delta);
        svi_drift_init(&d, false, rate);
        delay[s][0] = delay[s][1] = DBL_MAX;
        for (int i = -k->before; i < 20000 && fmax(delay[s][0], delay[s][1]) == DBL_MAX; i++) {
            const double f = i < 0 ? 0 : k->ramp ? fmin(1, i / (double)k->ramp) : 1;
            const double x = drift_uniform(&r) < k->from + f * (k->to - k->from);
            const bool ours = drift_rises(&d, x, i), theirs = adwin_step(&a, x) > 0;
            if (i >= 0 && ours)
                delay[s][0] = fmin(delay[s][0], i + 1);
            if (i >= 0 && theirs)
                delay[s][1] = fmin(delay[s][1], i + 1);
        }
    }
    for (int j = 0; j < 2; j++) {
        for (int s = 0; s < streams; s++)
            one[s] = delay[s][j];
        qsort(one, (size_t)streams, sizeof *one, drift_compare_delays);
        medians[j] = one[streams / 2];
    }
    free(delay);
    free(one);
}

/* ADWIN's delta .002 gives 1e-7 to 8e-7 false alarms a sample over error rates from .001 to .4 (3 and 10 of
 * them in 24 and 12 million samples), DELTA_RATE here 5e-7; a delta of .16 as many as the default rate. The
 * study prints both. */
static void study_false_alarms(double rate, double delta, int streams) {
    static const double p[] = {0.001, 0.01, 0.05, 0.1, 0.2, 0.4};
    double ours = 0, theirs = 0;
    for (size_t k = 0; k < sizeof p / sizeof *p; k++)
        for (int s = 0; s < streams; s++) {
            struct svi_random r = {k * 100000 + (uint64_t)s + 1};
            struct adwin a;
            static struct svi_drift d;
            adwin_init(&a, delta);
            svi_drift_init(&d, false, rate);
            for (int i = 0; i < 20000; i++) {
                const double x = drift_uniform(&r) < p[k];
                ours += drift_rises(&d, x, i);
                theirs += adwin_step(&a, x) > 0;
            }
        }
    printf("rate %g: %.3g false alarms a sample; ADWIN with delta %g: %.3g\n", rate,
           ours / (6. * streams * 20000), delta, theirs / (6. * streams * 20000));
}

#define DELTA      0.002
#define DELTA_RATE 5e-7

static void rises_are_found_as_soon_as_by_adwin(void **state) {
    (void)state;
    static const struct kind kinds[] = {
        {0.1, 0.5, 5000, 0},   {0.1, 0.9, 5000, 0},    {0.001, 0.01, 10000, 0}, {0.01, 0.05, 5000, 0},
        {0.1, 0.2, 5000, 0},   {0.2, 0.3, 5000, 0},    {0.3, 0.6, 1000, 0},     {0.1, 0.3, 5000, 2000},
        {0.1, 0.13, 10000, 0}, {0.05, 0.2, 5000, 5000}};
    const int count = study() ? 10 : 4, streams = study() ? 201 : often(11, 3);
    double ratio = 0;
    if (study()) {
        study_false_alarms(DELTA_RATE, DELTA, 200);
        study_false_alarms(RATE, 0.16, 50);
    }
    for (int k = 0; k < count; k++) {
        double m[2], like[2];
        find_delays(&kinds[k], DELTA_RATE, DELTA, streams, m);
        ratio += log(m[0] / m[1]);
        if (study()) {
            find_delays(&kinds[k], RATE, 0.16, streams, like);
            printf("%g to %g after %d, over %d: delay %.0f, ADWIN %.0f; at the default rate %.0f, %.0f\n",
                   kinds[k].from, kinds[k].to, kinds[k].before, kinds[k].ramp, m[0], m[1], like[0], like[1]);
        }
        find_delays(&kinds[k], RATE, DELTA, streams, like);
        assert_true(like[0] <= like[1]); /* as both come */
    }
    assert_true(ratio <= 0.02 * count);
}

/* Rises and falls by turns: each rise is found, and where it began. */
static void recurring_rises(void **state) {
    (void)state;
    static struct svi_drift d;
    struct svi_random r = {5};
    int found = 0, near = 0;
    svi_drift_init(&d, false, RATE);
    for (int i = 0; i < 40000; i++) {
        const bool bad = i / 1000 % 2;
        if (drift_rises(&d, drift_uniform(&r) < (bad ? 0.4 : 0.08), i)) {
            found += bad;
            near += llabs(d.found.after.number - i / 1000 * 1000) <= 32;
        }
    }
    assert_in_range(found, 20, 22);
    assert_true(near >= 16);
}

/* ---- bursts */

/* One sample in eleven lies in a burst, of ten on average, where 0.6 are wrong instead of 0.05: at most each
 * fourth of the 1800 bursts is taken for a rise. */
static void bursts_are_measured(void **state) {
    (void)state;
    static struct svi_drift d;
    struct svi_random r = {17};
    int64_t alarms = 0;
    bool bad = false;
    svi_drift_init(&d, false, RATE);
    for (int i = 0; i < 200000; i++) {
        bad = drift_uniform(&r) < (bad ? 0.1 : 0.01) ? !bad : bad;
        alarms += drift_rises(&d, bad ? drift_uniform(&r) < 0.6 : drift_uniform(&r) < 0.05, i);
    }
    if (study())
        printf("bursts: %lld alarms in 200000 samples\n", (long long)alarms);
    assert_true(alarms < 450);
}

/* ---- regression */

static void errors_of_a_regression(void **state) {
    (void)state;
    static struct svi_drift d;
    int64_t false_ones = 0, late = 0, near = 0;
    const int streams = often(STREAMS, 10);
    for (int s = 0; s < streams; s++) {
        struct svi_random r = {(uint64_t)s * 31 + 7};
        bool found = false;
        svi_drift_init(&d, true, RATE);
        for (int i = 0; i < 5000; i++) {
            const double heavy = drift_uniform(&r) < 0.001 ? 1e6 : 1; /* a sensor that jumps now and then */
            false_ones += drift_rises(&d, heavy * fabs(drift_normal(&r)), i);
        }
        for (int i = 0; i < 100 && !found; i++)
            found = drift_rises(&d, 3 * fabs(drift_normal(&r)), 5000 + i);
        late += !found;
        near += found && d.found.after.number > 4980 &&
                sqrt(d.found.after.squares / (double)d.found.after.n) > 1.5;
    }
    assert_true((double)false_ones <= allowed(RATE * streams * 5000));
    assert_true(late <= streams / 20 && near >= streams * 8 / 10);
}

/* ---- what moved */

static void what_moved_most(void **state) {
    (void)state;
    static struct svi_drift d;
    struct svi_drift_moments m = {0};
    struct svi_drift_shift top[3];
    struct svi_random r = {3};
    double x[20];
    svi_drift_init(&d, false, RATE);
    assert_int_equal(svi_drift_moments_reserve(&m, 20, NULL), SVS_OK);
    for (int i = 0;; i++) {
        assert_true(i < 3200);
        for (int j = 0; j < 20; j++)
            x[j] = 1e9 * (j == 5) + (1 + j) * drift_normal(&r) +
                   (i >= 3000 ? (j == 5   ? 12
                                 : j == 9 ? -30
                                          : 0)
                              : 0);
        const struct svi_drift_sample s = {drift_uniform(&r) < (i < 3000 ? 0.05 : 0.6), i, i};
        const enum svi_drift_change change = svi_drift_step(&d, &s);
        svi_drift_moments_step(&m, &d, x, 20);
        if (i > 3000 && change == SVI_DRIFT_RISE)
            break;
        if (change == SVI_DRIFT_RISE)
            svi_drift_cut(&d, &d.found);
    }
    const int count = svi_drift_moments_top(&m, &d, &d.found, 3, top);
    assert_int_equal(count, 2); /* the others have not moved beyond chance */
    assert_true(top[0].feature + top[1].feature == 14 && fabs(top[0].shift) >= fabs(top[1].shift));
    for (int i = 0; i < 2; i++) {
        const bool up = top[i].feature == 5;
        assert_float_equal(top[i].before, up ? 1e9 : 0, 1.5);
        assert_float_equal(top[i].after - top[i].before, up ? 12 : -30, 14);
        assert_float_equal(top[i].deviation, up ? 6 : 10, 1);
        assert_true((top[i].shift > 0) == up);
    }
    svi_drift_moments_free(&m);
}

static void too_many_features(void **state) {
    (void)state;
    struct svi_drift_moments m = {0};
    assert_int_equal(svi_drift_moments_reserve(&m, 4096, NULL), SVS_OK);
    assert_true(m.capacity == 4096);
    assert_true(svi_drift_moments_memory(4096) >= 4096. * 8 * (2 * SVI_DRIFT_BUCKETS + SVI_DRIFT_RECENT));
    assert_int_equal(svi_drift_moments_reserve(&m, 4097, NULL), SVS_OK);
    assert_true(m.capacity == 0 && m.off && svi_drift_moments_memory(4097) == 0);
    assert_int_equal(svi_drift_moments_reserve(&m, 3, NULL), SVS_OK);
    assert_true(m.capacity == 0);
    svi_drift_moments_free(&m);
}

/* ---- archive */

struct both {
    struct svi_drift d;
    struct svi_drift_moments m;
};

static void archive_both(struct svi_archive *a, void *object) {
    struct both *b = object;
    svi_drift_archive(a, &b->d);
    if (svi_archive_ok(a))
        svi_drift_moments_archive(a, &b->m, &b->d);
}

static void step_both(struct both *b, struct svi_random *r, int i, bool regress) {
    const double x[3] = {drift_normal(r), i, 1}, p = i / 700 % 2 ? 0.5 : 0.1;
    const double size = regress ? (1 + 4 * p) * fabs(drift_normal(r)) : drift_uniform(r) < p;
    const struct svi_drift_sample s = {size, i, i};
    const enum svi_drift_change change = svi_drift_step(&b->d, &s);
    svi_drift_moments_step(&b->m, &b->d, x, 3);
    if (change == SVI_DRIFT_RISE)
        svi_drift_cut(&b->d, &b->d.found);
}

static void goes_on_from_an_archive(void **state) {
    (void)state;
    static struct both whole, loaded;
    for (int regress = 0; regress < 2; regress++) {
        struct svi_random r = {11};
        struct svi_bytes a = {0}, b = {0};
        svs_error err = {0};
        whole = (struct both){0};
        svi_drift_init(&whole.d, regress, RATE);
        assert_int_equal(svi_drift_moments_reserve(&whole.m, 3, &err), SVS_OK);
        for (int i = 0; i < 5000; i++) {
            step_both(&whole, &r, i, regress);
            if (i % 619 != 0)
                continue;
            loaded = (struct both){0};
            svi_drift_init(&loaded.d, regress, RATE);
            assert_int_equal(archived_save(archive_both, &whole, &a, &err), SVS_OK);
            assert_int_equal(archived_load(archive_both, &loaded, a.data, a.size, &err), SVS_OK);
            assert_int_equal(archived_save(archive_both, &loaded, &b, &err), SVS_OK);
            assert_true(archived_same(&a, &b));
            struct svi_random again = r;
            for (int k = 1; k < 300; k++)
                step_both(&loaded, &again, i + k, regress);
            again = r;
            struct both copy = whole;
            copy.m = (struct svi_drift_moments){0};
            for (int k = 1; k < 300; k++)
                step_both(&copy, &again, i + k, regress);
            assert_true(copy.d.all.n == loaded.d.all.n && copy.d.bits == loaded.d.bits);
            assert_memory_equal(&copy.d.scale, &loaded.d.scale, sizeof copy.d.scale);
            for (size_t cut = 0; cut < a.size; cut += 97 + a.size / 50) {
                svi_drift_moments_free(&loaded.m);
                svi_drift_init(&loaded.d, regress, RATE);
                assert_int_equal(archived_load(archive_both, &loaded, a.data, cut, &err), SVS_DAMAGED);
            }
            svi_drift_moments_free(&loaded.m);
        }
        svi_drift_moments_free(&whole.m);
        svi_bytes_clear(&a);
        svi_bytes_clear(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(false_alarms_are_as_stated),
        cmocka_unit_test(rarer_alarms_too),
        cmocka_unit_test(learning_is_no_rise),
        cmocka_unit_test(rises_are_found_as_soon_as_by_adwin),
        cmocka_unit_test(recurring_rises),
        cmocka_unit_test(bursts_are_measured),
        cmocka_unit_test(errors_of_a_regression),
        cmocka_unit_test(what_moved_most),
        cmocka_unit_test(too_many_features),
        cmocka_unit_test(goes_on_from_an_archive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
