/* The sums that a learner gives to other processes, against long double sums over the rows that it holds,
 * after random walks of everything that changes a window. And giving them changes nothing: a twin that is
 * never asked has the same answers and, at the end, the same state, byte for byte. */
#include "support/learner_walk.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "learner/learner_held.h"
#include "learner/learner_renew.h"
#include "learner/learner_sums.h"

#define HELD_MAX 4096

/* What the model has learned, for a learner without a window, which holds nothing itself. */
struct mirror {
    double x[HELD_MAX][WALK_MAX_D];
    double weight[HELD_MAX], target[HELD_MAX];
    int label[HELD_MAX], count;
};

struct held_row {
    const double *x;
    double weight, target;
    int label;
};

static bool row_at(const svs_learner *l, const struct mirror *m, int *i, struct held_row *out) {
    if (m) {
        if (*i >= m->count)
            return false;
        *out = (struct held_row){m->x[*i], m->weight[*i], m->target[*i], m->label[*i]};
        ++*i;
        return true;
    }
    int32_t at = *i;
    const int32_t slot = svi_next_learned(l, &at);
    *i = at;
    if (slot < 0)
        return false;
    *out = (struct held_row){svi_ring_row(&l->window, slot), svi_ring_weight(&l->window, slot),
                             svi_ring_target(&l->window, slot), svi_ring_label(&l->window, slot)};
    return true;
}

/* Both the value and what its terms are in size: rounding is relative to that. */
struct exact {
    long double sum, size;
};

static void exact_add(struct exact *e, long double term) {
    e->sum += term;
    e->size += fabsl(term);
}

static void assert_near(const char *what, double got, struct exact want, long double scale, double error) {
    if (!(fabsl(got - want.sum) <= error * (want.size + scale)))
        fail_msg("%s: %.17g is not %.17Lg, off by %.3Lg of %.3Lg", what, got, want.sum,
                 fabsl(got - want.sum) / (want.size + scale), (long double)error);
}

static double row_value(const struct held_row *r, int d, int j) {
    return j < d ? r->x[j] : 0;
}

/* `error`: relative to the sum of magnitudes about the center; `level`: and to the spread of the features. */
static void check_sums(svs_learner *l, const struct mirror *m, struct svi_window_sums *s, double error,
                       double level) {
    svs_error err = {0};
    struct held_row r;
    if (svi_learner_sums(l, s, &err) != SVS_OK)
        fail_msg("%s", err.text);
    const int d = s->d, known = l->d, k = s->classes;
    assert_int_equal(d, svs_learner_dimension(l));
    assert_int_equal(k, l->o.task == SVS_REGRESS ? 0 : svs_learner_class_count(l));
    struct exact *sum = calloc((size_t)d + 1, sizeof *sum), *target = calloc((size_t)d + 1, sizeof *sum);
    struct exact *group = calloc((size_t)(k * (d + 1)) + 1, sizeof *sum);
    struct exact *square = calloc(svi_sums_packed(d) + 1, sizeof *sum);
    struct exact weight = {0}, of_target = {0}, of_square = {0};
    int64_t n = 0;
    for (int i = 0; row_at(l, m, &i, &r); n++) {
        const long double w = r.weight, t = l->o.task == SVS_REGRESS ? r.target : 0;
        exact_add(&weight, w);
        exact_add(&of_target, w * t);
        exact_add(&of_square, w * t * t);
        if (k > 0)
            exact_add(&group[r.label * (d + 1)], w);
        for (int a = 0; a < d; a++) {
            const long double x = (long double)row_value(&r, known, a) - s->center[a];
            exact_add(&sum[a], w * x);
            exact_add(&target[a], w * t * x);
            if (k > 0)
                exact_add(&group[r.label * (d + 1) + 1 + a], w * x);
            for (int b = 0; b <= a; b++)
                exact_add(&square[svi_sums_packed(a) + (size_t)b],
                          w * x * ((long double)row_value(&r, known, b) - s->center[b]));
        }
    }
    assert_true(s->n == n);
    assert_near("weight", s->weight, weight, 0, error);
    for (int a = 0; a < d; a++) {
        const long double spread = sqrtl(square[svi_sums_packed(a) + (size_t)a].sum);
        const long double about = level * spread * sqrtl(weight.sum);
        assert_near("sum", s->sum[a], sum[a], about, error);
        for (int c = 0; c < k; c++)
            assert_near("class_sum", s->class_sum[c * d + a], group[c * (d + 1) + 1 + a], about, error);
        if (l->o.task == SVS_REGRESS)
            assert_near("target_sum", s->target_sum[a], target[a], level * spread * sqrtl(of_square.sum),
                        error);
        for (int b = 0; b <= a; b++)
            assert_near("square", s->square[svi_sums_packed(a) + (size_t)b],
                        square[svi_sums_packed(a) + (size_t)b],
                        level * spread * sqrtl(square[svi_sums_packed(b) + (size_t)b].sum), error);
        if (l->o.window > 0 && weight.sum > 0) /* the center is the mean, as a double */
            assert_true(fabsl(sum[a].sum) <=
                        1e-13L * sum[a].size + 2.3e-16L * fabsl((long double)s->center[a]) * weight.sum);
    }
    for (int c = 0; c < k; c++)
        assert_near("class_weight", s->class_weight[c], group[c * (d + 1)], 0, error);
    if (l->o.task == SVS_REGRESS) {
        assert_near("target_weight", s->target_weight, of_target, 0, error);
        assert_true(l->o.window > 0 || n == 0 || isnan(s->target_square));
        if (l->o.window > 0)
            assert_near("target_square", s->target_square, of_square, 0, error);
    }
    free(sum);
    free(target);
    free(group);
    free(square);
}

