/* The factors by which samples count, by their classes (svs_class_rule in svmstream/learner.h).
 *
 * A factor is set when the label comes and kept in the sample's slot, so a sample is removed as it
 * was learned. The factor changes only where P is made from the rows again (svi_class_weigh_again).
 * Without that, the first samples of a class that was away would outweigh those that follow for a
 * whole window. On mammography (window 1000; its rare class comes in runs) the area under precision
 * and recall is 0.53 with it and 0.28 without. Classes of few samples are left as they are, because
 * their share is hardly known. With them the area is lower by 0.01 on Gaussians of 1 % positives.
 *
 * Invariant: class_held[k] is the number of live slots of class k, learned or not. Without a window
 * it is a sum over the samples of class k that arrived, each counted by `forget` alone. */
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "learner/learner_internal.h"

#define GIVEN_MAX 100000 /* as many as there may be classes */
/* Held samples of a class from which their number says enough of its share to weigh them again. */
#define MIN_ROWS_TO_WEIGH 10

static svs_code weights_check(const svs_options *o, svs_error *err) {
    char text[SVS_NAME_MAX + 1];
    if (o->class_rule == SVS_CLASSES_ALIKE)
        return SVS_OK;
    if (o->task == SVS_REGRESS)
        return svi_fail(err, SVS_SETTING,
                        "class weights are for classes, but the task is regression: leave them out");
    if (o->class_rule != SVS_CLASSES_GIVEN)
        return SVS_OK;
    if (!o->class_weight || o->class_weight_count < 1 || o->class_weight_count > GIVEN_MAX)
        return svi_fail(err, SVS_SETTING, "given class weights are 1 to 100,000 weights, each with a label");
    for (int i = 0; i < o->class_weight_count; i++) {
        const svs_class_weight *w = &o->class_weight[i];
        if (!(w->label.kind == SVS_INT ||
              (w->label.kind == SVS_STR && w->label.length >= 1 && w->label.length <= SVS_NAME_MAX)))
            return svi_fail(err, SVS_SETTING,
                            "class weight %d has no label, which is an integer or a string of 1 to %d bytes",
                            i, SVS_NAME_MAX);
        svs_value_text(w->label, text, sizeof text);
        if (!(w->weight > 0 && w->weight <= SVI_VALUE_MAX))
            return svi_fail(err, SVS_SETTING,
                            "the weight of class %s is %g: it must be above 0 and at most 1e100", text,
                            w->weight);
        /* n^2 / 2 comparisons, once for a learner. */
        for (int k = 0; k < i; k++)
            if (svs_value_equal(o->class_weight[k].label, w->label))
                return svi_fail(err, SVS_SETTING, "class %s has two weights, %g and %g: leave one out", text,
                                o->class_weight[k].weight, w->weight);
    }
    return SVS_OK;
}

/* The weights and, behind them, the bytes of their labels. */
static svs_code weights_copy(svs_learner *l, svs_error *err) {
    const size_t n = (size_t)l->o.class_weight_count;
    l->given = svi_alloc_array(n, sizeof *l->given + SVS_NAME_MAX);
    if (!l->given)
        return svi_fail_memory(err, "the class weights");
    char *names = (char *)(l->given + n);
    memcpy(l->given, l->o.class_weight, n * sizeof *l->given);
    for (size_t i = 0; i < n; i++) {
        svs_value *label = &l->given[i].label;
        if (label->kind == SVS_STR)
            label->as.s = memcpy(names + i * SVS_NAME_MAX, label->as.s, label->length);
    }
    return SVS_OK;
}

svs_code svi_class_weights_init(svs_learner *l, svs_error *err) {
    const svs_class_rule rule = l->o.class_rule;
    svs_code code = weights_check(&l->o, err);
    if (code == SVS_OK && rule == SVS_CLASSES_GIVEN)
        code = weights_copy(l, err);
    /* The caller's weights may be freed after the call: the options point to the copy. */
    l->o.class_weight = l->given; /* the caller's may go */
    if (!l->given)
        l->o.class_weight_count = 0;
    return code;
}

/* What a sample that arrived before counts next to one that comes now. */
static double weights_fade(const svs_learner *l) {
    return l->o.window == 0 ? l->o.forget : 1;
}

