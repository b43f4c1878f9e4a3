/* The alert stage: each accepted sample is assessed, the alert may change, and the sample may be learned.
 *
 * Parts, in the order of reading: set-up, capacity, one sample, archive.
 *
 * Novelty (novelty/detector.h) does not see the sample but a row: its d features together with the last
 * samples (lags). Sensors see the sample itself. Rows may have spare columns, so that few new columns cost a
 * rebuild; sensors have none.
 *
 * Invariant: capacity is reserved before a sample is assessed (svi_alert_stage_reserve). A failed allocation
 * therefore refuses the sample and leaves everything unchanged. The number of columns that all parts have
 * capacity for is cached in `capacity` until one of them is full, so most samples ask no part. A stream of
 * too many columns continues without novelty, and the stats give the reason.
 *
 * The stage returns the change of the alert; alert_report.c makes an event of it, and the
 * engine publishes. */
#include "alerts/alert_stage.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "alerts/context.h"
#include "alerts/sensors.h"
#include "base/alloc.h"
#include "base/fail.h"

static void alert_stage_drop_detectors(struct svi_alert_stage *s) {
    svi_detectors_clear(&s->detectors);
    svi_history_clear(&s->history);
    s->anomaly = (struct svi_anomaly){.rows = 0}; /* what those detectors found */
    /* The engine compares this with the columns; 0 makes it name the columns of context to new detectors. */
    s->context_d = 0;
}

void svi_alert_stage_init(struct svi_alert_stage *s, const struct svi_alert_stage_options *o) {
    *s = (struct svi_alert_stage){.on = o->on, .capacity = -1};
    if (!s->on)
        return;
    /* The number of columns is known with the first row. `lags` stays 0 in a stage without novelty, and the
     * rest of this file recognises one by that. */
    s->lags = o->lags;
    s->differences = o->differences;
    s->with_context = o->with_context;
    snprintf(s->zone, sizeof s->zone, "%s", o->zone ? o->zone : "");
    s->options = o->novelty;
    svi_alert_init(&s->alert, &o->alert);
    svi_alert_policy_init(&s->policy, &o->policy);
}

void svi_alert_stage_share_scratch(struct svi_alert_stage *s, struct svi_shared_scratch *scratch) {
    s->options.shared = scratch;
}

svs_code svi_alert_stage_use_scratch(struct svi_alert_stage *s, struct svi_shared_scratch *scratch,
                                     svs_error *err) {
    if (!s->options.shared) /* a stage that owns its scratch never borrows one */
        return SVS_OK;
    /* A stage that is off has no detector but follows as well: it may be switched on again, and then works in
     * the scratch of the thread that owns it at that time. */
    svs_code code = s->detector ? svi_detector_use_scratch(s->detector, scratch, err) : SVS_OK;
    s->options.shared = code == SVS_OK ? scratch : s->options.shared;
    return code;
}

void svi_alert_stage_release_scratch(struct svi_alert_stage *s) {
    if (s->detector)
        svi_detector_release_scratch(s->detector);
}

svs_code svi_alert_stage_prepare(const struct svi_alert_stage *s, const struct svi_alert_stage_options *o,
                                 struct svi_detector_prepared *prepared, svs_error *err) {
    const bool other = o->novelty.confirm != s->options.confirm || o->novelty.persist != s->options.persist;
    return s->detector && other ? svi_detector_prepare(s->detector, &o->novelty, prepared, err) : SVS_OK;
}

void svi_alert_stage_configure(struct svi_alert_stage *s, const struct svi_alert_stage_options *o,
                               struct svi_detector_prepared *prepared) {
    if (s->lags == 0) /* a stage without novelty */
        return;
    /* Compare before the options are replaced. The procedure restarts only when its share changes: otherwise
     * a change of any other setting would restore the allowance that it has spent. */
    const bool other = o->alert.fdr != s->alert.o.fdr;
    s->alert.o = o->alert;
    svi_alert_policy_configure(&s->policy, &o->policy);
    /* Only a budget uses these detectors. With a later budget they start from nothing: they missed rows. */
    if (!svi_alert_policy_is_on(&s->policy))
        alert_stage_drop_detectors(s);
    if (other && o->alert.fdr > 0)
        svi_discovery_init(&s->alert.discovery, o->alert.fdr);
    /* The scratch belongs to the thread, not to the settings. */
    struct svi_shared_scratch *shared = s->options.shared;
    s->options = o->novelty;
    s->options.shared = shared;
    s->capacity = -1;
    if (s->detector)
        svi_detector_configure(s->detector, &s->options, prepared);
}

