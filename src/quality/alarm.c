/* The quality alarm: errors go into the detector, rows into the moments, and an alert follows from what the
 * detector finds.
 *
 * A rise opens an alert, or makes the open one worse; what was before it is dropped from the detector then,
 * so that a fall is measured from the new level. The alert closes when the error since the last change is
 * back within a quarter of the way from before to the worst: at a fall beyond chance, or slowly, once
 * CALM samples since then have it. Whatever closes it, the detector begins a new stretch (a regression finds
 * new bounds for what is a large error). */
#include "quality/alarm.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "alerts/alert_text.h"
#include "base/alloc.h"
#include "base/fail.h"

#define ERROR_MAX  1e140 /* squares are summed */
#define NEAR       0.25  /* of the way from before to the worst */
#define CALM       256   /* samples */
#define COUNT_MOST (INT64_MAX / 4)
#define USUAL      1.6448536269514722 /* deviations to the 5 % and 95 % quantiles of a normal law */

void svi_drift_stage_configure(struct svi_drift_stage *s, const struct svi_settings *settings) {
    const bool was = s->on;
    s->on = settings->drift_rate > 0 && settings->method != SVI_METHOD_NONE;
    s->rate = settings->drift_rate;
    if (s->errors)
        svi_drift_set_rate(s->errors, s->rate);
    if (was && !s->on)
        svi_drift_stage_prune(s);
}

void svi_drift_stage_new(struct svi_drift_stage *s, const struct svi_settings *settings) {
    *s = (struct svi_drift_stage){.regress = settings->task == SVS_REGRESS};
    svi_drift_stage_configure(s, settings);
}

void svi_drift_stage_free(struct svi_drift_stage *s) {
    svi_drift_moments_free(&s->moments);
    svi_free(s->errors);
    svi_free(s->top);
    s->errors = NULL;
    s->top = NULL;
    s->on = false;
}

svs_code svi_drift_stage_make(struct svi_drift_stage *s, svs_error *err) {
    if (!s->top)
        s->top = svi_alloc_plain_array(SVI_ALERT_TOP_MAX, sizeof *s->top);
    if (!s->top || !(s->errors = svi_alloc(sizeof *s->errors)))
        return svi_fail_memory(err, "the quality alarm");
    svi_drift_init(s->errors, s->regress, s->rate);
    return SVS_OK;
}

void svi_drift_stage_prune(struct svi_drift_stage *s) {
    if (s->errors)
        svi_drift_renew(s->errors);
    svi_drift_moments_free(&s->moments);
}

void svi_drift_stage_renew(struct svi_drift_stage *s, int feature) {
    svi_drift_moments_clear(&s->moments, feature);
}

void svi_drift_stage_reset(struct svi_drift_stage *s) {
    if (s->errors)
        svi_drift_init(s->errors, s->regress, s->rate);
    svi_drift_moments_free(&s->moments);
    s->open = false;
}

/* ---- one sample */

static double drift_stage_figure(const struct svi_drift_stage *s, const struct svi_drift_stretch *of) {
    if (of->n < 1)
        return NAN;
    return s->regress ? sqrt(of->squares / (double)of->n) : svi_drift_share(of);
}

