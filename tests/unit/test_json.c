/* Values and msgpack objects as JSON: jansson reads back what was written. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "wire/json.h"
#include "wire/pack.h"

static void is(struct svi_bytes *out, const char *text) {
    assert_int_equal(svi_bytes_append(out, "", 1), SVS_OK);
    assert_string_equal((const char *)out->data, text);
    out->size = 0;
}

static void test_values(void **state) {
    (void)state;
    struct svi_bytes out = {0};
    svi_json_value(&out, svs_none());
    is(&out, "null");
    svi_json_value(&out, svs_int(INT64_MIN));
    is(&out, "-9223372036854775808");
    svi_json_value(&out, svs_real(0.1));
    is(&out, "0.1");
    svi_json_value(&out, svs_real(NAN));
    is(&out, "null");
    svi_json_value(&out, svs_real(-INFINITY));
    is(&out, "null");
    svi_json_value(&out, svs_str("a \"quoted\" \\ word\n\x01\xc3\xa9"));
    is(&out, "\"a \\\"quoted\\\" \\\\ word\\n\\u0001\xc3\xa9\"");
    svi_json_string(&out, "a\xff\xc3", 3);
    is(&out, "\"a\\u00ff\\u00c3\"");
    svi_json_string(&out, "", 0);
    is(&out, "\"\"");
    svi_json_string(&out, "\xc2\x9b\xc2\x80\xc2\x9f\xc2\xa0\u200d\u200e\u200f", 17);
    is(&out, "\"\\u009b\\u0080\\u009f\xc2\xa0\u200d\\u200e\\u200f\"");
    svi_json_string(&out, "\u2027\u2028\u2029\u202a\u202e\u202f\u2065\u2066\u2069\u206a\ufefe\ufeff", 36);
    is(&out, "\"\u2027\\u2028\\u2029\\u202a\\u202e\u202f\u2065\\u2066\\u2069\u206a\ufefe\\ufeff\"");
    svi_bytes_clear(&out);
}

static void test_numbers_read_back(void **state) {
    (void)state;
    struct svi_bytes out = {0};
    uint64_t random = 88172645463325252u;
    for (int i = 0; i < 20000; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        double r;
        memcpy(&r, &random, sizeof r);
        if (!isfinite(r))
            continue;
        svi_json_value(&out, svs_real(r));
        svi_bytes_append(&out, "", 1);
        assert_true(strtod((const char *)out.data, NULL) == r);
        out.size = 0;
    }
    svi_bytes_clear(&out);
}

static void pack_everything(struct svi_bytes *out) {
    struct svi_pack p;
    double doubles[] = {0.5, -1e300};
    svi_pack_begin(&p, out);
    svi_pack_map(&p, 8);
    svi_pack_text(&p, "nil");
    svi_pack_nil(&p);
    svi_pack_int(&p, -3); /* a key that is no string */
    svi_pack_uint(&p, UINT64_MAX);
    svi_pack_text(&p, "list");
    svi_pack_array(&p, 3);
    svi_pack_int(&p, -7);
    svi_pack_real(&p, 2.5);
    svi_pack_text(&p, "x");
    svi_pack_text(&p, "bin");
    svi_pack_bin(&p, "\x00\xff", 2);
    svi_pack_text(&p, "W");
    svi_pack_doubles(&p, doubles, 2);
    svi_pack_text(&p, "map");
    svi_pack_map(&p, 0);
    svi_pack_text(&p, "empty");
    svi_pack_array(&p, 0);
    svi_pack_text(&p, "no");
    svi_pack_real(&p, NAN);
    assert_int_equal(svi_pack_end(&p), SVS_OK);
}

static void test_msgpack(void **state) {
    (void)state;
    struct svi_bytes in = {0}, out = {0};
    svs_error err;
    pack_everything(&in);
    assert_int_equal(svi_json_msgpack(&out, in.data, in.size, &err), SVS_OK);
    json_t *j = json_loadb((const char *)out.data, out.size, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
    assert_non_null(j);
    assert_int_equal(json_object_size(j), 8);
    assert_true(json_is_null(json_object_get(j, "nil")) && json_is_null(json_object_get(j, "no")));
    assert_int_equal(json_array_size(json_object_get(j, "list")), 3);
    assert_true(json_real_value(json_array_get(json_object_get(j, "W"), 1)) == -1e300);
    json_decref(j);
    is(&out, "{\"nil\":null,\"-3\":18446744073709551615,\"list\":[-7,2.5,\"x\"],\"bin\":\"\\u0000\\u00ff\","
             "\"W\":[0.5,-1e+300],\"map\":{},\"empty\":[],\"no\":null}");
    svi_bytes_clear(&in);
    svi_bytes_clear(&out);
}

static void test_packed_floats(void **state) {
    (void)state;
    struct svi_bytes out = {0};
    const uint8_t floats[] = {0xd7, 1, 0, 0, 0x80, 0x3f, 0, 0, 0x20, 0xc0}, other[] = {0xd4, 9, 'z'};
    assert_int_equal(svi_json_msgpack(&out, floats, sizeof floats, NULL), SVS_OK);
    is(&out, "[1,-2.5]");
    assert_int_equal(svi_json_msgpack(&out, other, sizeof other, NULL), SVS_OK);
    is(&out, "\"z\"");
    svi_bytes_clear(&out);
}

static void test_refusals(void **state) {
    (void)state;
    struct svi_bytes out = {0};
    svs_error err;
    uint8_t deep[100];
    memset(deep, 0x91, sizeof deep);
    const uint8_t claim[] = {0xdd, 0x7f, 0xff, 0xff, 0xff};
    assert_int_equal(svi_json_msgpack(&out, "\xc1", 1, &err), SVS_NOT_MSGPACK);
    assert_int_equal(svi_json_msgpack(&out, claim, sizeof claim, &err), SVS_TRUNCATED);
    assert_int_equal(svi_json_msgpack(&out, deep, sizeof deep, &err), SVS_TOO_DEEP);
    assert_int_equal(svi_json_msgpack(&out, "\xc0\xc0", 2, &err), SVS_TRAILING);
    assert_int_equal(svi_json_msgpack(&out, "", 0, &err), SVS_EMPTY);
    assert_int_equal(out.size, 0);
    svi_bytes_clear(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values),
                                       cmocka_unit_test(test_numbers_read_back),
                                       cmocka_unit_test(test_msgpack), cmocka_unit_test(test_packed_floats),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
