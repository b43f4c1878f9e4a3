/* SGD-LSSVM (Nguyen et al. 2015): Q alpha = 1, Q_ij = y_i y_j (K_ij + bias^2) + nu_i [i = j], nu_i = 1/(2
 * cost_i), by steepest steps on the t = 2 largest gradients; when these crawl (high C), conjugate gradients
 * finish. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "linalg/rows.h"
#include "solver/kernel_rows.h"
#include "solver/work.h"

#define T           2      /* coordinates of one step: t = 1 or 2 is best */
#define LEAST       32     /* rows that the cache holds in any case */
#define DEFAULT_MAX 200000 /* steps */
#define CG_MAX      2000
#define TELL        64

struct sgd {
    struct svi_work *w;
    struct svi_kernel_rows k;
    int64_t n;
    double *g; /* Q alpha - 1 */
    double *change, *r, *d, *qd;
};

static double nu(const struct sgd *s, int64_t i) {
    return 1 / (2 * s->w->cost[i]);
}

static double largest(const struct sgd *s, const double *g) {
    double worst = 0;
    for (int64_t i = 0; i < s->n; i++)
        worst = fmax(worst, fabs(g[i]));
    return worst;
}

/* out = Q in. */
static void product(struct sgd *s, const double *in, double *out) {
    const double *y = s->w->problem->y;
    for (int64_t i = 0; i < s->n; i++)
        s->change[i] = y[i] * in[i];
    svi_kernel_rows_product(&s->k, s->change, out);
    for (int64_t i = 0; i < s->n; i++)
        out[i] = y[i] * out[i] + nu(s, i) * in[i];
}

static void refresh(struct sgd *s) {
    product(s, s->w->alpha, s->g);
    for (int64_t i = 0; i < s->n; i++)
        s->g[i] -= 1;
}

/* The T rows with the largest |g|. */
static int choose(const struct sgd *s, int64_t *set) {
    int count = 0;
    for (int64_t i = 0; i < s->n; i++) {
        double size = fabs(s->g[i]);
        if (count == T && size <= fabs(s->g[set[T - 1]]))
            continue;
        int at = count < T ? count++ : T - 1;
        for (; at > 0 && fabs(s->g[set[at - 1]]) < size; at--)
            set[at] = set[at - 1];
        set[at] = i;
    }
    return count;
}

/* alpha_B -= theta g_B with the length that is best along it. */
static void step(struct sgd *s) {
    const double *y = s->w->problem->y, *row[T];
    double square = 0, curvature = 0;
    int64_t set[T];
    const int count = choose(s, set);
    svi_kernel_rows_get(&s->k, set, count, row);
    for (int b = 0; b < count; b++) {
        const double g = s->g[set[b]];
        square += g * g;
        curvature += nu(s, set[b]) * g * g;
        for (int c = 0; c < count; c++)
            curvature += g * y[set[b]] * row[b][set[c]] * y[set[c]] * s->g[set[c]];
    }
    const double theta = square / curvature;
    double move[T];
    for (int b = 0; b < count; b++)
        move[b] = theta * s->g[set[b]];
    for (int b = 0; b < count; b++) {
        const double c = move[b] * y[set[b]];
        s->w->alpha[set[b]] -= move[b];
        for (int64_t i = 0; i < s->n; i++)
            s->g[i] -= c * y[i] * row[b][i];
        s->g[set[b]] -= nu(s, set[b]) * move[b];
    }
}

/* Steps until the gradient is small, or they are no longer worth it: a step costs T rows, an iteration of
 * conjugate gradients n. False: not finished. */
static bool steepest(struct sgd *s) {
    struct svi_work *w = s->w;
    const int64_t worth = w->o->finish ? 2 * s->n : DEFAULT_MAX;
    for (int64_t k = 0; k < worth; k++) {
        double worst = largest(s, s->g);
        if (worst < w->o->tol) {
            w->stop = SVS_STOP_TOL;
            return true;
        }
        step(s);
        w->iterations++;
        if ((k % TELL == 0 || w->o->max_iterations > 0) && svi_work_stop(w, NAN, NAN, DEFAULT_MAX))
            return true;
    }
    w->stop = SVS_STOP_ITERATIONS;
    return !w->o->finish;
}

