/* rules.h: plain rules for each sensor, as operators expect them, independent of novelty and p-values. Each
 * is explained in its file:
 *
 *     limits   rule_limits.c   a value outside the given limits
 *     beyond   rule_beyond.c   a value beyond all earlier ones of the sensor, by its tail or its range
 *     stuck    rule_stuck.c    a value unchanged for longer than ever
 *     absent   rule_absent.c   no value in rows in which the column normally has one
 *     rate     rule_beyond.c   a step from one row to the next larger than ever, by such a margin
 *     silent   rule_silent.c   no rows at all, by arrival
 *
 * NOTHING FLAPS. A reported sensor stays reported until it has been well for 10 successive rows and a minute,
 * or 3 rows and an hour, or 1000 rows; with an off-delay, for that. With an on-delay, it is reported once its
 * condition has held for that. Sensors that open under one rule within `group` seconds share an alert. It is
 * updated when a sensor joins (at once; further ones within a minute of that wait for its end), when it
 * becomes more severe, and when an excess has doubled, then at least 30 minutes after the last report.
 *
 * NO FAULT MASKS THE NEXT. What is reported does not count as seen until it has been reported twice; the
 * third time it is normal. A value beyond its bound for 1000 rows becomes normal, and the alert closes.
 *
 * Everything depends on the calls alone. */
#ifndef SVI_RULES_H
#define SVI_RULES_H

#include "alerts/alert.h"
#include "alerts/alert_severity.h"
#include "alerts/mutes.h"
#include "alerts/records.h"
#include "config/rule_settings.h"
#include "config/settings.h"
#include "linalg/kernels.h"

#define SVI_RULES_FEATURES 4096 /* columns that can have rules; further ones are ignored */
#define SVI_RULES_ALERTS   8    /* most open alerts of one rule; further sensors join the newest */
#define SVI_RULES_TOP      5    /* most sensors shown of an alert */

/* The rules of a column (bits): it has limits; beyond, stuck and rate apply; absent applies. */
enum { SVI_RULES_LIMITED = 1, SVI_RULES_JUDGED = 2, SVI_RULES_MISSED = 4 };

/* A sensor, or the stream, that is reported under a rule. */
struct svi_rules_member {
    int rule, feature; /* enum svi_rule; column, or -1: the stream */
    int alert;         /* its index in svi_rules.alerts; -1: its on-delay is not over */
    int64_t held;      /* while it is not: rows in which the condition has held, and the time of the first */
    double held_since;
    int64_t bad, well; /* bad rows since it opened; successive well rows up to now */
    double well_since; /* time of the first of these well rows */
    double since;      /* when it began, seconds */
    int64_t since_row; /* svi_rules.rows then, the row included */
    double value;      /* the worst so far */
    double low, high; /* limits, or the earlier range; for stuck and absent `high` is rows, the most before */
    double excess, shown; /* largest excess; the one last reported */
    double rows;          /* stuck and absent: rows it has lasted */
    bool rest;            /* a machine at rest: a notice at most, and seen when it ends */
};

struct svi_rules_alert {
    bool open;
    enum svi_alert_change change; /* still to be reported */
    bool settled;                 /* it closes because the value has become normal */
    int64_t number;               /* in events; 0: not reported yet */
    double since, opened;         /* earliest start of a member; when the alert opened; seconds */
    int64_t since_row;            /* svi_rules.rows at that start, the row included; 0: of no row */
    int members, total;           /* now; since it opened */
    int first;                    /* column of the first member, for the line of the close */
    double reported_at;           /* svi_rules.elapsed at the last report, and ... */
    double joined_at;             /* ... at the last one of a sensor that joined */
    bool waits;                   /* a sensor that joined since then is still to be reported */
    enum svi_severity severity;   /* the highest so far */
    enum svi_severity reported;   /* as last reported */
    int features[SVI_RULES_TOP];  /* columns that the last report named, -1 after the last */
};

struct svi_rules {
    const struct svi_kernels *kernels;
    struct svi_rule_settings o;
    double group; /* seconds within which sensors share an alert */
    bool any;     /* a rule is on */
    bool steps;   /* a rule that is on assesses steps */
    bool grows;   /* arrays have only the capacity in use */
    int d;        /* columns so far */
    int sides;    /* of the records: up, down and, if 3, steps */
    int judged;   /* columns with SVI_RULES_JUDGED, which share the false reports of `beyond` */

    /* By column, owned, with capacity for seen.capacity columns. */
    struct svi_column_seen seen;
    double *reported_run;       /* longest run that was reported and does not count as seen, rows */
    double *born;               /* rows before the column was added */
    double *gap, *longest_gap;  /* rows since the last value; the most so far */
    double *reported_gap;       /* longest gap that was reported and does not count as seen */
    double *last_value_time;    /* time of the last value before the gap */
    struct svi_records records; /* sides x columns */
    double *row, *counted;      /* scratch: the row without gaps; what counts as seen of it */
    double *held, *held_since;  /* the farthest value that is held back (rule_beyond.c), and since when */
    uint8_t *hits;              /* bits, the newest value first: held back; 0: nothing is */
    uint8_t *kind, *open_rules; /* bits: SVI_RULES_LIMITED ...; 1 << rule if reported under it */
    uint8_t *gaps;              /* scratch: flags */

