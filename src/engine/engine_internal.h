/* What the engine consists of, for its own sources alone. */
#ifndef SVI_ENGINE_INTERNAL_H
#define SVI_ENGINE_INTERNAL_H

#include "alerts/budget_pool.h"
#include "alerts/rules.h"
#include "base/archive.h"
#include "bank/bank.h"
#include "bank/describe.h"
#include "refit/refit_policy.h"
#include "stats/counters.h"
#include "engine/engine.h"
#include "fleet/alert_groups.h"
#include "fleet/key_cache.h"
#include "fleet/key_queue.h"
#include "fleet/key_table.h"
#include "store/key_files.h"
#include "stats/metrics.h"
#include "stages/sources.h"
#include "stages/novelty_queue.h"
#include "alerts/novelty_report.h"
#include "stages/quality_stage.h"
#include "wire/columns.h"

#define SVI_GAUGES_MAX    24
#define SVI_FLEET_FIGURES 5
#define SVI_FIGURES_MAX                                                                                      \
    (SVI_COUNTERS_FIGURES + SVI_METRICS_FIGURES + SVI_QUALITY_FIGURES + SVI_PROBABILITY_FIGURES +            \
     SVI_GAUGES_MAX + 3 + SVI_FLEET_FIGURES)

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
    struct svi_engine *root; /* of the samples without a key */
    struct svi_crew *crew;   /* threads for the keys; NULL: there are none (yet) */
    struct svi_fleet *fleet; /* of the others; NULL: the stream has no keys */
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
    int columns;                         /* of the key that was the last to begin; 0: none has */
    struct svi_engine_scratch *scratch;  /* of its own thread */
    struct svi_novelty_stage no_novelty; /* of each key where it is off: nothing changes them */
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
    bool unplaced;     /* svi_engine_place failed */
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

/* Puts something in the place of missing values, as the setting or the message says. SVS_MISSING_VALUE,
 * SVS_NO_MEMORY. */
svs_code svi_engine_fill_missing(struct svi_engine *e, struct svi_message *m, svs_error *err);

void svi_engine_count_missing(struct svi_engine *e, const struct svi_message *m);

/* Columns that are new, and features that change hands in this sample, reach all that holds samples;
 * nothing of it changes what is known so far. */
svs_code svi_engine_grow(struct svi_engine *e, const struct svi_message *m, svs_error *err);

/* The values of categories in this sample are that to novelty. */
void svi_engine_tell_categories(struct svi_engine *e);

/* The columns of the setting `context` are that to novelty; names may come after their columns. */
void svi_engine_tell_context(struct svi_engine *e, int d);

/* A novelty stage and rules of its own, unless they are off by *s; *made: not to be freed twice. A key has
 * those of its stream then. SVS_NO_MEMORY. */
svs_code svi_engine_new_novelty(const struct svi_engine *e, const struct svi_settings *s,
                                struct svi_novelty_stage **made, svs_error *err);
svs_code svi_engine_new_rules(const struct svi_engine *e, const struct svi_settings *s,
                              struct svi_rules **made, svs_error *err);
void svi_engine_free_novelty(struct svi_engine *e);
void svi_engine_free_rules(struct svi_engine *e);

/* NULL: SVS_NO_MEMORY. */
svi_metrics *svi_engine_new_metrics(const struct svi_settings *s, svs_error *err);

/* What holds samples has changed: the schema goes by it. */
void svi_engine_note_held(struct svi_engine *e);

/* The last values of the features, none known. SVS_NO_MEMORY. */
svs_code svi_engine_new_carried(double **carried, int max_features, svs_error *err);

/* ---- engine_bank.c: the bank of `method auto` */

/* A bank for a host with these options and d features. NULL: SVS_NO_MEMORY. */
svi_bank *svi_engine_make_bank(const struct svi_settings *s, const svs_options *host, int d, svs_error *err);
double svi_engine_bank_memory(const struct svi_settings *s, const svs_options *host, int d, int classes);

