/* distance_template.h: distances of rows and the functions of them that kernels consist of. Part of
 * kernels_template.h.
 *
 * In order of reading:
 *
 *  - L1 and squared L2 distances of many rows from one, with and without missing coordinates;
 *  - exp(x) for x <= 0 and the kernels on it (rbf, decay, sums of powers of one exponential);
 *  - asinh, which bends outliers of a standardised row.
 *
 * Exponentials and logarithms are polynomials. They call no function of the C library, so a vector
 * costs little more than one number. A partial vector at the end is copied through a local one, so
 * no load or store reaches past the arrays. */

/* The sums of four vectors, each in the order of `sum`, by a transposing tree. */
typedef double four_u __attribute__((vector_size(32), aligned(8)));
INLINE void four_sums(const vec s[ROWS], double f[ROWS]) {
#if VW == 8
    const vec a = SHUF(s[0], s[1], 0, 1, 2, 3, 8, 9, 10, 11) + SHUF(s[0], s[1], 4, 5, 6, 7, 12, 13, 14, 15);
    const vec b = SHUF(s[2], s[3], 0, 1, 2, 3, 8, 9, 10, 11) + SHUF(s[2], s[3], 4, 5, 6, 7, 12, 13, 14, 15);
    const vec all = SHUF(a, b, 0, 1, 4, 5, 8, 9, 12, 13) + SHUF(a, b, 2, 3, 6, 7, 10, 11, 14, 15);
    *(four_u *)f = SHUF(all, all, 0, 2, 4, 6) + SHUF(all, all, 1, 3, 5, 7);
#elif VW == 4
    const vec a = SHUF(s[0], s[2], 0, 1, 4, 5) + SHUF(s[0], s[2], 2, 3, 6, 7);
    const vec b = SHUF(s[1], s[3], 0, 1, 4, 5) + SHUF(s[1], s[3], 2, 3, 6, 7);
    *(four_u *)f = pair(a, b);
#else
    for (int k = 0; k < ROWS; k++)
        f[k] = sum(s[k]);
#endif
}

/* sum_j |x_ij - v_j| or sum_j (x_ij - v_j)^2 of ROWS rows. Differences are formed first: |x|^2 - 2 x'v +
 * |v|^2 would cancel for near rows. The padding is zero in both. */
INLINE void distances_of(const double *const a[ROWS], int padded, const double *v, double *f, bool absolute) {
    vec s[ROWS] = {{0}};
    for (int j = 0; j < padded; j += VW) {
        const vec at = load(v + j);
        UNROLL for (int k = 0; k < ROWS; k++) {
            const vec gap = at - load(a[k] + j);
            s[k] += absolute ? (vec)((mask)gap & 0x7fffffffffffffff) : gap * gap;
        }
    }
    four_sums(s, f);
}

INLINE void distances(const double *x, size_t stride, int64_t count, int padded, const double *v, double *f,
                      bool absolute) {
    const double *a[ROWS];
    double last[ROWS];
    int64_t i = 0;
    for (; i + ROWS <= count; i += ROWS, x += ROWS * stride) {
        for (int k = 0; k < ROWS; k++)
            a[k] = x + (size_t)k * stride;
        distances_of(a, padded, v, f + i, absolute);
    }
    if (i == count)
        return;
    row_pointers(a, x, stride, count - i);
    distances_of(a, padded, v, last, absolute);
    for (int k = 0; i + k < count; k++)
        f[i + k] = last[k];
}

/* The same bits for all widths. Rows of 16 values are the most frequent; constants keep v in registers. */
INLINE void distances_by_width(const double *x, size_t stride, int64_t count, int padded, const double *v,
                               double *f, bool absolute) {
    if (padded == 16 && stride == 16)
        distances(x, 16, count, 16, v, f, absolute);
    else
        distances(x, stride, count, padded, v, f, absolute);
}

static void rows_l1(const double *x, size_t stride, int64_t count, int padded, const double *v, double *f) {
    distances_by_width(x, stride, count, padded, v, f, true);
}

static void rows_l2(const double *x, size_t stride, int64_t count, int padded, const double *v, double *f) {
    distances_by_width(x, stride, count, padded, v, f, false);
}

/* Distances over the coordinates that both rows have (NaN: missing), times d / their number, as if the others
 * were as far apart on average. Without a missing coordinate the result is that of `distances`, bit for bit.
 */
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
 * exponent. Adding 1.5 * 2^52 rounds to the integer k and leaves it in the low bits. ln 2 is split in two, so
 * that k ln 2 loses no digits of r. Below -708 the exponent would wrap: the result is 0. */
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

/* Rounding can make the squared distance of equal rows negative; the kernel must not exceed 1. */
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

