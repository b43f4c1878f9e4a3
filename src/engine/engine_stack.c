/* The small stack of a key among many in the engine (bank/key_stack.h): scoring, learning, forgetting. A step
 * of the host enters; its scores leave replaced by those of the stack, or with `serve linear` as they are.
 *
 * The host, e->learner, takes each sample first and may refuse it. The learner of all samples,
 * e->stack->whole, follows it: it has the host's features and classes before it is asked. The
 * prediction of the bank of all keys arrived with the element (e->stack->shared_score). For a late
 * label the members score the waiting row again, before the host learns it.
 *
 * The main difficulty is memory that is shared. Host and whole work in one scratch, so the host's scores are
 * copied before the other is called. The inputs of a row stay in the thread's scratch from its score to its
 * label: nothing may score in between.
 *
 * Lack of memory refuses nothing here: e->stack->whole is out of the stack until it has caught up, and the
 * engine marks itself out of memory. Read svi_engine_stack_step first, then the two functions around a late
 * label. */
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "engine/engine_internal.h"
#include "learner/learner_archive.h"
#include "learner/learner_held.h"
#include "learner/learner_renew.h"
#include "learner/owned_model.h"
#include "learner/scratch.h"

/* Parts of the scratch: scores of the host, of e->stack->whole, those served, the inputs of the stack. */
struct stack_scratch {
    double *host, *whole, *served, *inputs;
};

/* The layout must agree with svi_engine_stack_scratch, which sizes the block. */
static struct stack_scratch stack_scratch(const struct svi_engine *e) {
    const size_t rows = (size_t)e->s->max_classes;
    double *at = e->scratch->stack;
    return (struct stack_scratch){at, at + rows, at + 2 * rows, at + 3 * rows};
}

size_t svi_engine_stack_scratch(int max_classes) {
    return 3 * (size_t)max_classes + (size_t)svi_key_stack_inputs(max_classes);
}

/* Options of the learner of all samples. It holds no rows, only sums over them: a sample is forgotten with
 * the row that the host still holds, and late labels wait in the host. */
static svs_options stack_whole_options(const svs_options *host) {
    svs_options o = *host;
    o.window = 0;
    o.window_seconds = 0;
    o.labels_ttl = 0;
    return o;
}

/* Where there are many engines, each learner is a single block for d features: spare capacity would add up.
 * The stack hardly shows the error that relaxing allows. */
static svs_code stack_make_whole(struct svi_engine *e, const svs_options *host, int d, svs_error *err) {
    const svs_options o = stack_whole_options(host);
    e->stack->whole = e->off ? svi_learner_new_for(&o, d, d, e->scratch->learner, err)
                             : svi_learner_new(&o, d, e->scratch->learner, err);
    if (!e->stack->whole)
        return err->code;
    svi_learner_relax(e->stack->whole, true);
    return SVS_OK;
}

/* After a failure the engine owns what was made, and frees it with itself. */
svs_code svi_engine_new_stack(struct svi_engine *e, const svs_options *host, svs_error *err) {
    if (!(e->stack = svi_alloc(sizeof *e->stack)))
        return svi_fail_memory(err, "the stack of a key");
    if (!(e->stack->of = svi_key_stack_new(host->task == SVS_REGRESS, host->max_classes, err)))
        return SVS_NO_MEMORY;
    return stack_make_whole(e, host, e->schema.shape.d, err);
}

void svi_engine_free_stack(struct svi_engine *e) {
    if (!e->stack)
        return;
    svi_key_stack_free(&e->stack->of);
    svs_learner_free(&e->stack->whole);
    svi_free(e->stack);
    e->stack = NULL;
}

double svi_engine_stack_memory(const struct svi_settings *s, const svs_options *host, int d, int classes) {
    const svs_options o = stack_whole_options(host);
    (void)s;
    return sizeof(struct svi_engine_stack) +
           svi_key_stack_memory(host->task == SVS_REGRESS ? 1 : host->max_classes) +
           svi_learner_shared_memory(&o, d, classes);
}

/* Brings e->stack->whole to the features of the host, and to the first `classes` of its classes. Equal
 * indices let the stack add the scores of both, class by class. False: it cannot be used for this row. */
static bool stack_follow(struct svi_engine *e, int classes) {
    const int d = svs_learner_dimension(e->learner);
    svs_error err;
    svs_code code = SVS_OK;
    if (!e->stack->whole)
        return false;
    if (svs_learner_dimension(e->stack->whole) < d)
        code = svs_learner_grow(e->stack->whole, d, &err);
    for (int k = svs_learner_class_count(e->stack->whole); k < classes && code == SVS_OK; k++)
        code = svi_learner_meet_class(e->stack->whole, svs_learner_class(e->learner, k), &err);
    e->out_of_memory = e->out_of_memory || code != SVS_OK;
    return code == SVS_OK;
}

