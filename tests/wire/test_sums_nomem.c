/* Each allocation that a sums record needs fails once: the call returns SVS_NO_MEMORY, and leaves nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/nomem.h"
#include "support/sums_record.h"

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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_allocation_fails)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
