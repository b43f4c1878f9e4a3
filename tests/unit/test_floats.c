/* Single precision kernels: each instruction set against double precision, and sums that do not depend on how
 * many rows go together or how much padding follows. */
#include "support/block.h"

#define N 288

struct vectors {
    float a[N + 16], b[N + 16], c[4 * N] __attribute__((aligned(64)));
};

static void vectors_fill(struct vectors *v, uint64_t seed) {
    for (int i = 0; i < N + 16; i++) {
        v->a[i] = (float)test_normal(&seed);
        v->b[i] = (float)test_normal(&seed);
    }
    for (int i = 0; i < 4 * N; i++)
        v->c[i] = (float)test_normal(&seed);
}

static const struct svi_floats *floats_of(int i) {
    const struct svi_floats *k = svi_floats_get(block_isas[i]);
    if (k)
        assert_int_equal(k->isa, block_isas[i]);
    return k;
}

static void sums_are_those_of_doubles(void **unused) {
    (void)unused;
    struct vectors v __attribute__((aligned(64)));
    for (int isa = 0; isa < ISAS; isa++) {
        const struct svi_floats *k = floats_of(isa);
        for (int n = 16; k && n <= N; n += 16) {
            float s[4], one;
            vectors_fill(&v, (uint64_t)n);
            k->dots(v.a, v.c, N, 4, n, s);
            for (int r = 0; r < 4; r++) {
                double sum = 0, size = 0;
                for (int i = 0; i < n; i++) {
                    sum += (double)v.a[i] * (double)v.c[r * N + i];
                    size += fabs((double)v.a[i] * (double)v.c[r * N + i]);
                }
                assert_true(fabs(sum - (double)s[r]) <= 1e-6 * size);
                k->dots(v.a, v.c + (size_t)r * N, N, 1, n, &one);
                assert_memory_equal(&one, &s[r], sizeof one);
            }
            memset(v.a + n, 0, (size_t)(N - n) * sizeof *v.a);
            k->dots(v.a, v.c, N, 1, N, &one);
            assert_memory_equal(&one, &s[0], sizeof one);
        }
    }
}

static void updates_are_those_of_doubles(void **unused) {
    (void)unused;
    struct vectors v __attribute__((aligned(64)));
    for (int isa = 0; isa < ISAS; isa++) {
        const struct svi_floats *k = floats_of(isa);
        if (!k)
            continue;
        double w[N], sum[N];
        vectors_fill(&v, 5);
        for (int i = 0; i < N; i++) {
            v.c[N + i] = 0;
            w[i] = (double)v.b[i] - 0.25 * (double)v.a[i];
            sum[i] = 0;
        }
        k->add(v.b, v.a, -0.25F, N);
        for (int t = 1; t <= 20; t++) {
            k->adagrad(v.b, v.c + N, v.a, 1.0F / (float)t, 0.3F, 0.99F, N);
            for (int i = 0; i < N; i++) {
                const double g = (double)v.a[i] * (double)(1.0F / (float)t);
                sum[i] = 0.99 * sum[i] + g * g;
                w[i] -= 0.3 * g / sqrt(sum[i] + 1e-8);
            }
        }
        for (int i = 0; i < N; i++) {
            assert_true(fabs(w[i] - (double)v.b[i]) < 3e-5);
            assert_true(fabs(sum[i] - (double)v.c[N + i]) <= 1e-5 * sum[i]);
        }
    }
}

