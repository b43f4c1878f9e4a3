/* The ring and its readers.
 *
 * Events are numbered over both parts of the ring, scores and the rest; a reader takes the one with the lower
 * number next. A reader that is asleep has taken everything that it wants: it waits for the connection to be
 * woken, which happens when an event passes its filter, and its position moves past those that do not. So
 * what a reader finds removed is what it was too slow for. The number of these is exact for its kinds and its
 * stream: the ring counts by both what has left it, and a reader what it has passed. Whether a removed event
 * was of the reader's key is not known any more.
 *
 * While a reader writes an event in pieces, it holds it: the event may leave the ring and is freed with the
 * last reader that holds it.
 *
 * Read from the bottom: http_events_get, reader_more, events_push. */
#include "event_ring.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "handlers.h"
#include "relay.h"
#include "wire/json.h"

#define PARTS         2     /* scores, and all others */
#define PART_EVENTS   32768 /* a power of two */
#define PART_BYTES    ((size_t)8 << 20)
#define EVENT_MAX     ((size_t)4 << 20) /* a larger event is reported, and not sent */
#define COMMENT_EVERY 15                /* seconds, unless the reader asks for another interval */
#define COMMENT_MAX   3600
#define TURN_EVERY    1.0
#define READERS_MAX   4096

struct ring_event {
    uint64_t number;
    int holders; /* the ring, and readers that write it */
    int stream;
    enum svi_topic kind;
    char key[SVS_KEY_MAX + 1];
    size_t size;
    char text[]; /* as it is sent */
};

struct ring_part {
    struct ring_event **at; /* [PART_EVENTS] by index modulo that */
    uint64_t first, next;   /* indices: the oldest that is kept, the one of the next event */
    size_t bytes;
};

struct reader {
    struct reader *before, *after; /* of all readers */
    struct http_events *events;
    struct exchange *x;
    unsigned kinds; /* bit by enum svi_topic */
    int stream;     /* -1: all */
    char key[SVS_KEY_MAX + 1];
    bool keyed;                       /* only events of `key` */
    uint64_t position[PARTS];         /* index of the next event */
    uint64_t passed[SVI_TOPIC_COUNT]; /* events of its streams before its position */
    struct ring_event *current;       /* being written; held */
    size_t written;                   /* bytes of it */
    char notice[300];                 /* text of our own that is sent next; "": none */
    size_t noticed;                   /* bytes of it that were written */
    bool asleep;
    double wrote;    /* svi_monotonic */
    int64_t comment; /* seconds of silence before a comment */
};

struct http_events {
    struct http_streams *streams;
    struct http_tally *tally;
    uint64_t epoch, next;
    struct ring_part part[PARTS];
    uint64_t (*made)[SVI_TOPIC_COUNT],
        (*left)[SVI_TOPIC_COUNT]; /* [streams] events so far, and those removed */
    struct reader *readers;
    int count;
    double due;
    struct svi_bytes line;
};

static int ring_part_of(enum svi_topic kind) {
    return kind == SVI_TOPIC_SCORE;
}

static bool ring_reads(const struct reader *r, int part) {
    const unsigned scores = 1u << SVI_TOPIC_SCORE;
    return r->kinds & (part ? scores : ~scores);
}

/* ---- the ring */

static void ring_release(struct ring_event *e) {
    if (e && --e->holders == 0)
        svi_free(e);
}

static void event_ring_drop(struct http_events *events, struct ring_part *part) {
    struct ring_event **at = &part->at[part->first++ % PART_EVENTS];
    part->bytes -= (*at)->size;
    events->left[(*at)->stream][(*at)->kind]++;
    ring_release(*at);
    *at = NULL;
}

static bool ring_wants(const struct reader *r, const struct ring_event *e) {
    return (r->kinds >> e->kind & 1) && (r->stream < 0 || r->stream == e->stream) &&
           (!r->keyed || strcmp(r->key, e->key) == 0);
}

static void ring_pass(struct reader *r, const struct ring_event *e) {
    r->passed[e->kind] += r->stream < 0 || r->stream == e->stream;
}

