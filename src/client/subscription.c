#include "client/subscription.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "net/transport.h"
#include "wire/decode.h"
#include "wire/fields.h"

#define TOPICS 256 /* that are followed; events of further ones are all taken as new */

struct followed {
    char topic[SVI_TOPIC_MAX];
    size_t length;
    uint64_t epoch, seq; /* of the last event */
};

svs_code subscription_open(struct subscription *s, void *context, const char *address,
                           const struct svi_identity *identity, int queue, svs_error *err) {
    const struct svi_socket_plan plan = {"out", ZMQ_SUB, false, queue, 0, -1, 0};
    *s = (struct subscription){.followed = svi_alloc_array(TOPICS, sizeof *s->followed)};
    zmq_msg_init(&s->topic);
    zmq_msg_init(&s->payload);
    if (!s->followed)
        return svi_fail_memory(err, "a subscription");
    if (!(s->socket = svi_socket_new(context, &plan, err)))
        return err->code;
    s->keyed = identity->on;
    s->monitor = svi_monitor_new(context, s->socket, SVI_HANDSHAKE_FAILED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
    return svi_socket_connect(s->socket, &plan, identity, address, err);
}

void subscription_close(struct subscription *s) {
    if (!s->followed)
        return;
    zmq_msg_close(&s->topic);
    zmq_msg_close(&s->payload);
    svi_monitor_free(&s->monitor, s->socket);
    svi_socket_close(&s->socket);
    svi_free(s->followed);
    s->followed = NULL;
}

svs_code subscription_add(struct subscription *s, const char *prefix, svs_error *err) {
    if (zmq_setsockopt(s->socket, ZMQ_SUBSCRIBE, prefix, strlen(prefix)) == 0)
        return SVS_OK;
    return svi_fail(err, SVS_IO, "cannot subscribe: %s", zmq_strerror(errno));
}

static enum svi_topic subscription_kind(const char *topic, size_t length) {
    for (int t = 0; t < SVI_TOPIC_COUNT; t++) {
        const char *name = svi_topic_name((enum svi_topic)t);
        const size_t n = strlen(name);
        if (length > n && memcmp(topic, name, n) == 0 && topic[n] == '.')
            return (enum svi_topic)t;
    }
    return SVI_TOPIC_COUNT;
}

/* NULL: too many topics, or one that is too long. */
static struct followed *subscription_find(struct subscription *s, const char *topic, size_t length,
                                          bool *known) {
    for (int i = 0; i < s->topics; i++)
        if (s->followed[i].length == length && memcmp(s->followed[i].topic, topic, length) == 0) {
            *known = true;
            return &s->followed[i];
        }
    if (s->topics == TOPICS || length > SVI_TOPIC_MAX)
        return NULL;
    struct followed *f = &s->followed[s->topics++];
    memcpy(f->topic, topic, length);
    f->length = length;
    return f;
}

/* False: a retained event that was seen already. */
static bool subscription_follow(struct subscription *s, struct subscription_event *e) {
    static const struct svi_field fields[] = {
        {.name = "epoch", .type = SVI_FIELD_UINT, .to = offsetof(struct followed, epoch)},
        {.name = "seq", .type = SVI_FIELD_UINT, .to = offsetof(struct followed, seq)}};
    struct followed now = {0};
    bool known = false;
    if (svi_fields_read("event", fields, 2, e->payload, (const uint8_t *)e->payload + e->size, &now, NULL) !=
        SVS_OK)
        return true;
    struct followed *last = subscription_find(s, e->topic, e->topic_length, &known);
    known = known && last->epoch == now.epoch;
    if (known && now.seq <= last->seq)
        return false;
    if (known)
        e->lost = (int64_t)(now.seq - last->seq - 1);
    if (last) {
        last->epoch = now.epoch;
        last->seq = now.seq;
    }
    return true;
}

bool subscription_next(struct subscription *s, struct subscription_event *e) {
    struct svi_item map;
    subscription_look(s);
    while (zmq_msg_recv(&s->topic, s->socket, ZMQ_DONTWAIT) >= 0) {
        int frames = 1; /* of an event: two, topic and payload */
        for (bool more = zmq_msg_more(&s->topic);
             more && zmq_msg_recv(&s->payload, s->socket, ZMQ_DONTWAIT) >= 0;
             more = zmq_msg_more(&s->payload))
            frames++;
        *e = (struct subscription_event){.topic = zmq_msg_data(&s->topic),
                                         .topic_length = zmq_msg_size(&s->topic),
                                         .payload = zmq_msg_data(&s->payload),
                                         .size = zmq_msg_size(&s->payload)};
        e->kind = subscription_kind(e->topic, e->topic_length);
        if (frames != 2 || svi_msgpack_check(e->payload, e->size, SVI_DEPTH_MAX, NULL) != SVS_OK)
            continue;
        svi_item_read(e->payload, &map);
        if (map.type == SVI_MAP && subscription_follow(s, e))
            return true;
    }
    return false;
}

void subscription_look(struct subscription *s) {
    int event, value;
    while (svi_monitor_next(s->monitor, &event, &value)) {
        s->met = s->met || event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED;
        s->refused = s->refused || (s->keyed && event != ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
    }
}

bool subscription_refused(struct subscription *s) {
    subscription_look(s);
    const bool refused = s->refused;
    s->refused = false;
    return refused;
}
