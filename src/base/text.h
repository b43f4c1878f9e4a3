/* text.h: the nearest known word to a misspelt one, and what is valid UTF-8. */
#ifndef SVI_TEXT_H
#define SVI_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Edit distance (insert, delete, replace, swap of neighbours), at most `limit` + 1. */
int svi_edit_distance(const char *a, const char *b, int limit);

bool svi_utf8_valid(const char *bytes, size_t length);

/* Bytes (1 to 4) of the first character of `bytes`, 0 when it is malformed (overlong, surrogate, above
 * U+10FFFF, cut). */
size_t svi_utf8_length(const char *bytes, size_t length);

#endif
