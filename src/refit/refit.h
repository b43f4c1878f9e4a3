/* refit.h: a batch solution of the window, next to the online model: the job, without threads or clock.
 *
 * A job is a snapshot of the window (learner/snapshot.h) and all that is kept from one refit to the
 * next:
 *
 *  - the model;
 *  - the dual variables of each sample held (a new sample's are computed from its hinge residual);
 *  - for `alm` the Gram matrix, for `newton` with loss l2 the curvature. The rows that left and the
 *    new rows update them.
 *
 * The problem is the online model's with another loss: the same C, the bias as a penalised constant
 * 1, features standardised as in the learner or not at all. Two classes are one problem. Three or
 * more are one against the rest each.
 *
 * Whichever thread has the job owns all of it: the engine until svi_engine_refit_take, a worker from then
 * until svi_engine_refit_give. */
#ifndef SVI_REFIT_H
#define SVI_REFIT_H

#include <stdatomic.h>

#include "config/settings.h"
#include "learner/snapshot.h"
#include "refit/kept_curvature.h"
#include "svmstream/solver.h"
#include "wire/event.h"

/* Features that were renewed since the snapshot was begun. Written by the policy, whichever thread has the
 * job. */
struct svi_renewed {
    bool any, *flags; /* flags: `capacity` entries; any: one of them is set */
    int capacity;
};

/* A model solved as a batch, in raw units, and figures of its solution. */
struct svi_refit_result {
    double *W, *b; /* rows x d weights; rows constants */
    int rows, d, class_count;
    double objective, gap; /* sums over the rows of the model */
    int64_t iterations;
    double milliseconds;
    svs_solver method;
};

/* The dual variables of each sample of a refit's window. */
struct svi_refit_duals {
    int64_t *number; /* numbers of the samples, ascending */
    double *alpha;   /* rows x held */
    int64_t held;
};

/* What may change from one refit to the next. */
struct svi_refit_how {
    svs_solver solver;
    double p, tol;
};

struct svi_refit {
    struct svi_refit_how how;
    double C;
    atomic_bool cancel; /* set by any thread; the solver ends when it next reports progress */

    /* in */
    struct svi_snapshot snapshot;
    int64_t begun; /* number of the sample after which the snapshot was begun */
    struct svi_renewed renewed;

    /* out */
    svs_error error;                /* code SVS_OK: success */
    struct svi_refit_result result; /* W and b are owned */

    /* kept */
    bool have; /* result and duals are those of an earlier success */
    struct svi_refit_duals duals;
    struct svi_gram_cache *gram;
    struct svi_kept_curvature curvature;
    double curvature_C; /* C of the problem whose curvature is kept */
};

/* The settings refit, refit.loss and refit.tol, which are already checked. */
struct svi_refit_how svi_refit_how_of(const struct svi_settings *s);

/* A job for checked settings. NULL: SVS_NO_MEMORY. Owner: the caller. */
struct svi_refit *svi_refit_new(const struct svi_settings *s, svs_error *err);
void svi_refit_free(struct svi_refit **r);

/* Solves the snapshot; r->error is the outcome. On failure model, duals and figures stay as they were. */
void svi_refit_run(struct svi_refit *r);

/* The task of a worker whose jobs are refits. */
struct svi_worker_task;
extern const struct svi_worker_task svi_refit_task;

/* Call while no worker has the job: forgets the renewed features, in the result (weight 0) and in what is
 * kept for the next refit. */
void svi_refit_settle(struct svi_refit *r);

/* Appends the outcome of the job as a record of a journal: the error, or the model and its figures, with
 * weight 0 for renewed features. SVS_NO_MEMORY: nothing is appended. */
svs_code svi_refit_pack(struct svi_refit *r, struct svi_bytes *out);

/* Restores the outcome that was packed, so that the job can be given back (svi_engine_refit_give). What
 * was kept from earlier refits is forgotten. SVS_DAMAGED (also beyond the limits), SVS_NO_MEMORY: *r is
 * unchanged. */
svs_code svi_refit_unpack(struct svi_refit *r, const void *bytes, size_t size, int64_t max_features,
                          int64_t max_classes, svs_error *err);

/* Forgets what was kept from earlier refits, for example because sample numbers have changed. */
void svi_refit_forget(struct svi_refit *r);

/* Bytes at most of a job with these settings. */
double svi_refit_memory(const struct svi_settings *s, int d, int classes);

#endif
