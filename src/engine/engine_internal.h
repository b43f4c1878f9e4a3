/* engine_internal.h: functions that the sources of the engine share, for this room alone; the structures are
 * in engine_parts.h. */
#ifndef SVI_ENGINE_INTERNAL_H
#define SVI_ENGINE_INTERNAL_H

#include "engine/engine_parts.h"

/* Has the engine its own novelty stage and rules, or the shared placeholder of engines that have them off? */
static inline bool svi_engine_has_novelty(const struct svi_engine *e) {
    return !e->off || e->novelty != &e->off->novelty;
}
static inline bool svi_engine_has_rules(const struct svi_engine *e) {
    return !e->off || e->rules != &e->off->rules;
}

/* Updates this engine's share of alert.budget. Must precede everything that sets the level of an alert. */
static inline void svi_engine_share(struct svi_engine *e) {
    const struct svi_engine_common *c = e->common;
    if (c->policies > 0 && svi_engine_has_novelty(e))
        svi_budget_share(&e->novelty->policy.budget, c->policies, c->asked);
}

/* The columns of a row of d columns at hand that are not learned as normal, in *out; NULL: none, as with
 * nearly every row. is_muted: is it under a mute at all? */
const struct svi_unlearned *svi_engine_find_unlearned(const struct svi_engine *e, int d,
                                                      struct svi_unlearned *out);
bool svi_engine_is_muted(const struct svi_engine *e);
static inline bool svi_engine_has_mutes(const struct svi_engine *e) {
    return e->common->mutes && e->common->mutes->count > 0;
}
static inline const struct svi_unlearned *svi_engine_unlearned(const struct svi_engine *e, int d,
                                                               struct svi_unlearned *out) {
    return svi_engine_has_mutes(e) ? svi_engine_find_unlearned(e, d, out) : NULL;
}

/* Replaces the missing values (NAN) of the row as the setting or the message says, and notes in m->gaps where
 * they were. SVS_MISSING_VALUE, SVS_NO_MEMORY. */
svs_code svi_engine_fill_missing(struct svi_engine *e, struct svi_message *m, svs_error *err);

void svi_engine_count_missing(struct svi_engine *e, const struct svi_message *m);

/* Passes new columns, and features that this sample reassigns to another value, to all stages that hold
 * samples. Results for the samples so far do not change. SVS_NO_MEMORY. */
svs_code svi_engine_grow(struct svi_engine *e, const struct svi_message *m, svs_error *err);

/* Marks the categorical columns of this sample as such for novelty. */
void svi_engine_refresh_categories(struct svi_engine *e);

/* Marks the columns of the setting `context` among the first d for novelty. Called for each due row, since
 * names may arrive after their columns. */
void svi_engine_refresh_context(struct svi_engine *e, int d);

/* Reports each class with index `from` or higher that may be a mistake: its text equals that of an older class
 * of another type (1 and "1"), or it is new after many labelled samples. */
void svi_engine_report_classes(struct svi_engine *e, int from, double now);

/* Makes a novelty stage, and rules, for these settings; the engine will own them. For one engine of many with
 * the stage off by *s, *made is left unchanged. SVS_NO_MEMORY. */
svs_code svi_engine_new_novelty(const struct svi_engine *e, const struct svi_settings *s,
                                struct svi_alert_stage **made, svs_error *err);
svs_code svi_engine_new_rules(const struct svi_engine *e, const struct svi_settings *s,
                              struct svi_rules **made, svs_error *err);

/* Options of the quality stage for these settings; `prices` points into *s. */
struct svi_quality_options svi_engine_quality_options(const struct svi_settings *s);

/* Reports to a schema with columns which samples are held now. To be called after samples were added or
 * removed, because the schema reuses the feature of a category only when no held sample has it. */
void svi_engine_refresh_held(struct svi_engine *e);
static inline void svi_engine_note_held(struct svi_engine *e) {
    if (e->schema.columns)
        svi_engine_refresh_held(e);
}

/* Invalidates the check of capacities: the next row reserves in all stages again. */
static inline void svi_engine_capacity_changed(struct svi_engine *e) {
    e->capacity_d = -1;
}

/* Allocates the last values of max_features features, all NAN (unknown). SVS_NO_MEMORY. */
svs_code svi_engine_new_carried(double **carried, int max_features, svs_error *err);

/* ---- engine_bank.c: the bank of `method auto` */

