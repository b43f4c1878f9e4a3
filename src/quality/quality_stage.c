/* The parts that assess scores, in the order in which a sample meets them.
 *
 * When it has scores: the probabilities of the serving model's calibrator, the decision by prices, the ends
 * of an interval. When its label is known: each model's calibrator learns that model's own scores, then
 * figures count what was published. The engine feeds the quality alarm (alarm.c) itself, because that needs
 * the row. When a model is rebuilt or a refit is replaced, its calibrator restarts: scores have another scale
 * then.
 *
 * Invariant: calibrators may hold samples that `reliability` has not counted yet. quality_settle flushes
 * them, before `reliability` is read, replaced or updated directly, and before one calibrator alone is reset.
 *
 * Another window size replaces rings: svi_quality_window_make, which can fail, runs before
 * svi_quality_stage_take_window, which cannot. */
#include "quality/quality_stage.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "learner/probability.h"

static inline bool quality_is_priced(const struct svi_quality_stage *q) {
    return q->prices && svi_decision_set_up(q->prices);
}

void svi_quality_stage_configure(struct svi_quality_stage *q, const struct svi_quality_options *o) {
    svi_alarm_configure(&q->alarm, o->alarm_rate);
    q->alarm.rises.a_day = o->a_day;
    svi_quality_figures_level(q->figures, o->interval);
    /* Setting prices forgets the class names matched so far, so equal prices are left alone. */
    if (q->prices && strcmp(q->prices->cost.text, o->prices) != 0)
        svi_decision_set(q->prices, o->prices);
    q->plain = q->proba && !quality_is_priced(q);
    if (q->proba)
        svi_calibrator_trust(q->calibrator[0], o->log_odds);
}

void svi_quality_prices_free(struct svi_decision **d) {
    if (*d)
        svi_decision_free(*d);
    svi_free(*d);
    *d = NULL;
}

/* One of many streams reserves memory for prices only if it has some; a single stream may get them later. */
static bool quality_has_prices(const struct svi_quality_options *o) {
    return o->probabilities && !(o->many && strcmp(o->prices, "none") == 0);
}

svs_code svi_quality_prices_new(struct svi_decision **d, const struct svi_quality_options *o,
                                svs_error *err) {
    *d = NULL;
    if (!quality_has_prices(o))
        return SVS_OK;
    *d = svi_alloc(sizeof **d);
    svs_code code =
        *d ? svi_decision_new(*d, o->max_classes, err) : svi_fail_memory(err, "the prices of decisions");
    if (code != SVS_OK)
        svi_quality_prices_free(d);
    return code;
}

static bool quality_has_reliability(const struct svi_quality_options *o) {
    return o->probabilities && !o->many;
}

static svs_code quality_new_probabilities(struct svi_quality_stage *q, const struct svi_quality_options *o,
                                          svs_error *err) {
    for (int i = 0; i <= o->second; i++)
        if (!(q->calibrator[i] = svi_calibrator_new(o->max_classes, o->many, err)))
            return SVS_NO_MEMORY;
    SVI_TRY(svi_quality_prices_new(&q->prices, o, err));
    q->proba = svi_alloc_plain_array((size_t)o->max_classes, sizeof *q->proba);
    return q->proba ? SVS_OK : svi_fail_memory(err, "the probabilities of a sample");
}

svs_code svi_quality_stage_new(struct svi_quality_stage *q, const struct svi_quality_options *o,
                               svs_error *err) {
    q->task = o->task;
    q->classes = o->max_classes;
    svi_alarm_init(&q->alarm, o->task == SVS_REGRESS, o->alarm_rate);
    /* The parts of the window are made as for a change of window. They are stored even after a failure, so
     * that svi_quality_stage_free releases them. */
    struct svi_quality_window w = {0};
    svs_code code = svi_quality_window_make(&w, o, 0, err);
    q->metrics = w.metrics;
    q->figures = w.figures;
    q->reliability = w.reliability;
    if (!q->figures)
        return SVS_NO_MEMORY;
    if (code == SVS_OK && o->probabilities)
        code = quality_new_probabilities(q, o, err);
    svi_quality_stage_configure(q, o);
    return code;
}

