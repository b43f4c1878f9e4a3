/* peer_watch.h: watches the peers that connect to and leave the sockets. It answers libzmq's question whether
 * a peer may connect (ZAP), counts failed handshakes, enforces the limit on connections, closes those of keys
 * that lost their rights, and reports peers disconnected because they sent too much (flood_guard.h, which it
 * arms).
 *
 * One per process at a time, since the flood guard is global. It has its own thread, which sleeps unless
 * peers connect or leave. */
#ifndef SVI_PEER_WATCH_H
#define SVI_PEER_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "net/authenticator.h"
#include "net/flood_guard.h"

#define SVI_PEER_MAX 64 /* bytes of a peer's name, with the NUL */

typedef struct svi_peer_watch svi_peer_watch;

/* A peer that was disconnected. */
struct svi_cut {
    char peer[SVI_PEER_MAX]; /* "127.0.0.1:40112"; "" = not known, as with ipc */
    enum svi_role socket;
    enum svi_flood why;
};

/* Starts the watch, one per context, before any socket is bound. `limit`: connections to all sockets
 * together. `auth`: NULL = every peer is admitted; it must outlive the watch. NULL: SVS_IO, SVS_NO_MEMORY.
 * Owner: the caller. */
svi_peer_watch *svi_peer_watch_new(void *context, svi_authenticator *auth, int limit, svs_error *err);

/* The limit of connections in force: as requested, or fewer if descriptors are short. *descriptors: the limit
 * of these. */
int svi_peer_watch_limit(const svi_peer_watch *w, int *descriptors);

/* Watches a socket ("in", "out", "ctl" or "merge.from"), which the calling thread owns and has not bound or
 * connected yet.
 */
svs_code svi_peer_watch_add(svi_peer_watch *w, const char *name, void *socket, svs_error *err);

/* Stops watching, before the sockets are closed; ZAP requests are answered until svi_peer_watch_free. */
void svi_peer_watch_leave(svi_peer_watch *w);
void svi_peer_watch_free(svi_peer_watch **w);

int svi_peer_watch_fd(const svi_peer_watch *w); /* readable when one of the next two has a result */

/* Takes the next disconnected peer. False: no more. */
bool svi_peer_watch_next_cut(svi_peer_watch *w, struct svi_cut *cut);

/* Takes a notice about refused peers or the allow file; at most one a second. */
bool svi_peer_watch_next_notice(svi_peer_watch *w, svs_error *notice);

int64_t svi_peer_watch_refused(const svi_peer_watch *w);   /* handshakes that failed so far */
int64_t svi_peer_watch_connected(const svi_peer_watch *w); /* connections now */

/* Closes the connection a moment later, so that a reply may still reach the peer. */
void svi_peer_watch_cut(svi_peer_watch *w, int connection);

/* A complete message of this connection exceeded a limit (-1: the connection is closed already): it is closed
 * at once and reported, once. */
void svi_peer_watch_flooded(svi_peer_watch *w, enum svi_role socket, int connection, enum svi_flood why);

/* Notes a subscription of `user`; `idle`: it matches no topic. A peer with too many of those is disconnected.
 */
void svi_peer_watch_subscribed(svi_peer_watch *w, int connection, const char *user, bool idle);

#endif
