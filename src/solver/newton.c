/* newton.c: Newton steps on the augmented Lagrangian (newton.h), and the solver `newton` made of
 * them.
 *
 * svi_newton runs rounds at fixed multipliers. A round is Newton steps with a line search. First
 * newton_evaluate makes multipliers, gradient, objective and gap from the scores in one pass over
 * the rows. Then newton_direction solves for the step by a factor of the Gram matrix of the band.
 * That matrix is kept up to date by the rows that entered or left the band. When D is large,
 * conjugate gradients solve instead. Last newton_search follows the slope, which needs no further
 * product with the rows. Invariant between steps: f holds the scores at v.
 *
 * The solver takes least squares and a few Newton steps on every 7^k-th row, then the same on more
 * of them, then on all. What a sample of m rows leaves undone is of the order D/m of the objective,
 * so little is left to do with all rows.
 * To read: the state, then newton_rounds, newton_round_of_steps and what they call, row by row
 * first. */
#include "solver/newton.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "linalg/cholesky.h"
#include "solver/certificate.h"
#include "solver/loss.h"
#include "solver/newton_primal.h"

#define BLOCK  256
#define STEPS  40 /* of one round at most */
#define ROUNDS 60
#define TRIALS 40  /* of a line search */
#define FLAT   0.1 /* a line search ends at this share of the first slope */
/* A round ends when |g|^2 / 2 is this share of half the gap: the rest lies in the multipliers. */
#define ROUND_TOLERANCE 0.2
#define GROWTH          4    /* of mu from round to round */
#define SAMPLE_STEPS    12   /* on a sample of the rows: its optimum is not the one that is sought */
#define DEFAULT_MAX     2000 /* steps */

#define JITTER 1e-14
#define CG_MAX 250
/* Residual of a direction, relative: steps near the end need no better, the gap is what counts. */
#define CG_TOLERANCE 0.01

#define RATIO           7   /* of samples; odd, so that rows that alternate do not fool it */
#define MIN_SAMPLE_ROWS 400 /* of a sample */
#define PER_D           10  /* rows of a sample for each coordinate, at least */
#define SAMPLE_TOL      1e-2
#define WARM_STEPS      60   /* from a given start; then it is given up */
#define SEPARABLE       0.01 /* share of the multipliers below which the next ones start at 0 */

#define INLINE static inline __attribute__((always_inline))

struct newton {
    struct svi_work *w;
    struct svi_pool pool;
    struct svi_sample sample;
    int64_t steps;         /* at most, 0 = many */
    double p, mu;          /* mu may be INFINITY for p = 2 */
    double *y, *cost;      /* n, of the sample */
    double *alpha;         /* n: the multipliers of this round */
    double *f, *df;        /* n: scores at v, and their change along the step */
    double *a;             /* n: multipliers at v */
    double *h;             /* n: weights in the Hessian, in units of newton_unit */
    double *u, *g, *step;  /* padded: sum y a x; gradient; direction */
    double objective, gap; /* at v */

    struct svi_curvature *curvature, mine; /* of the band: the caller's or mine; NULL when D is large */
    double *factor;                        /* dim x dim: the system */
    double *cg[3];                         /* padded, when D is large: residual, direction, product */
    double *scaled;                        /* n, likewise: scores times h */

    double *repaired; /* for a certificate; NULL unless the bias is free */
    double *best_v, *best_a, best_gap;
    bool reached;
};

struct svi_sample svi_sample_every(const struct svi_work *w, int64_t step) {
    struct svi_sample s = {w->problem->rows, (w->n + step - 1) / step, step};
    s.rows.n = s.n;
    s.rows.stride = step * (s.rows.dense || s.rows.stride > 1 ? s.rows.stride : 1);
    return s;
}

/* ---- row by row */

/* The second derivative of the penalty in coordinate j: 0 for a free bias, 1 otherwise. */
static double newton_ridge(const struct svi_work *w, int j) {
    return j < w->penalised ? 1 : 0;
}

/* The loops are compiled once for each form of the multiplier, so that the frequent ones stay free of
 * branches. */
enum newton_form { HINGE, SQUARED_PRIMAL, ANY };

static enum newton_form newton_form_of(const struct newton *s) {
    return s->p == 1 ? HINGE : isinf(s->mu) ? SQUARED_PRIMAL : ANY;
}

