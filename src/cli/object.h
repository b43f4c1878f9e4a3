/* object.h: replies and events as msgpack objects, for the commands that look into them. */
#ifndef SVI_CLI_OBJECT_H
#define SVI_CLI_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <msgpack.h>

#include "svmstream/error.h"

/* Unpacks one complete object (msgpack_unpacked_destroy when done, also after a failure). Codes of
 * svi_msgpack_check. */
svs_code cli_unpack(msgpack_unpacked *u, const void *bytes, size_t length, svs_error *err);

/* The value of a key, or NULL when `map` is no map or has no such key. */
const msgpack_object *cli_key(const msgpack_object *map, const char *key);

/* The value as an integer or number, or `otherwise`. */
int64_t cli_key_integer(const msgpack_object *map, const char *key, int64_t otherwise);
double cli_key_number(const msgpack_object *map, const char *key, double otherwise);

/* A scalar for people ("7", "0.25", "spam", "-" for nil), untrusted bytes escaped. Returns out. */
char *cli_scalar(const msgpack_object *o, char *out, size_t size);

/* cli_scalar of a key's value; "-" when there is none. Returns out. */
char *cli_key_text(const msgpack_object *map, const char *key, char *out, size_t size);

/* Where the value of a key stands in the bytes of a map. NULL when it is not there. The bytes must have been
 * unpacked before. */
const void *cli_key_bytes(const void *bytes, size_t length, const char *key, size_t *size);

#endif
