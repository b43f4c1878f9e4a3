/* prior.h: what all keys of a stream hold, as a prior of each: the pooled samples, which count as much as n0
 * samples of a key's own.
 *
 * Keys may lie at different levels. Each has a center c, and what another key holds counts for it as if it
 * had been moved there: x - c_other + c_own. Of all samples (x, t) that all keys hold, so moved, with weights
 * s and N = sum s, a key with the samples (x, t) of its own minimises
 *
 *     nu |w|^2 + min(1, n0 / N) sum_all s (t - w'z)^2 + sum_own s (t - w'z)^2,
 *
 * which is nu |w|^2 + min(1, n0 / N) (w - u)'G (w - u) + sum_own ... with G = sum_all s z z' and u = G^-1
 * sum_all s t z, the exact model of all keys: its ridge pulls towards u (ALGORITHMS: power prior; Ibrahim and
 * Chen 2000). G is not needed row by row, only as sums, and these add up over keys.
 *
 * Samples and keys far outside of what keys have in common do not enter (learner/prior_bounds.h).
 *
 * A prior never changes once it is made, and many models share one: who takes it counts as a user. */
#ifndef SVI_PRIOR_H
#define SVI_PRIOR_H

#include <stdatomic.h>

#include "learner/prior_bounds.h"
#include "learner/prior_sums.h"

struct svi_prior {
    atomic_int users;
    bool regress;
    uint64_t number;    /* which one it is */
    int d, labels;      /* features; regression: labels 1 */
    double total;       /* N > 0 */
    uint64_t *identity; /* of each feature */
    svs_value *label;
    uint8_t *name;   /* SVS_NAME_MAX bytes for that of each label */
    double *mean;    /* of each feature, m: from the center of its key */
    double *level;   /* the mean over keys of their means */
    double *between; /* the variance of keys around it, less what chance brings about; INFINITY: of fewer
                        than two keys */
    double *off;     /* sum s (x - m): what rounding of the mean leaves */
    double *spread;  /* sum s (x_i - m_i) (x_j - m_j), j <= i, row by row */
    double *weight;  /* of each label: sum s; regression: sum s t */
    double *sum;     /* labels x d: sum s (x - m); regression: sum s t (x - m) */
    struct svi_prior_bounds bounds; /* as of its sums */
};

/* Where a key lies whose n samples have the mean `mean`: between that and the level of all, by what is known
 * of both (empirical Bayes; Efron and Morris 1973): level + B / (B + V / n) (mean - level), with B the
 * variance between keys and V that within. One whose level is too far off lies where its samples lie. */
double svi_prior_center(const struct svi_prior *p, uint16_t feature, double mean, double n);

/* From these sums and bounds, with one user. *made is NULL where nothing is in them. SVS_NO_MEMORY. */
svs_code svi_prior_make(const struct svi_prior_sums *s, const struct svi_prior_bounds *b, uint64_t number,
                        struct svi_prior **made, svs_error *err);

/* One user more; one less, and *p is NULL then. NULL is fine. From any thread. */
struct svi_prior *svi_prior_use(struct svi_prior *p);
void svi_prior_release(struct svi_prior **p);

/* The place of a feature, or SVI_PRIOR_NONE; of a label, or -1. */
uint16_t svi_prior_feature(const struct svi_prior *p, uint64_t identity, int guess);
int svi_prior_label(const struct svi_prior *p, svs_value label, int guess);

/* *p, or none (NULL); loading: a new one, or `newest`, if it is that (NULL is fine). */
void svi_prior_archive(struct svi_archive *a, struct svi_prior **p, struct svi_prior *newest);

#endif
