/* FOSVM trained from rows: the optimum that LIBSVM finds, every row inside, certificates made afresh, how
 * gamma, trimming and scale are chosen, and the same model whatever the machine. */
#include "support/fosvm.h"
#include "support/quick.h"

#include <libsvm/svm.h>

#include "linalg/kernels.h"

/* ---- the optimum */

static void quiet(const char *text) {
    (void)text;
}

static double libsvm_rho(const double *x, int n, int d, double gamma) {
    const struct svm_parameter o = {.svm_type = ONE_CLASS,
                                    .kernel_type = RBF,
                                    .gamma = gamma,
                                    .nu = 1.0 / n,
                                    .eps = 1e-9,
                                    .cache_size = 100,
                                    .shrinking = 1};
    struct svm_node *nodes = calloc((size_t)(n * (d + 1)), sizeof *nodes),
                    **rows = calloc((size_t)n, sizeof *rows);
    struct svm_problem problem = {n, calloc((size_t)n, sizeof(double)), rows};
    for (int i = 0; i < n; i++) {
        rows[i] = nodes + (size_t)i * (size_t)(d + 1);
        for (int j = 0; j < d; j++)
            rows[i][j] = (struct svm_node){j + 1, x[i * d + j]};
        rows[i][d].index = -1;
    }
    svm_set_print_string_function(quiet);
    struct svm_model *m = svm_train(&problem, &o); /* sum alpha = nu n = 1 */
    const double rho = m->rho[0];
    svm_free_and_destroy_model(&m);
    free(problem.y);
    free(rows);
    free(nodes);
    return rho;
}

static void test_optimum(void **state) {
    (void)state;
    static const double gammas[] = {0.01, 0.1, 1, 10};
    for (int shape = 0; shape < SHAPES; shape++) {
        const int n = often(400, 200);
        double *x = cloud((enum shape)shape, n, 4, 3);
        const svs_rows r = view(x, n, 4);
        for (int k = 0; k < 4; k += often(1, 3)) {
            const svs_novelty_options o = plain(SVS_NOVELTY_RBF, gammas[k], 1e-9);
            svs_novelty_model *m = train(&r, &o);
            const double rho = libsvm_rho(x, n, 4, gammas[k]), mine = m->member[0].rho;
            if (!(fabs(mine - rho) <= 1e-6))
                fail_msg("shape %d gamma %g: rho %.12g, LIBSVM's %.12g", shape, gammas[k], mine, rho);
            assert_certified(m, 1e-9);
            svs_novelty_free(&m);
        }
        free(x);
    }
}

/* ---- FOSVM1: everything inside; scores and certificates afresh */

static void assert_all_inside(const svs_novelty_model *m, const double *x, int n) {
    for (int g = 0; g < m->members; g++) {
        const svs_novelty_member *e = &m->member[g];
        long double worst = 1;
        for (int i = 0; i < n; i++)
            worst = fminl(worst, membership(m, g, x + i * m->d));
        assert_true(worst >= 1 - m->theta - 1e-9);
        assert_true(fabsl(worst - e->worst) < 1e-9);
        assert_int_equal(e->outside, 0);
        if (m->kernel != SVS_NOVELTY_POLYNOMIAL)
            assert_true((double)e->rounds <= 1 + (1 - e->rho) / (m->theta * e->rho));
    }
}

static void assert_scores(const svs_novelty_model *m, const double *x, int n, double tolerance) {
    const svs_rows r = view(x, n, m->d);
    double novelty[MOST], surprise[MOST];
    score(m, &r, novelty, surprise);
    for (int i = 0; i < n; i++) {
        const long double s = mean_surprise(m, x + i * m->d);
        assert_true(fabsl(s - surprise[i]) <= tolerance * (1 + fabsl(s)));
        assert_true(fabsl(-expm1l(-s) - novelty[i]) <= tolerance);
    }
}

