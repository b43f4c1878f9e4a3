/* distance_template.h: distances of rows, and the functions of them that kernels are made of. Part of
 * kernels_template.h. */
/* sum_j |x_ij - v_j| or sum_j (x_ij - v_j)^2: of differences, so that near rows lose nothing. Over the
 * padding both are zero. */
INLINE void distances(const double *x, size_t stride, int64_t count, int padded, const double *v, double *f,
                      bool absolute) {
    for (int64_t i = 0; i < count; i += ROWS, x += ROWS * stride) {
        const double *a[ROWS];
        vec s[ROWS] = {{0}};
        row_pointers(a, x, stride, count - i);
        for (int j = 0; j < padded; j += VW)
            for (int k = 0; k < ROWS; k++) {
                const vec gap = load(a[k] + j) - load(v + j);
                s[k] += absolute ? (vec)((mask)gap & 0x7fffffffffffffff) : gap * gap;
            }
        for (int k = 0; k < ROWS && i + k < count; k++)
            f[i + k] = sum(s[k]);
    }
}

static void rows_l1(const double *x, size_t stride, int64_t count, int padded, const double *v, double *f) {
    distances(x, stride, count, padded, v, f, true);
}

static void rows_l2(const double *x, size_t stride, int64_t count, int padded, const double *v, double *f) {
    distances(x, stride, count, padded, v, f, false);
}

/* Over the coordinates that both rows have, which are NaN where they are missing; times d / the number of
 * these, as if the others were as far apart as these on average. Where no coordinate is missing it gives what
 * `distances` gives, bit for bit. */
INLINE void shared_distances(const double *x, size_t stride, int64_t count, int padded, const double *v,
                             int d, double nothing, double *f, bool absolute) {
    for (int64_t i = 0; i < count; i += ROWS, x += ROWS * stride) {
        const double *a[ROWS];
        vec s[ROWS] = {{0}};
        mask lacking[ROWS] = {{0}}; /* minus their number */
        row_pointers(a, x, stride, count - i);
        for (int j = 0; j < padded; j += VW)
            for (int k = 0; k < ROWS; k++) {
                const vec raw = load(a[k] + j) - load(v + j);
                const mask both = raw == raw;
                const vec gap = (vec)((mask)raw & both);
                s[k] += absolute ? (vec)((mask)gap & 0x7fffffffffffffff) : gap * gap;
                lacking[k] += ~both;
            }
        for (int k = 0; k < ROWS && i + k < count; k++) {
            const double shared = d + sum(__builtin_convertvector(lacking[k], vec));
            f[i + k] = shared == d ? sum(s[k]) : shared > 0 ? sum(s[k]) * (d / shared) : nothing;
        }
    }
}

static void rows_l1_shared(const double *x, size_t stride, int64_t count, int padded, const double *v, int d,
                           double nothing, double *f) {
    shared_distances(x, stride, count, padded, v, d, nothing, f, true);
}

static void rows_l2_shared(const double *x, size_t stride, int64_t count, int padded, const double *v, int d,
                           double nothing, double *f) {
    shared_distances(x, stride, count, padded, v, d, nothing, f, false);
}

static void signs_add(const double *u, const double *x, double scale, int padded, double *to) {
    const mask size = (mask)splat(scale);
    for (int j = 0; j < padded; j += VW) {
        const vec a = load(u + j), b = load(x + j);
        store(to + j, load(to + j) + ((vec)(size & (a > b)) - (vec)(size & (a < b))));
    }
}

/* exp(x) for x <= 0: x = k ln 2 + r with |r| <= ln 2 / 2, a Taylor polynomial in r, and k added to the
 * exponent. Adding 1.5 * 2^52 rounds to the integer k and leaves it in the low bits. */
