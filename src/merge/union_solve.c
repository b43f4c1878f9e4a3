/* The model of a union, from its sums.
 *
 * Coordinates: u_0 = 1, u_j = (x_j - c_j) / s_j, with c the center and s_j the deviation of the
 * union (1 for a constant feature). In these H = sum w u u' + ridge has the condition of the
 * correlations alone, whatever the units are. The ridge is a form in the coordinates of the
 * learner. It is nu v_j^2 for a standardised feature, nu (v_j / s_j)^2 for a raw one, and nu
 * (r'v)^2 for the bias. Here r_0 = 1, and r_j = -c_j / s_j for raw features, because the bias is
 * penalised where the raw features are 0.
 *
 * H is kept in double double and factored in double (Cholesky). Residuals in double double then
 * correct the solution until it stands (Wilkinson's iterative refinement). That leaves an error far
 * below that of the sums themselves. If the factor in double fails, or does not correct (a
 * condition beyond about 1e15), H is factored in double double, once and slowly. */
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "linalg/cholesky.h"
#include "merge/dd.h"
#include "merge/union_solve.h"

#define CONSTANT 1e-12   /* of the mean: a smaller deviation is rounding, as in the learner */
#define SMALLEST 1e-90   /* its inverse square can still be computed with */
#define GOOD     0x1p-54 /* relative size of the last correction: below the rounding of the result, ... */
#define ENOUGH   1e-14   /* ... or, where corrections do not shrink any more, this */
#define SLOW_MAX 1025    /* coordinates up to which double double factors in seconds */

struct solution {
    const struct svi_union_sums *u;
    const struct svi_union_options *o;
    int n; /* coordinates: d + 1 */
    double nu;
    double *inverse;                     /* [n] 1 / s_j; of the bias 1 */
    bool *raw;                           /* [n] the ridge is of the raw feature */
    struct svi_dd *bias;                 /* [n] r */
    struct svi_dd *h;                    /* [n (n + 1) / 2] */
    double *factor;                      /* [n x n] */
    struct svi_dd *slow;                 /* [n (n + 1) / 2] factor in double double; NULL: `factor` serves */
    struct svi_dd *right, *v, *residual; /* [n] */
    double *step;                        /* [n] */
    bool starved;                        /* no memory for `slow` */
};

static void solution_free(struct solution *s) {
    void *const all[] = {s->inverse, s->raw,   s->bias, s->h,        s->factor,
                         s->slow,    s->right, s->v,    s->residual, s->step};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        svi_free(all[i]);
}

static svs_code solution_new(struct solution *s, svs_error *err) {
    const size_t n = (size_t)s->n;
    s->inverse = svi_alloc_array(n, sizeof *s->inverse);
    s->raw = svi_alloc_array(n, sizeof *s->raw);
    s->bias = svi_alloc_array(n, sizeof *s->bias);
    s->h = svi_alloc_array(svi_sums_packed(s->n), sizeof *s->h);
    s->factor = svi_alloc_array(n * n, sizeof *s->factor);
    s->right = svi_alloc_array(n, sizeof *s->right);
    s->v = svi_alloc_array(n, sizeof *s->v);
    s->residual = svi_alloc_array(n, sizeof *s->residual);
    s->step = svi_alloc_array(n, sizeof *s->step);
    if (s->inverse && s->raw && s->bias && s->h && s->factor && s->right && s->v && s->residual && s->step)
        return SVS_OK;
    return svi_fail_memory(err, "the solution for all parts");
}

/* ---- the equations */

/* Deviations, and the image r of the penalised bias. */
static void solution_scale(struct solution *s) {
    const struct svi_union_sums *u = s->u;
    s->inverse[0] = 1;
    s->bias[0] = (struct svi_dd){1, 0};
    for (int j = 0; j < u->d; j++) {
        const double square = u->square[svi_sums_packed(j) + (size_t)j].high,
                     deviation = square > 0 ? sqrt(square / u->weight.high) : 0;
        const bool varies = deviation > CONSTANT * fabs(u->center[j]) && deviation > SMALLEST;
        s->inverse[j + 1] = varies ? 1 / deviation : 1;
        s->raw[j + 1] = s->o->scale == SVS_SCALE_NONE || (s->o->exempt && s->o->exempt[j]);
        s->bias[j + 1] =
            s->raw[j + 1] ? svi_two_product(-u->center[j], s->inverse[j + 1]) : (struct svi_dd){0, 0};
    }
}

