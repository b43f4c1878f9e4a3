/* signals.h: SIGINT, SIGTERM and SIGHUP as descriptors to poll; SIGPIPE and SIGXFSZ are ignored meanwhile. */
#ifndef SVI_SIGNALS_H
#define SVI_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

struct svi_signals {
    int end;    /* readable once SIGINT or SIGTERM has arrived */
    int reload; /* readable once SIGHUP has arrived */
    /* the previous state, restored by svi_signals_give_back */
    sigset_t mask;
    struct sigaction interrupt, terminate, hangup, pipe, too_large;
};

/* Must run before libzmq starts its threads, which inherit the mask. False, with errno: no descriptors. */
bool svi_signals_take(struct svi_signals *s);

/* Has a signal of this descriptor arrived since the last call, once or more? */
bool svi_signals_pending(int fd);

/* Restores masks and handlers. Signals that arrived meanwhile were acted upon and are not delivered again. */
void svi_signals_give_back(const struct svi_signals *s);

#endif
