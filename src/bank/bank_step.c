/* A sample in the bank: how it is answered, what its label teaches, and what is taken back of those that are
 * forgotten.
 *
 * To answer, the members come first: the host's scores are given, the others are asked. Then two layers:
 * stacks and votes over the members (the experts), and a share over these. Classes are mixed as
 * probabilities, each expert's made by its slope; a regression is a mean of values in the unit of the
 * targets. Nothing is learned there. A label teaches the layers first, by what the members had said of the
 * row; then each member the row.
 *
 * A sample has the host's number everywhere: stacks hold rows under it, and `took` says which of the members
 * over all samples learned it. */
#include <math.h>
#include <string.h>

#include "bank/bank_internal.h"
#include "learner/owned_model.h"
#include "learner/probability.h"

#define MIN_PROBA   1e-6
#define MIN_TARGETS 16  /* of a regression: the stacks begin after them */
#define MAX_ERROR   1e6 /* of a squared error, in units of the targets' variance */
#define MSE_KEEP    0.999
#define LOSS_UNIT   9     /* mean squared errors that are a loss of 1 */
#define RECENT      0.005 /* weight of the newest loss */

static double bank_bounded(double v, double most) {
    return v > most ? most : v >= -most ? v : v < -most ? -most : 0; /* NaN: 0 */
}

static double *bank_expert_chances(const svi_bank *b, int expert) {
    return b->proba + (size_t)expert * (size_t)b->c.stride;
}

/* ---- the answer */

/* Members that share one row of standardised features; they go backward, each after those it reads. */
static void bank_ask(svi_bank *b, const double *x, const double *host) {
    memcpy(svi_bank_of(b, SVI_MEMBER_HOST), host, (size_t)b->c.rows * sizeof *host);
    b->c.x = x;
    svi_standardiser_row(&b->standard, x, b->c.z);
    for (int i = b->c.part_count - 1; i >= 0; i--) {
        const struct svi_member_part *p = &b->part[i];
        if (p->on)
            p->ops->score(p, svi_bank_of(b, p->first));
    }
    b->c.x = NULL;
}

/* The scores as the stacks take them: bounded; of a regression in deviations of the targets; 0 of a member
 * that does not run. */
static void bank_prepare_inputs(svi_bank *b) {
    double *input = b->inputs;
    for (int r = 0; r < b->c.rows; r++)
        for (int m = 0; m < svi_member_count; m++, input++) {
            const double s = svi_bank_of(b, m)[r];
            if (!svi_bank_runs(b, m))
                *input = 0;
            else if (b->c.regress)
                *input = bank_bounded((bank_bounded(s, 2 * b->largest) - b->c.center) / b->unit, MAX_INPUT);
            else
                *input = bank_bounded(s, CLIP);
        }
}

/* Votes of the members for each class, by their shares: scores as of a model. */
static void bank_vote(svi_bank *b, double *said) {
    memset(said, 0, (size_t)b->c.rows * sizeof *said);
    for (int m = 0; m < svi_member_count; m++) {
        if (!svi_bank_runs(b, m))
            continue;
        const int class = svi_predicted(SVS_CLASSIFY, b->c.class_count, svi_bank_of(b, m));
        if (b->c.rows > 1)
            said[class] += 2 * b->votes.w[m];
        else
            said[0] += class == 1 ? b->votes.w[m] : -b->votes.w[m];
    }
    for (int r = 0; r < b->c.rows && b->c.rows > 1; r++)
        said[r] -= 1;
}

/* Two classes by a slope alone, so that what the expert decides stays decided; of more classes an offset
 * costs no decision that was worth having. */
static void bank_expert_proba(const svi_bank *b, int i, double *p) {
    const double *said = svi_bank_expert(b, i);
    if (b->c.rows == 1) {
        svi_slope_proba(&b->slope[i], said, p);
        return;
    }
    const svs_calibration law = svi_calibrator_law(b->calibrator[i], b->c.class_count);
    svi_probabilities(&law, said, b->c.rows, p);
}

