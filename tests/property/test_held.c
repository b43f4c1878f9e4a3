/* What a learner says of the samples that it holds: the span of their numbers, the newest row, the means of
 * features; against a list kept beside it, over random walks, kept and taken back. */
#include "support/problem.h"

#include "learner/learner_archive.h"
#include "learner/learner_held.h"
#include "learner/learner_internal.h"
#include "learner/learner_prune.h"
#include "support/archived.h"
#include "support/ring.h"

enum { D = 5, WINDOW = 50 };

struct walk {
    svs_learner *l;
    svs_options o;
    uint64_t seed;
    int number, d;
    double x[D];
};

static void archive_learner(struct svi_archive *a, void *l) {
    svi_learner_archive(a, l);
}

static void check_ring(const struct svi_ring *r, int64_t entered, int64_t oldest) {
    int64_t first = r->pushed;
    for (int32_t i = r->count - 1; i >= 0; i--)
        if (svi_ring_live(r, svi_ring_at(r, i)))
            first = svi_ring_number(r, svi_ring_at(r, i));
    assert_int_equal(entered, r->pushed);
    assert_int_equal(oldest, first);
    assert_null(ring_check(r));
}

static void check_span(const struct walk *w) {
    struct svi_learner_span span;
    const double *newest = svi_learner_newest(w->l), *row = NULL;
    svi_learner_span(w->l, &span);
    check_ring(&w->l->window, span.window, span.window_oldest);
    check_ring(&w->l->waiting, span.waiting, span.waiting_oldest);
    for (int32_t i = 0; i < w->l->window.count; i++) {
        const int32_t slot = svi_ring_at(&w->l->window, i);
        if (svi_ring_live(&w->l->window, slot))
            row = svi_ring_row(&w->l->window, slot);
    }
    assert_ptr_equal(newest, row);
}

/* The learner again, as it was kept; numbers too. */
static void reload(struct walk *w) {
    struct svi_bytes kept = {0}, again = {0};
    struct svi_learner_span before, after;
    svs_error err;
    svs_learner *l = svs_learner_new(&w->o, 0, NULL);
    svi_learner_span(w->l, &before);
    assert_int_equal(archived_save(archive_learner, w->l, &kept, &err), SVS_OK);
    if (archived_load(archive_learner, l, kept.data, kept.size, &err) != SVS_OK)
        fail_msg("%s", err.text);
    svi_learner_span(l, &after);
    assert_memory_equal(&before, &after, sizeof before);
    assert_int_equal(archived_save(archive_learner, l, &again, &err), SVS_OK);
    assert_true(archived_same(&kept, &again));
    svs_learner_free(&w->l);
    w->l = l;
    svi_bytes_clear(&kept);
    svi_bytes_clear(&again);
}

static void act(struct walk *w) {
    const uint64_t what = test_random(&w->seed) % 100;
    const svs_value y = svs_int((int64_t)(test_random(&w->seed) % 3));
    const svs_value id = svs_int((int64_t)(test_random(&w->seed) % 70));
    svs_step out;
    for (int j = 0; j < D; j++)
        w->x[j] = test_random(&w->seed) % 3 ? test_normal(&w->seed) * pow(10, 3 * j) : 0;
    if (test_random(&w->seed) % 40 == 0)
        w->x[1] = 1e100 * test_normal(&w->seed) / 10;
    w->number += test_random(&w->seed) % 100 == 0 ? 30 : 1;
    if (w->d < D && what == 0)
        assert_int_equal(svs_learner_grow(w->l, ++w->d, NULL), SVS_OK);
    const svs_sample s = {.x = w->x, .d = w->d, .id = id, .y = what < 60 ? y : svs_none(), .weight = 1};
    if (what < 75) {
        const svs_code code = svs_learner_step(w->l, &s, w->number, &out, NULL);
        assert_true(code == SVS_OK || code == SVS_TOO_LARGE);
    } else if (what < 88) {
        svs_learner_label(w->l, id, y, w->number, &out, NULL);
    } else if (what < 99) {
        svs_learner_forget(w->l, id, w->number, NULL, NULL);
    } else if (test_random(&w->seed) % 4 == 0) {
        svs_learner_reset(w->l);
    }
}