static enum svi_alert_change drift_stage_rise(struct svi_drift_stage *s) {
    const struct svi_drift_found *f = &s->errors->found;
    const enum svi_alert_change change = s->open ? SVI_ALERT_UPDATE : SVI_ALERT_OPEN;
    s->count = svi_drift_moments_top(&s->moments, s->errors, f, SVI_ALERT_TOP_MAX, s->top);
    s->after = drift_stage_figure(s, &f->after);
    s->span = f->after.n;
    if (!s->open) {
        s->share = s->worst_share = svi_drift_share(&f->before);
        s->before = s->worst = drift_stage_figure(s, &f->before);
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

static enum svi_alert_change drift_stage_close(struct svi_drift_stage *s, const struct svi_drift_stretch *now,
                                               bool adapted) {
    s->after = drift_stage_figure(s, now);
    s->open = false;
    s->adapted = adapted;
    s->count = 0;
    if (s->regress)
        svi_drift_renew(s->errors);
    return SVI_ALERT_CLOSE;
}

/* While an alert is open: may it close? */
static enum svi_alert_change drift_stage_watch(struct svi_drift_stage *s, bool fell) {
    struct svi_drift_stretch now = fell ? s->errors->found.after : s->errors->all;
    const double near = s->share + NEAR * (s->worst_share - s->share);
    if ((fell || now.n >= CALM) && svi_drift_share(&now) <= near)
        return drift_stage_close(s, &now, false);
    if (now.n >= SVI_DRIFT_STAGE_SETTLED)
        return drift_stage_close(s, &now, true);
    return SVI_ALERT_NONE;
}

enum svi_alert_change svi_drift_stage_judge(struct svi_drift_stage *s, double error, const double *x, int d,
                                            double time, int64_t number) {
    const double size = fabs(error) <= ERROR_MAX ? fabs(error) : ERROR_MAX;
    const struct svi_drift_sample sample = {size, time, number};
    if (!s->on || !s->errors)
        return SVI_ALERT_NONE;
    const enum svi_drift_change change = svi_drift_step(s->errors, &sample);
    svi_drift_moments_step(&s->moments, s->errors, x, x ? d : 0);
    if (change == SVI_DRIFT_RISE)
        return drift_stage_rise(s);
    return s->open ? drift_stage_watch(s, change == SVI_DRIFT_FALL) : SVI_ALERT_NONE;
}

/* ---- what an alert says */

static void drift_stage_top(const struct svi_drift_stage *s, const struct svi_schema *schema,
                            struct svi_alert_report *out, struct svi_quality_feature *features) {
    for (int i = 0; i < s->count; i++) {
        const struct svi_drift_shift *t = &s->top[i];
        out->top[i] = (struct svi_contribution){.feature = svi_shape_name(&schema->shape, t->feature),
                                                .column = t->feature,
                                                .value = t->after,
                                                .low = t->before - USUAL * t->deviation,
                                                .high = t->before + USUAL * t->deviation,
                                                .adds = t->shift};
        features[i] = (struct svi_quality_feature){.name = out->top[i].feature,
                                                   .column = t->feature,
                                                   .unit = svi_schema_unit(schema, t->feature),
                                                   .before = t->before,
                                                   .after = t->after,
                                                   .deviation = t->deviation};
    }
}

static struct svi_alert_event drift_stage_event(const struct svi_drift_stage *s,
                                                const struct svi_alert_report *out) {
    return (struct svi_alert_event){.kind = "quality",
                                    .id = svs_none(),
                                    .measure = s->regress ? "rmse" : "error",
                                    .before = s->before,
                                    .after = s->after,
                                    .since = s->since,
                                    .top = out->top,
                                    .text = out->text};
}

void svi_drift_stage_report(const struct svi_drift_stage *s, svs_value id, const struct svi_schema *schema,
                            const char *stream, double ts, enum svi_alert_change change,
                            struct svi_alert_report *out) {
    static const char *const states[] = {
        [SVI_ALERT_OPEN] = "open", [SVI_ALERT_UPDATE] = "update", [SVI_ALERT_CLOSE] = "close"};
    struct svi_quality_feature features[SVI_ALERT_TOP_MAX];
    drift_stage_top(s, schema, out, features);
    out->event = drift_stage_event(s, out);
    out->event.state = states[change];
    out->event.id = id;
    out->event.count = s->count;
    const struct svi_quality_line line = {.state = change,
                                          .regress = s->regress,
                                          .adapted = s->adapted,
                                          .stream = stream,
                                          .before = s->before,
                                          .after = s->after,
                                          .worst = s->worst,
                                          .since = s->since,
                                          .time = ts,
                                          .number = s->number,
                                          .top = features,
                                          .count = s->count};
    svi_quality_text(out->text, &line);
}

bool svi_drift_stage_end(struct svi_drift_stage *s, const char *stream, const char *why,
                         struct svi_alert_report *out) {
    if (!s->open)
        return false;
    s->open = false;
    s->after = NAN;
    out->event = drift_stage_event(s, out);
    out->event.state = "close";
    snprintf(out->text, sizeof out->text, "%s quality alert ended: %s", stream, why);
    return true;
}

void svi_drift_stage_move_times(struct svi_drift_stage *s, double from, double step) {
    if (s->errors)
        svi_drift_move_times(s->errors, from, step);
    if (s->since > from)
        s->since += step;
}

/* ---- archive */

/* Where none are made yet they are as new; and read, they stay away where the alarm is off. */
static void drift_stage_archive_errors(struct svi_archive *a, struct svi_drift_stage *s) {
    struct svi_drift fresh;
    svs_error err;
    svi_drift_init(&fresh, s->regress, s->rate);
    if (!s->errors && s->on && svi_archive_loading(a) && svi_drift_stage_make(s, &err) != SVS_OK) {
        svi_archive_fail(a, SVS_NO_MEMORY, err.text);
        return;
    }
    struct svi_drift *errors = s->errors ? s->errors : &fresh;
    svi_drift_archive(a, errors);
    if (svi_archive_ok(a))
        svi_drift_moments_archive(a, &s->moments, errors);
}

void svi_drift_stage_archive(struct svi_archive *a, struct svi_drift_stage *s) {
    svi_archive_int64(a, "episodes", &s->episodes.count, 0, COUNT_MOST);
    svi_archive_int64(a, "episode of novelty", &s->episodes.novelty, 0, COUNT_MOST);
    svi_archive_int64(a, "episode of quality", &s->episodes.quality, 0, COUNT_MOST);
    svi_archive_bool(a, "open", &s->open);
    svi_archive_int64(a, "opened", &s->opened, 0, COUNT_MOST);
    svi_archive_double(a, "share", &s->share);
    svi_archive_double(a, "worst share", &s->worst_share);
    svi_archive_double(a, "before", &s->before);
    svi_archive_double(a, "after", &s->after);
    svi_archive_double(a, "worst", &s->worst);
    svi_archive_finite(a, "since", &s->since, 1);
    svi_archive_int64(a, "number", &s->number, -1, COUNT_MOST);
    drift_stage_archive_errors(a, s);
}

double svi_drift_stage_memory(const struct svi_settings *settings, int d) {
    if (!(settings->drift_rate > 0) || settings->method == SVI_METHOD_NONE)
        return 0;
    return (double)sizeof(struct svi_drift) + svi_drift_moments_memory(d);
}
