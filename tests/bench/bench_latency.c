/* How long a sample takes to its score at half the highest rate, with a journal (at-least-once): from when it
 * was due to be sent until the score event is with a subscriber. Beside it what a bare echo takes for its
 * acknowledgement at the same rate, which is the machine's own part, and what svmstream says of itself in its
 * stats. Then the stalls of the stream's thread, by the clock of that thread, which what else the machine
 * does disturbs little: an engine alone, a sample at a time, and its checkpoints.
 *
 * The first run finds the rate; the second begins with nothing, so that it has all first times in it. All
 * processes run with SCHED_RR where that is allowed: beside other work the bare echo has a p99 of 5 to 8 ms.
 */
#include <math.h>
#include <sched.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "bench_acked.h"
#include "config/settings.h"
#include "fleet/fleet.h"
#include "store/checkpoint_file.h"
#include "wire/envelope.h"

enum { DIFFERENT = 4096, FLAGS = 24, METHODS = 2, SIZES = 3, HEARD = 64 };

#define TICK   100000 /* ns between looks */
#define WINDOW 1000   /* on the way, flat out */

/* Samples flat out, and seconds at a steady rate. */
static int64_t flat_out(void) {
    return bench_pick(4000, 40000, 40000);
}

static double seconds(void) {
    return bench_pick(1, 3, 5);
}

static const char *const methods[METHODS] = {"auto", "alsvm"};
static const int sizes[SIZES] = {8, 10, 54};

/* ---- the process */

struct listener {
    void *sub;
    int64_t scores;
    int stats; /* events */
    double p50[HEARD], p99[HEARD];
};

static void listen_to(struct listener *l, void *context, const char *out) {
    int none = 0;
    zmq_msg_t m;
    l->sub = zmq_socket(context, ZMQ_SUB);
    zmq_setsockopt(l->sub, ZMQ_RCVHWM, &none, sizeof none);
    zmq_setsockopt(l->sub, ZMQ_SUBSCRIBE, "score.", 6);
    zmq_setsockopt(l->sub, ZMQ_SUBSCRIBE, "stats.", 6);
    if (zmq_connect(l->sub, out) != 0)
        bench_die("the subscriber cannot connect");
    zmq_msg_init(&m);
    do /* stats: the subscription is in force */
        zmq_msg_recv(&m, l->sub, 0);
    while (zmq_msg_more(&m));
    zmq_msg_close(&m);
}

static double number_in(const void *bytes, size_t size, const char *key) {
    const uint8_t *at = memmem(bytes, size, key, strlen(key));
    uint64_t word;
    double value = NAN;
    if (!at || (at += strlen(key)) + 9 > (const uint8_t *)bytes + size || *at != 0xcb)
        return NAN;
    memcpy(&word, at + 1, sizeof word);
    word = be64toh(word);
    memcpy(&value, &word, sizeof value);
    return value;
}

/* Takes what has come; the lags of scores are put down, where there is room for them. */
static void take_events(struct listener *l, double start, double rate, double *lag) {
    zmq_msg_t m;
    zmq_msg_init(&m);
    for (bool score = false; zmq_msg_recv(&m, l->sub, ZMQ_DONTWAIT) >= 0;) {
        if (zmq_msg_more(&m)) {
            score = *(char *)zmq_msg_data(&m) == 's' && ((char *)zmq_msg_data(&m))[1] == 'c';
            continue;
        }
        if (score && lag)
            lag[l->scores] = bench_now() - start - (double)l->scores / rate;
        l->scores += score;
        if (!score && l->stats < HEARD) {
            l->p50[l->stats] = number_in(zmq_msg_data(&m), zmq_msg_size(&m), "latency_p50");
            l->p99[l->stats] = number_in(zmq_msg_data(&m), zmq_msg_size(&m), "latency_p99");
            l->stats += !isnan(l->p50[l->stats]);
        }
    }
    zmq_msg_close(&m);
}

struct latency_run {
    struct bench_run run;
    struct acked_client client;
    struct listener ear;
    char folder[64];
};

static void latency_begin(struct latency_run *r, const struct acked_stream *stream, const char *method,
                          const char *const *more) {
    const char *flags[FLAGS] = {"--in.mode", "router", "--delivery", "at-least-once", "--method", method};
    int n = 6;
    memset(r, 0, sizeof *r);
    acked_folder(r->folder);
    flags[n++] = "--state.dir";
    flags[n++] = r->folder;
    while (*more && n < FLAGS - 1)
        flags[n++] = *more++;
    bench_run_start(&r->run, flags);
    r->client = acked_open(r->run.in, stream, 0);
    listen_to(&r->ear, r->client.context, r->run.out);
}

static void latency_end(struct latency_run *r) {
    int none = 0;
    zmq_setsockopt(r->ear.sub, ZMQ_LINGER, &none, sizeof none);
    zmq_close(r->ear.sub);
    acked_close(&r->client);
    bench_run_stop(&r->run);
    acked_folder_remove(r->folder);
}

