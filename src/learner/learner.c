/* The public calls of a learner (svmstream/learner.h), and what it reports of itself.
 *
 * A step scores first and then learns. It standardises the row into input 0 of the recursion.
 * Before the first change it checks or reserves everything that can fail: a bad value, memory for
 * an id, a new class. It then makes the scores, and svi_slide learns (learner_slide.c). Invariant:
 * a call that fails has changed nothing but what had expired by time. A sample without a label but
 * with an id waits in a ring with the scores it was given. svs_learner_label takes it from there.
 *
 * In the order of reading: svs_learner_step with learner_insert_row, learner_admit,
 * learner_make_scores and learner_take_label; svs_learner_label and svs_learner_forget;
 * svs_learner_model. The construction matters only when capacities are the question. */
#include "svmstream/learner.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "learner/learner_archive.h"
#include "learner/learner_internal.h"
#include "learner/learner_prior.h"
#include "learner/owned_model.h"

#define WINDOW_MAX 1000000000 /* slots are numbered by 32 bits */

void svs_options_default(svs_options *o) {
    *o = (svs_options){.task = SVS_CLASSIFY,
                       .rule = SVS_ALSVM,
                       .C = 1,
                       .window = 1000,
                       .forget = 1,
                       .scale = SVS_SCALE_STANDARD,
                       .max_features = SVI_FEATURES_DEFAULT,
                       .max_classes = 64,
                       .labels_ttl = 3600,
                       .labels_max = 10000,
                       .isa = SVS_ISA_BEST};
}

