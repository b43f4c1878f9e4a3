/* The same scheme as alert_plot.c: a fixed number of stretches, merged in pairs when all are full. Figures
 * over the window are read once a stretch. */
#include "report/quality_plot.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "report/plot.h"

enum { QUALITY, NOVELTY = QUALITY + QUALITY_LINES, ALERT, COLUMNS }; /* of a point */
#define POINTS_EACH 3    /* points of a stretch: lowest novelty, alert, highest novelty */
#define SETTLING    0.05 /* share of the stretches, at the beginning, that do not determine the axis */

static const char *const classify[] = {"accuracy.w", "kappa.w"};
static const char *const regress[] = {"rmse.w"};

static bool quality_plot_regresses(const svi_stream *stream) {
    return svi_stream_settings(stream)->task == SVS_REGRESS;
}

/* collecting */

/* Figures over the window are read only at the end of a stretch: computing them for every row would dominate
 * the run. */
static void quality_plot_take_figures(struct svi_quality_stretch *s, svi_stream *stream) {
    struct svi_stream_progress now;
    const bool value = quality_plot_regresses(stream);
    svi_stream_progress(stream, &now);
    for (int i = 0; i < QUALITY_LINES; i++)
        s->quality[i] = value && i > 0 ? NAN
                                       : svi_figure_value(now.quality, now.quality_count,
                                                          value ? regress[i] : classify[i]);
}

/* Joins two consecutive stretches. fmin and fmax ignore a NAN; the quality is that of the later one. */
static struct svi_quality_stretch quality_plot_join(const struct svi_quality_stretch *a,
                                                    const struct svi_quality_stretch *b) {
    struct svi_quality_stretch both = *b;
    both.first = a->first;
    both.low = fmin(a->low, b->low);
    both.high = fmax(a->high, b->high);
    /* The alert of higher novelty survives. */
    if (a->alert.alert && !(b->alert.alert && b->alert.novelty > a->alert.novelty))
        both.alert = a->alert;
    return both;
}

static void quality_plot_halve(struct svi_quality_plot *p) {
    for (int i = 0; i < QUALITY_POINTS / 2; i++)
        p->of[i] = quality_plot_join(&p->of[2 * i], &p->of[2 * i + 1]);
    p->count = QUALITY_POINTS / 2;
    p->per *= 2;
    p->open = p->per;
}

void svi_quality_plot_add(struct svi_quality_plot *p, const struct svi_quality_row *row, svi_stream *stream) {
    struct svi_quality_stretch one = {*row, *row, *row, row->novelty, row->novelty, {NAN, NAN}};
    p->timeless = p->timeless || isnan(row->time);
    p->time = p->count == 0 ? row->time : fmax(p->time, row->time);
    one.first.time = one.last.time = one.alert.time = p->time;
    p->per = p->per > 0 ? p->per : 1;
    /* As in alert_plot.c: all stretches are complete and the table is full. */
    if (p->open == p->per && p->count == QUALITY_POINTS)
        quality_plot_halve(p);
    if (p->count == 0 || p->open == p->per) {
        p->of[p->count++] = one;
        p->open = 0;
    } else
        p->of[p->count - 1] = quality_plot_join(&p->of[p->count - 1], &one);
    if (++p->open == p->per)
        quality_plot_take_figures(&p->of[p->count - 1], stream);
}

/* ---- drawing */

static void quality_plot_point(const void *user, int64_t i, double *x, double *values) {
    const struct svi_quality_plot *p = user;
    const struct svi_quality_stretch *s = &p->of[i / POINTS_EACH];
    const int place = (int)(i % POINTS_EACH);
    const struct svi_quality_row *at = place == 0 ? &s->first : place == 1 ? &s->alert : &s->last;
    const bool marked = place == 1 && s->alert.alert;
    /* One row without a time puts the whole plot on row numbers. */
    *x = p->timeless ? at->row : at->time;
    if (place == 1 && !marked)
        *x = NAN;
    memcpy(values + QUALITY, s->quality, sizeof s->quality);
    values[NOVELTY] = marked ? s->alert.novelty : place == 0 ? s->low : s->high;
    values[ALERT] = marked;
}

/* The range of the quality after the model has settled, with a margin. False: no quality is known. */
static bool quality_plot_range(const struct svi_quality_plot *p, bool value, double *low, double *high) {
    bool known = false;
    *low = INFINITY;
    *high = -INFINITY;
    for (int i = 0; i < p->count; i++)
        for (int k = 0; k < QUALITY_LINES; k++) {
            const double q = p->of[i].quality[k];
            known = known || !isnan(q);
            if (i >= SETTLING * p->count) {
                *low = fmin(*low, q);
                *high = fmax(*high, q);
            }
        }
    if (*low > *high) { /* known only in the settling part */
        *low = 0;
        *high = 1;
    }
    /* An rmse starts at 0; an accuracy axis shows at least 0.9 to 1, so that small differences stay small. */
    *low = value ? 0 : fmin(floor(*low * 10) / 10, 0.9);
    *high = value ? fmax(*high * 1.1, 1e-12) : 1.005;
    return known;
}

static bool quality_plot_judged(const struct svi_quality_plot *p) {
    for (int i = 0; i < p->count; i++)
        if (!isnan(p->of[i].high))
            return true;
    return false;
}

svs_code svi_quality_plot_write(struct svi_quality_plot *p, const char *path, svi_stream *stream,
                                svs_error *err) {
    const bool value = quality_plot_regresses(stream);
    const struct svi_plot_series lines[] = {{SVI_PLOT_LINE, QUALITY, 0, value ? "rmse" : "accuracy"},
                                            {SVI_PLOT_MARKS, QUALITY, 0, NULL},
                                            {SVI_PLOT_LINE, QUALITY + 1, 0, "kappa"}},
                                 novelty[] = {{SVI_PLOT_PALE, NOVELTY, 0, "novelty"},
                                              {SVI_PLOT_MARKS, NOVELTY, 0, "alert"}};
    struct svi_plot_panel panels[2];
    int count = 0;
    double low, high;
    /* The last stretch is incomplete, so its figures were not read yet. */
    if (p->count > 0 && p->open < p->per)
        quality_plot_take_figures(&p->of[p->count - 1], stream);
    if (quality_plot_range(p, value, &low, &high))
        panels[count++] =
            (struct svi_plot_panel){.label = value ? "rmse over the window" : "quality over the window",
                                    .low = low,
                                    .high = high,
                                    .series = lines,
                                    .count = value ? 2 : 3};
    /* A panel is shown only if it has data. */
    if (svi_stream_settings(stream)->novelty != SVI_NOVELTY_NONE && quality_plot_judged(p))
        panels[count++] =
            (struct svi_plot_panel){.label = "novelty", .high = 1.05, .series = novelty, .count = 2};
    if (count == 0)
        return svi_fail(err, SVS_INVALID,
                        "--plot has nothing to draw: no accepted row has a label or a novelty score");
    const struct svi_plot plot = {.n = POINTS_EACH * (int64_t)p->count,
                                  .columns = COLUMNS,
                                  .point = quality_plot_point,
                                  .user = p,
                                  .times = !p->timeless,
                                  .x_label = p->timeless ? "row" : "time (UTC)",
                                  .marked = ALERT,
                                  .mark_above = 0.5,
                                  .panels = panels,
                                  .panel_count = count};
    return svi_plot_write(path, &plot, err);
}
