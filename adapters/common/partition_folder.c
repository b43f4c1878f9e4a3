#include "partition_folder.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "store/state_dir.h"

static const char *const names[PARTITION_FILES] = {[PARTITION_IN] = "in",
                                                   [PARTITION_OUT] = "out",
                                                   [PARTITION_CTL] = "ctl",
                                                   [PARTITION_STATE] = "state",
                                                   [PARTITION_OLD] = "state.old",
                                                   [PARTITION_CHECKPOINT] = "checkpoint",
                                                   [PARTITION_UNFINISHED] = "checkpoint.tmp"};

/* An attacker with write access to the folder could replace the socket of the process by another one. */
static svs_code folder_make(const char *path, svs_error *err) {
    struct stat s;
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return svi_fail(err, SVS_IO, "the folder %.150s cannot be made: %s", path, strerror(errno));
    if (stat(path, &s) != 0)
        return svi_fail(err, SVS_IO, "the folder %.150s cannot be used: %s", path, strerror(errno));
    if (!S_ISDIR(s.st_mode))
        return svi_fail(err, SVS_IO, "%.150s is no folder: name one that this program may use alone", path);
    if (s.st_uid != geteuid() || (s.st_mode & 022) != 0)
        return svi_fail(err, SVS_IO, "the folder %.150s is %s: use another, or change that", path,
                        s.st_uid != geteuid() ? "owned by another user" : "writable by other users");
    return SVS_OK;
}

svs_code partition_folder_open(struct partition_folder *f, const char *folder, int partition,
                               svs_error *err) {
    char path[PARTITION_PATH];
    int length = snprintf(path, sizeof path, "%s/p%d", folder, partition);
    for (int i = 0; i < PARTITION_FILES && length < (int)sizeof path; i++) {
        const int n = snprintf(f->path[i], PARTITION_PATH, "%s/%s", path, names[i]);
        length = n >= PARTITION_PATH ? n : length;
    }
    if (length >= PARTITION_PATH)
        return svi_fail(
            err, SVS_IO,
            "the folder %.150s has a path too long for sockets in it: name one of at most 80 bytes", folder);
    SVI_TRY(folder_make(folder, err));
    return folder_make(path, err);
}

/* Removes a state that has been moved away. Its files are known by their names, and others are left. */
static void folder_remove_old(const struct partition_folder *f) {
    static const char *const kinds[] = {SVI_CHECKPOINT, SVI_KEYS, SVI_BEGUN, SVI_JOURNAL};
    char lock[PARTITION_PATH + 8];
    struct svi_state_dir dir;
    /* Only where it exists: opening for writing would make it. */
    if (access(f->path[PARTITION_OLD], F_OK) != 0 ||
        svi_state_dir_open(&dir, f->path[PARTITION_OLD], true, NULL) != SVS_OK)
        return;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        uint64_t *numbers = NULL;
        int count = 0;
        if (svi_state_dir_list(&dir, kinds[i], &numbers, &count, NULL) == SVS_OK)
            svi_state_dir_clear(&dir, kinds[i], numbers, count, NULL);
        svi_free(numbers);
    }
    snprintf(lock, sizeof lock, "%s/lock", f->path[PARTITION_OLD]);
    (void)unlink(lock);
    svi_state_dir_close(&dir);
    (void)rmdir(f->path[PARTITION_OLD]); /* files set aside (*.damaged) keep it */
}

void partition_folder_tidy(const struct partition_folder *f) {
    static const enum partition_file files[] = {PARTITION_IN, PARTITION_OUT, PARTITION_CTL,
                                                PARTITION_UNFINISHED};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        (void)unlink(f->path[files[i]]);
    folder_remove_old(f);
}

svs_code partition_folder_forget(const struct partition_folder *f, svs_error *err) {
    struct svi_state_dir dir;
    if (access(f->path[PARTITION_STATE], F_OK) != 0)
        return SVS_OK;
    /* Under its lock, so that no process uses it; renamed first, so that a crash leaves no half of it. */
    SVI_TRY(svi_state_dir_open(&dir, f->path[PARTITION_STATE], true, err));
    const int error = rename(f->path[PARTITION_STATE], f->path[PARTITION_OLD]) != 0 ? errno : 0;
    svi_state_dir_close(&dir);
    folder_remove_old(f);
    if (error)
        return svi_fail(err, SVS_IO, "%.150s cannot be moved away: %s", f->path[PARTITION_STATE],
                        strerror(error));
    return SVS_OK;
}

bool partition_folder_served(const struct partition_folder *f) {
    static const enum partition_file files[] = {PARTITION_IN, PARTITION_OUT, PARTITION_CTL};
    struct stat s;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (stat(f->path[files[i]], &s) != 0 || !S_ISSOCK(s.st_mode))
            return false;
    return true;
}
