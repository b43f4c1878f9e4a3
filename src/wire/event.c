#include "wire/event.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "wire/pack.h"

#define PROTOCOL    1 /* key `v` */
#define COMMON_KEYS 5 /* v, stream, epoch, seq, ts */
#define MODEL_KEYS  14

static const char *const topic_names[SVI_TOPIC_COUNT] = {
#define X(constant, name, retained, text) #name,
    SVI_TOPICS(X)
#undef X
};

const char *svi_topic_name(enum svi_topic topic) {
    return topic_names[topic];
}

size_t svi_topic_write(enum svi_topic topic, const char *stream, char *out) {
    int n = snprintf(out, SVI_TOPIC_MAX, "%s.%.*s.", topic_names[topic], SVI_STREAM_MAX, stream);
    return (size_t)n;
}

static void put_figure(struct svi_pack *p, const struct svi_figure *f) {
    svi_pack_text(p, f->name);
    if (f->type == SVI_COUNT)
        svi_pack_int(p, f->as.count);
    else if (f->type == SVI_NUMBER)
        svi_pack_real(p, f->as.number);
    else if (f->as.text)
        svi_pack_text(p, f->as.text);
    else
        svi_pack_nil(p);
}

static void put_figures(struct svi_pack *p, const struct svi_figure *f, int count) {
    for (int i = 0; i < count; i++)
        put_figure(p, &f[i]);
}

static void put_names(struct svi_pack *p, const svs_model *m) {
    svi_pack_key(p, "features");
    if (!m->features) {
        svi_pack_nil(p);
        return;
    }
    svi_pack_array(p, (size_t)m->d);
    for (int j = 0; j < m->d; j++)
        svi_pack_text(p, m->features[j]);
}

static void put_classes(struct svi_pack *p, const svs_model *m) {
    svi_pack_key(p, "classes");
    svi_pack_array(p, (size_t)m->class_count);
    for (int k = 0; k < m->class_count; k++)
        svi_pack_value(p, m->classes[k]);
}

static void put_weights(struct svi_pack *p, const svs_model *m) {
    svi_pack_key(p, "W");
    svi_pack_doubles(p, m->W, (size_t)m->rows * (size_t)m->d);
    svi_pack_key(p, "b");
    if (m->rows == 1)
        svi_pack_real(p, m->b[0]);
    else
        svi_pack_doubles(p, m->b, (size_t)m->rows);
}

static inline void put_count(struct svi_pack *p, const char *key, int64_t count) {
    svi_pack_key(p, key);
    svi_pack_int(p, count);
}

static inline void put_real(struct svi_pack *p, const char *key, double value) {
    svi_pack_key(p, key);
    svi_pack_real(p, value);
}

/* What a refit says beside. */
#define REFIT_KEYS 5

static void put_refit(struct svi_pack *p, const svs_model *m) {
    svi_pack_key(p, "objective");
    svi_pack_real(p, m->objective);
    svi_pack_key(p, "gap");
    svi_pack_real(p, m->gap);
    put_count(p, "iterations", m->iterations);
    svi_pack_key(p, "milliseconds");
    svi_pack_real(p, m->milliseconds);
    put_count(p, "at", m->at);
}

static int model_keys(const svs_model *m) {
    return MODEL_KEYS + (m->refit ? REFIT_KEYS : 0);
}

/* The model_keys() pairs of a model. */
static void put_model(struct svi_pack *p, const svs_model *m, const struct svi_figure *quality,
                      int quality_count) {
    svi_pack_key(p, "version");
    svi_pack_uint(p, m->version);
    svi_pack_key(p, "method");
    svi_pack_text(p, m->method);
    svi_pack_key(p, "task");
    svi_pack_text(p, m->task == SVS_REGRESS ? "regress" : "classify");
    put_count(p, "d", m->d);
    put_names(p, m);
    put_classes(p, m);
    put_weights(p, m);
    svi_pack_key(p, "C");
    svi_pack_real(p, m->C);
    put_count(p, "window", m->window);
    put_count(p, "seen", m->seen);
    put_count(p, "learned", m->learned);
    svi_pack_key(p, "serves");
    svi_pack_bool(p, m->serves);
    if (m->refit)
        put_refit(p, m);
    svi_pack_key(p, "quality");
    svi_pack_map(p, (size_t)quality_count);
    put_figures(p, quality, quality_count);
}

