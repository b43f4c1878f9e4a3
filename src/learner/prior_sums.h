/* prior_sums.h: sums over the samples of many models, exact enough that a removed sample leaves no trace.
 *
 * With x = (1, features): sum s x x', and for each label sum s x over its samples (regression: sum s t x).
 * Each number is a sum of two doubles, and products enter whole (Dekker 1971, "A floating-point technique for
 * extending the available precision"; Knuth, TAOCP 2, 4.2.2), so that about 30 digits are right, however far
 * from 0 the features lie.
 *
 * Features and labels are identified independently of any model's indices: features by 64 bits
 * (svi_prior_identity), labels by their value. Each thread adds to its own sums; these are moved into the
 * common sums in a fixed order (svi_prior_sums_move), so that the bits do not depend on the number of
 * threads. */
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

/* For each feature, over the keys that have a mean: their number; the sums of 1 / n, of the means and of
 * their squares. */
enum { SVI_PRIOR_KEYS, SVI_PRIOR_INVERSE, SVI_PRIOR_MEAN, SVI_PRIOR_SQUARE, SVI_PRIOR_OF_KEYS };

struct svi_prior_sums {
    struct svi_plain_sums *plain; /* of the same samples (learner/plain_sums.h); NULL: none are kept */
    bool regress;
    bool touched;                /* they are not empty */
    int n, capacity;             /* coordinates: 1, then the features; capacity for them */
    int labels, label_capacity;  /* regression: a single one without a value */
    uint64_t *identity;          /* of coordinate j, from 1 */
    svs_value *label;            /* owned */
    double *high, *low;          /* sum s x_i x_j, j <= i, row by row (NULL: not allocated yet) */
    double *by_label, *by_low;   /* label_capacity x capacity */
    double *by_key, *by_key_low; /* SVI_PRIOR_OF_KEYS x capacity */
    double *x;                   /* scratch: the sample at hand */
    /* Largest values added since the sums were empty: s x_i^2; the square of a key's mean; s t^2.
     * Cancellation may have left 2^-104 of them (svi_prior_sums_inexact). */
    double *peak, *key_peak, target_peak;
    int64_t out; /* held samples that are excluded (svi_prior_sums_add) */
};

/* Identity of a feature: from its name, or from its number if it has none (NULL). */
uint64_t svi_prior_identity(const char *name, int number);

/* Index of an identity among `count`, or SVI_PRIOR_NONE. `guess` is tried first. */
uint16_t svi_prior_find(const uint64_t *all, int count, uint64_t identity, int guess);

/* Empty sums. Allocates nothing. */
void svi_prior_sums_init(struct svi_prior_sums *s, bool regress);
void svi_prior_sums_clear(struct svi_prior_sums *s); /* frees */

/* Capacity for the present coordinates; needed before a sample without features. SVS_NO_MEMORY. */
svs_code svi_prior_sums_ready(struct svi_prior_sums *s, svs_error *err);

/* The coordinate of a feature, or the index of a label, which is added if it is new. `guess` is tried first.
 * SVI_PRIOR_NONE: too many. SVS_NO_MEMORY. */
svs_code svi_prior_sums_feature(struct svi_prior_sums *s, uint64_t identity, int guess, uint16_t *place,
                                svs_error *err);
svs_code svi_prior_sums_label(struct svi_prior_sums *s, svs_value label, int guess, uint16_t *place,
                              svs_error *err);

/* Index of a label, or SVI_PRIOR_NONE. */
uint16_t svi_prior_sums_find(const struct svi_prior_sums *s, svs_value label, int guess);

/* Adds a sample of d features, or subtracts it (weight < 0) as it was added. Feature j has the coordinate of
 * trait[j] and counts relative to center[j]; `label`: its index; `target`: of a regression. False: the sample
 * is excluded, because a feature is beyond the limit of trait[j] (0: it takes no part; INFINITY: no limit),
 * or its weighted squares exceed 1e250. */
bool svi_prior_sums_add(struct svi_prior_sums *s, const struct svi_kernels *k,
                        const struct svi_prior_trait *trait, const double *center, int d, const double *x,
                        double weight, uint16_t label, double target);

/* The same without center and bounds: the sums of the rows as they are. False: the row is left out, and
 * counted as such, because a feature or the label has no place, or its weighted squares exceed 1e250. */
bool svi_prior_sums_add_plain(struct svi_prior_sums *s, const struct svi_kernels *k,
                              const struct svi_prior_trait *trait, int d, const double *x, double weight,
                              uint16_t label, double target);

/* Counts a held sample that is excluded (sign 1), or its removal (-1). */
void svi_prior_sums_leave_out(struct svi_prior_sums *s, int sign);

/* Row i of the products (i + 1 values), row k of a label's sums, row k of what is counted by key (n values
 * each), as high and low parts; of sums with capacity for their coordinates. */
struct svi_prior_row {
    double *high, *low;
};
struct svi_prior_row svi_prior_sums_products(const struct svi_prior_sums *s, int i);
struct svi_prior_row svi_prior_sums_of_label(const struct svi_prior_sums *s, int k);
struct svi_prior_row svi_prior_sums_of_keys(const struct svi_prior_sums *s, int k);

/* sum s x_i x_j, j <= i. */
struct svi_dd svi_prior_sums_at(const struct svi_prior_sums *s, int i, int j);

/* Adds the mean of the n samples of a key (sign 1), or subtracts it as it was added (-1), for features whose
 * level counts. Means beyond 1e100 are ignored. */
void svi_prior_sums_key(struct svi_prior_sums *s, const struct svi_prior_trait *trait, const double *mean,
                        int d, double n, int sign);

/* join: adds the sums of `from`, its samples weighed by `factor` (a power of 2), to `to`. move: the same with
 * factor 1, and empties `from`. SVS_NO_MEMORY: nothing was added. */
svs_code svi_prior_sums_join(struct svi_prior_sums *to, const struct svi_prior_sums *from, double factor,
                             svs_error *err);
svs_code svi_prior_sums_move(struct svi_prior_sums *to, struct svi_prior_sums *from, svs_error *err);

/* Gives `to`, whose features and labels are the first ones of `from`, the others too, so that a place in one
 * is the place in the other. SVS_NO_MEMORY: some were added. */
svs_code svi_prior_sums_follow(struct svi_prior_sums *to, const struct svi_prior_sums *from, svs_error *err);

/* up[i]: coordinate in `all` of coordinate i of `from` (SVI_PRIOR_FEATURES + 1 values); SVI_PRIOR_NONE: none.
 */
void svi_prior_sums_map(const struct svi_prior_sums *all, const struct svi_prior_sums *from, uint16_t *up);

/* May removed samples have cost digits, so that the sums must be rebuilt from the samples held? `target`: the
 * typical size of a target, INFINITY: not known. */
bool svi_prior_sums_inexact(const struct svi_prior_sums *s, double target);

size_t svi_prior_sums_bytes(const struct svi_prior_sums *s); /* of memory that they take */

/* Empties the sums; features and labels stay. */
void svi_prior_sums_empty(struct svi_prior_sums *s);

void svi_prior_sums_archive(struct svi_archive *a, struct svi_prior_sums *s);

#endif
