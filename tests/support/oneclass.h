/* oneclass.h: rows of one kind, and small one-class models of them. */
#ifndef TEST_SUPPORT_ONECLASS_H
#define TEST_SUPPORT_ONECLASS_H

#include "support/problem.h"
#include "svmstream/novelty.h"

struct test_oneclass {
    int64_t n;
    int d;
    double *x;
    svs_rows rows;
    svs_novelty_options options;
    svs_novelty_model *model;
};

/* n normal rows in raw units that differ from feature to feature, and a model of them. */
static inline void test_oneclass_make(struct test_oneclass *t, int64_t n, int d, svs_novelty_kernel kernel,
                                      svs_gamma_rule rule, bool scale) {
    static const char *const names[] = {"a", "b,\"c", "d'", "e", "f", "g", "h", "i", "j", "k"};
    uint64_t state = 77;
    *t = (struct test_oneclass){.n = n, .d = d, .x = calloc((size_t)(n * d), sizeof(double))};
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < d; j++)
            t->x[i * d + j] = scale ? 100 * j + (1 + 5 * j) * test_normal(&state) : 0.5 * test_normal(&state);
    t->rows = (svs_rows){.n = n, .d = d, .dense = t->x, .stride = d};
    svs_novelty_options_default(&t->options);
    t->options.kernel = kernel;
    t->options.gamma_rule = rule;
    t->options.gamma = 0.2;
    t->options.scale = scale;
    assert_int_equal(svs_novelty_train(&t->rows, names, &t->options, &t->model, NULL), SVS_OK);
}

static inline void test_oneclass_free(struct test_oneclass *t) {
    svs_novelty_free(&t->model);
    free(t->x);
}

#endif
