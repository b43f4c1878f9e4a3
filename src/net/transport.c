/* A socket is made in three steps, so that a caller can act between them: options (svi_socket_new), keys
 * (svi_socket_secure), address (svi_socket_attach). All three take the same plan, so every failure can name
 * the setting that the address comes from. The rest are independent services: the sender of a message, socket
 * events, and requests whose route is kept for the reply.
 *
 * Nothing here blocks except zmq_close inside libzmq: the owner of a socket polls it and takes what is there.
 * A socket belongs to the thread that created it. */
#include "net/transport.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"

/* Errors of zmq_bind and zmq_connect, with advice for each. */
static const struct {
    int number;
    const char *text;
} address_errors[] = {
    {EADDRINUSE,
     "another process uses this address; end it, or set another address (tcp://127.0.0.1:* for a free port)"},
    {EADDRNOTAVAIL, "this machine has no such address; use tcp://127.0.0.1:PORT or tcp://*:PORT"},
    {ENODEV, "this machine has no such interface; use tcp://127.0.0.1:PORT or tcp://*:PORT"},
    {EINVAL, "this is not an address; write it as tcp://HOST:PORT or ipc://PATH"},
    {EPROTONOSUPPORT, "unknown transport; write the address as tcp://HOST:PORT or ipc://PATH"},
    {ENOCOMPATPROTO, "this transport does not fit this kind of socket; use tcp:// or ipc://"},
    {EACCES, "permission denied; use a port from 1024 on, which needs no privileges"},
    {EMFILE, "too many sockets are open; raise ulimit -n"},
};

static svs_code refuse_address(const struct svi_socket_plan *plan, const char *address, svs_error *err) {
    const char *text = zmq_strerror(errno);
    for (size_t i = 0; i < sizeof address_errors / sizeof address_errors[0]; i++)
        if (address_errors[i].number == errno)
            text = address_errors[i].text;
    char shown[96];
    svi_escape(shown, sizeof shown, address, strlen(address));
    return svi_fail(err, SVS_IO, "cannot %s %s (setting `%s`): %s", plan->bind ? "bind" : "connect to", shown,
                    plan->setting, text);
}

#define CHECK_MS 1 /* between two checks of an address */

struct option {
    int name, value;
};

static bool set_int_options(void *socket, const struct option *options, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (zmq_setsockopt(socket, options[i].name, &options[i].value, sizeof(int)) != 0)
            return false;
    return true;
}

/* Limits for sockets that bind. Otherwise a dead peer would keep its connection for ever, and a silent one
 * its slot in the accept queue. */
static bool limit_peers(void *socket) {
    static const struct option options[] = {
        {ZMQ_HANDSHAKE_IVL, SVI_HANDSHAKE_MS}, {ZMQ_BACKLOG, 1024},           {ZMQ_TCP_KEEPALIVE, 1},
        {ZMQ_TCP_KEEPALIVE_IDLE, 60},          {ZMQ_TCP_KEEPALIVE_INTVL, 10}, {ZMQ_TCP_KEEPALIVE_CNT, 6}};
    return set_int_options(socket, options, sizeof options / sizeof options[0]);
}

static bool configure_socket(void *socket, const struct svi_socket_plan *plan) {
    const struct option all[] = {{ZMQ_LINGER, plan->linger_ms},
                                 {ZMQ_RCVHWM, plan->received ? plan->received : plan->queue},
                                 {ZMQ_SNDHWM, plan->queue}};
    /* Mandatory: sending to a peer that has left fails, so that a lost reply is counted instead of vanishing.
     */
    const struct option mandatory = {ZMQ_ROUTER_MANDATORY, 1};
    if (!set_int_options(socket, all, 3) ||
        (plan->type == ZMQ_ROUTER && !set_int_options(socket, &mandatory, 1)) ||
        (plan->bind && !limit_peers(socket)))
        return false;
    return zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &plan->max_message, sizeof plan->max_message) == 0;
}

/* Translates what libzmq does not accept: tcp port 0 (libzmq wants "*") and, for binding, the name localhost.
 */
static void spell_address(const char *address, bool bind, char *out, size_t size) {
    static const char local[] = "tcp://localhost:";
    const bool named = bind && strncasecmp(address, local, sizeof local - 1) == 0;
    snprintf(out, size, "%s%s", named ? "tcp://127.0.0.1:" : "", address + (named ? sizeof local - 1 : 0));
    const size_t n = strlen(out);
    if (n > 8 && strncmp(out, "tcp://", 6) == 0 && strcmp(out + n - 2, ":0") == 0)
        out[n - 1] = '*';
}

