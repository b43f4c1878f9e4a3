/* Refits as the engine's surroundings see them: when they are due, what they publish, which model serves. */
#include "support/engine.h"
#include "support/problem.h"
#include "store/checkpoint_file.h"
#include "support/apply.h"

struct stream {
    struct speaker f;
    uint64_t random;
    double x[2];
    int n;
};

static void open_stream(struct stream *s, const char *const *settings) {
    speaker_open(&s->f, settings);
    s->random = 12345;
    s->n = 0;
}

/* A noisy line between two classes. */
static void next_sample(struct stream *s) {
    s->x[0] = test_normal(&s->random);
    s->x[1] = test_normal(&s->random);
    int y = s->x[0] - 2 * s->x[1] + 0.3 + 0.5 * test_normal(&s->random) > 0;
    assert_int_equal(say(&s->f, "{'x': [%.17g, %.17g], 'y': %d, 'id': %d}", s->x[0], s->x[1], y, s->n++),
                     SVS_OK);
}

static void next_samples(struct stream *s, int count) {
    for (int i = 0; i < count; i++)
        next_sample(s);
}

/* The job that is due; some further samples may have to come until its snapshot is whole. */
static void run_job(struct stream *s) {
    struct svi_refit *job = svi_engine_refit_take(svi_stream_root(s->f.e));
    for (int i = 0; i < 20 && !job; i++) {
        next_sample(s);
        job = svi_engine_refit_take(svi_stream_root(s->f.e));
    }
    assert_non_null(job);
    svi_refit_run(job);
    if (job->error.code != SVS_OK)
        fail_msg("%s", job->error.text);
    svi_engine_refit_give(svi_stream_root(s->f.e));
}

static const char *const small[] = {"window",          "100", "refit.every", "50", "publish.every", "0",
                                    "publish.seconds", "0",   NULL};

static void test_due(void **unused) {
    (void)unused;
    struct stream s;
    open_stream(&s, small);
    next_samples(&s, 49);
    assert_null(svi_engine_refit_take(svi_stream_root(s.f.e)));
    next_samples(&s, 2); /* due at 50, and the snapshot is whole one step later at the latest */
    struct svi_refit *job = svi_engine_refit_take(svi_stream_root(s.f.e));
    assert_non_null(job);
    assert_int_equal(job->begun, 50);
    assert_int_equal(job->snapshot.count, 50);
    assert_null(svi_engine_refit_take(svi_stream_root(s.f.e)));
    next_samples(&s, 100); /* two more were due while it was away */
    assert_int_equal(stat(&s.f, "refits_skipped"), 2);
    int before = s.f.count[SVI_TOPIC_MODEL];
    svi_refit_run(job);
    svi_engine_refit_give(svi_stream_root(s.f.e));
    assert_int_equal(stat(&s.f, "refits"), 1);
    assert_int_equal(stat(&s.f, "refit_at"), 151);
    assert_true(stat(&s.f, "refit_gap") <= 1e-3 * stat(&s.f, "refit_objective"));
    assert_int_equal(s.f.count[SVI_TOPIC_MODEL], before + 2); /* the refit, and again the one that serves */
    assert_string_equal(text_of(s.f.last[SVI_TOPIC_MODEL], "method"), "alsvm");
    assert_true(json_is_true(json_object_get(s.f.last[SVI_TOPIC_MODEL], "serves")));
    speaker_close(&s.f);
}

