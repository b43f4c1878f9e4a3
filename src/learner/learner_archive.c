/* A learner field by field (learner_archive.h). The order is part of the format:
 *  - features and classes, which say how much capacity there must be;
 *  - counters;
 *  - scaler, energies and ridge;
 *  - P and W, then both rings;
 *  - the sums, where they are more than scratch;
 *  - what only some learners have (archive_rare).
 * The parts archive themselves (ring.c, gram.c, scaler.c, recursion.c).
 *
 * One function saves and loads: where `a->loading` is set it fills the fields, otherwise it writes
 * them. Loading trusts nothing. It takes memory only for what the remaining bytes can fill. After
 * each part it checks the invariants that span several fields. An archive keeps its first error,
 * and every call after it does nothing. */
#include "learner/learner_archive.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "learner/learner_internal.h"

/* Sums of what is in; a peak may be -inf where squares overflow, which does no harm. */
static void archive_energy(struct svi_archive *a, svs_learner *l) {
    bool positive = true;
    int n = l->d + 1;
    svi_archive_doubles(a, "energy", l->energy->energy, n);
    svi_archive_doubles(a, "energy sums", l->energy->sum, n);
    svi_archive_doubles(a, "energy peaks", l->energy->peak, n);
    svi_archive_doubles(a, "probe", l->energy->probe, n);
    svi_archive_finite(a, "refine from", l->from, n);
    svi_archive_finite(a, "targets in", l->targets_in, l->class_count > 0 ? l->class_count : 1);
    if (!l->ridge)
        return;
    svi_archive_finite(a, "ridge", l->ridge, n);
    for (int j = 0; j < n; j++)
        positive &= l->ridge[j] >= 0; /* 0: faded away before its turn to be renewed */
    svi_archive_check(a, positive, "the ridge is negative");
}

/* ---- features and classes */

/* Loads into a new learner only. `d` comes from the file: before anything of its size is allocated, the
 * bytes that are left must suffice for P alone. */
static bool archive_features(struct svi_archive *a, svs_learner *l) {
    int d = l->d;
    bool fresh = l->class_count == 0 && l->arrivals == 0 && l->window.pushed == 0 && l->waiting.pushed == 0;
    svi_archive_int(a, "features", &d, 0, l->o.max_features);
    if (a->loading && svi_archive_ok(a) && fresh && d < l->d)
        svi_learner_features_wait(l); /* fixed names: not all of them have had a value */
    if (!svi_archive_check(a, fresh, "the learner is not a new one") || !a->loading)
        return svi_archive_ok(a);
    if (!svi_archive_check(a, svi_archive_left(a) / 8 >= svi_triangle(d + 1), "more features than P has") ||
        svi_learner_features_declare(l, d, a->err) != SVS_OK ||
        svi_learner_features_widen(l, d, a->err) != SVS_OK)
        return false;
    /* Widening is done with all features scaled and in: which of them are unscaled, and how many are
     * declared beyond, comes last (archive_rare). */
    l->declared = d; /* which of them are unscaled, and how many there are besides, comes last */
    svi_scaler_scale_all(&l->scaler);
    return true;
}

static int archive_compare_classes(const void *pa, const void *pb) {
    const svs_value *a = pa, *b = pb;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->kind == SVS_INT)
        return (a->as.i > b->as.i) - (a->as.i < b->as.i);
    if (a->length != b->length)
        return a->length < b->length ? -1 : 1;
    return memcmp(a->as.s, b->as.s, a->length);
}

/* Sorted, as there may be 100,000 classes: a comparison of all pairs would let a small file cost minutes. */
static bool archive_classes_distinct(struct svi_archive *a, const svs_learner *l) {
    size_t n = (size_t)l->class_count;
    svs_value *sorted = svi_alloc_array(n, sizeof *sorted);
    bool equal = false;
    if (!sorted) {
        svi_archive_fail(a, SVS_NO_MEMORY, "no memory for the classes");
        return false;
    }
    memcpy(sorted, l->classes, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, archive_compare_classes);
    for (size_t k = 1; k < n; k++)
        equal |= archive_compare_classes(&sorted[k - 1], &sorted[k]) == 0;
    svi_free(sorted);
    return svi_archive_check(a, !equal, "two classes are the same");
}

