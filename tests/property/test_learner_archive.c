/* A learner that was kept and taken back goes on bit for bit like the one that was not, from any moment of
 * any kind of learner; and bytes that are not a learner's are refused, or do no harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "support/learner_walk.h"
#include "support/quick.h"
#include "support/ring.h"

static void save(svs_learner *l, struct svi_bytes *bytes) {
    svs_error err;
    assert_int_equal(walk_save(l, bytes, &err), SVS_OK);
}

static svs_learner *load(const svs_options *o, int d, const struct svi_bytes *bytes) {
    svs_error err = {0};
    svs_learner *l = walk_load(o, d, bytes->data, bytes->size, &err);
    if (!l)
        fail_msg("%s", err.text);
    return l;
}

static void same_bytes(const struct svi_bytes *a, const struct svi_bytes *b) {
    assert_int_equal(a->size, b->size);
    assert_memory_equal(a->data, b->data, a->size);
}

/* Not through the archive: padding and both triangles too. */
static void same_recursion(const svs_learner *a, const svs_learner *b) {
    const struct svi_recursion *r = &a->m->r, *s = &b->m->r;
    const size_t row = (size_t)r->padded * sizeof(double);
    assert_int_equal(r->dim, s->dim);
    assert_int_equal(r->padded, s->padded);
    assert_int_equal(r->rows, s->rows);
    assert_int_equal(r->pending, s->pending);
    assert_true(a->scaler.safe == b->scaler.safe);
    assert_memory_equal(r->p, s->p, svi_packed_size(r->padded, r->strip) * sizeof(double));
    assert_memory_equal(r->w, s->w, row * (size_t)r->rows);
    for (int k = 0; k < r->pending; k++) {
        assert_memory_equal(r->q[k], s->q[k], (size_t)r->dim * sizeof(double));
        assert_memory_equal(r->cq[k], s->cq[k], (size_t)r->dim * sizeof(double));
    }
}

static void same_report(svs_learner *a, svs_learner *b) {
    svs_model m, n;
    svs_health h, g;
    svs_error err;
    assert_int_equal(svs_learner_model(a, &m, &err), SVS_OK);
    assert_int_equal(svs_learner_model(b, &n, &err), SVS_OK);
    assert_true(m.version == n.version && m.d == n.d && m.rows == n.rows && m.class_count == n.class_count);
    assert_true(m.learned == n.learned);
    assert_memory_equal(m.b, n.b, (size_t)m.rows * sizeof *m.b);
    if (m.d)
        assert_memory_equal(m.W, n.W, (size_t)m.rows * (size_t)m.d * sizeof *m.W);
    for (int k = 0; k < m.class_count; k++)
        assert_true(svs_value_equal(m.classes[k], n.classes[k]));
    svs_learner_health(a, &h);
    svs_learner_health(b, &g);
    assert_memory_equal(&h, &g, sizeof h);
}

struct pair {
    svs_learner *kept, *taken;
    struct svi_bytes bytes, again;
};

static void begin(struct pair *p, const struct walk *w) {
    svs_error err;
    *p = (struct pair){0};
    p->kept = svs_learner_new(&w->o, w->d, &err);
    p->taken = svs_learner_new(&w->o, w->d, &err);
    assert_true(p->kept && p->taken);
}

static void end(struct pair *p) {
    svs_learner_free(&p->kept);
    svs_learner_free(&p->taken);
    svi_bytes_clear(&p->bytes);
    svi_bytes_clear(&p->again);
}

/* The taken one, which has gone on since it was last loaded, must be in the same state; then it is loaded
 * anew. */
static void reload(struct pair *p, struct walk *w) {
    save(p->kept, &p->bytes);
    save(p->taken, &p->again);
    same_bytes(&p->bytes, &p->again);
    save(p->kept, &p->again);
    same_bytes(&p->bytes, &p->again);
    svs_learner_free(&p->taken);
    p->taken = load(&w->o, (int)(ref_uniform(&w->seed) * (p->kept->d + 1)), &p->bytes);
    save(p->taken, &p->again);
    same_bytes(&p->bytes, &p->again);
    same_recursion(p->kept, p->taken);
    assert_null(ring_check(&p->taken->window));
    assert_null(ring_check(&p->taken->waiting));
}

