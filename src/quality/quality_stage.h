/* quality_stage.h: the quality of a learner's scores and what is derived from it: probabilities and decisions
 * (classify), intervals (regress), figures of classes, the quality alarm. All of it is a function of the
 * samples alone.
 *
 * A sample passes the stage twice: svi_quality_stage_score when it has its scores, svi_quality_stage_update
 * when its label is known, at once or late. Scores were made before the sample was learned, so no samples
 * need to be held out.
 *
 * Scores are those of svs_step: `rows` of them, one for two classes (above 0: class 1) or a regression, else
 * one for each class. Classes are indices, 0 to class_count - 1 in the order of their first label.
 * Probabilities are `class_count` values of 0 to 1 that sum to 1. Arguments stay the caller's. The only error
 * is SVS_NO_MEMORY; nothing has changed then. One object, one thread at a time. */
#ifndef SVI_QUALITY_STAGE_H
#define SVI_QUALITY_STAGE_H

#include <math.h>

#include "base/archive.h"
#include "quality/alarm.h"
#include "quality/calibrator.h"
#include "quality/decision.h"
#include "quality/quality_figures.h"
#include "quality/reliability.h"
#include "svmstream/learner.h"

/* The options of a stage. Only interval, alarm_rate and prices may change later, and the window through
 * svi_quality_stage_take_window. */
struct svi_quality_options {
    svs_task task;
    bool probabilities; /* classify: make probabilities from scores */
    bool second;        /* a second model may score; it gets a second calibrator */
    bool log_odds;      /* the served scores are half log odds (svi_calibrator_trust) */
    bool many;          /* one of many streams, to save memory: capacity for more than two classes by
                           svi_quality_stage_reserve alone, no ranks of scores, no figures of probabilities */
    int max_classes;    /* >= 1; probabilities: >= 2 */
    int64_t window;     /* labelled samples of the windowed figures, 1 to INT32_MAX */
    double interval;    /* regress: coverage of intervals, 0 (none) to 0.999 */
    double alarm_rate;  /* false quality alarms per sample, at most; 0 (no alarm) to 1 */
    double a_day;       /* budget of alerts a day, of which the alarm may use SVI_RISE_PART; 0: none */
    const char *prices; /* of wrong decisions (decision.h), validated; copied */
};

/* Sets *d to NULL where none are needed: no probabilities, or one of many streams without prices. Owner: the
 * caller. */
svs_code svi_quality_prices_new(struct svi_decision **d, const struct svi_quality_options *o, svs_error *err);
void svi_quality_prices_free(struct svi_decision **d);

struct svi_quality_stage {
    svs_task task;
    struct svi_alarm alarm;
    svi_metrics *metrics;
    svi_quality_figures *figures;
    bool ranged; /* the present sample has an interval, with these ends (svi_interval_around) */
    double ends[2];

    /* Probabilities: NULL without them. */
    svi_calibrator *calibrator[2]; /* [0] of the online model, [1] of the refit or the bank; [1] may be NULL
                                      until it is needed */
    int classes;                   /* max_classes */
    svi_reliability *reliability;
    struct svi_decision *prices; /* NULL: one of many streams, without prices */
    bool plain;                  /* there are probabilities, and no prices */
    double *proba;               /* of the present sample, by class */
    int proba_count;             /* 0: it has none, or none were computed */
    const double *scored; /* its scores, never read but compared as an address; NULL: no probabilities */
    int scored_count;     /* classes with a probability, computed or not */
    bool serving, judged; /* the refit's calibrator serves; the present sample's probabilities were
                             passed to a calibrator, which updates `reliability` */
    bool judging;         /* the last calibrator that got such a sample is the refit's */
};

/* *q must be all 0. After a failure it must still be freed. */
svs_code svi_quality_stage_new(struct svi_quality_stage *q, const struct svi_quality_options *o,
                               svs_error *err);
/* Reserves capacity for `classes`, before a sample of a further class. SVS_NO_MEMORY. */
svs_code svi_quality_stage_reserve(struct svi_quality_stage *q, int classes, svs_error *err);
void svi_quality_stage_free(struct svi_quality_stage *q);
void svi_quality_stage_reset(struct svi_quality_stage *q); /* as new */

/* Changing the window in two steps: _make allocates and may fail, _take_window cannot. Windowed figures
 * restart, everything else continues, with capacity for `classes`. Zero-initialised is empty. After
 * _take_window *w holds the former objects, for _clear to free. SVS_NO_MEMORY. */
