/* undo.c: saved sectors of all files in one table. System calls are made directly. */
#include "fault/undo.h"

#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fault/writeback.h"

static struct saved table[WB_SECTORS];
static int used, unused = NONE;

struct saved *undo_at(int i) {
    return &table[i];
}

static void give_back(int i) {
    table[i].next = unused;
    unused = i;
}

void undo_forget(struct undo *u) {
    for (int i = u->saved, next; i != NONE; i = next) {
        next = table[i].next;
        give_back(i);
    }
    u->saved = NONE;
}

static struct saved *find(const struct undo *u, int64_t sector) {
    for (int i = u->saved; i != NONE; i = table[i].next)
        if (table[i].sector == sector)
            return &table[i];
    return NULL;
}

static struct saved *save(struct undo *u, int fd, int64_t sector) {
    struct saved *known = find(u, sector);
    int i = unused;
    if (known)
        return known;
    if (i != NONE)
        unused = table[i].next;
    else if (used < WB_SECTORS)
        i = used++;
    else
        return NULL;
    struct saved *s = &table[i];
    const int64_t length = u->synced - sector * SECTOR;
    *s = (struct saved){.sector = sector, .low = SECTOR, .next = u->saved};
    s->length = (uint16_t)(length < SECTOR ? length : SECTOR);
    syscall(SYS_pread64, fd, s->former, (size_t)s->length, sector * SECTOR);
    u->saved = i;
    return s;
}

bool undo_write(struct undo *u, int fd, int64_t offset, int64_t length) {
    for (int64_t n = offset / SECTOR; n * SECTOR < offset + length && n * SECTOR < u->synced; n++) {
        struct saved *s = save(u, fd, n);
        if (!s)
            return false;
        int64_t low = offset - n * SECTOR, high = offset + length - n * SECTOR;
        low = low < 0 ? 0 : low;
        high = high > SECTOR ? SECTOR : high;
        s->low = low < s->low ? (uint16_t)low : s->low;
        s->high = high > s->high ? (uint16_t)high : s->high;
    }
    return true;
}

bool undo_truncate(struct undo *u, int fd, int64_t size) {
    for (int64_t n = size / SECTOR; n * SECTOR < u->synced; n++)
        if (!save(u, fd, n))
            return false;
    if (size < u->smallest)
        u->smallest = size;
    return true;
}

static void merge_sector(struct undo *u, int i) {
    struct saved *s = &table[i], *known = find(u, s->sector);
    const int64_t length = u->synced - s->sector * SECTOR;
    if (known) {
        known->low = s->low < known->low ? s->low : known->low;
        known->high = s->high > known->high ? s->high : known->high;
    }
    if (known || length <= 0) { /* what it was is known, or it is new as a whole */
        give_back(i);
        return;
    }
    s->length = length < s->length ? (uint16_t)length : s->length;
    s->next = u->saved;
    u->saved = i;
}

void undo_merge(struct undo *u, struct undo *newer) {
    u->smallest = newer->smallest < u->smallest ? newer->smallest : u->smallest;
    for (int i = newer->saved, next; i != NONE; i = next) {
        next = table[i].next;
        merge_sector(u, i);
    }
    newer->saved = NONE;
}
