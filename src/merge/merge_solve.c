/* The solution of the union of all parts (merge_solve.h).
 *
 * Each solution is made from nothing: which parts belong together, their features and classes, the
 * sums, the model. That costs about d^2 operations a part and d^3 for the model. In return the
 * result is a function of the records that are held. Nothing is ever subtracted, so a part that was
 * dropped or replaced leaves nothing in the last bits. */
#include "merge/merge_solve.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/fnv.h"
#include "learner/owned_model.h"
#include "merge/union_solve.h"

/* ---- which parts belong together */

struct likeness {
    uint64_t hash;
    int64_t at;
};

static int likeness_order(const void *a, const void *b) {
    const struct likeness *x = a, *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* What the rows of a part are, as one number; whether they have names is part of it. */
static uint64_t part_likeness(const struct svi_part *p) {
    const uint64_t hash = svi_sums_schema_hash(&p->record);
    return svi_fnv(hash, p->record.features || p->record.kind == SVI_SUMS_NAMED ? "+" : "-", 1);
}

/* Can it be joined at all? With `strict` a part whose sums are those of no samples cannot. */
static bool part_may_join(const struct svi_part *p, bool strict) {
    return !p->dropped && !(strict && p->sound == SVI_PART_UNSOUND);
}

/* Refuses the parts that are not like the largest group of equal ones. *lead: the first of that group; NULL:
 * there are no parts. */
static svs_code merge_group(struct svi_merge *m, bool strict, struct svi_part **lead, svs_error *err) {
    struct likeness *all = svi_alloc_array((size_t)m->count + 1, sizeof *all);
    int64_t count = 0, most = 0, first = -1;
    *lead = NULL;
    if (!all)
        return svi_fail_memory(err, "the order of all parts");
    for (int64_t i = 0; i < m->count; i++)
        if (part_may_join(m->part[i], strict))
            all[count++] = (struct likeness){part_likeness(m->part[i]), i};
    qsort(all, (size_t)count, sizeof *all, likeness_order);
    for (int64_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && all[end].hash == all[i].hash; end++)
            ;
        if (end - i > most || (end - i == most && all[i].at < first)) {
            most = end - i;
            first = all[i].at;
        }
    }
    svi_free(all);
    *lead = first < 0 ? NULL : m->part[first];
    const uint64_t hash = first < 0 ? 0 : part_likeness(*lead);
    for (int64_t i = 0; i < m->count; i++) {
        struct svi_part *p = m->part[i];
        p->why.code = SVS_OK;
        if (!p->dropped && !part_may_join(p, strict))
            svi_fail(&p->why, SVS_NUMERIC,
                     "its sums cannot be those of any samples (a variance below 0, or a correlation beyond "
                     "1): they are damaged, or were made by another program");
        else if (!p->dropped && part_likeness(p) != hash)
            svi_join_refuse(p, *lead, &p->why);
    }
    return SVS_OK;
}

static bool part_is_in(const struct svi_part *p) {
    return !p->dropped && p->why.code == SVS_OK;
}

/* Joins the parts of the group one after another. Lack of memory ends it; a part that contradicts the ones
 * before it stays out. */
static svs_code merge_join(struct svi_merge *m, const struct svi_part *lead, struct svi_join *j,
                           svs_error *err) {
    const bool named = lead->record.features || lead->record.kind == SVI_SUMS_NAMED;
    SVI_TRY(svi_join_begin(j, named, m->o.max_features, m->o.max_classes, err));
    for (int64_t i = 0; i < m->count; i++) {
        struct svi_part *p = m->part[i];
        if (part_is_in(p) && svi_join_add(j, p, &p->why) == SVS_NO_MEMORY) {
            *err = p->why;
            p->why.code = SVS_OK;
            return SVS_NO_MEMORY;
        }
    }
    return SVS_OK;
}

/* ---- the solution */

static svs_code fail_apart(const char *key, const char *a, const struct svi_part *p, const char *b,
                           const struct svi_part *q, svs_error *err) {
    return svi_fail(err, SVS_SETTING,
                    "%s is %s in part %.60s, but %s in part %.60s: set --%s for the merged model", key, a,
                    p->record.part, b, q->record.part, key);
}

/* C and scale: as given, else those of all joined parts. */
static svs_code merge_settings(const struct svi_merge *m, struct svi_union_options *o, svs_error *err) {
    static const char *const scales[] = {[SVS_SCALE_NONE] = "none", [SVS_SCALE_STANDARD] = "standard"};
    const struct svi_part *first = NULL;
    char a[32], b[32];
    for (int64_t i = 0; i < m->count; i++) {
        const struct svi_part *p = m->part[i];
        if (!part_is_in(p))
            continue;
        first = first ? first : p;
        snprintf(a, sizeof a, "%g", first->record.C);
        snprintf(b, sizeof b, "%g", p->record.C);
        if (!(m->o.C > 0) && p->record.C != first->record.C)
            return fail_apart("C", a, first, b, p, err);
        if (!m->o.scaled && p->record.scale != first->record.scale)
            return fail_apart("scale", scales[first->record.scale], first, scales[p->record.scale], p, err);
    }
    if (!first)
        return svi_fail(err, SVS_EMPTY, "no part is joined");
    o->C = m->o.C > 0 ? m->o.C : first->record.C;
    o->scale = m->o.scaled ? m->o.scale : first->record.scale;
    if (!(o->C > 0))
        return svi_fail(err, SVS_SETTING,
                        "C of part %.60s is %g: it must be above 0; set --C for the merged model",
                        first->record.part, o->C);
    return SVS_OK;
}

