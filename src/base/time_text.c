/* Three ways to read a time from text, built on one set of scanners, which consume what they recognise and
 * leave the position at the rest.
 *
 * ISO 8601 is strict: programs write it, and most rows have it. A date as people write it may have its parts
 * in either order, with names of months, years of two digits, AM and PM; the caller states whether day or
 * month comes first, because one text alone is ambiguous. A format from the settings goes to strptime, except
 * %f, which the C library does not know and which is removed first.
 *
 * In order of reading: ISO 8601, dates as people write them, a given format, numbers. A failing scanner may
 * have consumed part of the text, so callers give up or restart from a copy. */
#include "base/time_text.h"

#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define FRACTION_DIGITS 9
#define FORMATTED_TEXT  128 /* bytes of a text in a format, and of the format */

/* The unread rest of the text. */
struct scan {
    const char *at, *end;
};

static bool scan_digit(const struct scan *s) {
    return s->at < s->end && *s->at >= '0' && *s->at <= '9';
}

/* Consumes exactly `count` digits of a number from `low` to `high`. */
static bool scan_number(struct scan *s, int count, int low, int high, int *value) {
    *value = 0;
    for (; count > 0 && scan_digit(s); count--)
        *value = *value * 10 + (*s->at++ - '0');
    return count == 0 && *value >= low && *value <= high;
}

static bool scan_char(struct scan *s, char a, char b) {
    if (s->at == s->end || (*s->at != a && *s->at != b))
        return false;
    s->at++;
    return true;
}

static bool is_leap_year(int y) {
    return y % 4 == 0 && (y % 100 != 0 || y % 400 == 0);
}

static int days_of_month(int y, int m) {
    static const char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[m - 1] + (m == 2 && is_leap_year(y));
}

/* Days since 1970-01-01 in the Gregorian calendar, also for dates before it. */
static int64_t days_of_date(int y, int m, int day) {
    const int before = y - 1;
    int64_t days = (int64_t)before * 365 + before / 4 - before / 100 + before / 400;
    for (int k = 1; k < m; k++)
        days += days_of_month(y, k);
    return days + day - 1 - 719162; /* days from 0001-01-01 to 1970-01-01 */
}

/* The digits after the seconds' point. The sum of whole seconds and a fraction of nine digits rounds as the
 * exact sum would: the error of the fraction is smaller than its distance from any midpoint of two doubles.
 */
static bool scan_fraction(struct scan *s, double *fraction) {
    double unit = 1, sum = 0;
    if (!scan_digit(s))
        return false;
    for (int k = 0; scan_digit(s); k++, s->at++)
        if (k < FRACTION_DIGITS) {
            sum = sum * 10 + (*s->at - '0');
            unit *= 10;
        }
    *fraction = sum / unit;
    return true;
}

/* Time of day, in whole seconds and a fraction of one. */
static bool scan_clock(struct scan *s, int *whole, double *fraction) {
    int hour, minute, second = 0;
    if (!scan_number(s, 2, 0, 23, &hour) || !scan_char(s, ':', ':') || !scan_number(s, 2, 0, 59, &minute))
        return false;
    if (scan_char(s, ':', ':')) {
        if (!scan_number(s, 2, 0, 60, &second))
            return false;
        if (scan_char(s, '.', ',') && !scan_fraction(s, fraction))
            return false;
    }
    if (second == 60) /* a leap second: times must not go back when the next second begins */
        *fraction = 0;
    *whole = (hour * 60 + minute) * 60 + second;
    return true;
}

/* The rest after the time of day: nothing, or a zone, which replaces *zone (seconds east of UTC). */
static bool scan_zone(struct scan *s, int *zone) {
    int hours, minutes = 0;
    if (s->at == s->end)
        return true;
    scan_char(s, ' ', ' ');
    if (scan_char(s, 'Z', 'z')) {
        *zone = 0;
        return true;
    }
    const bool west = s->at < s->end && *s->at == '-';
    if (!scan_char(s, '+', '-') || !scan_number(s, 2, 0, 23, &hours))
        return false;
    if (scan_char(s, ':', ':') || scan_digit(s))
        if (!scan_number(s, 2, 0, 59, &minutes))
            return false;
    *zone = (hours * 60 + minutes) * (west ? -60 : 60);
    return true;
}

