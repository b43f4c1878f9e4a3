/* alloc.h: the one gate through which this project takes memory, so that tests can make the n-th
 * allocation fail (they wrap svi_alloc and svi_realloc at link time) and nothing escapes them. */
#ifndef SVI_ALLOC_H
#define SVI_ALLOC_H

#include <stddef.h>

/* `size` zeroed bytes aligned to 64 (a cache line, a ZMM register), or NULL; size 0 gives NULL. */
void *svi_alloc(size_t size);

/* Zeroed room for `count` elements; NULL on overflow or when there is none. */
void *svi_alloc_array(size_t count, size_t element);

/* Grows a block from svi_alloc from `old_size` to `size` bytes: a new block with the content copied and the
 * rest zeroed; the old block is freed. On failure returns NULL and leaves the old block as it was. */
void *svi_realloc(void *block, size_t old_size, size_t size);

void svi_free(void *block);

#endif
