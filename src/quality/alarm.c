/* The quality alarm: errors feed the detector (drift.c), rows feed the moments of the features, and changes
 * that the detector finds open, worsen and close the alarm.
 *
 * A rise opens the alarm or worsens the open one. Samples before the rise are then dropped from the detector,
 * so that a fall is measured from the new level. The alarm closes when the error since the last change is at
 * most a quarter of the way from the level before to the worst level: either at a fall beyond chance, or
 * slowly, once QUIET_SAMPLES samples since the change show it. Closing the alarm of a regression also
 * restarts the detector, which then measures again what counts as a large error. */
#include "quality/alarm.h"

#include <math.h>

#include "base/alloc.h"
#include "base/fail.h"

#define ERROR_MAX     1e140 /* squares are summed */
#define NEAR          0.25  /* of the way from before to the worst */
#define QUIET_SAMPLES 256   /* samples */

void svi_alarm_configure(struct svi_alarm *s, double rate) {
    const bool was = s->on;
    s->on = rate > 0;
    s->rate = rate;
    if (s->errors)
        svi_drift_set_rate(s->errors, s->rate);
    /* Turning the alarm off resets it completely, measured dispersions included: after a restart the detector
     * would not exist, and both must lead to the same state. */
    if (was && !s->on && s->errors)
        svi_drift_init(s->errors, s->regress, s->rate);
    if (was && !s->on)
        svi_drift_moments_free(&s->moments);
}

void svi_alarm_init(struct svi_alarm *s, bool regress, double rate) {
    *s = (struct svi_alarm){.regress = regress};
    svi_alarm_configure(s, rate);
}

void svi_alarm_free(struct svi_alarm *s) {
    svi_drift_moments_free(&s->moments);
    svi_free(s->errors);
    svi_free(s->top);
    s->errors = NULL;
    s->top = NULL;
    s->on = false;
}

/* Called by svi_alarm_reserve before the first sample, and not by init, which cannot fail. A failed call can
 * be repeated: `top` is kept, and `errors` is set last. */
svs_code svi_alarm_make(struct svi_alarm *s, svs_error *err) {
    if (!s->top)
        s->top = svi_alloc_plain_array(SVI_ALARM_SHIFTS, sizeof *s->top);
    if (!s->top || !(s->errors = svi_alloc(sizeof *s->errors)))
        return svi_fail_memory(err, "the quality alarm");
    svi_drift_init(s->errors, s->regress, s->rate);
    return SVS_OK;
}

/* Errors and moments describe the same stretches, so they are dropped together. */
void svi_alarm_prune(struct svi_alarm *s) {
    if (s->errors)
        svi_drift_renew(s->errors);
    svi_drift_moments_free(&s->moments);
}

void svi_alarm_renew(struct svi_alarm *s, int feature) {
    svi_drift_moments_clear(&s->moments, feature);
}

void svi_alarm_reset(struct svi_alarm *s) {
    if (s->errors)
        svi_drift_init(s->errors, s->regress, s->rate);
    svi_drift_moments_free(&s->moments);
    s->open = false;
}

/* ---- one sample */

/* The published figure of a stretch: the share of wrong samples, or the root mean squared error. */
static double alarm_figure(const struct svi_alarm *s, const struct svi_drift_stretch *of) {
    if (of->n < 1)
        return NAN;
    return s->regress ? sqrt(of->squares / (double)of->n) : svi_drift_share(of);
}

/* The error has risen: opens the alarm, or worsens the open one. */
static enum svi_alarm_change alarm_rise(struct svi_alarm *s) {
    const struct svi_drift_found *f = &s->errors->found;
    const enum svi_alarm_change change = s->open ? SVI_ALARM_WORSENED : SVI_ALARM_OPENED;
    /* The features that moved are read before svi_drift_cut drops the stretch they are compared with. */
    s->count = svi_drift_moments_top(&s->moments, s->errors, f, SVI_ALARM_SHIFTS, s->top);
    s->after = alarm_figure(s, &f->after);
    s->span = f->after.n;
    /* Only the first rise sets the level to return to: a second one would otherwise make the first rise
     * normal. */
    if (!s->open) {
        s->share = s->worst_share = svi_drift_share(&f->before);
        s->before = s->worst = alarm_figure(s, &f->before);
        s->since = f->after.time;
        s->number = f->after.number - 1;
        s->opened++;
    }
    s->open = true;
    s->adapted = false;
    /* The worst levels never fall while the alarm is open, so the level for closing is stable. */
    s->worst_share = fmax(s->worst_share, svi_drift_share(&f->after));
    s->worst = fmax(s->worst, s->after);
    svi_drift_cut(s->errors, f);
    return change;
}

