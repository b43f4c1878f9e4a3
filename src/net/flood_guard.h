/* flood_guard.h: what one peer can make this process keep. libzmq keeps the frames of a message until its
 * last one has come, however many they are: ZMQ_MAXMSGSIZE limits a frame, the queues count complete
 * messages. So each connection is followed where its bytes arrive: our recv stands in front of the C
 * library's, which libzmq calls for tcp and ipc alike, and ends a connection before the bytes that are too
 * many are read.
 *
 *  - without CURVE the framing (ZMTP 3) is read: a frame and a message (all its frames together) may have
 *    `message` bytes, a message SVI_FRAMES_MAX frames;
 *  - with CURVE it is secret which frame is a message's last one: a frame is limited as before, and so is
 * what came and was not delivered yet (svi_flood_guard_delivered): `queue` messages and two more. A complete
 *    message is judged when it is delivered (svi_access_takes);
 *  - a frame of the handshake may have 4096 bytes.
 *
 * Heartbeats are not delivered; with CURVE they are known by their answers, which go out through our send.
 *
 * It is of the process, as recv is: armed by the one watch of its sockets (peer_watch.h). Unarmed, and for
 * descriptors that were not accepted or connected since, the functions only forward. */
#ifndef SVI_FLOOD_GUARD_H
#define SVI_FLOOD_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SVI_FRAMES_MAX 64 /* of one message, those of its route included */

/* Why a connection was ended. */
enum svi_flood {
    SVI_FLOOD_SIZE,   /* a frame or a message is too large */
    SVI_FLOOD_FRAMES, /* a message has too many frames */
    SVI_FLOOD_WAITING /* too much came since something was delivered */
};

struct svi_flood_limits {
    int64_t message; /* bytes */
    int queue;       /* complete messages of one peer that may wait */
    bool curve;
    bool
        settles; /* what is delivered settles all before it: libzmq keeps cancelled subscriptions to itself */
};

/* `cut` is called by the thread that receives, before the descriptor is closed, from svi_flood_guard_arm
 * until svi_flood_guard_disarm has returned. */
typedef void svi_flood_cut(void *with, int socket, int fd, enum svi_flood why);
void svi_flood_guard_arm(svi_flood_cut *cut, void *with);
void svi_flood_guard_disarm(void);

/* Before the socket of this number (enum svi_role) is bound. */
void svi_flood_guard_limit(int socket, const struct svi_flood_limits *limits);

/* The connection belongs to this socket; before its handshake is complete. Until then it may do nothing but
 * shake hands. */
void svi_flood_guard_assign(int fd, int socket);

/* This many frames with this many bytes of this connection were delivered. It may be closed by now, and the
 * descriptor another's: at most what waited is deducted. False: not so much waited, so they are not this
 * connection's. */
bool svi_flood_guard_delivered(int fd, int frames, size_t bytes);

/* When bytes of this connection last moved, in ms of svi_monotonic (0: it is not followed), and whether its
 * peer has said more than a greeting. */
int64_t svi_flood_guard_moved(int fd, bool *spoken);

#endif
