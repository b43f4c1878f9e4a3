/* peer_watch.h: the peers that come and go at the sockets. It answers libzmq's question whether a peer may
 * connect (ZAP), counts the handshakes that fail, keeps the limit on connections, closes those of keys whose
 * rights were taken away, and reports when libzmq cut a peer because its message was over ZMQ_MAXMSGSIZE.
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
 *    connection's was completed (libzmq does not say whose it was): then only if more of the message arrives
 *    within 50 ms.
 *
 * What escapes: a cut peer that closed at once after a message of at most 8 KiB (libzmq has read all of it
 * then; not with max.message above that), and connections beyond the 4096th.
 *
 * One thread of its own, asleep except when peers come and go. */
#ifndef SVI_PEER_WATCH_H
#define SVI_PEER_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "net/authenticator.h"

#define SVI_PEER_MAX 64 /* bytes of a peer's name with the NUL */

typedef struct svi_peer_watch svi_peer_watch;

/* One in a context, before any socket is bound. `limit`: connections to all sockets together. `auth`: NULL =
 * every peer is let in; else it must outlive the watch. NULL: SVS_IO, SVS_NO_MEMORY. Owner: the caller. */
svi_peer_watch *svi_peer_watch_new(void *context, svi_authenticator *auth, int limit, svs_error *err);

/* Watches a socket ("in", "out" or "ctl"), which the calling thread owns and must not bind or connect before.
 */
svs_code svi_peer_watch_add(svi_peer_watch *w, const char *name, void *socket, svs_error *err);

/* Before the sockets are closed; peers that connect are still judged until svi_peer_watch_free. */
void svi_peer_watch_leave(svi_peer_watch *w);
void svi_peer_watch_free(svi_peer_watch **w);

int svi_peer_watch_fd(const svi_peer_watch *w); /* readable when one of the next two has something */

/* Takes the next cut peer's address ("127.0.0.1:40112", "" = not known). False: no more. */
bool svi_peer_watch_next_cut(svi_peer_watch *w, char peer[SVI_PEER_MAX]);

/* Takes a notice on peers that were refused, or on the allow file: at most one a second. */
bool svi_peer_watch_next_notice(svi_peer_watch *w, svs_error *notice);

int64_t svi_peer_watch_refused(const svi_peer_watch *w);   /* handshakes that failed so far */
int64_t svi_peer_watch_connected(const svi_peer_watch *w); /* connections now */

/* Closes the connection a moment later, so that a reply may still reach the peer. */
void svi_peer_watch_cut(svi_peer_watch *w, int connection);

/* A subscription came from `user`; does it match no topic? A peer with too many of those is cut. */
void svi_peer_watch_subscribed(svi_peer_watch *w, int connection, const char *user, bool idle);

#endif
