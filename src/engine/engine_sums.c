/* The sums record of a stream: the sums of one learner, and what the engine knows of its features. */
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/fnv.h"
#include "engine/engine_internal.h"
#include "learner/learner_sums.h"
#include "merge/sums.h"

/* The learner of merge.window. With a bank its members run as features and auto.budget allow. */
static svs_learner *sums_learner(struct svi_engine *e, svs_error *err) {
    char running[80];
    if (!e->bank || e->s->merge_window == SVI_MERGE_WINDOW_OWN)
        return e->learner;
    svs_learner *l = svi_bank_window(e->bank, e->learner, e->s->merge_window, running, sizeof running);
    if (!l)
        svi_fail(
            err, SVS_UNAVAILABLE,
            "merge.window %lld: this member does not run with %d features in this auto.budget; those that "
            "run have the windows %s",
            (long long)e->s->merge_window, svs_learner_dimension(e->learner), running);
    return l;
}

/* The features that scaling leaves as they are, in a list that replaces r->text. */
static svs_code list_unscaled(const svs_learner *l, int d, struct svi_sums *r, svs_error *err) {
    int32_t *list = svi_alloc_array((size_t)d + 1, sizeof *list);
    if (!list)
        return svi_fail_memory(err, "the sums of a window");
    r->text = (uint8_t *)list;
    r->unscaled = list;
    for (int j = 0; j < d; j++)
        if (svi_learner_is_unscaled(l, j))
            list[r->unscaled_count++] = j;
    return SVS_OK;
}

svs_code svi_engine_sums(svi_engine *e, struct svi_sums *r, svs_error *err) {
    static const enum svi_sums_kind kinds[] = {
        [SVI_DENSE] = SVI_SUMS_DENSE, [SVI_SPARSE] = SVI_SUMS_SPARSE, [SVI_NAMED] = SVI_SUMS_NAMED};
    svi_engine_settle(e);
    if (e->schema.shape.kind == SVI_UNSET)
        return svi_fail(err, SVS_UNAVAILABLE, "no row was seen yet");
    svs_learner *l = sums_learner(e, err);
    if (!l)
        return err->code;
    const svs_options *o = svi_learner_options(l);
    svs_model m = {.d = svs_learner_dimension(l)};
    SVI_TRY(svi_engine_describe(e, &m, err));
    svi_sums_clear(r);
    SVI_TRY(list_unscaled(l, m.d, r, err));
    snprintf(r->part, sizeof r->part, "%s", e->s->merge_part[0] ? e->s->merge_part : e->s->stream);
    r->part_epoch = e->epoch;
    r->offset = e->kept[SVI_KEPT_SEEN];
    r->task = o->task;
    r->kind = kinds[e->schema.shape.kind];
    r->window = o->window;
    r->C = o->C;
    r->scale = o->scale;
    r->features = m.features;
    r->schema = m.schema;
    r->schema_size = m.schema_size;
    r->classes = svi_learner_classes(l);
    return svi_learner_sums(l, &r->sums, err);
}

/* Counts of what enters and leaves besides the version: a sample may leave the weights as they are, and a
 * rebuild may change the factors of classes. */
uint64_t svi_engine_sums_mark(const svi_engine *e) {
    svs_health h;
    svs_learner_health(e->learner, &h);
    const uint64_t of[] = {e->epoch,
                           (uint64_t)e->kept[SVI_KEPT_SEEN],
                           svs_learner_version(e->learner),
                           (uint64_t)h.learned,
                           (uint64_t)h.held,
                           (uint64_t)h.forgotten,
                           (uint64_t)h.rebuilds,
                           (uint64_t)svs_learner_dimension(e->learner),
                           (uint64_t)svs_learner_class_count(e->learner),
                           svi_schema_changes(&e->schema),
                           (uint64_t)e->s->merge_window};
    return svi_fnv(svi_fnv(SVI_FNV_SEED, of, sizeof of), e->s->merge_part, strlen(e->s->merge_part));
}
