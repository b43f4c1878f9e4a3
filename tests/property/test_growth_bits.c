/* A stream whose features appear one after another has the same bits, at every step, as one that had all of
 * them from the start, where some are unscaled: categories are the same as their columns made by hand. */
#include "support/problem.h"

#include "learner/learner_archive.h"
#include "learner/learner_internal.h"
#include "learner/learner_renew.h"
#include "learner/snapshot.h"
#include "support/archived.h"

enum { NUMBERS = 3, MOST = 170 };

struct plan {
    svs_options o;
    int d, steps, late; /* late: one feature in `late` is scaled */
    bool after;         /* svs_learner_unscaled is called after the growth */
};

struct run {
    svs_learner *l;
    int d; /* features so far */
};

static bool is_scaled(const struct plan *p, int j) {
    return j < NUMBERS || (p->late && j % p->late == 0);
}

static void archive_learner(struct svi_archive *a, void *l) {
    svi_learner_archive(a, l);
}

/* A row that has something in `known` features at most. */
static void draw(const struct plan *p, uint64_t *seed, int known, double *x) {
    memset(x, 0, MOST * sizeof *x);
    for (int j = 0; j < NUMBERS; j++)
        x[j] = (1 + 50 * j) * (test_normal(seed) + j);
    for (int k = 0; k < 3; k++) { /* the newest are rare */
        const int j = NUMBERS + (int)((double)(known - NUMBERS) * pow(test_uniform(seed), 1 + k));
        if (j < known)
            x[j] = is_scaled(p, j) ? 100 * test_normal(seed) : 1;
    }
}

static void grow(const struct plan *p, struct run *r, int d) {
    for (int j = r->d; j < d && !p->after; j++)
        if (!is_scaled(p, j))
            svs_learner_unscaled(r->l, j);
    assert_int_equal(svs_learner_grow(r->l, d, NULL), SVS_OK);
    for (int j = r->d; j < d && p->after; j++)
        if (!is_scaled(p, j))
            svs_learner_unscaled(r->l, j);
    r->d = d;
}

static struct run open_run(const struct plan *p, int d) {
    struct run r = {0};
    assert_non_null(r.l = svs_learner_new(&p->o, p->after ? d : 0, NULL));
    grow(p, &r, d);
    return r;
}

static void same_models(const struct run *a, const struct run *b) {
    svs_model m, n;
    svs_health h, g;
    double v[MOST + 1], p[MOST + 1], q[MOST + 1];
    assert_int_equal(svs_learner_model(a->l, &m, NULL), SVS_OK);
    assert_int_equal(svs_learner_model(b->l, &n, NULL), SVS_OK);
    assert_true(m.rows == n.rows && m.version == n.version && m.d == a->d && n.d == b->d);
    assert_memory_equal(m.b, n.b, (size_t)m.rows * sizeof *m.b);
    for (int k = 0; k < m.rows; k++) {
        assert_memory_equal(m.W + k * m.d, n.W + k * n.d, (size_t)m.d * sizeof *m.W);
        for (int j = m.d; j < n.d; j++)
            assert_true(n.W[k * n.d + j] == 0);
    }
    svs_learner_health(a->l, &h);
    svs_learner_health(b->l, &g);
    assert_memory_equal(&h, &g, sizeof h);
    assert_int_equal(a->l->d, b->l->d);
    svi_signs(v, a->l->d + 1);
    svi_alsvm_inverse_times(a->l->m, v, p);
    svi_alsvm_inverse_times(b->l->m, v, q);
    assert_memory_equal(p, q, ((size_t)a->l->d + 1) * sizeof *p);
}

static void same_snapshots(const struct run *a, const struct run *b) {
    struct svi_snapshot s = {0}, t = {0};
    assert_int_equal(svi_snapshot_begin(&s, a->l, NULL), SVS_OK);
    assert_int_equal(svi_snapshot_begin(&t, b->l, NULL), SVS_OK);
    svi_snapshot_copy(&s, a->l, INT64_MAX);
    svi_snapshot_copy(&t, b->l, INT64_MAX);
    assert_true(s.d == t.d && s.count == t.count && s.stride == t.stride);
    if (s.count && s.d) {
        assert_memory_equal(s.rows, t.rows, (size_t)(s.count * s.stride) * sizeof *s.rows);
        assert_memory_equal(s.mean, t.mean, (size_t)s.d * sizeof *s.mean);
        assert_memory_equal(s.inverse, t.inverse, (size_t)s.d * sizeof *s.inverse);
    }
    svi_snapshot_clear(&s);
    svi_snapshot_clear(&t);
}