/* The sum of such counts over the streams of a reader. */
static uint64_t ring_sum(const struct reader *r, uint64_t (*const counts)[SVI_TOPIC_COUNT], int kind) {
    uint64_t sum = 0;
    for (int i = 0; i < http_streams_count(r->events->streams); i++)
        sum += r->stream < 0 || r->stream == i ? counts[i][kind] : 0;
    return sum;
}

/* Appends a complete event, and wakes those that wait for it. Without memory it is as if it had been lost on
 * the way: the numbers show the gap. */
static void ring_append(struct http_events *events, struct ring_event *e) {
    struct ring_part *part = &events->part[ring_part_of(e->kind)];
    /* Both bounds hold before the event enters. One event fits always: EVENT_MAX is below PART_BYTES. */
    while (part->next > part->first &&
           (part->next - part->first == PART_EVENTS || part->bytes + e->size > PART_BYTES))
        event_ring_drop(events, part);
    part->at[part->next++ % PART_EVENTS] = e;
    part->bytes += e->size;
    events->made[e->stream][e->kind]++;
    /* A sleeping reader has taken all before this event: its position moves along, or it wakes. */
    for (struct reader *r = events->readers; r; r = r->after) {
        if (!r->asleep)
            continue;
        if (ring_wants(r, e)) {
            r->asleep = false;
            http_exchange_wake(r->x);
        } else {
            r->position[ring_part_of(e->kind)] = part->next;
            ring_pass(r, e);
        }
    }
}

/* `name`: of the event; NULL: the name of its kind. `data`: without a line end. */
static void ring_push(struct http_events *events, struct http_stream *s, enum svi_topic kind,
                      const char *name, const char *key, const char *data, size_t size) {
    char head[120];
    const uint64_t number = ++events->next;
    const int n = snprintf(head, sizeof head, "id: %" PRIx64 "-%" PRIu64 "\nevent: %s\ndata: ", events->epoch,
                           number, name ? name : svi_topic_name(kind));
    struct ring_event *e = svi_alloc_plain(sizeof *e + (size_t)n + size + 2);
    if (!e)
        return;
    *e = (struct ring_event){.number = number, .holders = 1, .stream = s->index, .kind = kind};
    snprintf(e->key, sizeof e->key, "%s", key);
    memcpy(e->text, head, (size_t)n);
    memcpy(e->text + n, data, size);
    memcpy(e->text + n + size, "\n\n", 2);
    e->size = (size_t)n + size + 2;
    ring_append(events, e);
}

/* A gap in what the stream has published is an event as well. */
static void ring_push_lost(struct http_events *events, struct http_stream *s, enum svi_topic kind,
                           const char *key, int64_t lost, const char *why) {
    struct svi_bytes *line = &events->line;
    char count[120];
    line->size = 0;
    snprintf(count, sizeof count, "{\"lost\":%" PRId64 ",\"kind\":\"%s\",\"reason\":\"%s\",\"stream\":", lost,
             svi_topic_name(kind), why);
    if (svi_json_text(line, count) == SVS_OK && svi_json_string(line, s->name, strlen(s->name)) == SVS_OK &&
        svi_json_text(line, "}") == SVS_OK)
        ring_push(events, s, kind, "lost", key, (const char *)line->data, line->size);
    events->tally->events_lost += lost;
}

/* A listener of the streams. */
static void events_push(void *user, struct http_stream *s, const struct subscription_event *e) {
    struct http_events *events = user;
    char key[SVS_KEY_MAX + 1];
    if (e->kind == SVI_TOPIC_COUNT)
        return;
    svi_view_text(svi_view_of(e->payload, e->size), "key", key, sizeof key);
    if (e->lost > 0)
        ring_push_lost(events, s, e->kind, key, e->lost, "published faster than they could be read");
    if (subscription_json(&events->line, e) != SVS_OK)
        return;
    if (events->line.size > EVENT_MAX)
        ring_push_lost(events, s, e->kind, key, 1, "larger than 4 MiB");
    else
        ring_push(events, s, e->kind, NULL, key, (const char *)events->line.data, events->line.size - 1);
}

