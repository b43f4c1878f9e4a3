/* writeback.h: what a disk would hold of the files of one folder if the power failed now.
 *
 * The page cache of the running system plays the disk's own cache: everything is really written, and what
 * would be needed to take it back is remembered until it is synced. The power cut then decides for each file
 * by lot
 *
 *   sectors of 512 bytes written since its last fsync: kept, as they were before (behind the former end:
 *           zeros), or garbage (noise, ones, another sector of the file). Bytes that were synced and not
 *           written again never suffer: a disk that tears those is beyond what a log that appends can survive
 *   its size: the synced one, the present one, or one between
 *   names of files created, renamed, removed, of folders made: file systems write these down in order: so a
 *           random number of the oldest since the last fsync of a folder happened, and the later ones did not
 *
 * An fsync of a file does not make its name durable; an fsync of a folder makes durable what was done in it
 * and everything before that. An fsync takes time: what it makes durable is what was there when it began, and
 * it is durable when it has ended. Bounded: the oldest of more than WB_FILES files or WB_NAMES names count as
 * written back. Not seen: stores through shared mappings, stdio. One caller at a time. Allocates nothing;
 * errno is kept by the caller. */
#ifndef WRITEBACK_H
#define WRITEBACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define WB_FILES   192   /* tracked at once; each costs one descriptor */
#define WB_NAMES   192   /* changes of names not durable; each costs a descriptor at most */
#define WB_SECTORS 65536 /* overwritten and not synced, over all files */
#define WB_PATH    1024

enum wb_change { WB_CREATED, WB_RENAMED, WB_REMOVED, WB_FOLDER_MADE, WB_FOLDER_REMOVED };

/* What a cut did. */
struct wb_cut {
    int kept, reverted, garbled; /* sectors */
    int sizes;                   /* files whose size is not the present one */
    int undone;                  /* changes of names */
};

/* Follows the open file from here on, if it is a regular one; call before it changes. */
void wb_follow(int fd);

/* Before bytes [offset, offset + length) are written, or the file is cut to `size`. */
void wb_before_write(int fd, int64_t offset, int64_t length);
void wb_before_truncate(int fd, int64_t size);

/* What an fsync that begins now will have made durable. */
struct wb_mark {
    uint64_t layer; /* 0 = nothing, or there were too many at a time: what is there at the end */
    uint64_t names;
};
struct wb_mark wb_sync_begin(int fd);

/* The fsync has ended: of the file, of the folder of this path. */
void wb_synced(int fd, const struct wb_mark *mark);
void wb_synced_folder(const char *path, const struct wb_mark *mark);

/* After an fsync that failed: what was unsynced in the file (folder: fd of a folder) is marked clean although
 * it never reached the disk, so later syncs do not help it either. */
void wb_lost(int fd);

/* How often that happened to the file (to any folder). Every descriptor that was open then is to be told. */
int wb_losses(int fd);

/* A descriptor that keeps the content of what the name stands for, or -1: before it is removed or replaced.
 */
int wb_hold(const char *path);

/* After a change of names; `other` is the new name of a rename; takes `held` over. */
void wb_changed(enum wb_change change, const char *path, const char *other, int held);

/* Cuts the power. The same seed and history give the same disk. */
struct wb_cut wb_cut(uint64_t seed);

#endif
