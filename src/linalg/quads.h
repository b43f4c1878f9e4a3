/* quads.h: the loops of probabilities, of the quality alarm and of outliers, four doubles at a time.
 * Multiplications and additions are never fused, and each sum has one fixed order: every instruction set
 * gives the same bits. */
#ifndef SVI_QUADS_H
#define SVI_QUADS_H

#include <stdbool.h>
#include <stdint.h>

#define SVI_QUAD 4

/* n rounded up to whole quads. */
static inline int32_t svi_quads_up(int32_t n) {
    return (n + SVI_QUAD - 1) & ~(SVI_QUAD - 1);
}

#define SVI_KNOTS 17
#define SVI_KNOTS_REACH                                                                                      \
    7.0                      /* the last knot; the first one is -7, between them they are multiples of 0.05  \
                              */
#define SVI_KNOTS_PLACES 281 /* of 0.05 */

/* A curve between two knots: base + gain z. z lies at `share` = (z - begin) scale of the way from the first
 * knot to the second. Beyond the end knots the slope is 1. */
struct svi_line {
    double base, gain, begin, scale;
};

/* The law of several classes, p = softmax(curve(a s + b)), and the output of `law` for one sample. Arrays
 * have whole quads, one value a class unless stated. */
struct svi_classes_law {
    const unsigned char *line_at; /* the line on which z lies, by place: SVI_KNOTS_PLACES */
    struct svi_line *lines;       /* of the curve: SVI_KNOTS - 1 */
    double a, *b;
    double most;       /* bound of a logit, <= 64 */
    double *s;         /* the scores; NaN counts as 0 */
    double *z, *v;     /* a s + b, and its value on the curve, both within +-most */
    double *share;     /* position of z between the knots of its line, 0 to 1 */
    int64_t *line;     /* the line of z */
    double *p, *plain; /* probabilities with the curve; without it, written by `learn` */
};

/* The gradient of the log loss of that sample, given its class: sums for a step of the curve, and one damped
 * Newton step of each offset by its own curvature. The curvature of a class remembers rare * samples / (seen
 * + 1) samples, within least and half. */
struct svi_classes_lesson {
    int truth;
    double *slope, *more_bend; /* of the curve: first and second derivatives at the knots, added to */
    double *bend;              /* curvature of the offsets */
    const int64_t *seen;       /* samples of each class, below 2^52 */
    double rare, samples, least, half;
    double pull, damp, step, most; /* pull to 0; damping; bound of a step; bound of an offset */
    double scores;                 /* bound of a |s|: larger scores shrink by one common factor */
    double at_truth, mean, square; /* out: score of the class; mean and variance by plain probabilities */
};

/* The law of two classes: the logit z = a s + b and its value on a curve through (knot, value), both within
 * +-most. */
struct svi_pair_law {
    double a, b;
    const double *value, *knot, *scale; /* SVI_KNOTS; scale: 1 / (next knot - this one) */
    const unsigned char *interval_at;   /* by place: SVI_KNOTS_PLACES */
    double most, counts;                /* bound of a logit; of one without the curve */
};

/* The gradient of the log loss of some samples of two classes. Summed in their order: the sums have the same
 * bits however the samples are grouped into calls. */
enum {
    SVI_PAIR_SLOPE_A,
    SVI_PAIR_SLOPE_B,
    SVI_PAIR_CURVATURE_AA,
    SVI_PAIR_CURVATURE_AB,
    SVI_PAIR_CURVATURE_BB,
    SVI_PAIR_SCORES,
    SVI_PAIR_SQUARES,
    SVI_PAIR_SUMS
};
struct svi_pair_lesson {
    const double *score, *second; /* SVI_QUAD, finite; second: 1 for the second class, else 0 */
    double newest, newest_second; /* score and class of the last sample, in place of its array entries */
    double *slope, *more_bend;    /* of the curve */
    double *sums;                 /* SVI_PAIR_SUMS values, capacity of whole quads */
    double p[2][SVI_QUAD];        /* out: the probabilities, by class */
};

