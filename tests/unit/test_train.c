/* What is refused and how; tables from files; training as a whole: classes, weights, scaling, folds. */
#include "support/problem.h"

#include <unistd.h>

#include "data/table.h"

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

/* ---- tables */

static svs_code read_text(struct svi_table *t, const char *name, const char *text, struct svi_table_options o,
                          svs_error *err) {
    char path[100];
    snprintf(path, sizeof path, "/tmp/test_train_%d_%s", getpid(), name);
    FILE *f = fopen(path, "w");
    fputs(text, f);
    fclose(f);
    o.reader.format = "auto";
    o.reader.label = "label";
    o.max_features = 1000;
    svs_code code = svi_table_read(t, path, &o, err);
    unlink(path);
    return code;
}

static void test_tables(void **state) {
    (void)state;
    struct svi_table t;
    svs_error err = {0};
    assert_int_equal(read_text(&t, "a.csv", "a,label,b\n1,x,2\n3,10,4\n5,y,0\n7,10,8\n",
                               (struct svi_table_options){0}, &err),
                     SVS_OK);
    assert_int_equal(t.examples.rows.n, 4);
    assert_int_equal(t.examples.class_count, 3); /* integers first, then words */
    assert_int_equal(t.examples.classes[0].as.i, 10);
    assert_int_equal(t.examples.label[0], 1);
    assert_int_equal(t.examples.label[2], 2);
    assert_true(t.examples.rows.dense && t.examples.rows.padded);
    assert_string_equal(t.examples.features[1], "b");
    svi_table_clear(&t);
    assert_int_equal(read_text(&t, "a.svm", "1 3:2 90:1\n-1 2:1\n1 50:4\n",
                               (struct svi_table_options){.features = 95}, &err),
                     SVS_OK);
    assert_null(t.examples.rows.dense); /* 1 of 70 values */
    assert_int_equal(t.examples.rows.d, 95);
    assert_int_equal(svs_rows_stored(&t.examples.rows), 4);
    assert_int_equal(t.examples.classes[0].as.i, -1);
    svi_table_clear(&t);
    const char *const names[] = {"b", "c", "a"};
    const svs_value known[] = {svs_int(5), svs_int(1)};
    assert_int_equal(
        read_text(&t, "b.csv", "a,b,z,label\n1,2,9,1\n3,4,9,7\n",
                  (struct svi_table_options){
                      .names = names, .name_count = 3, .features = 3, .known = known, .known_count = 2},
                  &err),
        SVS_OK);
    double row[3];
    svs_rows_copy(&t.examples.rows, 1, row);
    assert_true(row[0] == 4 && row[1] == 0 && row[2] == 3); /* in the model's order */
    assert_int_equal(t.examples.label[0], 1);
    assert_int_equal(t.examples.label[1], -1);
    assert_int_equal(t.strange, 1);
    svi_table_clear(&t);
    static const struct {
        const char *name, *text, *part;
    } bad[] = {{"c.csv", "a,label\n1,1\n,2\n", "line 3"},
               {"d.csv", "a,label\n1,0.5\n", "whole number"},
               {"e.svm", "1 1:1\n1 0:1\n", "line 2"},
               {"f.csv", "a,label\n", "no rows"},
               {"g.csv", "a,label\n1,1\n2,\n", "no label"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_not_equal(read_text(&t, bad[i].name, bad[i].text, (struct svi_table_options){0}, &err),
                             SVS_OK);
        if (!strstr(err.text, bad[i].part))
            fail_msg("%s", err.text);
        svi_table_clear(&t);
    }
}

/* ---- training */

struct examples {
    struct test_data t;
    int32_t label[400];
    svs_value classes[3];
    svs_examples e;
};

static void make_examples(struct examples *x, int classes) {
    x->t = test_data_make(400, 5, 1, 0.1, 21);
    for (int i = 0; i < 400; i++)
        x->label[i] = x->t.y[i] > 0 ? classes == 3 && x->t.x[5 * i] > 0.3 ? 2 : 1 : 0;
    for (int k = 0; k < 3; k++)
        x->classes[k] = svs_int(10 * k);
    x->e = (svs_examples){
        .rows = test_rows(&x->t, false), .label = x->label, .class_count = classes, .classes = x->classes};
}

static void train(const svs_examples *e, const svs_train_options *o, const svs_trained *start,
                  svs_trained *out) {
    svs_error err = {0};
    if (svs_train(e, o, start, out, &err) != SVS_OK)
        fail_msg("%s", err.text);
}

/* Row k of a model of three classes is the problem "k against the rest", with class weights as factors of C.
 */
static void test_one_against_rest(void **state) {
    (void)state;
    struct examples x;
    svs_train_options o;
    svs_trained m;
    const double class_weight[] = {1, 3, 0.5};
    double y[400], cost[400];
    make_examples(&x, 3);
    svs_train_options_default(&o);
    o.class_weight = class_weight;
    for (int solver = 0; solver < 2; solver++) {
        o.solve.solver = solver ? SVS_SOLVER_ALM : SVS_SOLVER_AUTO;
        o.solve.tol = 1e-9;
        train(&x.e, &o, NULL, &m);
        assert_int_equal(m.linear->rows, 3);
        for (int k = 0; k < 3; k++) {
            for (int i = 0; i < 400; i++) {
                y[i] = x.label[i] == k ? 1 : -1;
                cost[i] = class_weight[x.label[i]];
            }
            svs_problem p = {.rows = x.e.rows, .y = y, .cost = cost, .C = 1, .p = 2, .bias_value = 1};
            svs_solution s = test_solve(&p, SVS_SOLVER_NEWTON, 1e-9, NULL);
            for (int j = 0; j < 5; j++)
                assert_true(fabs(m.linear->W[5 * k + j] - s.w[j]) < 1e-4);
            svs_solution_clear(&s);
        }
        svs_trained_clear(&m);
    }
    test_data_free(&x.t);
}

/* Standardised columns, weights in raw units: with next to no regularisation the scores are those of the raw
 * problem. */
static void test_scaling(void **state) {
    (void)state;
    struct examples x;
    svs_train_options o;
    svs_trained raw, scaled;
    make_examples(&x, 2);
    for (int i = 0; i < 400; i++)
        x.t.x[5 * i + 2] = 50 + 10 * x.t.x[5 * i + 2];
    svs_train_options_default(&o);
    o.C = 1e6;
    o.solve.tol = 1e-12;
    train(&x.e, &o, NULL, &raw);
    o.scale = true;
    train(&x.e, &o, NULL, &scaled);
    for (int i = 0; i < 400; i++) {
        double a, b;
        svs_model_scores(raw.linear, x.t.x + 5 * i, &a);
        svs_model_scores(scaled.linear, x.t.x + 5 * i, &b);
        assert_true(fabs(a - b) < 1e-3);
    }
    svs_trained_clear(&raw);
    svs_trained_clear(&scaled);
    test_data_free(&x.t);
}

static void count_point(void *user, const svs_path_point *p) {
    double *best = user;
    if (p->quality.accuracy > *best)
        *best = p->quality.accuracy;
}

static void test_folds(void **state) {
    (void)state;
    struct examples x;
    svs_train_options o;
    svs_quality a, b;
    svs_path_point best;
    double most = 0;
    make_examples(&x, 3);
    svs_train_options_default(&o);
    assert_int_equal(svs_cross_validate(&x.e, &o, 5, &a, NULL), SVS_OK);
    assert_int_equal(svs_cross_validate(&x.e, &o, 5, &b, NULL), SVS_OK);
    assert_int_equal(a.n, 400);
    assert_int_equal(a.right, b.right);
    assert_true(a.accuracy > 0.6);
    assert_int_equal(svs_search_C(&x.e, &o, 5, 0.25, 4, count_point, &most, &best, NULL), SVS_OK);
    assert_true(best.quality.accuracy == most && best.C >= 0.25 && best.C <= 4);
    o.C = best.C;
    assert_int_equal(svs_cross_validate(&x.e, &o, 5, &b, NULL), SVS_OK);
    assert_true(fabs(b.accuracy - best.quality.accuracy) <=
                0.01); /* a warm start stops at another point of the same tolerance */
    assert_int_equal(svs_cross_validate(&x.e, &o, 1, &a, NULL), SVS_INVALID);
    assert_int_equal(svs_cross_validate(&x.e, &o, 401, &a, NULL), SVS_INVALID);
    test_data_free(&x.t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_stops),
        cmocka_unit_test(test_tables),   cmocka_unit_test(test_one_against_rest),
        cmocka_unit_test(test_scaling),  cmocka_unit_test(test_folds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
