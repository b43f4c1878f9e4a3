/* Leave-one-out errors for a grid of C, from one decomposition (linalg/ridge_path.h).
 *
 * A = G0 + a R, with G0 = sum s z z' over the samples held, R the present ridge and a = C now / C.
 * The score that sample i would have had from all the others is t - (t - z'w)/(1 - h), h = s z'A^-1
 * z (Sherman-Morrison; Allen 1974, "PRESS"). In the coordinates q of the decomposition z'A^-1 v =
 * sum_j q_j(z) q_j(v) shrink_j. All C therefore share the q of a row, and each adds one weighted
 * product.
 *
 * R leaves out the bias's part of the ridge. That part is added after R as one more step, as
 * ridge_add_bias does. With scale none its vector is as long as the means are far from 0. Inside G0
 * + a R it would drown the samples. G0 has the bias's direction by itself, since each z has a 1
 * there.
 *
 * Read svi_leave_one_out first: it gathers, decomposes, shrinks and makes one pass over the rows. */
#include "learner/leave_one_out.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/pool.h"
#include "learner/learner_internal.h"
#include "learner/owned_model.h"
#include "linalg/ridge_path.h"

#define BLOCK_ROWS   64
#define CERTAIN      1e-9 /* 1 - h below it: the sample alone makes its own score */
#define GRID_FIRST   (1 / 1024.0)
#define GRID_STEP    4
#define GRID_COUNT   11
#define NOISE_ERRORS 2 /* standard errors that a gain must exceed */

struct loo {
    svs_learner *l;
    struct svi_pool pool;
    int n, rows, count; /* dimension; of W; values of C */
    int present;
    double share[SVS_TUNING_MAX]; /* a of each C */
    double total;                 /* sum of s */
    struct svi_ridge_path path;
    double *right;             /* (rows + 1) x n: q of each right-hand side, last of the bias's vector */
    double *shrink;            /* count x n: 1 / (1 + (a - m) u_j) */
    double *shrunk;            /* count x (rows + 1) x n: `right`, so shrunk */
    double *bias;              /* count x (rows + 1): bias's vector times `shrunk`; last: beta */
    double *block, *turned;    /* BLOCK_ROWS x n: z, then q; then the squares of q */
    double *scores;            /* BLOCK_ROWS x count (rows + 1) */
    double *leverage;          /* BLOCK_ROWS x count */
    double *left, *targets;    /* count x rows: scores of one sample, left out; rows */
    double weight[BLOCK_ROWS]; /* s */
    int label[BLOCK_ROWS];
    double target[BLOCK_ROWS];
    double counted, counted_square; /* sums of p and p^2 of those left out, see struct loo_sums */
};

/* ---- what is held, in blocks */

/* Up to BLOCK_ROWS rows from *i on into `block`; how many. */
static int loo_take_block(struct loo *o, int32_t *i) {
    int m = 0;
    for (struct svi_learned row; m < BLOCK_ROWS && svi_next_row(o->l, i, &row); m++) {
        memcpy(o->block + (size_t)m * (size_t)o->n, row.z, (size_t)o->n * sizeof *row.z);
        o->weight[m] = row.s;
        o->label[m] = row.label;
        o->target[m] = row.target;
    }
    return m;
}

/* G0 into `factor`, the right-hand sides into `right`. */
static void loo_gather(struct loo *o) {
    const int n = o->n;
    int m;
    o->total = 0;
    for (int32_t i = 0; (m = loo_take_block(o, &i)) > 0;) {
        for (int r = 0; r < m; r++) {
            double *z = o->block + (size_t)r * (size_t)n, root = sqrt(o->weight[r]);
            svi_targets(o->l, o->label[r], o->target[r], o->targets);
            for (int k = 0; k < o->rows; k++)
                cblas_daxpy(n, o->weight[r] * o->targets[k], z, 1, o->right + (size_t)k * (size_t)n, 1);
            /* dsyrk takes rows of weight 1: each is scaled by the root of its weight, after its right-hand
             * sides are taken. */
            cblas_dscal(n, root, z, 1);
            o->total += o->weight[r];
        }
        cblas_dsyrk(CblasRowMajor, CblasLower, CblasTrans, n, m, 1, o->block, n, 1, o->path.factor, n);
    }
}

