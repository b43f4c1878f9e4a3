/* features_in.h: the value of `x` -> the row of the shape. Part of decode.c, in a file of its own. */
#ifndef SVI_FEATURES_IN_H
#define SVI_FEATURES_IN_H

#include "data/message.h"
#include "wire/cursor.h"

/* One element of a frame while it is read. */
struct svi_reading {
    const uint8_t *at; /* behind the item that was read last */
    const uint8_t *end;
    struct svi_shape *shape;
    struct svi_message *m;
    svs_error *err;
};

/* `item` is the value of x; its elements begin at r->at, which is moved behind them. Fills kind, d, x,
 * missing. */
svs_code svi_take_x(struct svi_reading *r, const struct svi_item *item);

#endif
