/* The allocation gate, error texts, escaping, UTF-8, edit distance and values. */
#include <math.h>
#include <stdlib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/statistics.h"
#include "base/random.h"
#include "base/alloc.h"
#include "base/pool.h"
#include "base/fail.h"
#include "base/text.h"
#include "svmstream/svmstream.h"

static int all_zero(const unsigned char *p, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (p[i])
            return 0;
    return 1;
}

static void test_alloc_is_zeroed_and_aligned(void **state) {
    (void)state;
    for (size_t size = 1; size < 5000; size = size * 3 + 1) {
        unsigned char *p = svi_alloc(size);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 64, 0);
        assert_true(all_zero(p, size));
        memset(p, 0xff, size); /* so that the next block would show it if it were not zeroed */
        svi_free(p);
    }
    assert_null(svi_alloc(0));
    assert_null(svi_alloc(SIZE_MAX));
    svi_free(NULL);
}

static void test_alloc_array_overflows_to_null(void **state) {
    (void)state;
    assert_null(svi_alloc_array(SIZE_MAX / 8 + 2, 8));
    assert_null(svi_alloc_array(3, SIZE_MAX / 2));
    assert_null(svi_alloc_array(0, 8));
    assert_null(svi_alloc_array(8, 0));
    double *p = svi_alloc_array(3, sizeof *p);
    assert_non_null(p);
    svi_free(p);
}

static void test_pool_fails_once_for_all(void **state) {
    (void)state;
    struct svi_pool pool = {0};
    for (size_t count = 0; count < 200; count = 2 * count + 1) {
        unsigned char *p = svi_pool_take(&pool, count, 3);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 64, 0);
        assert_true(all_zero(p, 3 * count));
        memset(p, 0xff, 3 * count);
    }
    assert_int_equal(svi_pool_code(&pool, "a test", NULL), SVS_OK);
    assert_null(svi_pool_take(&pool, SIZE_MAX / 8, 8));
    assert_null(svi_pool_doubles(&pool, 1));
    assert_int_equal(svi_pool_code(&pool, "a test", NULL), SVS_NO_MEMORY);
    svi_pool_free(&pool);
    assert_non_null(svi_pool_doubles(&pool, 1));
    svi_pool_free(&pool);
}

static void test_realloc_keeps_content(void **state) {
    (void)state;
    unsigned char *p = svi_realloc(NULL, 0, 10);
    assert_non_null(p);
    memset(p, 7, 10);
    assert_null(svi_realloc(p, 10, SIZE_MAX));
    assert_int_equal(p[9], 7);
    p = svi_realloc(p, 10, 1000);
    assert_int_equal(p[0] + p[9], 14);
    assert_true(all_zero(p + 10, 990));
    p = svi_realloc(p, 1000, 5);
    assert_int_equal(p[4], 7);
    svi_free(p);
}

static void test_codes_have_unique_names(void **state) {
    (void)state;
    for (int a = 0; a < SVS_CODE_COUNT; a++) {
        assert_true(strlen(svs_code_name((svs_code)a)) > 0 && strlen(svs_code_text((svs_code)a)) > 5);
        for (int b = 0; b < a; b++)
            assert_string_not_equal(svs_code_name((svs_code)a), svs_code_name((svs_code)b));
    }
    assert_string_equal(svs_code_name(SVS_WRONG_TYPE), "wrong_type");
    assert_string_equal(svs_code_name((svs_code)9999), "invalid");
    assert_string_equal(svs_code_name((svs_code)-1), "invalid");
    assert_string_equal(svs_code_text((svs_code)9999), svs_code_text(SVS_INVALID));
}

static void test_fail_writes_and_returns(void **state) {
    (void)state;
    svs_error e;
    assert_int_equal(svi_fail(&e, SVS_LIMIT, "%d of %s", 3, "them"), SVS_LIMIT);
    assert_int_equal(e.code, SVS_LIMIT);
    assert_string_equal(e.text, "3 of them");
    assert_int_equal(svi_fail(NULL, SVS_IO, "x"), SVS_IO);
    assert_int_equal(svi_fail_memory(&e, "rows"), SVS_NO_MEMORY);
    assert_non_null(strstr(e.text, "rows"));
}

