/* fleet_internal.h: the fleet of a stream with keys, for the sources of this room alone. */
#ifndef SVI_FLEET_INTERNAL_H
#define SVI_FLEET_INTERNAL_H

#include "alerts/budget.h"
#include "engine/engine_parts.h"
#include "fleet/alert_groups.h"
#include "fleet/key_cache.h"
#include "fleet/key_queue.h"
#include "fleet/key_table.h"
#include "fleet/fleet.h"
#include "merge/sums.h"
#include "store/key_files.h"

#define SVI_FLEET_FIGURES 8
#define SVI_FIGURES_MAX                                                                                      \
    (SVI_COUNTERS_FIGURES + SVI_METRICS_FIGURES + SVI_QUALITY_FIGURES + SVI_PROBABILITY_FIGURES +            \
     SVI_GAUGES_MAX + 3 + SVI_FLEET_FIGURES)

/* Changes that reach every key at its next touch, whether it is in memory or not, so that no result depends
 * on that. The numbers are in states of users. */
enum svi_note_kind {
    SVI_NOTE_CONFIG = 0, /* new settings */
    SVI_NOTE_CLOCK,      /* the arrival clock was moved by `step` and shows `now` */
    SVI_NOTE_BEGIN,      /* a process began at `now`, `step` after the last arrival */
    SVI_NOTE_REBUILD,    /* another program or instruction set made the bits of the models */
    SVI_NOTE_QUIET       /* all sources have left: only counted, not kept in the list */
};

/* ---- stream.c: the parts that a stream has once, however many engines it has */

/* Totals over all keys but "", including keys that were removed. */
struct svi_stream_total {
    int64_t seen, labelled, refused, judged, right, alerts;
    int64_t open;   /* open alerts, of existing keys */
    double squares; /* sum of squared errors */
};

/* A section of a checkpoint besides those of the root. */
struct svi_stream_section {
    const char *name;
    bool hashed;
    bool late; /* written after all others: states of keys, and what depends on them */
    void (*archive)(struct svi_archive *a, svi_stream *s);
    bool (*present)(const svi_stream *s); /* is it written? NULL: always */
};

/* The behaviour of the two kinds of stream: a single engine (stream.c), a fleet (fleet.c). A NULL function
 * has nothing to do beyond the root. */
struct svi_stream_verbs {
    /* apply: `take` the elements of a message that the entry has accepted; `take_row` one row; `end` either;
     * `deadline` and `pass` as in svi_stream_deadline. */
    svs_code (*take)(svi_stream *s, struct svi_envelope *env, const struct svi_arrival *a,
                     struct svi_receipt *r, svs_error *err);
    svs_code (*take_row)(svi_stream *s, struct svi_message *m, const void *bytes, size_t length, double now,
                         svs_error *err);
    void (*end)(svi_stream *s);
    double (*deadline)(const svi_stream *s);
    void (*pass)(svi_stream *s, double now);
    double (*arrived)(const svi_stream *s);            /* the last arrival at any engine */
    const struct svi_engine *(*latest)(svi_stream *s); /* engine of the last sample with a key; NULL: none */

    /* command: the engine of a key; a command about one. A change of the root reaches the other engines by a
     * note: `reserve` its place before the change, so that `reach` cannot fail after it. */
    svi_engine *(*engine)(svi_stream *s, const char *key, svs_error *err);
    svs_code (*command)(svi_stream *s, const char *key, const struct svi_command *c, double now, int *count,
                        svs_error *err);

    /* score: an engine such as a new key would begin with, which belongs to no key. The caller frees it
     * before it asks for another. NULL: there is no prior (*err is unchanged), or SVS_NO_MEMORY. */
    svi_engine *(*guest)(svi_stream *s, svs_error *err);

    /* score: what the bank of all keys says of the peeked element of a key, known or not; NULL: nothing. */
    const struct svi_shared_score *(*consult)(svi_stream *s, const char *key, const struct svi_envelope *env);

    svs_code (*reserve)(svi_stream *s, svs_error *err);
    void (*reach)(svi_stream *s, enum svi_note_kind kind, double step, double now);

    /* alert: numbers an alert event that no mute holds back, and sends it or adds it to another; `alone`: it
     * is of no alert of the stream's engines. */
    void (*alert)(svi_stream *s, struct svi_event *event, bool alone);

