/* stream.h: a stream as the world holds it: messages, rows, commands and time in, events out by callback. It
 * is one engine (engine/engine.h), or, where the setting `key` names a column, an engine for each key under
 * that of the samples without one.
 *
 * What it emits on the model and score topics is a function of the calls alone (messages in order and their
 * `now`), bit for bit; how samples are cut into messages changes nothing. `now` is the arrival clock, seconds
 * since 1970. */
#ifndef SVI_STREAM_H
#define SVI_STREAM_H

#include "engine/engine.h"
#include "engine/entry.h"

typedef struct svi_stream svi_stream;

/* settings are copied. NULL on failure. Owner: the caller. */
svi_stream *svi_stream_new(const struct svi_settings *s, uint64_t epoch, svi_sink *sink, void *user,
                           svs_error *err);
void svi_stream_free(svi_stream **s);

/* What may work on threads of its own does so from here on: the novelty of one engine, the samples of keys.
 * Events, states and all else stay what they are, bit for bit. Where no thread can start nothing changes. */
void svi_stream_use_threads(svi_stream *s);

/* Are the samples of keys learned on several threads? */
bool svi_stream_has_threads(const svi_stream *s);

/* With threads of keys: topics (a bit each) of which events are sent with their payload. At first all. Of
 * models, scores and stats of keys others are not sent, for they have nothing else to be looked at. */
void svi_stream_encode(svi_stream *s, unsigned topics);

/* A muted stream numbers its events but sends none: it repeats what was done before. Unmuting begins rates
 * and uptime again. */
void svi_stream_mute(svi_stream *s, bool muted);

/* Every accepted sample has a score event, whatever the setting `scores` says. */
void svi_stream_score_all(svi_stream *s, bool all);

/* What score events carry from here on as `mark`: which row of an input they are of. */
void svi_stream_mark(svi_stream *s, int64_t mark);

/* ---- what it consists of */

const struct svi_settings *svi_stream_settings(const svi_stream *s);
uint64_t svi_stream_epoch(const svi_stream *s);
struct svi_entry *svi_stream_entry(svi_stream *s);

/* The engine of the samples without a key: without keys, of all. No other thread is at work after it. */
svi_engine *svi_stream_root(svi_stream *s);

/* The engine of a key; "": that of the samples without one. Valid until the next call that is not about this
 * key. NULL: SVS_UNKNOWN_KEY, SVS_IO, SVS_NO_MEMORY. */
svi_engine *svi_stream_engine(svi_stream *s, const char *key, svs_error *err);

/* The key that a command names, SVS_KEY_MAX + 1 bytes; "" where it names none. SVS_BAD_KEY, SVS_MISSING_KEY.
 */
svs_code svi_stream_key_of(const svi_stream *s, const struct svi_command *c, char *key, svs_error *err);

/* Likewise of the key that a command names, which goes into `key` (SVS_KEY_MAX + 1 bytes): "" where it names
 * none. SVS_BAD_KEY, SVS_MISSING_KEY besides. */
svi_engine *svi_stream_engine_of(svi_stream *s, const struct svi_command *c, char *key, svs_error *err);

/* The event of the model topic that would carry the present model of a key, and of its bank:
 * svi_engine_model_event, svi_engine_bank_event. */
svs_code svi_stream_model_event(svi_stream *s, const char *key, svs_model *m, struct svi_event *event,
                                svs_error *err);
svs_code svi_stream_bank_event(svi_stream *s, const char *key, struct svi_bank_description *told,
                               struct svi_event *event, svs_error *err);

/* svi_engine_score by the engine of the key that the next element names, else of `key`. One that is not known
 * is scored by the prior of all keys: nothing is begun. Codes of svi_stream_engine besides. */
svs_code svi_stream_score(svi_stream *s, const char *key, struct svi_envelope *env, struct svi_scored *out,
                          svs_error *err);

/* ---- apply */

/* Applies one received message: a sample, a command or a batch. With `sourced`, `src` and `n` of the first
 * element are held against the table of sources (engine/entry.h). The code is that of the message as a whole
 * (SVS_OK when it was well-formed, even if elements were refused: see the receipt, which may be NULL). The
 * envelope is used up. */
svs_code svi_stream_apply(svi_stream *s, struct svi_envelope *env, double now, bool sourced,
                          struct svi_receipt *r);

