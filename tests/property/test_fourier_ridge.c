/* Least squares on Fourier features, solved a few rows with each sample: the solution of the samples that it
 * was begun with, in force within SVI_GRAM_BLOCK samples, and the same bits when its state is kept and loaded
 * at any sample. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "bank/fourier_ridge.h"
#include "base/bytes.h"
#include "linalg/cholesky.h"
#include "support/problem.h"
#include "wire/archive_file.h"

#define NU      0.5
#define STEPS   700
#define CLASSES 5

struct rows {
    int features;
    float *phi; /* STEPS x features */
    int label[STEPS];
    double target[STEPS], weight[STEPS];
};

static struct rows rows_new(int features, svs_task task, int classes) {
    struct rows s = {features, malloc(STEPS * (size_t)features * sizeof(float)), {0}, {0}, {0}};
    uint64_t random = 7;
    for (int i = 0; i < STEPS; i++) {
        for (int j = 0; j < features; j++)
            s.phi[i * features + j] = (float)test_normal(&random);
        s.target[i] = test_normal(&random);
        s.weight[i] = 0.5 + (i % 3);
        s.label[i] = task == SVS_REGRESS ? -1 : i < 40 ? i % 2 : (i * 7) % classes;
    }
    return s;
}

static void ridge_new(struct svi_fourier_ridge *r, svs_task task, int features) {
    assert_int_equal(svi_fourier_ridge_init(r, task, features, CLASSES, SVS_ISA_BEST, NULL), SVS_OK);
}

static void learn_with(struct svi_fourier_ridge *r, const struct rows *s, int i, svi_follower *helper) {
    if (s->label[i] >= 0)
        svi_fourier_ridge_classes(r, s->label[i] + 1);
    svi_fourier_ridge_learn(r, s->phi + i * s->features, s->label[i], s->target[i], s->weight[i], helper);
}

static void learn(struct svi_fourier_ridge *r, const struct rows *s, int i) {
    learn_with(r, s, i, NULL);
}

/* The solution of the first n rows, in one piece. */
static void solve(const struct rows *s, int n, int row, int rows, double *w) {
    const int dim = s->features + 1;
    double *g = calloc((size_t)dim * (size_t)dim, sizeof *g), f[512];
    memset(w, 0, (size_t)dim * sizeof *w);
    f[0] = 1;
    for (int i = 0; i < n; i++) {
        const double own = rows == 1 ? (s->label[i] == 1 ? 1 : -1) : (s->label[i] == row ? 1 : -1);
        const double t = s->label[i] < 0 ? s->target[i] : own;
        for (int j = 1; j < dim; j++)
            f[j] = (double)s->phi[i * s->features + j - 1];
        for (int j = 0; j < dim; j++) {
            w[j] += s->weight[i] * t * f[j];
            for (int k = 0; k <= j; k++)
                g[j * dim + k] += s->weight[i] * f[j] * f[k];
        }
    }
    for (int j = 0; j < dim; j++)
        g[j * dim + j] += NU;
    assert_true(svi_factor_spd(g, dim));
    svi_solve_factor(g, dim, w);
    free(g);
}

static void assert_solves(const struct svi_fourier_ridge *r, const struct rows *s, int rows) {
    double w[512];
    for (int k = 0; k < rows; k++) {
        solve(s, (int)r->solved, k, rows, w);
        for (int j = 0; j < r->dim; j++)
            if (!(fabs(w[j] - r->w[k * r->dim + j]) < 1e-9 * (1 + fabs(w[j]))))
                fail_msg("w %d of row %d: %.17g, not %.17g", j, k, r->w[k * r->dim + j], w[j]);
    }
}

