/* One alert an episode, from the evidence of all detectors.
 *
 * Start with svi_alert_policy_step. It first condenses the sample (policy_read): each detector's surprise
 * over its level, whether that is a record, and whether all detectors are quiet. Surprises that a person has
 * marked normal are lowered below their level there. The alarm and the fate of the alert (policy_open,
 * policy_continue) follow from that reading alone.
 *
 * The budget receives every surprise before the decision, and after it learns which excursions belonged to an
 * alert. Levels change last. No sample is therefore assessed by a level that already knows it.
 *
 * In this file `ratio` is a surprise over its level: 1 is the level itself. */
#include "alerts/alert_policy.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"

/* GREATEST keeps p = 0 finite, because archives of peaks hold only finite numbers. MARKED_NORMAL lies above
 * SVI_POLICY_CLEAR, so a verdict keeps an alert from opening but does not end one that its detector is still
 * part of. */
#define DAY           86400.0
#define GREATEST      300.0       /* largest surprise, -log10 p: beyond any p */
#define MARKED_NORMAL 0.9         /* ratio of what a person marked normal */
#define UPDATE_EVERY  (30 * 60.0) /* seconds between updates without another feature or severity */
#define LASTS_APART   3.0         /* and of what merely lasts: times its age at the last report */
#define JOIN_EVERY    60.0        /* seconds between updates that name further features */

void svi_alert_policy_init(struct svi_alert_policy *d, const struct svi_alert_policy_options *o) {
    /* An alert that p opened before there was a budget has no ratio; it is measured from the level itself. */
    *d = (struct svi_alert_policy){.o = *o, .reported = 1, .worst = 1};
    svi_budget_init(&d->budget, o->a_day, o->interval);
    d->budget.group = o->group;
}

void svi_alert_policy_clear(struct svi_alert_policy *d) {
    const struct svi_alert_policy_options o = d->o;
    svi_budget_clear(&d->budget);
    svi_free(d->normal);
    svi_alert_policy_init(d, &o);
}

svs_code svi_alert_policy_reserve(struct svi_alert_policy *d, bool mark, svs_error *err) {
    /* The list is allocated with the first verdict; most streams never get one. */
    if (mark && !d->normal && !(d->normal = svi_alloc_plain_array(SVI_POLICY_NORMAL, sizeof *d->normal)))
        return svi_fail_memory(err, "what was marked normal");
    return svi_budget_reserve(&d->budget, err);
}

void svi_alert_policy_configure(struct svi_alert_policy *d, const struct svi_alert_policy_options *o) {
    /* While the budget was off, no row reached it, so an older past would have a hole: start from nothing. A
     * change of the number alone keeps the past, because only the levels depend on it. */
    if ((o->a_day > 0) != (d->o.a_day > 0)) {
        svi_alert_policy_clear(d);
        svi_alert_policy_init(d, o);
        return;
    }
    d->o = *o;
    d->budget.group = o->group;
    svi_budget_set(&d->budget, o->a_day, o->interval);
}

void svi_alert_policy_mark_normal(struct svi_alert_policy *d, enum svi_alert_detector detector, int feature,
                                  double surprise) {
    const struct svi_alert_policy_normal u = {(int)detector, feature, surprise, d->budget.days};
    svs_error err;
    /* svi_alert_stage_verdict reserved the list before it changed anything. If that was skipped and memory is
     * short here, only the effect of this verdict is lost. */
    if (svi_alert_policy_reserve(d, true, &err) != SVS_OK)
        return;
    if (d->normal_count == SVI_POLICY_NORMAL)
        /* A full list drops its oldest entry: entries are in the order of their verdicts. */
        memmove(d->normal, d->normal + 1, (size_t)--d->normal_count * sizeof *d->normal);
    d->normal[d->normal_count++] = u;
}

double svi_alert_policy_alerts_a_day(const struct svi_alert_policy *d) {
    return svi_alert_policy_is_on(d) && d->budget.days > 0 ? (double)d->opened / d->budget.days : NAN;
}

double svi_alert_policy_level(const struct svi_alert_policy *d) {
    const double level = d->budget.detector[SVI_DETECTOR_ROW].level;
    return svi_alert_policy_is_on(d) && isfinite(level) ? level : NAN;
}

