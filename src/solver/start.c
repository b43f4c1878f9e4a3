#include <float.h>
#include <math.h>
#include <string.h>

#include "linalg/rows.h"
#include "solver/loss.h"
#include "solver/start.h"

static double residual_dual(const struct svi_work *w, int64_t i) {
    const svs_problem *p = w->problem;
    double margin = 1 - p->y[i] * svi_row_dot(w->kernels, &p->rows, i, w->v, w->bias_value);
    return p->loss == SVS_SQUARED ? 2 * w->cost[i] * margin : svi_dual_of(p->p, w->cost[i], margin);
}

static double boxed(const struct svi_work *w, int64_t i, double alpha) {
    if (w->problem->loss == SVS_SQUARED)
        return alpha;
    return fmin(fmax(alpha, 0), w->problem->p == 1 ? w->cost[i] : DBL_MAX);
}

void svi_start(struct svi_work *w) {
    const svs_start *s = w->start;
    const svs_problem *p = w->problem;
    bool linear = p->kernel.kind == SVS_LINEAR;
    if (s->w && linear) {
        memcpy(w->v, s->w, (size_t)w->d * sizeof *w->v);
        if (w->bias_value != 0)
            w->v[w->d] = s->b / w->bias_value;
    } else if (!linear) {
        w->v[0] = s->b;
    }
    w->warm = s->w || s->alpha;
    for (int64_t i = 0; i < p->rows.n && w->warm; i++) {
        bool known = s->alpha && !isnan(s->alpha[i]);
        if (known)
            w->alpha[i] = boxed(w, i, s->alpha[i]);
        else if (s->w && linear)
            w->alpha[i] = residual_dual(w, i);
    }
}
