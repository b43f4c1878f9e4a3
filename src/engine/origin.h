/* origin.h: what a frame says of where it comes from: `src` and `n` of its first element. */
#ifndef SVI_ORIGIN_H
#define SVI_ORIGIN_H

#include "wire/cursor.h"
#include "wire/decode.h"

struct svi_origin {
    struct svi_item src, n; /* SVI_NIL: not there */
};

/* Looks for them even if a decoder would refuse the element: its number is used up all the same. The frame is
 * open and has an element. */
void svi_origin_read(const struct svi_frame *f, struct svi_origin *o);

/* The same of bytes that were not checked; neither is there in what is no frame. */
void svi_origin_find(const void *bytes, size_t length, struct svi_origin *o);

/* Is it a name? SVS_NO_SOURCE. */
svs_code svi_origin_name(const struct svi_origin *o, svs_error *err);

/* The number, -1 with SVS_NO_SOURCE when it is none. */
svs_code svi_origin_number(const struct svi_origin *o, int64_t *number, svs_error *err);

#endif
