/* The bank: makes its members for a stream, grows them with it, and drops those that no longer fit the
 * budget.
 *
 * Each member is implemented in its own file behind a table of functions (bank/member_ops.h); this file
 * loops over the tables and owns what sits above them: stacks, shares and calibrators. A sample passes
 * twice (bank_step.c): svi_bank_score asks all members and both layers; svi_bank_learn then teaches the
 * layers by the scores that the members gave, and the members by the row. Losses are always of scores made
 * before the label was known, so no samples are held out.
 *
 * Invariants: all parts have the host's features and classes, in its order; a dropped member never
 * returns; what a call could not do for want of memory is repeated later, or the bank stays as it was.
 *
 * Read in order: members, construction and changes of the host, figures, checks, the archive. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bank/bank_internal.h"
#include "bank/member_trees.h"
#include "base/alloc.h"
#include "base/arrays.h"
#include "base/fail.h"
#include "linalg/kernels.h"
#include "learner/learner_renew.h"
#include "learner/learner_sums.h"
#include "learner/learner_times.h"

#define VOTE_ETA      0.3 /* share.h: of the vote over members, whose loss is 0 or 1 */
#define VOTE_ALPHA    0.001
#define EXPERT_ETA    2.0 /* of the share over experts, whose loss is in [0, 1] */
#define EXPERT_ALPHA  0.003
#define RIDGE         1.0 /* of the stacks */
#define RIDGE_REGRESS 0.1
#define ROWS_MAX      65536 /* that the stacks hold: K a sample of K > 2 classes */
#define MEMBERS_ALL   1e6   /* microseconds: every member fits */

struct svi_stacks_options svi_bank_stacks(const struct svi_bank_options *o, int members) {
    return (struct svi_stacks_options){.members = members,
                                       .count = STACKS,
                                       .windows = {0, 1000, 200},
                                       .ridge = o->host.task == SVS_REGRESS ? RIDGE_REGRESS : RIDGE,
                                       .rows_max = ROWS_MAX,
                                       .isa = o->host.isa};
}

/* ---- members */

/* Iterator: the next part from the i-th on with a running member; NULL at the end. */
static const struct svi_member_part *bank_next(const svi_bank *b, int *i) {
    while (*i < b->c.part_count && !b->part[*i].on)
        ++*i;
    return *i < b->c.part_count ? &b->part[(*i)++] : NULL;
}

/* What a sample costs by the table; whenever members, features or classes have changed. */
static void bank_price(svi_bank *b) {
    b->c.cost = 1000 * svi_members_estimate(b->on, b->c.d, b->c.classes);
}

/* Makes exactly the members of `on` run and frees the memory of all others. */
static void bank_run(svi_bank *b, uint32_t on) {
    b->on = on;
    bank_price(b);
    for (int i = 0; i < b->c.part_count; i++) {
        struct svi_member_part *p = &b->part[i];
        p->on = 0;
        /* The members of one table are adjacent in svi_members: bank bit m is part bit m - first. */
        for (int m = p->first; m < svi_member_count && svi_members[m].ops == p->ops; m++)
            p->on |= (on >> m & 1) << (m - p->first);
        if (p->ops->clear)
            p->ops->clear(p);
    }
}

/* Grows all parts to d features, members before the standardiser. If memory runs out between, the rows are
 * still zero in the columns that some member lacks, so no member misreads a column; the next call finishes
 * the growth. */
static svs_code bank_widen(svi_bank *b, int d, svs_error *err) {
    const struct svi_member_part *p;
    for (int i = 0; (p = bank_next(b, &i));)
        if (p->ops->grow)
            SVI_TRY(p->ops->grow(p, d, err));
    SVI_TRY(svi_standardiser_grow(&b->standard, d, err));
    /* New columns start as scaled; those declared unscaled are marked again. Repeating it for old ones is
     * harmless: they have no moments. */
    for (int j = 0; j < d; j++)
        if (b->plain[j])
            svi_standardiser_unscale(&b->standard, j);
    return SVS_OK;
}

/* Initialises the running members for d features, with nothing learned. */
static svs_code bank_begin_members(svi_bank *b, int d, svs_error *err) {
    const struct svi_member_part *p;
    for (int i = 0; (p = bank_next(b, &i));)
        if (p->ops->init)
            SVI_TRY(p->ops->init(p, d, err));
    return bank_widen(b, d, err);
}

