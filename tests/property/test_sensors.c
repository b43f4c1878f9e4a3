/* The judges of single sensors: what they promise on rows that are exchangeable and on rows that hang
 * together, what they find that is odd in its context alone, that they are kept and widened bit for bit, and
 * that no value and no time breaks them. */
#include "support/archived.h"
#include "support/laws.h"
#include "support/quick.h"
#include "support/sensors.h"

#include "novelty/detector.h"

#define MINUTE 60.0
#define MONDAY 1699833600.0 /* 2023-11-13 00:00 UTC */
#define MOST   24           /* columns */

static const enum svi_alert_detector judges[] = {SVI_DETECTOR_VALUE, SVI_DETECTOR_LEVEL, SVI_DETECTOR_STEP,
                                                 SVI_DETECTOR_FORECAST, SVI_DETECTOR_SPREAD};
#define JUDGES ((int)(sizeof judges / sizeof *judges))

static svi_sensors *begin(int d, bool context) {
    svs_error err = {0};
    svi_sensors *s = sensors_open(d, context, false, &err);
    if (!s)
        fail_msg("%s", err.text);
    return s;
}

static void step(svi_sensors *s, const double *x, double time, struct svi_evidence *f) {
    for (int i = 0; i < SVI_DETECTORS; i++)
        f[i] = (struct svi_evidence){
            .feature = -1, .over = 1, .value = NAN, .expected = NAN, .low = NAN, .high = NAN, .with = -1};
    struct svi_moment at;
    svi_context_moment(NULL, time, &at);
    sensors_step(s, x, &at, f);
}

static void archive_sensors(struct svi_archive *a, void *of) {
    svi_sensor_detectors.archive(a, of);
}

/* ---- promises */

#define EPISODE 50 /* rows without, after which the next one begins */

struct tally {
    double rows, hits[SVI_DETECTORS][5], episodes[SVI_DETECTORS][5]; /* at surprises of 2, 3 and 4 */
};

static void count(struct tally *t, const struct svi_evidence *f, int row, int last[SVI_DETECTORS][5]) {
    t->rows++;
    for (int i = 0; i < SVI_DETECTORS; i++)
        for (int k = 2; k <= 4; k++) {
            if (f[i].surprise < k)
                continue;
            t->hits[i][k]++;
            t->episodes[i][k] += last[i][k] == 0 || row - last[i][k] > EPISODE;
            last[i][k] = row;
        }
}

/* Rows of a law, or with rho > 0 of normal ones that hang together. */
static void run_stream(struct tally *t, enum law law, double rho, int d, int rows, uint64_t seed) {
    svi_sensors *s = begin(d, false);
    double x[MOST] = {0};
    int last[SVI_DETECTORS][5] = {{0}};
    for (int i = 0; i < 9; i++)
        test_random(&seed);
    for (int i = 0; i < rows; i++) {
        struct svi_evidence f[SVI_DETECTORS];
        for (int j = 0; j < d; j++)
            x[j] = rho > 0 ? rho * x[j] + sqrt(1 - rho * rho) * test_normal(&seed) : law_draw(law, &seed);
        step(s, x, MONDAY + MINUTE * i, f);
        count(t, f, i, last);
    }
    sensors_close(s);
}

/* So many episodes or more in so many rows happen by chance once in 10,000 times. */
static void check(const struct tally *t, const char *what, double price, bool rows_too) {
    for (int i = 0; i < JUDGES; i++)
        for (int k = 2; k <= 4; k++) {
            const double p = price * pow(10, -k), *n = &t->episodes[judges[i]][k];
            if (law_tail(t->rows, p, *n) < 1e-4)
                fail_msg("%s, judge %d: %g episodes of surprise %d in %g rows", what, judges[i], *n, k,
                         t->rows);
        }
    for (int k = 2; k <= 4 && rows_too; k++)
        if (law_tail(t->rows, price * pow(10, -k), t->hits[SVI_DETECTOR_VALUE][k]) < 1e-4)
            fail_msg("%s: %g of %g rows have a surprise of %d", what, t->hits[SVI_DETECTOR_VALUE][k], t->rows,
                     k);
}

