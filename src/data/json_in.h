/* json_in.h: JSON text read in place, without a tree and without allocating.
 *
 * svi_json_check accepts exactly one object of RFC 8259, at most SVI_JSON_DEPTH containers deep, and as
 * values also the words NaN, Infinity and -Infinity that some writers produce (SVI_JSON_NOT_FINITE). All
 * other functions walk over text that was accepted and never look at its length: calling them on anything
 * else reads past the end. Strings are not checked for UTF-8. */
#ifndef SVI_JSON_IN_H
#define SVI_JSON_IN_H

#include <stdbool.h>
#include <stddef.h>

#include "data/span.h"
#include "svmstream/error.h"
#include "svmstream/value.h"

#define SVI_JSON_DEPTH 8

enum svi_json_type {
    SVI_JSON_NULL = 0,
    SVI_JSON_TRUE,
    SVI_JSON_FALSE,
    SVI_JSON_NUMBER,
    SVI_JSON_NOT_FINITE,
    SVI_JSON_STRING,
    SVI_JSON_ARRAY,
    SVI_JSON_OBJECT
};

/* Checks a line. SVS_NOT_MSGPACK (not JSON), SVS_TRUNCATED, SVS_TRAILING, SVS_TOO_DEEP, SVS_WRONG_TYPE (not
 * an object). */
svs_code svi_json_check(struct svi_span line, svs_error *err);

/* The same for one value of any type, at most `depth` containers deep. */
svs_code svi_json_check_value(struct svi_span text, int depth, svs_error *err);

enum svi_json_type svi_json_type(const char *value);

/* The type as error texts name it: "a string", "an array". */
const char *svi_json_type_name(enum svi_json_type type);

/* The first element or key of the container at `p`; NULL when it is empty. */
const char *svi_json_first(const char *p);

/* The element or key after the one that ends at `p`; NULL when the container ends. */
const char *svi_json_next(const char *p);

/* The string at `p`, without its quotes, escapes unchanged. Returns the byte after the closing quote. */
const char *svi_json_string_at(const char *p, struct svi_span *raw);

/* The key at `p`, as svi_json_string_at; returns its value. */
const char *svi_json_key(const char *p, struct svi_span *raw);

/* The byte after the value at `p`. */
const char *svi_json_skip(const char *p);

/* The string without escapes: `raw` itself where it has none, else written to `scratch`. False: it is longer
 * than `size` bytes. */
bool svi_json_unescape(struct svi_span raw, char *scratch, size_t size, struct svi_span *text);

#endif
