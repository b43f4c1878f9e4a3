/* What the bank of method auto publishes: who has its events and the scores of its members computes the
 * rest again. */
#include "support/engine.h"
#include "support/quick.h"

#include "base/random.h"

#define FEATURES 4
#define MOST     64 /* of members, features and classes */

static struct svi_random dice;

static double uniform(void) {
    return (double)(svi_random_next(&dice) >> 11) * 0x1p-53;
}

static void speaker_auto(struct speaker *f, const char *task, const char *serve) {
    const char *const settings[] = {"method",          "auto", "task",    task,   "serve",         serve,
                                    "publish.every",   "1",    "novelty", "none", "score.members", "yes",
                                    "publish.seconds", "0",    NULL};
    dice.state = 7;
    speaker_open(f, settings);
}

/* A row, and how many classes there are: 0 is a regression. Every seventh label comes late, some rows are
 * forgotten. */
static void say_row(struct speaker *f, int i, int classes, double *x) {
    char label[40];
    for (int j = 0; j < FEATURES; j++)
        x[j] = (1 + 100 * (j == 2)) * (uniform() - 0.5) + 20 * (j == 1);
    const double score = x[0] + 0.01 * x[2] + 0.3 * (uniform() - 0.5);
    if (classes == 0)
        snprintf(label, sizeof label, "%.17g", 1000 + 30 * score);
    else
        snprintf(label, sizeof label, "%d", classes == 2 ? score > 0 : (score > 0.2) + (score > -0.2));
    const bool late = i % 7 == 5;
    assert_int_equal(say(f, "{'x': [%.17g, %.17g, %.17g, %.17g], 'id': %d%s%s}", x[0], x[1], x[2], x[3], i,
                         late ? "" : ", 'y': ", late ? "" : label),
                     SVS_OK);
    if (late)
        assert_int_equal(say(f, "{'op': 'label', 'id': %d, 'y': %s}", i, label), SVS_OK);
    if (i % 50 == 49)
        assert_int_equal(say(f, "{'op': 'forget', 'id': %d}", i - 20), SVS_OK);
    f->now += 1;
}

/* ---- what a subscriber computes */

static int array_of(const json_t *j, double *out) {
    size_t i;
    json_t *v;
    if (json_is_number(j)) {
        out[0] = json_number_value(j);
        return 1;
    }
    json_array_foreach((json_t *)(uintptr_t)j, i, v) {
        assert_true(i < MOST * MOST);
        out[i] = json_number_value(v);
    }
    return (int)json_array_size(j);
}

struct linear {
    double W[MOST * MOST], b[MOST], offsets[MOST], curve[SVS_CURVE];
    svs_value classes[MOST];
    svs_model m;
};

static void linear_of(struct linear *l, const json_t *map, int class_count) {
    const json_t *law = json_object_get(map, "calibration");
    const int rows = array_of(json_object_get(map, "b"), l->b);
    const int d = array_of(json_object_get(map, "W"), l->W) / rows;
    l->m = (svs_model){.d = d, .rows = rows, .class_count = class_count, .W = l->W, .b = l->b};
    if (law) {
        l->m.calibration = (svs_calibration){number(law, "a"), l->offsets, l->curve};
        assert_int_equal(array_of(json_object_get(law, "b"), l->offsets), rows);
        assert_int_equal(array_of(json_object_get(law, "curve"), l->curve), SVS_CURVE);
    }
}

static void assert_near(double a, double b, double tolerance) {
    if (!(fabs(a - b) <= tolerance * (1 + fabs(b))))
        fail_msg("%.17g is not %.17g", a, b);
}

/* The scores of members that are linear, from the bank as it was before the sample: exact ones to rounding,
 * first-order ones to what single precision leaves of a row. */