/* Makes a bank for a host learner with these options and d features. NULL: SVS_NO_MEMORY. */
svi_bank *svi_engine_make_bank(const struct svi_settings *s, const svs_options *host, int d, svs_error *err);
double svi_engine_bank_memory(const struct svi_settings *s, const svs_options *host, int d, int classes);

/* After the host has taken a sample: replaces the scores in *step by those of the bank, which then learns the
 * sample if it has a label. */
void svi_engine_bank_step(struct svi_engine *e, const svs_sample *s, double time, svs_step *step);

/* Around a late label. Before the host learns it, the members score its sample; after that they learn it. */
void svi_engine_bank_before_label(struct svi_engine *e, svs_value id);
void svi_engine_bank_label(struct svi_engine *e, svs_value id, svs_value y, double time, int label);

/* Makes a host and a bank for these settings from the samples held; `calibrator` (NULL is fine) learns from
 * the bank's scores of them. Codes of svi_learner_prepare; after a failure the caller frees what was made. */
svs_code svi_engine_teach_bank(const struct svi_engine *e, const struct svi_settings *s,
                               const svs_options *host, svi_calibrator *calibrator, svs_learner **fresh,
                               svi_bank **bank, svs_error *err);

/* Gives the bank the features that the host has. Without memory for it the engine marks itself out of memory
 * and continues. */
void svi_engine_bank_follow(struct svi_engine *e);

/* Pruning in two steps. spare_bank makes an empty bank for the flagged features and classes and may fail
 * (*spare is NULL without a bank). replace_bank, after the host was pruned (svi_learner_prune), installs it
 * and teaches it the samples held. */
svs_code svi_engine_spare_bank(const struct svi_engine *e, const bool *features, const bool *classes,
                               svi_bank **spare, svs_error *err);
void svi_engine_replace_bank(struct svi_engine *e, svi_bank **spare);

/* Declares a feature never to be scaled (svs_learner_unscaled), for the host and the bank. */
void svi_engine_leave_unscaled(struct svi_engine *e, int feature);

/* Calibrates the scores of the best linear member, which are published with its model, by this label (a class
 * index, below 0: none). */
void svi_engine_bank_calibrate(struct svi_engine *e, int label);

/* The bank's scores of row x (d values), one for each row of the model; nothing changes. */
void svi_engine_bank_peek(struct svi_engine *e, const double *x, double *scores);

/* The members' scores of the sample at hand. False: they are not published, or there is no bank. */
bool svi_engine_bank_members(const struct svi_engine *e, struct svi_member_scores *out);

/* The model of the best linear member. */
svs_code svi_engine_bank_model(struct svi_engine *e, svs_model *m, svs_error *err);

/* ---- engine_stack.c: the small stack of a key (bank/key_stack.h) */

/* Does the score of a sample come from more than the learner? */
static inline bool svi_engine_is_ensemble(const struct svi_engine *e) {
    return e->bank || e->stack;
}

void svi_engine_free_stack(struct svi_engine *e);
svs_code svi_engine_new_stack(struct svi_engine *e, const svs_options *host, svs_error *err);
double svi_engine_stack_memory(const struct svi_settings *s, const svs_options *host, int d, int classes);

/* Doubles of scratch that a stack needs. */
size_t svi_engine_stack_scratch(int max_classes);

/* Before a row of label y (SVS_NONE: it has none). Reserves in the quality stage for a new class, and for the
 * classes that the prior of all keys adds. Then the learner gets the class that the bank of all keys says, so
 * that the key can answer with it. */
svs_code svi_engine_reserve_class(struct svi_engine *e, svs_value y, svs_error *err);

/* The class that the bank of all keys says of the element at hand, if the learner does not know it and has
 * capacity for it besides a class of the element's own (fresh); else NULL. */
const svs_value *svi_engine_stack_new_class(const struct svi_engine *e, bool fresh);

/* After the host has taken a sample: replaces the scores in *step, and learns the sample if it has a label.
 */
void svi_engine_stack_step(struct svi_engine *e, const svs_sample *s, double time, svs_step *step);

/* Around a late label: the members score its sample before the host learns it, and learn it after that. */
void svi_engine_stack_before_label(struct svi_engine *e, svs_value id);
void svi_engine_stack_label(struct svi_engine *e, svs_value id, svs_value y, double time, svs_step *step);

