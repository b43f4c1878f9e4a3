/* engine.h: one learner with its stages and no I/O: rows and time in, events out by callback. A stream is one
 * engine, or one for each key (fleet/stream.h).
 *
 * Engine time never decreases (except by svi_stream_move_clock): a sample moves it to its `ts`, or to its
 * arrival without one, if that is later; a command moves it only if it has a `ts`. A refused element changes
 * nothing (except that columns added for it stay if memory ran out after that) and causes exactly one error
 * event. An accepted sample is scored and learned, counted in the prequential figures, its score event is
 * published, then a model if one is due and the weights have changed; always in this order.
 *
 * All times are seconds; `now` is the arrival clock. Where a function takes `err`, its codes are listed; NULL
 * is not allowed unless stated. */
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

/* Called for each event, in order; the event and all it points to are valid during the call only. */
typedef void svi_sink(void *user, const struct svi_event *event);

void svi_engine_free(svi_engine **e); /* NULL in *e is fine */

/* Scores and alerts may be sent later than their sample, by a later call, but in the order that one thread
 * would have sent them in. This function sends those that wait. Functions that read or change the engine call
 * it themselves. */
void svi_engine_settle(svi_engine *e);

/* Takes one row from a text reader: cells, or x in the row of svi_engine_schema. A refusal is published as an
 * error event; `bytes` is the input that it shows. */
svs_code svi_engine_row(svi_engine *e, struct svi_message *m, const void *bytes, size_t length, double now,
                        svs_error *err);
struct svi_schema *svi_engine_schema(svi_engine *e);

/* Counts and publishes a refusal decided elsewhere (an unreadable text row, a disconnected peer). */
void svi_engine_refuse(svi_engine *e, svs_code code, const char *reason, const void *bytes, size_t length,
                       double now);

/* Removal and late label, as requested on the control socket; a refusal is also published as an error event.
 * *count: samples removed; `count` and `err` may be NULL. */
svs_code svi_engine_forget(svi_engine *e, svs_value id, double now, int *count, svs_error *err);
svs_code svi_engine_label(svi_engine *e, svs_value id, svs_value y, double now, svs_error *err);

/* The last known arrival, by the arrival clock; -INFINITY: none. */
double svi_engine_arrived(const svi_engine *e);

/* Is a recovered state ahead of the clock `now`? *step (negative) is the amount by which to move its arrival
 * times; 0 where only time stamps of producers are ahead. */
bool svi_engine_ahead(const svi_engine *e, double now, double *step);

/* A linear model (msgpack, svs_model_decode) replaces the refit and serves: from then on the settings of the
 * process and of the engine have `serve: refit`. Its classes must be those of the stream, in any order. Where
 * both have names, features are matched by name and columns that the model lacks get weight 0; otherwise the
 * numbers of features must be equal. Published as an error event with the code state_loaded. After a failure
 * nothing has changed: SVS_BAD_LABEL, SVS_WRONG_COLUMNS, SVS_WRONG_DIMENSION, SVS_UNAVAILABLE (refits are
 * off, or another task), SVS_TOO_LARGE, SVS_NO_MEMORY, codes of svs_model_decode. */
svs_code svi_engine_take_model(svi_engine *e, const void *bytes, size_t size, struct svi_settings *s,
                               double now, svs_error *err);

struct svi_merged_from; /* refit/refit_policy.h */

/* Reads where a merged model is from: the payload of a model event with the method merged and the key parts.
 * Codes of svi_msgpack_check and svi_fields_read; SVS_UNAVAILABLE: it is a model of another kind. */
svs_code svi_merged_read(struct svi_merged_from *from, const void *bytes, size_t size, svs_error *err);

/* Is such a model newer than the one that the engine has? */
bool svi_engine_wants_merged(const svi_engine *e, const struct svi_merged_from *from);

/* The start of the merger whose model was taken last; 0: none was. */
uint64_t svi_engine_merged_epoch(const svi_engine *e);

