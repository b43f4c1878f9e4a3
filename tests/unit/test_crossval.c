/* Cross-validation against training on each part by hand; folds; the search for C against separate runs. */
#include "support/problem.h"
#include "support/quick.h"

#include "solver/train_internal.h"

#define N 300
#define D 5

struct examples {
    struct test_data t;
    int32_t label[N];
    svs_value classes[3];
    svs_examples e;
};

/* Three classes of about a half, a third and a sixth. */
static void make(struct examples *x, bool sparse) {
    x->t = test_data_make(N, D, sparse ? 0.5 : 1, 0.15, 4);
    for (int i = 0; i < N; i++)
        x->label[i] = x->t.y[i] < 0 ? 0 : x->t.x[D * i + 1] > 0.4 ? 2 : 1;
    for (int k = 0; k < 3; k++)
        x->classes[k] = svs_int(k);
    x->e = (svs_examples){
        .rows = test_rows(&x->t, sparse), .label = x->label, .class_count = 3, .classes = x->classes};
}

static void defaults(svs_train_options *o) {
    svs_train_options_default(o);
    o->solve.tol = 1e-9;
}

static void counts(const svs_examples *e, const int32_t *fold, int folds, int of, int *least, int *most) {
    int count[64] = {0};
    for (int64_t i = 0; i < e->rows.n; i++) {
        assert_in_range(fold[i], 0, folds - 1);
        count[fold[i]] += of < 0 || e->label[i] == of;
    }
    *least = *most = count[0];
    for (int f = 1; f < folds; f++) {
        *least = count[f] < *least ? count[f] : *least;
        *most = count[f] > *most ? count[f] : *most;
    }
}

static void folds_are_stratified(void **state) {
    (void)state;
    struct examples x;
    int32_t fold[N], again[N], other[N];
    make(&x, false);
    for (int folds = 2; folds <= 50; folds += 3) {
        assert_int_equal(svi_assign_folds(&x.e, folds, 7, fold, NULL), SVS_OK);
        for (int of = -1; of < 3; of++) { /* the folds, then their share of each class */
            int least, most;
            counts(&x.e, fold, folds, of, &least, &most);
            assert_true(most - least <= 1);
        }
        assert_int_equal(svi_assign_folds(&x.e, folds, 7, again, NULL), SVS_OK);
        assert_memory_equal(fold, again, sizeof fold);
        assert_int_equal(svi_assign_folds(&x.e, folds, 8, other, NULL), SVS_OK);
        assert_memory_not_equal(fold, other, sizeof fold);
    }
    int differ = 0; /* neighbours go to different folds by chance, not in turn */
    for (int i = 0; i + 1 < N; i++)
        differ += (fold[i] + 1) % 50 == fold[i + 1];
    assert_true(differ < N / 4);
    test_data_free(&x.t);
}

/* Rows in and out of the fold, copied by hand. */
static int64_t right_by_hand(const struct examples *x, const svs_train_options *o, const int32_t *fold,
                             int f) {
    double *rows = calloc(N * D, sizeof *rows), weight[N];
    int32_t label[N];
    svs_examples part = x->e;
    svs_trained m;
    int64_t n = 0, right = 0;
    for (int i = 0; i < N; i++)
        if (fold[i] != f) {
            memcpy(rows + D * n, x->t.x + D * i, D * sizeof *rows);
            weight[n] = x->e.weight ? x->e.weight[i] : 1;
            label[n++] = x->label[i];
        }
    part.rows = (svs_rows){.n = n, .d = D, .dense = rows, .stride = D};
    part.label = label;
    part.weight = weight;
    assert_int_equal(svs_train(&part, o, NULL, &m, NULL), SVS_OK);
    for (int i = 0; i < N; i++) {
        double scores[3];
        svs_model_scores(m.linear, x->t.x + D * i, scores);
        right += fold[i] == f && svs_model_predict(m.linear, scores) == x->label[i];
    }
    svs_trained_clear(&m);
    free(rows);
    return right;
}

static void same_as_by_hand(void **state) {
    (void)state;
    for (int form = 0; form < 4; form++) {
        struct examples x;
        svs_train_options o;
        svs_quality q, again;
        int32_t fold[N];
        int64_t right = 0;
        make(&x, form % 2);
        defaults(&o);
        x.e.weight = form / 2 ? x.t.cost : NULL;
        o.scale = form == 2;    /* by the training part alone */
        o.balanced = form == 3; /* as well */
        o.solve.seed = 5;
        assert_int_equal(svs_cross_validate(&x.e, &o, 4, &q, NULL), SVS_OK);
        assert_int_equal(svi_assign_folds(&x.e, 4, 5, fold, NULL), SVS_OK);
        for (int f = 0; f < 4; f++)
            right += right_by_hand(&x, &o, fold, f);
        assert_int_equal(q.n, N);
        assert_int_equal(q.right, right);
        assert_true(q.accuracy == (double)right / N && isnan(q.rmse));
        assert_int_equal(svs_cross_validate(&x.e, &o, 4, &again, NULL), SVS_OK);
        assert_int_equal(q.right, again.right);
        test_data_free(&x.t);
    }
}

