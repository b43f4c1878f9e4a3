/* What the engine tells of its quality: classes and matrices in stats and status, intervals in scores,
 * replies and lines, how it stands against what needs no learner. */
#include "support/engine.h"

#include "server/score_lines.h"
#include "report/verdict.h"
#include "store/checkpoint_file.h"
#include "support/quick.h"
#include "support/problem.h"

static const char *const plain[] = {"novelty", "none", "refit", "none", NULL};
static const char *const values[] = {"task", "regress", "novelty", "none", "refit",
                                     "none", "window",  "100",     NULL};

static uint64_t state = 1;

static double uniform(void) {
    return test_uniform(&state);
}

static json_t *stats_of(struct speaker *f) {
    svi_stream_publish_stats(f->e, NULL, f->now);
    return f->last[SVI_TOPIC_STATS];
}

/* ---- classes */

static void test_classes_are_told(void **unused) {
    (void)unused;
    struct speaker f;
    speaker_open(&f, plain);
    assert_null(json_object_get(stats_of(&f), "by_class")); /* none is known */
    for (int i = 0; i < 300; i++)
        say(&f, "{'x': [%d, %d], 'y': '%s'}", i % 7, i % 3, i % 7 < 3 ? "low" : i % 7 < 6 ? "high" : "top");
    json_t *reply = ask(&f, "{'op': 'status'}"), *told = json_object_get(stats_of(&f), "by_class");
    const json_t *confusion = json_object_get(reply, "confusion"),
                 *recent = json_object_get(reply, "confusion.w");
    assert_int_equal(json_array_size(told), 3);
    assert_int_equal(json_array_size(json_object_get(reply, "by_class")), 3);
    assert_int_equal(json_array_size(confusion), 3);
    assert_null(json_object_get(f.last[SVI_TOPIC_STATS], "confusion")); /* on request only */
    assert_string_equal(text_of(json_array_get(told, 0), "class"), "low");
    double support = 0, hits = 0;
    for (size_t k = 0; k < 3; k++) {
        const json_t *c = json_array_get(told, k), *row = json_array_get(confusion, k);
        double inside = 0, predicted = 0;
        for (size_t j = 0; j < 3; j++) {
            inside += json_number_value(json_array_get(row, j));
            predicted += json_number_value(json_array_get(json_array_get(confusion, j), k));
        }
        const double hit = json_number_value(json_array_get(row, k));
        assert_true(inside == number(c, "support") - (k == 0)); /* of the first nothing was known */
        assert_true(predicted == number(c, "predicted"));
        assert_true(predicted > 0 ? fabs(number(c, "precision") - hit / predicted) < 1e-12
                                  : isnan(number(c, "precision")));
        assert_true(fabs(number(c, "recall") - hit / number(c, "support")) < 1e-12);
        assert_true(number(c, "support") == number(c, "support.w")); /* the window holds them all */
        assert_true(number(c, "f1") == number(c, "f1.w"));
        support += number(c, "support");
        hits += hit;
    }
    assert_true(support == 300 && fabs(hits / 300 - stat(&f, "accuracy")) < 1e-12);
    assert_true(json_equal(confusion, recent));
    json_decref(reply);
    svi_engine_reset(svi_stream_root(f.e)); /* the classes stay, what was counted goes */
    reply = ask(&f, "{'op': 'status'}");
    told = json_array_get(json_object_get(reply, "by_class"), 1);
    assert_true(number(told, "support") == 0 && isnan(number(told, "recall")));
    assert_true(
        json_number_value(json_array_get(json_array_get(json_object_get(reply, "confusion"), 0), 0)) == 0);
    json_decref(reply);
    speaker_close(&f);
}

