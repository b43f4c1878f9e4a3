/* quality_stage.h: what the engine knows of how good its scores are, and what follows from it: probabilities
 * and decisions (classify), intervals (regress), figures of classes, the quality alarm. All of it is a
 * function of the samples alone; a state that was recorded before there was such a stage goes on without it
 * until it is started again (svi_settings_uncalibrated).
 *
 * A sample passes it twice: svi_quality_stage_score when it has its scores, svi_quality_stage_judge when its
 * label is known, at once or late. The judgement is of what was scored, so nothing is held out. */
#ifndef SVI_QUALITY_STAGE_H
#define SVI_QUALITY_STAGE_H

#include "base/archive.h"
#include "config/settings.h"
#include "engine/drift_stage.h"
#include "svmstream/learner.h"

struct svi_quality_stage {
    bool on;
    svs_task task;
    struct svi_drift_stage drift; /* the quality alarm, and the numbers of alerts */
};

svs_code svi_quality_stage_new(struct svi_quality_stage *q, const struct svi_settings *s, svs_error *err);
void svi_quality_stage_free(struct svi_quality_stage *q);
void svi_quality_stage_reset(struct svi_quality_stage *q); /* as new */

/* Settings of now. */
void svi_quality_stage_configure(struct svi_quality_stage *q, const struct svi_settings *s);

/* `served`: what is published, of the online model or, with `refit`, of the refit. */
void svi_quality_stage_score(struct svi_quality_stage *q, svs_step *served, bool refit);
void svi_quality_stage_judge(struct svi_quality_stage *q, const svs_step *served, bool refit);

/* Between two samples; loading goes into one from svi_quality_stage_new. */
void svi_quality_stage_archive(struct svi_archive *a, struct svi_quality_stage *q);

double svi_quality_stage_memory(const struct svi_settings *s, int d); /* bytes at most */

#endif
