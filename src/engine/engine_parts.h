/* engine_parts.h: what an engine consists of, for its own sources and for the room `fleet`, which makes
 * streams of engines. */
#ifndef SVI_ENGINE_PARTS_H
#define SVI_ENGINE_PARTS_H

#include "alerts/alert_report.h"
#include "alerts/rules.h"
#include "base/archive.h"
#include "bank/bank.h"
#include "bank/describe.h"
#include "engine/engine.h"
#include "refit/refit_policy.h"
#include "engine/novelty_queue.h"
#include "engine/outliers.h"
#include "quality/quality_stage.h"
#include "engine/counters.h"
#include "wire/columns.h"

#define SVI_GAUGES_MAX 24

/* What holds for all engines of a stream, by the word of its owner, who changes it between two calls. */
struct svi_engine_common {
    bool keys_allowed;        /* elements may name a key, by which their engine was found */
    bool sink_numbers_alerts; /* alert events have no number of their own */
    bool muted;     /* nobody gets what goes to the sink: what is made up for readers alone is left out */
    bool score_all; /* every accepted sample has a score event, whatever the setting `scores` says */
    int64_t mark;   /* of score events: which row of an input they are of */
    struct svi_units *units; /* of their columns; NULL: none are kept */
    double policies;         /* engines that share alert.budget; 0: it is not shared */
    double asked;            /* the factor of their levels */
};

/* Settings, and how many have them: the engines of a stream share them. */
struct svi_shared_settings {
    struct svi_settings s;
    int64_t users;
};

/* A copy with one user; NULL: SVS_NO_MEMORY. Another user; one user less, and *s is NULL then. */
struct svi_shared_settings *svi_shared_settings_new(const struct svi_settings *s, svs_error *err);
struct svi_shared_settings *svi_shared_settings_use(struct svi_shared_settings *s);
void svi_shared_settings_leave(struct svi_shared_settings **s);

/* What an engine needs while it is called and not between two calls: those of a stream share it, one for each
 * thread. */
struct svi_engine_scratch {
    struct svi_learner_scratch *learner; /* NULL: those who use it have their own */
    struct svi_figure quality[SVI_METRICS_FIGURES + SVI_PROBABILITY_FIGURES];
    struct svi_member_scores said; /* by the members, of the sample at hand */
    struct svi_shared_scratch novelty;
    struct svi_shape_scratch row; /* of the sample at hand; empty: those who use it have their own */
};

/* For engines with these settings, of keys or not. NULL: SVS_NO_MEMORY. */
struct svi_engine_scratch *svi_engine_scratch_new(const struct svi_settings *s, svs_error *err);
void svi_engine_scratch_free(struct svi_engine_scratch **s);

/* The engine of a key, which nobody is calling, goes on with this one: nobody may be using the one that it
 * leaves, unless learner and novelty rest. SVS_NO_MEMORY: it goes on with that. */
svs_code svi_engine_use_scratch(struct svi_engine *e, struct svi_engine_scratch *s, svs_error *err);

/* In the place of stages that are off, of one of many engines: what is written there counts for nothing. */
struct svi_engine_off {
    struct svi_alert_stage novelty;
    struct svi_rules rules;
    struct svi_refit_policy refit;
};

/* What an engine is made with besides its settings; it belongs to its owner, and outlives it. */
struct svi_engine_setup {
    const struct svi_engine_common *common;
    struct svi_engine_scratch *scratch; /* of the thread that calls it */
    struct svi_engine_off *off; /* of one of many, whose model is exact at any time and which has no refits;
                                   NULL: each stage is its own */
    const char *label;          /* what lines for people name after the stream; NULL or "": nothing */
    int columns;                /* that it will probably have */
};

/* What an engine counts itself; the other counters are found in its parts when figures are asked for. */
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

/* Each alert that opens gets the next number; so do its updates and its close. */
struct svi_episodes {
    int64_t count;            /* so far */
    int64_t novelty, quality; /* the last ones */
};

struct svi_engine {
    struct svi_settings *s; /* of `shared` */
    struct svi_shared_settings *shared;
    const struct svi_engine_common *common;
    struct svi_engine_scratch *scratch; /* of the thread that calls it */
    struct svi_engine_off *off;         /* NULL: it is the only engine of its stream */
    const char *label;
    uint64_t epoch;
    svi_sink *sink;
    void *user;
    svs_learner *learner;
    svi_bank *bank;                       /* method auto; else NULL */
    double *host_scores;                  /* room for the scores of the host, where there is a bank */
    struct svi_bank_weights bank_weights; /* of what is published of it */
    int linear;         /* the member of it whose linear model was the best before the sample at hand */
    bool two_threads;   /* there is to be a queue, when novelty is first judged */
    bool by_arrival;    /* `time` is the arrival of a sample, not the time stamp of one */
    bool keeps_model;   /* `last_model` is kept */
    bool out_of_memory; /* a refit was not taken over for want of memory */
    struct svi_refit_policy *refit;  /* in the background */
    struct svi_alert_stage *novelty; /* and alerts */
    struct svi_novelty_queue *queue; /* to the thread that judges it; NULL = there is none (yet) */
    struct svi_quality_stage quality_stage;
    struct svi_episodes episodes;
    struct svi_rules *rules;
    bool rules_follow; /* they are of the columns as they are, as far as their number tells, and */
    int rules_names;   /* with that number of names */
    int rules_d;
    int capacity_d; /* for rows of that many columns all room is made and all names are known; -1: ask */
    struct svi_schema schema;
    struct svi_columns columns; /* how the arrays of producers that name their columns are ordered */
    uint8_t *gaps;              /* by column: where the sample in hand has no value; made when first needed */
    double *carried; /* missing == carry: the last accepted value of each column, NAN = none; else NULL */
    struct svi_outliers *outliers; /* NULL: rows are taken as they come */
    const char **names;            /* of the columns, as a model event points to them */
    int name_capacity, name_count;
    double *means; /* of the features, as a model event carries them; room for max_features */
    struct svi_bytes columns_of_model; /* its key `schema` */

