/* state_dir.h: the directory that holds a stream's state. One process writes at a time. Every file is known
 * by its name, and no other file is ever touched.
 *
 *   lock                          locked (flock) by the process that writes, as is the directory itself
 *   journal-<16 hex digits>       segment; the number of its first record
 *   begun-<16 hex digits>         empty; names the newest segment on disk, so that its loss is noticed
 *   checkpoint-<16 hex digits>    state after that many records (checkpoint_file.h)
 *   keys-<16 hex digits>          states of keys (key_files.h)
 *   *.tmp                         unfinished, or being removed; svi_state_dir_open removes it once locked
 *   *.damaged                     set aside by --accept-loss; never read again */
#ifndef SVI_STATE_DIR_H
#define SVI_STATE_DIR_H

#include <stdbool.h>
#include <stdint.h>

#include "svmstream/error.h"

#define SVI_JOURNAL    "journal"
#define SVI_CHECKPOINT "checkpoint"
#define SVI_BEGUN      "begun"
#define SVI_KEYS       "keys"

/* The layout version of these files: header fields, the sections of a checkpoint and their fields, kinds and
 * payloads of journal records, key records, the recorded settings. It is `v` in the header of every
 * checkpoint and segment, and any change to the above raises it by one. A program refuses a layout that it
 * does not read and leaves the state untouched (layout.h). Release 0.1.0 has layout 13: every later version
 * reads it and the layouts of later releases (tests/recorded/0.1.0). Every future layout must keep the parts
 * of a header that identify it: the keys format, v, check and (in a segment) chain, which seeds the check,
 * within the first 512 bytes (segment). */
#define SVI_STATE_LAYOUT 13

struct svi_state_dir {
    int fd;                            /* of the directory; -1: not open */
    int lock;                          /* of the lock file; -1: opened for reading only */
    char *path;                        /* as given, for error texts; owned */
    struct svi_state_dir_names *names; /* whether names are durable; owned; NULL: opened for reading only */
};

/* `write`: creates the directory if it does not exist (mode 0700; its parent must exist), takes the lock and
 * removes unfinished files. Otherwise the directory must exist, and a running process is no obstacle. SVS_IO
 * with the path, the reason and what to do (if it is in use: the process id from the lock file);
 * SVS_NO_MEMORY. */
svs_code svi_state_dir_open(struct svi_state_dir *dir, const char *path, bool write, svs_error *err);
void svi_state_dir_close(struct svi_state_dir *dir);

/* Lists the numbers of the files named PREFIX-<16 hex>, ascending. The caller frees *numbers with svi_free;
 * it is NULL if *count is 0. SVS_IO, SVS_DISK_FULL (too many open files), SVS_NO_MEMORY. */
svs_code svi_state_dir_list(const struct svi_state_dir *dir, const char *prefix, uint64_t **numbers,
                            int *count, svs_error *err);

/* The lowest and the highest of these numbers; `any` false: there are no such files. */
struct svi_state_dir_ends {
    uint64_t first, last;
    bool any;
};
svs_code svi_state_dir_find(const struct svi_state_dir *dir, const char *prefix,
                            struct svi_state_dir_ends *ends, svs_error *err);

/* Does a journal exist at this path? */
bool svi_state_dir_begun(const char *path);

/* Makes names durable: fsync of the directory, from any thread. After a failure it is unknown which names are
 * on disk, and the system would report success the next time; so every further call fails with the same
 * error. Returns 0 or an errno. */
int svi_state_dir_flush(const struct svi_state_dir *dir);
/* The same, with an error text; SVS_IO. */
svs_code svi_state_dir_sync(const struct svi_state_dir *dir, svs_error *err);

/* Writes "PREFIX-<16 hex>" into name. Returns name. */
#define SVI_FILE_NAME  48
#define SVI_UNFINISHED ".tmp" /* suffix of a file that is being written or removed */
char *svi_state_dir_name(char name[SVI_FILE_NAME], const char *prefix, uint64_t number);

/* Removes a file; its absence is no failure. SVS_IO. */
svs_code svi_state_dir_remove(const struct svi_state_dir *dir, const char *prefix, uint64_t number,
                              svs_error *err);
/* Protects a file that was opened for reading: until fd is closed, svi_state_dir_clear keeps its content. *s:
 * its status. SVS_IO: also if it is just being removed. */
struct stat;
svs_code svi_state_dir_hold(const struct svi_state_dir *dir, const char *name, int fd, struct stat *s,
                            svs_error *err);

/* Removes these files in the given order: first their names (each becomes *.tmp), durably, then their
 * content, piece by piece, because a file system delays the syncs of other files while it frees a large one.
 * A file that another process reads (read_buffer.h) keeps its content for that process. SVS_IO: some files
 * may be left, under either name. */
svs_code svi_state_dir_clear(const struct svi_state_dir *dir, const char *prefix, const uint64_t *numbers,
                             int count, svs_error *err);
/* PREFIX-<hex> -> PREFIX-<hex>.damaged */
svs_code svi_state_dir_set_aside(const struct svi_state_dir *dir, const char *prefix, uint64_t number,
                                 svs_error *err);

#endif