void *svi_socket_new(void *context, const struct svi_socket_plan *plan, svs_error *err) {
    void *socket = zmq_socket(context, plan->type);
    if (socket && configure_socket(socket, plan))
        return socket;
    svi_fail(err, SVS_IO, "cannot create a socket for the setting `%s`: %s", plan->setting,
             zmq_strerror(errno));
    svi_socket_close(&socket);
    return NULL;
}

static bool set_text_option(void *socket, int option, const char *text) {
    return zmq_setsockopt(socket, option, text, strlen(text)) == 0;
}

/* ZMQ_ZAP_ENFORCE_DOMAIN: without an authenticator no peer is admitted. Debian's libzmq supports the option
 * but its header does not define it; other builds may lack it, so a failure is ignored. The authenticator
 * always starts before the first socket. */
#define ENFORCE 93

static bool secure_server(void *socket, const char *domain, const struct svi_identity *id) {
    const struct option server = {ZMQ_CURVE_SERVER, 1}, enforce = {ENFORCE, 1};
    (void)set_int_options(socket, &enforce, 1);
    return set_int_options(socket, &server, 1) &&
           set_text_option(socket, ZMQ_CURVE_SECRETKEY, id->secret_key) &&
           set_text_option(socket, ZMQ_ZAP_DOMAIN, domain);
}

svs_code svi_socket_secure(void *socket, const struct svi_socket_plan *plan, const struct svi_identity *id,
                           svs_error *err) {
    if (!id->on)
        return SVS_OK;
    if (plan->bind ? secure_server(socket, plan->setting, id) : svi_identity_connect(id, socket))
        return SVS_OK;
    return svi_fail(err, SVS_IO, "cannot set up CURVE for the setting `%s`: %s", plan->setting,
                    zmq_strerror(errno));
}

const char *svi_message_user(zmq_msg_t *m) {
    const char *user = zmq_msg_gets(m, "User-Id");
    return user ? user : "";
}

int svi_message_connection(zmq_msg_t *m) {
    return zmq_msg_get(m, ZMQ_SRCFD);
}

/* ---- monitors */

/* The address contains the pointer of the socket, which is unique among open sockets. */
void *svi_monitor_new(void *context, void *socket, int events) {
    char address[64];
    snprintf(address, sizeof address, "inproc://monitor-%p", socket);
    void *monitor = zmq_socket(context, ZMQ_PAIR);
    if (monitor && zmq_socket_monitor(socket, address, events) == 0 && zmq_connect(monitor, address) == 0)
        return monitor;
    svi_socket_close(&monitor);
    return NULL;
}

/* libzmq blocks until its events are read: monitoring must end before the reader closes. */
void svi_monitor_free(void **monitor, void *socket) {
    if (*monitor)
        zmq_socket_monitor(socket, NULL, 0);
    svi_socket_close(monitor);
}

bool svi_monitor_next(void *monitor, int *event, int *value) {
    uint8_t frame[6]; /* event (16 bits), value (32 bits); a second frame holds the address */
    uint16_t number;
    int32_t number_value;
    if (!monitor || zmq_recv(monitor, frame, sizeof frame, ZMQ_DONTWAIT) != sizeof frame)
        return false;
    memcpy(&number, frame, sizeof number);
    memcpy(&number_value, frame + sizeof number, sizeof number_value);
    zmq_recv(monitor, frame, sizeof frame, ZMQ_DONTWAIT);
    *event = number;
    *value = number_value;
    return true;
}

/* ---- addresses */

/* Tries to bind with the options that libzmq uses: lingering connections of the previous process are no
 * obstacle. */
static bool can_be_bound(const struct addrinfo *a) {
    const int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
    if (fd < 0)
        return true; /* unknown: do not wait */
    const bool good = setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
                      bind(fd, a->ai_addr, a->ai_addrlen) == 0;
    close(fd);
    return good;
}

/* `address`: numeric HOST:PORT, an IPv6 host in brackets. Anything else counts as free, since nothing can be
 * checked. */
static bool tcp_is_free(const char *address) {
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
                                   .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    char host[64];
    const char *colon = strrchr(address, ':');
    const bool brackets = address[0] == '[';
    size_t length = colon ? (size_t)(colon - address) : 0;
    if (length < 3 || length >= sizeof host)
        return true;
    /* The brackets of IPv6 are not part of the host for getaddrinfo. */
    length -= brackets ? 2 : 0;
    memcpy(host, address + brackets, length);
    host[length] = '\0';
    if (getaddrinfo(host, colon + 1, &hints, &found) != 0)
        return true;
    const bool good = can_be_bound(found);
    freeaddrinfo(found);
    return good;
}

/* Is nobody listening? The socket file alone does not matter: the next bind replaces it. EAGAIN means that a
 * listener's queue is full. */
