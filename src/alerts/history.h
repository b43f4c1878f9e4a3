/* history.h: the last rows of a stream as they were measured, with their times. Lines for people and events
 * show them: what is reported of several rows is a mean of readings, never a forecast plus a residual.
 *
 * MEMORY. SVI_HISTORY_ROWS rows of d columns as float, and a time of 8 bytes a row: 720 bytes a column and
 * 1440 bytes a stream. One of many streams (`grows`) begins with 20 rows and takes more as they come.
 *
 * PRECISION. A value is kept as its distance from the origin of its column, to seven digits, so values near
 * 1e9 that differ by .01 stay apart. Every SVI_HISTORY_ROWS rows the origin becomes the newest value: a
 * sensor that left its first level for good soon has its digits again. */
#ifndef SVI_HISTORY_H
#define SVI_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/archive.h"
#include "svmstream/error.h"

#define SVI_HISTORY_ROWS    180 /* most rows */
#define SVI_HISTORY_COLUMNS 512 /* a stream of more columns has no history */

/* Zero-initialised, it is empty. Owns its arrays. */
struct svi_history {
    int d;           /* columns */
    int capacity;    /* rows that the arrays can hold */
    int64_t rows;    /* added so far; row n, from 0, has the place n % SVI_HISTORY_ROWS */
    double *origin;  /* d: what values are measured from; NAN: the column had no value yet */
    double *time;    /* capacity: engine times, seconds */
    float *distance; /* capacity x d: value - origin; -INFINITY: the row had no value there */
};

/* Reserves capacity for the next row, of d columns; more than SVI_HISTORY_COLUMNS: the history ends, and is
 * empty. New columns have no values in older rows. grows: rows are reserved as needed. SVS_NO_MEMORY: nothing
 * has changed. */
svs_code svi_history_reserve(struct svi_history *h, int d, bool grows, svs_error *err);
void svi_history_clear(struct svi_history *h); /* frees; empty */

/* Does the next row need a reserve? */
static inline bool svi_history_is_full(const struct svi_history *h) {
    return h->capacity < SVI_HISTORY_ROWS && h->rows == h->capacity;
}

/* Adds a row: h->d values, NAN where one is missing. An empty history ignores it. */
void svi_history_add(struct svi_history *h, const double *x, double time);

/* Number of rows that can be read. */
int svi_history_held(const struct svi_history *h);

/* The last `count` rows of a column, oldest first: their values (NAN: missing) and times, `count` of each;
 * either may be NULL. Fewer if fewer are held. Returns the number of rows. 0: no such column. */
int svi_history_column(const struct svi_history *h, int column, int count, double *values, double *times);

/* The values of a column over the last `count` rows that are held. */
struct svi_history_span {
    int rows, values;         /* rows; those that have a value */
    double mean, first, last; /* of the values; NAN: none */
    double least, most;       /* their range */
    double begin, end;        /* times of the first and the last of the rows */
};
struct svi_history_span svi_history_over(const struct svi_history *h, int column, int count);

void svi_history_forget(struct svi_history *h, int column); /* the column starts again */

/* Follows a shift of the clock: times after `from` move by `step`. Seconds. */
void svi_history_move_times(struct svi_history *h, double from, double step);

/* Loads into an empty history. columns: of a row, which bound those of the archive; grows: as in
 * svi_history_reserve. */
void svi_history_archive(struct svi_archive *a, struct svi_history *h, int columns, bool grows);

double svi_history_memory(int d); /* largest number of bytes */

#endif
