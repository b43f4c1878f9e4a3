/* Control requests: the table `operations` has one row for each operation.
 *
 * A request is parsed once (wire/control_command.h). A request that changes the state is written ahead, then
 * applied by svi_stream_command, the same call that a recovery makes for its record; the others only read.
 * The part of `config` that can fail, and may take long, is done before it is written (svi_stream_prepare),
 * so no record is written whose replay would fail.
 *
 * Each operation adds its pairs to the map of the reply; if it fails, an error replaces the reply. A request
 * that names a key addresses that key's engine (find_engine). A new operation is a row here, a row in
 * control_command.c, and a case in the engine if it changes the state. */
#include "server/control.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "config/settings_record.h"
#include "fleet/key_list.h"
#include "fleet/fleet.h"
#include "server/addresses.h"
#include "state/write_ahead.h"
#include "store/checkpoint_file.h"
#include "svmstream/svmstream.h"
#include "wire/pack.h"
#include "wire/tuning.h"

/* Multiplications that `model` may spend on its key `loo`, some tenths of a second: a client that asks for a
 * model does not expect the stream to pause. */
#define MAX_LOO_STEPS  1e9
#define MAX_TUNE_STEPS 1e11 /* of `tune` itself: about ten seconds */

#define MAX_SCORES_BYTES (64 << 20) /* largest reply to a batch */
#define SCORES_SECONDS   2          /* longest time that a batch may block the stream */

#define KEYS_SHOWN 100 /* by `keys`, if the request has no limit */

/* One request on its way to its reply. */
struct request {
    struct svi_control *control;
    svi_engine *engine;        /* engine that it addresses: the key's, or the stream's */
    char key[SVS_KEY_MAX + 1]; /* name of that key; "": none */
    struct svi_command command;
    struct svi_engine_change *change; /* of config with set: prepared, not yet in effect */
    /* buffer for settings: first the wanted ones, then those before the change */
    struct svi_settings *before;
    double now;
    struct svi_pack *reply;
    svs_error *err;
};

/* the operations: each adds its pairs to the reply after `ok`, or fails */

/* All counters and figures, of the stream or of the key that the request names. `uptime` is that of the
 * process; the figure of the same name begins with the first stats or status, so it is skipped. */
static svs_code op_status(struct request *r) {
    const struct svi_figure *f;
    svi_stream *s = r->control->stream;
    const int count = svi_stream_figures(s, r->engine, r->now, &f);
    struct svi_class_table classes;
    const bool keyed = r->key[0];
    svi_engine_class_table(r->engine, true, &classes);
    if (keyed)
        svi_put_text(r->reply, "key", r->key);
    svi_put_text(r->reply, "version", svs_version());
    svi_put_text(r->reply, "stream", r->control->settings->stream);
    svi_put_uint(r->reply, "epoch", svi_stream_epoch(s));
    svi_put_int(r->reply, "errors", keyed ? svi_engine_errors(r->engine) : svi_stream_errors(s));
    svi_put_real(r->reply, "uptime", r->now - r->control->started);
    for (int i = 0; i < count; i++)
        if (strcmp(f[i].name, "uptime") != 0)
            svi_put_figure(r->reply, &f[i]);
    if (!keyed)
        svi_put_addresses(r->reply, r->control->settings);
    svi_put_class_table(r->reply, &classes);
    return SVS_OK;
}

/* Numbers stay numbers; everything else is the text that the settings file would have, which `config` accepts
 * back. */
static void reply_setting(const struct request *r, const struct svi_settings *s,
                          const struct svi_setting *row, const char *key) {
    char text[SVI_TEXT_MAX * 16];
    const void *field = svi_settings_field(s, row);
    if ((row->type == SVI_SET_INTEGER && !row->words) || row->type == SVI_SET_BYTES)
        svi_put_int(r->reply, key, *(const int64_t *)field);
    else if (row->type == SVI_SET_NUMBER)
        svi_put_real(r->reply, key, *(const double *)field);
    else
        svi_put_text(r->reply, key, svi_settings_value(s, row, text, sizeof text));
}

/* Applies a command that changes the state, by the call that a recovery makes too. */
static svs_code apply_to_engine(struct request *r, int *count) {
    return svi_stream_command(r->control->stream, &r->command, r->control->settings, r->now, count, r->err);
}

static svs_code op_apply(struct request *r) {
    int count = 0;
    SVI_TRY(apply_to_engine(r, &count));
    if (r->command.op == SVI_COMMAND_FORGET)
        svi_put_int(r->reply, "count", count);
    if (r->command.op == SVI_COMMAND_ALERT)
        svi_put_int(r->reply, "alert", count);
    r->control->published |= r->command.op == SVI_COMMAND_PUBLISH && !r->key[0];
    return SVS_OK;
}

