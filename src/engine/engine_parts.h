/* engine_parts.h: what an engine consists of, for its own sources and for the room `keyed`, which gives a
 * stream with keys an engine for each and comes back to it by the table of struct svi_keyed_calls. */
#ifndef SVI_ENGINE_PARTS_H
#define SVI_ENGINE_PARTS_H

#include "alerts/novelty_report.h"
#include "alerts/rules.h"
#include "base/archive.h"
#include "bank/bank.h"
#include "bank/describe.h"
#include "engine/engine.h"
#include "refit/refit_policy.h"
#include "stages/novelty_queue.h"
#include "stages/quality_stage.h"
#include "stages/sources.h"
#include "stats/counters.h"
#include "stats/metrics.h"
#include "wire/columns.h"

struct svi_crew;
struct svi_fleet;
struct svi_key_entry;
struct svi_state_dir;
struct svi_stream;

#define SVI_GAUGES_MAX    24
#define SVI_FLEET_FIGURES 5
#define SVI_FIGURES_MAX                                                                                      \
    (SVI_COUNTERS_FIGURES + SVI_METRICS_FIGURES + SVI_QUALITY_FIGURES + SVI_PROBABILITY_FIGURES +            \
     SVI_GAUGES_MAX + 3 + SVI_FLEET_FIGURES)

#define SVI_FLEET_AHEAD 16 /* elements */

/* What reaches all keys: each at its next touch, whether it is in memory or not, so that nothing depends on
 * that. The numbers are in the states of users. */
enum svi_note_kind {
    SVI_NOTE_CONFIG = 0, /* other settings */
    SVI_NOTE_CLOCK,      /* the arrival clock was moved by `step`, and shows `now` */
    SVI_NOTE_BEGIN,      /* a process began at `now` */
    SVI_NOTE_REBUILD     /* the bits of the model were made by another program or instruction set */
};

/* What a checkpoint has of all keys, each in a section. */
enum svi_keyed_section {
    SVI_KEYED_GROUPS, /* alerts of one cause */
    SVI_KEYED_ONCE,   /* what there is once */
    SVI_KEYED_PRIOR,  /* what they hold together */
    SVI_KEYED_TOTALS, /* what they came to */
    SVI_KEYED_STATES, /* each of them, or ... */
    SVI_KEYED_FILES,  /* ... the list of the files that they are in */
    SVI_KEYED_SUM     /* of the hashes of the states, which were archived before it */
};

/* What a stream does with its keys: a table of the room above (keyed/keyed_calls.c), called where there is a
 * fleet. `root`: of the stream; `e`: of any of its engines. */
