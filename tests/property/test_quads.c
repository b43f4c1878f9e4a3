/* The loops of probabilities: exp and log against the library's, and the same bits from every instruction
 * set, over counts that end within a quad. */
#include "support/problem.h"

#include "linalg/exponential.h"
#include "linalg/quads.h"
#include "learner/probability.h"

#define MOST 24

static void exp_and_log_are_those_of_the_library(void **unused) {
    (void)unused;
    uint64_t seed = 1;
    for (int i = 0; i < 200000; i++) {
        const double x = 128 * (test_uniform(&seed) - 0.5), y = exp(-30 * test_uniform(&seed));
        const svi_two e = svi_exp_two((svi_two){x, -x});
        assert_true(fabs(e[0] / exp(x) - 1) < 2e-13 && fabs(e[1] / exp(-x) - 1) < 2e-13);
        assert_true(fabs(svi_log(y) - log(y)) <= 2e-13 * fabs(log(y)));
    }
    assert_true(svi_exp_two((svi_two){0, 0})[0] == 1 && svi_log(1) == 0);
}

static void softmax_is_that_of_the_definition(void **unused) {
    (void)unused;
    uint64_t seed = 2;
    for (int i = 0; i < 2000; i++) {
        const int n = 1 + i % MOST;
        double z[MOST], p[MOST], top = -INFINITY, sum = 0;
        for (int k = 0; k < n; k++) {
            z[k] = 30 * (test_uniform(&seed) - 0.5);
            top = fmax(top, z[k]);
        }
        for (int k = 0; k < n; k++)
            sum += exp(fmax(z[k] - top, -15));
        svi_quads_generic.softmax(z, n, 15, p);
        for (int k = 0; k < n; k++)
            assert_true(fabs(p[k] / (exp(fmax(z[k] - top, -15)) / sum) - 1) < 1e-12);
    }
}

struct sample {
    double b[MOST], s[MOST], z[MOST], v[MOST], share[MOST], p[MOST], plain[MOST];
    double slope[SVI_KNOTS], more_bend[SVI_KNOTS], bend[MOST];
    int64_t line[MOST], seen[MOST];
    struct svi_line lines[SVI_KNOTS - 1];
    double mean[8], squares[8], curve[4][SVI_KNOTS];
};

static void fill(struct sample *m, uint64_t seed) {
    memset(m, 0, sizeof *m);
    for (int k = 0; k < MOST; k++) {
        m->b[k] = test_normal(&seed);
        m->bend[k] = 50 * test_uniform(&seed);
        m->seen[k] = (int64_t)(1000 * test_uniform(&seed));
    }
    for (int j = 0; j < SVI_KNOTS; j++) {
        m->curve[0][j] = svi_logit_knots[j] + test_normal(&seed) / 3;
        for (int i = 1; i < 4; i++)
            m->curve[i][j] = 20 * test_uniform(&seed);
        if (j + 1 < SVI_KNOTS)
            m->lines[j] = (struct svi_line){.begin = svi_logit_knots[j], .scale = svi_logit_inverse[j]};
    }
}

/* All of it once; `scores` and `rows` are the same for all. */
static void pass(const struct svi_quads *q, struct sample *m, const double *scores, int n, int truth,
                 const double *rows) {
    const struct svi_classes_law law = {.line_at = svi_logit_interval,
                                        .lines = m->lines,
                                        .a = 1.7,
                                        .b = m->b,
                                        .most = SVI_LOGIT_MAX,
                                        .s = m->s,
                                        .z = m->z,
                                        .v = m->v,
                                        .share = m->share,
                                        .line = m->line,
                                        .p = m->p,
                                        .plain = m->plain};
    struct svi_classes_lesson lesson = {.truth = truth,
                                        .slope = m->slope,
                                        .more_bend = m->more_bend,
                                        .bend = m->bend,
                                        .seen = m->seen,
                                        .rare = 500,
                                        .samples = 4000,
                                        .least = 1000,
                                        .half = 2000,
                                        .pull = 1,
                                        .damp = 10,
                                        .step = 1,
                                        .most = 1e4,
                                        .scores = 12};
    const struct svi_curve_step step = {.knot = svi_logit_knots,
                                        .value = m->curve[0],
                                        .bend = m->curve[1],
                                        .slope = m->curve[2],
                                        .more_bend = m->curve[3],
                                        .fade = 0.99,
                                        .pull = 0.01,
                                        .damp = 10,
                                        .most = 0.5,
                                        .rise = 1e-3};
    q->lines(m->curve[0], m->lines);
    q->law(&law, scores, n);
    q->learn(&law, &lesson, n);
    m->mean[0] = q->curve(&step);
    q->moments(rows, 64, 40, 32, 8, 8, m->mean, m->squares);
}

