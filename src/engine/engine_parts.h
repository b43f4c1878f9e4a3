/* engine_parts.h: the structure of an engine, for its own sources and for the room `fleet`, which makes
 * streams of engines. */
#ifndef SVI_ENGINE_PARTS_H
#define SVI_ENGINE_PARTS_H

#include "alerts/alert_report.h"
#include "alerts/mutes.h"
#include "alerts/rules.h"
#include "base/archive.h"
#include "bank/bank.h"
#include "bank/describe.h"
#include "bank/key_stack.h"
#include "engine/engine.h"
#include "refit/refit_policy.h"
#include "engine/novelty_queue.h"
#include "engine/outliers.h"
#include "quality/quality_stage.h"
#include "engine/counters.h"
#include "wire/columns.h"

#define SVI_GAUGES_MAX 28

/* Values that hold for all engines of a stream. The owner changes them between two calls. */
struct svi_engine_common {
    bool keys_allowed;        /* elements may name a key, by which their engine was found */
    bool sink_numbers_alerts; /* the sink numbers alert events; the engine gives them no seq */
    bool muted;               /* the sink drops all events, so content made only for readers is left out */
    bool score_all;         /* every accepted sample has a score event, whatever the setting `scores` says */
    bool scores_unnumbered; /* score events go to the sink without a number, and are not counted as published:
                               the state does not depend on which scores are wanted */
    int64_t mark;           /* copied to score events: number of the input row that they belong to */
    struct svi_units *units;       /* of the columns; NULL: not kept */
    double policies;               /* number of engines that share alert.budget; 0: it is not shared */
    double asked;                  /* common factor of their alert levels */
    const struct svi_mutes *mutes; /* of all engines; NULL: none */
};

/* Settings with a count of their users: the engines of a stream share them. */
struct svi_shared_settings {
    struct svi_settings s;
    int64_t users;
};

/* new: a copy with one user; NULL: SVS_NO_MEMORY. use: adds a user. leave: removes one, frees the settings
 * after the last, and sets *s to NULL. */
struct svi_shared_settings *svi_shared_settings_new(const struct svi_settings *s, svs_error *err);
struct svi_shared_settings *svi_shared_settings_use(struct svi_shared_settings *s);
void svi_shared_settings_leave(struct svi_shared_settings **s);

/* Memory that an engine needs during a call only. The engines of a stream share it, one for each thread. */
struct svi_engine_scratch {
    struct svi_learner_scratch *learner; /* NULL: each learner has its own */
    struct svi_figure quality[SVI_METRICS_FIGURES + SVI_PROBABILITY_FIGURES];
    struct svi_member_scores members; /* their scores of the sample at hand */
    struct svi_shared_scratch novelty;
    struct svi_shape_scratch row;   /* of the sample at hand; empty: each engine has its own */
    double *stack;                  /* of the sample at hand, for a key's stack; NULL: none */
    struct svi_reply_scores *asked; /* receives the scores of the message at hand; NULL: nobody asked */
};

/* For engines with these settings, of keys or not. NULL: SVS_NO_MEMORY. */
struct svi_engine_scratch *svi_engine_scratch_new(const struct svi_settings *s, svs_error *err);
void svi_engine_scratch_free(struct svi_engine_scratch **s);

/* Moves the engine of a key to another scratch, between two calls. No other thread may be using the scratch
 * that it leaves, unless learner and novelty have released it. SVS_NO_MEMORY: it keeps the old one. */
svs_code svi_engine_use_scratch(struct svi_engine *e, struct svi_engine_scratch *s, svs_error *err);

/* Placeholders for the stages that are off in the engines of keys, which share them: saves memory for each
 * key. What is written there has no effect. */
struct svi_engine_off {
    struct svi_alert_stage novelty;
    struct svi_rules rules;
    struct svi_refit_policy refit;
};

/* Arguments of svi_engine_new besides the settings. The pointers belong to the caller and must outlive the
 * engine. */
struct svi_engine_setup {
    const struct svi_engine_common *common;
    struct svi_engine_scratch *scratch; /* of the thread that calls the engine */
    struct svi_engine_off *off; /* placeholders for one engine of many, which never has refits; NULL: the
                                   engine owns each of its stages */
    const char *label;          /* named after the stream in lines for people; NULL or "": nothing */
    int columns;                /* expected number of columns, for which the learner reserves */
};

/* Counters that the engine keeps itself; the others are read from its parts when figures are requested. */
enum svi_kept_counter {
    SVI_KEPT_SEEN,
    SVI_KEPT_LABELLED,
    SVI_KEPT_REFUSED,
    SVI_KEPT_DUPLICATES,
    SVI_KEPT_DROPPED_MISSING,
    SVI_KEPT_CARRIED_MISSING,
    SVI_KEPT_FILLED_MISSING,
    SVI_KEPT_CLIPPED,
    SVI_KEPT_PUBLISHED_MODELS,
    SVI_KEPT_PUBLISHED_SCORES,
    SVI_KEPT_COUNT
};

