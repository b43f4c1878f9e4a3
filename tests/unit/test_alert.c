/* Alerts: the state machine against a plain reading of its rules, and the line for people. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "base/text.h"
#include "alerts/alert.h"
#include "alerts/alert_text.h"
#include "config/settings.h"
#include "base/statistics.h"

static double uniform(struct svi_random *r) {
    return ((double)(svi_random_next(r) >> 11) + 0.5) / 9007199254740992.0;
}

/* ---- the rules, read backwards from the record of all samples */

#define SAMPLES 400

struct record {
    double p[SAMPLES], tail[SAMPLES], grade[SAMPLES], time[SAMPLES];
    enum svi_alert_change said[SAMPLES];
    int n;
};

/* The sample that opened the alert which is open before sample i, -1 = none: the last thing said that was
 * not an update. */
static int opener(const struct record *r, int i) {
    while (--i >= 0)
        if (r->said[i] == SVI_ALERT_OPEN || r->said[i] == SVI_ALERT_CLOSE)
            return r->said[i] == SVI_ALERT_OPEN ? i : -1;
    return -1;
}

static bool cooling(const struct record *r, int i, double cooldown) {
    for (int k = i - 1; k >= 0; k--)
        if (r->said[k] == SVI_ALERT_CLOSE && r->time[i] - r->time[k] < cooldown)
            return true;
    return false;
}

/* All tests that the false-discovery procedure saw before sample i, made again. */
static bool rejected(const struct record *r, int i, const struct svi_alert_options *o) {
    struct svi_discovery d;
    svi_discovery_init(&d, o->fdr);
    for (int k = (int)o->warmup; k < i; k++)
        if (opener(r, k) < 0 && !cooling(r, k, o->cooldown))
            svi_discovery_test(&d, r->p[k] <= o->clear ? r->tail[k] : 1);
    return r->p[i] <= o->clear && r->tail[i] <= svi_discovery_level(&d);
}

static double largest_told(const struct record *r, int from, int to) {
    double most = 0;
    for (int k = from; k < to; k++)
        if (r->said[k] == SVI_ALERT_OPEN || r->said[k] == SVI_ALERT_UPDATE)
            most = fmax(most, r->grade[k]);
    return most;
}

static enum svi_alert_change expected(const struct record *r, int i, const struct svi_alert_options *o) {
    const int from = opener(r, i);
    if (from >= 0 && r->p[i] > o->clear)
        return SVI_ALERT_CLOSE;
    if (from >= 0)
        return r->grade[i] - largest_told(r, from, i) >= 0.1 - 1e-9 ? SVI_ALERT_UPDATE : SVI_ALERT_NONE;
    if (i < o->warmup || cooling(r, i, o->cooldown))
        return SVI_ALERT_NONE;
    return (o->fdr > 0 ? rejected(r, i, o) : r->p[i] <= o->p) ? SVI_ALERT_OPEN : SVI_ALERT_NONE;
}

static void add_sample(struct record *r, struct svi_random *random, int low) {
    const int i = r->n;
    const double least = low ? 1e-7 : 0.005;
    r->p[i] = fmin(1, exp(log(least) * uniform(random)) * (svi_random_below(random, 3) ? 1 : 30));
    r->tail[i] = r->p[i] * (svi_random_below(random, 2) ? 1 : 1e-4);
    r->grade[i] = svi_random_below(random, 11) / 10.0;
    r->time[i] = (i ? r->time[i - 1] : 1000) + svi_random_below(random, 4);
}

static void walk(const struct svi_alert_options *o, uint64_t seed) {
    struct svi_random random = {seed};
    struct record r = {.n = 0};
    struct svi_alert a;
    int64_t opened = 0;
    svi_alert_init(&a, o);
    for (; r.n < SAMPLES; r.n++) {
        const int i = r.n;
        add_sample(&r, &random, i / 20 % 3 == 1);
        const enum svi_alert_change want = expected(&r, i, o);
        r.said[i] = svi_alert_step(&a, r.p[i], r.tail[i], r.grade[i], r.time[i]);
        assert_int_equal(r.said[i], want);
        opened += want == SVI_ALERT_OPEN;
        const int from = opener(&r, i + 1);
        assert_int_equal(a.open, from >= 0);
        assert_int_equal(a.lasted, from >= 0 ? i - from + 1 : 0);
        assert_true(from < 0 || (a.since == r.time[from] && a.grade == largest_told(&r, from, i + 1)));
        assert_true(a.worst >= a.grade && a.worst < a.grade + 0.1);
    }
    assert_true(a.opened == opened && a.seen == SAMPLES);
    assert_true(opened > 1);
}

