/* The novelty stage: each accepted sample is judged, an alert may change, and the sample is perhaps learned.
 *
 * In front of the detector (novelty/detector.h) stand the lags: what is judged is a row of d features and the
 * last samples. Rooms are made before a sample is judged (svi_alert_stage_reserve), so that a failing
 * allocation refuses the sample and leaves everything as it was; where columns may still come there is room
 * for some more. A stream of too many columns goes on without novelty, and the stats say why.
 *
 * The stage returns what it did to the alert; alert_report.c says it, and the engine publishes. Read in
 * order: set-up, one sample, archive. */
#include "alerts/alert_stage.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "alerts/alert_text.h"
#include "config/alert_budget.h"

svs_code svi_alert_stage_options(const struct svi_settings *s, int d, struct svi_detector_options *o,
                                 svs_error *err) {
    /* This overwrites `shared`, too: callers that have a room keep and restore it. */
    *o = (struct svi_detector_options){
        .window = s->novelty_window,
        .calibration = (int)s->novelty_calibration,
        .learn = (enum svi_novelty_learn)s->novelty_learn,
        .p = s->alert_p,
        .clear = s->alert_clear,
        .confirm = (int)(s->novelty_confirm + s->novelty_lags - 1), /* one odd value lasts that long */
        .persist = s->novelty_persist,
        .d = d};
    return svi_settings_novelty(s, &o->model, err);
}

static struct svi_alert_options alert_stage_alert(const struct svi_settings *s) {
    return (struct svi_alert_options){.p = s->alert_p,
                                      .clear = s->alert_clear,
                                      .cooldown = s->alert_cooldown,
                                      .fdr = s->alert_fdr,
                                      .warmup = s->novelty_warmup};
}

static struct svi_alert_policy_options alert_stage_policy(const struct svi_settings *s) {
    struct svi_alert_policy_options o = {.interval = s->alert_interval,
                                         .group = s->alert_group,
                                         .clear = s->alert_clear,
                                         .warmup = s->novelty_warmup};
    (void)svi_alert_budget_read(s->alert_budget, &o.a_day, NULL); /* which was checked */
    return o;
}

static void alert_stage_drop_judges(struct svi_alert_stage *s) {
    svi_sensors_free(&s->sensors);
    svi_row_detectors_clear(&s->row_detectors);
    /* The engine compares this with the columns: 0 makes it name columns of context to new detectors again.
     */
    s->context_d = 0;
}

svs_code svi_alert_stage_new(struct svi_alert_stage *s, const struct svi_settings *settings, svs_error *err) {
    *s = (struct svi_alert_stage){.on = settings->novelty != SVI_NOVELTY_NONE};
    if (!s->on)
        return SVS_OK;
    /* Nothing is allocated here. The number of columns is known with the first row; `lags` stays 0 in a stage
     * without novelty, and that is how the rest of this file knows one. */
    const struct svi_alert_options alert = alert_stage_alert(settings);
    const struct svi_alert_policy_options policy = alert_stage_policy(settings);
    s->lags = (int)settings->novelty_lags;
    s->differences = settings->novelty_differences;
    s->with_context = settings->context[0];
    svi_alert_init(&s->alert, &alert);
    svi_alert_policy_init(&s->policy, &policy);
    return svi_alert_stage_options(settings, 0, &s->options, err);
}

void svi_alert_stage_share_room(struct svi_alert_stage *s, struct svi_shared_room *room) {
    s->options.shared = room;
}

svs_code svi_alert_stage_use_room(struct svi_alert_stage *s, struct svi_shared_room *room, svs_error *err) {
    if (!s->options.shared) /* one that is off may be on again, in that of the thread that has it then */
        return SVS_OK;
    svs_code code = s->detector ? svi_detector_use_room(s->detector, room, err) : SVS_OK;
    s->options.shared = code == SVS_OK ? room : s->options.shared;
    return code;
}