/* ---- the decomposition */

/* Decomposes G0 + m R, R without the bias. m lies in the geometric middle of all a, where the eigenvalues
 * lose the least over the grid. */
static svs_code loo_decompose(struct loo *o, svs_error *err) {
    double *ridge = o->block; /* space for them */
    ridge[0] = 0;
    for (int j = 1; j < o->n; j++) {
        const double v = o->l->o.scale == SVS_SCALE_NONE ? o->l->scaler.inverse[j - 1] : 1;
        ridge[j] = svi_ridge_weight(o->l, j) * v * v;
    }
    return svi_ridge_path_decompose(&o->path, ridge, sqrt(o->share[0]) * sqrt(o->share[o->count - 1]), err);
}

/* For each C what the scores of all samples have in common: the right-hand sides, shrunk, and for the bias's
 * step (weight a rho_0 along v) beta = 1 / (a rho_0) + v'A^-1 v. */
static void loo_shrink(struct loo *o) {
    const size_t n = (size_t)o->n, sides = (size_t)o->rows + 1;
    const double *vector = o->right + (size_t)o->rows * n;
    for (int g = 0; g < o->count; g++) {
        double *shrink = o->shrink + (size_t)g * n, *bias = o->bias + (size_t)g * sides;
        svi_ridge_path_shrink(&o->path, o->share[g], shrink);
        for (size_t k = 0; k < sides; k++) {
            double *shrunk = o->shrunk + ((size_t)g * sides + k) * n;
            for (size_t j = 0; j < n; j++) {
                shrunk[j] = shrink[j] * o->right[k * n + j];
                bias[k] += shrunk[j] * vector[j];
            }
        }
        bias[o->rows] += 1 / (o->share[g] * svi_ridge_weight(o->l, 0));
    }
}

/* The last right-hand side is the vector of the bias. All become q: what follows works in these coordinates
 * alone. */
static void loo_right_hand_sides(struct loo *o) {
    const size_t n = (size_t)o->n;
    svi_ridge_vector(o->l, 0, o->l->scratch[0]);
    memcpy(o->right + (size_t)o->rows * n, o->l->scratch[0], n * sizeof(double));
    for (int k = 0; k <= o->rows; k++) {
        memcpy(o->block, o->right + (size_t)k * n, n * sizeof(double));
        svi_ridge_path_turn(&o->path, o->block, 1, o->right + (size_t)k * n);
    }
}

/* ---- the errors */

/* Sums over samples of what they count, p = s / sum s. */
struct loo_sums {
    double squared, wrong;                  /* p of the errors */
    double gain, gain_weighed, gain_square; /* p d, p^2 d, p^2 d^2 of gains d */
};

/* The scores that row r of the block would have had, left out, for each C. Both come from A^-1 without the
 * bias's ridge and are corrected by its step: the score by z'A^-1 v v'A^-1 r / beta, the leverage by (z'A^-1
 * v)^2 / beta. False: for some C the sample alone makes its own score. */
static bool loo_leave_out(struct loo *o, int r) {
    const size_t sides = (size_t)o->rows + 1;
    for (int g = 0; g < o->count; g++) {
        const double *s = o->scores + ((size_t)r * (size_t)o->count + (size_t)g) * sides;
        const double *bias = o->bias + (size_t)g * sides, along = s[o->rows] / bias[o->rows];
        const double without =
            1 - o->weight[r] * (o->leverage[(size_t)r * (size_t)o->count + (size_t)g] - along * s[o->rows]);
        if (!(without > CERTAIN))
            return false;
        for (int k = 0; k < o->rows; k++)
            o->left[g * o->rows + k] = o->targets[k] - (o->targets[k] - (s[k] - along * bias[k])) / without;
    }
    return true;
}

