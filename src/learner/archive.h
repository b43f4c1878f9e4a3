/* archive.h: a learner kept and taken back, bit for bit, and how far to trust what was taken back.
 *
 * What is archived is what determines future bits: the features and classes, P (one triangle; both halves of
 * a diagonal block are equal) with the rank-1 changes that still wait in front of it, W, scaler, energies,
 * ridge, both rings oldest first, and the sums where they are more than scratch. Not archived: room, the
 * place in a ring, hash chains, padding, the content of dead slots, a snapshot under way. So the form does
 * not depend on how the learner came to its state, nor on the kernels. */
#ifndef SVI_LEARNER_ARCHIVE_H
#define SVI_LEARNER_ARCHIVE_H

#include "base/archive.h"
#include "learner/alsvm_state.h"
#include "learner/gram.h"
#include "learner/ring.h"
#include "learner/scaler.h"
#include "svmstream/learner.h"

/* Counts and numbers that are read back are at most this, so that they can go on counting. */
#define SVI_COUNT_MAX ((int64_t)1 << 60)

/* Saving changes nothing of the state of l, but uses its buffers. Loading wants a learner fresh from
 * svs_learner_new with the options of the one that was saved and no more features (0 is fine); after a
 * failure it may only be freed. Failures: SVS_DAMAGED, SVS_NO_MEMORY. */
void svi_learner_archive(struct svi_archive *a, svs_learner *l);

/* The largest relative difference of W, and of P times a fixed +-1 vector, from a fresh solve in long double
 * on the rows held (window 0: on the sums). Nothing that determines results is changed. As slow as
 * svs_learner_check. SVS_NO_MEMORY. */
svs_code svi_learner_verify(svs_learner *l, double *error, svs_error *err);

/* How far w and P are from solving the system of the rows held: |b - G w| / |b| and |G P v - v| / |v|, the
 * larger; O(W d), changes nothing that determines results. NAN without a window or before the first labelled
 * sample. */
double svi_learner_residual(svs_learner *l);

/* P and w anew from the rows held (window 0: from the sums), now. For a state whose last bits are of other
 * kernels or of another version of the program. */
void svi_learner_rebuild(svs_learner *l);

/* ---- the parts */

/* `room`: dim (dim + 1) / 2 values of scratch. Loading: dim and rows are set, with room for them. */
void svi_alsvm_archive(struct svi_archive *a, svs_alsvm *m, double *room);

/* The first `groups` sums; `room`: n (n + 1) / 2 values of scratch. Loading: n is set, with room. */
void svi_gram_archive(struct svi_archive *a, struct svi_gram *g, int groups, double *room);

void svi_scaler_archive(struct svi_archive *a, struct svi_scaler *s);

/* What a ring's slots can hold. */
struct svi_ring_kind {
    const char *name; /* of its fields: "window" */
    bool waiting;     /* with scores behind each row and no label; else with a label or a target */
    bool regress;
    int features;    /* values of a row */
    int scores_at;   /* where the scores begin in a row of the ring */
    int scores;      /* the most that a slot has; 0 unless waiting */
    int class_count; /* labels are below this */
    int64_t order;   /* no slot's order is above this */
};

/* Loading: the ring is empty and its stride suffices. */
void svi_ring_archive(struct svi_archive *a, struct svi_ring *r, const struct svi_ring_kind *kind);

#endif
