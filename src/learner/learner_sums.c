/* The sums over the samples of a learner, for other processes.
 *
 * With a window they are made from the rows held, and nothing is kept between two calls: what has left the
 * window leaves no trace. The center comes first, because sums about the mean keep the digits that sums about
 * 0 lose to the level of a feature. It is taken about the first row and then once more about itself, so that
 * neither a level of 1e9 nor one enormous row spoils it; what it is off by is in `sum`.
 *
 * The second pass takes blocks of rows, centered and scaled by the roots of their weights. A block is
 * multiplied strip by strip into a small square, which is then added to the packed triangle: memory beyond
 * the result is O(d), and a sum of n rows has the rounding of n / SUMS_ROWS additions.
 *
 * Without a window the rows are no longer held, and the sums of the learner's G are brought back to raw
 * units. Rows that G has gathered but not added yet (gram.h) are added to the result alone: adding them to G
 * would move the later bits of the model. */
#include "learner/learner_sums.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "learner/learner_internal.h"

#define SUMS_ROWS  128 /* rows of a block */
#define SUMS_STRIP 96  /* rows of the triangle that are computed together */

struct sums_pass {
    const svs_learner *l;
    struct svi_window_sums *s;
    int d;         /* features with values: those beyond are 0 in all rows */
    double *block; /* SUMS_ROWS x d: sqrt(w) (x - c) */
    double *strip; /* SUMS_STRIP x d */
};

const svs_options *svi_learner_options(const svs_learner *l) {
    return &l->o;
}

bool svi_learner_is_unscaled(const svs_learner *l, int feature) {
    return svi_scaler_unscaled(&l->scaler, feature);
}

/* ---- with a window */

/* Moves the center to the weighted mean of what is held, measured about the present one. */
static void sums_center(const struct sums_pass *p) {
    const struct svi_ring *r = &p->l->window;
    double *mean = p->strip, *c = p->s->center, weight = 0;
    memset(mean, 0, (size_t)p->d * sizeof *mean);
    for (int32_t i = 0, slot; (slot = svi_next_learned(p->l, &i)) >= 0;) {
        const double *x = svi_ring_row(r, slot), w = svi_ring_weight(r, slot);
        weight += w;
        for (int j = 0; j < p->d; j++)
            mean[j] += w * (x[j] - c[j]);
    }
    for (int j = 0; j < p->d && weight > 0; j++)
        c[j] += mean[j] / weight;
}

/* Adds a row to all sums but the squares, and puts it into row `at` of the block. */
static void sums_take(const struct sums_pass *p, int32_t slot, int at) {
    const struct svi_ring *r = &p->l->window;
    struct svi_window_sums *s = p->s;
    const double *x = svi_ring_row(r, slot), w = svi_ring_weight(r, slot), root = sqrt(w);
    const bool regress = p->l->o.task == SVS_REGRESS;
    const double t = regress ? svi_ring_target(r, slot) : 0;
    double *z = p->block + (size_t)at * (size_t)p->d;
    const size_t label = regress ? 0 : (size_t)svi_ring_label(r, slot);
    double *group = regress ? s->target_sum : s->class_sum + label * (size_t)s->d;
    const double times = regress ? w * t : w;
    for (int j = 0; j < p->d; j++) {
        const double off = x[j] - s->center[j];
        z[j] = root * off;
        s->sum[j] += w * off;
        group[j] += times * off;
    }
    s->n++;
    s->weight += w;
    if (regress) {
        s->target_weight += w * t;
        s->target_square += w * t * t;
    } else {
        s->class_weight[label] += w;
    }
}

/* Adds the squares of the first `count` rows of the block. */
static void sums_square(const struct sums_pass *p, int count) {
    const int d = p->d;
    for (int from = 0; from < d; from += SUMS_STRIP) {
        const int rows = d - from < SUMS_STRIP ? d - from : SUMS_STRIP, columns = from + rows;
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, rows, columns, count, 1, p->block + from, d,
                    p->block, d, 0, p->strip, d);
        for (int i = 0; i < rows; i++) {
            const double *row = p->strip + (size_t)i * (size_t)d;
            double *to = p->s->square + svi_sums_packed(from + i);
            for (int j = 0; j <= from + i; j++)
                to[j] += row[j];
        }
    }
}

