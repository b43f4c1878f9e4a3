/* A class's weight is a factor of its samples' weights, and nothing else: a learner with class weights is,
 * bit for bit, one without them whose samples have the product for a weight. The factors of `balanced` are
 * counted here by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "learner/learner_prune.h"
#include "support/learner_walk.h"
#include "support/quick.h"

static svs_value text(const char *s) {
    return svs_str(s);
}

/* Two of the walk's labels, and one that never comes. */
static void give(svs_options *o) {
    static svs_class_weight given[3];
    given[0] = (svs_class_weight){text("red"), 20};
    given[1] = (svs_class_weight){svs_int(-2), 0.3};
    given[2] = (svs_class_weight){text("violet"), 7};
    o->class_rule = SVS_CLASSES_GIVEN;
    o->class_weight = given;
    o->class_weight_count = 3;
}

static double given_of(svs_value y) {
    return svs_value_equal(y, text("red")) ? 20 : svs_value_equal(y, svs_int(-2)) ? 0.3 : 1;
}

/* Model, counters and what a snapshot of the window says. */
static void same(svs_learner *a, svs_learner *b) {
    svs_model m, n;
    svs_health h, g;
    struct svi_snapshot s = {0}, t = {0};
    assert_int_equal(svs_learner_model(a, &m, NULL), SVS_OK);
    assert_int_equal(svs_learner_model(b, &n, NULL), SVS_OK);
    assert_true(m.version == n.version && m.rows == n.rows && m.d == n.d && m.learned == n.learned);
    assert_memory_equal(m.b, n.b, (size_t)m.rows * sizeof *m.b);
    if (m.d)
        assert_memory_equal(m.W, n.W, (size_t)m.rows * (size_t)m.d * sizeof *m.W);
    svs_learner_health(a, &h);
    svs_learner_health(b, &g);
    assert_memory_equal(&h, &g, sizeof h);
    if (a->o.window == 0)
        return;
    assert_int_equal(svi_snapshot_begin(&s, a, NULL), SVS_OK);
    assert_int_equal(svi_snapshot_begin(&t, b, NULL), SVS_OK);
    svi_snapshot_copy(&s, a, INT64_MAX);
    svi_snapshot_copy(&t, b, INT64_MAX);
    assert_int_equal(s.count, t.count);
    assert_memory_equal(s.weight, t.weight, (size_t)s.count * sizeof *s.weight);
    svi_snapshot_clear(&s);
    svi_snapshot_clear(&t);
}

static struct walk plain(int64_t window) {
    struct walk w = {.d = 6, .most = 9, .classes = 4, .spread = 1, .seed = 3, .ids = WALK_INTS};
    svs_options_default(&w.o);
    w.o.window = window;
    w.weights = w.forgets = w.resets = true;
    return w;
}

static void given_are_factors(void **state) {
    (void)state;
    for (int i = 0; i < often(24, 12); i++) {
        struct walk w = plain(i % 4 == 3 ? 0 : 20 + 30 * (i % 3));
        struct walk_outcome a, b;
        w.seed += (uint64_t)i;
        w.o.window_seconds = i % 4 == 1 ? 12 : 0;
        w.o.forget = i % 3 == 1 ? 0.97 : 1;
        w.o.rule = i % 5 == 4 ? SVS_FALSVM : SVS_ALSVM;
        w.o.scale = i % 2 ? SVS_SCALE_STANDARD : SVS_SCALE_NONE;
        svs_options by_hand = w.o;
        give(&w.o);
        svs_learner *l = svs_learner_new(&w.o, w.d, NULL), *hand = svs_learner_new(&by_hand, w.d, NULL);
        assert_true(l && hand);
        memset((void *)(uintptr_t)w.o.class_weight, 0, 3 * sizeof *w.o.class_weight); /* copied */
        for (int k = 0; k < 500; k++) {
            struct walk_call c = walk_next(&w);
            walk_do(l, &c, &a);
            c.s.weight *= given_of(c.s.y);
            walk_do(hand, &c, &b);
            assert_true(walk_same(&a, &b));
            if (k % 20 == 0)
                same(l, hand);
        }
        svs_learner_free(&l);
        svs_learner_free(&hand);
    }
}

/* ---- balanced */

#define STEPS 700