static int check_members(const json_t *bank, const json_t *score, const double *x) {
    const json_t *said = json_object_get(score, "members"), *m;
    const int classes = (int)json_array_size(json_object_get(bank, "classes"));
    double published[MOST], mine[MOST];
    struct linear l;
    size_t i;
    int linear = 0;
    assert_int_equal(json_object_size(said), json_array_size(json_object_get(bank, "members")));
    json_array_foreach(json_object_get(bank, "members"), i, m) {
        const int rows = array_of(json_object_get(said, text_of(m, "name")), published);
        const bool window = strstr(text_of(m, "kind"), "alsvm");
        if (!json_object_get(m, "W"))
            continue;
        linear_of(&l, m, classes);
        assert_int_equal(l.m.rows, rows);
        svs_model_scores(&l.m, x, mine);
        for (int r = 0; r < rows; r++)
            assert_near(mine[r], published[r], window ? 1e-8 : 1e-3); /* refined every 16 samples */
        linear++;
    }
    return linear;
}

static double clipped(double v, double most) {
    return fmin(fmax(v, -most), most);
}

/* What stack i makes of what the members said. */
static void stack_scores(const json_t *bank, const json_t *said, int i, int rows, double *out) {
    const json_t *m, *expert = json_array_get(json_object_get(bank, "experts"), (size_t)i + 1);
    const double clip = number(bank, "clip"), center = number(bank, "center"), unit = number(bank, "unit");
    double scores[MOST];
    size_t at;
    for (int r = 0; r < rows; r++)
        out[r] = number(expert, "constant");
    json_array_foreach(json_object_get(bank, "members"), at, m) {
        array_of(json_object_get(said, text_of(m, "name")), scores);
        for (int r = 0; r < rows; r++)
            out[r] += json_number_value(json_array_get(json_object_get(m, "stacks"), (size_t)i)) *
                      clipped(isnan(unit) ? scores[r] : (scores[r] - center) / unit, clip);
    }
}

/* The votes, or what the member says that was best recently. */
static void first_expert(const json_t *bank, const json_t *said, int rows, int classes, double *out) {
    double scores[MOST], best = HUGE_VAL;
    const json_t *m;
    size_t at;
    for (int r = 0; r < rows; r++)
        out[r] = classes > 2 ? -1 : 0;
    json_array_foreach(json_object_get(bank, "members"), at, m) {
        array_of(json_object_get(said, text_of(m, "name")), scores);
        if (classes == 0 && number(m, "recent") < best) {
            best = number(m, "recent");
            out[0] = (scores[0] - number(bank, "center")) / number(bank, "unit");
        } else if (classes == 2) {
            out[0] += scores[0] > 0 ? number(m, "vote") : -number(m, "vote");
        } else if (classes > 2) {
            int most = 0;
            for (int r = 1; r < rows; r++)
                most = scores[r] > scores[most] ? r : most;
            out[most] += 2 * number(m, "vote");
        }
    }
}

/* Two classes by a slope, more by a calibration. */
static void expert_proba(const json_t *expert, const double *scores, int rows, int classes, double *proba) {
    const json_t *law = json_object_get(expert, "calibration");
    double b[MOST], curve[SVS_CURVE];
    if (rows == 1) {
        proba[1] = 1 / (1 + exp(-clipped(number(expert, "slope") * scores[0], 15)));
        proba[0] = 1 - proba[1];
        return;
    }
    const svs_model m = {.rows = rows, .class_count = classes, .calibration = {number(law, "a"), b, curve}};
    array_of(json_object_get(law, "b"), b);
    array_of(json_object_get(law, "curve"), curve);
    assert_true(svs_model_probabilities(&m, scores, proba));
}

static void softmax(const double *z, int rows, double *p) {
    double most = z[0], sum = 0;
    if (rows == 1) {
        p[1] = 1 / (1 + exp(-clipped(z[0], 15)));
        p[0] = 1 - p[1];
        return;
    }
    for (int r = 1; r < rows; r++)
        most = fmax(most, z[r]);
    for (int r = 0; r < rows; r++)
        sum += p[r] = exp(fmax(z[r] - most, -15));
    for (int r = 0; r < rows; r++)
        p[r] /= sum;
}

