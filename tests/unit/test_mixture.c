/* The last layer of a bank (bank/mixture.h) and its logistic stacks: a stack finds the coefficients of a fit
 * to all samples at once, the log loss stays near the base rate's where a class is rare, nothing grows
 * without bound, and the archive goes on bit for bit. */
#include "reference.h"
#include "support/archived.h"
#include "support/problem.h"
#include "support/quick.h"

#include "bank/mixture.h"

enum { MEMBERS = 5, CLASSES = 4, MOST_ROWS = 40000 };

static double logistic(double z) {
    return 1 / (1 + exp(-z));
}

static int draw(const double *p, int classes, uint64_t *seed) {
    double u = ref_uniform(seed);
    int k = 0;
    while (k + 1 < classes && (u -= p[k]) >= 0)
        k++;
    return k;
}

/* ---- one logistic stack */

static svi_logistic *stack_new(int rows, double keep) {
    const struct svi_logistic_options o = {
        .members = MEMBERS, .rows_max = rows, .count = 1, .keep = {keep}, .ridge = 10};
    svi_logistic *l = svi_logistic_new(&o, NULL);
    assert_non_null(l);
    return l;
}

/* Members' scores of mean 0 and deviation 1, correlated. */
static void stack_scores(double *s, uint64_t *seed) {
    const double shared = test_normal(seed);
    for (int j = 0; j < MEMBERS; j++)
        s[j] = 0.8 * test_normal(seed) + 0.6 * shared;
}

/* Gradient descent to the minimum of the log loss over all rows: classes 2 with one row each, or more. */
static void fit_at_once(const double *x, const int *y, int n, int classes, double *w) {
    enum { STEPS = 400 };
    const int rows = classes > 2 ? classes : 1;
    memset(w, 0, (MEMBERS + 1) * sizeof *w);
    for (int step = 0; step < STEPS; step++) {
        double g[MEMBERS + 1] = {0};
        for (int i = 0; i < n; i++) {
            const double *s = x + (size_t)i * (size_t)(rows * MEMBERS);
            double p[CLASSES], sum = 0;
            for (int r = 0; r < rows; r++) {
                double z = rows == 1 ? w[MEMBERS] : 0;
                for (int j = 0; j < MEMBERS; j++)
                    z += w[j] * s[r * MEMBERS + j];
                p[r] = rows == 1 ? logistic(z) : exp(z);
                sum += p[r];
            }
            for (int r = 0; r < rows; r++) {
                const double e = rows == 1 ? p[0] - (y[i] == 1) : p[r] / sum - (y[i] == r);
                for (int j = 0; j < MEMBERS; j++)
                    g[j] += e * s[r * MEMBERS + j];
                g[MEMBERS] += rows == 1 ? e : 0;
            }
        }
        for (int j = 0; j <= MEMBERS; j++)
            w[j] -= 2 * g[j] / n;
    }
}

static void a_stack_finds_what_a_fit_to_all_rows_finds(void **unused) {
    (void)unused;
    enum { N = 12000 };
    static const double truth[MEMBERS] = {1.0, -0.5, 0.3, 0, 0.8};
    static double x[N * CLASSES * MEMBERS];
    static int y[N];
    for (int classes = 2; classes <= CLASSES; classes += 2) {
        const int rows = classes > 2 ? classes : 1;
        svi_logistic *l = stack_new(rows, 1);
        uint64_t seed = 5;
        double fit[MEMBERS + 1];
        for (int i = 0; i < N; i++) {
            double *s = x + (size_t)i * (size_t)(rows * MEMBERS), p[CLASSES], z[CLASSES];
            double sum = 0;
            for (int r = 0; r < rows; r++) {
                stack_scores(s + r * MEMBERS, &seed);
                z[r] = rows == 1 ? -1 : 0;
                for (int j = 0; j < MEMBERS; j++)
                    z[r] += truth[j] * s[r * MEMBERS + j];
                sum += p[r] = exp(z[r]);
            }
            if (rows == 1) {
                p[1] = logistic(z[0]);
                p[0] = 1 - p[1];
                sum = 1;
            }
            for (int k = 0; k < classes; k++)
                p[k] /= sum;
            y[i] = draw(p, classes, &seed);
            svi_logistic_row(l, s, rows);
            svi_logistic_score(l, 0, z);
            sum = 0;
            for (int r = 0; r < rows; r++)
                sum += p[r] = exp(z[r]);
            if (rows == 1) {
                p[1] = logistic(z[0]);
                p[0] = 1 - p[1];
                sum = 1;
            }
            for (int k = 0; k < classes; k++)
                p[k] /= sum;
            svi_logistic_learn(l, 0, p, y[i], 1);
            svi_logistic_end(l);
        }
        fit_at_once(x, y, N, classes, fit);
        for (int j = 0; j < MEMBERS; j++) {
            const double own = svi_logistic_weights(l, 0)[j] * svi_logistic_scales(l)[j];
            if (!(fabs(own - fit[j]) < 0.08))
                fail_msg("%d classes: weight %d is %g, not %g", classes, j, own, fit[j]);
        }
        svi_logistic_free(&l);
    }
}

