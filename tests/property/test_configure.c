/* Other options for a learner at work: it is a new learner with these options that was given what is held. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "learner/learner_archive.h"
#include "learner/learner_held.h"
#include "learner/learner_internal.h"
#include "reference.h"
#include "support/archived.h"
#include "support/ring.h"

enum { D = 9, SAMPLES = 240 };

struct life {
    svs_learner *l;
    uint64_t seed;
    int number, classes;
    bool sparse;
};

static void archive_learner(struct svi_archive *a, void *l) {
    svi_learner_archive(a, l);
}

static svs_value life_label(const struct life *a, int k, double x) {
    static const char *const names[] = {"red", "green", "blue", "black"};
    if (a->l->o.task == SVS_REGRESS)
        return svs_real(2 * x + k);
    return k % 2 ? svs_int(k) : svs_str(names[k % 4]);
}

/* A sample, a late label or a removal, of ids that come again. */
static void life_step(struct life *a) {
    double x[D] = {0};
    svs_step step;
    const int i = a->number++, k = (int)(ref_uniform(&a->seed) * a->classes);
    for (int j = 0; j < D; j++)
        x[j] = a->sparse && ref_uniform(&a->seed) < 0.6 ? 0 : ref_gauss(&a->seed) + 0.6 * k * (j % 3) + 2;
    const bool late = ref_uniform(&a->seed) < 0.25;
    const svs_sample s = {x, D, svs_int(i % 61), late ? svs_none() : life_label(a, k, x[0]),
                          0.5 + ref_uniform(&a->seed)};
    assert_int_equal(svs_learner_step(a->l, &s, i, &step, NULL), SVS_OK);
    if (i % 4 == 0)
        svs_learner_label(a->l, svs_int((i - 3) % 61), life_label(a, k, 1), i, &step, NULL);
    if (i % 11 == 0)
        svs_learner_forget(a->l, svs_int((i * 31) % 61), i, NULL, NULL);
}

/* A learner that knows what l knows before its first sample: the unscaled, and the classes in their order,
 * which a reset leaves. */
static svs_learner *announced(const svs_learner *l, const svs_options *o) {
    svs_learner *n = svs_learner_new(o, l->declared, NULL);
    svs_step step;
    double x[D] = {0};
    assert_non_null(n);
    for (int j = 0; j < D; j++)
        if (svi_scaler_unscaled(&l->scaler, j))
            svs_learner_unscaled(n, j);
    for (int k = 0; k < l->class_count; k++) {
        const svs_sample s = {x, D, svs_none(), l->classes[k], 1};
        assert_int_equal(svs_learner_step(n, &s, 0, &step, NULL), SVS_OK);
    }
    svs_learner_reset(n);
    return n;
}

/* What l holds, in its order. */
static void give_held(svs_learner *to, const svs_learner *l) {
    svs_step step;
    for (int32_t i = 0; i < l->window.count; i++) {
        const int32_t at = svi_ring_at(&l->window, i);
        const struct svi_slot s = svi_ring_slot(&l->window, at);
        if (!s.live)
            continue;
        const svs_value y = l->o.task == SVS_REGRESS ? svs_real(s.target) : l->classes[s.label];
        const svs_sample sample = {svi_ring_row(&l->window, at), l->declared, s.id, y, s.weight};
        assert_int_equal(svs_learner_step(to, &sample, s.time, &step, NULL), SVS_OK);
    }
}

static void assert_same_model(svs_learner *a, svs_learner *b) {
    svs_model one, other;
    assert_int_equal(svs_learner_model(a, &one, NULL), SVS_OK);
    assert_int_equal(svs_learner_model(b, &other, NULL), SVS_OK);
    assert_int_equal(one.rows, other.rows);
    assert_memory_equal(one.W, other.W, (size_t)one.rows * (size_t)one.d * sizeof(double));
    assert_memory_equal(one.b, other.b, (size_t)one.rows * sizeof(double));
    assert_int_equal(a->window.live, b->window.live);
}

static svs_options options(int64_t window) {
    svs_options o;
    svs_options_default(&o);
    o.window = window;
    o.labels_max = 20;
    return o;
}

static struct life begin(const svs_options *o, int classes, bool sparse) {
    struct life a = {.seed = 77, .classes = classes, .sparse = sparse};
    assert_non_null(a.l = svs_learner_new(o, D, NULL));
    if (sparse)
        svs_learner_unscaled(a.l, 3);
    for (int i = 0; i < SAMPLES; i++)
        life_step(&a);
    return a;
}

