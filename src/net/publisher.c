/* The XPUB socket, and the record of its subscribers (publisher.h).
 *
 * Subscriptions arrive as messages of the socket and are taken in turns of TURN, so that a client that sends
 * many of them cannot block the loop. Each sets a bit in the topics that it is a prefix of or, if it extends
 * beyond the topic of the stream, is added to the prefixes of that topic. Retained messages are sent after
 * the turn, once for all that asked; the current state of keys is sent for SHOWN keys a turn. An event
 * without subscribers is not encoded unless it must be retained. */
#include "net/publisher.h"

#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "net/prefixes.h"

#define LINGER_MS 2000 /* how long a subscriber that has stopped reading may delay the end */
#define COMMAND_MAX                                                                                          \
    4096              /* bytes; a peer that sends a longer frame to subscribe or in its handshake is cut     \
                       */
#define COMMANDS 1000 /* commands of one subscriber that may be queued */
#define TURN     1000 /* commands taken at once */
#define SHOWN    50   /* keys whose current state is sent in a turn */
#define LARGE                                                                                                \
    (SVI_PUBLISH_BYTES / SVI_PUBLISH_QUEUE) /* bytes; a full queue of smaller payloads is within the limit   \
                                             */

struct topic {
    char name[SVI_TOPIC_MAX];
    size_t length;
    bool retained;
    bool prefix[SVI_TOPIC_MAX + 1]; /* prefix[n]: the first n bytes have a subscriber */
    int prefixes;                   /* how many are set */
    bool resend;                    /* a new subscription is owed the retained message */
    struct svi_bytes last;          /* retained payload; empty = none yet */
    struct svi_prefixes keys;       /* subscriptions to single keys, which extend `name` */
};

/* The large payloads that libzmq holds. It outlives the publisher, whose queues are freed later. */
struct held {
    atomic_size_t bytes;
    atomic_int users; /* the publisher, and each payload */
};

/* A large payload, freed by libzmq on any of its threads when the last subscriber has it. */
struct large {
    struct held *held;
    size_t size;
    unsigned char data[];
};

struct svi_publisher {
    struct svi_access *access;
    void *socket;
    int queue; /* current limit of messages */
    struct held *held;
    struct topic topics[SVI_TOPIC_COUNT];
    struct svi_bytes payload;
    svi_present *present; /* provides the state of a key; NULL: the stream has no keys */
    void *user;
    int shown; /* keys shown in this turn */
};

static void held_release(struct held *h) {
    if (atomic_fetch_sub(&h->users, 1) == 1)
        svi_free(h);
}

static void large_free(void *data, void *hint) {
    struct large *l = hint;
    (void)data;
    atomic_fetch_sub(&l->held->bytes, l->size);
    held_release(l->held);
    svi_free(l);
}

static void name_topics(svi_publisher *p, const char *stream) {
    for (int t = 0; t < SVI_TOPIC_COUNT; t++) {
        p->topics[t].length = svi_topic_write((enum svi_topic)t, stream, NULL, p->topics[t].name);
        p->topics[t].retained = svi_topic_retained((enum svi_topic)t);
    }
}

svi_publisher *svi_publisher_new(struct svi_access *access, const char *address, const char *stream,
                                 char *actual, svs_error *err) {
    svi_publisher *p = svi_new(sizeof *p, "the publisher", err);
    if (!p)
        return NULL;
    if (!(p->held = svi_new(sizeof *p->held, "the publisher", err))) {
        svi_free(p);
        return NULL;
    }
    atomic_store(&p->held->users, 1);
    p->queue = SVI_PUBLISH_QUEUE;
    name_topics(p, stream);
    const struct svi_socket_plan plan = {
        "out", ZMQ_XPUB, true, p->queue, LINGER_MS, COMMAND_MAX, .received = COMMANDS};
    /* Verbose: libzmq also reports repeated subscriptions, each of which is owed the retained message. */
    const int verbose = 1;
    p->access = access;
    if ((p->socket = svi_access_socket(access, &plan, err)) &&
        zmq_setsockopt(p->socket, ZMQ_XPUB_VERBOSE, &verbose, sizeof verbose) == 0 &&
        svi_socket_attach(p->socket, &plan, address, actual, err) == SVS_OK)
        return p;
    /* The monitor must end before the socket that it belongs to is closed. */
    svi_access_leave(access);
    svi_publisher_free(&p);
    return NULL;
}

void svi_publisher_free(svi_publisher **p) {
    if (!*p)
        return;
    svi_socket_close(&(*p)->socket);
    for (int t = 0; t < SVI_TOPIC_COUNT; t++) {
        svi_bytes_clear(&(*p)->topics[t].last);
        svi_prefixes_clear(&(*p)->topics[t].keys);
    }
    svi_bytes_clear(&(*p)->payload);
    held_release((*p)->held);
    svi_free(*p);
    *p = NULL;
}

void *svi_publisher_socket(const svi_publisher *p) {
    return p->socket;
}

