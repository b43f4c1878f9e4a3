/* Every figure against its definition, computed from scratch on the stretch it speaks of. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "quality/auc.h"
#include "support/metrics.h"
#include "support/problem.h"

#define STREAM   700
#define ROWS_MAX 12

struct sample {
    int truth, predicted, rows;
    double scores[ROWS_MAX];
    double y, yhat;
};

static uint64_t state = 1;

static double uniform(void) {
    return test_uniform(&state);
}

static double normal(void) {
    return test_normal(&state);
}

static double figure(svi_metrics *m, const char *name) {
    struct svi_figure f[SVI_METRICS_FIGURES];
    int count = svi_metrics_figures(m, f);
    assert_true(count <= SVI_METRICS_FIGURES);
    for (int i = 0; i < count; i++)
        if (strcmp(f[i].name, name) == 0) {
            assert_int_equal(f[i].type, SVI_NUMBER);
            return f[i].as.number;
        }
    fail_msg("no figure is called %s", name);
    return 0;
}

static void same(double got, double expected, double tolerance, const char *name) {
    if (isnan(expected) ? isnan(got) : fabs(got - expected) <= tolerance)
        return;
    fail_msg("%s is %.17g, by definition %.17g", name, got, expected);
}

static double share_of(const struct sample *s, int from, int to, int truth, int predicted) {
    int met = 0;
    for (int i = from; i < to; i++)
        met += (truth < 0 || s[i].truth == truth) && (predicted < 0 || s[i].predicted == predicted);
    return (double)met / (to - from);
}

static double defined_accuracy(const struct sample *s, int from, int to) {
    double hits = 0;
    for (int k = 0; k < ROWS_MAX; k++)
        hits += share_of(s, from, to, k, k);
    return hits;
}

static double defined_kappa(const struct sample *s, int from, int to) {
    double chance = 0;
    for (int k = 0; k < ROWS_MAX; k++)
        chance += share_of(s, from, to, k, -1) * share_of(s, from, to, -1, k);
    return chance < 1 ? (defined_accuracy(s, from, to) - chance) / (1 - chance) : NAN;
}

static double defined_kappa_t(const struct sample *s, int from, int to) {
    double as_before = 0;
    for (int i = from; i < to; i++)
        as_before += i > 0 && s[i].truth == s[i - 1].truth;
    double chance = as_before / (to - from);
    return chance < 1 ? (defined_accuracy(s, from, to) - chance) / (1 - chance) : NAN;
}

static double defined_f1(const struct sample *s, int from, int to) {
    double sum = 0;
    int met = 0;
    for (int k = 0; k < ROWS_MAX; k++) {
        double t = share_of(s, from, to, k, -1), p = share_of(s, from, to, -1, k),
               both = share_of(s, from, to, k, k);
        if (t + p == 0)
            continue;
        double precision = p > 0 ? both / p : 0, recall = t > 0 ? both / t : 0;
        met++;
        sum += precision + recall > 0 ? 2 * precision * recall / (precision + recall) : 0;
    }
    return sum / met;
}

static double defined_auc(const struct sample *s, int from, int to) {
    double right = 0, pairs = 0;
    for (int i = from; i < to; i++)
        for (int j = from; j < to; j++)
            if (s[i].truth == 1 && s[j].truth == 0) {
                pairs++;
                right += s[i].scores[0] > s[j].scores[0] ? 1 : s[i].scores[0] == s[j].scores[0] ? 0.5 : 0;
            }
    return pairs > 0 ? right / pairs : NAN;
}

typedef double definition(const struct sample *s, int from, int to);

static const struct {
    const char *name;
    definition *of;
    double tolerance;
} definitions[] = {
    {"accuracy", defined_accuracy, 1e-12}, {"kappa", defined_kappa, 1e-9},
    {"kappa_t", defined_kappa_t, 1e-9},    {"f1", defined_f1, 1e-12},
    {"auc", defined_auc, 0.002},
};

static void check_stretch(svi_metrics *m, const struct sample *s, int from, int to, const char *suffix,
                          bool two) {
    for (size_t i = 0; i < sizeof definitions / sizeof definitions[0]; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s%s", definitions[i].name, suffix);
        bool undefined = !two && strcmp(definitions[i].name, "auc") == 0;
        double expected = undefined ? NAN : definitions[i].of(s, from, to);
        same(figure(m, name), expected, definitions[i].tolerance, name);
    }
}

/* Feeds the stream; compares at every `step`-th sample. */
static void check_classes(const struct sample *s, int n, int window, int step) {
    svi_metrics *m = metrics_open(SVS_CLASSIFY, window, ROWS_MAX, NULL);
    bool two = true;
    assert_non_null(m);
    for (int i = 0; i < n; i++) {
        svi_metrics_class(m, s[i].truth, s[i].predicted, s[i].scores, s[i].rows);
        two = two && s[i].truth < 2;
        if (i % step != 0 && i != n - 1)
            continue;
        check_stretch(m, s, 0, i + 1, "", two);
        check_stretch(m, s, i + 1 > window ? i + 1 - window : 0, i + 1, ".w", two);
    }
    svi_metrics_free(&m);
    assert_null(m);
}

