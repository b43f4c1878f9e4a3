/* floats_move.h: how judges pack what they hold (sensors.h). */
#ifndef SVI_FLOATS_MOVE_H
#define SVI_FLOATS_MOVE_H

#include <stdbool.h>
#include <stdint.h>

/* `count` floats of an array to *at, or from there (`out` false), but for those that `skip` flags, which stay
 * as they are; skip NULL: all. *at is behind them then. */
void svi_floats_move(float *array, int count, const uint8_t *skip, char **at, bool out);

#endif