/* Of rows that are exchangeable, each row for the judge that looks at one value, each episode for those that
 * look at means, whose rows have others in common. */
static void each_surprise_is_as_rare_as_it_says(void **state) {
    (void)state;
    const int streams = often(8, 1);
    for (int law = 0; law < LAWS; law++) {
        struct tally t = {0};
        for (int i = 0; i < streams; i++)
            run_stream(&t, (enum law)law, 0, i % 2 ? 1 : 3, often(12000, 2000),
                       991 * (uint64_t)(8 * law + i + 1));
        check(&t, law_names[law], law == STUDENT || law == LOGNORMAL ? 1.5 : 1, true);
    }
}

static void episodes_of_rows_that_hang_together_too(void **state) {
    (void)state;
    static const double rho[] = {0.9, 0.99};
    for (int k = 0; k < 2; k++) {
        struct tally t = {0};
        for (int i = 0; i < often(8, 1); i++)
            run_stream(&t, NORMAL, rho[k], 3, often(20000, 2000), 7919 * (uint64_t)(8 * k + i + 1));
        check(&t, rho[k] < 0.95 ? "rho 0.9" : "rho 0.99", 1, false);
    }
}

/* Rows that hang together, forecast from their last rows by equations that are solved again and again: no
 * row of the solutions, nor of blocks, has more surprises than others. */
static void no_row_of_a_period_surprises_more(void **state) {
    (void)state;
    enum { D = 3, PERIOD = 256 };
    static double at[PERIOD];
    double rows = 0, begun = 0;
    memset(at, 0, sizeof at);
    for (int k = 0; k < often(6, 1); k++) {
        svi_sensors *s = begin(D, false);
        uint64_t seed = 101 + (uint64_t)k;
        double x[D] = {0};
        int last = 0;
        for (int i = 0; i < 20000; i++, rows++) {
            struct svi_evidence f[SVI_DETECTORS];
            for (int j = 0; j < D; j++)
                x[j] = 0.97 * x[j] + test_normal(&seed) + (j > 0 ? 0.3 * x[j - 1] : 0);
            step(s, x, MONDAY + MINUTE * i, f);
            if (f[SVI_DETECTOR_FORECAST].surprise <= 0)
                continue;
            begun += i > last + 10;
            at[i % PERIOD] += i > last + 10;
            last = i;
        }
        sensors_close(s);
    }
    assert_true(begun > rows / 1000);
    for (int i = 0; i < PERIOD; i++)
        if (law_tail(begun, 1.0 / PERIOD, at[i]) < 1e-6)
            fail_msg("%g of %g surprises begin at row %d of %d", at[i], begun, i, PERIOD);
}

/* ---- what is odd in its context alone */

/* Detectors whose forecasts know the other sensors. */
static bool of_the_rest(int detector) {
    return detector == SVI_DETECTOR_FORECAST || detector == SVI_DETECTOR_SPREAD;
}

/* A pump: flow goes by the load, which is free. At `wrong` flow is one that is usual, at another load. */
static double surprise_of_wrong_flow(bool context, struct svi_evidence *finding) {
    svi_sensors *s = begin(2, context);
    struct svi_evidence f[SVI_DETECTORS];
    uint64_t seed = 6;
    double most = 0;
    for (int i = 0; i < 4010; i++) {
        const bool wrong = i >= 4000;
        const double load = wrong ? -1.5 : fmax(-2, fmin(test_normal(&seed), 2));
        const double x[2] = {load, 2 * load + (wrong ? 2.5 : 0) + 0.1 * test_normal(&seed)};
        if (i == 33 && context) /* as soon as anybody says so */
            assert_true(svi_sensors_set_context(s, 0) && svi_sensors_reserve_context(s, NULL) == SVS_OK);
        step(s, x, MONDAY + MINUTE * i, f);
        for (int j = 0; j < SVI_DETECTORS && wrong; j++)
            if (f[j].surprise > most && (context || !of_the_rest(j))) {
                most = f[j].surprise;
                *finding = f[j];
            }
        for (int j = 0; j < SVI_DETECTORS && context; j++)
            assert_true(i < 34 || f[j].feature != 0); /* context is not judged */
    }
    sensors_close(s);
    return most;
}

