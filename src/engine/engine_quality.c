/* Results of the quality that are not single figures: the table of classes, and comparisons with baselines.
 */
#include "engine/engine_internal.h"

void svi_engine_class_table(svi_engine *e, bool matrices, struct svi_class_table *out) {
    *out = (struct svi_class_table){0};
    if (e->s->method != SVI_METHOD_NONE)
        svi_quality_figures_table(e->quality_stage.figures, e->quality_stage.metrics, e->learner, matrices,
                                  out);
}

void svi_engine_standing(svi_engine *e, struct svi_engine_standing *out) {
    const struct svi_refit_policy *p = e->refit;
    int64_t won = 0, lost = 0;
    *out = (struct svi_engine_standing){.baseline.commonest_class = -1};
    out->baseline = svi_quality_figures_standing(e->quality_stage.figures, e->quality_stage.metrics,
                                                 svs_learner_class_count(e->learner));
    out->worse = svi_quality_figures_worse(e->quality_stage.figures);
    if (!p->have || p->serves)
        return;
    for (int64_t i = 0; i < p->hit_count; i++) { /* bit 0: the online model was right, bit 1: the refit */
        won += p->hits[i] == 2;
        lost += p->hits[i] == 1;
    }
    out->refit = svi_advantage_of_pairs(p->hit_count, won, lost);
}