/* Closes the alarm at the level of `now`. */
static enum svi_alarm_change alarm_close(struct svi_alarm *s, const struct svi_drift_stretch *now,
                                         bool adapted) {
    s->after = alarm_figure(s, now);
    s->open = false;
    s->adapted = adapted;
    s->count = 0;
    /* What counts as a large error was measured at the old level. The rate of large errors means nothing at a
     * new one. */
    if (s->regress)
        svi_drift_renew(s->errors);
    return SVI_ALARM_CLOSED;
}

/* May the open alarm close? After a fall the samples after the fall count, otherwise all since the rise. */
static enum svi_alarm_change alarm_watch(struct svi_alarm *s, bool fell) {
    struct svi_drift_stretch now = fell ? s->errors->found.after : s->errors->all;
    const double near = s->share + NEAR * (s->worst_share - s->share);
    /* Without a fall beyond chance, a low share needs QUIET_SAMPLES samples to be trusted. */
    if ((fell || now.n >= QUIET_SAMPLES) && svi_drift_share(&now) <= near)
        return alarm_close(s, &now, false);
    /* The error has kept its level: it is the new normal, which the alarm reports as `adapted`. */
    if (now.n >= SVI_ALARM_SETTLED)
        return alarm_close(s, &now, true);
    return SVI_ALARM_NONE;
}

enum svi_alarm_change svi_alarm_update(struct svi_alarm *s, double error, const double *x, int d, double time,
                                       int64_t number) {
    /* NaN and huge errors become ERROR_MAX: their squares stay finite in every sum. */
    const double size = fabs(error) <= ERROR_MAX ? fabs(error) : ERROR_MAX;
    const struct svi_drift_sample sample = {size, time, number};
    if (!s->on || !s->errors)
        return SVI_ALARM_NONE;
    const enum svi_drift_change change = svi_drift_step(s->errors, &sample);
    /* After the detector, because the moments follow the bucket operations that its step recorded. */
    svi_drift_moments_step(&s->moments, s->errors, x, x ? d : 0);
    if (change == SVI_DRIFT_RISE)
        return alarm_rise(s);
    return s->open ? alarm_watch(s, change == SVI_DRIFT_FALL) : SVI_ALARM_NONE;
}

bool svi_alarm_end(struct svi_alarm *s) {
    const bool was = s->open;
    s->open = false;
    s->after = was ? NAN : s->after;
    return was;
}

void svi_alarm_move_times(struct svi_alarm *s, double from, double step) {
    if (s->errors)
        svi_drift_move_times(s->errors, from, step);
    if (s->since > from)
        s->since += step;
}

/* ---- archive */

/* Saving without a detector writes a fresh one, so the layout does not depend on whether a sample has
 * arrived. Loading while the alarm is off reads the detector into `fresh` and drops it. */
static void alarm_archive_errors(struct svi_archive *a, struct svi_alarm *s) {
    struct svi_drift fresh;
    svs_error err;
    svi_drift_init(&fresh, s->regress, s->rate);
    if (!s->errors && s->on && svi_archive_loading(a) && svi_alarm_make(s, &err) != SVS_OK) {
        svi_archive_fail(a, SVS_NO_MEMORY, err.text);
        return;
    }
    struct svi_drift *errors = s->errors ? s->errors : &fresh;
    svi_drift_archive(a, errors);
    if (svi_archive_ok(a))
        svi_drift_moments_archive(a, &s->moments, errors);
}

void svi_alarm_archive(struct svi_archive *a, struct svi_alarm *s) {
    svi_archive_bool(a, "open", &s->open);
    svi_archive_int64(a, "opened", &s->opened, 0, SVI_COUNT_MAX);
    svi_archive_double(a, "share", &s->share);
    svi_archive_double(a, "worst share", &s->worst_share);
    svi_archive_double(a, "before", &s->before);
    svi_archive_double(a, "after", &s->after);
    svi_archive_double(a, "worst", &s->worst);
    svi_archive_finite(a, "since", &s->since, 1);
    svi_archive_int64(a, "number", &s->number, -1, SVI_COUNT_MAX);
    alarm_archive_errors(a, s);
}

double svi_alarm_memory(double rate, int d) {
    return rate > 0 ? (double)sizeof(struct svi_drift) + svi_drift_moments_memory(d) : 0;
}
