/* One alert an episode, from the findings of all judges.
 *
 * A sample is read first: each judge's surprise over its level, whether that is a record, whether all are
 * calm (desk_read). What a person called usual is below its level then. From that alone follow the alarm and
 * what becomes of the alert: desk_open, desk_go_on. The budget hears of all surprises, before, and which
 * excursions were of an alert, after. Read svi_desk_step first. */
#include "alerts/alert_policy.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"

/* GREATEST keeps p = 0 finite: archives of peaks hold finite numbers alone. USUAL stays above SVI_DESK_CLEAR:
 * a verdict keeps an alert from opening, but does not end one that its judge joined last. */
#define DAY        86400.0
#define GREATEST   300.0 /* surprise: beyond any p */
#define USUAL      0.9   /* of its level, what a person called usual */
#define LASTS      (30 * 60.0)
#define LASTS_LONG (6 * 3600.0)

void svi_desk_init(struct svi_desk *d, const struct svi_desk_options *o) {
    /* Ratio 1 is the level itself. An alert that p opened before there was a budget measures from there. */
    *d = (struct svi_desk){.o = *o, .reported = 1, .worst = 1};
    svi_budget_init(&d->budget, o->a_day, o->interval);
}

void svi_desk_clear(struct svi_desk *d) {
    const struct svi_desk_options o = d->o;
    svi_budget_clear(&d->budget);
    svi_free(d->usual);
    svi_desk_init(d, &o);
}

svs_code svi_desk_reserve(struct svi_desk *d, bool usual, svs_error *err) {
    /* Most streams never get a verdict, so the list costs nothing until the first. */
    if (usual && !d->usual && !(d->usual = svi_alloc_plain_array(SVI_DESK_USUAL, sizeof *d->usual)))
        return svi_fail_memory(err, "what was called usual");
    return svi_budget_reserve(&d->budget, err);
}

void svi_desk_configure(struct svi_desk *d, const struct svi_desk_options *o) {
    /* Without a budget no row reached the budget: an older past would have a hole in it. A mere change of
     * the number keeps the past, since only levels depend on it. */
    if ((o->a_day > 0) != (d->o.a_day > 0)) {
        svi_desk_clear(d);
        svi_desk_init(d, o);
        return;
    }
    d->o = *o;
    svi_budget_set(&d->budget, o->a_day, o->interval);
}

const char *svi_judge_name(enum svi_judge judge) {
    static const char *const names[SVI_JUDGES] = {
        [SVI_JUDGE_ROW] = "row",   [SVI_JUDGE_VALUE] = "value",   [SVI_JUDGE_LEVEL] = "level",
        [SVI_JUDGE_STEP] = "step", [SVI_JUDGE_OTHERS] = "others", [SVI_JUDGE_LASTING] = "lasting"};
    return names[judge];
}

const char *svi_severity_name(enum svi_severity severity) {
    static const char *const names[] = {"notice", "warning", "serious"};
    return names[severity];
}

enum svi_severity svi_desk_severity(double worst, double seconds) {
    /* Size alone or size and time make it serious; time alone never does more than warn. */
    if (worst >= 3 || (worst >= 1.5 && seconds >= LASTS_LONG))
        return SVI_SEVERITY_SERIOUS;
    return worst >= 1.5 || seconds >= LASTS ? SVI_SEVERITY_WARNING : SVI_SEVERITY_NOTICE;
}

void svi_desk_call_usual(struct svi_desk *d, enum svi_judge judge, int feature, double surprise) {
    const struct svi_desk_usual u = {(int)judge, feature, surprise, d->budget.days};
    svs_error err;
    /* svi_novelty_stage_verdict has reserved it before it changed anything; without memory here the verdict
     * would only lose its effect. */
    if (svi_desk_reserve(d, true, &err) != SVS_OK)
        return;
    if (d->usual_count == SVI_DESK_USUAL)
        memmove(d->usual, d->usual + 1, (size_t)--d->usual_count * sizeof *d->usual);
    d->usual[d->usual_count++] = u;
}

double svi_desk_alerts_a_day(const struct svi_desk *d) {
    return svi_desk_works(d) && d->budget.days > 0 ? (double)d->opened / d->budget.days : NAN;
}

