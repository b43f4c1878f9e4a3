/* neighbours.h: the nearest of the last rows: a member of the bank that votes as the 1 nearest of the last
 * 200 rows and the 5 nearest of the last 5000 do (Cover, Hart: Nearest neighbor pattern classification,
 * 1967).
 *
 * A ring of the last `capacity` rows of d values in single precision, each with a class or a target. Rows
 * have numbers that rise by one from 0, whether they are found or not. Distances are squared Euclidean ones
 * in single precision, summed in a fixed order; of equal ones the newer row is nearer. What is found is
 * exact: it depends on the rows and the instruction set alone, never on how the search went.
 *
 * Cost: a sweep over capacity x d bytes, and exact distances of the few rows that it leaves
 * (linalg/nearest.h). Memory: svi_neighbours_memory. No threads, no allocation but in _init, _grow, _reserve
 * and loading. */
#ifndef SVI_NEIGHBOURS_H
#define SVI_NEIGHBOURS_H

#include <stdint.h>

#include "base/archive.h"
#include "linalg/nearest.h"

#define SVI_NEIGHBOURS_K   8         /* most neighbours that are asked for */
#define SVI_NEIGHBOURS_D   32768     /* most values of a row */
#define SVI_NEIGHBOURS_MAX (1 << 24) /* most rows */

struct svi_neighbour {
    int64_t number;
    double target;
    float distance; /* squared */
    int32_t label;
};

struct svi_neighbours {
    const struct svi_nearest_kernels *kernels;
    int capacity;  /* rows at most */
    int have;      /* rows that fit: 0, then doubling up to capacity */
    int blocks;    /* of SVI_NEAREST_ROWS rows: one more than `have` needs, so that none has both ends */
    int d, stride; /* values of a row; that fit in one, a multiple of 16, zero from d on */
    int64_t pushed, oldest; /* the next number; the oldest that is held */
    int64_t base;           /* the number at the beginning of block 0, a multiple of SVI_NEAREST_ROWS */
    float error;            /* the largest e(x) since the ring was empty */
    float *rows;            /* blocks x SVI_NEAREST_ROWS x stride */
    int8_t *sketch;         /* blocks, as nearest.h has them */
    uint64_t *live;         /* of each block: the rows that are found */
    double *targets;
    int32_t *labels;
    uint16_t *sums; /* a search's own: of each row */
    float *z;       /* stride: the row at hand */
    int8_t *bytes;  /* stride: its sketch */
    int32_t *query; /* stride / 2: the same for a scan */
    uint16_t *norm; /* stride / 32 + 1: likewise */
};

/* Takes 1 <= capacity <= SVI_NEIGHBOURS_MAX, 0 <= d <= SVI_NEIGHBOURS_D; SVS_NOT_SUPPORTED when the machine
 * lacks the instruction set. */
svs_code svi_neighbours_init(struct svi_neighbours *n, int capacity, int d, svs_isa isa, svs_error *err);
void svi_neighbours_clear(struct svi_neighbours *n); /* frees */
void svi_neighbours_empty(struct svi_neighbours *n); /* forgets all rows; numbers go on, the capacity stays */

/* More values in a row: 0 in all that are held. Room grows by half at least. Failing changes nothing. */
svs_code svi_neighbours_grow(struct svi_neighbours *n, int d, svs_error *err);

/* Value j becomes 0 in all rows. */
void svi_neighbours_renew(struct svi_neighbours *n, int j);

/* Makes sure that the next push has room. Failing changes nothing. */
svs_code svi_neighbours_reserve(struct svi_neighbours *n, svs_error *err);

/* One more row of d values (reserved), and its number. The oldest leaves when there are `capacity`. A row
 * with a value that is not finite, or larger than SVI_NEAREST_SIZE, takes a number but is never found. */
int64_t svi_neighbours_push(struct svi_neighbours *n, const float *z, int label, double target);

/* The row is found no more. One that has left, or has not come: nothing happens. */
void svi_neighbours_remove(struct svi_neighbours *n, int64_t number);

/* The row of that number, d values, zero up to a multiple of 16; NULL: it is not found (any more). Until the
 * next call that changes the ring. */
const float *svi_neighbours_row(const struct svi_neighbours *n, int64_t number);

/* The k (at most SVI_NEIGHBOURS_K) nearest to z, the nearest first, and on the way the nearest of the last
 * `recent` numbers: *near, whose number is -1 when there is none. Returns how many there are; 0 when z has a
 * value as above. */
int svi_neighbours_find_both(struct svi_neighbours *n, const float *z, int recent, struct svi_neighbour *near,
                             int k, struct svi_neighbour *out);

/* Labels are below `classes`; 0: regression, targets are at most SVI_VALUE_MAX in size. Loading: into one
 * that was initialised with this capacity and no more values than were saved; all of that is checked. */
void svi_neighbours_archive(struct svi_archive *a, struct svi_neighbours *n, int classes);

/* Bytes of a full ring. */
double svi_neighbours_memory(int capacity, int d);

#endif