/* ---- one sample */

/* Rows that limit what can be known: the policy's own, times the policies that share the budget. Each must be
 * surprised that many times more rarely than one alone, and together they have seen that many times more. */
static int64_t policy_rows(const struct svi_alert_policy *d) {
    return (int64_t)fmin(1e15, (double)d->budget.rows * fmax(1, d->budget.share.policies));
}

/* A sample as the alert sees it. */
struct policy_reading {
    bool reached[SVI_DETECTORS]; /* at its level or above, and a record */
    bool any;                    /* some detector has reached its level */
    bool quiet;                  /* no detector keeps an alert open */
    bool again;                  /* a detector has reached its level after a quiet period */
    double ratio;                /* largest ratio of those that have reached their level; 0: none has */
};

/* A verdict holds for SVI_BUDGET_MEMORY days and up to the surprise that was reported then: a larger one at
 * the same feature is news. */
static bool policy_is_normal(const struct svi_alert_policy *d, int detector, const struct svi_evidence *f) {
    for (int i = 0; i < d->normal_count; i++) {
        const struct svi_alert_policy_normal *u = &d->normal[i];
        if (u->detector == detector && u->feature == f->feature && f->surprise <= u->surprise &&
            d->budget.days - u->at <= SVI_BUDGET_MEMORY)
            return true;
    }
    return false;
}

/* surprise_now (alert_policy.h, SURPRISE). `largest`: of all detectors at this sample. The ring holds the
 * SVI_BUDGET_APART samples before it, and takes this sample only after the comparison. */
static void policy_surprise(struct svi_alert_policy *d, double largest) {
    double before = 0;
    for (int i = 0; i < SVI_BUDGET_APART; i++)
        before = d->most[i] > before ? d->most[i] : before;
    d->surprise_now = largest > SVI_POLICY_ONSET * before ? largest : 0;
    d->most[d->most_at] = largest;
    d->most_at = (d->most_at + 1) % SVI_BUDGET_APART;
}

/* Updates how long a detector has been quiet, and idle. */
static void policy_track(struct svi_alert_policy *d, int detector, double ratio) {
    /* The two limits differ on purpose. `quiet`, below SVI_POLICY_CLEAR, decides `again`; `idle`, below the
     * level, decides how long a detector is held to the clear level. Both saturate, so neither overflows. */
    const int quiet = d->quiet[detector] + 1, idle = d->idle[detector] + 1;
    d->quiet[detector] = ratio >= SVI_POLICY_CLEAR      ? 0
                         : quiet < SVI_POLICY_HOLD_ROWS ? quiet
                                                        : SVI_POLICY_HOLD_ROWS;
    d->idle[detector] = ratio >= 1 ? 0 : idle <= SVI_POLICY_HOLD_ROWS ? idle : SVI_POLICY_HOLD_ROWS + 1;
}

