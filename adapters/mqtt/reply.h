/* reply.h: what svmstream answers on `in`, read from msgpack; and keys of msgpack maps. */
#ifndef MQTT_REPLY_H
#define MQTT_REPLY_H

#include <stdbool.h>
#include <stdint.h>

#include <msgpack.h>

struct reply {
    bool ok, final;
    int64_t n, next, credit; /* -1: not told */
    uint64_t epoch;
    char error[200], code[40]; /* printable; empty: no error */
};

/* False: these bytes are no reply. */
bool reply_read(struct reply *r, const void *bytes, size_t length);

/* The value of a key of a map, NULL when there is none. */
const msgpack_object *map_find(const msgpack_object *map, const char *key);

/* A whole number from 0, `otherwise` for anything else. */
uint64_t map_number(const msgpack_object *map, const char *key, uint64_t otherwise);

#endif
