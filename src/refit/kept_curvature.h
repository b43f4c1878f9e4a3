/* kept_curvature.h: what a refit by Newton steps keeps besides the model and its multipliers: the window that
 * it solved, and for each row of the model the curvature there (solver/curvature.h).
 *
 * The next window holds most of the same samples. Those that left are taken out of each Gram matrix, which is
 * then brought into the coordinates in which the next window is standardised; those that came are the
 * solver's matter. */
#ifndef SVI_KEPT_CURVATURE_H
#define SVI_KEPT_CURVATURE_H

#include "base/pool.h"
#include "learner/snapshot.h"
#include "solver/curvature.h"

struct svi_kept_curvature {
    struct svi_snapshot before; /* the window of the last success, standardised */
    int dim, rows;              /* d + 1; of the model */
    int64_t capacity;           /* samples */
    struct svi_pool pool;
    struct svi_curvature *at; /* rows; each with its Gram matrix */
    double *weights,
        *next_weights; /* rows x before.count; rows x count of the next window, while a refit runs */

    int64_t *same;  /* while a refit runs: index in `before` of each sample, -1 for one that came */
    int64_t shared; /* how many did not come */
};

/* Is it kept, with windows of `count` rows (stride `stride`)? Not when the matrices take more room than the
 * rows. */
bool svi_kept_curvature_fits(int d, int rows, double count, int stride);

/* Before a refit of the (standardised) snapshot: what is known is brought there. `have`: `before` is of the
 * same problem. SVS_NO_MEMORY: nothing is known. */
svs_code svi_kept_curvature_slide(struct svi_kept_curvature *k, const struct svi_snapshot *s, int rows,
                                  bool have, svs_error *err);

/* After a success: *s takes the place of `before`, whose room it gets. */
void svi_kept_curvature_take(struct svi_kept_curvature *k, struct svi_snapshot *s);

/* Nothing is known any more; it may be brought to another window. */
void svi_kept_curvature_forget(struct svi_kept_curvature *k);
void svi_kept_curvature_free(struct svi_kept_curvature *k);

double svi_kept_curvature_memory(double n, int d, int rows); /* bytes */

#endif