bool svi_time_of_text(const char *text, size_t length, int zone, double *seconds) {
    struct scan s = {text, text + length};
    int year, month, day, whole = 0;
    double fraction = 0;
    if (!scan_number(&s, 4, 1, 9999, &year) || !scan_char(&s, '-', '-') ||
        !scan_number(&s, 2, 1, 12, &month) || !scan_char(&s, '-', '-') ||
        !scan_number(&s, 2, 1, days_of_month(year, month), &day))
        return false;
    if (s.at < s.end && ((!scan_char(&s, 'T', 't') && !scan_char(&s, ' ', ' ')) ||
                         !scan_clock(&s, &whole, &fraction) || !scan_zone(&s, &zone)))
        return false;
    if (s.at < s.end)
        return false;
    *seconds = (double)(days_of_date(year, month, day) * 86400 + whole - zone) + fraction;
    return true;
}

/* ---- dates as people write them */

/* Consumes 1 to `limit` digits. Returns their count; 0: no digit, or more. */
static int scan_digits(struct scan *s, int limit, int *value) {
    int count = 0;
    for (*value = 0; count < limit && scan_digit(s); count++)
        *value = *value * 10 + (*s->at++ - '0');
    return scan_digit(s) ? 0 : count;
}

static void scan_blanks(struct scan *s) {
    while (scan_char(s, ' ', '\t'))
        ;
}

static bool scan_word(struct scan *s, const char *word) {
    const size_t length = strlen(word);
    if ((size_t)(s->end - s->at) < length || strncasecmp(s->at, word, length) != 0)
        return false;
    s->at += length;
    return true;
}

/* Recognises one of `count` names by its first three letters and consumes the whole word. Returns its number
 * from 1, or 0. */
static int scan_name(struct scan *s, const char *const *names, int count) {
    for (int k = 0; k < count; k++) {
        if (!scan_word(s, names[k]))
            continue;
        while (s->at < s->end && isalpha((unsigned char)*s->at))
            s->at++;
        return k + 1;
    }
    return 0;
}

static int scan_month(struct scan *s) {
    static const char *const names[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                        "jul", "aug", "sep", "oct", "nov", "dec"};
    return scan_name(s, names, 12);
}

static void scan_weekday(struct scan *s) {
    static const char *const names[] = {"mon", "tue", "wed", "thu", "fri", "sat", "sun"};
    if (scan_name(s, names, 7) > 0) {
        scan_char(s, ',', ',');
        scan_blanks(s);
    }
}

/* The separator between the parts of a date. It must be the same twice, except for a comma after a day. */
static bool scan_parting(struct scan *s, char *parting) {
    if (s->at == s->end || !memchr("./- ,", *s->at, 5) || (*parting && *parting != *s->at && *s->at != ','))
        return false;
    *parting = *s->at++;
    scan_blanks(s);
    return true;
}

static bool scan_year(struct scan *s, int *year) {
    const int digits = scan_digits(s, 4, year);
    if (digits == 2)
        *year += *year < 69 ? 2000 : 1900;
    return digits == 4 || digits == 2;
}

/* Day, month and year, in any of the forms of the header. A year of four digits in front fixes the order;
 * otherwise `order` decides, unless the month is a name. Ranges are the caller's to check. */
static bool scan_date(struct scan *s, enum svi_time_order order, int *year, int *month, int *day) {
    char parting = 0;
    int first, digits;
    scan_weekday(s);
    const char *from = s->at;
    *month = scan_month(s);
    if (*month > 0) /* Nov 22, 2026 */
        return scan_parting(s, &parting) && scan_digits(s, 2, day) > 0 && scan_parting(s, &parting) &&
               scan_year(s, year);
    digits = scan_digits(s, 4, &first);
    if ((digits != 1 && digits != 2 && digits != 4) || !scan_parting(s, &parting))
        return false;
    if (digits == 4) {
        *year = first;
        return scan_digits(s, 2, month) > 0 && scan_parting(s, &parting) && scan_digits(s, 2, day) > 0;
    }
    /* With SVI_TIME_MONTH_FIRST the number just read is the month, and the second one is the day. */
    *day = first;
    *month = scan_month(s);
    if (*month == 0 && scan_digits(s, 2, order == SVI_TIME_MONTH_FIRST ? day : month) == 0)
        return false;
    if (*month == 0)
        *month = first;
    if (!scan_parting(s, &parting) || !scan_year(s, year))
        return false;
    return parting != '.' || s->at - from >= 8; /* 1.2.10 is a version */
}

