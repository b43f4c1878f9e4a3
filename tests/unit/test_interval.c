/* Intervals: their ends against a full sort of the residuals that count, and their coverage on residuals of
 * six laws. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "learner/learner_held.h"
#include "quality/interval.h"
#include "support/archived.h"
#include "support/quick.h"
#include "svmstream/learner.h"

static uint64_t state = 1;

static double uniform(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    uint64_t z = (state ^ state >> 33) * 0xff51afd7ed558ccdu;
    z ^= z >> 29;
    return ((double)(z >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void) {
    return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

static double gaussian(void) {
    return normal();
}

static double laplace(void) {
    return (uniform() < 0.5 ? -1 : 1) * -log(uniform());
}

static double student3(void) {
    const double z = normal(), a = normal(), b = normal(), c = normal();
    return z / sqrt((a * a + b * b + c * c) / 3);
}

static double flat(void) {
    return 2 * uniform() - 1;
}

static double log_normal(void) {
    return exp(normal());
}

static double mixture(void) {
    return uniform() < 0.8 ? normal() : 5 + 3 * normal();
}

static double (*const laws[])(void) = {gaussian, laplace, student3, flat, log_normal, mixture};

/* ---- the ends by definition */

struct mirror {
    double level, kept[4000];
    int count, until_next; /* a full ring takes every second one */
};

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int mirror_most(const struct mirror *m) {
    return m->level > 0.998 ? SVI_INTERVAL_MAX : SVI_INTERVAL_RESIDUALS;
}

static void mirror_drop(struct mirror *m, int most) {
    if (m->count <= most)
        return;
    memmove(m->kept, m->kept + m->count - most, (size_t)most * sizeof *m->kept);
    m->count = most;
}

static void mirror_add(struct mirror *m, double residual) {
    if (m->count == mirror_most(m)) {
        m->until_next = !m->until_next;
        if (m->until_next)
            return;
    }
    m->kept[m->count++] = residual;
    mirror_drop(m, mirror_most(m));
}

static void check_ends(const svi_interval *v, const struct mirror *m) {
    double sorted[4000], ends[2];
    memcpy(sorted, m->kept, (size_t)m->count * sizeof *sorted);
    qsort(sorted, (size_t)m->count, sizeof *sorted, ascending);
    const int outside = (int)((m->count + 1) * (1 - m->level) + 1e-9), below = outside / 2;
    const bool known = m->level > 0 && outside >= 2;
    assert_int_equal(svi_interval_ends(v, ends), known);
    if (!known)
        return;
    assert_true(ends[0] == sorted[below - 1]);
    assert_true(ends[1] == sorted[m->count - (outside - below)]);
}

static void archive_interval(struct svi_archive *a, void *object) {
    svi_interval_archive(a, object);
}

static svi_interval *interval_again(svi_interval *v, double level) {
    struct svi_bytes bytes = {0}, again = {0};
    svs_error err = {0};
    svi_interval *w = svi_interval_new(100, &err);
    assert_non_null(w);
    svi_interval_set_level(w, level);
    assert_int_equal(archived_save(archive_interval, v, &bytes, &err), SVS_OK);
    assert_int_equal(archived_load(archive_interval, w, bytes.data, bytes.size, &err), SVS_OK);
    assert_int_equal(archived_save(archive_interval, w, &again, &err), SVS_OK);
    assert_true(archived_same(&bytes, &again));
    for (size_t size = 0; size < bytes.size; size += 61) { /* truncated */
        svi_interval *x = svi_interval_new(100, &err);
        assert_int_not_equal(archived_load(archive_interval, x, bytes.data, size, &err), SVS_OK);
        svi_interval_free(&x);
    }
    svi_bytes_clear(&bytes);
    svi_bytes_clear(&again);
    svi_interval_free(&v);
    return w;
}

/* Values with ties, levels that change, resets, archives in between; coverage and width as they were counted
 * from the ends. */
