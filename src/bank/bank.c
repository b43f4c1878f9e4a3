/* The bank: its members, made for a stream, grown with it, and dropped where they do not fit any more.
 *
 * Scores lie member by member, `stride` values each. A sample passes twice: svi_bank_score (bank_score.c)
 * asks all members and both layers above them; svi_bank_learn (bank_learn.c) then teaches the layers what the
 * members had said, and the members the row. Losses are of what was said before the label was known, so
 * nothing is held out.
 *
 * Invariants: all parts have the features and classes of the host, in its order; a member that has gone does
 * not come back; what a call could not do for want of memory is caught up with, or the bank stays as it was.
 */
#include <math.h>
#include <string.h>

#include "bank/bank_internal.h"
#include "base/alloc.h"
#include "base/arrays.h"
#include "base/fail.h"
#include "learner/learner_renew.h"

#define VOTE_ETA      0.3
#define VOTE_ALPHA    0.001
#define EXPERT_ETA    2.0
#define EXPERT_ALPHA  0.003
#define RIDGE         1.0
#define RIDGE_REGRESS 0.1
#define FADING        0.99
#define ROWS_MAX      65536
#define NEAR_ROWS     5000

static const struct svi_window_kind bank_windows[] = {{50, SVS_ALSVM, 1},     {200, SVS_ALSVM, 1},
                                                      {1000, SVS_ALSVM, 1},   {0, SVS_ALSVM, 1},
                                                      {0, SVS_ALSVM, FADING}, {0, SVS_FALSVM, 1}};

const struct svi_bank_block svi_bank_blocks[BLOCKS] = {
    {SVI_MEMBER_PA,
     {.kind = SVI_BLOCK_RAW,
      .head_count = 3,
      .head = {{SVI_STEP_PA, 1, 0}, {SVI_STEP_PA, 0.01F, 0}, {SVI_STEP_ADAGRAD, 0.3F, 0.999F}}},
     {.kind = SVI_BLOCK_RAW, .head_count = 2, .head = {{SVI_STEP_NLMS, 1, 0}, {SVI_STEP_NLMS, 0.1F, 0}}}},
    {SVI_MEMBER_PRODUCTS,
     {.kind = SVI_BLOCK_PRODUCTS,
      .head_count = 2,
      .head = {{SVI_STEP_ADAGRAD, 0.3F, 0}, {SVI_STEP_ADAGRAD, 0.03F, 0}}},
     {.kind = SVI_BLOCK_PRODUCTS, .head_count = 1, .head = {{SVI_STEP_NLMS, 0.1F, 0}}}},
    {SVI_MEMBER_FOURIER_ADAGRAD,
     {.kind = SVI_BLOCK_FOURIER,
      .head_count = 3,
      .head = {{SVI_STEP_ADAGRAD, 0.3F, 0}, {SVI_STEP_PA, 0.01F, 0}, {SVI_STEP_PA, 0.001F, 0}}},
     {.kind = SVI_BLOCK_FOURIER, .head_count = 1, .head = {{SVI_STEP_NLMS, 0.1F, 0}}}},
};

static int bank_window_count(const struct svi_bank_options *o) {
    return o->host.task == SVS_REGRESS ? 5 : 6; /* FALSVM has classes only */
}

struct svi_stacks_options svi_bank_stacks(const struct svi_bank_options *o) {
    return (struct svi_stacks_options){.members = SVI_MEMBERS,
                                       .count = STACKS,
                                       .windows = {0, 1000, 200},
                                       .ridge = o->host.task == SVS_REGRESS ? RIDGE_REGRESS : RIDGE,
                                       .rows_max = ROWS_MAX,
                                       .isa = o->host.isa};
}

static uint32_t bank_windows_on(const svi_bank *b) {
    return b->on >> SVI_MEMBER_WINDOW_50;
}

static struct svi_block_options bank_block_options(const struct svi_bank_options *o, int i) {
    const struct svi_bank_block *k = &svi_bank_blocks[i];
    struct svi_block_options own = o->host.task == SVS_REGRESS ? k->regress : k->classify;
    own.task = o->host.task;
    own.seed = o->seed;
    own.isa = o->host.isa;
    return own;
}

