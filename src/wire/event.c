/* Events as msgpack. One function for each topic puts the keys of its event, in the order of the manual's
 * protocol page, after the keys common to all events. The table of topics (SVI_TOPICS) names the function: a
 * new topic is a row there and a function here.
 *
 * All maps are open (pack.h): the number of pairs is counted while they are put, so optional keys need no
 * count in advance. The order of keys is part of the format. Models have the same keys in replies and files.
 * The last part encodes samples as producers send them. */
#include "wire/event.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "wire/calibration_map.h"
#include "wire/pack.h"
#include "wire/tuning.h"

#define PROTOCOL 1 /* key `v` */

void svi_put_figure(struct svi_pack *p, const struct svi_figure *f) {
    svi_pack_name(p, f->name, strlen(f->name));
    if (f->type == SVI_COUNT)
        svi_pack_int(p, f->as.count);
    else if (f->type == SVI_NUMBER)
        svi_pack_real(p, f->as.number);
    else if (f->type == SVI_PACKED)
        svi_pack_raw(p, f->as.packed.bytes, f->as.packed.size);
    else if (f->as.text)
        svi_pack_text(p, f->as.text);
    else
        svi_pack_nil(p);
}

/* Figures are pairs of the map of the event itself, and not a map below it. */
static void put_figures(struct svi_pack *p, const struct svi_figure *f, int count) {
    for (int i = 0; i < count; i++)
        svi_put_figure(p, &f[i]);
}

/* ---- models */

/* Puts the pairs of a model; those after `serves` only if the model has them. */
static void put_model(struct svi_pack *p, const svs_model *m, const struct svi_figure *quality,
                      int quality_count) {
    svi_put_uint(p, "version", m->version);
    svi_put_text(p, "method", m->method);
    svi_put_text(p, "task", m->task == SVS_REGRESS ? "regress" : "classify");
    svi_put_int(p, "d", m->d);
    svi_pack_key(p, "features");
    svi_pack_names(p, m->features, m->d);
    svi_pack_key(p, "classes");
    svi_pack_values(p, m->classes, m->class_count);
    svi_put_doubles(p, "W", m->W, (size_t)m->rows * (size_t)m->d);
    svi_put_rows(p, "b", m->b, m->rows);
    svi_put_real(p, "C", m->C);
    svi_put_int(p, "window", m->window);
    svi_put_int(p, "seen", m->seen);
    svi_put_int(p, "learned", m->learned);
    svi_put_bool(p, "serves", m->serves);
    if (m->refit) {
        svi_put_real(p, "objective", m->objective);
        svi_put_real(p, "gap", m->gap);
        svi_put_int(p, "iterations", m->iterations);
        svi_put_real(p, "milliseconds", m->milliseconds);
        svi_put_int(p, "at", m->at);
    }
    if (m->schema) {
        svi_pack_key(p, "schema");
        svi_pack_raw(p, m->schema, m->schema_size);
    }
    if (m->calibration.a > 0) /* 0: the scores are not calibrated yet */
        svi_put_calibration(p, &m->calibration, m->rows);
    svi_put_map(p, "quality", (size_t)quality_count);
    put_figures(p, quality, quality_count);
}

/* Only a model of a stream (with quality figures) has published scores that it could reproduce. */
static void put_reproduces(struct svi_pack *p, const svs_model *m) {
    svi_put_bool(p, "reproduces", m->serves && !m->elsewhere);
}

svs_code svi_model_encode(const svs_model *m, const struct svi_figure *quality, int quality_count,
                          struct svi_bytes *out) {
    struct svi_pack p;
    svi_pack_begin(&p, out);
    const struct svi_open_map map = svi_pack_open(&p);
    put_model(&p, m, quality, quality_count);
    if (quality)
        put_reproduces(&p, m);
    svi_pack_close(&p, map);
    return svi_pack_end(&p);
}

/* ---- events: one function a topic, after the keys that all have */

/* An event that is only kept has no `seq`: those of its topic count what was published. */
static void put_common(struct svi_pack *p, const struct svi_event *e) {
    svi_put_int(p, "v", PROTOCOL);
    svi_put_text(p, "stream", e->stream);
    if (e->key)
        svi_put_text(p, "key", e->key);
    svi_put_uint(p, "epoch", e->epoch);
    if (e->topic != SVI_TOPIC_ALERT || !e->as.alert.kept_only)
        svi_put_uint(p, "seq", e->seq);
    svi_put_real(p, "ts", e->ts);
}

