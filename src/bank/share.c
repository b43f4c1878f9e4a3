#include "bank/share.h"

#include <math.h>

void svi_share_init(struct svi_share *s, int count, double eta, double alpha) {
    *s = (struct svi_share){.count = count, .eta = eta, .alpha = alpha};
    for (int i = 0; i < count; i++)
        s->w[i] = 1.0 / count;
}

void svi_share_learn(struct svi_share *s, const double *loss) {
    /* Multiplicative update; normalised below, so that weights neither underflow nor drift. */
    double sum = 0;
    int among = 0;
    for (int i = 0; i < s->count; i++) {
        s->w[i] *= loss[i] < 0 ? 0 : exp(-s->eta * loss[i]);
        sum += s->w[i];
        among += loss[i] >= 0;
    }
    for (int i = 0; i < s->count && sum > 0;
         i++) /* an expert that takes part keeps at least alpha / n, so it can recover */
        s->w[i] = loss[i] < 0 ? 0 : (1 - s->alpha) * s->w[i] / sum + s->alpha / among;
}

void svi_share_archive(struct svi_archive *a, struct svi_share *s) {
    svi_archive_finite(a, "shares", s->w, s->count);
    /* A sum of 0 could never be normalised again. */
    double sum = 0;
    for (int i = 0; i < s->count; i++) {
        svi_archive_check(a, s->w[i] >= 0, "a share is below 0");
        sum += s->w[i];
    }
    svi_archive_check(a, sum > 0, "shares add up to 0");
}
