/* learner_held.h: the samples that a learner holds: their numbers, rows and labels, and the means of
 * features. */
#ifndef SVI_LEARNER_HELD_H
#define SVI_LEARNER_HELD_H

#include "svmstream/learner.h"

/* Counts of samples, for the window and for the waiting list. `window` and `waiting` count those
 * that have entered so far. A sample labelled late enters the window as a new one. The other two
 * number, from 0, the oldest sample still held. Where none is held, that is the number of the next
 * one. */
struct svi_learner_span {
    int64_t window, window_oldest;
    int64_t waiting, waiting_oldest;
};

/* Labelled samples since the model began, or was rebuilt with other settings. */
int64_t svi_learner_arrivals(const svs_learner *l);

/* O(1). */
void svi_learner_span(const svs_learner *l, struct svi_learner_span *out);

/* The svs_learner_class_count classes in their order; never NULL, valid until the next call. */
const svs_value *svi_learner_classes(const svs_learner *l);

/* The newest raw row of the window, svs_learner_dimension values; NULL when the window is empty. Valid until
 * the next call on the learner. O(1), unless the newest samples were removed by id. */
const double *svi_learner_newest(const svs_learner *l);

/* The row of the i-th oldest sample of the window, as above (NULL: it was removed), and its number. False:
 * the window has fewer. O(1). */
bool svi_learner_held_row(const svs_learner *l, int64_t i, const double **row, int64_t *number);

/* The row of the newest sample with this id that waits for a label; NULL: none does. Valid until the next
 * call. */
const double *svi_learner_waiting_row(const svs_learner *l, svs_value id);

/* Replaces the scores remembered with the last sample, which waits for a label, by other ones of the same
 * number. */
void svi_learner_rescore(svs_learner *l, const double *scores, int predicted);

/* A sample of the window. */
struct svi_held_sample {
    const double *x; /* as many values as svs_learner_dimension */
    int64_t number;
    int label; /* class index; -1 in a regression */
    double target;
    double weight; /* its weight before forgetting: the producer's times the factor of its class */
    double own;    /* the weight given by its producer */
};

/* Calls `found` for each sample with this id in the window, the newest first. */
void svi_learner_each_held(const svs_learner *l, svs_value id,
                           void (*found)(void *user, const struct svi_held_sample *s), void *user);

/* The newest sample of the window. False: it is empty. */
bool svi_learner_newest_sample(const svs_learner *l, struct svi_held_sample *out);

/* Unlearns a sample with this label and weight, in a learner without a window and without forgetting. As
 * exact as the sums of all samples learned; O(d^3). */
void svi_learner_take_back(svs_learner *l, const struct svi_held_sample *s);

/* How long samples wait for a label from now on: options.labels_ttl, > 0 as it was at svs_learner_new. */
void svi_learner_set_labels_ttl(svs_learner *l, double seconds);

/* For one of several learners of the same samples: where P has lost digits, w is refined only after every
 * 16th labelled sample. In between it may be off by about 1e-9 of its size. Not archived. */
void svi_learner_relax(svs_learner *l, bool relaxed);

/* x'Px of a raw row (svs_learner_dimension values) with the present model and weights, as svs_step has it for
 * a learned row. O(D^2). Changes nothing. */
double svi_learner_leverage(svs_learner *l, const double *x);

/* Unweighted mean of a raw feature over the samples in the window, learned or not; 0 when it is empty. The
 * sum is exact, so the mean depends on the rows alone, bit for bit, whatever passed through the window
 * before. The first call for a feature is a pass over the window and starts to keep its sum; after that a
 * call is O(1), and so is each sample added or removed, for each such feature.
 *
 * Without a window: the mean over all samples learned, by their weights, reduced by forgetting. */
double svi_learner_mean(svs_learner *l, int feature);

/* Removes all but the last `last` samples from the window, exactly, by one rebuild from those that stay, but
 * keeps at least `least` (>= 0) of those held. Only between two samples. Returns the number removed; 0
 * without a window. */
int svi_learner_shrink(svs_learner *l, int64_t last, int64_t least);

/* The class index of a label, which is added if it is new, without learning a sample: keeps the class indices
 * of several learners of a stream equal. SVS_NO_MEMORY, SVS_LIMIT. */
svs_code svi_learner_meet_class(svs_learner *l, svs_value y, svs_error *err);

#endif