static void go(struct pair *p, struct walk *w, int steps, double often) {
    struct walk_outcome a, b;
    for (int i = 0; i < steps; i++) {
        if (walk_chance(w, often))
            reload(p, w);
        struct walk_call c = walk_next(w);
        walk_do(p->kept, &c, &a);
        walk_do(p->taken, &c, &b);
        assert_true(walk_same(&a, &b));
        if (c.verb == WALK_RESET || walk_chance(w, often)) {
            same_report(p->kept, p->taken);
            same_recursion(p->kept, p->taken);
        }
    }
    reload(p, w);
}

static void walk_through(struct walk *w, int steps, double often, svs_health *total) {
    struct pair p;
    svs_health h;
    begin(&p, w);
    go(&p, w, steps, often);
    svs_learner_health(p.kept, &h);
    total->rebuilds += h.rebuilds;
    total->alarms += h.alarms;
    total->forgotten += h.forgotten;
    total->labels_joined += h.labels_joined;
    total->labels_expired += h.labels_expired;
    total->labels_evicted += h.labels_evicted;
    total->waiting += h.waiting;
    total->held += h.held;
    end(&p);
}

static struct walk plain(int64_t window, int d) {
    struct walk w = {.d = d, .most = d, .classes = 2, .spread = 1, .seed = 77};
    svs_options_default(&w.o);
    w.o.window = window;
    return w;
}

static int pick(uint64_t *seed, const int *from, int count) {
    return from[(int)(ref_uniform(seed) * count)];
}

static void draw_class_weights(struct walk *w) {
    static const svs_class_weight given[] = {{{.kind = SVS_INT, .as.i = -2}, 30},
                                             {{.kind = SVS_INT, .as.i = 0}, 0.2}};
    if (w->o.task != SVS_CLASSIFY || !walk_chance(w, 0.5))
        return;
    w->o.class_rule = walk_chance(w, 0.7) ? SVS_CLASSES_BALANCED : SVS_CLASSES_GIVEN;
    w->o.class_weight = given;
    w->o.class_weight_count = 2;
}

/* A walk over a kind of learner drawn at random. */
static struct walk draw(uint64_t *seed) {
    static const int windows[] = {0, 1, 7, 40, 40, 100, 300}, sizes[] = {0, 1, 4, 7, 16, 33},
                     classes[] = {2, 3, 6};
    static const int limits[] = {0, 5, 40, 10000};
    struct walk w = plain(pick(seed, windows, 7), pick(seed, sizes, 6));
    svs_isa isa = SVS_ISA_GENERIC + (svs_isa)(ref_next(seed) % 3);
    w.seed = ref_next(seed) | 1;
    w.classes = pick(seed, classes, 3);
    w.o.isa = svi_kernels_get(isa) ? isa : SVS_ISA_BEST;
    w.o.task = walk_chance(&w, 0.2) ? SVS_REGRESS : SVS_CLASSIFY;
    w.o.rule = w.o.task == SVS_CLASSIFY && walk_chance(&w, 0.25) ? SVS_FALSVM : SVS_ALSVM;
    w.o.scale = walk_chance(&w, 0.4) ? SVS_SCALE_NONE : SVS_SCALE_STANDARD;
    w.o.forget = walk_chance(&w, 0.4) ? (walk_chance(&w, 0.3) ? 0.6 : 0.98) : 1;
    w.o.window_seconds = w.o.window && walk_chance(&w, 0.3) ? 20 : 0;
    w.o.labels_ttl = walk_chance(&w, 0.2) ? 0 : 30;
    w.o.labels_max = pick(seed, limits, 4);
    w.o.C = walk_chance(&w, 0.3) ? 1000 : 1;
    w.spread = walk_chance(&w, 0.3) ? 1e6 : 1;
    w.most = w.d + (walk_chance(&w, 0.4) ? 20 : 0);
    w.ids = (enum walk_ids)(ref_next(seed) % 4);
    w.weights = walk_chance(&w, 0.5);
    w.late = walk_chance(&w, 0.6);
    w.forgets = walk_chance(&w, 0.5);
    w.resets = walk_chance(&w, 0.3);
    w.bursts = walk_chance(&w, 0.3) ? 300 : 0;
    draw_class_weights(&w);
    return w;
}

