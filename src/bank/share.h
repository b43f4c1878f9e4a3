/* share.h: weights over experts by their losses so far, for the case that the best expert changes: fixed
 * share (Herbster and Warmuth 1998),
 *
 *     w_i <- w_i exp(-eta loss_i) / Z,   w_i <- (1 - alpha) w_i + alpha / n.
 *
 * Deterministic; nothing is allocated. */
#ifndef SVI_SHARE_H
#define SVI_SHARE_H

#include "base/archive.h"

#define SVI_SHARE_MAX 64

struct svi_share {
    int count;         /* n, 1 to SVI_SHARE_MAX */
    double eta, alpha; /* eta > 0 scales the losses; alpha in [0, 1] */
    double w[SVI_SHARE_MAX];
};

/* Equal weights 1 / count. */
void svi_share_init(struct svi_share *s, int count, double eta, double alpha);

/* loss: count values in [0, 1]; a negative one excludes its expert, whose weight becomes 0. */
void svi_share_learn(struct svi_share *s, const double *loss);

void svi_share_archive(struct svi_archive *a, struct svi_share *s);

#endif
