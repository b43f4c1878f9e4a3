/* The last rows of a stream against a plain list of the same rows: values, times and spans after steps
 * between far levels, missing values, new columns, columns that start again, moved clocks and archives at any
 * row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "alerts/history.h"
#include "base/random.h"
#include "support/archived.h"

#define ROWS 1000
#define MOST 7 /* columns */

static double plain[ROWS][MOST], times[ROWS];

static double uniform(struct svi_random *r) {
    return (double)(svi_random_next(r) >> 11) * 0x1p-53;
}

static void archive_all(struct svi_archive *a, void *h) {
    svi_history_archive(a, h, MOST, false);
}

static void archive_growing(struct svi_archive *a, void *h) {
    svi_history_archive(a, h, MOST, true);
}

/* Saves, clears and loads again. */
static void pass_through_archive(struct svi_history *h, bool grows) {
    struct svi_bytes bytes = {0};
    svs_error err;
    assert_int_equal(archived_save(grows ? archive_growing : archive_all, h, &bytes, &err), SVS_OK);
    svi_history_clear(h);
    assert_int_equal(archived_load(grows ? archive_growing : archive_all, h, bytes.data, bytes.size, &err),
                     SVS_OK);
    svi_bytes_clear(&bytes);
}

/* A history keeps seven digits of the distance from an origin that is at most `reach` away. */
static void assert_near(double found, double value, double reach) {
    if (isnan(value) ? !isnan(found) : !(fabs(found - value) <= 2e-7 * reach))
        fail_msg("found %.17g, the row had %.17g", found, value);
}

static void check(const struct svi_history *h, int rows, int d, double reach) {
    double values[SVI_HISTORY_ROWS], at[SVI_HISTORY_ROWS];
    const int held = rows < SVI_HISTORY_ROWS ? rows : SVI_HISTORY_ROWS;
    assert_int_equal(svi_history_held(h), held);
    for (int j = 0; j < d; j++) {
        const int counts[] = {1, held / 2, held, held + 5};
        for (int c = 0; c < 4; c++) {
            const int n = svi_history_column(h, j, counts[c], values, at);
            assert_int_equal(n, counts[c] < held ? counts[c] : held);
            double sum = 0, least = INFINITY, most = -INFINITY;
            int known = 0;
            for (int i = 0; i < n; i++) {
                const double value = plain[rows - n + i][j];
                assert_near(values[i], value, reach);
                assert_true(at[i] == times[rows - n + i]);
                if (isnan(value))
                    continue;
                sum += value;
                known++;
                least = fmin(least, value);
                most = fmax(most, value);
            }
            const struct svi_history_span span = svi_history_over(h, j, counts[c]);
            assert_int_equal(span.rows, n);
            assert_int_equal(span.values, known);
            assert_near(span.mean, known ? sum / known : NAN, reach);
            assert_near(span.least, known ? least : NAN, reach);
            assert_near(span.most, known ? most : NAN, reach);
        }
    }
    assert_int_equal(svi_history_column(h, h->d, 5, values, at), 0);
    assert_int_equal(svi_history_column(h, -1, 5, values, at), 0);
}

static void walk(uint64_t seed, bool grows) {
    struct svi_random r = {seed};
    struct svi_history h = {0};
    svs_error err;
    const double far = pow(10, floor(11 * uniform(&r)) - 2); /* levels as far apart as this */
    double level = 0;
    int d = 1 + (int)(3 * uniform(&r));
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < MOST; j++)
            plain[i][j] = uniform(&r) < .1 ? NAN : level + uniform(&r);
        for (int j = d; j < MOST; j++)
            plain[i][j] = NAN;
        times[i] = 1.7e9 + 60 * i;
        assert_int_equal(svi_history_reserve(&h, d, grows, &err), SVS_OK);
        assert_false(svi_history_is_full(&h));
        svi_history_add(&h, plain[i], times[i]);
        check(&h, i + 1, d, 1 + far);
        if (uniform(&r) < .01)
            level = far * floor(3 * uniform(&r));
        if (uniform(&r) < .02)
            pass_through_archive(&h, grows);
        if (uniform(&r) < .005 && d < MOST)
            d++;
        if (uniform(&r) < .005) {
            svi_history_forget(&h, 0);
            for (int k = 0; k <= i; k++)
                plain[k][0] = NAN;
        }
        if (uniform(&r) < .005) {
            const double from = times[i / 2];
            svi_history_move_times(&h, from, -30);
            for (int k = 0; k <= i; k++)
                times[k] += times[k] > from ? -30 : 0;
        }
    }
    svi_history_clear(&h);
}

static void test_walks(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++)
        walk(seed, seed % 2);
}

/* A sensor that left its first level for good has all its digits after a ring of rows. */
static void test_digits_return(void **state) {
    (void)state;
    struct svi_history h = {0};
    svs_error err;
    assert_int_equal(svi_history_reserve(&h, 1, false, &err), SVS_OK);
    const double start = 0;
    svi_history_add(&h, &start, 0);
    for (int i = 1; i < 3 * SVI_HISTORY_ROWS; i++) {
        const double x = 1e9 + .01 * (i % 10);
        svi_history_add(&h, &x, i);
    }
    const struct svi_history_span span = svi_history_over(&h, 0, 10);
    assert_true(fabs(span.least - 1e9) < 1e-6 && fabs(span.most - 1e9 - .09) < 1e-6);
    assert_true(fabs(span.mean - 1e9 - .045) < 1e-6);
    svi_history_clear(&h);
}

/* Too many columns end a history, values that are no numbers are none, and the largest ones stay numbers. */
static void test_bounds(void **state) {
    (void)state;
    struct svi_history h = {0};
    svs_error err;
    double x[3] = {INFINITY, -1.7e308, 1.7e308}, values[3];
    assert_int_equal(svi_history_reserve(&h, 3, true, &err), SVS_OK);
    svi_history_add(&h, x, 0);
    x[1] = 1.7e308;
    svi_history_add(&h, x, 1);
    assert_int_equal(svi_history_column(&h, 0, 2, values, NULL), 2);
    assert_true(isnan(values[0]) && isnan(values[1]));
    assert_int_equal(svi_history_column(&h, 1, 2, values, NULL), 2);
    assert_true(values[0] == -1.7e308 && !isinf(values[1]));
    assert_int_equal(svi_history_reserve(&h, SVI_HISTORY_COLUMNS + 1, true, &err), SVS_OK);
    svi_history_add(&h, x, 2);
    assert_int_equal(svi_history_held(&h), 0);
    assert_int_equal(svi_history_column(&h, 0, 2, values, NULL), 0);
    svi_history_clear(&h);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_walks), cmocka_unit_test(test_digits_return),
                                       cmocka_unit_test(test_bounds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