static bool bank_new_blocks(svi_bank *b, svs_error *err) {
    for (int i = 0; i < BLOCKS; i++) {
        const struct svi_block_options o = bank_block_options(&b->o, i);
        if (!svi_bank_runs(b, svi_bank_blocks[i].member))
            continue;
        if (svi_block_init(&b->block[i], &o, err) != SVS_OK ||
            (!b->regress && svi_block_reserve_classes(&b->block[i], b->o.host.max_classes, err) != SVS_OK))
            return false;
    }
    return true;
}

/* All parts but the windows have d features. The standardiser comes last: rows have zeros where parts that
 * had no memory have no features. */
static svs_code bank_widen(svi_bank *b, int d, svs_error *err) {
    svs_code code = SVS_OK;
    for (int i = 0; i < BLOCKS && code == SVS_OK; i++)
        if (svi_bank_runs(b, svi_bank_blocks[i].member))
            code = svi_block_grow(&b->block[i], d, err);
    if (code == SVS_OK && svi_bank_runs(b, SVI_MEMBER_NEAREST))
        code = svi_neighbours_grow(&b->near, d, err);
    if (code == SVS_OK && svi_bank_runs(b, SVI_MEMBER_FOURIER_EXACT))
        code = svi_fourier_ridge_grow(&b->exact, EXACT_FEATURES + d, err);
    if (code == SVS_OK)
        code = svi_standardiser_grow(&b->standard, d, err);
    for (int j = 0; j < d && code == SVS_OK; j++)
        if (b->plain[j])
            svi_standardiser_unscale(&b->standard, j);
    return code;
}

/* Parts of members that do not run go. */
void svi_bank_clear_others(svi_bank *b) {
    svi_windows_keep(&b->windows, bank_windows_on(b));
    for (int i = 0; i < BLOCKS; i++)
        if (!svi_bank_runs(b, svi_bank_blocks[i].member))
            svi_block_clear(&b->block[i]);
    if (!svi_bank_runs(b, SVI_MEMBER_NEAREST))
        svi_neighbours_clear(&b->near);
    if (!svi_bank_runs(b, SVI_MEMBER_FOURIER_EXACT))
        svi_fourier_ridge_clear(&b->exact);
}

/* Members that do not fit any more into the budget go for good. */
void svi_bank_drop(svi_bank *b, int d, int classes) {
    b->on &= svi_members_choose(b->o.host.task, d, classes, b->o.budget);
    svi_bank_clear_others(b);
}

/* Those that run, with nothing learned. */
bool svi_bank_build_members(svi_bank *b, int d, svs_error *err) {
    return svi_windows_init(&b->windows, &b->o.host, bank_windows, bank_window_count(&b->o),
                            bank_windows_on(b), d, err) == SVS_OK &&
           bank_new_blocks(b, err) &&
           (!svi_bank_runs(b, SVI_MEMBER_NEAREST) ||
            svi_neighbours_init(&b->near, NEAR_ROWS, d, b->o.host.isa, err) == SVS_OK) &&
           (!svi_bank_runs(b, SVI_MEMBER_FOURIER_EXACT) ||
            svi_fourier_ridge_init(&b->exact, b->o.host.task, EXACT_FEATURES + d, b->o.host.max_classes,
                                   b->o.host.isa, err) == SVS_OK) &&
           bank_widen(b, d, err) == SVS_OK;
}

enum { ROWS, FEATURES, PADDED, PHI, HELD, DIMS };
static const struct svi_array bank_table[] = {
#define OWNER svi_bank
    SVI_ARRAY(OWNER, scores, NULL, SVI_AXIS_LENGTH(SVI_MEMBERS), SVI_AXIS(ROWS)),
    SVI_ARRAY(OWNER, inputs, NULL, SVI_AXIS(ROWS), SVI_AXIS_LENGTH(SVI_MEMBERS)),
    SVI_ARRAY(OWNER, said, NULL, SVI_AXIS_LENGTH(EXPERTS), SVI_AXIS(ROWS)),
    SVI_ARRAY(OWNER, proba, NULL, SVI_AXIS_LENGTH(EXPERTS), SVI_AXIS(ROWS)),
    SVI_ARRAY(OWNER, final, NULL, SVI_AXIS(ROWS)),
    SVI_ARRAY(OWNER, mixed, NULL, SVI_AXIS(ROWS)),
    SVI_ARRAY(OWNER, turn, NULL, SVI_AXIS(ROWS)),
    SVI_ARRAY(OWNER, z, NULL, SVI_AXIS(PADDED)),
    SVI_ARRAY(OWNER, phi, NULL, SVI_AXIS(PHI)),
    SVI_ARRAY(OWNER, plain, NULL, SVI_AXIS(FEATURES)),
    SVI_ARRAY(OWNER, took, NULL, SVI_AXIS(HELD)),
#undef OWNER
};
static const struct svi_arrays bank_arrays = SVI_ARRAYS_ALIGNED(bank_table, "a bank of learners");

