/* Decimal text -> double: bit for bit what strtod gives, and the same end. */
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "data/number.h"
#include "support/quick.h"

#define RANDOM_TEXTS often(2000000, 200000)

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static int below(uint64_t *state, int n) {
    return (int)((next_random(state) >> 16) % (uint64_t)n);
}

/* The text stands in a buffer of other digits, so that reading too far shows. */
static void expect_like_strtod(const char *text) {
    char padded[4096];
    memset(padded, '7', sizeof padded);
    size_t length = strlen(text);
    assert_true(length + 1 + SVI_NUMBER_PAD < sizeof padded);
    memcpy(padded, text, length + 1);
    char *end;
    double expected = strtod(padded, &end), value = -1;
    const char *stop = svi_number(padded, &value);
    if (stop == padded)
        fail_msg("'%s' was not read", text);
    if (stop != end)
        fail_msg("'%s' read up to %td instead of %td", text, stop - padded, end - padded);
    if (memcmp(&value, &expected, sizeof value) != 0)
        fail_msg("'%s' is %a instead of %a", text, value, expected);
}

static void known_texts_are_exact(void **state) {
    (void)state;
    static const char *const texts[] = {"0",
                                        "-0",
                                        "+0",
                                        "0.0",
                                        "-0.000",
                                        "0e5",
                                        "0e-999999999999",
                                        "0e999999999999",
                                        "1",
                                        "-1",
                                        "+1",
                                        "12345678",
                                        "123456789",
                                        "0.00038541",
                                        "1.8353e-05",
                                        "0.00000001",
                                        "9.12345678",
                                        "9.123456789",
                                        "-0.0",
                                        "-7.5e3",
                                        "12.5e-3",
                                        "123456.7",
                                        "1234.567",
                                        "12.345678",
                                        "5.e-2",
                                        "6e2",
                                        ".5",
                                        "5.",
                                        "-.5e1",
                                        "1e",
                                        "1e+",
                                        "1e-",
                                        "1ex",
                                        "1.e5",
                                        "1.5E+3",
                                        "9007199254740992",
                                        "9007199254740993",
                                        "9007199254740993.0",
                                        "9007199254740992e22",
                                        "1e22",
                                        "1e23",
                                        "1e-22",
                                        "1e-23",
                                        "171.68900000000005",
                                        "9999999999999999999",
                                        "18446744073709551615",
                                        "18446744073709551616",
                                        "1e27",
                                        "9999999999999999999e27",
                                        "9999999999999999999e-27",
                                        "1e28",
                                        "1e308",
                                        "1.7976931348623157e308",
                                        "1.7976931348623159e308",
                                        "1e309",
                                        "-1e999",
                                        "1e99999999999999999999",
                                        "2.2250738585072011e-308",
                                        "4.9406564584124654e-324",
                                        "2.4703282292062327e-324",
                                        "2.4703282292062328e-324",
                                        "1e-400",
                                        "0.1000000000000000055511151231257827021181583404541015625",
                                        "8.5e-1,3",
                                        "12 13",
                                        "12;",
                                        "3\t4",
                                        "1.2.3",
                                        "00000000000000000000000000000000012",
                                        "0.0000000000000000000000000000000000012345",
                                        "1-2",
                                        "100000000000000000000000000000000000000000000000e-40",
                                        "9223372036854775807",
                                        "9223372036854775808"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)

        expect_like_strtod(texts[i]);
}

static char *random_digits(uint64_t *state, char *at, int most) {
    int count = below(state, most + 1);
    for (int i = 0; i < count; i++)
        *at++ = (char)('0' + below(state, 10));
    return at;
}

/* Sign, leading zeros, digits, point, exponent: each there or not. At least one digit. */
static void random_text(uint64_t *state, char *at, int most) {
    if (below(state, 3) == 0)
        *at++ = "+-"[below(state, 2)];
    char *start = at;
    for (int zeros = below(state, 4) == 0 ? below(state, 12) : 0; zeros > 0; zeros--)
        *at++ = '0';
    at = random_digits(state, at, most);
    if (at == start)
        *at++ = (char)('0' + below(state, 10));
    if (below(state, 4)) {
        *at++ = '.';
        for (int zeros = below(state, 4) == 0 ? below(state, 12) : 0; zeros > 0; zeros--)
            *at++ = '0';
        at = random_digits(state, at, most);
    }
    static const int reach[] = {10, 30, 60, 350};
    if (below(state, 2)) {
        int r = reach[below(state, 4)];
        at += sprintf(at, "%c%d", "eE"[below(state, 2)], below(state, 2 * r + 1) - r);
    }
    *at++ = ",;\t\n x"[below(state, 6)];
    *at = '\0';
}

static void random_texts_are_exact(void **state) {
    (void)state;
    uint64_t random = 0x9e3779b97f4a7c15U;
    char text[256];
    for (int i = 0; i < RANDOM_TEXTS; i++) {
        random_text(&random, text, i % 3 == 0 ? 4 : i % 3 == 1 ? 10 : 24);
        expect_like_strtod(text);
    }
}