static const struct {
    svs_task task;
    int features, classes;
} kinds[] = {{SVS_CLASSIFY, 6, 2}, {SVS_CLASSIFY, 100, 2}, {SVS_CLASSIFY, 100, 5}, {SVS_REGRESS, 210, 0}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void test_the_solution_of_the_samples_it_began_with(void **state) {
    (void)state;
    for (int k = 0; k < KINDS; k++) {
        struct rows s = rows_new(kinds[k].features, kinds[k].task, kinds[k].classes);
        struct svi_fourier_ridge r;
        int solutions = 0;
        ridge_new(&r, kinds[k].task, s.features);
        for (int i = 0; i < STEPS; i++) {
            const int64_t before = r.solved;
            learn(&r, &s, i);
            assert_true(!r.solving || r.learned - r.begun < SVI_GRAM_BLOCK);
            if (r.solved == before)
                continue;
            assert_true(r.solved == 256 * (r.solved / 256) || (r.solved & (r.solved - 1)) == 0);
            assert_solves(&r, &s, kinds[k].task == SVS_REGRESS || r.classes < 3 ? 1 : r.classes);
            solutions++;
        }
        assert_true(solutions >= 5 && r.solved == 512);
        svi_fourier_ridge_clear(&r);
        free(s.phi);
    }
}

static void assert_same(const struct svi_fourier_ridge *a, const struct svi_fourier_ridge *b, int i) {
    const size_t n = (size_t)a->dim * (size_t)(a->task == SVS_REGRESS || a->classes < 3 ? 1 : a->classes);
    assert_int_equal(a->solved, b->solved);
    assert_int_equal(a->solving, b->solving);
    if (memcmp(a->w, b->w, n * sizeof *a->w) != 0)
        fail_msg("other bits after sample %d", i);
}

static void keep(struct svi_fourier_ridge *r, struct svi_bytes *to) {
    struct svi_archive_out out;
    svs_error err;
    to->size = 0;
    svi_archive_out_begin(&out, to, "ridge", &err);
    svi_fourier_ridge_archive(&out.archive, r);
    assert_int_equal(svi_archive_out_end(&out), SVS_OK);
}

static svs_code load(struct svi_fourier_ridge *r, const struct svi_bytes *from) {
    struct svi_archive_in in;
    svs_error err;
    svi_archive_in_begin(&in, from->data, from->size, "ridge", &err);
    svi_fourier_ridge_archive(&in.archive, r);
    return svi_archive_in_end(&in);
}

/* One that is kept and loaded after every sample, beside one that never is. */
static void test_kept_half_done(void **state) {
    (void)state;
    for (int k = 0; k < KINDS; k++) {
        struct rows s = rows_new(kinds[k].features, kinds[k].task, kinds[k].classes);
        struct svi_fourier_ridge whole, kept;
        struct svi_bytes bytes = {0}, again = {0};
        int half = 0;
        ridge_new(&whole, kinds[k].task, s.features);
        ridge_new(&kept, kinds[k].task, s.features);
        for (int i = 0; i < 300; i++) {
            learn(&whole, &s, i);
            learn(&kept, &s, i);
            half += kept.solving;
            if (i % 5 != 0 && !kept.solving)
                continue;
            keep(&kept, &bytes);
            svi_fourier_ridge_clear(&kept);
            ridge_new(&kept, kinds[k].task, s.features);
            assert_int_equal(load(&kept, &bytes), SVS_OK);
            assert_same(&whole, &kept, i);
            keep(&kept, &again);
            assert_int_equal(again.size, bytes.size);
            assert_memory_equal(again.data, bytes.data, bytes.size);
        }
        assert_true(half > 5);
        svi_fourier_ridge_clear(&whole);
        svi_fourier_ridge_clear(&kept);
        svi_bytes_clear(&bytes);
        svi_bytes_clear(&again);
        free(s.phi);
    }
}

/* What is taken back is in no solution from then on, whatever was being solved. */
static void test_taken_back_half_done(void **state) {
    (void)state;
    struct rows s = rows_new(100, SVS_CLASSIFY, 2);
    struct svi_fourier_ridge r;
    ridge_new(&r, SVS_CLASSIFY, s.features);
    for (int i = 0; i < 258; i++)
        learn(&r, &s, i);
    assert_true(r.solving);
    svi_fourier_ridge_take_back(&r, s.phi + 257 * s.features, s.label[257], 0, s.weight[257]);
    assert_false(r.solving);
    double w[512];
    solve(&s, 257, 0, 1, w);
    for (int j = 0; j < r.dim; j++)
        assert_true(fabs(w[j] - r.w[j]) < 1e-9 * (1 + fabs(w[j])));
    svi_fourier_ridge_clear(&r);
    free(s.phi);
}

/* Features that come or go end it at once, with the solution that it would have had. */
static void test_features_half_done(void **state) {
    (void)state;
    struct rows s = rows_new(100, SVS_CLASSIFY, 2);
    for (int grows = 0; grows < 2; grows++) {
        struct svi_fourier_ridge r;
        ridge_new(&r, SVS_CLASSIFY, s.features);
        for (int i = 0; i < 258; i++)
            learn(&r, &s, i);
        assert_true(r.solving);
        if (grows)
            assert_int_equal(svi_fourier_ridge_grow(&r, s.features + 3, NULL), SVS_OK);
        else
            svi_fourier_ridge_forget_feature(&r, s.features - 1);
        assert_false(r.solving);
        assert_int_equal(r.solved, 256);
        double w[512];
        solve(&s, 256, 0, 1, w);
        for (int j = 0; j < s.features; j++)
            assert_true(fabs(w[j] - r.w[j]) < 1e-9 * (1 + fabs(w[j])));
        svi_fourier_ridge_clear(&r);
    }
    free(s.phi);
}

static bool no_piece(void *user, uint64_t n) {
    (void)user;
    (void)n;
    return true;
}

static void assert_same_bytes(struct svi_fourier_ridge *a, struct svi_fourier_ridge *b) {
    struct svi_bytes one = {0}, other = {0};
    keep(a, &one);
    keep(b, &other);
    assert_int_equal(one.size, other.size);
    assert_memory_equal(one.data, other.data, one.size);
    svi_bytes_clear(&one);
    svi_bytes_clear(&other);
}

/* One that leaves work to another thread, now and then or always, beside one that does all of it: the same
 * scores after every sample, and the same bytes whenever it is kept, whatever comes between. */
static void test_a_helper_changes_no_bit(void **state) {
    (void)state;
    for (int k = 0; k < KINDS; k++)
        for (int always = 0; always < 2; always++) {
            struct rows s = rows_new(kinds[k].features, kinds[k].task, kinds[k].classes);
            struct svi_fourier_ridge alone, helped;
            svi_follower *f = svi_follower_new("a test", no_piece, NULL, NULL);
            uint64_t pieces = 0;
            int tasks = 0;
            assert_non_null(f);
            ridge_new(&alone, kinds[k].task, s.features);
            ridge_new(&helped, kinds[k].task, s.features);
            for (int i = 0; i < STEPS; i++) {
                learn(&alone, &s, i);
                learn_with(&helped, &s, i, always || i / 70 % 2 ? f : NULL);
                tasks += helped.helper && helped.gram.filled == 0; /* handed over with this sample */
                svi_follower_offer(f, ++pieces); /* wakes the thread, which then finds the task */
                assert_same(&alone, &helped, i);
                if (i % 41 == 0)
                    assert_same_bytes(&alone, &helped);
                if (i == 517 || i == 645) {
                    const double target = s.target[i - 1], weight = s.weight[i - 1];
                    const float *phi = s.phi + (i - 1) * s.features;
                    svi_fourier_ridge_take_back(&alone, phi, s.label[i - 1], target, weight);
                    svi_fourier_ridge_take_back(&helped, phi, s.label[i - 1], target, weight);
                }
                if (i == 577) {
                    svi_fourier_ridge_forget_feature(&alone, 2);
                    svi_fourier_ridge_forget_feature(&helped, 2);
                }
            }
            /* Small ones are not worth a task. */
            assert_true(s.features < 96 ? tasks == 0 : tasks >= (always ? 8 : 3));
            assert_same_bytes(&alone, &helped);
            svi_fourier_ridge_clear(&alone);
            svi_fourier_ridge_clear(&helped);
            svi_follower_free(&f);
            free(s.phi);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_solution_of_the_samples_it_began_with),
        cmocka_unit_test(test_kept_half_done), cmocka_unit_test(test_taken_back_half_done),
        cmocka_unit_test(test_features_half_done), cmocka_unit_test(test_a_helper_changes_no_bit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