static void test_all_inside(void **state) {
    (void)state;
    static const double thetas[] = {0.3, 0.05, 0.005};
    static const double gammas[] = {
        [SVS_NOVELTY_RBF] = 0.3, [SVS_NOVELTY_LAPLACIAN] = 0.4, [SVS_NOVELTY_POLYNOMIAL] = 1};
    const int n = often(600, 150);
    for (int shape = 0; shape < SHAPES; shape++) {
        double *x = cloud((enum shape)shape, n, 3, 5);
        const svs_rows r = view(x, n, 3);
        for (int k = 0; k < 3; k++)
            for (int t = 0; t < 3; t++) {
                svs_novelty_options o = plain((svs_novelty_kernel)k, gammas[k], thetas[t]);
                o.degree = 2;
                o.scale = t == 1;
                svs_novelty_model *m = train(&r, &o);
                assert_int_equal(m->trained, n);
                assert_int_equal(m->trimmed, 0);
                assert_all_inside(m, x, n);
                assert_certified(m, 1e-7);
                assert_scores(m, x, n, 1e-8);
                svs_novelty_free(&m);
            }
        free(x);
    }
}

/* At a gamma at which the rows of a bounded region cover it, more of them bring no more rounds. */
static void test_rounds_do_not_grow(void **state) {
    (void)state;
    const int most = often(100000, 10000);
    const svs_novelty_options o = plain(SVS_NOVELTY_RBF, 1, 0.05);
    uint64_t seed = 77;
    double *x = calloc((size_t)most * 2, sizeof *x);
    int64_t first = 0;
    for (int i = 0; i < 2 * most; i++)
        x[i] = test_uniform(&seed);
    for (int n = 1000; n <= most; n *= 10) {
        const svs_rows r = view(x, n, 2);
        svs_novelty_model *m = train(&r, &o);
        first = first ? first : m->member[0].rounds;
        assert_true(m->member[0].rounds <= 2 * first);
        svs_novelty_free(&m);
    }
    free(x);
}

/* ---- FOSVM2 */

static double share_outside(const svs_novelty_model *m, const double *x, int n) {
    const svs_rows r = view(x, n, m->d);
    double surprise[MOST], outside = 0;
    score(m, &r, NULL, surprise);
    for (int i = 0; i < n; i++)
        outside += exp(-surprise[i]) < 1 - m->theta;
    return outside / n;
}

/* More than epsilon stay outside in at most e^(-m epsilon) = 5 % of the runs (of 100: 5 + 3 deviations). */
static void test_drawn_share(void **state) {
    (void)state;
    for (int shape = 0; shape < SHAPES; shape++) {
        double *x = cloud((enum shape)shape, MOST, 4, 8);
        const svs_rows r = view(x, MOST, 4);
        svs_novelty_options o = plain(SVS_NOVELTY_RBF, shape == TAILS ? 0.05 : 0.3, 0.05);
        const int runs = often(100, 8);
        int beyond = 0;
        o.fosvm = 2;
        o.epsilon = 0.05;
        for (o.seed = 1; o.seed <= (uint64_t)runs; o.seed++) {
            svs_novelty_model *m = train(&r, &o);
            beyond += share_outside(m, x, MOST) > o.epsilon;
            if (o.seed == 1)
                assert_certified(m, 1e-9);
            assert_true(m->member[0].outside == 0 && m->member[0].worst >= 1 - o.theta);
            svs_novelty_free(&m);
        }
        if (beyond > often(5 + 6, 4))
            fail_msg("shape %d: %d of %d runs left more than epsilon outside", shape, beyond, runs);
        free(x);
    }
}

/* ---- gamma, trimming, scale */

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double brute_median(const double *x, int n, int d, bool l1) {
    double *gaps = calloc((size_t)n * (size_t)n, sizeof *gaps);
    size_t count = 0;
    for (int a = 0; a < n; a++)
        for (int b = 0; b < a; b++, count++)
            for (int j = 0; j < d; j++) {
                const double gap = x[a * d + j] - x[b * d + j];
                gaps[count] += l1 ? fabs(gap) : gap * gap;
            }
    qsort(gaps, count, sizeof *gaps, ascending);
    const double median = gaps[count / 2];
    free(gaps);
    return median;
}

