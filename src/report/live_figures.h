/* live_figures.h: how a stream is doing while it is read, as a table for people: a line at rows 1, 2, 4, 8,
 * ... and on a terminal once a second besides, or a line every N rows.
 *
 *     rows  accuracy  since_last     kappa  alerts    rows/s    memory
 *
 * since_last and rows/s are of the rows since the line before, exactly; regression has rmse and mae, a stream
 * without a model only rows, alerts, rows/s and memory. A column without novelty is left out, a figure that
 * is not known yet is "-". Nothing is printed before a row was accepted. */
#ifndef SVI_LIVE_FIGURES_H
#define SVI_LIVE_FIGURES_H

#include <stdio.h>

#include "fleet/stream.h"

struct svi_live_figures {
    FILE *to; /* NULL = nowhere */
    svi_stream *stream;
    int64_t every;   /* 0: the powers of two */
    int64_t row;     /* the last one that was taken */
    int64_t next;    /* the row whose line is due, -1 = never */
    int64_t shown;   /* row of the last line, 0 = there was none */
    double shown_at; /* svi_monotonic */
    bool seconds;    /* a line a second, too */
    bool headed;
    struct svi_stream_progress before; /* at the last line */
};

/* Before the first row. */
void svi_live_figures_begin(struct svi_live_figures *l, FILE *to, svi_stream *stream, int64_t every);

/* Row number `row` was taken, accepted or not: is its line due? Costs a comparison. */
static inline bool svi_live_figures_due(struct svi_live_figures *l, int64_t row) {
    l->row = row;
    return row == l->next;
}

/* Seconds until the line of a terminal is due, 0 = now; INFINITY: none is. Reads the clock. */
double svi_live_figures_wait(const struct svi_live_figures *l);

/* Prints the line of the last row; the next one is due later. */
void svi_live_figures_show(struct svi_live_figures *l);

#endif
