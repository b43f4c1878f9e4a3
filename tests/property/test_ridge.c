/* With forgetting the model is the optimum that the manual states (guarantees.md): against long double at
 * every sample, with the ridge from the formula and not from what the learner holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "learner/learner_archive.h"
#include "learner/learner_internal.h"
#include "reference.h"

#define MAX_D    100
#define MAX_STEP 400
#define MAX_ROWS 4 /* of W */

/* All samples learned, for learners that hold none; a feature that came later was 0. */
struct held {
    double x[MAX_D], weight, target;
    int label;
};

struct stream {
    svs_options o;
    int d, classes, steps; /* classes 0: regression */
    bool grows, late, forgets, rebuilds, resets;
    svs_learner *l;
    struct held *all;
    int64_t n; /* learned since the last reset */
    uint64_t seed;
};

/* rho_j as the manual has it. */
static long double stated_ridge(const struct stream *s, int64_t n, int d, int j) {
    int power = 1, half = (int)floor(log(0.5) / log(s->o.forget)), period;
    while (power < d + 1)
        power *= 2;
    period = half < power ? half : power;
    if (period < 1)
        period = 1;
    const int64_t since = n >= j ? (n - j) % period : (period - (j - n) % period) % period;
    return powl(s->o.forget, since) / (2 * (long double)s->o.C);
}

static void add_row(const struct stream *s, const double *x, int64_t order, double weight, const double *t,
                    long double *g) {
    const svs_learner *l = s->l;
    const bool standard = s->o.scale == SVS_SCALE_STANDARD;
    const int n = l->d + 1, rows = svi_rows(l);
    const long double c = weight * powl(s->o.forget, s->n - 1 - order);
    long double z[MAX_D + 1] = {1}, *r = g + n * n;
    for (int j = 0; j < l->d; j++)
        z[1 + j] = standard ? ((long double)x[j] - l->scaler.mean[j]) * l->scaler.inverse[j] : x[j];
    for (int i = 0; i < n; i++) {
        for (int j = 0; j <= i; j++)
            g[i * n + j] += c * z[i] * z[j];
        for (int k = 0; k < rows; k++)
            r[k * n + i] += c * t[k] * z[i];
    }
}

/* The distance of the weights from the stated optimum: scale none in raw units, else in those of the epoch.
 */
static double distance_now(const struct stream *s) {
    svs_learner *l = s->l;
    const int n = l->d + 1, rows = svi_rows(l);
    const size_t size = (size_t)(n * n + rows * n);
    long double *g = calloc(2 * size + (size_t)n, sizeof *g), *copy = g + size, *x = copy + size;
    double t[MAX_ROWS], w[MAX_D + 1], worst = 0;
    for (int32_t i = 0, at; s->o.window && (at = svi_next_learned(l, &i)) >= 0;) {
        const struct svi_slot slot = svi_ring_slot(&l->window, at);
        svi_targets(l, slot.label, slot.target, t);
        add_row(s, svi_ring_row(&l->window, at), slot.order, slot.weight, t, g);
    }
    for (int64_t i = 0; !s->o.window && i < s->n; i++) {
        svi_targets(l, s->all[i].label, s->all[i].target, t);
        add_row(s, s->all[i].x, i, s->all[i].weight, t, g);
    }
    for (int j = 0; j < n; j++)
        g[j * n + j] += stated_ridge(s, s->n, l->d, j);
    svs_model m;
    assert_int_equal(svs_learner_model(l, &m, NULL), SVS_OK);
    for (int k = 0; k < rows; k++) {
        memcpy(copy, g, (size_t)(n * n) * sizeof *g);
        ref_solve(copy, g + n * n + k * n, n, x);
        w[0] = m.b[k];
        memcpy(w + 1, m.W + (size_t)k * (size_t)l->d, (size_t)l->d * sizeof *w);
        worst =
            fmax(worst, ref_distance(s->o.scale == SVS_SCALE_NONE ? w : svs_alsvm_weights(l->m, k), x, n));
    }
    free(g);
    return worst;
}

static void note_learned(struct stream *s, const double *x, double weight, const svs_step *out) {
    if (!out->learned)
        return;
    assert_true(s->n < MAX_STEP);
    s->all[s->n] = (struct held){.weight = weight, .target = out->target, .label = out->label};
    memcpy(s->all[s->n++].x, x, (size_t)s->l->d * sizeof *x);
}

/* The i-th sample, and what else happens then. */
static void move_on(struct stream *s, int i) {
    svs_learner *l = s->l;
    svs_error err = {0};
    svs_step out;
    double x[MAX_D];
    if (s->grows && i % 3 == 2 && l->d < s->d) /* one, or several at once */
        assert_int_equal(svs_learner_grow(l, l->d + (i % 4 && l->d + 5 <= s->d ? 5 : 1), &err), SVS_OK);
    const int k = s->classes ? (int)(ref_uniform(&s->seed) * s->classes) : 0;
    double y = 0.3 * ref_gauss(&s->seed);
    for (int j = 0; j < l->d; j++) {
        x[j] = ref_gauss(&s->seed) + 0.5 * (k == j % 3);
        y += x[j] * (j % 5 - 2) / sqrt(l->d);
    }
    const svs_value label = s->classes ? svs_int(k) : svs_real(y);
    const bool late = s->late && i % 4 == 1;
    const double weight = i % 6 ? 1 : 0.5;
    svs_sample sample = {x, l->d, svs_int(i), late ? svs_none() : label, weight};
    assert_int_equal(svs_learner_step(l, &sample, i, &out, &err), SVS_OK);
    note_learned(s, x, weight, &out);
    if (s->late && i % 4 == 3) {
        assert_int_equal(svs_learner_label(l, svs_int(i - 2), label, i, &out, &err), SVS_OK);
        s->n += out.learned;
    }
    if (s->forgets && i % 5 == 4)
        svs_learner_forget(l, svs_int(i - 4), i, NULL, &err); /* perhaps it has left */
    if (s->rebuilds && i % 7 == 6)
        svi_learner_rebuild(l);
    if (s->resets && i % 92 == 87) {
        svs_learner_reset(l);
        s->n = 0;
    }
}

