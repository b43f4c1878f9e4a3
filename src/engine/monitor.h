/* monitor.h: who comes and goes at the sockets. It answers libzmq's question whether a peer may come in
 * (ZAP), counts the handshakes that fail, keeps to the number of connections, ends those of users whose
 * rights were taken away, and tells when libzmq cut a peer because its message was over ZMQ_MAXMSGSIZE.
 *
 * For the last of these (on the socket `in`):
 *
 * libzmq 4.3 raises the same DISCONNECTED event for that as for a peer that leaves. What differs is the
 * connection: a peer that left has closed its end and everything it sent was read; a peer that was cut has
 * not, or bytes of its message are still unread. So each connection's descriptor is duplicated when it is
 * accepted, and looked at when libzmq lets go of it. That the duplicate is made in time is ensured by ZAP:
 * it is answered after the events that came before it. Rules, in the order they are asked:
 *
 *  - no handshake was completed: not a cut (a port scanner, a browser, a socket of the wrong type);
 *  - bytes are unread: cut, unless the peer reset the connection: it died with replies unread;
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
#include <stdint.h>

#include "engine/authenticator.h"

#define SVI_PEER_MAX 64 /* bytes of a peer's name with the NUL */

typedef struct svi_monitor svi_monitor;

/* One in a context, before any socket is bound. `most`: connections to all sockets together. `auth`: NULL =
 * whoever comes is let in; else it must outlive the monitor. NULL: SVS_IO, SVS_NO_MEMORY. Owner: the caller.
 */
svi_monitor *svi_monitor_new(void *context, svi_authenticator *auth, int most, svs_error *err);

/* Watches a socket ("in", "out" or "ctl"), which the calling thread owns and must not bind or connect before.
 */
svs_code svi_monitor_watch(svi_monitor *m, const char *name, void *socket, svs_error *err);

/* Before the sockets are closed; peers that come are still judged until svi_monitor_free. */
void svi_monitor_unwatch(svi_monitor *m);
void svi_monitor_free(svi_monitor **m);

int svi_monitor_fd(const svi_monitor *m); /* readable when there is something to take */

/* Takes the next cut peer's name ("127.0.0.1:40112", "" = not known). False: no more. */
bool svi_monitor_take(svi_monitor *m, char peer[SVI_PEER_MAX]);

/* What people should know of peers that were refused, and of the allow file: at most one a second. */
bool svi_monitor_notice(svi_monitor *m, svs_error *notice);

int64_t svi_monitor_refused(const svi_monitor *m);   /* handshakes that failed so far */
int64_t svi_monitor_connected(const svi_monitor *m); /* connections now */

/* Ends the connection a moment later, so that a reply may still reach it. */
void svi_monitor_cut(svi_monitor *m, int connection);

/* A subscription came from `user`; does it match no topic? One who has too many of those is cut. */
void svi_monitor_subscribed(svi_monitor *m, int connection, const char *user, bool idle);

#endif
