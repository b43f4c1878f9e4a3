/* What a labelled sample costs the bank of `method auto`, beside one ALSVM of 1000 samples in the
 * same run. Next to it are the cost by the table of costs, and what the budget allows. Gaussian
 * rows; the processor time of the stream's thread; the least of several stretches. Two shapes have
 * a bar for the cost, host included: see `bars`. */
#include <stdio.h>

#include "bench/bench.h"

#include "bank/bank.h"
#include "bank/members.h"
#include "config/settings.h"
#include "learner/learner_held.h"

enum { ROWS = 4096, STRETCH = 2000 };

/* Microseconds a sample at most. */
static const struct {
    int d, classes;
    const char *bar;
} bars[] = {{8, 2, "<= 12"}, {54, 2, "<= 25"}};

static const char *bar_of(int d, int classes) {
    for (size_t b = 0; b < sizeof bars / sizeof *bars; b++)
        if (bars[b].d == d && bars[b].classes == classes)
            return bars[b].bar;
    return NULL;
}

static void bank_sample(uint64_t *seed, int d, int classes, double *x, svs_sample *s) {
    double sum = bench_gauss(seed);
    for (int j = 0; j < d; j++) {
        x[j] = bench_gauss(seed);
        sum += j % 3 == 0 ? x[j] : 0;
    }
    const int k = (int)((sum / 4 + 1) / 2 * classes);
    *s = (svs_sample){.x = x,
                      .d = d,
                      .id = svs_none(),
                      .y = svs_int(k < 0          ? 0
                                   : k >= classes ? classes - 1
                                                  : k),
                      .weight = 1};
}

static void bank_step(svs_learner *host, svi_bank *bank, const svs_sample *s, double time) {
    svs_step step;
    struct svi_bank_scored scored;
    struct svi_held_sample held;
    if (svs_learner_step(host, s, time, &step, NULL) != SVS_OK)
        bench_die("a sample was refused");
    if (!bank)
        return;
    svi_bank_score(bank, s->x, step.scores, step.rows, step.class_count, &scored);
    if (!svi_learner_newest_sample(host, &held) || svi_bank_learn(bank, host, s, &held, time, NULL) != SVS_OK)
        bench_die("a sample was not learned");
}

/* Of this thread: others may want the processor, too. */
static double bank_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Microseconds a sample; with or without a bank. */
static double bank_cost(int d, int classes, bool with, int64_t window) {
    svs_options o;
    svs_options_default(&o);
    o.window = window;
    o.labels_ttl = 0;
    const struct svi_bank_options bank_options = {.host = o, .seed = 1};
    svs_learner *host = svs_learner_new(&o, d, NULL);
    svi_bank *bank = with ? svi_bank_new(&bank_options, d, NULL) : NULL;
    double *x = calloc((size_t)ROWS * (size_t)d, sizeof *x), best = 1;
    const int warm = bench_pick(1000, 6000, 6000), rounds = bench_pick(1, 6, 8);
    svs_sample *s = calloc(ROWS, sizeof *s);
    uint64_t seed = 1;
    for (int i = 0; i < ROWS; i++)
        bank_sample(&seed, d, classes, x + (size_t)i * (size_t)d, &s[i]);
    svi_learner_relax(host, with);
    for (int i = 0; i < warm; i++)
        bank_step(host, bank, &s[i % ROWS], i);
    for (int r = 0; r < rounds; r++) {
        const double start = bank_now();
        for (int i = 0; i < STRETCH; i++)
            bank_step(host, bank, &s[(warm + r * STRETCH + i) % ROWS], warm + r * STRETCH + i);
        const double cost = (bank_now() - start) / STRETCH;
        best = cost < best ? cost : best;
    }
    free(s);
    free(x);
    svi_bank_free(&bank);
    svs_learner_free(&host);
    return 1e6 * best;
}

int main(void) {
    static const int cases[][2] = {{4, 2}, {8, 2}, {27, 2}, {27, 10}, {54, 2}, {54, 7}, {100, 2}, {300, 2}};
    printf("%4s %8s %9s %9s %9s %9s %8s\n", "d", "classes", "members", "budget", "table", "measured",
           "x alsvm");
    for (int i = bench_pick(4, 0, 0); i < bench_pick(5, 8, 8); i++) {
        const int d = cases[i][0], classes = cases[i][1];
        const uint32_t on = svi_members_choose(SVS_CLASSIFY, d, classes, 0);
        const double alone = bank_cost(d, classes, false, 1000),
                     bank = bank_cost(d, classes, true, SVI_AUTO_WINDOW);
        printf("%4d %8d %9d %9.1f %9.1f %9.1f %8.1f\n", d, classes, __builtin_popcount(on),
               svi_members_budget(d, classes), svi_members_estimate(on, d, classes), bank, bank / alone);
        bench_row((struct bench_row){.ours = bank, .unit = "us", .bar = bar_of(d, classes)},
                  "auto, a labelled sample, d %d, %d classes", d, classes);
        bench_row((struct bench_row){.ours = bank, .peer = alone, .unit = "us", .ratio = bank / alone},
                  "auto / alsvm of 1000 samples, d %d, %d classes", d, classes);
    }
    return bench_end();
}