/* What svi_engine_take_merged would do with a merged model. */
enum svi_merged {
    SVI_MERGED_FITS,   /* take it */
    SVI_MERGED_OLD,    /* nothing: it is not newer than the one taken last */
    SVI_MERGED_EARLY,  /* nothing yet: the stream has no features, or the model fewer than two classes */
    SVI_MERGED_REFUSED /* nothing: *err says why it does not fit */
};
enum svi_merged svi_engine_check_merged(const svi_engine *e, const void *bytes, size_t size, svs_error *err);

/* A merged model takes the place of the refit (the setting merge.from). Features are matched by name: those
 * that either side lacks count for nothing, but arrays of numbers need all of them. Classes that the stream
 * lacks are added to it; those that the model lacks score -1. The model is published. SVS_OK also for an old
 * or early one, with which nothing happens. After a failure the model is the one before: SVS_BAD_LABEL,
 * SVS_LIMIT (max.classes), SVS_WRONG_COLUMNS, SVS_WRONG_DIMENSION, SVS_UNAVAILABLE, SVS_TOO_LARGE,
 * SVS_NO_MEMORY, codes of svs_model_decode. */
svs_code svi_engine_take_merged(svi_engine *e, const void *bytes, size_t size, svs_error *err);

/* Names in the settings `limits` and `context` that no column has so far, which therefore have no effect:
 * writes a text with these names and those of the first columns, at most `size` bytes. False: there is no
 * such name, or no column yet. */
bool svi_engine_strangers(const svi_engine *e, const struct svi_settings *s, char *text, size_t size);

/* Drops model, window, waiting samples, novelty and quality; counters, classes, features and sources stay. */
void svi_engine_reset(svi_engine *e);

/* Drops the features and classes that no held sample has. If features are dropped, novelty restarts; if
 * classes are, the figures of the quality do. SVS_UNAVAILABLE: without a window it is not known what is held;
 * SVS_NO_MEMORY: nothing has changed. */
svs_code svi_engine_prune(svi_engine *e, svs_error *err);
int svi_engine_classes(const svi_engine *e);                /* number of classes now */
svs_value svi_engine_class(const svi_engine *e, int index); /* SVS_NONE: there is no such class */

/* Publishes the present model, if its version has changed since the last time, or `force`. */
void svi_engine_publish_model(svi_engine *e, bool force);

/* Figures of each class; with `matrices` also the confusion matrices. count 0: no class yet, or a regression.
 * Pointers are valid until the next call of this function, svi_stream_figures or svi_stream_publish_stats. */
void svi_engine_class_table(svi_engine *e, bool matrices, struct svi_class_table *out);

/* Comparison of the learner with trivial baselines, and of the last refit with the online model over the
 * samples that both scored. refit.n 0: no comparison, since there is no refit or it serves. */
struct svi_engine_standing {
    struct svi_standing baseline;
    double worse; /* svi_baseline_worse */
    struct svi_advantage refit;
};
void svi_engine_standing(svi_engine *e, struct svi_engine_standing *out);

/* Effects of the passing of time alone, which is an input like any other: `deadline` says when the next one
 * is due, on the arrival clock (INFINITY: none is known), `pass` brings it about. A kept state records the
 * calls of `pass`. */
double svi_engine_deadline(const svi_engine *e);
void svi_engine_pass(svi_engine *e, double now);

/* The present model with `seen`, features, quality and the schema. Pointers are valid until the next call. */
svs_code svi_engine_model(svi_engine *e, svs_model *m, const struct svi_figure **quality, int *quality_count,
                          svs_error *err);

/* Scores the next element of a message with the present model; nothing is counted, learned or published.
 * `began`: the engine is new and is first given what its first sample would take from the prior of all keys;
 * after that it may only be freed. The caller clears *out, also after a failure; other pointers in it are the
 * engine's. */
