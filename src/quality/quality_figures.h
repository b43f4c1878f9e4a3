/* quality_figures.h: figures beyond those of metrics.h, some of them derived from its counts on request:
 * averages over classes, average precision, the confusion matrix, the baselines that need no learner, and the
 * intervals of a regression. Suffix ".w": over the window.
 *
 * classify: accuracy_majority, accuracy_no_change, precision_macro, recall_macro, precision_weighted,
 * f1_weighted, balanced_accuracy, gmean, ap. regress: rmse_no_change, rmse_mean, coverage; and interval_width
 * over all. Nothing is allocated after _new, except by objects made with `grows`. */
#ifndef SVI_QUALITY_FIGURES_H
#define SVI_QUALITY_FIGURES_H

#include "quality/baseline.h"
#include "quality/interval.h"
#include "quality/metrics.h"
#include "svmstream/learner.h"

#define SVI_QUALITY_FIGURES 18 /* capacity that svi_quality_figures_list needs */

typedef struct svi_quality_figures svi_quality_figures;

/* Arguments as for svi_metrics_new. With `grows`, svi_quality_figures_reserve adds capacity beyond two
 * classes, and the arrays of a report are allocated with the first report; if that fails, the report has no
 * figures of classes. NULL: SVS_NO_MEMORY. Owner: the caller. */
svi_quality_figures *svi_quality_figures_new(svs_task task, int64_t window, int max_classes, bool grows,
                                             svs_error *err);
void svi_quality_figures_free(svi_quality_figures **f);

/* Prefetch for the next sample (base/fetch.h): first the parts, then what they point to. */
void svi_quality_figures_fetch(const svi_quality_figures *f);
void svi_quality_figures_fetch_parts(const svi_quality_figures *f);
void svi_quality_figures_reset(svi_quality_figures *f); /* as new; the level is kept */

/* Reserves capacity for `classes`, before a sample of a further class. SVS_NO_MEMORY. */
svs_code svi_quality_figures_reserve(svi_quality_figures *f, int classes, svs_error *err);

/* Moves the totals of `of` into *f, a new object with another window; the windowed figures restart. After
 * this `of` may only be freed. */
void svi_quality_figures_take_over(svi_quality_figures *f, svi_quality_figures *of);

/* Sets the level of intervals: svi_interval_set_level. */
void svi_quality_figures_level(svi_quality_figures *f, double level);

/* The ends of the intervals of a regression (svi_interval_ends). False: none are known. */
bool svi_quality_figures_ends(const svi_quality_figures *f, double *ends);

/* One sample whose label is known; *step holds the scores made before it was learned. */
void svi_quality_figures_update(svi_quality_figures *f, const svs_step *step);

/* Fills at most SVI_QUALITY_FIGURES figures and returns how many. metrics: of the same samples; classes: the
 * number that the learner knows. NAN: not known yet. */
int svi_quality_figures_list(svi_quality_figures *f, svi_metrics *metrics, int classes,
                             struct svi_figure *out);

/* Counts of every class of the learner, with `matrices` the confusion matrices too. Valid until the next call
 * of this function or of svi_quality_figures_list. */
void svi_quality_figures_table(svi_quality_figures *f, const svi_metrics *metrics, const svs_learner *learner,
                               bool matrices, struct svi_class_table *out);

/* The learner's advantages over the baselines; n = 0: no comparison (no sample yet, or the other task). */
struct svi_standing {
    struct svi_advantage same, commonest, mean;
    int commonest_class; /* -1: no label yet */
};
struct svi_standing svi_quality_figures_standing(svi_quality_figures *f, const svi_metrics *metrics,
                                                 int classes);

double svi_quality_figures_worse(const svi_quality_figures *f); /* svi_baseline_worse */

void svi_quality_figures_archive(struct svi_archive *a, svi_quality_figures *f);

/* Bytes; with `grows`, at `classes` classes. */
double svi_quality_figures_memory(svs_task task, int64_t window, int max_classes, bool grows, int classes);

#endif
