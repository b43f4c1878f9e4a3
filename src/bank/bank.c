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

#include "bank/block.h"
#include "bank/fourier_ridge.h"
#include "bank/neighbours.h"
#include "bank/share.h"
#include "bank/slope.h"
#include "bank/stack.h"
#include "bank/standardiser.h"
#include "bank/windows.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "model/owned_model.h"
#include "model/probability.h"

#define EXPERTS        4 /* the share, and three stacks */
#define STACKS         3
#define BLOCKS         3
#define CLIP           2.0 /* of a member's score in a stack */
#define VOTE_ETA       0.3
#define VOTE_ALPHA     0.001
#define EXPERT_ETA     2.0
#define EXPERT_ALPHA   0.003
#define RIDGE          1.0
#define RIDGE_REGRESS  0.1
#define FADING         0.99
#define TARGETS_FEW    16 /* of a regression: the stacks begin after them */
#define MSE_KEEP       0.999
#define LOSS_UNIT      9 /* mean squared errors that are a loss of 1 */
#define ROWS_MAX       65536
#define ERROR_MOST     1e6 /* of a squared error, in units of the targets spread */
#define PROBA_LEAST    1e-6
#define NEAR_ROWS      5000
#define NEAR_LAST      200
#define NEAR_COUNT     5
#define NEAR_FEW       3
#define FOURIER        2 /* of the blocks */
#define EXACT_FEATURES 208
#define RECENT         0.005 /* weight of the newest loss */
#define WINDOW_ALL     3     /* of the windows: ALSVM over all */
#define MEMBERS_ALL    1e6   /* microseconds: every member fits */
#define TOOK_ALL       1     /* ALSVM over all has learned a sample that the host holds */
#define TOOK_EXACT     2     /* so has Fourier least squares */

static const struct svi_window_kind bank_windows[] = {{50, SVS_ALSVM, 1},     {200, SVS_ALSVM, 1},
                                                      {1000, SVS_ALSVM, 1},   {0, SVS_ALSVM, 1},
                                                      {0, SVS_ALSVM, FADING}, {0, SVS_FALSVM, 1}};

/* The first-order members: the first of them in the table, and how many of its heads. */
static const struct bank_block {
    int member;
    struct svi_block_options classify, regress;
} bank_blocks[] = {
    {SVI_MEMBER_PA,
     {.kind = SVI_BLOCK_RAW,
      .head_count = 3,
      .head = {{SVI_STEP_PA, 1, 0, 0}, {SVI_STEP_PA, 0.01F, 0, 0}, {SVI_STEP_ADAGRAD, 0.3F, 0, 0.999F}}},
     {.kind = SVI_BLOCK_RAW, .head_count = 2, .head = {{SVI_STEP_NLMS, 1, 0}, {SVI_STEP_NLMS, 0.1F, 0}}}},
    {SVI_MEMBER_PRODUCTS,
     {.kind = SVI_BLOCK_PRODUCTS,
      .head_count = 2,
      .head = {{SVI_STEP_ADAGRAD, 0.3F, 0, 0}, {SVI_STEP_ADAGRAD, 0.03F, 0, 0}}},
     {.kind = SVI_BLOCK_PRODUCTS, .head_count = 1, .head = {{SVI_STEP_NLMS, 0.1F, 0}}}},
    {SVI_MEMBER_FOURIER_ADAGRAD,
     {.kind = SVI_BLOCK_FOURIER,
      .head_count = 3,
      .head = {{SVI_STEP_ADAGRAD, 0.3F, 0, 0}, {SVI_STEP_PA, 0.01F, 0, 0}, {SVI_STEP_PA, 0.001F, 0, 0}}},
     {.kind = SVI_BLOCK_FOURIER, .head_count = 1, .head = {{SVI_STEP_NLMS, 0.1F, 0}}}},
};

