/* forecast.h: forecasts of each sensor by weighted least squares over the past, for all sensors at
 * once. One forecast uses the time and the context alone, the other all that is known before and
 * next to the sensor.
 *
 * One matrix of moments holds all that is needed: S = sum w_i z_i z_i' over rows z = (sensors x,
 * the sensors' means of the rows before, regressors c). The weights fade by 1 - 1 / memory a row.
 * The coefficients T of all sensors on the regressors solve
 *
 *     (S_cc + ridge) T = S_cx                                                                          (1)
 *
 * The other coordinates of sensor j are its own last values, the other sensors now and before, and
 * the time. With P = (S + ridge)^-1, its forecast from them, as a Gaussian law expects it, is
 *
 *     x_j - (P z)_j / P_jj                                                                             (2)
 *
 * The means are of the last row, and of about the last 4 and 25 (above 20 sensors, of the last row alone).
 * What a sensor showed before is part of z and not a residual of an earlier solution, so a new solution is no
 * step.
 *
 * The equations are solved at fixed row numbers, less and less often. Most rows therefore cost only
 * their products, which are added for several rows at a time. The ridge of some rows pulls
 * coefficients to 0 while there are few rows.
 *
 * Sensors are measured from their first level and in their first scale, so that sums keep their digits. A
 * missing value, or one that must not be learned, is learned as its forecast by (1). Forecasts by (2) start
 * from the values as they were, since what a failed sensor shows next depends on what it showed last. More
 * than SVI_FORECAST_OTHERS sensors are forecast by (1) alone. */
#ifndef SVI_FORECAST_H
#define SVI_FORECAST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/archive.h"
#include "svmstream/error.h"

#define SVI_FORECAST_OTHERS 64   /* most sensors that are forecast by (2) */
#define SVI_FORECAST_ROWS   4    /* rows whose products are added at a time */
#define SVI_FORECAST_CLIP   30.0 /* deviations: larger residuals do not count further for other sensors */
#define SVI_FORECAST_MAX    1e9  /* scales: largest distance from its level that a value counts as */

struct svi_forecast {
    int k, d;              /* regressors in use, the first of which is always 1; sensors */
    int lags;              /* last rows that are coordinates; 0: (1) alone, for too many sensors */
    bool solved;           /* P has been computed at least once */
    double memory;         /* rows, >= 1 */
    int64_t rows, next;    /* learned; number of the row at which the equations are solved next */
    int held;              /* rows in `waiting` */
    double *level, *scale; /* d: of the sensors; scale 0: not known yet, the sensor has no forecast */
    double *known, *mean;  /* d: values since the sensor first moved, and their mean, until it has a scale */
    double *square;        /* d: sum of their squared deviations */
    double *moments;       /* S, lower triangle; without lags only S_cc */
    double *cross;         /* S_cx: k x d; only without lags */
    double *waiting;       /* SVI_FORECAST_ROWS x n: rows learned that are not in S yet; only with lags */
    double *coefficients;  /* T: k x d */
    double *inverse;       /* the first d columns of P: n x d; only with lags */
    double *z;        /* n = (1 + lags) d + k: the current row, then the last ones, in scales, as they were */
    double *learned;  /* lags x d: the last rows as they were learned */
    double *out;      /* d: scratch */
    double *expected; /* d: forecast of the current row by context, in scales */
};

/* k regressors, d sensors. SVS_NO_MEMORY: `f` may be cleared. */
svs_code svi_forecast_init(struct svi_forecast *f, int k, int d, double memory, svs_error *err);
void svi_forecast_clear(struct svi_forecast *f); /* frees */

/* Adds regressors up to k, which count as 0 in all rows so far. SVS_NO_MEMORY: nothing has changed. */
svs_code svi_forecast_grow(struct svi_forecast *f, int k, svs_error *err);

/* Computes the residuals of a row, which becomes the current one. Inputs: c has k regressors, x has
 * d values, NaN where missing. Results: by_context and by_others have d residuals each by (1) and
 * (2), in scales; NaN: no forecast. The input `deviation` is the normal size of the residuals by
 * context (d values); NULL: unknown. In forecasts of other sensors a residual counts as
 * SVI_FORECAST_CLIP deviations at most, so that a sensor that fails does not make others look
 * wrong. */
void svi_forecast_residuals(struct svi_forecast *f, const double *c, const double *x, const float *deviation,
                            double *by_context, double *by_others);

/* The other sensor whose present value contributes most to the forecast (2) of sensor j in the current row;
 * -1: none. */
int svi_forecast_owes(const struct svi_forecast *f, int j);

/* Learns the current row. x, by_context: as in svi_forecast_residuals. odd: d flags of sensors whose value
 * counts as its forecast. */
void svi_forecast_learn(struct svi_forecast *f, const double *x, const double *by_context,
                        const uint8_t *odd);

/* A sensor starts again, as if it had had no value. */
void svi_forecast_forget(struct svi_forecast *f, int sensor);

/* Copies `from` into `to`, which is new, has more sensors and as many regressors. */
void svi_forecast_widen(struct svi_forecast *to, const struct svi_forecast *from);

/* Loading adds the regressors of the archive. */
void svi_forecast_archive(struct svi_archive *a, struct svi_forecast *f);
double svi_forecast_memory(int k, int d); /* bytes */

#endif
