/* From which rows, labels and keys the bank of all keys learns.
 *
 * The prior of the fleet knows the levels of the keys and the spread within them (learner/prior_bounds.h). A
 * row, a target or a weight that is far outside, and every row of a key that the prior has excluded, is not
 * learned; a key that has its share of the last rows learned has to wait. What was learned before bounds were
 * known is held against them when they are. */
#include <math.h>
#include <string.h>

#include "fleet/fleet_shared_internal.h"
#include "learner/learner_held.h"
#include "learner/learner_prior.h"

#define INDICATOR      1.0  /* never cut: the distance of 0 and 1 */
#define MIN_SHARE_ROWS 64   /* rows that any key may have of them */
#define SHARE_KEYS     16.0 /* times the average of all keys, */
#define MIN_SHARE      0.25 /* at least and */
#define MAX_SHARE      0.75 /* at most */
#define BEYOND_SHARE   16   /* elements of the stream, of which one is learned whatever the share */

void svi_fleet_shared_read_bounds(struct svi_fleet *f) {
    struct svi_fleet_shared *sh = f->shared;
    const struct svi_prior *p = svi_fleet_prior_newest(f);
    const uint64_t of = p ? p->number + 1 : 0;
    if (of == sh->bounds_of && sh->bounded == sh->placed && sh->schema.renewed_count == 0)
        return;
    for (int j = 0; j < sh->placed; j++) {
        const char *name = svs_features_name(sh->schema.shape.names, j);
        const uint16_t at = p ? svi_prior_feature(p, svi_prior_identity(name, j), j) : SVI_PRIOR_NONE;
        sh->limit[j] = INFINITY;
        if (at == SVI_PRIOR_NONE || at + 1 >= p->bounds.n || svi_schema_unscaled(&sh->schema, j))
            continue;
        const double usual = p->bounds.usual[at + 1], apart = p->bounds.apart[at + 1];
        sh->middle[j] = p->bounds.middle[at + 1];
        /* What varies in too few keys is not bounded by their spread: it is cut to where it lies. A rare
         * column of 0 and 1 varies in few keys at first, and must not be lost. */
        sh->limit[j] = usual > 0 ? apart + SVI_PRIOR_MAX_MULTIPLE * usual : -fmax(apart, INDICATOR);
    }
    const bool targets = p && sh->regress && p->bounds.n > 0;
    sh->target_middle = targets ? p->bounds.middle[0] : 0;
    sh->target_limit = targets ? svi_prior_limit(&p->bounds, 0) : INFINITY;
    sh->most = p ? svi_prior_most(&p->bounds) : INFINITY;
    sh->bounds_of = of;
    sh->bounded = sh->placed;
}

bool svi_fleet_shared_bound(struct svi_fleet_shared *sh, double *x, int d) {
    for (int j = 0; j < d && j < sh->bounded; j++) {
        const double off = x[j] - sh->middle[j], limit = sh->limit[j];
        if (limit == INFINITY)
            continue;
        if (limit > 0 && fabs(off) > limit)
            return false;
        if (limit <= 0 && fabs(off) > -limit)
            x[j] = sh->middle[j] + (off > 0 ? -limit : limit);
    }
    return true;
}

static bool shared_label_fits(const struct svi_fleet_shared *sh, svs_value y, double weight) {
    const double target = y.kind == SVS_INT ? (double)y.as.i : y.as.r;
    return weight <= sh->most && (!sh->regress || fabs(target - sh->target_middle) <= sh->target_limit);
}

/* Has the key no more than its share of the last rows learned? */
static bool shared_in_share(const struct svi_fleet *f, uint64_t key) {
    const struct svi_fleet_shared *sh = f->shared;
    const int64_t keys = svi_key_table_count(f->table);
    const double average = SHARE_KEYS / (double)keys;
    const double share = average < MIN_SHARE ? MIN_SHARE : average > MAX_SHARE ? MAX_SHARE : average;
    int own = 0;
    for (int i = 0; i < SVI_SHARE_ROWS; i++)
        own += sh->recent[i] == key;
    /* A key alone takes nothing from others. And the list moves with rows that are learned: where all other
     * keys are silent, a key at its limit would never teach again. */
    return keys == 1 || own < MIN_SHARE_ROWS || own < share * SVI_SHARE_ROWS || sh->taken % BEYOND_SHARE == 0;
}

/* Is it known what is normal among keys? */
static bool shared_knows_bounds(const struct svi_fleet *f) {
    const struct svi_prior *p = svi_fleet_prior_newest(f);
    return p && p->bounds.n > 0 && p->bounds.weight < INFINITY;
}

bool svi_fleet_shared_admits(const struct svi_fleet *f, const struct svi_key_entry *entry, svs_value y,
                             double weight) {
    return !entry->share.out && shared_label_fits(f->shared, y, weight) &&
           shared_in_share(f, entry->head.number + 1);
}

/* ---- at couplings */

/* Has it learned what would not enter now? */
static bool shared_holds_outside(const struct svi_fleet_shared *sh) {
    const double *row;
    int64_t number;
    bool outside = sh->early_weight > sh->most ||
                   (sh->regress && (sh->early_high - sh->target_middle > sh->target_limit ||
                                    sh->target_middle - sh->early_low > sh->target_limit));
    for (int64_t i = 0; !outside && svi_learner_held_row(sh->host, i, &row, &number); i++)
        for (int j = 0; row && j < sh->bounded && !outside; j++)
            outside = sh->limit[j] > 0 && fabs(row[sh->place[j]] - sh->middle[j]) > sh->limit[j];
    return outside;
}

/* Bounds are known for the first time, at the first coupling if there are keys enough. If rows that were
 * learned before are out of them, the bank begins again from nothing: what they left in scales and
 * first-order members cannot be taken back. */
static void shared_begin_bounds(struct svi_fleet *f) {
    struct svi_fleet_shared *sh = f->shared;
    sh->knew_bounds = true;
    svi_fleet_shared_read_bounds(f);
    if (!shared_holds_outside(sh))
        return;
    svs_learner_reset(sh->host);
    svi_bank_reset(sh->bank);
    sh->learned = 0;
    memset(sh->held, 0, sizeof sh->held);
    memset(sh->waiting, 0, sizeof sh->waiting);
    memset(sh->recent, 0, sizeof sh->recent);
    svi_fleet_shared_note_held(sh);
}

/* A key that the prior has excluded takes its rows with it. */
void svi_fleet_shared_couple(struct svi_fleet *f) {
    struct svi_fleet_shared *sh = f->shared;
    if (!sh)
        return;
    if (!sh->knew_bounds && shared_knows_bounds(f))
        shared_begin_bounds(f);
    svi_stack_start_merge(&sh->start, sh->part, SVI_FLEET_PARTS);
    for (struct svi_key_entry *n = f->prior ? svi_key_table_first(f->table) : NULL; n; n = n->after) {
        const bool out = n->common.weight > 0 && n->common.factor == 0;
        const bool leaves = out && !n->share.out;
        if (out != n->share.out && svi_fleet_change(f, n, NULL) != SVS_OK)
            continue;
        n->share.out = out;
        if (leaves)
            svi_fleet_unshare(f, n);
    }
}
