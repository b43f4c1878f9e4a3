/* plot.h: draws series into an SVG or PNG file with gnuplot: panels below each other over a common x axis.
 *
 * A plot has `n` points of `columns` values each; panels choose which columns they show and how. If there are
 * more than 4000 points, runs of points are drawn by their lowest and highest values, so that the file stays
 * small and no peak is lost. */
#ifndef SVI_PLOT_H
#define SVI_PLOT_H

#include <stdbool.h>
#include <stdint.h>

#include "svmstream/error.h"

#define SVI_PLOT_COLUMNS 16 /* most values of a point */

enum svi_plot_kind {
    SVI_PLOT_LINE,  /* the column as a line */
    SVI_PLOT_PALE,  /* a thin pale line, for values that jump from point to point */
    SVI_PLOT_BAND,  /* grey where the column is 1 (else 0): over the height of the panel, or up to 1 if its
                       axis is automatic */
    SVI_PLOT_LEVEL, /* a dashed line at `level` */
    SVI_PLOT_MARKS  /* dots on the column at the marked points of the plot */
};

struct svi_plot_series {
    enum svi_plot_kind kind;
    int column;
    double level;
    const char *title; /* in the legend; NULL = none */
};

/* A dot of a panel that has a range. */
struct svi_plot_dot {
    double x, y; /* y NAN: on the x axis */
};

/* A pale box of a panel that has a range, behind its lines; infinite ends reach the edge of the panel. */
struct svi_plot_box {
    double first, last; /* x */
    double low, high;
};

struct svi_plot_panel {
    const char *label; /* of the y axis, any text */
    double low, high;  /* range of the y axis; equal = automatic */
    const struct svi_plot_series *series;
    int count;
    const char *title; /* above the panel, any text; NULL = none */
    int64_t n;         /* points of its own, 0 = those of the plot: ... */
    const void *user;  /* ... `point` is called with this */
    const struct svi_plot_dot *dots;
    int dot_count;
    const char *dot_title; /* in the legend; NULL = none */
    const struct svi_plot_box *boxes;
    int box_count;
    const char *box_title;
};

struct svi_plot {
    int64_t n; /* at least 1, unless all panels have points of their own */
    int columns;
    /* Fills point i: its x (NAN: skip it) and its values. */
    void (*point)(const void *user, int64_t i, double *x, double *values);
    const void *user;
    const char *x_label; /* of the x axis, NULL = none */
    bool times;          /* x is in seconds since 1970 */
    int marked;          /* a point is marked if this column ... */
    double mark_above;   /* ... exceeds this value */
    const struct svi_plot_panel *panels;
    int panel_count;
};

/* Is the name usable: does it end in .svg or .png? */
bool svi_plot_takes(const char *path);

/* Draws the plot into a file. SVS_UNAVAILABLE: no gnuplot; SVS_IO. */
svs_code svi_plot_write(const char *path, const struct svi_plot *p, svs_error *err);

#endif
