/* Kernel solvers: certificates from scratch, agreement with the linear solvers where the kernel is linear,
 * and whatever the size of the cache. */
#include "support/problem.h"
#include "support/quick.h"

static svs_problem kernel_problem(const struct test_data *t, svs_kernel_kind kind, svs_loss loss,
                                  bool sparse) {
    svs_problem p = test_problem(t, loss == SVS_HINGE ? 1 : 2, sparse);
    p.loss = loss;
    p.bias = loss == SVS_HINGE ? SVS_BIAS_FREE : SVS_BIAS_APPENDED;
    p.kernel = (svs_kernel){.kind = kind, .gamma = 0.5, .coef0 = 1, .degree = 2};
    return p;
}

static double kernel(const svs_problem *p, int64_t i, int64_t j) {
    double a[64], b[64], ab = 0, aa = 0, bb = 0;
    svs_rows_copy(&p->rows, i, a);
    svs_rows_copy(&p->rows, j, b);
    for (int k = 0; k < p->rows.d; k++) {
        ab += a[k] * b[k];
        aa += a[k] * a[k];
        bb += b[k] * b[k];
    }
    return svs_kernel_value(&p->kernel, ab, aa, bb);
}

/* Primal and dual value of (alpha, b), and sum y alpha. */
static void values(const svs_problem *p, const svs_solution *s, double *primal, double *dual,
                   double *balance) {
    double square = 0, loss = 0, sum = 0, extra = 0;
    *balance = 0;
    for (int64_t i = 0; i < p->rows.n; i++) {
        double f = s->b, c = p->C * (p->cost ? p->cost[i] : 1);
        for (int64_t j = 0; j < p->rows.n; j++)
            f += p->y[j] * s->alpha[j] * kernel(p, i, j);
        double e = 1 - p->y[i] * f;
        square += s->alpha[i] * p->y[i] * (p->loss == SVS_HINGE ? f - s->b : f);
        loss += c * (p->loss == SVS_SQUARED ? e * e : e > 0 ? e : 0);
        sum += s->alpha[i];
        extra += p->loss == SVS_SQUARED ? s->alpha[i] * s->alpha[i] / (4 * c) : 0;
        *balance += p->y[i] * s->alpha[i];
        if (p->loss == SVS_HINGE)
            assert_true(s->alpha[i] >= 0 && s->alpha[i] <= c);
    }
    *primal = 0.5 * square + loss;
    *dual = sum - 0.5 * square - extra;
}

static void assert_certified(const svs_problem *p, const svs_solution *s, double tol) {
    double primal, dual, balance;
    values(p, s, &primal, &dual, &balance);
    assert_true(fabs(primal - s->objective) <= 1e-8 * primal);
    assert_true(fabs(dual - s->dual) <= 1e-8 * primal);
    assert_true(primal - dual <= tol * primal && primal - dual >= -1e-9 * primal);
    assert_true(s->converged);
    if (p->bias == SVS_BIAS_FREE)
        assert_true(fabs(balance) <= 1e-9 * (double)p->rows.n);
}

static void test_certificates(void **state) {
    (void)state;
    static const svs_kernel_kind kinds[] = {SVS_POLYNOMIAL, SVS_RBF};
    struct test_data t = test_data_make(180, 4, 0.7, 0.1, 3);
    memcpy(t.x + 4, t.x, 4 * sizeof(double)); /* two rows alike; dense only */
    for (int k = 0; k < 2; k++)
        for (int weights = 0; weights < 2; weights++)
            for (double C = 0.01; C <= 100; C *= 100) {
                svs_problem p = kernel_problem(&t, kinds[k], SVS_HINGE, false);
                p.cost = weights ? t.cost : NULL;
                p.C = C;
                svs_solution s = test_solve(&p, SVS_SOLVER_AUTO, 1e-4, NULL);
                assert_int_equal(s.solver, SVS_SOLVER_ALFPGM);
                assert_certified(&p, &s, 1e-4);
                svs_solution_clear(&s);
                p = kernel_problem(&t, kinds[k], SVS_SQUARED, false);
                p.cost = weights ? t.cost : NULL;
                p.C = C;
                s = test_solve(&p, SVS_SOLVER_AUTO, 1e-5, NULL);
                assert_int_equal(s.solver, SVS_SOLVER_SGD_LSSVM);
                assert_certified(&p, &s, 1e-4);
                assert_true(s.kkt < 1e-5);
                svs_solution_clear(&s);
            }
    test_data_free(&t);
}

