/* The bank: what members say, how it becomes one answer, and what each of them learns.
 *
 * Scores lie member by member, `stride` values each. A sample passes twice: svi_bank_score asks all members
 * and both layers above them; svi_bank_learn then teaches the layers what the members had said, and the
 * members the row. Losses are of what was said before the label was known, so nothing is held out.
 *
 * To read: svi_bank_score, bank_combine, svi_bank_learn. */
#include "bank/bank.h"

#include <math.h>
#include <string.h>

#include "bank/share.h"
#include "bank/stack.h"
#include "bank/windows.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "learner/owned_model.h"
#include "learner/probability.h"
#include "stats/calibrator.h"

#define EXPERTS     4 /* the share, and three stacks */
#define STACKS      3
#define CLIP        2.0 /* of a member's score in a stack */
#define SHARE_ETA   0.3
#define EXPERT_ETA  2.0
#define ALPHA       0.01
#define RIDGE       1.0
#define ROWS_MAX    65536
#define ERROR_MOST  1e6 /* of a squared error, in units of the targets spread */
#define PROBA_LEAST 1e-6
#define RECENT      0.005 /* weight of the newest loss */
#define WINDOW_ALL  3     /* of the windows: ALSVM over all */

static const struct svi_window_kind bank_windows[] = {
    {50, SVS_ALSVM}, {200, SVS_ALSVM}, {1000, SVS_ALSVM}, {0, SVS_ALSVM}, {0, SVS_FALSVM}};

struct svi_bank {
    struct svi_bank_options o;
    bool regress;
    int d, stride; /* stride: of scores, rows at most */
    struct svi_windows windows;
    svi_stacks *stacks;
    struct svi_share votes, experts;
    svi_calibrator *calibrator[EXPERTS];
    double recent[SVI_MEMBERS]; /* losses, lately */
    uint32_t on;                /* members that run, as bits */
    int64_t targets;            /* of a regression: how many, and what is known of them */
    double mean, spread, largest, center, unit;

    /* of the row at hand */
    int rows, class_count;
    double *scores;               /* SVI_MEMBERS x stride */
    double *inputs;               /* stride x SVI_MEMBERS: clipped */
    double *said;                 /* EXPERTS x stride */
    double *proba;                /* EXPERTS x stride */
    double *final, *mixed, *turn; /* stride each */
};

static int bank_window_count(const struct svi_bank_options *o) {
    return o->host.task == SVS_REGRESS ? 4 : 5; /* FALSVM has classes only */
}

static struct svi_stacks_options bank_stacks(const struct svi_bank_options *o) {
    return (struct svi_stacks_options){.members = SVI_MEMBERS,
                                       .count = STACKS,
                                       .windows = {0, 1000, 200},
                                       .ridge = RIDGE,
                                       .rows_max = ROWS_MAX,
                                       .isa = o->host.isa};
}

static bool bank_build(svi_bank *b, int d, svs_error *err) {
    const struct svi_stacks_options stacks = bank_stacks(&b->o);
    const size_t n = (size_t)b->stride;
    double **const each[] = {&b->scores, &b->inputs, &b->said, &b->proba, &b->final, &b->mixed, &b->turn};
    const size_t sizes[] = {SVI_MEMBERS * n, SVI_MEMBERS * n, EXPERTS * n, EXPERTS * n, n, n, n};
    for (size_t i = 0; i < sizeof each / sizeof each[0]; i++)
        if (!(*each[i] = svi_alloc_array(sizes[i], sizeof(double)))) {
            svi_fail_memory(err, "a bank of learners");
            return false;
        }
    for (int i = 0; i < EXPERTS && !b->regress; i++)
        if (!(b->calibrator[i] = svi_calibrator_new(b->o.host.max_classes, err)))
            return false;
    return svi_windows_init(&b->windows, &b->o.host, bank_windows, bank_window_count(&b->o), d, err) ==
               SVS_OK &&
           (b->stacks = svi_stacks_new(&stacks, err));
}

