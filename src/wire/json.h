/* json.h: values and msgpack objects as JSON text, for people and pipes.
 *
 * Every call appends to `out`; the only failure is SVS_NO_MEMORY unless another is named. Numbers read back
 * as the same double; NaN and infinities become null. In strings that are not UTF-8, bytes above 127 are
 * written as \u00XX. Control characters that a terminal would obey (svi_text_control) are written as \u and
 * four digits. */
#ifndef SVI_JSON_H
#define SVI_JSON_H

#include "svmstream/value.h"
#include "wire/event.h"

svs_code svi_json_text(struct svi_bytes *out, const char *text); /* verbatim: punctuation, keys */
svs_code svi_json_string(struct svi_bytes *out, const char *bytes, size_t length);
svs_code svi_json_value(struct svi_bytes *out, svs_value v);

/* Writes one complete msgpack object. Packed numbers (ext 1, ext 2) become arrays, binary data a string, keys
 * strings. Codes of svi_msgpack_check. */
svs_code svi_json_msgpack(struct svi_bytes *out, const void *bytes, size_t length, svs_error *err);

/* Converts a msgpack reply for a client that asked in JSON: writes it to `text` (replacing its content),
 * which *reply and *size then denote. */
svs_code svi_json_reply(struct svi_bytes *text, const void **reply, size_t *size);

#endif
