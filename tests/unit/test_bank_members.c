/* Members of a bank that can be held against something exact: windows against learners of their own that get
 * the same calls, samples that are taken back against those that never came, least squares on many features
 * against a fresh solve. */
#include "reference.h"
#include "support/archived.h"
#include "support/problem.h"
#include "support/quick.h"

#include "bank/fourier_ridge.h"
#include "bank/windows.h"
#include "learner/learner_held.h"

enum { D = 5 };

/* ---- windows */

static const struct svi_window_kind kinds[] = {
    {20, SVS_ALSVM, 1}, {70, SVS_ALSVM, 1}, {0, SVS_ALSVM, 1}, {0, SVS_FALSVM, 1}};

static svs_options window_options(int i, svs_class_rule rule) {
    svs_options o;
    svs_options_default(&o);
    o.class_rule = rule;
    o.labels_ttl = 0;
    o.window = i < 0 ? 300 : kinds[i].window;
    o.rule = i < 0 ? SVS_ALSVM : kinds[i].rule;
    return o;
}

static void windows_archive(struct svi_archive *a, void *w) {
    svi_windows_archive(a, w);
}

static void assert_same_scores(struct svi_windows *w, svs_learner *const *own, const double *x, int rows) {
    double scores[4][8], expected[8];
    svi_windows_score(w, x, scores[0], 8, rows);
    for (int i = 0; i < 4; i++) {
        svs_learner_scores(own[i], x, expected);
        assert_memory_equal(scores[i], expected, (size_t)rows * sizeof expected[0]);
        assert_true(svs_learner_version(w->of[i]) == svs_learner_version(own[i]));
    }
}

static void windows_are_learners(svs_class_rule rule, uint64_t seed) {
    const svs_options host_options = window_options(-1, rule);
    svs_learner *host = svs_learner_new(&host_options, D, NULL), *own[4];
    struct svi_windows w;
    svs_step step;
    int classes = 0;
    assert_int_equal(svi_windows_init(&w, &host_options, kinds, 4, 15, D, NULL), SVS_OK);
    for (int i = 0; i < 4; i++) {
        const svs_options o = window_options(i, rule);
        assert_non_null(own[i] = svs_learner_new(&o, D, NULL));
        svi_learner_relax(own[i], true);
    }
    for (int t = 0; t < 400; t++) {
        double x[D + 1];
        const int d = D + (t > 200), k = (int)(ref_uniform(&seed) * (t > 100 ? 5 : 2));
        for (int j = 0; j < d; j++)
            x[j] = test_normal(&seed) + k * (j == 1);
        if (t == 201) {
            assert_int_equal(svi_windows_grow(&w, d, NULL), SVS_OK);
            assert_int_equal(svs_learner_grow(host, d, NULL), SVS_OK);
            for (int i = 0; i < 4; i++)
                assert_int_equal(svs_learner_grow(own[i], d, NULL), SVS_OK);
        }
        if (t == 150) { /* a new one goes on */
            struct svi_bytes bytes = {0};
            struct svi_windows again;
            svs_error err = {0};
            assert_int_equal(svi_windows_init(&again, &host_options, kinds, 4, 15, D, NULL), SVS_OK);
            assert_int_equal(archived_save(windows_archive, &w, &bytes, &err), SVS_OK);
            if (archived_load(windows_archive, &again, bytes.data, bytes.size, &err) != SVS_OK)
                fail_msg("%s", err.text);
            svi_windows_clear(&w);
            w = again;
            svi_bytes_clear(&bytes);
        }
        const svs_sample s = {x, d, svs_int(t % 30), svs_int(k), 0.5 + ref_uniform(&seed)};
        if (t % 9 == 8) {
            const svs_value id = svs_int((int)(ref_uniform(&seed) * 30));
            svi_windows_forget(&w, id, t);
            svs_learner_forget(host, id, t, NULL, NULL);
            for (int i = 0; i < 4; i++)
                svs_learner_forget(own[i], id, t, NULL, NULL);
        }
        if (t == 300)
            for (int i = -1; i < 4; i++)
                svs_learner_reset(i < 0 ? host : own[i]);
        if (t == 300)
            svi_windows_reset(&w);
        assert_int_equal(svs_learner_step(host, &s, t, &step, NULL), SVS_OK);
        assert_int_equal(svi_windows_learn(&w, host, &s, t, NULL), SVS_OK);
        for (int i = 0; i < 4; i++)
            assert_int_equal(svs_learner_step(own[i], &s, t, &step, NULL), SVS_OK);
        classes = svs_learner_class_count(host);
        assert_same_scores(&w, own, x, svs_learner_rows(host));
        const char *wrong = svi_windows_check(&w, host, rule == SVS_CLASSES_ALIKE ? 1e-9 : 1e-8);
        if (t % 20 == 0 && wrong)
            fail_msg("%s", wrong);
    }
    assert_int_equal(classes, 5);
    svi_windows_clear(&w);
    svs_learner_free(&host);
    for (int i = 0; i < 4; i++)
        svs_learner_free(&own[i]);
}