/* Many classes are told of on request only, very many have no matrix. */
static void test_many_classes(void **unused) {
    (void)unused;
    for (int many = 33; many <= 257; many += 224) {
        struct speaker f;
        const char *settings[] = {"novelty", "none", "refit", "none", "max.classes", "300", NULL};
        speaker_open(&f, settings);
        for (int i = 0; i < many; i++)
            say(&f, "{'x': [%d], 'y': %d}", i, i);
        json_t *reply = ask(&f, "{'op': 'status'}");
        assert_null(json_object_get(stats_of(&f), "by_class"));
        assert_int_equal(json_array_size(json_object_get(reply, "by_class")), many);
        assert_int_equal(json_array_size(json_object_get(reply, "confusion")), many <= 256 ? many : 0);
        json_decref(reply);
        speaker_close(&f);
    }
}

/* ---- intervals */

static double end_of(const json_t *event, int end) {
    const json_t *interval = json_object_get(event, "interval");
    return interval ? json_number_value(json_array_get(interval, (size_t)end)) : NAN;
}

/* With the label at once, late, or never: an interval comes after 19 residuals, and holds its share. */
static void test_intervals_of_scores(void **unused) {
    (void)unused;
    const int rows = often(3000, 300);
    for (int late = 0; late < 2; late++) {
        struct speaker f;
        int first = -1, known = 0, inside = 0;
        double y[5] = {0}, low[5] = {0}, high[5] = {0};
        state = 5;
        speaker_open(&f, values);
        assert_true(isnan(stat(&f, "coverage")));
        for (int i = 0; i < rows; i++) {
            const double a = uniform(), b = uniform(), target = 3 * a - b + uniform();
            if (late)
                say(&f, "{'x': [%.17g, %.17g], 'id': %d}", a, b, i);
            else
                say(&f, "{'x': [%.17g, %.17g], 'y': %.17g}", a, b, target);
            const json_t *s = f.last[SVI_TOPIC_SCORE];
            const double yhat = number(s, "yhat");
            first = first < 0 && json_object_get(s, "interval") ? i : first;
            y[i % 5] = target;
            low[i % 5] = end_of(s, 0);
            high[i % 5] = end_of(s, 1);
            if (first >= 0)
                assert_true(low[i % 5] < yhat && yhat < high[i % 5]);
            const int k = late ? i - 4 : i;
            if (late && k >= 0)
                say(&f, "{'op': 'label', 'id': %d, 'y': %.17g}", k, y[k % 5]);
            if (k < 0 || isnan(low[k % 5]))
                continue;
            known++;
            inside += low[k % 5] <= y[k % 5] && y[k % 5] <= high[k % 5];
        }
        const double error = sqrt(0.09 / known), share = (double)inside / known;
        print_message("# late %d: first %d, %.4f inside, coverage %.4f\n", late, first, share,
                      stat(&f, "coverage"));
        assert_in_range(first, 19, 30);
        if (!quick())
            assert_true(share > 0.9 - 2 * error && share < 0.9 + 2 * error);
        assert_true(fabs(stat(&f, "coverage") - share) < (late ? 0.02 : 1e-9));
        assert_true(stat(&f, "interval_width") > 0 && stat(&f, "coverage.w") > 0.7);
        speaker_close(&f);
    }
}

/* The reply of `score` and the line of a row have what the event has; a row unlike the others has a wider
 * one. */