static void bank_dims(const svs_options *host, int32_t *dims) {
    dims[ROWS] = host->task == SVS_REGRESS ? 1 : host->max_classes;
    dims[FEATURES] = host->max_features;
    dims[PADDED] = svi_round_up(host->max_features, SVI_FLOATS_PAD);
    dims[PHI] = EXACT_FEATURES + host->max_features;
    dims[HELD] = (int32_t)svi_bank_held(host);
}

static bool bank_build(svi_bank *b, int d, svs_error *err) {
    const struct svi_stacks_options stacks = svi_bank_stacks(&b->o);
    int32_t dims[DIMS];
    bank_dims(&b->o.host, dims);
    if (svi_arrays_alloc(&bank_arrays, b, dims, err) != SVS_OK)
        return false;
    b->stride = dims[ROWS];
    for (int i = 0; i < EXPERTS && !b->regress; i++)
        if (!(b->calibrator[i] = svi_calibrator_new(b->o.host.max_classes, false, err)))
            return false;
    return svi_standardiser_init(&b->standard, b->o.host.isa, err) == SVS_OK &&
           svi_bank_build_members(b, d, err) && (b->stacks = svi_stacks_new(&stacks, err));
}

/* The caller's may go; a bank that is loaded makes learners again. */
static bool bank_copy_weights(svi_bank *b, const svs_options *host, svs_error *err) {
    const size_t n = (size_t)host->class_weight_count;
    if (host->class_rule != SVS_CLASSES_GIVEN || n == 0)
        return true;
    b->given = svi_alloc_array(n, sizeof *b->given + SVS_NAME_MAX);
    if (!b->given) {
        svi_fail_memory(err, "the class weights");
        return false;
    }
    char *names = (char *)(b->given + n);
    memcpy(b->given, host->class_weight, n * sizeof *b->given);
    for (size_t i = 0; i < n; i++) {
        svs_value *label = &b->given[i].label;
        if (label->kind == SVS_STR)
            label->as.s = memcpy(names + i * SVS_NAME_MAX, label->as.s, label->length);
    }
    b->o.host.class_weight = b->given;
    return true;
}