/* Size of a bank in bytes: the struct, then the state of each part, aligned. b not NULL: also points its
 * parts there. */
static size_t bank_place_parts(svi_bank *b) {
    const size_t align = _Alignof(max_align_t);
    size_t size = sizeof *b;
    for (int i = 0; i < svi_member_part_count; i++) {
        const struct svi_member_ops *ops = svi_member_parts[i];
        int first = 0;
        while (svi_members[first].ops != ops)
            first++;
        size = (size + align - 1) / align * align;
        if (b)
            b->part[i] =
                (struct svi_member_part){.ops = ops, .c = &b->c, .self = (char *)b + size, .first = first};
        size += ops->size;
    }
    return size;
}

/* ---- the bank */

enum { ROWS, FEATURES, PADDED, HELD, MEMBERS, DIMS };
static const struct svi_array bank_table[] = {
#define OWNER svi_bank
    SVI_ARRAY(OWNER, scores, NULL, SVI_AXIS(MEMBERS), SVI_AXIS(ROWS)),
    SVI_ARRAY(OWNER, raw, NULL, SVI_AXIS(ROWS), SVI_AXIS(MEMBERS)),
    SVI_ARRAY(OWNER, inputs, NULL, SVI_AXIS(ROWS), SVI_AXIS(MEMBERS)),
    SVI_ARRAY(OWNER, expert_scores, NULL, SVI_AXIS_LENGTH(EXPERTS), SVI_AXIS(ROWS)),
    SVI_ARRAY(OWNER, proba, NULL, SVI_AXIS_LENGTH(EXPERTS), SVI_AXIS(ROWS)),
    SVI_ARRAY(OWNER, final, NULL, SVI_AXIS(ROWS)),
    SVI_ARRAY(OWNER, mixed, NULL, SVI_AXIS(ROWS)),
    SVI_ARRAY(OWNER, answer, NULL, SVI_AXIS(ROWS)),
    SVI_ARRAY(OWNER, stack_targets, NULL, SVI_AXIS(ROWS)),
    SVI_ARRAY(OWNER, c.z, NULL, SVI_AXIS(PADDED)),
    SVI_ARRAY(OWNER, plain, NULL, SVI_AXIS(FEATURES)),
    SVI_ARRAY(OWNER, held_parts, NULL, SVI_AXIS(HELD)),
#undef OWNER
};
static const struct svi_arrays bank_arrays = SVI_ARRAYS_ALIGNED(bank_table, "a bank of learners");

static void bank_dims(const svs_options *host, int32_t *dims) {
    /* Capacity for the most classes and features that the stream may get, so that a step never allocates
     * here. */
    dims[ROWS] = host->task == SVS_REGRESS ? 1 : host->max_classes;
    dims[FEATURES] = host->max_features;
    dims[PADDED] = svi_round_up(host->max_features, SVI_FLOATS_PAD);
    dims[HELD] = (int32_t)svi_bank_held(host);
    dims[MEMBERS] = svi_member_count;
}

static struct svi_mixture_options bank_mixture(const struct svi_bank_options *o, int members) {
    return (struct svi_mixture_options){
        .members = members, .max_classes = o->host.max_classes, .isa = o->host.isa};
}

/* New stacks and mixture over these members. A member that does not run now never will, so it takes no
 * place. */
static svs_code bank_stack(svi_bank *b, uint32_t members, svs_error *err) {
    svi_stacks_free(&b->stacks);
    svi_mixture_free(&b->mixture);
    b->stacked = members;
    const struct svi_stacks_options stacks = svi_bank_stacks(&b->o, svi_bank_stacked_count(b));
    const struct svi_mixture_options mixture = bank_mixture(&b->o, svi_bank_stacked_count(b));
    b->stacks = svi_stacks_new(&stacks, err);
    if (!b->c.regress)
        b->mixture = svi_mixture_new(&mixture, err);
    return b->stacks && (b->mixture || b->c.regress) ? SVS_OK : SVS_NO_MEMORY;
}