static struct walk open_walk(int kind) {
    struct walk w = {.seed = 50 + (uint64_t)kind, .d = 2};
    svs_options_default(&w.o);
    w.o.window = WINDOW;
    w.o.labels_max = 10;
    w.o.window_seconds = kind % 3 == 1 ? 40 : 0;
    w.o.rule = kind % 3 == 2 ? SVS_FALSVM : SVS_ALSVM;
    w.o.forget = kind % 2 ? 0.99 : 1;
    assert_non_null(w.l = svs_learner_new(&w.o, w.d, NULL));
    svs_learner_unscaled(w.l, 1); /* with categories it matters what is held: numbers are kept */
    return w;
}

static void test_span(void **unused) {
    (void)unused;
    for (int kind = 0; kind < 6; kind++) {
        struct walk w = open_walk(kind);
        bool squeezed = false;
        for (int i = 0; i < 2000; i++) {
            act(&w);
            check_span(&w);
            squeezed |= svi_ring_squeezed(&w.l->waiting);
            if (i % 100 == 99)
                reload(&w);
        }
        assert_true(squeezed);
        svs_learner_free(&w.l);
    }
}

/* By plain summation in long double: good to 1e-12 of the largest value held only when taken over the rows of
 * now. */
static double plain_mean(const struct walk *w, int feature, double *largest) {
    long double sum = 0, lost = 0;
    int64_t n = 0;
    *largest = 0;
    for (int32_t i = 0; i < w->l->window.count; i++) {
        const int32_t slot = svi_ring_at(&w->l->window, i);
        if (!svi_ring_live(&w->l->window, slot))
            continue;
        const long double x = svi_ring_row(&w->l->window, slot)[feature], now = sum + x;
        lost += fabsl(sum) > fabsl(x) ? (sum - now) + x : (x - now) + sum;
        sum = now;
        *largest = fmax(*largest, (double)fabsl(x));
        n++;
    }
    return n ? (double)((sum + lost) / n) : 0;
}

static void check_means(struct walk *w, int asked) {
    for (int j = 0; j < asked && j < w->d; j++) {
        double largest;
        const double stated = plain_mean(w, j, &largest), mean = svi_learner_mean(w->l, j);
        assert_true(fabs(mean - stated) <= 1e-15 * largest);
    }
}

static void test_means(void **unused) {
    (void)unused;
    for (int kind = 0; kind < 6; kind++) {
        struct walk w = open_walk(kind);
        assert_true(svi_learner_mean(w.l, 0) == 0);
        for (int i = 0; i < 2000; i++) {
            act(&w);
            check_means(&w, i < 500 ? 1 : D);
            if (i % 200 != 199)
                continue;
            double before[D], after[D];
            for (int j = 0; j < D; j++)
                before[j] = svi_learner_mean(w.l, j);
            reload(&w);
            for (int j = 0; j < D; j++)
                after[j] = svi_learner_mean(w.l, j);
            assert_memory_equal(before, after, sizeof before);
            if (i == 1399) {
                const bool features[D] = {true, true, true, false, true}, classes[] = {true, true, true};
                assert_int_equal(svi_learner_prune(w.l, features, classes, NULL), SVS_OK);
                w.d--;
            }
        }
        assert_true(svi_learner_mean(w.l, D) == 0 && svi_learner_mean(w.l, -1) == 0);
        svs_learner_free(&w.l);
    }
}

/* Without a window by the weights, which fade. */
static void test_means_of_sums(void **unused) {
    (void)unused;
    struct walk w = {.seed = 3, .d = 2};
    long double sum[2] = {0}, total = 0;
    svs_step out;
    svs_options_default(&w.o);
    w.o.window = 0;
    w.o.forget = 0.99;
    w.l = svs_learner_new(&w.o, 2, NULL);
    assert_true(svi_learner_mean(w.l, 0) == 0);
    for (int i = 0; i < 2000; i++) {
        const double x[] = {test_normal(&w.seed), 1e6 + test_normal(&w.seed)},
                     weight = 0.5 + test_uniform(&w.seed);
        const svs_sample s = {.x = x, .d = 2, .id = svs_none(), .y = svs_int(i % 2), .weight = weight};
        assert_int_equal(svs_learner_step(w.l, &s, i, &out, NULL), SVS_OK);
        total = 0.99L * total + weight;
        for (int j = 0; j < 2; j++) {
            sum[j] = 0.99L * sum[j] + weight * x[j];
            assert_true(fabsl(svi_learner_mean(w.l, j) - sum[j] / total) < (j ? 1e-6L : 1e-10L));
        }
    }
    svs_learner_free(&w.l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_means),
        cmocka_unit_test(test_means_of_sums),
        cmocka_unit_test(test_span),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
