/* Refits of a window that slides, from the curvature of the window before: each proves its optimum as one
 * from nothing does, what is kept is what the next window's rows add up to, and no failing allocation does
 * harm. Linked with --wrap. */
#include "support/problem.h"
#include "support/nomem.h"

#include "refit/refit.h"

#define D      5
#define STRIDE 8

/* Samples first to last - 1 of an endless stream; every `hole`-th was forgotten. */
struct window {
    int64_t first, last, hole;
    int classes;
    double shift, stretch; /* of the units */
    double heavy;          /* weight of every 11th sample, from the first on */
};

static int64_t fill(struct svi_snapshot *s, const struct window *of) {
    svi_snapshot_clear(s);
    if (svi_snapshot_reserve(s, of->last - of->first, D, NULL) != SVS_OK)
        return -1;
    s->class_count = of->classes;
    for (int64_t i = of->first; i < of->last; i++) {
        uint64_t random = 88172645463325252ull + 7919 * (uint64_t)i;
        double *x = s->rows + s->count * STRIDE, f = 0.2 * (double)i / 1000;
        for (int k = 0; k < 5; k++)
            test_random(&random);
        for (int j = 0; j < D; j++) {
            x[j] = 3 * j + (1 + j) * test_normal(&random);
            f += (x[j] - 3 * j) * (j % 2 ? -1 : 1) / (1 + j);
        }
        f += test_normal(&random);
        if (of->hole && i % of->hole == 0)
            continue;
        s->label[s->count] = of->classes < 3 ? f > 0 : f > 1 ? 2 : f > -1;
        s->weight[s->count] = i % 11 == 0 ? of->heavy : 1;
        s->number[s->count++] = i;
    }
    for (int j = 0; j < D; j++) {
        s->mean[j] = 3 * j + of->shift;
        s->inverse[j] = of->stretch / (1 + j);
    }
    return s->count;
}

static struct svi_refit *make_job(const char *tol) {
    struct svi_settings s;
    svs_error err;
    svi_settings_default(&s);
    assert_int_equal(svi_settings_set(&s, "refit.tol", tol, &err), SVS_OK);
    struct svi_refit *r = svi_refit_new(&s, &err);
    assert_non_null(r);
    return r;
}

static void run(struct svi_refit *r, const struct window *of) {
    assert_true(fill(&r->snapshot, of) > 0);
    svi_refit_run(r);
    if (r->error.code != SVS_OK)
        fail_msg("%s", r->error.text);
}

/* The sum over the rows of the model of the objectives, by plain loops, of the window that r solved last. */
static long double objective(const struct svi_refit *r) {
    const struct svi_snapshot *s = &r->curvature.before;
    long double total = 0;
    for (int k = 0; k < r->result.rows; k++) {
        const double *W = r->result.W + k * D;
        long double b = r->result.b[k], sum = 0;
        for (int j = 0; j < D; j++) {
            b += (long double)W[j] * s->mean[j];
            sum += 0.5L * (W[j] / s->inverse[j]) * (W[j] / s->inverse[j]);
        }
        sum += 0.5L * b * b;
        for (int64_t i = 0; i < s->count; i++) {
            long double f = b, y = s->label[i] == (r->result.rows == 1 ? 1 : k) ? 1 : -1;
            for (int j = 0; j < D; j++)
                f += s->rows[i * STRIDE + j] * (W[j] / s->inverse[j]);
            long double margin = 1 - y * f;
            sum += margin > 0 ? r->C * s->weight[i] * margin * margin : 0;
        }
        total += sum;
    }
    return total;
}

/* gram is the sum of weight z z' over the rows of `before`, and the weights are their costs or 0. */
static void check_curvature(const struct svi_refit *r) {
    const struct svi_kept_curvature *k = &r->curvature;
    for (int row = 0; row < k->rows; row++) {
        const double *weight = k->weights + row * k->before.count;
        if (!k->at[row].known)
            continue;
        for (int i = 0; i <= D; i++)
            for (int j = 0; j <= i; j++) {
                long double sum = 0, size = 0;
                for (int64_t q = 0; q < k->before.count; q++) {
                    const double *x = k->before.rows + q * STRIDE;
                    long double term = weight[q] * (i < D ? x[i] : 1) * (j < D ? x[j] : 1);
                    sum += term;
                    size += fabsl(term);
                }
                assert_true(fabsl(sum - k->at[row].gram[i * (D + 1) + j]) <= 1e-11L * (1 + size));
            }
        for (int64_t q = 0; q < k->before.count; q++)
            assert_true(weight[q] == 0 || weight[q] == r->C * k->before.weight[q]);
    }
}