static svs_code bank_build(svi_bank *b, int d, svs_error *err) {
    int32_t dims[DIMS];
    bank_dims(&b->o.host, dims);
    SVI_TRY(svi_arrays_alloc(&bank_arrays, b, dims, err));
    b->c.stride = dims[ROWS];
    /* svi_bank_free frees whatever exists. */
    for (int i = 0; i < EXPERTS && !b->c.regress; i++)
        if (!(b->calibrator[i] = svi_calibrator_new(b->o.host.max_classes, false, err)))
            return SVS_NO_MEMORY;
    SVI_TRY(svi_standardiser_init(&b->standard, b->o.host.isa, err));
    SVI_TRY(bank_begin_members(b, d, err));
    return bank_stack(b, b->on, err);
}

/* Deep copy of the class weights: the caller's may be freed, and loading a bank makes learners from them
 * again. */
static svs_code bank_copy_weights(svi_bank *b, const svs_options *host, svs_error *err) {
    const size_t n = (size_t)host->class_weight_count;
    if (host->class_rule != SVS_CLASSES_GIVEN || n == 0)
        return SVS_OK;
    b->given = svi_alloc_array(n, sizeof *b->given + SVS_NAME_MAX);
    if (!b->given)
        return svi_fail_memory(err, "the class weights");
    /* One block: the n weights, then SVS_NAME_MAX bytes for the text of each label. */
    char *names = (char *)(b->given + n);
    memcpy(b->given, host->class_weight, n * sizeof *b->given);
    for (size_t i = 0; i < n; i++) {
        svs_value *label = &b->given[i].label;
        if (label->kind == SVS_STR)
            label->as.s = memcpy(names + i * SVS_NAME_MAX, label->as.s, label->length);
    }
    b->o.host.class_weight = b->given;
    return SVS_OK;
}

/* What members see before there is a bank: svi_bank_memory uses it too. */
static struct svi_member_context bank_context(const struct svi_bank_options *o, int d, int classes) {
    return (struct svi_member_context){.host = &o->host,
                                       .seed = o->seed,
                                       .regress = o->host.task == SVS_REGRESS,
                                       .threads = !o->in_place,
                                       .d = d,
                                       .classes = classes};
}

svi_bank *svi_bank_new(const struct svi_bank_options *o, int d, svs_error *err) {
    svi_bank *b = svi_new(bank_place_parts(NULL), "a bank of learners", err);
    if (!b)
        return NULL;
    b->o = *o;
    /* The caller's array may be freed after this call; bank_copy_weights sets a copy where the weights are
     * used. */
    b->o.host.class_weight = NULL;
    b->c = bank_context(&b->o, d, 0);
    b->c.part = b->part;
    b->c.part_count = svi_member_part_count;
    /* Parts need their addresses before bank_run, which writes their `on` bits. */
    bank_place_parts(b);
    bank_run(b, svi_members_choose(o->host.task, d, 0, o->budget));
    if (bank_copy_weights(b, &o->host, err) != SVS_OK || bank_build(b, d, err) != SVS_OK) {
        svi_bank_free(&b);
        return NULL;
    }
    /* From here on a new bank and a reset one are the same. */
    svi_bank_reset(b);
    return b;
}

void svi_bank_free(svi_bank **pb) {
    svi_bank *b = *pb;
    if (!b)
        return;
    /* No member runs: every part frees all it has. */
    bank_run(b, 0);
    svi_arrays_free(&bank_arrays, b);
    svi_standardiser_clear(&b->standard);
    svi_stacks_free(&b->stacks);
    svi_mixture_free(&b->mixture);
    for (int i = 0; i < EXPERTS; i++)
        svi_calibrator_free(&b->calibrator[i]);
    svi_free(b->given);
    svi_free(b);
    *pb = NULL;
}

void svi_bank_know_classes(svi_bank *b, int classes) {
    const struct svi_member_part *p;
    b->c.classes = classes > b->c.classes ? classes : b->c.classes;
    bank_price(b);
    for (int i = 0; !b->c.regress && (p = bank_next(b, &i));)
        if (p->ops->add_classes)
            p->ops->add_classes(p);
}