void svi_alert_stage_rest(struct svi_alert_stage *s) {
    if (s->detector)
        svi_detector_rest(s->detector);
}

svs_code svi_alert_stage_make_room(const struct svi_alert_stage *s, const struct svi_settings *settings,
                                   struct svi_detector_room *room, svs_error *err) {
    struct svi_detector_options o = {0};
    svs_code code = s->detector ? svi_alert_stage_options(settings, 0, &o, err) : SVS_OK;
    if (!s->detector || code != SVS_OK)
        return code;
    if (o.confirm == s->options.confirm && o.persist == s->options.persist)
        return SVS_OK;
    return svi_detector_make_room(s->detector, &o, room, err);
}

void svi_alert_stage_configure(struct svi_alert_stage *s, const struct svi_settings *settings,
                               struct svi_detector_room *room) {
    if (s->lags == 0) /* none */
        return;
    /* Compare before the options are replaced. The procedure starts again only when its share changes: else a
     * change of any other setting would restore the wealth that it has spent. */
    const bool other = settings->alert_fdr != s->alert.o.fdr;
    const struct svi_alert_policy_options policy = alert_stage_policy(settings);
    s->alert.o = alert_stage_alert(settings);
    svi_alert_policy_configure(&s->policy, &policy);
    /* Only a budget uses these detectors. They start from nothing if one comes back: they have missed rows.
     */
    if (!svi_alert_policy_is_on(&s->policy))
        alert_stage_drop_judges(s);
    if (other && settings->alert_fdr > 0)
        svi_discovery_init(&s->alert.discovery, settings->alert_fdr);
    struct svi_shared_room *shared = s->options.shared;
    (void)svi_alert_stage_options(settings, 0, &s->options, NULL); /* which were checked */
    s->options.shared = shared;
    if (!s->detector)
        return;
    svi_detector_configure(s->detector, &s->options, room);
}

static void drop_rows(struct svi_alert_stage_rows *r) {
    svi_lags_clear(&r->history);
    svi_free(r->x);
    *r = (struct svi_alert_stage_rows){0};
}

static void alert_stage_turn_off(struct svi_alert_stage *s) {
    svi_detector_free(&s->detector);
    alert_stage_drop_judges(s);
    drop_rows(&s->rows);
    svi_verdicts_clear(&s->verdicts);
    /* `judged` too: svi_alert_stage_learn would otherwise look for the detector that is gone. */
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
    svi_alert_init(&s->alert, &before.o);
    svi_alert_policy_clear(&s->policy);
    s->alert.opened = before.opened;
    s->alert.suppressed = before.suppressed;
}

void svi_alert_stage_replace(struct svi_alert_stage *s, const struct svi_settings *settings) {
    struct svi_alert_stage fresh;
    (void)svi_alert_stage_new(&fresh, settings, NULL); /* takes no memory; the settings were checked */
    if (s->lags > 0 && fresh.lags > 0) {               /* a stage that is none keeps none */
        fresh.alert.opened = s->alert.opened;
        fresh.alert.suppressed = s->alert.suppressed;
        fresh.refused = s->refused;
        fresh.verdicts.said_true = s->verdicts.said_true;
        fresh.verdicts.said_false = s->verdicts.said_false;
    }
    fresh.options.shared = s->options.shared;
    svi_alert_stage_free(s);
    *s = fresh;
}

svs_code svi_alert_stage_build(struct svi_alert_stage *s, int d, svs_error *err) {
    const size_t columns = (size_t)d * (size_t)s->lags;
    struct svi_alert_stage_rows rows = {.d = d};
    struct svi_detector_options o = s->options;
    o.d = (int)columns;
    rows.x = svi_alloc_array((size_t)d + 2 * columns, sizeof *rows.x);
    /* The detector comes last of what may fail: widening replaces it, and after that there is no way back. */
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
    rows.row = rows.x + d;
    rows.adds = rows.row + columns;
    struct svi_lags *to = &rows.history; /* the samples before this one, with 0 in the columns that are new */
    const struct svi_lags *from = &s->rows.history;
    to->held = from->held;
    to->newest = from->newest;
    svi_lags_widen(to->ring, to->d, from->ring, from->d, from->lags);
    drop_rows(&s->rows);
    s->rows = rows;
    return SVS_OK;
}

