/* novelty_sets.h: the anomaly sets, split as the peers' figures are: ODDS shuffled with a fixed seed, half of
 * the normal rows to train on; streams in their order, the first 30 % to train on. And how well scores tell
 * the anomalous rows from the normal ones. */
#ifndef BENCH_NOVELTY_SETS_H
#define BENCH_NOVELTY_SETS_H

#include <math.h>

#include "base/random.h"
#include "bench/bench.h"
#include "features/table.h"
#include "novelty/lags.h"
#include "svmstream/novelty.h"

struct nov_set {
    int d;
    int64_t n, train; /* rows; the first `train` are to train on */
    double *x;        /* n x d */
    uint8_t *y;       /* 1 = anomalous */
};

static inline svs_rows nov_rows(const struct nov_set *s, int64_t first, int64_t count) {
    return (svs_rows){.n = count, .d = s->d, .dense = s->x + first * s->d, .stride = s->d};
}

static inline void nov_free(struct nov_set *s) {
    free(s->x);
    free(s->y);
}

/* A permutation of 0 .. n - 1. */
static inline int64_t *nov_permutation(int64_t n, uint64_t seed) {
    struct svi_random random = {seed};
    int64_t *order = malloc((size_t)n * sizeof *order);
    for (int64_t i = 0; i < n; i++) {
        const int64_t j = svi_random_below(&random, (uint32_t)(i + 1));
        order[i] = order[j];
        order[j] = i;
    }
    return order;
}

/* False: it is not there. Label 1, or the last class, is anomalous unless `normal` names another: kdd99. */
static inline bool nov_read(struct nov_set *s, const char *name, const char *label, int anomalous) {
    const bool timed = strncmp(name, "odds", 4) != 0 && strncmp(name, "kdd", 3) != 0;
    const struct svi_table_options o = {
        .reader = {.format = "auto", .label = label, .ts = timed ? "t" : NULL, .label_required = true},
        .max_features = 1000};
    const char *folder = getenv("SVMSTREAM_DATA");
    struct svi_table table;
    char path[600];
    svs_error err;
    snprintf(path, sizeof path, "%s/%s.csv.gz", folder ? folder : "data", name);
    if (access(path, R_OK) != 0)
        return false;
    if (svi_table_read(&table, path, &o, &err) != SVS_OK)
        bench_die(err.text);
    const svs_examples *e = &table.examples;
    *s = (struct nov_set){.d = e->rows.d, .n = e->rows.n};
    s->x = malloc((size_t)(s->n * s->d) * sizeof *s->x);
    s->y = malloc((size_t)s->n);
    for (int64_t i = 0; i < s->n; i++) {
        svs_rows_copy(&e->rows, i, s->x + i * s->d);
        s->y[i] = e->classes[e->label[i]].as.i == anomalous;
    }
    svi_table_clear(&table);
    return true;
}

static inline void nov_take(struct nov_set *s, const int64_t *order, int64_t count) {
    if (count < 1)
        bench_die("no rows to take");
    double *x = calloc((size_t)count, (size_t)s->d * sizeof *x);
    uint8_t *y = calloc((size_t)count, 1);
    for (int64_t i = 0; i < count; i++) {
        memcpy(x + i * s->d, s->x + order[i] * s->d, (size_t)s->d * sizeof *x);
        y[i] = s->y[order[i]];
    }
    nov_free(s);
    s->x = x;
    s->y = y;
    s->n = count;
}

/* `train` normal rows drawn at random come first, then at most `test` of the other rows, in an order drawn
 * anew: in the first one they would begin with the anomalous rows among the normal ones that were taken. */
static inline void nov_shuffle(struct nov_set *s, int64_t train, int64_t test) {
    int64_t *order = nov_permutation(s->n, 1), *again = nov_permutation(s->n, 2);
    int64_t *split = calloc((size_t)s->n, sizeof *split), n = 0;
    bool *taken = calloc((size_t)s->n, sizeof *taken);
    for (int64_t i = 0; i < s->n && n < train; i++)
        if (!s->y[order[i]]) {
            taken[order[i]] = true;
            split[n++] = order[i];
        }
    s->train = n;
    for (int64_t i = 0; i < s->n && n < train + test; i++)
        if (!taken[again[i]])
            split[n++] = again[i];
    nov_take(s, split, n);
    free(order);
    free(again);
    free(split);
    free(taken);
}

