/* quads.h: the loops of probabilities, of the quality alarm and of outliers, four doubles at a time. Nothing
 * is fused, and sums have an order of their own: every instruction set gives the same bits. */
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

/* A curve between two knots: base + gain z; z is (1 - share) of the first one and the rest of the second,
 * share = (z - begin) scale. Beyond the ends the slope is 1. */
struct svi_line {
    double base, gain, begin, scale;
};

/* The law of classes, and of a sample at hand what `law` says of it. The arrays are of whole quads. */
struct svi_classes_law {
    const unsigned char *line_at; /* which line z is on, by place: SVI_KNOTS_PLACES */
    struct svi_line *lines;       /* of the curve: SVI_KNOTS - 1 */
    double a, *b;
    double most;       /* of a logit; <= 64 */
    double *s;         /* the scores; what is NaN counts as 0 */
    double *z, *v;     /* a s + b, and its place on the curve, within +-most */
    double *share;     /* of z */
    int64_t *line;     /* on which it is */
    double *p, *plain; /* probabilities by the curve; and without it, by `learn` */
};

/* What the class of that sample says of it: sums for a step of the curve; and a step of Newton of the offsets
 * by their own curvature, which is damped and remembers rare * samples / (seen + 1) of a class, within least
 * and half. */
struct svi_classes_lesson {
    int truth;
    double *slope, *more_bend; /* of the curve */
    double *bend;              /* of the offsets */
    const int64_t *seen;       /* below 2^52 */
    double rare, samples, least, half;
    double pull, damp, step, most; /* to 0; of a step at most; of an offset */
    double scores;                 /* times a at most: larger ones shrink, all alike */
    double at_truth, mean, square; /* out: of the scores, by the plain probabilities */
};

/* The law of two classes: the logit z = a s + b, within +-most, and its place on a curve through (knot,
 * value), which is within that, too. */
struct svi_pair_law {
    double a, b;
    const double *value, *knot, *scale; /* SVI_KNOTS; of one interval over the next knot less its own */
    const unsigned char *interval_at;   /* by place: SVI_KNOTS_PLACES */
    double most, counts;                /* of a logit; of one without the curve */
};

/* Samples of two classes: what they say of the law, summed in their order: whichever are taken together, the
 * sums are the same bits. */
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
    const double *score, *second; /* SVI_QUAD, finite; 1: it was of the second class, else 0 */
    double newest, newest_second; /* of the last of them: it need not be there */
    double *slope, *more_bend;    /* of the curve */
    double *sums;                 /* SVI_PAIR_SUMS, and room for whole quads */
    double p[2][SVI_QUAD];        /* out: the probabilities, by class */
};

/* How good the probabilities of samples of two classes were: the log loss, at most `loss_most`, the Brier
 * score and the probability of the second class, each as a whole number of units, below 2^32; that of p with
 * SVI_PAIR_CAME where it was of the second class. */
#define SVI_PAIR_CAME UINT32_C(0x80000000)
struct svi_pair_units {
    double loss_most, loss, brier, p; /* units in 1 */
};
struct svi_pair_judgement {
    uint32_t loss[SVI_QUAD], brier[SVI_QUAD], p[SVI_QUAD];
};

/* A step of Newton of the values of a curve at its knots, of each by its own curvature. */
struct svi_curve_step {
    const double *knot;
    double *value, *bend, *slope, *more_bend; /* the last two become 0 */
    double fade, pull;                        /* of the curvature; to the knot */
    double damp, most, rise;                  /* added to the curvature; of a step; see below */
};

/* Places at which a sequence of 0 and 1 may be cut; of these `wrong` among `n` in all, and by place `more_n`
 * and `more_wrong` after it, besides those that its arrays have. apart = w2 n - w n2, n1 = n - n2. */
struct svi_cuts {
    double n, wrong, more_n, more_wrong;
    double fewest; /* samples before a cut, and after one where `apart` is below 0 */
    double least;  /* of apart: what is less counts as that */
    double bound;  /* times the level of a place */
};

struct svi_quads {
    /* p_k = exp(z_k) / sum_j exp(z_j), no z more than `below` <= 64 below the largest; p may be z. n >= 1. */
    void (*softmax)(const double *z, int n, double below, double *p);
    void (*law)(const struct svi_classes_law *l, const double *scores, int n);
    void (*learn)(const struct svi_classes_law *l, struct svi_classes_lesson *lesson, int n);
    /* n <= SVI_QUAD samples. */
    void (*pairs)(const struct svi_pair_law *l, struct svi_pair_lesson *lesson, int n);
    /* SVI_QUAD samples, their probabilities by class and `y` as struct svi_pair_lesson has it. */
    void (*judge)(const struct svi_pair_units *u, const double *first, const double *second, const double *y,
                  struct svi_pair_judgement *out);
    /* True: somewhere the curve rises by less than `rise` from one value to the next. */
    bool (*curve)(const struct svi_curve_step *s);
    void (*lines)(const double *value, struct svi_line *lines);
    /* The arrays are of whole quads. Is n1 log(1 + c / n1^2) + n2 log(1 + c / n2^2) >= level anywhere, c =
     * apart^2 / (n bound)? */
    bool (*cut)(const struct svi_cuts *c, const double *n, const double *wrong, const double *level,
                int count);
    /* Means of a block of rows and squared deviations from them; columns: a multiple of 8. The rows lie in a
     * ring of `places` (a power of 2), row i at (first + i) mod places, `stride` doubles each. */
    void (*moments)(const double *ring, int places, int64_t first, int rows, int64_t stride, int columns,
                    double *mean, double *squares);
    /* Is |x_j - center_j| > bound_j anywhere, j < n? NaN is not; a bound may be INFINITY. */
    bool (*beyond)(const double *x, const double *center, const double *bound, int n);
};

/* The best one for this machine (SVMSTREAM_ISA as for kernels.h). */
const struct svi_quads *svi_quads_get(void);

extern const struct svi_quads svi_quads_generic;
#if defined(__x86_64__)
extern const struct svi_quads svi_quads_avx2;
#endif

#endif
