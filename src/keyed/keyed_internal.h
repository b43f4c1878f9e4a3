/* keyed_internal.h: the fleet of a stream with keys, for the sources of this room alone. */
#ifndef SVI_KEYED_INTERNAL_H
#define SVI_KEYED_INTERNAL_H

#include "alerts/budget_pool.h"
#include "engine/engine_parts.h"
#include "fleet/alert_groups.h"
#include "fleet/key_cache.h"
#include "fleet/key_queue.h"
#include "fleet/key_table.h"
#include "keyed/keyed.h"
#include "store/key_files.h"

/* ---- keyed.c: an engine for each key */

#define SVI_FLEET_COUPLE 1024 /* elements; at first after fewer */

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

/* The keys in files beside the checkpoints (keyed_keep.c). */
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
    uint64_t gone;               /* of these, those that went after their first sample */
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

/* The engine of a key, with settings of a struct svi_held_settings; with key.prior it takes part in that.
 * NULL: codes of svi_engine_new. */
struct svi_engine *svi_fleet_make(struct svi_engine *root, struct svi_settings *s,
                                  const struct svi_key_entry *entry, svs_error *err);

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

/* The keys of the next SVI_FLEET_AHEAD elements come into the caches (keyed_ahead.c), where there are
 * many of them. */
#define SVI_FLEET_MANY 64
void svi_fleet_look_ahead(struct svi_engine *root, const struct svi_envelope *env);
void svi_fleet_fetch(const struct svi_engine *const *engine, int count); /* NULL among them is fine */

/* What all keys come to takes effect in each of them: nobody is at work. */
void svi_fleet_couple(struct svi_engine *root);

/* ---- keyed_time.c: what time brings about in keys */

/* When the first of them falls due, INFINITY: none will; those that are due hear of it, in order, some at a
 * time: the others are due still. */
double svi_fleet_deadline(const struct svi_engine *root);
void svi_fleet_pass(struct svi_engine *root, double now);

/* All sources have gone. */
void svi_fleet_rest(struct svi_engine *root);

/* Its figures are others; all of them are there: SVS_NO_MEMORY. */
void svi_fleet_queue(struct svi_fleet *f, struct svi_key_entry *entry);
svs_code svi_fleet_queue_all(struct svi_fleet *f, svs_error *err);

/* ---- keyed_alerts.c: alerts of all keys together */

/* Before anything that sets the level of an alert: the engine's share of alert.budget is that of now. */
void svi_fleet_share(struct svi_engine *e);

/* What an engine's desk has found since it was asked last goes to all of them. */
void svi_fleet_find_alike(struct svi_engine *root, const struct svi_key_finds *before,
                          const struct svi_key_finds *now);
void svi_fleet_finds(const struct svi_engine *e, struct svi_key_finds *out);
void svi_fleet_pool_archive(struct svi_archive *a, struct svi_fleet *f);

/* Those that there are share it from here on. */
void svi_fleet_share_out(struct svi_engine *root);

/* ---- keyed_groups.c: alerts of one cause in many keys */

/* An alert event of an engine goes out, or becomes part of one of another key. */
void svi_fleet_tell_alert(struct svi_engine *e, const struct svi_event *event);

/* When a group is due to be reported again, INFINITY: none is; those that are due are; the arrival clock was
 * moved; a key is going to be no more. */
double svi_fleet_groups_due(const struct svi_fleet *f);
void svi_fleet_groups_pass(struct svi_engine *root, double now);
void svi_fleet_groups_move(struct svi_fleet *f, double step);
void svi_fleet_groups_drop(struct svi_engine *root, struct svi_key_entry *entry);

/* Its alerts end before that; it may have to come back for it. Codes of svi_fleet_return. */
svs_code svi_fleet_end_alerts(struct svi_engine *root, struct svi_key_entry *entry, svs_error *err);

/* ---- keyed.c again */

/* A key goes, with its engine. SVS_UNKNOWN_KEY. */
svs_code svi_fleet_drop(struct svi_engine *root, const char *key, svs_error *err);

/* ---- keyed_notes.c: what reaches all keys */

/* Room for one more; svi_fleet_note takes it, and has none left: it cannot fail. SVS_NO_MEMORY. */
svs_code svi_fleet_reserve_note(struct svi_engine *root, svs_error *err);
void svi_fleet_note(struct svi_engine *root, enum svi_note_kind kind, double step, double now);

/* A key knows of all, or of that many; the key goes. */
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

/* ---- keyed_state.c: keys out of memory, and in the state */

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

/* ---- keyed_prior.c: what all keys hold, as a prior of each */

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

/* A key that is going to be no more is in memory after it, and nobody is at work. Codes of svi_fleet_return.
 */
svs_code svi_fleet_prior_end(struct svi_engine *root, struct svi_key_entry *entry, svs_error *err);

/* Of what all keys hold now a new prior is made; nobody is at work. */
void svi_fleet_prior_couple(struct svi_engine *root);
void svi_fleet_prior_archive(struct svi_archive *a, struct svi_engine *root);

/* ---- keyed_threads.c: the keys on several threads */

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

/* ---- keyed_keep.c: keys in files beside the checkpoints */

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

#endif
