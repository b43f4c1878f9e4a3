/* state_dir.h: the directory in which a stream's state is kept: one process at a time, every file of ours
 * known by its name, no other file ever touched.
 *
 *   lock                          held by the process that writes (flock), as the directory itself is
 *   journal-<16 hex digits>       segment; the number of its first record
 *   begun-<16 hex digits>         empty: the newest segment that is on disk, so that its loss is noticed
 *   checkpoint-<16 hex digits>    state after that many records (checkpoint_file.h)
 *   keys-<16 hex digits>          states of keys (key_files.h)
 *   *.tmp                         unfinished, or on its way out; removed by svi_state_dir_open when locked
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

/* The layout of all that these files hold: what stands in a header, the sections of a checkpoint and the
 * fields of each, kinds and payloads of the journal's records, records of keys, the settings that are
 * recorded. It is `v` in the header of every checkpoint and segment. Raised by one with whatever changes any
 * of that: a program refuses a state of another layout, older or newer, and leaves it untouched (layout.h).
 * Until 0.1.0 no reader of a former layout is needed; from then on states stay readable. The header
 * of a file keeps for ever what tells its layout: at most 512 bytes (of a segment), the keys format, v, check
 * and (of a segment) chain, which seeds its check. */
#define SVI_STATE_LAYOUT 7

struct svi_state_dir {
    int fd;                            /* of the directory, -1 = not open */
    int lock;                          /* of the lock file, -1 = opened for reading alone */
    char *path;                        /* as given, for error texts */
    struct svi_state_dir_names *names; /* NULL = opened for reading alone */
};

/* `write`: makes the directory if it is not there (0700, its parent must exist) and takes the lock; else it
 * must be there, and a running process is no obstacle. SVS_IO: with the path, the reason and what to do
 * (another process has it: which, by its id in the lock file); SVS_NO_MEMORY. */
svs_code svi_state_dir_open(struct svi_state_dir *dir, const char *path, bool write, svs_error *err);
void svi_state_dir_close(struct svi_state_dir *dir);

/* Numbers of the files named PREFIX-<16 hex>, ascending. *numbers is to be freed with svi_free; NULL with
 * *count 0. */
svs_code svi_state_dir_list(const struct svi_state_dir *dir, const char *prefix, uint64_t **numbers,
                            int *count, svs_error *err);

/* The first and the last of them; zeros where there are none. */
struct svi_state_dir_ends {
    uint64_t first, last;
    bool any;
};
svs_code svi_state_dir_find(const struct svi_state_dir *dir, const char *prefix,
                            struct svi_state_dir_ends *ends, svs_error *err);

/* Is there a state at this path already? */
bool svi_state_dir_begun(const char *path);

/* Makes names durable: fsync of the directory, from any thread. Once that has failed, which names are on disk
 * is not known, and the system would report success the next time: every further call fails as well. Returns
 * 0 or the errno. */
int svi_state_dir_flush(const struct svi_state_dir *dir);
/* The same; SVS_IO. */
svs_code svi_state_dir_sync(const struct svi_state_dir *dir, svs_error *err);

/* "PREFIX-<16 hex>" into name. */
#define SVI_FILE_NAME  48
#define SVI_UNFINISHED ".tmp" /* after it: what is being written, or removed */
char *svi_state_dir_name(char name[SVI_FILE_NAME], const char *prefix, uint64_t number);

/* SVS_IO; a file that is not there is no failure. */
svs_code svi_state_dir_remove(const struct svi_state_dir *dir, const char *prefix, uint64_t number,
                              svs_error *err);
/* A file of it that is open for reading stays whole from here on, until it is closed (svi_state_dir_clear);
 * *s is about it. SVS_IO: also if it is just being removed. */
struct stat;
svs_code svi_state_dir_hold(const struct svi_state_dir *dir, const char *name, int fd, struct stat *s,
                            svs_error *err);

/* Removes these for good, in this order: first their names (each becomes *.tmp), durably, then their content,
 * piece by piece: file systems keep the syncs of other files waiting while they free one. What another
 * process reads (read_buffer.h) stays whole for it. SVS_IO: some may be left, under either name. */
svs_code svi_state_dir_clear(const struct svi_state_dir *dir, const char *prefix, const uint64_t *numbers,
                             int count, svs_error *err);
/* PREFIX-<hex> -> PREFIX-<hex>.damaged */
svs_code svi_state_dir_set_aside(const struct svi_state_dir *dir, const char *prefix, uint64_t number,
                                 svs_error *err);

#endif
