/* A year of the history of svmstream-http: its size on disk, and what /history of a day and of a year takes.
 *
 *   bench_http_history [STREAMS DAYS FILE]   10 365; FILE stays
 *
 * Points enter through the store, as they do in the adapter. They come in the order of time, all
 * streams in turn, and old ones are pruned on the way. The year has one point every ten minutes.
 * After it come one a minute for a week, one every ten seconds for six hours, and one a second for
 * ten minutes. Each has all figures, with lowest and highest, as though 600 (60, 10) measurements
 * were in it: the file is then as large as it gets. Each stream opens five alerts a day, of four
 * events each, with three histories of 120 noisy values. */
#include <sys/stat.h>
#include <unistd.h>

#include "../../adapters/http/history_answer.h"
#include "base/clock.h"
#include "base/random.h"
#include "bench/bench.h"
#include "wire/pack.h"

#define BEGIN      1760000000
#define ALERTS_DAY 5
#define REPEATS    21
#define VALUES     120

struct year {
    struct history_store h;
    struct svi_random r;
    int streams;
    int64_t end;
    uint64_t number[64];
    double answers[REPEATS];
};

static double uniform(struct year *y) {
    return (double)(svi_random_next(&y->r) >> 11) * 0x1p-53;
}

static void good(int rc, const char *what) {
    if (rc != SQLITE_OK)
        bench_die(what);
}

static void name_of(int stream, char out[32]) {
    snprintf(out, 32, "plant-%d", stream);
}

static void add_point(struct year *y, int stream, int64_t t, uint32_t weight) {
    struct history_point p = {.t = t};
    char name[32];
    for (int f = 0; f < HISTORY_FIGURE_COUNT; f++) {
        struct history_cell *c = &p.cell[f];
        c->low = uniform(y);
        c->value = c->low + 0.1 * uniform(y);
        c->high = c->value + 0.1 * uniform(y);
        c->weight = weight;
    }
    name_of(stream, name);
    good(http_history_store_add(&y->h, name, &p, "accuracy"), "add");
}

static void add_alert(struct year *y, int stream, int64_t t) {
    static const char *const states[] = {"open", "update", "update", "close"};
    double times[VALUES], values[VALUES];
    char name[32];
    struct svi_bytes event = {0};
    name_of(stream, name);
    for (int i = 0; i < 4; i++) {
        struct svi_pack p;
        event.size = 0;
        svi_pack_begin(&p, &event);
        const struct svi_open_map m = svi_pack_open(&p);
        svi_put_text(&p, "stream", name);
        svi_put_uint(&p, "epoch", 1);
        svi_put_real(&p, "ts", (double)(t + 60 * i));
        svi_put_uint(&p, "number", ++y->number[stream]);
        svi_put_int(&p, "alert", (int64_t)(y->number[stream] + 3) / 4);
        svi_put_text(&p, "state", states[i]);
        svi_put_text(&p, "kind", "novelty");
        svi_put_text(&p, "text", "warning: temp_C 72.1 (normally 24 to 37), rising for 26 min");
        svi_put_array(&p, "top", 3);
        for (int k = 0; k < 3; k++) {
            svi_pack_map(&p, 3);
            svi_put_text(&p, "feature", k == 0 ? "temp_C" : k == 1 ? "motor_A" : "flow_m3h");
            svi_put_real(&p, "value", uniform(y));
            svi_put_real(&p, "contribution", uniform(y));
        }
        if (i == 0)
            svi_put_array(&p, "history", 3);
        for (int k = 0; i == 0 && k < 3; k++) {
            for (int n = 0; n < VALUES; n++) {
                times[n] = (double)(t - 60 * (VALUES - n)) + uniform(y);
                values[n] = uniform(y);
            }
            svi_pack_map(&p, 3);
            svi_put_text(&p, "feature", "temp_C");
            svi_put_doubles(&p, "times", times, VALUES);
            svi_pack_key(&p, "values");
            svi_pack_floats(&p, values, VALUES);
        }
        svi_pack_close(&p, m);
        if (svi_pack_end(&p) != SVS_OK)
            bench_die("memory");
        good(http_history_alerts_add(&y->h, name, event.data, event.size), "alert");
    }
    svi_bytes_clear(&event);
}