/* After the host has taken a sample: the scores become those of the bank, which learns it if it has a label.
 */
void svi_engine_bank_step(struct svi_engine *e, const svs_sample *s, double time, svs_step *step);

/* Around a late label: what the members say of its sample; and, once the host has learned it, they learn it
 * too. */
void svi_engine_bank_before_label(struct svi_engine *e, svs_value id);
void svi_engine_bank_label(struct svi_engine *e, svs_value id, svs_value y, double time, int label);

/* A host and a bank for these settings, made from the samples that are held; `calibrator` (NULL is fine) is
 * taught what the bank says of them. Codes of svi_learner_prepare; after a failure the caller frees what was
 * made. */
svs_code svi_engine_teach_bank(const struct svi_engine *e, const struct svi_settings *s,
                               const svs_options *host, svi_calibrator *calibrator, svs_learner **fresh,
                               svi_bank **bank, svs_error *err);

/* The bank gets the features that the host has. Without memory the engine is out of it, and goes on. */
void svi_engine_bank_follow(struct svi_engine *e);

/* The features and classes that are flagged get other indices, as those of the host do (svi_learner_prune):
 * first an empty bank for them, which may fail (NULL without a bank); then, with the host as it is after it,
 * this takes the place of the bank and is taught what is held. */
svs_code svi_engine_spare_bank(const struct svi_engine *e, const bool *features, const bool *classes,
                               svi_bank **spare, svs_error *err);
void svi_engine_replace_bank(struct svi_engine *e, svi_bank **spare);

/* A feature is never scaled (svs_learner_unscaled): the host and the bank follow. */
void svi_engine_leave_unscaled(struct svi_engine *e, int feature);

/* What the label says of the scores of the best linear member, which are published with its model. */
void svi_engine_bank_calibrate(struct svi_engine *e, int label);

/* The bank's scores of a row; nothing changes. */
void svi_engine_bank_peek(struct svi_engine *e, const double *x, double *scores);

/* What members said of the sample at hand. False: it is not asked for, or there is no bank. */
bool svi_engine_bank_said(const struct svi_engine *e, struct svi_members_said *said);

/* The model of the best linear member. */
svs_code svi_engine_bank_model(struct svi_engine *e, svs_model *m, svs_error *err);

/* ---- engine_fleet.c: an engine for each key */

#define SVI_FLEET_COUPLE 1024 /* elements; at first after fewer */

/* What reaches all keys: each at its next touch, whether it is in memory or not, so that nothing depends on
 * that. The numbers are in the states of users. */
enum svi_note_kind {
    SVI_NOTE_CONFIG = 0, /* other settings */
    SVI_NOTE_CLOCK,      /* the arrival clock was moved by `step`, and shows `now` */
    SVI_NOTE_BEGIN,      /* a process began at `now` */
    SVI_NOTE_REBUILD     /* the bits of the model were made by another program or instruction set */
};

struct svi_note {
    enum svi_note_kind kind;
    double step, now;
    struct svi_settings *s; /* from it on; NULL where no key needs it: of a struct svi_held_settings */
    int64_t keys;           /* of which it is the last that they know of */
};

/* Hashes of keys, added up as numbers of 128 bits. */
struct svi_key_sum {
    uint64_t low, high;
};

struct svi_key_list {
    struct svi_key_entry **at; /* NULL: it is not in it any more */
    size_t count, room;
};

/* Keys that are no more, as records. */
struct svi_keys_gone {
    struct svi_bytes records;
    struct svi_key_sum sum; /* of the hashes they had */
};

