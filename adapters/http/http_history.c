/* What the history records of each stream, and how it is asked.
 *
 * Figures come from the status, once a second. Counters become rates over the monotonic time
 * between two statuses. No rate is known after a restart, a return to an older state, or a silence
 * over MAX_INTERVAL. A status a little late or early may skip one second of the clock. That second
 * gets the figures of the next status, which were measured over it. A longer gap stays a gap.
 *
 * Alert events are recorded as they are published, so that none is lost with the stream. The
 * request `alerts` also fetches them from the last known number, at the first status and after each
 * event. It is repeated every FETCH_SECONDS, since verdicts and muted events are kept without being
 * published. So no gap loses an event that the stream still keeps.
 *
 * Read history_on_status, history_fetch, history_question. All runs on the main thread and only
 * hands jobs to the history's (history_worker.h). Invariants: one fetch a stream at a time; `taken`
 * is what the file has; a waiter lives until its answer, even if its exchange has ended. */
#include "http_history.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/time_text.h"
#include "compress.h"
#include "handlers.h"
#include "http_log.h"
#include "http_options.h"
#include "relay.h"
#include "wire/pack.h"

#define MAX_INTERVAL   10.0 /* seconds between two statuses that a rate is made of */
#define FETCH_SECONDS  10.0
#define FETCH_TIMEOUT  10.0
#define FETCH_LIMIT    500 /* events of a reply */
#define ANSWER_SECONDS 10.0

/* Counters that become rates. */
static const struct {
    enum history_figure figure;
    const char *name;
} history_counters[] = {
    {HISTORY_RATE, "seen"}, {HISTORY_LEARNED_RATE, "learned"}, {HISTORY_REFUSED_RATE, "refused"}};
#define COUNTERS (sizeof history_counters / sizeof history_counters[0])

/* Figures as they are; where the first name has no number, the second. */
static const struct {
    enum history_figure figure;
    const char *name, *other;
} history_gauges[] = {{HISTORY_NO_CHANGE, "accuracy_no_change.w", "rmse_no_change.w"},
                      {HISTORY_MAJORITY, "accuracy_majority.w", "rmse_mean.w"},
                      {HISTORY_LATENCY_P50, "latency_p50", NULL},
                      {HISTORY_LATENCY_P99, "latency_p99", NULL},
                      {HISTORY_SMALLEST_P, "smallest_p", NULL},
                      {HISTORY_ALERT_LEVEL, "alert_level", NULL},
                      {HISTORY_MEMORY, "memory", "memory_predicted"},
                      {HISTORY_JOURNAL_BYTES, "journal_bytes", NULL},
                      {HISTORY_DISK_FREE, "disk_free", NULL},
                      {HISTORY_DISK_SIZE, "disk_size", NULL},
                      {HISTORY_CONNECTIONS, "connections", NULL},
                      {HISTORY_KEYS, "keys", NULL}};

/* Quality: the first of these that is known, and what it measures. */
static const struct {
    const char *name, *measure;
} history_quality[] = {
    {"accuracy.w", "accuracy"}, {"rmse.w", "rmse"}, {"keys_accuracy", "accuracy"}, {"keys_rmse", "rmse"}};

/* What is known of a stream between two statuses. */
struct history_track {
    struct http_history *history;
    struct http_stream *stream;
    char name[SVI_ADDRESS_MAX]; /* "": no status yet */
    double measured;            /* svi_monotonic of the last status */
    int64_t second;             /* of the wall clock, of the last status */
    uint64_t epoch;
    double uptime, counter[COUNTERS];
    int64_t lost;
    /* alerts */
    bool fetching, again, reaches;
    struct history_taken taken; /* how far they reach; known once `reaches` */
    double fetch_at;            /* svi_monotonic */
};

struct history_waiter {
    struct history_waiter *next;
    struct http_history *history;
    struct exchange *x; /* NULL: it has ended */
};

struct http_history {
    struct history_worker *worker;
    struct http_tally *tally;
    struct history_waiter *waiting;
    int count;
    struct history_track track[];
};

/* ---- figures */

static double history_rate(double now, double before, double seconds) {
    return now >= before ? (now - before) / seconds : NAN;
}

static double history_either(struct svi_view status, const char *name, const char *other) {
    const double v = svi_view_number(status, name, NAN);
    return isnan(v) && other ? svi_view_number(status, other, NAN) : v;
}

/* The sum of the counts that the status has; NAN: it has none. */
static double history_open_alerts(struct svi_view status) {
    static const char *const names[] = {"alert_open", "quality_alert_open", "rule_alerts_open",
                                        "keys_alerts_open"};
    double sum = NAN;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const double v = svi_view_number(status, names[i], NAN);
        if (isfinite(v))
            sum = (isnan(sum) ? 0 : sum) + v;
    }
    return sum;
}

