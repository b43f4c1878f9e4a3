/* What each part of the novelty stage and the rules costs a sample, with the settings of now: CPU time of the
 * thread, and the slowest samples. A stream is taken `runs` times; a sample's time in a part is the least of
 * them, as all do the same, so what the machine does besides is left out.
 *
 * usage: bench_stage [RUNS [NAME]]  (NAME: smd, 3, 10, 38, 500; random rows of as many columns hang together
 * and share a factor) */
#include <time.h>

#include "bench/novelty_sets.h"

#include "alerts/context.h"
#include "alerts/rules.h"
#include "engine/alert_options.h"

enum { SENSORS, JUDGE, ROWS, POLICY, LEARN, RULES, PARTS, SLOWEST = 3 };
static const char *const parts[PARTS] = {"sensors", "judge", "row", "policy", "learn", "rules"};

static double cpu_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + 1e-3 * (double)t.tv_nsec;
}

static double clock_cost(void) {
    double least = INFINITY;
    for (int k = 0; k < 20; k++) {
        const double start = cpu_now();
        for (int i = 0; i < 1000; i++)
            (void)cpu_now();
        least = fmin(least, (cpu_now() - start) / 1001);
    }
    return least;
}

/* As svi_alert_stage_assess and _learn do. us[PARTS] becomes the least of what it was and now. */
static void take_sample(struct svi_alert_stage *s, struct svi_rules *rules, const double *x, int d,
                        double time, float *us) {
    double at[PARTS + 1] = {0};
    const bool look = us != NULL;
    at[SENSORS] = look ? cpu_now() : 0;
    struct svi_moment moment;
    struct svi_detector_sample seen = {.x = x, .moment = &moment};
    svi_context_moment(NULL, time, &moment);
    svi_detectors_assess(&s->detectors, &seen, s->evidence);
    at[JUDGE] = look ? cpu_now() : 0;
    svi_detector_assess(s->detector, x, &s->judgement);
    at[ROWS] = look ? cpu_now() : 0;
    seen.row = &s->judgement;
    svi_detectors_assess(&s->detectors, &seen, s->evidence);
    at[POLICY] = look ? cpu_now() : 0;
    svi_alert_policy_step(&s->policy, &s->alert, s->evidence, time, true);
    at[LEARN] = look ? cpu_now() : 0;
    svi_detector_learn(s->detector, false);
    at[RULES] = look ? cpu_now() : 0;
    svi_rules_row(rules, x, NULL, d, time, time);
    at[PARTS] = look ? cpu_now() : 0;
    for (int k = 0; k < PARTS && look; k++)
        us[k] = fminf(us[k], (float)(at[k + 1] - at[k]));
}

static void run_stream(const struct nov_set *set, float *us) {
    struct svi_settings settings;
    struct svi_alert_stage stage;
    struct svi_rules rules;
    svi_settings_default(&settings);
    svi_rules_init(&rules, false);
    svi_rules_configure(&rules, &settings);
    struct svi_alert_stage_options o;
    if (svi_engine_alert_options(&settings, &o, NULL) != SVS_OK)
        bench_die("the default settings are refused");
    svi_alert_stage_init(&stage, &o);
    if (svi_alert_stage_reserve(&stage, set->d, false, NULL) != SVS_OK ||
        svi_rules_reserve(&rules, set->d, NULL) != SVS_OK)
        bench_die("no novelty stage");
    svi_detector_set_columns(stage.detector, set->d);
    for (int j = 0; j < set->d; j++)
        svi_rules_bind(&rules, j, SVI_RULES_JUDGED | SVI_RULES_MISSED, -INFINITY, INFINITY);
    svi_rules_bound(&rules, set->d);
    for (int64_t i = 0; i < set->n; i++)
        take_sample(&stage, &rules, set->x + i * set->d, set->d, 1.7e9 + 60.0 * (double)i,
                    us ? us + i * PARTS : NULL);
    svi_alert_stage_free(&stage);
    svi_rules_clear(&rules);
}

static float part_sum(const float *us) {
    float sum = 0;
    for (int k = 0; k < PARTS; k++)
        sum += us[k];
    return sum;
}

