/* engine.h: one learner's life without any I/O: rows and time in, events out by callback. A stream is one of
 * them, or one for each key (fleet/stream.h).
 *
 * Engine time never goes back (but see svi_stream_move_clock): a sample moves it to its `ts`, or to its
 * arrival when it has none, if that is later; a command only if it has a `ts`. A refused element changes
 * nothing (only columns that were made for it when memory ran out stay) and gives exactly one error event.
 * For each accepted sample, in this order: it is scored and learned, counted in the prequential figures, its
 * score event goes out, then a model if one is due and the weights have changed. */
#ifndef SVI_ENGINE_H
#define SVI_ENGINE_H

#include "engine/entry.h"
#include "features/schema.h"
#include "refit/refit.h"
#include "config/settings.h"
#include "quality/metrics.h"
#include "quality/quality_figures.h"
#include "wire/control_command.h"
#include "wire/decode.h"
#include "wire/event.h"

typedef struct svi_engine svi_engine;

/* Called for each event, in order; everything in it is valid during the call only. */
typedef void svi_sink(void *user, const struct svi_event *event);

void svi_engine_free(svi_engine **e);

/* Scores and alerts may wait beyond the sample that they are of, until a later call sends them, with all
 * others in the order in which they would have come; this sends what waits. Whatever asks the engine or
 * changes it settles by itself. */
void svi_engine_settle(svi_engine *e);

/* One row from a text reader: cells, or x in the row of svi_engine_schema. A refusal is published as an error
 * event. */
svs_code svi_engine_row(svi_engine *e, struct svi_message *m, const void *bytes, size_t length, double now,
                        svs_error *err);
struct svi_schema *svi_engine_schema(svi_engine *e);

/* Counts and publishes a refusal that was made elsewhere (a text row, a peer that was cut). */
void svi_engine_refuse(svi_engine *e, svs_code code, const char *reason, const void *bytes, size_t length,
                       double now);

/* Late label and removal, as the control socket asks for them; a refusal gives an error event too. *count may
 * be NULL. */
svs_code svi_engine_forget(svi_engine *e, svs_value id, double now, int *count, svs_error *err);
svs_code svi_engine_label(svi_engine *e, svs_value id, svs_value y, double now, svs_error *err);

/* The last arrival that is known, by the arrival clock; -INFINITY: none is. */
double svi_engine_arrived(const svi_engine *e);

/* A state that was taken up lies in the future of the clock: *step is what it is to be moved by (0 where only
 * time stamps do). */
bool svi_engine_ahead(const svi_engine *e, double now, double *step);

/* A linear model (msgpack, svs_model_decode) takes the place of the refit and serves: the settings of the
 * process and of the engine have serve refit from then on. Its classes must be those of the stream, in any
 * order; its features are found by name where both have names, and what it does not have counts for nothing;
 * else there must be as many. Reported as an error event with the code state_loaded. SVS_BAD_LABEL,
 * SVS_WRONG_COLUMNS, SVS_WRONG_DIMENSION, SVS_UNAVAILABLE (no refits, another task), codes of
 * svs_model_decode: nothing has changed. */
svs_code svi_engine_take_model(svi_engine *e, const void *bytes, size_t size, struct svi_settings *s,
                               double now, svs_error *err);

/* Names of the settings limits and context that no column has so far: what they do nothing for, and which
 * columns there are, as a text. False: there are none, or no column either. */
bool svi_engine_strangers(const svi_engine *e, const struct svi_settings *s, char *text, size_t size);

/* Drops model, window, waiting samples and quality; counters, classes, features and sources stay. */
void svi_engine_reset(svi_engine *e);

/* Drops the features and classes that no held sample has. With features novelty goes, and begins from
 * nothing; with classes the quality so far. SVS_UNAVAILABLE: it is not known what is held (window 0);
 * SVS_NO_MEMORY: nothing is changed. */
