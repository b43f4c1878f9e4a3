/* A learner's place of work (scratch.h).
 *
 * A learner that works has its state in a scratch (`in`): P with what is pending, W and the energies, laid
 * out for the kernels. With a scratch of its own it stays there. In one that others use it is evicted when
 * another one comes in: its state is then `packed`, in memory that it took when it could still fail, and
 * which means nothing while it is in. Everything else of a learner (rows, scaler, ridge, counters) is always
 * with it. Invariants: at most one learner is in a scratch, its owner; a scratch has capacity for each
 * learner that uses it; vectors are zero from the dimension of the owner on.
 *
 * The sums of G are the learner's own where they cannot be made again from rows: without a window, and with
 * forgetting, where what was gathered has been rescaled on the way. Else they are made from the rows when
 * they are wanted (svi_bucket_gather), in the order in which they would have been gathered.
 *
 * Read svi_learner_restore_state, scratch_put_out and svi_learner_use_scratch first. */
#include "learner/scratch.h"

#include <string.h>

#include "base/alloc.h"
#include "base/arrays.h"
#include "base/fail.h"
#include "learner/learner_internal.h"

#define VECTORS 9 /* energies, and vectors: one behind the other */
#define KEPT    5 /* of them a learner keeps */

enum { VECTOR, ROWS, N, DIMS };
static const struct svi_array scratch_table[] = {
#define OWNER struct svi_learner_scratch
    SVI_ARRAY(OWNER, energy.energy, NULL, SVI_AXIS(VECTOR)),
    SVI_ARRAY(OWNER, energy.sum, NULL, SVI_AXIS(VECTOR)),
    SVI_ARRAY(OWNER, energy.peak, NULL, SVI_AXIS(VECTOR)),
    SVI_ARRAY(OWNER, energy.probe, NULL, SVI_AXIS(VECTOR)),
    SVI_ARRAY(OWNER, from, NULL, SVI_AXIS(VECTOR)),
    SVI_ARRAY(OWNER, vector[0], NULL, SVI_AXIS(VECTOR)),
    SVI_ARRAY(OWNER, vector[1], NULL, SVI_AXIS(VECTOR)),
    SVI_ARRAY(OWNER, vector[2], NULL, SVI_AXIS(VECTOR)),
    SVI_ARRAY(OWNER, vector[3], NULL, SVI_AXIS(VECTOR)),
    SVI_ARRAY(OWNER, energy.way, NULL, SVI_AXIS(VECTOR)),
    SVI_ARRAY(OWNER, target[0], NULL, SVI_AXIS(ROWS)),
    SVI_ARRAY(OWNER, target[1], NULL, SVI_AXIS(ROWS)),
    SVI_ARRAY(OWNER, scores, NULL, SVI_AXIS(ROWS)),
    SVI_ARRAY(OWNER, b, NULL, SVI_AXIS(ROWS)),
    SVI_ARRAY(OWNER, W, NULL, SVI_AXIS(ROWS), SVI_AXIS(N)),
    SVI_ARRAY(OWNER, gram_copy, NULL, SVI_AXIS(N), SVI_AXIS(N)),
    SVI_ARRAY(OWNER, residual, NULL, SVI_AXIS(ROWS), SVI_AXIS(VECTOR)),
#undef OWNER
};
static const struct svi_arrays scratch_arrays =
    SVI_ARRAYS_ALIGNED(scratch_table, "what a learner works with");

/* ---- capacity */

/* Packs the owner: the five vectors that a learner keeps (KEPT), then P and W. Cannot fail: `packed` has the
 * capacity since svi_learner_reserve. */
static void scratch_put_out(struct svi_learner_scratch *s) {
    svs_learner *l = s->owner;
    if (!l)
        return;
    const size_t n = (size_t)l->d + 1, size = n * sizeof(double);
    double *to = l->packed;
    const double *v = s->energy.energy; /* the first of them */
    for (int i = 0; i < KEPT; i++, v += s->capacity[VECTOR])
        memcpy(to + (size_t)i * n, v, size);
    svi_alsvm_pack(s->m, &l->form, to + KEPT * n);
    /* The vectors hold values up to here; the next owner clears what lies beyond its own dimension
     * (scratch_clean). */
    s->used = (size_t)l->feature_capacity + 1;
    l->in = false;
    s->owner = NULL;
}

/* If l is in, it stays as it is. Another one is evicted first: its vectors move when the arrays grow, and
 * their layout depends on the capacity. */
static svs_code scratch_reserve(struct svi_learner_scratch *s, const svs_learner *l, int features, int rows,
                                int groups, svs_error *err) {
    const size_t n = (size_t)features + 1;
    if (s->owner != l)
        scratch_put_out(s);
    if (!s->m && !(s->m = svs_alsvm_new(1, 1, 1, l->o.isa, err)))
        return SVS_NO_MEMORY;
    int32_t to[DIMS] = {(int32_t)svi_learner_features_vector_capacity(features), rows, (int32_t)n};
    for (int i = 0; i < DIMS; i++)
        to[i] = to[i] > s->capacity[i] ? to[i] : s->capacity[i];
    if (svi_arrays_resize(&scratch_arrays, s, s->capacity, to, err) != SVS_OK)
        return SVS_NO_MEMORY;
    memcpy(s->capacity, to, sizeof to);
    svi_refine_way(s->energy.way, to[VECTOR]);
    const svs_code code = l->own_gram ? SVS_OK : svi_gram_reserve(&s->gram, (int)n, groups, err);
    return code == SVS_OK ? svi_alsvm_reserve(s->m, l->kernels, (int)n, rows, err) : code;
}

