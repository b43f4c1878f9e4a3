/* Boosted trees: nanoseconds a bin update of a fit, and microseconds a scored row, by size, in time
 * of the processor. Then accuracy and log loss next to scikit-learn's HistGradientBoosting on the
 * same rows (trees_peer.py, which calls this program once a fit).
 *
 * Bin updates are those of svi_boost_cost, an upper bound. A fit is cheaper than its bound where
 * lists leave out rows, and where a leaf is not counted because its sibling is.
 *
 * usage: bench_trees
 *        bench_trees FIT.csv TEST.csv CLASSES ROUNDS LEAVES BINS RATE RIDGE MIN_ROWS
 *            (0 classes: regression; the last column is the target; no header) -> one line of scores a row
 *            of TEST.csv on standard output, the milliseconds of the fit on standard error
 */
#include "bench.h"

#include <math.h>

#include "trees/boost.h"

#define SCORED 4000
#define PASSES 7 /* at most */

struct bench_table {
    float *x, *target;
    int32_t *label;
    int rows, d;
};

static struct svi_boost_rows bench_rows(const struct bench_table *t) {
    return (struct svi_boost_rows){.x = t->x,
                                   .d = t->d,
                                   .stride = t->d,
                                   .count = t->rows,
                                   .capacity = t->rows,
                                   .label = t->label,
                                   .target = t->target};
}

static struct bench_table bench_table_new(int rows, int d) {
    struct bench_table t = {calloc((size_t)rows * (size_t)d + 1, sizeof(float)),
                            calloc((size_t)rows + 1, sizeof(float)),
                            calloc((size_t)rows + 1, sizeof(int32_t)), rows, d};
    if (!t.x || !t.target || !t.label)
        bench_die("no memory");
    return t;
}

static void bench_table_free(struct bench_table *t) {
    free(t->x);
    free(t->target);
    free(t->label);
}

/* ---- speed */

