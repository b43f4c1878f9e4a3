/* FOSVM beside LIBSVM's one-class SVM: is the optimum reached, do the bounds hold, how long does it take;
 * both in one process, one thread, loading excluded. The stream and the other peers: bench_novelty_stream,
 * novelty_peers. */
#include "bench/libsvm_peer.h"
#include "bench/novelty_sets.h"

#include "novelty/fosvm.h"

static void flush(void) {
    fflush(stdout);
}

/* Rbf, gamma given, the rows as they are, all of them. */
static svs_novelty_options plain(double theta, double gamma) {
    svs_novelty_options o;
    svs_novelty_options_default(&o);
    o.kernel = SVS_NOVELTY_RBF;
    o.gamma_rule = SVS_GAMMA_GIVEN;
    o.gamma = gamma;
    o.theta = theta;
    o.trim = 0;
    o.scale = false;
    o.max = 0;
    return o;
}

static svs_novelty_model *train(const svs_rows *r, const svs_novelty_options *o, double *seconds) {
    svs_novelty_model *m = NULL;
    svs_error err;
    const double start = bench_now();
    if (svs_novelty_train(r, NULL, o, &m, &err) != SVS_OK)
        bench_die(err.text);
    *seconds = bench_now() - start;
    return m;
}

static void score(const svs_novelty_model *m, const svs_rows *r, double *surprise) {
    svs_error err;
    if (svs_novelty_score(m, r, 0, r->n, NULL, surprise, &err) != SVS_OK)
        bench_die(err.text);
}

static int support_of(const svs_novelty_model *m) {
    int count = 0;
    for (int g = 0; g < m->members; g++)
        count += m->member[g].count;
    return count;
}

/* ---- 1. correct */

/* `count` normal rows of the training part, drawn at random, standardised; d = 0: it is not there. */
static struct nov_set some_rows(const char *name, int lags, int64_t count) {
    struct nov_set s;
    if (!nov_load(&s, name, lags))
        return (struct nov_set){0};
    int64_t *order = nov_permutation(s.train, 7);
    nov_take(&s, order, count < s.train ? count : s.train);
    s.train = s.n;
    nov_standardise(&s);
    free(order);
    return s;
}

/* The certificate from the model's numbers alone: the smallest membership over all rows. */
static double least_membership(const svs_novelty_model *m, const svs_rows *r, int64_t *outside) {
    double *surprise = malloc((size_t)r->n * sizeof *surprise), least = INFINITY;
    score(m, r, surprise);
    *outside = 0;
    for (int64_t i = 0; i < r->n; i++) {
        const double membership = exp(-surprise[i]);
        least = fmin(least, membership);
        *outside += membership < 1 - m->theta - 1e-12;
    }
    free(surprise);
    return least;
}

static void optimum(const char *name, const char *set_name, const struct nov_set *s, double factor) {
    const double gamma = factor * nov_scale_gamma(s, s->n);
    const svs_rows r = nov_rows(s, 0, s->n);
    struct libsvm peer;
    double ours, theirs;
    int64_t outside, outside_tight;
    libsvm_open(&peer, &r);
    const double start = bench_now();
    libsvm_train(&peer, gamma, 1.0 / (double)r.n, 1e-9);
    theirs = bench_now() - start;
    const svs_novelty_options tight = plain(1e-9, gamma), usual = plain(0.05, gamma);
    svs_novelty_model *m = train(&r, &tight, &ours), *u = train(&r, &usual, &(double){0});
    const double rho = peer.model->rho[0], mine = m->member[0].rho, loose = u->member[0].rho;
    least_membership(m, &r, &outside_tight);
    const double least = least_membership(u, &r, &outside);
    printf("  %-24s %5lld %3d %8.3g %12.9f %9.1e %5d %5d %9.1e %6.3f %6.3f | %6.4f %3lld %5lld %7.0f\n", name,
           (long long)r.n, r.d, gamma, mine, fabs(mine - rho), m->member[0].count, peer.model->l,
           m->member[0].violation, ours, theirs, least, (long long)(outside + outside_tight),
           (long long)u->member[0].rounds, (1 - loose) / (0.05 * loose));
    bench_row((struct bench_row){.ours = fabs(mine - rho), .bar = "<= 1e-8", .exact = true},
              "one-class, difference of rho from LIBSVM's, %s, gamma %.3g", set_name, gamma);
    bench_row((struct bench_row){.ours = (double)(outside + outside_tight), .bar = "= 0", .exact = true},
              "one-class, rows outside of 1 - theta, %s, gamma %.3g", set_name, gamma);
    svs_novelty_free(&m);
    svs_novelty_free(&u);
    libsvm_close(&peer);
}

