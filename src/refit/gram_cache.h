/* gram_cache.h: the Gram matrix of the window, kept from refit to refit: rows that left are subtracted and
 * new rows are added, at a cost in proportion to the change. It is rebuilt every few updates, and when the
 * coordinates have changed. */
#ifndef SVI_GRAM_CACHE_H
#define SVI_GRAM_CACHE_H

#include "learner/snapshot.h"

struct svi_gram_cache;

/* Updates the cache to the (standardised) snapshot; the first call creates it. Adds the time it took to
 * *seconds. SVS_NO_MEMORY: the cache is freed, and the next call rebuilds it. */
svs_code svi_gram_cache_update(struct svi_gram_cache **c, const struct svi_snapshot *s, double *seconds,
                               svs_error *err);

/* Feature j now means something else and is 0 in the rows held: earlier rows count as if they had been 0
 * there. Frees the cache where that changes the coordinates. */
void svi_gram_cache_renew(struct svi_gram_cache **c, int j);
void svi_gram_cache_free(struct svi_gram_cache **c);

/* sum z z', z = (x, 1): (d + 1) x (d + 1), lower triangle. NULL: there is no cache. */
const double *svi_gram_cache_gram(const struct svi_gram_cache *c);

double svi_gram_cache_memory(int64_t n, int d); /* bytes */

#endif