static void drop_rows(struct svi_alert_stage_rows *r) {
    svi_lags_clear(&r->history);
    svi_free(r->x);
    *r = (struct svi_alert_stage_rows){0};
}

static void alert_stage_turn_off(struct svi_alert_stage *s) {
    svi_detector_free(&s->detector);
    alert_stage_drop_detectors(s);
    drop_rows(&s->rows);
    svi_verdicts_clear(&s->verdicts);
    /* `judged` too: svi_alert_stage_learn would otherwise use the freed detector. */
    s->on = s->judged = false;
}

void svi_alert_stage_free(struct svi_alert_stage *s) {
    alert_stage_turn_off(s);
    svi_alert_policy_clear(&s->policy);
}

void svi_alert_stage_reset(struct svi_alert_stage *s) {
    /* Only the options and the counters outlive a reset: stats count over the whole life of the stream. */
    const struct svi_alert before = s->alert;
    const bool on = s->on;
    alert_stage_turn_off(s);
    s->on = on;
    s->capacity = -1;
    svi_alert_init(&s->alert, &before.o);
    svi_alert_policy_clear(&s->policy);
    s->alert.opened = before.opened;
    s->alert.suppressed = before.suppressed;
}

void svi_alert_stage_replace(struct svi_alert_stage *s, const struct svi_alert_stage_options *o) {
    struct svi_alert_stage fresh;
    svi_alert_stage_init(&fresh, o);
    if (s->lags > 0 && fresh.lags > 0) { /* counters continue only from novelty to novelty */
        fresh.alert.opened = s->alert.opened;
        fresh.alert.suppressed = s->alert.suppressed;
        fresh.refused = s->refused;
        fresh.verdicts.marked_true = s->verdicts.marked_true;
        fresh.verdicts.marked_false = s->verdicts.marked_false;
    }
    /* Everything is copied out of the old stage by now, so it can be freed before the new one replaces it. */
    fresh.options.shared = s->options.shared;
    svi_alert_stage_free(s);
    *s = fresh;
}

/* ---- capacity */

/* Builds the rows and the detector for d features, d x lags <= SVI_ALERT_STAGE_COLUMNS; a detector that
 * exists is widened. SVS_NO_MEMORY: nothing has changed. */
static svs_code alert_stage_build(struct svi_alert_stage *s, int d, svs_error *err) {
    const size_t columns = (size_t)d * (size_t)s->lags;
    struct svi_alert_stage_rows rows = {.d = d};
    struct svi_detector_options o = s->options;
    o.d = (int)columns;
    rows.x = svi_alloc_array((size_t)d + 2 * columns, sizeof *rows.x);
    /* The detector is the last step that may fail: widening replaces it, which cannot be undone. */
    svs_code code = rows.x ? svi_lags_init(&rows.history, d, s->lags, s->differences, err)
                           : svi_fail_memory(err, "the novelty of the stream");
    if (code == SVS_OK && s->detector)
        code = svi_detector_widen(&s->detector, s->lags, d, err);
    else if (code == SVS_OK && !(s->detector = svi_detector_new(&o, err)))
        code = SVS_NO_MEMORY;
    if (code != SVS_OK) {
        drop_rows(&rows);
        return code;
    }
    svi_verdicts_set_columns(&s->verdicts, (int)columns);
    /* From here on nothing fails. Verdicts drop rows of another width. */
    rows.row = rows.x + d;
    rows.adds = rows.row + columns;
    struct svi_lags *to = &rows.history; /* the last samples, with 0 in the new columns */
    const struct svi_lags *from = &s->rows.history;
    to->held = from->held;
    to->newest = from->newest;
    svi_lags_widen(to->ring, to->d, from->ring, from->d, from->lags);
    drop_rows(&s->rows);
    s->rows = rows;
    return SVS_OK;
}

/* Features to reserve for d: where columns may be added, the next power of two from 16 on, so that few new
 * ones cost a rebuild. Dense rows have all their columns from the start; other rows may add some at any
 * time. */
static int alert_stage_spare(int d, bool more_may_come, int limit) {
    int capacity = 16;
    if (!more_may_come)
        return d;
    while (capacity < d)
        capacity *= 2;
    return capacity < limit ? capacity : limit;
}

