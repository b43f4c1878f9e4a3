/* quality_stage.h: what the engine knows of how good its scores are, and what follows from it: probabilities
 * and decisions (classify), intervals (regress), figures of classes, the quality alarm. All of it is a
 * function of the samples alone; a state that was recorded before there was such a stage goes on without it
 * until it is started again (svi_settings_uncalibrated).
 *
 * A sample passes it twice: svi_quality_stage_score when it has its scores, svi_quality_stage_judge when its
 * label is known, at once or late. The judgement is of what was scored, so nothing is held out. */
#ifndef SVI_QUALITY_STAGE_H
#define SVI_QUALITY_STAGE_H

#include <math.h>

#include "base/archive.h"
#include "config/settings.h"
#include "stats/quality_figures.h"
#include "svmstream/learner.h"

#define SVI_METRICS_WINDOW 1000    /* samples of windowed quality, when nothing is held */
#define SVI_METRICS_LONG   1000000 /* at most */

struct svi_quality_stage {
    bool on;
    svs_task task;
    svi_quality_figures *figures;
    bool ranged; /* the sample at hand has an interval, with these ends (svi_interval_around) */
    double ends[2];
};

/* Samples of windowed quality: those that are held, within the limits above. */
static inline int64_t svi_quality_window(const struct svi_settings *s) {
    const int64_t window = s->window < SVI_METRICS_LONG ? s->window : SVI_METRICS_LONG;
    return window < 1 ? SVI_METRICS_WINDOW : window;
}

svs_code svi_quality_stage_new(struct svi_quality_stage *q, const struct svi_settings *s, svs_error *err);
void svi_quality_stage_free(struct svi_quality_stage *q);
void svi_quality_stage_reset(struct svi_quality_stage *q); /* as new */

/* Settings of now. */
void svi_quality_stage_configure(struct svi_quality_stage *q, const struct svi_settings *s);

/* The ends of the intervals of a regression now (svi_interval_ends). False: there are none. */
bool svi_quality_stage_ends(const struct svi_quality_stage *q, double *ends);

/* Has a sample that has no label yet an interval, if its leverage is known? */
static inline bool svi_quality_stage_needs_leverage(const struct svi_quality_stage *q,
                                                    const svs_step *served) {
    double unused[2];
    return q->task == SVS_REGRESS && isnan(served->target) && svi_quality_stage_ends(q, unused);
}

/* `served`: what is published, of the online model or, with `refit`, of the refit. */
void svi_quality_stage_score(struct svi_quality_stage *q, svs_step *served, bool refit);
void svi_quality_stage_judge(struct svi_quality_stage *q, const svs_step *served, bool refit);

/* Between two samples; loading goes into one from svi_quality_stage_new. */
void svi_quality_stage_archive(struct svi_archive *a, struct svi_quality_stage *q);

double svi_quality_stage_memory(const struct svi_settings *s); /* bytes at most */

#endif
