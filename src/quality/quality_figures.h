/* quality_figures.h: the figures that need more than metrics.h keeps, or are made of what it keeps when they
 * are asked for: averages over classes, the area under precision and recall, the confusion matrix, what would
 * have been said without a learner, and for a regression its intervals. Suffix ".w": over the window.
 *
 * classify: accuracy_majority, accuracy_no_change, precision_macro, recall_macro, precision_weighted,
 * f1_weighted, balanced_accuracy, gmean, ap. regress: rmse_no_change, rmse_mean, coverage; and interval_width
 * over all. Nothing is allocated after _new, but by those that grow. */
#ifndef SVI_QUALITY_FIGURES_H
#define SVI_QUALITY_FIGURES_H

#include "quality/baseline.h"
#include "quality/interval.h"
#include "quality/metrics.h"
#include "svmstream/learner.h"

#define SVI_QUALITY_FIGURES 18 /* room that svi_quality_figures_list needs at most */

typedef struct svi_quality_figures svi_quality_figures;

/* As svi_metrics_new. Those that grow get capacity for more than two classes by svi_quality_figures_reserve,
 * and the arrays of a report when the first one is asked for: without memory then they have no figures of
 * classes. NULL: SVS_NO_MEMORY. Owner: the caller. */
svi_quality_figures *svi_quality_figures_new(svs_task task, int64_t window, int max_classes, bool grows,
                                             svs_error *err);
void svi_quality_figures_free(svi_quality_figures **f);

/* It is going to judge a sample soon (base/fetch.h): first what it points to, then what these do. */
void svi_quality_figures_fetch(const svi_quality_figures *f);
void svi_quality_figures_fetch_parts(const svi_quality_figures *f);
void svi_quality_figures_reset(svi_quality_figures *f); /* as new, but for the level */

/* Before there are more than two classes: capacity for that many. SVS_NO_MEMORY. */
svs_code svi_quality_figures_reserve(svi_quality_figures *f, int classes, svs_error *err);

/* What `of` counts over all goes on in *f, a new one with another window, whose figures begin again. `of` is
 * only to be freed then. */
void svi_quality_figures_take_over(svi_quality_figures *f, svi_quality_figures *of);

/* Of intervals: svi_interval_set_level. */
void svi_quality_figures_level(svi_quality_figures *f, double level);

/* The ends of the intervals of a regression (svi_interval_ends). False: none are known. */
bool svi_quality_figures_ends(const svi_quality_figures *f, double *ends);

/* A sample whose label has come; *step: the scores that were made before it was learned. */
void svi_quality_figures_update(svi_quality_figures *f, const svs_step *step);

/* `metrics`: of the same samples; classes: those that the learner knows. NAN = not known yet. Returns how
 * many were filled in. */
int svi_quality_figures_list(svi_quality_figures *f, svi_metrics *metrics, int classes,
                             struct svi_figure *out);

/* Every class of the learner; with `matrices` the confusion matrices too. Valid until the next call of this
 * or svi_quality_figures_list. */
void svi_quality_figures_table(svi_quality_figures *f, const svi_metrics *metrics, const svs_learner *learner,
                               bool matrices, struct svi_class_table_reserve *out);

/* The learner against what needs none; n 0: it is not to be compared (no sample yet, or the other task). */
struct svi_standing {
    struct svi_advantage same, commonest, mean;
    int commonest_class; /* -1: none */
};
struct svi_standing svi_quality_figures_standing(svi_quality_figures *f, const svi_metrics *metrics,
                                                 int classes);

double svi_quality_figures_worse(const svi_quality_figures *f); /* svi_baseline_worse */

void svi_quality_figures_archive(struct svi_archive *a, svi_quality_figures *f);

/* Bytes; of those that grow with that many classes. */
double svi_quality_figures_memory(svs_task task, int64_t window, int max_classes, bool grows, int classes);

#endif
