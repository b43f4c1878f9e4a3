/* bank_description.h: what a bank of learners (`method auto`) tells of itself, as values: its members, those
 * that are linear with weights in raw units, how they did recently, and the weights by which their scores
 * become one answer. The bank fills it (bank/describe.h), wire/bank_map.h packs it, and neither knows the
 * other. */
#ifndef SVI_BANK_DESCRIPTION_H
#define SVI_BANK_DESCRIPTION_H

#include <stdbool.h>
#include <stdint.h>

#include "svmstream/model.h"

#define SVI_BANK_MEMBERS 32 /* at most */
#define SVI_BANK_STACKS  3
#define SVI_BANK_EXPERTS                                                                                     \
    4 /* over the members: one that votes (regression: the best recently), and the stacks */

struct svi_member_description {
    const char *name, *kind;       /* of it; and the rule that it learns by */
    int64_t window;                /* samples that it holds; 0 = all, -1 = none */
    double recent;                 /* recent loss */
    double vote;                   /* its share of the votes; NAN: a regression has none */
    double stack[SVI_BANK_STACKS]; /* its weight in each stack */
    const double *W, *b;           /* linear: rows x d in raw units, and rows; else NULL */
    int fourier;                   /* Fourier features that it is a model of; 0: none */
};

struct svi_expert_description {
    const char *name;
    int64_t window;  /* of a stack: samples, 0 = all; -1: it is none */
    double share;    /* in the answer */
    double constant; /* of a stack */
    double slope; /* two classes: the score becomes a probability by sigmoid(slope s); 0: there are not two */
    svs_calibration law; /* more: of the scores; a 0: there are not */
};

struct svi_bank_description {
    uint64_t version; /* of the model */
    bool serves;      /* the published scores are the bank's */
    svs_task task;
    int d, rows, class_count;
    const svs_value *classes;
    int count; /* of members */
    struct svi_member_description member[SVI_BANK_MEMBERS];
    struct svi_expert_description expert[SVI_BANK_EXPERTS]; /* stack i is expert 1 + i */
    double clip;                                            /* of a member's score in a stack */
    double center, unit;        /* of a regression: what is subtracted from it before, and divided by */
    const double *mean, *scale; /* d: of standardised rows, z = clip((x - mean) scale) at +-10 */
    int fourier;                /* features drawn; 0: none yet, or no member is of them */
    uint64_t seed;
    double spread; /* of rows, by which frequencies are chosen */
};

/* What members said of a sample: `rows` scores each. */
struct svi_member_scores {
    int count, rows;
    const char *name[SVI_BANK_MEMBERS];
    const double *scores[SVI_BANK_MEMBERS];
};

#endif