/* All streams from one time to another; a commit and a removal of old rows now and then. */
static void write_span(struct year *y, int64_t from, int64_t to, int64_t step) {
    int64_t alerts = from;
    bool more;
    int turn = 0;
    for (int64_t t = from; t < to; t += step) {
        for (int s = 0; s < y->streams; s++)
            add_point(y, s, t, (uint32_t)step);
        for (; alerts <= t; alerts += 86400 / ALERTS_DAY)
            for (int s = 0; s < y->streams; s++)
                add_alert(y, s, alerts);
        if (++turn % 6 == 0) {
            good(http_history_store_commit(&y->h, false), "commit");
            good(http_history_store_prune(&y->h, (double)t, &more), "prune");
        }
    }
    good(http_history_store_commit(&y->h, false), "commit");
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, z = *(const double *)b;
    return x < z ? -1 : x > z;
}

/* Seconds of this thread: the file is in memory after its first answers, so nothing waits for a disk. */
static double processor(void) {
    return svi_clock_seconds(CLOCK_THREAD_CPUTIME_ID);
}

/* Median and largest time of an answer, in milliseconds. */
static void ask(struct year *y, const char *what, double seconds, bool alerts) {
    size_t bytes = 0;
    for (int i = 0; i < REPEATS; i++) {
        struct history_question q = {
            .alerts = alerts, .from = (double)y->end - seconds, .to = (double)y->end, .now = (double)y->end};
        struct history_answer a;
        name_of(i % y->streams, q.stream);
        const double start = processor();
        good(http_history_answer(&y->h, &q, &a), "answer");
        y->answers[i] = 1000 * (processor() - start);
        if (a.status != 200)
            bench_die(a.detail);
        bytes = a.body.size;
        svi_bytes_clear(&a.body);
    }
    qsort(y->answers, REPEATS, sizeof *y->answers, by_size);
    printf("%-22s %8.1f %8.1f %8.0f kB\n", what, y->answers[REPEATS / 2], y->answers[REPEATS - 1],
           (double)bytes / 1000);
    bench_row((struct bench_row){.ours = y->answers[REPEATS / 2],
                                 .unit = "ms",
                                 .bar = seconds == 86400 ? "<= 50" : NULL},
              "history of svmstream-http: %s", what);
}

int main(int argc, char **argv) {
    struct year *y = calloc(1, sizeof *y);
    const double days = argc > 2 ? atof(argv[2]) : bench_pick(3, 365, 365);
    char file[256];
    svs_error err;
    struct stat st;
    bool more = true;
    if (!y)
        bench_die("memory");
    y->streams = argc > 1 ? atoi(argv[1]) : bench_pick(1, 4, 10);
    y->end = BEGIN + (int64_t)(days * 86400);
    if (argc > 3)
        snprintf(file, sizeof file, "%s", argv[3]);
    else
        snprintf(file, sizeof file, "/tmp/history-%d", (int)getpid());
    if (http_history_store_open(&y->h, file, 0, &err) != HISTORY_OPENED)
        bench_die(err.text);
    const double start = svi_monotonic();
    const int64_t week = y->end - 7 * 86400, hours = y->end - 6 * 3600, minutes = y->end - 600;
    write_span(y, BEGIN, week, 600);
    write_span(y, week, hours, 60);
    write_span(y, hours, minutes, 10);
    write_span(y, minutes, y->end, 1);
    while (more)
        good(http_history_store_prune(&y->h, (double)y->end, &more), "prune");
    const double took = svi_monotonic() - start;
    http_history_store_close(&y->h);
    if (stat(file, &st) != 0)
        bench_die(file);
    printf("%d streams, %.0f days, %d figures, %d alerts a day each: %.1f MB (bar: 500), written in %.0f s\n",
           y->streams, days, HISTORY_FIGURE_COUNT, ALERTS_DAY, (double)st.st_size / 1e6, took);
    if (argc <= 1)
        bench_row((struct bench_row){.ours = (double)st.st_size / 1e6,
                                     .unit = "MB",
                                     .bar = y->streams == 10 ? "<= 500" : NULL},
                  "history of svmstream-http, %d streams, %.0f days: file", y->streams, days);
    if (http_history_store_open(&y->h, file, 0, &err) != HISTORY_OPENED)
        bench_die(err.text);
    printf("%-22s %8s %8s\n", "ms, of 21 answers", "median", "longest");
    ask(y, "ten minutes", 600, false);
    ask(y, "a day", 86400, false);
    ask(y, "a week", 7 * 86400, false);
    ask(y, "a year", 364 * 86400, false);
    ask(y, "alerts of a week", 7 * 86400, true);
    http_history_store_close(&y->h);
    if (argc <= 3)
        unlink(file);
    free(y);
    return bench_end();
}