struct svi_bank {
    struct svi_bank_options o;
    bool regress;
    int d, stride;  /* stride: of scores, rows at most */
    int classes;    /* that the host knows, as all parts do */
    uint8_t *took;  /* by number modulo the host's window: TOOK_ALL, TOOK_EXACT */
    uint8_t *plain; /* by feature: it is never scaled; max_features flags */
    struct svi_windows windows;
    struct svi_standardiser standard;
    struct svi_block block[BLOCKS];
    struct svi_neighbours near;
    int64_t near_from; /* a row's number with the host, less that among the neighbours */
    struct svi_fourier_ridge exact;
    float *phi;    /* of the row at hand, for it */
    bool expanded; /* there is one */
    svi_stacks *stacks;
    struct svi_share votes, experts;
    struct svi_slope slope[EXPERTS];
    double recent[SVI_MEMBERS]; /* losses, lately */
    int64_t judged;             /* samples that are in these */
    uint32_t on;                /* members that run, as bits */
    int64_t targets;            /* of a regression: how many, and what is known of them */
    double mean, spread, largest, center, unit, last, error;

    /* of the row at hand */
    int rows, class_count;
    float *z;                     /* standardised */
    double *scores;               /* SVI_MEMBERS x stride */
    double *inputs;               /* stride x SVI_MEMBERS: clipped */
    double *said;                 /* EXPERTS x stride */
    double *proba;                /* EXPERTS x stride */
    double *final, *mixed, *turn; /* stride each */
};

static int bank_window_count(const struct svi_bank_options *o) {
    return o->host.task == SVS_REGRESS ? 5 : 6; /* FALSVM has classes only */
}

static struct svi_stacks_options bank_stacks(const struct svi_bank_options *o) {
    return (struct svi_stacks_options){.members = SVI_MEMBERS,
                                       .count = STACKS,
                                       .windows = {0, 1000, 200},
                                       .ridge = o->host.task == SVS_REGRESS ? RIDGE_REGRESS : RIDGE,
                                       .rows_max = ROWS_MAX,
                                       .isa = o->host.isa};
}

static size_t bank_padded(int d) {
    return ((size_t)d + SVI_FLOATS_PAD - 1) / SVI_FLOATS_PAD * SVI_FLOATS_PAD;
}

/* Samples that the host holds at most. */
static int64_t bank_held(const svi_bank *b) {
    return b->o.host.window > 0 ? b->o.host.window : 1;
}

static bool bank_runs(const svi_bank *b, int member) {
    return b->on >> member & 1;
}

static uint32_t bank_windows_on(const svi_bank *b) {
    return b->on >> SVI_MEMBER_WINDOW_50;
}

static const struct svi_block_options *bank_block_options(const svi_bank *b, int i) {
    return b->regress ? &bank_blocks[i].regress : &bank_blocks[i].classify;
}

static bool bank_new_blocks(svi_bank *b, svs_error *err) {
    for (int i = 0; i < BLOCKS; i++) {
        struct svi_block_options o = *bank_block_options(b, i);
        o.task = b->o.host.task;
        o.seed = b->o.seed;
        o.isa = b->o.host.isa;
        if (!bank_runs(b, bank_blocks[i].member))
            continue;
        if (svi_block_init(&b->block[i], &o, err) != SVS_OK ||
            (!b->regress && svi_block_reserve_classes(&b->block[i], b->o.host.max_classes, err) != SVS_OK))
            return false;
    }
    return true;
}

static bool bank_new_exact(svi_bank *b, int d, svs_error *err) {
    b->phi = svi_alloc_array((size_t)EXACT_FEATURES + (size_t)b->o.host.max_features, sizeof *b->phi);
    if (!b->phi)
        svi_fail_memory(err, "Fourier features");
    return b->phi && svi_fourier_ridge_init(&b->exact, b->o.host.task, EXACT_FEATURES + d,
                                            b->o.host.max_classes, b->o.host.isa, err) == SVS_OK;
}

/* All parts but the windows have d features. The standardiser comes last: rows have zeros where parts that
 * had no memory have no features. */
static svs_code bank_widen(svi_bank *b, int d, svs_error *err) {
    svs_code code = SVS_OK;
    for (int i = 0; i < BLOCKS && code == SVS_OK; i++)
        if (bank_runs(b, bank_blocks[i].member))
            code = svi_block_grow(&b->block[i], d, err);
    if (code == SVS_OK && bank_runs(b, SVI_MEMBER_NEAREST))
        code = svi_neighbours_grow(&b->near, d, err);
    if (code == SVS_OK && bank_runs(b, SVI_MEMBER_FOURIER_EXACT))
        code = svi_fourier_ridge_grow(&b->exact, EXACT_FEATURES + d, err);
    if (code == SVS_OK)
        code = svi_standardiser_grow(&b->standard, d, err);
    for (int j = 0; j < d && code == SVS_OK; j++)
        if (b->plain[j])
            svi_standardiser_unscale(&b->standard, j);
    return code;
}

