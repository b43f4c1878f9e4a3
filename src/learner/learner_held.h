/* learner_held.h: what a learner holds: which samples by number, the newest of them, the means of features.
 */
#ifndef SVI_LEARNER_HELD_H
#define SVI_LEARNER_HELD_H

#include "svmstream/learner.h"

/* How many samples have entered the window, and waited for a label, so far (a late label's sample enters the
 * window as a new one); and the number of the oldest that is still there, counted from 0: that of the next
 * one when none is. */
struct svi_learner_span {
    int64_t window, window_oldest;
    int64_t waiting, waiting_oldest;
};

/* O(1). */
void svi_learner_span(const svs_learner *l, struct svi_learner_span *out);

/* Its classes in their order, svs_learner_class_count of them; never NULL, valid until the next call. */
const svs_value *svi_learner_classes(const svs_learner *l);

/* The raw row that came last of those in the window: as many values as svs_learner_dimension. NULL when it is
 * empty. Valid until the next call on the learner. O(1), but where the newest were taken out by id. */
const double *svi_learner_newest(const svs_learner *l);

/* The i-th oldest of the window: its row, as above (NULL: it was taken out), and its number. False: there are
 * fewer. O(1). */
bool svi_learner_held_row(const svs_learner *l, int64_t i, const double **row, int64_t *number);

/* The row of the newest sample of that id that waits for a label, NULL: none does. Valid until the next call.
 */
const double *svi_learner_waiting_row(const svs_learner *l, svs_value id);

/* The sample that came last, and waits: other scores are remembered with it than those that the learner gave,
 * as many of them. */
void svi_learner_rescore(svs_learner *l, const double *scores, int predicted);

/* A sample of the window. */
struct svi_held_sample {
    const double *x; /* as many values as svs_learner_dimension */
    int64_t number;
    int label; /* class index; -1: a regression */
    double target;
    double weight; /* that it counts, before it fades */
    double own;    /* that its producer gave it */
};

/* Each sample of that id in the window, the newest first. */
void svi_learner_each_held(const svs_learner *l, svs_value id,
                           void (*found)(void *user, const struct svi_held_sample *s), void *user);

/* The newest sample of the window. False: it is empty. */
bool svi_learner_newest_sample(const svs_learner *l, struct svi_held_sample *out);

/* A learner without a window and without forgetting, that learns every sample: takes one that it learned,
 * with this label and weight, out again. As exact as the sums of all that it learned; O(d^3). */
void svi_learner_take_back(svs_learner *l, const struct svi_held_sample *s);

/* One of many learners of a sample: where P has lost digits, w is refined after every sixteenth labelled
 * sample only. Between, it may be off by some 1e-9 of its size. No part of the archive. */
void svi_learner_relax(svs_learner *l, bool relaxed);

/* x'Px of a raw row of as many values as svs_learner_dimension, by the model of now and the weights that
 * samples have now: what svs_step says of a row that is learned. O(D^2). Changes nothing. */
double svi_learner_leverage(svs_learner *l, const double *x);

/* The mean of a raw feature over the samples in the window, each counting alike, learned or not; 0 when there
 * are none. As exact as a double is, whatever passed through the window before: it depends on the rows alone,
 * bit for bit. The first call for a feature is a pass over the window and begins to keep its sum; then a call
 * costs O(1), and a sample that comes or leaves O(1) for each such feature.
 *
 * Without a window: over all samples learned, by their weights and with forgetting as they have faded. */
double svi_learner_mean(svs_learner *l, int feature);

/* Removes the samples that came into the window before the last `last` ones, exactly, by one rebuild from
 * what stays, but leaves `least` (at least 0) of those that it holds. Between two samples. Returns how many;
 * 0 without a window. */
int svi_learner_shrink(svs_learner *l, int64_t last, int64_t least);

/* The class index of a label that the learner could not be taught, with a class made for it if need be: so
 * that classes have the same indices in learners of the same stream. SVS_NO_MEMORY, SVS_LIMIT. */
svs_code svi_learner_meet_class(svs_learner *l, svs_value y, svs_error *err);

#endif
