#include "base/statistics.h"

#include <math.h>

double svi_deviation(const double *v, int64_t n) {
    struct svi_moments m = {0};
    for (int64_t i = 0; i < n; i++)
        svi_moments_add(&m, v[i]);
    return sqrt(m.squares / (double)n);
}

double svi_select_rank(double *v, int64_t n, int64_t rank) {
    int64_t low = 0, high = n - 1;
    while (low < high) {
        const double a = v[low], b = v[low + (high - low) / 2];
        const double pivot = fmax(fmin(a, b), fmin(fmax(a, b), v[high]));
        int64_t i = low, j = high;
        while (i <= j) {
            while (v[i] < pivot)
                i++;
            while (v[j] > pivot)
                j--;
            if (i <= j) {
                const double t = v[i];
                v[i++] = v[j];
                v[j--] = t;
            }
        }
        /* v[low .. j] <= pivot <= v[i .. high]; between j and i all values equal the pivot. */
        if (rank <= j)
            high = j;
        else if (rank >= i)
            low = i;
        else
            break;
    }
    return v[rank];
}

double svi_quantile(double *v, int64_t n, double share) {
    return svi_select_rank(v, n, (int64_t)(share * (double)(n - 1) + 0.5));
}

void svi_normal_range(double *values, int n, double *low, double *high) {
    *low = n < 1 ? NAN : svi_quantile(values, n, 0.05);
    *high = n < 1 ? NAN : svi_quantile(values, n, 0.95);
}