/* Through the same calls as a new class of the stream, so that the table grows as it would have. */
static void archive_load_class(struct svi_archive *a, svs_learner *l, const char *name) {
    char bytes[SVS_NAME_MAX];
    svs_value y = svs_none();
    svi_archive_value(a, name, &y, bytes);
    bool good = y.kind == SVS_INT || (y.kind == SVS_STR && y.length >= 1 && svi_utf8_valid(y.as.s, y.length));
    if (svi_archive_check(a, good, "a class is neither an integer nor a name") &&
        svi_class_table_reserve(l, y, a->err) == SVS_OK)
        svi_class_insert(l, y);
}

static bool archive_classes(struct svi_archive *a, svs_learner *l) {
    char text[SVI_KEY_MAX];
    int count = l->class_count;
    svi_archive_int(a, "classes", &count, 0, l->o.task == SVS_REGRESS ? 0 : l->o.max_classes);
    for (int k = 0; k < count && svi_archive_ok(a); k++) {
        if (a->loading)
            archive_load_class(a, l, svi_archive_key(text, "class", k));
        else
            svi_archive_value(a, svi_archive_key(text, "class", k), &l->classes[k], NULL);
    }
    if (!a->loading || !svi_archive_ok(a) || count == 0)
        return svi_archive_ok(a);
    bool fits = svi_archive_left(a) / 8 / (l->d + 1) >= svi_rows(l);
    /* rows of W follow from the number of classes; svi_class_insert has filled the table alone. */
    if (!svi_archive_check(a, fits, "more classes than W has rows") || !archive_classes_distinct(a, l) ||
        svi_class_reserve_parts(l, count, a->err) != SVS_OK)
        return false;
    l->m->r.rows = svi_rows(l);
    return true;
}

/* ---- counters */

