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
#include "config/settings.h"

/* Bytes in the worst case. PART: a name, a unit and five numbers (the value and two ranges). After a stream
 * of SVI_ALERT_SUBJECT bytes, an end of END bytes always fits into SVI_ALERT_TEXT. */
#define NAME   SVI_ALERT_NAME
#define UNIT   SVI_HUMAN_UNIT
#define NUMBER SVI_HUMAN
#define PART   (NAME + UNIT + 6 * NUMBER + 60)
#define END    (4 * NUMBER + 80)

#define DIGITS 17 /* that distinguish any two doubles */

/* ---- the line */

size_t svi_alert_append(char *out, size_t at, const char *text, size_t reserved) {
    /* All or nothing: half a number misleads. A text that does not fit changes nothing, so `out` keeps its
     * NUL and the caller may try a shorter one. */
    if (at == 0) /* the line of an unnamed stream: nothing to separate from */
        text += strncmp(text, ": ", 2) == 0 ? 2 : text[0] == ' ';
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

const char *svi_alert_stream(const char *stream) {
    return strcmp(stream, SVI_STREAM_UNNAMED) == 0 ? "" : stream;
}

size_t svi_alert_begin(char *out, const char *stream) {
    /* A long name is truncated here, so it always fits, and `out` is a string from here on. */
    svi_escape(out, SVI_ALERT_SUBJECT, stream, strlen(stream));
    return strlen(out);
}

void svi_alert_ended(char out[SVI_ALERT_TEXT], const char *stream, const char *kind, const char *why) {
    char end[SVI_ALERT_TEXT - SVI_ALERT_SUBJECT];
    snprintf(end, sizeof end, " %s ended: %s", kind, why);
    svi_alert_append(out, svi_alert_begin(out, stream), end, 0);
}

const char *svi_alert_since(char out[SVI_CALENDAR_MOMENT], const char *zone, bool by_rows, double since,
                            double now) {
    if (by_rows || !zone || !*zone || strcmp(zone, "UTC") == 0 || !svi_human_is_date(since))
        return by_rows ? svi_human_place(out, true, since) : svi_human_since(out, since, now);
    svi_calendar_moment(out, zone, since, now);
    return out;
}

struct svi_alert_numbers svi_alert_numbers_of(double value, double low, double high, int digits) {
    struct svi_alert_numbers n;
    const double width = high - low, outside = fmax(value - high, low - value);
    const double near = outside > 0 ? fmin(width, outside) : width;
    n.ranged = isfinite(width);
    n.outside = outside > 0;
    /* Values of ten digits and more may need all that a double has to differ from a bound. */
    do {
        svi_human_number(n.value, value, outside > 0 ? outside : width, digits);
        svi_human_number(n.low, low, near > 0 ? near : outside, digits);
        svi_human_number(n.high, high, near > 0 ? near : outside, digits);
        digits = digits < DIGITS - 4 ? DIGITS - 4 : digits + 1;
    } while (n.outside && digits <= DIGITS && strcmp(n.value, value > high ? n.high : n.low) == 0);
    return n;
}

/* " 3 rows ago" for a value of an earlier sample; "" for one of the sample at hand. */
static const char *ago_text(char out[NUMBER], int ago) {
    out[0] = '\0';
    if (ago > 0)
        snprintf(out, NUMBER, " %d row%s ago", ago, ago == 1 ? "" : "s");
    return out;
}

/* Means over several rows lie between 0 and 1, and remain numbers. */
static bool is_category_value(double v) {
    return v == 0 || v == 1;
}

/* " shift=day", or " not shift=day (usually it is)". */
static void category_text(char out[PART], const char *feature, int column, double value, const char *before,
                          const char *ago, double low, double high) {
    char name[NAME];
    snprintf(out, PART, "%s%s%s%s%s", before, value != 0 ? "" : "not ", svi_alert_name(name, feature, column),
             ago,
             value == 0 && low > 0    ? " (usually it is)"
             : value != 0 && high < 1 ? " (usually not)"
                                      : "");
}

/* " vibration 4.1 mm/s (usually 0.9 to 1.3, never beyond 0.6 to 2.1 before)". `before`: the separator. */
static void feature_text(char out[PART], const struct svi_alert_feature *f, const char *before) {
    char name[NAME], low[NUMBER], high[NUMBER], range[2 * NUMBER + 30] = "", unit[UNIT], ago[NUMBER];
    const char *is = f->step ? " moved by " : " ";
    if (f->category && is_category_value(f->value) && !f->step) {
        category_text(out, f->name, f->column, f->value, before, ago_text(ago, f->ago), f->low, f->high);
        return;
    }
    const struct svi_alert_numbers n = svi_alert_numbers_of(f->value, f->low, f->high, 3);
    const double width = f->high - f->low;
    svi_alert_name(name, f->name, f->column);
    svi_human_unit(unit, f->unit);
    ago_text(ago, f->ago);
    if (f->beyond)
        snprintf(range, sizeof range, ", never beyond %s to %s before",
                 svi_human_number(low, f->earlier_low, width, 3),
                 svi_human_number(high, f->earlier_high, width, 3));
    /* A value within its normal range is not shown next to it: the range would contradict the alert. */
    if (n.ranged && (n.outside || isnan(f->value)))
        snprintf(out, PART, "%s%s%s%s%s%s (usually %s to %s%s)", before, name, is, n.value, unit, ago, n.low,
                 n.high, range);
    else
        snprintf(out, PART, "%s%s%s%s%s%s", before, name, is, n.value, unit, ago);
}

size_t svi_alert_text(char out[SVI_ALERT_TEXT], const struct svi_alert_line *l) {
    char part[PART], end[END], a[NUMBER], b[NUMBER], since[SVI_CALENDAR_MOMENT];
    const char *before = l->state == SVI_ALERT_UPDATE ? " worse: " : " ";
    const int count = l->state == SVI_ALERT_CLOSE ? 0 : l->count < SVI_ALERT_TOP ? l->count : SVI_ALERT_TOP;
    /* The end is formatted first because its length decides how many features fit before it. */
    svi_alert_since(since, l->zone, l->by_rows, l->since, l->time);
    if (l->state == SVI_ALERT_CLOSE)
        snprintf(end, END, " back to normal after %s (began at %s)",
                 svi_human_span(a, l->by_rows, fmax(0, l->time - l->since)), since);
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

#define GREATEST 15.0 /* surprise: the number of rows that a p stands for is at most 10^15 */

/* "about once in 4 days", "about once in 6,000 rows", "less than once a year": how often chance alone would
 * be as surprising, at the rate of the rows. One digit, because the p is an estimate. */
static const char *episode_rarity(char out[2 * NUMBER], const struct svi_episode_line *l) {
    char text[NUMBER];
    const double rows = pow(10, fmax(0, fmin(l->surprise, GREATEST))), most = SVI_ALERT_RAREST * l->rows;
    const bool less = l->surprise > GREATEST || (most > 0 && rows > most);
    const double n = less && most > 0 ? fmin(rows, most) : rows;
    const double unit = pow(10, floor(log10(fmax(n, 1)) + 1e-9));
    /* A bound is rounded down: rounded up, it would claim more than the rows show. */
    if (l->by_rows)
        snprintf(text, NUMBER, "%.20s rows",
                 svi_human_count((char[NUMBER]){0}, (int64_t)(floor(n / unit + (less ? 1e-9 : 0.5)) * unit)));
    else
        svi_human_about(text, n / l->rows_a_day * 86400, less);
    snprintf(out, 2 * NUMBER, "%s once %s%s", less ? "less than" : "about", text[0] == 'a' ? "" : "in ",
             text);
    return out;
}

/* "03:12 CET"; on a clock that does not start in 1970, the seconds. */
static const char *episode_since(char out[SVI_CALENDAR_MOMENT], const struct svi_episode_line *l) {
    char text[SVI_CALENDAR_MOMENT];
    /* In the zone of the stream; svi_human_since uses UTC. */
    if (!l->by_rows && svi_human_is_date(l->since))
        svi_calendar_moment(out, l->zone, l->since, l->time);
    else
        snprintf(out, SVI_CALENDAR_MOMENT, "%s", svi_alert_since(text, "", l->by_rows, l->since, l->time));
    return out;
}

/* "vibration varies more than expected, from 0.8 to 4.1 in 30 min": all of them readings. */
static void episode_spread(char out[2 * PART], const struct svi_alert_fact *f, const char *name,
                           const char *span) {
    char low[NUMBER], high[NUMBER], unit[UNIT];
    snprintf(out, 2 * PART, "%s varies more than expected, from %s to %s%s in %s", name,
             svi_human_number(low, f->low, f->high - f->low, 2),
             svi_human_number(high, f->high, f->high - f->low, 2), svi_human_unit(unit, f->unit), span);
}

/* What a value is compared with: " (0.1 to 0.3 expected)", ", 41 expected at this time of day (39.5
 * to 42.5)". A value within that range has ", 1.4 above the 54.1 expected at this time of day". Without a
 * forecast it is " (usually 0.1 to 0.3)", or "". other: name of the feature that the range is of; NULL: the
 * value's own. */
static void episode_expected(char out[PART], const struct svi_alert_fact *f,
                             const struct svi_alert_numbers *n, const char *basis, const char *other) {
    char expected[NUMBER], distance[NUMBER];
    const double apart = fabs(f->value - f->expected);
    out[0] = '\0';
    if (other)
        snprintf(out, PART, " (%s to %s expected for %s)", n->low, n->high, other);
    else if (basis && isfinite(apart) && !(n->ranged && n->outside))
        snprintf(out, PART, ", %s %s the %s expected%s", svi_human_number(distance, apart, 0, 2),
                 f->value > f->expected ? "above" : "below",
                 svi_human_number(expected, f->expected, apart, 2), basis);
    else if (basis && n->ranged && (f->detector == SVI_DETECTOR_FORECAST || !isfinite(f->expected)))
        snprintf(out, PART, " (%s to %s expected%s)", n->low, n->high, basis);
    else if (basis && n->ranged)
        snprintf(out, PART, ", %s expected%s (%s to %s)",
                 svi_human_number(expected, f->expected, f->high - f->low, 2), basis, n->low, n->high);
    else if (n->ranged && n->outside)
        snprintf(out, PART, " (usually %s to %s)", n->low, n->high);
}

/* "vibration 1.7 on average for 30 min while current is 1.5 (0.1 to 0.3 expected)". bare: only name and
 * value, because each feature of a combination lies within its range; dated: times have a time of day. */
static void episode_fact(char out[2 * PART], const struct svi_alert_fact *f, bool bare, bool by_rows,
                         bool dated) {
    char name[NAME], span[NUMBER], lasted[NUMBER + 24] = "", other[NAME] = "", unit[UNIT], ago[NUMBER];
    char with[NAME + NUMBER + UNIT + 16] = "", expected[PART] = "";
    const bool of_other = f->deviates == SVI_DEVIATES_OTHER && f->with >= 0;
    struct svi_alert_numbers n = svi_alert_numbers_of(f->value, f->low, f->high, 2);
    const char *basis = f->basis ? f->basis(f, dated) : NULL;
    svi_alert_name(name, f->name, f->column);
    svi_human_span(span, by_rows, f->span);
    /* Of another feature: the range is not that of the category. */
    if (f->category && is_category_value(f->value) && !f->step && !of_other) {
        category_text(out, f->name, f->column, f->value, "", ago_text(ago, f->ago), bare ? NAN : f->low,
                      bare ? NAN : f->high);
        return;
    }
    if (f->deviates == SVI_DEVIATES_SPREAD && f->span > 0 && !bare) {
        episode_spread(out, f, name, span);
        return;
    }
    if (f->span > 0 && !bare)
        snprintf(lasted, sizeof lasted, " on average for %.36s", span);
    /* A value within its range but off its forecast has the digits that show the difference. */
    if (basis && !bare && !of_other && isfinite(f->value - f->expected) && !(n.ranged && n.outside))
        svi_human_number(n.value, f->value, fabs(f->value - f->expected), 2);
    if (f->with >= 0 && !bare) {
        const struct svi_alert_numbers w = svi_alert_numbers_of(f->with_value, f->low, f->high, 3);
        char number[NUMBER];
        svi_human_number(number, f->with_value, 0, 3);
        svi_alert_name(other, f->with_name, f->with);
        if (f->with_category && is_category_value(f->with_value))
            snprintf(with, sizeof with, " while %s%s", f->with_value != 0 ? "" : "not ", other);
        else
            snprintf(with, sizeof with, " while %s is %s%s", other, of_other ? w.value : number,
                     svi_human_unit(unit, f->with_unit));
        if (of_other) { /* the range is of the other feature, so its digits are too */
            svi_human_number(n.value, f->value, 0, 3);
            memcpy(n.low, w.low, sizeof n.low);
            memcpy(n.high, w.high, sizeof n.high);
        }
    }
    if (!bare)
        episode_expected(expected, f, &n, basis, of_other ? other : NULL);
    snprintf(out, 2 * PART, "%s%s%s%s%s%s%s%s", name, f->step ? " moved by " : " ", n.value,
             svi_human_unit(unit, f->unit), ago_text(ago, f->ago), lasted, with, expected);
}

/* Appends the facts; `reserved` bytes stay free after them. */
static size_t episode_facts(char *out, size_t at, const struct svi_episode_line *l, size_t reserved) {
    char part[2 * PART];
    const bool together = l->combination && l->count >= 2;
    const bool dated = !l->by_rows && svi_human_is_date(l->since);
    /* A combination is always a pair: the caller lists the two that add most first. */
    const int count = together ? 2 : l->count < SVI_ALERT_TOP ? l->count : SVI_ALERT_TOP;
    if (l->opening || together || count == 0) {
        snprintf(part, sizeof part, "%s%s%s%s", l->opening ? l->opening : "", l->opening ? " " : "",
                 together     ? "unusual combination of "
                 : l->opening ? "deviation"
                              : "unusual rows",
                 l->opening && !together && count > 0 ? ": " : "");
        at = svi_alert_append(out, at, part, reserved);
    }
    for (int i = 0; i < count; i++) {
        episode_fact(part, &l->facts[i], together, l->by_rows, dated);
        /* Separator and fact must fit together (8 bytes hold any separator), or a separator would dangle. */
        if (at + strlen(part) + 8 + reserved >= SVI_ALERT_TEXT)
            break;
        at = svi_alert_append(out, at, i == 0 ? "" : together ? " and " : "; ", reserved);
        at = svi_alert_append(out, at, part, reserved);
    }
    return together ? svi_alert_append(out, at, " (each alone in its usual range)", reserved) : at;
}

size_t svi_episode_text(char out[SVI_ALERT_TEXT], const struct svi_episode_line *l) {
    /* Only an update has a reason, and it begins with it. */
    static const char *const news[] = {[SVI_POLICY_WORSENED] = ", worse: ",
                                       [SVI_POLICY_JOINED] = ", now also: ",
                                       [SVI_POLICY_AGAIN] = ", again: ",
                                       [SVI_POLICY_LASTS] = ", ongoing: "};
    char end[END], rarity[2 * NUMBER], span[NUMBER], since[SVI_CALENDAR_MOMENT];
    const bool closes = l->state == SVI_ALERT_CLOSE;
    episode_since(since, l);
    episode_rarity(rarity, l);
    if (closes)
        snprintf(end, END, "back to normal after %s (worst: %s, by chance %s; began at %s)",
                 svi_human_span(span, l->by_rows, fmax(0, l->time - l->since)),
                 svi_alert_severity_name(l->severity), rarity, since);
    else
        snprintf(end, END, ", by chance %s, since %s", rarity, since);
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

#define LEVEL (NUMBER + 8)

/* "4.1 %" for a share of wrong predictions; of a regression the number itself. */
static const char *quality_level_text(char out[LEVEL], double v, bool regress) {
    char number[NUMBER];
    if (regress)
        return svi_human_number(out, v, 0, 2);
    snprintf(out, LEVEL, "%s %%", svi_human_number(number, 100 * v, 0, 2));
    return out;
}

/* "17 % wrong", or "rmse 1.7". */
static const char *quality_now_text(char out[LEVEL], double v, bool regress) {
    char level[LEVEL];
    quality_level_text(level, v, regress);
    snprintf(out, LEVEL, regress ? "rmse %.33s" : "%.33s wrong", level);
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
static void quality_end_text(char part[PART], const struct svi_quality_line *l) {
    char lasted[NUMBER], now[LEVEL], before[LEVEL], worst[LEVEL], since[SVI_CALENDAR_MOMENT];
    snprintf(part, PART, "%s after %s: %s, %s before, %s at worst (began at %s)",
             l->adapted ? "settled at a new level" : "back to normal",
             svi_human_span(lasted, l->by_rows, fmax(0, l->time - l->since)),
             quality_now_text(now, l->after, l->regress), quality_level_text(before, l->before, l->regress),
             quality_level_text(worst, l->worst, l->regress),
             svi_alert_since(since, l->zone, l->by_rows, l->since, l->time));
}

/* " (13 of 40 rows)"; of a regression " (40 rows)". Without rows "". */
static const char *quality_rows_text(char out[2 * NUMBER + 16], int64_t rows, int64_t wrong, bool regress) {
    char all[NUMBER], part[NUMBER];
    svi_human_count(all, rows);
    svi_human_count(part, wrong);
    out[0] = '\0';
    if (rows >= 1 && regress)
        snprintf(out, 2 * NUMBER + 16, " (%s rows)", all);
    else if (rows >= 1)
        snprintf(out, 2 * NUMBER + 16, " (%s of %s rows)", part, all);
    return out;
}

size_t svi_alert_quality_text(char out[SVI_ALERT_TEXT], const struct svi_quality_line *l) {
    char part[2 * PART], before[LEVEL], after[LEVEL], since[SVI_CALENDAR_MOMENT], count[NUMBER];
    char rows[2 * NUMBER + 16], rows_before[2 * NUMBER + 16], number[NUMBER + 20] = "";
    size_t at = svi_alert_begin(out, l->stream);
    at = svi_alert_append(out, at, " predictions", 0);
    if (l->state == SVI_ALERT_CLOSE) {
        quality_end_text(part, l);
        at = svi_alert_append(out, at, " ", 0);
        return svi_alert_append(out, at, part, 0);
    }
    if (!l->by_rows) /* else `since` is the sample */
        snprintf(number, sizeof number, " (after sample %.30s)", svi_human_count(count, l->number));
    snprintf(part, sizeof part, "%s: %s%s since %s%s, %s before%s",
             l->state == SVI_ALERT_UPDATE ? ", worse" : "", quality_now_text(after, l->after, l->regress),
             quality_rows_text(rows, l->rows, l->wrong, l->regress),
             svi_alert_since(since, l->zone, l->by_rows, l->since, l->time), number,
             quality_level_text(before, l->before, l->regress),
             quality_rows_text(rows_before, l->rows_before, l->wrong_before, l->regress));
    /* Figures and time precede the features, so nothing is reserved after these. */
    at = svi_alert_append(out, at, part, 0);
    for (int i = 0; i < l->count && i < SVI_ALERT_TOP; i++) {
        quality_feature_text(part, &l->top[i], i > 0 ? ", " : "; moved most: ");
        at = svi_alert_append(out, at, part, 0);
    }
    return at;
}
