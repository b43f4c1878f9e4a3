/* engine_internal.h: what the sources of the engine share, for them alone; what it consists of is in
 * engine_parts.h. */
#ifndef SVI_ENGINE_INTERNAL_H
#define SVI_ENGINE_INTERNAL_H

#include "engine/engine_parts.h"

/* Has it a novelty stage, and rules, of its own? */
static inline bool svi_engine_has_novelty(const struct svi_engine *e) {
    return !e->off || e->novelty != &e->off->novelty;
}
static inline bool svi_engine_has_rules(const struct svi_engine *e) {
    return !e->off || e->rules != &e->off->rules;
}

/* Before anything that sets the level of an alert: its share of alert.budget is that of now. */
static inline void svi_engine_share(struct svi_engine *e) {
    const struct svi_engine_common *c = e->common;
    if (c->policies > 0 && svi_engine_has_novelty(e))
        svi_budget_share(&e->novelty->policy.budget, c->policies, c->asked);
}

/* Puts something in the place of missing values, as the setting or the message says. SVS_MISSING_VALUE,
 * SVS_NO_MEMORY. */
svs_code svi_engine_fill_missing(struct svi_engine *e, struct svi_message *m, svs_error *err);

void svi_engine_count_missing(struct svi_engine *e, const struct svi_message *m);

/* Columns that are new, and features that change hands in this sample, reach all that holds samples;
 * nothing of it changes what is known so far. */
svs_code svi_engine_grow(struct svi_engine *e, const struct svi_message *m, svs_error *err);

/* The values of categories in this sample are that to novelty. */
void svi_engine_refresh_categories(struct svi_engine *e);

/* The columns of the setting `context` are that to novelty; names may come after their columns. */
/* Classes from this one on are new: one whose text is that of another, of another type, is reported. */
void svi_engine_report_twin_classes(struct svi_engine *e, int from, double now);

void svi_engine_refresh_context(struct svi_engine *e, int d);

/* A novelty stage and rules of its own. Of one of many, where they are off by *s: *made stays what it is.
 * SVS_NO_MEMORY. */
svs_code svi_engine_new_novelty(const struct svi_engine *e, const struct svi_settings *s,
                                struct svi_alert_stage **made, svs_error *err);
svs_code svi_engine_new_rules(const struct svi_engine *e, const struct svi_settings *s,
                              struct svi_rules **made, svs_error *err);

/* NULL: SVS_NO_MEMORY. */
/* What the settings say of quality; its prices are a view of theirs. */
struct svi_quality_options svi_engine_quality_options(const struct svi_settings *s);

/* What holds samples has changed: a schema with columns goes by it. */
void svi_engine_refresh_held(struct svi_engine *e);
static inline void svi_engine_note_held(struct svi_engine *e) {
    if (e->schema.columns)
        svi_engine_refresh_held(e);
}

/* Something that rooms are made of has changed: the next row asks for them again. */
static inline void svi_engine_capacity_changed(struct svi_engine *e) {
    e->capacity_d = -1;
}

/* The last values of the features, none known. SVS_NO_MEMORY. */
svs_code svi_engine_new_carried(double **carried, int max_features, svs_error *err);

/* ---- engine_bank.c: the bank of `method auto` */

/* A bank for a host with these options and d features. NULL: SVS_NO_MEMORY. */
svi_bank *svi_engine_make_bank(const struct svi_settings *s, const svs_options *host, int d, svs_error *err);
double svi_engine_bank_memory(const struct svi_settings *s, const svs_options *host, int d, int classes);

/* After the host has taken a sample: the scores become those of the bank, which learns it if it has a label.
 */
void svi_engine_bank_step(struct svi_engine *e, const svs_sample *s, double time, svs_step *step);

/* Around a late label: what the members say of its sample; and, once the host has learned it, they learn it
 * too. */
void svi_engine_bank_before_label(struct svi_engine *e, svs_value id);
void svi_engine_bank_label(struct svi_engine *e, svs_value id, svs_value y, double time, int label);

