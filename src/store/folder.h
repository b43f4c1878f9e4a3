/* folder.h: the folder in which a stream's state is kept: one process at a time, every file of ours known by
 * its name, no other file ever touched.
 *
 *   lock                          held by the process that writes (flock)
 *   journal-<16 hex digits>       segment; the number of its first record
 *   checkpoint-<16 hex digits>    state after so many records (files.h)
 *   *.tmp                         unfinished, or on its way out; removed by svi_folder_open when locked
 *   *.damaged                     set aside by --accept-loss; never read again */
#ifndef SVI_FOLDER_H
#define SVI_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

#include "svmstream/error.h"

struct svi_folder {
    int fd;                         /* of the directory, -1 = not open */
    int lock;                       /* of the lock file, -1 = opened for reading alone */
    char *path;                     /* as given, for error texts */
    struct svi_folder_names *names; /* NULL = opened for reading alone */
};

/* `write`: makes the folder if it is not there (0700, its parent must exist) and takes the lock; else it must
 * be there, and a running process is no obstacle. SVS_IO: with the path, the reason and what to do (another
 * process has it: which, by its id in the lock file); SVS_NO_MEMORY. */
svs_code svi_folder_open(struct svi_folder *f, const char *path, bool write, svs_error *err);
void svi_folder_close(struct svi_folder *f);

/* Numbers of the files named PREFIX-<16 hex>, ascending. *numbers is to be freed with svi_free; NULL with
 * *count 0. */
svs_code svi_folder_list(const struct svi_folder *f, const char *prefix, uint64_t **numbers, int *count,
                         svs_error *err);

/* Makes names durable: fsync of the directory, from any thread. Once that has failed, which names are on disk
 * is not known, and the system would report success the next time: every further call fails as well. Returns
 * 0 or the errno. */
int svi_folder_flush(const struct svi_folder *f);
/* The same; SVS_IO. */
svs_code svi_folder_sync(const struct svi_folder *f, svs_error *err);

/* "PREFIX-<16 hex>" into name. */
#define SVI_FILE_NAME  48
#define SVI_UNFINISHED ".tmp" /* behind it: what is being written, or removed */
char *svi_folder_name(char name[SVI_FILE_NAME], const char *prefix, uint64_t number);

/* SVS_IO; a file that is not there is no failure. */
svs_code svi_folder_remove(const struct svi_folder *f, const char *prefix, uint64_t number, svs_error *err);
/* Removes these for good, in this order: first their names (each becomes *.tmp), durably, then their content,
 * piece by piece: file systems keep the syncs of other files waiting while they free one. What another
 * process reads (window.h) stays whole for it. SVS_IO: some may be left, under either name. */
svs_code svi_folder_clear(const struct svi_folder *f, const char *prefix, const uint64_t *numbers, int count,
                          svs_error *err);
/* PREFIX-<hex> -> PREFIX-<hex>.damaged */
svs_code svi_folder_set_aside(const struct svi_folder *f, const char *prefix, uint64_t number,
                              svs_error *err);

/* Bytes free for this process on the folder's file system; -1 = cannot be told. */
int64_t svi_folder_free(const struct svi_folder *f);

#endif