static void test_ends_are_order_statistics(void **unused) {
    (void)unused;
    static struct mirror m;
    static const double levels[] = {0.9, 0.5, 0.99, 0, 0.999, 0.8, 0.998};
    const int rows = often(9000, 1500), check = often(7, 53);
    for (int ties = 0; ties < 2; ties++) {
        svi_interval *v = svi_interval_new(100, NULL);
        assert_non_null(v);
        m = (struct mirror){.level = 0.9};
        svi_interval_set_level(v, m.level);
        for (int i = 0; i < rows; i++) {
            const double leverage = i % 50 == 3 ? 1.5 : 0.25 * uniform(), scale = sqrt(1 + leverage);
            const double residual = ties ? floor(3 * normal()) : normal() * (i > rows / 2 ? 5 : 1);
            svi_interval_learn(v, 7, ties ? 0 : leverage, 7 + (ties ? 1 : scale) * residual);
            if (m.level > 0 && (ties || leverage < 1))
                mirror_add(&m, ties ? residual : (7 + scale * residual - 7) / scale);
            if (i % (rows / 6) == rows / 7) {
                m.level = levels[1 + i / (rows / 6) % 6];
                svi_interval_set_level(v, m.level);
                mirror_drop(&m, m.level > 0 ? mirror_most(&m) : 0);
            }
            if (i % (rows / 5) == rows / 9)
                v = interval_again(v, m.level);
            if (i % check == 0)
                check_ends(v, &m);
        }
        svi_interval_reset(v);
        m.count = m.until_next = 0;
        check_ends(v, &m);
        svi_interval_free(&v);
    }
}

/* The first interval of 0.9 comes after 19 residuals; what the learner did not know anything of leaves none.
 * Off: nothing is known, and what was kept goes. */
static void test_first_interval(void **unused) {
    (void)unused;
    double ends[2];
    svi_interval *v = svi_interval_new(100, NULL);
    svi_interval_learn(v, 0, 0, 1);
    assert_true(isnan(svi_interval_quality(v).coverage)); /* it is off */
    svi_interval_set_level(v, 0.9);
    for (int i = 0; i < 50; i++)
        svi_interval_learn(v, 0, 1, i);
    assert_false(svi_interval_ends(v, ends));
    for (int i = 0; i < 19; i++) {
        assert_false(svi_interval_ends(v, ends));
        svi_interval_learn(v, 0, 0, i - 9);
    }
    assert_true(svi_interval_ends(v, ends));
    assert_true(ends[0] == -9 && ends[1] == 9);
    assert_true(isnan(svi_interval_quality(v).coverage));
    svi_interval_learn(v, 0, 3, 18); /* its leverage makes it wider: 9 sqrt(1 + 3) */
    svi_interval_learn(v, 0, 3, 18.1);
    const struct svi_interval_quality q = svi_interval_quality(v);
    assert_true(q.coverage == 0.5 && q.windowed == 0.5 && q.width == 36);
    svi_interval_set_level(v, 0);
    assert_false(svi_interval_ends(v, ends));
    svi_interval_set_level(v, 0.9);
    assert_false(svi_interval_ends(v, ends));
    svi_interval_free(&v);
}

/* ---- coverage */

#define START 4000 /* with window 0 the learner learns for long */

struct covered {
    int64_t n, inside;
};

/* Residuals that are exchangeable by construction. */
static void cover_alone(double (*law)(void), double level, int rows, struct covered *c) {
    svi_interval *v = svi_interval_new(1000, NULL);
    svi_interval_set_level(v, level);
    for (int i = 0; i < rows; i++) {
        double ends[2];
        const double residual = law();
        if (svi_interval_ends(v, ends)) {
            c->n++;
            c->inside += ends[0] <= residual && residual <= ends[1];
        }
        svi_interval_learn(v, 0, 0, residual);
    }
    svi_interval_free(&v);
}

