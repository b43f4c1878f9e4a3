/* The kernels that take rows of any length, in each instruction set: what plain loops give, for every number
 * of values up to three of the widest vectors, and nothing is written beyond what they may write. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "linalg/kernels.h"
#include "support/problem.h"

enum { LONGEST = 25, COUNT = 7, SLACK = 8 };
#define UNTOUCHED -77.0

struct rows {
    double x[COUNT][LONGEST], mean[LONGEST], inverse[LONGEST], s[COUNT];
    const double *row[COUNT];
};

static void make_rows(struct rows *r) {
    uint64_t seed = 7;
    for (int j = 0; j < LONGEST; j++) {
        r->mean[j] = test_normal(&seed);
        r->inverse[j] = 0.5 + test_uniform(&seed);
        for (int i = 0; i < COUNT; i++)
            r->x[i][j] = test_normal(&seed);
    }
    for (int i = 0; i < COUNT; i++) {
        r->row[i] = r->x[i];
        r->s[i] = test_normal(&seed);
    }
}

static void fill(double *to, int count, double value) {
    for (int j = 0; j < count; j++)
        to[j] = value;
}

/* The first `n` values, and that no other was written from `end` on. */
static void assert_values(const double *got, const double *want, int n, int end) {
    for (int j = 0; j < n; j++)
        assert_true(fabs(got[j] - want[j]) <= 1e-14 * (1 + fabs(want[j])));
    for (int j = end; j < LONGEST + 1 + SLACK; j++)
        assert_true(got[j] == UNTOUCHED);
}

static void standardises(const struct svi_kernels *k, const struct rows *r, int d) {
    for (int capacity = d + 1; capacity <= d + 1 + SLACK; capacity++) {
        double z[LONGEST + 1 + SLACK], want[LONGEST + 1] = {1}, square = 1;
        fill(z, LONGEST + 1 + SLACK, UNTOUCHED);
        for (int j = 0; j < d; j++) {
            want[1 + j] = (r->x[0][j] - r->mean[j]) * r->inverse[j];
            square += want[1 + j] * want[1 + j];
        }
        const double got = k->standardise(z, r->x[0], r->mean, r->inverse, d, capacity);
        assert_true(fabs(got - square) <= 1e-14 * square);
        assert_values(z, want, d + 1, capacity);
        for (int j = d + 1; j < capacity; j++)
            assert_true(z[j] == 0 || z[j] == UNTOUCHED);
    }
    /* Several rows: the bits of one after another. */
    double z[COUNT * (LONGEST + 1) + SLACK], one[LONGEST + 1],
        sums[3 * (LONGEST + 1)] = {0}, want[3 * (LONGEST + 1)] = {0};
    const int group[COUNT] = {0, 2, 1, 0, 0, 2, 1};
    fill(z, COUNT * (LONGEST + 1) + SLACK, UNTOUCHED);
    k->standardise_rows(z, r->row, COUNT, r->mean, r->inverse, d);
    k->groups_add(sums, d + 1, z, r->s, group, COUNT);
    for (int i = 0; i < COUNT; i++) {
        k->standardise(one, r->row[i], r->mean, r->inverse, d, d + 1);
        k->groups_add(want, d + 1, one, &r->s[i], &group[i], 1);
        assert_memory_equal(z + i * (d + 1), one, (size_t)(d + 1) * sizeof *one);
    }
    assert_memory_equal(sums, want, sizeof sums);
    assert_true(z[COUNT * (d + 1)] == UNTOUCHED);
}

static void adds(const struct svi_kernels *k, const struct rows *r, int d, int count) {
    double got[LONGEST + 1 + SLACK], want[LONGEST + 1], dots[COUNT + SLACK];
    fill(got, LONGEST + 1 + SLACK, UNTOUCHED);
    fill(got, d, 0.25);
    fill(want, d, 0.25);
    k->add_times(got, r->x[0], r->s[0], d);
    for (int j = 0; j < d; j++)
        want[j] += r->s[0] * r->x[0][j];
    assert_values(got, want, d, d);
    k->about_add(r->row, count, d, r->mean, r->s, got);
    for (int i = 0; i < count; i++)
        for (int j = 0; j < d; j++)
            want[j] += r->s[i] * (r->x[i][j] - r->mean[j]);
    assert_values(got, want, d, d);
    k->about_squares(r->row, count, d, r->mean, got);
    for (int i = 0; i < count; i++)
        for (int j = 0; j < d; j++)
            want[j] += (r->x[i][j] - r->mean[j]) * (r->x[i][j] - r->mean[j]);
    assert_values(got, want, d, d);
    fill(dots, COUNT + SLACK, UNTOUCHED);
    k->about_dot(r->row, count, d, r->mean, r->inverse, dots);
    for (int i = 0; i < COUNT + SLACK; i++) {
        double dot = 0;
        for (int j = 0; i < count && j < d; j++)
            dot += (r->x[i][j] - r->mean[j]) * r->inverse[j];
        assert_true(i < count ? fabs(dots[i] - dot) <= 1e-13 : dots[i] == UNTOUCHED);
    }
}

static void every_length(void **state) {
    (void)state;
    static const svs_isa isas[] = {SVS_ISA_GENERIC, SVS_ISA_AVX2, SVS_ISA_AVX512};
    struct rows r;
    make_rows(&r);
    for (int i = 0; i < 3; i++) {
        const struct svi_kernels *k = svi_kernels_get(isas[i]);
        for (int d = 0; k && d <= LONGEST; d++) {
            standardises(k, &r, d);
            for (int count = 1; count <= COUNT; count++)
                adds(k, &r, d, count);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_length)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
