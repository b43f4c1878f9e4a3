/* The bare recursion against fresh solves in long double, on every instruction set that the machine has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "reference.h"
#include "support/quick.h"
#include "svmstream/alsvm.h"

#define NU      0.5
#define MAX_DIM 160
#define HELD    96

struct walk {
    int dim, rows, held;
    uint64_t seed;
    svs_isa isa;
    double x[HELD][MAX_DIM], t[HELD][3], weight[HELD];
};

static void fill(struct walk *w, int slot) {
    for (int j = 0; j < w->dim; j++)
        w->x[slot][j] = j == 0 ? 1 : ref_gauss(&w->seed);
    for (int k = 0; k < w->rows; k++)
        w->t[slot][k] = ref_uniform(&w->seed) < 0.5 ? -1 : 1;
    w->weight[slot] = 0.25 + ref_uniform(&w->seed);
}

static svs_operation operation(struct walk *w, int slot, bool remove) {
    return (svs_operation){w->x[slot], w->t[slot], w->weight[slot], remove};
}

/* Worst distance of a row of W, or of P times a vector, from a fresh solve on what is held. */
static double distance(struct walk *w, svs_alsvm *m) {
    int n = w->dim;
    double worst = 0;
    long double *g = malloc(sizeof *g * n * n), *r = malloc(sizeof *r * n), *x = malloc(sizeof *x * n);
    for (int k = 0; k <= w->rows; k++) {
        memset(g, 0, sizeof *g * n * n);
        memset(r, 0, sizeof *r * n);
        for (int i = 0; i < n; i++)
            g[i * n + i] = NU;
        for (int s = 0; s < w->held; s++)
            ref_add(g, r, n, w->x[s], k < w->rows ? w->t[s][k] : 0, w->weight[s]);
        double v[MAX_DIM], pv[MAX_DIM];
        for (int i = 0; i < n; i++)
            v[i] = i % 3 ? 1 : -1;
        for (int i = 0; k == w->rows && i < n; i++)
            r[i] = v[i];
        ref_solve(g, r, n, x);
        svs_alsvm_apply(m, v, pv);
        worst = fmax(worst, ref_distance(k < w->rows ? svs_alsvm_weights(m, k) : pv, x, n));
    }
    free(g);
    free(r);
    free(x);
    return worst;
}

static void step(struct walk *w, svs_alsvm *m, svs_operation *op, int count) {
    svs_error err;
    double leverage[2];
    assert_int_equal(svs_alsvm_step(m, op, count, leverage, &err), SVS_OK);
    for (int i = 0; i < count; i++)
        assert_true(leverage[i] >= 0);
    (void)w;
}

/* Random adds, removals and slides; after each few the answer must be the fresh one. */
static void random_walk(struct walk *w) {
    svs_error err;
    svs_alsvm *m = svs_alsvm_new(w->dim, w->rows, NU, w->isa, &err);
    assert_non_null(m);
    for (int i = 0; i < 400; i++) {
        double u = ref_uniform(&w->seed);
        svs_operation op[2];
        if (w->held < 2 || (u < 0.4 && w->held < HELD)) {
            fill(w, w->held);
            op[0] = operation(w, w->held++, false);
            step(w, m, op, 1);
        } else if (u < 0.6) {
            op[0] = operation(w, --w->held, true);
            step(w, m, op, 1);
        } else {
            int out = (int)(ref_uniform(&w->seed) * (w->held - 1));
            if (w->held == HELD)
                out = w->held-- - 1;
            int in = w->held;
            struct walk copy = *w;
            op[1] = operation(&copy, out, true);
            fill(w, in);
            op[0] = operation(w, in, false);
            step(w, m, op, 2);
            if (out != in) {
                memcpy(w->x[out], w->x[in], sizeof w->x[in]);
                memcpy(w->t[out], w->t[in], sizeof w->t[in]);
                w->weight[out] = w->weight[in];
            } else {
                w->held++;
            }
        }
        if (i % often(40, 200) == 39)
            assert_true(distance(w, m) < 1e-9);
    }
    while (w->held) {
        svs_operation op = operation(w, --w->held, true);
        step(w, m, &op, 1);
    }
    assert_true(distance(w, m) <
                1e-8); /* lone samples cost (|x|^2/nu)^2 eps each: why learner.h has a guard */
    svs_alsvm_free(&m);
    assert_null(m);
}

static const int dims[] = {1, 2, 7, 8, 9, 11, 16, 17, 24, 25, 32, 33, 51, 65, 101, 128, 129, 145};

