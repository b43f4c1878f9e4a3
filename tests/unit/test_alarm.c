/* The quality alarm as the engine's surroundings see it: what an alert says, when it closes, its episode,
 * what drift.action does; and that frames, archives and replays change no byte. */
#include "support/tape.h"
#include "support/archived.h"
#include "base/random.h"
#include "quality/alarm.h"
#include "store/checkpoint_file.h"
#include "support/quick.h"

#define TURN 2000 /* the labels change places from this sample on */

static const char *const names[] = {"temp", "vibration", "flow"};

static const char *const settings[] = {"stream", "pump1", "novelty", "none", "window", "500", NULL};

/* Two classes by vibration; from TURN on by its opposite, and flow has moved. */
static void swapped(int i, struct row *r) {
    tape_pump(i, r);
    r->names = names;
    r->y = (r->x[1] > 1.1) == (i < TURN);
    if (i % 25 == 3)
        r->y = !r->y;
    if (i >= TURN)
        r->x[2] += 2;
}

static void check_numbers(const struct tape *t) {
    int64_t opened = 0, open = 0;
    for (int i = 0; i < t->count[SVI_TOPIC_ALERT]; i++) {
        const struct told *a = &t->told[i];
        assert_string_equal(a->kind, "quality");
        assert_true(strcmp(a->state, "open") == 0 ? open == 0 && a->alert == ++opened
                                                  : open > 0 && a->alert == opened);
        open = strcmp(a->state, "close") == 0 ? 0 : a->alert;
    }
}

static void an_alert_tells_what_happened(void **state) {
    (void)state;
    struct tape t;
    tape_open(&t, settings, NULL);
    tape_feed(&t, swapped, 0, TURN, 16);
    assert_int_equal(t.count[SVI_TOPIC_ALERT], 0);
    tape_feed(&t, swapped, TURN, 2 * TURN, 16);
    assert_true(t.count[SVI_TOPIC_ALERT] >= 2);
    const struct told *a = t.told, *last = &t.told[t.count[SVI_TOPIC_ALERT] - 1];
    check_numbers(&t);
    assert_string_equal(a->state, "open");
    assert_in_range(a->at, TURN + SVI_ALARM_ROWS - 1, TURN + 30); /* twenty rows of evidence */
    assert_non_null(strstr(a->text, " rows)"));
    assert_string_equal(a->measure, "error");
    assert_true(a->before > 0.02 && a->before < 0.12 && a->after > 0.5 && a->after <= 1);
    assert_float_equal(a->since, START + TURN, 6);
    assert_true(a->ts == START + a->at);
    assert_true(a->count >= 1 && a->count <= CONTRIBUTORS);
    assert_string_equal(a->name[0], "flow");
    assert_float_equal(a->top[0].value, 7, 1);
    assert_float_equal(a->top[0].low, 5 - 0.82, 0.1);
    assert_float_equal(a->top[0].high, 5 + 0.82, 0.1);
    assert_true(a->top[0].adds > 2);
    assert_memory_equal(a->text, "pump1 predictions: ", 19);
    assert_non_null(strstr(a->text, " % wrong ("));
    assert_non_null(strstr(a->text, " rows) since 22:46 UTC (after sample 2,0"));
    assert_non_null(strstr(a->text, " % before ("));
    if (getenv("SVMSTREAM_STUDY"))
        for (int i = 0; i < t.count[SVI_TOPIC_ALERT]; i++)
            printf("%s\n", t.told[i].text);
    assert_non_null(strstr(a->text, "; moved most: flow 5"));
    assert_string_equal(last->state, "close");
    assert_true(last->after < 0.3 && last->since == a->since);
    assert_memory_equal(last->text, "pump1 predictions back to normal after ", 39);
    assert_true(tape_stat(&t, "quality_alerts") == 1 && tape_stat(&t, "quality_alert_open") == 0);
    assert_true(tape_stat(&t, "alerts") == 0);
    tape_close(&t);
}

/* The errors of a regression: rmse. */
static void a_regression_has_rmse(void **state) {
    (void)state;
    struct tape t;
    tape_open(&t, settings, (const char *const[]){"task", "regress", NULL});
    tape_feed(&t, swapped, 0, 2 * TURN, 16);
    assert_true(t.count[SVI_TOPIC_ALERT] >= 2);
    const struct told *a = t.told;
    check_numbers(&t);
    assert_string_equal(a->state, "open");
    assert_in_range(a->at, TURN, TURN + 40);
    assert_string_equal(a->measure, "rmse");
    assert_true(a->before > 0.2 && a->before < 0.45 && a->after > 1.5 * a->before);
    assert_memory_equal(a->text, "pump1 predictions: rmse 0.", 26);
    tape_close(&t);
}

