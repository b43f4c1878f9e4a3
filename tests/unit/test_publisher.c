/* The publisher over inproc sockets: what is sent, what is kept, what is left out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "net/publisher.h"
#include "net/transport.h"

#define WAIT_MS 10000

struct fixture {
    void *context;
    struct svi_access access;
    svi_publisher *publisher;
    char address[SVI_ADDRESS_MAX];
};

static void open_access(struct svi_access *access, void *context) {
    struct svi_settings s;
    svi_settings_default(&s);
    assert_int_equal(svi_access_open(access, &s, context, NULL), SVS_OK);
}

static int set_up(void **state) {
    static struct fixture f;
    f.context = zmq_ctx_new();
    open_access(&f.access, f.context);
    f.publisher = svi_publisher_new(&f.access, "inproc://events", "pump1", f.address, NULL);
    assert_non_null(f.publisher);
    *state = &f;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *f = *state;
    svi_access_leave(&f->access);
    svi_publisher_free(&f->publisher);
    assert_null(f->publisher);
    svi_access_close(&f->access);
    zmq_ctx_term(f->context);
    return 0;
}

/* Waits until the publisher has something from its subscribers, then lets it take that. */
static void settle(struct fixture *f) {
    zmq_pollitem_t item = {svi_publisher_socket(f->publisher), 0, ZMQ_POLLIN, 0};
    assert_int_equal(zmq_poll(&item, 1, WAIT_MS), 1);
    svi_publisher_subscriptions(f->publisher);
}

static void *subscriber(struct fixture *f, const char *topic) {
    void *s = zmq_socket(f->context, ZMQ_SUB);
    assert_int_equal(zmq_connect(s, "inproc://events"), 0);
    assert_int_equal(zmq_setsockopt(s, ZMQ_SUBSCRIBE, topic, strlen(topic)), 0);
    settle(f);
    return s;
}

static void unsubscribe(struct fixture *f, void *s, const char *topic) {
    assert_int_equal(zmq_setsockopt(s, ZMQ_UNSUBSCRIBE, topic, strlen(topic)), 0);
    settle(f);
}

static void publish(struct fixture *f, enum svi_topic topic, uint64_t seq) {
    struct svi_event e = {.topic = topic, .stream = "pump1", .epoch = 1, .seq = seq};
    svs_model m = {.method = "alsvm"};
    if (topic == SVI_TOPIC_MODEL)
        e.as.model.model = &m;
    if (topic == SVI_TOPIC_ERROR)
        e.as.error.reason = "because";
    assert_int_equal(svi_publisher_publish(f->publisher, &e), SVS_OK);
}

/* The next message's topic is `topic`; "" = nothing more is waiting. Over inproc what was sent is there at
 * once. */
static void expect(void *s, const char *topic) {
    char name[SVI_TOPIC_MAX + 1] = "", payload[1000];
    int n = zmq_recv(s, name, sizeof name - 1, ZMQ_DONTWAIT);
    if (n >= 0)
        assert_true(zmq_recv(s, payload, sizeof payload, ZMQ_DONTWAIT) > 0);
    assert_string_equal(name, topic);
}

static void test_wanted(void **state) {
    struct fixture *f = *state;
    for (int t = 0; t < SVI_TOPIC_COUNT; t++)
        assert_false(svi_publisher_wanted(f->publisher, (enum svi_topic)t));
    void *a = subscriber(f, "s"), *b = subscriber(f, "score.pump1."), *c = subscriber(f, "score.pump10.");
    assert_true(svi_publisher_wanted(f->publisher, SVI_TOPIC_SCORE));
    assert_true(svi_publisher_wanted(f->publisher, SVI_TOPIC_STATS));
    assert_false(svi_publisher_wanted(f->publisher, SVI_TOPIC_MODEL));
    unsubscribe(f, a, "s");
    assert_true(svi_publisher_wanted(f->publisher, SVI_TOPIC_SCORE));
    assert_false(svi_publisher_wanted(f->publisher, SVI_TOPIC_STATS));
    void *d = subscriber(f, "score.pump1.");
    zmq_close(b);
    zmq_close(c);
    svi_publisher_subscriptions(f->publisher);
    assert_true(svi_publisher_wanted(f->publisher, SVI_TOPIC_SCORE));
    unsubscribe(f, d, "score.pump1.");
    assert_false(svi_publisher_wanted(f->publisher, SVI_TOPIC_SCORE));
    zmq_close(a);
    zmq_close(d);
}

static void test_retained(void **state) {
    struct fixture *f = *state;
    publish(f, SVI_TOPIC_MODEL, 0);
    publish(f, SVI_TOPIC_SCORE, 0);
    publish(f, SVI_TOPIC_ERROR, 0);
    void *models = subscriber(f, "model.");
    expect(models, "model.pump1.");
    expect(models, "");
    publish(f, SVI_TOPIC_MODEL, 1);
    publish(f, SVI_TOPIC_STATS, 0);
    expect(models, "model.pump1.");
    void *all = subscriber(f, "");
    expect(all, "model.pump1.");
    expect(all, "stats.pump1.");
    expect(all, "");
    expect(models, "model.pump1."); /* again, with its seq */
    void *scores = subscriber(f, "score.");
    expect(scores, "");
    expect(all, "");
    publish(f, SVI_TOPIC_SCORE, 1);
    publish(f, SVI_TOPIC_ERROR, 1);
    expect(scores, "score.pump1.");
    expect(scores, "");
    expect(all, "score.pump1.");
    expect(all, "error.pump1.");
    void *second = subscriber(f, "model."); /* the same subscription, by another peer */
    expect(second, "model.pump1.");
    zmq_close(models);
    zmq_close(all);
    zmq_close(scores);
    zmq_close(second);
}