static void step(struct run *r, const double *x, int number, int label, svs_step *out) {
    const svs_value y = r->l->o.task == SVS_REGRESS ? svs_real(label + x[0]) : svs_int(label);
    const svs_sample s = {
        .x = x, .d = r->d, .id = svs_int(number), .y = number % 9 == 4 ? svs_none() : y, .weight = 1};
    assert_int_equal(svs_learner_step(r->l, &s, number, out, NULL), SVS_OK);
}

static void same_steps(const svs_step *s, const svs_step *t) {
    assert_true(s->rows == t->rows && s->predicted == t->predicted && s->version == t->version);
    assert_true(s->learned == t->learned && s->removed == t->removed);
    assert_memory_equal(s->scores, t->scores, (size_t)s->rows * sizeof *s->scores);
    assert_memory_equal(&s->leverage, &t->leverage, sizeof s->leverage);
}

static void reload(const struct plan *p, struct run *r) {
    struct svi_bytes kept = {0};
    svs_error err;
    svs_learner *l = svs_learner_new(&p->o, 0, NULL);
    assert_int_equal(archived_save(archive_learner, r->l, &kept, &err), SVS_OK);
    assert_int_equal(archived_load(archive_learner, l, kept.data, kept.size, &err), SVS_OK);
    assert_int_equal(svs_learner_dimension(l), r->d);
    svs_learner_free(&r->l);
    r->l = l;
    svi_bytes_clear(&kept);
}

static void compare(const struct plan *p, uint64_t seed) {
    struct run a = open_run(p, NUMBERS), b = open_run(p, p->d);
    double x[MOST];
    for (int i = 0; i < p->steps; i++) {
        svs_step s, t;
        const int known = NUMBERS + (int)((double)(p->d - NUMBERS) * fmin(1, 1.3 * i / p->steps));
        draw(p, &seed, known, x);
        const int label = (int)(test_random(&seed) % 3) * (x[0] > 0);
        int top = p->d;
        while (top > a.d && x[top - 1] == 0)
            top--;
        if (top > a.d)
            grow(p, &a, top);
        step(&a, x, i, label, &s);
        step(&b, x, i, label, &t);
        same_steps(&s, &t);
        if (i % 9 == 8 && p->o.window) {
            const svs_code code = svs_learner_label(a.l, svs_int(i - 4), svs_int(label), i, &s, NULL);
            assert_int_equal(svs_learner_label(b.l, svs_int(i - 4), svs_int(label), i, &t, NULL), code);
            if (code == SVS_OK)
                same_steps(&s, &t);
        }
        if (i % 100 == 60 && p->o.window) {
            svs_learner_forget(a.l, svs_int(i - 3), i, NULL, NULL);
            svs_learner_forget(b.l, svs_int(i - 3), i, NULL, NULL);
        }
        if (i % 10 == 0 || i < 50)
            same_models(&a, &b);
        if (i % 150 == 70 && p->o.window)
            same_snapshots(&a, &b);
        if (i == p->steps / 3) {
            reload(p, &a);
            reload(p, &b);
        }
    }
    same_models(&a, &b);
    assert_true(p->o.window == 0 || svs_learner_check(a.l) < 1e-9);
    svs_learner_free(&a.l);
    svs_learner_free(&b.l);
}

static void test_same_bits(void **unused) {
    (void)unused;
    static const svs_isa isas[] = {SVS_ISA_AVX512, SVS_ISA_AVX2, SVS_ISA_GENERIC};
    static const int windows[] = {50, 100, 33, 0};
    for (int kind = 0; kind < 24; kind++) {
        struct plan p = {
            .d = kind % 4 == 3 ? MOST : 20 + 7 * kind, .steps = 420, .late = kind % 3 == 2 ? 5 : 0};
        svs_options_default(&p.o);
        p.o.isa = isas[kind % 3];
        if (!svi_kernels_get(p.o.isa))
            p.o.isa = SVS_ISA_GENERIC;
        p.o.window = windows[kind / 3 % 4];
        p.o.max_features = MOST + 10;
        p.o.labels_max = 20;
        p.o.scale = kind % 2 ? SVS_SCALE_STANDARD : SVS_SCALE_NONE;
        p.o.forget = kind % 5 == 4 ? 0.99 : 1;
        p.o.rule = kind % 7 == 5 && p.o.window ? SVS_FALSVM : SVS_ALSVM;
        p.d = p.d > MOST ? MOST : p.d;
        p.after = kind >= 12;
        compare(&p, 1000 + (uint64_t)kind);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