static svs_code op_prune(struct request *r) {
    svi_engine *e = r->engine;
    const int features = svi_engine_schema(e)->shape.d, classes = svi_engine_classes(e);
    SVI_TRY(apply_to_engine(r, NULL));
    svi_put_int(r->reply, "features", features - svi_engine_schema(e)->shape.d);
    svi_put_int(r->reply, "classes", classes - svi_engine_classes(e));
    return SVS_OK;
}

/* A column as the schema sees it: its kind, how often it was missing, its unit if known, and for a category
 * the number of its values. */
static void reply_column(const struct request *r, const struct svi_schema *s, int column) {
    static const char *const kinds[] = {[SVI_COLUMN_OPEN] = "open",
                                        [SVI_COLUMN_NUMBER] = "number",
                                        [SVI_COLUMN_CATEGORY] = "category",
                                        [SVI_COLUMN_IGNORED] = "ignored"};
    const enum svi_column_kind kind = svi_schema_kind(s, column);
    const struct svi_open_map map = svi_pack_open(r->reply);
    svi_put_text(r->reply, "name", svi_schema_column_name(s, column));
    svi_put_text(r->reply, "kind", kinds[kind]);
    svi_put_int(r->reply, "missing", svi_schema_missed(s, column));
    const char *unit = svi_units_find(s->o.units, svi_schema_column_name(s, column));
    if (unit)
        svi_put_text(r->reply, "unit", unit);
    if (kind == SVI_COLUMN_CATEGORY)
        svi_put_int(r->reply, "values", s->column[column].now.values);
    svi_pack_close(r->reply, map);
}

static svs_code op_columns(struct request *r) {
    const struct svi_schema *s = svi_engine_schema(r->engine);
    const int count = svi_schema_columns(s);
    svi_put_array(r->reply, "columns", (size_t)count);
    for (int c = 0; c < count; c++)
        reply_column(r, s, c);
    return SVS_OK;
}

/* The settings whose values differ from those before: {key: {from, to}}. */
static void reply_changes(const struct request *r, const struct svi_settings *before) {
    svi_pack_key(r->reply, "changed");
    const struct svi_open_map map = svi_pack_open(r->reply);
    for (const struct svi_setting *row = svi_settings_table; row->key; row++) {
        if (!svi_settings_differ(before, r->control->settings, row))
            continue;
        svi_put_map(r->reply, row->key, 2);
        reply_setting(r, before, row, "from");
        reply_setting(r, r->control->settings, row, "to");
    }
    svi_pack_close(r->reply, map);
}

static void reply_config(const struct request *r, const struct svi_settings *before, int samples) {
    if (before)
        reply_changes(r, before);
    if (samples >= 0)
        svi_put_int(r->reply, "relearned", samples);
    svi_put_map(r->reply, "config", (size_t)svi_settings_count);
    for (const struct svi_setting *row = svi_settings_table; row->key; row++)
        reply_setting(r, r->control->settings, row, row->key);
}

static svs_code op_config(struct request *r) {
    struct svi_configured done = {.samples = -1};
    if (!r->change) {
        reply_config(r, NULL, -1);
        return SVS_OK;
    }
    /* Nothing can fail from here on: the record is written and the change was prepared. The server's copy of
     * the settings takes over the rows that may change at run time. */
    struct svi_settings *before = r->before;
    *before = *r->control->settings;
    svi_stream_take(r->control->stream, &r->change, r->now, &done);
    svi_settings_adopt(r->control->settings, svi_stream_settings(r->control->stream));
    reply_config(r, before, (int)done.samples);
    return SVS_OK;
}

/* Does all that can be refused or needs memory before the record is written, so that a record is never
 * written for a change that cannot be made. */
static svs_code prepare_config(struct request *r) {
    if (r->command.op != SVI_COMMAND_CONFIG || !r->command.has_set)
        return SVS_OK;
    struct svi_settings *s = r->before = svi_alloc(sizeof *s);
    if (!s)
        return svi_fail_memory(r->err, "the settings");
    *s = *r->control->settings;
    svs_code code = svi_settings_change(s, &r->command.set, r->command.bytes + r->command.size, r->err);
    return code == SVS_OK ? svi_stream_prepare(r->control->stream, s, &r->change, r->err) : code;
}

/* Is this the model that `tune` evaluates by leaving samples out? In a bank only the member that keeps its
 * samples is. */
