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
#include "store/key_files.h"

#define SVI_FLEET_FIGURES 7
#define SVI_FIGURES_MAX                                                                                      \
    (SVI_COUNTERS_FIGURES + SVI_METRICS_FIGURES + SVI_QUALITY_FIGURES + SVI_PROBABILITY_FIGURES +            \
     SVI_GAUGES_MAX + 3 + SVI_FLEET_FIGURES)

/* What reaches all keys, each at its next touch, whether it is in memory or not, so that no result depends
 * on that. The numbers are in states of users. */
enum svi_note_kind {
    SVI_NOTE_CONFIG = 0, /* other settings */
    SVI_NOTE_CLOCK,      /* the arrival clock was moved by `step`, and shows `now` */
    SVI_NOTE_BEGIN,      /* a process began at `now`, `step` after the last arrival */
    SVI_NOTE_REBUILD,    /* the bits of the model were made by another program or instruction set */
    SVI_NOTE_QUIET       /* all sources have gone: counted, and not in the list */
};

/* ---- stream.c: what there is once for a stream, however many engines it has */

/* Totals over all keys but "", including keys that were removed. */
struct svi_stream_total {
    int64_t seen, labelled, refused, judged, right, alerts;
    int64_t open;   /* of the keys that there are */
    double squares; /* of errors */
};

/* A section of a checkpoint besides those of the root. */
struct svi_stream_section {
    const char *name;
    bool hashed;
    bool late; /* after all others: states of keys, or what follows from them */
    void (*archive)(struct svi_archive *a, svi_stream *s);
    bool (*present)(const svi_stream *s); /* NULL: always; else only then it is written */
};

/* What the two kinds of stream do: one engine (stream.c), a fleet (fleet.c). NULL: what the root does is
 * all. */
struct svi_stream_verbs {
    /* apply: the elements of a message that the entry has accepted; one row; the end of either; when passing
     * time alone changes something, and that it has passed. */
    svs_code (*take)(svi_stream *s, struct svi_envelope *env, const struct svi_arrival *a,
                     struct svi_receipt *r, svs_error *err);
    svs_code (*take_row)(svi_stream *s, struct svi_message *m, const void *bytes, size_t length, double now,
                         svs_error *err);
    void (*end)(svi_stream *s);
    double (*deadline)(const svi_stream *s);
    void (*pass)(svi_stream *s, double now);
    double (*arrived)(const svi_stream *s);            /* the last arrival, of any engine */
    const struct svi_engine *(*latest)(svi_stream *s); /* that of the last sample with a key; NULL: none */

    /* command: the engine of a key; a command about one. What was done to the root reaches all others by a
     * note. Its place is reserved before, so that `reach` cannot fail. */
    svi_engine *(*engine)(svi_stream *s, const char *key, svs_error *err);
    svs_code (*command)(svi_stream *s, const char *key, const struct svi_command *c, double now, int *count,
                        svs_error *err);

    /* score: an engine as a new key would begin with, which belongs to no key. The caller frees it, and has
     * one at a time. NULL: there is no prior (*err stays as it was), or SVS_NO_MEMORY. */
    svi_engine *(*guest)(svi_stream *s, svs_error *err);

    svs_code (*reserve)(svi_stream *s, svs_error *err);
    void (*reach)(svi_stream *s, enum svi_note_kind kind, double step, double now);

    /* settle: all workers are idle after it, and all events are out. */
    void (*settle)(svi_stream *s);

    /* save: sections besides those of the root; the fingerprint of all keys as they are now; the largest
     * difference of a model from one that is made again. */
    const struct svi_stream_section *sections;
    int section_count;
    svs_code (*add_up)(svi_stream *s, svs_error *err);
    svs_code (*verify)(svi_stream *s, double *difference, svs_error *err);

    /* figures: adds the keys to the counted figures of the root, and fills in further ones; returns how
     * many. */
    int (*figures)(const svi_stream *s, struct svi_figure *counted, struct svi_figure *further);
    double (*memory)(const svi_stream *s); /* bytes besides those of the root, about */

    void (*clear)(svi_stream *s); /* all but the root, and what every stream has */
};

/* Figures that are no engine's. */
struct svi_stream_figures {
    double kept_share, kept_fixed; /* svi_stream_set_kept_memory */
    double started;                /* arrival clock at the first call, NAN before */
    double rate_since;             /* arrival clock at the last stats */
    int64_t rate_seen;
    double rate;                  /* samples a second, smoothed; NAN: not known yet */
    struct svi_counters counters; /* of the engine whose figures were asked for last */
    struct svi_figure gauges[SVI_GAUGES_MAX];
    int gauge_count;
    struct svi_figure all[SVI_FIGURES_MAX];
};