static const struct {
    const char *name;
    int lags;
} small[] = {{"odds_annthyroid", 1}, {"odds_mammography", 1},
             {"odds_shuttle", 1},    {"skab_anomaly-free", 1},
             {"smd_machine-1-6", 1}, {"nab_machine_temperature_system_failure", 12}};

static void correct(void) {
    printf("Optimum: theta 1e-9 against LIBSVM -s 2, nu 1/n, eps 1e-9; then theta 0.05: smallest membership, "
           "rows\n"
           "below 1 - theta (both runs), rounds and their bound (1 - rho) / (theta rho)\n"
           "  %-24s %5s %3s %8s %12s %9s %5s %5s %9s %6s %6s | %6s %3s %5s %7s\n",
           "rows", "n", "d", "gamma", "rho", "|gap|", "sv", "its", "kkt", "s", "its s", "least", "out",
           "rounds", "bound");
    for (size_t k = 0; k < (bench_quick() ? 1 : sizeof small / sizeof *small); k++) {
        struct nov_set s = some_rows(small[k].name, small[k].lags, bench_pick(300, 1000, 1000));
        if (!s.d) {
            printf("  %-24s SKIPPED: not in the data folder\n", small[k].name);
            continue;
        }
        char name[25];
        snprintf(name, sizeof name, "%s", small[k].name);
        optimum(name, name, &s, 1);
        optimum("", name, &s, 16);
        nov_free(&s);
        flush();
    }
}

/* FOSVM2: over many seeds, how often is more than epsilon left outside? */
static void drawn_share(void) {
    const uint64_t seeds = (uint64_t)bench_pick(1, 50, 200);
    const double all = (double)seeds;
    printf("\nFOSVM2 (epsilon 0.05, theta 0.05) over many seeds: rows left outside, runs within epsilon, "
           "promised\n"
           "1 - e^(-m epsilon)\n  %-24s %5s %6s %8s %8s %8s %8s %7s\n",
           "rows", "n", "m", "mean", "most", "within", "promised", "rounds");
    for (size_t k = 0; k < sizeof small / sizeof *small; k++)
        for (int long_draw = 0; long_draw < 2; long_draw++) {
            struct nov_set s = some_rows(small[k].name, small[k].lags, 4000);
            double sum = 0, most = 0, rounds = 0;
            int within = 0;
            if (!s.d)
                continue;
            const svs_rows r = nov_rows(&s, 0, s.n);
            svs_novelty_options o = plain(0.05, nov_scale_gamma(&s, s.n));
            o.fosvm = 2;
            o.m = long_draw ? 200 : 60;
            for (o.seed = 1; o.seed <= seeds; o.seed++) {
                int64_t outside;
                svs_novelty_model *m = train(&r, &o, &(double){0});
                least_membership(m, &r, &outside);
                const double share = (double)outside / (double)r.n;
                sum += share;
                most = fmax(most, share);
                within += share <= o.epsilon;
                rounds += (double)m->member[0].rounds;
                svs_novelty_free(&m);
            }
            printf("  %-24.24s %5lld %6lld %8.4f %8.4f %8.3f %8.3f %7.1f\n", long_draw ? "" : small[k].name,
                   (long long)r.n, (long long)o.m, sum / all, most, within / all,
                   1 - exp(-(double)o.m * o.epsilon), rounds / all);
            nov_free(&s);
            flush();
        }
}

/* Points of the unit cube: bounded, whatever n. */
static struct nov_set cube(int64_t n, int d) {
    struct nov_set s = {.d = d, .n = n, .train = n, .x = malloc((size_t)(n * d) * sizeof(double))};
    struct svi_random random = {5};
    for (int64_t i = 0; i < n * d; i++)
        s.x[i] = (double)(svi_random_next(&random) >> 11) * 0x1p-53;
    return s;
}