static void policy_read(struct svi_alert_policy *d, const struct svi_evidence *f, struct policy_reading *r) {
    *r = (struct policy_reading){.quiet = true};
    double largest = 0;
    d->alarm = 0;
    d->lead = SVI_DETECTOR_ROW;
    for (int i = 0; i < SVI_DETECTORS; i++) {
        const double found = f[i].surprise > 0 ? f[i].surprise < GREATEST ? f[i].surprise : GREATEST : 0;
        const double surprise = svi_evidence_known(found, policy_rows(d)),
                     level = d->budget.detector[i].level;
        double ratio = surprise / level;
        /* The budget takes the surprise unchanged, verdict or not: otherwise levels would forget what the
         * stream does, and fall. */
        const bool record = svi_budget_surprise(&d->budget, (enum svi_alert_detector)i, surprise);
        if (ratio >= MARKED_NORMAL && policy_is_normal(d, i, &f[i]))
            ratio = MARKED_NORMAL;
        ratio = f[i].early ? 0 : ratio;
        d->ratio[i] = ratio;
        /* The alarm of a sample that is no record stays below 1: an alert cannot open there. */
        const double counts = record || ratio < SVI_POLICY_BELOW ? ratio : SVI_POLICY_BELOW;
        largest = found > largest ? found : largest;
        d->alarm = counts > d->alarm ? counts : d->alarm;
        r->reached[i] = record && ratio >= 1;
        /* Before policy_track, which resets `quiet` at this sample. */
        r->again = r->again || (r->reached[i] && d->quiet[i] >= SVI_BUDGET_APART);
        policy_track(d, i, ratio);
        /* A detector that has reached its level beats a larger ratio that is no record. Among two of the same
         * kind the larger ratio leads, and the earlier detector wins a tie. */
        if (r->reached[i] != r->reached[d->lead] ? r->reached[i] : ratio > d->ratio[d->lead])
            d->lead = (enum svi_alert_detector)i;
        r->any = r->any || r->reached[i];
        r->ratio = r->reached[i] ? fmax(r->ratio, ratio) : r->ratio;
        /* Hysteresis: a detector that opened the alert or joined it must fall below its clear level, else a
         * value near the level would open and close in turns. After SVI_POLICY_HOLD_ROWS idle samples the
         * level itself is enough. A surprise whose p is above `clear` never holds an alert open. */
        const bool holds = d->joined[i] && d->idle[i] <= SVI_POLICY_HOLD_ROWS;
        r->quiet = r->quiet && (ratio < (holds ? SVI_POLICY_CLEAR : 1) ||
                                surprise < -log10(d->o.clear));
    }
    policy_surprise(d, largest);
}

/* Adds a feature, unless it is known. A feature that is new in the episode is reported from features_reported
 * on. */
static void policy_add_feature(struct svi_alert_policy *d, int feature) {
    int k = 0;
    while (k < d->feature_count && d->features[k] != feature)
        k++;
    if (k == d->feature_count && k < SVI_POLICY_FEATURES)
        d->features[d->feature_count++] = feature;
}

/* Adds the detectors and features that have reached their level. */
static void policy_join(struct svi_alert_policy *d, const struct svi_evidence *f,
                        const struct policy_reading *r) {
    for (int i = 0; i < SVI_DETECTORS; i++) {
        /* Two records: `joined`, by detector, decides quiet; `features` decides news. The same feature found
         * by a second detector is no news to a person. */
        d->joined[i] = d->joined[i] || r->reached[i];
        if (r->reached[i])
            policy_add_feature(d, f[i].feature);
        /* One feature that stays far beyond its level does not hide the next one that reaches it. */
        const struct svi_evidence other = {.surprise = f[i].other_surprise, .feature = f[i].other};
        if (other.feature >= 0 && !f[i].early && !policy_is_normal(d, i, &other) &&
            svi_evidence_known(other.surprise, policy_rows(d)) >= d->budget.detector[i].level)
            policy_add_feature(d, other.feature);
    }
}

/* Measured to the last sample that was not quiet: the hold-off before the close must not add severity. */
static enum svi_severity policy_severity(const struct svi_alert_policy *d) {
    const struct svi_severity_input in = {d->worst, d->first, (d->busy - d->began) * DAY};
    return svi_alert_severity(&in);
}

/* The report is attributed to the detector that leads now. */
static void policy_lead(struct svi_alert_policy *d, const struct svi_evidence *f) {
    /* At a close no detector leads: it reports this one, and the largest surprise of the episode. */
    d->detector = d->lead;
    d->surprise = fmax(d->surprise, fmin(f[d->lead].surprise, GREATEST));
}

static double policy_grade(double ratio) {
    return ratio > 1 ? 1 - 1 / ratio : 0;
}

static enum svi_alert_change policy_open(struct svi_alert_policy *d, struct svi_alert *a,
                                         const struct svi_evidence *f, const struct policy_reading *r,
                                         double time) {
    a->open = true;
    a->since = time;
    a->lasted = 1;
    a->grade = a->worst = policy_grade(r->ratio);
    a->opened++;
    d->opened++;
    svi_budget_opened(&d->budget);
    d->reported = d->worst = d->first = r->ratio;
    d->began = d->busy = d->reported_at = d->budget.days;
    d->joined_at = d->budget.days - JOIN_EVERY / DAY; /* the first feature that joins does not wait */
    d->again = false;
    /* The last episode's features go before policy_join fills the list: stale ones would hide news. */
    d->quiet_rows = d->feature_count = 0;
    d->severity = policy_severity(d);
    d->surprise = 0;
    memset(d->joined, 0, sizeof d->joined);
    policy_join(d, f, r);
    d->features_reported = d->feature_count;
    policy_lead(d, f);
    return SVI_ALERT_OPEN;
}