struct svi_stream {
    const struct svi_stream_verbs *verbs;
    struct svi_engine *root; /* of the samples without a key: without keys, of all */
    bool keyed;              /* it is a fleet */
    struct svi_engine_common common;
    struct svi_units units;             /* of the columns of all keys */
    struct svi_engine_scratch *scratch; /* of its own thread */
    uint64_t epoch;
    svi_sink *sink;
    void *user;
    struct svi_entry entry;
    struct svi_receipt *receipt;      /* of the message in hand, or NULL */
    double arrival;                   /* clock, of the input in hand */
    bool open;                        /* svi_stream_leave_open */
    bool later;                       /* svi_stream_apply_later may leave elements to other threads */
    bool in_files;                    /* states of keys are in files beside the checkpoints */
    unsigned encoded;                 /* topics of which events of other threads have a payload: a bit each */
    const struct svi_state_dir *from; /* of a checkpoint that is loaded */
    struct svi_stream_total others;   /* than the root */
    svs_error lost; /* why a key did not come back for what it was to take; code SVS_OK: each did */
    struct svi_stream_figures figures;
};

/* The engine that knows the columns best: that of the last sample. After the first accepted sample, or a
 * change of settings, names in the settings that no engine has are reported, once. */
const struct svi_engine *svi_stream_latest(svi_stream *s);
void svi_stream_check_names(svi_stream *s, const struct svi_engine *e, double now);

/* Sends an event of one of its engines, unless it is muted. */
void svi_stream_send(svi_stream *s, const struct svi_event *event);

/* A command about one engine, which is the root, or that of a key. */
svs_code svi_stream_command_engine(svi_stream *s, svi_engine *e, const struct svi_command *c,
                                   struct svi_settings *settings, double now, int *count, svs_error *err);

/* The sections that every stream has, at the begin of its table. */
#define SVI_STREAM_SECTIONS                                                                                  \
    {"sources", true, false, svi_stream_archive_sources, NULL}, {                                            \
        "source times", false, false, svi_stream_archive_source_times, NULL                                  \
    }
void svi_stream_archive_sources(struct svi_archive *a, svi_stream *s);
void svi_stream_archive_source_times(struct svi_archive *a, svi_stream *s);

/* A checkpoint in two parts: all that exists at its mark; then the states of keys, or the list of their
 * files, and the sum of their hashes. */
svs_code svi_stream_save_early(svi_stream *s, struct svi_checkpoint *c, svs_error *err);
svs_code svi_stream_save_part(svi_stream *s, bool late, struct svi_checkpoint *c, svs_error *err);

/* ---- fleet.c: an engine for each key */

#define SVI_FLEET_COUPLE 1024 /* elements; at first after fewer */

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
struct svi_keys_gone {
    struct svi_bytes records;
    struct svi_key_sum sum; /* of the hashes they had */
};

/* The keys in files beside the checkpoints (fleet_keep.c). */
struct svi_fleet_kept {
    svi_key_files *files;                 /* NULL: there are none */
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
    uint64_t tidied;                      /* bytes of it */
};

struct svi_fleet {
    struct svi_stream stream;    /* whose root has the samples without a key */
    struct svi_workers *workers; /* threads for the keys; NULL: there are none (yet) */
    int64_t policies;            /* that share alert.budget, and ... */
    double asked;                /* ... the factor of their levels: as of the last coupling; 0: none yet */
    struct svi_engine_off off;   /* of all keys */
    int columns;                 /* of the key that was the last to begin; 0: none has */
    struct {
        int columns, classes;             /* the most that a key was seen to have */
        int known_columns, known_classes; /* of which `memory` is; -1: of no settings of now */
        struct svi_keys_memory memory;
    } largest;
    svi_key_table *table;
    int64_t taken;                       /* elements and rows that came, of all keys, refused ones too */
    uint64_t begun;                      /* keys so far */
    uint64_t gone;                       /* of these, those that went after their first sample */
    uint64_t rests;                      /* times that all sources had gone */
    struct svi_key_queue queue;          /* of those that time alone will make something of */
    struct svi_budget_pool pool;         /* of them */
    svi_alert_groups *groups;            /* alerts of one cause */
    struct svi_key_finds found;          /* of the root, as of its last sample */
    struct svi_note *notes;              /* those that some key does not know of, and the newest */
    uint64_t noted, dropped;             /* so far; of these before the first of `notes` */
    int64_t note_capacity;               /* places in `notes` */
    svi_key_cache *cache;                /* of those out of memory; made when it is first needed */
    char *folder;                        /* for it; NULL: that of temporary files */
    struct svi_bytes raw, state, packed; /* room */
    struct svi_bytes common;             /* likewise, of svi_prior_key_pack */
    struct svi_key_sum sum;              /* of those that were archived last */
    struct svi_fleet_kept kept;
    struct svi_fleet_prior *prior;      /* NULL: it is off */
    struct svi_key_entry *guest;        /* no key, but of the engine of one; NULL: there was none yet */
    struct svi_key_entry *silent;       /* the one that was silent the longest when it was looked at last, */
    uint64_t silent_turn, silent_noted; /* and whether that is so still; */
    double silent_since;                /* svi_fleet_last_arrival of it */
    uintptr_t pages;                    /* svi_large_pages_begin */
    double now;                         /* arrival clock of the element in hand, or the last one */
    bool told;                          /* that keys cannot leave memory */
    int patience;                       /* calls until it is tried again */
};