static void off_is_off(void **state) {
    (void)state;
    struct tape t;
    tape_open(&t, settings, (const char *const[]){"drift.rate", "0", NULL});
    tape_feed(&t, swapped, 0, TURN + 500, 16);
    assert_int_equal(t.count[SVI_TOPIC_ALERT], 0);
    struct svi_settings live = t.s;
    live.drift_rate = 1e-4;
    assert_int_equal(svi_stream_configure(t.e, &live, 0, NULL, NULL), SVS_OK);
    tape_feed(&t, swapped, 0, TURN + 100, 16); /* back to the first concept, and again */
    assert_true(t.count[SVI_TOPIC_ALERT] >= 1 && tape_stat(&t, "quality_alert_open") == 1);
    live.drift_rate = 0;
    assert_int_equal(svi_stream_configure(t.e, &live, 0, NULL, NULL), SVS_OK);
    const struct told *last = &t.told[t.count[SVI_TOPIC_ALERT] - 1];
    assert_string_equal(last->state, "close");
    assert_string_equal(last->text, "pump1 quality alert ended: drift.rate is 0");
    assert_true(tape_stat(&t, "quality_alert_open") == 0);
    tape_close(&t);
}

static void reset_closes(void **state) {
    (void)state;
    struct tape t;
    tape_open(&t, settings, NULL);
    tape_feed(&t, swapped, 0, TURN + 30, 10);
    assert_int_equal(t.count[SVI_TOPIC_ALERT], 1);
    svi_engine_reset(svi_stream_root(t.e));
    assert_int_equal(t.count[SVI_TOPIC_ALERT], 2);
    assert_string_equal(t.told[1].state, "close");
    assert_string_equal(t.told[1].text, "pump1 quality alert ended: the stream was reset");
    check_numbers(&t);
    tape_close(&t);
}

/* Novelty and quality share the numbers of their episodes. */
static void episodes_have_numbers(void **state) {
    (void)state;
    struct tape t;
    int64_t last = 0, of[2] = {0};
    tape_open(&t, settings,
              (const char *const[]){"novelty", "fosvm1", "novelty.calibration", "200", "novelty.warmup",
                                    "200", "alert.cooldown", "0", "alert.p", "0.01", NULL});
    tape_feed(&t, swapped, 0, TURN + 1000, 16);
    bool both[2] = {false};
    for (int i = 0; i < t.count[SVI_TOPIC_ALERT]; i++) {
        const struct told *a = &t.told[i];
        const bool quality = strcmp(a->kind, "quality") == 0;
        assert_true(quality || strcmp(a->kind, "novelty") == 0);
        if (strcmp(a->state, "open") == 0)
            assert_int_equal(of[quality] = a->alert, ++last);
        assert_int_equal(a->alert, of[quality]);
        both[quality] = true;
    }
    assert_true(both[0] && both[1]);
    tape_close(&t);
}

/* ---- what is done about it */

static double errors_after(const char *action, int64_t *held) {
    struct tape t;
    tape_open(&t, settings, (const char *const[]){"drift.action", action, "window", "1500", NULL});
    tape_feed(&t, swapped, 0, TURN, 50);
    const struct svi_figure *f = tape_figure(&t, "accuracy");
    const double before = f->as.number * TURN;
    tape_feed(&t, swapped, TURN, TURN + 1000, 50);
    *held = (int64_t)tape_stat(&t, "held");
    const double right = tape_stat(&t, "accuracy") * (TURN + 1000) - before;
    assert_true(tape_stat(&t, "quality_alerts") >= 1);
    tape_close(&t);
    return 1 - right / 1000;
}

static void shrink_leaves_what_came_after(void **state) {
    (void)state;
    int64_t held, shrunk;
    const double none = errors_after("none", &held), shrink = errors_after("shrink", &shrunk);
    assert_int_equal(held, 1500);
    assert_in_range(shrunk, 900, 1040);
    assert_true(shrink < 0.12 && none > 2 * shrink);
}

/* The model is that of the samples that are left. */
static void shrink_is_exact(void **state) {
    (void)state;
    struct tape t;
    double difference;
    tape_open(&t, settings, (const char *const[]){"drift.action", "shrink", NULL});
    tape_feed(&t, swapped, 0, TURN + 100, 10);
    assert_in_range((int)tape_stat(&t, "held"), 100, 140);
    assert_int_equal(svi_stream_verify(t.e, &difference, NULL), SVS_OK);
    assert_true(difference < 1e-9);
    tape_close(&t);
}

static void refit_begins_one(void **state) {
    (void)state;
    struct tape t;
    tape_open(
        &t, settings,
        (const char *const[]){"drift.action", "refit", "refit", "auto", "refit.every", "1000000", NULL});
    tape_feed(&t, swapped, 0, TURN, 10);
    svi_engine_refit_here(svi_stream_root(t.e));
    assert_true(tape_stat(&t, "refits") == 0);
    tape_feed(&t, swapped, TURN, TURN + 100, 10);
    svi_engine_refit_here(svi_stream_root(t.e));
    assert_true(tape_stat(&t, "refits") == 1);
    tape_close(&t);
}

