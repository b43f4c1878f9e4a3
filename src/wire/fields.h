/* fields.h: reads the keys of one msgpack map by a table of names, types, ranges and destinations. Files,
 * headers and models are read this way; samples have a faster decoder (decode.h).
 *
 *     struct parts { int64_t d; double C; const uint8_t *classes; };
 *     static const struct svi_field fields[] = {SVI_FIELD(struct parts, d, INTEGER, 1, 1e6),
 *                                               SVI_FIELD(struct parts, C, REAL, 0, 1e300),
 *                                               SVI_FIELD(struct parts, classes, ANY, 0, 0)};
 *     code = svi_fields_read("model", SVI_FIELDS(fields), map, end, &parts, err);
 *
 * The bytes must have been checked (svi_walk), because the headers in them are trusted. */
#ifndef SVI_FIELDS_H
#define SVI_FIELDS_H

#include "svmstream/value.h"
#include "wire/cursor.h"

enum svi_field_type {
    SVI_FIELD_ANY = 0, /* const uint8_t *: the address of the value, which the caller reads */
    SVI_FIELD_INTEGER, /* int64_t, from low to high */
    SVI_FIELD_UINT,    /* uint64_t */
    SVI_FIELD_REAL,    /* double, from low to high, finite */
    SVI_FIELD_WORD,    /* int: index of the string in `words` */
    SVI_FIELD_TEXT,    /* char[high]: a string without NULs, stored with a NUL */
    SVI_FIELD_DOUBLES  /* struct svi_doubles */
};

#define SVI_FIELD_UNLIMITED 0x1p63 /* `high` of an integer: all of int64_t */

/* Packed doubles (ext 2), in place. */
struct svi_doubles {
    const uint8_t *body; /* little-endian, not aligned; not owned */
    int64_t count;
};

struct svi_field {
    const char *name;
    enum svi_field_type type;
    size_t to;                /* offset of the destination in the structure */
    double low, high;         /* inclusive range */
    const char *const *words; /* ends in NULL */
    bool optional;            /* absent or nil: the destination keeps its value */
};

/* Rows of a table; the key is the member's name. */
#define SVI_FIELD(structure, member, kind, low, high)                                                        \
    { #member, SVI_FIELD_##kind, offsetof(structure, member), low, high, NULL, false }
#define SVI_FIELD_OPTIONAL(structure, member, kind, low, high)                                               \
    { #member, SVI_FIELD_##kind, offsetof(structure, member), low, high, NULL, true }
#define SVI_FIELD_WORDS(structure, member, words)                                                            \
    { #member, SVI_FIELD_WORD, offsetof(structure, member), 0, 0, words, false }
#define SVI_FIELD_STRING(structure, member)                                                                  \
    { #member, SVI_FIELD_TEXT, offsetof(structure, member), 0, sizeof((structure *)0)->member, NULL, false }

#define SVI_FIELDS(table) table, sizeof(table) / sizeof *(table)

/* Fills `to` from the map at `map`. Unknown keys are skipped; every valid field is stored, even if others are
 * invalid. `what` names the map in error texts: "kernel model". `count`: at most 64. Returns the first
 * failure: SVS_WRONG_TYPE (not a map, a key is not a string, a field is absent or has a wrong type or range),
 * SVS_DUPLICATE_KEY. */
svs_code svi_fields_read(const char *what, const struct svi_field *fields, size_t count, const uint8_t *map,
                         const uint8_t *end, void *to, svs_error *err);

/* Element i of packed doubles; and a copy of `count` elements from `from` on, which must be finite
 * (SVS_NOT_FINITE; `what` and `name` are for the text). */
double svi_doubles_get(const struct svi_doubles *d, int64_t i);
svs_code svi_doubles_copy(const struct svi_doubles *d, int64_t from, int64_t count, double *out,
                          const char *what, const char *name, svs_error *err);

bool svi_item_doubles(const struct svi_item *item, struct svi_doubles *out); /* false: not packed doubles */
bool svi_item_is(const struct svi_item *item, const char *text);             /* is it this string? */

/* Is the item a class: an integer, or a string of valid UTF-8? *out points into it. */
bool svi_item_label(const struct svi_item *item, svs_value *out);

#endif
