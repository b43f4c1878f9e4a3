/* GET /alerts: episodes of alerts, the newest first, as one map each: the keys of the opening event, and over
 * them what became of it.
 *
 * The list is brought up to date first. Where the stream does not answer, what is known is given, with
 * `complete` false. With ?events=true the plain events come from the stream, in order. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alert_list.h"
#include "base/alloc.h"
#include "handlers.h"
#include "relay.h"
#include "wire/pack.h"

#define LIMIT     100
#define LIMIT_MAX 10000
#define GRACE     2.0

struct alerts_question {
    struct exchange *x; /* NULL: it has ended */
    struct http_app *app;
    struct http_stream *stream;
    int64_t since, limit, offset;
    uint64_t epoch; /* that `since` is of; 0: not stated */
    bool open;      /* only those */
    bool keyed;
    char key[SVS_KEY_MAX + 1];
};

/* ---- one episode */

/* What later events decide; the opening event has some of these keys as well. */
static const char *const replaced[] = {"number", "state", "severity", "text", "ts", "seq", "v", NULL};

static bool is_replaced(const struct svi_item *name) {
    for (int i = 0; replaced[i]; i++)
        if (name->type == SVI_STRING && name->length == strlen(replaced[i]) &&
            memcmp(name->body, replaced[i], name->length) == 0)
            return true;
    return false;
}

/* The pairs of the opening event that still hold. */
static void alerts_put_event(struct svi_pack *p, const struct http_alert *a) {
    const uint8_t *at = a->event, *const end = a->event + a->size;
    struct svi_item head, name;
    at = svi_item_read(at, &head);
    for (uint32_t i = 0; head.type == SVI_MAP && i < head.length; i++) {
        const uint8_t *const pair = at;
        svi_item_read(at, &name);
        svi_walk(&at, end, SVI_WALK_MAX);
        svi_walk(&at, end, SVI_WALK_MAX);
        if (!is_replaced(&name))
            svi_pack_pairs(p, pair, (size_t)(at - pair), 1);
    }
}

static void alerts_put_alert(struct svi_pack *p, const struct http_alert *a) {
    const struct svi_open_map map = svi_pack_open(p);
    svi_put_uint(p, "number", a->number);
    svi_put_text(p, "state", a->open ? "open" : "closed");
    svi_pack_key(p, "severity");
    if (*a->severity)
        svi_pack_text(p, a->severity);
    else
        svi_pack_nil(p);
    svi_put_text(p, "text", a->text ? a->text : "");
    svi_put_real(p, "opened", a->opened);
    svi_put_real(p, "closed", a->closed);
    svi_put_real(p, "ts", a->ts);
    svi_put_int(p, "updates", a->updates);
    svi_pack_key(p, "verdict");
    if (a->verdict < 0)
        svi_pack_nil(p);
    else
        svi_pack_bool(p, a->verdict > 0);
    if (*a->by)
        svi_put_text(p, "by", a->by);
    if (a->closing)
        svi_put_text(p, "closing", a->closing);
    svi_put_bool(p, "muted", a->muted);
    alerts_put_event(p, a);
    svi_pack_close(p, map);
}

/* ---- the list */

static bool alerts_match(const struct alerts_question *q, const struct http_alert *a, uint64_t since) {
    return a->number > since && (!q->open || a->open) && (!q->keyed || http_alert_concerns(a, q->key));
}

static void alerts_answer(const struct alerts_question *q, const struct http_alert_list *log, bool complete) {
    struct svi_bytes out = {0};
    struct svi_pack p;
    /* Numbers of another epoch are no evidence about this one. */
    const bool reset = q->epoch != 0 && q->epoch != log->epoch;
    const uint64_t since = reset ? 0 : (uint64_t)q->since;
    int64_t matching = 0;
    size_t shown = 0;
    svi_pack_begin(&p, &out);
    const struct svi_open_map map = svi_pack_open(&p);
    svi_put_text(&p, "stream", q->stream->name);
    svi_put_uint(&p, "epoch", log->epoch);
    svi_put_uint(&p, "first", log->first);
    svi_put_uint(&p, "last", log->last);
    svi_put_uint(&p, "next", log->next);
    svi_put_int(&p, "open", log->open);
    svi_put_bool(&p, "complete", complete);
    svi_put_bool(&p, "reset", reset);
    svi_pack_key(&p, "alerts");
    const size_t hole = svi_pack_hole(&p);
    for (int64_t i = log->count - 1; i >= 0; i--)
        if (alerts_match(q, log->list[i], since) && matching++ >= q->offset &&
            matching <= q->offset + q->limit) {
            alerts_put_alert(&p, log->list[i]);
            shown++;
        }
    svi_pack_fill(&p, hole, shown, false);
    svi_put_int(&p, "matching", matching);
    svi_put_bool(&p, "more", matching > q->offset + q->limit);
    svi_pack_close(&p, map);
    http_relay_packed(q->x, &p, &out);
}

