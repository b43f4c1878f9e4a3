/* rules.h: plain rules that every plant expects of each sensor, apart from novelty and its p-values. Each is
 * explained in its file:
 *
 *     limits   rule_limits.c   a value outside the given limits
 *     beyond   rule_beyond.c   a value beyond all that the sensor showed, by a margin from its own tail
 *     stuck    rule_stuck.c    unchanged for longer than ever
 *     absent   rule_absent.c   no value in rows in which it usually has one
 *     rate     rule_beyond.c   a step from one row to the next larger than ever, by such a margin
 *     silent   rule_silent.c   no rows at all, by arrival
 *
 * NOTHING FLAPS. What is reported stays open until it has been well for 10 rows and a minute, or 3 rows and
 * an hour, or 1000 rows, running. While it is open, one sensor makes an update only when its excess has
 * doubled. What opens for more sensors within `group` seconds is one alert, and its updates name them.
 *
 * NOTHING IS MASKED BY A FAULT. What is reported does not count as seen, except for what has come twice: from
 * the third time on it is usual. Beyond what lasts for 1000 rows is taken for usual, and the alert closes.
 *
 * A function of the calls alone. */
#ifndef SVI_RULES_H
#define SVI_RULES_H

#include "alerts/alert.h"
#include "alerts/records.h"
#include "config/rule_settings.h"
#include "config/settings.h"
#include "linalg/kernels.h"

#define SVI_RULES_FEATURES 4096 /* columns with rules; of those beyond nothing is reported */
#define SVI_RULES_ALERTS   8    /* open at once of one rule; more sensors join the last one */
#define SVI_RULES_TOP      5    /* sensors shown of an alert */

/* What rules a column has (bits). */
enum { SVI_RULES_LIMITED = 1, SVI_RULES_JUDGED = 2, SVI_RULES_MISSED = 4 };

/* A sensor, or the stream, that is reported now. */
struct svi_rules_member {
    int rule, feature; /* -1: the stream */
    int alert;         /* its place */
    int64_t bad, well; /* rows: since it opened; well ones running, up to now */
    double well_since;
    double since;
    double value;         /* the worst */
    double low, high;     /* limits, or what it showed before; rows before, of stuck and absent in high */
    double excess, shown; /* the largest, and the largest reported */
    double rows;          /* stuck and absent: for that number */
};

struct svi_rules_alert {
    bool open;
    enum svi_alert_change change; /* to be reported */
    bool settled;                 /* it closes because what was beyond is taken for usual */
    int64_t number;               /* of the episode; 0 before it is reported */
    double since, opened;
    int members, total; /* now; so far */
    int first;          /* sensor, for the words at its end */
};

struct svi_rules {
    const struct svi_kernels *kernels;
    struct svi_rule_settings o;
    double group;
    bool any;   /* a rule is on */
    bool steps; /* a rule that is on looks at steps */
    bool grows; /* its arrays have what is needed so far */
    int d;      /* columns so far */
    int sides;  /* of the records: up, down, steps */
    int judged; /* series of which `beyond` shares its false alarms */

    /* Of each column. */
    struct svi_column_seen seen;
    double *reported_run;       /* the longest that was reported and does not count as seen */
    double *born;               /* rows before the first */
    double *gap, *longest_gap;  /* rows since the last value; the most of these so far */
    double *reported_gap;       /* as reported_run */
    double *gone;               /* time of the last value before the gap */
    struct svi_records records; /* sides x columns */
    double *row;                /* scratch */
    uint8_t *kind, *told;       /* bits: what it has; which rules are open */
    uint8_t *gaps;              /* scratch */

    struct svi_records_clock clock;
    int64_t rows;
    double first, time; /* engine time of the first and the last row */
    double gap_count;   /* columns without a value in the last row */
    bool left_out;      /* rows may leave columns out */
    struct svi_rules_member *open;
    int open_count, open_capacity;
    bool changed;                          /* there may be something to report */
    struct svi_rules_alert *alerts;        /* SVI_RULES_ALERTS of each rule; NULL: none is open */
    int64_t opened;                        /* so far */
    bool waits;                            /* for rows: the silence counts */
    int64_t intervals;                     /* of arrival, seen */
    double arrived, spent, pause, silence; /* last arrival; sum, longest; longest that was told */
};