static void goes_on_alike(void **state) {
    (void)state;
    svs_health total = {0};
    uint64_t seed = 12345;
    for (int i = 0; i < (often(80, 12)); i++) {
        struct walk w = draw(&seed);
        walk_through(&w, often(500, 250), i % 4 ? 0.04 : 0.3, &total);
    }
    print_message("rebuilds %lld, alarms %lld, forgotten %lld, joined %lld, expired %lld, evicted %lld\n",
                  (long long)total.rebuilds, (long long)total.alarms, (long long)total.forgotten,
                  (long long)total.labels_joined, (long long)total.labels_expired,
                  (long long)total.labels_evicted);
    const int64_t enough = often(100, 10);
    assert_true(total.rebuilds > enough && total.alarms > often(10, 0) && total.forgotten > enough);
    assert_true(total.labels_joined > enough && total.labels_expired > often(10, 3));
    assert_true(total.waiting > 0 && total.held > 0);
    assert_true(quick() || total.labels_evicted > 10);
}

/* Sums through BLAS, several pieces a ring, up to all changes pending. */
static void wide_and_long(void **state) {
    (void)state;
    svs_health total = {0};
    static const svs_isa isas[] = {SVS_ISA_GENERIC, SVS_ISA_AVX2, SVS_ISA_AVX512};
    for (int i = 0; i < 3; i++) {
        struct walk wide = plain(60, 128);
        wide.o.isa = svi_kernels_get(isas[i]) ? isas[i] : SVS_ISA_BEST;
        wide.forgets = true;
        wide.ids = WALK_INTS;
        wide.classes = 3;
        wide.o.forget = i == 1 ? 0.9 : 1;
        walk_through(&wide, often(700, 60), 0.05, &total);
    }
    struct walk sums = plain(0, 110);
    walk_through(&sums, often(400, 50), 0.1, &total);
    struct walk several = plain(9000, 3);
    several.ids = WALK_ALL_IDS;
    several.forgets = several.late = true;
    several.classes = 4;
    walk_through(&several, quick() ? 1000 : 60000, quick() ? 0.003 : 0.0003, &total);
    assert_true(total.rebuilds > 3);
}

/* Through the bucket before a planned rebuild of a full window, saved at each step. */
static void at_each_step(void **state) {
    (void)state;
    svs_health total = {0};
    for (int forget = 0; forget < 2; forget++) {
        struct walk w = plain(30, 3);
        w.o.forget = forget ? 0.97 : 1;
        walk_through(&w, often(700, 120), 1, &total);
        struct walk none = plain(0, 3);
        none.o.forget = w.o.forget;
        walk_through(&none, often(600, 60), 1, &total);
    }
    assert_true(total.rebuilds > (often(20, 6)));
}

/* However a ring came to what it holds. */
static void place_does_not_show(void **state) {
    (void)state;
    struct svi_ring a, b;
    struct svi_bytes bytes[2] = {{0}};
    struct svi_ring_kind kind = {
        .name = "window", .features = 2, .scores_at = 2, .class_count = 1, .order = 100};
    svs_error err;
    svi_ring_init(&a, 5, 2, SVI_RING_WINDOW);
    svi_ring_init(&b, 5, 3, SVI_RING_WINDOW);
    b.pushed = 6;
    for (int i = 0; i < 10; i++) {
        struct svi_ring *both[] = {&a, i >= 6 ? &b : NULL};
        for (int k = 0; k < 2 && both[k]; k++) {
            struct svi_slot s = {.weight = 1, .factor = 1, .id = svs_str(i % 2 ? "odd" : "x")};
            assert_int_equal(svi_ring_reserve(both[k], &s, &err), SVS_OK);
            int32_t at = svi_ring_push(both[k], &s);
            svi_ring_row(both[k], at)[0] = i;
            if (i < 6 && k == 0)
                svi_ring_pop(&a);
        }
    }
    svi_ring_kill(&a, svi_ring_at(&a, 1));
    svi_ring_kill(&b, svi_ring_at(&b, 1));
    struct svi_archive_out out;
    struct svi_ring *both[] = {&a, &b};
    for (int k = 0; k < 2; k++) {
        svi_archive_out_begin(&out, &bytes[k], "ring", &err);
        svi_ring_archive(&out.archive, both[k], &kind);
        assert_int_equal(svi_archive_out_end(&out), SVS_OK);
        svi_ring_clear(both[k]);
    }
    same_bytes(&bytes[0], &bytes[1]);
    svi_bytes_clear(&bytes[0]);
    svi_bytes_clear(&bytes[1]);
}

