/* Steps of sensors: the distance of a row is the third largest of the last five, whatever is missing; a row
 * that is taken back leaves no trace; the archive holds all of it. */
#include "support/problem.h"

#include <float.h>

#include "alerts/steps.h"
#include "support/archived.h"

#define D    7
#define ROWS 400

static void archive_steps(struct svi_archive *a, void *of) {
    svi_steps_archive(a, of);
}

static struct svi_steps begin(int d) {
    struct svi_steps s;
    assert_int_equal(svi_steps_init(&s, d, NULL), SVS_OK);
    return s;
}

/* Values with gaps, steps, rests and powers of ten; sensor 0 rests until row 50, sensor 1 is absent so long.
 */
static void row_of(int i, uint64_t *seed, double *x) {
    for (int j = 0; j < D; j++) {
        x[j] = pow(10, j - 3) * (test_normal(seed) + (i / 40 % 3) * j);
        if (test_uniform(seed) < 0.2 || (j == 1 && i < 50))
            x[j] = NAN;
        if (j == 0 && i < 50)
            x[j] = 7;
        if (test_uniform(seed) < 0.01)
            x[j] *= 1e6;
    }
}

static int descending(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

/* The distance of the last row of sensor j alone. */
static float last_distance(const struct svi_steps *s, int j) {
    return s->recent[(s->rows - 1) % SVI_STEPS_OF * s->d + j];
}

static void distance_is_third_of_five(void **state) {
    (void)state;
    for (uint64_t walk = 1; walk <= 20; walk++) {
        struct svi_steps s = begin(D);
        float past[ROWS][D];
        uint64_t seed = walk;
        double seen = 0;
        for (int i = 0; i < ROWS; i++) {
            double x[D];
            row_of(i, &seed, x);
            svi_steps_row(&s, x, 100);
            for (int j = 0; j < D; j++) {
                float five[SVI_STEPS_OF] = {0};
                past[i][j] = last_distance(&s, j);
                assert_true(isfinite(past[i][j]) && past[i][j] >= 0 && (!isnan(x[j]) || past[i][j] == 0));
                for (int k = 0; k < SVI_STEPS_OF && k <= i; k++)
                    five[k] = past[i - k][j];
                qsort(five, SVI_STEPS_OF, sizeof *five, descending);
                assert_true(s.distance[j] == five[2]);
                seen += s.distance[j] > 0;
            }
        }
        assert_true(seen > ROWS * D / 4);
        svi_steps_clear(&s);
    }
}

/* The distances against plain sums: shares of a mean, the limit of a square, the least deviation. */
static void distances_are_those_of_the_chart(void **state) {
    (void)state;
    struct svi_steps s = begin(1);
    uint64_t seed = 3;
    double mean = 0, square = 0, low = 0, high = 0;
    for (int i = 0; i < 2000; i++) {
        const double x = i % 700 > 600 ? 5 : 5 + test_normal(&seed) + (i == 900 ? 1000 : 0);
        const double one = fmax(square, pow(0.01 * (high - low), 2)), gap = i > 0 ? x - mean : 0;
        svi_steps_row(&s, &x, 100);
        const double want = one > 0 ? fabs(gap) / sqrt(one) : 0, got = (double)last_distance(&s, 0);
        if (fabs(got - want) > 1e-6 * want + 1e-9)
            fail_msg("row %d: %.9g, by plain sums %.9g", i, got, want);
        mean = i > 0 ? mean + fmax(0.02, 1.0 / (i + 1)) * gap : x;
        square += fmax(0.005, 1.0 / (i + 1)) * (fmin(gap * gap, i < 32 ? DBL_MAX : 25 * one) - square);
        low = i > 0 ? fmin(x, mean + 0.99 * (low - mean)) : x;
        high = i > 0 ? fmax(x, mean + 0.99 * (high - mean)) : x;
    }
    svi_steps_clear(&s);
}

/* One of two takes rows back; to it they were rows without a value. */
static void what_is_taken_back_leaves_no_trace(void **state) {
    (void)state;
    struct svi_steps a = begin(D), b = begin(D);
    struct svi_bytes one = {0}, two = {0};
    uint64_t seed = 5, when = 6;
    svs_error err = {0};
    int taken = 0;
    for (int i = 0; i < ROWS; i++) {
        double x[D], y[D];
        struct svi_steps_column kept[D];
        bool back[D];
        row_of(i, &seed, x);
        for (int j = 0; j < D; j++) {
            back[j] = test_uniform(&when) < 0.3;
            kept[j] = svi_steps_column(&a, j);
            y[j] = back[j] ? NAN : x[j];
            taken += back[j];
        }
        svi_steps_row(&a, x, 100);
        for (int j = 0; j < D; j++)
            if (back[j])
                svi_steps_restore(&a, j, &kept[j]);
        svi_steps_row(&b, y, 100);
        assert_int_equal(archived_save(archive_steps, &a, &one, &err), SVS_OK);
        assert_int_equal(archived_save(archive_steps, &b, &two, &err), SVS_OK);
        if (!archived_same(&one, &two))
            fail_msg("row %d has left a trace", i);
    }
    assert_true(taken > ROWS);
    svi_bytes_clear(&one);
    svi_bytes_clear(&two);
    svi_steps_clear(&a);
    svi_steps_clear(&b);
}

/* Any values: what is kept can be loaded, and goes on alike; a sensor that starts again is a new one. */
static void kept_steps_go_on(void **state) {
    (void)state;
    static const double wild[] = {1e300, -1e300, 1.7e308, -1.7e308, 0, 5e-324, NAN, 1e-200};
    struct svi_bytes bytes = {0};
    svs_error err = {0};
    for (uint64_t walk = 1; walk <= 20; walk++) {
        struct svi_steps a = begin(D);
        uint64_t seed = walk;
        for (int i = 0; i < ROWS; i++) {
            double x[D];
            row_of(i, &seed, x);
            for (int j = 0; j < D; j++)
                if (test_uniform(&seed) < 0.1 && walk > 5)
                    x[j] = wild[test_random(&seed) % (sizeof wild / sizeof *wild)];
            struct svi_steps b = begin(D);
            assert_int_equal(archived_save(archive_steps, &a, &bytes, &err), SVS_OK);
            if (archived_load(archive_steps, &b, bytes.data, bytes.size, &err) != SVS_OK)
                fail_msg("walk %d, row %d: %s", (int)walk, i, err.text);
            svi_steps_row(&a, x, 100);
            svi_steps_row(&b, x, 100);
            assert_memory_equal(a.distance, b.distance, sizeof *a.distance * D);
            for (int j = 0; j < D; j++)
                assert_true(isfinite(a.distance[j]));
            svi_steps_clear(&b);
            if (i % 100 != 99)
                continue;
            svi_steps_forget(&a, i / 100);
            assert_true(isnan(a.low[i / 100]) && isnan(a.high[i / 100]) && a.square[i / 100] == 0);
            assert_true(last_distance(&a, i / 100) == 0);
        }
        svi_steps_clear(&a);
    }
    svi_bytes_clear(&bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distance_is_third_of_five),
        cmocka_unit_test(distances_are_those_of_the_chart),
        cmocka_unit_test(what_is_taken_back_leaves_no_trace),
        cmocka_unit_test(kept_steps_go_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