double svi_desk_level(const struct svi_desk *d) {
    const double level = d->budget.judge[SVI_JUDGE_ROW].level;
    return svi_desk_works(d) && isfinite(level) ? level : NAN;
}

/* ---- one sample */

/* What a sample comes to. */
struct desk_reading {
    bool reached[SVI_JUDGES]; /* at its level or above, and a record */
    bool any, calm;
    bool again;   /* one of them after it had been quiet */
    double ratio; /* largest of those that have reached */
};

static bool desk_is_usual(const struct svi_desk *d, int judge, const struct svi_finding *f) {
    for (int i = 0; i < d->usual_count; i++) {
        const struct svi_desk_usual *u = &d->usual[i];
        if (u->judge == judge && u->feature == f->feature && f->surprise <= u->surprise &&
            d->budget.days - u->at <= SVI_BUDGET_MEMORY)
            return true;
    }
    return false;
}

/* The sample's surprise, where it is more than that of the last ones. */
static void desk_surprise(struct svi_desk *d, double most) {
    double before = 0;
    for (int i = 0; i < SVI_BUDGET_APART; i++)
        before = d->most[i] > before ? d->most[i] : before;
    d->surprise_now = most > SVI_DESK_ONSET * before ? most : 0;
    d->most[d->most_at] = most;
    d->most_at = (d->most_at + 1) % SVI_BUDGET_APART;
}

/* How long a judge has been quiet, and idle. */
static void desk_follow(struct svi_desk *d, int judge, double ratio) {
    /* Two limits on purpose: `quiet` (below SVI_DESK_CLEAR) decides `again`, `idle` (below the level) decides
     * how long a judge is held to the stricter limit. Both saturate, so they cannot overflow. */
    const int quiet = d->quiet[judge] + 1, idle = d->idle[judge] + 1;
    d->quiet[judge] = ratio >= SVI_DESK_CLEAR ? 0 : quiet < SVI_DESK_LINGERS ? quiet : SVI_DESK_LINGERS;
    d->idle[judge] = ratio >= 1 ? 0 : idle <= SVI_DESK_LINGERS ? idle : SVI_DESK_LINGERS + 1;
}

static void desk_read(struct svi_desk *d, const struct svi_finding *f, struct desk_reading *r) {
    *r = (struct desk_reading){.calm = true};
    double most = 0;
    d->alarm = 0;
    d->lead = SVI_JUDGE_ROW;
    for (int i = 0; i < SVI_JUDGES; i++) {
        const double surprise = f[i].surprise > 0 ? f[i].surprise < GREATEST ? f[i].surprise : GREATEST : 0;
        const double level = d->budget.judge[i].level;
        double ratio = surprise / level;
        /* The budget gets the surprise as it is, a verdict or not: otherwise levels would forget what the
         * stream does, and fall. */
        const bool record = svi_budget_surprise(&d->budget, (enum svi_judge)i, surprise);
        if (ratio >= USUAL && desk_is_usual(d, i, &f[i]))
            ratio = USUAL;
        d->ratio[i] = ratio;
        const double counts = record || ratio < SVI_DESK_BELOW ? ratio : SVI_DESK_BELOW;
        most = surprise > most ? surprise : most;
        d->alarm = counts > d->alarm ? counts : d->alarm;
        r->reached[i] = record && ratio >= 1;
        /* Before desk_follow, which resets `quiet` at this very sample. */
        r->again = r->again || (r->reached[i] && d->quiet[i] >= SVI_BUDGET_APART);
        desk_follow(d, i, ratio);
        /* A judge that has reached its level beats a larger ratio that is no record; among equals of that
         * kind the ratio decides, and the earlier judge wins a tie. */
        if (r->reached[i] != r->reached[d->lead] ? r->reached[i] : ratio > d->ratio[d->lead])
            d->lead = (enum svi_judge)i;
        r->any = r->any || r->reached[i];
        r->ratio = r->reached[i] ? fmax(r->ratio, ratio) : r->ratio;
        /* Hysteresis: a judge that opened or joined must fall well below its level, else a value at the level
         * would open and close in turns. After SVI_DESK_LINGERS idle samples it is like any other. */
        const bool holds = d->joined[i] && d->idle[i] <= SVI_DESK_LINGERS;
        r->calm = r->calm && (ratio < (holds ? SVI_DESK_CLEAR : 1) || surprise < -log10(d->o.clear));
    }
    desk_surprise(d, most);
}

