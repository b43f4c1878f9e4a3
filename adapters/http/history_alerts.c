/* Alert events in the history.
 *
 * An event is identified by epoch and number (the number is one over all keys of a stream), an alert by
 * epoch, key and alert number. So events may come twice, as published and again in a reply to `alerts`, in
 * any order. The payload is stored as it is, deflated where that is shorter, with a checksum: what a damaged
 * file gives back must not pass for an event.
 *
 * A verdict may arrive weeks later and does not make its alert longer.
 *
 * Read alert_add first, then the two that call it: one event as it was published
 * (http_history_alerts_add), and a reply with many (http_history_alerts_take), each in one transaction. So
 * the number up to which all events are here never runs ahead of the events. Everything runs on the
 * history's thread (history_worker.c). */
#include "history_alerts.h"

#include <string.h>

#include <zlib.h>

#include "base/alloc.h"
#include "wire/fields.h"

#define MAX_EVENT  (1 << 20)  /* bytes of an event */
#define MAX_MEMORY (64 << 20) /* bytes of a history in memory */
#define PAGE       4096       /* bytes of a page of the database */

struct alert_head {
    int64_t alert;
    uint64_t epoch, number, seq;
    double ts;
    char state[16], key[SVS_KEY_MAX + 1];
};

static const struct svi_field alert_fields[] = {
    SVI_FIELD(struct alert_head, alert, INTEGER, 0, SVI_FIELD_UNLIMITED),
    SVI_FIELD(struct alert_head, epoch, UINT, 0, 0),
    SVI_FIELD_OPTIONAL(struct alert_head, number, UINT, 0, 0),
    SVI_FIELD_OPTIONAL(struct alert_head, seq, UINT, 0, 0),
    SVI_FIELD(struct alert_head, ts, REAL, -1e15, 1e15),
    SVI_FIELD_STRING(struct alert_head, state),
    SVI_FIELD_STRING(struct alert_head, key)};

static bool alert_read(struct alert_head *a, const void *event, size_t size) {
    struct svi_field fields[sizeof alert_fields / sizeof alert_fields[0]];
    const uint8_t *bytes = event;
    memcpy(fields, alert_fields, sizeof fields);
    fields[sizeof fields / sizeof fields[0] - 1].optional = true; /* a stream without keys has none */
    *a = (struct alert_head){0};
    return size <= MAX_EVENT && svi_msgpack_check(event, size, SVI_DEPTH_MAX, NULL) == SVS_OK &&
           svi_fields_read("alert", SVI_FIELDS(fields), bytes, bytes + size, a, NULL) == SVS_OK;
}