static void put_model_event(struct svi_pack *p, const struct svi_event *e) {
    const svs_tuning *tuning = e->as.model.tuning;
    put_model(p, e->as.model.model, e->as.model.quality, e->as.model.quality_count);
    put_reproduces(p, e->as.model.model);
    /* Of a merged model: which parts are in it, packed where they are known. */
    if (e->as.model.parts) {
        svi_pack_key(p, "parts");
        svi_pack_raw(p, e->as.model.parts->data, e->as.model.parts->size);
    }
    if (!tuning)
        return;
    svi_put_map(p, "loo", SVI_TUNING_KEYS);
    svi_put_tuning(p, tuning);
}

/* `scores` stands for scores, proba and classes together, which must describe the same rows. */
void svi_put_score(struct svi_pack *p, const struct svi_event *e, svi_put_scores *scores) {
    svi_put_value(p, "yhat", e->as.score.yhat);
    if (scores)
        scores(p, e);
    else
        svi_put_reals(p, "scores", e->as.score.scores, e->as.score.rows);
    if (!scores && e->as.score.proba_count > 0)
        svi_put_reals(p, "proba", e->as.score.proba, e->as.score.proba_count);
    if (!scores && e->as.score.classes) {
        svi_pack_key(p, "classes");
        svi_pack_values(p, e->as.score.classes, e->as.score.class_count);
    }
    if (e->as.score.interval)
        svi_put_reals(p, "interval", e->as.score.interval, 2);
    if (e->as.score.y.kind != SVS_NONE)
        svi_put_value(p, "y", e->as.score.y);
    /* All five or none: a row of a stream without novelty has no evidence, and 0 would say normal. */
    if (e->as.score.judged) {
        svi_put_real(p, "novelty", e->as.score.novelty);
        svi_put_real(p, "p", e->as.score.p);
        svi_put_real(p, "alarm", e->as.score.alarm);
        svi_put_real(p, "surprise", e->as.score.surprise);
        svi_put_real(p, "anomaly", e->as.score.anomaly);
    }
    /* A score states the version of the model that made it, so that a subscriber can reproduce it. */
    svi_put_uint(p, "model", e->as.score.version);
    if (e->as.score.bank)
        svi_put_uint(p, "bank", e->as.score.version);
    if (e->as.score.merged)
        svi_put_bool(p, "merged", true);
    if (e->as.score.members) {
        svi_pack_key(p, "members");
        svi_put_members(p, e->as.score.members);
    }
}

void svi_put_score_event(struct svi_pack *p, const struct svi_event *e) {
    svi_put_value(p, "id", e->as.score.id);
    svi_put_score(p, e, NULL);
}

static void put_score_event(struct svi_pack *p, const struct svi_event *e) {
    svi_put_score_event(p, e);
}

/* A column without a name is known by its number. */
static void put_feature(struct svi_pack *p, const struct svi_contribution *c) {
    if (c->feature)
        svi_put_text(p, "feature", c->feature);
    else
        svi_put_int(p, "feature", c->column);
}

static void put_contribution(struct svi_pack *p, const struct svi_contribution *c) {
    svi_pack_map(p, 4);
    put_feature(p, c);
    svi_put_real(p, "value", c->value);
    svi_put_reals(p, "normal", (const double[]){c->low, c->high}, 2);
    svi_put_real(p, "contribution", c->adds);
}

/* Packed float32, or float64 where float32 would not tell a thousandth of their range apart, as of a counter
 * near 1e9. */
static void put_packed(struct svi_pack *p, const char *key, const double *v, int count) {
    double low = INFINITY, high = -INFINITY, largest = 0;
    for (int i = 0; i < count; i++) {
        low = fmin(low, v[i]);
        high = fmax(high, v[i]);
        largest = fmax(largest, fabs(v[i]));
    }
    svi_pack_key(p, key);
    if (largest < FLT_MAX && (!(high > low) || largest * FLT_EPSILON < (high - low) / 1000))
        svi_pack_floats(p, v, (size_t)count);
    else
        svi_pack_doubles(p, v, (size_t)count);
}