static void bank_combine(svi_bank *b) {
    const int classes = b->c.class_count;
    bank_vote(b, svi_bank_expert(b, 0));
    for (int i = 0; i < STACKS; i++)
        svi_stacks_score(b->stacks, i, b->inputs, b->c.rows, svi_bank_expert(b, 1 + i));
    memset(b->mixed, 0, (size_t)classes * sizeof *b->mixed);
    for (int i = 0; i < EXPERTS; i++) {
        double *p = bank_expert_chances(b, i);
        bank_expert_proba(b, i, p);
        for (int k = 0; k < classes; k++)
            b->mixed[k] += b->experts.w[i] * p[k];
    }
    if (b->c.rows == 1)
        b->final[0] = 0.5 * log(fmax(b->mixed[1], MIN_PROBA) / fmax(b->mixed[0], MIN_PROBA));
    else
        for (int k = 0; k < classes; k++)
            b->final[k] = log(fmax(b->mixed[k], MIN_PROBA));
}

/* Of a regression: the stacks and the member that was best recently, by their shares. */
static void bank_combine_values(svi_bank *b) {
    int best = SVI_MEMBER_HOST;
    for (int m = 0; m < svi_member_count; m++)
        if (svi_bank_runs(b, m) && b->recent[m] < b->recent[best])
            best = m;
    svi_bank_expert(b, 0)[0] = b->inputs[best];
    for (int i = 0; i < STACKS; i++)
        svi_stacks_score(b->stacks, i, b->inputs, 1, svi_bank_expert(b, 1 + i));
    double sum = 0;
    for (int i = 0; i < EXPERTS; i++)
        sum += b->experts.w[i] * svi_bank_expert(b, i)[0];
    b->final[0] = b->targets < MIN_TARGETS ? b->c.last : b->c.center + b->unit * sum;
}

void svi_bank_score(svi_bank *b, const double *x, const double *host, int rows, int class_count,
                    struct svi_bank_scored *out) {
    b->c.rows = rows;
    b->c.class_count = class_count;
    bank_ask(b, x, host);
    bank_prepare_inputs(b);
    if (b->c.regress)
        bank_combine_values(b);
    else if (class_count > 1)
        bank_combine(b);
    else
        b->final[0] = 0;
    *out = (struct svi_bank_scored){.scores = b->final,
                                    .rows = rows,
                                    .class_count = class_count,
                                    .predicted = svi_predicted(b->o.host.task, class_count, b->final)};
}

/* ---- learning */

/* The targets so far: where they lie, how far they spread, how large they are. */
static void bank_see_target(svi_bank *b, double target) {
    const double before = target - b->mean;
    b->targets++;
    b->mean += before / (double)b->targets;
    b->spread += before * (target - b->mean);
    b->largest = fmax(b->largest, fabs(target));
    const double deviation = sqrt(b->spread / (double)b->targets);
    b->c.center = b->mean;
    b->c.last = target;
    b->unit = deviation > 0 ? deviation : b->largest > 0 ? b->largest : 1;
}

/* The plain mean at first, then one that fades. */
static void bank_remember(svi_bank *b, const double *loss) {
    const double plain = 1 / (double)++b->judged, newest = plain > RECENT ? plain : RECENT;
    for (int m = 0; m < svi_member_count; m++)
        b->recent[m] += svi_bank_runs(b, m) ? newest * (loss[m] - b->recent[m]) : 0;
}

/* Scores and target of a regression in a unit of their own: the stack's ridge is for values of about 1. */
static svs_code bank_learn_target(svi_bank *b, const struct svi_held_sample *held, svs_error *err) {
    double loss[SVI_MEMBERS_MAX];
    for (int m = 0; m < svi_member_count; m++) {
        const double e = (svi_bank_of(b, m)[0] - held->target) / b->unit;
        loss[m] = fmin(e * e, MAX_ERROR);
    }
    bank_remember(b, loss);
    svs_code code = SVS_OK;
    b->turn[0] = bank_bounded((held->target - b->c.center) / b->unit, MAX_INPUT);
    if (b->targets >= MIN_TARGETS) {
        const double own = (b->final[0] - b->c.center) / b->unit - b->turn[0];
        for (int i = 0; i < EXPERTS; i++) {
            const double e = svi_bank_expert(b, i)[0] - b->turn[0];
            loss[i] = b->error > 0 ? fmin(1, e * e / (LOSS_UNIT * b->error)) : 0;
        }
        svi_share_learn(&b->experts, loss);
        b->error += (1 - MSE_KEEP) * (bank_bounded(own * own, MAX_INPUT) - b->error);
        code = svi_stacks_learn(b->stacks, b->inputs, b->turn, 1, held->weight, held->number, err);
    }
    bank_see_target(b, held->target);
    return code;
}

