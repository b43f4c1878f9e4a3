#include "base/pool.h"

#include <stdint.h>

#include "base/alloc.h"
#include "base/fail.h"

#define HEADER 64 /* in front of each block, for the address of its predecessor; 64 keeps the alignment */

void *svi_pool_take(struct svi_pool *pool, size_t count, size_t element) {
    char *block = NULL;
    if (!pool->failed && count <= (SIZE_MAX - HEADER) / element)
        block = svi_alloc(HEADER + count * element);
    if (!block) {
        pool->failed = true;
        return NULL;
    }
    *(void **)block = pool->newest;
    pool->newest = block;
    return block + HEADER;
}

void svi_pool_doubles_each(struct svi_pool *pool, size_t count, double **const *each) {
    for (; *each; each++)
        **each = svi_pool_doubles(pool, count);
}

svs_code svi_pool_code(const struct svi_pool *pool, const char *what, svs_error *err) {
    return pool->failed ? svi_fail_memory(err, what) : SVS_OK;
}

void svi_pool_free(struct svi_pool *pool) {
    while (pool->newest) {
        void *older = *(void **)pool->newest;
        svi_free(pool->newest);
        pool->newest = older;
    }
    pool->failed = false;
}
