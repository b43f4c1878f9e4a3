/* Probabilities: what must hold of any stream of scores, however wild; that laws which have a calibration are
 * found; that what is kept goes on bit for bit; and the fit of many scores at once. */
#include "support/problem.h"
#include "support/archived.h"
#include "support/quick.h"

#include "learner/probability.h"
#include "quality/calibrator.h"

#define CLASSES 12

static double sigmoid(double z) {
    return 1 / (1 + exp(-z));
}

/* ---- the law */

static void place_is_that_of_the_definition(void **unused) {
    (void)unused;
    uint64_t seed = 5;
    for (int i = 0; i < 20000; i++) {
        const double *knot = svi_logit_knots;
        const double *near = &knot[i % SVS_CURVE]; /* at a knot, and the numbers beside it */
        const double z = i < 35    ? *near
                         : i < 600 ? nextafter(i < 300 ? *near : *near * (1 + 1e-15), i % 2 ? 99 : -99)
                                   : 20 * (test_uniform(&seed) - 0.5);
        double beyond;
        const struct svi_logit at = svi_logit_place(z, &beyond);
        const double share = at.share;
        const int j = at.at;
        assert_true(j >= 0 && j + 1 < SVS_CURVE && share >= 0 && share <= 1);
        assert_true(fabs((1 - share) * knot[j] + share * knot[j + 1] + beyond - z) < 1e-12);
        assert_true(beyond == 0 || fabs(z) >= knot[SVS_CURVE - 1]);
    }
}

static double wild(uint64_t *seed) {
    static const double some[] = {1e10, -1e10, 1e300, -1e300, INFINITY, -INFINITY, NAN, 0, -0.0, 1e-300};
    const uint64_t k = test_random(seed) % 60;
    return k < 10 ? some[k] : k < 20 ? 1e3 * test_normal(seed) : test_normal(seed);
}

static void assert_probabilities(const svi_calibrator *c, const double *scores, int rows, int count) {
    double p[CLASSES], sum = 0;
    const svs_calibration law = svi_calibrator_law(c, count);
    svi_probabilities(&law, scores, rows, p);
    for (int k = 0; k < count; k++) {
        if (!(p[k] > 0 && p[k] < 1))
            fail_msg("a probability is %g", p[k]);
        sum += p[k];
    }
    assert_true(fabs(sum - 1) < 1e-12);
}

/* Probabilities of two classes are in the order of the scores; of more, a class's rises with its score. */
static void assert_rising(const svi_calibrator *c, uint64_t *seed, int rows, int count) {
    double p[CLASSES], before = 0, scores[CLASSES];
    const svs_calibration law = svi_calibrator_law(c, count);
    for (int k = 0; k < rows; k++)
        scores[k] = test_normal(seed);
    for (int i = 0; i < 200; i++) {
        scores[rows - 1] = -4 + 0.04 * i;
        svi_probabilities(&law, scores, rows, p);
        if (p[count - 1] < before)
            fail_msg("%.17g after %.17g", p[count - 1], before);
        before = p[count - 1];
    }
}

/* Scores of all sizes, NaN, separable stretches, one class only, classes that come later. */
static void any_stream(void **unused) {
    (void)unused;
    for (int k = 0; k < often(60, 12); k++) {
        uint64_t seed = 40 + (uint64_t)k;
        double scores[CLASSES];
        int count = 2;
        svi_calibrator *c = svi_calibrator_new(CLASSES, false, NULL);
        for (int t = 0; t < 1500; t++) {
            if (k % 3 == 2 && t % 100 == 99 && count < CLASSES)
                count++;
            const int rows = count < 3 ? 1 : count;
            for (int i = 0; i < rows; i++)
                scores[i] = k % 2 ? wild(&seed) : test_normal(&seed);
            int truth = k % 5 == 0 ? 0 : (int)(test_random(&seed) % (unsigned)(count + (k % 7 == 0)));
            if (k % 4 == 1 && rows == 1)
                truth = scores[0] > 0;
            assert_probabilities(c, scores, rows, count);
            svi_calibrator_learn(c, scores, rows, count, truth < CLASSES ? truth : -1, NULL);
            if (t % 50 == 0)
                assert_rising(c, &seed, rows, count);
        }
        svi_calibrator_free(&c);
    }
}

