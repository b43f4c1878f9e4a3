#include "base/bytes.h"

#include <string.h>

#include "base/alloc.h"

#define FIRST_CAPACITY 256

void svi_bytes_clear(struct svi_bytes *b) {
    svi_free(b->data);
    *b = (struct svi_bytes){0};
}

svs_code svi_bytes_reserve(struct svi_bytes *b, size_t n) {
    size_t capacity = b->capacity ? b->capacity : FIRST_CAPACITY;
    if (n <= b->capacity - b->size)
        return SVS_OK;
    if (n > PTRDIFF_MAX / 2 - b->size)
        return SVS_NO_MEMORY;
    while (capacity < b->size + n)
        capacity *= 2;
    void *data = svi_realloc_plain(b->data, b->size, capacity);
    if (!data)
        return SVS_NO_MEMORY;
    b->data = data;
    b->capacity = capacity;
    return SVS_OK;
}

/* The pieces of an event are a few bytes each: two copies of a fixed size that may overlap beat a call of
 * memcpy. */
static inline void bytes_copy(uint8_t *to, const uint8_t *from, size_t n) {
    if (n > 16)
        memcpy(to, from, n);
    else if (n >= 8) {
        memcpy(to, from, 8);
        memcpy(to + n - 8, from + n - 8, 8);
    } else if (n >= 4) {
        memcpy(to, from, 4);
        memcpy(to + n - 4, from + n - 4, 4);
    } else if (n >= 2) {
        memcpy(to, from, 2);
        memcpy(to + n - 2, from + n - 2, 2);
    } else if (n == 1)
        *to = *from;
}

svs_code svi_bytes_append(struct svi_bytes *b, const void *data, size_t n) {
    if (n > b->capacity - b->size && svi_bytes_reserve(b, n) != SVS_OK)
        return SVS_NO_MEMORY;
    if (n > 0) /* otherwise data may still be NULL */
        bytes_copy(b->data + b->size, data, n);
    b->size += n;
    return SVS_OK;
}
