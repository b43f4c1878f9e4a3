/* Plain rules as the engine's surroundings see them: what an event says, which columns have which rules; and
 * that frames, threads, checkpoints and widths change no byte. */
#include "support/tape.h"
#include "alerts/rules.h"
#include "config/settings_record.h"
#include "store/checkpoint_file.h"
#include "support/quick.h"

#define SPIKE 800 /* samples from which faults come */
#define STUCK 1000
#define GONE  1400
#define ENDS  2000

static const char *const names[] = {"temp", "vibration", "flow"};
static const char *const settings[] = {"stream", "pump1",   "missing", "mean",   "novelty.calibration",
                                       "400",    "alert.p", "0.005",   "limits", "temp:..90,vibration:0..",
                                       "window", "200",     NULL};

/* temp jumps in and out of its limit, vibration is stuck, flow is missing. */
static void faulty(int i, struct row *r) {
    tape_pump(i, r);
    r->names = names;
    r->ts = START + 60 * i;
    r->y = r->x[0] > 60;
    if (i >= SPIKE && i < SPIKE + 6 && i % 2 == 0)
        r->x[0] = 93 + i - SPIKE;
    if (i >= STUCK && i < STUCK + 300)
        r->x[1] = 0.412;
    if (i >= GONE && i < GONE + 100)
        r->x[2] = NAN;
}

static const struct told *find_rule(const struct tape *t, const char *state, const char *part) {
    for (int i = 0; i < t->count[SVI_TOPIC_ALERT]; i++)
        if (t->told[i].kind && strcmp(t->told[i].kind, "rule") == 0 && strcmp(t->told[i].state, state) == 0 &&
            strstr(t->told[i].text, part))
            return &t->told[i];
    return NULL;
}

static int count_rules(const struct tape *t) {
    int count = 0;
    for (int i = 0; i < t->count[SVI_TOPIC_ALERT]; i++)
        count += t->told[i].kind && strcmp(t->told[i].kind, "rule") == 0;
    return count;
}

static void events_say_what_happened(void **state) {
    (void)state;
    struct tape t;
    tape_open(&t, settings, (const char *const[]){"novelty", "none", NULL});
    tape_feed(&t, faulty, 0, ENDS, 16);
    const struct told *limit = find_rule(&t, "open", "above its limit"), *a;
    assert_non_null(limit);
    assert_int_equal(limit->at, SPIKE);
    assert_string_equal(limit->name[0], "temp");
    assert_true(limit->count == 1 && limit->top[0].value == 93 && limit->top[0].high == 90);
    assert_string_equal(limit->text, "pump1 temp 93 above its limit 90, since 11:33 UTC");
    /* The value was also beyond all earlier ones: one alert, which closes with the last of the two. */
    a = find_rule(&t, "close", "pump1 temp within its earlier range again after ");
    assert_true(a && a->alert == limit->alert && a->count == 0 && a->since == limit->since);
    assert_null(find_rule(&t, "open", "above its highest so far"));
    a = find_rule(&t, "open", "pump1 vibration stuck at 0.412 for ");
    assert_true(a && a->at <= STUCK + 60 && a->since == START + 60 * STUCK);
    assert_non_null(find_rule(&t, "close", "pump1 vibration moving again after 5 h "));
    a = find_rule(&t, "open", "pump1 flow: no values since ");
    assert_true(a && a->at < GONE + 10 && a->since == START + 60 * (GONE - 1) && isnan(a->top[0].value));
    assert_non_null(find_rule(&t, "close", "pump1 flow sending values again after "));
    assert_true(tape_stat(&t, "rule_alerts_open") == 0 && tape_stat(&t, "rule_alerts") >= 3);
    svi_engine_reset(svi_stream_root(t.e));
    tape_close(&t);
}

/* An adapter that repeats the last value for a while, and then sends none. */
static void repeated_then_none(int i, struct row *r) {
    tape_pump(i, r);
    r->names = names;
    r->ts = START + 60 * i;
    r->x[1] = i < STUCK ? r->x[1] : i < STUCK + 20 ? 0.412 : NAN;
}

/* It was reported as stuck. That it has no values is an update of this alert, at once. */
static void no_values_correct_stuck(void **state) {
    (void)state;
    struct tape t;
    tape_open(&t, settings, (const char *const[]){"novelty", "none", NULL});
    tape_feed(&t, repeated_then_none, 0, STUCK + 60, 16);
    const struct told *stuck = find_rule(&t, "open", "pump1 vibration stuck at 0.412 for ");
    const struct told *none = find_rule(&t, "update", "pump1 vibration: no values since ");
    assert_true(stuck && none && none->alert == stuck->alert);
    assert_true(none->ts - stuck->ts < 30 * 60 && none->at == STUCK + 20 + 8);
    tape_close(&t);
}

/* Reset, other settings and columns that go end what is open. */
static void what_is_open_ends(void **state) {
    (void)state;
    for (int how = 0; how < 2; how++) {
        struct tape t;
        tape_open(&t, settings, (const char *const[]){"novelty", "none", NULL});
        tape_feed(&t, faulty, 0, STUCK + 100, 16);
        assert_true(tape_stat(&t, "rule_alerts_open") == 1);
        struct svi_settings live = t.s;
        strcpy(live.alert_rules, "none");
        live.limits[0] = '\0';
        if (how == 0)
            svi_engine_reset(svi_stream_root(t.e));
        else
            assert_int_equal(svi_stream_configure(t.e, &live, 0, NULL, NULL), SVS_OK);
        assert_true(tape_stat(&t, "rule_alerts_open") == 0);
        const int said = count_rules(&t);
        tape_feed(&t, faulty, STUCK + 100, STUCK + 250, 16);
        assert_int_equal(count_rules(&t), said);
        tape_close(&t);
    }
}