/* ---- bytes */

/* Labels that come at once, late or never. */
static void late(int i, struct row *r) {
    if (i % 2) {
        swapped(i - 1, r);
        const int y = r->y;
        *r = (struct row){.op = "label", .id = i - 1, .y = y, .ts = r->ts};
        return;
    }
    swapped(i, r);
    r->id = i;
    r->y = -1;
}

static void open_all(struct tape *t) {
    tape_open(t, settings, (const char *const[]){"drift.action", "shrink", NULL});
}

static void frames_change_no_byte(void **state) {
    (void)state;
    tape_draw *const draws[] = {swapped, late};
    for (int k = 0; k < 2; k++) {
        struct tape one, t;
        open_all(&one);
        tape_feed(&one, draws[k], 0, TURN + 400, 1);
        assert_true(one.count[SVI_TOPIC_ALERT] >= 1);
        for (int batch = 7; batch < 400; batch *= 19) {
            open_all(&t);
            tape_feed(&t, draws[k], 0, TURN + 400, batch);
            assert_int_equal(t.deeds.size, one.deeds.size);
            assert_memory_equal(t.deeds.data, one.deeds.data, one.deeds.size);
            tape_close(&t);
        }
        tape_close(&one);
    }
}

/* A checkpoint at any moment goes on as the whole run does: the same alerts, and the same fingerprint. */
static void goes_on_from_a_checkpoint(void **state) {
    (void)state;
    static const int stops[] = {100, TURN - 3, TURN + 6, TURN + 40, TURN + 300};
    char whole[SVI_HASH_TEXT], part[SVI_HASH_TEXT];
    for (size_t k = 0; k < sizeof stops / sizeof *stops; k++) {
        struct tape a, b;
        struct svi_checkpoint c = {0};
        svs_error err;
        open_all(&a);
        tape_feed(&a, swapped, 0, stops[k], 10);
        assert_int_equal(svi_stream_save(a.e, &c, &err), SVS_OK);
        open_all(&b);
        assert_int_equal(svi_stream_load(b.e, &c, &err), SVS_OK);
        for (int topic = 0; topic < SVI_TOPIC_COUNT; topic++)
            b.count[topic] = a.count[topic];
        const size_t said = a.deeds.size;
        tape_feed(&a, swapped, stops[k], TURN + 600, 10);
        tape_feed(&b, swapped, stops[k], TURN + 600, 10);
        assert_int_equal(a.deeds.size - said, b.deeds.size);
        assert_memory_equal(a.deeds.data + said, b.deeds.data, b.deeds.size);
        assert_int_equal(svi_stream_hash(a.e, whole, &err), SVS_OK);
        assert_int_equal(svi_stream_hash(b.e, part, &err), SVS_OK);
        assert_string_equal(whole, part);
        svi_checkpoint_clear(&c);
        tape_close(&a);
        tape_close(&b);
    }
}

static void archive_alarm(struct svi_archive *a, void *alarm) {
    svi_alarm_archive(a, alarm);
}

/* What a process that turned the alarm off has is what its checkpoint brings back, byte for byte. */
static void turned_off_it_is_as_read(void **state) {
    (void)state;
    for (int regress = 0; regress < 2; regress++) {
        struct svi_alarm on, read;
        struct svi_bytes before = {0}, saved = {0}, again = {0};
        struct svi_random random = {11};
        svs_error err;
        svi_alarm_init(&on, regress, 1e-4);
        assert_int_equal(svi_alarm_make(&on, &err), SVS_OK);
        for (int i = 0; i < 3000; i++)
            svi_alarm_update(&on, svi_random_below(&random, 5) == 0, NULL, 0, i, i);
        assert_int_equal(archived_save(archive_alarm, &on, &before, &err), SVS_OK);
        svi_alarm_configure(&on, 0);
        assert_int_equal(archived_save(archive_alarm, &on, &saved, &err), SVS_OK);
        assert_false(archived_same(&before, &saved));
        svi_alarm_init(&read, regress, 0);
        assert_int_equal(archived_load(archive_alarm, &read, saved.data, saved.size, &err), SVS_OK);
        assert_int_equal(archived_save(archive_alarm, &read, &again, &err), SVS_OK);
        assert_true(archived_same(&saved, &again));
        svi_alarm_free(&on);
        svi_alarm_free(&read);
        svi_bytes_clear(&before);
        svi_bytes_clear(&saved);
        svi_bytes_clear(&again);
    }
}

/* ---- the hour and the budget, on errors alone */

struct course {
    struct svi_alarm s;
    struct svi_random random;
    int opened, updates;
    int64_t first; /* the row of the first alert since it was last set to -1 */
};

