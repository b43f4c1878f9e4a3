/* Turns events into lines and counts.
 *
 * An alert is identified by its key and its number from open to close. Its entry in `open` gives its duration
 * and the incident before whose start it was reported. A close without an open belongs to an alert that was
 * open when the log began. An alert that names many keys counts for the key under which it was sent.
 *
 * Read svi_alert_log_take first. */
#include "report/alert_log.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/human.h"
#include "fleet/key_table.h"

/* The detector or the rule that raised the alert; NULL: the alert names neither. */
static const char *alert_log_detector(const struct svi_alert_event *a) {
    return a->judge ? a->judge : a->rule;
}

/* ---- counting */

/* Counts one alert under its name. The table has a fixed size; names beyond it are not counted. */
static void alert_log_count(struct svi_alert_kind *kinds, const char *kind) {
    for (int i = 0; i < SVI_ALERT_LOG_KINDS; i++) {
        struct svi_alert_kind *k = &kinds[i];
        if (!k->count)
            snprintf(k->name, sizeof k->name, "%s", kind);
        if (strncmp(k->name, kind, sizeof k->name - 1) == 0) {
            k->count++;
            return;
        }
    }
}

/* Counts a report of a key: an alert that opens, or an update, for its severity. */
static void alert_log_count_key(struct svi_alert_log *l, const struct svi_event *event, bool opens) {
    const char *severity = event->as.alert.severity;
    const uint64_t hash = svi_key_hash(event->key, strlen(event->key));
    int64_t i = 0;
    /* By the hash first; a scan suffices, since alerts are rare. */
    while (i < l->key_count && !(l->keys[i].hash == hash && strcmp(l->keys[i].name, event->key) == 0))
        i++;
    /* Further keys are not counted, so that memory does not grow with the stream. */
    if (i == SVI_ALERT_LOG_KEYS)
        return;
    if (!svi_grow(&l->keys, i, &l->key_capacity, 16, sizeof *l->keys)) {
        l->failed = true;
        return;
    }
    if (i == l->key_count) {
        l->keys[l->key_count++] = (struct svi_alert_key){.hash = hash};
        snprintf(l->keys[i].name, sizeof l->keys[i].name, "%s", event->key);
    }
    l->keys[i].count += opens;
    l->keys[i].serious += severity && strcmp(severity, "serious") == 0;
    l->keys[i].warnings += severity && strcmp(severity, "warning") == 0;
}

/* Is a worse than b? Equal ones are in the order of their first report. */
static bool alert_log_is_worse(const struct svi_alert_key *a, const struct svi_alert_key *b) {
    if (a->serious != b->serious)
        return a->serious > b->serious;
    return a->warnings != b->warnings ? a->warnings > b->warnings : a->count > b->count;
}

int svi_alert_log_worst(const struct svi_alert_log *l, const char **keys, int count) {
    const struct svi_alert_key *last = NULL;
    int n = 0;
    for (; n < count; n++) {
        const struct svi_alert_key *worst = NULL;
        for (const struct svi_alert_key *k = l->keys; k < l->keys + l->key_count; k++) {
            /* After the last one taken: less bad, or equal and later. */
            if (last && !alert_log_is_worse(last, k) && (alert_log_is_worse(k, last) || k <= last))
                continue;
            worst = !worst || alert_log_is_worse(k, worst) ? k : worst;
        }
        if (!worst)
            break;
        keys[n] = worst->name;
        last = worst;
    }
    if (n == 0 && count > 0 && l->first_key[0])
        keys[n++] = l->first_key;
    return n;
}

static struct svi_alert_episode *alert_log_find(struct svi_alert_log *l, const char *key, int64_t alert) {
    for (int64_t i = 0; i < l->open_count; i++)
        if (l->open[i].alert == alert && strcmp(l->open[i].key, key ? key : "") == 0)
            return &l->open[i];
    return NULL;
}

static struct svi_alert_episode *alert_log_open(struct svi_alert_log *l, const char *key, int64_t alert,
                                                double at) {
    /* Without memory only the duration is lost here; `failed` makes the preview end with SVS_NO_MEMORY. */
    if (!svi_grow(&l->open, l->open_count, &l->open_capacity, 16, sizeof *l->open)) {
        l->failed = true;
        return NULL;
    }
    l->open[l->open_count] =
        (struct svi_alert_episode){.alert = alert, .opened = at, .before = -1, .keyed = key};
    snprintf(l->open[l->open_count].key, sizeof l->open->key, "%s", key ? key : "");
    return &l->open[l->open_count++];
}