/* True: a feature has joined that was not there. */
static bool desk_join(struct svi_desk *d, const struct svi_finding *f, const struct desk_reading *r) {
    bool news = false;
    for (int i = 0; i < SVI_JUDGES; i++) {
        /* Two records of it: `joined` of judges is for calm, `features` is for news. The same feature found
         * by a second judge is no news to a person. */
        d->joined[i] = d->joined[i] || r->reached[i];
        int k = 0;
        while (r->reached[i] && k < d->feature_count && d->features[k] != f[i].feature)
            k++;
        if (r->reached[i] && k == d->feature_count && k < SVI_DESK_FEATURES) {
            d->features[d->feature_count++] = f[i].feature;
            news = true;
        }
    }
    return news;
}

/* Whose the report is. */
static void desk_lead(struct svi_desk *d, const struct svi_finding *f) {
    /* A later close has no leading judge of its own: it reports the last one, and the largest surprise. */
    d->judge = d->lead;
    d->surprise = fmax(d->surprise, fmin(f[d->lead].surprise, GREATEST));
}

static double desk_grade(double ratio) {
    return ratio > 1 ? 1 - 1 / ratio : 0;
}

static enum svi_alert_change desk_open(struct svi_desk *d, struct svi_alert *a, const struct svi_finding *f,
                                       const struct desk_reading *r, double time) {
    a->open = true;
    a->since = time;
    a->lasted = 1;
    a->grade = a->worst = desk_grade(r->ratio);
    a->opened++;
    d->opened++;
    d->reported = d->worst = r->ratio;
    d->began = d->busy = d->budget.days;
    /* Clear what the last episode left before desk_join fills it: stale features would hide news. */
    d->calm = d->feature_count = 0;
    d->severity = svi_desk_severity(d->worst, 0);
    d->surprise = 0;
    memset(d->joined, 0, sizeof d->joined);
    (void)desk_join(d, f, r);
    desk_lead(d, f);
    return SVI_ALERT_OPEN;
}

static bool desk_is_over(struct svi_desk *d, const struct desk_reading *r) {
    if (!r->calm) {
        d->calm = 0;
        d->busy = d->budget.days;
        return false;
    }
    d->calm++;
    /* Samples and time: in a fast stream ten samples are nothing, in a slow one `group` is less than one.
     * The budget bounds what a gap counts, so silence alone closes nothing. */
    return d->calm >= SVI_DESK_CALM && (d->budget.days - d->busy) * DAY >= d->o.group;
}

static enum svi_alert_change desk_go_on(struct svi_desk *d, struct svi_alert *a, const struct svi_finding *f,
                                        const struct desk_reading *r, double time) {
    if (desk_is_over(d, r)) {
        a->open = false;
        a->lasted = 0;
        a->closed = time;
        return SVI_ALERT_CLOSE;
    }
    a->lasted++;
    d->worst = fmax(d->worst, r->ratio);
    a->worst = fmax(a->worst, desk_grade(r->ratio));
    /* Up to the last sample that was not calm: the wait for the close must not make it more severe. */
    const enum svi_severity severity = svi_desk_severity(d->worst, (d->busy - d->began) * DAY);
    /* desk_join always runs, news or not: what it records decides later when the alert may close. */
    const bool joined = desk_join(d, f, r), worse = r->ratio >= SVI_DESK_WORSE * d->reported;
    if (!joined && !worse && !r->again && severity <= d->severity)
        return SVI_ALERT_NONE;
    /* One reason a line, the most useful first: where to look, then how bad, then that it is back. */
    d->news = joined     ? SVI_DESK_JOINED
              : worse    ? SVI_DESK_WORSENED
              : r->again ? SVI_DESK_AGAIN
                         : SVI_DESK_LASTS;
    /* Severity, `reported` and the grade only rise within an episode: what has been reported once is no
     * reason for another line. */
    d->severity = severity > d->severity ? severity : d->severity;
    desk_lead(d, f);
    d->reported = fmax(d->reported, r->ratio);
    a->grade = fmax(a->grade, desk_grade(r->ratio));
    return SVI_ALERT_UPDATE;
}