/* While it serves, a score is the published refit's of that version, and nobody else's. */
static void test_serve_refit(void **unused) {
    (void)unused;
    struct stream s;
    const char *settings[] = {"window", "100",   "refit.every", "50", "publish.every", "0", "publish.seconds",
                              "0",      "serve", "refit",       NULL};
    open_stream(&s, settings);
    next_samples(&s, 51);
    double online = number(s.f.last[SVI_TOPIC_SCORE], "model");
    run_job(&s);
    json_t *m = json_deep_copy(s.f.last[SVI_TOPIC_MODEL]);
    assert_string_equal(text_of(m, "method"), "newton");
    assert_true(json_is_true(json_object_get(m, "serves")));
    assert_true(number(m, "version") > online);
    assert_int_equal(number(m, "at"), 51);
    assert_true(number(m, "milliseconds") >= 0 && number(m, "iterations") >= 1 && number(m, "objective") > 0);
    for (int i = 0; i < 40; i++) {
        next_sample(&s);
        json_t *score = s.f.last[SVI_TOPIC_SCORE];
        assert_true(number(score, "model") == number(m, "version"));
        svs_model now;
        const struct svi_figure *quality;
        int count;
        assert_int_equal(svi_engine_model(svi_stream_root(s.f.e), &now, &quality, &count, NULL), SVS_OK);
        assert_true(now.refit && now.serves && (double)now.version == number(m, "version"));
        double expected;
        svs_model_scores(&now, s.x, &expected);
        assert_true(json_real_value(json_array_get(json_object_get(score, "scores"), 0)) == expected);
    }
    json_decref(m);
    speaker_close(&s.f);
}

static void test_best_is_the_better(void **unused) {
    (void)unused;
    struct stream s;
    const char *settings[] = {"window", "400", "refit.every", "400", "publish.every", "0", "serve",
                              "best",   "C",   "1e-6",        NULL};
    open_stream(&s, settings); /* so small a C cripples both alike: neither must take over */
    next_samples(&s, 401);
    run_job(&s);
    next_samples(&s, 300);
    assert_true(stat(&s.f, "accuracy_online") > 0.5 && stat(&s.f, "accuracy_refit") > 0.5);
    double online = stat(&s.f, "accuracy_online"), refit = stat(&s.f, "accuracy_refit");
    json_t *model = ask(&s.f, "{'op': 'model'}");
    bool serves_refit = strcmp(text_of(json_object_get(model, "model"), "method"), "newton") == 0;
    assert_true(serves_refit ? refit > online : refit <= online + 0.02);
    json_decref(model);
    speaker_close(&s.f);
}

/* What the refit solves is the window: the same objective as a plain solve on the samples held. */
static void solves_the_window(const char *class_weight, double of_one) {
    struct stream s;
    const char *settings[] = {"window", "60",        "refit.every",  "90",         "scale",
                              "none",   "refit.tol", "1e-9",         "refit.loss", "l1",
                              "C",      "3",         "class.weight", class_weight, NULL};
    double x[90][2], y[90], cost[90];
    open_stream(&s, settings);
    for (int i = 0; i < 90; i++) {
        next_sample(&s);
        x[i][0] = s.x[0];
        x[i][1] = s.x[1];
        y[i] = number(s.f.last[SVI_TOPIC_SCORE], "y") > 0 ? 1 : -1;
        cost[i] = y[i] > 0 ? of_one : 1;
    }
    bool first_is_one = y[0] > 0; /* positive = the class seen second */
    for (int i = 0; i < 90; i++)
        y[i] = first_is_one ? -y[i] : y[i];
    run_job(&s);
    svs_problem p = {.rows = {.n = 60, .d = 2, .dense = x[30], .stride = 2},
                     .y = y + 30,
                     .cost = cost + 30,
                     .C = 3,
                     .p = 1,
                     .bias_value = 1};
    svs_solution plain = test_solve(&p, SVS_SOLVER_NEWTON, 1e-9, NULL);
    assert_true(fabs(stat(&s.f, "refit_objective") - plain.objective) <= 1e-8 * plain.objective);
    svs_solution_clear(&plain);
    speaker_close(&s.f);
}

static void test_solves_the_window(void **unused) {
    (void)unused;
    solves_the_window("none", 1);
    solves_the_window("1=7", 7);
}