/* An update may name further keys. An alert that counted as false by its first key may belong to an incident
 * of another; it then no longer counts as false. */
static void alert_log_named(struct svi_alert_log *l, const struct svi_alert_event *a,
                            struct svi_alert_episode *episode, double at) {
    bool belongs = false;
    for (int i = 1; i < a->named_count; i++) {
        int64_t before;
        belongs = svi_incidents_report(l->incidents, a->named[i], at, false, &before) || belongs;
        if (before >= 0) /* only the first key's incident is tracked until the close */
            svi_incidents_close(l->incidents, before, -INFINITY);
    }
    if (!belongs || !episode || !episode->outside)
        return;
    episode->outside = false;
    l->outside--;
}

/* Handles an open or an update: assigns it to an incident and counts it. */
/* An episode remembers at most one incident that it precedes; further reports before the same or another
 * start are released at once (closed at -INFINITY, which never counts as found). */
static void alert_log_report(struct svi_alert_log *l, const struct svi_event *event,
                             struct svi_alert_episode *episode, double at, bool opened) {
    const struct svi_alert_event *a = &event->as.alert;
    int64_t before = -1;
    const bool belongs = l->incidents && svi_incidents_report(l->incidents, event->key, at, opened, &before);
    if (l->incidents && l->incidents->keyed && !opened)
        alert_log_named(l, a, episode, at);
    /* Whether it is false is decided when it opens; an update can only improve that (alert_log_named). */
    if (episode && opened)
        episode->outside = l->incidents && !belongs;
    l->outside += opened && l->incidents && !belongs;
    l->alerts += opened;
    l->updates += !opened;
    if (opened)
        alert_log_count(l->kinds, a->kind);
    if (opened && alert_log_detector(a))
        alert_log_count(l->judges, alert_log_detector(a));
    if (before < 0)
        return;
    if (episode && episode->before < 0)
        episode->before = before;
    else /* one episode counts once */
        svi_incidents_close(l->incidents, before, -INFINITY);
}

/* The incidents that began while this alert was open: if missed, they are reported as "began while an alert
 * was open". */
static void alert_log_during(const struct svi_alert_log *l, const struct svi_alert_episode *e, double at) {
    svi_incidents_during(l->incidents, e->keyed ? e->key : NULL, e->opened, at);
}

static void alert_log_close(struct svi_alert_log *l, struct svi_alert_episode *episode, double at) {
    l->closed++;
    if (!episode)
        return;
    /* In seconds, or in rows if the samples have no times. */
    l->lasted += at - episode->opened;
    l->longest = fmax(l->longest, at - episode->opened);
    if (l->incidents) {
        svi_incidents_close(l->incidents, episode->before, at);
        alert_log_during(l, episode, at);
    }
    /* The order of open alerts does not matter: the last one fills the gap. */
    *episode = l->open[--l->open_count];
}

/* output */

static void alert_log_print(struct svi_alert_log *l, const struct svi_alert_event *a, double at,
                            double lasted) {
    char when[SVI_HUMAN], span[SVI_HUMAN] = "";
    const bool closes = strcmp(a->state, "close") == 0, known = closes && !isnan(lasted);
    /* The progress line is on the same terminal. */
    if (l->progress)
        svi_progress_clear(l->progress);
    if (known)
        svi_human_span(span, l->by_rows, lasted);
    fprintf(l->lines, "%-19s  %s%" PRId64 " %s%s%s: %s\n", svi_human_place(when, l->by_rows, at),
            a->reason ? "mute " : "#", a->reason ? a->mute : a->alert, closes ? "closed" : a->state,
            known ? " after " : "", span, a->text ? a->text : "");
}

/* Packs one event for programs. Beyond SVI_ALERT_LOG_EVENTS they are only counted, so that memory stays
 * bounded. */
