/* similarity.h: kernels with k(x, x) = 1, in two steps. The gap depends on the two points alone, so several
 * gammas share it. rbf and laplacian: k = exp(-gamma gap). polynomial: k = ((1 + gamma gap) / (sqrt(1 + gamma
 * |x|^2) sqrt(1 + gamma |v|^2)))^degree, with the gap x'v.
 *
 * MISSING coordinates are NaN. Distances cover the coordinates that both points have, times d / their number,
 * as if the others were equally far apart. Two points without a common coordinate are as far apart as the
 * median pair of points. Each value depends on the two points alone, so points stay exchangeable. Such a
 * kernel matrix need not be positive definite; the active set tolerates that. Points of polynomials have no
 * NaN (coordinates.h). */
#ifndef SVI_SIMILARITY_H
#define SVI_SIMILARITY_H

#include <stdbool.h>

#include "base/statistics.h"
#include "linalg/kernels.h"
#include "svmstream/novelty.h"

/* Rows in coordinates: aligned to 64 bytes, `stride` a multiple of 8, padded with zeros. Borrowed. */
struct svi_points {
    const double *x;
    int stride;
    int64_t count;
    bool gaps; /* some of them may have missing coordinates */
};

struct svi_similarity {
    svs_novelty_kernel kernel;
    int degree; /* polynomial */
    const struct svi_kernels *pass;
    int d;          /* coordinates of a point */
    int columns;    /* coordinates in use, which may be missing; the others are 0 in all points */
    double nothing; /* gap of points without a common coordinate; 0 until it is known */
};

/* For d features, all of them in use. */
struct svi_similarity svi_similarity_of(svs_novelty_kernel kernel, int degree, int d);

/* The number of NaN among n values. */
int svi_count_missing(const double *v, int n);

/* Fills gap[count] for the points from `first` on and v: rbf |x - v|^2, laplacian sum |x_j - v_j|, polynomial
 * x'v. v may have missing coordinates. */
void svi_similarity_gap(const struct svi_similarity *s, const struct svi_points *p, int64_t first,
                        int64_t count, const double *v, double *gap);

/* Fills k[count] from gap[count]; `k` may be `gap`. own: |v|^2 and norm2[count]: |x_i|^2, for polynomials
 * only (norm2 NULL otherwise). */
void svi_similarity_of_gap(const struct svi_similarity *s, double gamma, const double *gap,
                           const double *norm2, double own, int64_t count, double *k);

#define SVI_FAINT 1e-280 /* memberships below this are computed from the distances */

/* -log sum_i z_i k_i for rbf and laplacian, from the gaps: it stays exact where every k underflows. */
double svi_similarity_surprise(double gamma, const double *gap, const double *z, int64_t count);

/* The rules of svs_gamma_rule. of_spread: 1 / (d variance) over all entries of a sample of rows, 1 / d
 * without spread. of_gaps: 1 / the median of gaps between rows, which are reordered; 1 without gaps. */
double svi_gamma_of_spread(const struct svi_moments *entries, int d);
double svi_gamma_of_gaps(double *gaps, int count);

/* svi_similarity.nothing of a model with `members` members, whose first has this gamma: the median gap where
 * gamma derives from it, otherwise 1 / gamma as well. */
double svi_gap_of_nothing(svs_novelty_kernel kernel, int members, double gamma);

/* Fills the multiples of the median's gamma that form the ensemble; just 1 without one. Returns how many. */
int svi_gamma_multiples(const svs_novelty_options *o, double *multiples);

#endif