static void cosines_and_chances_are_those_of_doubles(void **unused) {
    (void)unused;
    enum { COUNT = 128, D = 3 };
    float f[COUNT] __attribute__((aligned(64))), w[COUNT * D] __attribute__((aligned(64))),
        shift[COUNT] __attribute__((aligned(64))), z[16] __attribute__((aligned(64))) = {1, -0.5F, 0.25F};
    for (int isa = 0; isa < ISAS; isa++) {
        const struct svi_floats *k = floats_of(isa);
        uint64_t seed = 3;
        double worst = 0;
        for (int t = 0; k && t < often(400, 20); t++) {
            for (int i = 0; i < COUNT * D; i++)
                w[i] = (float)(0.4 * (2 * test_uniform(&seed) - 1));
            for (int i = 0; i < COUNT; i++)
                shift[i] = (float)(0.3 * (2 * test_uniform(&seed) - 1));
            k->cosines(w, shift, z, D, COUNT, f);
            for (int i = 0; i < COUNT; i++) {
                const float *at =
                    w + (size_t)(i / SVI_COSINE_BLOCK * SVI_COSINE_BLOCK * D + i % SVI_COSINE_BLOCK);
                double turns = (double)shift[i];
                for (int j = 0; j < D; j++)
                    turns += (double)z[j] * (double)at[j * SVI_COSINE_BLOCK];
                worst = fmax(worst, fabs(cos(2 * acos(-1) * turns) - (double)f[i]));
            }
            for (int i = 0; i < COUNT; i++)
                f[i] = (float)(40 * test_normal(&seed));
            k->logistic(f, COUNT, w);
            for (int i = 0; i < COUNT; i++) {
                const double p = 1 / (1 + exp(-fmin(85, fmax(-85, (double)f[i]))));
                assert_true(fabs(p - (double)w[i]) <= 1e-6 * p);
            }
        }
        assert_true(worst < 1.2e-6);
        for (int i = 0; k && i < D; i++)
            z[i] = 1e30F;
        for (int i = 0; k && i < COUNT * D; i++)
            w[i] = i % 2 ? 1e7F : -3e6F;
        if (k)
            k->cosines(w, shift, z, D, COUNT, f);
        for (int i = 0; k && i < COUNT; i++)
            assert_true(fabsf(f[i]) <= 1.000001F);
        z[0] = 1, z[1] = -0.5F, z[2] = 0.25F;
    }
}

static void products_are_standardised(void **unused) {
    (void)unused;
    enum { ROOM = 48 * 51 / 2 + 32 };
    float z[ROW_MAX] __attribute__((aligned(64))), p[ROOM] __attribute__((aligned(64))),
        f[ROOM] __attribute__((aligned(64))), mean[ROOM] __attribute__((aligned(64))),
        variance[ROOM] __attribute__((aligned(64))), scratch[ROW_MAX] __attribute__((aligned(64)));
    for (int isa = 0; isa < ISAS; isa++)
        for (int d = 1; floats_of(isa) && d <= 48; d += d < 20 ? 1 : 7) {
            const struct svi_floats *k = floats_of(isa);
            const int count = d * (d + 3) / 2, n = (count + 15) / 16 * 16;
            double sum = 0, squares = 0; /* of the last product */
            memset(mean, 0, sizeof mean);
            memset(variance, 0, sizeof variance);
            for (int t = 1; t <= 50; t++) {
                block_row(t, d, z);
                k->products(z, d, n, p, scratch);
                for (int j = 0, at = 0; j < d; j++)
                    for (int i = -1; i <= j; i++)
                        assert_true(p[at++] == (i < 0 ? 1 : z[i]) * z[j]);
                for (int i = count; i < n; i++)
                    assert_true(p[i] == 0);
                k->normalise(p, mean, variance, 3, n, f);
                const double last = (double)p[count - 1], m = sum / (t - 1), v = squares / (t - 1) - m * m;
                if (t > 2 && v > 1e-3)
                    assert_true(fabs(fmax(-3, fmin(3, (last - m) / sqrt(v))) - (double)f[count - 1]) < 1e-3);
                assert_true(t > 1 || f[0] == 0);
                k->average(p, 1 / (float)t, n, mean, variance);
                sum += last;
                squares += last * last;
            }
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_those_of_doubles),
        cmocka_unit_test(updates_are_those_of_doubles),
        cmocka_unit_test(cosines_and_chances_are_those_of_doubles),
        cmocka_unit_test(products_are_standardised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
