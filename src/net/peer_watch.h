/* peer_watch.h: the peers that come and go at the sockets. It answers libzmq's question whether a peer may
 * connect (ZAP), counts the handshakes that fail, keeps the limit on connections, closes those of keys whose
 * rights were taken away, and reports the peers whose connection was ended because they sent too much
 * (flood_guard.h, which it arms).
 *
 * One in a process at a time: the flood guard is the process's. One thread of its own, asleep except when
 * peers come and go. */
#ifndef SVI_PEER_WATCH_H
#define SVI_PEER_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "net/authenticator.h"
#include "net/flood_guard.h"

#define SVI_PEER_MAX 64 /* bytes of a peer's name with the NUL */

typedef struct svi_peer_watch svi_peer_watch;

/* A peer that was cut. */
struct svi_cut {
    char peer[SVI_PEER_MAX]; /* "127.0.0.1:40112", "" = not known, as with ipc */
    enum svi_role socket;
    enum svi_flood why;
};

/* One in a context, before any socket is bound. `limit`: connections to all sockets together. `auth`: NULL =
 * every peer is let in; else it must outlive the watch. NULL: SVS_IO, SVS_NO_MEMORY. Owner: the caller. */
svi_peer_watch *svi_peer_watch_new(void *context, svi_authenticator *auth, int limit, svs_error *err);

/* Connections that there may be, by the limit that was asked for or by the descriptors that were granted. */
int svi_peer_watch_limit(const svi_peer_watch *w, int *descriptors);

/* Watches a socket ("in", "out" or "ctl"), which the calling thread owns and must not bind or connect before.
 */
svs_code svi_peer_watch_add(svi_peer_watch *w, const char *name, void *socket, svs_error *err);

/* Before the sockets are closed; peers that connect are still judged until svi_peer_watch_free. */
void svi_peer_watch_leave(svi_peer_watch *w);
void svi_peer_watch_free(svi_peer_watch **w);

int svi_peer_watch_fd(const svi_peer_watch *w); /* readable when one of the next two has something */

/* Takes the next peer that was cut. False: no more. */
bool svi_peer_watch_next_cut(svi_peer_watch *w, struct svi_cut *cut);

/* Takes a notice on peers that were refused, or on the allow file: at most one a second. */
bool svi_peer_watch_next_notice(svi_peer_watch *w, svs_error *notice);

int64_t svi_peer_watch_refused(const svi_peer_watch *w);   /* handshakes that failed so far */
int64_t svi_peer_watch_connected(const svi_peer_watch *w); /* connections now */

/* Closes the connection a moment later, so that a reply may still reach the peer. */
void svi_peer_watch_cut(svi_peer_watch *w, int connection);

/* A complete message of this connection (-1: of one that is closed) is too much: it is closed now and
 * reported, once. */
void svi_peer_watch_flooded(svi_peer_watch *w, enum svi_role socket, int connection, enum svi_flood why);

/* A subscription came from `user`; does it match no topic? A peer with too many of those is cut. */
void svi_peer_watch_subscribed(svi_peer_watch *w, int connection, const char *user, bool idle);

#endif
