/* prior_bounds.h: what the keys of a stream have in common, by which a row or a key far outside of it stays
 * out of the prior, and no key counts for more than a bounded share.
 *
 * Of each feature, and of the target of a regression, the bounds know the usual spread within a key, the
 * middle of the levels of keys and how far from it a level may lie. They are medians over keys, so that fewer
 * than half of the keys cannot move them far:
 *
 *  - A row does not enter if a feature lies more than SVI_PRIOR_MAX_MULTIPLE usual spreads from the center of
 * its key. Its weight counts for at most SVI_PRIOR_MAX_MULTIPLE usual weights.
 *  - A feature that varies in fewer than SVI_PRIOR_MIN_KEYS keys is in common to none, and takes no part.
 *  - A key counts at most for SVI_PRIOR_MAX_KEY_WEIGHT usual keys: the weights of its rows have a factor, a
 * power of 4. One that would need a factor below 4^-6 does not enter.
 *  - The level of a key counts for the level of all if it is not too far from the middle.
 *
 * A key is described by a few numbers (struct svi_prior_key), which are known while it is out of memory. All
 * verdicts follow from these and from the bounds, so they do not depend on what was there before. */
#ifndef SVI_PRIOR_BOUNDS_H
#define SVI_PRIOR_BOUNDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/archive.h"
#include "base/bytes.h"
#include "svmstream/error.h"

#define SVI_PRIOR_FEATURES       512        /* at most; further ones are not counted */
#define SVI_PRIOR_NONE           UINT16_MAX /* a place that there is not */
#define SVI_PRIOR_MAX_MULTIPLE   30         /* spreads, and weights, in units of the usual one */
#define SVI_PRIOR_MAX_KEY_WEIGHT 4          /* usual keys */
#define SVI_PRIOR_MIN_KEYS       3          /* in which a feature varies */

enum { SVI_PRIOR_LEVEL = 1, SVI_PRIOR_FREE = 2 };

/* Of a feature of a key, or of the target. */
struct svi_prior_trait {
    float mean, spread; /* of the rows held; spread < 0: of too few rows to tell */
    float limit;        /* SVI_PRIOR_MAX_MULTIPLE usual spreads, as it judges its rows by now */
    uint16_t place; /* coordinate in the sums of its part; the target's is 0; SVI_PRIOR_NONE: it has none */
    uint16_t flags; /* SVI_PRIOR_LEVEL: its mean counts for the level of all; _FREE: it is not bounded */
};

struct svi_prior_key {
    struct svi_prior_trait *trait; /* of the target of a regression, then of each feature */
    float weight;                  /* mean weight of its rows; 0: it has learned nothing */
    float most;                    /* what a weight may be, as it judges them by now */
    float factor;                  /* of the weights of its rows; 0: it does not enter */
    float middle;                  /* from which targets are not too far */
    uint16_t count, capacity;      /* traits */
    uint32_t out;                  /* rows that did not enter since it was looked at last */
};

struct svi_prior_bounds {
    int n;                          /* coordinates: the target, then the features; 0: nothing is known */
    double weight;                  /* the usual one; INFINITY: not known */
    double *usual, *middle, *apart; /* of each coordinate. usual INFINITY: not known; 0: it is not common */
};

/* Beyond which distance from a key's center a row does not enter; for features INFINITY: there is no limit,
 * 0: the feature takes no part. */
double svi_prior_limit(const struct svi_prior_bounds *b, int coordinate);
double svi_prior_most(const struct svi_prior_bounds *b);

/* Does a level count for the level of all? */
bool svi_prior_near(const struct svi_prior_bounds *b, int coordinate, double level);

/* By how much the spread of a key exceeds the usual one, squared; and the factor of a key with that excess
 * and weight. */
double svi_prior_excess(const struct svi_prior_bounds *b, int coordinate, double spread);
double svi_prior_factor(const struct svi_prior_bounds *b, double excess, double weight);

/* Has this key to judge its rows again? `up`: the coordinate of each place, SVI_PRIOR_NONE: of none. */
bool svi_prior_outdated(const struct svi_prior_bounds *b, const struct svi_prior_key *key,
                        const uint16_t *up);

/* Of `count` keys; `up` of each. SVS_NO_MEMORY: nothing was made. */
svs_code svi_prior_bounds_make(struct svi_prior_bounds *b, int n, const struct svi_prior_key *const *key,
                               const uint16_t *const *up, int64_t count, svs_error *err);
void svi_prior_bounds_clear(struct svi_prior_bounds *b);
void svi_prior_bounds_archive(struct svi_archive *a, struct svi_prior_bounds *b); /* into one without */

/* Room for that many traits; those that are new are zero. SVS_NO_MEMORY: it is as it was. */
svs_code svi_prior_key_reserve(struct svi_prior_key *key, int count, svs_error *err);
void svi_prior_key_clear(struct svi_prior_key *key);

/* As bytes, appended to `out`; and from them: SVS_DAMAGED, SVS_NO_MEMORY. As a part of the state. */
svs_code svi_prior_key_pack(const struct svi_prior_key *key, struct svi_bytes *out);
svs_code svi_prior_key_unpack(struct svi_prior_key *key, const uint8_t *bytes, size_t size, svs_error *err);
void svi_prior_key_archive(struct svi_archive *a, struct svi_prior_key *key);

#endif
