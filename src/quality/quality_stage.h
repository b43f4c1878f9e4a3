/* quality_stage.h: how good the scores of a learner are, and what follows from it: probabilities and
 * decisions (classify), intervals (regress), figures of classes, the quality alarm. All of it is a function
 * of the samples alone.
 *
 * A sample passes it twice: svi_quality_stage_score when it has its scores, svi_quality_stage_update when its
 * label is known, at once or late. The judgement is of what was scored, so nothing is held out.
 *
 * Scores are those of svs_step: `rows` of them, one for two classes (above 0: class 1) or a regression, else
 * one for each class. Classes are indices, 0 to class_count - 1 in the order of their first label.
 * Probabilities are `class_count` values of 0 to 1 that sum to 1. Whatever was scored stays the caller's.
 * The error of all calls is SVS_NO_MEMORY: nothing has changed then. One object, one thread at a time. */
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

/* What a stage is made for. Only interval, alarm_rate and prices may change later, and the window by
 * svi_quality_stage_take_window. */
struct svi_quality_options {
    svs_task task;
    bool probabilities; /* classify: scores become probabilities */
    bool second;        /* there may be scores of a second model, which have a calibrator of their own */
    bool many;          /* one of many streams: capacity for more than two classes comes by
                           svi_quality_stage_reserve, and neither ranks of scores nor figures of probabilities
                           are kept */
    int max_classes;    /* >= 1; probabilities: >= 2 */
    int64_t window;     /* labelled samples of the windowed figures, 1 to INT32_MAX */
    double interval;    /* regress: share of the targets that an interval holds, 0 (none) to 0.999 */
    double alarm_rate;  /* false quality alarms a sample at most, 0 (no alarm) to 1 */
    const char *prices; /* of wrong decisions (decision.h), checked; copied */
};

/* *d NULL: none are needed: no probabilities, or one of many streams and no prices. Owner: the caller. */
svs_code svi_quality_prices_new(struct svi_decision **d, const struct svi_quality_options *o, svs_error *err);
void svi_quality_prices_free(struct svi_decision **d);

struct svi_quality_stage {
    svs_task task;
    struct svi_alarm alarm;
    svi_metrics *metrics;
    svi_quality_figures *figures;
    bool ranged; /* the sample at hand has an interval, with these ends (svi_interval_around) */
    double ends[2];

    /* Probabilities: NULL where there are none. */
    svi_calibrator *calibrator[2]; /* of the online model, of the refit or the bank; the second may be NULL
                                      until it is needed */
    int classes;                   /* at most */
    svi_reliability *reliability;
    struct svi_decision *prices; /* NULL: there are none (of one of many streams) */
    bool plain;                  /* there are probabilities, and no prices */
    double *proba;               /* of the sample in hand, by class */
    int proba_count;             /* 0: it has none, or none were made */
    const double *scored;        /* its scores, which are only compared with others; NULL: no probabilities */
    int scored_count;            /* how many it has, made or not */
    bool serving, judged;        /* by the calibrator of the refit? which has them to judge, soon or late */
    bool judging;                /* the calibrator that has had such ones last: of the refit? */
};

/* *q is all 0; on failure it is to be freed. */
svs_code svi_quality_stage_new(struct svi_quality_stage *q, const struct svi_quality_options *o,
                               svs_error *err);
/* Before there are more than two classes: capacity for that many. SVS_NO_MEMORY. */
svs_code svi_quality_stage_reserve(struct svi_quality_stage *q, int classes, svs_error *err);
void svi_quality_stage_free(struct svi_quality_stage *q);
void svi_quality_stage_reset(struct svi_quality_stage *q); /* as new */

/* Another window: what can fail is made first, the change itself cannot. Figures of the window begin again,
 * all else goes on, with capacity for `classes`. Zero-initialised is empty. SVS_NO_MEMORY. */
struct svi_quality_window {
    svi_metrics *metrics;
    svi_quality_figures *figures;
    svi_reliability *reliability; /* NULL: the stage has none */
};
svs_code svi_quality_window_make(struct svi_quality_window *w, const struct svi_quality_options *o,
                                 int classes, svs_error *err);