svi_bank *svi_bank_new(const struct svi_bank_options *o, int d, svs_error *err) {
    svi_bank *b = svi_alloc(sizeof *b);
    if (!b) {
        svi_fail_memory(err, "a bank of learners");
        return NULL;
    }
    b->o = *o;
    b->regress = o->host.task == SVS_REGRESS;
    b->d = d;
    b->stride = b->regress ? 1 : o->host.max_classes;
    for (int i = 0; i <= bank_window_count(o); i++) /* the host and the windows */
        b->on |= SVI_MEMBER_BIT(SVI_MEMBER_HOST + i);
    if (!bank_build(b, d, err)) {
        svi_bank_free(&b);
        return NULL;
    }
    svi_bank_reset(b);
    return b;
}

void svi_bank_free(svi_bank **pb) {
    svi_bank *b = *pb;
    if (!b)
        return;
    void *const parts[] = {b->scores, b->inputs, b->said, b->proba, b->final, b->mixed, b->turn};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        svi_free(parts[i]);
    for (int i = 0; i < EXPERTS; i++)
        svi_calibrator_free(&b->calibrator[i]);
    svi_windows_clear(&b->windows);
    svi_stacks_free(&b->stacks);
    svi_free(b);
    *pb = NULL;
}

void svi_bank_reset(svi_bank *b) {
    svi_windows_reset(&b->windows);
    svi_stacks_reset(b->stacks);
    svi_share_init(&b->votes, SVI_MEMBERS, SHARE_ETA, ALPHA);
    svi_share_init(&b->experts, EXPERTS, EXPERT_ETA, ALPHA);
    memset(b->recent, 0, sizeof b->recent);
    b->targets = 0;
    b->mean = b->spread = b->largest = b->center = 0;
    b->unit = 1;
    for (int i = 0; i < EXPERTS && !b->regress; i++)
        svi_calibrator_reset(b->calibrator[i]);
}

svs_code svi_bank_grow(svi_bank *b, int d, svs_error *err) {
    svs_code code = svi_windows_grow(&b->windows, d, err);
    b->d = code == SVS_OK ? d : b->d;
    return code;
}

void svi_bank_unscaled(svi_bank *b, int feature) {
    svi_windows_unscaled(&b->windows, feature);
}

void svi_bank_renew(svi_bank *b, int feature) {
    svi_windows_renew(&b->windows, feature);
}

void svi_bank_scale_from(svi_bank *b, int first) {
    svi_windows_scale_from(&b->windows, first);
}

svs_code svi_bank_meet_class(svi_bank *b, svs_value y, svs_error *err) {
    return svi_windows_meet_class(&b->windows, y, err);
}

/* ---- scores */

static double *bank_of(const svi_bank *b, int member) {
    return b->scores + (size_t)member * (size_t)b->stride;
}

/* The targets so far: where they lie, how far they spread, how large they are. */
static void bank_see_target(svi_bank *b, double target) {
    const double before = target - b->mean;
    b->targets++;
    b->mean += before / (double)b->targets;
    b->spread += before * (target - b->mean);
    b->largest = fmax(b->largest, fabs(target));
    const double deviation = sqrt(b->spread / (double)b->targets);
    b->center = b->mean;
    b->unit = deviation > 0 ? deviation : b->largest > 0 ? b->largest : 1;
}

#define INPUT_MOST 1e4 /* of a value of a regression, in deviations of the targets */

static double bank_bounded(double v, double most) {
    return v > most ? most : v >= -most ? v : v < -most ? -most : 0; /* NaN: 0 */
}

static void bank_ask(svi_bank *b, const double *x, const double *host) {
    memcpy(bank_of(b, SVI_MEMBER_HOST), host, (size_t)b->rows * sizeof *host);
    svi_windows_score(&b->windows, x, bank_of(b, SVI_MEMBER_WINDOW_50), b->stride);
    for (int r = 0; r < b->rows; r++)
        for (int m = 0; m < SVI_MEMBERS; m++) {
            const double s = bank_of(b, m)[r];
            b->inputs[r * SVI_MEMBERS + m] =
                b->regress ? bank_bounded((bank_bounded(s, 2 * b->largest) - b->center) / b->unit, INPUT_MOST)
                           : bank_bounded(s, CLIP);
        }
}

