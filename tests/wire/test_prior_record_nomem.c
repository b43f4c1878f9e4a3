/* The sums of a prior as msgpack: they come back the same; any bytes that were changed or cut are refused
 * with a text, or are sums that can be merged; and each allocation fails once, after which nothing is left.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/nomem.h"

#include "base/random.h"
#include "linalg/kernels.h"
#include "merge/prior_merge.h"
#include "merge/prior_record.h"

#define D 5

/* Sums of rows with three labels, of two keys. */
static void fill(struct svi_prior_sums *s, struct svi_random *random) {
    struct svi_prior_trait trait[D];
    const double center[D] = {1, 2, 3, 4, 5};
    uint16_t label;
    svs_error err;
    svi_prior_sums_init(s, false);
    for (int j = 0; j < D; j++) {
        char name[8];
        snprintf(name, sizeof name, "f%d", j);
        trait[j] = (struct svi_prior_trait){.limit = INFINITY, .flags = SVI_PRIOR_LEVEL};
        assert_int_equal(svi_prior_sums_feature(s, svi_prior_identity(name, j), j, &trait[j].place, &err),
                         SVS_OK);
    }
    for (int k = 0; k < 3; k++)
        assert_int_equal(svi_prior_sums_label(s, k ? svs_int(k) : svs_str("zero"), -1, &label, &err), SVS_OK);
    for (int i = 0; i < 100; i++) {
        double x[D];
        for (int j = 0; j < D; j++)
            x[j] = center[j] + svi_random_below(random, 1000) / 1000.0;
        svi_prior_sums_add(s, svi_kernels_get(SVS_ISA_BEST), trait, center, D, x, 1, (uint16_t)(i % 3), 0);
    }
    for (int k = 0; k < 2; k++)
        svi_prior_sums_key(s, trait, center, D, 50, 1);
}

static void encode(struct svi_bytes *out, uint64_t seed) {
    struct svi_random random = {seed};
    struct svi_prior_sums s;
    struct svi_prior_bounds none = {0};
    svs_error err = {0};
    fill(&s, &random);
    out->size = 0;
    assert_int_equal(svi_prior_record_encode(&s, &none, 2, out, &err), SVS_OK);
    svi_prior_sums_clear(&s);
}

static void test_same(void **state) {
    struct svi_bytes one = {0}, two = {0};
    struct svi_prior_record r = {0};
    svs_error err = {0};
    (void)state;
    encode(&one, 3);
    assert_int_equal(svi_prior_record_decode(&r, false, one.data, one.size, &err), SVS_OK);
    assert_int_equal(svi_prior_record_encode(&r.sums, &r.bounds, r.keys, &two, &err), SVS_OK);
    assert_int_equal(one.size, two.size);
    assert_memory_equal(one.data, two.data, one.size);
    assert_int_equal(svi_prior_record_decode(&r, true, one.data, one.size, &err), SVS_WRONG_TYPE);
    svi_prior_record_clear(&r);
    svi_bytes_clear(&one);
    svi_bytes_clear(&two);
}

/* Refused with a text, or sums that a merge takes or leaves out. */
static void take(const uint8_t *bytes, size_t size, const struct svi_bytes *honest) {
    struct svi_prior_record r = {0};
    struct svi_bytes merged = {0};
    svs_error err = {0};
    struct svi_prior_part parts[] = {{.name = "b", .prior = bytes, .size = size},
                                     {.name = "a", .prior = honest->data, .size = honest->size}};
    const svs_code code = svi_prior_record_decode(&r, false, bytes, size, &err);
    assert_true(code == SVS_OK || (err.text[0] && !r.sums.high));
    svi_prior_record_clear(&r);
    assert_int_equal(svi_prior_merge(parts, 2, false, &merged, &err), SVS_OK);
    assert_true(parts[1].factor == 1 && (parts[0].factor > 0 || parts[0].why[0]));
    assert_true(code == SVS_OK || parts[0].factor == 0);
    assert_int_equal(svi_prior_record_decode(&r, false, merged.data, merged.size, &err), SVS_OK);
    svi_prior_record_clear(&r);
    svi_bytes_clear(&merged);
}

static void test_changed(void **state) {
    struct svi_bytes one = {0}, honest = {0};
    struct svi_random random = {17};
    (void)state;
    encode(&one, 3);
    encode(&honest, 4);
    for (size_t size = 0; size < one.size; size += 1 + size / 40)
        take(one.data, size, &honest);
    for (int i = 0; i < 3000; i++) {
        const size_t at = svi_random_below(&random, (uint32_t)one.size);
        const uint8_t before = one.data[at];
        one.data[at] = (uint8_t)svi_random_below(&random, 256);
        take(one.data, one.size, &honest);
        one.data[at] = before;
    }
    svi_bytes_clear(&one);
    svi_bytes_clear(&honest);
}

static void test_each_allocation_fails(void **state) {
    struct svi_bytes one = {0}, two = {0}, merged = {0};
    struct svi_prior_record r = {0};
    svs_code code = SVS_NO_MEMORY;
    int failures = 0;
    (void)state;
    encode(&one, 3);
    encode(&two, 4);
    for (int n = 0; n < 300 && code != SVS_OK; n++, failures++) {
        svs_error err = {0};
        left = n;
        code = svi_prior_record_decode(&r, false, one.data, one.size, &err);
        left = -1;
        assert_true(code == SVS_OK || (code == SVS_NO_MEMORY && err.text[0] && !r.sums.high));
    }
    assert_int_equal(code, SVS_OK);
    code = SVS_NO_MEMORY;
    for (int n = 0; n < 300 && code != SVS_OK; n++, failures++) {
        svs_error err = {0};
        struct svi_prior_part parts[] = {{.name = "b", .prior = one.data, .size = one.size},
                                         {.name = "a", .prior = two.data, .size = two.size}};
        left = n;
        code = svi_prior_merge(parts, 2, false, &merged, &err);
        left = -1;
        assert_true(code == SVS_OK || (code == SVS_NO_MEMORY && err.text[0] && merged.size == 0));
    }
    assert_int_equal(code, SVS_OK);
    assert_true(failures > 20);
    svi_prior_record_clear(&r);
    svi_bytes_clear(&one);
    svi_bytes_clear(&two);
    svi_bytes_clear(&merged);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same), cmocka_unit_test(test_changed),
                                       cmocka_unit_test(test_each_allocation_fails)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
