/* Dual coordinate descent (Hsieh et al. 2008, Algorithms 1 and 3) for the hinge loss with p = 1 or 2:
 *     min_alpha  1/2 alpha'(Q + Dg) alpha - 1'alpha,   0 <= alpha_i <= U_i,   Q_ij = y_i y_j x_i'x_j,
 * p = 1: U = cost, Dg = 0; p = 2: U = infinity, Dg_ii = 1/(2 cost_i). v = sum y alpha x is kept, so a
 * coordinate costs one product with its row and one addition. A pass visits what is not shrunk in a fresh
 * random order. It ends by the duality gap, which costs a product with every row and is therefore looked at
 * after ever more passes, and when the projected gradients have become small.
 *
 * Invariant: v = sum y alpha x up to rounding, and the rows order[0 .. active) are those that are not shrunk.
 * A row is shrunk when its gradient at a bound is beyond the bounds of the last pass; before the end is
 * believed all rows are visited again. To read: dcd_solve, dcd_descend, then dcd_visit, which is one
 * coordinate. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/random.h"
#include "solver/certificate.h"

#define DEFAULT_MAX 3000 /* passes over all rows, or as many visits in passes over the active ones */
#define FIRST_CHECK 5    /* at the gap, after this many passes; then after half as many again */
#define INLINE      static inline __attribute__((always_inline))

struct dcd {
    struct svi_work *w;
    struct svi_pool pool;
    struct svi_random random;
    double *norm2;  /* n: |x_i|^2 + Dg_ii */
    int32_t *order; /* the first `active` rows of it are not shrunk */
    int64_t active;
    int64_t visits;        /* of rows, so far */
    double high, low;      /* bounds on the projected gradient from the last pass: what is shrunk by */
    double largest, least; /* projected gradients of this pass */
    double diagonal_share; /* p = 2: Dg_ii = diagonal_share / cost_i; p = 1: 0 */
    double *best, best_objective;
};

/* One coordinate: grad = y f - 1 + Dg alpha, alpha <- clip(alpha - grad / Q_ii) (ALGORITHMS 3). True: the
 * row leaves the active ones, because its gradient is beyond the bounds of the last pass and says that it
 * stays at its bound. `dense` and `bounded` are constants at each call, so that the loops are compiled
 * without them. */
INLINE bool dcd_visit(struct dcd *s, int64_t i, bool dense, int width, bool bounded) {
    struct svi_work *w = s->w;
    const svs_rows *r = &w->problem->rows;
    const double y = w->problem->y[i], cost = w->cost[i], upper = bounded ? cost : INFINITY,
                 alpha = w->alpha[i];
    const double *x = dense ? r->dense + i * r->stride : NULL;
    const int64_t *const span = dense ? NULL : svi_row_span(r, i), from = dense ? 0 : span[0],
                         to = dense ? 0 : span[1];
    double *v = w->v, f = w->bias_value != 0 ? w->bias_value * v[w->d] : 0;
    /* Padded rows are 0 from d to width. v[d], the bias, lies in that range: it adds nothing to the
     * product here and is not changed by rows_add below. */
    if (dense) {
        double product;
        w->kernels->rows_dot(x, 0, 1, width, v, &product);
        f += product;
    } else {
        for (int64_t k = from; k < to; k++)
            f += r->value[k] * v[r->column[k]];
    }
    double gradient = y * f - 1 + (bounded ? 0 : s->diagonal_share / cost * alpha), projected = gradient;
    if (alpha <= 0) {
        if (gradient > s->high)
            return true;
        projected = gradient < 0 ? gradient : 0;
    } else if (alpha >= upper) {
        if (gradient < s->low)
            return true;
        projected = gradient > 0 ? gradient : 0;
    }
    /* The range of projected gradients over the pass is the stopping rule of the pass, and bounds the next
     * one's shrinking. */
    s->largest = projected > s->largest ? projected : s->largest;
    s->least = projected < s->least ? projected : s->least;
    /* The coordinate is at its optimum. */
    if (fabs(projected) < 1e-15)
        return false;
    double next =
        s->norm2[i] > 0 ? alpha - gradient / s->norm2[i] : upper; /* an empty row: f = 0 whatever alpha */
    next = next > 0 ? next < upper ? next : upper : 0;
    double change = (next - alpha) * y;
    w->alpha[i] = next;
    if (dense)
        w->kernels->rows_add(x, 0, 1, width, &change, v);
    else
        for (int64_t k = from; k < to; k++)
            v[r->column[k]] += change * r->value[k];
    if (w->bias_value != 0)
        v[w->d] += change * w->bias_value;
    return false;
}

/* A fresh random order in each pass, made as it goes (Fisher-Yates). A row that is shrunk changes places
 * with the last active one; k steps back, as that one has not been visited. */
INLINE void dcd_pass_over(struct dcd *s, bool dense, int width, bool bounded) {
    for (int64_t k = 0; k < s->active; k++) {
        int64_t other = k + svi_random_below(&s->random, (uint32_t)(s->active - k));
        int32_t row = s->order[other];
        s->order[other] = s->order[k];
        s->order[k] = row;
        if (dcd_visit(s, row, dense, width, bounded)) {
            s->order[k--] = s->order[--s->active];
            s->order[s->active] = row;
        }
    }
}

static void dcd_pass(struct dcd *s) {
    const svs_rows *r = &s->w->problem->rows;
    const bool bounded = s->w->problem->p == 1;
    const int width = r->padded ? svi_round_up(r->d, 8) : r->d;
    const int64_t visited = s->active;
    s->largest = -INFINITY;
    s->least = INFINITY;
    if (r->dense)
        bounded ? dcd_pass_over(s, true, width, true) : dcd_pass_over(s, true, width, false);
    else
        bounded ? dcd_pass_over(s, false, 0, true) : dcd_pass_over(s, false, 0, false);
    s->w->iterations++;
    s->visits += visited;
}

