/* What the flood guard lets through: bytes of one connection in pieces of every size, the limits of a frame
 * and of a message, and with CURVE what waits, heartbeats and deliveries. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <zmq.h>

#include "net/flood_guard.h"
#include "net/transport.h"

enum { GREETING = 64, BOX = 33, MORE = 1, LONG = 2, COMMAND = 4 };

static int cuts, last_socket;
static enum svi_flood last_reason;

static void note_cut(void *with, int socket, int fd, enum svi_flood why) {
    (void)with;
    (void)fd;
    cuts++;
    last_socket = socket;
    last_reason = why;
}

/* A connection of this process with itself: ours is the end that accepts. */
struct pair {
    int listener, peer, ours;
};

static struct pair connected(void) {
    struct sockaddr_un any = {.sun_family = AF_UNIX}; /* the system chooses a name */
    struct sockaddr_un name;
    socklen_t size = sizeof name;
    struct pair p = {.listener = socket(AF_UNIX, SOCK_STREAM, 0), .peer = socket(AF_UNIX, SOCK_STREAM, 0)};
    assert_int_equal(bind(p.listener, (struct sockaddr *)&any, sizeof any.sun_family), 0);
    assert_int_equal(listen(p.listener, 1), 0);
    assert_int_equal(getsockname(p.listener, (struct sockaddr *)&name, &size), 0);
    assert_int_equal(connect(p.peer, (struct sockaddr *)&name, size), 0);
    p.ours = accept4(p.listener, NULL, NULL, SOCK_CLOEXEC);
    svi_flood_guard_assign(p.ours, 0);
    svi_flood_guard_assign(p.peer, 0); /* it was connected in this process, and so is followed, too */
    assert_true(p.ours >= 0);
    return p;
}

static void ended(struct pair *p) {
    close(p->peer);
    close(p->ours);
    close(p->listener);
}

static size_t put_frame(uint8_t *out, uint8_t flags, size_t size) {
    size_t at = 0;
    out[at++] = flags;
    for (int i = flags & LONG ? 7 : 0; i >= 0; i--)
        out[at++] = (uint8_t)((uint64_t)size >> (8 * i));
    memset(out + at, 0xab, size);
    return at + size;
}

/* A greeting and so many frames of a handshake. */
static size_t put_handshake(uint8_t *out, int frames) {
    size_t at = GREETING;
    memset(out, 0, GREETING);
    for (int i = 0; i < frames; i++)
        at += put_frame(out + at, COMMAND, 26);
    return at;
}

/* Sends `n` bytes in pieces; how many of them arrive? */
static size_t arrives(struct pair *p, const uint8_t *bytes, size_t n, size_t piece) {
    uint8_t got[4096];
    size_t all = 0;
    for (size_t at = 0; at < n; at += piece) {
        const size_t now = n - at < piece ? n - at : piece;
        if (write(p->peer, bytes + at, now) != (ssize_t)now)
            return all;
        for (size_t left = now; left > 0;) {
            ssize_t r = recv(p->ours, got, left < sizeof got ? left : sizeof got, 0);
            if (r <= 0)
                return all;
            assert_memory_equal(got, bytes + all, (size_t)r);
            all += (size_t)r;
            left -= (size_t)r;
            if (cuts > 0)
                return all;
        }
    }
    return all;
}

static int set_up(void **state) {
    const struct svi_flood_limits plain = {.message = 300, .queue = 1},
                                  curve = {.message = 300, .queue = 1, .curve = true},
                                  out = {.message = 300, .queue = 1, .curve = true, .settles = true};
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    cuts = 0;
    svi_flood_guard_arm(note_cut, NULL);
    svi_flood_guard_limit(0, &plain);
    svi_flood_guard_limit(1, &out);
    svi_flood_guard_limit(2, &curve);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    svi_flood_guard_disarm();
    return 0;
}