static double run_stream(struct stream *s) {
    svs_error err = {0};
    double worst = 0;
    s->o.task = s->classes ? SVS_CLASSIFY : SVS_REGRESS;
    s->seed = 5;
    s->n = 0;
    s->all = calloc(MAX_STEP, sizeof *s->all);
    s->l = svs_learner_new(&s->o, s->grows ? 1 : s->d, &err);
    assert_non_null(s->l);
    for (int i = 0; i < s->steps; i++) {
        move_on(s, i);
        const double off = distance_now(s);
        if (!(off < 1e-10))
            fail_msg("forget %g, C %g, window %d, d %d of %d, scale %d, sample %d: off by %.1e", s->o.forget,
                     s->o.C, (int)s->o.window, s->l->d, s->d, s->o.scale, i, off);
        worst = fmax(worst, off);
    }
    svs_learner_free(&s->l);
    free(s->all);
    return worst;
}

static struct stream stream_of(double forget, double C, int64_t window, int d, int steps) {
    struct stream s = {.d = d, .steps = steps};
    svs_options_default(&s.o);
    s.o.forget = forget;
    s.o.C = C;
    s.o.window = window;
    return s;
}

static void the_stated_problem(void **state) {
    (void)state;
    static const double forgets[] = {0.9, 0.99, 0.999}, Cs[] = {0.01, 1, 100};
    static const int dims[] = {5, 20, 100};
    for (int i = 0; i < 27; i++) {
        const double forget = forgets[i % 3], C = Cs[i / 3 % 3];
        const int d = dims[i / 9], steps = d == 100 ? 135 : 150;
        double worst = 0;
        for (int kind = 0; kind < (d == 100 ? 1 : 4); kind++) { /* windows small, large, none; raw */
            static const int64_t windows[] = {40, 500, 0, 40};
            struct stream s = stream_of(forget, C, windows[kind], d, steps);
            s.o.scale = kind == 3 ? SVS_SCALE_NONE : SVS_SCALE_STANDARD;
            worst = fmax(worst, run_stream(&s));
        }
        print_message("forget %g, C %g, d %d: %.1e\n", forget, C, d, worst);
    }
}

static void whatever_happens(void **state) {
    (void)state;
    for (int i = 0; i < 16; i++) {
        static const double forgets[] = {0.3, 0.8, 0.97, 0.9999};
        static const int64_t windows[] = {30, 70, 12};
        struct stream s = stream_of(forgets[i % 4], i % 5 ? 1 : 20, windows[i % 3], 24, 170);
        s.classes = i % 3 == 1 ? 0 : 2 + i % 3;
        s.o.rule = s.classes && i % 8 == 3 ? SVS_FALSVM : SVS_ALSVM;
        s.o.scale = i % 2 ? SVS_SCALE_NONE : SVS_SCALE_STANDARD;
        s.o.window_seconds = i % 6 == 5 ? 25 : 0;
        s.grows = s.late = s.forgets = true;
        s.rebuilds = i % 3 != 2;
        s.resets = i % 4 != 1;
        print_message("walk %d: %.1e\n", i, run_stream(&s));
    }
}

/* No window, classes and features that appear: what is gone by can only be in the sums. */
static void without_a_window(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct stream s = stream_of(i < 2 ? 0.97 : 0.7, 10, 0, 20, 200);
        s.o.scale = i % 2 ? SVS_SCALE_NONE : SVS_SCALE_STANDARD;
        s.classes = 3;
        s.grows = s.rebuilds = s.resets = true;
        print_message("no window, walk %d: %.1e\n", i, run_stream(&s));
    }
}

/* Whatever values the ridge has, each coordinate's next turn makes them the stated ones. */
static void another_ridge_fades(void **state) {
    (void)state;
    struct stream s = stream_of(0.98, 1, 30, 10, 0);
    svs_error err = {0};
    s.seed = 5;
    s.o.task = SVS_REGRESS;
    s.all = calloc(MAX_STEP, sizeof *s.all);
    s.l = svs_learner_new(&s.o, s.d, &err);
    assert_non_null(s.l);
    for (int i = 0; i < 50; i++)
        move_on(&s, i);
    for (int j = 0; j <= s.d; j++)
        s.l->ridge[j] *= 0.3 + 0.06 * j;
    svi_learner_rebuild(s.l);
    assert_true(svs_learner_check(s.l) < 1e-12);
    assert_true(distance_now(&s) > 1e-6);
    for (int i = 0; i < 16; i++) /* the power of two that 11 fits into */
        move_on(&s, 50 + i);
    assert_true(distance_now(&s) < 1e-12);
    svs_learner_free(&s.l);
    free(s.all);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_stated_problem),
        cmocka_unit_test(whatever_happens),
        cmocka_unit_test(without_a_window),
        cmocka_unit_test(another_ridge_fades),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
