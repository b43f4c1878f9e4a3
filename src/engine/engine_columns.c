/* Columns in the engine: replacement of missing values, and features that are added or reassigned to another
 * value (a category that no held sample has gives its feature to a new one). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text.h"
#include "data/cell.h"
#include "engine/engine_internal.h"
#include "learner/learner_held.h"
#include "learner/learner_prior.h"
#include "learner/learner_renew.h"

static svs_code engine_refuse_missing(const struct svi_engine *e, int column, svs_error *err) {
    char shown[80];
    const char *name = svs_features_name(e->schema.shape.names, column);
    const char *why = e->carried ? SVI_NOTHING_TO_CARRY : "is missing, which the setting missing refuses";
    if (name)
        return svi_fail(err, SVS_MISSING_VALUE, "feature %d ('%s') %s", column,
                        svi_escape(shown, sizeof shown, name, strlen(name)), why);
    return svi_fail(err, SVS_MISSING_VALUE, "feature %d %s", column, why);
}

/* The replacement of a missing value; NAN: none, and the sample is refused. */
static double engine_replacement(struct svi_engine *e, enum svi_missing policy, int column) {
    switch (policy) {
    case SVI_MISSING_ZERO:
        return 0;
    case SVI_MISSING_MEAN:
        return column < svs_learner_dimension(e->learner) ? svi_learner_mean(e->learner, column) : 0;
    case SVI_MISSING_CARRY:
        return e->carried ? e->carried[column] : NAN;
    default:
        return NAN;
    }
}

svs_code svi_engine_fill_missing(struct svi_engine *e, struct svi_message *m, svs_error *err) {
    const enum svi_missing policy = svi_schema_policy(&e->schema, m);
    if (!e->gaps && !(e->gaps = svi_alloc((size_t)e->s->max_features)))
        return svi_fail_memory(err, "which values are missing");
    for (int j = 0; j < m->d; j++) {
        e->gaps[j] = isnan(m->x[j]);
        if (!e->gaps[j])
            continue;
        const double v = engine_replacement(e, policy, j);
        if (isnan(v))
            return engine_refuse_missing(e, j, err);
        m->x[j] = v;
    }
    m->gaps =
        policy == SVI_MISSING_CARRY ? NULL : e->gaps; /* novelty assesses a carried value as a real one */
    return SVS_OK;
}

void svi_engine_count_missing(struct svi_engine *e, const struct svi_message *m) {
    static const int counters[] = {[SVI_MISSING_CARRY] = SVI_KEPT_CARRIED_MISSING,
                                   [SVI_MISSING_MEAN] = SVI_KEPT_FILLED_MISSING,
                                   [SVI_MISSING_ZERO] = SVI_KEPT_FILLED_MISSING};
    e->kept[counters[svi_schema_policy(&e->schema, m)]] += m->missing;
}

void svi_engine_leave_unscaled(struct svi_engine *e, int feature) {
    svs_learner_unscaled(e->learner, feature);
    if (e->bank)
        svi_bank_unscaled(e->bank, feature);
    if (svi_engine_whole(e))
        svs_learner_unscaled(svi_engine_whole(e), feature);
}

/* Adds columns to the host, then to the bank. The host decides: a bank without memory to follow is asked
 * again before the next sample. After a failure the new features must not stay flagged as unscaled. */
static svs_code engine_widen(struct svi_engine *e, int d, svs_error *err) {
    const int before = svs_learner_dimension(e->learner);
    svs_code code = svs_learner_grow(e->learner, d, err);
    if (code == SVS_OK) {
        svi_engine_bank_follow(e);
        return SVS_OK;
    }
    svi_learner_scale_from(e->learner, before);
    if (e->bank)
        svi_bank_scale_from(e->bank, before);
    return code;
}

/* Gives a feature its identity in the prior of all keys (learner/learner_prior.h): keys may have the same
 * features at different indices. */
static svs_code columns_place_one(struct svi_engine *e, int feature, svs_error *err) {
    return svi_learner_place(e->learner, feature, svs_features_name(e->schema.shape.names, feature), err);
}

/* In this order: new columns are flagged as unscaled before the learner has them, then added, then placed in
 * the prior; last come the reassigned features, whose old value is removed from every stage that indexes by
 * feature. A new stage of that kind needs a line in the loop. */
svs_code svi_engine_grow(struct svi_engine *e, const struct svi_message *m, svs_error *err) {
    const int before = svs_learner_dimension(e->learner);
    for (int j = before; j < m->d; j++)
        if (svi_schema_unscaled(&e->schema, j))
            svi_engine_leave_unscaled(e, j);
    svs_code code = m->d > before ? engine_widen(e, m->d, err) : SVS_OK;
    for (int j = svi_learner_placed(e->learner); j < m->d && code == SVS_OK; j++)
        code = columns_place_one(e, j, err);
    for (int i = 0; i < e->schema.renewed_count && code == SVS_OK; i++) {
        const int j = e->schema.renewed[i].feature;
        if (j >= before)
            continue;
        svi_learner_renew(e->learner, j);
        if (svi_engine_whole(e) && j < svs_learner_dimension(svi_engine_whole(e)))
            svi_learner_renew(svi_engine_whole(e), j);
        if (j < svi_learner_placed(e->learner)) /* its identity in the prior has changed as well */
            code = columns_place_one(e, j, err);
        if (e->bank)
            svi_bank_renew(e->bank, j);
        svi_engine_leave_unscaled(e, j);
        svi_refit_policy_renew(e->refit, e->learner, j);
        svi_alert_stage_renew(e->novelty, j);
        svi_alarm_renew(&e->quality_stage.alarm, j);
        svi_engine_rules_renew(e, j);
        if (e->outliers)
            svi_outliers_renew(e->outliers, j);
        e->name_count = j < e->name_count ? j : e->name_count;
    }
    return code;
}

void svi_engine_refresh_categories(struct svi_engine *e) {
    for (int i = 0; i < e->schema.hot_count; i++)
        if (!svi_alert_stage_knows_category(e->novelty, e->schema.hot[i])) {
            svi_engine_settle(e);
            svi_alert_stage_category(e->novelty, e->schema.hot[i]);
        }
}

/* Is this feature named in the setting `context`: by its name, by the column of its category ("shift" for
 * "shift=day"), or by its number if it has no name? */
static bool columns_context(const struct svi_engine *e, int feature) {
    char number[16];
    const char *name = svi_schema_name(&e->schema, feature);
    snprintf(number, sizeof number, "%d", feature);
    name = name ? name : number;
    const char *value = strchr(name, '=');
    const struct svi_span whole = {name, name + strlen(name)}, column = {name, value};
    return svi_span_listed(whole, e->s->context) || (value && svi_span_listed(column, e->s->context));
}

void svi_engine_refresh_context(struct svi_engine *e, int d) {
    const int names = e->schema.shape.names_kept;
    struct svi_alert_stage *n = e->novelty;
    if (!e->s->context[0] || svi_detectors_columns(&n->detectors) < 0 ||
        (d == n->context_d && names == n->context_names))
        return;
    svi_engine_settle(e);
    for (int j = 0; j < d; j++)
        if (columns_context(e, j))
            (void)svi_detectors_set_context(&n->detectors, j);
    n->context_d = d;
    n->context_names = names;
}

void svi_engine_refresh_held(struct svi_engine *e) {
    struct svi_learner_span span;
    svi_learner_span(e->learner, &span);
    e->schema.held = (struct svi_held){span.window, e->s->window == 0 && !e->bank ? -1 : span.window_oldest,
                                       span.waiting, span.waiting_oldest};
}
