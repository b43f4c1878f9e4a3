/* Collecting, then drawing. Rows go into the last of at most SVI_ALERT_PLOT_POINTS stretches; when all are
 * full, neighbours are merged and each covers twice as many rows. So memory is constant, one pass over the
 * rows suffices, and extreme values are never lost. Alerts are marked apart from rows, because some open
 * without one: a value or a whole key that is absent.
 *
 * Each panel of the picture is one feature of one plot, with points, dots and boxes of its own. An alert has
 * its dot at the value that it names; on the axis if that is missing; and, if its feature has no panel, on
 * each panel of its plot. */
#include "report/alert_plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "report/plot.h"

#define PANELS_MAX   4
#define PANELS_ALONE 3 /* panels of a plot without alerts, if it is the only one */
#define POINTS_EACH  2 /* points of a stretch: its lowest values, its highest values */
#define MARGIN       0.05
#define FINEST       1024 /* marks closer than this part of the plot become one first */

enum { INCIDENT, VALUE, COLUMNS }; /* of a point */

/* ---- collecting */

bool svi_alert_plot_is_of(const struct svi_alert_plot *p, const char *key) {
    return p->keyed ? key && strcmp(p->key, key) == 0 : !key;
}

void svi_alert_plot_reset(struct svi_alert_plot *p) {
    char key[sizeof p->key];
    const bool keyed = p->keyed;
    memcpy(key, p->key, sizeof key);
    memset(p, 0, sizeof *p); /* too large for the stack */
    p->keyed = keyed;
    memcpy(p->key, key, sizeof key);
}

