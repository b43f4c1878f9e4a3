/* payload.h: what an MQTT payload says: one number, or the numbers of a JSON object. */
#ifndef MQTT_PAYLOAD_H
#define MQTT_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mqtt_options.h"
#include "svmstream/value.h"

/* A value. Plain numbers have no key. */
struct field {
    char key[NAME_BYTES + 1]; /* of nested objects joined by dots */
    bool missing;             /* null, nan or too large to be computed with: there is no value now */
    double value;             /* NAN, or the number that was said */
};

/* The id of a sample; a text lies in `text`. */
struct sample_id {
    svs_value value;
    char text[NAME_BYTES + 1];
};

struct payload {
    bool object; /* fields have keys */
    struct field field[FEATURES_MAX];
    int fields;
    bool has_ts;
    double ts; /* seconds since 1970 */
    struct sample_id id;
    int skipped;                      /* members that are no numbers */
    char skipped_key[NAME_BYTES + 1]; /* the first of them */
};

/* Reads `length` bytes. ts_key and id_key name members with a meaning of their own (NULL: none). False and
 * the reason in `why`: nothing can be made of it. */
bool mqtt_payload_read(struct payload *p, const void *bytes, size_t length, const char *ts_key,
                       const char *id_key, char *why, size_t size);

#endif