/* Numbers of alerts: each that opens gets the next one, and its updates and its close repeat it. */
struct svi_episodes {
    int64_t count;            /* so far */
    int64_t novelty, quality; /* number of the last alert of this kind */
    bool open;                /* that of novelty is open, as reported */
    int feature;              /* column that the last alert of novelty named first; -1: none */
};

/* What a key with key.shared has besides its learner. start, part and shared_score belong to the
 * fleet. */
struct svi_engine_stack {
    struct svi_key_stack *of;
    svs_learner *whole;                          /* of all samples; NULL: no memory for it */
    const struct svi_shared_score *shared_score; /* of the element at hand; NULL: nothing */
    /* Weights with which keys begin now; NULL: those of a first key. */
    const struct svi_stack_start *start;
    struct svi_stack_start *part; /* learns these; NULL: the key contributes nothing */
    int classes;                  /* known when the members scored the row of a late label */
};

struct svi_engine {
    struct svi_settings *s; /* of `shared` */
    struct svi_shared_settings *shared;
    const struct svi_engine_common *common;
    struct svi_engine_scratch *scratch; /* of the thread that calls it */
    struct svi_engine_off *off;         /* NULL: it owns all its stages */
    const char *label;
    uint64_t epoch;
    svi_sink *sink;
    void *user;
    svs_learner *learner;
    svi_bank *bank;                       /* method auto; else NULL */
    double *host_scores;                  /* max_classes scores of the host, where there is a bank */
    struct svi_engine_stack *stack;       /* a key with key.shared; else NULL */
    struct svi_bank_weights bank_weights; /* buffers for its published description */
    int linear;         /* member of the bank whose linear model was the best before the sample at hand */
    bool two_threads;   /* make a queue when novelty is first assessed */
    bool by_arrival;    /* `time` is the arrival of a sample, not a time stamp */
    bool keeps_model;   /* `last_model` is kept */
    bool out_of_memory; /* a refit or a step of the bank was lost for lack of memory */
    struct svi_refit_policy *refit;  /* in the background */
    struct svi_alert_stage *novelty; /* and its alerts */
    struct svi_novelty_queue *queue; /* to the thread that assesses novelty; NULL = none (yet) */
    struct svi_quality_stage quality_stage;
    struct svi_episodes episodes;
    struct svi_rules *rules;
    bool rules_follow; /* the rules match the columns, as far as the next two numbers show */
    int rules_names;   /* names of columns when they were matched */
    int rules_d;       /* columns then */
    int capacity_d; /* rows of this many columns fit all stages and all their names are known; -1: reserve */
    struct svi_schema schema;
    struct svi_columns columns; /* order of the arrays of producers that name their columns */
    uint8_t *gaps;   /* by column: the sample at hand lacks this value; allocated when first needed */
    double *carried; /* missing == carry: the last accepted value of each column, NAN = none; else NULL */
    struct svi_outliers *outliers; /* NULL: rows are taken unchanged */
    const char **names;            /* of the columns, for model events to point to */
    int name_capacity, name_count;
    double *means; /* of the features, for model events; max_features values, allocated when first needed */
    struct svi_bytes columns_of_model; /* key `schema` of a model event */

    double time;                      /* engine time, -DBL_MAX before the first sample */
    double event_ts;                  /* of the last sample: its ts, or its arrival */
    int64_t next_publish, next_score; /* value of `seen` at which they are due, -1 = never */
    uint64_t published_version;
    uint64_t seq[SVI_TOPIC_COUNT]; /* of the next event of each topic */

    struct svi_bytes last_model; /* encoded last model event; empty: none yet */

    int64_t kept[SVI_KEPT_COUNT];
    int64_t refused[SVS_CODE_COUNT];
    int64_t out_of_memory_before; /* refusals for lack of memory that do not count: before the state was
                                     loaded, or elsewhere */
};

/* The engine becomes one more user of *s. NULL: SVS_NO_MEMORY, SVS_SETTING. Owner: the caller. */
struct svi_engine *svi_engine_new(struct svi_shared_settings *s, const struct svi_engine_setup *setup,
                                  uint64_t epoch, svi_sink *sink, void *user, svs_error *err);

/* send_to: further events go to this sink. share_settings: uses other settings with the same values. */
void svi_engine_send_to(struct svi_engine *e, svi_sink *sink, void *user);
void svi_engine_share_settings(struct svi_engine *e, struct svi_shared_settings *s);

/* What the bank of all keys predicts for the next element, valid while the engine takes it; NULL:
 * nothing. */
static inline void svi_engine_receive_shared(struct svi_engine *e,
                                             const struct svi_shared_score *score) {
    if (e->stack)
        e->stack->shared_score = score;
}