/* One row of a class: when it is held out the others go on; of two classes one would be left. */
static void rare_classes(void **state) {
    (void)state;
    struct examples x;
    svs_train_options o;
    svs_quality q;
    svs_error err = {0};
    make(&x, false);
    defaults(&o);
    for (int i = 0; i < N; i++)
        x.label[i] = i == 11 ? 2 : x.t.y[i] > 0;
    assert_int_equal(svs_cross_validate(&x.e, &o, 5, &q, &err), SVS_OK);
    assert_true(q.n == N && q.accuracy > 0.6);
    o.kernel = (svs_kernel){.kind = SVS_RBF, .gamma = 0.3};
    o.p = 1;
    o.bias = SVS_BIAS_FREE;
    o.solve.tol = 1e-2;
    assert_int_equal(svs_cross_validate(&x.e, &o, often(5, 2), &q, &err), SVS_OK);
    assert_true(q.n == N && q.accuracy > 0.6);
    defaults(&o);
    x.e.class_count = 2;
    for (int i = 0; i < N; i++)
        x.label[i] = i == 11;
    assert_int_equal(svs_cross_validate(&x.e, &o, 5, &q, &err), SVS_ONE_CLASS);
    assert_non_null(strstr(err.text, "2 examples or more"));
    test_data_free(&x.t);
}

struct seen {
    int points;
    svs_path_point at[16], best;
};

static void take_point(void *user, const svs_path_point *p) {
    struct seen *s = user;
    assert_true(s->points < 16);
    s->at[s->points++] = *p;
    if (s->points == 1 || p->quality.right > s->best.quality.right)
        s->best = *p;
}

/* The path has the qualities of separate runs, its best C is theirs, and starting warm it takes fewer
 * iterations. */
static void search_is_separate_runs(void **state) {
    (void)state;
    static const svs_solver solvers[] = {SVS_SOLVER_NEWTON, SVS_SOLVER_ALM, SVS_SOLVER_DCD};
    for (int k = 0; k < (often(3, 2)); k++) {
        struct examples x;
        svs_train_options o;
        struct seen path = {0}, alone = {0};
        svs_path_point best;
        make(&x, k == 1);
        defaults(&o);
        o.solve.solver = solvers[k];
        o.scale = k == 2;
        assert_int_equal(svs_search_C(&x.e, &o, 3, 0.0625, 4.5, take_point, &path, &best, NULL), SVS_OK);
        assert_int_equal(path.points, 7);
        int64_t warm = 0, cold = 0;
        for (int p = 0; p < 7; p++) {
            const double C = 0.0625 * (1 << p);
            svs_path_point one;
            assert_int_equal(svs_search_C(&x.e, &o, 3, C, C, take_point, &alone, &one, NULL), SVS_OK);
            assert_true(path.at[p].C == C && one.C == C);
            assert_int_equal(path.at[p].quality.right, one.quality.right);
            o.C = C;
            svs_quality q;
            assert_int_equal(svs_cross_validate(&x.e, &o, 3, &q, NULL), SVS_OK);
            assert_int_equal(q.right, one.quality.right);
            warm += path.at[p].iterations;
            cold += one.iterations;
        }
        assert_true(path.at[0].iterations == alone.at[0].iterations); /* nothing to start from yet */
        if (warm >= cold)
            fail_msg("%s: %lld iterations warm, %lld cold", svs_solver_name(solvers[k]), (long long)warm,
                     (long long)cold);
        assert_true(best.C == alone.best.C && best.quality.right == path.best.quality.right);
        test_data_free(&x.t);
    }
}

/* Of equals the smaller C; for regression the smallest error. */
static void best_of_a_path(void **state) {
    (void)state;
    struct examples x;
    svs_train_options o;
    svs_path_point best;
    double target[N];
    make(&x, false);
    defaults(&o);
    x.e.class_count = 2;
    for (int i = 0; i < N; i++) {
        x.label[i] = i % 2;
        x.t.x[D * i] = i % 2 ? 100 : -100; /* any C is right everywhere */
        target[i] = 1 + 2 * x.t.x[D * i + 1];
    }
    assert_int_equal(svs_search_C(&x.e, &o, 3, 1, 16, NULL, NULL, &best, NULL), SVS_OK);
    assert_true(best.C == 1 && best.quality.right == N);
    x.e.task = SVS_REGRESS;
    x.e.target = target;
    assert_int_equal(svs_search_C(&x.e, &o, 3, 0.001, 0.128, NULL, NULL, &best, NULL), SVS_OK);
    assert_true(fabs(best.C - 0.128) < 1e-12); /* no noise: the less regularisation the better */
    test_data_free(&x.t);
}

static void refusals(void **state) {
    (void)state;
    static const double ranges[][2] = {{0, 1}, {-1, 1}, {2, 1}, {1, INFINITY}, {NAN, 1}, {1e-100, 1e100}};
    struct examples x;
    svs_train_options o;
    svs_quality q;
    svs_path_point best;
    svs_error err = {0};
    make(&x, false);
    defaults(&o);
    for (int k = 0; k < 6; k++) {
        assert_int_equal(svs_search_C(&x.e, &o, 3, ranges[k][0], ranges[k][1], NULL, NULL, &best, &err),
                         SVS_INVALID);
        assert_non_null(strstr(err.text, k < 5 ? "above 0" : "128 times"));
    }
    for (int folds = -1; folds < 2; folds++)
        assert_int_equal(svs_cross_validate(&x.e, &o, folds, &q, &err), SVS_INVALID);
    assert_int_equal(svs_cross_validate(&x.e, &o, N + 1, &q, &err), SVS_INVALID);
    assert_non_null(strstr(err.text, "301 folds"));
    for (int i = 0; i < N; i++)
        x.label[i] = 1;
    assert_int_equal(svs_cross_validate(&x.e, &o, 3, &q, &err), SVS_ONE_CLASS);
    test_data_free(&x.t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folds_are_stratified), cmocka_unit_test(same_as_by_hand),
        cmocka_unit_test(rare_classes),         cmocka_unit_test(search_is_separate_runs),
        cmocka_unit_test(best_of_a_path),       cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
