/* pool.h: the blocks of a workspace, allocated one by one and freed together.
 *
 *     s->f = svi_pool_doubles(&s->pool, n);
 *     s->order = svi_pool_take(&s->pool, n, sizeof *s->order);
 *     svs_code code = svi_pool_code(&s->pool, "coordinate descent", err);
 *     ...
 *     svi_pool_free(&s->pool);
 *
 * The first failure sticks, so one check after the last block is enough. A zeroed pool is empty. */
#ifndef SVI_POOL_H
#define SVI_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include "svmstream/error.h"

struct svi_pool {
    void *newest; /* the last block; each block holds the address of the one before it */
    bool failed;
};

/* A block of `count` elements, zeroed and aligned to 64 bytes; NULL from the first failure on. */
void *svi_pool_take(struct svi_pool *pool, size_t count, size_t element);

static inline double *svi_pool_doubles(struct svi_pool *pool, size_t count) {
    return svi_pool_take(pool, count, sizeof(double));
}

/* Allocates `count` doubles for each of the listed pointers, given by their addresses. */
#define SVI_POOL_DOUBLES(pool, count, ...)                                                                   \
    svi_pool_doubles_each(pool, count, (double **const[]){__VA_ARGS__, NULL})
void svi_pool_doubles_each(struct svi_pool *pool, size_t count, double **const *each);

/* SVS_OK, or SVS_NO_MEMORY with a text that names the workspace, `what`. */
svs_code svi_pool_code(const struct svi_pool *pool, const char *what, svs_error *err);

/* Frees all blocks; the pool is empty again. */
void svi_pool_free(struct svi_pool *pool);

#endif
