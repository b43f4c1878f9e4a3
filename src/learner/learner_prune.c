/* Features and classes that nothing held has are removed, and the model is made again without them. The
 * caller decides (svi_learner_held says what is in use); the order of those that stay does not change. */
#include "learner/learner_prune.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "learner/learner_internal.h"
#include "learner/learner_prior.h"

/* ---- what is held */

static void prune_mark_ring(const svs_learner *l, const struct svi_ring *r, bool *features, bool *classes) {
    for (int32_t i = 0, slot; (slot = svi_ring_next(r, &i)) >= 0;) {
        const double *row = svi_ring_row(r, slot);
        for (int j = 0; j < l->d; j++)
            features[j] |= row[j] != 0;
        if (classes && l->class_count > 0)
            classes[svi_ring_label(r, slot)] = true;
    }
}

svs_code svi_learner_held(const svs_learner *l, bool *features, bool *classes, bool *any, svs_error *err) {
    memset(features, 0, (size_t)l->declared * sizeof *features);
    memset(classes, 0, (size_t)l->class_count * sizeof *classes);
    if (l->o.window == 0 && l->arrivals > 0)
        return svi_fail(
            err, SVS_UNAVAILABLE,
            "with window 0 the samples of the model are not known: use reset, which drops all of them");
    prune_mark_ring(l, &l->window, features, classes);
    prune_mark_ring(l, &l->waiting, features, NULL);
    *any = l->window.live + l->waiting.live > 0;
    return SVS_OK;
}

/* ---- what becomes of it */

/* Moves the flagged ones of n values to the front; returns how many there are. The rest is 0. */
static int prune_row(double *row, const bool *keep, int n) {
    int kept = 0;
    for (int j = 0; j < n; j++)
        if (keep[j])
            row[kept++] = row[j];
    memset(row + kept, 0, (size_t)(n - kept) * sizeof *row);
    return kept;
}

/* Rows of slots that are not in use have to be 0 beyond the features, for a push fills these alone. */
static void prune_rows(const svs_learner *l, struct svi_ring *r, const bool *keep) {
    for (int32_t i = 0; i < r->capacity; i++) {
        const int32_t slot = svi_ring_at(r, i);
        if (i < r->count && svi_ring_live(r, slot))
            prune_row(svi_ring_row(r, slot), keep, l->d);
        else
            memset(svi_ring_row(r, slot), 0, (size_t)l->d * sizeof(double));
    }
}

/* The scores that a waiting sample got, for the classes that stay. One row stands for two classes: its score
 * is that of the second, and minus that of the first. */
static void prune_scores(struct svi_ring_scores *s, double *scores, const bool *keep) {
    const int rows = svi_rows_of(s->class_count);
    const double one = scores[0];
    int kept = 0, first = -1, last = -1, predicted = -1;
    for (int k = 0; k < s->class_count; k++) {
        if (!keep[k])
            continue;
        first = first < 0 ? k : first;
        last = k;
        predicted = k == s->predicted ? kept : predicted;
        if (rows > 1)
            scores[kept] = scores[k];
        kept++;
    }
    /* From three classes or more to two: the row of the second one of them, as one row means. To one: a
     * single class is the first, whose score has the other sign. */
    if (kept < 3 && rows > 1 && kept > 0)
        scores[0] = kept == 2 ? scores[1] : -scores[0];
    else if (kept < 3 && rows == 1)
        scores[0] = kept == 0 ? 0 : kept == 1 && first == 1 && last == 1 ? -one : one;
    s->class_count = kept;
    s->predicted = predicted;
}

/* Removes classes. place[k] is the new index of class k. Scores first, as they are read by the old number of
 * classes; the window's labels before class_count changes. */
static void prune_classes(svs_learner *l, const bool *keep, int32_t *place) {
    int32_t kept = 0;
    for (int32_t i = 0, slot; (slot = svi_ring_next(&l->waiting, &i)) >= 0;)
        prune_scores(svi_ring_scored(&l->waiting, slot),
                     svi_ring_row(&l->waiting, slot) + l->feature_capacity, keep);
    for (int k = 0; k < l->class_count; k++) {
        if (!keep[k]) {
            svi_class_forget(&l->classes[k]);
            continue;
        }
        l->classes[kept] = l->classes[k];
        place[k] = kept++;
    }
    for (int32_t i = 0; i < l->window.count && l->class_count > 0; i++) {
        const int32_t slot = svi_ring_at(&l->window, i);
        const bool live = svi_ring_live(&l->window, slot);
        svi_ring_set_label(&l->window, slot, live ? place[svi_ring_label(&l->window, slot)] : -1);
    }
    l->class_count = kept;
    l->last_class = 0;
}

static void prune_unscaled(struct svi_scaler *s, const bool *keep, int d) {
    int kept = 0;
    for (int j = 0; j < d; j++)
        if (keep[j])
            svi_scaler_flag(s, kept++, svi_scaler_unscaled(s, j));
    for (int j = kept; j < s->max_d; j++)
        svi_scaler_flag(s, j, false);
}

/* The sums of coordinates, the bias first, without those that go; they are made again with P, but for a
 * learner that has seen nothing. */
static void prune_vectors(svs_learner *l, const bool *features) {
    double *const all[] = {l->energy->energy, l->energy->sum, l->energy->peak,
                           l->energy->probe,  l->from,        l->ridge};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i])
            prune_row(all[i] + 1, features, l->d);
    for (int i = 0; i < 4; i++)
        memset(l->scratch[i], 0, (size_t)(l->d + 1) * sizeof(double));
    prune_row(l->scaler.mean, features, l->d);
    l->scaler.d = prune_row(l->scaler.inverse, features, l->d);
    svi_scaler_bound(&l->scaler);
    prune_unscaled(&l->scaler, features, l->declared);
}

static int prune_count(const bool *flags, int n) {
    int set = 0;
    for (int i = 0; i < n; i++)
        set += flags[i];
    return set;
}

/* What can fail is the one allocation. Everything about the rows is taken out first (prior, snapshot,
 * means), by the old numbers of features. */
svs_code svi_learner_prune(svs_learner *l, const bool *features, const bool *classes, svs_error *err) {
    const int d = prune_count(features, l->d), declared = prune_count(features, l->declared),
              rows = svi_rows_of(prune_count(classes, l->class_count));
    int32_t *place = svi_alloc_array((size_t)l->class_count + 1, sizeof *place);
    if (!place)
        return svi_fail_memory(err, "a model of fewer features");
    svi_claim(l);
    svi_learner_count_held(l, -1);
    if (l->snapshot)
        svi_snapshot_drop(l->snapshot, l);
    svi_kept_clear(l);
    svi_gram_zero(l->gram);
    l->gram->n = d + 1;
    l->m->r.rows = rows;
    /* P has d + 1 coordinates of nothing: the rebuild below fills it from the rows. */
    svi_alsvm_shrink(l->m, d + 1, l->nu);
    prune_classes(l, classes, place);
    svi_class_recount(l);
    svi_free(place);
    prune_rows(l, &l->window, features);
    prune_rows(l, &l->waiting, features);
    prune_vectors(l, features);
    l->d = d;
    l->declared = declared;
    svi_prior_prune(l, features);
    /* Before the rebuild, which reads it. */
    svi_ridge_reset(l); /* its rule depends on d */
    l->bucket = false;
    if (l->arrivals > 0)
        svi_rebuild(l, false);
    svi_learner_count_held(l, 1);
    l->version++;
    return SVS_OK;
}