/* Votes of the members for each class, by their shares: scores as of a model. */
static void bank_vote(svi_bank *b, double *said) {
    memset(said, 0, (size_t)b->rows * sizeof *said);
    for (int m = 0; m < SVI_MEMBERS; m++) {
        const int class = svi_predicted(SVS_CLASSIFY, b->class_count, bank_of(b, m));
        if (b->rows > 1)
            said[class] += 2 * b->votes.w[m];
        else
            said[0] += class == 1 ? b->votes.w[m] : -b->votes.w[m];
    }
    for (int r = 0; r < b->rows && b->rows > 1; r++)
        said[r] -= 1;
}

static double *bank_said(const svi_bank *b, int expert) {
    return b->said + (size_t)expert * (size_t)b->stride;
}

static double *bank_proba(const svi_bank *b, int expert) {
    return b->proba + (size_t)expert * (size_t)b->stride;
}

static void bank_combine(svi_bank *b) {
    const int classes = b->class_count;
    bank_vote(b, bank_said(b, 0));
    for (int i = 0; i < STACKS; i++)
        svi_stacks_score(b->stacks, i, b->inputs, b->rows, bank_said(b, 1 + i));
    memset(b->mixed, 0, (size_t)classes * sizeof *b->mixed);
    for (int i = 0; i < EXPERTS; i++) {
        const svs_calibration law = svi_calibrator_law(b->calibrator[i], classes);
        double *p = bank_proba(b, i);
        svi_probabilities(&law, bank_said(b, i), b->rows, p);
        for (int k = 0; k < classes; k++)
            b->mixed[k] += b->experts.w[i] * p[k];
    }
    if (b->rows == 1)
        b->final[0] = 0.5 * log(fmax(b->mixed[1], PROBA_LEAST) / fmax(b->mixed[0], PROBA_LEAST));
    else
        for (int k = 0; k < classes; k++)
            b->final[k] = log(fmax(b->mixed[k], PROBA_LEAST));
}

void svi_bank_score(svi_bank *b, const double *x, const double *host, int rows, int class_count,
                    struct svi_bank_scored *out) {
    b->rows = rows;
    b->class_count = class_count;
    bank_ask(b, x, host);
    if (b->regress) {
        svi_stacks_score(b->stacks, 1, b->inputs, 1, b->final);
        b->final[0] = b->center + b->unit * b->final[0];
    } else if (class_count > 1)
        bank_combine(b);
    else
        b->final[0] = 0;
    *out = (struct svi_bank_scored){.scores = b->final,
                                    .rows = rows,
                                    .class_count = class_count,
                                    .predicted = svi_predicted(b->o.host.task, class_count, b->final)};
}

/* ---- learning */

static void bank_remember(svi_bank *b, const double *loss) {
    for (int m = 0; m < SVI_MEMBERS; m++)
        b->recent[m] += RECENT * (loss[m] - b->recent[m]);
}

/* Scores and target of a regression in a unit of their own: the stack's ridge is for values of about 1. */
static svs_code bank_learn_target(svi_bank *b, const struct svi_held_sample *held, svs_error *err) {
    double loss[SVI_MEMBERS];
    for (int m = 0; m < SVI_MEMBERS; m++) {
        const double e = (bank_of(b, m)[0] - held->target) / b->unit;
        loss[m] = fmin(e * e, ERROR_MOST);
    }
    bank_remember(b, loss);
    b->turn[0] = bank_bounded((held->target - b->center) / b->unit, INPUT_MOST);
    svs_code code = svi_stacks_learn(b->stacks, b->inputs, b->turn, 1, held->weight, held->number, err);
    bank_see_target(b, held->target);
    return code;
}