static void test_walks_follow_the_rules(void **state) {
    static const struct svi_alert_options options[] = {
        {.p = 0.001, .clear = 0.01},
        {.p = 0.01, .clear = 0.01, .warmup = 50},
        {.p = 0.001, .clear = 0.1, .cooldown = 20, .warmup = 7},
        {.p = 0.001, .clear = 0.02, .fdr = 0.1, .warmup = 30},
        {.p = 0.001, .clear = 0.02, .fdr = 0.3, .cooldown = 10},
    };
    (void)state;
    for (size_t k = 0; k < sizeof options / sizeof *options; k++)
        for (uint64_t seed = 0; seed < 20; seed++)
            walk(&options[k], seed);
}

static void test_one_disturbance_is_one_alert(void **state) {
    struct svi_alert a;
    (void)state;
    svi_alert_init(&a, &(struct svi_alert_options){.p = 0.001, .clear = 0.05, .warmup = 2});
    assert_true(a.closed == -DBL_MAX);
    assert_int_equal(svi_alert_step(&a, 1e-4, 1e-4, 0.2, 1), SVI_ALERT_NONE); /* warm-up */
    assert_int_equal(svi_alert_step(&a, 1e-4, 1e-4, 0.2, 2), SVI_ALERT_NONE);
    assert_int_equal(svi_alert_step(&a, 1e-4, 1e-4, 0.2, 3), SVI_ALERT_OPEN);
    assert_int_equal(svi_alert_step(&a, 0.04, 0.04, 0.25, 4), SVI_ALERT_NONE); /* between p and clear */
    assert_int_equal(svi_alert_step(&a, 1e-4, 1e-4, 0.3, 5), SVI_ALERT_UPDATE);
    assert_int_equal(svi_alert_step(&a, 1e-4, 1e-4, 0.39, 6), SVI_ALERT_NONE);
    assert_int_equal(svi_alert_step(&a, 1e-4, 1e-4, 0.3, 7), SVI_ALERT_NONE);
    assert_int_equal(a.lasted, 5);
    assert_int_equal(svi_alert_step(&a, 0.06, 0.06, 0, 8), SVI_ALERT_CLOSE);
    assert_true(a.since == 3 && a.closed == 8 && a.grade == 0.3 && a.worst == 0.39);
    assert_true(!a.open && a.lasted == 0 && a.opened == 1);
}

static void test_cool_down_counts_what_it_suppresses(void **state) {
    struct svi_alert a;
    (void)state;
    for (int fdr = 0; fdr < 2; fdr++) {
        svi_alert_init(
            &a, &(struct svi_alert_options){.p = 0.001, .clear = 0.01, .cooldown = 10, .fdr = fdr ? 0.1 : 0});
        assert_int_equal(svi_alert_step(&a, 5e-4, 0, 0, 100), SVI_ALERT_OPEN);
        assert_int_equal(svi_alert_step(&a, 0.5, 0.5, 0, 101), SVI_ALERT_CLOSE);
        assert_int_equal(svi_alert_step(&a, 0.5, 0.5, 0, 102), SVI_ALERT_NONE);
        assert_int_equal(a.suppressed, 0);
        assert_int_equal(svi_alert_step(&a, 5e-4, 0, 0, 110.9), SVI_ALERT_NONE);
        assert_int_equal(a.suppressed, 1);
        assert_int_equal(a.discovery.tested, fdr);
        assert_int_equal(svi_alert_step(&a, 5e-4, 0, 0, 111), SVI_ALERT_OPEN);
    }
}

/* Inside an alert nothing is tested: a long disturbance is one discovery. */
static void test_a_long_disturbance_earns_once(void **state) {
    struct svi_alert a;
    (void)state;
    svi_alert_init(&a, &(struct svi_alert_options){.p = 0.001, .clear = 0.01, .fdr = 0.1});
    for (int i = 0; i < 500; i++)
        svi_alert_step(&a, 5e-4, 1e-9, 0.5, i);
    assert_true(a.discovery.found == 1 && a.discovery.tested == 1 && a.lasted == 500);
}

