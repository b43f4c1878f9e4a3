/* fourier_ridge.h: least squares on many features over all samples, solved at fixed sample numbers: a member
 * of the bank where a rank-1 step a sample would cost too much, and where a model that is some samples old is
 * as good.
 *
 *     w_k = argmin sum_i c_i (t_ik - w'f_i)^2 + nu |w|^2,   f = (1, phi),   nu = 1/2,
 *
 * over the first n samples, n = 16, 32, ..., then every SVI_FOURIER_RIDGE_EVERY and SVI_FOURIER_RIDGE_SELDOM.
 * No sample waits for a whole solution: each that follows brings some rows of it, and w changes when all are
 * there, within SVI_GRAM_BLOCK samples. G = sum c f f' and the right-hand sides only grow (learner/gram.h),
 * but for samples that are taken back, with which it is solved again at once; so it is, too, when features or
 * classes come or features go while it is being solved. Targets are +1 for the own class, -1 for others, or
 * the value of a regression. Deterministic. One object, one thread at a time. */
#ifndef SVI_FOURIER_RIDGE_H
#define SVI_FOURIER_RIDGE_H

#include "base/archive.h"
#include "learner/gram.h"
#include "svmstream/model.h"

#define SVI_FOURIER_RIDGE_EVERY 256
#define SVI_FOURIER_RIDGE_SELDOM                                                                             \
    1024 /* beyond SVI_FOURIER_RIDGE_LARGE samples, of which so few change little */
#define SVI_FOURIER_RIDGE_LARGE 4096

struct svi_fourier_ridge {
    svs_task task;
    const struct svi_kernels *kernels;
    struct svi_gram gram;
    int dim, row_capacity; /* 1 + phi; of w */
    int classes;
    int64_t learned, solved; /* samples in the sums; of these in w */
    double *w;               /* row_capacity x dim */
    double *f;               /* dim: of the row at hand */
    double *triangle;        /* svi_triangle(dim), for the archive */

    /* being solved: G stays as it is meanwhile, for what is learned is gathered beside it */
    bool solving;
    int64_t begun;  /* samples in it */
    int progress;   /* rows of the factor that are there, and after dim of these rows of `next` that are w */
    double *factor; /* dim x dim */
    double *next;   /* row_capacity x dim: right-hand sides, then w */
};

/* phi of `features` values; room for `classes` classes. SVS_NO_MEMORY. */
svs_code svi_fourier_ridge_init(struct svi_fourier_ridge *r, svs_task task, int features, int classes,
                                svs_isa isa, svs_error *err);
void svi_fourier_ridge_clear(struct svi_fourier_ridge *r);
void svi_fourier_ridge_empty(struct svi_fourier_ridge *r); /* nothing learned; the classes stay */

/* More features at the end, that were 0 so far. */
svs_code svi_fourier_ridge_grow(struct svi_fourier_ridge *r, int features, svs_error *err);

/* Feature j begins from nothing. */
void svi_fourier_ridge_forget_feature(struct svi_fourier_ridge *r, int j);

/* There is this number of classes from now on, at most those there is room for. */
void svi_fourier_ridge_classes(struct svi_fourier_ridge *r, int classes);

/* phi: the features; scores: 1, or one a class from three on. */
void svi_fourier_ridge_score(struct svi_fourier_ridge *r, const float *phi, double *scores);

/* Uses the pages of part `part` of `parts` of G and its factor, which the first solution would all wait for:
 * while there is no phi yet. */
void svi_fourier_ridge_touch(struct svi_fourier_ridge *r, int part, int parts);

/* label: class index, or -1 with a target. */
void svi_fourier_ridge_learn(struct svi_fourier_ridge *r, const float *phi, int label, double target,
                             double weight);

/* Takes out what was learned with the same arguments. */
void svi_fourier_ridge_take_back(struct svi_fourier_ridge *r, const float *phi, int label, double target,
                                 double weight);

/* Loading goes into one that was initialised for as many features and classes. */
void svi_fourier_ridge_archive(struct svi_archive *a, struct svi_fourier_ridge *r);

double svi_fourier_ridge_memory(svs_task task, int features, int classes);

#endif
