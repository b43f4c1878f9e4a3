#include "novelty/similarity.h"

#include <math.h>
#include <string.h>

#define NOTHING 100.0 /* exp(-this) adds no digit; where exp underflows it is ten times slower, too */

void svi_similarity_gap(const struct svi_similarity *s, const struct svi_points *p, int64_t first,
                        int64_t count, const double *v, double *gap) {
    const double *x = p->x + first * p->stride;
    const size_t stride = (size_t)p->stride;
    if (s->kernel == SVS_NOVELTY_RBF)
        s->pass->rows_l2(x, stride, count, p->stride, v, gap);
    else if (s->kernel == SVS_NOVELTY_LAPLACIAN)
        s->pass->rows_l1(x, stride, count, p->stride, v, gap);
    else
        s->pass->rows_dot(x, stride, count, p->stride, v, gap);
}

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

int svi_gamma_multiples(const svs_novelty_options *o, double *multiples) {
    static const double rbf[] = {0.25, 1, 4, 16}, laplacian[] = {4, 16};
    multiples[0] = 1;
    if (o->gamma_rule != SVS_GAMMA_AUTO || o->kernel == SVS_NOVELTY_POLYNOMIAL)
        return 1;
    if (o->kernel == SVS_NOVELTY_RBF)
        memcpy(multiples, rbf, sizeof rbf);
    else
        memcpy(multiples, laplacian, sizeof laplacian);
    return o->kernel == SVS_NOVELTY_RBF ? 4 : 2;
}
