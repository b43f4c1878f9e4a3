/* alert_plot.h: features over time, or over rows, with the alerts that would have been opened as dots and
 * marked incidents shaded: the features that the alerts name first, most often named first, or the first
 * three where there is no alert.
 *
 * However long the stream, at most SVI_ALERT_PLOT_POINTS stretches of equally many rows are kept, of each the
 * lowest and highest values of the first SVI_ALERT_PLOT_COLUMNS features and its first alert. */
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
    double first, last; /* where it begins and ends */
    double alert;       /* where its first alert opened, NAN = none did */
    int column;         /* of the feature that it named first, -1 = none */
    double value;       /* of that feature then */
    float low[SVI_ALERT_PLOT_COLUMNS], high[SVI_ALERT_PLOT_COLUMNS]; /* NAN = no row had it */
};

/* Zero-initialised is empty. */
struct svi_alert_plot {
    int count;                             /* stretches, the last one included, which may have room */
    int d;                                 /* features so far, SVI_ALERT_PLOT_COLUMNS at most */
    int64_t per;                           /* rows of a full one */
    int64_t open;                          /* rows of the last one */
    double at;                             /* of the last row: what is drawn never goes back */
    int64_t named[SVI_ALERT_PLOT_COLUMNS]; /* alerts that name the feature first */
    char name[SVI_ALERT_PLOT_COLUMNS][SVI_ALERT_PLOT_NAME];
    struct svi_alert_stretch of[SVI_ALERT_PLOT_POINTS];
};

/* A row of d features; and an alert that it opened. */
void svi_alert_plot_add(struct svi_alert_plot *p, double at, const double *x, int d);
void svi_alert_plot_mark(struct svi_alert_plot *p, const struct svi_alert_event *a);

/* The names of the features, once all rows are in. */
void svi_alert_plot_names(struct svi_alert_plot *p, const struct svi_shape *shape);

/* Draws into a file whose name svi_plot_takes. `incidents` NULL = none. SVS_INVALID: there is no row; codes
 * of svi_plot_write. */
svs_code svi_alert_plot_write(const struct svi_alert_plot *p, const char *path, bool by_rows,
                              const struct svi_incidents *incidents, svs_error *err);

#endif