/* Samples a second, scored and acknowledged, flat out; the median of four runs. */
static double highest(const struct acked_stream *stream, const char *method, const char *const *more) {
    struct latency_run r;
    double rate[4];
    latency_begin(&r, stream, method, more);
    for (int i = 0; i < 4; i++) {
        const int64_t end = r.client.next + flat_out() / 4;
        const double start = bench_now();
        while (r.client.taken < end || r.ear.scores < end) {
            while (r.client.next < end && r.client.next - r.client.taken < WINDOW)
                acked_send(&r.client);
            while (r.client.taken < r.client.next && acked_take(&r.client, ZMQ_DONTWAIT))
                ;
            take_events(&r.ear, 0, 1, NULL);
        }
        rate[i] = (double)(flat_out() / 4) / (bench_now() - start);
    }
    latency_end(&r);
    return bench_quantile(rate, 4, 0.5);
}

/* Their pages are there before the first is written. */
static double *lags_new(int64_t count) {
    double *lag = malloc((size_t)count * sizeof *lag);
    for (int64_t i = 0; i < count; i++)
        lag[i] = NAN;
    return lag;
}

/* Returns the 99th percentile, in seconds. */
static double print_lags(double *lag, int count) {
    const double p50 = bench_quantile(lag, count, 0.5);
    printf(" %7.2f %7.2f %7.2f %7.2f", 1e3 * p50, 1e3 * bench_quantile(lag, count, 0.99),
           1e3 * bench_quantile(lag, count, 0.999), 1e3 * lag[count - 1]);
    return bench_quantile(lag, count, 0.99);
}

/* Sends what is due after a pause, and not what becomes due meanwhile: where a send takes as long as the next
 * one is away, nobody would take what comes back. */
static void send_due(struct acked_client *c, double start, double rate, int64_t count) {
    const struct timespec pause = {0, TICK};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    const int64_t due = (int64_t)((bench_now() - start) * rate) + 1;
    while (c->next < count && c->next < due)
        acked_send(c);
}

static double steady(const struct acked_stream *stream, const char *method, double rate,
                     const char *const *more) {
    const int64_t count = (int64_t)(rate * seconds());
    double *lag = lags_new(count);
    struct latency_run r;
    latency_begin(&r, stream, method, more);
    const double start = bench_now();
    while (r.client.taken < count || r.ear.scores < count) {
        send_due(&r.client, start, rate, count);
        take_events(&r.ear, start, rate, lag);
        while (r.client.taken < r.client.next && acked_take(&r.client, ZMQ_DONTWAIT))
            ;
    }
    double *later = malloc((size_t)count * sizeof *later);
    memcpy(later, lag, (size_t)count * sizeof *later);
    print_lags(lag, (int)count);
    printf(" |");
    const double settled = print_lags(later + count / 2, (int)(count - count / 2));
    printf(" | %5.2f %5.2f", 1e3 * bench_quantile(r.ear.p50, r.ear.stats, 0.5),
           1e3 * bench_quantile(r.ear.p99, r.ear.stats, 0.5));
    printf(" | %3.0f %6.2f", bench_ask(&r.run, "status", "checkpoints"),
           bench_ask(&r.run, "status", "checkpoint_milliseconds"));
    free(lag);
    free(later);
    latency_end(&r);
    return settled;
}

static double bare(const struct acked_stream *stream, double rate) {
    const int64_t count = (int64_t)(rate * seconds() / 2);
    double *lag = lags_new(count);
    struct acked_echo echo = acked_echo_start(NULL);
    struct acked_client c = acked_open(echo.address, stream, 0);
    acked_rate(&c, 100, 1);
    const double start = bench_now() - (double)c.next / rate;
    while (c.taken < count) {
        send_due(&c, start, rate, count);
        while (c.taken < c.next && acked_take(&c, ZMQ_DONTWAIT))
            lag[c.taken - 1] = bench_now() - start - (double)(c.taken - 1) / rate;
    }
    const double p99 = print_lags(lag + 100, (int)(count - 100));
    acked_close(&c);
    acked_echo_stop(&echo);
    free(lag);
    return p99;
}

static void sockets(int only, const char *const *more) {
    printf("ms from due to scored at half the highest rate, %g s from the first sample on; then their second "
           "half;\nthen svmstream's own stats; its checkpoints, and how long the last one held it up; then a "
           "bare echo\n",
           seconds());
    printf(
        "  d  method  highest/s     p50     p99   p99.9     max |     p50     p99   p99.9     max |   p50  "
        " p99 | n      ms |     p50     p99   p99.9     max\n");
    for (int s = 0; s < SIZES; s++) {
        if ((only && only != sizes[s]) || (bench_quick() && s > 0))
            continue;
        struct acked_stream stream = acked_stream(DIFFERENT, sizes[s]);
        for (int m = 0; m < METHODS; m++) {
            const double most = highest(&stream, methods[m], more);
            printf("%3d  %-6s %10.0f", sizes[s], methods[m], most);
            const double ours = steady(&stream, methods[m], most / 2, more);
            printf(" |");
            const double echo = bare(&stream, most / 2);
            printf("\n");
            bench_row((struct bench_row){.ours = 1e3 * ours, .peer = 1e3 * echo, .unit = "ms"},
                      "p99 of sample to score / bare echo, %s, d %d, at-least-once, %.0f/s", methods[m],
                      sizes[s], most / 2);
        }
        acked_stream_free(&stream);
    }
}

