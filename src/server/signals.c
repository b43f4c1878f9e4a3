#include "server/signals.h"

#include <errno.h>
#include <pthread.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Threads that libraries started before us (OpenBLAS has some) do not block the signals: what reaches one of
 * them is handed on to the main thread, whose number is the process's, and waits there for signalfd. */
static void signals_hand_on(int number) {
    int kept = errno;
    syscall(SYS_tgkill, getpid(), getpid(), number);
    errno = kept;
}

int svi_signals_take(struct svi_signals *before) {
    const struct sigaction ignore = {.sa_handler = SIG_IGN},
                           hand = {.sa_handler = signals_hand_on, .sa_flags = SA_RESTART};
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGINT);
    sigaddset(&wanted, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &wanted, &before->mask);
    sigaction(SIGPIPE, &ignore, &before->pipe);
    sigaction(SIGXFSZ, &ignore,
              &before->too_large); /* a write beyond the limit fails like one on a full disk */
    sigaction(SIGINT, &hand, &before->interrupt);
    sigaction(SIGTERM, &hand, &before->terminate);
    return signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
}

void svi_signals_give_back(const struct svi_signals *before, int fd) {
    struct signalfd_siginfo taken;
    while (fd >= 0 && read(fd, &taken, sizeof taken) > 0)
        ;
    if (fd >= 0)
        close(fd);
    sigaction(SIGINT, &before->interrupt, NULL);
    sigaction(SIGTERM, &before->terminate, NULL);
    sigaction(SIGPIPE, &before->pipe, NULL);
    sigaction(SIGXFSZ, &before->too_large, NULL);
    pthread_sigmask(SIG_SETMASK, &before->mask, NULL);
}