struct held {
    int label[STEPS];
    bool live[STEPS];
    double factor[STEPS], weight[STEPS], x[STEPS][3];
    int64_t window;
    double forget;
    int n, next;
};

static int held_first(const struct held *h) {
    return h->window && h->n > h->window ? h->n - (int)h->window : 0;
}

/* What a sample of this class weighs next to those held, of which one is the sample itself. */
static double balanced_of(const struct held *h, int label) {
    double count[8] = {0}, n = 0, classes = 0;
    for (int i = held_first(h); i < h->n; i++)
        if (h->live[i])
            count[h->label[i]] += h->window ? 1 : pow(h->forget, h->n - 1 - i);
    for (int k = 0; k < 8; k++) {
        n += count[k];
        classes += count[k] > 0;
    }
    return n / (classes * count[label]);
}

/* Those held of classes that ten or more are of, anew, when it is time. */
static void balance_again(struct held *h) {
    int live = 0, count[8] = {0};
    if (!h->window || h->n != h->next)
        return;
    for (int i = held_first(h); i < h->n; i++) {
        count[h->label[i]] += h->live[i];
        live += h->live[i];
    }
    for (int i = held_first(h); i < h->n; i++)
        if (count[h->label[i]] >= 10)
            h->factor[i] = balanced_of(h, h->label[i]);
    h->next += live > 32 ? live / 4 : 8;
}

static void held_weigh_so(const struct held *h, const svs_learner *l) {
    for (int i = held_first(h); h->window && i < h->n; i++) {
        const int32_t slot = svi_ring_find(&l->window, svs_int(i));
        assert_true(h->live[i] == (slot >= 0));
        if (slot >= 0)
            assert_true(svi_ring_slot(&l->window, slot).weight == h->weight[i] &&
                        svi_ring_slot(&l->window, slot).factor == h->factor[i]);
    }
}

/* The model of what is held, with the weights of now as if their producers had given them. */
static void fresh_is_the_same(const struct held *h, svs_learner *l) {
    svs_options o = l->o;
    svs_step out;
    svs_model m, fresh;
    o.class_rule = SVS_CLASSES_ALIKE;
    svs_learner *hand = svs_learner_new(&o, 3, NULL);
    for (int k = 0; k < l->class_count; k++) { /* the classes in their order: they leave with their samples */
        svs_sample s = {h->x[0], 3, svs_str("first"), l->classes[k], 1};
        assert_int_equal(svs_learner_step(hand, &s, 0, &out, NULL), SVS_OK);
        assert_int_equal(svs_learner_forget(hand, svs_str("first"), 0, NULL, NULL), SVS_OK);
    }
    for (int i = held_first(h); i < h->n; i++) {
        svs_sample s = {h->x[i], 3, svs_none(), svs_int(h->label[i]), h->weight[i] * h->factor[i]};
        if (h->live[i])
            assert_int_equal(svs_learner_step(hand, &s, 0, &out, NULL), SVS_OK);
    }
    assert_int_equal(svs_learner_model(l, &m, NULL), SVS_OK);
    assert_int_equal(svs_learner_model(hand, &fresh, NULL), SVS_OK);
    assert_int_equal(m.rows, fresh.rows);
    for (int k = 0; k < 3 * m.rows; k++)
        assert_true(fabs(m.W[k] - fresh.W[k]) < 1e-9);
    for (int k = 0; k < m.rows; k++)
        assert_true(fabs(m.b[k] - fresh.b[k]) < 1e-9);
    svs_learner_free(&hand);
}