static void every_instruction_set_gives_the_same_bits(void **unused) {
    (void)unused;
    uint64_t seed = 3;
    const struct svi_quads *best = svi_quads_get();
    for (int i = 0; i < 2000; i++) {
        struct sample a, b;
        double scores[MOST], rows[64 * 8];
        const int n = 3 + i % (MOST - 3);
        for (int k = 0; k < MOST; k++)
            scores[k] = i % 7 == 0 && k == 1 ? NAN
                        : i % 11 == 0        ? 1e4 * test_normal(&seed)
                                             : test_normal(&seed);
        for (int k = 0; k < 64 * 8; k++)
            rows[k] = test_normal(&seed);
        fill(&a, (uint64_t)i);
        fill(&b, (uint64_t)i);
        pass(&svi_quads_generic, &a, scores, n, i % n, rows);
        pass(best, &b, scores, n, i % n, rows);
        assert_memory_equal(&a, &b, sizeof a);
        double sum = 0;
        for (int k = 0; k < n; k++)
            sum += a.p[k];
        assert_true(fabs(sum - 1) < 1e-12);
    }
}

/* ---- judging */

static uint32_t whole(double v) {
    return (uint32_t)(v + 0.5);
}

/* The first probabilities are 0, 1 and those at which a whole number ends. */
static double judged_probability(int i, uint64_t *seed) {
    static const double some[] = {0, 1, 0.5, 0x1p-30, 1.5 * 0x1p-30, 1 - 0x1p-31, 1 - 0x1p-30, 1e-15, 1e-300};
    const int count = sizeof some / sizeof *some;
    return i < count ? some[i] : i % 3 ? test_uniform(seed) : exp(-40 * test_uniform(seed));
}

static void judging_is_that_of_one_sample(void **unused) {
    (void)unused;
    const struct svi_quads *sets[] = {&svi_quads_generic, svi_quads_get()};
    const struct svi_pair_units u = {-log(1e-15), 0x1p26, 0x1p30, 0x1p30};
    uint64_t seed = 3;
    for (int i = 0; i < 50000; i++) {
        double p[2][SVI_QUAD], y[SVI_QUAD];
        for (int k = 0; k < SVI_QUAD; k++) {
            p[1][k] = judged_probability(i, &seed);
            p[0][k] = 1 - p[1][k] > 1e-15 ? 1 - p[1][k] : 1e-15;
            p[1][k] = p[1][k] > 1e-15 || i % 2 ? p[1][k] : 1e-15;
            y[k] = test_uniform(&seed) < 0.5;
        }
        for (int set = 0; set < 2; set++) {
            struct svi_pair_judgement out;
            sets[set]->judge(&u, p[0], p[1], y, &out);
            for (int k = 0; k < SVI_QUAD; k++) {
                const double truth = p[y[k] > 0][k], off = p[1][k] - y[k];
                if (truth >= 1e-300) /* the logarithm is of normal numbers */
                    assert_int_equal(out.loss[k], whole(fmin(-svi_log(truth), u.loss_most) * u.loss));
                assert_int_equal(out.brier[k], whole(off * off * u.brier));
                assert_int_equal(out.p[k], whole(p[1][k] * u.p) | (y[k] > 0 ? SVI_PAIR_TRUE : 0));
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exp_and_log_are_those_of_the_library),
        cmocka_unit_test(softmax_is_that_of_the_definition),
        cmocka_unit_test(every_instruction_set_gives_the_same_bits),
        cmocka_unit_test(judging_is_that_of_one_sample),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
