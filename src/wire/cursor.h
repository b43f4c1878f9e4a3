/* cursor.h: reads msgpack items one after another from bytes whose form was checked before.
 *
 * svi_walk checks that one complete object begins at `at` (or just skips it). Only then may svi_item_read run
 * over the same bytes, because it trusts the headers. Nothing allocates. */
#ifndef SVI_CURSOR_H
#define SVI_CURSOR_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "svmstream/error.h"

#define SVI_DEPTH_MAX                                                                                        \
    8 /* a batch of samples with maps of features is 3 deep; the rest is for unknown keys and nested maps */
#define SVI_WALK_MAX 32 /* deepest nesting that svi_walk can be asked to accept */

enum svi_item_type {
    SVI_NIL = 0,
    SVI_BOOL,
    SVI_INT,      /* fits int64_t */
    SVI_HUGE_INT, /* above INT64_MAX */
    SVI_REAL,
    SVI_STRING,
    SVI_BIN,
    SVI_EXT,
    SVI_ARRAY,
    SVI_MAP,
    SVI_ITEM_TYPE_COUNT
};

struct svi_item {
    enum svi_item_type type;
    int8_t ext;          /* SVI_EXT: its type number */
    uint32_t length;     /* string, bin, ext: bytes; array: elements; map: pairs */
    int64_t i;           /* SVI_INT; SVI_BOOL: 0 or 1 */
    double r;            /* SVI_REAL, SVI_HUGE_INT */
    const uint8_t *body; /* string, bin, ext: the content; array and map: the first element */
};

/* Checks the object at *at and moves *at past it: complete, no header claims more than there is, containers
 * nested at most `depth` (<= SVI_WALK_MAX) deep. SVS_NOT_MSGPACK, SVS_TRUNCATED, SVS_TOO_DEEP: *at is the
 * item with the fault. */
svs_code svi_walk(const uint8_t **at, const uint8_t *end, int depth);

/* For each lead byte: bits 0 to 7 hold the size of the item (bytes, with the lead byte). Bits 8 up
 * hold the number of elements that follow it. The whole is 0 if the size is in a length field, or
 * the byte begins no item. */
extern const uint16_t svi_leads[256];

/* Like svi_walk for one value, with fast paths for packed numbers and arrays of doubles. True: the form is
 * valid. False: *at is undefined. */
bool svi_skip_long(const uint8_t **at, const uint8_t *end, int depth);

/* The same, with one table look-up for the most frequent values: short ones that contain no elements. */
static inline bool svi_skip(const uint8_t **at, const uint8_t *end, int depth) {
    if (*at < end) {
        const unsigned lead = svi_leads[**at];
        if (lead - 1 < 0xff && end - *at >= (ptrdiff_t)lead) { /* 1 to 255: no elements */
            *at += lead;
            return true;
        }
    }
    return svi_skip_long(at, end, depth);
}

/* Is `bytes` exactly one complete object, nested at most `depth` deep, whose headers claim no more than it
 * holds? Must precede any allocation whose size comes from a header. SVS_EMPTY, SVS_TRAILING and the codes of
 * svi_walk, with the byte in the text. */
svs_code svi_msgpack_check(const void *bytes, size_t length, int depth, svs_error *err);

/* Reads one item of checked bytes. Returns the address after it (for a container: its first element). */
const uint8_t *svi_item_read(const uint8_t *at, struct svi_item *item);

/* "a string", "an array": for error texts. */
const char *svi_item_name(const struct svi_item *item);

/* The number of an integer (also a huge one) or a real, which may be infinite or NaN. False: another type. */
bool svi_item_number(const struct svi_item *item, double *r);

static inline uint16_t svi_load16(const uint8_t *p) {
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return be16toh(v);
}

static inline uint32_t svi_load32(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return be32toh(v);
}

static inline uint64_t svi_load64(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return be64toh(v);
}

/* A packed float64: the bytes of ext 2 are little-endian. */
static inline double svi_load_double(const uint8_t *p) {
    uint64_t bits;
    double v;
    memcpy(&bits, p, sizeof bits);
    bits = le64toh(bits);
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* A packed float32: the bytes of ext 1 are little-endian too. */
static inline float svi_load_float(const uint8_t *p) {
    uint32_t bits;
    float v;
    memcpy(&bits, p, sizeof bits);
    bits = le32toh(bits);
    memcpy(&v, &bits, sizeof v);
    return v;
}

#define SVI_LEAD_DOUBLE 0xcb
#define SVI_EXT_FLOAT32 1
#define SVI_EXT_FLOAT64 2

#endif
