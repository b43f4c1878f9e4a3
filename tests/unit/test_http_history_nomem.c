/* The history of the HTTP adapter while every allocation of ours fails once: each call returns an error, or
 * leaves out what there was no memory for; after that everything works, and nothing is lost that was added.
 * Linked with --wrap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/nomem.h"

#include "../../adapters/http/history_answer.h"
#include "wire/pack.h"

#define T 1000000 /* seconds since 1970 */

static void event_of(struct svi_bytes *out) {
    struct svi_pack p;
    svi_pack_begin(&p, out);
    const struct svi_open_map m = svi_pack_open(&p);
    svi_put_uint(&p, "epoch", 1);
    svi_put_real(&p, "ts", T);
    svi_put_int(&p, "number", 1);
    svi_put_int(&p, "alert", 1);
    svi_put_text(&p, "state", "open");
    svi_put_text(&p, "text", "a text");
    svi_pack_close(&p, m);
    assert_int_equal(svi_pack_end(&p), SVS_OK);
}

static bool ask(struct history_store *h, bool alerts, bool whole) {
    const struct history_question q = {
        .alerts = alerts, .from = T - 10, .to = T + 100, .now = T + 100, .stream = "s"};
    struct history_answer a;
    const bool good = http_history_answer(h, &q, &a) == SQLITE_OK && a.status == 200;
    /* An answer is whole, or absent. */
    if (good) {
        assert_memory_equal(a.body.data, "{\"stream\":\"s\"", 13);
        assert_memory_equal(a.body.data + a.body.size - 2, "}\n", 2);
        assert_int_equal(svi_bytes_append(&a.body, "", 1), SVS_OK);
        assert_true(!whole ||
                    strstr((const char *)a.body.data, alerts ? "\"text\":\"a text\"" : "\"rate\":[") != NULL);
    }
    svi_bytes_clear(&a.body);
    return good;
}

static void add(struct history_store *h, int n) {
    struct history_point p = {.t = T + n};
    http_history_point_add(&p, HISTORY_RATE, n);
    http_history_store_add(h, "s", &p, "accuracy");
}

static void test_nomem(void **unused) {
    (void)unused;
    struct svi_bytes event = {0};
    bool more;
    event_of(&event);
    failed = true;
    for (long n = 0; failed && n < 1000; n++) {
        struct history_store h = {.db.fd = -1};
        svs_error err;
        failed = false;
        left = n;
        enum history_opening opened = http_history_store_open(&h, NULL, 0, &err);
        if (opened != HISTORY_OPENED)
            opened = http_history_store_open(&h, NULL, 0, &err);
        assert_int_equal(opened, HISTORY_OPENED);
        for (int i = 0; i < 40; i++)
            add(&h, i);
        http_history_store_commit(&h, false);
        http_history_alerts_add(&h, "s", event.data, event.size);
        ask(&h, false, false);
        ask(&h, true, false);
        http_history_store_prune(&h, T + 1000, &more);
        left = -1;
        add(&h, 41);
        assert_int_equal(http_history_alerts_add(&h, "s", event.data, event.size), SQLITE_OK);
        assert_int_equal(http_history_store_commit(&h, true), SQLITE_OK);
        assert_true(ask(&h, false, true));
        assert_true(ask(&h, true, true));
        http_history_store_close(&h);
    }
    assert_false(failed); /* all of them have been tried */
    svi_bytes_clear(&event);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nomem)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