static double surprise_of_warmth(double hour);
static void what_is_wrong_for_its_context_is_found(void **state) {
    (void)state;
    struct svi_evidence with, without;
    assert_true(surprise_of_wrong_flow(true, &with) > 4);
    assert_true(with.feature == 1 && fabs(with.expected + 3) < 0.5);
    assert_true(with.low < with.expected && with.expected < with.high && with.high - with.low < 1);
    assert_true(surprise_of_wrong_flow(false, &without) < 3);
}

static void context_has_limits(void **state) {
    (void)state;
    svi_sensors *s = begin(MOST, true), *none = begin(2, false);
    for (int j = 0; j < MOST; j++) {
        assert_true(svi_sensors_set_context(s, j) == (j < 16));
        assert_true(svi_sensors_is_context(s, j) == (j < 16));
        assert_false(svi_sensors_set_context(s, 0));
    }
    assert_false(svi_sensors_set_context(none, 1));
    sensors_close(s);
    sensors_close(none);
}

/* Ten days of a room that is warm in the day: the warmth of noon at midnight is found, and at noon is none.
 */
static double surprise_of_warmth(double hour) {
    const int rows = 10 * 1440 + (int)(hour * 60);
    svi_sensors *s = begin(1, false);
    struct svi_evidence f[SVI_DETECTORS];
    uint64_t seed = 11;
    double most = 0;
    for (int i = 0; i < rows + 10; i++) {
        const double usual = 20 - 3 * cos(6.283185307179586 * i / 1440) + 0.2 * test_normal(&seed);
        const double x = i < rows ? usual : 22.9 + 0.2 * test_normal(&seed);
        step(s, &x, MONDAY + MINUTE * i, f);
        for (int j = 0; j < SVI_DETECTORS && i >= rows; j++)
            most = fmax(most, f[j].surprise);
    }
    sensors_close(s);
    return most;
}

static void the_hour_counts(void **state) {
    (void)state;
    assert_true(surprise_of_warmth(0) > 5);
    assert_true(surprise_of_warmth(12) < 3);
}

/* A sensor that follows two others, and then does not, within its range. */
static void what_is_wrong_beside_the_others_is_found(void **state) {
    (void)state;
    svi_sensors *s = begin(3, false);
    struct svi_evidence f[SVI_DETECTORS];
    uint64_t seed = 17;
    double most = 0;
    for (int i = 0; i < 4005; i++) {
        const double a = test_normal(&seed), b = test_normal(&seed);
        const double x[3] = {a, b, a - b + (i < 4000 ? 0 : 2) + 0.05 * test_normal(&seed)};
        step(s, x, MONDAY + MINUTE * i, f);
        if (i >= 4000)
            most = fmax(most, f[SVI_DETECTOR_FORECAST].surprise);
        assert_true(i < 4000 || f[SVI_DETECTOR_FORECAST].surprise == 0 || f[SVI_DETECTOR_FORECAST].with >= 0);
    }
    assert_true(most > 4);
    sensors_close(s);
}

