/* Refits of a sliding window: warm against cold after a part of it has changed, and what a running refit
 * costs the learning. */
#include "bench/sets.h"
#include "fleet/fleet.h"
#include "base/worker.h"

#define WINDOW 20000
#define ROUNDS 41 /* at most */

static void nobody(void *user, const struct svi_event *event) {
    (void)user;
    (void)event;
}

static struct svi_settings set_up(int window, const char *refit, const char *loss, const char *every) {
    struct svi_settings s;
    svs_error err = {0};
    char size[16];
    snprintf(size, sizeof size, "%d", window);
    svi_settings_default(&s);
    s.method = SVI_METHOD_ALSVM;
    const char *const pairs[][2] = {{"window", size},         {"scores", "none"}, {"publish.every", "0"},
                                    {"publish.seconds", "0"}, {"refit", refit},   {"refit.loss", loss},
                                    {"refit.every", every}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (svi_settings_set(&s, pairs[i][0], pairs[i][1], &err) != SVS_OK)
            bench_die(err.text);
    return s;
}

static svi_stream *open_engine(int window, const char *refit, const char *loss, const char *every) {
    const struct svi_settings s = set_up(window, refit, loss, every);
    svs_error err = {0};
    svi_stream *e = svi_stream_new(&s, 1, nobody, NULL, &err);
    if (!e)
        bench_die(err.text);
    return e;
}

static void give(svi_stream *e, const struct bench_set *set, int64_t i) {
    struct svi_shape *shape = &svi_engine_schema(svi_stream_root(e))->shape;
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
    svi_stream_message(e, &m, NULL, 0, 1, NULL);
}

struct part {
    int window, came, rounds;
    const char *refit, *loss;
};

/* Of one refit: milliseconds of the whole job and of the solution alone, and the solver's steps. */
struct took {
    double whole[ROUNDS], solving[ROUNDS];
    int64_t steps;
};

/* A copy in memory of its own. */
static void copy_snapshot(struct svi_snapshot *to, const struct svi_snapshot *from) {
    const size_t n = (size_t)from->count, d = (size_t)from->d;
    struct svi_snapshot own = *to;
    svs_error err;
    if (svi_snapshot_reserve(&own, from->count, from->d, &err) != SVS_OK)
        bench_die(err.text);
    *to = *from;
    memcpy(to->capacity, own.capacity, sizeof own.capacity);
    to->rows = memcpy(own.rows, from->rows, n * (size_t)from->stride * sizeof *own.rows);
    to->label = memcpy(own.label, from->label, n * sizeof *own.label);
    to->weight = memcpy(own.weight, from->weight, n * sizeof *own.weight);
    to->number = memcpy(own.number, from->number, n * sizeof *own.number);
    to->mean = memcpy(own.mean, from->mean, d * sizeof *own.mean);
    to->inverse = memcpy(own.inverse, from->inverse, d * sizeof *own.inverse);
}

static void take_snapshot(svi_stream *e, struct svi_snapshot *to) {
    svi_engine_refit(svi_stream_root(e), NULL);
    struct svi_refit *job = svi_engine_refit_take(svi_stream_root(e));
    copy_snapshot(to, &job->snapshot);
    job->snapshot.count = 0; /* nothing to do: it fails */
    svi_refit_run(job);
    svi_engine_refit_give(svi_stream_root(e));
}

static void run(struct svi_refit *job, const struct svi_snapshot *of, struct took *took, int round) {
    copy_snapshot(&job->snapshot, of);
    const double start = bench_now();
    svi_refit_run(job);
    took->whole[round] = 1e3 * (bench_now() - start);
    if (job->error.code != SVS_OK)
        bench_die(job->error.text);
    took->solving[round] = job->result.milliseconds;
    took->steps = job->result.iterations;
}

/* The same window refitted by one who knows the window before, and by one who does not. */
static void warm_and_cold(const char *name, struct svi_snapshot at[2], const struct part *part) {
    const struct svi_settings s = set_up(part->window, part->refit, part->loss, "1000000");
    struct took before, cold, warm;
    svs_error err;
    for (int round = 0; round < part->rounds; round++) {
        struct svi_refit *one = svi_refit_new(&s, &err), *other = svi_refit_new(&s, &err);
        if (!one || !other)
            bench_die(err.text);
        run(one, &at[1], &cold, round);
        run(other, &at[0], &before, round);
        run(other, &at[1], &warm, round);
        svi_refit_free(&one);
        svi_refit_free(&other);
    }
    const double c = bench_quantile(cold.solving, part->rounds, 0.5);
    const double w = bench_quantile(warm.solving, part->rounds, 0.5);
    const double whole_c = bench_quantile(cold.whole, part->rounds, 0.5);
    const double whole_w = bench_quantile(warm.whole, part->rounds, 0.5);
    printf(
        "  %-12s W %5d new %5d %-4s %s: cold %7.2f ms  warm %7.2f ms  ratio %.2f   steps %2lld %2lld   whole "
        "job %7.2f %7.2f  %.2f\n",
        name, part->window, part->came, part->refit, part->loss, c, w, w / c, (long long)cold.steps,
        (long long)warm.steps, whole_c, whole_w, whole_w / whole_c);
    if (strcmp(part->refit, "auto") == 0 && strcmp(part->loss, "l2") == 0)
        bench_row(
            (struct bench_row){.ours = whole_w, .peer = whole_c, .unit = "ms", .ratio = whole_w / whole_c},
            "warm refit / cold, %s, %d rows, %d new", name, part->window, part->came);
}

static void slide(const char *name, const struct bench_set *set, int window, int came) {
    static const char *const ways[][2] = {
        {"auto", "l2"}, {"auto", "l1"}, {"alm", "l2"}, {"alm", "l1"}, {"dcd", "l1"}};
    struct svi_snapshot at[2] = {0};
    svi_stream *e = open_engine(window, "auto", "l2", "1000000");
    int64_t i = 0;
    for (int k = 0; k < 2; k++) {
        for (; i < window + k * came; i++)
            give(e, set, i);
        take_snapshot(e, &at[k]);
    }
    const size_t count = came == window / 10 ? sizeof ways / sizeof *ways : 1;
    for (size_t w = 0; w < count; w++)
        warm_and_cold(name, at,
                      &(struct part){window, came, w < 2 ? bench_pick(1, 15, ROUNDS) : bench_pick(1, 3, 5),
                                     ways[w][0], ways[w][1]});
    for (int k = 0; k < 2; k++)
        svi_snapshot_clear(&at[k]);
    svi_stream_free(&e);
}

static double throughput(const struct bench_set *set, const char *refit, const char *every, int64_t *refits) {
    svs_error err = {0};
    svi_stream *e = open_engine(WINDOW, refit, "l2", every);
    svi_worker *w = svi_worker_new(&svi_refit_task, &err);
    if (!w)
        bench_die(err.text);
    for (int64_t i = 0; i < WINDOW; i++)
        give(e, set, i);
    double start = bench_now();
    int64_t i = WINDOW;
    for (; bench_now() - start < (bench_quick() ? 0.2 : 1); i++) {
        give(e, set, i);
        if (i % 64 != 0)
            continue;
        if (svi_worker_busy(w) && svi_worker_collect(w)) {
            svi_engine_refit_give(svi_stream_root(e));
            ++*refits;
        }
        struct svi_refit *job = svi_worker_busy(w) ? NULL : svi_engine_refit_take(svi_stream_root(e));
        if (job)
            svi_worker_submit(w, job);
    }
    double rate = (double)(i - WINDOW) / (bench_now() - start);
    svi_worker_free(&w);
    svi_stream_free(&e);
    return rate;
}

static void cost(const char *name, const struct bench_set *set) {
    double ratio[5];
    int64_t refits = 0, none = 0;
    const int rounds = bench_pick(1, 3, 5);
    for (int k = 0; k < rounds; k++) {
        double without = throughput(set, "none", "0", &none), with = throughput(set, "auto", "2000", &refits);
        ratio[k] = with / without;
    }
    printf("  %-12s learning beside refits of every 2000 samples: %.2f of the rate without (%lld refits)\n",
           name, bench_quantile(ratio, rounds, 0.5), (long long)refits);
    bench_row((struct bench_row){.ours = bench_quantile(ratio, rounds, 0.5)},
              "learning with refits in the background / without, %s", name);
}

int main(void) {
    static const struct {
        const char *name;
        int window;
    } sets[] = {{"ijcnn1", 20000}, {"elec2.csv.gz", 20000}, {"covtype15k", 10000}};
    printf("tolerance 1e-3, standardised columns; medians of %d; milliseconds of the solution\n",
           bench_pick(1, 15, ROUNDS));
    for (size_t k = bench_quick() ? 2 : 0; k < sizeof sets / sizeof *sets; k++) {
        struct bench_set set;
        if (!bench_load(&set, sets[k].name, 0)) {
            printf("  %s SKIPPED: not in the data folder\n", sets[k].name);
            continue;
        }
        const int window = sets[k].window, came[] = {window / 100, window / 10, window / 2, window};
        for (size_t i = 0; i < (size_t)bench_pick(1, 4, 4); i++)
            slide(sets[k].name, &set, window, came[i]);
        cost(sets[k].name, &set);
        bench_unload(&set);
    }
    return bench_end();
}
