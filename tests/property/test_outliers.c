/* The setting `outlier`: a gross error in one value does a model no harm, and what is clipped is the row that
 * the window, forgetting and a fresh solve mean; a change of level is followed; nothing that is only rare or
 * large is clipped; alerts see what came. */
#include "support/archived.h"
#include "support/engine.h"
#include "support/problem.h"

#include "engine/engine_parts.h"
#include "fleet/fleet_internal.h"
#include "linalg/quads.h"

#define QUIET "novelty", "none", "alert.rules", "none", "refit", "none", "publish.every", "0"

static const char *const quiet[] = {QUIET, "window", "1000", NULL};

static svs_learner *learner_of(const struct speaker *f) {
    return f->e->root->learner;
}

struct source {
    uint64_t random;
    int number;
};

/* Two informative columns, one of noise and one that is 1 now and then. Returns whether the score before it
 * was right. */
static bool row(struct speaker *f, struct source *s, double gross, const char *more) {
    const double a = test_normal(&s->random), b = test_normal(&s->random), c = test_normal(&s->random);
    const int y = a + 2 * b + test_normal(&s->random) / 4 > 0, rare = test_uniform(&s->random) < 0.02;
    f->now = NOW + s->number;
    say(f, "{'x': [%.17g, %.17g, %.17g, %d], 'y': %d, 'id': %d%s}", a, isnan(gross) ? b : gross, c, rare, y,
        s->number++, more);
    return number(f->last[SVI_TOPIC_SCORE], "yhat") == y;
}

/* Accuracy of `rows` rows, each `every`-th of which (0: none) is gross. */
static double accuracy(struct speaker *f, struct source *s, int rows, int every, double gross) {
    int right = 0, counted = 0;
    for (int i = 1; i <= rows; i++) {
        const bool bad = every > 0 && i % every == 0;
        const bool was = row(f, s, bad ? gross : NAN, "");
        counted += !bad;
        right += !bad && was;
    }
    return (double)right / counted;
}

static void open_with(struct speaker *f, const char *key, const char *value) {
    const char *const settings[] = {QUIET, "window", "1000", key, value, NULL};
    speaker_open(f, settings);
}

static void one_row_does_no_harm(void **unused) {
    (void)unused;
    static const double gross[] = {1e99, -1e99, 1e20, -1e20, 1e7, -1e7};
    for (size_t i = 0; i < sizeof gross / sizeof *gross; i++) {
        struct speaker clean, hit;
        struct source a = {i + 1, 0}, b = a;
        speaker_open(&clean, quiet);
        speaker_open(&hit, quiet);
        accuracy(&clean, &a, 1200, 0, NAN);
        accuracy(&hit, &b, 1200, 0, NAN);
        row(&hit, &(struct source){99, 5000}, gross[i], "");
        assert_true(stat(&hit, "clipped") == 1);
        accuracy(&clean, &a, 30, 0, NAN);
        accuracy(&hit, &b, 30, 0, NAN);
        const double want = accuracy(&clean, &a, 800, 0, NAN), got = accuracy(&hit, &b, 800, 0, NAN);
        if (!(got >= want - 0.01) || !(want > 0.9))
            fail_msg("%g: %g right, without it %g", gross[i], got, want);
        assert_true(svs_learner_check(learner_of(&hit)) <= 1e-10);
        speaker_close(&clean);
        speaker_close(&hit);
    }
}

/* What the cure is for: without it the same row leaves the model without the column. */
static void taken_it_does_harm(void **unused) {
    (void)unused;
    struct speaker f;
    struct source s = {1, 0};
    open_with(&f, "outlier", "take");
    accuracy(&f, &s, 1200, 0, NAN);
    row(&f, &(struct source){99, 5000}, 1e20, "");
    assert_true(accuracy(&f, &s, 800, 0, NAN) < 0.8);
    assert_true(stat(&f, "clipped") == 0);
    speaker_close(&f);
}

static void a_share_of_gross_rows_does_no_harm(void **unused) {
    (void)unused;
    static const struct {
        int every;
        double loss;
    } all[] = {{100, 0.01}, {20, 0.02}, {8, 0.06}}; /* their labels say nothing of what they show */
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct speaker clean, hit;
        struct source a = {7, 0}, b = a;
        speaker_open(&clean, quiet);
        speaker_open(&hit, quiet);
        accuracy(&clean, &a, 300, 0, NAN);
        accuracy(&hit, &b, 300, 0, NAN);
        const double want = accuracy(&clean, &a, 3000, 0, NAN);
        const double got = accuracy(&hit, &b, 3000, all[i].every, 1e99);
        assert_true(stat(&hit, "clipped") == 3000 / all[i].every);
        if (!(got >= want - all[i].loss))
            fail_msg("every %d: %g right, without it %g", all[i].every, got, want);
        speaker_close(&clean);
        speaker_close(&hit);
    }
}

