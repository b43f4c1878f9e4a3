/* Every allocation of a solver, of training and of a model file fails once: it says so, and nothing is
 * leaked. Linked with --wrap. */
#include "support/problem.h"
#include "support/nomem.h"
#include "support/quick.h"

#include <unistd.h>

#include "formats/model_file.h"

/* Calls `once` with the n-th allocation failing, for every n until none does. */
static void fail_each(svs_code (*once)(void *what), void *what) {
    svs_code code = SVS_NO_MEMORY;
    for (int n = 0; code != SVS_OK; n += every(5)) {
        assert_true(n < 2000);
        left = n;
        code = once(what);
        bool used = left < 0;
        left = -1;
        if (code == SVS_OK)
            return; /* advice and repairs that can be left out may fail in silence */
        assert_true(used);
        assert_int_equal(code, SVS_NO_MEMORY);
    }
}

struct one_solve {
    svs_problem p;
    svs_solver solver;
};

static svs_code solve_once(void *what) {
    struct one_solve *o = what;
    svs_solve_options options;
    svs_solution s;
    svs_solve_options_default(&options);
    options.solver = o->solver;
    options.max_iterations = 20;
    svs_code code = svs_solve(&o->p, &options, NULL, &s, NULL);
    svs_solution_clear(&s);
    return code;
}

static void test_solvers(void **state) {
    (void)state;
    struct test_data t = test_data_make(60, 4, 1, 0.1, 3);
    for (int s = 1; s < SVS_SOLVER_COUNT; s++) {
        struct one_solve o = {test_problem(&t, 1, false), (svs_solver)s};
        bool squares = s == SVS_SOLVER_ALSVM || s == SVS_SOLVER_FALSVM || s == SVS_SOLVER_SGD_LSSVM;
        o.p.loss = squares ? SVS_SQUARED : SVS_HINGE;
        if (s == SVS_SOLVER_ALFPGM || s == SVS_SOLVER_SGD_LSSVM)
            o.p.kernel = (svs_kernel){.kind = SVS_RBF, .gamma = 1};
        if (s == SVS_SOLVER_ALFPGM || s == SVS_SOLVER_NEWTON)
            o.p.bias = SVS_BIAS_FREE;
        fail_each(solve_once, &o);
    }
    struct test_data wide = test_data_make(40, 1600, 0.02, 0.1, 5);
    for (int s = 1; s <= SVS_SOLVER_NEWTON; s++) { /* the ways of large D */
        struct one_solve o = {test_problem(&wide, 1, true), (svs_solver)s};
        fail_each(solve_once, &o);
    }
    test_data_free(&wide);
    test_data_free(&t);
}

struct one_training {
    svs_examples e;
    svs_train_options o;
    char path[64];
};

static svs_code train_once(void *what) {
    struct one_training *o = what;
    svs_trained m;
    struct svi_machine back = {0};
    svs_code code = svs_train(&o->e, &o->o, NULL, &m, NULL);
    const struct svi_machine machine = {m.linear, m.kernel};
    if (code == SVS_OK)
        code = svi_machine_write(&machine, o->path, SVI_FORMAT_OWN, NULL);
    if (code == SVS_OK)
        code = svi_machine_read(&back, o->path, NULL);
    svi_machine_clear(&back);
    svs_trained_clear(&m);
    return code;
}

static svs_code validate_once(void *what) {
    struct one_training *o = what;
    svs_quality q;
    return svs_cross_validate(&o->e, &o->o, 3, &q, NULL);
}

static void test_training(void **state) {
    (void)state;
    static const svs_value classes[] = {{.kind = SVS_INT, .as.i = 1},
                                        {.kind = SVS_INT, .as.i = 2},
                                        {.kind = SVS_STR, .length = 1, .as.s = "z"}};
    struct test_data t = test_data_make(60, 4, 0.5, 0.1, 7);
    int32_t label[60];
    for (int i = 0; i < 60; i++)
        label[i] = i % 3;
    for (int kind = 0; kind < 3; kind += 2) {
        struct one_training o = {
            .e = {.rows = test_rows(&t, true), .label = label, .class_count = 3, .classes = classes}};
        svs_train_options_default(&o.o);
        snprintf(o.path, sizeof o.path, "/tmp/test_solver_nomem_%d", getpid());
        o.o.scale = kind == 0;
        o.o.solve.max_iterations = 5;
        if (kind) {
            o.o.p = 1;
            o.o.bias = SVS_BIAS_FREE;
            o.o.kernel = (svs_kernel){.kind = SVS_RBF, .gamma = 1};
        }
        fail_each(train_once, &o);
        fail_each(validate_once, &o);
        unlink(o.path);
    }
    test_data_free(&t);
}

static svs_code search_once(void *what) {
    struct one_training *o = what;
    svs_path_point best;
    return svs_search_C(&o->e, &o->o, 3, 1, 2, NULL, NULL, &best, NULL);
}

static svs_code start_once(void *what) {
    struct one_training *o = what;
    svs_trained first, next = {0};
    svs_code code = svs_train(&o->e, &o->o, NULL, &first, NULL);
    if (code == SVS_OK)
        code = svs_train(&o->e, &o->o, &first, &next, NULL);
    svs_trained_clear(&first);
    svs_trained_clear(&next);
    return code;
}

/* Dense rows, one Gram matrix for all, starts, a class that a fold lacks. */
static void test_paths(void **state) {
    (void)state;
    static const svs_value classes[] = {
        {.kind = SVS_INT, .as.i = 1}, {.kind = SVS_INT, .as.i = 2}, {.kind = SVS_INT, .as.i = 3}};
    struct test_data t = test_data_make(30, 3, 1, 0.1, 7);
    int32_t label[30];
    for (int i = 0; i < 30; i++)
        label[i] = i == 5 ? 2 : i % 2;
    struct one_training o = {.e = {.rows = test_rows(&t, false),
                                   .label = label,
                                   .weight = t.cost,
                                   .class_count = 3,
                                   .classes = classes}};
    svs_train_options_default(&o.o);
    o.o.scale = true;
    o.o.solve.solver = SVS_SOLVER_ALM;
    fail_each(start_once, &o);
    fail_each(search_once, &o);
    test_data_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_solvers), cmocka_unit_test(test_training),
                                       cmocka_unit_test(test_paths)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