static int alert_known(struct history_store *h, const struct history_stream *s, const struct alert_head *a,
                       bool *known) {
    sqlite3_stmt *q = http_history_db_statement(&h->db, HISTORY_EVENT_KNOWN);
    sqlite3_bind_int64(q, 1, s->id);
    sqlite3_bind_int64(q, 2, (int64_t)a->epoch);
    sqlite3_bind_int64(q, 3, (int64_t)a->number);
    const int rc = sqlite3_step(q);
    *known = rc == SQLITE_ROW;
    sqlite3_reset(q);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Finds or makes the alert of an event. *id 0: the event belongs to none, as that of a mute. */
static int alert_episode(struct history_store *h, const struct history_stream *s, const struct alert_head *a,
                         int64_t *id) {
    *id = 0;
    if (a->alert == 0)
        return SQLITE_OK;
    sqlite3_stmt *q = http_history_db_statement(&h->db, HISTORY_EPISODE_PUT);
    sqlite3_bind_int64(q, 1, s->id);
    sqlite3_bind_int64(q, 2, (int64_t)a->epoch);
    sqlite3_bind_blob(q, 3, a->key, (int)strlen(a->key), SQLITE_STATIC);
    sqlite3_bind_int64(q, 4, a->alert);
    sqlite3_bind_double(q, 5, a->ts);
    if (strcmp(a->state, "close") == 0)
        sqlite3_bind_double(q, 6, a->ts);
    sqlite3_bind_int64(q, 7, strcmp(a->state, "verdict") != 0);
    sqlite3_bind_double(q, 8, h->now);
    int rc = sqlite3_step(q);
    if (rc == SQLITE_ROW) {
        *id = sqlite3_column_int64(q, 0);
        rc = sqlite3_step(q);
    }
    sqlite3_reset(q);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int alert_write(struct history_store *h, const struct history_stream *s, const struct alert_head *a,
                       const void *event, size_t size) {
    int64_t episode;
    const int found = alert_episode(h, s, a, &episode);
    uLongf packed_size = compressBound(size);
    uint8_t *packed = found == SQLITE_OK ? svi_alloc_plain(packed_size) : NULL;
    if (!packed)
        return found != SQLITE_OK ? found : SQLITE_NOMEM;
    /* A reader compares both sizes: equal means stored as it is. */
    const bool shorter = compress2(packed, &packed_size, event, size, 6) == Z_OK && packed_size < size;
    const void *bytes = shorter ? packed : event;
    const size_t stored = shorter ? packed_size : size;
    sqlite3_stmt *q = http_history_db_statement(&h->db, HISTORY_EVENT_PUT);
    sqlite3_bind_int64(q, 1, s->id);
    sqlite3_bind_int64(q, 2, (int64_t)a->epoch);
    sqlite3_bind_int64(q, 3, (int64_t)a->number);
    if (episode != 0)
        sqlite3_bind_int64(q, 4, episode);
    sqlite3_bind_double(q, 5, h->now);
    sqlite3_bind_int64(q, 6, (int64_t)size);
    sqlite3_bind_int64(q, 7, (int64_t)crc32(0, bytes, (uInt)stored));
    sqlite3_bind_blob(q, 8, bytes, (int)stored, SQLITE_STATIC);
    const int rc = sqlite3_step(q);
    sqlite3_reset(q);
    svi_free(packed);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Within a transaction. */
static int alert_add(struct history_store *h, struct history_stream *s, const void *event, size_t size) {
    struct alert_head a;
    bool known = false;
    if (!alert_read(&a, event, size)) {
        h->damaged++;
        return SQLITE_OK;
    }
    /* A stream of an older version has no numbers; its `seq` gets a range of its own. */
    if (a.number == 0)
        a.number = (uint64_t)INT64_MIN | a.seq;
    int rc = s->id == 0 ? http_history_store_identify(h, s) : SQLITE_OK;
    rc = rc == SQLITE_OK ? alert_known(h, s, &a, &known) : rc;
    return rc == SQLITE_OK && !known ? alert_write(h, s, &a, event, size) : rc;
}

static int alerts_number(struct history_store *h, enum history_statement statement, int64_t *out) {
    sqlite3_stmt *q = http_history_db_statement(&h->db, statement);
    const int rc = sqlite3_step(q);
    *out = rc == SQLITE_ROW ? sqlite3_column_int64(q, 0) : 0;
    sqlite3_reset(q);
    return rc == SQLITE_ROW ? SQLITE_OK : rc;
}

/* A history in memory keeps the newer half of its alerts where they fill it. */
static int alerts_limit(struct history_store *h) {
    int64_t pages, count;
    int rc = h->db.path ? SQLITE_DONE : alerts_number(h, HISTORY_PAGES_USED, &pages);
    if (rc != SQLITE_OK || pages * PAGE < MAX_MEMORY)
        return rc == SQLITE_DONE ? SQLITE_OK : rc;
    rc = alerts_number(h, HISTORY_EPISODE_COUNT, &count);
    sqlite3_stmt *q = http_history_db_statement(&h->db, HISTORY_EPISODE_CUT);
    sqlite3_bind_int64(q, 1, count / 2);
    if (rc == SQLITE_OK && (rc = sqlite3_step(q)) == SQLITE_ROW) {
        static const enum history_statement order[] = {HISTORY_EVENT_PRUNE, HISTORY_EPISODE_PRUNE};
        const double before = sqlite3_column_double(q, 0);
        rc = SQLITE_OK;
        for (int i = 0; i < 2 && rc == SQLITE_OK; i++) {
            sqlite3_stmt *prune = http_history_db_statement(&h->db, order[i]);
            sqlite3_bind_double(prune, 1, before);
            sqlite3_bind_int64(prune, 2, count);
            rc = sqlite3_step(prune);
            rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
            sqlite3_reset(prune);
        }
    }
    sqlite3_reset(q);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Ends a transaction. A row of the stream that was made in it is undone with it: the stream has its old id
 * again. */
static int alerts_end(struct history_store *h, struct history_stream *s, int64_t id, int rc) {
    rc = rc == SQLITE_OK ? alerts_limit(h) : rc;
    rc = http_history_db_end(&h->db, rc);
    s->id = rc == SQLITE_OK ? s->id : id;
    return rc;
}

int http_history_alerts_add(struct history_store *h, const char *stream, const void *event, size_t size) {
    int rc;
    struct history_stream *s = http_history_store_stream(h, stream, &rc);
    if (!s)
        return rc;
    const int64_t id = s->id;
    rc = http_history_db_run(&h->db, HISTORY_BEGIN);
    return alerts_end(h, s, id, rc == SQLITE_OK ? alert_add(h, s, event, size) : rc);
}

struct alerts_reply {
    uint64_t epoch, next;
    int64_t lost;
    const uint8_t *alerts, *more;
};

static const struct svi_field reply_fields[] = {
    SVI_FIELD(struct alerts_reply, epoch, UINT, 0, 0), SVI_FIELD(struct alerts_reply, next, UINT, 0, 0),
    SVI_FIELD_OPTIONAL(struct alerts_reply, lost, INTEGER, 0, SVI_FIELD_UNLIMITED),
    SVI_FIELD(struct alerts_reply, alerts, ANY, 0, 0), SVI_FIELD(struct alerts_reply, more, ANY, 0, 0)};

int http_history_alerts_take(struct history_store *h, const char *stream, const void *reply, size_t size,
                             struct history_taken *taken) {
    struct alerts_reply r = {0};
    struct svi_item list, more;
    const uint8_t *bytes = reply, *end = bytes + size, *at, *next;
    int rc;
    struct history_stream *s = http_history_store_stream(h, stream, &rc);
    *taken = (struct history_taken){0};
    if (!s)
        return rc;
    *taken = (struct history_taken){.epoch = s->epoch, .number = s->number};
    if (svi_msgpack_check(reply, size, SVI_DEPTH_MAX, NULL) != SVS_OK ||
        svi_fields_read("reply", SVI_FIELDS(reply_fields), bytes, end, &r, NULL) != SVS_OK) {
        h->damaged++;
        return SQLITE_OK;
    }
    at = svi_item_read(r.alerts, &list);
    svi_item_read(r.more, &more);
    const int64_t id = s->id;
    /* The events and how far they reach are one transaction: a kill between them would hide a gap. */
    rc = http_history_db_run(&h->db, HISTORY_BEGIN);
    for (uint32_t i = 0; list.type == SVI_ARRAY && i < list.length && rc == SQLITE_OK; i++, at = next) {
        next = at;
        if (svi_walk(&next, end, SVI_DEPTH_MAX) != SVS_OK)
            break;
        rc = alert_add(h, s, at, (size_t)(next - at));
    }
    if (rc == SQLITE_OK && (rc = s->id == 0 ? http_history_store_identify(h, s) : SQLITE_OK) == SQLITE_OK) {
        sqlite3_stmt *q = http_history_db_statement(&h->db, HISTORY_STREAM_NUMBER);
        sqlite3_bind_int64(q, 1, s->id);
        sqlite3_bind_int64(q, 2, (int64_t)r.epoch);
        sqlite3_bind_int64(q, 3, (int64_t)r.next);
        rc = sqlite3_step(q);
        rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
        sqlite3_reset(q);
    }
    /* What the next request asks for changes only once the file has it. */
    if ((rc = alerts_end(h, s, id, rc)) == SQLITE_OK) {
        s->epoch = r.epoch;
        s->number = r.next;
        *taken = (struct history_taken){
            .epoch = r.epoch, .number = r.next, .lost = r.lost, .more = more.type == SVI_BOOL && more.i};
    }
    return rc;
}

/* ---- reading */

int http_history_alerts_find(struct history_store *h, const struct history_stream *s, double from, double to,
                             const struct history_selection *which, int limit, struct history_episode *out,
                             int *count) {
    int rc = SQLITE_DONE;
    sqlite3_stmt *q = http_history_db_statement(&h->db, HISTORY_EPISODE_RANGE);
    sqlite3_bind_int64(q, 1, s->id);
    sqlite3_bind_double(q, 2, from);
    sqlite3_bind_double(q, 3, to);
    sqlite3_bind_int64(q, 4, (int64_t)s->epoch);
    sqlite3_bind_int64(q, 5, limit);
    if (which->keyed)
        sqlite3_bind_blob(q, 6, which->key, (int)strlen(which->key), SQLITE_STATIC);
    sqlite3_bind_int64(q, 7, which->offset);
    *count = 0;
    while (*count < limit && (rc = sqlite3_step(q)) == SQLITE_ROW) {
        const bool closed = sqlite3_column_type(q, 4) != SQLITE_NULL;
        const uint64_t epoch = (uint64_t)sqlite3_column_int64(q, 1);
        out[(*count)++] = (struct history_episode){.id = sqlite3_column_int64(q, 0),
                                                   .epoch = epoch,
                                                   .first = sqlite3_column_double(q, 2),
                                                   .last = sqlite3_column_double(q, 3),
                                                   .closed = closed,
                                                   .over = !closed && epoch != s->epoch};
    }
    sqlite3_reset(q);
    return rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_OK : rc;
}

/* Restores the payload in `out` (replaced). False: it is damaged, or there is no memory. */
static bool alerts_unpack(struct svi_bytes *out, sqlite3_stmt *q) {
    const int64_t size = sqlite3_column_int64(q, 0), sum = sqlite3_column_int64(q, 1);
    const void *bytes = sqlite3_column_blob(q, 2);
    const size_t stored = (size_t)sqlite3_column_bytes(q, 2);
    uLongf unpacked = (uLongf)size;
    /* The sizes are from the file and may be damaged: they are bounded before memory is reserved. */
    out->size = 0;
    if (size <= 0 || size > MAX_EVENT || stored == 0 || (int64_t)crc32(0, bytes, (uInt)stored) != sum ||
        svi_bytes_reserve(out, (size_t)size) != SVS_OK)
        return false;
    if (stored == (size_t)size)
        return svi_bytes_append(out, bytes, stored) == SVS_OK &&
               svi_msgpack_check(out->data, out->size, SVI_DEPTH_MAX, NULL) == SVS_OK;
    if (uncompress(out->data, &unpacked, bytes, stored) != Z_OK || unpacked != (uLongf)size)
        return false;
    out->size = unpacked;
    return svi_msgpack_check(out->data, out->size, SVI_DEPTH_MAX, NULL) == SVS_OK;
}

int http_history_alerts_events(struct history_store *h, int64_t episode, history_event *visit, void *user) {
    struct svi_bytes event = {0};
    bool going = true;
    int rc = SQLITE_DONE;
    sqlite3_stmt *q = http_history_db_statement(&h->db, HISTORY_EVENT_RANGE);
    sqlite3_bind_int64(q, 1, episode);
    while (going && (rc = sqlite3_step(q)) == SQLITE_ROW)
        if (alerts_unpack(&event, q))
            going = visit(user, event.data, event.size);
        else
            h->damaged++;
    sqlite3_reset(q);
    svi_bytes_clear(&event);
    return rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_OK : rc;
}
