/* Figures of classes, baselines and the confusion matrix against their definitions, computed from scratch
 * from the list of (truth, decision) or (target, prediction). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "quality/auc.h"
#include "quality/class_figures.h"
#include "quality/quality_figures.h"
#include "support/archived.h"
#include "support/metrics.h"
#include "support/quick.h"
#include "support/problem.h"

enum { STREAM = 900, CLASSES = 7 };

static uint64_t state = 1;

static double uniform(void) {
    return test_uniform(&state);
}

static double normal(void) {
    return test_normal(&state);
}

static void near(double got, double expected, double tolerance, const char *name, int at) {
    if (isnan(expected) ? isnan(got) : fabs(got - expected) <= tolerance)
        return;
    fail_msg("%s after %d is %.17g, by definition %.17g", name, at, got, expected);
}

struct walk {
    svs_task task;
    int64_t window;
    int max_classes, known;
    svi_metrics *metrics;
    svi_quality_figures *figures;
    int truth[STREAM], predicted[STREAM], begin, count; /* begin: of what a reset has left */
    double y[STREAM], yhat[STREAM];
};

static void walk_begin(struct walk *w, svs_task task, int64_t window, int max_classes) {
    memset(w, 0, sizeof *w);
    w->task = task;
    w->window = window;
    w->max_classes = max_classes;
    w->metrics = metrics_open(task, window, max_classes, NULL);
    w->figures = svi_quality_figures_new(task, window, max_classes, false, NULL);
    assert_non_null(w->metrics);
    assert_non_null(w->figures);
    svi_quality_figures_level(w->figures, 0.9);
}

static void walk_end(struct walk *w) {
    svi_metrics_free(&w->metrics);
    svi_quality_figures_free(&w->figures);
}

static void walk_reset(struct walk *w) {
    svi_metrics_reset(w->metrics);
    svi_quality_figures_reset(w->figures);
    w->begin = w->count;
}

static void archive_figures(struct svi_archive *a, void *f) {
    svi_quality_figures_archive(a, f);
}

static void archive_metrics(struct svi_archive *a, void *m) {
    svi_metrics_archive(a, m);
}

/* Both go on as others that were loaded from their bytes; bytes that are cut off are refused. */
static void walk_archive(struct walk *w) {
    struct svi_bytes bytes = {0}, again = {0};
    svs_error err = {0};
    svi_quality_figures *f = svi_quality_figures_new(w->task, w->window, w->max_classes, false, NULL);
    svi_metrics *m = metrics_open(w->task, w->window, w->max_classes, NULL);
    svi_quality_figures_level(f, 0.9);
    assert_int_equal(archived_save(archive_figures, w->figures, &bytes, &err), SVS_OK);
    for (size_t size = 0; size < bytes.size; size += 37)
        assert_int_not_equal(archived_load(archive_figures, f, bytes.data, size, &err), SVS_OK);
    err = (svs_error){0};
    assert_int_equal(archived_load(archive_figures, f, bytes.data, bytes.size, &err), SVS_OK);
    assert_int_equal(archived_save(archive_figures, f, &again, &err), SVS_OK);
    assert_true(archived_same(&bytes, &again));
    assert_int_equal(archived_save(archive_metrics, w->metrics, &bytes, &err), SVS_OK);
    assert_int_equal(archived_load(archive_metrics, m, bytes.data, bytes.size, &err), SVS_OK);
    svi_bytes_clear(&bytes);
    svi_bytes_clear(&again);
    walk_end(w);
    w->metrics = m;
    w->figures = f;
}

static int walk_from(const struct walk *w, bool window) {
    const int from = w->count - (int)w->window;
    return window && from > w->begin ? from : w->begin;
}

/* ---- classes by definition */

static void count_by_definition(const struct walk *w, bool window, struct svi_class_count *c) {
    memset(c, 0, (size_t)w->max_classes * sizeof *c);
    for (int i = walk_from(w, window); i < w->count; i++) {
        c[w->truth[i]].support++;
        c[w->truth[i]].hits += w->predicted[i] == w->truth[i];
        if (w->predicted[i] >= 0)
            c[w->predicted[i]].predicted++;
    }
}

static double figure_of(struct walk *w, const char *name, bool window) {
    struct svi_figure f[SVI_QUALITY_FIGURES];
    char full[40];
    const int count = svi_quality_figures_list(w->figures, w->metrics, w->known, f);
    assert_true(count <= SVI_QUALITY_FIGURES);
    snprintf(full, sizeof full, "%s%s", name, window ? ".w" : "");
    assert_non_null(svi_figure_find(f, count, full));
    return svi_figure_value(f, count, full);
}

