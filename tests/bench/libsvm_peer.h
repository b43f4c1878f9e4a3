/* libsvm_peer.h: LIBSVM's one-class SVM in the same process on the same rows. */
#ifndef BENCH_LIBSVM_PEER_H
#define BENCH_LIBSVM_PEER_H

#include <stdlib.h>

#include <libsvm/svm.h>

#include "svmstream/rows.h"

struct libsvm {
    struct svm_problem problem;
    struct svm_model *model; /* points into `nodes` */
    struct svm_node *nodes;
};

static inline void libsvm_quiet(const char *text) {
    (void)text;
}

/* Rows as LIBSVM has them: sparse, ended by -1. */
static inline struct svm_node *libsvm_row(const double *x, int d, struct svm_node *at) {
    for (int j = 0; j < d; j++)
        if (x[j] != 0)
            *at++ = (struct svm_node){j + 1, x[j]};
    *at++ = (struct svm_node){-1, 0};
    return at;
}

static inline void libsvm_open(struct libsvm *p, const svs_rows *r) {
    double *x = malloc((size_t)r->d * sizeof *x);
    struct svm_node *at = p->nodes = malloc((size_t)(r->n * (r->d + 1)) * sizeof *at);
    p->model = NULL;
    p->problem = (struct svm_problem){(int)r->n, calloc((size_t)r->n, sizeof(double)),
                                      malloc((size_t)r->n * sizeof(struct svm_node *))};
    for (int64_t i = 0; i < r->n; i++) {
        p->problem.x[i] = at;
        svs_rows_copy(r, i, x);
        at = libsvm_row(x, r->d, at);
    }
    free(x);
    svm_set_print_string_function(libsvm_quiet);
}

static inline void libsvm_train(struct libsvm *p, double gamma, double nu, double eps) {
    const struct svm_parameter o = {.svm_type = ONE_CLASS,
                                    .kernel_type = RBF,
                                    .gamma = gamma,
                                    .nu = nu,
                                    .eps = eps,
                                    .cache_size = 1000,
                                    .shrinking = 1};
    svm_free_and_destroy_model(&p->model);
    p->model = svm_train(&p->problem, &o);
}

/* How far outside: higher = more novel. */
static inline void libsvm_score(const struct libsvm *p, const svs_rows *r, double *score) {
    double *x = malloc((size_t)r->d * sizeof *x);
    struct svm_node *row = malloc((size_t)(r->d + 1) * sizeof *row);
    for (int64_t i = 0; i < r->n; i++) {
        svs_rows_copy(r, i, x);
        libsvm_row(x, r->d, row);
        svm_predict_values(p->model, row, &score[i]);
        score[i] = -score[i];
    }
    free(x);
    free(row);
}

static inline void libsvm_close(struct libsvm *p) {
    svm_free_and_destroy_model(&p->model);
    free(p->problem.x);
    free(p->problem.y);
    free(p->nodes);
}

#endif
