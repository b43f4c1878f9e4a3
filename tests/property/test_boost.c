/* Boosted trees on random tables: the first split against a search through all splits in long double, scores
 * against the packed nodes and against descending, what must not change a fit (the ring, dead rows, the
 * instruction set, a monotone transformation of a column), the training loss, learned parity, and rows made
 * to do harm. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/random.h"
#include "linalg/kernels.h"
#include "support/archived.h"
#include "trees/boost.h"
#include "trees/boost_loops.h"

#define ROWS 6000
#define D    9
#define WIDE 40 /* columns with flags */

struct table {
    float x[ROWS * D + 1000 * WIDE], weight[ROWS], target[ROWS];
    int32_t label[ROWS];
    uint8_t live[ROWS];
    int n, d, classes;
};

static struct table t;
static struct svi_random seed;
static struct svi_boost_scratch scratch;
static int scores, columns;

static double uniform(void) {
    return (double)svi_random_below(&seed, 1u << 30) / (1u << 30);
}

/* Values on a grid of some random width; a tenth missing in every third column. From column D on nine of ten
 * values are 0, or missing in every seventh column. */
static void some_table(int n, int d, int classes) {
    t.n = n;
    t.d = d;
    t.classes = classes;
    for (int j = 0; j < d; j++) {
        const uint32_t grid = 2 + svi_random_below(&seed, 200);
        for (int i = 0; i < n; i++)
            t.x[i * d + j] = j % 3 == 2 && svi_random_below(&seed, 10) == 0
                                 ? NAN
                                 : (float)svi_random_below(&seed, grid) / 7 - 3;
        for (int i = 0; i < n && j >= D; i++)
            if (svi_random_below(&seed, 10) > 0)
                t.x[i * d + j] = j % 7 == 0 ? NAN : 0;
    }
    for (int i = 0; i < n; i++) {
        const float *x = t.x + i * d;
        const double y = (x[0] > 2) + (x[1 % d] > x[0]) + 2 * (isnan(x[2 % d]) || x[2 % d] < 0) + uniform();
        const double flag = d > D && x[d - 1] != 0;
        t.label[i] = (int)((y + 2 * flag) * classes / (d > D ? 7.01 : 5.01));
        t.target[i] = (float)(10 * y + 1000);
        t.weight[i] = (float)exp(2 * uniform());
    }
}

static struct svi_boost_rows rows_of(void) {
    return (struct svi_boost_rows){.x = t.x,
                                   .d = t.d,
                                   .stride = t.d,
                                   .count = t.n,
                                   .capacity = t.n,
                                   .label = t.label,
                                   .target = t.target,
                                   .weight = t.weight};
}

static void fit(const struct svi_boost_options *o, const struct svi_boost_rows *r, struct svi_forest *f) {
    assert_int_equal(svi_boost_fit(o, r, &scratch, f, NULL), SVS_OK);
    scores = f->rows;
    columns = r->d;
}

static void archive(struct svi_archive *a, void *object) {
    svi_forest_archive(a, object, scores, columns);
}

/* ---- the first split */

/* Gradient and curvature of each row at the base score, weights divided by their mean. */
static void slopes_at_base(bool regress, long double *g, long double *h) {
    long double sum = 0, ones = 0, square = 0;
    for (int i = 0; i < t.n; i++)
        sum += t.weight[i];
    for (int i = 0; i < t.n; i++) {
        h[i] = t.weight[i] * t.n / sum;
        ones += h[i] * (regress ? t.target[i] : (float)t.label[i]);
    }
    const long double p = (ones + 0.5L) / (t.n + 1), mean = ones / t.n;
    for (int i = 0; i < t.n; i++)
        square += h[i] * (t.target[i] - mean) * (t.target[i] - mean);
    for (int i = 0; i < t.n; i++) {
        g[i] = h[i] * (regress ? (mean - t.target[i]) / sqrtl(square / t.n) : p - t.label[i]);
        h[i] *= regress ? 1 : p * (1 - p);
    }
}

