/* engine.h: the whole stream processor without any I/O: messages and time in, events out by callback.
 *
 * What it emits on the model and score topics is a function of the calls alone (messages in order and their
 * `now`), bit for bit; how samples are cut into messages changes nothing. `now` is the arrival clock, seconds
 * since 1970.
 *
 * Engine time never goes back (but see svi_engine_move_clock): a sample moves it to its `ts`, or to its
 * arrival when it has none, if that is later; a command only if it has a `ts`. A refused element changes
 * nothing (only columns that were made for it when memory ran out stay) and gives exactly one error event.
 * For each accepted sample, in this order: it is scored and learned, counted in the prequential figures, its
 * score event goes out, then a model if one is due and the weights have changed. */
#ifndef SVI_ENGINE_H
#define SVI_ENGINE_H

#include "features/schema.h"
#include "refit/refit.h"
#include "config/settings.h"
#include "stats/metrics.h"
#include "stats/quality_figures.h"
#include "wire/control_command.h"
#include "wire/decode.h"
#include "wire/event.h"

typedef struct svi_engine svi_engine;

/* Called for each event, in order; everything in it is valid during the call only. */
typedef void svi_sink(void *user, const struct svi_event *event);

/* settings are copied. With `keyed` the stream has keys where the settings have `key`: then it is
 * svi_engine_new (keyed/keyed.h), which is for all others to call. NULL on failure. Owner: the caller. */
struct svi_keyed_calls;
svi_engine *svi_engine_new_with(const struct svi_settings *s, const struct svi_keyed_calls *keyed,
                                uint64_t epoch, svi_sink *sink, void *user, svs_error *err);
void svi_engine_free(svi_engine **e);

/* Novelty is judged on a thread of its own from here on, while the learner goes on with what comes after:
 * events, states and all else stay what they are, bit for bit. Where no thread can start nothing changes. */
void svi_engine_second_thread(svi_engine *e);

/* Open: scores and alerts may wait beyond the message that they are of, until a later call sends them, with
 * all others in the order in which they would have come; svi_engine_settle sends what waits. Else, as at
 * first, a message ends with all its events. Whatever asks the engine or changes it settles by itself. */
void svi_engine_leave_open(svi_engine *e, bool open);
void svi_engine_settle(svi_engine *e);

/* Samples that were given to the second thread so far, and those of which all events are out: they are equal
 * when nobody waits. */
uint64_t svi_engine_taken(const svi_engine *e);
uint64_t svi_engine_told(const svi_engine *e);

/* What score events carry from here on as `mark`: which row of an input they are of. */
void svi_engine_mark(svi_engine *e, int64_t mark);

/* Every accepted sample has a score event, whatever the setting `scores` says. */
void svi_engine_score_all(svi_engine *e, bool all);

/* What became of one message (for the router's reply). */
struct svi_receipt {
    int64_t seq;                /* engine number (from 0) of the last sample accepted so far, -1 = none */
    int accepted, refused;      /* elements of it; commands count too */
    int duplicates;             /* elements below `next` of their source: not applied again */
    svs_error error;            /* of the last refused element */
    char src[SVS_NAME_MAX + 1]; /* "" = it names no source */
    int64_t first;              /* its own number, -1 = none */
    int64_t jumped_from;        /* after a loss: the number that was due and is skipped; -1 = none is */
    int64_t n;                  /* last number taken of that source, -1 = none */
};

/* Applies one received message: a sample, a command or a batch. With `sourced`, `src` and `n` of the first
 * element are held against the table of sources: SVS_GAP and SVS_SOURCE_FORGOTTEN leave all as it was; bye
 * takes its source out of the table, and hello with `n` puts one that is not known back into it. The code is
 * that of the message as a whole (SVS_OK when it was well-formed, even if elements were refused: see the
 * receipt, which may be NULL). The envelope is used up. */
svs_code svi_engine_apply(svi_engine *e, struct svi_envelope *env, double now, bool sourced,
                          struct svi_receipt *r);

