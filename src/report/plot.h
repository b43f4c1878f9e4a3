/* plot.h: series as a picture: panels one below the other over a common x axis, drawn by gnuplot into an SVG
 * or PNG.
 *
 * A plot has `n` points of `columns` values each; panels choose which columns they show and how. Of more than
 * 4000 points, runs are drawn by their lowest and highest values, so that a long series stays small and no
 * peak is lost. */
#ifndef SVI_PLOT_H
#define SVI_PLOT_H

#include <stdbool.h>
#include <stdint.h>

#include "svmstream/error.h"

#define SVI_PLOT_COLUMNS 16 /* values of a point, at most */

enum svi_plot_kind {
    SVI_PLOT_LINE,  /* the column as a line */
    SVI_PLOT_PALE,  /* the same, thin and pale: for what jumps from point to point */
    SVI_PLOT_BAND,  /* grey where the column, 0 or 1, is 1: the height of the panel, or up to 1 where its axis
                       is automatic */
    SVI_PLOT_LEVEL, /* dashed, at `level` */
    SVI_PLOT_MARKS  /* dots on the column, at the plot's marked points */
};

struct svi_plot_series {
    enum svi_plot_kind kind;
    int column;
    double level;
    const char *title; /* in the legend; NULL = none */
};

struct svi_plot_panel {
    const char *label; /* of the y axis, any text */
    double low, high;  /* of the y axis; equal = automatic */
    const struct svi_plot_series *series;
    int count;
};

struct svi_plot {
    int64_t n; /* at least 1 */
    int columns;
    /* Point i: its x (NAN: it is left out) and its values. */
    void (*point)(const void *user, int64_t i, double *x, double *values);
    const void *user;
    const char *x_label; /* of the x axis, NULL = none */
    bool times;          /* x are seconds since 1970 */
    int marked;          /* the points marked are those with this column ... */
    double mark_above;   /* ... above this */
    const struct svi_plot_panel *panels;
    int panel_count;
};

/* Does the name end in .svg or .png? */
bool svi_plot_takes(const char *path);

/* SVS_UNAVAILABLE (no gnuplot), SVS_IO. */
svs_code svi_plot_write(const char *path, const struct svi_plot *p, svs_error *err);

#endif