/* Where columns may still come, room for some more, so that few of them cost a rebuild. */
static int room_for(const struct svi_message *m, int most) {
    int room = 16;
    /* Dense rows have all their columns from the start; other rows may bring new ones at any time. */
    if (m->kind == SVI_DENSE)
        return m->d;
    while (room < m->d)
        room *= 2;
    return room < most ? room : most;
}

/* The detectors of the sensors have the columns of the stream and no room for more, so that they say the same
 * in whatever form rows come. Too many columns: there are none. */
static svs_code alert_stage_sensors(struct svi_alert_stage *s, int d, svs_error *err) {
    if (s->sensors && svi_sensors_columns(s->sensors) >= d)
        return svi_sensors_reserve(s->sensors, err);
    if (d < 1)
        return SVS_OK;
    if (d > SVI_SENSORS_MAX) {
        svi_sensors_free(&s->sensors);
        return SVS_OK;
    }
    svi_sensors *sensors = s->sensors ? svi_sensors_widened(s->sensors, d, err)
                                      : svi_sensors_new(d, s->with_context, s->options.shared, err);
    if (!sensors)
        return SVS_NO_MEMORY;
    /* New detectors only: widened ones are a copy and know their categories. The detector may know some from
     * before there was a budget. */
    for (int j = 0; !s->sensors && s->detector && j < d && j < s->rows.d; j++)
        if (svi_detector_knows_category(s->detector, s->lags, j))
            svi_sensors_set_category(sensors, j);
    svi_sensors_free(&s->sensors);
    s->sensors = sensors;
    return SVS_OK;
}

/* Judges that are not there yet: of the first row, or of the first since there is a budget. */
static svs_code alert_stage_judges(struct svi_alert_stage *s, const struct svi_message *m, svs_error *err) {
    if (!svi_alert_policy_is_on(&s->policy))
        return SVS_OK;
    if (s->row_detectors.tails.series == 0 && svi_row_detectors_init(&s->row_detectors, err) != SVS_OK)
        return SVS_NO_MEMORY;
    return alert_stage_sensors(s, m->d, err);
}

svs_code svi_alert_stage_reserve(struct svi_alert_stage *s, const struct svi_message *m, svs_error *err) {
    if (!s->on)
        return SVS_OK;
    const int most = SVI_ALERT_STAGE_COLUMNS / s->lags;
    if (m->d <= most) { /* rows first: they may be wider than judges, but not the other way round */
        const bool fits = s->detector && m->d <= s->rows.d; /* the first sample may have no feature at all */
        svs_code code = fits ? SVS_OK : svi_alert_stage_build(s, room_for(m, most), err);
        if (code == SVS_OK)
            code = svi_detector_reserve(s->detector, 0, err);
        if (code == SVS_OK)
            code = svi_alert_policy_reserve(&s->policy, false, err);
        return code == SVS_OK ? alert_stage_judges(s, m, err) : code;
    }
    /* Not an error: the classifier goes on with the row. An alert that is open ends with this reason
     * (svi_alert_report_change). */
    alert_stage_turn_off(s);
    snprintf(s->reason, sizeof s->reason,
             "novelty is off: %d features times novelty.lags %d are more than %d columns", m->d, s->lags,
             SVI_ALERT_STAGE_COLUMNS);
    return SVS_OK;
}

int svi_alert_stage_columns(const struct svi_alert_stage *s) {
    if (!s->sensors) /* they may be due */
        return svi_alert_policy_is_on(&s->policy) && s->rows.d <= SVI_SENSORS_MAX ? 0 : s->rows.d;
    /* The narrower of the two: detectors have no spare columns, rows may have. */
    const int columns = svi_sensors_columns(s->sensors);
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
    if (s->sensors && feature < svi_sensors_columns(s->sensors))
        svi_sensors_set_category(s->sensors, feature);
}