/* ---- the mixture */

struct stream {
    svi_mixture *m;
    uint64_t seed;
    double loss,
        base; /* sums of log losses: of the mixture, and of the share of each class known from the start */
    int rows;
};

static svi_mixture *mixture_new(void) {
    const struct svi_mixture_options o = {.members = MEMBERS, .max_classes = CLASSES};
    svi_mixture *m = svi_mixture_new(&o, NULL);
    assert_non_null(m);
    return m;
}

/* A row of a class of this share: members whose log odds move by `signal` with it. A combination that knows
 * nothing says `wrong`. */
static void rare_row(struct stream *t, double share, double signal, double wrong, bool counted) {
    const int y = ref_uniform(&t->seed) < share;
    const double base = log(share / (1 - share)), combined[] = {1 - wrong, wrong};
    double s[MEMBERS], p[2];
    for (int j = 0; j < MEMBERS; j++)
        s[j] = base + test_normal(&t->seed) + (y ? signal : 0);
    svi_mixture_score(t->m, s, combined, 2, p);
    assert_true(p[0] > 0 && p[1] > 0 && fabs(p[0] + p[1] - 1) < 1e-9);
    t->loss -= counted ? log(p[y]) : 0;
    t->base -= counted ? log(y ? share : 1 - share) : 0;
    svi_mixture_learn(t->m, y, svi_mixture_weigh(t->m, 1));
    double sum = 0;
    for (int i = 0; i < SVI_MIXTURE_EXPERTS; i++)
        sum += svi_mixture_shares(t->m)->w[i];
    assert_true(fabs(sum - 1) < 1e-9);
}

static void the_log_loss_stays_at_the_base_rate_or_below(void **unused) {
    (void)unused;
    static const double shares[] = {0.01, 0.001};
    for (int i = 0; i < 2; i++)
        for (int known = 0; known < 2; known++) {
            struct stream t = {.m = mixture_new(), .seed = 11 + (uint64_t)i};
            for (int row = 0; row < MOST_ROWS; row++)
                rare_row(&t, shares[i], known ? 1.5 : 0, 0.3, row >= 2000);
            /* 40 nats for what 5 experts and a running rate have to learn. */
            if (!(t.loss < t.base + 40))
                fail_msg("share %g: %g is above %g", shares[i], t.loss, t.base);
            if (known && i == 0 && !(t.loss < 0.8 * t.base))
                fail_msg("what the members know is lost: %g of %g", t.loss, t.base);
            svi_mixture_free(&t.m);
        }
}

static void weights_decide_for_the_heavy_class(void **unused) {
    (void)unused;
    struct stream t = {.m = mixture_new(), .seed = 3};
    int found = 0, rare = 0;
    for (int row = 0; row < 20000; row++) {
        const int y = ref_uniform(&t.seed) < 0.01;
        const double combined[] = {0.99, 0.01};
        double s[MEMBERS], p[2];
        for (int j = 0; j < MEMBERS; j++)
            s[j] = -4.6 + test_normal(&t.seed) + (y ? 1.5 : 0);
        svi_mixture_score(t.m, s, combined, 2, p);
        rare += y && row > 4000;
        found += y && row > 4000 && p[1] > p[0];
        svi_mixture_learn(t.m, y, svi_mixture_weigh(t.m, y ? 50 : 0.5));
    }
    /* Five members 1.5 deviations apart: 95 of 100 at equal shares, hardly any by the true ones. */
    if (!(found > 0.85 * rare))
        fail_msg("%d of %d found", found, rare);
    svi_mixture_free(&t.m);
}