/* Of this thread, in seconds: fits run on a worker next to other work. */
static double bench_cpu(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct bench_table bench_gaussian(int rows, int d, int classes) {
    struct bench_table t = bench_table_new(rows, d);
    uint64_t seed = 5;
    for (int i = 0; i < rows; i++) {
        float *x = t.x + (size_t)i * (size_t)d;
        for (int j = 0; j < d; j++)
            x[j] = (float)bench_gauss(&seed);
        const double y = x[0] + x[1] * x[2] + (x[3] > 0.5f) + 0.5 * bench_gauss(&seed);
        const double share = 1 / (1 + exp(-1.5 * y));
        t.label[i] = (int32_t)fmin(classes - 1, share * classes);
        t.target[i] = (float)y;
    }
    return t;
}

static void bench_speed(int rows, int d, int classes) {
    const struct svi_boost_options o = svi_boost_defaults(classes ? SVS_CLASSIFY : SVS_REGRESS, classes);
    struct bench_table t = bench_gaussian(rows, d, classes ? classes : 2);
    const struct svi_boost_rows r = bench_rows(&t);
    struct svi_boost_scratch s = {0};
    struct svi_forest f = {0};
    double fit = HUGE_VAL, score = HUGE_VAL, *scores = calloc((size_t)(classes > 2 ? classes : 1), 8);
    const int scored = rows < SCORED ? rows : SCORED;
    for (int pass = 0; pass < bench_pick(1, 3, PASSES); pass++) {
        double begin = bench_cpu();
        if (svi_boost_fit(&o, &r, &s, &f, NULL) != SVS_OK)
            bench_die("the fit failed");
        fit = fmin(fit, bench_cpu() - begin);
        begin = bench_cpu();
        for (int i = 0; i < scored; i++)
            svi_forest_score(&f, t.x + (size_t)i * (size_t)d, scores);
        score = fmin(score, (bench_cpu() - begin) / scored);
    }
    const double updates = (double)svi_boost_cost(&o, rows, d);
    printf("%6d %5d %8d %9.1f %10.0f %8.2f %9.3f %7d\n", rows, d, classes, 1e3 * fit, updates / 1e6,
           1e9 * fit / updates, 1e6 * score, f.count);
    bench_row((struct bench_row){.ours = 1e3 * fit, .unit = "ms"},
              "boosted trees, a fit of %d rows, d %d, %d classes", rows, d, classes);
    bench_row((struct bench_row){.ours = 1e6 * score, .unit = "us"},
              "boosted trees, a row scored, %d rows, d %d, %d classes", rows, d, classes);
    free(scores);
    svi_boost_scratch_clear(&s);
    svi_forest_clear(&f);
    bench_table_free(&t);
}

/* ---- one fit for the peer */

static struct bench_table bench_read(const char *path) {
    static char line[1 << 20];
    FILE *f = fopen(path, "r");
    int rows = 0, d = 0;
    if (!f)
        bench_die(path);
    while (fgets(line, sizeof line, f)) {
        if (rows++ == 0)
            for (const char *c = line; *c; c++)
                d += *c == ',';
    }
    struct bench_table t = bench_table_new(rows, d);
    rewind(f);
    for (int i = 0; i < rows && fgets(line, sizeof line, f); i++) {
        char *at = line;
        for (int j = 0; j < d; j++, at++)
            t.x[(size_t)i * (size_t)d + (size_t)j] = strtof(at, &at);
        t.target[i] = strtof(at, NULL);
        t.label[i] = (int32_t)t.target[i];
    }
    fclose(f);
    return t;
}

static void bench_fit(char **argv) {
    struct bench_table fit = bench_read(argv[1]), test = bench_read(argv[2]);
    const int classes = atoi(argv[3]);
    struct svi_boost_options o = svi_boost_defaults(classes ? SVS_CLASSIFY : SVS_REGRESS, classes);
    const struct svi_boost_rows r = bench_rows(&fit);
    struct svi_boost_scratch s = {0};
    struct svi_forest f = {0};
    svs_error err;
    o.rounds = atoi(argv[4]);
    o.leaves = atoi(argv[5]);
    o.bins = atoi(argv[6]);
    o.rate = atof(argv[7]);
    o.ridge = atof(argv[8]);
    o.min_rows = atof(argv[9]);
    const double begin = bench_cpu();
    if (svi_boost_fit(&o, &r, &s, &f, &err) != SVS_OK)
        bench_die(err.text);
    fprintf(stderr, "%.2f\n", 1e3 * (bench_cpu() - begin));
    double *scores = calloc((size_t)f.rows, sizeof *scores);
    for (int i = 0; i < test.rows; i++) {
        svi_forest_score(&f, test.x + (size_t)i * (size_t)test.d, scores);
        for (int k = 0; k < f.rows; k++)
            printf("%.9g%c", scores[k], k + 1 < f.rows ? ',' : '\n');
    }
    free(scores);
    svi_boost_scratch_clear(&s);
    svi_forest_clear(&f);
    bench_table_free(&fit);
    bench_table_free(&test);
}

int main(int argc, char **argv) {
    if (argc == 10) {
        bench_fit(argv);
        return 0;
    }
    static const int sizes[][3] = {{200, 8, 2},   {1000, 8, 2},   {5000, 8, 2},   {20000, 8, 2},
                                   {40000, 8, 2}, {5000, 54, 2},  {20000, 54, 2}, {5000, 500, 2},
                                   {5000, 8, 10}, {5000, 54, 10}, {5000, 8, 0},   {20000, 54, 0}};
    char command[4096];
    const char *examples = getenv("SVMSTREAM_EXAMPLES"), *data = getenv("SVMSTREAM_DATA");
    printf("30 rounds of 16 leaves (0 classes: regression)\n%6s %5s %8s %9s %10s %8s %9s %7s\n", "rows", "d",
           "classes", "fit ms", "updates M", "ns", "us a row", "nodes");
    for (size_t i = 0; i < (bench_quick() ? 2 : sizeof sizes / sizeof *sizes); i++)
        bench_speed(sizes[i][0], sizes[i][1], sizes[i][2]);
    fflush(stdout);
    if (!examples || !data)
        return 0;
    snprintf(command, sizeof command, "/usr/bin/python3 '%s/../tests/bench/trees_peer.py' '%s' '%s'",
             examples, argv[0], data);
    return system(command) != 0 ? 1 : bench_end();
}