/* With keys the models learn, one for each key, and `learned` counts only what the stream itself does. */
static double history_counter(struct svi_view status, size_t i) {
    return history_counters[i].figure == HISTORY_LEARNED_RATE && svi_view_key(status, "keys").at
               ? NAN
               : svi_view_number(status, history_counters[i].name, NAN);
}

static const char *history_point_of(struct svi_view status, const struct history_track *t, double seconds,
                                    struct history_point *p) {
    const char *measure = NULL;
    for (size_t i = 0; i < COUNTERS && seconds > 0; i++)
        http_history_point_add(p, history_counters[i].figure,
                               history_rate(history_counter(status, i), t->counter[i], seconds));
    if (seconds > 0)
        http_history_point_add(p, HISTORY_LOST_RATE,
                               history_rate((double)t->stream->lost, (double)t->lost, seconds));
    for (size_t i = 0; i < sizeof history_gauges / sizeof history_gauges[0]; i++)
        http_history_point_add(p, history_gauges[i].figure,
                               history_either(status, history_gauges[i].name, history_gauges[i].other));
    http_history_point_add(p, HISTORY_ALERTS_OPEN, history_open_alerts(status));
    for (size_t i = 0; i < sizeof history_quality / sizeof history_quality[0] && !measure; i++) {
        const double v = svi_view_number(status, history_quality[i].name, NAN);
        http_history_point_add(p, HISTORY_QUALITY, v);
        measure = isfinite(v) ? history_quality[i].measure : NULL;
    }
    return measure;
}

static void history_fetch(struct history_track *t);

static void history_on_status(void *user, struct http_stream *s, const void *bytes, size_t size,
                              double time) {
    struct http_history *h = user;
    struct history_track *t = &h->track[s->index];
    const struct svi_view status = svi_view_of(bytes, size);
    const double now = svi_monotonic(), uptime = svi_view_number(status, "uptime", 0);
    const int64_t second = (int64_t)floor(time);
    const uint64_t epoch = svi_view_unsigned(status, "epoch", 0);
    const bool same = strcmp(t->name, s->name) == 0;
    const bool continues =
        same && t->epoch == epoch && uptime >= t->uptime && now - t->measured <= MAX_INTERVAL;
    struct history_point p = {.t = second};
    struct history_state state;
    http_history_worker_state(h->worker, &state);
    h->tally->history_errors = state.errors;
    const char *measure = history_point_of(status, t, continues ? now - t->measured : 0, &p);
    /* A new file has none of the alerts: how far it reaches is asked again. */
    t->reaches = t->reaches && same && t->taken.file == state.file;
    if (!same)
        snprintf(t->name, sizeof t->name, "%s", s->name);
    if (continues && second == t->second + 2) {
        p.t = second - 1;
        http_history_worker_point(h->worker, t->name, &p, measure);
        p.t = second;
    }
    http_history_worker_point(h->worker, t->name, &p, measure);
    t->measured = now;
    t->second = second;
    t->epoch = epoch;
    t->uptime = uptime;
    t->lost = s->lost;
    for (size_t i = 0; i < COUNTERS; i++)
        t->counter[i] = svi_view_number(status, history_counters[i].name, NAN);
    if (!t->fetching && (!t->reaches || now >= t->fetch_at))
        history_fetch(t);
}

/* ---- alerts */

static void history_fetched(struct history_track *t) {
    const bool again = t->again;
    t->fetching = t->again = false;
    t->fetch_at = svi_monotonic() + FETCH_SECONDS;
    if (again)
        history_fetch(t);
}

static void history_on_reached(void *user, bool ok, const struct history_taken *taken) {
    struct history_track *t = user;
    if (ok) {
        if (taken->lost > 0)
            http_log("history: %" PRId64 " alert events of %s are missing: the stream no longer had them "
                     "(its setting alert.keep)",
                     taken->lost, t->name);
        /* The first answer only names where to begin: the fetch itself follows. */
        t->again = t->again || taken->more || !t->reaches;
        t->taken = *taken;
    }
    t->reaches = ok;
    history_fetched(t);
}

/* JSON, or a refusal, has no alerts: the next attempt is that of FETCH_SECONDS later. */
static void history_on_reply(void *user, const void *reply, size_t size, const char *why) {
    struct history_track *t = user;
    if (why || !svi_view_true(svi_view_of(reply, size), "ok") ||
        !http_history_worker_take(t->history->worker, t->name, &t->taken, reply, size, history_on_reached,
                                  t)) {
        t->again = false;
        history_fetched(t);
    }
}