/* The keys in files beside the checkpoints (engine_fleet_keep.c). */
struct svi_fleet_kept {
    const struct svi_state_dir *from;     /* of a checkpoint that is loaded */
    svi_key_files *files;                 /* NULL: there are none */
    bool on;                              /* and changes are written there */
    bool apart;                           /* a checkpoint has the list of files, not the states */
    bool saving;                          /* what is pending is being written */
    svs_code failed;                      /* it could not be */
    uint32_t generation;                  /* of changes: grows with each checkpoint */
    struct svi_key_list changed, pending; /* since the last one; those that are to be written for it */
    struct svi_keys_gone gone, going;     /* likewise */
    size_t next;                          /* of those pending */
    struct svi_key_sum sum;               /* of the records that count */
    uint64_t alive;                       /* bytes of these */
    uint64_t stale;                       /* of keys that have changed, or are pending */
    bool tidying;                         /* the oldest file is written again */
    uint64_t tidied;                      /* bytes of it */
};

/* What all keys but "" came to, those that went too. */
struct svi_fleet_total {
    int64_t labelled, refused, judged, right, alerts;
    int64_t open;   /* of the keys that there are */
    double squares; /* of errors */
};

struct svi_fleet {
    svi_key_table *table;
    int64_t seen; /* samples of all keys but "" */
    struct svi_fleet_total total;
    int64_t taken;               /* elements and rows that came, of all keys, refused ones too */
    uint64_t begun;              /* keys so far */
    uint64_t rests;              /* times that all sources had gone */
    struct svi_key_queue queue;  /* of those that time alone will make something of */
    int64_t desks;               /* that share alert.budget, and ... */
    double asked;                /* ... the factor of their levels: as of the last coupling; 0: none yet */
    struct svi_budget_pool pool; /* of them */
    svi_alert_groups *groups;    /* alerts of one cause */
    double arrival;              /* of the input in hand */
    struct svi_key_finds found;  /* of the root, as of its last sample */
    struct svi_note *notes;      /* those that some key does not know of, and the newest */
    uint64_t noted, dropped;     /* so far; of these before the first of `notes` */
    size_t note_room;            /* places in `notes` */
    svi_key_cache *cache;        /* of those out of memory; made when it is first needed */
    char *folder;                /* for it; NULL: that of temporary files */
    struct svi_bytes raw, state, packed; /* room */
    struct svi_key_sum sum;              /* of those that were archived last */
    struct svi_fleet_kept kept;
    struct svi_fleet_prior *prior;      /* NULL: it is off */
    struct svi_key_entry *silent;       /* the one that was silent the longest when it was looked at last, */
    uint64_t silent_turn, silent_noted; /* and whether that is so still; */
    double silent_since;                /* svi_fleet_heard of it */
    uintptr_t pages;                    /* svi_large_pages_begin */
    double now;                         /* arrival clock of the element in hand, or the last one */
    svs_error lost; /* why a key did not come back for what it was to take; code SVS_OK: each did */
    bool told;      /* that keys cannot leave memory */
    int patience;   /* calls until it is tried again */
};

static inline bool svi_engine_is_root(const struct svi_engine *e) {
    return e->of->root == e;
}

/* The engine of a key, with the stream of its root and settings of a struct svi_held_settings. NULL: codes of
 * svi_engine_new. */
struct svi_engine *svi_engine_new_key(struct svi_engine *root, struct svi_settings *s, const char *key,
                                      svs_error *err);

/* A key could not be brought back for what it was to take (svs_code of *err): a restart repeats that. */
void svi_fleet_lose(struct svi_engine *root, const struct svi_key_entry *entry, const svs_error *err);

/* The table of keys; frees them all. */
svs_code svi_fleet_new(struct svi_engine *root, svs_error *err);
void svi_fleet_free(struct svi_stream *of);

/* The engine of that key; `make`: is begun where there is none, by this source. *entry: NULL for "", whose
 * engine is the root. NULL: SVS_UNKNOWN_KEY, SVS_LIMIT (keys.max, keys.quota), SVS_NO_MEMORY. */
struct svi_engine *svi_fleet_find(struct svi_engine *root, const char *key, bool make, uint64_t owner,
                                  struct svi_key_entry **entry, svs_error *err);

