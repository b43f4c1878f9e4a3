/* One alert an episode, from the evidence of all detectors.
 *
 * A sample is read first: each detector's surprise over its level, whether that is a record, whether all are
 * calm (policy_read). What a person called usual is below its level then. From that alone follow the alarm
 * and what becomes of the alert: policy_open, policy_go_on. The budget hears of all surprises, before, and
 * which excursions were of an alert, after. Read svi_alert_policy_step first. */
#include "alerts/alert_policy.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"

/* GREATEST keeps p = 0 finite: archives of peaks hold finite numbers alone. USUAL stays above
 * SVI_POLICY_CLEAR: a verdict keeps an alert from opening, but does not end one that its detector joined
 * last. */
#define DAY        86400.0
#define GREATEST   300.0 /* surprise: beyond any p */
#define USUAL      0.9   /* of its level, what a person called usual */
#define LASTS      (30 * 60.0)
#define LASTS_LONG (6 * 3600.0)

void svi_alert_policy_init(struct svi_alert_policy *d, const struct svi_alert_policy_options *o) {
    /* Ratio 1 is the level itself. An alert that p opened before there was a budget measures from there. */
    *d = (struct svi_alert_policy){.o = *o, .reported = 1, .worst = 1};
    svi_budget_init(&d->budget, o->a_day, o->interval);
}

void svi_alert_policy_clear(struct svi_alert_policy *d) {
    const struct svi_alert_policy_options o = d->o;
    svi_budget_clear(&d->budget);
    svi_free(d->normal);
    svi_alert_policy_init(d, &o);
}

svs_code svi_alert_policy_reserve(struct svi_alert_policy *d, bool usual, svs_error *err) {
    /* Most streams never get a verdict, so the list costs nothing until the first. */
    if (usual && !d->normal && !(d->normal = svi_alloc_plain_array(SVI_POLICY_NORMAL, sizeof *d->normal)))
        return svi_fail_memory(err, "what was called usual");
    return svi_budget_reserve(&d->budget, err);
}

void svi_alert_policy_configure(struct svi_alert_policy *d, const struct svi_alert_policy_options *o) {
    /* Without a budget no row reached the budget: an older past would have a hole in it. A mere change of
     * the number keeps the past, since only levels depend on it. */
    if ((o->a_day > 0) != (d->o.a_day > 0)) {
        svi_alert_policy_clear(d);
        svi_alert_policy_init(d, o);
        return;
    }
    d->o = *o;
    svi_budget_set(&d->budget, o->a_day, o->interval);
}

const char *svi_alert_severity_name(enum svi_severity severity) {
    static const char *const names[] = {"notice", "warning", "serious"};
    return names[severity];
}

enum svi_severity svi_alert_severity(double worst, double seconds) {
    /* Size alone or size and time make it serious; time alone never does more than warn. */
    if (worst >= 3 || (worst >= 1.5 && seconds >= LASTS_LONG))
        return SVI_SEVERITY_SERIOUS;
    return worst >= 1.5 || seconds >= LASTS ? SVI_SEVERITY_WARNING : SVI_SEVERITY_NOTICE;
}

