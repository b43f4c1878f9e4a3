/* alert_policy.h: the evidence of all detectors (evidence.h) as one alert an episode, under a budget
 * (budget.h).
 *
 * OPEN. An alert opens after `warmup` samples, at a sample whose surprise reaches the level of some
 * detector. The surprise must also exceed that detector's surprise at each of the samples before
 * that a record spans (svi_budget.apart).
 *
 * UPDATE. An open alert reports an update at once when it becomes more severe, or when another
 * feature reaches a level. Features that reach a level within a minute of such an update wait for
 * the end of that minute, or for the close. All other updates are at least 30 minutes apart, and
 * each needs a reason:
 *  - the largest surprise over level has grown to SVI_POLICY_WORSE times the one last reported;
 *  - a detector has reached its level again after SVI_BUDGET_APART samples below SVI_POLICY_CLEAR
 *    of it;
 *  - the alert has lasted four times as long as at the last report (30 min, 2 h, 8 h and so on).
 * Times are those of the budget, in which a row without its own time counts as `interval`.
 *
 * CLOSE. It closes after a hold-off of SVI_POLICY_QUIET_ROWS quiet samples that span at least
 * `group` seconds. A sample is quiet when every detector is below its level or has a p above
 * `clear`. For a detector that has joined the episode and was at its level within the last
 * SVI_POLICY_HOLD_ROWS samples, SVI_POLICY_CLEAR of the level takes the place of the level. What
 * recurs before the close is the same episode.
 *
 * SURPRISE of a sample is a single number for clients that set a level of their own. It is the
 * largest surprise of the detectors where that exceeds SVI_POLICY_ONSET times that of each of the
 * SVI_BUDGET_APART samples before, else 0. An episode counts when it begins and when it becomes
 * worse.
 *
 * ALARM of a sample is a single number too. It is the largest surprise over level of the detectors
 * (an alert may open from 1 on). A detector for which the sample is no record counts
 * SVI_POLICY_BELOW at most. In the warm-up every detector does.
 *
 * FEEDBACK. A surprise that a person marked normal (svi_alert_policy_mark_normal) counts as a tenth below its
 * level.
 *
 * SEVERITY is decided in alert_severity.h. It depends on the largest surprise over level so far, on
 * how fast it rose, and on how long the episode has lasted. Everything here depends on the calls
 * alone. */
#ifndef SVI_ALERT_POLICY_H
#define SVI_ALERT_POLICY_H

#include "alerts/alert.h"
#include "alerts/alert_severity.h"
#include "alerts/budget.h"
#include "alerts/evidence.h"

/* Tuning. WORSE: growth of the ratio for an update. CLEAR: the clear level, as a part of the level. ONSET:
 * see SURPRISE. BELOW: the largest alarm of a sample that cannot open an alert. */
#define SVI_POLICY_WORSE      1.25
#define SVI_POLICY_CLEAR      0.6
#define SVI_POLICY_QUIET_ROWS 10  /* samples */
#define SVI_POLICY_HOLD_ROWS  180 /* samples */
#define SVI_POLICY_ONSET      1.05
#define SVI_POLICY_BELOW      0.5

#define SVI_POLICY_FEATURES 16 /* features of an episode that are remembered; more make no news */
#define SVI_POLICY_NORMAL   32 /* surprises marked normal that are kept, the newest ones */

struct svi_alert_policy_normal {
    int detector, feature;
    double surprise; /* -log10 p up to which it holds */
    double at;       /* day of the verdict (svi_budget.days) */
};

/* Why an open alert is reported again. */
enum svi_alert_news { SVI_POLICY_WORSENED = 0, SVI_POLICY_JOINED, SVI_POLICY_AGAIN, SVI_POLICY_LASTS };

struct svi_alert_policy_options {
    double a_day;    /* the budget, alerts a day; 0: the policy is off, and alert.h decides by p */
    double interval; /* seconds, see struct svi_budget */
    double group;    /* seconds of the hold-off before a close, >= 0 */
    double clear;    /* a p above this holds no alert open; in (0, 1) */
    int64_t warmup;  /* samples before the first alert */
};