/* ---- walks */

/* A change of the options that both learners get; refused ones change neither. */
static void walk_configure(struct walk *w, svs_learner *a, svs_learner *b) {
    svs_options o = a->o;
    svs_error err;
    o.class_weight = w->o.class_weight; /* those in `a` are freed by the first of both calls */
    o.C = walk_chance(w, .5) ? 1 : .1;
    o.scale = walk_chance(w, .5) ? SVS_SCALE_NONE : SVS_SCALE_STANDARD;
    if (o.window > 0)
        o.window = 1 + (int64_t)(ref_uniform(&w->seed) * 300);
    assert_int_equal(svs_learner_configure(a, &o, &err), svs_learner_configure(b, &o, &err));
}

static void mirror_call(struct mirror *m, svs_learner *l, const struct walk_call *c, const double *waiting,
                        const struct walk_outcome *out) {
    if (c->verb == WALK_RESET)
        m->count = 0;
    if ((c->verb != WALK_STEP && c->verb != WALK_LABEL) || out->code != SVS_OK || !out->step.learned)
        return;
    const double *x = c->verb == WALK_LABEL ? waiting : c->s.x;
    double factor = 1;
    assert_true(m->count < HELD_MAX);
    for (int i = 0; i < l->o.class_weight_count; i++)
        if (svs_value_equal(l->o.class_weight[i].label, c->s.y))
            factor = l->o.class_weight[i].weight;
    memset(m->x[m->count], 0, sizeof m->x[0]);
    memcpy(m->x[m->count], x, (size_t)l->d * sizeof *x);
    m->weight[m->count] = (c->verb == WALK_LABEL ? m->weight[HELD_MAX - 1] : c->s.weight) * factor;
    m->target[m->count] = out->step.target;
    m->label[m->count++] = out->step.label;
}

static void walk_and_check(struct walk w, int steps, bool configures) {
    static struct mirror mirror;
    struct mirror *m = w.o.window == 0 ? &mirror : NULL;
    struct svi_window_sums s = {0};
    struct svi_bytes one = {0}, two = {0};
    svs_error err;
    svs_learner *asked = svs_learner_new(&w.o, w.d, &err), *twin = svs_learner_new(&w.o, w.d, &err);
    mirror.count = 0;
    if (!asked || !twin)
        fail_msg("%s", err.text);
    if (w.most > 3) {
        svs_learner_unscaled(asked, w.most - 2);
        svs_learner_unscaled(twin, w.most - 2);
    }
    for (int i = 0; i < steps; i++) {
        struct walk_outcome a, b;
        double waiting[WALK_MAX_D] = {0};
        struct walk_call c = walk_next(&w);
        if (m && c.verb == WALK_LABEL) { /* joined in an own copy: the row leaves the waiting list */
            const double *row = svi_learner_waiting_row(asked, c.s.id);
            if (row)
                memcpy(waiting, row, (size_t)asked->d * sizeof *row);
            mirror.weight[HELD_MAX - 1] = 1;
        }
        walk_do(asked, &c, &a);
        walk_do(twin, &c, &b);
        assert_true(walk_same(&a, &b));
        if (m)
            mirror_call(m, asked, &c, waiting, &a);
        if (configures && walk_chance(&w, .01))
            walk_configure(&w, asked, twin);
        if (i % 7 == 0 || i == steps - 1)
            check_sums(asked, m, &s, 1e-14, m ? 1e5 : 0);
    }
    assert_int_equal(walk_save(asked, &one, &err), SVS_OK);
    assert_int_equal(walk_save(twin, &two, &err), SVS_OK);
    assert_int_equal(one.size, two.size);
    assert_memory_equal(one.data, two.data, one.size);
    svi_bytes_clear(&one);
    svi_bytes_clear(&two);
    svi_window_sums_clear(&s);
    svs_learner_free(&asked);
    svs_learner_free(&twin);
}

