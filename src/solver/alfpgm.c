/* ALFPGM (Aregbesola & Griva 2022; ALGORITHMS 5) solves min 1/2 alpha'Q alpha - 1'alpha, y'alpha =
 * 0, 0 <= alpha <= cost, by decomposition. A round chooses a working set of pairs by pWSS and
 * solves its problem by fpgm.h. Then it brings the gradient G = Q alpha - 1 up to date with the
 * kernel rows of what moved.
 *
 * Between rounds either the free half of the last working set is carried over (the default) or the
 * paper's MinMaxLimiter lets rows rest. The end is decided by the true gap m - M over all rows,
 * within eps, and then by the duality gap. Until the duality gap meets the tolerance, eps falls.
 *
 * Invariant: g = Q alpha - 1 for all rows, up to rounding. So surveys, the bias and the certificate
 * need no kernel value. Before an end is believed, alfpgm_rebuild makes it again.
 *
 * To read: alfpgm_rounds, then what one round is made of: alfpgm_survey, alfpgm_choose,
 * alfpgm_small_problem, alfpgm_update. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/certificate.h"
#include "base/fail.h"
#include "solver/fpgm.h"
#include "solver/kernel_rows.h"

#define DEFAULT_MAX  5000 /* rounds */
#define MAX_PARTNERS 200  /* partners looked at for each row: minAlphaCheck */
#define TAU          1e-12
#define STILL        1e-6 /* a multiplier that moved less did not move */
#define REST_BOUND   5    /* minAlphaOpt */
#define REST_ALWAYS  20   /* maxAlphaOpt */
#define CHECK_ROUNDS 32   /* rounds between two looks at the duality gap */
#define MIN_EPS      1e-7

struct alfpgm_candidate {
    double q;
    int64_t row;
};

struct alfpgm {
    struct svi_work *w;
    struct svi_pool pool;
    struct svi_kernel_rows k;
    int64_t n;
    int capacity; /* rows of a working set at most */
    double *g;    /* n: Q alpha - 1 */
    double eps, lambda;
    double m, M;                       /* of all rows */
    struct alfpgm_candidate *up, *low; /* n each, sorted: the most violating first */
    int64_t ups, lows;
    int64_t *set;       /* room: the working set */
    const double **row; /* room: kernel rows of it */
    int count;
    bool *taken;             /* n: in the working set */
    uint8_t *rounds, *still; /* n, limiter: rounds in a working set, and in a row without moving */
    double *q, *chi, *upper, *y, *a, *before, *work; /* of the small problem */
    int *index;
};

/* q_i = -y_i G_i. At the optimum q <= b on I_up and q >= b on I_low for one b, the bias: m - M is by how
 * much that fails. */
static double alfpgm_q(const struct alfpgm *s, int64_t i) {
    return -s->w->problem->y[i] * s->g[i];
}

/* The limiter: an index that has not moved in its last two rounds rests, one at a bound after REST_BOUND
 * rounds, any after REST_ALWAYS. A heuristic, which may rest what matters: alfpgm_rounds wakes all before it
 * ends. */
static bool alfpgm_at_rest(const struct alfpgm *s, int64_t i) {
    if (!s->w->o->limiter)
        return false;
    const bool bound = s->w->alpha[i] <= 0 || s->w->alpha[i] >= s->w->cost[i];
    return s->still[i] >= 2 || (bound && s->rounds[i] >= REST_BOUND) || s->rounds[i] >= REST_ALWAYS;
}

/* By q, rows that agree in it in their order. */
static int alfpgm_ascending(const void *a, const void *b) {
    const struct alfpgm_candidate *x = a, *y = b;
    return x->q != y->q ? (x->q > y->q ? 1 : -1) : (x->row > y->row) - (x->row < y->row);
}

static int alfpgm_descending(const void *a, const void *b) {
    const struct alfpgm_candidate *x = a, *y = b;
    return x->q != y->q ? alfpgm_ascending(b, a) : alfpgm_ascending(a, b);
}