static svs_code merge_sum(struct svi_merge *m, const struct svi_join *j, svs_task task, svs_error *err) {
    struct svi_union_part *all = svi_alloc_array((size_t)m->count + 1, sizeof *all);
    int count = 0;
    svs_code code = all ? svi_union_shape(&m->sums, task, j->d, j->classes, err)
                        : svi_fail_memory(err, "the list of all parts");
    for (int64_t i = 0; code == SVS_OK && i < m->count; i++) {
        const struct svi_part *p = m->part[i];
        if (part_is_in(p))
            all[count++] = (struct svi_union_part){&p->record.sums, p->feature, p->label};
    }
    if (code == SVS_OK)
        svi_union_center(&m->sums, all, count);
    for (int i = 0; code == SVS_OK && i < count; i++)
        svi_union_add(&m->sums, &all[i]);
    svi_free(all);
    return code;
}

static int64_t add_up(int64_t a, int64_t b) {
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* The figures of the model: what all parts have seen and hold. */
static void merge_figures(const struct svi_merge *m, svs_model *model) {
    bool bounded = true;
    for (int64_t i = 0; i < m->count; i++) {
        const struct svi_sums *r = &m->part[i]->record;
        if (!part_is_in(m->part[i]))
            continue;
        model->seen = add_up(model->seen, r->offset);
        model->learned = add_up(model->learned, r->sums.n);
        model->window = add_up(model->window, r->window);
        bounded = bounded && r->window > 0;
    }
    if (!bounded)
        model->window = 0;
}

static svs_code merge_model(struct svi_merge *m, const struct svi_join *j, const struct svi_union_options *o,
                            svs_model **out, svs_error *err) {
    const svs_task task = m->sums.task;
    const int rows = task == SVS_CLASSIFY && j->classes > 2 ? j->classes : 1;
    const char **names = svi_join_feature_names(j);
    if (j->named && !names)
        return svi_fail_memory(err, "the names of all features");
    struct svi_owned_model *owned = svi_model_new(task, j->d, rows, j->label, j->classes, names, err);
    svi_free(names);
    if (!owned)
        return err->code;
    *out = &owned->model;
    SVI_TRY(svi_union_solve(&m->sums, o, owned->W, owned->b, err));
    m->next.size = 0;
    SVI_TRY(svi_join_schema(j, &m->next, err));
    (*out)->method = SVI_METHOD_MERGED;
    (*out)->version = m->version + 1;
    (*out)->C = o->C;
    (*out)->serves = true;
    (*out)->schema = m->next.size > 0 ? m->next.data : NULL;
    (*out)->schema_size = m->next.size;
    merge_figures(m, *out);
    return SVS_OK;
}

static svs_code merge_solve(struct svi_merge *m, bool strict, struct svi_join *j, svs_model **out,
                            svs_error *err) {
    struct svi_part *lead;
    struct svi_union_options o = {0};
    SVI_TRY(merge_group(m, strict, &lead, err));
    if (!lead)
        return svi_fail(err, SVS_EMPTY, "no part is joined");
    SVI_TRY(merge_join(m, lead, j, err));
    SVI_TRY(merge_settings(m, &o, err));
    SVI_TRY(merge_sum(m, j, lead->record.task, err));
    if (!(m->sums.weight.high > 0))
        return svi_fail(err, SVS_EMPTY, "no part holds a labelled sample yet");
    o.exempt = j->exempt;
    return merge_model(m, j, &o, out, err);
}

/* Assesses the parts of a union that cannot be solved. True: there is one whose sums are those of no samples.
 */
static bool merge_assess(struct svi_merge *m, svs_error *err) {
    bool unsound = false;
    for (int64_t i = 0; i < m->count; i++) {
        struct svi_part *p = m->part[i];
        if (part_is_in(p) && svi_part_assess(p, err) != SVS_OK)
            return false;
        unsound = unsound || (part_is_in(p) && p->sound == SVI_PART_UNSOUND);
    }
    return unsound;
}

/* Solves; the caller frees *out in any case. One damaged part must not end the model of all others: where
 * the union cannot be solved, such parts are looked for, and it is solved without them. */
static svs_code merge_try(struct svi_merge *m, svs_model **out, svs_error *err) {
    struct svi_join j = {0};
    svs_code code = merge_solve(m, false, &j, out, err);
    if (code == SVS_NUMERIC && merge_assess(m, err)) {
        svi_join_clear(&j);
        svs_model_free(out);
        err->code = SVS_OK;
        code = merge_solve(m, true, &j, out, err);
    }
    svi_join_clear(&j);
    return code == SVS_NUMERIC ? err->code : code; /* no memory to look for them */
}

svs_code svi_merge_solve(struct svi_merge *m) {
    svs_model *model = NULL;
    m->failure.code = SVS_OK;
    const svs_code code = merge_try(m, &model, &m->failure);
    if (code == SVS_OK) {
        const struct svi_bytes before = m->schema;
        svs_model_free(&m->model);
        m->model = model;
        m->version = model->version;
        m->schema = m->next;
        m->next = before;
    } else {
        svs_model_free(&model);
    }
    /* Without memory the next turn tries again. */
    m->changed = code == SVS_NO_MEMORY;
    m->failure.code = code;
    return code;
}
