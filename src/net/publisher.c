#include "net/publisher.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"

#define LINGER_MS 2000 /* that a subscriber which has stopped reading may delay the end */
#define COMMAND_MAX                                                                                          \
    4096              /* bytes; a peer that sends a longer frame to subscribe or in its handshake is cut     \
                       */
#define COMMANDS 1000 /* of one subscriber that may wait here */
#define TURN     1000 /* commands that are taken at once */

struct topic {
    char name[SVI_TOPIC_MAX];
    size_t length;
    bool retained;
    bool prefix[SVI_TOPIC_MAX + 1]; /* prefix[n]: the first n bytes have a subscriber */
    int prefixes;                   /* how many are set */
    bool resend;                    /* a subscription came for which the retained message is due */
    struct svi_bytes last;          /* retained payload, empty = none yet */
};

struct svi_publisher {
    struct svi_access *access;
    void *socket;
    int queue; /* present limit, messages */
    struct topic topics[SVI_TOPIC_COUNT];
    struct svi_bytes payload;
};

static void name_topics(svi_publisher *p, const char *stream) {
    static const bool retained[] = {
#define X(constant, name, keep, text) keep,
        SVI_TOPICS(X)
#undef X
    };
    for (int t = 0; t < SVI_TOPIC_COUNT; t++) {
        p->topics[t].length = svi_topic_write((enum svi_topic)t, stream, NULL, p->topics[t].name);
        p->topics[t].retained = retained[t];
    }
}

svi_publisher *svi_publisher_new(struct svi_access *access, const char *address, const char *stream,
                                 char *actual, svs_error *err) {
    svi_publisher *p = svi_alloc(sizeof *p);
    if (!p) {
        svi_fail_memory(err, "the publisher");
        return NULL;
    }
    p->queue = SVI_PUBLISH_QUEUE;
    name_topics(p, stream);
    const struct svi_socket_plan plan = {
        "out", ZMQ_XPUB, true, p->queue, LINGER_MS, COMMAND_MAX, .received = COMMANDS};
    const int verbose = 1;
    p->access = access;
    if ((p->socket = svi_access_socket(access, &plan, err)) &&
        zmq_setsockopt(p->socket, ZMQ_XPUB_VERBOSE, &verbose, sizeof verbose) == 0 &&
        svi_socket_attach(p->socket, &plan, address, actual, err) == SVS_OK)
        return p;
    svi_access_leave(access);
    svi_publisher_free(&p);
    return NULL;
}

void svi_publisher_free(svi_publisher **p) {
    if (!*p)
        return;
    svi_socket_close(&(*p)->socket);
    for (int t = 0; t < SVI_TOPIC_COUNT; t++)
        svi_bytes_clear(&(*p)->topics[t].last);
    svi_bytes_clear(&(*p)->payload);
    svi_free(*p);
    *p = NULL;
}

void *svi_publisher_socket(const svi_publisher *p) {
    return p->socket;
}

static bool publisher_matches(const struct topic *t, const char *prefix, size_t length) {
    return length <= t->length && memcmp(prefix, t->name, length) == 0;
}

static void publisher_subscribe(struct topic *t, bool on, const char *prefix, size_t length) {
    if (!publisher_matches(t, prefix, length))
        return;
    t->prefixes += (int)on - (int)t->prefix[length];
    t->prefix[length] = on;
    t->resend = t->resend || (on && t->retained);
}

static bool is_useful(const svi_publisher *p, const char *prefix, size_t length) {
    bool any = false;
    for (int t = 0; t < SVI_TOPIC_COUNT && !any; t++)
        any = publisher_matches(&p->topics[t], prefix, length);
    return any;
}

static void take_subscription(svi_publisher *p, zmq_msg_t *m) {
    const char *bytes = zmq_msg_data(m);
    size_t n = zmq_msg_size(m);
    const struct svi_frames frame = {1, n}; /* those of a message are taken one by one */
    if (!svi_access_takes(p->access, SVI_ROLE_SUBSCRIBE, m, &frame) || n == 0 ||
        (bytes[0] != 0 && bytes[0] != 1) ||
        !svi_access_subscription(p->access, m, is_useful(p, bytes + 1, n - 1)))
        return;
    for (int t = 0; t < SVI_TOPIC_COUNT; t++)
        publisher_subscribe(&p->topics[t], bytes[0] == 1, bytes + 1, n - 1);
}

static void send_event(svi_publisher *p, const struct topic *t, const struct svi_bytes *payload) {
    /* XPUB drops what a full queue cannot take and never says EAGAIN; nothing else can be mended here. */
    if (zmq_send(p->socket, t->name, t->length, ZMQ_SNDMORE | ZMQ_DONTWAIT) >= 0)
        zmq_send(p->socket, payload->data, payload->size, ZMQ_DONTWAIT);
}

/* Keeps the queue of a subscriber that does not read within SVI_PUBLISH_BYTES; halving, so that it is set
 * only a few times. */
static void limit_queue(svi_publisher *p, size_t payload) {
    int queue = p->queue;
    while (queue > 64 && (double)queue * (double)payload > SVI_PUBLISH_BYTES)
        queue /= 2;
    if (queue != p->queue)
        zmq_setsockopt(p->socket, ZMQ_SNDHWM, &queue, sizeof queue);
    p->queue = queue;
}

void svi_publisher_subscriptions(svi_publisher *p) {
    zmq_msg_t m;
    zmq_msg_init(&m);
    for (int i = 0; i < TURN && zmq_msg_recv(&m, p->socket, ZMQ_DONTWAIT) >= 0; i++)
        take_subscription(p, &m);
    zmq_msg_close(&m);
    for (int t = 0; t < SVI_TOPIC_COUNT; t++) {
        if (p->topics[t].resend && p->topics[t].last.size > 0) {
            limit_queue(p, p->topics[t].last.size);
            send_event(p, &p->topics[t], &p->topics[t].last);
        }
        p->topics[t].resend = false;
    }
}

bool svi_publisher_wanted(const svi_publisher *p, enum svi_topic topic) {
    return p->topics[topic].prefixes > 0;
}

svs_code svi_publisher_retain(svi_publisher *p, enum svi_topic topic, const void *payload, size_t size) {
    struct svi_bytes *last = &p->topics[topic].last;
    last->size = 0;
    svs_code code = svi_bytes_append(last, payload, size);
    if (topic != SVI_TOPIC_BANK)
        limit_queue(p, size);
    return code;
}

svs_code svi_publisher_publish(svi_publisher *p, const struct svi_event *e) {
    struct topic *t = &p->topics[e->topic];
    if (!t->retained && t->prefixes == 0)
        return SVS_OK;
    struct svi_bytes *payload = t->retained ? &t->last : &p->payload;
    payload->size = 0;
    svs_code code = e->payload ? svi_bytes_append(payload, e->payload->data, e->payload->size)
                               : svi_event_encode(e, payload);
    if (code != SVS_OK) {
        payload->size = 0;
        return code;
    }
    if (e->topic != SVI_TOPIC_BANK || t->prefixes > 0) /* which is large, and few ask for it */
        limit_queue(p, payload->size);
    if (t->prefixes > 0)
        send_event(p, t, payload);
    return SVS_OK;
}
