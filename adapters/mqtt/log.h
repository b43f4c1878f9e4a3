/* say.h: what the adapter tells on standard error, and what it counts.
 *
 * One line an occasion, each beginning with the program's name. Text that came over the network is escaped
 * before it is told. What may happen often is told the first few times only; the counters go on. */
#ifndef MQTT_SAY_H
#define MQTT_SAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TOLD 5 /* times that the same kind of trouble is told */

/* X(name, "what is counted"). samples = acked + refused + dropped + waiting, with acknowledgement. */
#define COUNTERS(X)                                                                                          \
    X(received, "MQTT messages that came in")                                                                \
    X(bad, "of these: payload or name that no sample can be made of")                                        \
    X(unmatched, "of these: topics that no filter or template of ours matches, or features not listed")      \
    X(own, "of these: what this adapter, or another with its prefix, has published")                         \
    X(skipped, "values in JSON objects that are no numbers")                                                 \
    X(overwritten, "values replaced by a newer one before a sample took them up (--join all, SECONDS)")      \
    X(samples, "samples made")                                                                               \
    X(sent, "messages sent to svmstream, repeated ones too")                                                 \
    X(acked, "samples that svmstream acknowledged")                                                          \
    X(refused, "samples that svmstream refused")                                                             \
    X(dropped, "samples dropped because the buffer was full")                                                \
    X(events, "events that came from svmstream")                                                             \
    X(lost, "events of svmstream that never came here")                                                      \
    X(published, "MQTT messages that the broker has taken")                                                  \
    X(reconnects, "times that the connection to the broker was made again")                                  \
    X(restarts, "times that svmstream was met again with empty hands")

struct counters {
#define X(name, text) int64_t name;
    COUNTERS(X)
#undef X
};

/* A line on standard error. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same the first TOLD times that `count` (already raised) tells; the last of them says that it is. */
void say_few(int64_t count, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* `length` bytes for people: what is not printable ASCII becomes \xHH; cut short with dots. Returns out. */
const char *shown(char *out, size_t size, const void *bytes, size_t length);

/* All counters as `name N, name N`, or as members of a JSON object. `waiting`: samples in the buffer. */
void counters_text(const struct counters *c, int64_t waiting, FILE *to);
void counters_json(const struct counters *c, int64_t waiting, FILE *to);

/* Memory, zeroed: a small program without any cannot do its work, and ends (exit code 1). */
void *need(size_t count, size_t size);

/* Seconds since 1970, and seconds of a clock that is never set. */
double clock_wall(void);
double clock_steady(void);

#endif