/* Candidates, and the gap over all rows. Returns the gap over those that do not rest. */
static double alfpgm_survey(struct alfpgm *s) {
    double m = s->m = -INFINITY, M = s->M = INFINITY;
    s->ups = s->lows = 0;
    for (int64_t i = 0; i < s->n; i++) {
        const double q = alfpgm_q(s, i);
        const bool active = !alfpgm_at_rest(s, i), positive = s->w->problem->y[i] > 0;
        const bool below = s->w->alpha[i]<s->w->cost[i], above = s->w->alpha[i]> 0;
        /* The paper's text repeats one of the two sets; these are the ones that hold at LIBSVM's optimum. */
        if (positive ? below : above) { /* I_up */
            s->m = fmax(s->m, q);
            if (active) {
                m = fmax(m, q);
                s->up[s->ups++] = (struct alfpgm_candidate){q, i};
            }
        }
        if (positive ? above : below) { /* I_low */
            s->M = fmin(s->M, q);
            if (active) {
                M = fmin(M, q);
                s->low[s->lows++] = (struct alfpgm_candidate){q, i};
            }
        }
    }
    return m - M;
}

static void alfpgm_take(struct alfpgm *s, int64_t i) {
    if (s->taken[i] || s->count == s->capacity)
        return;
    s->taken[i] = true;
    s->set[s->count++] = i;
}

/* The free rows of the last working set, up to half of the next. They are those whose optimum depends on
 * each other most; chosen again each time, pairs undo what the round before did. */
static void alfpgm_carry_over(struct alfpgm *s) {
    int kept = 0, before = s->count;
    for (int b = 0; b < before; b++)
        s->taken[s->set[b]] = false;
    s->count = 0;
    for (int b = 0; b < before && kept < s->capacity / 2 && !s->w->o->limiter; b++) {
        int64_t i = s->set[b];
        if (s->w->alpha[i] <= 0 || s->w->alpha[i] >= s->w->cost[i])
            continue;
        alfpgm_take(s, i); /* writes at or before b */
        kept++;
    }
}

/* Second order: the partner with which the objective falls most (b^2 / a, the decrease along the pair),
 * among the first MAX_PARTNERS unused ones below q_i. With fewer candidates than about 50 the method can
 * stall. */
static int64_t alfpgm_partner(const struct alfpgm *s, int64_t i, const double *row) {
    double best = 0;
    int64_t found = -1;
    int looked = 0;
    for (int64_t k = 0; k < s->lows && looked < MAX_PARTNERS; k++) {
        const int64_t j = s->low[k].row;
        const double b = alfpgm_q(s, i) - s->low[k].q;
        if (b <= 0)
            break;
        if (s->taken[j])
            continue;
        double a = s->k.diagonal[i] + s->k.diagonal[j] - 2 * row[j];
        double gain = b * b / (a > 0 ? a : TAU);
        looked++;
        if (gain > best) {
            best = gain;
            found = j;
        }
    }
    return found;
}

/* pWSS: pairs of the rows that want to rise most with their partners. */
static void alfpgm_choose(struct alfpgm *s) {
    qsort(s->up, (size_t)s->ups, sizeof *s->up, alfpgm_descending);
    qsort(s->low, (size_t)s->lows, sizeof *s->low, alfpgm_ascending);
    alfpgm_carry_over(s);
    const int first = s->count, wanted = (s->capacity - s->count) / 2;
    /* Beyond M a row has no partner that it violates with. */
    for (int64_t k = 0; k < s->ups && s->count < first + wanted && s->up[k].q > s->M; k++)
        alfpgm_take(s, s->up[k].row);
    const int leaders = s->count - first;
    /* Leaders first: the rows of all of them are computed at once, which is where the time goes. */
    svi_kernel_rows_get(&s->k, s->set + first, leaders, s->row);
    for (int a = 0; a < leaders; a++) {
        int64_t j = alfpgm_partner(s, s->set[first + a], s->row[a]);
        if (j >= 0)
            alfpgm_take(s, j);
    }
}

/* The problem of the working set B in absolute alpha: chi = Q_BN alpha_N - 1 = G_B - Q_BB alpha_B, and
 * `rest` = y_N'alpha_N. Its tolerance is a quarter of eps: with eps itself the outer loop can stall for
 * ever. */
