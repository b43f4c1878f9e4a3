/* Numbers as text are printf's, digit by digit, over doubles of many kinds; the shortest text is the one that
 * strtod finds exact. */
#include "support/problem.h"

#include "base/decimal.h"

enum { ROUNDS = 100000, KINDS = 10 };

static double from_bits(uint64_t bits) {
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static double near_power_of_ten(uint64_t *seed) {
    double v = pow(10, (double)(test_random(seed) % 40) - 20);
    for (int step = (int)(test_random(seed) % 7) - 3; step != 0; step += step < 0 ? 1 : -1)
        v = nextafter(v, step < 0 ? 0 : HUGE_VAL);
    return v;
}

static double decimal(uint64_t *seed, int digits) {
    return (double)(test_random(seed) % (uint64_t)pow(10, digits)) /
           pow(10, (double)(test_random(seed) % 22));
}

static double draw(uint64_t *seed, int kind) {
    const int power = (int)(test_random(seed) % 110) - 55;
    const double any[KINDS] = {
        from_bits(test_random(seed)), /* also infinite, or no number */
        decimal(seed, 7),
        decimal(seed, 15), /* at the edge of 15 digits */
        near_power_of_ten(seed),
        (double)(int64_t)(test_random(seed) >> (test_random(seed) % 63)) / 2, /* integers and halves */
        ldexp((double)(test_random(seed) % 1024), power), /* few bits: ties, powers of two */
        nextafter(ldexp(1, power), test_random(seed) % 2 ? 0 : HUGE_VAL),
        from_bits(test_random(seed) >> (12 + test_random(seed) % 52)), /* subnormal, and zeros */
        test_uniform(seed),
        exp(-36 * test_uniform(seed))};
    return test_random(seed) % 4 ? any[kind] : -any[kind];
}

static void check(const char *expected, const char *text, int length, double v) {
    if (strcmp(expected, text) != 0 || (size_t)length != strlen(text))
        fail_msg("%a: %s instead of %s (%d)", v, text, expected, length);
}

static void test_shortest(double v, bool single) {
    char expected[64], text[SVI_DECIMAL_MAX];
    snprintf(expected, sizeof expected, "%.*g", single ? 7 : 15, v);
    if (single ? strtof(expected, NULL) != (float)v : strtod(expected, NULL) != v)
        snprintf(expected, sizeof expected, "%.*g", single ? 9 : 17, v);
    check(expected, text, svi_decimal_shortest(text, v, single), v);
}

static void test_as_printf(void **state) {
    uint64_t seed = 1;
    char expected[64], text[SVI_DECIMAL_MAX];
    (void)state;
    for (int i = 0; i < KINDS * ROUNDS; i++) {
        const double v = draw(&seed, i % KINDS);
        const int digits = 1 + (int)(test_random(&seed) % 17);
        snprintf(expected, sizeof expected, "%.*g", digits, v);
        check(expected, text, svi_decimal_text(text, v, digits), v);
        test_shortest(v, false);
        if (isfinite(v) && fabs(v) < 1e38)
            test_shortest((double)(float)v, true);
    }
}

/* Each power of two in the fast range with its neighbours: doubles below one are twice as dense. */
static void test_powers_of_two(void **state) {
    (void)state;
    for (int e = -60; e < 70; e++) {
        const double v = ldexp(1, e);
        const float f = (float)v;
        test_shortest(v, false);
        test_shortest(nextafter(v, 0), false);
        test_shortest(nextafter(v, HUGE_VAL), false);
        test_shortest((double)f, true);
        test_shortest((double)nextafterf(f, 0), true);
        test_shortest((double)nextafterf(f, HUGE_VALF), true);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_as_printf),
                                       cmocka_unit_test(test_powers_of_two)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