static void history_ask(struct history_track *t) {
    struct svi_bytes request = {0};
    struct svi_pack p;
    svi_pack_begin(&p, &request);
    const struct svi_open_map map = svi_pack_open(&p);
    svi_put_text(&p, "op", "alerts");
    svi_put_uint(&p, "since", t->taken.number);
    if (t->taken.epoch != 0)
        svi_put_uint(&p, "epoch", t->taken.epoch);
    svi_put_int(&p, "limit", FETCH_LIMIT);
    svi_pack_close(&p, map);
    if (svi_pack_end(&p) == SVS_OK)
        http_stream_ask(t->stream, request.data, request.size, FETCH_TIMEOUT, history_on_reply, t);
    else
        history_on_reply(t, NULL, 0, http_why_full);
    svi_bytes_clear(&request);
}

/* First the history is asked how far it reaches, then the stream for what is above. */
static void history_fetch(struct history_track *t) {
    t->fetching = true;
    if (t->reaches)
        history_ask(t);
    else if (!http_history_worker_reach(t->history->worker, t->name, history_on_reached, t))
        history_fetched(t);
}

static void history_on_event(void *user, struct http_stream *s, const struct subscription_event *e) {
    struct http_history *h = user;
    struct history_track *t = &h->track[s->index];
    if (e->kind != SVI_TOPIC_ALERT || !t->name[0])
        return;
    /* Recorded at once, and fetched all the same: the fetch closes the gaps before it. */
    http_history_worker_event(h->worker, t->name, e->payload, e->size);
    t->again = t->fetching;
    if (!t->fetching)
        history_fetch(t);
}

/* ---- opening, the loop */

struct http_history *http_history_open(const char *path, double days, struct http_streams *streams,
                                       struct http_tally *tally, svs_error *err) {
    const int count = http_streams_count(streams);
    struct http_history *h = svi_new(sizeof *h + (size_t)count * sizeof h->track[0], "the history", err);
    if (!h || !(h->worker = http_history_worker_new(path, days, err))) {
        svi_free(h);
        return NULL;
    }
    h->count = count;
    h->tally = tally;
    for (int i = 0; i < count; i++) {
        h->track[i].history = h;
        h->track[i].stream = http_streams_at(streams, i);
    }
    http_streams_listen(streams, history_on_status, history_on_event, h);
    return h;
}

void http_history_close(struct http_history **history) {
    struct http_history *h = *history;
    if (!h)
        return;
    *history = NULL;
    http_history_worker_free(&h->worker);
    for (struct history_waiter *w = h->waiting, *next; w; w = next) {
        next = w->next;
        svi_free(w);
    }
    svi_free(h);
}

int http_history_fd(const struct http_history *h) {
    return http_history_worker_fd(h->worker);
}

void http_history_turn(struct http_history *h) {
    http_history_worker_turn(h->worker);
}

void http_history_state(struct http_history *h, struct history_state *out) {
    *out = (struct history_state){.ok = true};
    if (h)
        http_history_worker_state(h->worker, out);
}

/* ---- requests */

static void history_left(void *user) {
    struct history_waiter *w = user;
    w->x = NULL;
}

static void history_answer(void *user, const struct history_answer *a) {
    struct history_waiter *w = user, **at = &w->history->waiting;
    if (w->x && a->packed) {
        http_exchange_add(w->x, "Vary", "Accept-Encoding");
        http_exchange_add(w->x, "Content-Encoding", "gzip");
        http_exchange_answer(w->x, 200, HISTORY_TYPE, a->packed, a->packed_size);
    } else if (w->x && a->status == 200)
        http_exchange_answer(w->x, 200, HISTORY_TYPE, a->body.data, a->body.size);
    else if (w->x)
        http_exchange_problem(w->x, a->status, a->code, "%s", a->detail);
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    svi_free(w);
}

/* "90", "90s", "15min", "6h", "2d", "1y" as seconds. False: something else. */
static bool history_duration(const char *text, double *seconds) {
    static const struct {
        const char *unit;
        double seconds;
    } units[] = {{"", 1},     {"s", 1},     {"m", 60},     {"min", 60},
                 {"h", 3600}, {"d", 86400}, {"w", 604800}, {"y", 31536000}};
    char *end;
    const double n = isdigit((unsigned char)*text) ? strtod(text, &end) : NAN;
    for (size_t i = 0; isfinite(n) && i < sizeof units / sizeof units[0]; i++)
        if (strcmp(end, units[i].unit) == 0) {
            *seconds = n * units[i].seconds;
            return *seconds < 1e11;
        }
    return false;
}

/* A moment of the query: seconds since 1970, ISO 8601, `now`, or a duration before it with a minus. False: it
 * was answered with the problem. */
