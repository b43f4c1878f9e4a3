/* Features that novelty meets late, in too great a number, or with values at the edge of what there is. */
#include "support/tape.h"
#include "support/quick.h"

#define LATER 1600 /* when they appear */
#define MORE  20

static const char *names[COLUMNS];

static const char *const alone[] = {
    "method",      "none", "stream",         "pump1", "novelty.calibration", "400", "alert.p", "0.005",
    "alert.clear", "0.05", "alert.cooldown", "0",     "novelty.confirm",     "5",   NULL};

static int name_them(void **unused) {
    static char capacity[COLUMNS][16];
    (void)unused;
    for (int j = 0; j < COLUMNS; j++) {
        snprintf(capacity[j], sizeof capacity[j], "s%d", j);
        names[j] = capacity[j];
    }
    return 0;
}

static void pump(int i, struct row *r) {
    tape_pump(i, r);
    r->names = names;
}

/* Twenty sensors more, that show 0. */
static void widened(int i, struct row *r) {
    pump(i, r);
    r->d += i >= LATER ? MORE : 0;
}

static void check_growth(const char *lags) {
    const char *const settings[] = {"novelty.lags", lags, NULL};
    const int end = LATER + 1500, first = atoi(lags) - 1;
    struct tape t;
    tape_open(&t, alone, settings);
    tape_feed(&t, widened, 0, LATER, 64);
    const double scores = tape_stat(&t, "novelty_calibration"), points = tape_stat(&t, "novelty_points"),
                 renewals = tape_stat(&t, "novelty_refreshes"), joined = tape_stat(&t, "novelty_added");
    assert_int_equal(scores, 400);
    tape_feed(&t, widened, LATER, LATER + 1, 1);
    assert_true(tape_stat(&t, "novelty_calibration") == scores);
    assert_true(tape_stat(&t, "novelty_points") >= points);
    assert_true(tape_stat(&t, "novelty_refreshes") == renewals + 1);
    assert_true(tape_stat(&t, "novelty_added") >= joined);
    tape_feed(&t, widened, LATER + 1, end, 64);
    for (int i = 0; i < end; i++)
        assert_true(i < first ? isnan(t.p[i]) : t.p[i] > 0 && t.p[i] <= 1);
    const double share = tape_share(&t, LATER, end, 0.1);
    assert_true(share > 0.05 && share < 0.16); /* 400 scores alone move it by 0.015 */
    assert_int_equal(tape_figure(&t, "novelty_error") != NULL, 0);
    tape_close(&t);
}

static void test_calibration_is_kept(void **unused) {
    (void)unused;
    check_growth("1");
    check_growth("4");
}

/* A sensor nobody had heard of speaks up: it is named as the reason. */
static void speaks(int i, struct row *r) {
    pump(i, r);
    r->d += i >= LATER ? MORE : 0;
    r->x[PUMP + 7] = i >= LATER + 400 ? 30 : 0;
}

static void test_new_feature_is_the_reason(void **unused) {
    (void)unused;
    struct tape t;
    tape_open(&t, alone, NULL);
    tape_feed(&t, speaks, 0, LATER + 410, 64);
    const struct told *a = &t.told[t.count[SVI_TOPIC_ALERT] - 1];
    assert_true(t.count[SVI_TOPIC_ALERT] > 0 && a->at >= LATER + 400);
    assert_string_equal(a->name[0], "s10");
    assert_true(a->top[0].adds > 0.5 && a->top[0].low == 0 && a->top[0].high == 0);
    assert_non_null(strstr(a->text, "s10 30 (usually 0 to 0)"));
    tape_close(&t);
}

/* One name after the other: few of them cost a rebuild. */
static void one_more(int i, struct row *r) {
    pump(i, r);
    r->d = i < 200 ? PUMP : PUMP + (i - 200) / 2 < COLUMNS ? PUMP + (i - 200) / 2 : COLUMNS;
}

static void test_names_one_by_one(void **unused) {
    (void)unused;
    static const char *const wide[] = {"novelty.lags", "60", NULL}; /* 68 features at most */
    struct tape t;
    for (int k = 0; k < often(2, 1); k++) { /* test_too_many is as wide */
        tape_open(&t, alone, k ? wide : NULL);
        tape_feed(&t, one_more, 0, 340, 16);
        assert_int_equal(tape_stat(&t, "d"), COLUMNS);
        assert_in_range((int)tape_stat(&t, "novelty_refreshes"), 4, 7); /* four are of every stream */
        assert_false(isnan(t.p[339]));
        tape_close(&t);
    }
}

