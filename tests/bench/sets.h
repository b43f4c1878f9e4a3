/* sets.h: the real data sets for benchmarks of solvers: loaded once, timed without loading. */
#ifndef BENCH_SETS_H
#define BENCH_SETS_H

#include <math.h>

#include "bench/bench.h"
#include "features/table.h"

struct bench_set {
    struct svi_table table;
    double *y; /* -1, +1 */
};

/* False: it is not there. `rows`: at most so many (0 = all). */
static inline bool bench_load(struct bench_set *s, const char *name, int64_t rows) {
    const struct svi_table_options o = {
        .reader = {.format = "auto", .label = "label", .label_required = true}, .max_features = 1000000};
    char path[600];
    svs_error err;
    const char *folder = getenv("SVMSTREAM_DATA");
    snprintf(path, sizeof path, "%s/%s", folder ? folder : "data", name);
    if (access(path, R_OK) != 0) {
        snprintf(path, sizeof path, "%s/%s.svm.gz", folder ? folder : "data", name);
        if (access(path, R_OK) != 0)
            return false;
    }
    if (svi_table_read(&s->table, path, &o, &err) != SVS_OK)
        bench_die(err.text);
    svs_examples *e = &s->table.examples;
    if (rows > 0 && rows < e->rows.n)
        e->rows.n = rows;
    s->y = malloc((size_t)e->rows.n * sizeof *s->y);
    for (int64_t i = 0; i < e->rows.n; i++)
        s->y[i] = e->label[i] == e->class_count - 1 ? 1 : -1;
    return true;
}

static inline void bench_unload(struct bench_set *s) {
    svi_table_clear(&s->table);
    free(s->y);
}

/* Hinge with this p, L2, C, bias 1 appended. */
static inline svs_problem bench_problem(const struct bench_set *s, double p, double C) {
    return (svs_problem){.rows = s->table.examples.rows, .y = s->y, .C = C, .p = p, .bias_value = 1};
}

/* When a solver's objective fell below a level, from what it told on its way. */
#define BENCH_POINTS 20000
struct bench_trace {
    int count;
    double seconds[BENCH_POINTS], objective[BENCH_POINTS];
};

static inline bool bench_trace_add(void *user, const svs_progress *now) {
    struct bench_trace *t = user;
    if (t->count < BENCH_POINTS && !isnan(now->objective)) {
        t->seconds[t->count] = now->seconds;
        t->objective[t->count++] = now->objective;
    }
    return true;
}

static inline double bench_trace_time(const struct bench_trace *t, double level) {
    for (int i = 0; i < t->count; i++)
        if (t->objective[i] <= level)
            return t->seconds[i];
    return INFINITY;
}

static inline svs_solution bench_solve(const svs_problem *p, svs_solver solver, double tol, double seconds,
                                       struct bench_trace *trace) {
    svs_solve_options o;
    svs_solution s;
    svs_error err;
    svs_solve_options_default(&o);
    o.solver = solver;
    o.tol = tol;
    o.max_seconds = seconds;
    if (trace) {
        trace->count = 0;
        o.progress = bench_trace_add;
        o.user = trace;
    }
    if (svs_solve(p, &o, NULL, &s, &err) != SVS_OK)
        bench_die(err.text);
    return s;
}

#endif
