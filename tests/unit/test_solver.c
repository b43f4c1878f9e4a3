/* The frame of the solvers: what is refused and how, and every way to stop. */
#include "support/problem.h"

static void refused(svs_problem p, svs_solver solver, svs_code expected, const char *part) {
    svs_solve_options o;
    svs_solution s;
    svs_error e = {0};
    svs_solve_options_default(&o);
    o.solver = solver;
    svs_code code = svs_solve(&p, &o, NULL, &s, &e);
    if (code != expected || !strstr(e.text, part))
        fail_msg("%s: %s (expected %s with '%s')", svs_code_name(code), e.text, svs_code_name(expected),
                 part);
}

static void test_refusals(void **state) {
    (void)state;
    struct test_data t = test_data_make(20, 3, 1, 0.1, 1);
    svs_problem good = test_problem(&t, 1, false), p = good;
    p.C = 0;
    refused(p, SVS_SOLVER_AUTO, SVS_INVALID, "C is 0");
    p = good;
    p.p = 2.5;
    refused(p, SVS_SOLVER_AUTO, SVS_INVALID, "from 1 to 2");
    p.p = 1.5;
    refused(p, SVS_SOLVER_DCD, SVS_INVALID, "newton");
    p = good;
    p.bias_value = -1;
    refused(p, SVS_SOLVER_AUTO, SVS_INVALID, "bias");
    p = good;
    p.bias = SVS_BIAS_FREE;
    refused(p, SVS_SOLVER_DCD, SVS_INVALID, "appended or none");
    p = good;
    p.penalty = SVS_L1;
    refused(p, SVS_SOLVER_ALM, SVS_INVALID, "nesvm");
    p = good;
    p.kernel.kind = SVS_RBF;
    refused(p, SVS_SOLVER_NEWTON, SVS_INVALID, "alfpgm");
    p = good;
    p.rows.n = 0;
    refused(p, SVS_SOLVER_AUTO, SVS_EMPTY, "no examples");
    double bad[3] = {1, NAN, 1};
    p.rows = (svs_rows){.n = 1, .d = 3, .dense = bad, .stride = 3};
    refused(p, SVS_SOLVER_AUTO, SVS_NOT_FINITE, "row 0, column 1");
    const int32_t column[] = {1, 1};
    const int64_t start[] = {0, 2};
    p.rows = (svs_rows){.n = 1, .d = 3, .start = start, .column = column, .value = t.x};
    refused(p, SVS_SOLVER_AUTO, SVS_BAD_COLUMN, "ascend");
    double y[20], cost[20];
    for (int i = 0; i < 20; i++)
        y[i] = cost[i] = 1;
    p = good;
    p.y = y;
    refused(p, SVS_SOLVER_AUTO, SVS_ONE_CLASS, "+1");
    y[3] = 0;
    refused(p, SVS_SOLVER_AUTO, SVS_BAD_LABEL, "row 3");
    p = good;
    p.cost = cost;
    cost[2] = 0;
    refused(p, SVS_SOLVER_AUTO, SVS_BAD_WEIGHT, "row 2");
    test_data_free(&t);
}

static bool stop_at_once(void *user, const svs_progress *now) {
    (void)now;
    return ++*(int *)user < 2;
}

static void test_stops(void **state) {
    (void)state;
    struct test_data t = test_data_make(400, 5, 1, 0.3, 1);
    svs_problem p = test_problem(&t, 1, false);
    static const svs_solver all[] = {SVS_SOLVER_NEWTON, SVS_SOLVER_ALM, SVS_SOLVER_ALM_INEXACT,
                                     SVS_SOLVER_DCD, SVS_SOLVER_NESVM};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        svs_solve_options o;
        svs_solution s;
        int calls = 0;
        svs_solve_options_default(&o);
        o.solver = all[k];
        o.tol = 1e-12;
        o.progress = stop_at_once;
        o.user = &calls;
        assert_int_equal(svs_solve(&p, &o, NULL, &s, NULL), SVS_OK);
        assert_int_equal(s.stop, SVS_STOP_USER);
        assert_false(s.converged);
        svs_solution_clear(&s);
        o.progress = NULL;
        o.max_iterations = 3;
        assert_int_equal(svs_solve(&p, &o, NULL, &s, NULL), SVS_OK);
        assert_int_equal(s.stop, SVS_STOP_ITERATIONS);
        assert_int_equal(s.iterations, 3);
        svs_solution_clear(&s);
        o.max_iterations = 0;
        o.max_seconds = 1e-9;
        assert_int_equal(svs_solve(&p, &o, NULL, &s, NULL), SVS_OK);
        assert_int_equal(s.stop, SVS_STOP_SECONDS);
        svs_solution_clear(&s);
    }
    for (int s = 0; s < SVS_SOLVER_COUNT; s++) {
        assert_int_equal(svs_solver_find(svs_solver_name((svs_solver)s)), s);
        assert_true(strlen(svs_solver_text((svs_solver)s)) > 10);
    }
    assert_int_equal(svs_solver_find("none"), SVS_SOLVER_COUNT);
    test_data_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_refusals), cmocka_unit_test(test_stops)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
