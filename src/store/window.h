/* window.h: reads a file piece by piece through one buffer, or bytes in memory the same way. Part of the
 * store. */
#ifndef SVI_WINDOW_H
#define SVI_WINDOW_H

#include <stddef.h>

#include "store/folder.h"

#define SVI_WINDOW (256 * 1024) /* bytes that one read asks for */

struct svi_window {
    int fd;        /* -1: `memory` */
    uint64_t size; /* of the file */
    const uint8_t *memory;
    uint8_t *room; /* keeps its capacity from one file to the next */
    size_t capacity, filled;
    uint64_t start;     /* of what is in `room`, in the file */
    uint64_t hidden;    /* bytes of the file that are such zeros */
    bool lossy;         /* sectors that the disk cannot read are zeros; else they are SVS_DAMAGED */
    const char *advice; /* then: what to do, or NULL */
    const struct svi_folder *folder; /* for error texts */
    char name[SVI_FILE_NAME];
};

/* Opens a file of the folder, which svi_folder_clear then leaves whole until it is closed; a window that was
 * open is closed; `lossy` and `advice` stay. SVS_IO: also if it is just being removed. */
svs_code svi_window_open(struct svi_window *w, const struct svi_folder *f, const char *name, svs_error *err);
void svi_window_memory(struct svi_window *w, const uint8_t *bytes, size_t size, const char *name);
void svi_window_close(struct svi_window *w);
void svi_window_clear(struct svi_window *w); /* closes and frees */

/* Makes *at point to `need` bytes at `offset`, which lie inside of the file, until the next call. The buffer
 * grows to need + SVI_WINDOW at most. SVS_DAMAGED, SVS_IO, SVS_NO_MEMORY. */
svs_code svi_window_at(struct svi_window *w, uint64_t offset, size_t need, const uint8_t **at,
                       svs_error *err);

/* The check of `size` bytes at `offset`, whatever their number. */
svs_code svi_window_check(struct svi_window *w, uint64_t offset, uint64_t size, uint64_t seed,
                          uint64_t *check, svs_error *err);

#endif