/* ---- the thread */

static void ignore_event(void *user, const struct svi_event *e) {
    (void)user;
    (void)e;
}

static const double steps[] = {0.25e-3, 0.5e-3, 1e-3, 2e-3, 5e-3};
enum { STEPS = sizeof steps / sizeof *steps };

/* Every sample is a turn of its own; with two threads that is judged here as well. */
static void stalls(int d, const char *method) {
    enum { COUNT = 60000 /* at most */, EVERY = 10000 };
    const int count = bench_pick(EVERY, COUNT, COUNT);
    struct acked_stream stream = acked_stream(DIFFERENT, d);
    struct svi_settings s;
    struct svi_checkpoint c = {0};
    double *took = calloc(COUNT, sizeof *took), saved[COUNT / EVERY];
    int over[STEPS] = {0}, worst = 0;
    svi_settings_default(&s);
    if (svi_settings_set(&s, "method", method, NULL) != SVS_OK || svi_settings_check(&s, NULL) != SVS_OK)
        bench_die("method");
    svi_settings_settle_method(&s);
    svi_stream *e = svi_stream_new(&s, 1, ignore_event, NULL, NULL);
    for (int i = 0; e && i < count; i++) {
        struct svi_envelope env;
        const double before = svi_clock_seconds(CLOCK_THREAD_CPUTIME_ID);
        uint64_t word = htobe64((uint64_t)i);
        memcpy(stream.frame[i % DIFFERENT].bytes + stream.n_at, &word, sizeof word);
        svi_envelope_read(&env, stream.frame[i % DIFFERENT].bytes, stream.frame[i % DIFFERENT].size);
        svi_stream_apply(e, &env, 1e9 + 1e-4 * i, true, NULL);
        took[i] = svi_clock_seconds(CLOCK_THREAD_CPUTIME_ID) - before;
        worst = took[i] > took[worst] ? i : worst;
        for (int k = 0; k < STEPS; k++)
            over[k] += took[i] > steps[k];
        if ((i + 1) % EVERY == 0) {
            const double begun = svi_clock_seconds(CLOCK_THREAD_CPUTIME_ID);
            svi_stream_save(e, &c, NULL);
            saved[i / EVERY] = svi_clock_seconds(CLOCK_THREAD_CPUTIME_ID) - begun;
        }
    }
    printf("%3d  %-6s", d, method);
    for (int k = 0; k < STEPS; k++)
        printf(" %7d", over[k]);
    printf("  %6.2f at %5d  %7.2f %7.2f %8.0f", 1e3 * took[worst], worst, 1e3 * saved[0],
           1e3 * saved[count / EVERY - 1], (double)c.bodies.size / 1024);
    const double longest = took[worst], p50 = bench_quantile(took, count, 0.5);
    printf("  %6.1f %6.1f\n", 1e6 * p50, 1e6 * took[(int)(0.99 * count)]);
    bench_row((struct bench_row){.ours = 1e6 * p50, .unit = "us"},
              "thread of the stream, a sample, %s with novelty, d %d: median", method, d);
    bench_row((struct bench_row){.ours = 1e6 * took[(int)(0.99 * count)], .unit = "us"},
              "thread of the stream, a sample, %s with novelty, d %d: p99", method, d);
    bench_row((struct bench_row){.ours = 1e3 * longest, .unit = "ms"},
              "thread of the stream, a sample, %s with novelty, d %d: longest", method, d);
    svi_checkpoint_clear(&c);
    svi_stream_free(&e);
    acked_stream_free(&stream);
    free(took);
}

/* Where it may: before what else the machine does, as a stream's process on a machine of its own would be. */
static void go_first(void) {
    const struct sched_param p = {.sched_priority = 10};
    prctl(PR_SET_TIMERSLACK, 1);
    if (sched_setscheduler(0, SCHED_RR, &p) != 0)
        printf("no right to SCHED_RR: what else the machine does is in the figures\n");
}

/* bench_latency [d [flags of svmstream run ...]] */
int main(int argc, char **argv) {
    const int only = argc > 1 ? atoi(argv[1]) : 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("of 60000 samples those that took longer, processor time of the thread, novelty in it; a "
           "checkpoint: the first, the last\n");
    printf("  d  method > .25ms   > .5   > 1ms   > 2ms   > 5ms   worst            ckpt ms    last      KiB  "
           "p50 us    p99\n");
    for (int i = 0; i < bench_pick(1, SIZES, SIZES); i++)
        for (int m = 0; m < METHODS && (!only || only == sizes[i]); m++)
            stalls(sizes[i], methods[m]);
    go_first();
    sockets(only, (const char *const *)argv + (argc > 1 ? 2 : 1));
    return bench_end();
}