/* ---- laws */

struct result {
    double loss, best, ece; /* best: of the law itself */
};

/* p of the second class is law(s), s normal with mean `mean`. After `from` samples, by bins of width 1/15. */
static struct result follow(double (*law)(double), double mean, int n, int from, uint64_t seed) {
    svi_calibrator *c = svi_calibrator_new(2, false, NULL);
    double bins[15][2] = {{0}}, p[2];
    struct result r = {0};
    for (int i = 0; i < n; i++) {
        const double s = mean + test_normal(&seed), q = law(s);
        const int y = test_uniform(&seed) < q;
        const svs_calibration now = svi_calibrator_law(c, 2);
        svi_probabilities(&now, &s, 1, p);
        if (i >= from) {
            const int bin = (int)(15 * p[1]);
            bins[bin][0] += y;
            bins[bin][1] += p[1];
            r.loss -= log(p[y]) / (n - from);
            r.best -= log(y ? q : 1 - q) / (n - from);
        }
        svi_calibrator_learn(c, &s, 1, 2, y, i % 2 ? p : NULL); /* it is the same whoever makes them */
    }
    for (int b = 0; b < 15; b++)
        r.ece += fabs(bins[b][0] - bins[b][1]) / (n - from);
    svi_calibrator_free(&c);
    return r;
}

static double steep(double s) {
    return sigmoid(4 * s - 1);
}
static double flat(double s) {
    return sigmoid(0.7 * s + 0.5);
}
static double noisy(double s) {
    return s > 0 ? 0.8 : 0.2;
}
static double rare(double s) {
    return sigmoid(1.5 * s - 5);
}
static double offset_scores(double s) { /* as of 1 % positives: far from 0, in a narrow band */
    return sigmoid(30 * (s / 20 - 1.3));
}

static void laws_are_found(void **unused) {
    (void)unused;
    static const struct {
        double (*law)(double);
        double mean;
        const char *name;
    } laws[] = {{steep, 0, "steep"},
                {flat, 0, "flat"},
                {noisy, 0, "noisy"},
                {rare, 0, "rare"},
                {offset_scores, 18, "offset"}};
    for (size_t k = 0; k < sizeof laws / sizeof *laws; k++) {
        const struct result r = follow(laws[k].law, laws[k].mean, 20000, 1000, 7 + k);
        if (!(r.ece < (laws[k].law == noisy ? 0.03 : 0.012) &&
              r.loss < r.best + (laws[k].law == noisy ? 0.02 : 0.004)))
            fail_msg("%s: calibration error %.4f, log loss %.4f, at best %.4f", laws[k].name, r.ece, r.loss,
                     r.best);
    }
}

/* Softmax of 3 times the scores, a bonus for class 0: after a while as good as that. */
static void laws_of_more_classes_are_found(void **unused) {
    (void)unused;
    enum { K = 4, N = 20000, FROM = 2000 };
    svi_calibrator *c = svi_calibrator_new(K, false, NULL);
    uint64_t seed = 3;
    double loss = 0, best = 0, bonus[K] = {1}, s[K], p[K], q[K];
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < K; k++)
            s[k] = 0.5 * test_normal(&seed);
        const svs_calibration law = svi_calibrator_law(c, K), truth = {3, bonus, NULL};
        svi_probabilities(&law, s, K, p);
        svi_probabilities(&truth, s, K, q);
        double u = test_uniform(&seed);
        int y = 0;
        while (y < K - 1 && (u -= q[y]) > 0)
            y++;
        loss -= i >= FROM ? log(p[y]) / (N - FROM) : 0;
        best -= i >= FROM ? log(q[y]) / (N - FROM) : 0;
        svi_calibrator_learn(c, s, K, K, y, i % 2 ? p : NULL);
    }
    if (!(loss < best + 0.008))
        fail_msg("log loss %.4f, at best %.4f", loss, best);
    svi_calibrator_free(&c);
}