static long double gain_of(const long double *g, const long double *h, int j, float threshold,
                           bool missing_left, double ridge) {
    long double gs[2] = {0}, hs[2] = {0};
    for (int i = 0; i < t.n; i++) {
        const float v = t.x[i * t.d + j];
        const int right = isnan(v) ? !missing_left : v > threshold;
        gs[right] += g[i];
        hs[right] += h[i];
    }
    return hs[0] == 0 || hs[1] == 0 ? 0
                                    : gs[0] * gs[0] / (hs[0] + ridge) + gs[1] * gs[1] / (hs[1] + ridge) -
                                          (gs[0] + gs[1]) * (gs[0] + gs[1]) / (hs[0] + hs[1] + ridge);
}

static void the_first_split_is_the_best(void **unused) {
    (void)unused;
    static long double g[ROWS], h[ROWS];
    int splits = 0;
    for (int trial = 0; trial < 30; trial++) {
        const bool regress = trial % 2;
        struct svi_boost_options o = svi_boost_defaults(regress ? SVS_REGRESS : SVS_CLASSIFY, 2);
        struct svi_forest f = {0};
        const int n = 50 + (int)svi_random_below(&seed, 300),
                  d = 1 + (int)svi_random_below(&seed, trial % 3 ? D : WIDE);
        some_table(n, d, 2);
        o.rounds = 1;
        o.leaves = 2;
        o.bins = 255;
        o.rate = 1;
        o.min_rows = o.min_hessian = 0;
        const struct svi_boost_rows r = rows_of();
        fit(&o, &r, &f);
        slopes_at_base(regress, g, h);
        long double best = 0;
        for (int j = 0; j < t.d; j++)
            for (int i = 0; i < t.n; i++)
                for (int side = 0; side < 2; side++)
                    best = fmaxl(best, gain_of(g, h, j, isnan(t.x[i * t.d + j]) ? FLT_MAX : t.x[i * t.d + j],
                                               side, o.ridge));
        assert_int_equal(f.count, best > 0 ? 3 : 0); /* one column of two values may say nothing */
        splits += f.count > 0;
        if (f.count == 0) {
            svi_forest_clear(&f);
            continue;
        }
        const struct svi_forest_node *root = f.node;
        const int column = (int)(root->word & SVI_FOREST_COLUMN);
        const long double own = gain_of(g, h, column, root->value, root->word & SVI_FOREST_LEFT, o.ridge);
        assert_true(own > best * (1 - 1e-5L));
        svi_forest_clear(&f);
    }
    assert_true(splits > 20);
}

/* Each leaf of a first tree has the value -G / (H + ridge) of its rows, whose sums the fit has from
 * differences of histograms, some of them without their common bins. */
static void leaves_have_the_values_of_their_rows(void **unused) {
    (void)unused;
    static long double g[ROWS], h[ROWS], gs[64], hs[64];
    int nodes = 0;
    for (int trial = 0; trial < 20; trial++) {
        struct svi_boost_options o = svi_boost_defaults(SVS_CLASSIFY, 2);
        struct svi_forest f = {0};
        some_table(1000, trial % 2 ? WIDE : D, 2);
        o.rounds = 1;
        o.rate = 1;
        o.leaves = 30;
        const struct svi_boost_rows r = rows_of();
        fit(&o, &r, &f);
        slopes_at_base(false, g, h);
        memset(gs, 0, sizeof gs);
        memset(hs, 0, sizeof hs);
        assert_in_range(f.count, 3, 59);
        nodes += f.count;
        for (int i = 0; i < t.n; i++) {
            uint32_t at = 0;
            while (!(f.node[at].word & SVI_FOREST_LEAF)) {
                const float v = t.x[i * t.d + (int)(f.node[at].word & SVI_FOREST_COLUMN)];
                const bool right = isnan(v) ? !(f.node[at].word & SVI_FOREST_LEFT) : v > f.node[at].value;
                at += right ? f.node[at].right : 1;
            }
            gs[at] += g[i];
            hs[at] += h[i];
        }
        for (int at = 0; at < f.count; at++)
            if (f.node[at].word & SVI_FOREST_LEAF) {
                const double value = (double)(-gs[at] / (hs[at] + o.ridge));
                assert_true(hs[at] > 0 && fabs(f.node[at].value - value) < 1e-4);
            }
        svi_forest_clear(&f);
    }
    assert_true(nodes > 400);
}

/* ---- scores */

