/* broker.h: the MQTT side: one connection to the broker that is made again by itself.
 *
 * The session is persistent (fixed client id): what is sent with QoS 1 while this program is away waits at
 * the broker. PREFIX/status is "online" (retained) while connected; "offline" at a clean end, and as last
 * will. One attempt to connect blocks for CONNECT_SECONDS at most; the pauses between attempts double. */
#ifndef MQTT_BROKER_H
#define MQTT_BROKER_H

#include <mosquitto.h>

#include "mqtt_options.h"
#include "log.h"

/* A message from one of our topics, not our own. */
typedef void broker_message(void *context, const struct mosquitto_message *m);

struct broker {
    const struct options *options;
    struct counters *counters;
    struct mosquitto *client;
    broker_message *message;
    void *context;
    bool connected;                /* the broker has accepted the connection */
    bool subscribed;               /* once at least in the life of this program */
    bool attempted;                /* host and port are known to the library */
    bool reads;                    /* false: what comes in stays at the broker for now */
    bool hopeless;                 /* it refuses us for good: user, password, client id */
    int subscriptions[TOPICS_MAX]; /* message ids of the requests under way; 0: answered */
    int64_t unanswered;            /* of these */
    int64_t outstanding;           /* messages published and not taken yet */
    double since;                  /* svi_monotonic: of the attempt, or of the connection */
    double again;                  /* svi_monotonic: next attempt */
    double pause;                  /* seconds before the one after it */
    int64_t failures;              /* attempts in a row, for mqtt_log_few */
    int64_t short_lived;           /* connections in a row that ended soon after they began */
    int64_t complaints;            /* of the library, for mqtt_log_few */
};

/* 0, or 1 and a line on standard error: certificates cannot be read, ... Owner of `client`
 * (mosquitto_destroy): the caller. */
int mqtt_broker_open(struct broker *b, const struct options *o, struct counters *c, broker_message *message,
                     void *context);

/* It takes messages now. */
bool mqtt_broker_ready(const struct broker *b);

/* QoS 1. `topic` is complete. */
void mqtt_broker_publish(struct broker *b, const char *topic, const void *payload, size_t length,
                         bool retain);

/* On PREFIX/name. */
void mqtt_broker_publish_own(struct broker *b, const char *name, const void *payload, size_t length,
                             bool retain);

/* The descriptor to wait for (-1: none); seconds until something is due. */
int mqtt_broker_socket(const struct broker *b);
double mqtt_broker_wait(const struct broker *b);

/* Reads and writes what is possible, connects when it is time. */
void mqtt_broker_turn(struct broker *b, bool readable, bool writable);

/* Says good-bye: no last will after that. */
void mqtt_broker_leave(struct broker *b);

#endif
