/* What intervals cost a sample. Engines with them and without take the same samples in turns in one
 * run, best of many rounds. d = 8, window 1000, no refits, no scores published. Measured alone, and
 * with novelty at its defaults. Prints only: no bar. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fleet/fleet.h"
#include "reference.h"
#include "result.h"

enum { D = 8, SAMPLES = 4096, ROUND = 20000, ROUNDS = 60, WAYS = 2 };

static const char *const ways[WAYS] = {"without", "with"};

struct bench {
    double x[SAMPLES][D];
    double y[SAMPLES];
    svi_stream *stream[WAYS];
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void ignore(void *user, const struct svi_event *event) {
    (void)user, (void)event;
}

static svi_stream *engine_of(bool regress, bool novelty, int way) {
    struct svi_settings s;
    svi_settings_default(&s);
    s.method = SVI_METHOD_ALSVM;
    svi_settings_set(&s, "task", regress ? "regress" : "classify", NULL);
    if (!novelty)
        svi_settings_set(&s, "novelty", "none", NULL);
    svi_settings_set(&s, "refit", "none", NULL);
    svi_settings_set(&s, "scores", "none", NULL);
    svi_settings_set(&s, "publish.every", "0", NULL);
    s.interval = way == 0 ? 0 : 0.9;
    return svi_stream_new(&s, 1, ignore, NULL, NULL);
}

static double round_of(struct bench *b, int way, bool regress) {
    svs_error err;
    const double start = now();
    for (int i = 0; i < ROUND; i++) {
        const int k = i % SAMPLES;
        struct svi_message m = {
            .op = SVI_LEARN, .kind = SVI_DENSE, .has_x = true, .x = b->x[k], .d = D, .ts = NAN, .weight = 1};
        m.y = regress ? svs_real(b->y[k]) : svs_int(b->y[k] > 0);
        if (svi_stream_message(b->stream[way], &m, NULL, 0, 1, &err) != SVS_OK) {
            fprintf(stderr, "%s\n", err.text);
            exit(1);
        }
    }
    return (now() - start) / ROUND;
}

int main(void) {
    static struct bench b;
    uint64_t seed = 1;
    for (int i = 0; i < SAMPLES; i++) {
        for (int j = 0; j < D; j++)
            b.x[i][j] = ref_gauss(&seed);
        b.y[i] = b.x[i][0] + b.x[i][1] + ref_gauss(&seed);
    }
    printf("%-10s %-8s %12s %12s %10s\n", "task", "novelty", ways[0], ways[1], "share");
    for (int k = 0; k < 4; k++) {
        const bool regress = k % 2, novelty = k / 2;
        double best[WAYS] = {INFINITY, INFINITY};
        for (int way = 0; way < WAYS; way++)
            b.stream[way] = engine_of(regress, novelty, way);
        for (int r = 0; r < bench_pick(2, ROUNDS / 2, ROUNDS); r++)
            for (int way = 0; way < WAYS; way++)
                best[way] = fmin(best[way], round_of(&b, way, regress));
        printf("%-10s %-8s %9.1f ns %9.1f ns %8.1f %%\n", regress ? "regress" : "classify",
               novelty ? "yes" : "no", 1e9 * best[0], 1e9 * best[1], 100 * (best[1] / best[0] - 1));
        bench_row(
            (struct bench_row){
                .ours = 1e9 * best[1], .peer = 1e9 * best[0], .unit = "ns", .ratio = best[1] / best[0]},
            "%s with intervals / without, d %d, novelty %s", regress ? "regress" : "classify", D,
            novelty ? "on" : "none");
        for (int way = 0; way < WAYS; way++)
            svi_stream_free(&b.stream[way]);
    }
    return bench_end();
}