static struct svi_detector_shape alert_stage_shape(const struct svi_alert_stage *s, int columns) {
    return (struct svi_detector_shape){columns, s->with_context ? SVI_CONTEXT_COLUMNS : 0, s->options.shared};
}

/* Reserves the detectors other than novelty. They are created with the first row, or with the first row after
 * a budget was set. */
static svs_code alert_stage_reserve_detectors(struct svi_alert_stage *s, int d, svs_error *err) {
    const struct svi_detector_shape shape = alert_stage_shape(s, d);
    bool fresh;
    if (!svi_alert_policy_is_on(&s->policy))
        return SVS_OK;
    SVI_TRY(svi_history_reserve(&s->history, d, s->options.shared, err));
    SVI_TRY(svi_detectors_reserve(&s->detectors, &shape, &fresh, err));
    /* Only for new detectors: a widened one is a copy and knows its categories. Novelty may know some from
     * before there was a budget. */
    for (int j = 0; fresh && s->detector && j < d && j < s->rows.d; j++)
        if (svi_detector_knows_category(s->detector, s->lags, j))
            svi_detectors_set_category(&s->detectors, j);
    return SVS_OK;
}

svs_code svi_alert_stage_reserve(struct svi_alert_stage *s, int d, bool more_may_come, svs_error *err) {
    if (!s->on) /* one stage that is off may serve many streams and threads: it is not written to */
        return SVS_OK;
    const int limit = SVI_ALERT_STAGE_COLUMNS / s->lags;
    if (d > limit) {
        /* Not an error: the classifier continues with the row. An open alert ends with this reason
         * (svi_alert_report_change). */
        alert_stage_turn_off(s);
        snprintf(s->reason, sizeof s->reason,
                 "novelty is off: %d features times novelty.lags %d are more than %d columns", d, s->lags,
                 SVI_ALERT_STAGE_COLUMNS);
        return SVS_OK;
    }
    /* `capacity` is valid again only when all parts have succeeded. Rows first: they may be wider than the
     * detectors of sensors, never narrower. The first sample may have no feature at all. */
    s->capacity = -1;
    if (!s->detector || d > s->rows.d)
        SVI_TRY(alert_stage_build(s, alert_stage_spare(d, more_may_come, limit), err));
    SVI_TRY(svi_detector_reserve(s->detector, 0, err));
    SVI_TRY(svi_alert_policy_reserve(&s->policy, false, err));
    SVI_TRY(alert_stage_reserve_detectors(s, d, err));
    s->capacity = d;
    return SVS_OK;
}

/* After a sample: if a part is full, the next sample asks for capacity again. Detectors that own their
 * scratch took all capacity at once and never fill up. */
static void alert_stage_note_full(struct svi_alert_stage *s) {
    if (svi_budget_is_full(&s->policy.budget) || svi_history_is_full(&s->history) ||
        (s->options.shared &&
         ((s->detector && svi_detector_is_full(s->detector)) || svi_detectors_are_full(&s->detectors))))
        s->capacity = -1;
}

int svi_alert_stage_columns(const struct svi_alert_stage *s) {
    const int columns = svi_detectors_columns(&s->detectors);
    if (columns < 0) /* no detector of sensors exists; under a budget the next reserve may create it */
        return svi_alert_policy_is_on(&s->policy) && s->rows.d <= SVI_SENSORS_MAX ? 0 : s->rows.d;
    /* The narrower of the two: sensors have no spare columns, rows may have some. */
    return columns < s->rows.d ? columns : s->rows.d;
}

void svi_alert_stage_gap(struct svi_alert_stage *s) {
    if (s->on)
        svi_lags_empty(&s->rows.history);
}

void svi_alert_stage_category(struct svi_alert_stage *s, int feature) {
    if (!s->on || !s->detector || feature >= s->rows.d)
        return;
    svi_detector_category(s->detector, s->lags, feature);
    svi_detectors_set_category(&s->detectors, feature);
}

bool svi_alert_stage_knows_category(const struct svi_alert_stage *s, int feature) {
    /* True where no detector needs to know: the caller waits for the novelty thread only if it must. */
    return !s->on || !s->detector || feature >= s->rows.d ||
           svi_detector_knows_category(s->detector, s->lags, feature);
}