bool svi_alert_stage_knows_category(const struct svi_alert_stage *s, int feature) {
    /* True where there is nobody to inform: the caller waits for the novelty thread only if it must. */
    return !s->on || !s->detector || feature >= s->rows.d ||
           svi_detector_knows_category(s->detector, s->lags, feature);
}

void svi_alert_stage_renew(struct svi_alert_stage *s, int feature) {
    if (!s->on || !s->detector || feature >= s->rows.d) /* of columns without room nothing is held */
        return;
    svi_lags_renew(s->rows.history.ring, s->rows.d, s->lags, feature);
    svi_detector_renew(s->detector, s->lags, feature);
    if (s->sensors && feature < svi_sensors_columns(s->sensors))
        svi_sensors_forget(s->sensors, feature);
    s->context_d = 0; /* it may be one of context, or no more */
    svi_verdicts_renew(&s->verdicts);
}

bool svi_alert_stage_set_context(struct svi_alert_stage *s, int feature) {
    return s->sensors && feature < svi_sensors_columns(s->sensors) &&
           svi_sensors_set_context(s->sensors, feature);
}

/* What judges take for the time: rows whose arrival says nothing (alert.interval) are as far apart as it
 * says, so that the same file gives the same bytes at any speed. */
static double alert_stage_clock(const struct svi_alert_stage *s, const struct svi_message *m, double time) {
    return isnan(m->ts) && s->policy.budget.interval > 0 ? s->policy.budget.days * 86400 : time;
}

/* The detectors of single sensors; context is no part of the row that the detector judges. */
static void alert_stage_sense(struct svi_alert_stage *s, const struct svi_moment *at) {
    for (int i = 0; i < SVI_DETECTORS; i++)
        s->evidence[i] = (struct svi_evidence){
            .feature = -1, .over = 1, .value = NAN, .expected = NAN, .low = NAN, .high = NAN, .with = -1};
    if (!s->sensors)
        return;
    svi_sensors_step(s->sensors, s->rows.x, at, s->evidence);
    /* After the sensors, whose forecasts need the context. As a missing value it counts for nothing in the
     * distances of the detector: an unusual load alone is no alert. */
    for (int j = 0; s->with_context && j < s->rows.d; j++)
        if (svi_sensors_is_context(s->sensors, j))
            s->rows.x[j] = NAN;
}

/* What a verdict will be about. */
static void alert_stage_note(struct svi_alert_stage *s) {
    const int64_t tag = s->alert.opened;
    if (!s->alert.open || s->policy.calm > 0 || s->verdicts.columns != s->lags * s->rows.d)
        return; /* or there was no memory for wider ones of both */
    /* The quiet tail of an alert is left out above: `verdict=true` would take usual rows out of the
     * calibration. */
    svi_verdicts_row(&s->verdicts, tag, s->rows.row);
    for (int i = 0; i < SVI_DETECTORS; i++)
        if (s->policy.ratio[i] >= 1)
            svi_verdicts_peak(&s->verdicts, tag, (enum svi_alert_detector)i, s->evidence[i].feature,
                              s->evidence[i].surprise);
}

svs_code svi_alert_stage_verdict(struct svi_alert_stage *s, int64_t number, bool is_true, svs_error *err) {
    /* All memory first: a verdict is final, so it must not stop half-way. */
    if (svi_alert_stage_has_policy(s) && s->detector &&
        (svi_detector_reserve(s->detector, SVI_VERDICT_ROWS, err) != SVS_OK ||
         svi_alert_policy_reserve(&s->policy, true, err) != SVS_OK))
        return SVS_NO_MEMORY;
    if (svi_alert_stage_has_policy(s))
        return svi_verdicts_say(&s->verdicts, &s->policy, s->detector, number, is_true, err);
    return svi_fail(err, SVS_UNAVAILABLE,
                    "alerts are kept for a verdict only under alert.budget, which is none");
}

