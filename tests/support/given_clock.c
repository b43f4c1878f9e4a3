/* A library for LD_PRELOAD: the clocks by which samples arrive (CLOCK_REALTIME, CLOCK_BOOTTIME) show what stands in the file that GIVEN_CLOCK
 * names, two doubles: seconds since 1970, and how far the wall clock is off. They stand still until it is written again. Others run. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile const double *given;

__attribute__((constructor)) static void open_given(void) {
    const char *name = getenv("GIVEN_CLOCK");
    const int fd = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    void *at = fd >= 0 ? mmap(NULL, 2 * sizeof(double), PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (at != MAP_FAILED)
        given = at;
    if (fd >= 0)
        close(fd);
}

int clock_gettime(clockid_t id, struct timespec *t) {
    if (!given || (id != CLOCK_REALTIME && id != CLOCK_BOOTTIME))
        return (int)syscall(SYS_clock_gettime, id, t);
    const double now = given[0] + (id == CLOCK_REALTIME ? given[1] : 0), whole = floor(now);
    t->tv_sec = (time_t)whole;
    t->tv_nsec = (long)(1e9 * (now - whole));
    return 0;
}