    /* settle: waits until all workers are idle and all events are published. */
    void (*settle)(svi_stream *s);

    /* save: sections besides those of the root; the fingerprint of all keys now; the largest difference of a
     * model from a rebuilt one. */
    const struct svi_stream_section *sections;
    int section_count;
    svs_code (*add_up)(svi_stream *s, svs_error *err);
    svs_code (*verify)(svi_stream *s, double *difference, svs_error *err);

    /* figures: adds the keys to the counted figures of the root and writes further ones; returns their
     * number. */
    int (*figures)(const svi_stream *s, struct svi_figure *counted, struct svi_figure *further);
    double (*memory)(const svi_stream *s); /* estimated bytes besides those of the root */

    void (*clear)(svi_stream *s); /* frees all but the root and what every stream has */
};

/* Figures that belong to no engine. */
struct svi_stream_figures {
    double kept_share, kept_fixed; /* svi_stream_set_kept_memory */
    double started;                /* arrival clock at the first call, NAN before */
    double rate_since;             /* arrival clock at the last stats */
    int64_t rate_seen;
    double rate;                  /* samples a second, smoothed; NAN: not known yet */
    struct svi_counters counters; /* of the engine whose figures were requested last */
    double smallest_p;            /* of other threads since svi_stream_smallest_p was called last */
    struct svi_figure gauges[SVI_GAUGES_MAX];
    int gauge_count;
    struct svi_figure all[SVI_FIGURES_MAX];
};

struct svi_stream {
    const struct svi_stream_verbs *verbs;
    struct svi_engine *root; /* engine of the samples without a key; without keys, of all */
    bool keyed;              /* this is the `stream` of a svi_fleet */
    struct svi_mutes *mutes; /* owned */
    struct svi_engine_common common;
    struct svi_units units;             /* of the columns of all keys */
    struct svi_engine_scratch *scratch; /* of the stream's thread */
    uint64_t epoch;
    svi_sink *sink;
    void *user;
    struct svi_entry entry;
    struct svi_receipt *receipt;      /* of the message at hand, or NULL */
    struct svi_reply_scores *asked;   /* by the messages at hand (svi_stream_ask) */
    double arrival;                   /* arrival clock of the input at hand */
    bool open;                        /* svi_stream_leave_open */
    bool later;                       /* svi_stream_apply_later may leave elements to other threads */
    bool in_files;                    /* states of keys are in files next to the checkpoints */
    unsigned encoded;                 /* topics (a bit each) that other threads encode */
    const struct svi_state_dir *from; /* directory of the checkpoint that is being loaded */
    struct svi_stream_total others;   /* totals of all engines but the root */
    svs_error
        lost; /* why a key could not be read back when an element needed it; code SVS_OK: none was lost */
    struct svi_stream_figures figures;
    svi_kept_alerts *alerts;
};

/* latest: the engine with the most recent columns, that of the last sample. check_names: reports, once after
 * the first accepted sample and after each change of settings, names in the settings that engine e does not
 * have. */
const struct svi_engine *svi_stream_latest(svi_stream *s);
void svi_stream_check_names(svi_stream *s, const struct svi_engine *e, double now);

/* Sends an event of an engine, unless the stream is muted. An alert gets its number here and is kept, also
 * while the stream is muted: all of them pass here in the order of the calls, whatever thread they are
 * from. */
void svi_stream_send(svi_stream *s, const struct svi_event *event);

/* ---- stream_mutes.c: silence on purpose */

/* An alert event of an engine whose engine time is `time`: it is held back, or published. */
void svi_stream_publish_alert(svi_stream *s, const struct svi_event *event, double time);

/* The engine time of an engine that has taken something, by s->arrival, and the arrival clock (pass): ends
 * mutes whose time is up. */
void svi_stream_mutes_time(svi_stream *s, double time);
void svi_stream_mutes_pass(svi_stream *s, double now);

/* A key is about to be removed. */
void svi_stream_mutes_drop(svi_stream *s, const char *key);

/* Carries out mute and unmute; all threads are idle. */
svs_code svi_stream_mutes_command(svi_stream *s, const struct svi_command *c, double now, svs_error *err);
void svi_stream_archive_mutes(struct svi_archive *a, svi_stream *s);
void svi_stream_archive_mutes_time(struct svi_archive *a, svi_stream *s);
bool svi_stream_has_mutes(const svi_stream *s);

