/* A learner's place of work (scratch.h).
 *
 * A learner that works has its state in a scratch (`in`): P with what is pending, W and the energies, laid
 * out for the kernels. With a scratch of its own it stays there. In one that others use it is put out when
 * another one comes in: its state is then `packed`, in room that it took when it could still fail, and which
 * means nothing while it is in. Everything else of a learner (rows, scaler, ridge, counters) is always with
 * it. Invariants: at most one learner is in a scratch, its owner; a scratch has room for each learner that
 * uses it; vectors are zero from the dimension of the owner on.
 *
 * The sums of G are the learner's own where they cannot be made again from rows: without a window, and with
 * forgetting, where what was gathered has been rescaled on the way. Else they are made from the rows when
 * they are wanted (svi_bucket_gather), in the order in which they would have been gathered.
 *
 * To read: svi_learner_enter, scratch_put_out, svi_learner_use_scratch. */
#include "learner/scratch.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "learner/learner_internal.h"

#define VECTORS 4

/* ---- room */

static void scratch_put_out(struct svi_learner_scratch *s) {
    svs_learner *l = s->owner;
    if (!l)
        return;
    const size_t n = (size_t)l->d + 1, size = n * sizeof(double);
    double *to = l->packed;
    memcpy(to, s->energy.energy, size);
    memcpy(to + n, s->energy.sum, size);
    memcpy(to + 2 * n, s->energy.peak, size);
    svi_alsvm_pack(s->m, &l->form, to + 3 * n);
    s->used = (size_t)l->feature_room + 1;
    l->in = false;
    s->owner = NULL;
}

/* Room for `count` doubles, of which `old` stay. */
static bool scratch_grow(double **array, size_t *old, size_t count) {
    if (count <= *old)
        return true;
    if (!svi_grow_doubles(array, *old, count))
        return false;
    *old = count;
    return true;
}

static bool scratch_vectors(struct svi_learner_scratch *s, size_t count) {
    double **all[] = {&s->energy.energy, &s->energy.sum, &s->energy.peak, &s->vector[0],
                      &s->vector[1],     &s->vector[2],  &s->vector[3]};
    for (size_t i = 0; count > s->vectors && i < sizeof all / sizeof *all; i++)
        if (!svi_grow_doubles(all[i], s->vectors, count))
            return false;
    s->vectors = count > s->vectors ? count : s->vectors;
    return true;
}

static bool scratch_rows(struct svi_learner_scratch *s, size_t rows) {
    double **all[] = {&s->target[0], &s->target[1], &s->scores, &s->b};
    for (size_t i = 0; rows > s->rows && i < sizeof all / sizeof *all; i++)
        if (!svi_grow_doubles(all[i], s->rows, rows))
            return false;
    s->rows = rows > s->rows ? rows : s->rows;
    return true;
}

/* If l is in, it stays as it is; another one goes out. */
static svs_code scratch_reserve(struct svi_learner_scratch *s, const svs_learner *l, int features, int rows,
                                int groups, svs_error *err) {
    const size_t n = (size_t)features + 1;
    if (s->owner != l)
        scratch_put_out(s);
    if (!s->m && !(s->m = svs_alsvm_new(1, 1, 1, l->o.isa, err)))
        return SVS_NO_MEMORY;
    if (!scratch_vectors(s, svi_features_vector_room(features)) || !scratch_rows(s, (size_t)rows) ||
        !scratch_grow(&s->W, &s->W_room, (size_t)rows * n) ||
        !scratch_grow(&s->gram_copy, &s->copy_room, n * n))
        return svi_fail_memory(err, "what a learner works with");
    if (!l->own_gram && ((int)n > s->gram.room || groups > s->gram.group_room)) {
        struct svi_gram wider;
        svs_code code = svi_gram_init_wider(&wider, (int)n, groups, &s->gram, err);
        if (code != SVS_OK)
            return code;
        wider.n = s->gram.n;
        wider.groups = s->gram.groups;
        if (s->gram.g)
            svi_gram_adopt(&s->gram, &wider);
        else
            s->gram = wider;
    }
    return svi_alsvm_reserve(s->m, l->kernels, (int)n, rows, err);
}