static void alfpgm_small_problem(struct alfpgm *s) {
    const struct svi_work *w = s->w;
    double rest = 0;
    svi_kernel_rows_get(&s->k, s->set, s->count, s->row);
    for (int64_t i = 0; i < s->n; i++)
        rest += w->problem->y[i] * w->alpha[i];
    for (int a = 0; a < s->count; a++) {
        const int64_t i = s->set[a];
        s->y[a] = w->problem->y[i];
        s->upper[a] = w->cost[i];
        s->a[a] = s->before[a] = w->alpha[i];
        s->chi[a] = s->g[i];
        rest -= s->y[a] * s->a[a];
    }
    for (int a = 0; a < s->count; a++)
        for (int b = 0; b < s->count; b++) {
            double q = s->q[(long)a * s->count + b] = s->y[a] * s->y[b] * s->row[a][s->set[b]];
            s->chi[a] -= q * s->before[b];
        }
    struct svi_fpgm p = {s->count,      s->q, s->chi,    s->upper, s->y,    rest,
                         0.25 * s->eps, s->a, s->lambda, s->work,  s->index};
    svi_fpgm_solve(&p);
    s->lambda = p.lambda;
}

/* G += y o K_:B (y_B o change), one kernel row for each index that moved: the rows are in the cache since
 * the choice. */
static void alfpgm_update(struct alfpgm *s) {
    struct svi_work *w = s->w;
    for (int a = 0; a < s->count; a++) {
        const int64_t i = s->set[a];
        const double change = s->a[a] - s->before[a], c = s->y[a] * change;
        s->rounds[i] += s->rounds[i] < 255;
        s->still[i] = fabs(change) < STILL ? (uint8_t)(s->still[i] + (s->still[i] < 255)) : 0;
        w->alpha[i] = s->a[a];
        if (change != 0)
            for (int64_t t = 0; t < s->n; t++)
                s->g[t] += w->problem->y[t] * c * s->row[a][t];
    }
}

static void alfpgm_wake(struct alfpgm *s) {
    memset(s->rounds, 0, (size_t)s->n);
    memset(s->still, 0, (size_t)s->n);
}

/* G from scratch: with f = K (y o alpha), G = y o f - 1. */
static void alfpgm_rebuild(struct alfpgm *s) {
    struct svi_work *w = s->w;
    const double *y = w->problem->y;
    double *coef = s->work; /* capacity: n */
    for (int64_t i = 0; i < s->n; i++)
        coef[i] = y[i] * w->alpha[i];
    svi_kernel_rows_product(&s->k, coef, s->g);
    for (int64_t i = 0; i < s->n; i++)
        s->g[i] = y[i] * s->g[i] - 1;
}

/* The bias on which the free rows agree, as the mean of their q; without any, the middle of what is
 * possible. */
static double alfpgm_bias(struct alfpgm *s) {
    const struct svi_work *w = s->w;
    double sum = 0;
    int64_t count = 0;
    alfpgm_survey(s);
    for (int64_t i = 0; i < s->n; i++)
        if (w->alpha[i] > 0 && w->alpha[i] < w->cost[i]) {
            sum += alfpgm_q(s, i);
            count++;
        }
    return count ? sum / (double)count : 0.5 * (s->m + s->M);
}

/* Objective at this bias, and the dual value, both from G alone: alpha'Q alpha = alpha'(G + 1). */
static void alfpgm_certify(struct alfpgm *s, double b) {
    struct svi_work *w = s->w;
    double square = 0, sum = 0, loss = 0;
    for (int64_t i = 0; i < s->n; i++) {
        const double margin = -s->g[i] - w->problem->y[i] * b; /* 1 - y (f + b) */
        square += w->alpha[i] * (s->g[i] + 1);
        sum += w->alpha[i];
        loss += margin > 0 ? w->cost[i] * margin : 0;
    }
    w->objective = 0.5 * square + loss;
    w->dual = sum - 0.5 * square;
    w->kkt = s->m - s->M;
    w->v[0] = b;
}

static bool alfpgm_reached(const struct alfpgm *s) {
    return svi_work_reached(s->w, s->w->objective, s->w->objective - s->w->dual);
}

/* Does the duality gap meet the tolerance? If so, does it still when y'alpha is exactly 0 and G is made
 * again? */
static bool alfpgm_proved(struct alfpgm *s) {
    alfpgm_certify(s, alfpgm_bias(s));
    if (!alfpgm_reached(s))
        return false;
    const double b = alfpgm_bias(s); /* before balancing moves what is bound a little off its bound */
    svi_balance(s->w, s->w->alpha);
    alfpgm_rebuild(s);
    alfpgm_certify(s, b);
    return alfpgm_reached(s);
}