static void test_interval_of_replies(void **unused) {
    (void)unused;
    struct speaker f;
    speaker_open(&f, values);
    json_t *reply = ask(&f, "{'op': 'score', 'sample': {'x': [1, 2]}}");
    assert_null(json_object_get(reply, "interval"));
    json_decref(reply);
    for (int i = 0; i < 200; i++)
        say(&f, "{'x': [%d, %d], 'y': %d}", i % 5, i % 3, i % 11);
    reply = ask(&f, "{'op': 'score', 'sample': {'x': [3, 1]}}");
    json_t *far = ask(&f, "{'op': 'score', 'sample': {'x': [300, -100]}}");
    assert_true(end_of(far, 1) - end_of(far, 0) > 2 * (end_of(reply, 1) - end_of(reply, 0)));
    json_decref(far);
    say(&f, "{'x': [3, 1]}");         /* without a label it changes nothing */
    for (int end = 0; end < 2; end++) /* raw weights round otherwise */
        assert_true(fabs(end_of(f.last[SVI_TOPIC_SCORE], end) - end_of(reply, end)) < 1e-9);
    json_decref(reply);
    say(&f, "{'x': [3, 1], 'y': 4}"); /* with one, it is that of before it is learned */
    const double low = end_of(f.last[SVI_TOPIC_SCORE], 0);
    f.s.interval = 0;
    assert_int_equal(svi_stream_configure(f.e, &f.s, 0, NULL, NULL), SVS_OK);
    say(&f, "{'x': [3, 1]}");
    assert_null(json_object_get(f.last[SVI_TOPIC_SCORE], "interval"));
    assert_false(isnan(low));
    speaker_close(&f);
}

/* The same state from a checkpoint in the middle: same scores, same figures. */
static void test_intervals_are_kept(void **unused) {
    (void)unused;
    struct speaker f, g;
    struct svi_checkpoint c = {0};
    speaker_open(&f, values);
    speaker_open(&g, values);
    for (int i = 0; i < 2400; i++) {
        if (i == 1500) {
            assert_int_equal(svi_stream_save(f.e, &c, NULL), SVS_OK);
            assert_int_equal(svi_stream_load(g.e, &c, NULL), SVS_OK);
            memcpy(g.count, f.count, sizeof g.count);
        }
        const double a = uniform(), b = uniform();
        say(&f, "{'x': [%.17g], 'y': %.17g}", a, a + b);
        if (i < 1500)
            continue;
        say(&g, "{'x': [%.17g], 'y': %.17g}", a, a + b);
        assert_true(end_of(f.last[SVI_TOPIC_SCORE], 0) == end_of(g.last[SVI_TOPIC_SCORE], 0));
        assert_true(end_of(f.last[SVI_TOPIC_SCORE], 1) == end_of(g.last[SVI_TOPIC_SCORE], 1));
    }
    static const char *const names[] = {"coverage", "coverage.w", "interval_width", "rmse_no_change",
                                        "rmse_mean.w"};
    for (int i = 0; i < 5; i++)
        assert_true(stat(&f, names[i]) == stat(&g, names[i]));
    svi_checkpoint_clear(&c);
    speaker_close(&f);
    speaker_close(&g);
}

/* The square of an error may be more than a double holds: the state stays one that can be loaded. */
static void test_errors_of_any_size(void **unused) {
    (void)unused;
    struct speaker f, g;
    struct svi_checkpoint c = {0};
    svs_error err;
    static const char *const taken[] = {"task",   "regress", "novelty", "none", "refit", "none",
                                        "window", "100",     "outlier", "take", NULL};
    speaker_open(&f, taken);
    speaker_open(&g, taken);
    for (int i = 0; i < 300; i++)
        say(&f, "{'x': [%.17g], 'y': %.17g}", 1e-60 * uniform(), 1e99 * uniform());
    say(&f, "{'x': [1e5], 'y': 1}");
    assert_true(fabs(json_number_value(json_object_get(f.last[SVI_TOPIC_SCORE], "yhat"))) > 1e155);
    assert_int_equal(svi_stream_save(f.e, &c, NULL), SVS_OK);
    if (svi_stream_load(g.e, &c, &err) != SVS_OK)
        fail_msg("%s", err.text);
    svi_checkpoint_clear(&c);
    speaker_close(&f);
    speaker_close(&g);
}

/* ---- what it comes to */

static const char *verdict_of(struct speaker *f) {
    static char text[2048];
    memset(text, 0, sizeof text);
    FILE *to = fmemopen(text, sizeof text - 1, "w");
    svi_verdict_write(f->e, f->now, to);
    fclose(to);
    return text;
}

