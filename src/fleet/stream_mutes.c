/* Silence on purpose: the mutes of a stream (alerts/mutes.h) meet its alerts, its clocks and its commands.
 *
 * All alert events of all engines pass svi_stream_publish_alert on the stream's thread, in the order of the
 * samples, before they are numbered. There a mute holds them back; what is not held back goes its way (the
 * verb `alert`).
 *
 * A mute ends when the latest engine time reaches its end; or the arrival clock, which also moves while no
 * row comes, as a machine under maintenance may send none. Both are inputs that a journal repeats. First the
 * line of the end is published, then what was held back and is not over. Read stream_mutes_end, then the
 * command.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "base/fail.h"
#include "base/text.h"
#include "fleet/fleet_internal.h"
#include "wire/fields.h"

#define SENSORS_SHOWN 12 /* of those that exist, in an error */

/* ---- events */

/* What was held back may concern a key that is removed: then nobody waits for it. */
static void stream_mutes_release(svi_stream *s, int64_t mute, double ts) {
    struct svi_event event;
    while (svi_mutes_release(s->mutes, mute, &event)) {
        event.stream = s->root->s->stream;
        event.ts = fmax(event.ts, ts);
        s->verbs->alert(s, &event, false);
    }
}

/* Ends a mute at that engine time: the line of what it has found, then its alerts that are not over. */
static void stream_mutes_end(svi_stream *s, struct svi_mute *mute, double time) {
    char text[SVI_MUTE_LISTED * SVI_ALERT_TEXT + SVI_ALERT_TEXT];
    struct svi_event event = {.topic = SVI_TOPIC_ALERT,
                              .stream = s->root->s->stream,
                              .epoch = s->epoch,
                              .key = s->keyed ? "" : NULL,
                              .ts = time};
    mute->ended = true;
    event.as.alert = (struct svi_alert_event){.kind = "mute",
                                              .mute = mute->id,
                                              .state = "ended",
                                              .id = svs_none(),
                                              .since = mute->since,
                                              .found = mute->found,
                                              .reason = mute->reason,
                                              .text = text};
    event.as.alert.still_open = svi_mutes_line(s->mutes, mute, event.stream, time, text);
    s->verbs->alert(s, &event, true);
    stream_mutes_release(s, mute->id, time);
}

void svi_stream_mutes_time(svi_stream *s, double time) {
    struct svi_mute *mute;
    if (time > s->mutes->time) {
        s->mutes->time = time;
        s->mutes->arrived = s->arrival;
    }
    if (s->mutes->count == 0 || !svi_mutes_due(s->mutes, s->mutes->time))
        return;
    /* Rows that wait for the second thread arrived before. The workers of a fleet are at rows after this one:
     * they go on, and see nothing of what changes here. */
    if (!s->keyed)
        svi_engine_settle(s->root);
    while ((mute = svi_mutes_due(s->mutes, s->mutes->time)))
        stream_mutes_end(s, mute, mute->until);
}

/* All threads are idle: a mute that has ended teaches no engine anything any more. */
void svi_stream_mutes_pass(svi_stream *s, double now) {
    for (int i = 0; i < s->mutes->count; i++) {
        struct svi_mute *mute = s->mutes->at[i];
        if (!mute->ended && mute->due <= now)
            stream_mutes_end(s, mute, mute->until);
    }
    svi_mutes_tidy(s->mutes);
}

void svi_stream_publish_alert(svi_stream *s, const struct svi_event *event, double time) {
    struct svi_event own = *event;
    if (own.as.alert.kept_only) { /* a verdict */
        svi_stream_send(s, &own);
        return;
    }
    svi_stream_mutes_time(s, time);
    if (s->mutes->count > 0 && svi_mutes_hold(s->mutes, &own)) {
        /* What happened under a mute is kept when it happens; what is published after it is another event. */
        own = *event;
        own.as.alert.kept_only = true;
        svi_stream_send(s, &own);
        return;
    }
    s->verbs->alert(s, &own, false);
}

/* Clients that know an alert of the key must learn that it is over while the key still counts its events. */
void svi_stream_mutes_drop(svi_stream *s, const char *key) {
    struct svi_event event;
    while (svi_mutes_drop(s->mutes, key, &event)) {
        event.stream = s->root->s->stream;
        s->verbs->alert(s, &event, false);
    }
}

/* ---- what a mute names */

const struct svi_mutes *svi_stream_mutes(svi_stream *s) {
    svi_stream_root(s);
    return s->mutes;
}

