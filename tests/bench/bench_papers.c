/* The comparisons of the papers with our solvers, on the sets that there are (`make bench-papers`):
 * text tables, and the figure as a .dat for gnuplot.
 *
 *   Nie et al. 2014, Tables 1-3: time to come within 1 % of the optimum; test accuracy of L1, L2
 *   and the best Lp; Figure 1: time against n
 *
 *   Le et al. 2015, Table II: accuracy and time of ALSVM, FALSVM
 *
 *   Nguyen et al. 2015, Table II: SGD-LSSVM beside LIBSVM
 *
 *   Aregbesola & Griva 2022, Table 2: ALFPGM beside LIBSVM
 */
#include <libsvm/svm.h>

#include "bench/liblinear_peer.h"

static struct bench_trace trace;

static double accuracy(const struct bench_set *test, const svs_solution *s) {
    const svs_rows *r = &test->table.examples.rows;
    double *x = malloc((size_t)r->d * sizeof *x);
    int64_t right = 0;
    for (int64_t i = 0; i < r->n; i++) {
        double f = s->b;
        svs_rows_copy(r, i, x);
        for (int j = 0; j < r->d; j++)
            f += s->w[j] * x[j];
        right += (f > 0) == (test->y[i] > 0);
    }
    free(x);
    return (double)right / (double)r->n;
}

/* ---- Nie et al. */

static void time_to_one_percent(const char *name) {
    static const svs_solver solvers[] = {SVS_SOLVER_NEWTON, SVS_SOLVER_ALM, SVS_SOLVER_ALM_INEXACT,
                                         SVS_SOLVER_DCD};
    struct bench_set s;
    struct peer peer;
    if (!bench_load(&s, name, 0)) {
        printf("%-14s SKIPPED: not in the data folder\n", name);
        return;
    }
    peer_open(&peer, &s);
    for (double p = 1; p <= 2; p++) {
        const svs_problem problem = bench_problem(&s, p, 1);
        svs_solution best = bench_solve(&problem, SVS_SOLVER_NEWTON, 1e-7, 20, NULL);
        printf("%-14s L%g", name, p);
        double first = 0;
        for (int k = 0; k < bench_pick(1, 4, 4); k++) {
            svs_solution x = bench_solve(&problem, solvers[k], 5e-3, 5, &trace);
            double t = bench_trace_time(&trace, 1.01 * best.objective);
            isinf(t) ? printf("  not in 5 s ") : printf("  %8.2f ms", 1e3 * t);
            first = k == 0 ? t : first;
            svs_solution_clear(&x);
        }
        double theirs = peer_best(&peer, &s, p, 1, 1.01 * best.objective, 5);
        printf(isinf(theirs) ? "  not in 5 s\n" : "  %8.2f ms\n", 1e3 * theirs);
        bench_row((struct bench_row){.ours = 1e3 * first,
                                     .peer = isinf(theirs) ? 0 : 1e3 * theirs,
                                     .unit = "ms",
                                     .ratio = first / (isinf(theirs) ? 5 : theirs)},
                  "time to 1 %% of the optimum, newton / LIBLINEAR's best, %s, L%g", name, p);
        svs_solution_clear(&best);
    }
    peer_close(&peer);
    bench_unload(&s);
}

static void accuracies(const char *name, const char *test_name) {
    struct bench_set s, test;
    double best = 0, best_p = 0, at[11];
    if (!bench_load(&s, name, 0) || !bench_load(&test, test_name, 0))
        return;
    for (int k = 0; k <= 10; k++) {
        const svs_problem problem = bench_problem(&s, 1 + 0.1 * k, 1);
        svs_solution x = bench_solve(&problem, SVS_SOLVER_ALM, 1e-3, 10, NULL);
        at[k] = accuracy(&test, &x);
        if (at[k] > best) {
            best = at[k];
            best_p = 1 + 0.1 * k;
        }
        svs_solution_clear(&x);
    }
    printf("%-14s L1 %.4f  L2 %.4f  best L%.1f %.4f\n", name, at[0], at[10], best_p, best);
    fflush(stdout);
    bench_unload(&s);
    bench_unload(&test);
}

/* Time against n: the slope of its logarithm is about 1. */
static void scaling(const char *folder) {
    char path[600];
    struct bench_set s;
    if (!bench_load(&s, "ijcnn1", 0))
        return;
    snprintf(path, sizeof path, "%s/time_against_n.dat", folder);
    FILE *to = fopen(path, "w");
    if (!to)
        bench_die("the folder of the plots cannot be written");
    const int64_t all = s.table.examples.rows.n;
    double x[6], y[6], sx = 0, sy = 0, sxx = 0, sxy = 0;
    int points = 0;
    fprintf(to, "# n, seconds to a gap of 1e-3\n");
    for (int64_t n = all / 32; n <= all && points < 6; n *= 2, points++) {
        double best = INFINITY;
        s.table.examples.rows.n = n;
        for (int k = 0; k < 5; k++) {
            const svs_problem problem = bench_problem(&s, 2, 1);
            svs_solution r = bench_solve(&problem, SVS_SOLVER_ALM, 1e-3, 10, NULL);
            best = fmin(best, r.seconds);
            svs_solution_clear(&r);
        }
        fprintf(to, "%lld %g\n", (long long)n, best);
        x[points] = log((double)n);
        y[points] = log(best);
    }
    fclose(to);
    for (int k = 0; k < points; k++) {
        sx += x[k];
        sy += y[k];
        sxx += x[k] * x[k];
        sxy += x[k] * y[k];
    }
    printf("slope of log time over log n: %.2f (%s)\n", (points * sxy - sx * sy) / (points * sxx - sx * sx),
           path);
    s.table.examples.rows.n = all;
    bench_unload(&s);
}

