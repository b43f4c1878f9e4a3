/* Events become lines and counts.
 *
 * An alert is known by its key and its number from its open to its close, which is how its duration is found
 * and which incident it was reported before; a close without an open is of an alert that was open when the
 * log began. One that names many keys is that of the key in whose name it goes out.
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

/* Which judge, or which rule; NULL: the alert names none. */
static const char *alert_log_detector(const struct svi_alert_event *a) {
    return a->judge ? a->judge : a->rule;
}

/* ---- counting */

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

static void alert_log_count_key(struct svi_alert_log *l, const struct svi_event *event) {
    const uint64_t hash = svi_key_hash(event->key, strlen(event->key));
    int64_t i = 0;
    while (i < l->key_count && !(l->keys[i].hash == hash && strcmp(l->keys[i].name, event->key) == 0))
        i++;
    if (i == SVI_ALERT_LOG_KEYS)
        return;
    if (!svi_grow(&l->keys, i, &l->key_room, 16, sizeof *l->keys)) {
        l->failed = true;
        return;
    }
    if (i == l->key_count) {
        l->keys[l->key_count++] = (struct svi_alert_key){.hash = hash};
        snprintf(l->keys[i].name, sizeof l->keys[i].name, "%s", event->key);
    }
    l->keys[i].count++;
}

static struct svi_alert_episode *alert_log_find(struct svi_alert_log *l, const char *key, int64_t alert) {
    for (int64_t i = 0; i < l->open_count; i++)
        if (l->open[i].alert == alert && strcmp(l->open[i].key, key ? key : "") == 0)
            return &l->open[i];
    return NULL;
}

static struct svi_alert_episode *alert_log_open(struct svi_alert_log *l, const char *key, int64_t alert,
                                                double at) {
    if (!svi_grow(&l->open, l->open_count, &l->open_capacity, 16, sizeof *l->open)) {
        l->failed = true;
        return NULL;
    }
    l->open[l->open_count] =
        (struct svi_alert_episode){.alert = alert, .opened = at, .before = -1, .keyed = key};
    snprintf(l->open[l->open_count].key, sizeof l->open->key, "%s", key ? key : "");
    return &l->open[l->open_count++];
}

/* An update names keys: one that was false, as far as its first key goes, may be of an incident of another.
 */
static void alert_log_named(struct svi_alert_log *l, const struct svi_alert_event *a,
                            struct svi_alert_episode *episode, double at) {
    bool belongs = false;
    for (int i = 1; i < a->named_count; i++) {
        int64_t before;
        belongs = svi_incidents_report(l->incidents, a->named[i], at, false, &before) || belongs;
        if (before >= 0) /* only the first one is followed to its end */
            svi_incidents_close(l->incidents, before, -INFINITY);
    }
    if (!belongs || !episode || !episode->outside)
        return;
    episode->outside = false;
    l->outside--;
}

/* Opened or updated. */
static void alert_log_report(struct svi_alert_log *l, const struct svi_event *event,
                             struct svi_alert_episode *episode, double at, bool opened) {
    const struct svi_alert_event *a = &event->as.alert;
    int64_t before = -1;
    const bool belongs = l->incidents && svi_incidents_report(l->incidents, event->key, at, opened, &before);
    if (l->incidents && l->incidents->keyed && !opened)
        alert_log_named(l, a, episode, at);
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
    else /* it counts once */
        svi_incidents_close(l->incidents, before, -INFINITY);
}

static void alert_log_during(const struct svi_alert_log *l, const struct svi_alert_episode *e, double at) {
    svi_incidents_during(l->incidents, e->keyed ? e->key : NULL, e->opened, at);
}

static void alert_log_close(struct svi_alert_log *l, struct svi_alert_episode *episode, double at) {
    l->closed++;
    if (!episode)
        return;
    l->lasted += at - episode->opened;
    l->longest = fmax(l->longest, at - episode->opened);
    if (l->incidents) {
        svi_incidents_close(l->incidents, episode->before, at);
        alert_log_during(l, episode, at);
    }
    *episode = l->open[--l->open_count];
}

/* ---- telling */

static void alert_log_print(struct svi_alert_log *l, const struct svi_alert_event *a, double at,
                            double lasted) {
    char when[SVI_HUMAN], span[SVI_HUMAN] = "";
    const bool closes = strcmp(a->state, "close") == 0, known = closes && !isnan(lasted);
    if (l->progress)
        svi_progress_clear(l->progress);
    if (known)
        svi_human_span(span, l->by_rows, lasted);
    fprintf(l->lines, "%-19s  #%" PRId64 " %s%s%s: %s\n", svi_human_place(when, l->by_rows, at), a->alert,
            closes ? "closed" : a->state, known ? " after " : "", span, a->text ? a->text : "");
}

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
    const bool opens = strcmp(a->state, "open") == 0, closes = strcmp(a->state, "close") == 0;
    struct svi_alert_episode *episode =
        opens ? alert_log_open(l, event->key, a->alert, at) : alert_log_find(l, event->key, a->alert);
    if (opens && event->key)
        alert_log_count_key(l, event);
    if (l->lines)
        alert_log_print(l, a, at, closes && episode ? at - episode->opened : NAN);
    if (l->keeps)
        alert_log_keep(l, event, at);
    if (l->plot && opens)
        svi_alert_plot_mark(l->plot, a);
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
    const double at = l->by_rows ? (double)(l->rows + 1) : event->ts;
    l->first = l->rows == 0 ? at : fmin(l->first, at);
    l->last = l->rows == 0 ? at : fmax(l->last, at);
    l->rows++;
    if (l->plot)
        svi_alert_plot_add(l->plot, at, event->as.score.x, event->as.score.d);
}

void svi_alert_log_end(struct svi_alert_log *l) {
    for (int64_t i = 0; i < l->open_count && l->incidents; i++)
        alert_log_during(l, &l->open[i], l->last);
}

void svi_alert_log_reset(struct svi_alert_log *l) {
    struct svi_alert_log empty = {.lines = l->lines,
                                  .progress = l->progress,
                                  .incidents = l->incidents,
                                  .plot = l->plot,
                                  .keeps = l->keeps,
                                  .by_rows = l->by_rows,
                                  .open = l->open,
                                  .open_capacity = l->open_capacity,
                                  .keys = l->keys,
                                  .key_room = l->key_room,
                                  .events = l->events};
    empty.events.size = 0;
    *l = empty;
    if (l->incidents)
        svi_incidents_reset(l->incidents);
    if (l->plot)
        memset(l->plot, 0, sizeof *l->plot);
}

void svi_alert_log_clear(struct svi_alert_log *l) {
    svi_free(l->open);
    svi_free(l->keys);
    svi_bytes_clear(&l->events);
    *l = (struct svi_alert_log){0};
}