/* Scores of the probabilities of samples of two classes: the log loss, at most `loss_most`, the
 * Brier score and the probability of the second class. Each is a whole number of units, below 2^32.
 * p has the bit SVI_PAIR_TRUE set when the sample was of the second class. */
#define SVI_PAIR_TRUE UINT32_C(0x80000000)
struct svi_pair_units {
    double loss_most, loss, brier, p; /* units in 1 */
};
struct svi_pair_judgement {
    uint32_t loss[SVI_QUAD], brier[SVI_QUAD], p[SVI_QUAD];
};

/* One Newton step of a curve's values at its knots, each by its own curvature. */
struct svi_curve_step {
    const double *knot;
    double *value, *bend, *slope, *more_bend; /* the last two are used up: set to 0 */
    double fade, pull;                        /* forgetting of the curvature; pull to the knot */
    double damp, most, rise;                  /* added to the curvature; bound of a step; see `curve` */
};

/* Candidate cuts of a sequence of 0 and 1, with `wrong` ones among its `n` entries. After the cut k there are
 * n2 = n_k + more_n entries, w2 = wrong_k + more_wrong of them ones; n1 = n - n2, apart = w2 n - wrong n2. */
struct svi_cuts {
    double n, wrong, more_n, more_wrong;
    double fewest; /* entries before a cut, and after it when `apart` <= 0 */
    double least;  /* lower bound of apart: smaller values count as this */
    double bound;  /* factor of a cut's level */
};

struct svi_quads {
    /* p_k = exp(z_k) / sum_j exp(z_j); a z more than `below` <= 64 below the largest counts as that far
     * below. p may be z. n >= 1. */
    void (*softmax)(const double *z, int n, double below, double *p);
    /* Probabilities of n classes from their scores, and where each lies on the curve; then the lesson. */
    void (*law)(const struct svi_classes_law *l, const double *scores, int n);
    void (*learn)(const struct svi_classes_law *l, struct svi_classes_lesson *lesson, int n);
    /* Probabilities and gradient of n <= SVI_QUAD samples. */
    void (*pairs)(const struct svi_pair_law *l, struct svi_pair_lesson *lesson, int n);
    /* Scores SVI_QUAD samples: their probabilities by class, and `y`: 1 for the second class, else 0. */
    void (*judge)(const struct svi_pair_units *u, const double *first, const double *second, const double *y,
                  struct svi_pair_judgement *out);
    /* Takes the step. True when the curve then rises by less than `rise` between two neighbouring knots: the
     * caller has to restore its order. */
    bool (*curve)(const struct svi_curve_step *s);
    /* base and gain of the lines through `value`; begin and scale stay. */
    void (*lines)(const double *value, struct svi_line *lines);
    /* True when n1 log(1 + c / n1^2) + n2 log(1 + c / n2^2) >= level_k at a cut k < count, c = apart^2 / (n
     * bound). The arrays have whole quads. */
    bool (*cut)(const struct svi_cuts *c, const double *n, const double *wrong, const double *level,
                int count);
    /* Means of a block of rows and sums of squared deviations from them; columns: a multiple of 8. The rows
     * lie in a ring of `places` (a power of 2), row i at (first + i) mod places, `stride` doubles each. */
    void (*moments)(const double *ring, int places, int64_t first, int rows, int64_t stride, int columns,
                    double *mean, double *squares);
    /* True when |x_j - center_j| > bound_j for a j < n. NaN never is; a bound may be INFINITY. */
    bool (*beyond)(const double *x, const double *center, const double *bound, int n);
};

/* The best table for this machine (SVMSTREAM_ISA as for kernels.h). */
const struct svi_quads *svi_quads_get(void);

extern const struct svi_quads svi_quads_generic;
#if defined(__x86_64__)
extern const struct svi_quads svi_quads_avx2;
#endif

#endif
