/* The bank of `method auto` in the engine: scoring, learning, rebuilding and publishing it.
 *
 * The host, e->learner, takes each sample first and may refuse it; the bank takes what the host took and
 * never refuses, so both hold the same samples. The host keeps the published scores of a waiting sample for
 * its late label (svi_learner_rescore); the stacks learn from the scores of the present members instead,
 * which are those that they weigh. When the model is rebuilt from the samples held, the bank is rebuilt with
 * it, from the same samples in the same order. With a bank there are no refits; their calibrator serves the
 * best linear member.
 *
 * Lack of memory in the bank does not refuse a sample: the engine marks itself out of memory, and the bank is
 * asked to follow again before the next sample. */
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "engine/engine_internal.h"
#include "learner/learner_configure.h"
#include "learner/learner_held.h"
#include "learner/owned_model.h"

svi_bank *svi_engine_make_bank(const struct svi_settings *s, const svs_options *host, int d, svs_error *err) {
    const struct svi_bank_options o = {.host = *host,
                                       .budget = s->auto_budget,
                                       .seed = (uint64_t)s->seed,
                                       .in_place = svi_settings_keyed(s)};
    return svi_bank_new(&o, d, err);
}

double svi_engine_bank_memory(const struct svi_settings *s, const svs_options *host, int d, int classes) {
    const struct svi_bank_options o = {.host = *host, .budget = s->auto_budget};
    if (svi_settings_stacked(s))
        return svi_engine_stack_memory(s, host, d, classes);
    return s->method == SVI_METHOD_AUTO
               ? svi_bank_memory(&o, d, classes) + svi_bank_weights_memory(d, classes)
               : 0;
}

/* Replaces the scores of the step by those that are served: the bank's, or those of its best linear member.
 */
static void bank_serve(struct svi_engine *e, const struct svi_bank_scored *scored, svs_step *step) {
    if (e->s->serve != SVI_SERVE_LINEAR) {
        step->scores = scored->scores;
        step->predicted = scored->predicted;
        return;
    }
    step->scores = svi_bank_member_scores(e->bank, e->linear, NULL, NULL);
    step->predicted = svi_predicted((svs_task)e->s->task, step->class_count, step->scores);
}

/* Learns the sample that the host has just put into its window, with the weight and number it has there. */
static void bank_learn(struct svi_engine *e, const svs_sample *s, double time) {
    struct svi_held_sample held;
    svs_error err;
    if (svi_learner_newest_sample(e->learner, &held) &&
        svi_bank_learn(e->bank, e->learner, s, &held, time, &err) == SVS_NO_MEMORY)
        e->out_of_memory = true;
}

void svi_engine_bank_follow(struct svi_engine *e) {
    svs_error err;
    if (e->bank && svi_bank_grow(e->bank, svs_learner_dimension(e->learner), &err) != SVS_OK)
        e->out_of_memory = true;
}

void svi_engine_bank_step(struct svi_engine *e, const svs_sample *s, double time, svs_step *step) {
    struct svi_bank_scored scored;
    if (e->out_of_memory)
        svi_engine_bank_follow(e);
    /* In a series of samples the thread of novelty is awake. */
    svi_bank_help(e->bank, svi_novelty_queue_waits(e->queue) ? e->queue->follower : NULL);
    svi_bank_score(e->bank, s->x, step->scores, step->rows, step->class_count, &scored);
    svi_bank_best_linear(e->bank, e->learner, &e->linear);
    bank_serve(e, &scored, step);
    if (step->waiting)
        svi_learner_rescore(e->learner, step->scores, step->predicted);
    if (s->y.kind != SVS_NONE)
        bank_learn(e, s, time);
}

/* Scores a row that is no new sample: the bank needs the scores of its host, which are computed here. */
static void bank_consult(struct svi_engine *e, const double *x, struct svi_bank_scored *scored) {
    svs_learner_scores(e->learner, x, e->host_scores);
    svi_bank_score(e->bank, x, e->host_scores, svs_learner_rows(e->learner),
                   svs_learner_class_count(e->learner), scored);
}

