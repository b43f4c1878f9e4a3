/* The small one-class problem: optimal after any sequence of points that join and leave. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "novelty/active_set.h"
#include "reference.h"

#define D    3
#define MOST 60

struct cloud {
    double x[MOST][D];
    int count;
};

static double rbf(const double *a, const double *b, double gamma) {
    double sum = 0;
    for (int j = 0; j < D; j++)
        sum += (a[j] - b[j]) * (a[j] - b[j]);
    return exp(-gamma * sum);
}

static void join(struct svi_active_set *h, struct cloud *c, const double *x, double gamma) {
    double row[MOST + 1];
    memcpy(c->x[c->count], x, sizeof c->x[0]);
    for (int i = 0; i <= c->count; i++)
        row[i] = rbf(c->x[i], x, gamma);
    svi_active_set_add(h, row);
    c->count++;
}

static void leave(struct svi_active_set *h, struct cloud *c, int i) {
    svi_active_set_remove(h, i);
    memmove(c->x[i], c->x[c->count - 1],
            sizeof c->x[0]); /* the last takes its number; memmove: perhaps itself */
    c->count--;
}

/* The problem is convex: feasible with its conditions met is the optimum, whatever way led there. K is
 * computed afresh from the points. */
static void assert_optimal(const struct svi_active_set *h, const struct cloud *c, double gamma,
                           double tolerance) {
    double sum = 0, quadratic = 0;
    assert_int_equal(h->count, c->count);
    for (int i = 0; i < c->count; i++) {
        double u = 0;
        assert_true(h->z[i] >= 0);
        for (int j = 0; j < c->count; j++)
            u += rbf(c->x[i], c->x[j], gamma) * h->z[j];
        assert_true(u >= 1 - tolerance);
        assert_true(h->z[i] == 0 || fabs(u - 1) <= tolerance);
        assert_true(fabs(u - h->u[i]) <= tolerance);
        sum += h->z[i];
        quadratic += h->z[i] * u;
    }
    assert_true(c->count == 0 || fabs(svi_active_set_rho(h) * sum - 1) < 1e-12);
    assert_true(fabs(quadratic - sum) <= tolerance * (1 + sum)); /* primal and dual meet */
    assert_true(svi_active_set_violation(h) <= tolerance);
}

static void walk(double gamma, double tolerance, uint64_t seed, int steps) {
    struct svi_active_set h = {0};
    struct cloud c = {.count = 0};
    svs_error err;
    assert_int_equal(svi_active_set_reserve(&h, 4, &err), SVS_OK);
    for (int t = 0; t < steps; t++) {
        double x[D];
        const bool joins = c.count < 2 || (c.count < MOST && ref_uniform(&seed) < 0.55);
        if (joins) {
            for (int j = 0; j < D; j++)
                x[j] = ref_gauss(&seed);
            if (c.count > 0 && ref_uniform(&seed) < 0.1) /* the same point again */
                memcpy(x, c.x[ref_next(&seed) % (uint64_t)c.count], sizeof x);
            assert_int_equal(svi_active_set_reserve(&h, c.count + 1, &err), SVS_OK);
            join(&h, &c, x, gamma);
        } else {
            leave(&h, &c, (int)(ref_next(&seed) % (uint64_t)c.count));
        }
        assert_true(svi_active_set_solve(&h));
        assert_optimal(&h, &c, gamma, tolerance);
    }
    svi_active_set_clear(&h);
}

static void optimal_after_any_walk(void **state) {
    (void)state;
    const int steps = getenv("SVMSTREAM_QUICK") ? 300 : 3000;
    walk(0.5, 1e-9, 1, steps);
    walk(5, 1e-11, 2, steps);
    walk(1000, 1e-11, 3, steps); /* all are support */
    walk(0.01, 1e-7, 4, steps);  /* nearly singular */
    walk(1e-6, 1e-5, 5, steps / 4);
}

/* The path does not matter: points in another order give the same rho and weights. */
static void order_does_not_matter(void **state) {
    (void)state;
    struct svi_active_set forth = {0}, back = {0};
    struct cloud a = {.count = 0}, b = {.count = 0};
    double x[40][D];
    uint64_t seed = 9;
    svs_error err;
    svi_active_set_reserve(&forth, 40, &err);
    svi_active_set_reserve(&back, 40, &err);
    for (int i = 0; i < 40; i++)
        for (int j = 0; j < D; j++)
            x[i][j] = ref_gauss(&seed);
    for (int i = 0; i < 40; i++) {
        join(&forth, &a, x[i], 0.7);
        svi_active_set_solve(&forth);
        join(&back, &b, x[39 - i], 0.7);
    }
    svi_active_set_solve(&back);
    assert_true(fabs(svi_active_set_rho(&forth) - svi_active_set_rho(&back)) < 1e-12);
    for (int i = 0; i < 40; i++)
        assert_true(fabs(forth.z[i] - back.z[39 - i]) < 1e-9);
    svi_active_set_clear(&forth);
    svi_active_set_clear(&back);
}

/* Kernels of finite dimension: more points than dimensions, so that nearly every pivot vanishes and points
 * have to take the place of others. `spread` large: the hull comes near the origin. */