/* ---- readers */

/* After a notice that waits already. */
static void reader_note(struct reader *r, const char *text) {
    const size_t length = strlen(r->notice);
    snprintf(r->notice + length, sizeof r->notice - length, "%s", text);
}

static void reader_note_lost(struct reader *r, uint64_t lost, const char *why, bool at_most) {
    char text[200];
    r->events->tally->events_lost += (int64_t)lost;
    snprintf(text, sizeof text,
             "event: lost\ndata: {\"lost\":%" PRIu64 ",\"at_most\":%s,\"reason\":\"%s\"}\n\n", lost,
             at_most ? "true" : "false", why);
    reader_note(r, text);
}

/* Reports what has left the ring before this reader reached it. */
static void reader_catch_up(struct reader *r) {
    uint64_t lost = 0;
    bool behind = false;
    for (int p = 0; p < PARTS; p++) {
        const struct ring_part *part = &r->events->part[p];
        behind = behind || r->position[p] < part->first;
        r->position[p] = r->position[p] < part->first ? part->first : r->position[p];
    }
    for (int kind = 0; behind && kind < SVI_TOPIC_COUNT; kind++) {
        const uint64_t left = ring_sum(r, r->events->left, kind);
        lost += (r->kinds >> kind & 1) && left > r->passed[kind] ? left - r->passed[kind] : 0;
        r->passed[kind] = left > r->passed[kind] ? left : r->passed[kind];
    }
    if (lost > 0)
        reader_note_lost(r, lost, "this reader was too slow", r->keyed);
}

/* The next event that the reader wants, held; NULL: not published yet. */
static struct ring_event *reader_next(struct reader *r) {
    for (;;) {
        struct ring_event *best = NULL;
        int from = 0;
        for (int p = 0; p < PARTS; p++) {
            const struct ring_part *part = &r->events->part[p];
            if (!ring_reads(r, p))
                r->position[p] = part->next;
            if (r->position[p] == part->next)
                continue;
            struct ring_event *e = part->at[r->position[p] % PART_EVENTS];
            if (!best || e->number < best->number) {
                best = e;
                from = p;
            }
        }
        if (!best)
            return NULL;
        r->position[from]++;
        ring_pass(r, best);
        if (ring_wants(r, best)) {
            best->holders++;
            return best;
        }
    }
}

/* Copies what fits of `text`; *done counts. */
static size_t reader_copy(const char *text, size_t length, size_t *done, char *to, size_t size) {
    const size_t n = length - *done < size ? length - *done : size;
    memcpy(to, text + *done, n);
    *done += n;
    return n;
}

/* Fills the buffer of the connection: first a notice, then events. An event that has begun is ended before a
 * notice is sent. */
static ssize_t reader_more(void *user, void *bytes, size_t size) {
    struct reader *r = user;
    char *to = bytes;
    size_t n = 0;
    r->asleep = false;
    while (n < size) {
        if (r->current) {
            n += reader_copy(r->current->text, r->current->size, &r->written, to + n, size - n);
            if (r->written < r->current->size)
                break;
            ring_release(r->current);
            r->current = NULL;
            r->events->tally->events_sent++;
            continue;
        }
        if (!*r->notice)
            reader_catch_up(r);
        if (*r->notice) {
            n += reader_copy(r->notice, strlen(r->notice), &r->noticed, to + n, size - n);
            if (r->noticed == strlen(r->notice)) {
                r->notice[0] = '\0';
                r->noticed = 0;
            }
            continue;
        }
        if (!(r->current = reader_next(r)))
            break;
        r->written = 0;
    }
    /* 0 suspends the connection: only ring_append or a comment wakes it. */
    r->asleep = n == 0;
    if (n > 0)
        r->wrote = svi_monotonic();
    return (ssize_t)n;
}

