/* The linear solvers on real sets: who reaches the optimum, with which proof; and the time of `auto` beside
 * the best of LIBLINEAR's solvers at its best tolerance, on the same rows in the same process, one thread,
 * loading excluded. Raw feature values, C = 1, bias 1 appended. */
#include "bench/liblinear_peer.h"

static const char *const names[] = {"a9a",       "ijcnn1",    "w8a",        "mushrooms",    "german.numer",
                                    "splice",    "svmguide1", "svmguide3",  "shuttle",      "covtype15k",
                                    "connect-4", "magic",     "cod-rna30k", "reuters-lasvm"};
static struct bench_trace trace;

static void correctness(const char *name, const struct bench_set *s, double p, double *best) {
    static const svs_solver solvers[] = {SVS_SOLVER_AUTO, SVS_SOLVER_ALM, SVS_SOLVER_DCD,
                                         SVS_SOLVER_ALM_INEXACT, SVS_SOLVER_NESVM};
    const svs_problem problem = bench_problem(s, p, 1);
    double worst = 0;
    for (int k = 0; k < bench_pick(2, p == 1 ? 5 : 4, p == 1 ? 5 : 4); k++) {
        svs_solution x = bench_solve(&problem, solvers[k], k < 2 ? 1e-8 : 1e-6, k < 2 ? 60 : 2, NULL);
        *best = k == 0 ? x.objective : fmin(*best, x.objective);
        printf("  %s %.1e%s", svs_solver_name(x.solver), x.gap / x.objective, x.converged ? "" : " (no)");
        if (k < 2 && x.objective > *best * (1 + 1e-6))
            printf(" OBJECTIVE %.9g > %.9g", x.objective, *best);
        worst = k < 2 ? fmax(worst, x.gap / x.objective) : worst;
        svs_solution_clear(&x);
    }
    printf("\n");
    bench_row((struct bench_row){.ours = worst, .bar = "<= 1e-8", .exact = true},
              "duality gap / objective, auto and alm, %s, L%g", name, p);
}

static double shortest(const svs_problem *p, double level) {
    double best = INFINITY;
    for (int k = 0; k < 3; k++) {
        svs_solution x = bench_solve(p, SVS_SOLVER_AUTO, 1e-5, 20, &trace);
        best = fmin(best, bench_trace_time(&trace, level));
        svs_solution_clear(&x);
    }
    return best;
}

/* Where the peer never comes so far within its patience, the ratio is to that patience: an upper bound. */
static void speed(const char *name, const struct bench_set *s, double p, double best, double *logs,
                  int *count) {
    static const double levels[] = {1e-2, 1e-3};
    const svs_problem problem = bench_problem(s, p, 1);
    const double patience = bench_pick(1, 2, 5);
    double reached[2], by_peer[2], share[2];
    struct peer peer;
    peer_open(&peer, s);
    printf("  %-14s", name);
    for (int k = 0; k < 2; k++) {
        double ours = shortest(&problem, best * (1 + levels[k]));
        double theirs = peer_best(&peer, s, p, 1, best * (1 + levels[k]), patience);
        bool never = isinf(theirs);
        double ratio = ours / (never ? patience : theirs);
        printf("  %g: %8.2f ms %s%9.2f ms  ratio %s%-7.3f", levels[k], 1e3 * ours, never ? ">" : " ",
               1e3 * (never ? patience : theirs), never ? "<" : "", ratio);
        logs[k] += log(ratio);
        reached[k] = ours, by_peer[k] = never ? 0 : theirs, share[k] = ratio;
    }
    ++*count;
    printf("\n");
    for (int k = 0; k < 2; k++)
        bench_row(
            (struct bench_row){
                .ours = 1e3 * reached[k], .peer = 1e3 * by_peer[k], .unit = "ms", .ratio = share[k]},
            "train / LIBLINEAR's best solver, to %g, %s, L%g", levels[k], name, p);
    peer_close(&peer);
}

int main(void) {
    double logs[2][2] = {{0}};
    int count[2] = {0};
    for (double p = 1; p <= 2; p++) {
        printf("L%g loss. Duality gap / objective that each solver proves (asked: auto and alm 1e-8, the "
               "others 1e-6 within 2 s)\n",
               p);
        for (size_t k = bench_quick() ? 11 : 0; k < (bench_quick() ? 12 : sizeof names / sizeof *names);
             k++) {
            struct bench_set s;
            double best = INFINITY;
            if (!bench_load(&s, names[k], 0)) {
                printf("  %-14s SKIPPED: not in the data folder\n", names[k]);
                continue;
            }
            printf("  %-14s", names[k]);
            correctness(names[k], &s, p, &best);
            speed(names[k], &s, p, best, logs[(int)p - 1], &count[(int)p - 1]);
            bench_unload(&s);
        }
        printf("L%g geometric mean of time / LIBLINEAR's: to 1e-2 %.3f, to 1e-3 %.3f\n\n", p,
               exp(logs[(int)p - 1][0] / count[(int)p - 1]), exp(logs[(int)p - 1][1] / count[(int)p - 1]));
        for (int k = 0; k < 2; k++)
            bench_row((struct bench_row){.ours = exp(logs[(int)p - 1][k] / count[(int)p - 1])},
                      "train / LIBLINEAR's best solver, to %s, geometric mean of %d sets, L%g",
                      k ? "1e-3" : "1e-2", count[(int)p - 1], p);
    }
    return bench_end();
}
