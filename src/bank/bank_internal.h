/* bank_internal.h: the inside of a bank, and what its files share.
 *
 *  - bank.c: members made, grown and dropped; what the bank tells of itself
 *  - bank_score.c: what members say of a row, and how it becomes one answer
 *  - bank_learn.c: what the members and the layers above them learn, and what is taken back
 *  - bank_archive.c: the state as bytes, and what must hold */
#ifndef SVI_BANK_INTERNAL_H
#define SVI_BANK_INTERNAL_H

#include "bank/bank.h"
#include "bank/block.h"
#include "bank/fourier_ridge.h"
#include "bank/neighbours.h"
#include "bank/share.h"
#include "bank/slope.h"
#include "bank/stack.h"
#include "bank/standardiser.h"
#include "bank/windows.h"
#include "quality/calibrator.h"

#define EXPERTS        4 /* the share, and three stacks */
#define STACKS         3
#define BLOCKS         3
#define CLIP           2.0 /* of a member's score in a stack */
#define TARGETS_FEW    16  /* of a regression: the stacks begin after them */
#define ERROR_MOST     1e6 /* of a squared error, in units of the targets spread */
#define RAW            0   /* of the blocks: the one of the row, the one of Fourier features */
#define FOURIER        2
#define EXACT_FEATURES 208
#define WINDOW_ALL     3   /* of the windows: ALSVM over all */
#define TOOK_ALL       1   /* ALSVM over all has learned a sample that the host holds */
#define TOOK_EXACT     2   /* so has Fourier least squares */
#define MEMBERS_ALL    1e6 /* microseconds: every member fits */
#define INPUT_MOST     1e4 /* of a value of a regression in a stack, in deviations of the targets */

/* The first-order members: the first of them in the table, and their heads. */
struct svi_bank_block {
    int member;
    struct svi_block_options classify, regress;
};
extern const struct svi_bank_block svi_bank_blocks[BLOCKS];

struct svi_bank {
    struct svi_bank_options o;
    bool regress;
    int d, stride;           /* stride: of scores, rows at most */
    int classes;             /* that the host knows, as all parts do */
    uint8_t *took;           /* by number modulo the host's window: TOOK_ALL, TOOK_EXACT */
    svs_class_weight *given; /* what o.host.class_weight points to, the names behind it; NULL = none */
    uint8_t *plain;          /* by feature: it is never scaled; max_features flags */
    struct svi_windows windows;
    struct svi_standardiser standard;
    struct svi_block block[BLOCKS];
    struct svi_neighbours near;
    int64_t near_from; /* a row's number with the host, less that among the neighbours */
    struct svi_fourier_ridge exact;
    bool expanded; /* phi is that of the row at hand */
    svi_stacks *stacks;
    struct svi_share votes, experts;
    struct svi_slope slope[EXPERTS];     /* of two classes */
    svi_calibrator *calibrator[EXPERTS]; /* of more; NULL for a regression */
    double recent[SVI_MEMBERS];          /* recent losses: the share of mistakes; of a regression the squared
                                            error in units of the variance of the targets */
    int64_t judged;                      /* samples that are in these */
    uint32_t on;                         /* members that run, as bits */
    int64_t targets;                     /* of a regression: how many, and what is known of them */
    double mean, spread, largest, center, unit, last, error;

    /* of the row at hand */
    int rows, class_count;
    float *z;                     /* standardised */
    float *phi;                   /* for `exact` */
    double *scores;               /* SVI_MEMBERS x stride */
    double *inputs;               /* stride x SVI_MEMBERS: clipped */
    double *said;                 /* EXPERTS x stride */
    double *proba;                /* EXPERTS x stride */
    double *final, *mixed, *turn; /* stride each */
};

/* Samples that the host holds at most. */
static inline int64_t svi_bank_held(const svs_options *host) {
    return host->window > 0 ? host->window : 1;
}

static inline bool svi_bank_runs(const svi_bank *b, int member) {
    return b->on >> member & 1;
}

static inline double *svi_bank_of(const svi_bank *b, int member) {
    return b->scores + (size_t)member * (size_t)b->stride;
}

static inline double svi_bank_bounded(double v, double most) {
    return v > most ? most : v >= -most ? v : v < -most ? -most : 0; /* NaN: 0 */
}

static inline double *svi_bank_expert(const svi_bank *b, int expert) {
    return b->said + (size_t)expert * (size_t)b->stride;
}

static inline double *svi_bank_expert_proba(const svi_bank *b, int expert) {
    return b->proba + (size_t)expert * (size_t)b->stride;
}

/* ---- bank.c */
struct svi_stacks_options svi_bank_stacks(const struct svi_bank_options *o);

/* Those that run, for d features, with nothing learned. False: no memory. */
bool svi_bank_build_members(svi_bank *b, int d, svs_error *err);

/* The parts that count classes by themselves know as many as the host. */
void svi_bank_know_classes(svi_bank *b, int classes);
/* What belongs to members that do not run is freed. */
void svi_bank_clear_others(svi_bank *b);
/* Members that do not fit any more into the budget go for good. */
void svi_bank_drop(svi_bank *b, int d, int classes);

/* ---- bank_score.c */
/* What least squares on Fourier features sees of a standardised row, into b->phi: the first Fourier features
 * of the row that the block scored last, and z. False: they are not drawn yet. */
bool svi_bank_phi(svi_bank *b, const float *z);

#endif
