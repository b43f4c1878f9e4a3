/* partition_folder.h: the folder of one partition: its paths, and the removal of a state that an earlier run
 * left. Part of partition_child.
 *
 *   in, out, ctl      sockets of the process
 *   state             its state.dir
 *   state.old         a state that is being removed
 *   checkpoint        the last checkpoint that was exported
 *   checkpoint.tmp    one that is being exported */
#ifndef PARTITION_FOLDER_H
#define PARTITION_FOLDER_H

#include <stdbool.h>

#include "svmstream/error.h"

#define PARTITION_PATH 108 /* bytes of a path: a socket's address has no more */

enum partition_file {
    PARTITION_IN,
    PARTITION_OUT,
    PARTITION_CTL,
    PARTITION_STATE,
    PARTITION_OLD,
    PARTITION_CHECKPOINT,
    PARTITION_UNFINISHED,
    PARTITION_FILES
};

struct partition_folder {
    char path[PARTITION_FILES][PARTITION_PATH];
};

/* Makes the two folders, if they are missing, with mode 0700. SVS_IO: also if the path is too long, or others
 * may write there. */
svs_code partition_folder_open(struct partition_folder *f, const char *folder, int partition, svs_error *err);

/* Removes the sockets and unfinished files of an earlier run. */
void partition_folder_tidy(const struct partition_folder *f);

/* Removes the state. SVS_IO: also while another process uses it. */
svs_code partition_folder_forget(const struct partition_folder *f, svs_error *err);

/* Has the process made all its sockets? */
bool partition_folder_served(const struct partition_folder *f);

#endif
