/* event.h: the events that the engine publishes, and their msgpack form. Topic and payload are the two frames
 * of one message. */
#ifndef SVI_EVENT_H
#define SVI_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/figure.h"
#include "data/message.h"
#include "svmstream/learner.h"
#include "svmstream/model.h"
#include "wire/bank_map.h"
#include "wire/class_table.h"

#define SVI_STREAM_MAX    64 /* bytes of a stream name */
#define SVI_STATS_CLASSES 32 /* a stream with more classes reports their figures on request only */
#define SVI_TOPIC_MAX     (SVI_STREAM_MAX + 3 * SVS_KEY_MAX + 17)

/* X(CONSTANT, name, retained, "content") */
#define SVI_TOPICS(X)                                                                                        \
    X(MODEL, model, 1, "a model, complete, in raw input units")                                              \
    X(BANK, bank, 1, "the bank of method auto: members, what they scored, what weighs them")                 \
    X(SCORE, score, 0, "one sample's prediction, made before it was learned")                                \
    X(ALERT, alert, 0, "something is new: opened, updated or closed")                                        \
    X(STATS, stats, 1, "counters, rates, prequential quality, numerical health")                             \
    X(ERROR, error, 0, "input that was refused, and why")                                                    \
    X(SUMS, sums, 1, "the sums over one window, for a model of many processes")                              \
    X(PRIOR, prior, 1, "what the stream keys of many processes hold, for new keys")

enum svi_topic {
#define X(constant, name, retained, text) SVI_TOPIC_##constant,
    SVI_TOPICS(X)
#undef X
        SVI_TOPIC_COUNT
};

/* The contribution of one feature to an alert. */
struct svi_contribution {
    const char *feature; /* its name; NULL: it has none, and `column` identifies it */
    int column;
    double value;     /* in the sample */
    double low, high; /* normal range; NAN: not known */
    int ago;          /* samples before the present one that the value is of (novelty.lags); not sent */
    bool step;        /* the value is the step to that sample from the one before; not sent */
    double adds;      /* signed share of the surprise (1 is all of it); > 0: the value is above normal */
};

/* The last values of a feature, oldest first, [count] each. */
struct svi_feature_history {
    const double *times;  /* seconds since 1970 */
    const double *values; /* NAN: missing */
    int count;
};

#define SVI_ALERT_VERDICT "verdict" /* the state of an event that holds a verdict */

struct svi_alert_event {
    const char *kind;  /* novelty, quality, rule; or mute: a mute has ended, which is no alert */
    uint64_t number;   /* of the event among all alert events of the stream, from 1; 0: not numbered */
    int64_t alert;     /* number of the episode, from 1 in each epoch; open, updates and close share it; 0: of
                          a mute */
    const char *state; /* open, update, close, verdict; ended, of a mute */
    bool kept_only;    /* it has a number and is kept, but is not published and has no seq */
    bool confirmed; /* of a verdict: the alert was right; it has none of the keys from `novelty` to `top` */
    const char *by; /* of a verdict: the person who gave it, as the request states; NULL: not stated */
    svs_value id;   /* of the sample that changed the state; SVS_NONE: no sample did, sent as nil */
    double novelty, membership, p, grade; /* of novelty */
    /* Of novelty under a budget. */
    const char *judge;    /* the detector; NULL: without this and the next four keys */
    const char *severity; /* notice, warning, serious */
    double surprise;      /* -log10 p of that detector; in a close the largest */
    double expected;      /* value that the detector expected; NAN: not known */
    int over;             /* samples that were assessed together */
    double since;         /* seconds since 1970 */
    const char *measure;  /* of quality: error (share of wrong predictions) or rmse; else NULL */
    double before, after; /* the measure before the change and since */
    const char *lead;     /* of novelty: feature of the leading detector, not sent; NULL: see `top` */
    bool several;         /* of novelty: other features than that one have been at their level; not sent */
    int64_t mute;         /* of a mute: its id */
    int64_t found, still_open; /* of a mute: alerts that opened under it; of these, alerts still open */
    const char *reason;        /* of a mute: its reason; else NULL */
    const char *rule;          /* of a rule: its name; else NULL */
    int sensors;               /* of a rule: sensors reported; in a close, those that were */
    const struct svi_contribution *top; /* [count] largest first */
    int count;
    const char *text;                          /* for people */
    const struct svi_feature_history *history; /* [history_count] of the first features of `top` */
    int history_count;
    /* Of one cause in several stream keys. */
    int64_t keys;             /* number of keys; 0: without these pairs */
    const char *const *named; /* [named_count] the first of them */
    const int64_t *alerts;    /* [named_count] numbers of their alerts */
    int named_count;
};

