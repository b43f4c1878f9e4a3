/* The solvers newton, alm and alm-inexact: certified optima, alike on dense and sparse rows, for every p and
 * bias. */
#include "support/problem.h"
#include "support/quick.h"

static const svs_solver exact[] = {SVS_SOLVER_NEWTON, SVS_SOLVER_ALM};

/* What a solution says of itself must be so. */
static void assert_honest(const svs_problem *p, const svs_solution *s) {
    double objective = (double)test_objective(p, s->w, s->b);
    assert_true(fabs(objective - s->objective) <= 1e-11 * objective);
    assert_true(fabs(s->gap - (s->objective - s->dual)) <= 1e-9 * s->objective);
    assert_true(s->gap >= -1e-9 * s->objective);
    assert_int_equal(s->converged, s->gap <= 1e-8 * s->objective);
    for (int64_t i = 0; i < s->n; i++)
        assert_true(s->alpha[i] >= 0 && (p->p > 1 || s->alpha[i] <= p->C * (p->cost ? p->cost[i] : 1)));
}

static void optimum_of(const svs_problem *p) {
    double best = INFINITY;
    for (size_t k = 0; k < sizeof exact / sizeof *exact; k++) {
        svs_solution s = test_solve(p, exact[k], 1e-8, NULL);
        assert_honest(p, &s);
        if (!s.converged)
            fail_msg("%s p=%g bias=%d: gap %g", svs_solver_name(s.solver), p->p, p->bias,
                     s.gap / s.objective);
        assert_true(isinf(best) || fabs(s.objective - best) <= 3e-8 * best);
        best = s.objective;
        svs_solution_clear(&s);
    }
}

static void test_optimum(void **state) {
    (void)state;
    static const double powers[] = {1, 1.01, 1.5, 1.9, 2};
    static const svs_bias biases[] = {SVS_BIAS_APPENDED, SVS_BIAS_FREE, SVS_BIAS_NONE};
    struct test_data t = test_data_make(often(400, 200), 6, 1, 0.1, 1);
    for (int weights = 0; weights < 2; weights++)
        for (int b = 0; b < 3; b++)
            for (int k = often(0, (weights + b) % 3); k < 5; k += often(1, 3)) {
                svs_problem p = test_problem(&t, powers[k], k & 1);
                p.bias = biases[b];
                p.cost = weights ? t.cost : NULL;
                optimum_of(&p);
            }
    test_data_free(&t);
}

static void test_shapes(void **state) {
    (void)state;
    static const struct {
        int64_t n;
        int d;
        double density, flips, C;
    } cases[] = {{3000, 9, 1, 0.2, 1},   {50, 120, 1, 0, 10},    {300, 40, 0.1, 0.05, 100},
                 {2, 1, 1, 0, 1},        {500, 3, 1, 0.5, 1e-4}, {600, 2000, 0.01, 0.1, 1},
                 {900, 33, 0.3, 0, 1000}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct test_data t = test_data_make(cases[k].n, cases[k].d, cases[k].density, cases[k].flips, k + 7);
        for (int p = 1; p <= 2; p++) {
            svs_problem problem = test_problem(&t, p, cases[k].density < 1);
            problem.C = cases[k].C;
            optimum_of(&problem);
        }
        test_data_free(&t);
    }
}

static void test_dense_and_sparse(void **state) {
    (void)state;
    struct test_data t = test_data_make(700, 21, 0.4, 0.1, 3);
    for (int p = 1; p <= 2; p++) {
        svs_problem dense = test_problem(&t, p, false), sparse = test_problem(&t, p, true);
        svs_solution a = test_solve(&dense, SVS_SOLVER_NEWTON, 1e-10, NULL);
        svs_solution b = test_solve(&sparse, SVS_SOLVER_NEWTON, 1e-10, NULL);
        for (int j = 0; j < t.d; j++)
            assert_true(fabs(a.w[j] - b.w[j]) < 1e-4);
        assert_true(fabs(a.objective - b.objective) <= 1e-9 * a.objective);
        svs_solution_clear(&a);
        svs_solution_clear(&b);
    }
    test_data_free(&t);
}

/* A weight of 2 is the row twice. */
static void test_weights_are_copies(void **state) {
    (void)state;
    struct test_data t = test_data_make(60, 4, 1, 0.2, 5);
    struct test_data twice = test_data_make(90, 4, 1, 0.2, 5);
    for (int i = 0; i < 60; i++)
        t.cost[i] = i < 30 ? 2 : 1;
    memcpy(twice.x, t.x, 60 * 4 * sizeof(double));
    memcpy(twice.x + 60 * 4, t.x, 30 * 4 * sizeof(double));
    memcpy(twice.y, t.y, 60 * sizeof(double));
    memcpy(twice.y + 60, t.y, 30 * sizeof(double));
    for (double p = 1; p <= 2; p += 0.5) {
        svs_problem weighted = test_problem(&t, p, false), copied = test_problem(&twice, p, false);
        weighted.cost = t.cost;
        svs_solution a = test_solve(&weighted, SVS_SOLVER_ALM, 1e-9, NULL);
        svs_solution b = test_solve(&copied, SVS_SOLVER_ALM, 1e-9, NULL);
        assert_true(fabs(a.objective - b.objective) <= 1e-8 * a.objective);
        svs_solution_clear(&a);
        svs_solution_clear(&b);
    }
    test_data_free(&t);
    test_data_free(&twice);
}