svs_code svi_engine_prune(svi_engine *e, svs_error *err);
int svi_engine_classes(const svi_engine *e); /* now */

/* Publishes the present model (if its version changed since the last time, or `force`). */
void svi_engine_publish_model(svi_engine *e, bool force);

/* What each class has; with `matrices` the confusion matrices too. count 0: there is no class yet, or it
 * is a regression. Pointers valid until the next
 * call of this, of svi_stream_figures or svi_stream_publish_stats. */
void svi_engine_class_table(svi_engine *e, bool matrices, struct svi_class_table_reserve *out);

/* How the learner stands against what needs none; and how the last refit does against the online model, over
 * the samples that both scored. n 0: it is not to be compared; or, the refit serves. */
struct svi_engine_standing {
    struct svi_standing baseline;
    double worse; /* svi_baseline_worse */
    struct svi_advantage refit;
};
void svi_engine_standing(svi_engine *e, struct svi_engine_standing *out);

/* What the mere passing of time brings about, as an input like any other: when it is due, on the arrival
 * clock (INFINITY: never, as far as is known), and that it is. A state that is kept records the calls. */
double svi_engine_deadline(const svi_engine *e);
void svi_engine_pass(svi_engine *e, double now);

/* The present model with seen, features, quality and the schema. Pointers valid until the next call. */
svs_code svi_engine_model(svi_engine *e, svs_model *m, const struct svi_figure **quality, int *quality_count,
                          svs_error *err);

/* What the present model says of the next element of a message; nothing is counted, learned or published.
 * `began`: the engine is new, and takes what its first sample would take from the prior of all keys: it is
 * fit to be freed after that. *out is to be cleared, also after a failure; what it points to is the engine's.
 */
struct svi_scored {
    bool names;       /* it only names the columns of those after it; nothing else is set */
    svi_engine *made; /* for this, as that of a new key, for there is none; else NULL */
    bool classed;     /* scores and proba are of these classes, in this order */
    const svs_value *classes;
    int class_count;
    svs_value yhat;
    double *scores;
    int rows;
    const double *proba; /* by class, in the block of scores */
    int proba_count;     /* 0: none */
    uint64_t version;
    bool bank;   /* made by the bank of method auto */
    bool ranged; /* interval (low, high) is known */
    double interval[2];
    bool judged; /* novelty and p are known */
    double novelty, p;
};
svs_code svi_engine_score(svi_engine *e, struct svi_envelope *env, bool began, struct svi_scored *out,
                          svs_error *err);
void svi_scored_clear(struct svi_scored *s);

/* C judged by leaving out each sample that the online model holds (svs_learner_tune); `most`: multiplications
 * that it may take at most, beyond which it is SVS_LIMIT. SVS_UNAVAILABLE, with the reason: method none, and
 * as svs_learner_tune. Changes nothing. */
svs_code svi_engine_tune(svi_engine *e, double most, svs_tuning *out, svs_error *err);

/* The same as the event of the model topic that would carry it, with the `seq` of the last one sent; nothing
 * is published. `m` is filled and must live as long as the event. */
svs_code svi_engine_model_event(svi_engine *e, svs_model *m, struct svi_event *event, svs_error *err);

/* Likewise the event of the bank. SVS_UNAVAILABLE: there is none, the method is not auto. */
svs_code svi_engine_bank_event(svi_engine *e, struct svi_bank_description *told, struct svi_event *event,
                               svs_error *err);

/* A refit whose snapshot is complete, to be run by svi_refit_run on any thread; NULL when there is none. It
 * must come back by svi_engine_refit_give, after which sample it does is recorded and is all that a replay
 * needs to know. */
struct svi_refit *svi_engine_refit_take(svi_engine *e);
void svi_engine_refit_give(svi_engine *e);

/* Has the problem changed while this refit was away? Then it does not come back: it is freed, and not
 * recorded.
 */
bool svi_engine_refit_left(svi_engine *e, const struct svi_refit *job);