static void test_grade(void **state) {
    (void)state;
    assert_true(svi_alert_grade(0.2, 0.3) == 0);
    assert_true(svi_alert_grade(0.3, 0.3) == 0);
    assert_true(fabs(svi_alert_grade(0.65, 0.3) - 0.5) < 1e-15);
    assert_true(svi_alert_grade(1, 0.3) == 1);
    assert_true(svi_alert_grade(-3, -1) == 0);
    assert_true(svi_alert_grade(0, -1) == 0.5);
    assert_true(svi_alert_grade(1, 1) == 0);
    assert_true(svi_alert_grade(1, INFINITY) == 0); /* the level is not known yet */
    assert_true(svi_alert_grade(NAN, 0.5) == 0 && svi_alert_grade(0.5, NAN) == 0);
}

/* ---- the line */

#define MORNING 1700045000.0 /* 2023-11-15 10:43:20 UTC */

static const struct svi_alert_feature vibration = {
    .name = "vibration", .value = 4.1, .low = 0.9, .high = 1.3};

static void assert_line(struct svi_alert_line l, const char *want) {
    char text[SVI_ALERT_TEXT];
    const size_t length = svi_alert_text(text, &l);
    assert_string_equal(text, want);
    assert_int_equal(length, strlen(want));
}

static void test_lines_of_the_three_states(void **state) {
    struct svi_alert_line l = {SVI_ALERT_OPEN, "pump1", NULL,  &vibration, 1,
                               0.82,           0.001,   false, MORNING,    MORNING + 5};
    (void)state;
    assert_line(l, "pump1 vibration 4.1 (usually 0.9 to 1.3), novelty 0.82, p 0.001, since 10:43 UTC");
    l.state = SVI_ALERT_UPDATE;
    l.p = 1.0 / 2001;
    assert_line(l,
                "pump1 worse: vibration 4.1 (usually 0.9 to 1.3), novelty 0.82, p 0.0005, since 10:43 UTC");
    l.state = SVI_ALERT_CLOSE;
    l.time = MORNING + 725;
    assert_line(l, "pump1 back to normal after 12 min (began at 10:43 UTC)");
    l.count = 0;
    l.state = SVI_ALERT_OPEN;
    assert_line(l, "pump1 novelty 0.82, p 0.0005, since 10:43 UTC");
    l.state = SVI_ALERT_UPDATE;
    assert_line(l, "pump1 worse: novelty 0.82, p 0.0005, since 10:43 UTC");
    struct svi_alert_feature beyond = vibration;
    beyond.beyond = true;
    beyond.earlier_low = 0.64;
    beyond.earlier_high = 2.1;
    l.top = &beyond;
    l.count = 1;
    l.state = SVI_ALERT_OPEN;
    assert_line(l, "pump1 vibration 4.1 (usually 0.9 to 1.3, never beyond 0.64 to 2.1 before), novelty 0.82, "
                   "p 0.0005, since "
                   "10:43 UTC");
}

static void test_an_unnamed_stream_is_not_named(void **state) {
    struct svi_alert_line l = {SVI_ALERT_OPEN, SVI_STREAM_UNNAMED, NULL, &vibration, 1, 0.82, 0.001, false,
                               MORNING,        MORNING + 5};
    struct svi_alert_feature colon = vibration;
    char text[SVI_ALERT_TEXT];
    (void)state;
    l.stream = svi_alert_stream(SVI_STREAM_UNNAMED);
    assert_line(l, "vibration 4.1 (usually 0.9 to 1.3), novelty 0.82, p 0.001, since 10:43 UTC");
    colon.name = ":a";
    l.top = &colon;
    assert_line(l, ":a 4.1 (usually 0.9 to 1.3), novelty 0.82, p 0.001, since 10:43 UTC");
    l.count = 0;
    l.state = SVI_ALERT_UPDATE;
    assert_line(l, "worse: novelty 0.82, p 0.001, since 10:43 UTC");
    l.state = SVI_ALERT_CLOSE;
    assert_line(l, "back to normal after 5 s (began at 10:43 UTC)");
    svi_alert_ended(text, l.stream, "quality alert", "reset");
    assert_string_equal(text, "quality alert ended: reset");
    svi_alert_ended(text, "pump1", "alert", "reset");
    assert_string_equal(text, "pump1 alert ended: reset");
    assert_string_equal(svi_alert_stream("default2"), "default2");
}

