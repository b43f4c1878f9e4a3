/* Every allocation of choosing C fails once: it says so, and nothing is lost or leaked. Linked with --wrap.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/nomem.h"

#include "support/learner_walk.h"

static void each_fails_once(void **unused) {
    (void)unused;
    struct walk w = {.d = 5, .most = 5, .classes = 3, .spread = 1, .seed = 4};
    svs_tuning t, good;
    svs_error err;
    svs_options_default(&w.o);
    svs_learner *l = walk_far(&w, 200);
    const uint64_t version = svs_learner_version(l);
    assert_int_equal(svs_learner_tune(l, &good, &err), SVS_OK);
    long n = 0;
    for (bool whole = false; !whole; n++) {
        err.text[0] = 0;
        left = n;
        svs_code code = svs_learner_tune(l, &t, &err);
        whole = left >= 0;
        left = -1;
        assert_int_equal(code, whole ? SVS_OK : SVS_NO_MEMORY);
        assert_true(whole || strlen(err.text) > 10);
    }
    assert_memory_equal(&t, &good, sizeof t);
    assert_true(n > 12);
    assert_int_equal(svs_learner_version(l), version);
    svs_learner_free(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_fails_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
