#include "data/time_text.h"

#include <math.h>
#include <stdint.h>

#define FRACTION_DIGITS 9

/* What is left of the text. */
struct scan {
    const char *at, *end;
};

static bool scan_digit(const struct scan *s) {
    return s->at < s->end && *s->at >= '0' && *s->at <= '9';
}

/* Takes exactly `count` digits that make a number from `low` to `high`. */
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

/* Since 1970-01-01. */
static int64_t days_of_date(int y, int m, int day) {
    const int before = y - 1;
    int64_t days = (int64_t)before * 365 + before / 4 - before / 100 + before / 400;
    for (int k = 1; k < m; k++)
        days += days_of_month(y, k);
    return days + day - 1 - 719162; /* of 1970-01-01 */
}

/* The fraction after the point of the seconds. The sum of whole seconds and a fraction of nine digits is
 * rounded as the exact one would be: none comes as near to the middle between two doubles as the fraction is
 * off. */
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
    if (second == 60)
        *fraction = 0;
    *whole = (hour * 60 + minute) * 60 + second;
    return true;
}

/* What stands after the time of day: nothing, or a zone in seconds east of UTC. */
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