/* Merges stretches in pairs, so that memory stays constant: each now covers twice as many rows. */
static void alert_plot_halve(struct svi_alert_plot *p) {
    for (int i = 0; i < SVI_ALERT_PLOT_POINTS / 2; i++) {
        const struct svi_alert_stretch *a = &p->of[2 * i], *b = &p->of[2 * i + 1];
        struct svi_alert_stretch both = {.first = a->first, .last = b->last};
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

void svi_alert_plot_add(struct svi_alert_plot *p, double at, const struct svi_event *score) {
    const uint8_t *gaps = score->as.score.gaps;
    int d = score->as.score.d;
    /* Columns beyond the limit are not plotted. */
    d = d < SVI_ALERT_PLOT_COLUMNS ? d : SVI_ALERT_PLOT_COLUMNS;
    if (d > p->d)
        alert_plot_widen(p, d);
    /* Time never decreases in the plot, even if samples do: a line must not fold over itself. */
    p->at = p->count == 0 ? at : fmax(p->at, at);
    p->per = p->per > 0 ? p->per : 1;
    /* All stretches are complete and the table is full: halve it before the row is added. */
    if (p->open == p->per && p->count == SVI_ALERT_PLOT_POINTS)
        alert_plot_halve(p);
    if (p->count == 0 || p->open == p->per) {
        struct svi_alert_stretch *s = &p->of[p->count++];
        s->first = p->at;
        for (int j = 0; j < p->d; j++)
            s->low[j] = s->high[j] = NAN;
        p->open = 0;
    }
    struct svi_alert_stretch *s = &p->of[p->count - 1];
    s->last = p->at;
    p->open++;
    for (int j = 0; j < d; j++) {
        /* What stands in for a missing value was never measured, and is not drawn. */
        const float v = gaps && gaps[j] ? NAN : (float)score->as.score.x[j];
        s->low[j] = fminf(s->low[j], v);
        s->high[j] = fmaxf(s->high[j], v);
    }
}

/* Joins marks of one feature that are closer than `gap`. The first one keeps its place, value and range. */
static void alert_plot_join(struct svi_alert_plot *p, double gap) {
    int kept = 0;
    for (int i = 0; i < p->mark_count; i++) {
        const struct svi_alert_mark *m = &p->mark[i];
        int j = kept - 1;
        while (j >= 0 && p->mark[j].column != m->column)
            j--;
        if (j >= 0 && m->at - p->mark[j].at < gap) {
            p->mark[j].until = m->until;
            p->mark[j].alert = m->alert;
        } else
            p->mark[kept++] = *m;
    }
    p->mark_count = kept;
}

/* Frees places for marks: half of them or, with alerts of very many features, one of each. */
static void alert_plot_thin(struct svi_alert_plot *p) {
    const double span = p->at - p->mark[0].at;
    for (double part = FINEST; part >= 0.5 && p->mark_count > SVI_ALERT_PLOT_MARKS / 2; part /= 2)
        alert_plot_join(p, span > 0 ? span / part : INFINITY);
}

void svi_alert_plot_mark(struct svi_alert_plot *p, double at, const struct svi_alert_event *a) {
    const int column = a->count > 0 && a->top[0].column < p->d ? a->top[0].column : -1;
    p->at = p->count == 0 && p->mark_count == 0 ? at : fmax(p->at, at);
    if (column >= 0)
        p->named[column]++;
    if (p->mark_count == SVI_ALERT_PLOT_MARKS)
        alert_plot_thin(p);
    p->mark[p->mark_count++] = (struct svi_alert_mark){.at = p->at,
                                                       .until = NAN,
                                                       .alert = a->alert,
                                                       .column = column,
                                                       .value = column >= 0 ? a->top[0].value : NAN,
                                                       .low = column >= 0 ? a->top[0].low : NAN,
                                                       .high = column >= 0 ? a->top[0].high : NAN};
}

void svi_alert_plot_close(struct svi_alert_plot *p, double at, int64_t alert) {
    for (int i = p->mark_count - 1; i >= 0; i--)
        if (p->mark[i].alert == alert && isnan(p->mark[i].until)) {
            p->mark[i].until = fmax(at, p->mark[i].at);
            return;
        }
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

/* A panel: one feature of a plot. */
struct alert_panel {
    const struct svi_alert_plot *plot;
    const struct svi_incidents *incidents;
    int feature;
    double low, high; /* of the y axis */
    int dots, boxes;
    struct svi_plot_dot dot[SVI_ALERT_PLOT_MARKS];
    struct svi_plot_box box[SVI_ALERT_PLOT_MARKS];
};

struct alert_picture {
    int panels;
    struct alert_panel panel[PANELS_MAX];
};

static void alert_plot_point(const void *user, int64_t i, double *x, double *values) {
    const struct alert_panel *c = user;
    const struct svi_alert_stretch *s = &c->plot->of[i / POINTS_EACH];
    const bool low = i % POINTS_EACH == 0;
    *x = low ? s->first : s->last;
    values[INCIDENT] = c->incidents && svi_incidents_cover(c->incidents, c->plot->keyed ? c->plot->key : NULL,
                                                           s->first, s->last);
    values[VALUE] = (double)(low ? s->low : s->high)[c->feature];
}

static bool alert_plot_has_panel(const struct alert_picture *c, const struct svi_alert_plot *p, int column) {
    for (int k = 0; k < c->panels; k++)
        if (c->panel[k].plot == p && c->panel[k].feature == column)
            return true;
    return false;
}

/* The feature of the next panel of a plot: the one named by most alerts that has none yet, the first of
 * equals; -1: there is no other. */
static int alert_plot_next(const struct alert_picture *c, const struct svi_alert_plot *p) {
    int most = -1;
    for (int j = 0; j < p->d; j++)
        if (p->named[j] > 0 && (most < 0 || p->named[j] > p->named[most]) && !alert_plot_has_panel(c, p, j))
            most = j;
    return most;
}

static void alert_plot_add_panel(struct alert_picture *c, const struct svi_alert_plot *p, int feature) {
    c->panel[c->panels].plot = p;
    c->panel[c->panels++].feature = feature;
}

/* Chooses the panels. The plots take turns, so that each has one: with its first feature if its alerts name
 * none. A single plot without a named feature has its first features. */
static void alert_plot_choose(struct alert_picture *c, const struct svi_alert_plot *plots, int count) {
    bool more = true;
    for (int turn = 0; more && c->panels < PANELS_MAX; turn++) {
        more = false;
        for (int i = 0; i < count && c->panels < PANELS_MAX; i++) {
            const int next = alert_plot_next(c, &plots[i]);
            if (next >= 0)
                alert_plot_add_panel(c, &plots[i], next);
            else if (turn == 0 && plots[i].d > 0)
                alert_plot_add_panel(c, &plots[i], 0);
            more = more || next >= 0;
        }
    }
    if (count == 1 && c->panels == 1 && plots->named[c->panel[0].feature] == 0)
        while (c->panels < PANELS_ALONE && c->panels < plots->d)
            alert_plot_add_panel(c, plots, c->panels);
}

/* The range of all values of a feature, with a margin above and below; never empty. */
static void alert_plot_range(struct alert_panel *c) {
    double low = INFINITY, high = -INFINITY;
    for (int i = 0; i < c->plot->count; i++) {
        low = fmin(low, (double)c->plot->of[i].low[c->feature]);
        high = fmax(high, (double)c->plot->of[i].high[c->feature]);
    }
    if (!(low <= high)) /* no value at all */
        low = high = 0;
    const double margin = high > low ? MARGIN * (high - low) : fmax(1e-9, MARGIN * fabs(high));
    c->low = low - margin;
    c->high = high + margin;
}

/* The highest value of the feature around a place, as drawn; NAN: none. */
static double alert_plot_value_at(const struct alert_panel *c, double at) {
    const struct svi_alert_plot *p = c->plot;
    int i = 0;
    while (i + 1 < p->count && p->of[i + 1].first <= at)
        i++;
    return p->count > 0 ? (double)p->of[i].high[c->feature] : NAN;
}

/* Fills in the dots and boxes of a panel. */
static void alert_plot_marks(const struct alert_picture *all, struct alert_panel *c) {
    const struct svi_alert_plot *p = c->plot;
    for (int i = 0; i < p->mark_count; i++) {
        const struct svi_alert_mark *m = &p->mark[i];
        const bool own = m->column == c->feature;
        if (!own && alert_plot_has_panel(all, p, m->column))
            continue;
        c->dot[c->dots++] = (struct svi_plot_dot){m->at, own ? m->value : alert_plot_value_at(c, m->at)};
        /* A range that is open at one end, such as that of a limit, reaches the edge of the panel. */
        if (own && (isfinite(m->low) || isfinite(m->high)))
            c->box[c->boxes++] = (struct svi_plot_box){m->at, isnan(m->until) ? INFINITY : m->until,
                                                       isfinite(m->low) ? m->low : -INFINITY,
                                                       isfinite(m->high) ? m->high : INFINITY};
    }
}

/* Draws the panels of the picture. The legend names each kind once, in the first panel that has it. */
static svs_code alert_plot_draw(struct alert_picture *c, const char *path, bool by_rows, svs_error *err) {
    static const struct svi_plot_series line[] = {{SVI_PLOT_LINE, VALUE, 0, NULL}};
    static const struct svi_plot_series series[][2] = {
        {{SVI_PLOT_BAND, INCIDENT, 0, "incident"}, {SVI_PLOT_LINE, VALUE, 0, NULL}},
        {{SVI_PLOT_BAND, INCIDENT, 0, NULL}, {SVI_PLOT_LINE, VALUE, 0, NULL}}};
    struct svi_plot_panel panels[PANELS_MAX];
    bool dots = false, boxes = false;
    for (int k = 0; k < c->panels; k++) {
        struct alert_panel *one = &c->panel[k];
        alert_plot_range(one);
        alert_plot_marks(c, one);
        panels[k] = (struct svi_plot_panel){.label = one->plot->name[one->feature],
                                            .low = one->low,
                                            .high = one->high,
                                            .series = one->incidents ? series[k > 0] : line,
                                            .count = one->incidents ? 2 : 1,
                                            .title = one->plot->keyed ? one->plot->key : NULL,
                                            .n = POINTS_EACH * (int64_t)one->plot->count,
                                            .user = one,
                                            .dots = one->dot,
                                            .dot_count = one->dots,
                                            .dot_title = dots ? NULL : "alert",
                                            .boxes = one->box,
                                            .box_count = one->boxes,
                                            .box_title = boxes ? NULL : "expected"};
        dots = dots || one->dots > 0;
        boxes = boxes || one->boxes > 0;
    }
    const struct svi_plot plot = {.columns = COLUMNS,
                                  .point = alert_plot_point,
                                  .times = !by_rows,
                                  .x_label = by_rows ? "row" : "time (UTC)",
                                  .marked = INCIDENT,
                                  .mark_above = INFINITY, /* dots are drawn apart */
                                  .panels = panels,
                                  .panel_count = c->panels};
    return svi_plot_write(path, &plot, err);
}

svs_code svi_alert_plot_write(const struct svi_alert_plot *plots, int count, const char *path, bool by_rows,
                              const struct svi_incidents *incidents, svs_error *err) {
    struct alert_picture *c = svi_alloc(sizeof *c);
    if (!c)
        return svi_fail_memory(err, "the plot");
    alert_plot_choose(c, plots, count);
    for (int k = 0; k < c->panels; k++)
        c->panel[k].incidents = incidents;
    const svs_code code = c->panels > 0
                              ? alert_plot_draw(c, path, by_rows, err)
                              : svi_fail(err, SVS_INVALID, "--plot has nothing to draw: no row was accepted");
    svi_free(c);
    return code;
}
