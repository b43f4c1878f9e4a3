/* duration.h: lengths of time as people write them: "90", "30s", "10min", "2h", "1.5d". */
#ifndef SVI_DURATION_H
#define SVI_DURATION_H

#include <stdbool.h>
#include <stddef.h>

/* Reads a length of time of `length` bytes, in seconds: a decimal number >= 0 and a unit, s (or none), min, h
 * or d, with at most one space between them. False: it is of another form, or above 1e9 s. */
bool svi_duration_read(const char *text, size_t length, double *seconds);

#endif
