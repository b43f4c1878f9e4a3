#include "engine/quality_stage.h"

#include <stddef.h>

void svi_quality_stage_configure(struct svi_quality_stage *q, const struct svi_settings *s) {
    q->on = !svi_settings_uncalibrated(s);
    svi_quality_figures_level(q->figures, q->on ? s->interval : 0);
}

svs_code svi_quality_stage_new(struct svi_quality_stage *q, const struct svi_settings *s, svs_error *err) {
    q->task = (svs_task)s->task;
    q->figures = svi_quality_figures_new(q->task, svi_quality_window(s), (int)s->max_classes, err);
    if (!q->figures)
        return err->code;
    svi_quality_stage_configure(q, s);
    return SVS_OK;
}

void svi_quality_stage_free(struct svi_quality_stage *q) {
    svi_quality_figures_free(&q->figures);
    q->on = false;
}

void svi_quality_stage_reset(struct svi_quality_stage *q) {
    svi_quality_figures_reset(q->figures);
}

bool svi_quality_stage_ends(const struct svi_quality_stage *q, double *ends) {
    return q->on && svi_quality_figures_ends(q->figures, ends);
}

void svi_quality_stage_score(struct svi_quality_stage *q, svs_step *served, bool refit) {
    (void)served, (void)refit;
    q->ranged = q->task == SVS_REGRESS && svi_quality_stage_ends(q, q->ends);
}

void svi_quality_stage_judge(struct svi_quality_stage *q, const svs_step *served, bool refit) {
    (void)refit;
    if (q->on)
        svi_quality_figures_judge(q->figures, served);
}

void svi_quality_stage_archive(struct svi_archive *a, struct svi_quality_stage *q) {
    svi_quality_figures_archive(a, q->figures);
}

double svi_quality_stage_memory(const struct svi_settings *s) {
    return sizeof(struct svi_quality_stage) +
           svi_quality_figures_memory((svs_task)s->task, svi_quality_window(s), (int)s->max_classes);
}