static bool is_tuned(const struct request *r, const svs_model *m) {
    return !m->refit && (r->control->settings->method != SVI_METHOD_AUTO ||
                         (m->window == SVI_AUTO_WINDOW && strcmp(m->method, "alsvm") == 0));
}

/* Puts the payload of an event into the reply under `key`. */
static svs_code reply_event(struct request *r, const char *key, const struct svi_event *event) {
    struct svi_bytes bytes = {0};
    svs_code code = svi_event_encode(event, &bytes);
    if (code == SVS_OK) {
        svi_pack_key(r->reply, key);
        svi_pack_raw(r->reply, bytes.data, bytes.size);
    } else {
        svi_fail_memory(r->err, "the bytes of an event");
    }
    svi_bytes_clear(&bytes);
    return code;
}

static svs_code op_model(struct request *r) {
    svs_model m;
    struct svi_event event;
    svs_tuning tuning;
    SVI_TRY(svi_stream_model_event(r->control->stream, r->key, &m, &event, r->err));
    /* Leave-one-out is an extra: if it is too expensive or not possible, the model is sent without it. */
    if (r->command.loo && is_tuned(r, &m) &&
        svi_engine_tune(r->engine, MAX_LOO_STEPS, &tuning, NULL) == SVS_OK)
        event.as.model.tuning = &tuning;
    return reply_event(r, "model", &event);
}

static svs_code op_bank(struct request *r) {
    struct svi_bank_description description;
    struct svi_event event;
    svs_code code = svi_stream_bank_event(r->control->stream, r->key, &description, &event, r->err);
    return code == SVS_OK ? reply_event(r, "bank", &event) : code;
}

static svs_code op_tune(struct request *r) {
    svs_tuning tuning;
    SVI_TRY(svi_engine_tune(r->engine, MAX_TUNE_STEPS, &tuning, r->err));
    svi_put_tuning(r->reply, &tuning);
    return SVS_OK;
}

/* Pairs follow the names of a score event, so that a client reads both with the same code. Keys without a
 * value are absent. */
static void reply_scored(const struct request *r, const struct svi_scored *s) {
    svi_put_value(r->reply, "yhat", s->yhat);
    svi_put_reals(r->reply, "scores", s->scores, s->rows);
    if (s->proba_count > 0)
        svi_put_reals(r->reply, "proba", s->proba, s->proba_count);
    if (s->classed) {
        svi_pack_key(r->reply, "classes");
        svi_pack_values(r->reply, s->classes, s->class_count);
    }
    if (s->ranged)
        svi_put_reals(r->reply, "interval", s->interval, 2);
    svi_put_uint(r->reply, "model", s->version);
    if (s->bank)
        svi_put_uint(r->reply, "bank", s->version);
    if (s->merged)
        svi_put_bool(r->reply, "merged", true);
    if (s->made)
        svi_put_bool(r->reply, "prior", true);
    if (!s->judged)
        return;
    svi_put_real(r->reply, "novelty", s->novelty);
    svi_put_real(r->reply, "p", s->p);
}

static svs_code fail_no_sample(struct request *r) {
    if (r->command.sample)
        return svi_fail(r->err, SVS_INVALID, "score takes x or sample: leave one of them out");
    return svi_fail(r->err, SVS_MISSING_X,
                    "score needs x, as a producer sends it, or sample: {x: ...} or an array of these");
}

/* One map for each element, {error, code} for a refused one. Both limits exist because scoring runs on the
 * thread that owns the stream: no sample is learned meanwhile. */
static svs_code reply_batch(struct request *r, struct svi_envelope *env) {
    const double begun = svi_monotonic();
    svi_put_array(r->reply, "scores", (size_t)env->left);
    while (env->left > 0) {
        struct svi_scored scored;
        const svs_code code = svi_stream_score(r->control->stream, r->key, env, &scored, r->err);
        const struct svi_open_map map = svi_pack_open(r->reply);
        if (code == SVS_OK)
            reply_scored(r, &scored);
        else if (!scored.names)
            svi_put_error(r->reply, r->err);
        svi_pack_close(r->reply, map);
        svi_scored_clear(&scored);
        /* Other codes refuse only this element; after these two the rest would fail as well. */
        if (code == SVS_IO || code == SVS_NO_MEMORY)
            return code;
        if (r->reply->out->size > MAX_SCORES_BYTES)
            return svi_fail(r->err, SVS_LIMIT,
                            "the scores of this batch take more than %d MiB: send fewer samples at once",
                            MAX_SCORES_BYTES >> 20);
        /* each unknown key costs a model built from the prior */
        if (svi_monotonic() - begun > SCORES_SECONDS)
            return svi_fail(
                r->err, SVS_LIMIT,
                "the batch takes more than %d s, during which the stream waits: send fewer samples at once",
                SCORES_SECONDS);
    }
    return SVS_OK;
}