static double variance(const double *x, int n) {
    double mean = 0, squares = 0;
    for (int i = 0; i < n; i++)
        mean += x[i] / n;
    for (int i = 0; i < n; i++)
        squares += (x[i] - mean) * (x[i] - mean) / n;
    return squares;
}

static void test_gamma_rules(void **state) {
    (void)state;
    static const double rbf[] = {0.25, 1, 4, 16}, laplacian[] = {4, 16};
    double *x = cloud(CLUSTERS, 500, 3, 4);
    const svs_rows r = view(x, 500, 3);
    for (int k = 0; k < 3; k++) {
        svs_novelty_options o = plain((svs_novelty_kernel)k, 0, 0.05);
        const double scale = 1 / (3 * variance(x, 1500)),
                     median = 1 / brute_median(x, 500, 3, k == SVS_NOVELTY_LAPLACIAN);
        const bool polynomial = k == SVS_NOVELTY_POLYNOMIAL;
        o.gamma_rule = SVS_GAMMA_SCALE;
        svs_novelty_model *m = train(&r, &o);
        assert_int_equal(m->members, 1);
        assert_true(fabs(m->member[0].gamma / scale - 1) < 1e-9);
        svs_novelty_free(&m);
        o.gamma_rule = SVS_GAMMA_MEDIAN;
        m = train(&r, &o);
        const double base = m->member[0].gamma;
        assert_true(fabs(base / (polynomial ? scale : median) - 1) < 0.1); /* 4000 pairs */
        svs_novelty_free(&m);
        o.gamma_rule = SVS_GAMMA_AUTO;
        m = train(&r, &o);
        assert_int_equal(m->members, polynomial ? 1 : k == SVS_NOVELTY_RBF ? 4 : 2);
        double shares = 0;
        for (int g = 0; g < m->members; g++) {
            const double times = polynomial ? 1 : k == SVS_NOVELTY_RBF ? rbf[g] : laplacian[g];
            assert_true(fabs(m->member[g].gamma / (times * base) - 1) < 1e-12);
            assert_true(m->member[g].share > 0);
            shares += m->member[g].share;
        }
        assert_true(fabs(shares - 1) < 1e-12);
        assert_scores(m, x, 500, 1e-8);
        svs_novelty_free(&m);
    }
    free(x);
}

static bool is_support(const svs_novelty_model *m, const double *x) {
    long double u[64];
    place(m, x, u);
    for (int g = 0; g < m->members; g++)
        for (int i = 0; i < m->member[g].count; i++) {
            long double gap = 0;
            for (int j = 0; j < m->d; j++)
                gap += fabsl(m->member[g].support[(size_t)i * (size_t)m->stride + (size_t)j] - u[j]);
            if (gap < 1e-12L)
                return true;
        }
    return false;
}

/* Five in a hundred rows lie alone and far out: without trimming they become support, with it they do not. */
static void test_trimming(void **state) {
    (void)state;
    double *x = cloud(CLUSTERS, 400, 3, 6);
    for (int i = 0; i < 400; i += 20)
        for (int j = 0; j < 3; j++)
            x[i * 3 + j] = 30 + i * (j + 1);
    const svs_rows r = view(x, 400, 3);
    for (int k = 0; k < 2; k++)
        for (int trimmed = 0; trimmed < 2; trimmed++) {
            svs_novelty_options o = plain((svs_novelty_kernel)k, 0, 0.05);
            int support = 0;
            o.gamma_rule = SVS_GAMMA_MEDIAN;
            o.scale = true;
            o.trim = trimmed ? 0.1 : 0;
            svs_novelty_model *m = train(&r, &o);
            assert_true(m->trimmed >= (trimmed ? 36 : 0) && m->trimmed <= (trimmed ? 40 : 0));
            for (int i = 0; i < 400; i += 20)
                support += is_support(m, x + i * 3);
            assert_true(trimmed ? support == 0 : support > 0);
            svs_novelty_free(&m);
        }
    free(x);
}

