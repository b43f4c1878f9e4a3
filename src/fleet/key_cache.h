/* key_cache.h: bytes by number, on disk: where keys are that are out of memory. It is a cache: its file has
 * no name any more once it is open, so that it goes with the process, however that ends, and nothing is
 * synced.
 *
 * Used by one thread at a time. */
#ifndef SVI_KEY_CACHE_H
#define SVI_KEY_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "svmstream/error.h"

typedef struct svi_key_cache svi_key_cache;

/* In this folder; NULL: in that of temporary files (TMPDIR, or /tmp). NULL: SVS_IO, SVS_DISK_FULL,
 * SVS_NO_MEMORY. */
svi_key_cache *svi_key_cache_new(const char *folder, svs_error *err);
void svi_key_cache_free(svi_key_cache **c);

/* What is put: `size` bytes from `offset` on. */
struct svi_key_bytes {
    uint64_t number;
    size_t offset, size;
};

/* Puts all or none, in the place of what there is of these numbers. SVS_DISK_FULL, SVS_IO, SVS_NO_MEMORY. */
svs_code svi_key_cache_put(svi_key_cache *c, const struct svi_key_bytes *items, int count,
                           const uint8_t *bytes, svs_error *err);

/* Valid until the next call. SVS_IO: it is not there, or cannot be read; SVS_DAMAGED: it is not what was put.
 */
svs_code svi_key_cache_get(svi_key_cache *c, uint64_t number, const uint8_t **bytes, size_t *size,
                           svs_error *err);

/* This one is not needed any more: its room is used again from the next put on. */
void svi_key_cache_drop(svi_key_cache *c, uint64_t number);

#endif
