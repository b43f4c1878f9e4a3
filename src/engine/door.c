#include "engine/door.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"

#define SUBSCRIPTION_MAX 128 /* bytes */
#define TELL_SECONDS     1.0 /* between two events of the same kind */

svs_code svi_door_open(struct svi_door *d, const struct svi_settings *s, void *context, svs_error *err) {
    *d = (struct svi_door){.context = context};
    svs_code code = svi_settings_check_security(s, err);
    if (code == SVS_OK)
        code = svi_identity_load(s, false, &d->identity, err);
    if (code == SVS_OK && d->identity.on && !(d->auth = svi_authenticator_new(s, err)))
        code = err->code;
    if (code == SVS_OK && !(d->monitor = svi_monitor_new(context, d->auth, (int)s->max_connections, err)))
        code = err->code;
    return code;
}

/* The keys of a publisher that we connect to are known, or the settings say that it has none. */
static bool is_secured(const struct svi_door *d, const struct svi_socket_plan *plan) {
    return plan->bind || d->identity.server_key[0];
}

void *svi_door_socket(struct svi_door *d, const struct svi_socket_plan *plan, svs_error *err) {
    void *socket = svi_socket_new(d->context, plan, err);
    svs_code code = socket ? SVS_OK : err->code;
    if (code == SVS_OK)
        code = svi_monitor_watch(d->monitor, plan->setting, socket, err);
    if (code == SVS_OK && is_secured(d, plan))
        code = svi_socket_secure(socket, plan, &d->identity, err);
    if (code != SVS_OK && socket) {
        svi_monitor_unwatch(d->monitor);
        svi_socket_close(&socket);
    }
    return socket;
}

void svi_door_leave(struct svi_door *d) {
    if (d->monitor)
        svi_monitor_unwatch(d->monitor);
}

void svi_door_close(struct svi_door *d) {
    svi_monitor_free(&d->monitor);
    svi_authenticator_free(&d->auth);
    svi_identity_wipe(&d->identity);
}

bool svi_door_admits(struct svi_door *d, enum svi_role role, zmq_msg_t *m) {
    if (!d->auth || svi_authenticator_allows(d->auth, role, svi_message_user(m)))
        return true;
    d->refused++;
    svi_monitor_cut(d->monitor, svi_message_connection(m));
    return false;
}

bool svi_door_subscription(struct svi_door *d, zmq_msg_t *m, bool useful) {
    const char *bytes = zmq_msg_data(m);
    size_t size = zmq_msg_size(m);
    int connection = svi_message_connection(m);
    if (connection < 0 || size == 0 || bytes[0] != 1) /* it cancels, or its peer is in this process or gone */
        return true;
    bool short_enough = size - 1 <= SUBSCRIPTION_MAX;
    if (!short_enough)
        svi_monitor_cut(d->monitor, connection);
    svi_monitor_subscribed(d->monitor, connection, svi_message_user(m), !useful);
    return svi_door_admits(d, SVI_ROLE_SUBSCRIBE, m) && short_enough;
}

int svi_door_fd(const struct svi_door *d) {
    return d->monitor ? svi_monitor_fd(d->monitor) : -1;
}

static void tell_cut(struct svi_door *d, svi_engine *e, int64_t max_message, double now) {
    char peer[SVI_PEER_MAX], reason[SVS_ERROR_TEXT];
    while (svi_monitor_take(d->monitor, peer)) {
        snprintf(reason, sizeof reason,
                 "a peer%s%s was disconnected: its message exceeds max.message = %" PRId64 " bytes",
                 peer[0] ? " at " : "", peer, max_message);
        svi_engine_refuse(e, SVS_PEER_CUT, reason, NULL, 0, now);
    }
}

static void tell_revoked(struct svi_door *d, svi_engine *e, double now) {
    char reason[SVS_ERROR_TEXT];
    if (d->refused == d->told || (now - d->told_at < TELL_SECONDS && now >= d->told_at))
        return;
    snprintf(reason, sizeof reason,
             "%" PRId64 " message%s refused: the sender's key was taken from the allow file",
             d->refused - d->told, d->refused - d->told > 1 ? "s were" : " was");
    d->told = d->refused;
    d->told_at = now;
    svi_engine_refuse(e, SVS_NOT_ALLOWED, reason, NULL, 0, now);
}

void svi_door_tell(struct svi_door *d, svi_engine *e, int64_t max_message, double now) {
    svs_error notice;
    if (!d->monitor)
        return;
    tell_cut(d, e, max_message, now);
    if (svi_monitor_notice(d->monitor, &notice))
        svi_engine_refuse(e, notice.code, notice.text, NULL, 0, now);
    tell_revoked(d, e, now);
    svi_engine_note(e, "handshakes_refused", (double)svi_monitor_refused(d->monitor));
    svi_engine_note(e, "connections", (double)svi_monitor_connected(d->monitor));
}
