/* block.h: several linear models (heads) that learn by first-order steps on the same features f = (1,
 * phi(z)) of a standardised row z (bank/standardiser.h), in single precision. They share the features and
 * their norm.
 *
 * phi:
 *  - raw: z.
 *  - products: z and all z_i z_j, i <= j, for d <= SVI_PRODUCTS_MAX, d (d + 3) / 2 values. Running
 *    moments of the rows learned standardise them again, and they are clipped at +-5. Beyond 2^20
 *    rows the moments fade with memory 2^20, the most that single precision resolves.
 *  - Fourier: SVI_FOURIER_COUNT cosines cos(w'z + b) (Rahimi, Recht 2007). w is normal with
 *    deviation 2 / m, where m is the median distance among the first SVI_FOURIER_ROWS rows learned.
 *    b is uniform. Until m is known the block scores 0 and only collects rows. The draws of a
 *    column depend on seed and column alone.
 *
 * Steps of one model with score s = w'f, where c is the sample's weight (1 by default):
 *  - PA-I (Crammer et al., JMLR 7, 2006): t = min(C, max(0, 1 - y s) / |f|^2), w += y min(c t, loss
 *    / |f|^2) f, so that no weight carries a step beyond its aim. With three or more classes the
 *    right class and the strongest wrong one move apart. Their loss is max(0, 1 - s_right +
 *    s_wrong), and |f|^2 counts twice.
 *  - AdaGrad (Duchi, Hazan, Singer, JMLR 12, 2011) on the logistic loss, one class against the
 *    rest: g = -c y / (1 + exp(y s)) f, c at most 1e6. A model whose probability 1 / (1 + exp(y s))
 *    of an error is below .001 takes no step.
 *  - NLMS: w += min(1, mu c) (t - s) / |f|^2 f, for regression, on targets minus their running mean and
 *    divided by a power of two near their running deviation.
 * Up to two classes are one model, whose score is for the second class. More classes have one model
 * each. When the third class is added, the first two inherit what the one model had learned.
 *
 * Cost of a step, d = 8 and d = 54, two classes, AVX-512: raw with three heads 0.07 and 0.09 us, products
 * with one 0.09 and 1.0, Fourier with three 0.4 and 1.3; tests/bench/bench_block.c.
 *
 * One step is score, then learn. Learn uses the features and scores of the last score, whatever is
 * called between, svi_block_renew excepted. Neither allocates. All numbers stay finite. A PA step
 * adds at most 1 to |w|^2 (by t <= loss / |f|^2). An NLMS step adds at most the square of the
 * target in its scale, 2 sqrt(rows). An AdaGrad step is at most eta in each weight, which no longer
 * changes a float 2^25 times as large. The sums of AdaGrad are bounded in the same way. The same
 * calls give the same bits, and a block that grew gives the bits of one whose new features had been
 * 0 from the beginning. */
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
    float rate; /* C, eta or mu by step; > 0 */
    float keep; /* AdaGrad: factor of its sums at each step, in (0, 1]; 0 stands for 1 */
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
    int length;                         /* of f, padded: f[0] is 1, features start at f[SVI_FLOATS_PAD] */
    int capacity, row_capacity, stride; /* capacity: features; models a head; values of f */
    int64_t learned;                    /* rows in the products' moments, at most 2^20 */
    int kept_rows;                      /* rows collected for m so far */
    double spread;                      /* m; 0 = not known, nothing is drawn yet */
    struct svi_moments target;          /* of all targets so far */
    double scale;                       /* unit of the weights in a regression: a power of two */

    float *f;               /* features of the row scored last */
    float *made, *scratch;  /* its products before they are standardised; scratch for making them */
    float *mean, *variance; /* moments of the products */
    float *waves, *shift;   /* frequencies and phases of the Fourier features */
    float *kept;            /* rows collected until the Fourier features can be drawn */
    float *scores, *chance; /* scores by head and model; probabilities of one head */
    float *weights, *sums;  /* by head and model; sums only of heads that are AdaGrad */
};

/* Starts without features and classes. SVS_INVALID: the heads do not fit the task or their ranges;
 * SVS_UNAVAILABLE: the machine lacks the instruction set; SVS_NO_MEMORY. */
svs_code svi_block_init(struct svi_block *b, const struct svi_block_options *o, svs_error *err);
void svi_block_clear(struct svi_block *b);

/* Forgets everything learned and the classes; features and memory stay. */
void svi_block_empty(struct svi_block *b);

/* Rows have d features from now on; new ones count as if they had been 0 so far. SVS_LIMIT: too many for
 * products; SVS_NO_MEMORY. A failing call changes nothing. */
svs_code svi_block_grow(struct svi_block *b, int d, svs_error *err);

/* Forgets feature j < d: its weights and those of its products become 0, the moments of its products
 * become those of independent features. Fourier features mix all columns, so there nothing can be
 * forgotten. */
void svi_block_renew(struct svi_block *b, int j);

/* Capacity for this number of classes, so that svi_block_learn of smaller labels cannot fail. It does not
 * add them. SVS_NO_MEMORY. */
svs_code svi_block_reserve_classes(struct svi_block *b, int classes, svs_error *err);

/* Raises the class count to `classes`, which must be reserved; svi_block_learn does so itself. */
void svi_block_add_classes(struct svi_block *b, int classes);

/* Models of a head: one, or one a class from three classes on. */
static inline int svi_block_rows(const struct svi_block *b) {
    return b->o.task == SVS_REGRESS || b->classes <= 2 ? 1 : b->classes;
}

/* scores: head_count x svi_block_rows(b) values; in a regression in the targets' unit. */
void svi_block_score(struct svi_block *b, const float *z, double *scores);

/* Makes the features of a row without its scores. The row scored before can no longer be learned. */
void svi_block_expand(struct svi_block *b, const float *z);

/* Learns the label or target of the row scored last. label: 0 to (reserved classes - 1); weight > 0. */
void svi_block_learn(struct svi_block *b, int label, double weight);
void svi_block_learn_target(struct svi_block *b, double target, double weight);

/* phi of the row scored last, without the 1: *count values, zero up to a multiple of SVI_FLOATS_PAD;
 * *count is 0 while Fourier features are not drawn. Valid until the next call. */
const float *svi_block_features(const struct svi_block *b, int *count);

/* The weights of one model of a raw block in raw units: s = w'x + the value returned, as long as the
 * standardiser clips nothing. w: d values. */
double svi_block_weights(const struct svi_block *b, int head, int row, const struct svi_standardiser *s,
                         double *w);

/* Saves or loads. To load, initialise `b` with the same options. What the last score left is not saved.
 * features_max, classes_max: limits of the stream. A block of Fourier features allocates 3 KB for each
 * feature that the bytes announce. */
void svi_block_archive(struct svi_archive *a, struct svi_block *b, int features_max, int classes_max);

/* Bytes at most, without the struct, of a block of d features and this number of classes. */
double svi_block_memory(const struct svi_block_options *o, int d, int classes);

#endif