static bool publisher_matches(const struct topic *t, const char *prefix, size_t length) {
    return length <= t->length && memcmp(prefix, t->name, length) == 0;
}

/* Does the subscription select keys of this topic? One with bytes that no key can have in a topic selects
 * none. */
static bool is_of_keys(const svi_publisher *p, const struct topic *t, const char *prefix, size_t length) {
    if (!p->present || length <= t->length || length >= SVI_TOPIC_MAX ||
        memcmp(prefix, t->name, t->length) != 0)
        return false;
    for (size_t i = t->length; i < length; i++) {
        const char c = prefix[i];
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        const bool ends = c == '.' && i == length - 1;
        if (!plain && c != '_' && c != '-' && c != '%' && !ends)
            return false;
    }
    return true;
}

/* False: no memory, nothing is sent. */
static bool send_large(svi_publisher *p, const struct svi_bytes *payload) {
    zmq_msg_t m;
    struct large *l = svi_alloc_plain(sizeof *l + payload->size);
    if (!l)
        return false;
    memcpy(l->data, payload->data, payload->size);
    l->held = p->held;
    l->size = payload->size;
    if (zmq_msg_init_data(&m, l->data, l->size, large_free, l) != 0) {
        svi_free(l);
        return false;
    }
    atomic_fetch_add(&p->held->users, 1);
    atomic_fetch_add(&p->held->bytes, l->size);
    if (zmq_msg_send(&m, p->socket, ZMQ_DONTWAIT) < 0)
        zmq_msg_close(&m);
    return true;
}

