/* Mutes by themselves: what is held back and what comes of it; every allocation fails once, and then the
 * events are published; a state that was archived goes on the same way, and damaged bytes are refused;
 * patterns of keys, and lengths of time. Linked with --wrap. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/nomem.h"

#include "alerts/mutes.h"
#include "base/duration.h"
#include "base/text.h"
#include "wire/archive_file.h"

static struct svi_event event_of(const char *key, int64_t alert, const char *state,
                                 const struct svi_contribution *top) {
    struct svi_event e = {.topic = SVI_TOPIC_ALERT, .stream = "plant", .key = key, .ts = 50};
    e.as.alert = (struct svi_alert_event){.kind = "rule",
                                          .alert = alert,
                                          .state = state,
                                          .rule = "limits",
                                          .sensors = 1,
                                          .since = 40,
                                          .top = top,
                                          .count = top ? 1 : 0,
                                          .text = "plant m1 temp 70 above its limit 60"};
    return e;
}

static bool holds(struct svi_mutes *m, const char *key, int64_t alert, const char *state,
                  const struct svi_contribution *top) {
    struct svi_event e = event_of(key, alert, state, top);
    return svi_mutes_hold(m, &e);
}

static const struct svi_contribution temp = {.feature = "temp", .value = 70, .low = 0, .high = 60},
                                     flow = {.feature = "flow", .column = 1};

/* A mute of one sensor of some keys with two alerts under it, one of them over. */
static struct svi_mutes *filled(void) {
    struct svi_mutes *m = svi_mutes_new(NULL);
    struct svi_mute mute = {.key = "m*", .sensor = "temp", .since = 10, .until = 100, .due = 1000};
    assert_non_null(m);
    assert_non_null(svi_mutes_add(m, &mute, NULL));
    assert_true(holds(m, "m1", 1, "open", &temp));
    assert_true(holds(m, "m2", 1, "open", &temp));
    assert_true(holds(m, "m1", 1, "close", NULL));
    return m;
}

static void test_hold(void **unused) {
    (void)unused;
    struct svi_mutes *m = filled();
    struct svi_event e;
    char line[SVI_MUTE_LISTED * SVI_ALERT_TEXT + SVI_ALERT_TEXT];
    assert_false(holds(m, "pump", 1, "open", &temp)); /* another key */
    assert_false(holds(m, "m1", 2, "open", &flow));   /* another sensor */
    assert_true(holds(m, "m3", 7, "update", &temp));  /* it was published before */
    assert_true(holds(m, "m3", 7, "close", NULL));
    /* An alert under the mute that another sensor joins is published, as an open. */
    assert_true(holds(m, "m4", 1, "open", &temp));
    e = event_of("m4", 1, "update", &flow);
    assert_false(svi_mutes_hold(m, &e));
    assert_string_equal(e.as.alert.state, "open");
    assert_null(svi_mutes_due(m, 99));
    struct svi_mute *mute = svi_mutes_due(m, 100);
    assert_non_null(mute);
    assert_int_equal(mute->found, 3);
    assert_int_equal(svi_mutes_line(m, mute, "plant", 100, line), 1);
    assert_non_null(strstr(line, "plant m* temp mute ended after 90 s: 3 alerts while muted: m1 temp 70"));
    mute->ended = true;
    assert_true(svi_mutes_release(m, 1, &e));
    assert_string_equal(e.key, "m2");
    assert_string_equal(e.as.alert.state, "open");
    assert_string_equal(e.as.alert.top[0].feature, "temp");
    assert_true(svi_mutes_release(m, 1, &e));
    assert_string_equal(e.key, "m3");
    assert_string_equal(e.as.alert.state, "close");
    assert_false(svi_mutes_release(m, 1, &e));
    assert_int_equal(svi_mutes_active(m), 0);
    svi_mutes_tidy(m);
    assert_int_equal(m->count, 0);
    svi_mutes_free(&m);
}

/* Without memory an event is published, and nothing else changes. */
static void test_memory(void **unused) {
    (void)unused;
    struct svi_mutes *m;
    struct svi_mute mute = {.until = 100, .due = 100};
    svs_error err;
    left = 0;
    m = svi_mutes_new(&err);
    left = -1;
    assert_null(m);
    assert_int_equal(err.code, SVS_NO_MEMORY);
    m = svi_mutes_new(&err);
    left = 0;
    assert_null(svi_mutes_add(m, &mute, &err));
    left = -1;
    assert_int_equal(err.code, SVS_NO_MEMORY);
    assert_int_equal(svi_mutes_add(m, &mute, &err)->id, 1);
    left = 0;
    assert_false(holds(m, NULL, 1, "open", &temp));
    left = -1;
    assert_int_equal(m->at[0]->found + m->at[0]->held + m->held_count, 0);
    /* Nor beyond the capacity. */
    for (int i = 0; i < SVI_MUTES_HELD; i++)
        assert_true(holds(m, NULL, i + 2, "open", &temp));
    assert_false(holds(m, NULL, 1, "open", &temp));
    assert_true(holds(m, NULL, 2, "update", &temp)); /* of one that is held back already */
    for (int i = 1; i < SVI_MUTES_MAX; i++)
        assert_non_null(svi_mutes_add(m, &mute, &err));
    assert_null(svi_mutes_add(m, &mute, &err));
    assert_int_equal(err.code, SVS_LIMIT);
    svi_mutes_free(&m);
}

