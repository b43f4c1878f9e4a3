#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "linalg/cholesky.h"
#include "linalg/rows.h"
#include "solver/alm.h"

#define DIRECT_MAX  1500 /* coordinates up to which the Gram matrix is factored */
#define LSQR_MAX    60
#define LSQR_ENOUGH 1e-4 /* |A'r| falls to this share */

static bool penalised(const struct svi_work *w, int j) {
    return !(w->problem->bias == SVS_BIAS_FREE && j == w->d);
}

/* The start's Gram matrix has a plain 1 behind each row. */
static void take_gram(struct svi_wstep *s) {
    const struct svi_work *w = s->w;
    const size_t n = (size_t)w->dim, from = (size_t)w->d + 1;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) {
            double g = w->start->gram[i * from + j];
            g *= i == (size_t)w->d ? w->bias_value : 1;
            s->gram[i * n + j] = g * (j == (size_t)w->d ? w->bias_value : 1);
        }
}

svs_code svi_wstep_reserve(struct svi_wstep *s, struct svi_work *w, svs_error *err) {
    const size_t n = (size_t)w->problem->rows.n, dim = (size_t)w->dim;
    s->w = w;
    if (dim > DIRECT_MAX) {
        s->u = svi_alloc_array(n, sizeof *s->u);
        s->xv = svi_alloc_array(n, sizeof *s->xv);
        s->lv = svi_vector(w->dim);
        s->direction = svi_vector(w->dim);
        s->image = svi_vector(w->dim);
        return s->u && s->xv && s->lv && s->direction && s->image ? SVS_OK
                                                                  : svi_fail_memory(err, "the w-step (LSQR)");
    }
    s->gram = svi_alloc_array(dim * dim, sizeof *s->gram);
    s->factor = svi_alloc_array(dim * dim, sizeof *s->factor);
    s->rhs = svi_vector(w->dim);
    if (!s->gram || !s->factor || !s->rhs)
        return svi_fail_memory(err, "the w-step (Gram matrix)");
    if (!w->start->gram)
        return svi_rows_gram(w->kernels, &w->problem->rows, NULL, (int64_t)n, NULL, w->bias_value, s->gram,
                             err);
    take_gram(s);
    return SVS_OK;
}

void svi_wstep_release(struct svi_wstep *s) {
    double *const all[] = {s->gram, s->factor, s->rhs, s->u, s->xv, s->lv, s->direction, s->image};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        svi_free(all[i]);
}

svs_code svi_wstep_factor(struct svi_wstep *s, double inverse_mu, svs_error *err) {
    const size_t n = (size_t)s->w->dim;
    if (!s->gram)
        return SVS_OK;
    for (double jitter = 1e-15; jitter < 1e-6; jitter *= 100) {
        memcpy(s->factor, s->gram, n * n * sizeof *s->factor);
        for (size_t j = 0; j < n; j++) {
            double *diagonal = s->factor + j * (n + 1);
            *diagonal += (penalised(s->w, (int)j) ? inverse_mu : 0) + jitter * *diagonal;
        }
        if (svi_factor_spd(s->factor, (int)n))
            return SVS_OK;
    }
    return svi_fail(err, SVS_NUMERIC,
                    "the Gram matrix cannot be factored: the features differ too much in size");
}

static double norm(const double *x, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sqrt(sum);
}

static void scale(double *x, int64_t n, double by) {
    for (int64_t i = 0; i < n; i++)
        x[i] *= by;
}

/* A = [X; sqrt(1/mu) R], so u = (u, lower) has n + dim entries. (u, lower) <- A x - a (u, lower). Returns the
 * norm. */
static double forward(struct svi_wstep *s, double root, const double *x, double a) {
    const struct svi_work *w = s->w;
    const int64_t n = w->problem->rows.n;
    double sum = 0;
    svi_rows_multiply(w->kernels, &w->problem->rows, 0, n, x, w->bias_value, s->xv);
    for (int64_t i = 0; i < n; i++) {
        s->u[i] = s->xv[i] - a * s->u[i];
        sum += s->u[i] * s->u[i];
    }
    for (int j = 0; j < w->dim; j++) {
        s->image[j] = (penalised(w, j) ? root * x[j] : 0) - a * s->image[j];
        sum += s->image[j] * s->image[j];
    }
    return sqrt(sum);
}

/* lv <- A'(u, lower) - b lv. Returns the norm. */
static double backward(struct svi_wstep *s, double root, double b) {
    const struct svi_work *w = s->w;
    for (int j = 0; j < w->dim; j++)
        s->lv[j] = (penalised(w, j) ? root * s->image[j] : 0) - b * s->lv[j];
    svi_rows_add(w->kernels, &w->problem->rows, 0, w->problem->rows.n, s->u, s->lv, w->bias_value);
    return norm(s->lv, w->dim);
}

static void normalise(struct svi_wstep *s, double beta) {
    if (beta > 0) {
        scale(s->u, s->w->problem->rows.n, 1 / beta);
        scale(s->image, s->w->dim, 1 / beta);
    }
}

/* LSQR (Paige & Saunders 1982) for the correction of v: min |A dv - (z - f; -sqrt(1/mu) v)|. */
static void lsqr(struct svi_wstep *s, double inverse_mu, const double *z, const double *f) {
    struct svi_work *w = s->w;
    const int64_t n = w->problem->rows.n;
    const double root = sqrt(inverse_mu);
    double beta = 0, alpha, first;
    for (int64_t i = 0; i < n; i++)
        s->u[i] = z[i] - f[i];
    for (int j = 0; j < w->dim; j++)
        s->image[j] = penalised(w, j) ? -root * w->v[j] : 0;
    beta = hypot(norm(s->u, n), norm(s->image, w->dim));
    normalise(s, beta);
    memset(s->lv, 0, (size_t)svi_padded(w->dim) * sizeof *s->lv);
    first = alpha = backward(s, root, 0);
    if (alpha > 0)
        scale(s->lv, w->dim, 1 / alpha);
    memcpy(s->direction, s->lv, (size_t)svi_padded(w->dim) * sizeof *s->lv);
    double phi_bar = beta, rho_bar = alpha, start = beta * first;
    for (int k = 0; k < LSQR_MAX && alpha > 0 && beta > 0; k++) {
        beta = forward(s, root, s->lv, alpha);
        normalise(s, beta);
        alpha = backward(s, root, beta);
        if (alpha > 0)
            scale(s->lv, w->dim, 1 / alpha);
        double rho = hypot(rho_bar, beta), c = rho_bar / rho, sine = beta / rho, theta = sine * alpha;
        double step = c * phi_bar / rho;
        for (int j = 0; j < w->dim; j++) {
            w->v[j] += step * s->direction[j];
            s->direction[j] = s->lv[j] - theta / rho * s->direction[j];
        }
        rho_bar = -c * alpha;
        phi_bar *= sine;
        if (fabs(phi_bar * alpha * c) <= LSQR_ENOUGH * start)
            return;
    }
}

void svi_wstep_solve(struct svi_wstep *s, double inverse_mu, const double *z, const double *f) {
    if (!s->gram) {
        lsqr(s, inverse_mu, z, f);
        return;
    }
    memcpy(s->w->v, s->rhs, (size_t)svi_padded(s->w->dim) * sizeof *s->rhs);
    svi_solve_factor(s->factor, s->w->dim, s->w->v);
}