/* Kinds that cost the stream something are subscribed to while somebody reads them. */
static void reader_want(const struct reader *r, int change) {
    static const enum svi_topic on_demand[] = {SVI_TOPIC_SCORE, SVI_TOPIC_BANK, SVI_TOPIC_SUMS};
    for (int i = 0; i < http_streams_count(r->events->streams); i++)
        for (size_t k = 0; k < sizeof on_demand / sizeof *on_demand; k++)
            if ((r->kinds >> on_demand[k] & 1) && (r->stream < 0 || r->stream == i))
                http_stream_want(http_streams_at(r->events->streams, i), on_demand[k], change);
}

static void reader_end(void *user) {
    struct reader *r = user;
    reader_want(r, -1);
    ring_release(r->current);
    if (r->before)
        r->before->after = r->after;
    else
        r->events->readers = r->after;
    if (r->after)
        r->after->before = r->before;
    r->events->count--;
    r->events->tally->event_readers--;
    svi_free(r);
}

/* ---- GET /events */

/* ?kind=alert,model; without it all but scores, banks and sums. */
static bool events_kinds(struct exchange *x, unsigned *kinds) {
    const char *list = http_exchange_query(x, "kind");
    *kinds = 1u << SVI_TOPIC_MODEL | 1u << SVI_TOPIC_ALERT | 1u << SVI_TOPIC_STATS | 1u << SVI_TOPIC_ERROR;
    if (!list || !*list)
        return true;
    *kinds = 0;
    for (const char *word = list; *word;) {
        const size_t length = strcspn(word, ",");
        int kind = 0;
        while (kind < SVI_TOPIC_COUNT && (strlen(svi_topic_name((enum svi_topic)kind)) != length ||
                                          memcmp(word, svi_topic_name((enum svi_topic)kind), length) != 0))
            kind++;
        if (kind == SVI_TOPIC_COUNT) {
            http_exchange_problem(x, 400, "invalid",
                                  "kind=%.60s: each is to be model, bank, score, alert, stats, error, sums or prior",
                                  list);
            return false;
        }
        *kinds |= 1u << kind;
        word += length + (word[length] == ',');
    }
    return true;
}

