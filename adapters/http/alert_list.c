/* Episodes of alerts, built from events in the order of their numbers.
 *
 * Callers see a list that is complete up to `next`; how it becomes complete is hidden here. An event that is
 * published is taken at once if its number is the next one; otherwise, and every ASK_SECONDS, the stream is
 * asked for all above the last number that is known, until a reply has no more. The questions find what is
 * kept without being published: verdicts, and alerts under a mute.
 *
 * Invariants: events enter in the order of their numbers, each once; one question at a time; every waiter is
 * called once. The tree and the list hold the same episodes, and the list owns them.
 *
 * An episode is named by stream key, epoch and number. Where the opening event is no longer kept, the first
 * that is known takes its place. Another epoch of the whole stream, or a `reset` of a reply, starts over.
 *
 * Read from the bottom: http_alerts_refresh, log_on_reply, log_take. */
#include "alert_list.h"

#include <math.h>
#include <search.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "wire/pack.h"

#define ASK_SECONDS 10.0
#define ASK_TIMEOUT 10.0
#define ALL_BYTES   ((size_t)128 << 20) /* of all streams; each has its part */
#define PART_MIN    ((size_t)4 << 20)
#define ENTRIES_MAX 20000 /* of one stream */

/* Somebody who waits for a complete list. */
struct log_waiter {
    struct log_waiter *next;
    http_alerts_done *done;
    void *user;
};

struct log_state {
    struct http_alert_list log;
    struct http_alerts *all;
    bool asked, again; /* a question is under way; another one must follow it */
    double due;
    struct log_waiter *waiting, *later; /* for this answer; for that of the next question */
};

struct http_alerts {
    struct http_streams *streams;
    int count;
    struct log_state state[];
};

/* ---- episodes */

static int alert_order(const void *a, const void *b) {
    const struct http_alert *x = a, *y = b;
    if (x->alert != y->alert)
        return x->alert < y->alert ? -1 : 1;
    if (x->epoch != y->epoch)
        return x->epoch < y->epoch ? -1 : 1;
    return strcmp(x->key, y->key);
}

static size_t alert_bytes(const struct http_alert *a) {
    return sizeof *a + a->size + (a->text ? strlen(a->text) : 0) + (a->closing ? strlen(a->closing) : 0);
}

static void alert_free(struct http_alert *a) {
    svi_free(a->event);
    svi_free(a->text);
    svi_free(a->closing);
    svi_free(a);
}

static void log_clear(struct http_alert_list *log) {
    for (int64_t i = 0; i < log->count; i++) {
        tdelete(log->list[i], &log->tree, alert_order);
        alert_free(log->list[i]);
    }
    log->count = log->open = 0;
    log->bytes = 0;
    log->next = 0;
}

/* Removes what the stream keeps no more, and the oldest where there is too much. One pass: the list is in the
 * order of age, so what is over the limit is at its begin. */
static void log_trim(struct http_alert_list *log, size_t limit) {
    int64_t kept = 0;
    for (int64_t i = 0; i < log->count; i++) {
        struct http_alert *a = log->list[i];
        const bool over = log->bytes > limit || log->count - i + kept > ENTRIES_MAX;
        if (over || (!a->open && a->number < log->first)) {
            log->bytes -= alert_bytes(a);
            log->open -= a->open;
            tdelete(a, &log->tree, alert_order);
            alert_free(a);
        } else {
            log->list[kept++] = a;
        }
    }
    log->count = kept;
}

/* The episode of an event, created with it if it is the first. NULL: no memory. */
static struct http_alert *log_find(struct http_alert_list *log, struct svi_view event) {
    struct http_alert sought = {.alert = svi_view_integer(event, "alert", 0),
                                .epoch = svi_view_unsigned(event, "epoch", 0)};
    svi_view_text(event, "key", sought.key, sizeof sought.key);
    struct http_alert **found = tfind(&sought, &log->tree, alert_order);
    if (found)
        return *found;
    struct http_alert *a = svi_alloc_plain(sizeof *a);
    const size_t size = (size_t)(event.end - event.at);
    uint8_t *copy = svi_alloc_plain(size);
    if (!a || !copy || !svi_grow(&log->list, log->count, &log->capacity, 64, sizeof *log->list)) {
        svi_free(a);
        svi_free(copy);
        return NULL;
    }
    *a = sought;
    a->event = memcpy(copy, event.at, size);
    a->size = size;
    a->verdict = -1;
    a->muted = true;
    a->first = svi_view_unsigned(event, "number", 0);
    a->opened = svi_view_number(event, "ts", NAN);
    a->closed = NAN;
    if (!tsearch(a, &log->tree, alert_order)) {
        alert_free(a);
        return NULL;
    }
    log->list[log->count++] = a;
    log->bytes += alert_bytes(a);
    return a;
}

