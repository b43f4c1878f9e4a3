/* FOSVM trained from rows: sparse, constant, equal, few, huge and far ones; options that are refused; the
 * cap. */
#include "support/fosvm.h"

static void test_sparse_rows(void **state) {
    (void)state;
    struct test_data t = test_data_make(300, 5, 0.4, 0, 2);
    const svs_rows dense = test_rows(&t, false), sparse = test_rows(&t, true);
    svs_novelty_options o;
    double a[300], b[300];
    svs_novelty_options_default(&o);
    svs_novelty_model *m = train(&dense, &o), *n = train(&sparse, &o);
    score(m, &sparse, a, NULL);
    score(n, &dense, b, NULL);
    assert_memory_equal(a, b, sizeof a);
    svs_novelty_free(&m);
    svs_novelty_free(&n);
    test_data_free(&t);
}

/* ---- odd rows */

static void assert_sound(const svs_novelty_model *m, const svs_rows *r) {
    double novelty[MOST], surprise[MOST];
    score(m, r, novelty, surprise);
    for (int64_t i = 0; i < r->n; i++) {
        assert_true(isfinite(surprise[i]) && isfinite(novelty[i]) && novelty[i] <= 1);
        assert_true(fabs(-expm1(-surprise[i]) - novelty[i]) < 1e-12);
    }
    for (int g = 0; g < m->members; g++) {
        assert_true(m->member[g].count >= 1 && isfinite(m->member[g].gamma) && m->member[g].gamma > 0);
        assert_true(m->member[g].rho > 0 && m->member[g].rho <= 1 + 1e-12);
    }
}

static void with_each_kernel(const double *x, int n, int d) {
    const svs_rows r = view(x, n, d);
    for (int k = 0; k < 3; k++)
        for (int rule = 0; rule < 4; rule++)
            for (int scale = 0; scale < 2; scale++)
                for (int fosvm = 1; fosvm <= 2; fosvm++) {
                    svs_novelty_options o;
                    svs_novelty_options_default(&o);
                    o.kernel = (svs_novelty_kernel)k;
                    o.gamma_rule = (svs_gamma_rule)rule;
                    o.gamma = 1;
                    o.scale = scale;
                    o.fosvm = fosvm;
                    svs_novelty_model *m = train(&r, &o);
                    assert_sound(m, &r);
                    svs_novelty_free(&m);
                }
}

static void test_odd_rows(void **state) {
    (void)state;
    double *x = cloud(CLUSTERS, 200, 3, 1);
    for (int i = 0; i < 200; i++)
        x[i * 3 + 1] = 7; /* a constant column */
    with_each_kernel(x, 200, 3);
    for (int i = 3; i < 600; i++)
        x[i] = x[i % 9]; /* three rows again and again */
    with_each_kernel(x, 200, 3);
    for (int i = 3; i < 600; i++)
        x[i] = x[i % 3]; /* one row again and again */
    with_each_kernel(x, 200, 3);
    with_each_kernel(x, 2, 3); /* two equal rows */
    x[4] = 9;
    with_each_kernel(x, 2, 3); /* two rows */
    memset(x, 0, 600 * sizeof *x);
    with_each_kernel(x, 50, 3);
    for (int i = 0; i < 600; i++)
        x[i] = (i % 2 ? 1 : -1) * (i % 7 ? 1e100 : 1e-100);
    with_each_kernel(x, 200, 3);
    free(x);
}

/* The farther, the more surprise, long after the membership is 0 to the last digit. */
static void test_far_rows(void **state) {
    (void)state;
    double *x = cloud(CLUSTERS, 300, 2, 1);
    const svs_rows r = view(x, 300, 2);
    for (int k = 0; k < 2; k++)
        for (int scale = 0; scale < 2; scale++) {
            svs_novelty_options o;
            double before = 0;
            svs_novelty_options_default(&o);
            o.kernel = (svs_novelty_kernel)k;
            o.scale = scale;
            svs_novelty_model *m = train(&r, &o);
            for (double far = 20; far < 1e100; far *= 7) {
                const double at[] = {far, -far};
                const svs_rows one = view(at, 1, 2);
                double novelty, surprise;
                score(m, &one, &novelty, &surprise);
                assert_true(isfinite(surprise) && surprise > before && novelty <= 1);
                before = surprise;
            }
            svs_novelty_free(&m);
        }
    free(x);
}

/* ---- options */

