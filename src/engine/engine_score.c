/* Scores a sample with the present model without counting, learning or publishing it; and assesses C by
 * leaving out each sample held. Nothing here may change a result of the stream: only an engine made for this
 * call learns (engine_score_begin). */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "engine/engine_internal.h"
#include "learner/learner_held.h"
#include "learner/learner_prior.h"
#include "learner/leave_one_out.h"
#include "wire/decode.h"

/* Columns of the sample that the stream has; the others have no weight. */
static int engine_score_known(const struct svi_engine *e, const struct svi_message *m) {
    return m->d < e->schema.shape.d ? m->d : e->schema.shape.d;
}

/* Values of a copy of the row: the wider of the model (d) and the novelty model, or the sample. */
static size_t engine_score_width(const struct svi_engine *e, const struct svi_message *m, int d) {
    const int capacity = d > e->novelty->rows.d ? d : e->novelty->rows.d, known = engine_score_known(e, m);
    return (size_t)(capacity > known ? capacity : known) + 1;
}

/* x: the copy, engine_score_width values; scores: model->rows + model->class_count + 1 values. */
static void engine_score_score(struct svi_engine *e, const struct svi_message *m, const svs_model *model,
                               double *x, double *scores, struct svi_scored *out) {
    const int known = engine_score_known(e, m);
    /* The row is scored as it is: outliers are not clipped, though the stream would clip them. Where the
     * sample has no value the copy is 0. */
    memcpy(x, m->x, (size_t)known * sizeof *x);
    memset(x + known, 0, (engine_score_width(e, m, model->d) - (size_t)known) * sizeof *x);
    /* A feature that this sample would reassign still has the weight of the old value. */
    for (int i = 0; i < e->schema.renewed_count; i++)
        x[e->schema.renewed[i].feature] = 0;
    if (model->d > 0) {
        /* The scores of method auto come from a bank of learners, not from the weights in `model`. */
        if (model->elsewhere)
            (e->bank ? svi_engine_bank_peek : svi_engine_stack_peek)(e, x, scores);
        else
            svs_model_scores(model, x, scores);
        out->proba = scores + model->rows;
        out->predicted = svi_quality_stage_peek(&e->quality_stage, e->learner, model, scores,
                                                scores + model->rows, &out->proba_count);
        out->yhat = out->predicted >= 0         ? model->classes[out->predicted]
                    : e->s->task == SVS_REGRESS ? svs_real(scores[0])
                                                : svs_none();
    }
    double ends[2];
    out->ranged = model->d > 0 && svi_quality_stage_ends(&e->quality_stage, ends);
    if (out->ranged)
        svi_interval_around(ends, scores[0], svi_learner_leverage(e->learner, x), out->interval);
    /* After the scores, which need a replacement: novelty leaves missing values out. */
    for (int j = 0; m->gaps && j < known; j++)
        x[j] = m->gaps[j] ? NAN : x[j];
    /* As before each assessment: after a load there may have been none, and distances with missing values
     * are scaled by the number of columns. */
    if (e->novelty->on && e->novelty->detector && e->schema.shape.d > 0)
        svi_detector_set_columns(e->novelty->detector, e->novelty->lags * e->schema.shape.d);
    /* With lags a novelty row consists of several samples, and a single one has no predecessors. */
    out->judged = e->novelty->on && e->novelty->detector && e->novelty->lags == 1 &&
                  svi_detector_peek(e->novelty->detector, x, &out->novelty, &out->p);
    out->scores = scores;
    out->rows = e->s->method == SVI_METHOD_NONE ? 0 : model->rows;
    out->classes = model->classes;
    out->class_count = model->class_count;
    out->classed = e->s->method != SVI_METHOD_NONE && e->s->task == SVS_CLASSIFY;
    out->version = model->version;
    out->bank = model->elsewhere;
    out->merged = model->refit && e->refit->merges;
}

static svs_code engine_score_once(struct svi_engine *e, const struct svi_message *m, struct svi_scored *out,
                                  svs_error *err) {
    svs_model model;
    SVI_TRY(svi_engine_weights(e, &model, err));
    double *x = svi_alloc_array(engine_score_width(e, m, model.d), sizeof *x),
           *scores = svi_alloc_array((size_t)(model.rows + model.class_count) + 1, sizeof *scores);
    if (x && scores)
        engine_score_score(e, m, &model, x, scores, out);
    else
        svi_free(scores);
    svi_free(x);
    return x && scores ? SVS_OK : svi_fail_memory(err, "a sample to score");
}

/* Lets a new engine take the sample without a label. This adds the columns, what the prior of all
 * keys has for them, and the class that the bank of all keys predicts. The sample is then scored as
 * the first one of that key would be. */
