/* Collecting, then drawing. Rows go into the last of at most SVI_ALERT_PLOT_POINTS stretches; when all are
 * full, neighbours are merged and each covers twice as many rows. So memory is constant, one pass over the
 * rows suffices, and extreme values are never lost. */
#include "report/alert_plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "report/plot.h"

#define PANELS_MAX   4
#define PANELS_ALONE 3 /* panels shown if there is no alert */
#define POINTS_EACH  3 /* points of a stretch: its lowest values, its alert, its highest values */
#define MARGIN       0.05

enum { INCIDENT, ALERT, VALUE, COLUMNS = VALUE + 2 * PANELS_MAX }; /* a panel has a value and a dot */

/* collecting */

/* Merges stretches in pairs, so that memory stays constant: each now covers twice as many rows. Only the
 * first alert of a pair survives. */
static void alert_plot_halve(struct svi_alert_plot *p) {
    for (int i = 0; i < SVI_ALERT_PLOT_POINTS / 2; i++) {
        const struct svi_alert_stretch *a = &p->of[2 * i], *b = &p->of[2 * i + 1];
        struct svi_alert_stretch both = isnan(a->alert) ? *b : *a;
        both.first = a->first;
        both.last = b->last;
        for (int j = 0; j < p->d; j++) { /* fminf and fmaxf ignore a NAN */
            both.low[j] = fminf(a->low[j], b->low[j]);
            both.high[j] = fmaxf(a->high[j], b->high[j]);
        }
        p->of[i] = both;
    }
    p->count = SVI_ALERT_PLOT_POINTS / 2;
    p->per *= 2;
    p->open = p->per;
}

/* Features that appear later have no values in earlier stretches. */
static void alert_plot_widen(struct svi_alert_plot *p, int d) {
    for (int i = 0; i < p->count; i++)
        for (int j = p->d; j < d; j++)
            p->of[i].low[j] = p->of[i].high[j] = NAN;
    p->d = d;
}

void svi_alert_plot_add(struct svi_alert_plot *p, double at, const double *x, int d) {
    /* Columns beyond the limit are not plotted. */
    d = d < SVI_ALERT_PLOT_COLUMNS ? d : SVI_ALERT_PLOT_COLUMNS;
    if (d > p->d)
        alert_plot_widen(p, d);
    /* Time never goes back in the plot, even if samples do: a line must not fold over itself. */
    p->at = p->count == 0 ? at : fmax(p->at, at);
    p->per = p->per > 0 ? p->per : 1;
    /* All stretches are complete and the table is full: halve it before the row is added. */
    if (p->open == p->per && p->count == SVI_ALERT_PLOT_POINTS)
        alert_plot_halve(p);
    if (p->count == 0 || p->open == p->per) {
        struct svi_alert_stretch *s = &p->of[p->count++];
        s->first = p->at;
        s->alert = NAN;
        for (int j = 0; j < p->d; j++)
            s->low[j] = s->high[j] = NAN;
        p->open = 0;
    }
    struct svi_alert_stretch *s = &p->of[p->count - 1];
    s->last = p->at;
    p->open++;
    for (int j = 0; j < d; j++) {
        s->low[j] = fminf(s->low[j], (float)x[j]);
        s->high[j] = fmaxf(s->high[j], (float)x[j]);
    }
}

void svi_alert_plot_mark(struct svi_alert_plot *p, const struct svi_alert_event *a) {
    const int column = a->count > 0 && a->top[0].column < p->d ? a->top[0].column : -1;
    struct svi_alert_stretch *s = p->count > 0 ? &p->of[p->count - 1] : NULL;
    if (column >= 0)
        p->named[column]++;
    /* One dot for each stretch: the first alert of it. */
    if (!s || !isnan(s->alert))
        return;
    s->alert = p->at;
    s->column = column;
    s->value = column >= 0 ? a->top[0].value : NAN;
}

void svi_alert_plot_names(struct svi_alert_plot *p, const struct svi_shape *shape) {
    for (int j = 0; j < p->d; j++) {
        /* Unnamed features keep their number, from 0 as in the data. */
        const char *name = j < shape->names_kept ? svs_features_name(shape->names, j) : NULL;
        if (name)
            svi_escape(p->name[j], sizeof p->name[j], name, strlen(name));
        else
            snprintf(p->name[j], sizeof p->name[j], "feature %d", j);
    }
}

/* ---- drawing */

struct alert_picture {
    const struct svi_alert_plot *plot;
    const struct svi_incidents *incidents;
    int feature[PANELS_MAX];
    int panels;
};

