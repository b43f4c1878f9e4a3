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

/* A copy of the row, as wide as the wider of the model (d) and the novelty model, with 0 where the sample has
 * no value. NULL: no memory. Owner: the caller. */
static double *engine_score_widen(const struct svi_engine *e, const struct svi_message *m, int d) {
    const int capacity = d > e->novelty->rows.d ? d : e->novelty->rows.d, known = engine_score_known(e, m);
    double *x = svi_alloc_array((size_t)(capacity > known ? capacity : known) + 1, sizeof *x);
    if (x)
        memcpy(x, m->x, (size_t)known * sizeof *x);
    return x;
}

static svs_code engine_score_score(struct svi_engine *e, const struct svi_message *m, struct svi_scored *out,
                                   svs_error *err) {
    svs_model model;
    SVI_TRY(svi_engine_weights(e, &model, err));
    /* The row is scored as it is: outliers are not clipped, though the stream would clip them. */
    double *x = engine_score_widen(e, m, model.d),
           *scores = svi_alloc_array((size_t)(model.rows + model.class_count) + 1, sizeof *scores);
    /* A feature that this sample would reassign still has the weight of the old value. */
    for (int i = 0; x && i < e->schema.renewed_count; i++)
        x[e->schema.renewed[i].feature] = 0;
    if (x && scores && model.d > 0) {
        /* The scores of method auto come from a bank of learners, not from the weights in `model`. */
        if (model.elsewhere)
            (e->bank ? svi_engine_bank_peek : svi_engine_stack_peek)(e, x, scores);
        else
            svs_model_scores(&model, x, scores);
        out->proba = scores + model.rows;
        const int class = svi_quality_stage_peek(&e->quality_stage, e->learner, &model, scores,
                                                 scores + model.rows, &out->proba_count);
        out->yhat = class >= 0                  ? model.classes[class]
                    : e->s->task == SVS_REGRESS ? svs_real(scores[0])
                                                : svs_none();
    }
    double ends[2];
    out->ranged = x && scores && model.d > 0 && svi_quality_stage_ends(&e->quality_stage, ends);
    if (out->ranged)
        svi_interval_around(ends, scores[0], svi_learner_leverage(e->learner, x), out->interval);
    /* After the scores, which need a replacement: novelty leaves missing values out. */
    for (int j = 0; x && m->gaps && j < engine_score_known(e, m); j++)
        x[j] = m->gaps[j] ? NAN : x[j];
    /* With lags a novelty row consists of several samples, and a single one has no predecessors. */
    out->judged = x && e->novelty->on && e->novelty->detector && e->novelty->lags == 1 &&
                  svi_detector_peek(e->novelty->detector, x, &out->novelty, &out->p);
    svi_free(x);
    out->scores = scores;
    out->rows = e->s->method == SVI_METHOD_NONE ? 0 : model.rows;
    out->classes = model.classes;
    out->class_count = model.class_count;
    out->classed = e->s->method != SVI_METHOD_NONE && e->s->task == SVS_CLASSIFY;
    out->version = model.version;
    out->bank = model.elsewhere;
    return x && scores ? SVS_OK : svi_fail_memory(err, "a sample to score");
}

/* Lets a new engine take the sample without a label, which adds the columns, what the prior of all keys has
 * for them, and the class that the bank of all keys says; what follows is scored as the first sample of that
 * key would be. */
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
    svi_free(s->scores);
    s->scores = NULL;
    svi_engine_free(&s->made);
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
        code = svi_schema_calendar(&e->schema, &m, isnan(m.ts) ? e->event_ts : m.ts, err);
    if (code == SVS_OK && m.missing > 0)
        code = svi_engine_fill_missing(e, &m, err);
    if (code == SVS_OK)
        code = svi_shape_fits(&e->schema.shape, &m, err);
    if (code == SVS_OK && began)
        code = engine_score_begin(e, &m, err);
    if (code == SVS_OK)
        code = engine_score_score(e, &m, out, err);
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
                        "leaving out each of the samples held would take %.2g multiplications, for which the "
                        "stream would wait; at most %.2g are made: a smaller window needs fewer",
                        cost, max_cost);
    return svs_learner_tune(e->learner, out, err);
}
