/* kept_curvature.h: what a refit by Newton steps keeps besides the model and its multipliers: the window
 * that it solved, and for each row of the model the curvature there (solver/curvature.h).
 *
 * The next window holds most of the same samples. Those that left are subtracted from each Gram matrix,
 * which is then converted into the units in which the next window is standardised. New samples are added
 * by the solver. */
#ifndef SVI_KEPT_CURVATURE_H
#define SVI_KEPT_CURVATURE_H

#include "base/pool.h"
#include "learner/snapshot.h"
#include "solver/curvature.h"

struct svi_kept_curvature {
    struct svi_snapshot before; /* the window of the last successful refit, standardised */
    int dim, rows;              /* d + 1; rows of the model */
    int64_t capacity;           /* samples */
    struct svi_pool pool;
    struct svi_curvature *at; /* one a row of the model, each with its Gram matrix */
    double *weights,
        *next_weights; /* rows x before.count; while a refit runs, rows x count of the next window */

    int64_t
        *same; /* while a refit runs: index in `before` of each sample of the next window; -1: it is new */
    int64_t shared; /* how many samples are in both windows */
};

/* True if curvature is worth keeping for windows of `count` rows with this stride: the matrices must not
 * take more memory than the rows. */
bool svi_kept_curvature_fits(int d, int rows, double count, int stride);

/* Called before a refit of the (standardised) snapshot: carries what is known over to that window. have:
 * `before` is a window of the same problem. SVS_NO_MEMORY: nothing is known. */
svs_code svi_kept_curvature_slide(struct svi_kept_curvature *k, const struct svi_snapshot *s, int rows,
                                  bool have, svs_error *err);

/* Called after a success: *s becomes `before`, and gets the memory of the former one. */
void svi_kept_curvature_take(struct svi_kept_curvature *k, struct svi_snapshot *s);

/* Marks all curvature as unknown; the memory stays. */
void svi_kept_curvature_forget(struct svi_kept_curvature *k);
void svi_kept_curvature_free(struct svi_kept_curvature *k);

double svi_kept_curvature_memory(double n, int d, int rows); /* bytes */

#endif
