/* lags.h: the last L samples as one row, which gives a single sensor a shape. Row i is (x_i, x_{i-1}, ..,
 * x_{i-L+1}), newest first, each with all d features. As differences it is (x_i, x_i - x_{i-1}, .., x_{i-L+2}
 * - x_{i-L+1}): the level once, then each step. A missing value is NaN, and so are its steps. Files and
 * streams share this definition. */
#ifndef SVI_LAGS_H
#define SVI_LAGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/archive.h"
#include "svmstream/error.h"

#define SVI_LAGS_MAX 10000

struct svi_lags {
    int d, lags;
    bool differences;
    int held;     /* samples stored, at most lags */
    int newest;   /* place of the newest in the ring; older ones follow it */
    double *ring; /* lags x d */
};

/* For samples of d >= 1 values; lags 1 to SVI_LAGS_MAX, 1 = the sample itself. SVS_INVALID, SVS_NO_MEMORY. */
svs_code svi_lags_init(struct svi_lags *l, int d, int lags, bool differences, svs_error *err);
void svi_lags_clear(struct svi_lags *l); /* frees */

/* Drops the samples: the two sides of a gap in the feed must not be joined into one row. */
void svi_lags_empty(struct svi_lags *l);

/* Takes the sample x (d values). True: filled out[lags x d]. False: fewer than `lags` samples so far, `out`
 * is unchanged. Does not allocate. */
bool svi_lags_push(struct svi_lags *l, const double *x, double *out);

/* Copies `rows` parts of `narrow` values each to parts of `wide` >= narrow values, after features were added.
 * The additional values are not touched. */
void svi_lags_widen(double *to, int wide, const double *from, int narrow, int64_t rows);

/* Sets a feature to 0 in `rows` parts of d values each; missing values stay missing. */
void svi_lags_renew(double *parts, int d, int64_t rows, int feature);

/* The name of column j of such a row, made from the names of the d features (NULL: "x1", "x2", ..).
 * The newest sample has "pressure", the one two before it "pressure[-2]". As differences, "pressure
 * step[-2]" is the step from that one to the next. Returns out. */
char *svi_lags_name(const char *const *names, int d, bool differences, int j, char *out, size_t size);

/* Loads into an object from svi_lags_init with the same arguments. */
void svi_lags_archive(struct svi_archive *a, struct svi_lags *l);

#endif