static struct walk walk_of(uint64_t seed) {
    struct walk w = {.d = 3, .most = 11, .classes = 2, .spread = 1, .seed = seed};
    svs_options_default(&w.o);
    w.o.window = 90;
    w.o.labels_max = 40;
    return w;
}

static void test_walks(void **state) {
    static const svs_class_weight weights[] = {{{.kind = SVS_INT, .as.i = -2}, 4.5},
                                               {{.kind = SVS_STR, .length = 3, .as.s = "red"}, .25}};
    (void)state;
    for (int i = 0; i < 48; i++) {
        struct walk w = walk_of(100 + (uint64_t)i);
        w.o.task = i % 4 == 3 ? SVS_REGRESS : SVS_CLASSIFY;
        w.o.window = i % 8 >= 6 ? 0 : i % 8 == 5 ? 400 : 90;
        w.o.window_seconds = i % 8 == 4 ? 40 : 0;
        w.o.scale = i % 3 == 0 ? SVS_SCALE_NONE : SVS_SCALE_STANDARD;
        w.classes = 1 + i % 6;
        w.d = i % 5;
        w.most = i % 16 == 1 ? 130 : 11; /* more than one strip */
        w.spread = i % 7 == 0 ? 1e9 : 1;
        w.bursts = i % 9 == 0 && w.o.window > 0 ? 1e4 : 0;
        w.ids = WALK_ALL_IDS;
        w.late = w.resets = w.forgets = true;
        w.weights = i % 2 && w.o.window > 0; /* a waiting sample's weight is not seen from outside */
        if (w.o.task == SVS_CLASSIFY && i % 3 == 1) {
            w.o.class_rule = w.o.window > 0 && i % 2 ? SVS_CLASSES_BALANCED : SVS_CLASSES_GIVEN;
            w.o.class_weight = weights;
            w.o.class_weight_count = w.o.class_rule == SVS_CLASSES_GIVEN ? 2 : 0;
        }
        walk_and_check(w, w.most > 100 ? 500 : 700, true);
    }
}

/* Levels far above the spread: a sum about 0 would have no digit left. */
static void test_levels(void **state) {
    static const double levels[] = {1e9, -3e12, 1e15};
    struct svi_window_sums s = {0};
    (void)state;
    for (int k = 0; k < 3; k++) {
        uint64_t seed = 5 + (uint64_t)k;
        svs_options o;
        svs_error err;
        svs_options_default(&o);
        o.window = 300;
        svs_learner *l = svs_learner_new(&o, 2, &err);
        for (int i = 0; i < 900; i++) {
            /* the first row of all is enormous, and so is one that leaves again */
            const double size = i == 0 || i == 400 ? 1e6 : 1;
            const double x[] = {size * (levels[k] + 16 * floor(8 * ref_gauss(&seed))), ref_gauss(&seed)};
            const svs_sample sample = {x, 2, svs_none(), svs_int(x[1] > 0), 1};
            svs_step step;
            assert_int_equal(svs_learner_step(l, &sample, i, &step, &err), SVS_OK);
            if (i % 50 == 49)
                check_sums(l, NULL, &s, 1e-14, 0);
        }
        svs_learner_free(&l);
    }
    svi_window_sums_clear(&s);
}

static void test_refusals(void **state) {
    struct svi_window_sums s = {0};
    svs_options o;
    svs_error err = {0};
    (void)state;
    for (int i = 0; i < 2; i++) {
        svs_options_default(&o);
        if (i == 0)
            o.rule = SVS_FALSVM;
        else
            o.forget = .99;
        svs_learner *l = svs_learner_new(&o, 2, &err);
        assert_int_equal(svi_learner_sums(l, &s, &err), SVS_UNAVAILABLE);
        svs_learner_free(&l);
    }
    svi_window_sums_clear(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_walks), cmocka_unit_test(test_levels),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
