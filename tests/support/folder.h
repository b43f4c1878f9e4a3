/* folder.h: a folder of its own for a test, removed with all that is in it. */
#ifndef TEST_SUPPORT_FOLDER_H
#define TEST_SUPPORT_FOLDER_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Makes one in memory if there is such a file system (what syncs cost is no matter here), else under TMPDIR
 * or /tmp; returns path, which has room for 200 bytes. */
static inline char *test_folder(char path[200]) {
    const char *where = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : getenv("TMPDIR");
    snprintf(path, 200, "%.150s/svmstream-XXXXXX", where ? where : "/tmp");
    return mkdtemp(path);
}

/* Removes the files of a folder; subfolders are none of ours. */
static inline void test_folder_empty(const char *path) {
    char file[512];
    struct dirent *entry;
    DIR *d = opendir(path);
    while (d && (entry = readdir(d)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
            unlink(file);
        }
    if (d)
        closedir(d);
}

static inline void test_folder_remove(const char *path) {
    test_folder_empty(path);
    rmdir(path);
}

#endif
