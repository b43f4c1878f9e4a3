/* gram_cache.h: the Gram matrix of the window from refit to refit: rows that left are taken out and rows that
 * came are put in, which costs as much as the change; now and then, and when the coordinates changed, it is
 * rebuilt. */
#ifndef SVI_GRAM_CACHE_H
#define SVI_GRAM_CACHE_H

#include "learner/snapshot.h"

struct svi_gram_cache;

/* Brings it up to the (standardised) snapshot; the first call makes it. `seconds` grows by the time it took.
 * SVS_NO_MEMORY: it is gone, and the next call rebuilds it. */
svs_code svi_gram_cache_update(struct svi_gram_cache **c, const struct svi_snapshot *s, double *seconds,
                               svs_error *err);

/* Feature j has become another, which is 0 in the rows that are in; those of before count as if they had been
 * 0 there. */
void svi_gram_cache_renew(struct svi_gram_cache **c, int j);
void svi_gram_cache_free(struct svi_gram_cache **c);

/* sum z z', z = (x, 1), lower triangle; NULL when there is none. */
const double *svi_gram_cache_gram(const struct svi_gram_cache *c);

double svi_gram_cache_memory(int64_t n, int d); /* bytes */

#endif
