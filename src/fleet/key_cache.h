/* key_cache.h: bytes by number, on disk, for keys that are out of memory. It is a cache, so nothing is
 * synced; its file is unlinked as soon as it is open and vanishes with the process, however that ends.
 *
 * Used by one thread at a time. */
#ifndef SVI_KEY_CACHE_H
#define SVI_KEY_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "svmstream/error.h"

typedef struct svi_key_cache svi_key_cache;

/* A cache in this directory; NULL: in that of temporary files (TMPDIR, or /tmp). Returns NULL on SVS_IO,
 * SVS_DISK_FULL, SVS_NO_MEMORY. Owner: the caller. */
svi_key_cache *svi_key_cache_new(const char *folder, svs_error *err);
void svi_key_cache_free(svi_key_cache **c);

#define SVI_KEY_CACHE_RESIDENT ((size_t)256 << 20) /* bytes */

/* Bytes of memory that the file takes of the process, at most: it is read through a map, of which no more
 * than SVI_KEY_CACHE_RESIDENT is resident. */
double svi_key_cache_memory(const svi_key_cache *c);

/* One item to put: `size` bytes from `offset` on. */
struct svi_key_bytes {
    uint64_t number;
    size_t offset, size;
};

/* Stores all items or none, replacing older ones with the same numbers. SVS_DISK_FULL, SVS_IO, SVS_NO_MEMORY.
 */
svs_code svi_key_cache_put(svi_key_cache *c, const struct svi_key_bytes *items, int count,
                           const uint8_t *bytes, svs_error *err);

/* Reads an item; *bytes is valid until the next call. SVS_IO: absent, or unreadable; SVS_DAMAGED: not the
 * bytes that were put. */
svs_code svi_key_cache_get(svi_key_cache *c, uint64_t number, const uint8_t **bytes, size_t *size,
                           svs_error *err);

/* Removes an item; its space is reused by later puts. */
void svi_key_cache_drop(svi_key_cache *c, uint64_t number);

#endif
