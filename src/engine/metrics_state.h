/* metrics_state.h: what the prequential quality consists of, for metrics.c (samples, figures) and
 * metrics_archive.c (keeping it) alone. */
#ifndef SVI_METRICS_STATE_H
#define SVI_METRICS_STATE_H

#include "engine/metrics.h"
#include "engine/rank.h"
#include "engine/tally.h"

#define SVI_NO_BIN UINT16_MAX /* the score of this sample ranks nowhere */

struct svi_class_count {
    int64_t truth, predicted, hits; /* labels, predictions, both at once */
};

/* Exact counts of one stretch of the stream: all of it, or the window. */
struct svi_counts {
    int64_t n, hits, same;      /* same: the label was that of the sample before */
    struct svi_class_count *of; /* max_classes, and one more for "nothing was predicted" */
    struct svi_rank *rank;
};

/* What the window must know of a sample to take it out of the counts. */
struct svi_judged {
    uint16_t truth, predicted, bin, same;
};

/* Errors of a stretch of a regression. */
struct svi_errors {
    double absolute, square; /* sums */
    struct svi_spread truth;
};

struct svi_metrics {
    svs_task task;
    int max_classes;
    int classes;    /* seen so far */
    int last;       /* label of the sample before, -1 at first */
    int64_t window; /* samples in the ring at most */
    int64_t slot;   /* of the ring that is written next */
    int64_t filled; /* slots in use */
    struct svi_counts all, recent;
    struct svi_sum loss;       /* all */
    double fresh_loss;         /* of the slots before `slot` */
    struct svi_judged *judged; /* ring */
    double *losses;            /* ring; see tally.h for what is behind `slot` */
    struct svi_sum absolute, square;
    struct svi_spread truth;
    struct svi_errors fresh;
    struct svi_errors *errors; /* ring */
};

/* direction: 1 puts the sample in, -1 takes it out. No branch on what is hard to predict: a hit or not. */
static inline void svi_counts_add(struct svi_counts *c, struct svi_judged j, int direction) {
    int hit = j.predicted == j.truth ? direction : 0;
    c->n += direction;
    c->hits += hit;
    c->same += j.same * direction;
    c->of[j.truth].truth += direction;
    c->of[j.truth].hits += hit;
    c->of[j.predicted].predicted += direction;
    if (j.bin != SVI_NO_BIN)
        c->rank->count[j.bin][j.truth] += direction;
}

#endif