/* n / (K n_k), as if the new sample were in and the oldest of a full window out already: so that the factor
 * does not jump when the window has filled. */
static double weights_balanced(const svs_learner *l, int label) {
    const struct svi_ring *r = &l->window;
    const bool full = l->o.window > 0 && svi_ring_full(r);
    const int leaving = full && svi_ring_live(r, r->first) ? svi_ring_label(r, r->first) : -1;
    const double fade = weights_fade(l);
    double n = 1, own = 1, classes = 1;
    for (int k = 0; k < l->class_count; k++) {
        const double held = fade * (l->class_held[k] - (k == leaving));
        n += held;
        if (k == label)
            own += held;
        else
            classes += held > 0;
    }
    return n / (classes * own);
}

/* A class that is not listed weighs 1. */
static double weights_given(const svs_learner *l, svs_value y) {
    for (int i = 0; i < l->o.class_weight_count; i++)
        if (svs_value_equal(l->given[i].label, y))
            return l->given[i].weight;
    return 1;
}

/* Classes of few samples keep the factors they got: their share is hardly known. A sample's own weight is
 * not touched. Only before a rebuild from the rows, as P holds the old factors. */
void svi_class_weigh_again(svs_learner *l) {
    double n = 0, classes = 0;
    if (!l->class_held || l->o.window == 0)
        return;
    if (l->snapshot) /* its rows weigh what they did when it began */
        svi_snapshot_copy(l->snapshot, l, INT64_MAX);
    for (int k = 0; k < l->class_count; k++) {
        n += l->class_held[k];
        classes += l->class_held[k] > 0;
    }
    for (int32_t i = 0, slot; (slot = svi_ring_next(&l->window, &i)) >= 0;) {
        const int32_t label = svi_ring_label(&l->window, slot);
        if (l->class_held[label] >= MIN_ROWS_TO_WEIGH)
            svi_ring_set_factor(&l->window, slot, n / (classes * l->class_held[label]));
    }
}

/* Is the product of sample weight and factor usable? Where classes are balanced the factor may change later,
 * up to the size of the window and down to 1 / K: these must be usable as well. */
static bool weights_fit(const svs_learner *l, double own, double factor) {
    return own * factor > 0 && own * factor <= SVI_VALUE_MAX &&
           (!l->class_held || (own * (double)l->o.window <= SVI_VALUE_MAX && own / l->o.max_classes > 0));
}

svs_code svi_class_weigh(const svs_learner *l, svs_value y, int label, double own, struct svi_weight *out,
                         svs_error *err) {
    out->factor = l->class_held ? weights_balanced(l, label) : weights_given(l, y);
    if (weights_fit(l, own, out->factor))
        return SVS_OK;
    if (l->class_held)
        return svi_fail(
            err, SVS_BAD_WEIGHT,
            "the sample's weight %g, times what a class may weigh in balance, must be above 0 and "
            "at most 1e100",
            own);
    return svi_fail(err, SVS_BAD_WEIGHT,
                    "the sample's weight %g times that of its class, %g, is %g: it must be above 0 and at "
                    "most 1e100",
                    own, out->factor, own * out->factor);
}

/* The new sample counts as 1 after the others have faded; with a window they do not fade, and leave by
 * svi_class_left. */
void svi_class_count_change(svs_learner *l, const svs_step *out) {
    if (!l->class_held)
        return;
    const double fade = out->learned ? weights_fade(l) : 1; /* by `forget`, with each that is learned */
    for (int k = 0; fade < 1 && k < l->class_count; k++)
        l->class_held[k] *= fade;
    l->class_held[out->label]++;
}

void svi_class_left(svs_learner *l, int label) {
    if (l->class_held)
        l->class_held[label]--;
}

void svi_class_recount(svs_learner *l) {
    if (!l->class_held)
        return;
    memset(l->class_held, 0, (size_t)l->class_capacity * sizeof *l->class_held);
    for (int32_t i = 0, slot; (slot = svi_ring_next(&l->window, &i)) >= 0;)
        l->class_held[svi_ring_label(&l->window, slot)]++;
}

double svi_class_weights_memory(const svs_options *o) {
    return o->class_rule == SVS_CLASSES_GIVEN
               ? o->class_weight_count * (sizeof(svs_class_weight) + (double)SVS_NAME_MAX)
               : 0;
}
