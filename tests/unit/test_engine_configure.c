/* Settings that change while the stream runs: the engine goes on as one that was made of what is held, what
 * it says of it, and that its checkpoints and journal go on the same way. */
#include "support/engine.h"
#include "support/problem.h"

#include "engine/engine_internal.h"
#include "fleet/fleet.h"
#include "learner/learner_held.h"
#include "config/settings_record.h"
#include "state/record.h"
#include "store/checkpoint_file.h"

static bool ok(const json_t *reply) {
    return json_is_true(json_object_get(reply, "ok"));
}

/* Two features, two classes; labels come late for every fourth. */
static void feed(struct speaker *f, uint64_t *random, int from, int count, bool late) {
    for (int i = from; i < from + count; i++) {
        const double a = test_normal(random), b = test_normal(random);
        f->now = NOW + i;
        if (late && i % 4 == 3) {
            say(f, "{'x': [%.17g, %.17g], 'id': %d}", a, b, i);
            say(f, "{'op': 'label', 'id': %d, 'y': %d}", i - 8, a > b);
        } else {
            say(f, "{'x': [%.17g, %.17g], 'y': %d, 'id': %d}", a, b, i % 2, i);
        }
    }
}

static void set(struct speaker *f, const char *what) {
    json_t *reply = ask(f, "{'op': 'config', 'set': %s}", what);
    if (!ok(reply))
        fail_msg("%s: %s", what, text_of(reply, "error"));
    json_decref(reply);
}

static void hash_of(struct speaker *f, char *hash) {
    assert_int_equal(svi_stream_hash(f->e, hash, NULL), SVS_OK);
}

/* Nothing is changed by it, and nobody is reported but who asked. */
static void refused(struct speaker *f, const char *what, svs_code code, const char *part) {
    char before[SVI_HASH_TEXT], after[SVI_HASH_TEXT];
    const int errors = f->count[SVI_TOPIC_ERROR];
    hash_of(f, before);
    json_t *reply = ask(f, "{'op': 'config', 'set': %s}", what);
    if (strcmp(text_of(reply, "code"), svs_code_name(code)) != 0 || !strstr(text_of(reply, "error"), part))
        fail_msg("%s: %s, %s", what, text_of(reply, "code"), text_of(reply, "error"));
    json_decref(reply);
    hash_of(f, after);
    assert_string_equal(before, after);
    assert_int_equal(f->count[SVI_TOPIC_ERROR], errors);
}

/* A second engine from the state of the first. */
static void load(struct speaker *to, struct speaker *from) {
    struct svi_checkpoint c = {0};
    struct svi_settings s;
    svs_error err;
    char one[SVI_HASH_TEXT], other[SVI_HASH_TEXT];
    assert_int_equal(svi_stream_save(from->e, &c, &err), SVS_OK);
    assert_int_equal(svi_settings_unpack(&s, "test", c.settings.data, c.settings.size, &err), SVS_OK);
    speaker_open(to, NULL);
    svi_stream_free(&to->e);
    to->s = s;
    assert_non_null(to->e = svi_stream_new(&to->s, 77, speaker_sink, to, &err));
    to->control.stream = to->e;
    if (svi_stream_load(to->e, &c, &err) != SVS_OK)
        fail_msg("%s", err.text);
    memcpy(to->count, from->count, sizeof to->count);
    svi_checkpoint_clear(&c);
    hash_of(from, one);
    hash_of(to, other);
    assert_string_equal(one, other);
}

/* The state can be taken up again, and goes on bit for bit. */
static void goes_on_when_loaded(struct speaker *f, uint64_t random, int from) {
    struct speaker g;
    char one[SVI_HASH_TEXT], other[SVI_HASH_TEXT];
    uint64_t same = random;
    load(&g, f);
    f->deeds.size = g.deeds.size = 0;
    feed(f, &random, from, 150, true);
    feed(&g, &same, from, 150, true);
    assert_int_equal(f->deeds.size, g.deeds.size);
    assert_memory_equal(f->deeds.data, g.deeds.data, f->deeds.size);
    hash_of(f, one);
    hash_of(&g, other);
    assert_string_equal(one, other);
    speaker_close(&g);
}

static const char *const small[] = {"window", "100", "publish.seconds", "0", "refit", "none", NULL};