/* The first index of the part whose number is above `number`. */
static uint64_t events_after(const struct ring_part *part, uint64_t number) {
    uint64_t low = part->first, high = part->next;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (part->at[middle % PART_EVENTS]->number <= number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The position after the event `id`. What was published after it and has left the ring is not in the count
 * of lost events by position, so it is counted by number. */
static void events_resume(struct reader *r, const char *id) {
    struct http_events *events = r->events;
    uint64_t epoch, number;
    if (sscanf(id, "%" SCNx64 "-%" SCNu64, &epoch, &number) != 2 || epoch != events->epoch ||
        number > events->next) {
        reader_note(r, "event: lost\ndata: {\"lost\":null,\"reason\":\"the adapter was restarted\"}\n\n");
        return;
    }
    /* Lost events lie between `number` and the oldest kept; of two parts the newer oldest bounds both. */
    uint64_t oldest = 0;
    for (int p = 0; p < PARTS; p++) {
        const struct ring_part *part = &events->part[p];
        r->position[p] = events_after(part, number);
        for (uint64_t i = r->position[p]; i < part->next; i++) {
            const struct ring_event *e = part->at[i % PART_EVENTS];
            r->passed[e->kind] -= r->stream < 0 || r->stream == e->stream;
        }
        /* Only a part that has dropped events can have dropped one after `number`. */
        if (!ring_reads(r, p) || part->first == 0)
            continue;
        const uint64_t kept =
            part->next > part->first ? part->at[part->first % PART_EVENTS]->number : events->next + 1;
        oldest = kept > oldest ? kept : oldest;
    }
    if (oldest > number + 1)
        reader_note_lost(r, oldest - number - 1, "no longer kept", true);
}

/* Where a reader begins: after the event that it names, else now. */
static void events_begin(struct reader *r, const char *id) {
    for (int p = 0; p < PARTS; p++)
        r->position[p] = r->events->part[p].next;
    for (int kind = 0; kind < SVI_TOPIC_COUNT; kind++)
        r->passed[kind] = ring_sum(r, r->events->made, kind);
    reader_note(r, "retry: 2000\n\n");
    if (id && *id)
        events_resume(r, id);
}

void http_events_get(struct exchange *x, struct http_app *app) {
    struct http_events *events = app->events;
    const char *key = http_exchange_query(x, "key"), *id = http_exchange_header(x, "Last-Event-ID");
    struct http_stream *s = NULL;
    int64_t comment = COMMENT_EVERY;
    unsigned kinds;
    if (!events_kinds(x, &kinds) || !http_relay_integer(x, "comment", 1, COMMENT_MAX, &comment))
        return;
    /* Without ?stream= all streams are read, not only where there is one. */
    if (http_exchange_query(x, "stream") && *http_exchange_query(x, "stream") &&
        !(s = http_relay_stream(x, app->streams, false)))
        return;
    if (key && strlen(key) > SVS_KEY_MAX) {
        http_exchange_problem(x, 400, "bad_key", "key= has more than %d bytes", SVS_KEY_MAX);
        return;
    }
    if (events->count >= READERS_MAX) {
        http_exchange_add(x, "Retry-After", "30");
        http_exchange_problem(x, 503, "limit", "there are as many readers of events as there may be (%d)",
                              READERS_MAX);
        return;
    }
    struct reader *r = svi_alloc_plain(sizeof *r);
    if (!r) {
        http_exchange_problem(x, 503, "no_memory", "no memory for a reader of events");
        return;
    }
    *r = (struct reader){.after = events->readers, .events = events, .x = x, .kinds = kinds};
    r->stream = s ? s->index : -1;
    r->comment = comment;
    r->wrote = svi_monotonic();
    r->keyed = key;
    snprintf(r->key, sizeof r->key, "%s", key ? key : "");
    events_begin(r, id ? id : http_exchange_query(x, "last"));
    if (r->after)
        r->after->before = r;
    events->readers = r;
    events->count++;
    events->tally->event_readers++;
    reader_want(r, 1);
    /* From here on the reader belongs to the exchange, whose end frees it (reader_end). */
    http_exchange_stream(x, "text/event-stream", reader_more, reader_end, r);
}

/* ---- the loop */

double http_events_wait(const struct http_events *e) {
    return e->readers ? fmax(0, e->due - svi_monotonic()) : HUGE_VAL;
}

/* Only readers that are asleep: one that is not woken does not read, and a comment would not reach it. */
void http_events_turn(struct http_events *e) {
    const double now = svi_monotonic();
    if (!e->readers || now < e->due)
        return;
    e->due = now + TURN_EVERY;
    for (struct reader *r = e->readers; r; r = r->after)
        if (r->asleep && now - r->wrote >= (double)r->comment) {
            reader_note(r, ": still here\n\n");
            r->asleep = false;
            http_exchange_wake(r->x);
        }
}

struct http_events *http_events_open(struct http_streams *all, struct http_tally *tally, svs_error *err) {
    const size_t streams = (size_t)http_streams_count(all);
    struct http_events *e = svi_new(sizeof *e, "the events", err);
    if (!e)
        return NULL;
    e->streams = all;
    e->tally = tally;
    /* Milliseconds: a restart gives another one. */
    e->epoch = (uint64_t)(1000 * svi_wall_clock());
    for (int p = 0; p < PARTS; p++)
        e->part[p].at = svi_alloc_array(PART_EVENTS, sizeof *e->part[p].at);
    e->made = svi_new(streams * sizeof *e->made, "the events", err);
    e->left = svi_new(streams * sizeof *e->left, "the events", err);
    if (e->part[0].at && e->part[1].at && e->made && e->left &&
        http_streams_listen(all, NULL, events_push, e))
        return e;
    svi_fail_memory(err, "the events");
    http_events_close(&e);
    return NULL;
}

void http_events_close(struct http_events **events) {
    struct http_events *e = *events;
    if (!e)
        return;
    for (int p = 0; p < PARTS; p++) {
        while (e->part[p].at && e->part[p].next > e->part[p].first)
            event_ring_drop(e, &e->part[p]);
        svi_free(e->part[p].at);
    }
    svi_free(e->made);
    svi_free(e->left);
    svi_bytes_clear(&e->line);
    svi_free(e);
    *events = NULL;
}