static void balanced_walk(int64_t window, double forget, uint64_t seed) {
    static struct held h;
    svs_options o;
    svs_step a, b;
    h = (struct held){.window = window, .forget = forget, .next = 8};
    svs_options_default(&o);
    o.window = window;
    o.forget = forget;
    o.scale = SVS_SCALE_NONE;
    svs_learner *hand = svs_learner_new(&o, 3, NULL);
    o.class_rule = SVS_CLASSES_BALANCED;
    svs_learner *l = svs_learner_new(&o, 3, NULL);
    assert_true(l && hand);
    while (h.n < STEPS) {
        const int i = h.n;
        const double u = ref_uniform(&seed);
        h.label[i] = u < 0.05 ? 2 : u < 0.1 && i > 300 ? 3 : u < 0.3; /* rare ones, and one later */
        for (int j = 0; j < 3; j++)
            h.x[i][j] = ref_gauss(&seed) + h.label[i];
        h.weight[i] = 0.5 + ref_uniform(&seed);
        h.live[i] = true;
        h.n++;
        h.factor[i] = balanced_of(&h, h.label[i]);
        balance_again(&h);
        svs_sample s = {h.x[i], 3, svs_int(i), svs_int(h.label[i]), h.weight[i]};
        assert_int_equal(svs_learner_step(l, &s, i, &a, NULL), SVS_OK);
        held_weigh_so(&h, l);
        s.weight *= h.factor[i];
        assert_int_equal(svs_learner_step(hand, &s, i, &b, NULL), SVS_OK);
        for (int k = 0; k < a.rows && window == 0; k++)
            assert_true(forget < 1 ? fabs(a.scores[k] - b.scores[k]) < 1e-9 : a.scores[k] == b.scores[k]);
        const int gone = i - (int)(ref_uniform(&seed) * 60);
        if (window && i % 7 == 3 && gone > 0 && gone > i - window && h.live[gone]) {
            assert_int_equal(svs_learner_forget(l, svs_int(gone), i, NULL, NULL), SVS_OK);
            h.live[gone] = false;
        }
        if (window)
            assert_true(svs_learner_check(l) < 1e-10);
        if (window && i % 50 == 13 && forget == 1)
            fresh_is_the_same(&h, l);
    }
    svs_learner_free(&l);
    svs_learner_free(&hand);
}

static void balanced_counts_the_held(void **state) {
    (void)state;
    balanced_walk(0, 1, 1);
    balanced_walk(0, 0.95, 2); /* the sums here are in another order */
    balanced_walk(50, 1, 3);
    balanced_walk(120, 1, 4);
    balanced_walk(120, 0.98, 5);
    balanced_walk(1, 1, 6);
}

/* Classes that take turns in a full window: every factor is 1, and the model is that of samples that count
 * alike. */
static void balanced_classes_count_alike(void **state) {
    (void)state;
    svs_options o;
    svs_step a, b;
    svs_model m, n;
    uint64_t seed = 9;
    double x[4];
    svs_options_default(&o);
    o.window = 60;
    o.scale = SVS_SCALE_NONE; /* rebuilds, which come at other times, fit the scaler anew */
    svs_learner *alike = svs_learner_new(&o, 4, NULL);
    o.class_rule = SVS_CLASSES_BALANCED;
    svs_learner *l = svs_learner_new(&o, 4, NULL);
    for (int i = 0; i < 400; i++) {
        for (int j = 0; j < 4; j++)
            x[j] = ref_gauss(&seed) + (i % 3) * j;
        svs_sample s = {x, 4, svs_none(), svs_int(i % 3), 1};
        assert_int_equal(svs_learner_step(l, &s, i, &a, NULL), SVS_OK);
        assert_int_equal(svs_learner_step(alike, &s, i, &b, NULL), SVS_OK);
        for (int k = 0; k < a.rows && i >= 120; k++)
            assert_true(fabs(a.scores[k] - b.scores[k]) < 1e-10);
    }
    assert_int_equal(svs_learner_model(l, &m, NULL), SVS_OK);
    assert_int_equal(svs_learner_model(alike, &n, NULL), SVS_OK);
    for (int k = 0; k < 12; k++)
        assert_true(fabs(m.W[k] - n.W[k]) < 1e-11);
    svs_learner_free(&l);
    svs_learner_free(&alike);
}

/* ---- exactness, and the state */

/* Late labels, ids, times, growth, fading: with either rule the model is that of a fresh solve. */
static void equals_a_fresh_solve(void **state) {
    (void)state;
    int64_t joined = 0, forgotten = 0;
    for (int i = 0; i < 12; i++) {
        struct walk w = plain(30 + 40 * (i % 2));
        struct walk_outcome out;
        w.late = true;
        w.seed = 100 + (uint64_t)i;
        w.o.window_seconds = i % 3 == 1 ? 15 : 0;
        w.o.forget = i % 4 == 2 ? 0.98 : 1;
        if (i < 6)
            w.o.class_rule = SVS_CLASSES_BALANCED;
        else
            give(&w.o);
        svs_learner *l = svs_learner_new(&w.o, w.d, NULL);
        assert_non_null(l);
        for (int k = 0; k < 500; k++) {
            struct walk_call c = walk_next(&w);
            walk_do(l, &c, &out);
            if (k % 11 == 0)
                assert_true(svs_learner_check(l) < 1e-9);
        }
        joined += l->health.labels_joined;
        forgotten += l->health.forgotten;
        svs_learner_free(&l);
    }
    assert_true(joined > 100 && forgotten > 50);
}

