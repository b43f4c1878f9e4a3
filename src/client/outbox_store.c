/* Two structures: a ring of entries, and one block with their bytes, used in a circle. An entry lies in one
 * piece. Space is freed only at the oldest entry; other gaps disappear when the block is rebuilt. A failed
 * push leaves the store as it was. */
#include <string.h>

#include "base/alloc.h"
#include "client/outbox_internal.h"

#define FIRST_CAPACITY 64
#define FIRST_SIZE     4096

/* Bytes that an entry occupies: at least 1, since an empty entry would share its offset with the next. */
static size_t capacity_of(size_t size) {
    return size ? size : 1;
}

void svi_outbox_store_clear(struct svi_store *s) {
    svi_free(s->ring);
    svi_free(s->block);
    *s = (struct svi_store){.samples = s->samples, .bytes = s->bytes};
}

struct svi_kept *svi_outbox_store_at(const struct svi_store *s, int64_t i) {
    int64_t place = s->first + i;
    return &s->ring[place < s->capacity ? place : place - s->capacity];
}

/* Doubles the ring, with the oldest entry moved to index 0. */
static svs_code grow_ring(struct svi_store *s) {
    int64_t capacity = s->capacity ? 2 * s->capacity : FIRST_CAPACITY;
    capacity = capacity < s->samples ? capacity : s->samples;
    struct svi_kept *ring = svi_alloc_array((size_t)capacity, sizeof *ring);
    if (!ring)
        return SVS_NO_MEMORY;
    /* svi_outbox_store_at still refers to the old ring here. */
    for (int64_t i = 0; i < s->count; i++)
        ring[i] = *svi_outbox_store_at(s, i);
    svi_free(s->ring);
    s->ring = ring;
    s->capacity = capacity;
    s->first = 0;
    return SVS_OK;
}

/* The offset where `size` bytes fit in one piece, or SIZE_MAX. The used part begins at the oldest entry and
 * ends at the tail; it wraps around the end of the block if the tail is not after the oldest. */
static size_t place_for(const struct svi_store *s, size_t size) {
    /* An empty store starts at the beginning, whatever its tail was. */
    if (s->count == 0)
        return size <= s->size ? 0 : SIZE_MAX;
    size_t head = svi_outbox_store_at(s, 0)->at;
    if (s->tail <= head)
        return size <= head - s->tail ? s->tail : SIZE_MAX;
    if (size <= s->size - s->tail)
        return s->tail;
    return size <= head ? 0 : SIZE_MAX;
}

/* Copies the entries into a new block with space for `needed` more bytes, without the gaps that removed
 * entries left. It is twice as large unless the gaps made up much of the old one. */
static svs_code rebuild_block(struct svi_store *s, size_t needed) {
    size_t size = s->size ? s->size : FIRST_SIZE, used = 0, tail = 0;
    for (int64_t i = 0; i < s->count; i++)
        used += capacity_of(svi_outbox_store_at(s, i)->size);
    while (size < 2 * used + needed)
        size *= 2;
    size = size < s->bytes ? size : s->bytes;
    /* At the limit of bytes a rebuild can only remove gaps. If these are small it is refused: an almost full
     * store would copy itself for every sample. */
    if (size <= s->size && used + needed > s->size - s->size / 8)
        return SVS_LIMIT;
    uint8_t *block = svi_alloc(size);
    if (!block)
        return SVS_NO_MEMORY;
    /* Copied in the order of the queue, so the new block does not wrap. */
    for (int64_t i = 0; i < s->count; i++) {
        struct svi_kept *k = svi_outbox_store_at(s, i);
        memcpy(block + tail, s->block + k->at, k->size);
        k->at = tail;
        tail += capacity_of(k->size);
    }
    svi_free(s->block);
    s->block = block;
    s->size = size;
    s->tail = tail;
    return SVS_OK;
}

svs_code svi_outbox_store_push(struct svi_store *s, const void *body, size_t size, uint32_t pairs) {
    size_t taken = capacity_of(size);
    if (s->count == s->samples || taken > s->bytes)
        return SVS_LIMIT;
    svs_code code = s->count == s->capacity ? grow_ring(s) : SVS_OK;
    /* The ring first: if it cannot grow, the block stays as it is. */
    size_t at = code == SVS_OK ? place_for(s, taken) : SIZE_MAX;
    if (code == SVS_OK && at == SIZE_MAX && (code = rebuild_block(s, taken)) == SVS_OK)
        at = place_for(s, taken);
    if (code != SVS_OK)
        return code;
    if (at == SIZE_MAX) /* the limit of the block cut the last growth short */
        return SVS_LIMIT;
    memcpy(s->block + at, body, size);
    s->count++;
    *svi_outbox_store_at(s, s->count - 1) = (struct svi_kept){at, size, pairs, false, false, 0};
    s->tail = at + taken;
    return SVS_OK;
}

void svi_outbox_store_pop(struct svi_store *s, int64_t count) {
    count = count < s->count ? count : s->count;
    s->count -= count;
    if (s->capacity)
        s->first = (s->first + count) % s->capacity;
    if (s->count == 0)
        s->first = 0, s->tail = 0;
}

/* Entries older than it move up by one place in the ring; its bytes stay a gap until the block is rebuilt. */
void svi_outbox_store_remove(struct svi_store *s, int64_t i) {
    for (; i > 0; i--)
        *svi_outbox_store_at(s, i) = *svi_outbox_store_at(s, i - 1);
    svi_outbox_store_pop(s, 1);
    /* If the last entry was the one removed, the tail moves back to the new last one. */
    if (s->count > 0) {
        const struct svi_kept *last = svi_outbox_store_at(s, s->count - 1);
        s->tail = last->at + capacity_of(last->size);
    }
}

bool svi_outbox_store_check(const struct svi_store *s) {
    size_t end = 0;
    int turns = 0;
    if (s->count < 0 || s->count > s->capacity || s->capacity > s->samples || s->size > s->bytes)
        return false;
    /* Entries may wrap around the end of the block once, and then must end before the oldest. */
    for (int64_t i = 0; i < s->count; i++) {
        const struct svi_kept *k = svi_outbox_store_at(s, i);
        if (k->at + capacity_of(k->size) > s->size)
            return false;
        turns += i > 0 && k->at < end;
        end = k->at + capacity_of(k->size);
        if (turns > 0 && end > svi_outbox_store_at(s, 0)->at)
            return false;
    }
    return turns <= 1 && (s->count == 0 ? s->tail == 0 : s->tail == end);
}