/* Scores of e->stack->whole; 0, which favours no class, where it cannot follow. */
static void stack_ask_whole(struct svi_engine *e, const double *x, int rows, int classes, double *scores) {
    if (stack_follow(e, classes) && svs_learner_rows(e->stack->whole) == rows)
        svs_learner_scores(e->stack->whole, x, scores);
    else
        memset(scores, 0, (size_t)rows * sizeof *scores);
}

/* An engine outside a fleet has no start of the fleet: it begins as a first key does, in memory of the
 * caller. */
static const struct svi_stack_start *stack_start(const struct svi_engine *e, struct svi_stack_start *own) {
    if (e->stack->start)
        return e->stack->start;
    svi_stack_start_init(own);
    return own;
}

/* The stack's answer, by the scores in the scratch. It writes at->inputs, from which stack_learn learns. */
static void stack_answer(const struct svi_engine *e, const struct stack_scratch *at, int rows, int classes,
                         double *out) {
    struct svi_stack_start own;
    const struct svi_stack_row row = {.host = at->host,
                                      .whole = at->whole,
                                      .rows = rows,
                                      .class_count = classes,
                                      .classes = svi_learner_classes(e->learner),
                                      .shared = e->stack->shared_score};
    svi_key_stack_score(e->stack->of, stack_start(e, &own), &row, at->inputs, out);
}

/* Only the most probable class is added: one that the bank never prefers would cost memory in each key. A
 * class of the element's own has precedence where only one more fits. */
const svs_value *svi_engine_stack_new_class(const struct svi_engine *e, bool fresh) {
    const struct svi_shared_score *shared = e->stack ? e->stack->shared_score : NULL;
    const int known = svs_learner_class_count(e->learner);
    if (!shared || !shared->known || known + fresh >= e->s->max_classes)
        return NULL;
    const svs_value *most = &shared->classes[svi_largest_score(shared->class_count, shared->value)];
    for (int k = 0; k < known; k++)
        if (svs_value_equal(svs_learner_class(e->learner, k), *most))
            return NULL;
    return most;
}

/* The key's stack learns from the inputs of before this sample; only then may e->stack->whole change. Without
 * an id the sample is learned and nothing is held by it. */
static void stack_learn(struct svi_engine *e, const svs_sample *s, double time, int classes, int label) {
    const struct stack_scratch at = stack_scratch(e);
    struct svi_stack_start own;
    svs_step unused;
    svs_error err;
    svi_key_stack_learn(e->stack->of, stack_start(e, &own), e->stack->part, at.inputs, classes, label,
                        s->y.kind == SVS_INT ? (double)s->y.as.i : s->y.as.r);
    svs_sample bare = *s;
    bare.id = svs_none();
    if (stack_follow(e, classes) &&
        svs_learner_step(e->stack->whole, &bare, time, &unused, &err) == SVS_NO_MEMORY)
        e->out_of_memory = true;
}

void svi_engine_stack_step(struct svi_engine *e, const svs_sample *s, double time, svs_step *step) {
    const struct stack_scratch at = stack_scratch(e);
    /* Before anything else: the next call of a learner overwrites the step's scores. */
    memcpy(at.host, step->scores, (size_t)step->rows * sizeof *at.host);
    stack_ask_whole(e, s->x, step->rows, step->class_count, at.whole);
    stack_answer(e, &at, step->rows, step->class_count, at.served);
    step->scores = e->s->serve == SVI_SERVE_LINEAR ? at.host : at.served;
    step->predicted = svi_predicted((svs_task)e->s->task, step->class_count, step->scores);
    /* The late label is assessed by the prediction that was published, not by the host's own. */
    if (step->waiting)
        svi_learner_rescore(e->learner, step->scores, step->predicted);
    if (s->y.kind == SVS_NONE)
        return;
    stack_learn(e, s, time, step->class_count, step->label);
}

/* The stack learns from what its members predict now, since it is their present state that it weighs. The
 * label may add a class, so the number of classes is kept with the inputs. */
