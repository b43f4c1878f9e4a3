/* Lines for people: of novelty alerts, of novelty alerts under a budget, of quality alerts, in this order,
 * after the parts that all lines share.
 *
 * Invariants: a line always fits into SVI_ALERT_TEXT bytes and always has its end (how rare, since when).
 * The end is formatted first, its length is reserved, and features that do not fit before it are left out
 * whole. Foreign text (names, units, streams) is escaped before it is appended.
 *
 * Numbers and times are formatted by base/human.h: as few digits as a person wants, and more only where fewer
 * would not distinguish a value from its normal range. */
#include "alerts/alert_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/human.h"
#include "base/statistics.h"
#include "features/calendar.h"

/* Bytes in the worst case. PART: a name, a unit and five numbers (the value and two ranges). After a stream
 * of SVI_ALERT_SUBJECT bytes, an end of END bytes always fits into SVI_ALERT_TEXT. */
#define NAME   SVI_ALERT_NAME
#define UNIT   SVI_HUMAN_UNIT
#define NUMBER SVI_HUMAN
#define PART   (NAME + UNIT + 5 * NUMBER + 40)
#define END    (3 * NUMBER + 80)

/* ---- the line */

size_t svi_alert_append(char *out, size_t at, const char *text, size_t reserved) {
    /* All or nothing: half a number misleads. A text that does not fit changes nothing, so `out` keeps its
     * NUL and the caller may try a shorter one. */
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
    /* A long stream name is truncated here, so this first append always succeeds and `out` is a string from
     * here on. */
    char name[SVI_ALERT_SUBJECT];
    svi_escape(name, sizeof name, stream, strlen(stream));
    return svi_alert_append(out, 0, name, 0);
}

/* " vibration 4.1 mm/s (usual 0.9 to 1.3, earlier 0.6 to 2.1)". `before`: the separator. */
static void feature_text(char out[PART], const struct svi_alert_feature *f, const char *before) {
    char name[NAME], value[NUMBER], low[NUMBER], high[NUMBER], range[2 * NUMBER + 20] = "", unit[UNIT];
    /* The width of the range sets the digits of its bounds. A value far outside needs fewer digits: enough to
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
    /* The end is formatted first because its length decides how many features fit before it. */
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

#define SURE 12.0 /* surprise: a p below 10^-12 is shown as "less than" that */

/* "one in 300,000" for a surprise of 5.5. */
static const char *episode_rarity(char out[NUMBER], double surprise) {
    char count[NUMBER];
    /* One significant digit, because the p is an estimate. 1e-9 corrects a log10 of a power of ten that falls
     * just short of a whole number. */
    const double n = pow(10, fmin(surprise, SURE)), unit = pow(10, floor(log10(fmax(n, 10)) + 1e-9));
    const double rounded = n < 10 ? fmax(1, floor(n + 0.5)) : floor(n / unit + 0.5) * unit;
    snprintf(out, NUMBER, "%sone in %.20s", surprise > SURE ? "less than " : "",
             svi_human_count(count, (int64_t)rounded));
    return out;
}

/* "03:12 CET"; on a clock that does not start in 1970, the seconds. */
static const char *episode_since(char out[SVI_CALENDAR_MOMENT], double since, double now) {
    char text[NUMBER];
    /* In the zone of the stream, which the caller has set (svi_calendar_set_zone); svi_human_since
     * uses UTC. */
    if (svi_human_is_date(since))
        svi_calendar_moment(out, since, now);
    else
        snprintf(out, SVI_CALENDAR_MOMENT, "%.30s s", svi_human_number(text, since, 0, 3));
    return out;
}

/* "39.5 to 42.5", with enough digits to distinguish the bounds; "" where they are unknown. */
static const char *episode_range(char out[2 * NUMBER + 8], const struct svi_alert_fact *f) {
    char low[NUMBER], high[NUMBER];
    const double width = f->high - f->low;
    out[0] = '\0';
    if (isfinite(width))
        snprintf(out, 2 * NUMBER + 8, "%s to %s", svi_human_number(low, f->low, width, 2),
                 svi_human_number(high, f->high, width, 2));
    return out;
}

/* "vibration 1.7 for 30 min while current is 1.5 (0.1 to 0.3 expected there)". bare: only name and value;
 * dated: times have a time of day. */
static void episode_fact(char out[2 * PART], const struct svi_alert_fact *f, bool bare, bool dated) {
    char name[NAME], value[NUMBER], span[NUMBER], lasted[NUMBER + 8] = "",
                                                                  with[NAME + NUMBER + UNIT + 16] = "";
    char expected[4 * NUMBER + 60] = "", range[2 * NUMBER + 8], other[NAME], number[NUMBER], unit[UNIT];
    const double outside = fmax(f->value - f->high, f->low - f->value);
    /* `bare` is for a combination: each feature lies within its range, so the range explains nothing. */
    if (f->seconds > 0 && !bare)
        snprintf(lasted, sizeof lasted, " for %.36s", svi_human_duration(span, f->seconds));
    if (f->with >= 0 && !bare)
        snprintf(with, sizeof with, " while %s is %s%s", svi_alert_name(other, f->with_name, f->with),
                 svi_human_number(number, f->with_value, 0, 2), svi_human_unit(unit, f->with_unit));
    episode_range(range, f);
    /* The detector's own words first; the normal range is what remains where it has none. */
    if (!bare && !(f->text && f->text(expected, sizeof expected, f, range, dated)) && range[0])
        snprintf(expected, sizeof expected, " (usually %s)", range);
    snprintf(out, 2 * PART, "%s %s%s%s%s%s", svi_alert_name(name, f->name, f->column),
             svi_human_number(value, f->value, fmax(f->high - f->low, outside), 2),
             svi_human_unit(unit, f->unit), lasted, with, expected);
}

/* Appends the facts; `reserved` bytes stay free after them. */
static size_t episode_facts(char *out, size_t at, const struct svi_episode_line *l, size_t reserved) {
    char part[2 * PART];
    const bool together = l->combination && l->count >= 2, dated = svi_human_is_date(l->since);
    /* A combination is always a pair: the caller lists the two that add most first. */
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
        /* Separator and fact must fit together (8 bytes hold any separator), or a separator would dangle. */
        if (at + strlen(part) + 8 + reserved >= SVI_ALERT_TEXT)
            break;
        at = svi_alert_append(out, at, i == 0 ? "" : together ? " and " : "; ", reserved);
        at = svi_alert_append(out, at, part, reserved);
    }
    return together ? svi_alert_append(out, at, " (each within its usual range)", reserved) : at;
}