static bool policy_is_over(struct svi_alert_policy *d, const struct policy_reading *r) {
    if (!r->quiet) {
        d->quiet_rows = 0;
        d->busy = d->budget.days;
        return false;
    }
    d->quiet_rows++;
    /* Both samples and time: in a fast stream ten samples are too short, in a slow one `group` is less than
     * one interval. The budget bounds what a gap counts (SVI_BUDGET_GAP), so silence alone closes nothing. */
    return d->quiet_rows >= SVI_POLICY_QUIET_ROWS && (d->budget.days - d->busy) * DAY >= d->o.group;
}

/* Is an update due (alert_policy.h, UPDATE)? Sets its reason, the most useful first: where to look, then how
 * bad, then that it recurred. */
static bool policy_has_news(struct svi_alert_policy *d, const struct policy_reading *r,
                            enum svi_severity severity, bool over) {
    const double quiet = (d->budget.days - d->reported_at) * DAY, age = (d->reported_at - d->began) * DAY;
    const bool features = d->feature_count > d->features_reported;
    /* Features that wait are never lost: they are named before the close at the latest. */
    const bool joined = features && (over || (d->budget.days - d->joined_at) * DAY >= JOIN_EVERY);
    const bool rises = severity > d->severity, worse = d->worst >= SVI_POLICY_WORSE * d->reported;
    /* A quiet sample has nothing to show for a reminder. */
    const bool remind = !r->quiet && quiet >= UPDATE_EVERY;
    /* The reminders of what merely lasts thin out: each comes when the alert has lasted four times as long as
     * when it was last reported. */
    if (!joined && !rises && !(remind && (worse || d->again || quiet >= LASTS_APART * age)))
        return false;
    d->news = features   ? SVI_POLICY_JOINED
              : worse    ? SVI_POLICY_WORSENED
              : d->again ? SVI_POLICY_AGAIN
                         : SVI_POLICY_LASTS;
    return true;
}

static enum svi_alert_change policy_continue(struct svi_alert_policy *d, struct svi_alert *a,
                                             const struct svi_evidence *f, const struct policy_reading *r,
                                             double time) {
    const bool over = policy_is_over(d, r);
    if (over && d->feature_count == d->features_reported) {
        a->open = false;
        a->lasted = 0;
        a->closed = time;
        return SVI_ALERT_CLOSE;
    }
    a->lasted++;
    d->worst = fmax(d->worst, r->ratio);
    a->worst = fmax(a->worst, policy_grade(r->ratio));
    /* policy_join runs in any case: `joined` decides later when the alert may close. */
    policy_join(d, f, r);
    d->again = d->again || r->again;
    const enum svi_severity severity = policy_severity(d);
    d->features_before = d->features_reported;
    if (!policy_has_news(d, r, severity, over))
        return SVI_ALERT_NONE;
    /* Severity, `reported` and the grade only rise within an episode, so each reason is reported once. */
    d->severity = severity > d->severity ? severity : d->severity;
    policy_lead(d, f);
    d->reported = d->worst;
    d->reported_at = d->budget.days;
    d->joined_at = d->news == SVI_POLICY_JOINED ? d->budget.days : d->joined_at;
    d->features_reported = d->feature_count;
    d->again = false;
    a->grade = a->worst;
    return SVI_ALERT_UPDATE;
}

