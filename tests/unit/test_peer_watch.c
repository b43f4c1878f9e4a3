/* Which disconnections are reported: those of peers that were cut for the size of a message, and no others;
 * the table of connections. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/connections.h"
#include "net/peer_watch.h"
#include "net/transport.h"

#define WAIT_MS 10000
#define LIMIT   10000 /* bytes */

struct fixture {
    void *context, *pull;
    svi_peer_watch *monitor;
    char address[SVI_ADDRESS_MAX];
};

static int set_up(void **state) {
    static struct fixture f;
    const struct svi_socket_plan plan = {"in", ZMQ_PULL, true, 1000, 0, LIMIT, 0};
    f.context = zmq_ctx_new();
    const struct svi_flood_limits limits = {.message = LIMIT, .queue = 1000};
    f.pull = svi_socket_new(f.context, &plan, NULL);
    svi_flood_guard_limit(SVI_ROLE_INGEST, &limits);
    f.monitor = svi_peer_watch_new(f.context, NULL, 100, NULL);
    assert_non_null(f.monitor);
    assert_int_equal(svi_peer_watch_add(f.monitor, "in", f.pull, NULL), SVS_OK);
    assert_int_equal(svi_socket_attach(f.pull, &plan, "tcp://127.0.0.1:*", f.address, NULL), SVS_OK);
    *state = &f;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *f = *state;
    svi_peer_watch_leave(f->monitor);
    svi_socket_close(&f->pull);
    svi_peer_watch_free(&f->monitor);
    assert_null(f->monitor);
    zmq_ctx_term(f->context);
    return 0;
}

static void *peer(struct fixture *f) {
    void *s = zmq_socket(f->context, ZMQ_PUSH);
    int never = -1, none = 0;
    zmq_setsockopt(s, ZMQ_RECONNECT_IVL, &never, sizeof never);
    zmq_setsockopt(s, ZMQ_LINGER, &none, sizeof none);
    assert_int_equal(zmq_connect(s, f->address), 0);
    return s;
}

static void takes(struct fixture *f, void *from, size_t size) {
    static char bytes[LIMIT];
    zmq_pollitem_t item = {f->pull, 0, ZMQ_POLLIN, 0};
    assert_int_equal(zmq_send(from, bytes, size, 0), (int)size);
    assert_int_equal(zmq_poll(&item, 1, WAIT_MS), 1);
    assert_int_equal(zmq_recv(f->pull, bytes, sizeof bytes, 0), (int)size);
}

static void is_cut(struct fixture *f, void *from, size_t size) {
    static char bytes[1 << 22];
    struct svi_cut cut;
    struct pollfd item = {svi_peer_watch_fd(f->monitor), POLLIN, 0};
    assert_true(size <= sizeof bytes);
    assert_int_equal(zmq_send(from, bytes, size, 0), (int)size);
    assert_int_equal(poll(&item, 1, WAIT_MS), 1);
    assert_true(svi_peer_watch_next_cut(f->monitor, &cut));
    assert_memory_equal(cut.peer, "127.0.0.1:", 10);
    assert_true(cut.socket == SVI_ROLE_INGEST && cut.why == SVI_FLOOD_SIZE);
    assert_false(svi_peer_watch_next_cut(f->monitor, &cut));
}

static void test_cut(void **state) {
    struct fixture *f = *state;
    void *good = peer(f);
    takes(f, good, LIMIT);
    for (int i = 0; i < 20; i++) {
        void *fresh = peer(f), *used = peer(f);
        is_cut(f, fresh, LIMIT + 1);
        takes(f, used, 1);
        is_cut(f, used, 1 << (14 + i % 9));
        takes(f, good, 5);
        zmq_close(fresh);
        zmq_close(used);
    }
    zmq_close(good);
}

/* Peers that leave are not told; the cut one after them is, and it is the only one. */
static void test_leaving(void **state) {
    struct fixture *f = *state;
    for (int i = 0; i < 50; i++) {
        void *leaving = peer(f);
        takes(f, leaving, (size_t)(i % 2 ? LIMIT : 3));
        zmq_close(leaving);
    }
    void *wrong = zmq_socket(f->context, ZMQ_SUB);
    zmq_connect(wrong, f->address);
    void *last = peer(f);
    takes(f, last, 1);
    zmq_close(wrong);
    is_cut(f, last, LIMIT + 1);
    zmq_close(last);
}

static void test_end_with_peers(void **state) {
    struct fixture *f = *state;
    struct svi_cut cut;
    void *peers[10];
    for (int i = 0; i < 10; i++)
        takes(f, peers[i] = peer(f), 1);
    for (int i = 0; i < 10; i++)
        zmq_close(peers[i]);
    assert_false(svi_peer_watch_next_cut(f->monitor, &cut));
}

/* ---- connections */

static bool nobody(void *with, const char *user) {
    return strcmp(user, with) != 0;
}

static bool is_ended(int fd) {
    char byte;
    return recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0;
}

