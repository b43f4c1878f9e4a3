/* What the members say of a row, and how it becomes one answer.
 *
 * Members first: the host's scores are given, the others are asked. Then two layers: stacks and votes over
 * the members (the experts), and a share over these. Classes are mixed as probabilities, each expert's made
 * by its slope; a regression is a mean of values in the unit of the targets. Nothing is learned here. */
#include <math.h>
#include <string.h>

#include "bank/bank_internal.h"
#include "learner/owned_model.h"
#include "learner/probability.h"

#define PROBA_LEAST 1e-6
#define NEAR_LAST   200
#define NEAR_COUNT  5
#define NEAR_FEW    3

/* What `count` neighbours say: their share of each class, as a score of a model; of a regression their mean.
 */
static void bank_poll(const svi_bank *b, const struct svi_neighbour *n, int count, double *scores) {
    if (b->regress) {
        double sum = 0;
        for (int i = 0; i < count; i++)
            sum += n[i].target;
        scores[0] = count ? sum / count : b->center;
        return;
    }
    for (int r = 0; r < b->rows; r++) {
        const int class = b->rows == 1 ? 1 : r;
        int votes = 0;
        for (int i = 0; i < count; i++)
            votes += n[i].label == class;
        scores[r] = count ? 2.0 * votes / count - 1 : 0;
    }
}

static void bank_ask_neighbours(svi_bank *b) {
    struct svi_neighbour last, of[NEAR_COUNT];
    const int found = svi_neighbours_find_both(&b->near, b->z, NEAR_LAST, &last, NEAR_COUNT, of);
    if (b->regress)
        bank_poll(b, of, found < NEAR_FEW ? found : NEAR_FEW, svi_bank_of(b, SVI_MEMBER_NEAREST));
    else
        bank_poll(b, &last, last.number >= 0, svi_bank_of(b, SVI_MEMBER_NEAREST));
    bank_poll(b, of, found, svi_bank_of(b, SVI_MEMBER_NEAREST_5));
}

static void bank_ask_block(svi_bank *b, int i) {
    struct svi_block *k = &b->block[i];
    const int rows = svi_block_rows(k);
    svi_block_score(k, b->z, b->said); /* which has not been said yet */
    for (int h = 0; h < k->o.head_count; h++)
        memcpy(svi_bank_of(b, svi_bank_blocks[i].member + h), b->said + (size_t)h * (size_t)rows,
               (size_t)rows * sizeof *b->said);
}

/* The first Fourier features and z, in this order, so that features which come are the last. False: the
 * Fourier features are not drawn yet. */
bool svi_bank_phi(svi_bank *b, const float *z) {
    int count;
    const float *f = svi_block_features(&b->block[FOURIER], &count);
    if (count < EXACT_FEATURES)
        return false;
    memcpy(b->phi, f, EXACT_FEATURES * sizeof *b->phi);
    memcpy(b->phi + EXACT_FEATURES, z, (size_t)b->d * sizeof *b->phi);
    return true;
}

static void bank_ask_exact(svi_bank *b) {
    double *scores = svi_bank_of(b, SVI_MEMBER_FOURIER_EXACT);
    b->expanded = svi_bank_phi(b, b->z);
    if (b->expanded)
        svi_fourier_ridge_score(&b->exact, b->phi, scores);
    else
        memset(scores, 0, (size_t)b->rows * sizeof *scores);
}

static void bank_ask(svi_bank *b, const double *x, const double *host) {
    memcpy(svi_bank_of(b, SVI_MEMBER_HOST), host, (size_t)b->rows * sizeof *host);
    svi_windows_score(&b->windows, x, svi_bank_of(b, SVI_MEMBER_WINDOW_50), b->stride, b->rows);
    svi_standardiser_row(&b->standard, x, b->z);
    for (int i = 0; i < BLOCKS; i++)
        if (svi_bank_runs(b, svi_bank_blocks[i].member))
            bank_ask_block(b, i);
    if (svi_bank_runs(b, SVI_MEMBER_NEAREST))
        bank_ask_neighbours(b);
    if (svi_bank_runs(b, SVI_MEMBER_LAST))
        svi_bank_of(b, SVI_MEMBER_LAST)[0] = b->last;
    if (svi_bank_runs(b, SVI_MEMBER_FOURIER_EXACT))
        bank_ask_exact(b);
    for (int r = 0; r < b->rows; r++)
        for (int m = 0; m < SVI_MEMBERS; m++) {
            const double s = svi_bank_of(b, m)[r];
            double *input = &b->inputs[r * SVI_MEMBERS + m];
            if (!svi_bank_runs(b, m))
                *input = 0;
            else if (b->regress)
                *input =
                    svi_bank_bounded((svi_bank_bounded(s, 2 * b->largest) - b->center) / b->unit, INPUT_MOST);
            else
                *input = svi_bank_bounded(s, CLIP);
        }
}