/* Every part only grows, so a failure half-way leaves a usable stage with some spare capacity. */
svs_code svi_quality_stage_reserve(struct svi_quality_stage *q, int classes, svs_error *err) {
    SVI_TRY(svi_metrics_reserve(q->metrics, classes, err));
    SVI_TRY(svi_quality_figures_reserve(q->figures, classes, err));
    for (int i = 0; i < 2; i++)
        if (q->calibrator[i])
            SVI_TRY(svi_calibrator_reserve(q->calibrator[i], classes, err));
    return SVS_OK;
}

/* Flushes the samples that calibrators hold back into the figures of probabilities. */
static void quality_settle(const struct svi_quality_stage *q) {
    for (int i = 0; i < 2; i++)
        if (q->calibrator[i])
            svi_calibrator_settle(q->calibrator[i]);
}

void svi_quality_stage_forget_online(struct svi_quality_stage *q) {
    quality_settle(q);
    if (q->proba)
        svi_calibrator_reset(q->calibrator[0]);
}

void svi_quality_stage_forget_refit(struct svi_quality_stage *q) {
    quality_settle(q);
    if (q->calibrator[1])
        svi_calibrator_reset(q->calibrator[1]);
}

void svi_quality_stage_take_calibrator(struct svi_quality_stage *q, svi_calibrator **fresh) {
    /* Samples that the former calibrator holds back are counted before it leaves. */
    svi_calibrator *before = q->calibrator[0];
    if (!*fresh)
        return;
    quality_settle(q);
    q->calibrator[0] = *fresh;
    *fresh = before;
    svi_quality_stage_forget_refit(q);
}

static struct svi_metrics_options quality_metrics(const struct svi_quality_options *o) {
    return (struct svi_metrics_options){.task = o->task,
                                        .window = o->window,
                                        .max_classes = o->max_classes,
                                        .ranks = !o->many,
                                        .grows = o->many};
}

svs_code svi_quality_window_make(struct svi_quality_window *w, const struct svi_quality_options *o,
                                 int classes, svs_error *err) {
    const struct svi_metrics_options metrics = quality_metrics(o);
    w->figures = svi_quality_figures_new(o->task, o->window, o->max_classes, o->many, err);
    w->metrics = w->figures ? svi_metrics_new(&metrics, err) : NULL;
    if (!w->metrics || svi_metrics_reserve(w->metrics, classes, err) != SVS_OK)
        return SVS_NO_MEMORY;
    if (quality_has_reliability(o) && !(w->reliability = svi_reliability_new(o->window, err)))
        return SVS_NO_MEMORY;
    return SVS_OK;
}

void svi_quality_window_clear(struct svi_quality_window *w) {
    svi_metrics_free(&w->metrics);
    svi_quality_figures_free(&w->figures);
    svi_reliability_free(&w->reliability);
}

void svi_quality_stage_take_window(struct svi_quality_stage *q, struct svi_quality_window *w) {
    /* The figures that are handed back must be complete, so calibrators are flushed into them first. */
    const struct svi_quality_window before = {q->metrics, q->figures, q->reliability};
    quality_settle(q);
    svi_metrics_take_over(w->metrics, q->metrics);
    svi_quality_figures_take_over(w->figures, q->figures);
    q->metrics = w->metrics;
    q->figures = w->figures;
    if (q->reliability) {
        svi_reliability_take_over(w->reliability, q->reliability);
        q->reliability = w->reliability;
    }
    *w = before;
}

void svi_quality_stage_free(struct svi_quality_stage *q) {
    svi_alarm_free(&q->alarm);
    svi_metrics_free(&q->metrics);
    svi_quality_figures_free(&q->figures);
    svi_calibrator_free(&q->calibrator[0]);
    svi_calibrator_free(&q->calibrator[1]);
    svi_reliability_free(&q->reliability);
    svi_quality_prices_free(&q->prices);
    svi_free(q->proba);
    q->proba = NULL;
}

void svi_quality_stage_reset(struct svi_quality_stage *q) {
    svi_alarm_reset(&q->alarm);
    svi_metrics_reset(q->metrics);
    svi_quality_figures_reset(q->figures);
    q->proba_count = 0;
    if (!q->proba)
        return;
    svi_calibrator_reset(q->calibrator[0]);
    svi_quality_stage_forget_refit(q);
    if (q->reliability)
        svi_reliability_reset(q->reliability);
    if (q->prices)
        svi_decision_forget(q->prices); /* classes may have other numbers from here on */
}