static void alert_plot_point(const void *user, int64_t i, double *x, double *values) {
    const struct alert_picture *c = user;
    const struct svi_alert_stretch *s = &c->plot->of[i / POINTS_EACH];
    const int place = (int)(i % POINTS_EACH);
    const bool alert = place == 1 && !isnan(s->alert);
    bool drawn = false;
    for (int k = 0; k < c->panels; k++)
        drawn = drawn || c->feature[k] == s->column;
    /* Each stretch yields three points: lowest values, alert (x NAN if none), highest values. */
    *x = place == 0 ? s->first : place == 1 ? s->alert : s->last; /* NAN: no alert */
    values[INCIDENT] = c->incidents && svi_incidents_cover(c->incidents, s->first, s->last);
    values[ALERT] = alert;
    for (int k = 0; k < c->panels; k++) {
        const int j = c->feature[k];
        const bool named = alert && s->column == j && !isnan(s->value);
        values[VALUE + 2 * k] = named ? s->value : place == 0 ? (double)s->low[j] : (double)s->high[j];
        /* The dot goes on the panel of the feature that the alert names; if that has no panel, on every
         * panel. */
        values[VALUE + 2 * k + 1] = named || (alert && !drawn) ? values[VALUE + 2 * k] : NAN;
    }
}

/* Chooses the features of the panels: those named by most alerts, the first of equals; without alerts the
 * first features. */
static void alert_plot_choose(struct alert_picture *c) {
    const struct svi_alert_plot *p = c->plot;
    for (int most = 0; c->panels < PANELS_MAX && most >= 0;) {
        most = -1;
        for (int j = 0; j < p->d; j++) {
            bool taken = p->named[j] == 0;
            for (int k = 0; k < c->panels; k++)
                taken = taken || c->feature[k] == j;
            if (!taken && (most < 0 || p->named[j] > p->named[most]))
                most = j;
        }
        if (most >= 0)
            c->feature[c->panels++] = most;
    }
    /* Without a named feature the first ones are shown; at least one panel in any case. */
    while (c->panels == 0 || (c->panels < PANELS_ALONE && c->panels < p->d && p->named[c->feature[0]] == 0)) {
        c->feature[c->panels] = c->panels;
        c->panels++;
    }
}

/* The range of all values of a feature, with a margin above and below; never empty. */
static void alert_plot_range(const struct svi_alert_plot *p, int j, double *low, double *high) {
    *low = INFINITY;
    *high = -INFINITY;
    for (int i = 0; i < p->count; i++) {
        *low = fmin(*low, (double)p->of[i].low[j]);
        *high = fmax(*high, (double)p->of[i].high[j]);
    }
    const double margin = *high > *low ? MARGIN * (*high - *low) : fmax(1e-9, MARGIN * fabs(*high));
    *low -= margin;
    *high += margin;
}

svs_code svi_alert_plot_write(const struct svi_alert_plot *p, const char *path, bool by_rows,
                              const struct svi_incidents *incidents, svs_error *err) {
    struct alert_picture c = {.plot = p, .incidents = incidents};
    struct svi_plot_series series[PANELS_MAX][3];
    struct svi_plot_panel panels[PANELS_MAX];
    /* Without incidents the first series is skipped: the next one takes its slot. */
    const int bands = incidents != NULL;
    if (p->count == 0 || p->d == 0)
        return svi_fail(err, SVS_INVALID, "--plot has nothing to draw: no row was accepted");
    alert_plot_choose(&c);
    /* Bands are drawn first, so that lines and dots lie above them; the legend names each kind once, in the
     * top panel. */
    for (int k = 0; k < c.panels; k++) {
        double low, high;
        alert_plot_range(p, c.feature[k], &low, &high);
        series[k][0] = (struct svi_plot_series){SVI_PLOT_BAND, INCIDENT, 0, k == 0 ? "incident" : NULL};
        series[k][bands] = (struct svi_plot_series){SVI_PLOT_LINE, VALUE + 2 * k, 0, NULL};
        series[k][bands + 1] =
            (struct svi_plot_series){SVI_PLOT_MARKS, VALUE + 2 * k + 1, 0, k == 0 ? "alert" : NULL};
        panels[k] = (struct svi_plot_panel){p->name[c.feature[k]], low, high, series[k], bands + 2};
    }
    const struct svi_plot plot = {.n = POINTS_EACH * (int64_t)p->count,
                                  .columns = COLUMNS,
                                  .point = alert_plot_point,
                                  .user = &c,
                                  .times = !by_rows,
                                  .x_label = by_rows ? "row" : "time (UTC)",
                                  .marked = ALERT,
                                  .mark_above = 0.5,
                                  .panels = panels,
                                  .panel_count = c.panels};
    return svi_plot_write(path, &plot, err);
}