/* Carries out a command about one engine: the root, or that of a key. */
svs_code svi_stream_command_engine(svi_stream *s, svi_engine *e, const struct svi_command *c,
                                   struct svi_settings *settings, double now, int *count, svs_error *err);

/* The sections of every stream, at the start of its table. */
#define SVI_STREAM_SECTIONS                                                                                  \
    {"sources", true, false, svi_stream_archive_sources, NULL},                                              \
        {"source times", false, false, svi_stream_archive_source_times, NULL},                               \
        {"mutes", true, false, svi_stream_archive_mutes, svi_stream_has_mutes},                              \
        {"mute time", false, false, svi_stream_archive_mutes_time, NULL}, {                                  \
        "kept alerts", false, false, svi_stream_archive_alerts, NULL                                         \
    }
void svi_stream_archive_sources(struct svi_archive *a, svi_stream *s);
void svi_stream_archive_source_times(struct svi_archive *a, svi_stream *s);
void svi_stream_archive_alerts(struct svi_archive *a, svi_stream *s);

/* A checkpoint in two parts: all that exists at its mark; then the states of keys, or the list of their
 * files, and the sum of their hashes. */
svs_code svi_stream_save_early(svi_stream *s, struct svi_checkpoint *c, svs_error *err);
svs_code svi_stream_save_part(svi_stream *s, bool late, struct svi_checkpoint *c, svs_error *err);

/* ---- fleet.c: an engine for each key */

#define SVI_FLEET_COUPLE 1024 /* elements; at first after fewer */
#define SVI_FLEET_SHARE  16   /* elements after which the budget is shared out, among the first ones */

struct svi_note {
    enum svi_note_kind kind;
    double step, now;
    struct svi_shared_settings *s; /* from it on; NULL where no key needs it */
    int64_t keys;                  /* of which it is the last that they know of */
};

/* Hashes of keys, added up as numbers of 128 bits. */
struct svi_key_sum {
    uint64_t low, high;
};

struct svi_key_list {
    struct svi_key_entry **at; /* NULL: it is not in it any more */
    size_t count, capacity;
};

/* Keys that are no more, as records. */
struct svi_keys_removed {
    struct svi_bytes records;
    struct svi_key_sum sum; /* of the hashes they had */
};

/* States of keys in files next to the checkpoints (fleet_keep.c). */
struct svi_fleet_kept {
    svi_key_files *files;        /* NULL: none */
    bool apart;                  /* a checkpoint has the list of files instead of the states */
    bool saving;                 /* `pending` is being written */
    svs_code failed;             /* why writing failed */
    uint32_t generation;         /* of changes; grows with each checkpoint */
    struct svi_key_list changed; /* keys changed since the last checkpoint */
    struct svi_key_list pending; /* keys to be written for this one */
    struct svi_keys_removed removed, removed_pending; /* removed keys, likewise */
    size_t next;                                      /* index in `pending` of the next to write */
    struct svi_key_sum sum;                           /* of the valid records */
    uint64_t alive;                                   /* bytes of these */
    uint64_t stale;  /* bytes of records of keys that have changed or are pending */
    uint64_t tidied; /* bytes rewritten so far */
};