/* From refit to refit with the Gram matrix and the duals kept: each as good as one from nothing. */
static void test_warm(void **unused) {
    (void)unused;
    static const char *const solvers[] = {"auto", "alm", "dcd", "alm-inexact"};
    for (int k = 0; k < 4; k++) {
        struct stream s, fresh;
        const char *settings[] = {"window",   "300",       "refit.every", "40", "refit",
                                  solvers[k], "refit.tol", "1e-6",        NULL};
        open_stream(&s, settings);
        for (int i = 0; i < 30; i++) {
            next_samples(&s, i ? 40 : 41);
            json_decref(ask(&s.f, "{'op': 'forget', 'id': %d}", s.n - 20));
            run_job(&s);
        }
        open_stream(&fresh, settings);
        fresh.random = s.random;
        double warm = stat(&s.f, "refit_objective");
        assert_int_equal(stat(&s.f, "refits"), 30);
        assert_true(stat(&s.f, "refit_gap") <= 1e-6 * warm);
        speaker_close(&fresh.f);
        speaker_close(&s.f);
    }
}

static void test_overtaken(void **unused) {
    (void)unused;
    struct stream s;
    open_stream(&s, small);
    next_samples(&s, 51);
    struct svi_refit *job = svi_engine_refit_take(svi_stream_root(s.f.e));
    svi_refit_run(job);
    say(&s.f, "{'x': [1, 1], 'y': 7}"); /* a third class: other rows of W */
    svi_engine_refit_give(svi_stream_root(s.f.e));
    assert_int_equal(stat(&s.f, "refits_discarded"), 1);
    assert_int_equal(stat(&s.f, "refits"), 0);
    next_samples(&s, 51);
    job = svi_engine_refit_take(svi_stream_root(s.f.e));
    assert_non_null(job);
    svi_refit_run(job);
    json_decref(ask(&s.f, "{'op': 'reset'}"));
    svi_engine_refit_give(svi_stream_root(s.f.e));
    assert_int_equal(stat(&s.f, "refits_discarded"), 2);
    next_samples(&s, 120);
    run_job(&s);
    assert_int_equal(stat(&s.f, "refits"), 1);
    speaker_close(&s.f);
}

static void test_failure_is_told(void **unused) {
    (void)unused;
    struct stream s;
    const char *settings[] = {"window",    "100",   "refit.every", "50",   "refit", "alm-inexact",
                              "refit.tol", "1e-12", "scale",       "none", NULL};
    open_stream(&s, settings);
    for (int i = 0; i < 51; i++)
        say(&s.f, "{'x': [%d, %.3f], 'y': %d}", 10000 * (i % 7), 0.001 * (i % 3), (i / 2) % 2);
    struct svi_refit *job = svi_engine_refit_take(svi_stream_root(s.f.e));
    svi_refit_run(job);
    assert_int_equal(job->error.code, SVS_NOT_CONVERGED);
    svi_engine_refit_give(svi_stream_root(s.f.e));
    assert_int_equal(stat(&s.f, "refits_failed"), 1);
    assert_int_equal(stat(&s.f, "refits"), 0);
    const struct svi_figure *figures;
    int count = svi_stream_figures(s.f.e, NULL, NOW, &figures), told = 0;
    for (int i = 0; i < count; i++)
        told += strcmp(figures[i].name, "refit_error") == 0 && strstr(figures[i].as.text, "gap") != NULL;
    assert_int_equal(told, 1);
    speaker_close(&s.f);
}

static void test_on_request(void **unused) {
    (void)unused;
    struct stream s;
    open_stream(&s, small);
    json_t *r = ask(&s.f, "{'op': 'refit'}");
    assert_string_equal(text_of(r, "code"), "unavailable"); /* nothing to do */
    json_decref(r);
    next_samples(&s, 20);
    r = ask(&s.f, "{'op': 'refit'}");
    assert_true(json_is_true(json_object_get(r, "ok")));
    json_decref(r);
    r = ask(&s.f, "{'op': 'refit'}");
    assert_string_equal(text_of(r, "code"), "unavailable"); /* one is under way */
    json_decref(r);
    run_job(&s);
    assert_int_equal(stat(&s.f, "refits"), 1);
    speaker_close(&s.f);
    const char *off[] = {"refit", "none", NULL};
    open_stream(&s, off);
    next_samples(&s, 20);
    r = ask(&s.f, "{'op': 'refit'}");
    assert_string_equal(text_of(r, "code"), "unavailable");
    json_decref(r);
    speaker_close(&s.f);
}

