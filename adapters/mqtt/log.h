/* log.h: what the adapter reports on standard error, and what it counts.
 *
 * One line an occasion, each beginning with the program's name. Text that arrived over the network is escaped
 * before it is logged. What may happen often is logged the first few times only; the counters go on. */
#ifndef MQTT_LOG_H
#define MQTT_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../common/adapter_log.h"

/* X(name, "what is counted"). samples = acked + refused + dropped + waiting, with acknowledgement. */
#define COUNTERS(X)                                                                                          \
    X(received, "MQTT messages received")                                                                    \
    X(bad, "of these: payload or name that no sample can be made of")                                        \
    X(unmatched, "of these: topics that no filter or template of ours matches, or features not listed")      \
    X(own, "of these: what this adapter, or another with its prefix, has published")                         \
    X(skipped, "values in JSON objects that are no numbers")                                                 \
    X(missing, "values that are null, nan or out of range: missing in the samples")                          \
    X(overwritten, "values replaced by a newer one before a sample took them up (--join all, SECONDS)")      \
    X(keys, "keys whose values are held now (--key)")                                                        \
    X(samples, "samples made")                                                                               \
    X(sent, "messages sent to svmstream, repeated ones too")                                                 \
    X(acked, "samples that svmstream acknowledged")                                                          \
    X(refused, "samples that svmstream refused")                                                             \
    X(dropped, "samples dropped because the buffer was full")                                                \
    X(events, "events received from svmstream")                                                              \
    X(lost, "events of svmstream that did not arrive here")                                                  \
    X(published, "MQTT messages that the broker has taken")                                                  \
    X(reconnects, "times that the connection to the broker was made again")                                  \
    X(restarts, "times that svmstream returned without its state")

struct counters {
#define X(name, text) int64_t name;
    COUNTERS(X)
#undef X
};

#define MQTT_PROGRAM             "svmstream-mqtt"
#define mqtt_log_few(count, ...) adapter_log_few(MQTT_PROGRAM, count, __VA_ARGS__)
#define mqtt_log(...)            mqtt_log_few(0, __VA_ARGS__)
#define mqtt_need(count, size)   adapter_need(MQTT_PROGRAM, count, size)
#define mqtt_no_memory(size)     adapter_no_memory(MQTT_PROGRAM, size)

/* All counters as `name N, name N`, or as a JSON object. `waiting`: samples in the buffer. Returns `out`. */
#define COUNTERS_BYTES 2048
char *mqtt_counters_text(const struct counters *c, int64_t waiting, bool json, char out[COUNTERS_BYTES]);

#endif
