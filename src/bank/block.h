/* block.h: several linear models by first-order steps over the same features f = (1, phi(z)) of a
 * standardised row (bank/standardiser.h), in single precision. They share the features and their norm.
 *
 * phi:
 *  - raw: z;
 *  - products: z and all z_i z_j, i <= j, for d <= SVI_PRODUCTS_MAX: d (d + 3) / 2 values, standardised again
 *    by running moments of the rows learned, clipped at +-5 (beyond 2^20 rows the moments fade with memory
 *    2^20, which is what single precision resolves);
 *  - Fourier: SVI_FOURIER_COUNT cosines cos(w'z + b), w normal with deviation 2 / m, m the median distance
 *    among the first SVI_FOURIER_ROWS rows learned, b uniform (Rahimi, Recht 2007). Until these are there
 *    the block scores 0 and only keeps them. The draws of a column depend on seed and column alone.
 *
 * Steps of one model with score s = w'f; c the sample's weight, 1 as a rule:
 *  - PA-I (Crammer et al., JMLR 7, 2006): t = min(C, max(0, 1 - y s) / |f|^2), w += y min(c t, loss / |f|^2)
 *    f, so that no weight carries a step beyond its aim; of more classes the right one and the strongest
 * wrong one step apart by a loss of max(0, 1 - s_right + s_wrong), |f|^2 counting twice;
 *  - AdaGrad (Duchi, Hazan, Singer, JMLR 12, 2011) on the logistic loss, one class against the rest: g = -c y
 *    / (1 + exp(y s)) f, c at most 1e6; a model whose chance 1 / (1 + exp(y s)) of an error is below .001
 *    takes no step;
 *  - NLMS: w += min(1, mu c) (t - s) / |f|^2 f, for regression, on targets minus their running mean and
 *    divided by a power of two near their running deviation.
 * Up to two classes are one model, whose score is for the second; more are one model a class,
 * and when the third class comes the first two take over what the one model had learned.
 *
 * Cost of a step, d = 8 and d = 54, two classes, AVX-512: raw with three heads 0.07 and 0.09
 * us, products with one 0.09 and 1.0, Fourier with three 0.4 and 1.3; tests/bench/bench_block.c.
 *
 * One step is score, then learn; a learn uses features and scores of the last score, whatever came between
 * but for renew. Nothing is allocated in either. All numbers stay finite: a PA step adds at most
 * 1 to |w|^2 (by t <= loss / |f|^2), an NLMS step at most the square of the target in its scale, 2
 * sqrt(rows), and an AdaGrad step is at most eta in each weight, so that a float 2^25 times as large is not
 * changed by it any more; its sums likewise. The same calls give the same bits; a block that grew gives those
 * of one whose new features had been 0 from the beginning. */
#ifndef SVI_BLOCK_H
#define SVI_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bank/standardiser.h"
#include "base/archive.h"
#include "base/statistics.h"
#include "linalg/kernels_floats.h"
#include "svmstream/model.h"

#define SVI_HEADS_MAX     4
#define SVI_PRODUCTS_MAX  60
#define SVI_PRODUCTS_CLIP 5.0F
#define SVI_FOURIER_COUNT 512
#define SVI_FOURIER_ROWS  200

enum svi_block_kind { SVI_BLOCK_RAW = 0, SVI_BLOCK_PRODUCTS, SVI_BLOCK_FOURIER };
enum svi_head_step { SVI_STEP_PA = 0, SVI_STEP_ADAGRAD, SVI_STEP_NLMS };

struct svi_head {
    enum svi_head_step step;
    float rate; /* C, eta or mu; > 0 */
    float keep; /* AdaGrad: what its sums keep at a step, in (0, 1]; 0 = 1 */
};

struct svi_block_options {
    enum svi_block_kind kind;
    svs_task task;
    int head_count; /* 1 to SVI_HEADS_MAX; regression: NLMS; classes: the others */
    struct svi_head head[SVI_HEADS_MAX];
    uint64_t seed; /* of Fourier features */
    svs_isa isa;
};

