/* The figures of a report. Nothing that metrics.c holds is stored twice: the counts of classes, the histogram
 * of scores and the ring of the window stay there. This object owns the total confusion matrix (that of the
 * window is counted on request), the baselines, and the residuals of a regression; these are archived. The
 * other arrays are buffers that each report fills again.
 *
 * The baselines count their own samples (baseline.h), because they compare sample by sample. */
#include "quality/quality_figures.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arrays.h"
#include "base/fail.h"
#include "base/fetch.h"
#include "quality/class_figures.h"

struct svi_quality_figures {
    svs_task task;
    int max_classes;
    svi_baseline *baseline;
    svi_interval *interval;   /* regress */
    svi_confusion *confusion; /* classify, as the rest */
    svs_value *classes;       /* buffers of a report; NULL until the first one of an object that grows */
    struct svi_class_count *all, *window;
    int64_t *matrix[2];
};

/* The axes of the buffers. Matrices end at SVI_CONFUSION_MAX classes, since they grow by the square. */
enum { CLASSES, CONFUSED, DIMS };

#define OWNER struct svi_quality_figures

static const struct svi_array arrays[] = {
    SVI_ARRAY_STRUCTS(OWNER, classes, int64_t, NULL, SVI_ARRAY_ANY, SVI_AXIS(CLASSES)),
    SVI_ARRAY_STRUCTS(OWNER, all, int64_t, NULL, SVI_ARRAY_ANY, SVI_AXIS(CLASSES)),
    SVI_ARRAY_STRUCTS(OWNER, window, int64_t, NULL, SVI_ARRAY_ANY, SVI_AXIS(CLASSES)),
    SVI_ARRAY(struct svi_quality_figures, matrix[0], NULL, SVI_AXIS(CONFUSED), SVI_AXIS(CONFUSED)),
    SVI_ARRAY(struct svi_quality_figures, matrix[1], NULL, SVI_AXIS(CONFUSED), SVI_AXIS(CONFUSED)),
};
static const struct svi_arrays report_arrays = SVI_ARRAYS(arrays, "the figures of classes");

struct report_dims {
    int32_t of[DIMS];
};

static struct report_dims report_dims(int max_classes) {
    return (struct report_dims){
        {max_classes, max_classes < SVI_CONFUSION_MAX ? max_classes : SVI_CONFUSION_MAX}};
}

/* Called for the next key of a batch, while the one before is still at work: its memory is then there. The
 * first call brings the objects, the second what they point to. */
void svi_quality_figures_fetch(const svi_quality_figures *f) {
    if (f->baseline)
        svi_fetch(f->baseline, 4 * 64);
    if (f->confusion)
        svi_fetch(f->confusion, 64);
}

void svi_quality_figures_fetch_parts(const svi_quality_figures *f) {
    if (f->confusion)
        svi_confusion_fetch(f->confusion);
}

/* Allocates the buffers of a report, once. */
static svs_code quality_reserve_report(svi_quality_figures *f, svs_error *err) {
    const struct report_dims dims = report_dims(f->max_classes);
    return f->all ? SVS_OK : svi_arrays_alloc(&report_arrays, f, dims.of, err);
}

/* The parts of the task. A failure leaves the others for svi_quality_figures_free. */
static bool quality_new_parts(svi_quality_figures *f, int64_t window, bool grows, svs_error *err) {
    if (!(f->baseline = svi_baseline_new(f->task, window, err)))
        return false;
    if (f->task == SVS_REGRESS)
        return (f->interval = svi_interval_new(window, err));
    /* One of many keys (grows) gets the buffers of a report only when somebody asks for one. */
    return (grows || quality_reserve_report(f, err) == SVS_OK) &&
           (f->confusion = svi_confusion_new(f->max_classes, grows, err));
}

svi_quality_figures *svi_quality_figures_new(svs_task task, int64_t window, int max_classes, bool grows,
                                             svs_error *err) {
    svi_quality_figures *f = svi_new_plain(sizeof *f, "the figures of quality", err);
    if (!f)
        return NULL;
    f->task = task;
    f->max_classes = max_classes;
    if (!quality_new_parts(f, window, grows, err))
        svi_quality_figures_free(&f);
    return f;
}