static svs_code sums_of_rows(svs_learner *l, struct svi_window_sums *s, svs_error *err) {
    struct sums_pass p = {.l = l, .s = s, .d = l->d};
    const size_t d = (size_t)l->d;
    int32_t i = 0;
    const int32_t first = svi_next_learned(l, &i);
    if (first < 0)
        return SVS_OK;
    if (!(p.block = svi_alloc_array((SUMS_ROWS + SUMS_STRIP) * d + 1, sizeof *p.block)))
        return svi_fail_memory(err, "the sums of a window");
    p.strip = p.block + SUMS_ROWS * d;
    memcpy(s->center, svi_ring_row(&l->window, first), d * sizeof *s->center);
    sums_center(&p);
    sums_center(&p);
    int count = 0;
    i = 0;
    for (int32_t slot; (slot = svi_next_learned(l, &i)) >= 0;) {
        sums_take(&p, slot, count++);
        if (count == SUMS_ROWS) {
            sums_square(&p, count);
            count = 0;
        }
    }
    if (count > 0)
        sums_square(&p, count);
    svi_free(p.block);
    return SVS_OK;
}

/* ---- without a window: all samples, by G in the coordinates z_j = (x_j - mean_j) inverse_j */

static void sums_of_gram(svs_learner *l, struct svi_window_sums *s) {
    svi_claim(l);
    const struct svi_gram *g = l->gram;
    const double *inverse = l->scaler.inverse;
    const size_t n = (size_t)g->n, d = (size_t)l->d;
    memcpy(s->center, l->scaler.mean, d * sizeof *s->center);
    s->n = l->held_learned;
    s->weight = svi_gram_total(g, 0);
    for (size_t i = 0; i < d; i++) {
        double *to = s->square + svi_sums_packed((int)i);
        const double *row = g->g + (i + 1) * n + 1;
        s->sum[i] = svi_gram_total(g, (int)i + 1) / inverse[i];
        memcpy(to, row, (i + 1) * sizeof *to);
        for (int b = 0; b < g->filled; b++) {
            const double *z = g->block + (size_t)b * n + 1, w = g->weight[b] * z[i];
            for (size_t j = 0; j <= i; j++)
                to[j] += w * z[j];
        }
        for (size_t j = 0; j <= i; j++)
            to[j] = to[j] / inverse[i] / inverse[j];
    }
    for (size_t k = 0; k < (size_t)s->classes; k++) {
        s->class_weight[k] = g->sums[k * n];
        for (size_t j = 0; j < d; j++)
            s->class_sum[k * (size_t)s->d + j] = g->sums[k * n + 1 + j] / inverse[j];
    }
    if (l->o.task != SVS_REGRESS)
        return;
    s->target_weight = g->sums[0];
    s->target_square = NAN;
    for (size_t j = 0; j < d; j++)
        s->target_sum[j] = g->sums[1 + j] / inverse[j];
}

/* Infinities and NaN survive a sum of magnitudes. */
static bool sums_are_finite(const struct svi_window_sums *s) {
    double total = fabs(s->weight) + fabs(s->target_weight);
    const size_t count = (size_t)(s->class_weight - s->block) + (size_t)s->classes * (1 + (size_t)s->d);
    for (size_t i = 0; i < count; i++)
        total += fabs(s->block[i]) * 0x1p-100;
    return isfinite(total) && !isinf(s->target_square);
}

svs_code svi_learner_sums(svs_learner *l, struct svi_window_sums *s, svs_error *err) {
    SVI_TRY(svi_window_sums_shape(s, l->declared, l->o.task == SVS_REGRESS ? 0 : l->class_count, err));
    if (l->o.rule != SVS_ALSVM || l->o.forget < 1)
        return svi_fail(err, SVS_UNAVAILABLE,
                        "the sums of falsvm, and of a learner that forgets by time, do not add up");
    if (l->o.window > 0)
        SVI_TRY(sums_of_rows(l, s, err));
    else if (l->held_learned > 0)
        sums_of_gram(l, s);
    return sums_are_finite(s) ? SVS_OK : svi_fail(err, SVS_NUMERIC, "the sums of the window exceed 1.8e308");
}
