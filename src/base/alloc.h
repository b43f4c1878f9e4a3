/* alloc.h: the one gate through which this project allocates memory, so that tests can make the n-th
 * allocation fail (they wrap its functions at link time) and nothing escapes them. */
#ifndef SVI_ALLOC_H
#define SVI_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Bytes from which a block leaves its pages to the system until they are used. */
#define SVI_ALLOC_LAZY ((size_t)256 << 10)

/* A growing block of SVI_GROW_WHOLE bytes takes at once all that it may ever need, where that is from
 * SVI_ALLOC_LAZY to SVI_ALLOC_WHOLE; otherwise it doubles. So its content is moved while it is small. */
#define SVI_GROW_WHOLE  ((size_t)64 << 10)
#define SVI_ALLOC_WHOLE ((size_t)32 << 20)

static inline bool svi_grow_whole(double next, double most) {
    return next >= (double)SVI_GROW_WHOLE && most >= (double)SVI_ALLOC_LAZY &&
           most <= (double)SVI_ALLOC_WHOLE;
}

/* `size` zeroed bytes aligned to 64 (a cache line, a ZMM register), or NULL; size 0 gives NULL. From
 * SVI_ALLOC_LAZY on, each page takes memory, and time, only when it is used for the first time. */
void *svi_alloc(size_t size);

/* The same, aligned as malloc does, for what no kernel reads: small blocks take half the room. */
void *svi_alloc_plain(size_t size);

/* Zeroed room for `count` elements; NULL on overflow or when there is none. Inline: the linker's --wrap
 * reaches only calls that cross files, and this call of svi_alloc must fail in tests like all others. */
static inline void *svi_alloc_array(size_t count, size_t element) {
    return element != 0 && count > SIZE_MAX / element ? NULL : svi_alloc(count * element);
}

static inline void *svi_alloc_plain_array(size_t count, size_t element) {
    return element != 0 && count > SIZE_MAX / element ? NULL : svi_alloc_plain(count * element);
}

/* Grows a block from svi_alloc from `old_size` to `size` bytes: a new block with the content copied and the
 * rest zeroed; the old block is freed. On failure returns NULL and leaves the old block as it was. */
void *svi_realloc(void *block, size_t old_size, size_t size);

/* The same for a block from svi_alloc_plain, but what comes after its content is not set: a large block grows
 * where it lies, and of its room only what is written takes memory. */
void *svi_realloc_plain(void *block, size_t old_size, size_t size);

void svi_free(void *block);

/* A block of 128 KiB or more has pages of its own from here on, which go back when it is freed, whatever was
 * freed before: for a command that needs a few large blocks, one after another. */
void svi_large_blocks_apart(void);

/* The heap has that many bytes more from here on whose pages are there already, for blocks below
 * SVI_ALLOC_LAZY; those from 1 MiB on have pages of their own. For a process that is to answer its first
 * samples as fast as later ones: a page that is used for the first time costs .3 us, on a virtual machine 20.
 */
void svi_alloc_ahead(size_t size);

/* What comes from the heap from here on lies in large pages as far as the system has them: what is used at
 * random in much memory waits less for where it is. begin is called once; go_on before something is allocated
 * that is to lie there, with the same *until. */
void svi_large_pages_begin(uintptr_t *until);
void svi_large_pages_go_on(uintptr_t *until);

/* Room for one more than `count` elements in a block of *room of them: twice as many, `least` at first.
 * pointer: the address of the pointer to the block. False: left as it was. */
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

/* Room for `count` doubles instead of `old`, as svi_realloc; false: left as it was. */
static inline bool svi_grow_doubles(double **array, size_t old, size_t count) {
    double *more = svi_realloc(*array, old * sizeof *more, count * sizeof *more);
    if (more)
        *array = more;
    return more;
}

#endif
