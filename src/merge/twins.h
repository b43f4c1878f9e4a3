/* twins.h: labels that are integers in one part of a merge and strings in another. */
#ifndef SVI_MERGE_TWINS_H
#define SVI_MERGE_TWINS_H

#include "merge/merge.h"

/* Finds two classes of the model like "7" and 7, which few users intend: the string is class number `from` or
 * a later one. Returns the number from which to go on, with *why naming a part that has either; 0: there are
 * no more. */
int svi_merge_twins(const struct svi_merge *m, int from, svs_error *why);

#endif
