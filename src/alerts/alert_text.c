/* Lines for people: of novelty alerts, of those under a budget, then of quality alerts.
 *
 * Numbers and times are those of base/human.h: as many digits as a person wants, and as many more as tell a
 * value from what is usual. First the parts of a line, then the lines. A line always fits: its end is kept
 * free for, and features that do not fit before it are left out whole. */
#include "alerts/alert_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/human.h"
#include "base/statistics.h"
#include "features/calendar.h"

/* Sizes for the worst case: PART holds a name, a unit and five numbers (the value and two ranges). After a
 * stream of SVI_ALERT_SUBJECT bytes an end of END bytes always fits into SVI_ALERT_TEXT. */
#define NAME   SVI_ALERT_NAME
#define UNIT   SVI_HUMAN_UNIT
#define NUMBER SVI_HUMAN
#define PART   (NAME + UNIT + 5 * NUMBER + 40)
#define END    (3 * NUMBER + 80)

/* ---- the line */

size_t svi_alert_append(char *out, size_t at, const char *text, size_t reserved) {
    /* All or nothing: half a number misleads. A text that is left out changes nothing, so `out` keeps its
     * NUL and the caller may go on with a shorter one. */
    const size_t length = strlen(text);
    if (at + length + reserved >= SVI_ALERT_TEXT)
        return at;
    memcpy(out + at, text, length + 1);
    return at + length;
}

const char *svi_alert_name(char out[NAME], const char *name, int column) {
    if (name)
        svi_escape(out, NAME, name, strlen(name));
    else
        snprintf(out, NAME, "feature %d", column);
    return out;
}

size_t svi_alert_begin(char *out, const char *stream) {
    /* The cut bounds what a long stream name takes from the line, so this first append always succeeds and
     * `out` holds a string from here on. */
    char name[SVI_ALERT_SUBJECT];
    svi_escape(name, sizeof name, stream, strlen(stream));
    return svi_alert_append(out, 0, name, 0);
}

static void feature_text(char out[PART], const struct svi_alert_feature *f, const char *before) {
    char name[NAME], value[NUMBER], low[NUMBER], high[NUMBER], range[2 * NUMBER + 20] = "", unit[UNIT];
    /* The width of the range sets the digits of its bounds. A value far outside needs fewer: only those that
     * show how far outside it is. */
    const double width = f->high - f->low;
    const double outside = fmax(f->value - f->high, f->low - f->value);
    svi_alert_name(name, f->name, f->column);
    svi_human_unit(unit, f->unit);
    if (f->beyond)
        snprintf(range, sizeof range, ", earlier %s to %s", svi_human_number(low, f->earlier_low, width, 3),
                 svi_human_number(high, f->earlier_high, width, 3));
    if (isfinite(width))
        snprintf(out, PART, "%s%s %s%s (usual %s to %s%s)", before, name,
                 svi_human_number(value, f->value, fmax(width, outside), 3), unit,
                 svi_human_number(low, f->low, width, 3), svi_human_number(high, f->high, width, 3), range);
    else
        snprintf(out, PART, "%s%s %s%s", before, name, svi_human_number(value, f->value, 0, 3), unit);
}

size_t svi_alert_text(char out[SVI_ALERT_TEXT], const struct svi_alert_line *l) {
    char part[PART], end[END], a[NUMBER], b[NUMBER], since[NUMBER];
    const char *before = l->state == SVI_ALERT_UPDATE ? " worse: " : " ";
    const int count = l->state == SVI_ALERT_CLOSE ? 0 : l->count < SVI_ALERT_TOP ? l->count : SVI_ALERT_TOP;
    /* The end comes first because its length decides how many features fit before it. */
    svi_human_since(since, l->since, l->time);
    if (l->state == SVI_ALERT_CLOSE)
        snprintf(end, END, " back to normal after %s, worst grade %s, since %s",
                 svi_human_duration(a, l->time - l->since), svi_human_number(b, l->grade, 0, 2), since);
    else
        snprintf(end, END, "%snovelty %s, p %s, since %s", count > 0 ? ", " : before,
                 svi_human_number(a, l->novelty, 0, 2), svi_human_number(b, l->p, 0, 2), since);
    size_t at = svi_alert_begin(out, l->stream);
    for (int i = 0; i < count; i++) {
        feature_text(part, &l->top[i], i > 0 ? ", " : before);
        at = svi_alert_append(out, at, part, strlen(end));
    }
    return svi_alert_append(out, at, end, 0);
}

/* ---- the line of an alert under a budget */

