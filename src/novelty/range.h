/* range.h: how far a value lies beyond every earlier one of its feature, as a second measure next to the
 * surprise of the model, and p-values from both.
 *
 * WHY. The surprise is one number for all features. A rare but known state (the minutes of a shift change, in
 * which three sensors move together) is trimmed from learning and calibrates: its surprise is high and stays
 * high. One sensor alone, far beyond everything it ever showed, may surprise less than two of the 2000
 * calibration rows, and its p is above 0.001. Measured (tests/property/test_novelty_range.c): all calibration
 * rows above the fault were such transients, and without them each fault was found.
 *
 * EXCESS of x: the largest distance, over the features, of x above the highest or below the lowest value of
 * the range, in widths of the feature. A width is the distance from the lowest 5 % quantile to the highest 95
 * % quantile seen. An excess below SVI_RANGE_MIN_WIDTH is 0 and changes nothing. Nothing counts before the
 * range has SVI_RANGE_ROWS rows: among few rows each new one may be the highest.
 *
 * ORDER. Rows are compared by their excess first and then by their surprise, and p is conformal for that
 * order:
 *
 *     p = (1 + number of calibration rows that are not below x in it) / (1 + their number)
 *
 * VALIDITY. The excess of x and of each calibration row is measured against all others, x and each other
 * included. All are therefore exchangeable, and P(p <= a) <= a holds.
 *
 * MISSING values (NaN) neither lie beyond a range nor widen it. A value of a feature without any other value
 * does not either.
 *
 * FORGETTING. One wrong value of a sensor must not make it insensitive for ever: the range covers the last
 * `span` to 2 `span` rows. It consists of two halves, `now` and `before`; when `now` is full it becomes
 * `before`, and widths and far rows are derived again.
 *
 * Rows of a disturbance are not part of the range, just as they do not calibrate: rows of a suspicious run
 * wait in `run` until they are released or dropped. All rows of a fault are thus compared with what preceded
 * it.
 *
 * Of each feature the two highest and the two lowest values are stored, so that the range without any one row
 * is known. Cost: four comparisons per feature and row while no range grows. */
#ifndef SVI_RANGE_H
#define SVI_RANGE_H

#include "base/archive.h"
#include "novelty/calibration.h"

#define SVI_RANGE_MIN_WIDTH 0.5  /* smallest excess that counts, in widths */
#define SVI_RANGE_ROWS      1000 /* rows before an excess counts */
#define SVI_RANGE_SHOWN     200  /* calibration rows, spread evenly, for the quantiles of a feature */

/* Rows of d values: per feature the highest and second highest value, the lowest and second lowest, and the
 * lowest 5 % and highest 95 % quantile; infinite before the first value. */
enum { SVI_HIGH, SVI_HIGH_2, SVI_LOW, SVI_LOW_2, SVI_NORMAL_LOW, SVI_NORMAL_HIGH, SVI_EXTREMES };

struct svi_extremes {
    int64_t rows;                /* rows added */
    double *value[SVI_EXTREMES]; /* d values each, in one block */
};

enum { SVI_RANGE_NOW, SVI_RANGE_BEFORE, SVI_RANGE_RUN, SVI_RANGE_ALL, SVI_RANGE_PARTS };

struct svi_range {
    int d;
    int64_t span;                            /* rows, at least SVI_RANGE_ROWS; 0: nothing is forgotten */
    bool counts;                             /* there were enough rows at the last renewal */
    double *width;                           /* d widths as of the last renewal; 0: none */
    struct svi_extremes of[SVI_RANGE_PARTS]; /* [ALL]: of `now` and `before` together */
    int *far, far_count;                     /* places of the calibration rows that have an excess */
    int capacity;                            /* of `far`, in calibration rows */
};

/* rows: capacity for calibration rows, which svi_range_reserve increases. SVS_NO_MEMORY: nothing has
 * changed. */
svs_code svi_range_init(struct svi_range *r, int d, int rows, int64_t span, svs_error *err);
svs_code svi_range_reserve(struct svi_range *r, int rows, svs_error *err);
void svi_range_clear(struct svi_range *r); /* frees */
void svi_range_empty(struct svi_range *r); /* as new */

double svi_range_memory(int d, int rows); /* bytes besides the struct */

/* The excess of x[d]: 0, or at least SVI_RANGE_MIN_WIDTH. *feature (may be NULL): the feature that has it, -1
 * for none. */
double svi_range_excess(const struct svi_range *r, const double *x, int *feature);

/* The lowest and highest value of a feature. False: none yet. */
bool svi_range_of(const struct svi_range *r, int feature, double *low, double *high);

/* add: extends the range by a row. hold: adds a row to the present run instead. release: extends the range by
 * the run's rows; drop: discards them. */
void svi_range_add(struct svi_range *r, const double *x);
void svi_range_hold(struct svi_range *r, const double *x);
void svi_range_release(struct svi_range *r);
void svi_range_drop(struct svi_range *r);

/* The calibration row at `place` is new, or has replaced an old one. rows: all of them, d values each, by
 * place. */
void svi_range_put(struct svi_range *r, const double *rows, int place);

/* The 5 % and 95 % quantiles of a feature over the calibration rows, NaN for none. column: scratch,
 * SVI_RANGE_SHOWN values. */
void svi_range_normal(const double *rows, int d, int count, int feature, double *column, double *low,
                      double *high);

/* Extends the normal quantiles by those of the calibration rows, and derives widths and far rows again.
 * column: as above. */
void svi_range_renew(struct svi_range *r, const double *rows, int count, double *column);

/* Drops values older than the span, when due, and then renews. */
void svi_range_forget(struct svi_range *r, const double *rows, int count, double *column);

/* The p-value of x from its surprise and its excess; without any excess it is svi_calibration_p. *above (may
 * be NULL): the share of calibration rows strictly above x in the order. It is below the p-value, and a value
 * drawn evenly between the two is uniform on exchangeable samples. */
double svi_range_place(const struct svi_range *r, const struct svi_calibration *c, const double *rows,
                       const double *x, double surprise, double excess, double *above);

/* Copies `from` into a new range with more features in each of `lags` parts; new features are 0. */
void svi_range_widen(struct svi_range *to, const struct svi_range *from, int lags);

/* A feature of each of `lags` parts became 0 in all rows, those in `rows` included: it loses its width, and
 * no row is far by it. */
void svi_range_renew_feature(struct svi_range *r, int lags, int feature, const double *rows);

/* Loads into a new range, after the calibration was loaded. */
void svi_range_archive(struct svi_archive *a, struct svi_range *r, const double *rows, int count);

#endif
