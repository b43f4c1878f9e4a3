/* The anomaly score of a row: its order, its range, what it says of rows that are exchangeable, how it
 * forgets, and how it is kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "alerts/anomaly.h"
#include "base/bytes.h"
#include "base/random.h"
#include "wire/archive_file.h"
#include "support/archived.h"

static double uniform(struct svi_random *r) {
    return ((double)(svi_random_next(r) >> 11) + 0.5) * 0x1p-53;
}

/* A strength of a law that covers many bins. */
static double draw(struct svi_random *r, double scale) {
    return scale * -log(uniform(r));
}

static void add(struct svi_anomaly *s, struct svi_random *r, int rows, double scale) {
    for (int i = 0; i < rows; i++)
        svi_anomaly_add(s, draw(r, scale));
}

/* The score rises with the strength and falls with p, strictly where either may differ, within [0, 1]. */
static void test_order(void **state) {
    (void)state;
    struct svi_anomaly s = {.rows = 0};
    struct svi_random r = {1};
    for (int rows = 0; rows < 3000; rows += 500) {
        double before = -1;
        for (double strength = 1e-3; strength < 1e6; strength *= 1.05) {
            double last = 2;
            for (double p = 1.0 / 2001; p <= 1; p += 1.0 / 64) {
                const double score = svi_anomaly_score(&s, p, strength);
                assert_true(score >= 0 && score <= 1 && score < last);
                last = score;
            }
            const double score = svi_anomaly_score(&s, 0.5, strength);
            assert_true(score >= before);
            if (rows > 0 && strength > 0.2 && strength < 3) /* where rows are */
                assert_true(score > before);
            before = score;
        }
        add(&s, &r, 500, 1);
    }
}

/* A row without strength is ranked by p alone, and leaves the past as it is. */
static void test_no_strength(void **state) {
    (void)state;
    struct svi_anomaly s = {.rows = 0}, before;
    struct svi_random r = {2};
    add(&s, &r, 1000, 1);
    before = s;
    for (double p = 1.0 / 64; p <= 1; p += 1.0 / 64)
        assert_true(svi_anomaly_score(&s, p, 0) == 1 - p);
    svi_anomaly_add(&s, 0);
    svi_anomaly_add(&s, NAN);
    assert_memory_equal(&before, &s, sizeof s);
    svi_anomaly_add(&s, INFINITY);
    assert_int_equal(s.rows, 1001);
}

/* On exchangeable rows the share of rows at least as strong is uniform: with p = 1 the score is 1 - q^(1/3).
 */
static void test_exchangeable(void **state) {
    (void)state;
    struct svi_anomaly s = {.rows = 0};
    struct svi_random r = {3};
    const int count = 100000;
    int beyond[3] = {0};
    for (int i = 0; i < count; i++) {
        const double strength = draw(&r, 1), q = pow(1 - svi_anomaly_score(&s, 1, strength), 3);
        for (int k = 0; k < 3; k++)
            beyond[k] += i >= 1000 && q <= pow(10, -k - 1);
        svi_anomaly_add(&s, strength);
    }
    for (int k = 0; k < 3; k++) {
        const double expected = (count - 1000) * pow(10, -k - 1);
        assert_true(beyond[k] > 0.8 * expected - 20 && beyond[k] < 1.2 * expected + 20);
    }
}

/* After a change of scale the old past is forgotten: what was rare is normal, whatever it was. */
static void test_forgets(void **state) {
    (void)state;
    struct svi_anomaly s = {.rows = 0};
    struct svi_random r = {4};
    add(&s, &r, 100000, 0.2);
    assert_true(svi_anomaly_score(&s, 1, 8) > 0.95);
    add(&s, &r, 2 * SVI_ANOMALY_MAX_ROWS, 20);
    assert_true(svi_anomaly_score(&s, 1, 8) < 0.2);
    /* Halving keeps the sum and loses no row of a bin that has many. */
    int rows = 0;
    for (int i = 0; i < SVI_ANOMALY_BINS; i++)
        rows += s.count[i];
    assert_int_equal(rows, s.rows);
    assert_true(s.rows >= SVI_ANOMALY_MAX_ROWS / 2 && s.rows < SVI_ANOMALY_MAX_ROWS);
}

/* Rare strong rows survive a halving: the highest of them is still not taken for new. */
static void test_rare_rows_stay(void **state) {
    (void)state;
    struct svi_anomaly s = {.rows = 0};
    for (int i = 0; i < SVI_ANOMALY_MAX_ROWS - 12; i++)
        svi_anomaly_add(&s, 0.5);
    for (int i = 0; i < 12; i++)
        svi_anomaly_add(&s, 4 * pow(2, i / 4.0 + 0.1)); /* one a bin */
    assert_int_equal(s.rows, SVI_ANOMALY_MAX_ROWS / 2);
    int high = 0;
    for (int i = 20; i < SVI_ANOMALY_BINS; i++)
        high += s.count[i];
    assert_int_equal(high, 6);
}

static void archive_anomaly(struct svi_archive *a, void *anomaly) {
    svi_anomaly_archive(a, anomaly);
}

static void test_archive(void **state) {
    (void)state;
    struct svi_anomaly s = {.rows = 0}, read = {.rows = 0};
    struct svi_random r = {5};
    struct svi_bytes saved = {0};
    svs_error err;
    add(&s, &r, 50000, 3);
    assert_int_equal(archived_save(archive_anomaly, &s, &saved, &err), SVS_OK);
    assert_int_equal(archived_load(archive_anomaly, &read, saved.data, saved.size, &err), SVS_OK);
    assert_memory_equal(&s, &read, sizeof s);
    /* More rows than may be held: the next halving would not come in time for a count. */
    struct svi_anomaly full = {.rows = 0}, untouched = {.rows = 0};
    full.count[0] = full.count[1] = SVI_ANOMALY_MAX_ROWS / 2;
    assert_int_equal(archived_save(archive_anomaly, &full, &saved, &err), SVS_OK);
    assert_int_equal(archived_load(archive_anomaly, &untouched, saved.data, saved.size, &err), SVS_DAMAGED);
    assert_int_equal(untouched.rows, 0);
    full.count[1]--;
    assert_int_equal(archived_save(archive_anomaly, &full, &saved, &err), SVS_OK);
    assert_int_equal(archived_load(archive_anomaly, &untouched, saved.data, saved.size, &err), SVS_OK);
    svi_bytes_clear(&saved);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),          cmocka_unit_test(test_no_strength),
        cmocka_unit_test(test_exchangeable),   cmocka_unit_test(test_forgets),
        cmocka_unit_test(test_rare_rows_stay), cmocka_unit_test(test_archive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
