/* view.h: reads values out of a msgpack reply or event. A view is one value inside bytes that passed
 * svi_msgpack_check, and is valid as long as they are. All functions accept a view without a value. */
#ifndef SVI_VIEW_H
#define SVI_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/cursor.h"

struct svi_view {
    const uint8_t *at, *end; /* at NULL: no value */
};

/* A view of a whole reply or event. */
struct svi_view svi_view_of(const void *bytes, size_t size);

/* The first item; nil for no value. */
struct svi_item svi_view_item(struct svi_view v);

/* The value of a key; no value where `map` is not a map or lacks the key. */
struct svi_view svi_view_key(struct svi_view map, const char *key);

/* Steps through an array: begin with *next as the array itself and *left as -1. False: no more elements. */
bool svi_view_next(struct svi_view *next, int64_t *left, struct svi_view *element);

/* The value of a key as a number, or `other` where it is absent, nil or no number. */
double svi_view_number(struct svi_view map, const char *key, double other);
int64_t svi_view_integer(struct svi_view map, const char *key, int64_t other);
uint64_t svi_view_unsigned(struct svi_view map, const char *key, uint64_t other);

/* The value of a key: is it true? */
bool svi_view_true(struct svi_view map, const char *key);

/* The string of a key, cut to `size` - 1 bytes; "" where it is absent or no string. Returns `out`. */
char *svi_view_text(struct svi_view map, const char *key, char *out, size_t size);

/* Is the value of the key this string? */
bool svi_view_is(struct svi_view map, const char *key, const char *text);

#endif
