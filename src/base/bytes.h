/* bytes.h: a growing byte buffer. Zero-initialised is empty. It never shrinks, so a reused buffer stops
 * allocating. */
#ifndef SVI_BYTES_H
#define SVI_BYTES_H

#include <stddef.h>
#include <stdint.h>

#include "svmstream/error.h"

struct svi_bytes {
    uint8_t *data;
    size_t size, capacity;
};

void svi_bytes_clear(struct svi_bytes *b); /* frees */

/* Ensures capacity for n more bytes. SVS_NO_MEMORY: unchanged. */
svs_code svi_bytes_reserve(struct svi_bytes *b, size_t n);

/* Appends n bytes. SVS_NO_MEMORY: unchanged. */
svs_code svi_bytes_append(struct svi_bytes *b, const void *data, size_t n);

#endif
