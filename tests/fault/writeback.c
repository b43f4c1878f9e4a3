/* writeback.c: an undo log of unsynced sectors and names. System calls are made directly: the functions of
 * the C library are the ones being intercepted. */
#include "fault/writeback.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fault/undo.h"

#define LAYERS 4 /* syncs of a file at a time */

/* While an fsync is under way, what came before it and what came since are kept apart. */
struct layer {
    uint64_t id;
    struct undo undo;
};

struct file {
    bool used;
    int losses;
    dev_t device;
    ino_t number;
    int fd; /* our own */
    struct undo now;
    struct layer layer[LAYERS]; /* oldest first */
    int layers;
    uint64_t used_at;
};

struct change {
    enum wb_change kind;
    char path[WB_PATH], other[WB_PATH];
    int held;
    uint64_t number; /* counted from 1 */
};

static struct file file_table[WB_FILES];
static struct change change_table[WB_NAMES];
static int changes;
static uint64_t changes_ever, layers_ever;
static int names_losses;
static uint64_t clock_now;

static void give_up(const char *why) {
    static const char name[] = "powercut: ";
    syscall(SYS_write, 2, name, sizeof(name) - 1);
    syscall(SYS_write, 2, why, strlen(why));
    syscall(SYS_write, 2, "\n", (size_t)1);
    _exit(99);
}

/* ---- descriptors of our own, out of the way of the program's */

static int own_descriptor(const char *path, int flags) {
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0);
    if (fd < 0)
        return NONE;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, 500);
    if (high < 0)
        return fd;
    syscall(SYS_close, fd);
    return high;
}

static void close_own(int *fd) {
    if (*fd >= 0)
        syscall(SYS_close, *fd);
    *fd = NONE;
}

static int64_t read_at(int fd, void *bytes, size_t size, int64_t offset) {
    return (int64_t)syscall(SYS_pread64, fd, bytes, size, offset);
}

static void write_at(int fd, const void *bytes, size_t size, int64_t offset) {
    if (syscall(SYS_pwrite64, fd, bytes, size, offset) != (long)size)
        give_up("the state at the power cut could not be written");
}

/* ---- files */

static int64_t size_of(int fd) {
    struct stat s;
    return fstat(fd, &s) == 0 ? (int64_t)s.st_size : 0;
}

static void drop_layers(struct file *f, int count) {
    for (int i = 0; i < count; i++)
        undo_forget(&f->layer[i].undo);
    f->layers -= count;
    memmove(f->layer, f->layer + count, (size_t)f->layers * sizeof *f->layer);
}

static void mark_clean(struct file *f) {
    drop_layers(f, f->layers);
    undo_forget(&f->now);
    f->now.synced = f->now.smallest = size_of(f->fd);
}

static void release(struct file *f) {
    drop_layers(f, f->layers);
    undo_forget(&f->now);
    close_own(&f->fd);
    f->used = false;
}

static bool clean(const struct file *f) {
    return f->layers == 0 && f->now.saved == NONE && f->now.synced == size_of(f->fd);
}

static struct file *lookup(const struct stat *s) {
    for (int i = 0; i < WB_FILES; i++) {
        struct file *f = &file_table[i];
        if (f->used && f->number == s->st_ino && f->device == s->st_dev)
            return f;
    }
    return NULL;
}

/* A free place; else the clean file, else the file, that was not used for longest. */
static struct file *place(void) {
    struct file *oldest = NULL, *oldest_clean = NULL;
    for (int i = 0; i < WB_FILES; i++) {
        struct file *f = &file_table[i];
        if (!f->used)
            return f;
        if (!oldest || f->used_at < oldest->used_at)
            oldest = f;
        if (clean(f) && (!oldest_clean || f->used_at < oldest_clean->used_at))
            oldest_clean = f;
    }
    struct file *f = oldest_clean ? oldest_clean : oldest;
    release(f);
    return f;
}

