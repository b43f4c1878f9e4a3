/* Streams of any shape through an engine with default settings: one sensor to many, a row every 5 ms or every
 * hour, values that are missing, columns that stay, count, jump or are huge, time that goes back or leaps,
 * and streams that end early.
 *
 * What holds for all of them: no row is refused, every figure of every event is finite, p is in (0, 1], an
 * episode has one open and at most one close in this order, and no text has a figure that is none. Where rows
 * are exchangeable, alerts open no more often than the budget and the rules promise, with room for luck. And
 * a fault of half a unit on one of three sensors is reported within five rows, whatever rare swings were
 * normal before. SHAPES=1 shows what was said. */
#include "support/engine.h"
#include "support/plant.h"
#include "support/problem.h"
#include "support/quick.h"

#define WIDEST 500
#define OPENED 4096

/* What a shape makes of row i: x, and its time. */
struct shape_row {
    uint64_t seed;
    int i, d;
    double ts, *x;
};

struct shape {
    const char *name;
    int d, rows;
    double step; /* seconds from row to row; 0: no ts, rows arrive a second apart */
    void (*fill)(struct shape_row *r);
    int most; /* alerts that may open; -1: not said */
    const char *settings[8];
};

/* ---- what columns are made of */

static void fill_normal(struct shape_row *r) {
    for (int j = 0; j < r->d; j++)
        r->x[j] = test_normal(&r->seed);
}

static void fill_missing(struct shape_row *r) {
    fill_normal(r);
    for (int j = 0; j < r->d; j++)
        if (test_uniform(&r->seed) < 0.2 || (j == 1 && r->i > 20))
            r->x[j] = NAN;
}

static void fill_gone(struct shape_row *r) {
    fill_normal(r);
    for (int j = 0; j < r->d && r->i % 1000 >= 900; j++)
        r->x[j] = NAN;
}

/* Constants, flags, a counter, few values, huge, negative, heavy tails, tiny: one column each. */
static void fill_kinds(struct shape_row *r) {
    for (int j = 0; j < r->d; j++) {
        const double u = test_uniform(&r->seed), n = test_normal(&r->seed);
        const double kinds[] = {42,
                                0,
                                u < 0.5,
                                u < 0.002,
                                r->i,
                                floor(4 * u),
                                1e12 * (1 + 1e-3 * n),
                                -1e9 - 1e6 * n,
                                n / (0.01 + u),
                                exp(6 * n),
                                1e-300 * (1 + u),
                                1e12 + floor(3 * u)};
        r->x[j] = kinds[j % 12];
    }
}

static void fill_heavy(struct shape_row *r) {
    for (int j = 0; j < r->d; j++)
        r->x[j] = test_normal(&r->seed) / (0.001 + fabs(test_normal(&r->seed)));
}

static void fill_few(struct shape_row *r) {
    for (int j = 0; j < r->d; j++)
        r->x[j] = floor(3 * test_uniform(&r->seed));
}

/* Back by an hour, the same again, a gap of a week, and on. */
static void fill_leaps(struct shape_row *r) {
    fill_normal(r);
    if (r->i % 500 == 100)
        r->ts -= 3600;
    else if (r->i % 500 == 200)
        r->ts += 7 * 86400;
    else if (r->i % 50 == 7)
        r->ts -= 60;
}

static void fill_constant(struct shape_row *r) {
    for (int j = 0; j < r->d; j++)
        r->x[j] = j * 1e12;
}

/* Counters that wrap, and flags that change once in a long time. */
static void fill_counters(struct shape_row *r) {
    for (int j = 0; j < r->d; j++)
        r->x[j] = j % 2 ? (r->i / 1500) % 2 : (double)(r->i * (j + 1) % 65536);
}

/* Nothing moves, then everything does. */
static void fill_wakes(struct shape_row *r) {
    for (int j = 0; j < r->d; j++)
        r->x[j] = r->i < 2500 ? 7 : 7 + 1e6 * test_normal(&r->seed);
}

static void fill_same_time(struct shape_row *r) {
    fill_normal(r);
    r->ts = 1.7e9;
}

static void fill_cycle(struct shape_row *r) {
    for (int j = 0; j < r->d; j++)
        r->x[j] = 1e12 + 1e11 * sin(6.283185307179586 * r->ts / 86400) + 1e9 * test_normal(&r->seed);
}

