/* What a labelled sample teaches: first the layers above the members, what these had said of it; then each
 * member the row. And what is taken back of samples that are forgotten.
 *
 * A sample has the host's number everywhere: the stacks hold rows under it, `took` says which members over
 * all samples learned it, and neighbours count by it (near_from). */
#include <math.h>
#include <string.h>

#include "bank/bank_internal.h"
#include "base/fail.h"
#include "learner/learner_times.h"
#include "learner/owned_model.h"

#define MSE_KEEP  0.999
#define LOSS_UNIT 9     /* mean squared errors that are a loss of 1 */
#define RECENT    0.005 /* weight of the newest loss */

/* The targets so far: where they lie, how far they spread, how large they are. */
static void bank_see_target(svi_bank *b, double target) {
    const double before = target - b->mean;
    b->targets++;
    b->mean += before / (double)b->targets;
    b->spread += before * (target - b->mean);
    b->largest = fmax(b->largest, fabs(target));
    const double deviation = sqrt(b->spread / (double)b->targets);
    b->center = b->mean;
    b->last = target;
    b->unit = deviation > 0 ? deviation : b->largest > 0 ? b->largest : 1;
}

/* The plain mean at first, then one that fades. */
static void bank_remember(svi_bank *b, const double *loss) {
    const double plain = 1 / (double)++b->judged, newest = plain > RECENT ? plain : RECENT;
    for (int m = 0; m < SVI_MEMBERS; m++)
        b->recent[m] += svi_bank_runs(b, m) ? newest * (loss[m] - b->recent[m]) : 0;
}

/* Scores and target of a regression in a unit of their own: the stack's ridge is for values of about 1. */
static svs_code bank_learn_target(svi_bank *b, const struct svi_held_sample *held, svs_error *err) {
    double loss[SVI_MEMBERS];
    for (int m = 0; m < SVI_MEMBERS; m++) {
        const double e = (svi_bank_of(b, m)[0] - held->target) / b->unit;
        loss[m] = fmin(e * e, ERROR_MOST);
    }
    bank_remember(b, loss);
    svs_code code = SVS_OK;
    b->turn[0] = svi_bank_bounded((held->target - b->center) / b->unit, INPUT_MOST);
    if (b->targets >= TARGETS_FEW) {
        const double own = (b->final[0] - b->center) / b->unit - b->turn[0];
        for (int i = 0; i < EXPERTS; i++) {
            const double e = svi_bank_expert(b, i)[0] - b->turn[0];
            loss[i] = b->error > 0 ? fmin(1, e * e / (LOSS_UNIT * b->error)) : 0;
        }
        svi_share_learn(&b->experts, loss);
        b->error += (1 - MSE_KEEP) * (svi_bank_bounded(own * own, INPUT_MOST) - b->error);
        code = svi_stacks_learn(b->stacks, b->inputs, b->turn, 1, held->weight, held->number, err);
    }
    bank_see_target(b, held->target);
    return code;
}

static svs_code bank_learn_class(svi_bank *b, const struct svi_held_sample *held, svs_error *err) {
    double loss[SVI_MEMBERS];
    const int label = held->label;
    for (int m = 0; m < SVI_MEMBERS; m++)
        loss[m] = svi_bank_runs(b, m)
                      ? svi_predicted(SVS_CLASSIFY, b->class_count, svi_bank_of(b, m)) != label
                      : -1;
    bank_remember(b, loss);
    svi_share_learn(&b->votes, loss);
    for (int i = 0; i < EXPERTS; i++) {
        loss[i] = 1 - svi_bank_expert_proba(b, i)[label];
        if (b->rows == 1)
            svi_slope_learn(&b->slope[i], svi_bank_expert(b, i)[0], svi_bank_expert_proba(b, i), label);
        else
            svi_calibrator_learn(b->calibrator[i], svi_bank_expert(b, i), b->rows, b->class_count, label,
                                 svi_bank_expert_proba(b, i));
    }
    svi_share_learn(&b->experts, loss);
    for (int r = 0; r < b->rows; r++)
        b->turn[r] = b->rows == 1 ? (label == 1 ? 1 : -1) : (label == r ? 1 : -1);
    return svi_stacks_learn(b->stacks, b->inputs, b->turn, b->rows, held->weight, held->number, err);
}

static void bank_learn_blocks(svi_bank *b, const struct svi_held_sample *held) {
    for (int i = 0; i < BLOCKS; i++) {
        if (!svi_bank_runs(b, svi_bank_blocks[i].member))
            continue;
        if (b->regress)
            svi_block_learn_target(&b->block[i], held->target, held->weight);
        else
            svi_block_learn(&b->block[i], held->label, held->weight);
    }
}

/* Numbers of the host that no row came with, as those of samples that it had let go before the bank was made
 * again, are numbers among the neighbours all the same, so that the two differ by a constant. */
