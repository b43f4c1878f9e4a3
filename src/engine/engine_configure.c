/* Changes of settings while the stream runs: by `ctl config`, at a restart, or repeated by a recovery.
 *
 * The change class of a setting (config/settings.h) says what it takes. Most settings simply hold from then
 * on. Those of the classifier rebuild the model from the samples held, and what depends on it: refits
 * restart, and with the window the windowed figures. Those of novelty make a new novelty stage.
 *
 * A change is all or nothing. svi_engine_prepare does everything that takes memory or can be refused;
 * svi_engine_take cannot fail. A process that keeps its state writes the change to its journal between them.
 * One event names the differences, and the new model is published at once.
 *
 * The result is a function of the calls, as everywhere in the engine, so a journal repeats it. Read
 * svi_engine_prepare and configure_take first. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "config/settings_record.h"
#include "engine/alert_options.h"
#include "engine/engine_internal.h"
#include "learner/learner_configure.h"
#include "learner/learner_held.h"

/* What a change affects, and everything allocated for it. Members that svi_engine_take uses are moved out and
 * set to NULL; the rest is freed with the change. */
struct svi_engine_change {
    struct svi_shared_settings *shared;
    struct svi_settings *to; /* in `shared` */
    svs_learner *learner;
    svi_bank *bank; /* for method auto */
    double *host_scores;
    svs_options options;
    struct svi_class_weights weights; /* of the options */
    bool relearn, renew, refits, window, carries;
    struct svi_quality_options quality; /* of `to` */
    struct svi_quality_window figures;
    svi_calibrator *calibrator;
    struct svi_refit_policy refit;
    struct svi_alert_stage_options alerts;
    struct svi_detector_prepared prepared;
    double *carried;
    struct svi_outliers *outliers;
    struct svi_alert_stage *own_novelty; /* for one engine of many whose novelty is switched on */
    struct svi_rules *own_rules;         /* likewise */
    struct svi_decision *prices;         /* if there were not any before */
};

/* The next multiple of `every` after `seen`; -1 = never. */
static int64_t next_due(int64_t seen, int64_t every) {
    return every > 0 ? (seen / every + 1) * every : -1;
}

static void configuring_end(struct svi_engine_change *c) {
    svi_free(c->own_novelty);
    svi_free(c->own_rules);
    svi_quality_prices_free(&c->prices);
    svs_learner_free(&c->learner);
    svi_bank_free(&c->bank);
    svi_free(c->host_scores);
    svi_quality_window_clear(&c->figures);
    svi_calibrator_free(&c->calibrator);
    svi_refit_policy_free(&c->refit);
    svi_detector_prepared_clear(&c->prepared);
    svi_free(c->carried);
    svi_outliers_free(&c->outliers);
    svi_shared_settings_leave(&c->shared);
}

/* Settles the new settings and what they affect. SVS_SETTING: they may not change in this way. */
static svs_code configuring_begin(struct svi_engine_change *c, const struct svi_engine *e,
                                  const struct svi_settings *s, svs_error *err) {
    *c = (struct svi_engine_change){.shared = svi_shared_settings_new(e->s, err)};
    if (!c->shared)
        return SVS_NO_MEMORY;
    c->to = &c->shared->s;
    svi_settings_adopt(c->to, s);
    c->relearn = svi_settings_differ_in(e->s, c->to, SVI_CHANGE_RELEARN);
    c->renew = svi_settings_differ_in(e->s, c->to, SVI_CHANGE_RENEW);
    c->refits = c->relearn || svi_settings_refits(e->s) != svi_settings_refits(c->to) ||
                svi_settings_merges(e->s) != svi_settings_merges(c->to);
    c->quality = svi_engine_quality_options(c->to);
    c->window = svi_engine_quality_options(e->s).window != c->quality.window;
    c->carries = c->to->missing == SVI_MISSING_CARRY;
    return svi_settings_change_allowed(e->s, c->to, err);
}

/* Calibrates the new model by the samples held: each is scored before it is learned, as in the stream. */
static void configuring_calibrate(void *user, const svs_learner *fresh, const svs_sample *sample, double time,
                                  const svs_step *step) {
    struct svi_engine_change *c = user;
    (void)fresh, (void)sample, (void)time;
    if (c->calibrator && step->label >= 0 && step->class_count > 1)
        svi_calibrator_learn(c->calibrator, step->scores, step->rows, step->class_count, step->label, NULL);
}

/* For one engine of many, allocates the stages that are switched on: while they are off it has placeholders.
 */
static svs_code configuring_make_own(struct svi_engine_change *c, const struct svi_engine *e,
                                     svs_error *err) {
    if (!svi_engine_has_novelty(e))
        SVI_TRY(svi_engine_new_novelty(e, c->to, &c->own_novelty, err));
    if (!svi_engine_has_rules(e))
        SVI_TRY(svi_engine_new_rules(e, c->to, &c->own_rules, err));
    return e->quality_stage.prices ? SVS_OK : svi_quality_prices_new(&c->prices, &c->quality, err);
}

