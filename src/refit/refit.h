/* refit.h: a batch solution of the window, next to the online model: the job, without threads or clock.
 *
 * A job is a snapshot of the window (learner/snapshot.h) and all that is kept from one refit to the next: the
 * model, the dual variables of each sample held (a new sample's are made from its hinge residual), for `alm`
 * the Gram matrix, which is brought up to date by the rows that left and came, and for `newton` with loss l2
 * the curvature, likewise. The problem is the online model's with another loss: the same C, the bias a
 * penalised 1, features standardised or not as the learner does. One problem for two classes, one against the
 * rest for each of three or more.
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

/* Features that were renewed since the snapshot was begun: the policy's, wherever the job is. */
struct svi_renewed {
    bool any, *flags; /* room flags */
    int capacity;
};

/* A model solved as a batch, in raw units, and how that went. */
struct svi_refit_result {
    double *W, *b; /* rows x d; rows */
    int rows, d, class_count;
    double objective, gap; /* sums over the rows */
    int64_t iterations;
    double milliseconds;
    svs_solver method;
};

/* The dual variables of each sample held. */
struct svi_refit_duals {
    int64_t *number; /* of the samples, ascending */
    double *alpha;   /* rows x held */
    int64_t held;
};

/* What may be another from one refit to the next. */
struct svi_refit_how {
    svs_solver solver;
    double p, tol;
};

struct svi_refit {
    struct svi_refit_how how;
    double C;
    atomic_bool cancel; /* set by any thread: the solver ends soon */

    /* in */
    struct svi_snapshot snapshot;
    int64_t begun; /* number of the sample after which the snapshot was begun */
    struct svi_renewed renewed;

    /* out */
    svs_error error;                /* code SVS_OK: it succeeded */
    struct svi_refit_result result; /* W and b are owned */

    /* kept */
    bool have; /* the result and the duals are those of an earlier success */
    struct svi_refit_duals duals;
    struct svi_gram_cache *gram;
    struct svi_kept_curvature curvature;
    double curvature_C; /* of what is known there */
};

/* refit, refit.loss and refit.tol, which were checked. */
struct svi_refit_how svi_refit_how_of(const struct svi_settings *s);

/* The settings are checked. NULL: SVS_NO_MEMORY. */
struct svi_refit *svi_refit_new(const struct svi_settings *s, svs_error *err);
void svi_refit_free(struct svi_refit **r);

/* Does the work; job->error says how it went. A failure leaves the kept state as it was. */
void svi_refit_run(struct svi_refit *r);

/* For a worker whose jobs are refits. */
struct svi_worker_task;
extern const struct svi_worker_task svi_refit_task;

/* Nobody works on it: what it has of the renewed features goes, in the result (weight 0) and in what is kept
 * for the next one. */
void svi_refit_settle(struct svi_refit *r);

/* Appends how the job went, for a journal: the error, or the model and its figures, with weight 0 for renewed
 * features. SVS_NO_MEMORY: nothing. */
svs_code svi_refit_pack(struct svi_refit *r, struct svi_bytes *out);

/* Makes the job look as the one that was packed: it can be given back (svi_engine_refit_give). What was kept
 * from earlier ones is forgotten. SVS_DAMAGED (also beyond the limits), SVS_NO_MEMORY: *r is unchanged. */
svs_code svi_refit_unpack(struct svi_refit *r, const void *bytes, size_t size, int64_t max_features,
                          int64_t max_classes, svs_error *err);

/* Forgets what was kept: the samples have changed their numbers. */
void svi_refit_forget(struct svi_refit *r);

/* Bytes at most. */
double svi_refit_memory(const struct svi_settings *s, int d, int classes);

#endif
