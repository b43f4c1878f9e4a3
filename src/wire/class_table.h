/* class_table.h: the map that tells of each class (quality/class_figures.h). */
#ifndef SVI_CLASS_TABLE_H
#define SVI_CLASS_TABLE_H

#include "quality/class_figures.h"

/* Puts the pairs `by_class`, and `confusion` and `confusion.w` where they are known, into an open map; with
 * count 0 none. */
struct svi_pack;
void svi_put_class_table(struct svi_pack *p, const struct svi_class_table_reserve *t);

#endif