void svi_bank_reset(svi_bank *b) {
    const struct svi_member_part *p;
    svi_standardiser_empty(&b->standard);
    for (int i = 0; (p = bank_next(b, &i));)
        if (p->ops->reset)
            p->ops->reset(p);
    /* Some parts drop their classes in a reset; the host keeps them. */
    svi_bank_know_classes(b, b->c.classes);
    svi_stacks_reset(b->stacks);
    if (b->mixture)
        svi_mixture_reset(b->mixture);
    svi_share_init(&b->votes, svi_member_count, VOTE_ETA, VOTE_ALPHA);
    svi_share_init(&b->experts, EXPERTS, EXPERT_ETA, EXPERT_ALPHA);
    memset(b->recent, 0, sizeof b->recent);
    b->scored = 0;
    /* Statistics of a regression; a unit of 1, because scores are divided by it from the first row on. */
    b->targets = 0;
    b->mean = b->spread = b->largest = b->c.center = b->c.last = b->error = 0;
    b->unit = 1;
    for (int i = 0; i < EXPERTS; i++) {
        svi_slope_init(&b->slope[i]);
        if (!b->c.regress)
            svi_calibrator_reset(b->calibrator[i]);
    }
}

/* The budget is divided again for d features: a member that no longer fits is dropped for good, since it
 * would have missed samples if it returned. c.d changes last, so that svi_bank_follows stays false until
 * all parts have grown. */
svs_code svi_bank_grow(svi_bank *b, int d, svs_error *err) {
    bank_run(b, b->on & svi_members_choose(b->o.host.task, d, b->c.classes, b->o.budget));
    SVI_TRY(bank_widen(b, d, err));
    b->c.d = d;
    bank_price(b);
    return SVS_OK;
}

bool svi_bank_follows(const svi_bank *b, const svs_learner *host) {
    /* Counts first; then the classes one by one, since the windows keep labels of their own. */
    bool good = b->c.d == svs_learner_dimension(host) && b->c.classes == svs_learner_class_count(host);
    svs_learner *l;
    for (int i = 0; (l = svi_windows_next(svi_bank_windows(b), &i));)
        for (int k = 0; good && k < b->c.classes; k++)
            good = svs_value_equal(svs_learner_class(l, k), svs_learner_class(host, k));
    return good;
}

void svi_bank_unscaled(svi_bank *b, int feature) {
    svs_learner *l;
    for (int i = 0; (l = svi_windows_next(svi_bank_windows(b), &i));)
        svs_learner_unscaled(l, feature);
    /* `plain` remembers the declaration also for features that the standardiser does not have yet. */
    if (feature >= b->o.host.max_features)
        return;
    b->plain[feature] = true;
    if (feature < b->standard.d)
        svi_standardiser_unscale(&b->standard, feature);
}

void svi_bank_renew(svi_bank *b, int feature) {
    const struct svi_member_part *p;
    if (feature >= b->c.d) /* no part has it yet, for want of memory */
        return;
    svi_standardiser_renew(&b->standard, feature);
    if (b->plain[feature])
        svi_standardiser_unscale(&b->standard, feature);
    for (int i = 0; (p = bank_next(b, &i));)
        if (p->ops->renew)
            p->ops->renew(p, feature);
}

void svi_bank_scale_from(svi_bank *b, int first) {
    svs_learner *l;
    for (int i = 0; (l = svi_windows_next(svi_bank_windows(b), &i));)
        svi_learner_scale_from(l, first);
    for (int j = first; j < b->o.host.max_features; j++)
        b->plain[j] = false;
}

svs_code svi_bank_meet_class(svi_bank *b, svs_value y, svs_error *err) {
    svs_learner *l;
    for (int i = 0; (l = svi_windows_next(svi_bank_windows(b), &i));)
        SVI_TRY(svi_learner_meet_class(l, y, err));
    svi_bank_know_classes(b, b->c.classes + 1);
    return SVS_OK;
}

void svi_bank_move_times(svi_bank *b, double from, double step) {
    svs_learner *l;
    for (int i = 0; (l = svi_windows_next(svi_bank_windows(b), &i));)
        svi_learner_move_times(l, from, step);
}

/* ---- figures */

svs_learner *svi_bank_best_linear(svi_bank *b, svs_learner *host, int *member) {
    const struct svi_windows *w = svi_bank_windows(b);
    /* `recent` is indexed by place in svi_members, the windows by their place in the part. */
    const int first = b->part[0].first;
    svs_learner *best = host;
    *member = SVI_MEMBER_HOST;
    for (int i = 0; i < w->count; i++)
        if (w->of[i] && b->recent[first + i] < b->recent[*member]) {
            *member = first + i;
            best = w->of[i];
        }
    return best;
}

