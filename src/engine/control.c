/* Control requests: one row an operation. */
#include "engine/control.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/nearest.h"
#include "base/text.h"
#include "engine/keeper.h"
#include "engine/reply.h"
#include "engine/settings_kept.h"
#include "store/files.h"
#include "svmstream/svmstream.h"
#include "wire/decode.h"
#include "wire/fields.h"

#define EXACT 0x1p53 /* reals of at most this size name one integer */

/* One request on its way to its reply. */
struct request {
    struct svi_control *control;
    const msgpack_object_map *map;
    const void *bytes; /* of the whole request */
    size_t length;
    const char *name; /* of the operation */
    double now;
    struct svi_pack *reply;
    svs_error *err;
};

static const msgpack_object *get(const msgpack_object_map *map, const char *key) {
    for (uint32_t i = 0; i < map->size; i++) {
        const msgpack_object *k = &map->ptr[i].key;
        if (k->type == MSGPACK_OBJECT_STR && k->via.str.size == strlen(key) &&
            memcmp(k->via.str.ptr, key, k->via.str.size) == 0)
            return &map->ptr[i].val;
    }
    return NULL;
}

static svs_value text_value(const msgpack_object *o) {
    return (svs_value){.kind = SVS_STR, .length = o->via.str.size, .as.s = o->via.str.ptr};
}

static svs_value real_value(double r) {
    return r == trunc(r) && fabs(r) <= EXACT ? svs_int((int64_t)r) : svs_real(r);
}

/* As in a sample: bools and integral reals are integers. SVS_NONE for what is no label. */
static svs_value value_of(const msgpack_object *o) {
    switch (o ? o->type : MSGPACK_OBJECT_NIL) {
    case MSGPACK_OBJECT_BOOLEAN:
        return svs_int(o->via.boolean);
    case MSGPACK_OBJECT_POSITIVE_INTEGER:
        return o->via.u64 <= INT64_MAX ? svs_int((int64_t)o->via.u64) : svs_none();
    case MSGPACK_OBJECT_NEGATIVE_INTEGER:
        return svs_int(o->via.i64);
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64:
        return isfinite(o->via.f64) ? real_value(o->via.f64) : svs_none();
    case MSGPACK_OBJECT_STR:
        return text_value(o);
    default:
        return svs_none();
    }
}

static bool good_text(svs_value v) {
    return v.kind != SVS_STR ||
           (v.length >= 1 && v.length <= SVS_NAME_MAX && svi_utf8_valid(v.as.s, v.length));
}

static svs_code id_of(const struct request *r, svs_value *id) {
    const msgpack_object *o = get(r->map, "id");
    *id = value_of(o);
    bool whole = o && (o->type == MSGPACK_OBJECT_POSITIVE_INTEGER ||
                       o->type == MSGPACK_OBJECT_NEGATIVE_INTEGER || o->type == MSGPACK_OBJECT_STR);
    if (whole && id->kind != SVS_NONE && good_text(*id))
        return SVS_OK;
    return svi_fail(r->err, SVS_BAD_ID, "id must be given: an integer, or a string of 1 to %d bytes of UTF-8",
                    SVS_NAME_MAX);
}

static svs_code label_of(const struct request *r, svs_value *y) {
    *y = value_of(get(r->map, "y"));
    if (y->kind != SVS_NONE && good_text(*y))
        return SVS_OK;
    return svi_fail(r->err, SVS_BAD_LABEL,
                    "y must be given: a finite number, a bool or a string of 1 to %d bytes", SVS_NAME_MAX);
}

/* ---- the operations: each writes a complete map, or fails before it writes anything */

static void reply_ok(const struct request *r, size_t further) {
    svi_pack_map(r->reply, 1 + further);
    svi_reply_bool(r->reply, "ok", true);
}

static svs_code op_status(struct request *r) {
    const struct svi_figure *f;
    svi_engine *e = r->control->engine;
    int count = svi_engine_figures(e, r->now, &f), own = 0;
    for (int i = 0; i < count; i++)
        own += strcmp(f[i].name, "uptime") == 0;
    reply_ok(r, (size_t)(count - own) + 5);
    svi_reply_text(r->reply, "version", svs_version());
    svi_reply_text(r->reply, "stream", r->control->settings->stream);
    svi_pack_text(r->reply, "epoch");
    svi_pack_uint(r->reply, svi_engine_epoch(e));
    svi_reply_int(r->reply, "errors", svi_engine_errors(e));
    svi_reply_real(r->reply, "uptime", r->now - r->control->started);
    for (int i = 0; i < count; i++)
        if (strcmp(f[i].name, "uptime") != 0)
            svi_reply_figure(r->reply, &f[i]);
    return SVS_OK;
}

