/* Unscaled features: with columns of 0 and 1 beside numbers the model is the optimum in the coordinates that
 * are stated (numbers standardised, categories raw), whatever the learner went through; and refits are. */
#include "support/problem.h"

#include "config/settings.h"
#include "learner/learner_archive.h"
#include "learner/learner_internal.h"
#include "learner/learner_prune.h"
#include "reference.h"
#include "refit/refit_policy.h"
#include "support/archived.h"

enum { NUMBERS = 3, MOST = 24, WINDOW = 60 };

struct stream {
    svs_options o;
    svs_learner *l;
    int d, number;
    uint64_t seed;
    double x[MOST];
};

static void archive_learner(struct svi_archive *a, void *l) {
    svi_learner_archive(a, l);
}

static void begin(struct stream *s, svs_options o, int d, uint64_t seed) {
    *s = (struct stream){.o = o, .d = d, .seed = seed};
    assert_non_null(s->l = svs_learner_new(&o, d, NULL));
}

/* Numbers of different scales, and one of the columns from NUMBERS on that is 1. */
static void step(struct stream *s, int categories) {
    svs_step out;
    const int k = (int)(test_random(&s->seed) % 3),
              category = (int)(test_random(&s->seed) % (uint64_t)categories);
    memset(s->x, 0, sizeof s->x);
    for (int j = 0; j < NUMBERS; j++)
        s->x[j] = (j ? 100 * j : 1) * (test_normal(&s->seed) + 5 + k);
    s->x[NUMBERS + category] = 1;
    const bool late = s->number % 4 == 0;
    const svs_value y = s->o.task == SVS_REGRESS ? svs_real(s->x[0] + category) : svs_int((k + category) % 3);
    const svs_sample sample = {
        .x = s->x, .d = s->d, .id = svs_int(s->number), .y = late ? svs_none() : y, .weight = 1};
    assert_int_equal(svs_learner_step(s->l, &sample, s->number, &out, NULL), SVS_OK);
    if (late)
        svs_learner_label(s->l, svs_int(s->number - 8), y, s->number, &out, NULL);
    if (s->number % 7 == 0)
        svs_learner_forget(s->l, svs_int(s->number - 5), s->number, NULL, NULL);
    s->number++;
}

static void check(struct stream *s) {
    bool scaled = s->number < 20 || s->o.scale == SVS_SCALE_NONE;
    for (int j = NUMBERS; j < s->l->d; j++)
        assert_true(s->l->scaler.mean[j] == 0 && s->l->scaler.inverse[j] == 1);
    for (int j = 0; j < NUMBERS; j++)
        scaled |= s->l->scaler.mean[j] != 0 && s->l->scaler.inverse[j] != 1;
    assert_true(scaled);
    assert_true(s->o.window == 0 || svs_learner_check(s->l) < 1e-10);
}

/* The optimum in raw units by plain loops: what svs_learner_model has to say. */
static void check_model(struct stream *s) {
    const svs_learner *l = s->l;
    const int n = l->d + 1;
    static long double g[(MOST + 1) * (MOST + 1)], r[MOST + 1], w[MOST + 1];
    struct svi_learned row;
    svs_model m;
    memset(g, 0, sizeof g);
    memset(r, 0, sizeof r);
    for (int j = 0; j < n; j++)
        g[j * n + j] = l->nu;
    for (int32_t i = 0; (row.slot = svi_next_learned(l, &i)) >= 0;) {
        const double *x = svi_ring_row(&l->window, row.slot);
        double z[MOST + 1] = {1};
        for (int j = 0; j < l->d; j++)
            z[1 + j] = j < NUMBERS ? (x[j] - l->scaler.mean[j]) * l->scaler.inverse[j] : x[j];
        ref_add(g, r, n, z,
                l->o.task == SVS_REGRESS                    ? svi_ring_target(&l->window, row.slot)
                : svi_ring_label(&l->window, row.slot) == 0 ? 1
                                                            : -1,
                1);
    }
    ref_solve(g, r, n, w);
    assert_int_equal(svs_learner_model(s->l, &m, NULL), SVS_OK);
    for (int j = 0; j < l->d; j++)
        assert_true(fabsl(m.W[j] / (j < NUMBERS ? l->scaler.inverse[j] : 1) - w[1 + j]) < 1e-9L);
}