/* The multiplier of row i at a margin 1 - y f: with tau = margin + alpha / mu and s = prox(tau) it is mu
 * (tau - s). For p = 1 that is clip(alpha + mu margin, 0, cost); for p = 2 and mu = INFINITY the loss itself
 * is smooth, and it is the loss's derivative 2 cost margin. */
INLINE double newton_multiplier(const struct newton *s, enum newton_form form, int64_t i, double margin) {
    double cost = s->cost[i];
    if (form == SQUARED_PRIMAL)
        return 2 * cost * svi_positive(margin);
    double lifted = svi_positive(s->alpha[i] + s->mu * margin); /* mu tau */
    if (form == HINGE)
        return lifted < cost ? lifted : cost;
    return lifted > 0 ? lifted - s->mu * svi_prox(s->p, lifted / s->mu, cost / s->mu) : 0;
}

static void newton_scores(const struct newton *s, const double *v, double *f) {
    const struct svi_work *w = s->w;
    svi_rows_multiply(w->kernels, &s->sample.rows, 0, s->sample.n, v, w->bias_value, f);
}

/* Makes a, and u = sum y a x; returns the loss, and in *gain what a adds to the dual. Block by block, so
 * that the rows are still in the cache when they are added. */
INLINE double newton_evaluate_rows(struct newton *s, enum newton_form form, double p, double *gain) {
    double coefficient[BLOCK], loss = 0, gains = 0;
    for (int64_t i = 0; i < s->sample.n; i += BLOCK) {
        int64_t count = s->sample.n - i < BLOCK ? s->sample.n - i : BLOCK;
        for (int64_t k = i; k < i + count; k++) {
            double margin = 1 - s->y[k] * s->f[k], a = newton_multiplier(s, form, k, margin);
            s->a[k] = a;
            coefficient[k - i] = s->y[k] * a;
            loss += s->cost[k] * svi_hinge(p, margin);
            gains += svi_gain(p, s->cost[k], a);
        }
        svi_rows_add(s->w->kernels, &s->sample.rows, i, count, coefficient, s->u, s->w->bias_value);
    }
    *gain = gains;
    return loss;
}

/* a, u, g, objective and gap at v, whose scores are in f. v with a is a primal and a dual point, so each
 * evaluation yields a gap for nothing. */
static void newton_evaluate(struct newton *s) {
    const struct svi_work *w = s->w;
    const enum newton_form form = newton_form_of(s);
    double dual_norm = 0, norm = 0, gain;
    svi_work_clear(w, s->u);
    const double loss = form == HINGE            ? newton_evaluate_rows(s, HINGE, 1, &gain)
                        : form == SQUARED_PRIMAL ? newton_evaluate_rows(s, SQUARED_PRIMAL, 2, &gain)
                                                 : newton_evaluate_rows(s, ANY, s->p, &gain);
    for (int j = 0; j < w->dim; j++) {
        double r = newton_ridge(w, j);
        s->g[j] = r * w->v[j] - s->u[j];
        dual_norm += r * s->u[j] * s->u[j];
        norm += r * w->v[j] * w->v[j];
    }
    s->objective = 0.5 * norm + loss;
    s->gap = s->objective - gain + 0.5 * dual_norm;
}

INLINE double newton_slope_rows(const struct newton *s, enum newton_form form, double t) {
    double sum = 0;
    for (int64_t i = 0; i < s->sample.n; i++) {
        double change = s->y[i] * s->df[i];
        sum -= newton_multiplier(s, form, i, 1 - s->y[i] * s->f[i] - t * change) * change;
    }
    return sum;
}

/* The slope of phi at v + t step: along the step margins change linearly, so it needs f and df and no
 * product with the rows. */
static double newton_slope(const struct newton *s, double t) {
    const enum newton_form form = newton_form_of(s);
    double sum = form == HINGE            ? newton_slope_rows(s, HINGE, t)
                 : form == SQUARED_PRIMAL ? newton_slope_rows(s, SQUARED_PRIMAL, t)
                                          : newton_slope_rows(s, ANY, t);
    for (int j = 0; j < s->w->dim; j++)
        sum += newton_ridge(s->w, j) * (s->w->v[j] + t * s->step[j]) * s->step[j];
    return sum;
}

/* The second derivative of the smoothed loss (a Moreau envelope): mu l'' / (mu + l''), l'' at the s of the
 * proximal step. */
