/* Numbers and times for people, in three groups: measured values, figures and counts; durations, exact and
 * estimated; moments. A reader at night must not count zeros or convert seconds, and must see a difference
 * where there is one.
 *
 * svi_human_number decides the digits of a measured value: a person wants few, but two digits of `spread`,
 * the range in which values differ, have to show. Durations are rounded first and split into units
 * afterwards, as the other order can print "2 h 60 min". All texts fit into SVI_HUMAN bytes, whatever the
 * value: doubles beyond the units of a table have a text of their own. */
#include "base/human.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/fail.h"

#define MAX_DIGITS  12             /* of a measured value: no sensor resolves more */
#define EPOCH_FIRST 1e8            /* 1973 */
#define EPOCH_END   253402300799.0 /* the last second of 9999, excluded: its fraction may round up */

/* ---- numbers */

static int human_magnitude(double v) {
    return (int)floor(log10(fabs(v)));
}

/* 1.50 -> 1.5, 2.00 -> 2, -0.0 -> 0 */
static void human_trim_zeros(char *text) {
    char *end = text + strlen(text);
    while (strchr(text, '.') && (end[-1] == '0' || end[-1] == '.')) {
        const char last = *--end;
        *end = 0;
        if (last == '.')
            break;
    }
    if (strcmp(text, "-0") == 0)
        strcpy(text, "0");
}

/* 1.5e+07 -> 1.5e7 */
static void human_shorten_exponent(char *text) {
    char *e = strchr(text, 'e');
    if (!e)
        return;
    char *to = e[1] == '-' ? e + 2 : e + 1;
    const char *from = to + strspn(to, "+0");
    memmove(to, from, strlen(from) + 1);
}

char *svi_human_number(char out[SVI_HUMAN], double v, double spread, int digits) {
    if (!isfinite(v) || v == 0) {
        snprintf(out, SVI_HUMAN, "%s",
                 v == 0     ? "0"
                 : isnan(v) ? "unknown"
                 : v > 0    ? "infinite"
                            : "-infinite");
        return out;
    }
    /* Two digits of `spread` must show: 1013.25 in a range 0.4 wide must not shrink to 1013. */
    const int size = human_magnitude(v);
    const int needed = spread > 0 && isfinite(spread) ? size - human_magnitude(spread) + 2 : 0;
    const int shown = needed < MAX_DIGITS ? needed : MAX_DIGITS;
    digits = shown > digits ? shown : digits;
    /* Outside these sizes a reader would have to count zeros. */
    if (size >= 7 || size < -5) {
        snprintf(out, SVI_HUMAN, "%.*g", digits, v);
        human_shorten_exponent(out);
        return out;
    }
    /* %f keeps every digit before the point, so a whole number is never rounded. */
    snprintf(out, SVI_HUMAN, "%.*f", digits > size + 1 ? digits - 1 - size : 0, v);
    human_trim_zeros(out);
    return out;
}

char *svi_human_digits(char out[SVI_HUMAN], double v, int digits) {
    if (isnan(v))
        strcpy(out, "-");
    else
        snprintf(out, SVI_HUMAN, "%.*g", digits, v);
    return out;
}

char *svi_human_places(char out[SVI_HUMAN], double v, int places) {
    if (isnan(v))
        strcpy(out, "-");
    else
        snprintf(out, SVI_HUMAN, "%.*f", places, v);
    return out;
}

char *svi_human_count(char out[SVI_HUMAN], int64_t n) {
    char digits[SVI_HUMAN];
    const int length = snprintf(digits, sizeof digits, "%" PRId64, n);
    int at = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = '\0';
    return out;
}