static void alerts_left(void *user) {
    struct alerts_question *q = user;
    q->x = NULL;
}

static void alerts_refreshed(void *user, const char *why) {
    struct alerts_question *q = user;
    const struct http_alert_list *log = http_alerts_of(q->app->alerts, q->stream);
    if (q->x && why && !log->known)
        http_relay_failed(q->x, q->stream, why);
    else if (q->x)
        alerts_answer(q, log, !why);
    svi_free(q);
}

static void alerts_events_answer(struct exchange *x, struct http_stream *s, struct svi_view reply,
                                 void *user) {
    (void)s, (void)user;
    http_relay_value(x, 200, reply);
}

/* The plain events: `ctl alerts` itself. */
static void alerts_relay(struct exchange *x, struct http_stream *s, const struct alerts_question *q) {
    struct svi_bytes request = {0};
    struct svi_pack p;
    svi_pack_begin(&p, &request);
    const struct svi_open_map map = svi_pack_open(&p);
    svi_put_text(&p, "op", "alerts");
    svi_put_int(&p, "since", q->since);
    svi_put_int(&p, "limit", q->limit);
    if (q->epoch != 0)
        svi_put_uint(&p, "epoch", q->epoch);
    if (q->keyed)
        svi_put_text(&p, "key", q->key);
    svi_pack_close(&p, map);
    if (svi_pack_end(&p) == SVS_OK)
        http_relay(x, s, &request, alerts_events_answer, NULL);
    else
        http_exchange_problem(x, 503, "no_memory", "no memory for the request");
    svi_bytes_clear(&request);
}

/* Digits alone: strtoull would take a sign as well. */
static bool alerts_epoch(const char *text, uint64_t *epoch) {
    errno = 0;
    *epoch = strtoull(text, NULL, 10);
    return *text && !text[strspn(text, "0123456789")] && errno == 0;
}

void http_alerts_get(struct exchange *x, struct http_app *app) {
    struct alerts_question question = {.x = x, .app = app, .limit = LIMIT}, *q;
    const char *key = http_exchange_query(x, "key"), *epoch = http_exchange_query(x, "epoch");
    bool events = false;
    if (!(question.stream = http_relay_stream(x, app->streams, false)) ||
        !http_relay_integer(x, "since", 0, INT64_MAX, &question.since) ||
        !http_relay_integer(x, "limit", 0, LIMIT_MAX, &question.limit) ||
        !http_relay_integer(x, "offset", 0, INT64_MAX / 2, &question.offset) ||
        !http_relay_switch(x, "open", &question.open) || !http_relay_switch(x, "events", &events))
        return;
    if (epoch && !alerts_epoch(epoch, &question.epoch)) {
        http_exchange_problem(x, 400, "invalid", "epoch=%.40s: it is to be that of an answer", epoch);
        return;
    }
    if (key && strlen(key) > SVS_KEY_MAX) {
        http_exchange_problem(x, 400, "bad_key", "key= has more than %d bytes", SVS_KEY_MAX);
        return;
    }
    question.keyed = key;
    if (key)
        strcpy(question.key, key);
    if (events) {
        alerts_relay(x, question.stream, &question);
        return;
    }
    if (!(q = svi_alloc_plain(sizeof *q))) {
        http_exchange_problem(x, 503, "no_memory", "no memory for the request");
        return;
    }
    *q = question;
    http_exchange_later(x, HTTP_RELAY_SECONDS + GRACE, alerts_left, q);
    http_alerts_refresh(app->alerts, q->stream, alerts_refreshed, q);
}
