/* One sample in the bank: the answer, what its label teaches, and what is taken back when it is forgotten.
 *
 * The answer is made bottom up: the host's scores are given, the other members are asked; then the experts
 * (a vote and three stacks over the members' scores), and a share over the experts. Classes are mixed as
 * probabilities, which a slope or a calibrator makes of each expert's scores; a regression mixes values in
 * units of the targets' deviation. Scoring learns nothing. A label teaches top down: first the two layers,
 * by the scores that the members gave before they knew it, then each member.
 *
 * Every part knows a sample by the host's number: the stacks hold its rows under it, and `held_parts`
 * records which of the members over all samples learned it, so that only those take it back.
 *
 * Read in order: answer, learning, forgetting. */
#include <math.h>
#include <string.h>

#include "bank/bank_internal.h"
#include "learner/owned_model.h"
#include "learner/probability.h"

#define MIN_PROBA   1e-6  /* keeps the logs of scores finite */
#define MIN_TARGETS 16    /* regression: until then the answer is the last target, and stacks learn nothing */
#define MAX_ERROR   1e6   /* cap of a squared error, in variances of the targets */
#define MSE_KEEP    0.999 /* of the running squared error of the answer, a sample */
#define LOSS_UNIT   9     /* this many mean squared errors are a loss of 1: three deviations */
#define RECENT      0.005 /* weight of the newest loss */

/* v cut at +-limit. A NaN fails all comparisons and becomes 0. */
static double bank_bounded(double v, double limit) {
    return v > limit ? limit : v >= -limit ? v : v < -limit ? -limit : 0;
}

static double *bank_expert_proba_of(const svi_bank *b, int expert) {
    return b->proba + (size_t)expert * (size_t)b->c.stride;
}

/* ---- the answer */

/* Asks all members. They share one standardised row. Parts go from last to first, so that a part that
 * reads the features of another (member_ops.h) is scored after it. */
static void bank_score_members(svi_bank *b, const double *x, const double *host) {
    memcpy(svi_bank_of(b, SVI_MEMBER_HOST), host, (size_t)b->c.rows * sizeof *host);
    b->c.x = x;
    svi_standardiser_row(&b->standard, x, b->c.z);
    for (int i = b->c.part_count - 1; i >= 0; i--) {
        const struct svi_member_part *p = &b->part[i];
        if (p->on)
            p->ops->score(p, svi_bank_of(b, p->first));
    }
    /* x is the caller's: it must not be read in learn. z stays valid until the next row. */
    b->c.x = NULL;
}

/* The members' scores as inputs of the stacks. They are bounded, so that one wild member cannot
 * ruin P. For a regression they are in deviations from the mean target. A member that does not run
 * has 0, which adds nothing to a stack's score. Before that, values of a regression are cut at
 * twice the largest target, because they carry no information far outside. */
static void bank_prepare_inputs(svi_bank *b) {
    double *input = b->inputs, *raw = b->raw;
    for (int r = 0; r < b->c.rows; r++)
        for (uint32_t left = b->stacked; left; left &= left - 1, input++, raw++) {
            const int m = __builtin_ctz(left);
            const double s = *raw = svi_bank_runs(b, m) ? svi_bank_of(b, m)[r] : NAN;
            if (b->c.regress)
                *input = isnan(s) ? 0
                                  : bank_bounded((bank_bounded(s, 2 * b->largest) - b->c.center) / b->unit,
                                                 MAX_INPUT);
            else
                *input = bank_bounded(s, CLIP);
        }
}

/* Expert 0: the members vote for a class with their shares w, sum w = 1. Scores are in [-1, 1], like a
 * model's: 2 (sum of w for the class) - 1. */