struct svi_alert_policy {
    struct svi_alert_policy_options o;
    struct svi_budget budget;
    double alarm;                 /* of the last sample (ALARM) */
    double surprise_now;          /* of the last sample (SURPRISE) */
    double ratio[SVI_DETECTORS];  /* surprise over level of the last sample, by detector */
    enum svi_alert_detector lead; /* the detector with the largest ratio, among those at their level if any */

    int64_t opened;                /* alerts of this policy */
    double most[SVI_BUDGET_APART]; /* ring: the largest surprise of each of the last samples */
    int most_at;                   /* place of the next one in the ring */
    int quiet[SVI_DETECTORS]; /* samples since the detector was at SVI_POLICY_CLEAR of its level or above */
    int idle[SVI_DETECTORS];  /* samples since it was at its level or above; both saturate */
    struct svi_alert_policy_normal
        *normal; /* SVI_POLICY_NORMAL of them, owned; NULL until the first verdict */
    int normal_count;

    /* Of the open episode. */
    double reported, worst; /* largest ratio that was reported, and largest of all */
    double first;           /* ratio of its first sample */
    double reported_at;     /* day of the last report, and ... */
    double joined_at;       /* ... of the last one that named another feature */
    bool again;             /* a detector has reached its level again since the last report */
    double began, busy; /* day (svi_budget.days) of its first sample and of the last one that was not quiet */
    int quiet_rows;     /* samples since then */
    enum svi_severity severity;
    enum svi_alert_news news;                         /* of the last update */
    enum svi_alert_detector detector;                 /* the leading one when it was last reported */
    double surprise;                                  /* largest surprise of the leading detectors */
    bool joined[SVI_DETECTORS];                       /* detectors that have reached their level */
    int features[SVI_POLICY_FEATURES], feature_count; /* columns that have reached a level; -1: the row */
    int features_reported;                            /* of them, the first ones */
    int features_before; /* the same before the last sample: the report names those after it */
};

void svi_alert_policy_init(struct svi_alert_policy *d, const struct svi_alert_policy_options *o);

/* Reserves capacity for the next row and, with `mark`, for one more surprise marked normal. SVS_NO_MEMORY:
 * nothing has changed. */
svs_code svi_alert_policy_reserve(struct svi_alert_policy *d, bool mark, svs_error *err);

/* Frees everything; the policy is as after svi_alert_policy_init with the same options. */
void svi_alert_policy_clear(struct svi_alert_policy *d);

/* Sets other options. When the budget is switched on or off, the past starts from nothing. */
void svi_alert_policy_configure(struct svi_alert_policy *d, const struct svi_alert_policy_options *o);

static inline bool svi_alert_policy_is_on(const struct svi_alert_policy *d) {
    return d->o.a_day > 0;
}

/* Processes one sample: the evidence of all detectors; engine time in seconds; `timed`: the sample has its
 * own time. `a` holds the episode and the counters; its options are not used. */
enum svi_alert_change svi_alert_policy_step(struct svi_alert_policy *d, struct svi_alert *a,
                                            const struct svi_evidence evidence[SVI_DETECTORS], double time,
                                            bool timed);

/* A person marks this surprise normal: for SVI_BUDGET_MEMORY days, surprises of that detector at that feature
 * up to this size stay below their level. */
void svi_alert_policy_mark_normal(struct svi_alert_policy *d, enum svi_alert_detector detector, int feature,
                                  double surprise);

/* Alerts a day so far, and the surprise at which a row opens an alert. NAN: not known yet, or no budget. */
double svi_alert_policy_alerts_a_day(const struct svi_alert_policy *d);
double svi_alert_policy_level(const struct svi_alert_policy *d);

/* Includes neither the options nor what belongs to the last sample alone. */
void svi_alert_policy_archive(struct svi_archive *a, struct svi_alert_policy *d);

#endif
