/* What a plot of alerts collects: bounded whatever comes, without losing ends, features or open alerts. And
 * which keys are the worst. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "report/alert_log.h"

static void add_row(struct svi_alert_plot *p, double at, const double *x, int d, const uint8_t *gaps) {
    struct svi_event e = {.topic = SVI_TOPIC_SCORE};
    e.as.score.x = x;
    e.as.score.d = d;
    e.as.score.gaps = gaps;
    svi_alert_plot_add(p, at, &e);
}

static struct svi_alert_event opened(int64_t number, const struct svi_contribution *top) {
    return (struct svi_alert_event){
        .kind = "rule", .alert = number, .state = "open", .top = top, .count = top ? 1 : 0, .text = ""};
}

/* However many alerts of however many features: at most SVI_ALERT_PLOT_MARKS, in order, with one of each
 * feature, and the last one is there and can be closed. */
static void test_marks(void **state) {
    (void)state;
    const int features[] = {1, 3, SVI_ALERT_PLOT_COLUMNS, 2 * SVI_ALERT_PLOT_COLUMNS};
    for (size_t k = 0; k < sizeof features / sizeof *features; k++) {
        struct svi_alert_plot *p = svi_alloc(sizeof *p);
        double x[SVI_ALERT_PLOT_COLUMNS] = {0};
        bool found[SVI_ALERT_PLOT_COLUMNS + 1] = {false};
        assert_non_null(p);
        for (int i = 0; i < 20000; i++) {
            const struct svi_contribution top = {.column = i % features[k], .value = i, .low = 0, .high = 1};
            const struct svi_alert_event a = opened(i + 1, &top);
            add_row(p, i, x, SVI_ALERT_PLOT_COLUMNS, NULL);
            svi_alert_plot_mark(p, i, &a);
            assert_true(p->mark_count <= SVI_ALERT_PLOT_MARKS);
            svi_alert_plot_close(p, i + 0.5, i + 1);
            assert_true(p->mark[p->mark_count - 1].alert == i + 1);
            assert_true(p->mark[p->mark_count - 1].until == i + 0.5);
        }
        for (int i = 0; i < p->mark_count; i++) {
            assert_true(i == 0 || p->mark[i].at >= p->mark[i - 1].at);
            assert_true(p->mark[i].until >= p->mark[i].at);
            found[p->mark[i].column + 1] = true;
        }
        for (int j = 0; j < features[k] && j < SVI_ALERT_PLOT_COLUMNS; j++)
            assert_true(found[j + 1]);
        assert_true(p->mark[0].at == 0);
        svi_free(p);
    }
}

/* A missing value is not drawn, whatever stands in for it; extremes survive any number of rows. */
static void test_stretches(void **state) {
    (void)state;
    const uint8_t gaps[] = {0, 1};
    struct svi_alert_plot *p = svi_alloc(sizeof *p);
    float low = INFINITY, high = -INFINITY;
    assert_non_null(p);
    for (int i = 0; i < 50000; i++) {
        const double x[] = {i == 31234 ? 99 : i % 7, 5};
        add_row(p, i, x, 2, gaps);
    }
    for (int i = 0; i < p->count; i++) {
        low = fminf(low, p->of[i].low[0]);
        high = fmaxf(high, p->of[i].high[0]);
        assert_true(isnan(p->of[i].low[1]) && isnan(p->of[i].high[1]));
    }
    assert_true(p->count <= SVI_ALERT_PLOT_POINTS && low == 0 && high == 99);
    svi_free(p);
}

static void report(struct svi_alert_log *l, const char *key, const char *state, const char *severity) {
    struct svi_event e = {.topic = SVI_TOPIC_ALERT, .key = key, .ts = 1};
    e.as.alert = opened(1, NULL);
    e.as.alert.state = state;
    e.as.alert.severity = severity;
    svi_alert_log_take(l, &e);
}

static void test_worst(void **state) {
    (void)state;
    struct svi_alert_log l = {.rows = 0};
    const char *keys[8];
    assert_int_equal(svi_alert_log_worst(&l, keys, 8), 0);
    snprintf(l.first_key, sizeof l.first_key, "first");
    assert_int_equal(svi_alert_log_worst(&l, keys, 8), 1);
    assert_string_equal(keys[0], "first");
    for (int i = 0; i < 5; i++)
        report(&l, "many", "open", "notice");
    report(&l, "early", "open", "notice");
    report(&l, "late", "open", "notice");
    report(&l, "warned", "open", "warning");
    report(&l, "grave", "open", "notice");
    report(&l, "grave", "update", "serious");
    report(&l, "grave", "close", "serious");
    static const char *const expected[] = {"grave", "warned", "many", "early", "late"};
    for (int count = 1; count <= 8; count++) {
        assert_int_equal(svi_alert_log_worst(&l, keys, count), count < 5 ? count : 5);
        for (int i = 0; i < count && i < 5; i++)
            assert_string_equal(keys[i], expected[i]);
    }
    svi_alert_log_clear(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_stretches),
        cmocka_unit_test(test_worst),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