static void walk(svs_options o, uint64_t seed) {
    struct stream s, again;
    struct svi_bytes kept = {0};
    svs_error err;
    begin(&s, o, NUMBERS + 2, seed);
    for (int j = NUMBERS; j < MOST; j++)
        if (j < NUMBERS + 2 || j % 2) /* the others are named when they have come */
            svs_learner_unscaled(s.l, j);
    for (int i = 0; i < 14 * WINDOW; i++) {
        if (i % 20 == 10 && s.d < MOST) {
            assert_int_equal(svs_learner_grow(s.l, ++s.d, NULL), SVS_OK);
            svs_learner_unscaled(s.l, s.d - 1);
        }
        step(&s, i > 10 * WINDOW ? 2 : s.d - NUMBERS);
        if (i % 37 == 0)
            check(&s);
    }
    check(&s);
    if (o.forget == 1 && o.scale == SVS_SCALE_STANDARD && o.window && o.rule == SVS_ALSVM)
        check_model(&s);
    if (o.window) { /* most of the categories have gone */
        bool features[MOST], classes[4], any;
        assert_int_equal(svi_learner_held(s.l, features, classes, &any, NULL), SVS_OK);
        assert_int_equal(svi_learner_prune(s.l, features, classes, NULL), SVS_OK);
        s.d = svs_learner_dimension(s.l);
        assert_int_equal(s.d, NUMBERS + 2);
        check(&s);
    }
    assert_int_equal(archived_save(archive_learner, s.l, &kept, &err), SVS_OK);
    begin(&again, o, 0, 1);
    assert_int_equal(archived_load(archive_learner, again.l, kept.data, kept.size, &err), SVS_OK);
    for (int j = 0; j < MOST; j++)
        assert_int_equal(svi_scaler_unscaled(&again.l->scaler, j), svi_scaler_unscaled(&s.l->scaler, j));
    svs_learner_reset(again.l);
    again.d = s.d;
    for (int i = 0; i < 3 * WINDOW; i++)
        step(&again, again.d - NUMBERS);
    check(&again);
    svi_bytes_clear(&kept);
    svs_learner_free(&s.l);
    svs_learner_free(&again.l);
}

static void test_the_optimum_in_stated_coordinates(void **unused) {
    (void)unused;
    for (int kind = 0; kind < 14; kind++) {
        svs_options o;
        svs_options_default(&o);
        o.window = kind % 7 == 6 ? 0 : WINDOW;
        o.max_features = MOST;
        o.scale = kind < 7 ? SVS_SCALE_STANDARD : SVS_SCALE_NONE;
        o.labels_max = 20;
        o.forget = kind % 7 == 1 ? 0.99 : 1;
        o.rule = kind % 7 == 2 ? SVS_FALSVM : SVS_ALSVM;
        o.task = kind % 7 == 3 ? SVS_REGRESS : SVS_CLASSIFY;
        o.window_seconds = kind % 7 == 4 ? 30 : 0;
        walk(o, 100 + (uint64_t)kind);
    }
}

/* A learner that has no unscaled feature keeps nothing of them; and with `scale none` nothing
 * changes.
 */