/* After something was done with it: of an accepted sample, or not. A key that has begun with something
 * that was refused is none. */
void svi_fleet_done(struct svi_engine *root, struct svi_key_entry *entry,
                    const struct svi_key_figures *figures, bool sample, double now);

/* Where the engine is at rest. */
void svi_fleet_done_here(struct svi_engine *root, struct svi_key_entry *entry, bool sample, double now);

/* What `figures` are now: on the thread that calls the engine. */
void svi_fleet_figures(const struct svi_engine *e, struct svi_key_figures *figures);

/* Of the root: what is counted is of all keys, in the figures of svi_counters_figures; and figures that only
 * a stream with keys has, SVI_FLEET_FIGURES at most. Returns how many. */
int svi_fleet_sum_up(const struct svi_engine *root, struct svi_figure *counted, struct svi_figure *further);

/* Likewise what svi_engine_progress tells: of the quality, what is known of all keys. */
void svi_fleet_progress(const struct svi_engine *root, struct svi_engine_progress *p);

/* One element of a message, and one row of text: of whichever key. */
void svi_fleet_take_element(struct svi_engine *root, struct svi_envelope *env, double now,
                            struct svi_receipt *r);
svs_code svi_fleet_take_row(struct svi_engine *root, struct svi_message *m, const void *bytes, size_t length,
                            double now, svs_error *err);

/* The keys of the next SVI_FLEET_AHEAD elements come into the caches (engine_fleet_ahead.c), where there are
 * many of them. */
#define SVI_FLEET_AHEAD 16
#define SVI_FLEET_MANY  64
void svi_fleet_look_ahead(struct svi_engine *root, const struct svi_envelope *env);
void svi_fleet_fetch(const struct svi_engine *const *engine, int count); /* NULL among them is fine */

/* What all keys come to takes effect in each of them: nobody is at work. */
void svi_fleet_couple(struct svi_engine *root);

/* ---- engine_fleet_time.c: what time brings about in keys */

/* When the first of them falls due, INFINITY: none will; those that are due hear of it, in order, some at a
 * time: the others are due still. */
double svi_fleet_deadline(const struct svi_engine *root);
void svi_fleet_pass(struct svi_engine *root, double now);

/* All sources have gone. */
void svi_fleet_rest(struct svi_engine *root);

/* Its figures are others; all of them are there: SVS_NO_MEMORY. */
void svi_fleet_queue(struct svi_fleet *f, struct svi_key_entry *entry);
svs_code svi_fleet_queue_all(struct svi_fleet *f, svs_error *err);

/* ---- engine_fleet_alerts.c: alerts of all keys together */

/* Before anything that sets the level of an alert: the engine's share of alert.budget is that of now. */
void svi_fleet_share(struct svi_engine *e);

/* What an engine's desk has found since it was asked last goes to all of them. */
void svi_fleet_find_alike(struct svi_engine *root, const struct svi_key_finds *before,
                          const struct svi_key_finds *now);
void svi_fleet_finds(const struct svi_engine *e, struct svi_key_finds *out);
void svi_fleet_pool_archive(struct svi_archive *a, struct svi_fleet *f);

/* Those that there are share it from here on. */
void svi_fleet_share_out(struct svi_engine *root);

/* ---- engine_fleet_groups.c: alerts of one cause in many keys */

/* An alert event of an engine goes out, or becomes part of one of another key. */
void svi_fleet_tell_alert(struct svi_engine *e, const struct svi_event *event);

/* When a group is to be told of again, INFINITY: none is; those that are due are; the arrival clock was
 * moved; a key is going to be no more. */
double svi_fleet_groups_due(const struct svi_fleet *f);
void svi_fleet_groups_pass(struct svi_engine *root, double now);
void svi_fleet_groups_move(struct svi_fleet *f, double step);
void svi_fleet_groups_drop(struct svi_engine *root, struct svi_key_entry *entry);

