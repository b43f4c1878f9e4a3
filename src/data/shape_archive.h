/* shape_archive.h: the form of a stream's samples as it is kept: kind, columns, names. */
#ifndef SVI_SHAPE_ARCHIVE_H
#define SVI_SHAPE_ARCHIVE_H

#include "base/archive.h"
#include "data/message.h"

/* Between two samples. Loading goes into a shape from svi_shape_init that has seen none; fixed names must be
 * those that were kept. */
void svi_shape_archive(struct svi_archive *a, struct svi_shape *s);

#endif
