/* records.h: how high values of a series went, and how much higher one must be that a series which goes on
 * as it did does not come to: the margin beyond a record.
 *
 * Of n exchangeable values the last one is the highest with probability 1/n: bare records of d series, on
 * both sides, come 2d/n times a row. Told are those beyond the record by a margin of which the series' own
 * upper tail says that it happens `share` as often as a record does, over all series together: `share` / n a
 * row, so between row a and row b
 *
 *     expected false ones <= share x log(b / a)                                           (share 0.1)
 *
 * 0.37 from the first thousand rows to 28 days at a row a minute, and 0.07 for each time that the rows
 * double. The margin reaches beyond what was seen by the same factor at any n, which is what an extrapolation
 * bears.
 *
 * BLOCKS. The highest values of real sensors stand beside each other. So the tail is fitted to the highest
 * values of blocks of rows: 64 to 128 blocks as long as it takes to hold all rows (two become one when there
 * are 128). What varies over hours and days shows in them, as it does in any future block.
 *
 * TAIL. Above the median Q of the blocks' maxima their excess is taken for generalised Pareto (Pickands 1975;
 * of a Gumbel law it is lighter, which errs to the safe side), and predicted as in novelty/tail.h: for
 * a slope b with S(b) = sum log(1 + b y_i) over the k excesses,
 *
 *     P(Y > y | b) = (1 + log(1 + b y) / S(b))^(-k),   weight (b / S(b))^k exp(-S(b)) / xi
 *
 * for the four shapes xi = 1/16, 3/16, 5/16, 7/16 with the mean excess seen: not knowing the shape makes it
 * heavy. A value is reported if (k + 1) / (m + 1) x P(Y > x - Q) <= share / (4 x series x m), m blocks. Fewer
 * than 64 blocks (512 rows), or 8 excesses (a series that shows few values), tell nothing.
 *
 * Cost: a comparison and a maximum for each value; a fit (2 us) when a record is broken, at most once
 * in 32 blocks unless it is reported. A lower side is the upper side of the negated values. */
#ifndef SVI_RECORDS_H
#define SVI_RECORDS_H

#include "base/archive.h"

#define SVI_RECORDS_BLOCKS     128
#define SVI_RECORDS_MIN_BLOCKS 64
#define SVI_RECORDS_SHARE      0.1

/* Arrays of series, which their owner holds in a table of his own; all begin with -INFINITY. */
struct svi_records {
    double *most;    /* the highest in complete blocks, or taken as seen; -INFINITY: none */
    double *now;     /* the highest in the block at hand */
    double *check;   /* what is above it is to be looked at */
    double *suspect; /* the highest that was reported and does not count as seen yet */
    double *blocks;  /* `width` of each series; -INFINITY: it had no value then */
    int width;       /* room for the blocks that there are and the one at hand; SVI_RECORDS_BLOCKS at most */
};

/* Where the block at hand stands, the same for all series. */
struct svi_records_clock {
    int blocks;            /* complete */
    int64_t length, since; /* rows of a block; of the one at hand so far */
};

/* What is reported a series: above this. INFINITY: nothing. all: series that share the false ones. */
double svi_records_bound(const struct svi_records *r, const struct svi_records_clock *c, int series, int all);

/* The record so far; -INFINITY: none. */
static inline double svi_records_most(const struct svi_records *r, int series) {
    const double most = r->most[series], now = r->now[series];
    return now > most ? now : most;
}

/* A value counts as seen. */
void svi_records_take(struct svi_records *r, int series, double v);

/* A value is usual now: as if every second block had shown it. */
void svi_records_settle(struct svi_records *r, const struct svi_records_clock *c, int series, double v);

/* What was told has ended: what came twice so high counts as seen. */
void svi_records_end_reported(struct svi_records *r, int series, double v);

/* The row was the last of a block: `count` series begin the next one; the clock has not moved yet. */
void svi_records_end_block(struct svi_records *r, const struct svi_records_clock *c, int first, int count);

/* One row more. True: it is the last of its block: svi_records_end_block for all, then
 * svi_records_clock_turn. */
static inline bool svi_records_clock_row(struct svi_records_clock *c) {
    return ++c->since >= c->length;
}
void svi_records_clock_begin(struct svi_records_clock *c);
void svi_records_clock_turn(struct svi_records_clock *c);

void svi_records_clock_archive(struct svi_archive *a, struct svi_records_clock *c);

#endif