static bool ipc_is_free(const char *path) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof to.sun_path)
        return true;
    memcpy(to.sun_path, path, strlen(path));
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const bool taken =
        fd >= 0 && (connect(fd, (const struct sockaddr *)&to, sizeof to) == 0 || errno == EAGAIN);
    if (fd >= 0)
        close(fd);
    return !taken;
}

static bool address_is_free(const char *address) {
    if (strncmp(address, "tcp://", 6) == 0)
        return tcp_is_free(address + 6);
    return strncmp(address, "ipc://", 6) != 0 || ipc_is_free(address + 6);
}

void svi_address_await_free(const char *address, double seconds) {
    const double end = svi_monotonic() + seconds;
    while (!address_is_free(address) && svi_monotonic() < end)
        poll(NULL, 0, CHECK_MS);
}

/* libzmq replaces the file of an ipc address even while another process listens on it, which would then
 * silently receive nothing. So this is checked first. */
static bool ipc_is_taken(const char *address) {
    const bool taken = strncmp(address, "ipc://", 6) == 0 && !address_is_free(address);
    errno = EADDRINUSE;
    return taken;
}

svs_code svi_socket_attach(void *socket, const struct svi_socket_plan *plan, const char *address,
                           char *actual, svs_error *err) {
    char wanted[SVI_ADDRESS_MAX];
    spell_address(address, plan->bind, wanted, sizeof wanted);
    size_t size = SVI_ADDRESS_MAX;
    if (plan->bind && ipc_is_taken(wanted))
        return refuse_address(plan, address, err);
    if ((plan->bind ? zmq_bind(socket, wanted) : zmq_connect(socket, wanted)) != 0)
        return refuse_address(plan, address, err);
    /* Only now is the port known, if the system chose it. */
    if (actual && zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, actual, &size) != 0)
        return refuse_address(plan, address, err);
    return SVS_OK;
}

svs_code svi_socket_connect(void *socket, const struct svi_socket_plan *plan, const struct svi_identity *id,
                            const char *address, svs_error *err) {
    SVI_TRY(svi_socket_secure(socket, plan, id, err));
    return svi_socket_attach(socket, plan, address, NULL, err);
}

void svi_socket_close(void **socket) {
    if (*socket)
        zmq_close(*socket);
    *socket = NULL;
}

/* ---- requests */

bool svi_request_receive(void *router, struct svi_request *r) {
    struct svi_frames of = {0};
    r->route_count = 0;
    zmq_msg_init(&r->body);
    int got = zmq_msg_recv(&r->body, router, ZMQ_DONTWAIT);
    if (got < 0) {
        zmq_msg_close(&r->body);
        return false;
    }
    /* All frames but the last are the route. Beyond SVI_ROUTE_MAX it is cut: the reply then returns with an
     * incomplete route, which affects only that client. */
    while (zmq_msg_more(&r->body)) {
        if (r->route_count < SVI_ROUTE_MAX) {
            zmq_msg_t *kept = &r->route[r->route_count++];
            zmq_msg_init(kept);
            zmq_msg_move(kept, &r->body);
        }
        /* not expected: libzmq delivers messages whole */
        if ((got = zmq_msg_recv(&r->body, router, ZMQ_DONTWAIT)) < 0)
            break;
        of.count++;
        of.bytes += (size_t)got;
    }
    of.last = got > 0 ? (size_t)got : 0;
    r->frames = of;
    return true;
}

void svi_request_close(struct svi_request *r) {
    for (int i = 0; i < r->route_count; i++)
        zmq_msg_close(&r->route[i]);
    r->route_count = 0;
    zmq_msg_close(&r->body);
}

static bool request_send_route(void *router, struct svi_request *r) {
    for (int i = 0; i < r->route_count; i++)
        if (zmq_msg_send(&r->route[i], router, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0)
            return false;
    return true;
}

bool svi_request_reply_message(void *router, struct svi_request *r, zmq_msg_t *m) {
    return request_send_route(router, r) && zmq_msg_send(m, router, ZMQ_DONTWAIT) >= 0;
}

bool svi_request_reply(void *router, struct svi_request *r, const void *bytes, size_t length) {
    return request_send_route(router, r) && zmq_send(router, bytes, length, ZMQ_DONTWAIT) >= 0;
}

/* Earlier frames are counted and dropped: those in front of the last one are routing, or excess of a peer
 * that does not follow the protocol. */
bool svi_last_frame(void *socket, zmq_msg_t *m, struct svi_frames *frames) {
    struct svi_frames of = {0};
    int got;
    do {
        if ((got = zmq_msg_recv(m, socket, ZMQ_DONTWAIT)) < 0)
            break;
        of.count++;
        of.bytes += of.last = (size_t)got;
    } while (zmq_msg_more(m));
    if (frames)
        *frames = of;
    return got >= 0;
}
