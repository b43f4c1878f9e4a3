/* The keys of the next elements are looked up some elements ahead.
 *
 * What the engines of many keys hold fits no cache. A sample of a key that was not used for a while
 * waits for memory about fifty times, each time for what the last access returned. The waits of
 * several samples can overlap. For a group of elements of a message, the places of their keys are
 * fetched first, then the entries, then the engines and what these point to. Each step is done for
 * the whole group, before its first element is learned. It changes nothing. */
#include <string.h>

#include "base/fetch.h"
#include "fleet/fleet_internal.h"
#include "learner/learner_fetch.h"

struct ahead {
    const struct svi_engine *engine[SVI_FLEET_AHEAD];
    uint64_t hash[SVI_FLEET_AHEAD];
    int count;
};

/* Reads on in the message from the element that is next, without moving the envelope. What cannot be read is
 * left to the element's own turn, which reports it. */
static void ahead_read(struct ahead *a, const svi_key_table *t, const struct svi_envelope *env) {
    const uint8_t *at = env->next ? env->next : env->first.at;
    for (int64_t i = 0; i < env->left && a->count < SVI_FLEET_AHEAD && at; i++) {
        struct svi_element el;
        char key[SVS_KEY_MAX + 1];
        svs_error err;
        at = svi_element_read(at, env->bytes + env->size, SVI_DEPTH_MAX - 1, &el);
        if (!el.is_map || svi_element_key(&el, key, &err) != SVS_OK || !key[0])
            continue;
        a->hash[a->count] = svi_key_hash(key, strlen(key));
        svi_fetch(svi_key_table_spot(t, a->hash[a->count++]), 1);
    }
}

/* The entries are fetched in one loop and read in the next: in between, the memory accesses of all of them
 * overlap. A guess follows the hash alone, so a wrong one costs time and nothing else. */
static void ahead_find(struct ahead *a, const svi_key_table *t, bool engines) {
    const struct svi_key_entry *entry[SVI_FLEET_AHEAD];
    for (int i = 0; i < a->count; i++)
        if ((entry[i] = svi_key_table_guess(t, a->hash[i])))
            svi_fetch(entry[i], sizeof *entry[i]);
    for (int i = 0; i < a->count; i++)
        a->engine[i] = engines && entry[i] && entry[i]->hash == a->hash[i] ? entry[i]->engine : NULL;
}

void svi_fleet_look_ahead(struct svi_fleet *f, const struct svi_envelope *env) {
    const svi_key_table *t = f->table;
    struct ahead a = {.count = 0};
    if (svi_key_table_count(t) < SVI_FLEET_MIN_KEYS_AHEAD)
        return;
    ahead_read(&a, t, env);
    ahead_find(&a, t, !f->workers); /* its threads fetch the engines where they are used */
    svi_fleet_fetch(a.engine, a.count);
}

/* Four rounds, each of which follows the pointers that the round before fetched: the engine, its parts, what
 * those hold, and what the figures point to. Within a round nothing depends on anything, so the waits
 * overlap. */
void svi_fleet_fetch(const struct svi_engine *const *engine, int count) {
    for (int i = 0; i < count; i++)
        if (engine[i])
            svi_fetch(engine[i], sizeof *engine[i]);
    for (int i = 0; i < count; i++)
        if (engine[i]) {
            svi_learner_fetch(engine[i]->learner);
            svi_metrics_fetch(engine[i]->quality_stage.metrics);
            svi_calibrator_fetch(engine[i]->quality_stage.calibrator[0]);
            svi_fetch(engine[i]->schema.shape.names, 64);
            svi_fetch(engine[i]->quality_stage.figures, 64);
        }
    for (int i = 0; i < count; i++)
        if (engine[i]) {
            svi_learner_fetch_parts(engine[i]->learner);
            svi_metrics_fetch_parts(engine[i]->quality_stage.metrics);
            if (engine[i]->quality_stage.figures)
                svi_quality_figures_fetch(engine[i]->quality_stage.figures);
        }
    for (int i = 0; i < count; i++)
        if (engine[i] && engine[i]->quality_stage.figures)
            svi_quality_figures_fetch_parts(engine[i]->quality_stage.figures);
}