static inline int64_t nov_normal(const struct nov_set *s) {
    int64_t normal = 0;
    for (int64_t i = 0; i < s->n; i++)
        normal += !s->y[i];
    return normal;
}

/* Rows of the last `lags` samples; the first ones, which have no past, are left out. */
static inline void nov_lag(struct nov_set *s, int lags) {
    struct svi_lags history;
    svs_error err;
    const int wide = s->d * lags;
    double *x = malloc((size_t)(s->n * wide) * sizeof *x);
    int64_t n = 0;
    if (svi_lags_init(&history, s->d, lags, false, &err) != SVS_OK)
        bench_die(err.text);
    for (int64_t i = 0; i < s->n; i++)
        if (svi_lags_push(&history, s->x + i * s->d, x + n * wide))
            s->y[n++] = s->y[i];
    svi_lags_clear(&history);
    free(s->x);
    s->x = x;
    s->d = wide;
    s->n = n;
}

static inline bool nov_load(struct nov_set *s, const char *name, int lags) {
    if (!nov_read(s, name, "is_anomaly", 1))
        return false;
    if (strncmp(name, "odds", 4) == 0)
        nov_shuffle(s, nov_normal(s) / 2, s->n);
    else if (lags > 1)
        nov_lag(s, lags);
    if (strncmp(name, "odds", 4) != 0)
        s->train = (int64_t)(0.3 * (double)s->n);
    return true;
}

/* Columns to mean 0 and deviation 1 over the first `train` rows: what peers without scaling need. */
static inline void nov_standardise(struct nov_set *s) {
    for (int j = 0; j < s->d; j++) {
        double mean = 0, squares = 0;
        for (int64_t i = 0; i < s->train; i++) {
            const double gap = s->x[i * s->d + j] - mean;
            mean += gap / (double)(i + 1);
            squares += gap * (s->x[i * s->d + j] - mean);
        }
        const double deviation = sqrt(squares / (double)s->train);
        for (int64_t i = 0; i < s->n; i++)
            s->x[i * s->d + j] = (s->x[i * s->d + j] - mean) / (deviation > 1e-12 ? deviation : 1);
    }
}

/* As scikit-learn's gamma='scale' over the first `count` rows. */
static inline double nov_scale_gamma(const struct nov_set *s, int64_t count) {
    double mean = 0, squares = 0, n = 0;
    for (int64_t i = 0; i < count * s->d; i++) {
        const double gap = s->x[i] - mean;
        mean += gap / ++n;
        squares += gap * (s->x[i] - mean);
    }
    return n / (s->d * squares);
}

struct nov_quality {
    double auc, precision; /* area under the ROC curve; average precision */
};

struct nov_scored {
    double score;
    uint8_t y;
};

static inline int nov_falling(const void *a, const void *b) {
    const double x = ((const struct nov_scored *)a)->score, y = ((const struct nov_scored *)b)->score;
    return (x < y) - (x > y);
}

/* Of n scores, higher = more anomalous; equal ones count half. */
static inline struct nov_quality nov_judge(const double *score, const uint8_t *y, int64_t n) {
    struct nov_scored *all = malloc((size_t)n * sizeof *all);
    struct nov_quality q = {0, 0};
    double found = 0, taken = 0;
    for (int64_t i = 0; i < n; i++)
        all[i] = (struct nov_scored){score[i], y[i]};
    qsort(all, (size_t)n, sizeof *all, nov_falling);
    for (int64_t i = 0; i < n;) {
        double hits = 0, misses = 0;
        const double level = all[i].score;
        for (; i < n && all[i].score == level; i++) {
            hits += all[i].y;
            misses += !all[i].y;
        }
        q.auc += misses * (found + hits / 2);
        found += hits;
        taken += hits + misses;
        q.precision += hits * found / taken;
    }
    q.auc /= found * (taken - found);
    q.precision /= found;
    free(all);
    return q;
}

#endif
