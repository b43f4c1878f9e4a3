/* A binary heap of keys by the time at which they are due. Each key knows its place (`queued`, from 1), so
 * that it can be moved or removed without a search. Equal times are ordered by the number of the key: the
 * order in which keys are due is part of the results. */
#include "fleet/key_queue.h"

#include <math.h>

#include "base/alloc.h"
#include "base/fail.h"

#define QUEUE_FIRST 64 /* places */

void svi_key_queue_clear(struct svi_key_queue *q) {
    svi_free(q->at);
    *q = (struct svi_key_queue){0};
}

svs_code svi_key_queue_reserve(struct svi_key_queue *q, int64_t keys, svs_error *err) {
    size_t capacity = q->capacity ? q->capacity : QUEUE_FIRST;
    while (capacity < (size_t)keys)
        capacity *= 2;
    if (capacity == q->capacity)
        return SVS_OK;
    struct svi_key_due *more = svi_realloc(q->at, q->capacity * sizeof *more, capacity * sizeof *more);
    if (!more)
        return svi_fail_memory(err, "the times of keys");
    q->at = more;
    q->capacity = capacity;
    return SVS_OK;
}

static bool queue_is_before(const struct svi_key_due *a, const struct svi_key_due *b) {
    return a->due < b->due || (a->due == b->due && a->key->head.number < b->key->head.number);
}

static void queue_place(struct svi_key_queue *q, size_t i, struct svi_key_due d) {
    q->at[i] = d;
    d.key->queued = (uint32_t)i + 1;
}

static void queue_rise(struct svi_key_queue *q, size_t i) {
    const struct svi_key_due d = q->at[i];
    for (; i > 0 && queue_is_before(&d, &q->at[(i - 1) / 2]); i = (i - 1) / 2)
        queue_place(q, i, q->at[(i - 1) / 2]);
    queue_place(q, i, d);
}

static void queue_sink(struct svi_key_queue *q, size_t i) {
    const struct svi_key_due d = q->at[i];
    for (size_t child; (child = 2 * i + 1) < q->count; i = child) {
        if (child + 1 < q->count && queue_is_before(&q->at[child + 1], &q->at[child]))
            child++;
        if (!queue_is_before(&q->at[child], &d))
            break;
        queue_place(q, i, q->at[child]);
    }
    queue_place(q, i, d);
}

/* The last of the heap takes the place. It may belong further up or further down than that: it is moved in
 * both directions. */
void svi_key_queue_leave(struct svi_key_queue *q, struct svi_key_entry *key) {
    if (key->queued == 0)
        return;
    const size_t i = key->queued - 1;
    const struct svi_key_due last = q->at[--q->count];
    key->queued = 0;
    if (last.key == key)
        return;
    queue_place(q, i, last);
    queue_rise(q, i);
    queue_sink(q, last.key->queued - 1);
}

void svi_key_queue_set(struct svi_key_queue *q, struct svi_key_entry *key, double due) {
    if (isinf(due)) {
        svi_key_queue_leave(q, key);
        return;
    }
    if (key->queued == 0)
        queue_place(q, q->count++, (struct svi_key_due){due, key});
    else
        q->at[key->queued - 1].due = due;
    queue_rise(q, key->queued - 1);
    queue_sink(q, key->queued - 1);
}

/* A deadline that only moves later needs no move now: the caller that takes the first key checks its time and
 * places it again (fleet_time.c). */
void svi_key_queue_put_off(struct svi_key_queue *q, struct svi_key_entry *key, double due) {
    if (key->queued == 0 || due < q->at[key->queued - 1].due)
        svi_key_queue_set(q, key, due);
}
