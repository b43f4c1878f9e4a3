/* read_buffer.h: reads a file piece by piece through one buffer, or bytes in memory the same way. Part of the
 * store. */
#ifndef SVI_READ_BUFFER_H
#define SVI_READ_BUFFER_H

#include <stddef.h>

#include "store/state_dir.h"

#define SVI_READ_BUFFER (256 * 1024) /* bytes that one read asks for */

struct svi_read_buffer {
    int fd;        /* -1: `memory` */
    uint64_t size; /* of the file */
    const uint8_t *memory;
    uint8_t *buffer; /* keeps its capacity from one file to the next */
    size_t capacity, filled;
    uint64_t start;     /* of what is in `room`, in the file */
    uint64_t hidden;    /* bytes of the file that are such zeros */
    bool lossy;         /* sectors that the disk cannot read are zeros; else they are SVS_DAMAGED */
    const char *advice; /* then: what to do, or NULL */
    const char *dir;    /* path, for error texts; NULL: in memory */
    char name[SVI_FILE_NAME];
};

/* Opens a file of the directory, which svi_state_dir_clear then leaves whole until it is closed; what was
 * open is closed; `lossy` and `advice` stay. SVS_IO: also if it is just being removed. */
svs_code svi_read_buffer_open(struct svi_read_buffer *b, const struct svi_state_dir *dir, const char *name,
                              svs_error *err);
void svi_read_buffer_memory(struct svi_read_buffer *b, const uint8_t *bytes, size_t size, const char *name);
void svi_read_buffer_close(struct svi_read_buffer *b);
void svi_read_buffer_clear(struct svi_read_buffer *b); /* closes and frees */

/* Makes *at point to `need` bytes at `offset`, which lie inside of the file, until the next call. The buffer
 * grows to need + SVI_READ_BUFFER at most. SVS_DAMAGED, SVS_IO, SVS_NO_MEMORY. */
svs_code svi_read_buffer_at(struct svi_read_buffer *b, uint64_t offset, size_t need, const uint8_t **at,
                            svs_error *err);

/* The check of `size` bytes at `offset`, whatever their number. */
svs_code svi_read_buffer_check(struct svi_read_buffer *b, uint64_t offset, uint64_t size, uint64_t seed,
                               uint64_t *check, svs_error *err);

#endif
