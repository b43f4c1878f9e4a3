/* Blocks of first-order members: they are what a plain implementation in doubles is, in every instruction
 * set; growth, reserved room, archives and scores in between change no bit; weights, late labels and wild
 * inputs keep them finite; and loaded bytes are not trusted. */
#include "support/block.h"

#define REACH_MAX 700

/* ---- a plain implementation: features in, weights by head and model */

struct plain {
    struct svi_block_options o;
    int classes;
    double w[SVI_HEADS_MAX][CLASSES_MAX][REACH_MAX], sum[SVI_HEADS_MAX][CLASSES_MAX][REACH_MAX];
    double n, mean;
};

static double plain_score(const struct plain *p, int h, int r, const double *f, int reach) {
    double s = 0;
    for (int i = 0; i < reach; i++)
        s += p->w[h][r][i] * f[i];
    return s;
}

static void plain_classes(struct plain *p, int classes) {
    if (p->classes <= 2 && classes > 2)
        for (int h = 0; h < p->o.head_count; h++) {
            memcpy(p->w[h][1], p->w[h][0], sizeof p->w[h][0]);
            memcpy(p->sum[h][1], p->sum[h][0], sizeof p->sum[h][0]);
            for (int i = 0; i < REACH_MAX; i++)
                p->w[h][0][i] = -p->w[h][0][i];
        }
    p->classes = classes > p->classes ? classes : p->classes;
}

static double plain_norm(const double *f, int reach) {
    double norm = 0;
    for (int i = 0; i < reach; i++)
        norm += f[i] * f[i];
    return norm;
}

static void plain_add(double *w, double c, const double *f, int reach) {
    for (int i = 0; i < reach; i++)
        w[i] += c * f[i];
}

static void plain_passive(struct plain *p, int h, int label, double weight, const double *f, int reach) {
    const bool one = p->classes <= 2;
    const double y = label == 1 ? 1 : -1, C = (double)p->o.head[h].rate;
    int wrong = -1;
    for (int r = 0; !one && r < p->classes; r++)
        if (r != label && (wrong < 0 || plain_score(p, h, r, f, reach) > plain_score(p, h, wrong, f, reach)))
            wrong = r;
    const double margin = one ? y * plain_score(p, h, 0, f, reach)
                              : plain_score(p, h, label, f, reach) - plain_score(p, h, wrong, f, reach);
    const double t = fmax(0, 1 - margin) / plain_norm(f, reach) / (one ? 1 : 2);
    const double step = fmin(weight * fmin(C, t), t);
    plain_add(p->w[h][one ? 0 : label], one ? y * step : step, f, reach);
    if (!one)
        plain_add(p->w[h][wrong], -step, f, reach);
}

static void plain_adagrad(struct plain *p, int h, int r, double y, double weight, const double *f,
                          int reach) {
    const double chance = 1 / (1 + exp(y * plain_score(p, h, r, f, reach)));
    for (int i = 0; chance >= 1e-3 && i < reach; i++) {
        const double g = -weight * y * chance * f[i];
        p->sum[h][r][i] = (double)p->o.head[h].keep * p->sum[h][r][i] + g * g;
        p->w[h][r][i] -= (double)p->o.head[h].rate * g / sqrt(p->sum[h][r][i] + 1e-8);
    }
}

static void plain_head(struct plain *p, int h, int label, double target, double weight, const double *f,
                       int reach) {
    const struct svi_head *head = &p->o.head[h];
    if (head->step == SVI_STEP_PA)
        plain_passive(p, h, label, weight, f, reach);
    else if (head->step == SVI_STEP_NLMS)
        plain_add(p->w[h][0],
                  fmin(1, (double)head->rate * weight) * (target - plain_score(p, h, 0, f, reach)) /
                      plain_norm(f, reach),
                  f, reach);
    for (int r = 0; head->step == SVI_STEP_ADAGRAD && r < (p->classes <= 2 ? 1 : p->classes); r++)
        plain_adagrad(p, h, r, label == (p->classes <= 2 ? 1 : r) ? 1 : -1, weight, f, reach);
}

