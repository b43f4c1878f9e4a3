/* access.h: the sockets of a process that peers connect to: created with their keys, monitored, and open only
 * to the keys that the allow file lists when CURVE is on. Opened before the first socket, closed after the
 * last one.
 *
 * It publishes nothing: what was refused or cut is fetched by svi_access_next_report, figures are those of
 * its peers (peer_watch.h). One thread uses it, the one that owns the sockets. */
#ifndef SVI_ACCESS_H
#define SVI_ACCESS_H

#include "net/peer_watch.h"
#include "net/transport.h"

/* The sender of a message, whatever it came by. */
struct svi_sender {
    const char *user; /* as it was authenticated; "" = it was not */
    int connection;   /* of libzmq, to be cut when the user may not stay; -1 = not known */
    const void *peer; /* distinguishes peers while they are connected: `peer_size` bytes, 0 = nothing does */
    size_t peer_size;
};

struct svi_access {
    void *context;
    struct svi_identity identity;     /* wiped by svi_access_close */
    svi_authenticator *authenticator; /* NULL = CURVE is off */
    svi_peer_watch *peers;
    struct svi_flood_limits limits[SVI_ROLE_COUNT]; /* of each socket */
    bool connects;      /* the input connects to a publisher (in.mode sub), which needs no role */
    int64_t refused;    /* messages of keys without the right to send them */
    int64_t reported;   /* of these */
    double reported_at; /* seconds */
};

/* SVS_SETTING: an address is not safe to bind; SVS_IO, SVS_INVALID: the key file or the allow file;
 * svi_access_close in any case. */
svs_code svi_access_open(struct svi_access *a, const struct svi_settings *s, void *context, svs_error *err);

/* A socket that is ready to be attached. Owner: the caller. */
void *svi_access_socket(struct svi_access *a, const struct svi_socket_plan *plan, svs_error *err);

/* The end has two steps: svi_access_leave before the sockets are closed, svi_access_close after that. */
void svi_access_leave(struct svi_access *a);
void svi_access_close(struct svi_access *a);

/* Is a message with these frames, `m` the last of them, small enough? To be asked of each, as soon as it was
 * received. False: it is to be dropped; its peer is cut and reported. */
bool svi_access_takes(struct svi_access *a, enum svi_role role, zmq_msg_t *m,
                      const struct svi_frames *frames);

/* Is anything asked of senders? Without CURVE the next two are true of all, and need not be called. */
static inline bool svi_access_asks(const struct svi_access *a) {
    return a->authenticator != NULL;
}

/* Does this sender still have the role? If not, the message is counted, and the connection is closed a moment
 * later. */
bool svi_access_admits(struct svi_access *a, enum svi_role role, const struct svi_sender *from);

/* May this user give a message this source name (length 0: it gave none)? To be asked before the message
 * takes effect. False: the key is bound to other names; the message is counted, the connection stays. */
bool svi_access_admits_source(struct svi_access *a, const char *user, const char *name, size_t length);

/* A frame that came on the socket of subscriptions; does it match one of our topics? False: to be ignored. */
bool svi_access_subscription(struct svi_access *a, zmq_msg_t *m, bool useful);

/* Readable when svi_access_next_report has something; -1 = never. */
int svi_access_fd(const struct svi_access *a);

/* Takes the next report: a peer that was cut, peers or messages that were refused, an allow file that is
 * wrong. False: there is no more for now. Refusals are summed up, at most one report a second. */
bool svi_access_next_report(struct svi_access *a, double now, svs_error *report);

#endif