int64_t svi_stream_mute_keys(svi_stream *s, const struct svi_mute *mute) {
    struct svi_fleet *f = svi_fleet_of(s);
    int64_t count = 0;
    for (const struct svi_key_entry *n = f ? svi_key_table_first(f->table) : NULL; n; n = n->after)
        count += !mute->key[0] || svi_text_matches(mute->key, strlen(mute->key), n->name);
    return f ? count : -1;
}

/* The engine whose columns decide whether a sensor exists: that of the matching key seen last; without one,
 * that of the last sample. */
static const struct svi_engine *mute_engine(svi_stream *s, const char *key) {
    struct svi_fleet *f = svi_fleet_of(s);
    const struct svi_key_entry *last = NULL;
    struct svi_key_entry *entry;
    svs_error err;
    for (const struct svi_key_entry *n = f && key[0] ? svi_key_table_first(f->table) : NULL; n; n = n->after)
        if (svi_text_matches(key, strlen(key), n->name) && (!last || n->head.turn > last->head.turn))
            last = n;
    const struct svi_engine *e = last ? svi_fleet_find(f, last->name, false, 0, &entry, &err) : NULL;
    return e ? e : svi_stream_latest(s);
}

static const char *mute_sensor_name(const struct svi_engine *e, int column, char number[16]) {
    const char *name = svi_schema_name(&e->schema, column);
    snprintf(number, 16, "%d", column);
    return name ? name : number;
}

/* A name that no column has would mute nothing, silently. Before the first row any name may come. */
static svs_code mute_check_sensor(svi_stream *s, const struct svi_mute *mute, svs_error *err) {
    char number[16], shown[100], all[SENSORS_SHOWN * 40] = "";
    const struct svi_engine *e = mute_engine(s, mute->key);
    const int d = svi_engine_features(e);
    size_t at = 0;
    for (int j = 0; j < d; j++)
        if (strcmp(mute_sensor_name(e, j, number), mute->sensor) == 0)
            return SVS_OK;
    if (!mute->sensor[0] || d == 0)
        return SVS_OK;
    for (int j = 0; j < d && j < SENSORS_SHOWN; j++) {
        const char *name = mute_sensor_name(e, j, number);
        svi_escape(shown, 36, name, strlen(name));
        at += (size_t)snprintf(all + at, sizeof all - at, "%s%s", j ? ", " : "", shown);
    }
    return svi_fail(err, SVS_UNKNOWN_COLUMN, "mute: no sensor is called '%s': there are %s%s",
                    svi_escape(shown, sizeof shown, mute->sensor, strlen(mute->sensor)), all,
                    d > SENSORS_SHOWN ? " and more" : "");
}

/* ---- the command */

/* A text of at most size - 1 bytes. */
static svs_code mute_text(const struct svi_item *item, const char *name, char *to, size_t size,
                          svs_error *err) {
    if (item->type == SVI_ITEM_TYPE_COUNT)
        return SVS_OK;
    if (item->type == SVI_INT) { /* a name of digits, written bare */
        snprintf(to, size, "%lld", (long long)item->i);
        return SVS_OK;
    }
    if (item->type != SVI_STRING || item->length >= size ||
        !svi_utf8_valid((const char *)item->body, item->length) || memchr(item->body, 0, item->length))
        return svi_fail(err, SVS_WRONG_TYPE, "mute: %s must be a string of at most %zu bytes of UTF-8", name,
                        size - 1);
    memcpy(to, item->body, item->length);
    to[item->length] = '\0';
    return SVS_OK;
}

static svs_code mute_flag(const struct svi_item *item, bool *to, svs_error *err) {
    const bool yes = svi_item_is(item, "yes") || svi_item_is(item, "true");
    const bool no = svi_item_is(item, "no") || svi_item_is(item, "false");
    if (item->type == SVI_ITEM_TYPE_COUNT || no || yes || item->type == SVI_BOOL) {
        *to = item->type == SVI_BOOL ? item->i != 0 : yes;
        return SVS_OK;
    }
    return svi_fail(err, SVS_WRONG_TYPE,
                    "mute: learn must be yes or no: are rows under the mute learned as normal?");
}

