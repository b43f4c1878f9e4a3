/* alert_plot.h: features over time, or over rows, with dots for the alerts that would have been opened and
 * marked incidents shaded. It shows the features that alerts name first, most often named first, or the first
 * three if there is no alert.
 *
 * However long the stream, at most SVI_ALERT_PLOT_POINTS stretches of equally many rows are stored: of each
 * the lowest and highest values of the first SVI_ALERT_PLOT_COLUMNS features, and its first alert. */
#ifndef SVI_ALERT_PLOT_H
#define SVI_ALERT_PLOT_H

#include <stdbool.h>
#include <stdint.h>

#include "data/shape.h"
#include "report/incidents.h"
#include "wire/event.h"

#define SVI_ALERT_PLOT_POINTS  1024
#define SVI_ALERT_PLOT_COLUMNS 256
#define SVI_ALERT_PLOT_NAME    48

struct svi_alert_stretch {
    double first, last; /* its first and last place: seconds since 1970, or rows */
    double alert;       /* place of its first alert; NAN = none */
    int column;         /* column of the feature that the alert names first; -1 = none */
    double value;       /* value of that feature at the alert */
    float low[SVI_ALERT_PLOT_COLUMNS], high[SVI_ALERT_PLOT_COLUMNS]; /* NAN = no row has the feature */
};

/* Zero-initialised is empty. */
struct svi_alert_plot {
    int count;                             /* stretches, including the last one, which may be incomplete */
    int d;                                 /* features so far, at most SVI_ALERT_PLOT_COLUMNS */
    int64_t per;                           /* rows of a complete stretch */
    int64_t open;                          /* rows of the last stretch */
    double at;                             /* place of the last row; never decreases */
    int64_t named[SVI_ALERT_PLOT_COLUMNS]; /* number of alerts that name the feature first */
    char name[SVI_ALERT_PLOT_COLUMNS][SVI_ALERT_PLOT_NAME];
    struct svi_alert_stretch of[SVI_ALERT_PLOT_POINTS];
};

/* Adds a row of d features at `at`; marks an alert that the last row opened. */
void svi_alert_plot_add(struct svi_alert_plot *p, double at, const double *x, int d);
void svi_alert_plot_mark(struct svi_alert_plot *p, const struct svi_alert_event *a);

/* Sets the names of the features, after the last row. */
void svi_alert_plot_names(struct svi_alert_plot *p, const struct svi_shape *shape);

/* Draws into a file whose name svi_plot_takes accepts. `incidents` NULL = none. SVS_INVALID: no row; codes of
 * svi_plot_write. */
svs_code svi_alert_plot_write(const struct svi_alert_plot *p, const char *path, bool by_rows,
                              const struct svi_incidents *incidents, svs_error *err);

#endif
