/* fields.h: the keys of one msgpack map that a reader wants, by a table: what each is called, what its value
 * must be, and where it goes. Files, headers and models are read this way; samples have a decoder of their
 * own (decode.h).
 *
 *     struct parts { int64_t d; double C; const uint8_t *classes; };
 *     static const struct svi_field fields[] = {SVI_FIELD(struct parts, d, INTEGER, 1, 1e6),
 *                                               SVI_FIELD(struct parts, C, REAL, 0, 1e300),
 *                                               SVI_FIELD(struct parts, classes, ANY, 0, 0)};
 *     code = svi_fields_read("model", SVI_FIELDS(fields), map, end, &parts, err);
 *
 * The bytes must have been checked (svi_walk): nothing here looks beyond what the headers say. */
#ifndef SVI_FIELDS_H
#define SVI_FIELDS_H

#include "svmstream/value.h"
#include "wire/cursor.h"

enum svi_field_type {
    SVI_FIELD_ANY = 0, /* const uint8_t *: where the value stands, to be read by the caller */
    SVI_FIELD_INTEGER, /* int64_t, from low to high */
    SVI_FIELD_UINT,    /* uint64_t */
    SVI_FIELD_REAL,    /* double, from low to high, finite */
    SVI_FIELD_WORD,    /* int: its place in `words` */
    SVI_FIELD_TEXT,    /* char[high]: a string without NULs, one is added */
    SVI_FIELD_DOUBLES  /* struct svi_doubles */
};

#define SVI_FIELD_UNLIMITED 0x1p63 /* `high` of an integer: all of int64_t */

/* Packed doubles (ext 2), where they stand. */
struct svi_doubles {
    const uint8_t *body;
    int64_t count;
};

struct svi_field {
    const char *name;
    enum svi_field_type type;
    size_t to; /* offset in the structure that is filled */
    double low, high;
    const char *const *words; /* ends in NULL */
    bool optional;            /* absent or nil: what is there stays */
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

/* Fills `to` from the map at `map`. Unknown keys are skipped; every field is taken that can be, whatever is
 * wrong with others. `what` names the map in error texts: "kernel model". The first failure is reported:
 * SVS_WRONG_TYPE (no map, a key is no string, a field lacks or is not what it must be), SVS_DUPLICATE_KEY. */
svs_code svi_fields_read(const char *what, const struct svi_field *fields, size_t count, const uint8_t *map,
                         const uint8_t *end, void *to, svs_error *err);

/* The i-th of packed doubles; and the first `count` of them, which must be finite (SVS_NOT_FINITE; `what` and
 * `name` for the text). */
double svi_doubles_get(const struct svi_doubles *d, int64_t i);
svs_code svi_doubles_copy(const struct svi_doubles *d, int64_t from, int64_t count, double *out,
                          const char *what, const char *name, svs_error *err);

bool svi_item_doubles(const struct svi_item *item, struct svi_doubles *out); /* false: it is something else */
bool svi_item_is(const struct svi_item *item, const char *text);

/* The item is a class: an integer, or a string of valid UTF-8, which `out` points to. */
bool svi_item_label(const struct svi_item *item, svs_value *out);

#endif