struct svi_scored {
    bool names;       /* the element only names the columns of those after it; nothing else is set */
    svi_engine *made; /* engine of a new key, made for this and owned here; else NULL */
    bool classed;     /* scores and proba are of these classes, in this order */
    const svs_value *classes;
    int class_count;
    svs_value yhat;
    int predicted;  /* index of yhat among the classes; -1: none */
    double *scores; /* owned, unless it is of a struct svi_scoring; `rows` values */
    bool borrowed;  /* it is */
    int rows;
    const double *proba; /* by class, in the block of scores */
    int proba_count;     /* 0: none */
    uint64_t version;
    bool bank;   /* scored by the bank of method auto */
    bool merged; /* scored by a merged model */
    bool ranged; /* interval (low, high) is known */
    double interval[2];
    bool judged; /* novelty and p are known */
    double novelty, p;
};
svs_code svi_engine_score(svi_engine *e, struct svi_envelope *env, bool began, struct svi_scored *out,
                          svs_error *err);
void svi_scored_clear(struct svi_scored *s);

/* Buffers of a series of rows that are scored with one model. Zero-initialised is empty. */
struct svi_scoring {
    bool ready; /* `model` is the present one; its owner sets it to false when the engine may have changed */
    svs_model model;
    double *x, *scores; /* owned */
    int x_capacity, scores_capacity;
};
void svi_scoring_clear(struct svi_scoring *w);

/* svi_engine_score for a decoded row: cells, or x in the row of svi_engine_schema. out->scores belongs to *w
 * and is valid until the next row; svi_scored_clear frees out->made only. */
svs_code svi_engine_score_row(svi_engine *e, struct svi_message *m, bool began, struct svi_scoring *w,
                              struct svi_scored *out, svs_error *err);

/* Assesses values of C by leaving out each sample that the online model holds (svs_learner_tune). SVS_LIMIT:
 * it would take more than `max_cost` multiplications. SVS_UNAVAILABLE, with the reason: method none or auto,
 * a prior, and as svs_learner_tune. Changes nothing. */
svs_code svi_engine_tune(svi_engine *e, double max_cost, svs_tuning *out, svs_error *err);

/* The present model as an event of the model topic, with the `seq` of the last one sent; nothing is
 * published. `m` is filled and must live as long as the event. */
svs_code svi_engine_model_event(svi_engine *e, svs_model *m, struct svi_event *event, svs_error *err);

/* Likewise the event of the bank; `description` is filled and must live as long as the event.
 * SVS_UNAVAILABLE: the method is not auto. */
svs_code svi_engine_bank_event(svi_engine *e, struct svi_bank_description *description,
                               struct svi_event *event, svs_error *err);

/* The sums record of the learner that the setting merge.window names. Names and labels are the engine's and
 * valid until the next call; the caller clears *r, also after a failure. Changes nothing. SVS_UNAVAILABLE: no
 * row was seen yet, or no such learner runs; codes of svi_learner_sums. */
struct svi_sums;
svs_code svi_engine_sums(svi_engine *e, struct svi_sums *r, svs_error *err);

/* Differs from its earlier values where a record made now would differ in more than bits of rounding. */
uint64_t svi_engine_sums_mark(const svi_engine *e);

/* take: a refit whose snapshot is complete, to be run by svi_refit_run on any thread; NULL: no refit is
 * ready. give: the refit that was taken has been run and takes effect. A kept state records after which
 * sample, which is all that a replay needs to know. */
struct svi_refit *svi_engine_refit_take(svi_engine *e);
void svi_engine_refit_give(svi_engine *e);

/* Has the problem changed since this refit was taken? Then it must not be given back: the caller frees it,
 * and it is not recorded. */
bool svi_engine_refit_left(svi_engine *e, const struct svi_refit *job);

/* Runs a refit that is ready, if there is one, on this thread and gives it back. */
void svi_engine_refit_here(svi_engine *e);

/* Begins a refit now. SVS_UNAVAILABLE, with the reason: refits are off, one is running, or nothing to do. */
svs_code svi_engine_refit(svi_engine *e, svs_error *err);