static void check_averages(struct walk *w, bool window) {
    struct svi_class_count c[CLASSES];
    double precision = 0, recall = 0, weighted_precision = 0, weighted_f1 = 0, product = 1, balanced = 0;
    double n = 0, met = 0, labels = 0, commonest = 0, same = 0;
    count_by_definition(w, window, c);
    for (int k = 0; k < w->max_classes; k++) {
        const double hits = (double)c[k].hits, support = (double)c[k].support,
                     predicted = (double)c[k].predicted;
        const double p = predicted > 0 ? hits / predicted : 0, r = support > 0 ? hits / support : 0;
        n += support;
        met += support + predicted > 0;
        labels += support > 0;
        precision += p;
        recall += r;
        weighted_precision += support * p;
        weighted_f1 += p + r > 0 ? support * 2 * p * r / (p + r) : 0;
        product *= support > 0 ? r : 1;
        balanced += r;
        commonest = fmax(commonest, support);
    }
    for (int i = walk_from(w, window); i < w->count; i++)
        same += i > w->begin && w->truth[i] == w->truth[i - 1];
    const int at = w->count;
    near(figure_of(w, "precision_macro", window), precision / met, 1e-12, "precision_macro", at);
    near(figure_of(w, "recall_macro", window), recall / met, 1e-12, "recall_macro", at);
    near(figure_of(w, "precision_weighted", window), weighted_precision / n, 1e-12, "precision_weighted", at);
    near(figure_of(w, "f1_weighted", window), weighted_f1 / n, 1e-12, "f1_weighted", at);
    near(figure_of(w, "balanced_accuracy", window), balanced / labels, 1e-12, "balanced_accuracy", at);
    near(figure_of(w, "gmean", window), n > 0 ? pow(product, 1 / labels) : NAN, 1e-12, "gmean", at);
    near(figure_of(w, "accuracy_majority", window), commonest / n, 1e-12, "accuracy_majority", at);
    near(figure_of(w, "accuracy_no_change", window), same / n, 1e-12, "accuracy_no_change", at);
}

static void check_table(struct walk *w) {
    struct svi_class_count c[CLASSES], all[CLASSES], recent[CLASSES];
    int64_t matrix[CLASSES * CLASSES] = {0}, got[CLASSES * CLASSES];
    svi_metrics_class_counts(w->metrics, w->max_classes, all, recent);
    for (int window = 0; window < 2; window++) {
        count_by_definition(w, window, c);
        assert_memory_equal(c, window ? recent : all, sizeof c);
    }
    for (int i = walk_from(w, true); i < w->count; i++)
        if (w->predicted[i] >= 0)
            matrix[w->truth[i] * CLASSES + w->predicted[i]]++;
    svi_metrics_confusion(w->metrics, CLASSES, got);
    assert_memory_equal(matrix, got, sizeof matrix);
}

static void check_standing(struct walk *w) {
    const struct svi_standing s = svi_quality_figures_standing(w->figures, w->metrics, w->known);
    struct svi_class_count c[CLASSES];
    double same = 0, same2 = 0, common = 0, common2 = 0, pairs = 1;
    int best = -1;
    const double n = w->count - w->begin;
    count_by_definition(w, false, c);
    for (int k = 0; k < w->max_classes; k++)
        best = c[k].support > (best < 0 ? 0 : c[best].support) ? k : best;
    assert_int_equal(s.commonest_class, best);
    assert_int_equal(s.same.n, w->count - w->begin);
    if (best < 0)
        return;
    for (int i = w->begin; i < w->count; i++) {
        const int hit = w->predicted[i] == w->truth[i];
        const double a = hit - (i > w->begin && w->truth[i] == w->truth[i - 1]),
                     b = hit - (w->truth[i] == best);
        pairs += a != 0;
        same += a / n;
        same2 += a * a / n;
        common += b / n;
        common2 += b * b / n;
    }
    near(s.same.by, same, 1e-12, "advantage over the same", w->count);
    /* Pairs of which one alone is right, and half a one of each kind more. */
    const double m = n + 2, less = -same * n / m;
    near(svi_quality_figures_worse(w->figures), less - 1.96 * sqrt((pairs / m - less * less) / m), 1e-9,
         "at least worse than the same", w->count);
    near(s.same.error, sqrt((same2 - same * same) / n), 1e-9, "its error", w->count);
    near(s.commonest.by, common, 1e-12, "advantage over the commonest", w->count);
    near(s.commonest.error, sqrt(fmax(0, common2 - common * common) / n), 1e-7, "its error", w->count);
}