/* All that went on goes on, and from then on the two stay the same bit for bit. */
static void change_to(struct life *a, const svs_options *o) {
    svs_health before, after;
    svs_error err = {0};
    struct svi_learner_span span, now;
    svs_learner_health(a->l, &before);
    svi_learner_span(a->l, &span);
    const uint64_t version = a->l->version;
    svs_learner *n = announced(a->l, o);
    give_held(n, a->l);
    const svs_code code = svs_learner_configure(a->l, o, &err);
    if (code != SVS_OK)
        print_message("%s\n", err.text);
    assert_int_equal(code, SVS_OK);
    assert_same_model(a->l, n);
    assert_true(o->window == 0 || svs_learner_check(a->l) < 1e-8);
    svs_learner_health(a->l, &after);
    svi_learner_span(a->l, &now);
    assert_true(a->l->version > version && now.window >= span.window && now.waiting == span.waiting);
    assert_int_equal(after.learned, before.learned);
    assert_int_equal(after.waiting, before.waiting);
    assert_int_equal(after.labels_joined, before.labels_joined);
    assert_int_equal(after.forgotten, before.forgotten);
    assert_true(after.rebuilds >= before.rebuilds && after.held <= before.held);
    assert_null(ring_check(&a->l->window));
    assert_null(ring_check(&a->l->waiting));
    svs_step one, other;
    for (int i = 0; i < 3; i++) { /* without ids, for what waits is with one of them alone */
        double x[D];
        for (int j = 0; j < D; j++)
            x[j] = ref_gauss(&a->seed) + 1;
        const svs_sample s = {x, D, svs_none(), life_label(a, i % a->classes, x[0]), 1};
        assert_int_equal(svs_learner_step(a->l, &s, a->number, &one, NULL), SVS_OK);
        assert_int_equal(svs_learner_step(n, &s, a->number, &other, NULL), SVS_OK);
        assert_memory_equal(one.scores, other.scores, (size_t)one.rows * sizeof(double));
    }
    assert_same_model(a->l, n);
    svs_learner_free(&n);
}

static void changes_in_turn(struct life *a) {
    svs_options o = a->l->o;
    const bool classes = o.task == SVS_CLASSIFY;
    for (int round = 0; round < 12; round++) {
        switch (round % 8) {
        case 0:
            o.C *= 10;
            break;
        case 1:
            o.window = 25;
            break;
        case 2:
            o.scale = o.scale == SVS_SCALE_NONE ? SVS_SCALE_STANDARD : SVS_SCALE_NONE;
            break;
        case 3:
            o.window = 150;
            break;
        case 4:
            o.window_seconds = o.window_seconds > 0 ? 0 : 40;
            break;
        case 5:
            o.forget = o.forget < 1 ? 1 : 0.97;
            break;
        case 6:
            o.rule = classes && o.rule == SVS_ALSVM ? SVS_FALSVM : SVS_ALSVM;
            break;
        default:
            o.C = 0.3, o.window = 70, o.scale = SVS_SCALE_STANDARD;
            break;
        }
        change_to(a, &o);
        for (int i = 0; i < 37; i++) {
            life_step(a);
            if (i % 6 == 0)
                assert_true(svs_learner_check(a->l) < 1e-8);
        }
    }
    svs_learner_free(&a->l);
}

static void it_is_a_new_learner_of_what_is_held(void **state) {
    (void)state;
    for (int kind = 0; kind < 6; kind++) {
        svs_options o = options(60);
        if (kind == 3)
            o.task = SVS_REGRESS;
        if (kind == 4)
            o.rule = SVS_FALSVM;
        if (kind == 5)
            o.forget = 0.98;
        struct life a = begin(&o, kind == 0 ? 2 : 4, kind == 2 || kind == 5);
        changes_in_turn(&a);
    }
}

/* The window's samples are in for good; without a window C and scale are changed in the sums. */
static void without_a_window(void **state) {
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        svs_options o = options(0), to;
        if (kind == 1)
            o.task = SVS_REGRESS;
        if (kind == 2)
            o.forget = 0.99;
        struct life a = begin(&o, 3, false), b;
        svs_model one, other;
        svs_error err;
        to = o;
        to.C = 7;
        to.scale = SVS_SCALE_NONE;
        b = begin(&to, 3, false);
        assert_int_equal(svs_learner_configure(a.l, &to, &err), SVS_OK);
        svs_learner_model(a.l, &one, NULL);
        svs_learner_model(b.l, &other, NULL);
        for (int i = 0; i < one.rows * D; i++)
            assert_true(fabs(one.W[i] - other.W[i]) < 1e-10 * (1 + fabs(other.W[i])));
        to.window = 50;
        assert_int_equal(svs_learner_configure(a.l, &to, &err), SVS_UNAVAILABLE);
        assert_non_null(strstr(err.text, "reset"));
        svs_learner_reset(a.l);
        assert_int_equal(svs_learner_configure(a.l, &to, &err), SVS_OK);
        life_step(&a);
        assert_int_equal(a.l->o.window, 50);
        svs_learner_free(&a.l);
        svs_learner_free(&b.l);
    }
    svs_options o = options(60), to = options(0);
    struct life a = begin(&o, 3, false);
    change_to(&a, &to);
    svs_learner_free(&a.l);
}