void svi_engine_bank_before_label(struct svi_engine *e, svs_value id) {
    const double *x = svi_learner_waiting_row(e->learner, id);
    struct svi_bank_scored unused; /* the members remember their scores for svi_bank_learn */
    if (!e->bank || !x)
        return;
    bank_consult(e, x, &unused);
    svi_bank_best_linear(e->bank, e->learner, &e->linear);
}

void svi_engine_bank_label(struct svi_engine *e, svs_value id, svs_value y, double time, int label) {
    struct svi_held_sample held;
    if (!e->bank || !svi_learner_newest_sample(e->learner, &held))
        return;
    svi_engine_bank_calibrate(e, label);
    const svs_sample s = {
        .x = held.x, .d = svs_learner_dimension(e->learner), .id = id, .y = y, .weight = held.own};
    bank_learn(e, &s, time);
}

void svi_engine_bank_calibrate(struct svi_engine *e, int label) {
    int rows, class_count;
    const double *scores = svi_bank_member_scores(e->bank, e->linear, &rows, &class_count);
    svi_quality_stage_calibrate(&e->quality_stage, true, scores, rows, class_count, label);
}

/* ---- rebuilding */

/* A bank that learns while svi_learner_prepare feeds the samples held to a fresh host. */
struct bank_class {
    svi_bank *bank;
    svi_calibrator *calibrator; /* NULL: none */
    bool linear;                /* the calibrator learns the scores of the best linear member */
    const svs_learner
        *numbered; /* samples keep their numbers in this learner; NULL: those of the fresh host */
    int64_t next;  /* index of the next sample held there */
    svs_code code; /* failure of the bank, which cannot stop the feeding */
    svs_error *err;
};

/* The number of the next sample held; removed ones are skipped, as the feeding skips them. */
static int64_t bank_next_number(struct bank_class *c) {
    const double *row = NULL;
    int64_t number = 0;
    while (!row && svi_learner_held_row(c->numbered, c->next, &row, &number))
        c->next++;
    return number;
}

static const double *bank_linear_scores(const struct bank_class *c) {
    int member;
    svi_bank_best_linear(c->bank, NULL, &member);
    return svi_bank_member_scores(c->bank, member, NULL, NULL);
}

static void bank_watch(void *user, const svs_learner *fresh, const svs_sample *sample, double time,
                       const svs_step *step) {
    struct bank_class *c = user;
    struct svi_held_sample held;
    struct svi_bank_scored scored;
    svi_bank_score(c->bank, sample->x, step->scores, step->rows, step->class_count, &scored);
    if (c->calibrator && step->label >= 0 && step->class_count > 1)
        svi_calibrator_learn(c->calibrator, c->linear ? bank_linear_scores(c) : scored.scores, step->rows,
                             step->class_count, step->label, NULL);
    if (!svi_learner_newest_sample(fresh, &held))
        return;
    if (c->numbered)
        held.number = bank_next_number(c);
    if (svi_bank_learn(c->bank, fresh, sample, &held, time, c->err) == SVS_NO_MEMORY)
        c->code = SVS_NO_MEMORY;
}

/* Makes an empty bank for the flagged features and classes (NULL: all) of the host. Classes are declared in
 * the order of the host, as the bank shares its class indices. */
static svs_code bank_like(const struct svi_engine *e, const struct svi_settings *s, const svs_options *host,
                          const bool *features, const bool *classes, svi_bank **bank, svs_error *err) {
    const int d = svs_learner_dimension(e->learner);
    int kept = 0;
    for (int j = 0; j < d; j++)
        kept += !features || features[j];
    if (!(*bank = svi_engine_make_bank(s, host, kept, err)))
        return SVS_NO_MEMORY;
    for (int j = 0, to = 0; j < d; j++) {
        if (features && !features[j])
            continue;
        if (svi_schema_unscaled(&e->schema, j))
            svi_bank_unscaled(*bank, to);
        to++;
    }
    for (int k = 0; k < svs_learner_class_count(e->learner); k++)
        if (!classes || classes[k])
            SVI_TRY(svi_bank_meet_class(*bank, svs_learner_class(e->learner, k), err));
    return SVS_OK;
}