static void alert_set_text(char **text, struct svi_view event) {
    const struct svi_item item = svi_view_item(svi_view_key(event, "text"));
    char *copy = item.type == SVI_STRING ? svi_alloc_plain(item.length + 1) : NULL;
    if (!copy)
        return;
    memcpy(copy, item.body, item.length);
    copy[item.length] = '\0';
    svi_free(*text);
    *text = copy;
}

/* Takes the next event into its episode. */
static void log_take(struct http_alert_list *log, struct svi_view event) {
    log->next = svi_view_unsigned(event, "number", log->next);
    if (log->next > log->last)
        log->last = log->next;
    if (svi_view_integer(event, "alert", 0) == 0) /* a mute has ended */
        return;
    struct http_alert *a = log_find(log, event);
    if (!a)
        return;
    /* Its texts change size: it is counted again at the end. */
    log->bytes -= alert_bytes(a);
    a->number = log->next;
    if (svi_view_is(event, "state", "verdict")) {
        a->verdict = svi_view_true(event, "verdict");
        svi_view_text(event, "by", a->by, sizeof a->by);
        log->bytes += alert_bytes(a);
        return;
    }
    const bool open = !svi_view_is(event, "state", "close");
    a->ts = svi_view_number(event, "ts", NAN);
    /* Only events under a mute have no `seq`: one that was published is enough. */
    a->muted = a->muted && !svi_view_key(event, "seq").at;
    a->updates += svi_view_is(event, "state", "update");
    log->open += open - a->open;
    a->open = open;
    a->closed = open ? NAN : a->ts;
    if (open && svi_view_key(event, "severity").at)
        svi_view_text(event, "severity", a->severity, sizeof a->severity);
    /* Where the opening event is no longer kept, the closing text is the only one. */
    alert_set_text(open || !a->text ? &a->text : &a->closing, event);
    log->bytes += alert_bytes(a);
}

/* ---- questions */

static void log_ask(struct log_state *l);

static void log_release(struct log_waiter *waiting, const char *why) {
    while (waiting) {
        struct log_waiter *w = waiting;
        waiting = w->next;
        w->done(w->user, why);
        svi_free(w);
    }
}

/* The question is answered, or lost. Callers that arrived meanwhile need another one. The state is complete
 * before the waiters are called, since they may ask again. */
static void log_end(struct log_state *l, const char *why) {
    struct log_waiter *waiting = l->waiting;
    const bool again = l->again || l->later;
    l->asked = l->again = false;
    l->waiting = l->later;
    l->later = NULL;
    log_release(waiting, why);
    if (again && !l->asked)
        log_ask(l);
}

static void log_on_reply(void *user, const void *reply, size_t size, const char *why) {
    struct log_state *l = user;
    struct http_alert_list *log = &l->log;
    const struct svi_view map = svi_view_of(reply, size);
    struct svi_view events = svi_view_key(map, "alerts"), event;
    int64_t left = -1;
    l->due = svi_monotonic() + ASK_SECONDS;
    if (why || !svi_view_true(map, "ok")) {
        log_end(l, why ? why : http_why_absent);
        return;
    }
    /* Numbers begin again with an epoch: what is known would be mixed with other episodes. */
    if (svi_view_true(map, "reset") || log->epoch != svi_view_unsigned(map, "epoch", 0))
        log_clear(log);
    log->epoch = svi_view_unsigned(map, "epoch", 0);
    log->first = svi_view_unsigned(map, "first", 0);
    log->last = svi_view_unsigned(map, "last", 0);
    while (svi_view_next(&events, &left, &event))
        /* Published events may have been taken since the question was asked. */
        if (svi_view_unsigned(event, "number", 0) > log->next)
            log_take(log, event);
    const uint64_t next = svi_view_unsigned(map, "next", 0);
    /* `next` is where the next question begins, also where the reply has no event. */
    log->next = next > log->next ? next : log->next;
    const size_t part = ALL_BYTES / (size_t)l->all->count;
    log_trim(log, part > PART_MIN ? part : PART_MIN);
    /* Waiters are called after the last page. */
    if (svi_view_true(map, "more")) {
        log_ask(l);
        return;
    }
    log->known = true;
    log_end(l, NULL);
}