/* A sample taken out by id is in no byte of the archive, though its slot waits to be the oldest. */
static void forgotten_is_gone(void **state) {
    (void)state;
    struct walk w = plain(20, 2);
    struct svi_bytes bytes = {0};
    svs_error err;
    svs_step step;
    svs_learner *l = svs_learner_new(&w.o, 2, &err);
    for (int i = 0; i < 30; i++) {
        double x[2] = {i == 25 ? 0x1.23456789abcdep3 : i, i % 3};
        svs_sample s = {x, 2, svs_str(i == 25 ? "secret" : "public"), svs_int(i % 2), 1};
        assert_int_equal(svs_learner_step(l, &s, i, &step, &err), SVS_OK);
    }
    double value = 0x1.23456789abcdep3;
    save(l, &bytes);
    assert_non_null(memmem(bytes.data, bytes.size, "secret", 6));
    assert_non_null(memmem(bytes.data, bytes.size, &value, sizeof value));
    assert_int_equal(svs_learner_forget(l, svs_str("secret"), 30, NULL, &err), SVS_OK);
    save(l, &bytes);
    assert_null(memmem(bytes.data, bytes.size, "secret", 6));
    assert_null(memmem(bytes.data, bytes.size, &value, sizeof value));
    svs_learner_free(&l);
    svi_bytes_clear(&bytes);
}

static void other_kernels(void **state) {
    (void)state;
    static const svs_isa isas[] = {SVS_ISA_GENERIC, SVS_ISA_AVX2, SVS_ISA_AVX512};
    struct svi_bytes bytes = {0}, again = {0};
    int loaded = 0;
    for (int d = 1; d < 160; d = 3 * d + 5)
        for (int i = 0; i < 9; i += often(1, 4)) {
            struct walk w = plain(50, d);
            struct walk_outcome out;
            double error;
            svs_error err;
            w.o.isa = isas[i / 3];
            if (!svi_kernels_get(isas[i / 3]) || !svi_kernels_get(isas[i % 3]))
                continue;
            svs_learner *l = walk_far(&w, 173 + i);
            save(l, &bytes);
            w.o.isa = isas[i % 3];
            svs_learner *m = load(&w.o, 0, &bytes);
            save(m, &again);
            same_bytes(&bytes, &again);
            assert_int_equal(svi_learner_verify(m, &error, &err), SVS_OK);
            assert_true(error < 1e-8);
            svi_learner_rebuild(m);
            for (int k = 0; k < often(60, 20); k++) {
                struct walk_call c = walk_next(&w);
                walk_do(m, &c, &out);
                assert_int_equal(out.code, SVS_OK);
            }
            assert_true(svs_learner_check(m) < 1e-9);
            svs_learner_free(&l);
            svs_learner_free(&m);
            loaded++;
        }
    assert_true(loaded >= 4);
    svi_bytes_clear(&bytes);
    svi_bytes_clear(&again);
}

/* ---- verify and rebuild */

static void verify_changes_nothing(void **state) {
    (void)state;
    uint64_t seed = 5;
    double worst = 0;
    struct svi_bytes bytes = {0}, again = {0};
    for (int i = 0; i < (often(60, 20)); i++) {
        struct walk w = draw(&seed);
        w.bursts = 0;
        double error;
        svs_error err;
        svs_learner *l = walk_far(&w, 200 + i);
        save(l, &bytes);
        const int pending = l->m->r.pending;
        assert_int_equal(svi_learner_verify(l, &error, &err), SVS_OK);
        assert_int_equal(l->m->r.pending, pending);
        save(l, &again);
        same_bytes(&bytes, &again);
        if (w.o.rule == SVS_ALSVM && w.spread == 1)
            worst = fmax(worst, error);
        svs_learner_free(&l);
    }
    print_message("worst difference %.1e\n", worst);
    assert_true(worst < 1e-7);
    svi_bytes_clear(&bytes);
    svi_bytes_clear(&again);
}