static int plain_rows(const struct plain *p) {
    return p->o.task == SVS_REGRESS || p->classes <= 2 ? 1 : p->classes;
}

/* How far the block's scores are from the plain ones over a walk. The features are those of the block, which
 * test_floats has looked at; for raw ones they are z. */
static double walk_apart(int kind, svs_task task, svs_isa isa, int d, int classes, int steps) {
    struct svi_block_options o = block_options(kind, task);
    struct plain *p = calloc(1, sizeof *p);
    double scores[SCORES_MAX], f[REACH_MAX] = {1}, worst = 0;
    float z[ROW_MAX] __attribute__((aligned(64)));
    o.isa = isa;
    p->o = o;
    struct svi_block b = block_new(&o, d);
    for (int i = 0; i < steps; i++) {
        int count;
        const int label = block_label(i, classes);
        const double target = block_target(i), weight = i % 4 ? 1 : 0.5;
        block_row(i, d, z);
        svi_block_score(&b, z, scores);
        const float *phi = svi_block_features(&b, &count);
        assert_true(kind != SVI_BLOCK_FOURIER || count == (i < SVI_FOURIER_ROWS ? 0 : SVI_FOURIER_COUNT));
        for (int k = 0; k < count; k++)
            f[1 + k] = (double)phi[k];
        const int rows = plain_rows(p);
        assert_int_equal(rows, svi_block_rows(&b));
        for (int h = 0; h < o.head_count; h++)
            for (int r = 0; r < rows; r++) {
                const double plain = p->mean + plain_score(p, h, r, f, 1 + count);
                worst = fmax(worst, fabs(plain - scores[h * rows + r]));
            }
        if (task == SVS_CLASSIFY) {
            assert_int_equal(svi_block_reserve_classes(&b, label + 1, NULL), SVS_OK);
            svi_block_learn(&b, label, weight);
            plain_classes(p, label + 1);
        } else {
            svi_block_learn_target(&b, target, weight);
            p->mean += (target - p->mean) / ++p->n;
        }
        for (int h = 0; count > 0 && h < o.head_count; h++)
            plain_head(p, h, label, target - p->mean, weight, f, 1 + count);
    }
    svi_block_clear(&b);
    free(p);
    return worst;
}

static void steps_are_those_of_doubles(void **unused) {
    (void)unused;
    const int steps = often(500, 220);
    for (int isa = 0; isa < ISAS; isa++) {
        if (!svi_floats_get(block_isas[isa]))
            continue;
        EACH_BLOCK(kind, task)
        for (int d = 3; d < 20; d += 10)
            for (int classes = 2; classes < (task == SVS_REGRESS ? 3 : 6); classes += 3)
                assert_true(walk_apart(kind, task, block_isas[isa], d, classes, steps) <
                            (kind == SVI_BLOCK_FOURIER
                                 ? 0.05
                                 : 1e-3)); /* of scores up to 100, and targets near 1000 */
    }
}

/* ---- the same bits */

/* a knew all features from the beginning, b gets more on the way, and now and then between score and learn;
 * a had room for all classes. */
