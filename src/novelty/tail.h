/* tail.h: the probability of an excess over a threshold, by generalised Pareto laws of several shapes.
 *
 * Above a high threshold the excess y of almost any quantity is near a generalised Pareto law (Pickands
 * 1975): P(Y > y) = (1 + b y)^(-1/xi), so that log(1 + b y) is exponential with mean xi. For a given b, with
 * S(b) = sum log(1 + b y_i) over the k excesses seen and the prior 1 / xi, both of these are exact:
 *
 *     the probability of the next excess      P(Y > y | b) = (1 + log(1 + b y) / S(b))^(-k)       (1)
 *     the likelihood of b                     (b / S(b))^k exp(-S(b))                             (2)
 *
 * The law is the mean of (1) over several b, weighted by (2). Each b fits a shape xi to the mean excess seen,
 * b = xi / (1 - xi) / mean. Uncertainty about the shape makes the law heavy, and no shape below the first is
 * considered.
 *
 * Callers differ in shapes, in how logarithms are summed and in how b and (2) are scaled. All of this affects
 * the last bits of what they publish, so the caller chooses. */
#ifndef SVI_TAIL_H
#define SVI_TAIL_H

#include <stdbool.h>

/* Shapes xi = (i + 1/2) / `denominator`, i < parts. */
struct svi_tail_form {
    int parts, denominator;
    int together; /* factors 1 + b y per logarithm; 0: log1p of each */
    bool light;   /* weights are divided by xi, which favours light tails */
};

/* Arrays of `parts` values each; the caller's. */
struct svi_tail_law {
    double *slope, *total, *weight; /* b, S(b), weights of sum 1 */
};

struct svi_tail_seen {
    const double *value; /* `count` >= 1 values; y_i = value - threshold >= 0, at least one of them > 0 */
    int count;
    double threshold;
    double scale; /* multiplies b in (2); it cancels in the weights, except for rounding. 1 is fine */
};

static inline double svi_tail_shape(const struct svi_tail_form *f, int i) {
    return (i + 0.5) / f->denominator;
}

/* Given the slopes, fills totals and weights. */
void svi_tail_fit(const struct svi_tail_form *f, const struct svi_tail_law *law,
                  const struct svi_tail_seen *seen);

/* P(Y > y), the mean of (1), after `count` excesses. */
double svi_tail_beyond(const struct svi_tail_form *f, const struct svi_tail_law *law, int count, double y);

#endif
