#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "linalg/cholesky.h"
#include "linalg/rows.h"
#include "solver/newton_state.h"

#define DIRECT_MAX 1500 /* coordinates up to which a factor is made */
#define JITTER     1e-14
#define CG_MAX     250
#define CG_ENOUGH                                                                                            \
    0.01 /* residual of a direction, relative: steps near the end need no better, the gap is what counts */

/* Brings the Gram matrix of the band up to date: by the rows that changed, or anew when these are many. */
static svs_code update_gram(struct svi_newton_state *s, svs_error *err) {
    const struct svi_work *w = s->w;
    int64_t changed = 0, members = 0, count = 0;
    for (int64_t i = 0; i < s->sample.n; i++) {
        changed += s->h[i] != s->weight[i];
        members += s->h[i] != 0;
    }
    bool anew = changed >= members;
    if (anew)
        memset(s->gram, 0, (size_t)w->dim * (size_t)w->dim * sizeof *s->gram);
    for (int64_t i = 0; i < s->sample.n; i++) {
        double change = anew ? s->h[i] : s->h[i] - s->weight[i];
        s->weight[i] = s->h[i];
        s->index[count] = i;
        s->change[count] = change;
        count += change != 0;
    }
    return svi_rows_gram(w->kernels, &s->sample.rows, s->index, count, s->change, w->bias_value, s->gram,
                         err);
}

static bool solve(struct svi_newton_state *s, double jitter) {
    const int n = s->w->dim;
    const double unit = svi_newton_unit(s);
    for (size_t k = 0; k < (size_t)n * (size_t)n; k++)
        s->factor[k] = unit * s->gram[k];
    for (int j = 0; j < n; j++) {
        double *diagonal = s->factor + (size_t)j * (size_t)(n + 1), ridge = svi_ridge(s->w, j);
        *diagonal += (ridge > 0 ? ridge : 1e-10) + jitter * *diagonal;
        s->step[j] = -s->g[j];
    }
    if (!svi_factor_spd(s->factor, n))
        return false;
    svi_solve_factor(s->factor, n, s->step);
    return true;
}

/* out = (R'' + sum h x x') in. */
static void product(const struct svi_newton_state *s, const double *in, double *out) {
    const struct svi_work *w = s->w;
    const double unit = svi_newton_unit(s);
    svi_newton_scores(s, in, s->change);
    for (int64_t i = 0; i < s->sample.n; i++)
        s->change[i] *= unit * s->h[i];
    for (int j = 0; j < w->dim; j++)
        out[j] = (svi_ridge(w, j) > 0 ? 1 : 1e-10) * in[j];
    svi_rows_add(w->kernels, &s->sample.rows, 0, s->sample.n, s->change, out, w->bias_value);
}

static double dot(const double *a, const double *b, int n) {
    double sum = 0;
    for (int j = 0; j < n; j++)
        sum += a[j] * b[j];
    return sum;
}

/* Conjugate gradients: one product is one pass over the band. */
static void solve_cg(struct svi_newton_state *s) {
    const int n = s->w->dim;
    double *r = s->cg[0], *d = s->cg[1], *hd = s->cg[2];
    memset(s->step, 0, (size_t)svi_padded(n) * sizeof *s->step);
    for (int j = 0; j < n; j++)
        d[j] = r[j] = -s->g[j];
    double rr = dot(r, r, n), enough = CG_ENOUGH * CG_ENOUGH * rr;
    for (int k = 0; k < CG_MAX && rr > enough; k++) {
        product(s, d, hd);
        double t = rr / dot(d, hd, n), before = rr;
        for (int j = 0; j < n; j++) {
            s->step[j] += t * d[j];
            r[j] -= t * hd[j];
        }
        rr = dot(r, r, n);
        for (int j = 0; j < n; j++)
            d[j] = r[j] + rr / before * d[j];
    }
}

svs_code svi_newton_direction(struct svi_newton_state *s, svs_error *err) {
    svi_newton_curvature(s);
    if (!s->gram) {
        solve_cg(s);
        return SVS_OK;
    }
    svs_code code = update_gram(s, err);
    if (code != SVS_OK)
        return code;
    for (double jitter = JITTER; jitter < 1e-3; jitter *= 100)
        if (solve(s, jitter))
            return SVS_OK;
    return svi_fail(
        err, SVS_NUMERIC,
        "the Newton system is not positive definite: the values of the features differ too much in size");
}

svs_code svi_newton_reserve_system(struct svi_newton_state *s, svs_error *err) {
    const size_t n = (size_t)s->sample.n, dim = (size_t)s->w->dim;
    bool got = (s->change = svi_alloc_array(n, sizeof(double))) != NULL;
    if (dim > DIRECT_MAX) {
        for (int k = 0; k < 3; k++)
            got = (s->cg[k] = svi_vector((int)dim)) && got;
    } else {
        got = (s->weight = svi_alloc_array(n, sizeof(double))) && got;
        got = (s->index = svi_alloc_array(n, sizeof(int64_t))) && got;
        got = (s->gram = svi_alloc_array(dim * dim, sizeof(double))) && got;
        got = (s->factor = svi_alloc_array(dim * dim, sizeof(double))) && got;
    }
    return got ? SVS_OK : svi_fail_memory(err, "the Newton system");
}

void svi_newton_release_system(struct svi_newton_state *s) {
    double *const all[] = {s->change, s->weight, s->gram, s->factor, s->cg[0], s->cg[1], s->cg[2]};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        svi_free(all[i]);
    svi_free(s->index);
}
