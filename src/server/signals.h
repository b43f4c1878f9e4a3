/* signals.h: SIGINT and SIGTERM as something to wait for; SIGPIPE and SIGXFSZ ignored meanwhile. */
#ifndef SVI_SIGNALS_H
#define SVI_SIGNALS_H

#include <signal.h>

/* How it was before. */
struct svi_signals {
    sigset_t mask;
    struct sigaction interrupt, terminate, pipe, too_large;
};

/* Before libzmq starts its threads, which inherit the mask. Returns the signalfd, -1 with errno. */
int svi_signals_take(struct svi_signals *before);

/* Signals that came meanwhile were obeyed: they do not strike when they are let through again. */
void svi_signals_give_back(const struct svi_signals *before, int fd);

#endif