/* A sensor that comes after days, or has rested so long, is judged like others an hour or two later. */
static void one_that_comes_late_is_judged(void **state) {
    (void)state;
    for (int rested = 0; rested < 2; rested++) {
        svi_sensors *s = begin(2, false);
        struct svi_evidence f[SVI_DETECTORS];
        uint64_t seed = 23;
        double level = 0, early = 0;
        for (int i = 0; i < 14000; i++) {
            const double noise = test_normal(&seed), fault = i >= 13990 ? 8 : 0;
            double x[2] = {test_normal(&seed), 1e5 + noise + fault};
            if (i < 5000)
                x[1] = rested ? 1e5 : NAN;
            step(s, x, MONDAY + MINUTE * i, f);
            if (i >= 13990 && f[SVI_DETECTOR_LEVEL].feature == 1)
                level = fmax(level, f[SVI_DETECTOR_LEVEL].surprise);
            else if (i < 13990)
                early += f[SVI_DETECTOR_VALUE].surprise >= 5;
        }
        if (level < 4 || early > 1)
            fail_msg("rested %d: surprise %g in its fault, %g rows before", rested, level, early);
        sensors_close(s);
    }
}

/* ---- kept, widened */

/* Sensors with cycles, gaps, steps, one of them late. */
static void odd_row(int i, int d, uint64_t *seed, double *x) {
    const double common = test_normal(seed);
    for (int j = 0; j < d; j++) {
        x[j] = j * sin(6.283185307179586 * i / 1440) + (j % 2 ? 1 : -1) * common +
               law_draw((enum law)(j % LAWS), seed);
        if (j == 3 && i < 700)
            x[j] = NAN;
        if (test_uniform(seed) < 0.02)
            x[j] = NAN;
        if (test_uniform(seed) < 0.002)
            x[j] += 50;
    }
}

static void same_findings(const struct svi_evidence *a, const struct svi_evidence *b, int row) {
    for (int j = 0; j < SVI_DETECTORS; j++)
        if (a[j].surprise != b[j].surprise || a[j].feature != b[j].feature || a[j].over != b[j].over ||
            (a[j].expected != b[j].expected && a[j].expected == a[j].expected) ||
            (a[j].value != b[j].value && a[j].value == a[j].value))
            fail_msg("row %d, judge %d: %.17g, %.17g", row, j, a[j].surprise, b[j].surprise);
}

/* Through bytes at random moments, in one of two that see the same. */
static void kept_judges_go_on_bit_for_bit(void **state) {
    (void)state;
    enum { D = 5 };
    svi_sensors *a = begin(D, true), *b = begin(D, true);
    struct svi_bytes one = {0}, two = {0};
    uint64_t seed = 31, when = 5;
    svs_error err = {0};
    for (int i = 0; i < often(5000, 800); i++) {
        double x[D];
        struct svi_evidence f[SVI_DETECTORS], g[SVI_DETECTORS];
        odd_row(i, D, &seed, x);
        if (i == 200)
            assert_true(svi_sensors_set_context(a, 4) && svi_sensors_set_context(b, 4) &&
                        svi_sensors_reserve_context(a, NULL) == SVS_OK &&
                        svi_sensors_reserve_context(b, NULL) == SVS_OK);
        if (i == 400) {
            svi_sensor_detectors.set_category(a, 2);
            svi_sensor_detectors.set_category(b, 2);
        }
        if (i == 650) {
            svi_sensor_detectors.forget(a, 2);
            svi_sensor_detectors.forget(b, 2);
        }
        step(a, x, MONDAY + 30 * MINUTE * i, f);
        step(b, x, MONDAY + 30 * MINUTE * i, g);
        same_findings(f, g, i);
        if (test_random(&when) % 100 && i % 1000 < 995)
            continue;
        svi_sensors *kept = begin(D, true);
        assert_int_equal(archived_save(archive_sensors, b, &one, &err), SVS_OK);
        if (archived_load(archive_sensors, kept, one.data, one.size, &err) != SVS_OK)
            fail_msg("row %d: %s", i, err.text);
        assert_int_equal(archived_save(archive_sensors, a, &two, &err), SVS_OK);
        assert_true(archived_same(&one, &two));
        assert_int_equal(archived_save(archive_sensors, kept, &two, &err), SVS_OK);
        assert_true(archived_same(&one, &two));
        sensors_close(b);
        b = kept;
    }
    svi_bytes_clear(&one);
    svi_bytes_clear(&two);
    sensors_close(a);
    sensors_close(b);
}