/* 9:05, 10:05:30.25, 10:04 PM, 18.00.00. */
static bool scan_day_time(struct scan *s, double *seconds) {
    int hour, minute, second = 0;
    double fraction = 0;
    if (scan_digits(s, 2, &hour) == 0 || hour > 23 || s->at == s->end)
        return false;
    const char mark = *s->at;
    if (!scan_char(s, ':', '.') || !scan_number(s, 2, 0, 59, &minute))
        return false;
    if (scan_char(s, mark, mark)) {
        if (!scan_number(s, 2, 0, 59, &second) ||
            (mark == ':' && scan_char(s, '.', ',') && !scan_fraction(s, &fraction)))
            return false;
    } else if (mark == '.') {
        return false; /* 18.00 is a number, not a time */
    }
    struct scan half = *s; /* a copy: a word that is neither AM nor PM stays unread, for the zone */
    scan_blanks(&half);
    const bool am = scan_word(&half, "am"), pm = !am && scan_word(&half, "pm");
    if (am || pm) {
        if (hour < 1 || hour > 12)
            return false;
        hour = hour % 12 + (pm ? 12 : 0);
        *s = half;
    }
    *seconds = (hour * 60 + minute) * 60 + second + fraction;
    return true;
}

bool svi_time_of_clock(const char *text, size_t length, double *seconds) {
    struct scan s = {text, text + length};
    double v;
    if (!scan_day_time(&s, &v) || s.at < s.end)
        return false;
    *seconds = v;
    return true;
}

bool svi_time_of_date(const char *text, size_t length, int zone, enum svi_time_order order, double *seconds,
                      bool *clock) {
    struct scan s = {text, text + length};
    int year, month, day;
    double of_day = 0;
    if (length > 1 && *text == '[' && s.end[-1] == ']') { /* the brackets of a web server's log */
        s.at++;
        s.end--;
    }
    if (order == SVI_TIME_ISO || !scan_date(&s, order, &year, &month, &day) || year < 1 || month < 1 ||
        month > 12 || day < 1 || day > days_of_month(year, month))
        return false;
    const bool more = s.at < s.end;
    if (more) {
        if (!scan_char(&s, 'T', ':'))
            scan_char(&s, ',', ',');
        scan_blanks(&s);
        if (!scan_day_time(&s, &of_day))
            return false;
        scan_blanks(&s);
        if (scan_word(&s, "utc") || scan_word(&s, "gmt"))
            zone = 0;
        else if (s.at < s.end && !scan_zone(&s, &zone))
            return false;
        if (s.at < s.end)
            return false;
    }
    if (clock)
        *clock = more;
    *seconds = (double)(days_of_date(year, month, day) * 86400 - zone) + of_day;
    return true;
}

/* ---- a given format */

/* Removes %f from the format and its digits from the text. strptime with the part of the format before %f
 * finds where the digits begin. */
static bool format_fraction(char *text, char *format, double *fraction) {
    char *at = strstr(format, "%f");
    struct tm unused = {0};
    if (!at)
        return true;
    *at = 0;
    char *digits = strptime(text, format, &unused);
    if (!digits)
        return false;
    struct scan s = {digits, digits + strlen(digits)};
    if (!scan_fraction(&s, fraction))
        return false;
    memmove(digits, s.at, strlen(s.at) + 1);
    memmove(at, at + 2, strlen(at + 2) + 1);
    return true;
}

bool svi_time_of_format(const char *text, size_t length, const char *format, int zone, double *seconds) {
    char held[FORMATTED_TEXT], form[FORMATTED_TEXT];
    struct tm t = {.tm_year = 70, .tm_mday = 1, .tm_gmtoff = zone};
    double fraction = 0;
    if (length >= sizeof held || strlen(format) >= sizeof form || memchr(text, 0, length))
        return false;
    memcpy(held, text, length);
    held[length] = 0;
    memcpy(form, format, strlen(format) + 1);
    if (!format_fraction(held, form, &fraction))
        return false;
    const char *end = strptime(held, form, &t);
    if (!end || *end || t.tm_mon < 0 || t.tm_mon > 11 || t.tm_mday < 1 ||
        t.tm_mday > days_of_month(t.tm_year + 1900, t.tm_mon + 1))
        return false;
    const long east = t.tm_gmtoff; /* timegm overwrites it */
    *seconds = (double)(timegm(&t) - east) + fraction;
    return true;
}

double svi_time_of_number(double v, enum svi_time_unit *unit) {
    static const double parts[] = {1, 1, 1e3, 1e6, 1e9};
    const double size = fabs(v);
    if (*unit == SVI_TIME_UNKNOWN)
        *unit = size < 1e11   ? SVI_TIME_SECONDS
                : size < 1e14 ? SVI_TIME_MILLISECONDS
                : size < 1e17 ? SVI_TIME_MICROSECONDS
                              : SVI_TIME_NANOSECONDS;
    return v / parts[*unit];
}

const char *svi_time_unit_name(enum svi_time_unit unit) {
    static const char *const names[] = {"unknown", "seconds", "milliseconds", "microseconds", "nanoseconds"};
    return names[unit];
}
