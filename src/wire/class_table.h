/* class_table.h: the figures of each class (quality/class_figures.h) as msgpack. */
#ifndef SVI_CLASS_TABLE_H
#define SVI_CLASS_TABLE_H

#include "quality/class_figures.h"

/* Puts the pairs `by_class` and, where known, `confusion` and `confusion.w` into an open map; nothing if
 * t->count is 0. */
struct svi_pack;
void svi_put_class_table(struct svi_pack *p, const struct svi_class_table *t);

#endif
