/* Corners of the learner: late labels of new classes, versions, forgetting with removals, values that are
 * heavy, large or far from 0, and matrices without an inverse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "learner/learner_internal.h"
#include "linalg/cholesky.h"
#include "reference.h"
#include "support/ring.h"

static svs_learner *new_learner(svs_options o, int d) {
    svs_error err = {0};
    svs_learner *l = svs_learner_new(&o, d, &err);
    assert_non_null(l);
    return l;
}

static svs_options options(int64_t window) {
    svs_options o;
    svs_options_default(&o);
    o.window = window;
    return o;
}

static svs_step step(svs_learner *l, const double *x, svs_value id, svs_value y, double weight, double time) {
    svs_error err = {0};
    svs_step out;
    svs_sample s = {x, svs_learner_dimension(l), id, y, weight};
    if (svs_learner_step(l, &s, time, &out, &err) != SVS_OK)
        fail_msg("refused: %s", err.text);
    return out;
}

/* A late label that brings a class gives the waiting samples more room; it must still reach its own sample,
 * also when the ring of those that wait does not begin at its first slot. */
static void late_label_of_a_new_class(void **state) {
    (void)state;
    svs_options o = options(20);
    o.labels_ttl = 10;
    svs_learner *l = new_learner(o, 1);
    svs_step out;
    svs_error err;
    for (int i = 0; i < 8; i++) {
        double x = 100 + i;
        step(l, &x, svs_int(i), svs_none(), 1 + i, i < 3 ? 0 : 20); /* the first three wait too long */
    }
    for (int i = 3; i < 8; i++)
        assert_int_equal(svs_learner_label(l, svs_int(i), svs_int(i), 20, &out, &err), SVS_OK);
    assert_int_equal(svs_learner_class_count(l), 5);
    for (int i = 3; i < 8; i++) {
        int32_t slot = svi_ring_find(&l->window, svs_int(i));
        assert_true(slot >= 0);
        assert_true(*svi_ring_row(&l->window, slot) == 100 + i);
        assert_true(svi_ring_weight(&l->window, slot) == 1 + i);
        assert_true(svi_ring_find(&l->waiting, svs_int(i)) < 0);
    }
    assert_null(ring_check(&l->waiting));
    svs_learner_free(&l);
}

/* What leaves because time went on is reported by a late label too. */
static void late_label_reports_what_left(void **state) {
    (void)state;
    svs_options o = options(20);
    o.window_seconds = 10;
    svs_learner *l = new_learner(o, 1);
    svs_step out;
    double x = 1;
    for (int i = 0; i < 3; i++)
        step(l, &x, svs_none(), svs_int(i % 2), 1, 0);
    step(l, &x, svs_int(1), svs_none(), 1, 5);
    assert_int_equal(svs_learner_label(l, svs_int(1), svs_int(1), 12, &out, NULL), SVS_OK);
    assert_int_equal(out.removed, 3);
    svs_learner_free(&l);
}

/* ---- versions */

struct seen {
    uint64_t version;
    int rows, class_count;
    double W[64], b[8];
};

static struct seen see(svs_learner *l) {
    svs_model m;
    struct seen s = {0};
    assert_int_equal(svs_learner_model(l, &m, NULL), SVS_OK);
    s.version = m.version;
    s.rows = m.rows;
    s.class_count = m.class_count;
    memcpy(s.W, m.W, (size_t)(m.rows * m.d) * sizeof(double));
    memcpy(s.b, m.b, (size_t)m.rows * sizeof(double));
    return s;
}

