/* Novelty over streams: does p keep its promise, does the share of false alerts, how many samples a second,
 * and how well the scores tell anomalies, offline and in one pass. `bench_novelty_stream useful FOLDER` also
 * leaves rows and scores in FOLDER, for novelty_peers; `bench_novelty_stream rows FOLDER` leaves the sets as
 * they are split there and prints the offline model's figures alone, for row_scores.py. */
#include "bench/libsvm_peer.h"
#include "bench/novelty_sets.h"

#include "alerts/alert.h"
#include "engine/alert_options.h"
#include "novelty/detector.h"

/* The detector and its alerts, put together as the stream processor does. */
struct feed {
    svi_detector *detector;
    struct svi_alert alert;
    struct svi_judgement judgement;
};

static struct svi_detector_options detector_defaults(int d) {
    struct svi_settings s;
    struct svi_alert_stage_options o;
    svi_settings_default(&s);
    if (svi_engine_alert_options(&s, &o, NULL) != SVS_OK)
        bench_die("the default settings are refused");
    o.novelty.d = d;
    return o.novelty;
}

static void feed_open(struct feed *f, const struct svi_detector_options *o, double fdr) {
    const struct svi_alert_options alert = {
        .p = 0.001, .clear = 0.05, .cooldown = 0, .fdr = fdr, .warmup = 100};
    svs_error err;
    f->detector = svi_detector_new(o, &err);
    if (!f->detector)
        bench_die(err.text);
    svi_alert_init(&f->alert, &alert);
}

static enum svi_alert_change feed_sample(struct feed *f, const double *x, double time) {
    struct svi_judgement *j = &f->judgement;
    svi_detector_assess(f->detector, x, j);
    const enum svi_alert_change change = svi_alert_step(&f->alert, j->p, j->tail, j->novelty, time);
    svi_detector_learn(f->detector, false);
    return change;
}

/* ---- 3. useful */

static const struct {
    const char *name;
    int lags;
} sets[] = {{"odds_annthyroid", 1}, {"odds_mammography", 1},
            {"odds_shuttle", 1},    {"skab_other-11", 1},
            {"skab_valve1-1", 1},   {"skab_valve2-0", 1},
            {"smd_machine-1-6", 1}, {"smd_machine-2-1", 1},
            {"smd_machine-3-4", 1}, {"nab_machine_temperature_system_failure", 12},
            {"nab_nyc_taxi", 48}};

static struct nov_quality offline(const struct nov_set *s, const svs_rows *rows) {
    const svs_rows test = nov_rows(s, s->train, s->n - s->train);
    double *surprise = malloc((size_t)test.n * sizeof *surprise);
    svs_novelty_model *m = NULL;
    svs_novelty_options o;
    svs_error err;
    svs_novelty_options_default(&o);
    if (svs_novelty_train(rows, NULL, &o, &m, &err) != SVS_OK ||
        svs_novelty_score(m, &test, 0, test.n, NULL, surprise, &err) != SVS_OK)
        bench_die(err.text);
    const struct nov_quality q = nov_judge(surprise, s->y + s->train, test.n);
    svs_novelty_free(&m);
    free(surprise);
    return q;
}

struct streamed {
    struct nov_quality quality;
    int64_t alerts, hits; /* in the test rows; opened at an anomalous row */
    double quiet;         /* share of the normal test rows with p <= 0.001 */
};

static struct streamed streaming(const struct nov_set *s) {
    const struct svi_detector_options o = detector_defaults(s->d);
    const int64_t count = s->n - s->train;
    double *surprise = malloc((size_t)count * sizeof *surprise);
    struct streamed r = {.alerts = 0};
    int64_t normal = 0;
    struct feed f;
    feed_open(&f, &o, 0);
    for (int64_t i = 0; i < s->n; i++) {
        const bool opened = feed_sample(&f, s->x + i * s->d, (double)i) == SVI_ALERT_OPEN;
        if (i < s->train)
            continue;
        surprise[i - s->train] = f.judgement.surprise;
        r.alerts += opened;
        r.hits += opened && s->y[i];
        normal += !s->y[i];
        r.quiet += !s->y[i] && f.judgement.novel;
    }
    r.quiet /= (double)normal;
    r.quality = nov_judge(surprise, s->y + s->train, count);
    svi_detector_free(&f.detector);
    free(surprise);
    return r;
}

/* What the peers are given: at most 3000 training rows; LIBSVM with its own defaults for nu, 0.5, and gamma,
 * 1 / d. */
