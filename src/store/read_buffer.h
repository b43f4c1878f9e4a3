/* read_buffer.h: reads a file piece by piece through one buffer; reads bytes in memory through the same
 * calls. Part of the store. */
#ifndef SVI_READ_BUFFER_H
#define SVI_READ_BUFFER_H

#include <stddef.h>

#include "store/state_dir.h"

#define SVI_READ_BUFFER (256 * 1024) /* bytes that one read asks for */

struct svi_read_buffer {
    int fd;                /* -1: `memory` is read */
    uint64_t size;         /* bytes of the file */
    const uint8_t *memory; /* not owned */
    uint8_t *buffer;       /* owned; keeps its capacity from one file to the next */
    size_t capacity;       /* bytes */
    size_t filled;         /* bytes read into it */
    uint64_t start;        /* file offset of its first byte */
    bool lossy;            /* unreadable sectors become zeros; else they are SVS_DAMAGED */
    uint64_t hidden;       /* bytes of the file that became zeros */
    const char *advice;    /* for the text of SVS_DAMAGED, or NULL */
    const char *dir;       /* path, for error texts; NULL: in memory */
    char name[SVI_FILE_NAME];
};

/* Opens a file of the directory and closes the previous one. Until it is closed, svi_state_dir_clear keeps
 * the content of the file. `lossy` and `advice` stay as they are. SVS_IO: also if the file is just being
 * removed. */
svs_code svi_read_buffer_open(struct svi_read_buffer *b, const struct svi_state_dir *dir, const char *name,
                              svs_error *err);
void svi_read_buffer_memory(struct svi_read_buffer *b, const uint8_t *bytes, size_t size, const char *name);
void svi_read_buffer_close(struct svi_read_buffer *b);
void svi_read_buffer_clear(struct svi_read_buffer *b); /* closes and frees */

/* Sets *at to the `need` bytes at `offset`, valid until the next call. They must lie inside the file. The
 * buffer grows to at most need + SVI_READ_BUFFER. SVS_DAMAGED, SVS_IO, SVS_NO_MEMORY. */
svs_code svi_read_buffer_at(struct svi_read_buffer *b, uint64_t offset, size_t need, const uint8_t **at,
                            svs_error *err);

/* Computes the check of `size` bytes at `offset` in pieces: memory does not grow with `size`. */
svs_code svi_read_buffer_check(struct svi_read_buffer *b, uint64_t offset, uint64_t size, uint64_t seed,
                               uint64_t *check, svs_error *err);

#endif
