#include "novelty/similarity.h"

#include <math.h>
#include <string.h>

#include "base/wide.h"

#define NOTHING                                                                                              \
    100.0 /* exp(-100) adds no digit to the sum; near its underflow exp is also ten times slower */

static const double multiples_rbf[] = {0.25, 1, 4, 16}, multiples_laplacian[] = {4, 16};

struct svi_similarity svi_similarity_of(svs_novelty_kernel kernel, int degree, int d) {
    return (struct svi_similarity){
        .kernel = kernel, .degree = degree, .pass = svi_kernels_get(SVS_ISA_BEST), .d = d, .columns = d};
}

SVI_WIDE
static int similarity_count_missing(const double *v, int n) {
    int64_t missing = 0;
    for (int j = 0; j < n; j++)
        missing += v[j] != v[j];
    return (int)missing;
}

int svi_count_missing(const double *v, int n) {
    return similarity_count_missing(v, n);
}

/* Gaps over the coordinates that both points have; rbf and laplacian only. */
static void similarity_shared_gap(const struct svi_similarity *s, const double *x, size_t stride,
                                  int64_t count, const double *v, double *gap) {
    if (s->kernel == SVS_NOVELTY_RBF)
        s->pass->rows_l2_shared(x, stride, count, (int)stride, v, s->columns, s->nothing, gap);
    else
        s->pass->rows_l1_shared(x, stride, count, (int)stride, v, s->columns, s->nothing, gap);
}

/* The form for missing values is slower, so it is taken only where some can be missing. */
void svi_similarity_gap(const struct svi_similarity *s, const struct svi_points *p, int64_t first,
                        int64_t count, const double *v, double *gap) {
    const double *x = p->x + first * p->stride;
    const size_t stride = (size_t)p->stride;
    if (s->kernel != SVS_NOVELTY_POLYNOMIAL && (p->gaps || svi_count_missing(v, s->d) > 0))
        similarity_shared_gap(s, x, stride, count, v, gap);
    else if (s->kernel == SVS_NOVELTY_RBF)
        s->pass->rows_l2(x, stride, count, p->stride, v, gap);
    else if (s->kernel == SVS_NOVELTY_LAPLACIAN)
        s->pass->rows_l1(x, stride, count, p->stride, v, gap);
    else
        s->pass->rows_dot(x, stride, count, p->stride, v, gap);
}

/* base^degree by repeated squaring. */
static double similarity_power(double base, int degree) {
    double product = 1;
    for (; degree > 0; degree >>= 1, base *= base)
        if (degree & 1)
            product *= base;
    return product;
}

void svi_similarity_of_gap(const struct svi_similarity *s, double gamma, const double *gap,
                           const double *norm2, double own, int64_t count, double *k) {
    if (s->kernel != SVS_NOVELTY_POLYNOMIAL) {
        s->pass->decay(gap, gamma, count, k);
        return;
    }
    for (int64_t i = 0; i < count; i++) /* the base lies in [-1, 1]; an odd power keeps its sign */
        k[i] = similarity_power((1 + gamma * gap[i]) / (sqrt(1 + gamma * norm2[i]) * sqrt(1 + gamma * own)),
                                s->degree);
}

/* Factors exp(-gamma least) out of the sum: the largest term is then z exp(0), and nothing underflows. */
double svi_similarity_surprise(double gamma, const double *gap, const double *z, int64_t count) {
    double least = INFINITY, sum = 0;
    for (int64_t i = 0; i < count; i++)
        if (z[i] > 0 && gap[i] < least)
            least = gap[i];
    for (int64_t i = 0; i < count; i++) {
        const double further = gamma * (gap[i] - least);
        if (z[i] > 0 && further < NOTHING)
            sum += z[i] * exp(-further);
    }
    return gamma * least - log(sum);
}

double svi_gamma_of_spread(const struct svi_moments *entries, int d) {
    return entries->squares > 0 ? entries->n / (d * entries->squares) : 1.0 / d;
}

double svi_gamma_of_gaps(double *gaps, int count) {
    return count > 0 ? 1 / svi_select_rank(gaps, count, count / 2) : 1;
}

/* The first member's gamma is its multiple times the gamma of the median gap; dividing gives the gap back. */
double svi_gap_of_nothing(svs_novelty_kernel kernel, int members, double gamma) {
    const double first = members == 1                ? 1
                         : kernel == SVS_NOVELTY_RBF ? multiples_rbf[0]
                                                     : multiples_laplacian[0];
    return fmin(first / gamma, 1e300);
}

int svi_gamma_multiples(const svs_novelty_options *o, double *multiples) {
    multiples[0] = 1;
    if (o->gamma_rule != SVS_GAMMA_AUTO || o->kernel == SVS_NOVELTY_POLYNOMIAL)
        return 1;
    if (o->kernel == SVS_NOVELTY_RBF)
        memcpy(multiples, multiples_rbf, sizeof multiples_rbf);
    else
        memcpy(multiples, multiples_laplacian, sizeof multiples_laplacian);
    return o->kernel == SVS_NOVELTY_RBF ? 4 : 2;
}
