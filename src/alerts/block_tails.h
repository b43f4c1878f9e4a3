/* block_tails.h: how rare an extreme value is, for many series at once whose values are autocorrelated.
 *
 * WHY BLOCKS. The values of a sensor, and means of its last residuals even more, come in runs:
 * ranks among single values would count one warm afternoon a hundred times. The largest value of
 * each block of rows is counted instead. Blocks are nearly independent, however long the runs are,
 * and they answer what a person on call asks: how often does such an episode occur?
 *
 * BLOCKS. All series have the same blocks, of `length` rows, SVI_BLOCKS at most. When all places are filled
 * and `length` is below `longest`, pairs are merged and blocks are twice as long from then on. At first the
 * blocks therefore cover the whole past, and later the last SVI_BLOCKS x longest rows.
 *
 * When a block ends, the first 32 series count it at once. Each further row lets 32 more series
 * count it, or more if that is needed to finish before the next block ends. No single row thus pays
 * for all fits.
 *
 * THE TAIL. Of the n maxima of a series, k are above the next one, u, by excesses y_i. Above u a
 * generalised Pareto law holds (Pickands 1975). The probability of the next excess is a mixture
 * over shapes as in novelty/tail.h, but at least 1 - (v - u) / (2 x mean excess). That bound is the
 * probability under a uniform law, and the mixture is below it just above u. The p-value of v > u
 * is
 *
 *     p(v) = -ln(1 - k / (n + 1) x P(next excess > v - u)) / length                                    (1)
 *
 * and 1 for v <= u. It is the rate of rows with such a value where rows are independent, and the rate at
 * which episodes with one begin where values come in runs.
 *
 * ONE EVENT DOES NOT BLIND. In a maximum, a value counts at most as one that occurs once in 4 n blocks. A
 * single gross event therefore moves the tail a little, and one that recurs soon counts as normal.
 */
#ifndef SVI_BLOCK_TAILS_H
#define SVI_BLOCK_TAILS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/archive.h"
#include "svmstream/error.h"

#define SVI_BLOCKS         64
#define SVI_BLOCK_MIN_ROWS 16 /* rows of the first blocks */
#define SVI_BLOCK_SHAPES   8

/* A number of blocks, and what follows from it for every fit. */
struct svi_block_shape {
    int count;           /* blocks, n */
    int64_t length;      /* rows of a block */
    float telling, most; /* see struct svi_block_tails, in mean excesses over u */
    double begins;       /* ln of the probability that a row is above u: k / (n + 1) / length */
    double over, far;    /* the last `over` asked for, and the mean excesses that it takes at least */
};

/* The mixture over the upper maxima of a series, by shape (novelty/tail.h). */
struct svi_block_mixture {
    bool known;                      /* fitted since the maxima last changed */
    double slope[SVI_BLOCK_SHAPES];  /* b */
    double each[SVI_BLOCK_SHAPES];   /* 1 / S(b) */
    double weight[SVI_BLOCK_SHAPES]; /* of sum 1 */
};

struct svi_block_tails {
    int parts, columns; /* of the series: parts x columns */
    int series;         /* their number, and that of the values in a row */
    int capacity;       /* blocks that the arrays can hold */
    double least;       /* smaller surprises are reported as 0 */
    int64_t longest;    /* largest length of a block, rows; a power of 2, which the caller may raise */
    int64_t row;        /* rows of the current block so far */
    int at;             /* place of the next block */
    int place, done;    /* place of the last block; series 0 .. done - 1 have stored it */
    struct svi_block_shape shape, before; /* of the series that have stored it; of the others */
    struct svi_block_shape late;          /* cache, for a series with fewer blocks */
    float *maxima;  /* series x capacity, by the place of the block; -INFINITY: no value */
    float *now;     /* series: the largest of the current block */
    float *above;   /* series: u; infinite while there are too few blocks */
    float *excess;  /* series: mean excess over u */
    float *telling; /* series: only values above this may surprise by `least` or more */
    float *most;    /* series: the most that a value counts for in a maximum */
    float *last;    /* series: the largest of the last block */
    uint8_t *held;  /* series: blocks in which it had a value */
    struct svi_block_mixture *mixtures; /* series; NULL: fitted for each value (grows) */
};

/* grows: capacity for blocks is taken by svi_block_tails_reserve, and mixtures are not cached; else all
 * memory is taken at once. SVS_NO_MEMORY: `t` is empty and may be cleared. */
svs_code svi_block_tails_init(struct svi_block_tails *t, int parts, int columns, bool grows, double least,
                              svs_error *err);
void svi_block_tails_clear(struct svi_block_tails *t); /* frees */

/* Full: the next row may need more capacity, which _reserve takes. SVS_NO_MEMORY: nothing has changed. */
bool svi_block_tails_are_full(const struct svi_block_tails *t);
svs_code svi_block_tails_reserve(struct svi_block_tails *t, svs_error *err);

/* -log10 p of value v of a series, by (1). 0 if it cannot exceed `over`, or if v is not above `telling`. The
 * row of v is not added yet. */
double svi_block_tails_surprise(struct svi_block_tails *t, int series, float v, double over);

/* Blocks in which the series had a value, of those that are kept. */
int svi_block_tails_held(const struct svi_block_tails *t, int series);

/* Adds a row to the past: `series` values, -INFINITY for none. */
void svi_block_tails_add(struct svi_block_tails *t, const float *v);

/* A series starts again, as if it had never had a value. */
void svi_block_tails_forget(struct svi_block_tails *t, int series);

/* Copies `from` into the first columns of each part of `to`, which is new and has more columns.
 * SVS_NO_MEMORY: `to` may be cleared. */
svs_code svi_block_tails_widen(struct svi_block_tails *to, const struct svi_block_tails *from,
                               svs_error *err);

/* Loading reserves capacity for the blocks of the archive. */
void svi_block_tails_archive(struct svi_archive *a, struct svi_block_tails *t);
double svi_block_tails_memory(int parts, int columns, bool grows); /* bytes, once all is full */

#endif
