/* Random Fourier features: z(x) z(y)' approximates a shift-invariant kernel k(x - y), with frequencies drawn
 * from its Fourier transform (Bochner): normal for the RBF kernel, Cauchy for the Laplacian one. Each
 * frequency gives a cosine and a sine, which needs no random phase and has k(0) = 1 exactly. Frequencies are
 * stored in turns instead of radians, so that reducing the angle is one rounding. */
#include "svmstream/fourier.h"

#include <cblas.h>
#include <math.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/random.h"

#define PI        3.14159265358979323846
#define D_MAX     1000000
#define COUNT_MAX 10000000

struct svs_fourier {
    int d, draws;
    double *frequency; /* draws x d, in turns a unit of x; row-major; owned */
};

/* Uniform in (0, 1), never an end of it: the logarithm and the tangent need that. */
static double fourier_uniform(struct svi_random *r) {
    return ((double)(svi_random_next(r) >> 11) + 0.5) * 0x1p-53;
}

/* A standard Cauchy value by inversion, or a standard normal one (Box and Muller). */
static double fourier_draw(svs_fourier_kernel kernel, struct svi_random *r) {
    if (kernel == SVS_FOURIER_LAPLACIAN)
        return tan(PI * (fourier_uniform(r) - 0.5));
    const double radius = sqrt(-2 * log(fourier_uniform(r)));
    return radius * cos(2 * PI * fourier_uniform(r));
}

svs_code svs_fourier_new(svs_fourier_kernel kernel, double gamma, int d, int count, uint64_t seed,
                         svs_fourier **out, svs_error *err) {
    struct svi_random random = {seed};
    *out = NULL;
    if (!(gamma > 0 && isfinite(gamma)))
        return svi_fail(err, SVS_INVALID, "gamma must be a positive number");
    if (d < 1 || d > D_MAX)
        return svi_fail(err, SVS_INVALID, "rows have 1 to %d columns, not %d", D_MAX, d);
    if (count < 2 || count > COUNT_MAX || count % 2 != 0)
        return svi_fail(err, SVS_INVALID, "random Fourier features: an even number from 2 to %d, not %d",
                        COUNT_MAX, count);
    svs_fourier *f = svi_alloc(sizeof *f);
    double *frequency = svi_alloc_array((size_t)count / 2, (size_t)d * sizeof *frequency);
    if (!f || !frequency) {
        svi_free(f);
        svi_free(frequency);
        return svi_fail_memory(err, "random Fourier features");
    }
    *f = (svs_fourier){.d = d, .draws = count / 2, .frequency = frequency};
    /* RBF: exp(-gamma |x - y|^2) has frequencies of variance 2 gamma; Laplacian: exp(-gamma |x - y|_1) has
     * Cauchy ones of scale gamma. Divided by 2 pi: turns. */
    const double stretch = (kernel == SVS_FOURIER_RBF ? sqrt(2 * gamma) : gamma) / (2 * PI);
    /* Row by row, so that the seed and the kernel determine every frequency. */
    for (size_t i = 0; i < (size_t)f->draws * (size_t)d; i++)
        frequency[i] = stretch * fourier_draw(kernel, &random);
    *out = f;
    return SVS_OK;
}

void svs_fourier_free(svs_fourier **f) {
    if (*f)
        svi_free((*f)->frequency);
    svi_free(*f);
    *f = NULL;
}

/* cos(2 pi t) = 1 - 2 sin(pi r)^2, r the distance to the nearest whole number: |r| <= 1/2, so the series of
 * the sine to x^15 is accurate to 1e-11. */
static double cosine_of_turns(double t) {
    const double x = PI * (t - rint(t)), y = x * x;
    double s = -1.0 / 1307674368000;
    s = 1.0 / 6227020800 + y * s;
    s = -1.0 / 39916800 + y * s;
    s = 1.0 / 362880 + y * s;
    s = -1.0 / 5040 + y * s;
    s = 1.0 / 120 + y * s;
    s = -1.0 / 6 + y * s;
    s = x + x * y * s;
    return 1 - 2 * s * s;
}

void svs_fourier_apply(const svs_fourier *f, const double *x, double *z) {
    /* |z|^2 = 1: `draws` pairs of a cosine and a sine, each pair of length 1 / sqrt(draws). */
    const double height = sqrt(1.0 / f->draws);
    cblas_dgemv(CblasRowMajor, CblasNoTrans, f->draws, f->d, 1, f->frequency, f->d, x, 1, 0, z, 1);
    for (int k = 0; k < f->draws; k++) {
        /* The sine is the cosine a quarter turn later. z[k] holds the angle until here. */
        const double turns = z[k] - rint(z[k]);
        z[k] = height * cosine_of_turns(turns);
        z[f->draws + k] = height * cosine_of_turns(turns - 0.25);
    }
}
