/* train.h: from a labelled table to a model: classes, class weights, standardisation, one problem for each
 * class, cross-validation and the search for C. */
#ifndef SVMSTREAM_TRAIN_H
#define SVMSTREAM_TRAIN_H

#include "svmstream/solver.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Labelled rows. A view; see svs_rows. */
typedef struct svs_examples {
    svs_rows rows;
    svs_task task;
    const int32_t *label; /* classify: class index of each row */
    const double *target; /* regress: y of each row */
    const double *weight; /* > 0; NULL = all 1 */
    int class_count;
    const svs_value *classes;    /* integers ascending, then strings ascending */
    const char *const *features; /* d names, or NULL */
} svs_examples;

typedef struct svs_train_options {
    svs_solve_options solve;
    double C;
    svs_loss loss;
    double p;
    svs_penalty penalty;
    svs_bias bias;
    double bias_value;
    svs_kernel kernel;
    bool scale; /* standardises the columns for the solver; the model is still in raw units (linear only) */
    const double *class_weight; /* class_count factors of C, or NULL */
    const uint8_t *unscaled;    /* d flags: not 0 = `scale` does not change the column; or NULL */
    bool balanced; /* class weights n / (K n_k): n rows, n_k of class k, K classes with rows; class_weight
                      must be NULL. Cross-validation counts the rows on which each fold trains */
} svs_train_options;

/* C 1, hinge with p = 2, L2, bias 1 appended, linear, no scaling. */
SVS_API void svs_train_options_default(svs_train_options *o);

/* The result of training: exactly one of the models is set. */
typedef struct svs_trained {
    svs_model *linear;        /* owned; version 1, seen = learned = n */
    svs_kernel_model *kernel; /* owned */
    svs_solution *solutions;  /* one for each problem (1, or one a class), in the solver's units (--scale) */
    int count;
} svs_trained;

/* Trains: two classes give one problem, K >= 3 classes K problems "class k against the rest", regression one
 * with the squared loss. `start` (may be NULL): the result of an earlier call on the same examples, to
 * continue from (another C, another tol). With three or more classes, a class without examples scores -1 (its
 * solution has objective NAN). SVS_ONE_CLASS: fewer than two classes occur; codes of svs_solve. */
SVS_API svs_code svs_train(const svs_examples *e, const svs_train_options *o, const svs_trained *start,
                           svs_trained *out, svs_error *err);
SVS_API void svs_trained_clear(svs_trained *t);

/* Quality of predictions on held-out rows. */
typedef struct svs_quality {
    int64_t n, right;
    double accuracy; /* classify; NAN for regression */
    double rmse;     /* regress; NAN otherwise */
} svs_quality;

/* K-fold cross-validation, 2 <= folds <= n. Rows are assigned to folds by a permutation drawn with
 * solve.seed, class by class. */
SVS_API svs_code svs_cross_validate(const svs_examples *e, const svs_train_options *o, int folds,
                                    svs_quality *out, svs_error *err);

/* The scores of rows while they were held out, with the same folds: scores[n x rows], row-major, rows as in
 * svs_model. Linear classifiers only (SVS_INVALID). Each class needs at least 2 examples; otherwise one fold
 * has no model of it. Codes of svs_cross_validate. */
SVS_API svs_code svs_cross_scores(const svs_examples *e, const svs_train_options *o, int folds,
                                  double *scores, svs_error *err);

/* One point of a search over C. */
typedef struct svs_path_point {
    double C;
    svs_quality quality;
    double seconds;
    int64_t iterations;
} svs_path_point;

/* Doubles C from `from` to `to`, each fold warm-started along the path, and calls `point` (may be NULL) for
 * each value; *best is the point of the best cross-validation quality (of equal ones the smallest C).
 * SVS_INVALID: not 0 < from <= to < infinity, or more than 128 values. */
SVS_API svs_code svs_search_C(const svs_examples *e, const svs_train_options *o, int folds, double from,
                              double to, void (*point)(void *user, const svs_path_point *p), void *user,
                              svs_path_point *best, svs_error *err);

#ifdef __cplusplus
}
#endif
#endif
