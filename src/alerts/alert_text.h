/* alert_text.h: an alert as one line for a person who reads it on a phone at three in the morning:
 *
 *     pump1 vibration 4.1 (usual 0.9 to 1.3, earlier 0.6 to 2.1), novelty 0.82, p 0.0005, since 10:42 UTC
 *     pump1 vibration 4.1 (usual 0.9 to 1.3), novelty 0.82, p 0.001, since 10:42 UTC
 *     pump1 worse: vibration 9.2 (usual 0.9 to 1.3), novelty 0.97, p 0.0005, since 10:42 UTC
 *     pump1 back to normal after 12 min, worst grade 0.9, since 10:42 UTC
 *
 * Numbers have three digits, and more where fewer would not distinguish the value from its normal range. The
 * day is added when the alert began on another day than the sample's, both in UTC. A time below 1e8 s is not
 * counted from 1970 and is shown in seconds: "since 350 s". */
#ifndef SVI_ALERT_TEXT_H
#define SVI_ALERT_TEXT_H

#include <stddef.h>

#include "alerts/alert.h"
#include "alerts/alert_policy.h"
#include "alerts/evidence.h"
#include "base/human.h"

#define SVI_ALERT_TEXT    400 /* bytes, the NUL included */
#define SVI_ALERT_SUBJECT 136 /* bytes of the stream and key that begin a line, the NUL included */
#define SVI_ALERT_TOP     3   /* most features named in a line */

struct svi_alert_feature {
    const char *name; /* any bytes; escaped, and truncated to 47; NULL: shown as "feature 3" */
    int column;       /* from 0; shown for a feature without a name */
    const char *unit; /* of the values, any bytes; escaped; NULL: none */
    double value;     /* of the sample */
    double low, high; /* normal range; not shown unless both are finite */
    bool beyond;      /* the value lies far beyond the earlier range, which is then shown too */
    double earlier_low, earlier_high;
};

struct svi_alert_line {
    enum svi_alert_change state; /* open, update, close */
    const char *stream;
    const struct svi_alert_feature *top; /* `count`, most important first; only SVI_ALERT_TOP are used */
    int count;
    double novelty, p;
    double grade; /* the worst, 0 to 1; shown at the close */
    double since; /* when it began, seconds */
    double time;  /* of the sample, seconds */
};

/* Writes the line: valid UTF-8, terminated by NUL. Features that do not fit are left out whole. Returns the
 * length in bytes. */
size_t svi_alert_text(char out[SVI_ALERT_TEXT], const struct svi_alert_line *line);

/* An alert under a budget (alert_policy.h):
 *
 *     pump1 warning: vibration 1.7 while current is 1.5 (0.1 to 0.3 expected there), one in 2,000,000, ...
 *     pump1 notice: temperature 45 for 30 min, 41 expected at this time of day (39.5 to 42.5), one in ...
 *     pump1 notice: unusual combination of X 1.2 and Y 3.4 (each within its usual range), one in 300,000, ...
 *     pump1 serious, worse: vibration 2.4 ..., since Tue 2026-11-24 03:12 CET
 *     pump1 back to normal after 2 h 10 min (serious, one in 30,000,000 at worst), since ...
 *
 * "one in N" is 1 / p of the leading detector: an unchanged stream is as surprising once in N samples. The
 * day is shown if it is not the sample's; times are in the zone set in the
 * calendar (svi_calendar_set_zone). */
struct svi_alert_fact {
    enum svi_alert_detector detector;
    svi_detector_text *text; /* writes what follows the value; NULL: the normal range follows */
    const char *name;        /* name, column and units as in svi_alert_feature */
    int column;
    const char *unit, *with_unit;
    double value;          /* of the sample, or the mean over the last `seconds` */
    double expected;       /* forecast; NAN: unknown */
    double low, high;      /* normal range in its context; NAN: unknown */
    double seconds;        /* span that was assessed as a whole; 0: one sample */
    int with;              /* column of the feature that contributes most to its forecast; -1: none */
    const char *with_name; /* name and value of that feature */
    double with_value;
};

struct svi_episode_line {
    enum svi_alert_change state;
    enum svi_alert_news news; /* reason of an update */
    enum svi_severity severity;
    const char *stream;
    const struct svi_alert_fact *facts; /* `count`, most important first; only SVI_ALERT_TOP are used */
    int count;
    bool combination;    /* the first two facts are anomalous together, each within its range */
    const char *opening; /* words of the leading detector before the facts; NULL: none */
    double surprise;     /* -log10 p; at a close the largest of the episode */
    double since, time;  /* as in svi_alert_line */
    double lasted;       /* seconds; used at a close */
};

/* As svi_alert_text. */
size_t svi_episode_text(char out[SVI_ALERT_TEXT], const struct svi_episode_line *line);

/* A quality alert as such a line:
 *
 *     pump1 quality: errors 4.1 % -> 17 % (26 of 153 rows, 41 of 1,000 before) since 10:42 UTC (after sample
 *     41,230); moved most: a 0.9 -> 1.4
 *     pump1 quality worse: errors 4.1 % -> 31 % (40 of 129 rows, 41 of 1,000 before) since 10:42 UTC (...)
 *     pump1 quality back to normal after 12 min: errors 4.3 %, before 4.1 %, worst 17 %, since 10:42 UTC
 *     pump1 quality stays as it is after 3 h 0 min: errors 16 %, before 4.1 %, worst 17 %, since 10:42 UTC
 *
 * Of a regression: "rmse 0.41 -> 1.7". */
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
    double before, after, worst;
    int64_t rows, wrong;                   /* since the change: samples and, of classes, wrong ones */
    int64_t rows_before, wrong_before;     /* likewise before it; 0 rows: not shown */
    double since, time;                    /* as in svi_alert_line */
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

/* Begins a line with the escaped stream, truncated to SVI_ALERT_SUBJECT. Returns the length. */
size_t svi_alert_begin(char *out, const char *stream);

/* Appends `text` at `at` if `reserved` bytes of SVI_ALERT_TEXT stay free after it; otherwise nothing changes.
 * Returns the new length. */
size_t svi_alert_append(char *out, size_t at, const char *text, size_t reserved);

#endif
