#include "novelty/tail.h"

#include <math.h>

/* S(b), summed from the first value on. A product of `together` factors must not overflow: no factor exceeds
 * 1 + k xi / (1 - xi), because no excess exceeds k times the mean. */
static double tail_total(const struct svi_tail_seen *s, int together, double slope) {
    double sum = 0;
    if (together == 0) {
        for (int i = 0; i < s->count; i++)
            sum += log1p(slope * (s->value[i] - s->threshold));
        return sum;
    }
    for (int i = 0; i < s->count;) {
        double product = 1;
        for (const int end = i + together < s->count ? i + together : s->count; i < end; i++)
            product *= 1 + slope * (s->value[i] - s->threshold);
        sum += log(product);
    }
    return sum;
}

void svi_tail_fit(const struct svi_tail_form *f, const struct svi_tail_law *law,
                  const struct svi_tail_seen *seen) {
    const int k = seen->count;
    double *weight = law->weight, most = -INFINITY, all = 0;
    /* Logarithms of (2), relative to the largest: with many excesses (2) itself underflows. */
    for (int i = 0; i < f->parts; i++) {
        const double total = law->total[i] = tail_total(seen, f->together, law->slope[i]);
        weight[i] = k * log(law->slope[i] * seen->scale / total) - total;
        if (f->light)
            weight[i] -= log(svi_tail_shape(f, i));
        most = fmax(most, weight[i]);
    }
    for (int i = 0; i < f->parts; i++)
        all += weight[i] = exp(weight[i] - most);
    for (int i = 0; i < f->parts; i++)
        weight[i] /= all;
}

double svi_tail_beyond(const struct svi_tail_form *f, const struct svi_tail_law *law, int count, double y) {
    /* (1 + log(1 + b y) / S)^-k = exp(-k log1p(log1p(b y) / S)): exact for small y and stable for large k. */
    double p = 0;
    for (int i = 0; i < f->parts; i++)
        p += law->weight[i] * exp(-count * log1p(log1p(law->slope[i] * y) / law->total[i]));
    return p;
}
