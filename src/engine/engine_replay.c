/* What a kept state needs of the engine when it is taken up again. */
#include <math.h>

#include "base/fail.h"
#include "engine/engine_internal.h"
#include "learner/learner_archive.h"

const struct svi_settings *svi_engine_settings(const svi_engine *e) {
    return e->s;
}

void svi_engine_repeat_old(struct svi_engine *e) {
    e->schema.shape.empty_fixes = svi_settings_old(e->s);
    e->schema.shape.without_words = svi_settings_without_words(e->s);
    svi_learner_repeat_old(e->learner, svi_settings_old(e->s));
}

void svi_engine_mute(svi_engine *e, bool muted) {
    svi_engine_settle(e);
    e->of->muted = muted;
    if (muted)
        return;
    e->of->started = e->of->rate_since = e->of->rate = NAN;
    e->of->rate_seen = e->kept[SVI_KEPT_SEEN];
    e->out_of_memory_before = e->refused[SVS_NO_MEMORY];
}

bool svi_engine_out_of_memory(const svi_engine *e) {
    return e->out_of_memory || (svi_engine_keyed(e) && e->of->keyed->lost(e)->code != SVS_OK) ||
           e->refused[SVS_NO_MEMORY] > e->out_of_memory_before;
}

svs_code svi_engine_lost_key(const svi_engine *e, svs_error *err) {
    const svs_error *lost = e->of->fleet ? e->of->keyed->lost(e) : NULL;
    return lost && lost->code != SVS_OK ? svi_fail(err, lost->code, "%s", lost->text) : SVS_OK;
}

void svi_engine_keep_model(svi_engine *e) {
    e->keeps_model = true;
}

const struct svi_bytes *svi_engine_last_model(const svi_engine *e) {
    return &e->last_model;
}

void svi_engine_allow_gaps(svi_engine *e, bool allowed) {
    e->of->gaps_allowed = allowed;
    e->of->losses += allowed;
}

void svi_engine_publish_by_engine_time(svi_engine *e, bool on) {
    e->of->by_engine_time = on;
}

void svi_engine_set_fsync_generation(svi_engine *e, uint64_t fsync_generation, uint64_t kept) {
    e->of->fsync_generation = fsync_generation;
    e->of->fsync_generation_durable = kept;
}

svs_code svi_engine_refit_repeat(svi_engine *e, const void *record, size_t size, svs_error *err) {
    svs_code code = svi_refit_policy_repeat(e->refit, e->learner, record, size, err);
    if (code == SVS_OK)
        svi_engine_refit_give(e);
    return code;
}

void svi_engine_refit_restart(svi_engine *e) {
    svi_refit_policy_restart(e->refit, e->learner, e->kept[SVI_KEPT_SEEN]);
}
