/* The solvers dcd, alsvm and falsvm. */
#include "support/problem.h"

static void assert_honest(const svs_problem *p, const svs_solution *s) {
    double objective = (double)test_objective(p, s->w, s->b);
    assert_true(fabs(objective - s->objective) <= 1e-11 * objective);
}

/* The same optimum as Newton's, which has another way there. */
static void test_optimum(void **state) {
    (void)state;
    for (int shape = 0; shape < 4; shape++) {
        struct test_data t = test_data_make(shape == 2 ? 60 : 400, shape == 2 ? 150 : 6, shape & 1 ? 0.3 : 1,
                                            0.1, (uint64_t)shape + 1);
        for (int p = 1; p <= 2; p++)
            for (int weights = 0; weights < 2; weights++) {
                svs_problem problem = test_problem(&t, p, shape & 1);
                problem.cost = weights ? t.cost : NULL;
                problem.bias = shape == 3 ? SVS_BIAS_NONE : SVS_BIAS_APPENDED;
                problem.bias_value = 2;
                svs_solution a = test_solve(&problem, SVS_SOLVER_DCD, 1e-7, NULL);
                svs_solution b = test_solve(&problem, SVS_SOLVER_NEWTON, 1e-9, NULL);
                assert_honest(&problem, &a);
                assert_true(a.converged && b.converged);
                assert_true(fabs(a.objective - b.objective) <= 2e-7 * b.objective);
                svs_solution_clear(&a);
                svs_solution_clear(&b);
            }
        test_data_free(&t);
    }
}

static void test_seed(void **state) {
    (void)state;
    struct test_data t = test_data_make(300, 5, 1, 0.2, 3);
    svs_problem p = test_problem(&t, 1, false);
    svs_solution a = test_solve(&p, SVS_SOLVER_DCD, 1e-3, NULL),
                 b = test_solve(&p, SVS_SOLVER_DCD, 1e-3, NULL);
    assert_memory_equal(a.w, b.w, (size_t)t.d * sizeof(double));
    assert_memory_equal(a.alpha, b.alpha, (size_t)t.n * sizeof(double));
    svs_solution_clear(&a);
    svs_solution_clear(&b);
    test_data_free(&t);
}

static void test_warm(void **state) {
    (void)state;
    struct test_data t = test_data_make(2000, 8, 1, 0.15, 5);
    for (int p = 1; p <= 2; p++) {
        svs_problem problem = test_problem(&t, p, false);
        svs_solution cold = test_solve(&problem, SVS_SOLVER_DCD, 1e-4, NULL);
        svs_start start = {.w = cold.w, .b = cold.b, .alpha = cold.alpha};
        svs_solution again = test_solve(&problem, SVS_SOLVER_DCD, 1e-4, &start);
        assert_true(cold.converged && again.converged);
        assert_int_equal(again.iterations, 0);
        svs_solution_clear(&again);
        problem.C = 0.5; /* clipped into the smaller box */
        again = test_solve(&problem, SVS_SOLVER_DCD, 1e-4, &start);
        assert_true(again.converged);
        svs_solution_clear(&again);
        svs_solution_clear(&cold);
    }
    test_data_free(&t);
}

/* Rows without any value: with no bias their multiplier is C at once; nothing is divided by 0. */
static void test_empty_rows(void **state) {
    (void)state;
    struct test_data t = test_data_make(200, 4, 1, 0.1, 7);
    memset(t.x + 4 * 10, 0, 20 * 4 * sizeof(double));
    for (int p = 1; p <= 2; p++) {
        svs_problem problem = test_problem(&t, p, false);
        problem.bias = SVS_BIAS_NONE;
        svs_solution s = test_solve(&problem, SVS_SOLVER_DCD, 1e-7, NULL);
        assert_true(s.converged);
        assert_true(fabs(s.alpha[12] - p) < 1e-6); /* C, or 2 C times the margin 1 */
        svs_solution_clear(&s);
    }
    test_data_free(&t);
}

static void test_not_converged(void **state) {
    (void)state;
    struct test_data t = test_data_make(500, 4, 1, 0.3, 9);
    for (int64_t i = 0; i < t.n; i++)
        t.x[i * 4] *= 1e5;
    svs_problem p = test_problem(&t, 1, false);
    svs_solve_options o;
    svs_solution s;
    svs_solve_options_default(&o);
    o.solver = SVS_SOLVER_DCD;
    o.tol = 1e-9;
    o.max_iterations = 30;
    assert_int_equal(svs_solve(&p, &o, NULL, &s, NULL), SVS_OK);
    assert_false(s.converged);
    assert_int_equal(s.stop, SVS_STOP_ITERATIONS);
    assert_int_equal(s.iterations, 30);
    assert_non_null(strstr(s.note, "--scale"));
    assert_honest(&p, &s);
    svs_solution_clear(&s);
    test_data_free(&t);
}

