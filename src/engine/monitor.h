/* monitor.h: tells when libzmq cut a peer because its message was over ZMQ_MAXMSGSIZE.
 *
 * libzmq 4.3 raises the same DISCONNECTED event for that as for a peer that leaves. What differs is the
 * connection: a peer that left has closed its end and everything it sent was read; a peer that was cut has
 * not, or bytes of its message are still unread. So each connection's descriptor is duplicated when it is
 * accepted, and looked at when libzmq lets go of it. That the duplicate is made in time is ensured by ZAP,
 * libzmq's question whether a peer may come in: it is answered (always yes) after the events that came before
 * it. Rules, in the order they are asked:
 *
 *  - no handshake was completed: not a cut (a port scanner, a browser, a socket of the wrong type);
 *  - bytes are unread: cut;
 *  - the peer's end is closed or reset: it left;
 *  - the peer's end is open: cut - unless several handshakes were under way and it is not sure that this
 * connection's was completed (libzmq does not say whose it was): then only if more of the message arrives
 * within 50 ms.
 *
 * What escapes: a cut peer that closed at once after a message of at most 8 KiB (libzmq has read all of it
 * then; not with max.message above that), and connections beyond the 4096th.
 *
 * One thread of its own, asleep but when peers come and go. */
#ifndef SVI_MONITOR_H
#define SVI_MONITOR_H

#include <stdbool.h>

#include "svmstream/error.h"

#define SVI_PEER_MAX 64 /* bytes of a peer's name with the NUL */

typedef struct svi_monitor svi_monitor;

/* Watches `socket`, which the calling thread owns and must not bind or connect before; one in a context.
 * NULL: SVS_IO, SVS_NO_MEMORY. Owner: the caller; free before the socket is closed. */
svi_monitor *svi_monitor_new(void *context, void *socket, svs_error *err);
void svi_monitor_free(svi_monitor **m);

int svi_monitor_fd(const svi_monitor *m); /* readable when svi_monitor_take has something */

/* Takes the next cut peer's name ("127.0.0.1:40112", "" = not known). False: no more. */
bool svi_monitor_take(svi_monitor *m, char peer[SVI_PEER_MAX]);

#endif