static void alert_log_keep(struct svi_alert_log *l, const struct svi_event *event, double at) {
    const struct svi_alert_event *a = &event->as.alert;
    struct svi_pack p;
    if (l->event_count == SVI_ALERT_LOG_EVENTS) {
        l->events_left_out++;
        return;
    }
    svi_pack_begin(&p, &l->events);
    const struct svi_open_map map = svi_pack_open(&p);
    if (event->key)
        svi_put_text(&p, "key", event->key);
    if (a->keys > 0)
        svi_put_int(&p, "keys_count", a->keys);
    svi_put_int(&p, "alert", a->alert);
    svi_put_text(&p, "kind", a->kind);
    svi_put_value(&p, "detector", alert_log_detector(a) ? svs_str(alert_log_detector(a)) : svs_none());
    svi_put_text(&p, "state", a->state);
    svi_put_real(&p, l->by_rows ? "row" : "ts", at);
    svi_put_real(&p, "since", a->since);
    svi_put_value(&p, "id", a->id);
    svi_put_text(&p, "text", a->text ? a->text : "");
    svi_pack_close(&p, map);
    l->failed = svi_pack_end(&p) != SVS_OK || l->failed;
    l->event_count++;
}

static void alert_log_alert(struct svi_alert_log *l, const struct svi_event *event) {
    const struct svi_alert_event *a = &event->as.alert;
    const double at = l->by_rows ? (double)l->rows : event->ts;
    /* Without times the row number stands for the time; `rows` counts score events, which precede the alerts
     * of their row. */
    const bool opens = strcmp(a->state, "open") == 0, closes = strcmp(a->state, "close") == 0;
    struct svi_alert_episode *episode =
        opens ? alert_log_open(l, event->key, a->alert, at) : alert_log_find(l, event->key, a->alert);
    if (!closes && event->key)
        alert_log_count_key(l, event, opens);
    if (l->lines)
        alert_log_print(l, a, at, closes && episode ? at - episode->opened : NAN);
    if (l->keeps)
        alert_log_keep(l, event, at);
    for (int i = 0; i < l->plot_count; i++)
        if (svi_alert_plot_is_of(&l->plots[i], event->key) && opens)
            svi_alert_plot_mark(&l->plots[i], at, a);
        else if (svi_alert_plot_is_of(&l->plots[i], event->key) && closes)
            svi_alert_plot_close(&l->plots[i], at, a->alert);
    if (a->reason) /* the end of a mute is no alert */
        return;
    if (closes)
        alert_log_close(l, episode, at);
    else
        alert_log_report(l, event, episode, at, opens);
}

void svi_alert_log_take(struct svi_alert_log *l, const struct svi_event *event) {
    if (event->topic == SVI_TOPIC_ALERT)
        alert_log_alert(l, event);
    if (event->topic != SVI_TOPIC_SCORE)
        return;
    /* Times may go back in a file: the range covers the earliest and the latest. */
    const double at = l->by_rows ? (double)(l->rows + 1) : event->ts;
    l->first = l->rows == 0 ? at : fmin(l->first, at);
    l->last = l->rows == 0 ? at : fmax(l->last, at);
    l->rows++;
    if (event->key && !l->first_key[0])
        snprintf(l->first_key, sizeof l->first_key, "%s", event->key);
    for (int i = 0; i < l->plot_count; i++)
        if (svi_alert_plot_is_of(&l->plots[i], event->key))
            svi_alert_plot_add(&l->plots[i], at, event);
}

void svi_alert_log_end(struct svi_alert_log *l) {
    for (int64_t i = 0; i < l->open_count && l->incidents; i++)
        alert_log_during(l, &l->open[i], l->last);
}

void svi_alert_log_reset(struct svi_alert_log *l) {
    /* The owner's part and the allocated arrays stay; everything counted is cleared. */
    struct svi_alert_log empty = {.lines = l->lines,
                                  .progress = l->progress,
                                  .incidents = l->incidents,
                                  .plots = l->plots,
                                  .plot_count = l->plot_count,
                                  .silent = l->silent,
                                  .keeps = l->keeps,
                                  .by_rows = l->by_rows,
                                  .open = l->open,
                                  .open_capacity = l->open_capacity,
                                  .keys = l->keys,
                                  .key_capacity = l->key_capacity,
                                  .events = l->events};
    empty.events.size = 0;
    *l = empty;
    if (l->incidents)
        svi_incidents_reset(l->incidents);
    for (int i = 0; i < l->plot_count; i++)
        svi_alert_plot_reset(&l->plots[i]);
}

void svi_alert_log_clear(struct svi_alert_log *l) {
    svi_free(l->open);
    svi_free(l->keys);
    svi_bytes_clear(&l->events);
    *l = (struct svi_alert_log){0};
}
