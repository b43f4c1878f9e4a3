#include "alerts/alert.h"

#include <float.h>
#include <math.h>

/* An update is reported when the grade has risen by this much, less 1e-9 for the rounding of tenths. Grades
 * end at 1, so an alert has at most ten updates. */
#define RISE 0.1

void svi_alert_init(struct svi_alert *a, const struct svi_alert_options *o) {
    *a = (struct svi_alert){.o = *o, .closed = -DBL_MAX};
    if (o->fdr > 0)
        svi_discovery_init(&a->discovery, o->fdr);
}

const char *svi_alert_change_name(enum svi_alert_change change) {
    static const char *const names[] = {
        [SVI_ALERT_OPEN] = "open", [SVI_ALERT_UPDATE] = "update", [SVI_ALERT_CLOSE] = "close"};
    return names[change];
}

static enum svi_alert_change alert_continue(struct svi_alert *a, double p, double grade, double time) {
    /* The close comes first: the sample that ends the alert is normal, and counts neither in its length nor
     * in its worst grade. `closed` starts the cool-down. */
    if (p > a->o.clear) {
        a->open = false;
        a->lasted = 0;
        a->closed = time;
        return SVI_ALERT_CLOSE;
    }
    a->lasted++;
    a->worst = fmax(a->worst, grade);
    /* Against the last reported grade, not the last sample's: a slow rise is reported too, and a grade that
     * swings below what was reported is not. */
    if (grade < a->grade + RISE - 1e-9)
        return SVI_ALERT_NONE;
    a->grade = grade;
    return SVI_ALERT_UPDATE;
}

/* Would this sample open an alert? `cooling`: only to count what the cool-down suppresses. The procedure is
 * then queried but not advanced: a discovery that cannot become an alert must neither spend nor earn. */
static bool alert_novel(struct svi_alert *a, double p, double tail, bool cooling) {
    if (!(a->o.fdr > 0))
        return p <= a->o.p;
    if (p > a->o.clear)
        tail =
            1; /* an alert would close at once; 1 is above any level, so this is a test without a discovery */
    return cooling ? tail <= svi_discovery_level(&a->discovery) : svi_discovery_test(&a->discovery, tail);
}

enum svi_alert_change svi_alert_step(struct svi_alert *a, double p, double tail, double grade, double time) {
    const bool cooling = time - a->closed < a->o.cooldown;
    /* Samples of the warm-up and of an open alert return before alert_novel, so that the procedure tests only
     * samples at which an alert may open (alert.h). */
    if (a->seen++ < a->o.warmup)
        return SVI_ALERT_NONE;
    if (a->open)
        return alert_continue(a, p, grade, time);
    if (!alert_novel(a, p, tail, cooling))
        return SVI_ALERT_NONE;
    if (cooling) {
        a->suppressed++;
        return SVI_ALERT_NONE;
    }
    a->open = true;
    a->since = time;
    a->lasted = 1;
    a->grade = a->worst = grade;
    a->opened++;
    return SVI_ALERT_OPEN;
}

double svi_alert_grade(double novelty, double level) {
    /* Written so that a NaN gives 0. At `level` 1 nothing can be more novel by a share: any excess
     * is full. */
    if (!(novelty > level))
        return 0;
    return level < 1 ? fmin(1, (novelty - level) / (1 - level)) : 1;
}

void svi_alert_move_times(struct svi_alert *a, double from, double step) {
    if (a->since > from)
        a->since += step;
    if (a->begin > from)
        a->begin += step;
    if (a->closed > from)
        a->closed += step; /* -DBL_MAX, no alert so far, is never above `from` */
}

void svi_alert_archive(struct svi_archive *a, struct svi_alert *alert) {
    svi_archive_bool(a, "alert open", &alert->open);
    svi_archive_finite(a, "alert since", &alert->since, 1);
    svi_archive_finite(a, "alert begin", &alert->begin, 1);
    svi_archive_int64(a, "alert begin row", &alert->begin_row, 0, SVI_COUNT_MAX);
    svi_archive_finite(a, "alert closed", &alert->closed, 1);
    svi_archive_int64(a, "alert lasted", &alert->lasted, 0, SVI_COUNT_MAX);
    svi_archive_finite(a, "alert grade", &alert->grade, 1);
    svi_archive_finite(a, "alert worst", &alert->worst, 1);
    svi_archive_int64(a, "alert seen", &alert->seen, 0, SVI_COUNT_MAX);
    svi_archive_int64(a, "alerts opened", &alert->opened, 0, SVI_COUNT_MAX);
    svi_archive_int64(a, "alerts suppressed", &alert->suppressed, 0, SVI_COUNT_MAX);
    /* The options decide the layout: a load with another `fdr` would read other fields. */
    if (alert->o.fdr > 0)
        svi_discovery_archive(a, &alert->discovery);
}