static void growth_is_as_if_it_had_been_zero(void **unused) {
    (void)unused;
    EACH_BLOCK(kind, task) {
        const struct svi_block_options o = block_options(kind, task);
        struct svi_block a = block_new(&o, 40), b = block_new(&o, 0);
        double s[SCORES_MAX], t[SCORES_MAX];
        float z[ROW_MAX] __attribute__((aligned(64)));
        assert_int_equal(svi_block_reserve_classes(&a, 8, NULL), SVS_OK);
        for (int i = 0, d = 0; i < 320; i++) {
            const int next = i < 20    ? 3
                             : i < 150 ? 17
                             : i < 250 ? 18
                                       : 40,
                      label = block_label(i, 2 + i / 50);
            if (i % 2 == 0)
                assert_int_equal(svi_block_grow(&b, d = next, NULL), SVS_OK);
            block_row(i, d, z);
            svi_block_score(&a, z, s);
            svi_block_score(&b, z, t);
            assert_memory_equal(s, t, (size_t)(o.head_count * svi_block_rows(&a)) * sizeof *s);
            assert_int_equal(svi_block_grow(&b, d = next, NULL), SVS_OK);
            assert_int_equal(svi_block_reserve_classes(&b, label + 1, NULL), SVS_OK);
            if (task == SVS_REGRESS) {
                svi_block_learn_target(&a, block_target(i), 1);
                svi_block_learn_target(&b, block_target(i), 1);
            } else {
                svi_block_learn(&a, label, 1);
                svi_block_learn(&b, label, 1);
            }
        }
        assert_true(svi_block_memory(&b.o, b.d, b.classes) > 0);
        svi_block_clear(&a);
        svi_block_clear(&b);
    }
}

/* Rows that are only scored, a label that comes late, and a block that was used and emptied. */
static void scores_in_between_change_nothing(void **unused) {
    (void)unused;
    EACH_BLOCK(kind, task) {
        const struct svi_block_options o = block_options(kind, task);
        struct svi_block a = block_new(&o, 9), b = block_new(&o, 9);
        double s[SCORES_MAX], t[SCORES_MAX], late[SCORES_MAX];
        float z[ROW_MAX] __attribute__((aligned(64)));
        for (int i = 0; i < 230; i++)
            block_step(&b, 1000 - i, 9, 7, t);
        svi_block_empty(&b);
        for (int i = 0; i < 260; i++) {
            block_row(5000 + i, 9, z);
            svi_block_score(&b, z, late);
            const int count = o.head_count * svi_block_rows(&a);
            block_step(&a, i, 9, 5, s);
            block_step(&b, i, 9, 5, t);
            assert_memory_equal(s, t, (size_t)count * sizeof *s);
            svi_block_score(&b, z, late);
        }
        svi_block_clear(&a);
        svi_block_clear(&b);
    }
}

static void archives_go_on_bit_for_bit(void **unused) {
    (void)unused;
    EACH_BLOCK(kind, task) {
        const struct svi_block_options o = block_options(kind, task);
        struct svi_block a = block_new(&o, 5);
        struct svi_bytes bytes = {0}, again = {0};
        svs_error err;
        double s[SCORES_MAX], t[SCORES_MAX];
        uint64_t seed = 11;
        for (int i = 0, d = 5; i < often(400, 240); i++) {
            if (i % 97 == 96)
                assert_int_equal(svi_block_grow(&a, d += 7, NULL), SVS_OK);
            if (i % 130 == 129)
                svi_block_renew(&a, i % d);
            if (test_random(&seed) % 20 == 0) {
                struct svi_block b = block_new(&o, i % 3);
                assert_int_equal(archived_save(block_archive, &a, &bytes, &err), SVS_OK);
                assert_int_equal(archived_load(block_archive, &b, bytes.data, bytes.size, &err), SVS_OK);
                assert_int_equal(archived_save(block_archive, &b, &again, &err), SVS_OK);
                assert_true(archived_same(&bytes, &again));
                for (int k = 0; k < 5; k++, i++) {
                    block_step(&a, i, d, 2 + i / 50, s);
                    block_step(&b, i, d, 2 + i / 50, t);
                    assert_memory_equal(s, t, sizeof(double) * (size_t)o.head_count);
                }
                archived_save(block_archive, &a, &bytes, &err);
                archived_save(block_archive, &b, &again, &err);
                assert_true(archived_same(&bytes, &again));
                svi_block_clear(&a);
                a = b;
            }
            block_step(&a, i, d, 2 + i / 50, s);
        }
        svi_block_clear(&a);
        svi_bytes_clear(&bytes);
        svi_bytes_clear(&again);
    }
}