/* That of a stream with keys; NULL: it has none. */
struct svi_fleet *svi_fleet_of(svi_stream *s);

/* SVS_MISSING_KEY: a label, or a forget, has no key. */
svs_code svi_fleet_fail_missing(bool labels, svs_error *err);

/* A fleet without keys and root, then the root is there: SVS_NO_MEMORY. */
svi_stream *svi_fleet_new(svs_error *err);
svs_code svi_fleet_begin(svi_stream *s, struct svi_shared_settings *shared,
                         const struct svi_engine_setup *setup, svs_error *err);

/* The engine of a key; with key.prior it takes part in that. NULL: codes of svi_engine_new. */
struct svi_engine *svi_fleet_make(struct svi_fleet *f, struct svi_shared_settings *s,
                                  struct svi_key_entry *entry, svs_error *err);

/* A key could not be read back for what it was to take (*err says why): only a restart can repeat that. */
void svi_fleet_lose(struct svi_fleet *f, const struct svi_key_entry *entry, const svs_error *err);

/* Publishes an event of the samples without a key (entry NULL), or of a key, with its name; alerts by way of
 * svi_fleet_publish_alert. */
void svi_fleet_send(struct svi_fleet *f, const struct svi_key_entry *entry, const struct svi_event *event);
void svi_fleet_key_sink(void *entry, const struct svi_event *event);

/* The engine of that key; `make`: is begun where there is none, by this source. *entry: NULL for "", whose
 * engine is the root. NULL: SVS_UNKNOWN_KEY, SVS_LIMIT (keys.max, keys.quota), SVS_NO_MEMORY. */
struct svi_engine *svi_fleet_find(struct svi_fleet *f, const char *key, bool make, uint64_t owner,
                                  struct svi_key_entry **entry, svs_error *err);

/* After a key has taken something; `sample`: an accepted sample. A key that began with something that was
 * refused is removed again. */
void svi_fleet_done(struct svi_fleet *f, struct svi_key_entry *entry, const struct svi_key_figures *figures,
                    bool sample, double now);

/* The same where its engine is on no worker; NULL: the samples without a key. */
void svi_fleet_done_here(struct svi_fleet *f, struct svi_key_entry *entry, bool sample, double now);

/* Removes a key with its engine. SVS_UNKNOWN_KEY. */
svs_code svi_fleet_drop(struct svi_fleet *f, const char *key, svs_error *err);

/* Reads the figures of an engine, on the thread that calls it. */
void svi_fleet_figures(const struct svi_engine *e, struct svi_key_figures *figures);

/* The keys of the next SVI_FLEET_AHEAD elements come into the caches (fleet_ahead.c), where there are
 * many of them. */
#define SVI_FLEET_MIN_KEYS_AHEAD 64
#define SVI_FLEET_AHEAD          16
void svi_fleet_look_ahead(struct svi_fleet *f, const struct svi_envelope *env);
void svi_fleet_fetch(const struct svi_engine *const *engine, int count); /* NULL among them is fine */

/* ---- fleet_time.c: what time brings about in keys */

/* When the first key falls due, INFINITY: none will. svi_fleet_pass lets keys that are due act, in order,
 * some at a time: the others are still due after it. */
double svi_fleet_deadline(const svi_stream *s);
void svi_fleet_pass(svi_stream *s, double now);

/* Places a key by its new figures; places all keys: SVS_NO_MEMORY. */
void svi_fleet_queue(struct svi_fleet *f, struct svi_key_entry *entry);
svs_code svi_fleet_queue_all(struct svi_fleet *f, svs_error *err);