/* The gap of the best v so far, which may be older than alpha: any pair of a v and a feasible alpha gives a
 * bound. */
static double dcd_gap(struct dcd *s) {
    struct svi_work *w = s->w;
    double objective = svi_objective(w, w->v), sum = 0;
    if (objective < s->best_objective) {
        s->best_objective = objective;
        svi_work_copy(w, s->best, w->v);
    }
    for (int64_t i = 0; i < w->n; i++)
        sum += w->alpha[i] * (1 - 0.5 * s->diagonal_share / w->cost[i] * w->alpha[i]);
    const double dual = sum - 0.5 * svi_dot(w->v, w->v, w->dim); /* D(alpha), with v = sum y alpha x */
    return s->best_objective - dual;
}

static void dcd_unshrink(struct dcd *s) {
    s->active = s->w->n;
    s->high = INFINITY;
    s->low = -INFINITY;
}

/* Passes until the gap is met. `small`: the range of projected gradients at which the gap is worth a check,
 * halved each time in vain. */
static void dcd_descend(struct dcd *s) {
    struct svi_work *w = s->w;
    double small = fmin(1, 10 * w->o->tol), known = INFINITY;
    int64_t next_look = FIRST_CHECK;
    bool stop = false;
    while (!stop) {
        dcd_pass(s);
        bool flat = s->largest - s->least <= small;
        if (flat && s->active < w->n) { /* the shrunk problem is solved: is the whole one? */
            dcd_unshrink(s);
            next_look = w->iterations; /* look now */
        } else {
            /* +-INFINITY where a bound has no sign that could shrink anything (the paper's rule). */
            s->high = s->largest > 0 ? s->largest : INFINITY;
            s->low = s->least < 0 ? s->least : -INFINITY;
        }
        known = NAN;
        if (flat || w->iterations >= next_look) {
            known = dcd_gap(s);
            next_look = w->iterations + 1 + w->iterations / 2;
            small *= flat ? 0.3 : 1;
        }
        /* Visits and not passes are limited: passes over few active rows are cheap. */
        bool enough = s->visits >= DEFAULT_MAX * w->n;
        stop = svi_work_stop(w, s->best_objective, known, enough ? w->iterations : INT64_MAX);
        if (known <= w->o->tol * s->best_objective) {
            w->stop = SVS_STOP_TOL;
            stop = true;
        }
    }
}

/* Advice in the note: the widest and the narrowest column, when their ratio is what keeps the method from
 * converging. */
static void dcd_advise(struct dcd *s) {
    struct svi_work *w = s->w;
    double *square = svi_vector(w->dim), most = 0, least = INFINITY;
    if (!square)
        return; /* advice only */
    const svs_rows *r = &w->problem->rows;
    for (int64_t i = 0; i < r->n; i++) {
        const struct svi_entries e = svi_row_entries(r, i);
        for (int64_t k = 0; k < e.count; k++)
            square[e.column ? e.column[k] : k] += e.value[k] * e.value[k];
    }
    for (int j = 0; j < w->d; j++) {
        most = fmax(most, square[j]);
        least = square[j] > 0 ? fmin(least, square[j]) : least;
    }
    svi_free(square);
    if (most > 1e4 * least)
        snprintf(w->note, sizeof w->note,
                 "columns differ %.0g-fold in size: use --scale, or the solver newton", sqrt(most / least));
    else
        snprintf(w->note, sizeof w->note, "more iterations, or the solver newton");
}

static void dcd_begin(struct dcd *s) {
    struct svi_work *w = s->w;
    dcd_unshrink(s);
    for (int64_t i = 0; i < w->n; i++) {
        s->order[i] = (int32_t)i;
        s->norm2[i] = svi_row_norm2(&w->problem->rows, i, w->bias_value) + s->diagonal_share / w->cost[i];
    }
    if (w->warm)
        dcd_gap(s); /* the w that was given may be better than the one its alpha makes */
    /* v is made of alpha, whatever w was given: the invariant counts, and w is in `best`. */
    svi_work_clear(w, w->v);
    svi_work_add_duals(w, w->bias_value, w->v);
}

static svs_code dcd_solve(struct svi_work *w, svs_error *err) {
    struct dcd s = {.w = w,
                    .random = {w->o->seed},
                    .diagonal_share = w->problem->p == 2 ? 0.5 : 0,
                    .best_objective = INFINITY};
    if (w->n > INT32_MAX)
        return svi_fail(err, SVS_LIMIT, "coordinate descent is limited to 2^31 - 1 rows");
    s.norm2 = svi_pool_doubles(&s.pool, (size_t)w->n);
    s.order = svi_pool_take(&s.pool, (size_t)w->n, sizeof *s.order);
    s.best = svi_pool_vector(&s.pool, w->dim);
    svs_code code = svi_pool_code(&s.pool, "coordinate descent", err);
    if (code == SVS_OK) {
        dcd_begin(&s);
        /* A start may already be good enough. */
        bool good = w->warm && dcd_gap(&s) <= w->o->tol * s.best_objective;
        w->stop = SVS_STOP_TOL;
        if (!good)
            dcd_descend(&s);
        svi_work_copy(w, w->v, s.best);
        if (w->stop == SVS_STOP_ITERATIONS)
            dcd_advise(&s);
    }
    svi_pool_free(&s.pool);
    return code;
}

const struct svi_method svi_method_DCD = {
    .solve = dcd_solve,
    .can = SVI_LINEAR | SVI_HINGE_1 | SVI_HINGE_2 | SVI_APPENDED | SVI_NONE,
    .does = "the hinge loss with p = 1 or 2, linear, bias appended or none",
};