/* One wrong value now and then, as of a wire that comes off. */
static void fill_wrong(struct shape_row *r) {
    fill_normal(r);
    if (r->i % 2000 == 1999)
        r->x[0] = r->i == 1999 ? 65535 : 1e9;
}

/* All that a double can be. */
static void fill_extreme(struct shape_row *r) {
    static const double far[] = {1e99, -1e99, 5e-324, 0.0, 1e50, -1e-150};
    for (int j = 0; j < r->d; j++)
        r->x[j] =
            test_uniform(&r->seed) < 0.02 ? far[(int)(6 * test_uniform(&r->seed))] : test_normal(&r->seed);
}

/* ---- what is heard of it */

struct heard {
    const struct shape *shape;
    struct svi_bytes bytes;
    int scores, errors, opened, closed, rules;
    int64_t row;
    char state[OPENED]; /* of the episodes: 0, open, closed */
    char told[300];     /* the first error */
};

static void must_be(bool holds, const struct heard *h, const char *what, double figure) {
    if (!holds)
        fail_msg("%s, row %lld: %s (%g)", h->shape->name, (long long)h->row, what, figure);
}

static void hear_alert(struct heard *h, const struct svi_alert_event *a) {
    const bool open = strcmp(a->state, "open") == 0, closed = strcmp(a->state, "close") == 0;
    must_be(a->text && a->text[0], h, "no text", 0);
    if (strstr(a->text, "nan") || strstr(a->text, "inf "))
        fail_msg("%s, row %lld: %s", h->shape->name, (long long)h->row, a->text);
    must_be(a->alert > 0, h, "an alert without a number", (double)a->alert);
    if (a->alert >= OPENED)
        return;
    char *state = &h->state[a->alert];
    must_be(*state == (open ? 0 : 1), h, "an episode out of order", (double)a->alert);
    *state = closed ? 2 : 1;
    h->opened += open;
    if (open && getenv("SHAPES"))
        print_message("    row %lld: %s\n", (long long)h->row, a->text);
    h->closed += closed;
    h->rules += open && a->rule;
}

static void heard_sink(void *user, const struct svi_event *e) {
    struct heard *h = user;
    assert_int_equal(svi_event_encode(e, &h->bytes), SVS_OK);
    if (e->topic == SVI_TOPIC_ERROR && h->errors++ == 0)
        snprintf(h->told, sizeof h->told, "row %lld: %s", (long long)h->row, e->as.error.reason);
    else if (e->topic == SVI_TOPIC_ALERT)
        hear_alert(h, &e->as.alert);
    else if (e->topic == SVI_TOPIC_SCORE && e->as.score.judged) {
        h->scores++;
        must_be(e->as.score.p > 0 && e->as.score.p <= 1, h, "p", e->as.score.p);
        must_be(isfinite(e->as.score.novelty), h, "novelty", e->as.score.novelty);
        must_be(isfinite(e->as.score.alarm) && e->as.score.alarm >= 0, h, "alarm", e->as.score.alarm);
        must_be(isfinite(e->as.score.surprise) && e->as.score.surprise >= 0, h, "surprise",
                e->as.score.surprise);
        must_be(e->as.score.anomaly >= 0 && e->as.score.anomaly <= 1, h, "anomaly", e->as.score.anomaly);
    }
}

static void row_frame(struct svi_bytes *frame, const struct shape_row *r, bool timed) {
    struct svi_pack p;
    frame->size = 0;
    svi_pack_begin(&p, frame);
    svi_pack_map(&p, timed ? 2 : 1);
    svi_pack_text(&p, "x");
    svi_pack_array(&p, (size_t)r->d);
    for (int j = 0; j < r->d; j++) {
        if (isnan(r->x[j]))
            svi_pack_nil(&p);
        else
            svi_pack_real(&p, r->x[j]);
    }
    if (timed) {
        svi_pack_text(&p, "ts");
        svi_pack_real(&p, r->ts);
    }
    assert_int_equal(svi_pack_end(&p), SVS_OK);
}

static void shape_settings(struct svi_settings *s, const struct shape *shape) {
    svs_error err = {0};
    svi_settings_default(s);
    for (const char *const *w = shape->settings; *w; w += 2)
        if (svi_settings_set(s, w[0], w[1], &err) != SVS_OK)
            fail_msg("%s", err.text);
    svi_settings_settle_method(s);
    assert_int_equal(svi_settings_check(s, &err), SVS_OK);
}