/* What it tells, and that the scores are those of an engine that has seen what is held, and nothing else. */
static void test_made_again(void **unused) {
    (void)unused;
    struct speaker f, g;
    uint64_t random = 7, held;
    const char *const other[] = {"window", "400",  "publish.seconds", "0",    "refit", "none", "C", "0.01",
                                 "scale",  "none", "novelty",         "none", NULL};
    speaker_open(&f, small);
    feed(&f, &random, 0, 300, false);
    held = random;
    feed(&f, &random, 300, 100, false);
    const int models = f.count[SVI_TOPIC_MODEL];
    json_t *reply =
        ask(&f, "{'op': 'config', 'set': {'C': 0.01, 'window': 400, 'scale': 'none', 'alert.p': 0.01}}");
    json_t *changed = json_object_get(reply, "changed");
    assert_true(ok(reply));
    assert_int_equal(json_object_size(changed), 4);
    assert_true(number(json_object_get(changed, "C"), "from") == 1);
    assert_true(number(json_object_get(changed, "C"), "to") == 0.01);
    assert_string_equal(text_of(json_object_get(changed, "scale"), "to"), "none");
    assert_int_equal(number(reply, "relearned"), 100);
    assert_int_equal(number(json_object_get(reply, "config"), "window"), 400);
    json_decref(reply);
    assert_int_equal(f.count[SVI_TOPIC_MODEL], models + 1);
    assert_true(number(f.last[SVI_TOPIC_MODEL], "C") == 0.01);
    assert_int_equal(f.error, SVS_CONFIG_CHANGED);
    assert_string_equal(
        text_of(f.last[SVI_TOPIC_ERROR], "reason"),
        "C 1 -> 0.01, window 100 -> 400, scale standard -> none: the model was rebuilt from "
        "100 samples");
    set(&f, "{'novelty': 'none'}");
    assert_non_null(strstr(text_of(f.last[SVI_TOPIC_ERROR], "reason"), "novelty fosvm1 -> none"));
    speaker_open(&g, other);
    feed(&g, &held, 300, 100, false);
    svs_model one, two;
    assert_int_equal(svs_learner_model(svi_stream_root(f.e)->learner, &one, NULL), SVS_OK);
    assert_int_equal(svs_learner_model(svi_stream_root(g.e)->learner, &two, NULL), SVS_OK);
    assert_memory_equal(one.W, two.W, 2 * sizeof(double));
    held = random;
    feed(&f, &random, 400, 200, false);
    feed(&g, &held, 400, 200, false);
    assert_int_equal(svs_learner_model(svi_stream_root(f.e)->learner, &one, NULL), SVS_OK);
    assert_int_equal(svs_learner_model(svi_stream_root(g.e)->learner, &two, NULL), SVS_OK);
    assert_memory_equal(one.W, two.W, 2 * sizeof(double));
    assert_int_equal(stat(&f, "held"), 300);
    speaker_close(&f);
    speaker_close(&g);
}

/* After each of many changes the state is that of its checkpoint. */
static void test_checkpoints(void **unused) {
    (void)unused;
    static const char *const changes[] = {
        "{'C': 10}",
        "{'window': 30, 'method': 'falsvm'}",
        "{'window': 250, 'method': 'alsvm', 'forget': 0.99}",
        "{'window.seconds': 40, 'forget': 1}",
        "{'novelty.theta': 0.1}",
        "{'novelty.trim': 0.1, 'novelty.persist': 20, 'novelty.confirm': 3, 'novelty.learn': 'persistent'}",
        "{'novelty.persist': 200, 'novelty.confirm': 40, 'novelty.warmup': 5, 'alert.fdr': 0.1}",
        "{'novelty.calibration': 1200, 'novelty.lags': 3}",
        "{'alert.budget': '1/day'}",
        "{'alert.budget': '2/week', 'alert.group': 5}",
        "{'novelty': 'none'}",
        "{'novelty': 'fosvm2', 'alert.fdr': 0, 'alert.budget': 'none'}",
        "{'refit': 'dcd', 'refit.loss': 'l1', 'refit.every': 40}",
        "{'refit': 'auto', 'refit.loss': 'l2', 'refit.tol': 0.01}",
        "{'C': 2, 'serve': 'refit'}",
        "{'refit': 'none'}",
        "{'missing': 'carry', 'columns.new': 'refuse'}",
        "{'missing': 'auto', 'columns.new': 'add'}",
        "{'window': 0, 'window.seconds': 0}",
        "{'C': 0.5}",
    };
    struct speaker f;
    uint64_t random = 11;
    int at = 0;
    speaker_open(&f, (const char *const[]){"window", "100", "publish.seconds", "0", "refit", "none",
                                           "novelty.calibration", "1000", NULL});
    feed(&f, &random, at, 170, true);
    at += 170;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        set(&f, changes[i]);
        goes_on_when_loaded(&f, random, at);
        at += 150;
    }
    speaker_close(&f);
}

