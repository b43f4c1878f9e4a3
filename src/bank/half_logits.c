#include "bank/half_logits.h"

#include <math.h>

void svi_half_logits(const double *f, int known, int rows, double bound, double *scores) {
    double largest = f[0], sum = 0;
    for (int r = 1; r < known; r++)
        largest = fmax(largest, f[r]);
    for (int r = 0; r < known; r++)
        sum += scores[r] = exp(f[r] - largest);
    for (int r = 0; r < rows; r++) {
        /* What is left of the sum may be 0, or below it by rounding. */
        const double e = r < known ? scores[r] : 0, others = sum - e;
        scores[r] = e <= 0 ? -bound : others <= 0 ? bound : fmin(fmax(0.5 * log(e / others), -bound), bound);
    }
}
