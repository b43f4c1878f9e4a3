/* Novelty and alerts as the engine's surroundings see them. */
#include "support/tape.h"
#include "store/checkpoint_file.h"
#include "support/quick.h"

static const char *const names[] = {"temp", "vibration", "flow"};

/* No classifier; small calibration, so that few samples make an alert. */
static const char *const alone[] = {
    "method",      "none", "stream",         "pump1", "novelty.calibration", "400",  "alert.p", "0.005",
    "alert.clear", "0.05", "alert.cooldown", "0",     "alert.rules",         "none", NULL};

/* ---- how samples are framed changes no byte */

/* Bursts, labels, ids, late labels, removals, and refused elements between. */
static void mixed(int i, struct row *r) {
    tape_pump(i, r);
    if (i % 900 >= 850)
        r->x[i / 900 % PUMP] *= 10;
    if (i % 3 == 0)
        r->y = r->x[0] > 60;
    if (i % 5 == 0)
        r->id = i;
    if (i % 40 == 13) /* id i - 13 has no label unless it is a multiple of 3 */
        *r = (struct row){.op = "label", .id = i - 13, .y = 1, .ts = r->ts};
    if (i % 70 == 31)
        *r = (struct row){.op = "forget", .id = i - 31, .y = -1, .ts = r->ts};
    if (i % 110 == 57)
        r->d = 2;
    if (i % 130 == 77)
        r->x[1] = NAN;
}

static void check_frames(const char *const *settings, int least) {
    const int rows = often(6500, 1300), all[] = {7, 64, 1000}, batches = quick() ? 1 : 3;
    struct tape one, t;
    tape_open(&one, alone, settings);
    tape_feed(&one, mixed, 0, rows, 1);
    assert_true(one.count[SVI_TOPIC_ALERT] >= least);
    assert_true(one.count[SVI_TOPIC_ERROR] > rows / 100);
    for (int k = 0; k < batches; k++) {
        tape_open(&t, alone, settings);
        tape_feed(&t, mixed, 0, rows, all[k]);
        assert_int_equal(t.deeds.size, one.deeds.size);
        assert_memory_equal(t.deeds.data, one.deeds.data, one.deeds.size);
        assert_int_equal(t.models.size, one.models.size);
        assert_memory_equal(t.models.data, one.models.data, one.models.size);
        for (int k = 0; k < SVI_TOPIC_COUNT; k++)
            assert_int_equal(t.count[k], one.count[k]);
        tape_close(&t);
    }
    tape_close(&one);
}

