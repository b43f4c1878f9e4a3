/* laws.h: draws of six laws, and how many hits are too many for chance. */
#ifndef TEST_SUPPORT_LAWS_H
#define TEST_SUPPORT_LAWS_H

#include "support/problem.h"

enum law { NORMAL, STUDENT, EXPONENTIAL, UNIFORM, DISCRETE, LOGNORMAL, LAWS };

static const char *const law_names[LAWS] = {"normal",  "t3",       "exponential",
                                            "uniform", "discrete", "lognormal"};

static inline double law_draw(enum law law, uint64_t *seed) {
    double square = 0;
    switch (law) {
    case NORMAL:
        return test_normal(seed);
    case STUDENT:
        for (int i = 0; i < 3; i++) {
            const double g = test_normal(seed);
            square += g * g / 3;
        }
        return test_normal(seed) / sqrt(square);
    case EXPONENTIAL:
        return -log(test_uniform(seed));
    case UNIFORM:
        return test_uniform(seed);
    case DISCRETE:
        return floor(-3 * log(test_uniform(seed)));
    default:
        return exp(test_normal(seed));
    }
}

/* P(at least `hits` of n), each with probability p: of a binomial law, exactly. */
static inline double law_tail(double n, double p, double hits) {
    double sum = 0;
    for (double k = hits; k <= n; k++) {
        const double add =
            exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(p) + (n - k) * log1p(-p));
        sum += add;
        if (k > n * p && add < 1e-12 * sum)
            break;
    }
    return sum;
}

#endif