uint64_t svi_engine_version(const svi_engine *e); /* of the online model */
int64_t svi_engine_errors(const svi_engine *e);  /* refusals and notices so far, without svi_code_is_remark */
int64_t svi_engine_notices(const svi_engine *e); /* of these, the notices, which refuse nothing */
const int64_t *svi_engine_refusals(const svi_engine *e); /* by code, SVS_CODE_COUNT of them */

/* ---- for a state that is kept */

/* Adopts the settings of *s that may change while the model lives, all or nothing; the others are ignored.
 * Those of SVI_CHANGE_RELEARN rebuild the model from the samples held (svs_learner_configure): the refit no
 * longer serves, and the next one begins at once; if the window changes, the windowed figures of the quality
 * restart. Those of SVI_CHANGE_RENEW end an open alert and restart novelty. For a change beyond
 * SVI_CHANGE_LIVE, an error event with the code config_changed names the differences, and the model that
 * serves now is published.
 *
 * In two halves: svi_engine_prepare does all that can fail and changes nothing; svi_engine_take cannot fail
 * and frees the change. The engine must not be used between them. Codes of svi_engine_configurable,
 * SVS_NO_MEMORY, and those of svs_learner_configure. */
struct svi_configured {
    int64_t samples; /* from which the model was rebuilt; -1: it was not */
};
struct svi_engine_change;
svs_code svi_engine_prepare(const svi_engine *e, const struct svi_settings *s,
                            struct svi_engine_change **change, svs_error *err);
void svi_engine_take(svi_engine *e, struct svi_engine_change **change, double now,
                     struct svi_configured *done);
void svi_engine_change_free(struct svi_engine_change **change); /* NULL is fine */

/* Would svi_engine_prepare accept these settings? Memory is not tried. SVS_SETTING, SVS_UNAVAILABLE (window 0
 * holds no samples to learn from). */
svs_code svi_engine_configurable(const svi_engine *e, const struct svi_settings *s, svs_error *err);

/* Was anything refused for lack of memory since the state was loaded? Then a replay may reach another state.
 */
bool svi_engine_out_of_memory(const svi_engine *e);

/* keep_model: from now on keep the bytes of the last model event, also while muted, for subscribers of a
 * later process. last_model: these bytes, valid until the next call; size 0: none yet. */
void svi_engine_keep_model(svi_engine *e);
const struct svi_bytes *svi_engine_last_model(const svi_engine *e);

/* Repeats a refit that took effect here in an earlier process (svi_refit_pack). */
svs_code svi_engine_refit_repeat(svi_engine *e, const void *record, size_t size, svs_error *err);

/* Begins again a refit that was running when its process ended. */
void svi_engine_refit_restart(svi_engine *e);

/* Forgets what a state does not hold of refits, so that this engine and one loaded from its state continue
 * alike, bit for bit. For engines that run refits themselves (svi_engine_refit_here). */
void svi_engine_refit_as_loaded(svi_engine *e);

/* Estimated heap (within a tenth) of one key in a stream with keys, once all its windows are full: bytes for
 * d features, of which `contexts` are columns of context, and this number of classes. */
double svi_engine_key_memory(const struct svi_settings *s, int d, int contexts, int classes);

/* Upper bound of the bytes that an engine holds; and of its state alone, without refits and queues. */
double svi_engine_memory(const struct svi_settings *s, int d, int classes);
double svi_engine_state_memory(const struct svi_settings *s, int d, int classes);

int svi_engine_features(const svi_engine *e); /* of the stream so far */

/* go_back: exchanges the state of *e with that of the older engine *then (svi_stream_go_back) and publishes
 * `reason`; cannot fail. check_back: SVS_UNAVAILABLE: it must not be called. */
svs_code svi_engine_check_back(const svi_engine *e, const svi_engine *then, svs_error *err);
void svi_engine_go_back(svi_engine *e, svi_engine *then, const char *reason, double now);

/* Relative residual of the model in the system of its window (svi_learner_residual); NAN = not known. */
double svi_engine_residual(svi_engine *e);

#endif