/* Allocates everything that the change needs. Learning comes last, since it is by far the most work. */
static svs_code configuring_make(struct svi_engine_change *c, const struct svi_engine *e, svs_error *err) {
    SVI_TRY(svi_engine_alert_options(c->to, &c->alerts, err));
    SVI_TRY(configuring_make_own(c, e, err));
    if (!c->renew)
        SVI_TRY(svi_alert_stage_prepare(e->novelty, &c->alerts, &c->prepared, err));
    if (c->window)
        SVI_TRY(svi_quality_window_make(&c->figures, &c->quality, svs_learner_class_count(e->learner), err));
    if (c->refits)
        SVI_TRY(svi_refit_policy_new(&c->refit, c->to, err));
    if (c->carries && !e->carried)
        SVI_TRY(svi_engine_new_carried(&c->carried, (int)c->to->max_features, err));
    if (svi_outliers_wanted(c->to) && !e->outliers && !(c->outliers = svi_outliers_new(err)))
        return SVS_NO_MEMORY;
    SVI_TRY(svi_settings_learning(c->to, &c->weights, &c->options, err));
    if (!c->relearn)
        return SVS_OK;
    if (e->quality_stage.proba && !(c->calibrator = svi_calibrator_new((int)c->to->max_classes, false, err)))
        return SVS_NO_MEMORY;
    if (c->calibrator)
        svi_calibrator_trust(c->calibrator, c->quality.log_odds);
    if (c->to->method != SVI_METHOD_AUTO)
        return svi_learner_prepare(e->learner, &c->options, configuring_calibrate, c, &c->learner, err);
    c->host_scores = svi_alloc_array((size_t)c->options.max_classes, sizeof *c->host_scores);
    return c->host_scores
               ? svi_engine_teach_bank(e, c->to, &c->options, c->calibrator, &c->learner, &c->bank, err)
               : svi_fail_memory(err, "the scores of a bank");
}

/* After a rebuild every sample held has a new number. Reports to the schema which sample had each category
 * last, by the new numbers, or it would reassign features that are in use. */
static void configure_renumber(struct svi_engine *e) {
    const double *row;
    int64_t number;
    for (int64_t i = 0; e->schema.columns && svi_learner_held_row(e->learner, i, &row, &number); i++) {
        e->schema.held.window = number + 1;
        if (row)
            svi_schema_used_row(&e->schema, row, svs_learner_dimension(e->learner));
    }
    svi_engine_note_held(e);
}

/* Novelty of its own for an engine that had none; other options for the stage it has; or a new stage, after
 * the open alert has been closed by the old one. */
static void configure_novelty(struct svi_engine *e, struct svi_engine_change *c) {
    if (c->own_novelty)
        e->novelty = c->own_novelty;
    const bool fresh = c->own_novelty;
    c->own_novelty = NULL;
    if (fresh || !svi_engine_has_novelty(e))
        return;
    if (!c->renew) {
        svi_engine_share(e); /* before the alert levels are set */
        svi_alert_stage_configure(e->novelty, &c->alerts, &c->prepared);
        return;
    }
    svi_engine_end_novelty(e, "the settings of novelty have changed");
    svi_alert_stage_replace(e->novelty, &c->alerts);
}

static void configure_schema(struct svi_engine *e, struct svi_engine_change *c) {
    struct svi_schema_options o;
    svi_settings_schema(c->to, &o);
    e->schema.o.missing = o.missing;
    e->schema.o.refuse_new = o.refuse_new;
    e->schema.o.held_rows = o.held_rows;
    if (c->carries == (e->carried != NULL))
        return;
    svi_free(e->carried);
    e->carried = c->carried;
    c->carried = NULL;
}

static void configure_outliers(struct svi_engine *e, struct svi_engine_change *c) {
    if (!svi_outliers_wanted(c->to))
        svi_outliers_free(&e->outliers);
    if (!c->outliers)
        return;
    e->outliers = c->outliers;
    c->outliers = NULL;
    svi_engine_capacity_changed(e);
}

/* Replaces the bank by that of the new method; c->bank is NULL if that has none. */
static void configure_bank(struct svi_engine *e, struct svi_engine_change *c) {
    svi_bank_free(&e->bank);
    svi_free(e->host_scores);
    e->bank = c->bank;
    svi_learner_relax(e->learner, e->bank);
    e->host_scores = c->host_scores;
    c->bank = NULL;
    c->host_scores = NULL;
}

/* Nothing here can fail. Up to svi_engine_share_settings e->s has the old settings, which the comparisons
 * need; after it the new ones, which the stages read. */
