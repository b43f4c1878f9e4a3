/* gram.h: G and the right-hand sides as plain sums, which only ever grow: what P is rebuilt from.
 *
 * Nothing is subtracted here, so nothing is lost to cancellation (NUMERICS: the "fresh bucket"). Samples are
 * gathered in blocks of SVI_GRAM_BLOCK and added by a rank-k product. z_0 is 1 in every sample, so that the
 * first column of g is sum s z; classification: sums[c] is the same over class c; regression: sums[0] = sum s
 * y z. The ridge is not in g. */
#ifndef SVI_GRAM_H
#define SVI_GRAM_H

#include "base/archive.h"
#include "linalg/kernels.h"

#define SVI_GRAM_BLOCK 64

struct svi_gram {
    int n, groups;                /* dimension; rows of sums */
    int capacity, group_capacity; /* the largest n and groups */
    double *g;                    /* n x n, row-major, lower triangle */
    double *sums;                 /* group_capacity x n */
    double *block;                /* SVI_GRAM_BLOCK x n */
    double weight[SVI_GRAM_BLOCK];
    int filled;
};

svs_code svi_gram_init(struct svi_gram *g, int n, int groups, svs_error *err);
void svi_gram_clear(struct svi_gram *g); /* frees */
void svi_gram_zero(struct svi_gram *g);

/* As svi_gram_init, with no less room than `of` has: for what is to take its place. */
svs_code svi_gram_init_wider(struct svi_gram *g, int n, int groups, const struct svi_gram *of,
                             svs_error *err);

/* Capacity for n columns and `groups` groups; those in use stay. SVS_NO_MEMORY: nothing has changed. */
svs_code svi_gram_reserve(struct svi_gram *g, int n, int groups, svs_error *err);

/* More groups (empty so far). */
svs_code svi_gram_grow(struct svi_gram *g, int groups, svs_error *err);

/* The content moves to `wider` (initialised, at least as large), which then is *g. Cannot fail. */
void svi_gram_adopt(struct svi_gram *g, struct svi_gram *wider);

/* One sample z (n values): weight s, its group (class), or -1 with `target` for regression (then groups = 1).
 */
void svi_gram_add(struct svi_gram *g, const struct svi_kernels *k, const double *z, double s, int group,
                  double target);

/* Rows of n - 1 raw values, to be added in the coordinates z_0 = 1, z_1+j = (x_j - mean_j) inverse_j. */
struct svi_gram_rows {
    const double *x[SVI_GRAM_BLOCK];
    double s[SVI_GRAM_BLOCK], times[SVI_GRAM_BLOCK]; /* the weight; what its sum takes z times */
    int group[SVI_GRAM_BLOCK];                       /* the row of sums */
    int count;
};

/* One more row of them, for svi_gram_add's `group` and `target`. */
static inline void svi_gram_rows_take(struct svi_gram_rows *r, const double *x, double s, int group,
                                      double target) {
    r->x[r->count] = x;
    r->s[r->count] = s;
    r->times[r->count] = group < 0 ? s * target : s;
    r->group[r->count++] = group < 0 ? 0 : group;
}

/* The bits of adding them one by one. */
void svi_gram_add_rows(struct svi_gram *g, const struct svi_kernels *k, const struct svi_gram_rows *rows,
                       const double *mean, const double *inverse);

/* Takes out a sample that was added as s > 0 says. As exact as the sums, which a larger one may have rounded.
 */
void svi_gram_take(struct svi_gram *g, const struct svi_kernels *k, const double *z, double s, int group,
                   double target);

/* What is still gathered goes into g. Before g is read. */
void svi_gram_flush(struct svi_gram *g, const struct svi_kernels *k);

/* As if z_j had been 0 in every sample. True: it was not. Everything gathered is in g after it. */
bool svi_gram_clear_coordinate(struct svi_gram *g, const struct svi_kernels *k, int j);

/* sum s z_j over all samples, those still gathered too. */
double svi_gram_total(const struct svi_gram *g, int j);

/* sum s t z (n values) of row `row` of `rows`: t is 1 in the row's class (of two classes and one row the
 * second) and -1 elsewhere; regression: the target. Those still gathered count too. */
void svi_gram_right_hand_side(const struct svi_gram *g, int row, int rows, bool regress, double *to);

/* Every sum times `factor`. */
void svi_gram_scale(struct svi_gram *g, double factor);

/* The same samples in coordinates z'_0 = z_0, z'_j = (z_j - shift_j z_0) / spread_j, j >= 1 (index 0 of shift
 * and spread unused). */
void svi_gram_move(struct svi_gram *g, const double *shift, const double *inverse_spread);

double svi_gram_memory(int n, int groups); /* bytes */

/* The first `groups` sums; `room`: n (n + 1) / 2 values of scratch. Loading: n is set, with room. */
void svi_gram_archive(struct svi_archive *a, struct svi_gram *g, int groups, double *scratch);

#endif
