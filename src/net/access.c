/* Access combines the parts of the room: keys, authenticator, peer watch and flood guard, and keeps the
 * limits of each socket.
 *
 * Rights are checked twice: at the handshake (by the peer watch) and at each message, since they may have
 * been revoked meanwhile. Without CURVE neither check applies, and frames are limited by the flood guard
 * alone. */
#include "net/access.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "wire/event.h"

#define SUBSCRIPTION_MAX SVI_TOPIC_MAX /* bytes */
#define REPORT_SECONDS   1.0           /* between two reports of refused messages */

/* The authenticator comes before the peer watch, which answers from it, and both before any socket: libzmq
 * admits everybody while nobody answers its questions. */
svs_code svi_access_open(struct svi_access *a, const struct svi_settings *s, void *context, svs_error *err) {
    /* Everything empty first: svi_access_close may follow a failure at any step. */
    *a = (struct svi_access){.context = context, .connects = !svi_settings_intake(s).binds};
    SVI_TRY(svi_settings_check_security(s, err));
    SVI_TRY(svi_identity_load(s, false, &a->identity, err));
    if (a->identity.on && !(a->authenticator = svi_authenticator_new(s, err)))
        return err->code;
    a->peers = svi_peer_watch_new(context, a->authenticator, (int)s->max_connections, err);
    return a->peers ? SVS_OK : err->code;
}

/* False only for a publisher that we connect to whose key is not known: the settings say that it has none. */
static bool socket_is_secured(const struct svi_access *a, const struct svi_socket_plan *plan) {
    return plan->bind || a->identity.server_key[0];
}

/* Passes the limits of a socket to the flood guard. Subscriptions are taken in order, so that a delivered one
 * settles all before it. */
static void limit_floods(struct svi_access *a, const struct svi_socket_plan *plan) {
    const enum svi_role role = svi_role_of(plan->setting);
    a->limits[role] = (struct svi_flood_limits){.message = plan->max_message,
                                                .queue = plan->received ? plan->received : plan->queue,
                                                .curve = a->identity.on && socket_is_secured(a, plan),
                                                .settles = role == SVI_ROLE_SUBSCRIBE};
    svi_flood_guard_limit((int)role, &a->limits[role]);
}

void *svi_access_socket(struct svi_access *a, const struct svi_socket_plan *plan, svs_error *err) {
    void *socket = svi_socket_new(a->context, plan, err);
    svs_code code = socket ? SVS_OK : err->code;
    /* The limits and the monitor come before keys and address: a peer must be counted and limited from its
     * first byte. */
    limit_floods(a, plan);
    if (code == SVS_OK)
        code = svi_peer_watch_add(a->peers, plan->setting, socket, err);
    if (code == SVS_OK && socket_is_secured(a, plan))
        code = svi_socket_secure(socket, plan, &a->identity, err);
    if (code != SVS_OK && socket) {
        svi_access_leave(a);
        svi_socket_close(&socket);
    }
    return socket;
}

void svi_access_leave(struct svi_access *a) {
    if (a->peers)
        svi_peer_watch_leave(a->peers);
}

void svi_access_close(struct svi_access *a) {
    svi_peer_watch_free(&a->peers);
    svi_authenticator_free(&a->authenticator);
    svi_identity_wipe(&a->identity);
}

bool svi_access_takes(struct svi_access *a, enum svi_role role, zmq_msg_t *m,
                      const struct svi_frames *frames) {
    const struct svi_flood_limits *l = &a->limits[role];
    if (!l->curve) /* without CURVE the flood guard has parsed the frames before libzmq did */
        return true;
    const int connection = svi_message_connection(m);
    const bool small = frames->bytes <= (size_t)l->message;
    /* Deduct what was delivered even if the message is dropped. False: the descriptor belongs to another
     * connection by now, which must not be disconnected. */
    const bool there = svi_flood_guard_delivered(connection, frames->count, frames->bytes);
    if (small && frames->count <= SVI_FRAMES_MAX)
        return true;
    svi_peer_watch_flooded(a->peers, role, there ? connection : -1,
                           small ? SVI_FLOOD_FRAMES : SVI_FLOOD_SIZE);
    return false;
}