/* Where the learner that is in finds everything. */
static void scratch_point(svs_learner *l) {
    struct svi_learner_scratch *s = l->work;
    l->m = s->m;
    l->energy = &s->energy;
    l->scratch = s->vector;
    l->target = s->target;
    l->scores = s->scores;
    l->W = s->W;
    l->b = s->b;
    l->gram_copy = s->gram_copy;
    l->gram = l->own_gram ? l->own_gram : &s->gram;
}

svs_code svi_learner_reserve(svs_learner *l, int features, int rows, int groups, svs_error *err) {
    svs_code code = scratch_reserve(l->work, l, features, rows, groups, err);
    if (code == SVS_OK)
        code = svi_store_reserve(l, features, rows, l->class_room, l->shared, err);
    scratch_point(l); /* what could be had may lie elsewhere now */
    return code;
}

/* ---- in and out */

/* Energies and vectors are zero from here on. */
static void scratch_clean(struct svi_learner_scratch *s, size_t from) {
    double *const all[] = {s->energy.energy, s->energy.sum, s->energy.peak, s->vector[0],
                           s->vector[1],     s->vector[2],  s->vector[3]};
    for (size_t i = 0; from < s->used && i < sizeof all / sizeof *all; i++)
        memset(all[i] + from, 0, (s->used - from) * sizeof(double));
    s->used = from;
}

void svi_learner_enter_empty(svs_learner *l) {
    struct svi_learner_scratch *s = l->work;
    scratch_put_out(s);
    s->owner = l;
    l->in = true;
    scratch_point(l);
    svi_alsvm_begin(s->m, l->kernels, l->d + 1, svi_rows(l));
    scratch_clean(s, (size_t)l->d + 1);
    if (l->own_gram)
        return;
    s->gram.n = l->d + 1;
    s->gram.groups = l->class_count < 2 ? 2 : l->class_count;
    s->gram.filled = 0;
}

void svi_learner_enter(svs_learner *l) {
    struct svi_learner_scratch *s = l->work;
    const size_t n = (size_t)l->d + 1, size = n * sizeof(double);
    const double *from = l->packed;
    svi_learner_enter_empty(l);
    memcpy(s->energy.energy, from, size);
    memcpy(s->energy.sum, from + n, size);
    memcpy(s->energy.peak, from + 2 * n, size);
    svi_alsvm_unpack(s->m, &l->form, from + 3 * n);
}

void svi_learner_rest(svs_learner *l) {
    if (l->shared && l->in)
        scratch_put_out(l->work);
}

void svi_learner_leave(svs_learner *l) {
    if (l->in)
        l->work->owner = NULL;
    l->in = false;
    if (!l->shared)
        svi_learner_scratch_free(&l->work);
}

/* ---- whose it is */

struct svi_learner_scratch *svi_learner_scratch_new(svs_error *err) {
    struct svi_learner_scratch *s = svi_alloc(sizeof *s);
    if (!s)
        svi_fail_memory(err, "what a learner works with");
    return s;
}

void svi_learner_scratch_free(struct svi_learner_scratch **ps) {
    struct svi_learner_scratch *s = *ps;
    if (!s)
        return;
    double *const parts[] = {s->energy.energy, s->energy.sum, s->energy.peak, s->vector[0],
                             s->vector[1],     s->vector[2],  s->vector[3],   s->target[0],
                             s->target[1],     s->scores,     s->b,           s->W,
                             s->gram_copy};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        svi_free(parts[i]);
    svi_gram_clear(&s->gram);
    svs_alsvm_free(&s->m);
    svi_free(s);
    *ps = NULL;
}