/* Logistic stack i: base log odds of the rates over all samples, the members, and a constant. */
static void logistic_proba(const json_t *bank, const json_t *said, int i, int rows, const double *all,
                           double *p) {
    const json_t *m, *e = json_array_get(json_object_get(bank, "mixture"), (size_t)i + 1);
    double z[MOST], scores[MOST];
    size_t at;
    for (int r = 0; r < rows; r++)
        z[r] = (rows == 1 ? log(all[1] / all[0]) : log(all[r])) + number(e, "constant");
    json_array_foreach(json_object_get(bank, "members"), at, m) {
        const double w = json_number_value(json_array_get(json_object_get(m, "logistic"), (size_t)i));
        array_of(json_object_get(said, text_of(m, "name")), scores);
        for (int r = 0; r < rows; r++)
            z[r] += w * clipped((scores[r] - number(m, "mean")) * number(m, "scale"), 8);
    }
    softmax(z, rows, p);
}

/* What the mixture makes of the combination's probabilities, in their place. */
static void mixture_proba(const json_t *bank, const json_t *said, int rows, int classes, double *mixed) {
    const json_t *mixture = json_object_get(bank, "mixture");
    double proba[5][MOST], sum = 0;
    assert_int_equal(json_array_size(mixture), 5);
    for (int i = 3; i < 5; i++) {
        double of_rate = 0;
        assert_int_equal(array_of(json_object_get(json_array_get(mixture, (size_t)i), "counts"), proba[i]),
                         classes);
        for (int k = 0; k < classes; k++)
            of_rate += proba[i][k];
        for (int k = 0; k < classes; k++)
            proba[i][k] /= of_rate;
    }
    for (int k = 0; k < classes; k++)
        proba[0][k] = fmax(mixed[k], 1e-6);
    for (int i = 0; i < 2; i++)
        logistic_proba(bank, said, i, rows, proba[3], proba[1 + i]);
    memset(mixed, 0, (size_t)classes * sizeof *mixed);
    for (int i = 0; i < 5; i++) {
        const double share = number(json_array_get(mixture, (size_t)i), "share");
        sum += share;
        for (int k = 0; k < classes; k++)
            mixed[k] += share * proba[i][k];
    }
    assert_near(sum, 1, 1e-9);
}

static void check_answer(const json_t *bank, const json_t *score) {
    const json_t *said = json_object_get(score, "members"), *experts = json_object_get(bank, "experts");
    const int classes = (int)json_array_size(json_object_get(bank, "classes"));
    double final[MOST], mine[MOST], proba[MOST], mixed[MOST] = {0}, value = 0;
    const int rows = array_of(json_object_get(score, "scores"), final);
    for (int i = 0; i < 4; i++) {
        const json_t *e = json_array_get(experts, (size_t)i);
        if (i == 0)
            first_expert(bank, said, rows, classes, mine);
        else
            stack_scores(bank, said, i - 1, rows, mine);
        value += number(e, "share") * mine[0];
        if (classes < 2)
            continue;
        expert_proba(e, mine, rows, classes, proba);
        for (int k = 0; k < classes; k++)
            mixed[k] += number(e, "share") * proba[k];
    }
    if (classes >= 2)
        mixture_proba(bank, said, rows, classes, mixed);
    if (classes == 0)
        assert_near(number(bank, "center") + number(bank, "unit") * value, final[0],
                    1e-7); /* a stack holds inputs in single precision */
    else if (classes == 2)
        assert_near(0.5 * log(fmax(mixed[1], 1e-6) / fmax(mixed[0], 1e-6)), final[0], 1e-7);
    for (int k = 0; k < classes && classes > 2; k++)
        assert_near(log(fmax(mixed[k], 1e-6)), final[k], 1e-7);
}