void svi_alert_stage_renew(struct svi_alert_stage *s, int feature) {
    if (!s->on || !s->detector || feature >= s->rows.d) /* nothing is held of columns without capacity */
        return;
    svi_lags_renew(s->rows.history.ring, s->rows.d, s->lags, feature);
    svi_detector_renew(s->detector, s->lags, feature);
    svi_detectors_forget(&s->detectors, feature);
    svi_history_forget(&s->history, feature);
    /* The column may have become one of context, or stopped being one: the engine names them again. Rows kept
     * for verdicts have the old meaning of the column, so they are not learned any more. */
    s->context_d = 0;
    s->capacity = -1;
    svi_verdicts_renew(&s->verdicts);
}

/* The time that detectors see, in seconds. Rows without their own time are alert.interval apart, if that is
 * set, so that the same file gives the same bytes at any speed. */
static double alert_stage_clock(const struct svi_alert_stage *s, const struct svi_alert_sample *sample) {
    const struct svi_budget *b = &s->policy.budget;
    return !sample->timed && b->interval > 0 ? b->days * 86400 : sample->time;
}

bool svi_alert_stage_counts_rows(const struct svi_alert_stage *s, const struct svi_alert_sample *sample) {
    return !sample->timed && s->policy.o.interval > 0 && sample->number > 0;
}

/* Dates the alert that this sample opened back to the begin of the change that its leading detector found,
 * as far as the history reaches. */
static void alert_stage_date(struct svi_alert_stage *s, const struct svi_alert_sample *sample) {
    const bool on = svi_alert_policy_is_on(&s->policy);
    const int rows = on ? s->evidence[s->policy.lead].since : 1;
    const bool known = rows <= svi_history_held(&s->history) && rows <= sample->number;
    s->alert.begin = s->alert.since;
    s->alert.begin_row = sample->number;
    if (rows == 1 || !known)
        return;
    s->alert.begin = fmin(svi_history_over(&s->history, 0, rows).begin, s->alert.since);
    s->alert.begin_row = sample->number - rows + 1;
}

/* Keeps what a verdict on the open alert will need: its rows and the peaks of its detectors. */
static void alert_stage_keep(struct svi_alert_stage *s) {
    const int64_t tag = s->alert.opened;
    if (!s->alert.open || s->policy.quiet_rows > 0 || s->verdicts.columns != s->lags * s->rows.d)
        return;
    /* The quiet tail of an alert is left out: `verdict=true` would take normal rows out of the calibration.
     * Nor is a row kept that is wider than the verdicts' rows. */
    svi_verdicts_row(&s->verdicts, tag, s->rows.row);
    for (int i = 0; i < SVI_DETECTORS; i++)
        if (s->policy.ratio[i] >= 1)
            svi_verdicts_peak(&s->verdicts, tag, (enum svi_alert_detector)i, s->evidence[i].feature,
                              s->evidence[i].surprise);
}

svs_code svi_alert_stage_verdict(struct svi_alert_stage *s, int64_t *number, bool is_true, svs_error *err) {
    if (!svi_alert_stage_has_policy(s))
        return svi_fail(err, SVS_UNAVAILABLE,
                        "verdicts need alert.budget: set it, for example to 1/day");
    if (*number == 0 && (*number = svi_verdicts_last(&s->verdicts)) == 0)
        return svi_fail(
            err, SVS_UNAVAILABLE,
            "no alert waits for a verdict: each of the last %d of kind novelty has one, if there are any",
            SVI_VERDICT_EPISODES);
    /* All memory first: a verdict is final and must not stop half-way. What it teaches may fill parts, so the
     * next sample asks for capacity again. */
    s->capacity = -1;
    if (s->detector) {
        SVI_TRY(svi_detector_reserve(s->detector, SVI_VERDICT_ROWS, err));
        SVI_TRY(svi_alert_policy_reserve(&s->policy, true, err));
    }
    return svi_verdicts_give(&s->verdicts, &s->policy, s->detector, *number, is_true, err);
}