/* Forgotten, a clipped row leaves the model that never had it. */
static void forgetting_is_exact(void **unused) {
    (void)unused;
    struct speaker clean, hit;
    struct source a = {3, 0}, b = a;
    svs_model want, got;
    speaker_open(&clean, quiet);
    speaker_open(&hit, quiet);
    accuracy(&clean, &a, 400, 0, NAN);
    accuracy(&hit, &b, 400, 0, NAN);
    row(&hit, &(struct source){99, 5000}, 1e99, "");
    accuracy(&clean, &a, 100, 0, NAN);
    accuracy(&hit, &b, 100, 0, NAN);
    assert_true(svs_learner_check(learner_of(&hit)) <= 1e-10);
    say(&hit, "{'op': 'forget', 'id': 5000}");
    assert_true(stat(&hit, "forgotten") == 1 && svs_learner_check(learner_of(&hit)) <= 1e-10);
    assert_int_equal(svs_learner_model(learner_of(&clean), &want, NULL), SVS_OK);
    assert_int_equal(svs_learner_model(learner_of(&hit), &got, NULL), SVS_OK);
    for (int j = 0; j < want.d; j++)
        assert_true(fabs(got.W[j] - want.W[j]) <= 1e-10 * fabs(want.W[j]));
    speaker_close(&clean);
    speaker_close(&hit);
}

/* A sample waits for its label as it was clipped. */
static void a_late_label_learns_the_clipped_row(void **unused) {
    (void)unused;
    struct speaker f;
    struct source s = {4, 0};
    speaker_open(&f, quiet);
    accuracy(&f, &s, 400, 0, NAN);
    say(&f, "{'x': [0.5, 1e99, 0.5, 0], 'id': 'late'}");
    const double before = accuracy(&f, &s, 50, 0, NAN);
    say(&f, "{'op': 'label', 'id': 'late', 'y': 0}");
    assert_true(before > 0.85 && stat(&f, "labels_joined") == 1 && stat(&f, "clipped") == 1);
    assert_true(accuracy(&f, &s, 300, 0, NAN) > 0.9 && svs_learner_check(learner_of(&f)) <= 1e-10);
    speaker_close(&f);
}

/* The same bits with a restart between any two rows, and a reset begins from nothing. */
static void a_restart_changes_no_bit(void **unused) {
    (void)unused;
    static const int stops[] = {0, 3, 127, 128, 129, 200, 300, 513};
    char want[SVI_HASH_TEXT], got[SVI_HASH_TEXT];
    struct speaker whole;
    struct source s = {5, 0};
    speaker_open(&whole, quiet);
    accuracy(&whole, &s, 700, 9, 1e30);
    assert_true(stat(&whole, "clipped") > 50);
    assert_int_equal(svi_stream_hash(whole.e, want, NULL), SVS_OK);
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
        struct speaker f;
        struct source again = {5, 0};
        speaker_open(&f, quiet);
        for (int k = 1; k <= 700; k++) {
            row(&f, &again, k % 9 == 0 ? 1e30 : NAN, "");
            if (k == stops[i])
                speaker_take_up_again(&f);
        }
        assert_int_equal(svi_stream_hash(f.e, got, NULL), SVS_OK);
        assert_string_equal(got, want);
        assert_true(stat(&f, "clipped") == stat(&whole, "clipped"));
        speaker_close(&f);
    }
    const double clipped = stat(&whole, "clipped");
    json_decref(ask(&whole, "{'op': 'reset'}"));
    assert_true(whole.e->root->outliers->rows == 0);
    for (int k = 0; k < 100; k++)
        row(&whole, &s, 1e50, "");
    assert_true(stat(&whole, "clipped") == clipped);
    speaker_close(&whole);
}

