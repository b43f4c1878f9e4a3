/* neighbours.h: the nearest of the last rows, for a member of the bank that votes like the nearest of the
 * last 200 rows and the 5 nearest of the last 1000 and 5000 (Cover, Hart: Nearest neighbor pattern
 * classification, 1967).
 *
 * A ring of the last `capacity` rows of d values in single precision, each with a class or a target. Rows
 * have numbers that rise by one from 0, whether they can be found or not. Distances are squared Euclidean
 * ones in single precision, summed in a fixed order; of equal ones the newer row is nearer. Results are
 * exact: they depend on the rows and the instruction set alone, never on how the search went.
 *
 * Cost: a sweep over capacity x d bytes, and exact distances of the few rows that the sweep cannot exclude
 * (linalg/nearest.h). Memory: svi_neighbours_memory. No threads; allocation only in _init, _grow, _reserve
 * and loading. */
#ifndef SVI_NEIGHBOURS_H
#define SVI_NEIGHBOURS_H

#include <stdint.h>

#include "base/archive.h"
#include "linalg/nearest.h"

#define SVI_NEIGHBOURS_K   8         /* largest k */
#define SVI_NEIGHBOURS_D   32768     /* largest d */
#define SVI_NEIGHBOURS_MAX (1 << 24) /* largest capacity */

struct svi_neighbour {
    int64_t number;
    double target;
    float distance; /* squared */
    int32_t label;
};

struct svi_neighbours {
    const struct svi_nearest_kernels *kernels;
    int capacity; /* rows at most */
    int have;     /* allocated rows: 0, then doubling up to capacity */
    int blocks; /* blocks of SVI_NEAREST_ROWS rows: one more than `have` needs, so that no block holds oldest
                   and newest rows together */
    int d, stride;          /* values of a row; values allocated a row, a multiple of 16, zero from d on */
    int64_t pushed, oldest; /* the next number; the oldest number held */
    int64_t base;           /* the number at the start of block 0, a multiple of SVI_NEAREST_ROWS */
    float error;            /* the largest sketch error e(x) (nearest.h) since the ring was empty */
    float *rows;            /* blocks x SVI_NEAREST_ROWS x stride */
    int8_t *sketch;         /* blocks in the layout of nearest.h */
    uint64_t *live;         /* by block: bit i set if row i can be found */
    double *targets;
    int32_t *labels;
    uint16_t *sums; /* scratch of a search: the sum of each row */
    float *z;       /* stride: the row being pushed or searched for */
    int8_t *bytes;  /* stride: its sketch */
    int32_t *query; /* stride / 2: its sketch as a scan takes it */
    uint16_t *norm; /* stride / 32 + 1: its norms by chunk */
};

/* 1 <= capacity <= SVI_NEIGHBOURS_MAX, 0 <= d <= SVI_NEIGHBOURS_D, else SVS_LIMIT. SVS_NOT_SUPPORTED: the
 * machine lacks the instruction set. SVS_NO_MEMORY. */
svs_code svi_neighbours_init(struct svi_neighbours *n, int capacity, int d, svs_isa isa, svs_error *err);
void svi_neighbours_clear(struct svi_neighbours *n); /* frees */
void svi_neighbours_empty(struct svi_neighbours *n); /* forgets all rows; numbers continue, memory stays */

/* Grows rows to d values, which are 0 in all rows held. Capacity grows by half at least. A failing call
 * changes nothing. */
svs_code svi_neighbours_grow(struct svi_neighbours *n, int d, svs_error *err);

/* Sets value j to 0 in all rows. */
void svi_neighbours_renew(struct svi_neighbours *n, int j);

/* Reserves memory for the next push. A failing call changes nothing. */
svs_code svi_neighbours_reserve(struct svi_neighbours *n, svs_error *err);

/* Appends a row of d values (reserved before) and returns its number. When `capacity` rows are held, the
 * oldest is dropped. A row with a value that is not finite, or larger than SVI_NEAREST_SIZE, takes a
 * number but is never found. */
int64_t svi_neighbours_push(struct svi_neighbours *n, const float *z, int label, double target);

/* Hides the row from searches. Nothing happens if the number is older than the ring, or not used yet. */
void svi_neighbours_remove(struct svi_neighbours *n, int64_t number);

/* The row of this number: d values, zeros up to a multiple of 16. NULL: it cannot be found (any more).
 * Valid until the next call that changes the ring. */
const float *svi_neighbours_row(const struct svi_neighbours *n, int64_t number);

/* The k rows nearest to z among the last `recent` numbers. */
struct svi_neighbours_query {
    int recent; /* < 0: all that are held */
    int k;      /* at most SVI_NEIGHBOURS_K */
    int found;  /* out: at most k; 0 if z has a value that push would not accept */
    struct svi_neighbour row[SVI_NEIGHBOURS_K]; /* out: the nearest first */
};

/* Answers `count` queries for z. They share the sums of the sketches, and a query after one with the same k
 * and a shorter range only adds the older rows. */
void svi_neighbours_find(struct svi_neighbours *n, const float *z, struct svi_neighbours_query *of,
                         int count);

/* Saves or loads. Labels are below `classes`; 0: regression, targets are at most SVI_VALUE_MAX in size.
 * Load into a ring initialised with the same capacity and no more values than were saved; everything is
 * checked. */
void svi_neighbours_archive(struct svi_archive *a, struct svi_neighbours *n, int classes);

/* Bytes of a full ring. */
double svi_neighbours_memory(int capacity, int d);

#endif