/* Other units and another zero for each feature change nothing; nor do sparse rows, nor padded ones. */
static void test_scale_invariance(void **state) {
    (void)state;
    static const double by[] = {1e-6, 3, 1e8}, plus[] = {5, -1e3, 1e9};
    double *x = cloud(TAILS, 500, 3, 9), *y = calloc(1500, sizeof *y), a[500], b[500];
    svs_novelty_options o;
    svs_novelty_options_default(&o);
    for (int i = 0; i < 1500; i++)
        y[i] = by[i % 3] * x[i] + plus[i % 3];
    const svs_rows r = view(x, 500, 3), scaled = view(y, 500, 3);
    svs_novelty_model *m = train(&r, &o), *n = train(&scaled, &o);
    score(m, &r, NULL, a);
    score(n, &scaled, NULL, b);
    for (int i = 0; i < 500; i++)
        assert_true(fabs(a[i] - b[i]) < 1e-4 * (1 + a[i])); /* plus 1e9 costs digits of x */
    svs_novelty_free(&m);
    svs_novelty_free(&n);
    free(x);
    free(y);
}

/* ---- the same again */

static void test_same_seed_same_model(void **state) {
    (void)state;
    double *x = cloud(TAILS, 800, 4, 2), a[800], b[800];
    const svs_rows r = view(x, 800, 4);
    for (int fosvm = 1; fosvm <= 2; fosvm++) {
        svs_novelty_options o;
        svs_novelty_options_default(&o);
        o.fosvm = fosvm;
        svs_novelty_model *m = train(&r, &o), *n = train(&r, &o);
        score(m, &r, NULL, a);
        score(n, &r, NULL, b);
        assert_memory_equal(a, b, sizeof a);
        svs_novelty_free(&n);
        o.seed = 2;
        n = train(&r, &o);
        score(n, &r, NULL, b);
        assert_true(memcmp(a, b, sizeof a) != 0);
        svs_novelty_free(&m);
        svs_novelty_free(&n);
    }
    free(x);
}

/* Whatever instructions the machine has: the same optimum. */
static void test_instruction_sets(void **state) {
    (void)state;
    static const char *const isas[] = {"generic", "avx2", "avx512"};
    const char *before = getenv("SVMSTREAM_ISA");
    double *x = cloud(CIRCLE, 500, 9, 2), a[500], b[500];
    const svs_rows r = view(x, 500, 9);
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < 3; i++) {
            svs_novelty_options o = plain((svs_novelty_kernel)k, 0.7, 1e-9);
            setenv("SVMSTREAM_ISA", isas[i], 1);
            o.degree = 2;
            o.scale = true;
            svs_novelty_model *m = svi_kernels_get(SVS_ISA_BEST) ? train(&r, &o) : NULL;
            if (m) {
                score(m, &r, NULL, i == 0 ? a : b);
                for (int t = 0; t < often(500, 100) && i > 0; t++)
                    assert_true(fabs(a[t] - b[t]) < 1e-8);
            }
            svs_novelty_free(&m);
        }
    if (before)
        setenv("SVMSTREAM_ISA", before, 1);
    else
        unsetenv("SVMSTREAM_ISA");
    free(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_optimum),
        cmocka_unit_test(test_all_inside),
        cmocka_unit_test(test_rounds_do_not_grow),
        cmocka_unit_test(test_drawn_share),
        cmocka_unit_test(test_gamma_rules),
        cmocka_unit_test(test_trimming),
        cmocka_unit_test(test_scale_invariance),
        cmocka_unit_test(test_same_seed_same_model),
        cmocka_unit_test(test_instruction_sets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
