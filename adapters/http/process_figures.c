#include "process_figures.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Fields of /proc/self/stat behind the name in parentheses, from 1. */
enum {
    STAT_UTIME = 12,
    STAT_STIME = 13,
    STAT_START = 20,
    STAT_VIRTUAL = 21,
    STAT_RESIDENT = 22,
    STAT_FIELDS
};

/* The first bytes of a file of /proc. False: it cannot be read. */
static bool proc_text(const char *path, char *out, size_t size) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);
    if (fd >= 0)
        close(fd);
    out[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* The name may hold spaces and parentheses: fields begin behind the last one. */
static bool proc_stat(double field[STAT_FIELDS]) {
    char text[1024], *at;
    int used;
    if (!proc_text("/proc/self/stat", text, sizeof text) || !(at = strrchr(text, ')')))
        return false;
    at += strcspn(at, " ");
    at += strspn(at, " ");
    at += strcspn(at, " "); /* the state, a letter */
    for (int i = 2; i < STAT_FIELDS; i++, at += used)
        if (sscanf(at, "%lf%n", &field[i], &used) != 1)
            return false;
    return true;
}

/* When the system started, seconds since 1970. */
static double proc_boot(void) {
    char text[65536], *at;
    double seconds;
    if (!proc_text("/proc/stat", text, sizeof text) || !(at = strstr(text, "\nbtime ")) ||
        sscanf(at, "\nbtime %lf", &seconds) != 1)
        return NAN;
    return seconds;
}

static double process_descriptors(void) {
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    if (!folder)
        return NAN;
    for (const struct dirent *e; (e = readdir(folder));)
        count += e->d_name[0] != '.';
    closedir(folder);
    return count - 1; /* without that of the folder */
}

static double process_descriptors_most(void) {
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) != 0 ? NAN
           : limit.rlim_cur == RLIM_INFINITY     ? INFINITY
                                                 : (double)limit.rlim_cur;
}

static void process_write(struct http_exposition *x, const struct http_family *family, double value) {
    http_exposition_family(x, family);
    if (!isnan(value))
        http_exposition_sample(x, NULL, 0, value);
}

void http_process_figures_write(struct http_exposition *x) {
    static const struct http_family families[] = {
        {NULL, "process_cpu", "seconds", HTTP_COUNTER, false, "User and system time of the adapter"},
        {NULL, "process_resident_memory", "bytes", HTTP_GAUGE, false, "Memory of the adapter in RAM"},
        {NULL, "process_virtual_memory", "bytes", HTTP_GAUGE, false, "Address space of the adapter"},
        {NULL, "process_start_time", "seconds", HTTP_GAUGE, false, "Start of the adapter since 1970"},
        {NULL, "process_open_fds", NULL, HTTP_GAUGE, false, "Open file descriptors of the adapter"},
        {NULL, "process_max_fds", NULL, HTTP_GAUGE, false, "Most file descriptors that it may open"},
    };
    double field[STAT_FIELDS];
    const bool good = proc_stat(field);
    const double ticks = (double)sysconf(_SC_CLK_TCK), page = (double)sysconf(_SC_PAGESIZE);
    const double values[] = {good ? (field[STAT_UTIME] + field[STAT_STIME]) / ticks : NAN,
                             good ? field[STAT_RESIDENT] * page : NAN,
                             good ? field[STAT_VIRTUAL] : NAN,
                             good ? proc_boot() + field[STAT_START] / ticks : NAN,
                             process_descriptors(),
                             process_descriptors_most()};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        process_write(x, &families[i], values[i]);
}
