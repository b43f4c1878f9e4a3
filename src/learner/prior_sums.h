/* prior_sums.h: what the samples that many models hold add up to, so exactly that a sample that is taken out
 * leaves nothing behind.
 *
 * With x = (1, features): sum s x x', and for each label sum s x over its samples (regression: sum s t x).
 * Each number is a sum of two doubles, and products enter whole (Dekker 1971, "A floating-point technique for
 * extending the available precision"; Knuth, TAOCP 2, 4.2.2), so that about 30 digits are right, however far
 * from 0 the features lie.
 *
 * Features and labels are known by what they are, not by a number that a model gave them: features by 64
 * bits (svi_prior_identity), labels by their value. What one thread adds is in sums of its own; these are
 * moved into the sums of all in a fixed order (svi_prior_sums_move). */
#ifndef SVI_PRIOR_SUMS_H
#define SVI_PRIOR_SUMS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/archive.h"
#include "linalg/double_double.h"
#include "linalg/kernels.h"
#include "learner/prior_bounds.h"
#include "svmstream/error.h"
#include "svmstream/value.h"

#define SVI_PRIOR_LABELS 64

/* Of each feature over the keys that have a mean: how many these are; the sums of 1 / n, of means and of
 * their squares. */
enum { SVI_PRIOR_KEYS, SVI_PRIOR_INVERSE, SVI_PRIOR_MEAN, SVI_PRIOR_SQUARE, SVI_PRIOR_OF_KEYS };

struct svi_prior_sums {
    bool regress;
    bool touched;                /* there is something in them */
    int n, capacity;             /* coordinates: 1, then the features; of which there is room */
    int labels, label_capacity;  /* regression: one, of no label */
    uint64_t *identity;          /* of coordinate j, from 1 */
    svs_value *label;            /* owned */
    double *high, *low;          /* sum s x_i x_j, j <= i, row by row (NULL: no room yet) */
    double *by_label, *by_low;   /* label_capacity x room */
    double *by_key, *by_key_low; /* SVI_PRIOR_OF_KEYS x room */
    double *x;                   /* of the sample at hand */
    /* The largest that ever came in since they were empty: s x_i^2; the square of a key's mean; s t^2. What
     * cancels may have left 2^-104 of it (svi_prior_sums_inexact). */
    double *peak, *key_peak, target_peak;
    int64_t out; /* samples that are held, and do not enter (svi_prior_sums_add) */
};

/* Of a feature with that name, or of the one with that number where it has none (NULL). */
uint64_t svi_prior_identity(const char *name, int number);

/* Which of the `count` identities it is, probably the one at `guess`; or SVI_PRIOR_NONE. */
uint16_t svi_prior_find(const uint64_t *all, int count, uint64_t identity, int guess);

/* All zero. Nothing is allocated yet. */
void svi_prior_sums_init(struct svi_prior_sums *s, bool regress);
void svi_prior_sums_clear(struct svi_prior_sums *s); /* frees */

/* Room for what there is; before a sample of no features. SVS_NO_MEMORY. */
svs_code svi_prior_sums_ready(struct svi_prior_sums *s, svs_error *err);

/* The coordinate of a feature, the place of a label: found, or made. `guess`: where it probably is.
 * SVI_PRIOR_NONE: there are too many. SVS_NO_MEMORY. */
svs_code svi_prior_sums_feature(struct svi_prior_sums *s, uint64_t identity, int guess, uint16_t *place,
                                svs_error *err);
svs_code svi_prior_sums_label(struct svi_prior_sums *s, svs_value label, int guess, uint16_t *place,
                              svs_error *err);

/* The place of a label, or SVI_PRIOR_NONE. */
uint16_t svi_prior_sums_find(const struct svi_prior_sums *s, svs_value label, int guess);

/* A sample of d features comes in, or goes (weight < 0) as it came: feature j is the coordinate that trait[j]
 * says, and counts from center[j]; `label`: its place; target: of a regression. False: it is left out, for a
 * feature lies beyond the limit of trait[j] (0: it takes no part; INFINITY: there is no limit), or its
 * weighted squares are beyond 1e250. */
bool svi_prior_sums_add(struct svi_prior_sums *s, const struct svi_kernels *k,
                        const struct svi_prior_trait *trait, const double *center, int d, const double *x,
                        double weight, uint16_t label, double target);

/* A sample that is held and does not enter has come (1), or gone (-1). */
void svi_prior_sums_leave_out(struct svi_prior_sums *s, int sign);

/* sum s x_i x_j, j <= i. */
struct svi_dd svi_prior_sums_at(const struct svi_prior_sums *s, int i, int j);

/* The mean of the n samples of a key comes in (sign 1), or goes as it came (-1): of features whose level
 * counts. Means beyond 1e100 are left out. */
void svi_prior_sums_key(struct svi_prior_sums *s, const struct svi_prior_trait *trait, const double *mean,
                        int d, double n, int sign);

/* What is in `from` goes into `to`, and `from` has nothing then. SVS_NO_MEMORY: nothing was moved. */
svs_code svi_prior_sums_move(struct svi_prior_sums *to, struct svi_prior_sums *from, svs_error *err);

/* The coordinate in `all` of each place of `from`, SVI_PRIOR_FEATURES + 1 of them; SVI_PRIOR_NONE: none. */
void svi_prior_sums_map(const struct svi_prior_sums *all, const struct svi_prior_sums *from, uint16_t *up);

/* May something that has left have cost them digits? They are to be made again of what is held. `target`:
 * the usual size of a target, INFINITY: not known. */
bool svi_prior_sums_inexact(const struct svi_prior_sums *s, double target);

/* Nothing is in them; features and labels stay. */
void svi_prior_sums_empty(struct svi_prior_sums *s);

void svi_prior_sums_archive(struct svi_archive *a, struct svi_prior_sums *s);

#endif