static void reply_setting(const struct request *r, const struct svi_setting *row) {
    char text[SVI_TEXT_MAX * 16];
    const char *field = (const char *)r->control->settings + row->offset;
    int64_t whole;
    double number;
    if (row->type == SVI_SET_INTEGER || row->type == SVI_SET_BYTES) {
        memcpy(&whole, field, sizeof whole);
        svi_reply_int(r->reply, row->key, whole);
    } else if (row->type == SVI_SET_NUMBER) {
        memcpy(&number, field, sizeof number);
        svi_reply_real(r->reply, row->key, number);
    } else {
        svi_reply_text(r->reply, row->key, svi_settings_value(r->control->settings, row, text, sizeof text));
    }
}

/* The value as a settings file would have it; "" for what cannot be one. */
static const char *setting_text(const msgpack_object *o, char *out, size_t size) {
    const svs_value v = value_of(o);
    out[0] = '\0';
    if (o->type == MSGPACK_OBJECT_BOOLEAN)
        snprintf(out, size, "%s", o->via.boolean ? "yes" : "no");
    else if (v.kind == SVS_STR)
        snprintf(out, size, "%.*s", (int)v.length, v.as.s);
    else if (v.kind == SVS_INT)
        snprintf(out, size, "%" PRId64, v.as.i);
    else if (v.kind == SVS_REAL)
        snprintf(out, size, "%.17g", v.as.r);
    return out;
}

static svs_code set_one(struct svi_settings *s, const msgpack_object_kv *pair, svs_error *err) {
    char key[64], value[SVI_TEXT_MAX];
    if (pair->key.type != MSGPACK_OBJECT_STR)
        return svi_fail(err, SVS_WRONG_TYPE, "set is a map of settings: its keys are strings");
    svi_escape(key, sizeof key, pair->key.via.str.ptr, pair->key.via.str.size);
    const struct svi_setting *row = svi_settings_row(key);
    if (!row)
        return svi_settings_unknown(key, err);
    if (svi_settings_nature(row) == SVI_NATURE_MODEL)
        return svi_fail(err, SVS_SETTING,
                        "%s cannot be changed while the model lives: start a new one with it (in another "
                        "state.dir)",
                        key);
    if (svi_settings_nature(row) != SVI_NATURE_LIVE)
        return svi_fail(err, SVS_SETTING, "%s can only be set at a start: end the process and give --%s", key,
                        key);
    return svi_settings_set(s, key, setting_text(&pair->val, value, sizeof value), err);
}

/* All of them or none. */
static svs_code set_settings(struct request *r, const msgpack_object_map *set) {
    struct svi_control *c = r->control;
    struct svi_settings *s = svi_alloc(sizeof *s);
    svs_code code = s ? SVS_OK : svi_fail_memory(r->err, "the settings");
    if (code != SVS_OK)
        return code;
    *s = *c->settings;
    for (uint32_t i = 0; i < set->size && code == SVS_OK; i++)
        code = set_one(s, &set->ptr[i], r->err);
    if (code == SVS_OK)
        code = svi_settings_check(s, r->err);
    if (code == SVS_OK) {
        svi_settings_adopt(c->settings, s);
        svi_engine_configure(c->engine, s);
    }
    svi_free(s);
    return code;
}

static svs_code op_config(struct request *r) {
    int rows;
    const struct svi_setting *table = svi_settings_table(&rows);
    const msgpack_object *set = get(r->map, "set");
    if (set && set->type != MSGPACK_OBJECT_MAP)
        return svi_fail(r->err, SVS_WRONG_TYPE, "set is a map of settings and their values");
    svs_code code = set ? set_settings(r, &set->via.map) : SVS_OK;
    if (code != SVS_OK)
        return code;
    reply_ok(r, 1);
    svi_pack_text(r->reply, "config");
    svi_pack_map(r->reply, (size_t)rows);
    for (int i = 0; i < rows; i++)
        reply_setting(r, &table[i]);
    return SVS_OK;
}

