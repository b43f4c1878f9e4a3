/* floats_template.h: the single precision kernels of kernels_floats.h, written once for vectors of FW floats.
 * Part of the kernels' sources, which define VW and FLOATS, the table's name.
 *
 * In order of reading: vectors, the inverse square root; a row standardised and added to running moments;
 * products with weight rows and their updates (AdaGrad); products of features; cosine features; the logistic
 * function. Sums have two chains, over vectors of even and of odd number, for every length and however many
 * rows are computed together: a sum depends on its own terms only. */
#define FW (2 * VW)

typedef float vecf __attribute__((vector_size(8 * VW)));
typedef int maskf __attribute__((vector_size(8 * VW))); /* result of a comparison: all ones or zero */
typedef float vecf_u __attribute__((vector_size(8 * VW), aligned(4)));

INLINE vecf load_floats(const float *p) {
    return *(const vecf *)p;
}

INLINE void store_floats(float *p, vecf v) {
    *(vecf *)p = v;
}

INLINE vecf splat_float(float s) {
    return s - (vecf){0};
}

INLINE vecf choose_floats(maskf which, vecf yes, vecf no) {
    return (vecf)(((maskf)yes & which) | ((maskf)no & ~which));
}

INLINE vecf clip_floats(vecf v, float most) {
    const vecf high = splat_float(most), low = splat_float(-most);
    v = choose_floats(v > high, high, v);
    return choose_floats(v < low, low, v);
}

