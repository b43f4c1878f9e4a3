/* Standardised rows: mean and deviation are those of the rows before, in every instruction set; features that
 * come later had been 0; what is kept goes on bit for bit; and no input gives anything beyond +-10. */
#include "support/block.h"

#include "bank/standardiser.h"

static struct svi_standardiser standard_new(svs_isa isa, int d) {
    struct svi_standardiser s;
    assert_int_equal(svi_standardiser_init(&s, isa, NULL), SVS_OK);
    assert_int_equal(svi_standardiser_grow(&s, d, NULL), SVS_OK);
    return s;
}

static void row_of(int i, int d, double *x) {
    uint64_t seed = (uint64_t)i * 31 + 5;
    for (int j = 0; j < d; j++)
        x[j] = j % 4 == 3 ? 0.1 : 100 * j + (j + 1) * test_normal(&seed);
}

static void archive_it(struct svi_archive *a, void *s) {
    svi_standardiser_archive(a, s, ROW_MAX);
}

static void rows_are_standardised_by_those_before(void **unused) {
    (void)unused;
    for (int isa = 0; isa < ISAS; isa++)
        for (int d = 1; svi_floats_get(block_isas[isa]) && d < 40; d += 6) {
            struct svi_standardiser s = standard_new(block_isas[isa], d);
            double x[ROW_MAX], sum[ROW_MAX] = {0}, squares[ROW_MAX] = {0};
            float z[ROW_MAX] __attribute__((aligned(64)));
            assert_int_equal(svi_standardiser_padded(&s) % SVI_FLOATS_PAD, 0);
            for (int i = 0; i < 200; i++) {
                row_of(i, d, x);
                memset(z, 7, sizeof z);
                svi_standardiser_row(&s, x, z);
                for (int j = 0; j < svi_standardiser_padded(&s); j++) {
                    const double mean = j < d ? sum[j] / i : 0;
                    const double deviation = j < d ? sqrt(squares[j] / i - mean * mean) : 0;
                    if (j >= d || j % 4 == 3 || i < 2)
                        assert_true(z[j] == 0);
                    else
                        assert_true(fabs(fmax(-10, fmin(10, (x[j] - mean) / deviation)) - (double)z[j]) <
                                    1e-3);
                }
                svi_standardiser_take(&s, x);
                for (int j = 0; j < d; j++) {
                    sum[j] += x[j];
                    squares[j] += x[j] * x[j];
                }
            }
            assert_true(svi_standardiser_memory(s.d) >= d * 33);
            svi_standardiser_clear(&s);
        }
}

/* One has all features from the beginning, the other one gets them at row 60; one is loaded in between. */
static void growth_and_archives_keep_the_bits(void **unused) {
    (void)unused;
    struct svi_standardiser a = standard_new(SVS_ISA_BEST, 20), b = standard_new(SVS_ISA_BEST, 5);
    struct svi_bytes bytes = {0}, again = {0};
    svs_error err;
    double x[ROW_MAX];
    float u[ROW_MAX] __attribute__((aligned(64))), v[ROW_MAX] __attribute__((aligned(64)));
    for (int i = 0; i < 150; i++) {
        row_of(i, 20, x);
        for (int j = 5; i < 60 && j < 20; j++)
            x[j] = 0;
        if (i == 60)
            assert_int_equal(svi_standardiser_grow(&b, 20, NULL), SVS_OK);
        if (i == 80) {
            svi_standardiser_unscale(&a, 2);
            svi_standardiser_unscale(&b, 2);
            svi_standardiser_renew(&a, 6);
            svi_standardiser_renew(&b, 6);
        }
        if (i % 20 == 9) {
            struct svi_standardiser c = standard_new(SVS_ISA_BEST, 1);
            assert_int_equal(archived_save(archive_it, &b, &bytes, &err), SVS_OK);
            assert_int_equal(archived_load(archive_it, &c, bytes.data, bytes.size, &err), SVS_OK);
            assert_int_equal(archived_save(archive_it, &c, &again, &err), SVS_OK);
            assert_true(archived_same(&bytes, &again));
            svi_standardiser_clear(&b);
            b = c;
        }
        svi_standardiser_row(&a, x, u);
        svi_standardiser_row(&b, x, v);
        assert_memory_equal(u, v, (size_t)b.d * sizeof *u);
        assert_true(i < 80 || (double)u[2] == (double)(float)fmin(10, fmax(-10, x[2])));
        assert_true(i != 80 || u[6] == 0);
        svi_standardiser_take(&a, x);
        svi_standardiser_take(&b, x);
    }
    svi_standardiser_empty(&a);
    svi_standardiser_row(&a, x, u);
    assert_true(u[0] == 0 && u[2] == 10);
    svi_standardiser_clear(&a);
    svi_standardiser_clear(&b);
    svi_bytes_clear(&bytes);
    svi_bytes_clear(&again);
}

/* Whatever came and whatever bytes were loaded. */
static void nothing_is_beyond_the_clip(void **unused) {
    (void)unused;
    static const double wild[] = {1e100, -1e100, 0, 1e-300, -1e-300, 5e-324, 1, 1e50, -0.0};
    struct svi_standardiser s = standard_new(SVS_ISA_BEST, 9);
    struct svi_bytes bytes = {0};
    svs_error err;
    double x[9];
    float z[16] __attribute__((aligned(64)));
    uint64_t seed = 1;
    for (int i = 0; i < 3000; i++) {
        for (int j = 0; j < 9; j++)
            x[j] = j == 0 ? wild[i % 2] : j == 1 ? wild[3 + i % 3] : wild[test_random(&seed) % 9];
        svi_standardiser_row(&s, x, z);
        for (int j = 0; j < 16; j++)
            assert_true(fabsf(z[j]) <= 10);
        svi_standardiser_take(&s, x);
    }
    assert_int_equal(archived_save(archive_it, &s, &bytes, &err), SVS_OK);
    for (size_t at = 0; at < bytes.size; at++)
        for (int bit = 0; bit < 8; bit += often(1, 5)) {
            struct svi_standardiser t = standard_new(SVS_ISA_BEST, 0);
            bytes.data[at] ^= (uint8_t)(1 << bit);
            if (archived_load(archive_it, &t, bytes.data, bytes.size, &err) == SVS_OK) {
                svi_standardiser_take(&t, x);
                svi_standardiser_row(&t, x, z);
                for (int j = 0; j < t.d; j++)
                    assert_true(fabsf(z[j]) <= 10);
            }
            bytes.data[at] ^= (uint8_t)(1 << bit);
            svi_standardiser_clear(&t);
        }
    svi_standardiser_clear(&s);
    svi_bytes_clear(&bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_standardised_by_those_before),
        cmocka_unit_test(growth_and_archives_keep_the_bits),
        cmocka_unit_test(nothing_is_beyond_the_clip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