/* What becomes of the alert: by the evidence under a budget, else by p. */
static enum svi_alert_change alert_stage_alarm(struct svi_alert_stage *s, double time, bool timed) {
    const struct svi_judgement *j = &s->judgement;
    if (svi_alert_policy_is_on(&s->policy)) {
        const enum svi_alert_change change =
            svi_alert_policy_step(&s->policy, &s->alert, s->evidence, time, timed);
        alert_stage_note(s);
        s->alarm = s->policy.alarm;
        s->surprise = s->policy.surprise_now;
        s->grade = s->alert.grade;
        return change;
    }
    s->alarm = j->p < 1 ? log(j->p) / log(s->alert.o.p) : 0;
    s->surprise = -log10(j->p);
    s->grade = j->p > s->alert.o.clear ? 0 : svi_alert_grade(j->novelty, svi_detector_level(s->detector));
    if (s->grade == 0 && j->p <= s->alert.o.clear) /* not so novel, but nothing was ever there */
        s->grade = 1 - 1 / (1 + j->excess);
    return svi_alert_step(&s->alert, j->p, j->tail, s->grade, time);
}

enum svi_alert_change svi_alert_stage_judge(struct svi_alert_stage *s, const struct svi_message *m,
                                            double time) {
    struct svi_alert_stage_rows *r = &s->rows;
    const struct svi_judgement *j = &s->judgement;
    if (!s->on) /* many may share this one */
        return SVI_ALERT_NONE;
    s->judged = false;
    if (!s->detector) /* nothing but rows of zeros without a column so far */
        return SVI_ALERT_NONE;
    memcpy(r->x, m->x, (size_t)m->d * sizeof *m->x);
    memset(r->x + m->d, 0, (size_t)(r->d - m->d) * sizeof *r->x);
    for (int j = 0; m->gaps && j < m->d; j++)
        r->x[j] = m->gaps[j] ? NAN : r->x[j]; /* what took the place of a missing value tells nothing */
    /* Sensors take every row, even those before the lags are full: they look at single samples. The clock
     * is asked once, so all detectors see one time. */
    struct svi_moment at;
    if (s->sensors || s->row_detectors.tails.series > 0)
        svi_context_moment(alert_stage_clock(s, m, time), &at);
    alert_stage_sense(s, &at);
    if (!svi_lags_push(&r->history, r->x, r->row))
        return SVI_ALERT_NONE;
    s->judged = true;
    /* Spare columns are 0, not missing: they must not count as features that both samples have. */
    svi_detector_set_columns(s->detector, m->d > 0 ? s->lags * m->d : s->lags * r->d);
    svi_detector_judge(s->detector, r->row, &s->judgement);
    /* Before the early return: the score of a sample without values must not repeat those of the last one. */
    s->alarm = s->surprise = 0;
    if (j->unknown) /* an alert goes on as it is */
        return SVI_ALERT_NONE;
    const struct svi_lasting_rank rank = {j->above, j->p, j->scores, j->calibrates, j->disturbed};
    if (s->row_detectors.tails.series > 0)
        svi_row_detectors_step(&s->row_detectors, j->extreme, &rank, &at, s->evidence);
    return alert_stage_alarm(s, time, !isnan(m->ts));
}

struct svi_alert_scores svi_alert_stage_scores(const struct svi_alert_stage *s) {
    return (struct svi_alert_scores){s->judged, s->judgement.novelty, s->judgement.p, s->alarm, s->surprise};
}

void svi_alert_stage_learn(struct svi_alert_stage *s, const struct svi_message *m) {
    if (s->judged)
        s->refused += svi_detector_learn(s->detector, m->y.kind != SVS_NONE) == SVI_LEARN_RESULT_REFUSED;
}

/* ---- archive */