svs_code svi_engine_teach_bank(const struct svi_engine *e, const struct svi_settings *s,
                               const svs_options *host, svi_calibrator *calibrator, svs_learner **fresh,
                               svi_bank **bank, svs_error *err) {
    struct bank_class class = {
        .calibrator = calibrator, .linear = s->serve == SVI_SERVE_LINEAR, .code = SVS_OK, .err = err};
    svs_code code = bank_like(e, s, host, NULL, NULL, bank, err);
    class.bank = *bank;
    if (code == SVS_OK)
        code = svi_learner_prepare(e->learner, host, bank_watch, &class, fresh, err);
    return code == SVS_OK ? class.code : code;
}

svs_code svi_engine_spare_bank(const struct svi_engine *e, const bool *features, const bool *classes,
                               svi_bank **spare, svs_error *err) {
    svs_options o;
    struct svi_class_weights weights;
    *spare = NULL;
    if (!e->bank)
        return SVS_OK;
    const svs_code code = svi_settings_learning(e->s, &weights, &o, err);
    return code == SVS_OK ? bank_like(e, e->s, &o, features, classes, spare, err) : code;
}

/* The host stays as svi_learner_prune left it. A fresh learner is fed only because the bank has to see each
 * sample with the scores that its host gives before learning it; it is dropped afterwards. */
void svi_engine_replace_bank(struct svi_engine *e, svi_bank **spare) {
    svs_options o;
    struct svi_class_weights weights;
    svs_learner *fresh = NULL;
    svs_error err;
    if (!*spare)
        return;
    svi_bank_free(&e->bank);
    e->bank = *spare;
    *spare = NULL;
    struct bank_class class = {.bank = e->bank, .numbered = e->learner, .code = SVS_OK, .err = &err};
    svs_code code = svi_settings_learning(e->s, &weights, &o, &err);
    if (code == SVS_OK)
        code = svi_learner_prepare(e->learner, &o, bank_watch, &class, &fresh, &err);
    svs_learner_free(&fresh);
    if (code != SVS_OK || class.code != SVS_OK)
        e->out_of_memory = true;
}

/* ---- a sample that is no part of the stream, and the model */

void svi_engine_bank_peek(struct svi_engine *e, const double *x, double *scores) {
    struct svi_bank_scored scored;
    bank_consult(e, x, &scored);
    memcpy(scores, scored.scores, (size_t)scored.rows * sizeof *scores);
}

svs_code svi_engine_bank_model(struct svi_engine *e, svs_model *m, svs_error *err) {
    int member;
    svs_learner *best = svi_bank_best_linear(e->bank, e->learner, &member);
    SVI_TRY(svs_learner_model(best, m, err));
    svs_health h;
    svs_learner_health(e->learner, &h);
    m->version = svs_learner_version(e->learner);
    m->learned = h.learned;
    m->elsewhere = e->s->serve != SVI_SERVE_LINEAR;
    return SVS_OK;
}

/* ---- publishing */

bool svi_engine_bank_members(const struct svi_engine *e, struct svi_member_scores *out) {
    if (e->bank && e->s->score_members)
        svi_bank_member_table(e->bank, out);
    return e->bank && e->s->score_members;
}

svs_code svi_engine_bank_event(svi_engine *e, struct svi_bank_description *description,
                               struct svi_event *event, svs_error *err) {
    const uint64_t models = e->seq[SVI_TOPIC_MODEL];
    if (e->stack)
        return svi_fail(
            err, SVS_UNAVAILABLE,
            "with key.shared a key has no bank of its own to publish: its score is made of its model, "
            "its last labels and a bank of all keys; key.shared no gives each key a bank");
    if (!e->bank)
        return svi_fail(err, SVS_UNAVAILABLE, "method %s has no bank: it is what method auto learns with",
                        svi_settings_word("method", e->s->method));
    *event = (struct svi_event){.topic = SVI_TOPIC_BANK,
                                .stream = e->s->stream,
                                .epoch = e->epoch,
                                .seq = models > 0 ? models - 1 : 0,
                                .ts = e->event_ts,
                                .as.bank = description};
    svs_code code = svi_bank_describe(e->bank, e->learner, &e->bank_weights, description, err);
    description->version = svs_learner_version(e->learner);
    description->serves = e->s->serve != SVI_SERVE_LINEAR;
    return code;
}