static double newton_curvature_between(const struct newton *s, int64_t i) {
    double cost = s->cost[i], mu = s->mu, p = s->p;
    double margin = (s->alpha[i] - s->a[i]) / mu + 1 - s->y[i] * s->f[i];
    double second = p == 2 ? 2 * cost : cost * p * (p - 1) * pow(fmax(margin, 1e-300), p - 2);
    return isinf(second) ? mu : mu * second / (mu + second);
}

/* h at v, after an evaluation. */
static void newton_curvature(struct newton *s) {
    const enum newton_form form = newton_form_of(s);
    for (int64_t i = 0; i < s->sample.n; i++) {
        double a = s->a[i];
        /* p = 1: a row counts while its multiplier lies strictly inside the box (the band); at its ends the
         * smoothed loss is linear. */
        if (form == HINGE)
            s->h[i] = a > 0 && a < s->cost[i];
        else
            s->h[i] = a <= 0 ? 0 : form == SQUARED_PRIMAL ? s->cost[i] : newton_curvature_between(s, i);
    }
}

static double newton_unit(const struct newton *s) {
    const enum newton_form form = newton_form_of(s);
    return form == HINGE ? s->mu : form == SQUARED_PRIMAL ? 2 : 1;
}
/* ---- the direction */

/* out = (R'' + sum h x x') in. */
static void newton_product(const struct newton *s, const double *in, double *out) {
    const struct svi_work *w = s->w;
    const double unit = newton_unit(s);
    newton_scores(s, in, s->scaled);
    for (int64_t i = 0; i < s->sample.n; i++)
        s->scaled[i] *= unit * s->h[i];
    for (int j = 0; j < w->dim; j++)
        out[j] = (newton_ridge(w, j) > 0 ? 1 : 1e-10) * in[j];
    svi_rows_add(w->kernels, &s->sample.rows, 0, s->sample.n, s->scaled, out, w->bias_value);
}

/* Conjugate gradients for H step = -g: one product is one pass over the rows. The residual need only fall to
 * CG_TOLERANCE, as the outer iteration corrects the rest. */
static void newton_solve_cg(struct newton *s) {
    const int n = s->w->dim;
    double *r = s->cg[0], *d = s->cg[1], *hd = s->cg[2];
    svi_work_clear(s->w, s->step);
    for (int j = 0; j < n; j++)
        d[j] = r[j] = -s->g[j];
    double rr = svi_dot(r, r, n), enough = CG_TOLERANCE * CG_TOLERANCE * rr;
    for (int k = 0; k < CG_MAX && rr > enough; k++) {
        newton_product(s, d, hd);
        rr = svi_conjugate_step(s->step, r, d, hd, n, rr);
    }
}

/* step = -H^-1 g, exactly or nearly. */
static svs_code newton_direction(struct newton *s, svs_error *err) {
    newton_curvature(s);
    if (!s->curvature) {
        newton_solve_cg(s);
        return SVS_OK;
    }
    /* The curvature is brought up to date by the rows that entered or left the band. */
    SVI_TRY(svi_curvature_update(s->curvature, &s->sample.rows, s->w->bias_value, s->h, err));
    /* Rows that agree make the system singular up to rounding: the jitter grows until there is a factor. */
    for (struct svi_diagonal add = {1, s->w->penalised, 1e-10, JITTER}; add.jitter < 1e-3; add.jitter *= 100)
        if (svi_curvature_step(s->curvature, newton_unit(s), &add, s->w->dim, s->g, s->factor, s->step))
            return SVS_OK;
    return svi_fail(
        err, SVS_NUMERIC,
        "the Newton system is not positive definite: the values of the features differ too much in size");
}

/* ---- steps and rounds */

/* phi is convex, so its slope along the step rises from below 0: the root, roughly, by secant steps kept
 * between two ends. */
static double newton_search(const struct newton *s) {
    double first = newton_slope(s, 0), low = 0, at_low = first, high = 0, at_high = 0, t = 1;
    /* While the root is not enclosed t doubles; then the secant point, kept off both ends so that a flat
     * side does not stall it. */
    for (int i = 0; i < TRIALS && first < 0; i++) {
        double now = newton_slope(s, t);
        if (fabs(now) <= FLAT * fabs(first))
            return t;
        *(now > 0 ? &high : &low) = t;
        *(now > 0 ? &at_high : &at_low) = now;
        t = high == 0 ? 2 * low : low + (high - low) * fmin(fmax(at_low / (at_low - at_high), 0.05), 0.95);
    }
    return low;
}

