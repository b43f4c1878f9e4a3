/* ALFPGM (Aregbesola & Griva 2022): min 1/2 alpha'Q alpha - 1'alpha, y'alpha = 0, 0 <= alpha <= cost, by
 * decomposition: a working set of pairs chosen by pWSS, its problem by fpgm.h, then the gradient G = Q alpha
 * - 1 brought up to date with the kernel rows of what moved.
 *
 * Between rounds either the free half of the last working set is carried over (the default) or the paper's
 * MinMaxLimiter lets rows rest. The end is judged by the true gap m - M over all rows, and then by the
 * duality gap; its eps falls until the latter meets the tolerance. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "linalg/rows.h"
#include "solver/fpgm.h"
#include "solver/kernel_rows.h"
#include "solver/work.h"

#define DEFAULT_MAX 5000 /* rounds */
#define LOOK_AT     200   /* partners looked at for each row: minAlphaCheck */
#define TAU         1e-12
#define STILL       1e-6 /* a multiplier that moved less did not move */
#define REST_BOUND  5    /* minAlphaOpt */
#define REST_ALWAYS 20   /* maxAlphaOpt */
#define LOOK        32   /* rounds between two looks at the duality gap */
#define EPS_LEAST   1e-7

struct candidate {
    double q;
    int64_t row;
};

struct alfpgm {
    struct svi_work *w;
    struct svi_kernel_rows k;
    int64_t n;
    int room;  /* rows of a working set at most */
    double *g; /* n: Q alpha - 1 */
    double eps, lambda;
    double m, M;                /* of all rows */
    struct candidate *up, *low; /* n each, sorted: the most violating first */
    int64_t ups, lows;
    int64_t *set;       /* room: the working set */
    const double **row; /* room: kernel rows of it */
    int count;
    bool *taken;             /* n: in the working set */
    uint8_t *rounds, *still; /* n, limiter: rounds in a working set, and in a row without moving */
    double *q, *chi, *upper, *y, *a, *before, *work; /* of the small problem */
    int *index;
};

static double q_of(const struct alfpgm *s, int64_t i) {
    return -s->w->problem->y[i] * s->g[i];
}

static bool can_rise(const struct alfpgm *s, int64_t i) { /* I_up */
    return s->w->problem->y[i] > 0 ? s->w->alpha[i] < s->w->cost[i] : s->w->alpha[i] > 0;
}

static bool can_fall(const struct alfpgm *s, int64_t i) { /* I_low */
    return s->w->problem->y[i] > 0 ? s->w->alpha[i] > 0 : s->w->alpha[i] < s->w->cost[i];
}

static bool rests(const struct alfpgm *s, int64_t i) {
    if (!s->w->o->limiter)
        return false;
    const bool bound = s->w->alpha[i] <= 0 || s->w->alpha[i] >= s->w->cost[i];
    return s->still[i] >= 2 || (bound && s->rounds[i] >= REST_BOUND) || s->rounds[i] >= REST_ALWAYS;
}

static int descending(const void *a, const void *b) {
    const struct candidate *x = a, *y = b;
    return x->q != y->q ? (x->q < y->q ? 1 : -1) : (x->row > y->row) - (x->row < y->row);
}

static int ascending(const void *a, const void *b) {
    const struct candidate *x = a, *y = b;
    return x->q != y->q ? (x->q > y->q ? 1 : -1) : (x->row > y->row) - (x->row < y->row);
}

/* Candidates, and the gap over all rows. Returns the gap over those that do not rest. */
static double survey(struct alfpgm *s) {
    double m = -INFINITY, M = INFINITY;
    s->m = -INFINITY;
    s->M = INFINITY;
    s->ups = s->lows = 0;
    for (int64_t i = 0; i < s->n; i++) {
        const double q = q_of(s, i);
        const bool active = !rests(s, i);
        if (can_rise(s, i)) {
            s->m = fmax(s->m, q);
            m = active ? fmax(m, q) : m;
            if (active)
                s->up[s->ups++] = (struct candidate){q, i};
        }
        if (can_fall(s, i)) {
            s->M = fmin(s->M, q);
            M = active ? fmin(M, q) : M;
            if (active)
                s->low[s->lows++] = (struct candidate){q, i};
        }
    }
    return m - M;
}

static void take(struct alfpgm *s, int64_t i) {
    if (s->taken[i] || s->count == s->room)
        return;
    s->taken[i] = true;
    s->set[s->count++] = i;
}