void svi_alert_policy_mark_normal(struct svi_alert_policy *d, enum svi_alert_detector detector, int feature,
                                  double surprise) {
    const struct svi_alert_policy_normal u = {(int)detector, feature, surprise, d->budget.days};
    svs_error err;
    /* svi_alert_stage_verdict has reserved it before it changed anything; without memory here the verdict
     * would only lose its effect. */
    if (svi_alert_policy_reserve(d, true, &err) != SVS_OK)
        return;
    if (d->normal_count == SVI_POLICY_NORMAL)
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

/* What a sample comes to. */
struct policy_reading {
    bool reached[SVI_DETECTORS]; /* at its level or above, and a record */
    bool any, calm;
    bool again;   /* one of them after it had been quiet */
    double ratio; /* largest of those that have reached */
};

static bool policy_is_normal(const struct svi_alert_policy *d, int detector, const struct svi_evidence *f) {
    for (int i = 0; i < d->normal_count; i++) {
        const struct svi_alert_policy_normal *u = &d->normal[i];
        if (u->detector == detector && u->feature == f->feature && f->surprise <= u->surprise &&
            d->budget.days - u->at <= SVI_BUDGET_MEMORY)
            return true;
    }
    return false;
}

/* The sample's surprise, where it is more than that of the last ones. */
static void policy_surprise(struct svi_alert_policy *d, double most) {
    double before = 0;
    for (int i = 0; i < SVI_BUDGET_APART; i++)
        before = d->most[i] > before ? d->most[i] : before;
    d->surprise_now = most > SVI_POLICY_ONSET * before ? most : 0;
    d->most[d->most_at] = most;
    d->most_at = (d->most_at + 1) % SVI_BUDGET_APART;
}

/* How long a detector has been quiet, and idle. */
static void policy_follow(struct svi_alert_policy *d, int detector, double ratio) {
    /* Two limits on purpose: `quiet` (below SVI_POLICY_CLEAR) decides `again`, `idle` (below the level)
     * decides how long a detector is held to the stricter limit. Both saturate, so they cannot overflow. */
    const int quiet = d->quiet[detector] + 1, idle = d->idle[detector] + 1;
    d->quiet[detector] = ratio >= SVI_POLICY_CLEAR      ? 0
                         : quiet < SVI_POLICY_HOLD_ROWS ? quiet
                                                        : SVI_POLICY_HOLD_ROWS;
    d->idle[detector] = ratio >= 1 ? 0 : idle <= SVI_POLICY_HOLD_ROWS ? idle : SVI_POLICY_HOLD_ROWS + 1;
}

static void policy_read(struct svi_alert_policy *d, const struct svi_evidence *f, struct policy_reading *r) {
    *r = (struct policy_reading){.calm = true};
    double most = 0;
    d->alarm = 0;
    d->lead = SVI_DETECTOR_ROW;
    for (int i = 0; i < SVI_DETECTORS; i++) {
        const double surprise = f[i].surprise > 0 ? f[i].surprise < GREATEST ? f[i].surprise : GREATEST : 0;
        const double level = d->budget.detector[i].level;
        double ratio = surprise / level;
        /* The budget gets the surprise as it is, a verdict or not: otherwise levels would forget what the
         * stream does, and fall. */
        const bool record = svi_budget_surprise(&d->budget, (enum svi_alert_detector)i, surprise);
        if (ratio >= USUAL && policy_is_normal(d, i, &f[i]))
            ratio = USUAL;
        d->ratio[i] = ratio;
        const double counts = record || ratio < SVI_POLICY_BELOW ? ratio : SVI_POLICY_BELOW;
        most = surprise > most ? surprise : most;
        d->alarm = counts > d->alarm ? counts : d->alarm;
        r->reached[i] = record && ratio >= 1;
        /* Before policy_follow, which resets `quiet` at this very sample. */
        r->again = r->again || (r->reached[i] && d->quiet[i] >= SVI_BUDGET_APART);
        policy_follow(d, i, ratio);
        /* A detector that has reached its level beats a larger ratio that is no record; among equals of that
         * kind the ratio decides, and the earlier detector wins a tie. */
        if (r->reached[i] != r->reached[d->lead] ? r->reached[i] : ratio > d->ratio[d->lead])
            d->lead = (enum svi_alert_detector)i;
        r->any = r->any || r->reached[i];
        r->ratio = r->reached[i] ? fmax(r->ratio, ratio) : r->ratio;
        /* Hysteresis: a detector that opened or joined must fall well below its level, else a value at the
         * level would open and close in turns. After SVI_POLICY_HOLD_ROWS idle samples it is like any other.
         */
        const bool holds = d->joined[i] && d->idle[i] <= SVI_POLICY_HOLD_ROWS;
        r->calm = r->calm && (ratio < (holds ? SVI_POLICY_CLEAR : 1) || surprise < -log10(d->o.clear));
    }
    policy_surprise(d, most);
}

/* True: a feature has joined that was not there. */
static bool policy_join(struct svi_alert_policy *d, const struct svi_evidence *f,
                        const struct policy_reading *r) {
    bool news = false;
    for (int i = 0; i < SVI_DETECTORS; i++) {
        /* Two records of it: `joined` of detectors is for calm, `features` is for news. The same feature
         * found by a second detector is no news to a person. */
        d->joined[i] = d->joined[i] || r->reached[i];
        int k = 0;
        while (r->reached[i] && k < d->feature_count && d->features[k] != f[i].feature)
            k++;
        if (r->reached[i] && k == d->feature_count && k < SVI_POLICY_FEATURES) {
            d->features[d->feature_count++] = f[i].feature;
            news = true;
        }
    }
    return news;
}

/* Whose the report is. */
static void policy_lead(struct svi_alert_policy *d, const struct svi_evidence *f) {
    /* A later close has no leading detector of its own: it reports the last one, and the largest surprise. */
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
    d->reported = d->worst = r->ratio;
    d->began = d->busy = d->budget.days;
    /* Clear what the last episode left before policy_join fills it: stale features would hide news. */
    d->calm = d->feature_count = 0;
    d->severity = svi_alert_severity(d->worst, 0);
    d->surprise = 0;
    memset(d->joined, 0, sizeof d->joined);
    (void)policy_join(d, f, r);
    policy_lead(d, f);
    return SVI_ALERT_OPEN;
}

static bool policy_is_over(struct svi_alert_policy *d, const struct policy_reading *r) {
    if (!r->calm) {
        d->calm = 0;
        d->busy = d->budget.days;
        return false;
    }
    d->calm++;
    /* Samples and time: in a fast stream ten samples are nothing, in a slow one `group` is less than one.
     * The budget bounds what a gap counts, so silence alone closes nothing. */
    return d->calm >= SVI_POLICY_QUIET_ROWS && (d->budget.days - d->busy) * DAY >= d->o.group;
}

static enum svi_alert_change policy_go_on(struct svi_alert_policy *d, struct svi_alert *a,
                                          const struct svi_evidence *f, const struct policy_reading *r,
                                          double time) {
    if (policy_is_over(d, r)) {
        a->open = false;
        a->lasted = 0;
        a->closed = time;
        return SVI_ALERT_CLOSE;
    }
    a->lasted++;
    d->worst = fmax(d->worst, r->ratio);
    a->worst = fmax(a->worst, policy_grade(r->ratio));
    /* Up to the last sample that was not calm: the wait for the close must not make it more severe. */
    const enum svi_severity severity = svi_alert_severity(d->worst, (d->busy - d->began) * DAY);
    /* policy_join always runs, news or not: what it records decides later when the alert may close. */
    const bool joined = policy_join(d, f, r), worse = r->ratio >= SVI_POLICY_WORSE * d->reported;
    if (!joined && !worse && !r->again && severity <= d->severity)
        return SVI_ALERT_NONE;
    /* One reason a line, the most useful first: where to look, then how bad, then that it is back. */
    d->news = joined     ? SVI_POLICY_JOINED
              : worse    ? SVI_POLICY_WORSENED
              : r->again ? SVI_POLICY_AGAIN
                         : SVI_POLICY_LASTS;
    /* Severity, `reported` and the grade only rise within an episode: what has been reported once is no
     * reason for another line. */
    d->severity = severity > d->severity ? severity : d->severity;
    policy_lead(d, f);
    d->reported = fmax(d->reported, r->ratio);
    a->grade = fmax(a->grade, policy_grade(r->ratio));
    return SVI_ALERT_UPDATE;
}

enum svi_alert_change svi_alert_policy_step(struct svi_alert_policy *d, struct svi_alert *a,
                                            const struct svi_evidence evidence[SVI_DETECTORS], double time,
                                            bool timed) {
    struct policy_reading r;
    enum svi_alert_change change = SVI_ALERT_NONE;
    /* The order matters: the time first, since peaks are dated by it; then all surprises; then the alert. */
    svi_budget_row(&d->budget, time, timed);
    policy_read(d, evidence, &r);
    /* The warm-up silences alerts only. The past must grow through it, or levels would start from nothing. */
    if (a->seen++ < d->o.warmup)
        d->alarm = fmin(d->alarm, SVI_POLICY_BELOW);
    else if (a->open)
        change = policy_go_on(d, a, evidence, &r, time);
    else if (r.any)
        change = policy_open(d, a, evidence, &r, time);
    /* After the change: an excursion that begins at the opening sample belongs to the alert, and one at the
     * closing sample does not. Levels move last, so no sample is judged by a level that knows it. */
    if (a->open)
        svi_budget_mark(&d->budget, a->opened);
    svi_budget_end(&d->budget);
    return change;
}

/* ---- archive */

void svi_alert_policy_archive(struct svi_archive *a, struct svi_alert_policy *d) {
    int severity = (int)d->severity, detector = (int)d->detector;
    svi_budget_archive(a, &d->budget);
    int usual = d->normal_count;
    svi_archive_int(a, "usual", &usual, 0, SVI_POLICY_NORMAL);
    if (usual > 0 && svi_archive_loading(a) && svi_archive_ok(a) &&
        svi_alert_policy_reserve(d, true, a->err) != SVS_OK)
        svi_archive_fail(a, SVS_NO_MEMORY, "no memory for what was called usual");
    d->normal_count = svi_archive_ok(a) ? usual : 0;
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
    svi_archive_finite(a, "reported", &d->reported, 1);
    svi_archive_finite(a, "worst", &d->worst, 1);
    svi_archive_finite(a, "began", &d->began, 1);
    svi_archive_finite(a, "busy", &d->busy, 1);
    svi_archive_int(a, "calm", &d->calm, 0, INT32_MAX / 2);
    svi_archive_int(a, "severity", &severity, 0, SVI_SEVERITY_SERIOUS);
    for (int i = 0; i < SVI_DETECTORS; i++)
        svi_archive_bool(a, "judge joined", &d->joined[i]);
    svi_archive_int(a, "judge", &detector, 0, SVI_DETECTORS - 1);
    svi_archive_finite(a, "surprise", &d->surprise, 1);
    svi_archive_int(a, "joined", &d->feature_count, 0, SVI_POLICY_FEATURES);
    if (svi_archive_ok(a))
        svi_archive_ints(a, "features", d->features, d->feature_count, -1, INT32_MAX / 2);
    d->severity = (enum svi_severity)severity;
    d->detector = (enum svi_alert_detector)detector;
}