/* The same while the stream is open (svi_stream_leave_open): elements of keys may be at work on other threads
 * when it returns. Who is accepted or refused is in the receipt, which must stay where it is, after the next
 * svi_stream_settle; `seq` is that of the samples before those. */
svs_code svi_stream_apply_later(svi_stream *s, struct svi_envelope *env, double now, bool sourced,
                                struct svi_receipt *r);

/* One message from a text reader: cells, or x in the row of svi_engine_schema of the root. A refusal is
 * published as an error event. */
svs_code svi_stream_message(svi_stream *s, struct svi_message *m, const void *bytes, size_t length,
                            double now, svs_error *err);

/* Counts and publishes a refusal that was made elsewhere (a text row, a peer that was cut). */
void svi_stream_refuse(svi_stream *s, svs_code code, const char *reason, const void *bytes, size_t length,
                       double now);

/* What the mere passing of time brings about, as an input like any other: when it is due, on the arrival
 * clock (INFINITY: never, as far as is known), and that it is. A state that is kept records the calls. */
double svi_stream_deadline(const svi_stream *s);
void svi_stream_pass(svi_stream *s, double now);

/* A process begins, or began here: silence counts from now on. */
void svi_stream_begin(svi_stream *s, double now);

/* Names of the settings limits and context that no column has, as far as the last key that was heard tells (a
 * stream without keys: all of it), as a text. False: there are none, or no columns yet. */
bool svi_stream_strangers(svi_stream *s, char *text, size_t size);

/* A state that was taken up is of a later time than the clock shows: *step is what it is to be moved by, 0
 * where only time stamps are. */
bool svi_stream_ahead(svi_stream *s, double now, double *step);

/* The arrival clock was moved by `step` seconds and shows `now`. Engine time that was read from it moves
 * along, and with it the times of all that is held (window, waiting samples, alerts, the next refit), so that
 * what is to last some seconds lasts as long. Engine time that came from time stamps stays, unless it lies
 * further in the future of the new clock than ts.ahead allows: then it becomes `now`, and what is later moves
 * along. Reported as an error event with the code clock_moved. */
void svi_stream_move_clock(svi_stream *s, double step, double now);

/* ---- command */

/* A control command that changes the state (svi_command_changes): forget, label, reset, prune, refit,
 * publish, drop, config with set. *s: the settings of the process, which `config` changes too. The same call
 * applies it when it comes and when a recovery repeats it. *count as svi_engine_forget; of config the samples
 * that the model was made again from, or -1. Codes of the functions of their names. */
svs_code svi_stream_command(svi_stream *stream, const struct svi_command *c, struct svi_settings *s,
                            double now, int *count, svs_error *err);

/* svi_engine_prepare and svi_engine_take, for all engines; and both at once, where `done` may be NULL. Codes
 * of svi_engine_prepare. */
svs_code svi_stream_configure(svi_stream *stream, const struct svi_settings *s, double now,
                              struct svi_configured *done, svs_error *err);
svs_code svi_stream_prepare(svi_stream *stream, const struct svi_settings *s,
                            struct svi_engine_change **change, svs_error *err);
void svi_stream_take(svi_stream *stream, struct svi_engine_change **change, double now,
                     struct svi_configured *done);

/* publish.seconds are over, which only the caller knows: publishes the model if its version changed, and the
 * stats. So which versions go out is no function of the samples; a state that is kept records the calls. */
void svi_stream_publish_due(svi_stream *s, double now);
void svi_stream_publish_stats(svi_stream *s, svi_engine *of, double now); /* of one; NULL: of all */

/* ---- settle */

/* Open: scores and alerts may wait beyond the message that they are of, until a later call sends them, with
 * all others in the order in which they would have come; svi_stream_settle sends what waits. Else, as at
 * first, a message ends with all its events. Whatever asks the stream or changes it settles by itself. */
void svi_stream_leave_open(svi_stream *s, bool open);
svi_engine *svi_stream_settle(svi_stream *s); /* returns the root */

/* Samples whose novelty was given to another thread so far, and those of which all events are out: they are
 * equal when nobody waits. */
uint64_t svi_stream_taken(const svi_stream *s);
uint64_t svi_stream_published(const svi_stream *s);

/* ---- save: the state as a checkpoint
 *
 * Sections, bit for bit. Not kept: what the surroundings measure (gauges, rates, uptime) and the solver's own
 * state of a refit. What differs between two runs over the same inputs for reasons of time alone (numbers of
 * stats and error events, refusals, duplicates) is in the sections `tallies` and `clock`, which the
 * fingerprint leaves out. */