static void put_common(struct svi_pack *p, const struct svi_event *e, int further) {
    svi_pack_map(p, COMMON_KEYS + (size_t)further);
    svi_pack_key(p, "v");
    svi_pack_int(p, PROTOCOL);
    svi_pack_key(p, "stream");
    svi_pack_text(p, e->stream);
    svi_pack_key(p, "epoch");
    svi_pack_uint(p, e->epoch);
    svi_pack_key(p, "seq");
    svi_pack_uint(p, e->seq);
    svi_pack_key(p, "ts");
    svi_pack_real(p, e->ts);
}

static void put_model_event(struct svi_pack *p, const struct svi_event *e) {
    put_common(p, e, model_keys(e->as.model.model));
    put_model(p, e->as.model.model, e->as.model.quality, e->as.model.quality_count);
}

static void put_score_event(struct svi_pack *p, const struct svi_event *e) {
    bool labelled = e->as.score.y.kind != SVS_NONE, judged = e->as.score.judged;
    put_common(p, e, 4 + labelled + 2 * judged);
    svi_pack_key(p, "id");
    svi_pack_value(p, e->as.score.id);
    svi_pack_key(p, "yhat");
    svi_pack_value(p, e->as.score.yhat);
    svi_pack_key(p, "scores");
    svi_pack_array(p, (size_t)e->as.score.rows);
    for (int k = 0; k < e->as.score.rows; k++)
        svi_pack_real(p, e->as.score.scores[k]);
    if (labelled) {
        svi_pack_key(p, "y");
        svi_pack_value(p, e->as.score.y);
    }
    if (judged) {
        put_real(p, "novelty", e->as.score.novelty);
        put_real(p, "p", e->as.score.p);
    }
    svi_pack_key(p, "model");
    svi_pack_uint(p, e->as.score.version);
}

static void put_contribution(struct svi_pack *p, const struct svi_contribution *c) {
    svi_pack_map(p, 4);
    svi_pack_key(p, "feature");
    if (c->feature)
        svi_pack_text(p, c->feature);
    else
        svi_pack_int(p, c->column);
    put_real(p, "value", c->value);
    svi_pack_key(p, "usual");
    svi_pack_array(p, 2);
    svi_pack_real(p, c->low);
    svi_pack_real(p, c->high);
    put_real(p, "adds", c->adds);
}

static void put_alert_event(struct svi_pack *p, const struct svi_event *e) {
    put_common(p, e, 9);
    svi_pack_key(p, "state");
    svi_pack_text(p, e->as.alert.state);
    svi_pack_key(p, "id");
    svi_pack_value(p, e->as.alert.id);
    put_real(p, "novelty", e->as.alert.novelty);
    put_real(p, "membership", e->as.alert.membership);
    put_real(p, "p", e->as.alert.p);
    put_real(p, "grade", e->as.alert.grade);
    put_real(p, "since", e->as.alert.since);
    svi_pack_key(p, "top");
    svi_pack_array(p, (size_t)e->as.alert.count);
    for (int i = 0; i < e->as.alert.count; i++)
        put_contribution(p, &e->as.alert.top[i]);
    svi_pack_key(p, "text");
    svi_pack_text(p, e->as.alert.text);
}

static void put_stats_event(struct svi_pack *p, const struct svi_event *e) {
    put_common(p, e, e->as.stats.count);
    put_figures(p, e->as.stats.figures, e->as.stats.count);
}

static void put_error_event(struct svi_pack *p, const struct svi_event *e) {
    put_common(p, e, 4);
    svi_pack_key(p, "code");
    svi_pack_text(p, svs_code_name(e->as.error.code));
    svi_pack_key(p, "reason");
    svi_pack_text(p, e->as.error.reason);
    put_count(p, "count", e->as.error.count);
    svi_pack_key(p, "sample");
    svi_pack_bin(p, e->as.error.sample, e->as.error.sample_size);
}