static double packed_score(const struct svi_forest *f, const uint8_t *packed, int score, const float *x) {
    double sum = f->base[score];
    for (int k = score; k < f->trees; k += f->rows) {
        const uint8_t *at = packed + SVI_FOREST_NODE * (size_t)f->first[k];
        for (;;) {
            uint32_t word, right;
            float value;
            memcpy(&word, at, 4);
            memcpy(&value, at + 4, 4);
            memcpy(&right, at + 8, 4);
            if (word & SVI_FOREST_LEAF) {
                sum += value;
                break;
            }
            const float v = x[word & SVI_FOREST_COLUMN];
            at += SVI_FOREST_NODE * ((isnan(v) ? !(word & SVI_FOREST_LEFT) : v > value) ? right : 1);
        }
    }
    return sum;
}

/* From the packed nodes to 1e-6; by descending, bit for bit; after an archive, the same bytes. */
static void scores_are_those_of_the_nodes(void **unused) {
    (void)unused;
    for (int trial = 0; trial < 12; trial++) {
        const int classes = trial % 4;
        struct svi_boost_options o = svi_boost_defaults(classes ? SVS_CLASSIFY : SVS_REGRESS, classes + 1);
        struct svi_forest f = {0}, other = {0};
        struct svi_bytes bytes = {0}, again = {0};
        svs_error err;
        o.leaves = trial < 6 ? 16 : 40;
        some_table(2000, 3 + trial % 7, classes + 1);
        const struct svi_boost_rows r = rows_of();
        fit(&o, &r, &f);
        assert_true(f.trees > 0);
        uint8_t *packed = malloc((size_t)f.count * SVI_FOREST_NODE);
        svi_forest_pack(&f, packed);
        assert_int_equal(archived_save(archive, &f, &bytes, &err), SVS_OK);
        assert_int_equal(archived_load(archive, &other, bytes.data, bytes.size, &err), SVS_OK);
        assert_int_equal(archived_save(archive, &other, &again, &err), SVS_OK);
        assert_true(archived_same(&bytes, &again));
        struct svi_forest descending = f;
        descending.masks = NULL;
        for (int i = 0; i < 500; i++) {
            double s[8], by_nodes[8], loaded[8];
            svi_forest_score(&f, t.x + i * t.d, s);
            svi_forest_score(&descending, t.x + i * t.d, by_nodes);
            svi_forest_score(&other, t.x + i * t.d, loaded);
            for (int k = 0; k < f.rows; k++) {
                assert_true(s[k] == by_nodes[k] && s[k] == loaded[k]);
                assert_true(fabs(s[k] - packed_score(&f, packed, k, t.x + i * t.d)) <=
                            1e-6 * (1 + fabs(s[k])));
            }
        }
        free(packed);
        svi_forest_clear(&f);
        svi_forest_clear(&other);
        svi_bytes_clear(&bytes);
        svi_bytes_clear(&again);
    }
}

/* ---- what changes nothing */

/* The same rows elsewhere in a larger ring, among dead rows with values of their own, wider apart. */
static void the_ring_does_not_matter(void **unused) {
    (void)unused;
    static float x[2 * ROWS * (D + 3)], weight[2 * ROWS], target[2 * ROWS];
    static int32_t label[2 * ROWS];
    static uint8_t live[2 * ROWS];
    for (int trial = 0; trial < 12; trial++) {
        const int classes = trial % 4, stride = D + trial % 3, n = 300, capacity = 2 * n + 5 * trial;
        const struct svi_boost_options o =
            svi_boost_defaults(classes ? SVS_CLASSIFY : SVS_REGRESS, classes + 1);
        struct svi_forest f = {0}, g = {0};
        struct svi_bytes one = {0}, two = {0};
        svs_error err;
        some_table(n, D, classes + 1);
        const struct svi_boost_rows r = rows_of();
        const int64_t first = svi_random_below(&seed, (uint32_t)capacity);
        int count = 0;
        for (int i = 0; i < n; count++) {
            const int at = (int)((first + count) % capacity);
            live[at] = count - i >= n || svi_random_below(&seed, 3) > 0;
            const int from = live[at] ? i++ : (int)svi_random_below(&seed, (uint32_t)n);
            for (int j = 0; j < stride; j++)
                x[at * stride + j] = j >= D || !live[at] ? (float)uniform() : t.x[from * D + j];
            weight[at] = t.weight[from];
            target[at] = t.target[from];
            label[at] = t.label[from];
        }
        const struct svi_boost_rows ring = {x,        D,     stride, first,  count,
                                            capacity, label, target, weight, live};
        fit(&o, &r, &f);
        fit(&o, &ring, &g);
        assert_int_equal(archived_save(archive, &f, &one, &err), SVS_OK);
        assert_int_equal(archived_save(archive, &g, &two, &err), SVS_OK);
        assert_true(archived_same(&one, &two));
        svi_forest_clear(&f);
        svi_forest_clear(&g);
        svi_bytes_clear(&one);
        svi_bytes_clear(&two);
    }
}

