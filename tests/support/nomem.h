/* nomem.h: makes the n-th allocation fail. For programs with _nomem in their name, which are linked with
 * --wrap for svi_alloc, svi_alloc_plain, svi_realloc and svi_realloc_plain. */
#ifndef TEST_SUPPORT_NOMEM_H
#define TEST_SUPPORT_NOMEM_H

#include <stdbool.h>
#include <stddef.h>

static long left = -1;                           /* allocations until one fails; -1 = none fails */
static double taken __attribute__((unused)) = 0; /* bytes asked for so far, less those given up to grow */

void *__real_svi_alloc(size_t size);
void *__real_svi_alloc_plain(size_t size);
void *__real_svi_realloc(void *block, size_t old_size, size_t size);
void *__real_svi_realloc_plain(void *block, size_t old_size, size_t size);
void *__wrap_svi_alloc(size_t size);
void *__wrap_svi_alloc_plain(size_t size);
void *__wrap_svi_realloc(void *block, size_t old_size, size_t size);
void *__wrap_svi_realloc_plain(void *block, size_t old_size, size_t size);

static bool from_then_on __attribute__((unused)) = false; /* all after it fail too */
static bool failed __attribute__((unused)) = false;       /* one has failed */

static bool fails(void) {
    const bool now = left == 0;
    if (left > 0 || (now && !from_then_on))
        left--;
    failed = failed || now;
    return now;
}

void *__wrap_svi_alloc(size_t size) {
    taken += (double)size;
    return fails() ? NULL : __real_svi_alloc(size);
}

void *__wrap_svi_alloc_plain(size_t size) {
    taken += (double)size;
    return fails() ? NULL : __real_svi_alloc_plain(size);
}

void *__wrap_svi_realloc(void *block, size_t old_size, size_t size) {
    taken += (double)size - (double)old_size;
    return fails() ? NULL : __real_svi_realloc(block, old_size, size);
}

void *__wrap_svi_realloc_plain(void *block, size_t old_size, size_t size) {
    taken += (double)size - (double)old_size;
    return fails() ? NULL : __real_svi_realloc_plain(block, old_size, size);
}

#endif