static void bank_vote(svi_bank *b, double *expert_scores) {
    memset(expert_scores, 0, (size_t)b->c.rows * sizeof *expert_scores);
    for (int m = 0; m < svi_member_count; m++) {
        if (!svi_bank_runs(b, m))
            continue;
        const int class = svi_predicted(SVS_CLASSIFY, b->c.class_count, svi_bank_of(b, m));
        /* One row is for class 1 of two: a vote for class 0 subtracts. */
        if (b->c.rows > 1)
            expert_scores[class] += 2 * b->votes.w[m];
        else
            expert_scores[0] += class == 1 ? b->votes.w[m] : -b->votes.w[m];
    }
    for (int r = 0; r < b->c.rows && b->c.rows > 1; r++)
        expert_scores[r] -= 1;
}

/* Probabilities of expert i. Two classes use a slope without offset, which never changes the decision;
 * with more classes an offset may, and gains more than it costs. */
static void bank_expert_proba(const svi_bank *b, int i, double *p) {
    const double *expert_scores = svi_bank_expert(b, i);
    if (b->c.rows == 1) {
        svi_slope_proba(&b->slope[i], expert_scores, p);
        return;
    }
    const svs_calibration law = svi_calibrator_law(b->calibrator[i], b->c.class_count);
    svi_probabilities(&law, expert_scores, b->c.rows, p);
}

static void bank_combine(svi_bank *b) {
    const int classes = b->c.class_count;
    bank_vote(b, svi_bank_expert(b, 0));
    for (int i = 0; i < STACKS; i++)
        svi_stacks_score(b->stacks, i, b->inputs, b->c.rows, svi_bank_expert(b, 1 + i));
    /* Mixing after calibration: experts differ in scale, probabilities do not. */
    memset(b->mixed, 0, (size_t)classes * sizeof *b->mixed);
    for (int i = 0; i < EXPERTS; i++) {
        double *p = bank_expert_proba_of(b, i);
        bank_expert_proba(b, i, p);
        for (int k = 0; k < classes; k++)
            b->mixed[k] += b->experts.w[i] * p[k];
    }
    for (int k = 0; k < classes; k++)
        b->mixed[k] = fmax(b->mixed[k], MIN_PROBA);
    svi_mixture_score(b->mixture, b->raw, b->mixed, classes, b->answer);
    /* Back to scores: half the log odds, of which a slope of 2 makes the probability again. */
    if (b->c.rows == 1)
        b->final[0] = 0.5 * log(fmax(b->answer[1], MIN_PROBA) / fmax(b->answer[0], MIN_PROBA));
    else
        for (int k = 0; k < classes; k++)
            b->final[k] = log(fmax(b->answer[k], MIN_PROBA));
}

/* Regression: expert 0 is the member with the lowest recent loss; the answer is the mean of the experts'
 * values, weighted by their shares, in the targets' unit. */
static void bank_combine_values(svi_bank *b) {
    int best = SVI_MEMBER_HOST;
    for (int m = 0; m < svi_member_count; m++)
        if (svi_bank_runs(b, m) && b->recent[m] < b->recent[best])
            best = m;
    svi_bank_expert(b, 0)[0] = b->inputs[svi_bank_stacked(b, best)];
    for (int i = 0; i < STACKS; i++)
        svi_stacks_score(b->stacks, i, b->inputs, 1, svi_bank_expert(b, 1 + i));
    /* The shares add up to 1. */
    double sum = 0;
    for (int i = 0; i < EXPERTS; i++)
        sum += b->experts.w[i] * svi_bank_expert(b, i)[0];
    /* Before MIN_TARGETS the unit is a guess and the stacks have learned nothing. */
    b->final[0] = b->targets < MIN_TARGETS ? b->c.last : b->c.center + b->unit * sum;
}

/* Members, inputs of the stacks, experts, answer. Scores, inputs and probabilities of the row stay in the
 * bank: svi_bank_learn reads them. */
