/* What the engine costs beyond the learner, most of it probabilities and figures: the same stream through an
 * engine and through a learner alone, in turns in one run, one thread (its own time), best of many rounds.
 * Prints; judges nothing. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "fleet/fleet.h"
#include "reference.h"
#include "result.h"
#include "quality/calibrator.h"

enum { SAMPLES = 4096, BATCH = 2000, PATHS = 2 };

static double bench_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void no_sink(void *user, const struct svi_event *event) {
    (void)user, (void)event;
}

struct bench {
    int d;
    double *x;
    int y[SAMPLES];
    svi_stream *stream;
    svs_learner *learner;
    int64_t at[PATHS];
};

static svi_stream *bench_engine(void) {
    struct svi_settings s;
    svi_settings_default(&s);
    s.method = SVI_METHOD_ALSVM;
    s.novelty = SVI_NOVELTY_NONE;
    s.refit = SVI_REFIT_NONE;
    s.publish_every = 0;
    s.scores = 0;
    return svi_stream_new(&s, 1, no_sink, NULL, NULL);
}

static void bench_path(struct bench *b, int which) {
    const int64_t i = b->at[which]++ % SAMPLES;
    double *x = b->x + i * b->d;
    if (which == 0) {
        svs_step step;
        const svs_sample s = {x, b->d, svs_none(), svs_int(b->y[i]), 1};
        svs_learner_step(b->learner, &s, 0, &step, NULL);
        return;
    }
    struct svi_message m = {.op = SVI_LEARN,
                            .kind = SVI_DENSE,
                            .has_x = true,
                            .x = x,
                            .d = b->d,
                            .y = svs_int(b->y[i]),
                            .ts = NAN,
                            .weight = 1,
                            .n = -1};
    svi_stream_message(b->stream, &m, "", 0, 1, NULL);
}

static void bench_measure(int d) {
    static struct bench b;
    double best[PATHS] = {1, 1};
    uint64_t seed = 1;
    svs_options o;
    b = (struct bench){.d = d, .x = malloc(sizeof(double) * SAMPLES * (size_t)d)};
    for (int i = 0; i < SAMPLES; i++) {
        for (int j = 0; j < d; j++)
            b.x[(size_t)i * (size_t)d + (size_t)j] = ref_gauss(&seed);
        b.y[i] = b.x[(size_t)i * (size_t)d] + ref_gauss(&seed) > 0;
    }
    svs_options_default(&o);
    b.learner = svs_learner_new(&o, d, NULL);
    b.stream = bench_engine();
    const int rounds = bench_pick(20, 200, 300);
    for (int round = 0; round < rounds; round++)
        for (int which = 0; which < PATHS; which++) {
            const double start = bench_now();
            for (int i = 0; i < BATCH; i++)
                bench_path(&b, which);
            const double each = (bench_now() - start) / BATCH;
            best[which] = each < best[which] ? each : best[which];
        }
    printf("%4d %10.1f %10.1f %10.1f %9.1f%%\n", d, best[0] * 1e9, best[1] * 1e9, (best[1] - best[0]) * 1e9,
           100 * (best[1] - best[0]) / best[0]);
    bench_row(
        (struct bench_row){
            .ours = best[1] * 1e9, .peer = best[0] * 1e9, .unit = "ns", .ratio = best[1] / best[0]},
        "engine with probabilities / learner alone, d %d", d);
    svi_stream_free(&b.stream);
    svs_learner_free(&b.learner);
    free(b.x);
}

int main(void) {
    static const int dims[] = {8, 20, 50};
    printf("nanoseconds a sample, window 1000, two classes\n");
    printf("   d    learner     engine      costs  of learner\n");
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++)
        bench_measure(dims[i]);
    return bench_end();
}
