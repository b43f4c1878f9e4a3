/* The quality alarm: errors feed the detector (drift.c), rows feed the moments of the features, and changes
 * that the detector finds open, worsen and close the alarm.
 *
 * A rise opens the alarm or worsens the open one. Samples before the rise are then dropped from the
 * detector, so that a fall is measured from the new level. The alarm closes when the error since
 * the last change is low: at most a quarter of the way from the level before to the worst level. It
 * closes at a fall beyond chance, or slowly, once QUIET_SAMPLES samples since the change show it.
 * Closing the alarm of a regression also restarts the detector, which then measures again what
 * counts as a large error. */
#include "quality/alarm.h"

#include <math.h>

#include "base/alloc.h"
#include "base/fail.h"

#define ERROR_MAX     1e140 /* squares are summed */
#define NEAR          0.25  /* of the way from before to the worst */
#define QUIET_SAMPLES 256   /* samples */
#define DAY           86400.0
#define UPDATE_EVERY  (30 * 60.0) /* seconds between the reports of an open alarm */

/* Forgets what was normal, and the past of the budget. */
static void alarm_forget(struct svi_alarm *s) {
    s->rises = (struct svi_rise_budget){.a_day = s->rises.a_day, .rises = s->rises.rises};
    if (s->hours)
        *s->hours = (struct svi_error_hours){0};
}

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
        alarm_forget(s);
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
    svi_free(s->hours);
    svi_free(s->rises.rises);
    s->rises.rises = NULL;
    s->rises.count = 0;
    svi_free(s->top);
    s->errors = NULL;
    s->hours = NULL;
    s->top = NULL;
    s->on = false;
}

/* Called by svi_alarm_reserve before the first sample, and not by init, which cannot fail. A failed call can
 * be repeated: `top` is kept, and `errors` is set last. */
svs_code svi_alarm_make(struct svi_alarm *s, svs_error *err) {
    if (!s->top)
        s->top = svi_alloc_plain_array(SVI_ALARM_SHIFTS, sizeof *s->top);
    if (!s->hours)
        s->hours = svi_alloc(sizeof *s->hours);
    if (!s->rises.rises)
        s->rises.rises = svi_alloc_plain_array(SVI_RISE_KEPT, sizeof *s->rises.rises);
    if (!s->top || !s->hours || !s->rises.rises || !(s->errors = svi_alloc(sizeof *s->errors)))
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
    alarm_forget(s);
    s->open = s->published = s->worse = false;
}

/* ---- one sample */

/* The published figure of a stretch: the share of wrong samples, or the root mean squared error. */
static double alarm_figure(const struct svi_alarm *s, const struct svi_drift_stretch *of) {
    if (of->n < 1)
        return NAN;
    return s->regress ? sqrt(of->squares / (double)of->n) : svi_drift_share(of);
}

/* Does the time of day explain the rise? The samples since are compared with those of the same hours of
 * earlier days, as far as these are known. */
static bool alarm_is_normal_now(const struct svi_alarm *s, double time) {
    const struct svi_drift_found *f = &s->errors->found;
    struct svi_hours_expected normal;
    return s->dated && svi_error_hours_expect(s->hours, f->after.time, time, &normal) &&
           normal.share > svi_drift_share(&f->before) &&
           svi_drift_ratio(s->errors, normal.samples, normal.share, (double)f->after.n,
                           svi_drift_share(&f->after), 0) < 1;
}

/* Is the rise reported, and as what? */
static enum svi_alarm_change alarm_report_rise(struct svi_alarm *s, bool opens) {
    const struct svi_drift_found *f = &s->errors->found;
    const double size =
        svi_drift_ratio(s->errors, (double)f->before.n, svi_drift_share(&f->before), (double)f->after.n,
                        svi_drift_share(&f->after), s->policies > 1 ? log(s->policies) : 0);
    /* Several streams share the budget: each needs odds that are smaller by their number. */
    const bool allowed = (size >= 1 || !(s->rises.a_day > 0)) && svi_rise_budget_allows(&s->rises, size);
    if (opens || !s->published)
        svi_rise_budget_keep(&s->rises, size);
    if (s->published) {
        s->worse = (s->rises.days - s->reported_at) * DAY < UPDATE_EVERY;
        return s->worse ? SVI_ALARM_NONE : SVI_ALARM_WORSENED;
    }
    s->published = allowed;
    s->opened += allowed;
    return allowed ? SVI_ALARM_OPENED : SVI_ALARM_NONE;
}

