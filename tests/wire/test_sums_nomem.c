/* Each allocation that a sums record needs fails once: the call returns SVS_NO_MEMORY, and leaves nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/nomem.h"
#include "support/sums_record.h"

#include "learner/learner_sums.h"
#include "merge/sums.h"

static void test_each_allocation_fails(void **state) {
    struct svi_random random = {5};
    struct svi_sums r = {0}, got = {0};
    struct record_texts texts;
    struct svi_bytes b = {0};
    int failures = 0;
    (void)state;
    for (int i = 0; i < 20; i++) {
        record_random(&r, &texts, &random);
        svs_code code = SVS_NO_MEMORY;
        for (int n = 0; n < 100 && code != SVS_OK; n++, failures++) {
            b.size = 0;
            left = n;
            code = svi_sums_encode(&r, &b);
            left = -1;
            assert_true(code == SVS_OK || (code == SVS_NO_MEMORY && b.size == 0));
        }
        assert_int_equal(code, SVS_OK);
        code = SVS_NO_MEMORY;
        for (int n = 0; n < 100 && code != SVS_OK; n++, failures++) {
            svs_error err = {0};
            left = n;
            code = svi_sums_decode(&got, b.data, b.size, &err);
            left = -1;
            assert_true(code == SVS_OK || (code == SVS_NO_MEMORY && err.text[0] && !got.text));
        }
        assert_int_equal(code, SVS_OK);
        svi_bytes_clear(&b);
    }
    assert_true(failures > 20 * 5);
    svi_sums_clear(&r);
    svi_sums_clear(&got);
}

static void test_sums_of_a_learner(void **state) {
    (void)state;
    for (int64_t window = 0; window < 60; window += 50) {
        struct svi_window_sums s = {0};
        svs_options o;
        svs_error err = {0};
        int failures = 0;
        svs_options_default(&o);
        o.window = window;
        svs_learner *l = svs_learner_new(&o, 2, &err);
        for (int i = 0; i < 70; i++) {
            const double x[] = {i % 7, i % 5};
            const svs_sample sample = {x, 2, svs_none(), svs_int(i % 2), 1};
            svs_step step;
            assert_int_equal(svs_learner_step(l, &sample, i, &step, &err), SVS_OK);
        }
        svs_code code = SVS_NO_MEMORY;
        for (int n = 0; n < 100 && code != SVS_OK; n++, failures++) {
            svi_window_sums_clear(&s);
            left = n;
            code = svi_learner_sums(l, &s, &err);
            left = -1;
            assert_true(code == SVS_OK || code == SVS_NO_MEMORY);
        }
        assert_true(code == SVS_OK && failures >= (window > 0 ? 3 : 2));
        svi_window_sums_clear(&s);
        svs_learner_free(&l);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_allocation_fails),
                                       cmocka_unit_test(test_sums_of_a_learner)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
