/* steps.h: how far each sensor has moved away from its own last rows, as a control chart sees it.
 *
 * Of each sensor an exponentially weighted mean and deviation of the last 50 and 200 rows are kept.
 * The distance of a row is that of its value from the mean, in deviations. What counts is the
 * distance that three of the last five rows reach (a runs rule, as in Western Electric 1956). One
 * wild reading is thus not enough, and one normal reading hides nothing.
 *
 * A squared distance counts as 25 times the mean square at most in the deviation, so that a fault does
 * not pass for noise. The deviation is at least a hundredth of the range of the sensor's values, because a
 * sensor at rest shows distances without end that mean nothing. The range fades by the memory. */
#ifndef SVI_STEPS_H
#define SVI_STEPS_H

#include <stdint.h>

#include "base/archive.h"
#include "svmstream/error.h"

#define SVI_STEPS_OF 5 /* rows of which three count */

struct svi_steps {
    int d;
    int64_t rows;
    double *seen;       /* d: values so far */
    double *mean;       /* d: of the last rows */
    double *square;     /* d: mean squared distance, in units of the sensor */
    double *low, *high; /* d: fading range of the values; NAN before the first */
    float *recent;      /* SVI_STEPS_OF x d: distances of the last rows, in deviations; ring by row */
    float *distance;    /* d: of the current row, as three of five reach it; 0 for none */
};

svs_code svi_steps_init(struct svi_steps *s, int d, svs_error *err); /* SVS_NO_MEMORY: may be cleared */
void svi_steps_clear(struct svi_steps *s);                           /* frees */

/* Fills in `distance` for a row of d values, NAN where missing, and learns the row. memory: rows, > 1. */
void svi_steps_row(struct svi_steps *s, const double *x, double memory);

/* What is kept of one sensor, to take a row back that must leave no trace: read before the row, restored
 * after it. The distances of the current row stay. */
struct svi_steps_column {
    double seen, mean, square, low, high;
};
struct svi_steps_column svi_steps_column(const struct svi_steps *s, int j);
void svi_steps_restore(struct svi_steps *s, int j, const struct svi_steps_column *c);

/* The mean that the row of sensor j was compared with, and the deviation; the last row is not in them. */
void svi_steps_normal(const struct svi_steps *s, int j, double x, double *mean, double *deviation);

void svi_steps_forget(struct svi_steps *s, int column); /* starts again */

/* Copies `from` into the first columns of `to`, which is new and has more. */
void svi_steps_widen(struct svi_steps *to, const struct svi_steps *from);
void svi_steps_archive(struct svi_archive *a, struct svi_steps *s);
double svi_steps_memory(int d); /* bytes */

#endif