static void loo_count(struct loo *o, int label, double p, struct loo_sums *sums) {
    const bool regress = o->l->o.task == SVS_REGRESS;
    double loss[SVS_TUNING_MAX];
    for (int g = 0; g < o->count; g++) {
        const double *score = o->left + (size_t)g * (size_t)o->rows;
        double squared = 0, wrong = 0;
        for (int k = 0; k < o->rows; k++)
            squared += (o->targets[k] - score[k]) * (o->targets[k] - score[k]) / o->rows;
        wrong = svi_predicted(o->l->o.task, o->l->class_count, score) != label;
        sums[g].squared += p * squared;
        sums[g].wrong += p * wrong;
        loss[g] = regress ? squared : wrong;
    }
    /* Gains are paired, sample by sample, against the present C: what all C find hard cancels, and the noise
     * is that of the difference. */
    for (int g = 0; g < o->count; g++) {
        const double gain = loss[o->present] - loss[g];
        sums[g].gain += p * gain;
        sums[g].gain_weighed += p * p * gain;
        sums[g].gain_square += p * p * gain * gain;
    }
}

/* The scores and leverages of the m rows of the block, before the bias's ridge. Two products for all C: q
 * times the shrunk right-hand sides, and q^2 times the shrink factors. */
static void loo_score_block(struct loo *o, int m) {
    const int n = o->n, wide = o->count * (o->rows + 1);
    svi_ridge_path_turn(&o->path, o->block, m, o->turned);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, wide, n, 1, o->turned, n, o->shrunk, n, 0,
                o->scores, wide);
    for (size_t i = 0; i < (size_t)m * (size_t)n; i++)
        o->turned[i] *= o->turned[i];
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, o->count, n, 1, o->turned, n, o->shrink, n, 0,
                o->leverage, o->count);
}

static void loo_pass(struct loo *o, struct loo_sums *sums, svs_tuning *out) {
    int m;
    for (int32_t i = 0; (m = loo_take_block(o, &i)) > 0;) {
        loo_score_block(o, m);
        for (int r = 0; r < m; r++) {
            const double p = o->weight[r] / o->total;
            svi_targets(o->l, o->label[r], o->target[r], o->targets);
            if (!loo_leave_out(o, r)) {
                out->skipped++;
                continue;
            }
            out->samples++;
            o->counted += p;
            o->counted_square += p * p;
            loo_count(o, o->label[r], p, sums);
        }
    }
}

/* Means, and the standard error of a weighted mean: the root of sum p^2 (d - mean)^2, over sum p. The best C
 * is `better` only if its gain exceeds NOISE_ERRORS standard errors. */
static void loo_finish(const struct loo *o, const struct loo_sums *sums, const double *C, svs_tuning *out) {
    const bool regress = o->l->o.task == SVS_REGRESS;
    out->count = o->count;
    out->present = out->best = o->present;
    for (int g = 0; g < o->count; g++) {
        const struct loo_sums *s = &sums[g];
        const double gain = s->gain / o->counted;
        const double spread = s->gain_square - 2 * gain * s->gain_weighed + gain * gain * o->counted_square;
        out->row[g] = (svs_tuning_row){.C = C[g],
                                       .squared = s->squared / o->counted,
                                       .wrong = regress ? NAN : s->wrong / o->counted,
                                       .gain = gain,
                                       .noise = sqrt(fmax(spread, 0)) / o->counted};
    }
    for (int g = 0; g < o->count; g++) {
        const svs_tuning_row *best = &out->row[out->best], *row = &out->row[g];
        const double ahead = row->gain - best->gain, equal = regress ? 0 : 1e-12; /* rounding of a sum */
        if (ahead > equal || (fabs(ahead) <= equal && row->squared < best->squared))
            out->best = g;
    }
    const svs_tuning_row *best = &out->row[out->best];
    out->better = best->gain > NOISE_ERRORS * best->noise;
}

/* ---- whole */