bool svi_quality_stage_ends(const struct svi_quality_stage *q, double *ends) {
    return svi_quality_figures_ends(q->figures, ends);
}

/* ---- probabilities */

/* The class with the least expected price. Classes that appeared since the last decision are added first. */
static int quality_decide(struct svi_quality_stage *q, const svs_learner *learner, const double *proba,
                          int class_count, int by_score) {
    struct svi_decision *d = q->prices;
    while (d->known < class_count)
        svi_decision_know(d, svs_learner_class(learner, d->known));
    return svi_decision_of(d, proba, class_count, by_score);
}

/* Two classes and one score: the calibrator collects such samples and updates `reliability` itself. */
static inline bool quality_is_pair(int rows, int class_count, int label) {
    return rows == 1 && class_count == 2 && (label == 0 || label == 1);
}

/* Are the probabilities of a sample needed at once? If its calibrator will update the figures, they are
 * not. */
static inline bool quality_needs(const struct svi_quality_stage *q, const svs_step *served, bool wanted) {
    return wanted || quality_is_priced(q) ||
           (served->label >= 0 && !quality_is_pair(served->rows, served->class_count, served->label));
}

/* Records which scores are published, whether or not their probabilities are computed now: the calibrator
 * that learns them later decides by that whether they count in the figures. */
void svi_quality_stage_score(struct svi_quality_stage *q, const svs_learner *learner, svs_step *served,
                             bool refit, bool wanted) {
    const bool has = q->proba && served->class_count > 1 && q->calibrator[refit];
    q->ranged = q->task == SVS_REGRESS && svi_quality_stage_ends(q, q->ends);
    q->scored = has ? served->scores : NULL;
    q->scored_count = served->class_count;
    q->serving = refit;
    q->judged = false;
    q->proba_count = 0;
    if (!has || !quality_needs(q, served, wanted))
        return;
    /* From here on q->proba belongs to this sample; svi_quality_stage_calibrate may pass it on. */
    q->proba_count = served->class_count;
    svi_calibrator_probabilities(q->calibrator[refit], served->scores, served->rows, served->class_count,
                                 q->proba);
    if (quality_is_priced(q))
        served->predicted = quality_decide(q, learner, q->proba, served->class_count, served->predicted);
}

int svi_quality_stage_peek(struct svi_quality_stage *q, const svs_learner *learner, const svs_model *m,
                           const double *scores, double *proba, int *count) {
    /* A row outside the stream gets its own array of probabilities: q->proba belongs to the present
     * sample. */
    svi_calibrator *c = q->calibrator[m->refit];
    const int by_score = svs_model_predict(m, scores);
    *count = 0;
    if (!q->proba || m->class_count < 2 || !c)
        return by_score;
    svi_calibrator_probabilities(c, scores, m->rows, m->class_count, proba);
    *count = m->class_count;
    return quality_is_priced(q) ? quality_decide(q, learner, proba, m->class_count, by_score) : by_score;
}

/* Allocates a calibrator when it is first needed. Without memory, scores have no probabilities until a later
 * attempt succeeds. */
static bool quality_make_calibrator(struct svi_quality_stage *q, bool refit) {
    svs_error err;
    q->calibrator[refit] = svi_calibrator_new(q->classes, false, &err);
    return q->calibrator[refit];
}

static inline bool quality_has_calibrator(struct svi_quality_stage *q, bool refit) {
    return q->calibrator[refit] || quality_make_calibrator(q, refit);
}

/* The calibrator that passes samples on to `reliability`. When it changes, the former one is flushed first,
 * so that samples are counted in order: sums of doubles depend on it. */
static inline void quality_score_by(struct svi_quality_stage *q, bool refit) {
    if (q->judging != refit)
        quality_settle(q);
    q->judging = refit;
    q->judged = true;
}

