/* metrics.h: prequential quality (test, then train), cumulative and over the last `window` labelled samples.
 *
 * classify: accuracy; kappa (chance: the product of marginals); kappa_t (chance: "same label as before"); f1
 * (macro over the classes that were labels or predictions); auc (while there are two classes; the
 * score's rank, from a fixed fine histogram: error below 0.002); logloss (natural log; two classes: sigmoid
 * of twice the score, else softmax of them; a class without a score has no probability; clipped at 1e-15).
 * regress: mae, rmse, r2. Windowed figures carry the suffix ".w". Cost per sample: O(rows), 35 ns for two
 * classes; figures: about 10 us. Nothing is allocated after _new. Windowed sums never drift. */
#ifndef SVI_METRICS_H
#define SVI_METRICS_H

#include "base/archive.h"
#include "svmstream/model.h"
#include "wire/class_table.h"
#include "wire/event.h"

#define SVI_METRICS_FIGURES 16 /* room that svi_metrics_figures needs at most */

typedef struct svi_metrics svi_metrics;

/* window, max_classes >= 1. NULL: SVS_INVALID, SVS_NO_MEMORY. Owner: the caller. */
svi_metrics *svi_metrics_new(svs_task task, int64_t window, int max_classes, svs_error *err);

/* The same without the ranks of all scores: auc and ap of all that was judged are not known, those of the
 * window are. */
svi_metrics *svi_metrics_new_lean(svs_task task, int64_t window, int max_classes, svs_error *err);
void svi_metrics_free(svi_metrics **m);

/* It is going to judge a sample soon (base/fetch.h): first itself, then what it points to. */
void svi_metrics_fetch(const svi_metrics *m);
void svi_metrics_fetch_parts(const svi_metrics *m);
void svi_metrics_reset(svi_metrics *m);

/* Is logloss of no use, because another one is reported (reliability.h)? It takes more time than the rest. */
void svi_metrics_leave_loss(svi_metrics *m, bool left_out);

/* What was counted over all goes on in *m, a new one with another window (the same task and classes), of
 * which the windowed figures begin with the next sample. *of is left as a new one. */
void svi_metrics_take_over(svi_metrics *m, svi_metrics *of);

/* truth: class index; predicted: class index or -1 (counts as wrong); scores: `rows` of them, rows as in
 * svs_model; class_count: known when the scores were made. */
void svi_metrics_class(svi_metrics *m, int truth, int predicted, const double *scores, int rows,
                       int class_count);
void svi_metrics_value(svi_metrics *m, double truth, double predicted);

/* Fills at most SVI_METRICS_FIGURES figures; NAN = not known yet. Returns how many. */
int svi_metrics_figures(const svi_metrics *m, struct svi_figure *out);

/* Exact sums over all that was judged: the quality of a stretch comes from the difference of two. `began`:
 * how often it was reset; sums from before and after are not to be compared. */
struct svi_metrics_sums {
    int64_t judged, right, began;
    double squares; /* of errors: regress */
};
struct svi_metrics_sums svi_metrics_sums(const svi_metrics *m);

/* Accuracy, or of a regression the rmse, over the window, at little cost; NAN: nothing was judged. */
double svi_metrics_windowed(const svi_metrics *m);

/* What each class has, over all and over the window: `classes` counts each. Nothing for a regression. */
void svi_metrics_class_counts(const svi_metrics *m, int classes, struct svi_class_count *all,
                              struct svi_class_count *window);

/* The confusion matrix of the window into `out`, classes x classes, rows the truth, columns the decision;
 * what was not decided is in no column. Cost: a pass over the window. */
void svi_metrics_confusion(const svi_metrics *m, int classes, int64_t *out);

/* How often the label was the one before, and the area under precision and recall of class 1 while there are
 * two classes (NAN else); over all, or over the window. */
struct svi_metrics_more {
    double same, ap; /* share of the samples; NAN: none */
};
struct svi_metrics_more svi_metrics_more(const svi_metrics *m, bool window);

/* The whole state, bit for bit; loads into an object made with the same task, window and classes. About 16
 * bytes a sample of the window, 40 for a regression. */
void svi_metrics_archive(struct svi_archive *a, svi_metrics *m);

double svi_metrics_memory(svs_task task, int64_t window, int max_classes, bool lean); /* bytes */

#endif