static svs_code bank_align_neighbours(svi_bank *b, int64_t number, svs_error *err) {
    svs_code code = SVS_OK;
    int64_t lacking = number - b->near_from - b->near.pushed;
    if (b->near.oldest < b->near.pushed && (lacking < 0 || lacking > b->near.capacity))
        svi_neighbours_empty(&b->near);
    for (; b->near.oldest < b->near.pushed && lacking > 0 && code == SVS_OK; lacking--) {
        code = svi_neighbours_reserve(&b->near, err);
        if (code == SVS_OK)
            svi_neighbours_remove(&b->near, svi_neighbours_push(&b->near, b->z, -1, 0));
    }
    return code == SVS_OK ? svi_neighbours_reserve(&b->near, err) : code;
}

static svs_code bank_learn_neighbour(svi_bank *b, const struct svi_held_sample *held, svs_code before,
                                     svs_error *err) {
    SVI_TRY(bank_align_neighbours(b, held->number, err));
    b->near_from = held->number - svi_neighbours_push(&b->near, b->z, held->label, held->target);
    return before;
}

/* Which members can take this sample back once it is known by its number alone. */
static void bank_note_took(svi_bank *b, int64_t number) {
    const bool all = b->windows.of[WINDOW_ALL] && b->windows.step[WINDOW_ALL].learned;
    const bool exact = svi_bank_runs(b, SVI_MEMBER_FOURIER_EXACT) && b->expanded;
    b->took[number % svi_bank_held(&b->o.host)] = (uint8_t)((all ? TOOK_ALL : 0) | (exact ? TOOK_EXACT : 0));
}

svs_code svi_bank_learn(svi_bank *b, const svs_learner *host, const svs_sample *s,
                        const struct svi_held_sample *held, double time, svs_error *err) {
    svs_code code = SVS_OK;
    if (b->regress)
        code = bank_learn_target(b, held, err);
    else if (b->class_count > 1 && held->label < b->class_count)
        code = bank_learn_class(b, held, err);
    svi_bank_know_classes(b, svs_learner_class_count(host));
    if (svi_bank_runs(b, SVI_MEMBER_FOURIER_EXACT) && b->expanded)
        svi_fourier_ridge_learn(&b->exact, b->phi, held->label, held->target, held->weight);
    else if (svi_bank_runs(b, SVI_MEMBER_FOURIER_EXACT) && !(b->block[FOURIER].spread > 0))
        svi_fourier_ridge_touch(&b->exact, b->block[FOURIER].kept_rows, SVI_FOURIER_ROWS);
    bank_learn_blocks(b, held);
    if (svi_bank_runs(b, SVI_MEMBER_NEAREST))
        code = bank_learn_neighbour(b, held, code, err);
    svi_standardiser_take(&b->standard, s->x);
    const svs_code members = svi_windows_learn(&b->windows, host, s, time, err);
    bank_note_took(b, held->number);
    return members != SVS_OK ? members : code;
}

/* ---- forgetting */

/* The features of a row that is among the neighbours are made again from it. */
static void bank_forget_exact(svi_bank *b, const struct svi_held_sample *s) {
    const float *z = svi_neighbours_row(&b->near, s->number - b->near_from);
    if (!z)
        return;
    memcpy(b->z, z, (size_t)svi_round_up(b->near.d, SVI_FLOATS_PAD) * sizeof *b->z);
    svi_block_score(&b->block[FOURIER], b->z, b->said);
    if (svi_bank_phi(b, b->z))
        svi_fourier_ridge_take_back(&b->exact, b->phi, s->label, s->target, s->weight);
    b->expanded = false;
}

static void bank_forget_one(void *user, const struct svi_held_sample *s) {
    svi_bank *b = user;
    const uint8_t took =
        b->o.host.class_rule != SVS_CLASSES_BALANCED ? b->took[s->number % svi_bank_held(&b->o.host)] : 0;
    svi_stacks_forget(b->stacks, s->number);
    if (took & TOOK_EXACT && svi_bank_runs(b, SVI_MEMBER_FOURIER_EXACT))
        bank_forget_exact(b, s);
    if (svi_bank_runs(b, SVI_MEMBER_NEAREST))
        svi_neighbours_remove(&b->near, s->number - b->near_from);
    if (took & TOOK_ALL && b->windows.of[WINDOW_ALL])
        svi_learner_take_back(b->windows.of[WINDOW_ALL], s);
}

void svi_bank_forget(svi_bank *b, const svs_learner *host, svs_value id, double time) {
    svi_learner_each_held(host, id, bank_forget_one, b);
    svi_windows_forget(&b->windows, id, time);
}

void svi_bank_move_times(svi_bank *b, double from, double step) {
    svs_learner *l;
    for (int i = 0; (l = svi_windows_next(&b->windows, &i));)
        svi_learner_move_times(l, from, step);
}