/* The outcomes of the next elements that an engine takes with this scratch are collected in `asked` as well;
 * NULL: nowhere. It is complete after svi_engine_settle. The state does not depend on it. */
static inline void svi_engine_ask(struct svi_engine_scratch *s, struct svi_reply_scores *asked) {
    s->asked = asked;
}

/* Samples of the id to forget that the bank of all keys held. */
static inline int svi_engine_removed_elsewhere(const struct svi_engine *e) {
    return e->stack && e->stack->shared_score ? e->stack->shared_score->removed : 0;
}

/* The learner of all samples; NULL: none. */
static inline svs_learner *svi_engine_whole(const struct svi_engine *e) {
    return e->stack ? e->stack->whole : NULL;
}

/* ---- engine_archive.c: its state as sections */

struct svi_checkpoint;

/* save appends the sections to *c; load reads them into a new engine. After a failure of load (SVS_DAMAGED,
 * SVS_NO_MEMORY) the engine may only be freed. */
svs_code svi_engine_save(struct svi_engine *e, struct svi_checkpoint *c, svs_error *err);
svs_code svi_engine_load(struct svi_engine *e, const struct svi_checkpoint *c, svs_error *err);
size_t svi_engine_size(struct svi_engine *e); /* bytes of all sections now */

/* The same as packed bytes, appended to `out`: the hashed sections first, *hashed bytes. unpack reads them
 * into a new engine; after a failure (SVS_DAMAGED, SVS_NO_MEMORY) it may only be freed. */
svs_code svi_engine_pack(struct svi_engine *e, struct svi_bytes *out, size_t *hashed, svs_error *err);
svs_code svi_engine_unpack(struct svi_engine *e, const uint8_t *bytes, size_t size, svs_error *err);

/* ---- engine.c: input */

/* Checks that the columns named by a message are those of the engine. Called before the number of the message
 * is used up, so that the producer can send it again with corrected columns. */
svs_code svi_engine_match_columns(struct svi_engine *e, const struct svi_envelope *env, svs_error *err);

/* take: decodes and applies the next element. pass: skips an element that was applied before. refuse:
 * publishes the refusal of an element, or with `whole` of the message; `code` overrides err->code. The last
 * two add to r->scores, and take to what svi_engine_ask has set. */
svs_code svi_engine_take_element(struct svi_engine *e, struct svi_envelope *env, double now, svs_error *err);
void svi_engine_pass_element(struct svi_engine *e, struct svi_envelope *env, struct svi_receipt *r);
void svi_engine_refuse_input(struct svi_engine *e, const struct svi_envelope *env, bool whole, svs_code code,
                             const svs_error *err, double now, struct svi_receipt *r);

/* Always SVS_BAD_KEY: the input names a key, but the stream has none. */
svs_code svi_engine_fail_keyless(svs_error *err);

/* Carries out a command about this engine alone: forget, label, alert, reset, prune, refit, load. *count: as
 * in svi_engine_forget; *s: the settings of the process. */
svs_code svi_engine_command(struct svi_engine *e, const struct svi_command *c, struct svi_settings *s,
                            double now, int *count, svs_error *err);

/* ---- output */

/* count: fills in the counters of this engine. quality, further_figures: the figures of its quality, valid
 * until the next call, and those figures with all others; they return the number. publish_stats: publishes
 * these figures with the table of classes. */
void svi_engine_count(struct svi_engine *e, struct svi_counters *c);
int svi_engine_quality(struct svi_engine *e, const struct svi_figure **figures);
int svi_engine_further_figures(struct svi_engine *e, struct svi_figure *out);
void svi_engine_publish_stats(struct svi_engine *e, const struct svi_figure *figures, int count, double now);

/* Closes all open alerts of every kind; `why` is the reason published. */
void svi_engine_end_alerts(struct svi_engine *e, const char *why);

/* Beginning of lines for people: the stream (as svi_alert_stream), and a label (NULL is fine). The result is
 * `out` if both are there, else one of the arguments. */
#define SVI_SUBJECT (SVI_STREAM_MAX + SVS_KEY_MAX + 2)
const char *svi_subject(const char *stream, const char *label, char out[SVI_SUBJECT]);
const char *svi_engine_subject(const struct svi_engine *e, char out[SVI_SUBJECT]);

/* The number of the last row in the stream where lines about it count rows: rows have no times, and their
 * arrival means nothing (alert.interval). 0: lines go by the clock. */
int64_t svi_engine_row_in_lines(const struct svi_engine *e);

/* The arrival clock was moved by `step` and shows `now` (svi_stream_move_clock). */
void svi_engine_move_clock(struct svi_engine *e, double step, double now);

/* Counts a refusal or a remark and publishes it; `bytes`: the refused input, NULL = none. */
void svi_publish_error(struct svi_engine *e, svs_code code, const char *reason, const void *bytes,
                       size_t length, double now);

#endif