static void walks_of(svs_isa isa) {
    svs_error err;
    svs_alsvm *probe = svs_alsvm_new(4, 1, NU, isa, &err);
    if (!probe) {
        print_message("SKIPPED LOUDLY: %s\n", err.text);
        skip();
    }
    svs_alsvm_free(&probe);
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i += (size_t)often(1, 4)) {
        static struct walk w;
        memset(&w, 0, sizeof w);
        w.dim = dims[i];
        w.rows = 1 + (int)(i % 3);
        w.seed = 77 + i;
        w.isa = isa;
        random_walk(&w);
    }
}

static void walk_generic(void **state) {
    (void)state;
    walks_of(SVS_ISA_GENERIC);
}

static void walk_avx2(void **state) {
    (void)state;
    walks_of(SVS_ISA_AVX2);
}

static void walk_avx512(void **state) {
    (void)state;
    walks_of(SVS_ISA_AVX512);
}

/* The block form gives the same model and the scores that one-by-one steps would have seen. */
static void block_equals_steps(void **state) {
    (void)state;
    enum { N = 60, D = 21, K = 2 };
    static struct walk w;
    w.dim = D;
    w.rows = K;
    w.seed = 5;
    svs_error err;
    svs_alsvm *one = svs_alsvm_new(D, K, NU, SVS_ISA_BEST, &err),
              *all = svs_alsvm_new(D, K, NU, SVS_ISA_BEST, &err);
    svs_operation op[N];
    double scores[N * K], expected[K];
    for (int i = 0; i < N; i++) {
        bool remove = i % 3 == 2;
        if (!remove)
            fill(&w, i);
        op[i] = operation(&w, remove ? i - 1 : i, remove);
    }
    assert_int_equal(svs_alsvm_block(all, op, N, false, NULL, scores, &err), SVS_OK);
    for (int i = 0; i < N; i++) {
        svs_alsvm_scores(one, op[i].x, expected);
        for (int k = 0; k < K; k++)
            assert_float_equal(scores[i * K + k], expected[k], 1e-10);
        step(&w, one, &op[i], 1);
    }
    double a[D], b[D], v[D];
    for (int i = 0; i < D; i++)
        v[i] = i;
    svs_alsvm_apply(one, v, a);
    svs_alsvm_apply(all, v, b);
    for (int i = 0; i < D; i++) {
        assert_float_equal(a[i], b[i], 1e-9);
        for (int k = 0; k < K; k++)
            assert_float_equal(svs_alsvm_weights(one, k)[i], svs_alsvm_weights(all, k)[i], 1e-9);
    }
    svs_alsvm_free(&one);
    svs_alsvm_free(&all);
}

/* FALSVM inside a block: the same samples are skipped as one by one, and the removal of a skipped one is
 * skipped. */
static void falsvm_block_equals_steps(void **state) {
    (void)state;
    enum { N = 90, D = 6 };
    static struct walk w;
    w.dim = D;
    w.rows = 1;
    w.seed = 9;
    svs_error err;
    svs_alsvm *one = svs_alsvm_new(D, 1, NU, SVS_ISA_BEST, &err),
              *all = svs_alsvm_new(D, 1, NU, SVS_ISA_BEST, &err);
    svs_operation op[N];
    bool skip[N] = {false};
    int skipped = 0;
    for (int i = 0; i < N; i++) {
        fill(&w, i);
        w.t[i][0] = w.x[i][1] + 0.2 * ref_gauss(&w.seed) > 0 ? 1 : -1;
        op[i] = operation(&w, i, false);
    }
    assert_int_equal(svs_alsvm_block(all, op, N, true, skip, NULL, &err), SVS_OK);
    for (int i = 0; i < N; i++) {
        double score;
        svs_alsvm_scores(one, op[i].x, &score);
        assert_int_equal(skip[i], op[i].t[0] * score > 0);
        skipped += skip[i];
        if (!skip[i])
            step(&w, one, &op[i], 1);
    }
    assert_true(skipped > N / 4 && skipped < N);
    for (int j = 0; j < D; j++)
        assert_float_equal(svs_alsvm_weights(one, 0)[j], svs_alsvm_weights(all, 0)[j], 1e-10);
    svs_alsvm_free(&one);
    svs_alsvm_free(&all);
}

