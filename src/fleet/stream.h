/* stream.h: a stream as its users see it: messages, rows, commands and time in, events out by callback. It is
 * one engine (engine/engine.h) or, if the setting `key` names a column, one engine for each key besides that
 * of the samples without a key (the root).
 *
 * Events of the model and score topics are a function of the calls alone (messages in order and their `now`),
 * bit for bit; how samples are grouped into messages does not matter. `now` is the arrival clock, seconds
 * since 1970. */
#ifndef SVI_STREAM_H
#define SVI_STREAM_H

#include "alerts/mutes.h"
#include "engine/engine.h"
#include "engine/entry.h"
#include "fleet/kept_alerts.h"

typedef struct svi_stream svi_stream;

/* The settings are copied. NULL: SVS_NO_MEMORY, SVS_SETTING. Owner: the caller. */
svi_stream *svi_stream_new(const struct svi_settings *s, uint64_t epoch, svi_sink *sink, void *user,
                           svs_error *err);
void svi_stream_free(svi_stream **s);

/* Uses further threads from now on: for the novelty of a single engine, and for the samples of keys. Events
 * and states stay the same, bit for bit. If no thread can be started, nothing changes. */
void svi_stream_use_threads(svi_stream *s);

/* Are the samples of keys learned on several threads? */
bool svi_stream_has_threads(const svi_stream *s);

/* With threads for keys: the topics (a bit each, initially all) whose events are encoded on those threads and
 * sent with their payload. Models, scores and stats of keys on other topics are not sent at all. */
void svi_stream_encode(svi_stream *s, unsigned topics);

/* A muted stream numbers its events but sends none, as during a recovery. Unmuting restarts rates and uptime.
 */
void svi_stream_mute(svi_stream *s, bool muted);

/* With `all`, every accepted sample has a score event, whatever the setting `scores` says. */
void svi_stream_score_all(svi_stream *s, bool all);

/* Score events have no number (seq 0) and are not counted as published: which of them are wanted does not
 * change the state. */
void svi_stream_leave_scores_unnumbered(svi_stream *s);

/* Sets the `mark` of further score events: the number of the input row that they belong to. */
void svi_stream_mark(svi_stream *s, int64_t mark);

/* ---- parts */

const struct svi_settings *svi_stream_settings(const svi_stream *s);
uint64_t svi_stream_epoch(const svi_stream *s);
struct svi_entry *svi_stream_entry(svi_stream *s);

/* The engine of the samples without a key; in a stream without keys, of all. Settles: all other threads are
 * idle when it returns. */
svi_engine *svi_stream_root(svi_stream *s);

/* The engine of a key; "": the root. Valid until the next call that is not about this key. NULL:
 * SVS_UNKNOWN_KEY, SVS_IO, SVS_NO_MEMORY. */
svi_engine *svi_stream_engine(svi_stream *s, const char *key, svs_error *err);

/* Writes the key that a command names to `key` (SVS_KEY_MAX + 1 bytes); "" if it names none. SVS_BAD_KEY,
 * SVS_MISSING_KEY. */
svs_code svi_stream_key_of(const svi_stream *s, const struct svi_command *c, char *key, svs_error *err);

/* The engine of that key, which is written to `key` as well. Codes of both functions above. */
svi_engine *svi_stream_engine_of(svi_stream *s, const struct svi_command *c, char *key, svs_error *err);

/* The present model of a key, and its bank, as events (svi_engine_model_event, svi_engine_bank_event);
 * nothing is published. */
svs_code svi_stream_model_event(svi_stream *s, const char *key, svs_model *m, struct svi_event *event,
                                svs_error *err);
svs_code svi_stream_bank_event(svi_stream *s, const char *key, struct svi_bank_description *description,
                               struct svi_event *event, svs_error *err);

/* svi_engine_score by the engine of the key that the next element names, else of `key`. An unknown key is
 * scored by the prior of all keys and not added. Codes of svi_stream_engine besides. */
svs_code svi_stream_score(svi_stream *s, const char *key, struct svi_envelope *env, struct svi_scored *out,
                          svs_error *err);

/* The same for a decoded row (svi_engine_score_row). *w is of one key: rows of another one need another. */
svs_code svi_stream_score_row(svi_stream *s, const char *key, struct svi_message *m, struct svi_scoring *w,
                              struct svi_scored *out, svs_error *err);

/* ---- apply */

/* Collects what becomes of the elements of the next messages, until it is called with NULL: their scores, for
 * replies. It is complete after svi_stream_settle, and when svi_stream_published reaches what
 * svi_stream_taken is after the message, unless keys have threads. The state does not depend on it. */
void svi_stream_ask(svi_stream *s, struct svi_reply_scores *asked);

/* Applies one received message: a sample, a command or a batch. With `sourced`, `src` and `n` of the first
 * element are checked against the table of sources (engine/entry.h). Returns the code of the message as a
 * whole: SVS_OK if it was well-formed, even if elements were refused (see the receipt, which may be NULL).
 * The envelope is used up. */