static double dot(const double *a, const double *b, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static void conjugate(struct sgd *s) {
    struct svi_work *w = s->w;
    refresh(s);
    for (int64_t i = 0; i < s->n; i++)
        s->d[i] = s->r[i] = -s->g[i];
    double rr = dot(s->r, s->r, s->n);
    for (int k = 0; k < CG_MAX; k++) {
        if (largest(s, s->r) < 0.5 * w->o->tol) {
            w->stop = SVS_STOP_TOL;
            return;
        }
        product(s, s->d, s->qd);
        const double t = rr / dot(s->d, s->qd, s->n), before = rr;
        for (int64_t i = 0; i < s->n; i++) {
            w->alpha[i] += t * s->d[i];
            s->r[i] -= t * s->qd[i];
        }
        rr = dot(s->r, s->r, s->n);
        for (int64_t i = 0; i < s->n; i++)
            s->d[i] = s->r[i] + rr / before * s->d[i];
        w->iterations++;
        if (svi_work_stop(w, NAN, NAN, INT64_MAX))
            return;
    }
    w->stop = SVS_STOP_ITERATIONS;
}

/* From scratch: y f = g + 1 - nu alpha. */
static void certify(struct sgd *s) {
    struct svi_work *w = s->w;
    double square = 0, loss = 0, sum = 0, penalty = 0, constant = 0;
    refresh(s);
    for (int64_t i = 0; i < s->n; i++) {
        const double a = w->alpha[i], yf = s->g[i] + 1 - nu(s, i) * a;
        square += a * yf;
        penalty += nu(s, i) * a * a;
        sum += a;
        loss += w->cost[i] * (1 - yf) * (1 - yf);
        constant += w->problem->y[i] * a;
    }
    w->objective = 0.5 * square + loss;
    w->dual = sum - 0.5 * (square + penalty);
    w->kkt = largest(s, s->g);
    w->v[0] = w->bias_value * w->bias_value * constant;
    if (w->problem->kernel.kind != SVS_LINEAR)
        return;
    w->v[0] = 0;
    for (int64_t i = 0; i < s->n; i++)
        svi_row_add(w->kernels, &w->problem->rows, i, w->problem->y[i] * w->alpha[i], w->v, w->bias_value);
}

static svs_code reserve(struct sgd *s, svs_error *err) {
    const size_t n = (size_t)s->n;
    double **const vectors[] = {&s->g, &s->change, &s->r, &s->d, &s->qd};
    bool got = true;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        got = (*vectors[i] = svi_alloc_array(n, sizeof(double))) && got;
    const double shift = s->w->bias_value * s->w->bias_value;
    return got ? svi_kernel_rows_init(&s->k, &s->w->problem->rows, &s->w->problem->kernel, shift,
                                      s->w->o->cache_mib, LEAST, err)
               : svi_fail_memory(err, "the kernel least squares");
}

svs_code svi_solve_sgd_lssvm(struct svi_work *w, svs_error *err) {
    struct sgd s = {.w = w, .n = w->problem->rows.n};
    svs_code code = reserve(&s, err);
    if (code == SVS_OK) {
        refresh(&s);
        bool done = steepest(&s);
        const int64_t steps = w->iterations;
        if (!done)
            conjugate(&s);
        certify(&s);
        if (done)
            snprintf(w->note, sizeof w->note, "%lld steepest steps", (long long)steps);
        else
            snprintf(w->note, sizeof w->note, "%lld steepest steps, finished by %lld conjugate gradients",
                     (long long)steps, (long long)(w->iterations - steps));
    }
    double *const all[] = {s.g, s.change, s.r, s.d, s.qd};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        svi_free(all[i]);
    svi_kernel_rows_clear(&s.k);
    return code;
}
