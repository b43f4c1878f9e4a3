/* quality_plot.h: a plot of the quality, novelty and alerts of a stream, over rows or, if every row has a
 * time, over time.
 *
 * However long the stream is, at most QUALITY_POINTS stretches of equally many rows are stored.
 * Each has the quality at its end (over the engine's window), and its lowest and highest novelty.
 * It also has the alert of highest novelty that opened in it, at the row of that alert. */
#ifndef SVI_QUALITY_PLOT_H
#define SVI_QUALITY_PLOT_H

#include "fleet/stream.h"

#define QUALITY_POINTS 1024
#define QUALITY_LINES  2 /* accuracy and kappa, or rmse */

/* One accepted row. */
struct svi_quality_row {
    double row, time; /* time: seconds since 1970, NAN = none */
    double novelty;   /* NAN = not scored for novelty */
    bool alert;       /* an alert opened at it */
};

struct svi_quality_stretch {
    struct svi_quality_row first, last, alert; /* alert.alert: it has one */
    double low, high;                          /* novelty; NAN = no row was scored */
    double quality[QUALITY_LINES];             /* NAN = not known */
};

/* Zero-initialised is empty. */
struct svi_quality_plot {
    int count;     /* stretches, including the incomplete one */
    int64_t per;   /* rows of a complete stretch */
    int64_t open;  /* rows of the last stretch */
    bool timeless; /* a row had no time */
    double time;   /* latest time so far; never decreases */
    struct svi_quality_stretch of[QUALITY_POINTS];
};

/* Adds a row that the stream has accepted. */
void svi_quality_plot_add(struct svi_quality_plot *p, const struct svi_quality_row *row, svi_stream *stream);

/* Draws into a file whose name svi_plot_takes accepts. SVS_INVALID: nothing to draw; codes of svi_plot_write.
 */
svs_code svi_quality_plot_write(struct svi_quality_plot *p, const char *path, svi_stream *stream,
                                svs_error *err);

#endif