static void put_histories(struct svi_pack *p, const struct svi_alert_event *a) {
    svi_put_array(p, "history", (size_t)a->history_count);
    for (int i = 0; i < a->history_count; i++) {
        const struct svi_feature_history *h = &a->history[i];
        svi_pack_map(p, 3);
        put_feature(p, &a->top[i]);
        svi_put_doubles(p, "times", h->times, (size_t)h->count);
        put_packed(p, "values", h->values, h->count);
    }
}

static void put_detector(struct svi_pack *p, const struct svi_alert_event *a) {
    svi_put_text(p, "detector", a->judge);
    svi_put_text(p, "severity", a->severity);
    svi_put_real(p, "surprise", a->surprise);
    svi_put_real(p, "expected", a->expected);
    svi_put_int(p, "over", a->over);
}

/* A group of keys with one cause. key_alerts are the numbers by which each key counts its own alerts. */
static void put_keys(struct svi_pack *p, const struct svi_alert_event *a) {
    svi_put_int(p, "keys_count", a->keys);
    svi_put_array(p, "keys", (size_t)a->named_count);
    for (int i = 0; i < a->named_count; i++)
        svi_pack_text(p, a->named[i]);
    svi_put_array(p, "key_alerts", (size_t)a->named_count);
    for (int i = 0; i < a->named_count; i++)
        svi_pack_int(p, a->alerts[i]);
}

/* The verdict of a person on an alert: nothing that was measured. */
static void put_verdict(struct svi_pack *p, const struct svi_alert_event *a) {
    svi_put_bool(p, "verdict", a->confirmed);
    if (a->by)
        svi_put_text(p, "by", a->by);
    svi_put_text(p, "text", a->text);
}

/* An alert of a rule, of quality or of novelty: each kind has its own keys between the common ones. */
static void put_alert_event(struct svi_pack *p, const struct svi_event *e) {
    const struct svi_alert_event *a = &e->as.alert;
    if (a->number > 0)
        svi_put_uint(p, "number", a->number);
    svi_put_text(p, "kind", a->kind);
    svi_put_int(p, "alert", a->alert);
    svi_put_text(p, "state", a->state);
    if (strcmp(a->state, SVI_ALERT_VERDICT) == 0) {
        put_verdict(p, a);
        return;
    }
    svi_put_value(p, "id", a->id);
    /* In this order: a mute that has ended, a rule, quality, novelty. */
    if (a->reason) {
        svi_put_int(p, "mute", a->mute);
        svi_put_int(p, "found", a->found);
        svi_put_int(p, "still_open", a->still_open);
        svi_put_text(p, "reason", a->reason);
    } else if (a->rule) {
        svi_put_text(p, "rule", a->rule);
        svi_put_int(p, "sensors", a->sensors);
        svi_put_text(p, "severity", a->severity);
    } else if (a->measure) {
        svi_put_text(p, "measure", a->measure);
        svi_put_real(p, "before", a->before);
        svi_put_real(p, "after", a->after);
    } else {
        svi_put_real(p, "novelty", a->novelty);
        svi_put_real(p, "membership", a->membership);
        svi_put_real(p, "p", a->p);
        svi_put_real(p, "grade", a->grade);
        if (a->judge)
            put_detector(p, a);
    }
    svi_put_real(p, "since", a->since);
    svi_put_array(p, "top", (size_t)a->count);
    for (int i = 0; i < a->count; i++)
        put_contribution(p, &a->top[i]);
    svi_put_text(p, "text", a->text);
    if (a->keys > 0)
        put_keys(p, a);
    /* The last pair: the alerts that are kept take it off (fleet/kept_alerts.c). */
    if (a->history_count > 0)
        put_histories(p, a);
}

static void put_stats_event(struct svi_pack *p, const struct svi_event *e) {
    put_figures(p, e->as.stats.figures, e->as.stats.count);
    svi_put_class_table(p, &e->as.stats.classes);
}

static void put_error_event(struct svi_pack *p, const struct svi_event *e) {
    svi_put_text(p, "code", svs_code_name(e->as.error.code));
    svi_put_text(p, "reason", e->as.error.reason);
    svi_put_int(p, "count", e->as.error.count);
    svi_pack_key(p, "sample");
    svi_pack_bin(p, e->as.error.sample, e->as.error.sample_size);
}

static void put_bank_event(struct svi_pack *p, const struct svi_event *e) {
    svi_put_bank(p, e->as.bank);
}

static void put_sums_event(struct svi_pack *p, const struct svi_event *e) {
    svi_pack_pairs(p, e->as.sums.bytes, e->as.sums.size, e->as.sums.pairs);
}

