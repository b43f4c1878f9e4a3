/* alert_plot.h: features over time, or over rows, with a dot for each alert that would have been opened, the
 * range that it expected, and marked incidents shaded. It shows the features that alerts name first, most
 * often named first, or the first three if there is no alert.
 *
 * A plot is of one stream without keys, or of one key. A picture has up to SVI_ALERT_PLOT_KEYS plots, whose
 * features take turns: the first one of each, then the second one of each.
 *
 * However long the stream, at most SVI_ALERT_PLOT_POINTS stretches of equally many rows are stored: of each
 * the lowest and highest values of the first SVI_ALERT_PLOT_COLUMNS features. Of the alerts at most
 * SVI_ALERT_PLOT_MARKS are stored; when they are full, neighbours of one feature become one. */
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
#define SVI_ALERT_PLOT_MARKS   512
#define SVI_ALERT_PLOT_KEYS    4 /* plots in a picture */

struct svi_alert_stretch {
    double first, last; /* its first and last place: seconds since 1970, or rows */
    float low[SVI_ALERT_PLOT_COLUMNS], high[SVI_ALERT_PLOT_COLUMNS]; /* NAN = no row has the feature */
};

/* An alert, or several of one feature that lie close together. */
struct svi_alert_mark {
    double at, until; /* where it opened and closed; until NAN = still open */
    int64_t alert;    /* number of the last of them */
    int column;       /* column of the feature that it names first; -1 = none */
    double value;     /* value of that feature; NAN = it was missing */
    double low, high; /* range that it expected; NAN = it gives none */
};

/* Zero-initialised is empty and without keys. */
struct svi_alert_plot {
    bool keyed; /* it is of the key below, else of a stream without keys */
    char key[SVS_KEY_MAX + 1];
    int count;                             /* stretches, including the last one, which may be incomplete */
    int d;                                 /* features so far, at most SVI_ALERT_PLOT_COLUMNS */
    int64_t per;                           /* rows of a complete stretch */
    int64_t open;                          /* rows of the last stretch */
    double at;                             /* place of the last row or alert; never decreases */
    int64_t named[SVI_ALERT_PLOT_COLUMNS]; /* number of alerts that name the feature first */
    char name[SVI_ALERT_PLOT_COLUMNS][SVI_ALERT_PLOT_NAME];
    int mark_count;
    struct svi_alert_mark mark[SVI_ALERT_PLOT_MARKS];
    struct svi_alert_stretch of[SVI_ALERT_PLOT_POINTS];
};

/* Is the plot of this key (NULL: none)? */
bool svi_alert_plot_is_of(const struct svi_alert_plot *p, const char *key);

/* Adds the row of a score event, at `at`; marks an alert that opened there; ends the alert of that number. */
void svi_alert_plot_add(struct svi_alert_plot *p, double at, const struct svi_event *score);
void svi_alert_plot_mark(struct svi_alert_plot *p, double at, const struct svi_alert_event *a);
void svi_alert_plot_close(struct svi_alert_plot *p, double at, int64_t alert);

void svi_alert_plot_reset(struct svi_alert_plot *p); /* empty again, of the same key */

/* Sets the names of the features, after the last row. */
void svi_alert_plot_names(struct svi_alert_plot *p, const struct svi_shape *shape);

/* Draws `count` plots, 1 to SVI_ALERT_PLOT_KEYS, into a file whose name svi_plot_takes accepts. `incidents`
 * NULL = none. SVS_INVALID: no row; SVS_NO_MEMORY; codes of svi_plot_write. */
svs_code svi_alert_plot_write(const struct svi_alert_plot *plots, int count, const char *path, bool by_rows,
                              const struct svi_incidents *incidents, svs_error *err);

#endif
