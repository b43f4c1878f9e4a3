/* payload.h: what an MQTT payload says: one number, or the numbers of a JSON object. */
#ifndef MQTT_PAYLOAD_H
#define MQTT_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mqtt_options.h"
#include "naming.h"
#include "svmstream/value.h"

/* A value. Plain numbers have no key. */
struct field {
    char key[NAME_BYTES + 1]; /* of nested objects joined by dots */
    bool missing;             /* null, nan or too large to be computed with: there is no value now */
    double value;             /* NAN, or the number that was reported */
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
    struct members key_members;       /* what makes the key of the sample */
    int skipped;                      /* members that are no numbers */
    char skipped_key[NAME_BYTES + 1]; /* the first of them */
};

/* The members of an object that have a meaning of their own. */
struct payload_names {
    const char *ts, *id; /* NULL: none */
    const struct members *members;
};

/* Reads `length` bytes. False and the reason in `why`: nothing can be made of it. */
bool mqtt_payload_read(struct payload *p, const void *bytes, size_t length, const struct payload_names *names,
                       char *why, size_t size);

#endif