static void windows_are_learners_of_the_same_calls(void **unused) {
    (void)unused;
    windows_are_learners(SVS_CLASSES_ALIKE, 3);
    windows_are_learners(SVS_CLASSES_BALANCED, 4);
}

/* ---- taken back */

/* A learner without a window of `d` features that learned all of `count` rows, or those that stay. */
static svs_learner *learner_of_rows(int d, int count, bool leave, svs_learner *host, uint64_t seed) {
    svs_options o;
    svs_step step;
    svs_options_default(&o);
    o.window = 0;
    o.scale = SVS_SCALE_NONE; /* deviations would be those of what was there */
    svs_learner *l = svs_learner_new(&o, d, NULL);
    assert_non_null(l);
    double *x = calloc((size_t)d, sizeof *x);
    for (int i = 0; i < count; i++) {
        const int k = (int)(ref_uniform(&seed) * 3);
        for (int j = 0; j < d; j++)
            x[j] = test_normal(&seed) + (j == k);
        const svs_sample s = {x, d, svs_int(i), svs_int(k), 0.5 + ref_uniform(&seed)};
        if (host)
            assert_int_equal(svs_learner_step(host, &s, i, &step, NULL), SVS_OK);
        if (!leave || i % 7 != 3)
            assert_int_equal(svs_learner_step(l, &s, i, &step, NULL), SVS_OK);
    }
    free(x);
    return l;
}

static void take_back_one(void *l, const struct svi_held_sample *s) {
    svi_learner_take_back(l, s);
}

static void what_is_taken_back_was_never_there(void **unused) {
    (void)unused;
    for (int d = 4; d <= 120; d += 58) { /* sums of 96 coordinates and more go another way */
        svs_options o;
        svs_options_default(&o);
        svs_learner *host = svs_learner_new(&o, d, NULL), *all = learner_of_rows(d, 300, false, host, 5),
                    *without = learner_of_rows(d, 300, true, NULL, 5);
        double *x = calloc((size_t)d, sizeof *x), one[3], other[3];
        uint64_t seed = 8;
        for (int i = 3; i < 300; i += 7)
            svi_learner_each_held(host, svs_int(i), take_back_one, all);
        for (int i = 0; i < 10; i++) {
            for (int j = 0; j < d; j++)
                x[j] = test_normal(&seed);
            svs_learner_scores(all, x, one);
            svs_learner_scores(without, x, other);
            for (int k = 0; k < 3; k++)
                assert_true(fabs(one[k] - other[k]) < 1e-9);
        }
        free(x);
        svs_learner_free(&host);
        svs_learner_free(&all);
        svs_learner_free(&without);
    }
}

/* ---- least squares on many features */

enum { F = 11, MOST = 600 };

struct fit {
    float phi[MOST][F];
    int label[MOST];
    double target[MOST], weight[MOST];
    bool gone[MOST];
    int count;
};

static void fit_add(struct fit *f, int features, int classes, uint64_t *seed) {
    const int i = f->count++;
    f->label[i] = classes ? (int)(ref_uniform(seed) * classes) : -1;
    f->target[i] = 0;
    f->weight[i] = 0.1 + 2 * ref_uniform(seed);
    for (int j = 0; j < features; j++) {
        f->phi[i][j] = (float)test_normal(seed) + (float)(f->label[i] == j);
        f->target[i] += j * (double)f->phi[i][j];
    }
}