/* The error has risen: opens the alarm, or worsens the open one. */
static enum svi_alarm_change alarm_rise(struct svi_alarm *s, double time) {
    const struct svi_drift_found *f = &s->errors->found;
    /* Without enough samples the next one will show the rise as well. */
    if (f->after.n < SVI_ALARM_ROWS)
        return SVI_ALARM_NONE;
    if (alarm_is_normal_now(s, time)) {
        svi_drift_cut(s->errors, f);
        return SVI_ALARM_NONE;
    }
    const bool opens = !s->open;
    s->rose = true;
    /* The features that moved are read before svi_drift_cut drops the stretch they are compared with. */
    s->count = svi_drift_moments_top(&s->moments, s->errors, f, SVI_ALARM_SHIFTS, s->top);
    s->after = alarm_figure(s, &f->after);
    s->rows = (struct svi_alarm_rows){f->after.n, f->after.wrong};
    s->span = f->after.n;
    /* Only the first rise sets the level to return to: a second one would otherwise make the first rise
     * normal. */
    if (opens) {
        s->share = s->worst_share = svi_drift_share(&f->before);
        s->before = s->worst = alarm_figure(s, &f->before);
        s->rows_before = (struct svi_alarm_rows){f->before.n, f->before.wrong};
        s->since = f->after.time;
        s->number = f->after.number - 1;
        s->published = s->worse = false;
    }
    s->open = true;
    s->adapted = false;
    /* The worst levels never fall while the alarm is open, so the level for closing is stable. */
    s->worst_share = fmax(s->worst_share, svi_drift_share(&f->after));
    s->worst = fmax(s->worst, s->after);
    const enum svi_alarm_change change = alarm_report_rise(s, opens);
    s->reported_at = change != SVI_ALARM_NONE ? s->rises.days : s->reported_at;
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
    if (adapted) /* the hours of before are not normal any more */
        *s->hours = (struct svi_error_hours){0};
    const bool published = s->published;
    s->published = s->worse = false;
    return published ? SVI_ALARM_CLOSED : SVI_ALARM_NONE;
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
    /* What became worse soon after a report is reported when that is 30 minutes old. */
    if (!s->worse || (s->rises.days - s->reported_at) * DAY < UPDATE_EVERY)
        return SVI_ALARM_NONE;
    s->worse = false;
    s->reported_at = s->rises.days;
    return SVI_ALARM_WORSENED;
}

enum svi_alarm_change svi_alarm_update(struct svi_alarm *s, double error, const double *x, int d, double time,
                                       int64_t number) {
    /* NaN and huge errors become ERROR_MAX: their squares stay finite in every sum. */
    const double size = fabs(error) <= ERROR_MAX ? fabs(error) : ERROR_MAX;
    const struct svi_drift_sample sample = {size, time, number};
    s->rose = false;
    if (!s->on || !s->errors)
        return SVI_ALARM_NONE;
    svi_rise_budget_row(&s->rises, time, s->row_seconds);
    const int64_t pushed = s->errors->pushed; /* a sample that only sets what is large is not taken */
    const enum svi_drift_change change = svi_drift_step(s->errors, &sample);
    /* After the detector, because the moments follow the bucket operations that its step recorded. */
    svi_drift_moments_step(&s->moments, s->errors, x, x ? d : 0);
    /* Only while nothing is unusual. The latest visit of an hour does not count yet. */
    if (s->dated && !s->open && s->errors->pushed > pushed)
        svi_error_hours_add(s->hours, time, s->errors->bits & 1);
    if (change == SVI_DRIFT_RISE)
        return alarm_rise(s, time);
    return s->open ? alarm_watch(s, change == SVI_DRIFT_FALL) : SVI_ALARM_NONE;
}

bool svi_alarm_end(struct svi_alarm *s) {
    const bool was = s->open && s->published;
    s->open = s->published = s->worse = false;
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

/* Like the detector: what was kept is dropped where the alarm is off. */
static void alarm_archive_rises(struct svi_archive *a, struct svi_alarm *s) {
    struct svi_rise kept[SVI_RISE_KEPT];
    struct svi_rise_budget dropped = {.rises = kept};
    svi_rise_budget_archive(a, s->rises.rises ? &s->rises : &dropped);
}

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
    struct svi_error_hours none = {0};
    svi_drift_archive(a, errors);
    svi_error_hours_archive(a, s->hours ? s->hours : &none);
    alarm_archive_rises(a, s);
    if (svi_archive_ok(a))
        svi_drift_moments_archive(a, &s->moments, errors);
}

/* What the line of an alert says of a stretch. */
static void alarm_archive_counts(struct svi_archive *a, struct svi_alarm_rows *of) {
    svi_archive_int64(a, "samples", &of->n, 0, SVI_COUNT_MAX);
    svi_archive_int64(a, "wrong samples", &of->wrong, 0, SVI_COUNT_MAX);
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
    svi_archive_bool(a, "published", &s->published);
    svi_archive_bool(a, "worse", &s->worse);
    svi_archive_finite(a, "reported at", &s->reported_at, 1);
    alarm_archive_counts(a, &s->rows_before);
    alarm_archive_counts(a, &s->rows);
    alarm_archive_errors(a, s);
}

double svi_alarm_memory(double rate, int d) {
    return rate > 0 ? (double)(sizeof(struct svi_drift) + sizeof(struct svi_error_hours) +
                               SVI_RISE_KEPT * sizeof(struct svi_rise)) +
                          svi_drift_moments_memory(d)
                    : 0;
}