/* Parts of members that do not run go. */
static void bank_clear_others(svi_bank *b) {
    svi_windows_keep(&b->windows, bank_windows_on(b));
    for (int i = 0; i < BLOCKS; i++)
        if (!bank_runs(b, bank_blocks[i].member))
            svi_block_clear(&b->block[i]);
    if (!bank_runs(b, SVI_MEMBER_NEAREST))
        svi_neighbours_clear(&b->near);
    if (!bank_runs(b, SVI_MEMBER_FOURIER_EXACT))
        svi_fourier_ridge_clear(&b->exact);
}

/* Members that do not fit any more into the budget go for good. */
static void bank_drop(svi_bank *b, int d, int classes) {
    b->on &= svi_members_choose(b->o.host.task, d, classes, b->o.budget);
    bank_clear_others(b);
}

/* Those that run, with nothing learned. */
static bool bank_build_members(svi_bank *b, int d, svs_error *err) {
    return svi_windows_init(&b->windows, &b->o.host, bank_windows, bank_window_count(&b->o),
                            bank_windows_on(b), d, err) == SVS_OK &&
           bank_new_blocks(b, err) &&
           (!bank_runs(b, SVI_MEMBER_NEAREST) ||
            svi_neighbours_init(&b->near, NEAR_ROWS, d, b->o.host.isa, err) == SVS_OK) &&
           (!bank_runs(b, SVI_MEMBER_FOURIER_EXACT) || bank_new_exact(b, d, err)) &&
           bank_widen(b, d, err) == SVS_OK;
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
    b->plain = svi_alloc_array((size_t)b->o.host.max_features, sizeof *b->plain);
    b->z = svi_alloc_array(bank_padded(b->o.host.max_features), sizeof *b->z);
    b->took = svi_alloc_array((size_t)bank_held(b), sizeof *b->took);
    if (!b->plain || !b->z || !b->took) {
        svi_fail_memory(err, "a bank of learners");
        return false;
    }
    return svi_standardiser_init(&b->standard, b->o.host.isa, err) == SVS_OK &&
           bank_build_members(b, d, err) && (b->stacks = svi_stacks_new(&stacks, err));
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
    b->on = svi_members_choose(o->host.task, d, 0, o->budget);
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
    svi_windows_clear(&b->windows);
    svi_standardiser_clear(&b->standard);
    svi_neighbours_clear(&b->near);
    svi_fourier_ridge_clear(&b->exact);
    svi_free(b->phi);
    for (int i = 0; i < BLOCKS; i++)
        svi_block_clear(&b->block[i]);
    svi_stacks_free(&b->stacks);
    svi_free(b->plain);
    svi_free(b->took);
    svi_free(b->z);
    svi_free(b);
    *pb = NULL;
}

/* The parts that count classes by themselves know as many as the host. */
static void bank_know_classes(svi_bank *b, int classes) {
    b->classes = classes > b->classes ? classes : b->classes;
    for (int i = 0; i < BLOCKS && !b->regress; i++)
        if (bank_runs(b, bank_blocks[i].member))
            svi_block_add_classes(&b->block[i], b->classes);
    if (!b->regress && bank_runs(b, SVI_MEMBER_FOURIER_EXACT))
        svi_fourier_ridge_classes(&b->exact, b->classes);
}

void svi_bank_reset(svi_bank *b) {
    svi_windows_reset(&b->windows);
    svi_standardiser_empty(&b->standard);
    svi_neighbours_empty(&b->near);
    if (bank_runs(b, SVI_MEMBER_FOURIER_EXACT))
        svi_fourier_ridge_empty(&b->exact);
    for (int i = 0; i < BLOCKS; i++)
        if (bank_runs(b, bank_blocks[i].member))
            svi_block_empty(&b->block[i]);
    bank_know_classes(b, b->classes);
    b->expanded = false;
    svi_stacks_reset(b->stacks);
    svi_share_init(&b->votes, SVI_MEMBERS, VOTE_ETA, VOTE_ALPHA);
    svi_share_init(&b->experts, EXPERTS, EXPERT_ETA, EXPERT_ALPHA);
    memset(b->recent, 0, sizeof b->recent);
    b->judged = 0;
    b->targets = 0;
    b->mean = b->spread = b->largest = b->center = b->last = b->error = 0;
    b->unit = 1;
    for (int i = 0; i < EXPERTS; i++)
        svi_slope_init(&b->slope[i]);
}

