/* union_sums.h: the sums of all samples of several windows.
 *
 * Each window has sums about its own center (learner/window_sums.h). Here they are moved to one center and
 * added in double double, so that joining costs no digits: what remains of error is the rounding in the sums
 * that arrived. */
#ifndef SVI_UNION_SUMS_H
#define SVI_UNION_SUMS_H

#include "linalg/double_double.h"
#include "learner/window_sums.h"
#include "svmstream/learner.h"

#define SVI_UNION_VALUE_MAX 1e100 /* size of a mean; a sum may have its square, for each sample */

/* Of the union. Begin with svi_union_shape. */
struct svi_union_sums {
    int d, classes;
    svs_task task;
    struct svi_dd weight, target_weight;
    double *center;               /* [d] c: near the mean, fixed before the first part is added */
    struct svi_dd *sum;           /* [d] sum w (x - c) */
    struct svi_dd *square;        /* [d (d + 1) / 2] as in window sums */
    struct svi_dd *class_weight;  /* [classes] */
    struct svi_dd *class_sum;     /* [classes x d] */
    struct svi_dd *target_sum;    /* [d] */
    struct svi_dd *shift, *moved; /* [d] scratch */
    void *block;                  /* owned: all of them */
    size_t capacity;              /* bytes of it */
};

/* One window, and where its features and classes are in the union. */
struct svi_union_part {
    const struct svi_window_sums *sums;
    const int32_t *feature; /* [sums->d] */
    const int32_t *label;   /* [sums->classes] */
};

/* Sets sizes; all sums become 0. Allocates only while it grows. SVS_NO_MEMORY. */
svs_code svi_union_shape(struct svi_union_sums *u, svs_task task, int d, int classes, svs_error *err);
void svi_union_clear(struct svi_union_sums *u); /* frees */

/* Sets the center, from all parts in their order. Features that a part does not have are 0 in its samples. */
void svi_union_center(struct svi_union_sums *u, const struct svi_union_part *part, int count);

/* Adds a window. The bits depend on the order of the calls. */
void svi_union_add(struct svi_union_sums *u, const struct svi_union_part *part);

#endif
