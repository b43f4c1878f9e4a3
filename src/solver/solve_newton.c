/* The solver `newton`: least squares and a few Newton steps on every 7^k-th row, then on ever more of them,
 * then on all. What a sample of m rows leaves undone is of the order D/m of the objective, so little is left
 * to do with all rows. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "linalg/cholesky.h"
#include "linalg/rows.h"
#include "solver/newton.h"

#define RATIO             7   /* odd, so that rows that alternate do not fool it */
#define ROWS_LEAST        400 /* of a sample */
#define PER_D             10  /* rows of a sample for each coordinate, at least */
#define SAMPLE_TOL        1e-2
#define WARM_STEPS        60   /* from a given start; then it is given up */
#define LEAST_SQUARES_MAX 1500 /* coordinates */
#define SEPARABLE         0.01 /* share of the multipliers below which the next ones start at 0 */

/* v from the squared loss on the sample. A system that cannot be solved leaves v = 0: a start all the same.
 */
static svs_code least_squares(struct svi_work *w, const struct svi_sample *s, svs_error *err) {
    const size_t n = (size_t)w->dim;
    const double ridge = 1 / (2 * w->problem->C * (double)s->step);
    double *gram = svi_alloc_array(n * n, sizeof *gram), *y = svi_alloc_array((size_t)s->n, sizeof *y);
    svs_code code = gram && y
                        ? svi_rows_gram(w->kernels, &s->rows, NULL, s->n, NULL, w->bias_value, gram, err)
                        : svi_fail_memory(err, "the least-squares start");
    if (code == SVS_OK) {
        for (int64_t i = 0; i < s->n; i++)
            y[i] = w->problem->y[i * s->step];
        for (size_t j = 0; j < n; j++)
            gram[j * (n + 1)] += ridge + 1e-14 * gram[j * (n + 1)];
        if (svi_factor_spd(gram, (int)n)) {
            svi_rows_add(w->kernels, &s->rows, 0, s->n, y, w->v, w->bias_value);
            svi_solve_factor(gram, (int)n, w->v);
        }
    }
    svi_free(gram);
    svi_free(y);
    return code;
}

static bool over(const struct svi_work *w, svs_code code) {
    return code != SVS_OK || w->stop == SVS_STOP_USER || w->stop == SVS_STOP_SECONDS ||
           w->stop == SVS_STOP_ITERATIONS;
}

static svs_code cold(struct svi_work *w, svs_error *err) {
    const int64_t n = w->problem->rows.n, least = ROWS_LEAST > PER_D * w->dim ? ROWS_LEAST : PER_D * w->dim;
    struct svi_newton_end end = {.share = 1};
    int64_t step = 1;
    while (n / (step * RATIO) >= least)
        step *= RATIO;
    struct svi_newton_plan plan = {.sample = svi_sample_every(w, step), .sharpness = 1};
    svs_code code = w->dim <= LEAST_SQUARES_MAX ? least_squares(w, &plan.sample, err) : SVS_OK;
    for (; step >= 1 && !over(w, code); step /= RATIO) {
        plan.sample = svi_sample_every(w, step);
        plan.tol = step > 1 ? fmax(SAMPLE_TOL, w->o->tol) : w->o->tol;
        plan.share = w->problem->p == 1 && end.share > SEPARABLE ? 0.5 : 0;
        code = svi_newton(w, &plan, &end, err);
        plan.sharpness = 4;
    }
    return code;
}

/* A start may be good enough as it is; Newton's first step would look at other multipliers. */
static svs_code good_already(struct svi_work *w, bool *good, svs_error *err) {
    struct svi_certificate c;
    double *work = svi_alloc_array((size_t)svi_padded(w->dim) + (size_t)w->problem->rows.n, sizeof *work);
    if (!work)
        return svi_fail_memory(err, "the certificate");
    svi_certify(w, w->v, w->alpha, work, &c);
    *good = svi_work_reached(w, c.objective, c.gap);
    w->stop = SVS_STOP_TOL;
    svi_free(work);
    return SVS_OK;
}

svs_code svi_solve_newton(struct svi_work *w, svs_error *err) {
    struct svi_newton_end end;
    const struct svi_newton_plan plan = {
        .sample = svi_sample_every(w, 1), .tol = w->o->tol, .share = -1, .sharpness = 4, .steps = WARM_STEPS};
    bool good = false;
    if (!w->warm)
        return cold(w, err);
    svs_code code = w->problem->p == 1 ? good_already(w, &good, err) : SVS_OK;
    if (code != SVS_OK || good)
        return code;
    code = svi_newton(w, &plan, &end, err);
    if (end.reached || over(w, code))
        return code;
    memset(w->v, 0, (size_t)svi_padded(w->dim) * sizeof *w->v); /* a start that led astray is given up */
    return cold(w, err);
}