/* Before the host removes its samples of this id. */
void svi_engine_stack_forget(struct svi_engine *e, svs_value id);
void svi_engine_stack_reset(struct svi_engine *e);

/* After the host has dropped features or classes: the other members begin again. */
void svi_engine_stack_pruned(struct svi_engine *e);

/* The score of row x (d values), one value for each row of the model; nothing changes. */
void svi_engine_stack_peek(struct svi_engine *e, const double *x, double *scores);
void svi_engine_stack_archive(struct svi_archive *a, struct svi_engine *e);

/* ---- engine_rules.c: the plain rules */

/* Runs the rules on an accepted row; the report publishes what they open or close. */
void svi_engine_rules_row(struct svi_engine *e, const struct svi_message *m, double now);
void svi_engine_rules_report(struct svi_engine *e, svs_value id);
/* Both for a row that is left out because a value is missing: its other sensors have reported. */
void svi_engine_rules_dropped(struct svi_engine *e, const struct svi_message *m, double now);
/* A feature was reassigned to another value; the settings have changed. */
void svi_engine_rules_renew(struct svi_engine *e, int feature);
void svi_engine_rules_configure(struct svi_engine *e);

/* Closes an open alert of the quality, or of novelty; `why` is the reason published. */
void svi_engine_end_drift(struct svi_engine *e, const char *why);
void svi_engine_end_novelty(struct svi_engine *e, const char *why);

/* Ends the alerts of the rules and drops all that the rules have learned. */
void svi_engine_rules_forget(struct svi_engine *e);

/* Moves all times after `from` by `step`, in the engine and in all its stages. */
void svi_engine_move_times(struct svi_engine *e, double from, double step);

/* Sends one event after filling in stream, epoch and seq. */
void svi_publish(struct svi_engine *e, struct svi_event *event);
/* Sends an event of an alert. */
void svi_publish_alert(struct svi_engine *e, const struct svi_alert_report *r, double ts);

/* Number an alert of novelty, or of a rule that has just been reported. False: the event is part of another
 * alert and is not published (engine_cases.c). */
bool svi_engine_case_novelty(struct svi_engine *e, struct svi_alert_event *a);
bool svi_engine_case_rule(struct svi_engine *e, struct svi_alert_event *a);
/* Adds a verdict on an alert to the alerts that are kept; it is not published. */
struct svi_given_verdict {
    int64_t alert;
    bool confirmed;
    const char *by; /* "": not stated */
};
void svi_publish_verdict(struct svi_engine *e, const struct svi_given_verdict *v, double now);
/* fill: a score event without the results of novelty; it points into step and m. publish: adds those results
 * and sends it, into the reply of its message, or both. */
void svi_fill_score(struct svi_engine *e, const struct svi_message *m, const svs_step *step,
                    struct svi_score *score);
void svi_publish_score(struct svi_engine *e, struct svi_score *score, const struct svi_alert_scores *novelty);

/* Queues an accepted sample for the second thread. Its score (NULL: none is due) and the change of an alert
 * are published when that is done, before any other event. False: there is no such thread, or no capacity;
 * the caller then assesses the sample itself. */
bool svi_engine_queue(struct svi_engine *e, const struct svi_message *m, const struct svi_score *score);

/* Publishes the refit that just took effect; and, if it does not serve, the online model after it, so that
 * the retained model is the one that serves. */
void svi_publish_refit(struct svi_engine *e);

/* The weights of the present model, with `seen` and the calibration but without names, quality and schema. */
svs_code svi_engine_weights(struct svi_engine *e, svs_model *m, svs_error *err);

/* Sets names and schema of a model of m->d features. SVS_NO_MEMORY. */
svs_code svi_engine_describe(struct svi_engine *e, svs_model *m, svs_error *err);

/* ---- engine_take_model.c */
/* May a model that was made elsewhere serve here: the stream's task, weights that can be computed with?
 * SVS_UNAVAILABLE, SVS_TOO_LARGE. */
svs_code svi_engine_check_foreign(const struct svi_engine *e, const svs_model *m, svs_error *err);

/* The enum svi_counter of an enum svi_kept_counter. */
int svi_kept_place(int kept);

/* Capacity for the names of d columns. SVS_NO_MEMORY: nothing has changed. */
svs_code svi_publish_reserve(struct svi_engine *e, int d, svs_error *err);

#endif