/* ---- classes, features that go, weights */

static void a_third_class_takes_over_from_two(void **unused) {
    (void)unused;
    for (int kind = 0; kind <= SVI_BLOCK_FOURIER; kind++) {
        const struct svi_block_options o = block_options(kind, SVS_CLASSIFY);
        struct svi_block b = block_new(&o, 6);
        double s[SCORES_MAX], t[SCORES_MAX];
        float z[ROW_MAX] __attribute__((aligned(64)));
        for (int i = 0; i < 250; i++)
            block_step(&b, i, 6, 2, s);
        block_row(999, 6, z);
        svi_block_score(&b, z, s);
        assert_int_equal(svi_block_rows(&b), 1);
        assert_int_equal(svi_block_reserve_classes(&b, 4, NULL), SVS_OK);
        assert_int_equal(svi_block_rows(&b), 1);
        svi_block_add_classes(&b, 4);
        svi_block_score(&b, z, t);
        assert_int_equal(svi_block_rows(&b), 4);
        for (int h = 0; h < o.head_count; h++)
            assert_true(t[4 * h] == -s[h] && t[4 * h + 1] == s[h] && t[4 * h + 2] == 0 && t[4 * h + 3] == 0);
        svi_block_clear(&b);
    }
}

static void a_feature_that_is_renewed_says_nothing(void **unused) {
    (void)unused;
    for (int kind = 0; kind < SVI_BLOCK_FOURIER; kind++)
        for (int j = 0; j < 6; j++) {
            const struct svi_block_options o = block_options(kind, SVS_CLASSIFY);
            struct svi_block b = block_new(&o, 6);
            double s[SCORES_MAX], t[SCORES_MAX];
            float z[ROW_MAX] __attribute__((aligned(64)));
            for (int i = 0; i < 100; i++)
                block_step(&b, i, 6, 4, s);
            svi_block_renew(&b, j);
            block_row(999, 6, z);
            svi_block_score(&b, z, s);
            z[j] += 2;
            svi_block_score(&b, z, t);
            assert_memory_equal(s, t, (size_t)(o.head_count * svi_block_rows(&b)) * sizeof *s);
            z[(j + 1) % 6] += 2;
            svi_block_score(&b, z, t);
            assert_true(s[0] != t[0]);
            svi_block_clear(&b);
        }
}

/* A step of weight c moves the score of its row towards the label, further with more weight, and PA and NLMS
 * never beyond their aim. */
static void weights_lengthen_steps_within_bounds(void **unused) {
    (void)unused;
    EACH_BLOCK(kind, task) {
        const struct svi_block_options o = block_options(kind, task);
        static const double weights[] = {1e-100, 0.25, 1, 3, 1e3, 1e100};
        double before[SCORES_MAX], after[SCORES_MAX], last[SVI_HEADS_MAX];
        float z[ROW_MAX] __attribute__((aligned(64)));
        for (int k = 0; k < 6; k++) {
            struct svi_block b = block_new(&o, 6);
            for (int i = 0; i < 220; i++)
                block_step(&b, i, 6, 2, before);
            block_row(777, 6, z);
            svi_block_score(&b, z, before);
            if (task == SVS_REGRESS)
                svi_block_learn_target(&b, 1500, weights[k]);
            else
                svi_block_learn(&b, before[0] < 0, weights[k]);
            svi_block_score(&b, z, after);
            for (int h = 0; h < o.head_count; h++) {
                const double y = task == SVS_REGRESS ? 1 : before[0] < 0 ? 1 : -1;
                assert_true(isfinite(after[h]));
                if (o.head[h].step == SVI_STEP_PA)
                    assert_true(y * after[h] <= fmax(1, y * before[h]) + 1e-4);
                if (task == SVS_REGRESS && kind != SVI_BLOCK_PRODUCTS)
                    assert_true(after[h] <= 1501);
                if (kind != SVI_BLOCK_PRODUCTS) /* whose features have moved on */
                    assert_true(y * after[h] >= y * before[h] - 1e-4 || task == SVS_REGRESS);
                if (k > 0 && kind != SVI_BLOCK_PRODUCTS && o.head[h].step != SVI_STEP_ADAGRAD)
                    assert_true(y * after[h] >= y * last[h] - 1e-4 * (1 + fabs(last[h])));
                last[h] = after[h];
            }
            svi_block_clear(&b);
        }
    }
}