static void test_refusals(void **unused) {
    (void)unused;
    struct speaker f;
    uint64_t random = 5;
    speaker_open(&f, small);
    set(&f, "{'C': 3}"); /* with nothing seen */
    feed(&f, &random, 0, 150, true);
    refused(&f, "{'C': 0}", SVS_SETTING, "C");
    refused(&f, "{'C': 4, 'seed': 2}", SVS_SETTING, "seed is fixed for the lifetime");
    refused(&f, "{'C': 4, 'max.features': 5}", SVS_SETTING, "--max.features");
    refused(&f, "{'window': 0, 'window.seconds': 5}", SVS_SETTING, "window.seconds");
    refused(&f, "{'method': 'none'}", SVS_SETTING, "alsvm and falsvm");
    refused(&f, "{'method': 'svm'}", SVS_SETTING, "method");
    refused(&f, "{'widow': 9}", SVS_SETTING, "window");
    refused(&f, "{'refit.loss': 'l3'}", SVS_SETTING, "refit.loss");
    refused(&f, "{'novelty.gamma': 'wide'}", SVS_SETTING, "novelty.gamma");
    refused(&f, "{'novelty.calibration': 10}", SVS_SETTING, "novelty.calibration");
    assert_true(svi_stream_settings(f.e)->C == 3);
    set(&f, "{'window': 0}");
    assert_int_equal(stat(&f, "held"), 0);
    refused(&f, "{'window': 100}", SVS_UNAVAILABLE, "reset");
    refused(&f, "{'forget': 0.9}", SVS_UNAVAILABLE, "reset");
    set(&f, "{'C': 30, 'scale': 'none'}");
    svi_engine_reset(svi_stream_root(f.e));
    set(&f, "{'window': 100}");
    feed(&f, &random, 150, 150, true);
    assert_int_equal(stat(&f, "held"), 100);
    speaker_close(&f);
    speaker_open(&f, (const char *const[]){"method", "none", NULL});
    refused(&f, "{'C': 2}", SVS_SETTING, "method none");
    refused(&f, "{'method': 'alsvm'}", SVS_SETTING, "alsvm");
    refused(&f, "{'novelty': 'none'}", SVS_SETTING, "nothing to do");
    set(&f, "{'novelty.theta': 0.2}");
    speaker_close(&f);
}

/* One that is away is of no use any more, and its end is not recorded; the next one begins at once, or when a
 * worker is free. */
static void test_refits(void **unused) {
    (void)unused;
    struct speaker f;
    uint64_t random = 3;
    speaker_open(&f, (const char *const[]){"window", "100", "refit.every", "50", "publish.seconds", "0",
                                           "serve", "refit", NULL});
    feed(&f, &random, 0, 60, false);
    svi_engine_refit_here(svi_stream_root(f.e));
    assert_true(svi_stream_root(f.e)->refit->serves);
    feed(&f, &random, 60, 45, false);
    struct svi_refit *job = svi_engine_refit_take(svi_stream_root(f.e));
    assert_non_null(job);
    char before[SVI_HASH_TEXT], after[SVI_HASH_TEXT];
    set(&f, "{'C': 20, 'refit.tol': 0.0001}");
    assert_false(svi_stream_root(f.e)->refit->serves);
    hash_of(&f, before);
    svi_refit_run(job); /* by the worker that has it */
    assert_true(svi_engine_refit_left(svi_stream_root(f.e), job));
    hash_of(&f, after);
    assert_string_equal(before, after);
    assert_non_null(job = svi_engine_refit_take(svi_stream_root(f.e)));
    assert_true(job->C == 20 && job->how.tol == 0.0001);
    assert_int_equal(job->snapshot.count, 100);
    assert_false(svi_engine_refit_left(svi_stream_root(f.e), job));
    svi_refit_run(job);
    svi_engine_refit_give(svi_stream_root(f.e));
    assert_true(svi_stream_root(f.e)->refit->serves && svi_stream_root(f.e)->refit->model.C == 20);
    set(&f, "{'refit': 'dcd'}"); /* for the next one: what serves goes on */
    assert_true(svi_stream_root(f.e)->refit->serves);
    feed(&f, &random, 105, 60, false);
    svi_engine_refit_here(svi_stream_root(f.e));
    assert_string_equal(svi_stream_root(f.e)->refit->model.method, "dcd");
    json_t *reply = ask(&f, "{'op': 'refit'}");
    assert_true(ok(reply));
    json_decref(reply);
    assert_non_null(job = svi_engine_refit_take(svi_stream_root(f.e)));
    set(&f, "{'refit': 'none'}");
    assert_false(svi_stream_root(f.e)->refit->serves);
    assert_int_equal(svi_stream_root(f.e)->refit->state, SVI_REFIT_OFF);
    set(&f, "{'refit': 'auto'}");
    svi_refit_run(job);
    assert_true(svi_engine_refit_left(svi_stream_root(f.e), job));
    feed(&f, &random, 165, 60, false);
    svi_engine_refit_here(svi_stream_root(f.e));
    assert_true(svi_stream_root(f.e)->refit->serves);
    speaker_close(&f);
}

