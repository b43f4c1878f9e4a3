/* train_internal.h: data shared by several trainings on the same examples, and the assignment of rows to
 * folds. */
#ifndef SVI_TRAIN_INTERNAL_H
#define SVI_TRAIN_INTERNAL_H

#include "base/pool.h"
#include "svmstream/train.h"

/* Rows with standardised columns, and the transformation back to raw units. Dense columns get mean 0 and
 * deviation 1; sparse ones get root mean square 1 only, to stay sparse. Constant columns become 0 and get
 * weight 0. */
struct svi_standard {
    struct svi_pool pool;
    svs_rows rows; /* the given ones when nothing is scaled */
    int d;
    double *mean, *inverse; /* d; NULL = not scaled; inverse 0: a constant column */
    double *values;         /* the copy */
};

/* Computed once for all classes and all values of C. */
struct svi_shared {
    struct svi_standard standard; /* rows as the solver sees them */
    double *gram;                 /* as svs_start has it, or NULL: the solver would not use it */
};

/* Checks the examples and computes the shared data; `paths`: number of values of C to be trained. Codes of
 * svs_train. Call svi_shared_clear in any case. */
svs_code svi_shared_make(struct svi_shared *s, const svs_examples *e, const svs_train_options *o, int paths,
                         svs_error *err);
void svi_shared_clear(struct svi_shared *s);

/* svs_train on the examples from which `s` was made. */
svs_code svi_train(const struct svi_shared *s, const svs_examples *e, const svs_train_options *o,
                   const svs_trained *start, svs_trained *out, svs_error *err);

/* fold[i] in [0, folds) for every row: folds of nearly the same size with nearly the same share of every
 * class, by a permutation drawn with `seed`. SVS_NO_MEMORY. */
svs_code svi_assign_folds(const svs_examples *e, int folds, uint64_t seed, int32_t *fold, svs_error *err);

#endif
