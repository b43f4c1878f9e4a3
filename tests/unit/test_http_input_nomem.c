/* Every allocation of reading a request target, a body and a tokens file fails once: it is reported, nothing
 * is lost or leaked, and what was there before stays in force. Linked with --wrap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/nomem.h"

#include "../../adapters/http/body.h"
#include "../../adapters/http/compress.h"
#include "../../adapters/http/target.h"
#include "../../adapters/http/tokens.h"
#include "base/alloc.h"

#define HASH_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HASH_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static void target_fails_once(void **unused) {
    (void)unused;
    struct http_target t;
    left = 0;
    assert_non_null(http_target_read(&t, "/alerts/7?stream=a"));
    left = -1;
    http_target_clear(&t);
    assert_null(http_target_read(&t, "/alerts/7?stream=a"));
    assert_string_equal(t.segment[1], "7");
    http_target_clear(&t);
}

static void body_fails_once(void **unused) {
    (void)unused;
    static uint8_t text[100000];
    size_t packed;
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (uint8_t)(i * 31 % 251);
    uint8_t *file = http_compress(text, sizeof text, &packed);
    assert_non_null(file);
    long n = 0;
    for (bool whole = false; !whole; n++) {
        struct http_body_budget budget = {0, 1 << 20};
        struct http_body b;
        http_body_begin(&b, &budget, 200000, true);
        left = n;
        const enum http_body_state state = http_body_add(&b, file, packed);
        whole = left >= 0;
        left = -1;
        assert_int_equal(state, whole ? HTTP_BODY_GOOD : HTTP_BODY_BUSY);
        if (whole) {
            assert_int_equal(b.size, sizeof text);
            assert_memory_equal(b.data, text, sizeof text);
        }
        http_body_clear(&b);
        assert_int_equal(budget.used, 0);
    }
    assert_true(n > 4);
    left = 0;
    assert_null(http_compress(text, sizeof text, &packed));
    left = -1;
    svi_free(file);
}

static void tokens_fail_once(void **unused) {
    (void)unused;
    static const char before[] = HASH_A " panel watch\n", after[] = HASH_B " line4 send,source:line4-*\n";
    struct http_tokens all = {0};
    svs_error err;
    assert_int_equal(http_tokens_parse(&all, "tokens", before, strlen(before), &err), SVS_OK);
    left = 0;
    assert_int_equal(http_tokens_parse(&all, "tokens", after, strlen(after), &err), SVS_NO_MEMORY);
    left = -1;
    assert_int_equal(all.count, 1);
    assert_string_equal(all.token[0].name, "panel");
    assert_int_equal(http_tokens_parse(&all, "tokens", after, strlen(after), &err), SVS_OK);
    assert_string_equal(all.token[0].sources, "line4-*");
    http_tokens_clear(&all);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(target_fails_once), cmocka_unit_test(body_fails_once),
                                       cmocka_unit_test(tokens_fail_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