void svi_bank_score(svi_bank *b, const double *x, const double *host, int rows, int class_count,
                    struct svi_bank_scored *out) {
    b->c.rows = rows;
    b->c.class_count = class_count;
    bank_score_members(b, x, host);
    bank_prepare_inputs(b);
    /* With one class every answer is right and there is nothing to combine. */
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

/* Adds a target to the running mean and sum of squares (Welford), and derives the unit of stack inputs
 * from them. Called after the layers have learned, so that center and unit are those the scores were made
 * with. */
static void bank_add_target(svi_bank *b, double target) {
    const double before = target - b->mean;
    b->targets++;
    b->mean += before / (double)b->targets;
    b->spread += before * (target - b->mean);
    b->largest = fmax(b->largest, fabs(target));
    const double deviation = sqrt(b->spread / (double)b->targets);
    b->c.center = b->mean;
    b->c.last = target;
    /* A constant target has no deviation: its size serves as the unit, or 1. */
    b->unit = deviation > 0 ? deviation : b->largest > 0 ? b->largest : 1;
}

/* Recent losses: the plain mean of the first 1 / RECENT samples, then an exponential mean, so that the
 * first losses do not dominate. A member that does not run keeps its value. */
static void bank_update_recent(svi_bank *b, const double *loss) {
    const double plain = 1 / (double)++b->scored, newest = plain > RECENT ? plain : RECENT;
    for (int m = 0; m < svi_member_count; m++)
        b->recent[m] += svi_bank_runs(b, m) ? newest * (loss[m] - b->recent[m]) : 0;
}

/* Teaches the layers a target. Everything is divided by the unit that svi_bank_score used: the stacks'
 * ridge presumes values of about 1. */
static svs_code bank_learn_target(svi_bank *b, const struct svi_held_sample *held, svs_error *err) {
    double loss[SVI_MEMBERS_MAX];
    for (int m = 0; m < svi_member_count; m++) {
        const double e = (svi_bank_of(b, m)[0] - held->target) / b->unit;
        /* Capped: one outlier must not decide `recent` for long. */
        loss[m] = fmin(e * e, MAX_ERROR);
    }
    bank_update_recent(b, loss);
    svs_code code = SVS_OK;
    /* Bounded like the inputs. */
    b->stack_targets[0] = bank_bounded((held->target - b->c.center) / b->unit, MAX_INPUT);
    if (b->targets >= MIN_TARGETS) {
        /* Losses of experts relative to the running error of the answer, in [0, 1] as a share wants them. */
        const double own = (b->final[0] - b->c.center) / b->unit - b->stack_targets[0];
        for (int i = 0; i < EXPERTS; i++) {
            const double e = svi_bank_expert(b, i)[0] - b->stack_targets[0];
            loss[i] = b->error > 0 ? fmin(1, e * e / (LOSS_UNIT * b->error)) : 0;
        }
        svi_share_learn(&b->experts, loss);
        b->error += (1 - MSE_KEEP) * (bank_bounded(own * own, MAX_INPUT) - b->error);
        code = svi_stacks_learn(b->stacks, b->inputs, b->stack_targets, 1, held->weight, held->number, err);
    }
    /* Last, for it changes center and unit. */
    bank_add_target(b, held->target);
    return code;
}

static svs_code bank_learn_class(svi_bank *b, const struct svi_held_sample *held, svs_error *err) {
    double loss[SVI_MEMBERS_MAX];
    const int label = held->label;
    const double c = svi_mixture_weigh(b->mixture, held->weight), share = fmin(c, 1);
    for (int m = 0; m < svi_member_count; m++)
        /* -1 excludes a member that does not run from the shares. */
        loss[m] = svi_bank_runs(b, m)
                      ? svi_predicted(SVS_CLASSIFY, b->c.class_count, svi_bank_of(b, m)) != label
                      : -1;
    bank_update_recent(b, loss);
    svi_share_learn(&b->votes, loss);
    for (int i = 0; i < EXPERTS; i++) {
        /* Loss by the probabilities of the answer; slopes and calibrators change only after they are read. */
        loss[i] = share * (1 - bank_expert_proba_of(b, i)[label]);
        if (b->c.rows == 1)
            svi_slope_learn(&b->slope[i], svi_bank_expert(b, i)[0], bank_expert_proba_of(b, i), label, c);
        else
            svi_calibrator_learn(b->calibrator[i], svi_bank_expert(b, i), b->c.rows, b->c.class_count, label,
                                 bank_expert_proba_of(b, i));
    }
    svi_share_learn(&b->experts, loss);
    svi_mixture_learn(b->mixture, label, c);
    /* The stacks fit +1 for the sample's class and -1 for others, one row a class (stack.h). */
    for (int r = 0; r < b->c.rows; r++)
        b->stack_targets[r] = b->c.rows == 1 ? (label == 1 ? 1 : -1) : (label == r ? 1 : -1);
    return svi_stacks_learn(b->stacks, b->inputs, b->stack_targets, b->c.rows, held->weight, held->number,
                            err);
}

svs_code svi_bank_learn(svi_bank *b, const svs_learner *host, const svs_sample *s,
                        const struct svi_held_sample *held, double time, svs_error *err) {
    const struct svi_member_lesson lesson = {.host = host, .sample = s, .held = held, .time = time};
    const int classes = svs_learner_class_count(host);
    svs_code worst = SVS_OK;
    uint8_t held_parts = 0; /* held_bit of each part that will be able to take this sample back */
    /* A class first seen with this sample has no scores yet: only the members learn it. */
    if (b->c.regress)
        worst = bank_learn_target(b, held, err);
    else if (b->c.class_count > 1 && held->label < b->c.class_count)
        worst = bank_learn_class(b, held, err);
    else
        svi_mixture_count(b->mixture, held->label, svi_mixture_weigh(b->mixture, held->weight));
    /* Between the layers and the members: the layers learned in the shape of the scores, the members need
     * the new class. */
    if (classes > b->c.classes)
        svi_bank_know_classes(b, classes);
    for (int i = 0; i < b->c.part_count; i++) {
        const struct svi_member_part *p = &b->part[i];
        if (!p->on || !p->ops->learn)
            continue;
        if (p->ops->learn(p, &lesson, err) != SVS_OK)
            worst = SVS_NO_MEMORY; /* it catches up before its next sample */
        if (p->ops->held && p->ops->held(p))
            held_parts |= p->ops->held_bit;
    }
    /* After all members: the row was standardised by what was known before it, and so was each copy of it. */
    svi_standardiser_take(&b->standard, s->x);
    b->held_parts[held->number % svi_bank_held(&b->o.host)] = held_parts;
    return worst;
}

void svi_bank_help(svi_bank *b, svi_follower *helper) {
    if (helper == b->c.helper)
        return;
    b->c.helper = helper;
    for (int i = 0; i < b->c.part_count; i++)
        if (b->part[i].on && b->part[i].ops->join)
            b->part[i].ops->join(&b->part[i]);
}

/* ---- forgetting */

static void bank_forget_one(void *user, const struct svi_held_sample *s) {
    svi_bank *b = user;
    const bool known =
        b->o.host.class_rule !=
        SVS_CLASSES_BALANCED; /* the weight it was learned with; balanced classes have changed it since */
    const uint8_t held_parts = known ? b->held_parts[s->number % svi_bank_held(&b->o.host)] : 0;
    svi_stacks_forget(b->stacks, s->number);
    /* From last to first again. Fourier least squares needs the row from the neighbours, which stand
     * before it in the table: they remove it only afterwards. */
    for (int i = b->c.part_count - 1; i >= 0; i--) {
        const struct svi_member_part *p = &b->part[i];
        if (p->on && p->ops->take_back && (!p->ops->held_bit || p->ops->held_bit & held_parts))
            p->ops->take_back(p, s);
    }
}

void svi_bank_forget(svi_bank *b, const svs_learner *host, svs_value id, double time) {
    /* Parts that know samples by number first, while the host still holds them; windows know ids
     * themselves. */
    svi_learner_each_held(host, id, bank_forget_one, b);
    svi_windows_forget(svi_bank_windows(b), id, time);
}
