/* access.h: creates the sockets that peers connect to: with keys, monitored, and with CURVE open only to the
 * keys in the allow file. Opened before the first socket, closed after the last.
 *
 * It publishes nothing: refusals and disconnections are fetched with svi_access_next_report, figures from its
 * peer watch (peer_watch.h). Used by one thread, the owner of the sockets. */
#ifndef SVI_ACCESS_H
#define SVI_ACCESS_H

#include "net/peer_watch.h"
#include "net/transport.h"

/* The sender of a message, whatever the transport. */
struct svi_sender {
    const char *user; /* authenticated key; "" = not authenticated */
    int connection; /* descriptor in libzmq, to disconnect a user whose rights were revoked; -1 = not known */
    const void *peer; /* distinguishes connected peers: `peer_size` bytes, 0 = nothing does */
    size_t peer_size;
};

struct svi_access {
    void *context;
    struct svi_identity identity;     /* wiped by svi_access_close */
    svi_authenticator *authenticator; /* NULL = CURVE is off */
    svi_peer_watch *peers;
    struct svi_flood_limits limits[SVI_SOCKET_COUNT]; /* for each socket */
    bool connects;      /* the input connects to a publisher (in.mode sub), which needs no role */
    int64_t refused;    /* messages refused because the key lacks the right */
    int64_t reported;   /* how many of these were reported */
    double reported_at; /* arrival clock, seconds: the last such report */
};

/* Starts the authenticator and the peer watch. SVS_SETTING: an address is not safe to bind; SVS_IO,
 * SVS_INVALID: the key file or the allow file; SVS_NO_MEMORY. svi_access_close in any case. */
svs_code svi_access_open(struct svi_access *a, const struct svi_settings *s, void *context, svs_error *err);

/* Creates a socket that is ready to be attached (svi_socket_attach). Owner: the caller. NULL on failure. */
void *svi_access_socket(struct svi_access *a, const struct svi_socket_plan *plan, svs_error *err);

/* Shutdown has two steps: svi_access_leave before the sockets are closed, svi_access_close after. */
void svi_access_leave(struct svi_access *a);
void svi_access_close(struct svi_access *a);

/* Must be called for each message as soon as it is received, `m` its last frame: is it within the limits?
 * False: drop it; its peer is disconnected and reported. */
bool svi_access_takes(struct svi_access *a, enum svi_role role, zmq_msg_t *m,
                      const struct svi_frames *frames);

/* Are senders checked at all? Without CURVE the next two are always true and need not be called. */
static inline bool svi_access_asks(const struct svi_access *a) {
    return a->authenticator != NULL;
}

/* Does this sender still have the role? If not, the message is counted as refused and the connection closed a
 * moment later. */
bool svi_access_admits(struct svi_access *a, enum svi_role role, const struct svi_sender *from);

/* May this user send under this source name (length 0: none)? Ask before the message takes effect. False: the
 * key is bound to other names; the message is counted, the connection stays. */
bool svi_access_admits_source(struct svi_access *a, const char *user, const char *name, size_t length);

/* Checks a frame received on the XPUB socket; `useful`: it matches one of our topics. False: ignore it. */
bool svi_access_subscription(struct svi_access *a, zmq_msg_t *m, bool useful);

/* Descriptor, readable when svi_access_next_report has something; -1 = never. */
int svi_access_fd(const struct svi_access *a);

/* Takes the next report: a disconnected peer, refused peers or messages, or an invalid allow file. False:
 * none for now. Refusals are summed up, at most one report a second. */
bool svi_access_next_report(struct svi_access *a, double now, svs_error *report);

#endif
