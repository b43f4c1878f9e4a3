/* The publisher over inproc sockets: what is sent, what is kept, what is left out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "net/prefixes.h"
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

/* A marker is answered behind what was published before it, each time it is subscribed to; nothing else that
 * begins so is. */
static void test_marker(void **state) {
    struct fixture *f = *state;
    void *s = subscriber(f, "score.");
    publish(f, SVI_TOPIC_SCORE, 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(zmq_setsockopt(s, ZMQ_SUBSCRIBE, "mark.7", 6), 0);
        settle(f);
        publish(f, SVI_TOPIC_SCORE, 1);
        expect(s, "score.pump1.");
        expect(s, "mark.7");
        expect(s, "score.pump1.");
        unsubscribe(f, s, "mark.7");
        publish(f, SVI_TOPIC_SCORE, 2);
        expect(s, "score.pump1.");
        publish(f, SVI_TOPIC_SCORE, 3);
    }
    static const char *const others[] = {"mark.", "mark.x", "mark.77", "mark"};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(zmq_setsockopt(s, ZMQ_SUBSCRIBE, others[i], strlen(others[i])), 0);
        settle(f);
    }
    expect(s, "score.pump1.");
    expect(s, "");
    zmq_close(s);
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

static int queue_length(const struct fixture *f) {
    int queue;
    size_t size = sizeof queue;
    assert_int_equal(zmq_getsockopt(svi_publisher_socket(f->publisher), ZMQ_SNDHWM, &queue, &size), 0);
    return queue;
}

/* A change of the option while a connection ends can make libzmq use freed memory: only models that wait for
 * a subscriber may cause it. */
static void test_waiting_models_shorten_the_queue(void **state) {
    struct fixture *f = *state;
    enum { D = 65536, FULL = SVI_PUBLISH_BYTES / (D * sizeof(double)) };
    static double W[D], b;
    svs_model m = {.method = "alsvm", .d = D, .rows = 1, .W = W, .b = &b};
    struct svi_event e = {.topic = SVI_TOPIC_MODEL, .stream = "pump1", .as.model.model = &m};
    for (int i = 0; i < 2; i++) /* nobody subscribes */
        assert_int_equal(svi_publisher_publish(f->publisher, &e), SVS_OK);
    void *s = subscriber(f, "model.");
    for (int i = 0; i < FULL + 8; i++) { /* one that reads */
        assert_int_equal(svi_publisher_publish(f->publisher, &e), SVS_OK);
        expect(s, "model.pump1.");
    }
    assert_int_equal(queue_length(f), SVI_PUBLISH_QUEUE);
    for (int i = 0; i < FULL + 8; i++) /* and stops reading */
        assert_int_equal(svi_publisher_publish(f->publisher, &e), SVS_OK);
    assert_in_range(queue_length(f), 64, FULL);
    zmq_close(s);
}

/* ---- keys */

static int shown; /* how often a key was asked for */

static svs_code present(void *user, enum svi_topic topic, const char *key, struct svi_bytes *out) {
    assert_string_equal(user, "mine");
    shown++;
    if (topic != SVI_TOPIC_MODEL || strcmp(key, "nobody") == 0)
        return SVS_UNKNOWN_KEY;
    return svi_bytes_append(out, key, strlen(key));
}

static void publish_of(struct fixture *f, enum svi_topic topic, const char *key) {
    struct svi_event e = {.topic = topic, .stream = "pump1", .epoch = 1, .key = key};
    svs_model m = {.method = "alsvm"};
    if (topic == SVI_TOPIC_MODEL)
        e.as.model.model = &m;
    assert_int_equal(svi_publisher_publish(f->publisher, &e), SVS_OK);
}

/* Broad subscriptions get what all keys say, and what is retained of the stream; those to a key what it says,
 * and how it stands. */
static void test_topics_of_keys(void **state) {
    struct fixture *f = *state;
    shown = 0;
    svi_publisher_show_keys(f->publisher, present, (char[]){"mine"});
    publish_of(f, SVI_TOPIC_MODEL, "");
    publish_of(f, SVI_TOPIC_MODEL, "a b");
    void *all = subscriber(f, ""), *models = subscriber(f, "model.pump1.");
    expect(all, "model.pump1.");
    expect(all, "model.pump1.");
    expect(models, "model.pump1.");
    expect(models, "");
    assert_int_equal(shown, 0);
    publish_of(f, SVI_TOPIC_MODEL, "a b");
    expect(models, "model.pump1.a%20b.");
    expect(all, "model.pump1.a%20b.");
    unsubscribe(f, all, "");
    unsubscribe(f, models, "model.pump1.");
    assert_false(svi_publisher_wanted(f->publisher, SVI_TOPIC_MODEL));
    void *one = subscriber(f, "model.pump1.a%20b.");
    assert_int_equal(shown, 1);
    expect(one, "model.pump1.a%20b.");
    expect(one, "");
    assert_true(svi_publisher_wanted(f->publisher, SVI_TOPIC_MODEL));
    assert_false(svi_publisher_wanted(f->publisher, SVI_TOPIC_SCORE));
    publish_of(f, SVI_TOPIC_MODEL, "a b");
    publish_of(f, SVI_TOPIC_MODEL, "a");
    publish_of(f, SVI_TOPIC_MODEL, "");
    publish_of(f, SVI_TOPIC_SCORE, "a b");
    expect(one, "model.pump1.a%20b.");
    expect(one, "");
    void *scores = subscriber(f, "score.pump1.a"); /* of all keys that begin so */
    expect(scores, "");
    publish_of(f, SVI_TOPIC_SCORE, "a b");
    publish_of(f, SVI_TOPIC_SCORE, "b");
    publish_of(f, SVI_TOPIC_SCORE, "");
    publish_of(f, SVI_TOPIC_SCORE, "a");
    expect(scores, "score.pump1.a%20b.");
    expect(scores, "score.pump1.a.");
    expect(scores, "");
    void *none = subscriber(f, "model.pump1.nobody."), *bank = subscriber(f, "bank.pump1.a.");
    expect(none, "");
    expect(bank, "");
    assert_int_equal(shown, 3);
    unsubscribe(f, one, "model.pump1.a%20b.");
    unsubscribe(f, none, "model.pump1.nobody.");
    assert_false(svi_publisher_wanted(f->publisher, SVI_TOPIC_MODEL));
    void *const every[] = {all, models, one, scores, none, bank};
    for (int i = 0; i < 6; i++)
        zmq_close(every[i]);
}