/* Changes the alert: by the evidence under a budget, else by p. */
static enum svi_alert_change alert_stage_alarm(struct svi_alert_stage *s, double time, bool timed) {
    const struct svi_judgement *j = &s->judgement;
    if (svi_alert_policy_is_on(&s->policy)) {
        const enum svi_alert_change change =
            svi_alert_policy_step(&s->policy, &s->alert, s->evidence, time, timed);
        alert_stage_keep(s);
        s->alarm = s->policy.alarm;
        s->surprise = s->policy.surprise_now;
        s->grade = s->alert.grade;
        return change;
    }
    /* Without a budget the alarm is log p over the log of the p that opens: 1 where an alert may open. */
    s->alarm = j->p < 1 ? log(j->p) / log(s->alert.o.p) : 0;
    s->surprise = -log10(j->p);
    s->grade = j->p > s->alert.o.clear ? 0 : svi_alert_grade(j->novelty, svi_detector_level(s->detector));
    if (s->grade == 0 && j->p <= s->alert.o.clear) /* novelty is low, but a value is beyond its range */
        s->grade = 1 - 1 / (1 + j->excess);
    return svi_alert_step(&s->alert, j->p, j->tail, s->grade, time);
}

/* Scores the row and then adds its strength to the past, so no row is ranked in a past that has it. A row
 * that is not learned leaves the past as it is. */
static void alert_stage_score(struct svi_alert_stage *s, bool learned) {
    double strength = 0;
    for (int i = 0; i < SVI_DETECTORS; i++)
        strength = fmax(strength, s->evidence[i].strength);
    s->score = svi_anomaly_score(&s->anomaly, s->judgement.p, strength);
    if (learned)
        svi_anomaly_add(&s->anomaly, strength);
}

/* Copies the sample into rows.x, widened by zeros. A value that only stands in for a missing one becomes NaN:
 * it carries no evidence. */
static void alert_stage_copy(struct svi_alert_stage *s, const struct svi_alert_sample *sample) {
    struct svi_alert_stage_rows *r = &s->rows;
    const int d = sample->d;
    memcpy(r->x, sample->x, (size_t)d * sizeof *r->x);
    memset(r->x + d, 0, (size_t)(r->d - d) * sizeof *r->x);
    for (int j = 0; sample->gaps && j < d; j++)
        r->x[j] = sample->gaps[j] ? NAN : r->x[j];
}

enum svi_alert_change svi_alert_stage_assess(struct svi_alert_stage *s,
                                             const struct svi_alert_sample *sample) {
    struct svi_alert_stage_rows *r = &s->rows;
    if (!s->on) /* shared, as above: not written to */
        return SVI_ALERT_NONE;
    s->judged = false;
    if (!s->detector) /* so far all rows were empty and no column exists */
        return SVI_ALERT_NONE;
    alert_stage_copy(s, sample);
    svi_history_add(&s->history, r->x, sample->time);
    /* Sensors assess every sample, even before the lags are full, because they need no row. The clock is read
     * once, so that all detectors see the same time. */
    struct svi_moment moment;
    struct svi_detector_sample seen = {.x = r->x, .moment = &moment, .unlearned = sample->unlearned};
    if (s->alert.open && svi_alert_policy_is_on(&s->policy)) {
        seen.known = s->policy.features;
        seen.known_count = s->policy.feature_count;
    }
    if (svi_alert_policy_is_on(&s->policy)) /* only then does a detector ask for it */
        svi_context_moment(s->zone, alert_stage_clock(s, sample), &moment);
    svi_detectors_assess(&s->detectors, &seen, s->evidence);
    /* After the sensors, whose forecasts need the context. As a missing value, context has no part in the
     * distances of novelty: an unusual load alone is no alert. */
    for (int j = 0; s->with_context && j < r->d; j++)
        if (svi_detectors_is_context(&s->detectors, j))
            r->x[j] = NAN;
    if (!svi_lags_push(&r->history, r->x, r->row))
        return SVI_ALERT_NONE;
    s->judged = true;
    /* Spare columns are 0, not missing, and must not count as features that two samples have in common. */
    svi_detector_set_columns(s->detector, s->lags * (sample->d > 0 ? sample->d : r->d));
    svi_detector_assess(s->detector, r->row, &s->judgement);
    /* Before the early return: the score of a sample without values must not repeat those of the last one. */
    s->alarm = s->surprise = s->score = 0;
    if (s->judgement.unknown) /* no evidence either way: the alert does not change */
        return SVI_ALERT_NONE;
    seen.row = &s->judgement;
    /* The second pass adds the detectors of rows to the evidence of the sensors; it does not clear it. */
    svi_detectors_assess(&s->detectors, &seen, s->evidence);
    alert_stage_score(s, !sample->unlearned);
    if (sample->unlearned)
        svi_budget_pass_over(&s->policy.budget);
    const enum svi_alert_change change = alert_stage_alarm(s, sample->time, sample->timed);
    if (change == SVI_ALERT_OPEN || change == SVI_ALERT_UPDATE)
        svi_detectors_date(&s->detectors, s->evidence);
    if (change == SVI_ALERT_OPEN)
        alert_stage_date(s, sample);
    return change;
}

