/* nearest.h: what was meant by a misspelt word, out of a list. */
#ifndef SVI_NEAREST_H
#define SVI_NEAREST_H

/* The word of `words` (NULL-terminated array) that is nearest to `word` by edit distance; a difference in
 * case alone counts half a step, and so does a dotted word's beginning or end (`publish`, `every` for
 * `publish.every`). The first of equals. NULL when the list is empty or `word` is longer than any word could
 * be. */
const char *svi_nearest(const char *word, const char *const *words);

#endif
