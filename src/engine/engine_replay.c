/* Functions of the engine that only a kept state needs, when it is recovered. */
#include <math.h>

#include "base/fail.h"
#include "engine/engine_internal.h"

bool svi_engine_out_of_memory(const svi_engine *e) {
    return e->out_of_memory || e->refused[SVS_NO_MEMORY] > e->out_of_memory_before;
}

void svi_engine_keep_model(svi_engine *e) {
    e->keeps_model = true;
}

const struct svi_bytes *svi_engine_last_model(const svi_engine *e) {
    return &e->last_model;
}

svs_code svi_engine_refit_repeat(svi_engine *e, const void *record, size_t size, svs_error *err) {
    SVI_TRY(svi_refit_policy_repeat(e->refit, e->learner, record, size, err));
    svi_engine_refit_give(e);
    return SVS_OK;
}

void svi_engine_refit_as_loaded(svi_engine *e) {
    svi_engine_settle(e);
    svi_refit_policy_as_loaded(e->refit, e->learner, e->kept[SVI_KEPT_SEEN]);
}

void svi_engine_refit_restart(svi_engine *e) {
    svi_refit_policy_restart(e->refit, e->learner, e->kept[SVI_KEPT_SEEN]);
}
