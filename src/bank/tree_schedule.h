/* tree_schedule.h: when the boosted trees of a bank are fitted, and from which sample on a fit is used.
 *
 * Two ensembles share one worker: SVI_TREES_RECENT is fitted to the last rows, SVI_TREES_ALL to all rows
 * kept. A fit that begins after labelled sample n is taken up after sample n + lag, whether it was ready
 * before or not; it is waited for there. Lag and spacing follow from counted work: with a fit of c
 * nanoseconds by count and s nanoseconds a sample of the stream's thread by the table of costs,
 *
 *     spacing = c / (.3 s)     samples between the beginnings of two fits
 *     lag     = c / s          samples until it is taken up: when the counted work would be done
 *
 * so fits never overlap and the worker needs at most .3 of what the stream's thread needs. Everything here
 * is a function of sample numbers and counts; no clock. */
#ifndef SVI_TREE_SCHEDULE_H
#define SVI_TREE_SCHEDULE_H

#include "base/archive.h"

enum svi_tree_kind { SVI_TREES_RECENT, SVI_TREES_ALL, SVI_TREES_KINDS };

struct svi_tree_schedule {
    int64_t last[SVI_TREES_KINDS]; /* sample after which the last fit of each began; 0: none */
    int64_t next;                  /* no fit begins before this sample */
    int64_t due;                   /* sample after which the running fit is taken up; 0: none runs */
    int kind;                      /* of the running fit */
};

/* The ensemble whose fit begins after sample n, given the rows that each is fitted to at most; -1: none.
 * Each is due when n has grown by a quarter since its last fit, and after as many samples as it has rows at
 * the latest. SVI_TREES_ALL waits until there are more rows than SVI_TREES_RECENT takes: with fewer both
 * would be the same. */
int svi_tree_schedule_next(const struct svi_tree_schedule *s, int64_t n, const int64_t rows[SVI_TREES_KINDS]);

/* A fit of `kind` begins after sample n: counted work in nanoseconds, and nanoseconds a sample of the
 * stream's thread. */
void svi_tree_schedule_begin(struct svi_tree_schedule *s, int kind, int64_t n, double work, double sample);

/* The running fit was taken up, or abandoned. */
void svi_tree_schedule_end(struct svi_tree_schedule *s);

void svi_tree_schedule_archive(struct svi_archive *a, struct svi_tree_schedule *s);

#endif
