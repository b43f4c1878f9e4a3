/* undo.h: what would take one file back to what is on disk: its size, and the former content of its sectors.
 * Part of writeback.c. */
#ifndef UNDO_H
#define UNDO_H

#include <stdbool.h>
#include <stdint.h>

#define SECTOR 512
#define NONE   (-1)

/* A sector below the synced size that was overwritten or cut off since. */
struct saved {
    int64_t sector;
    uint16_t length;    /* former bytes in it */
    uint16_t low, high; /* bytes written since */
    int next;
    uint8_t former[SECTOR];
};

struct undo {
    int64_t synced, smallest; /* size on disk; smallest since */
    int saved;                /* list, by undo_at */
};

struct saved *undo_at(int i);

/* Before bytes of the open file are written, or it is cut to `size`. False: there is no room for more. */
bool undo_write(struct undo *u, int fd, int64_t offset, int64_t length);
bool undo_truncate(struct undo *u, int fd, int64_t size);

/* Everything is on disk. The size is the caller's. */
void undo_forget(struct undo *u);

/* `u` takes back `newer` as well, which began where u ended; `newer` is used up. */
void undo_merge(struct undo *u, struct undo *newer);

#endif