/* Texts of doubles, and of the middles between two of them, where rounding is hardest. */
static void printed_doubles_come_back(void **state) {
    (void)state;
    uint64_t random = 88172645463325252U;
    char text[64];
    for (int i = 0; i < RANDOM_TEXTS / 4; i++) {
        double v = ldexp((double)(next_random(&random) >> 11), below(&random, 180) - 140);
        snprintf(text, sizeof text, "%.17g", v);
        expect_like_strtod(text);
        double back = 0;
        char padded[64 + SVI_NUMBER_PAD] = {0};
        memcpy(padded, text, strlen(text));
        svi_number(padded, &back);
        assert_memory_equal(&back, &v, sizeof v);
    }
}

static void middles_round_to_even(void **state) {
    (void)state;
    uint64_t random = 4101842887655102017U;
    char text[64];
    for (int i = 0; i < RANDOM_TEXTS / 8; i++) {
        /* 53 bits and a half: at most 2^62, so 19 digits; or a quarter's digits behind the point. */
        uint64_t bits = (next_random(&random) >> 11) | ((uint64_t)1 << 52);
        uint64_t middle = 2 * bits + 1;
        int shift = below(&random, 9);
        snprintf(text, sizeof text, "%llu",
                 (unsigned long long)((middle << shift) + (uint64_t)(below(&random, 3) - 1)));
        expect_like_strtod(text);
        snprintf(text, sizeof text, "%llue%d", (unsigned long long)(middle << shift),
                 below(&random, 55) - 27);
        expect_like_strtod(text);
    }
}

static void very_long_texts_are_exact(void **state) {
    (void)state;
    uint64_t random = 77777777;
    char text[3000];
    for (int i = 0; i < often(2000, 500); i++) {
        random_text(&random, text, 1200);
        expect_like_strtod(text);
    }
}

static void no_number_leaves_everything(void **state) {
    (void)state;
    static const char *const texts[] = {"",    "-",   "+",    ".",  "-.", "e5",  ".e5", "x",
                                        "nan", "inf", "-inf", " 1", ",",  "--1", "+-1"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char padded[64] = {0};
        memcpy(padded, texts[i], strlen(texts[i]));
        double value = 42;
        assert_ptr_equal(svi_number(padded, &value), padded);
        assert_true(value == 42);
    }
}

static void hexadecimal_stops_at_x(void **state) {
    (void)state;
    char padded[64] = "0x10";
    double value = 42;
    assert_ptr_equal(svi_number(padded, &value), padded + 1);
    assert_true(value == 0);
}

static void another_locale_changes_nothing(void **state) {
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"};
    for (size_t i = 0; i < 3; i++)
        if (setlocale(LC_ALL, names[i]))
            break;
    char padded[64] = "1.00000000000000000000000000005e-200,";
    double value = 0;
    assert_ptr_equal(svi_number(padded, &value), strchr(padded, ','));
    setlocale(LC_ALL, "C");
    assert_true(value == 1.00000000000000000000000000005e-200);
}

struct integer_case {
    const char *text;
    int length; /* read; 0 = refused */
    int64_t value;
};

static void integers_have_bounds(void **state) {
    (void)state;
    static const struct integer_case cases[] = {{"0", 1, 0},
                                                {"-0", 2, 0},
                                                {"+1", 2, 1},
                                                {"17,", 2, 17},
                                                {"1.5", 1, 1},
                                                {"007", 3, 7},
                                                {"12345678", 8, 12345678},
                                                {"-1234567890123", 14, -1234567890123},
                                                {"9223372036854775807", 19, INT64_MAX},
                                                {"-9223372036854775808", 20, INT64_MIN},
                                                {"0000000000000000000000005", 25, 5},
                                                {"9223372036854775808", 0, 0},
                                                {"-9223372036854775809", 0, 0},
                                                {"99999999999999999999", 0, 0},
                                                {"100000000000000000000000000000000", 0, 0},
                                                {"", 0, 0},
                                                {"-", 0, 0},
                                                {"x", 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char padded[64] = {0};
        memcpy(padded, cases[i].text, strlen(cases[i].text));
        int64_t value = 0;
        assert_int_equal(svi_integer(padded, &value) - padded, cases[i].length);
        assert_true(value == cases[i].value);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_texts_are_exact),     cmocka_unit_test(random_texts_are_exact),
        cmocka_unit_test(printed_doubles_come_back), cmocka_unit_test(middles_round_to_even),
        cmocka_unit_test(very_long_texts_are_exact), cmocka_unit_test(no_number_leaves_everything),
        cmocka_unit_test(hexadecimal_stops_at_x),    cmocka_unit_test(another_locale_changes_nothing),
        cmocka_unit_test(integers_have_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