/* Its alerts end before that; it may have to come back for it. Codes of svi_fleet_return. */
svs_code svi_fleet_end_alerts(struct svi_engine *root, struct svi_key_entry *entry, svs_error *err);

/* ---- engine_fleet.c again */

/* A key goes, with its engine. SVS_UNKNOWN_KEY. */
svs_code svi_fleet_drop(struct svi_engine *root, const char *key, svs_error *err);

/* ---- engine_fleet_notes.c: what reaches all keys */

/* Room for one more; svi_fleet_note takes it, and has none left: it cannot fail. SVS_NO_MEMORY. */
svs_code svi_fleet_reserve_note(struct svi_engine *root, svs_error *err);
void svi_fleet_note(struct svi_engine *root, enum svi_note_kind kind, double step, double now);

/* A key knows of all, or of so many; the key goes. */
void svi_fleet_join(struct svi_fleet *f, struct svi_key_entry *entry);
void svi_fleet_join_at(struct svi_fleet *f, struct svi_key_entry *entry, uint64_t note);
void svi_fleet_leave(struct svi_fleet *f, struct svi_key_entry *entry);

/* When it was heard last, by the arrival clock as it is. */
double svi_fleet_heard(const struct svi_fleet *f, const struct svi_key_entry *entry);

/* The settings that its engine has. */
struct svi_settings *svi_fleet_settings(const struct svi_fleet *f, const struct svi_key_entry *entry);

/* Before anything is done that changes a key: what it does not know of yet reaches it. Codes of
 * svi_engine_configure; what it knows of it has then, and nothing else. */
svs_code svi_fleet_touch(struct svi_engine *root, struct svi_key_entry *entry, svs_error *err);

/* The notes as a part of the state; settings as text. */
void svi_fleet_notes_archive(struct svi_archive *a, struct svi_engine *root);
void svi_fleet_notes_clear(struct svi_fleet *f);

/* ---- engine_fleet_state.c: keys out of memory, and in the state */

/* Its record, into `out`: f->raw and f->state are used. Codes of svi_fleet_return. */
struct svi_key_record;
svs_code svi_fleet_record(struct svi_engine *root, struct svi_key_entry *entry, struct svi_bytes *out,
                          uint8_t hash[16], svs_error *err);

void svi_key_sum_add(struct svi_key_sum *sum, const uint8_t hash[16]);
void svi_key_sum_take(struct svi_key_sum *sum, const uint8_t hash[16]);

/* The sum of the hashes of all keys as they are now, into f->sum. */
svs_code svi_fleet_add_up(struct svi_engine *root, svs_error *err);

/* What a record says of a key, but for its state; and, when all are read, that it is one of this stream:
 * SVS_DAMAGED. */
void svi_fleet_enter(struct svi_key_entry *entry, const struct svi_key_record *r);
svs_code svi_fleet_join_entered(struct svi_fleet *f, struct svi_key_entry *entry, svs_error *err);

/* A key that is out of memory comes back. SVS_NO_MEMORY, SVS_IO. */
svs_code svi_fleet_return(struct svi_engine *root, struct svi_key_entry *entry, svs_error *err);

/* Its state is in a file: the cache needs it no more. */
void svi_fleet_uncache(struct svi_fleet *f, struct svi_key_entry *entry);

/* Those beyond keys.memory leave it, the ones unused the longest; where that fails they stay. Nothing that a
 * caller has of a key's engine is valid after it. */
void svi_fleet_evict(struct svi_engine *root);

/* The keys as sections of a checkpoint: what there is once; each of them; the sum of their hashes, which the
 * states have made when they were archived before it. */
void svi_fleet_archive(struct svi_archive *a, struct svi_engine *root);
void svi_fleet_totals_archive(struct svi_archive *a, struct svi_engine *root);
void svi_fleet_states_archive(struct svi_archive *a, struct svi_engine *root);
void svi_fleet_sum_archive(struct svi_archive *a, struct svi_engine *root);

/* ---- engine_fleet_prior.c: what all keys hold, as a prior of each */