static void test_what_stays(void **unused) {
    (void)unused;
    struct svi_bytes one = {0}, other = {0};
    struct stream a, b;
    svs_error err;
    svs_options o;
    svs_options_default(&o);
    o.window = WINDOW;
    begin(&a, o, MOST, 5);
    for (int i = 0; i < 2 * WINDOW; i++)
        step(&a, 4);
    assert_int_equal(archived_save(archive_learner, a.l, &one, &err), SVS_OK);
    for (size_t i = 0; i + 8 < one.size; i++)
        assert_memory_not_equal(one.data + i, "unscaled", 8);
    svs_learner_free(&a.l);
    o.scale = SVS_SCALE_NONE;
    begin(&a, o, MOST, 5);
    begin(&b, o, MOST, 5);
    for (int j = NUMBERS; j < MOST; j++)
        svs_learner_unscaled(b.l, j);
    for (int i = 0; i < 4 * WINDOW; i++) {
        step(&a, 4);
        step(&b, 4);
        double p[3], q[3];
        svs_learner_scores(a.l, a.x, p);
        svs_learner_scores(b.l, b.x, q);
        for (int k = 0; k < svs_learner_rows(a.l); k++)
            assert_true(fabs(p[k] - q[k]) <= 1e-10 * (1 + fabs(p[k])));
    }
    svi_bytes_clear(&one);
    svi_bytes_clear(&other);
    svs_learner_free(&a.l);
    svs_learner_free(&b.l);
}

/* What had been scaled becomes plain, from rows and from sums. */
static void test_scaled_before(void **unused) {
    (void)unused;
    for (int window = 0; window <= WINDOW; window += WINDOW) {
        struct stream s, plain;
        svs_options o;
        svs_options_default(&o);
        o.window = window;
        begin(&s, o, MOST, 9);
        begin(&plain, o, MOST, 9);
        for (int j = NUMBERS; j < MOST; j++)
            svs_learner_unscaled(plain.l, j);
        for (int i = 0; i < 2 * WINDOW + 7; i++) {
            step(&s, 4);
            step(&plain, 4);
        }
        const uint64_t version = svs_learner_version(s.l);
        for (int j = NUMBERS; j < MOST; j++)
            svs_learner_unscaled(s.l, j);
        assert_true(svs_learner_version(s.l) > version);
        check(&s);
        for (int i = 0; i < 4 * WINDOW; i++) { /* until both have the same epoch */
            step(&s, 4);
            step(&plain, 4);
        }
        svi_learner_rebuild(s.l);
        svi_learner_rebuild(plain.l);
        double p[3], q[3];
        svs_learner_scores(s.l, s.x, p);
        svs_learner_scores(plain.l, s.x, q);
        for (int k = 0; k < 3; k++)
            assert_true(fabs(p[k] - q[k]) <= 1e-8 * (1 + fabs(p[k])));
        svs_learner_unscaled(s.l, -1);
        svs_learner_unscaled(s.l, o.max_features);
        svs_learner_free(&s.l);
        svs_learner_free(&plain.l);
    }
}

/* A refit standardises as its snapshot says. */
static void test_snapshot(void **unused) {
    (void)unused;
    struct svi_snapshot snapshot = {0};
    struct stream s;
    svs_options o;
    svs_options_default(&o);
    o.window = WINDOW;
    begin(&s, o, MOST, 11);
    for (int j = NUMBERS; j < MOST; j++)
        svs_learner_unscaled(s.l, j);
    for (int i = 0; i < 3 * WINDOW; i++)
        step(&s, 4);
    assert_int_equal(svi_snapshot_begin(&snapshot, s.l, NULL), SVS_OK);
    for (int j = 0; j < snapshot.d; j++)
        assert_int_equal(snapshot.mean[j] == 0 && snapshot.inverse[j] == 1, j >= NUMBERS);
    svi_snapshot_drop(&snapshot, s.l);
    svi_snapshot_clear(&snapshot);
    svs_learner_free(&s.l);
}

