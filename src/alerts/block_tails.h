/* block_tails.h: how rare a value is that lies beyond most of what came before, for many series at once whose
 * values hang together from one row to the next.
 *
 * WHY BLOCKS. A sensor's values, and the means of its last residuals even more, come in runs: ranks among
 * single values count one warm afternoon a hundred times. The largest value of each block of rows is counted
 * instead: blocks are nearly independent, however long the runs are, and what they tell is what a person on
 * call wants to know: how often such an episode comes.
 *
 * BLOCKS. All series have the same blocks, of `length` rows. There are SVI_BLOCKS at most; when all are there
 * and a block is shorter than `longest`, pairs become one and blocks are twice as long from then on. So from
 * the first rows on all the past is covered, and later the last SVI_BLOCKS longest rows.
 *
 * A block that is over counts from its last row on for the first 32 series, then for 32 more with each row
 * (or as many as are needed for all to have it when the next one ends), so that no row pays for all fits.
 *
 * THE TAIL. With the k largest of the n maxima that the series has, above the next one, u, and excesses y_i
 * over it: above u a generalised Pareto law (Pickands 1975); its predictive probability is a mixture over
 * shapes as in novelty/tail.h, but no less than 1 - (v - u) / (2 mean excesses), which an even law has
 * and the mixture falls short of just above u. p of a value v > u:
 *
 *     p(v) = -ln(1 - k / (n + 1) x P(next excess > v - u)) / length
 *
 * how often a row has such a value where rows are independent, and how often an episode with one begins where
 * they come in runs; 1 for v <= u.
 *
 * ONE EVENT DOES NOT BLIND. In the maxima a value counts at most as one that comes once in 4 n blocks; so a
 * single gross event moves the tail a little, and one that comes again and again soon counts as usual. */
#ifndef SVI_BLOCK_TAILS_H
#define SVI_BLOCK_TAILS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/archive.h"
#include "svmstream/error.h"

#define SVI_BLOCKS         64
#define SVI_BLOCK_MIN_ROWS 16 /* rows of the first blocks */
#define SVI_BLOCK_SHAPES   8

/* Blocks that are held, and what follows from their number for every fit. */
struct svi_block_shape {
    int count;
    int64_t length;      /* rows of a block */
    float telling, most; /* mean excesses: see below */
    double begins;       /* log of the probability of being above u in a row: k / (n + 1) / length */
    double over, far;    /* the last surprise asked for, and mean excesses that are needed for it */
};

/* The laws over the upper maxima of a series, by shape. */
struct svi_block_mixture {
    bool known; /* since the last fit */
    double slope[SVI_BLOCK_SHAPES], each[SVI_BLOCK_SHAPES], weight[SVI_BLOCK_SHAPES];
};

struct svi_block_tails {
    int parts, columns; /* of the series: parts x columns */
    int series;         /* their number: values a row */
    int capacity;       /* blocks that there is room for */
    double least;       /* a smaller surprise is not reported */
    int64_t longest;    /* rows of a block at most; a power of 2, the caller's to raise */
    int64_t row;        /* of the present block */
    int at;             /* the place of the next block */
    int place, done;    /* the place of the last one; series that have it: the others follow soon ... */
    struct svi_block_shape shape, before; /* ... of those that have it; of the others */
    struct svi_block_shape late;          /* of a series with fewer blocks, the last one asked for */
    float *maxima;                        /* series x room, by the place of the block */
    float *now;                           /* series: the largest of the present block */
    float *above;                         /* series: u; infinite while there are too few blocks */
    float *excess;                        /* series: mean excess over it */
    float *telling; /* series: a value has to be above this to surprise by `least` or more */
    float *most;    /* series: what a value counts as at most in a maximum */
    float *last;    /* series: the largest of the last block */
    uint8_t *held;  /* series: blocks in which it had a value */
    struct svi_block_mixture *mixtures; /* series; NULL: they are worked out each time */
};

/* grows: room for blocks comes with svi_block_tails_reserve, and nothing is kept that can be worked out
 * again; else all room is there at once. SVS_NO_MEMORY: it may be cleared. */
svs_code svi_block_tails_init(struct svi_block_tails *t, int parts, int columns, bool grows, double least,
                              svs_error *err);
void svi_block_tails_clear(struct svi_block_tails *t); /* frees */

/* May the next row need more capacity than there is? Capacity for it. SVS_NO_MEMORY: nothing has changed. */
bool svi_block_tails_are_full(const struct svi_block_tails *t);
svs_code svi_block_tails_reserve(struct svi_block_tails *t, svs_error *err);

/* -log10 p of value v of a series; 0 where it cannot be above `over`, or v is not above its `telling`. */
double svi_block_tails_surprise(struct svi_block_tails *t, int series, float v, double over);

/* Blocks in which a series had a value, of those that are held. */
int svi_block_tails_held(const struct svi_block_tails *t, int series);

/* The row's values, -INFINITY for none, become part of the past. */
void svi_block_tails_add(struct svi_block_tails *t, const float *v);

/* A series starts again. */
void svi_block_tails_forget(struct svi_block_tails *t, int series);

/* All of `from` in the first columns of each part of `to`, which is new and has wider ones. SVS_NO_MEMORY: it
 * may be cleared. */
svs_code svi_block_tails_widen(struct svi_block_tails *to, const struct svi_block_tails *from,
                               svs_error *err);

/* Loading: room is made for the blocks that there are. */
void svi_block_tails_archive(struct svi_archive *a, struct svi_block_tails *t);
double svi_block_tails_memory(int parts, int columns, bool grows); /* bytes, once all is full */

#endif
