/* alert_policy.h: the evidence of all detectors (evidence.h) as one alert an episode, under a budget
 * (budget.h).
 *
 * An alert opens at a sample that some detector finds as surprising as its level or more, and more so than
 * each of the SVI_BUDGET_APART samples before; not among the first `warmup` samples. While it is open nothing
 * more is reported than updates: when a detector's surprise over its level has grown by SVI_POLICY_WORSE
 * times since it was last reported, when another feature has reached a level, when a detector reaches its
 * level again after SVI_BUDGET_APART samples below SVI_POLICY_CLEAR of it, when it has become more severe. It
 * closes after SVI_POLICY_QUIET_ROWS samples, and at least `group` seconds, in which each detector was below
 * its level, those that had reached theirs in the last SVI_POLICY_HOLD_ROWS samples below SVI_POLICY_CLEAR of
 * it, or p was above `clear`: what comes back before that is the same episode.
 *
 * SURPRISE of a sample, as a single number for who wants to set a level of his own: the largest of the
 * detectors where it is SVI_POLICY_ONSET times that of each of the SVI_BUDGET_APART samples before, else 0:
 * an episode counts when it begins and when it becomes worse.
 *
 * THE ALARM of a sample is one number: the largest surprise over level of the detectors where that is a
 * record, 1 when an alert may open; elsewhere, and in the warm-up, at most SVI_POLICY_BELOW.
 *
 * FEEDBACK: what a person marked normal (svi_alert_policy_mark_normal) counts as a tenth below its level.
 *
 * SEVERITY: by w, the largest surprise over level so far, and by how long the episode has lasted: `serious`
 * from w 3 on, or from w 1.5 on after 6 hours; `warning` from w 1.5 on, or after 30 minutes; else `notice`. A
 * function of the calls alone. */
#ifndef SVI_ALERT_POLICY_H
#define SVI_ALERT_POLICY_H

#include "alerts/alert.h"
#include "alerts/budget.h"
#include "alerts/evidence.h"

/* What may be tuned. */
#define SVI_POLICY_WORSE      1.25
#define SVI_POLICY_CLEAR      0.6
#define SVI_POLICY_QUIET_ROWS 10  /* samples */
#define SVI_POLICY_HOLD_ROWS  180 /* samples */
#define SVI_POLICY_ONSET      1.05
#define SVI_POLICY_BELOW      0.5

#define SVI_POLICY_FEATURES 8  /* of an episode, remembered */
#define SVI_POLICY_NORMAL   32 /* surprises by features that a person marked normal, the last ones */

struct svi_alert_policy_normal {
    int detector, feature;
    double surprise, at; /* up to which; the day it was said (svi_budget.days) */
};

/* Why an open alert is reported again. */
enum svi_alert_news { SVI_POLICY_WORSENED = 0, SVI_POLICY_JOINED, SVI_POLICY_AGAIN, SVI_POLICY_LASTS };

enum svi_severity { SVI_SEVERITY_NOTICE = 0, SVI_SEVERITY_WARNING, SVI_SEVERITY_SERIOUS };

struct svi_alert_policy_options {
    double a_day;    /* alerts; 0: there is no policy, alert.h goes by p */
    double interval; /* see struct svi_budget */
    double group;    /* seconds, >= 0 */
    double clear;    /* p, in (0, 1) */
    int64_t warmup;
};

struct svi_alert_policy {
    struct svi_alert_policy_options o;
    struct svi_budget budget;
    double alarm;                 /* of the last sample */
    double surprise_now;          /* likewise */
    double ratio[SVI_DETECTORS];  /* surprise over level, of the last sample */
    enum svi_alert_detector lead; /* whose ratio is the largest, of those that opened it if some did */

    int64_t opened;                /* by this policy */
    double most[SVI_BUDGET_APART]; /* the largest surprises of the last samples ... */
    int most_at;                   /* ... and the place of the next one */
    int quiet[SVI_DETECTORS]; /* samples since the detector was above SVI_POLICY_CLEAR of its level ... */
    int idle[SVI_DETECTORS];  /* ... and since it was above it; at most SVI_POLICY_HOLD_ROWS + 1 */
    struct svi_alert_policy_normal *normal; /* SVI_POLICY_NORMAL; NULL: nothing was called so yet */
    int normal_count;

    /* Of the episode that is open. */
    double reported, worst; /* largest ratio: of what was reported, and of all */
    double began, busy;     /* day (svi_budget.days) of its first sample and of the last that was not calm */
    int calm;               /* samples since */
    enum svi_severity severity;
    enum svi_alert_news news;                         /* of the last update */
    enum svi_alert_detector detector;                 /* that led when it was last reported ... */
    double surprise;                                  /* ... and the largest of all leading ones */
    bool joined[SVI_DETECTORS];                       /* that have reached their level */
    int features[SVI_POLICY_FEATURES], feature_count; /* that have reached a level, -1: the row */
};

void svi_alert_policy_init(struct svi_alert_policy *d, const struct svi_alert_policy_options *o);

/* Before each row, and before a person marks something normal: room for that. SVS_NO_MEMORY: nothing has
 * changed. */
svs_code svi_alert_policy_reserve(struct svi_alert_policy *d, bool usual, svs_error *err);
void svi_alert_policy_clear(struct svi_alert_policy *d); /* frees; as new */

/* Other options; from no budget to one, or back, the past begins from nothing. */
void svi_alert_policy_configure(struct svi_alert_policy *d, const struct svi_alert_policy_options *o);

static inline bool svi_alert_policy_is_on(const struct svi_alert_policy *d) {
    return d->o.a_day > 0;
}

/* One sample: what the detectors say, engine time, and whether the sample has a time of its own. `a` holds
 * the episode and what is counted; of its options none is looked at. */
enum svi_alert_change svi_alert_policy_step(struct svi_alert_policy *d, struct svi_alert *a,
                                            const struct svi_evidence evidence[SVI_DETECTORS], double time,
                                            bool timed);

/* A person says that this much is usual: for SVI_BUDGET_MEMORY days what surprises that detector no more by
 * that feature reaches no level. */
void svi_alert_policy_mark_normal(struct svi_alert_policy *d, enum svi_alert_detector detector, int feature,
                                  double surprise);

/* Alerts a day so far, and the surprise with which a row opens one: NAN: not known, or no budget. */
double svi_alert_policy_alerts_a_day(const struct svi_alert_policy *d);
double svi_alert_policy_level(const struct svi_alert_policy *d);

const char *svi_alert_severity_name(enum svi_severity severity);

enum svi_severity svi_alert_severity(double worst, double seconds);

/* Neither the options nor what is of the last sample alone. */
void svi_alert_policy_archive(struct svi_archive *a, struct svi_alert_policy *d);

#endif