static int by_size(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void slowest(const float *us, int64_t n, int from, int count) {
    float *sorted = malloc((size_t)n * sizeof *sorted);
    for (int64_t i = 0; i < n; i++) {
        sorted[i] = 0;
        for (int k = from; k < from + count; k++)
            sorted[i] += us[i * PARTS + k];
    }
    qsort(sorted, (size_t)n, sizeof *sorted, by_size);
    printf("  median %.2f, p99 %.2f, p99.9 %.1f, slowest", (double)sorted[n / 2],
           (double)sorted[n * 99 / 100], (double)sorted[n * 999 / 1000]);
    for (int i = 1; i <= SLOWEST; i++)
        printf(" %.0f", (double)sorted[n - i]);
    printf(" us\n");
    free(sorted);
}

static void measure(const char *name, const struct nov_set *set, int runs) {
    const double cost = clock_cost();
    float *us = malloc((size_t)(set->n * PARTS) * sizeof *us);
    double sum = 0, part[PARTS] = {0}, whole = INFINITY;
    for (int64_t i = 0; i < set->n * PARTS; i++)
        us[i] = INFINITY;
    for (int r = 0; r < runs; r++) {
        run_stream(set, us);
        const double start = cpu_now();
        run_stream(set, NULL); /* a look at the clock costs more than some parts */
        whole = fmin(whole, (cpu_now() - start) / (double)set->n);
    }
    for (int64_t i = 0; i < set->n; i++)
        for (int k = 0; k < PARTS; k++) {
            us[i * PARTS + k] = fmaxf(0, us[i * PARTS + k] - (float)cost);
            part[k] += us[i * PARTS + k] / (double)set->n;
        }
    for (int k = 0; k < PARTS; k++)
        sum += part[k];
    printf("%s: d %d, %lld rows: %.2f us a sample, %.0f a second\n", name, set->d, (long long)set->n, whole,
           1e6 / whole);
    for (int k = 0; k < PARTS; k++) {
        printf("  %-8s %7.2f us", parts[k], part[k]);
        slowest(us, set->n, k, 1);
    }
    printf("  %-8s %7.2f us", "all", sum);
    slowest(us, set->n, 0, PARTS);
    double later = 0;
    for (int64_t i = set->n / 2; i < set->n; i++)
        later += part_sum(us + i * PARTS) / (double)(set->n - set->n / 2);
    printf("  the second half of the rows, where refreshes are rare: %.2f us a sample\n", later);
    float most = 0;
    int64_t at = 0;
    for (int64_t i = 0; i < set->n; i++)
        if (part_sum(us + i * PARTS) > most) {
            most = part_sum(us + i * PARTS);
            at = i;
        }
    bench_row((struct bench_row){.ours = whole, .unit = "us"}, "novelty and rules, a sample, %s, d %d", name,
              set->d);
    bench_row((struct bench_row){.ours = (double)most / 1e3, .unit = "ms"},
              "novelty and rules, the slowest sample, %s, d %d", name, set->d);
    printf("  slowest at row %lld:", (long long)at);
    for (int k = 0; k < PARTS; k++)
        printf(" %s %.0f", parts[k], (double)us[at * PARTS + k]);
    printf("\n");
    fflush(stdout);
    free(us);
}

static struct nov_set random_rows(int d, int64_t n) {
    struct nov_set s = {.d = d, .n = n};
    struct svi_random random = {5};
    double factor = 0, *before = calloc((size_t)d, sizeof *before);
    s.x = malloc((size_t)(n * d) * sizeof *s.x);
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int k = 0; k < 12; k++)
            sum += (double)(svi_random_next(&random) >> 11) * 0x1p-53 - 0.5;
        factor = 0.9 * factor + sum;
        for (int j = 0; j < d; j++) {
            double own = 0;
            for (int k = 0; k < 4; k++)
                own += (double)(svi_random_next(&random) >> 11) * 0x1p-53 - 0.5;
            before[j] = 0.5 * before[j] + own;
            s.x[i * d + j] = before[j] + factor * (j % 3 == 0);
        }
    }
    free(before);
    return s;
}

int main(int argc, char **argv) {
    static const int wide[] = {3, 10, 38, 500};
    const int runs = argc > 1 ? atoi(argv[1]) : bench_pick(1, 2, 3);
    const char *only = argc > 2 ? argv[2] : "";
    struct nov_set s;
    if (((!*only && !bench_quick()) || strcmp(only, "smd") == 0) && nov_load(&s, "smd_machine-1-6", 1)) {
        measure("smd_machine-1-6", &s, runs);
        nov_free(&s);
    }
    for (size_t i = 0; i < (bench_quick() ? 1 : sizeof wide / sizeof *wide); i++) {
        if (*only && atoi(only) != wide[i])
            continue;
        s = random_rows(wide[i], wide[i] > 100 ? 6000 : bench_pick(5000, 20000, 20000));
        measure("random", &s, runs);
        nov_free(&s);
    }
    return bench_end();
}