/* From the first `count` that are there, in long double. */
static double fit_distance(const struct fit *f, const struct svi_fourier_ridge *r, int count, int row) {
    enum { N = F + 1 };
    long double g[N * N] = {0}, s[N] = {0}, x[N];
    const int n = r->dim;
    for (int i = 0; i < count; i++) {
        double z[N] = {1};
        const int own = r->classes < 3 ? 1 : row;
        for (int j = 1; j < n; j++)
            z[j] = (double)f->phi[i][j - 1];
        if (!f->gone[i])
            ref_add(g, s, n, z, f->label[i] < 0 ? f->target[i] : f->label[i] == own ? 1 : -1, f->weight[i]);
    }
    for (int j = 0; j < n; j++)
        g[j * n + j] += 0.5L;
    ref_solve(g, s, n, x);
    return ref_distance(r->w + (size_t)row * (size_t)n, x, n);
}

static void fit_check(const struct fit *f, const struct svi_fourier_ridge *r, int count) {
    const int rows = r->task == SVS_REGRESS || r->classes < 3 ? 1 : r->classes;
    for (int k = 0; k < rows; k++)
        if (!(fit_distance(f, r, count, k) < 1e-9))
            fail_msg("row %d of %d after %d: %.2e", k, rows, count, fit_distance(f, r, count, k));
}

static void fit_archive(struct svi_archive *a, void *r) {
    svi_fourier_ridge_archive(a, r);
}

static void fit_take_up_again(struct svi_fourier_ridge *r, int features) {
    struct svi_bytes one = {0}, other = {0};
    struct svi_fourier_ridge again;
    svs_error err = {0};
    assert_int_equal(svi_fourier_ridge_init(&again, r->task, features, 6, SVS_ISA_BEST, NULL), SVS_OK);
    assert_int_equal(archived_save(fit_archive, r, &one, &err), SVS_OK);
    if (archived_load(fit_archive, &again, one.data, one.size, &err) != SVS_OK)
        fail_msg("%s", err.text);
    assert_int_equal(archived_save(fit_archive, &again, &other, &err), SVS_OK);
    assert_true(archived_same(&one, &other));
    svi_fourier_ridge_clear(r);
    *r = again;
    svi_bytes_clear(&one);
    svi_bytes_clear(&other);
}

static bool solves_at(int n) {
    return n == 16 || n == 32 || n == 64 || n == 128 || n % SVI_FOURIER_RIDGE_EVERY == 0;
}

static void least_squares(svs_task task, int most) {
    static struct fit f;
    struct svi_fourier_ridge r;
    uint64_t seed = 12 + (uint64_t)most;
    int features = F - 2;
    f = (struct fit){.count = 0};
    assert_int_equal(svi_fourier_ridge_init(&r, task, features, 6, SVS_ISA_BEST, NULL), SVS_OK);
    for (int n = 1; n <= 550; n++) {
        const int classes = task == SVS_REGRESS ? 0 : n < 200 || most < 3 ? 2 : most;
        if (n == 300) {
            features = F;
            assert_int_equal(svi_fourier_ridge_grow(&r, features, NULL), SVS_OK);
        }
        if (n == 140 || n == 400)
            fit_take_up_again(&r, features);
        fit_add(&f, features, classes, &seed);
        if (classes)
            svi_fourier_ridge_classes(&r, classes);
        svi_fourier_ridge_learn(&r, f.phi[n - 1], f.label[n - 1], f.target[n - 1], f.weight[n - 1]);
        if (solves_at(n))
            fit_check(&f, &r, n);
        if (n % 90 == 0) {
            const int i = n / 2;
            svi_fourier_ridge_take_back(&r, f.phi[i], f.label[i], f.target[i], f.weight[i]);
            f.gone[i] = true;
            fit_check(&f, &r, n);
        }
    }
    svi_fourier_ridge_forget_feature(&r, 2);
    for (int i = 0; i < f.count; i++)
        f.phi[i][2] = 0;
    svi_fourier_ridge_take_back(&r, f.phi[0], f.label[0], f.target[0], f.weight[0]);
    f.gone[0] = true;
    fit_check(&f, &r, f.count);
    svi_fourier_ridge_clear(&r);
}

static void least_squares_are_a_fresh_solve(void **unused) {
    (void)unused;
    least_squares(SVS_CLASSIFY, 2);
    least_squares(SVS_CLASSIFY, 5);
    least_squares(SVS_REGRESS, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_are_learners_of_the_same_calls),
        cmocka_unit_test(what_is_taken_back_was_never_there),
        cmocka_unit_test(least_squares_are_a_fresh_solve),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