    double time;                      /* engine time, -DBL_MAX before the first sample */
    double event_ts;                  /* of the last sample: its own ts, or its arrival */
    int64_t next_publish, next_score; /* `seen` at which they are due, -1 = never */
    uint64_t published_version;
    uint64_t seq[SVI_TOPIC_COUNT]; /* of the next event */

    struct svi_bytes last_model; /* the bytes of the last model event, as it went out; empty: none did */

    int64_t kept[SVI_KEPT_COUNT];
    int64_t refused[SVS_CODE_COUNT];
    int64_t out_of_memory_before; /* refusals for want of memory when it was unmuted, and those of others */
};

/* With settings of which it becomes one more user. NULL on failure. */
struct svi_engine *svi_engine_new(struct svi_shared_settings *s, const struct svi_engine_setup *setup,
                                  uint64_t epoch, svi_sink *sink, void *user, svs_error *err);

/* Events go there from here on; other settings, which say the same. */
void svi_engine_send_to(struct svi_engine *e, svi_sink *sink, void *user);
void svi_engine_share_settings(struct svi_engine *e, struct svi_shared_settings *s);

/* ---- engine_archive.c: its state as sections */

struct svi_checkpoint;

/* Appends them to *c; loads those that it finds there. SVS_DAMAGED, SVS_NO_MEMORY: it is fit to be freed. */
svs_code svi_engine_save(struct svi_engine *e, struct svi_checkpoint *c, svs_error *err);
svs_code svi_engine_load(struct svi_engine *e, const struct svi_checkpoint *c, svs_error *err);
size_t svi_engine_size(struct svi_engine *e); /* bytes that they take now */

/* The same as bytes, appended to `out`: first what is hashed, *hashed bytes. Into a new engine: SVS_DAMAGED,
 * SVS_NO_MEMORY: it is fit to be freed. */
svs_code svi_engine_pack(struct svi_engine *e, struct svi_bytes *out, size_t *hashed, svs_error *err);
svs_code svi_engine_unpack(struct svi_engine *e, const uint8_t *bytes, size_t size, svs_error *err);

/* ---- engine.c: what comes in */

/* The columns that a message names are those of the engine: before its number is used up, for it may come
 * again with others. */
svs_code svi_engine_match_columns(struct svi_engine *e, const struct svi_envelope *env, svs_error *err);

/* One element, decoded and applied; one that was taken before is passed over; one is refused, or the message
 * as a whole. */
svs_code svi_engine_take_element(struct svi_engine *e, struct svi_envelope *env, double now, svs_error *err);
void svi_engine_pass_element(struct svi_engine *e, struct svi_envelope *env, struct svi_receipt *r);
void svi_engine_refuse_input(struct svi_engine *e, const struct svi_envelope *env, bool whole, svs_code code,
                             const svs_error *err, double now, struct svi_receipt *r);

/* SVS_BAD_KEY. */
svs_code svi_engine_fail_keyless(svs_error *err);

/* A command about this engine alone: forget, label, alert, reset, prune, refit, load. */
svs_code svi_engine_command(struct svi_engine *e, const struct svi_command *c, struct svi_settings *s,
                            double now, int *count, svs_error *err);

/* ---- what goes out */

/* What it counts, into its places; its quality, which is valid until the next call, and all other figures of
 * it, for the end of a list: how many. The stats of it go out. */
void svi_engine_count(struct svi_engine *e, struct svi_counters *c);
int svi_engine_quality(struct svi_engine *e, const struct svi_figure **figures);
int svi_engine_further_figures(struct svi_engine *e, struct svi_figure *out);
void svi_engine_publish_stats(struct svi_engine *e, const struct svi_figure *figures, int count, double now);

/* All open alerts end, of whatever kind, and say why. */
void svi_engine_end_alerts(struct svi_engine *e, const char *why);

/* What lines for people begin with: the stream, and a label (NULL is fine). */
#define SVI_SUBJECT (SVI_STREAM_MAX + SVS_KEY_MAX + 2)
const char *svi_subject(const char *stream, const char *label, char out[SVI_SUBJECT]);
const char *svi_engine_subject(const struct svi_engine *e, char out[SVI_SUBJECT]);

/* The arrival clock was moved (svi_stream_move_clock). */
void svi_engine_move_clock(struct svi_engine *e, double step, double now);

/* Counts a refusal and publishes it; `bytes`: what was refused. */
void svi_publish_error(struct svi_engine *e, svs_code code, const char *reason, const void *bytes,
                       size_t length, double now);

#endif