INLINE vec exp_minus(vec x) {
    static const double c[] = {1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880,
                               1.0 / 40320,      1.0 / 5040,      1.0 / 720,      1.0 / 120,     1.0 / 24,
                               1.0 / 6,          1.0 / 2,         1.0 / 1,        1.0 / 1};
    const vec rounder = splat(6755399441055744.0), least = splat(-708);
    const mask inside = x >= least;
    x = (vec)(((mask)x & inside) | ((mask)least & ~inside));
    vec shifted = x * splat(1.4426950408889634) + rounder, k = shifted - rounder,
        r = (x - k * splat(0x1.62e42feep-1)) - k * splat(0x1.a39ef35793c76p-33), p = splat(c[0]);
    for (size_t i = 1; i < sizeof c / sizeof *c; i++)
        p = p * r + splat(c[i]);
    return (vec)(((mask)p + ((mask)shifted << 52)) & inside);
}

INLINE vec rbf_of(vec dot, vec norm2, double own, double gamma) {
    vec distance = splat(own) + norm2 - splat(2) * dot;
    distance = (vec)((mask)distance & (distance > splat(0)));
    return exp_minus(splat(-gamma) * distance);
}

static void rbf(const double *dot, const double *norm2, double own, double gamma, int64_t n, double *to) {
    int64_t i = 0;
    for (; i + VW <= n; i += VW)
        *(vec_u *)(to + i) = rbf_of(*(const vec_u *)(dot + i), *(const vec_u *)(norm2 + i), own, gamma);
    vec last_dot = {0}, last_norm2 = {0};
    if (i == n)
        return;
    memcpy(&last_dot, dot + i, (size_t)(n - i) * sizeof *dot);
    memcpy(&last_norm2, norm2 + i, (size_t)(n - i) * sizeof *norm2);
    const vec last = rbf_of(last_dot, last_norm2, own, gamma);
    memcpy(to + i, &last, (size_t)(n - i) * sizeof *to);
}

static void decay(const double *t, double gamma, int64_t n, double *to) {
    vec last = {0};
    int64_t i = 0;
    for (; i + VW <= n; i += VW)
        *(vec_u *)(to + i) = exp_minus(splat(-gamma) * *(const vec_u *)(t + i));
    memcpy(&last, t + i, (size_t)(n - i) * sizeof *t);
    last = exp_minus(splat(-gamma) * last);
    memcpy(to + i, &last, (size_t)(n - i) * sizeof *to);
}

/* log(x) for 1 <= x < 2^1000: x = 2^k m with m near 1, log m = 2 atanh((m - 1) / (m + 1)) by its series. */
INLINE vec log_above_1(vec x) {
    static const double c[] = {1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11,
                               1.0 / 9,  1.0 / 7,  1.0 / 5,  1.0 / 3,  1};
    const mask bits = (mask)x;
    mask k = ((bits - (mask)splat(0x1.6a09e667f3bcdp-1)) >> 52); /* so that m lies in [sqrt 1/2, sqrt 2) */
    const vec m = (vec)(bits - (k << 52)), s = (m - splat(1)) / (m + splat(1)), square = s * s;
    vec p = splat(c[0]);
    for (size_t i = 1; i < sizeof c / sizeof *c; i++)
        p = p * square + splat(c[i]);
    return __builtin_convertvector(k, vec) * splat(0x1.62e42fefa39efp-1) + splat(2) * s * p;
}

/* |v| + sqrt(v^2 + 1) by plain code, which the compiler turns into vectors; its logarithm by the above. */
static void squash(const double *x, const double *center, const double *inverse, int d, double *to) {
    double grown[64], sign[64], far[64];
    for (int first = 0; first < d; first += 64) {
        const int count = d - first < 64 ? d - first : 64;
        for (int j = 0; j < count; j++) {
            const double u = (x[first + j] - center[first + j]) * inverse[first + j];
            const double size = fabs(u) < 1e150 ? fabs(u) : 1e150;
            sign[j] = u < 0 ? -1 : 1;
            far[j] = size > SVI_SQUASH_FAR ? size - SVI_SQUASH_FAR : 0;
            const double bent = size / SVI_SQUASH_BEND;
            grown[j] = bent + sqrt(bent * bent + 1);
        }
        for (int j = count; j < 64 && j % VW; j++)
            grown[j] = 1;
        for (int j = 0; j < count; j += VW)
            *(vec_u *)(grown + j) = log_above_1(*(const vec_u *)(grown + j));
        for (int j = 0; j < count; j++)
            to[first + j] = sign[j] * (SVI_SQUASH_BEND * grown[j] + far[j]);
    }
}
