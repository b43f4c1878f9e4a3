/* LP-SVM (|w|_1 + C sum hinge) against the linear program that it is, solved by the simplex method. */
#include "support/problem.h"

#include <glpk.h>

/* Variables: w+ (d), w- (d), b+, b-, xi (n); constraints y (w'x + b) + xi >= 1. */
static double by_simplex(const svs_problem *p) {
    const int n = (int)p->rows.n, d = p->rows.d, columns = 2 * d + 2 + n;
    double *x = calloc((size_t)d, 8), *value = calloc((size_t)columns + 1, 8);
    int *index = calloc((size_t)columns + 1, sizeof *index);
    glp_prob *lp = glp_create_prob();
    glp_smcp how;
    glp_term_out(GLP_OFF);
    glp_set_obj_dir(lp, GLP_MIN);
    glp_add_rows(lp, n);
    glp_add_cols(lp, columns);
    for (int j = 1; j <= columns; j++) {
        glp_set_col_bnds(lp, j, GLP_LO, 0, 0);
        glp_set_obj_coef(lp, j, j <= 2 * d + 2 ? 1 : p->C * (p->cost ? p->cost[j - 2 * d - 3] : 1));
    }
    for (int i = 0; i < n; i++) {
        int k = 0;
        svs_rows_copy(&p->rows, i, x);
        for (int j = 0; j <= d; j++)
            for (int sign = 0; sign < 2; sign++) {
                index[++k] = j < d ? 1 + sign * d + j : 2 * d + 1 + sign;
                value[k] = (sign ? -1 : 1) * p->y[i] * (j < d ? x[j] : p->bias_value);
            }
        index[++k] = 2 * d + 3 + i;
        value[k] = 1;
        glp_set_mat_row(lp, i + 1, k, index, value);
        glp_set_row_bnds(lp, i + 1, GLP_LO, 1, 0);
    }
    glp_init_smcp(&how);
    assert_int_equal(glp_simplex(lp, &how), 0);
    double objective = glp_get_obj_val(lp);
    glp_delete_prob(lp);
    glp_free_env();
    free(x);
    free(value);
    free(index);
    return objective;
}

static void test_against_simplex(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct test_data t = test_data_make(60, 5, 1, 0.2, seed);
        svs_problem p = test_problem(&t, 1, seed & 1);
        p.penalty = SVS_L1;
        p.cost = seed > 2 ? t.cost : NULL;
        double best = by_simplex(&p);
        svs_solve_options o;
        svs_solution s;
        svs_solve_options_default(&o);
        o.tol = 1e-3;
        o.max_iterations = 40000;
        assert_int_equal(svs_solve(&p, &o, NULL, &s, NULL), SVS_OK);
        assert_int_equal(s.solver, SVS_SOLVER_NESVM);
        assert_true(fabs((double)test_objective(&p, s.w, s.b) - s.objective) <= 1e-10 * best);
        assert_true(s.objective >= best * (1 - 1e-9) &&
                    s.dual <= best * (1 + 1e-9)); /* the bounds are bounds */
        assert_true(s.objective <= best * 1.01);  /* smoothing mu 0.005: a floor well below this */
        svs_solution_clear(&s);
        test_data_free(&t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_simplex)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