/* Each of a chain of windows against one who knows none of those before. */
static void test_chain(void **unused) {
    (void)unused;
    static const struct window steps[] = {
        {0, 600, 0, 2, 0, 1, 1},         {60, 660, 0, 2, 0, 1, 1},       {60, 660, 0, 2, 0, 1, 1},
        {100, 700, 17, 2, 0.3, 1.2, 1},  {130, 700, 17, 2, 0.3, 2, 1},   {150, 750, 17, 2, -1, 0.8, 3},
        {160, 760, 13, 2, -1, 0.8, 2},   {161, 761, 13, 2, 2e4, 0.8, 2}, {190, 790, 0, 2, 0, 5e3, 2},
        {500, 1100, 0, 2, 0, 1, 1},      {3000, 3600, 0, 2, 0, 1, 1},    {3050, 3650, 0, 3, 0, 1, 1},
        {3100, 3700, 0, 3, 0.1, 1.1, 1}, {3150, 3900, 0, 3, 0, 1, 1},    {3200, 3900, 5, 3, 0, 1, 1}};
    struct svi_refit *warm = make_job("1e-6");
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct svi_refit *cold = make_job("1e-6");
        run(cold, &steps[i]);
        run(warm, &steps[i]);
        const long double mine = objective(warm), other = objective(cold);
        assert_true(fabsl(mine - warm->result.objective) <= 1e-9L * mine);
        assert_true(warm->result.gap <= 1e-6 * warm->result.objective &&
                    warm->result.gap >= -1e-12 * warm->result.objective);
        assert_true(fabsl(mine - other) <= 1e-6L * other);
        check_curvature(warm);
        svi_refit_free(&cold);
    }
    svi_refit_free(&warm);
}

/* While few samples change, two or three passes over the rows are enough: a cold start takes more steps. */
static void test_few_steps(void **unused) {
    (void)unused;
    struct svi_refit *warm = make_job("1e-3");
    int64_t warm_steps = 0, cold_steps = 0;
    for (int i = 0; i < 10; i++) {
        const struct window of = {80 * i, 800 + 80 * i, 0, 2, 0.05 * i, 1 + 0.02 * i, 1};
        struct svi_refit *cold = make_job("1e-3");
        run(cold, &of);
        run(warm, &of);
        assert_true(i == 0 || warm->result.iterations <= 3);
        cold_steps += cold->result.iterations;
        warm_steps += warm->result.iterations;
        svi_refit_free(&cold);
    }
    assert_true(warm_steps < cold_steps);
    svi_refit_free(&warm);
}

/* The same calls, the same bytes. */
static void test_twice(void **unused) {
    (void)unused;
    struct svi_refit *r[2] = {make_job("1e-3"), make_job("1e-3")};
    for (int i = 0; i < 8; i++) {
        const struct window of = {40 * i, 600 + 45 * i, 7, 3, 0.1 * i, 1 + 0.1 * i, 1};
        for (int k = 0; k < 2; k++)
            run(r[k], &of);
        assert_memory_equal(r[0]->result.W, r[1]->result.W, 3 * D * sizeof(double));
        assert_memory_equal(r[0]->result.b, r[1]->result.b, 3 * sizeof(double));
    }
    svi_refit_free(&r[0]);
    svi_refit_free(&r[1]);
}

/* What is not of the same problem is not taken for it: another C, a feature that was renewed. */
static void test_other_problem(void **unused) {
    (void)unused;
    const struct window at[] = {{0, 500, 0, 2, 0, 1, 1}, {20, 520, 0, 2, 0, 1, 1}, {40, 540, 0, 2, 0, 1, 1}};
    struct svi_refit *r = make_job("1e-6");
    run(r, &at[0]);
    r->C = 0.01;
    run(r, &at[1]);
    check_curvature(r);
    assert_true(fabsl(objective(r) - r->result.objective) <= 1e-9L * objective(r));
    r->renewed.flags[2] = r->renewed.any = true;
    svi_refit_settle(r);
    run(r, &at[2]);
    check_curvature(r);
    assert_true(r->result.gap <= 1e-6 * r->result.objective);
    assert_true(fabsl(objective(r) - r->result.objective) <= 1e-9L * objective(r));
    svi_refit_free(&r);
}

/* Every allocation of a warm refit fails once: it says so and keeps its model, and the next one is right. */
static void test_no_memory(void **unused) {
    (void)unused;
    const struct window before = {0, 400, 0, 3, 0, 1, 1}, same = {0, 399, 0, 3, 0, 1, 1},
                        after = {20, 420, 0, 3, 0.1, 1, 1};
    svs_code code = SVS_NO_MEMORY;
    for (int n = 0; code != SVS_OK; n++) {
        struct svi_refit *r = make_job("1e-4");
        assert_true(n < 200);
        run(r, &before);
        run(r, &same);
        const double b = r->result.b[0];
        assert_true(fill(&r->snapshot, &after) > 0);
        left = n;
        svi_refit_run(r);
        left = -1;
        code = r->error.code;
        assert_true(code == SVS_OK || code == SVS_NO_MEMORY);
        if (code != SVS_OK)
            assert_true(r->result.b[0] == b);
        run(r, &after);
        check_curvature(r);
        assert_true(r->result.gap <= 1e-4 * r->result.objective);
        assert_true(fabsl(objective(r) - r->result.objective) <= 1e-9L * objective(r));
        svi_refit_free(&r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_chain), cmocka_unit_test(test_few_steps),
                                       cmocka_unit_test(test_twice), cmocka_unit_test(test_other_problem),
                                       cmocka_unit_test(test_no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