/* One positive in a hundred: over all of the stream, p ranks about as well as the score. */
static void rare_classes_keep_their_rank(void **unused) {
    (void)unused;
    enum { N = 30000, FROM = 500, BINS = 2000 };
    for (uint64_t trial = 0; trial < 3; trial++) {
        static double count[2][BINS][2];
        uint64_t seed = 70 + trial;
        double area[2] = {0};
        svi_calibrator *c = svi_calibrator_new(2, false, NULL);
        memset(count, 0, sizeof count);
        for (int i = 0; i < N; i++) {
            const int y = test_uniform(&seed) < 0.01;
            const double s = -0.98 + 0.05 * (test_normal(&seed) + 2.2 * y);
            double p[2];
            const svs_calibration law = svi_calibrator_law(c, 2);
            svi_probabilities(&law, &s, 1, p);
            const double z = log(p[1] / p[0]);
            if (i >= FROM) {
                count[0][(int)fmin(fmax((s + 1.3) * 2000, 0), BINS - 1)][y]++;
                count[1][(int)fmin(fmax((z + 15) * 80, 0), BINS - 1)][y]++;
            }
            svi_calibrator_learn(c, &s, 1, 2, y, p);
        }
        for (int w = 0; w < 2; w++) {
            double below = 0, positives = 0, pairs = 0;
            for (int b = 0; b < BINS; b++) {
                pairs += count[w][b][1] * (below + count[w][b][0] / 2);
                below += count[w][b][0];
                positives += count[w][b][1];
            }
            area[w] = pairs / below / positives;
        }
        if (!(area[1] > area[0] - 0.006))
            fail_msg("area under the curve %.4f by p, %.4f by the score", area[1], area[0]);
        svi_calibrator_free(&c);
    }
}

/* ---- kept */

static void archive_calibrator(struct svi_archive *a, void *c) {
    svi_calibrator_archive(a, c);
}

/* One of capacity for all classes, and one that is now of it and now grows: the archive is the same. */
static void goes_on(void **unused) {
    (void)unused;
    uint64_t seed = 9;
    svs_error err;
    struct svi_bytes one = {0}, other = {0};
    svi_calibrator *a = svi_calibrator_new(5, false, NULL), *b = svi_calibrator_new(5, true, NULL);
    for (int t = 0; t < 900; t++) {
        const int count = t < 300 ? 2 : t < 500 ? 3 : 5, rows = count < 3 ? 1 : count;
        double scores[5];
        for (int k = 0; k < 5; k++)
            scores[k] = wild(&seed);
        const int truth = (int)(test_random(&seed) % (unsigned)count);
        if (test_random(&seed) % 11 == 0) {
            assert_int_equal(archived_save(archive_calibrator, b, &one, &err), SVS_OK);
            svi_calibrator_free(&b);
            b = svi_calibrator_new(5, test_random(&seed) % 2, NULL);
            assert_int_equal(archived_load(archive_calibrator, b, one.data, one.size, &err), SVS_OK);
        }
        assert_int_equal(svi_calibrator_reserve(b, count, &err), SVS_OK); /* of no use to a whole one */
        svi_calibrator_learn(a, scores, rows, count, truth, NULL);
        svi_calibrator_learn(b, scores, rows, count, truth, NULL);
    }
    archived_save(archive_calibrator, a, &one, &err);
    archived_save(archive_calibrator, b, &other, &err);
    assert_true(archived_same(&one, &other));
    for (int k = 0; k < 300; k++) { /* damage is refused, or gives one that still works */
        uint8_t *bad = memcpy(malloc(one.size), one.data, one.size);
        for (int i = 0; i < 3; i++)
            bad[test_random(&seed) % one.size] ^= (uint8_t)(1u << test_random(&seed) % 8);
        svi_calibrator_free(&b);
        b = svi_calibrator_new(5, false, NULL);
        const svs_code code = archived_load(archive_calibrator, b, bad, one.size, &err);
        assert_true(code == SVS_OK || code == SVS_DAMAGED);
        free(bad);
    }
    svi_calibrator_reset(a);
    svi_calibrator_free(&b);
    b = svi_calibrator_new(5, false, NULL);
    archived_save(archive_calibrator, a, &one, &err);
    archived_save(archive_calibrator, b, &other, &err);
    assert_true(archived_same(&one, &other));
    svi_calibrator_free(&a);
    svi_calibrator_free(&b);
    svi_bytes_clear(&one);
    svi_bytes_clear(&other);
}

/* ---- many scores at once */

