/* What a person says of an alert: what was false is usual from then on, what was true stays out, and a state
 * that was kept in between goes on the same way. */
#include "support/engine.h"
#include "support/problem.h"

#include "engine/engine_internal.h"

static const char *const budgeted[] = {
    "method", "none", "alert.budget", "3/day", "novelty.calibration", "1000",
    "scores", "none", "alert.rules",  "none",  "novelty.warmup",      "100",
    NULL};

struct plant {
    struct speaker f;
    uint64_t random;
    int t;
    int opened;
    int64_t number; /* of the last alert */
};

static void plant_open(struct plant *p) {
    *p = (struct plant){.random = 3};
    speaker_open(&p->f, budgeted);
}

/* Rows a minute apart, far away where `far`. Returns the alerts that open. */
static int plant_run(struct plant *p, int rows, double far) {
    int opened = 0;
    for (int i = 0; i < rows; i++, p->t++) {
        const double a = test_normal(&p->random), b = test_normal(&p->random);
        const int before = p->f.count[SVI_TOPIC_ALERT];
        say(&p->f, "{'x': [%.17g, %.17g], 'ts': %d}", far + a / (far > 0 ? 20 : 1), b, 60 * p->t);
        if (p->f.count[SVI_TOPIC_ALERT] == before)
            continue;
        p->number = json_integer_value(json_object_get(p->f.last[SVI_TOPIC_ALERT], "alert"));
        opened += strcmp(text_of(p->f.last[SVI_TOPIC_ALERT], "state"), "open") == 0;
    }
    return opened;
}

static json_t *plant_verdict(struct plant *p, const char *verdict) {
    return ask(&p->f, "{'op': 'alert', 'alert': %d, 'verdict': %s}", (int)p->number, verdict);
}

static void plant_refused(struct plant *p, int64_t number, const char *verdict, const char *code,
                          const char *part) {
    json_t *reply = ask(&p->f, "{'op': 'alert', 'alert': %d, 'verdict': %s}", (int)number, verdict);
    if (strcmp(text_of(reply, "code"), code) != 0 || !strstr(text_of(reply, "error"), part))
        fail_msg("%s: %s", text_of(reply, "code"), text_of(reply, "error"));
    json_decref(reply);
}

static double plant_figure(struct plant *p, const char *name) {
    const struct svi_figure *f;
    const int count = svi_stream_figures(p->f.e, NULL, NOW, &f);
    return svi_figure_value(f, count, name);
}

static double level_between; /* alert_level before the second excursion */

/* Two like excursions of that number of rows, with a verdict between them. Returns the alerts of the second.
 */
static int twice(const char *verdict, const char *budget, int rows, bool again) {
    struct plant p;
    plant_open(&p);
    json_decref(ask(&p.f, "{'op': 'config', 'set': {'alert.budget': '%s'}}", budget));
    plant_run(&p, 6000, 0);
    assert_int_equal(plant_run(&p, rows, 9), 1);
    const int64_t number = p.number;
    plant_run(&p, 300, 0);
    p.number = number;
    if (again)
        speaker_take_up_again(&p.f);
    if (verdict) {
        json_t *reply = plant_verdict(&p, verdict);
        assert_true(json_is_true(json_object_get(reply, "ok")));
        json_decref(reply);
        const bool yes = strstr(verdict, "true");
        assert_true(plant_figure(&p, "alert_precision") == yes);
        assert_true(plant_figure(&p, yes ? "alerts_true" : "alerts_false") == 1);
        plant_refused(&p, number, "true", "unavailable", "is final");
    }
    if (again)
        speaker_take_up_again(&p.f);
    plant_run(&p, 300, 0);
    level_between = plant_figure(&p, "alert_level");
    const int opened = plant_run(&p, rows, 9);
    plant_run(&p, 100, 0);
    speaker_close(&p.f);
    return opened;
}

static void test_false_is_usual(void **state) {
    (void)state;
    assert_int_equal(twice(NULL, "3/day", 1, false), 1);
    assert_int_equal(twice("false", "3/day", 1, false), 0);
    assert_int_equal(twice("'false'", "3/day", 1, true), 0);
}

static void test_true_stays_out(void **state) {
    (void)state;
    for (int rows = 1; rows <= 7; rows += 3) {
        (void)twice(NULL, "2/week", rows, false);
        const double level = level_between; /* the alert has raised it */
        assert_int_equal(twice("true", "2/week", rows, false), 1);
        assert_true(level_between < level);
        const double without = level_between;
        assert_int_equal(twice("true", "2/week", rows, true), 1);
        assert_true(level_between == without);
    }
}

static void test_refusals(void **state) {
    (void)state;
    struct plant p;
    plant_open(&p);
    plant_run(&p, 2000, 0);
    plant_refused(&p, 1000, "true", "unavailable", "does not exist");
    plant_refused(&p, 0, "true", "wrong_type", "from 1");
    plant_refused(&p, 1, "7", "wrong_type", "verdict must be");
    plant_refused(&p, 1, "'maybe'", "wrong_type", "verdict must be");
    json_decref(ask(&p.f, "{'op': 'config', 'set': {'alert.budget': 'none'}}"));
    plant_refused(&p, 1, "true", "unavailable", "alert.budget");
    speaker_close(&p.f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_false_is_usual),
                                       cmocka_unit_test(test_true_stays_out),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