#define SVI_FLEET_PARTS 32 /* of the keys, by their hash */
struct svi_fleet_prior;

static inline int svi_fleet_part(uint64_t hash) {
    return (int)(hash % SVI_FLEET_PARTS);
}

/* Off (f->prior NULL) if the setting key.prior is 0. SVS_NO_MEMORY. */
svs_code svi_fleet_prior_new(struct svi_engine *root, svs_error *err);
void svi_fleet_prior_free(struct svi_fleet *f);

/* A new engine of a key takes part. SVS_NO_MEMORY. */
svs_code svi_fleet_prior_join(struct svi_engine *e, svs_error *err);

/* The d features that the learner has by now are known to it; and one that has become another. SVS_NO_MEMORY.
 */
svs_code svi_engine_place(struct svi_engine *e, int d, svs_error *err);
svs_code svi_engine_place_again(struct svi_engine *e, int feature, svs_error *err);

/* A key that is going to be no more is in memory after it, and nobody is at work. Codes of svi_fleet_return.
 */
svs_code svi_fleet_prior_end(struct svi_engine *root, struct svi_key_entry *entry, svs_error *err);

/* Of what all keys hold now a new prior is made; nobody is at work. */
void svi_fleet_prior_couple(struct svi_engine *root);
void svi_fleet_prior_archive(struct svi_archive *a, struct svi_engine *root);

/* ---- engine_fleet_threads.c: the keys on several threads */

#define SVI_CREW_MOST SVI_FLEET_PARTS /* threads */
struct svi_crew;

/* NULL: no memory, or no thread. */
struct svi_crew *svi_crew_new(const struct svi_settings *s, int hands);
void svi_crew_stop(
    struct svi_crew *crew); /* nobody works any more; what was not taken up is lost. NULL is fine */
void svi_crew_free(struct svi_crew **crew); /* after the engines that it worked with */

/* The element (peeked at) of a key that has an engine goes to its thread; what becomes of it is in the
 * receipt of the message, and out, after svi_crew_settle. False: no memory, nothing was done. */
bool svi_crew_hand(struct svi_engine *root, struct svi_key_entry *entry, struct svi_envelope *env,
                   double now);

/* Nobody is at work after it, and all events are out. */
void svi_crew_settle(struct svi_engine *root);
uint64_t svi_crew_given(const struct svi_crew *c); /* elements so far */

/* ---- engine_fleet_keep.c: keys in files beside the checkpoints */

/* Its state is that of its record there. */
static inline bool svi_fleet_written(const struct svi_key_entry *entry) {
    return entry->slot == 0 && entry->place.file > 0;
}

/* It is going to change: what a checkpoint needs of it is written, and that it has changed is noted.
 * SVS_NO_MEMORY: it may not. */
svs_code svi_fleet_change(struct svi_engine *root, struct svi_key_entry *entry, svs_error *err);

/* It is going to be no more; likewise. */
svs_code svi_fleet_end(struct svi_engine *root, struct svi_key_entry *entry, svs_error *err);

/* The list of files as a section, and all that they hold. */
void svi_fleet_files_archive(struct svi_archive *a, struct svi_engine *root);
void svi_fleet_kept_clear(struct svi_fleet *f);

/* ---- engine_archive.c: a checkpoint in two parts: all that is there at its mark; the states of keys, or the
 * list of their files, and the sum of their hashes (f->sum). */
svs_code svi_engine_save_early(struct svi_engine *e, struct svi_checkpoint *c, svs_error *err);
svs_code svi_engine_save_late(struct svi_engine *e, struct svi_checkpoint *c, svs_error *err);

/* ---- engine_archive.c: the state of one key as bytes, appended to `out`: first what is hashed, *hashed
 * bytes. Into an engine of svi_engine_new_key: SVS_DAMAGED, SVS_NO_MEMORY: it is fit to be freed. */
