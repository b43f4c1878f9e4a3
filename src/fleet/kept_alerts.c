/* Two rings of byte strings, each string with a number: the events, and the histories of the newest of them.
 *
 * A ring is one buffer of strings back to back and arrays of their numbers, sizes and places. A
 * string is appended at the end and dropped at the front. The front moves up when more than half of
 * the buffer is dropped, so that both cost a constant time on average. A checkpoint copies one
 * block.
 *
 * A history is the last pair of its event's map. It is kept apart, as the pair's bytes, because it
 * is ten times as long as the rest. An answer puts the two together again, under the head of a map
 * with one pair more. Numbers ascend, so that an event is found by bisection.
 *
 * Invariants: the last number only grows, also for an event that was not kept for lack of memory.
 * The number of that event is a gap, which an answer counts as lost. Read svi_kept_alerts_add
 * first, then svi_kept_alerts_put. */
#include "fleet/kept_alerts.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "store/checkpoint_file.h"
#include "wire/event_bytes.h"

#define FIRST_CAPACITY 64
#define MAX_ENTRIES    ((int64_t)1 << 20)
#define MAX_BYTES      ((int64_t)1 << 32)
#define NO_MEMORY      "no memory for the alerts that are kept"

struct ring {
    struct svi_bytes bytes;
    size_t begin; /* of the first string in `bytes` */
    int64_t *number;
    int32_t *size;
    size_t *at; /* in `bytes` */
    int64_t first, count, capacity;
};

struct svi_kept_alerts {
    int64_t keep, last;
    struct ring events, histories;
    struct svi_bytes plain, whole; /* the event at hand without and with its history */
};

/* ---- a ring */

static void ring_clear(struct ring *r) {
    svi_bytes_clear(&r->bytes);
    svi_free(r->number);
    svi_free(r->size);
    svi_free(r->at);
    *r = (struct ring){0};
}

static svs_code ring_grow(struct ring *r, int64_t capacity) {
    const size_t old = (size_t)r->capacity, wider = (size_t)capacity;
    int64_t *number = svi_realloc(r->number, old * sizeof *number, wider * sizeof *number);
    r->number = number ? number : r->number;
    int32_t *size = number ? svi_realloc(r->size, old * sizeof *size, wider * sizeof *size) : NULL;
    r->size = size ? size : r->size;
    size_t *at = size ? svi_realloc(r->at, old * sizeof *at, wider * sizeof *at) : NULL;
    r->at = at ? at : r->at;
    /* The capacity is that of the shortest array: after a failure some have grown, and none is counted. */
    if (!at)
        return SVS_NO_MEMORY;
    r->capacity = capacity;
    return SVS_OK;
}

/* Moves what is kept to the front of its arrays. */
static void ring_compact(struct ring *r) {
    memmove(r->bytes.data, r->bytes.data + r->begin, r->bytes.size - r->begin);
    r->bytes.size -= r->begin;
    for (int64_t i = 0; i < r->count; i++) {
        r->number[i] = r->number[r->first + i];
        r->size[i] = r->size[r->first + i];
        r->at[i] = r->at[r->first + i] - r->begin;
    }
    r->begin = 0;
    r->first = 0;
}

static void ring_drop(struct ring *r) {
    r->begin += (size_t)r->size[r->first++];
    if (--r->count == 0) {
        r->first = 0;
        r->begin = r->bytes.size = 0;
    } else if (r->begin > r->bytes.size / 2) {
        ring_compact(r);
    }
}

static svs_code ring_add(struct ring *r, int64_t number, const void *bytes, size_t size) {
    if (r->first + r->count == r->capacity && r->first > r->capacity / 2)
        ring_compact(r);
    if (r->first + r->count == r->capacity)
        SVI_TRY(ring_grow(r, r->capacity > 0 ? 2 * r->capacity : FIRST_CAPACITY));
    const int64_t i = r->first + r->count;
    r->at[i] = r->bytes.size;
    SVI_TRY(svi_bytes_append(&r->bytes, bytes, size));
    r->number[i] = number;
    r->size[i] = (int32_t)size;
    r->count++;
    return SVS_OK;
}

