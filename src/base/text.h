/* text.h: the nearest known word to a misspelt one, validation of UTF-8, control characters, dotted names and
 * endings. */
#ifndef SVI_TEXT_H
#define SVI_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Edit distance (insert, delete, replace, swap of neighbours), at most `limit` + 1. */
int svi_edit_distance(const char *a, const char *b, int limit);

/* The entry of `words` (NULL-terminated array) nearest to `word` by edit distance; the first of equals. A
 * difference in case alone counts half a step, and so does naming only the first or last part of a dotted
 * word
 * (`publish`, `every` for `publish.every`). NULL when the list is empty or `word` is longer than any word can
 * be. */
const char *svi_nearest(const char *word, const char *const *words);

bool svi_utf8_valid(const char *bytes, size_t length);

/* Length (1 to 4 bytes) of the first character of `bytes`, 0 when it is malformed (overlong, surrogate, above
 * U+10FFFF, cut). */
size_t svi_utf8_length(const char *bytes, size_t length);

/* The code of the first character of `bytes` if a terminal would interpret it rather than show it.
 * -1: any other character, or a malformed one. Its length is svi_utf8_length. Terminals interpret
 *
 *      control characters                up to U+001F, U+007F to U+009F
 *      line and paragraph separators     U+2028, U+2029
 *      marks of the writing direction    U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069
 *      the invisible                     U+FEFF
 */
int svi_text_control(const char *bytes, size_t length);

/* Writes `outer`.`inner` to `to`, which has `capacity` bytes, without a NUL. Returns the length; 0: it does
 * not fit. */
size_t svi_join_names(const char *outer, size_t outer_length, const char *inner, size_t inner_length,
                      char *to, size_t capacity);

/* True when text[0 .. length) ends in `ending`. */
bool svi_ends_with(const char *text, size_t length, const char *ending);

/* Does the text match the pattern of `length` bytes, in which a * stands for any bytes, also none? */
bool svi_text_matches(const char *pattern, size_t length, const char *text);

#endif