svs_code svi_stream_apply(svi_stream *s, struct svi_envelope *env, double now, bool sourced,
                          struct svi_receipt *r);

/* The same while the stream is open (svi_stream_leave_open): other threads may still be working on elements
 * of keys when it returns. The receipt is complete after the next svi_stream_settle and must stay valid until
 * then; its `seq` does not include those elements. */
svs_code svi_stream_apply_later(svi_stream *s, struct svi_envelope *env, double now, bool sourced,
                                struct svi_receipt *r);

/* One message from a text reader: cells, or x in the row of svi_engine_schema of the root. A refusal is
 * published as an error event. */
svs_code svi_stream_message(svi_stream *s, struct svi_message *m, const void *bytes, size_t length,
                            double now, svs_error *err);

/* Counts and publishes a refusal decided elsewhere (an unreadable text row, a disconnected peer). */
void svi_stream_refuse(svi_stream *s, svs_code code, const char *reason, const void *bytes, size_t length,
                       double now);

/* Effects of the passing of time alone, which is an input like any other: `deadline` says when the next one
 * is due, on the arrival clock (INFINITY: none is known), `pass` brings it about. A kept state records the
 * calls of `pass`. */
double svi_stream_deadline(const svi_stream *s);
void svi_stream_pass(svi_stream *s, double now);

/* A process begins (or, in a recovery, began) at `now`: silence counts from then on. */
void svi_stream_begin(svi_stream *s, double now);

/* Names in the settings `limits` and `context` that no column has, as a text; with keys, by the columns of
 * the key that was last seen. False: none, or no columns yet. */
bool svi_stream_strangers(svi_stream *s, char *text, size_t size);

/* Is a recovered state ahead of the clock? *step: the amount by which to move its arrival times, 0 where only
 * time stamps are ahead. */
bool svi_stream_ahead(svi_stream *s, double now, double *step);

/* The arrival clock was moved by `step` seconds and shows `now`. Engine time that was read from it moves
 * along, and with it the times of all that is held (window, waiting samples, alerts, the next refit), so that
 * periods keep their length. Engine time from time stamps stays, unless it is further ahead of the new clock
 * than ts.ahead allows: then it becomes `now`, and later times move along. Published as an error event with
 * the code clock_moved. */
void svi_stream_move_clock(svi_stream *s, double step, double now);

/* ---- command */

/* Carries out a control command that changes the state (svi_command_changes): forget, label, reset, prune,
 * refit, publish, drop, config with set. *s: the settings of the process, which `config` changes as well. A
 * recovery repeats commands by the same call. *count: as in svi_engine_forget; for config the samples from
 * which the model was rebuilt, or -1. Codes of the functions with these names. */
svs_code svi_stream_command(svi_stream *stream, const struct svi_command *c, struct svi_settings *s,
                            double now, int *count, svs_error *err);

/* svi_engine_prepare and svi_engine_take for all engines; `configure` does both at once, with `done` possibly
 * NULL. Codes of svi_engine_prepare. */
svs_code svi_stream_configure(svi_stream *stream, const struct svi_settings *s, double now,
                              struct svi_configured *done, svs_error *err);
svs_code svi_stream_prepare(svi_stream *stream, const struct svi_settings *s,
                            struct svi_engine_change **change, svs_error *err);
void svi_stream_take(svi_stream *stream, struct svi_engine_change **change, double now,
                     struct svi_configured *done);

/* The sums record of the stream (svi_engine_sums), and its mark. Changes nothing. */
struct svi_sums;
svs_code svi_stream_sums(svi_stream *s, struct svi_sums *r, svs_error *err);
uint64_t svi_stream_sums_mark(svi_stream *s);

/* publish.seconds have passed, which only the caller knows: publishes the model if its version has changed,
 * and the stats. The published versions then depend on more than the samples, so a kept state records the
 * calls. */
void svi_stream_publish_due(svi_stream *s, double now);
void svi_stream_publish_stats(svi_stream *s, svi_engine *of, double now); /* of one engine; NULL: of all */

/* ---- mutes: silence on purpose (alerts/mutes.h), changed by the commands mute and unmute */

/* The mutes of the stream, to be read; and the number of existing keys that one of them covers, -1 for a
 * stream without keys. */
const struct svi_mutes *svi_stream_mutes(svi_stream *s);
int64_t svi_stream_mute_keys(svi_stream *s, const struct svi_mute *mute);

/* ---- settle */

/* While the stream is open, scores and alerts may be sent later than their message, by a later call, but in
 * the order that one thread would have sent them in; svi_stream_settle sends those that wait. While it is not
 * open, as initially, all events of a message are sent before its call returns. Functions that read or change
 * the stream settle it themselves. */
void svi_stream_leave_open(svi_stream *s, bool open);
svi_engine *svi_stream_settle(svi_stream *s); /* returns the root */

/* Number of samples whose novelty was given to another thread so far, and of those whose events were
 * published; equal when no sample waits. */
uint64_t svi_stream_taken(const svi_stream *s);
uint64_t svi_stream_published(const svi_stream *s);

