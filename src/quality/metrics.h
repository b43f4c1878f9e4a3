/* metrics.h: prequential quality (test, then train), cumulative and over the last `window` labelled samples.
 *
 * classify: accuracy; kappa (chance: the product of marginals); kappa_t (chance: "same label as before"); f1
 * (macro over the classes that were labels or predictions); auc (while there are two classes; the
 * score's rank, from a fixed fine histogram: error below 0.002); logloss is not known here: reliability.h
 * has it, and its place is among these.
 * regress: mae, rmse, r2. Windowed figures carry the suffix ".w". Cost per sample: O(1), 35 ns for two
 * classes; figures: about 10 us. Nothing is allocated after _new, or _reserve. Windowed sums never drift. */
#ifndef SVI_METRICS_H
#define SVI_METRICS_H

#include "base/archive.h"
#include "base/figure.h"
#include "quality/class_figures.h"
#include "svmstream/model.h"

#define SVI_METRICS_FIGURES 16 /* room that svi_metrics_figures needs at most */

typedef struct svi_metrics svi_metrics;

struct svi_metrics_options {
    svs_task task;
    int64_t window;  /* samples of the windowed figures, >= 1 */
    int max_classes; /* >= 1 */
    bool ranks;      /* classify: without them auc and ap of all that was judged are not known, and those of
                        the window cost a pass over it; 224 kB each of all and of the window */
    bool grows;      /* classify: capacity for more than two classes comes by svi_metrics_reserve */
};

/* NULL: SVS_INVALID, SVS_NO_MEMORY. Owner: the caller. */
svi_metrics *svi_metrics_new(const struct svi_metrics_options *o, svs_error *err);
void svi_metrics_free(svi_metrics **m);

/* Before there are more than two classes: capacity for that many. SVS_NO_MEMORY: nothing has changed. */
svs_code svi_metrics_reserve(svi_metrics *m, int classes, svs_error *err);

/* It is going to judge a sample soon (base/fetch.h): first itself, then what it points to. */
void svi_metrics_fetch(const svi_metrics *m);
void svi_metrics_fetch_parts(const svi_metrics *m);
void svi_metrics_reset(svi_metrics *m);

/* What `of` counts over all goes on in *m, a new one with another window and the same options and capacity
 * else, of which the windowed figures begin with the next sample. */
void svi_metrics_take_over(svi_metrics *m, svi_metrics *of);

/* truth: class index; predicted: class index or -1 (counts as wrong); scores: `rows` of them, rows as in
 * svs_model. */
void svi_metrics_class(svi_metrics *m, int truth, int predicted, const double *scores, int rows);
void svi_metrics_value(svi_metrics *m, double truth, double predicted);

/* Fills at most SVI_METRICS_FIGURES figures; NAN = not known yet. Returns how many. */
int svi_metrics_figures(svi_metrics *m, struct svi_figure *out);

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
struct svi_metrics_more svi_metrics_more(svi_metrics *m, bool window);

/* The whole state, bit for bit; loads into an object made with the same options. About 8
 * bytes a sample of the window, 40 for a regression. */
void svi_metrics_archive(struct svi_archive *a, svi_metrics *m);

double svi_metrics_memory(const struct svi_metrics_options *o, int classes); /* bytes, with that many */

#endif