/* All conditions hold within eps. True: it is the end; otherwise eps is smaller now. */
static bool alfpgm_finished(struct alfpgm *s) {
    s->w->stop = SVS_STOP_TOL;
    if (alfpgm_proved(s))
        return true;
    s->w->stop = SVS_STOP_STALLED;
    s->eps *= 0.25;
    return s->eps < MIN_EPS;
}

/* Each turn: survey; the end, if the true gap says so; else a round. Rows that rest hide violations: all are
 * woken as soon as the gap of those that do not rest is below half of the true one. */
static void alfpgm_rounds(struct alfpgm *s) {
    struct svi_work *w = s->w;
    do {
        double active = alfpgm_survey(s), gap = s->m - s->M;
        /* The multiplier of y'alpha = 0 is minus the bias (LIBSVM's rho): it starts in the middle of what is
         * possible and is kept between rounds. */
        if (w->iterations == 0)
            s->lambda = -0.5 * (s->m + s->M);
        if (gap < s->eps) {
            alfpgm_wake(s);
            if (alfpgm_finished(s))
                return;
            continue;
        }
        if (active < fmax(0.5 * gap, s->eps)) {
            alfpgm_wake(s);
            alfpgm_survey(s);
        }
        alfpgm_choose(s);
        alfpgm_small_problem(s);
        alfpgm_update(s);
        w->iterations++;
        if (w->iterations % CHECK_ROUNDS == 0) {
            alfpgm_certify(s, alfpgm_bias(s));
            if (alfpgm_reached(s) && alfpgm_finished(s))
                return;
        }
    } while (!svi_work_stop(w, NAN, NAN, DEFAULT_MAX));
}

static svs_code alfpgm_reserve(struct alfpgm *s, svs_error *err) {
    const size_t n = (size_t)s->n, capacity = (size_t)s->capacity;
    struct svi_pool *pool = &s->pool;
    s->g = svi_pool_doubles(pool, n);
    s->up = svi_pool_take(pool, n, sizeof *s->up);
    s->low = svi_pool_take(pool, n, sizeof *s->low);
    s->set = svi_pool_take(pool, capacity, sizeof *s->set);
    s->row = svi_pool_take(pool, capacity, sizeof *s->row);
    s->taken = svi_pool_take(pool, n, sizeof *s->taken);
    s->rounds = svi_pool_take(pool, n, 1);
    s->still = svi_pool_take(pool, n, 1);
    s->q = svi_pool_doubles(pool, capacity * capacity);
    s->work = svi_pool_doubles(pool, svi_fpgm_work(capacity) + n);
    s->index = svi_pool_take(pool, 2 * capacity, sizeof *s->index);
    SVI_POOL_DOUBLES(pool, capacity, &s->chi, &s->upper, &s->y, &s->a, &s->before);
    SVI_TRY(svi_pool_code(pool, "the decomposition", err));
    return svi_kernel_rows_init(&s->k, &s->w->problem->rows, &s->w->problem->kernel, 0, s->w->o->cache_mib,
                                s->capacity, err);
}

static svs_code alfpgm_solve(struct svi_work *w, svs_error *err) {
    struct alfpgm s = {.w = w, .n = w->n, .eps = 0.01};
    s.capacity = 2 * w->o->pairs < s.n ? 2 * w->o->pairs : (int)s.n;
    svs_code code = alfpgm_reserve(&s, err);
    if (code == SVS_OK) {
        /* A start need not meet y'alpha = 0, which the decomposition only keeps. */
        if (w->warm)
            svi_balance(w, w->alpha);
        alfpgm_rebuild(&s);
        alfpgm_rounds(&s);
        if (w->stop != SVS_STOP_TOL)
            alfpgm_proved(&s);
        if (w->problem->kernel.kind ==
            SVS_LINEAR) { /* the frame certifies it as it does every linear model */
            const double b = w->v[0];
            w->v[0] = 0;
            svi_work_add_duals(w, 0, w->v);
            w->v[w->d] = b;
        }
        snprintf(w->note, sizeof w->note, "%s, working sets of %d rows",
                 w->o->limiter ? "MinMaxLimiter" : "free half carried over", s.capacity);
    }
    svi_pool_free(&s.pool);
    svi_kernel_rows_clear(&s.k);
    return code;
}

const struct svi_method svi_method_ALFPGM = {
    .solve = alfpgm_solve,
    .can = SVI_LINEAR | SVI_NONLINEAR | SVI_HINGE_1 | SVI_FREE,
    .does = "the hinge loss with p = 1, any kernel, bias free",
};
