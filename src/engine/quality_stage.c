#include "engine/quality_stage.h"

#include <stddef.h>

void svi_quality_stage_configure(struct svi_quality_stage *q, const struct svi_settings *s) {
    q->on = !svi_settings_uncalibrated(s);
    svi_drift_stage_configure(&q->drift, s);
}

svs_code svi_quality_stage_new(struct svi_quality_stage *q, const struct svi_settings *s, svs_error *err) {
    (void)err;
    q->task = (svs_task)s->task;
    svi_drift_stage_new(&q->drift, s);
    svi_quality_stage_configure(q, s);
    return SVS_OK;
}

void svi_quality_stage_free(struct svi_quality_stage *q) {
    svi_drift_stage_free(&q->drift);
    q->on = false;
}

void svi_quality_stage_reset(struct svi_quality_stage *q) {
    svi_drift_stage_reset(&q->drift);
}

void svi_quality_stage_score(struct svi_quality_stage *q, svs_step *served, bool refit) {
    (void)q, (void)served, (void)refit;
}

void svi_quality_stage_judge(struct svi_quality_stage *q, const svs_step *served, bool refit) {
    (void)q, (void)served, (void)refit;
}

void svi_quality_stage_archive(struct svi_archive *a, struct svi_quality_stage *q) {
    svi_drift_stage_archive(a, &q->drift);
}

double svi_quality_stage_memory(const struct svi_settings *s, int d) {
    return sizeof(struct svi_quality_stage) + svi_drift_stage_memory(s, d);
}