static void fit_finds_the_law(void **unused) {
    (void)unused;
    enum { N = 20000, K = 3 };
    static double scores[N * K];
    static int32_t label[N];
    const double bonus[K] = {0.6, 0, -0.6};
    uint64_t seed = 4;
    double a, b[K], p[K];
    for (int i = 0; i < N; i++) {
        scores[i] = -0.5 + test_normal(&seed);
        label[i] = test_uniform(&seed) < sigmoid(3 * scores[i] + 1);
    }
    assert_int_equal(svi_calibrator_fit(scores, label, N, 1, 2, &a, b, NULL), SVS_OK);
    if (fabs(a - 3) > 0.15 || fabs(b[0] - 1) > 0.1)
        fail_msg("a %g b %g", a, b[0]);
    for (int i = 0; i < N; i++) {
        const svs_calibration truth = {2, bonus, NULL};
        for (int k = 0; k < K; k++)
            scores[i * K + k] = test_normal(&seed);
        svi_probabilities(&truth, &scores[i * K], K, p);
        double u = test_uniform(&seed);
        label[i] = 0;
        while (label[i] < K - 1 && (u -= p[label[i]]) > 0)
            label[i]++;
    }
    assert_int_equal(svi_calibrator_fit(scores, label, N, K, K, &a, b, NULL), SVS_OK);
    if (fabs(a - 2) > 0.1 || fabs(b[0] - 0.6) > 0.1 || fabs(b[2] + 0.6) > 0.1)
        fail_msg("a %g b %g %g %g", a, b[0], b[1], b[2]);
}

/* Separable scores have a finite slope; scores that are upside down have none. */
static void fit_of_extremes(void **unused) {
    (void)unused;
    double scores[40], a, b;
    int32_t label[40];
    svs_error err = {0};
    for (int i = 0; i < 40; i++) {
        scores[i] = i - 19.5;
        label[i] = i > 19;
    }
    assert_int_equal(svi_calibrator_fit(scores, label, 40, 1, 2, &a, &b, &err), SVS_OK);
    assert_true(a > 0.1 && a < 100 && fabs(b) < 1);
    for (int i = 0; i < 40; i++)
        label[i] = i < 20;
    assert_int_equal(svi_calibrator_fit(scores, label, 40, 1, 2, &a, &b, &err), SVS_UNAVAILABLE);
    assert_non_null(strstr(err.text, "do not separate the classes"));
}

/* Samples that wait for others, settled at any time, against those that are judged one by one by what the law
 * says of them. */
static void late_is_the_same(void **unused) {
    (void)unused;
    uint64_t seed = 31;
    svs_error err;
    struct svi_figure one[SVI_RELIABILITY_FIGURES], other[SVI_RELIABILITY_FIGURES];
    svi_calibrator *a = svi_calibrator_new(2, false, NULL), *b = svi_calibrator_new(2, false, NULL);
    svi_reliability *late = svi_reliability_new(50, &err), *now = svi_reliability_new(50, &err);
    for (int t = 0; t < 2000; t++) {
        const double score = wild(&seed);
        const int truth = test_uniform(&seed) < 0.3;
        double p[2];
        svi_calibrator_probabilities(a, &score, 1, 2, p);
        svi_reliability_add(now, p, 2, truth);
        svi_calibrator_learn(a, &score, 1, 2, truth, NULL);
        svi_calibrator_learn_pair(b, score, truth, late);
        if (test_random(&seed) % 5)
            continue;
        svi_calibrator_settle(b);
        svi_reliability_figures(now, one);
        svi_reliability_figures(late, other);
        for (int i = 0; i < SVI_RELIABILITY_FIGURES; i++)
            assert_memory_equal(&one[i].as.number, &other[i].as.number, sizeof(double));
    }
    svi_reliability_free(&late);
    svi_reliability_free(&now);
    svi_calibrator_free(&a);
    svi_calibrator_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(place_is_that_of_the_definition),
        cmocka_unit_test(any_stream),
        cmocka_unit_test(laws_are_found),
        cmocka_unit_test(laws_of_more_classes_are_found),
        cmocka_unit_test(rare_classes_keep_their_rank),
        cmocka_unit_test(goes_on),
        cmocka_unit_test(late_is_the_same),
        cmocka_unit_test(fit_finds_the_law),
        cmocka_unit_test(fit_of_extremes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