/* The same while the engine is open (svi_engine_leave_open): elements of keys may be at work on other threads
 * when it returns. Who is accepted or refused is in the receipt, which must stay where it is, after the next
 * svi_engine_settle; `seq` is that of the samples before those. */
svs_code svi_engine_apply_later(svi_engine *e, struct svi_envelope *env, double now, bool sourced,
                                struct svi_receipt *r);

/* Are the samples of keys learned on several threads? */
bool svi_engine_has_crew(const svi_engine *e);

/* With threads: topics (a bit each) of which events are sent with their payload. At first all. Of models,
 * scores and stats of keys others are not sent, for they have nothing else to be looked at. */
void svi_engine_encode(svi_engine *e, unsigned topics);

/* The first number of a source that was not taken yet; 0 for one that is not known (any more). */
int64_t svi_engine_source_next(const svi_engine *e, const char *src);

/* Whose place a source takes (sources.h). It is no part of what is computed: only what keeps quotas asks for
 * it. NULL: the source is not known. Valid until the next message is applied. */
uint64_t *svi_engine_source_owner(svi_engine *e, const char *src, size_t length);
int64_t svi_engine_sources_owned(const svi_engine *e, uint64_t owner, double now);
int64_t svi_engine_sources(const svi_engine *e);

/* One message from a text reader: cells, or x in the row of svi_engine_schema. A refusal is published as an
 * error event.
 */
svs_code svi_engine_message(svi_engine *e, struct svi_message *m, const void *bytes, size_t length,
                            double now, svs_error *err);
struct svi_schema *svi_engine_schema(svi_engine *e);

/* Counts and publishes a refusal that was made elsewhere (a text row, a peer that was cut). */
void svi_engine_refuse(svi_engine *e, svs_code code, const char *reason, const void *bytes, size_t length,
                       double now);

/* Late label and removal, as the control socket asks for them; a refusal gives an error event too. *count may
 * be NULL. */
svs_code svi_engine_forget(svi_engine *e, svs_value id, double now, int *count, svs_error *err);
svs_code svi_engine_label(svi_engine *e, svs_value id, svs_value y, double now, svs_error *err);

/* A control command that changes the state (svi_command_changes): forget, label, reset, prune, refit,
 * publish, config with set. *s: the settings of the process, which `config` changes too. The same call
 * applies it when it comes and when a recovery repeats it. *count as svi_engine_forget; of config the samples
 * that the model was made again from, or -1. Codes of the functions of their names. */
svs_code svi_engine_command(svi_engine *e, const struct svi_command *c, struct svi_settings *s, double now,
                            int *count, svs_error *err);

/* The engine of the key that a command names; that of the stream where it names none, or "". Valid until the
 * next call that is not about this key. NULL: SVS_BAD_KEY, SVS_MISSING_KEY, SVS_UNKNOWN_KEY. */
svi_engine *svi_engine_of_key(svi_engine *e, const struct svi_command *c, svs_error *err);

/* Likewise of that name. */
svi_engine *svi_engine_named(svi_engine *e, const char *key, svs_error *err);

int64_t svi_engine_unkeyed(const svi_engine *e); /* samples that had no key */

/* The arrival clock was moved by `step` seconds and shows `now`. Engine time that was read from it moves
 * along, and with it the times of all that is held (window, waiting samples, alerts, the next refit), so that
 * what is to last some seconds lasts as long. Engine time that came from time stamps stays, unless it lies
 * further in the future of the new clock than ts.ahead allows: then it becomes `now`, and what is later moves
 * along. Reported as an error event with the code clock_moved. */
void svi_engine_move_clock(svi_engine *e, double step, double now);

/* A state that was taken up lies in the future of the clock: *step is what it is to be moved by (0 where it
 * is of time stamps). */
bool svi_engine_ahead(const svi_engine *e, double now, double *step);

/* A linear model (msgpack, svs_model_decode) takes the place of the refit and serves: the settings of the
 * process and of the engine have serve refit from then on. Its classes must be those of the stream, in any
 * order; its features are found by name where both have names, and what it does not have counts for nothing;
 * else there must be as many. Reported as an error event with the code state_loaded. SVS_BAD_LABEL,
 * SVS_OTHER_COLUMNS, SVS_WRONG_DIMENSION, SVS_UNAVAILABLE (no refits, another task), codes of
 * svs_model_decode: nothing has changed. */