static svs_code bank_learn_class(svi_bank *b, const struct svi_held_sample *held, svs_error *err) {
    double loss[SVI_MEMBERS_MAX];
    const int label = held->label;
    for (int m = 0; m < svi_member_count; m++)
        loss[m] = svi_bank_runs(b, m)
                      ? svi_predicted(SVS_CLASSIFY, b->c.class_count, svi_bank_of(b, m)) != label
                      : -1;
    bank_remember(b, loss);
    svi_share_learn(&b->votes, loss);
    for (int i = 0; i < EXPERTS; i++) {
        loss[i] = 1 - bank_expert_chances(b, i)[label];
        if (b->c.rows == 1)
            svi_slope_learn(&b->slope[i], svi_bank_expert(b, i)[0], bank_expert_chances(b, i), label);
        else
            svi_calibrator_learn(b->calibrator[i], svi_bank_expert(b, i), b->c.rows, b->c.class_count, label,
                                 bank_expert_chances(b, i));
    }
    svi_share_learn(&b->experts, loss);
    for (int r = 0; r < b->c.rows; r++)
        b->turn[r] = b->c.rows == 1 ? (label == 1 ? 1 : -1) : (label == r ? 1 : -1);
    return svi_stacks_learn(b->stacks, b->inputs, b->turn, b->c.rows, held->weight, held->number, err);
}

svs_code svi_bank_learn(svi_bank *b, const svs_learner *host, const svs_sample *s,
                        const struct svi_held_sample *held, double time, svs_error *err) {
    const struct svi_member_lesson lesson = {.host = host, .sample = s, .held = held, .time = time};
    const int classes = svs_learner_class_count(host);
    svs_code worst = SVS_OK;
    uint8_t took = 0; /* the parts that can take this sample back once it is known by its number alone */
    if (b->c.regress)
        worst = bank_learn_target(b, held, err);
    else if (b->c.class_count > 1 && held->label < b->c.class_count)
        worst = bank_learn_class(b, held, err);
    if (classes > b->c.classes)
        svi_bank_know_classes(b, classes);
    for (int i = 0; i < b->c.part_count; i++) {
        const struct svi_member_part *p = &b->part[i];
        if (!p->on || !p->ops->learn)
            continue;
        if (p->ops->learn(p, &lesson, err) != SVS_OK)
            worst = SVS_NO_MEMORY; /* what it lacks it gets before the next sample */
        if (p->ops->held && p->ops->held(p))
            took |= p->ops->took;
    }
    svi_standardiser_take(&b->standard, s->x);
    b->took[held->number % svi_bank_held(&b->o.host)] = took;
    return worst;
}

/* ---- forgetting */

static void bank_forget_one(void *user, const struct svi_held_sample *s) {
    svi_bank *b = user;
    const bool known = b->o.host.class_rule != SVS_CLASSES_BALANCED; /* with which weight it was learned */
    const uint8_t took = known ? b->took[s->number % svi_bank_held(&b->o.host)] : 0;
    svi_stacks_forget(b->stacks, s->number);
    for (int i = b->c.part_count - 1; i >= 0; i--) {
        const struct svi_member_part *p = &b->part[i];
        if (p->on && p->ops->take_back && (!p->ops->took || p->ops->took & took))
            p->ops->take_back(p, s);
    }
}

void svi_bank_forget(svi_bank *b, const svs_learner *host, svs_value id, double time) {
    svi_learner_each_held(host, id, bank_forget_one, b);
    svi_windows_forget(svi_bank_windows(b), id, time);
}
