#include "events.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "reply.h"

#define QUEUE   1000 /* events that may wait in each socket */
#define AT_ONCE 100  /* events handed on before other work is looked at */

static bool subscribe(void *socket, const struct options *o, enum kind k) {
    char prefix[96];
    int n = snprintf(prefix, sizeof prefix, "%s.%s%s", kind_names[k], o->stream ? o->stream : "",
                     o->stream ? "." : "");
    return n < (int)sizeof prefix && zmq_setsockopt(socket, ZMQ_SUBSCRIBE, prefix, (size_t)n) == 0;
}

/* One socket for the wanted kinds; NULL when none of them is to be published. */
static bool open_socket(void **socket, const struct options *o, unsigned kinds, void *context) {
    int queue = QUEUE, none = 0;
    kinds &= o->kinds;
    if (kinds == 0)
        return true;
    bool good = (*socket = zmq_socket(context, ZMQ_SUB)) &&
                zmq_setsockopt(*socket, ZMQ_RCVHWM, &queue, sizeof queue) == 0 &&
                zmq_setsockopt(*socket, ZMQ_LINGER, &none, sizeof none) == 0;
    for (int k = 0; k < KIND_COUNT && good; k++)
        good = !(kinds >> k & 1) || subscribe(*socket, o, (enum kind)k);
    return good && svi_identity_connect(&o->identity, *socket) && zmq_connect(*socket, o->out) == 0;
}

int events_open(struct events *e, const struct options *o, struct counters *c, struct broker *b,
                void *context) {
    const unsigned scores = 1u << KIND_SCORE;
    *e = (struct events){.options = o, .counters = c, .broker = b};
    if (open_socket(&e->socket[0], o, ~scores, context) && open_socket(&e->socket[1], o, scores, context))
        return 0;
    say("no subscription at --out %s can be made: %s", o->out, zmq_strerror(errno));
    return 1;
}

void events_close(struct events *e) {
    for (int i = 0; i < EVENT_SOCKETS; i++)
        if (e->socket[i])
            zmq_close(e->socket[i]);
}

int events_items(const struct events *e, zmq_pollitem_t *items) {
    int n = 0;
    for (int i = 0; i < EVENT_SOCKETS && broker_ready(e->broker); i++)
        if (e->socket[i])
            items[n++] = (zmq_pollitem_t){e->socket[i], 0, ZMQ_POLLIN, 0};
    return n;
}

/* "alert.pump1." as "PREFIX/pump1/alert". False: no topic of svmstream's. */
static bool mqtt_topic(const char *topic, const char *prefix, char *out, size_t size, enum kind *kind) {
    const char *stream = strchr(topic, '.');
    size_t length =
        stream ? strspn(stream + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") : 0;
    if (length == 0 || strcmp(stream + 1 + length, ".") != 0)
        return false;
    for (int k = 0; k < KIND_COUNT; k++)
        if (strlen(kind_names[k]) == (size_t)(stream - topic) &&
            strncmp(topic, kind_names[k], strlen(kind_names[k])) == 0) {
            *kind = (enum kind)k;
            return snprintf(out, size, "%s/%.*s/%s", prefix, (int)length, stream + 1, kind_names[k]) <
                   (int)size;
        }
    return false;
}

static struct followed *follow(struct events *e, const char *topic) {
    for (int i = 0; i < e->topics; i++)
        if (strcmp(e->followed[i].topic, topic) == 0)
            return &e->followed[i];
    if (e->topics == FOLLOWED)
        return NULL;
    struct followed *f = &e->followed[e->topics++];
    strcpy(f->topic, topic);
    f->epoch = 0;
    return f;
}

/* False: it was handed on before. */
static bool is_new(struct events *e, const char *topic, const msgpack_object *event) {
    struct followed *f = follow(e, topic);
    uint64_t epoch = map_number(event, "epoch", 0), seq = map_number(event, "seq", 0);
    if (!f)
        return true;
    bool known = f->epoch == epoch && epoch != 0;
    if (known && seq <= f->seq)
        return false;
    if (known && seq > f->seq + 1) {
        bool told = e->counters->lost > 0;
        e->counters->lost += (int64_t)(seq - f->seq - 1);
        if (!told)
            say("%" PRIu64 " %sevents came too fast for here and are lost (further ones are only counted)",
                seq - f->seq - 1, topic);
    }
    f->epoch = epoch;
    f->seq = seq;
    return true;
}

static void publish(struct events *e, const char *topic, bool retain, const msgpack_object *event) {
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);
    if (!to)
        return;
    json_write(to, event);
    if (fclose(to) == 0)
        broker_publish(e->broker, topic, text, length, retain);
    free(text);
}

static void hand_on(struct events *e, const char *topic, zmq_msg_t *payload) {
    char name[512];
    enum kind kind;
    msgpack_unpacked u;
    msgpack_unpacked_init(&u);
    bool good = mqtt_topic(topic, e->options->prefix, name, sizeof name, &kind) &&
                msgpack_unpack_next(&u, zmq_msg_data(payload), zmq_msg_size(payload), NULL) ==
                    MSGPACK_UNPACK_SUCCESS &&
                u.data.type == MSGPACK_OBJECT_MAP;
    if (good && is_new(e, topic, &u.data)) {
        e->counters->events++;
        publish(e, name, kind == KIND_MODEL, &u.data);
    }
    msgpack_unpacked_destroy(&u);
}

/* One event: topic and payload, in two frames. */
static bool take(struct events *e, void *socket) {
    zmq_msg_t topic, payload;
    char name[96];
    zmq_msg_init(&topic);
    zmq_msg_init(&payload);
    bool got = zmq_msg_recv(&topic, socket, ZMQ_DONTWAIT) >= 0;
    bool more = got && zmq_msg_more(&topic);
    int frames = 1;
    while (more && zmq_msg_recv(&payload, socket, ZMQ_DONTWAIT) >= 0) {
        more = zmq_msg_more(&payload);
        frames++;
    }
    if (frames == 2 && zmq_msg_size(&topic) < sizeof name) {
        memcpy(name, zmq_msg_data(&topic), zmq_msg_size(&topic));
        name[zmq_msg_size(&topic)] = '\0';
        hand_on(e, name, &payload);
    }
    zmq_msg_close(&topic);
    zmq_msg_close(&payload);
    return got;
}

void events_turn(struct events *e) {
    for (int i = 0; i < EVENT_SOCKETS; i++)
        for (int n = 0; n < AT_ONCE && e->socket[i] && broker_ready(e->broker); n++)
            if (!take(e, e->socket[i]))
                break;
}
