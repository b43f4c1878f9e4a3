/* prior.h: the pooled samples of all keys of a stream as a prior of each key, counting as much as n0 of its
 * own samples.
 *
 * Keys may have different levels. Each has a center c, and a sample of another key counts as if it had been
 * moved there: x - c_other + c_own. With all samples (x, t) of all keys, moved in this way, with weights s
 * and N = sum s, a key with its own samples (x, t) minimises
 *
 *     nu |w|^2 + min(1, n0 / N) sum_all s (t - w'z)^2 + sum_own s (t - w'z)^2,
 *
 * which is nu |w|^2 + min(1, n0 / N) (w - u)'G (w - u) + sum_own ... with G = sum_all s z z' and u
 * = G^-1 sum_all s t z. The exact model of all keys is u, and the ridge pulls towards it
 * (ALGORITHMS: power prior; Ibrahim and Chen 2000). G is needed only as sums, not row by row, and
 * sums add up over keys.
 *
 * Samples and keys that differ too much from the others are excluded (learner/prior_bounds.h).
 *
 * A prior is immutable, and many models share one; its users are counted. */
#ifndef SVI_PRIOR_H
#define SVI_PRIOR_H

#include <stdatomic.h>

#include "learner/prior_bounds.h"
#include "learner/prior_sums.h"

struct svi_prior {
    atomic_int users;
    bool regress;
    uint64_t number;    /* of this prior, ascending */
    int d, labels;      /* features; regression: labels 1 */
    double total;       /* N > 0 */
    uint64_t *identity; /* of each feature */
    svs_value *label;
    uint8_t *name;   /* SVS_NAME_MAX bytes for the text of each label */
    double *mean;    /* of each feature, m: relative to the center of the key */
    double *level;   /* of each feature: mean over keys of their means */
    double *between; /* variance of the keys around it, without the part due to chance; INFINITY: fewer than
                        two keys */
    double *off;     /* sum s (x - m): remainder from rounding the mean */
    double *spread;  /* sum s (x_i - m_i) (x_j - m_j), j <= i, row by row */
    double *weight;  /* of each label: sum s; regression: sum s t */
    double *sum;     /* labels x d: sum s (x - m); regression: sum s t (x - m) */
    struct svi_prior_bounds bounds; /* as of its sums */
};

/* Center of a key whose n samples have this mean. The mean is shrunk towards the level of all keys
 * (empirical Bayes; Efron and Morris 1973): level + B / (B + V / n) (mean - level). B is the
 * variance between keys, V the variance within a key. A mean too far from the level is not
 * shrunk. */
double svi_prior_center(const struct svi_prior *p, uint16_t feature, double mean, double n);

/* Makes a prior from these sums and bounds, with one user. *made is NULL if the sums are empty.
 * SVS_NO_MEMORY. */
svs_code svi_prior_make(const struct svi_prior_sums *s, const struct svi_prior_bounds *b, uint64_t number,
                        struct svi_prior **made, svs_error *err);

/* use: adds a user. release: removes one, frees the prior after the last, and sets *p to NULL. NULL is fine.
 * May be called from any thread. */
struct svi_prior *svi_prior_use(struct svi_prior *p);
void svi_prior_release(struct svi_prior **p);

/* Index of a feature, or SVI_PRIOR_NONE; of a label, or -1. `guess` is tried first. */
uint16_t svi_prior_feature(const struct svi_prior *p, uint64_t identity, int guess);
int svi_prior_label(const struct svi_prior *p, svs_value label, int guess);

/* Archives *p, which may be NULL. Loading makes a new prior, or uses `newest` (may be NULL) if it is the
 * same. */
void svi_prior_archive(struct svi_archive *a, struct svi_prior **p, struct svi_prior *newest);

#endif