/* A transformation of a column that keeps its order keeps the scores of the rows. */
static void order_is_all_that_counts(void **unused) {
    (void)unused;
    for (int trial = 0; trial < 8; trial++) {
        const struct svi_boost_options o = svi_boost_defaults(SVS_CLASSIFY, 2 + trial % 2);
        struct svi_forest f = {0}, g = {0};
        static double before[300][3];
        double after[3];
        some_table(300, D, 2 + trial % 2);
        const struct svi_boost_rows r = rows_of();
        fit(&o, &r, &f);
        for (int i = 0; i < t.n; i++)
            svi_forest_score(&f, t.x + i * D, before[i]);
        for (int i = 0; i < t.n; i++)
            t.x[i * D + 1] = t.x[i * D + 1] < 1 ? t.x[i * D + 1] * 1e-6f : expf(t.x[i * D + 1]) * 1e20f;
        fit(&o, &r, &g);
        for (int i = 0; i < t.n; i++) {
            svi_forest_score(&g, t.x + i * D, after);
            for (int k = 0; k < f.rows; k++)
                assert_true(after[k] == before[i][k]);
        }
        svi_forest_clear(&f);
        svi_forest_clear(&g);
    }
}

/* Each loop gives the same bits on every instruction set. */
static void instruction_sets_agree(void **unused) {
    (void)unused;
    enum { N = 256 };
    static double in[3][3 * N], g[3][N], h[3][N], p[3][3 * N];
    static uint64_t pair[3][N], whole[3][N], zeros[N];
    struct svi_boost_scan first = {.bin = -1};
    const struct svi_boost_loops *set[3] = {&svi_boost_loops_generic};
    int sets = 1;
#if defined(__x86_64__)
    if (svi_kernels_get(SVS_ISA_AVX2))
        set[sets++] = &svi_boost_loops_avx2;
    if (svi_kernels_get(SVS_ISA_AVX512))
        set[sets++] = &svi_boost_loops_avx512;
#endif
    for (int trial = 0; trial < 50; trial++) {
        for (int i = 0; i < 3 * N; i++)
            in[0][i] = 50 * uniform() - 25, in[1][i] = uniform() * 3, in[2][i] = svi_random_below(&seed, 3);
        for (int k = 0; k < sets; k++) {
            struct svi_boost_slopes s = {N, in[1], in[2], in[0], g[k], h[k], 1e-12, 0, 0};
            struct svi_boost_scan scan = {.ridge = 1e6, .least_h = 100, .bin = -1};
            set[k]->softmax(in[0], N, 3, p[k]);
            s.score = trial % 3 == 2 ? p[k] : in[0];
            if (trial % 3 == 0)
                set[k]->logistic(&s);
            else if (trial % 3 == 1)
                set[k]->squares(&s);
            else
                set[k]->shares(&s, 1, 1.5);
            set[k]->pack(&s, 0x1p30 / s.g_sum, 0x1p31 / s.h_sum, pair[k]);
            for (int i = 0; i < N; i++) {
                const double q = rint(g[k][i] * (0x1p30 / s.g_sum));
                assert_true((int32_t)(pair[k][i] >> 32) == (int32_t)q);
                assert_true((uint32_t)pair[k][i] == (uint32_t)rint(h[k][i] * (0x1p31 / s.h_sum)));
                scan.g += (double)(int32_t)(pair[k][i] >> 32);
                scan.h += (double)(uint32_t)pair[k][i];
            }
            set[k]->scan(&scan, pair[k], 1 + 5 * trial, 0);
            memcpy(whole[k], pair[k], sizeof whole[k]);
            set[k]->subtract(whole[k], pair[0], N);
            assert_memory_equal(pair[k], pair[0], sizeof pair[0]);
            assert_memory_equal(p[k], p[0], sizeof p[0]);
            assert_memory_equal(whole[k], zeros, sizeof zeros);
            if (k == 0)
                first = scan;
            assert_true(scan.gain == first.gain && scan.bin == first.bin);
            assert_true(scan.bin >= 0 || trial < 20);
        }
    }
}

