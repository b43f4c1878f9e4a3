/* The quality alarm: errors go into the detector, rows into the moments, and an alarm follows from what the
 * detector finds.
 *
 * A rise opens an alarm, or makes the open one worse; what was before it is dropped from the detector then,
 * so that a fall is measured from the new level. The alarm closes when the error since the last change is
 * back within a quarter of the way from before to the worst: at a fall beyond chance, or slowly, once
 * QUIET_SAMPLES samples since then have it. Whatever closes it, the detector begins a new stretch (a
 * regression finds new bounds for what is a large error). */
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
    /* Off, it is as new, with all that it measured: a restart would not make it, and must lead to the same
     * state. */
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

svs_code svi_alarm_make(struct svi_alarm *s, svs_error *err) {
    if (!s->top)
        s->top = svi_alloc_plain_array(SVI_ALARM_SHIFTS, sizeof *s->top);
    if (!s->top || !(s->errors = svi_alloc(sizeof *s->errors)))
        return svi_fail_memory(err, "the quality alarm");
    svi_drift_init(s->errors, s->regress, s->rate);
    return SVS_OK;
}

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

static double alarm_figure(const struct svi_alarm *s, const struct svi_drift_stretch *of) {
    if (of->n < 1)
        return NAN;
    return s->regress ? sqrt(of->squares / (double)of->n) : svi_drift_share(of);
}

static enum svi_alarm_change alarm_rise(struct svi_alarm *s) {
    const struct svi_drift_found *f = &s->errors->found;
    const enum svi_alarm_change change = s->open ? SVI_ALARM_WORSENED : SVI_ALARM_OPENED;
    s->count = svi_drift_moments_top(&s->moments, s->errors, f, SVI_ALARM_SHIFTS, s->top);
    s->after = alarm_figure(s, &f->after);
    s->span = f->after.n;
    if (!s->open) {
        s->share = s->worst_share = svi_drift_share(&f->before);
        s->before = s->worst = alarm_figure(s, &f->before);
        s->since = f->after.time;
        s->number = f->after.number - 1;
        s->opened++;
    }
    s->open = true;
    s->adapted = false;
    s->worst_share = fmax(s->worst_share, svi_drift_share(&f->after));
    s->worst = fmax(s->worst, s->after);
    svi_drift_cut(s->errors, f);
    return change;
}

static enum svi_alarm_change alarm_close(struct svi_alarm *s, const struct svi_drift_stretch *now,
                                         bool adapted) {
    s->after = alarm_figure(s, now);
    s->open = false;
    s->adapted = adapted;
    s->count = 0;
    if (s->regress)
        svi_drift_renew(s->errors);
    return SVI_ALARM_CLOSED;
}

/* While an alarm is open: may it close? */
static enum svi_alarm_change alarm_watch(struct svi_alarm *s, bool fell) {
    struct svi_drift_stretch now = fell ? s->errors->found.after : s->errors->all;
    const double near = s->share + NEAR * (s->worst_share - s->share);
    if ((fell || now.n >= QUIET_SAMPLES) && svi_drift_share(&now) <= near)
        return alarm_close(s, &now, false);
    if (now.n >= SVI_ALARM_SETTLED)
        return alarm_close(s, &now, true);
    return SVI_ALARM_NONE;
}

enum svi_alarm_change svi_alarm_update(struct svi_alarm *s, double error, const double *x, int d, double time,
                                       int64_t number) {
    const double size = fabs(error) <= ERROR_MAX ? fabs(error) : ERROR_MAX;
    const struct svi_drift_sample sample = {size, time, number};
    if (!s->on || !s->errors)
        return SVI_ALARM_NONE;
    const enum svi_drift_change change = svi_drift_step(s->errors, &sample);
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

/* Where none are made yet they are as new; and read, they stay away where the alarm is off. */
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