static void send_message(svi_publisher *p, const char *name, size_t length, const struct svi_bytes *payload) {
    /* XPUB drops what a full queue cannot take and never returns EAGAIN; other errors cannot be repaired
     * here. */
    if (zmq_send(p->socket, name, length, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0)
        return;
    if (payload->size < LARGE || !send_large(p, payload))
        zmq_send(p->socket, payload->data, payload->size, ZMQ_DONTWAIT);
}

/* Sends the current state of a key to a new subscriber of its topic. libzmq has no way to address one
 * subscriber, so others of the key receive it as well. */
static void show_key(svi_publisher *p, const struct topic *t, const char *name, size_t length) {
    char key[SVS_KEY_MAX + 1];
    const enum svi_topic topic = (enum svi_topic)(t - p->topics);
    if (!t->retained || !svi_topic_key(name + t->length, length - t->length, key))
        return;
    p->shown++;
    p->payload.size = 0;
    if (p->present(p->user, topic, key, &p->payload) == SVS_OK && p->payload.size > 0)
        send_message(p, name, length, &p->payload);
}

static void publisher_subscribe(svi_publisher *p, struct topic *t, bool on, const char *prefix,
                                size_t length) {
    if (publisher_matches(t, prefix, length)) {
        /* Idempotent: libzmq in verbose mode reports a subscription as often as it is made. */
        t->prefixes += (int)on - (int)t->prefix[length];
        t->prefix[length] = on;
        t->resend = t->resend || (on && t->retained);
    } else if (is_of_keys(p, t, prefix, length) && on) {
        svi_prefixes_add(&t->keys, prefix, length);
        show_key(p, t, prefix, length);
    } else if (is_of_keys(p, t, prefix, length)) {
        svi_prefixes_remove(&t->keys, prefix, length);
    }
}

/* One of ten: what peers may subscribe to stays bounded. */
static bool is_marker(const char *prefix, size_t length) {
    const size_t head = sizeof SVI_TOPIC_MARK - 1;
    return length == head + 1 && memcmp(prefix, SVI_TOPIC_MARK, head) == 0 && prefix[head] >= '0' &&
           prefix[head] <= '9';
}

/* Answers a subscription to a marker. The queue of a subscriber keeps the order: what arrives before the
 * marker is all that was published before, and its earlier subscriptions hold. */
static void send_marker(svi_publisher *p, const char *prefix, size_t length) {
    static const uint8_t empty_map = 0x80;
    if (zmq_send(p->socket, prefix, length, ZMQ_SNDMORE | ZMQ_DONTWAIT) >= 0)
        zmq_send(p->socket, &empty_map, sizeof empty_map, ZMQ_DONTWAIT);
}

static bool is_useful(const svi_publisher *p, const char *prefix, size_t length) {
    bool any = is_marker(prefix, length);
    for (int t = 0; t < SVI_TOPIC_COUNT && !any; t++)
        any =
            publisher_matches(&p->topics[t], prefix, length) || is_of_keys(p, &p->topics[t], prefix, length);
    return any;
}

static void take_subscription(svi_publisher *p, zmq_msg_t *m) {
    const char *bytes = zmq_msg_data(m);
    size_t n = zmq_msg_size(m);
    const struct svi_frames frame = {1, n, n}; /* frames of a multi-part message arrive one by one */
    if (!svi_access_takes(p->access, SVI_ROLE_SUBSCRIBE, m, &frame) || n == 0 ||
        (bytes[0] != 0 && bytes[0] != 1) ||
        !svi_access_subscription(p->access, m, is_useful(p, bytes + 1, n - 1)))
        return;
    if (bytes[0] == 1 && is_marker(bytes + 1, n - 1))
        send_marker(p, bytes + 1, n - 1);
    for (int t = 0; t < SVI_TOPIC_COUNT; t++)
        publisher_subscribe(p, &p->topics[t], bytes[0] == 1, bytes + 1, n - 1);
}

/* Shortens the queues where subscribers that do not read hold more than SVI_PUBLISH_BYTES of large payloads.
 * Only then: a new ZMQ_SNDHWM is sent to each connection, and libzmq 4.3.4 sends it also to one that is just
 * ending, whose memory may be freed by then. */
static void limit_queue(svi_publisher *p, size_t payload) {
    if (atomic_load(&p->held->bytes) + payload <= SVI_PUBLISH_BYTES)
        return;
    /* It never grows again: the largest payload may return. */
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
    p->shown = 0;
    for (int i = 0; i < TURN && p->shown < SHOWN && zmq_msg_recv(&m, p->socket, ZMQ_DONTWAIT) >= 0; i++)
        take_subscription(p, &m);
    zmq_msg_close(&m);
    /* Retained messages go out once for all subscriptions of this turn; XPUB sends them to every subscriber
     * of the topic, and clients skip a repeated `seq`. */
    for (int t = 0; t < SVI_TOPIC_COUNT; t++) {
        if (p->topics[t].resend && p->topics[t].last.size > 0) {
            limit_queue(p, p->topics[t].last.size);
            send_message(p, p->topics[t].name, p->topics[t].length, &p->topics[t].last);
        }
        p->topics[t].resend = false;
    }
}

bool svi_publisher_wanted(const svi_publisher *p, enum svi_topic topic) {
    const struct topic *t = &p->topics[topic];
    return t->prefixes > 0 || t->keys.count > 0 || t->keys.full;
}

void svi_publisher_show_keys(svi_publisher *p, svi_present *present, void *user) {
    p->present = present;
    p->user = user;
}

svs_code svi_publisher_retain(svi_publisher *p, enum svi_topic topic, const void *payload, size_t size) {
    struct svi_bytes *last = &p->topics[topic].last;
    last->size = 0;
    svs_code code = svi_bytes_append(last, payload, size);
    if (topic != SVI_TOPIC_BANK)
        limit_queue(p, size);
    return code;
}

static svs_code publisher_encode(const struct svi_event *e, struct svi_bytes *payload) {
    payload->size = 0;
    svs_code code = e->payload ? svi_bytes_append(payload, e->payload->data, e->payload->size)
                               : svi_event_encode(e, payload);
    if (code != SVS_OK)
        payload->size = 0;
    return code;
}

/* Publishes an event of a key other than ""; nothing of it is retained. */
static svs_code publish_of_key(svi_publisher *p, const struct topic *t, const struct svi_event *e) {
    char name[SVI_TOPIC_MAX];
    if (!svi_publisher_wanted(p, e->topic))
        return SVS_OK;
    /* The topic is built only after the cheap test: most streams have many keys and few subscriptions. */
    const size_t length = svi_topic_write(e->topic, e->stream, e->key, name);
    if (t->prefixes == 0 && !svi_prefixes_match(&t->keys, name, length))
        return SVS_OK;
    SVI_TRY(publisher_encode(e, &p->payload));
    limit_queue(p, p->payload.size);
    send_message(p, name, length, &p->payload);
    return SVS_OK;
}

/* The bank without the trees that subscribers have; what is retained, for later subscribers, has them all. */
static svs_code publisher_encode_bank(const struct svi_event *e, struct svi_bytes *payload) {
    struct svi_bank_description bank = *e->as.bank;
    struct svi_event brief = *e;
    bank.brief = true;
    brief.as.bank = &bank;
    return publisher_encode(&brief, payload);
}

svs_code svi_publisher_publish(svi_publisher *p, const struct svi_event *e) {
    struct topic *t = &p->topics[e->topic];
    if (e->key && e->key[0])
        return publish_of_key(p, t, e);
    if (!t->retained && t->prefixes == 0)
        return SVS_OK;
    /* A retained topic is encoded in place, so its payload is kept without a copy. */
    struct svi_bytes *payload = t->retained ? &t->last : &p->payload;
    SVI_TRY(publisher_encode(e, payload));
    /* a bank is large and rarely subscribed to; its size alone must not shrink the queue */
    if (e->topic != SVI_TOPIC_BANK || t->prefixes > 0)
        limit_queue(p, payload->size);
    if (t->prefixes == 0)
        return SVS_OK;
    if (e->topic == SVI_TOPIC_BANK && !e->payload) {
        payload = &p->payload;
        SVI_TRY(publisher_encode_bank(e, payload));
    }
    send_message(p, t->name, t->length, payload);
    return SVS_OK;
}