static void rebuild(const char *task, int classes) {
    struct speaker f;
    double x[FEATURES];
    int rebuilt = 0;
    speaker_auto(&f, task, "online");
    for (int i = 0; i < 300; i++) {
        json_t *bank = json_incref(f.last[SVI_TOPIC_BANK]);
        say_row(&f, i, classes, x);
        const json_t *score = f.last[SVI_TOPIC_SCORE], *model = f.last[SVI_TOPIC_MODEL];
        assert_true(number(score, "bank") == number(score, "model"));
        assert_true(json_is_false(json_object_get(model, "reproduces")));
        assert_true(json_is_true(json_object_get(model, "serves")));
        if (f.count[SVI_TOPIC_BANK] > 0)
            assert_true(number(f.last[SVI_TOPIC_BANK], "version") == number(model, "version"));
        assert_int_equal(f.count[SVI_TOPIC_BANK], f.count[SVI_TOPIC_MODEL]);
        if (bank && number(bank, "version") == number(score, "bank") && i > 20) {
            assert_true(json_is_true(json_object_get(bank, "serves")));
            assert_true(check_members(bank, score, x) >= (classes ? 9 : 8));
            check_answer(bank, score);
            rebuilt++;
        }
        json_decref(bank);
    }
    assert_true(rebuilt > 220);
    speaker_close(&f);
}

static void test_two_classes(void **state) {
    (void)state;
    rebuild("classify", 2);
}

static void test_three_classes(void **state) {
    (void)state;
    rebuild("classify", 3);
}

static void test_regression(void **state) {
    (void)state;
    rebuild("regress", 0);
}

/* serve linear: every score is W x + b of the model that it names, its probabilities are by that model's
 * calibration. */
static void serve_linear(const char *task, int classes) {
    struct speaker f;
    double x[FEATURES], published[MOST], mine[MOST];
    struct linear l;
    int compared = 0, methods = 0;
    char method[40] = "";
    speaker_auto(&f, task, "linear");
    for (int i = 0; i < 300; i++) {
        json_t *model = json_incref(f.last[SVI_TOPIC_MODEL]);
        say_row(&f, i, classes, x);
        const json_t *score = f.last[SVI_TOPIC_SCORE];
        assert_null(json_object_get(score, "bank"));
        if (model && number(model, "version") == number(score, "model")) {
            char now[40];
            linear_of(&l, model, (int)json_array_size(json_object_get(model, "classes")));
            assert_true(json_is_true(json_object_get(model, "reproduces")));
            assert_int_equal(array_of(json_object_get(score, "scores"), published), l.m.rows);
            svs_model_scores(&l.m, x, mine);
            for (int r = 0; r < l.m.rows; r++)
                assert_near(mine[r], published[r], 1e-12);
            if (classes && i > 20) {
                assert_true(svs_model_probabilities(&l.m, published, mine));
                assert_int_equal(array_of(json_object_get(score, "proba"), published), classes);
                for (int k = 0; k < classes; k++)
                    assert_near(mine[k], published[k], 1e-9);
            }
            snprintf(now, sizeof now, "%s-%g", text_of(model, "method"), number(model, "window"));
            methods += strcmp(method, now) != 0;
            memcpy(method, now, sizeof method);
            compared++;
        }
        json_decref(model);
    }
    assert_true(compared > 250);
    assert_true(methods > 1); /* it was not the same member all the time */
    assert_true(json_is_false(json_object_get(f.last[SVI_TOPIC_BANK], "serves")));
    speaker_close(&f);
}

static void test_linear(void **state) {
    (void)state;
    serve_linear("classify", 2);
    serve_linear("classify", 3);
    serve_linear("regress", 0);
}