svs_code svi_bank_grow(svi_bank *b, int d, svs_error *err) {
    bank_drop(b, d, b->classes);
    svs_code code = svi_windows_grow(&b->windows, d, err);
    if (code == SVS_OK)
        code = bank_widen(b, d, err);
    b->d = code == SVS_OK ? d : b->d;
    return code;
}

bool svi_bank_follows(const svi_bank *b, const svs_learner *host) {
    bool good = b->d == svs_learner_dimension(host) && b->classes == svs_learner_class_count(host);
    for (int k = 0; good && k < b->classes; k++)
        for (int i = 0; good && i < b->windows.count; i++)
            good = !b->windows.of[i] ||
                   svs_value_equal(svs_learner_class(b->windows.of[i], k), svs_learner_class(host, k));
    return good;
}

void svi_bank_unscaled(svi_bank *b, int feature) {
    svi_windows_unscaled(&b->windows, feature);
    if (feature >= b->o.host.max_features)
        return;
    b->plain[feature] = true;
    if (feature < b->standard.d)
        svi_standardiser_unscale(&b->standard, feature);
}

void svi_bank_renew(svi_bank *b, int feature) {
    svi_windows_renew(&b->windows, feature);
    svi_standardiser_renew(&b->standard, feature);
    if (b->plain[feature])
        svi_standardiser_unscale(&b->standard, feature);
    for (int i = 0; i < BLOCKS; i++)
        if (bank_runs(b, bank_blocks[i].member))
            svi_block_renew(&b->block[i], feature);
    if (bank_runs(b, SVI_MEMBER_NEAREST))
        svi_neighbours_renew(&b->near, feature);
    if (bank_runs(b, SVI_MEMBER_FOURIER_EXACT))
        svi_fourier_ridge_forget_feature(&b->exact, EXACT_FEATURES + feature);
}

void svi_bank_scale_from(svi_bank *b, int first) {
    svi_windows_scale_from(&b->windows, first);
    for (int j = first; j < b->o.host.max_features; j++)
        b->plain[j] = false;
}

svs_code svi_bank_meet_class(svi_bank *b, svs_value y, svs_error *err) {
    svs_code code = svi_windows_meet_class(&b->windows, y, err);
    if (code == SVS_OK)
        bank_know_classes(b, b->classes + 1);
    return code;
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
    b->last = target;
    b->unit = deviation > 0 ? deviation : b->largest > 0 ? b->largest : 1;
}

#define INPUT_MOST 1e4 /* of a value of a regression, in deviations of the targets */

static double bank_bounded(double v, double most) {
    return v > most ? most : v >= -most ? v : v < -most ? -most : 0; /* NaN: 0 */
}

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
        bank_poll(b, of, found < NEAR_FEW ? found : NEAR_FEW, bank_of(b, SVI_MEMBER_NEAREST));
    else
        bank_poll(b, &last, last.number >= 0, bank_of(b, SVI_MEMBER_NEAREST));
    bank_poll(b, of, found, bank_of(b, SVI_MEMBER_NEAREST_5));
}

static void bank_ask_block(svi_bank *b, int i) {
    struct svi_block *k = &b->block[i];
    const int rows = svi_block_rows(k);
    svi_block_score(k, b->z, b->said); /* which has not been said yet */
    for (int h = 0; h < k->o.head_count; h++)
        memcpy(bank_of(b, bank_blocks[i].member + h), b->said + (size_t)h * (size_t)rows,
               (size_t)rows * sizeof *b->said);
}

/* The first Fourier features and z, in this order, so that features which come are the last. False: the
 * Fourier features are not drawn yet. */
static bool bank_phi(svi_bank *b, const float *z) {
    int count;
    const float *f = svi_block_features(&b->block[FOURIER], &count);
    if (count < EXACT_FEATURES)
        return false;
    memcpy(b->phi, f, EXACT_FEATURES * sizeof *b->phi);
    memcpy(b->phi + EXACT_FEATURES, z, (size_t)b->d * sizeof *b->phi);
    return true;
}

static void bank_ask_exact(svi_bank *b) {
    double *scores = bank_of(b, SVI_MEMBER_FOURIER_EXACT);
    b->expanded = bank_phi(b, b->z);
    if (b->expanded)
        svi_fourier_ridge_score(&b->exact, b->phi, scores);
    else
        memset(scores, 0, (size_t)b->rows * sizeof *scores);
}