/* Scores without learning. The command itself may carry the features (x), or `sample` holds a map or an array
 * of maps as a producer would send them. */
static svs_code op_score(struct request *r) {
    struct svi_scored scored;
    struct svi_envelope env;
    const struct svi_command *c = &r->command;
    if ((c->sample != NULL) == c->has_x)
        return fail_no_sample(r);
    svs_code code = c->sample ? svi_envelope_read(&env, c->sample, c->sample_size)
                              : svi_envelope_read(&env, c->bytes, c->size);
    if (code != SVS_OK)
        return svi_fail(r->err, code, "%s", env.form.text);
    if (env.batch)
        return reply_batch(r, &env);
    /* The command is its own sample then: its `op` is not a key of a sample. */
    if (c->has_x)
        svi_element_leave_out(&env.first, SVI_KEY_OP);
    code = svi_stream_score(r->control->stream, r->key, &env, &scored, r->err);
    if (code == SVS_OK)
        reply_scored(r, &scored);
    svi_scored_clear(&scored);
    return code;
}

static svs_code op_stop(struct request *r) {
    r->control->stop = true;
    return SVS_OK;
}

static svs_code op_save(struct request *r) {
    char hash[SVI_HASH_TEXT];
    uint64_t record = 0;
    if (!r->control->write_ahead)
        return svi_fail(r->err, SVS_UNAVAILABLE,
                        "save needs a kept state: start the process with --state.dir DIRECTORY");
    SVI_TRY(svi_write_ahead_save(r->control->write_ahead, &record, hash, r->err));
    svi_put_int(r->reply, "record", (int64_t)record);
    svi_put_text(r->reply, "hash", hash);
    return SVS_OK;
}

static svs_code load_options_of(const struct request *r, struct svi_load_options *o) {
    const struct svi_command *c = &r->command;
    if (!r->control->write_ahead)
        return svi_fail(r->err, SVS_UNAVAILABLE,
                        "load checkpoint needs a kept state: start the process with --state.dir DIRECTORY");
    /* Each row of text is read into columns fixed at the start; an older state might have fewer of them. */
    if (r->control->text_rows)
        return svi_fail(r->err, SVS_UNAVAILABLE,
                        "load is not possible with text input, whose columns keep their places");
    if (c->checkpoint.type != SVI_INT || c->checkpoint.i < 0)
        return svi_fail(
            r->err, SVS_WRONG_TYPE,
            "load needs model, or checkpoint, the number of its record (`svmstream state show` lists them)");
    /* Without relearning no source could be left out. */
    if (c->without.type != SVI_ITEM_TYPE_COUNT && (c->without.type != SVI_STRING || !c->relearn))
        return svi_fail(r->err, SVS_WRONG_TYPE,
                        "without must be the name of a source, and needs relearn: true");
    *o = (struct svi_load_options){.checkpoint = (uint64_t)c->checkpoint.i, .relearn = c->relearn};
    if (c->without.type == SVI_STRING) {
        o->without = (const char *)c->without.body;
        o->without_length = c->without.length;
    }
    return SVS_OK;
}

/* The position of the stream after a load. */
static void reply_loaded(const struct request *r) {
    svi_put_int(r->reply, "seen", svi_stream_seen(r->control->stream));
    svi_put_uint(r->reply, "version", svi_engine_version(svi_stream_root(r->control->stream)));
}

/* Two operations share the name: a model replaces that of the engine, and is applied like any command; a
 * checkpoint takes the whole stream back, which only the write-ahead can do. */
static svs_code op_load(struct request *r) {
    struct svi_load_options o;
    struct svi_loaded loaded;
    if (r->command.model && r->command.checkpoint.type == SVI_INT)
        return svi_fail(r->err, SVS_INVALID, "load takes model or checkpoint: leave one of them out");
    if (r->command.model) {
        svs_code code = apply_to_engine(r, NULL);
        if (code == SVS_OK)
            reply_loaded(r);
        return code;
    }
    if (svi_settings_keyed(r->control->settings))
        return svi_fail(r->err, SVS_NOT_SUPPORTED,
                        "a stream with keys cannot load a checkpoint while it runs: drop or reset the keys "
                        "with wrong models");
    svs_code code = load_options_of(r, &o);
    if (code == SVS_OK)
        code =
            svi_write_ahead_load(r->control->write_ahead, &o, r->control->settings, r->now, &loaded, r->err);
    if (code != SVS_OK)
        return code;
    svi_put_int(r->reply, "checkpoint", (int64_t)o.checkpoint);
    svi_put_int(r->reply, "record", (int64_t)loaded.record);
    svi_put_int(r->reply, "relearned", loaded.relearned);
    reply_loaded(r);
    return SVS_OK;
}

