/* alert_text.h: an alert as one line for a person who reads it on a phone at three in the morning:
 *
 *     pump1 vibration 4.1 (usually 0.9 to 1.3, never beyond 0.6 to 2.1 before), novelty 0.82, p 0.0005, since
 *     10:42 UTC
 *     pump1 vibration 4.1 (usually 0.9 to 1.3), novelty 0.82, p 0.001, since 10:42 UTC
 *     pump1 worse: vibration 9.2 (usually 0.9 to 1.3), novelty 0.97, p 0.0005, since 10:42 UTC
 *     pump1 back to normal after 12 min (began at 10:42 UTC)
 *
 * A number that reads as a measurement is one: of the sample, or the mean of the readings of the time that
 * the line names. Numbers have three digits, and more where fewer would not distinguish the value from its
 * normal range. No value lies within a range that the line calls usual or expected. A value of a category
 * reads as "shift=day", or "not shift=day".
 *
 * The day is added when the alert began on another day than the sample's, both in UTC. A time below 1e8 s is
 * not counted from 1970 and is shown in seconds: "since 350 s". Where rows have no times, lines count rows:
 * "since row 156", "back to normal after 12 rows". The line of an unnamed stream begins with what follows the
 * name. */
#ifndef SVI_ALERT_TEXT_H
#define SVI_ALERT_TEXT_H

#include <stddef.h>

#include "alerts/alert.h"
#include "alerts/alert_policy.h"
#include "alerts/evidence.h"
#include "base/human.h"
#include "features/calendar.h"

#define SVI_ALERT_TEXT    400 /* bytes, the NUL included */
#define SVI_ALERT_SUBJECT 136 /* bytes of the stream and key that begin a line, the NUL included */
#define SVI_ALERT_TOP     3   /* most features named in a line */

struct svi_alert_feature {
    const char *name; /* any bytes; escaped, and truncated to 47; NULL: shown as "feature 3" */
    int column;       /* from 0; shown for a feature without a name */
    const char *unit; /* of the values, any bytes; escaped; NULL: none */
    bool category;    /* the column is one value of a category: 1 or 0 */
    int ago;          /* age of the value in samples; shown if > 0 */
    bool step;        /* the value is the step to that sample from the one before */
    double value;     /* of the sample */
    double low, high; /* normal range; not shown unless both are finite */
    bool beyond;      /* the value lies far beyond all earlier ones, whose range is then shown too */
    double earlier_low, earlier_high;
};

struct svi_alert_line {
    enum svi_alert_change state; /* open, update, close */
    const char *stream;
    const char *zone;                    /* of the times; NULL: UTC */
    const struct svi_alert_feature *top; /* `count`, most important first; only SVI_ALERT_TOP are used */
    int count;
    double novelty, p;
    bool by_rows; /* the next two are numbers of rows, not seconds */
    double since; /* when it began */
    double time;  /* of the sample */
};

/* Writes the line: valid UTF-8, terminated by NUL. Features that do not fit are left out whole. Returns the
 * length in bytes. */
size_t svi_alert_text(char out[SVI_ALERT_TEXT], const struct svi_alert_line *line);

/* An alert under a budget (alert_policy.h):
 *
 *     pump1 warning: vibration 1.7 while current is 1.5 (0.1 to 0.3 expected), by chance about once in 6
 *     weeks, since 03:12 CET
 *     pump1 notice: temp 45 on average for 30 min, 41 expected at this time of day (39.5 to 42.5), by ...
 *     pump1 notice: temp 55.5 on average for 3 h 0 min, 1.4 above the 54.1 expected at this time of day, ...
 *     pump1 notice: co2 rises faster than expected, from 637 to 2037 in 8 min, by chance less than ...
 *     pump1 notice: unusual combination of X 1.2 and Y 3.4 (each alone in its usual range), by chance ...
 *     pump1 notice: persistent deviation: temp 23 (usually 24 to 37), by chance about once in 4 days, ...
 *     pump1 serious, worse: vibration 2.4 ..., since Tue 2026-11-24 03:12 CET
 *     pump1 back to normal after 2 h 10 min (worst: serious, by chance about once in 4 days; began at ...)
 *     notice: x 4.2 on average for 30 rows, ..., by chance about once in 6,000 rows, since row 156
 *
 * HOW RARE. An unchanged stream is as surprising once in 1 / p rows, by the p of the leading detector. The
 * rate of the stream's rows makes a time of that number. No stream shows what happens less often than once in
 * SVI_ALERT_RAREST times its rows so far. The line then says "less than once in" that.
 *
 * The day is shown if it is not the sample's; times are in the zone of the line. */
#define SVI_ALERT_RAREST 10

/* How a feature deviates: its value; how much it varies; or its own value is as before, and that of
 * the feature that depends on it (`with`) is not the one expected. */
enum svi_alert_deviates { SVI_DEVIATES_VALUE = 0, SVI_DEVIATES_SPREAD, SVI_DEVIATES_OTHER };