static void class_step(struct walk *w) {
    const int i = w->count++, best = (int)(uniform() * uniform() * w->known);
    if (w->known < CLASSES && uniform() < 0.02)
        w->known++;
    w->truth[i] = uniform() < 0.4 && i > 0 ? w->truth[i - 1] : best;
    w->predicted[i] = i == w->begin || uniform() < 0.02 ? -1
                      : uniform() < 0.6                 ? w->truth[i]
                                                        : (int)(uniform() * w->known);
    const double scores[CLASSES] = {0};
    const svs_step step = {.scores = scores,
                           .rows = CLASSES,
                           .class_count = w->known,
                           .label = w->truth[i],
                           .predicted = w->predicted[i],
                           .target = NAN};
    svi_metrics_class(w->metrics, step.label, step.predicted, scores, CLASSES);
    svi_quality_figures_update(w->figures, &step);
}

static void test_classes(void **unused) {
    (void)unused;
    static struct walk w;
    static const int windows[] = {1, 10, 97, 2000};
    for (int k = 0; k < 4; k++) {
        walk_begin(&w, SVS_CLASSIFY, windows[k], CLASSES);
        w.known = 1;
        check_averages(&w, false); /* nothing is known yet */
        check_standing(&w);
        while (w.count < STREAM) {
            class_step(&w);
            if (w.count == 400)
                walk_reset(&w);
            if (w.count % often(13, 61) == 0) {
                check_averages(&w, false);
                check_averages(&w, true);
                check_table(&w);
                check_standing(&w);
            }
            if (w.count % 250 == 0)
                walk_archive(&w);
        }
        walk_end(&w);
    }
}

/* ---- the matrix of all */

static void archive_confusion(struct svi_archive *a, void *c) {
    svi_confusion_archive(a, c);
}

static void test_confusion(void **unused) {
    (void)unused;
    static int64_t got[SVI_CONFUSION_MAX * SVI_CONFUSION_MAX];
    int64_t expected[5][5] = {{0}};
    struct svi_bytes bytes = {0};
    svs_error err = {0};
    svi_confusion *c = svi_confusion_new(300, false, &err), *d = svi_confusion_new(300, true, &err);
    assert_true(c && d);
    svi_confusion_add(d, 2, 0); /* beyond its capacity so far */
    assert_false(svi_confusion_matrix(d, 2, got));
    for (int i = 0; i < 500; i++) {
        const int truth = (int)(5 * uniform()), predicted = (int)(6 * uniform()) - 1;
        svi_confusion_add(c, truth, predicted);
        if (predicted >= 0)
            expected[truth][predicted]++;
    }
    assert_true(svi_confusion_matrix(c, 5, got));
    assert_memory_equal(got, expected, sizeof expected);
    assert_int_equal(archived_save(archive_confusion, c, &bytes, &err), SVS_OK);
    assert_int_equal(archived_load(archive_confusion, d, bytes.data, bytes.size, &err), SVS_OK);
    memset(got, 0, sizeof got);
    assert_true(svi_confusion_matrix(d, 5, got));
    assert_memory_equal(got, expected, sizeof expected);
    assert_false(svi_confusion_matrix(c, SVI_CONFUSION_MAX + 1, got));
    svi_confusion_add(c, SVI_CONFUSION_MAX, 0); /* one class too many: it is not kept any more */
    assert_false(svi_confusion_matrix(c, 5, got));
    svi_confusion_reset(c);
    assert_true(svi_confusion_matrix(c, 5, got));
    svi_confusion_free(&c);
    svi_confusion_free(&d);
    svi_bytes_clear(&bytes);
}

/* ---- area under precision and recall */

struct scored {
    double score;
    int truth;
};

static int descending(const void *a, const void *b) {
    const double x = ((const struct scored *)a)->score, y = ((const struct scored *)b)->score;
    return (x < y) - (x > y);
}

/* A threshold at each score. */
static double exact_precision(struct scored *s, int n) {
    double sum = 0, positives = 0;
    qsort(s, (size_t)n, sizeof *s, descending);
    for (int i = 0, seen = 0; i < n;) {
        int here = 0;
        const double score = s[i].score;
        for (; i < n && s[i].score == score; i++, seen++)
            here += s[i].truth;
        positives += here;
        sum += here * positives / seen;
    }
    return sum / positives;
}