static svs_code bank_learn_class(svi_bank *b, const struct svi_held_sample *held, svs_error *err) {
    double loss[SVI_MEMBERS];
    const int label = held->label;
    for (int m = 0; m < SVI_MEMBERS; m++)
        loss[m] = svi_predicted(SVS_CLASSIFY, b->class_count, bank_of(b, m)) != label;
    bank_remember(b, loss);
    svi_share_learn(&b->votes, loss);
    for (int i = 0; i < EXPERTS; i++) {
        loss[i] = 1 - bank_proba(b, i)[label];
        svi_calibrator_learn(b->calibrator[i], bank_said(b, i), b->rows, b->class_count, label,
                             bank_proba(b, i));
    }
    svi_share_learn(&b->experts, loss);
    for (int r = 0; r < b->rows; r++)
        b->turn[r] = b->rows == 1 ? (label == 1 ? 1 : -1) : (label == r ? 1 : -1);
    return svi_stacks_learn(b->stacks, b->inputs, b->turn, b->rows, held->weight, held->number, err);
}

svs_code svi_bank_learn(svi_bank *b, const svs_sample *s, const struct svi_held_sample *held, double time,
                        svs_error *err) {
    svs_code code = SVS_OK;
    if (b->regress)
        code = bank_learn_target(b, held, err);
    else if (b->class_count > 1 && held->label < b->class_count)
        code = bank_learn_class(b, held, err);
    const svs_code members = svi_windows_learn(&b->windows, s, time, err);
    return members != SVS_OK ? members : code;
}

/* ---- forgetting */

static void bank_forget_one(void *user, const struct svi_held_sample *s) {
    svi_bank *b = user;
    svi_stacks_forget(b->stacks, s->number);
    if (b->o.host.class_rule != SVS_CLASSES_BALANCED)
        svi_learner_take_back(b->windows.of[WINDOW_ALL], s);
}

void svi_bank_forget(svi_bank *b, const svs_learner *host, svs_value id, double time) {
    svi_learner_each_held(host, id, bank_forget_one, b);
    svi_windows_forget(&b->windows, id, time);
}

/* ---- what it tells */

svs_learner *svi_bank_best_linear(svi_bank *b, svs_learner *host, int *member) {
    int best = SVI_MEMBER_HOST;
    for (int i = 0; i < b->windows.count; i++)
        if (b->recent[SVI_MEMBER_WINDOW_50 + i] < b->recent[best])
            best = SVI_MEMBER_WINDOW_50 + i;
    *member = best;
    return best == SVI_MEMBER_HOST ? host : b->windows.of[best - SVI_MEMBER_WINDOW_50];
}

const double *svi_bank_member_scores(const svi_bank *b, int member, int *rows, int *class_count) {
    if (rows)
        *rows = b->rows;
    if (class_count)
        *class_count = b->class_count;
    return b->on >> member & 1 ? bank_of(b, member) : NULL;
}

double svi_bank_recent(const svi_bank *b, int member) {
    return b->recent[member];
}

/* ---- the archive */

void svi_bank_archive(struct svi_archive *a, svi_bank *b) {
    svi_archive_int(a, "features", &b->d, 0, b->o.host.max_features);
    svi_windows_archive(a, &b->windows);
    svi_stacks_archive(a, b->stacks);
    svi_archive_finite(a, "recent", b->recent, SVI_MEMBERS);
    svi_share_archive(a, &b->votes);
    svi_share_archive(a, &b->experts);
    for (int i = 0; i < EXPERTS && !b->regress && svi_archive_ok(a); i++)
        svi_calibrator_archive(a, b->calibrator[i]);
}

double svi_bank_memory(const struct svi_bank_options *o, int d, int classes) {
    const struct svi_stacks_options stacks = bank_stacks(o);
    const double n = o->host.task == SVS_REGRESS ? 1 : o->host.max_classes;
    return svi_windows_memory(&o->host, bank_windows, bank_window_count(o), d, classes) +
           svi_stacks_memory(&stacks) + 8 * n * (2 * SVI_MEMBERS + 2 * EXPERTS + 3) +
           (o->host.task == SVS_REGRESS ? 0 : EXPERTS * svi_calibrator_memory(o->host.max_classes)) +
           (double)sizeof(svi_bank);
}