/* One member's fit, without the preparation of the rows. */
static double fit_alone(const struct nov_set *s, const svs_novelty_options *o, int64_t *rounds) {
    const int stride = svi_round_up(s->d, 8);
    double *x = aligned_alloc(64, (size_t)(s->n * stride) * sizeof *x);
    svs_error err;
    memset(x, 0, (size_t)(s->n * stride) * sizeof *x);
    for (int64_t i = 0; i < s->n; i++)
        memcpy(x + i * stride, s->x + i * s->d, (size_t)s->d * sizeof *x);
    struct svi_member_fit f = {.options = o,
                               .similarity = {o->kernel, o->degree, svi_kernels_get(SVS_ISA_BEST)},
                               .rows = {x, stride, s->n},
                               .gamma = o->gamma,
                               .random = {o->seed},
                               .members = 1};
    const double start = bench_now();
    if (svi_member_fit(&f, &err) != SVS_OK)
        bench_die(err.text);
    const double seconds = bench_now() - start;
    *rounds = f.rounds;
    svi_member_fit_clear(&f);
    free(x);
    return seconds;
}

/* In two dimensions the smallest set fills the cube as far as gamma can tell; in six, more rows bring new
 * corners. */
static void rounds_against_n(void) {
    static const int64_t sizes[] = {1000, 10000, 100000, 500000};
    static const struct {
        int d;
        double gamma;
    } cubes[] = {{2, 1}, {3, 1}, {6, 3}};
    printf("\nRounds at fixed gamma on points of the unit cube of d dimensions, theta 0.05; FOSVM2 with m "
           "60, mean of\n"
           "50 seeds, the fit alone\n  %2s %5s %8s %8s %6s %8s %8s %8s | %8s %12s\n",
           "d", "gamma", "n", "rounds", "sv", "rho", "bound", "s", "fosvm2", "us a round");
    for (int k = 0; k < 12; k++) {
        const int d = cubes[k / 4].d;
        struct nov_set s = cube(sizes[k % 4], d);
        const svs_rows r = nov_rows(&s, 0, s.n);
        svs_novelty_options o = plain(0.05, cubes[k / 4].gamma);
        double seconds, sum = 0, all = 0;
        svs_novelty_model *m = train(&r, &o, &seconds);
        const double rho = m->member[0].rho;
        o.fosvm = 2;
        o.m = 60;
        for (o.seed = 1; o.seed <= 50; o.seed++) {
            int64_t rounds;
            sum += fit_alone(&s, &o, &rounds);
            all += (double)rounds;
        }
        printf("  %2d %5g %8lld %8lld %6d %8.5f %8.0f %8.3f | %8.1f %12.2f\n", d, o.gamma, (long long)s.n,
               (long long)m->member[0].rounds, m->member[0].count, rho, (1 - rho) / (0.05 * rho), seconds,
               all / 50, 1e6 * sum / all);
        svs_novelty_free(&m);
        nov_free(&s);
        flush();
    }
}

/* ---- 2. fast */

/* All normal rows, then all rows. */
static void normal_then_all(struct nov_set *s) {
    int64_t *order = calloc((size_t)(2 * s->n), sizeof *order), n = 0;
    for (int64_t i = 0; i < s->n; i++)
        if (!s->y[i])
            order[n++] = i;
    const int64_t normal = n;
    for (int64_t i = 0; i < s->n; i++)
        order[n++] = i;
    nov_take(s, order, n);
    s->train = normal;
    free(order);
}

/* The rows to train on come first; the test is smd's test part, 20,000 of the other rows of kdd99, and all of
 * shuttle. */
static bool speed_set(struct nov_set *s, const char *name) {
    static const struct {
        const char *name;
        int64_t train;
    } parts[] = {{"smd_machine-1-6", 23688}, {"smd_machine-2-1", 23693}, {"smd_machine-3-4", 23687}};
    const bool kdd = strcmp(name, "kdd99-10pct") == 0;
    if (!nov_read(s, name, kdd ? "label" : "is_anomaly", 1))
        return false;
    for (int k = 0; k < 3; k++)
        s->train = strcmp(name, parts[k].name) == 0 ? parts[k].train : s->train;
    if (kdd)
        nov_shuffle(s, 50000, 20000);
    else if (s->train == 0)
        normal_then_all(s);
    return true;
}

static double shortest(const svs_rows *r, const svs_novelty_options *o, svs_novelty_model **m) {
    double best = INFINITY;
    for (int k = 0; k < 3; k++) {
        double seconds;
        svs_novelty_free(m);
        *m = train(r, o, &seconds);
        best = fmin(best, seconds);
    }
    return best;
}