static void test_linear_kernel(void **state) {
    (void)state;
    struct test_data t = test_data_make(300, 5, 1, 0.15, 5);
    svs_problem p = kernel_problem(&t, SVS_LINEAR, SVS_HINGE, false);
    svs_solution a = test_solve(&p, SVS_SOLVER_ALFPGM, 1e-6, NULL),
                 b = test_solve(&p, SVS_SOLVER_NEWTON, 1e-8, NULL);
    assert_true(a.converged && fabs(a.objective - b.objective) <= 1e-6 * b.objective);
    svs_solution_clear(&a);
    svs_solution_clear(&b);
    p = kernel_problem(&t, SVS_LINEAR, SVS_SQUARED, false);
    a = test_solve(&p, SVS_SOLVER_SGD_LSSVM, 1e-7, NULL);
    b = test_solve(&p, SVS_SOLVER_ALSVM, 1e-10, NULL);
    assert_true(a.converged && fabs(a.objective - b.objective) <= 1e-6 * b.objective);
    svs_solution_clear(&a);
    svs_solution_clear(&b);
    test_data_free(&t);
}

static svs_solution solve_with(const svs_problem *p, svs_solve_options o) {
    svs_solution s;
    svs_error e = {0};
    if (svs_solve(p, &o, NULL, &s, &e) != SVS_OK)
        fail_msg("%s", e.text);
    return s;
}

/* A cache of two working sets or of everything, the limiter or not, dense or sparse: one optimum. */
static void test_ways(void **state) {
    (void)state;
    struct test_data t = test_data_make(often(900, 400), 6, 0.5, 0.1, 7);
    double objective = 0;
    for (int way = 0; way < 5; way++) {
        svs_problem p = kernel_problem(&t, SVS_RBF, SVS_HINGE, way == 4);
        svs_solve_options o;
        svs_solve_options_default(&o);
        o.tol = 1e-5;
        o.cache_mib = way == 1 ? 1 : 256;
        o.limiter = way == 2;
        o.pairs = way == 3 ? 5 : way == 1 ? 10 : 50;
        svs_solution s = solve_with(&p, o);
        assert_true(s.converged);
        assert_true(way == 0 || fabs(s.objective - objective) <= 2e-5 * objective);
        objective = s.objective;
        svs_solution_clear(&s);
    }
    test_data_free(&t);
}

static void test_who_finishes(void **state) {
    (void)state;
    struct test_data t = test_data_make(250, 3, 1, 0.2, 11);
    svs_problem p = kernel_problem(&t, SVS_RBF, SVS_SQUARED, false);
    svs_solve_options o;
    p.C = 1e3;
    svs_solve_options_default(&o);
    o.tol = 1e-6;
    svs_solution s = solve_with(&p, o);
    assert_non_null(strstr(s.note, "conjugate"));
    assert_true(s.kkt < 1e-6);
    svs_solution_clear(&s);
    o.finish = false;
    o.max_iterations = 50;
    s = solve_with(&p, o);
    assert_int_equal(s.stop, SVS_STOP_ITERATIONS);
    assert_false(s.converged);
    svs_solution_clear(&s);
    test_data_free(&t);
}

static void test_warm(void **state) {
    (void)state;
    struct test_data t = test_data_make(400, 4, 1, 0.1, 13);
    svs_problem p = kernel_problem(&t, SVS_RBF, SVS_HINGE, false);
    svs_solution cold = test_solve(&p, SVS_SOLVER_ALFPGM, 1e-4, NULL);
    svs_start start = {.alpha = cold.alpha};
    svs_solution again = test_solve(&p, SVS_SOLVER_ALFPGM, 1e-4, &start);
    assert_true(again.converged && again.iterations <= cold.iterations / 2);
    svs_solution_clear(&cold);
    svs_solution_clear(&again);
    test_data_free(&t);
}

