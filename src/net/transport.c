#include "engine/transport.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

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

struct option {
    int name, value;
};

static bool set_options(void *socket, const struct option *options, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (zmq_setsockopt(socket, options[i].name, &options[i].value, sizeof(int)) != 0)
            return false;
    return true;
}

/* A dead peer would hold its connection for ever, a silent one its place in the queue of newcomers. */
static bool guard(void *socket) {
    static const struct option options[] = {
        {ZMQ_HANDSHAKE_IVL, SVI_HANDSHAKE_MS}, {ZMQ_BACKLOG, 1024},           {ZMQ_TCP_KEEPALIVE, 1},
        {ZMQ_TCP_KEEPALIVE_IDLE, 60},          {ZMQ_TCP_KEEPALIVE_INTVL, 10}, {ZMQ_TCP_KEEPALIVE_CNT, 6}};
    return set_options(socket, options, sizeof options / sizeof options[0]);
}

static bool configure(void *socket, const struct svi_socket_plan *plan) {
    const struct option all[] = {
        {ZMQ_LINGER, plan->linger_ms}, {ZMQ_RCVHWM, plan->queue}, {ZMQ_SNDHWM, plan->queue}};
    const struct option mandatory = {ZMQ_ROUTER_MANDATORY, 1};
    if (!set_options(socket, all, 3) || (plan->type == ZMQ_ROUTER && !set_options(socket, &mandatory, 1)) ||
        (plan->bind && !guard(socket)))
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

static bool set_text(void *socket, int option, const char *text) {
    return zmq_setsockopt(socket, option, text, strlen(text)) == 0;
}

/* ZMQ_ZAP_ENFORCE_DOMAIN: nobody comes in while there is no authenticator. Debian's libzmq knows it by number
 * only, others may not: the authenticator is there first in any case. */
#define ENFORCE 93

static bool be_server(void *socket, const char *domain, const struct svi_identity *id) {
    const struct option server = {ZMQ_CURVE_SERVER, 1}, enforce = {ENFORCE, 1};
    (void)set_options(socket, &enforce, 1);
    return set_options(socket, &server, 1) && set_text(socket, ZMQ_CURVE_SECRETKEY, id->secret_key) &&
           set_text(socket, ZMQ_ZAP_DOMAIN, domain);
}

svs_code svi_socket_secure(void *socket, const struct svi_socket_plan *plan, const struct svi_identity *id,
                           svs_error *err) {
    if (!id->on)
        return SVS_OK;
    if (plan->bind ? be_server(socket, plan->setting, id) : svi_identity_connect(id, socket))
        return SVS_OK;
    return svi_fail(err, SVS_IO, "no CURVE for the setting `%s`: %s", plan->setting, zmq_strerror(errno));
}

const char *svi_message_user(zmq_msg_t *m) {
    const char *user = zmq_msg_gets(m, "User-Id");
    return user ? user : "";
}

int svi_message_connection(zmq_msg_t *m) {
    return zmq_msg_get(m, ZMQ_SRCFD);
}

void *svi_refusals_new(void *context, void *socket) {
    char address[64];
    snprintf(address, sizeof address, "inproc://refusals-%p", socket);
    void *events = zmq_socket(context, ZMQ_PAIR);
    if (events &&
        zmq_socket_monitor(socket, address,
                           ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                               ZMQ_EVENT_HANDSHAKE_FAILED_AUTH) == 0 &&
        zmq_connect(events, address) == 0)
        return events;
    svi_socket_close(&events);
    return NULL;
}

bool svi_refusals_any(void *refusals) {
    zmq_msg_t m;
    bool any = false;
    zmq_msg_init(&m);
    while (refusals && zmq_msg_recv(&m, refusals, ZMQ_DONTWAIT) >= 0)
        any = true;
    zmq_msg_close(&m);
    return any;
}

/* libzmq waits for who reads its events: it must have ended before the reader does. */
void svi_refusals_free(void **refusals, void *socket) {
    if (*refusals)
        zmq_socket_monitor(socket, NULL, 0);
    svi_socket_close(refusals);
}

/* libzmq replaces the file of an ipc address, also one behind which another process listens: that one would
 * get nothing any more, and nobody would know. */
static bool is_taken(const char *address) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const char *path = address + 6;
    if (strncmp(address, "ipc://", 6) != 0 || strlen(path) >= sizeof to.sun_path)
        return false;
    memcpy(to.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool taken = fd >= 0 && (connect(fd, (const struct sockaddr *)&to, sizeof to) == 0 || errno == EAGAIN);
    if (fd >= 0)
        close(fd);
    errno = EADDRINUSE;
    return taken;
}

svs_code svi_socket_attach(void *socket, const struct svi_socket_plan *plan, const char *address,
                           char *actual, svs_error *err) {
    char wanted[SVI_ADDRESS_MAX];
    any_port(address, wanted, sizeof wanted);
    size_t size = SVI_ADDRESS_MAX;
    if (plan->bind && is_taken(wanted))
        return refuse(plan, address, err);
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
