/* signals.h: SIGINT and SIGTERM, and SIGHUP, as something to wait for; SIGPIPE and SIGXFSZ ignored meanwhile.
 */
#ifndef SVI_SIGNALS_H
#define SVI_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

struct svi_signals {
    int end;    /* readable: SIGINT or SIGTERM came */
    int reload; /* SIGHUP came */
    /* how it was before */
    sigset_t mask;
    struct sigaction interrupt, terminate, hangup, pipe, too_large;
};

/* Before libzmq starts its threads, which inherit the mask. False, with errno: there are no descriptors. */
bool svi_signals_take(struct svi_signals *s);

/* Did it come, once or more since the last call? For one of the two descriptors. */
bool svi_signals_pending(int fd);

/* Signals that came meanwhile were obeyed: they do not strike when they are let through again. */
void svi_signals_give_back(const struct svi_signals *s);

#endif