static svs_code op_model(struct request *r) {
    svs_model m;
    struct svi_event event;
    struct svi_bytes bytes = {0};
    svs_code code = svi_engine_model_event(r->control->engine, &m, &event, r->err);
    if (code == SVS_OK && svi_event_encode(&event, &bytes) != SVS_OK)
        code = svi_fail_memory(r->err, "the model's bytes");
    if (code == SVS_OK) {
        reply_ok(r, 1);
        svi_pack_text(r->reply, "model");
        r->reply->failed =
            r->reply->failed || svi_bytes_append(r->reply->out, bytes.data, bytes.size) != SVS_OK;
    }
    svi_bytes_clear(&bytes);
    return code;
}

/* The bytes of a key's value in the request, which was checked; NULL when it is not there. */
static const uint8_t *value_bytes(const struct request *r, const char *key, size_t *size) {
    struct svi_item map, item;
    const uint8_t *end = (const uint8_t *)r->bytes + r->length, *at = svi_item_read(r->bytes, &map);
    for (uint32_t i = 0; i < map.length; i++) {
        svi_item_read(at, &item);
        const bool found = svi_item_is(&item, key);
        svi_walk(&at, end, SVI_DEPTH_MAX);
        const uint8_t *value = at;
        svi_walk(&at, end, SVI_DEPTH_MAX);
        *size = (size_t)(at - value);
        if (found)
            return value;
    }
    return NULL;
}

static void reply_scored(const struct request *r, const struct svi_scored *s) {
    reply_ok(r, 3 + 2 * (size_t)s->judged);
    svi_pack_text(r->reply, "yhat");
    svi_pack_value(r->reply, s->yhat);
    svi_pack_text(r->reply, "scores");
    svi_pack_array(r->reply, (size_t)s->rows);
    for (int k = 0; k < s->rows; k++)
        svi_pack_real(r->reply, s->scores[k]);
    svi_pack_text(r->reply, "model");
    svi_pack_uint(r->reply, s->version);
    if (!s->judged)
        return;
    svi_reply_real(r->reply, "novelty", s->novelty);
    svi_reply_real(r->reply, "p", s->p);
}

static svs_code op_score(struct request *r) {
    struct svi_scored scored;
    size_t size = 0;
    const uint8_t *sample = value_bytes(r, "sample", &size);
    if (!sample)
        return svi_fail(r->err, SVS_MISSING_X, "score needs a sample, as a producer would send it: {x: ...}");
    svs_code code = svi_engine_score(r->control->engine, sample, size, &scored, r->err);
    if (code == SVS_OK)
        reply_scored(r, &scored);
    svi_free(scored.scores);
    return code;
}

static svs_code op_publish(struct request *r) {
    svi_engine_publish_model(r->control->engine, true);
    svi_engine_publish_stats(r->control->engine, r->now);
    reply_ok(r, 0);
    return SVS_OK;
}

static svs_code op_refit(struct request *r) {
    svs_code code = svi_engine_refit(r->control->engine, r->err);
    if (code == SVS_OK)
        reply_ok(r, 0);
    return code;
}

static svs_code op_forget(struct request *r) {
    svs_value id;
    int count = 0;
    svs_code code = id_of(r, &id);
    if (code == SVS_OK)
        code = svi_engine_forget(r->control->engine, id, r->now, &count, r->err);
    if (code != SVS_OK)
        return code;
    reply_ok(r, 1);
    svi_reply_int(r->reply, "count", count);
    return SVS_OK;
}

static svs_code op_label(struct request *r) {
    svs_value id, y;
    svs_code code = id_of(r, &id);
    if (code == SVS_OK)
        code = label_of(r, &y);
    if (code == SVS_OK)
        code = svi_engine_label(r->control->engine, id, y, r->now, r->err);
    if (code == SVS_OK)
        reply_ok(r, 0);
    return code;
}

static svs_code op_reset(struct request *r) {
    svi_engine_reset(r->control->engine);
    reply_ok(r, 0);
    return SVS_OK;
}

static svs_code op_stop(struct request *r) {
    r->control->stop = true;
    reply_ok(r, 0);
    return SVS_OK;
}

static svs_code op_save(struct request *r) {
    char hash[SVI_HASH_TEXT];
    uint64_t record = 0;
    if (!r->control->keeper)
        return svi_fail(r->err, SVS_UNAVAILABLE,
                        "save needs a state that is kept: start with --state.dir FOLDER");
    svs_code code = svi_keeper_save(r->control->keeper, &record, hash, r->err);
    if (code != SVS_OK)
        return code;
    reply_ok(r, 2);
    svi_reply_int(r->reply, "record", (int64_t)record);
    svi_reply_text(r->reply, "hash", hash);
    return SVS_OK;
}