/* Columns that come are as if they had been absent: the findings of all judges but those that forecast
 * from the rest, whose equations are solved when columns come. */
static void wider_judges_keep_all(void **state) {
    (void)state;
    enum { D = 4, WIDE = 7, SAME = 2048 }; /* rows in which more columns do not solve less often */
    for (int when = 40; when < SAME - 500; when = when * 2 + 1) {
        svi_sensors *a = begin(WIDE, false), *b = begin(D, false);
        uint64_t seed = 41 + (uint64_t)when;
        double seen = 0;
        for (int i = 0; i < SAME; i++) {
            double x[WIDE];
            struct svi_evidence f[SVI_DETECTORS], g[SVI_DETECTORS];
            odd_row(i, WIDE, &seed, x);
            for (int j = D; j < WIDE && i < when; j++)
                x[j] = NAN;
            if (i == when)
                assert_int_equal(sensors_widen(&b, WIDE, NULL), SVS_OK);
            step(a, x, MONDAY + MINUTE * i, f);
            step(b, x, MONDAY + MINUTE * i, g);
            for (int j = 0; j < SVI_DETECTORS; j++)
                if (i >= when && !of_the_rest(j)) {
                    if (f[j].surprise != g[j].surprise || f[j].feature != g[j].feature)
                        fail_msg("when %d, row %d, judge %d: %.17g of %d, %.17g of %d", when, i, j,
                                 f[j].surprise, f[j].feature, g[j].surprise, g[j].feature);
                    seen += f[j].surprise > 0;
                }
        }
        assert_true(seen > 0);
        sensors_close(a);
        sensors_close(b);
    }
}

/* ---- nothing breaks them */

static double wild_value(int i, uint64_t *seed) {
    static const double wild[] = {1e300, -1e300, 1.7e308, -1.7e308, 1e-308, 0, 1e9, NAN, NAN, 1e38, 5e-324};
    const uint64_t which = test_random(seed) % 40;
    return which < sizeof wild / sizeof *wild ? wild[which] : sin(i) + test_normal(seed);
}

static double wild_time(int i, uint64_t *seed) {
    static const double wild[] = {NAN, INFINITY, -INFINITY, 1e300, -1e300, 1e18, -1e9, 0};
    const uint64_t which = test_random(seed) % 30;
    return which < sizeof wild / sizeof *wild ? wild[which] : which < 20 ? MONDAY - i : MONDAY + 3600.0 * i;
}

static void check_finite(svi_sensors *s, int d, struct svi_bytes *bytes) {
    svi_sensors *other = begin(d, true);
    svs_error err = {0};
    assert_int_equal(archived_save(archive_sensors, s, bytes, &err), SVS_OK);
    if (archived_load(archive_sensors, other, bytes->data, bytes->size, &err) != SVS_OK)
        fail_msg("%s", err.text); /* what is not finite is refused there */
    sensors_close(other);
}

