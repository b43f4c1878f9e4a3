/* Dual coordinate descent (Hsieh et al. 2008, Algorithms 1 and 3) for the hinge loss with p = 1 or 2:
 *     min_alpha  1/2 alpha'(Q + Dg) alpha - 1'alpha,   0 <= alpha_i <= U_i,   Q_ij = y_i y_j x_i'x_j,
 * p = 1: U = cost, Dg = 0; p = 2: U = infinity, Dg_ii = 1/(2 cost_i). v = sum y alpha x is kept, so a
 * coordinate costs one product with its row and one addition. A pass visits what is not shrunk in a fresh
 * random order. It ends by the duality gap, which costs a product with every row and is therefore looked at
 * after ever more passes, and when the projected gradients have become small. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/random.h"
#include "linalg/rows.h"
#include "solver/work.h"

#define DEFAULT_MAX 3000 /* passes over all rows, or as many visits in passes over the active ones */
#define FIRST_LOOK  5    /* at the gap, after so many passes; then after half as many again */
#define INLINE      static inline __attribute__((always_inline))

struct dcd {
    struct svi_work *w;
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

/* One coordinate. A row leaves the active ones when its gradient says that it will stay at its bound. True:
 * it leaves. */
INLINE bool visit(struct dcd *s, int64_t i, bool dense, int width, bool bounded) {
    struct svi_work *w = s->w;
    const svs_rows *r = &w->problem->rows;
    const double y = w->problem->y[i], cost = w->cost[i], upper = bounded ? cost : INFINITY,
                 alpha = w->alpha[i];
    const double *x = dense ? r->dense + i * r->stride : NULL;
    const int64_t *const span = dense ? NULL : svi_row_span(r, i), from = dense ? 0 : span[0],
                         to = dense ? 0 : span[1];
    double *v = w->v, f = w->bias_value != 0 ? w->bias_value * v[w->d] : 0;
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
    s->largest = projected > s->largest ? projected : s->largest;
    s->least = projected < s->least ? projected : s->least;
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

INLINE void pass_over(struct dcd *s, bool dense, int width, bool bounded) {
    for (int64_t k = 0; k < s->active; k++) {
        int64_t other = k + svi_random_below(&s->random, (uint32_t)(s->active - k));
        int32_t row = s->order[other];
        s->order[other] = s->order[k];
        s->order[k] = row;
        if (visit(s, row, dense, width, bounded)) {
            s->order[k--] = s->order[--s->active];
            s->order[s->active] = row;
        }
    }
}

static void pass(struct dcd *s) {
    const svs_rows *r = &s->w->problem->rows;
    const bool bounded = s->w->problem->p == 1;
    const int width = r->padded ? svi_round_up(r->d, 8) : r->d;
    const int64_t visited = s->active;
    s->largest = -INFINITY;
    s->least = INFINITY;
    if (r->dense)
        bounded ? pass_over(s, true, width, true) : pass_over(s, true, width, false);
    else
        bounded ? pass_over(s, false, 0, true) : pass_over(s, false, 0, false);
    s->w->iterations++;
    s->visits += visited;
}

/* D(alpha), with v = sum y alpha x. */
static double dual(const struct dcd *s) {
    const struct svi_work *w = s->w;
    double sum = 0, square = 0;
    for (int64_t i = 0; i < w->problem->rows.n; i++)
        sum += w->alpha[i] * (1 - 0.5 * s->diagonal_share / w->cost[i] * w->alpha[i]);
    for (int j = 0; j < w->dim; j++)
        square += w->v[j] * w->v[j];
    return sum - 0.5 * square;
}

/* The gap of the best v so far, which may be older than alpha: any pair of points gives a bound. */
static double gap(struct dcd *s) {
    struct svi_work *w = s->w;
    double objective = svi_objective(w, w->v);
    if (objective < s->best_objective) {
        s->best_objective = objective;
        memcpy(s->best, w->v, (size_t)svi_padded(w->dim) * sizeof *s->best);
    }
    return s->best_objective - dual(s);
}

static void unshrink(struct dcd *s) {
    s->active = s->w->problem->rows.n;
    s->high = INFINITY;
    s->low = -INFINITY;
}

/* Everything whose sum is v, added up anew: v has drifted by rounding. */
static void rebuild(struct dcd *s) {
    struct svi_work *w = s->w;
    memset(w->v, 0, (size_t)svi_padded(w->dim) * sizeof *w->v);
    for (int64_t i = 0; i < w->problem->rows.n; i++)
        if (w->alpha[i] != 0)
            svi_row_add(w->kernels, &w->problem->rows, i, w->problem->y[i] * w->alpha[i], w->v,
                        w->bias_value);
}

/* Passes until the gap is met. `small`: the range of projected gradients at which the gap is worth a look,
 * halved each time in vain. */
static void descend(struct dcd *s) {
    struct svi_work *w = s->w;
    double small = fmin(1, 10 * w->o->tol), known = INFINITY;
    int64_t next_look = FIRST_LOOK;
    bool stop = false;
    while (!stop) {
        pass(s);
        bool flat = s->largest - s->least <= small;
        if (flat && s->active < w->problem->rows.n) { /* the shrunk problem is solved: is the whole one? */
            unshrink(s);
            next_look = w->iterations; /* look now */
        } else {
            s->high = s->largest > 0 ? s->largest : INFINITY;
            s->low = s->least < 0 ? s->least : -INFINITY;
        }
        known = NAN;
        if (flat || w->iterations >= next_look) {
            known = gap(s);
            next_look = w->iterations + 1 + w->iterations / 2;
            small *= flat ? 0.3 : 1;
        }
        bool enough = s->visits >= DEFAULT_MAX * w->problem->rows.n;
        stop = svi_work_stop(w, s->best_objective, known, enough ? w->iterations : INT64_MAX);
        if (known <= w->o->tol * s->best_objective) {
            w->stop = SVS_STOP_TOL;
            stop = true;
        }
    }
}

/* The widest and the narrowest column, when they are what keeps it from converging. */
static void advise(struct dcd *s) {
    struct svi_work *w = s->w;
    double *square = svi_vector(w->dim), most = 0, least = INFINITY;
    if (!square)
        return; /* advice only */
    const svs_rows *r = &w->problem->rows;
    for (int64_t i = 0; i < r->n; i++)
        for (int64_t k = r->dense ? 0 : svi_row_span(r, i)[0]; k < (r->dense ? r->d : svi_row_span(r, i)[1]);
             k++) {
            double x = r->dense ? r->dense[i * r->stride + k] : r->value[k];
            square[r->dense ? k : r->column[k]] += x * x;
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

static svs_code reserve(struct dcd *s, svs_error *err) {
    const size_t n = (size_t)s->w->problem->rows.n;
    s->norm2 = svi_alloc_array(n, sizeof *s->norm2);
    s->order = svi_alloc_array(n, sizeof *s->order);
    s->best = svi_vector(s->w->dim);
    return s->norm2 && s->order && s->best ? SVS_OK : svi_fail_memory(err, "coordinate descent");
}

static void begin(struct dcd *s) {
    struct svi_work *w = s->w;
    s->random.state = w->o->seed;
    s->diagonal_share = w->problem->p == 2 ? 0.5 : 0;
    s->best_objective = INFINITY;
    unshrink(s);
    for (int64_t i = 0; i < w->problem->rows.n; i++) {
        s->order[i] = (int32_t)i;
        s->norm2[i] =
            svi_row_norm2(w->kernels, &w->problem->rows, i, w->bias_value) + s->diagonal_share / w->cost[i];
    }
    if (w->warm)
        gap(s); /* the w that was given may be better than the one its alpha makes */
    rebuild(s);
}

svs_code svi_solve_dcd(struct svi_work *w, svs_error *err) {
    struct dcd s = {.w = w};
    if (w->problem->rows.n > INT32_MAX)
        return svi_fail(err, SVS_LIMIT, "coordinate descent takes 2^31 - 1 rows at most");
    svs_code code = reserve(&s, err);
    if (code == SVS_OK) {
        begin(&s);
        bool good = w->warm && gap(&s) <= w->o->tol * s.best_objective;
        w->stop = SVS_STOP_TOL;
        if (!good)
            descend(&s);
        memcpy(w->v, s.best, (size_t)svi_padded(w->dim) * sizeof *w->v);
        if (w->stop == SVS_STOP_ITERATIONS)
            advise(&s);
    }
    svi_free(s.norm2);
    svi_free(s.order);
    svi_free(s.best);
    return code;
}