/* ---- learning */

static double loss_of(const struct svi_forest *f, bool regress) {
    double sum = 0, s[8];
    for (int i = 0; i < t.n; i++) {
        svi_forest_score(f, t.x + i * t.d, s);
        double total = 0;
        for (int k = 0; k < f->rows; k++)
            total += exp(s[k] - s[t.label[i]]);
        sum += regress        ? (s[0] - t.target[i]) * (s[0] - t.target[i])
               : f->rows == 1 ? log1p(exp(t.label[i] ? -s[0] : s[0]))
                              : log(total);
    }
    return sum / t.n;
}

static void each_round_lowers_the_loss(void **unused) {
    (void)unused;
    for (int classes = 0; classes <= 4; classes++) {
        struct svi_boost_options o = svi_boost_defaults(classes ? SVS_CLASSIFY : SVS_REGRESS, classes);
        double before = HUGE_VAL;
        some_table(1000, 5, classes > 1 ? classes : 2);
        struct svi_boost_rows r = rows_of();
        r.weight = NULL;
        o.rate = 0.05;
        for (o.rounds = 1; o.rounds <= 30; o.rounds++) {
            struct svi_forest f = {0};
            fit(&o, &r, &f);
            const double loss = loss_of(&f, classes == 0);
            assert_true(loss < before);
            before = loss;
            svi_forest_clear(&f);
        }
    }
}

static void parity_of_three_signs_is_learned(void **unused) {
    (void)unused;
    const struct svi_boost_options o = svi_boost_defaults(SVS_CLASSIFY, 2);
    struct svi_forest f = {0};
    int right = 0;
    t.n = ROWS;
    t.d = 8;
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < 8; j++)
            t.x[i * 8 + j] = (float)(uniform() - 0.5);
        t.label[i] = (t.x[i * 8 + 1] > 0) ^ (t.x[i * 8 + 4] > 0) ^ (t.x[i * 8 + 6] > 0);
        t.weight[i] = 1;
    }
    struct svi_boost_rows r = rows_of();
    r.count = 5000;
    fit(&o, &r, &f);
    for (int i = 5000; i < ROWS; i++) {
        double s;
        svi_forest_score(&f, t.x + i * 8, &s);
        right += (s > 0) == t.label[i];
    }
    assert_true(right >= 930);
    svi_forest_clear(&f);
}

/* ---- harm */

static float hostile_value(int kind) {
    static const float some[] = {FLT_MAX, -FLT_MAX, INFINITY, -INFINITY, NAN, 0, -0.0f, FLT_MIN, 1e-45f, 1};
    switch (kind) {
    case 0:
        return some[svi_random_below(&seed, 10)];
    case 1:
        return NAN;
    case 2:
        return 5;
    case 3:
        return svi_random_below(&seed, 2) ? 1 : nextafterf(1, 2);
    default:
        return (float)ldexp(uniform() - 0.5, (int)svi_random_below(&seed, 240) - 110);
    }
}

static void no_rows_do_harm(void **unused) {
    (void)unused;
    for (int trial = 0; trial < 600; trial++) {
        const int classes = (int)svi_random_below(&seed, 5);
        struct svi_boost_options o = svi_boost_defaults(classes ? SVS_CLASSIFY : SVS_REGRESS, classes);
        struct svi_forest f = {0};
        some_table(trial % 3 == 0 ? trial / 3 % 4 : (int)svi_random_below(&seed, 120), D,
                   classes > 1 ? classes : 2);
        o.bins = 2 + (int)svi_random_below(&seed, 254);
        o.leaves = 2 + (int)svi_random_below(&seed, 40);
        o.min_rows = trial % 5;
        for (int i = 0; i < t.n; i++) {
            for (int j = 0; j < D; j++)
                t.x[i * D + j] = hostile_value(trial % 2 ? j % 5 : (int)svi_random_below(&seed, 5));
            t.weight[i] = (float)pow(10, 12 * uniform() - 6);
            t.target[i] = hostile_value(trial % 7 == 6 ? 2 : 4 * (trial % 2));
            t.label[i] = trial % 5 == 4 ? 0 : t.label[i] - (svi_random_below(&seed, 9) == 0);
            t.live[i] = trial % 11 != 10 && svi_random_below(&seed, 5) > 0;
        }
        struct svi_boost_rows r = rows_of();
        r.live = t.live;
        fit(&o, &r, &f);
        assert_int_equal(f.rows, classes > 2 ? classes : 1);
        for (int i = 0; i < 50; i++) {
            float x[D];
            double s[8];
            for (int j = 0; j < D; j++)
                x[j] = hostile_value(0);
            svi_forest_score(&f, x, s);
            for (int k = 0; k < f.rows; k++)
                assert_true(isfinite(s[k]));
        }
        svi_forest_clear(&f);
    }
}