static void put_prior_event(struct svi_pack *p, const struct svi_event *e) {
    put_sums_event(p, e);
}

/* `retained`: a new subscriber gets the last event of the topic at once. */
static const struct {
    const char *name;
    bool retained;
    void (*put)(struct svi_pack *p, const struct svi_event *e);
} topics[SVI_TOPIC_COUNT] = {
#define X(constant, name, retained, text) {#name, retained, put_##name##_event},
    SVI_TOPICS(X)
#undef X
};

const char *svi_topic_name(enum svi_topic topic) {
    return topics[topic].name;
}

bool svi_topic_retained(enum svi_topic topic) {
    return topics[topic].retained;
}

/* ---- topics: NAME.STREAM. or NAME.STREAM.KEY., the key with %XX for all but letters, digits, _ and - */

static const char hex[] = "0123456789ABCDEF";

static bool is_plain(uint8_t byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
           byte == '_' || byte == '-';
}

size_t svi_topic_write(enum svi_topic topic, const char *stream, const char *key, char *out) {
    /* ZeroMQ subscribes by prefix. The final dot keeps it exact: "model.pump1." does not match the stream
     * pump10, but it matches every key of pump1. */
    size_t n = (size_t)snprintf(out, SVI_TOPIC_MAX, "%s.%.*s.", topics[topic].name, SVI_STREAM_MAX, stream);
    const size_t stem = n;
    /* SVI_TOPIC_MAX has capacity for a key of only encoded bytes; the bound guards against a longer one. */
    for (const char *c = key ? key : ""; *c && n + 4 < SVI_TOPIC_MAX; c++) {
        const uint8_t byte = (uint8_t)*c;
        if (is_plain(byte)) {
            out[n++] = (char)byte;
            continue;
        }
        out[n++] = '%';
        out[n++] = hex[byte >> 4];
        out[n++] = hex[byte & 15];
    }
    if (n > stem)
        out[n++] = '.';
    out[n] = '\0';
    return n;
}

/* The reverse. It accepts only what svi_topic_write writes, so that a key has one topic. */
bool svi_topic_key(const char *encoded, size_t length, char *out) {
    size_t n = 0;
    if (length < 2 || encoded[--length] != '.')
        return false;
    for (size_t i = 0; i < length; i++) {
        uint8_t byte = (uint8_t)encoded[i];
        if (!is_plain(byte)) {
            const char *high = byte == '%' && length - i > 2 ? memchr(hex, encoded[i + 1], 16) : NULL;
            const char *low = high ? memchr(hex, encoded[i + 2], 16) : NULL;
            /* An encoded plain byte would be a second spelling of the same key. */
            if (!low || is_plain(byte = (uint8_t)(16 * (high - hex) + (low - hex))) || byte == 0)
                return false;
            i += 2;
        }
        if (n == SVS_KEY_MAX)
            return false;
        out[n++] = (char)byte;
    }
    out[n] = '\0';
    return true;
}

svs_code svi_event_encode(const struct svi_event *e, struct svi_bytes *out) {
    struct svi_pack p;
    out->size = 0;
    svi_pack_begin(&p, out);
    const struct svi_open_map map = svi_pack_open(&p);
    put_common(&p, e);
    topics[e->topic].put(&p, e);
    svi_pack_close(&p, map);
    return svi_pack_end(&p);
}

/* ---- messages, as a producer sends them */

#define PACKED_MAX 512 /* most cells of a packed row, which is copied to the stack */

/* Zeros of a sparse row are left out (NaN is not 0 and is sent). A zero of a named row is sent, because it
 * makes its name known. */
static int column_is_sent(const struct svi_message *m, int column) {
    return m->kind == SVI_NAMED || m->x[column] != 0;
}

static void put_message_cell(struct svi_pack *p, const struct svi_cell *c) {
    if (c->kind == SVI_CELL_NUMBER)
        svi_pack_real(p, c->number);
    else if (c->kind == SVI_CELL_WORD)
        svi_pack_string(p, c->word, c->length);
    else
        svi_pack_nil(p);
}

