/* alloc.h: the only functions by which this project allocates memory. Tests wrap them at link time and make
 * the n-th allocation fail; a direct call of malloc would escape those tests. */
#ifndef SVI_ALLOC_H
#define SVI_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Size in bytes from which a block's pages are left to the system until they are used. */
#define SVI_ALLOC_LAZY ((size_t)256 << 10)

/* A growing block that reaches SVI_GROW_WHOLE bytes takes its final size at once, where that is from
 * SVI_ALLOC_LAZY to SVI_ALLOC_WHOLE; otherwise it doubles. So content is moved only while it is small, and
 * unused pages of the final size cost nothing. */
#define SVI_GROW_WHOLE  ((size_t)64 << 10)
#define SVI_ALLOC_WHOLE ((size_t)32 << 20)

static inline bool svi_grow_whole(double next, double most) {
    return next >= (double)SVI_GROW_WHOLE && most >= (double)SVI_ALLOC_LAZY &&
           most <= (double)SVI_ALLOC_WHOLE;
}

/* `size` zeroed bytes aligned to 64 (a cache line, a ZMM register), or NULL; size 0 gives NULL. From
 * SVI_ALLOC_LAZY on, a page costs memory, and time, only when it is first used. Free with svi_free. */
void *svi_alloc(size_t size);

/* The same with malloc's alignment, for data that no kernel reads: small blocks take half the memory. */
void *svi_alloc_plain(size_t size);

/* Zeroed memory for `count` elements; NULL on overflow or when memory is out. Inline: the linker's --wrap
 * reaches only calls that cross files, and this call of svi_alloc must fail in tests like all others. */
static inline void *svi_alloc_array(size_t count, size_t element) {
    return element != 0 && count > SIZE_MAX / element ? NULL : svi_alloc(count * element);
}

static inline void *svi_alloc_plain_array(size_t count, size_t element) {
    return element != 0 && count > SIZE_MAX / element ? NULL : svi_alloc_plain(count * element);
}

/* Grows a block from svi_alloc from `old_size` to `size` bytes: a new block with the content copied and the
 * rest zeroed; the old block is freed. On failure returns NULL and leaves the old block unchanged. */
void *svi_realloc(void *block, size_t old_size, size_t size);

/* The same for a block from svi_alloc_plain, but the bytes after its content are not set: a large block may
 * grow in place, and its pages take memory only when they are written. */
void *svi_realloc_plain(void *block, size_t old_size, size_t size);

void svi_free(void *block);

/* From this call on, a block of 128 KiB or more has separate pages, which return to the system when it is
 * freed: for a command that needs a few large blocks, one after another. */
void svi_large_blocks_apart(void);

/* Extends the heap by `size` bytes whose pages are already present, for blocks below SVI_ALLOC_LAZY; blocks
 * from 1 MiB on get separate pages. For a process that must answer its first samples as fast as later ones:
 * the first use of a page costs .3 us, on a virtual machine 20. */
void svi_alloc_ahead(size_t size);

/* Puts later heap blocks into large pages, as far as the system has them: random access to much memory then
 * misses the address cache less often. Call begin once, and go_on with the same *until before each allocation
 * that should lie there. */
void svi_large_pages_begin(uintptr_t *until);
void svi_large_pages_go_on(uintptr_t *until);

/* Ensures capacity for one more than `count` elements in a block of *capacity elements, by doubling it;
 * `least` at first. pointer: the address of the pointer to the block. False: out of memory, unchanged. */
static inline bool svi_grow(void *pointer, int64_t count, int64_t *capacity, int64_t least, size_t element) {
    const int64_t wider = *capacity > 0 ? 2 * *capacity : least;
    void *old, *more;
    if (count < *capacity)
        return true;
    memcpy(&old, pointer, sizeof old);
    if (!(more = svi_realloc(old, (size_t)*capacity * element, (size_t)wider * element)))
        return false;
    memcpy(pointer, &more, sizeof more);
    *capacity = wider;
    return true;
}

/* Grows an array of `old` doubles to `count`, as svi_realloc; false: out of memory, unchanged. */
static inline bool svi_grow_doubles(double **array, size_t old, size_t count) {
    double *more = svi_realloc(*array, old * sizeof *more, count * sizeof *more);
    if (more)
        *array = more;
    return more;
}

#endif
