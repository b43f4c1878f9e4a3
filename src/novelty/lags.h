/* lags.h: the last L samples as one, so that a single sensor has a shape: row i is (x_i, x_{i-1}, ..,
 * x_{i-L+1}), the newest first, each with all its d features; as differences it is (x_i, x_i - x_{i-1}, ..,
 * x_{i-L+2} - x_{i-L+1}): the level once, and each step. A missing value is NaN, and so are its steps. Files
 * and streams use this one definition. */
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
    int held;     /* samples pushed so far, at most lags */
    int newest;   /* its place in the ring */
    double *ring; /* lags x d */
};

/* For samples of d >= 1 values; lags 1 to SVI_LAGS_MAX, 1 = the sample itself. SVS_INVALID, SVS_NO_MEMORY. */
svs_code svi_lags_init(struct svi_lags *l, int d, int lags, bool differences, svs_error *err);
void svi_lags_clear(struct svi_lags *l); /* frees */

/* Forgets the samples: after a gap in the feed its two sides must not be joined. */
void svi_lags_empty(struct svi_lags *l);

/* Takes the sample x (d values). True: `out` holds lags x d values; false (it is left alone): fewer than lags
 * samples came so far. No allocation. */
bool svi_lags_push(struct svi_lags *l, const double *x, double *out);

/* Copies `rows` parts of `narrow` values each to where they have `wide` of them: what more features than
 * before leave of rows of lags. The new ones are left alone. */
void svi_lags_widen(double *to, int wide, const double *from, int narrow, int64_t rows);

/* The value 0 for a feature in `rows` parts of d values each; where it is missing it stays so. */
void svi_lags_renew(double *parts, int d, int64_t rows, int feature);

/* The name of column j of such a row from the names of the d features (NULL: "x1", "x2", ..): "pressure" for
 * the newest sample, "pressure[-2]" for the one two before, as differences "pressure step[-2]" for the step
 * from that one to the next. Returns out. */
char *svi_lags_name(const char *const *names, int d, bool differences, int j, char *out, size_t size);

/* Loading goes into lags from svi_lags_init with the same arguments. */
void svi_lags_archive(struct svi_archive *a, struct svi_lags *l);

#endif