/* A host and a bank for these settings, made from the samples that are held; `calibrator` (NULL is fine) is
 * taught what the bank says of them. Codes of svi_learner_prepare; after a failure the caller frees what was
 * made. */
svs_code svi_engine_teach_bank(const struct svi_engine *e, const struct svi_settings *s,
                               const svs_options *host, svi_calibrator *calibrator, svs_learner **fresh,
                               svi_bank **bank, svs_error *err);

/* The bank gets the features that the host has. Without memory the engine is out of it, and goes on. */
void svi_engine_bank_follow(struct svi_engine *e);

/* The features and classes that are flagged get other indices, as those of the host do (svi_learner_prune):
 * first an empty bank for them, which may fail (NULL without a bank); then, with the host as it is after it,
 * this takes the place of the bank and is taught what is held. */
svs_code svi_engine_spare_bank(const struct svi_engine *e, const bool *features, const bool *classes,
                               svi_bank **spare, svs_error *err);
void svi_engine_replace_bank(struct svi_engine *e, svi_bank **spare);

/* A feature is never scaled (svs_learner_unscaled): the host and the bank follow. */
void svi_engine_leave_unscaled(struct svi_engine *e, int feature);

/* What the label says of the scores of the best linear member, which are published with its model. */
void svi_engine_bank_calibrate(struct svi_engine *e, int label);

/* The bank's scores of a row; nothing changes. */
void svi_engine_bank_peek(struct svi_engine *e, const double *x, double *scores);

/* What members said of the sample at hand. False: it is not asked for, or there is no bank. */
bool svi_engine_bank_members(const struct svi_engine *e, struct svi_member_scores *said);

/* The model of the best linear member. */
svs_code svi_engine_bank_model(struct svi_engine *e, svs_model *m, svs_error *err);

/* ---- engine_rules.c: the plain rules */

/* An accepted row, which is learned and told of; a feature changes hands; the settings have changed. */
void svi_engine_rules_row(struct svi_engine *e, const struct svi_message *m, double now);
/* One that is left out because a value is missing still tells of its sensors. */
void svi_engine_rules_dropped(struct svi_engine *e, const struct svi_message *m, double now);
void svi_engine_rules_renew(struct svi_engine *e, int feature);
void svi_engine_rules_configure(struct svi_engine *e);

/* An alert of the quality, or of novelty, that is open ends, and says why. */
void svi_engine_end_drift(struct svi_engine *e, const char *why);
void svi_engine_end_novelty(struct svi_engine *e, const char *why);

/* All that they know goes; alerts end. */
void svi_engine_rules_forget(struct svi_engine *e);

/* The engine's times after `from` move by `step`, and those of all that it holds. */
void svi_engine_move_times(struct svi_engine *e, double from, double step);

/* Sends one event: fills in stream, epoch and seq. */
void svi_publish(struct svi_engine *e, struct svi_event *event);
/* Sends what an alert says. */
void svi_publish_alert(struct svi_engine *e, const struct svi_alert_report *r, double ts);
/* A score event but for what novelty says, which points into step and m; and sends it with that. */
void svi_fill_score(struct svi_engine *e, const struct svi_message *m, const svs_step *step,
                    struct svi_score *score);
void svi_publish_score(struct svi_engine *e, struct svi_score *score, const struct svi_alert_scores *said);

/* An accepted sample, judged by the second thread; its score (NULL: none is due) and what becomes of the
 * alert are published when that is done, before any other event. False: there is no such thread, or no room.
 */
bool svi_engine_queue(struct svi_engine *e, const struct svi_message *m, const struct svi_score *score);

/* The refit that just took effect; and, if it does not serve, the online model after it, so that the
 * retained one is the one that serves. */
void svi_publish_refit(struct svi_engine *e);

/* The present model with seen and features, without its schema: what scores. */
svs_code svi_engine_weights(struct svi_engine *e, svs_model *m, svs_error *err);

/* Which enum svi_counter it is. */
int svi_kept_place(int kept);

/* Room for the names of d columns. */
svs_code svi_publish_reserve(struct svi_engine *e, int d, svs_error *err);

#endif