/* Rows of every kind: members silent or wild, a third class from the middle on. */
static void wild_row(struct stream *t) {
    const int classes = t->rows++ < 600 ? 2 : t->rows < 1500 ? 3 : CLASSES, rows = classes > 2 ? classes : 1;
    double s[CLASSES * MEMBERS], combined[CLASSES], p[CLASSES], sum = 0, of = 0;
    for (int j = 0; j < rows * MEMBERS; j++) {
        const double u = ref_uniform(&t->seed);
        s[j] = u < 0.02           ? NAN
               : u < 0.03         ? 1e300
               : u < 0.04         ? -INFINITY
               : j % MEMBERS == 3 ? 1
                                  : test_normal(&t->seed);
    }
    for (int k = 0; k < classes; k++)
        of += combined[k] = 1e-6 + ref_uniform(&t->seed);
    for (int k = 0; k < classes; k++)
        combined[k] /= of;
    svi_mixture_score(t->m, s, combined, classes, p);
    for (int k = 0; k < classes; k++) {
        assert_true(isfinite(p[k]) && p[k] > 0);
        sum += p[k];
    }
    assert_true(fabs(sum - 1) < 1e-9);
    const int truth = (int)(ref_uniform(&t->seed) * classes);
    const double weight = pow(10, 16 * ref_uniform(&t->seed) - 8);
    svi_mixture_learn(t->m, truth < classes ? truth : 0, svi_mixture_weigh(t->m, weight));
    if (t->rows % 100 == 0)
        svi_mixture_count(t->m, CLASSES - 1, 1);
}

static void nothing_is_lost_on_a_walk(void **unused) {
    (void)unused;
    struct stream t = {.m = mixture_new(), .seed = 9};
    const int rows = often(1000000, 20000);
    for (int i = 0; i < rows; i++)
        wild_row(&t);
    for (int i = 0; i < SVI_MIXTURE_STACKS; i++)
        for (int j = 0; j <= MEMBERS; j++)
            assert_true(isfinite(svi_logistic_weights(svi_mixture_logistic(t.m), i)[j]));
    svi_mixture_free(&t.m);
}

static void mixture_archived(struct svi_archive *a, void *m) {
    svi_mixture_archive(a, m);
}

static void the_archive_goes_on_bit_for_bit(void **unused) {
    (void)unused;
    struct stream a = {.m = mixture_new(), .seed = 4}, b = a;
    struct svi_bytes one = {0}, other = {0};
    svs_error err;
    b.m = mixture_new();
    for (int i = 0; i < 2000; i++) {
        wild_row(&a);
        if (i % 97 == 0) {
            b.seed = a.seed;
            b.rows = a.rows;
            assert_int_equal(archived_save(mixture_archived, a.m, &one, &err), SVS_OK);
            svi_mixture_free(&b.m);
            b.m = mixture_new();
            assert_int_equal(archived_load(mixture_archived, b.m, one.data, one.size, &err), SVS_OK);
        } else if (i > 0) {
            wild_row(&b);
        }
        assert_int_equal(archived_save(mixture_archived, a.m, &one, &err), SVS_OK);
        assert_int_equal(archived_save(mixture_archived, b.m, &other, &err), SVS_OK);
        assert_true(archived_same(&one, &other));
    }
    /* As new after a reset, whatever was learned. */
    svi_mixture_reset(a.m);
    svi_mixture_free(&b.m);
    b.m = mixture_new();
    assert_int_equal(archived_save(mixture_archived, a.m, &one, &err), SVS_OK);
    assert_int_equal(archived_save(mixture_archived, b.m, &other, &err), SVS_OK);
    assert_true(archived_same(&one, &other));
    svi_bytes_clear(&one);
    svi_bytes_clear(&other);
    svi_mixture_free(&a.m);
    svi_mixture_free(&b.m);
}

/* Every byte in turn: refused, or a mixture that goes on within its bounds. */
static void a_mangled_archive_is_refused_or_sound(void **unused) {
    (void)unused;
    struct stream t = {.m = mixture_new(), .seed = 8};
    struct svi_bytes bytes = {0};
    svs_error err;
    int refused = 0;
    for (int i = 0; i < 1000; i++)
        wild_row(&t);
    assert_int_equal(archived_save(mixture_archived, t.m, &bytes, &err), SVS_OK);
    svi_mixture_free(&t.m);
    for (size_t at = 0; at < bytes.size; at += 3) {
        struct stream m = {.m = mixture_new(), .seed = 8, .rows = 1000};
        bytes.data[at] ^= 0xff;
        if (archived_load(mixture_archived, m.m, bytes.data, bytes.size, &err) != SVS_OK) {
            refused++;
            assert_true(err.text[0] != 0);
        }
        bytes.data[at] ^= 0xff;
        svi_mixture_free(&m.m);
    }
    assert_true(refused > 0);
    svi_bytes_clear(&bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stack_finds_what_a_fit_to_all_rows_finds),
        cmocka_unit_test(the_log_loss_stays_at_the_base_rate_or_below),
        cmocka_unit_test(weights_decide_for_the_heavy_class),
        cmocka_unit_test(nothing_is_lost_on_a_walk),
        cmocka_unit_test(the_archive_goes_on_bit_for_bit),
        cmocka_unit_test(a_mangled_archive_is_refused_or_sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