/* However the samples are framed: the same bytes when refits take effect at the same samples. */
static void test_framing(void **unused) {
    (void)unused;
    struct svi_bytes deeds[2] = {{0}, {0}};
    for (int k = 0; k < 2; k++) {
        struct stream s;
        const char *settings[] = {"window", "100", "refit.every", "50", "serve", "best", NULL};
        open_stream(&s, settings);
        struct svi_bytes frame = {0};
        for (int i = 0; i < 300; i++) {
            double a = sin(i), b = cos(3.0 * i);
            int y = a + b + 0.3 * sin(17.0 * i) > 0;
            if (k == 0) {
                say(&s.f, "{'x': [%.17g, %.17g], 'y': %d}", a, b, y);
            } else {
                speaker_build(&s.f, "{'x': [%.17g, %.17g], 'y': %d}", a, b, y);
                if (i % 4 == 0) {
                    const uint8_t head = 0x94;
                    frame.size = 0;
                    svi_bytes_append(&frame, &head, 1);
                }
                svi_bytes_append(&frame, s.f.frame.data, s.f.frame.size);
                if (i % 4 == 3)
                    apply_bytes(s.f.e, frame.data, frame.size, NOW, false, NULL);
            }
            if (i == 119 || i == 239)
                run_job(&s);
        }
        svi_bytes_append(&deeds[k], s.f.deeds.data, s.f.deeds.size);
        svi_bytes_clear(&frame);
        speaker_close(&s.f);
    }
    /* milliseconds are the clock's: the two model events of each refit may differ in them, and in nothing
     * else */
    assert_int_equal(deeds[0].size, deeds[1].size);
    svi_bytes_clear(&deeds[0]);
    svi_bytes_clear(&deeds[1]);
}

/* When a part of the journal is lost, its refits may know features that no sample left has brought. */
static void test_features_that_are_lost(void **unused) {
    (void)unused;
    struct stream wide, narrow;
    struct svi_bytes record = {0};
    svs_error err;
    struct svi_checkpoint c = {0};
    open_stream(&wide, small);
    open_stream(&narrow, small);
    for (int i = 0; i < 60; i++) {
        say(&wide.f, "{'x': {'a': %d, 'b': 1, 'c': %d}, 'y': %d}", i % 7, i % 3, i % 2);
        say(&narrow.f, "{'x': {'a': %d}, 'y': %d}", i % 7, i % 2);
    }
    struct svi_refit *job = svi_engine_refit_take(svi_stream_root(wide.f.e));
    assert_non_null(job);
    svi_refit_run(job);
    assert_int_equal(job->error.code, SVS_OK);
    assert_int_equal(job->result.d, 3);
    assert_int_equal(svi_refit_pack(job, &record), SVS_OK);
    svi_engine_refit_give(svi_stream_root(wide.f.e));
    assert_int_equal(svi_engine_refit_repeat(svi_stream_root(narrow.f.e), record.data, record.size, &err),
                     SVS_OK);
    assert_int_equal(stat(&narrow.f, "refits"), 0);
    assert_int_equal(stat(&narrow.f, "refits_discarded"), 1);
    assert_int_equal(say(&narrow.f, "{'x': {'a': 1}, 'y': 1}"), SVS_OK);
    assert_int_equal(svi_stream_save(narrow.f.e, &c, &err), SVS_OK);
    svi_stream *again = svi_stream_new(&narrow.f.s, 77, speaker_sink, &narrow.f, &err);
    if (svi_stream_load(again, &c, &err) != SVS_OK)
        fail_msg("%s", err.text);
    svi_stream_free(&again);
    svi_checkpoint_clear(&c);
    svi_bytes_clear(&record);
    speaker_close(&wide.f);
    speaker_close(&narrow.f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_due),
        cmocka_unit_test(test_serve_refit),
        cmocka_unit_test(test_best_is_the_better),
        cmocka_unit_test(test_solves_the_window),
        cmocka_unit_test(test_warm),
        cmocka_unit_test(test_overtaken),
        cmocka_unit_test(test_failure_is_told),
        cmocka_unit_test(test_on_request),
        cmocka_unit_test(test_framing),
        cmocka_unit_test(test_features_that_are_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