static struct file *find(int fd) {
    struct stat s;
    if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode))
        return NULL;
    struct file *f = lookup(&s);
    if (f)
        f->used_at = ++clock_now;
    return f;
}

void wb_follow(int fd) {
    struct stat s;
    if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode) || lookup(&s))
        return;
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int own = own_descriptor(path, O_RDWR);
    if (own == NONE)
        give_up("a file of the folder cannot be opened a second time (descriptors used up?)");
    struct file *f = place();
    *f = (struct file){.used = true, .device = s.st_dev, .number = s.st_ino, .fd = own};
    f->now = (struct undo){(int64_t)s.st_size, (int64_t)s.st_size, NONE};
    f->used_at = ++clock_now;
}

void wb_before_write(int fd, int64_t offset, int64_t length) {
    struct file *f = find(fd);
    if (f && !undo_write(&f->now, f->fd, offset, length))
        give_up("too many unsynced sectors (WB_SECTORS)");
}

void wb_before_truncate(int fd, int64_t size) {
    struct file *f = find(fd);
    if (f && !undo_truncate(&f->now, f->fd, size))
        give_up("too many unsynced sectors (WB_SECTORS)");
}

/* ---- syncs */

struct wb_mark wb_sync_begin(int fd) {
    struct wb_mark mark = {.names = changes_ever};
    struct file *f = find(fd);
    if (!f || f->layers == LAYERS)
        return mark;
    mark.layer = ++layers_ever;
    f->layer[f->layers++] = (struct layer){mark.layer, f->now};
    f->now = (struct undo){size_of(f->fd), size_of(f->fd), NONE};
    return mark;
}

/* What came before an fsync that ended is durable, also what an earlier one is still at work on. */
void wb_synced(int fd, const struct wb_mark *mark) {
    struct file *f = find(fd);
    if (!f || f->losses > 0)
        return;
    if (mark->layer == 0)
        mark_clean(f);
    for (int i = 0; i < f->layers; i++)
        if (f->layer[i].id == mark->layer) {
            drop_layers(f, i + 1);
            return;
        }
}

void wb_lost(int fd) {
    struct file *f = find(fd);
    if (f)
        f->losses++;
    else
        names_losses++;
}

int wb_losses(int fd) {
    struct file *f = find(fd);
    return f ? f->losses : names_losses;
}

/* ---- names */

static bool is_parent(const char *folder, const char *path) {
    size_t n = strlen(folder);
    return strncmp(folder, path, n) == 0 && path[n] == '/' && !strchr(path + n + 1, '/');
}

static void drop_changes(int count) {
    for (int i = 0; i < count; i++)
        close_own(&change_table[i].held);
    memmove(change_table, change_table + count, (size_t)(changes - count) * sizeof *change_table);
    changes -= count;
}

void wb_synced_folder(const char *path, const struct wb_mark *mark) {
    int last = NONE;
    for (int i = 0; i < changes; i++)
        if (change_table[i].number <= mark->names &&
            (is_parent(path, change_table[i].path) || is_parent(path, change_table[i].other)))
            last = i;
    if (names_losses == 0)
        drop_changes(last + 1);
}

int wb_hold(const char *path) {
    struct stat s;
    if (lstat(path, &s) != 0 || !S_ISREG(s.st_mode))
        return NONE;
    int fd = own_descriptor(path, O_RDWR);
    if (fd == NONE)
        give_up("a file that is to be removed cannot be kept (descriptors used up?)");
    return fd;
}

void wb_changed(enum wb_change kind, const char *path, const char *other, int held) {
    if (changes == WB_NAMES)
        drop_changes(1);
    struct change *c = &change_table[changes++];
    c->kind = kind;
    c->held = held;
    c->number = ++changes_ever;
    snprintf(c->path, sizeof c->path, "%s", path);
    snprintf(c->other, sizeof c->other, "%s", other ? other : "");
}

/* ---- the cut */

