#include "base/machine_memory.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define MAX_PATH 4096

/* The number in a file of a cgroup; INFINITY for "max", or when there is no such file. */
static double cgroup_number(const char *folder, const char *name) {
    char path[MAX_PATH], text[64] = "";
    double number = INFINITY;
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path)
        return INFINITY;
    FILE *f = fopen(path, "re");
    if (f && fgets(text, sizeof text, f) && text[0] >= '0' && text[0] <= '9')
        number = strtod(text, NULL);
    if (f)
        fclose(f);
    return number;
}

/* The lowest limit of a cgroup and of its parents. In a container the path may belong to the host's name
 * space and not exist here; the top of the mount is then still the process's own cgroup. */
static double cgroup_lowest(const char *root, const char *mount, const char *cgroup,
                            const char *const *files) {
    char folder[MAX_PATH];
    double lowest = INFINITY;
    const int top = snprintf(folder, sizeof folder, "%s%s", root, mount);
    const int length = snprintf(folder, sizeof folder, "%s%s%s", root, mount, cgroup);
    if (length >= (int)sizeof folder)
        return INFINITY;
    for (int end = length; end >= top; end--) {
        if (end != length && end != top && folder[end] != '/')
            continue;
        folder[end] = '\0';
        for (const char *const *name = files; *name; name++)
            lowest = fmin(lowest, cgroup_number(folder, *name));
    }
    return lowest;
}

/* True when `memory` is one of the controllers, a list separated by commas. */
static bool cgroup_has_memory(const char *controllers) {
    for (const char *c = controllers; c; c = strchr(c, ',')) {
        c += *c == ',';
        if (strcspn(c, ",") == strlen("memory") && strncmp(c, "memory", strlen("memory")) == 0)
            return true;
    }
    return false;
}

double svi_cgroup_memory(const char *root) {
    static const char *const first[] = {"memory.limit_in_bytes", NULL};
    static const char *const second[] = {"memory.max", "memory.high", NULL};
    char path[MAX_PATH], line[MAX_PATH];
    double lowest = INFINITY;
    if ((size_t)snprintf(path, sizeof path, "%s/proc/self/cgroup", root) >= sizeof path)
        return INFINITY;
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) { /* number:controllers:path */
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':'), *cgroup = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!cgroup)
            continue;
        *controllers++ = *cgroup++ = '\0';
        if (controllers[0] == '\0') /* version 2: one hierarchy, whose line names no controllers */
            lowest = fmin(lowest, cgroup_lowest(root, "/sys/fs/cgroup", cgroup, second));
        else if (cgroup_has_memory(controllers))
            lowest = fmin(lowest, cgroup_lowest(root, "/sys/fs/cgroup/memory", cgroup, first));
    }
    if (f)
        fclose(f);
    return lowest;
}

struct svi_machine_memory svi_machine_memory(void) {
    const double pages = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    struct svi_machine_memory m = {pages > 0 ? pages : 0, "this machine has"};
    const double cgroup = svi_cgroup_memory("");
    struct rlimit space;
    if (cgroup < INFINITY && (m.bytes == 0 || cgroup < m.bytes))
        m = (struct svi_machine_memory){cgroup, "the cgroup allows"};
    if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY &&
        (m.bytes == 0 || (double)space.rlim_cur < m.bytes))
        m = (struct svi_machine_memory){(double)space.rlim_cur, "ulimit -v allows"};
    return m;
}
