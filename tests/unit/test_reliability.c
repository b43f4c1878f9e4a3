/* The figures of probabilities against their definitions, from scratch on the stretch they speak of; and kept
 * and taken up at every phase of the window. */
#include "support/problem.h"
#include "support/archived.h"
#include "quality/reliability.h"

enum { STREAM = 900, K = 5 };

struct sample {
    int count, truth;
    double p[K];
};

static void expected(const struct sample *s, int from, int to, double *out) {
    double bins[15][2] = {{0}};
    const double n = to - from;
    out[0] = out[1] = out[2] = 0;
    for (int i = from; i < to; i++) {
        double loss = s[i].truth < s[i].count ? -log(s[i].p[s[i].truth]) : INFINITY, brier = 0;
        int top = 0;
        for (int k = 0; k < s[i].count; k++) {
            brier += pow(s[i].p[k] - (k == s[i].truth), 2);
            top = s[i].p[k] > s[i].p[top] ? k : top;
        }
        brier += s[i].truth >= s[i].count;
        if (s[i].count == 2) {
            top = 1;
            brier = pow(s[i].p[1] - (s[i].truth == 1), 2);
        }
        const int bin = (int)fmin(15 * s[i].p[top], 14);
        bins[bin][0] += top == s[i].truth;
        bins[bin][1] += s[i].p[top];
        out[0] += fmin(loss, -log(1e-15)) / n;
        out[1] += brier / n;
    }
    for (int b = 0; b < 15; b++)
        out[2] += fabs(bins[b][0] - bins[b][1]) / n;
}

static void assert_figures(const svi_reliability *r, const struct sample *s, int n, int window) {
    static const char *const names[] = {"logloss", "brier", "ece", "logloss.w", "brier.w", "ece.w"};
    struct svi_figure f[SVI_RELIABILITY_FIGURES];
    double want[6];
    svi_reliability_figures(r, f);
    expected(s, 0, n, want);
    expected(s, n > window ? n - window : 0, n, want + 3);
    for (int i = 0; i < 6; i++) {
        assert_string_equal(f[i].name, names[i]);
        if (!(fabs(f[i].as.number - want[i]) < 1e-6))
            fail_msg("%s is %.9g, not %.9g, after %d samples", names[i], f[i].as.number, want[i], n);
    }
}

static void archive_reliability(struct svi_archive *a, void *r) {
    svi_reliability_archive(a, r);
}

static void figures_are_their_definitions(void **unused) {
    (void)unused;
    static struct sample s[STREAM];
    static const int windows[] = {1, 7, 200, 2000};
    for (int w = 0; w < 4; w++) {
        uint64_t seed = 21 + (uint64_t)w;
        svs_error err;
        struct svi_bytes kept = {0};
        struct svi_figure f[SVI_RELIABILITY_FIGURES];
        svi_reliability *r = svi_reliability_new(windows[w], NULL);
        svi_reliability_figures(r, f);
        assert_true(isnan(f[0].as.number) && isnan(f[5].as.number));
        for (int t = 0; t < STREAM; t++) {
            double sum = 0;
            s[t].count = t < 400 ? 2 : 2 + t % 4;
            s[t].truth = (int)(test_random(&seed) % (unsigned)(s[t].count + (t % 50 == 0)));
            for (int k = 0; k < s[t].count; k++)
                sum += s[t].p[k] = pow(-log(test_uniform(&seed)), t % 10 == 0 ? 8 : 1);
            for (int k = 0; k < s[t].count; k++)
                s[t].p[k] = fmax(s[t].p[k] / sum, 1e-15);
            svi_reliability_add(r, s[t].p, s[t].count, s[t].truth);
            if (t % 37 == 0) {
                assert_figures(r, s, t + 1, windows[w]);
                assert_int_equal(archived_save(archive_reliability, r, &kept, &err), SVS_OK);
                svi_reliability_free(&r);
                r = svi_reliability_new(windows[w], NULL);
                assert_int_equal(archived_load(archive_reliability, r, kept.data, kept.size, &err), SVS_OK);
                assert_figures(r, s, t + 1, windows[w]);
            }
        }
        assert_figures(r, s, STREAM, windows[w]);
        svi_reliability_reset(r);
        svi_reliability_figures(r, f);
        assert_true(isnan(f[0].as.number) && isnan(f[5].as.number));
        svi_reliability_free(&r);
        svi_bytes_clear(&kept);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(figures_are_their_definitions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