static bool history_moment(struct exchange *x, const char *name, double now, double *moment) {
    const char *text = http_exchange_query(x, name);
    char shown[80];
    double v;
    if (!text || !*text || strcmp(text, "now") == 0)
        return true;
    if (*text == '-' && history_duration(text + 1, &v))
        *moment = now - v;
    else if (history_duration(text, &v) && !isalpha((unsigned char)text[strlen(text) - 1]))
        *moment = v;
    else if (!svi_time_of_text(text, strlen(text), 0, moment)) {
        http_exchange_problem(x, 400, "invalid",
                              "%s is \"%s\": it is a number of seconds since 1970, a date such as "
                              "2026-11-22T10:05:00Z, or a time before now such as -6h",
                              name, svi_escape(shown, sizeof shown, text, strlen(text)));
        return false;
    }
    return true;
}

/* ?figures=rate,quality; without it all. False: it was answered with the problem. */
static bool history_figures(struct exchange *x, bool *hidden) {
    const char *list = http_exchange_query(x, "figures");
    for (int f = 0; f < HISTORY_FIGURE_COUNT; f++)
        hidden[f] = list && *list;
    for (const char *word = list ? list : ""; *word;) {
        const size_t length = strcspn(word, ",");
        int f = 0;
        while (f < HISTORY_FIGURE_COUNT &&
               (strlen(http_history_point_name((enum history_figure)f)) != length ||
                memcmp(word, http_history_point_name((enum history_figure)f), length) != 0))
            f++;
        if (f == HISTORY_FIGURE_COUNT) {
            http_exchange_problem(x, 400, "invalid", "figures=%.100s: %.*s is no figure of the history", list,
                                  (int)(length < 60 ? length : 60), word);
            return false;
        }
        hidden[f] = false;
        word += length + (word[length] == ',');
    }
    return true;
}

/* ?key= and ?offset= of alerts. */
static bool history_selection(struct exchange *x, struct history_selection *selection) {
    const char *key = http_exchange_query(x, "key");
    selection->keyed = key;
    if (key && strlen(key) > SVS_KEY_MAX) {
        http_exchange_problem(x, 400, "bad_key", "key= has more than %d bytes", SVS_KEY_MAX);
        return false;
    }
    snprintf(selection->key, sizeof selection->key, "%s", key ? key : "");
    return http_relay_integer(x, "offset", 0, INT32_MAX, &selection->offset);
}

static bool history_step(struct exchange *x, int64_t *step) {
    const char *text = http_exchange_query(x, "step");
    char shown[80];
    double v = 0;
    if (text && *text && (!history_duration(text, &v) || v != floor(v))) {
        http_exchange_problem(x, 400, "invalid",
                              "step is \"%s\": it is a whole number of seconds, or 10min, 1h, 1d",
                              svi_escape(shown, sizeof shown, text, strlen(text)));
        return false;
    }
    *step = (int64_t)v;
    return true;
}

/* The stream of the question: as named; else the only one shown, or (if it has not answered yet) the only one
 * of the history. */
static void history_stream_name(const struct exchange *x, const struct http_history *h, char *out,
                                size_t size) {
    const char *name = http_exchange_query(x, "stream");
    snprintf(out, size, "%s", name ? name : h->count == 1 ? h->track[0].name : "");
}

static void history_question(struct exchange *x, struct http_app *app, bool alerts) {
    const double now = svi_wall_clock();
    struct history_question q = {.alerts = alerts,
                                 .now = now,
                                 .to = now,
                                 .gzip = http_compress_accepted(http_exchange_header(x, "Accept-Encoding"))};
    struct http_history *h = app->history;
    if (!history_moment(x, "from", now, &q.from) || !history_moment(x, "to", now, &q.to) ||
        !history_step(x, &q.step) || !history_figures(x, q.hidden) || !history_selection(x, &q.selection))
        return;
    if (q.from > q.to) {
        http_exchange_problem(x, 400, "invalid", "`from` is later than `to`");
        return;
    }
    history_stream_name(x, h, q.stream, sizeof q.stream);
    struct history_waiter *w = svi_alloc_plain(sizeof *w);
    if (w)
        *w = (struct history_waiter){h->waiting, h, x};
    if (!w || !http_history_worker_ask(h->worker, &q, history_answer, w)) {
        svi_free(w);
        http_exchange_problem(x, 503, "unavailable", "the history does not keep up; ask again later");
        return;
    }
    /* Answers are given by the turn of this thread, so never before these lines. */
    h->waiting = w;
    http_exchange_later(x, ANSWER_SECONDS, history_left, w);
}

void http_history_get(struct exchange *x, struct http_app *app) {
    history_question(x, app, false);
}

void http_history_get_alerts(struct exchange *x, struct http_app *app) {
    history_question(x, app, true);
}