static void test_nothing_retained_yet(void **state) {
    struct fixture *f = *state;
    void *all = subscriber(f, "");
    expect(all, "");
    publish(f, SVI_TOPIC_STATS, 7);
    expect(all, "stats.pump1.");
    expect(all, "");
    zmq_close(all);
}

static void test_large_models_shorten_the_queue(void **state) {
    struct fixture *f = *state;
    enum { D = 65536 };
    static double W[D], b;
    svs_model m = {.method = "alsvm", .d = D, .rows = 1, .W = W, .b = &b};
    struct svi_event e = {.topic = SVI_TOPIC_MODEL, .stream = "pump1", .as.model.model = &m};
    int queue;
    size_t size = sizeof queue;
    assert_int_equal(zmq_getsockopt(svi_publisher_socket(f->publisher), ZMQ_SNDHWM, &queue, &size), 0);
    assert_int_equal(queue, SVI_PUBLISH_QUEUE);
    assert_int_equal(svi_publisher_publish(f->publisher, &e), SVS_OK);
    assert_int_equal(zmq_getsockopt(svi_publisher_socket(f->publisher), ZMQ_SNDHWM, &queue, &size), 0);
    assert_in_range(queue, 64, SVI_PUBLISH_BYTES / (D * sizeof(double)));
}

/* Each in a context of its own: an access watches one publisher. */
static svi_publisher *publish_at(const char *address, char *actual, struct svi_access *access, void **context,
                                 svs_error *err) {
    *context = zmq_ctx_new();
    open_access(access, *context);
    return svi_publisher_new(access, address, "pump1", actual, err);
}

static void leave(svi_publisher **p, struct svi_access *access, void *context) {
    svi_access_leave(access);
    svi_publisher_free(p);
    svi_access_close(access);
    zmq_ctx_term(context);
}

static void test_addresses(void **state) {
    svs_error err;
    struct svi_access access, second;
    char actual[SVI_ADDRESS_MAX], same[SVI_ADDRESS_MAX];
    void *context, *other;
    (void)state;
    svi_publisher *p = publish_at("tcp://127.0.0.1:0", actual, &access, &context, &err);
    assert_non_null(p);
    assert_non_null(strstr(actual, "tcp://127.0.0.1:"));
    assert_null(strstr(actual, "*"));
    assert_true(actual[16] != '0');
    svi_publisher *none = publish_at(actual, same, &second, &other, &err);
    assert_null(none);
    assert_int_equal(err.code, SVS_IO);
    assert_non_null(strstr(err.text, actual));
    assert_non_null(strstr(err.text, "`out`"));
    leave(&none, &second, other);
    none = publish_at("nonsense", same, &second, &other, &err);
    assert_null(none);
    assert_non_null(strstr(err.text, "tcp://HOST:PORT"));
    leave(&none, &second, other);
    leave(&p, &access, context);
}

/* ---- requests and their return path */

static void test_requests(void **state) {
    struct fixture *f = *state;
    const struct svi_socket_plan plan = {"ctl", ZMQ_ROUTER, true, 10, 0, -1, 0};
    void *router = svi_socket_new(f->context, &plan, NULL);
    assert_int_equal(svi_socket_attach(router, &plan, "inproc://ctl", NULL, NULL), SVS_OK);
    void *req = zmq_socket(f->context, ZMQ_REQ), *dealer = zmq_socket(f->context, ZMQ_DEALER);
    struct svi_request r;
    char reply[16];
    zmq_connect(req, "inproc://ctl");
    zmq_connect(dealer, "inproc://ctl");
    assert_false(svi_request_receive(router, &r));
    zmq_send(req, "ask", 3, 0);
    assert_true(svi_request_receive(router, &r));
    assert_int_equal(r.route_count, 2);
    assert_memory_equal(zmq_msg_data(&r.body), "ask", 3);
    assert_true(svi_request_reply(router, &r, "yes", 3));
    svi_request_close(&r);
    assert_int_equal(zmq_recv(req, reply, sizeof reply, 0), 3);
    zmq_send(dealer, "ask", 3, 0);
    assert_true(svi_request_receive(router, &r));
    assert_int_equal(r.route_count, 1);
    assert_true(svi_request_reply(router, &r, "no", 2));
    svi_request_close(&r);
    assert_int_equal(zmq_recv(dealer, reply, sizeof reply, 0), 2);
    for (int i = 0; i < 20; i++) /* more in front than a route holds */
        zmq_send(dealer, "x", 1, ZMQ_SNDMORE);
    zmq_send(dealer, "last", 4, 0);
    assert_true(svi_request_receive(router, &r));
    assert_int_equal(r.route_count, SVI_ROUTE_MAX);
    assert_memory_equal(zmq_msg_data(&r.body), "last", 4);
    svi_request_close(&r);
    struct svi_request stranger = {.route_count = 1};
    zmq_msg_init_size(&stranger.route[0], 5);
    zmq_msg_init(&stranger.body);
    assert_false(svi_request_reply(router, &stranger, "gone", 4)); /* told, not swallowed */
    svi_request_close(&stranger);
    zmq_close(dealer);
    zmq_close(req);
    svi_socket_close(&router);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_wanted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_retained, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_nothing_retained_yet, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_large_models_shorten_the_queue, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_addresses, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_requests, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
