/* class_figures.h: counts per class, the shares derived from them, averages over classes, and the confusion
 * matrix.
 *
 * Macro averages cover every class that was a label or a decision, with equal weight; an undefined share (the
 * class was never decided, or never occurred) counts as 0. Weighted averages weigh a class by its labels; the
 * weighted recall is the accuracy. Balanced accuracy and G-mean are the arithmetic and the geometric mean of
 * the recalls of the classes that were labels. */
#ifndef SVI_CLASS_FIGURES_H
#define SVI_CLASS_FIGURES_H

#include <math.h>
#include <stdint.h>

#include "base/archive.h"

struct svi_class_count {
    int64_t support, predicted, hits; /* samples with this label, with this decision, with both */
};

/* The share of decisions for the class that were right. NAN: it was never decided. */
static inline double svi_class_precision(const struct svi_class_count *c) {
    return c->predicted > 0 ? (double)c->hits / (double)c->predicted : NAN;
}

/* The share of samples of the class that were decided as such. NAN: no sample was of it. */
static inline double svi_class_recall(const struct svi_class_count *c) {
    return c->support > 0 ? (double)c->hits / (double)c->support : NAN;
}

/* The harmonic mean of precision and recall, 0 where only one is defined. NAN: neither is. */
static inline double svi_class_f1(const struct svi_class_count *c) {
    const int64_t both = c->support + c->predicted;
    return both > 0 ? 2.0 * (double)c->hits / (double)both : NAN;
}

/* Counts of `count` classes over all scored samples and over the window. A matrix has count x count entries,
 * rows the truth, columns the decision; NULL: it is not kept (more than SVI_CONFUSION_MAX classes) or was not
 * requested. Everything is borrowed. */
struct svi_class_table {
    int count;
    const svs_value *classes;
    const struct svi_class_count *all, *window; /* window NULL: not counted */
    const int64_t *confusion, *confusion_window;
};

struct svi_class_averages {
    int64_t n, hits;              /* labelled samples; right ones */
    int commonest;                /* the class with most labels, the first of equals; -1: no label yet */
    double precision, recall, f1; /* macro averages; like those below NAN while n is 0 */
    double weighted_precision, weighted_f1;
    double balanced_accuracy, gmean;
};
struct svi_class_averages svi_class_averages(const struct svi_class_count *c, int classes);

/* ---- the confusion matrix */

#define SVI_CONFUSION_MAX 256 /* classes; a stream with more has no matrix */

typedef struct svi_confusion svi_confusion;

/* For up to max_classes classes: 8 min(max_classes, 256)^2 bytes. With `grows` the capacity begins at two
 * classes, and svi_confusion_reserve must extend it before a sample of a further class. NULL: SVS_NO_MEMORY.
 * Owner: the caller. */
svi_confusion *svi_confusion_new(int max_classes, bool grows, svs_error *err);
svs_code svi_confusion_reserve(svi_confusion *c, int classes, svs_error *err); /* SVS_NO_MEMORY */
void svi_confusion_free(svi_confusion **c);
void svi_confusion_fetch(const svi_confusion *c); /* prefetches what the next sample needs (base/fetch.h) */
void svi_confusion_reset(svi_confusion *c);

/* truth, predicted: class indices; predicted -1 (no class was known yet) counts in no column. */
void svi_confusion_add(svi_confusion *c, int truth, int predicted);

/* Copies classes x classes counts into `out`, rows the truth, columns the decision. False: more classes
 * occur, or occurred, than the matrix has capacity for. */
bool svi_confusion_matrix(const svi_confusion *c, int classes, int64_t *out);

void svi_confusion_archive(struct svi_archive *a, svi_confusion *c);

double svi_confusion_memory(int classes); /* bytes, with capacity for that many */

#endif
