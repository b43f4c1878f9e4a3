/* pace.h: how far back detectors of a stream look: a week of rows, SVI_PACE_LEAST at least and SVI_PACE_MOST
 * at most, as far as the times of the rows tell how many that is. */
#ifndef SVI_PACE_H
#define SVI_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/archive.h"

#define SVI_PACE_LEAST 2000.0
#define SVI_PACE_MOST  20000.0

struct svi_pace {
    int64_t rows;
    double since;  /* time of the first row */
    double memory; /* rows */
};

void svi_pace_init(struct svi_pace *p);

/* A row at that time, in seconds. True: the memory was looked at again, which it is each time their number
 * has doubled. */
bool svi_pace_row(struct svi_pace *p, double time);

/* Rows that a block of block_tails.h may have: of SVI_BLOCKS that cover four times the memory. */
int64_t svi_pace_block(const struct svi_pace *p);

void svi_pace_archive(struct svi_archive *a, struct svi_pace *p);

#endif
