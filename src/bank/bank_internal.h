/* bank_internal.h: the inside of a bank, and what its files share.
 *
 *  - bank.c: makes, grows and drops members; archive and checks
 *  - bank_step.c: one sample: answer, learning, taking back
 *  - describe.c: the published description */
#ifndef SVI_BANK_INTERNAL_H
#define SVI_BANK_INTERNAL_H

#include "bank/bank.h"
#include "bank/members.h"
#include "bank/mixture.h"
#include "bank/share.h"
#include "bank/slope.h"
#include "bank/stack.h"
#include "bank/standardiser.h"
#include "bank/windows.h"
#include "quality/calibrator.h"

#define STACKS    3
#define EXPERTS   (1 + STACKS) /* the vote (a regression: the best member), then the stacks */
#define CLIP      2.0          /* bound on a member's score as a stack's input */
#define MAX_INPUT 1e4          /* the same for a regression, in deviations of the targets */

struct svi_bank {
    struct svi_bank_options o;
    struct svi_member_context c; /* what members can see of the bank, the current row included */
    struct svi_member_part part[SVI_PARTS_MAX];
    uint32_t on;         /* members that run, as bits */
    uint8_t *held_parts; /* by sample number modulo the host's window: held_bit of each part that can take it
                            back */
    svs_class_weight *given; /* copy that o.host.class_weight points to, followed by the names; NULL = none */
    uint8_t *plain;          /* max_features flags: this feature is never standardised */
    struct svi_standardiser standard;
    uint32_t stacked;     /* members that the stacks see, as bits: those that ran when the bank was made */
    svi_stacks *stacks;   /* over the members of `stacked` in their order */
    svi_mixture *mixture; /* the same members; NULL for a regression */
    struct svi_share votes, experts;     /* over the members; over the experts */
    struct svi_slope slope[EXPERTS];     /* two classes: score -> probability */
    svi_calibrator *calibrator[EXPERTS]; /* three or more; NULL for a regression */
    double recent[SVI_MEMBERS_MAX]; /* recent losses: share of mistakes; regression: squared error divided by
                                       the variance of the targets */
    int64_t scored;                 /* labelled samples in `recent` */
    int64_t targets;              /* regression: targets seen; the statistics of them are in the next line */
    double mean, spread, largest; /* running mean, sum of squared deviations, largest absolute value */
    double unit, error; /* deviation of the targets, > 0; running squared error of the answer, in units^2 */

    /* of the current row */
    double *scores;        /* members x c.stride */
    double *raw;           /* rows x stacked members: their scores, NAN where one no longer runs */
    double *inputs;        /* the same clipped, as the stacks take them */
    double *expert_scores; /* EXPERTS x c.stride */
    double *proba;         /* EXPERTS x c.stride: probability of each class */
    double *final, *mixed, *answer,
        *stack_targets; /* c.stride each: scores of the answer, probabilities of
                           the experts' mean and of the answer, targets of the stacks */
};

/* Upper bound of the samples that the host holds. */
static inline int64_t svi_bank_held(const svs_options *host) {
    return host->window > 0 ? host->window : 1;
}

static inline bool svi_bank_runs(const svi_bank *b, int member) {
    return b->on >> member & 1;
}

static inline double *svi_bank_of(const svi_bank *b, int member) {
    return b->scores + (size_t)member * (size_t)b->c.stride;
}

static inline double *svi_bank_expert(const svi_bank *b, int expert) {
    return b->expert_scores + (size_t)expert * (size_t)b->c.stride;
}

/* The windowed learners, which are the first part of every bank. */
static inline struct svi_windows *svi_bank_windows(const svi_bank *b) {
    return b->part[0].self;
}

/* The place of a member among those that the stacks see; members that never ran have none (-1). */
static inline int svi_bank_stacked(const svi_bank *b, int member) {
    const uint32_t below = b->stacked & (((uint32_t)1 << member) - 1);
    return b->stacked >> member & 1 ? __builtin_popcount(below) : -1;
}

static inline int svi_bank_stacked_count(const svi_bank *b) {
    return __builtin_popcount(b->stacked);
}

struct svi_stacks_options svi_bank_stacks(const struct svi_bank_options *o, int members);

/* Raises the class count of every part that keeps its own to `classes`, at least the present count. */
void svi_bank_know_classes(svi_bank *b, int classes);

#endif