/* A row arrives at its ts, or when the row before did; without ts a second after that. */
static void run_shape(const struct shape *shape, struct heard *h) {
    static double x[WIDEST];
    struct svi_settings s;
    struct svi_bytes frame = {0};
    svs_error err = {0};
    struct shape_row r = {.seed = 1234567, .d = shape->d, .x = x, .ts = 1.7e9};
    double now = 1.7e9;
    *h = (struct heard){.shape = shape};
    shape_settings(&s, shape);
    svi_stream *e = svi_stream_new(&s, 77, heard_sink, h, &err);
    if (!e)
        fail_msg("%s: %s", shape->name, err.text);
    const int rows = often(shape->rows, shape->rows < 300 ? shape->rows : 300);
    svi_stream_begin(e, now);
    for (r.i = 0; r.i < rows; r.i++) {
        h->row = r.i;
        r.ts += shape->step;
        shape->fill(&r);
        now = shape->step > 0 ? fmax(now, r.ts) : now + 1;
        for (double due = svi_stream_deadline(e); due <= now; due = svi_stream_deadline(e))
            svi_stream_pass(e, due);
        row_frame(&frame, &r, shape->step > 0);
        (void)apply_bytes(e, frame.data, frame.size, now, false, NULL);
    }
    svi_stream_settle(e);
    svi_stream_free(&e);
    svi_bytes_clear(&frame);
    svi_bytes_clear(&h->bytes);
}

#define BUDGETED(days) (4 + 3 * (days)) /* the budget of a day's, and rules, with room */

static const struct shape shapes[] = {
    {"one sensor, a row a minute", 1, 6000, 60, fill_normal, BUDGETED(4), {NULL}},
    {"three, a row a minute", 3, 6000, 60, fill_normal, BUDGETED(4), {NULL}},
    {"three, as they arrive", 3, 6000, 0, fill_normal, BUDGETED(1), {NULL}},
    {"three, a row every 5 ms", 3, 8000, 0.005, fill_normal, BUDGETED(1), {NULL}},
    {"three, a row every hour", 3, 3000, 3600, fill_normal, BUDGETED(125), {NULL}},
    {"38, a row a minute", 38, 2500, 60, fill_normal, BUDGETED(2), {NULL}},
    {"500, a row a minute", 500, 300, 60, fill_normal, BUDGETED(1), {NULL}},
    {"500, missing values", 500, 150, 60, fill_missing, -1, {"missing", "mean", NULL}},
    {"300 rows", 3, 300, 60, fill_normal, BUDGETED(1), {NULL}},
    {"missing values", 4, 4000, 60, fill_missing, -1, {"missing", "mean", NULL}},
    {"missing values carried", 4, 4000, 60, fill_missing, -1, {"missing", "carry", NULL}},
    {"rows without a value", 3, 4000, 60, fill_gone, -1, {"missing", "carry", NULL}},
    {"every kind of column", 12, 4000, 60, fill_kinds, -1, {NULL}},
    {"every kind, not scaled", 12, 3000, 60, fill_kinds, -1, {"scale", "none", NULL}},
    {"heavy tails", 3, 6000, 60, fill_heavy, BUDGETED(4), {NULL}},
    {"few values", 3, 6000, 60, fill_few, BUDGETED(4), {NULL}},
    {"time that leaps", 3, 4000, 60, fill_leaps, -1, {NULL}},
    {"Berlin", 3, 6000, 3600, fill_normal, -1, {"zone", "Europe/Berlin", NULL}},
    {"wrong values", 3, 9000, 60, fill_wrong, BUDGETED(6), {NULL}},
    {"constant", 3, 4000, 60, fill_constant, 2, {NULL}},
    {"one constant", 1, 4000, 60, fill_constant, 2, {NULL}},
    {"counters and flags", 4, 6000, 60, fill_counters, -1, {NULL}},
    {"still, then awake", 3, 5000, 60, fill_wakes, -1, {NULL}},
    {"one time", 3, 4000, 60, fill_same_time, -1, {NULL}},
    {"huge, by day", 3, 9000, 600, fill_cycle, BUDGETED(62), {NULL}},
    {"every hour, no method", 3, 3000, 3600, fill_normal, BUDGETED(125), {"method", "none", NULL}},
    {"two members", 3, 3000, 60, fill_kinds, -1, {"novelty", "fosvm2", "novelty.lags", "3", NULL}},
    {"limits and rates", 3, 3000, 60, fill_heavy, -1, {"limits", "1:-100..100", "alert.group", "0", NULL}},
    {"far out at times", 3, 3000, 60, fill_extreme, -1, {NULL}},
};