static void course_begin(struct course *c, double a_day, bool dated, uint64_t seed) {
    svs_error err;
    *c = (struct course){.random = {seed}, .first = -1};
    svi_alarm_init(&c->s, false, 1e-4);
    c->s.rises.a_day = a_day;
    c->s.dated = dated;
    assert_int_equal(svi_alarm_make(&c->s, &err), SVS_OK);
}

/* A row a minute. */
static void course_row(struct course *c, int64_t i, double rate) {
    const bool wrong = (double)(svi_random_next(&c->random) >> 11) / 9007199254740992.0 < rate;
    const enum svi_alarm_change change =
        svi_alarm_update(&c->s, wrong, NULL, 0, 1.7e9 - 1.7e9 / 86400 + 60.0 * (double)i, i);
    c->opened += change == SVI_ALARM_OPENED;
    c->updates += change == SVI_ALARM_WORSENED;
    c->first = change == SVI_ALARM_OPENED && c->first < 0 ? i : c->first;
}

static double evening(int64_t i) {
    return i % 1440 >= 1080 && i % 1440 < 1320 ? .25 : .05;
}

/* An error rate of .05 by day and .25 in the evening is normal after the first days. What it then reports is
 * a change: at noon and in the evening, with little delay. */
static void a_daily_cycle_is_normal(void **state) {
    (void)state;
    int blind = 0, late = 0, found = 0;
    const int courses = often(20, 8);
    double delay = 0;
    for (int k = 0; k < 2 * courses; k++) {
        const bool dated = k < courses;
        struct course c;
        course_begin(&c, 0, dated, 100 + (uint64_t)k);
        int64_t i = 0;
        for (; i < 5 * 1440; i++)
            course_row(&c, i, evening(i));
        c.opened = 0;
        for (; i < 30 * 1440; i++)
            course_row(&c, i, evening(i));
        *(dated ? &late : &blind) += c.opened;
        if (dated) {
            const int64_t turn = i + (k % 2 ? 720 : 1140);
            for (; i < turn; i++)
                course_row(&c, i, evening(i));
            c.first = -1;
            for (; i < turn + 600 && c.first < 0; i++)
                course_row(&c, i, evening(i) + .4);
            found += c.first >= 0;
            delay += (double)(c.first - turn);
        }
        svi_alarm_free(&c.s);
    }
    print_message(
        "a cycle of 25 days, alerts a course: without the hour %.1f, with it %.2f; a rise by .4 after "
        "%.0f rows\n",
        (double)blind / courses, (double)late / courses, delay / courses);
    assert_true(blind >= 10 * courses); /* the test can fail */
    assert_true(late <= courses / 2);
    assert_true(found == courses && delay / courses < 60);
}

/* Stationary bursts of errors: the alerts keep to their part of the budget, and a large change is found. */
static void bursts_keep_to_the_budget(void **state) {
    (void)state;
    const int courses = often(10, 4), days = 60;
    int all[2] = {0}, found = 0;
    for (int k = 0; k < 2 * courses; k++) {
        const bool budget = k < courses;
        struct course c;
        course_begin(&c, budget ? 1 : 0, false, 500 + (uint64_t)k);
        double rate = .1;
        int64_t i = 0;
        for (; i < days * 1440; i++) {
            if (svi_random_below(&c.random, 400) == 0)
                rate = svi_random_below(&c.random, 6) == 0 ? .45 : .1;
            course_row(&c, i, rate);
        }
        all[budget] += c.opened;
        if (budget)
            assert_true(c.opened <= 0.45 * days); /* novelty has the rest */
        for (c.first = -1; budget && i < days * 1440 + 500; i++)
            course_row(&c, i, .95);
        found += c.first >= 0 || (budget && c.s.published);
        svi_alarm_free(&c.s);
    }
    print_message("bursts for %d days, alerts a course: %.1f; with a budget of 1/day %.1f\n", days,
                  (double)all[0] / courses, (double)all[1] / courses);
    assert_true(2 * all[0] > 3 * all[1] && found == courses);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_daily_cycle_is_normal),
        cmocka_unit_test(bursts_keep_to_the_budget),
        cmocka_unit_test(turned_off_it_is_as_read),
        cmocka_unit_test(an_alert_tells_what_happened),
        cmocka_unit_test(a_regression_has_rmse),
        cmocka_unit_test(off_is_off),
        cmocka_unit_test(reset_closes),
        cmocka_unit_test(episodes_have_numbers),
        cmocka_unit_test(shrink_leaves_what_came_after),
        cmocka_unit_test(shrink_is_exact),
        cmocka_unit_test(refit_begins_one),
        cmocka_unit_test(frames_change_no_byte),
        cmocka_unit_test(goes_on_from_a_checkpoint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