/* A model whose scores are not the stream's has the calibration of its own scores. */
static void test_calibration(void **state) {
    (void)state;
    struct speaker f;
    double x[FEATURES], scores[1], proba[2], sum = 0, ones = 0;
    struct linear l;
    int count = 0;
    speaker_auto(&f, "classify", "online");
    for (int i = 0; i < often(1500, 400); i++) {
        json_t *model = json_incref(f.last[SVI_TOPIC_MODEL]);
        say_row(&f, i, 2, x);
        const json_t *score = f.last[SVI_TOPIC_SCORE];
        if (i > 300 && json_object_get(score, "y")) {
            linear_of(&l, model, 2);
            svs_model_scores(&l.m, x, scores);
            assert_true(svs_model_probabilities(&l.m, scores, proba));
            const json_t *second = json_array_get(json_object_get(model, "classes"), 1);
            sum += proba[1];
            ones += json_equal(json_object_get(score, "y"), second);
            count++;
        }
        json_decref(model);
    }
    assert_true(fabs(sum - ones) / count < (quick() ? 0.1 : 0.03));
    speaker_close(&f);
}

/* ---- requests */

static void test_requests(void **state) {
    (void)state;
    struct speaker f, other;
    double x[FEATURES];
    speaker_auto(&f, "classify", "online");
    for (int i = 0; i < 98; i++) /* the last of them has its label, and is the last command */
        say_row(&f, i, 2, x);
    const int banks = f.count[SVI_TOPIC_BANK];
    json_t *reply = ask(&f, "{'op': 'bank'}"), *again = ask(&f, "{'op': 'bank'}"),
           *scored = ask(&f, "{'op': 'score', 'sample': {'x': [0.1, 20, 30, 0.2]}}"),
           *repeated = ask(&f, "{'op': 'score', 'sample': {'x': [0.1, 20, 30, 0.2]}}"),
           *model = ask(&f, "{'op': 'model'}"), *after = ask(&f, "{'op': 'bank'}");
    assert_true(json_equal(json_object_get(reply, "bank"), f.last[SVI_TOPIC_BANK]));
    assert_true(json_equal(reply, again) && json_equal(reply, after) && json_equal(scored, repeated));
    assert_true(number(scored, "bank") == number(scored, "model"));
    assert_true(json_is_false(json_object_get(json_object_get(model, "model"), "reproduces")));
    assert_int_equal(f.count[SVI_TOPIC_BANK], banks);
    assert_int_equal(say(&f, "{'x': [0.1, 20, 30, 0.2]}"), SVS_OK); /* it says what was foretold */
    assert_true(
        json_equal(json_object_get(f.last[SVI_TOPIC_SCORE], "scores"), json_object_get(scored, "scores")));
    json_t *status = ask(&f, "{'op': 'status'}"),
           *config = ask(&f, "{'op': 'config', 'set': {'serve': 'linear', 'score.members': 'no'}}"),
           *linear = ask(&f, "{'op': 'status'}");
    assert_string_equal(text_of(status, "serving"), "bank");
    assert_string_equal(text_of(linear, "serving"), "linear");
    assert_null(json_object_get(config, "error"));
    assert_int_equal(say(&f, "{'x': [0.1, 20, 30, 0.2]}"), SVS_OK);
    assert_null(json_object_get(f.last[SVI_TOPIC_SCORE], "members"));
    assert_null(json_object_get(f.last[SVI_TOPIC_SCORE], "bank"));
    json_t *forced = ask(&f, "{'op': 'publish'}");
    assert_int_equal(f.count[SVI_TOPIC_BANK], f.count[SVI_TOPIC_MODEL]);
    speaker_open(&other, (const char *const[]){"method", "alsvm", "publish.every", "1", NULL});
    json_t *none = ask(&other, "{'op': 'bank'}");
    assert_string_equal(text_of(none, "code"), "unavailable");
    assert_int_equal(say(&other, "[{'x': [1], 'y': 1}, {'x': [2], 'y': 2}]"), SVS_OK);
    assert_int_equal(other.count[SVI_TOPIC_BANK], 0);
    assert_true(json_is_true(json_object_get(other.last[SVI_TOPIC_MODEL], "reproduces")));
    assert_null(json_object_get(other.last[SVI_TOPIC_SCORE], "bank"));
    json_t *const all[] = {reply,  again,  scored, repeated, model, after,
                           status, config, linear, forced,   none};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        json_decref(all[i]);
    speaker_close(&other);
    speaker_close(&f);
}