void svi_quality_window_clear(struct svi_quality_window *w);
void svi_quality_stage_take_window(struct svi_quality_stage *q, struct svi_quality_window *w);

/* The model was made again: `fresh` has been taught its scores, and becomes the calibrator of the online
 * model (NULL: there is none); that of the refit begins again. *fresh is the one of before then. */
void svi_quality_stage_take_calibrator(struct svi_quality_stage *q, svi_calibrator **fresh);

/* Scores of another kind are served from now on (serve linear, or no more). */
void svi_quality_stage_forget_online(struct svi_quality_stage *q);

/* Another model than those before takes the place of the refit. */
void svi_quality_stage_forget_refit(struct svi_quality_stage *q);

/* The interval, the rate of the alarm and the prices of now. */
void svi_quality_stage_configure(struct svi_quality_stage *q, const struct svi_quality_options *o);

/* The ends of the intervals of a regression now (svi_interval_ends). False: there are none. */
bool svi_quality_stage_ends(const struct svi_quality_stage *q, double *ends);

/* Has a sample that has no label yet an interval, if its leverage is known? */
static inline bool svi_quality_stage_needs_leverage(const struct svi_quality_stage *q,
                                                    const svs_step *served) {
    double unused[2];
    return q->task == SVS_REGRESS && isnan(served->target) && svi_quality_stage_ends(q, unused);
}

/* `served`: what is published, of the online model or, with `refit`, of the refit; of a late label, what it
 * was on arrival. Makes q->proba if they are `wanted`, and served->predicted by the prices of decisions. The
 * learner has the classes. */
void svi_quality_stage_score(struct svi_quality_stage *q, const svs_learner *learner, svs_step *served,
                             bool refit, bool wanted);

/* The common case of that and of svi_quality_stage_calibrate by the online model, which serves alone: two
 * classes and a label, probabilities that nobody wants at once. False: it is another. */
static inline bool svi_quality_stage_pair(struct svi_quality_stage *q, const svs_step *served) {
    if (!q->plain || q->judging || served->rows != 1 || served->class_count != 2 ||
        (unsigned)served->label > 1)
        return false;
    q->proba_count = 0;
    q->judged = true;
    svi_calibrator_learn_pair(q->calibrator[0], served->scores[0], served->label, q->reliability);
    return true;
}

/* The same for scores alone, of a sample that is no part of the stream: fills proba (class_count values),
 * changes nothing. Returns the predicted class; *count: probabilities, 0 = none. */
int svi_quality_stage_peek(struct svi_quality_stage *q, const svs_learner *learner, const svs_model *m,
                           const double *scores, double *proba, int *count);

/* The scores that a model, the refit or not, gave to a sample whose label is known: after
 * svi_quality_stage_score. */
void svi_quality_stage_calibrate(struct svi_quality_stage *q, bool refit, const double *scores, int rows,
                                 int class_count, int label);

/* How m's scores become probabilities, as of now; a 0: they do not. Valid until the next sample. */
svs_calibration svi_quality_stage_law(const struct svi_quality_stage *q, const svs_model *m);

/* The figures of metrics.h and those of reliability.h, whose logloss has its place among the former; at most
 * SVI_METRICS_FIGURES + SVI_PROBABILITY_FIGURES. Returns how many. */
#define SVI_PROBABILITY_FIGURES 4
int svi_quality_stage_figures(struct svi_quality_stage *q, struct svi_figure *out);

/* The label, or the target, of that sample is known. */
void svi_quality_stage_update(struct svi_quality_stage *q, const svs_step *served);

/* Between two samples; loading goes into one from svi_quality_stage_new. */
void svi_quality_stage_archive(struct svi_archive *a, struct svi_quality_stage *q);

/* Bytes at most, with d features and that many classes. */
double svi_quality_stage_memory(const struct svi_quality_options *o, int d, int classes);

#endif