static void bank_ask(svi_bank *b, const double *x, const double *host) {
    memcpy(bank_of(b, SVI_MEMBER_HOST), host, (size_t)b->rows * sizeof *host);
    svi_windows_score(&b->windows, x, bank_of(b, SVI_MEMBER_WINDOW_50), b->stride, b->rows);
    svi_standardiser_row(&b->standard, x, b->z);
    for (int i = 0; i < BLOCKS; i++)
        if (bank_runs(b, bank_blocks[i].member))
            bank_ask_block(b, i);
    if (bank_runs(b, SVI_MEMBER_NEAREST))
        bank_ask_neighbours(b);
    if (bank_runs(b, SVI_MEMBER_LAST))
        bank_of(b, SVI_MEMBER_LAST)[0] = b->last;
    if (bank_runs(b, SVI_MEMBER_FOURIER_EXACT))
        bank_ask_exact(b);
    for (int r = 0; r < b->rows; r++)
        for (int m = 0; m < SVI_MEMBERS; m++) {
            const double s = bank_of(b, m)[r];
            double *input = &b->inputs[r * SVI_MEMBERS + m];
            if (!bank_runs(b, m))
                *input = 0;
            else if (b->regress)
                *input = bank_bounded((bank_bounded(s, 2 * b->largest) - b->center) / b->unit, INPUT_MOST);
            else
                *input = bank_bounded(s, CLIP);
        }
}

/* Votes of the members for each class, by their shares: scores as of a model. */
static void bank_vote(svi_bank *b, double *said) {
    memset(said, 0, (size_t)b->rows * sizeof *said);
    for (int m = 0; m < SVI_MEMBERS; m++) {
        if (!bank_runs(b, m))
            continue;
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
        double *p = bank_proba(b, i);
        svi_slope_proba(&b->slope[i], bank_said(b, i), b->rows, p);
        for (int k = 0; k < classes; k++)
            b->mixed[k] += b->experts.w[i] * p[k];
    }
    if (b->rows == 1)
        b->final[0] = 0.5 * log(fmax(b->mixed[1], PROBA_LEAST) / fmax(b->mixed[0], PROBA_LEAST));
    else
        for (int k = 0; k < classes; k++)
            b->final[k] = log(fmax(b->mixed[k], PROBA_LEAST));
}

