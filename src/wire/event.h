/* event.h: what the engine says, and its msgpack form. Topic and payload are the two frames of one message.
 */
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

#define SVI_STREAM_MAX    64 /* length of a stream name */
#define SVI_STATS_CLASSES 32 /* a stream with more tells of them on request only */
#define SVI_TOPIC_MAX     (SVI_STREAM_MAX + 3 * SVS_KEY_MAX + 17)

/* X(CONSTANT, name, retained, "what it tells") */
#define SVI_TOPICS(X)                                                                                        \
    X(MODEL, model, 1, "a model, complete, in raw input units")                                              \
    X(BANK, bank, 1, "the bank of method auto: members, what they scored, what weighs them")                 \
    X(SCORE, score, 0, "one sample's prediction, made before it was learned")                                \
    X(ALERT, alert, 0, "something is new: opened, updated or closed")                                        \
    X(STATS, stats, 1, "counters, rates, prequential quality, numerical health")                             \
    X(ERROR, error, 0, "input that was refused, and why")

enum svi_topic {
#define X(constant, name, retained, text) SVI_TOPIC_##constant,
    SVI_TOPICS(X)
#undef X
        SVI_TOPIC_COUNT
};

/* What one feature adds to an alert. */
struct svi_contribution {
    const char *feature; /* its name, or NULL */
    int column;
    double value, low, high; /* in the sample; usually; NAN = not known */
    double adds; /* signed: > 0 where the value is above what is usual; 1 is all of the surprise */
};

struct svi_alert_event {
    const char *kind; /* novelty, quality, rule */
    int64_t alert; /* number of the episode, from 1 in an epoch: its open, updates and close have the same */
    const char *state;                    /* open, update, close */
    svs_value id;                         /* of the sample that changed it; SVS_NONE: none did, sent as nil */
    double novelty, membership, p, grade; /* of novelty */
    /* Of novelty under a budget. */
    const char *judge;    /* NULL: without these keys */
    const char *severity; /* notice, warning, serious */
    double surprise;      /* -log10 p of that judge; in a close the largest */
    double expected;      /* NAN: not known */
    int over;             /* samples that were judged together */
    double since;
    const char *measure;  /* of quality: error (share of wrong ones) or rmse; NULL: the alert is of novelty */
    double before, after; /* that, before the change and since */
    const char *rule;     /* of a rule, its name; else NULL */
    int sensors;          /* told of, or of a close: that were */
    const struct svi_contribution *top; /* most telling first */
    int count;
    const char *text;
    /* Of one cause in several keys. */
    int64_t keys;             /* that many; 0: without these pairs */
    const char *const *named; /* the first of them, and the numbers of their alerts */
    const int64_t *alerts;
    int named_count;
};

struct svi_event {
    enum svi_topic topic;
    const char *stream;
    uint64_t epoch;
    uint64_t seq;    /* of this topic, and of this key, from 0 */
    const char *key; /* UTF-8, at most SVS_KEY_MAX bytes and NUL; NULL: the stream has no keys */
    double ts;
    const struct svi_bytes *payload; /* its msgpack form, where that was made already; else NULL */
    union {
        struct {
            const svs_model *model;
            const struct svi_figure *quality;
            int quality_count;
            const svs_tuning *tuning; /* NULL: key `loo` absent */
        } model;
        struct {
            svs_value id;    /* SVS_NONE: sent as nil */
            svs_value yhat;  /* SVS_NONE: no class known yet */
            svs_value y;     /* SVS_NONE: key absent */
            const double *x; /* the row as it was judged, d columns; not sent */
            int d;
            const double *scores;
            int rows;
            const svs_value *classes; /* that they are of, class_count of them; NULL: of none, key absent */
            int class_count;
            const double *proba; /* of the classes in order, proba_count of them; 0: key absent */
            int proba_count;
            const double *interval;                  /* low and high end, NULL: key absent */
            uint64_t version;                        /* key `model` */
            bool bank;                               /* which is of a bank: key `bank` */
            const struct svi_member_scores *members; /* NULL: key absent */
            bool judged;                             /* novelty and p are known */
            double novelty, p;
            double alarm;    /* how near to an alert: 1 is where one may open */
            double surprise; /* -log10 of the smallest p of all judges */
            int64_t mark;    /* svi_engine_mark; not sent */
        } score;
        struct svi_alert_event alert;
        struct {
            const struct svi_figure *figures;
            int count;
            struct svi_class_table_reserve classes;
        } stats;
        struct {
            svs_code code;
            const char *reason;
            int64_t count;      /* with this code so far */
            const void *sample; /* first bytes of what was refused */
            size_t sample_size;
        } error;
        const struct svi_bank_description *bank;
    } as;
};

/* A pair of a map: the figure's name and value. */
struct svi_pack;
void svi_put_figure(struct svi_pack *p, const struct svi_figure *f);

/* The pairs of a score event from yhat on, into an open map. `scores` puts the pair of that name in another
 * form than the rows of the model; NULL: so. */
typedef void svi_put_scores(struct svi_pack *p, const struct svi_event *e); /* and proba */
void svi_put_score(struct svi_pack *p, const struct svi_event *e, svi_put_scores *scores);

const char *svi_topic_name(enum svi_topic topic); /* "model" */
bool svi_topic_retained(enum svi_topic topic);    /* the last one is sent to each new subscriber */

/* "model.pump1." into `out` (SVI_TOPIC_MAX bytes). Returns its length. With a key that is not empty
 * "model.pump1.mixer%207.": what is neither a letter, a digit, _ nor - is percent-encoded. */
size_t svi_topic_write(enum svi_topic topic, const char *stream, const char *key, char *out);

/* The key from what follows "model.pump1.", with the dot at its end: into `out` (SVS_KEY_MAX + 1 bytes).
 * False: svi_topic_write makes no such topic. */
bool svi_topic_key(const char *encoded, size_t length, char *out);

/* Replaces the content of `out` by the payload. SVS_NO_MEMORY. No allocation once `out` has grown. */
svs_code svi_event_encode(const struct svi_event *e, struct svi_bytes *out);

/* Appends the map of a model without event keys (files). `quality` NULL: it is of no stream, and has no key
 * `reproduces`. */
svs_code svi_model_encode(const svs_model *m, const struct svi_figure *quality, int quality_count,
                          struct svi_bytes *out);

/* Appends one sample or command as a producer sends it: a map with x in the message's own kind. Cells: an
 * array where they are listed (and `columns` true where they are in order), else a map of their names. Dense:
 * an array of doubles, or ext 2 when `packed`; sparse: a map of the columns that are not 0; named: a map of
 * all d names, from `names` (NULL is fine for the other kinds). Missing values are sent as nil (packed
 * cannot: SVS_MISSING_VALUE). SVS_NO_MEMORY. */
svs_code svi_message_encode(const struct svi_message *m, const svs_features *names, bool packed,
                            struct svi_bytes *out);

#endif