static svs_code mute_time(const struct svi_item *item, double *seconds, svs_error *err) {
    const svs_value v = svi_item_value(item);
    const bool given = item->type != SVI_ITEM_TYPE_COUNT;
    *seconds = v.kind == SVS_INT ? (double)v.as.i : v.kind == SVS_REAL ? v.as.r : -1;
    if (v.kind == SVS_STR && !svi_duration_read(v.as.s, v.length, seconds))
        *seconds = -1;
    if (!given || !(*seconds > 0))
        return svi_fail(err, SVS_WRONG_TYPE,
                        "mute: %s must be a length of time above 0: 30s, 10min, 2h or 1d, or seconds",
                        given ? "for" : "for must be given; it");
    if (*seconds > SVI_MUTES_LONGEST)
        return svi_fail(err, SVS_LIMIT, "mute: for must be at most %g days: mute again when it has ended",
                        SVI_MUTES_LONGEST / 86400);
    return SVS_OK;
}

/* `name` is the key where the stream has keys, else the sensor: so a bare word of a command line means what
 * it can mean. */
static svs_code mute_read(const svi_stream *s, const struct svi_command *c, struct svi_mute *mute,
                          double *seconds, svs_error *err) {
    const bool named = c->name.type != SVI_ITEM_TYPE_COUNT;
    *mute = (struct svi_mute){0};
    if (c->key.type != SVI_ITEM_TYPE_COUNT && !s->keyed)
        return svi_fail(err, SVS_BAD_KEY, "mute: this stream has no keys: leave out key, or name a sensor");
    if (named && (s->keyed ? c->key : c->sensor).type != SVI_ITEM_TYPE_COUNT)
        return svi_fail(err, SVS_INVALID, "mute: the %s is given twice", s->keyed ? "key" : "sensor");
    SVI_TRY(mute_text(named && s->keyed ? &c->name : &c->key, "key", mute->key, sizeof mute->key, err));
    SVI_TRY(mute_text(named && !s->keyed ? &c->name : &c->sensor, "sensor", mute->sensor, sizeof mute->sensor,
                      err));
    SVI_TRY(mute_text(&c->reason, "reason", mute->reason, sizeof mute->reason, err));
    SVI_TRY(mute_text(&c->who, "who", mute->who, sizeof mute->who, err));
    SVI_TRY(mute_flag(&c->learn, &mute->learn, err));
    return mute_time(&c->lasts, seconds, err);
}

/* The engine time of now: the latest one, and what has passed since it arrived. Without that a mute in a
 * pause of the rows would begin in the past, and end with the next row. */
static svs_code mute_begin(svi_stream *s, const struct svi_command *c, double now, svs_error *err) {
    struct svi_mute mute;
    double seconds;
    const struct svi_mutes *m = s->mutes;
    SVI_TRY(mute_read(s, c, &mute, &seconds, err));
    SVI_TRY(mute_check_sensor(s, &mute, err));
    mute.by_arrival = isinf(m->time) || svi_stream_latest(s)->by_arrival;
    mute.since = isinf(m->time) ? now : m->time + fmax(0, now - m->arrived);
    mute.until = mute.since + seconds;
    mute.due = now + seconds;
    return svi_mutes_add(s->mutes, &mute, err) ? SVS_OK : err->code;
}

static svs_code mute_end(svi_stream *s, const struct svi_command *c, double now, svs_error *err) {
    if (c->mute.type != SVI_INT)
        return svi_fail(err, SVS_WRONG_TYPE,
                        "unmute: mute must be given: the id of a mute (mutes lists them)");
    struct svi_mute *mute = svi_mutes_find(s->mutes, c->mute.i);
    if (!mute)
        return svi_fail(err, SVS_UNAVAILABLE,
                        "unmute: there is no mute %lld, or it has ended (mutes lists those "
                        "that last)",
                        (long long)c->mute.i);
    const double time = isinf(s->mutes->time) ? now : s->mutes->time + fmax(0, now - s->mutes->arrived);
    stream_mutes_end(s, mute, fmin(fmax(mute->since, time), mute->until));
    svi_mutes_tidy(s->mutes);
    return SVS_OK;
}

svs_code svi_stream_mutes_command(svi_stream *s, const struct svi_command *c, double now, svs_error *err) {
    svi_mutes_tidy(s->mutes);
    return c->op == SVI_COMMAND_MUTE ? mute_begin(s, c, now, err) : mute_end(s, c, now, err);
}

/* ---- in the state */

void svi_stream_archive_mutes(struct svi_archive *a, svi_stream *s) {
    svi_mutes_archive(a, s->mutes);
}

/* Not hashed: engine time may be the arrival of the rows. */
void svi_stream_archive_mutes_time(struct svi_archive *a, svi_stream *s) {
    svi_mutes_time_archive(a, s->mutes);
}

bool svi_stream_has_mutes(const svi_stream *s) {
    return s->mutes->begun > 0;
}
