/* gram.h: G = sum s z z' and the right-hand sides as plain sums, from which P is rebuilt.
 *
 * Samples are only added (except by svi_gram_take), so nothing is lost to cancellation (NUMERICS: the "fresh
 * bucket"). They are gathered in blocks of SVI_GRAM_BLOCK and added by a rank-k product. z_0 is 1 in every
 * sample, so the first column of g is sum s z. Classification: sums[c] is the same over class c; regression:
 * sums[0] = sum s y z. The ridge is not in g. */
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
    double *block;                /* SVI_GRAM_BLOCK x n: gathered samples, not yet in g */
    double weight[SVI_GRAM_BLOCK];
    int filled; /* rows of `block` in use */
};

svs_code svi_gram_init(struct svi_gram *g, int n, int groups, svs_error *err);
void svi_gram_clear(struct svi_gram *g); /* frees */
void svi_gram_zero(struct svi_gram *g);

/* As svi_gram_init, with at least the capacity of `of`, which it will replace. */
svs_code svi_gram_init_wider(struct svi_gram *g, int n, int groups, const struct svi_gram *of,
                             svs_error *err);

/* Capacity for n columns and `groups` groups; the content stays. SVS_NO_MEMORY: nothing has changed. */
svs_code svi_gram_reserve(struct svi_gram *g, int n, int groups, svs_error *err);

/* More groups (empty so far). */
svs_code svi_gram_grow(struct svi_gram *g, int groups, svs_error *err);

/* Moves the content to `wider` (initialised, at least as large), which then becomes *g. Cannot fail. */
void svi_gram_adopt(struct svi_gram *g, struct svi_gram *wider);

/* Adds a sample z (n values) with weight s. group: its class; or -1 with `target` in a regression (groups =
 * 1). */
void svi_gram_add(struct svi_gram *g, const struct svi_kernels *k, const double *z, double s, int group,
                  double target);

/* Rows of n - 1 raw values, to be added in the coordinates z_0 = 1, z_1+j = (x_j - mean_j) inverse_j. */
struct svi_gram_rows {
    const double *x[SVI_GRAM_BLOCK];
    double s[SVI_GRAM_BLOCK], times[SVI_GRAM_BLOCK]; /* weight in g; factor of z in its row of sums */
    int group[SVI_GRAM_BLOCK];                       /* row of sums */
    int count;
};

/* Appends a row; `group` and `target` as in svi_gram_add. The caller checks count < SVI_GRAM_BLOCK. */
static inline void svi_gram_rows_take(struct svi_gram_rows *r, const double *x, double s, int group,
                                      double target) {
    r->x[r->count] = x;
    r->s[r->count] = s;
    r->times[r->count] = group < 0 ? s * target : s;
    r->group[r->count++] = group < 0 ? 0 : group;
}

/* Adds all rows, with the same bits as svi_gram_add one by one. */
void svi_gram_add_rows(struct svi_gram *g, const struct svi_kernels *k, const struct svi_gram_rows *rows,
                       const double *mean, const double *inverse);

/* Subtracts a sample that was added with the same arguments, s > 0. As exact as the sums, whose last digits a
 * larger sample may have rounded away. */
void svi_gram_take(struct svi_gram *g, const struct svi_kernels *k, const double *z, double s, int group,
                   double target);

/* The same as svi_gram_add, in three parts, so that another thread can do the last and most
 * expensive one. The first collects a sample, up to SVI_GRAM_BLOCK of them. The second moves the
 * collected ones to `rows` (SVI_GRAM_BLOCK x n) and returns their number. It returns 0 for a
 * dimension too small to be worth it. The third adds `count` rows to g, and reads or writes nothing
 * else. Between the last two only svi_gram_gather may be called. */
void svi_gram_gather(struct svi_gram *g, const struct svi_kernels *k, const double *z, double s, int group,
                     double target);
int svi_gram_detach(struct svi_gram *g, double *rows);
void svi_gram_add_detached(struct svi_gram *g, const double *rows, int count);

/* Adds the gathered samples to g. Required before g is read. */
void svi_gram_flush(struct svi_gram *g, const struct svi_kernels *k);

/* Changes the sums as if z_j had been 0 in every sample, after a flush. True: it was not 0 in all of them. */
bool svi_gram_clear_coordinate(struct svi_gram *g, const struct svi_kernels *k, int j);

/* sum s z_j over all samples, gathered ones included. */
double svi_gram_total(const struct svi_gram *g, int j);

/* sum s t z (n values) for row `row` of the `rows` rows of W. The target t is 1 in the class of the
 * row and -1 elsewhere. A single row belongs to the second of two classes. In a regression t is the
 * sample's target. Gathered samples are included. */
void svi_gram_right_hand_side(const struct svi_gram *g, int row, int rows, bool regress, double *to);

/* Multiplies every sum by `factor`. */
void svi_gram_scale(struct svi_gram *g, double factor);

/* Transforms the sums to coordinates z'_0 = z_0, z'_j = (z_j - shift_j z_0) / spread_j, j >= 1 (index 0 of
 * shift and spread is unused). */
void svi_gram_move(struct svi_gram *g, const double *shift, const double *inverse_spread);

double svi_gram_memory(int n, int groups); /* bytes */

/* Archives g and the first `groups` sums; `scratch`: n (n + 1) / 2 values. Loading: n is set and has
 * capacity. */
void svi_gram_archive(struct svi_archive *a, struct svi_gram *g, int groups, double *scratch);

#endif