static void published_weights_give_the_scores(void **unused) {
    (void)unused;
    for (svs_task task = SVS_CLASSIFY; task <= SVS_REGRESS; task++) {
        const struct svi_block_options o = block_options(SVI_BLOCK_RAW, task);
        struct svi_block b = block_new(&o, 4);
        struct svi_standardiser s;
        double x[4] = {0}, w[4], scores[SCORES_MAX];
        float z[16] __attribute__((aligned(64)));
        uint64_t seed = 9;
        assert_int_equal(svi_standardiser_init(&s, SVS_ISA_BEST, NULL), SVS_OK);
        assert_int_equal(svi_standardiser_grow(&s, 4, NULL), SVS_OK);
        assert_int_equal(svi_block_reserve_classes(&b, 3, NULL), SVS_OK);
        for (int i = 0; i < 300; i++) {
            for (int j = 0; j < 4; j++)
                x[j] = 50 * j + (j < 3 ? (2 + j) * test_normal(&seed) : 0);
            svi_standardiser_row(&s, x, z);
            svi_block_score(&b, z, scores);
            for (int h = 0; i > 100 && h < o.head_count; h++)
                for (int r = 0; r < svi_block_rows(&b); r++) {
                    double sum = svi_block_weights(&b, h, r, &s, w);
                    for (int j = 0; j < 4; j++)
                        sum += w[j] * x[j];
                    assert_true(fabs(sum - scores[h * svi_block_rows(&b) + r]) <
                                (task == SVS_REGRESS ? 0.05 : 1e-4));
                }
            if (task == SVS_REGRESS)
                svi_block_learn_target(&b, 1e4 + 30 * x[0] - 5 * x[1], 1);
            else
                svi_block_learn(&b, (x[0] > 0) + (x[1] > 50), 1);
            svi_standardiser_take(&s, x);
        }
        svi_standardiser_clear(&s);
        svi_block_clear(&b);
    }
}

/* ---- whatever comes */

static void wild_rows_keep_all_finite(void **unused) {
    (void)unused;
    EACH_BLOCK(kind, task) {
        const struct svi_block_options o = block_options(kind, task);
        static const double targets[] = {1e100, -1e100, 0, 1e-300, 5, 1e50, -1e99, 1e-99};
        static const double weights[] = {1, 1e100, 1e-100, 1e6, 0.5};
        struct svi_block b = block_new(&o, 12);
        double scores[SCORES_MAX];
        float z[ROW_MAX] __attribute__((aligned(64))) = {0};
        uint64_t seed = 21;
        assert_int_equal(svi_block_reserve_classes(&b, CLASSES_MAX, NULL), SVS_OK);
        for (int i = 0; i < often(3000, 400); i++) {
            for (int j = 0; j < 12; j++)
                z[j] = j == 3 ? 1e-30F : (float)(10 * ((double)(test_random(&seed) % 3) - 1));
            svi_block_score(&b, z, scores);
            for (int k = 0; k < o.head_count * svi_block_rows(&b); k++)
                assert_true(isfinite(scores[k]));
            if (task == SVS_REGRESS)
                svi_block_learn_target(&b, i < 50 ? 1e-300 : targets[test_random(&seed) % 8], weights[i % 5]);
            else
                svi_block_learn(&b, (int)(test_random(&seed) % (i < 300 ? 2 : CLASSES_MAX)), weights[i % 5]);
        }
        svi_block_clear(&b);
    }
}