/* The learner of window i; NULL: it does not run, or its sums do not add up. */
static svs_learner *bank_adding(const svi_bank *b, int i) {
    svs_learner *l = svi_bank_windows(b)->of[i];
    const svs_options *o = l ? svi_learner_options(l) : NULL;
    return l && o->rule == SVS_ALSVM && o->forget == 1 ? l : NULL;
}

svs_learner *svi_bank_window(const svi_bank *b, svs_learner *host, int64_t window, char *text, size_t size) {
    if (svi_learner_options(host)->window == window)
        return host;
    int n = snprintf(text, size, "%lld", (long long)svi_learner_options(host)->window);
    for (int i = 0; i < svi_bank_windows(b)->count; i++) {
        svs_learner *l = bank_adding(b, i);
        if (l && svi_learner_options(l)->window == window)
            return l;
        if (l && n < (int)size)
            n += snprintf(text + n, size - (size_t)n, ", %lld", (long long)svi_learner_options(l)->window);
    }
    return NULL;
}

const double *svi_bank_member_scores(const svi_bank *b, int member, int *rows, int *class_count) {
    if (rows)
        *rows = b->c.rows;
    if (class_count)
        *class_count = b->c.class_count;
    return svi_bank_runs(b, member) ? svi_bank_of(b, member) : NULL;
}

struct svi_tree_waits svi_bank_tree_waits(const svi_bank *b) {
    return svi_member_trees_waits(&b->c);
}

void svi_bank_delay_fits(svi_bank *b, int microseconds) {
    svi_member_trees_delay(&b->c, microseconds);
}

double svi_bank_memory(const struct svi_bank_options *o, int d, int classes) {
    const struct svi_stacks_options stacks = svi_bank_stacks(o, svi_member_count);
    const struct svi_mixture_options mixture = bank_mixture(o, svi_member_count);
    const struct svi_member_context c = bank_context(o, d, classes);
    int32_t dims[DIMS];
    bank_dims(&o->host, dims);
    double bytes = (double)bank_place_parts(NULL) + (double)svi_arrays_bytes(&bank_arrays, dims) +
                   svi_standardiser_memory(d) + svi_stacks_memory(&stacks) +
                   (c.regress ? 0 : svi_mixture_memory(&mixture));
    for (int i = 0; i < svi_member_part_count; i++) {
        const struct svi_member_part p = {.ops = svi_member_parts[i], .c = &c};
        bytes += p.ops->bytes ? p.ops->bytes(&p) : 0;
    }
    return bytes;
}

/* ---- what must hold */

/* Every part that counts features and classes itself has as many as the bank. */
static const char *bank_shape_wrong(svi_bank *b) {
    const struct svi_member_part *p;
    bool good = b->standard.d == b->c.d;
    for (int i = 0; (p = bank_next(b, &i));)
        good &= !p->ops->fits || p->ops->fits(p);
    return good ? NULL : "the members of a bank differ in features or classes";
}

/* The stacks hold rows only of samples that the host still holds, and equal a fresh solve on them. */
static const char *bank_stacks_wrong(const svi_bank *b, const svs_learner *host, double error) {
    const double *row;
    int64_t number;
    for (int64_t i = 0; svi_learner_held_row(host, i, &row, &number); i++)
        if (!row && svi_stacks_holds(b->stacks, number))
            return "a stack holds a sample that the host has dropped";
    for (int i = 0; i < STACKS; i++)
        if (!(svi_stacks_check(b->stacks, i) <= error))
            return "a stack does not match the samples that it holds";
    return NULL;
}

const char *svi_bank_check(svi_bank *b, const svs_learner *host, double error) {
    const struct svi_member_part *p;
    const char *wrong = bank_shape_wrong(b);
    if (!wrong && !svi_bank_follows(b, host))
        wrong = "the bank has other features or classes than the host";
    if (!wrong)
        wrong = bank_stacks_wrong(b, host, error);
    for (int i = 0; !wrong && (p = bank_next(b, &i));)
        wrong = p->ops->check ? p->ops->check(p, host, error) : NULL;
    return wrong;
}

/* ---- the archive */

