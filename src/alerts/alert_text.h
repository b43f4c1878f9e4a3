/* alert_text.h: an alert as the line that a person reads on the phone at three in the morning:
 *
 *     pump1 vibration 4.1 (usual 0.9 to 1.3, earlier 0.6 to 2.1), novelty 0.82, p 0.0005, since 10:42 UTC
 *     pump1 vibration 4.1 (usual 0.9 to 1.3), novelty 0.82, p 0.001, since 10:42 UTC
 *     pump1 worse: vibration 9.2 (usual 0.9 to 1.3), novelty 0.97, p 0.0005, since 10:42 UTC
 *     pump1 back to normal after 12 min, worst grade 0.9, since 10:42 UTC
 *
 * Numbers have three digits, and more where fewer would not tell the value from what is usual. The day is
 * added when the alert began on another day than that of the sample, both in UTC; a time below 1e8 s is not
 * one since 1970 and is shown as it is: "since 350 s". */
#ifndef SVI_ALERT_TEXT_H
#define SVI_ALERT_TEXT_H

#include <stddef.h>

#include "alerts/alert.h"
#include "alerts/alert_policy.h"
#include "alerts/evidence.h"
#include "base/human.h"

#define SVI_ALERT_TEXT    400 /* bytes, the NUL included */
#define SVI_ALERT_SUBJECT 136 /* of the stream and a key, as a line begins with them, the NUL included */
#define SVI_ALERT_TOP     3   /* features named in a line */

struct svi_alert_feature {
    const char *name; /* any bytes, escaped and cut at 47; NULL = "feature 3" */
    int column;       /* from 0; for a feature without a name */
    const char *unit; /* of the values, any bytes, escaped; NULL = none */
    double value;     /* of the sample */
    double low, high; /* usual; left out when one of them is not finite */
    bool beyond;      /* the value lies far beyond the earlier range, which is shown then ... */
    double earlier_low, earlier_high;
};

struct svi_alert_line {
    enum svi_alert_change state; /* open, update, close */
    const char *stream;
    const struct svi_alert_feature
        *top; /* `count`, most telling first; all but the first three are ignored */
    int count;
    double novelty, p;
    double grade; /* the worst; shown when it closes */
    double since; /* seconds: when it began */
    double time;  /* seconds: of the sample */
};

/* Writes the line, valid UTF-8 and ended by a NUL; features that do not fit are left out whole. Returns its
 * length. */
size_t svi_alert_text(char out[SVI_ALERT_TEXT], const struct svi_alert_line *line);

/* An alert under a budget (alert_policy.h):
 *
 *     pump1 warning: vibration 1.7 while current is 1.5 (0.1 to 0.3 expected there), one in 2,000,000, since
 *         03:12 CET
 *     pump1 notice: temperature 45 for 30 min, 41 expected at this time of day (39.5 to 42.5), one in 300,000
 * ... pump1 notice: unusual combination of X 1.2 and Y 3.4 (each within its usual range), one in ... pump1
 * serious, worse: vibration 2.4 ..., since Tue 2026-11-24 03:12 CET pump1 back to normal after 2 h 10 min
 * (serious, one in 30,000,000 at worst), since ...
 *
 * "one in N" is the p of the detector that leads: what goes on as before surprises as much once in N samples.
 * The day is named where it is not that of the sample; times are in the zone that the calendar has taken. */
struct svi_alert_fact {
    enum svi_alert_detector detector;
    svi_detector_text *text; /* what follows the value; NULL: its usual range */
    const char *name;        /* as in svi_alert_feature */
    int column;
    const char *unit, *with_unit; /* likewise */
    double value;                 /* of the sample, or the mean of the last `seconds` */
    double expected;              /* NAN: not known */
    double low, high;             /* usual in its context, NAN: not known */
    double seconds;               /* that were judged together; 0: one sample */
    int with;                     /* column of the feature that its forecast owes most to, -1: none */
    const char *with_name;
    double with_value;
};

struct svi_episode_line {
    enum svi_alert_change state;
    enum svi_alert_news news; /* of an update */
    enum svi_severity severity;
    const char *stream;
    const struct svi_alert_fact *facts; /* `count`, most telling first; all but the first three are ignored */
    int count;
    bool combination;    /* the facts are features that are unusual together, each within its range */
    const char *opening; /* of the detector that leads; NULL: none */
    double surprise;     /* -log10 p; of a close the largest */
    double since, time;
    double lasted; /* seconds; of a close */
};

/* As svi_alert_text. */
size_t svi_episode_text(char out[SVI_ALERT_TEXT], const struct svi_episode_line *line);

/* A quality alert as such a line:
 *
 *     pump1 quality: errors 4.1 % -> 17 % since 10:42 UTC (after sample 41,230); moved most: vibration 0.9
 * -> 1.4 pump1 quality worse: errors 4.1 % -> 31 % since 10:42 UTC (after sample 41,230) pump1 quality back
 * to normal after 12 min: errors 4.3 %, before 4.1 %, worst 17 %, since 10:42 UTC pump1 quality stays as it
 * is after 3 h 0 min: errors 16 %, before 4.1 %, worst 17 %, since 10:42 UTC
 *
 * of a regression "rmse 0.41 -> 1.7". */
struct svi_quality_feature {
    const char *name; /* as in svi_alert_feature */
    int column;
    const char *unit;
    double before, after, deviation; /* means; 0 = not known */
};

struct svi_quality_line {
    enum svi_alert_change state;
    bool regress, adapted; /* it closes because the stream has settled at the new level */
    const char *stream;
    double before, after, worst;           /* shares of wrong ones; rmse */
    double since, time;                    /* seconds */
    int64_t number;                        /* of the last sample before the change */
    const struct svi_quality_feature *top; /* most telling first; all but the first three are ignored */
    int count;
};

size_t svi_quality_text(char out[SVI_ALERT_TEXT], const struct svi_quality_line *line);

/* A feature's name, as in svi_alert_feature. */
#define SVI_ALERT_NAME 48
const char *svi_alert_name(char out[SVI_ALERT_NAME], const char *name, int column);

/* The stream, escaped, with which a line begins. Returns the length. */
size_t svi_alert_begin(char *out, const char *stream);

/* Appends a text whole, if `reserved` bytes of SVI_ALERT_TEXT stay free behind it. Returns the length. */
size_t svi_alert_append(char *out, size_t at, const char *text, size_t reserved);

#endif
