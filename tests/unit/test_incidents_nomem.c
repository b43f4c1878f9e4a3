/* Every allocation for incidents and the log of alerts fails once: it says so, and nothing is lost or leaked.
 * Linked with --wrap. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/nomem.h"

#include "report/alert_log.h"
#include "report/incidents.h"

#define COUNT 100 /* more than the first block holds */

static void write_file(char *path) {
    const int file = mkstemp(path);
    FILE *to = fdopen(file, "w");
    fputs("start,end,name\n", to);
    for (int i = COUNT - 1; i >= 0; i--)
        fprintf(to, "%d,%d,fault %d\n", 1700000000 + 100 * i, 1700000000 + 100 * i + 50, i);
    fclose(to);
}

static void test_incidents(void **unused) {
    (void)unused;
    char path[] = "/tmp/test_incidents_XXXXXX";
    struct svi_incidents in;
    struct svi_incident_figures f;
    svs_error err;
    int64_t before;
    long failed = 0;
    write_file(path);
    for (left = 0; svi_incidents_read(&in, path, NAN, &err) != SVS_OK; left = ++failed) {
        assert_int_equal(err.code, SVS_NO_MEMORY);
        assert_null(in.of);
    }
    assert_true(failed >= 3);
    left = -1;
    assert_int_equal(in.count, COUNT);
    assert_string_equal(in.of[0].name, "fault 0");
    assert_true(svi_incidents_report(&in, NULL, 1700000010, true, &before));
    assert_false(svi_incidents_report(&in, NULL, 1700000060, true, &before));
    assert_true(svi_incidents_report(&in, NULL, 1700000150, true, &before)); /* its last moment */
    left = 0;
    assert_int_equal(svi_incidents_figures(&in, 1700000000, 1700000999, &f, &err), SVS_NO_MEMORY);
    left = -1;
    assert_int_equal(svi_incidents_figures(&in, 1700000000, 1700000999, &f, &err), SVS_OK);
    assert_int_equal(f.count, 10);
    assert_int_equal(f.outside, COUNT - 10);
    assert_int_equal(f.found, 2);
    assert_true(f.median_delay == 30);
    svi_incidents_clear(&in);
    unlink(path);
}

static void take(struct svi_alert_log *l, int64_t number, const char *state, double ts) {
    struct svi_event e = {.topic = SVI_TOPIC_ALERT, .ts = ts};
    e.as.alert =
        (struct svi_alert_event){.kind = "novelty", .alert = number, .state = state, .text = "pump1"};
    svi_alert_log_take(l, &e);
}

/* 40 alerts that are open at once. */
static void test_log(void **unused) {
    (void)unused;
    long failed = 0;
    struct svi_alert_log l;
    do {
        l = (struct svi_alert_log){.keeps = true};
        left = failed++;
        for (int i = 0; i < 40; i++)
            take(&l, i, "open", i);
        for (int i = 0; i < 40; i++)
            take(&l, i, "close", 100);
        assert_int_equal(l.alerts, 40);
        assert_int_equal(l.closed, 40);
        if (l.failed)
            svi_alert_log_clear(&l);
    } while (left < 0);
    assert_true(failed >= 3);
    left = -1;
    assert_false(l.failed);
    assert_int_equal(l.open_count, 0);
    assert_true(l.longest == 100 && l.lasted == 40 * 100 - 39 * 20);
    svi_alert_log_clear(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_incidents), cmocka_unit_test(test_log)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
