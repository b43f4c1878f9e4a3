/* Lines for people: of novelty alerts, then of quality alerts.
 *
 * Numbers come first: as many digits as a person wants, and as many more as tell a value from what is usual.
 * Then times, the parts of a line, and the lines. A line always fits: its end is kept free for, and features
 * that find no more room are left out whole.
 */
#include "alerts/alert_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/fail.h"
#include "base/statistics.h"

#define NAME   48
#define NUMBER SVI_ALERT_NUMBER
#define PART   (NAME + 5 * NUMBER + 40)
#define END    (3 * NUMBER + 80)

#define EPOCH_LEAST 1e8           /* 1973: no stream that counts from 0 gets there */
#define EPOCH_MOST  253402300800. /* the year 10000 */

/* ---- numbers */

static int alert_text_magnitude(double v) {
    return (int)floor(log10(fabs(v)));
}

/* 1.50 -> 1.5, 2.00 -> 2, -0.0 -> 0 */
static void trim_zeros(char *text) {
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
static void shorten_exponent(char *text) {
    char *e = strchr(text, 'e');
    if (!e)
        return;
    char *to = e[1] == '-' ? e + 2 : e + 1;
    const char *from = to + strspn(to, "+0");
    memmove(to, from, strlen(from) + 1);
}

/* v with at least `digits` digits, as a person writes it, and with as many as show differences of `spread`
 * (0 = unknown) in two digits, at most 9. Whole numbers are not rounded. */
static const char *alert_text_number(char out[NUMBER], double v, double spread, int digits) {
    if (!isfinite(v) || v == 0) {
        snprintf(out, NUMBER, "%s", v == 0 ? "0" : isnan(v) ? "unknown" : v > 0 ? "infinite" : "-infinite");
        return out;
    }
    const int size = alert_text_magnitude(v);
    const int needed = spread > 0 && isfinite(spread) ? size - alert_text_magnitude(spread) + 2 : 0;
    digits = needed > digits ? (needed < 9 ? needed : 9) : digits;
    if (size >= 7 || size < -5) {
        snprintf(out, NUMBER, "%.*g", digits, v);
        shorten_exponent(out);
        return out;
    }
    snprintf(out, NUMBER, "%.*f", digits > size + 1 ? digits - 1 - size : 0, v);
    trim_zeros(out);
    return out;
}

/* ---- times */

static const char *alert_text_duration(char out[NUMBER], double seconds) {
    const double minutes = floor(seconds / 60 + 0.5), hours = floor(seconds / 3600 + 0.5);
    if (!(seconds > 0))
        snprintf(out, NUMBER, "0 s");
    else if (seconds < 0.1)
        snprintf(out, NUMBER, "less than 0.1 s");
    else if (seconds < 99.5)
        snprintf(out, NUMBER, seconds < 9.95 ? "%.2g s" : "%.0f s", seconds);
    else if (minutes < 120)
        snprintf(out, NUMBER, "%.0f min", minutes);
    else if (minutes < 48 * 60)
        snprintf(out, NUMBER, "%.0f h %.0f min", floor(minutes / 60), fmod(minutes, 60));
    else if (hours < 1e7)
        snprintf(out, NUMBER, "%.0f d %.0f h", floor(hours / 24), fmod(hours, 24));
    else
        snprintf(out, NUMBER, "more than 1000 years");
    return out;
}

static const char *alert_text_moment(char out[NUMBER], double since, double now) {
    if (!(since >= EPOCH_LEAST && since < EPOCH_MOST)) {
        char text[NUMBER];
        snprintf(out, NUMBER, "%.30s s", alert_text_number(text, since, 0, 3));
        return out;
    }
    const time_t t = (time_t)since;
    struct tm utc;
    gmtime_r(&t, &utc);
    strftime(out, NUMBER, floor(since / 86400) == floor(now / 86400) ? "%H:%M UTC" : "%Y-%m-%d %H:%M UTC",
             &utc);
    return out;
}

/* ---- the line */

static size_t alert_text_append(char *out, size_t at, const char *text, size_t reserved) {
    const size_t length = strlen(text);
    if (at + length + reserved >= SVI_ALERT_TEXT)
        return at;
    memcpy(out + at, text, length + 1);
    return at + length;
}

static void feature_text(char out[PART], const struct svi_alert_feature *f, const char *before) {
    char name[NAME], value[NUMBER], low[NUMBER], high[NUMBER], range[2 * NUMBER + 20] = "";
    const double width = f->high - f->low;
    const double outside = fmax(f->value - f->high, f->low - f->value);
    if (f->name)
        svi_escape(name, sizeof name, f->name, strlen(f->name));
    else
        snprintf(name, sizeof name, "feature %d", f->column);
    if (f->beyond)
        snprintf(range, sizeof range, ", earlier %s to %s", alert_text_number(low, f->earlier_low, width, 3),
                 alert_text_number(high, f->earlier_high, width, 3));
    if (isfinite(width))
        snprintf(out, PART, "%s%s %s (usual %s to %s%s)", before, name,
                 alert_text_number(value, f->value, fmax(width, outside), 3),
                 alert_text_number(low, f->low, width, 3), alert_text_number(high, f->high, width, 3), range);
    else
        snprintf(out, PART, "%s%s %s", before, name, alert_text_number(value, f->value, 0, 3));
}

size_t svi_alert_text(char out[SVI_ALERT_TEXT], const struct svi_alert_line *l) {
    char name[NAME], part[PART], end[END], a[NUMBER], b[NUMBER], since[NUMBER];
    const char *before = l->state == SVI_ALERT_UPDATE ? " worse: " : " ";
    const int count = l->state == SVI_ALERT_CLOSE ? 0 : l->count < SVI_ALERT_TOP ? l->count : SVI_ALERT_TOP;
    alert_text_moment(since, l->since, l->time);
    if (l->state == SVI_ALERT_CLOSE)
        snprintf(end, END, " back to normal after %s, worst grade %s, since %s",
                 alert_text_duration(a, l->time - l->since), alert_text_number(b, l->grade, 0, 2), since);
    else
        snprintf(end, END, "%snovelty %s, p %s, since %s", count > 0 ? ", " : before,
                 alert_text_number(a, l->novelty, 0, 2), alert_text_number(b, l->p, 0, 2), since);
    svi_escape(name, sizeof name, l->stream, strlen(l->stream));
    size_t at = alert_text_append(out, 0, name, 0);
    for (int i = 0; i < count; i++) {
        feature_text(part, &l->top[i], i > 0 ? ", " : before);
        at = alert_text_append(out, at, part, strlen(end));
    }
    return alert_text_append(out, at, end, 0);
}

/* ---- the line of a quality alert */

/* 4.1 %, or the number itself of a regression. */
static const char *quality_level_text(char out[NUMBER], double v, bool regress) {
    char number[NUMBER];
    if (regress)
        return alert_text_number(out, v, 0, 2);
    snprintf(out, NUMBER, "%.30s %%", alert_text_number(number, 100 * v, 0, 2));
    return out;
}

/* 41230 -> 41,230 */
static const char *quality_count_text(char out[NUMBER], int64_t n) {
    char digits[NUMBER];
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

static void quality_feature_text(char out[PART], const struct svi_quality_feature *f, const char *before) {
    char name[NAME], from[NUMBER], to[NUMBER];
    const double spread = fmax(f->deviation, fabs(f->after - f->before));
    if (f->name)
        svi_escape(name, sizeof name, f->name, strlen(f->name));
    else
        snprintf(name, sizeof name, "feature %d", f->column);
    snprintf(out, PART, "%s%s %s -> %s", before, name, alert_text_number(from, f->before, spread, 2),
             alert_text_number(to, f->after, spread, 2));
}

static void quality_end_text(char part[PART], const struct svi_quality_line *l, const char *figure) {
    char lasted[NUMBER], now[NUMBER], before[NUMBER], worst[NUMBER], since[NUMBER];
    snprintf(part, PART, "%s after %s: %s %s, before %s, worst %s, since %s",
             l->adapted ? "stays as it is" : "back to normal",
             alert_text_duration(lasted, l->time - l->since), figure,
             quality_level_text(now, l->after, l->regress), quality_level_text(before, l->before, l->regress),
             quality_level_text(worst, l->worst, l->regress), alert_text_moment(since, l->since, l->time));
}

size_t svi_quality_text(char out[SVI_ALERT_TEXT], const struct svi_quality_line *l) {
    char name[NAME], part[PART], before[NUMBER], after[NUMBER], since[NUMBER], count[NUMBER];
    const char *figure = l->regress ? "rmse" : "errors";
    svi_escape(name, sizeof name, l->stream, strlen(l->stream));
    size_t at = alert_text_append(out, 0, name, 0);
    at = alert_text_append(out, at, " quality", 0);
    if (l->state == SVI_ALERT_CLOSE) {
        quality_end_text(part, l, figure);
        at = alert_text_append(out, at, " ", 0);
        return alert_text_append(out, at, part, 0);
    }
    snprintf(part, PART, "%s: %s %s -> %s since %s (after sample %s)",
             l->state == SVI_ALERT_UPDATE ? " worse" : "", figure,
             quality_level_text(before, l->before, l->regress),
             quality_level_text(after, l->after, l->regress), alert_text_moment(since, l->since, l->time),
             quality_count_text(count, l->number));
    at = alert_text_append(out, at, part, 0);
    for (int i = 0; i < l->count && i < SVI_ALERT_TOP; i++) {
        quality_feature_text(part, &l->top[i], i > 0 ? ", " : "; moved most: ");
        at = alert_text_append(out, at, part, 0);
    }
    return at;
}

/* ---- for other lines */

const char *svi_alert_number(char out[SVI_ALERT_NUMBER], double v, double spread) {
    return alert_text_number(out, v, spread, 3);
}

const char *svi_alert_duration(char out[SVI_ALERT_NUMBER], double seconds) {
    return alert_text_duration(out, seconds);
}

const char *svi_alert_moment(char out[SVI_ALERT_NUMBER], double since, double now) {
    return alert_text_moment(out, since, now);
}