static void test_frames_change_no_byte(void **unused) {
    (void)unused;
    /* the last one finds little, and only with many scores to compare with */
    static const char *const kinds[][9] = {
        {"method", "alsvm", NULL},
        {"method", "alsvm", "task", "regress", NULL},
        {"method", "none", NULL},
        {"method", "falsvm", "novelty", "fosvm2", NULL},
        {"method", "none", "novelty.lags", "5", "missing", "carry", NULL},
        {"method", "alsvm", "novelty.learn", "persistent", "novelty.persist", "20", "missing", "drop", NULL},
        {"novelty.calibration", "2000", "alert.fdr", "0.1", "novelty.kernel", "rbf", NULL},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        check_frames(kinds[i], strcmp(kinds[i][0], "method") == 0 ? 3 : quick() ? 0 : 1);
}

/* ---- what an alert says */

#define BURST  2100
#define LASTED 40

/* A bearing that shakes more and more, and is mended. */
static void bearing(int i, struct row *r) {
    tape_pump(i, r);
    r->names = names;
    if (i >= BURST && i < BURST + LASTED)
        r->x[1] = 1.8 + 0.02 * (i - BURST);
}

/* The alert events of samples from .. to - 1. */
static int find_alerts(const struct tape *t, int from, int to, const struct told **first) {
    int count = 0;
    for (int i = 0; i < t->count[SVI_TOPIC_ALERT]; i++)
        if (t->told[i].at >= from && t->told[i].at < to && count++ == 0)
            *first = &t->told[i];
    return count;
}

static void check_reason(const struct told *a, double value) {
    assert_string_equal(a->name[0], "vibration");
    assert_int_equal(a->top[0].column, 1);
    assert_true(a->top[0].value == value);
    assert_true(a->top[0].adds > 0.5 && a->top[0].adds <= 1);
    assert_float_equal(a->top[0].low, 1.1 - 0.165, 0.05);
    assert_float_equal(a->top[0].high, 1.1 + 0.165, 0.05);
    double sum = 0;
    for (int k = 0; k < a->count; k++) {
        sum += fabs(a->top[k].adds);
        assert_true(k == 0 || fabs(a->top[k].adds) <= fabs(a->top[k - 1].adds));
    }
    assert_float_equal(sum, 1, 1e-9); /* no more features than are named */
    assert_memory_equal(a->text, "pump1 ", 6);
    assert_non_null(strstr(a->text, "vibration"));
    assert_non_null(strstr(a->text, "(usually "));
    assert_non_null(strstr(a->text, ", since 22:48 UTC")); /* START + BURST */
}

static void test_one_alert_a_burst(void **unused) {
    (void)unused;
    struct tape t;
    const struct told *a = NULL;
    tape_open(&t, alone, NULL);
    tape_feed(&t, bearing, 0, BURST + 200, 16);
    int events = find_alerts(&t, BURST, BURST + LASTED + 1, &a);
    assert_true(events >= 3);
    assert_string_equal(a->state, "open");
    assert_int_equal(a->at, BURST);
    assert_memory_equal(a->text, "pump1 vibration 1.8 (usually ", 29);
    for (int i = 0; i < events - 1; i++) {
        assert_string_equal(a[i].state, i ? "update" : "open");
        assert_true(a[i].since == START + BURST && a[i].ts == START + a[i].at);
        assert_true(a[i].grade >= 0 && a[i].grade <= 1);
        assert_true(i == 0 || a[i].grade >= a[i - 1].grade + 0.1 - 1e-9);
        assert_true(a[i].p == t.p[a[i].at] && a[i].p <= 0.05);
        assert_true(a[i].novelty == t.novelty[a[i].at]);
        assert_float_equal(a[i].novelty + a[i].membership, 1, 1e-12);
        check_reason(&a[i], 1.8 + 0.02 * (a[i].at - BURST));
    }
    a += events - 1;
    assert_string_equal(a->state, "close");
    assert_int_equal(a->at, BURST + LASTED);
    assert_true(a->since == START + BURST && a->grade >= a[-1].grade && a->grade <= 1);
    assert_memory_equal(a->text, "pump1 back to normal after 40 s (began at ", 42);
    tape_close(&t);
}

/* What is low says so. */
static void dry(int i, struct row *r) {
    tape_pump(i, r);
    if (i >= BURST)
        r->x[2] = 0.5;
}

static void test_sign(void **unused) {
    (void)unused;
    struct tape t;
    const struct told *a = NULL;
    tape_open(&t, alone, NULL);
    tape_feed(&t, dry, 0, BURST + 1, 16);
    assert_int_equal(find_alerts(&t, BURST, BURST + 1, &a), 1);
    assert_int_equal(a->top[0].column, 2);
    assert_true(a->top[0].adds < -0.5);
    assert_null(a->top[0].feature);
    assert_non_null(strstr(a->text, "pump1 feature 2 0.5 (usually "));
    tape_close(&t);
}

/* ---- when alerts open and close: told again from the p-values alone */

#define EVERY 250

static void bursts(int i, struct row *r) {
    const int at = i % EVERY, burst = i / EVERY;
    tape_pump(i, r);
    if (i > 1500 && at < 5 + 7 * (burst % 9))
        r->x[burst % PUMP] *= 1.4 + 0.02 * at;
    if (i % 97 == 5)
        r->ts -= 50; /* older ones do not turn time back */
}

struct plan {
    const char *p, *clear, *cooldown, *warmup;
};

static void check_machine(const struct plan *k, int rows) {
    const char *const settings[] = {
        "alert.p",        k->p,      "alert.clear", k->clear, "alert.cooldown", k->cooldown,
        "novelty.warmup", k->warmup, NULL};
    struct tape t;
    struct row r;
    double time = 0, closed = -1e300;
    int next = 0, opened = 0, suppressed = 0;
    bool open = false;
    tape_open(&t, alone, settings);
    tape_feed(&t, bursts, 0, rows, 64);
    for (int i = 0; i < rows; i++) {
        bursts(i, &r);
        time = fmax(time, r.ts);
        const bool novel = i >= atoi(k->warmup) && !open && t.p[i] <= atof(k->p);
        const bool free_again = time - closed >= atof(k->cooldown), opens = novel && free_again;
        const bool closes = open && t.p[i] > atof(k->clear);
        suppressed += novel && !free_again;
        opened += opens;
        open = (open || opens) && !closes;
        closed = closes ? time : closed;
        while (next < t.count[SVI_TOPIC_ALERT] && t.told[next].at == i &&
               strcmp(t.told[next].state, "update") == 0)
            assert_true(open && t.told[next++].p <= atof(k->clear));
        if (opens || closes)
            assert_string_equal(t.told[next].state, opens ? "open" : "close");
        if (opens || closes)
            assert_int_equal(t.told[next++].at, i);
    }
    assert_int_equal(next, t.count[SVI_TOPIC_ALERT]);
    assert_true(opened > 3);
    assert_int_equal(tape_stat(&t, "alerts"), opened);
    assert_int_equal(tape_stat(&t, "alert_open"), open);
    assert_int_equal(tape_stat(&t, "alerts_suppressed"), suppressed);
    assert_true(suppressed > 0 || atof(k->cooldown) == 0);
    tape_close(&t);
}

static void test_opens_and_closes_by_p(void **unused) {
    (void)unused;
    static const struct plan plans[] = {{"0.005", "0.05", "0", "0"},
                                        {"0.005", "0.005", "0", "900"},
                                        {"0.02", "0.4", "0", "0"},
                                        {"0.01", "0.1", "200", "1800"}};
    for (size_t i = 0; i < (quick() ? 2 : sizeof plans / sizeof *plans); i++)
        check_machine(&plans[i], 6000);
}

/* ---- beside a classifier */

/* What the classifier says is the same with novelty and without. */
static void test_classifier_is_left_alone(void **unused) {
    (void)unused;
    static const char *const with[] = {"method", "alsvm",       "publish.every", "50", "drift.rate",
                                       "0",      "alert.rules", "none",          NULL};
    static const char *const without[] = {"method",  "alsvm", "publish.every", "50",   "drift.rate", "0",
                                          "novelty", "none",  "alert.rules",   "none", NULL};
    const int rows = quick() ? 1000 : 3000;
    struct tape a, b;
    tape_open(&a, alone, with);
    tape_open(&b, alone, without);
    tape_feed(&a, mixed, 0, rows, 64);
    tape_feed(&b, mixed, 0, rows, 64);
    assert_true(a.count[SVI_TOPIC_MODEL] > 10);
    assert_int_equal(a.models.size, b.models.size);
    assert_memory_equal(a.models.data, b.models.data, a.models.size);
    assert_int_equal(a.count[SVI_TOPIC_SCORE], b.count[SVI_TOPIC_SCORE]);
    for (int i = 0; i < a.count[SVI_TOPIC_SCORE]; i++) {
        assert_true(a.version[i] == b.version[i]);
        assert_true(isnan(b.p[i]) && isnan(b.novelty[i]) && !isnan(a.p[i]));
    }
    assert_int_equal(b.count[SVI_TOPIC_ALERT], 0);
    assert_true(a.count[SVI_TOPIC_ALERT] > 0);
    static const char *const same[] = {"seen", "learned", "held", "waiting", "refused", "model_version"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        assert_true(tape_stat(&a, same[i]) == tape_stat(&b, same[i]));
    tape_close(&a);
    tape_close(&b);
}

static void test_method_none_keeps_nothing(void **unused) {
    (void)unused;
    static const char *const nothing[] = {"learned", "held", "waiting", "labelled", "classes"};
    static const char *const ops[] = {"label", "forget"};
    struct tape t;
    tape_open(&t, alone, NULL);
    tape_feed(&t, mixed, 0, 700, 64);
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++)
        assert_int_equal(tape_stat(&t, nothing[i]), 0);
    for (int i = 1; i < t.count[SVI_TOPIC_SCORE]; i++)
        assert_true(t.version[i] == t.version[0]);
    for (int i = 0; i < 2; i++) {
        const struct row late = {.op = ops[i], .id = 695, .y = i ? -1 : 1, .ts = START + 700};
        const int errors = t.count[SVI_TOPIC_ERROR];
        tape_say(&t, &late);
        assert_int_equal(t.count[SVI_TOPIC_ERROR], errors + 1);
        assert_int_equal(t.error, SVS_UNKNOWN_ID);
        assert_non_null(strstr(t.reason, "method none"));
    }
    tape_close(&t);
}

/* ---- missing values */

static void holes(int i, struct row *r) {
    tape_pump(i, r);
    if (i > 10 && i % 4 == 3)
        r->x[i % PUMP] = NAN;
}

static void without_holes(int i, struct row *r) { /* the i-th of those that have none */
    tape_pump(i < 11 ? i : i + 1 + (i - 11) / 3, r);
}

static void carried(int i, struct row *r) {
    struct row before;
    tape_pump(i, r);
    if (i > 10 && i % 4 == 3) {
        tape_pump(i - 1, &before);
        r->x[i % PUMP] = before.x[i % PUMP];
    }
}

static void check_missing(const char *how, tape_draw *same, int rows, int left, const char *counter) {
    const char *const settings[] = {"missing", how, NULL};
    struct tape a, b;
    tape_open(&a, alone, settings);
    tape_open(&b, alone, settings);
    tape_feed(&a, holes, 0, rows, 64);
    tape_feed(&b, same, 0, left, 64);
    assert_int_equal(tape_stat(&a, counter), rows / 4 - 2);
    assert_int_equal(tape_stat(&a, "seen"), left);
    assert_int_equal(a.count[SVI_TOPIC_ERROR], 0);
    assert_int_equal(a.deeds.size, b.deeds.size);
    assert_memory_equal(a.deeds.data, b.deeds.data, b.deeds.size);
    tape_close(&a);
    tape_close(&b);
}

static void test_missing(void **unused) {
    (void)unused;
    const int rows = 1200;
    check_missing("carry", carried, rows, rows, "carried_missing");
    check_missing("drop", without_holes, rows, rows - (rows / 4 - 2), "dropped_missing");
}

/* ---- what may be learned */

#define CHANGE 2000

static void level(int i, struct row *r) {
    tape_pump(i, r);
    for (int j = 0; i >= CHANGE && j < PUMP; j++)
        r->x[j] += 0.2 * r->x[j];
    r->y = -1;
}

/* Samples until the alert that the change opened is closed for good; `most` when it is not. */
static int forgiven(const char *policy, int most, struct tape *t) {
    const char *const settings[] = {"novelty.learn", policy, "novelty.persist", "50", NULL};
    int last = 0;
    tape_open(t, alone, settings);
    tape_feed(t, level, 0, CHANGE + most, 64);
    for (int i = CHANGE; i < CHANGE + most; i++)
        last = t->p[i] <= 0.005 && t->p[i - 1] <= 0.005 && t->p[i - 2] <= 0.005 ? i - CHANGE : last;
    return last + 1;
}

static void test_policies(void **unused) {
    (void)unused;
    const int most = 1200;
    struct tape t;
    const int normal = forgiven("normal", most, &t);
    assert_true(normal >= 400); /* as many as calibrate make it usual at last */
    assert_true(tape_stat(&t, "novelty_refused") > 0);
    tape_close(&t);
    const int persistent = forgiven("persistent", most, &t);
    assert_in_range(persistent, 40, 300);
    assert_true(tape_share(&t, CHANGE + 600, CHANGE + most, 0.05) < 0.15);
    assert_int_equal(tape_stat(&t, "alert_open"), 0);
    tape_close(&t);
    const int all = forgiven("all", most, &t);
    assert_true(all < normal / 2);
    assert_int_equal(tape_stat(&t, "novelty_refused"), 0);
    tape_close(&t);
    forgiven("labelled", most, &t);
    assert_int_equal(tape_stat(&t, "novelty_added"), 0); /* there were none */
    assert_int_equal(t.count[SVI_TOPIC_ALERT], 0);
    tape_close(&t);
}

/* Unlabelled disturbances from the start: only what has a label is usual. */
static void sworn(int i, struct row *r) {
    tape_pump(i, r);
    if (i % 10 == 9)
        r->x[1] += 2;
    else
        r->y = 1;
}

static void test_labelled(void **unused) {
    (void)unused;
    static const char *const settings[] = {"novelty.learn", "labelled", NULL};
    struct tape t;
    int higher = 0, pairs = 0;
    tape_open(&t, alone, settings);
    tape_feed(&t, sworn, 0, 1500, 64);
    assert_true(tape_stat(&t, "novelty_added") > 10);
    for (int i = 500; i + 10 < 1500; i += 10) {
        higher += t.novelty[i + 9] > t.novelty[i];
        pairs++;
    }
    assert_true(higher >= 0.97 * pairs);
    tape_close(&t);
}

/* ---- beyond all that a sensor ever showed */

#define BEYOND 2600

static const char *const thousand[] = {"novelty.calibration", "1000", "alert.p", "0.002", NULL};

/* Now and then all three swing, which surprises more than what one does later, alone. */
static void swinging(int i, struct row *r) {
    static const double way[] = {2, 0.1, -0.5};
    tape_pump(i, r);
    r->names = names;
    for (int j = 0; j < PUMP && i % 50 / 2 == 10; j++)
        r->x[j] += (5 + tape_noise(i, 3)) * way[j];
    if (i >= BEYOND && i < BEYOND + LASTED)
        r->x[1] = 2.3;
}

static void assert_beyond(const struct tape *t, int from) {
    const struct told *a = NULL;
    assert_true(find_alerts(t, from, from + 1, &a) == 1);
    assert_string_equal(a->state, "open");
    assert_string_equal(a->name[0], "vibration");
    assert_true(a->top[0].value == 2.3 && a->count == PUMP && a->p <= 0.002 && a->grade > 0);
    assert_memory_equal(a->text, "pump1 vibration 2.3 (usually ", 29);
    assert_non_null(strstr(a->text, ", never beyond 0."));
    assert_true(tape_share(t, from, from + LASTED, 0.002) == 1);
}

/* Found, and told with the earlier range; and so by what goes on from a checkpoint. */
static void test_beyond_the_range(void **unused) {
    (void)unused;
    struct tape t, later;
    struct svi_checkpoint c = {.sections = 0};
    int told[SVI_TOPIC_COUNT];
    tape_open(&t, alone, thousand);
    tape_feed(&t, swinging, 0, BEYOND - 10, 16);
    assert_int_equal(svi_stream_save(t.e, &c, NULL), SVS_OK);
    memcpy(told, t.count, sizeof told);
    tape_feed(&t, swinging, BEYOND - 10, BEYOND + LASTED, 16);
    assert_beyond(&t, BEYOND);
    tape_open(&later, alone, thousand);
    assert_int_equal(svi_stream_load(later.e, &c, NULL), SVS_OK);
    memcpy(later.count, told, sizeof told);
    tape_feed(&later, swinging, BEYOND - 10, BEYOND + LASTED, 16);
    assert_beyond(&later, BEYOND);
    for (int i = BEYOND - 10; i < BEYOND + LASTED; i++)
        assert_true(later.p[i] == t.p[i] && later.novelty[i] == t.novelty[i]);
    tape_close(&later);
    svi_checkpoint_clear(&c);
    tape_close(&t);
}

/* ---- reset */

static void test_reset_is_new(void **unused) {
    (void)unused;
    struct tape t, fresh;
    const int rows = 1900;
    tape_open(&t, alone, NULL);
    tape_feed(&t, bursts, 0, 1502, 64); /* an alert is open */
    assert_int_equal(tape_stat(&t, "alert_open"), 1);
    const double opened = tape_stat(&t, "alerts");
    const int told = t.count[SVI_TOPIC_ALERT];
    svi_engine_reset(svi_stream_root(t.e));
    assert_int_equal(t.count[SVI_TOPIC_ALERT], told + 1); /* nobody waits for a close that never comes */
    assert_string_equal(t.told[told].state, "close");
    assert_string_equal(t.told[told].text, "pump1 alert ended: the stream was reset");
    assert_int_equal(tape_stat(&t, "alert_open"), 0);
    assert_int_equal(tape_stat(&t, "novelty_points"), 0);
    assert_int_equal(tape_stat(&t, "novelty_calibration"), 0);
    assert_true(tape_stat(&t, "alerts") == opened); /* counters stay */
    const int scores = t.count[SVI_TOPIC_SCORE], alerts = t.count[SVI_TOPIC_ALERT];
    tape_open(&fresh, alone, NULL);
    tape_feed(&fresh, bursts, 1504, 1504 + rows, 64);
    tape_feed(&t, bursts, 1504, 1504 + rows, 64);
    for (int i = 0; i < rows; i++) {
        assert_true(t.p[scores + i] == fresh.p[i]);
        assert_true(t.novelty[scores + i] == fresh.novelty[i]);
    }
    assert_int_equal(t.count[SVI_TOPIC_ALERT] - alerts, fresh.count[SVI_TOPIC_ALERT]);
    for (int i = 0; i < fresh.count[SVI_TOPIC_ALERT]; i++)
        assert_string_equal(t.told[alerts + i].text, fresh.told[i].text);
    assert_true(tape_stat(&t, "alerts") == opened + tape_stat(&fresh, "alerts"));
    tape_close(&t);
    tape_close(&fresh);
}

/* ---- settings that contradict each other */

static void test_contradictions(void **unused) {
    (void)unused;
    static const struct {
        const char *const settings[5];
        const char *says[3];
    } cases[] = {
        {{"alert.p", "0.0001", NULL}, {"alert.p 0.0001", "novelty.calibration", "9999 or more"}},
        {{"novelty.calibration", "100", NULL}, {"alert.p 0.001", "novelty.calibration 100", "999 or more"}},
        {{"alert.clear", "0.0005", NULL}, {"alert.clear 0.0005", "alert.p 0.001", "set "}},
        {{"method", "none", "novelty", "none", NULL}, {"method none", "novelty none", "set "}},
        {{"alert.budget", "1/month", NULL}, {"alert.budget", "'1/month'", "1/day"}},
        {{"alert.budget", "-1/day", NULL}, {"alert.budget", "'-1/day'", "none"}},
        {{"alert.budget", "1/day ", NULL}, {"alert.budget", "'1/day '", "/week"}},
        {{"alert.budget", "nan/day", NULL}, {"alert.budget", "'nan/day'", "/hour"}},
        {{"novelty.gamma", "wide", NULL}, {"novelty.gamma", "'wide'", "median"}},
        {{"novelty.gamma", "-1", NULL}, {"novelty.gamma", "'-1'", "a number from"}},
        {{"novelty.gamma", "inf", NULL}, {"novelty.gamma", "'inf'", "a number from"}},
        {{"novelty.gamma", "1e200", NULL}, {"novelty.gamma", "'1e200'", "to 1e+100"}},
        {{"novelty.gamma", "1x", NULL}, {"novelty.gamma", "'1x'", "a number from"}},
    };
    struct svi_settings s;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        svs_error err = {0};
        svi_settings_default(&s);
        assert_int_equal(svi_settings_set(&s, "alert.budget", "none", &err), SVS_OK);
        for (const char *const *at = cases[i].settings; *at; at += 2)
            assert_int_equal(svi_settings_set(&s, at[0], at[1], &err), SVS_OK);
        assert_int_equal(svi_settings_check(&s, &err), SVS_SETTING);
        for (int k = 0; k < 3; k++)
            if (!strstr(err.text, cases[i].says[k]))
                fail_msg("'%s' is not in '%s'", cases[i].says[k], err.text);
    }
    svi_settings_default(&s);
    svi_settings_set(&s, "novelty.calibration", "100", NULL);
    assert_int_equal(svi_settings_check(&s, NULL), SVS_OK); /* with a budget alert.p decides nothing */
    svi_settings_default(&s);
    svi_settings_set(&s, "alert.budget", "none", NULL);
    svi_settings_set(&s, "alert.p", "0.0001", NULL);
    svi_settings_set(&s, "alert.fdr", "0.1", NULL);
    assert_int_equal(svi_settings_check(&s, NULL), SVS_OK); /* alert.p decides nothing then */
    svi_settings_default(&s);
    svi_settings_set(&s, "novelty.calibration", "999", NULL);
    assert_int_equal(svi_settings_check(&s, NULL), SVS_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames_change_no_byte),
        cmocka_unit_test(test_one_alert_a_burst),
        cmocka_unit_test(test_sign),
        cmocka_unit_test(test_opens_and_closes_by_p),
        cmocka_unit_test(test_classifier_is_left_alone),
        cmocka_unit_test(test_method_none_keeps_nothing),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_policies),
        cmocka_unit_test(test_labelled),
        cmocka_unit_test(test_beyond_the_range),
        cmocka_unit_test(test_reset_is_new),
        cmocka_unit_test(test_contradictions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