struct svi_keyed_calls {
    /* A root that is new gets its fleet: SVS_NO_MEMORY, and `end` follows. All keys go, with their threads.
     */
    svs_code (*begin)(struct svi_engine *root, svs_error *err);
    void (*end)(struct svi_stream *of);
    /* Nobody is at work after it, and all events are out. */
    void (*settle)(struct svi_engine *e);
    /* The engine of a key that there is, until the next call about another: SVS_UNKNOWN_KEY and others. */
    struct svi_engine *(*named)(struct svi_engine *root, const char *key, svs_error *err);
    /* Likewise, when what has reached all keys has reached it; *entry: for `done`, after it was changed. */
    struct svi_engine *(*reach)(struct svi_engine *root, const char *key, struct svi_key_entry **entry,
                                svs_error *err);
    void (*done)(struct svi_engine *root, struct svi_key_entry *entry, bool sample, double now);
    /* svi_learner_verify of each key: *difference becomes the largest, if it was smaller. */
    svs_code (*verify)(struct svi_engine *root, double *difference, svs_error *err);
    /* A key goes, with its engine: SVS_MISSING_KEY, SVS_UNKNOWN_KEY and others. */
    svs_code (*drop)(struct svi_engine *root, const char *key, svs_error *err);
    /* One element of a message, and one row of text: of whichever key. */
    void (*take_element)(struct svi_engine *root, struct svi_envelope *env, double now,
                         struct svi_receipt *r);
    svs_code (*take_row)(struct svi_engine *root, struct svi_message *m, const void *bytes, size_t length,
                         double now, svs_error *err);
    /* The keys of the next SVI_FLEET_AHEAD elements come into the caches. */
    void (*look_ahead)(struct svi_engine *root, const struct svi_envelope *env);
    /* Keys beyond keys.memory leave it: no engine of a key that a caller has is valid after it. */
    void (*evict)(struct svi_engine *root);
    /* Something reaches all keys, with the settings that the root has; room for it, after which it cannot
     * fail: SVS_NO_MEMORY. */
    svs_code (*reserve_note)(struct svi_engine *root, svs_error *err);
    void (*note)(struct svi_engine *root, enum svi_note_kind kind, double step, double now);
    /* An input comes at this time of arrival; when the first key falls due, INFINITY: none will; those that
     * are due hear of it; all sources have gone. */
    void (*arrive)(struct svi_engine *root, double now);
    double (*deadline)(const struct svi_engine *root);
    void (*pass)(struct svi_engine *root, double now);
    void (*rest)(struct svi_engine *root);
    /* Before the level of an alert is set: the engine's share of alert.budget is that of now. */
    void (*share)(struct svi_engine *e);
    /* An alert event of an engine goes out, or becomes part of one of another key. */
    void (*tell_alert)(struct svi_engine *e, const struct svi_event *event);
    /* Samples of all keys but "", and refusals; why one did not come back for what it was to take (code
     * SVS_OK: each did). */
    int64_t (*seen)(const struct svi_engine *root);
    int64_t (*refused)(const struct svi_engine *root);
    const svs_error *(*lost)(const struct svi_engine *e);
    /* What is counted becomes that of all keys, in the figures of svi_counters_figures; and figures that only
     * a stream with keys has, SVI_FLEET_FIGURES at most: how many. Likewise of svi_engine_progress. */
    int (*sum_up)(const struct svi_engine *root, struct svi_figure *counted, struct svi_figure *further);
    void (*progress)(const struct svi_engine *root, struct svi_engine_progress *p);
    /* One section of a checkpoint; is it to be there; are states in files; those of a checkpoint that is
     * loaded are in this directory; the sum of all hashes as they are now. */
    void (*archive)(struct svi_archive *a, struct svi_engine *root, enum svi_keyed_section section);
    bool (*has)(const struct svi_engine *root, enum svi_keyed_section section);
    bool (*in_files)(const struct svi_engine *root);
    void (*load_from)(struct svi_engine *root, const struct svi_state_dir *dir);
    svs_code (*add_up)(struct svi_engine *root, svs_error *err);
};

/* Settings, and how many engines have them: those of the keys of a stream share them. */
struct svi_held_settings {
    struct svi_settings s;
    int64_t users;
};

/* What an engine needs while it is called and not between two calls: those of a stream share it, one for each
 * thread. */
struct svi_engine_scratch {
    struct svi_learner_scratch *learner; /* NULL: those who use it have their own */
    struct svi_figure quality[SVI_METRICS_FIGURES + SVI_PROBABILITY_FIGURES];
    struct svi_members_said said; /* by the members, of the sample at hand */
    struct svi_novelty_rooms novelty;
    struct svi_shape_room row; /* of the sample at hand; empty: those who use it have their own */
};

/* For engines with these settings, of keys or not. NULL: SVS_NO_MEMORY. */
struct svi_engine_scratch *svi_engine_scratch_new(const struct svi_settings *s, svs_error *err);
void svi_engine_scratch_free(struct svi_engine_scratch **s);

/* The engine of a key, which nobody is calling, goes on with this one: nobody may be using the one that it
 * leaves, unless it rests. SVS_NO_MEMORY: it goes on with that. */
svs_code svi_engine_use_scratch(struct svi_engine *e, struct svi_engine_scratch *s, svs_error *err);
void svi_engine_rest(struct svi_engine *e);