/* Whether a worker had it or not makes no difference to the state. */
static void test_refits_leave_no_trace(void **unused) {
    (void)unused;
    struct speaker f[2];
    char hash[2][SVI_HASH_TEXT];
    for (int i = 0; i < 2; i++) {
        uint64_t random = 3;
        speaker_open(
            &f[i], (const char *const[]){"window", "100", "refit.every", "50", "publish.seconds", "0", NULL});
        feed(&f[i], &random, 0, 60, false);
        struct svi_refit *job = i ? svi_engine_refit_take(svi_stream_root(f[i].e)) : NULL;
        set(&f[i], "{'C': 20}");
        set(&f[i], "{'window': 40}");
        set(&f[i], "{'refit': 'none'}");
        set(&f[i], "{'refit': 'auto'}");
        hash_of(&f[i], hash[i]);
        if (job)
            assert_true(svi_engine_refit_left(svi_stream_root(f[i].e), job));
    }
    assert_string_equal(hash[0], hash[1]);
    speaker_close(&f[0]);
    speaker_close(&f[1]);
}

/* An alert that is open ends with the model that opened it. */
static void test_novelty(void **unused) {
    (void)unused;
    struct speaker f;
    uint64_t random = 9;
    speaker_open(&f, small);
    set(&f, "{'novelty.warmup': 50, 'alert.p': 0.002, 'alert.rules': 'none'}");
    feed(&f, &random, 0, 2500, false);
    say(&f, "{'x': [1e6, -1e6]}");
    assert_true(svi_stream_root(f.e)->novelty->alert.open);
    svi_detector *detector = svi_stream_root(f.e)->novelty->detector;
    set(&f, "{'novelty.trim': 0.3, 'novelty.persist': 7, 'novelty.learn': 'all'}");
    assert_ptr_equal(detector, svi_stream_root(f.e)->novelty->detector);
    assert_true(svi_stream_root(f.e)->novelty->alert.open);
    const double alerts = stat(&f, "alerts");
    set(&f, "{'novelty.max': 50}");
    assert_null(svi_stream_root(f.e)->novelty->detector);
    assert_string_equal(text_of(f.last[SVI_TOPIC_ALERT], "state"), "close");
    assert_true(stat(&f, "alerts") == alerts);
    feed(&f, &random, 2500, 100, false);
    assert_int_equal(svi_stream_root(f.e)->novelty->detector->o.model.max, 50);
    speaker_close(&f);
}

/* Those of all go on, and those of the window, with `.w`, begin again with another window alone. */
static void figures_go_on(const char *task, const char *const *names) {
    struct speaker f;
    uint64_t random = 2;
    double all[8], recent[8];
    char window[64];
    speaker_open(&f, (const char *const[]){"window", "100", "publish.seconds", "0", "refit", "none",
                                           "novelty", "none", "task", task, NULL});
    feed(&f, &random, 0, 300, false);
    for (int pass = 0; pass < 3; pass++) {
        for (int i = 0; names[i]; i++) {
            snprintf(window, sizeof window, "%s.w", names[i]);
            all[i] = stat(&f, names[i]);
            recent[i] = stat(&f, window);
            if (isnan(all[i]) || isnan(recent[i]))
                fail_msg("%s is not known", names[i]);
        }
        set(&f, pass == 0 ? "{'C': 5}" : pass == 1 ? "{'window': 50}" : "{'window': 400}");
        for (int i = 0; names[i]; i++) {
            snprintf(window, sizeof window, "%s.w", names[i]);
            if (stat(&f, names[i]) != all[i] ||
                !(pass > 0 ? isnan(stat(&f, window)) : stat(&f, window) == recent[i]))
                fail_msg("%s after change %d", names[i], pass);
        }
        goes_on_when_loaded(&f, random, 300 + 200 * pass);
    }
    speaker_close(&f);
}

