/* sample.h: a sample as svmstream takes it: {x: {name: value}, ts, id?} and, acknowledged, {src, n}. */
#ifndef MQTT_SAMPLE_H
#define MQTT_SAMPLE_H

#include <msgpack.h>

#include "join.h"

/* Replaces the content of `out`. Missing values are nil. With `src` (or NULL) room for the number is left at
 * the end. */
void sample_encode(msgpack_sbuffer *out, const struct join *j, double ts, const struct sample_id *id,
                   const char *src);

/* Writes the number into an encoded sample with `src`. */
void sample_number(unsigned char *bytes, size_t size, uint64_t n);

/* {op: hello, src} */
void hello_encode(msgpack_sbuffer *out, const char *src);

#endif
