/* A feature that no held sample has is given to something else: the learner goes on like one in which that
 * feature had always been 0, bit for bit the same when it was kept and taken back; and refits forget it. */
#include "support/problem.h"

#include "config/settings.h"
#include "learner/learner_archive.h"
#include "learner/learner_internal.h"
#include "learner/learner_prune.h"
#include "learner/learner_renew.h"
#include "refit/refit_policy.h"
#include "support/archived.h"

enum { NUMBERS = 2, MOST = 160, WINDOW = 80 };

struct stream {
    svs_learner *l;
    int d, number;
    uint64_t seed;
    double x[MOST];
};

static void archive_learner(struct svi_archive *a, void *l) {
    svi_learner_archive(a, l);
}

static void begin(struct stream *s, const svs_options *o, int d, uint64_t seed, bool unscaled) {
    *s = (struct stream){.d = d, .seed = seed};
    assert_non_null(s->l = svs_learner_new(o, d, NULL));
    for (int j = NUMBERS; unscaled && j < d; j++)
        svs_learner_unscaled(s->l, j);
}

/* One of `categories`; the last column is left out where `hidden`. Some labels come late. */
static void step(struct stream *s, int categories, bool hidden) {
    svs_step out;
    const int c = (int)(test_random(&s->seed) % (uint64_t)categories), k = (int)(test_random(&s->seed) % 2);
    memset(s->x, 0, sizeof s->x);
    for (int j = 0; j < NUMBERS; j++)
        s->x[j] = (1 + 9 * j) * (test_normal(&s->seed) + 2 * k);
    s->x[NUMBERS + c] = hidden && NUMBERS + c == s->d - 1 ? 0 : 1;
    const bool late = s->number % 5 == 0;
    const svs_value y = s->l->o.task == SVS_REGRESS ? svs_real(s->x[0] + c) : svs_int((k + (c == 1)) % 3);
    const svs_sample sample = {
        .x = s->x, .d = s->d, .id = svs_int(s->number), .y = late ? svs_none() : y, .weight = 1};
    assert_int_equal(svs_learner_step(s->l, &sample, s->number, &out, NULL), SVS_OK);
    if (late)
        svs_learner_label(s->l, svs_int(s->number - 10), y, s->number, &out, NULL);
    s->number++;
}

static bool is_held(const struct stream *s, int feature) {
    bool features[MOST], classes[8], any;
    assert_int_equal(svi_learner_held(s->l, features, classes, &any, NULL), SVS_OK);
    return features[feature];
}

/* Rounding may have left some. */
static bool has_weight(const struct stream *s, int feature) {
    bool any = false;
    for (int k = 0; k < svs_learner_rows(s->l); k++)
        any |= svs_alsvm_weights(s->l->m, k)[1 + feature] != 0;
    return any;
}

/* The models agree to rounding. */
static void assert_close(struct stream *a, struct stream *b, double most) {
    double w[8], v[8];
    for (int i = 0; i < 4; i++) {
        double x[MOST] = {test_normal(&a->seed), 9 * test_normal(&a->seed)};
        test_normal(&b->seed), test_normal(&b->seed);
        x[NUMBERS + (i < 3 ? i : a->d - 1 - NUMBERS)] = 1;
        svs_learner_scores(a->l, x, w);
        svs_learner_scores(b->l, x, v);
        for (int k = 0; k < svs_learner_rows(a->l); k++)
            if (!(fabs(w[k] - v[k]) <= most * (1 + fabs(v[k]))))
                fail_msg("%.17g is not %.17g", w[k], v[k]);
    }
}

static void assert_new(struct stream *s, int feature) {
    double one[MOST + 1] = {0}, column[MOST + 1];
    one[1 + feature] = 1;
    svi_alsvm_inverse_times(s->l->m, one, column);
    for (int j = 0; j <= s->l->d; j++)
        assert_true(column[j] == (j == 1 + feature ? 1 / svi_ridge_weight(s->l, j) : 0));
    for (int k = 0; k < svs_learner_rows(s->l); k++)
        assert_true(svs_alsvm_weights(s->l->m, k)[1 + feature] == 0);
    assert_true(s->l->scaler.mean[feature] == 0 && s->l->scaler.inverse[feature] == 1);
    assert_true(s->l->energy->energy[1 + feature] == 0 && s->l->energy->peak[1 + feature] == 0);
}

static void check_solved(struct stream *s) {
    double error;
    assert_int_equal(svi_learner_verify(s->l, &error, NULL), SVS_OK);
    assert_true(error < 1e-10);
}