#define SURE 12.0 /* no p below 10^-12 is believed */

static const char *episode_rarity(char out[NUMBER], double surprise) {
    char count[NUMBER];
    /* One significant digit: the p behind it is an estimate. 1e-9 makes up for log10 of a power of ten that
     * falls just short of a whole number. */
    const double n = pow(10, fmin(surprise, SURE)), unit = pow(10, floor(log10(fmax(n, 10)) + 1e-9));
    const double rounded = n < 10 ? fmax(1, floor(n + 0.5)) : floor(n / unit + 0.5) * unit;
    snprintf(out, NUMBER, "%sone in %.20s", surprise > SURE ? "less than " : "",
             svi_human_count(count, (int64_t)rounded));
    return out;
}

static const char *episode_since(char out[SVI_CALENDAR_MOMENT], double since, double now) {
    char text[NUMBER];
    /* Unlike svi_human_since, in the zone of the stream: the caller has set it (svi_calendar_set_zone). */
    if (svi_human_is_date(since))
        svi_calendar_moment(out, since, now);
    else
        snprintf(out, SVI_CALENDAR_MOMENT, "%.30s s", svi_human_number(text, since, 0, 3));
    return out;
}

/* "39.5 to 42.5", with as many digits as tell them apart; "" where it is not known. */
static const char *episode_range(char out[2 * NUMBER + 8], const struct svi_alert_fact *f) {
    char low[NUMBER], high[NUMBER];
    const double width = f->high - f->low;
    out[0] = '\0';
    if (isfinite(width))
        snprintf(out, 2 * NUMBER + 8, "%s to %s", svi_human_number(low, f->low, width, 2),
                 svi_human_number(high, f->high, width, 2));
    return out;
}

static void episode_fact(char out[2 * PART], const struct svi_alert_fact *f, bool bare, bool dated) {
    char name[NAME], value[NUMBER], span[NUMBER], lasted[NUMBER + 8] = "",
                                                                  with[NAME + NUMBER + UNIT + 16] = "";
    char expected[4 * NUMBER + 60] = "", range[2 * NUMBER + 8], other[NAME], number[NUMBER], unit[UNIT];
    const double outside = fmax(f->value - f->high, f->low - f->value);
    /* `bare` is for a combination: each feature is within its range, so its range explains nothing. */
    if (f->seconds > 0 && !bare)
        snprintf(lasted, sizeof lasted, " for %.36s", svi_human_duration(span, f->seconds));
    if (f->with >= 0 && !bare)
        snprintf(with, sizeof with, " while %s is %s%s", svi_alert_name(other, f->with_name, f->with),
                 svi_human_number(number, f->with_value, 0, 2), svi_human_unit(unit, f->with_unit));
    episode_range(range, f);
    if (!bare && !(f->text && f->text(expected, sizeof expected, f, range, dated)) && range[0])
        snprintf(expected, sizeof expected, " (usually %s)", range);
    snprintf(out, 2 * PART, "%s %s%s%s%s%s", svi_alert_name(name, f->name, f->column),
             svi_human_number(value, f->value, fmax(f->high - f->low, outside), 2),
             svi_human_unit(unit, f->unit), lasted, with, expected);
}

static size_t episode_facts(char *out, size_t at, const struct svi_episode_line *l, size_t reserved) {
    char part[2 * PART];
    const bool together = l->combination && l->count >= 2, dated = svi_human_is_date(l->since);
    /* A combination is always a pair: the caller puts the two that add most first. */
    const int count = together ? 2 : l->count < SVI_ALERT_TOP ? l->count : SVI_ALERT_TOP;
    if (l->opening) {
        snprintf(part, sizeof part, "%s%s", l->opening, count > 0 ? ": " : "");
        at = svi_alert_append(out, at, part, reserved);
    } else if (count == 0) {
        at = svi_alert_append(out, at, "unusual rows", reserved);
    }
    if (together)
        at = svi_alert_append(out, at, "unusual combination of ", reserved);
    for (int i = 0; i < count; i++) {
        episode_fact(part, &l->facts[i], together, dated);
        /* The separator counts (8 bytes hold any of them): appended alone it would dangle before the end. */
        if (at + strlen(part) + 8 + reserved >= SVI_ALERT_TEXT)
            break;
        at = svi_alert_append(out, at, i == 0 ? "" : together ? " and " : "; ", reserved);
        at = svi_alert_append(out, at, part, reserved);
    }
    return together ? svi_alert_append(out, at, " (each within its usual range)", reserved) : at;
}