size_t svi_episode_text(char out[SVI_ALERT_TEXT], const struct svi_episode_line *l) {
    /* An update first states its reason. Only updates have one. */
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
    /* A close names no feature, because all are normal again. 40: for the closing words of a combination. */
    if (!closes) {
        at = svi_alert_append(out, at, svi_alert_severity_name(l->severity), 0);
        at = svi_alert_append(out, at, l->state == SVI_ALERT_UPDATE ? news[l->news] : ": ", 0);
        at = episode_facts(out, at, l, strlen(end) + 40);
    }
    return svi_alert_append(out, at, end, 0);
}

/* ---- the line of a quality alert */

/* "4.1 %" for a share of wrong predictions; of a regression the number itself. */
static const char *quality_level_text(char out[NUMBER], double v, bool regress) {
    char number[NUMBER];
    if (regress)
        return svi_human_number(out, v, 0, 2);
    snprintf(out, NUMBER, "%.30s %%", svi_human_number(number, 100 * v, 0, 2));
    return out;
}

/* "vibration 0.9 -> 1.4 mm/s": the mean before and after the change. */
static void quality_feature_text(char out[PART], const struct svi_quality_feature *f, const char *before) {
    char name[NAME], from[NUMBER], to[NUMBER], unit[UNIT];
    /* The larger of the two sets the digits: noise below one deviation needs none, and a large move is
     * visible with fewer. An unknown deviation is 0, so the move decides. */
    const double spread = fmax(f->deviation, fabs(f->after - f->before));
    svi_alert_name(name, f->name, f->column);
    snprintf(out, PART, "%s%s %s -> %s%s", before, name, svi_human_number(from, f->before, spread, 2),
             svi_human_number(to, f->after, spread, 2), svi_human_unit(unit, f->unit));
}

/* The line of a close, after the stream. */
static void quality_end_text(char part[PART], const struct svi_quality_line *l, const char *figure) {
    char lasted[NUMBER], now[NUMBER], before[NUMBER], worst[NUMBER], since[NUMBER];
    snprintf(part, PART, "%s after %s: %s %s, before %s, worst %s, since %s",
             l->adapted ? "stays as it is" : "back to normal", svi_human_duration(lasted, l->time - l->since),
             figure, quality_level_text(now, l->after, l->regress),
             quality_level_text(before, l->before, l->regress),
             quality_level_text(worst, l->worst, l->regress), svi_human_since(since, l->since, l->time));
}

/* " (13 of 40 rows, 4 of 100 before)"; of a regression " (40 rows, 100 before)". */
static void quality_rows_text(char out[4 * NUMBER + 32], const struct svi_quality_line *l) {
    char rows[NUMBER], wrong[NUMBER], rows_before[NUMBER], wrong_before[NUMBER];
    out[0] = '\0';
    if (l->rows < 1 || l->rows_before < 1)
        return;
    svi_human_count(rows, l->rows);
    svi_human_count(rows_before, l->rows_before);
    if (l->regress)
        snprintf(out, 4 * NUMBER + 32, " (%s rows, %s before)", rows, rows_before);
    else
        snprintf(out, 4 * NUMBER + 32, " (%s of %s rows, %s of %s before)", svi_human_count(wrong, l->wrong),
                 rows, svi_human_count(wrong_before, l->wrong_before), rows_before);
}

size_t svi_alert_quality_text(char out[SVI_ALERT_TEXT], const struct svi_quality_line *l) {
    char part[2 * PART], before[NUMBER], after[NUMBER], since[NUMBER], count[NUMBER], rows[4 * NUMBER + 32];
    const char *figure = l->regress ? "rmse" : "errors";
    size_t at = svi_alert_begin(out, l->stream);
    at = svi_alert_append(out, at, " quality", 0);
    if (l->state == SVI_ALERT_CLOSE) {
        quality_end_text(part, l, figure);
        at = svi_alert_append(out, at, " ", 0);
        return svi_alert_append(out, at, part, 0);
    }
    quality_rows_text(rows, l);
    snprintf(part, sizeof part, "%s: %s %s -> %s%s since %s (after sample %s)",
             l->state == SVI_ALERT_UPDATE ? " worse" : "", figure,
             quality_level_text(before, l->before, l->regress),
             quality_level_text(after, l->after, l->regress), rows, svi_human_since(since, l->since, l->time),
             svi_human_count(count, l->number));
    /* Figures and time precede the features, so nothing is reserved after these. */
    at = svi_alert_append(out, at, part, 0);
    for (int i = 0; i < l->count && i < SVI_ALERT_TOP; i++) {
        quality_feature_text(part, &l->top[i], i > 0 ? ", " : "; moved most: ");
        at = svi_alert_append(out, at, part, 0);
    }
    return at;
}