static void wild_values_and_times_break_nothing(void **state) {
    (void)state;
    enum { D = 6 };
    struct svi_bytes bytes = {0};
    for (int walk = 0; walk < often(30, 3); walk++) {
        svi_sensors *s = begin(D, true);
        uint64_t seed = 61 + 7 * (uint64_t)walk;
        const int from = walk % 3 * 100; /* wild from the first row on, or later */
        for (int i = 0; i < 1500; i++) {
            struct svi_evidence f[SVI_DETECTORS];
            double x[D];
            for (int j = 0; j < D; j++)
                x[j] = i < from ? test_normal(&seed) : wild_value(i, &seed);
            x[4] = 7; /* never moves */
            if (walk % 2)
                x[5] = NAN;
            if (i == 20)
                if (svi_sensors_set_context(s, walk % D))
                    assert_int_equal(svi_sensors_reserve_context(s, NULL), SVS_OK);
            if (i % 400 == 399)
                svi_sensor_detectors.forget(s, walk % D);
            step(s, x, walk % 4 == 3 ? wild_time(i, &seed) : walk % 4 == 2 ? MONDAY : MONDAY + i, f);
            for (int j = 0; j < SVI_DETECTORS; j++)
                assert_true(isfinite(f[j].surprise) && f[j].surprise >= 0);
            if (i % 50 == 0 || i < 70)
                check_finite(s, D, &bytes);
        }
        sensors_close(s);
    }
    svi_bytes_clear(&bytes);
}

/* ---- the row's judges */

static void archive_row_judges(struct svi_archive *a, void *of) {
    svi_row_detectors.archive(a, of);
}

static void *open_row_judges(void) {
    const struct svi_detector_shape shape = {.columns = 1};
    void *state = NULL;
    assert_int_equal(svi_row_detectors.reserve(&state, &shape, NULL), SVS_OK);
    return state;
}

/* Never more than p says; kept at random moments, at any time. */
static void judges_of_the_row_too(void **state) {
    (void)state;
    void *a = open_row_judges(), *b = open_row_judges();
    struct svi_bytes one = {0}, two = {0};
    uint64_t seed = 71;
    svs_error err = {0};
    for (int i = 0; i < 6000; i++) {
        struct svi_evidence f[SVI_DETECTORS] = {{0}}, g[SVI_DETECTORS] = {{0}};
        const double p = i % 500 < 490 ? test_uniform(&seed) : 1e-12;
        const struct svi_judgement row = {
            .above = p / 2, .p = p, .extreme = p, .scores = i < 4000 ? i / 2 : 2000, .calibrates = i % 2};
        const double time = i % 100 == 99 ? wild_time(i, &seed) : MONDAY + MINUTE * i;
        struct svi_moment at;
        svi_context_moment(NULL, time, &at);
        const struct svi_detector_sample sample = {.moment = &at, .row = &row};
        svi_row_detectors.assess(a, &sample, f);
        svi_row_detectors.assess(b, &sample, g);
        same_findings(f, g, i);
        assert_true(f[SVI_DETECTOR_ROW].surprise <= (float)-log10(p) * (1 + 1e-6));
        if (test_random(&seed) % 80)
            continue;
        svi_row_detectors.drop(b);
        assert_int_equal(archived_save(archive_row_judges, a, &one, &err), SVS_OK);
        b = open_row_judges();
        assert_int_equal(archived_load(archive_row_judges, b, one.data, one.size, &err), SVS_OK);
        assert_int_equal(archived_save(archive_row_judges, b, &two, &err), SVS_OK);
        assert_true(archived_same(&one, &two));
    }
    svi_row_detectors.drop(a);
    svi_row_detectors.drop(b);
    svi_bytes_clear(&one);
    svi_bytes_clear(&two);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_surprise_is_as_rare_as_it_says),
        cmocka_unit_test(episodes_of_rows_that_hang_together_too),
        cmocka_unit_test(no_row_of_a_period_surprises_more),
        cmocka_unit_test(what_is_wrong_for_its_context_is_found),
        cmocka_unit_test(context_has_limits),
        cmocka_unit_test(the_hour_counts),
        cmocka_unit_test(what_is_wrong_beside_the_others_is_found),
        cmocka_unit_test(one_that_comes_late_is_judged),
        cmocka_unit_test(kept_judges_go_on_bit_for_bit),
        cmocka_unit_test(wider_judges_keep_all),
        cmocka_unit_test(wild_values_and_times_break_nothing),
        cmocka_unit_test(judges_of_the_row_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