svs_code svi_engine_take_model(svi_engine *e, const void *bytes, size_t size, struct svi_settings *s,
                               double now, svs_error *err);

/* Drops model, window, waiting samples and quality; counters, classes, features and sources stay. */
void svi_engine_reset(svi_engine *e);

/* Drops the features and classes that no held sample has. With features novelty goes, and begins from
 * nothing; with classes the quality so far. SVS_UNAVAILABLE: it is not known what is held (window 0);
 * SVS_NO_MEMORY: nothing is changed. */
svs_code svi_engine_prune(svi_engine *e, svs_error *err);
int svi_engine_classes(const svi_engine *e); /* now */

/* Publishes the present model (if its version changed since the last time, or `force`), the stats. */
void svi_engine_publish_model(svi_engine *e, bool force);
void svi_engine_publish_stats(svi_engine *e, double now);

/* publish.seconds are over, which only the caller knows: publishes the model if its version changed, and the
 * stats. So which versions go out is no function of the samples; a state that is kept records the calls. */
void svi_engine_publish_due(svi_engine *e, double now);

/* Figures of the stats topic: counters, rates, quality, health. Pointers valid until the next call. Returns
 * the count. */
int svi_engine_figures(svi_engine *e, double now, const struct svi_figure **figures);

/* What each class has; with `matrices` the confusion matrices too. count 0: there is no class yet, it is a
 * regression, or a state is repeated that has none (svi_settings_uncalibrated). Pointers valid until the next
 * call of this, of svi_engine_figures or svi_engine_publish_stats. */
void svi_engine_class_table(svi_engine *e, bool matrices, struct svi_class_table *out);

/* How the learner stands against what needs none; and how the last refit does against the online model, over
 * the samples that both scored. n 0: it is not to be compared; or, the refit serves. */
struct svi_engine_standing {
    struct svi_standing baseline;
    struct svi_advantage refit;
};
void svi_engine_standing(svi_engine *e, struct svi_engine_standing *out);

/* What the mere passing of time brings about, as an input like any other: when it is due, on the arrival
 * clock (INFINITY: never, as far as is known), and that it is. A state that is kept records the calls. */
double svi_engine_deadline(const svi_engine *e);
void svi_engine_pass(svi_engine *e, double now);

/* A process begins, or began here: what was not heard before it is no silence. */
void svi_engine_begin(svi_engine *e, double now);

/* Where the stream stands, for live figures: cheap, and nothing changes by asking. `quality`: the figures of
 * the quality, valid until the next call of this or svi_engine_model. */
struct svi_engine_progress {
    int64_t seen, alerts; /* accepted; opened */
    struct svi_metrics_sums sums;
    const struct svi_figure *quality;
    int quality_count;
};
void svi_engine_progress(svi_engine *e, struct svi_engine_progress *out);

/* The present model with seen, features, quality and the schema. Pointers valid until the next call. */
svs_code svi_engine_model(svi_engine *e, svs_model *m, const struct svi_figure **quality, int *quality_count,
                          svs_error *err);

/* What the present model says of one sample (bytes as a producer would send them); nothing is counted,
 * learned or published. `scores` is the caller's to free (svi_free), also after a failure. */