/* Good messages, then one that is too much: all before its last frame's header arrives, however it comes. */
static void test_pieces(void **state) {
    static const struct {
        uint8_t flags[4];
        int size[4];
        enum svi_flood why;
    } cases[] = {{{0}, {301}, SVI_FLOOD_SIZE},
                 {{MORE, MORE, 0}, {100, 100, 101}, SVI_FLOOD_SIZE},
                 {{LONG | MORE, COMMAND, MORE}, {290, 5, 11}, SVI_FLOOD_SIZE},
                 {{LONG | MORE, COMMAND | MORE, 0}, {290, 5, 6}, SVI_FLOOD_SIZE}};
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        for (size_t piece = 1; piece < 900; piece = piece < 12 ? piece + 1 : piece * 2) {
            uint8_t bytes[2048];
            size_t n = put_handshake(bytes, 1), before = 0;
            n += put_frame(bytes + n, LONG, 300);
            n += put_frame(bytes + n, MORE, 0);
            n += put_frame(bytes + n, MORE, 100);
            n += put_frame(bytes + n, 0, 200);
            n += put_frame(bytes + n, COMMAND, 11); /* a heartbeat */
            for (int i = 0; i < 4 && cases[c].size[i]; i++) {
                before = n;
                n += put_frame(bytes + n,
                               cases[c].size[i] > 255 ? cases[c].flags[i] | LONG : cases[c].flags[i],
                               (size_t)cases[c].size[i]);
            }
            struct pair p = connected();
            cuts = 0;
            const size_t got = arrives(&p, bytes, n, piece);
            assert_int_equal(cuts, 1);
            assert_int_equal(last_reason, cases[c].why);
            assert_true(got <= before + 8 && got + piece >= before); /* of its header there may be a part */
            char byte;
            assert_int_equal(recv(p.ours, &byte, 1, 0), 0);
            ended(&p);
        }
}

static void test_frames(void **state) {
    uint8_t bytes[1024];
    (void)state;
    for (int more = 0; more < 2; more++) {
        struct pair p = connected();
        size_t n = put_handshake(bytes, 1);
        for (int i = 0; i < SVI_FRAMES_MAX - 1 + more; i++)
            n += put_frame(bytes + n, MORE, 0);
        n += put_frame(bytes + n, 0, 44);
        n += put_frame(bytes + n, 0, 1);
        cuts = 0;
        const size_t got = arrives(&p, bytes, n, n);
        assert_int_equal(cuts, more);
        assert_true((got == n) == !more);
        assert_true(!more || last_reason == SVI_FLOOD_FRAMES);
        ended(&p);
    }
}

/* A frame of the handshake that is too large is not told: it may be anybody. */
static void test_handshake(void **state) {
    const struct svi_flood_limits wide = {.message = 1 << 20, .queue = 1};
    static uint8_t bytes[GREETING + 5000];
    (void)state;
    svi_flood_guard_limit(3, &wide);
    struct pair p = connected();
    svi_flood_guard_assign(p.ours, 3);
    size_t n = put_handshake(bytes, 0);
    n += put_frame(bytes + n, COMMAND | LONG, 4097);
    assert_int_equal(arrives(&p, bytes, n, n), GREETING);
    assert_int_equal(cuts, 0);
    ended(&p);
}

/* With CURVE: so many small frames until it is cut, at most `most`; `answer`: each is answered as a heartbeat
 * is; `deliver`: each is delivered. */
static int frames_until_cut(int socket, int most, bool answer, int deliver) {
    uint8_t bytes[1024], theirs[1024];
    struct pair p = connected();
    svi_flood_guard_assign(p.ours, socket);
    cuts = 0;
    size_t n = put_handshake(bytes, 2);
    assert_int_equal(arrives(&p, bytes, n, n), n);
    assert_int_equal(send(p.ours, bytes, GREETING, 0), GREETING); /* as this end greets */
    assert_int_equal(recv(p.peer, theirs, GREETING, 0), GREETING);
    int sent = 0;
    for (; sent < most && cuts == 0; sent++) {
        n = put_frame(bytes, 0, BOX + 7);
        arrives(&p, bytes, n, n);
        n = put_frame(bytes, 0, BOX + 5);
        if (answer && cuts == 0) {
            assert_int_equal(send(p.ours, bytes, n, 0), n);
            assert_int_equal(recv(p.peer, theirs, n, 0), n);
        }
        for (int i = 0; i < deliver; i++)
            svi_flood_guard_delivered(p.ours, 1, socket == 1 ? 0 : 7);
    }
    assert_true(cuts == 0 || (last_reason == SVI_FLOOD_WAITING && last_socket == socket));
    ended(&p);
    return sent;
}

