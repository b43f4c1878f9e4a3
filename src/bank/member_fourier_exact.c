/* Least squares on the first Fourier features of the Fourier block, and on the row: a member over all
 * samples.
 *
 * It uses the features that the block made when it scored the row. A forgotten sample is taken back
 * through its row among the neighbours, from which the block makes the same features again: its draws
 * never change. */
#include <string.h>

#include "bank/member_block.h"
#include "bank/fourier_ridge.h"
#include "bank/member_nearest.h"
#include "base/alloc.h"
#include "base/fail.h"

#define FEATURES 208 /* features of the block; those of the row follow, so that new ones are appended */

struct fourier_exact {
    struct svi_fourier_ridge ridge;
    float *phi;    /* features of the current row: FEATURES + max_features */
    bool expanded; /* phi is that of the current row */
};

static size_t exact_length(const struct svi_member_context *c) {
    return FEATURES + (size_t)c->host->max_features;
}

static svs_code exact_init(const struct svi_member_part *p, int d, svs_error *err) {
    struct fourier_exact *e = p->self;
    if (!(e->phi = svi_alloc_array(exact_length(p->c), sizeof *e->phi)))
        return svi_fail_memory(err, "the features of least squares");
    return svi_fourier_ridge_init(&e->ridge, p->c->host->task, FEATURES + d, p->c->host->max_classes,
                                  p->c->host->isa, err);
}

static void exact_clear(const struct svi_member_part *p) {
    struct fourier_exact *e = p->self;
    if (p->on)
        return;
    svi_fourier_ridge_clear(&e->ridge);
    svi_free(e->phi);
    e->phi = NULL;
    e->expanded = false;
}

static void exact_reset(const struct svi_member_part *p) {
    struct fourier_exact *e = p->self;
    svi_fourier_ridge_empty(&e->ridge);
    e->expanded = false;
}

static svs_code exact_grow(const struct svi_member_part *p, int d, svs_error *err) {
    struct fourier_exact *e = p->self;
    return svi_fourier_ridge_grow(&e->ridge, FEATURES + d, err);
}

static void exact_renew(const struct svi_member_part *p, int feature) {
    struct fourier_exact *e = p->self;
    svi_fourier_ridge_forget_feature(&e->ridge, FEATURES + feature);
}

static void exact_add_classes(const struct svi_member_part *p) {
    struct fourier_exact *e = p->self;
    svi_fourier_ridge_classes(&e->ridge, p->c->classes);
}

/* Makes phi of a row that the block has just expanded. False: the Fourier features are not drawn yet. */
static bool exact_expand(struct fourier_exact *e, const struct svi_member_context *c, const float *z) {
    int count;
    const float *f = svi_block_features(svi_member_block_fourier(c), &count);
    if (count < FEATURES)
        return false;
    /* phi = (Fourier features, z). */
    memcpy(e->phi, f, FEATURES * sizeof *e->phi);
    memcpy(e->phi + FEATURES, z, (size_t)c->d * sizeof *e->phi);
    return true;
}

static void exact_score(const struct svi_member_part *p, double *scores) {
    struct fourier_exact *e = p->self;
    e->expanded = exact_expand(e, p->c, p->c->z);
    if (e->expanded)
        svi_fourier_ridge_score(&e->ridge, e->phi, scores);
    else
        memset(scores, 0, (size_t)p->c->rows * sizeof *scores);
}

/* While the block still collects rows for its draws, each sample touches some pages of G and its factor;
 * the first solution would otherwise take all page faults at once. */
static svs_code exact_learn(const struct svi_member_part *p, const struct svi_member_lesson *l,
                            svs_error *err) {
    struct fourier_exact *e = p->self;
    const struct svi_block *fourier = svi_member_block_fourier(p->c);
    const struct svi_held_sample *s = l->held;
    (void)err;
    if (e->expanded)
        svi_fourier_ridge_learn(&e->ridge, e->phi, s->label, s->target, s->weight, p->c->helper);
    else if (!(fourier->spread > 0))
        svi_fourier_ridge_touch(&e->ridge, fourier->kept_rows, SVI_FOURIER_ROWS);
    return SVS_OK;
}

static void exact_join(const struct svi_member_part *p) {
    struct fourier_exact *e = p->self;
    svi_fourier_ridge_join(&e->ridge);
}

static bool exact_held(const struct svi_member_part *p) {
    const struct fourier_exact *e = p->self;
    return e->expanded;
}

static void exact_take_back(const struct svi_member_part *p, const struct svi_held_sample *s) {
    struct fourier_exact *e = p->self;
    const float *z = svi_member_nearest_row(p->c, s->number);
    if (!z)
        return;
    /* The block's features are overwritten: nothing may be learned of the last row after this. */
    svi_block_expand(svi_member_block_fourier(p->c), z);
    if (exact_expand(e, p->c, z))
        svi_fourier_ridge_take_back(&e->ridge, e->phi, s->label, s->target, s->weight);
    /* phi is no longer that of a row that was scored. */
    e->expanded = false;
}

static void exact_archive(struct svi_archive *a, const struct svi_member_part *p) {
    struct fourier_exact *e = p->self;
    if (p->on && (!a->loading || exact_grow(p, p->c->d, a->err) == SVS_OK))
        svi_fourier_ridge_archive(a, &e->ridge);
}

static bool exact_fits(const struct svi_member_part *p) {
    const struct fourier_exact *e = p->self;
    return e->ridge.dim == 1 + FEATURES + p->c->d && e->ridge.classes == (p->c->regress ? 0 : p->c->classes);
}

static double exact_bytes(const struct svi_member_part *p) {
    return (double)(exact_length(p->c) * sizeof(float)) +
           svi_fourier_ridge_memory(p->c->host->task, FEATURES + p->c->d, p->c->host->max_classes);
}

const struct svi_member_ops svi_member_fourier_exact = {
    .size = sizeof(struct fourier_exact),
    .held_bit = 2,
    .init = exact_init,
    .clear = exact_clear,
    .reset = exact_reset,
    .grow = exact_grow,
    .renew = exact_renew,
    .add_classes = exact_add_classes,
    .score = exact_score,
    .learn = exact_learn,
    .join = exact_join,
    .held = exact_held,
    .take_back = exact_take_back,
    .archive = exact_archive,
    .fits = exact_fits,
    .bytes = exact_bytes,
};