#define COUNTER(member)                                                                                      \
    { #member, offsetof(svs_learner, member) }
static const struct {
    const char *name;
    size_t offset;
} counters[] = {
    COUNTER(arrivals),
    COUNTER(next_rebuild),
    COUNTER(held_learned),
    COUNTER(order),
    COUNTER(base),
    COUNTER(health.learned),
    COUNTER(health.labels_joined),
    COUNTER(health.labels_expired),
    COUNTER(health.labels_evicted),
    COUNTER(health.forgotten),
    COUNTER(health.rebuilds),
    COUNTER(health.alarms),
    COUNTER(health.window_reads),
    COUNTER(refine.looked),
    COUNTER(refine.looks),
    COUNTER(refine.wait),
};

static bool archive_counters(struct svi_archive *a, svs_learner *l) {
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
        svi_archive_int64(a, counters[i].name, (int64_t *)((char *)l + counters[i].offset), 0, SVI_COUNT_MAX);
    svi_archive_uint64(a, "version", &l->version);
    svi_archive_double(a, "residual", &l->health.residual);
    svi_archive_double(a, "condition", &l->health.condition);
    svi_archive_double(a, "refine lost", &l->refine.lost);
    svi_archive_double(a, "refine residual", &l->refine.residual);
    svi_archive_double(a, "condition now", &l->refine.now);
    svi_archive_double(a, "condition worst", &l->refine.worst);
    svi_archive_double(a, "refine off", &l->refine.off);
    svi_archive_double(a, "refine gone", &l->refine.moved);
    svi_archive_bool(a, "refine fresh", &l->refine.fresh);
    /* The guard compares numbers of arrivals: a rebuild that lay behind would never come. */
    bool ahead = l->arrivals ? l->next_rebuild > l->arrivals : l->next_rebuild == 0;
    bool learned = l->base <= l->order && l->order <= l->arrivals && l->held_learned <= l->order;
    bool refine = l->refine.lost >= 0 && l->refine.residual >= 0 && l->refine.now >= 0 &&
                  l->refine.worst >= 0 && l->refine.off >= 0 && l->refine.moved >= 0 &&
                  l->refine.looked <= l->arrivals;
    return svi_archive_check(a, refine, "an estimate of what w has lost that cannot be") &&
           svi_archive_check(a, ahead, "the next rebuild is not ahead") &&
           svi_archive_check(a, learned, "more samples learned than arrived") &&
           svi_archive_check(a, isfinite(svi_hat(l, 1, l->order)), "weights overflow");
}

/* ---- what is held */

static void archive_rings(struct svi_archive *a, svs_learner *l) {
    struct svi_ring_kind kind = {.name = "window",
                                 .regress = l->o.task == SVS_REGRESS,
                                 .features = l->d,
                                 .scores_at = l->feature_capacity,
                                 .class_count = l->class_count,
                                 .order = l->order};
    svi_ring_archive(a, &l->window, &kind);
    kind.name = "waiting";
    kind.waiting = true;
    kind.scores = svi_rows(l);
    svi_ring_archive(a, &l->waiting, &kind);
    /* What the counter says must be what the rings hold, since the guard and the refinement go by the
     * counter. */
    if (!a->loading || !svi_archive_ok(a) || l->o.window == 0)
        return;
    int64_t learned = 0;
    for (int32_t i = 0; svi_next_learned(l, &i) >= 0;)
        learned++;
    svi_archive_check(a, learned == l->held_learned, "the number of learned samples held is wrong");
}

/* The sums: without a window always, with one only while they are the bucket before a rebuild. */
static void archive_sums(struct svi_archive *a, svs_learner *l) {
    svi_archive_bool(a, "bucket", &l->bucket);
    svi_archive_check(a, !l->bucket || (l->o.window > 0 && l->o.rule == SVS_ALSVM),
                      "a bucket that these options do not have");
    if (l->bucket)
        svi_archive_int64(a, "bucket from", &l->bucket_from, 0, l->window.pushed);
    /* A learner in a shared scratch has not gathered its bucket sample by sample; it is made now, with the
     * same bits. */
    if (!a->loading && l->shared)
        svi_bucket_gather(l);
    if (svi_archive_ok(a) && (l->bucket || l->o.window == 0))
        svi_gram_archive(a, l->gram, l->class_count < 2 ? 2 : l->class_count, l->gram_copy);
}

/* Features that have had no value yet. */
static void archive_declared(struct svi_archive *a, svs_learner *l) {
    int declared = l->declared;
    svi_archive_int(a, "declared", &declared, l->d, l->o.max_features);
    if (a->loading && svi_archive_ok(a))
        svi_learner_features_declare(l, declared, a->err);
}

/* With class weights: what a sample counts, which does not follow from what else is known of it. */
static void archive_class_weights(struct svi_archive *a, svs_learner *l) {
    bool good = true;
    svi_ring_archive_factors(a, &l->window, "window factors");
    if (!l->class_held || l->o.window > 0)
        return;
    svi_archive_finite(a, "class counts", l->class_held, l->class_count);
    for (int k = 0; k < l->class_count; k++)
        good &= l->class_held[k] >= 0;
    svi_archive_check(a, good, "a class has fewer than no samples");
}

/* What only some learners have: each part is announced. */
static void archive_rare(struct svi_archive *a, svs_learner *l) {
    bool unscaled = l->scaler.unscaled_count > 0 || l->d < l->declared;
    bool numbers = unscaled && svi_ring_squeezed(&l->waiting); /* by which it is known what is held */
    svi_archive_bool(a, "drifts", &l->drifts);
    svi_archive_bool(a, "plain features", &unscaled);
    if (unscaled) {
        svi_scaler_archive_unscaled(a, &l->scaler);
        archive_declared(a, l);
    }
    svi_archive_bool(a, "own numbers", &numbers);
    if (numbers)
        svi_ring_archive_numbers(a, &l->waiting, "waiting numbers");
    if (l->o.class_rule != SVS_CLASSES_ALIKE)
        archive_class_weights(a, l);
}

void svi_learner_archive(struct svi_archive *a, svs_learner *l) {
    const int begun = l->declared;
    svi_claim(l);
    if (!archive_features(a, l) || !archive_classes(a, l) || !archive_counters(a, l))
        return;
    svi_scaler_archive(a, &l->scaler);
    archive_energy(a, l);
    svi_alsvm_archive(a, l->m, l->gram_copy);
    if (!svi_archive_ok(a))
        return;
    archive_rings(a, l);
    if (a->loading)
        svi_class_recount(l);
    archive_sums(a, l);
    archive_rare(a, l);
    svi_archive_check(a, l->declared >= begun, "the learner has more features");
}
