/* forecast.h: what each sensor should show, from the time, the context and the other sensors: weighted least
 * squares over the past, all sensors at once.
 *
 * One matrix of moments, S = sum w_i z_i z_i' with z = (regressors, sensors), holds all that is needed: the
 * coefficients of every sensor on the regressors solve S_cc T = S_cx, and the forecast of a sensor from all
 * else follows from P = (S + ridge)^-1, as x_j - (P z)_j / P_jj (what a Gaussian law expects given all other
 * coordinates). Weights fade by 1 - 1 / memory a row. The equations are solved at fixed row numbers, ever
 * more seldom, so that most rows cost their products only.
 *
 * Sensors are measured from a first level and in a first scale of theirs, so that sums keep their digits. A
 * missing value, or one that is not to be learned, counts as its forecast. More than SVI_FORECAST_OTHERS
 * sensors are not forecast from each other.
 *
 * A few rows say little: a ridge of some rows pulls coefficients to 0. */
#ifndef SVI_FORECAST_H
#define SVI_FORECAST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/archive.h"
#include "svmstream/error.h"

#define SVI_FORECAST_OTHERS 64
#define SVI_FORECAST_CLIP   30.0
#define SVI_FORECAST_MAX    1e9 /* scales: a value counts as so far from its level at most */

struct svi_forecast {
    int k, d;              /* regressors that may be other than 0, the first of which is 1; sensors */
    bool others;           /* sensors are forecast from each other */
    bool solved;           /* that was possible at least once */
    double memory;         /* rows */
    int64_t rows, next;    /* learned; row at which it is solved again */
    double *level, *scale; /* d: of the sensors; scale 0: not known yet, the sensor is not forecast */
    double *known, *mean;  /* d: values of each since it moved, their mean ... */
    double *square;        /* ... and squared deviations, until it has a scale */
    double *regressors;    /* S_cc: k x k, lower triangle ... */
    double *sensors;       /* ... S_xx: d x d, lower triangle, with `others` ... */
    double *cross;         /* ... and S_cx: k x d */
    double *coefficients;  /* T: k x d */
    double *inverse;       /* the last d columns of P: (k + d) x d, with `others` */
    double *z;             /* k + d: the row at hand */
    double *out;           /* d */
    double *expected;      /* d: of the row at hand, by context */
};

/* SVS_NO_MEMORY: it may be cleared. */
svs_code svi_forecast_init(struct svi_forecast *f, int k, int d, double memory, svs_error *err);
void svi_forecast_clear(struct svi_forecast *f); /* frees */

/* More regressors, all of which were 0 so far. SVS_NO_MEMORY: nothing has changed. */
svs_code svi_forecast_grow(struct svi_forecast *f, int k, svs_error *err);

/* c: k regressors, x: d values, NaN where missing. Residuals, d each, in units of the scale; NaN: there is no
 * forecast. deviation: how far residuals by context usually lie from 0, d of them, NULL while not known: what
 * lies SVI_FORECAST_CLIP times as far counts so far in forecasts of other sensors, so that one that has gone
 * mad accuses no other. */
void svi_forecast_residuals(struct svi_forecast *f, const double *c, const double *x, const float *deviation,
                            double *by_context, double *by_others);

/* The sensor that the forecast of sensor j from all else owes most to in the row at hand; -1: none. */
int svi_forecast_owes(const struct svi_forecast *f, int j);

/* The row at hand is learned; `odd`: d flags, of sensors whose value counts as its forecast. */
void svi_forecast_learn(struct svi_forecast *f, const double *x, const double *by_context,
                        const uint8_t *odd);

/* A sensor starts again. */
void svi_forecast_forget(struct svi_forecast *f, int sensor);

/* All of `from` in one of more sensors that is as new. */
void svi_forecast_widen(struct svi_forecast *to, const struct svi_forecast *from);

/* Loading: room is made for the regressors that there are. */
void svi_forecast_archive(struct svi_archive *a, struct svi_forecast *f);
double svi_forecast_memory(int k, int d); /* bytes */

#endif