/* A sensor that is replaced by one in other units: its rows are clipped for a while, then taken. */
static void a_new_level_is_followed(void **unused) {
    (void)unused;
    static const double levels[] = {1e8, -1e8, 1e50};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        struct speaker f;
        struct source s = {6, 0};
        speaker_open(&f, quiet);
        accuracy(&f, &s, 500, 0, NAN);
        for (int k = 0; k < 1000; k++)
            row(&f, &s, levels[i] + test_normal(&s.random), "");
        const double clipped = stat(&f, "clipped");
        assert_true(clipped >= 100 && clipped <= 9 * 32);
        for (int k = 0; k < 300; k++)
            row(&f, &s, levels[i] + test_normal(&s.random), "");
        assert_true(stat(&f, "clipped") == clipped);
        speaker_close(&f);
    }
}

/* Rare values, words, constants with rounding, heavy tails, columns that come late: none is an error. */
static void what_is_rare_is_not_clipped(void **unused) {
    (void)unused;
    static const char *const settings[] = {QUIET, "window", "100", "categories.max", "3", NULL};
    struct speaker f;
    uint64_t random = 8;
    speaker_open(&f, settings);
    for (int i = 0; i < 6000; i++) {
        const double u = test_uniform(&random), bytes = u < 0.002 ? 5e7 : 0, stamp = u < 0.001 ? 1.7e18 : 0;
        const double most = u < 0.1 ? 1e5 * test_normal(&random) : 0;
        const double rounding = 0.3 + (i % 3) * 5e-17, step = u < 0.01 ? 90 : rounding;
        const double tail = exp(3 * test_normal(&random));
        char late[64] = "";
        if (i > 2000)
            snprintf(late, sizeof late, ", 'late': %.17g", 1e12 * (1 + test_uniform(&random)));
        say(&f,
            "{'x': {'bytes': %.17g, 'stamp': %.17g, 'most': %.17g, 'step': %.17g, 'tail': %.17g, 'word': "
            "'w%d'"
            "%s}, 'y': %d}",
            bytes, stamp, most, step, tail, (int)(60 * u * u), late, i % 2);
    }
    assert_true(stat(&f, "seen") == 6000 && stat(&f, "clipped") == 0);
    speaker_close(&f);
}

static void none_before_a_hundred_rows(void **unused) {
    (void)unused;
    struct speaker f;
    struct source s = {9, 0};
    speaker_open(&f, quiet);
    for (int i = 0; i < 124; i++)
        row(&f, &s, i % 10 == 9 ? 1e99 : NAN, "");
    assert_true(stat(&f, "clipped") == 0 && stat(&f, "refused") == 0);
    for (int i = 0; i < 14; i++)
        row(&f, &s, i == 13 ? 1e99 : NAN, ""); /* what came before does not count as usual */
    assert_true(stat(&f, "clipped") == 1);
    speaker_close(&f);
}

static void configure(struct speaker *f, const char *value) {
    json_t *reply = ask(f, "{'op': 'config', 'set': {'outlier': '%s'}}", value);
    assert_true(json_is_true(json_object_get(reply, "ok")));
    json_decref(reply);
}

static void refuse_says_what_and_changes_nothing(void **unused) {
    (void)unused;
    char before[SVI_HASH_TEXT], after[SVI_HASH_TEXT];
    struct speaker f;
    struct source s = {10, 0};
    open_with(&f, "outlier", "refuse");
    accuracy(&f, &s, 300, 0, NAN);
    assert_int_equal(svi_stream_hash(f.e, before, NULL), SVS_OK);
    for (int i = 0; i < 3; i++)
        row(&f, &(struct source){99, 5000}, 1e99, "");
    assert_int_equal(svi_stream_hash(f.e, after, NULL), SVS_OK);
    assert_string_equal(before, after);
    assert_int_equal(f.error, SVS_OUTLIER);
    assert_non_null(strstr(text_of(f.last[SVI_TOPIC_ERROR], "reason"), "feature 1 is 1e+99"));
    assert_true(stat(&f, "refused.outlier") == 3 && stat(&f, "clipped") == 0 && stat(&f, "seen") == 300);
    configure(&f, "clip"); /* what is known of the columns stays */
    row(&f, &s, 1e99, "");
    assert_true(stat(&f, "clipped") == 1 && stat(&f, "refused.outlier") == 3);
    configure(&f, "take");
    row(&f, &s, 1e50, "");
    assert_true(stat(&f, "clipped") == 1 && stat(&f, "seen") == 302);
    configure(&f, "clip"); /* it begins again */
    accuracy(&f, &s, 200, 0, NAN);
    row(&f, &s, 1e50, "");
    assert_true(stat(&f, "clipped") == 2);
    speaker_take_up_again(&f);
    row(&f, &s, 1e50, "");
    assert_true(stat(&f, "clipped") == 3);
    speaker_close(&f);
}