/* Two models of one version are the same model, whatever was done between. */
static void a_version_is_one_model(void **state) {
    (void)state;
    for (int kind = 0; kind < 8; kind++) {
        svs_options o = options(kind % 2 ? 12 : 30);
        o.rule = kind < 6 ? SVS_FALSVM : SVS_ALSVM;
        o.forget = kind == 2 || kind == 6 ? 0.5 : 1;
        o.window_seconds = kind == 3 ? 9 : 0;
        svs_learner *l = new_learner(o, 3);
        uint64_t seed = 5 + (uint64_t)kind;
        struct seen before = see(l);
        for (int i = 0; i < 1500; i++) {
            int k = (int)(ref_uniform(&seed) * fmin(5, 1 + i / 200.0));
            double x[3];
            for (int j = 0; j < 3; j++)
                x[j] = ref_gauss(&seed) + 6 * k * (j == k % 3) * (1 + (k > 2)) + (i > 700 ? i * 0.1 : 0);
            if (i % 5 == 4)
                svs_learner_forget(l, svs_int(i - 3 - i % 7), i, NULL, NULL);
            else
                step(l, x, svs_int(i), svs_int(k), 1, i);
            struct seen now = see(l);
            assert_true(now.version >= before.version);
            if (now.version == before.version)
                assert_memory_equal(&now, &before, sizeof now);
            before = now;
        }
        svs_learner_free(&l);
    }
}

/* ---- forgetting */

/* The sentinel's sums are those of the rows held, each as faded as it is. */
static double energy_error(const svs_learner *l) {
    double worst = 0;
    for (int j = 0; j <= l->d; j++) {
        double energy = 0, z;
        for (int32_t i = 0; i < l->window.count; i++) {
            int32_t slot = svi_ring_at(&l->window, i);
            const struct svi_slot s = svi_ring_slot(&l->window, slot);
            if (!s.live || !s.learned)
                continue;
            z = j ? (svi_ring_row(&l->window, slot)[j - 1] - l->scaler.mean[j - 1]) * l->scaler.inverse[j - 1]
                  : 1;
            energy += s.weight * pow(l->o.forget, (double)(l->order - 1 - s.order)) * z * z;
        }
        worst = fmax(worst, fabs(l->energy->energy[j] - energy) / (energy + 1e-3));
    }
    return worst;
}

static void energies_are_of_what_is_held(void **state) {
    (void)state;
    static const double forgets[] = {1, 0.98, 0.8, 0.4};
    for (int f = 0; f < 4; f++)
        for (int rule = 0; rule < 2; rule++) {
            svs_options o = options(25);
            o.forget = forgets[f];
            o.rule = rule ? SVS_FALSVM : SVS_ALSVM;
            svs_learner *l = new_learner(o, 3);
            uint64_t seed = 9;
            for (int i = 0; i < 600; i++) {
                double x[3];
                for (int j = 0; j < 3; j++)
                    x[j] = ref_gauss(&seed);
                step(l, x, svs_int(i), svs_int(x[0] + 0.5 * x[1] * x[2] > 0), 0.5 + ref_uniform(&seed), i);
                if (i % 4 == 0)
                    svs_learner_forget(l, svs_int(i - i % 9), i, NULL, NULL);
                if (energy_error(l) > 1e-6)
                    fail_msg("forget %g, rule %d, sample %d: %g", o.forget, rule, i, energy_error(l));
            }
            svs_learner_free(&l);
        }
}

/* A heavy sample counts even when it has faded far: it must be taken out all the same. */
static void heavy_samples_fade_and_leave(void **state) {
    (void)state;
    for (double weight = 1e10; weight < 1e61; weight *= 1e10) {
        svs_options o = options(30);
        o.forget = 0.1;
        svs_learner *l = new_learner(o, 2);
        uint64_t seed = 3;
        double worst = 0;
        for (int i = 0; i < 120; i++) {
            double x[2] = {ref_gauss(&seed), ref_gauss(&seed)};
            step(l, x, svs_none(), svs_int(x[0] > 0), i == 40 ? weight : 1, i);
            if (i > 40 + 30)
                worst = fmax(worst, svs_learner_check(l));
        }
        assert_true(worst < 1e-8);
        svs_learner_free(&l);
    }
}

/* ---- extreme values */

/* Rows far from 0 compared with their spread: the model is right from the first sample on, scaled or raw, and
 * it costs no alarms but that of the first sample (raw, nothing else holds the bias before). */