/* What there is once for a stream, however many keys it has. */
struct svi_stream {
    struct svi_engine *root;             /* of the samples without a key */
    struct svi_crew *crew;               /* threads for the keys; NULL: there are none (yet) */
    struct svi_fleet *fleet;             /* of the others; NULL: the stream has no keys */
    const struct svi_keyed_calls *keyed; /* what it does where there is one; NULL: there is to be none */
    uint64_t epoch;
    svi_sink *sink;
    void *user;
    size_t name_length;
    svi_sources *sources;
    bool by_engine_time;         /* svi_engine_publish_by_engine_time */
    int64_t mark;                /* of score events */
    bool scores_all;             /* svi_engine_score_all */
    bool later;                  /* svi_engine_apply_later may leave elements to other threads */
    struct svi_receipt *receipt; /* of the message in hand, or NULL */
    bool muted;                  /* events are numbered, not sent */
    unsigned encoded;            /* topics of which events of other threads have a payload: a bit each */
    bool gaps_allowed;           /* a source may skip numbers once after each loss: they are lost */
    uint64_t losses;
    uint64_t fsync_generation,
        fsync_generation_durable;  /* of the disk: the present one, the last one that is on it */
    double kept_share, kept_fixed; /* svi_engine_set_kept_memory */
    double started;                /* arrival clock at the first call, NAN before */
    double rate_since;             /* arrival clock at the last stats */
    int64_t rate_seen;
    double rate;                  /* samples a second, smoothed; NAN: not known yet */
    struct svi_counters counters; /* of the engine whose figures were asked for last */
    struct svi_figure gauges[SVI_GAUGES_MAX];
    int gauge_count;
    struct svi_figure figures[SVI_FIGURES_MAX];
    int columns;                        /* of the key that was the last to begin; 0: none has */
    struct svi_engine_scratch *scratch; /* of its own thread */
    struct svi_novelty_stage
        no_novelty; /* of each key where it is off: what is written there counts for nothing */
    struct svi_rules no_rules;
    struct svi_refit_policy no_refit; /* likewise */
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
    SVI_KEPT_PUBLISHED_MODELS,
    SVI_KEPT_PUBLISHED_SCORES,
    SVI_KEPT_COUNT
};

struct svi_engine {
    struct svi_settings *s; /* of a struct svi_held_settings */
    struct svi_stream *of;
    struct svi_engine_scratch *scratch; /* of the thread that calls it */
    const char *key;                    /* "" of the root; NULL: the stream has no keys */
    struct svi_bytes *recorded, *room;  /* where a thread of its own keeps its events, and its room for
                                           payloads; NULL: they are sent */
    svs_learner *learner;
    svi_bank *bank;                       /* method auto; else NULL */
    double *host_scores;                  /* room for the scores of the host, where there is a bank */
    struct svi_bank_weights bank_weights; /* of what is published of it */
    int linear; /* the member of it whose linear model was the best before the sample at hand */
    svi_metrics *metrics;
    struct svi_refit_policy *refit;    /* in the background */
    struct svi_novelty_stage *novelty; /* and alerts */
    struct svi_novelty_queue *queue;   /* to the thread that judges it; NULL = there is none (yet) */
    bool two_threads;                  /* there is to be one, when novelty is first judged */
    bool open;                         /* svi_engine_leave_open */
    struct svi_quality_stage quality_stage;
    struct svi_rules *rules;
    uint64_t again;    /* added to the epoch of its events: of a key (fleet/key_table.h) */
    bool unplaced;     /* its place in the prior of all keys is not known */
    bool rules_follow; /* they are of the columns as they are, as far as their number tells, and */
    int rules_names;   /* with that number of names */
    int rules_d;
    struct svi_schema schema;
    struct svi_columns columns; /* how the arrays of producers that name their columns are ordered */
    uint8_t *gaps;              /* by column: where the sample in hand has no value; made when first needed */
    double *carried;    /* missing == carry: the last accepted value of each column, NAN = none; else NULL */
    const char **names; /* of the columns, as a model event points to them */
    int name_room, name_count;
    double *means; /* of the features, as a model event carries them; room for max_features */
    struct svi_bytes columns_of_model; /* its key `schema` */