static svs_code op_unavailable(struct request *r) {
    return svi_fail(r->err, SVS_UNAVAILABLE, "%s is known, but this version cannot do it yet", r->name);
}

/* Which requests change the state, and are therefore written down before they take effect. */
enum changes { NEVER, ALWAYS, WITH_SET };

static const struct {
    const char *name;
    svs_code (*run)(struct request *);
    enum changes changes;
} operations[] = {
    {"status", op_status, NEVER},    {"config", op_config, WITH_SET}, {"model", op_model, NEVER},
    {"publish", op_publish, ALWAYS}, {"forget", op_forget, ALWAYS},   {"label", op_label, ALWAYS},
    {"reset", op_reset, ALWAYS},     {"stop", op_stop, NEVER},        {"refit", op_refit, ALWAYS},
    {"save", op_save, NEVER},        {"score", op_score, NEVER},      {"load", op_unavailable, NEVER},
};

#define OPERATIONS ((int)(sizeof operations / sizeof operations[0]))

static svs_code unknown(const char *name, svs_error *err) {
    const char *names[OPERATIONS + 1];
    for (int i = 0; i < OPERATIONS; i++)
        names[i] = operations[i].name;
    names[OPERATIONS] = NULL;
    const char *nearest = svi_nearest(name, names);
    return svi_fail(err, SVS_UNKNOWN_OP, "unknown op '%s', the nearest known one is '%s'", name,
                    nearest ? nearest : names[0]);
}

static svs_code write_ahead(struct request *r, enum changes changes) {
    struct svi_control *c = r->control;
    if (!c->keeper || changes == NEVER || (changes == WITH_SET && !get(r->map, "set")))
        return SVS_OK;
    return svi_keeper_write(c->keeper, SVI_RECORD_CONTROL, r->now, r->bytes, r->length, r->err);
}

static svs_code run(struct request *r, int operation) {
    svs_code code = write_ahead(r, operations[operation].changes);
    const bool changes = code == SVS_OK && operations[operation].changes != NEVER;
    if (code == SVS_OK)
        code = operations[operation].run(r);
    /* Only keeping the state fails with SVS_IO; what was written down and not done a restart would do. */
    if (r->control->keeper && (code == SVS_IO || (changes && code == SVS_NO_MEMORY))) {
        r->control->failed = true;
        r->control->failure = *r->err;
    }
    return code;
}

static svs_code dispatch(struct request *r) {
    char name[40];
    const msgpack_object *op = get(r->map, "op");
    if (!op || op->type != MSGPACK_OBJECT_STR)
        return svi_fail(r->err, op ? SVS_WRONG_TYPE : SVS_UNKNOWN_OP,
                        "a request is a map with the key op, a string");
    svi_escape(name, sizeof name, op->via.str.ptr, op->via.str.size);
    r->name = name;
    for (int i = 0; i < OPERATIONS; i++)
        if (strcmp(operations[i].name, name) == 0)
            return run(r, i);
    return unknown(name, r->err);
}

/* The bytes were checked: msgpack-c reserves its containers from headers alone. */
static svs_code parse(struct request *r, const void *request, size_t length) {
    msgpack_unpacked read;
    size_t offset = 0;
    svs_code code = svi_msgpack_check(request, length, SVI_DEPTH_MAX, r->err);
    if (code != SVS_OK)
        return code;
    msgpack_unpacked_init(&read);
    if (msgpack_unpack_next(&read, request, length, &offset) != MSGPACK_UNPACK_SUCCESS) {
        code = svi_fail_memory(r->err, "a request");
    } else if (read.data.type != MSGPACK_OBJECT_MAP) {
        code = svi_fail(r->err, SVS_WRONG_TYPE, "a request is a map with the key op");
    } else {
        r->map = &read.data.via.map;
        code = dispatch(r);
    }
    msgpack_unpacked_destroy(&read);
    return code;
}

svs_code svi_control_handle(struct svi_control *c, const void *request, size_t length, double now,
                            struct svi_bytes *out) {
    struct svi_pack reply;
    svs_error err;
    out->size = 0;
    svi_pack_begin(&reply, out);
    struct request r = {
        .control = c, .bytes = request, .length = length, .now = now, .reply = &reply, .err = &err};
    err.code = parse(&r, request, length);
    if (c->repeating && err.code == SVS_NO_MEMORY) {
        c->failed = true;
        c->failure = err;
    }
    if (err.code != SVS_OK) {
        svi_pack_map(&reply, 2);
        svi_reply_error(&reply, &err);
    }
    return svi_pack_end(&reply);
}