struct svi_checkpoint;
struct svi_state_dir;

/* Fills everything but `position` of *c, whose buffers keep their room; the stream does not change. */
svs_code svi_stream_save(svi_stream *s, struct svi_checkpoint *c, svs_error *err);

/* Bytes that the sections take now. */
size_t svi_stream_size(svi_stream *s);

/* Into a stream that is new and has the settings of the checkpoint. SVS_DAMAGED, SVS_NO_MEMORY: it is fit to
 * be freed, nothing else. */
svs_code svi_stream_load(svi_stream *s, const struct svi_checkpoint *c, svs_error *err);

/* Fingerprint of the state: SVI_HASH_TEXT bytes (store/checkpoint_file.h). SVS_NO_MEMORY. */
svs_code svi_stream_hash(svi_stream *s, char *hash, svs_error *err);

/* The model against one rebuilt from the window, and that of each key: the largest relative difference of the
 * weights. Changes nothing. */
svs_code svi_stream_verify(svi_stream *s, double *difference, svs_error *err);

/* Rebuilds the models from their windows: their bits were made by another program or instruction set. */
void svi_stream_rebuild(svi_stream *s);

/* The same stream with the limits of *s, which are higher: a new one takes its place. What may change while
 * the model lives stays as it is. On failure *stream is as it was. */
svs_code svi_stream_widen(svi_stream **stream, const struct svi_settings *s, svs_error *err);

/* The state of a checkpoint of the same stream and epoch as a stream of its own, muted, with the limits of
 * `s` and its settings that may change at any time: what svi_stream_go_back goes back to. NULL: SVS_DAMAGED,
 * SVS_NO_MEMORY, SVS_SETTING, SVS_UNAVAILABLE (of another stream). Owner: the caller. */
svi_stream *svi_stream_then(const svi_stream *s, const struct svi_checkpoint *c, svs_error *err);

/* `s` goes back to *then, which is freed. Learner, schema, novelty, refit, quality and the settings that
 * shape the model are those of then, the samples that wait for a label too. What goes on: epoch, sources and
 * their numbers, the numbers of events and of samples, what is counted, engine time, and the version of the
 * model, which is higher than any before. An alert that is open ends. `reason` is published as an error event
 * with the code state_loaded, and the model after it. Not for a stream with keys. */
void svi_stream_go_back(svi_stream *s, svi_stream **then, const char *reason, double now);

/* ---- figures */

int64_t svi_stream_seen(const svi_stream *s);    /* samples accepted */
int64_t svi_stream_unkeyed(const svi_stream *s); /* of them without a key */
int64_t svi_stream_errors(const svi_stream *s);  /* refusals so far, and other error events */
int64_t svi_stream_refused(const svi_stream *s); /* refusals alone (svi_code_is_notice) */

/* Was something refused because memory ran out, or because a key could not be read back? Then a repetition
 * may come to another state. The second says why if it was a key: SVS_IO, SVS_DAMAGED; SVS_OK: it was none.
 */
bool svi_stream_out_of_memory(const svi_stream *s);
svs_code svi_stream_lost_key(const svi_stream *s, svs_error *err);

/* Figures of the stats topic: counters, rates, quality, health. Of one engine of the stream; NULL: of all.
 * Pointers valid until the next call. Returns the count. */
int svi_stream_figures(svi_stream *s, svi_engine *of, double now, const struct svi_figure **figures);

/* Figures that the surroundings measure (queue ages, dropped subscribers, latency quantiles): kept by name,
 * sent with the stats. `name` must be static. At most SVI_GAUGES_MAX. */
void svi_stream_set_gauge(svi_stream *s, const char *name, double value);

/* What keeps the state has `fixed` bytes and `share` of the state's size besides: for the stats. */
void svi_stream_set_kept_memory(svi_stream *s, double share, double fixed);

/* Where the stream stands, for live figures: cheap, and nothing changes by asking. `quality`: the figures of
 * the quality, valid until the next call of this or svi_engine_model. */
struct svi_stream_progress {
    int64_t seen, alerts; /* accepted; opened */
    struct svi_metrics_sums sums;
    const struct svi_figure *quality;
    int quality_count;
};
void svi_stream_progress(svi_stream *s, struct svi_stream_progress *out);

#endif
