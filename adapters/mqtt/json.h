/* json.h: msgpack as JSON text, as `svmstream watch --json` writes it: packed numbers (ext 1, ext 2) become
 * arrays, binary data a string, NaN and infinities null; bytes that are not UTF-8 are written as \u00XX. */
#ifndef MQTT_JSON_H
#define MQTT_JSON_H

#include <stdio.h>

#include <msgpack.h>

void json_write(FILE *to, const msgpack_object *o);

#endif