struct svi_fleet {
    struct svi_stream stream;    /* its root takes the samples without a key */
    struct svi_workers *workers; /* threads for the keys; NULL: none (yet) */
    int64_t policies;            /* number that share alert.budget, and ... */
    double asked;                /* ... the factor of their levels, as of the last coupling; 0: none yet */
    struct svi_engine_off off;   /* placeholders for the stages that are off in all keys */
    int columns;                 /* columns of the last key that began; 0: none has */
    struct {
        int columns, classes;             /* largest numbers seen in a key */
        int known_columns, known_classes; /* arguments of `memory`; -1: it is outdated */
        struct svi_keys_memory memory;
    } largest;
    svi_key_table *table;
    int64_t taken;                       /* elements and rows for all keys so far, refused ones too */
    uint64_t begun;                      /* keys so far */
    uint64_t removed;                    /* of these, keys removed after their first sample */
    uint64_t rests;                      /* times that all sources had left */
    struct svi_key_queue queue;          /* keys that will change by the passing of time alone */
    struct svi_budget_pool pool;         /* results of all keys, from which the alert levels follow */
    svi_alert_groups *groups;            /* alerts of one cause */
    double groups_due_at;                /* earliest report of one by the times of samples, or before */
    struct svi_key_finds found;          /* of the root, as of its last sample */
    struct svi_note *notes;              /* those that some key has not taken yet, and the newest */
    uint64_t noted, dropped;             /* notes so far; of these, dropped before the first of `notes` */
    int64_t note_capacity;               /* places in `notes` */
    svi_key_cache *cache;                /* keys out of memory; made when it is first needed */
    char *folder;                        /* directory of the cache; NULL: that of temporary files */
    struct svi_bytes raw, state, packed; /* scratch */
    struct svi_bytes common;             /* scratch of svi_prior_key_pack */
    struct svi_key_sum sum;              /* of the keys that were archived last */
    struct svi_fleet_kept kept;
    struct svi_fleet_prior *prior;   /* NULL: off */
    struct svi_fleet_sums *sums;     /* NULL: off */
    struct svi_fleet_merged *merged; /* NULL: none has come */
    struct svi_fleet_shared *shared; /* NULL: off */
    struct svi_key_entry *guest; /* entry for the engine of no key (svi_stream_verbs.guest); NULL: none yet */
    struct svi_key_entry *silent;       /* the key that was silent longest when last determined; */
    uint64_t silent_turn, silent_noted; /* `silent` is still valid if these are unchanged; */
    double silent_since;                /* its svi_fleet_last_arrival */
    uintptr_t pages;                    /* svi_large_pages_begin */
    double now;                         /* arrival clock of the element at hand, or the last one */
    bool reported_full;                 /* it was reported that keys cannot leave memory */
    int patience;                       /* calls until that is tried again */
};

/* The fleet of a stream with keys; NULL: the stream has none. */
struct svi_fleet *svi_fleet_of(svi_stream *s);

/* Moves x of a decoded row to the row of the engine's schema. Codes of svi_shape_fits; SVS_NOT_SUPPORTED. */
svs_code svi_fleet_move_row(const struct svi_engine *e, struct svi_message *m, svs_error *err);

/* Always SVS_MISSING_KEY: a label (else a forget) names no key. */
svs_code svi_fleet_fail_missing(bool labels, svs_error *err);

/* new: a fleet without keys and root. begin: makes the root. SVS_NO_MEMORY. */
svi_stream *svi_fleet_new(svs_error *err);
svs_code svi_fleet_begin(svi_stream *s, struct svi_shared_settings *shared,
                         const struct svi_engine_setup *setup, svs_error *err);

/* Makes the engine of a key; with key.prior the engine joins the prior. NULL: codes of svi_engine_new. */
struct svi_engine *svi_fleet_make(struct svi_fleet *f, struct svi_shared_settings *s,
                                  struct svi_key_entry *entry, svs_error *err);

/* Notes that a key could not be read back when an element needed it (*err says why). Only a restart can apply
 * that element. */
void svi_fleet_lose(struct svi_fleet *f, const struct svi_key_entry *entry, const svs_error *err);

/* Publishes an event of the root (entry NULL), or of a key, with its name; alerts, of that engine time, by
 * way of the mutes. */
void svi_fleet_send(struct svi_fleet *f, const struct svi_key_entry *entry, const struct svi_event *event,
                    double time);
void svi_fleet_key_sink(void *entry, const struct svi_event *event);

/* The engine of a key. `make`: begins an unknown key, on behalf of `owner`. *entry: its entry; NULL for "",
 * whose engine is the root. NULL: SVS_UNKNOWN_KEY, SVS_LIMIT (keys.max, keys.quota), SVS_NO_MEMORY. */
struct svi_engine *svi_fleet_find(struct svi_fleet *f, const char *key, bool make, uint64_t owner,
                                  struct svi_key_entry **entry, svs_error *err);

/* To be called after a key has taken an element; `sample`: it was an accepted sample. Removes a key whose
 * first element was refused. */
void svi_fleet_done(struct svi_fleet *f, struct svi_key_entry *entry, const struct svi_key_figures *figures,
                    bool sample, double now);

/* The same if the engine is on no worker, so that its figures can be read; NULL: the root. */
void svi_fleet_done_here(struct svi_fleet *f, struct svi_key_entry *entry, bool sample, double now);

/* Removes a key with its engine. SVS_UNKNOWN_KEY. */
svs_code svi_fleet_drop(struct svi_fleet *f, const char *key, svs_error *err);