void svi_alert_stage_archive(struct svi_archive *a, struct svi_alert_stage *s) {
    bool asked = s->lags > 0; /* the setting novelty is not none */
    int d = s->rows.d;
    svi_archive_bool(a, "asked", &asked);
    if (!svi_archive_check(a, asked == (s->lags > 0), "the setting novelty was another") || !asked)
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
    /* The number of features sizes every array: it comes first, then the arrays, then what fills them. */
    if (svi_archive_loading(a) && svi_alert_stage_build(s, d, a->err) != SVS_OK)
        return;
    svi_lags_archive(a, &s->rows.history);
    svi_detector_archive(a, s->detector);
}

bool svi_alert_stage_has_policy(const struct svi_alert_stage *s) {
    return s->lags > 0 && svi_alert_policy_is_on(&s->policy);
}

void svi_alert_stage_policy_archive(struct svi_archive *a, struct svi_alert_stage *s) {
    if (svi_archive_check(a, svi_alert_stage_has_policy(s), "the setting alert.budget was none"))
        svi_alert_policy_archive(a, &s->policy);
    if (svi_archive_ok(a))
        svi_verdicts_archive(a, &s->verdicts);
}

void svi_alert_stage_detectors_archive(struct svi_archive *a, struct svi_alert_stage *s) {
    bool has_rows = s->row_detectors.tails.series > 0;
    int columns = s->sensors ? svi_sensors_columns(s->sensors) : 0;
    svi_archive_bool(a, "row judges", &has_rows);
    svi_archive_int(a, "columns", &columns, 0, SVI_SENSORS_MAX);
    if (svi_archive_loading(a) && has_rows && s->row_detectors.tails.series == 0 && svi_archive_ok(a))
        (void)svi_row_detectors_init(&s->row_detectors, a->err);
    if (has_rows && svi_archive_ok(a))
        svi_row_detectors_archive(a, &s->row_detectors);
    if (columns == 0 || !svi_archive_check(a, s->detector && columns <= s->rows.d,
                                           "there are more columns to judge than rows have"))
        return;
    /* Each detector takes more than a byte: a damaged count must not allocate for 512 sensors. */
    if (svi_archive_loading(a) && svi_archive_left(a) < columns) {
        svi_archive_fail(a, SVS_DAMAGED, "there are fewer bytes than judges of sensors");
        return;
    }
    if (!s->sensors)
        s->sensors = svi_sensors_new(columns, s->with_context, s->options.shared, a->err);
    if (s->sensors)
        svi_sensors_archive(a, s->sensors);
}

svs_code svi_alert_stage_reserve_context(struct svi_alert_stage *s, svs_error *err) {
    return s->sensors ? svi_sensors_reserve_context(s->sensors, err) : SVS_OK;
}

double svi_alert_stage_memory(const struct svi_settings *s, int d, int contexts, bool shared) {
    struct svi_detector_options o;
    struct svi_shared_room room = {0};
    const double own = shared ? sizeof(struct svi_alert_stage) : 0;
    const double columns = (double)d * (double)s->novelty_lags;
    if (s->novelty == SVI_NOVELTY_NONE)
        return 0;
    if (columns > SVI_ALERT_STAGE_COLUMNS || svi_alert_stage_options(s, (int)columns, &o, NULL) != SVS_OK)
        return own;
    o.shared = shared ? &room : NULL;
    const bool policy = strcmp(s->alert_budget, "none") != 0;
    const double sensors =
        policy && d >= 1 && d <= SVI_SENSORS_MAX ? svi_sensors_memory(d, contexts, shared) : 0;
    const double detectors = policy && shared ? svi_row_detectors_memory() + svi_budget_memory() : 0;
    /* 3 x columns: the ring of lags, the row, what its columns add; d: the sample (struct
     * svi_alert_stage_rows). */
    return own + svi_detector_memory(&o) + (shared ? 0 : svi_verdicts_memory((int)columns)) + sensors +
           detectors + sizeof(double) * (3 * columns + d);
}