static void test_figures(void **unused) {
    (void)unused;
    figures_go_on("classify", (const char *const[]){"accuracy", "logloss", "brier", "ece",
                                                    "balanced_accuracy", "accuracy_no_change", "ap", NULL});
    figures_go_on("regress", (const char *const[]){"rmse", "rmse_no_change", "rmse_mean", "coverage", NULL});
}

/* A value that a held sample has keeps its column, one that none has gives it up. */
static void test_categories(void **unused) {
    (void)unused;
    struct speaker f;
    speaker_open(&f, (const char *const[]){"window", "20", "categories", "city", "categories.max", "3",
                                           "novelty", "none", "refit", "none", NULL});
    for (int i = 0; i < 15; i++)
        say(&f, "{'x': {'city': '%s', 't': %d}, 'y': %d}",
            i < 5    ? "Rom"
            : i < 10 ? "Bonn"
                     : "Oslo",
            i % 3, i % 2);
    const int d = svs_learner_dimension(svi_stream_root(f.e)->learner);
    set(&f, "{'C': 8}");
    say(&f, "{'x': {'city': 'Lima', 't': 1}, 'y': 1}"); /* all three are held: it has none of its own */
    int64_t number;
    const double *row;
    assert_true(svi_learner_held_row(svi_stream_root(f.e)->learner, 0, &row, &number));
    assert_int_equal(svi_schema_columns(&svi_stream_root(f.e)->schema), 2);
    const int shared = svs_learner_dimension(svi_stream_root(f.e)->learner);
    assert_true(shared == d + 1); /* the column that further values share */
    assert_true(svs_learner_check(svi_stream_root(f.e)->learner) < 1e-9);
    set(&f, "{'window': 8}"); /* Rom has left */
    say(&f, "{'x': {'city': 'Kiew', 't': 1}, 'y': 1}");
    assert_int_equal(svs_learner_dimension(svi_stream_root(f.e)->learner), shared);
    assert_true(svs_learner_check(svi_stream_root(f.e)->learner) < 1e-9);
    const struct svi_schema *s = &svi_stream_root(f.e)->schema;
    bool kiew = false, rom = false;
    for (int j = 0; j < s->shape.d; j++) {
        kiew |= strcmp(svs_features_name(s->shape.names, j), "city=Kiew") == 0;
        rom |= strcmp(svs_features_name(s->shape.names, j), "city=Rom") == 0;
    }
    assert_true(kiew && !rom);
    speaker_close(&f);
}

/* What the journal has of it: a request, and the settings of a start. */
static void test_records(void **unused) {
    (void)unused;
    struct speaker f;
    uint64_t random = 6;
    svs_error err;
    speaker_open(&f, small);
    feed(&f, &random, 0, 50, false);
    speaker_build(&f, "{'op': 'config', 'set': {'C': 9}}");
    struct svi_record r = {
        .kind = SVI_RECORD_CONFIG, .now = f.now, .payload = f.frame.data, .size = f.frame.size};
    assert_int_equal(svi_record_apply(&f.e, &f.s, &r, NULL, &err), SVS_OK);
    assert_true(f.s.C == 9 && svi_stream_settings(f.e)->C == 9);
    struct svi_settings other = f.s;
    struct svi_bytes text = {0};
    other.C = 2;
    other.window = 20;
    assert_int_equal(svi_settings_pack(&other, &text, &err), SVS_OK);
    r = (struct svi_record){.kind = SVI_RECORD_START, .now = f.now, .payload = text.data, .size = text.size};
    assert_int_equal(svi_record_apply(&f.e, &f.s, &r, NULL, &err), SVS_OK);
    assert_true(svi_stream_settings(f.e)->C == 2);
    assert_int_equal(stat(&f, "held"), 20);
    svi_bytes_clear(&text);
    speaker_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_made_again),
        cmocka_unit_test(test_checkpoints),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_refits),
        cmocka_unit_test(test_refits_leave_no_trace),
        cmocka_unit_test(test_novelty),
        cmocka_unit_test(test_figures),
        cmocka_unit_test(test_categories),
        cmocka_unit_test(test_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