/* The free rows of the last working set, up to half of the next. */
static void carry_over(struct alfpgm *s) {
    int kept = 0, before = s->count;
    for (int b = 0; b < before; b++)
        s->taken[s->set[b]] = false;
    s->count = 0;
    for (int b = 0; b < before && kept < s->room / 2 && !s->w->o->limiter; b++) {
        int64_t i = s->set[b];
        if (s->w->alpha[i] <= 0 || s->w->alpha[i] >= s->w->cost[i])
            continue;
        take(s, i); /* writes at or before b */
        kept++;
    }
}

/* Second order: the partner with which the objective falls most, among the first unused ones below q_i. */
static int64_t partner(const struct alfpgm *s, int64_t i, const double *row) {
    double best = 0;
    int64_t found = -1;
    int looked = 0;
    for (int64_t k = 0; k < s->lows && looked < LOOK_AT; k++) {
        const int64_t j = s->low[k].row;
        const double b = q_of(s, i) - s->low[k].q;
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
static void choose(struct alfpgm *s) {
    qsort(s->up, (size_t)s->ups, sizeof *s->up, descending);
    qsort(s->low, (size_t)s->lows, sizeof *s->low, ascending);
    carry_over(s);
    const int first = s->count, wanted = (s->room - s->count) / 2;
    for (int64_t k = 0; k < s->ups && s->count < first + wanted && s->up[k].q > s->M; k++)
        take(s, s->up[k].row);
    const int leaders = s->count - first;
    svi_kernel_rows_get(&s->k, s->set + first, leaders, s->row);
    for (int a = 0; a < leaders; a++) {
        int64_t j = partner(s, s->set[first + a], s->row[a]);
        if (j >= 0)
            take(s, j);
    }
}

static void small_problem(struct alfpgm *s) {
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
    struct svi_fpgm p = {s->count, s->q,          s->chi, s->upper,  s->y,
                         rest,     0.25 * s->eps, s->a,   s->lambda, s->work, s->index};
    svi_fpgm_solve(&p);
    s->lambda = p.lambda;
}

static void update(struct alfpgm *s) {
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

static void wake(struct alfpgm *s) {
    memset(s->rounds, 0, (size_t)s->n);
    memset(s->still, 0, (size_t)s->n);
}

/* y'alpha = 0 exactly: the heavier side gives way. */
static void balance(struct alfpgm *s) {
    struct svi_work *w = s->w;
    double side[2] = {0, 0};
    for (int64_t i = 0; i < s->n; i++)
        side[w->problem->y[i] > 0] += w->alpha[i];
    const int heavy = side[1] > side[0];
    const double keep = side[heavy] > 0 ? side[!heavy] / side[heavy] : 1;
    for (int64_t i = 0; i < s->n; i++)
        if ((w->problem->y[i] > 0) == heavy)
            w->alpha[i] *= keep;
}

/* G from scratch, f = y (G + 1). */
static void rebuild(struct alfpgm *s) {
    struct svi_work *w = s->w;
    const double *y = w->problem->y;
    double *coef = s->work; /* room for n */
    for (int64_t i = 0; i < s->n; i++)
        coef[i] = y[i] * w->alpha[i];
    svi_kernel_rows_product(&s->k, coef, s->g);
    for (int64_t i = 0; i < s->n; i++)
        s->g[i] = y[i] * s->g[i] - 1;
}

/* The bias that the free rows agree on; without any, the middle of what is possible. */
static double bias(struct alfpgm *s) {
    const struct svi_work *w = s->w;
    double sum = 0;
    int64_t count = 0;
    survey(s);
    for (int64_t i = 0; i < s->n; i++)
        if (w->alpha[i] > 0 && w->alpha[i] < w->cost[i]) {
            sum += q_of(s, i);
            count++;
        }
    return count ? sum / (double)count : 0.5 * (s->m + s->M);
}

/* Objective at this bias, and dual value, from G. */
static void certify(struct alfpgm *s, double b) {
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

static bool reached(const struct alfpgm *s) {
    return svi_work_reached(s->w, s->w->objective, s->w->objective - s->w->dual);
}

/* Does the duality gap meet the tolerance? If so, does it still when y'alpha is exactly 0 and G made anew? */
static bool proved(struct alfpgm *s) {
    certify(s, bias(s));
    if (!reached(s))
        return false;
    const double b = bias(s); /* before balance() moves what is bound a little off its bound */
    balance(s);
    rebuild(s);
    certify(s, b);
    return reached(s);
}

/* All conditions hold within eps. True: it is the end; otherwise eps is smaller now. */
static bool finished(struct alfpgm *s) {
    s->w->stop = SVS_STOP_TOL;
    if (proved(s))
        return true;
    s->w->stop = SVS_STOP_STALLED;
    s->eps *= 0.25;
    return s->eps < EPS_LEAST;
}

static void rounds(struct alfpgm *s) {
    struct svi_work *w = s->w;
    s->lambda = 0;
    for (bool told = false; !told;) {
        double active = survey(s), gap = s->m - s->M;
        if (w->iterations == 0)
            s->lambda = -0.5 * (s->m + s->M);
        if (gap < s->eps) {
            wake(s);
            if (finished(s))
                return;
            continue;
        }
        if (active < fmax(0.5 * gap, s->eps)) {
            wake(s);
            survey(s);
        }
        choose(s);
        small_problem(s);
        update(s);
        w->iterations++;
        if (w->iterations % LOOK == 0) {
            certify(s, bias(s));
            if (reached(s) && finished(s))
                return;
        }
        told = svi_work_stop(w, NAN, NAN, DEFAULT_MAX);
    }
}

static svs_code reserve(struct alfpgm *s, svs_error *err) {
    const size_t n = (size_t)s->n, room = (size_t)s->room;
    double **const vectors[] = {&s->chi, &s->upper, &s->y, &s->a, &s->before};
    bool got = (s->g = svi_alloc_array(n, sizeof(double))) != NULL;
    got = (s->up = svi_alloc_array(n, sizeof *s->up)) && got;
    got = (s->low = svi_alloc_array(n, sizeof *s->low)) && got;
    got = (s->set = svi_alloc_array(room, sizeof *s->set)) && got;
    got = (s->row = svi_alloc_array(room, sizeof *s->row)) && got;
    got = (s->taken = svi_alloc_array(n, sizeof *s->taken)) && got;
    got = (s->rounds = svi_alloc_array(n, 1)) && got;
    got = (s->still = svi_alloc_array(n, 1)) && got;
    got = (s->q = svi_alloc_array(room * room, sizeof(double))) && got;
    got = (s->work = svi_alloc_array(svi_fpgm_work(room) + n, sizeof(double))) && got;
    got = (s->index = svi_alloc_array(2 * room, sizeof *s->index)) && got;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        got = (*vectors[i] = svi_alloc_array(room, sizeof(double))) && got;
    return got ? svi_kernel_rows_init(&s->k, &s->w->problem->rows, &s->w->problem->kernel, 0,
                                      s->w->o->cache_mib, s->room, err)
               : svi_fail_memory(err, "the decomposition");
}

static void release(struct alfpgm *s) {
    void *const all[] = {s->g, s->up,   s->low, s->set,   s->row, s->taken, s->rounds, s->still,
                         s->q, s->work, s->chi, s->upper, s->y,   s->a,     s->before, s->index};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        svi_free(all[i]);
    svi_kernel_rows_clear(&s->k);
}

/* The weights of a linear kernel, which the frame certifies as it does every linear model. */
static void linear_weights(struct alfpgm *s) {
    struct svi_work *w = s->w;
    const double b = w->v[0];
    if (w->problem->kernel.kind != SVS_LINEAR)
        return;
    w->v[0] = 0;
    for (int64_t i = 0; i < s->n; i++)
        if (w->alpha[i] != 0)
            svi_row_add(w->kernels, &w->problem->rows, i, w->problem->y[i] * w->alpha[i], w->v, 0);
    w->v[w->d] = b;
}

svs_code svi_solve_alfpgm(struct svi_work *w, svs_error *err) {
    struct alfpgm s = {.w = w, .n = w->problem->rows.n, .eps = 0.01};
    s.room = 2 * w->o->pairs < s.n ? 2 * w->o->pairs : (int)s.n;
    svs_code code = reserve(&s, err);
    if (code == SVS_OK) {
        if (w->warm)
            balance(&s);
        rebuild(&s);
        rounds(&s);
        if (w->stop != SVS_STOP_TOL)
            proved(&s);
        linear_weights(&s);
        snprintf(w->note, sizeof w->note, "%s, working sets of %d rows",
                 w->o->limiter ? "MinMaxLimiter" : "free half carried over", s.room);
    }
    release(&s);
    return code;
}