/* A refused row brings no column either; by its name it is told. */
static void refused_rows_bring_no_columns(void **unused) {
    (void)unused;
    struct speaker f;
    uint64_t random = 11;
    open_with(&f, "outlier", "refuse");
    for (int i = 0; i < 200; i++)
        say(&f, "{'x': {'flow': %.17g}, 'y': %d}", test_normal(&random), i % 2);
    say(&f, "{'x': {'flow': -1e40, 'new': 1}, 'y': 1}");
    assert_int_equal(f.error, SVS_OUTLIER);
    assert_non_null(strstr(text_of(f.last[SVI_TOPIC_ERROR], "reason"), "feature 0 ('flow') is -1e+40"));
    assert_true(stat(&f, "d") == 1);
    say(&f, "{'x': {'flow': 0.1, 'new': 1}, 'y': 1}");
    assert_true(stat(&f, "d") == 2);
    speaker_close(&f);
}

/* Rules, novelty and score events are about the row as it came. */
static void alerts_see_the_raw_value(void **unused) {
    (void)unused;
    static const char *const outlier[] = {"clip", "take"};
    int rules[2], alerts[2];
    for (int i = 0; i < 2; i++) {
        const char *const settings[] = {"window", "1000",    "refit",    "none", "threads",
                                        "1",      "outlier", outlier[i], NULL};
        struct speaker f;
        struct source s = {12, 0};
        speaker_open(&f, settings);
        accuracy(&f, &s, 2100, 0, NAN); /* no longer a young sensor, whose spikes are held back */
        const double told = stat(&f, "rule_alerts");
        row(&f, &s, 1e50, "");
        assert_true(stat(&f, "clipped") == (i == 0));
        rules[i] = (int)stat(&f, "rule_alerts");
        alerts[i] = f.count[SVI_TOPIC_ALERT];
        assert_true(rules[i] > told);
        if (!strstr(text_of(f.last[SVI_TOPIC_ALERT], "text"), "1e50"))
            fail_msg("%s", text_of(f.last[SVI_TOPIC_ALERT], "text"));
        speaker_close(&f);
    }
    assert_int_equal(rules[0], rules[1]);
    assert_int_equal(alerts[0], alerts[1]);
}

/* What carries on is the clipped value; the bank and a regression learn clipped rows too. */
static void methods_and_tasks(void **unused) {
    (void)unused;
    static const struct {
        const char *key[4], *value[4];
        int clipped;
    } all[] = {{{"method"}, {"auto"}, 1},
               {{"method", "missing"}, {"falsvm", "carry"}, 1},
               {{"window", "forget"}, {"0", "0.999"}, 1},
               {{"task"}, {"regress"}, 1},
               {{"method", "novelty"}, {"none", "fosvm1"}, 0},
               {{"key"}, {"k"}, 0}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const char *settings[] = {"novelty",       "none",        "refit",         "none", all[i].key[0],
                                  all[i].value[0], all[i].key[1], all[i].value[1], NULL};
        struct speaker f;
        struct source s = {13 + i, 0};
        const char *more = i == 5 ? ", 'key': 'a'" : "";
        speaker_open(&f, settings);
        for (int k = 0; k < 300; k++)
            row(&f, &s, NAN, more);
        row(&f, &s, 1e60, more);
        for (int k = 0; k < 30; k++)
            row(&f, &s, NAN, more);
        assert_true(stat(&f, "clipped") == all[i].clipped && stat(&f, "refused") == 0);
        if (i == 1) {
            say(&f, "{'x': [0, null, 0, 0], 'y': 1}");
            row(&f, &s, 1e60, more);
            say(&f, "{'x': [0, null, 0, 0], 'y': 1}");
            assert_true(stat(&f, "clipped") == 2 && fabs(f.e->root->carried[1]) < 100);
        }
        speaker_close(&f);
    }
}