/* A feature and a class that appear late: as if they had been there, 0 and "all others", from the start. */
static void late_features_and_rows(void **state) {
    (void)state;
    enum { N = 40, EARLY = 20, D = 9 };
    svs_error err;
    for (int late = D; late < 140; late += often(13, 45)) {
        uint64_t seed = 3;
        svs_alsvm *grown = svs_alsvm_new(D, 1, NU, SVS_ISA_BEST, &err),
                  *whole = svs_alsvm_new(late, 2, NU, SVS_ISA_BEST, &err);
        double r[MAX_DIM] = {0}, x[MAX_DIM];
        for (int i = 0; i < N; i++) {
            memset(x, 0, sizeof x);
            for (int j = 0; j < (i < EARLY ? D : late); j++)
                x[j] = ref_gauss(&seed);
            double t[2] = {i % 2 ? 1 : -1, i < EARLY ? -1 : i % 3 ? 1 : -1};
            svs_operation op = {x, t, 1, false};
            if (i == EARLY) {
                assert_int_equal(svs_alsvm_add_row(grown, r, &err), SVS_OK);
                assert_int_equal(svs_alsvm_grow(grown, late, NU, &err), SVS_OK);
            }
            for (int j = 0; i < EARLY && j < D; j++)
                r[j] -= x[j];
            assert_int_equal(svs_alsvm_step(grown, &op, 1, NULL, &err), SVS_OK);
            assert_int_equal(svs_alsvm_step(whole, &op, 1, NULL, &err), SVS_OK);
        }
        for (int k = 0; k < 2; k++)
            for (int j = 0; j < late; j++)
                assert_float_equal(svs_alsvm_weights(grown, k)[j], svs_alsvm_weights(whole, k)[j], 1e-12);
        svs_alsvm_free(&grown);
        svs_alsvm_free(&whole);
    }
}

/* Removing what is not in: the pivot tells, and nothing has changed. */
static void false_removal_is_refused(void **state) {
    (void)state;
    svs_error err;
    double x[3] = {1, 100, -3}, t = 1, v[3] = {1, 2, 3}, before[3], after[3];
    svs_alsvm *m = svs_alsvm_new(3, 1, NU, SVS_ISA_BEST, &err);
    svs_operation op[2] = {{x, &t, 1, false}, {x, &t, 1000, true}};
    assert_int_equal(svs_alsvm_step(m, op, 1, NULL, &err), SVS_OK);
    svs_alsvm_apply(m, v, before);
    assert_int_equal(svs_alsvm_step(m, op + 1, 1, NULL, &err), SVS_NUMERIC);
    assert_int_equal(err.code, SVS_NUMERIC);
    bool skip = false;
    assert_int_equal(svs_alsvm_block(m, op + 1, 1, true, &skip, NULL, &err), SVS_NUMERIC);
    svs_alsvm_apply(m, v, after);
    for (int j = 0; j < 3; j++) /* but for what flushing rounds */
        assert_float_equal(before[j], after[j], 1e-15 * fabs(before[j]));
    assert_int_equal(svs_alsvm_step(m, op, 3, NULL, &err), SVS_INVALID);
    op[0].weight = 0;
    assert_int_equal(svs_alsvm_step(m, op, 1, NULL, &err), SVS_INVALID);
    assert_null(svs_alsvm_new(0, 1, NU, SVS_ISA_BEST, &err));
    assert_null(svs_alsvm_new(1, 1, 0, SVS_ISA_BEST, &err));
    svs_alsvm_free(&m);
}

/* P = G^-1 from a Gram matrix, below and above the size where LAPACK takes over; an indefinite one is
 * refused. */
static void set_inverts(void **state) {
    (void)state;
    svs_error err;
    for (int n = 1; n < 140; n += 23) {
        uint64_t seed = (uint64_t)n;
        double *g = calloc((size_t)n * n, sizeof *g), *copy = malloc(sizeof *g * n * n);
        double x[MAX_DIM], y[MAX_DIM];
        for (int s = 0; s < 2 * n; s++) {
            for (int j = 0; j < n; j++)
                x[j] = ref_gauss(&seed);
            for (int i = 0; i < n; i++)
                for (int j = 0; j < n; j++)
                    g[i * n + j] += x[i] * x[j] + (s == 0 && i == j);
        }
        memcpy(copy, g, sizeof *g * n * n);
        svs_alsvm *m = svs_alsvm_new(n, 1, NU, SVS_ISA_BEST, &err);
        assert_int_equal(svs_alsvm_set(m, copy, x, &err), SVS_OK);
        svs_alsvm_apply(m, x, y); /* y = P x: then G y = x */
        for (int i = 0; i < n; i++) {
            double s = 0;
            for (int j = 0; j < n; j++)
                s += g[i * n + j] * y[j];
            assert_float_equal(s, x[i], 1e-8);
            assert_float_equal(svs_alsvm_weights(m, 0)[i], y[i], 0);
        }
        g[0] = -1;
        assert_int_equal(svs_alsvm_set(m, g, x, &err), SVS_NUMERIC);
        svs_alsvm_free(&m);
        free(g);
        free(copy);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(walk_generic),
        cmocka_unit_test(walk_avx2),
        cmocka_unit_test(walk_avx512),
        cmocka_unit_test(block_equals_steps),
        cmocka_unit_test(falsvm_block_equals_steps),
        cmocka_unit_test(late_features_and_rows),
        cmocka_unit_test(false_removal_is_refused),
        cmocka_unit_test(set_inverts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
