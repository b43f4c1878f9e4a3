/* similarity.h: kernels with k(x, x) = 1, in two steps: `gap` depends on the two points alone, so that
 * several gammas share it; k = exp(-gamma gap), or a power of it for polynomials.
 *
 * MISSING coordinates are NaN. Distances are taken over those that both points have, times d / their number:
 * as if the others were as far apart. Two points that share none are as far apart as the median pair of
 * points is. Each value depends on the two points alone, so points stay exchangeable. Such a matrix of kernel
 * values need not be positive definite; the active set gets along with that. For polynomials points come
 * without NaN (coordinates.h). */
#ifndef SVI_SIMILARITY_H
#define SVI_SIMILARITY_H

#include <stdbool.h>

#include "base/statistics.h"
#include "linalg/kernels.h"
#include "svmstream/novelty.h"

/* Rows in coordinates: aligned, `stride` a multiple of 8, padded with zeros. */
struct svi_points {
    const double *x;
    int stride;
    int64_t count;
    bool gaps; /* coordinates may be missing in some of them */
};

struct svi_similarity {
    svs_novelty_kernel kernel;
    int degree; /* polynomial */
    const struct svi_kernels *pass;
    int d;          /* coordinates of a point */
    int columns;    /* of these, those that may be missing: the others are 0 in all points */
    double nothing; /* gap of points that share no coordinate; 0 until it is known */
};

/* For d features, all of them columns. */
struct svi_similarity svi_similarity_of(svs_novelty_kernel kernel, int degree, int d);

/* How many of n values are NaN. */
int svi_count_missing(const double *v, int n);

/* gap_i of `count` points from `first` on and v (with or without gaps): |x - v|^2, sum |x_j - v_j| or, for
 * polynomials, x'v. */
void svi_similarity_gap(const struct svi_similarity *s, const struct svi_points *p, int64_t first,
                        int64_t count, const double *v, double *gap);

/* k_i from gap_i; `k` may be `gap`. own: |v|^2, norm2: |x_i|^2, for polynomials alone (NULL otherwise). */
void svi_similarity_of_gap(const struct svi_similarity *s, double gamma, const double *gap,
                           const double *norm2, double own, int64_t count, double *k);

#define SVI_FAINT 1e-280 /* memberships below this are computed from the distances */

/* -log sum_i z_i k_i for rbf and laplacian, from the gaps: it stays exact where every k underflows. */
double svi_similarity_surprise(double gamma, const double *gap, const double *z, int64_t count);

/* The rules of svs_gamma_rule: 1 / (d variance) of all entries of a sample of rows; 1 / the median of the
 * gaps between rows, which change their order. 1/d and 1 where there is no spread. */
double svi_gamma_of_spread(const struct svi_moments *entries, int d);
double svi_gamma_of_gaps(double *gaps, int count);

/* svi_similarity.nothing of a model with that many members, the first of which has this gamma: the median
 * gap, where gamma goes by it; else 1 / gamma, too. */
double svi_gap_of_nothing(svs_novelty_kernel kernel, int members, double gamma);

/* Multiples of the median's gamma that make up the ensemble; 1 alone without one. Returns how many. */
int svi_gamma_multiples(const svs_novelty_options *o, double *multiples);

#endif