static void walk(const svs_options *o, int d, bool unscaled, uint64_t seed) {
    struct stream a, b, again;
    struct svi_bytes kept = {0}, other = {0};
    svs_error err;
    const int categories = d - NUMBERS, feature = d - 1;
    const bool twins =
        unscaled && o->rule == SVS_ALSVM; /* with the same samples learned, in the same epochs */
    begin(&a, o, d, seed, unscaled);
    begin(&b, o, d, seed, unscaled);
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < 150 + 7 * turn; i++) {
            step(&a, categories, false);
            step(&b, categories, turn == 0);
        }
        int left = 0;
        for (; left < 4 * WINDOW && is_held(&a, feature); left++) {
            step(&a, categories - 1, false);
            step(&b, categories - 1, false);
        }
        assert_true(left < 4 * WINDOW);
        const uint64_t version = svs_learner_version(a.l);
        const bool left_over = has_weight(&a, feature) || a.l->scaler.mean[feature] != 0;
        svi_learner_renew(a.l, feature);
        assert_int_equal(svs_learner_version(a.l), version + left_over);
        assert_new(&a, feature);
        check_solved(&a);
        svi_learner_renew(a.l, feature);
        assert_int_equal(svs_learner_version(a.l), version + left_over);
        svi_learner_renew(b.l, feature);      /* was 0 in it at first, and nothing changes then */
        if (o->scale == SVS_SCALE_STANDARD) { /* an energy that dropped began an epoch in one of them */
            svi_learner_rebuild(a.l);
            svi_learner_rebuild(b.l);
        }
        if (twins)
            assert_close(&a, &b, 1e-12);
        for (int i = 0; i < 20; i++) {
            step(&a, categories, false);
            step(&b, categories, false);
            if (twins)
                assert_close(&a, &b, 1e-12);
        }
        check_solved(&a);
    }
    svi_learner_renew(a.l, -1);
    svi_learner_renew(a.l, d);
    assert_int_equal(archived_save(archive_learner, a.l, &kept, &err), SVS_OK);
    again = a;
    assert_non_null(again.l = svs_learner_new(o, 0, NULL));
    assert_int_equal(archived_load(archive_learner, again.l, kept.data, kept.size, &err), SVS_OK);
    for (int i = 0; i < 2 * WINDOW; i++) {
        if (i == 10) { /* whatever is pending */
            svi_learner_renew(a.l, 2);
            svi_learner_renew(again.l, 2);
        }
        step(&a, categories, false);
        step(&again, categories, false);
    }
    assert_int_equal(archived_save(archive_learner, a.l, &kept, &err), SVS_OK);
    assert_int_equal(archived_save(archive_learner, again.l, &other, &err), SVS_OK);
    assert_true(archived_same(&kept, &other));
    svi_bytes_clear(&kept);
    svi_bytes_clear(&other);
    svs_learner_free(&a.l);
    svs_learner_free(&b.l);
    svs_learner_free(&again.l);
}

static void test_like_a_new_one(void **unused) {
    (void)unused;
    for (int kind = 0; kind < 16; kind++) {
        svs_options o;
        svs_options_default(&o);
        o.window = WINDOW;
        o.max_features = MOST;
        o.labels_max = 20;
        o.forget = kind % 8 == 1 || kind % 8 == 5 ? 0.98 : 1;
        o.rule = kind % 8 == 2 ? SVS_FALSVM : SVS_ALSVM;
        o.task = kind % 8 == 3 ? SVS_REGRESS : SVS_CLASSIFY;
        o.window_seconds = kind % 8 == 4 || kind % 8 == 5 ? 50 : 0;
        o.scale = kind < 8 ? SVS_SCALE_STANDARD : SVS_SCALE_NONE;
        const int d = kind % 8 == 6 ? 130 : kind % 8 == 7 ? 40 : NUMBERS + 4;
        walk(&o, d, true, 10 + (uint64_t)kind);
        if (kind == 0)
            walk(&o, d, false, 30);
    }
}

/* Nothing is held: what the sums have of it goes. */
static void test_without_a_window(void **unused) {
    (void)unused;
    struct stream s;
    svs_options o;
    svs_options_default(&o);
    o.window = 0;
    begin(&s, &o, NUMBERS + 4, 3, true);
    for (int i = 0; i < 300; i++) {
        step(&s, 4, false);
        if (i % 90 != 50)
            continue;
        svi_learner_renew(s.l, NUMBERS + i % 4);
        assert_new(&s, NUMBERS + i % 4);
        check_solved(&s);
    }
    check_solved(&s);
    svs_learner_free(&s.l);
}

/* ---- refits */

