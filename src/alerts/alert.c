#include "alerts/alert.h"

#include <float.h>
#include <math.h>

#define RISE                                                                                                 \
    0.1 /* an update is reported when the grade rose by this much; less a hair for the rounding of tenths */

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

static enum svi_alert_change alert_go_on(struct svi_alert *a, double p, double grade, double time) {
    if (p > a->o.clear) {
        a->open = false;
        a->lasted = 0;
        a->closed = time;
        return SVI_ALERT_CLOSE;
    }
    a->lasted++;
    a->worst = fmax(a->worst, grade);
    if (grade < a->grade + RISE - 1e-9)
        return SVI_ALERT_NONE;
    a->grade = grade;
    return SVI_ALERT_UPDATE;
}

/* In the cool-down the procedure is asked but neither pays nor earns. */
static bool alert_novel(struct svi_alert *a, double p, double tail, bool cooling) {
    if (!(a->o.fdr > 0))
        return p <= a->o.p;
    if (p > a->o.clear)
        tail = 1; /* it would close at once */
    return cooling ? tail <= svi_discovery_level(&a->discovery) : svi_discovery_test(&a->discovery, tail);
}

enum svi_alert_change svi_alert_step(struct svi_alert *a, double p, double tail, double grade, double time) {
    const bool cooling = time - a->closed < a->o.cooldown;
    if (a->seen++ < a->o.warmup)
        return SVI_ALERT_NONE;
    if (a->open)
        return alert_go_on(a, p, grade, time);
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

double svi_alert_grade(double novelty, double usual) {
    if (!(novelty > usual))
        return 0;
    return usual < 1 ? fmin(1, (novelty - usual) / (1 - usual)) : 1;
}

void svi_alert_move_times(struct svi_alert *a, double from, double step) {
    if (a->since > from)
        a->since += step;
    if (a->closed > from)
        a->closed += step; /* -DBL_MAX stays */
}

void svi_alert_archive(struct svi_archive *a, struct svi_alert *alert) {
    svi_archive_bool(a, "alert open", &alert->open);
    svi_archive_finite(a, "alert since", &alert->since, 1);
    svi_archive_finite(a, "alert closed", &alert->closed, 1);
    svi_archive_int64(a, "alert lasted", &alert->lasted, 0, SVI_COUNT_MAX);
    svi_archive_finite(a, "alert grade", &alert->grade, 1);
    svi_archive_finite(a, "alert worst", &alert->worst, 1);
    svi_archive_int64(a, "alert seen", &alert->seen, 0, SVI_COUNT_MAX);
    svi_archive_int64(a, "alerts opened", &alert->opened, 0, SVI_COUNT_MAX);
    svi_archive_int64(a, "alerts suppressed", &alert->suppressed, 0, SVI_COUNT_MAX);
    if (alert->o.fdr > 0)
        svi_discovery_archive(a, &alert->discovery);
}