/* An fsync that is under way has made nothing durable. */
static void merge_layers(struct file *f) {
    while (f->layers > 0) {
        struct undo newer = f->now;
        f->now = f->layer[--f->layers].undo;
        undo_merge(&f->now, &newer);
    }
}

struct lot {
    uint64_t state;
    uint32_t keep, revert; /* of 100; the rest is garbage */
    int64_t one, turn;     /* the only sector that suffers, if not NONE; sectors so far */
};

static uint64_t draw(struct lot *l) { /* splitmix64 */
    uint64_t z = l->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* A number from low to high, both included. */
static int64_t between(struct lot *l, int64_t low, int64_t high) {
    return low + (int64_t)(draw(l) % (uint64_t)(high - low + 1));
}

/* An upper bound. */
static int64_t unsynced_sectors(const struct file *f) {
    int64_t grown = size_of(f->fd) / SECTOR - f->now.synced / SECTOR + 1, count = grown > 0 ? grown : 0;
    for (int i = f->now.saved; i != NONE; i = undo_at(i)->next)
        count++;
    return count;
}

/* Each cut has a temper: most sectors kept, most lost, even, only garbage; or one sector alone suffers, which
 * is what is hardest to see. */
static void choose_temper(struct lot *l) {
    static const uint8_t temper[][2] = {{34, 33}, {90, 5}, {5, 90}, {80, 0}, {0, 0}, {50, 50}};
    const uint8_t *t = temper[draw(l) % (sizeof temper / sizeof *temper)];
    l->keep = t[0];
    l->revert = t[1];
    l->one = NONE;
    if (draw(l) % 3 != 0)
        return;
    int64_t count = 0;
    for (int i = 0; i < WB_FILES; i++)
        count += file_table[i].used && !clean(&file_table[i]) ? unsynced_sectors(&file_table[i]) : 0;
    l->one = count ? between(l, 0, count - 1) : NONE;
}

enum fate { KEPT, REVERTED, GARBLED };

static enum fate choose_fate(struct lot *l, struct wb_cut *cut) {
    uint32_t p = (uint32_t)(draw(l) % 100);
    enum fate fate = p < l->keep ? KEPT : p < l->keep + l->revert ? REVERTED : GARBLED;
    if (l->one >= 0) {
        l->turn++;
        fate = l->turn - 1 != l->one ? KEPT : p < 30 ? REVERTED : GARBLED;
    }
    *(fate == KEPT ? &cut->kept : fate == REVERTED ? &cut->reverted : &cut->garbled) += 1;
    return fate;
}

/* Noise, ones, or another sector of the same file: old records are the hardest to tell from new ones. */
static void make_garbage(const struct file *f, struct lot *l, int64_t size, uint8_t out[SECTOR]) {
    uint64_t kind = draw(l) % 3;
    memset(out, 0xff, SECTOR);
    if (kind == 0)
        for (size_t i = 0; i < SECTOR; i++)
            out[i] = (uint8_t)(draw(l) >> 56);
    if (kind == 1 && size > 0)
        read_at(f->fd, out, SECTOR, between(l, 0, (size - 1) / SECTOR) * SECTOR);
}

/* `present`: the size before the cut; what lies behind it was cut off, and comes back if the size does. */
static void cut_saved(const struct file *f, const struct saved *s, int64_t present, struct lot *l,
                      struct wb_cut *cut) {
    uint8_t garbage[SECTOR];
    int64_t at = s->sector * SECTOR;
    enum fate fate = choose_fate(l, cut);
    if (fate == REVERTED || at >= present) {
        uint8_t former[SECTOR] = {0};
        memcpy(former, s->former, s->length);
        int64_t capacity = present > at + s->length ? present - at : s->length;
        write_at(f->fd, former, (size_t)(capacity < SECTOR ? capacity : SECTOR), at);
    } else if (fate == GARBLED && s->low < s->high) {
        make_garbage(f, l, present, garbage);
        write_at(f->fd, garbage, (size_t)(s->high - s->low), at + s->low);
    }
}

/* Sectors behind the synced end: their former content is nothing. */
static void cut_grown(const struct file *f, int64_t present, struct lot *l, struct wb_cut *cut) {
    static const uint8_t zeros[SECTOR];
    uint8_t garbage[SECTOR];
    for (int64_t s = (f->now.synced + SECTOR - 1) / SECTOR; s * SECTOR < present; s++) {
        int64_t left = present - s * SECTOR;
        size_t length = (size_t)(left < SECTOR ? left : SECTOR);
        enum fate fate = choose_fate(l, cut);
        if (fate == GARBLED)
            make_garbage(f, l, present, garbage);
        if (fate != KEPT)
            write_at(f->fd, fate == GARBLED ? garbage : zeros, length, s * SECTOR);
    }
}

static void cut_file(const struct file *f, struct lot *l, struct wb_cut *cut) {
    int64_t present = size_of(f->fd), high = present > f->now.synced ? present : f->now.synced;
    uint64_t kind = l->one >= 0 ? 2 : draw(l) % 4;
    int64_t size = kind == 0 ? f->now.synced : kind == 1 ? between(l, f->now.smallest, high) : present;
    cut_grown(f, present, l, cut);
    for (int i = f->now.saved; i != NONE; i = undo_at(i)->next)
        cut_saved(f, undo_at(i), present, l, cut);
    cut->sizes += size != present;
    if (syscall(SYS_ftruncate, f->fd, size) != 0)
        give_up("the state at the power cut could not be written (size)");
}

static void bring_back(const char *path, int held) {
    static uint8_t bytes[65536];
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0)
        give_up("a removed file could not be brought back");
    int64_t at = 0, n;
    while ((n = read_at(held, bytes, sizeof bytes, at)) > 0) {
        write_at(fd, bytes, (size_t)n, at);
        at += n;
    }
    syscall(SYS_close, fd);
}