enum svi_alert_change svi_alert_policy_step(struct svi_alert_policy *d, struct svi_alert *a,
                                            const struct svi_evidence evidence[SVI_DETECTORS], double time,
                                            bool timed) {
    struct policy_reading r;
    enum svi_alert_change change = SVI_ALERT_NONE;
    /* Order: the time first, because peaks are dated by it; then all surprises; then the alert. */
    svi_budget_row(&d->budget, time, timed);
    policy_read(d, evidence, &r);
    /* The warm-up suppresses only alerts. The past grows through it, or levels would start from nothing. */
    if (a->seen++ < d->o.warmup)
        d->alarm = fmin(d->alarm, SVI_POLICY_BELOW);
    else if (a->open)
        change = policy_continue(d, a, evidence, &r, time);
    else if (r.any)
        change = policy_open(d, a, evidence, &r, time);
    /* After the change: an excursion at the opening sample belongs to the alert, one at the closing sample
     * does not. Levels move last, so no sample is assessed by a level that knows it. */
    if (a->open)
        svi_budget_mark(&d->budget, a->opened);
    svi_budget_end(&d->budget);
    return change;
}

/* ---- archive */

void svi_alert_policy_archive(struct svi_archive *a, struct svi_alert_policy *d) {
    int severity = (int)d->severity, detector = (int)d->detector;
    svi_budget_archive(a, &d->budget);
    /* The count is set only when the list has capacity for it, so a failed load leaves a list that can be
     * read and freed. */
    int marked = d->normal_count;
    svi_archive_int(a, "usual", &marked, 0, SVI_POLICY_NORMAL);
    if (marked > 0 && svi_archive_loading(a) && svi_archive_ok(a) &&
        svi_alert_policy_reserve(d, true, a->err) != SVS_OK)
        svi_archive_fail(a, SVS_NO_MEMORY, "no memory for what was marked normal");
    if (svi_archive_loading(a)) /* a failed save changes nothing */
        d->normal_count = svi_archive_ok(a) ? marked : 0;
    for (int i = 0; i < d->normal_count && svi_archive_ok(a); i++) {
        svi_archive_int(a, "usual judge", &d->normal[i].detector, 0, SVI_DETECTORS - 1);
        svi_archive_int(a, "usual feature", &d->normal[i].feature, -1, INT32_MAX / 2);
        svi_archive_finite(a, "usual surprise", &d->normal[i].surprise, 1);
        svi_archive_finite(a, "usual at", &d->normal[i].at, 1);
    }
    svi_archive_int64(a, "opened", &d->opened, 0, INT64_MAX / 4);
    svi_archive_finite(a, "most", d->most, SVI_BUDGET_APART);
    svi_archive_int(a, "most at", &d->most_at, 0, SVI_BUDGET_APART - 1);
    for (int i = 0; i < SVI_DETECTORS; i++) {
        svi_archive_int(a, "quiet", &d->quiet[i], 0, SVI_POLICY_HOLD_ROWS);
        svi_archive_int(a, "idle", &d->idle[i], 0, SVI_POLICY_HOLD_ROWS + 1);
    }
    /* From here on: the open episode. A closed one leaves its last values. */
    svi_archive_finite(a, "reported", &d->reported, 1);
    svi_archive_finite(a, "worst", &d->worst, 1);
    svi_archive_finite(a, "first", &d->first, 1);
    svi_archive_finite(a, "reported at", &d->reported_at, 1);
    svi_archive_finite(a, "joined at", &d->joined_at, 1);
    svi_archive_bool(a, "again", &d->again);
    svi_archive_finite(a, "began", &d->began, 1);
    svi_archive_finite(a, "busy", &d->busy, 1);
    svi_archive_int(a, "calm", &d->quiet_rows, 0, INT32_MAX / 2);
    svi_archive_int(a, "severity", &severity, 0, SVI_SEVERITY_SERIOUS);
    for (int i = 0; i < SVI_DETECTORS; i++)
        svi_archive_bool(a, "judge joined", &d->joined[i]);
    svi_archive_int(a, "judge", &detector, 0, SVI_DETECTORS - 1);
    svi_archive_finite(a, "surprise", &d->surprise, 1);
    svi_archive_int(a, "joined", &d->feature_count, 0, SVI_POLICY_FEATURES);
    svi_archive_int(a, "features reported", &d->features_reported, 0, SVI_POLICY_FEATURES);
    if (svi_archive_ok(a))
        svi_archive_ints(a, "features", d->features, d->feature_count, -1, INT32_MAX / 2);
    d->severity = (enum svi_severity)severity;
    d->detector = (enum svi_alert_detector)detector;
}
