/* novelty.h: one-class SVM by active sets (FOSVM1, FOSVM2: Le, Phung, Nguyen, Venkatesh 2015, "Fast One-Class
 * SVM for Novelty Detection"), trained from rows. (A stream keeps one up to date and adds conformal
 * p-values.)
 *
 * The hard margin one-class SVM on an active set A with a kernel of k(x, x) = 1:
 *
 *     min 1/2 |w|^2 - rho   subject to   w'phi(x_i) >= rho, i in A
 *
 * The membership m(x) = w'phi(x) / rho = sum_i z_i k(x_i, x) is at least 1 inside and falls to 0 far away.
 * The novelty is 1 - m: higher is more novel. The surprise, -log m, also orders samples so far away that
 * their novelty is 1 to the last digit. A sample is outside the model when m < 1 - theta.
 *
 * With several values of gamma (SVS_GAMMA_AUTO) each has such a model, a member: m is then the weighted
 * geometric mean of the members' memberships (weights sum to 1), surprise the weighted mean of their
 * surprises.
 *
 * NaN is a missing value. A distance is then taken over the coordinates that both rows have, times d / their
 * number; two rows that share no coordinate count as far apart as the median pair (1 / gamma where gamma is
 * given). For polynomial kernels a missing coordinate is 0 and the others grow by the root of d / their
 * number. A row without any value has novelty 0. */
#ifndef SVMSTREAM_NOVELTY_H
#define SVMSTREAM_NOVELTY_H

#include "svmstream/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SVS_MEMBERS_MAX 8

typedef enum svs_novelty_kernel {
    SVS_NOVELTY_RBF = 0,   /* exp(-gamma |x - z|^2) */
    SVS_NOVELTY_LAPLACIAN, /* exp(-gamma sum_j |x_j - z_j|) */
    SVS_NOVELTY_POLYNOMIAL /* (1 + gamma x'z)^degree / sqrt((1 + gamma x'x)^degree (1 + gamma z'z)^degree) */
} svs_novelty_kernel;

typedef enum svs_gamma_rule {
    SVS_GAMMA_GIVEN = 0,
    SVS_GAMMA_SCALE,  /* 1 / (d variance of all entries), as scikit-learn's 'scale' */
    SVS_GAMMA_MEDIAN, /* 1 / median of |x - z|^2 (rbf), of sum |x_j - z_j| (laplacian), over pairs of rows;
                         polynomial: as scale */
    SVS_GAMMA_AUTO    /* members at several multiples of the median rule: 1/4, 1, 4, 16 (rbf), 4, 16
                         (laplacian); polynomial: as scale */
} svs_gamma_rule;

typedef struct svs_novelty_options {
    int fosvm; /* row that joins the active set. 1: the worst of all; 2: the worst of m drawn at random */
    svs_novelty_kernel kernel;
    svs_gamma_rule gamma_rule;
    double gamma;   /* > 0; SVS_GAMMA_GIVEN */
    int degree;     /* polynomial, 1 to 20 */
    double theta;   /* in (0, 1): training ends when every membership is at least 1 - theta */
    double epsilon; /* fosvm 2: share of rows that may stay outside, in (0, 1) */
    int64_t m;   /* fosvm 2: rows drawn a round; 0 = ln(20) / epsilon. With probability 1 - e^(-m epsilon) at
                  * most the share epsilon stays outside */
    double trim; /* share of the rows, those of lowest density, excluded from the fit: 0 to 0.5 */
    bool scale;  /* columns are scaled alike and their tails compressed: see the model's coordinates */
    int max;     /* limit of support vectors of all members together; 0 = no limit. When it is reached, the
                    certificate counts the rows outside */
    uint64_t seed;
    /* Called from time to time, NULL = never: member (from 0) of members, points of its active set, its worst
     * membership so far. */
    void (*progress)(void *user, int member, int members, int points, double worst);
    void *user;
} svs_novelty_options;