size_t svi_episode_text(char out[SVI_ALERT_TEXT], const struct svi_episode_line *l) {
    /* An update says first why it comes. Only updates have news; the other states print none of these. */
    static const char *const news[] = {[SVI_POLICY_WORSENED] = ", worse: ",
                                       [SVI_POLICY_JOINED] = ", now also: ",
                                       [SVI_POLICY_AGAIN] = ", again: ",
                                       [SVI_POLICY_LASTS] = ", lasts: "};
    char end[END], rarity[NUMBER], span[NUMBER], since[SVI_CALENDAR_MOMENT];
    const bool closes = l->state == SVI_ALERT_CLOSE;
    episode_since(since, l->since, l->time);
    episode_rarity(rarity, l->surprise);
    if (closes)
        snprintf(end, END, "back to normal after %s (%s, %s at worst), since %s",
                 svi_human_duration(span, l->lasted), svi_alert_severity_name(l->severity), rarity, since);
    else
        snprintf(end, END, ", %s, since %s", rarity, since);
    size_t at = svi_alert_begin(out, l->stream);
    at = svi_alert_append(out, at, " ", 0);
    /* A close names no feature: what is usual again has none to blame. */
    if (!closes) {
        at = svi_alert_append(out, at, svi_alert_severity_name(l->severity), 0);
        at = svi_alert_append(out, at, l->state == SVI_ALERT_UPDATE ? news[l->news] : ": ", 0);
        at = episode_facts(out, at, l, strlen(end) + 40);
    }
    return svi_alert_append(out, at, end, 0);
}

/* ---- the line of a quality alert */

/* 4.1 %, or the number itself of a regression. */
static const char *quality_level_text(char out[NUMBER], double v, bool regress) {
    char number[NUMBER];
    if (regress)
        return svi_human_number(out, v, 0, 2);
    snprintf(out, NUMBER, "%.30s %%", svi_human_number(number, 100 * v, 0, 2));
    return out;
}

static void quality_feature_text(char out[PART], const struct svi_quality_feature *f, const char *before) {
    char name[NAME], from[NUMBER], to[NUMBER], unit[UNIT];
    /* Digits go by the larger of the two: noise below one deviation needs none, and a large move shows in
     * fewer. An unknown deviation is 0 and leaves the choice to the move. */
    const double spread = fmax(f->deviation, fabs(f->after - f->before));
    svi_alert_name(name, f->name, f->column);
    snprintf(out, PART, "%s%s %s -> %s%s", before, name, svi_human_number(from, f->before, spread, 2),
             svi_human_number(to, f->after, spread, 2), svi_human_unit(unit, f->unit));
}

static void quality_end_text(char part[PART], const struct svi_quality_line *l, const char *figure) {
    char lasted[NUMBER], now[NUMBER], before[NUMBER], worst[NUMBER], since[NUMBER];
    snprintf(part, PART, "%s after %s: %s %s, before %s, worst %s, since %s",
             l->adapted ? "stays as it is" : "back to normal", svi_human_duration(lasted, l->time - l->since),
             figure, quality_level_text(now, l->after, l->regress),
             quality_level_text(before, l->before, l->regress),
             quality_level_text(worst, l->worst, l->regress), svi_human_since(since, l->since, l->time));
}

size_t svi_quality_text(char out[SVI_ALERT_TEXT], const struct svi_quality_line *l) {
    char part[PART], before[NUMBER], after[NUMBER], since[NUMBER], count[NUMBER];
    const char *figure = l->regress ? "rmse" : "errors";
    size_t at = svi_alert_begin(out, l->stream);
    at = svi_alert_append(out, at, " quality", 0);
    if (l->state == SVI_ALERT_CLOSE) {
        quality_end_text(part, l, figure);
        at = svi_alert_append(out, at, " ", 0);
        return svi_alert_append(out, at, part, 0);
    }
    snprintf(part, PART, "%s: %s %s -> %s since %s (after sample %s)",
             l->state == SVI_ALERT_UPDATE ? " worse" : "", figure,
             quality_level_text(before, l->before, l->regress),
             quality_level_text(after, l->after, l->regress), svi_human_since(since, l->since, l->time),
             svi_human_count(count, l->number));
    /* The figures and the time stand before the features, so nothing has to be kept free behind these. */
    at = svi_alert_append(out, at, part, 0);
    for (int i = 0; i < l->count && i < SVI_ALERT_TOP; i++) {
        quality_feature_text(part, &l->top[i], i > 0 ? ", " : "; moved most: ");
        at = svi_alert_append(out, at, part, 0);
    }
    return at;
}