static svs_code loo_begin(struct loo *o, svs_error *err) {
    const size_t n = (size_t)o->n, sides = (size_t)o->rows + 1, count = (size_t)o->count;
    struct svi_pool *pool = &o->pool;
    SVI_POOL_DOUBLES(pool, sides, &o->targets);
    SVI_POOL_DOUBLES(pool, sides * n, &o->right);
    SVI_POOL_DOUBLES(pool, count * n, &o->shrink);
    SVI_POOL_DOUBLES(pool, count * sides, &o->bias, &o->left);
    SVI_POOL_DOUBLES(pool, count * sides * n, &o->shrunk);
    SVI_POOL_DOUBLES(pool, BLOCK_ROWS * n, &o->block, &o->turned);
    SVI_POOL_DOUBLES(pool, BLOCK_ROWS * count, &o->leverage);
    SVI_POOL_DOUBLES(pool, BLOCK_ROWS * count * sides, &o->scores);
    svs_code code = svi_pool_code(pool, "leave-one-out errors", err);
    return code == SVS_OK ? svi_ridge_path_init(&o->path, o->n, pool, err) : code;
}

static svs_code loo_refuse(const svs_learner *l, svs_error *err) {
    if (l->o.window == 0)
        return svi_fail(err, SVS_UNAVAILABLE,
                        "window 0 holds no samples, so none can be left out: set window to choose C");
    if (l->o.rule == SVS_FALSVM)
        return svi_fail(err, SVS_UNAVAILABLE,
                        "falsvm chooses its samples by C, so none can be left out: choose C with alsvm");
    if (l->held_learned < 2)
        return svi_fail(err, SVS_UNAVAILABLE,
                        "%s, so none can be left out: C can be chosen when two samples or more are held",
                        l->held_learned ? "only one sample is held" : "nothing is learned so far");
    return SVS_OK;
}

svs_code svi_leave_one_out(svs_learner *l, const double *C, int count, int present, svs_tuning *out,
                           svs_error *err) {
    struct loo_sums sums[SVS_TUNING_MAX] = {{0}};
    struct loo o = {.l = l, .n = l->d + 1, .rows = svi_rows(l), .count = count, .present = present};
    *out = (svs_tuning){0};
    svi_claim(l);
    svs_code code = loo_refuse(l, err);
    if (code != SVS_OK)
        return code;
    for (int g = 0; g < count; g++)
        o.share[g] = l->o.C / C[g];
    code = loo_begin(&o, err);
    if (code == SVS_OK) {
        loo_gather(&o);
        code = loo_decompose(&o, err);
    }
    if (code == SVS_OK) {
        loo_right_hand_sides(&o);
        loo_shrink(&o);
        loo_pass(&o, sums, out);
        if (!(o.counted > 0))
            code = svi_fail(err, SVS_NUMERIC,
                            "leave-one-out errors: each sample held determines its own score alone");
    }
    if (code == SVS_OK)
        loo_finish(&o, sums, C, out);
    svi_pool_free(&o.pool);
    return code;
}

/* The grid ascends, with the present C in its place: between two of its values, unless it is one of them. */
svs_code svs_learner_tune(svs_learner *l, svs_tuning *out, svs_error *err) {
    double C[SVS_TUNING_MAX], next = GRID_FIRST;
    int count = 0, present = -1;
    for (int i = 0; i < GRID_COUNT; i++, next *= GRID_STEP) {
        if (present < 0 && l->o.C <= next) {
            present = count;
            if (l->o.C < next)
                C[count++] = l->o.C;
        }
        C[count++] = next;
    }
    if (present < 0) {
        present = count;
        C[count++] = l->o.C;
    }
    return svi_leave_one_out(l, C, count, present, out, err);
}

double svi_leave_one_out_cost(const svs_learner *l) {
    const double n = l->d + 1, sides = svi_rows(l) + 1;
    return (double)l->held_learned * n * (2 * n + (GRID_COUNT + 1) * (sides + 1)) + 12 * n * n * n;
}
