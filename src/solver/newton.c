#include "solver/newton.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "linalg/rows.h"
#include "solver/newton_state.h"

#define STEPS  40 /* of one round at most */
#define ROUNDS 60
#define TRIALS 40  /* of a line search */
#define FLAT   0.1 /* a line search ends at this share of the first slope */
#define ROUND_ENOUGH                                                                                         \
    0.2 /* a round ends when |g|^2 / 2 is this share of half the gap: the rest lies in the multipliers */
#define GROWTH       4    /* of mu from round to round */
#define SAMPLE_STEPS 12   /* on a sample of the rows: its optimum is not the one that is sought */
#define DEFAULT_MAX  2000 /* steps */

struct svi_sample svi_sample_every(const struct svi_work *w, int64_t step) {
    struct svi_sample s = {w->problem->rows, (w->problem->rows.n + step - 1) / step, step};
    s.rows.n = s.n;
    s.rows.stride = step * (s.rows.dense || s.rows.stride > 1 ? s.rows.stride : 1);
    return s;
}

static double norm2(const double *x, int n) {
    double sum = 0;
    for (int j = 0; j < n; j++)
        sum += x[j] * x[j];
    return sum;
}

/* phi is convex, so its slope along the step rises from below 0: the root, roughly, by secant steps kept
 * between two ends. */
static double search(const struct svi_newton_state *s) {
    double first = svi_newton_slope(s, 0), low = 0, at_low = first, high = 0, at_high = 0, t = 1;
    for (int i = 0; i < TRIALS && first < 0; i++) {
        double now = svi_newton_slope(s, t);
        if (fabs(now) <= FLAT * fabs(first))
            return t;
        if (now > 0) {
            high = t;
            at_high = now;
        } else {
            low = t;
            at_low = now;
        }
        t = high == 0 ? 2 * low : low + (high - low) * fmin(fmax(at_low / (at_low - at_high), 0.05), 0.95);
    }
    return low;
}

static void keep_best(struct svi_newton_state *s) {
    const struct svi_work *w = s->w;
    if (!(s->gap < s->best_gap) && !s->reached)
        return;
    s->best_gap = s->gap;
    memcpy(s->best_v, w->v, (size_t)svi_padded(w->dim) * sizeof *s->best_v);
    memcpy(s->best_a, s->a, (size_t)s->sample.n * sizeof *s->best_a);
}

/* With a free bias sum y a = 0 holds at the end of a round only, and the gap is none before: then it is
 * looked at again with multipliers that were repaired. */
static bool feasible(const struct svi_newton_state *s, double tol) {
    const struct svi_work *w = s->w;
    struct svi_certificate c;
    if (w->problem->bias != SVS_BIAS_FREE || s->sample.step > 1)
        return true;
    svi_certify(w, w->v, s->a, s->repaired, &c);
    return c.gap <= tol * c.objective;
}

/* After an evaluation: is it the end? */
static bool ended(struct svi_newton_state *s, double tol) {
    struct svi_work *w = s->w;
    bool whole = s->sample.step == 1;
    w->iterations++;
    bool told = svi_work_stop(w, whole ? s->objective : NAN, whole ? s->gap : NAN, DEFAULT_MAX);
    s->reached = s->gap <= tol * s->objective && feasible(s, tol);
    keep_best(s);
    if (s->reached)
        w->stop = SVS_STOP_TOL;
    return s->reached || told;
}

static bool advance(struct svi_newton_state *s) {
    struct svi_work *w = s->w;
    svi_newton_scores(s, s->step, s->df);
    double t = search(s);
    for (int j = 0; j < w->dim; j++)
        w->v[j] += t * s->step[j];
    for (int64_t k = 0; k < s->sample.n; k++)
        s->f[k] += t * s->df[k];
    return t > 0;
}

/* Newton steps at fixed multipliers. *done: stop altogether. */
static svs_code round_of_steps(struct svi_newton_state *s, double tol, bool *done, svs_error *err) {
    svi_newton_scores(s, s->w->v, s->f);
    for (int i = 0; i < STEPS; i++) {
        svi_newton_evaluate(s);
        *done = ended(s, tol);
        if (*done || norm2(s->g, s->w->dim) <= ROUND_ENOUGH * s->gap)
            return SVS_OK;
        svs_code code = svi_newton_direction(s, err);
        if (code != SVS_OK)
            return code;
        if (!advance(s))
            return SVS_OK;
    }
    return SVS_OK;
}

static svs_code rounds(struct svi_newton_state *s, double tol, svs_error *err) {
    struct svi_work *w = s->w;
    const int64_t from = w->iterations;
    const bool primal = isinf(s->mu);
    bool done = false;
    svs_code code = SVS_OK;
    w->stop = SVS_STOP_STALLED;
    for (int i = 0; i < ROUNDS && !done && code == SVS_OK; i++) {
        code = round_of_steps(s, tol, &done, err);
        memcpy(s->alpha, s->a, (size_t)s->sample.n * sizeof *s->a);
        s->mu *= GROWTH;
        done = done || (primal && i > 0) || (s->steps > 0 && w->iterations - from >= s->steps) ||
               (s->sample.step > 1 && w->iterations - from > SAMPLE_STEPS);
    }
    return code;
}

static svs_code reserve(struct svi_newton_state *s, svs_error *err) {
    const size_t n = (size_t)s->sample.n;
    double **const rows[] = {&s->y, &s->cost, &s->alpha, &s->f, &s->df, &s->a, &s->h, &s->best_a};
    bool repairs = s->w->problem->bias == SVS_BIAS_FREE;
    double **const vectors[] = {&s->u, &s->g, &s->step, &s->best_v};
    bool got = !repairs || (s->repaired = svi_alloc_array(n + (size_t)svi_padded(s->w->dim), sizeof(double)));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        got = (*rows[i] = svi_alloc_array(n, sizeof(double))) && got;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        got = (*vectors[i] = svi_vector(s->w->dim)) && got;
    return got ? svi_newton_reserve_system(s, err) : svi_fail_memory(err, "the Newton steps");
}

static void release(struct svi_newton_state *s) {
    double *const all[] = {s->y,      s->cost, s->alpha, s->f,    s->df,     s->a,       s->h,
                           s->best_a, s->u,    s->g,     s->step, s->best_v, s->repaired};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        svi_free(all[i]);
    svi_newton_release_system(s);
}

static void begin(struct svi_newton_state *s, const struct svi_newton_plan *plan) {
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
    struct svi_newton_state s = {
        .w = w, .sample = plan->sample, .p = w->problem->p, .steps = plan->steps, .best_gap = INFINITY};
    svs_code code = reserve(&s, err);
    if (code == SVS_OK) {
        begin(&s, plan);
        code = rounds(&s, plan->tol, err);
    }
    *end = (struct svi_newton_end){.reached = s.reached};
    if (s.best_gap < INFINITY) {
        double sum = 0, cost = 0;
        for (int64_t i = 0; i < s.sample.n; i++) {
            sum += s.best_a[i];
            cost += s.cost[i];
        }
        end->share = sum / cost;
        memcpy(w->v, s.best_v, (size_t)svi_padded(w->dim) * sizeof *w->v);
        if (plan->sample.step == 1)
            memcpy(w->alpha, s.best_a, (size_t)plan->sample.n * sizeof *w->alpha);
    }
    release(&s);
    return code;
}