/* Raw scales from 1e-3 to 1e4: exact steps do not mind. */
static void test_scales(void **state) {
    (void)state;
    struct test_data t = test_data_make(1500, 8, 1, 0.15, 9);
    for (int64_t i = 0; i < t.n; i++)
        for (int j = 0; j < t.d; j++)
            t.x[i * t.d + j] = t.x[i * t.d + j] * pow(10, j - 3) + (j == 7 ? 3e4 : 0);
    for (int p = 1; p <= 2; p++) {
        svs_problem problem = test_problem(&t, p, false);
        optimum_of(&problem);
    }
    test_data_free(&t);
}

static void test_inexact(void **state) {
    (void)state;
    struct test_data t = test_data_make(often(800, 200), 7, 1, 0.15, 11);
    for (double p = 1; p <= 2; p += 0.5) {
        svs_problem problem = test_problem(&t, p, false);
        svs_solution exactly = test_solve(&problem, SVS_SOLVER_NEWTON, 1e-9, NULL);
        svs_solution s = test_solve(&problem, SVS_SOLVER_ALM_INEXACT, 1e-6, NULL);
        assert_true(s.converged);
        assert_true(s.objective - exactly.objective <= 1e-6 * s.objective);
        svs_solution_clear(&s);
        svs_solution_clear(&exactly);
    }
    for (int64_t i = 0; i < t.n; i++)
        t.x[i * t.d] *= 1e4; /* hopeless for gradients: it must say so */
    svs_problem hard = test_problem(&t, 1, false);
    svs_solution s = test_solve(&hard, SVS_SOLVER_ALM_INEXACT, 1e-8, NULL);
    assert_false(s.converged);
    assert_int_equal(s.stop, SVS_STOP_ITERATIONS);
    assert_non_null(strstr(s.note, "--scale"));
    svs_solution_clear(&s);
    test_data_free(&t);
}

/* From its own solution a solver has nothing left to do; from a neighbour's much less than from nothing. */
static void test_warm(void **state) {
    (void)state;
    struct test_data t = test_data_make(4000, 12, 1, 0.2, 13);
    static const svs_solver solvers[] = {SVS_SOLVER_NEWTON, SVS_SOLVER_ALM, SVS_SOLVER_ALM_INEXACT};
    for (size_t k = 0; k < 3; k++)
        for (int p = 1; p <= 2; p++) {
            svs_problem problem = test_problem(&t, p, false);
            svs_solution cold = test_solve(&problem, solvers[k], 1e-4, NULL);
            svs_start start = {.w = cold.w, .b = cold.b, .alpha = cold.alpha};
            svs_solution again = test_solve(&problem, solvers[k], 1e-4, &start);
            assert_true(cold.converged && again.converged);
            assert_true(again.iterations <= 1);
            svs_solution_clear(&again);
            for (int64_t i = 0; i < t.n; i += 20) /* unknown multipliers are made from the residual */
                cold.alpha[i] = NAN;
            again = test_solve(&problem, solvers[k], 1e-4, &start);
            assert_true(again.converged && again.iterations < cold.iterations);
            svs_solution_clear(&again);
            svs_solution_clear(&cold);
        }
    test_data_free(&t);
}

/* A Gram matrix that is there already is used, and spares nothing of the answer. */
static void test_gram(void **state) {
    (void)state;
    struct test_data t = test_data_make(500, 10, 1, 0.1, 17);
    const int n = t.d + 1;
    double *gram = calloc((size_t)(n * n), sizeof *gram);
    for (int64_t r = 0; r < t.n; r++)
        for (int i = 0; i < n; i++)
            for (int j = 0; j <= i; j++)
                gram[i * n + j] += (i < t.d ? t.x[r * t.d + i] : 1) * (j < t.d ? t.x[r * t.d + j] : 1);
    for (int bias = 0; bias < 3; bias++) {
        svs_problem p = test_problem(&t, 1, false);
        p.bias = (svs_bias)bias;
        p.bias_value = 3;
        svs_start start = {.gram = gram};
        svs_solution a = test_solve(&p, SVS_SOLVER_ALM, 1e-9, &start),
                     b = test_solve(&p, SVS_SOLVER_ALM, 1e-9, NULL);
        assert_true(a.converged && b.converged);
        assert_int_equal(a.iterations, b.iterations);
        assert_true(fabs(a.objective - b.objective) <= 1e-9 * a.objective);
        svs_solution_clear(&a);
        svs_solution_clear(&b);
    }
    free(gram);
    test_data_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_optimum),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_dense_and_sparse),
        cmocka_unit_test(test_weights_are_copies),
        cmocka_unit_test(test_scales),
        cmocka_unit_test(test_inexact),
        cmocka_unit_test(test_warm),
        cmocka_unit_test(test_gram),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