static void test_the_day_and_times_that_are_none(void **state) {
    struct svi_alert_line l = {SVI_ALERT_CLOSE, "s", NULL, NULL, 0, 0, 0, false, MORNING, MORNING};
    (void)state;
    assert_line(l, "s back to normal after 0 s (began at 10:43 UTC)");
    l.time = l.since + 0.00037;
    assert_line(l, "s back to normal after less than 0.1 s (began at 10:43 UTC)");
    l.time = MORNING + 86400;
    assert_line(l, "s back to normal after 24 h 0 min (began at 2023-11-15 10:43 UTC)");
    l.time = MORNING + 10 * 86400 + 3600;
    assert_line(l, "s back to normal after 10 d 1 h (began at 2023-11-15 10:43 UTC)");
    l.since = 350;
    l.time = 351.5;
    assert_line(l, "s back to normal after 1.5 s (began at 350 s)");
    l.since = 99999999;
    l.time = l.since + 99.4;
    assert_line(l, "s back to normal after 99 s (began at 1e8 s)");
    l.since = 1e18;
    l.time = INFINITY;
    assert_line(l, "s back to normal after more than 1000 years (began at 1e18 s)");
    l.since = -3;
    l.time = NAN;
    assert_line(l, "s back to normal after 0 s (began at -3 s)");
}

/* The value and the usual range as they are shown. */
static void assert_numbers(double value, double low, double high, const char *want) {
    const struct svi_alert_feature f = {.column = 3, .value = value, .low = low, .high = high};
    char text[SVI_ALERT_TEXT], whole[SVI_ALERT_TEXT];
    struct svi_alert_line l = {SVI_ALERT_OPEN, "s", NULL, &f, 1, 0, 1, false, 5, 5};
    svi_alert_text(text, &l);
    snprintf(whole, sizeof whole, "s feature 3 %s, novelty 0, p 1, since 5 s", want);
    assert_string_equal(text, whole);
}

static void test_numbers_as_a_person_writes_them(void **state) {
    (void)state;
    assert_numbers(4.1, 0.9, 1.3, "4.1 (usually 0.9 to 1.3)");
    assert_numbers(12.3456, 1.23456, 2, "12.3 (usually 1.23 to 2)");
    assert_numbers(1013.26, 1012.914, 1013.04, "1013.26 (usually 1012.91 to 1013.04)");
    assert_numbers(101325, 101100, 101200, "101325 (usually 101100 to 101200)");
    assert_numbers(-0.5, -0.25, 0, "-0.5 (usually -0.25 to 0)");
    assert_numbers(9.999, 1, 2, "10 (usually 1 to 2)");
    assert_numbers(3, 0, 0, "3 (usually 0 to 0)");
    assert_numbers(1.5e9, 1e9, 1.1e9, "1.5e9 (usually 1e9 to 1.1e9)");
    assert_numbers(2.5e-9, 1e-12, 1e-10, "2.5e-9 (usually 1e-12 to 1e-10)");
    assert_numbers(0.00012, 0.00001, 0.00002, "0.00012 (usually 0.00001 to 0.00002)");
    assert_numbers(7, NAN, NAN, "7");
    assert_numbers(-INFINITY, 1, 2, "-infinite (usually 1 to 2)");
    assert_numbers(NAN, 1, 2, "unknown (usually 1 to 2)");
}

