/* liblinear_peer.h: LIBLINEAR in the same process on the same rows: what its best tolerance takes to come
 * within a level of the optimum. */
#ifndef BENCH_LIBLINEAR_PEER_H
#define BENCH_LIBLINEAR_PEER_H

#include <linear.h>

#include "bench/sets.h"

struct peer {
    struct problem problem;
    struct feature_node *nodes, **rows;
};

static inline void peer_quiet(const char *text) {
    (void)text;
}

static inline void peer_open(struct peer *p, const struct bench_set *s) {
    const svs_rows *r = &s->table.examples.rows;
    double *x = malloc((size_t)r->d * sizeof *x);
    size_t capacity = (size_t)svs_rows_stored(r) + 2 * (size_t)r->n;
    struct feature_node *at = p->nodes = malloc(capacity * sizeof *at);
    p->rows = malloc((size_t)r->n * sizeof(struct feature_node *));
    for (int64_t i = 0; i < r->n; i++) {
        p->rows[i] = at;
        svs_rows_copy(r, i, x);
        for (int j = 0; j < r->d; j++)
            if (x[j] != 0)
                *at++ = (struct feature_node){j + 1, x[j]};
        *at++ = (struct feature_node){r->d + 1, 1};
        *at++ = (struct feature_node){-1, 0};
    }
    p->problem = (struct problem){(int)r->n, r->d + 1, s->y, p->rows, 1};
    set_print_string_function(peer_quiet);
    free(x);
}

static inline void peer_close(struct peer *p) {
    free(p->nodes);
    free(p->rows);
}

static inline double peer_objective(const struct bench_set *s, const struct model *m, double p, double C) {
    const svs_rows *r = &s->table.examples.rows;
    const double sign = m->label[0] > 0 ? 1 : -1;
    double *x = malloc((size_t)r->d * sizeof *x), sum = 0;
    for (int j = 0; j <= r->d; j++)
        sum += 0.5 * m->w[j] * m->w[j];
    for (int64_t i = 0; i < r->n; i++) {
        double f = m->w[r->d];
        svs_rows_copy(r, i, x);
        for (int j = 0; j < r->d; j++)
            f += m->w[j] * x[j];
        double e = 1 - s->y[i] * sign * f;
        sum += e > 0 ? C * (p == 1 ? e : e * e) : 0;
    }
    free(x);
    return sum;
}

/* The shortest time of one solver, over its tolerances from loose to tight, whose objective is at most
 * `level`; INFINITY when none within `patience` seconds is. */
static inline double peer_time(const struct peer *p, const struct bench_set *s, int solver, double loss,
                               double C, double level, double patience) {
    static const double tolerances[] = {10, 3, 1, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 1e-4, 1e-5};
    double spent = 0;
    for (size_t k = 0; k < sizeof tolerances / sizeof *tolerances && spent < patience; k++) {
        const struct parameter how = {.solver_type = solver,
                                      .eps = solver == 2 ? 0.1 * tolerances[k] : tolerances[k],
                                      .C = C,
                                      .p = 0.1};
        double start = bench_now();
        struct model *m = train(&p->problem, &how);
        double took = bench_now() - start, objective = peer_objective(s, m, loss, C);
        spent += took;
        free_and_destroy_model(&m);
        if (objective <= level)
            return took;
    }
    return INFINITY;
}

/* The best of LIBLINEAR's solvers for a loss. */
static inline double peer_best(const struct peer *p, const struct bench_set *s, double loss, double C,
                               double level, double patience) {
    if (loss == 1)
        return peer_time(p, s, 3, loss, C, level, patience);
    return fmin(peer_time(p, s, 1, loss, C, level, patience), peer_time(p, s, 2, loss, C, level, patience));
}

#endif
