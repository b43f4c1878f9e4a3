/* Random Fourier features against the kernels that they approximate, and as the columns of a linear model
 * that stands for a one-class model. */
#include "support/oneclass.h"

#include "svmstream/fourier.h"

#define KERNELS 2
#define D       4

static double kernel_value(svs_fourier_kernel kernel, double gamma, const double *x, const double *y) {
    double sum = 0;
    for (int j = 0; j < D; j++)
        sum += kernel == SVS_FOURIER_RBF ? (x[j] - y[j]) * (x[j] - y[j]) : fabs(x[j] - y[j]);
    return exp(-gamma * sum);
}

static double product(const double *a, const double *b, int n) {
    double sum = 0;
    for (int k = 0; k < n; k++)
        sum += a[k] * b[k];
    return sum;
}

static svs_fourier *features_new(svs_fourier_kernel kernel, double gamma, int count, uint64_t seed) {
    svs_fourier *f;
    assert_int_equal(svs_fourier_new(kernel, gamma, D, count, seed, &f, NULL), SVS_OK);
    return f;
}

/* Root mean square of z'z - k over pairs of rows. */
static double kernel_error(svs_fourier_kernel kernel, int count, uint64_t seed) {
    svs_fourier *f = features_new(kernel, 0.3, count, seed);
    double *z = calloc(2 * (size_t)count, sizeof *z), sum = 0;
    uint64_t random = 11;
    for (int i = 0; i < 100; i++) {
        double x[D], y[D];
        for (int j = 0; j < D; j++) {
            x[j] = test_normal(&random);
            y[j] = x[j] + 0.5 * test_normal(&random);
        }
        svs_fourier_apply(f, x, z);
        svs_fourier_apply(f, y, z + count);
        assert_true(fabs(product(z, z, count) - 1) < 1e-9);
        const double error = product(z, z + count, count) - kernel_value(kernel, 0.3, x, y);
        sum += error * error;
    }
    free(z);
    svs_fourier_free(&f);
    return sqrt(sum / 100);
}

/* Sixteen times the features: a quarter of the error, on average over seeds. */
static void test_kernel_error_falls(void **state) {
    (void)state;
    for (int k = 0; k < KERNELS; k++) {
        double few = 0, many = 0;
        for (uint64_t seed = 1; seed <= 10; seed++) {
            few += kernel_error((svs_fourier_kernel)k, 200, seed);
            many += kernel_error((svs_fourier_kernel)k, 3200, seed);
        }
        if (!(many < few / 2.8 && many > few / 5.6 && many / 10 < 0.05))
            fail_msg("kernel %d: error %g with 200 features, %g with 3200", k, few / 10, many / 10);
    }
}

/* ---- a one-class model as a linear one */

/* Root mean square of the error of the novelty over the rows trained on. */
static double novelty_error(const struct test_oneclass *t, svs_fourier_kernel kernel, int count,
                            uint64_t seed) {
    const svs_novelty_member *e = &t->model->member[0];
    svs_fourier *f = features_new(kernel, e->gamma, count, seed);
    double *z = calloc((size_t)count, sizeof *z), *w = calloc((size_t)count, sizeof *w), exact[400], sum = 0;
    for (int i = 0; i < e->count; i++) {
        svs_fourier_apply(f, e->support + (size_t)i * (size_t)t->model->stride, z);
        for (int k = 0; k < count; k++)
            w[k] += e->z[i] * z[k];
    }
    assert_int_equal(svs_novelty_score(t->model, &t->rows, 0, t->n, exact, NULL, NULL), SVS_OK);
    for (int64_t i = 0; i < t->n; i++) {
        svs_fourier_apply(f, t->x + i * D, z);
        const double error = 1 - product(w, z, count) - exact[i];
        sum += error * error;
    }
    free(z);
    free(w);
    svs_fourier_free(&f);
    return sqrt(sum / (double)t->n);
}

static void test_novelty_error_falls(void **state) {
    (void)state;
    for (int k = 0; k < KERNELS; k++) {
        const svs_fourier_kernel kernel = (svs_fourier_kernel)k;
        struct test_oneclass t;
        double few = 0, many = 0;
        test_oneclass_make(&t, 400, D, kernel == SVS_FOURIER_RBF ? SVS_NOVELTY_RBF : SVS_NOVELTY_LAPLACIAN,
                           SVS_GAMMA_MEDIAN, false);
        assert_int_equal(t.model->members, 1);
        for (uint64_t seed = 1; seed <= 5; seed++) {
            few += novelty_error(&t, kernel, 1000, seed);
            many += novelty_error(&t, kernel, 16000, seed);
        }
        if (!(many < few / 2.8 && many > few / 5.6 && many / 5 < 0.1))
            fail_msg("kernel %d: error %g with 1000 features, %g with 16000", k, few / 5, many / 5);
        test_oneclass_free(&t);
    }
}

/* ---- what holds for each row */

static void test_seeds_and_far_rows(void **state) {
    (void)state;
    const double near[D] = {1, -2, 3, 0.5}, far[D] = {1e15, -1e9, 1e300, -1e280};
    for (int k = 0; k < KERNELS; k++) {
        svs_fourier *f = features_new((svs_fourier_kernel)k, 2, 100, 3),
                    *g = features_new((svs_fourier_kernel)k, 2, 100, 3),
                    *other = features_new((svs_fourier_kernel)k, 2, 100, 4);
        double a[100], b[100], c[100];
        svs_fourier_apply(f, near, a);
        svs_fourier_apply(g, near, b);
        svs_fourier_apply(other, near, c);
        assert_memory_equal(a, b, sizeof a);
        assert_memory_not_equal(a, c, sizeof a);
        svs_fourier_apply(f, far, c);
        for (int i = 0; i < 100; i++)
            assert_true(fabs(c[i]) <= sqrt(1.0 / 50) + 1e-12);
        assert_true(fabs(product(c, c, 100) - 1) < 1e-9);
        svs_fourier_free(&f);
        svs_fourier_free(&g);
        svs_fourier_free(&g);
        svs_fourier_free(&other);
    }
}

static void test_refusals(void **state) {
    (void)state;
    static const struct {
        double gamma;
        int d, count;
        const char *part;
    } cases[] = {{0, 3, 10, "gamma"},        {-1, 3, 10, "gamma"},          {NAN, 3, 10, "gamma"},
                 {INFINITY, 3, 10, "gamma"}, {1, 0, 10, "columns"},         {1, 3, 0, "not 0"},
                 {1, 3, 101, "even number"}, {1, 3, 100000000, "10000000"}, {1, 1000001, 2, "columns"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        svs_fourier *f;
        svs_error err;
        assert_int_equal(
            svs_fourier_new(SVS_FOURIER_RBF, cases[i].gamma, cases[i].d, cases[i].count, 1, &f, &err),
            SVS_INVALID);
        assert_true(!f && strstr(err.text, cases[i].part));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel_error_falls), cmocka_unit_test(test_novelty_error_falls),
        cmocka_unit_test(test_seeds_and_far_rows), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
