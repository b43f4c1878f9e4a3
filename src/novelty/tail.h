/* tail.h: the probability of an excess over a threshold, by generalised Pareto laws of several shapes.
 *
 * Above a high threshold the excess y of almost any quantity is near a generalised Pareto law (Pickands
 * 1975): P(Y > y) = (1 + b y)^(-1/xi), so that log(1 + b y) is exponential with mean xi. For a given b, with
 * S(b) = sum log(1 + b y_i) over the k excesses seen and the prior 1 / xi, both of these are exact:
 *
 *     the probability of the next excess      P(Y > y | b) = (1 + log(1 + b y) / S(b))^(-k)       (1)
 *     the likelihood of b                     (b / S(b))^k exp(-S(b))                             (2)
 *
 * The law is the mean of (1) over some b, weighted by (2). Each b is the one that a shape xi needs for the
 * mean excess seen, b = xi / (1 - xi) / mean: not knowing the shape makes the law heavy, and no shape below
 * the first is believed.
 *
 * Callers differ in shapes, in how logarithms are summed and in how b and (2) are scaled. All of that is in
 * the last bits of what they publish, so it is theirs to say. */
#ifndef SVI_TAIL_H
#define SVI_TAIL_H

#include <stdbool.h>

/* Shapes xi = (i + 1/2) / `denominator`, i < parts. */
struct svi_tail_form {
    int parts, denominator;
    int together; /* factors 1 + b y that share one logarithm; 0: log1p of each */
    bool light;   /* weights are divided by xi: light shapes are favoured */
};

/* `parts` of each, of the caller. */
struct svi_tail_law {
    double *slope, *total, *weight; /* b, S(b), weights of sum 1 */
};

struct svi_tail_seen {
    const double *value; /* `count` >= 1 of them; y_i = value - threshold >= 0, and one of them above 0 */
    int count;
    double threshold;
    double scale; /* b in (2) is a multiple of 1 / scale, which cancels out; 1 does */
};

static inline double svi_tail_shape(const struct svi_tail_form *f, int i) {
    return (i + 0.5) / f->denominator;
}

/* The slopes are given; fills totals and weights. */
void svi_tail_fit(const struct svi_tail_form *f, const struct svi_tail_law *law,
                  const struct svi_tail_seen *seen);

/* P(Y > y) after `count` excesses. */
double svi_tail_beyond(const struct svi_tail_form *f, const struct svi_tail_law *law, int count, double y);

#endif