/* Adds a vector's terms to the sums: z_g exp(-gamma t)^(4^g). Squaring twice is the next power of four. */
INLINE void decay_dots_add(vec *sums, vec t, double gamma, const vec *z, int count) {
    vec k = exp_minus(splat(-gamma) * t);
    for (int g = 0;; g++) {
        sums[g] += z[g] * k;
        if (g + 1 == count)
            break;
        k *= k;
        k *= k;
    }
}

INLINE void decay_dots_of(const double *t, double gamma, int64_t n, const double *const *z, int count,
                          double *to) {
    vec sums[SVI_DECAY_MAX] = {{0}}, weight[SVI_DECAY_MAX] = {{0}}, last = {0};
    int64_t i = 0;
    for (; i + VW <= n; i += VW) {
        for (int g = 0; g < count; g++)
            weight[g] = *(const vec_u *)(z[g] + i);
        decay_dots_add(sums, *(const vec_u *)(t + i), gamma, weight, count);
    }
    memcpy(&last, t + i, (size_t)(n - i) * sizeof *t);
    for (int g = 0; g < count; g++) {
        weight[g] = (vec){0};
        memcpy(&weight[g], z[g] + i, (size_t)(n - i) * sizeof *t);
    }
    decay_dots_add(sums, last, gamma, weight, count);
    for (int g = 0; g < count; g++)
        to[g] = sum(sums[g]);
}

/* Two sums are the common case: a constant count unrolls the loop over them. */
static void decay_dots(const double *t, double gamma, int64_t n, const double *const *z, int count,
                       double *to) {
    if (count == 2)
        decay_dots_of(t, gamma, n, z, 2, to);
    else
        decay_dots_of(t, gamma, n, z, count, to);
}

/* log(x) for 1 <= x < 2^1000: x = 2^k m with m near 1, log m = 2 atanh((m - 1) / (m + 1)) by its series. */
INLINE vec log_above_1(vec x) {
    static const double c[] = {1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11,
                               1.0 / 9,  1.0 / 7,  1.0 / 5,  1.0 / 3,  1};
    const mask bits = (mask)x;
    mask k = ((bits - (mask)splat(0x1.6a09e667f3bcdp-1)) >> 52); /* so that m lies in [sqrt 1/2, sqrt 2) */
    const vec m = (vec)(bits - (k << 52)), s = (m - splat(1)) / (m + splat(1)), square = s * s;
    const vec exponent = (vec)(k + (mask)splat(0x1.8p52)) - splat(0x1.8p52);
    vec p = splat(c[0]);
    for (size_t i = 1; i < sizeof c / sizeof *c; i++)
        p = p * square + splat(c[i]);
    return exponent * splat(0x1.62e42fefa39efp-1) + splat(2) * s * p;
}

INLINE vec root(vec v) {
    vec r;
    for (int i = 0; i < VW; i++)
        r[i] = sqrt(v[i]);
    return r;
}

/* sign(u) (B asinh(|u| / B) + what exceeds the limit), asinh(v) = log(v + sqrt(v^2 + 1)). On sizes alone: for
 * negative v the sum would cancel. 1e150 bounds v^2. NaN counts as 1e150. */
INLINE vec squash_of(vec x, vec center, vec inverse) {
    const vec u = (x - center) * inverse, most = splat(1e150), far = splat(SVI_SQUASH_LIMIT);
    const mask sign = (mask)u & (mask)splat(-0.0), inside = (vec)((mask)u ^ sign) < most;
    const vec size = (vec)((((mask)u ^ sign) & inside) | ((mask)most & ~inside));
    const vec bent = size / splat(SVI_SQUASH_BEND);
    const vec beyond = (vec)((mask)(size - far) & (size > far));
    const vec y = splat(SVI_SQUASH_BEND) * log_above_1(bent + root(bent * bent + splat(1))) + beyond;
    return (vec)((mask)y | sign);
}

static void squash(const double *x, const double *center, const double *inverse, int d, double *to) {
    vec v[3] = {{0}};
    int j = 0;
    for (; j + VW <= d; j += VW)
        *(vec_u *)(to + j) =
            squash_of(*(const vec_u *)(x + j), *(const vec_u *)(center + j), *(const vec_u *)(inverse + j));
    if (j == d)
        return;
    memcpy(&v[0], x + j, (size_t)(d - j) * sizeof *x);
    memcpy(&v[1], center + j, (size_t)(d - j) * sizeof *x);
    memcpy(&v[2], inverse + j, (size_t)(d - j) * sizeof *x);
    v[0] = squash_of(v[0], v[1], v[2]);
    memcpy(to + j, &v[0], (size_t)(d - j) * sizeof *x);
}
