/* Explanations against finite differences of the surprise, lags against their definition. */
#include "support/oneclass.h"

#include "base/alloc.h"
#include "novelty/novelty_model.h"
#include "novelty/lags.h"

#define KERNELS 3

static double surprise(const svs_novelty_model *m, const double *x) {
    const svs_rows rows = {.n = 1, .d = m->d, .dense = x, .stride = m->d};
    double s;
    assert_int_equal(svs_novelty_score(m, &rows, 0, 1, NULL, &s, NULL), SVS_OK);
    return s;
}

/* ---- explanations */

static void compare_gradient(const svs_novelty_model *m, const double *at, double *work) {
    double x[16], gradient[16], adds[16], public[16];
    memcpy(x, at, (size_t)m->d * sizeof *x);
    svi_explain(m, x, work, gradient, adds);
    assert_int_equal(svs_novelty_explain(m, x, public, NULL), SVS_OK);
    assert_memory_equal(public, adds, (size_t)m->d * sizeof *adds);
    for (int j = 0; j < m->d; j++) {
        const double spread = m->inverse ? 1 / m->inverse[j] : 1, step = 1e-6 * spread;
        x[j] = at[j] + step;
        const double above = surprise(m, x);
        x[j] = at[j] - step;
        const double slope = (above - surprise(m, x)) / (2 * step);
        x[j] = at[j];
        if (fabs(slope - gradient[j]) * spread > 1e-5 * (1 + fabs(slope) * spread))
            fail_msg("kernel %d, feature %d: %.10g by differences, %.10g", m->kernel, j, slope, gradient[j]);
    }
}

static void test_gradient(void **state) {
    (void)state;
    uint64_t random = 5;
    for (int k = 0; k < KERNELS; k++)
        for (int scale = 0; scale < 2; scale++) {
            struct test_oneclass t;
            test_oneclass_make(&t, 200, 5, (svs_novelty_kernel)k, SVS_GAMMA_AUTO, scale);
            double *work = svi_alloc_array(svi_explain_doubles(t.model), sizeof *work);
            for (int i = 0; i < 30; i++) {
                double x[5];
                for (int j = 0; j < 5; j++)
                    x[j] = t.x[i * 5 + j] * (1 + 0.2 * test_normal(&random)) + 1e-3;
                compare_gradient(t.model, x, work);
            }
            svi_free(work);
            test_oneclass_free(&t);
        }
}

/* One feature is pushed out of what is usual: it adds most, with the sign of the push, however far it goes.
 */
static void test_culprit(void **state) {
    (void)state;
    for (int k = SVS_NOVELTY_RBF; k <= SVS_NOVELTY_LAPLACIAN; k++) {
        struct test_oneclass t;
        test_oneclass_make(&t, 300, 6, (svs_novelty_kernel)k, SVS_GAMMA_AUTO, true);
        for (int j = 0; j < 6; j++)
            for (int p = 0; p < 8; p++) {
                static const double pushes[] = {-1e6, -1e4, -100, -10, 10, 100, 1e4, 1e6};
                const double push = pushes[p];
                double x[6], adds[6];
                for (int i = 0; i < 6; i++)
                    x[i] = t.model->center[i];
                x[j] += push / t.model->inverse[j];
                assert_int_equal(svs_novelty_explain(t.model, x, adds, NULL), SVS_OK);
                for (int i = 0; i < 6; i++)
                    assert_true(isfinite(adds[i]) && (i == j || fabs(adds[i]) < fabs(adds[j])));
                assert_true(adds[j] * push > 0);
            }
        test_oneclass_free(&t);
    }
}

/* ---- lags */

static void test_lags(void **state) {
    (void)state;
    uint64_t random = 9;
    for (int lags = 1; lags <= 7; lags += 2)
        for (int d = 1; d <= 6; d++) {
            const bool steps = d > 3;
            struct svi_lags l;
            double x[40][6], out[42];
            assert_int_equal(svi_lags_init(&l, d, lags, steps, NULL), SVS_OK);
            for (int i = 0; i < 40; i++) {
                if (i == 20)
                    svi_lags_empty(&l);
                for (int j = 0; j < d; j++)
                    x[i][j] = test_normal(&random);
                const bool ready = svi_lags_push(&l, x[i], out);
                assert_int_equal(ready, i % 20 >= lags - 1);
                for (int k = 0; k < lags * d && ready; k++)
                    assert_true(out[k] == (k < d || !steps ? x[i - k / d][k % d]
                                                           : x[i - k / d + 1][k % d] - x[i - k / d][k % d]));
            }
            svi_lags_clear(&l);
        }
    struct svi_lags l;
    assert_int_equal(svi_lags_init(&l, 1, 0, false, NULL), SVS_INVALID);
    assert_int_equal(svi_lags_init(&l, 0, 1, false, NULL), SVS_INVALID);
    assert_int_equal(svi_lags_init(&l, 1, SVI_LAGS_MAX + 1, false, NULL), SVS_INVALID);
}

static void test_lag_names(void **state) {
    (void)state;
    const char *const names[] = {"flow", "pressure"};
    char name[32];
    assert_string_equal(svi_lags_name(names, 2, false, 1, name, sizeof name), "pressure");
    assert_string_equal(svi_lags_name(names, 2, false, 4, name, sizeof name), "flow[-2]");
    assert_string_equal(svi_lags_name(NULL, 2, false, 3, name, sizeof name), "x2[-1]");
    assert_string_equal(svi_lags_name(names, 2, true, 0, name, sizeof name), "flow");
    assert_string_equal(svi_lags_name(names, 2, true, 2, name, sizeof name), "flow step[-1]");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gradient), cmocka_unit_test(test_culprit),
                                       cmocka_unit_test(test_lags), cmocka_unit_test(test_lag_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