static struct nov_quality libsvm_defaults(struct nov_set *s, const char *folder, const char *name) {
    const svs_rows test = nov_rows(s, s->train, s->n - s->train);
    double *value = malloc((size_t)test.n * sizeof *value);
    struct libsvm peer;
    int64_t *order = nov_permutation(s->train, 9), count = s->train < 3000 ? s->train : 3000;
    nov_standardise(s);
    double *some = malloc((size_t)(count * s->d) * sizeof *some);
    for (int64_t i = 0; i < count; i++)
        memcpy(some + i * s->d, s->x + order[i] * s->d, (size_t)s->d * sizeof *some);
    const svs_rows rows = {.n = count, .d = s->d, .dense = some, .stride = s->d};
    libsvm_open(&peer, &rows);
    libsvm_train(&peer, 1.0 / s->d, 0.5, 1e-3);
    libsvm_score(&peer, &test, value);
    const struct nov_quality q = nov_judge(value, s->y + s->train, test.n);
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *to = folder ? fopen(path, "wb") : NULL;
    if (to) {
        const int64_t head[3] = {count, test.n, s->d};
        fwrite(head, sizeof *head, 3, to);
        fwrite(some, sizeof *some, (size_t)(count * s->d), to);
        fwrite(test.dense, sizeof *some, (size_t)(test.n * s->d), to);
        fwrite(s->y + s->train, 1, (size_t)test.n, to);
        fclose(to);
    }
    libsvm_close(&peer);
    free(order);
    free(some);
    free(value);
    return q;
}

static void useful(const char *folder) {
    for (size_t k = bench_quick() ? 3 : 0; k < (bench_quick() ? 4 : sizeof sets / sizeof *sets); k++) {
        struct nov_set s;
        if (!nov_load(&s, sets[k].name, sets[k].lags)) {
            printf("%s SKIPPED: not in the data folder\n", sets[k].name);
            continue;
        }
        const svs_rows all = nov_rows(&s, 0, s.train);
        const struct nov_quality ours = offline(&s, &all);
        const struct streamed stream = streaming(&s);
        const struct nov_quality svm = libsvm_defaults(&s, folder, sets[k].name);
        printf("%s %d %.4f %.4f %.4f %.4f %lld %lld %.5f %.4f %.4f\n", sets[k].name, sets[k].lags, ours.auc,
               ours.precision, stream.quality.auc, stream.quality.precision, (long long)stream.alerts,
               (long long)stream.hits, stream.quiet, svm.auc, svm.precision);
        fflush(stdout);
        nov_free(&s);
    }
}

/* int64 n, train, d; x as n x d doubles; n bytes of labels. */
static void leave_rows(const struct nov_set *s, const char *folder, const char *name) {
    const int64_t head[3] = {s->n, s->train, s->d};
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *to = fopen(path, "wb");
    if (!to || fwrite(head, sizeof *head, 3, to) != 3 ||
        fwrite(s->x, sizeof *s->x, (size_t)(s->n * s->d), to) != (size_t)(s->n * s->d) ||
        fwrite(s->y, 1, (size_t)s->n, to) != (size_t)s->n || fclose(to) != 0)
        bench_die("the rows of a set cannot be written");
}

static void split_rows(const char *folder) {
    for (size_t k = 0; k < sizeof sets / sizeof *sets; k++) {
        struct nov_set s;
        if (!nov_load(&s, sets[k].name, sets[k].lags))
            continue;
        const svs_rows all = nov_rows(&s, 0, s.train);
        printf("%s %lld %.4f\n", sets[k].name, (long long)(s.n - s.train), offline(&s, &all).auc);
        fflush(stdout);
        leave_rows(&s, folder, sets[k].name);
        nov_free(&s);
    }
}

/* ---- 4. honest */

#define N     bench_pick(10000, 200000, 200000)
#define START 4000

static double uniform(struct svi_random *r) {
    return ((double)(svi_random_next(r) >> 11) + 0.5) * 0x1p-53;
}

static double gauss(struct svi_random *r) {
    return sqrt(-2 * log(uniform(r))) * cos(6.283185307179586 * uniform(r));
}

enum law { NORMAL, CLUSTERS, STUDENT, LOGNORMAL, CUBE, CURVE, LAWS };
static const char *const laws[] = {"normal",    "3 clusters",       "Student t(2)",
                                   "lognormal", "unit cube (d 20)", "circle with noise (d 2)"};