svi_bank *svi_bank_new(const struct svi_bank_options *o, int d, svs_error *err) {
    svi_bank *b = svi_alloc(sizeof *b);
    if (!b) {
        svi_fail_memory(err, "a bank of learners");
        return NULL;
    }
    b->o = *o;
    b->o.host.class_weight = NULL;
    b->regress = o->host.task == SVS_REGRESS;
    b->d = d;
    b->on = svi_members_choose(o->host.task, d, 0, o->budget);
    if (!bank_copy_weights(b, &o->host, err) || !bank_build(b, d, err)) {
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
    svi_arrays_free(&bank_arrays, b);
    svi_windows_keep(&b->windows, 0);
    svi_standardiser_clear(&b->standard);
    svi_neighbours_clear(&b->near);
    svi_fourier_ridge_clear(&b->exact);
    for (int i = 0; i < BLOCKS; i++)
        svi_block_clear(&b->block[i]);
    svi_stacks_free(&b->stacks);
    for (int i = 0; i < EXPERTS; i++)
        svi_calibrator_free(&b->calibrator[i]);
    svi_free(b->given);
    svi_free(b);
    *pb = NULL;
}

/* The parts that count classes by themselves know as many as the host. */
void svi_bank_know_classes(svi_bank *b, int classes) {
    b->classes = classes > b->classes ? classes : b->classes;
    for (int i = 0; i < BLOCKS && !b->regress; i++)
        if (svi_bank_runs(b, svi_bank_blocks[i].member))
            svi_block_add_classes(&b->block[i], b->classes);
    if (!b->regress && svi_bank_runs(b, SVI_MEMBER_FOURIER_EXACT))
        svi_fourier_ridge_classes(&b->exact, b->classes);
}

void svi_bank_reset(svi_bank *b) {
    svi_windows_reset(&b->windows);
    svi_standardiser_empty(&b->standard);
    svi_neighbours_empty(&b->near);
    if (svi_bank_runs(b, SVI_MEMBER_FOURIER_EXACT))
        svi_fourier_ridge_empty(&b->exact);
    for (int i = 0; i < BLOCKS; i++)
        if (svi_bank_runs(b, svi_bank_blocks[i].member))
            svi_block_empty(&b->block[i]);
    svi_bank_know_classes(b, b->classes);
    b->expanded = false;
    svi_stacks_reset(b->stacks);
    svi_share_init(&b->votes, SVI_MEMBERS, VOTE_ETA, VOTE_ALPHA);
    svi_share_init(&b->experts, EXPERTS, EXPERT_ETA, EXPERT_ALPHA);
    memset(b->recent, 0, sizeof b->recent);
    b->judged = 0;
    b->targets = 0;
    b->mean = b->spread = b->largest = b->center = b->last = b->error = 0;
    b->unit = 1;
    for (int i = 0; i < EXPERTS; i++) {
        svi_slope_init(&b->slope[i]);
        if (!b->regress)
            svi_calibrator_reset(b->calibrator[i]);
    }
}

svs_code svi_bank_grow(svi_bank *b, int d, svs_error *err) {
    svi_bank_drop(b, d, b->classes);
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
    svs_learner *l;
    for (int i = 0; (l = svi_windows_next(&b->windows, &i));)
        svs_learner_unscaled(l, feature);
    if (feature >= b->o.host.max_features)
        return;
    b->plain[feature] = true;
    if (feature < b->standard.d)
        svi_standardiser_unscale(&b->standard, feature);
}

void svi_bank_renew(svi_bank *b, int feature) {
    svs_learner *l;
    if (feature >= b->d) /* there was no memory for it yet */
        return;
    for (int i = 0; (l = svi_windows_next(&b->windows, &i));)
        svi_learner_renew(l, feature);
    svi_standardiser_renew(&b->standard, feature);
    if (b->plain[feature])
        svi_standardiser_unscale(&b->standard, feature);
    for (int i = 0; i < BLOCKS; i++)
        if (svi_bank_runs(b, svi_bank_blocks[i].member))
            svi_block_renew(&b->block[i], feature);
    if (svi_bank_runs(b, SVI_MEMBER_NEAREST))
        svi_neighbours_renew(&b->near, feature);
    if (svi_bank_runs(b, SVI_MEMBER_FOURIER_EXACT))
        svi_fourier_ridge_forget_feature(&b->exact, EXACT_FEATURES + feature);
}

void svi_bank_scale_from(svi_bank *b, int first) {
    svs_learner *l;
    for (int i = 0; (l = svi_windows_next(&b->windows, &i));)
        svi_learner_scale_from(l, first);
    for (int j = first; j < b->o.host.max_features; j++)
        b->plain[j] = false;
}

svs_code svi_bank_meet_class(svi_bank *b, svs_value y, svs_error *err) {
    svs_code code = SVS_OK;
    svs_learner *l;
    for (int i = 0; code == SVS_OK && (l = svi_windows_next(&b->windows, &i));)
        code = svi_learner_meet_class(l, y, err);
    if (code == SVS_OK)
        svi_bank_know_classes(b, b->classes + 1);
    return code;
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
    return svi_bank_runs(b, member) ? svi_bank_of(b, member) : NULL;
}

double svi_bank_memory(const struct svi_bank_options *o, int d, int classes) {
    const struct svi_stacks_options stacks = svi_bank_stacks(o);
    const int most = o->host.max_classes;
    int32_t dims[DIMS];
    bank_dims(&o->host, dims);
    double bytes = (double)sizeof(svi_bank) + (double)svi_arrays_bytes(&bank_arrays, dims) +
                   svi_windows_memory(&o->host, bank_windows, bank_window_count(o), ~0U, d, classes) +
                   svi_standardiser_memory(d) + svi_stacks_memory(&stacks) +
                   svi_neighbours_memory(NEAR_ROWS, d) +
                   svi_fourier_ridge_memory(o->host.task, EXACT_FEATURES + d, most);
    for (int i = 0; i < BLOCKS; i++) {
        const struct svi_block_options own = bank_block_options(o, i);
        if (own.kind != SVI_BLOCK_PRODUCTS || d <= SVI_PRODUCTS_MAX)
            bytes += svi_block_memory(&own, d, most);
    }
    return bytes;
}
