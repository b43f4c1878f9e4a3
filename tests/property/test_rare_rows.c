/* Training on rows that hardly differ, and on rows too large to compute with. */
#include "support/problem.h"
#include "svmstream/novelty.h"

#define D 2

static double greatest_novelty(const svs_novelty_model *m, const svs_rows *rows) {
    double most = -1, *novelty = calloc((size_t)rows->n, sizeof *novelty);
    assert_int_equal(svs_novelty_score(m, rows, 0, rows->n, novelty, NULL, NULL), SVS_OK);
    for (int64_t i = 0; i < rows->n; i++)
        most = novelty[i] > most ? novelty[i] : most;
    free(novelty);
    return most;
}

/* Among many equal rows a single other one is seldom drawn, and is inside all the same, for every member. */
static void one_row_of_its_kind(void **state) {
    (void)state;
    enum { N = 3000 };
    static double x[N * D];
    const svs_rows rows = {.n = N, .d = D, .dense = x, .stride = D};
    for (int at = 17; at < N; at += 500) {
        svs_novelty_options o;
        svs_novelty_model *m;
        memset(x, 0, sizeof x);
        x[D * at] = 5;
        svs_novelty_options_default(&o);
        o.trim = 0;
        assert_int_equal(svs_novelty_train(&rows, NULL, &o, &m, NULL), SVS_OK);
        for (int g = 0; g < m->members; g++) {
            assert_int_equal(m->member[g].count, 2);
            assert_int_equal(m->member[g].outside, 0);
        }
        assert_true(greatest_novelty(m, &rows) < 1e-12);
        svs_novelty_free(&m);
    }
}

static svs_code train_sized(double size, bool scale, svs_novelty_kernel kernel, svs_error *err) {
    enum { N = 100 };
    static double x[N * D];
    const svs_rows rows = {.n = N, .d = D, .dense = x, .stride = D};
    svs_novelty_options o;
    svs_novelty_model *m = NULL;
    uint64_t seed = 3;
    for (int i = 0; i < N * D; i++)
        x[i] = size * (2 * test_uniform(&seed) - 1);
    svs_novelty_options_default(&o);
    o.scale = scale;
    o.kernel = kernel;
    o.trim = 0;
    o.max = 0;
    const svs_code code = svs_novelty_train(&rows, NULL, &o, &m, err);
    if (code == SVS_OK)
        assert_true(greatest_novelty(m, &rows) <= o.theta + 1e-9);
    svs_novelty_free(&m);
    return code;
}

static void any_size(void **state) {
    (void)state;
    svs_error err;
    for (int kernel = SVS_NOVELTY_RBF; kernel <= SVS_NOVELTY_POLYNOMIAL; kernel++) {
        for (double size = 1e-100; size < 1e101; size *= 1e50)
            for (int scale = 0; scale <= 1; scale++)
                assert_int_equal(train_sized(size, scale, (svs_novelty_kernel)kernel, &err), SVS_OK);
        assert_int_equal(train_sized(1e200, true, (svs_novelty_kernel)kernel, &err), SVS_OK);
        assert_int_equal(train_sized(1e200, false, (svs_novelty_kernel)kernel, &err), SVS_TOO_LARGE);
        assert_non_null(strstr(err.text, "row 0"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_row_of_its_kind), cmocka_unit_test(any_size)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