struct svi_event {
    enum svi_topic topic;
    const char *stream;
    uint64_t epoch;
    uint64_t seq;    /* counts the events of this topic and key, from 0 */
    const char *key; /* UTF-8, at most SVS_KEY_MAX bytes and NUL; NULL: the stream has no keys */
    double ts;       /* seconds since 1970 */
    const struct svi_bytes *payload; /* its msgpack form if that was made already; else NULL */
    union {
        struct {
            const svs_model *model;
            const struct svi_figure *quality;
            int quality_count;
            const svs_tuning *tuning; /* NULL: without key `loo` */
            const struct svi_bytes
                *parts; /* of a merged model: an array, as msgpack; NULL: without this key */
        } model;
        struct {
            svs_value id;    /* SVS_NONE: sent as nil */
            svs_value yhat;  /* SVS_NONE: no class known yet */
            svs_value y;     /* SVS_NONE: without this key */
            const double *x; /* [d] the row as it was assessed; not sent */
            int d;
            const double *scores; /* [rows] */
            int rows;
            const svs_value *classes; /* [class_count] of the scores; NULL: without this key */
            int class_count;
            const double *proba; /* [proba_count] of the classes in order; count 0: without this key */
            int proba_count;
            const double *interval;                  /* low and high end; NULL: without this key */
            uint64_t version;                        /* key `model` */
            bool bank;                               /* the model is a bank: version is also key `bank` */
            bool merged;                             /* it is a merged one: key `merged` is true */
            const struct svi_member_scores *members; /* NULL: without this key */
            bool judged;                             /* the next five are known */
            double novelty, p;
            double alarm;        /* closeness to an alert; at 1 one may open */
            double surprise;     /* -log10 of the smallest p of all detectors */
            double anomaly;      /* of the row and its sensors together, 0 to 1 */
            int64_t mark;        /* svi_stream_mark; not sent */
            int predicted;       /* index of yhat among the classes, -1 = none; not sent */
            const uint8_t *gaps; /* [d] not 0 where x stands in for a missing value; NULL: none; not sent */
        } score;
        struct svi_alert_event alert;
        struct {
            const struct svi_figure *figures;
            int count;
            struct svi_class_table classes;
        } stats;
        struct {
            svs_code code;
            const char *reason;
            int64_t count;      /* errors with this code so far */
            const void *sample; /* the first bytes of the refused input */
            size_t sample_size;
        } error;
        const struct svi_bank_description *bank;
        struct {
            const void *bytes; /* the pairs of a sums record (merge/sums.h), or of a prior event, as msgpack,
                                  without a map's head */
            size_t size, pairs;
        } sums;
    } as;
};

/* Puts a pair: the figure's name and value. */
struct svi_pack;
void svi_put_figure(struct svi_pack *p, const struct svi_figure *f);

/* Puts the pairs of a score event from yhat on into an open map. `scores` (NULL: the default form) replaces
 * the pairs `scores`, `proba` and `classes`. */
typedef void svi_put_scores(struct svi_pack *p, const struct svi_event *e);
void svi_put_score(struct svi_pack *p, const struct svi_event *e, svi_put_scores *scores);

/* Puts the pairs of a score event, without those of every event, into an open map. */
void svi_put_score_event(struct svi_pack *p, const struct svi_event *e);

const char *svi_topic_name(enum svi_topic topic); /* "model" */
bool svi_topic_retained(enum svi_topic topic);    /* its last event is sent to each new subscriber */

/* Writes the topic frame "model.pump1." to `out` (SVI_TOPIC_MAX bytes) and returns its length. A key that is
 * not empty is appended: "model.pump1.mixer%207.", with bytes other than ASCII letters, digits, _ and -
 * percent-encoded. */
size_t svi_topic_write(enum svi_topic topic, const char *stream, const char *key, char *out);

/* Decodes the key from the bytes after "model.pump1.", with the final dot, to `out` (SVS_KEY_MAX + 1 bytes).
 * False: svi_topic_write never writes such a topic. */
bool svi_topic_key(const char *encoded, size_t length, char *out);

/* Replaces the content of `out` by the payload. Allocates only while `out` grows. SVS_NO_MEMORY. */
svs_code svi_event_encode(const struct svi_event *e, struct svi_bytes *out);

/* Appends the map of a model without the common keys of events, for files. `quality` NULL: the model belongs
 * to no stream, and has no key `reproduces`. SVS_NO_MEMORY. */
svs_code svi_model_encode(const svs_model *m, const struct svi_figure *quality, int quality_count,
                          struct svi_bytes *out);

/* Appends one sample or command as a producer sends it, with x in the message's own kind. Cells: an array if
 * they are listed (with `columns` true if they are in order), else a map of their names. Dense: an array of
 * doubles, or ext 2 if `packed`. Sparse: a map of the columns that are not 0. Named: a map of all d names,
 * from `names` (may be NULL for the other kinds). Missing values are sent as nil, which packed numbers cannot
 * hold: SVS_MISSING_VALUE. SVS_NO_MEMORY. */
svs_code svi_message_encode(const struct svi_message *m, const svs_features *names, bool packed,
                            struct svi_bytes *out);

#endif
