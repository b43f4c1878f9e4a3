/* map_view.h: reads values out of a msgpack reply or event. A view is one value inside bytes that passed
 * svi_msgpack_check, and is valid as long as they are. All functions accept a view without a value. */
#ifndef HTTP_MAP_VIEW_H
#define HTTP_MAP_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/cursor.h"

struct http_view {
    const uint8_t *at, *end; /* at NULL: no value */
};

/* A view of a whole reply or event. */
struct http_view http_view_of(const void *bytes, size_t size);

/* The first item; nil for no value. */
struct svi_item http_view_item(struct http_view v);

/* The value of a key; no value where `map` is not a map or lacks the key. */
struct http_view http_view_key(struct http_view map, const char *key);

/* Steps through an array: begin with *next as the array itself and *left as -1. False: no more elements. */
bool http_view_next(struct http_view *next, int64_t *left, struct http_view *element);

/* The value of a key as a number, or `other` where it is absent, nil or no number. */
double http_view_number(struct http_view map, const char *key, double other);
int64_t http_view_integer(struct http_view map, const char *key, int64_t other);
uint64_t http_view_unsigned(struct http_view map, const char *key, uint64_t other);

/* The value of a key: is it true? */
bool http_view_true(struct http_view map, const char *key);

/* The string of a key, cut to `size` - 1 bytes; "" where it is absent or no string. Returns `out`. */
char *http_view_text(struct http_view map, const char *key, char *out, size_t size);

/* Is the value of the key this string? */
bool http_view_is(struct http_view map, const char *key, const char *text);

#endif