/* Seconds for each row and support vector. */
static double our_score_time(const svs_novelty_model *m, const svs_rows *test, double *surprise) {
    double best = INFINITY;
    for (int k = 0; k < 3; k++) {
        const double start = bench_now();
        score(m, test, surprise);
        best = fmin(best, bench_now() - start);
    }
    return best / (double)test->n / support_of(m);
}

static void compare(const char *name) {
    struct nov_set s;
    if (!speed_set(&s, name)) {
        printf("  %-18s SKIPPED: not in the data folder\n", name);
        return;
    }
    nov_standardise(&s);
    const double gamma = nov_scale_gamma(&s, s.train);
    const svs_rows rows = nov_rows(&s, 0, s.train), test = nov_rows(&s, s.train, s.n - s.train);
    double *value = malloc((size_t)test.n * sizeof *value);
    const uint8_t *y = s.y + s.train;
    struct libsvm peer;
    libsvm_open(&peer, &rows);
    double start = bench_now();
    libsvm_train(&peer, gamma, 0.05, 1e-3);
    const double theirs = bench_now() - start;
    const svs_rows some = {.n = test.n < 2000 ? test.n : 2000, .d = s.d, .dense = test.dense, .stride = s.d};
    start = bench_now();
    libsvm_score(&peer, &some, value);
    const double each = (bench_now() - start) / (double)some.n / peer.model->l;
    libsvm_score(&peer, &test, value);
    const struct nov_quality quality = nov_judge(value, y, test.n);
    printf("  %-18s %6lld %3d %-8s %9.3f s %7s %6d %9.4f %8.2f\n", name, (long long)rows.n, s.d, "libsvm",
           theirs, "", peer.model->l, quality.auc, 1e9 * each);
    svs_novelty_options defaults;
    svs_novelty_options_default(&defaults);
    const svs_novelty_options ways[] = {plain(0.05, gamma), plain(0.05, gamma), defaults};
    for (int k = 0; k < 3; k++) {
        svs_novelty_options o = ways[k];
        o.fosvm = k == 1 ? 2 : 1;
        svs_novelty_model *m = NULL;
        const double ours = shortest(&rows, &o, &m), took = our_score_time(m, &test, value);
        const struct nov_quality mine = nov_judge(value, y, test.n);
        static const char *const label[] = {"fosvm1", "fosvm2", "default"};
        printf("  %-29s %-8s %9.3f s %6.0fx %6d %9.4f %8.2f %6.1fx %+.4f\n", "", label[k], ours,
               theirs / ours, support_of(m), mine.auc, 1e9 * took, each / took, mine.auc - quality.auc);
        bench_row(
            (struct bench_row){
                .ours = 1e3 * ours, .peer = 1e3 * theirs, .unit = "ms", .ratio = theirs / ours},
            "LIBSVM / one-class training, %s, %s", label[k], name);
        bench_row((struct bench_row){.ours = mine.auc, .peer = quality.auc},
                  "one-class, area under ROC and LIBSVM's, %s, %s", label[k], name);
        if (k == 0)
            bench_row(
                (struct bench_row){
                    .ours = 1e9 * took, .peer = 1e9 * each, .unit = "ns", .ratio = each / took},
                "LIBSVM / one-class scoring, a row and support vector, %s", name);
        svs_novelty_free(&m);
    }
    libsvm_close(&peer);
    free(value);
    nov_free(&s);
    flush();
}

static void fast(void) {
    printf("\nTraining: LIBSVM -s 2 nu 0.05 (cache 1 GB) against theta 0.05, same standardised rows, gamma "
           "'scale';\n"
           "'default': our default options (laplacian, two members, trimmed). fosvm: best of 3. Scoring: ns "
           "for each\n"
           "row and support vector\n  %-18s %6s %3s %-8s %11s %7s %6s %9s %8s %7s %s\n",
           "rows", "n", "d", "", "training", "faster", "sv", "AUC", "ns", "faster", "AUC gap");
    compare("odds_shuttle");
    compare("smd_machine-1-6");
    compare("smd_machine-2-1");
    compare("smd_machine-3-4");
    compare("kdd99-10pct");
}

int main(int argc, char **argv) {
    const char *only = argc > 1 ? argv[1] : "";
    if (!*only || strcmp(only, "correct") == 0) {
        correct();
        if (bench_quick())
            return bench_end();
        drawn_share();
        rounds_against_n();
    }
    if (!*only || strcmp(only, "fast") == 0)
        fast();
    return bench_end();
}