/* Reads the figures of an engine, on the thread that uses it. */
void svi_fleet_figures(const struct svi_engine *e, struct svi_key_figures *figures);

/* Prefetches the keys of the next SVI_FLEET_AHEAD elements into the caches (fleet_ahead.c), if there are many
 * keys. */
#define SVI_FLEET_MIN_KEYS_AHEAD 64
#define SVI_FLEET_AHEAD          16
void svi_fleet_look_ahead(struct svi_fleet *f, const struct svi_envelope *env);
void svi_fleet_fetch(const struct svi_engine *const *engine, int count); /* NULL among them is fine */

/* ---- fleet_time.c: effects of the passing of time on keys */

/* deadline: when the first key falls due; INFINITY: none will. pass: handles keys that are due, in order, a
 * limited number in one call; the others are still due after it. */
double svi_fleet_deadline(const svi_stream *s);
void svi_fleet_pass(svi_stream *s, double now);

/* queue: places a key by its new figures; queue_all: all keys, SVS_NO_MEMORY. */
void svi_fleet_queue(struct svi_fleet *f, struct svi_key_entry *entry);
svs_code svi_fleet_queue_all(struct svi_fleet *f, svs_error *err);

/* ---- fleet_alerts.c: alerts of all keys together */

/* Sets the share of alert.budget that the engines read; all workers must be idle. */
void svi_fleet_share(struct svi_fleet *f);

/* Adds what the alert policy of an engine has found between `before` and `now` to the pool of all keys. */
void svi_fleet_find_alike(struct svi_fleet *f, const struct svi_key_finds *before,
                          const struct svi_key_finds *now);
void svi_fleet_finds(const struct svi_engine *e, struct svi_key_finds *out);
void svi_fleet_pool_archive(struct svi_archive *a, struct svi_fleet *f);

/* Divides the budget among the keys that exist now. */
void svi_fleet_share_out(struct svi_fleet *f);

/* ---- fleet_groups.c: alerts of one cause in many keys */

/* Publishes an alert event, or adds it to an alert of another key; `alone`: never the latter. */
void svi_fleet_publish_alert(svi_stream *s, struct svi_event *event, bool alone);

/* due: when the next group is to be reported again; INFINITY: none. pass: reports those that are due. move:
 * the arrival clock was moved. drop: a key is removed. */
double svi_fleet_groups_due(const struct svi_fleet *f);
void svi_fleet_groups_pass(struct svi_fleet *f, double now);

/* A sample of that time has been taken: reports that are due by the times of samples. */
void svi_fleet_groups_time(struct svi_fleet *f, double ts);
void svi_fleet_groups_move(struct svi_fleet *f, double step, double now);
void svi_fleet_groups_drop(struct svi_fleet *f, struct svi_key_entry *entry);

/* Ends the alerts of a key that is about to be removed; the key may be read back from disk for this. Codes of
 * svi_fleet_return. */
svs_code svi_fleet_end_alerts(struct svi_fleet *f, struct svi_key_entry *entry, svs_error *err);

/* ---- fleet_memory.c: memory of keys */

/* Updates the largest key by one with d features and this number of classes. */
void svi_fleet_measure(struct svi_fleet *f, int d, int classes);

/* memory_most: number of keys that may be in memory now. memory: bytes of all keys once their windows are
 * full. */
int64_t svi_fleet_memory_most(struct svi_fleet *f);
double svi_fleet_memory(const svi_stream *s);

/* ---- fleet_notes.c: changes that reach all keys */

/* reserve_note: capacity for one more note. SVS_NO_MEMORY. note: uses it and cannot fail. */
svs_code svi_fleet_reserve_note(svi_stream *s, svs_error *err);
void svi_fleet_note(svi_stream *s, enum svi_note_kind kind, double step, double now);

/* join: the key has taken all notes up to `note`. unlink: the key is removed. */
void svi_fleet_join(struct svi_fleet *f, struct svi_key_entry *entry, uint64_t note);
void svi_fleet_unlink(struct svi_fleet *f, struct svi_key_entry *entry);

/* Arrival of the last sample of a key by the present arrival clock. Time between the last arrival and the
 * next start of a process does not count, since nothing was received in it; neither do moves of the clock. */