void svi_alert_stage_move_times(struct svi_alert_stage *s, double from, double step) {
    svi_alert_move_times(&s->alert, from, step);
    svi_budget_move_times(&s->policy.budget, from, step);
    svi_history_move_times(&s->history, from, step);
}

struct svi_alert_scores svi_alert_stage_scores(const struct svi_alert_stage *s) {
    return (struct svi_alert_scores){s->judged, s->judgement.novelty, s->judgement.p,
                                     s->alarm,  s->surprise,          s->score};
}

void svi_alert_stage_learn(struct svi_alert_stage *s, const struct svi_alert_sample *sample) {
    if (s->judged && sample->unlearned)
        svi_detector_pass_over(s->detector);
    else if (s->judged)
        s->refused += svi_detector_learn(s->detector, sample->labelled) == SVI_LEARN_RESULT_REFUSED;
    if (s->on)
        alert_stage_note_full(s);
}

/* ---- archive */

void svi_alert_stage_archive(struct svi_archive *a, struct svi_alert_stage *s) {
    bool asked = s->lags > 0; /* the setting novelty is not none */
    int d = s->rows.d;
    svi_archive_bool(a, "asked", &asked);
    if (!svi_archive_check(a, asked == (s->lags > 0), "the setting novelty was different") || !asked)
        return;
    svi_archive_bool(a, "on", &s->on);
    svi_archive_text(a, "reason", s->reason, sizeof s->reason);
    svi_archive_int64(a, "refused", &s->refused, 0, INT64_MAX / 4);
    svi_alert_archive(a, &s->alert);
    if (!svi_archive_ok(a) || !s->on)
        return;
    svi_archive_int(a, "features", &d, 0, SVI_ALERT_STAGE_COLUMNS / s->lags);
    if (!svi_archive_ok(a) || d == 0)
        return;
    /* The number of features sizes every array: first that, then the arrays, then their contents. */
    if (svi_archive_loading(a) && alert_stage_build(s, d, a->err) != SVS_OK)
        return;
    svi_lags_archive(a, &s->rows.history);
    svi_detector_archive(a, s->detector);
}

bool svi_alert_stage_has_policy(const struct svi_alert_stage *s) {
    return s->lags > 0 && svi_alert_policy_is_on(&s->policy);
}

void svi_alert_stage_policy_archive(struct svi_archive *a, struct svi_alert_stage *s) {
    if (svi_archive_check(a, svi_alert_stage_has_policy(s), "the setting alert.budget was not set"))
        svi_alert_policy_archive(a, &s->policy);
    if (svi_archive_ok(a))
        svi_verdicts_archive(a, &s->verdicts);
}

void svi_alert_stage_detectors_archive(struct svi_archive *a, struct svi_alert_stage *s) {
    const struct svi_detector_shape shape = alert_stage_shape(s, s->detector ? s->rows.d : 0);
    svi_detectors_archive(a, &s->detectors, &shape);
    svi_history_archive(a, &s->history, shape.columns, shape.grows);
    svi_anomaly_archive(a, &s->anomaly);
}

double svi_alert_stage_memory(const struct svi_alert_stage_options *o, int d, int contexts, bool shared) {
    struct svi_detector_options novelty = o->novelty;
    struct svi_shared_scratch scratch = {0};
    const double own = shared ? sizeof(struct svi_alert_stage) : 0;
    const double columns = (double)d * o->lags;
    if (!o->on)
        return 0;
    if (columns > SVI_ALERT_STAGE_COLUMNS)
        return own;
    novelty.d = (int)columns;
    novelty.shared = shared ? &scratch : NULL;
    const bool policy = o->policy.a_day > 0;
    const struct svi_detector_shape shape = {d, contexts, shared};
    /* 3 x columns: the ring of lags, the row, its columns' contributions; d: the sample (struct
     * svi_alert_stage_rows). */
    return own + svi_detector_memory(&novelty) + (shared ? 0 : svi_verdicts_memory((int)columns)) +
           (policy ? svi_detectors_memory(&shape) + svi_history_memory(d) : 0) +
           (policy && shared ? svi_budget_memory() : 0) + sizeof(double) * (3 * columns + d);
}
