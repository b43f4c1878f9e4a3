#include "engine/quality_stage.h"

#include <stddef.h>

void svi_quality_stage_configure(struct svi_quality_stage *q, const struct svi_settings *s) {
    q->on = !svi_settings_uncalibrated(s);
}

svs_code svi_quality_stage_new(struct svi_quality_stage *q, const struct svi_settings *s, svs_error *err) {
    (void)err;
    q->task = (svs_task)s->task;
    svi_quality_stage_configure(q, s);
    return SVS_OK;
}

void svi_quality_stage_free(struct svi_quality_stage *q) {
    q->on = false;
}

void svi_quality_stage_reset(struct svi_quality_stage *q) {
    (void)q;
}

void svi_quality_stage_score(struct svi_quality_stage *q, svs_step *served, bool refit) {
    (void)q, (void)served, (void)refit;
}

void svi_quality_stage_judge(struct svi_quality_stage *q, const svs_step *served, bool refit) {
    (void)q, (void)served, (void)refit;
}

void svi_quality_stage_archive(struct svi_archive *a, struct svi_quality_stage *q) {
    (void)a, (void)q;
}

double svi_quality_stage_memory(const struct svi_settings *s) {
    (void)s;
    return sizeof(struct svi_quality_stage);
}