static void test_average_precision(void **unused) {
    (void)unused;
    static struct scored s[20000];
    static struct svi_auc r;
    const int n = often(20000, 2000);
    for (int rare = 0; rare < 2; rare++)
        for (int digits = 0; digits < 2; digits++) {
            r = (struct svi_auc){0};
            assert_true(isnan(svi_auc_precision(&r)));
            for (int i = 0; i < n; i++) {
                s[i].truth = uniform() < (rare ? 0.01 : 0.4);
                s[i].score = normal() * 0.3 + (s[i].truth ? 0.4 : -0.2);
                if (digits) /* of a bin's own width: nothing is tied that was not */
                    s[i].score = floor(s[i].score * 8) / 8;
                const int bin = svi_auc_bin(s[i].score);
                r.count[bin][s[i].truth]++;
                r.touched[bin / SVI_AUC_BLOCK] = 1;
            }
            near(svi_auc_precision(&r), exact_precision(s, n),
                 digits ? 1e-12
                 : rare ? 0.005
                        : 0.001,
                 "ap", rare);
        }
}

/* ---- regression */

static void check_values(struct walk *w) {
    const struct svi_standing s = svi_quality_figures_standing(w->figures, w->metrics, 0);
    /* Freedom and the quantile of Student's t for 0.975. */
    static const double student[][2] = {{1, 12.706}, {2, 4.303},  {3, 3.182},
                                        {5, 2.571},  {10, 2.228}, {30, 2.042}};
    double gain[2] = {0}, square[2] = {0}, n = 0, all = 0;
    for (int window = 0; window < 2; window++) {
        double same = 0, mean = 0, total = 0, m = 0;
        int from = walk_from(w, window);
        for (int i = w->begin; i < w->count; i++) {
            const double a = w->y[i] - (i > w->begin ? w->y[i - 1] : 0), b = w->y[i] - total / (i - w->begin),
                         own = (w->y[i] - w->yhat[i]) * (w->y[i] - w->yhat[i]);
            if (i > w->begin && i >= from) {
                same += a * a;
                mean += b * b;
                m++;
            }
            if (i > w->begin && !window) {
                all += a * a + own;
                gain[0] += a * a - own;
                square[0] += (a * a - own) * (a * a - own);
                gain[1] += b * b - own;
                square[1] += (b * b - own) * (b * b - own);
                n++;
            }
            total += w->y[i];
        }
        near(figure_of(w, "rmse_no_change", window), sqrt(same / m), 1e-9, "rmse_no_change", w->count);
        near(figure_of(w, "rmse_mean", window), sqrt(mean / m), 1e-9, "rmse_mean", w->count);
    }
    if (n < 2)
        return;
    near(s.same.by, gain[0] / n, 1e-9, "gain on the same", w->count);
    near(s.same.error, sqrt((square[0] / n - gain[0] / n * gain[0] / n) / (n - 1)), 1e-6, "its error",
         w->count);
    for (int i = 0; i < 6; i++)
        if (n - 1 == student[i][0]) {
            const double error = n * s.same.error / all;
            near(svi_quality_figures_worse(w->figures), -gain[0] / all - student[i][1] * error,
                 0.04 * student[i][1] * error, "at least worse than the same", w->count);
        }
    near(s.mean.by, gain[1] / n, 1e-9, "gain on the mean", w->count);
    assert_int_equal(s.mean.n, n);
    assert_int_equal(s.commonest_class, -1);
}

static void test_values(void **unused) {
    (void)unused;
    static struct walk w;
    static const int windows[] = {1, 10, 97, 2000};
    for (int k = 0; k < 4; k++) {
        walk_begin(&w, SVS_REGRESS, windows[k], 2);
        assert_true(isnan(figure_of(&w, "rmse_no_change", false)) && isnan(figure_of(&w, "coverage", true)));
        while (w.count < STREAM) {
            const int i = w.count++;
            w.y[i] = (i > 0 ? 0.9 * w.y[i - 1] : 3) + normal();
            w.yhat[i] = w.y[i] + 0.5 * normal();
            const svs_step step = {.scores = &w.yhat[i],
                                   .rows = 1,
                                   .label = -1,
                                   .predicted = -1,
                                   .target = w.y[i],
                                   .leverage = 0.01};
            svi_metrics_value(w.metrics, w.y[i], w.yhat[i]);
            svi_quality_figures_update(w.figures, &step);
            if (w.count == 400)
                walk_reset(&w);
            if (w.count % often(13, 61) == 0 || (w.count - w.begin > 1 && w.count - w.begin < 35))
                check_values(&w);
            if (w.count % 250 == 0)
                walk_archive(&w);
        }
        assert_true(fabs(figure_of(&w, "coverage", false) - 0.9) < 0.05);
        walk_end(&w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_confusion),
        cmocka_unit_test(test_average_precision),
        cmocka_unit_test(test_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
