/* fourier_ridge.h: least squares on many features over all samples, solved at fixed sample numbers.
 * It is a member of the bank where a rank-1 step for every sample would cost too much. There a
 * model that is some samples old is as good.
 *
 *     w_k = argmin sum_i c_i (t_ik - w'f_i)^2 + nu |w|^2,   f = (1, phi),   nu = 1/2,
 *
 * over the first n samples, n = 16, 32, ..., then every SVI_FOURIER_RIDGE_EVERY and
 * SVI_FOURIER_RIDGE_SELDOM. No sample waits for a whole solution. Each later one computes some rows
 * of it, and w changes when all are done, within SVI_GRAM_BLOCK samples. G = sum c f f' and the
 * right-hand sides only grow (learner/gram.h), except for samples that are taken back. After these
 * the system is solved again at once. A solution in progress is finished at once when features or
 * classes are added or a feature is forgotten. Targets are +1 for the sample's class and -1 for the
 * others, or the value of a regression.
 *
 * With a helper (svi_fourier_ridge_learn) its thread adds the samples to G and solves, with the
 * same bits. The caller waits for it when the next block of samples is full, when w changes, and
 * before anything else touches G. Deterministic. One object, one thread at a time. */
#ifndef SVI_FOURIER_RIDGE_H
#define SVI_FOURIER_RIDGE_H

#include "base/archive.h"
#include "base/follower.h"
#include "learner/gram.h"
#include "svmstream/model.h"

#define SVI_FOURIER_RIDGE_EVERY 256
#define SVI_FOURIER_RIDGE_SELDOM                                                                             \
    1024 /* beyond SVI_FOURIER_RIDGE_LARGE samples, where 256 more change little */
#define SVI_FOURIER_RIDGE_LARGE 4096

struct svi_fourier_ridge {
    svs_task task;
    const struct svi_kernels *kernels;
    struct svi_gram gram;
    int dim, row_capacity; /* values of f; rows of w that fit */
    int classes;
    int64_t learned, solved; /* samples in the sums; samples that w was solved from */
    double *w;               /* row_capacity x dim */
    double *f;               /* dim: features of the current row */
    double *triangle;        /* svi_triangle(dim), for the archive */

    /* a solution in progress: G must not change, so samples learned meanwhile wait in gram.block */
    bool solving, singular; /* singular: it has no solution, and w will stay as it is */
    int64_t begun;          /* samples in this solution */
    int progress;           /* 0 to dim: rows of the factor done; beyond dim: rows of `next` solved too */
    double *factor;         /* dim x dim */
    double *sides;          /* row_capacity x dim: right-hand sides */
    double *next;           /* row_capacity x dim: these, then w */

    /* work on another thread */
    svi_follower *helper; /* has a task of this object; NULL: none */
    bool begins;          /* the task begins the solution */
    double *detached;     /* SVI_GRAM_BLOCK x dim: samples that the task adds to G; NULL until the first */
    int detached_count;
};

/* phi has `features` values; capacity for `classes` classes. SVS_NO_MEMORY. */
svs_code svi_fourier_ridge_init(struct svi_fourier_ridge *r, svs_task task, int features, int classes,
                                svs_isa isa, svs_error *err);
void svi_fourier_ridge_clear(struct svi_fourier_ridge *r);
void svi_fourier_ridge_empty(struct svi_fourier_ridge *r); /* forgets all samples; the classes stay */

/* Appends features, which count as 0 in all samples so far. SVS_NO_MEMORY: the features are as before. */
svs_code svi_fourier_ridge_grow(struct svi_fourier_ridge *r, int features, svs_error *err);

/* Feature j starts again, as if it had been 0 in all samples. */
void svi_fourier_ridge_forget_feature(struct svi_fourier_ridge *r, int j);

/* Raises the class count, at most to the capacity. */
void svi_fourier_ridge_classes(struct svi_fourier_ridge *r, int classes);

/* phi: the features; scores: one value, or one a class from three classes on. */
void svi_fourier_ridge_score(struct svi_fourier_ridge *r, const float *phi, double *scores);

/* Touches the pages of part `part` of `parts` of G and its factor, so that the first solution does not
 * take all page faults at once; called while there is no phi yet. */
void svi_fourier_ridge_touch(struct svi_fourier_ridge *r, int part, int parts);

/* label: class index, or -1 with a target. helper: does the larger part of the work, while no other object
 * uses it; it must outlive its task (svi_fourier_ridge_join). NULL: all of it is done here. */
void svi_fourier_ridge_learn(struct svi_fourier_ridge *r, const float *phi, int label, double target,
                             double weight, svi_follower *helper);

/* Waits for what the helper has to do, or does it. */
void svi_fourier_ridge_join(struct svi_fourier_ridge *r);

/* Removes what was learned with the same arguments, and solves again. */
void svi_fourier_ridge_take_back(struct svi_fourier_ridge *r, const float *phi, int label, double target,
                                 double weight);

/* Saves or loads. To load, initialise for as many features and classes. */
void svi_fourier_ridge_archive(struct svi_archive *a, struct svi_fourier_ridge *r);

double svi_fourier_ridge_memory(svs_task task, int features, int classes);

#endif
