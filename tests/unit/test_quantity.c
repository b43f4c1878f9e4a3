/* Numbers as people write them: what is one, what it is worth, and its unit. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "data/cell.h"
#include "data/quantity.h"

static const struct quantity_case {
    const char *text;
    double point, comma; /* NAN: it is none with that decimal mark */
    const char *unit;
} cases[] = {
    {"1,234.50", 1234.5, NAN, ""},
    {"$1,234.50", 1234.5, NAN, "$"},
    {"-$5", -5, -5, "$"},
    {"$-5", -5, -5, "$"},
    {"4.604,35 \xe2\x82\xac", NAN, 4604.35, "\xe2\x82\xac"},
    {"\xe2\x82\xac 4.604,35", NAN, 4604.35, "\xe2\x82\xac"},
    {"33,4 %", NAN, 33.4, "%"},
    {"33.4%", 33.4, NAN, "%"},
    {"23.5 \xc2\xb0"
     "C",
     23.5, NAN,
     "\xc2\xb0"
     "C"},
    {"23,5\xc2\xa0\xc2\xb0"
     "C",
     NAN, 23.5,
     "\xc2\xb0"
     "C"},
    {"73.1MB", 73.1, NAN, "MB"},
    {"-60 km/h", -60, -60, "km/h"},
    {"9.81 m/s2", 9.81, NAN, "m/s2"},
    {"\xc2\xa3 7", 7, 7, "\xc2\xa3"},
    {"1,234,567 \xe2\x82\xac", 1234567, NAN, "\xe2\x82\xac"},
    {"1.5,000", NAN, NAN, ""},
    {",100", NAN, NAN, ""},
    {"5$5", NAN, NAN, ""},
    {"$%", NAN, NAN, ""},
    {"1.499", 1.499, 1499, ""},
    {"1,499", 1499, 1.499, ""},
    {"1.234.567", NAN, 1234567, ""},
    {"1,234,567", 1234567, NAN, ""},
    {"0.499", .499, NAN, ""},
    {"0,499", NAN, .499, ""},
    {"1.5e3 Hz", 1500, NAN, "Hz"},
    {"5e", 5, 5, "e"},
    {"+7", 7, 7, ""},
    {"12,34,567", NAN, NAN, ""},
    {"1,2345.6", NAN, NAN, ""},
    {"22.11.2026", NAN, NAN, ""},
    {"10.0.0.1", NAN, NAN, ""},
    {"10:05", NAN, NAN, ""},
    {"2026-11-22", NAN, NAN, ""},
    {"0x10", NAN, NAN, ""},
    {"5 m m", NAN, NAN, ""},
    {"$5 km", NAN, NAN, ""},
    {"1 2", NAN, NAN, ""},
    {"$", NAN, NAN, ""},
    {"m5", NAN, NAN, ""},
    {"5 /m", NAN, NAN, ""},
    {"5 kilometers-long", NAN, NAN, ""},
    {"5 kilometersperhour", NAN, NAN, ""},
    {"123456789012345678901234567890123456789012345678901", NAN, NAN, ""},
    {"", NAN, NAN, ""},
};

static void expect_quantity(const struct quantity_case *c, bool comma) {
    char text[128] = ""; /* what follows the text can be read: number.h */
    struct svi_quantity q;
    const double expected = comma ? c->comma : c->point;
    snprintf(text, sizeof text, "%s", c->text);
    const bool read = svi_quantity_read((struct svi_span){text, text + strlen(text)}, comma, &q);
    if (read == isnan(expected) || (read && (q.value != expected || !svi_span_is(q.unit, c->unit))))
        fail_msg("'%s', decimal %s: %d, %g instead of %g, unit '%.*s'", c->text, comma ? "comma" : "point",
                 read, q.value, expected, read ? (int)(q.unit.end - q.unit.at) : 0, q.unit.at);
}

static void texts_are_quantities(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect_quantity(&cases[i], false);
        expect_quantity(&cases[i], true);
    }
}

static bool has_unit(const char *text, const char *unit) {
    char capacity[128] = "";
    struct svi_quantity q;
    snprintf(capacity, sizeof capacity, "%s", text);
    assert_true(svi_quantity_read((struct svi_span){capacity, capacity + strlen(capacity)}, false, &q));
    return svi_quantity_has_unit(&q, unit);
}

static void units_are_those_of_the_column(void **state) {
    (void)state;
    assert_true(has_unit("5 MB", "MB"));
    assert_true(has_unit("5", ""));
    assert_true(has_unit("5", "$"));
    assert_true(has_unit("0", "MB"));
    assert_false(has_unit("5", "%"));
    assert_false(has_unit("5 GB", "MB"));
    assert_false(has_unit("5 GB", ""));
    assert_false(has_unit("$5", "\xe2\x82\xac"));
}

/* Units are printed. */
static void units_are_text(void **state) {
    static const char *const all[] = {"5\xf5null", "5 \xc3", "5 \xc2\x85", "5 a\xe2\x80\xae", "5 \xe2\x80"};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char capacity[128] = "";
        struct svi_quantity q;
        snprintf(capacity, sizeof capacity, "%s", all[i]);
        assert_false(svi_quantity_read((struct svi_span){capacity, capacity + strlen(capacity)}, false, &q));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_quantities),
        cmocka_unit_test(units_are_those_of_the_column),
        cmocka_unit_test(units_are_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