/* ---- fleet_alerts.c: alerts of all keys together */

/* Sets the share of alert.budget that the engines read; all workers are idle. */
void svi_fleet_share(struct svi_fleet *f);

/* Adds what the alert policy of an engine has found since it was asked last to the pool of all. */
void svi_fleet_find_alike(struct svi_fleet *f, const struct svi_key_finds *before,
                          const struct svi_key_finds *now);
void svi_fleet_finds(const struct svi_engine *e, struct svi_key_finds *out);
void svi_fleet_pool_archive(struct svi_archive *a, struct svi_fleet *f);

/* From here on the keys that exist share the budget. */
void svi_fleet_share_out(struct svi_fleet *f);

/* ---- fleet_groups.c: alerts of one cause in many keys */

/* Publishes an alert event, or makes it part of an alert of another key. */
void svi_fleet_publish_alert(struct svi_fleet *f, const struct svi_event *event);

/* When a group is due to be reported again, INFINITY: none is; reports those that are due; the arrival clock
 * was moved; a key is removed. */
double svi_fleet_groups_due(const struct svi_fleet *f);
void svi_fleet_groups_pass(struct svi_fleet *f, double now);
void svi_fleet_groups_move(struct svi_fleet *f, double step, double now);
void svi_fleet_groups_drop(struct svi_fleet *f, struct svi_key_entry *entry);

/* Ends the alerts of a key that is removed next, which may have to come back from the disk for it. Codes of
 * svi_fleet_return. */
svs_code svi_fleet_end_alerts(struct svi_fleet *f, struct svi_key_entry *entry, svs_error *err);

/* ---- fleet_memory.c: what keys take */

/* A key of `d` features and `classes` classes may be the largest so far. */
void svi_fleet_measure(struct svi_fleet *f, int d, int classes);

/* Keys that may be in memory now; bytes that all of them take, once all is full. */
int64_t svi_fleet_memory_most(struct svi_fleet *f);
double svi_fleet_memory(const svi_stream *s);

/* ---- fleet_notes.c: what reaches all keys */

/* Reserves the place of one more note; svi_fleet_note takes it and cannot fail. SVS_NO_MEMORY. */
svs_code svi_fleet_reserve_note(svi_stream *s, svs_error *err);
void svi_fleet_note(svi_stream *s, enum svi_note_kind kind, double step, double now);

/* The key has taken notes up to this one; the key is removed. */
void svi_fleet_join(struct svi_fleet *f, struct svi_key_entry *entry, uint64_t note);
void svi_fleet_unlink(struct svi_fleet *f, struct svi_key_entry *entry);

/* The arrival of its last sample, by the arrival clock as it is now, as if no time had passed between the
 * last arrival and the next start of a process: nothing was received in between, and a clock that was wrong
 * is no silence. */
double svi_fleet_last_arrival(const struct svi_fleet *f, const struct svi_key_entry *entry);

/* The last arrival of all keys; -INFINITY: none is known. The engine of the key whose sample came last, or
 * NULL. */
double svi_fleet_arrived(const svi_stream *s);
const struct svi_engine *svi_fleet_latest(svi_stream *s);

/* The settings that its engine has. */
struct svi_shared_settings *svi_fleet_settings(const struct svi_fleet *f, const struct svi_key_entry *entry);

/* Before anything changes a key: brings it the notes that it has not taken yet. On failure (codes of
 * svi_engine_prepare) they stay untaken. */
svs_code svi_fleet_touch(struct svi_fleet *f, struct svi_key_entry *entry, svs_error *err);

/* The notes as a part of the state; settings as text. */
void svi_fleet_notes_archive(struct svi_archive *a, struct svi_fleet *f);
void svi_fleet_notes_clear(struct svi_fleet *f);

/* ---- fleet_state.c: keys out of memory, and in the state */

/* Its record, into `out`: f->raw and f->state are used. Codes of svi_fleet_return. */
struct svi_key_record;
svs_code svi_fleet_record(struct svi_fleet *f, struct svi_key_entry *entry, struct svi_bytes *out,
                          uint8_t hash[16], svs_error *err);

void svi_key_sum_add(struct svi_key_sum *sum, const uint8_t hash[16]);
void svi_key_sum_take(struct svi_key_sum *sum, const uint8_t hash[16]);

/* Adds up the hashes of all keys as they are now, into f->sum. */
svs_code svi_fleet_add_up(svi_stream *s, svs_error *err);

/* What a record says of a key, but for its state; and, when all are read, that it is one of this stream:
 * SVS_DAMAGED. */