static svs_code saved(struct svi_mutes *m, struct svi_bytes *out) {
    struct svi_archive_out to;
    svs_error err;
    out->size = 0;
    svi_archive_out_begin(&to, out, "mutes", &err);
    svi_mutes_archive(&to.archive, m);
    return svi_archive_out_end(&to);
}

static svs_code loaded(const uint8_t *bytes, size_t size, struct svi_mutes *m) {
    struct svi_archive_in from;
    svs_error err;
    svi_archive_in_begin(&from, bytes, size, "mutes", &err);
    svi_mutes_archive(&from.archive, m);
    return svi_archive_in_end(&from);
}

static void test_archive(void **unused) {
    (void)unused;
    struct svi_mutes *m = filled(), *copy = NULL;
    struct svi_bytes bytes = {0}, again = {0};
    long failed = 0;
    assert_int_equal(saved(m, &bytes), SVS_OK);
    for (svs_code code = SVS_NO_MEMORY; code != SVS_OK; failed++) {
        svi_mutes_free(&copy);
        copy = svi_mutes_new(NULL);
        left = failed;
        code = loaded(bytes.data, bytes.size, copy);
        left = -1;
        assert_true(code == SVS_OK || code == SVS_NO_MEMORY);
    }
    assert_true(failed > 2);
    assert_int_equal(saved(copy, &again), SVS_OK);
    assert_int_equal(again.size, bytes.size);
    assert_memory_equal(again.data, bytes.data, bytes.size);
    /* Every truncation is refused, and no changed byte does harm. */
    for (size_t n = 0; n < bytes.size; n++) {
        struct svi_mutes *other = svi_mutes_new(NULL);
        assert_int_not_equal(loaded(bytes.data, n, other), SVS_OK);
        svi_mutes_free(&other);
        other = svi_mutes_new(NULL);
        again.data[n] ^= 0x55;
        (void)loaded(again.data, again.size, other);
        again.data[n] ^= 0x55;
        svi_mutes_free(&other);
    }
    svi_bytes_clear(&bytes);
    svi_bytes_clear(&again);
    svi_mutes_free(&copy);
    svi_mutes_free(&m);
}

static void test_pattern(void **unused) {
    (void)unused;
    static const struct {
        const char *pattern, *text;
        bool matches;
    } cases[] = {{"", "", true},
                 {"", "a", false},
                 {"*", "", true},
                 {"*", "abc", true},
                 {"press-*", "press-", true},
                 {"press-*", "press-12", true},
                 {"press-*", "pres", false},
                 {"*a*b", "xaxab", true},
                 {"*a*b", "xaxabc", false},
                 {"a**", "a", true},
                 {"a*b*c", "abbcbc", true},
                 {"a*b*c", "acb", false},
                 {"ab", "abc", false},
                 {"abc", "ab", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (svi_text_matches(cases[i].pattern, strlen(cases[i].pattern), cases[i].text) != cases[i].matches)
            fail_msg("%s %s", cases[i].pattern, cases[i].text);
    assert_true(svi_text_matches("a*b.temp", 3, "axb")); /* its length counts, not a NUL */
}

static void test_duration(void **unused) {
    (void)unused;
    static const struct {
        const char *text;
        double seconds; /* -1: refused */
    } cases[] = {{"0", 0},     {"90", 90},       {"30s", 30}, {"10min", 600}, {"10 min", 600},
                 {"2h", 7200}, {"1.5d", 129600}, {"", -1},    {"h", -1},      {"-1h", -1},
                 {"2 ", -1},   {"2  h", -1},     {"2H", -1},  {"2hours", -1}, {"0x10", -1},
                 {"1e3", -1},  {"nan", -1},      {"2h ", -1}, {".", -1},      {"1e99d", -1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double seconds = -1;
        if (!svi_duration_read(cases[i].text, strlen(cases[i].text), &seconds))
            seconds = -1;
        if (seconds != cases[i].seconds)
            fail_msg("'%s' is %g", cases[i].text, seconds);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_hold), cmocka_unit_test(test_memory),
                                       cmocka_unit_test(test_archive), cmocka_unit_test(test_pattern),
                                       cmocka_unit_test(test_duration)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