struct svi_scored {
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
svs_code svi_engine_score(svi_engine *e, const void *bytes, size_t length, struct svi_scored *out,
                          svs_error *err);

/* C judged by leaving out each sample that the online model holds (svs_learner_tune); `most`: multiplications
 * that it may take at most, beyond which it is SVS_LIMIT. SVS_UNAVAILABLE, with the reason: method none, and
 * as svs_learner_tune. Changes nothing. */
svs_code svi_engine_tune(svi_engine *e, double most, svs_tuning *out, svs_error *err);

/* The same as the event of the model topic that would carry it, with the `seq` of the last one sent; nothing
 * is published. `m` is filled and must live as long as the event. */
svs_code svi_engine_model_event(svi_engine *e, svs_model *m, struct svi_event *event, svs_error *err);

/* Likewise the event of the bank. SVS_UNAVAILABLE: there is none, the method is not auto. */
svs_code svi_engine_bank_event(svi_engine *e, struct svi_bank_told *told, struct svi_event *event,
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

uint64_t svi_engine_epoch(const svi_engine *e);
int64_t svi_engine_seen(const svi_engine *e);
uint64_t svi_engine_version(const svi_engine *e);        /* of the online model */
int64_t svi_engine_errors(const svi_engine *e);          /* refusals so far */
const int64_t *svi_engine_refusals(const svi_engine *e); /* by code, SVS_CODE_COUNT of them */

/* ---- for a state that is kept */

const struct svi_settings *svi_engine_settings(const svi_engine *e);

/* Takes over the settings that may change while the model lives, all or nothing; the others of *s are not
 * looked at. Those of SVI_CHANGE_RELEARN make the model again from the samples held (svs_learner_configure):
 * the refit of before serves no more, and the next begins at once; with another window the windowed figures
 * of the quality begin again. Those of SVI_CHANGE_RENEW end an open alert, and novelty begins from nothing.
 * Beyond SVI_CHANGE_LIVE, an error event with the code config_changed says what has changed, and the model
 * that serves now is published. `done` may be NULL. Codes of svi_engine_configurable, SVS_NO_MEMORY, and
 * those of svs_learner_configure. */
struct svi_configured {
    int64_t samples; /* that the model was made from; -1: it is the one of before */
};
svs_code svi_engine_configure(svi_engine *e, const struct svi_settings *s, double now,
                              struct svi_configured *done, svs_error *err);

/* The same in two halves: all that can fail, and all that changes. Nothing may be done with the engine
 * between them. `svi_engine_take` uses the change up. */
struct svi_engine_change;
svs_code svi_engine_prepare(const svi_engine *e, const struct svi_settings *s,
                            struct svi_engine_change **change, svs_error *err);
void svi_engine_take(svi_engine *e, struct svi_engine_change **change, double now,
                     struct svi_configured *done);
void svi_engine_change_free(struct svi_engine_change **change); /* NULL is fine */

/* Could it, as far as is known without trying? SVS_SETTING, SVS_UNAVAILABLE (window 0 holds no samples). */
svs_code svi_engine_configurable(const svi_engine *e, const struct svi_settings *s, svs_error *err);

/* A muted engine numbers its events but sends none: it repeats what was done before. Unmuting begins rates
 * and uptime again. */
void svi_engine_mute(svi_engine *e, bool muted);

/* Was something refused because memory ran out, or because a key could not be read back? Then a repetition
 * may come to another state. The second says why if it was a key: SVS_IO, SVS_DAMAGED; SVS_OK: it was none.
 */
bool svi_engine_out_of_memory(const svi_engine *e);
svs_code svi_engine_lost_key(const svi_engine *e, svs_error *err);

/* Keeps the bytes of the last model event from here on, also while it is muted, for subscribers of a
 * later process. Size 0: there was none. Valid until the next call. */
void svi_engine_keep_model(svi_engine *e);
const struct svi_bytes *svi_engine_last_model(const svi_engine *e);

/* Part of what was sent before is lost: from here on each source goes on, once, at whatever number it gives.
 * Each call with true means one loss more. */
void svi_engine_allow_gaps(svi_engine *e, bool allowed);

/* What follows was recorded by a program that had no svi_engine_publish_due: models go out by themselves,
 * when publish.seconds of engine time are over. */
void svi_engine_publish_by_engine_time(svi_engine *e, bool on);

/* The result of a refit that took effect here before (svi_refit_pack). */
svs_code svi_engine_refit_repeat(svi_engine *e, const void *record, size_t size, svs_error *err);

/* A refit that was away when its process ended begins again. */
void svi_engine_refit_restart(svi_engine *e);

/* What is taken from now on is of this fsync_generation; all up to the fsync_generation `kept` is on disk. */
void svi_engine_set_fsync_generation(svi_engine *e, uint64_t fsync_generation, uint64_t kept);

/* The last number of a source that is on disk; -1 = none. */
int64_t svi_engine_source_durable(const svi_engine *e, const char *src);

/* Figures that the surroundings measure (queue ages, dropped subscribers, latency quantiles): kept by name,
 * sent with the stats. `name` must be static. At most SVI_GAUGES_MAX. */
void svi_engine_set_gauge(svi_engine *e, const char *name, double value);

/* Bytes that an engine will hold at most; and of these its state, without a refit. */
/* Of one key with that many features, columns of context among them, and classes, in a stream with keys: what
 * it takes in the heap once all is full, about (to a tenth). */
double svi_engine_key_memory(const struct svi_settings *s, int d, int contexts, int classes);
double svi_engine_memory(const struct svi_settings *s, int d, int classes);
double svi_engine_state_memory(const struct svi_settings *s, int d, int classes);

int svi_engine_features(const svi_engine *e); /* of the stream so far */

/* What keeps the state has `fixed` bytes and `share` of the state's size besides: for the stats. */
void svi_engine_set_kept_memory(svi_engine *e, double share, double fixed);

/* ---- the state as a checkpoint (engine_archive.c)
 *
 * Sections, bit for bit. Not kept: what the surroundings measure (gauges, rates, uptime) and the solver's own
 * state of a refit. What differs between two runs over the same inputs for reasons of time alone (numbers of
 * stats and error events, refusals, duplicates) is in the sections `tallies` and `clock`, which the
 * fingerprint leaves out. */

struct svi_checkpoint;

/* Fills everything but `position` of *c, whose buffers keep their room; the engine does not change. */
svs_code svi_engine_save(svi_engine *e, struct svi_checkpoint *c, svs_error *err);

/* Bytes that the sections take now. */
size_t svi_engine_size(svi_engine *e);

/* Into an engine that is new and has the settings of the checkpoint. SVS_DAMAGED, SVS_NO_MEMORY: it is fit to
 * be freed, nothing else. */
svs_code svi_engine_load(svi_engine *e, const struct svi_checkpoint *c, svs_error *err);

/* The state of a checkpoint of the same stream and epoch as an engine of its own, muted, with the limits of
 * `e` and its settings that may change at any time: what svi_engine_go_back goes back to. NULL: SVS_DAMAGED,
 * SVS_NO_MEMORY, SVS_SETTING, SVS_UNAVAILABLE (of another stream). Owner: the caller. */
svi_engine *svi_engine_then(const svi_engine *e, const struct svi_checkpoint *c, svs_error *err);

/* `e` goes back to *then, which is freed. Learner, schema, novelty, refit, quality and the settings that
 * shape the model are those of then, the samples that wait for a label too. What goes on: epoch, sources and
 * their numbers, the numbers of events and of samples, what is counted, engine time, and the version of the
 * model, which is higher than any before. An alert that is open ends. `reason` is published as an error event
 * with the code state_loaded, and the model after it. */
void svi_engine_go_back(svi_engine *e, svi_engine **then, const char *reason, double now);

/* The same engine with the limits of *s, which are higher: a new one takes its place. What may change while
 * the model lives stays as it is. On failure *e is as it was. */
svs_code svi_engine_widen(svi_engine **e, const struct svi_settings *s, svs_error *err);

/* Fingerprint of the state: SVI_HASH_TEXT bytes (store/checkpoint_file.h). SVS_NO_MEMORY. */
svs_code svi_engine_hash(svi_engine *e, char *hash, svs_error *err);

/* How far the model is from solving the system of its window (svi_learner_residual). */
double svi_engine_residual(svi_engine *e);

/* The model against one rebuilt from the window, and that of each key: the largest relative difference of the
 * weights. Changes nothing. */
svs_code svi_engine_verify(svi_engine *e, double *difference, svs_error *err);

/* Rebuilds the model from the window: its bits were made by another program or instruction set. */
void svi_engine_rebuild(svi_engine *e);

#endif