char *svi_human_short(char out[SVI_HUMAN], double v) {
    static const struct {
        double unit;
        const char *letter;
    } units[] = {{1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {0, ""}};
    int i = 0;
    while (units[i].unit > 0 && !(v >= units[i].unit))
        i++;
    snprintf(out, SVI_HUMAN, "%.3g%s", units[i].unit > 0 ? v / units[i].unit : v, units[i].letter);
    return out;
}

/* ---- times */

char *svi_human_duration(char out[SVI_HUMAN], double seconds) {
    /* Round first and split afterwards: the other order could print "2 h 60 min". */
    const double minutes = floor(seconds / 60 + 0.5), hours = floor(seconds / 3600 + 0.5);
    if (!(seconds > 0))
        snprintf(out, SVI_HUMAN, "0 s");
    else if (seconds < 0.1)
        snprintf(out, SVI_HUMAN, "less than 0.1 s");
    else if (seconds < 99.5)
        snprintf(out, SVI_HUMAN, seconds < 9.95 ? "%.2g s" : "%.0f s", seconds);
    else if (minutes < 120)
        snprintf(out, SVI_HUMAN, "%.0f min", minutes);
    else if (minutes < 48 * 60)
        snprintf(out, SVI_HUMAN, "%.0f h %.0f min", floor(minutes / 60), fmod(minutes, 60));
    else if (hours < 1e7)
        snprintf(out, SVI_HUMAN, "%.0f d %.0f h", floor(hours / 24), fmod(hours, 24));
    else
        snprintf(out, SVI_HUMAN, "more than 1000 years");
    return out;
}

/* To one significant digit. 1e-9 corrects a log10 of a power of ten that falls just short of a whole number.
 */
static double human_one_digit(double v, bool down) {
    const double unit = pow(10, floor(log10(fmax(v, 1)) + 1e-9));
    return fmax(1, floor(v / unit + (down ? 1e-9 : 0.5)) * unit);
}

char *svi_human_about(char out[SVI_HUMAN], double seconds, bool down) {
    static const struct {
        double seconds, until; /* the unit is used up to this number of it */
        const char *one, *name;
    } units[] = {{1, 180, "a second", "seconds"},        {60, 180, "a minute", "minutes"},
                 {3600, 72, "an hour", "hours"},         {86400, 14, "a day", "days"},
                 {604800, 9, "a week", "weeks"},         {2629800, 24, "a month", "months"},
                 {31557600, INFINITY, "a year", "years"}};
    int i = 0;
    while (seconds / units[i].seconds >= units[i].until)
        i++;
    const double n = human_one_digit(fmin(seconds / units[i].seconds, 1000), down);
    if (n > 1)
        snprintf(out, SVI_HUMAN, "%.0f %s", n, units[i].name);
    else
        snprintf(out, SVI_HUMAN, "%s", units[i].one);
    return out;
}

bool svi_human_is_date(double seconds) {
    return seconds >= EPOCH_FIRST && seconds < EPOCH_END;
}

char *svi_human_since(char out[SVI_HUMAN], double since, double now) {
    const time_t t = svi_human_is_date(since) ? (time_t)since : 0;
    struct tm utc;
    if (t == 0) {
        char text[SVI_HUMAN];
        snprintf(out, SVI_HUMAN, "%.30s s", svi_human_number(text, since, 0, 3));
        return out;
    }
    gmtime_r(&t, &utc);
    strftime(out, SVI_HUMAN, floor(since / 86400) == floor(now / 86400) ? "%H:%M UTC" : "%Y-%m-%d %H:%M UTC",
             &utc);
    return out;
}

char *svi_human_moment(char out[SVI_HUMAN], double seconds) {
    /* 999.5 ms and more round up to the next second, whose milliseconds are then not shown. */
    const double whole = floor(seconds), thousandths = floor((seconds - whole) * 1000 + 0.5);
    const time_t t = svi_human_is_date(seconds) ? (time_t)(whole + (thousandths > 999)) : 0;
    struct tm utc;
    if (t == 0) { /* seconds from some other zero: no date can be given */
        snprintf(out, SVI_HUMAN, "%.10g s", seconds);
        return out;
    }
    gmtime_r(&t, &utc);
    const size_t n = strftime(out, SVI_HUMAN, "%Y-%m-%d %H:%M:%S", &utc);
    if (thousandths > 0 && thousandths < 1000)
        snprintf(out + n, SVI_HUMAN - n, ".%03.0f", thousandths);
    return out;
}

char *svi_human_place(char out[SVI_HUMAN], bool by_rows, double at) {
    if (!by_rows)
        return svi_human_moment(out, at);
    snprintf(out, SVI_HUMAN, "row %.0f", at);
    return out;
}

char *svi_human_span(char out[SVI_HUMAN], bool by_rows, double span) {
    if (!by_rows && span > 0)
        return svi_human_duration(out, span);
    if (isnan(span))
        return strcpy(out, "-");
    if (!by_rows) /* times of a log may go back; the text shows by how much */
        snprintf(out, SVI_HUMAN, "%.0f s", span);
    else
        snprintf(out, SVI_HUMAN, "%.0f row%s", span, span == 1 ? "" : "s");
    return out;
}

char *svi_human_unit(char out[SVI_HUMAN_UNIT], const char *unit) {
    out[0] = '\0';
    if (unit && *unit) {
        out[0] = ' ';
        svi_escape(out + 1, SVI_HUMAN_UNIT - 1, unit, strlen(unit));
    }
    return out;
}
