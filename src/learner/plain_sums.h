/* plain_sums.h: the sums over the samples of many models as they are, without the prior's centers and bounds
 * (learner/prior_sums.h). They add up with those of other processes, and determine the least-squares model of
 * all these samples.
 *
 * Features and labels have the places that they have in the prior's sums. Unlike these, plain sums know the
 * features by name, because other processes do. */
#ifndef SVI_PLAIN_SUMS_H
#define SVI_PLAIN_SUMS_H

#include "learner/prior_sums.h"
#include "learner/window_sums.h"

struct svi_plain_sums {
    struct svi_prior_sums sums;
    int64_t rows;                /* in the sums */
    struct svi_dd target_square; /* of a regression: sum s t^2 */
    char **name;                 /* owned, by coordinate; NULL: it has none */
    bool *unscaled;              /* by coordinate: it is a category, or named by the setting `unscaled` */
    int capacity;                /* coordinates of both */
    bool crowded;                /* a feature, or a class, was one too many */
};

void svi_plain_sums_init(struct svi_plain_sums *s, bool regress); /* empty; allocates nothing */
void svi_plain_sums_clear(struct svi_plain_sums *s);              /* frees */

/* A feature has this place in the prior's sums `of` (SVI_PRIOR_NONE: none), and this name. SVS_NO_MEMORY. */
svs_code svi_plain_sums_feature(struct svi_plain_sums *s, const struct svi_prior_sums *of, uint16_t place,
                                const char *name, bool unscaled, svs_error *err);

/* Adds a sample of d features, or subtracts it (weight < 0), as svi_prior_sums_add_plain. */
void svi_plain_sums_add(struct svi_plain_sums *s, const struct svi_kernels *k,
                        const struct svi_prior_trait *trait, int d, const double *x, double weight,
                        uint16_t label, double target);

/* All numbers become 0; features, names and labels stay. */
void svi_plain_sums_empty(struct svi_plain_sums *s);

/* Adds the sums of `from` to `to`, and empties `from`. SVS_NO_MEMORY: nothing was added. */
svs_code svi_plain_sums_move(struct svi_plain_sums *to, struct svi_plain_sums *from, svs_error *err);

/* Fills in the numbers: feature j is coordinate j + 1, centered at its mean, and the classes are the labels.
 * SVS_NO_MEMORY. */
svs_code svi_plain_sums_window(const struct svi_plain_sums *s, struct svi_window_sums *out, svs_error *err);

void svi_plain_sums_archive(struct svi_archive *a, struct svi_plain_sums *s);

#endif