/* Numbers minus mean over deviation, categories as they are: solved here, and by a refit. */
static void test_refit(void **unused) {
    (void)unused;
    static double z[WINDOW * (NUMBERS + 4)], y[WINDOW];
    const int d = NUMBERS + 4;
    struct svi_settings *settings = calloc(1, sizeof *settings);
    struct svi_refit_policy policy;
    struct stream s;
    svs_options o;
    svs_options_default(&o);
    o.window = WINDOW;
    begin(&s, o, d, 12);
    for (int j = NUMBERS; j < d; j++)
        svs_learner_unscaled(s.l, j);
    for (int i = 0; i < 3 * WINDOW; i++)
        step(&s, 4);
    svi_settings_default(settings);
    settings->method = SVI_METHOD_ALSVM;
    settings->refit = SVS_SOLVER_NEWTON;
    settings->refit_tol = 1e-9;
    settings->window = WINDOW;
    assert_int_equal(svi_refit_policy_new(&policy, settings, NULL), SVS_OK);
    assert_int_equal(svi_refit_policy_start_now(&policy, s.l, s.number, NULL), SVS_OK);
    struct svi_refit *job = svi_refit_policy_take(&policy);
    int n = 0;
    for (int32_t i = 0; i < s.l->window.count; i++) {
        const int32_t slot = svi_ring_at(&s.l->window, i);
        const double *x = svi_ring_row(&s.l->window, slot);
        for (int j = 0; svi_ring_live(&s.l->window, slot) && j < d; j++)
            z[n * d + j] = j < NUMBERS ? (x[j] - s.l->scaler.mean[j]) * s.l->scaler.inverse[j] : x[j];
        if (svi_ring_live(&s.l->window, slot))
            y[n++] = svi_ring_label(&s.l->window, slot) == 0 ? 1 : -1;
    }
    svi_refit_run(job);
    assert_int_equal(job->error.code, SVS_OK);
    const svs_rows rows = {.n = n, .d = d, .dense = z, .stride = d};
    const svs_problem problem = {.rows = rows, .y = y, .C = settings->C, .p = job->how.p, .bias_value = 1};
    svs_solve_options how;
    svs_solution solved;
    svs_solve_options_default(&how);
    how.solver = SVS_SOLVER_NEWTON;
    how.tol = 1e-9;
    assert_int_equal(svs_solve(&problem, &how, NULL, &solved, NULL), SVS_OK);
    for (int j = 0; j < d; j++)
        assert_true(fabs(job->result.W[j] - solved.w[j] * (j < NUMBERS ? s.l->scaler.inverse[j] : 1)) < 1e-4);
    svs_solution_clear(&solved);
    assert_int_equal(svi_refit_policy_give(&policy, s.l, d, s.number), SVI_REFIT_ADOPTED);
    svi_refit_policy_free(&policy);
    svs_learner_free(&s.l);
    free(settings);
}

/* A category that goes is no reason to rebuild P; a column of large values is. */
static void test_energy(void **unused) {
    (void)unused;
    for (int large = 0; large < 2; large++) {
        struct stream s;
        svs_options o;
        svs_step out;
        svs_health h;
        svs_options_default(&o);
        o.window = WINDOW;
        begin(&s, o, 12, 21);
        for (int j = 1; j < 12; j++)
            svs_learner_unscaled(s.l, j);
        for (int i = 0; i < 20 * WINDOW; i++) {
            double x[12] = {test_normal(&s.seed)};
            x[1 + i / 30 % 11] = large ? 1e6 : 1;
            const svs_sample sample = {
                .x = x, .d = 12, .id = svs_none(), .y = svs_int(x[0] > 0), .weight = 1};
            assert_int_equal(svs_learner_step(s.l, &sample, i, &out, NULL), SVS_OK);
            assert_true(i % 10 || svs_learner_check(s.l) < 1e-10);
        }
        svs_learner_health(s.l, &h);
        assert_int_equal(h.alarms > 0, large);
        svs_learner_free(&s.l);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refit),
        cmocka_unit_test(test_energy),
        cmocka_unit_test(test_the_optimum_in_stated_coordinates),
        cmocka_unit_test(test_what_stays),
        cmocka_unit_test(test_scaled_before),
        cmocka_unit_test(test_snapshot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
