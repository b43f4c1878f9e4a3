/* Novelty when memory runs out, and how much of it novelty takes. Linked with --wrap for svi_alloc and
 * svi_realloc. */
#include "support/tape.h"
#include "support/nomem.h"
#include "support/quick.h"
#include "support/apply.h"

/* ---- the n-th allocation fails */

#define ROWS 260 /* of each stretch */

static const char *names[COLUMNS];

static void name_them(void) {
    static char capacity[COLUMNS][16];
    for (int j = 0; j < COLUMNS; j++) {
        snprintf(capacity[j], sizeof capacity[j], "s%d", j);
        names[j] = capacity[j];
    }
}

/* New names at 0, ROWS and 2 ROWS; a disturbance when the last ones come. */
static void growing(int i, struct row *r) {
    static const int width[] = {3, 20, 40};
    tape_pump(i, r);
    r->names = names;
    r->d = width[i / ROWS];
    r->y = i % 3 ? -1 : r->x[0] > 60;
    r->id = i;
    if (i / (ROWS / 2) == 3)
        r->x[1] = 9;
}

static int errors;
static svs_code last;
static double said[3 * ROWS][2]; /* novelty and p of each score */
static int scores, alerts;

/* Allocates nothing: what fails must be the engine. */
static void quiet_sink(void *user, const struct svi_event *event) {
    (void)user;
    if (event->topic == SVI_TOPIC_ERROR) {
        errors++;
        last = event->as.error.code;
    } else if (event->topic == SVI_TOPIC_SCORE) {
        said[scores][0] = event->as.score.judged ? event->as.score.novelty : -2;
        said[scores++][1] = event->as.score.judged ? event->as.score.p : -2;
    }
    alerts += event->topic == SVI_TOPIC_ALERT;
}

static void open_quietly(struct tape *t, const char *const *settings, const char *const *more) {
    tape_open(t, settings, more);
    svi_stream_free(&t->e);
    scores = alerts = 0;
    t->e = svi_stream_new(&t->s, 1, quiet_sink, NULL, NULL);
    assert_non_null(t->e);
}

/* Sent again until no allocation is left that could fail. Returns how often it was refused. */
static int take_at_last(struct tape *t, int i) {
    struct svi_pack p;
    struct row r;
    growing(i, &r);
    t->frame.size = 0;
    svi_pack_begin(&p, &t->frame);
    tape_pack(&p, &r);
    assert_int_equal(svi_pack_end(&p), SVS_OK);
    for (int n = 0;; n += every(4)) {
        struct svi_receipt receipt;
        const int before = scores;
        errors = 0;
        left = n;
        apply_bytes(t->e, t->frame.data, t->frame.size, CLOCK, false, &receipt);
        const bool used = left < 0;
        left = -1;
        assert_int_equal(errors, receipt.refused);
        assert_true(used || receipt.refused == 0);
        assert_int_equal(scores, before + receipt.accepted);
        if (receipt.refused == 0) /* nothing was missing, or less did as well */
            return n;
        assert_int_equal(last, SVS_NO_MEMORY);
        assert_int_equal(svi_stream_seen(t->e), i);
        assert_true(n < 300);
    }
}

static const char *const settings[] = {
    "novelty.calibration", "60", "alert.p",        "0.02", "alert.clear", "0.05",
    "novelty.lags",        "2",  "max.features",   "60",   "labels.max",  "10",
    "novelty.max",         "30", "alert.cooldown", "0",    NULL};

static void check_samples(const char *const *more) {
    static double expected[3 * ROWS][2];
    struct tape t;
    int refused = 0;
    open_quietly(&t, settings, more);
    tape_feed(&t, growing, 0, 3 * ROWS, 10);
    assert_int_equal(scores, 3 * ROWS);
    const int expected_alerts = alerts;
    assert_true(alerts > 0);
    memcpy(expected, said, sizeof said);
    tape_close(&t);
    open_quietly(&t, settings, more);
    for (int i = 0; i < 3 * ROWS; i++) {
        const int n = take_at_last(&t, i);
        assert_true(n >= 10 || i % ROWS != 0);
        refused += n;
    }
    assert_true(refused > 60);
    assert_int_equal(alerts, expected_alerts);
    for (int i = 0; i < 3 * ROWS; i++)
        assert_true(said[i][0] == expected[i][0] && said[i][1] == expected[i][1]);
    tape_close(&t);
}

