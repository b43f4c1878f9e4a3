/* object.h: reads values from msgpack replies and events, for commands. */
#ifndef SVI_OBJECT_H
#define SVI_OBJECT_H

#include "wire/cursor.h"

/* One value in msgpack bytes that passed svi_msgpack_check; at = NULL: no value. A view of these bytes. */
struct cli_object {
    const uint8_t *at, *end;
};

/* The value's first item; nil for no value. */
struct svi_item cli_item(struct cli_object o);

/* The value of a key; no value when `map` is not a map or lacks the key. */
struct cli_object cli_key(struct cli_object map, const char *key);

/* A scalar as text for people: "7", "0.25", "spam"; "-" for anything else. Bytes are escaped. Returns out. */
char *cli_scalar(struct cli_object o, char *out, size_t size);

/* cli_scalar of a key's value. Returns out. */
char *cli_key_text(struct cli_object map, const char *key, char *out, size_t size);

/* Prints a msgpack object as a line of JSON on standard output. Codes of svi_json_msgpack. */
svs_code cli_show_json(const void *bytes, size_t length, svs_error *err);

#endif