/* ---- the keys of the stream */

/* A part of a name: a string, or an integer, since names of digits are often written bare; or absent. */
static bool is_name_part(const struct svi_item *item) {
    return item->type == SVI_ITEM_TYPE_COUNT || item->type == SVI_STRING || item->type == SVI_INT;
}

/* The text of such a part, possibly in `digits`. Returns its length. */
static size_t name_part(const struct svi_item *item, char digits[32], const char **text) {
    *text = item->type == SVI_STRING ? (const char *)item->body : digits;
    if (item->type == SVI_STRING)
        return item->length;
    return item->type == SVI_INT ? (size_t)snprintf(digits, 32, "%lld", (long long)item->i) : 0;
}

/* Translates the request into a query. A field of the wrong type is refused, not ignored: a filter that is
 * silently dropped would list too many keys. */
static svs_code key_query_of(const struct request *r, struct svi_key_query *q) {
    const struct svi_command *c = &r->command;
    const svs_value silent = svi_item_value(&c->silent);
    *q = (struct svi_key_query){
        .larger_is_better = r->control->settings->task == SVS_CLASSIFY, .now = r->now, .limit = KEYS_SHOWN};
    if (!svi_settings_keyed(svi_stream_settings(r->control->stream)))
        return svi_fail(r->err, SVS_BAD_KEY, "this stream has no keys: start it with --key");
    if (!is_name_part(&c->like) || !is_name_part(&c->prefix))
        return svi_fail(r->err, SVS_WRONG_TYPE, "%s of the names to list, as a string",
                        is_name_part(&c->like) ? "prefix must be the beginning" : "like must be a part");
    if (c->limit.type != SVI_ITEM_TYPE_COUNT &&
        (c->limit.type != SVI_INT || c->limit.i < 0 || c->limit.i > SVI_KEY_LIST_MAX))
        return svi_fail(r->err, SVS_WRONG_TYPE, "limit must be a whole number from 0 to %d",
                        SVI_KEY_LIST_MAX);
    if (c->silent.type != SVI_ITEM_TYPE_COUNT &&
        !((silent.kind == SVS_INT && silent.as.i >= 0) || (silent.kind == SVS_REAL && silent.as.r >= 0)))
        return svi_fail(r->err, SVS_WRONG_TYPE, "silent must be a number of seconds, at least 0");
    if (c->rows.type != SVI_ITEM_TYPE_COUNT && (c->rows.type != SVI_INT || c->rows.i < 0))
        return svi_fail(r->err, SVS_WRONG_TYPE, "rows must be a whole number, at least 0");
    /* An unknown name gives SVI_KEY_ORDER_COUNT, which is refused like a wrong type. */
    if (c->sort.type == SVI_STRING)
        q->order = svi_key_order_of((const char *)c->sort.body, c->sort.length);
    if (q->order == SVI_KEY_ORDER_COUNT ||
        (c->sort.type != SVI_ITEM_TYPE_COUNT && c->sort.type != SVI_STRING))
        return svi_fail(r->err, SVS_WRONG_TYPE, "sort must be quality, age, rows, alerts or name");
    if (c->limit.type == SVI_INT)
        q->limit = (int)c->limit.i;
    q->rows = c->rows.type == SVI_INT ? c->rows.i : 0;
    q->open = c->open;
    q->silent = silent.kind == SVS_INT ? (double)silent.as.i : silent.kind == SVS_REAL ? silent.as.r : 0;
    return SVS_OK;
}

static void reply_key(const struct request *r, const struct svi_key_entry *k) {
    const struct svi_open_map map = svi_pack_open(r->reply);
    svi_put_text(r->reply, "key", k->name);
    svi_put_int(r->reply, "rows", k->last.rows);
    svi_put_real(r->reply, "age", fmax(0, r->now - svi_stream_key_last_arrival(r->control->stream, k)));
    svi_put_real(r->reply, "quality", k->last.quality);
    svi_put_real(r->reply, "excess_error", k->last.worse);
    svi_put_int(r->reply, "alerts", k->last.alerts);
    svi_put_int(r->reply, "open", k->last.open);
    svi_pack_close(r->reply, map);
}

