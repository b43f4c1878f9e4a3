/* alarm.h: the quality alarm. It opens when the prequential error has risen beyond chance (drift.h). It
 * closes when the error is back near its earlier level, or has kept its level for SVI_ALARM_SETTLED samples.
 *
 * A rise is reported if it has SVI_ALARM_ROWS samples of evidence, if the time of day does not explain it
 * (error_hours.h), and if the budget allows it (rise_budget.h). One that the budget withholds is followed all
 * the same, in silence; it is reported if it becomes large enough. An open alert that becomes worse is
 * reported 30 minutes after the last report at the earliest.
 *
 * Changes are returned as values; the publisher formats them. The alarm is a function of the scored samples
 * alone. One object, one thread at a time. */
#ifndef SVI_ALARM_H
#define SVI_ALARM_H

#include "base/archive.h"
#include "quality/drift.h"
#include "quality/error_hours.h"
#include "quality/rise_budget.h"

#define SVI_ALARM_SETTLED 10000 /* samples without a change, after which a level counts as normal */
#define SVI_ALARM_ROWS    20    /* samples after the change, at least */
#define SVI_ALARM_SHIFTS  5     /* features named in an alarm, at most */

enum svi_alarm_change { SVI_ALARM_NONE = 0, SVI_ALARM_OPENED, SVI_ALARM_WORSENED, SVI_ALARM_CLOSED };

/* Samples of a stretch, and wrong ones among them. */
struct svi_alarm_rows {
    int64_t n, wrong;
};

/* Shares of wrong samples are 0 to 1. The published figure is that share for classes; for a regression it is
 * the root mean squared error in units of the target. NAN: not known. Read only. */
struct svi_alarm {
    bool on, regress;
    double rate;              /* false alarms per sample, at most; above 0 while `on` */
    struct svi_drift *errors; /* the change detector; NULL until svi_alarm_make */
    struct svi_drift_moments moments;
    struct svi_error_hours *hours; /* owned, with `errors` */
    struct svi_rise_budget rises;
    double policies;    /* streams that share the budget; below 2: this one has it alone */
    double row_seconds; /* of the next sample: what it counts as in the budget; 0: by its time */
    bool dated;         /* of the next sample: its time says what hour it is */
    bool rose;          /* the last sample showed a rise, reported or not */
    bool published;     /* the open alarm has been reported */
    bool worse;         /* it has become worse since the last report */
    double reported_at; /* day of the last report (rises.days) */
    struct svi_alarm_rows rows_before, rows; /* before it opened, and since the last rise */
    bool open, adapted; /* an alarm is open, reported or not; the last one closed because it has settled */
    int64_t opened;     /* alarms so far */
    double share, worst_share;   /* of wrong samples: before the change, and the highest since */
    double before, after, worst; /* the published figure: before, after the last change, highest since */
    double since;                /* time of the first sample after the change, seconds */
    int64_t number;              /* stream number of the last sample before the change */
    int64_t span;                /* scored samples from the change to the one that revealed it */
    struct svi_drift_shift *top; /* features that moved at the last rise: `count` of them; owned */
    int count;
};

/* rate 0: off. Allocates nothing. Owner: the caller, which frees. */
void svi_alarm_init(struct svi_alarm *s, bool regress, double rate);
void svi_alarm_free(struct svi_alarm *s);
void svi_alarm_reset(struct svi_alarm *s); /* as new; the counter `opened` is kept */

/* Sets the rate, 0 to 1. Turning the alarm off drops what it has collected. */
void svi_alarm_configure(struct svi_alarm *s, double rate);

/* Features were dropped: discards the moments and the errors collected with them. */
void svi_alarm_prune(struct svi_alarm *s);

/* Column `feature` now holds another feature; called between two samples. */
void svi_alarm_renew(struct svi_alarm *s, int feature);

/* Allocates the change detector. SVS_NO_MEMORY. */
svs_code svi_alarm_make(struct svi_alarm *s, svs_error *err);

/* Reserves capacity for a row of d features. SVS_NO_MEMORY: nothing has changed. */
static inline svs_code svi_alarm_reserve(struct svi_alarm *s, int d, svs_error *err) {
    if (s->on && !s->errors && svi_alarm_make(s, err) != SVS_OK)
        return SVS_NO_MEMORY;
    return s->on && d > s->moments.capacity ? svi_drift_moments_reserve(&s->moments, d, err) : SVS_OK;
}

/* One scored sample. error: 1 wrong, 0 right; for a regression the signed error. x[d]: its row, within the
 * reserved capacity (NULL: not known). time: seconds; number: its position in the stream. */
enum svi_alarm_change svi_alarm_update(struct svi_alarm *s, double error, const double *x, int d, double time,
                                       int64_t number);

/* Ends an open alarm without a sample. False: none was open. */
bool svi_alarm_end(struct svi_alarm *s);

/* The clock was set: times after `from` move by `step` seconds. */
void svi_alarm_move_times(struct svi_alarm *s, double from, double step);

/* Between two samples. Loads into an object from svi_alarm_init. */
void svi_alarm_archive(struct svi_archive *a, struct svi_alarm *s);

double svi_alarm_memory(double rate, int d); /* bytes besides the struct */

#endif
