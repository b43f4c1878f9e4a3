#include "client/feed_source.h"
#include "base/fnv.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHOWN 40   /* bytes of the file's name */
#define HEAD  4096 /* bytes in which its first two lines are looked for */

bool feed_source_replays(const char *const *paths, int count) {
    struct stat s;
    for (int i = 0; i < count; i++)
        if (strcmp(paths[i], "-") == 0 || stat(paths[i], &s) != 0 || !S_ISREG(s.st_mode))
            return false;
    return true;
}

/* The length included. */
static uint64_t feed_source_add(uint64_t h, const char *bytes, size_t length) {
    return (svi_fnv(h, bytes, length) ^ length) * SVI_FNV_PRIME;
}

static size_t two_lines(const char *bytes, size_t length) {
    const char *first = memchr(bytes, '\n', length);
    const char *second = first ? memchr(first + 1, '\n', length - (size_t)(first + 1 - bytes)) : NULL;
    return second ? (size_t)(second + 1 - bytes) : length;
}

static uint64_t add_file(uint64_t h, const char *path) {
    char head[HEAD], whole[PATH_MAX];
    const char *known = realpath(path, whole) ? whole : path;
    FILE *f = fopen(path, "rb");
    size_t length = f ? fread(head, 1, sizeof head, f) : 0;
    if (f)
        fclose(f);
    return feed_source_add(feed_source_add(h, known, strlen(known)), head, two_lines(head, length));
}

void feed_source_name(const char *const *paths, int count, char name[SVS_NAME_MAX + 1]) {
    char host[256] = "";
    const char *slash = strrchr(paths[0], '/'), *file = slash ? slash + 1 : paths[0];
    gethostname(host, sizeof host - 1);
    uint64_t h = feed_source_add(SVI_FNV_SEED, host, strlen(host));
    for (int i = 0; i < count; i++)
        h = add_file(h, paths[i]);
    snprintf(name, SVS_NAME_MAX + 1, "%.*s-%012" PRIx64, SHOWN, file, h & 0xffffffffffffu);
    for (char *c = name; *c; c++)
        if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-", *c))
            *c = '_';
}