double svi_fleet_last_arrival(const struct svi_fleet *f, const struct svi_key_entry *entry);

/* arrived: the last arrival at any key; -INFINITY: none is known. latest: the engine of the key with the last
 * sample, or NULL. */
double svi_fleet_arrived(const svi_stream *s);
const struct svi_engine *svi_fleet_latest(svi_stream *s);

/* The settings of a key's engine, also while it is out of memory. */
struct svi_shared_settings *svi_fleet_settings(const struct svi_fleet *f, const struct svi_key_entry *entry);

/* To be called before anything changes a key: applies the notes that it has not taken yet. After a failure
 * (codes of svi_engine_prepare) they remain. */
svs_code svi_fleet_touch(struct svi_fleet *f, struct svi_key_entry *entry, svs_error *err);

/* Archives the notes, with settings as text. */
void svi_fleet_notes_archive(struct svi_archive *a, struct svi_fleet *f);
void svi_fleet_notes_clear(struct svi_fleet *f);

/* ---- fleet_state.c: keys out of memory, and in the state */

/* Writes the record of a key to `out`, and its hash; uses f->raw and f->state. Codes of svi_fleet_return. */
struct svi_key_record;
svs_code svi_fleet_record(struct svi_fleet *f, struct svi_key_entry *entry, struct svi_bytes *out,
                          uint8_t hash[16], svs_error *err);

void svi_key_sum_add(struct svi_key_sum *sum, const uint8_t hash[16]);
void svi_key_sum_take(struct svi_key_sum *sum, const uint8_t hash[16]);

/* Sums the hashes of all keys as they are now in f->sum. */
svs_code svi_fleet_add_up(svi_stream *s, svs_error *err);

/* restore_entry: fills in an entry from a record, except the state. join_entered: checks, when all records
 * have been read, that the entry fits this stream. SVS_DAMAGED. */
svs_code svi_fleet_restore_entry(const struct svi_fleet *f, struct svi_key_entry *entry,
                                 const struct svi_key_record *r, svs_error *err);
svs_code svi_fleet_join_entered(struct svi_fleet *f, struct svi_key_entry *entry, svs_error *err);

/* Reads a key that is out of memory back. SVS_NO_MEMORY, SVS_IO. */
svs_code svi_fleet_return(struct svi_fleet *f, struct svi_key_entry *entry, svs_error *err);

/* Removes the bytes of a key from the cache, since its state is in a file. */
void svi_fleet_uncache(struct svi_fleet *f, struct svi_key_entry *entry);

/* Moves keys beyond keys.memory to disk, those unused longest first; if that fails they stay. Invalidates
 * every engine that a caller holds. */
void svi_fleet_evict(struct svi_fleet *f);

/* The keys as sections of a checkpoint: common parts, totals, the states, and the sum of their hashes. The
 * states come before the sum, which they compute. */
void svi_fleet_archive(struct svi_archive *a, svi_stream *s);
void svi_fleet_clock_archive(struct svi_archive *a, svi_stream *s);
void svi_fleet_totals_archive(struct svi_archive *a, svi_stream *s);
void svi_fleet_states_archive(struct svi_archive *a, svi_stream *s);
void svi_fleet_sum_archive(struct svi_archive *a, svi_stream *s);

/* ---- fleet_prior.c: the samples of all keys as a prior of each */

#define SVI_FLEET_PARTS 32 /* into which the keys are divided, by their hash */
struct svi_fleet_prior;

static inline int svi_fleet_part(uint64_t hash) {
    return (int)(hash % SVI_FLEET_PARTS);
}

/* Off (f->prior NULL) if the setting key.prior is 0. SVS_NO_MEMORY. */
svs_code svi_fleet_prior_new(struct svi_fleet *f, svs_error *err);
void svi_fleet_prior_free(struct svi_fleet *f);

/* Is there a prior yet? */
bool svi_fleet_prior_known(const struct svi_fleet *f);

/* Joins a new engine to the prior. The engine of the guest uses the prior without contributing.
 * SVS_NO_MEMORY. */
svs_code svi_fleet_prior_join(struct svi_fleet *f, struct svi_key_entry *entry, struct svi_engine *e,
                              svs_error *err);

/* Before a key is removed: reads it into memory, so that its samples can be subtracted, and waits for the
 * workers. Codes of svi_fleet_return. */
