/* Times as logs write them: against the C library's calendar, and what is no time. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/time_text.h"

static double time_of(const char *text) {
    double t = NAN;
    const size_t length = strlen(text);
    char *exact = malloc(length + 1); /* a read beyond it shows under a sanitizer */
    memcpy(exact, text, length);
    svi_time_of_text(exact, length, 0, &t);
    free(exact);
    return t;
}

static void every_day_is_that_of_the_calendar(void **state) {
    (void)state;
    struct tm day = {.tm_year = 1 - 1900, .tm_mday = 1};
    const int64_t first = timegm(&day);
    for (int64_t k = 0; k < 3652059; k += k % 97 == 0 ? 1 : 7) { /* to the end of 9999 */
        const time_t at = (time_t)(first + k * 86400 + k % 86400);
        struct tm parts;
        char text[64];
        gmtime_r(&at, &parts);
        snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02dZ", parts.tm_year + 1900, parts.tm_mon + 1,
                 parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
        if (time_of(text) != (double)at)
            fail_msg("%s is %.17g instead of %lld", text, time_of(text), (long long)at);
    }
}

static void each_form_is_understood(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double t;
    } forms[] = {
        {"1970-01-01", 0},
        {"2026-11-22", 1795305600},
        {"2026-11-22 10:05", 1795341900},
        {"2026-11-22T10:05:30", 1795341930},
        {"2026-11-22t10:05:30z", 1795341930},
        {"2026-11-22T10:05:30Z", 1795341930},
        {"2026-11-22T10:05Z", 1795341900},
        {"2026-11-22 10:05:30.25", 1795341930.25},
        {"2026-11-22 10:05:30,250 Z", 1795341930.25},
        {"2026-11-22T10:05:30.123456789", 1795341930.123456789},
        {"2026-11-22T10:05:30.1234567894999", 1795341930.123456789},
        {"2026-11-22T10:05:30+01:00", 1795341930 - 3600},
        {"2026-11-22T10:05:30-0330", 1795341930 + 12600},
        {"2026-11-22 10:05:30 +05", 1795341930 - 18000},
        {"2024-02-29", 1709164800},
        {"2000-02-29T00:00:00.5", 951782400.5},
        {"1969-12-31T23:59:59.75Z", -0.25},
        {"2016-12-31T23:59:60Z", 1483228800},
        {"2016-12-31T23:59:60.9Z", 1483228800},
        {"0001-01-01", -62135596800},
        {"9999-12-31T23:59:59Z", 253402300799},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (time_of(forms[i].text) != forms[i].t)
            fail_msg("%s is %.17g instead of %.17g", forms[i].text, time_of(forms[i].text), forms[i].t);
}

static void a_zone_is_for_texts_without_one(void **state) {
    (void)state;
    double t;
    assert_true(svi_time_of_text("2026-11-22T10:05", 16, 3600, &t) && t == 1795341900 - 3600);
    assert_true(svi_time_of_text("2026-11-22T10:05Z", 17, 3600, &t) && t == 1795341900);
    assert_true(svi_time_of_text("2026-11-22", 10, -3600, &t) && t == 1795305600 + 3600);
}

static void what_is_no_time_is_refused(void **state) {
    (void)state;
    static const char *const others[] = {
        "",
        "2026",
        "2026-11",
        "2026-11-2",
        "2026-11-22T",
        "2026-11-22 ",
        "2026-11-22T1",
        "2026-11-22T10",
        "2026-11-22T10:5",
        "2026-11-22T10:05:",
        "2026-11-22T10:05:3",
        "2026-11-22T10:05:30.",
        "2026-11-22T10:05:30.Z",
        "2026-11-22T10:05:30+",
        "2026-11-22T10:05:30+1",
        "2026-11-22T10:05:30+01:",
        "2026-11-22T10:05:30+01:0",
        "2026-11-22T10:05:30+24",
        "2026-11-22T10:05:30 ",
        "2026-11-22T10:05:30ZZ",
        "2026-11-22T10:05:30 CET",
        "2026-11-22Z",
        "2026-11-22T24:00",
        "2026-11-22T23:60",
        "2026-11-22T23:59:61",
        "2026-00-10",
        "2026-13-10",
        "2026-01-00",
        "2026-01-32",
        "2026-02-29",
        "1900-02-29",
        "2026-04-31",
        "0000-01-01",
        "22/11/2026",
        "20261122",
        "-2026-11-22",
        "2026-11-22x",
        "12:30:00",
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!isnan(time_of(others[i])))
            fail_msg("\"%s\" is %.17g", others[i], time_of(others[i]));
}

static void numbers_are_told_apart_by_their_size(void **state) {
    (void)state;
    static const struct {
        double v, t;
        const char *name;
    } numbers[] = {{0, 0, "seconds"},
                   {-5.5, -5.5, "seconds"},
                   {1795341930.25, 1795341930.25, "seconds"},
                   {99999999999, 99999999999, "seconds"},
                   {1795341930250, 1795341930.25, "milliseconds"},
                   {1795341930250000, 1795341930.25, "microseconds"},
                   {1.79534193025e18, 1795341930.25, "nanoseconds"}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        enum svi_time_unit unit = SVI_TIME_UNKNOWN;
        const double off = svi_time_of_number(numbers[i].v, &unit) - numbers[i].t;
        assert_true(off == 0 || (unit == SVI_TIME_NANOSECONDS && fabs(off) < 3e-7)); /* a double of 2^61 */
        assert_string_equal(svi_time_unit_name(unit), numbers[i].name);
    }
    enum svi_time_unit unit = SVI_TIME_UNKNOWN; /* the first value decides for all */
    svi_time_of_number(1795341930250, &unit);
    assert_true(svi_time_of_number(1000, &unit) == 1);
}

