/* Which disconnections are told: those of peers that libzmq cut for the size of a message, and no others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <poll.h>

#include "engine/monitor.h"
#include "engine/transport.h"

#define WAIT_MS 10000
#define LIMIT   10000 /* bytes; above the 8 KiB that libzmq reads at once */

struct fixture {
    void *context, *pull;
    svi_monitor *monitor;
    char address[SVI_ADDRESS_MAX];
};

static int set_up(void **state) {
    static struct fixture f;
    const struct svi_socket_plan plan = {"in", ZMQ_PULL, true, 1000, 0, LIMIT};
    f.context = zmq_ctx_new();
    f.pull = svi_socket_new(f.context, &plan, NULL);
    f.monitor = svi_monitor_new(f.context, NULL, 100, NULL);
    assert_non_null(f.monitor);
    assert_int_equal(svi_monitor_watch(f.monitor, "in", f.pull, NULL), SVS_OK);
    assert_int_equal(svi_socket_attach(f.pull, &plan, "tcp://127.0.0.1:*", f.address, NULL), SVS_OK);
    *state = &f;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *f = *state;
    svi_monitor_unwatch(f->monitor);
    svi_socket_close(&f->pull);
    svi_monitor_free(&f->monitor);
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
    char name[SVI_PEER_MAX];
    struct pollfd item = {svi_monitor_fd(f->monitor), POLLIN, 0};
    assert_true(size <= sizeof bytes);
    assert_int_equal(zmq_send(from, bytes, size, 0), (int)size);
    assert_int_equal(poll(&item, 1, WAIT_MS), 1);
    assert_true(svi_monitor_take(f->monitor, name));
    assert_memory_equal(name, "127.0.0.1:", 10);
    assert_false(svi_monitor_take(f->monitor, name));
}

/* A sanitized process is too slow for what libzmq tells to be in time. */
static void skip_if_sanitized(void) {
    if (getenv("SVMSTREAM_QUICK"))
        skip();
}

static void test_cut(void **state) {
    skip_if_sanitized();
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
    skip_if_sanitized();
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
    skip_if_sanitized();
    struct fixture *f = *state;
    char name[SVI_PEER_MAX];
    void *peers[10];
    for (int i = 0; i < 10; i++)
        takes(f, peers[i] = peer(f), 1);
    for (int i = 0; i < 10; i++)
        zmq_close(peers[i]);
    assert_false(svi_monitor_take(f->monitor, name));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cut, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_leaving, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_end_with_peers, set_up, tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
