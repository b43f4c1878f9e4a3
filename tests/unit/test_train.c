/* Training as a whole: classes, weights, scaling, starts, and what cannot be trained. */
#include "support/problem.h"

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

/* The Gram matrix that all classes share is the one that each would build: without Newton steps, which mend
 * what it spoils, the iterations are the same ones. */
static void test_shared_gram(void **state) {
    (void)state;
    struct examples x;
    double y[400];
    make_examples(&x, 3);
    for (int form = 0; form < 4; form++) {
        svs_train_options o;
        svs_trained m;
        svs_train_options_default(&o);
        x.e.rows = test_rows(&x.t, form % 2);
        o.bias_value = form / 2 ? 1 : 2;
        o.solve.solver = SVS_SOLVER_ALM;
        o.solve.finish = false;
        train(&x.e, &o, NULL, &m);
        for (int k = 0; k < 3; k++) {
            for (int i = 0; i < 400; i++)
                y[i] = x.label[i] == k ? 1 : -1;
            const svs_problem p = {.rows = x.e.rows, .y = y, .C = 1, .p = 2, .bias_value = o.bias_value};
            svs_solution s;
            assert_int_equal(svs_solve(&p, &o.solve, NULL, &s, NULL), SVS_OK);
            assert_true(s.iterations > 3 && s.iterations == m.solutions[k].iterations);
            assert_true(fabs(s.objective - m.solutions[k].objective) < 1e-10 * s.objective);
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

/* The model in raw units is the solver's: on columns standardised by hand it has the objective that the
 * solution tells. */
static void test_scaled_objective(void **state) {
    (void)state;
    struct examples x;
    svs_train_options o;
    svs_trained m;
    double mean[5] = {0}, deviation[5] = {0}, w[5], y[400];
    make_examples(&x, 2);
    for (int i = 0; i < 400; i++)
        for (int j = 0; j < 5; j++)
            x.t.x[5 * i + j] = 100 * j + (j + 0.1) * x.t.x[5 * i + j];
    svs_train_options_default(&o);
    o.scale = true;
    o.solve.tol = 1e-8;
    train(&x.e, &o, NULL, &m);
    double b = m.linear->b[0];
    for (int j = 0; j < 5; j++) {
        for (int i = 0; i < 400; i++)
            mean[j] += x.t.x[5 * i + j] / 400;
        for (int i = 0; i < 400; i++)
            deviation[j] += pow(x.t.x[5 * i + j] - mean[j], 2) / 400;
        deviation[j] = sqrt(deviation[j]);
        for (int i = 0; i < 400; i++)
            x.t.x[5 * i + j] = (x.t.x[5 * i + j] - mean[j]) / deviation[j];
        w[j] = m.linear->W[j] * deviation[j];
        b += m.linear->W[j] * mean[j];
    }
    for (int i = 0; i < 400; i++)
        y[i] = x.label[i] ? 1 : -1;
    const svs_problem p = {.rows = x.e.rows, .y = y, .C = 1, .p = 2, .bias_value = 1};
    const double objective = m.solutions[0].objective;
    assert_true(fabs((double)test_objective(&p, w, b) - objective) < 1e-9 * objective);
    svs_solution own = test_solve(&p, SVS_SOLVER_NEWTON, 1e-8, NULL);
    assert_true(fabs(own.objective - objective) < 1e-7 * objective);
    svs_solution_clear(&own);
    svs_trained_clear(&m);
    test_data_free(&x.t);
}

/* 0.1 summed 400 times is not 40: what rounding leaves must not become a feature. Empty sparse columns
 * neither. */
static void test_constant_columns(void **state) {
    (void)state;
    struct examples x;
    svs_train_options o;
    svs_trained with, without;
    make_examples(&x, 2);
    svs_train_options_default(&o);
    o.scale = true;
    o.solve.tol = 1e-10;
    for (int i = 0; i < 400; i++)
        x.t.x[5 * i + 4] = 0.1;
    train(&x.e, &o, NULL, &with);
    x.e.rows.d = 4;
    train(&x.e, &o, NULL, &without);
    assert_true(with.linear->W[4] == 0);
    for (int j = 0; j < 4; j++)
        assert_true(fabs(with.linear->W[j] - without.linear->W[j]) < 1e-6);
    assert_true(fabs(with.linear->b[0] - without.linear->b[0]) < 1e-6);
    svs_trained_clear(&with);
    svs_trained_clear(&without);
    x.e.rows = test_rows(&x.t, true);
    x.e.rows.d = 7;
    train(&x.e, &o, NULL, &with);
    assert_true(with.linear->W[5] == 0 && with.linear->W[6] == 0 && isfinite(with.linear->b[0]));
    svs_trained_clear(&with);
    test_data_free(&x.t);
}

static void assert_same_models(const svs_trained *a, const svs_trained *b, double within) {
    assert_int_equal(a->linear->rows, b->linear->rows);
    for (int j = 0; j < a->linear->rows * a->linear->d; j++)
        assert_true(fabs(a->linear->W[j] - b->linear->W[j]) <= within);
    for (int k = 0; k < a->linear->rows; k++)
        assert_true(fabs(a->linear->b[k] - b->linear->b[k]) <= within);
}

/* Factors of C by class are weights of the samples, times those they have; a weight of 2 is a sample twice.
 */
static void test_weights(void **state) {
    (void)state;
    struct examples x;
    svs_train_options o;
    svs_trained by_class, by_sample, twice;
    const double class_weight[] = {2, 1, 0.5};
    double weight[400], both[400], rows[800 * 5];
    int32_t label[800];
    make_examples(&x, 3);
    svs_train_options_default(&o);
    o.solve.tol = 1e-10;
    for (int i = 0; i < 400; i++) {
        weight[i] = i % 5 ? 1 : 2;
        both[i] = weight[i] * class_weight[x.label[i]];
    }
    x.e.weight = both;
    train(&x.e, &o, NULL, &by_sample);
    x.e.weight = weight;
    o.class_weight = class_weight;
    train(&x.e, &o, NULL, &by_class);
    assert_same_models(&by_class, &by_sample, 0); /* the same numbers, so the same bits */
    svs_trained_clear(&by_sample);
    svs_trained_clear(&by_class);
    o.class_weight = NULL;
    train(&x.e, &o, NULL, &by_sample);
    svs_examples doubled = x.e;
    int n = 0;
    for (int i = 0; i < 400; i++)
        for (int times = 0; times < (int)weight[i]; times++, n++) {
            memcpy(rows + 5 * n, x.t.x + 5 * i, 5 * sizeof *rows);
            label[n] = x.label[i];
        }
    doubled.rows = (svs_rows){.n = n, .d = 5, .dense = rows, .stride = 5};
    doubled.label = label;
    doubled.weight = NULL;
    train(&doubled, &o, NULL, &twice);
    assert_same_models(&by_sample, &twice, 1e-5);
    svs_trained_clear(&by_sample);
    svs_trained_clear(&twice);
    test_data_free(&x.t);
}

/* n / (K n_k): given by hand, the same bits; and a class whose rows are there twice has half the weight. */
static void test_balanced(void **state) {
    (void)state;
    for (int classes = 2; classes <= 3; classes++) {
        struct examples x;
        svs_train_options o;
        svs_trained balanced, given;
        double class_weight[3];
        int count[3] = {0};
        make_examples(&x, classes);
        for (int i = 0; i < 400; i++)
            count[x.label[i]]++;
        for (int k = 0; k < classes; k++)
            class_weight[k] = 400 / (double)(classes * count[k]);
        svs_train_options_default(&o);
        o.balanced = true;
        train(&x.e, &o, NULL, &balanced);
        o.balanced = false;
        o.class_weight = class_weight;
        train(&x.e, &o, NULL, &given);
        assert_same_models(&balanced, &given, 1e-12);
        svs_trained_clear(&balanced);
        svs_trained_clear(&given);
        test_data_free(&x.t);
    }
}

/* Whatever solves it: a class of weight 3 is one whose rows are there three times. */
static void test_all_solvers_weigh(void **state) {
    (void)state;
    static const struct {
        svs_solver solver;
        double p;
        svs_loss loss;
    } all[] = {{SVS_SOLVER_NEWTON, 2, SVS_HINGE},      {SVS_SOLVER_ALM, 1, SVS_HINGE},
               {SVS_SOLVER_ALM, 2, SVS_HINGE},         {SVS_SOLVER_ALM_INEXACT, 2, SVS_HINGE},
               {SVS_SOLVER_DCD, 1, SVS_HINGE},         {SVS_SOLVER_DCD, 2, SVS_HINGE},
               {SVS_SOLVER_NESVM, 1, SVS_HINGE},       {SVS_SOLVER_ALSVM, 2, SVS_SQUARED},
               {SVS_SOLVER_SGD_LSSVM, 2, SVS_SQUARED}, {SVS_SOLVER_ALFPGM, 1, SVS_HINGE}};
    const double class_weight[] = {1, 3, 1};
    static double rows[360 * 5];
    static int32_t label[360];
    struct examples x;
    make_examples(&x, 2);
    x.e.rows.n = 120;
    svs_examples thrice = x.e;
    int n = 0;
    for (int i = 0; i < 120; i++)
        for (int times = 0; times < (int)class_weight[x.label[i]]; times++, n++) {
            memcpy(rows + 5 * n, x.t.x + 5 * i, 5 * sizeof *rows);
            label[n] = x.label[i];
        }
    thrice.rows = (svs_rows){.n = n, .d = 5, .dense = rows, .stride = 5};
    thrice.label = label;
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        svs_train_options o;
        svs_trained weighed, repeated;
        svs_train_options_default(&o);
        o.solve.solver = all[k].solver;
        o.solve.tol = all[k].solver == SVS_SOLVER_ALFPGM ? 1e-3 : 1e-6; /* slow on rows that are repeated */
        o.p = all[k].p;
        o.loss = all[k].loss;
        o.bias = all[k].solver == SVS_SOLVER_ALFPGM ? SVS_BIAS_FREE : SVS_BIAS_APPENDED;
        train(&thrice, &o, NULL, &repeated);
        o.class_weight = class_weight;
        train(&x.e, &o, NULL, &weighed);
        const double objective = repeated.solutions[0].objective;
        assert_true(weighed.solutions[0].converged && repeated.solutions[0].converged);
        assert_true(fabs(weighed.solutions[0].objective - objective) < 10 * o.solve.tol * objective);
        if (all[k].solver != SVS_SOLVER_ALFPGM)
            assert_same_models(&weighed, &repeated, 2e-2);
        svs_trained_clear(&weighed);
        svs_trained_clear(&repeated);
    }
    test_data_free(&x.t);
}

/* Every second row of sparse ones, by offsets that lie two apart, is what a copy of those rows is. */
static void test_strided_rows(void **state) {
    (void)state;
    static const svs_solver solvers[] = {SVS_SOLVER_NEWTON, SVS_SOLVER_ALM, SVS_SOLVER_DCD};
    struct test_data t = test_data_make(400, 5, 0.6, 0.1, 3);
    const svs_value classes[] = {svs_int(0), svs_int(1)};
    double value[1000];
    int32_t column[1000], label[200];
    int64_t start[201] = {0};
    for (int i = 0; i < 200; i++) {
        const int64_t from = t.start[2 * i], count = t.start[2 * i + 1] - from;
        memcpy(value + start[i], t.value + from, (size_t)count * sizeof *value);
        memcpy(column + start[i], t.column + from, (size_t)count * sizeof *column);
        start[i + 1] = start[i] + count;
        label[i] = t.y[2 * i] > 0;
    }
    svs_examples copy = {.label = label, .class_count = 2, .classes = classes}, strided = copy;
    copy.rows = (svs_rows){.n = 200, .d = 5, .start = start, .column = column, .value = value};
    strided.rows =
        (svs_rows){.n = 200, .d = 5, .start = t.start, .stride = 2, .column = t.column, .value = t.value};
    for (int k = 0; k < 6; k++) {
        svs_train_options o;
        svs_trained a, b;
        svs_quality qa, qb;
        svs_train_options_default(&o);
        o.scale = k >= 3;
        o.solve.solver = solvers[k % 3];
        o.solve.tol = 1e-8;
        train(&copy, &o, NULL, &a);
        train(&strided, &o, NULL, &b);
        assert_same_models(&a, &b, 1e-9);
        assert_int_equal(svs_cross_validate(&copy, &o, 4, &qa, NULL), SVS_OK);
        assert_int_equal(svs_cross_validate(&strided, &o, 4, &qb, NULL), SVS_OK);
        assert_int_equal(qa.right, qb.right);
        svs_trained_clear(&a);
        svs_trained_clear(&b);
    }
    test_data_free(&t);
}

static int64_t iterations(const svs_trained *t) {
    int64_t sum = 0;
    for (int k = 0; k < t->count; k++)
        sum += t->solutions[k].iterations;
    return sum;
}

/* Going on from what an earlier call gave costs less than beginning anew, and ends at the same model. */
static void test_starts(void **state) {
    (void)state;
    static const svs_solver solvers[] = {SVS_SOLVER_NEWTON, SVS_SOLVER_ALM, SVS_SOLVER_DCD, SVS_SOLVER_NESVM};
    struct examples x;
    make_examples(&x, 3);
    for (int k = 0; k < 4; k++) {
        svs_train_options o;
        svs_trained first, again, cold, warm;
        svs_train_options_default(&o);
        o.p = solvers[k] == SVS_SOLVER_NESVM ? 1 : 2;
        o.solve.solver = solvers[k];
        o.solve.tol = solvers[k] == SVS_SOLVER_NESVM ? 1e-2 : 1e-7;
        o.scale = true;
        train(&x.e, &o, NULL, &first);
        train(&x.e, &o, &first, &again);
        assert_true(iterations(&again) < iterations(&first));
        if (solvers[k] != SVS_SOLVER_NESVM) /* whose smoothing comes down in steps all the same */
            assert_true(iterations(&again) <= first.count);
        o.C = 1.1;
        train(&x.e, &o, NULL, &cold);
        train(&x.e, &o, &first, &warm);
        assert_true(iterations(&warm) < iterations(&cold));
        for (int row = 0; row < 3; row++) {
            const double best = fmin(cold.solutions[row].objective, warm.solutions[row].objective);
            assert_true(fabs(cold.solutions[row].objective - warm.solutions[row].objective) <=
                        o.solve.tol * best);
        }
        svs_trained_clear(&first);
        svs_trained_clear(&again);
        svs_trained_clear(&cold);
        svs_trained_clear(&warm);
    }
    test_data_free(&x.t);
}

/* With C the multipliers grow: handed over as they are, coordinates would have to walk there one by one. */
static void test_starts_follow_C(void **state) {
    (void)state;
    struct examples x;
    svs_train_options o;
    svs_trained before = {0}, now, cold;
    int64_t warm_steps = 0, cold_steps = 0;
    make_examples(&x, 2);
    svs_train_options_default(&o);
    o.solve.solver = SVS_SOLVER_DCD;
    for (o.C = 1; o.C < 1000; o.C *= 4) {
        train(&x.e, &o, NULL, &cold);
        train(&x.e, &o, before.count ? &before : NULL, &now);
        assert_true(now.solutions[0].converged); /* which is more than the cold one always does */
        warm_steps += before.count ? iterations(&now) : 0;
        cold_steps += before.count ? iterations(&cold) : 0;
        svs_trained_clear(&cold);
        svs_trained_clear(&before);
        before = now;
    }
    if (warm_steps * 5 > cold_steps)
        fail_msg("%lld iterations warm, %lld cold", (long long)warm_steps, (long long)cold_steps);
    svs_trained_clear(&before);
    test_data_free(&x.t);
}

/* A class of three that no row is of: it never wins, whichever it is, and the method is that of the others.
 */
static void test_absent_class(void **state) {
    (void)state;
    struct examples x;
    make_examples(&x, 2);
    x.e.class_count = 3;
    for (int form = 0; form < 6; form++) {
        const int absent = form % 3, kernel = form / 3;
        svs_train_options o;
        svs_trained m;
        for (int i = 0; i < 400; i++)
            x.label[i] = (absent + 1 + (x.t.y[i] > 0)) % 3;
        svs_train_options_default(&o);
        o.kernel = (svs_kernel){.kind = kernel ? SVS_RBF : SVS_LINEAR, .gamma = 0.5};
        o.p = kernel ? 1 : 2;
        o.bias = kernel ? SVS_BIAS_FREE : SVS_BIAS_APPENDED;
        o.solve.tol = 1e-2;
        train(&x.e, &o, NULL, &m);
        assert_int_equal(m.count, 3);
        assert_true(m.solutions[absent].converged && isnan(m.solutions[absent].objective));
        assert_non_null(strstr(m.solutions[absent].note, "-1"));
        assert_string_equal(kernel ? m.kernel->method : m.linear->method, kernel ? "alfpgm" : "newton");
        for (int i = 0; i < 400; i++) {
            double work[405], row[5], scores[3];
            svs_rows_copy(&x.e.rows, i, row);
            if (kernel)
                svs_kernel_scores(m.kernel, &x.e.rows, i, work, scores);
            else
                svs_model_scores(m.linear, row, scores);
            assert_true(scores[absent] == -1);
        }
        svs_trained_clear(&m);
    }
    test_data_free(&x.t);
}

static void test_regression(void **state) {
    (void)state;
    struct test_data t = test_data_make(300, 4, 1, 0, 9);
    double target[300];
    for (int i = 0; i < 300; i++)
        target[i] = 3 + 2 * t.x[4 * i] - t.x[4 * i + 3];
    svs_examples e = {.rows = test_rows(&t, false), .task = SVS_REGRESS, .target = target};
    svs_train_options o;
    svs_trained m;
    svs_quality q;
    svs_train_options_default(&o);
    o.C = 1e6;
    train(&e, &o, NULL, &m);
    static const double expected[] = {2, 0, 0, -1};
    assert_int_equal(m.linear->task, SVS_REGRESS);
    assert_int_equal(m.linear->class_count, 0);
    assert_string_equal(m.linear->method, "alsvm");
    for (int j = 0; j < 4; j++)
        assert_true(fabs(m.linear->W[j] - expected[j]) < 1e-5);
    assert_true(fabs(m.linear->b[0] - 3) < 1e-5);
    svs_trained_clear(&m);
    assert_int_equal(svs_cross_validate(&e, &o, 5, &q, NULL), SVS_OK);
    assert_true(q.n == 300 && q.rmse < 1e-5 && isnan(q.accuracy));
    test_data_free(&t);
}

static void untrained(const svs_examples *e, const svs_train_options *o, svs_code expected,
                      const char *part) {
    svs_trained m;
    svs_error err = {0};
    svs_code code = svs_train(e, o, NULL, &m, &err);
    if (code != expected || !strstr(err.text, part))
        fail_msg("%s: %s (expected %s with '%s')", svs_code_name(code), err.text, svs_code_name(expected),
                 part);
    assert_true(!m.linear && !m.kernel && !m.solutions);
}

static void test_untrainable(void **state) {
    (void)state;
    struct examples x;
    svs_train_options good, o;
    const double bad_weight[] = {1, 0, 1};
    make_examples(&x, 3);
    svs_train_options_default(&good);
    svs_examples e = x.e;
    e.rows.n = 0;
    untrained(&e, &good, SVS_EMPTY, "no examples");
    e.rows.n = 1;
    untrained(&e, &good, SVS_ONE_CLASS, "same label");
    o = good;
    o.kernel.kind = SVS_RBF;
    o.scale = true;
    untrained(&x.e, &o, SVS_INVALID, "--scale");
    e = x.e;
    e.task = SVS_REGRESS;
    e.target = x.t.y;
    o.scale = false;
    untrained(&e, &o, SVS_INVALID, "linear");
    o = good;
    o.class_weight = bad_weight;
    untrained(&x.e, &o, SVS_BAD_WEIGHT, "row");
    o = good;
    o.class_weight = bad_weight;
    o.balanced = true;
    untrained(&x.e, &o, SVS_INVALID, "not both");
    o = good;
    o.C = -1;
    untrained(&x.e, &o, SVS_INVALID, "C is -1");
    x.label[7] = 3;
    untrained(&x.e, &good, SVS_BAD_LABEL, "example 7");
    x.label[7] = -1;
    untrained(&x.e, &good, SVS_BAD_LABEL, "example 7");
    x.label[7] = 0;
    x.t.x[5 * 3 + 2] = INFINITY;
    good.scale = true; /* told of the given rows, before they are scaled */
    untrained(&x.e, &good, SVS_NOT_FINITE, "row 3, column 2");
    test_data_free(&x.t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_against_rest), cmocka_unit_test(test_shared_gram),
        cmocka_unit_test(test_scaling),          cmocka_unit_test(test_scaled_objective),
        cmocka_unit_test(test_constant_columns), cmocka_unit_test(test_weights),
        cmocka_unit_test(test_balanced),         cmocka_unit_test(test_all_solvers_weigh),
        cmocka_unit_test(test_strided_rows),     cmocka_unit_test(test_starts),
        cmocka_unit_test(test_starts_follow_C),  cmocka_unit_test(test_absent_class),
        cmocka_unit_test(test_regression),       cmocka_unit_test(test_untrainable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