/* fosvm 1, laplacian, auto, degree 3, theta 0.05, epsilon 0.05, m 0, trim 0.2, scaled, max 200, seed 1. */
SVS_API void svs_novelty_options_default(svs_novelty_options *o);

/* One one-class SVM with its certificate. */
typedef struct svs_novelty_member {
    double gamma;
    double share;          /* its weight in the mean: > 0, they sum to 1 */
    int count;             /* support vectors */
    const double *support; /* count x stride of the model, in the model's coordinates, padded with zeros; NaN:
                              missing */
    const double *norm2;   /* count: their squared lengths; 0 unless the kernel is polynomial; NaN where a
                              coordinate is missing */
    const double *z;       /* count, > 0 */
    double rho;            /* 1 / sum z */
    /* The certificate: */
    double worst;     /* smallest membership of the rows checked last: all fitted ones (fosvm 1), those drawn
                         last (fosvm 2) */
    int64_t outside;  /* how many of these are below 1 - theta: 0 unless max was reached */
    double violation; /* of the optimality conditions of the small problem */
    int64_t rounds;   /* rows that joined, each followed by a solution of the small problem */
} svs_novelty_member;

typedef struct svs_novelty_model {
    int d;            /* features */
    int lags;         /* samples joined to a row, the newest first, each of d / lags values; 0 and 1 = one */
    bool differences; /* the newest sample is followed by differences of neighbours, not by older samples */
    int stride;       /* d rounded up to a multiple of 8 */
    /* Coordinates: 3 asinh(u/3), plus the excess of |u| over 8, where u = (x - center) inverse. The center is
     * the median of the given rows. 1/inverse is the distance of their 5 % and 95 % quantiles over 3.29,
     * which is the deviation of a normal distribution. x itself when both are NULL. d values each. */
    const double *center, *inverse;
    const char *const *features; /* d names, or NULL */
    svs_novelty_kernel kernel;
    int degree;
    int fosvm;
    double theta;
    int64_t trained, trimmed; /* rows given; rows excluded for their low density */
    int members;
    svs_novelty_member member[SVS_MEMBERS_MAX];
    const void *schema; /* the map from columns of raw rows to features of one sample, as in svs_model; NULL =
                           the columns are the features */
    size_t schema_size; /* bytes */
} svs_novelty_model;

/* Trains on `rows` (at least 2; values may be NaN). With missing values a few rows may stay outside whatever
 * joins, because distances over different coordinates need not be consistent; `outside` of the member counts
 * them. `names` (may be NULL): d names, copied. SVS_INVALID (an option out of its range, too few rows),
 * SVS_TOO_LARGE (values beyond 1e100 in columns that are not scaled), codes of svs_rows_check
 * (SVS_NOT_FINITE: an infinite value), SVS_NO_MEMORY. Owner: the caller. */
SVS_API svs_code svs_novelty_train(const svs_rows *rows, const char *const *names,
                                   const svs_novelty_options *o, svs_novelty_model **out, svs_error *err);
SVS_API void svs_novelty_free(svs_novelty_model **m);

/* Scores rows first .. first + count - 1, of m->d features: novelty (1 - m) and surprise (-log m), `count`
 * values each; either may be NULL. SVS_WRONG_DIMENSION, SVS_NO_MEMORY. */
SVS_API svs_code svs_novelty_score(const svs_novelty_model *m, const svs_rows *rows, int64_t first,
                                   int64_t count, double *novelty, double *surprise, svs_error *err);

/* The contribution of each feature to the surprise of x (d raw values): the size of the surprise's gradient
 * times the distance from the weighted mean of the support vectors near x, both in the model's coordinates. A
 * number without unit; > 0 where x is above normal, 0 where it is missing. out: d values. SVS_NO_MEMORY. */
SVS_API svs_code svs_novelty_explain(const svs_novelty_model *m, const double *x, double *out,
                                     svs_error *err);

#ifdef __cplusplus
}
#endif
#endif