/* A snapshot has the weights of its moment, also when all are weighed anew while it is copied. */
static void snapshots_keep_their_weights(void **state) {
    (void)state;
    svs_options o;
    svs_step out;
    struct svi_snapshot s = {0};
    uint64_t seed = 12;
    double x, weight[300];
    int taken = 0, again = 0;
    svs_options_default(&o);
    o.window = 300;
    o.class_rule = SVS_CLASSES_BALANCED;
    svs_learner *l = svs_learner_new(&o, 1, NULL);
    for (int i = 0; i < 1500; i++) {
        const int64_t rebuilds = l->health.rebuilds;
        if (i > 300 && !s.active) {
            for (int k = 0; taken && k < 300; k++)
                assert_true(s.weight[k] == weight[k]);
            assert_int_equal(svi_snapshot_begin(&s, l, NULL), SVS_OK);
            for (int k = 0; k < 300; k++)
                weight[k] = svi_ring_weight(&l->window, svi_ring_at(&l->window, k));
            taken++;
        }
        x = ref_gauss(&seed);
        svs_sample sample = {&x, 1, svs_none(), svs_int(ref_uniform(&seed) < 0.1), 1 + x * x};
        assert_int_equal(svs_learner_step(l, &sample, i, &out, NULL), SVS_OK);
        again += i > 300 && l->health.rebuilds > rebuilds;
    }
    assert_true(taken > 100 && again > 10);
    svs_learner_free(&l);
    svi_snapshot_clear(&s);
}

/* A late label's factor is that of the moment of the label. */
static void late_labels_weigh_when_they_come(void **state) {
    (void)state;
    svs_options o;
    svs_step out;
    double x = 1;
    svs_options_default(&o);
    o.class_rule = SVS_CLASSES_BALANCED;
    svs_learner *l = svs_learner_new(&o, 1, NULL);
    svs_sample late = {&x, 1, svs_str("late"), svs_none(), 2};
    assert_int_equal(svs_learner_step(l, &late, 0, &out, NULL), SVS_OK);
    for (int i = 0; i < 9; i++) {
        svs_sample s = {&x, 1, svs_none(), svs_int(0), 1};
        x = i;
        assert_int_equal(svs_learner_step(l, &s, i, &out, NULL), SVS_OK);
    }
    assert_int_equal(svs_learner_label(l, svs_str("late"), svs_int(1), 9, &out, NULL), SVS_OK);
    const struct svi_slot s = svi_ring_slot(&l->window, svi_ring_find(&l->window, svs_str("late")));
    assert_true(s.weight == 2 && s.factor == 10.0 / (2 * 1));
    svs_learner_free(&l);
}

/* Features and classes that nobody has go, and both go on alike. */
static void pruned_counts_go_on(void **state) {
    (void)state;
    svs_options o;
    svs_step out;
    svs_error err;
    uint64_t seed = 5;
    bool features[2], classes[4], any;
    double x[2];
    svs_options_default(&o);
    o.window = 30;
    o.class_rule = SVS_CLASSES_BALANCED;
    svs_learner *l = svs_learner_new(&o, 2, NULL);
    for (int i = 0; i < 200; i++) {
        const int label = i < 50 ? i % 2 : 1 + i % 3; /* class 0 leaves the window */
        for (int j = 0; j < 2; j++)
            x[j] = ref_gauss(&seed) + label;
        svs_sample s = {x, 2, svs_int(i), svs_int(label), 1};
        assert_int_equal(svs_learner_step(l, &s, i, &out, NULL), SVS_OK);
        if (i == 100) {
            assert_int_equal(svi_learner_held(l, features, classes, &any, &err), SVS_OK);
            assert_false(classes[0]);
            assert_int_equal(svi_learner_prune(l, features, classes, &err), SVS_OK);
            assert_int_equal(svs_learner_class_count(l), 3);
        }
        assert_true(i < 100 || svs_learner_check(l) < 1e-10);
    }
    const struct svi_slot s = svi_ring_slot(&l->window, svi_ring_find(&l->window, svs_int(199)));
    assert_true(s.factor == 1);
    svs_learner_free(&l);
}

