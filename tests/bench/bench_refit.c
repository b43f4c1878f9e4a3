/* Refits of a sliding window: warm against cold after a tenth of it has changed, and what a running refit
 * costs the learning. */
#include "bench/sets.h"
#include "engine/engine.h"
#include "base/worker.h"

#define WINDOW 20000

static void nobody(void *user, const struct svi_event *event) {
    (void)user;
    (void)event;
}

static svi_engine *open_engine(const char *refit, const char *loss, const char *every) {
    struct svi_settings s;
    svs_error err = {0};
    svi_settings_default(&s);
    s.method = SVI_METHOD_ALSVM;
    const char *const pairs[][2] = {{"window", "20000"},      {"scores", "none"}, {"publish.every", "0"},
                                    {"publish.seconds", "0"}, {"refit", refit},   {"refit.loss", loss},
                                    {"refit.every", every}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (svi_settings_set(&s, pairs[i][0], pairs[i][1], &err) != SVS_OK)
            bench_die(err.text);
    svi_engine *e = svi_engine_new(&s, 1, nobody, NULL, &err);
    if (!e)
        bench_die(err.text);
    return e;
}

static void give(svi_engine *e, const struct bench_set *set, int64_t i) {
    struct svi_shape *shape = &svi_engine_schema(e)->shape;
    const svs_rows *r = &set->table.examples.rows;
    svs_rows_copy(r, i % r->n, shape->row);
    struct svi_message m = {.has_x = true,
                            .kind = SVI_DENSE,
                            .d = r->d,
                            .x = shape->row,
                            .id = svs_none(),
                            .y = svs_int((int64_t)set->y[i % r->n]),
                            .ts = NAN,
                            .weight = 1,
                            .stream = svs_none(),
                            .src = svs_none(),
                            .n = -1};
    svi_engine_message(e, &m, NULL, 0, 1, NULL);
}

static void run(svi_engine *e, struct svi_refit *job) {
    svi_refit_run(job);
    if (job->error.code != SVS_OK)
        bench_die(job->error.text);
    svi_engine_refit_give(e);
}

/* The same window refitted by an engine that knows the one before, and by one that does not. */
static void warm_and_cold(const char *name, const struct bench_set *set, const char *refit,
                          const char *loss) {
    double cold[5], warm[5], gap = 0;
    for (int round = 0; round < 5; round++) {
        for (int kind = 0; kind < 2; kind++) {
            svi_engine *e = open_engine(refit, loss, "1000000");
            struct svi_refit *job;
            const int64_t last = WINDOW + WINDOW / 10;
            for (int64_t i = 0; i < last; i++) {
                give(e, set, i);
                if (kind == 1 && i == WINDOW - 1) {
                    svi_engine_refit(e, NULL);
                    run(e, svi_engine_refit_take(e));
                }
            }
            svi_engine_refit(e, NULL);
            job = svi_engine_refit_take(e);
            run(e, job);
            (kind ? warm : cold)[round] = job->result.milliseconds;
            gap = job->result.gap / job->result.objective;
            svi_engine_free(&e);
        }
    }
    double c = bench_quantile(cold, 5, 0.5), w = bench_quantile(warm, 5, 0.5);
    printf("  %-12s refit %-12s loss %s: cold %7.2f ms  warm %7.2f ms  ratio %.2f  (gap %.1e)\n", name, refit,
           loss, c, w, w / c, gap);
    fflush(stdout);
}

static double throughput(const struct bench_set *set, const char *refit, const char *every, int64_t *refits) {
    svs_error err = {0};
    svi_engine *e = open_engine(refit, "l2", every);
    svi_worker *w = svi_worker_new(&svi_refit_task, &err);
    if (!w)
        bench_die(err.text);
    for (int64_t i = 0; i < WINDOW; i++)
        give(e, set, i);
    double start = bench_now();
    int64_t i = WINDOW;
    for (; bench_now() - start < 1.5; i++) {
        give(e, set, i);
        if (i % 64 != 0)
            continue;
        if (svi_worker_busy(w) && svi_worker_collect(w)) {
            svi_engine_refit_give(e);
            ++*refits;
        }
        struct svi_refit *job = svi_worker_busy(w) ? NULL : svi_engine_refit_take(e);
        if (job)
            svi_worker_submit(w, job);
    }
    double rate = (double)(i - WINDOW) / (bench_now() - start);
    svi_worker_free(&w);
    svi_engine_free(&e);
    return rate;
}

static void cost(const char *name, const struct bench_set *set) {
    double ratio[5];
    int64_t refits = 0, none = 0;
    for (int k = 0; k < 5; k++) {
        double without = throughput(set, "none", "0", &none), with = throughput(set, "auto", "2000", &refits);
        ratio[k] = with / without;
    }
    printf("  %-12s learning beside refits of every 2000 samples: %.2f of the rate without (%lld refits)\n",
           name, bench_quantile(ratio, 5, 0.5), (long long)refits);
    fflush(stdout);
}

int main(void) {
    static const char *const names[] = {"ijcnn1", "covtype15k", "elec2.csv.gz"};
    printf("window %d, a tenth of it new, tolerance 1e-3, standardised columns\n", WINDOW);
    for (int k = 0; k < 3; k++) {
        struct bench_set set;
        if (!bench_load(&set, names[k], 0)) {
            printf("  %s SKIPPED: not in the data folder\n", names[k]);
            continue;
        }
        static const char *const ways[][2] = {
            {"auto", "l2"}, {"auto", "l1"}, {"alm", "l2"}, {"alm", "l1"}, {"dcd", "l1"}};
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
            warm_and_cold(names[k], &set, ways[i][0], ways[i][1]);
        cost(names[k], &set);
        bench_unload(&set);
    }
    return 0;
}
