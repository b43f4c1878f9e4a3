#include "client/pipe_to.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fcntl.h>

#include "base/clock.h"
#include "base/fail.h"

/* In a process group of its own, so that it can be ended with its children. Returns its id, -1 on failure. */
static pid_t pipe_to_start(const char *command, int ends[2]) {
    const pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        signal(SIGPIPE, SIG_DFL);
        dup2(ends[0], STDIN_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    if (pid > 0)
        setpgid(pid, pid); /* here too: parent or child may come first */
    return pid;
}

/* Writes while the command reads; stops when it has closed its end or the time is over. */
static void pipe_to_hand_over(int to, const char *bytes, size_t size, double end) {
    struct pollfd item = {to, POLLOUT, 0};
    while (size > 0) {
        const double left = end - svi_monotonic();
        if (left <= 0 || (poll(&item, 1, (int)(1000 * left) + 1) < 0 && errno != EINTR))
            return;
        const ssize_t n = item.revents & POLLOUT ? write(to, bytes, size) : 0;
        if (item.revents & POLLERR || (n < 0 && errno != EAGAIN && errno != EINTR))
            return;
        bytes += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
}

/* Waits for the end; false: the time was over first. */
static bool wait_for(pid_t pid, double end, int *status) {
    const int handle = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd item = {handle, POLLIN, 0};
    int ready = handle >= 0 ? -1 : 1; /* without a handle there is no limit */
    while (ready < 0) {
        const double left = end - svi_monotonic();
        ready = poll(&item, 1, left > 0 ? (int)(1000 * left) + 1 : 0);
        if (ready < 0 && errno != EINTR) /* stopped and continued */
            ready = 1;
    }
    if (handle >= 0)
        close(handle);
    const bool ended = ready > 0;
    if (!ended)
        kill(-pid, SIGKILL);
    while (waitpid(pid, status, 0) < 0 && errno == EINTR)
        ;
    return ended;
}

static svs_code pipe_to_judge(const char *command, bool ended, int status, double seconds, svs_error *err) {
    if (!ended)
        return svi_fail(err, SVS_UNAVAILABLE, "the command '%.100s' took more than %g seconds and was ended",
                        command, seconds);
    if (WIFSIGNALED(status))
        return svi_fail(err, SVS_UNAVAILABLE, "the command '%.100s' was ended by signal %d", command,
                        WTERMSIG(status));
    if (WEXITSTATUS(status) != 0)
        return svi_fail(err, SVS_UNAVAILABLE, "the command '%.100s' failed with exit code %d", command,
                        WEXITSTATUS(status));
    return SVS_OK;
}

svs_code svi_pipe_to(const char *command, const void *bytes, size_t size, double seconds, svs_error *err) {
    int ends[2], status = 0;
    const double end = svi_monotonic() + seconds;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return svi_fail(err, SVS_UNAVAILABLE, "no pipe for '%.100s': %s", command, strerror(errno));
    const pid_t pid = pipe_to_start(command, ends);
    close(ends[0]);
    if (pid > 0) {
        void (*const before)(int) = signal(SIGPIPE, SIG_IGN);
        fcntl(ends[1], F_SETFL, O_NONBLOCK);
        pipe_to_hand_over(ends[1], bytes, size, end);
        signal(SIGPIPE, before);
    }
    close(ends[1]);
    if (pid < 0)
        return svi_fail(err, SVS_UNAVAILABLE, "cannot start '%.100s': %s", command, strerror(errno));
    const bool ended = wait_for(pid, end, &status);
    return pipe_to_judge(command, ended, status, seconds, err);
}