static void test_connections(void **state) {
    struct svi_connections c;
    int pair[4][2];
    (void)state;
    assert_int_equal(svi_connections_init(&c, 3, NULL), SVS_OK);
    assert_int_equal(c.limit, 3);
    for (int i = 0; i < 4; i++)
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair[i]), 0);
    for (int i = 0; i < 3; i++)
        assert_non_null(svi_connections_open(&c, pair[i][0], 1, true, 1000 + i));
    const int file = open("/dev/null", O_RDONLY);
    assert_null(svi_connections_open(&c, file, 1, true, 1003)); /* the number of one that ended, reused */
    close(file);
    assert_int_equal(c.count, 3);
    assert_non_null(
        svi_connections_open(&c, pair[3][0], 1, true, 1004)); /* local ones are believed to speak */
    assert_int_equal(c.count, 3);
    assert_true(is_ended(pair[3][1]) && !is_ended(pair[0][1]));

    assert_true(svi_connections_subscribed(&c, pair[0][0], "alice", false));
    assert_true(svi_connections_subscribed(&c, pair[1][0], "bob", false));
    for (int i = 0; i < SVI_IDLE_MAX; i++)
        assert_true(svi_connections_subscribed(&c, pair[2][0], "", true));
    assert_true(svi_connections_subscribed(&c, pair[2][0], "", false));
    assert_false(svi_connections_subscribed(&c, pair[2][0], "", true));
    svi_connections_review(&c, 0, nobody, "bob");
    svi_connections_sweep(&c);
    assert_false(is_ended(pair[1][1])); /* another socket */
    svi_connections_review(&c, 1, nobody, "bob");
    assert_int_equal(c.marked, 1);
    svi_connections_sweep(&c);
    assert_int_equal(c.marked, 0);
    assert_true(is_ended(pair[1][1]) && !is_ended(pair[0][1]));
    assert_int_equal(c.count, 2);
    struct svi_connection gone = svi_connections_close(&c, pair[1][0]);
    assert_true(gone.cut);
    svi_connection_release(&gone);
    gone = svi_connections_close(&c, pair[0][0]);
    assert_false(gone.cut);
    svi_connection_release(&gone);
    assert_int_equal(c.count, 1);
    assert_int_equal(svi_connections_close(&c, pair[0][0]).copy, 0);
    assert_int_equal(svi_connections_close(&c, -1).copy, 0);
    assert_int_equal(svi_connections_close(&c, 1 << 30).copy, 0);
    svi_connections_mark(&c, pair[2][0]);
    svi_connections_clear(&c);
    for (int i = 0; i < 8; i++)
        close(pair[i / 2][i % 2]);
}

/* A connection over tcp that comes from this address; the end that was accepted, the other one in *peer. */
static int comes_from(int listener, const char *address, int *peer) {
    struct sockaddr_in to = {.sin_family = AF_INET}, from = {.sin_family = AF_INET};
    socklen_t size = sizeof to;
    assert_int_equal(getsockname(listener, (struct sockaddr *)&to, &size), 0);
    assert_int_equal(inet_pton(AF_INET, address, &from.sin_addr), 1);
    assert_int_equal(inet_pton(AF_INET, "127.0.0.1", &to.sin_addr), 1);
    *peer = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(*peer, (struct sockaddr *)&from, sizeof from), 0);
    assert_int_equal(connect(*peer, (struct sockaddr *)&to, sizeof to), 0);
    int fd = accept(listener, NULL, NULL);
    assert_true(fd >= 0);
    return fd;
}

/* Eight places, two of them for control alone. A step: where a peer comes from, to which socket, when; whose
 * connection is ended then (-1: nobody's). */
static void test_homes(void **state) {
    static const struct {
        const char *home;
        int socket, at, ended;
    } steps[] = {{"127.0.0.2", 0, 0, -1},    {"127.0.0.2", 0, 10, -1}, {"127.0.0.2", 1, 20, -1},
                 {"127.0.0.2", 0, 30, -1},   {"127.0.0.2", 0, 40, -1}, {"127.0.0.3", 0, 50, -1},
                 {"127.0.0.3", 0, 60, 0},  /* of the home that has most: its oldest */
                 {"127.0.0.3", 1, 70, 7},  /* it would not have more then, and is active */
                 {"127.0.0.2", 0, 80, 8},  /* the same home */
                 {"127.0.0.2", 2, 90, -1}, /* control has its places */
                 {"127.0.0.2", 2, 100, -1},  {"127.0.0.3", 2, 110, 9}, /* and only those to give */
                 {"127.0.0.4", 2, 1500, 10},                           /* now all are idle */
                 {"127.0.0.4", 0, 1510, 1}};
    enum { STEPS = sizeof steps / sizeof steps[0] };
    struct svi_connections c;
    int ours[STEPS], peers[STEPS], listener = socket(AF_INET, SOCK_STREAM, 0);
    bool gone[STEPS] = {false};
    (void)state;
    assert_int_equal(listen(listener, 1), 0); /* at a port that the system chooses */
    assert_int_equal(svi_connections_init(&c, 8, NULL), SVS_OK);
    assert_int_equal(c.reserved, 2);
    for (int i = 0; i < STEPS; i++) {
        ours[i] = comes_from(listener, steps[i].home, &peers[i]);
        assert_non_null(svi_connections_open(&c, ours[i], steps[i].socket, true, 1000 + steps[i].at));
        if (steps[i].ended >= 0)
            gone[steps[i].ended] = true;
        for (int k = 0; k <= i; k++)
            assert_int_equal(is_ended(peers[k]), gone[k]);
    }
    svi_connections_clear(&c);
    for (int i = 0; i < STEPS; i++) {
        close(ours[i]);
        close(peers[i]);
    }
    close(listener);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_connections), cmocka_unit_test(test_homes),
        cmocka_unit_test_setup_teardown(test_cut, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_leaving, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_end_with_peers, set_up, tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