svs_code svi_fleet_restore_entry(struct svi_key_entry *entry, const struct svi_key_record *r, svs_error *err);
svs_code svi_fleet_join_entered(struct svi_fleet *f, struct svi_key_entry *entry, svs_error *err);

/* Brings a key back that is out of memory. SVS_NO_MEMORY, SVS_IO. */
svs_code svi_fleet_return(struct svi_fleet *f, struct svi_key_entry *entry, svs_error *err);

/* Its state is in a file: its bytes leave the cache. */
void svi_fleet_uncache(struct svi_fleet *f, struct svi_key_entry *entry);

/* Moves keys beyond keys.memory out of it, those unused the longest first; where that fails they stay. No
 * engine that a caller holds is valid after it. */
void svi_fleet_evict(struct svi_fleet *f);

/* The keys as sections of a checkpoint: what there is once; each of them; the sum of their hashes, which the
 * states have made when they were archived before it. */
void svi_fleet_archive(struct svi_archive *a, svi_stream *s);
void svi_fleet_totals_archive(struct svi_archive *a, svi_stream *s);
void svi_fleet_states_archive(struct svi_archive *a, svi_stream *s);
void svi_fleet_sum_archive(struct svi_archive *a, svi_stream *s);

/* ---- fleet_prior.c: what all keys hold, as a prior of each */

#define SVI_FLEET_PARTS 32 /* of the keys, by their hash */
struct svi_fleet_prior;

static inline int svi_fleet_part(uint64_t hash) {
    return (int)(hash % SVI_FLEET_PARTS);
}

/* Off (f->prior NULL) if the setting key.prior is 0. SVS_NO_MEMORY. */
svs_code svi_fleet_prior_new(struct svi_fleet *f, svs_error *err);
void svi_fleet_prior_free(struct svi_fleet *f);

/* Is something known of all keys? */
bool svi_fleet_prior_known(const struct svi_fleet *f);

/* A new engine of a key takes part; that of the guest only goes by what the others hold. SVS_NO_MEMORY. */
svs_code svi_fleet_prior_join(struct svi_fleet *f, struct svi_key_entry *entry, struct svi_engine *e,
                              svs_error *err);

/* A key that is removed next is in memory after it, and all workers are idle. Codes of svi_fleet_return. */
svs_code svi_fleet_prior_end(struct svi_fleet *f, struct svi_key_entry *entry, svs_error *err);

/* Makes a new prior of what all keys hold now; all workers are idle. */
void svi_fleet_prior_couple(struct svi_fleet *f);
/* Keys that do not enter it, as of the last coupling; rows that are held and do not. */
void svi_fleet_prior_out(const struct svi_fleet *f, int64_t *keys, int64_t *rows);
void svi_fleet_prior_archive(struct svi_archive *a, svi_stream *s);

/* ---- fleet_workers.c: the keys on several threads */

#define SVI_WORKERS_MAX SVI_FLEET_PARTS /* threads */
struct svi_workers;

/* NULL: no memory, or no thread. */
struct svi_workers *svi_workers_new(struct svi_fleet *f, int count);
void svi_workers_stop(
    struct svi_workers *workers); /* nobody works any more; what was not taken up is lost. NULL is fine */
void svi_workers_free(struct svi_workers **workers); /* after the engines that it worked with */

/* Hands the element (peeked at) of a key that has an engine to its worker. What becomes of it is in the
 * receipt of the message, and published, after svi_workers_settle. False: no memory, nothing was done. */
bool svi_workers_give(struct svi_fleet *f, struct svi_key_entry *entry, struct svi_envelope *env, double now);

/* All workers are idle after it, and all events are out. */
void svi_workers_settle(struct svi_fleet *f);

/* ---- fleet_keep.c: keys in files beside the checkpoints */

/* Its state is that of its record there. */
static inline bool svi_fleet_written(const struct svi_key_entry *entry) {
    return entry->slot == 0 && entry->place.file > 0;
}

/* Before a key changes: what a checkpoint in progress needs of it is written, and the change is noted.
 * SVS_NO_MEMORY: it must not change. */
svs_code svi_fleet_change(struct svi_fleet *f, struct svi_key_entry *entry, svs_error *err);

/* Before a key is removed; likewise. */
svs_code svi_fleet_end(struct svi_fleet *f, struct svi_key_entry *entry, svs_error *err);

/* The list of files as a section, and all that they hold. */
void svi_fleet_files_archive(struct svi_archive *a, svi_stream *s);
void svi_fleet_kept_clear(struct svi_fleet *f);

#endif