/* Row i of sum w u u', without the ridge. */
static void solution_row(const struct solution *s, int i, struct svi_dd *row) {
    const struct svi_union_sums *u = s->u;
    if (i == 0) {
        row[0] = u->weight;
        return;
    }
    const struct svi_dd *square = u->square + svi_sums_packed(i - 1);
    row[0] = svi_dd_times(u->sum[i - 1], s->inverse[i]);
    for (int j = 1; j <= i; j++)
        row[j] = svi_dd_times(svi_dd_times(square[j - 1], s->inverse[i]), s->inverse[j]);
}

static void solution_matrix(struct solution *s) {
    for (int i = 0; i < s->n; i++) {
        struct svi_dd *row = s->h + svi_sums_packed(i);
        solution_row(s, i, row);
        for (int j = 0; j <= i; j++)
            if (s->bias[i].high != 0 && s->bias[j].high != 0)
                row[j] = svi_dd_add(row[j], svi_dd_times(svi_dd_product(s->bias[i], s->bias[j]), s->nu));
        if (i > 0) {
            const struct svi_dd one = {1, 0},
                                unit = s->raw[i] ? svi_two_product(s->inverse[i], s->inverse[i]) : one;
            row[i] = svi_dd_add(row[i], svi_dd_times(unit, s->nu));
        }
    }
}

/* Targets are 1 for the class of row k and -1 for the others, as in the learner: with one row the second
 * class is the positive one, and a single class is negative. */
static void solution_right(struct solution *s, int k, int rows) {
    const struct svi_union_sums *u = s->u;
    const bool classify = u->task == SVS_CLASSIFY;
    const int label = rows > 1 ? k : u->classes > 1 ? 1 : -1;
    const struct svi_dd zero = {0, 0};
    const struct svi_dd *sum =
        classify ? (label < 0 ? NULL : u->class_sum + (size_t)label * (size_t)u->d) : u->target_sum;
    const struct svi_dd weight = !classify ? u->target_weight : label < 0 ? zero : u->class_weight[label];
    s->right[0] = classify ? svi_dd_less(svi_dd_times(weight, 2), u->weight) : weight;
    for (int j = 0; j < u->d; j++) {
        const struct svi_dd of = sum ? sum[j] : zero,
                            all = classify ? svi_dd_less(svi_dd_times(of, 2), u->sum[j]) : of;
        s->right[j + 1] = svi_dd_times(all, s->inverse[j + 1]);
    }
}

/* ---- factors */

static bool solution_factor(struct solution *s) {
    for (int i = 0; i < s->n; i++)
        for (int j = 0; j <= i; j++)
            s->factor[(size_t)i * (size_t)s->n + (size_t)j] = s->h[svi_sums_packed(i) + (size_t)j].high;
    return svi_factor_spd(s->factor, s->n);
}

/* H = L L' in double double, row by row. False: not positive definite. */
static bool solution_factor_slow(struct solution *s) {
    for (int i = 0; i < s->n; i++) {
        struct svi_dd *li = s->slow + svi_sums_packed(i);
        for (int j = 0; j <= i; j++) {
            const struct svi_dd *lj = s->slow + svi_sums_packed(j);
            struct svi_dd rest = s->h[svi_sums_packed(i) + (size_t)j];
            for (int k = 0; k < j; k++)
                rest = svi_dd_less(rest, svi_dd_product(li[k], lj[k]));
            if (j < i)
                li[j] = svi_dd_quotient(rest, lj[j]);
            else if (rest.high > 0 && rest.high < INFINITY)
                li[j] = svi_dd_root(rest);
            else
                return false;
        }
    }
    return true;
}

static void solution_apply_slow(const struct solution *s, struct svi_dd *x) {
    for (int i = 0; i < s->n; i++) {
        const struct svi_dd *li = s->slow + svi_sums_packed(i);
        for (int k = 0; k < i; k++)
            x[i] = svi_dd_less(x[i], svi_dd_product(li[k], x[k]));
        x[i] = svi_dd_quotient(x[i], li[i]);
    }
    for (int i = s->n - 1; i >= 0; i--) {
        const struct svi_dd *li = s->slow + svi_sums_packed(i);
        x[i] = svi_dd_quotient(x[i], li[i]);
        for (int k = 0; k < i; k++)
            x[k] = svi_dd_less(x[k], svi_dd_product(li[k], x[i]));
    }
}

/* ---- one row of W */