/* The learner on y = w'x + noise: rows from START on count. */
static void cover_learner(double (*law)(void), int d, int64_t window, int rows, struct covered *c) {
    double w[10], x[10];
    svs_options o;
    svs_step step;
    svs_options_default(&o);
    o.task = SVS_REGRESS;
    o.window = window;
    svs_learner *l = svs_learner_new(&o, d, NULL);
    svi_interval *v = svi_interval_new(1000, NULL);
    svi_interval_set_level(v, 0.9);
    for (int j = 0; j < d; j++)
        w[j] = normal();
    for (int i = 0; i < rows; i++) {
        double y = law(), ends[2], interval[2];
        for (int j = 0; j < d; j++) {
            x[j] = normal();
            y += w[j] * x[j];
        }
        const svs_sample s = {x, d, svs_none(), svs_real(y), 1};
        assert_int_equal(svs_learner_step(l, &s, 0, &step, NULL), SVS_OK);
        if (i >= START && svi_interval_ends(v, ends)) {
            svi_interval_around(ends, step.scores[0], step.leverage, interval);
            c->n++;
            c->inside += interval[0] <= y && y <= interval[1];
        }
        svi_interval_learn(v, step.scores[0], step.leverage, y);
    }
    svs_learner_free(&l);
    svi_interval_free(&v);
}

static void check_coverage(const struct covered *c, double level, double excess, const char *what, int law) {
    const double share = (double)c->inside / (double)c->n, error = sqrt(level * (1 - level) / (double)c->n);
    print_message("# %s, law %d: %.4f of %lld, level %g, standard error %.4f\n", what, law, share,
                  (long long)c->n, level, error);
    if (!quick() && (share < level - 2 * error || share > level + excess + 2 * error))
        fail_msg("%s, law %d: %.4f is not %g", what, law, share, level);
}

static void test_coverage_of_residuals(void **unused) {
    (void)unused;
    static const double levels[] = {0.5, 0.9, 0.99};
    for (int law = 0; law < 6; law++)
        for (int i = 0; i < 3; i++) {
            struct covered c = {0};
            state = 100 + (uint64_t)(10 * law + i);
            for (int seed = 0; seed < often(6, 1); seed++)
                cover_alone(laws[law], levels[i], often(10000, 1000), &c);
            check_coverage(&c, levels[i], 0.001, "residuals", law);
        }
}

static void test_coverage_of_learner(void **unused) {
    (void)unused;
    static const int64_t windows[] = {100, 1000, 0};
    for (int law = 0; law < 6; law++) {
        struct covered c = {0};
        for (int seed = 0; seed < often(8, 1); seed++)
            for (int w = 0; w < 3; w++)
                for (int d = 3; d <= 10; d += 7) {
                    state = 0x9e3779b97f4a7c15u * (uint64_t)(1 + law + 6 * (seed + 10 * (w + 3 * d)));
                    cover_learner(laws[law], d, windows[w], often(6500, START + 50), &c);
                }
        check_coverage(&c, 0.9, 0, "learner", law);
    }
}

/* What the learner says of a row that has no label is what it says when it learns the row, whatever its
 * samples weigh. */
static void test_leverage_before_learning(void **unused) {
    (void)unused;
    for (int k = 0; k < 4; k++) {
        svs_options o;
        svs_options_default(&o);
        o.task = SVS_REGRESS;
        o.window = k % 2 ? 50 : 0;
        o.forget = k / 2 ? 0.97 : 1;
        svs_learner *l = svs_learner_new(&o, 3, NULL);
        state = 11;
        for (int i = 0; i < 700; i++) {
            const double x[3] = {normal(), 5 + normal(), 100 * normal()};
            const svs_sample s = {x, 3, svs_none(), svs_real(normal()), 0.5 + uniform()};
            svs_step step;
            const double before = i ? svi_learner_leverage(l, x) : 0;
            assert_int_equal(svs_learner_step(l, &s, 0, &step, NULL), SVS_OK);
            assert_true(i == 0 || fabs(step.leverage - before) < 1e-7 * (1e-3 + before));
            assert_true(i < 300 || step.leverage < 2);
        }
        svs_learner_free(&l);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends_are_order_statistics), cmocka_unit_test(test_first_interval),
        cmocka_unit_test(test_leverage_before_learning),  cmocka_unit_test(test_coverage_of_residuals),
        cmocka_unit_test(test_coverage_of_learner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