/* With a free bias sum y a = 0 holds at the end of a round only, and before that the gap proves nothing: it
 * is made again with multipliers that were repaired. */
static bool newton_feasible(const struct newton *s, double tol) {
    const struct svi_work *w = s->w;
    struct svi_certificate c;
    if (w->problem->bias != SVS_BIAS_FREE || s->sample.step > 1)
        return true;
    svi_certify(w, w->v, s->a, s->repaired, &c);
    return c.gap <= tol * c.objective;
}

/* After an evaluation: is it the end? */
static bool newton_ended(struct newton *s, double tol) {
    struct svi_work *w = s->w;
    bool whole = s->sample.step == 1;
    w->iterations++;
    bool stop = svi_work_stop(w, whole ? s->objective : NAN, whole ? s->gap : NAN, DEFAULT_MAX);
    s->reached = s->gap <= tol * s->objective && newton_feasible(s, tol);
    /* The best point by its gap is kept: Newton steps may lead through worse ones. */
    if (s->gap < s->best_gap || s->reached) {
        s->best_gap = s->gap;
        svi_work_copy(w, s->best_v, w->v);
        memcpy(s->best_a, s->a, (size_t)s->sample.n * sizeof *s->best_a);
    }
    if (s->reached)
        w->stop = SVS_STOP_TOL;
    return s->reached || stop;
}

/* Newton steps at fixed multipliers, until the gradient is small against the gap: then what is left lies in
 * the multipliers. *done: stop altogether. */
static svs_code newton_round_of_steps(struct newton *s, double tol, bool *done, svs_error *err) {
    struct svi_work *w = s->w;
    double t = 1;
    newton_scores(s, w->v, s->f);
    for (int i = 0; i < STEPS && t > 0; i++) {
        newton_evaluate(s);
        *done = newton_ended(s, tol);
        if (*done || svi_dot(s->g, s->g, w->dim) <= ROUND_TOLERANCE * s->gap)
            return SVS_OK;
        svs_code code = newton_direction(s, err);
        if (code != SVS_OK)
            return code;
        /* f and df are kept, so that the line search and the move cost no further product. */
        newton_scores(s, s->step, s->df);
        t = newton_search(s);
        for (int j = 0; j < w->dim; j++)
            w->v[j] += t * s->step[j];
        for (int64_t k = 0; k < s->sample.n; k++)
            s->f[k] += t * s->df[k];
    }
    return SVS_OK;
}

/* Rounds of the augmented Lagrangian: the multipliers of a round's end are those of the next, at a larger
 * mu. With p = 2 (primal) there is nothing to update, and a second round only continues where STEPS ended
 * the first. */
static svs_code newton_rounds(struct newton *s, double tol, svs_error *err) {
    struct svi_work *w = s->w;
    const int64_t from = w->iterations;
    const bool primal = isinf(s->mu);
    bool done = false;
    svs_code code = SVS_OK;
    w->stop = SVS_STOP_STALLED;
    for (int i = 0; i < ROUNDS && !done && code == SVS_OK; i++) {
        code = newton_round_of_steps(s, tol, &done, err);
        memcpy(s->alpha, s->a, (size_t)s->sample.n * sizeof *s->a);
        s->mu *= GROWTH;
        done = done || (primal && i > 0) || (s->steps > 0 && w->iterations - from >= s->steps) ||
               (s->sample.step > 1 && w->iterations - from > SAMPLE_STEPS);
    }
    return code;
}

static svs_code newton_reserve(struct newton *s, svs_error *err) {
    const size_t n = (size_t)s->sample.n, dim = (size_t)s->w->dim;
    const size_t padded = (size_t)svi_padded(s->w->dim);
    struct svi_pool *pool = &s->pool;
    SVI_POOL_DOUBLES(pool, n, &s->y, &s->cost, &s->alpha, &s->f, &s->df, &s->a, &s->h, &s->best_a);
    SVI_POOL_DOUBLES(pool, padded, &s->u, &s->g, &s->step, &s->best_v);
    if (s->w->problem->bias == SVS_BIAS_FREE)
        s->repaired = svi_pool_doubles(pool, n + padded);
    if (dim > SVI_CURVATURE_DIM) {
        s->scaled = svi_pool_doubles(pool, n);
        SVI_POOL_DOUBLES(pool, padded, &s->cg[0], &s->cg[1], &s->cg[2]);
    } else {
        s->curvature = s->sample.step == 1 && s->w->curvature ? s->w->curvature : &s->mine;
        if (s->curvature == &s->mine) {
            s->mine.weight = svi_pool_doubles(pool, n);
            s->mine.gram = svi_pool_doubles(pool, dim * dim);
        }
        s->factor = svi_pool_doubles(pool, dim * dim);
    }
    return svi_pool_code(pool, "the Newton steps", err);
}