static svs_code op_keys(struct request *r) {
    struct svi_key_query q;
    char like[32], prefix[32];
    int64_t matching;
    SVI_TRY(key_query_of(r, &q));
    q.like_length = name_part(&r->command.like, like, &q.like);
    q.prefix_length = name_part(&r->command.prefix, prefix, &q.prefix);
    /* One entry more than the limit, since a limit of 0 is valid: it asks for the counts alone. */
    const struct svi_key_entry **shown = svi_alloc_array((size_t)q.limit + 1, sizeof *shown);
    if (!shown)
        return svi_fail_memory(r->err, "the list of keys");
    const int count = svi_stream_keys(r->control->stream, &q, shown, &matching);
    svi_put_int(r->reply, "count", svi_stream_key_count(r->control->stream));
    svi_put_int(r->reply, "matching", matching);
    svi_put_int(r->reply, "unkeyed", svi_stream_unkeyed(r->control->stream));
    svi_put_text(r->reply, "measure", q.larger_is_better ? "accuracy.w" : "rmse.w");
    svi_put_array(r->reply, "keys", (size_t)count);
    for (int i = 0; i < count; i++)
        reply_key(r, shown[i]);
    svi_free(shown);
    return SVS_OK;
}

/* ---- mutes */

static void reply_mute(const struct request *r, const struct svi_mute *m) {
    const struct svi_open_map map = svi_pack_open(r->reply);
    const int64_t keys = svi_stream_mute_keys(r->control->stream, m);
    svi_put_int(r->reply, "id", m->id);
    if (keys >= 0) {
        svi_put_text(r->reply, "key", m->key);
        svi_put_int(r->reply, "keys", keys);
    }
    svi_put_text(r->reply, "sensor", m->sensor);
    svi_put_real(r->reply, "since", m->since);
    svi_put_real(r->reply, "until", m->until);
    svi_put_text(r->reply, "reason", m->reason);
    svi_put_text(r->reply, "who", m->who);
    svi_put_bool(r->reply, "learn", m->learn);
    svi_put_int(r->reply, "alerts", m->found);
    svi_put_int(r->reply, "held", m->held);
    svi_pack_close(r->reply, map);
}

static svs_code op_mute(struct request *r) {
    SVI_TRY(apply_to_engine(r, NULL));
    const struct svi_mutes *m = svi_stream_mutes(r->control->stream);
    const struct svi_mute *made = m->at[m->count - 1];
    svi_pack_key(r->reply, "mute");
    reply_mute(r, made);
    if (svi_stream_mute_keys(r->control->stream, made) == 0)
        svi_put_text(r->reply, "note", "no key has that name yet: it is muted when it begins");
    return SVS_OK;
}

static svs_code op_mutes(struct request *r) {
    const struct svi_mutes *m = svi_stream_mutes(r->control->stream);
    svi_put_array(r->reply, "mutes", (size_t)svi_mutes_active(m));
    for (int i = 0; i < m->count; i++)
        if (!m->at[i]->ended)
            reply_mute(r, m->at[i]);
    return SVS_OK;
}

/* ---- the alerts that are kept */

static svs_code fail_alerts(struct request *r, const char *what) {
    return svi_fail(r->err, SVS_WRONG_TYPE, "%s", what);
}

/* Which alerts. `since` and `epoch` belong together: numbers of another epoch do not apply to this one. */
static svs_code alert_query_of(struct request *r, struct svi_alert_query *q, bool *reset) {
    const struct svi_command *c = &r->command;
    const uint64_t epoch = svi_stream_epoch(r->control->stream);
    *q = (struct svi_alert_query){.key = r->key[0] ? r->key : NULL, .limit = SVI_KEPT_ANSWER};
    if (c->since.type != SVI_ITEM_TYPE_COUNT && (c->since.type != SVI_INT || c->since.i < 0))
        return fail_alerts(
            r, "since must be the number of the last alert event received, a whole number from 0");
    if (c->limit.type != SVI_ITEM_TYPE_COUNT &&
        (c->limit.type != SVI_INT || c->limit.i < 0 || c->limit.i > SVI_KEPT_ANSWER_MAX))
        return svi_fail(r->err, SVS_WRONG_TYPE, "limit must be a whole number from 0 to %d",
                        SVI_KEPT_ANSWER_MAX);
    if (c->epoch.type != SVI_ITEM_TYPE_COUNT && c->epoch.type != SVI_INT && c->epoch.type != SVI_HUGE_INT)
        return fail_alerts(r, "epoch must be that of the last event received, a whole number");
    q->since = c->since.type == SVI_INT ? (uint64_t)c->since.i : 0;
    q->limit = c->limit.type == SVI_INT ? c->limit.i : q->limit;
    const bool other = (c->epoch.type == SVI_INT && (uint64_t)c->epoch.i != epoch) ||
                       (c->epoch.type == SVI_HUGE_INT && c->epoch.r != (double)epoch);
    *reset = other || q->since > svi_kept_alerts_last(svi_stream_alerts(r->control->stream));
    if (*reset)
        q->since = 0;
    return SVS_OK;
}

