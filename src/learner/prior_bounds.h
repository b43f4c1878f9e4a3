/* prior_bounds.h: robust bounds that keep outlying rows and keys out of the prior and limit the share of each
 * key.
 *
 * For each feature, and for the target of a regression, the bounds hold three numbers. These are
 * the typical spread within a key, the middle of the levels of keys, and how far from it a level
 * may be. All are medians over keys, so fewer than half of the keys cannot move them far:
 *
 *  - A row is excluded if a feature is more than SVI_PRIOR_MAX_MULTIPLE typical spreads from the
 *    center of its key.
 *  - The weight of a row counts for at most SVI_PRIOR_MAX_MULTIPLE typical weights.
 *  - A feature that varies in fewer than SVI_PRIOR_MIN_KEYS keys takes no part.
 *  - A key counts for at most SVI_PRIOR_MAX_KEY_WEIGHT typical keys: the weights of its rows get a
 *    factor, a power of 4. A key that would need a factor below 4^-6 is excluded.
 *  - The level of a key counts for the level of all if it is not too far from the middle.
 *
 * A key is described by a few numbers (struct svi_prior_key), which stay known while it is out of memory. All
 * decisions follow from these and the bounds, so they do not depend on earlier decisions. */
#ifndef SVI_PRIOR_BOUNDS_H
#define SVI_PRIOR_BOUNDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/archive.h"
#include "base/bytes.h"
#include "svmstream/error.h"

#define SVI_PRIOR_FEATURES       512        /* at most; further ones are ignored */
#define SVI_PRIOR_NONE           UINT16_MAX /* no index */
#define SVI_PRIOR_MAX_MULTIPLE   30         /* largest spread, and weight, in units of the typical one */
#define SVI_PRIOR_MAX_KEY_WEIGHT 4          /* largest weight of a key, in typical keys */
#define SVI_PRIOR_MIN_KEYS       3          /* keys in which a feature has to vary */

enum { SVI_PRIOR_LEVEL = 1, SVI_PRIOR_FREE = 2 };

/* A feature of a key, or the target. */
struct svi_prior_trait {
    float mean, spread; /* of the rows held; spread < 0: too few rows */
    float limit;        /* SVI_PRIOR_MAX_MULTIPLE typical spreads, as now applied to its rows */
    uint16_t place;     /* coordinate in the sums of its part; 0 for the target; SVI_PRIOR_NONE: none */
    uint16_t flags;     /* SVI_PRIOR_LEVEL: its mean counts for the level of all; _FREE: it is not bounded */
};

struct svi_prior_key {
    struct svi_prior_trait *trait; /* of the target of a regression, then of each feature */
    float weight;                  /* mean weight of its rows; 0: it has learned nothing */
    float most;                    /* largest weight of a row, as now applied */
    float factor;                  /* of the weights of its rows; 0: the key is excluded */
    float middle;                  /* center of the allowed targets */
    uint16_t count, capacity;      /* traits */
    uint32_t out;                  /* rows excluded since its last assessment */
};

struct svi_prior_bounds {
    int n;                          /* coordinates: the target, then the features; 0: no bounds */
    double weight;                  /* the typical one; INFINITY: not known */
    double *usual, *middle, *apart; /* of each coordinate: typical spread, INFINITY: not known, 0: takes no
                                       part; middle of the levels; largest distance of a level from it */
};

/* limit: distance from the center of a key beyond which a row is excluded; for features INFINITY: no limit,
 * 0: the feature takes no part. most: largest weight of a row. */
double svi_prior_limit(const struct svi_prior_bounds *b, int coordinate);
double svi_prior_most(const struct svi_prior_bounds *b);

/* Does a level count for the level of all? */
bool svi_prior_near(const struct svi_prior_bounds *b, int coordinate, double level);

/* excess: squared ratio of the spread of a key to the typical one. factor: of a key with this excess and
 * weight. */
double svi_prior_excess(const struct svi_prior_bounds *b, int coordinate, double spread);
double svi_prior_factor(const struct svi_prior_bounds *b, double excess, double weight);

/* Do these bounds differ from those last applied by so much that the key must assess its rows again? `up`:
 * coordinate of each place, SVI_PRIOR_NONE: none. */
bool svi_prior_outdated(const struct svi_prior_bounds *b, const struct svi_prior_key *key,
                        const uint16_t *up);

/* Computes the bounds of `count` keys, with `up` for each. SVS_NO_MEMORY: nothing was made. */
svs_code svi_prior_bounds_make(struct svi_prior_bounds *b, int n, const struct svi_prior_key *const *key,
                               const uint16_t *const *up, int64_t count, svs_error *err);
/* Bounds of n coordinates of which nothing is known. SVS_NO_MEMORY: none were made. */
svs_code svi_prior_bounds_unknown(struct svi_prior_bounds *b, int n, svs_error *err);
void svi_prior_bounds_clear(struct svi_prior_bounds *b);
void svi_prior_bounds_archive(struct svi_archive *a, struct svi_prior_bounds *b); /* into one without */

/* Capacity for this number of traits; new ones are zero. SVS_NO_MEMORY: nothing has changed. */
svs_code svi_prior_key_reserve(struct svi_prior_key *key, int count, svs_error *err);
void svi_prior_key_clear(struct svi_prior_key *key);

/* As bytes, appended to `out`; and from them: SVS_DAMAGED, SVS_NO_MEMORY. As a part of the state. */
svs_code svi_prior_key_pack(const struct svi_prior_key *key, struct svi_bytes *out);
svs_code svi_prior_key_unpack(struct svi_prior_key *key, const uint8_t *bytes, size_t size, svs_error *err);
void svi_prior_key_archive(struct svi_archive *a, struct svi_prior_key *key);

#endif