static void test_samples(void **unused) {
    (void)unused;
    static const char *const none[] = {"method", "none", NULL};
    static const char *const fosvm2[] = {"method",        "alsvm",      "novelty", "fosvm2",
                                         "novelty.learn", "persistent", NULL};
    check_samples(none);
    check_samples(fosvm2);
}

/* A bank that finds no room catches up, and the sample is taken. */
static const char *const alone[] = {"method", "alsvm", NULL};

/* A sample with new names that found no room leaves the others as they were. False: it found room. */
static bool fails_at(int n) {
    struct tape t;
    struct svi_pack p;
    struct row r;
    open_quietly(&t, settings, alone);
    tape_feed(&t, growing, 0, 60, 10);
    growing(ROWS, &r);
    t.frame.size = 0;
    svi_pack_begin(&p, &t.frame);
    tape_pack(&p, &r);
    assert_int_equal(svi_pack_end(&p), SVS_OK);
    errors = 0;
    left = n;
    apply_bytes(t.e, t.frame.data, t.frame.size, CLOCK, false, NULL);
    const bool used = left < 0;
    left = -1;
    tape_feed(&t, growing, 60, 70, 1);
    assert_int_equal(errors, used);
    assert_int_equal(scores, 70 + !used);
    tape_close(&t);
    return used;
}

static void test_others_go_on(void **unused) {
    (void)unused;
    int n = 0;
    while (fails_at(n))
        n += every(6);
    assert_in_range(n, 10, 300);
}

/* ---- how much */

#define WIDEST 100

static void fill(svi_stream *e, int d, int rows) {
    struct svi_bytes frame = {0};
    for (int i = 0; i < rows; i++) {
        struct svi_pack p;
        frame.size = 0;
        svi_pack_begin(&p, &frame);
        svi_pack_map(&p, 1);
        svi_pack_text(&p, "x");
        svi_pack_array(&p, (size_t)d);
        for (int j = 0; j < d; j++)
            svi_pack_real(&p, tape_noise(i * WIDEST + j, 3));
        assert_int_equal(svi_pack_end(&p), SVS_OK);
        const double before = taken;
        assert_int_equal(apply_bytes(e, frame.data, frame.size, CLOCK, false, NULL), SVS_OK);
        if (i > 600)
            assert_true(taken == before); /* nothing is taken while it runs */
    }
    svi_bytes_clear(&frame);
}

/* Bytes that an engine takes for samples of d features. */
static double use(const char *const *more, int d, const char *novelty, double *predicted) {
    struct svi_settings s;
    svi_settings_default(&s);
    assert_int_equal(svi_settings_set(&s, "method", "none", NULL), SVS_OK);
    assert_int_equal(svi_settings_set(&s, "alert.budget", "none", NULL), SVS_OK);
    for (; more[0]; more += 2)
        assert_int_equal(svi_settings_set(&s, more[0], more[1], NULL), SVS_OK);
    if (novelty)
        assert_int_equal(svi_settings_set(&s, "novelty", novelty, NULL), SVS_OK);
    taken = 0;
    scores = 0;
    svi_stream *e = svi_stream_new(&s, 1, quiet_sink, NULL, NULL);
    assert_non_null(e);
    svi_stream_use_threads(e);
    fill(e, d, 700);
    svi_stream_free(&e);
    *predicted = svi_engine_memory(&s, d, 0);
    return taken;
}

static void test_memory_is_predicted(void **unused) {
    (void)unused;
    static const char *const kinds[][7] = {
        {NULL},
        {"novelty.lags", "5", NULL},
        {"novelty.kernel", "rbf", "novelty.gamma", "scale", "novelty.max", "50", NULL},
        {"novelty.confirm", "2000", "novelty.persist", "500000", "novelty.calibration", "5000", NULL},
    };
    static const int widths[] = {1, 10, WIDEST};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int i = 0; i < (quick() && k > 0 ? 2 : 3); i++) {
            double with, without;
            const double bytes =
                use(kinds[k], widths[i], NULL, &with) - use(kinds[k], widths[i], "none", &without);
            const double said_so = with - without;
            if (!(said_so >= bytes && said_so <= 1.2 * bytes))
                fail_msg("%s, d %d: %.0f bytes taken, %.0f predicted", kinds[k][0] ? kinds[k][0] : "plain",
                         widths[i], bytes, said_so);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_others_go_on),
        cmocka_unit_test(test_memory_is_predicted),
    };
    name_them();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
