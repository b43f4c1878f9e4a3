/* triangle_template.h: the algebra of the one-class model's active set: equations with a lower triangle and
 * products with chosen rows of a symmetric matrix. Four columns or rows at a time: with 20 to 200 of them, a
 * call of BLAS would cost more than it computes. Part of kernels_template.h. The triangle is column-major,
 * its columns `stride` apart; column c is read from its diagonal entry on. */

/* L x = b by forward substitution: four unknowns, then their share is subtracted from all rows below in one
 * pass over x. */
static void lower_solve(const double *l, size_t stride, int n, double *x) {
    int c = 0;
    for (; c + 4 <= n; c += 4) {
        const double *a = l + (size_t)c * stride, *b = a + stride, *e = b + stride, *g = e + stride;
        const double p = x[c] / a[c], q = (x[c + 1] - a[c + 1] * p) / b[c + 1];
        const double r = (x[c + 2] - a[c + 2] * p - b[c + 2] * q) / e[c + 2];
        const double s = (x[c + 3] - a[c + 3] * p - b[c + 3] * q - e[c + 3] * r) / g[c + 3];
        x[c] = p;
        x[c + 1] = q;
        x[c + 2] = r;
        x[c + 3] = s;
        const vec vp = splat(p), vq = splat(q), vr = splat(r), vs = splat(s);
        int i = c + 4;
        for (; i + VW <= n; i += VW)
            *(vec_u *)(x + i) = *(vec_u *)(x + i) - vp * *(const vec_u *)(a + i) -
                                vq * *(const vec_u *)(b + i) - vr * *(const vec_u *)(e + i) -
                                vs * *(const vec_u *)(g + i);
        for (; i < n; i++)
            x[i] = x[i] - p * a[i] - q * b[i] - r * e[i] - s * g[i];
    }
    for (; c < n; c++) {
        const double *a = l + (size_t)c * stride;
        x[c] /= a[c];
        for (int i = c + 1; i < n; i++)
            x[i] -= x[c] * a[i];
    }
}

/* L' x = b by back substitution, from the last unknown up: single ones until a multiple of four is left. */
static void lower_solve_transposed(const double *l, size_t stride, int n, double *x) {
    int c = n;
    for (; c % 4 != 0; c--) {
        const double *a = l + (size_t)(c - 1) * stride;
        double left = x[c - 1];
        for (int i = c; i < n; i++)
            left -= a[i] * x[i];
        x[c - 1] = left / a[c - 1];
    }
    for (c -= 4; c >= 0; c -= 4) {
        const double *a = l + (size_t)c * stride, *b = a + stride, *e = b + stride, *g = e + stride;
        vec sums[ROWS] = {{0}};
        int i = c + 4;
        for (; i + VW <= n; i += VW) {
            const vec at = *(const vec_u *)(x + i);
            sums[0] += at * *(const vec_u *)(a + i);
            sums[1] += at * *(const vec_u *)(b + i);
            sums[2] += at * *(const vec_u *)(e + i);
            sums[3] += at * *(const vec_u *)(g + i);
        }
        double all[ROWS];
        four_sums(sums, all);
        for (; i < n; i++) {
            all[0] += x[i] * a[i];
            all[1] += x[i] * b[i];
            all[2] += x[i] * e[i];
            all[3] += x[i] * g[i];
        }
        const double s = (x[c + 3] - all[3]) / g[c + 3];
        const double r = (x[c + 2] - all[2] - e[c + 3] * s) / e[c + 2];
        const double q = (x[c + 1] - all[1] - b[c + 3] * s - b[c + 2] * r) / b[c + 1];
        x[c] = (x[c] - all[0] - a[c + 3] * s - a[c + 2] * r - a[c + 1] * q) / a[c];
        x[c + 1] = q;
        x[c + 2] = r;
        x[c + 3] = s;
    }
}

/* The addresses of four chosen rows; missing ones repeat the first, as row_pointers. */
INLINE void chosen_rows(const double *a[ROWS], const double *x, size_t stride, const int *row, int have) {
    for (int k = 0; k < ROWS; k++)
        a[k] = x + (size_t)row[k < have ? k : 0] * stride;
}

static void chosen_dot(const double *x, size_t stride, const int *row, int count, int n, const double *v,
                       double *f) {
    for (int i = 0; i < count; i += ROWS) {
        const double *a[ROWS];
        vec sums[ROWS] = {{0}};
        int j = 0;
        chosen_rows(a, x, stride, row + i, count - i);
        for (; j + VW <= n; j += VW) {
            const vec at = *(const vec_u *)(v + j);
            for (int k = 0; k < ROWS; k++)
                sums[k] += at * *(const vec_u *)(a[k] + j);
        }
        double all[ROWS];
        four_sums(sums, all);
        for (; j < n; j++)
            for (int k = 0; k < ROWS; k++)
                all[k] += v[j] * a[k][j];
        for (int k = 0; k < ROWS && i + k < count; k++)
            f[i + k] = all[k];
    }
}

static void chosen_sum(const double *x, size_t stride, const int *row, int count, int n, const double *s,
                       double *to) {
    memset(to, 0, (size_t)n * sizeof *to);
    for (int i = 0; i < count; i += ROWS) {
        const double *a[ROWS];
        double c[ROWS];
        int j = 0;
        chosen_rows(a, x, stride, row + i, count - i);
        for (int k = 0; k < ROWS; k++)
            c[k] = i + k < count ? s[row[i + k]] : 0;
        for (; j + VW <= n; j += VW) {
            vec sum = *(const vec_u *)(to + j);
            for (int k = 0; k < ROWS; k++)
                sum += splat(c[k]) * *(const vec_u *)(a[k] + j);
            *(vec_u *)(to + j) = sum;
        }
        for (; j < n; j++)
            to[j] += (c[0] * a[0][j] + c[1] * a[1][j]) + (c[2] * a[2][j] + c[3] * a[3][j]);
    }
}
