/* Figures of a range of time, and alerts, as JSON.
 *
 * Each answer has points of one length. They are made of the points of the coarsest step of the store that
 * divides this length, so that a year is as quick as a minute. Where the range begins before what that step
 * keeps, the length becomes a multiple of the next coarser one. A point without any measurement is null in
 * every figure: a gap stays a gap.
 *
 * An alert is one object: the keys of the event that opened it, with what later events changed.
 *
 * Read from the bottom: http_history_answer, answer_figures with answer_plan, answer_alerts. Everything runs
 * on the history's thread. An answer is whole or a problem: without memory the text begins again, which
 * answer_end notices. Its size is bounded by HISTORY_POINTS_MAX and HISTORY_ANSWER_BYTES. */
#include "history_answer.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/decimal.h"
#include "wire/fields.h"
#include "wire/json.h"

/* Lengths that an answer may choose by itself, in seconds: each divides the next one or a day. */
static const int64_t answer_lengths[] = {1,    10,    60,    600,   1800,  3600,
                                         7200, 10800, 21600, 43200, 86400, 7 * 86400};
#define LENGTHS (sizeof answer_lengths / sizeof answer_lengths[0])

/* ---- text */

static void answer_put(struct svi_bytes *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Without memory the text begins again, which answer_end sees: half an answer must not pass for one. */
static void answer_bytes(struct svi_bytes *out, const void *bytes, size_t size) {
    if (svi_bytes_append(out, bytes, size) != SVS_OK)
        svi_bytes_clear(out);
}

static void answer_string(struct svi_bytes *out, const char *bytes, size_t size) {
    if (svi_json_string(out, bytes, size) != SVS_OK)
        svi_bytes_clear(out);
}

/* At most 127 bytes. */
static void answer_put(struct svi_bytes *out, const char *format, ...) {
    char text[128];
    va_list arguments;
    va_start(arguments, format);
    const int n = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    answer_bytes(out, text, (size_t)n);
}

static void answer_fail(struct history_answer *a, int status, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void answer_fail(struct history_answer *a, int status, const char *code, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(a->detail, sizeof a->detail, format, arguments);
    va_end(arguments);
    a->status = status;
    a->code = code;
    svi_bytes_clear(&a->body);
}

static void answer_end(struct history_answer *a) {
    static const char begin[] = "{\"stream\":";
    if (a->body.size < sizeof begin || memcmp(a->body.data, begin, sizeof begin - 1) != 0)
        answer_fail(a, 503, "no_memory",
                    "no memory for the answer; ask for a shorter range or a longer step");
    else
        a->status = 200;
}

/* ---- figures */

struct answer_range {
    int64_t from, length, count; /* begin of the first point, length of each, how many */
    int base;                    /* step of the store that they are made of */
    struct history_point *point; /* [count] */
};

/* The finest step of the store that still has what happened at `from`. */
static int answer_finest(int64_t from, double now) {
    int k = 0;
    while (k < HISTORY_STEPS - 1 && (double)from < now - (double)http_history_keep[k])
        k++;
    return k;
}

static int64_t answer_count(int64_t from, int64_t to, int64_t length) {
    return (to - from) / length + 1;
}

static int64_t answer_floor(int64_t t, int64_t length) {
    return t - ((t % length) + length) % length;
}

/* Chooses length and base; false: there are too many points. */
static bool answer_plan(struct answer_range *r, int64_t from, int64_t to, int64_t asked, double now) {
    const int64_t finest = http_history_step[answer_finest(from, now)];
    size_t i = 0;
    r->length = asked > 0 ? (asked + finest - 1) / finest * finest : finest;
    while (asked == 0 && i < LENGTHS &&
           (answer_lengths[i] < finest ||
            answer_count(answer_floor(from, answer_lengths[i]), to, answer_lengths[i]) > HISTORY_POINTS))
        i++;
    if (asked == 0)
        r->length = i < LENGTHS ? answer_lengths[i] : answer_lengths[LENGTHS - 1];
    /* Ends at the step of one second, which divides every length. */
    for (r->base = HISTORY_STEPS - 1; r->length % http_history_step[r->base] != 0; r->base--)
        ;
    r->from = answer_floor(from, r->length);
    r->count = answer_count(r->from, to, r->length);
    return r->count <= HISTORY_POINTS_MAX;
}

static void answer_take(void *user, const struct history_point *p) {
    const struct answer_range *r = user;
    const int64_t i = (p->t - r->from) / r->length;
    if (p->t >= r->from && i < r->count)
        http_history_point_merge(&r->point[i], p);
}

#define DIGITS 7 /* as many as single precision has */

static void answer_number(struct svi_bytes *out, const struct history_cell *c, double v) {
    char text[SVI_DECIMAL_MAX];
    if (c->weight == 0 || !isfinite(v))
        answer_bytes(out, "null", 4);
    else
        answer_bytes(out, text, (size_t)svi_decimal_text(text, v == 0 ? 0 : v, DIGITS)); /* no -0 */
}

static double answer_pick(const struct history_cell *c, int which) {
    return which == 0 ? c->value : which == 1 ? c->low : c->high;
}

/* One of the maps `values`, `low` and `high`. Figures that are not known in the whole range are left out. */
static void answer_map(struct svi_bytes *out, const struct answer_range *r, const bool *known, int which) {
    static const char *const names[] = {"values", "low", "high"};
    const char *comma = "";
    answer_put(out, ",\"%s\":{", names[which]);
    for (int f = 0; f < HISTORY_FIGURE_COUNT; f++) {
        if (!known[f])
            continue;
        answer_put(out, "%s\"%s\":[", comma, http_history_point_name((enum history_figure)f));
        for (int64_t i = 0; i < r->count; i++) {
            const struct history_cell *c = &r->point[i].cell[f];
            if (i > 0)
                answer_bytes(out, ",", 1);
            answer_number(out, c, answer_pick(c, which));
        }
        answer_put(out, "]");
        comma = ",";
    }
    answer_put(out, "}");
}

static void answer_write(struct svi_bytes *out, const struct answer_range *r, const struct history_stream *s,
                         const struct history_question *q) {
    const int64_t to = (int64_t)floor(q->to);
    bool known[HISTORY_FIGURE_COUNT] = {false};
    const char *comma = "";
    for (int64_t i = 0; i < r->count; i++)
        for (int f = 0; f < HISTORY_FIGURE_COUNT; f++)
            known[f] = known[f] || (!q->hidden[f] && r->point[i].cell[f].weight > 0);
    answer_put(out, "{\"stream\":");
    answer_string(out, s->name, strlen(s->name));
    answer_put(out, ",\"from\":%" PRId64 ",\"to\":%" PRId64 ",\"step\":%" PRId64 ",\"measure\":", r->from, to,
               r->length);
    if (s->measure[0])
        answer_string(out, s->measure, strlen(s->measure));
    else
        answer_put(out, "null");
    answer_put(out, ",\"figures\":[");
    for (int f = 0; f < HISTORY_FIGURE_COUNT; f++)
        if (known[f]) {
            answer_put(out, "%s\"%s\"", comma, http_history_point_name((enum history_figure)f));
            comma = ",";
        }
    answer_put(out, "],\"t\":[");
    for (int64_t i = 0; i < r->count; i++)
        answer_put(out, "%s%" PRId64, i > 0 ? "," : "", r->from + i * r->length);
    answer_put(out, "]");
    for (int which = 0; which < 3; which++)
        answer_map(out, r, known, which);
    answer_bytes(out, "}\n", 2);
}

static int answer_figures(struct history_store *h, struct history_stream *s, const struct history_question *q,
                          struct history_answer *a) {
    struct answer_range r = {0};
    int64_t from = (int64_t)floor(q->from);
    const int64_t to = (int64_t)floor(q->to);
    int rc;
    /* The second that is still open belongs to the answer. */
    http_history_store_settle(h, s);
    if (q->from <= 0) {
        if ((rc = http_history_store_first(h, s, &from)) != SQLITE_OK)
            return rc;
        from = from < 0 || from > to ? to : from;
    }
    if (!answer_plan(&r, from, to, q->step, q->now)) {
        answer_fail(a, 400, "limit",
                    "%" PRId64 " points, and the limit is %d; ask for a step of at least %" PRId64
                    " s, or leave it out",
                    r.count, HISTORY_POINTS_MAX, (to - r.from) / HISTORY_POINTS_MAX + 1);
        return SQLITE_OK;
    }
    if (!(r.point = svi_alloc_array((size_t)r.count, sizeof *r.point))) {
        answer_fail(a, 503, "no_memory", "no memory for %" PRId64 " points", r.count);
        return SQLITE_OK;
    }
    /* The whole last point, even where `to` lies inside it. */
    rc = http_history_store_range(h, s, r.base, r.from, r.from + r.count * r.length, answer_take, &r);
    if (rc == SQLITE_OK) {
        answer_write(&a->body, &r, s, q);
        answer_end(a);
    }
    svi_free(r.point);
    return rc;
}

/* ---- alerts */

/* What the events of an alert amount to. `base` is its `open`, or its first event where that is missing. */
struct answer_alert {
    struct svi_bytes base;
    bool opened;      /* base is an `open` */
    bool muted;       /* no event of it was published */
    double opened_at; /* seconds since 1970 */
    double closed_at; /* NAN: not closed */
    double ts;        /* of the newest event that is no verdict */
    uint64_t number;  /* of the newest event */
    int64_t updates;
    int verdict; /* -1: none */
    char severity[16], text[1024], closing[1024], by[80];
};

struct alert_change {
    char state[16];
    double ts;
    uint64_t number;
    const uint8_t *severity, *text, *verdict, *by, *seq;
};

static const struct svi_field change_fields[] = {SVI_FIELD_STRING(struct alert_change, state),
                                                 SVI_FIELD(struct alert_change, ts, REAL, -1e15, 1e15),
                                                 SVI_FIELD_OPTIONAL(struct alert_change, number, UINT, 0, 0),
                                                 SVI_FIELD_OPTIONAL(struct alert_change, seq, ANY, 0, 0),
                                                 SVI_FIELD_OPTIONAL(struct alert_change, severity, ANY, 0, 0),
                                                 SVI_FIELD_OPTIONAL(struct alert_change, text, ANY, 0, 0),
                                                 SVI_FIELD_OPTIONAL(struct alert_change, verdict, ANY, 0, 0),
                                                 SVI_FIELD_OPTIONAL(struct alert_change, by, ANY, 0, 0)};

static void answer_text(const uint8_t *at, char *out, size_t size) {
    struct svi_item item = {0};
    if (at)
        svi_item_read(at, &item);
    if (item.type != SVI_STRING)
        return;
    const size_t length = item.length < size ? item.length : size - 1;
    memcpy(out, item.body, length);
    out[length] = '\0';
}

static bool answer_event(void *user, const uint8_t *event, size_t size) {
    struct answer_alert *a = user;
    struct alert_change c = {0};
    struct svi_item verdict = {0};
    if (svi_fields_read("alert", SVI_FIELDS(change_fields), event, event + size, &c, NULL) != SVS_OK)
        return true;
    const bool open = strcmp(c.state, "open") == 0;
    if (a->base.size == 0 || (open && !a->opened)) {
        a->base.size = 0;
        a->opened = open;
        a->opened_at = c.ts;
        if (svi_bytes_append(&a->base, event, size) != SVS_OK)
            return false;
    } else if (strcmp(c.state, "update") == 0 || open)
        a->updates++;
    a->number = c.number;
    /* A verdict leaves time, texts and severity alone. */
    if (strcmp(c.state, "verdict") != 0) {
        const bool close = strcmp(c.state, "close") == 0;
        a->ts = c.ts;
        a->muted = a->muted && !c.seq;
        if (close)
            a->closed_at = c.ts;
        else
            answer_text(c.severity, a->severity, sizeof a->severity);
        answer_text(c.text, close ? a->closing : a->text, sizeof a->text);
        return true;
    }
    if (c.verdict)
        svi_item_read(c.verdict, &verdict);
    if (verdict.type == SVI_BOOL)
        a->verdict = verdict.i != 0;
    answer_text(c.by, a->by, sizeof a->by);
    return true;
}

/* The pairs of the base event but for those that the alert itself has. */
static void answer_base(struct svi_bytes *out, const struct svi_bytes *base) {
    static const char *const own[] = {"number", "state", "severity", "text", "ts",
                                      "seq",    "v",     "verdict",  "by",   NULL};
    const uint8_t *end = base->data + base->size, *at, *value;
    struct svi_item map, key;
    at = svi_item_read(base->data, &map);
    for (uint32_t i = 0; i < map.length; i++) {
        bool skip = false;
        value = svi_item_read(at, &key);
        at = value = key.type == SVI_STRING ? key.body + key.length : value;
        if (svi_walk(&at, end, SVI_DEPTH_MAX) != SVS_OK)
            return;
        for (int k = 0; own[k]; k++)
            skip = skip || svi_item_is(&key, own[k]);
        if (skip || key.type != SVI_STRING)
            continue;
        answer_string(out, (const char *)key.body, key.length);
        answer_bytes(out, ":", 1);
        if (svi_json_msgpack(out, value, (size_t)(at - value), NULL) != SVS_OK)
            svi_bytes_clear(out);
        answer_bytes(out, ",", 1);
    }
}

static void answer_alert(struct svi_bytes *out, const struct answer_alert *a,
                         const struct history_episode *e) {
    const bool closed = e->closed || e->over;
    answer_bytes(out, "{", 1);
    answer_base(out, &a->base);
    answer_put(out, "\"state\":\"%s\",\"severity\":", closed ? "closed" : "open");
    if (a->severity[0])
        answer_string(out, a->severity, strlen(a->severity));
    else
        answer_put(out, "null");
    answer_put(out, ",\"text\":");
    answer_string(out, a->text, strlen(a->text));
    if (a->closing[0]) {
        answer_put(out, ",\"closing\":");
        answer_string(out, a->closing, strlen(a->closing));
    }
    answer_put(out, ",\"number\":%" PRIu64 ",\"ts\":%.3f,\"muted\":%s", a->number, a->ts,
               a->muted ? "true" : "false");
    answer_put(out, ",\"opened\":%.3f,\"closed\":", a->opened_at);
    if (closed)
        answer_put(out, "%.3f", isfinite(a->closed_at) ? a->closed_at : e->last);
    else
        answer_put(out, "null");
    answer_put(out, ",\"updates\":%" PRId64 ",\"verdict\":%s", a->updates,
               a->verdict < 0 ? "null"
               : a->verdict   ? "true"
                              : "false");
    if (a->by[0]) {
        answer_put(out, ",\"by\":");
        answer_string(out, a->by, strlen(a->by));
    }
    /* It has no close: the stream returned to an older state, or began without its state. */
    answer_put(out, "%s}", e->over ? ",\"ended\":\"epoch\"" : "");
}

static int answer_alerts(struct history_store *h, const struct history_stream *s,
                         const struct history_question *q, struct history_answer *a) {
    struct history_episode *found = svi_alloc_array(HISTORY_ALERTS_MAX + 1, sizeof *found);
    int count = 0, written = 0;
    /* One more than fits: whether there is more is known without counting. */
    int rc = found ? http_history_alerts_find(h, s, q->from, q->to, &q->selection, HISTORY_ALERTS_MAX + 1,
                                              found, &count)
                   : SQLITE_NOMEM;
    answer_put(&a->body, "{\"stream\":");
    answer_string(&a->body, s->name, strlen(s->name));
    answer_put(&a->body, ",\"from\":%.3f,\"to\":%.3f,\"epoch\":%" PRIu64 ",\"last\":%" PRIu64 ",\"alerts\":[",
               q->from, q->to, s->epoch, s->number);
    while (rc == SQLITE_OK && written < count && written < HISTORY_ALERTS_MAX &&
           a->body.size < HISTORY_ANSWER_BYTES) {
        struct answer_alert alert = {.verdict = -1, .closed_at = NAN, .muted = true};
        rc = http_history_alerts_events(h, found[written].id, answer_event, &alert);
        if (rc == SQLITE_OK && alert.base.size > 0) {
            /* An alert of which no event can be read is left out, so a count does not decide the comma. */
            if (a->body.size > 0 && a->body.data[a->body.size - 1] == '}')
                answer_bytes(&a->body, ",", 1);
            answer_alert(&a->body, &alert, &found[written]);
        }
        svi_bytes_clear(&alert.base);
        written++;
    }
    answer_put(&a->body, "],\"more\":%s}\n", written < count ? "true" : "false");
    svi_free(found);
    if (rc == SQLITE_OK)
        answer_end(a);
    return rc;
}

int http_history_answer(struct history_store *h, const struct history_question *q, struct history_answer *a) {
    int rc;
    char names[120];
    struct history_stream *s = http_history_store_find(h, q->stream, &rc);
    *a = (struct history_answer){0};
    if (s && rc == SQLITE_OK)
        rc = q->alerts ? answer_alerts(h, s, q, a) : answer_figures(h, s, q, a);
    else if (rc == SQLITE_OK) {
        http_history_store_names(h, names, sizeof names);
        answer_fail(a, q->stream[0] ? 404 : 400, q->stream[0] ? "unknown_stream" : "stream_needed",
                    "%s; ?stream=NAME names one of: %s",
                    q->stream[0] ? "there is no history of this stream"
                                 : "there is a history of several streams, or of none",
                    names[0] ? names : "(none yet)");
    }
    if (rc != SQLITE_OK)
        svi_bytes_clear(&a->body);
    return rc;
}