struct svi_block {
    struct svi_block_options o;
    const struct svi_floats *kernels;
    int d, classes;
    int length;                         /* of f, padded; [0] is 1, the features begin at [SVI_FLOATS_PAD] */
    int capacity, row_capacity, stride; /* features, models a head, and values of f that fit */
    int64_t learned;                    /* rows in the products' moments */
    int kept_rows;                      /* rows kept for m */
    double spread;                      /* m; 0 = not drawn yet */
    struct svi_moments target;          /* of the targets so far */
    double scale;                       /* a power of two */

    float *f;               /* of the row scored last */
    float *made, *scratch;  /* the products of that row as they are, and what makes them */
    float *mean, *variance; /* of the products */
    float *waves, *shift;   /* frequencies and phases of the Fourier features */
    float *kept;            /* rows until the Fourier features can be drawn */
    float *scores, *chance; /* of the row scored last, by head and model; of one head */
    float *weights, *sums;  /* by head and model, the sums by head that is AdaGrad */
};

/* No features and no classes yet. SVS_INVALID: heads that do not fit; SVS_UNAVAILABLE: the machine lacks the
 * instruction set. */
svs_code svi_block_init(struct svi_block *b, const struct svi_block_options *o, svs_error *err);
void svi_block_clear(struct svi_block *b);

/* Nothing learned, no classes; features and memory stay. */
void svi_block_empty(struct svi_block *b);

/* Rows have d features from now on, those that are new as if they had been 0 so far. SVS_LIMIT: too many for
 * products. A failing call changes nothing. */
svs_code svi_block_grow(struct svi_block *b, int d, svs_error *err);

/* What was learned of feature j goes: its weights and those of its products become 0, the moments of its
 * products those of independent features. Of Fourier features nothing can go. */
void svi_block_renew(struct svi_block *b, int j);

/* Room for this number of classes, so that svi_block_learn of labels below cannot fail. They are no classes
 * yet. */
svs_code svi_block_reserve_classes(struct svi_block *b, int classes, svs_error *err);

/* From now on there are at least this number, for which there is room; svi_block_learn does it by itself. */
void svi_block_add_classes(struct svi_block *b, int classes);

/* Models of a head: 1, or more than two classes. */
static inline int svi_block_rows(const struct svi_block *b) {
    return b->o.task == SVS_REGRESS || b->classes <= 2 ? 1 : b->classes;
}

/* scores: head_count x svi_block_rows(b); of regression in the targets' unit. */
void svi_block_score(struct svi_block *b, const float *z, double *scores);

/* The features of a row without its scores. What was scored last is not learned any more. */
void svi_block_expand(struct svi_block *b, const float *z);

/* The label or target of the row scored last. label: 0 to what is reserved - 1; weight > 0. */
void svi_block_learn(struct svi_block *b, int label, double weight);
void svi_block_learn_target(struct svi_block *b, double target, double weight);

/* phi of the row scored last, without the 1: *count values, zero up to a multiple of SVI_FLOATS_PAD; none (0)
 * as long as Fourier features are not drawn. Until the next call. */
const float *svi_block_features(const struct svi_block *b, int *count);

/* The weights of a model of a raw block for rows x before standardisation, as it is now: s = w'x + the value
 * returned, as long as nothing is clipped. w: d values. */
double svi_block_weights(const struct svi_block *b, int head, int row, const struct svi_standardiser *s,
                         double *w);

/* Loading: `b` is initialised with the same options. What the last score left is not kept. features_max and
 * classes_max: what the stream has; a block of Fourier features takes 3 KB a feature on the word of the
 * bytes. */
void svi_block_archive(struct svi_archive *a, struct svi_block *b, int features_max, int classes_max);

/* Bytes at most, besides the struct, of a block of d features and this number of classes. */
double svi_block_memory(const struct svi_block_options *o, int d, int classes);

#endif