/* A trained model scores as the expansion says. */
static void test_model(void **state) {
    (void)state;
    struct test_data t = test_data_make(200, 4, 0.6, 0.1, 17);
    int32_t label[200];
    const svs_value classes[3] = {svs_int(-1), svs_int(4), svs_str("far")};
    for (int classes_used = 2; classes_used <= 3; classes_used++) {
        for (int i = 0; i < 200; i++)
            label[i] = t.y[i] > 0 ? classes_used == 3 && t.x[4 * i] > 0.5 ? 2 : 1 : 0;
        svs_examples e = {
            .rows = test_rows(&t, true), .label = label, .class_count = classes_used, .classes = classes};
        svs_train_options o;
        svs_trained m;
        svs_error err = {0};
        svs_train_options_default(&o);
        o.p = 1;
        o.bias = SVS_BIAS_FREE;
        o.kernel = (svs_kernel){.kind = SVS_RBF, .gamma = 0.7};
        if (svs_train(&e, &o, NULL, &m, &err) != SVS_OK)
            fail_msg("%s", err.text);
        assert_non_null(m.kernel);
        assert_int_equal(m.kernel->rows, classes_used == 2 ? 1 : 3);
        double work[300], scores[3];
        for (int64_t i = 0; i < 200; i += 7) {
            svs_kernel_scores(m.kernel, &e.rows, i, work, scores);
            for (int k = 0; k < m.kernel->rows; k++) {
                svs_problem p = {.rows = e.rows, .kernel = o.kernel};
                double f = m.solutions[k].b;
                for (int64_t j = 0; j < 200; j++)
                    f += (label[j] == (m.kernel->rows == 1 ? 1 : k) ? 1 : -1) * m.solutions[k].alpha[j] *
                         kernel(&p, i, j);
                assert_true(fabs(f - scores[k]) < 1e-9);
            }
        }
        svs_trained_clear(&m);
    }
    test_data_free(&t);
}

/* NESVM: its smoothing leaves a floor; at mu it is about 0.05 mu of the objective here. */
static void test_nesvm(void **state) {
    (void)state;
    struct test_data t = test_data_make(500, 6, 1, 0.15, 19);
    for (int bias = 0; bias < 3; bias++) {
        svs_problem p = test_problem(&t, 1, bias == 1);
        p.bias = (svs_bias)bias;
        svs_solution a = test_solve(&p, SVS_SOLVER_NESVM, 1e-3, NULL),
                     b = test_solve(&p, SVS_SOLVER_NEWTON, 1e-8, NULL);
        assert_true(a.converged && a.mu > 0);
        assert_true(a.objective - b.objective <= 1e-3 * b.objective);
        svs_start start = {.w = a.w, .b = a.b, .alpha = a.alpha};
        svs_solution again = test_solve(&p, SVS_SOLVER_NESVM, 1e-3, &start);
        assert_true(again.converged && again.iterations <= a.iterations);
        svs_solution_clear(&again);
        svs_solution_clear(&a);
        svs_solution_clear(&b);
    }
    svs_problem p = test_problem(&t, 1, false);
    p.loss = SVS_SQUARED;
    svs_solution a = test_solve(&p, SVS_SOLVER_NESVM, 1e-6, NULL),
                 b = test_solve(&p, SVS_SOLVER_ALSVM, 1e-10, NULL);
    assert_true(a.converged && fabs(a.objective - b.objective) <= 1e-6 * b.objective);
    svs_solution_clear(&a);
    svs_solution_clear(&b);
    p = kernel_problem(&t, SVS_RBF, SVS_HINGE, false);
    p.C = 0.2;
    a = test_solve(&p, SVS_SOLVER_NESVM, 1e-2, NULL);
    b = test_solve(&p, SVS_SOLVER_ALFPGM, 1e-4, NULL);
    assert_true(a.objective >= b.dual * (1 - 1e-9) && a.gap >= 0);
    assert_int_equal(a.converged, a.gap <= 1e-2 * a.objective);
    svs_solution_clear(&a);
    svs_solution_clear(&b);
    test_data_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_certificates), cmocka_unit_test(test_linear_kernel),
        cmocka_unit_test(test_ways),         cmocka_unit_test(test_who_finishes),
        cmocka_unit_test(test_warm),         cmocka_unit_test(test_model),
        cmocka_unit_test(test_nesvm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