/* ---- Le et al. */

static void least_squares(const char *name) {
    struct bench_set s;
    if (!bench_load(&s, name, 0))
        return;
    printf("%-14s", name);
    for (int k = 0; k < 2; k++) {
        svs_problem problem = bench_problem(&s, 2, 1);
        problem.loss = SVS_SQUARED;
        svs_solution x = bench_solve(&problem, k ? SVS_SOLVER_FALSVM : SVS_SOLVER_ALSVM, 1e-6, 0, NULL);
        printf("  %s accuracy %.4f %8.2f ms", k ? "falsvm" : "alsvm", accuracy(&s, &x), 1e3 * x.seconds);
        svs_solution_clear(&x);
    }
    printf("\n");
    fflush(stdout);
    bench_unload(&s);
}

/* ---- kernels, beside LIBSVM */

static struct svm_node **kernel_rows(const struct bench_set *s, struct svm_node **nodes) {
    const svs_rows *r = &s->table.examples.rows;
    double *x = malloc((size_t)r->d * sizeof *x);
    struct svm_node *at = *nodes = malloc(((size_t)svs_rows_stored(r) + (size_t)r->n) * sizeof *at);
    struct svm_node **rows = malloc((size_t)r->n * sizeof(struct svm_node *));
    for (int64_t i = 0; i < r->n; i++) {
        rows[i] = at;
        svs_rows_copy(r, i, x);
        for (int j = 0; j < r->d; j++)
            if (x[j] != 0)
                *at++ = (struct svm_node){j + 1, x[j]};
        *at++ = (struct svm_node){-1, 0};
    }
    free(x);
    return rows;
}

static void beside_libsvm(const char *name, int64_t most, double gamma, double C) {
    struct bench_set s;
    struct svm_node *nodes;
    if (!bench_load(&s, name, most))
        return;
    struct svm_node **rows = kernel_rows(&s, &nodes);
    const struct svm_problem theirs = {(int)s.table.examples.rows.n, s.y, rows};
    const struct svm_parameter how = {.svm_type = C_SVC,
                                      .kernel_type = RBF,
                                      .gamma = gamma,
                                      .C = C,
                                      .eps = 0.01,
                                      .cache_size = 256,
                                      .shrinking = 1};
    svm_set_print_string_function(peer_quiet);
    double start = bench_now();
    struct svm_model *m = svm_train(&theirs, &how);
    double took = bench_now() - start;
    svs_problem problem = bench_problem(&s, 1, C);
    problem.bias = SVS_BIAS_FREE;
    problem.kernel = (svs_kernel){.kind = SVS_RBF, .gamma = gamma};
    svs_solution x = bench_solve(&problem, SVS_SOLVER_ALFPGM, 2e-3, 60, NULL);
    int64_t vectors = 0;
    for (int64_t i = 0; i < x.n; i++)
        vectors += x.alpha[i] > 0;
    printf("%-12s C %-4g alfpgm %7.3f s  dual %.7g  gap %.0e  SVs %lld | LIBSVM %7.3f s  SVs %d", name, C,
           x.seconds, x.dual, x.gap / x.objective, (long long)vectors, took, m->l);
    svs_solution_clear(&x);
    problem.loss = SVS_SQUARED;
    problem.bias = SVS_BIAS_APPENDED;
    x = bench_solve(&problem, SVS_SOLVER_SGD_LSSVM, 1e-3, 60, NULL);
    printf(" | sgd-lssvm %7.3f s  residual %.0e (%s)\n", x.seconds, x.kkt, x.note);
    fflush(stdout);
    svs_solution_clear(&x);
    svm_free_and_destroy_model(&m);
    free(nodes);
    free(rows);
    bench_unload(&s);
}

int main(int count, char **argument) {
    static const char *const sets[] = {"a9a",        "ijcnn1",    "w8a",   "mushrooms",
                                       "covtype15k", "connect-4", "magic", "reuters-lasvm"};
    const size_t n = bench_quick() ? 1 : sizeof sets / sizeof *sets;
    printf("Nie et al. 2014: time to 1 %% of the optimum, C = 1 (newton, alm, alm-inexact, dcd | best of "
           "LIBLINEAR)\n");
    for (size_t k = 0; k < n; k++)
        time_to_one_percent(sets[k]);
    if (bench_quick())
        return bench_end();
    printf("\nNie et al. 2014: accuracy on the test part\n");
    accuracies("a9a", "a9a.t");
    accuracies("ijcnn1", "ijcnn1.t");
    accuracies("svmguide1", "svmguide1.t");
    accuracies("reuters-lasvm", "reuters-lasvm.t");
    printf("\nNie et al. 2014, Figure 1: time against n\n");
    scaling(count > 1 ? argument[1] : ".");
    printf("\nLe et al. 2015, Table II: one pass\n");
    for (size_t k = 0; k + 1 < n; k++)
        least_squares(sets[k]);
    printf("\nAregbesola & Griva 2022, Table 2 and Nguyen et al. 2015, Table II: kernels beside LIBSVM\n");
    for (double C = 1; C <= 100; C *= 100) {
        beside_libsvm("svmguide1", 0, 0.25, C);
        beside_libsvm("svmguide3", 0, 0.05, C);
        beside_libsvm("splice", 0, 0.016, C);
        beside_libsvm("a9a", 5000, 0.0081, C);
    }
    return bench_end();
}
