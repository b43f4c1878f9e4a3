/* The engine of a stream that may have keys, and the table by which it comes to them
 * (engine/engine_parts.h). */
#include <math.h>

#include "base/fail.h"
#include "keyed/keyed_internal.h"
#include "learner/learner_archive.h"

/* ---- commands */

static struct svi_engine *keyed_named(struct svi_engine *root, const char *key, svs_error *err) {
    struct svi_key_entry *entry;
    svi_crew_settle(root);
    svi_fleet_evict(root);
    return svi_fleet_find(root, key, false, 0, &entry, err);
}

static struct svi_engine *keyed_reach(struct svi_engine *root, const char *key, struct svi_key_entry **entry,
                                      svs_error *err) {
    if (!svi_fleet_find(root, key, false, 0, entry, err) || svi_fleet_touch(root, *entry, err) != SVS_OK)
        return NULL;
    return (*entry)->engine;
}

static svs_code keyed_verify(struct svi_engine *root, double *difference, svs_error *err) {
    svs_code code = SVS_OK;
    svi_crew_settle(root);
    for (struct svi_key_entry *n = svi_key_table_first(root->of->fleet->table), *entry; n && code == SVS_OK;
         n = n->after) {
        double one = 0;
        struct svi_engine *e = svi_fleet_find(root, n->name, false, 0, &entry, err);
        code = e ? svi_learner_verify(e->learner, &one, err) : err->code;
        *difference = one > *difference || isnan(one) ? one : *difference;
        svi_fleet_evict(root);
    }
    return code;
}

/* ---- figures */

static void keyed_arrive(struct svi_engine *root, double now) {
    root->of->fleet->arrival = now;
}

static int64_t keyed_seen(const struct svi_engine *root) {
    return root->of->fleet->seen;
}

static int64_t keyed_refused(const struct svi_engine *root) {
    return root->of->fleet->total.refused;
}

static const svs_error *keyed_lost(const struct svi_engine *e) {
    return &e->of->fleet->lost;
}

/* ---- checkpoints */

static void keyed_archive(struct svi_archive *a, struct svi_engine *root, enum svi_keyed_section section) {
    switch (section) {
    case SVI_KEYED_GROUPS:
        svi_alert_groups_archive(a, root->of->fleet->groups);
        break;
    case SVI_KEYED_ONCE:
        svi_fleet_archive(a, root);
        break;
    case SVI_KEYED_PRIOR:
        svi_fleet_prior_archive(a, root);
        break;
    case SVI_KEYED_TOTALS:
        svi_fleet_totals_archive(a, root);
        break;
    case SVI_KEYED_STATES:
        svi_fleet_states_archive(a, root);
        break;
    case SVI_KEYED_FILES:
        svi_fleet_files_archive(a, root);
        break;
    case SVI_KEYED_SUM:
        svi_fleet_sum_archive(a, root);
        break;
    }
}

static bool keyed_has(const struct svi_engine *root, enum svi_keyed_section section) {
    const struct svi_fleet *f = root->of->fleet;
    switch (section) {
    case SVI_KEYED_PRIOR:
        return f->prior;
    case SVI_KEYED_STATES:
        return !f->kept.apart;
    case SVI_KEYED_FILES:
        return f->kept.apart;
    default:
        return true;
    }
}

static bool keyed_in_files(const struct svi_engine *root) {
    return root->of->fleet->kept.on;
}

static void keyed_load_from(struct svi_engine *root, const struct svi_state_dir *dir) {
    root->of->fleet->kept.from = dir;
}

/* ---- the table */

static const struct svi_keyed_calls keyed_calls = {.begin = svi_fleet_new,
                                                   .end = svi_fleet_free,
                                                   .settle = svi_crew_settle,
                                                   .named = keyed_named,
                                                   .reach = keyed_reach,
                                                   .done = svi_fleet_done_here,
                                                   .verify = keyed_verify,
                                                   .drop = svi_fleet_drop,
                                                   .take_element = svi_fleet_take_element,
                                                   .take_row = svi_fleet_take_row,
                                                   .look_ahead = svi_fleet_look_ahead,
                                                   .evict = svi_fleet_evict,
                                                   .reserve_note = svi_fleet_reserve_note,
                                                   .note = svi_fleet_note,
                                                   .arrive = keyed_arrive,
                                                   .deadline = svi_fleet_deadline,
                                                   .pass = svi_fleet_pass,
                                                   .rest = svi_fleet_rest,
                                                   .share = svi_fleet_share,
                                                   .tell_alert = svi_fleet_tell_alert,
                                                   .seen = keyed_seen,
                                                   .refused = keyed_refused,
                                                   .lost = keyed_lost,
                                                   .sum_up = svi_fleet_sum_up,
                                                   .progress = svi_fleet_progress,
                                                   .archive = keyed_archive,
                                                   .has = keyed_has,
                                                   .in_files = keyed_in_files,
                                                   .load_from = keyed_load_from,
                                                   .add_up = svi_fleet_add_up};

svi_engine *svi_engine_new(const struct svi_settings *s, uint64_t epoch, svi_sink *sink, void *user,
                           svs_error *err) {
    return svi_engine_new_with(s, &keyed_calls, epoch, sink, user, err);
}