static void two_classes(struct sample *s, double spread, double shift) {
    for (int i = 0; i < STREAM; i++) {
        s[i] = (struct sample){.truth = uniform() < 0.3 + 0.4 * (i > STREAM / 2), .rows = 1};
        s[i].scores[0] = shift + spread * ((s[i].truth ? 0.6 : -0.6) + normal());
        s[i].predicted = s[i].scores[0] > 0;
    }
    s[0].predicted = s[1].predicted = -1;
    s[0].scores[0] = 0;
}

static void test_two_classes(void **unused) {
    (void)unused;
    static struct sample s[STREAM];
    const int windows[] = {1, 2, 3, 64, 100, 699, 700, 5000};
    two_classes(s, 0.5, 0);
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++)
        check_classes(s, STREAM, windows[i], 37);
}

/* The bins must be fine enough wherever the scores lie. */
static void test_auc_of_narrow_and_wide_scores(void **unused) {
    (void)unused;
    static struct sample s[STREAM];
    const double spread[] = {1e-6, 1e-3, 0.05, 4, 0.02}, shift[] = {0, 0, 0.1, 1, -0.9};
    for (size_t i = 0; i < sizeof spread / sizeof spread[0]; i++) {
        two_classes(s, spread[i], shift[i]);
        check_classes(s, STREAM, 500, STREAM);
    }
}

static void test_ties_count_half(void **unused) {
    (void)unused;
    static struct sample s[STREAM];
    two_classes(s, 0.5, 0);
    for (int i = 0; i < STREAM; i++)
        s[i].scores[0] = i % 3 ? 0.25 : i % 2 ? 0.0 : -0.0;
    check_classes(s, STREAM, 300, 350);
}

/* One class, then a second, then up to twelve; the rows grow with the classes known. */
static void test_classes_that_come_late(void **unused) {
    (void)unused;
    static struct sample s[STREAM];
    int known = 0;
    for (int i = 0; i < STREAM; i++) {
        int classes = 1 + i / 50 < ROWS_MAX ? 1 + i / 50 : ROWS_MAX;
        s[i] = (struct sample){.truth = i % 50 == 0 ? classes - 1 : (int)(uniform() * classes),
                               .rows = known > 2 ? known : 1};
        for (int k = 0; k < s[i].rows; k++)
            s[i].scores[k] = normal() + (k == s[i].truth);
        s[i].predicted = known == 0 ? -1 : (int)(uniform() * known);
        known = s[i].truth >= known ? s[i].truth + 1 : known;
    }
    check_classes(s, STREAM, 90, 11);
    check_classes(s, STREAM, 1000, 50);
}

static double defined_error(const struct sample *s, int from, int to, int power) {
    long double sum = 0;
    for (int i = from; i < to; i++)
        sum += powl(fabsl((long double)s[i].y - s[i].yhat), power);
    return (double)(sum / (to - from));
}

static double defined_r2(const struct sample *s, int from, int to) {
    long double mean = 0, squares = 0;
    for (int i = from; i < to; i++)
        mean += (long double)s[i].y / (to - from);
    for (int i = from; i < to; i++)
        squares += (s[i].y - mean) * (s[i].y - mean);
    return squares > 0 ? (double)(1 - defined_error(s, from, to, 2) * (to - from) / squares) : NAN;
}

