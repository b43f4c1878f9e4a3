/* json.h: values and msgpack objects as JSON text, for people and pipes.
 *
 * Every call appends to `out`; SVS_NO_MEMORY is the only failure unless another is named. Numbers read back
 * as the same double; NaN and infinities become null; strings that are not UTF-8 have their bytes above 127
 * written as \u00XX. What a terminal would obey (svi_text_control) as \u and four digits. */
#ifndef SVI_JSON_H
#define SVI_JSON_H

#include "svmstream/value.h"
#include "wire/event.h"

svs_code svi_json_text(struct svi_bytes *out, const char *text); /* as it is: punctuation, keys */
svs_code svi_json_string(struct svi_bytes *out, const char *bytes, size_t length);
svs_code svi_json_value(struct svi_bytes *out, svs_value v);

/* One complete msgpack object. Packed numbers (ext 1, ext 2) become arrays, binary data a string, keys
 * strings. Codes of svi_msgpack_check. */
svs_code svi_json_msgpack(struct svi_bytes *out, const void *bytes, size_t length, svs_error *err);

/* A reply in msgpack, for one that has asked in JSON: the same in `text` (replaced), which *reply and *size
 * are then. */
svs_code svi_json_reply(struct svi_bytes *text, const void **reply, size_t *size);

#endif
