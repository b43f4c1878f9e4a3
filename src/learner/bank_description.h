/* bank_description.h: the published description of a bank of learners (`method auto`), as values: its members
 * (linear ones with weights in raw units), their recent losses, and the weights that combine their scores
 * into one. The bank fills it in (bank/describe.h), wire/bank_map.h packs it, and neither knows the other. */
#ifndef SVI_BANK_DESCRIPTION_H
#define SVI_BANK_DESCRIPTION_H

#include <stdbool.h>
#include <stdint.h>

#include "svmstream/model.h"

#define SVI_BANK_MEMBERS 32 /* at most */
#define SVI_BANK_STACKS  3
#define SVI_BANK_EXPERTS                                                                                     \
    4 /* combinations of the members: a vote (regression: the best one recently), and the stacks */

#define SVI_BANK_LOGISTIC 2 /* logistic stacks */
#define SVI_BANK_MIXED    5 /* experts of the mixture: the combination, the logistic stacks, two base rates */

struct svi_member_description {
    const char *name, *kind;            /* kind: the rule by which it learns */
    int64_t window;                     /* samples that it holds; 0 = all, -1 = none */
    double recent;                      /* recent loss */
    double vote;                        /* its share of the votes; NAN in a regression */
    double stack[SVI_BANK_STACKS];      /* its weight in each stack */
    double logistic[SVI_BANK_LOGISTIC]; /* classify: its weight in each logistic stack */
    double mean, scale;                 /* classify: of its scores there, u = (s - mean) scale */
    const double *W, *b;                /* linear: rows x d in raw units, and rows; else NULL */
    int fourier;                        /* number of its random Fourier features; 0: none */
};

#define SVI_BANK_FORESTS    2
#define SVI_BANK_TREE_BYTES (480 << 10) /* nodes of a forest that an event has space for */

/* Boosted trees of a member (trees/forest.h has their packed form). */
struct svi_forest_description {
    const char *member;
    int64_t version; /* number of the labelled sample after which their fit began */
    int rows, trees; /* scores; trees, of which each `rows` in turn add to one score each */
    const double *base;
    const int32_t *first; /* trees: index of the first node of each */
    const uint8_t *nodes; /* NULL: too many for an event */
    size_t size;          /* bytes of the nodes */
    const int32_t *zero;  /* columns that count as 0, because they were renewed after the fit */
    int zero_count;
    bool sent; /* an earlier event has had the nodes */
};

struct svi_expert_description {
    const char *name;
    int64_t window;      /* of a stack: samples, 0 = all; -1: not a stack */
    double share;        /* its weight in the published score */
    double constant;     /* of a stack */
    double slope;        /* two classes: probability = sigmoid(slope s); 0: not two classes */
    svs_calibration law; /* three classes or more: calibration of the scores; a = 0: fewer */
};

/* An expert of the mixture (bank/mixture.h). */
struct svi_mixed_description {
    const char *name;
    double share;         /* its weight in the answer */
    double keep;          /* logistic: factor of its memory at each sample; 0: not logistic */
    double constant;      /* of a logistic stack */
    const double *counts; /* base rate: samples by class; else NULL */
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
    int mixed_count;                                        /* 0: a regression */
    struct svi_mixed_description mixed[SVI_BANK_MIXED];
    double clip;                /* limit of a member's score in a stack */
    double center, unit;        /* regression: a member learns (y - center) / unit */
    const double *mean, *scale; /* d: standardised rows are z = clip((x - mean) scale) at +-10 */
    int fourier;                /* random features drawn; 0: none yet, or no member uses them */
    uint64_t seed;
    double spread; /* of the rows, from which the frequencies follow */
    bool brief;    /* put no nodes of forests that were sent before */
    int forest_count;
    struct svi_forest_description forest[SVI_BANK_FORESTS];
    const double *origin; /* of the columns of the trees: a row is x - origin in single precision */
    int origins;
    double target_origin; /* of a regression, whose column 0 is the last target; it is added to the score */
    double sure;          /* limit of the trees' scores */
};

/* The scores of the members for a sample, `rows` each. */
struct svi_member_scores {
    int count, rows;
    const char *name[SVI_BANK_MEMBERS];
    const double *scores[SVI_BANK_MEMBERS];
};

#endif
