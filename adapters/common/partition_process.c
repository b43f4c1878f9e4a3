#include "partition_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fail.h"

#define WATCH 3 /* the end of the pipe that the process holds */

/* Between fork and exec: only async-signal-safe calls, as other threads of this program may have held locks.
 * A failure is written to the pipe as its errno. */
static void process_become(const char *program, char *const *argv, const int *ends, pid_t parent) {
    const struct sigaction plain = {.sa_handler = SIG_DFL};
    sigset_t none;
    int error;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    sigaction(SIGPIPE, &plain, NULL); /* an ignored signal stays ignored through exec */
    setpgid(0, 0);
    /* In this order: each source lies above the targets, see process_above. */
    bool good = dup2(ends[0], STDIN_FILENO) >= 0 && dup2(ends[1], STDOUT_FILENO) >= 0 &&
                dup2(ends[2], WATCH) >= 0 && close_range(WATCH + 1, ~0u, 0) == 0 &&
                prctl(PR_SET_PDEATHSIG, SIGTERM) == 0;
    error = errno;
    /* The parent may have ended before prctl. */
    if (good && getppid() != parent)
        _exit(1);
    if (good) {
        execvp(program, argv);
        error = errno;
    }
    if (write(WATCH, &error, sizeof error) < 0)
        _exit(126);
    _exit(127);
}

/* A duplicate above the descriptors that the process gets, so that none of them overwrites another. */
static int process_above(int fd) {
    return fcntl(fd, F_DUPFD_CLOEXEC, WATCH + 1);
}

svs_code partition_process_start(struct partition_process *p, const char *program, char *const *argv, int in,
                                 int out, svs_error *err) {
    int watch[2] = {-1, -1}, ends[3] = {-1, -1, -1};
    const pid_t parent = getpid();
    const int null = in < 0 ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
    *p = (struct partition_process){0};
    bool good = pipe2(watch, O_CLOEXEC) == 0 && (ends[0] = process_above(in < 0 ? null : in)) >= 0 &&
                (ends[1] = process_above(out < 0 ? STDERR_FILENO : out)) >= 0 &&
                (ends[2] = process_above(watch[1])) >= 0;
    const pid_t id = good ? fork() : -1;
    if (id == 0)
        process_become(program, argv, ends, parent);
    const int error = errno;
    const int used[] = {ends[0], ends[1], ends[2], watch[1], null, id < 0 ? watch[0] : -1};
    for (size_t i = 0; i < sizeof used / sizeof used[0]; i++)
        if (used[i] >= 0)
            close(used[i]);
    if (id < 0)
        return svi_fail(err, SVS_IO, "%.100s cannot be started: %s", program, strerror(error));
    fcntl(watch[0], F_SETFL, O_NONBLOCK);
    p->id = id;
    p->watched = watch[0];
    return SVS_OK;
}

static void process_close(struct partition_process *p) {
    int error = 0;
    if (read(p->watched, &error, sizeof error) == (ssize_t)sizeof error)
        p->failed = error;
    close(p->watched);
    p->id = 0;
}

bool partition_process_ended(struct partition_process *p) {
    if (p->id == 0)
        return true;
    const pid_t ended = waitpid(p->id, &p->status, WNOHANG);
    if (ended == 0 || (ended < 0 && errno == EINTR))
        return false;
    process_close(p);
    return true;
}

void partition_process_signal(const struct partition_process *p, int number) {
    if (p->id > 0)
        kill(p->id, number);
}

void partition_process_kill(struct partition_process *p) {
    if (p->id == 0)
        return;
    kill(p->id, SIGKILL);
    while (waitpid(p->id, &p->status, 0) < 0 && errno == EINTR)
        ;
    process_close(p);
}

char *partition_process_text(const struct partition_process *p, char *out, size_t size) {
    if (p->failed)
        snprintf(out, size, "cannot be run: %s", strerror(p->failed));
    else if (WIFSIGNALED(p->status))
        snprintf(out, size, "was killed by signal %d", WTERMSIG(p->status));
    else
        snprintf(out, size, "ended with code %d", WEXITSTATUS(p->status));
    return out;
}