/* Normal equations: v = 2 sum c (y - f) x. */
static void assert_stationary(const svs_problem *p, const svs_solution *s, double tolerance) {
    double *x = calloc((size_t)p->rows.d, 8), *g = calloc((size_t)p->rows.d + 1, 8), largest = 0, scale = 1;
    for (int64_t i = 0; i < p->rows.n; i++) {
        double f = s->b, c = 2 * p->C * (p->cost ? p->cost[i] : 1);
        svs_rows_copy(&p->rows, i, x);
        for (int j = 0; j < p->rows.d; j++)
            f += s->w[j] * x[j];
        for (int j = 0; j < p->rows.d; j++)
            g[j] += c * (p->y[i] - f) * x[j];
        g[p->rows.d] += c * (p->y[i] - f) * p->bias_value;
    }
    for (int j = 0; j < p->rows.d; j++) {
        largest = fmax(largest, fabs(g[j] - s->w[j]));
        scale = fmax(scale, fabs(s->w[j]));
    }
    if (p->bias == SVS_BIAS_APPENDED)
        largest = fmax(largest, fabs(g[p->rows.d] - s->b / p->bias_value));
    assert_true(largest <= tolerance * scale);
    free(x);
    free(g);
}

static void test_least_squares(void **state) {
    (void)state;
    for (int shape = 0; shape < 3; shape++) {
        struct test_data t =
            test_data_make(shape == 2 ? 80 : 500, shape == 2 ? 1700 : 9, shape == 2 ? 0.05 : 1, 0.1, 11);
        svs_problem p = test_problem(&t, 1, shape == 2);
        p.loss = SVS_SQUARED;
        p.cost = shape ? t.cost : NULL;
        p.bias_value = 3;
        svs_solution s = test_solve(&p, SVS_SOLVER_ALSVM, 1e-12, NULL);
        assert_honest(&p, &s);
        assert_true(s.converged && s.gap <= 1e-10 * s.objective);
        assert_stationary(&p, &s, 1e-5);
        svs_solution_clear(&s);
        for (int64_t i = 0; i < t.n; i++)
            t.y[i] = 3.5 * t.y[i] + t.cost[i]; /* real targets */
        s = test_solve(&p, SVS_SOLVER_AUTO, 1e-12, NULL);
        assert_int_equal(s.solver, SVS_SOLVER_ALSVM);
        assert_null(s.alpha);
        assert_stationary(&p, &s, 1e-5);
        svs_solution_clear(&s);
        test_data_free(&t);
    }
}

/* By the rule itself, with a fresh solve for each decision. */
static void test_falsvm(void **state) {
    (void)state;
    struct test_data t = test_data_make(150, 3, 1, 0.2, 13), kept = test_data_make(150, 3, 1, 0.2, 13);
    svs_problem p = test_problem(&t, 1, false), partial = test_problem(&kept, 1, false);
    svs_solution s = {0}, all;
    p.loss = partial.loss = SVS_SQUARED;
    kept.n = 0;
    for (int64_t i = 0; i < t.n; i++) {
        double f = s.w ? s.b : 0;
        for (int j = 0; j < 3 && s.w; j++)
            f += s.w[j] * t.x[i * 3 + j];
        if (t.y[i] * f > 0)
            continue;
        memcpy(kept.x + 3 * kept.n, t.x + 3 * i, 3 * sizeof(double));
        kept.y[kept.n++] = t.y[i];
        partial.rows = test_rows(&kept, false);
        svs_solution_clear(&s);
        s = test_solve(&partial, SVS_SOLVER_ALSVM, 1e-13, NULL);
    }
    all = test_solve(&p, SVS_SOLVER_FALSVM, 1e-12, NULL);
    for (int j = 0; j < 3; j++)
        assert_true(fabs(all.w[j] - s.w[j]) <= 1e-9 * (1 + fabs(s.w[j])));
    assert_null(all.alpha);
    assert_non_null(strstr(all.note, "learned"));
    svs_solution_clear(&s);
    svs_solution_clear(&all);
    test_data_free(&t);
    test_data_free(&kept);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_optimum),       cmocka_unit_test(test_seed),
        cmocka_unit_test(test_warm),          cmocka_unit_test(test_empty_rows),
        cmocka_unit_test(test_not_converged), cmocka_unit_test(test_least_squares),
        cmocka_unit_test(test_falsvm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
