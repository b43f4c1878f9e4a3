#include <cblas.h>
#include <math.h>

#include "linalg/cholesky.h"
#include "linalg/lapack.h"

#define SMALL 64 /* below, a call of LAPACK costs seven times the work (NUMERICS.md, 1) */

/* a = L L', in the lower triangle, row by row. A NaN fails the comparison of its row's diagonal. */
static bool cholesky_factor(double *a, int n) {
    for (int i = 0; i < n; i++) {
        double *ai = a + (size_t)i * n;
        for (int j = 0; j <= i; j++) {
            const double *aj = a + (size_t)j * n;
            double s = ai[j];
            for (int k = 0; k < j; k++)
                s -= ai[k] * aj[k];
            if (j < i)
                ai[j] = s / aj[j];
            else if (s > 0 && s < INFINITY)
                ai[i] = sqrt(s);
            else
                return false;
        }
    }
    return true;
}

/* L <- L^-1 in place, row by row: row i of the inverse is -(row i of L) (inverse of the rows above) / L_ii.
 */
static void cholesky_invert_triangle(double *l, int n) {
    for (int i = 0; i < n; i++) {
        double *li = l + (size_t)i * n, inverse = 1 / li[i];
        for (int j = 0; j < i; j++) {
            double s = 0;
            for (int k = j; k < i; k++)
                s += li[k] * l[(size_t)k * n + j];
            li[j] = -s * inverse;
        }
        li[i] = inverse;
    }
}

/* M <- M'M for lower triangular M. Entry (i, j), i >= j, needs only rows from i on, so rows can be replaced
 * from the top. */
static void cholesky_square(double *m, int n) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            double s = 0;
            for (int k = i; k < n; k++)
                s += m[(size_t)k * n + i] * m[(size_t)k * n + j];
            m[(size_t)i * n + j] = s;
        }
}

/* LAPACK does not report NaN and infinities; they all reach the diagonal, as does an overflow. `stride`:
 * doubles from one row to the next. */
static bool cholesky_good_diagonal(const double *a, int n, int stride) {
    for (int i = 0; i < n; i++) {
        const double entry = a[(size_t)i * (size_t)(stride + 1)];
        if (!(entry > 0 && entry < INFINITY))
            return false;
    }
    return true;
}

/* A row-major lower triangle is LAPACK's column-major upper one: no transposition is needed. */
bool svi_factor_spd(double *a, int n) {
    if (n < SMALL)
        return cholesky_factor(a, n);
    return svi_lapack_factor(a, n, n) && cholesky_good_diagonal(a, n, n);
}

bool svi_factor_rows(double *a, int n, int from, int to) {
    const int count = to - from;
    double *rows = a + (size_t)from * (size_t)n, *block = rows + from;
    /* [A B'; B C]: with A = L L' known, the new rows are B L'^-1, and C - B L'^-1 (B L'^-1)' is factored. */
    if (from > 0) {
        cblas_dtrsm(CblasRowMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, count, from, 1, a, n,
                    rows, n);
        cblas_dsyrk(CblasRowMajor, CblasLower, CblasNoTrans, count, from, -1, rows, n, 1, block, n);
    }
    return svi_lapack_factor(block, count, n) && cholesky_good_diagonal(block, count, n);
}

bool svi_factor_ridge(double *a, int n, const struct svi_diagonal *add) {
    for (int j = 0; j < n; j++) {
        double *diagonal = a + (size_t)j * (size_t)(n + 1);
        *diagonal += (j < add->penalised ? add->ridge : add->rest) + add->jitter * *diagonal;
    }
    return svi_factor_spd(a, n);
}

bool svi_invert_spd(double *a, int n) {
    if (!svi_factor_spd(a, n))
        return false;
    if (n < SMALL) {
        cholesky_invert_triangle(a, n);
        cholesky_square(a, n);
    } else if (!svi_lapack_invert(a, n, n)) {
        return false;
    }
    return cholesky_good_diagonal(a, n, n);
}

void svi_solve_factor(const double *l, int n, double *x) {
    cblas_dtrsv(CblasRowMajor, CblasLower, CblasNoTrans, CblasNonUnit, n, l, n, x, 1);
    cblas_dtrsv(CblasRowMajor, CblasLower, CblasTrans, CblasNonUnit, n, l, n, x, 1);
}
