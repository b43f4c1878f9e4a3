#include "quality/calibration_fit.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "learner/probability.h"

#define ROUNDS      200
#define HALVES      30
#define ENOUGH      1e-9 /* of the mean loss: less is gained */
#define RIDGE       1e-9 /* of the mean curvature */
#define SLOPE_LEAST 1e-6 /* of scores whose median size is 1 */
#define LEVERAGE    12.0 /* a logit beyond counts as if it were there */

struct fit {
    const double *scores; /* divided by their median size, so that the scale of a model is no matter */
    const int32_t *label;
    int64_t n;
    int rows, class_count;
    double a, *b;
    double *target; /* class_count: of a row's own class */
    double *proba;
    double *gradient, *bend; /* 1 + rows: of the slope and of the offsets; cross: slope with offset 0 */
    double cross;
};

/* Of class k for a row of class `own`. */
static double fit_target(const struct fit *f, int own, int k) {
    return k == own ? f->target[own] : (1 - f->target[own]) / (f->class_count - 1);
}

/* One score far beyond all others is not to hold the slope where it is. */
static double fit_shrink(const double *s, int rows, double a) {
    double most = 0;
    for (int k = 0; k < rows; k++)
        most = fmax(most, fabs(a * s[k]));
    return most > LEVERAGE ? LEVERAGE / most : 1;
}

/* The mean loss; with `slopes` its derivatives. */
static double fit_loss(struct fit *f, double a, const double *b, bool slopes) {
    const svs_calibration law = {a, b, NULL};
    double loss = 0;
    if (slopes) {
        memset(f->gradient, 0, 2 * (1 + (size_t)f->rows) * sizeof *f->gradient);
        f->cross = 0;
    }
    for (int64_t i = 0; i < f->n; i++) {
        const double *s = f->scores + i * f->rows;
        const double shrink = slopes ? fit_shrink(s, f->rows, a) : 1;
        double mean = 0, wanted = 0, square = 0;
        svi_probabilities(&law, s, f->rows, f->proba);
        for (int k = 0; k < f->class_count; k++)
            loss -= fit_target(f, f->label[i], k) * log(f->proba[k]);
        for (int k = 0; slopes && k < f->rows; k++) {
            const int class = f->rows == 1 ? 1 : k;
            const double p = f->proba[class], t = fit_target(f, f->label[i], class), x = shrink * s[k];
            mean += p * x;
            wanted += t * x;
            square += p * x * x;
            f->gradient[1 + k] += p - t;
            f->bend[1 + k] += p * (1 - p);
            f->cross += p * (1 - p) * x;
        }
        if (slopes) {
            f->gradient[0] += mean - wanted;
            f->bend[0] += square - mean * mean;
        }
    }
    for (int k = 0; slopes && k <= f->rows; k++) {
        f->gradient[k] /= (double)f->n;
        f->bend[k] = f->bend[k] / (double)f->n + RIDGE;
    }
    f->cross /= slopes ? (double)f->n : 1;
    return loss / (double)f->n;
}

/* Moves the slope by -da and the offsets by -db, less where that is too far. Returns the loss. */
static double fit_move(struct fit *f, double loss, double da, const double *db, double *tried) {
    for (int half = 0; half < HALVES; half++) {
        const double share = ldexp(1, -half), a = f->a - share * da;
        for (int k = 0; k < f->rows; k++)
            tried[k] = f->b[k] - share * db[k];
        const double now = a >= SLOPE_LEAST ? fit_loss(f, a, tried, false) : INFINITY;
        if (now < loss) {
            f->a = a;
            memcpy(f->b, tried, (size_t)f->rows * sizeof *f->b);
            return now;
        }
    }
    return loss;
}

static double fit_round(struct fit *f, double *step, double *tried) {
    double loss = fit_loss(f, f->a, f->b, true);
    const double *g = f->gradient, *h = f->bend;
    if (f->rows == 1) {
        const double determinant = h[0] * h[1] - f->cross * f->cross;
        step[0] = (h[0] * g[1] - f->cross * g[0]) / determinant;
        return fit_move(f, loss, (h[1] * g[0] - f->cross * g[1]) / determinant, step, tried);
    }
    memset(step, 0, (size_t)f->rows * sizeof *step);
    loss = fit_move(f, loss, g[0] / h[0], step, tried);
    loss = fit_loss(f, f->a, f->b, true);
    for (int k = 0; k < f->rows; k++)
        step[k] = g[1 + k] / h[1 + k];
    return fit_move(f, loss, 0, step, tried);
}

static void fit_center(struct fit *f) {
    double mean = 0;
    for (int k = 0; k < f->rows; k++)
        mean += f->b[k] / f->rows;
    for (int k = 0; k < f->rows && f->rows > 1; k++)
        f->b[k] -= mean;
}

static int fit_compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median size of the scores; 1 where it is 0. Sizes: room for all of them. */
static double fit_scale(const double *scores, size_t count, double *sizes) {
    for (size_t i = 0; i < count; i++)
        sizes[i] = fabs(scores[i]);
    qsort(sizes, count, sizeof *sizes, fit_compare);
    return count > 0 && sizes[count / 2] > 0 ? sizes[count / 2] : 1;
}

svs_code svi_calibration_fit(const double *scores, const int32_t *label, int64_t n, int rows, int class_count,
                             double *a, double *b, svs_error *err) {
    const size_t count = (size_t)n * (size_t)rows;
    double *work = svi_alloc_array(4 * (size_t)(rows + 1) + 2 * (size_t)class_count, sizeof *work);
    double *scaled = svi_alloc_array(count + 1, sizeof *scaled);
    if (!work || !scaled) {
        svi_free(work);
        svi_free(scaled);
        return svi_fail_memory(err, "the calibration of scores");
    }
    const double scale = fit_scale(scores, count, scaled);
    for (size_t i = 0; i < count; i++)
        scaled[i] = scores[i] / scale;
    struct fit f = {.scores = scaled, .label = label, .n = n, .rows = rows, .class_count = class_count};
    double *step = work + 2 * (rows + 1), *tried = step + rows + 1;
    f.gradient = work;
    f.bend = work + rows + 1;
    f.target = tried + rows + 1;
    f.proba = f.target + class_count;
    f.b = b;
    f.a = rows == 1 ? 2 : 1;
    memset(b, 0, (size_t)rows * sizeof *b);
    for (int64_t i = 0; i < n; i++)
        f.target[label[i]]++;
    for (int k = 0; k < class_count; k++)
        f.target[k] = (f.target[k] + 1) / (f.target[k] + class_count);
    double loss = INFINITY;
    for (int round = 0; round < ROUNDS; round++) {
        const double now = fit_round(&f, step, tried);
        if (loss - now < ENOUGH)
            break;
        loss = now;
    }
    fit_center(&f);
    *a = f.a / scale;
    svi_free(work);
    svi_free(scaled);
    return f.a > 2 * SLOPE_LEAST
               ? SVS_OK
               : svi_fail(err, SVS_UNAVAILABLE,
                          "the scores do not tell the classes apart: probabilities that rise with "
                          "them do not fit");
}