static void check_values(const struct sample *s, int n, int window, double tolerance) {
    svi_metrics *m = metrics_open(SVS_REGRESS, window, 1, NULL);
    assert_non_null(m);
    for (int i = 0; i < n; i++) {
        svi_metrics_value(m, s[i].y, s[i].yhat);
        int from = i + 1 > window ? i + 1 - window : 0;
        double scale = 1 + defined_error(s, from, i + 1, 1);
        same(figure(m, "mae"), defined_error(s, 0, i + 1, 1), 1e-9 * (1 + defined_error(s, 0, i + 1, 1)),
             "mae");
        same(figure(m, "rmse.w"), sqrt(defined_error(s, from, i + 1, 2)), tolerance * scale, "rmse.w");
        same(figure(m, "mae.w"), defined_error(s, from, i + 1, 1), tolerance * scale, "mae.w");
        if (i > 0) {
            same(figure(m, "r2"), defined_r2(s, 0, i + 1), 1e-8, "r2");
            same(figure(m, "r2.w"), defined_r2(s, from, i + 1), 1e-8, "r2.w");
        }
    }
    svi_metrics_free(&m);
}

static void test_regression(void **unused) {
    (void)unused;
    static struct sample s[STREAM];
    for (int i = 0; i < STREAM; i++)
        s[i].yhat = (s[i].y = 1e5 + 3 * normal()) + normal();
    check_values(s, STREAM, 64, 1e-12);
    check_values(s, STREAM, 10 * STREAM, 1e-12);
}

/* An outlier leaves no rounding behind once it has left the window. */
static void test_outlier_leaves_no_trace(void **unused) {
    (void)unused;
    static struct sample s[STREAM];
    for (int i = 0; i < STREAM; i++)
        s[i].yhat = (s[i].y = normal()) + normal();
    s[100].y = 1e12;
    svi_metrics *m = metrics_open(SVS_REGRESS, 50, 1, NULL);
    for (int i = 0; i < STREAM; i++) {
        svi_metrics_value(m, s[i].y, s[i].yhat);
        if (i < 150)
            continue;
        same(figure(m, "rmse.w"), sqrt(defined_error(s, i - 49, i + 1, 2)), 1e-12, "rmse.w");
        same(figure(m, "r2.w"), defined_r2(s, i - 49, i + 1), 1e-12, "r2.w");
    }
    svi_metrics_free(&m);
}

static void test_nothing_known_yet(void **unused) {
    (void)unused;
    const svs_task tasks[] = {SVS_CLASSIFY, SVS_REGRESS};
    for (int t = 0; t < 2; t++) {
        struct svi_figure f[SVI_METRICS_FIGURES];
        svi_metrics *m = metrics_open(tasks[t], 10, 4, NULL);
        int count = svi_metrics_figures(m, f);
        assert_int_equal(count, t == 0 ? 12 : 6);
        for (int i = 0; i < count; i++)
            assert_true(isnan(f[i].as.number));
        svi_metrics_free(&m);
    }
}

static void test_reset_starts_over(void **unused) {
    (void)unused;
    static struct sample s[STREAM];
    struct svi_figure once[SVI_METRICS_FIGURES], again[SVI_METRICS_FIGURES];
    two_classes(s, 0.5, 0);
    svi_metrics *m = metrics_open(SVS_CLASSIFY, 100, 4, NULL);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 333; i++)
            svi_metrics_class(m, s[i].truth, s[i].predicted, s[i].scores, 1);
        svi_metrics_figures(m, round ? again : once);
        svi_metrics_reset(m);
    }
    for (int i = 0; i < 12; i++)
        assert_memory_equal(&once[i].as.number, &again[i].as.number, sizeof once[i].as.number);
    assert_true(isnan(figure(m, "accuracy")));
    assert_true(isnan(figure(m, "auc")));
    svi_metrics_free(&m);
}

static void test_bad_arguments(void **unused) {
    (void)unused;
    svs_error err;
    const int window[] = {0, 10, 10}, classes[] = {4, 0, 70000};
    for (int i = 0; i < 3; i++) {
        err.code = SVS_OK;
        assert_null(metrics_open(SVS_CLASSIFY, window[i], classes[i], &err));
        assert_int_equal(err.code, SVS_INVALID);
    }
    svi_metrics *m = metrics_open(SVS_CLASSIFY, 10, 4, NULL);
    double score = NAN;
    svi_metrics_class(m, 4, 0, &score, 1); /* a class too many and a value do nothing */
    svi_metrics_class(m, -1, 0, &score, 1);
    svi_metrics_value(m, 1, 1);
    assert_true(isnan(figure(m, "accuracy")));
    svi_metrics_free(&m);
    svi_metrics_free(&m);
}