    struct svi_records_clock clock;
    int64_t rows;
    int64_t state_row;             /* row in which a sensor entered a new state by a jump; 0: none has */
    int holding;                   /* columns with hits */
    double first, time;            /* engine time of the first and the last row */
    double row_seconds;            /* seconds that the next row counts as in `elapsed`; 0: by its time */
    double elapsed;                /* seconds so far, for the spacing of updates */
    double gap_count;              /* columns without a value in the last row */
    bool left_out;                 /* a row has left out columns instead of marking them as missing */
    struct svi_rules_member *open; /* owned */
    int open_count, open_capacity;
    bool changed;                          /* there may be something to report */
    const struct svi_unlearned *unlearned; /* columns of the row at hand that do not count as seen (mutes.h);
                                              NULL: all do. Set by the caller before each row */
    struct svi_rules_alert *alerts;        /* SVI_RULES_ALERTS of each rule, owned; NULL: none is open */
    int64_t opened;                        /* alerts so far */

    /* Of the rule `silent`, by arrival, in seconds. */
    bool waits;            /* rows are expected, so a silence counts */
    int64_t intervals;     /* intervals between rows so far */
    double arrived, spent; /* last arrival; sum of the intervals */
    double pause;          /* longest interval, and silence that counts as seen */
    double silence;        /* longest silence that was reported and does not count as seen */
};

/* grows: capacity is taken as needed, as for one of many streams; else all at once for the columns. */
void svi_rules_init(struct svi_rules *r, bool grows);
void svi_rules_drop_alerts(struct svi_rules *r); /* without a report; no sensor may be reported */

/* Frees everything; as new, except for the options and the number of alerts. */
void svi_rules_clear(struct svi_rules *r);

/* Sets other settings, which must have been checked. Alerts of rules that are off now
 * end (svi_rules_next). */
void svi_rules_configure(struct svi_rules *r, const struct svi_settings *s);

/* Before each row: reserves capacity for d columns and for the alerts of the row. SVS_NO_MEMORY: nothing has
 * changed. */
svs_code svi_rules_reserve(struct svi_rules *r, int d, svs_error *err);

/* From now on a column, for which there is capacity, has these rules (bits) and limits. */
void svi_rules_bind(struct svi_rules *r, int feature, int kind, double low, double high);
void svi_rules_bound(struct svi_rules *r, int d); /* after all columns were bound: there are d */

/* A column starts again; its rules stay. */
void svi_rules_renew(struct svi_rules *r, int feature);

/* Processes an accepted row. x: d values, for which there is capacity; gaps: d flags, not 0 where a value is
 * missing (NULL: none); time and arrival in seconds. */
void svi_rules_row(struct svi_rules *r, const double *x, const uint8_t *gaps, int d, double time,
                   double arrival);

/* When the stream counts as silent, by the clock of arrival; INFINITY: never. svi_rules_quiet: that many
 * seconds after its last row. svi_rules_pass: it is `now`; opens the alert if the time has come. */
double svi_rules_deadline(const struct svi_rules *r);
double svi_rules_quiet(const struct svi_rules *r);
void svi_rules_pass(struct svi_rules *r, double now);

/* Arrival of the last row, or the time from which the process waits for one; -INFINITY: it does not wait. */
double svi_rules_arrived(const struct svi_rules *r);

/* The process starts: the wait restarts now. All producers have signed off: a silence is no fault. */
void svi_rules_begin(struct svi_rules *r, double now);
void svi_rules_pause(struct svi_rules *r);

/* The gaps of a row that arrived as a map: columns that it leaves out (marks[j] != round), and those whose
 * value is missing
 * (`missing`: d flags, may be NULL). NULL: no gap. Valid until the next call. */
const uint8_t *svi_rules_left_out(struct svi_rules *r, const uint32_t *marks, uint32_t round,
                                  const uint8_t *missing, int d);

/* The gaps of a row: where it is NaN. Valid until the next call. */
const uint8_t *svi_rules_holes(struct svi_rules *r, const double *x, int d);

/* May there be something to report? */
static inline bool svi_rules_pending(const struct svi_rules *r) {
    return r->changed;
}

/* The next alert that has changed; NULL: none. The caller numbers and reports it, calls svi_rules_reported,
 * and then calls this again. top: its first sensors, *count of them; valid until the next row. */
struct svi_rules_alert *svi_rules_next(struct svi_rules *r, enum svi_rule *rule,
                                       const struct svi_rules_member *top[SVI_RULES_TOP], int *count);
void svi_rules_reported(struct svi_rules_alert *a);

/* By what was reported: the alert that names this column, apart from the one numbered `but`; the alert of
 * that number. NULL: none. *rule: its rule. */
const struct svi_rules_alert *svi_rules_reporting(const struct svi_rules *r, int feature, int64_t but,
                                                  enum svi_rule *rule);
const struct svi_rules_alert *svi_rules_numbered(const struct svi_rules *r, int64_t number);

/* The alert of that number gets another one, which it may share with others. */
void svi_rules_renumber(struct svi_rules *r, int64_t number, int64_t to);

/* Ends all alerts; their closes are then to be reported. */
void svi_rules_end(struct svi_rules *r);

int svi_rules_open(const struct svi_rules *r); /* number of open alerts */

/* How severe an alert is at `time`, as alert_severity.h decides: the highest of its members, by the distance
 * from the limits or the range in widths of these, or by how long what has no value lasts. A machine at rest
 * leaves its alert as severe as it was. */
enum svi_severity svi_rules_severity(const struct svi_rules *r, const struct svi_rules_alert *a, double time);

/* Follow shifts of the clock of rows (times after `from` move by `step`) and of that of arrival. Seconds. */
void svi_rules_move_times(struct svi_rules *r, double from, double step);
void svi_rules_move_arrival(struct svi_rules *r, double step);

/* Bytes besides the struct, for d columns, once all is full. */
double svi_rules_memory(const struct svi_settings *s, int d);

/* Between two samples, with nothing to report. Load into an object after svi_rules_configure. */
void svi_rules_archive(struct svi_archive *a, struct svi_rules *r);

/* The arrivals, which only the rule `silent` depends on. */
void svi_rules_silence_archive(struct svi_archive *a, struct svi_rules *r);

#endif
