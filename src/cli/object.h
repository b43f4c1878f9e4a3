/* object.h: prints values of msgpack replies and events, for commands. */
#ifndef SVI_OBJECT_H
#define SVI_OBJECT_H

#include "wire/view.h"

/* A scalar as text for people: "7", "0.25", "spam"; "-" for anything else. Bytes are escaped. Returns out. */
char *cli_scalar(struct svi_view o, char *out, size_t size);

/* cli_scalar of a key's value. Returns out. */
char *cli_key_text(struct svi_view map, const char *key, char *out, size_t size);

/* Prints a msgpack object as a line of JSON on standard output. Codes of svi_json_msgpack. */
svs_code cli_show_json(const void *bytes, size_t length, svs_error *err);

#endif
