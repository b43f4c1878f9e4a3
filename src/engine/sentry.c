#include "engine/sentry.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "engine/engine_state.h"
#include "novelty/alert_text.h"

#define TOP 5 /* features named in an alert event */

svs_code svi_sentry_options(const struct svi_settings *s, int d, struct svi_detector_options *o,
                            svs_error *err) {
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

svs_code svi_sentry_new(struct svi_sentry *s, const struct svi_settings *settings, svs_error *err) {
    *s = (struct svi_sentry){.on = settings->novelty != 0};
    if (!s->on)
        return SVS_OK;
    const struct svi_alert_options alert = {.p = settings->alert_p,
                                            .clear = settings->alert_clear,
                                            .cooldown = settings->alert_cooldown,
                                            .fdr = settings->alert_fdr,
                                            .warmup = settings->novelty_warmup};
    s->lags = (int)settings->novelty_lags;
    s->differences = settings->novelty_differences;
    svi_alert_init(&s->alert, &alert);
    return svi_sentry_options(settings, 0, &s->options, err);
}

void svi_sentry_configure(struct svi_sentry *s, const struct svi_settings *settings) {
    s->alert.o.p = s->options.p = settings->alert_p;
    s->alert.o.clear = s->options.clear = settings->alert_clear;
    s->alert.o.cooldown = settings->alert_cooldown;
    if (s->detector)
        svi_detector_set_levels(s->detector, settings->alert_p, settings->alert_clear);
}

static void drop_rows(struct svi_sentry_rows *r) {
    svi_lags_clear(&r->history);
    svi_free(r->x);
    svi_free(r->row);
    svi_free(r->adds);
    *r = (struct svi_sentry_rows){0};
}

void svi_sentry_free(struct svi_sentry *s) {
    svi_detector_free(&s->detector);
    drop_rows(&s->rows);
    s->on = false;
}

void svi_sentry_reset(struct svi_sentry *s) {
    const struct svi_alert before = s->alert;
    svi_detector_free(&s->detector);
    drop_rows(&s->rows);
    s->judged = false;
    svi_alert_init(&s->alert, &before.o);
    s->alert.opened = before.opened;
    s->alert.suppressed = before.suppressed;
}

static svs_code take_rows(struct svi_sentry_rows *r, int d, int lags, bool differences, svs_error *err) {
    const size_t columns = (size_t)d * (size_t)lags;
    *r = (struct svi_sentry_rows){.d = d};
    r->x = svi_alloc_array((size_t)d, sizeof *r->x);
    r->row = svi_alloc_array(columns, sizeof *r->row);
    r->adds = svi_alloc_array(columns, sizeof *r->adds);
    if (r->x && r->row && r->adds)
        return svi_lags_init(&r->history, d, lags, differences, err);
    return svi_fail_memory(err, "the novelty of the stream");
}

/* The samples before this one, with 0 in the columns that are new. */
static void keep_history(struct svi_lags *to, const struct svi_lags *from) {
    to->held = from->held;
    to->newest = from->newest;
    for (int l = 0; l < from->lags; l++)
        memcpy(to->ring + (size_t)l * (size_t)to->d, from->ring + (size_t)l * (size_t)from->d,
               (size_t)from->d * sizeof *to->ring);
}

svs_code svi_sentry_build(struct svi_sentry *s, int d, svs_error *err) {
    struct svi_sentry_rows rows;
    struct svi_detector_options o = s->options;
    svs_code code = take_rows(&rows, d, s->lags, s->differences, err);
    o.d = d * s->lags;
    if (code == SVS_OK && s->detector)
        code = svi_detector_widen(&s->detector, s->lags, d, err);
    else if (code == SVS_OK && !(s->detector = svi_detector_new(&o, err)))
        code = SVS_NO_MEMORY;
    if (code != SVS_OK) {
        drop_rows(&rows);
        return code;
    }
    keep_history(&rows.history, &s->rows.history);
    drop_rows(&s->rows);
    s->rows = rows;
    return SVS_OK;
}

/* Where columns may still come, room for some more, so that few of them cost a rebuild. */
static int room_for(const struct svi_message *m, int most) {
    int room = 16;
    if (m->kind == SVI_DENSE)
        return m->d;
    while (room < m->d)
        room *= 2;
    return room < most ? room : most;
}

svs_code svi_sentry_reserve(struct svi_sentry *s, const struct svi_message *m, svs_error *err) {
    if (!s->on || m->d <= s->rows.d)
        return SVS_OK;
    const int most = SVI_SENTRY_COLUMNS / s->lags;
    if (m->d <= most)
        return svi_sentry_build(s, room_for(m, most), err);
    svi_detector_free(&s->detector);
    drop_rows(&s->rows);
    s->on = s->judged = false;
    snprintf(s->reason, sizeof s->reason,
             "novelty is off: %d features times novelty.lags %d are more than %d columns", m->d, s->lags,
             SVI_SENTRY_COLUMNS);
    return SVS_OK;
}

void svi_sentry_gap(struct svi_sentry *s) {
    svi_lags_empty(&s->rows.history);
}

enum svi_alert_change svi_sentry_judge(struct svi_sentry *s, const struct svi_message *m, double time) {
    struct svi_sentry_rows *r = &s->rows;
    const struct svi_judgement *j = &s->judgement;
    s->judged = false;
    if (!s->on)
        return SVI_ALERT_NONE;
    memcpy(r->x, m->x, (size_t)m->d * sizeof *m->x);
    memset(r->x + m->d, 0, (size_t)(r->d - m->d) * sizeof *r->x);
    if (!svi_lags_push(&r->history, r->x, r->row))
        return SVI_ALERT_NONE;
    s->judged = true;
    svi_detector_judge(s->detector, r->row, &s->judgement);
    s->grade = j->p > s->alert.o.clear ? 0 : svi_alert_grade(j->novelty, svi_detector_level(s->detector));
    return svi_alert_step(&s->alert, j->p, j->tail, s->grade, time);
}

void svi_sentry_learn(struct svi_sentry *s, const struct svi_message *m) {
    if (s->judged)
        s->refused += svi_detector_learn(s->detector, m->y.kind != SVS_NONE) == SVI_LESSON_REFUSED;
}

/* ---- what an alert says */

/* Of each feature what all its lags add together, in `sums`; returns the sum of their sizes. */
static double add_lags(struct svi_sentry *s, int d, double *sums) {
    const double *adds = s->rows.adds;
    double sum = 0;
    svi_detector_explain(s->detector, s->rows.adds);
    for (int j = 0; j < d; j++) {
        sums[j] = 0;
        for (int l = 0; l < s->lags; l++)
            sums[j] += adds[(size_t)l * (size_t)s->rows.d + (size_t)j];
        sum += fabs(sums[j]);
    }
    return sum;
}

static int largest(const double *v, int n) {
    int at = 0;
    for (int j = 1; j < n; j++)
        at = fabs(v[j]) > fabs(v[at]) ? j : at;
    return at;
}

/* The column of the feature's lag that adds most. */
static int telling_lag(const struct svi_sentry *s, int feature) {
    int most = feature;
    for (int l = 1; l < s->lags; l++)
        if (fabs(s->rows.adds[l * s->rows.d + feature]) > fabs(s->rows.adds[most]))
            most = l * s->rows.d + feature;
    return most;
}

/* The features that add most, at most TOP. Returns how many. */
static int find_top(struct svi_engine *e, const struct svi_message *m, struct svi_contribution *top) {
    struct svi_sentry *s = &e->sentry;
    double *sums = s->rows.x; /* the sample stands in its row by now */
    const double sum = add_lags(s, m->d, sums);
    int count = 0;
    for (; count < TOP && count < m->d && sum > 0; count++) {
        const int most = largest(sums, m->d), column = telling_lag(s, most);
        if (sums[most] == 0)
            break;
        top[count] = (struct svi_contribution){.feature = svi_publish_name(e, most),
                                               .column = most,
                                               .value = s->rows.row[column],
                                               .adds = sums[most] / sum};
        svi_detector_usual(s->detector, column, &top[count].low, &top[count].high);
        sums[most] = 0;
    }
    return count;
}

/* How far a value lies beyond what is usual, in widths of that; 0 within. */
static double excess(const struct svi_contribution *c) {
    const double width = c->high - c->low, beyond = fmax(c->value - c->high, c->low - c->value);
    return beyond > 0 ? beyond / fmax(width, 1e-9 * fabs(c->value)) : 0;
}

/* For people: what is plainly out of its range comes first, then what adds most. */
static void order_for_people(struct svi_contribution *c, int count) {
    for (int i = 1; i < count; i++)
        for (int k = i; k > 0 && excess(&c[k]) > excess(&c[k - 1]); k--) {
            const struct svi_contribution t = c[k];
            c[k] = c[k - 1];
            c[k - 1] = t;
        }
}

static void write_line(const struct svi_engine *e, const struct svi_contribution *top, int count,
                       enum svi_alert_change change, char *text) {
    const struct svi_sentry *s = &e->sentry;
    struct svi_alert_feature features[SVI_ALERT_TOP];
    struct svi_contribution c[TOP];
    const int shown = count < SVI_ALERT_TOP ? count : SVI_ALERT_TOP;
    memcpy(c, top, (size_t)count * sizeof *c);
    order_for_people(c, count);
    for (int i = 0; i < shown; i++)
        features[i] = (struct svi_alert_feature){c[i].feature, c[i].column, c[i].value, c[i].low, c[i].high};
    const struct svi_alert_line line = {.state = change,
                                        .stream = e->s.stream,
                                        .top = features,
                                        .count = shown,
                                        .novelty = s->judgement.novelty,
                                        .p = s->judgement.p,
                                        .grade = s->alert.worst,
                                        .since = s->alert.since,
                                        .time = e->event_ts};
    svi_alert_text(text, &line);
}

void svi_sentry_tell(struct svi_engine *e, const struct svi_message *m, enum svi_alert_change change) {
    static const char *const states[] = {
        [SVI_ALERT_OPEN] = "open", [SVI_ALERT_UPDATE] = "update", [SVI_ALERT_CLOSE] = "close"};
    const struct svi_sentry *s = &e->sentry;
    struct svi_contribution top[TOP];
    char text[SVI_ALERT_TEXT];
    if (!s->on)
        svi_sentry_end(e, s->reason);
    if (change == SVI_ALERT_NONE)
        return;
    const int count =
        change == SVI_ALERT_CLOSE ? 0 : find_top(e, m, top); /* of what is usual there is no reason */
    write_line(e, top, count, change, text);
    struct svi_event event = {.topic = SVI_TOPIC_ALERT, .ts = e->event_ts};
    event.as.alert.state = states[change];
    event.as.alert.id = m->id;
    event.as.alert.novelty = s->judgement.novelty;
    event.as.alert.membership = s->judgement.membership;
    event.as.alert.p = s->judgement.p;
    event.as.alert.grade = change == SVI_ALERT_CLOSE ? s->alert.worst : s->grade;
    event.as.alert.since = s->alert.since;
    event.as.alert.top = top;
    event.as.alert.count = count;
    event.as.alert.text = text;
    svi_publish(e, &event);
}

void svi_sentry_end(struct svi_engine *e, const char *why) {
    struct svi_alert *a = &e->sentry.alert;
    struct svi_event event = {.topic = SVI_TOPIC_ALERT, .ts = e->event_ts};
    char text[SVI_ALERT_TEXT];
    if (!a->open)
        return;
    a->open = false;
    snprintf(text, sizeof text, "%s alert ended: %s", e->s.stream, why);
    event.as.alert.state = "close";
    event.as.alert.novelty = event.as.alert.membership = event.as.alert.p = NAN;
    event.as.alert.grade = a->worst;
    event.as.alert.since = a->since;
    event.as.alert.text = text;
    svi_publish(e, &event);
}

double svi_sentry_memory(const struct svi_settings *s, int d) {
    struct svi_detector_options o;
    const double columns = (double)d * (double)s->novelty_lags;
    if (!s->novelty || columns > SVI_SENTRY_COLUMNS ||
        svi_sentry_options(s, (int)columns, &o, NULL) != SVS_OK)
        return 0;
    return svi_detector_memory(&o) + sizeof(double) * (3 * columns + d);
}