static int dimension(enum law law) {
    return law == CUBE ? 20 : law == CURVE ? 2 : 5;
}

static void draw(enum law law, struct svi_random *r, double *x) {
    const int d = dimension(law), cluster = (int)svi_random_below(r, 3);
    const double turn = 6.283185307179586 * uniform(r);
    for (int j = 0; j < d; j++) {
        const double g = gauss(r);
        if (law == STUDENT)
            x[j] = g / sqrt(-log(uniform(r)));
        else if (law == LOGNORMAL)
            x[j] = exp(g);
        else if (law == CUBE)
            x[j] = uniform(r);
        else if (law == CURVE)
            x[j] = (j ? sin(turn) : cos(turn)) + 0.05 * g;
        else
            x[j] = law == CLUSTERS ? (j % 3 == cluster ? 6 : 0) + g * (1 + cluster) : g;
    }
}

static void promise(enum law law, int fosvm) {
    static const double levels[] = {0.1, 0.01, 0.001};
    struct svi_detector_options o = detector_defaults(dimension(law));
    struct svi_random random = {41 + (uint64_t)law};
    double counts[2][3] = {{0}}, x[20];
    struct feed f;
    o.model.fosvm = fosvm;
    feed_open(&f, &o, 0);
    for (int t = 0; t < N; t++) {
        draw(law, &random, x);
        feed_sample(&f, x, t);
        for (int a = 0; a < 3; a++) {
            counts[0][a] += f.judgement.p <= levels[a];
            counts[1][a] += t >= START && f.judgement.p <= levels[a];
        }
    }
    for (int part = 0; part < 2; part++) {
        const double n = part ? N - START : N;
        printf("  %-24s %6d %-6s", part ? "" : laws[law], fosvm, part ? "later" : "all");
        for (int a = 0; a < 3; a++) {
            const double share = counts[part][a] / n, own = levels[a] * (1 - levels[a]);
            const double error = sqrt(own / n + own / (n / 2));
            printf(" %9.6f%s", share,
                   share > levels[a] + 2 * error ? " HIGH"
                   : share < levels[a] / 2       ? " LOW "
                                                 : "     ");
        }
        printf("\n");
    }
    for (int a = 0; a < 2; a++)
        bench_row((struct bench_row){.ours = counts[0][a] / N,
                                     .bar = bench_quick() ? NULL
                                            : a           ? "<= 0.0108"
                                                          : "<= 0.103",
                                     .exact = true},
                  "share of p <= %g, exchangeable rows, %s, fosvm%d", levels[a], laws[law], fosvm);
    svi_detector_free(&f.detector);
}

static void honest(void) {
    printf(
        "Share of p <= a among %d exchangeable normal samples, all and without the first %d (at most a + 2\n"
        "standard errors: of the samples, and of the %d calibration scores that they are held against)\n"
        "  %-24s %6s %-6s %-14s %-14s %-14s\n",
        N, START, N / 2, "law", "fosvm", "", " a = 0.1", " a = 0.01", " a = 0.001");
    for (int law = 0; law < bench_pick(1, LAWS, LAWS); law++)
        promise(law, 1);
    if (bench_quick())
        return;
    promise(NORMAL, 2);
    promise(CLUSTERS, 2);
}

/* Disturbances of `length` samples, moved by `shift` deviations in each feature, make up `share` of the
 * stream. */
static void false_alerts(enum law law, double share, int length, double shift) {
    const int d = dimension(law), streams = bench_pick(1, 2, 5);
    double sum = 0, alerts = 0, wrong = 0, begun = 0, seen = 0;
    for (int k = 0; k < streams; k++) {
        const struct svi_detector_options o = detector_defaults(d);
        struct svi_random random = {100 + (uint64_t)k};
        int64_t opened = 0, failed = 0, left = 0;
        bool found = false;
        double x[20];
        struct feed f;
        feed_open(&f, &o, 0.1);
        for (int t = 0; t < 60000; t++) {
            draw(law, &random, x);
            if (left > 0)
                left--;
            else if (t > START && uniform(&random) < share / length) {
                left = length;
                begun++;
                found = false;
            }
            for (int j = 0; j < d && left > 0; j++)
                x[j] += shift;
            if (feed_sample(&f, x, t) == SVI_ALERT_OPEN) {
                opened++;
                failed += left == 0;
            }
            if (left > 0 && f.alert.open && !found) {
                seen++;
                found = true;
            }
        }
        sum += opened ? (double)failed / (double)opened : 0;
        alerts += (double)opened;
        wrong += (double)failed;
        svi_detector_free(&f.detector);
    }
    printf("  %-24s %8.3f %6d %6.0f %10.4f %10.4f %8.0f %8.0f %8.3f\n", laws[law], share, length, shift,
           sum / streams, alerts > 0 ? wrong / alerts : 0, alerts, begun, begun > 0 ? seen / begun : 0);
    bench_row((struct bench_row){.ours = alerts > 0 ? wrong / alerts : 0, .bar = "<= 0.1", .exact = true},
              "alert.fdr 0.1, false among the alerts, %s, %g of %d rows", laws[law], share, length);
    fflush(stdout);
}