/* What no topic is begins none, and nobody is asked. */
static void test_topics_of_no_key(void **state) {
    struct fixture *f = *state;
    const char *wrong[] = {"model.pump1.a b.",  "model.pump1.%4.", "model.pump1.%zz.", "model.pump1.%41.",
                           "model.pump1.%20%.", "model.pump1..",   "model.pump10.a.",  "model.pump1.%00."};
    shown = 0;
    svi_publisher_show_keys(f->publisher, present, (char[]){"mine"});
    for (int i = 0; i < 8; i++)
        zmq_close(subscriber(f, wrong[i]));
    char longer[SVI_TOPIC_MAX + 40] = "model.pump1.";
    memset(longer + 12, 'a', SVS_KEY_MAX + 1);
    strcpy(longer + 12 + SVS_KEY_MAX + 1, ".");
    zmq_close(subscriber(f, longer));
    memset(longer + 12, 'a', SVI_TOPIC_MAX);
    zmq_close(subscriber(f, longer));
    assert_int_equal(shown, 0);
}

/* Keys come back from their topics, whatever bytes they have. */
static void test_keys_of_topics(void **state) {
    (void)state;
    char topic[SVI_TOPIC_MAX], key[SVS_KEY_MAX + 1], back[SVS_KEY_MAX + 1];
    for (int i = 0; i < 1000; i++) {
        const int n = 1 + i % SVS_KEY_MAX;
        for (int j = 0; j < n; j++)
            key[j] = (char)(1 + (i * 37 + j * j * 11) % 255);
        key[n] = '\0';
        const size_t length = svi_topic_write(SVI_TOPIC_MODEL, "pump1", key, topic);
        assert_in_range(length, 14, SVI_TOPIC_MAX - 1);
        assert_true(svi_topic_key(topic + 12, length - 12, back));
        assert_string_equal(key, back);
        assert_false(svi_topic_key(topic + 12, length - 13, back));
    }
}

/* Against a plain list: what is added, removed and asked for at random. */
static void test_prefixes(void **state) {
    enum { TEXTS = 200 };
    static char text[TEXTS][12];
    bool there[TEXTS] = {false};
    struct svi_prefixes p = {0};
    struct svi_random random = {7};
    (void)state;
    for (int i = 0; i < TEXTS; i++) /* "", a, b, c, ab, ...: of few letters, so that many begin others */
        for (int j = 0, n = i % 6; j < n; j++)
            text[i][j] = (char)('a' + svi_random_below(&random, 2));
    for (int step = 0; step < 20000; step++) {
        const int i = (int)svi_random_below(&random, TEXTS);
        const bool on = (int)svi_random_below(&random, 5) < (step / 2000) % 2 * 3 + 1;
        for (int j = 0; j < TEXTS; j++) /* equal texts are one */
            there[j] = strcmp(text[i], text[j]) == 0 ? on : there[j];
        (on ? svi_prefixes_add : svi_prefixes_remove)(&p, text[i], strlen(text[i]));
        const char *name = text[svi_random_below(&random, TEXTS)];
        bool expected = false;
        for (int j = 0; j < TEXTS; j++)
            expected = expected || (there[j] && strncmp(name, text[j], strlen(text[j])) == 0);
        assert_int_equal(svi_prefixes_match(&p, name, strlen(name)), expected);
    }
    svi_prefixes_clear(&p);
    for (int i = 0; i <= SVI_PREFIXES_MAX; i++) {
        char name[20];
        svi_prefixes_add(&p, name, (size_t)snprintf(name, sizeof name, "k%d.", i));
        assert_int_equal(p.full, i == SVI_PREFIXES_MAX);
    }
    assert_true(svi_prefixes_match(&p, "other", 5)); /* nobody misses anything */
    svi_prefixes_clear(&p);
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
        cmocka_unit_test_setup_teardown(test_marker, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_retained, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_nothing_retained_yet, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_waiting_models_shorten_the_queue, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_topics_of_keys, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_topics_of_no_key, set_up, tear_down),
        cmocka_unit_test(test_keys_of_topics),
        cmocka_unit_test(test_prefixes),
        cmocka_unit_test_setup_teardown(test_addresses, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_requests, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
