#include "base/alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 64

void *svi_alloc(size_t size) {
    if (size == 0 || size > PTRDIFF_MAX - ALIGNMENT)
        return NULL;
    size_t rounded = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    void *block = aligned_alloc(ALIGNMENT, rounded);
    if (block)
        memset(block, 0, rounded);
    return block;
}

void *svi_alloc_plain(size_t size) {
    return size == 0 || size > PTRDIFF_MAX ? NULL : calloc(1, size);
}

void *svi_realloc(void *block, size_t old_size, size_t size) {
    void *grown = svi_alloc(size);
    if (!grown)
        return NULL;
    if (block)
        memcpy(grown, block, old_size < size ? old_size : size);
    free(block);
    return grown;
}

void svi_free(void *block) {
    free(block);
}
