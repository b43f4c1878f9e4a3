/* Events of svmstream as MQTT messages on PREFIX/STREAM/KIND, of a key PREFIX/STREAM/KIND/KEY. Scores have a
 * subscription of their own: they come with every sample, and what overflows a queue must not be an alert. */
#include "events.h"

#include <inttypes.h>
#include <string.h>

#include "log.h"
#include "wire/json.h"

#define QUEUE   1000 /* events that may wait in each socket */
#define AT_ONCE 100  /* events handed on before other work is looked at */

/* One subscription to those of `kinds` that are to be published; none at all where that leaves no kind. A
 * topic of svmstream is kind.stream.key, so a prefix of it selects kind and stream. */
static svs_code mqtt_events_connect(struct subscription *s, const struct options *o, unsigned kinds,
                                    void *context, svs_error *err) {
    char prefix[2 * SVI_TOPIC_MAX];
    kinds &= o->kinds;
    svs_code code = kinds ? subscription_open(s, context, o->out, &o->identity, QUEUE, err) : SVS_OK;
    for (int k = 0; k < SVI_TOPIC_COUNT && code == SVS_OK; k++) {
        snprintf(prefix, sizeof prefix, "%s.%.*s%s", svi_topic_name((enum svi_topic)k), SVI_TOPIC_MAX,
                 o->stream ? o->stream : "", o->stream ? "." : "");
        code = kinds >> k & 1 ? subscription_add(s, prefix, err) : SVS_OK;
    }
    return code;
}

int mqtt_events_open(struct events *e, const struct options *o, struct counters *c, struct broker *b,
                     void *context) {
    const unsigned scores = 1u << SVI_TOPIC_SCORE;
    svs_error err;
    *e = (struct events){.options = o, .counters = c, .broker = b};
    if (mqtt_events_connect(&e->subscription[0], o, ~scores, context, &err) == SVS_OK &&
        mqtt_events_connect(&e->subscription[1], o, scores, context, &err) == SVS_OK)
        return 0;
    mqtt_log("--out %s: %s", o->out, err.text);
    return 1;
}

void mqtt_events_close(struct events *e) {
    for (int i = 0; i < EVENT_SOCKETS; i++)
        subscription_close(&e->subscription[i]);
    svi_bytes_clear(&e->text);
}

/* While the broker takes no more nothing is polled: events wait in the sockets, and what overflows there is
 * counted as lost by its sequence numbers (subscription_next). */
int mqtt_events_items(const struct events *e, zmq_pollitem_t *items) {
    int n = 0;
    for (int i = 0; i < EVENT_SOCKETS && mqtt_broker_ready(e->broker); i++)
        if (e->subscription[i].socket)
            items[n++] = (zmq_pollitem_t){e->subscription[i].socket, 0, ZMQ_POLLIN, 0};
    return n;
}

/* "alert.pump1." as "PREFIX/pump1/alert", "alert.pump1.mixer%207." as "PREFIX/pump1/alert/mixer%207". False:
 * no topic of svmstream's. */
static bool mqtt_events_topic(const struct subscription_event *event, const char *prefix, char *out,
                              size_t size) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    char decoded[SVS_KEY_MAX + 1];
    if (event->kind == SVI_TOPIC_COUNT)
        return false;
    const char *kind = svi_topic_name(event->kind), *stream = event->topic + strlen(kind) + 1,
               *end = event->topic + event->topic_length, *c = stream;
    while (c < end && *c && strchr(letters, *c))
        c++;
    /* An empty name, or none behind the kind, is no topic of svmstream's. */
    if (c == stream || c == end || *c != '.')
        return false;
    const int length = (int)(c++ - stream), encoded = c < end ? (int)(end - c - 1) : 0;
    if (c < end && !svi_topic_key(c, (size_t)(end - c), decoded))
        return false;
    return snprintf(out, size, "%s/%.*s/%s%s%.*s", prefix, length, stream, kind, encoded ? "/" : "", encoded,
                    c) < (int)size;
}

/* The first loss is logged, all are counted: a flood of events must not become a flood of lines. */
static void mqtt_events_publish(struct events *e, const struct subscription_event *event) {
    char topic[768];
    if (!mqtt_events_topic(event, e->options->prefix, topic, sizeof topic))
        return;
    if (event->lost > 0 && e->counters->lost == 0)
        mqtt_log("%" PRId64 " %s events were published faster than they could be forwarded and are lost "
                 "(further ones are only counted)",
                 event->lost, svi_topic_name(event->kind));
    e->counters->lost += event->lost;
    e->counters->events++;
    e->text.size = 0;
    /* A model is retained: a later subscriber has the newest at once. */
    if (svi_json_msgpack(&e->text, event->payload, event->size, NULL) == SVS_OK)
        mqtt_broker_publish(e->broker, topic, e->text.data, e->text.size, event->kind == SVI_TOPIC_MODEL);
}

/* Reports a refusal, once: the key may be admitted later, and the socket keeps trying. Samples would go on
 * without a word, and no alert would ever reach the broker. */
static void mqtt_events_show_refusal(struct events *e) {
    for (int i = 0; i < EVENT_SOCKETS && !e->refused; i++) {
        if (!e->subscription[i].socket || !subscription_refused(&e->subscription[i]))
            continue;
        mqtt_log("%s refuses the connection: no alert or model is published until its allow file has this "
                 "key with the role subscribe (or give --publish none)",
                 e->options->out);
        e->refused = true;
    }
}

/* At most AT_ONCE from each socket, so that messages of the broker and samples have their turn. */
void mqtt_events_turn(struct events *e) {
    struct subscription_event event;
    mqtt_events_show_refusal(e);
    for (int i = 0; i < EVENT_SOCKETS; i++)
        for (int n = 0; n < AT_ONCE && e->subscription[i].socket && mqtt_broker_ready(e->broker) &&
                        subscription_next(&e->subscription[i], &event);
             n++)
            mqtt_events_publish(e, &event);
}
