/* Signals as descriptors: blocked in all threads and read through signalfd, so that they are handled between
 * two turns of the loop and never in the middle of one. */
#include "server/signals.h"

#include <errno.h>
#include <pthread.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Threads that libraries started before this (OpenBLAS has some) do not block the signals. A signal delivered
 * to one of them is forwarded to the main thread, whose number is the process's; there it stays pending for
 * signalfd. */
static void signals_hand_on(int number) {
    int kept = errno;
    syscall(SYS_tgkill, getpid(), getpid(), number);
    errno = kept;
}

static int descriptor_of(int one, int other) {
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, one);
    sigaddset(&wanted, other);
    return signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
}

bool svi_signals_take(struct svi_signals *s) {
    const struct sigaction ignore = {.sa_handler = SIG_IGN},
                           hand = {.sa_handler = signals_hand_on, .sa_flags = SA_RESTART};
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGINT);
    sigaddset(&wanted, SIGTERM);
    sigaddset(&wanted, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &wanted, &s->mask);
    sigaction(SIGPIPE, &ignore, &s->pipe);
    /* a write beyond the limit then fails like one on a full disk */
    sigaction(SIGXFSZ, &ignore, &s->too_large);
    sigaction(SIGINT, &hand, &s->interrupt);
    sigaction(SIGTERM, &hand, &s->terminate);
    sigaction(SIGHUP, &hand, &s->hangup);
    s->end = descriptor_of(SIGINT, SIGTERM);
    s->reload = descriptor_of(SIGHUP, SIGHUP);
    return s->end >= 0 && s->reload >= 0;
}

bool svi_signals_pending(int fd) {
    struct signalfd_siginfo taken;
    bool arrived = false;
    while (fd >= 0 && read(fd, &taken, sizeof taken) > 0)
        arrived = true;
    return arrived;
}

void svi_signals_give_back(const struct svi_signals *s) {
    const int kept = errno;
    for (int i = 0; i < 2; i++) {
        const int fd = i ? s->reload : s->end;
        /* Signals already acted upon are consumed here; unblocking would otherwise deliver them. */
        (void)svi_signals_pending(fd);
        if (fd >= 0)
            close(fd);
    }
    sigaction(SIGINT, &s->interrupt, NULL);
    sigaction(SIGTERM, &s->terminate, NULL);
    sigaction(SIGHUP, &s->hangup, NULL);
    sigaction(SIGPIPE, &s->pipe, NULL);
    sigaction(SIGXFSZ, &s->too_large, NULL);
    pthread_sigmask(SIG_SETMASK, &s->mask, NULL);
    errno = kept;
}
