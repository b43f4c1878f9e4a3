/* flood_guard.h: limits what one peer can make this process buffer. libzmq keeps the frames of a
 * message until its last one has arrived, however many there are. ZMQ_MAXMSGSIZE limits a frame,
 * and the queues count complete messages. So each connection is followed where its bytes arrive.
 * Our recv takes the place of the C library's, which libzmq calls for tcp and ipc alike. It ends a
 * connection before excess bytes are read.
 *
 * Without CURVE the framing (ZMTP 3) is parsed. A frame, and a message (all its frames together),
 * may have `message` bytes, and a message SVI_FRAMES_MAX frames. With CURVE it is secret which
 * frame ends a message. A frame is then limited as before, and a complete message is checked when
 * it is delivered (svi_access_takes). What has arrived and was not delivered yet
 * (svi_flood_guard_delivered) is limited to `queue` messages and two more. A frame of the handshake
 * may have 4096 bytes.
 *
 * Heartbeats are never delivered; with CURVE they are recognised by their replies, which leave through our
 * send.
 *
 * The guard is global to the process, because recv is: it is armed by the process's one peer watch
 * (peer_watch.h). Unarmed, and for descriptors that were not accepted or connected since, the functions only
 * forward. */
#ifndef SVI_FLOOD_GUARD_H
#define SVI_FLOOD_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SVI_FRAMES_MAX 64 /* frames of one message, including its route */

/* Why a connection was closed. */
enum svi_flood {
    SVI_FLOOD_SIZE,   /* a frame or a message is too large */
    SVI_FLOOD_FRAMES, /* a message has too many frames */
    SVI_FLOOD_WAITING /* too much has arrived since the last delivery */
};

struct svi_flood_limits {
    int64_t message; /* bytes */
    int queue;       /* complete messages of one peer that may be queued */
    bool curve;
    bool settles; /* a delivery settles everything before it: libzmq does not deliver every cancellation of a
                     subscription */
};

/* `cut` is called by the receiving thread before the descriptor is closed, from svi_flood_guard_arm until
 * svi_flood_guard_disarm has returned. */
typedef void svi_flood_cut(void *with, int socket, int fd, enum svi_flood why);
void svi_flood_guard_arm(svi_flood_cut *cut, void *with);
void svi_flood_guard_disarm(void);

/* Sets the limits of a socket (enum svi_role), before it is bound. */
void svi_flood_guard_limit(int socket, const struct svi_flood_limits *limits);

/* Assigns a connection to its socket, before its handshake is complete. Until then only the handshake is
 * allowed. */
void svi_flood_guard_assign(int fd, int socket);

/* `frames` frames with `bytes` bytes of this connection were delivered. It may be closed by now and the
 * descriptor reused: at most what was waiting is deducted. False: less was waiting, so they did not come from
 * this connection. */
bool svi_flood_guard_delivered(int fd, int frames, size_t bytes);

/* When bytes of this connection last moved, in ms of svi_monotonic (0: not followed). *spoken: its peer has
 * sent more than a greeting. */
int64_t svi_flood_guard_moved(int fd, bool *spoken);

#endif
