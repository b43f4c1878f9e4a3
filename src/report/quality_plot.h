/* quality_plot.h: the quality of a stream, its novelty and its alerts as a picture, over rows or, where every
 * row has a time, over time.
 *
 * However long the stream, at most QUALITY_POINTS stretches of equally many rows are kept: the quality at the
 * end of each (of the engine's window), its lowest and highest novelty, and the alert of the highest novelty
 * that was opened in it, at its own row. */
#ifndef SVI_QUALITY_PLOT_H
#define SVI_QUALITY_PLOT_H

#include "fleet/stream.h"

#define QUALITY_POINTS 1024
#define QUALITY_LINES  2 /* accuracy and kappa; rmse */

/* One accepted row. */
struct svi_quality_row {
    double row, time; /* time: seconds since 1970, NAN = none */
    double novelty;   /* NAN = it was not judged */
    bool alert;       /* one was opened at it */
};

struct svi_quality_stretch {
    struct svi_quality_row first, last, alert; /* alert.alert: there is one */
    double low, high;                          /* novelty, NAN = no row was judged */
    double quality[QUALITY_LINES];             /* NAN = not known */
};

/* Zero-initialised is empty. */
struct svi_quality_plot {
    int count;     /* stretches, the open one included */
    int64_t per;   /* rows of a full one */
    int64_t open;  /* rows of the last one */
    bool timeless; /* a row had no time */
    double time;   /* the latest so far: what is drawn never goes back */
    struct svi_quality_stretch of[QUALITY_POINTS];
};

/* The row was handed to the stream and accepted. */
void svi_quality_plot_add(struct svi_quality_plot *p, const struct svi_quality_row *row, svi_stream *stream);

/* Draws what was added into a file whose name svi_plot_takes. SVS_INVALID: there is nothing to draw; codes of
 * svi_plot_write. */
svs_code svi_quality_plot_write(struct svi_quality_plot *p, const char *path, svi_stream *stream,
                                svs_error *err);

#endif