static void test_verdicts(void **unused) {
    (void)unused;
    struct speaker f;
    speaker_open(&f, plain);
    assert_string_equal(verdict_of(&f), "");
    for (int i = 0; i < 600; i++) { /* nothing tells the few fails */
        say(&f, "{'x': [%d], 'y': '%s'}", i % 2, i % 50 == 49 ? "fail" : "ok");
    }
    assert_non_null(strstr(verdict_of(&f), " is no better than always predicting ok (0.980)\n"));
    assert_non_null(
        strstr(verdict_of(&f), "class fail: none of 12 found: see --class.weight and --decision.cost\n"));
    speaker_close(&f);
    speaker_open(&f, plain);
    for (int i = 0; i < 600; i++) /* long runs of a class, features without meaning */
        say(&f, "{'x': [%d], 'y': %d}", i % 5, i / 60 % 2);
    assert_non_null(strstr(verdict_of(&f), " is no better than \"the same as before\" (0.983)\n"));
    speaker_close(&f);
    speaker_open(&f, (const char *const[]){"novelty", "none", "refit", "none", "class.weight", "0=2,7=3",
                                           "decision.cost", "1>failx=4", NULL});
    for (int i = 0; i < 60; i++)
        say(&f, "{'x': [%d], 'y': %d}", i % 5, i / 20 % 2);
    assert_string_equal(verdict_of(&f), "class.weight names 7, a class that never occurred\n"
                                        "decision.cost names failx, a class that never occurred\n");
    speaker_close(&f);
    speaker_open(&f, plain);
    for (int i = 0; i < 600; i++)
        say(&f, "{'x': [%d], 'y': %d}", i % 2, i % 2);
    assert_string_equal(verdict_of(&f), "");
    speaker_close(&f);
    for (int noise = 0; noise < 2; noise++) {
        speaker_open(&f, values);
        for (int i = 0; i < 600; i++) {
            const double a = uniform();
            say(&f, "{'x': [%.17g], 'y': %.17g}", a, noise ? uniform() : 9 * a + uniform());
        }
        assert_int_equal(strstr(verdict_of(&f), "always predicting the mean so far") != NULL, noise);
        assert_null(strstr(verdict_of(&f), "same as before")); /* noise has no memory */
        speaker_close(&f);
    }
}

/* Ten Gaussian classes, of which squares learn too little. */
static void test_refit_ahead(void **unused) {
    (void)unused;
    const char *settings[] = {"novelty", "none", "refit", "auto", "refit.every", "500", NULL};
    struct speaker f;
    double centre[10][2];
    state = 3;
    speaker_open(&f, settings);
    for (int k = 0; k < 10; k++) {
        centre[k][0] = 4 * cos(0.628 * k);
        centre[k][1] = 4 * sin(0.628 * k);
    }
    for (int i = 0; i < 3000; i++) {
        const int k = (int)(10 * uniform());
        say(&f, "{'x': [%.17g, %.17g], 'y': %d}", centre[k][0] + uniform() - uniform(),
            centre[k][1] + uniform() - uniform(), k);
        svi_engine_refit_here(svi_stream_root(f.e));
    }
    const double ahead = stat(&f, "accuracy_refit") - stat(&f, "accuracy_online");
    char expected[80];
    snprintf(expected, sizeof expected, "the refit is %.0f points ahead: --serve best\n", 100 * ahead);
    print_message("# online %.3f, refit %.3f\n", stat(&f, "accuracy_online"), stat(&f, "accuracy_refit"));
    assert_non_null(strstr(verdict_of(&f), expected));
    speaker_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classes_are_told),
        cmocka_unit_test(test_many_classes),
        cmocka_unit_test(test_intervals_of_scores),
        cmocka_unit_test(test_interval_of_replies),
        cmocka_unit_test(test_intervals_are_kept),
        cmocka_unit_test(test_errors_of_any_size),
        cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_refit_ahead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
