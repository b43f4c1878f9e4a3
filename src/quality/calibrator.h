/* calibrator.h: scores of a classifier -> probabilities, learned one labelled sample at a time from scores
 * that were made before their sample was learned.
 *
 * The law is that of learner/probability.h: Platt's sigmoid (1999) of a s + b for two classes, with a rising
 * curve after it; softmax of a s_k + b_k for more. Each sample moves it by a Newton step on its log loss,
 * with the curvature of the samples before fading (online Newton step: Hazan, Agarwal, Kale 2007). What is
 * remembered is worth about
 *
 *     m = max(1000, 500 / share of the rarest class known so far)
 *
 * samples, and no more than half of those seen: with fewer of the rare class the slope would wander and cost
 * ranking. The curve remembers 3 m.
 *
 * Two classes and more classes have states of their own: a stream begins with two. Deterministic; nothing is
 * allocated after _new, or _reserve. Scores of any size, NaN too, are taken. One object, one thread at a
 * time. */
#ifndef SVI_CALIBRATOR_H
#define SVI_CALIBRATOR_H

#include <stdint.h>

#include "base/archive.h"
#include "quality/reliability.h"
#include "svmstream/model.h"

typedef struct svi_calibrator svi_calibrator;

/* max_classes >= 2; one that grows begins with capacity for two and gets that for more by
 * svi_calibrator_reserve, before they come. NULL: SVS_NO_MEMORY. Owner: the caller. */
svi_calibrator *svi_calibrator_new(int max_classes, bool grows, svs_error *err);
svs_code svi_calibrator_reserve(svi_calibrator *c, int classes, svs_error *err); /* SVS_NO_MEMORY */
void svi_calibrator_free(svi_calibrator **c);
void svi_calibrator_fetch(
    const svi_calibrator *c);                 /* it is going to be used soon (base/fetch.h); NULL is fine */
void svi_calibrator_reset(svi_calibrator *c); /* as new */

/* What it has learned for scores of that many classes, 2 to max_classes; valid until it learns. */
svs_calibration svi_calibrator_law(const svi_calibrator *c, int class_count);

/* What it says of such scores, rows of them: fills proba[class_count]. */
void svi_calibrator_probabilities(svi_calibrator *c, const double *scores, int rows, int class_count,
                                  double *proba);

/* A sample of two classes with one score, of class `truth`, 0 or 1. The law changes with each fourth alone,
 * so it waits for those and is judged together with them, to the same bits: `judge` (or NULL) then gets the
 * probability that the law gave it. svi_calibrator_settle judges what waits; it is needed before the figures
 * of `judge` are read and before it is freed. An archive is of what is settled. */
void svi_calibrator_learn_pair(svi_calibrator *c, double score, int truth, svi_reliability *judge);
void svi_calibrator_settle(svi_calibrator *c);

/* `proba`: what it has said of these scores, if nothing else was asked of it since; else, or NULL, that is
 * made again. The sample with these scores (rows of them for class_count classes, as in svs_model;
 * class_count >= 2) was of class `truth`, which may be one that had no score yet. */
void svi_calibrator_learn(svi_calibrator *c, const double *scores, int rows, int class_count, int truth,
                          const double *proba);

/* The whole state, bit for bit; loads into one from svi_calibrator_new with the same max_classes. */
void svi_calibrator_archive(struct svi_archive *a, svi_calibrator *c);

double svi_calibrator_memory(int max_classes, int classes); /* bytes, with that many classes */

/* ---- many scores at once
 *
 * The minimum of the log loss of (a, b) without a curve, for targets that leave a share to the rows that are
 * not there (Platt 1999): n_k rows of class k of K have (n_k + 1) / (n_k + K) of it and 1 / (n_k + K) of each
 * other. Two classes: Newton with halved steps (Lin, Lin, Weng 2007). More: Newton by coordinates, the slope
 * and each offset in turn, which are summed to 0.
 *
 * scores: n x rows, of rows that were not learned by what scored them; label: n class indices; rows and
 * class_count as in svs_model, class_count >= 2. Fills *a (above 0) and b[rows]. SVS_NO_MEMORY;
 * SVS_UNAVAILABLE: the scores rank the classes at random or the other way round, so that no slope above 0
 * fits. */
svs_code svi_calibrator_fit(const double *scores, const int32_t *label, int64_t n, int rows, int class_count,
                            double *a, double *b, svs_error *err);

#endif