static double date_of(const char *text, enum svi_time_order order) {
    double t = NAN;
    const size_t length = strlen(text);
    char *exact = malloc(length + 1);
    memcpy(exact, text, length);
    svi_time_of_date(exact, length, 0, order, &t, NULL);
    free(exact);
    return t;
}

static void dates_of_people_are_understood(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double day, month; /* NAN: no such date in that order */
    } dates[] = {
        {"22.11.2026 10:05", 1795341900, NAN},
        {"11/22/2026 10:04 PM", NAN, 1795341900 + 43140},
        {"11/22/2026 12:05 AM", NAN, 1795305900},
        {"22/Nov/2026:10:05:00 +0000", 1795341900, 1795341900},
        {"[22/Nov/2026:10:05:00 +0100]", 1795338300, 1795338300},
        {"Sun, 22 Nov 2026 10:05:30 GMT", 1795341930, 1795341930},
        {"November 22, 2026", 1795305600, 1795305600},
        {"22-Nov-26 10:05", 1795341900, 1795341900},
        {"2026/11/22 10:05:30.25", 1795341930.25, 1795341930.25},
        {"2026-11-22 10:05:30 UTC", 1795341930, 1795341930},
        {"22.11.26", 1795305600, NAN},
        {"10.11.2026 18.00.00", 1794268800 + 18 * 3600, 1791676800 + 18 * 3600},
        {"5/6/99", 928540800, 925948800},
        {"29.2.2026", NAN, NAN},
        {"1.2.10", NAN, NAN},
        {"10.0.0.1", NAN, NAN},
        {"22.11-2026", NAN, NAN},
        {"22.11.2026 25:00", NAN, NAN},
        {"22.11.2026 13:00 PM", NAN, NAN},
        {"22 Novem", NAN, NAN},
        {"22.11.2026x", NAN, NAN},
        {"1234567890", NAN, NAN},
        {"", NAN, NAN},
    };
    for (size_t i = 0; i < sizeof dates / sizeof *dates; i++) {
        const double day = date_of(dates[i].text, SVI_TIME_DAY_FIRST),
                     month = date_of(dates[i].text, SVI_TIME_MONTH_FIRST);
        if (isnan(day) != isnan(dates[i].day) || isnan(month) != isnan(dates[i].month) ||
            (!isnan(day) && day != dates[i].day) || (!isnan(month) && month != dates[i].month))
            fail_msg("%s is %.17g and %.17g", dates[i].text, day, month);
        assert_true(isnan(date_of(dates[i].text, SVI_TIME_ISO)));
    }
}

static void times_of_day_are_understood(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double t;
    } clocks[] = {{"10:05", 36300},    {"9:05 PM", 75900}, {"10:05:30.5", 36330.5},
                  {"18.00.00", 64800}, {"12:00am", 0},     {"18.00", NAN},
                  {"24:00", NAN},      {"10:5", NAN},      {"10:05 x", NAN},
                  {"2026-11-22", NAN}, {"10", NAN},        {"", NAN}};
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        double t = NAN;
        const bool read = svi_time_of_clock(clocks[i].text, strlen(clocks[i].text), &t);
        if (read == isnan(clocks[i].t) || (read && t != clocks[i].t))
            fail_msg("%s is %.17g", clocks[i].text, t);
    }
}

static void a_format_of_its_own(void **state) {
    (void)state;
    static const struct {
        const char *text, *format;
        double t;
    } texts[] = {{"20261122100530", "%Y%m%d%H%M%S", 1795341930},
                 {"22.11.2026 10:05:30,250", "%d.%m.%Y %H:%M:%S,%f", 1795341930.25},
                 {"10:05:30.5 AM 22 Nov 26", "%I:%M:%S.%f %p %d %b %y", 1795341930.5},
                 {"2026-11-22 10:05:30 +0100", "%Y-%m-%d %H:%M:%S %z", 1795338330},
                 {"2026-11-22", "%d.%m.%Y", NAN},
                 {"22.11.2026x", "%d.%m.%Y", NAN},
                 {"31.02.2026", "%d.%m.%Y", NAN},
                 {"22.11.2026 ", "%d.%m.%Y %f", NAN}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        double t = NAN;
        const bool read = svi_time_of_format(texts[i].text, strlen(texts[i].text), texts[i].format, 0, &t);
        if (read == isnan(texts[i].t) || (read && t != texts[i].t))
            fail_msg("%s is %.17g", texts[i].text, t);
    }
    double t;
    assert_true(svi_time_of_format("22.11.2026", 10, "%d.%m.%Y", 3600, &t) && t == 1795305600 - 3600);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_day_is_that_of_the_calendar),
        cmocka_unit_test(each_form_is_understood),
        cmocka_unit_test(a_zone_is_for_texts_without_one),
        cmocka_unit_test(what_is_no_time_is_refused),
        cmocka_unit_test(numbers_are_told_apart_by_their_size),
        cmocka_unit_test(dates_of_people_are_understood),
        cmocka_unit_test(times_of_day_are_understood),
        cmocka_unit_test(a_format_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
