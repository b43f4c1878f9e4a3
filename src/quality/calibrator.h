/* calibrator.h: scores of a classifier -> probabilities, learned one labelled sample at a time from scores
 * that were made before their sample was learned.
 *
 * The law is that of learner/probability.h: Platt's sigmoid (1999) of a s + b for two classes, followed by a
 * rising curve; softmax of a s_k + b_k for more. Samples move it by Newton steps on their log loss, with a
 * curvature that fades (online Newton step: Hazan, Agarwal, Kale 2007). The memory is about
 *
 *     m = max(1000, 500 / share of the rarest class known so far)
 *
 * samples, and at most half of those seen. With fewer samples of the rare class the slope would wander and
 * cost ranking. The curve has a memory of 3 m.
 *
 * Two classes and more classes have separate states: a stream begins with two. Deterministic; nothing is
 * allocated outside _new and _reserve. Scores of any size are accepted, NaN included. One object, one thread
 * at a time. */
#ifndef SVI_CALIBRATOR_H
#define SVI_CALIBRATOR_H

#include <stdint.h>

#include "base/archive.h"
#include "quality/reliability.h"
#include "svmstream/model.h"

typedef struct svi_calibrator svi_calibrator;

/* max_classes >= 2. With `grows` the capacity begins at two classes, and svi_calibrator_reserve must be
 * called before a sample of a third class. NULL: SVS_NO_MEMORY. Owner: the caller. */
svi_calibrator *svi_calibrator_new(int max_classes, bool grows, svs_error *err);
svs_code svi_calibrator_reserve(svi_calibrator *c, int classes, svs_error *err); /* SVS_NO_MEMORY */
void svi_calibrator_free(svi_calibrator **c);

/* The scores are half the log odds already, of a model whose probabilities were learned by log loss: the law
 * of two classes leaves its start, which passes them on, only as the samples demand it. Without that a
 * handful of samples of a rare class would move it. An option like those of _new: not archived, kept by a
 * reset. */
void svi_calibrator_trust(svi_calibrator *c, bool log_odds);

void svi_calibrator_fetch(const svi_calibrator *c); /* prefetch (base/fetch.h); c may be NULL */
void svi_calibrator_reset(svi_calibrator *c);       /* as new; capacity is kept */

/* The law learned for scores of class_count classes, 2 to max_classes; valid until the next sample. */
svs_calibration svi_calibrator_law(const svi_calibrator *c, int class_count);

/* The probabilities of scores[rows]: fills proba[class_count]. */
void svi_calibrator_probabilities(svi_calibrator *c, const double *scores, int rows, int class_count,
                                  double *proba);

/* Learns a sample of two classes with one score. truth is 0 or 1. The law changes with every fourth
 * sample only. Up to four samples therefore wait and are processed together, with the same bits as
 * one by one. `judge` (or NULL) then receives the probabilities that the law gave them.
 * svi_calibrator_settle processes the waiting samples. Call it before the figures of `judge` are
 * read and before `judge` is freed. The archive settles. */
void svi_calibrator_learn_pair(svi_calibrator *c, double score, int truth, svi_reliability *judge);
void svi_calibrator_settle(svi_calibrator *c);

/* Learns a sample with these scores (`rows` of them for class_count >= 2 classes, as in svs_model) of class
 * `truth`, which may be a class that had no score yet. `proba`: the probabilities of these scores, if the
 * last call was svi_calibrator_probabilities for them; otherwise, or if NULL, they are computed again. */
void svi_calibrator_learn(svi_calibrator *c, const double *scores, int rows, int class_count, int truth,
                          const double *proba);

/* The whole state, bit for bit; loads into an object from svi_calibrator_new with the same max_classes. */
void svi_calibrator_archive(struct svi_archive *a, svi_calibrator *c);

double svi_calibrator_memory(int max_classes, int classes); /* bytes, with capacity for `classes` */

/* ---- many scores at once
 *
 * Minimises the log loss of (a, b) without a curve, with targets that are smoothed for unseen rows
 * (Platt 1999). A row of class k, one of n_k rows, has the target (n_k + 1) / (n_k + K) for k. Its
 * target for each of the other K - 1 classes is 1 / (n_k + K). Two classes: Newton with halved
 * steps (Lin, Lin, Weng 2007). More classes: Newton by blocks, the slope and the offsets in turn.
 * The offsets sum to 0.
 *
 * scores: n x rows, of rows that the scoring model has not learned; label: n class indices; rows and
 * class_count as in svs_model, class_count >= 2. Fills *a (above 0) and b[rows]. SVS_NO_MEMORY;
 * SVS_UNAVAILABLE: the scores rank the classes at random or in reverse, so that no slope above 0 fits. */
svs_code svi_calibrator_fit(const double *scores, const int32_t *label, int64_t n, int rows, int class_count,
                            double *a, double *b, svs_error *err);

#endif