static void far_from_zero(void **state) {
    (void)state;
    for (int scale = 0; scale < 2; scale++)
        for (double far = 1; far < 1e13; far *= 1e3) {
            svs_options o = options(40);
            o.scale = scale ? SVS_SCALE_STANDARD : SVS_SCALE_NONE;
            svs_learner *l = new_learner(o, 3);
            uint64_t seed = 21;
            double worst = 0, x[3];
            for (int i = 0; i < 200; i++) {
                for (int j = 0; j < 3; j++)
                    x[j] = far * (1 + j) + ref_gauss(&seed);
                svs_step out = step(l, x, svs_int(i), svs_int(ref_uniform(&seed) > 0.5), 1, i);
                for (int k = 0; k < out.rows; k++)
                    assert_true(fabs(out.scores[k]) < 100);
                worst = fmax(worst, svs_learner_check(l));
            }
            svs_health h;
            svs_learner_health(l, &h);
            assert_true(h.alarms <= 1);
            for (int i = 160; i < 198; i++) /* two are left, then none */
                assert_int_equal(svs_learner_forget(l, svs_int(i), 200, NULL, NULL), SVS_OK);
            worst = fmax(worst, svs_learner_check(l));
            for (int i = 198; i < 200; i++)
                assert_int_equal(svs_learner_forget(l, svs_int(i), 200, NULL, NULL), SVS_OK);
            assert_true(svs_learner_check(l) == 0);
            step(l, x, svs_none(), svs_int(1), 1, 201);
            worst = fmax(worst, svs_learner_check(l));
            if (worst > 1e-11)
                fail_msg("%s at %.0e: %.1e", scale ? "standard" : "none", far, worst);
            svs_learner_free(&l);
        }
}

/* Every row that is taken is at most 1e100, however large those before it were. */
static void values_cannot_escalate(void **state) {
    (void)state;
    for (int scale = 0; scale < 2; scale++) {
        svs_options o = options(16);
        svs_error err;
        svs_step out;
        o.scale = scale ? SVS_SCALE_STANDARD : SVS_SCALE_NONE;
        svs_learner *l = new_learner(o, 10);
        uint64_t seed = 4;
        double size = 1;
        int refused = 0;
        for (int i = 0; i < 400; i++, size = fmin(size * 1e3, 1e300)) {
            double x[10], largest = 0;
            for (int j = 0; j < 10; j++) {
                x[j] = ref_gauss(&seed) * (j % 3 ? size : 1);
                largest = fmax(largest, fabs(x[j]));
            }
            svs_sample s = {x, 10, svs_none(), svs_int(i % 2), 1};
            svs_code code = svs_learner_step(l, &s, i, &out, &err);
            assert_true(code == SVS_OK || code == SVS_TOO_LARGE);
            assert_true(code != SVS_OK || largest <= 1e100);
            refused += code != SVS_OK;
        }
        assert_true(refused > 300);
        double worst = 0;
        for (int i = 0; i < 40; i++) {
            double x[10];
            for (int j = 0; j < 10; j++)
                x[j] = ref_gauss(&seed);
            step(l, x, svs_none(), svs_int(i % 2), 1, 400);
            if (i > 16)
                worst = fmax(worst, svs_learner_check(l));
        }
        assert_true(worst < 1e-9);
        svs_learner_free(&l);
    }
}

/* ---- large targets and weights */

/* One sample of every 150 has a target or weight of this size; the worst error while none is held. */
static double worst_after(svs_options o, double target, double weight, bool by_id) {
    svs_learner *l = new_learner(o, 4);
    uint64_t seed = 31;
    double worst = 0;
    for (int i = 0; i < 500; i++) {
        const int since = i % 150 - 20;
        double x[4], t = ref_gauss(&seed);
        for (int j = 0; j < 4; j++)
            t += x[j] = ref_gauss(&seed);
        step(l, x, svs_int(i), svs_real(since ? t : t * target), since ? 1 : weight, i);
        if (by_id && since == 5)
            assert_int_equal(svs_learner_forget(l, svs_int(i - 5), i, NULL, NULL), SVS_OK);
        if (since < 0 || since >= (by_id ? 5 : o.window))
            worst = fmax(worst, svs_learner_check(l));
    }
    svs_learner_free(&l);
    return worst;
}