/* No fit takes more than is predicted, and predictions of cost and memory rise with rows and columns. */
static void memory_is_bounded(void **unused) {
    (void)unused;
    for (int trial = 0; trial < 60; trial++) {
        const int classes = trial % 5;
        struct svi_boost_options o = svi_boost_defaults(classes ? SVS_CLASSIFY : SVS_REGRESS, classes);
        struct svi_boost_scratch s = {0};
        struct svi_forest f = {0};
        const int n = (int)svi_random_below(&seed, 1000), d = (int)svi_random_below(&seed, WIDE);
        double taken = 0;
        some_table(n, d > 0 ? d : 1, classes > 1 ? classes : 2);
        o.leaves = trial % 2 ? 16 : 2 + (int)svi_random_below(&seed, 40);
        o.bins = 2 + (int)svi_random_below(&seed, 254);
        const struct svi_boost_rows r = rows_of();
        assert_int_equal(svi_boost_fit(&o, &r, &s, &f, NULL), SVS_OK);
        for (int i = 0; i < SVI_BOOST_BLOCKS; i++)
            taken += (double)s.size[i];
        const double most = svi_boost_memory(&o, t.n, t.d);
        assert_true(taken + svi_forest_memory(&f) <= most);
        assert_true(svi_boost_memory(&o, t.n + 1, t.d) >= most && svi_boost_memory(&o, t.n, t.d + 1) >= most);
        assert_true(svi_boost_cost(&o, t.n + 1, t.d) >= svi_boost_cost(&o, t.n, t.d));
        assert_true(svi_boost_cost(&o, t.n, t.d + 1) >= svi_boost_cost(&o, t.n, t.d));
        svi_boost_scratch_clear(&s);
        svi_forest_clear(&f);
    }
}

static void sizes_out_of_range_are_refused(void **unused) {
    (void)unused;
    const struct svi_boost_options good = svi_boost_defaults(SVS_CLASSIFY, 2);
    struct svi_boost_options o[9] = {good, good, good, good, good, good, good, good, good};
    struct svi_forest f = {0};
    some_table(50, 3, 2);
    struct svi_boost_rows r = rows_of();
    o[0].rounds = 0;
    o[1].leaves = 1;
    o[2].bins = 256;
    o[3].rate = 0;
    o[4].rate = NAN;
    o[5].ridge = 0;
    o[6].min_hessian = -1;
    o[7].min_rows = NAN;
    o[8].classes = 1 << 20;
    for (int i = 0; i < 9; i++)
        assert_int_equal(svi_boost_fit(&o[i], &r, &scratch, &f, NULL), SVS_LIMIT);
    r.count = r.capacity + 1;
    assert_int_equal(svi_boost_fit(&good, &r, &scratch, &f, NULL), SVS_LIMIT);
    assert_int_equal(f.rows, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_split_is_the_best),
        cmocka_unit_test(leaves_have_the_values_of_their_rows),
        cmocka_unit_test(scores_are_those_of_the_nodes),
        cmocka_unit_test(the_ring_does_not_matter),
        cmocka_unit_test(order_is_all_that_counts),
        cmocka_unit_test(instruction_sets_agree),
        cmocka_unit_test(each_round_lowers_the_loss),
        cmocka_unit_test(parity_of_three_signs_is_learned),
        cmocka_unit_test(no_rows_do_harm),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(sizes_out_of_range_are_refused),
    };
    seed.state = 28;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    svi_boost_scratch_clear(&scratch);
    return failed;
}