/* Only a learner with class weights keeps what it takes, and bytes that have it are not of one without. */
static void kept_where_needed(void **state) {
    (void)state;
    struct svi_bytes with = {0}, without = {0};
    svs_error err = {0};
    struct walk w = plain(40), same_walk = w;
    struct walk_outcome out;
    w.o.class_rule = SVS_CLASSES_BALANCED;
    svs_learner *l = walk_far(&w, 300), *alike = walk_far(&same_walk, 300);
    assert_int_equal(walk_save(l, &with, &err), SVS_OK);
    assert_int_equal(walk_save(alike, &without, &err), SVS_OK);
    assert_non_null(walk_field(&with, "window factors 0"));
    assert_null(walk_field(&without, "window factors 0"));
    assert_null(walk_load(&same_walk.o, 0, with.data, with.size, &err));
    assert_int_equal(err.code, SVS_DAMAGED);
    svs_learner *back = walk_load(&w.o, 0, with.data, with.size, &err);
    assert_non_null(back);
    assert_memory_equal(back->class_held, l->class_held, 4 * sizeof(double));
    struct walk_call c = walk_next(&w);
    walk_do(back, &c, &out);
    svs_learner_free(&back);
    svs_learner_free(&l);
    svs_learner_free(&alike);
    svi_bytes_clear(&with);
    svi_bytes_clear(&without);
}

static void refusals_name_the_fault(void **state) {
    (void)state;
    svs_options o, usual;
    svs_error err = {0};
    svs_step out;
    double x = 1;
    svs_options_default(&usual);
    const struct {
        svs_class_weight w[2];
        int count;
        const char *word;
    } bad[] = {
        {{{text("a"), 0}}, 1, "class a is 0"},
        {{{text("a"), -1}}, 1, "above 0"},
        {{{svs_int(4), NAN}}, 1, "class 4"},
        {{{svs_int(4), INFINITY}}, 1, "class 4"},
        {{{svs_int(4), 2}, {svs_int(4), 3}}, 2, "two weights, 2 and 3"},
        {{{svs_real(0.5), 2}}, 1, "no label"},
        {{{text(""), 2}}, 1, "no label"},
        {{{text("a"), 1}}, 0, "1 to 100,000"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        o = usual;
        o.class_rule = SVS_CLASSES_GIVEN;
        o.class_weight = bad[i].w;
        o.class_weight_count = bad[i].count;
        assert_null(svs_learner_new(&o, 1, &err));
        assert_int_equal(err.code, SVS_SETTING);
        assert_non_null(strstr(err.text, bad[i].word));
    }
    o = usual;
    o.class_rule = SVS_CLASSES_BALANCED;
    o.task = SVS_REGRESS;
    assert_null(svs_learner_new(&o, 1, &err));
    assert_non_null(strstr(err.text, "regression"));
    const svs_class_weight heavy = {text("a"), 1e60};
    o = usual;
    o.class_rule = SVS_CLASSES_GIVEN;
    o.class_weight = &heavy;
    o.class_weight_count = 1;
    svs_learner *l = svs_learner_new(&o, 1, &err);
    svs_sample s = {&x, 1, svs_int(1), text("a"), 1e50};
    assert_int_equal(svs_learner_step(l, &s, 0, &out, &err), SVS_BAD_WEIGHT);
    s.y = svs_none();
    assert_int_equal(svs_learner_step(l, &s, 0, &out, &err), SVS_OK);
    assert_int_equal(svs_learner_label(l, svs_int(1), text("a"), 0, &out, &err), SVS_BAD_WEIGHT);
    assert_int_equal(svs_learner_label(l, svs_int(1), text("b"), 0, &out, &err), SVS_OK);
    svs_learner_free(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(given_are_factors),
        cmocka_unit_test(balanced_counts_the_held),
        cmocka_unit_test(balanced_classes_count_alike),
        cmocka_unit_test(equals_a_fresh_solve),
        cmocka_unit_test(snapshots_keep_their_weights),
        cmocka_unit_test(late_labels_weigh_when_they_come),
        cmocka_unit_test(pruned_counts_go_on),
        cmocka_unit_test(kept_where_needed),
        cmocka_unit_test(refusals_name_the_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
