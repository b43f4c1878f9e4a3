/* range.h: how far a value lies beyond every earlier one of its feature, as a second measure beside the
 * surprise of the model, and p-values of both together.
 *
 * WHY. The surprise is one number for all features. A rare state of which everything is known (the minutes of
 * a shift change, in which three sensors move together) is trimmed from learning and calibrates: its surprise
 * is high and stays so. One sensor alone, far beyond all that it ever showed, may surprise less than two of
 * the 2000 calibration rows, and its p is above 0.001. Measured (tests/property/test_novelty_range.c): all
 * calibration rows above the fault were such transients, and with these left out each fault was found.
 *
 * EXCESS of x: the largest over the features of how far x lies above the highest or below the lowest value in
 * the range, in widths of the feature: from the lowest to the highest of its 5 % and 95 % quantiles. From
 * SVI_RANGE_MIN_WIDTH on it counts; below that it is 0 and nothing is other than without a range. Nor does
 * anything count before the range has SVI_RANGE_ROWS rows: of a few rows each new one may be the highest.
 *
 * ORDER. Rows are compared by their excess first and then by their surprise, and p is conformal for that
 * order:
 *
 *     p = (1 + number of calibration rows that are not before x in it) / (1 + their number)
 *
 * WHY IT IS HONEST. The excess of x and that of each calibration row is taken against all the others, x and
 * each other included, so all are exchangeable, and P(p <= a) <= a as ever.
 *
 * MISSING values (NaN) neither lie beyond a range nor make it wider. Nor does a value of a feature of which
 * nothing else was seen.
 *
 * FORGETTING. One wrong value of a sensor must not make it deaf for ever: the range is that of the last
 * `span` to 2 `span` rows. It is held in two halves, `now` and `before`; when `now` is full it becomes
 * `before`, and what is far is found again.
 *
 * Rows of a disturbance are not part of the range, as they do not calibrate: those of a suspicious run wait
 * in `run`, until they are released or dropped. So all rows of a fault are held against what was before it.
 *
 * Of each feature the two highest and the two lowest values are kept: what is left without a row that holds
 * one of them. Cost: four comparisons a feature and row where
 * no range grows. */
#ifndef SVI_RANGE_H
#define SVI_RANGE_H

#include "base/archive.h"
#include "novelty/calibration.h"

#define SVI_RANGE_MIN_WIDTH 0.5
#define SVI_RANGE_ROWS      1000
#define SVI_RANGE_SHOWN     200 /* calibration rows that show what is usual of a feature, spread evenly */

/* Rows of d values: of each feature the highest value, the second highest, the lowest, the second lowest, and
 * the lowest and highest that was usual; infinite for none. */
enum { SVI_HIGH, SVI_HIGH_2, SVI_LOW, SVI_LOW_2, SVI_USUAL_LOW, SVI_USUAL_HIGH, SVI_EXTREMES };

struct svi_extremes {
    int64_t rows;                /* seen */
    double *value[SVI_EXTREMES]; /* one block */
};

enum { SVI_RANGE_NOW, SVI_RANGE_BEFORE, SVI_RANGE_RUN, SVI_RANGE_ALL, SVI_RANGE_PARTS };

struct svi_range {
    int d;
    int64_t span;                            /* rows, 0 or at least SVI_RANGE_ROWS; 0 = all */
    bool counts;                             /* there were enough rows when it was renewed */
    double *width;                           /* of each feature when it was renewed; 0 = none */
    struct svi_extremes of[SVI_RANGE_PARTS]; /* all: those of `now` and `before` */
    int *far, far_count;                     /* places of the calibration rows that have an excess */
    int capacity;                            /* rows that there is room for in `far` */
};

/* rows: calibration rows that there is room for; svi_range_reserve makes it more. SVS_NO_MEMORY: nothing has
 * changed. */
svs_code svi_range_init(struct svi_range *r, int d, int rows, int64_t span, svs_error *err);
svs_code svi_range_reserve(struct svi_range *r, int rows, svs_error *err);
void svi_range_clear(struct svi_range *r); /* frees */
void svi_range_empty(struct svi_range *r); /* as new */

double svi_range_memory(int d, int rows); /* bytes besides the struct */

/* 0, or SVI_RANGE_MIN_WIDTH at least: then *feature (may be NULL) is the one that has it. */
double svi_range_excess(const struct svi_range *r, const double *x, int *feature);

/* What the feature showed. False: nothing yet. */
bool svi_range_of(const struct svi_range *r, int feature, double *low, double *high);

/* A row becomes part of the range, or of the present run, whose rows do later or never. */
void svi_range_add(struct svi_range *r, const double *x);
void svi_range_hold(struct svi_range *r, const double *x);
void svi_range_release(struct svi_range *r);
void svi_range_drop(struct svi_range *r);

/* `rows`: the calibration rows, d values each, by their place. One is new, or takes an old one's place. */
void svi_range_put(struct svi_range *r, const double *rows, int place);

/* The 5 % and 95 % quantiles of a feature of the calibration rows, NaN for none; column: room for
 * SVI_RANGE_SHOWN values. */
void svi_range_normal(const double *rows, int d, int count, int feature, double *column, double *low,
                      double *high);

/* The calibration rows show what is usual now; widths, and which rows are far, are found again. column: as
 * above. */
void svi_range_renew(struct svi_range *r, const double *rows, int count, double *column);

/* Forgets what is older than the span; renews when it did. */
void svi_range_forget(struct svi_range *r, const double *rows, int count, double *column);

/* The p-value of x from its surprise and its excess. With no excess anywhere it is svi_calibration_p. *above
 * (may be NULL): without x and the rows that are its equals in the order, the share of those behind it: below
 * the p-value, and a place drawn evenly between the two is uniform on exchangeable samples. */
double svi_range_place(const struct svi_range *r, const struct svi_calibration *c, const double *rows,
                       const double *x, double surprise, double excess, double *above);

/* All of `from` into a new range of more features, each of `lags` parts wider, with 0 in what is new. */
void svi_range_widen(struct svi_range *to, const struct svi_range *from, int lags);

/* A feature of each of `lags` parts is 0 in all rows now, those in `rows` included: it has no width, and no
 * row is far by it. */
void svi_range_renew_feature(struct svi_range *r, int lags, int feature, const double *rows);

/* Loading goes into a range as new, after the calibration. */
void svi_range_archive(struct svi_archive *a, struct svi_range *r, const double *rows, int count);

#endif