/* The sums of a scratch that is left become the learner's own where they are to last. */
static svs_code scratch_keep_gram(svs_learner *l, svs_error *err) {
    if (l->own_gram || l->shared || !svi_gram_lasts(&l->o))
        return SVS_OK;
    struct svi_gram *own = svi_alloc(sizeof *own);
    if (!own)
        return svi_fail_memory(err, "the Gram matrix");
    *own = l->work->gram;
    l->work->gram = (struct svi_gram){0};
    l->own_gram = l->gram = own;
    return SVS_OK;
}

svs_code svi_learner_use_scratch(svs_learner *l, struct svi_learner_scratch *s, svs_error *err) {
    struct svi_learner_scratch *to = s ? s : l->shared ? svi_learner_scratch_new(err) : l->work;
    const int groups = l->class_count < 2 ? 2 : l->class_count;
    if (!to)
        return SVS_NO_MEMORY;
    if (to == l->work)
        return SVS_OK;
    svs_code code = s ? scratch_keep_gram(l, err) : SVS_OK;
    if (code == SVS_OK)
        code = scratch_reserve(to, l, l->feature_room, svi_rows(l), groups, err);
    if (code == SVS_OK)
        code = svi_store_reserve(l, l->feature_room, svi_rows(l), l->class_room, true, err);
    if (code != SVS_OK) {
        if (!s)
            svi_learner_scratch_free(&to);
        return code;
    }
    if (l->in)
        scratch_put_out(l->work);
    if (!l->shared)
        svi_learner_scratch_free(&l->work);
    l->work = to;
    l->shared = s;
    svi_learner_enter(l);
    if (!s)
        svi_bucket_gather(l);
    return SVS_OK;
}

/* ---- bytes */

double svi_learner_scratch_bytes(const struct svi_learner_scratch *s) {
    return (double)sizeof *s +
           8.0 * (double)((3 + VECTORS) * s->vectors + 4 * s->rows + s->W_room + s->copy_room) +
           svi_gram_bytes(&s->gram) + (s->m ? svi_alsvm_bytes(s->m) : 0);
}

double svi_learner_scratch_memory(const svs_options *o, int d, int classes) {
    const double n = (d < 1 ? 1 : d) + 1, rows = svi_rows_of(classes);
    return (double)sizeof(struct svi_learner_scratch) +
           8 * ((3 + VECTORS) * (double)svi_features_vector_room((int)n - 1) + 4 * rows + rows * n + n * n) +
           svi_gram_memory((int)n, classes) + svi_alsvm_memory((int)n, (int)rows, o->isa);
}

double svi_learner_bytes(const svs_learner *l) {
    double bytes = (double)sizeof *l + svi_ring_bytes(&l->window) + svi_ring_bytes(&l->waiting) +
                   svi_store_bytes(l) + svi_kept_bytes(l->kept) +
                   l->o.class_weight_count * (sizeof *l->given + (double)SVS_NAME_MAX);
    for (int k = 0; k < l->class_count; k++)
        bytes += l->classes[k].kind == SVS_STR ? SVS_NAME_MAX : 0;
    bytes += l->next_name ? SVS_NAME_MAX : 0;
    if (l->own_gram)
        bytes += (double)sizeof *l->own_gram + svi_gram_bytes(l->own_gram);
    return bytes + (l->shared ? 0 : svi_learner_scratch_bytes(l->work));
}

double svi_learner_lean_memory(const svs_options *o, int d, int classes) {
    const int features = d < 1 ? 1 : d;
    double bytes =
        (double)sizeof(svs_learner) + svi_ring_memory((double)o->window, features, svi_learner_columns(o)) +
        svi_store_memory(o, features, classes) + (classes + 1.0) * SVS_NAME_MAX + svi_class_weights_memory(o);
    if (svi_gram_lasts(o))
        bytes += (double)sizeof(struct svi_gram) + svi_gram_memory(features + 1, classes);
    return bytes;
}