struct svi_quality_window {
    svi_metrics *metrics;
    svi_quality_figures *figures;
    svi_reliability *reliability; /* NULL: the stage has none */
};
svs_code svi_quality_window_make(struct svi_quality_window *w, const struct svi_quality_options *o,
                                 int classes, svs_error *err);
void svi_quality_window_clear(struct svi_quality_window *w);
void svi_quality_stage_take_window(struct svi_quality_stage *q, struct svi_quality_window *w);

/* The online model was rebuilt: *fresh, trained on its scores, becomes its calibrator (NULL: no change), and
 * the refit's calibrator restarts. *fresh receives the former calibrator. */
void svi_quality_stage_take_calibrator(struct svi_quality_stage *q, svi_calibrator **fresh);

/* Scores of another kind are served from now on (serve linear was set or cleared): restarts the online
 * calibrator. */
void svi_quality_stage_forget_online(struct svi_quality_stage *q);

/* A model of another kind replaces the refit: restarts its calibrator. */
void svi_quality_stage_forget_refit(struct svi_quality_stage *q);

/* Applies interval, alarm_rate and prices. */
void svi_quality_stage_configure(struct svi_quality_stage *q, const struct svi_quality_options *o);

/* The present ends of the intervals of a regression (svi_interval_ends). False: none. */
bool svi_quality_stage_ends(const struct svi_quality_stage *q, double *ends);

/* Is the leverage of this sample, which has no label yet, needed for an interval? */
static inline bool svi_quality_stage_needs_leverage(const struct svi_quality_stage *q,
                                                    const svs_step *served) {
    double unused[2];
    return q->task == SVS_REGRESS && isnan(served->target) && svi_quality_stage_ends(q, unused);
}

/* `served`: the published scores, of the online model or, with `refit`, of the refit; for a late label those
 * made on arrival. Computes q->proba if `wanted`, and replaces served->predicted where decisions have prices.
 * The classes are the learner's. */
void svi_quality_stage_score(struct svi_quality_stage *q, const svs_learner *learner, svs_step *served,
                             bool refit, bool wanted);

/* Shortcut for svi_quality_stage_score and svi_quality_stage_calibrate in the common case: the online model
 * serves alone, two classes, a label, and nobody needs the probabilities at once. False: another case,
 * nothing was done. */
static inline bool svi_quality_stage_pair(struct svi_quality_stage *q, const svs_step *served) {
    if (!q->plain || q->judging || served->rows != 1 || served->class_count != 2 ||
        (unsigned)served->label > 1)
        return false;
    q->proba_count = 0;
    q->judged = true;
    svi_calibrator_learn_pair(q->calibrator[0], served->scores[0], served->label, q->reliability);
    return true;
}

/* The same for the scores of a row that is not part of the stream: fills proba[class_count], changes nothing.
 * Returns the predicted class; *count: number of probabilities, 0 = none. */
int svi_quality_stage_peek(struct svi_quality_stage *q, const svs_learner *learner, const svs_model *m,
                           const double *scores, double *proba, int *count);

/* Teaches a calibrator (the refit's or the online one) the scores that its model gave to a sample whose label
 * is known. Call after svi_quality_stage_score. */
void svi_quality_stage_calibrate(struct svi_quality_stage *q, bool refit, const double *scores, int rows,
                                 int class_count, int label);

/* The present law from m's scores to probabilities; a = 0: no law. Valid until the next sample. */
svs_calibration svi_quality_stage_law(const struct svi_quality_stage *q, const svs_model *m);

/* Fills the figures of metrics.h, then those of reliability.h, whose logloss takes its place among the
 * former: at most SVI_METRICS_FIGURES + SVI_PROBABILITY_FIGURES. Returns how many. */
#define SVI_PROBABILITY_FIGURES 4
int svi_quality_stage_figures(struct svi_quality_stage *q, struct svi_figure *out);

/* The label or target of the sample is known: updates every figure. */
void svi_quality_stage_update(struct svi_quality_stage *q, const svs_step *served);

/* Between two samples. Loads into an object from svi_quality_stage_new. */
void svi_quality_stage_archive(struct svi_archive *a, struct svi_quality_stage *q);

/* Bytes at most, with d features and `classes` classes. */
double svi_quality_stage_memory(const struct svi_quality_options *o, int d, int classes);

#endif