/* Columns that leave take what is known of them along. */
static void pruned_columns(void **unused) {
    (void)unused;
    static const char *const settings[] = {QUIET, "window", "150", NULL};
    struct speaker f;
    uint64_t random = 20;
    speaker_open(&f, settings);
    for (int i = 0; i < 600; i++) {
        const double a = test_normal(&random), b = 1e9 * test_normal(&random);
        if (i < 400)
            say(&f, "{'x': {'a': %.17g, 'gone': %.17g, 'b': %.17g}, 'y': %d}", a, b, b, i % 2);
        else
            say(&f, "{'x': {'a': %.17g, 'b': %.17g}, 'y': %d}", a, b, i % 2);
    }
    json_decref(ask(&f, "{'op': 'prune'}"));
    assert_true(stat(&f, "d") == 2);
    say(&f, "{'x': {'a': 0.5, 'b': 1e14}, 'y': 1}");
    assert_true(stat(&f, "clipped") == 0);
    say(&f, "{'x': {'a': 1e14, 'b': 1e9}, 'y': 1}");
    assert_true(stat(&f, "clipped") == 1);
    say(&f, "{'x': {'a': 0.5, 'b': 1e9, 'c': 1e15}, 'y': 1}"); /* where 'gone' was is nothing left of it */
    assert_true(stat(&f, "clipped") == 1);
    speaker_close(&f);
}

static void archive(struct svi_archive *a, void *object) {
    svi_outliers_archive(a, object);
}

static void a_damaged_archive_is_refused(void **unused) {
    (void)unused;
    struct svi_bytes bytes = {0};
    svs_error err = {0};
    double x[9];
    uint64_t random = 22;
    struct svi_outliers *o = svi_outliers_new(&err), *other;
    assert_int_equal(svi_outliers_reserve(o, 9, &err), SVS_OK);
    for (int i = 0; i < 200; i++) {
        for (int j = 0; j < 9; j++)
            x[j] = test_normal(&random);
        svi_outliers_note(o, x, 9);
    }
    assert_int_equal(archived_save(archive, o, &bytes, &err), SVS_OK);
    for (size_t size = 0; size <= bytes.size; size++) {
        err.code = SVS_OK;
        other = svi_outliers_new(&err);
        const svs_code code = archived_load(archive, other, bytes.data, size, &err);
        assert_int_equal(code, size < bytes.size ? SVS_DAMAGED : SVS_OK);
        if (code == SVS_OK)
            assert_true(other->next == o->next && memcmp(other->bound, o->bound, 9 * sizeof *x) == 0);
        svi_outliers_free(&other);
    }
    o->deviation[3] = -1;
    err.code = SVS_OK;
    assert_int_equal(archived_save(archive, o, &bytes, &err), SVS_OK);
    other = svi_outliers_new(&err);
    assert_int_equal(archived_load(archive, other, bytes.data, bytes.size, &err), SVS_DAMAGED);
    svi_outliers_free(&other);
    svi_outliers_free(&o);
    svi_bytes_clear(&bytes);
}

/* Every instruction set finds the same rows, wherever the value is. */
static void comparing_is_exact(void **unused) {
    (void)unused;
    const struct svi_quads *const all[] = {&svi_quads_generic, svi_quads_get()};
    double x[24], center[24], bound[24];
    uint64_t random = 21;
    for (int n = 0; n <= 24; n++)
        for (int at = -1; at < n; at++)
            for (int k = 0; k < 4; k++) {
                for (int j = 0; j < n; j++) {
                    center[j] = test_normal(&random);
                    bound[j] = j % 5 == 4 ? INFINITY : test_uniform(&random);
                    x[j] = j % 7 == 6 ? NAN : center[j];
                }
                if (at >= 0) {
                    center[at] = 0;
                    bound[at] = 2;
                    x[at] = k == 0 ? 2 : k == 1 ? -nextafter(2, 3) : k == 2 ? nextafter(2, 3) : 1e100;
                }
                for (int i = 0; i < 2; i++)
                    assert_true(all[i]->beyond(x, center, bound, n) == (at >= 0 && k > 0));
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_row_does_no_harm),
        cmocka_unit_test(taken_it_does_harm),
        cmocka_unit_test(a_share_of_gross_rows_does_no_harm),
        cmocka_unit_test(forgetting_is_exact),
        cmocka_unit_test(a_late_label_learns_the_clipped_row),
        cmocka_unit_test(a_restart_changes_no_bit),
        cmocka_unit_test(a_new_level_is_followed),
        cmocka_unit_test(what_is_rare_is_not_clipped),
        cmocka_unit_test(none_before_a_hundred_rows),
        cmocka_unit_test(refuse_says_what_and_changes_nothing),
        cmocka_unit_test(refused_rows_bring_no_columns),
        cmocka_unit_test(alerts_see_the_raw_value),
        cmocka_unit_test(methods_and_tasks),
        cmocka_unit_test(pruned_columns),
        cmocka_unit_test(a_damaged_archive_is_refused),
        cmocka_unit_test(comparing_is_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