svs_code svi_fleet_prior_end(struct svi_fleet *f, struct svi_key_entry *entry, svs_error *err);

/* Makes a new prior from what all keys hold now; all workers must be idle. */
void svi_fleet_prior_couple(struct svi_fleet *f);
/* Number of keys excluded from it at the last coupling, and of held rows that are excluded. */
void svi_fleet_prior_out(const struct svi_fleet *f, int64_t *keys, int64_t *rows);
void svi_fleet_prior_archive(struct svi_archive *a, svi_stream *s);

/* Makes the newest prior again, of the sums as of the last coupling. SVS_NO_MEMORY: it stays. */
svs_code svi_fleet_prior_again(struct svi_fleet *f, svs_error *err);

/* The sums of a part of the keys. */
struct svi_prior_sums *svi_fleet_prior_part(const struct svi_fleet *f, int part);

/* The sums and bounds of the last coupling, for a sums record; *keys: that hold samples. */
const struct svi_prior_sums *svi_fleet_prior_sums(const struct svi_fleet *f,
                                                  const struct svi_prior_bounds **bounds, int64_t *keys);

/* The prior of the last coupling; NULL: none. */
const struct svi_prior *svi_fleet_prior_newest(const struct svi_fleet *f);

/* ---- fleet_sums.c: the plain sums over the windows of all keys */

struct svi_fleet_sums;

/* Begins or ends to keep them (publish.sums); only with a prior. SVS_NO_MEMORY: nothing has changed. */
svs_code svi_fleet_sums_keep(struct svi_fleet *f, bool on, svs_error *err);
void svi_fleet_sums_free(struct svi_fleet *f);

/* Gives the sums the features and labels of the prior's; all workers must be idle. SVS_NO_MEMORY. */
svs_code svi_fleet_sums_follow(struct svi_fleet *f, svs_error *err);

/* numbers: of the rows that all keys hold; keeping must have begun. record: makes the record, and begins to
 * keep sums if they are not kept; names and labels are valid until the next call. mark: changes with it.
 * SVS_LIMIT, SVS_UNAVAILABLE, and codes of svi_fleet_return: it cannot be made now. */
svs_code svi_fleet_sums_numbers(struct svi_fleet *f, struct svi_window_sums *out, svs_error *err);
svs_code svi_fleet_sums_record(struct svi_fleet *f, struct svi_sums *r, svs_error *err);
uint64_t svi_fleet_sums_mark(struct svi_fleet *f);
/* Replaces the schema of one key in `r`, whose features, unscaled and sums are those of all keys, by that of
 * all keys, in `out`; NULL where numbers alone need none, or where keys contradict each other. SVS_NO_MEMORY.
 */
svs_code svi_fleet_sums_schema(const svi_engine *e, struct svi_sums *r, struct svi_bytes *out,
                               svs_error *err);
double svi_fleet_sums_memory(const struct svi_fleet *f); /* bytes */
void svi_fleet_sums_renew(struct svi_fleet *f);          /* notes that keys hold rows that are not counted */
void svi_fleet_sums_archive(struct svi_archive *a, svi_stream *s);

/* ---- fleet_merged.c: what the keys of all machines hold */

struct svi_fleet_merged;

void svi_fleet_merged_free(struct svi_fleet *f);
bool svi_fleet_merged_known(const svi_stream *s);       /* has a record come? */
bool svi_fleet_merged_taken(const struct svi_fleet *f); /* do new keys take it? */

/* *made: the prior of the keys here (NULL: none), made of these sums and bounds. Replaces it by the merged
 * one, if there is one that agrees with it. SVS_NO_MEMORY: *made stays. */
svs_code svi_fleet_merged_make(struct svi_fleet *f, const struct svi_prior_sums *own_sums,
                               const struct svi_prior_bounds *own_bounds, struct svi_prior **made,
                               uint64_t number, svs_error *err);
void svi_fleet_merged_archive(struct svi_archive *a, svi_stream *s);

/* ---- fleet_shared.c: the bank of all keys */

#define SVI_SHARE_ROWS 1000 /* rows learned last, of which a key has at most its share */

/* Off (f->shared NULL) unless svi_settings_stacked. SVS_NO_MEMORY, SVS_SETTING. */
svs_code svi_fleet_shared_new(struct svi_fleet *f, svs_error *err);
void svi_fleet_shared_free(struct svi_fleet *f);
void svi_fleet_shared_configure(struct svi_fleet *f); /* takes labels.ttl of the root's settings */
void svi_fleet_shared_join(struct svi_fleet *f, const struct svi_key_entry *entry, struct svi_engine *e);