/* Of a regression: the stacks and the member that is best lately, by their shares. */
static void bank_combine_values(svi_bank *b) {
    int best = SVI_MEMBER_HOST;
    for (int m = 0; m < SVI_MEMBERS; m++)
        if (bank_runs(b, m) && b->recent[m] < b->recent[best])
            best = m;
    bank_said(b, 0)[0] = b->inputs[best];
    for (int i = 0; i < STACKS; i++)
        svi_stacks_score(b->stacks, i, b->inputs, 1, bank_said(b, 1 + i));
    double sum = 0;
    for (int i = 0; i < EXPERTS; i++)
        sum += b->experts.w[i] * bank_said(b, i)[0];
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

/* ---- learning */

/* The plain mean at first, then one that fades. */
static void bank_remember(svi_bank *b, const double *loss) {
    const double plain = 1 / (double)++b->judged, newest = plain > RECENT ? plain : RECENT;
    for (int m = 0; m < SVI_MEMBERS; m++)
        b->recent[m] += bank_runs(b, m) ? newest * (loss[m] - b->recent[m]) : 0;
}

/* Scores and target of a regression in a unit of their own: the stack's ridge is for values of about 1. */
static svs_code bank_learn_target(svi_bank *b, const struct svi_held_sample *held, svs_error *err) {
    double loss[SVI_MEMBERS];
    for (int m = 0; m < SVI_MEMBERS; m++) {
        const double e = (bank_of(b, m)[0] - held->target) / b->unit;
        loss[m] = fmin(e * e, ERROR_MOST);
    }
    bank_remember(b, loss);
    svs_code code = SVS_OK;
    b->turn[0] = bank_bounded((held->target - b->center) / b->unit, INPUT_MOST);
    if (b->targets >= TARGETS_FEW) {
        const double own = (b->final[0] - b->center) / b->unit - b->turn[0];
        for (int i = 0; i < EXPERTS; i++) {
            const double e = bank_said(b, i)[0] - b->turn[0];
            loss[i] = b->error > 0 ? fmin(1, e * e / (LOSS_UNIT * b->error)) : 0;
        }
        svi_share_learn(&b->experts, loss);
        b->error += (1 - MSE_KEEP) * (bank_bounded(own * own, INPUT_MOST) - b->error);
        code = svi_stacks_learn(b->stacks, b->inputs, b->turn, 1, held->weight, held->number, err);
    }
    bank_see_target(b, held->target);
    return code;
}

static svs_code bank_learn_class(svi_bank *b, const struct svi_held_sample *held, svs_error *err) {
    double loss[SVI_MEMBERS];
    const int label = held->label;
    for (int m = 0; m < SVI_MEMBERS; m++)
        loss[m] = bank_runs(b, m) ? svi_predicted(SVS_CLASSIFY, b->class_count, bank_of(b, m)) != label : -1;
    bank_remember(b, loss);
    svi_share_learn(&b->votes, loss);
    for (int i = 0; i < EXPERTS; i++) {
        loss[i] = 1 - bank_proba(b, i)[label];
        svi_slope_learn(&b->slope[i], bank_said(b, i), b->rows, bank_proba(b, i), label);
    }
    svi_share_learn(&b->experts, loss);
    for (int r = 0; r < b->rows; r++)
        b->turn[r] = b->rows == 1 ? (label == 1 ? 1 : -1) : (label == r ? 1 : -1);
    return svi_stacks_learn(b->stacks, b->inputs, b->turn, b->rows, held->weight, held->number, err);
}

static void bank_learn_block(svi_bank *b, struct svi_block *k, const struct svi_held_sample *held) {
    if (b->regress)
        svi_block_learn_target(k, held->target, held->weight);
    else
        svi_block_learn(k, held->label, held->weight);
}

static void bank_learn_exact(svi_bank *b, const struct svi_held_sample *held) {
    if (b->expanded)
        svi_fourier_ridge_learn(&b->exact, b->phi, held->label, held->target, held->weight);
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
    svs_code code = bank_align_neighbours(b, held->number, err);
    if (code == SVS_OK)
        b->near_from = held->number - svi_neighbours_push(&b->near, b->z, held->label, held->target);
    return code == SVS_OK ? before : code;
}

/* Which members can take this sample back once it is known by its number alone. */
static void bank_note_took(svi_bank *b, int64_t number) {
    const bool all = b->windows.of[WINDOW_ALL] && b->windows.step[WINDOW_ALL].learned;
    const bool exact = bank_runs(b, SVI_MEMBER_FOURIER_EXACT) && b->expanded;
    b->took[number % bank_held(b)] = (uint8_t)((all ? TOOK_ALL : 0) | (exact ? TOOK_EXACT : 0));
}

svs_code svi_bank_learn(svi_bank *b, const svs_learner *host, const svs_sample *s,
                        const struct svi_held_sample *held, double time, svs_error *err) {
    svs_code code = SVS_OK;
    if (b->regress)
        code = bank_learn_target(b, held, err);
    else if (b->class_count > 1 && held->label < b->class_count)
        code = bank_learn_class(b, held, err);
    bank_know_classes(b, svs_learner_class_count(host));
    if (bank_runs(b, SVI_MEMBER_FOURIER_EXACT))
        bank_learn_exact(b, held);
    for (int i = 0; i < BLOCKS; i++)
        if (bank_runs(b, bank_blocks[i].member))
            bank_learn_block(b, &b->block[i], held);
    if (bank_runs(b, SVI_MEMBER_NEAREST))
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
    memcpy(b->z, z, bank_padded(b->near.d) * sizeof *b->z);
    svi_block_score(&b->block[FOURIER], b->z, b->said);
    if (bank_phi(b, b->z))
        svi_fourier_ridge_take_back(&b->exact, b->phi, s->label, s->target, s->weight);
    b->expanded = false;
}

static void bank_forget_one(void *user, const struct svi_held_sample *s) {
    svi_bank *b = user;
    const uint8_t took = b->o.host.class_rule != SVS_CLASSES_BALANCED ? b->took[s->number % bank_held(b)] : 0;
    svi_stacks_forget(b->stacks, s->number);
    if (took & TOOK_EXACT && bank_runs(b, SVI_MEMBER_FOURIER_EXACT))
        bank_forget_exact(b, s);
    if (bank_runs(b, SVI_MEMBER_NEAREST))
        svi_neighbours_remove(&b->near, s->number - b->near_from);
    if (took & TOOK_ALL && b->windows.of[WINDOW_ALL])
        svi_learner_take_back(b->windows.of[WINDOW_ALL], s);
}

void svi_bank_forget(svi_bank *b, const svs_learner *host, svs_value id, double time) {
    svi_learner_each_held(host, id, bank_forget_one, b);
    svi_windows_forget(&b->windows, id, time);
}

void svi_bank_move_times(svi_bank *b, double from, double step) {
    svi_windows_move_times(&b->windows, from, step);
}

/* ---- what it tells */

svs_learner *svi_bank_best_linear(svi_bank *b, svs_learner *host, int *member) {
    int best = SVI_MEMBER_HOST;
    for (int i = 0; i < b->windows.count; i++)
        if (b->windows.of[i] && b->recent[SVI_MEMBER_WINDOW_50 + i] < b->recent[best])
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

/* ---- what must hold */

/* As many features and classes as the bank, in all that counts them by itself. */
static const char *bank_shape_wrong(const svi_bank *b) {
    bool good = b->standard.d == b->d;
    for (int i = 0; i < BLOCKS; i++)
        if (bank_runs(b, bank_blocks[i].member))
            good &= b->block[i].d == b->d && b->block[i].classes == (b->regress ? 0 : b->classes);
    for (int i = 0; i < b->windows.count; i++)
        if (b->windows.of[i])
            good &= svs_learner_dimension(b->windows.of[i]) == b->d &&
                    svs_learner_class_count(b->windows.of[i]) == b->classes;
    if (bank_runs(b, SVI_MEMBER_NEAREST))
        good &= b->near.d == b->d;
    if (bank_runs(b, SVI_MEMBER_FOURIER_EXACT))
        good &=
            b->exact.dim == 1 + EXACT_FEATURES + b->d && b->exact.classes == (b->regress ? 0 : b->classes);
    return good ? NULL : "the members of a bank differ in features or classes";
}

/* Rows are held under numbers of samples that the host holds. */
static const char *bank_held_wrong(const svi_bank *b, const svs_learner *host) {
    const double *row;
    int64_t number;
    for (int64_t i = 0; svi_learner_held_row(host, i, &row, &number); i++) {
        if (row)
            continue;
        if (svi_stacks_holds(b->stacks, number))
            return "a stack holds a sample that the host has let go";
        if (bank_runs(b, SVI_MEMBER_NEAREST) && svi_neighbours_row(&b->near, number - b->near_from))
            return "a sample that the host has let go is found among the neighbours";
    }
    return NULL;
}

const char *svi_bank_check(svi_bank *b, const svs_learner *host, double error) {
    const char *wrong = bank_shape_wrong(b);
    if (!wrong && !svi_bank_follows(b, host))
        wrong = "the bank has other features or classes than the host";
    if (!wrong)
        wrong = bank_held_wrong(b, host);
    for (int i = 0; i < STACKS && !wrong; i++)
        if (!(svi_stacks_check(b->stacks, i) <= error))
            wrong = "a stack is not what follows from what it holds";
    return wrong ? wrong : svi_windows_check(&b->windows, host, error);
}

void svi_bank_parts(const svi_bank *b, struct svi_bank_parts *p) {
    const struct svi_stacks_options stacks = bank_stacks(&b->o);
    *p = (struct svi_bank_parts){.task = b->o.host.task,
                                 .on = b->on,
                                 .windows = &b->windows,
                                 .raw = bank_runs(b, bank_blocks[0].member) ? &b->block[0] : NULL,
                                 .fourier =
                                     bank_runs(b, bank_blocks[FOURIER].member) ? &b->block[FOURIER] : NULL,
                                 .standard = &b->standard,
                                 .stacks = b->stacks,
                                 .votes = &b->votes,
                                 .experts = &b->experts,
                                 .slope = b->slope,
                                 .clip = b->regress ? INPUT_MOST : CLIP,
                                 .center = b->center,
                                 .unit = b->unit};
    memcpy(p->stack_windows, stacks.windows, sizeof p->stack_windows);
}

/* ---- the archive */

/* Of a regression: what is known of the targets. */
static void bank_archive_targets(struct svi_archive *a, svi_bank *b) {
    double *const figures[] = {&b->mean, &b->spread, &b->largest, &b->center, &b->unit, &b->last, &b->error};
    static const char *const names[] = {"mean", "spread", "largest", "center", "unit", "last", "error"};
    svi_archive_int64(a, "targets", &b->targets, 0, INT64_MAX / 2);
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        svi_archive_finite(a, names[i], figures[i], 1);
    svi_archive_check(a, b->spread >= 0 && b->largest >= 0 && b->unit > 0 && b->error >= 0,
                      "what is known of the targets is out of range");
}

static void bank_archive_exact(struct svi_archive *a, svi_bank *b) {
    if (!a->loading || svi_fourier_ridge_grow(&b->exact, EXACT_FEATURES + b->d, a->err) == SVS_OK)
        svi_fourier_ridge_archive(a, &b->exact);
}

/* Which members run: those that have not gone since the bank was made, whatever would be chosen for the
 * features and classes of now. Loading: into a new bank of `begun` features, whose choice may be another. */
static void bank_archive_members(struct svi_archive *a, svi_bank *b, int begun) {
    const uint32_t most = svi_members_choose(b->o.host.task, begun, 0, MEMBERS_ALL);
    int on = (int)b->on;
    svi_archive_int(a, "members", &on, 0, (1 << SVI_MEMBERS) - 1);
    if (!a->loading ||
        !svi_archive_check(a, ((uint32_t)on & ~most) == 0 && (on & 1), "it has members that no bank has") ||
        (uint32_t)on == b->on)
        return;
    b->on = 0;
    bank_clear_others(b);
    svi_free(b->phi);
    b->phi = NULL;
    b->on = (uint32_t)on;
    if (!bank_build_members(b, begun, a->err) && svi_archive_ok(a))
        svi_archive_fail(a, SVS_NO_MEMORY, "no memory for a bank of learners");
}

void svi_bank_archive(struct svi_archive *a, svi_bank *b) {
    const int begun = b->d;
    svi_archive_int(a, "features", &b->d, 0, b->o.host.max_features);
    svi_archive_int(a, "classes", &b->classes, 0, b->regress ? 0 : b->o.host.max_classes);
    bank_archive_members(a, b, begun);
    if (!svi_archive_ok(a))
        return;
    svi_windows_archive(a, &b->windows);
    svi_standardiser_archive(a, &b->standard, b->o.host.max_features);
    svi_archive_int64(a, "neighbours from", &b->near_from, INT64_MIN / 2, INT64_MAX / 2);
    if (bank_runs(b, SVI_MEMBER_NEAREST))
        svi_neighbours_archive(a, &b->near, b->regress ? 0 : b->o.host.max_classes);
    if (bank_runs(b, SVI_MEMBER_FOURIER_EXACT) && svi_archive_ok(a))
        bank_archive_exact(a, b);
    for (int i = 0; i < BLOCKS && svi_archive_ok(a); i++)
        if (bank_runs(b, bank_blocks[i].member))
            svi_block_archive(a, &b->block[i], b->o.host.max_features, b->o.host.max_classes);
    svi_stacks_archive(a, b->stacks);
    svi_archive_bytes(a, "took", b->took, bank_held(b));
    if (b->regress)
        bank_archive_targets(a, b);
    svi_archive_int64(a, "judged", &b->judged, 0, INT64_MAX / 2);
    svi_archive_finite(a, "recent", b->recent, SVI_MEMBERS);
    svi_share_archive(a, &b->votes);
    svi_share_archive(a, &b->experts);
    for (int i = 0; i < EXPERTS && svi_archive_ok(a); i++)
        svi_slope_archive(a, &b->slope[i]);
    if (a->loading && svi_archive_ok(a)) {
        const char *wrong = bank_shape_wrong(b);
        svi_archive_check(a, !wrong, wrong);
    }
}

double svi_bank_memory(const struct svi_bank_options *o, int d, int classes) {
    const struct svi_stacks_options stacks = bank_stacks(o);
    const double n = o->host.task == SVS_REGRESS ? 1 : o->host.max_classes;
    return svi_windows_memory(&o->host, bank_windows, bank_window_count(o), ~0U, d, classes) +
           svi_stacks_memory(&stacks) + 8 * n * (2 * SVI_MEMBERS + 2 * EXPERTS + 3) +
           (double)sizeof(svi_bank);
}