/* From the very sample with which it leaves, whatever way. */
static void large_targets_and_weights_leave_no_trace(void **state) {
    (void)state;
    static const double sizes[] = {30, 1e3, 1e6, 1e12, 1e15, 1e50, 1e100};
    for (int kind = 0; kind < 16; kind++)
        for (int k = 0; k < 7; k++) {
            svs_options o = options(kind & 1 ? 40 : 100);
            o.task = SVS_REGRESS;
            o.window_seconds = kind & 2 ? 90 : 0;
            o.forget = kind & 4 ? 0.8 : 1;
            double target = fmin(sizes[k], 1e99), weight = kind & 8 ? sizes[k] : 1;
            double worst = worst_after(o, kind & 8 ? 1 : target, weight, kind & 2),
                   both = worst_after(o, target, weight, false);
            if (!(worst < 1e-11 && both < 1e-11))
                fail_msg("kind %d, size %g: %.1e, %.1e", kind, sizes[k], worst, both);
        }
}

static double anything(uint64_t *seed, double least, double most) {
    return pow(10, least + (most - least) * ref_uniform(seed));
}

/* Whatever finite numbers come: no score is NaN, and once ordinary samples fill the window the model is
 * right. */
static void extremes_leave_no_trace(void **state) {
    (void)state;
    for (int kind = 0; kind < 24; kind++) {
        svs_options o = options(kind % 3 ? 20 : 0);
        svs_error err;
        svs_step out;
        o.scale = kind & 1 ? SVS_SCALE_STANDARD : SVS_SCALE_NONE;
        o.task = kind & 2 ? SVS_REGRESS : SVS_CLASSIFY;
        o.forget = kind & 4 ? 0.9 : 1;
        svs_learner *l = new_learner(o, 4);
        uint64_t seed = 77 + (uint64_t)kind;
        int taken = 0;
        for (int i = 0; i < 500; i++) {
            bool calm = i >= 400 || i < 20;
            double x[4], t = ref_gauss(&seed) * (calm ? 1 : anything(&seed, -100, 100));
            for (int j = 0; j < 4; j++)
                x[j] = ref_gauss(&seed) * (calm ? 1 : anything(&seed, -100, 100));
            svs_value y = o.task == SVS_REGRESS ? svs_real(t) : svs_int(t > 0);
            svs_sample s = {x, 4, svs_none(), y, calm ? 1 : anything(&seed, -300, 100)};
            svs_code code = svs_learner_step(l, &s, i, &out, &err);
            assert_true(code == SVS_OK || code == SVS_TOO_LARGE || code == SVS_BAD_LABEL);
            taken += code == SVS_OK;
            for (int k = 0; code == SVS_OK && k < out.rows; k++)
                assert_true(isfinite(out.scores[k]));
        }
        assert_true(taken > 450);
        assert_true(svs_learner_check(l) < 1e-11); /* -1 without a window */
        svs_learner_free(&l);
    }
}

/* Own loops and LAPACK's alike: what has no finite inverse is said to have none, whatever spoils it. */
static void singular_is_said(void **state) {
    (void)state;
    static const double bad[] = {NAN, INFINITY, -INFINITY, 0, -1, 1e-320};
    for (int n = 5; n < 200; n += 90) {
        double *a = calloc((size_t)(n * n), sizeof *a);
        for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
            for (int at = 0; at < n * n; at += n * (n / 4) + n / 4) { /* along the diagonal */
                memset(a, 0, (size_t)(n * n) * sizeof *a);
                for (int i = 0; i < n; i++)
                    a[i * n + i] = 2;
                a[at] = bad[k];
                assert_false(svi_invert_spd(a, n));
            }
        for (int factor = 0; factor < 2; factor++) {
            memset(a, 0, (size_t)(n * n) * sizeof *a);
            for (int i = 0; i < n; i++)
                a[i * n + i] = 2;
            a[(n - 1) * n + n / 2] = NAN; /* off the diagonal */
            assert_false(factor ? svi_factor_spd(a, n) : svi_invert_spd(a, n));
        }
        free(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(late_label_of_a_new_class),
        cmocka_unit_test(late_label_reports_what_left),
        cmocka_unit_test(a_version_is_one_model),
        cmocka_unit_test(energies_are_of_what_is_held),
        cmocka_unit_test(heavy_samples_fade_and_leave),
        cmocka_unit_test(far_from_zero),
        cmocka_unit_test(values_cannot_escalate),
        cmocka_unit_test(large_targets_and_weights_leave_no_trace),
        cmocka_unit_test(extremes_leave_no_trace),
        cmocka_unit_test(singular_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