svs_code svi_engine_pack(struct svi_engine *e, struct svi_bytes *out, size_t *hashed, svs_error *err);
svs_code svi_engine_unpack(struct svi_engine *e, const uint8_t *bytes, size_t size, svs_error *err);

/* ---- engine.c: one row, as svi_engine_message, of this engine; one element, decoded and applied */
svs_code svi_engine_row(struct svi_engine *e, struct svi_message *m, const void *bytes, size_t length,
                        double now, svs_error *err);
svs_code svi_engine_take_element(struct svi_engine *e, struct svi_envelope *env, double now, svs_error *err);
void svi_engine_refuse_element(struct svi_engine *e, const struct svi_envelope *env, svs_code code,
                               const svs_error *err, double now, struct svi_receipt *r);

/* ---- engine_rules.c: the plain rules */

/* An accepted row, which is learned and told of; a feature changes hands; the settings have changed. */
void svi_engine_rules_row(struct svi_engine *e, const struct svi_message *m, double now);
/* One that is left out because a value is missing still tells of its sensors. */
void svi_engine_rules_dropped(struct svi_engine *e, const struct svi_message *m, double now);
void svi_engine_rules_renew(struct svi_engine *e, int feature);
void svi_engine_rules_configure(struct svi_engine *e);

/* All that they know goes; alerts end. */
void svi_engine_rules_forget(struct svi_engine *e);

/* All open alerts end, of whatever kind, and say why. */
void svi_engine_end_alerts(struct svi_engine *e, const char *why);

/* Time passes for this engine alone. */
void svi_engine_rules_pass(struct svi_engine *e, double now);

/* What lines for people begin with: the stream, and its key. */
#define SVI_SUBJECT (SVI_STREAM_MAX + SVS_KEY_MAX + 2)
const char *svi_engine_subject(const struct svi_engine *e, char out[SVI_SUBJECT]);

/* What follows from svi_settings_old. */
void svi_engine_repeat_old(struct svi_engine *e);

/* The arrival clock was moved (svi_engine_move_clock), for one engine. */
void svi_engine_move_own_clock(struct svi_engine *e, double step, double now);

/* The engine's times after `from` move by `step`, and those of all that it holds. */
void svi_engine_move_times(struct svi_engine *e, double from, double step);

/* Sends one event: fills in stream, epoch and seq; and one that has these. */
void svi_publish(struct svi_engine *e, struct svi_event *event);
void svi_send(struct svi_engine *e, const struct svi_event *event);
/* Sends what an alert says. */
void svi_publish_alert(struct svi_engine *e, const struct svi_alert_report *r, double ts);
/* A score event but for what novelty says, which points into step and m; and sends it with that. */
void svi_fill_score(struct svi_engine *e, const struct svi_message *m, const svs_step *step,
                    struct svi_score *score);
void svi_publish_score(struct svi_engine *e, struct svi_score *score, const struct svi_novelty_said *said);

/* An accepted sample, judged by the second thread; its score (NULL: none is due) and what becomes of the
 * alert are published when that is done, before any other event. False: there is no such thread, or no room.
 */
bool svi_engine_queue(struct svi_engine *e, const struct svi_message *m, const struct svi_score *score);

/* The end of a message: nobody waits, unless svi_engine_leave_open says so. */
void svi_engine_end_message(struct svi_engine *e);

/* The refit that just took effect; and, if it does not serve, the online model after it, so that the
 * retained one is the one that serves. */
void svi_publish_refit(struct svi_engine *e);

/* Counts a refusal and publishes it; `bytes`: what was refused. */
void svi_publish_error(struct svi_engine *e, svs_code code, const char *reason, const void *bytes,
                       size_t length, double now);

/* The present model with seen and features, without its schema: what scores. */
svs_code svi_engine_weights(struct svi_engine *e, svs_model *m, svs_error *err);

/* Room for the names of d columns. */
svs_code svi_publish_reserve(struct svi_engine *e, int d, svs_error *err);

#endif