bool svi_access_admits(struct svi_access *a, enum svi_role role, const struct svi_sender *from) {
    if (!a->authenticator || (a->connects && role == SVI_ROLE_INGEST) ||
        svi_authenticator_allows(a->authenticator, role, from->user))
        return true;
    a->refused++;
    svi_peer_watch_cut(a->peers, from->connection);
    return false;
}

bool svi_access_admits_source(struct svi_access *a, const char *user, const char *name, size_t length) {
    if (!a->authenticator || a->connects ||
        svi_authenticator_allows_source(a->authenticator, user, name, length))
        return true;
    a->refused++;
    return false;
}

bool svi_access_subscription(struct svi_access *a, zmq_msg_t *m, bool useful) {
    const char *bytes = zmq_msg_data(m);
    size_t size = zmq_msg_size(m);
    const struct svi_sender from = {.user = svi_message_user(m), .connection = svi_message_connection(m)};
    if (from.connection < 0 || size == 0 ||
        bytes[0] != 1) /* it cancels, or its peer is in this process or has left */
        return true;
    /* Count and remember the subscription before checking rights: the key is needed to disconnect it if its
     * role is revoked later. */
    bool short_enough = size - 1 <= SUBSCRIPTION_MAX;
    if (!short_enough)
        svi_peer_watch_cut(a->peers, from.connection);
    svi_peer_watch_subscribed(a->peers, from.connection, from.user, !useful);
    return svi_access_admits(a, SVI_ROLE_SUBSCRIBE, &from) && short_enough;
}

int svi_access_fd(const struct svi_access *a) {
    return a->peers ? svi_peer_watch_fd(a->peers) : -1;
}

static void describe_flood(const struct svi_access *a, const struct svi_cut *cut, char *out, size_t size) {
    /* in the order of enum svi_role */
    static const char *const sockets[SVI_SOCKET_COUNT] = {"in", "out", "ctl", "merge.from"};
    const struct svi_flood_limits *l = &a->limits[cut->socket];
    const char *limit = cut->socket == SVI_ROLE_INGEST ? "max.message = " : "";
    if (cut->why == SVI_FLOOD_FRAMES)
        snprintf(out, size, "its message has more than %d frames", SVI_FRAMES_MAX);
    else if (cut->why == SVI_FLOOD_SIZE)
        snprintf(out, size, "its message exceeds %s%" PRId64 " bytes", limit, l->message);
    else
        snprintf(out, size, "more than %d messages of %s%" PRId64 " bytes arrived without an end", l->queue,
                 limit, l->message);
    const size_t used = strlen(out);
    if (cut->socket != SVI_ROLE_INGEST)
        snprintf(out + used, size - used, " (socket `%s`)", sockets[cut->socket]);
}

static bool report_cut_peer(struct svi_access *a, svs_error *report) {
    struct svi_cut cut;
    char why[128];
    if (!svi_peer_watch_next_cut(a->peers, &cut))
        return false;
    describe_flood(a, &cut, why, sizeof why);
    svi_fail(report, SVS_PEER_DISCONNECTED, "a peer%s%s was disconnected: %s", cut.peer[0] ? " at " : "",
             cut.peer, why);
    return true;
}

/* Summed up over a second at least, so that a misbehaving client cannot fill the log. A clock that went back
 * does not silence the reports. */
static bool report_refused_messages(struct svi_access *a, double now, svs_error *report) {
    const int64_t count = a->refused - a->reported;
    if (count == 0 || (now - a->reported_at < REPORT_SECONDS && now >= a->reported_at))
        return false;
    a->reported = a->refused;
    a->reported_at = now;
    svi_fail(report, SVS_NOT_ALLOWED,
             "%" PRId64 " message%s refused: the allow file does not give the sender's key this role", count,
             count > 1 ? "s were" : " was");
    return true;
}

bool svi_access_next_report(struct svi_access *a, double now, svs_error *report) {
    return a->peers && (report_cut_peer(a, report) || svi_peer_watch_next_notice(a->peers, report) ||
                        report_refused_messages(a, now, report));
}