/* The index, from 0, of the first string with a number above `number`; the count: none has. */
static int64_t ring_after(const struct ring *r, int64_t number) {
    int64_t low = 0, high = r->count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (r->number[r->first + middle] > number)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static int64_t ring_number(const struct ring *r, int64_t i) {
    return r->number[r->first + i];
}

static const uint8_t *ring_bytes(const struct ring *r, int64_t i) {
    return r->bytes.data + r->at[r->first + i];
}

static size_t ring_size(const struct ring *r, int64_t i) {
    return (size_t)r->size[r->first + i];
}

/* ---- keeping */

svi_kept_alerts *svi_kept_alerts_new(svs_error *err) {
    return svi_new(sizeof(svi_kept_alerts), "the alerts that are kept", err);
}

void svi_kept_alerts_free(svi_kept_alerts **k) {
    if (!*k)
        return;
    ring_clear(&(*k)->events);
    ring_clear(&(*k)->histories);
    svi_bytes_clear(&(*k)->plain);
    svi_bytes_clear(&(*k)->whole);
    svi_free(*k);
    *k = NULL;
}

/* A history goes with its event at the latest. */
static void kept_trim(svi_kept_alerts *k) {
    struct ring *events = &k->events, *histories = &k->histories;
    while (events->count > k->keep)
        ring_drop(events);
    while (histories->count > 0 && (histories->count > SVI_KEPT_HISTORIES || events->count == 0 ||
                                    ring_number(histories, 0) < ring_number(events, 0)))
        ring_drop(histories);
}

void svi_kept_alerts_limit(svi_kept_alerts *k, int64_t keep) {
    k->keep = keep;
    kept_trim(k);
}

/* The event is encoded without its history and with it: the difference is the pair that is kept apart. */
static svs_code kept_add_history(svi_kept_alerts *k, struct svi_event *event) {
    const int count = event->as.alert.history_count;
    event->as.alert.history_count = 0;
    svs_code code = svi_event_encode(event, &k->plain);
    event->as.alert.history_count = count;
    if (code == SVS_OK)
        code = svi_event_encode(event, &k->whole);
    if (code != SVS_OK)
        return code;
    const size_t pair = svi_event_bytes_added(&k->plain, &k->whole);
    return ring_add(&k->histories, k->last, k->whole.data + (k->whole.size - pair), pair);
}

svs_code svi_kept_alerts_add(svi_kept_alerts *k, struct svi_event *event) {
    const bool history = event->as.alert.history_count > 0;
    event->as.alert.number = (uint64_t)++k->last;
    if (k->keep == 0)
        return SVS_OK;
    SVI_TRY(history ? kept_add_history(k, event) : svi_event_encode(event, &k->plain));
    event->payload = history ? &k->whole : &k->plain;
    const svs_code code = ring_add(&k->events, k->last, k->plain.data, k->plain.size);
    /* Without its event the history is dropped here: it would be the newest one of no event. */
    kept_trim(k);
    return code;
}

uint64_t svi_kept_alerts_last(const svi_kept_alerts *k) {
    return (uint64_t)k->last;
}

/* Half of a ring may be dropped strings, and a buffer that has grown may be half empty. */
static double ring_memory(const struct ring *r) {
    const size_t place = sizeof *r->number + sizeof *r->size + sizeof *r->at;
    return 4.0 * ((double)(r->bytes.size - r->begin) + (double)(r->count * (int64_t)place));
}

double svi_kept_alerts_memory(const svi_kept_alerts *k) {
    return ring_memory(&k->events) + ring_memory(&k->histories);
}

/* ---- answering */

static void kept_put_one(const svi_kept_alerts *k, int64_t i, struct svi_pack *p) {
    const struct ring *events = &k->events, *histories = &k->histories;
    const int64_t number = ring_number(events, i), h = ring_after(histories, number - 1);
    const bool history = h < histories->count && ring_number(histories, h) == number;
    svi_event_bytes_put(p, ring_bytes(events, i), ring_size(events, i),
                        history ? ring_bytes(histories, h) : NULL, history ? ring_size(histories, h) : 0);
}

int64_t svi_kept_alerts_next(const svi_kept_alerts *k, int64_t since, struct svi_bytes *out) {
    const int64_t i = ring_after(&k->events, since);
    struct svi_pack p;
    if (i == k->events.count)
        return 0;
    out->size = 0;
    svi_pack_begin(&p, out);
    kept_put_one(k, i, &p);
    return svi_pack_end(&p) == SVS_OK ? ring_number(&k->events, i) : -1;
}

void svi_kept_alerts_put(const svi_kept_alerts *k, const struct svi_alert_query *q, struct svi_pack *p) {
    const struct ring *r = &k->events;
    const int64_t since = q->since < (uint64_t)k->last ? (int64_t)q->since : k->last;
    const int64_t begin = ring_after(r, since), before = (int64_t)p->out->size;
    int64_t i = begin, count = 0;
    bool more = false;
    svi_put_int(p, "first", r->count > 0 ? ring_number(r, 0) : k->last + 1);
    svi_put_int(p, "last", k->last);
    svi_pack_key(p, "alerts");
    const size_t hole = svi_pack_hole(p);
    /* The size is compared before an event is put: one always fits, so that each answer gets further. */
    for (; i < r->count && !more; i++) {
        if (q->key && !svi_event_bytes_concern(ring_bytes(r, i), ring_size(r, i), q->key))
            continue;
        more = count == q->limit || (int64_t)p->out->size - before > (int64_t)SVI_KEPT_ANSWER_BYTES;
        if (more)
            break;
        kept_put_one(k, i, p);
        count++;
    }
    svi_pack_fill(p, hole, (size_t)count, false);
    /* All events before i are answered, or concern other keys; what is missing before the next one is lost.
     */
    const int64_t next = more ? ring_number(r, i) - 1 : k->last;
    svi_put_int(p, "next", next);
    svi_put_bool(p, "more", more);
    svi_put_int(p, "lost", next - since - (i - begin));
}

/* ---- in the state */

/* Also the content is checked: what is read back is walked over without a check from then on. */
static bool ring_check(struct ring *r, int64_t last, bool pairs) {
    size_t at = 0;
    for (int64_t i = 0; i < r->count; i++) {
        const size_t size = (size_t)r->size[i];
        if (r->number[i] > last || (i > 0 && r->number[i] <= r->number[i - 1]) || size > r->bytes.size - at ||
            !svi_event_bytes_good(r->bytes.data + at, size, pairs))
            return false;
        r->at[i] = at;
        at += size;
    }
    return at == r->bytes.size;
}

/* Reserves a ring for what is loaded; its strings follow. */
static bool ring_load(struct svi_archive *a, struct ring *r, int64_t count) {
    ring_clear(r);
    if (!svi_archive_check(a, count <= svi_archive_left(a), "alerts are truncated"))
        return false;
    if (count > 0 && ring_grow(r, count) != SVS_OK)
        svi_archive_fail(a, SVS_NO_MEMORY, NO_MEMORY);
    else
        r->count = count;
    return svi_archive_ok(a);
}

/* What has been dropped is left out, and nothing is moved: a checkpoint is taken between two rows. */
static void ring_archive(struct svi_archive *a, struct ring *r, int64_t last, bool pairs) {
    int64_t count = r->count;
    svi_archive_int64(a, "count", &count, 0, MAX_ENTRIES);
    if (svi_archive_loading(a) && !ring_load(a, r, count))
        return;
    struct svi_bytes bytes = {r->bytes.data + r->begin, r->bytes.size - r->begin, 0};
    if (svi_archive_loading(a))
        bytes = (struct svi_bytes){0};
    svi_archive_int64s(a, "numbers", r->number + r->first, count, 1, SVI_COUNT_MAX);
    svi_archive_ints(a, "sizes", r->size + r->first, count, 1, INT32_MAX);
    svi_archive_block(a, "size", "bytes", &bytes, MAX_BYTES, "alerts are truncated", NO_MEMORY);
    if (!svi_archive_loading(a))
        return;
    r->bytes = bytes; /* also after a failure: it is freed with the ring */
    if (svi_archive_ok(a))
        svi_archive_check(a, ring_check(r, last, pairs), "an alert that is kept is damaged");
}

void svi_kept_alerts_archive(struct svi_archive *a, svi_kept_alerts *k) {
    svi_archive_int64(a, "last", &k->last, 0, SVI_COUNT_MAX);
    ring_archive(a, &k->events, k->last, false);
    ring_archive(a, &k->histories, k->last, true);
}