void svi_engine_stack_before_label(struct svi_engine *e, svs_value id) {
    const double *x = e->stack ? svi_learner_waiting_row(e->learner, id) : NULL;
    const int rows = svs_learner_rows(e->learner), classes = svs_learner_class_count(e->learner);
    if (!x)
        return;
    const struct stack_scratch at = stack_scratch(e);
    e->stack->classes = classes;
    svs_learner_scores(e->learner, x, at.host);
    stack_ask_whole(e, x, rows, classes, at.whole);
    stack_answer(e, &at, rows, classes, at.served);
}

/* The scores of the step are those of the arrival, in memory of the host that e->stack->whole uses, too: they
 * are saved before it learns. The host's newest sample is the one that the label has just moved. */
void svi_engine_stack_label(struct svi_engine *e, svs_value id, svs_value y, double time, svs_step *step) {
    struct svi_held_sample held;
    if (!e->stack || !svi_learner_newest_sample(e->learner, &held))
        return;
    const struct stack_scratch at = stack_scratch(e);
    const int classes = e->stack->classes;
    const svs_sample s = {
        .x = held.x, .d = svs_learner_dimension(e->learner), .id = id, .y = y, .weight = held.own};
    memcpy(at.served, step->scores, (size_t)step->rows * sizeof *at.served);
    step->scores = at.served;
    stack_learn(e, &s, time, classes, step->label);
}

/* The host's row has as many values as the host has features: a learner with fewer would read another row. */
static void stack_take_back(void *user, const struct svi_held_sample *s) {
    struct svi_engine *e = user;
    if (svs_learner_dimension(e->stack->whole) == svs_learner_dimension(e->learner))
        svi_learner_take_back(e->stack->whole, s);
}

/* The key's stack keeps what it learned of the sample: it has weights and counts, not rows. */
void svi_engine_stack_forget(struct svi_engine *e, svs_value id) {
    if (e->stack && stack_follow(e, svs_learner_class_count(e->learner)))
        svi_learner_each_held(e->learner, id, stack_take_back, e);
}

void svi_engine_stack_reset(struct svi_engine *e) {
    if (!e->stack)
        return;
    svi_key_stack_reset(e->stack->of);
    if (e->stack->whole)
        svs_learner_reset(e->stack->whole);
}

/* What both parts learned is about columns or classes that no longer exist, so they begin again. Without
 * memory e->stack->whole is out of the stack for good. Columns that are never scaled have to be declared
 * again. */
void svi_engine_stack_pruned(struct svi_engine *e) {
    svs_options o;
    struct svi_class_weights weights;
    svs_error err;
    if (!e->stack)
        return;
    svi_key_stack_reset(e->stack->of);
    svs_learner_free(&e->stack->whole);
    if (svi_settings_learning(e->s, &weights, &o, &err) != SVS_OK ||
        stack_make_whole(e, &o, svs_learner_dimension(e->learner), &err) != SVS_OK)
        e->out_of_memory = true;
    for (int j = 0; e->stack->whole && j < svs_learner_dimension(e->stack->whole); j++)
        if (svi_schema_unscaled(&e->schema, j))
            svs_learner_unscaled(e->stack->whole, j);
}

/* For a row that is only scored. It writes to the scratch, so it must not run between a score and the label
 * of that row. */
void svi_engine_stack_peek(struct svi_engine *e, const double *x, double *scores) {
    const int rows = svs_learner_rows(e->learner), classes = svs_learner_class_count(e->learner);
    const struct stack_scratch at = stack_scratch(e);
    svs_learner_scores(e->learner, x, at.host);
    stack_ask_whole(e, x, rows, classes, at.whole);
    stack_answer(e, &at, rows, classes, scores);
}

/* A state may lack e->stack->whole, as memory was lacking when it was made. The loading engine then drops its
 * own: it must continue as the saved one would have. It never has more features or classes than the host,
 * which stack_follow takes for granted. */
void svi_engine_stack_archive(struct svi_archive *a, struct svi_engine *e) {
    bool whole = e->stack->whole;
    svi_key_stack_archive(a, e->stack->of);
    svi_archive_bool(a, "whole", &whole);
    if (!svi_archive_ok(a))
        return;
    if (whole && e->stack->whole)
        svi_learner_archive(a, e->stack->whole);
    else
        svi_archive_check(a, !whole, "there is a learner of all samples");
    if (!whole)
        svs_learner_free(&e->stack->whole);
    if (svi_archive_loading(a) && svi_archive_ok(a) && e->stack->whole)
        svi_archive_check(a,
                          svs_learner_dimension(e->stack->whole) <= svs_learner_dimension(e->learner) &&
                              svs_learner_class_count(e->stack->whole) <= svs_learner_class_count(e->learner),
                          "the learner of all samples has more than the other");
}