/* Where the learner that is in finds everything. */
static void scratch_point(svs_learner *l) {
    struct svi_learner_scratch *s = l->work;
    l->m = s->m;
    l->energy = &s->energy;
    l->from = s->from;
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
        code = svi_learner_store_reserve(l, features, rows, l->class_capacity, l->shared, err);
    scratch_point(l); /* even on failure: what could be had may lie elsewhere now */
    return code;
}

/* ---- in and out */

/* Makes energies and vectors zero from here on, as far as the last owner has used them: the kernels read
 * padded vectors to their end. */
static void scratch_clean(struct svi_learner_scratch *s, size_t from) {
    double *v = s->energy.energy; /* the first of them */
    for (int i = 0; from < s->used && i < VECTORS; i++, v += s->capacity[VECTOR])
        memset(v + from, 0, (s->used - from) * sizeof *v);
    s->used = from;
}

void svi_learner_restore_empty(svs_learner *l) {
    struct svi_learner_scratch *s = l->work;
    scratch_put_out(s);
    s->owner = l;
    l->in = true;
    scratch_point(l);
    svi_alsvm_begin(s->m, l->kernels, l->d + 1, svi_rows(l));
    scratch_clean(s, (size_t)l->d + 1);
    if (l->own_gram)
        return;
    /* Sums in the scratch are those of the last owner: emptied here, and made again from the rows when they
     * are wanted. */
    s->gram.n = l->d + 1;
    s->gram.groups = l->class_count < 2 ? 2 : l->class_count;
    s->gram.filled = 0;
}

void svi_learner_restore_state(svs_learner *l) {
    struct svi_learner_scratch *s = l->work;
    const size_t n = (size_t)l->d + 1, size = n * sizeof(double);
    const double *from = l->packed;
    svi_learner_restore_empty(l);
    double *v = s->energy.energy;
    for (int i = 0; i < KEPT; i++, v += s->capacity[VECTOR])
        memcpy(v, from + (size_t)i * n, size);
    svi_alsvm_unpack(s->m, &l->form, from + KEPT * n);
}

/* Before another thread uses the learner, or somebody else the scratch: the state is in its own memory then.
 */
void svi_learner_release_scratch(svs_learner *l) {
    if (l->shared && l->in)
        scratch_put_out(l->work);
}

void svi_learner_disown_scratch(svs_learner *l) {
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
    svi_arrays_free(&scratch_arrays, s);
    svi_gram_clear(&s->gram);
    svs_alsvm_free(&s->m);
    svi_free(s);
    *ps = NULL;
}

/* The sums of a scratch that is left become the learner's own where they must last. */
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

/* What can fail comes first: the sums, the new scratch, the place for the packed state. Then the learner
 * moves, by packing and unpacking, which keeps every bit. */
svs_code svi_learner_use_scratch(svs_learner *l, struct svi_learner_scratch *s, svs_error *err) {
    struct svi_learner_scratch *to = s ? s : l->shared ? svi_learner_scratch_new(err) : l->work;
    const int groups = l->class_count < 2 ? 2 : l->class_count;
    if (!to)
        return SVS_NO_MEMORY;
    if (to == l->work)
        return SVS_OK;
    svs_code code = s ? scratch_keep_gram(l, err) : SVS_OK;
    if (code == SVS_OK)
        code = scratch_reserve(to, l, l->feature_capacity, svi_rows(l), groups, err);
    if (code == SVS_OK)
        code = svi_learner_store_reserve(l, l->feature_capacity, svi_rows(l), l->class_capacity, true, err);
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
    svi_learner_restore_state(l);
    /* In its own scratch it gathers sample by sample from now on, so the bucket must hold what is missing. */
    if (!s)
        svi_bucket_gather(l);
    return SVS_OK;
}

/* ---- bytes */

double svi_learner_scratch_memory(const svs_options *o, int d, int classes) {
    const int features = d < 1 ? 1 : d, n = features + 1, rows = svi_rows_of(classes);
    const int32_t dims[] = {(int32_t)svi_learner_features_vector_capacity(features), rows, n};
    return (double)sizeof(struct svi_learner_scratch) + (double)svi_arrays_bytes(&scratch_arrays, dims) +
           svi_gram_memory(n, classes) + svi_alsvm_memory(n, rows, o->isa);
}

double svi_learner_shared_memory(const svs_options *o, int d, int classes) {
    const int features = d < 1 ? 1 : d;
    double bytes = (double)sizeof(svs_learner) +
                   svi_ring_memory((double)o->window, features, svi_learner_columns(o)) +
                   svi_learner_store_memory(o, features, classes) + (classes + 1.0) * SVS_NAME_MAX +
                   svi_class_weights_memory(o);
    if (svi_gram_lasts(o))
        bytes += (double)sizeof(struct svi_gram) + svi_gram_memory(features + 1, classes);
    return bytes;
}
