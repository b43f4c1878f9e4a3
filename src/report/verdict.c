/* Every line has one condition, tested against a trivial baseline over the same samples: a learner is called
 * "no better" unless its advantage exceeds two standard errors (quality/baseline.h). Lines are printed only
 * if they ask for action. */
#include "report/verdict.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "config/class_weights.h"
#include "quality/decision.h"

#define POINT       0.01 /* difference in accuracy: one percentage point */
#define LABEL_BYTES (4 * SVS_NAME_MAX + 4)

static bool verdict_no_better(struct svi_advantage a) {
    return a.n >= SVI_VERDICT_ROWS && !svi_advantage_shows(a);
}

/* `priced`: class weights or costs make something other than accuracy the goal, so that accuracy is not held
 * against trivial baselines. */
static void verdict_classes(const struct svi_standing *s, const struct svi_class_table *t, double accuracy,
                            bool priced, FILE *to) {
    char label[LABEL_BYTES];
    const struct svi_advantage *c = &s->commonest, *before = &s->same;
    /* With a single class every answer is right: nothing to compare yet. */
    if (!priced && t->count >= 2 && s->commonest_class >= 0 && s->commonest_class < t->count &&
        verdict_no_better(*c))
        fprintf(to, "accuracy %.3f is no better than always predicting %s (%.3f)\n", accuracy,
                svs_value_text(t->classes[s->commonest_class], label, sizeof label), accuracy - c->by);
    if (!priced && t->count >= 2 && verdict_no_better(*before))
        fprintf(to, "accuracy %.3f is no better than \"the same as before\" (%.3f)\n", accuracy,
                accuracy - before->by);
    int missed = 0;
    /* Holds even if weights or costs are set: a class that is never found is worth a line in any case. */
    for (int k = 0; k < t->count; k++) {
        const struct svi_class_count *all = &t->all[k];
        if (all->support < SVI_VERDICT_ROWS || all->hits > 0 || missed++ >= SVI_VERDICT_CLASSES)
            continue;
        fprintf(to, "class %s: none of %" PRId64 " found: see --class.weight and --decision.cost\n",
                svs_value_text(t->classes[k], label, sizeof label), all->support);
    }
    if (missed > SVI_VERDICT_CLASSES)
        fprintf(to, "%d more classes: none found\n", missed - SVI_VERDICT_CLASSES);
}

static void verdict_values(const struct svi_standing *s, const struct svi_figure *f, int count, FILE *to) {
    const double rmse = svi_figure_value(f, count, "rmse");
    if (verdict_no_better(s->same))
        fprintf(to, "rmse %.4g is no better than \"the same as before\" (%.4g)\n", rmse,
                svi_figure_value(f, count, "rmse_no_change"));
    if (verdict_no_better(s->mean))
        fprintf(to, "rmse %.4g is no better than always predicting the mean so far (%.4g)\n", rmse,
                svi_figure_value(f, count, "rmse_mean"));
}

/* Did the class occur? Compared as text, since 7 in a setting may mean the number or the word. */
static bool verdict_received(const struct svi_class_table *t, svs_value named) {
    char label[LABEL_BYTES], other[LABEL_BYTES];
    svs_value_text(named, label, sizeof label);
    for (int k = 0; k < t->count; k++)
        if (strcmp(label, svs_value_text(t->classes[k], other, sizeof other)) == 0)
            return true;
    return false;
}

static void verdict_named(const char *setting, svs_value named, const struct svi_class_table *t, FILE *to) {
    char label[LABEL_BYTES];
    if (named.kind != SVS_NONE && !verdict_received(t, named))
        fprintf(to, "%s names %s, a class that never occurred\n", setting,
                svs_value_text(named, label, sizeof label));
}

/* Reports classes in settings that never occurred, probably typing mistakes. Only at the end: a class may
 * arrive at any time. */
static void verdict_settings(const struct svi_settings *s, const struct svi_class_table *t, FILE *to) {
    struct svi_class_weights weights;
    struct svi_decision_cost cost;
    svs_error err;
    char label[LABEL_BYTES], before[LABEL_BYTES] = "";
    if (svi_class_weights_read(s->class_weight, &weights, &err) == SVS_OK)
        for (int i = 0; i < weights.count; i++) {
            svs_value_text(weights.of[i].label, label, sizeof label);
            /* A label of digits is listed twice, as a number and as a word: one line is enough. */
            if (strcmp(label, before) != 0)
                verdict_named("class.weight", weights.of[i].label, t, to);
            memcpy(before, label, sizeof before);
        }
    if (svi_decision_cost_parse(&cost, s->decision_cost, &err) != SVS_OK)
        return;
    for (int i = 0; i < cost.count; i++) {
        verdict_named("decision.cost", cost.price[i].truth, t, to);
        verdict_named("decision.cost", cost.price[i].decision, t, to);
    }
}

void svi_verdict_write(svi_stream *stream, double now, FILE *to) {
    const struct svi_figure *f;
    struct svi_class_table classes;
    struct svi_engine_standing standing;
    if (svi_stream_settings(stream)->method == SVI_METHOD_NONE)
        return;
    /* The order of the calls matters: reading the figures invalidates a class table read before. */
    const int count = svi_stream_figures(stream, NULL, now, &f);
    svi_engine_standing(svi_stream_root(stream), &standing);
    if (svi_stream_settings(stream)->task == SVS_REGRESS) {
        verdict_values(&standing.baseline, f, count, to);
        return;
    }
    svi_engine_class_table(svi_stream_root(stream), false, &classes);
    const struct svi_settings *s = svi_stream_settings(stream);
    const bool priced = strcmp(s->class_weight, "none") != 0 || strcmp(s->decision_cost, "none") != 0;
    verdict_classes(&standing.baseline, &classes, svi_figure_value(f, count, "accuracy"), priced, to);
    if (classes.count > 0)
        verdict_settings(s, &classes, to);
    /* Advice only if it is large and clear: more than two standard errors and more than a point. */
    if (!priced && s->serve == SVI_SERVE_ONLINE && svi_advantage_shows(standing.refit) &&
        standing.refit.by > POINT)
        fprintf(to, "the %s is %.0f points ahead: --serve best\n",
                svi_settings_merges(s) ? "merged model" : "refit", 100 * standing.refit.by);
}