struct svi_alert_fact {
    enum svi_alert_detector detector;
    svi_detector_basis *basis; /* NULL: there is no forecast, the normal range of all values follows */
    const char *name;          /* name, column and units as in svi_alert_feature */
    int column;
    bool category, with_category; /* as in svi_alert_feature */
    const char *unit, *with_unit;
    enum svi_alert_deviates deviates;
    int ago; /* this and the next as in svi_alert_feature */
    bool step;
    double value;          /* of the sample, or the mean of the readings over the last `span` */
    double expected;       /* forecast, or its mean over the span; NAN: unknown */
    double low, high;      /* normal range in its context; NAN: unknown. OTHER: of the other feature.
                              SPREAD: the range of the readings over the span */
    double span;           /* time since the change began, seconds or rows; 0: one sample */
    int with;              /* column of the feature that contributes most to its forecast; -1: none */
    const char *with_name; /* name and value of that feature, over the same span */
    double with_value;
};

struct svi_episode_line {
    enum svi_alert_change state;
    enum svi_alert_news news; /* reason of an update */
    enum svi_severity severity;
    const char *stream;
    const char *zone;                   /* of `since`, see features/calendar.h */
    const struct svi_alert_fact *facts; /* `count`, most important first; only SVI_ALERT_TOP are used */
    int count;
    bool combination;    /* the first two facts are anomalous together, each within its range */
    const char *opening; /* adjective of the leading detector, "persistent"; NULL: none */
    double surprise;     /* -log10 p, the largest of the episode so far */
    double rows;         /* of the stream so far; 0: unknown, so every rarity is shown as it is */
    double rows_a_day;   /* its rate; not used with by_rows */
    bool by_rows;        /* spans, since and time are rows, as in svi_alert_line */
    double since, time;
};

/* As svi_alert_text. */
size_t svi_episode_text(char out[SVI_ALERT_TEXT], const struct svi_episode_line *line);

/* A quality alert as such a line:
 *
 *     pump1 predictions: 17 % wrong (26 of 153 rows) since 10:42 UTC (after sample 41,230), 4.1 % before (41
 *     of 1,000 rows); moved most: a 0.9 -> 1.4
 *     pump1 predictions, worse: 31 % wrong (40 of 129 rows) since 10:42 UTC (...), 4.1 % before (...)
 *     pump1 predictions back to normal after 12 min: 4.3 % wrong, 4.1 % before, 17 % at worst (began at 10:42
 *     UTC)
 *     pump1 predictions settled at a new level after 3 h 0 min: 16 % wrong, 4.1 % before, 17 % at worst (...)
 *
 * A regression has "rmse 1.7 (153 rows) since ..., 0.41 before (1,000 rows)". */
struct svi_quality_feature {
    const char *name; /* name, column and unit as in svi_alert_feature */
    int column;
    const char *unit;
    double before, after; /* means */
    double deviation;     /* 0: unknown */
};

struct svi_quality_line {
    enum svi_alert_change state;
    bool regress; /* the figures are rmse; else shares of wrong predictions */
    bool adapted; /* it closes because the stream has settled at the new level */
    const char *stream;
    const char *zone; /* as in svi_alert_line */
    double before, after, worst;
    int64_t rows, wrong;               /* since the change: samples and, of classes, wrong ones */
    int64_t rows_before, wrong_before; /* likewise before it; 0 rows: not shown */
    bool by_rows;                      /* as in svi_alert_line */
    double since, time;
    int64_t number;                        /* of the last sample before the change */
    const struct svi_quality_feature *top; /* `count`, largest move first; only SVI_ALERT_TOP are used */
    int count;
};

/* As svi_alert_text. */
size_t svi_alert_quality_text(char out[SVI_ALERT_TEXT], const struct svi_quality_line *line);

/* ---- parts of a line, for other alerts */

/* Writes a feature's name as in svi_alert_feature. Returns `out`. */
#define SVI_ALERT_NAME 48
const char *svi_alert_name(char out[SVI_ALERT_NAME], const char *name, int column);

/* A value and its normal range as text, with at least `digits` digits. The width of the range sets the digits
 * of its bounds, unless the value lies nearer: then all have the digits that show how far outside it is. A
 * value far outside needs fewer. */
struct svi_alert_numbers {
    char value[SVI_HUMAN], low[SVI_HUMAN], high[SVI_HUMAN];
    bool ranged, outside; /* the range is known; the value lies outside it */
};
struct svi_alert_numbers svi_alert_numbers_of(double value, double low, double high, int digits);

/* "10:42 UTC" as in svi_human_since, "11:42 CET" in another zone, or "row 156". */
const char *svi_alert_since(char out[SVI_CALENDAR_MOMENT], const char *zone, bool by_rows, double since,
                            double now);

/* The name of a stream in lines: "" for SVI_STREAM_UNNAMED, which identifies nothing. */
const char *svi_alert_stream(const char *stream);

/* Begins a line with the escaped stream (or stream and key, as svi_alert_stream), truncated to
 * SVI_ALERT_SUBJECT. Returns the length. */
size_t svi_alert_begin(char *out, const char *stream);

/* Writes "pump1 quality alert ended: the settings changed"; `kind` is "quality alert". */
void svi_alert_ended(char out[SVI_ALERT_TEXT], const char *stream, const char *kind, const char *why);

/* Appends `text` at `at`, at the beginning of a line without its leading " " or ": ", if `reserved` bytes of
 * SVI_ALERT_TEXT stay free after it; otherwise nothing changes. Returns the new length. */
size_t svi_alert_append(char *out, size_t at, const char *text, size_t reserved);

#endif