void svi_quality_stage_calibrate(struct svi_quality_stage *q, bool refit, const double *scores, int rows,
                                 int class_count, int label) {
    /* A model's scores may differ from the published ones: only the published probabilities count in the
     * figures, and only those can be reused as `proba`. */
    const bool served = refit == q->serving && scores == q->scored && class_count == q->scored_count;
    if (!q->proba || label < 0 || !quality_has_calibrator(q, refit))
        return;
    if (quality_is_pair(rows, class_count, label)) {
        if (served)
            quality_score_by(q, refit);
        svi_calibrator_learn_pair(q->calibrator[refit], scores[0], label, served ? q->reliability : NULL);
    } else {
        svi_calibrator_learn(q->calibrator[refit], scores, rows, class_count, label,
                             served && q->proba_count > 0 ? q->proba : NULL);
    }
}

/* The second calibrator is that of a refit, or of the bank whose scores are published instead of m's. */
svs_calibration svi_quality_stage_law(const struct svi_quality_stage *q, const svs_model *m) {
    const svi_calibrator *c = q->calibrator[m->refit || m->elsewhere];
    return q->proba && c && m->class_count > 1 ? svi_calibrator_law(c, m->class_count) : (svs_calibration){0};
}

/* Counts the sample in every figure. Samples whose probabilities went to a calibrator (`judged`) are counted
 * by that one. */
void svi_quality_stage_update(struct svi_quality_stage *q, const svs_step *served) {
    if (q->task == SVS_REGRESS)
        svi_metrics_value(q->metrics, served->target, served->scores[0]);
    else
        svi_metrics_class(q->metrics, served->label, served->predicted, served->scores, served->rows);
    svi_quality_figures_update(q->figures, served);
    if (!q->reliability || q->judged || q->proba_count == 0 || served->label < 0)
        return;
    quality_settle(q); /* samples are counted in order */
    svi_reliability_add(q->reliability, q->proba, q->proba_count, served->label);
}

int svi_quality_stage_figures(struct svi_quality_stage *q, struct svi_figure *out) {
    struct svi_figure mine[SVI_RELIABILITY_FIGURES];
    const int before = svi_metrics_figures(q->metrics, out);
    int count = before;
    if (!q->reliability)
        return count;
    quality_settle(q);
    svi_reliability_figures(q->reliability, mine);
    /* A figure that metrics.h has as a placeholder (logloss) is replaced, the others are appended. */
    for (int i = 0; i < SVI_RELIABILITY_FIGURES; i++) {
        int at = 0;
        while (at < before && strcmp(out[at].name, mine[i].name) != 0)
            at++;
        out[at < before ? at : count++] = mine[i];
    }
    return count;
}

/* ---- archive */

void svi_quality_stage_archive(struct svi_archive *a, struct svi_quality_stage *q) {
    svi_alarm_archive(a, &q->alarm);
    svi_quality_figures_archive(a, q->figures);
    /* The archive states which optional parts follow, so that another task or method is an error and not
     * garbage. */
    bool classes = q->proba != NULL;
    svi_archive_bool(a, "probabilities", &classes);
    if (!svi_archive_check(a, classes == (q->proba != NULL), "the setting task or method was different") ||
        !classes)
        return;
    svi_calibrator_archive(a, q->calibrator[0]);
    bool second = q->calibrator[1] != NULL;
    if (!q->reliability) /* with keys */
        svi_archive_bool(a, "second", &second);
    if (svi_archive_ok(a) && second && !quality_has_calibrator(q, true))
        svi_archive_fail(a, SVS_NO_MEMORY, "no memory for the probabilities of a refit");
    if (svi_archive_ok(a) && second)
        svi_calibrator_archive(a, q->calibrator[1]);
    if (q->reliability)
        svi_reliability_archive(a, q->reliability);
}

double svi_quality_stage_memory(const struct svi_quality_options *o, int d, int classes) {
    const struct svi_metrics_options metrics = quality_metrics(o);
    const int most = o->max_classes;
    const double figures = sizeof(struct svi_quality_stage) + svi_alarm_memory(o->alarm_rate, d) +
                           svi_metrics_memory(&metrics, classes) +
                           svi_quality_figures_memory(o->task, o->window, most, o->many, classes);
    if (!o->probabilities)
        return figures;
    return figures + (1 + o->second) * svi_calibrator_memory(most, o->many ? classes : most) +
           (quality_has_prices(o) ? svi_decision_memory(most) : 0) + (double)most * sizeof(double) +
           (quality_has_reliability(o) ? svi_reliability_memory(o->window) : 0);
}