static svs_code op_alerts(struct request *r) {
    struct svi_alert_query q;
    bool reset = false;
    SVI_TRY(alert_query_of(r, &q, &reset));
    svi_put_uint(r->reply, "epoch", svi_stream_epoch(r->control->stream));
    svi_put_bool(r->reply, "reset", reset);
    svi_kept_alerts_put(svi_stream_alerts(r->control->stream), &q, r->reply);
    return SVS_OK;
}

static svs_code (*const operations[SVI_COMMAND_COUNT])(struct request *) = {
    [SVI_COMMAND_STATUS] = op_status,   [SVI_COMMAND_CONFIG] = op_config, [SVI_COMMAND_MODEL] = op_model,
    [SVI_COMMAND_PUBLISH] = op_apply,   [SVI_COMMAND_FORGET] = op_apply,  [SVI_COMMAND_LABEL] = op_apply,
    [SVI_COMMAND_ALERT] = op_apply,     [SVI_COMMAND_DROP] = op_apply,    [SVI_COMMAND_RESET] = op_apply,
    [SVI_COMMAND_STOP] = op_stop,       [SVI_COMMAND_REFIT] = op_apply,   [SVI_COMMAND_SAVE] = op_save,
    [SVI_COMMAND_SCORE] = op_score,     [SVI_COMMAND_LOAD] = op_load,     [SVI_COMMAND_PRUNE] = op_prune,
    [SVI_COMMAND_COLUMNS] = op_columns, [SVI_COMMAND_TUNE] = op_tune,     [SVI_COMMAND_BANK] = op_bank,
    [SVI_COMMAND_KEYS] = op_keys,       [SVI_COMMAND_MUTE] = op_mute,     [SVI_COMMAND_MUTES] = op_mutes,
    [SVI_COMMAND_UNMUTE] = op_apply,    [SVI_COMMAND_ALERTS] = op_alerts,
};

/* Finds the engine that a request addresses. Operations on the whole stream accept no key. `config` without
 * `set` does, since all keys have the same settings. The key of `score` may differ from sample to sample, so
 * only its name is resolved here. */
static svs_code find_engine(struct request *r) {
    static const bool whole[SVI_COMMAND_COUNT] = {
        [SVI_COMMAND_CONFIG] = true, [SVI_COMMAND_REFIT] = true, [SVI_COMMAND_LOAD] = true,
        [SVI_COMMAND_SAVE] = true,   [SVI_COMMAND_STOP] = true,  [SVI_COMMAND_KEYS] = true,
        [SVI_COMMAND_MUTES] = true,  [SVI_COMMAND_UNMUTE] = true};
    const bool reads = r->command.op == SVI_COMMAND_CONFIG && !r->command.has_set; /* reads only */
    const bool keyed = r->command.key.length > 0 && svi_settings_keyed(r->control->settings);
    if (keyed && whole[r->command.op] && !reads)
        return svi_fail(r->err, SVS_NOT_SUPPORTED, "%s applies to the whole stream%s: leave out key",
                        svi_command_name(r->command.op),
                        r->command.op == SVI_COMMAND_CONFIG ? ", whose keys share all settings" : "");
    if (r->command.op == SVI_COMMAND_MUTE) { /* its key is a pattern, and may have no engine yet */
        r->engine = svi_stream_root(r->control->stream);
        return SVS_OK;
    }
    /* Each sample may have another key, and alerts are kept of keys that have been dropped. */
    if (r->command.op == SVI_COMMAND_SCORE || r->command.op == SVI_COMMAND_ALERTS)
        return svi_stream_key_of(r->control->stream, &r->command, r->key, r->err);
    r->engine = svi_stream_engine_of(r->control->stream, &r->command, r->key, r->err);
    return r->engine ? SVS_OK : r->err->code;
}

/* A typing mistake must not drop what a state directory was made to keep. The check is made here, before the
 * record is written, because a replay applies records without asking. */