/* Packs the cells as ext 2 if all of them are numbers. False: nothing was packed. */
static bool put_message_packed(struct svi_pack *p, const struct svi_message *m) {
    double row[PACKED_MAX];
    if (m->cell_count > PACKED_MAX)
        return false;
    for (int i = 0; i < m->cell_count; i++) {
        if (m->cells[i].kind != SVI_CELL_NUMBER)
            return false;
        row[i] = m->cells[i].number;
    }
    svi_pack_doubles(p, row, (size_t)m->cell_count);
    return true;
}

static void put_message_cells(struct svi_pack *p, const struct svi_message *m, bool packed) {
    svi_pack_key(p, "x");
    /* Cells in order go with `columns` true; packed numbers are used only for rows without it. */
    if (packed && m->listed && !m->in_order && put_message_packed(p, m))
        return;
    if (m->listed)
        svi_pack_array(p, (size_t)m->cell_count);
    else
        svi_pack_map(p, (size_t)m->cell_count);
    for (int i = 0; i < m->cell_count; i++) {
        const struct svi_cell *c = &m->cells[i];
        if (!m->listed)
            svi_pack_name(p, c->name, c->name_length);
        put_message_cell(p, c);
    }
}

/* The word of the policy for missing values, which matters only if a value may be missing; NULL: not sent. */
static const char *message_absent(const struct svi_message *m) {
    static const char *const words[] = {
        [SVI_MISSING_REFUSE] = "refuse", [SVI_MISSING_CARRY] = NULL,  [SVI_MISSING_DROP] = "drop",
        [SVI_MISSING_MEAN] = "mean",     [SVI_MISSING_ZERO] = "zero", [SVI_MISSING_AUTO] = NULL};
    return m->cells || m->missing > 0 ? words[m->absent] : NULL;
}

static void put_message_x(struct svi_pack *p, const struct svi_message *m, const svs_features *names,
                          bool packed) {
    if (m->cells) {
        put_message_cells(p, m, packed);
        return;
    }
    if (m->kind == SVI_DENSE && packed) {
        svi_put_doubles(p, "x", m->x, (size_t)m->d);
        return;
    }
    if (m->kind == SVI_DENSE) {
        svi_put_reals(p, "x", m->x, m->d);
        return;
    }
    /* A sparse or named row: the number of pairs is known at its end. */
    svi_pack_key(p, "x");
    const size_t hole = svi_pack_hole(p);
    size_t pairs = 0;
    for (int j = 0; j < m->d; j++) {
        if (!column_is_sent(m, j))
            continue;
        pairs++;
        if (m->kind == SVI_NAMED)
            svi_pack_text(p, svs_features_name(names, j));
        else
            svi_pack_int(p, j);
        svi_pack_real(p, m->x[j]);
    }
    svi_pack_fill(p, hole, pairs, true);
}

svs_code svi_message_encode(const struct svi_message *m, const svs_features *names, bool packed,
                            struct svi_bytes *out) {
    const struct {
        const char *name;
        svs_value value; /* SVS_NONE: the key is left out */
    } pairs[] = {{"op", m->op == SVI_LEARN ? svs_none() : svs_str(m->op == SVI_LABEL ? "label" : "forget")},
                 {"y", m->y},
                 {"id", m->id},
                 {"ts", isnan(m->ts) ? svs_none() : svs_real(m->ts)},
                 {"w", m->weight == 1 ? svs_none() : svs_real(m->weight)},
                 {"stream", m->stream},
                 {"src", m->src},
                 {"key", m->key},
                 {"n", m->n < 0 ? svs_none() : svs_int(m->n)},
                 {"missing", message_absent(m) ? svs_str(message_absent(m)) : svs_none()}};
    const size_t pair_count = sizeof pairs / sizeof *pairs;
    struct svi_pack p;
    /* Before anything is packed: a NaN in packed numbers would be refused by the receiver. */
    if (packed && m->has_x && m->kind == SVI_DENSE && m->missing > 0)
        return SVS_MISSING_VALUE;
    /* The defaults of the wire are left out (op learn, weight 1), which keeps the common message short. */
    svi_pack_begin(&p, out);
    const struct svi_open_map map = svi_pack_open(&p);
    if (m->has_x)
        put_message_x(&p, m, names, packed);
    if (m->cells && m->in_order)
        svi_put_bool(&p, "columns", true);
    for (size_t i = 0; i < pair_count; i++)
        if (pairs[i].value.kind != SVS_NONE)
            svi_put_value(&p, pairs[i].name, pairs[i].value);
    svi_pack_close(&p, map);
    return svi_pack_end(&p);
}
