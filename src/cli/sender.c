#include "cli/sender.h"

#include <errno.h>
#include <string.h>

#include "base/fail.h"
#include "cli/progress.h"
#include "engine/transport.h"

#define QUEUE     1000
#define LINGER_MS 120000 /* a process that learns slowly is given this long for the last messages */

static long milliseconds(double seconds) {
    return (long)(1000 * seconds);
}

static bool ready(const struct sender *s, short events) {
    zmq_pollitem_t item = {s->socket, 0, events, 0};
    while (zmq_poll(&item, 1, milliseconds(s->timeout)) < 0 && zmq_errno() == EINTR)
        ;
    return (item.revents & events) != 0;
}

static svs_code connect_socket(struct sender *s, svs_error *err) {
    const struct svi_socket_plan plan = {"in", ZMQ_PUSH, false, QUEUE, LINGER_MS, -1};
    int immediate = 1, timeout = (int)milliseconds(s->timeout);
    if (!(s->context = zmq_ctx_new()))
        return svi_fail(err, SVS_IO, "ZeroMQ cannot start: %s", zmq_strerror(errno));
    if (!(s->socket = svi_socket_new(s->context, &plan, err)))
        return err->code;
    /* Nothing is queued for somebody who is not there: being able to send then means that somebody listens.
     */
    zmq_setsockopt(s->socket, ZMQ_IMMEDIATE, &immediate, sizeof immediate);
    zmq_setsockopt(s->socket, ZMQ_SNDTIMEO, &timeout, sizeof timeout);
    if (svi_socket_secure(s->socket, &plan, s->identity, err) != SVS_OK)
        return err->code;
    return svi_socket_attach(s->socket, &plan, s->address, NULL, err);
}

svs_code sender_open(struct sender *s, svs_error *err) {
    svs_code code = connect_socket(s, err);
    if (code != SVS_OK)
        return code;
    if (!ready(s, ZMQ_POLLOUT))
        return svi_fail(
            err, SVS_IO,
            "nobody takes samples at %.60s: is `svmstream run` running with this `in`%s? With its "
            "in.mode router, feed with --ack",
            s->address, s->identity->on ? ", and our key in its allow file" : " and without CURVE");
    return SVS_OK;
}

svs_code sender_send(struct sender *s, const void *bytes, size_t length, svs_error *err) {
    zmq_msg_t m;
    if (zmq_msg_init_size(&m, length) != 0)
        return svi_fail_memory(err, "a message");
    memcpy(zmq_msg_data(&m), bytes, length);
    int sent;
    while ((sent = zmq_msg_send(&m, s->socket, 0)) < 0 && zmq_errno() == EINTR)
        ;
    if (sent < 0) {
        zmq_msg_close(&m);
        return svi_fail(err, SVS_IO, "%s takes no more: it is gone, or stands still for more than %g seconds",
                        s->address, s->timeout);
    }
    return SVS_OK;
}

svs_code sender_close(struct sender *s, svs_error *err) {
    double start = cli_now();
    svi_socket_close(&s->socket);
    if (s->context)
        while (zmq_ctx_term(s->context) != 0 && zmq_errno() == EINTR)
            ;
    s->context = NULL;
    if (1000 * (cli_now() - start) < LINGER_MS) /* libzmq does not tell whether it gave up */
        return SVS_OK;
    return svi_fail(err, SVS_IO, "%s did not take the last messages within %d s: up to %d of them are lost",
                    s->address, LINGER_MS / 1000, QUEUE);
}