/* More columns than novelty takes: it goes, the classifier stays. */
static void too_wide(int i, struct row *r) {
    pump(i, r);
    r->d = i < 900 ? PUMP : 41;
    r->y = r->x[0] > 60;
    if (i > 880)
        r->x[1] = 9;
}

static void test_too_many(void **unused) {
    (void)unused;
    static const char *const on[] = {"method", "alsvm", "novelty.lags", "100", "publish.every", "50", NULL};
    static const char *const off[] = {"method", "alsvm", "novelty", "none", "publish.every", "50", NULL};
    struct tape t, without;
    tape_open(&t, alone, on);
    tape_open(&without, alone, off);
    tape_feed(&t, too_wide, 0, 900, 16);
    assert_null(tape_figure(&t, "novelty_error"));
    assert_false(isnan(t.p[899]));
    tape_feed(&t, too_wide, 900, 1200, 16);
    tape_feed(&without, too_wide, 0, 1200, 16);
    assert_int_equal(tape_stat(&t, "seen"), 1200);
    assert_int_equal(t.count[SVI_TOPIC_ERROR], 0);
    for (int i = 900; i < 1200; i++)
        assert_true(isnan(t.p[i]) && isnan(t.novelty[i]));
    const struct svi_figure *why = tape_figure(&t, "novelty_error");
    assert_non_null(why);
    assert_non_null(strstr(why->as.text, "41 features times novelty.lags 100"));
    assert_non_null(strstr(why->as.text, "4096"));
    assert_int_equal(tape_stat(&t, "alert_open"), 0);
    assert_int_equal(tape_stat(&t, "novelty_calibration"), 0);
    assert_int_equal(t.models.size, without.models.size);
    assert_memory_equal(t.models.data, without.models.data, t.models.size);
    svi_engine_reset(svi_stream_root(t.e)); /* the features stay, so it stays off */
    tape_feed(&t, too_wide, 1200, 1300, 16);
    assert_true(isnan(t.p[1299]) && tape_figure(&t, "novelty_error"));
    tape_close(&t);
    tape_close(&without);
}

/* Constants, huge and tiny values, and jumps between them. */
static void edges(int i, struct row *r) {
    static const double values[] = {0, 1e100, -1e100, 1e-300, 5e-324, 1, -1e50, 1e16, 3};
    tape_pump(i, r);
    for (int j = 0; j < PUMP; j++) {
        const double n = tape_noise(i, j);
        const double kinds[] = {
            0, values[(unsigned)i * 7u % 9u], j ? 1e100 * n : n, j ? n : 1e-300 * n, n > 0 ? 1e99 : -1e99, n};
        r->x[j] = fmin(fmax(kinds[i / 200 % 6], -1e100), 1e100);
    }
}

static void check_edges(const char *kernel, const char *gamma) {
    const char *const settings[] = {
        "novelty.kernel", kernel, "novelty.gamma", gamma, "novelty.max", "30", "alert.fdr", "0.3", NULL};
    struct tape t;
    tape_open(&t, alone, settings);
    tape_feed(&t, edges, 0, 1400, 64);
    assert_int_equal(t.count[SVI_TOPIC_SCORE] + t.count[SVI_TOPIC_ERROR], 1400);
    assert_true(t.count[SVI_TOPIC_SCORE] > 1000);
    for (int i = 0; i < t.count[SVI_TOPIC_SCORE]; i++)
        assert_true(t.p[i] > 0 && t.p[i] <= 1 && isfinite(t.novelty[i]));
    for (int i = 0; i < t.count[SVI_TOPIC_ALERT]; i++)
        assert_true(t.told[i].grade >= 0 && t.told[i].grade <= 1);
    tape_close(&t);
}

static void test_values_at_the_edge(void **unused) {
    (void)unused;
    static const char *const kernels[] = {"laplacian", "rbf", "polynomial"};
    static const char *const gammas[] = {"auto", "scale", "1e-100", "1e100"};
    for (int k = 0; k < 3; k++)
        for (int g = often(0, k % 2); g < 4; g += often(1, 2))
            check_edges(kernels[k], gammas[g]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calibration_is_kept), cmocka_unit_test(test_new_feature_is_the_reason),
        cmocka_unit_test(test_names_one_by_one),    cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_values_at_the_edge),
    };
    return cmocka_run_group_tests(tests, name_them, NULL);
}