static void verify_notices(void **state) {
    (void)state;
    for (int window = 0; window <= 50; window += 50)
        for (int spoil = 0; spoil < 3; spoil++) {
            struct walk w = plain(window, 4);
            double error;
            svs_error err;
            svs_learner *l = walk_far(&w, 170);
            assert_int_equal(svi_learner_verify(l, &error, &err), SVS_OK);
            assert_true(error < 1e-10);
            double *what[] = {&l->m->r.w[1], &l->m->r.p[0], &l->m->r.p[1]};
            *what[spoil] *= 1.001;
            assert_int_equal(svi_learner_verify(l, &error, &err), SVS_OK);
            assert_true(error > 1e-6);
            uint64_t version = svs_learner_version(l);
            svi_learner_rebuild(l);
            assert_true(svs_learner_version(l) > version);
            assert_int_equal(svi_learner_verify(l, &error, &err), SVS_OK);
            assert_true(error < 1e-10);
            svs_learner_free(&l);
        }
}

static void nothing_to_rebuild(void **state) {
    (void)state;
    struct walk w = plain(10, 2);
    svs_error err;
    svs_learner *l = svs_learner_new(&w.o, 2, &err);
    uint64_t version = svs_learner_version(l);
    double error = 1;
    svi_learner_rebuild(l);
    assert_int_equal(svs_learner_version(l), version);
    assert_int_equal(svi_learner_verify(l, &error, &err), SVS_OK);
    assert_true(error == 0);
    svs_learner_free(&l);
}

/* ---- speed: printed, not asserted */

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void how_long(void **state) {
    (void)state;
    struct walk w = plain(quick() ? 1000 : 10000, 50);
    struct svi_bytes bytes = {0};
    svs_error err;
    double error, best = 1, start;
    w.ids = WALK_INTS;
    svs_learner *l = walk_far(&w, quick() ? 1500 : 14000);
    for (int i = 0; i < 9; i++) {
        start = seconds();
        save(l, &bytes);
        best = fmin(best, seconds() - start);
    }
    start = seconds();
    svs_learner *m = load(&w.o, 0, &bytes);
    double loading = seconds() - start;
    start = seconds();
    assert_int_equal(svi_learner_verify(m, &error, &err), SVS_OK);
    double verifying = seconds() - start;
    start = seconds();
    svi_learner_rebuild(m);
    print_message("%d x 50: %zu bytes, save %.2f ms, load %.2f ms, verify %.1f ms (%.1e), rebuild %.1f ms\n",
                  (int)w.o.window, bytes.size, 1e3 * best, 1e3 * loading, 1e3 * verifying, error,
                  1e3 * (seconds() - start));
    assert_true(error < 1e-10);
    svs_learner_free(&l);
    svs_learner_free(&m);
    svi_bytes_clear(&bytes);
}

/* Kept after each sample while w is refined, which is a state of its own. */
static void drifting_goes_on(void **state) {
    (void)state;
    svs_options o;
    svs_error err = {0};
    struct svi_bytes bytes = {0};
    svs_step step;
    uint64_t seed = 4;
    int drifting = 0;
    svs_options_default(&o);
    o.window = 10;
    o.C = 100;
    o.task = SVS_REGRESS;
    svs_learner *a = svs_learner_new(&o, 20, &err), *b = svs_learner_new(&o, 20, &err);
    for (int i = 0; i < 100; i++) {
        double x[20], t = 0;
        for (int j = 0; j < 20; j++)
            t += x[j] = ref_gauss(&seed);
        svs_sample s = {x, 20, svs_int(i), svs_real(t), 1};
        assert_int_equal(svs_learner_step(a, &s, i, &step, &err), SVS_OK);
        double score = step.scores[0];
        assert_int_equal(svs_learner_step(b, &s, i, &step, &err), SVS_OK);
        assert_true(score == step.scores[0]);
        drifting += a->drifts;
        save(b, &bytes);
        svs_learner_free(&b);
        b = load(&o, 20, &bytes);
    }
    assert_true(drifting > 50);
    svi_bytes_clear(&bytes);
    svs_learner_free(&a);
    svs_learner_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drifting_goes_on),
        cmocka_unit_test(goes_on_alike),
        cmocka_unit_test(wide_and_long),
        cmocka_unit_test(at_each_step),
        cmocka_unit_test(place_does_not_show),
        cmocka_unit_test(forgotten_is_gone),
        cmocka_unit_test(other_kernels),
        cmocka_unit_test(verify_changes_nothing),
        cmocka_unit_test(verify_notices),
        cmocka_unit_test(nothing_to_rebuild),
        cmocka_unit_test(how_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