/* Scores the peeked element of a key, or a row, and learns it; labels and forgets, too. What it says of the
 * sample, valid until the next call; NULL: nothing (entry may be NULL). */
const struct svi_shared_score *svi_fleet_share_element(struct svi_fleet *f, struct svi_key_entry *entry,
                                                       const struct svi_envelope *env, double now);
const struct svi_shared_score *svi_fleet_share_row(struct svi_fleet *f, struct svi_key_entry *entry,
                                                   const struct svi_message *given, double now);
const struct svi_shared_score *svi_fleet_share_command(struct svi_fleet *f, struct svi_key_entry *entry,
                                                       const struct svi_command *c);

/* The score of a row that is only scored; nothing changes. */
const struct svi_shared_score *svi_fleet_shared_peek(svi_stream *s, const char *key,
                                                     const struct svi_envelope *env);
const struct svi_shared_score *svi_fleet_shared_peek_row(svi_stream *s, const char *key,
                                                         const struct svi_message *given);

/* What it knows of a key, as bytes appended to `out`; and read from their start, which is passed over. */
svs_code svi_key_share_pack(const struct svi_key_share *k, struct svi_bytes *out);
svs_code svi_key_share_unpack(struct svi_key_share *k, const uint8_t **bytes, size_t *size, svs_error *err);

/* Takes all rows of a key out of it, which begins there from nothing. */
void svi_fleet_unshare(struct svi_fleet *f, struct svi_key_entry *entry);

/* At a coupling: merges what the parts have learned of stacks; all workers must be idle. */
void svi_fleet_shared_couple(struct svi_fleet *f);
double svi_fleet_shared_memory(const struct svi_fleet *f);
/* Adds the figures of the bank of all keys to those of the root. */
void svi_fleet_shared_figures(const struct svi_fleet *f, struct svi_figure *counted);
/* For tests: svi_bank_check of it; how many of the last SVI_SHARE_ROWS rows that it has learned are of this
 * key. */
const char *svi_fleet_shared_check(struct svi_fleet *f, double error);
int64_t svi_fleet_shared_held(const struct svi_fleet *f); /* samples in its window */
int64_t svi_fleet_shared_rows(const struct svi_fleet *f, const struct svi_key_entry *entry);
void svi_fleet_shared_archive(struct svi_archive *a, svi_stream *s);

/* ---- fleet_workers.c: the keys on several threads */

#define SVI_WORKERS_MAX SVI_FLEET_PARTS /* threads */
struct svi_workers;

/* NULL: no memory, or no thread. */
struct svi_workers *svi_workers_new(struct svi_fleet *f, int count);
void svi_workers_stop(
    struct svi_workers *workers); /* ends all threads; elements not yet begun are lost. NULL is fine */
void svi_workers_free(struct svi_workers **workers); /* after the engines that used them */

/* Gives the peeked element of a key with an engine to the worker of that key. The result is in the receipt of
 * the message, and published, after svi_workers_settle. False: no memory, nothing was done. */
bool svi_workers_give(struct svi_fleet *f, struct svi_key_entry *entry, struct svi_envelope *env,
                      const struct svi_shared_score *score, double now);

/* Waits until all workers are idle and all events are published. */
void svi_workers_settle(struct svi_fleet *f);

/* ---- fleet_keep.c: keys in files next to the checkpoints */

/* Does the record of this key in the files have its present state? */
static inline bool svi_fleet_written(const struct svi_key_entry *entry) {
    return entry->slot == 0 && entry->place.file > 0;
}

/* To be called before a key changes: writes what a checkpoint in progress needs of it, and notes the change.
 * SVS_NO_MEMORY: the key must not change. */
svs_code svi_fleet_change(struct svi_fleet *f, struct svi_key_entry *entry, svs_error *err);

/* The same before a key is removed. */
svs_code svi_fleet_end(struct svi_fleet *f, struct svi_key_entry *entry, svs_error *err);

/* Archives the list of files, and loads all that they hold. */
void svi_fleet_files_archive(struct svi_archive *a, svi_stream *s);
void svi_fleet_kept_clear(struct svi_fleet *f);

#endif
