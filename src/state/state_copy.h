/* state_copy.h: a kept state as one file (store/export_file.h), and a state directory made of one. */
#ifndef SVI_STATE_COPY_H
#define SVI_STATE_COPY_H

#include <stdbool.h>
#include <stdio.h>

#include "store/checkpoint_file.h"

struct svi_state_copied {
    uint64_t checkpoint; /* its number: records before it */
    uint64_t epoch;
    char hash[SVI_HASH_TEXT];
    int key_files;
    int64_t bytes; /* of the file */
};

/* Writes a checkpoint and the states of keys that it needs to fd: the one of this number, or the newest sound
 * one. It only reads the directory, in which a process may run. `log` reports damaged ones that are skipped;
 * NULL: quiet. SVS_EMPTY: there is no state; SVS_UNAVAILABLE: not this checkpoint, or none yet; SVS_DAMAGED,
 * SVS_IO, SVS_DISK_FULL, SVS_NO_MEMORY. */
svs_code svi_state_export(const struct svi_state_dir *dir, const uint64_t *number, int fd, FILE *log,
                          struct svi_state_copied *copied, svs_error *err);

/* Makes the state directory `path` of such a file. It holds a state when this has succeeded and not before,
 * and continues bit for bit: its journal begins after the checkpoint. SVS_INVALID: there is a state;
 * SVS_EMPTY, SVS_UNAVAILABLE, SVS_DAMAGED, SVS_IO, SVS_DISK_FULL, SVS_NO_MEMORY. */
svs_code svi_state_import(const char *path, int fd, struct svi_state_copied *copied, svs_error *err);

#endif