static void test_bins_are_monotone(void **unused) {
    (void)unused;
    const double ends[] = {-INFINITY, -1e300, -0.0, 0.0, 5e-324, 1e300, INFINITY};
    for (int i = 0; i < 7; i++)
        assert_in_range(svi_auc_bin(ends[i]), 0, SVI_AUC_BINS - 1);
    assert_int_equal(svi_auc_bin(-0.0), svi_auc_bin(0.0));
    for (int i = 0; i < 100000; i++) {
        double a = normal() * pow(10, 8 * normal()), b = i % 2 ? a * (1 + 0.01 * normal()) : normal();
        if (a < b)
            assert_true(svi_auc_bin(a) <= svi_auc_bin(b));
        else
            assert_true(svi_auc_bin(a) >= svi_auc_bin(b));
    }
    assert_true(svi_auc_bin(1) < svi_auc_bin(1.01));
    assert_true(svi_auc_bin(-1.01) < svi_auc_bin(-1));
}

/* Equal counts scaled by any factor have one area, also beyond what whole numbers can multiply. */
static void test_area_of_endless_streams(void **unused) {
    (void)unused;
    static struct svi_auc few, many;
    for (int i = 0; i < 20000; i++) {
        int positive = i % 3 == 0, bin = svi_auc_bin(0.2 * normal() + 0.1 * positive);
        few.count[bin][positive]++;
        many.count[bin][positive] += INT64_C(1) << 40;
        few.touched[bin / SVI_AUC_BLOCK] = many.touched[bin / SVI_AUC_BLOCK] = 1;
    }
    assert_in_range((int)(1000 * svi_auc_area(&few)), 600, 700);
    assert_float_equal(svi_auc_area(&many), svi_auc_area(&few), 1e-12);
}

static double memory_of(svs_task task, int64_t window, int max_classes) {
    const struct svi_metrics_options o = metrics_whole(task, window, max_classes);
    return svi_metrics_memory(&o, 2);
}

static void test_memory_grows_with_what_is_held(void **unused) {
    (void)unused;
    const double small = memory_of(SVS_CLASSIFY, 1000, 2), more = memory_of(SVS_CLASSIFY, 2000, 2);
    assert_true(more - small >= 1000 * 8 && more - small <= 1000 * 64);
    assert_true(memory_of(SVS_CLASSIFY, 1000, 100) > small);
    assert_true(memory_of(SVS_REGRESS, 1000, 2) < memory_of(SVS_REGRESS, 2000, 2));
}

/* The quality of a stretch is the difference of two sums, whatever the window is. */
static void test_sums_of_a_stretch(void **unused) {
    (void)unused;
    svi_metrics *m = metrics_open(SVS_CLASSIFY, 3, 2, NULL), *v = metrics_open(SVS_REGRESS, 3, 1, NULL);
    const double score = 1;
    struct svi_metrics_sums a, b;
    for (int i = 0; i < 10; i++) {
        if (i == 4) {
            a = svi_metrics_sums(m);
            b = svi_metrics_sums(v);
        }
        svi_metrics_class(m, i % 2, i < 7, &score, 1);
        svi_metrics_value(v, i, 0);
    }
    const struct svi_metrics_sums c = svi_metrics_sums(m), d = svi_metrics_sums(v);
    assert_int_equal(c.judged - a.judged, 6);
    assert_int_equal(c.right - a.right, 2); /* rows 5 and 8 */
    assert_int_equal(d.judged - b.judged, 6);
    assert_true(d.squares - b.squares == 16 + 25 + 36 + 49 + 64 + 81);
    svi_metrics_reset(m);
    assert_true(svi_metrics_sums(m).began == c.began + 1 && svi_metrics_sums(m).judged == 0);
    svi_metrics_free(&m);
    svi_metrics_free(&v);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_classes),
        cmocka_unit_test(test_auc_of_narrow_and_wide_scores),
        cmocka_unit_test(test_ties_count_half),
        cmocka_unit_test(test_classes_that_come_late),
        cmocka_unit_test(test_regression),
        cmocka_unit_test(test_outlier_leaves_no_trace),
        cmocka_unit_test(test_nothing_known_yet),
        cmocka_unit_test(test_reset_starts_over),
        cmocka_unit_test(test_bad_arguments),
        cmocka_unit_test(test_bins_are_monotone),
        cmocka_unit_test(test_area_of_endless_streams),
        cmocka_unit_test(test_sums_of_a_stretch),
        cmocka_unit_test(test_memory_grows_with_what_is_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