    double time;                      /* engine time, -DBL_MAX before the first sample */
    bool by_arrival;                  /* it is the arrival of a sample, not the time stamp of one */
    double event_ts;                  /* of the last sample: its own ts, or its arrival */
    int64_t next_publish, next_score; /* `seen` at which they are due, -1 = never */
    double published_time;            /* engine time */
    uint64_t published_version;
    uint64_t seq[SVI_TOPIC_COUNT]; /* of the next event */

    bool keeps_model;            /* the bytes of the last model event, numbered as it went out: */
    struct svi_bytes last_model; /* empty: none did */

    int64_t kept[SVI_KEPT_COUNT];
    int64_t refused[SVS_CODE_COUNT];
    int64_t out_of_memory_before; /* refusals for want of memory when it was unmuted, and those of others */
    bool out_of_memory;           /* a refit was not taken over for want of memory */
};

/* A copy with one user; NULL: SVS_NO_MEMORY. Another user; one user less, and *s is NULL then. */
struct svi_settings *svi_held_settings_new(const struct svi_settings *s, svs_error *err);
struct svi_settings *svi_held_settings_use(struct svi_settings *s);
void svi_held_settings_leave(struct svi_settings **s);

static inline bool svi_engine_is_root(const struct svi_engine *e) {
    return e->of->root == e;
}

/* The engine of a key, with the stream of its root and settings of a struct svi_held_settings. NULL: codes of
 * svi_engine_new_with. */
struct svi_engine *svi_engine_new_key(struct svi_engine *root, struct svi_settings *s, const char *key,
                                      svs_error *err);

/* ---- engine_archive.c: a checkpoint in two parts: all that is there at its mark; the states of keys, or the
 * list of their files, and the sum of their hashes. */
svs_code svi_engine_save_early(struct svi_engine *e, struct svi_checkpoint *c, svs_error *err);
svs_code svi_engine_save_late(struct svi_engine *e, struct svi_checkpoint *c, svs_error *err);

/* The state of one key as bytes, appended to `out`: first what is hashed, *hashed
 * bytes. Into an engine of svi_engine_new_key: SVS_DAMAGED, SVS_NO_MEMORY: it is fit to be freed. */
svs_code svi_engine_pack(struct svi_engine *e, struct svi_bytes *out, size_t *hashed, svs_error *err);
svs_code svi_engine_unpack(struct svi_engine *e, const uint8_t *bytes, size_t size, svs_error *err);

/* ---- engine.c: one row, as svi_engine_message, of this engine; one element, decoded and applied */
svs_code svi_engine_row(struct svi_engine *e, struct svi_message *m, const void *bytes, size_t length,
                        double now, svs_error *err);
svs_code svi_engine_take_element(struct svi_engine *e, struct svi_envelope *env, double now, svs_error *err);
void svi_engine_refuse_element(struct svi_engine *e, const struct svi_envelope *env, svs_code code,
                               const svs_error *err, double now, struct svi_receipt *r);

/* All open alerts end, of whatever kind, and say why. */
void svi_engine_end_alerts(struct svi_engine *e, const char *why);

/* Time passes for this engine alone. */
void svi_engine_rules_pass(struct svi_engine *e, double now);

/* What lines for people begin with: the stream, and its key. */
#define SVI_SUBJECT (SVI_STREAM_MAX + SVS_KEY_MAX + 2)
const char *svi_engine_subject(const struct svi_engine *e, char out[SVI_SUBJECT]);

/* The arrival clock was moved (svi_engine_move_clock), for one engine. */
void svi_engine_move_own_clock(struct svi_engine *e, double step, double now);

/* Sends an event that has its stream, epoch and seq. */
void svi_send(struct svi_engine *e, const struct svi_event *event);

/* Counts a refusal and publishes it; `bytes`: what was refused. */
void svi_publish_error(struct svi_engine *e, svs_code code, const char *reason, const void *bytes,
                       size_t length, double now);

#endif
