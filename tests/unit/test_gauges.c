/* Figures that the server measures: buckets of the latency, and the smallest p of the last seconds. */
#include "support/engine.h"

#include "base/random.h"
#include "server/gauges.h"

static double random_unit(struct svi_random *r) {
    return svi_random_below(r, 1000000) / 1e6;
}

static void test_buckets(void **unused) {
    (void)unused;
    static const double bounds[] = {SVI_LATENCY_BOUNDS};
    struct svi_random random = {4};
    struct svi_latency_buckets b = {0};
    int64_t within[SVI_LATENCY_BUCKETS] = {0}, all = 0;
    double sum = 0;
    for (int i = 0; i < 5000; i++) {
        /* A time on a bound belongs below it. */
        const double seconds =
            i % 3 == 0 ? bounds[i % (SVI_LATENCY_BUCKETS - 1)] : 1e-6 * exp(18 * random_unit(&random));
        const int64_t messages = (int64_t)svi_random_below(&random, 4);
        svi_latency_bucket(&b, seconds, messages);
        for (int k = 0; k < SVI_LATENCY_BUCKETS - 1; k++)
            within[k] += seconds <= bounds[k] ? messages : 0;
        all += messages;
        sum += seconds * (double)messages;
    }
    within[SVI_LATENCY_BUCKETS - 1] = all;
    int64_t so_far = 0;
    for (int k = 0; k < SVI_LATENCY_BUCKETS; k++) {
        so_far += b.counts[k];
        assert_int_equal(so_far, within[k]);
        assert_true(k == 0 || k == SVI_LATENCY_BUCKETS - 1 || bounds[k] > bounds[k - 1]);
    }
    assert_true(fabs(b.sum - sum) <= 1e-9 * sum);
    struct svi_bytes packed = {0};
    assert_int_equal(svi_latency_pack(&b, &packed), SVS_OK);
    assert_true(packed.size > 100);
    svi_bytes_clear(&packed);
}

static double gauge(svi_stream *s, const char *name) {
    const struct svi_figure *f;
    const int count = svi_stream_figures(s, NULL, 0, &f);
    assert_non_null(svi_figure_find(f, count, name));
    return svi_figure_value(f, count, name);
}

static void note(struct svi_gauges *g, double p) {
    struct svi_event e = {.topic = SVI_TOPIC_SCORE};
    e.as.score.judged = !isnan(p);
    e.as.score.p = p;
    svi_gauges_event(g, &e);
}

/* A random walk: a reader at any time gets the smallest p of at least the last two seconds, and of no
 * more than three; reading changes nothing; stats get that of all since the previous stats. */
static void test_smallest(void **unused) {
    (void)unused;
    enum { STEPS = 3000 };
    struct speaker f;
    struct svi_gauges g;
    struct svi_random random = {6};
    static double at[STEPS], p[STEPS];
    double now = 100, stats_at = now;
    speaker_open(&f, NULL);
    svi_gauges_begin(&g, f.e, now);
    svi_gauges_set(&g, f.e, now, false);
    assert_true(isnan(gauge(f.e, "smallest_p")));
    assert_true(isnan(gauge(f.e, "idle")));
    for (int i = 0; i < STEPS; i++) {
        now += svi_random_below(&random, 50) == 0 ? 4 : 0.3 * random_unit(&random);
        svi_gauges_turn(&g, f.e, now);
        at[i] = now;
        p[i] = svi_random_below(&random, 3) == 0 ? NAN : random_unit(&random);
        note(&g, p[i]);
        const bool stats = svi_random_below(&random, 20) == 0;
        double two = INFINITY, three = INFINITY, all = INFINITY;
        for (int k = 0; k <= i; k++) {
            two = at[k] >= now - 2 ? fmin(two, p[k]) : two;
            three = at[k] >= now - 3 ? fmin(three, p[k]) : three;
            all = at[k] >= stats_at ? fmin(all, p[k]) : all;
        }
        for (int reader = 0; reader < 3; reader++) {
            svi_gauges_set(&g, f.e, now, false);
            const double got = gauge(f.e, "smallest_p");
            assert_true(isnan(got) ? isinf(two) : got <= two && got >= three);
        }
        if (stats) {
            svi_gauges_set(&g, f.e, now, true);
            const double got = gauge(f.e, "smallest_p");
            assert_true(isnan(got) ? isinf(all) : got <= all && got >= fmin(all, three));
            stats_at = nextafter(now, INFINITY);
        }
    }
    svi_gauges_clear(&g);
    speaker_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_buckets), cmocka_unit_test(test_smallest)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