/* On a sample of every step-th row each row counts for `step` of them. */
static void newton_begin(struct newton *s, const struct svi_newton_plan *plan) {
    const struct svi_work *w = s->w;
    double mean = 0;
    for (int64_t i = 0; i < s->sample.n; i++) {
        int64_t row = i * s->sample.step;
        s->y[i] = w->problem->y[row];
        s->cost[i] = w->cost[row] * (double)s->sample.step;
        s->alpha[i] = plan->share < 0 ? w->alpha[row] : plan->share * s->cost[i];
        mean += s->cost[i] / (double)s->sample.n;
    }
    s->mu = w->problem->p == 2 ? INFINITY : plan->sharpness * mean;
}

svs_code svi_newton(struct svi_work *w, const struct svi_newton_plan *plan, struct svi_newton_end *end,
                    svs_error *err) {
    struct newton s = {
        .w = w, .sample = plan->sample, .p = w->problem->p, .steps = plan->steps, .best_gap = INFINITY};
    svs_code code = newton_reserve(&s, err);
    if (code == SVS_OK) {
        newton_begin(&s, plan);
        code = newton_rounds(&s, plan->tol, err);
    }
    *end = (struct svi_newton_end){.reached = s.reached};
    /* Whatever ended it, v is the best point that was seen, and `share` shows the next call how much of the
     * multipliers' room is in use. */
    if (s.best_gap < INFINITY) {
        double sum = 0, cost = 0;
        for (int64_t i = 0; i < s.sample.n; i++) {
            sum += s.best_a[i];
            cost += s.cost[i];
        }
        end->share = sum / cost;
        svi_work_copy(w, w->v, s.best_v);
        if (plan->sample.step == 1)
            memcpy(w->alpha, s.best_a, (size_t)plan->sample.n * sizeof *w->alpha);
    }
    svi_pool_free(&s.pool);
    return code;
}

/* ---- the solver */

/* v from the squared loss on the sample, in closed form: (G + I / (2 C step)) v = sum y x. A system that
 * cannot be solved leaves v = 0: a start all the same. */
static svs_code newton_least_squares(struct svi_work *w, const struct svi_sample *s, svs_error *err) {
    const size_t n = (size_t)w->dim;
    const double ridge = 1 / (2 * w->problem->C * (double)s->step);
    struct svi_pool pool = {0};
    double *gram = svi_pool_doubles(&pool, n * n), *y = svi_pool_doubles(&pool, (size_t)s->n);
    svs_code code = svi_pool_code(&pool, "the least-squares start", err);
    if (code == SVS_OK)
        code = svi_rows_gram(&s->rows, NULL, s->n, NULL, w->bias_value, gram, err);
    if (code == SVS_OK) {
        for (int64_t i = 0; i < s->n; i++)
            y[i] = w->problem->y[i * s->step];
        if (svi_factor_ridge(gram, w->dim, &(struct svi_diagonal){ridge, w->dim, 0, JITTER})) {
            svi_rows_add(w->kernels, &s->rows, 0, s->n, y, w->v, w->bias_value);
            svi_solve_factor(gram, w->dim, w->v);
        }
    }
    svi_pool_free(&pool);
    return code;
}

static bool newton_over(const struct svi_work *w, svs_code code) {
    return code != SVS_OK || w->stop == SVS_STOP_USER || w->stop == SVS_STOP_SECONDS ||
           w->stop == SVS_STOP_ITERATIONS;
}

/* The objective of v on as many rows as the sample of every `step`-th one has, but on others, half way
 * between these: a start that was fitted to the sample's own rows would look better than it is. */
static double newton_sample_objective(const struct svi_work *w, int64_t step, const double *v) {
    double loss = 0, f;
    for (int64_t i = step / 2; i < w->n; i += step) {
        svi_work_scores(w, i, 1, v, &f);
        loss += (double)step * w->cost[i] * svi_hinge(w->problem->p, 1 - w->problem->y[i] * f);
    }
    return 0.5 * svi_dot(v, v, w->penalised) + loss;
}