static void open_policy(struct svi_refit_policy *p, struct svi_settings *settings, svs_solver solver) {
    svi_settings_default(settings);
    settings->method = SVI_METHOD_ALSVM;
    settings->window = WINDOW;
    settings->max_features = MOST;
    settings->refit = (int)solver;
    settings->refit_every = 1000000;
    assert_int_equal(svi_refit_policy_new(p, settings, NULL), SVS_OK);
}

static struct svi_refit *solve(struct svi_refit_policy *p, struct stream *s) {
    assert_int_equal(svi_refit_policy_start_now(p, s->l, s->number, NULL), SVS_OK);
    struct svi_refit *job = svi_refit_policy_take(p);
    assert_non_null(job);
    svi_refit_run(job);
    assert_int_equal(job->error.code, SVS_OK);
    return job;
}

static double weight(const struct svi_refit_policy *p, int feature) {
    double most = 0;
    for (int k = 0; k < p->model.rows; k++)
        most = fmax(most, fabs(p->model.W[k * p->model.d + feature]));
    return most;
}

static void check_refit(svs_solver solver) {
    struct svi_refit_policy p, replay;
    struct svi_settings *settings = calloc(1, sizeof *settings);
    struct svi_bytes record = {0};
    struct stream s;
    svs_options o;
    const int feature = NUMBERS + 3;
    svs_options_default(&o);
    o.window = WINDOW;
    o.max_features = MOST;
    begin(&s, &o, feature + 1, 77, true);
    open_policy(&p, settings, solver);
    open_policy(&replay, settings, solver);
    for (int i = 0; i < 2 * WINDOW; i++)
        step(&s, 4, false);
    solve(&p, &s);
    assert_int_equal(svi_refit_policy_give(&p, s.l, s.d, s.number), SVI_REFIT_ADOPTED);
    assert_true(weight(&p, feature) > 0);
    struct svi_refit *job = solve(&p, &s); /* away, while the feature becomes another */
    for (int i = 0; i < WINDOW + 20; i++)
        step(&s, 3, false);
    svi_learner_renew(s.l, feature);
    const uint64_t version = p.model.version;
    assert_true(svi_refit_policy_renew(&p, s.l, feature));
    assert_true(weight(&p, feature) == 0 && p.model.version > version);
    assert_false(svi_refit_policy_renew(&p, s.l, feature));
    assert_false(svi_refit_policy_renew(&p, s.l, -1));
    for (int i = 0; i < 10; i++)
        step(&s, 4, false);
    assert_int_equal(svi_refit_pack(job, &record), SVS_OK);
    assert_int_equal(svi_refit_policy_give(&p, s.l, s.d, s.number), SVI_REFIT_ADOPTED);
    assert_true(weight(&p, feature) == 0 && weight(&p, feature - 1) > 0);
    /* A replay takes the record as it is, whatever was renewed meanwhile. */
    assert_true(svi_refit_policy_start_now(&replay, s.l, s.number, NULL) == SVS_OK);
    svi_refit_policy_renew(&replay, s.l, feature - 1);
    assert_int_equal(svi_refit_policy_repeat(&replay, s.l, record.data, record.size, NULL), SVS_OK);
    assert_int_equal(svi_refit_policy_give(&replay, s.l, s.d, s.number), SVI_REFIT_ADOPTED);
    assert_memory_equal(p.W, replay.W, (size_t)(p.model.rows * p.model.d) * sizeof(double));
    /* The next one has what came since, from a Gram matrix that was kept and from a fresh one. */
    for (int i = 0; i < 30; i++)
        step(&s, 4, false);
    svi_refit_policy_free(&replay);
    open_policy(&replay, settings, solver);
    solve(&p, &s);
    assert_int_equal(svi_refit_policy_give(&p, s.l, s.d, s.number), SVI_REFIT_ADOPTED);
    solve(&replay, &s);
    assert_int_equal(svi_refit_policy_give(&replay, s.l, s.d, s.number), SVI_REFIT_ADOPTED);
    assert_true(weight(&p, feature) > 0);
    for (int i = 0; i < p.model.rows * p.model.d; i++)
        assert_true(fabs(p.W[i] - replay.W[i]) < 2e-2);
    svi_bytes_clear(&record);
    svi_refit_policy_free(&p);
    svi_refit_policy_free(&replay);
    svs_learner_free(&s.l);
    free(settings);
}

static void test_refits(void **unused) {
    (void)unused;
    check_refit(SVS_SOLVER_DCD);
    check_refit(SVS_SOLVER_ALM);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_like_a_new_one),
        cmocka_unit_test(test_without_a_window),
        cmocka_unit_test(test_refits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