svs_code svi_quality_figures_reserve(svi_quality_figures *f, int classes, svs_error *err) {
    return f->confusion ? svi_confusion_reserve(f->confusion, classes, err) : SVS_OK;
}

void svi_quality_figures_free(svi_quality_figures **pf) {
    svi_quality_figures *f = *pf;
    if (!f)
        return;
    svi_baseline_free(&f->baseline);
    svi_interval_free(&f->interval);
    svi_confusion_free(&f->confusion);
    svi_arrays_free(&report_arrays, f);
    svi_free(f);
    *pf = NULL;
}

double svi_quality_figures_memory(svs_task task, int64_t window, int max_classes, bool grows, int classes) {
    const struct report_dims dims = report_dims(max_classes);
    const double base = sizeof(struct svi_quality_figures) + svi_baseline_memory(task, window);
    if (task == SVS_REGRESS)
        return base + svi_interval_memory(window);
    return base + (grows ? 0 : (double)svi_arrays_bytes(&report_arrays, dims.of)) +
           svi_confusion_memory(!grows        ? max_classes
                                : classes < 2 ? 2
                                              : classes);
}

void svi_quality_figures_reset(svi_quality_figures *f) {
    svi_baseline_reset(f->baseline);
    if (f->interval)
        svi_interval_reset(f->interval);
    if (f->confusion)
        svi_confusion_reset(f->confusion);
}

void svi_quality_figures_take_over(svi_quality_figures *f, svi_quality_figures *of) {
    /* The matrix does not depend on the window: it changes owner instead of being copied. */
    svi_confusion *empty = f->confusion;
    f->confusion = of->confusion;
    of->confusion = empty;
    svi_baseline_take_over(f->baseline, of->baseline);
    if (f->interval)
        svi_interval_take_over(f->interval, of->interval);
}

/* Regression only: the level of the interval, and its ends around a prediction. */
void svi_quality_figures_level(svi_quality_figures *f, double level) {
    if (f->interval)
        svi_interval_set_level(f->interval, level);
}

bool svi_quality_figures_ends(const svi_quality_figures *f, double *ends) {
    return f->interval && svi_interval_ends(f->interval, ends);
}

void svi_quality_figures_update(svi_quality_figures *f, const svs_step *step) {
    if (f->task == SVS_REGRESS) {
        svi_baseline_value(f->baseline, step->target, step->scores[0]);
        svi_interval_learn(f->interval, step->scores[0], step->leverage, step->target);
    } else {
        svi_baseline_class(f->baseline, step->label, step->predicted);
        svi_confusion_add(f->confusion, step->label, step->predicted);
    }
}

/* ---- figures */

static struct svi_figure *quality_number(struct svi_figure *out, const char *name, double value) {
    *out = (struct svi_figure){.name = name, .type = SVI_NUMBER, .as.number = value};
    return out + 1;
}

static const char *const quality_names[][2] = {{"accuracy_majority", "accuracy_majority.w"},
                                               {"accuracy_no_change", "accuracy_no_change.w"},
                                               {"precision_macro", "precision_macro.w"},
                                               {"recall_macro", "recall_macro.w"},
                                               {"precision_weighted", "precision_weighted.w"},
                                               {"f1_weighted", "f1_weighted.w"},
                                               {"balanced_accuracy", "balanced_accuracy.w"},
                                               {"gmean", "gmean.w"},
                                               {"ap", "ap.w"}};

#define QUALITY_NAMES ((int)(sizeof quality_names / sizeof *quality_names))

/* The figures of one stretch, in the order of quality_names. */
static void quality_classes(svi_metrics *metrics, bool window, const struct svi_class_count *counts,
                            int classes, double *value) {
    const struct svi_class_averages a = svi_class_averages(counts, classes);
    const struct svi_metrics_more more = svi_metrics_more(metrics, window);
    /* Accuracy of always naming the commonest class: what any model has to beat. */
    const double commonest = a.commonest < 0 ? NAN : (double)counts[a.commonest].support / (double)a.n;
    const double all[QUALITY_NAMES] = {
        commonest,     more.same,           a.precision, a.recall, a.weighted_precision,
        a.weighted_f1, a.balanced_accuracy, a.gmean,     more.ap};
    memcpy(value, all, sizeof all);
}

