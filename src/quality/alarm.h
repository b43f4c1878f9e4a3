/* alarm.h: the quality alarm. It opens when the prequential error has risen beyond chance (drift.h), and
 * closes when the error is back near what it was, or has stayed where it is for SVI_ALARM_SETTLED samples.
 *
 * It returns what happened as values: who publishes them makes the text. A function of the judged samples
 * alone; one object, one thread at a time. */
#ifndef SVI_ALARM_H
#define SVI_ALARM_H

#include "base/archive.h"
#include "quality/drift.h"

#define SVI_ALARM_SETTLED 10000 /* samples without a change, after which a level is the normal one */
#define SVI_ALARM_SHIFTS  5     /* features named at most */

enum svi_alarm_change { SVI_ALARM_NONE = 0, SVI_ALARM_OPENED, SVI_ALARM_WORSENED, SVI_ALARM_CLOSED };

/* Shares of wrong samples are 0 to 1; the figure shown is that share, or of a regression the root mean
 * squared error in units of the target, NAN = not known. Read only. */
struct svi_alarm {
    bool on, regress;
    double rate;              /* false alarms a sample at most, above 0 where it is on */
    struct svi_drift *errors; /* NULL: none yet */
    struct svi_drift_moments moments;
    bool open, adapted;          /* an alarm is; it closed because the stream has settled */
    int64_t opened;              /* so far */
    double share, worst_share;   /* of wrong samples: before, and the highest since */
    double before, after, worst; /* the figure shown */
    double since;                /* time of the first sample after the change */
    int64_t number;              /* of the last one before it */
    int64_t span;                /* judged samples from the change to the one that showed it */
    struct svi_drift_shift *top; /* of the last rise, `count` of them; made with `errors` */
    int count;
};

/* rate 0: off. Nothing is allocated; owner: the caller, who frees. */
void svi_alarm_init(struct svi_alarm *s, bool regress, double rate);
void svi_alarm_free(struct svi_alarm *s);
void svi_alarm_reset(struct svi_alarm *s); /* as new, but for the counter */
void svi_alarm_configure(struct svi_alarm *s, double rate);

/* Features were dropped: their moments go, and the errors with which they belong together. */
void svi_alarm_prune(struct svi_alarm *s);

/* A feature becomes another one, between two samples. */
void svi_alarm_renew(struct svi_alarm *s, int feature);

/* Makes the errors. SVS_NO_MEMORY. */
svs_code svi_alarm_make(struct svi_alarm *s, svs_error *err);

/* Capacity for the row of a sample. SVS_NO_MEMORY: nothing has changed. */
static inline svs_code svi_alarm_reserve(struct svi_alarm *s, int d, svs_error *err) {
    if (s->on && !s->errors && svi_alarm_make(s, err) != SVS_OK)
        return SVS_NO_MEMORY;
    return s->on && d > s->moments.capacity ? svi_drift_moments_reserve(&s->moments, d, err) : SVS_OK;
}

/* A judged sample: 1 = wrong, 0 = right, or the error of a regression; its row x[d] (NULL: not known), for
 * which there is capacity; time in seconds, number in the stream. */
enum svi_alarm_change svi_alarm_update(struct svi_alarm *s, double error, const double *x, int d, double time,
                                       int64_t number);

/* An open alarm ends without a sample. False: none was open. */
bool svi_alarm_end(struct svi_alarm *s);

/* The clock that times were read from was moved: those after `from` move by `step`. */
void svi_alarm_move_times(struct svi_alarm *s, double from, double step);

/* Between two samples; loading goes into one from svi_alarm_init. */
void svi_alarm_archive(struct svi_archive *a, struct svi_alarm *s);

double svi_alarm_memory(double rate, int d); /* bytes besides the struct */

#endif