static void what_waits_goes_on_waiting(void **state) {
    (void)state;
    svs_options o = options(60), to;
    struct life a = begin(&o, 4, true);
    double scores[8];
    svs_step step;
    const int32_t slot = svi_ring_at(&a.l->waiting, a.l->waiting.count - 1);
    const struct svi_slot s = svi_ring_slot(&a.l->waiting, slot);
    const svs_value id = s.id;
    const int rows = svi_rows_of(s.class_count);
    const uint64_t version = s.version;
    memcpy(scores, svi_ring_row(&a.l->waiting, slot) + a.l->feature_capacity, (size_t)rows * sizeof *scores);
    to = o;
    to.C = 50;
    to.labels_max = 3;
    const int32_t waited = a.l->waiting.live;
    const int64_t evicted = a.l->health.labels_evicted;
    assert_int_equal(svs_learner_configure(a.l, &to, NULL), SVS_OK);
    assert_int_equal(a.l->waiting.live, 3);
    assert_int_equal(a.l->health.labels_evicted - evicted, waited - 3);
    assert_int_equal(svs_learner_label(a.l, id, svs_int(1), a.number, &step, NULL), SVS_OK);
    assert_int_equal(step.rows, rows);
    assert_true(step.version == version);
    assert_memory_equal(step.scores, scores, (size_t)rows * sizeof *scores);
    assert_true(svs_learner_check(a.l) < 1e-9);
    svs_learner_free(&a.l);
}

/* A snapshot under way is that of the window before, whole. */
static void a_snapshot_is_finished(void **state) {
    (void)state;
    svs_options o = options(200), to;
    struct svi_snapshot s = {0};
    struct life a = begin(&o, 2, false);
    assert_int_equal(svi_snapshot_begin(&s, a.l, NULL), SVS_OK);
    const int64_t held = a.l->window.live, last = a.l->window.pushed;
    to = o;
    to.window = 5;
    assert_int_equal(svs_learner_configure(a.l, &to, NULL), SVS_OK);
    assert_false(s.active);
    assert_int_equal(s.count, held);
    assert_null(a.l->snapshot);
    assert_int_equal(svi_snapshot_begin(&s, a.l, NULL), SVS_OK);
    svi_snapshot_copy(&s, a.l, INT64_MAX);
    assert_int_equal(s.count, 5);
    assert_true(s.number[0] >= last); /* never given twice */
    svi_snapshot_clear(&s);
    svs_learner_free(&a.l);
}

static void refusals_change_nothing(void **state) {
    (void)state;
    svs_options o = options(60), bad;
    struct life a = begin(&o, 3, false);
    struct svi_bytes before = {0}, after = {0};
    svs_error err;
    archived_save(archive_learner, a.l, &before, &err);
    for (int i = 0; i < 8; i++) {
        bad = o;
        switch (i) {
        case 0:
            bad.C = 0;
            break;
        case 1:
            bad.window = -1;
            break;
        case 2:
            bad.window = 0, bad.window_seconds = 3;
            break;
        case 3:
            bad.forget = 1.5;
            break;
        case 4:
            bad.task = SVS_REGRESS;
            break;
        case 5:
            bad.max_features++;
            break;
        case 6:
            bad.max_classes++;
            break;
        default:
            bad.C = NAN;
            break;
        }
        assert_int_equal(svs_learner_configure(a.l, &bad, &err), SVS_SETTING);
    }
    archived_save(archive_learner, a.l, &after, &err);
    assert_int_equal(after.size, before.size);
    assert_memory_equal(after.data, before.data, before.size);
    svi_bytes_clear(&before);
    svi_bytes_clear(&after);
    svs_learner_free(&a.l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_a_new_learner_of_what_is_held),
        cmocka_unit_test(without_a_window),
        cmocka_unit_test(what_waits_goes_on_waiting),
        cmocka_unit_test(a_snapshot_is_finished),
        cmocka_unit_test(refusals_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