static void any_shape(void **state) {
    (void)state;
    static struct heard h;
    int bad = 0;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        run_shape(&shapes[i], &h);
        if (getenv("SHAPES"))
            print_message("%-28s %d rows judged, %d alerts, %d of rules, %d closed; %d errors %s\n",
                          shapes[i].name, h.scores, h.opened, h.rules, h.closed, h.errors, h.told);
        if (h.errors > 0)
            fail_msg("%s: %d refused, %s", shapes[i].name, h.errors, h.told);
        if (shapes[i].most >= 0 && h.opened > shapes[i].most)
            fail_msg("%s: %d alerts, %d are room", shapes[i].name, h.opened, shapes[i].most);
        bad += h.closed > h.opened;
    }
    assert_int_equal(bad, 0);
}

/* ---- a fault is not masked by what is rare and normal */

#define CALM  (14 * DAY + 600) /* rows before the fault */
#define FAULT 360

struct fault_heard {
    int row, opened, found, open; /* found: rows from its begin until an alert said so; -1 */
    svs_error err;
};

static void fault_sink(void *user, const struct svi_event *e) {
    struct fault_heard *h = user;
    if (e->topic != SVI_TOPIC_ALERT)
        return;
    const bool close = strcmp(e->as.alert.state, "close") == 0, open = strcmp(e->as.alert.state, "open") == 0;
    h->open += open - close;
    if (getenv("SHAPES") && h->row >= CALM - 60)
        print_message("      %d: %s %s\n", h->row - CALM, e->as.alert.state, e->as.alert.text);
    if (h->row < CALM)
        h->opened += open;
    else if (!close && h->found < 0)
        h->found = h->row - CALM;
}

/* +0.5 on one sensor for six hours, with default settings. */
static void run_fault(int seed, int sensor, struct fault_heard *h) {
    double x[SENSORS];
    struct svi_settings s;
    struct svi_bytes frame = {0};
    struct plant p = plant_of(seed);
    struct shape_row r = {.d = SENSORS, .x = x};
    *h = (struct fault_heard){.found = -1};
    svi_settings_default(&s);
    assert_int_equal(svi_settings_set(&s, "method", "none", &h->err), SVS_OK);
    svi_stream *e = svi_stream_new(&s, 77, fault_sink, h, &h->err);
    assert_non_null(e);
    for (h->row = 0; h->row < CALM + FAULT; h->row++) {
        r.ts = 1.7e9 + 60.0 * h->row;
        plant_step(&p, x);
        if (h->row >= CALM)
            x[sensor] += 0.5;
        row_frame(&frame, &r, true);
        (void)apply_bytes(e, frame.data, frame.size, r.ts, false, NULL);
    }
    svi_stream_free(&e);
    svi_bytes_clear(&frame);
}

static void never_masked(void **state) {
    (void)state;
    struct fault_heard h;
    int soon = 0, found = 0, false_ones = 0, seeds = often(20, 1);
    for (int seed = 1; seed <= seeds; seed++) {
        run_fault(seed, seed % SENSORS, &h);
        if (getenv("SHAPES"))
            print_message("   seed %d, sensor %d: found after %d rows, %d alerts before\n", seed,
                          seed % SENSORS, h.found, h.opened);
        found += h.found >= 0;
        soon += h.found >= 0 && h.found < 5;
        false_ones += h.opened;
    }
    if (getenv("SHAPES"))
        print_message("found %d of %d, within 5 rows %d, %d alerts in %d days without a fault\n", found,
                      seeds, soon, false_ones, seeds * 14);
    if (soon < seeds)
        fail_msg("+0.5 for 6 h was found within 5 rows on %d of %d seeds", soon, seeds);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_shape), cmocka_unit_test(never_masked)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