/* ---- save: the state as a checkpoint
 *
 * Sections, bit for bit. Not saved are measurements from outside (gauges, rates, uptime) and the solver's
 * state of a running refit. Values that differ between two runs over the same input because of time alone
 * (numbers of stats and error events, refusals, duplicates) are in the sections `tallies` and `clock`, which
 * are not part of the fingerprint. */

struct svi_checkpoint;
struct svi_state_dir;

/* Fills in *c except `position`; its buffers keep their capacity. The stream does not change. */
svs_code svi_stream_save(svi_stream *s, struct svi_checkpoint *c, svs_error *err);

/* Bytes of all sections now. */
size_t svi_stream_size(svi_stream *s);

/* Loads a checkpoint into a new stream with its settings. After a failure (SVS_DAMAGED, SVS_NO_MEMORY) the
 * stream may only be freed. */
svs_code svi_stream_load(svi_stream *s, const struct svi_checkpoint *c, svs_error *err);

/* Fingerprint of the state: SVI_HASH_TEXT bytes (store/checkpoint_file.h). SVS_NO_MEMORY. */
svs_code svi_stream_hash(svi_stream *s, char *hash, svs_error *err);

/* Compares the model, with keys that of each key, with one rebuilt from the window: the largest relative
 * difference of the weights. Changes nothing. */
svs_code svi_stream_verify(svi_stream *s, double *difference, svs_error *err);

/* Rebuilds all models from their windows, after another program or instruction set has made their bits. */
void svi_stream_rebuild(svi_stream *s);

/* Replaces *stream by a stream with the same state and the higher limits of *s. Settings that may change
 * while the model lives stay as they are. After a failure *stream is unchanged. */
svs_code svi_stream_widen(svi_stream **stream, const struct svi_settings *s, svs_error *err);

/* Loads a checkpoint of the same stream and epoch as a second, muted stream, with the limits of `s` and its
 * settings that may change at any time; for svi_stream_go_back. NULL: SVS_DAMAGED, SVS_NO_MEMORY,
 * SVS_SETTING, SVS_UNAVAILABLE (of another stream). Owner: the caller. */
svi_stream *svi_stream_then(const svi_stream *s, const struct svi_checkpoint *c, svs_error *err);

/* Puts `s` into the state of *then, which is freed. Restored: learner, schema, novelty, refit, quality, the
 * settings that shape the model, and the samples that wait for a label. Kept: epoch, sources and their
 * numbers, the numbers of events and samples, counters, engine time, and the order of model versions (the
 * next one is higher than any before). Open alerts end. `reason` is published as an error event with the code
 * state_loaded, then the model. Not for a stream with keys. */
void svi_stream_go_back(svi_stream *s, svi_stream **then, const char *reason, double now);

/* ---- alerts that are kept */

/* The alert events so far, of all keys, with those that are only kept. Settles. */
const svi_kept_alerts *svi_stream_alerts(svi_stream *s);

/* ---- figures */

int64_t svi_stream_seen(const svi_stream *s);    /* samples accepted */
int64_t svi_stream_unkeyed(const svi_stream *s); /* of these, samples without a key */
int64_t svi_stream_errors(const svi_stream *s);  /* refusals and notices so far */
int64_t svi_stream_refused(const svi_stream *s); /* refusals alone (svi_code_is_notice) */

/* out_of_memory: was anything refused for lack of memory, or lost because a key could not be read back? Then
 * a replay may reach another state. lost_key: the reason, if it was a key: SVS_IO, SVS_DAMAGED; else SVS_OK.
 */
bool svi_stream_out_of_memory(const svi_stream *s);
svs_code svi_stream_lost_key(const svi_stream *s, svs_error *err);

/* Figures of the stats topic (counters, rates, quality, health) of one engine of the stream; NULL: of all.
 * Pointers are valid until the next call. Returns the number. */
int svi_stream_figures(svi_stream *s, svi_engine *of, double now, const struct svi_figure **figures);

/* Sets a figure that is measured outside the stream (queue ages, dropped subscribers, latency quantiles) and
 * published with the stats. `name` must be static. At most SVI_GAUGES_MAX names. */
void svi_stream_set_gauge(svi_stream *s, const char *name, double value);
/* The same for a value in msgpack; the bytes must outlive its publication. */
void svi_stream_set_packed(svi_stream *s, const char *name, const void *bytes, size_t size);

/* The smallest p of samples that other threads scored since the last call, whether or not their events went
 * to the sink; INFINITY: none. */
double svi_stream_smallest_p(svi_stream *s);

/* For the stats: the write-ahead takes `fixed` bytes and `share` times the size of the state. */
void svi_stream_set_kept_memory(svi_stream *s, double share, double fixed);

/* Progress for live figures: cheap, and changes nothing. `quality`: the figures of the quality, valid until
 * the next call of this function or svi_engine_model. */
struct svi_stream_progress {
    int64_t seen, alerts; /* samples accepted; alerts opened */
    struct svi_metrics_sums sums;
    const struct svi_figure *quality;
    int quality_count;
};
void svi_stream_progress(svi_stream *s, struct svi_stream_progress *out);

#endif
