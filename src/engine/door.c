#include "engine/door.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "engine/keeper.h"
#include "wire/cursor.h"
#include "wire/decode.h"

#define SUBSCRIPTION_MAX 128 /* bytes */
#define TELL_SECONDS     1.0 /* between two events of the same kind */

svs_code svi_door_open(struct svi_door *d, const struct svi_settings *s, void *context, svs_error *err) {
    *d = (struct svi_door){.context = context, .calls = s->in_mode == SVI_IN_SUB};
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
    if (!d->auth || (d->calls && role == SVI_ROLE_INGEST) ||
        svi_authenticator_allows(d->auth, role, svi_message_user(m)))
        return true;
    d->refused++;
    svi_monitor_cut(d->monitor, svi_message_connection(m));
    return false;
}

/* The name that a message bears, found as the engine finds it: in the map or the first one of an array; of
 * several keys the last. Type SVI_NIL: none. Malformed: none; such a message is refused whole. */
static struct svi_item source_of(const uint8_t *at, size_t size) {
    const uint8_t *end = at + size;
    struct svi_item map, key, src = {.type = SVI_NIL};
    if (svi_msgpack_check(at, size, SVI_DEPTH_MAX, NULL) != SVS_OK)
        return src;
    at = svi_item_read(at, &map);
    if (map.type == SVI_ARRAY && map.length > 0)
        at = svi_item_read(at, &map);
    for (uint32_t i = 0; map.type == SVI_MAP && i < map.length; i++) {
        svi_item_read(at, &key);
        svi_walk(&at, end, SVI_DEPTH_MAX);
        if (key.type == SVI_STRING && key.length == 3 && memcmp(key.body, "src", 3) == 0)
            svi_item_read(at, &src);
        svi_walk(&at, end, SVI_DEPTH_MAX);
    }
    return src;
}

svs_code svi_door_source(struct svi_door *d, zmq_msg_t *m, svs_error *why) {
    char shown[SVS_NAME_MAX + 1];
    if (!d->auth || d->calls || !svi_authenticator_binds(d->auth))
        return SVS_OK;
    struct svi_item src = source_of(zmq_msg_data(m), zmq_msg_size(m));
    const char *name = src.type == SVI_STRING ? (const char *)src.body : "";
    size_t length = src.type == SVI_STRING ? src.length : 0;
    if (svi_authenticator_allows_source(d->auth, svi_message_user(m), name, length))
        return SVS_OK;
    d->refused++;
    if (length == 0)
        return svi_fail(why, SVS_NOT_ALLOWED,
                        "this key is bound to sources in the allow file: samples must name one as src");
    return svi_fail(why, SVS_NOT_ALLOWED,
                    "this key may not send as %s: the allow file binds it to other sources",
                    svi_escape(shown, sizeof shown, name, length));
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

static void tell_cut(struct svi_door *d, svi_engine *e, svi_keeper *k, int64_t max_message, double now) {
    char peer[SVI_PEER_MAX], reason[SVS_ERROR_TEXT];
    while (svi_monitor_take(d->monitor, peer)) {
        snprintf(reason, sizeof reason,
                 "a peer%s%s was disconnected: its message exceeds max.message = %" PRId64 " bytes",
                 peer[0] ? " at " : "", peer, max_message);
        svi_keeper_refuse(k, e, SVS_PEER_CUT, reason, NULL, 0, now);
    }
}

static void tell_revoked(struct svi_door *d, svi_engine *e, svi_keeper *k, double now) {
    char reason[SVS_ERROR_TEXT];
    if (d->refused == d->told || (now - d->told_at < TELL_SECONDS && now >= d->told_at))
        return;
    snprintf(reason, sizeof reason,
             "%" PRId64 " message%s refused: the allow file does not let the sender's key do this (any more)",
             d->refused - d->told, d->refused - d->told > 1 ? "s were" : " was");
    d->told = d->refused;
    d->told_at = now;
    svi_keeper_refuse(k, e, SVS_NOT_ALLOWED, reason, NULL, 0, now);
}

void svi_door_tell(struct svi_door *d, svi_engine *e, svi_keeper *k, int64_t max_message, double now) {
    svs_error notice;
    if (!d->monitor)
        return;
    tell_cut(d, e, k, max_message, now);
    if (svi_monitor_notice(d->monitor, &notice))
        svi_keeper_refuse(k, e, notice.code, notice.text, NULL, 0, now);
    tell_revoked(d, e, k, now);
    svi_engine_note(e, "handshakes_refused", (double)svi_monitor_refused(d->monitor));
    svi_engine_note(e, "connections", (double)svi_monitor_connected(d->monitor));
}