/* Regression: the errors of the two baselines, then how often the interval held. */
static int quality_value_figures(const svi_quality_figures *f, struct svi_figure *out) {
    struct svi_figure *const first = out;
    const struct svi_baseline_errors e = svi_baseline_errors(f->baseline);
    const struct svi_interval_quality q = svi_interval_quality(f->interval);
    out = quality_number(out, "rmse_no_change", e.same);
    out = quality_number(out, "rmse_mean", e.mean);
    out = quality_number(out, "coverage", q.coverage);
    out = quality_number(out, "interval_width", q.width);
    out = quality_number(out, "rmse_no_change.w", e.same_window);
    out = quality_number(out, "rmse_mean.w", e.mean_window);
    out = quality_number(out, "coverage.w", q.windowed);
    return (int)(out - first);
}

int svi_quality_figures_list(svi_quality_figures *f, svi_metrics *metrics, int classes,
                             struct svi_figure *out) {
    double value[QUALITY_NAMES];
    struct svi_figure *const first = out;
    if (f->task == SVS_REGRESS)
        return quality_value_figures(f, out);
    /* Without memory a report has no figures of classes. Learning does not stop for that. */
    if (quality_reserve_report(f, NULL) != SVS_OK)
        return 0;
    svi_metrics_class_counts(metrics, classes, f->all, f->window);
    /* As in metrics.h, the figures of all samples come first, then those of the window. */
    for (int window = 0; window < 2; window++) {
        quality_classes(metrics, window, window ? f->window : f->all, classes, value);
        for (int i = 0; i < QUALITY_NAMES; i++)
            out = quality_number(out, quality_names[i][window], value[i]);
    }
    return (int)(out - first);
}

void svi_quality_figures_table(svi_quality_figures *f, const svi_metrics *metrics, const svs_learner *learner,
                               bool matrices, struct svi_class_table *out) {
    *out = (struct svi_class_table){0};
    if (f->task == SVS_REGRESS || quality_reserve_report(f, NULL) != SVS_OK)
        return;
    const int n = svs_learner_class_count(learner);
    svi_metrics_class_counts(metrics, n, f->all, f->window);
    /* The table points to these copies, so it needs no learner. */
    for (int k = 0; k < n; k++)
        f->classes[k] = svs_learner_class(learner, k);
    *out = (struct svi_class_table){
        .count = n, .classes = f->classes, .all = f->all, .window = f->window};
    /* The matrix of the window is shown only together with the total one: with too many classes neither
     * is. */
    if (!matrices || !svi_confusion_matrix(f->confusion, n, f->matrix[0]))
        return;
    svi_metrics_confusion(metrics, n, f->matrix[1]);
    out->confusion = f->matrix[0];
    out->confusion_window = f->matrix[1];
}

/* The commonest class is that of all samples so far, known only in hindsight, which favours the baseline. */
struct svi_standing svi_quality_figures_standing(svi_quality_figures *f, const svi_metrics *metrics,
                                                 int classes) {
    struct svi_standing s = {.same = svi_baseline_same(f->baseline), .commonest_class = -1};
    if (f->task == SVS_REGRESS) {
        s.mean = svi_baseline_mean(f->baseline);
        return s;
    }
    if (quality_reserve_report(f, NULL) != SVS_OK)
        return s;
    svi_metrics_class_counts(metrics, classes, f->all, f->window);
    const struct svi_class_averages a = svi_class_averages(f->all, classes);
    s.commonest_class = a.commonest;
    if (a.commonest >= 0)
        s.commonest =
            svi_baseline_commonest(a.n, a.hits, f->all[a.commonest].support, f->all[a.commonest].hits);
    return s;
}

double svi_quality_figures_worse(const svi_quality_figures *f) {
    return svi_baseline_worse(f->baseline);
}

void svi_quality_figures_archive(struct svi_archive *a, svi_quality_figures *f) {
    svi_baseline_archive(a, f->baseline);
    if (f->task == SVS_REGRESS)
        svi_interval_archive(a, f->interval);
    else
        svi_confusion_archive(a, f->confusion);
}