static svs_code require_consent(const struct request *r) {
    if (r->command.op != SVI_COMMAND_RESET || !r->control->write_ahead || r->command.yes)
        return SVS_OK;
    return svi_fail(r->err, SVS_UNAVAILABLE,
                    "reset drops the model and the window kept in %.100s: confirm it with yes: true "
                    "(svmstream ctl reset --yes)",
                    r->control->settings->state_dir);
}

/* A reset that also forgets the shape (names and number of features) has a kind of its own: a replay has to
 * do the same. */
static enum svi_record_kind record_kind(const struct svi_command *c) {
    if (c->op == SVI_COMMAND_CONFIG)
        return SVI_RECORD_CONFIG;
    if (c->op == SVI_COMMAND_LOAD)
        return SVI_RECORD_MODEL;
    return c->op == SVI_COMMAND_RESET && !c->keeps_shape ? SVI_RECORD_RESET : SVI_RECORD_CONTROL;
}

/* The order is: find the engine, ask for consent, prepare, write, apply. Every refusal must come before the
 * write, since a replay applies what is written. */
static svs_code control_run(struct request *r) {
    struct svi_control *c = r->control;
    const bool kept = c->write_ahead && svi_command_changes(&r->command);
    svs_code code = find_engine(r);
    if (code == SVS_OK)
        code = require_consent(r);
    /* Set before the record is written: it decides the kind of the record. */
    r->command.keeps_shape = c->text_rows;
    if (code == SVS_OK && r->command.op == SVI_COMMAND_PRUNE && c->text_rows)
        code = svi_fail(r->err, SVS_UNAVAILABLE,
                        "prune is not possible with text input, whose columns keep their places");
    if (code == SVS_OK)
        code = prepare_config(r);
    if (kept && code == SVS_OK)
        code = svi_write_ahead_write(c->write_ahead, record_kind(&r->command), r->now, r->command.bytes,
                                     r->command.size, r->err);
    /* From here on the record exists, so the effect has to follow. */
    const bool written = kept && code == SVS_OK;
    if (code == SVS_OK)
        code = operations[r->command.op](r);
    /* Frees what was prepared and did not take effect. */
    svi_engine_change_free(&r->change);
    svi_free(r->before);
    /* SVS_IO can only come from keeping the state. If memory ran out after the write, a restart would apply
     * what this process could not. Either way memory and journal differ, so the process must end. */
    if (c->write_ahead && (code == SVS_IO || (written && code == SVS_NO_MEMORY))) {
        c->failed = true;
        c->failure = *r->err;
    }
    return code;
}

/* Converts JSON to msgpack first, so that everything after it, journal records included, sees one format. */
static svs_code control_take(struct svi_control *c, const void *request, size_t length, double now,
                             struct svi_pack *reply, svs_error *err) {
    struct request r = {.control = c, .now = now, .reply = reply, .err = err};
    svs_code code = SVS_OK;
    if (svi_json_begins(request, length)) {
        c->request.size = 0;
        code = svi_json_message(&c->json, request, length, &c->request, err);
        request = c->request.data;
        length = c->request.size;
    }
    if (code == SVS_OK)
        code = svi_command_read(&r.command, request, length, err);
    return code == SVS_OK ? control_run(&r) : code;
}

void svi_control_clear(struct svi_control *c) {
    svi_json_input_clear(&c->json);
    svi_bytes_clear(&c->request);
    svi_reply_scores_clear(&c->scores);
}

svs_code svi_control_do(struct svi_control *c, const void *request, size_t length, double now,
                        svs_error *err) {
    struct svi_bytes unread = {0};
    struct svi_pack reply;
    svi_pack_begin(&reply, &unread);
    svs_code code = control_take(c, request, length, now, &reply, err);
    (void)svi_pack_end(&reply);
    svi_bytes_clear(&unread);
    return code;
}

svs_code svi_control_handle(struct svi_control *c, const void *request, size_t length, double now,
                            struct svi_bytes *out) {
    struct svi_pack reply;
    svs_error err;
    /* The reply is built optimistically as {ok: true, ...}; on an error it is cut back and rebuilt as {error,
     * code}. */
    out->size = 0;
    svi_pack_begin(&reply, out);
    const struct svi_open_map map = svi_pack_open(&reply);
    svi_put_bool(&reply, "ok", true);
    err.code = control_take(c, request, length, now, &reply, &err);
    if (err.code == SVS_OK) {
        svi_pack_close(&reply, map);
    } else {
        out->size = 0;
        svi_pack_map(&reply, 2);
        svi_put_error(&reply, &err);
    }
    return svi_pack_end(&reply);
}