static void configure_take(struct svi_engine *e, struct svi_engine_change *c) {
    const int64_t seen = e->kept[SVI_KEPT_SEEN];
    const bool again = c->learner != NULL; /* the samples were learned again; else only the ridge changes */
    if (c->to->publish_every != e->s->publish_every)
        e->next_publish = next_due(seen, c->to->publish_every);
    if (c->to->scores != e->s->scores)
        e->next_score = next_due(seen, c->to->scores);
    if (c->relearn) {
        svi_learner_take(e->learner, &c->options, &c->learner);
        configure_bank(e, c);
    }
    svi_learner_set_labels_ttl(e->learner, c->to->labels_ttl);
    configure_novelty(e, c);
    configure_schema(e, c);
    configure_outliers(e, c);
    /* The new policy may begin a refit here and copy the window: the learner must be the new one. */
    if (c->refits && !e->off)
        svi_refit_policy_replace(e->refit, &c->refit, e->learner, seen, e->time);
    else
        svi_refit_policy_configure(e->refit, c->to, seen, e->time);
    if (!e->off &&
        strcmp(e->s->merge_from, c->to->merge_from) != 0) /* another merger counts in its own way */
        e->refit->from = (struct svi_merged_from){0};
    if (c->window)
        svi_quality_stage_take_window(&e->quality_stage, &c->figures);
    /* Scores of another scale: the calibration so far does not fit them. */
    if ((e->s->serve == SVI_SERVE_LINEAR) != (c->to->serve == SVI_SERVE_LINEAR))
        svi_quality_stage_forget_online(&e->quality_stage);
    svi_engine_share_settings(e, c->shared);
    /* What follows reads the new settings through e->s: drift, quality, rules. The old novelty alert was
     * closed above, before its stage was replaced. */
    if (!(e->s->drift_rate > 0))
        svi_engine_end_drift(e, "drift.rate is 0");
    if (c->prices)
        e->quality_stage.prices = c->prices;
    c->prices = NULL;
    const struct svi_quality_options quality = svi_engine_quality_options(e->s);
    svi_quality_stage_configure(&e->quality_stage, &quality);
    if (c->own_rules)
        e->rules = c->own_rules;
    c->own_rules = NULL;
    if (svi_engine_has_rules(e))
        svi_engine_rules_configure(e);
    if (c->relearn)
        configure_renumber(e);
    /* After svi_quality_stage_forget_online, which would discard it. */
    if (again)
        svi_quality_stage_take_calibrator(&e->quality_stage, &c->calibrator);
}

static void configure_report(struct svi_engine *e, const struct svi_engine_change *c, const char *differences,
                             const struct svi_configured *done, double now) {
    char reason[SVS_ERROR_TEXT];
    const int length = snprintf(reason, sizeof reason, "%s", differences);
    if (c->relearn && length < (int)sizeof reason)
        snprintf(reason + length, sizeof reason - (size_t)length,
                 ": the model was rebuilt from %" PRId64 " samples", done->samples);
    else if (c->renew && length < (int)sizeof reason)
        snprintf(reason + length, sizeof reason - (size_t)length, ": novelty starts again from nothing");
    svi_publish_error(e, SVS_CONFIG_CHANGED, reason, NULL, 0, now);
    if (c->refits)
        svi_engine_publish_model(e, false);
}

svs_code svi_engine_configurable(const svi_engine *e, const struct svi_settings *s, svs_error *err) {
    struct svi_engine_change c;
    svs_options o;
    struct svi_class_weights weights;
    svs_code code = configuring_begin(&c, e, s, err);
    if (code == SVS_OK && c.relearn && (code = svi_settings_learning(c.to, &weights, &o, err)) == SVS_OK)
        code = svs_learner_configurable(e->learner, &o, err);
    configuring_end(&c);
    return code;
}

svs_code svi_engine_prepare(const svi_engine *e, const struct svi_settings *s,
                            struct svi_engine_change **change, svs_error *err) {
    struct svi_engine_change *c = *change = svi_alloc(sizeof *c);
    if (!c)
        return svi_fail_memory(err, "a change of settings");
    svs_code code = configuring_begin(c, e, s, err);
    if (code == SVS_OK)
        code = configuring_make(c, e, err);
    if (code != SVS_OK)
        svi_engine_change_free(change);
    return code;
}

void svi_engine_change_free(struct svi_engine_change **change) {
    if (!*change)
        return;
    configuring_end(*change);
    svi_free(*change);
    *change = NULL;
}

void svi_engine_take(svi_engine *e, struct svi_engine_change **change, double now,
                     struct svi_configured *done) {
    struct svi_engine_change *c = *change;
    svs_health h;
    char differences[160];
    svi_engine_settle(e);
    svi_settings_differences(e->s, c->to, differences, sizeof differences);
    configure_take(e, c);
    svs_learner_health(e->learner, &h);
    done->samples = c->relearn ? h.held : -1;
    if (differences[0])
        configure_report(e, c, differences, done, now);
    svi_engine_change_free(change);
}