static void test_names_are_escaped_and_all_fits(void **state) {
    char longest[200];
    (void)state;
    memset(longest, 'n', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    const struct svi_alert_feature odd = {.name = "a\n\xff", .value = 1, .high = 0.5};
    const struct svi_alert_feature f = {
        .name = longest, .value = -1.23456789e-200, .low = -2.3456789e-200, .high = -2.34567891e-200};
    const struct svi_alert_feature three[] = {f, odd, f};
    struct svi_alert_line l = {SVI_ALERT_UPDATE, longest, NULL, three, 3, 0.123456, 1e-6, false, 1e8, 2e9};
    char text[SVI_ALERT_TEXT];
    assert_true(svi_alert_text(text, &l) < SVI_ALERT_TEXT);
    assert_non_null(strstr(text, "nnn... worse: nnn"));
    assert_non_null(strstr(text, ", a\\x0a\\xff 1 (usually 0 to 0.5)"));
    assert_non_null(strstr(text, ", novelty 0.12, p 1e-6, since 1973-03-03 09:46 UTC"));
}

static void test_units_follow_values(void **state) {
    static const char *const units[] = {"\u00b0C", "\xff\n", "", NULL};
    static const char *const want[] = {
        "s temp 95 \u00b0C (usually 58 to 62), novelty", "s temp 95 \\xff\\x0a (usually 58 to 62), novelty",
        "s temp 95 (usually 58 to 62), novelty", "s temp 95 (usually 58 to 62), novelty"};
    (void)state;
    for (int i = 0; i < 4; i++) {
        const struct svi_alert_feature f = {
            .name = "temp", .unit = units[i], .value = 95, .low = 58, .high = 62};
        const struct svi_alert_line l = {SVI_ALERT_OPEN, "s", NULL, &f, 1, 0, 1, false, 5, 5};
        char text[SVI_ALERT_TEXT];
        svi_alert_text(text, &l);
        assert_memory_equal(text, want[i], strlen(want[i]));
    }
}

static void test_units_of_findings(void **state) {
    (void)state;
    const struct svi_alert_fact f = {.detector = SVI_DETECTOR_VALUE,
                                     .name = "temp",
                                     .unit = "\u00b0C",
                                     .value = 95,
                                     .expected = NAN,
                                     .low = 58,
                                     .high = 62,
                                     .with = 1,
                                     .with_name = "load",
                                     .with_unit = "%",
                                     .with_value = 30};
    const struct svi_episode_line l = {.state = SVI_ALERT_OPEN,
                                       .stream = "s",
                                       .facts = &f,
                                       .count = 1,
                                       .surprise = 6,
                                       .rows = 2e5,
                                       .rows_a_day = 1440,
                                       .since = 5,
                                       .time = 5};
    char text[SVI_ALERT_TEXT];
    svi_episode_text(text, &l);
    assert_non_null(strstr(
        text,
        ": temp 95 \u00b0C while load is 30 % (usually 58 to 62), by chance about once in 20 months, "));
    const struct svi_quality_feature moved = {
        .name = "vibration", .unit = "mm/s", .before = 0.9, .after = 1.4, .deviation = 0.1};
    const struct svi_quality_line q = {
        .state = SVI_ALERT_OPEN, .stream = "s", .before = 0.04, .after = 0.17, .top = &moved, .count = 1};
    svi_alert_quality_text(text, &q);
    assert_non_null(strstr(text, "; moved most: vibration 0.9 -> 1.4 mm/s"));
}

/* ---- lines of alerts under a budget */

/* What the detectors of sensors say. */
static const char *there(const struct svi_alert_fact *f, bool dated) {
    (void)f;
    return dated ? " at this time of day" : " from the other sensors";
}

static void assert_episode(struct svi_episode_line l, const char *want) {
    char text[SVI_ALERT_TEXT];
    const size_t length = svi_episode_text(text, &l);
    assert_string_equal(text, want);
    assert_int_equal(length, strlen(want));
}

static void test_means_steps_and_spreads(void **state) {
    (void)state;
    struct svi_alert_fact f = {.detector = SVI_DETECTOR_LEVEL,
                               .basis = there,
                               .name = "temp",
                               .value = 45.02,
                               .expected = 41,
                               .low = 39.5,
                               .high = 42.5,
                               .span = 1800,
                               .with = -1};
    struct svi_episode_line l = {.facts = &f,
                                 .stream = "s",
                                 .count = 1,
                                 .state = SVI_ALERT_OPEN,
                                 .surprise = 3.76,
                                 .rows = 1e5,
                                 .rows_a_day = 1440,
                                 .since = MORNING - 1800,
                                 .time = MORNING};
    assert_episode(l,
                   "s notice: temp 45 on average for 30 min, 41 expected at this time of day (39.5 to 42.5), "
                   "by chance about once in 4 days, since 10:13 UTC");
    f.value = 42.4; /* within the range of single values: the distance says what is wrong */
    assert_episode(
        l, "s notice: temp 42.4 on average for 30 min, 1.4 above the 41 expected at this time of day, "
           "by chance about once in 4 days, since 10:13 UTC");
    f.value = 40.3;
    l.by_rows = true;
    l.since = 156;
    l.time = 185;
    f.span = 30;
    assert_episode(
        l, "s notice: temp 40.3 on average for 30 rows, 0.7 below the 41 expected from the other sensors, "
           "by chance about once in 6,000 rows, since row 156");
    f.detector = SVI_DETECTOR_STEP;
    f.span = 0; /* a single sample, compared with its last rows */
    f.value = 2037;
    f.expected = 1900;
    f.low = 1850;
    f.high = 1950;
    assert_episode(l, "s notice: temp 2037, 1900 expected from the other sensors (1850 to 1950), "
                      "by chance about once in 6,000 rows, since row 156");
    f.detector = SVI_DETECTOR_SPREAD;
    f.deviates = SVI_DEVIATES_SPREAD;
    f.span = 30;
    f.low = 637;
    f.high = 2037;
    assert_episode(l, "s notice: temp varies more than expected, from 637 to 2037 in 30 rows, "
                      "by chance about once in 6,000 rows, since row 156");
    l.state = SVI_ALERT_CLOSE;
    assert_episode(l, "s back to normal after 29 rows (worst: notice, by chance about once in 6,000 rows; "
                      "began at row 156)");
}

/* The vibration is too high for a machine at rest: its ampere meter is not what deviates. */
static void test_the_other_feature(void **state) {
    (void)state;
    const struct svi_alert_fact f = {.detector = SVI_DETECTOR_FORECAST,
                                     .basis = there,
                                     .deviates = SVI_DEVIATES_OTHER,
                                     .name = "vib",
                                     .value = 0.66,
                                     .expected = 6,
                                     .low = 4.41,
                                     .high = 7.6,
                                     .with = 1,
                                     .with_name = "current",
                                     .with_value = 1.5};
    const struct svi_episode_line l = {.facts = &f,
                                       .stream = "s",
                                       .count = 1,
                                       .state = SVI_ALERT_OPEN,
                                       .surprise = 2,
                                       .by_rows = true,
                                       .since = 8,
                                       .time = 8};
    assert_episode(l, "s notice: vib 0.66 while current is 1.5 (4.41 to 7.6 expected for current), "
                      "by chance about once in 100 rows, since row 8");
}

/* Columns of categories read as words; a deviation that persists says so. */
static void test_categories_and_what_persists(void **state) {
    struct svi_alert_fact f[] = {
        {.name = "shift=day", .category = true, .value = 0, .expected = NAN, .low = 1, .high = 1, .with = -1},
        {.basis = there, .name = "temp", .value = 9, .expected = 3, .low = 1, .high = 5, .with = 2}};
    struct svi_episode_line l = {.facts = f,
                                 .stream = "s",
                                 .count = 2,
                                 .state = SVI_ALERT_UPDATE,
                                 .news = SVI_POLICY_LASTS,
                                 .surprise = 2,
                                 .by_rows = true,
                                 .since = 8,
                                 .time = 8};
    (void)state;
    f[1].with_name = "shift=day";
    f[1].with_category = true;
    f[1].with_value = 1;
    assert_episode(
        l, "s notice, ongoing: not shift=day (usually it is); temp 9 while shift=day, 3 expected from "
           "the other sensors (1 to 5), by chance about once in 100 rows, since row 8");
    l.opening = "persistent";
    l.count = 1;
    l.state = SVI_ALERT_OPEN;
    f[0].value = 1;
    f[0].low = f[0].high = 0;
    assert_episode(l, "s notice: persistent deviation: shift=day (usually not), "
                      "by chance about once in 100 rows, since row 8");
    l.count = 2;
    l.combination = true;
    assert_episode(l, "s notice: persistent unusual combination of shift=day and temp 9 (each alone in its "
                      "usual range), by chance about once in 100 rows, since row 8");
    l.count = 0;
    assert_episode(l, "s notice: persistent deviation, by chance about once in 100 rows, since row 8");
    f[0] = (struct svi_alert_fact){.name = "shift=day",
                                   .category = true,
                                   .value = 1,
                                   .expected = .1,
                                   .low = -.1,
                                   .high = .3,
                                   .with = -1};
    l.opening = NULL;
    l.combination = false;
    l.count = 1;
    l.state = SVI_ALERT_UPDATE;
    assert_episode(l, "s notice, ongoing: shift=day (usually not), by chance about once in 100 rows, "
                      "since row 8");
    f[0].with = 2; /* named for the deviation of temp, whose range it has */
    f[0].with_name = "temp";
    f[0].with_value = 9;
    f[0].low = 1;
    f[0].high = 5;
    f[0].deviates = SVI_DEVIATES_OTHER;
    f[0].basis = there;
    assert_episode(l, "s notice, ongoing: shift=day 1 while temp is 9 (1 to 5 expected for temp), "
                      "by chance about once in 100 rows, since row 8");
}

static void assert_quality(struct svi_quality_line l, const char *want) {
    char text[SVI_ALERT_TEXT];
    assert_int_equal(svi_alert_quality_text(text, &l), strlen(want));
    assert_string_equal(text, want);
}

static void test_lines_of_quality(void **state) {
    struct svi_quality_line l = {.state = SVI_ALERT_OPEN,
                                 .stream = "s",
                                 .before = 0.041,
                                 .after = 0.17,
                                 .worst = 0.31,
                                 .rows = 153,
                                 .wrong = 26,
                                 .rows_before = 1000,
                                 .wrong_before = 41,
                                 .since = MORNING,
                                 .time = MORNING + 720,
                                 .number = 41230};
    (void)state;
    assert_quality(l,
                   "s predictions: 17 % wrong (26 of 153 rows) since 10:43 UTC (after sample 41,230), 4.1 % "
                   "before (41 of 1,000 rows)");
    l.state = SVI_ALERT_UPDATE;
    l.regress = l.by_rows = true;
    l.since = 12;
    assert_quality(l, "s predictions, worse: rmse 0.17 (153 rows) since row 12, 0.041 before (1,000 rows)");
    l.state = SVI_ALERT_CLOSE;
    l.time = 32;
    assert_quality(
        l, "s predictions back to normal after 20 rows: rmse 0.17, 0.041 before, 0.31 at worst (began "
           "at row 12)");
    l.adapted = true;
    l.regress = false;
    assert_quality(l, "s predictions settled at a new level after 20 rows: 17 % wrong, 4.1 % before, 31 % at "
                      "worst (began at row 12)");
}

static void test_how_rare(void **state) {
    static const struct {
        double surprise, rows, a_day;
        const char *want;
    } cases[] = {{2, 1e9, 86400, "about once in 100 seconds"},
                 {3.3, 1e9, 1440, "about once in 30 hours"},
                 {3.16, 1e9, 1440, "about once in 20 hours"},
                 {4.8, 1e9, 1440, "about once in 6 weeks"},
                 {9, 1e4, 1440, "less than once in 2 months"},
                 {9, 110000, 1440, "less than once in 2 years"},
                 {300, 1e4, 0, "less than once in 100,000 rows"},
                 {5.5, 12345, 0, "less than once in 100,000 rows"},
                 {5, 10000, 0, "about once in 100,000 rows"},
                 {20, 0, 1440, "less than once in 1000 years"},
                 {5.73, 1e9, 1440, "by chance about once in 10 months"},
                 {9, 700, 1440, "by chance less than once in 4 days"},
                 {3.15, 1e9, 1440, "by chance about once in 20 hours"},
                 {2.8, 1e9, 1e9, "by chance about once a second"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct svi_episode_line l = {.state = SVI_ALERT_OPEN,
                                           .stream = "s",
                                           .surprise = cases[i].surprise,
                                           .rows = cases[i].rows,
                                           .rows_a_day = cases[i].a_day,
                                           .by_rows = cases[i].a_day == 0,
                                           .since = 5,
                                           .time = 5};
        char text[SVI_ALERT_TEXT];
        svi_episode_text(text, &l);
        if (!strstr(text, cases[i].want))
            fail_msg("%s, not: %s", cases[i].want, text);
    }
}

/* Whatever the sizes of a value, its range and their distance: as numbers that a reader sees, a value outside
 * its range is outside, one within is within, and no bound is on the other side of the value. */
static void test_digits_until_they_differ(void **state) {
    struct svi_random r = {7};
    (void)state;
    for (int i = 0; i < 200000; i++) {
        double part[4];
        for (int k = 0; k < 4; k++)
            part[k] = (double)(svi_random_next(&r) >> 11) * 0x1p-53;
        const double low = (part[0] - 0.5) * pow(10, 14 * part[1] - 4), width = pow(10, 12 * part[2] - 6);
        const double high = low + width, distance = pow(10, 14 * part[3] - 7);
        const double value = i % 3 == 0   ? high + distance
                             : i % 3 == 1 ? low - distance
                                          : low + width * part[3];
        const struct svi_alert_numbers n = svi_alert_numbers_of(value, low, high, 2 + i % 2);
        const double v = atof(n.value), l = atof(n.low), h = atof(n.high);
        const bool good = value > high ? v > h : value < low ? v < l : v >= l && v <= h;
        if (!good || n.outside != (value > high || value < low))
            fail_msg("%.17g of %.17g to %.17g is shown as %s (%s to %s)", value, low, high, n.value, n.low,
                     n.high);
    }
}

static double odd_number(struct svi_random *r) {
    static const double odd[] = {NAN, INFINITY, -INFINITY, 0, -0.0, DBL_MAX, -DBL_MAX, DBL_MIN, 5e-324};
    const uint32_t k = svi_random_below(r, 20);
    if (k < sizeof odd / sizeof *odd)
        return odd[k];
    return (uniform(r) - 0.5) * pow(10, (double)svi_random_below(r, 620) - 310);
}

static void odd_name(char *name, int size, struct svi_random *r) {
    const int length = (int)svi_random_below(r, (uint32_t)size);
    for (int i = 0; i < length; i++)
        name[i] = (char)(1 + svi_random_below(r, 255));
    name[length] = 0;
}

static void test_any_line_is_valid_and_short(void **state) {
    struct svi_random r = {3};
    const int lines = getenv("SVMSTREAM_QUICK") ? 2000 : 50000;
    (void)state;
    for (int i = 0; i < lines; i++) {
        char text[SVI_ALERT_TEXT + 1], names[5][120];
        struct svi_alert_feature top[4];
        for (int k = 0; k < 5; k++)
            odd_name(names[k], sizeof names[k], &r);
        for (int k = 0; k < 4; k++)
            top[k] = (struct svi_alert_feature){.name = svi_random_below(&r, 4) ? names[k] : NULL,
                                                .unit = svi_random_below(&r, 4) ? names[k] : NULL,
                                                .column = (int)svi_random_next(&r),
                                                .value = odd_number(&r),
                                                .low = odd_number(&r),
                                                .high = odd_number(&r),
                                                .beyond = svi_random_below(&r, 2),
                                                .earlier_low = odd_number(&r),
                                                .earlier_high = odd_number(&r)};
        const struct svi_alert_line l = {.state = 1 + svi_random_below(&r, 3),
                                         .stream = names[4],
                                         .top = top,
                                         .count = (int)svi_random_below(&r, 5),
                                         .novelty = odd_number(&r),
                                         .p = uniform(&r),
                                         .since = odd_number(&r),
                                         .time = odd_number(&r)};
        text[SVI_ALERT_TEXT] = 'x';
        const size_t length = svi_alert_text(text, &l);
        assert_true(length < SVI_ALERT_TEXT && strlen(text) == length && text[SVI_ALERT_TEXT] == 'x');
        assert_true(svi_utf8_valid(text, length));
        assert_non_null(strstr(text, l.state == SVI_ALERT_CLOSE ? "back to normal after " : "novelty "));
        assert_non_null(strstr(text, l.state == SVI_ALERT_CLOSE ? " (began at " : ", since "));
        for (size_t k = 0; k < length; k++)
            assert_true((unsigned char)text[k] >= ' ');
    }
}

/* ---- what is usual */

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void test_usual_range_is_that_of_sorted_values(void **state) {
    struct svi_random r = {4};
    double v[500], sorted[500], low, high;
    (void)state;
    for (int n = 1; n <= 500; n += n < 50 ? 1 : 9) {
        const uint32_t kinds = 1 + svi_random_below(&r, 1000);
        for (int i = 0; i < n; i++)
            sorted[i] = v[i] = svi_random_below(&r, 9) ? svi_random_below(&r, kinds) : -INFINITY;
        qsort(sorted, (size_t)n, sizeof *sorted, ascending);
        svi_normal_range(v, n, &low, &high);
        assert_true(low == sorted[(int)(0.05 * (n - 1) + 0.5)] &&
                    high == sorted[(int)(0.95 * (n - 1) + 0.5)]);
        qsort(v, (size_t)n, sizeof *v, ascending); /* the values are still the same */
        assert_memory_equal(v, sorted, (size_t)n * sizeof *v);
    }
    svi_normal_range(v, 0, &low, &high);
    assert_true(isnan(low) && isnan(high));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_walks_follow_the_rules),
        cmocka_unit_test(test_one_disturbance_is_one_alert),
        cmocka_unit_test(test_cool_down_counts_what_it_suppresses),
        cmocka_unit_test(test_a_long_disturbance_earns_once),
        cmocka_unit_test(test_grade),
        cmocka_unit_test(test_lines_of_the_three_states),
        cmocka_unit_test(test_an_unnamed_stream_is_not_named),
        cmocka_unit_test(test_the_day_and_times_that_are_none),
        cmocka_unit_test(test_numbers_as_a_person_writes_them),
        cmocka_unit_test(test_units_follow_values),
        cmocka_unit_test(test_units_of_findings),
        cmocka_unit_test(test_means_steps_and_spreads),
        cmocka_unit_test(test_the_other_feature),
        cmocka_unit_test(test_categories_and_what_persists),
        cmocka_unit_test(test_lines_of_quality),
        cmocka_unit_test(test_how_rare),
        cmocka_unit_test(test_digits_until_they_differ),
        cmocka_unit_test(test_names_are_escaped_and_all_fits),
        cmocka_unit_test(test_any_line_is_valid_and_short),
        cmocka_unit_test(test_usual_range_is_that_of_sorted_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