static struct svi_sample newton_coarsest(const struct svi_work *w) {
    const int64_t least = MIN_SAMPLE_ROWS > PER_D * w->dim ? MIN_SAMPLE_ROWS : PER_D * w->dim;
    int64_t step = 1;
    while (w->n / (step * RATIO) >= least)
        step *= RATIO;
    return svi_sample_every(w, step);
}

/* From the coarsest sample to all rows. What a sample of m rows leaves undone is of the order D / m of the
 * objective, so the steps on all rows are few. SEPARABLE: multipliers that were nearly all 0 are no guide
 * for more rows. */
static svs_code newton_cold(struct svi_work *w, svs_error *err) {
    struct svi_newton_end end = {.share = 1};
    struct svi_newton_plan plan = {.sample = newton_coarsest(w), .sharpness = 1};
    svs_code code = w->dim <= SVI_CURVATURE_DIM ? newton_least_squares(w, &plan.sample, err) : SVS_OK;
    for (int64_t step = plan.sample.step; step >= 1 && !newton_over(w, code); step /= RATIO) {
        plan.sample = svi_sample_every(w, step);
        plan.tol = step > 1 ? fmax(SAMPLE_TOL, w->o->tol) : w->o->tol;
        plan.share = w->problem->p == 1 && end.share > SEPARABLE ? 0.5 : 0;
        code = svi_newton(w, &plan, &end, err);
        plan.sharpness = 4;
    }
    return code;
}

/* Is v better on rows of the window than what least squares make of a sample of others? */
static svs_code newton_start_is_near(struct svi_work *w, bool *near, svs_error *err) {
    const struct svi_sample sample = newton_coarsest(w);
    double *given = svi_vector(w->dim);
    if (!given)
        return svi_fail_memory(err, "the start");
    svi_work_copy(w, given, w->v);
    svi_work_clear(w, w->v);
    svs_code code = newton_least_squares(w, &sample, err);
    *near = newton_sample_objective(w, sample.step, given) < newton_sample_objective(w, sample.step, w->v);
    svi_work_copy(w, w->v, given);
    svi_free(given);
    return code;
}

/* The squared hinge with a curvature to keep: whole steps from a start that is near. *over: it is solved, or
 * it ends for another reason; otherwise v = 0. */
static svs_code newton_again(struct svi_work *w, bool *over, svs_error *err) {
    bool near = w->curvature->known, reached = false;
    svs_code code = near ? SVS_OK : newton_start_is_near(w, &near, err);
    if (code == SVS_OK && near)
        code = svi_newton_primal(w, &reached, err);
    *over = reached || newton_over(w, code);
    if (!*over) /* samples of the rows lead sooner to the end than a start that has become old */
        svi_work_clear(w, w->v);
    return code;
}

/* A start may be good enough as it is; Newton's first step would look at other multipliers. */
static svs_code newton_good_already(struct svi_work *w, bool *good, svs_error *err) {
    struct svi_certificate c;
    svs_code code = svi_certify_best(w, &c, err);
    *good = code == SVS_OK && svi_work_reached(w, c.objective, c.gap);
    w->stop = SVS_STOP_TOL;
    return code;
}

/* Three ways: cold; the squared hinge near its last solution, with a kept curvature (newton_again); any
 * other warm start, which is given WARM_STEPS. */
static svs_code newton_solve(struct svi_work *w, svs_error *err) {
    struct svi_newton_end end;
    const struct svi_newton_plan plan = {
        .sample = svi_sample_every(w, 1), .tol = w->o->tol, .share = -1, .sharpness = 4, .steps = WARM_STEPS};
    bool good = false;
    svs_code code = SVS_OK;
    if (!w->warm)
        return newton_cold(w, err);
    if (svi_newton_primal_takes(w)) {
        code = newton_again(w, &good, err);
        return good || code != SVS_OK ? code : newton_cold(w, err);
    }
    code = w->problem->p == 1 ? newton_good_already(w, &good, err) : SVS_OK;
    if (code != SVS_OK || good)
        return code;
    code = svi_newton(w, &plan, &end, err);
    if (end.reached || newton_over(w, code))
        return code;
    svi_work_clear(w, w->v); /* a start that led astray is given up */
    return newton_cold(w, err);
}

const struct svi_method svi_method_NEWTON = {
    .solve = newton_solve,
    .can = SVI_LINEAR | SVI_ANY_HINGE | SVI_ANY_BIAS,
    .does = "the hinge loss with p from 1 to 2, linear, any bias",
};
