/* door.h: the sockets of a process that others come to: made with their keys, watched, and only for whom the
 * allow file lists when CURVE is on. Opened before the first socket, closed after the last one. */
#ifndef SVI_DOOR_H
#define SVI_DOOR_H

#include "engine/engine.h"
#include "engine/monitor.h"
#include "engine/transport.h"

struct svi_door {
    void *context;
    struct svi_identity identity; /* wiped by svi_door_close */
    svi_authenticator *auth;      /* NULL = CURVE is off */
    svi_monitor *monitor;
    bool calls;      /* the input is a publisher that we went to, not somebody who came: in.mode sub */
    int64_t refused; /* messages of users who lost their right, or never had it */
    int64_t told;    /* of these: told */
    double told_at;
};

/* SVS_SETTING: an address is not safe to bind; SVS_IO, SVS_INVALID: the key file or the allow file;
 * svi_door_close in any case. */
svs_code svi_door_open(struct svi_door *d, const struct svi_settings *s, void *context, svs_error *err);

/* A socket that is ready to be attached. Owner: the caller. */
void *svi_door_socket(struct svi_door *d, const struct svi_socket_plan *plan, svs_error *err);

/* The end has two steps: the first before the sockets are closed, the second behind. */
void svi_door_leave(struct svi_door *d);
void svi_door_close(struct svi_door *d);

/* May the sender of this message still do so? If not, it is counted, and its connection ends a moment later.
 */
bool svi_door_admits(struct svi_door *d, enum svi_role role, zmq_msg_t *m);

/* May it send these samples, or say this hello, under the name that they bear (`src` of the first)? To be
 * asked before they count. SVS_NOT_ALLOWED: its key is bound to other names; it is counted, the connection
 * stays. */
svs_code svi_door_source(struct svi_door *d, zmq_msg_t *m, svs_error *why);

/* What came on the socket of subscriptions; does it match one of our topics? False: it is to be ignored. */
bool svi_door_subscription(struct svi_door *d, zmq_msg_t *m, bool useful);

int svi_door_fd(const struct svi_door *d); /* readable when svi_door_tell has something to tell; -1 = never */

/* Tells the engine who was cut or refused, as events and figures; `k` (may be NULL) keeps its state. */
struct svi_keeper;
void svi_door_tell(struct svi_door *d, svi_engine *e, struct svi_keeper *k, int64_t max_message, double now);

#endif
