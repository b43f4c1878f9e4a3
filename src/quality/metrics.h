/* metrics.h: prequential quality (test, then train), cumulative and over the last `window` labelled
 * samples.
 *
 * classify:
 *  - accuracy
 *  - kappa (chance: the product of marginals)
 *  - kappa_t (chance: "same label as before")
 *  - f1 (macro over the classes that were labels or predictions)
 *  - auc, while there are two classes (the score's rank, from a fixed fine histogram: error below
 *    0.002)
 *  - logloss, a placeholder here that reliability.h fills
 *
 * regress: mae, rmse, r2.
 *
 * Windowed figures carry the suffix ".w". Windowed sums never drift. Cost per sample: O(1), 35 ns
 * for two classes; figures: about 10 us. Nothing is allocated outside _new and _reserve. */
#ifndef SVI_METRICS_H
#define SVI_METRICS_H

#include "base/archive.h"
#include "base/figure.h"
#include "quality/class_figures.h"
#include "svmstream/model.h"

#define SVI_METRICS_FIGURES 16 /* capacity that svi_metrics_figures needs */

typedef struct svi_metrics svi_metrics;

struct svi_metrics_options {
    svs_task task;
    int64_t window;  /* samples of the windowed figures, >= 1 */
    int max_classes; /* >= 1 */
    bool ranks;      /* classify: keep ranks of scores, 224 kB each for the totals and the window. If not,
                        the total auc and ap are unknown, and windowed ones cost a pass over the window */
    bool grows;      /* classify: begin with capacity for two classes; svi_metrics_reserve extends it */
};

/* NULL: SVS_INVALID, SVS_NO_MEMORY. Owner: the caller. */
svi_metrics *svi_metrics_new(const struct svi_metrics_options *o, svs_error *err);
void svi_metrics_free(svi_metrics **m);

/* Reserves capacity for `classes`, before a sample of a further class. SVS_NO_MEMORY: nothing has changed. */
svs_code svi_metrics_reserve(svi_metrics *m, int classes, svs_error *err);

/* Prefetch for the next sample (base/fetch.h): first the object, then what it points to. */
void svi_metrics_fetch(const svi_metrics *m);
void svi_metrics_fetch_parts(const svi_metrics *m);
void svi_metrics_reset(svi_metrics *m);

/* Copies the totals of `of` into *m, a new object with another window and otherwise the same options and
 * capacity; the windowed figures start with the next sample. */
void svi_metrics_take_over(svi_metrics *m, svi_metrics *of);

/* One scored sample. truth: class index; predicted: class index or -1 (counts as wrong); scores[rows], rows
 * as in svs_model. A regression: target and prediction. */
void svi_metrics_class(svi_metrics *m, int truth, int predicted, const double *scores, int rows);
void svi_metrics_value(svi_metrics *m, double truth, double predicted);

/* Fills at most SVI_METRICS_FIGURES figures; NAN = not known yet. Returns how many. */
int svi_metrics_figures(svi_metrics *m, struct svi_figure *out);

/* Exact totals: the difference of two gives the quality of the stretch between them. `began` counts resets;
 * totals with different `began` cannot be compared. */
struct svi_metrics_sums {
    int64_t judged, right, began;
    double squares; /* regress: sum of squared errors */
};
struct svi_metrics_sums svi_metrics_sums(const svi_metrics *m);

/* Accuracy, or the rmse of a regression, over the window, in O(1). NAN: no sample yet. */
double svi_metrics_windowed(const svi_metrics *m);

/* Fills all[classes] and window[classes] with the counts of each class. Does nothing for a regression. */
void svi_metrics_class_counts(const svi_metrics *m, int classes, struct svi_class_count *all,
                              struct svi_class_count *window);

/* Fills `out`, classes x classes, with the confusion matrix of the window: rows the truth, columns the
 * decision; samples without a decision are in no column. Cost: a pass over the window. */
void svi_metrics_confusion(const svi_metrics *m, int classes, int64_t *out);

/* The share of samples with the label of the sample before, and the average precision of class 1 while there
 * are two classes (NAN otherwise); over all, or over the window. NAN: no sample yet. */
struct svi_metrics_more {
    double same, ap;
};
struct svi_metrics_more svi_metrics_more(svi_metrics *m, bool window);

/* The whole state, bit for bit; loads into an object made with the same options. About 8 bytes per sample of
 * the window, 40 for a regression. */
void svi_metrics_archive(struct svi_archive *a, svi_metrics *m);

double svi_metrics_memory(const struct svi_metrics_options *o, int classes); /* bytes, for `classes` */

#endif
