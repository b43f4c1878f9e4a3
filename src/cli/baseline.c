#include "cli/baseline.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROBE_SECONDS 10 /* it ends at once by itself; this is for a machine in trouble */

static double own_resident(void) {
    long pages = 0, total = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    if (!statm)
        return 0;
    if (fscanf(statm, "%ld %ld", &total, &pages) != 2)
        pages = 0;
    fclose(statm);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static void become_probe(void) {
    static const char *const line[] = {"svmstream",
                                       "run",
                                       "--quiet",
                                       "--in",
                                       "-",
                                       "--in.format",
                                       "libsvm",
                                       "--out",
                                       "tcp://127.0.0.1:*",
                                       "--ctl",
                                       "tcp://127.0.0.1:*",
                                       "--window",
                                       "1",
                                       "--labels.max",
                                       "1",
                                       "--max.features",
                                       "1",
                                       "--max.classes",
                                       "2",
                                       "--max.sources",
                                       "1",
                                       NULL};
    int nothing = open("/dev/null", O_RDWR);
    for (int i = 0; i < 3; i++)
        if (nothing < 0 || dup2(nothing, i) < 0)
            return;
    alarm(PROBE_SECONDS); /* survives exec */
    execv("/proc/self/exe", (char *const *)line);
}

double cli_baseline(void) {
    struct rusage used;
    int status;
    pid_t child = fork();
    if (child == 0) {
        become_probe();
        _exit(127);
    }
    bool ran = child > 0 && wait4(child, &status, 0, &used) == child && WIFEXITED(status) &&
               WEXITSTATUS(status) == 0;
    return ran ? (double)used.ru_maxrss * 1024 : own_resident();
}