static void test_curve(void **state) {
    (void)state;
    const int alone = frames_until_cut(2, 10000, false, 0);
    assert_in_range(alone, 3, 100);
    assert_int_equal(frames_until_cut(2, 2000, true, 0), 2000);
    assert_int_equal(frames_until_cut(2, 2000, false, 1), 2000);
    assert_int_equal(frames_until_cut(1, 2000, false, 1), 2000);
    assert_int_equal(frames_until_cut(2, 10000, false, 0),
                     alone); /* what was delivered before is no credit */
}

/* ---- libzmq's own heartbeats */

static void set_number(void *socket, int option, int value) {
    assert_int_equal(zmq_setsockopt(socket, option, &value, sizeof value), 0);
}

/* A subscriber that says nothing but that it lives, far more often than the limit would bear, stays. */
static void test_heartbeats(void **state) {
    char public_key[41], secret_key[41], address[SVI_ADDRESS_MAX];
    size_t size = sizeof address;
    void *context = zmq_ctx_new(), *out = zmq_socket(context, ZMQ_XPUB), *sub = zmq_socket(context, ZMQ_SUB);
    (void)state;
    assert_int_equal(zmq_curve_keypair(public_key, secret_key), 0);
    set_number(out, ZMQ_CURVE_SERVER, 1);
    assert_int_equal(zmq_setsockopt(out, ZMQ_CURVE_SECRETKEY, secret_key, 40), 0);
    assert_int_equal(zmq_setsockopt(sub, ZMQ_CURVE_SERVERKEY, public_key, 40), 0);
    assert_int_equal(zmq_setsockopt(sub, ZMQ_CURVE_PUBLICKEY, public_key, 40), 0);
    assert_int_equal(zmq_setsockopt(sub, ZMQ_CURVE_SECRETKEY, secret_key, 40), 0);
    assert_int_equal(zmq_bind(out, "tcp://127.0.0.1:*"), 0);
    assert_int_equal(zmq_getsockopt(out, ZMQ_LAST_ENDPOINT, address, &size), 0);
    set_number(sub, ZMQ_HEARTBEAT_IVL, 1);
    set_number(sub, ZMQ_HEARTBEAT_TIMEOUT, 10000);
    set_number(sub, ZMQ_LINGER, 0);
    set_number(out, ZMQ_LINGER, 0);
    assert_int_equal(zmq_setsockopt(sub, ZMQ_SUBSCRIBE, "", 0), 0);
    void *monitor = svi_monitor_new(context, out, ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED),
         *other = svi_monitor_new(context, sub, ZMQ_EVENT_CONNECTED);
    zmq_pollitem_t event = {monitor, 0, ZMQ_POLLIN, 0}, connected = {other, 0, ZMQ_POLLIN, 0};
    int number, fd;
    assert_int_equal(zmq_connect(sub, address), 0);
    assert_int_equal(zmq_poll(&event, 1, 10000), 1);
    assert_true(svi_monitor_next(monitor, &number, &fd) && number == ZMQ_EVENT_ACCEPTED);
    svi_flood_guard_assign(fd, 2);
    assert_int_equal(zmq_poll(&connected, 1, 10000), 1);
    assert_true(svi_monitor_next(other, &number, &fd) && number == ZMQ_EVENT_CONNECTED);
    svi_flood_guard_assign(fd, 0);
    assert_int_equal(zmq_poll(&event, 1, 400), 0);
    assert_int_equal(cuts, 0);
    svi_monitor_free(&monitor, out);
    svi_monitor_free(&other, sub);
    zmq_close(sub);
    zmq_close(out);
    zmq_ctx_term(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_pieces, set_up, tear_down),
                                       cmocka_unit_test_setup_teardown(test_frames, set_up, tear_down),
                                       cmocka_unit_test_setup_teardown(test_handshake, set_up, tear_down),
                                       cmocka_unit_test_setup_teardown(test_curve, set_up, tear_down),
                                       cmocka_unit_test_setup_teardown(test_heartbeats, set_up, tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