/* One row a rule: what must hold, and what to say when it does not. */
svs_code svi_learner_check_options(const svs_options *o, int d, svs_error *err) {
    const struct {
        bool good;
        const char *text;
    } rules[] = {
        {o->C > 0 && o->C <= 1e12, "C must be above 0 and at most 1e12"},
        {o->window >= 0 && o->window <= WINDOW_MAX, "window must be 0 to 1,000,000,000 samples"},
        {o->window_seconds >= 0 && o->window_seconds < INFINITY, "window.seconds must be 0 or more"},
        {o->window > 0 || o->window_seconds == 0, "window.seconds needs window, the most samples to hold"},
        {o->forget > 0 && o->forget <= 1, "forget must be above 0 and at most 1"},
        {o->max_features >= 1 && o->max_features <= 100000, "max.features must be 1 to 100,000"},
        {o->max_classes >= 2 && o->max_classes <= 100000, "max.classes must be 2 to 100,000"},
        {o->labels_ttl >= 0 && o->labels_ttl < INFINITY, "labels.ttl must be 0 or more"},
        {o->labels_max >= 0 && o->labels_max <= WINDOW_MAX, "labels.max must be 0 to 1,000,000,000"},
        {o->rule == SVS_ALSVM || o->task == SVS_CLASSIFY,
         "method falsvm learns from misclassified samples: task must be classify"},
        {d >= 0 && d <= o->max_features, "more features than max.features"},
        {svi_kernels_get(o->isa), "this machine lacks the requested instruction set"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (!rules[i].good)
            return svi_fail(err, SVS_SETTING, "%s", rules[i].text);
    return SVS_OK;
}

/* ---- construction */

/* Slots of the ring of samples that wait. Samples that got their label leave dead slots behind: with a
 * quarter more slots than samples may wait, the ring is squeezed only after many. */
static int learner_waiting_slots(const svs_options *o) {
    return o->labels_ttl > 0 ? o->labels_max + (o->labels_max + 3) / 4 : 0;
}

unsigned svi_learner_columns(const svs_options *o) {
    return SVI_RING_WINDOW | (o->task == SVS_REGRESS ? SVI_RING_HAS(TARGET) : 0) |
           (o->class_rule != SVS_CLASSES_ALIKE ? SVI_RING_HAS(FACTOR) : 0);
}

/* Parts that every learner has. Sums that cannot be made again from rows are its own, even where it works in
 * a shared scratch: another learner would overwrite them there. */
static svs_code learner_build(svs_learner *l, int d, svs_error *err) {
    svs_code code = svi_class_weights_init(l, err);
    svi_scaler_grow(&l->scaler, d);
    if (code == SVS_OK && l->shared && svi_gram_lasts(&l->o)) {
        l->own_gram = svi_alloc(sizeof *l->own_gram);
        code = l->own_gram ? svi_gram_init(l->own_gram, d + 1, 2, err) : svi_fail_memory(err, "the sums");
    }
    return code;
}

svs_learner *svi_learner_new(const svs_options *o, int d, struct svi_learner_scratch *s, svs_error *err) {
    return svi_learner_new_for(o, d, d, s, err);
}

svs_learner *svi_learner_new_for(const svs_options *o, int d, int capacity, struct svi_learner_scratch *s,
                                 svs_error *err) {
    const int features = capacity < 1 ? 1 : capacity;
    if (svi_learner_check_options(o, d, err) != SVS_OK)
        return NULL;
    svs_learner *l = svi_learner_store_learner(o, features, s);
    if (!l) {
        svi_fail_memory(err, "a learner");
        return NULL;
    }
    l->nu = 1 / (2 * o->C);
    l->d = l->declared = d;
    l->feature_capacity = features;
    l->kernels = svi_kernels_get(o->isa);
    l->shared = s;
    l->work = s ? s : svi_learner_scratch_new(err);
    svi_ring_init(&l->window, (int32_t)o->window, features, svi_learner_columns(o));
    svi_ring_init(&l->waiting, learner_waiting_slots(o), features + 2, SVI_RING_WAITING);
    if (!l->work || learner_build(l, d, err) != SVS_OK ||
        svi_learner_reserve(l, features, 1, 2, err) != SVS_OK) {
        svs_learner_free(&l);
        return NULL;
    }
    /* Everything is allocated: from here on nothing fails. Entering needs the capacity that was just
     * reserved, and the reset fills what was entered. */
    svi_learner_restore_empty(l);
    svs_learner_reset(l);
    return l;
}

svs_learner *svs_learner_new(const svs_options *o, int d, svs_error *err) {
    return svi_learner_new(o, d, NULL, err);
}

void svs_learner_free(svs_learner **pl) {
    svs_learner *l = *pl;
    if (!l)
        return;
    for (int k = 0; k < l->class_count; k++)
        svi_class_forget(&l->classes[k]);
    svi_kept_clear(l);
    svi_prior_free(l);
    svi_learner_store_free(l);
    svi_free(l->given);
    svi_free(l->next_name);
    svi_ring_clear(&l->window);
    svi_ring_clear(&l->waiting);
    if (l->own_gram)
        svi_gram_clear(l->own_gram);
    svi_free(l->own_gram);
    svi_learner_disown_scratch(l);
    svi_free(l);
    *pl = NULL;
}

/* The order: those that count the rows (snapshot, prior, means) are notified before the rings are emptied.
 * The version rises, so no reader takes the empty model for the one before. */
void svs_learner_reset(svs_learner *l) {
    svi_claim(l);
    if (l->snapshot)
        svi_snapshot_drop(l->snapshot, l);
    svi_learner_count_held(l, -1);
    svi_prior_drop(l);
    svi_kept_clear(l);
    svi_ring_empty(&l->window);
    svi_ring_empty(&l->waiting);
    svi_scaler_reset(&l->scaler);
    svi_gram_zero(l->gram);
    svi_alsvm_reset(l->m, svi_rows(l), l->nu);
    double *const energies[] = {l->energy->energy, l->energy->sum, l->energy->peak, l->energy->probe};
    for (int i = 0; i < 4; i++)
        memset(energies[i], 0, (size_t)l->work->capacity[0] * sizeof(double));
    memset(l->targets_in, 0, (size_t)l->class_capacity * sizeof *l->targets_in);
    l->bucket = l->drifts = false;
    l->held_learned = 0;
    l->arrivals = l->next_rebuild = l->order = l->base = 0;
    svi_refine_begin_epoch(l);
    svi_class_recount(l);
    svi_ridge_reset(l);
    l->version++;
}

/* ---- what comes in */

/* For a row of which |z|^2 does not prove that it is fine (learner_insert_row): looks at each value, to say
 * which one is wrong. */
static svs_code learner_check_row(const svs_learner *l, const double *x, double square, svs_error *err) {
    for (int j = 0; j < l->declared; j++)
        if (!(fabs(x[j]) <= SVI_VALUE_MAX))
            return isfinite(x[j])
                       ? svi_fail(err, SVS_TOO_LARGE,
                                  "feature %d is %g; values beyond 1e100 are too large to compute with", j,
                                  x[j])
                       : svi_fail(err, SVS_NOT_FINITE, "feature %d is %g", j, x[j]);
    /* Features that are declared but not in yet have no z; they count with their raw values. */
    for (int j = l->d; j < l->declared; j++)
        square += x[j] * x[j];
    return square <= SVI_SQUARE_MAX
               ? SVS_OK
               : svi_fail(err, SVS_TOO_LARGE,
                          "the sample lies too many deviations from all earlier ones to compute with it");
}

/* Makes z of a raw row in input 0. While |z|^2 stays below scaler.safe no raw value can be beyond
 * SVI_VALUE_MAX (scaler.h), nor NAN, for which the comparison is false: one comparison instead of d. */
static inline svs_code learner_insert_row(svs_learner *l, const double *x, svs_error *err) {
    double square = svi_transform_into(l, 0, x);
    const bool good = square <= l->scaler.safe && l->d == l->declared;
    return good ? SVS_OK : learner_check_row(l, x, square, err);
}

/* Features with their first value in this row take part from now on. That widens W as well: the capacity
 * that was reserved for a new class was for the d of before, and z must be made again. */
static svs_code learner_wake(svs_learner *l, const svs_sample *s, bool fresh, svs_error *err) {
    bool widened = false;
    svs_code code = svi_learner_features_wake(l, s->x, &widened, err);
    if (code != SVS_OK || !widened)
        return code;
    if (fresh)
        code = svi_class_reserve(l, s->y, err);
    svi_transform_into(l, 0, s->x);
    return code;
}

/* An id and a class label are an integer or a string of 1 to SVS_NAME_MAX bytes. */
static bool learner_good_name(svs_value v) {
    return v.kind == SVS_INT || (v.kind == SVS_STR && v.length >= 1 && v.length <= SVS_NAME_MAX);
}

/* How a sample with a label is going to be learned. */
struct learner_entry {
    bool fresh; /* its class is new; there is space for it */
    struct svi_weight weight;
};

/* The label as a class index (-1: a new class, whose room is reserved) or a target. */
static svs_code learner_resolve(svs_learner *l, svs_value y, svs_step *out, svs_error *err) {
    if (l->o.task == SVS_REGRESS) {
        const double target = y.kind == SVS_INT ? (double)y.as.i : y.kind == SVS_REAL ? y.as.r : NAN;
        if (!(fabs(target) <= SVI_VALUE_MAX))
            return svi_fail(err, SVS_BAD_LABEL,
                            "the target of a regression is a finite number of at most 1e100");
        out->target = target;
        return SVS_OK;
    }
    if (!learner_good_name(y))
        return svi_fail(err, SVS_BAD_LABEL, "a class label is an integer or a string of 1 to %d bytes",
                        SVS_NAME_MAX);
    out->label = svi_class_find(l, y);
    return out->label < 0 ? svi_class_reserve(l, y, err) : SVS_OK;
}

static __attribute__((noinline)) svs_code learner_reserve(svs_learner *l, svs_value id, const svs_step *out,
                                                          struct svi_weight weight, svs_error *err) {
    const struct svi_slot slot = svi_slot_of(l, id, out, weight);
    return svi_ring_reserve(&l->window, &slot, err);
}

/* All that can fail of learning the row of *s, which is in input 0. A normal sample needs no more memory:
 * the ring shows that by one check, and the reservation stays out of line. */
static svs_code learner_admit(svs_learner *l, const svs_sample *s, svs_step *out, struct learner_entry *entry,
                              svs_error *err) {
    svs_code code = learner_resolve(l, s->y, out, err);
    entry->fresh = l->o.task != SVS_REGRESS && out->label < 0;
    entry->weight = (struct svi_weight){s->weight, 1};
    if (code == SVS_OK && l->o.class_rule != SVS_CLASSES_ALIKE)
        code = svi_class_weigh(l, s->y, out->label, s->weight, &entry->weight, err);
    if (code != SVS_OK || l->o.window == 0)
        return code;
    const struct svi_slot slot = svi_slot_of(l, s->id, out, entry->weight);
    return svi_ring_takes(&l->window, &slot) ? SVS_OK : learner_reserve(l, s->id, out, entry->weight, err);
}

static void learner_make_scores(svs_learner *l, svs_step *out) {
    svi_scores_now(l, l->scores);
    out->scores = l->scores;
    out->rows = l->m->r.rows;
    out->class_count = l->class_count;
    out->predicted = svi_predicted(l->o.task, l->class_count, l->scores);
    out->version = l->version;
}

/* Learns *s, whose z is in input 0, with the label that `out` has by now. Nothing in it can fail. */
static inline void learner_take_label(svs_learner *l, const svs_sample *s, const struct learner_entry *entry,
                                      double time, svs_step *out) {
    uint64_t version = l->version;
    if (entry->fresh) {
        out->label = svi_class_add(l, s->y);
        svi_transform_into(l, 0, s->x); /* adding a row of W needed the buffer */
    }
    svi_slide(l, s->x, &s->id, entry->weight.own, entry->weight.factor, time, out);
    /* skipped by FALSVM, but the model has a class more */
    l->version += entry->fresh && l->version == version;
}

/* A free slot for one more sample that waits. Dead ones at the front go first; the oldest live one only
 * where as many wait as may, which is counted as an eviction; dead ones in between by a squeeze. */
static void learner_make_place(svs_learner *l) {
    struct svi_ring *r = &l->waiting;
    while (r->count > 0 && !svi_ring_live(r, r->first))
        svi_ring_pop(r);
    if (r->live == l->o.labels_max) {
        l->health.labels_evicted++;
        svi_ring_pop(r);
    }
    if (svi_ring_full(r))
        svi_ring_squeeze(r);
}

static svs_code learner_wait_for_label(svs_learner *l, const svs_sample *s, double time, svs_step *out,
                                       svs_error *err) {
    if (l->waiting.max == 0 || s->id.kind == SVS_NONE)
        return SVS_OK;
    struct svi_slot own = {.time = time,
                           /* A late label is reported against the prediction that was given at arrival, so
                            * the sample keeps its scores (behind its row), the version and the number of
                            * classes. */
                           .weight = s->weight,
                           .factor = 1,
                           .label = -1,
                           .version = out->version,
                           .predicted = out->predicted,
                           .class_count = out->class_count,
                           .id = s->id};
    SVI_TRY(svi_ring_reserve(&l->waiting, &own, err));
    learner_make_place(l);
    /* Everything up to `stride` is written: the slot may have held another sample. */
    const int32_t slot = svi_ring_push(&l->waiting, &own);
    double *row = svi_ring_row(&l->waiting, slot);
    memcpy(row, s->x, (size_t)l->d * sizeof *row);
    memset(row + l->d, 0, (size_t)(l->feature_capacity - l->d) * sizeof *row);
    memcpy(row + l->feature_capacity, out->scores, (size_t)out->rows * sizeof *row);
    out->waiting = true;
    return SVS_OK;
}

/* The first sample is here, and all is well with it: the prior is taken before it is scored. The classes
 * that come with the prior may have its label among them, so the label is resolved again; and the epoch
 * changes, so z is made again. */
static svs_code learner_take_prior(svs_learner *l, const svs_sample *s, bool labelled,
                                   struct learner_entry *entry, svs_step *out, svs_error *err) {
    SVI_TRY(svi_prior_begin(l, entry->fresh, err));
    if (labelled)
        SVI_TRY(learner_admit(l, s, out, entry, err));
    svi_prior_solve(l, s->x);
    svi_transform_into(l, 0, s->x);
    return SVS_OK;
}

svs_code svs_learner_step(svs_learner *l, const svs_sample *s, double time, svs_step *out, svs_error *err) {
    *out = (svs_step){.label = -1, .target = NAN};
    const bool labelled = s->y.kind != SVS_NONE;
    struct learner_entry entry = {0};
    /* Before anything is read: the state may be packed, while another learner works in the scratch. */
    svi_claim(l);
    if (s->d != l->declared)
        return svi_fail(err, SVS_WRONG_DIMENSION, "the sample has %d features, the model %d", s->d,
                        l->declared);
    if (!(s->weight > 0 && s->weight <= SVI_VALUE_MAX))
        return svi_fail(err, SVS_BAD_WEIGHT, "a weight is a positive finite number, not %g", s->weight);
    /* Checks, from the cheapest to those that reserve; none has changed the model when the next one fails. */
    svs_code code = learner_insert_row(l, s->x, err);
    if (code == SVS_OK && s->id.kind != SVS_NONE && !learner_good_name(s->id))
        code = svi_fail(err, SVS_BAD_ID, "an id is an integer or a string of 1 to %d bytes", SVS_NAME_MAX);
    if (code == SVS_OK && labelled)
        code = learner_admit(l, s, out, &entry, err);
    if (code == SVS_OK && l->d < l->declared)
        code = learner_wake(l, s, entry.fresh, err);
    if (code != SVS_OK)
        return code;
    /* Only before the first sample. */
    if (l->prior && svi_prior_waits(l) &&
        (code = learner_take_prior(l, s, labelled, &entry, out, err)) != SVS_OK)
        return code;
    /* From here on nothing that was checked can fail. A sample is scored by the model without it: the
     * published quality is honest because of this order. */
    learner_make_scores(l, out);
    if (labelled)
        learner_take_label(l, s, &entry, time, out);
    else
        code = learner_wait_for_label(l, s, time, out, err);
    /* What is too old by now leaves last, so that the scores are those of the model before this sample
     * arrived. */
    if (l->waiting.count > 0 || l->o.window_seconds > 0)
        out->removed += svi_expire(l, time);
    /* A snapshot of the window is copied a few rows a step (snapshot.h), so that no step waits for all of
     * it. */
    if (l->snapshot)
        svi_snapshot_copy(l->snapshot, l, SVI_SNAPSHOT_ROWS);
    return code;
}

static svs_code learner_unknown_id(svs_value id, const char *how, svs_error *err) {
    char text[SVS_NAME_MAX + 1];
    return svi_fail(err, SVS_UNKNOWN_ID, "no sample with id %s %s", svs_value_text(id, text, sizeof text),
                    how);
}

svs_code svs_learner_label(svs_learner *l, svs_value id, svs_value y, double time, svs_step *out,
                           svs_error *err) {
    struct learner_entry entry;
    svi_claim(l);
    /* By time first: a sample that has waited too long is not labelled any more. */
    *out = (svs_step){.label = -1, .target = NAN, .removed = svi_expire(l, time)};
    int32_t slot = svi_ring_find(&l->waiting, id);
    if (slot < 0)
        return learner_unknown_id(
            id,
            "waits for a label: it never arrived, has its label, or was dropped by labels.ttl or labels.max",
            err);
    svs_sample held = {.x = svi_ring_row(&l->waiting, slot),
                       .d = l->declared,
                       .id = id,
                       .y = y,
                       .weight = svi_ring_double(&l->waiting, SVI_RING_WEIGHT, slot, 1)};
    svs_code code = learner_insert_row(l, held.x, err); /* by the deviations of now */
    if (code == SVS_OK)
        code = learner_admit(l, &held, out, &entry, err);
    if (code != SVS_OK)
        return code;
    /* Its scores are copied out of the ring before learning, which may use the same slot. */
    slot = svi_ring_find(&l->waiting, id); /* a new class may have moved the ring to more space */
    const struct svi_ring_scores *s = svi_ring_scored(&l->waiting, slot);
    const double *row = svi_ring_row(&l->waiting, slot);
    out->rows = svi_rows_of(s->class_count); /* and the scores as they were made when it arrived */
    out->class_count = s->class_count;
    out->predicted = s->predicted;
    out->version = s->version;
    out->scores = memcpy(l->scores, row + l->feature_capacity, (size_t)out->rows * sizeof *row);
    held.x = row;
    held.id = svi_ring_id(&l->waiting, slot);
    learner_take_label(l, &held, &entry, time, out);
    svi_ring_kill(&l->waiting, slot);
    l->health.labels_joined++;
    out->removed += svi_expire(l, time);
    return SVS_OK;
}

/* Takes every sample with that id out of a ring; returns how many. `older` is looked up first: a slot that
 * is out is no longer found. */
static int learner_forget_in(svs_learner *l, struct svi_ring *r, svs_value id) {
    int taken = 0;
    for (int32_t slot = svi_ring_find(r, id), older; slot >= 0; slot = older, taken++) {
        older = svi_ring_find_older(r, slot);
        if (r == &l->window)
            svi_remove_slot(l, slot);
        else
            svi_ring_kill(r, slot);
    }
    return taken;
}

svs_code svs_learner_forget(svs_learner *l, svs_value id, double time, int *count, svs_error *err) {
    svi_claim(l);
    svi_expire(l, time);
    int taken = learner_forget_in(l, &l->window, id) + learner_forget_in(l, &l->waiting, id);
    l->health.forgotten += taken;
    if (count)
        *count = taken;
    return taken ? SVS_OK : learner_unknown_id(id, "is held or waits for a label", err);
}

/* ---- what it knows */

int svs_learner_dimension(const svs_learner *l) {
    return l->declared;
}

int svs_learner_rows(const svs_learner *l) {
    return svi_rows(l);
}

uint64_t svs_learner_version(const svs_learner *l) {
    return l->version;
}

int svs_learner_class_count(const svs_learner *l) {
    return l->class_count;
}

svs_value svs_learner_class(const svs_learner *l, int index) {
    return index >= 0 && index < l->class_count ? l->classes[index] : svs_none();
}

void svs_learner_scores(svs_learner *l, const double *x, double *scores) {
    svs_step step;
    svi_claim(l);
    svi_transform_into(l, 0, x);
    learner_make_scores(l, &step);
    memcpy(scores, step.scores, (size_t)step.rows * sizeof *scores);
}

/* The model in raw units: z_j = (x_j - mean_j) / deviation_j, so W_j = w_j / deviation_j and b = w_0 - sum
 * W_j mean_j. */
svs_code svs_learner_model(svs_learner *l, svs_model *m, svs_error *err) {
    (void)err;
    svi_claim(l);
    int rows = svi_rows(l);
    for (int k = 0; k < rows; k++) {
        const double *w = svs_alsvm_weights(l->m, k);
        double *raw = l->W + (size_t)k * (size_t)l->declared, b = w[0];
        /* Features that are declared and not in yet keep 0. */
        memset(raw, 0, (size_t)l->declared * sizeof *raw);
        for (int j = 0; j < l->d; j++) {
            raw[j] = w[1 + j] * l->scaler.inverse[j];
            b -= raw[j] * l->scaler.mean[j];
        }
        l->b[k] = b;
    }
    *m = (svs_model){.version = l->version,
                     .method = l->o.rule == SVS_FALSVM ? "falsvm" : "alsvm",
                     .task = l->o.task,
                     .d = l->declared,
                     .rows = rows,
                     .class_count = l->class_count,
                     .W = l->W,
                     .b = l->b,
                     .classes = l->classes,
                     .C = l->o.C,
                     .window = l->o.window,
                     .learned = l->health.learned,
                     .serves = true};
    return SVS_OK;
}

void svs_learner_health(const svs_learner *l, svs_health *h) {
    *h = l->health;
    h->held = l->window.live;
    h->waiting = l->waiting.live;
}

double svs_learner_memory(const svs_options *o, int d, int classes) {
    const unsigned each = SVI_RING_HAS(ID) | SVI_RING_HAS(WEIGHT);
    const int features = d < 1 ? 1 : d, scores = 2 * svi_rows_of(classes);
    const double window = (double)o->window;
    return svi_learner_shared_memory(o, d, classes) + svi_learner_scratch_memory(o, d, classes) +
           svi_ring_memory(window, features, svi_learner_columns(o) | each) -
           svi_ring_memory(window, features, svi_learner_columns(o)) +
           svi_ring_memory(learner_waiting_slots(o), features + scores, SVI_RING_WAITING | each);
}
