/* bank_internal.h: the inside of a bank, and what its files share.
 *
 *  - bank.c: members made, grown and dropped; the state as bytes, and what must hold
 *  - bank_step.c: a sample: what is answered, learned, and taken back
 *  - describe.c: what it tells of itself */
#ifndef SVI_BANK_INTERNAL_H
#define SVI_BANK_INTERNAL_H

#include "bank/bank.h"
#include "bank/members.h"
#include "bank/share.h"
#include "bank/slope.h"
#include "bank/stack.h"
#include "bank/standardiser.h"
#include "bank/windows.h"
#include "quality/calibrator.h"

#define STACKS    3
#define EXPERTS   (1 + STACKS) /* the share, and the stacks */
#define CLIP      2.0          /* of a member's score in a stack */
#define MAX_INPUT 1e4          /* of a value of a regression in a stack, in deviations of the targets */

struct svi_bank {
    struct svi_bank_options o;
    struct svi_member_context c; /* what the members see of it, the row at hand among it */
    struct svi_member_part part[SVI_PARTS_MAX];
    uint32_t on;             /* members that run, as bits */
    uint8_t *took;           /* by number modulo the host's window: the parts that can take a sample back */
    svs_class_weight *given; /* what o.host.class_weight points to, the names behind it; NULL = none */
    uint8_t *plain;          /* by feature: it is never scaled; max_features flags */
    struct svi_standardiser standard;
    svi_stacks *stacks;
    struct svi_share votes, experts;
    struct svi_slope slope[EXPERTS];     /* of two classes */
    svi_calibrator *calibrator[EXPERTS]; /* of more; NULL for a regression */
    double recent[SVI_MEMBERS_MAX];      /* recent losses: the share of mistakes; of a regression the squared
                                            error in units of the variance of the targets */
    int64_t judged;                      /* samples that are in these */
    int64_t targets;                     /* of a regression: how many, and what is known of them */
    double mean, spread, largest, unit, error;

    /* of the row at hand */
    double *scores;               /* members x c.stride */
    double *inputs;               /* c.stride x members: clipped */
    double *said;                 /* EXPERTS x c.stride */
    double *proba;                /* EXPERTS x c.stride */
    double *final, *mixed, *turn; /* c.stride each */
};

/* Samples that the host holds at most. */
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
    return b->said + (size_t)expert * (size_t)b->c.stride;
}

/* The learners beside the host: the first part of every bank. */
static inline struct svi_windows *svi_bank_windows(const svi_bank *b) {
    return b->part[0].self;
}

struct svi_stacks_options svi_bank_stacks(const struct svi_bank_options *o);

/* The parts that count classes by themselves know as many as the host. */
void svi_bank_know_classes(svi_bank *b, int classes);

#endif