/* Statistics of the targets of a regression. */
static void bank_archive_targets(struct svi_archive *a, svi_bank *b) {
    double *const figures[] = {&b->mean, &b->spread, &b->largest, &b->c.center,
                               &b->unit, &b->c.last, &b->error};
    static const char *const names[] = {"mean", "spread", "largest", "center", "unit", "last", "error"};
    svi_archive_int64(a, "targets", &b->targets, 0, INT64_MAX / 2);
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        svi_archive_finite(a, names[i], figures[i], 1);
    svi_archive_check(a, b->spread >= 0 && b->largest >= 0 && b->unit > 0 && b->error >= 0,
                      "what is known of the targets is out of range");
}

/* Which members run. Saved is the set itself: it depends on when features and classes were added, so it
 * cannot be chosen again from the present counts. Loading: `b` is new, for `begun` features, and its own
 * choice may differ. */
static void bank_archive_members(struct svi_archive *a, svi_bank *b, int begun) {
    const uint32_t possible = svi_members_choose(b->o.host.task, begun, 0, MEMBERS_ALL);
    int on = (int)b->on, stacked = (int)b->stacked;
    svi_archive_int(a, "members", &on, 0, (1 << svi_member_count) - 1);
    svi_archive_int(a, "stacked", &stacked, 0, (1 << svi_member_count) - 1);
    if (!a->loading ||
        !svi_archive_check(a,
                           ((uint32_t)stacked & ~svi_members_choose(b->o.host.task, 0, 0, MEMBERS_ALL)) ==
                                   0 &&
                               ((uint32_t)on & ~(possible & (uint32_t)stacked)) == 0 && (on & 1),
                           "it has unknown members"))
        return;
    if ((uint32_t)stacked != b->stacked && bank_stack(b, (uint32_t)stacked, a->err) != SVS_OK) {
        svi_archive_fail(a, SVS_NO_MEMORY, "no memory for a bank of learners");
        return;
    }
    /* The saved set is a subset of ours: dropping the rest is enough. */
    if (((uint32_t)on & ~b->on) == 0) {
        bank_run(b, (uint32_t)on);
        return;
    }
    bank_run(b, 0); /* members that the new bank lacks are initialised with all others absent */
    bank_run(b, (uint32_t)on);
    if (bank_begin_members(b, begun, a->err) != SVS_OK && svi_archive_ok(a))
        svi_archive_fail(a, SVS_NO_MEMORY, "no memory for a bank of learners");
}

static void bank_archive_parts(struct svi_archive *a, svi_bank *b, int from, int to) {
    for (int i = from; i < to && svi_archive_ok(a); i++) {
        const struct svi_member_part *p = &b->part[i];
        if (p->ops->archive)
            p->ops->archive(a, p);
    }
}

void svi_bank_archive(struct svi_archive *a, svi_bank *b) {
    /* Members are made for the features that the new bank has; loading each part then grows it to c.d. */
    const int begun = b->c.d;
    svi_archive_int(a, "features", &b->c.d, 0, b->o.host.max_features);
    svi_archive_int(a, "classes", &b->c.classes, 0, b->c.regress ? 0 : b->o.host.max_classes);
    bank_archive_members(a, b, begun);
    if (!svi_archive_ok(a))
        return;
    bank_archive_parts(a, b, 0, 1); /* windows see raw rows and come before the standardiser in the file */
    svi_standardiser_archive(a, &b->standard, b->o.host.max_features);
    bank_archive_parts(a, b, 1, b->c.part_count);
    svi_stacks_archive(a, b->stacks);
    svi_archive_bytes(a, "took", b->held_parts, svi_bank_held(&b->o.host));
    if (b->c.regress)
        bank_archive_targets(a, b);
    svi_archive_int64(a, "judged", &b->scored, 0, INT64_MAX / 2);
    svi_archive_finite(a, "recent", b->recent, svi_member_count);
    svi_share_archive(a, &b->votes);
    svi_share_archive(a, &b->experts);
    if (b->mixture && svi_archive_ok(a))
        svi_mixture_archive(a, b->mixture);
    for (int i = 0; i < EXPERTS && svi_archive_ok(a); i++) {
        svi_slope_archive(a, &b->slope[i]);
        if (!b->c.regress)
            svi_calibrator_archive(a, b->calibrator[i]);
    }
    /* Each part was loaded with its own counts: bytes that contradict each other stop here, not in a later
     * step. */
    if (a->loading && svi_archive_ok(a)) {
        const char *wrong = bank_shape_wrong(b);
        svi_archive_check(a, !wrong, wrong);
    }
}
