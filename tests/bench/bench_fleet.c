/* A model for each key: rate of learning parsed messages on one thread and on two, and with one key against
 * many at random, alternately in one run; resident bytes a key.
 *
 *   bench_fleet [KEYS [NOVELTY]]   10000, none */
#include <malloc.h>

#include "bench/bench.h"
#include "fleet/fleet.h"
#include "wire/event.h"

#define D      10
#define WINDOW 100
#define BATCH  64
#define ROUNDS 5

struct messages {
    struct svi_bytes *message;
    int count;
};

static void sink(void *user, const struct svi_event *event) {
    (void)event;
    ++*(int64_t *)user;
}

static void put_batch(struct svi_bytes *out, int keys, uint64_t *seed) {
    const uint8_t head[] = {0xdc, 0, BATCH};
    double x[D];
    char key[32];
    svi_bytes_append(out, head, sizeof head);
    for (int i = 0; i < BATCH; i++) {
        for (int j = 0; j < D; j++)
            x[j] = bench_gauss(seed);
        *seed = *seed * 6364136223846793005u + 1442695040888963407u;
        snprintf(key, sizeof key, "k%d", (int)((*seed >> 33) % (uint64_t)keys));
        const struct svi_message m = {.has_x = true,
                                      .kind = SVI_DENSE,
                                      .d = D,
                                      .x = x,
                                      .y = svs_int(x[0] + x[1] > 0),
                                      .ts = NAN,
                                      .weight = 1,
                                      .n = -1,
                                      .key = svs_str(key)};
        svi_message_encode(&m, NULL, false, out);
    }
}

static struct messages make_messages(int keys, int count) {
    uint64_t seed = 7;
    struct messages all = {calloc((size_t)count, sizeof *all.message), count};
    for (int i = 0; i < count; i++)
        put_batch(&all.message[i], keys, &seed);
    return all;
}

static svi_stream *make_engine(const char *threads, const char *novelty, int64_t *events) {
    struct svi_settings s;
    svs_error err = {0};
    const char *const given[] = {"key",
                                 "key",
                                 "threads",
                                 threads,
                                 "novelty",
                                 novelty,
                                 "window",
                                 "100",
                                 "alert.rules",
                                 "none",
                                 "refit",
                                 "none",
                                 "publish.seconds",
                                 "0",
                                 "key.prior",
                                 getenv("PRIOR") ? getenv("PRIOR") : "10",
                                 NULL};
    svi_settings_default(&s);
    for (int i = 0; given[i]; i += 2)
        if (svi_settings_set(&s, given[i], given[i + 1], &err) != SVS_OK)
            bench_die(err.text);
    svi_settings_settle_method(&s);
    svi_stream *e = svi_stream_new(&s, 1, sink, events, &err);
    if (!e)
        bench_die(err.text);
    svi_stream_use_threads(e);
    svi_stream_encode(e, 0);
    return e;
}

/* Samples a second. */
static double run(svi_stream *e, const struct messages *all, int *at, double seconds, int64_t most) {
    const double begin = bench_now();
    double took = 0;
    int64_t samples = 0;
    svi_stream_leave_open(e, true);
    while (took < seconds && samples < most) {
        for (int i = 0; i < 64; i++, *at = (*at + 1) % all->count) {
            struct svi_envelope env;
            svi_envelope_read(&env, all->message[*at].data, all->message[*at].size);
            svi_stream_apply_later(e, &env, 1e6, false, NULL);
            samples += BATCH;
        }
        took = bench_now() - begin;
    }
    svi_stream_leave_open(e, false);
    return (double)samples / (bench_now() - begin);
}

static double median(double *v) {
    return bench_quantile(v, bench_pick(1, 5, ROUNDS), 0.5);
}

int main(int argc, char **argv) {
    const int keys = argc > 1 ? atoi(argv[1]) : bench_pick(500, 10000, 10000),
              rounds = bench_pick(1, 5, ROUNDS);
    const double seconds = bench_quick() ? 0.1 : 1;
    const char *novelty = argc > 2 ? argv[2] : "none";
    const struct messages many = make_messages(keys, bench_pick(500, 20000, 20000)),
                          one = make_messages(1, bench_pick(100, 2000, 2000));
    int64_t events = 0;
    int at[3] = {0};
    const size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    svi_stream *e[3] = {make_engine("1", novelty, &events), NULL, NULL};
    run(e[0], &many, &at[0], 600, (int64_t)keys * 150);
    const size_t bytes = mallinfo2().uordblks + mallinfo2().hblkhd - before;
    e[1] = make_engine("2", novelty, &events);
    run(e[1], &many, &at[1], 600, (int64_t)keys * 150);
    e[2] = make_engine("1", novelty, &events);
    double rate[3][ROUNDS], two[ROUNDS], share[ROUNDS];
    for (int i = 0; i < rounds; i++) {
        for (int k = 0; k < 3; k++)
            rate[k][i] = run(e[k], k == 2 ? &one : &many, &at[k], seconds, INT64_MAX);
        two[i] = rate[1][i] / rate[0][i];
        share[i] = rate[0][i] / rate[2][i];
    }
    printf("%d keys, d %d, W %d, novelty %s: %.1f kB a key\n", keys, D, WINDOW, novelty,
           (double)bytes / keys / 1000);
    printf("  one thread    %8.0f samples/s\n", median(rate[0]));
    printf("  two threads   %8.0f samples/s, %.2f times\n", median(rate[1]), median(two));
    printf("  one key       %8.0f samples/s, of which many at random reach %.2f\n", median(rate[2]),
           median(share));
    bench_row((struct bench_row){.ours = (double)bytes / keys / 1000, .unit = "kB"},
              "%d keys, alsvm, d %d, window %d: memory a key", keys, D, WINDOW);
    bench_row(
        (struct bench_row){
            .ours = median(rate[0]), .peer = median(rate[2]), .unit = "/s", .ratio = median(share)},
        "%d keys at random / one key, one thread", keys);
    bench_row(
        (struct bench_row){
            .ours = median(rate[1]), .peer = median(rate[0]), .unit = "/s", .ratio = median(two)},
        "%d keys, two threads / one", keys);
    for (int k = 0; k < 3; k++)
        svi_stream_free(&e[k]);
    return bench_end();
}