static void log_ask(struct log_state *l) {
    struct svi_bytes request = {0};
    struct svi_pack p;
    l->asked = true;
    svi_pack_begin(&p, &request);
    const struct svi_open_map map = svi_pack_open(&p);
    svi_put_text(&p, "op", "alerts");
    svi_put_uint(&p, "since", l->log.next);
    if (l->log.epoch != 0)
        svi_put_uint(&p, "epoch", l->log.epoch);
    svi_pack_close(&p, map);
    if (svi_pack_end(&p) == SVS_OK)
        http_stream_ask(l->log.stream, request.data, request.size, ASK_TIMEOUT, log_on_reply, l);
    else
        log_on_reply(l, NULL, 0, http_why_full);
    svi_bytes_clear(&request);
}

static void log_need(struct log_state *l) {
    if (l->asked)
        l->again = true;
    else
        log_ask(l);
}

void http_alerts_refresh(struct http_alerts *a, struct http_stream *s, http_alerts_done *done, void *user) {
    struct log_state *l = &a->state[s->index];
    struct log_waiter *w = svi_alloc_plain(sizeof *w);
    if (!w) {
        done(user, http_why_full);
        return;
    }
    /* An answer under way may be older than what the caller has just done. */
    struct log_waiter **list = l->asked ? &l->later : &l->waiting;
    *w = (struct log_waiter){*list, done, user};
    *list = w;
    if (!l->asked)
        log_ask(l);
}

/* ---- listeners */

static void alerts_on_event(void *user, struct http_stream *s, const struct subscription_event *e) {
    struct http_alerts *a = user;
    struct log_state *l = &a->state[s->index];
    if (e->kind != SVI_TOPIC_ALERT)
        return;
    const struct svi_view event = svi_view_of(e->payload, e->size);
    const uint64_t number = svi_view_unsigned(event, "number", 0);
    /* While a question is under way its reply may have events before this one: another question follows. */
    if (l->log.known && !l->asked && number == l->log.next + 1)
        log_take(&l->log, event);
    else if (number > l->log.next || !l->log.known)
        log_need(l);
}

/* The first status of a stream, one after a silence, and every ten seconds. */
static void alerts_on_status(void *user, struct http_stream *s, const void *status, size_t size,
                             double time) {
    struct http_alerts *a = user;
    struct log_state *l = &a->state[s->index];
    (void)status, (void)size, (void)time;
    if (!l->asked && (!l->log.known || svi_monotonic() >= l->due))
        log_ask(l);
}

struct http_alerts *http_alerts_open(struct http_streams *all, svs_error *err) {
    const int count = http_streams_count(all);
    struct http_alerts *a = svi_new(sizeof *a + (size_t)count * sizeof *a->state, "the alerts", err);
    if (!a)
        return NULL;
    a->streams = all;
    a->count = count;
    for (int i = 0; i < count; i++) {
        a->state[i].log.stream = http_streams_at(all, i);
        a->state[i].all = a;
    }
    http_streams_listen(all, alerts_on_status, alerts_on_event, a);
    return a;
}

/* After the streams were closed: no question is under way. */
void http_alerts_close(struct http_alerts **alerts) {
    struct http_alerts *a = *alerts;
    if (!a)
        return;
    for (int i = 0; i < a->count; i++) {
        log_clear(&a->state[i].log);
        svi_free(a->state[i].log.list);
    }
    svi_free(a);
    *alerts = NULL;
}

/* ---- what is asked of a log */

const struct http_alert_list *http_alerts_of(const struct http_alerts *a, const struct http_stream *s) {
    return &a->state[s->index].log;
}

int http_alert_rank(const char *severity) {
    static const char *const words[] = {"notice", "warning", "serious"};
    for (int i = 0; i < 3; i++)
        if (strcmp(severity, words[i]) == 0)
            return i + 1;
    return 0;
}

const struct http_alert *http_alerts_worst(const struct http_alert_list *log) {
    const struct http_alert *worst = NULL;
    for (int64_t i = 0; i < log->count && log->open > 0; i++) {
        const struct http_alert *a = log->list[i];
        if (a->open && (!worst || http_alert_rank(a->severity) > http_alert_rank(worst->severity)))
            worst = a;
    }
    return worst;
}

bool http_alert_concerns(const struct http_alert *alert, const char *key) {
    struct svi_view keys = svi_view_key(svi_view_of(alert->event, alert->size), "keys"), name;
    int64_t left = -1;
    if (strcmp(alert->key, key) == 0)
        return true;
    while (svi_view_next(&keys, &left, &name)) {
        const struct svi_item item = svi_view_item(name);
        if (item.type == SVI_STRING && item.length == strlen(key) && memcmp(item.body, key, item.length) == 0)
            return true;
    }
    return false;
}