static void undo(const struct change *c) {
    switch (c->kind) {
    case WB_CREATED:
        syscall(SYS_unlinkat, AT_FDCWD, c->path, 0);
        return;
    case WB_FOLDER_MADE:
        syscall(SYS_unlinkat, AT_FDCWD, c->path, AT_REMOVEDIR);
        return;
    case WB_FOLDER_REMOVED:
        syscall(SYS_mkdirat, AT_FDCWD, c->path, 0700);
        return;
    case WB_RENAMED:
        syscall(SYS_renameat2, AT_FDCWD, c->other, AT_FDCWD, c->path, 0);
        if (c->held != NONE)
            bring_back(c->other, c->held);
        return;
    case WB_REMOVED:
        if (c->held != NONE)
            bring_back(c->path, c->held);
        return;
    }
}

/* POSIX promises no order among names: of the removals that happened some are forgotten all the same. */
static int bring_some_back(struct lot *l) {
    struct stat s;
    int count = 0;
    for (int i = changes - 1; i >= 0 && l->one < 0; i--) {
        const struct change *c = &change_table[i];
        if (c->kind != WB_REMOVED || draw(l) % 2 || lstat(c->path, &s) == 0)
            continue;
        undo(c);
        count++;
    }
    return count;
}

struct wb_cut wb_cut(uint64_t seed) {
    struct wb_cut cut = {0};
    struct lot lot = {.state = seed};
    for (int i = 0; i < WB_FILES; i++)
        if (file_table[i].used)
            merge_layers(&file_table[i]);
    choose_temper(&lot);
    for (int i = 0; i < WB_FILES; i++)
        if (file_table[i].used && !clean(&file_table[i]))
            cut_file(&file_table[i], &lot, &cut);
    uint64_t kind = lot.one >= 0 ? 1 : draw(&lot) % 4;
    int happened = kind == 0 ? 0 : kind == 1 ? changes : (int)between(&lot, 0, changes);
    cut.undone = changes - happened;
    while (changes > happened)
        undo(&change_table[--changes]);
    cut.undone += bring_some_back(&lot);
    return cut;
}