/* Votes of the members for each class, by their shares: scores as of a model. */
static void bank_vote(svi_bank *b, double *said) {
    memset(said, 0, (size_t)b->rows * sizeof *said);
    for (int m = 0; m < SVI_MEMBERS; m++) {
        if (!svi_bank_runs(b, m))
            continue;
        const int class = svi_predicted(SVS_CLASSIFY, b->class_count, svi_bank_of(b, m));
        if (b->rows > 1)
            said[class] += 2 * b->votes.w[m];
        else
            said[0] += class == 1 ? b->votes.w[m] : -b->votes.w[m];
    }
    for (int r = 0; r < b->rows && b->rows > 1; r++)
        said[r] -= 1;
}

/* Two classes by a slope alone, so that what the expert decides stays decided; of more classes an offset
 * costs no decision that was worth having. */
static void bank_expert_proba(const svi_bank *b, int i, double *p) {
    const double *said = svi_bank_expert(b, i);
    if (b->rows == 1) {
        svi_slope_proba(&b->slope[i], said, p);
        return;
    }
    const svs_calibration law = svi_calibrator_law(b->calibrator[i], b->class_count);
    svi_probabilities(&law, said, b->rows, p);
}

static void bank_combine(svi_bank *b) {
    const int classes = b->class_count;
    bank_vote(b, svi_bank_expert(b, 0));
    for (int i = 0; i < STACKS; i++)
        svi_stacks_score(b->stacks, i, b->inputs, b->rows, svi_bank_expert(b, 1 + i));
    memset(b->mixed, 0, (size_t)classes * sizeof *b->mixed);
    for (int i = 0; i < EXPERTS; i++) {
        double *p = svi_bank_expert_proba(b, i);
        bank_expert_proba(b, i, p);
        for (int k = 0; k < classes; k++)
            b->mixed[k] += b->experts.w[i] * p[k];
    }
    if (b->rows == 1)
        b->final[0] = 0.5 * log(fmax(b->mixed[1], PROBA_LEAST) / fmax(b->mixed[0], PROBA_LEAST));
    else
        for (int k = 0; k < classes; k++)
            b->final[k] = log(fmax(b->mixed[k], PROBA_LEAST));
}

/* Of a regression: the stacks and the member that was best recently, by their shares. */
static void bank_combine_values(svi_bank *b) {
    int best = SVI_MEMBER_HOST;
    for (int m = 0; m < SVI_MEMBERS; m++)
        if (svi_bank_runs(b, m) && b->recent[m] < b->recent[best])
            best = m;
    svi_bank_expert(b, 0)[0] = b->inputs[best];
    for (int i = 0; i < STACKS; i++)
        svi_stacks_score(b->stacks, i, b->inputs, 1, svi_bank_expert(b, 1 + i));
    double sum = 0;
    for (int i = 0; i < EXPERTS; i++)
        sum += b->experts.w[i] * svi_bank_expert(b, i)[0];
    b->final[0] = b->targets < TARGETS_FEW ? b->last : b->center + b->unit * sum;
}

void svi_bank_score(svi_bank *b, const double *x, const double *host, int rows, int class_count,
                    struct svi_bank_scored *out) {
    b->rows = rows;
    b->class_count = class_count;
    bank_ask(b, x, host);
    if (b->regress) {
        bank_combine_values(b);
    } else if (class_count > 1)
        bank_combine(b);
    else
        b->final[0] = 0;
    *out = (struct svi_bank_scored){.scores = b->final,
                                    .rows = rows,
                                    .class_count = class_count,
                                    .predicted = svi_predicted(b->o.host.task, class_count, b->final)};
}
