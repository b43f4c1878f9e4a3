#include "engine/transport.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"

/* libzmq's reasons, and what to do about each. */
static const struct {
    int number;
    const char *text;
} reasons[] = {
    {EADDRINUSE,
     "another process has this address; end it, name another, or tcp://127.0.0.1:* for a free port"},
    {EADDRNOTAVAIL, "this machine has no such address; tcp://127.0.0.1:PORT or tcp://*:PORT are usual"},
    {ENODEV, "this machine has no such interface; tcp://127.0.0.1:PORT or tcp://*:PORT are usual"},
    {EINVAL, "this is not an address; write it as tcp://HOST:PORT or ipc://PATH"},
    {EPROTONOSUPPORT, "this transport is not known; write the address as tcp://HOST:PORT or ipc://PATH"},
    {ENOCOMPATPROTO, "this transport does not fit this kind of socket; use tcp:// or ipc://"},
    {EACCES, "permission denied; ports below 1024 need privileges"},
    {EMFILE, "too many sockets are open"},
};

static svs_code refuse(const struct svi_socket_plan *plan, const char *address, svs_error *err) {
    const char *text = zmq_strerror(errno);
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (reasons[i].number == errno)
            text = reasons[i].text;
    char shown[96];
    svi_escape(shown, sizeof shown, address, strlen(address));
    return svi_fail(err, SVS_IO, "cannot %s %s (setting `%s`): %s", plan->bind ? "bind" : "connect to", shown,
                    plan->setting, text);
}

static bool configure(void *socket, const struct svi_socket_plan *plan) {
    struct {
        int option, value;
    } options[] = {{ZMQ_LINGER, plan->linger_ms}, {ZMQ_RCVHWM, plan->queue}, {ZMQ_SNDHWM, plan->queue}};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        if (zmq_setsockopt(socket, options[i].option, &options[i].value, sizeof(int)) != 0)
            return false;
    int mandatory = 1;
    if (plan->type == ZMQ_ROUTER &&
        zmq_setsockopt(socket, ZMQ_ROUTER_MANDATORY, &mandatory, sizeof mandatory) != 0)
        return false;
    return zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &plan->max_message, sizeof plan->max_message) == 0;
}

/* libzmq spells "any free port" with a star. */
static void any_port(const char *address, char *out, size_t size) {
    size_t n = strlen(address);
    snprintf(out, size, "%s", address);
    if (n > 8 && n < size && strncmp(address, "tcp://", 6) == 0 && strcmp(address + n - 2, ":0") == 0)
        out[n - 1] = '*';
}

void *svi_socket_new(void *context, const struct svi_socket_plan *plan, svs_error *err) {
    void *socket = zmq_socket(context, plan->type);
    if (socket && configure(socket, plan))
        return socket;
    svi_fail(err, SVS_IO, "no socket for the setting `%s`: %s", plan->setting, zmq_strerror(errno));
    svi_socket_close(&socket);
    return NULL;
}

svs_code svi_socket_attach(void *socket, const struct svi_socket_plan *plan, const char *address,
                           char *actual, svs_error *err) {
    char wanted[SVI_ADDRESS_MAX];
    any_port(address, wanted, sizeof wanted);
    size_t size = SVI_ADDRESS_MAX;
    if ((plan->bind ? zmq_bind(socket, wanted) : zmq_connect(socket, wanted)) != 0)
        return refuse(plan, address, err);
    if (actual && zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, actual, &size) != 0)
        return refuse(plan, address, err);
    return SVS_OK;
}

void *svi_socket_open(void *context, const struct svi_socket_plan *plan, const char *address, char *actual,
                      svs_error *err) {
    void *socket = svi_socket_new(context, plan, err);
    if (socket && svi_socket_attach(socket, plan, address, actual, err) != SVS_OK)
        svi_socket_close(&socket);
    return socket;
}

void svi_socket_close(void **socket) {
    if (*socket)
        zmq_close(*socket);
    *socket = NULL;
}

bool svi_request_receive(void *router, struct svi_request *r) {
    r->envelope_count = 0;
    zmq_msg_init(&r->body);
    if (zmq_msg_recv(&r->body, router, ZMQ_DONTWAIT) < 0) {
        zmq_msg_close(&r->body);
        return false;
    }
    while (zmq_msg_more(&r->body)) {
        if (r->envelope_count < SVI_ENVELOPE_MAX) {
            zmq_msg_t *kept = &r->envelope[r->envelope_count++];
            zmq_msg_init(kept);
            zmq_msg_move(kept, &r->body);
        }
        if (zmq_msg_recv(&r->body, router, ZMQ_DONTWAIT) < 0) /* cannot be: a message comes whole */
            break;
    }
    return true;
}

void svi_request_close(struct svi_request *r) {
    for (int i = 0; i < r->envelope_count; i++)
        zmq_msg_close(&r->envelope[i]);
    r->envelope_count = 0;
    zmq_msg_close(&r->body);
}

bool svi_request_reply(void *router, struct svi_request *r, const void *bytes, size_t length) {
    for (int i = 0; i < r->envelope_count; i++)
        if (zmq_msg_send(&r->envelope[i], router, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0)
            return false;
    return zmq_send(router, bytes, length, ZMQ_DONTWAIT) >= 0;
}

bool svi_last_frame(void *socket, zmq_msg_t *m) {
    int got;
    do
        got = zmq_msg_recv(m, socket, ZMQ_DONTWAIT);
    while (got >= 0 && zmq_msg_more(m));
    return got >= 0;
}
