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

#define CLI_PLOT_COLUMNS 16 /* values of a point, at most */

enum cli_plot_kind {
    CLI_PLOT_LINE,  /* the column as a line */
    CLI_PLOT_BAND,  /* grey where the column, 0 or 1, is 1 */
    CLI_PLOT_LEVEL, /* dashed, at `level` */
    CLI_PLOT_MARKS  /* dots on the column, at the plot's marked points */
};

struct cli_plot_series {
    enum cli_plot_kind kind;
    int column;
    double level;
    const char *title; /* in the legend; NULL = none */
};

struct cli_plot_panel {
    const char *label; /* of the y axis, any text */
    double low, high;  /* of the y axis; equal = automatic */
    const struct cli_plot_series *series;
    int count;
};

struct cli_plot {
    int64_t n; /* at least 1 */
    int columns;
    /* Point i: its x (NAN: it is left out) and its values. */
    void (*point)(const void *user, int64_t i, double *x, double *values);
    const void *user;
    bool times;        /* x are seconds since 1970 */
    int marked;        /* the points marked are those with this column ... */
    double mark_above; /* ... above this */
    const struct cli_plot_panel *panels;
    int panel_count;
};

/* Does the name end in .svg or .png? */
bool cli_plot_takes(const char *path);

/* SVS_UNAVAILABLE (no gnuplot), SVS_IO. */
svs_code cli_plot_write(const char *path, const struct cli_plot *p, svs_error *err);

#endif