/* Runs a refit that is ready at once, on this thread, and gives it back. */
void svi_engine_refit_here(svi_engine *e);

/* Begins a refit now. SVS_UNAVAILABLE: off, running already, or nothing to do, with the reason. */
svs_code svi_engine_refit(svi_engine *e, svs_error *err);

uint64_t svi_engine_version(const svi_engine *e); /* of the online model */
int64_t svi_engine_errors(const svi_engine *e);   /* refusals so far, and what else is reported as an error */
int64_t svi_engine_notices(const svi_engine *e);  /* of these, those about no sample */
const int64_t *svi_engine_refusals(const svi_engine *e); /* by code, SVS_CODE_COUNT of them */

/* ---- for a state that is kept */

/* Takes over the settings that may change while the model lives, all or nothing; the others of *s are not
 * looked at. Those of SVI_CHANGE_RELEARN make the model again from the samples held (svs_learner_configure):
 * the refit of before serves no more, and the next begins at once; with another window the windowed figures
 * of the quality begin again. Those of SVI_CHANGE_RENEW end an open alert, and novelty begins from nothing.
 * Beyond SVI_CHANGE_LIVE, an error event with the code config_changed says what has changed, and the model
 * that serves now is published.
 *
 * In two halves: all that can fail, and all that changes, which uses the change up. Nothing may be done with
 * the engine between them. Codes of svi_engine_configurable, SVS_NO_MEMORY, and those of
 * svs_learner_configure. */
struct svi_configured {
    int64_t samples; /* that the model was made from; -1: it is the one of before */
};
struct svi_engine_change;
svs_code svi_engine_prepare(const svi_engine *e, const struct svi_settings *s,
                            struct svi_engine_change **change, svs_error *err);
void svi_engine_take(svi_engine *e, struct svi_engine_change **change, double now,
                     struct svi_configured *done);
void svi_engine_change_free(struct svi_engine_change **change); /* NULL is fine */

/* Could it, as far as is known without trying? SVS_SETTING, SVS_UNAVAILABLE (window 0 holds no samples). */
svs_code svi_engine_configurable(const svi_engine *e, const struct svi_settings *s, svs_error *err);

/* Was something refused because memory ran out? Then a repetition may come to another state. */
bool svi_engine_out_of_memory(const svi_engine *e);

/* Keeps the bytes of the last model event from here on, also while it is muted, for subscribers of a
 * later process. Size 0: there was none. Valid until the next call. */
void svi_engine_keep_model(svi_engine *e);
const struct svi_bytes *svi_engine_last_model(const svi_engine *e);

/* The result of a refit that took effect here before (svi_refit_pack). */
svs_code svi_engine_refit_repeat(svi_engine *e, const void *record, size_t size, svs_error *err);

/* A refit that was away when its process ended begins again. */
void svi_engine_refit_restart(svi_engine *e);

/* Of one key with that many features, columns of context among them, and classes, in a stream with keys: what
 * it takes in the heap once all is full, about (to a tenth). */
double svi_engine_key_memory(const struct svi_settings *s, int d, int contexts, int classes);

/* Bytes that an engine will hold at most; and of these its state, without a refit. */
double svi_engine_memory(const struct svi_settings *s, int d, int classes);
double svi_engine_state_memory(const struct svi_settings *s, int d, int classes);

int svi_engine_features(const svi_engine *e); /* of the stream so far */

/* The engine goes back to the state of another one, which it leaves in its place: svi_stream_go_back.
 * SVS_UNAVAILABLE: it cannot, as far as is known without trying. */
svs_code svi_engine_check_back(const svi_engine *e, const svi_engine *then, svs_error *err);
void svi_engine_go_back(svi_engine *e, svi_engine *then, const char *reason, double now);

/* How far the model is from solving the system of its window (svi_learner_residual). */
double svi_engine_residual(svi_engine *e);

#endif
