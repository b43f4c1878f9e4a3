/* text.h: the nearest known word to a misspelt one, the characters of UTF-8 and which of them are shown, how
 * a text ends. */
#ifndef SVI_TEXT_H
#define SVI_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Edit distance (insert, delete, replace, swap of neighbours), at most `limit` + 1. */
int svi_edit_distance(const char *a, const char *b, int limit);

/* The word of `words` (NULL-terminated array) that is nearest to `word` by edit distance; a difference in
 * case alone counts half a step, and so does a dotted word's first or last part (`publish`, `every` for
 * `publish.every`). The first of equals. NULL when the list is empty or `word` is longer than any word could
 * be. */
const char *svi_nearest(const char *word, const char *const *words);

bool svi_utf8_valid(const char *bytes, size_t length);

/* Length (1 to 4 bytes) of the first character of `bytes`, 0 when it is malformed (overlong, surrogate, above
 * U+10FFFF, cut). */
size_t svi_utf8_length(const char *bytes, size_t length);

/* The code of the first character of `bytes` when a terminal would obey it instead of showing it: a control
 * character (up to U+001F, U+007F to U+009F), a line or paragraph separator (U+2028, U+2029), a mark of the
 * direction of writing (U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069), or U+FEFF, which is not seen.
 * -1: it is another one, or malformed. Its length is svi_utf8_length. */
int svi_text_control(const char *bytes, size_t length);

/* `outer`.`inner` into `to`, which has `room` bytes, without a NUL; returns the length. 0: it is longer. */
size_t svi_join_names(const char *outer, size_t outer_length, const char *inner, size_t inner_length,
                      char *to, size_t capacity);

/* Does text[0 .. length) end in `ending`? */
bool svi_ends_with(const char *text, size_t length, const char *ending);

#endif