/* grows: room comes with the rows, as one of many streams has it; else all at once for the columns. */
void svi_rules_init(struct svi_rules *r, bool grows);
void svi_rules_drop_alerts(struct svi_rules *r); /* without a word, when all sensors are well */
void svi_rules_clear(struct svi_rules *r); /* frees; as new, but for the options and the number of alerts */

/* Other settings, which were checked. What is no longer on ends (svi_rules_next). */
void svi_rules_configure(struct svi_rules *r, const struct svi_settings *s);

/* Before each row: room for d columns, and for what it may end. SVS_NO_MEMORY: nothing has changed. */
svs_code svi_rules_reserve(struct svi_rules *r, int d, svs_error *err);

/* A column, for which there is room, has these rules and limits from here on. */
void svi_rules_bind(struct svi_rules *r, int feature, int kind, double low, double high);
void svi_rules_bound(struct svi_rules *r, int d); /* after all of them: there are d columns */

/* A column begins from nothing. */
void svi_rules_renew(struct svi_rules *r, int feature);

/* An accepted row: gaps[j] not 0 where it has no value (NULL: it has all); d columns for which there is
 * room; its time and arrival in seconds. */
void svi_rules_row(struct svi_rules *r, const double *x, const uint8_t *gaps, int d, double time,
                   double arrival);

/* When the stream falls silent, on the arrival clock; INFINITY: never. And it has become that late. */
double svi_rules_deadline(const struct svi_rules *r);
double svi_rules_quiet(const struct svi_rules *r); /* seconds after its last row */
void svi_rules_pass(struct svi_rules *r, double now);

/* The arrival of the last row, or when a process began to wait for the next; -INFINITY: none came. */
double svi_rules_arrived(const struct svi_rules *r);

/* A process begins; all producers have said good-bye. */
void svi_rules_begin(struct svi_rules *r, double now);
void svi_rules_pause(struct svi_rules *r);

/* Where a row of a map has no value: a column j that it leaves out (marks[j] != round) or whose value is
 * missing
 * (`missing`, may be NULL). NULL: nowhere. Valid until the next call. */
const uint8_t *svi_rules_left_out(struct svi_rules *r, const uint32_t *marks, uint32_t round,
                                  const uint8_t *missing, int d);

/* Where a row is NAN. */
const uint8_t *svi_rules_holes(struct svi_rules *r, const double *x, int d);

/* Is there something to report? */
static inline bool svi_rules_pending(const struct svi_rules *r) {
    return r->changed;
}

/* The next alert that has changed, or NULL: the caller numbers it and says it, then calls again. `top`: its
 * sensors, the first ones at most; returned in *count. */
struct svi_rules_alert *svi_rules_next(struct svi_rules *r, enum svi_rule *rule,
                                       const struct svi_rules_member *top[SVI_RULES_TOP], int *count);
void svi_rules_reported(struct svi_rules_alert *a);

/* All alerts end; they are then to be reported. */
void svi_rules_end(struct svi_rules *r);

int svi_rules_open(const struct svi_rules *r); /* alerts */

void svi_rules_move_times(struct svi_rules *r, double from, double step);
void svi_rules_move_arrival(struct svi_rules *r, double step);

/* Bytes without the struct, for d columns. */
double svi_rules_memory(const struct svi_settings *s, int d);

/* Between two samples, with nothing to report; loading goes into one from svi_rules_configure. */
void svi_rules_archive(struct svi_archive *a, struct svi_rules *r);

/* What was heard when, on which only the rule `silent` depends. */
void svi_rules_silence_archive(struct svi_archive *a, struct svi_rules *r);

#endif