static svs_code engine_score_begin(struct svi_engine *e, const struct svi_message *m, svs_error *err) {
    const svs_sample sample = {.x = m->x, .d = m->d, .weight = 1};
    svs_step step;
    SVI_TRY(svi_engine_reserve_class(e, svs_none(), err));
    SVI_TRY(svi_engine_grow(e, m, err));
    SVI_TRY(svs_learner_step(e->learner, &sample, 0, &step, err));
    svi_schema_commit(&e->schema, m);
    return SVS_OK;
}

void svi_scored_clear(struct svi_scored *s) {
    if (!s->borrowed)
        svi_free(s->scores);
    s->scores = NULL;
    svi_engine_free(&s->made);
}

/* From the decoded row to the one that the model takes. `began`: see svi_engine_score. */
static svs_code engine_score_prepare(struct svi_engine *e, struct svi_message *m, bool began,
                                     svs_error *err) {
    SVI_TRY(svi_schema_calendar(&e->schema, m, isnan(m->ts) ? e->event_ts : m->ts, err));
    if (m->missing > 0)
        SVI_TRY(svi_engine_fill_missing(e, m, err));
    SVI_TRY(svi_shape_fits(&e->schema.shape, m, err));
    return began ? engine_score_begin(e, m, err) : SVS_OK;
}

svs_code svi_engine_score(svi_engine *e, struct svi_envelope *env, bool began, struct svi_scored *out,
                          svs_error *err) {
    struct svi_message m;
    svi_engine_settle(e);
    env->order = &e->columns;
    svs_code code = svi_envelope_next(env, &e->schema, &m, err);
    if (code == SVS_OK)
        code = svi_columns_order(&e->columns, &e->schema, env, &m, err);
    out->names = code == SVS_OK && !m.has_x && m.op == SVI_LEARN && env->columns;
    if (code == SVS_OK && !m.has_x)
        code = svi_fail(err, SVS_MISSING_X, "the sample has no x");
    if (code == SVS_OK)
        code = engine_score_prepare(e, &m, began, err);
    if (code == SVS_OK)
        code = engine_score_once(e, &m, out, err);
    svi_schema_restore(&e->schema);
    return code;
}

/* ---- a series of rows */

void svi_scoring_clear(struct svi_scoring *w) {
    svi_free(w->x);
    svi_free(w->scores);
    *w = (struct svi_scoring){0};
}

static svs_code engine_score_reserve(double **block, int *capacity, size_t count, svs_error *err) {
    if (count <= (size_t)*capacity)
        return SVS_OK;
    double *wider = svi_alloc_array(count, sizeof *wider);
    if (!wider)
        return svi_fail_memory(err, "a sample to score");
    svi_free(*block);
    *block = wider;
    *capacity = (int)count;
    return SVS_OK;
}

svs_code svi_engine_score_row(svi_engine *e, struct svi_message *m, bool began, struct svi_scoring *w,
                              struct svi_scored *out, svs_error *err) {
    svi_engine_settle(e);
    out->borrowed = true;
    svs_code code = m->cells ? svi_schema_row(&e->schema, m, err) : SVS_OK;
    if (code == SVS_OK)
        code = engine_score_prepare(e, m, began, err);
    if (code == SVS_OK && !w->ready)
        code = svi_engine_weights(e, &w->model, err);
    w->ready = code == SVS_OK && !began;
    if (code == SVS_OK)
        code = engine_score_reserve(&w->x, &w->x_capacity, engine_score_width(e, m, w->model.d), err);
    if (code == SVS_OK)
        code = engine_score_reserve(&w->scores, &w->scores_capacity,
                                    (size_t)(w->model.rows + w->model.class_count) + 1, err);
    if (code == SVS_OK)
        engine_score_score(e, m, &w->model, w->x, w->scores, out);
    svi_schema_restore(&e->schema);
    return code;
}

svs_code svi_engine_tune(svi_engine *e, double max_cost, svs_tuning *out, svs_error *err) {
    if (e->s->method == SVI_METHOD_NONE)
        return svi_fail(err, SVS_UNAVAILABLE, "method none learns nothing: there is no C to choose");
    if (svi_engine_is_ensemble(e))
        return svi_fail(err, SVS_UNAVAILABLE,
                        "the members of method auto keep C at 1: it can be chosen with method alsvm");
    if (svi_learner_has_prior(e->learner))
        return svi_fail(err, SVS_UNAVAILABLE,
                        "with key.prior there is no C to choose: a stream with --key.prior 0 has one");
    const double cost = svi_leave_one_out_cost(e->learner);
    if (cost > max_cost)
        return svi_fail(err, SVS_LIMIT,
                        "leaving out each of the samples held would take %.2g multiplications, and the "
                        "stream would wait; at most %.2g are allowed: a smaller window needs fewer",
                        cost, max_cost);
    return svs_learner_tune(e->learner, out, err);
}