svs_code svi_event_encode(const struct svi_event *e, struct svi_bytes *out) {
    static void (*const put[SVI_TOPIC_COUNT])(struct svi_pack *, const struct svi_event *) = {
        [SVI_TOPIC_MODEL] = put_model_event, [SVI_TOPIC_SCORE] = put_score_event,
        [SVI_TOPIC_ALERT] = put_alert_event, [SVI_TOPIC_STATS] = put_stats_event,
        [SVI_TOPIC_ERROR] = put_error_event,
    };
    struct svi_pack p;
    out->size = 0;
    svi_pack_begin(&p, out);
    put[e->topic](&p, e);
    return svi_pack_end(&p);
}

svs_code svi_model_encode(const svs_model *m, const struct svi_figure *quality, int quality_count,
                          struct svi_bytes *out) {
    struct svi_pack p;
    svi_pack_begin(&p, out);
    svi_pack_map(&p, (size_t)model_keys(m));
    put_model(&p, m, quality, quality_count);
    return svi_pack_end(&p);
}

static int column_is_sent(const struct svi_message *m, int column) {
    return m->kind == SVI_NAMED ||
           m->x[column] != 0; /* NAN too; a zero of a named sample still makes its name known */
}

static void put_map_x(struct svi_pack *p, const struct svi_message *m, const svs_features *names) {
    int pairs = 0;
    for (int j = 0; j < m->d; j++)
        pairs += column_is_sent(m, j);
    svi_pack_map(p, (size_t)pairs);
    for (int j = 0; j < m->d; j++) {
        if (!column_is_sent(m, j))
            continue;
        if (m->kind == SVI_NAMED)
            svi_pack_text(p, svs_features_name(names, j));
        else
            svi_pack_int(p, j);
        svi_pack_real(p, m->x[j]);
    }
}

static void put_x(struct svi_pack *p, const struct svi_message *m, const svs_features *names, bool packed) {
    svi_pack_key(p, "x");
    if (m->kind != SVI_DENSE) {
        put_map_x(p, m, names);
    } else if (packed) {
        svi_pack_doubles(p, m->x, (size_t)m->d);
    } else {
        svi_pack_array(p, (size_t)m->d);
        for (int j = 0; j < m->d; j++)
            svi_pack_real(p, m->x[j]);
    }
}

/* The keys besides x that a message needs, as name and value. */
struct pair {
    const char *name;
    svs_value value;
};

static void add_pair(struct pair *pairs, size_t *count, const char *name, svs_value value) {
    if (value.kind != SVS_NONE)
        pairs[(*count)++] = (struct pair){name, value};
}

static size_t pairs_of(const struct svi_message *m, struct pair *pairs) {
    static const char *const ops[] = {[SVI_LABEL] = "label", [SVI_FORGET] = "forget"};
    size_t count = 0;
    add_pair(pairs, &count, "op", m->op == SVI_LEARN ? svs_none() : svs_str(ops[m->op]));
    add_pair(pairs, &count, "y", m->y);
    add_pair(pairs, &count, "id", m->id);
    add_pair(pairs, &count, "ts", isnan(m->ts) ? svs_none() : svs_real(m->ts));
    add_pair(pairs, &count, "w", m->weight == 1 ? svs_none() : svs_real(m->weight));
    add_pair(pairs, &count, "stream", m->stream);
    add_pair(pairs, &count, "src", m->src);
    add_pair(pairs, &count, "n", m->n < 0 ? svs_none() : svs_int(m->n));
    return count;
}

svs_code svi_message_encode(const struct svi_message *m, const svs_features *names, bool packed,
                            struct svi_bytes *out) {
    struct svi_pack p;
    struct pair pairs[8];
    if (packed && m->has_x && m->kind == SVI_DENSE && m->missing > 0)
        return SVS_MISSING_VALUE;
    size_t count = pairs_of(m, pairs);
    svi_pack_begin(&p, out);
    svi_pack_map(&p, count + m->has_x);
    if (m->has_x)
        put_x(&p, m, names, packed);
    for (size_t i = 0; i < count; i++) {
        svi_pack_text(&p, pairs[i].name);
        svi_pack_value(&p, pairs[i].value);
    }
    return svi_pack_end(&p);
}
