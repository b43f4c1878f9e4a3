/* The outbox meets its socket. Frames of the outbox are sent as long as the socket accepts them,
 * and replies are passed back. The monitor shows when a connection breaks, so the outbox greets
 * again at once instead of after a timeout.
 *
 * The rest concerns the end of a PUSH socket over ipc (link_close). libzmq counts a message as sent
 * when the kernel has it. But the peer drops what it has not read when the connection ends. */
#include "client/link.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <math.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "net/transport.h"

#define BEAT_MS 5000 /* between heartbeats, so that a vanished host is noticed */

svs_code link_open(struct link *l, const char *address, const struct svi_identity *identity,
                   const svs_outbox_options *o, int linger_ms, svs_error *err) {
    *l = (struct link){.address = address, .linger_ms = linger_ms, .push = o->release == SVS_OUTBOX_SENT};
    const struct svi_socket_plan plan = {
        "in", l->push ? ZMQ_PUSH : ZMQ_DEALER, false, LINK_QUEUE, linger_ms, -1, 0};
    /* IMMEDIATE for PUSH: queueing for a peer that is not there would count samples as sent. */
    const int options[][2] = {{ZMQ_RECONNECT_IVL, 50},
                              {ZMQ_RECONNECT_IVL_MAX, 1000},
                              {ZMQ_HEARTBEAT_IVL, BEAT_MS},
                              {ZMQ_IMMEDIATE, l->push}};
    /* The outbox first: its options are checked before anything is opened. */
    if (!(l->box = svs_outbox_new(o, err)))
        return err->code;
    if (!(l->context = zmq_ctx_new()))
        return svi_fail(err, SVS_IO, "cannot start ZeroMQ: %s", zmq_strerror(errno));
    if (!(l->socket = svi_socket_new(l->context, &plan, err)))
        return err->code;
    for (int i = 0; i < 4; i++)
        zmq_setsockopt(l->socket, options[i][0], &options[i][1], sizeof(int));
    l->monitor = svi_monitor_new(
        l->context, l->socket, ZMQ_EVENT_CONNECTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED);
    if (!l->monitor)
        return svi_fail(err, SVS_IO, "cannot monitor the connection: %s", zmq_strerror(errno));
    return svi_socket_connect(l->socket, &plan, identity, l->address, err);
}

static void drop_tail(struct link *l) {
    if (l->tail > 0)
        close(l->tail);
    l->tail = 0;
}

/* Duplicates the descriptor of an ipc PUSH connection, so that it stays open when libzmq closes its own: the
 * peer's libzmq discards what it has not read when the connection ends. */
static void hold_tail(struct link *l, int connection) {
    int family = 0;
    socklen_t size = sizeof family;
    drop_tail(l);
    if (!l->push || getsockopt(connection, SOL_SOCKET, SO_DOMAIN, &family, &size) != 0 || family != AF_UNIX)
        return;
    l->tail = fcntl(connection, F_DUPFD_CLOEXEC, 3);
}

/* Waits, within linger_ms, until the other end has read everything in the connection. */
static void await_read(const struct link *l) {
    const double end = svi_monotonic() + l->linger_ms / 1000.0;
    int unread = 0;
    while (l->tail > 0 && ioctl(l->tail, SIOCOUTQ, &unread) == 0 && unread > 0 && svi_monotonic() < end)
        poll(NULL, 0, 1); /* no event reports an empty send queue */
}

void link_close(struct link *l) {
    svi_monitor_free(&l->monitor, l->socket);
    svi_socket_close(&l->socket);
    if (l->context)
        /* Blocks until all messages are in the connection, or the linger time is over; only then can the rest
         * be measured. */
        while (zmq_ctx_term(l->context) != 0 && zmq_errno() == EINTR)
            ;
    l->context = NULL;
    await_read(l);
    drop_tail(l);
    svs_outbox_free(&l->box);
}

void link_send(struct link *l) {
    const double now = svi_monotonic();
    const void *bytes;
    size_t size;
    l->blocked = false;
    /* A frame that the socket does not accept is built again later: only svs_outbox_sent moves on. */
    while (!l->blocked && svs_outbox_frame(l->box, now, &bytes, &size))
        if (zmq_send(l->socket, bytes, size, ZMQ_DONTWAIT) >= 0)
            svs_outbox_sent(l->box, now);
        else
            l->blocked = true;
}

/* Whatever answers on the port must speak the protocol: a malformed reply ends the delivery instead of being
 * ignored. */
svs_code link_receive(struct link *l, svs_error *err) {
    zmq_msg_t m;
    svs_code code = SVS_OK;
    zmq_msg_init(&m);
    while (code == SVS_OK && !l->push && svi_last_frame(l->socket, &m, NULL))
        code = svs_outbox_reply(l->box, zmq_msg_data(&m), zmq_msg_size(&m), svi_monotonic(), err);
    zmq_msg_close(&m);
    return code == SVS_OK ? SVS_OK : svi_fail(err, SVS_IO, "%.100s: the peer is not svmstream", l->address);
}

svs_code link_turn(struct link *l, svs_error *err) {
    /* before the event that the connection broke: these replies still count */
    svs_code code = link_receive(l, err);
    int event, value;
    /* `accepted` and `introduced` are never cleared: they show how far the connection ever got. */
    while (svi_monitor_next(l->monitor, &event, &value)) {
        l->accepted = l->accepted || event == ZMQ_EVENT_CONNECTED;
        if (event == ZMQ_EVENT_CONNECTED)
            hold_tail(l, value);
        if (event == ZMQ_EVENT_DISCONNECTED)
            drop_tail(l);
        l->introduced = l->introduced || event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED;
        /* Only a connection that was complete can break; failed attempts of libzmq to reconnect are no news.
         */
        if (event == ZMQ_EVENT_DISCONNECTED && l->connected)
            svs_outbox_broken(l->box, svi_monotonic());
        l->connected =
            event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED || (l->connected && event != ZMQ_EVENT_DISCONNECTED);
    }
    link_send(l);
    return code;
}

/* POLLOUT only while the socket is full: it would be ready all the time otherwise. */
int link_items(const struct link *l, zmq_pollitem_t *items) {
    const short events = (short)((l->push ? 0 : ZMQ_POLLIN) | (l->blocked ? ZMQ_POLLOUT : 0));
    int n = 0;
    items[n++] = (zmq_pollitem_t){l->monitor, 0, ZMQ_POLLIN, 0};
    if (events)
        items[n++] = (zmq_pollitem_t){l->socket, 0, events, 0};
    return n;
}

double link_wait(const struct link *l) {
    return l->blocked ? HUGE_VAL : svs_outbox_wait(l->box, svi_monotonic());
}
