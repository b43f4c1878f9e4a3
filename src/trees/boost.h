/* boost.h: fits a forest by second-order gradient boosting on histograms (Friedman: Greedy function
 * approximation, 2001; Chen, Guestrin: XGBoost, 2016; Ke et al.: LightGBM, 2017).
 *
 * LOSS. Two classes: the logistic loss; K > 2 classes: softmax, K trees a round; a regression: squares. With
 * gradients g_i and curvatures h_i, weighted by the weights of the rows, a leaf has the value
 *     v = -rate * G / (H + ridge),   G = sum g_i, H = sum h_i of its rows,
 * and a split into L and R the gain
 *     G_L^2 / (H_L + ridge) + G_R^2 / (H_R + ridge) - G^2 / (H + ridge).
 * A tree grows by the leaf with the largest gain, until it has `leaves` of them or no gain is left.
 *
 * BINS. A column is cut at quantiles of the rows given, midway between neighbouring values; up to `bins`
 * different values get a bin each. Missing values (NAN) have a bin of their own and go to the side with the
 * larger gain, or with the larger H where none were missing. Infinite values count as the largest float.
 *
 * EXACT SUMS. Gradients and curvatures are rounded to whole numbers of a unit of the round, whose sums over
 * all rows fit 32 bits; a bin holds both sums in one 64-bit word. Integer sums do not depend on their order:
 * the same rows in the same order give the same forest, bit for bit, on every instruction set.
 *
 * COST. svi_boost_cost counts bin updates, .4 to .7 ns each from 20,000 rows on, 1.2 at 200 (make bench
 * ONLY=trees).
 * Memory: svi_boost_memory. */
#ifndef SVI_BOOST_H
#define SVI_BOOST_H

#include "svmstream/model.h"
#include "trees/forest.h"

#define SVI_BOOST_BINS_MAX    255
#define SVI_BOOST_LEAVES_MAX  1024
#define SVI_BOOST_ROUNDS_MAX  10000
#define SVI_BOOST_ROWS_MAX    (1 << 24)
#define SVI_BOOST_COLUMNS_MAX (1 << 20)

struct svi_boost_options {
    svs_task task;
    int classes;        /* labels are 0 to classes - 1; up to 2: one score; ignored by a regression */
    int rounds;         /* 1 to SVI_BOOST_ROUNDS_MAX */
    int leaves;         /* 2 to SVI_BOOST_LEAVES_MAX */
    int bins;           /* 2 to SVI_BOOST_BINS_MAX, without the one of missing values */
    double rate;        /* 0 to 1, 0 excluded */
    double ridge;       /* > 0, of a mean weight of 1 */
    double min_hessian; /* >= 0: least H of a leaf, of a mean weight of 1 */
    double min_rows;    /* least rows of a leaf, counted as H_leaf / H of its parent x rows of the parent */
};

/* Rows in a ring: row i of `count` is at index (first + i) mod capacity. They belong to the caller, which
 * leaves them alone during the fit. Left out: rows with live 0, with a label outside of 0 to classes - 1, a
 * target that is not finite, or a weight that is not finite and above 0. */
struct svi_boost_rows {
    const float *x; /* capacity x stride, d values a row, NAN = missing */
    int d, stride;
    int64_t first, count, capacity;
    const int32_t *label; /* capacity; for classes */
    const float *target;  /* capacity; for a regression */
    const float *weight;  /* capacity; NULL: 1 */
    const uint8_t *live;  /* capacity; NULL: all */
};

/* Memory that fits share, one after another; all zero at first. */
enum { SVI_BOOST_BLOCKS = 17 };
struct svi_boost_scratch {
    void *block[SVI_BOOST_BLOCKS];
    size_t size[SVI_BOOST_BLOCKS];
};
void svi_boost_scratch_clear(struct svi_boost_scratch *s);

/* The defaults for a number of classes (0: regression). */
struct svi_boost_options svi_boost_defaults(svs_task task, int classes);

/* Replaces *out by a forest fitted to the rows; without any live row it has no trees and base 0. `s` grows as
 * needed. SVS_LIMIT: options or sizes out of range; SVS_NO_MEMORY. After a failure *out is unchanged. */
svs_code svi_boost_fit(const struct svi_boost_options *o, const struct svi_boost_rows *r,
                       struct svi_boost_scratch *s, struct svi_forest *out, svs_error *err);

/* Bin updates of a fit to `rows` rows of d columns, at most: a function of its arguments alone. */
int64_t svi_boost_cost(const struct svi_boost_options *o, int64_t rows, int d);

/* Bytes of scratch and forest at most. */
double svi_boost_memory(const struct svi_boost_options *o, int64_t rows, int d);

#endif
