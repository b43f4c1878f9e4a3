/* live_figures.h: progress of a stream while it is read, as a table for people: a line at rows 1, 2, 4, 8,
 * ... and on a terminal also once a second, or a line every N rows.
 *
 *     rows  accuracy  since_last     kappa  alerts    rows/s    memory
 *
 * since_last and rows/s cover exactly the rows since the previous line. A regression has rmse and mae; a
 * stream without a model has only rows, alerts, rows/s and memory; without novelty there is no column of
 * alerts. A figure that is not known yet is "-". Nothing is printed before the first accepted row. */
#ifndef SVI_LIVE_FIGURES_H
#define SVI_LIVE_FIGURES_H

#include <stdio.h>

#include "fleet/stream.h"

struct svi_live_figures {
    FILE *to; /* NULL = nowhere */
    svi_stream *stream;
    int64_t every;   /* rows between lines; 0: powers of two */
    int64_t row;     /* the last row taken */
    int64_t next;    /* row of the next line; -1 = never */
    int64_t shown;   /* row of the last line; 0 = none yet */
    double shown_at; /* svi_monotonic */
    bool seconds;    /* also a line a second */
    bool headed;
    struct svi_stream_progress before; /* at the last line */
};

/* Call before the first row. */
void svi_live_figures_begin(struct svi_live_figures *l, FILE *to, svi_stream *stream, int64_t every);

/* Notes that row number `row` was taken, accepted or not. True: its line is due. Costs one comparison. */
static inline bool svi_live_figures_due(struct svi_live_figures *l, int64_t row) {
    l->row = row;
    return row == l->next;
}

/* Seconds until the next line on a terminal, 0 = now; INFINITY: none is due. Reads the clock. */
double svi_live_figures_wait(const struct svi_live_figures *l);

/* Prints the line of the last row and schedules the next. */
void svi_live_figures_show(struct svi_live_figures *l);

#endif
