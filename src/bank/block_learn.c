/* Steps of the heads, from the features and scores that the last score left. */
#include <math.h>

#include "bank/block_internal.h"

#define WEIGHT_MAX 1e6
#define ERROR_MAX  1e6   /* of a target, in its scale */
#define CERTAIN    1e-3F /* a chance that is this near to its aim is left there */

/* |f|^2, 1 at least, which is made when the first head asks for it; 0: it is not known yet. */
static double block_norm(const struct svi_block *b, double *known) {
    float sum;
    if (*known > 0)
        return *known;
    b->kernels->dots(b->f, b->f, 0, 1, b->length, &sum);
    return *known = (double)sum;
}

static void learn_passive_aggressive(struct svi_block *b, int h, int label, double weight, double *norm) {
    const int n = b->length, rows = svi_block_rows(b);
    const float *s = svi_block_scores(b, h), *f = b->f;
    int other = label == 0; /* the strongest wrong class */
    for (int r = 0; r < rows; r++)
        other = r != label && s[r] > s[other] ? r : other;
    const double y = label == 1 ? 1 : -1;
    const double loss = 1 - (rows == 1 ? y * (double)s[0] : (double)s[label] - (double)s[other]);
    if (!(loss > 0))
        return;
    const double squares = block_norm(b, norm) * (rows == 1 ? 1 : 2);
    const double t = loss / squares; /* the step after which the loss is none */
    const double step = fmin(t, weight * fmin((double)b->o.head[h].rate, t));
    if (rows == 1) {
        b->kernels->add(svi_block_row(b, h, 0), f, (float)(y * step), n);
    } else {
        b->kernels->add(svi_block_row(b, h, label), f, (float)step, n);
        b->kernels->add(svi_block_row(b, h, other), f, (float)-step, n);
    }
}

static void learn_adagrad(struct svi_block *b, int h, int label, double weight) {
    const int n = b->length, rows = svi_block_rows(b), padded = svi_round_up(rows, SVI_FLOATS_PAD);
    const float *s = svi_block_scores(b, h);
    const float *p = b->chance, c = (float)fmin(weight, WEIGHT_MAX);
    const float keep = b->o.head[h].keep > 0 ? b->o.head[h].keep : 1;
    b->kernels->logistic(s, padded, b->chance);
    for (int r = 0; r < rows; r++) {
        const float slope = p[r] - (label == (rows == 1 ? 1 : r) ? 1.0F : 0.0F);
        if (fabsf(slope) < CERTAIN)
            continue;
        b->kernels->adagrad(svi_block_row(b, h, r), svi_block_sum(b, h, r), b->f, c * slope,
                            b->o.head[h].rate, keep, n);
    }
}

/* What a row leaves besides weights. True: there are no features yet to learn on. */
static bool learn_features(struct svi_block *b) {
    if (b->o.kind == SVI_BLOCK_PRODUCTS) {
        const int pad = SVI_FLOATS_PAD;
        b->learned += b->learned < BLOCK_FADE;
        b->kernels->average(b->made, (float)(1 / (double)b->learned), b->length - pad, b->mean + pad,
                            b->variance + pad);
    }
    if (b->o.kind != SVI_BLOCK_FOURIER || b->spread > 0)
        return false;
    if (++b->kept_rows == SVI_FOURIER_ROWS) {
        b->spread = svi_block_spread(b);
        svi_block_draw(b, 0);
        b->kept_rows = 0;
    }
    return true;
}

void svi_block_learn(struct svi_block *b, int label, double weight) {
    double norm = 0;
    svi_block_add_classes(b, label + 1);
    if (learn_features(b) || !(weight > 0))
        return;
    for (int h = 0; h < b->o.head_count; h++)
        if (b->o.head[h].step == SVI_STEP_PA)
            learn_passive_aggressive(b, h, label, weight, &norm);
        else
            learn_adagrad(b, h, label, weight);
}

/* One more target; the scale follows its deviation by powers of two, which change no bit of what the weights
 * say. */
static void block_rescale(struct svi_block *b, double target) {
    svi_moments_add(&b->target, target);
    const double deviation = sqrt(b->target.squares / b->target.n);
    if (!(deviation > 1e-100) || (deviation < 2 * b->scale && deviation >= b->scale / 4))
        return;
    const double scale = exp2(floor(log2(deviation)));
    const float change = (float)fmin(b->scale / scale, 1e30); /* from 1 at first, when weights are 0 */
    b->scale = scale;
    for (int h = 0; h < b->o.head_count; h++) {
        float *w = svi_block_row(b, h, 0);
        svi_block_scores(b, h)[0] *= change;
        for (int i = 0; i < b->length; i++)
            w[i] *= change;
    }
}

void svi_block_learn_target(struct svi_block *b, double target, double weight) {
    double norm = 0;
    block_rescale(b, target);
    if (learn_features(b) || !(weight > 0))
        return;
    for (int h = 0; h < b->o.head_count; h++) {
        const double score = (double)svi_block_scores(b, h)[0];
        const double error = (target - b->target.mean) / b->scale - score;
        const double mu = fmin((double)b->o.head[h].rate * weight, fmax(1, (double)b->o.head[h].rate));
        b->kernels->add(svi_block_row(b, h, 0), b->f,
                        (float)(mu * fmax(-ERROR_MAX, fmin(ERROR_MAX, error)) / block_norm(b, &norm)),
                        b->length);
    }
}