static void load_what_is_damaged(const struct svi_block_options *o, const struct svi_bytes *bytes,
                                 size_t size) {
    struct svi_block b = block_new(o, 2);
    svs_error err;
    double scores[SCORES_MAX];
    float z[ROW_MAX] __attribute__((aligned(64)));
    const bool taken = archived_load(block_archive, &b, bytes->data, size, &err) == SVS_OK;
    assert_true(!taken || size == bytes->size);
    for (int i = 0; taken && i < 3; i++) {
        block_row(i, b.d, z);
        svi_block_score(&b, z, scores);
        for (int k = 0; k < o->head_count * svi_block_rows(&b); k++)
            assert_true(isfinite(scores[k]));
        if (o->task == SVS_REGRESS)
            svi_block_learn_target(&b, 7, 1);
        else
            svi_block_learn(&b, 0, 1);
    }
    svi_block_clear(&b);
}

static void loaded_bytes_are_not_trusted(void **unused) {
    (void)unused;
    EACH_BLOCK(kind, task)
    for (int rows = 150; rows < 300; rows += 100) {
        const struct svi_block_options o = block_options(kind, task);
        struct svi_block a = block_new(&o, 4);
        struct svi_bytes bytes = {0};
        svs_error err;
        double s[SCORES_MAX];
        for (int i = 0; i < rows; i++)
            block_step(&a, i, 4, 3, s);
        assert_int_equal(archived_save(block_archive, &a, &bytes, &err), SVS_OK);
        const size_t step = bytes.size / (size_t)often(400, 60) + 1;
        for (size_t at = 0; at < bytes.size; at += at < 100 ? 1 : step) {
            const int bit = (int)(at * 7 % 8);
            bytes.data[at] ^= (uint8_t)(1 << bit);
            load_what_is_damaged(&o, &bytes, bytes.size);
            bytes.data[at] ^= (uint8_t)(1 << bit);
            load_what_is_damaged(&o, &bytes, at);
        }
        svi_block_clear(&a);
        svi_bytes_clear(&bytes);
    }
}

static void what_does_not_fit_is_refused(void **unused) {
    (void)unused;
    struct svi_block b;
    svs_error err;
    struct svi_block_options o = block_options(SVI_BLOCK_PRODUCTS, SVS_CLASSIFY);
    b = block_new(&o, SVI_PRODUCTS_MAX);
    assert_int_equal(svi_block_grow(&b, SVI_PRODUCTS_MAX + 1, &err), SVS_LIMIT);
    assert_int_equal(b.d, SVI_PRODUCTS_MAX);
    svi_block_clear(&b);
    o = block_options(SVI_BLOCK_RAW, SVS_REGRESS);
    o.task = SVS_CLASSIFY;
    assert_int_equal(svi_block_init(&b, &o, &err), SVS_INVALID);
    o = block_options(SVI_BLOCK_RAW, SVS_REGRESS);
    o.head[0].rate = 1.5F;
    assert_int_equal(svi_block_init(&b, &o, &err), SVS_INVALID);
    o.head_count = SVI_HEADS_MAX + 1;
    assert_int_equal(svi_block_init(&b, &o, &err), SVS_INVALID);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_those_of_doubles),
        cmocka_unit_test(growth_is_as_if_it_had_been_zero),
        cmocka_unit_test(scores_in_between_change_nothing),
        cmocka_unit_test(archives_go_on_bit_for_bit),
        cmocka_unit_test(a_third_class_takes_over_from_two),
        cmocka_unit_test(a_feature_that_is_renewed_says_nothing),
        cmocka_unit_test(weights_lengthen_steps_within_bounds),
        cmocka_unit_test(published_weights_give_the_scores),
        cmocka_unit_test(wild_rows_keep_all_finite),
        cmocka_unit_test(loaded_bytes_are_not_trusted),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