INLINE float sum_floats(vecf v) {
#if FW == 16
    v += SHUF(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
    v += SHUF(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
#elif FW == 8
    v += SHUF(v, v, 4, 5, 6, 7, 0, 1, 2, 3);
#endif
    return (v[0] + v[1]) + (v[2] + v[3]);
}

/* 1/sqrt(v) for v in [1e-30, 1e30] to 5e-6: a first guess from the exponent and two Newton steps. The
 * processor's own approximation would be faster, but differs from one model to the next. */
INLINE vecf inverse_root(vecf v) {
    const vecf half = splat_float(0.5F) * v, bend = splat_float(1.5F);
    vecf y = (vecf)(0x5f3759df - ((maskf)v >> 1));
    y = y * (bend - half * y * y);
    return y * (bend - half * y * y);
}

static void row_floats(const double *x, const double *mean, const double *inverse, int d, float *z) {
    for (int j = 0; j < d; j++) {
        double v = (x[j] - mean[j]) * inverse[j];
        v = v > (double)SVI_FLOATS_CLIP ? (double)SVI_FLOATS_CLIP : v;
        v = v < -(double)SVI_FLOATS_CLIP ? -(double)SVI_FLOATS_CLIP : v;
        z[j] = (float)v;
    }
}

static void moments_of_row(const double *x, const struct svi_float_moments *m, int d) {
    double *restrict count = m->count, *restrict mean = m->mean, *restrict squares = m->squares,
                     *restrict inverse = m->inverse;
    for (int j = 0; j < d; j++) {
        const double n = count[j] + 1, gap = x[j] - mean[j], now = mean[j] + gap / n;
        const double sum = squares[j] + gap * (x[j] - now);
        const bool varies = sum > 1e-280; /* below, n / sum could overflow: the feature counts as constant */
        const double root = sqrt(n / (varies ? sum : 1.0));
        count[j] = n;
        mean[j] = now;
        squares[j] = sum;
        inverse[j] = varies ? root : 0.0;
    }
}

INLINE void dots_of_rows(const float *f, const float *w, size_t stride, int ROWS_AT, int n, float *s) {
    vecf even[4] = {{0}}, odd[4] = {{0}};
    int i = 0;
    for (; i + 2 * FW <= n; i += 2 * FW) {
        const vecf a = load_floats(f + i), b = load_floats(f + i + FW);
        UNROLL for (int r = 0; r < ROWS_AT; r++) {
            even[r] += a * load_floats(w + (size_t)r * stride + i);
            odd[r] += b * load_floats(w + (size_t)r * stride + i + FW);
        }
    }
    if (i < n)
        UNROLL for (int r = 0; r < ROWS_AT; r++) even[r] +=
            load_floats(f + i) * load_floats(w + (size_t)r * stride + i);
    UNROLL for (int r = 0; r < ROWS_AT; r++) s[r] = sum_floats(even[r] + odd[r]);
}

static void dots_floats(const float *f, const float *w, size_t stride, int rows, int n, float *s) {
    int r = 0;
    for (; r + 4 <= rows; r += 4)
        dots_of_rows(f, w + (size_t)r * stride, stride, 4, n, s + r);
    for (; r < rows; r++)
        dots_of_rows(f, w + (size_t)r * stride, stride, 1, n, s + r);
}

static void add_floats(float *w, const float *f, float c, int n) {
    const vecf times = splat_float(c);
    for (int i = 0; i < n; i += FW)
        store_floats(w + i, load_floats(w + i) + times * load_floats(f + i));
}

static void adagrad_floats(float *w, float *sum, const float *f, float c, float eta, float keep, int n) {
    const vecf times = splat_float(c), step = splat_float(eta), least = splat_float(1e-8F),
               fade = splat_float(keep);
    for (int i = 0; i < n; i += FW) {
        const vecf g = times * load_floats(f + i), total = fade * load_floats(sum + i) + g * g;
        store_floats(sum + i, total);
        store_floats(w + i, load_floats(w + i) - step * g * inverse_root(total + least));
    }
}

/* Rows are written as whole vectors: what lies beyond the end of one is overwritten by the next, and beyond
 * the last by zeros. */
static void products_floats(const float *z, int d, int n, float *p, float *scratch) {
    float *to = p;
    scratch[0] = 1;
    for (int j = 0; j < d; j++)
        scratch[1 + j] = z[j];
    for (int j = d + 1; j < d + 1 + SVI_FLOATS_PAD; j++)
        scratch[j] = 0;
    for (int j = 0; j < d; j++, to += j + 1) {
        const vecf own = splat_float(z[j]);
        for (int i = 0; i < j + 2; i += FW)
            *(vecf_u *)(to + i) = own * load_floats(scratch + i);
    }
    for (; to < p + n; to++)
        *to = 0;
}

static void normalise_floats(const float *p, const float *mean, const float *variance, float clip, int n,
                             float *f) {
    const vecf least = splat_float(1e-10F);
    for (int i = 0; i < n; i += FW) {
        const vecf v = load_floats(variance + i);
        const maskf varies = v > least;
        const vecf u =
            (load_floats(p + i) - load_floats(mean + i)) * inverse_root(choose_floats(varies, v, least));
        store_floats(f + i, choose_floats(varies, clip_floats(u, clip), (vecf){0}));
    }
}

static void average_floats(const float *p, float share, int n, float *mean, float *variance) {
    const vecf part = splat_float(share);
    for (int i = 0; i < n; i += FW) {
        const vecf x = load_floats(p + i), old = load_floats(mean + i), v = load_floats(variance + i);
        const vecf now = old + part * (x - old);
        store_floats(mean + i, now);
        store_floats(variance + i, v + part * ((x - old) * (x - now) - v));
    }
}

/* cos(2 pi t) = sin(2 pi (1/4 - |t - nearest whole number|)); the sine is an odd polynomial, to 4e-9. Weights
 * are in turns, so no division by 2 pi is needed, and rounding to a whole number is exact. */
INLINE vecf cosine_of_turn(vecf t) {
    const vecf whole = splat_float(12582912.0F), quarter = splat_float(0.25F);
    const vecf r = t - ((t + whole) - whole);
    vecf q = quarter - (vecf)((maskf)r & 0x7fffffff);
    q = choose_floats(q < -quarter, -quarter, q); /* beyond 2^22 turns a float has no fraction left */
    const vecf u = q * q;
    vecf s = splat_float(39.536706F);
    s = s * u + splat_float(-76.549782F);
    s = s * u + splat_float(81.601004F);
    s = s * u + splat_float(-41.341655F);
    return q * (s * u + splat_float(6.2831852F));
}

#define COSINES_AT (SVI_COSINE_BLOCK / FW < 8 ? SVI_COSINE_BLOCK / FW : 8) /* vectors in registers */
static void cosines_floats(const float *w, const float *shift, const float *z, int d, int n, float *f) {
    for (int i = 0; i < n; i += COSINES_AT * FW) {
        const float *at =
            w + (size_t)(i / SVI_COSINE_BLOCK) * SVI_COSINE_BLOCK * (size_t)d + i % SVI_COSINE_BLOCK;
        vecf t[COSINES_AT];
        UNROLL for (int v = 0; v < COSINES_AT; v++) t[v] = load_floats(shift + i + v * FW);
        for (int j = 0; j < d; j++, at += SVI_COSINE_BLOCK) {
            const vecf own = splat_float(z[j]);
            UNROLL for (int v = 0; v < COSINES_AT; v++) t[v] += own * load_floats(at + v * FW);
        }
        UNROLL for (int v = 0; v < COSINES_AT; v++) store_floats(f + i + v * FW, cosine_of_turn(t[v]));
    }
}

/* exp(-s) = 2^k 2^r; ln 2 is split in two as in exp_minus. -s is clipped at +-85, so that 2^k stays normal.
 */
static void logistic_floats(const float *s, int n, float *p) {
    const vecf whole = splat_float(12582912.0F), one = splat_float(1);
    for (int i = 0; i < n; i += FW) {
        const vecf x = clip_floats(-load_floats(s + i), 85);
        const vecf k = (x * splat_float(1.44269504F) + whole) - whole;
        const vecf r = ((x - k * splat_float(0.693359375F)) - k * splat_float(-2.12194440e-4F)) *
                       splat_float(1.44269504F);
        vecf e = splat_float(1.32764719e-3F); /* 2^r, |r| <= 1/2, to 1e-7 */
        e = e * r + splat_float(9.67554153e-3F);
        e = e * r + splat_float(5.55071327e-2F);
        e = e * r + splat_float(2.40221197e-1F);
        e = e * r + splat_float(6.93146967e-1F);
        e = e * r + one;
        e = (vecf)((maskf)e + (__builtin_convertvector(k, maskf) << 23));
        store_floats(p + i, one / (one + e));
    }
}

const struct svi_floats FLOATS = {ISA_NAME,         ISA,
                                  row_floats,       moments_of_row,
                                  dots_floats,      add_floats,
                                  adagrad_floats,   products_floats,
                                  normalise_floats, average_floats,
                                  cosines_floats,   logistic_floats};
