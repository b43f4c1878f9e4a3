/* object.h: replies and events, for the commands that look into them. */
#ifndef SVI_OBJECT_H
#define SVI_OBJECT_H

#include "wire/cursor.h"

/* One value in msgpack bytes whose form was checked (svi_msgpack_check); at = NULL: there is none. */
struct cli_object {
    const uint8_t *at, *end;
};

/* Its first item; nil when there is none. */
struct svi_item cli_item(struct cli_object o);

/* The value of a key; none when `map` is not a map or has no such key. */
struct cli_object cli_key(struct cli_object map, const char *key);

/* A scalar for people ("7", "0.25", "spam", "-" for anything else), untrusted bytes escaped. Returns out. */
char *cli_scalar(struct cli_object o, char *out, size_t size);

/* cli_scalar of a key's value. Returns out. */
char *cli_key_text(struct cli_object map, const char *key, char *out, size_t size);

/* One object as a line of JSON on standard output. Codes of svi_json_msgpack. */
svs_code cli_show_json(const void *bytes, size_t length, svs_error *err);

#endif