static void dependent_points(double spread, uint64_t seed) {
    enum { COUNT = 40 };
    struct svi_active_set h = {0};
    double x[COUNT][D], row[COUNT], least = 1;
    svs_error err;
    assert_int_equal(svi_active_set_reserve(&h, COUNT, &err), SVS_OK);
    for (int i = 0; i < COUNT; i++) {
        double square = 0;
        for (int j = 0; j < D; j++) {
            x[i][j] = j == 0 ? 1 : spread * ref_gauss(&seed);
            square += x[i][j] * x[i][j];
        }
        for (int j = 0; j < D; j++)
            x[i][j] /= sqrt(square);
        for (int k = 0; k <= i; k++)
            row[k] = x[i][0] * x[k][0] + x[i][1] * x[k][1] + x[i][2] * x[k][2];
        svi_active_set_add(&h, row);
        assert_true(svi_active_set_solve(&h));
        assert_true(h.support <= D && svi_active_set_violation(&h) < 1e-9);
        assert_true(svi_active_set_rho(&h) <=
                    least * (1 + 1e-12)); /* a larger hull comes nearer to the origin */
        least = svi_active_set_rho(&h);
    }
    svi_active_set_clear(&h);
}

static void more_points_than_dimensions(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        dependent_points(0.3, seed);
        dependent_points(2, seed);
    }
}

static void few_points(void **state) {
    (void)state;
    struct svi_active_set h = {0};
    svs_error err;
    svi_active_set_reserve(&h, 3, &err);
    assert_true(svi_active_set_solve(&h));
    assert_true(svi_active_set_rho(&h) == 0);
    svi_active_set_add(&h, (const double[]){1});
    assert_true(svi_active_set_solve(&h));
    assert_true(svi_active_set_rho(&h) == 1 && h.z[0] == 1);
    svi_active_set_add(
        &h, (const double[]){0.5, 1}); /* |w|^2 of the middle of two unit vectors with cosine 1/2 */
    assert_true(svi_active_set_solve(&h));
    assert_true(fabs(svi_active_set_rho(&h) - 0.75) < 1e-15);
    svi_active_set_remove(&h, 0);
    assert_true(svi_active_set_solve(&h));
    assert_true(h.count == 1 && fabs(svi_active_set_rho(&h) - 1) < 1e-15);
    svi_active_set_empty(&h);
    assert_int_equal(h.count, 0);
    svi_active_set_clear(&h);
}

/* ---- the kernels that it is solved with, of every instruction set */

static void near(const double *is, const double *should, int n) {
    for (int i = 0; i < n; i++)
        assert_true(fabs(is[i] - should[i]) <= 1e-12 * (1 + fabs(should[i])));
}

static void triangles_and_chosen_rows(void **state) {
    (void)state;
    static const svs_isa isas[] = {SVS_ISA_GENERIC, SVS_ISA_AVX2, SVS_ISA_AVX512};
    enum { N = 37, STRIDE = 41 };
    for (int isa = 0; isa < 3; isa++)
        for (int n = 1; n <= N && svi_kernels_get(isas[isa]); n++) {
            const struct svi_kernels *pass = svi_kernels_get(isas[isa]);
            uint64_t seed = 17 + (uint64_t)n;
            double l[N * STRIDE], x[N], down[N], across[N], chosen[N], product[N] = {0}, sum[N] = {0}, f[N];
            int row[N], count = 0;
            for (int c = 0; c < n; c++) {
                for (int i = 0; i < STRIDE; i++) /* above the diagonal nothing is read */
                    l[c * STRIDE + i] = i < c ? NAN : i == c ? 1 + ref_uniform(&seed) : ref_gauss(&seed) / 9;
                x[c] = ref_gauss(&seed);
                if (ref_uniform(&seed) < 0.6)
                    row[count++] = c;
            }
            for (int i = 0; i < n; i++) {
                down[i] = across[i] = 0;
                for (int c = 0; c < n; c++) {
                    down[i] += c <= i ? l[c * STRIDE + i] * x[c] : 0;
                    across[i] += c >= i ? l[i * STRIDE + c] * x[c] : 0;
                }
            }
            pass->lower_solve(l, STRIDE, n, down);
            pass->lower_solve_transposed(l, STRIDE, n, across);
            near(down, x, n);
            near(across, x, n);
            for (int i = 0; i < N * STRIDE; i++)
                l[i] = isnan(l[i]) ? ref_gauss(&seed) : l[i];
            for (int i = 0; i < count; i++)
                for (int j = 0; j < n; j++) {
                    product[i] += l[row[i] * STRIDE + j] * x[j];
                    sum[j] += l[row[i] * STRIDE + j] * x[row[i]];
                }
            pass->chosen_dot(l, STRIDE, row, count, n, x, chosen);
            pass->chosen_sum(l, STRIDE, row, count, n, x, f);
            near(chosen, product, count);
            near(f, sum, n);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(optimal_after_any_walk),      cmocka_unit_test(order_does_not_matter),
        cmocka_unit_test(more_points_than_dimensions), cmocka_unit_test(few_points),
        cmocka_unit_test(triangles_and_chosen_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
