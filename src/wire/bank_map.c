#include "wire/bank_map.h"

#include <math.h>

#include "wire/calibration_map.h"

/* A pair is left out where the member has no such property: a window, a vote (regression), weights (it is not
 * linear), Fourier features. */
static void put_bank_member(struct svi_pack *p, const struct svi_bank_description *t,
                            const struct svi_member_description *m) {
    const struct svi_open_map map = svi_pack_open(p);
    svi_put_text(p, "name", m->name);
    svi_put_text(p, "kind", m->kind);
    if (m->window >= 0)
        svi_put_int(p, "window", m->window);
    svi_put_real(p, "recent", m->recent);
    if (!isnan(m->vote))
        svi_put_real(p, "vote", m->vote);
    svi_put_reals(p, "stacks", m->stack, SVI_BANK_STACKS);
    if (t->mixed_count > 0) {
        svi_put_reals(p, "logistic", m->logistic, SVI_BANK_LOGISTIC);
        svi_put_real(p, "mean", m->mean);
        svi_put_real(p, "scale", m->scale);
    }
    if (m->W) {
        svi_put_doubles(p, "W", m->W, (size_t)t->rows * (size_t)t->d);
        svi_put_rows(p, "b", m->b, t->rows);
    }
    if (m->fourier > 0)
        svi_put_int(p, "features", m->fourier);
    svi_pack_close(p, map);
}

/* An expert combines members: by votes, or as a stack, which alone has a window and a constant. Its scores
 * become probabilities by a slope (two classes) or a law (more). */
static void put_bank_expert(struct svi_pack *p, const struct svi_bank_description *t,
                            const struct svi_expert_description *e) {
    const struct svi_open_map map = svi_pack_open(p);
    svi_put_text(p, "name", e->name);
    if (e->window >= 0) {
        svi_put_int(p, "window", e->window);
        svi_put_real(p, "constant", e->constant);
    }
    svi_put_real(p, "share", e->share);
    if (e->slope > 0)
        svi_put_real(p, "slope", e->slope);
    if (e->law.a > 0)
        svi_put_calibration(p, &e->law, t->rows);
    svi_pack_close(p, map);
}

/* A logistic stack alone has a memory and a constant, a base rate alone counts. */
static void put_bank_mixed(struct svi_pack *p, const struct svi_bank_description *t,
                           const struct svi_mixed_description *e) {
    const struct svi_open_map map = svi_pack_open(p);
    svi_put_text(p, "name", e->name);
    svi_put_real(p, "share", e->share);
    if (e->keep > 0) {
        svi_put_real(p, "keep", e->keep);
        svi_put_real(p, "constant", e->constant);
    }
    if (e->counts)
        svi_put_doubles(p, "counts", e->counts, (size_t)t->class_count);
    svi_pack_close(p, map);
}

/* A forest's nodes are left out where an earlier event had them. */
static void put_bank_forest(struct svi_pack *p, const struct svi_forest_description *f, bool brief) {
    const struct svi_open_map map = svi_pack_open(p);
    svi_put_text(p, "name", f->member);
    svi_put_int(p, "version", f->version);
    if (f->nodes && !(brief && f->sent)) {
        svi_put_doubles(p, "base", f->base, (size_t)f->rows);
        svi_put_array(p, "first", (size_t)f->trees);
        for (int i = 0; i < f->trees; i++)
            svi_pack_int(p, f->first[i]);
        svi_pack_key(p, "nodes");
        svi_pack_bin(p, f->nodes, f->size);
    }
    if (f->zero_count > 0) {
        svi_put_array(p, "zero", (size_t)f->zero_count);
        for (int i = 0; i < f->zero_count; i++)
            svi_pack_int(p, f->zero[i]);
    }
    svi_pack_close(p, map);
}

static void put_bank_trees(struct svi_pack *p, const struct svi_bank_description *t) {
    svi_pack_key(p, "trees");
    const struct svi_open_map map = svi_pack_open(p);
    svi_put_doubles(p, "origin", t->origin, (size_t)t->origins);
    if (t->task == SVS_REGRESS)
        svi_put_real(p, "target", t->target_origin);
    else
        svi_put_real(p, "limit", t->sure);
    svi_put_array(p, "forests", (size_t)t->forest_count);
    for (int i = 0; i < t->forest_count; i++)
        put_bank_forest(p, &t->forest[i], t->brief);
    svi_pack_close(p, map);
}

void svi_put_bank(struct svi_pack *p, const struct svi_bank_description *t) {
    svi_put_uint(p, "version", t->version);
    svi_put_bool(p, "serves", t->serves);
    svi_put_text(p, "task", t->task == SVS_REGRESS ? "regress" : "classify");
    svi_put_int(p, "d", t->d);
    svi_pack_key(p, "classes");
    svi_pack_values(p, t->classes, t->class_count);
    svi_put_array(p, "members", (size_t)t->count);
    for (int i = 0; i < t->count; i++)
        put_bank_member(p, t, &t->member[i]);
    svi_put_array(p, "experts", SVI_BANK_EXPERTS);
    for (int i = 0; i < SVI_BANK_EXPERTS; i++)
        put_bank_expert(p, t, &t->expert[i]);
    if (t->mixed_count > 0)
        svi_put_array(p, "mixture", (size_t)t->mixed_count);
    for (int i = 0; i < t->mixed_count; i++)
        put_bank_mixed(p, t, &t->mixed[i]);
    svi_put_real(p, "clip", t->clip);
    if (t->task == SVS_REGRESS) {
        svi_put_real(p, "center", t->center);
        svi_put_real(p, "unit", t->unit);
    }
    /* The standardisation z = clip((x - mean) scale), which the Fourier features are drawn for. */
    svi_put_doubles(p, "mean", t->mean, (size_t)t->d);
    svi_put_doubles(p, "scale", t->scale, (size_t)t->d);
    if (t->forest_count > 0)
        put_bank_trees(p, t);
    if (t->fourier == 0)
        return;
    /* The Fourier features follow from seed, count and spread, so they are not sent. */
    svi_put_map(p, "fourier", 3);
    svi_put_uint(p, "seed", t->seed);
    svi_put_int(p, "count", t->fourier);
    svi_put_real(p, "spread", t->spread);
}

void svi_put_members(struct svi_pack *p, const struct svi_member_scores *m) {
    svi_pack_map(p, (size_t)m->count);
    for (int i = 0; i < m->count; i++) {
        svi_pack_name(p, m->name[i], strlen(m->name[i]));
        svi_pack_array(p, (size_t)m->rows);
        for (int r = 0; r < m->rows; r++)
            svi_pack_real(p, m->scores[i][r]);
    }
}