enum svi_alert_change svi_desk_step(struct svi_desk *d, struct svi_alert *a,
                                    const struct svi_finding findings[SVI_JUDGES], double time, bool timed) {
    struct desk_reading r;
    enum svi_alert_change change = SVI_ALERT_NONE;
    /* The order matters: the time first, since peaks are dated by it; then all surprises; then the alert. */
    svi_budget_row(&d->budget, time, timed);
    desk_read(d, findings, &r);
    /* The warm-up silences alerts only. The past must grow through it, or levels would start from nothing. */
    if (a->seen++ < d->o.warmup)
        d->alarm = fmin(d->alarm, SVI_DESK_BELOW);
    else if (a->open)
        change = desk_go_on(d, a, findings, &r, time);
    else if (r.any)
        change = desk_open(d, a, findings, &r, time);
    /* After the change: an excursion that begins at the opening sample belongs to the alert, and one at the
     * closing sample does not. Levels move last, so no sample is judged by a level that knows it. */
    if (a->open)
        svi_budget_mark(&d->budget, a->opened);
    svi_budget_end(&d->budget);
    return change;
}

/* ---- archive */

void svi_desk_archive(struct svi_archive *a, struct svi_desk *d) {
    int severity = (int)d->severity, judge = (int)d->judge;
    svi_budget_archive(a, &d->budget);
    int usual = d->usual_count;
    svi_archive_int(a, "usual", &usual, 0, SVI_DESK_USUAL);
    if (usual > 0 && svi_archive_loading(a) && svi_archive_ok(a) &&
        svi_desk_reserve(d, true, a->err) != SVS_OK)
        svi_archive_fail(a, SVS_NO_MEMORY, "no memory for what was called usual");
    d->usual_count = svi_archive_ok(a) ? usual : 0;
    for (int i = 0; i < d->usual_count && svi_archive_ok(a); i++) {
        svi_archive_int(a, "usual judge", &d->usual[i].judge, 0, SVI_JUDGES - 1);
        svi_archive_int(a, "usual feature", &d->usual[i].feature, -1, INT32_MAX / 2);
        svi_archive_finite(a, "usual surprise", &d->usual[i].surprise, 1);
        svi_archive_finite(a, "usual at", &d->usual[i].at, 1);
    }
    svi_archive_int64(a, "opened", &d->opened, 0, INT64_MAX / 4);
    svi_archive_finite(a, "most", d->most, SVI_BUDGET_APART);
    svi_archive_int(a, "most at", &d->most_at, 0, SVI_BUDGET_APART - 1);
    for (int i = 0; i < SVI_JUDGES; i++) {
        svi_archive_int(a, "quiet", &d->quiet[i], 0, SVI_DESK_LINGERS);
        svi_archive_int(a, "idle", &d->idle[i], 0, SVI_DESK_LINGERS + 1);
    }
    svi_archive_finite(a, "reported", &d->reported, 1);
    svi_archive_finite(a, "worst", &d->worst, 1);
    svi_archive_finite(a, "began", &d->began, 1);
    svi_archive_finite(a, "busy", &d->busy, 1);
    svi_archive_int(a, "calm", &d->calm, 0, INT32_MAX / 2);
    svi_archive_int(a, "severity", &severity, 0, SVI_SEVERITY_SERIOUS);
    for (int i = 0; i < SVI_JUDGES; i++)
        svi_archive_bool(a, "judge joined", &d->joined[i]);
    svi_archive_int(a, "judge", &judge, 0, SVI_JUDGES - 1);
    svi_archive_finite(a, "surprise", &d->surprise, 1);
    svi_archive_int(a, "joined", &d->feature_count, 0, SVI_DESK_FEATURES);
    if (svi_archive_ok(a))
        svi_archive_ints(a, "features", d->features, d->feature_count, -1, INT32_MAX / 2);
    d->severity = (enum svi_severity)severity;
    d->judge = (enum svi_judge)judge;
}
