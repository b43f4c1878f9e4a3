#include "base/alloc.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ALIGNMENT      64
#define LARGE_PAGE     ((uintptr_t)2 << 20)
#define HEAP_STEP      (16 << 20) /* bytes by which the heap grows */
#define MAX_HEAP_BLOCK (4 << 20)  /* largest block that it serves; larger ones have separate pages */
#define APART          (128 << 10)
#define MIN_PAGE       4096
/* The same limit after svi_alloc_ahead; the buffers of a checkpoint must fit below it. */
#define MAX_AHEAD (1 << 20)

/* Leaves the whole pages of a large block to the system, which provides zeros at the first use of each: the
 * caller does not wait for all of it at once, and pages that are never used take no memory. Only the parts of
 * pages at both ends, which neighbours may share, are cleared here. */
static void alloc_zero(char *block, size_t size) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)block;
    const uintptr_t first = (begin + page - 1) / page * page, last = (begin + size) / page * page;
    if (size < SVI_ALLOC_LAZY || madvise((void *)first, last - first, MADV_DONTNEED) != 0) {
        memset(block, 0, size);
        return;
    }
    memset(block, 0, first - begin);
    memset((void *)last, 0, begin + size - last);
}

void *svi_alloc(size_t size) {
    if (size == 0 || size > PTRDIFF_MAX - ALIGNMENT)
        return NULL;
    size_t rounded = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    void *block = aligned_alloc(ALIGNMENT, rounded);
    if (block)
        alloc_zero(block, rounded);
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

void *svi_realloc_plain(void *block, size_t old_size, size_t size) {
    (void)old_size; /* realloc knows it; the parameter keeps both functions alike */
    return size == 0 || size > PTRDIFF_MAX ? NULL : realloc(block, size);
}

void svi_free(void *block) {
    free(block);
}

void svi_large_blocks_apart(void) {
    mallopt(M_MMAP_THRESHOLD, APART);
}

/* Allocates a block at the top of the heap, touches its pages and frees it. The thresholds come first: with
 * the default ones malloc would serve the block by separate pages, or return the heap's top to the system. */
void svi_alloc_ahead(size_t size) {
    mallopt(M_TRIM_THRESHOLD, (int)(2 * size));
    mallopt(M_MMAP_THRESHOLD, (int)(2 * size));
    volatile char *block = malloc(size);
    mallopt(M_MMAP_THRESHOLD, MAX_AHEAD);
#ifdef MADV_POPULATE_WRITE /* one call for all pages, where the system has it: a quarter of the time */
    const uintptr_t begin = ((uintptr_t)block + MIN_PAGE - 1) / MIN_PAGE * MIN_PAGE;
    if (block)
        (void)madvise((void *)begin, size - MIN_PAGE, MADV_POPULATE_WRITE);
#endif
    for (size_t at = 0; block && at < size; at += MIN_PAGE)
        block[at] = 0;
    free((void *)block);
}

static uintptr_t heap_end(void) {
    const intptr_t end = (intptr_t)sbrk(0);
    return end == -1 ? 0 : (uintptr_t)end / LARGE_PAGE * LARGE_PAGE;
}

void svi_large_pages_begin(uintptr_t *until) {
    mallopt(M_TOP_PAD, HEAP_STEP);
    mallopt(M_MMAP_THRESHOLD, MAX_HEAP_BLOCK);
    *until = heap_end();
}

/* Must run before the heap's new part is touched: a page that is already small stays small for long. */
void svi_large_pages_go_on(uintptr_t *until) {
    const uintptr_t end = heap_end();
    if (end > *until && *until > 0)
        (void)madvise((void *)*until, end - *until, MADV_HUGEPAGE);
    *until = end > *until ? end : *until;
}
