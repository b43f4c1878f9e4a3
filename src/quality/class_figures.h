/* class_figures.h: what is counted of each class, the shares that follow from it, and their averages over
 * classes; and how often which class was taken for which.
 *
 * Macro averages take the classes that were labels or decisions alike; a share that is not known (nothing was
 * decided for the class, or no sample was of it) counts as 0. Weighted ones weigh a class by its labels; the
 * weighted recall is the accuracy. Balanced accuracy and G-mean are the arithmetic and the geometric mean of
 * the recalls of the classes that were labels. */
#ifndef SVI_CLASS_FIGURES_H
#define SVI_CLASS_FIGURES_H

#include <math.h>
#include <stdint.h>

#include "base/archive.h"

struct svi_class_count {
    int64_t support, predicted, hits; /* labels, decisions for it, both at once */
};

/* Of all that were taken for the class, the share that were of it. NAN: it was never decided for. */
static inline double svi_class_precision(const struct svi_class_count *c) {
    return c->predicted > 0 ? (double)c->hits / (double)c->predicted : NAN;
}

/* Of all that were of the class, the share that were taken for it. NAN: there was none. */
static inline double svi_class_recall(const struct svi_class_count *c) {
    return c->support > 0 ? (double)c->hits / (double)c->support : NAN;
}

/* The harmonic mean of both, 0 where only one is known. NAN: neither is. */
static inline double svi_class_f1(const struct svi_class_count *c) {
    const int64_t both = c->support + c->predicted;
    return both > 0 ? 2.0 * (double)c->hits / (double)both : NAN;
}

/* `count` classes; over all that was judged, and over the window. A matrix has count x count entries, rows
 * the truth, columns the decision; NULL: it is not kept (more than SVI_CONFUSION_MAX
 * classes) or not asked for. */
struct svi_class_table_reserve {
    int count;
    const svs_value *classes;
    const struct svi_class_count *all, *window; /* window: NULL = there is none */
    const int64_t *confusion, *confusion_window;
};

struct svi_class_averages {
    int64_t n, hits; /* labels; of these right */
    int commonest;   /* the class with most labels, the first of several; -1 = there is no label */
    double precision, recall, f1; /* macro; NAN: n is 0, as all that follow */
    double weighted_precision, weighted_f1;
    double balanced_accuracy, gmean;
};
struct svi_class_averages svi_class_averages(const struct svi_class_count *c, int classes);

/* ---- the confusion matrix */

#define SVI_CONFUSION_MAX 256 /* classes; a stream with more has no matrix */

typedef struct svi_confusion svi_confusion;

/* For up to max_classes classes, 8 min(max_classes, 256)^2 bytes; one that grows begins with capacity for two
 * and gets more by svi_confusion_reserve, before they come. NULL: SVS_NO_MEMORY. Owner: the caller. */
svi_confusion *svi_confusion_new(int max_classes, bool grows, svs_error *err);
svs_code svi_confusion_reserve(svi_confusion *c, int classes, svs_error *err); /* SVS_NO_MEMORY */
void svi_confusion_free(svi_confusion **c);
void svi_confusion_fetch(const svi_confusion *c); /* it is going to count soon (base/fetch.h) */
void svi_confusion_reset(svi_confusion *c);

/* truth, predicted: class indices; predicted -1 (no class was known) is in no column. */
void svi_confusion_add(svi_confusion *c, int truth, int predicted);

/* classes x classes counts into `out`, rows the truth, columns the decision. False: there are too many, or
 * there were. */
bool svi_confusion_matrix(const svi_confusion *c, int classes, int64_t *out);

void svi_confusion_archive(struct svi_archive *a, svi_confusion *c);

double svi_confusion_memory(int classes); /* bytes, with capacity for that many */

#endif