static void frames_and_threads_change_no_byte(void **state) {
    (void)state;
    struct tape one, t;
    tape_open(&one, settings, NULL);
    tape_feed(&one, faulty, 0, ENDS, 1);
    assert_true(count_rules(&one) >= 5); /* novelty joins them, and may close last */
    for (int batch = 7; batch < 400; batch *= 19) {
        tape_open(&t, settings, NULL);
        if (batch > 7)
            svi_stream_use_threads(t.e);
        svi_stream_leave_open(t.e, batch > 7);
        tape_feed(&t, faulty, 0, ENDS, batch);
        svi_stream_settle(t.e);
        assert_int_equal(t.deeds.size, one.deeds.size);
        assert_memory_equal(t.deeds.data, one.deeds.data, one.deeds.size);
        tape_close(&t);
    }
    tape_close(&one);
}

/* A checkpoint at any moment goes on as the whole run does: the same alerts, and the same fingerprint. */
static void check_checkpoints(const char *const *more) {
    static const int stops[] = {0, 5, SPIKE + 3, STUCK + 5, STUCK + 200, GONE + 4, GONE + 50, GONE + 105};
    char whole[SVI_HASH_TEXT], part[SVI_HASH_TEXT];
    struct tape a;
    tape_open(&a, settings, more);
    tape_feed(&a, faulty, 0, ENDS, 16);
    assert_int_equal(svi_stream_hash(a.e, whole, NULL), SVS_OK);
    for (size_t k = 0; k < sizeof stops / sizeof *stops; k++) {
        struct tape b, c;
        struct svi_checkpoint kept = {.sections = 0};
        tape_open(&b, settings, more);
        tape_feed(&b, faulty, 0, stops[k], 16);
        assert_int_equal(svi_stream_save(b.e, &kept, NULL), SVS_OK);
        tape_open(&c, settings, more);
        assert_int_equal(svi_stream_load(c.e, &kept, NULL), SVS_OK);
        memcpy(c.count, b.count, sizeof c.count);
        const size_t before = b.deeds.size;
        tape_feed(&c, faulty, stops[k], ENDS, 16);
        assert_int_equal(svi_stream_hash(c.e, part, NULL), SVS_OK);
        assert_string_equal(whole, part);
        assert_int_equal(before + c.deeds.size, a.deeds.size);
        assert_memory_equal((const char *)a.deeds.data + before, c.deeds.data, c.deeds.size);
        svi_checkpoint_clear(&kept);
        tape_close(&b);
        tape_close(&c);
    }
    tape_close(&a);
}

static void goes_on_from_any_checkpoint(void **state) {
    (void)state;
    check_checkpoints(NULL);
    check_checkpoints((const char *const[]){"missing", "drop", NULL});
}

/* Columns of words have none, and columns may come. */
static void words(int i, struct row *r) {
    tape_pump(i, r);
    r->names = names;
    r->ts = START + 60 * i;
    r->d = i < 700 ? 2 : 3;
    if (i >= 1500 && i < 1600)
        r->d = 2; /* it is left out, not missing */
}

static void columns_come_and_are_left_out(void **state) {
    (void)state;
    struct tape t;
    tape_open(&t, settings, (const char *const[]){"novelty", "none", "limits", "", NULL});
    tape_feed(&t, words, 0, ENDS, 16);
    assert_int_equal(count_rules(&t), 3);
    const struct told *a = find_rule(&t, "open", "pump1 flow: no values"), *later;
    assert_true(a && a->at < 1510);
    later = find_rule(&t, "update", "pump1 flow: no values"); /* a warning after half an hour */
    assert_true(later && later->at == 1529 && find_rule(&t, "close", "pump1 flow sending values again"));
    tape_close(&t);
}

static void refuse(const char *key, const char *value, const char *text) {
    struct svi_settings s;
    svs_error err;
    svi_settings_default(&s);
    assert_int_equal(svi_settings_set(&s, "features", "temp,flow", &err), SVS_OK);
    assert_int_equal(svi_settings_set(&s, key, value, &err), SVS_OK);
    svi_settings_settle_method(&s);
    assert_int_equal(svi_settings_check(&s, &err), SVS_SETTING);
    if (!strstr(err.text, text))
        fail_msg("%s", err.text);
}

static void wrong_texts_are_refused(void **state) {
    (void)state;
    refuse("limits", "temp", "limits: 'temp' has no column before a ':'");
    refuse("limits", "temp:0", "has no '..' between its limits");
    refuse("limits", "temp:..", "has no limit on either side of '..'");
    refuse("limits", "temp:0..x", "has a limit that is not a number");
    refuse("limits", "temp:0..1e300", "has a limit that is not a number of at most 1e100");
    refuse("limits", "temp:9..1", "has a lower limit above its upper one");
    refuse("limits", "temp:0..1,temp:0..2", "is the second entry of its column");
    refuse("limits", "temp:0..1,", "has no column");
    refuse("limits", "tmep:0..1", "does not name a column of features (temp,flow)");
    refuse("alert.rules", "beyond,stick", "alert.rules: 'stick' is not a rule (none, or some of");
    refuse("alert.rules", "", "is not a rule");
    refuse("alert.absent", "0", "alert.absent: '0' is not a time");
    refuse("alert.absent", "soon", "alert.absent: 'soon' is not a time (none, auto, or seconds");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_say_what_happened),    cmocka_unit_test(no_values_correct_stuck),
        cmocka_unit_test(what_is_open_ends),           cmocka_unit_test(frames_and_threads_change_no_byte),
        cmocka_unit_test(goes_on_from_any_checkpoint), cmocka_unit_test(columns_come_and_are_left_out),
        cmocka_unit_test(wrong_texts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