/* Wherever the cut falls in a two-byte character, the text stays valid. */
static void test_fail_cuts_on_characters(void **state) {
    (void)state;
    for (int pad = 0; pad < 4; pad++) {
        char text[600] = "";
        svs_error e;
        memset(text, 'a', (size_t)pad);
        for (size_t i = (size_t)pad; i + 2 < sizeof text; i += 2)
            memcpy(text + i, "\xc3\xb6", 3);
        svi_fail(&e, SVS_IO, "%s", text);
        size_t n = strlen(e.text);
        assert_true(n < SVS_ERROR_TEXT && n > SVS_ERROR_TEXT - 5);
        assert_true(svi_utf8_valid(e.text, n));
        assert_string_equal(e.text + n - 3, "...");
    }
}

static void test_escape(void **state) {
    (void)state;
    static const struct {
        const char *in;
        size_t length, size;
        const char *out;
    } rows[] = {
        {"plain", 5, 20, "plain"},
        {"a\nb", 3, 20, "a\\x0ab"},
        {"a\0b", 3, 20, "a\\x00b"},
        {"\xff", 1, 20, "\\xff"},
        {"gr\xc3\xb6\xc3\x9f", 6, 20, "gr\xc3\xb6\xc3\x9f"},
        {"\xc3", 1, 20, "\\xc3"},
        {"\xc2\x85", 2, 20, "\\xc2\\x85"},          /* a control character of two bytes */
        {"\xe2\x80\xae", 3, 20, "\\xe2\\x80\\xae"}, /* U+202E: what follows is written from right to left */
        {"\xe2\x80\x90", 3, 20, "\xe2\x80\x90"},
        {"\x7f", 1, 20, "\\x7f"},
        {"12345678", 8, 8, "1234..."},
        {"1234567", 7, 8, "1234567"},
        {"123\xc3\xb6\xc3\xb6", 7, 8, "123\xc3\xb6\xc3\xb6"},
        {"123\xc3\xb6\xc3\xb6z", 8, 8, "123..."},
        {"abc", 3, 3, ".."},
        {"abc", 3, 1, ""},
        {"", 0, 4, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char out[21];
        memset(out, 'Z', sizeof out);
        assert_ptr_equal(svi_escape(out, rows[i].size, rows[i].in, rows[i].length), out);
        assert_string_equal(out, rows[i].out);
        assert_int_equal(out[rows[i].size], 'Z');
    }
    char untouched = 'Z';
    svi_escape(&untouched, 0, "abc", 3);
    assert_int_equal(untouched, 'Z');
}

/* Any bytes at any size give valid UTF-8. */
static void test_escape_any_bytes(void **state) {
    (void)state;
    uint32_t r = 1;
    for (int round = 0; round < 20000; round++) {
        char in[12], out[30];
        for (size_t i = 0; i < sizeof in; i++)
            in[i] = (char)((r = r * 1664525u + 1013904223u) >> 24);
        size_t size = 1 + (r >> 8) % sizeof out;
        svi_escape(out, size, in, sizeof in);
        assert_true(strlen(out) < size);
        assert_true(svi_utf8_valid(out, strlen(out)));
    }
}

static void test_utf8(void **state) {
    (void)state;
    static const char *const good[] = {"",
                                       "abc",
                                       "\xc2\x80",
                                       "\xdf\xbf",
                                       "\xe0\xa0\x80",
                                       "\xed\x9f\xbf",
                                       "\xee\x80\x80",
                                       "\xf0\x90\x80\x80",
                                       "\xf4\x8f\xbf\xbf"};
    static const char *const bad[] = {"\x80",
                                      "\xc0\x80",
                                      "\xc1\xbf",
                                      "\xc2",
                                      "\xc2\x41",
                                      "\xe0\x9f\xbf",
                                      "\xed\xa0\x80",
                                      "\xe1\x80",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80",
                                      "\xff",
                                      "a\xf0\x90\x80"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(svi_utf8_valid(good[i], strlen(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(svi_utf8_valid(bad[i], strlen(bad[i])));
    assert_int_equal(svi_utf8_length("", 0), 0);
    assert_true(svi_utf8_valid("a\0b", 3));
}

static void test_edit_distance(void **state) {
    (void)state;
    static const struct {
        const char *a, *b;
        int limit, distance;
    } rows[] = {{"window", "window", 3, 0},  {"windw", "window", 3, 1},   {"widnow", "window", 3, 1},
                {"wimdow", "window", 3, 1},  {"", "abc", 5, 3},           {"abc", "", 5, 3},
                {"kitten", "sitting", 5, 3}, {"kitten", "sitting", 1, 2}, {"ca", "abc", 5, 3},
                {"publish", "stream", 2, 3}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(svi_edit_distance(rows[i].a, rows[i].b, rows[i].limit), rows[i].distance);
    char longest[65] = "", word[64] = "";
    memset(longest, 'a', 64);
    memset(word, 'a', 63);
    assert_int_equal(svi_edit_distance(longest, longest, 2), 3);
    assert_int_equal(svi_edit_distance(word, word, 2), 0);
}

static void test_value_equal(void **state) {
    (void)state;
    const svs_value all[] = {svs_none(),    svs_int(7),   svs_int(-7), svs_real(7),
                             svs_real(0.5), svs_str("7"), svs_str(""), svs_str("seven")};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (size_t j = 0; j < sizeof all / sizeof *all; j++)
            assert_int_equal(svs_value_equal(all[i], all[j]), i == j);
    char copy[] = "seven";
    assert_true(svs_value_equal(svs_str(copy), svs_str("seven")));
}

static void test_value_text(void **state) {
    (void)state;
    static const struct {
        svs_value v;
        const char *text;
    } rows[] = {
        {{.kind = SVS_NONE}, ""},
        {{.kind = SVS_INT, .as.i = INT64_MIN}, "-9223372036854775808"},
        {{.kind = SVS_REAL, .as.r = 0.1}, "0.1"},
        {{.kind = SVS_REAL, .as.r = 1.0 / 3}, "0.33333333333333331"},
        {{.kind = SVS_STR, .length = 3, .as.s = "a\nbc"}, "a\\x0ab"},
    };
    char out[40];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(svs_value_text(rows[i].v, out, sizeof out), rows[i].text);
    assert_string_equal(svs_value_text(svs_int(12345), out, 4), "123");
    out[0] = 'Z';
    svs_value_text(svs_int(1), out, 0);
    assert_int_equal(out[0], 'Z');
}

static void test_version(void **state) {
    (void)state;
    const char *version = svs_version(); /* later commits add theirs: tests/structure/test_version */
    assert_memory_equal(version, SVS_VERSION, strlen(SVS_VERSION));
    assert_true(strcmp(version, SVS_VERSION) == 0 || version[strlen(SVS_VERSION)] == '+');
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Against sorting and two passes, with ties and infinities. */
static void order_and_spread(void **state) {
    (void)state;
    struct svi_random random = {3};
    double v[200], sorted[200];
    for (int round = 0; round < 500; round++) {
        const int n = 1 + (int)svi_random_below(&random, 200), kinds = 1 + (int)svi_random_below(&random, 50);
        double mean = 0, squares = 0;
        for (int i = 0; i < n; i++)
            mean += (v[i] = svi_random_below(&random, (uint32_t)kinds) - 3.0) / n;
        for (int i = 0; i < n; i++)
            squares += (v[i] - mean) * (v[i] - mean);
        assert_true(fabs(svi_deviation(v, n) - sqrt(squares / n)) < 1e-9);
        v[0] = round % 3 == 0 ? INFINITY : v[0];
        memcpy(sorted, v, (size_t)n * sizeof *v);
        qsort(sorted, (size_t)n, sizeof *sorted, ascending);
        const int rank = (int)svi_random_below(&random, (uint32_t)n);
        assert_true(svi_select_rank(v, n, rank) == sorted[rank]);
        for (int i = 0; i < n; i++)
            assert_true(i < rank ? v[i] <= sorted[rank] : v[i] >= sorted[rank]);
        qsort(v, (size_t)n, sizeof *v, ascending);
        assert_memory_equal(v, sorted, (size_t)n * sizeof *v); /* nothing is lost on the way */
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_and_spread),
        cmocka_unit_test(test_alloc_is_zeroed_and_aligned),
        cmocka_unit_test(test_alloc_array_overflows_to_null),
        cmocka_unit_test(test_pool_fails_once_for_all),
        cmocka_unit_test(test_realloc_keeps_content),
        cmocka_unit_test(test_codes_have_unique_names),
        cmocka_unit_test(test_fail_writes_and_returns),
        cmocka_unit_test(test_fail_cuts_on_characters),
        cmocka_unit_test(test_escape),
        cmocka_unit_test(test_escape_any_bytes),
        cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_edit_distance),
        cmocka_unit_test(test_value_equal),
        cmocka_unit_test(test_value_text),
        cmocka_unit_test(test_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