/* Before the first sample, with one class, and with many of both: there is always a bank to tell of. */
static void test_sizes(void **state) {
    (void)state;
    struct speaker f;
    struct svi_bank_description told;
    struct svi_event event;
    struct svi_bytes bytes = {0};
    speaker_open(&f, (const char *const[]){"method", "auto", "novelty", "none", NULL});
    for (int i = 0; i < 400; i++) {
        char row[4000] = "";
        size_t n = 0;
        if (i < 3 || i > 398) {
            assert_int_equal(svi_engine_bank_event(svi_stream_root(f.e), &told, &event, NULL), SVS_OK);
            assert_int_equal(svi_event_encode(&event, &bytes), SVS_OK);
        }
        for (int j = 0; j < 54; j++)
            n +=
                (size_t)snprintf(row + n, sizeof row - n, "%s%.3f", j ? ", " : "", uniform() + (j == i % 10));
        assert_int_equal(say(&f, "{'x': [%s], 'y': %d}", row, i % 10), SVS_OK);
    }
    assert_int_equal(told.rows, 10);
    assert_in_range(bytes.size, 34560, 65536); /* 8 linear members of 10 x 54 doubles are the most of it */
    double votes = 0;
    for (int i = 0; i < told.count; i++)
        votes += told.member[i].vote;
    assert_near(votes, 1, 1e-9);
    svi_bytes_clear(&bytes);
    speaker_close(&f);
}

/* A repetition numbers what it does not send. */
static void test_muted(void **state) {
    (void)state;
    struct speaker f;
    double x[FEATURES];
    speaker_auto(&f, "classify", "online");
    svi_stream_mute(f.e, true);
    for (int i = 0; i < 40; i++)
        say_row(&f, i, 2, x);
    assert_int_equal(f.count[SVI_TOPIC_BANK], 0);
    svi_stream_mute(f.e, false);
    svs_model m;
    struct svi_bank_description told;
    struct svi_event model, bank;
    assert_int_equal(svi_engine_model_event(svi_stream_root(f.e), &m, &model, NULL), SVS_OK);
    assert_int_equal(svi_engine_bank_event(svi_stream_root(f.e), &told, &bank, NULL), SVS_OK);
    assert_true(model.seq > 30 && model.seq == bank.seq);
    for (int t = 0; t < SVI_TOPIC_COUNT; t++)
        f.count[t] = -1;
    speaker_close(&f);
}

/* What readers make of the key. */
static void test_decoded(void **state) {
    (void)state;
    const double w = 1, b = 2;
    const struct svi_figure quality = {"accuracy", SVI_NUMBER, {.number = 1}};
    const svs_value classes[] = {{.kind = SVS_INT, .as.i = 1}, {.kind = SVS_INT, .as.i = 2}};
    for (int i = 0; i < 4; i++) {
        struct svi_bytes bytes = {0};
        svs_error err;
        const svs_model m = {.method = "alsvm",
                             .d = 1,
                             .rows = 1,
                             .class_count = 2,
                             .W = &w,
                             .b = &b,
                             .classes = classes,
                             .serves = i & 1,
                             .elsewhere = i & 2};
        assert_int_equal(svi_model_encode(&m, &quality, 1, &bytes), SVS_OK);
        svs_model *read = svs_model_decode(bytes.data, bytes.size, &err);
        assert_non_null(read);
        assert_int_equal(read->elsewhere, i == 3);
        svs_model_free(&read);
        svi_bytes_clear(&bytes);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_classes), cmocka_unit_test(test_three_classes),
        cmocka_unit_test(test_regression),  cmocka_unit_test(test_linear),
        cmocka_unit_test(test_calibration), cmocka_unit_test(test_requests),
        cmocka_unit_test(test_sizes),       cmocka_unit_test(test_muted),
        cmocka_unit_test(test_decoded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