/* residual = right - H v, read along the packed triangle. */
static void solution_residual(struct solution *s) {
    memcpy(s->residual, s->right, (size_t)s->n * sizeof *s->residual);
    const struct svi_dd *h = s->h;
    for (int i = 0; i < s->n; i++, h += i) {
        struct svi_dd left = svi_dd_product(h[i], s->v[i]);
        for (int j = 0; j < i; j++) {
            left = svi_dd_add(left, svi_dd_product(h[j], s->v[j]));
            s->residual[j] = svi_dd_less(s->residual[j], svi_dd_product(h[j], s->v[i]));
        }
        s->residual[i] = svi_dd_less(s->residual[i], left);
    }
}

/* v += H^-1 residual by the factor; the size of the correction relative to v, in the largest entries. */
static double solution_correct(struct solution *s) {
    double size = 0, change = 0;
    if (s->slow)
        solution_apply_slow(s, s->residual);
    for (int i = 0; i < s->n; i++)
        s->step[i] = s->residual[i].high;
    if (!s->slow)
        svi_solve_factor(s->factor, s->n, s->step);
    for (int i = 0; i < s->n; i++) {
        change = fmax(change, fabs(s->step[i]));
        s->v[i] = s->slow ? svi_dd_add(s->v[i], s->residual[i]) : svi_dd_plus(s->v[i], s->step[i]);
        size = fmax(size, fabs(s->v[i].high));
        if (!isfinite(s->v[i].high))
            return INFINITY;
    }
    return size > 0 ? change / size : 0;
}

/* False: the corrections do not shrink. */
static bool solution_refine(struct solution *s) {
    memset(s->v, 0, (size_t)s->n * sizeof *s->v);
    for (double before = INFINITY, now;; before = now) {
        solution_residual(s);
        now = solution_correct(s);
        if (now <= GOOD)
            return true;
        if (!(now < INFINITY) || now > before / 2)
            return now <= ENOUGH;
    }
}

static bool solution_row_of(struct solution *s) {
    if (solution_refine(s))
        return true;
    if (s->slow || s->n > SLOW_MAX)
        return false;
    s->slow = svi_alloc_array(svi_sums_packed(s->n), sizeof *s->slow);
    s->starved = !s->slow;
    return s->slow && solution_factor_slow(s) && solution_refine(s);
}

/* From the coordinates to raw units: W_j = v_j / s_j, b = v_0 - sum W_j c_j. */
static bool solution_store(const struct solution *s, double *W, double *b) {
    struct svi_dd bias = s->v[0];
    bool finite = true;
    for (int j = 0; j < s->u->d; j++) {
        const struct svi_dd w = svi_dd_times(s->v[j + 1], s->inverse[j + 1]);
        W[j] = w.high;
        bias = svi_dd_less(bias, svi_dd_times(w, s->u->center[j]));
        finite = finite && isfinite(w.high);
    }
    *b = bias.high;
    return finite && isfinite(*b);
}

svs_code svi_union_solve(const struct svi_union_sums *u, const struct svi_union_options *o, double *W,
                         double *b, svs_error *err) {
    const int rows = u->task == SVS_CLASSIFY && u->classes > 2 ? u->classes : 1;
    struct solution s = {.u = u, .o = o, .n = u->d + 1, .nu = 1 / (2 * o->C)};
    if (!(u->weight.high > 0 && u->weight.high < INFINITY))
        return svi_fail(err, SVS_NUMERIC, "the parts hold no samples");
    svs_code code = solution_new(&s, err);
    bool good = code == SVS_OK;
    if (good) {
        solution_scale(&s);
        solution_matrix(&s);
        /* A matrix that cannot be factored in double leaves `factor` undefined: the first refinement fails.
         */
        if (!solution_factor(&s))
            memset(s.factor, 0, (size_t)s.n * (size_t)s.n * sizeof *s.factor);
    }
    for (int k = 0; k < rows && good; k++) {
        solution_right(&s, k, rows);
        good = solution_row_of(&s) && solution_store(&s, W + (size_t)k * (size_t)u->d, b + k);
    }
    if (s.starved)
        code = svi_fail_memory(err, "the solution for all parts");
    if (code == SVS_OK && !good)
        code = svi_fail(err, SVS_NUMERIC,
                        "the sums of the parts leave the range in which a model can be computed: a smaller C "
                        "may help, or leaving out a part (ctl drop part=NAME)");
    solution_free(&s);
    return code;
}