static void discoveries(void) {
    printf("\nalert.fdr 0.1: false among the alerts, mean over 5 streams of 60,000 samples, and of all "
           "together; how\n"
           "many of the disturbances were found\n  %-24s %8s %6s %6s %10s %10s %8s %8s %8s\n",
           "law", "share", "length", "shift", "mean", "together", "alerts", "begun", "found");
    for (int law = 0; law < LAWS; law += 1 + (law == CLUSTERS)) {
        const double shift = law == CUBE ? 1 : law == LOGNORMAL ? 40 : law == CURVE ? 3 : 12;
        false_alerts(law, 0.001, 1, shift);
        false_alerts(law, 0.01, 1, shift);
        false_alerts(law, 0.01, 20, shift);
    }
}

/* ---- 5. fast in the stream */

static void rate(const char *what, const struct nov_set *s, const struct svi_detector_options *o) {
    double best = INFINITY, judge = INFINITY;
    struct svi_detector_health health;
    for (int k = 0; k < 3; k++) {
        struct feed f;
        feed_open(&f, o, 0);
        double start = bench_now();
        for (int64_t i = 0; i < s->n; i++)
            feed_sample(&f, s->x + i * s->d, (double)i);
        best = fmin(best, bench_now() - start);
        start = bench_now();
        for (int64_t i = 0; i < s->n; i++)
            svi_detector_assess(f.detector, s->x + i * s->d, &f.judgement);
        judge = fmin(judge, bench_now() - start);
        svi_detector_health(f.detector, &health);
        svi_detector_free(&f.detector);
    }
    printf("  %-34s %10.0f %10.0f %6d %8lld %8lld\n", what, (double)s->n / best, (double)s->n / judge,
           health.points, (long long)health.joined, (long long)health.refreshes);
    bench_row((struct bench_row){.ours = (double)s->n / best, .unit = "/s", .bar = ">= 100000"},
              "detector, policy and alert, d %d, %s", s->d, what);
    fflush(stdout);
}

static void fast(void) {
    struct nov_set s;
    printf("\nSamples a second on one core, smd_machine-1-6 (d 38), max 200: score + p + policy + alert, and "
           "the\n"
           "judgement alone with a full active set (asked: 100,000)\n  %-34s %10s %10s %6s %8s %8s\n",
           "options", "samples/s", "judged/s", "points", "joined", "renewals");
    if (!nov_load(&s, "smd_machine-1-6", 1)) {
        printf("  SKIPPED: not in the data folder\n");
        return;
    }
    struct svi_detector_options o = detector_defaults(s.d);
    rate("defaults (laplacian, 2 members)", &s, &o);
    o.learn = SVI_LEARN_ALL;
    rate("learn all", &s, &o);
    o.learn = SVI_LEARN_NORMAL;
    o.model.kernel = SVS_NOVELTY_RBF;
    rate("rbf, auto (4 members)", &s, &o);
    o.model.gamma_rule = SVS_GAMMA_MEDIAN;
    rate("rbf, median (1 member)", &s, &o);
    o = detector_defaults(s.d);
    o.model.fosvm = 2;
    rate("fosvm2", &s, &o);
    nov_free(&s);
}

int main(int argc, char **argv) {
    const char *only = argc > 1 ? argv[1] : "";
    if (strcmp(only, "useful") == 0)
        useful(argc > 2 ? argv[2] : NULL);
    if (strcmp(only, "rows") == 0 && argc > 2)
        split_rows(argv[2]);
    if (!*only || strcmp(only, "honest") == 0)
        honest();
    if ((!*only && !bench_quick()) || strcmp(only, "fdr") == 0)
        discoveries();
    if ((!*only && !bench_quick()) || strcmp(only, "fast") == 0)
        fast();
    return bench_end();
}
