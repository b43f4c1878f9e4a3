/* Every allocation of an outbox fails once: it says so, and nothing is lost or leaked. Linked with --wrap. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/nomem.h"

#include "client/outbox_internal.h"

static const char hello[] = "\x83\xa2ok\xc3\xa4next\x00\xa6"
                            "credit\xcd\x40\x00";

/* Puts 300 samples, each again where memory lacked. Returns how often it did. */
static int fill(svs_outbox *b) {
    double x[20] = {0};
    int failed = 0;
    for (int i = 0; i < 300; i++) {
        svs_error err = {0};
        svs_code code = svs_outbox_pack(b, &(svs_outbox_sample){.x = x, .d = 20, .y = svs_int(i)}, &err);
        if (code != SVS_OK) {
            assert_int_equal(code, SVS_NO_MEMORY);
            assert_int_equal(err.code, SVS_NO_MEMORY);
            i--;
            failed++;
        }
        assert_true(svi_outbox_check(b));
    }
    return failed;
}

/* Sends all of it; a frame that cannot be built is due again a little later. */
static int send_all(svs_outbox *b) {
    const void *bytes;
    size_t size;
    svs_outbox_figures f;
    int failed = 0;
    double now = 0;
    do {
        while (svs_outbox_frame(b, now, &bytes, &size)) {
            svs_outbox_sent(b, now);
            if (size < 40)
                assert_int_equal(svs_outbox_reply(b, hello, sizeof hello - 1, now, NULL), SVS_OK);
        }
        svs_outbox_status(b, &f);
        if (f.unsent > 0) {
            assert_true(svs_outbox_wait(b, now) > 0.04 && svs_outbox_wait(b, now) < 0.2);
            failed++;
        }
    } while (f.unsent > 0 && failed < 5);
    assert_int_equal(f.unsent, 0);
    return failed;
}

static void test_each_fails_once(void **unused) {
    (void)unused;
    svs_outbox_options o;
    int n = 0;
    svs_outbox_defaults(&o);
    o.src = "plant";
    o.batch = 100;
    o.window = 1000;
    for (bool used = true; used; n++) {
        svs_error err = {0};
        assert_true(n < 100);
        left = n;
        svs_outbox *b = svs_outbox_new(&o, &err);
        if (!b) {
            assert_int_equal(err.code, SVS_NO_MEMORY);
            left = -1;
            continue;
        }
        int failed = fill(b) + send_all(b);
        used = left < 0;
        left = -1;
        assert_int_equal(failed, used);
        svs_outbox_free(&b);
    }
    assert_true(n > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_fails_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
