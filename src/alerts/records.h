/* records.h: the record of a series, its highest value so far, and the bound above it that an unchanged
 * series is not expected to exceed.
 *
 * Of n exchangeable values the last one is the highest with probability 1/n, so bare records of d series, on
 * both sides, occur 2d/n times a row. Reported are only values beyond the record by a margin that, by the
 * series' own upper tail, occurs `share` times as often as a record does, over all series together: share / n
 * a row. Between row a and row b
 *
 *     expected false reports <= share x ln(b / a)                                         (share 0.1)  (1)
 *
 * which is 0.37 from the first thousand rows to 28 days at a row a minute, and 0.07 each time that the rows
 * double. The margin exceeds what was seen by the same factor at any n, as an extrapolation can.
 *
 * BLOCKS. High values of real sensors are adjacent in time, so the tail is fitted to the highest values of
 * blocks of rows: 64 to 128 blocks that cover all rows (pairs are merged at 128). What varies over hours and
 * days is visible in them, as in any future block.
 *
 * TAIL. Above the median Q of the block maxima, excesses are treated as generalised Pareto (Pickands 1975; a
 * Gumbel law is lighter, which errs to the safe side) and predicted as in novelty/tail.h. For a slope b with
 * S(b) = sum log(1 + b y_i) over the k excesses
 *
 *     P(Y > y | b) = (1 + log(1 + b y) / S(b))^(-k),   weight (b / S(b))^k exp(-S(b)) / xi             (2)
 *
 * for the shapes xi = 1/16, 3/16, 5/16, 7/16 and the mean excess seen; the unknown shape makes the law heavy.
 * With m blocks, a value x is reported if
 *
 *     (k + 1) / (m + 1) x P(Y > x - Q) <= share / (4 x series x m)                                     (3)
 *
 * Nothing is reported with fewer than 64 blocks (512 rows) or 8 excesses (a series with few distinct values).
 *
 * A sensor's range caps this bound (rule_beyond.c).
 *
 * COST. A comparison and a maximum for each value; a fit (2 us) when a record is broken, at most once in 32
 * blocks unless the value is reported. A lower side is the upper side of the negated values. */
#ifndef SVI_RECORDS_H
#define SVI_RECORDS_H

#include "base/archive.h"

#define SVI_RECORDS_BLOCKS     128
#define SVI_RECORDS_MIN_BLOCKS 64
#define SVI_RECORDS_SHARE      0.1

/* Arrays by series. Their owner allocates them; all begin with -INFINITY, which also stands for no value. */
struct svi_records {
    double *most;    /* the highest of the complete blocks */
    double *now;     /* the highest of the current block, or taken as seen in it */
    double *check;   /* values above this need a check: the record, or the bound once it is known */
    double *suspect; /* the highest value that was reported and does not count as seen */
    double *blocks;  /* series x width: block maxima */
    int width;       /* capacity for the complete blocks and the current one; SVI_RECORDS_BLOCKS at most */
};

/* The place in the blocks, the same for all series. */
struct svi_records_clock {
    int blocks;            /* complete ones */
    int64_t length, since; /* rows of a block; rows of the current one so far */
};

/* The bound of a series: values above it are reported. INFINITY: none is. all: series that share the false
 * reports of (1). */
double svi_records_bound(const struct svi_records *r, const struct svi_records_clock *c, int series, int all);

/* The resolution of a sensor as far as its extremes show it: the smallest difference between different block
 * maxima of its two series (`down`: the negated values). INFINITY: there is only one value. About 10 us. */
double svi_records_step(const struct svi_records *r, const struct svi_records_clock *c, int up, int down);

/* The record so far; -INFINITY: none. */
static inline double svi_records_most(const struct svi_records *r, int series) {
    const double most = r->most[series], now = r->now[series]; /* the current block counts at once */
    return now > most ? now : most;
}

/* A value counts as seen. */
void svi_records_take(struct svi_records *r, int series, double v);

/* A value is normal from now on, as if every second block had had it. */
void svi_records_settle(struct svi_records *r, const struct svi_records_clock *c, int series, double v);

/* A report has ended, whose highest value was v: a height that was reported twice counts as seen. */
void svi_records_end_reported(struct svi_records *r, int series, double v);

/* The row was the last of its block: series first .. first + count - 1 begin the next one. Before the clock
 * turns. */
void svi_records_end_block(struct svi_records *r, const struct svi_records_clock *c, int first, int count);

/* Counts a row. True: it is the last of its block. The caller then calls svi_records_end_block for all series
 * and svi_records_clock_turn last. */
static inline bool svi_records_clock_row(struct svi_records_clock *c) {
    return ++c->since >= c->length;
}
void svi_records_clock_begin(struct svi_records_clock *c);
void svi_records_clock_turn(struct svi_records_clock *c);

void svi_records_clock_archive(struct svi_archive *a, struct svi_records_clock *c);

#endif