static void test_refused(void **state) {
    (void)state;
    double *x = cloud(CLUSTERS, 20, 2, 1);
    svs_novelty_options good = plain(SVS_NOVELTY_RBF, 1, 0.05), bad[20];
    int n = 0;
    for (int i = 0; i < 20; i++)
        bad[i] = good;
    bad[n++].fosvm = 0;
    bad[n++].fosvm = 3;
    bad[n++].theta = 0;
    bad[n++].theta = 1;
    bad[n++].theta = NAN;
    bad[n].fosvm = 2;
    bad[n++].epsilon = 0;
    bad[n].fosvm = 2;
    bad[n++].epsilon = 1;
    bad[n++].gamma = 0;
    bad[n++].gamma = -1;
    bad[n++].gamma = INFINITY;
    bad[n++].gamma = NAN;
    bad[n].kernel = SVS_NOVELTY_POLYNOMIAL;
    bad[n++].degree = 0;
    bad[n].kernel = SVS_NOVELTY_POLYNOMIAL;
    bad[n++].degree = 21;
    bad[n++].trim = -0.1;
    bad[n++].trim = 0.51;
    bad[n++].trim = NAN;
    bad[n++].m = -1;
    bad[n++].max = -1;
    bad[n++].max = 1;
    for (int i = 0; i <= n; i++) {
        const svs_rows r = view(x, i < n ? 20 : 1, 2); /* at last: too few rows */
        svs_novelty_model *m = NULL;
        svs_error err = {0};
        assert_int_equal(svs_novelty_train(&r, NULL, i < n ? &bad[i] : &good, &m, &err), SVS_INVALID);
        assert_null(m);
        assert_true(err.code == SVS_INVALID && strlen(err.text) > 10);
    }
    x[7] = INFINITY;
    const svs_rows r = view(x, 20, 2);
    svs_novelty_model *m = NULL;
    assert_int_equal(svs_novelty_train(&r, NULL, &good, &m, NULL), SVS_NOT_FINITE);
    assert_null(m);
    free(x);
}

static void test_wrong_dimension(void **state) {
    (void)state;
    double *x = cloud(CLUSTERS, 40, 2, 1), novelty[40];
    const svs_rows r = view(x, 40, 2), other = view(x, 20, 4);
    const svs_novelty_options o = plain(SVS_NOVELTY_RBF, 1, 0.05);
    svs_novelty_model *m = train(&r, &o);
    assert_int_equal(svs_novelty_score(m, &other, 0, 20, novelty, NULL, NULL), SVS_WRONG_DIMENSION);
    svs_novelty_free(&m);
    svs_novelty_free(&m);
    free(x);
}

static void test_names(void **state) {
    (void)state;
    char first[] = "temperature", second[] = "";
    const char *const names[] = {first, second};
    double *x = cloud(CLUSTERS, 40, 2, 1);
    const svs_rows r = view(x, 40, 2);
    const svs_novelty_options o = plain(SVS_NOVELTY_RBF, 1, 0.05);
    svs_novelty_model *m = NULL;
    assert_int_equal(svs_novelty_train(&r, names, &o, &m, NULL), SVS_OK);
    first[0] = 'X';
    assert_string_equal(m->features[0], "temperature");
    assert_string_equal(m->features[1], "");
    svs_novelty_free(&m);
    free(x);
}

/* The cap is for all members together, and the certificate tells what it cost. */
static void test_max(void **state) {
    (void)state;
    double *x = cloud(TAILS, 600, 4, 2);
    const svs_rows r = view(x, 600, 4);
    for (int k = 0; k < 3; k++)
        for (int max = 2; max <= 64; max *= 2) {
            svs_novelty_options o;
            int count = 0;
            svs_novelty_options_default(&o);
            o.kernel = (svs_novelty_kernel)k;
            o.trim = 0;
            o.max = max;
            svs_novelty_model *m = train(&r, &o);
            for (int g = 0; g < m->members; g++) {
                int64_t outside = 0;
                long double worst = 1;
                for (int i = 0; i < 600; i++) {
                    const long double in = membership(m, g, x + i * 4);
                    outside += in < 1 - o.theta;
                    worst = fminl(worst, in);
                }
                count += m->member[g].count;
                assert_true(llabs(outside - m->member[g].outside) <= 1); /* rounding at the edge */
                assert_true(fabsl(worst - m->member[g].worst) < 1e-9);
            }
            assert_true(count <= (max > 2 * m->members ? max : 2 * m->members));
            svs_novelty_free(&m);
        }
    free(x);
}

struct told {
    int calls, members;
    double worst;
};

static void tell(void *user, int member, int members, int points, double worst) {
    struct told *t = user;
    assert_true(member >= 0 && member < members && points > 0 && worst <= 1);
    t->calls++;
    t->members = members;
}

static void test_progress(void **state) {
    (void)state;
    double *x = cloud(CLUSTERS, 200, 2, 1);
    const svs_rows r = view(x, 200, 2);
    for (int fosvm = 1; fosvm <= 2; fosvm++) {
        struct told told = {0};
        svs_novelty_options o;
        svs_novelty_options_default(&o);
        o.fosvm = fosvm;
        o.progress = tell;
        o.user = &told;
        svs_novelty_model *m = train(&r, &o);
        assert_true(told.calls >= 2 && told.members == 2);
        svs_novelty_free(&m);
    }
    free(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sparse_rows),
        cmocka_unit_test(test_odd_rows),
        cmocka_unit_test(test_far_rows),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_wrong_dimension),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_max),
        cmocka_unit_test(test_progress),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
