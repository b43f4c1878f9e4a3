/* redis_part_internal.h: a partition, for the sources of redis_part alone: redis_part.c (its life),
 * redis_part_read.c (from the log to the process), redis_part_out.c (events), redis_part_state.c
 * (checkpoints). */
#ifndef REDIS_PART_INTERNAL_H
#define REDIS_PART_INTERNAL_H

#include <stdio.h>

#include "base/bytes.h"
#include "redis_part.h"

#define REDIS_ID_BYTES 48 /* of "MS-SEQ" */
#define REDIS_AT_BYTES 72 /* of "ID NUMBER", the cursor that the process keeps: at most 64 */

/* An entry that was read and that the process has not been given yet. */
struct redis_entry {
    struct redis_entry *next;
    char id[REDIS_ID_BYTES];
    int64_t after; /* number of the sample after it in the log; -1: it states none */
    size_t size;
    char bytes[];
};

struct redis_part_reading {
    struct redis_part *part;     /* whose it is: user of the answers to reads */
    char cursor[REDIS_ID_BYTES]; /* the log is read after this entry */
    int64_t expected;            /* number of the next sample in the log; -1: not known */
    bool verified;               /* the end of the log was compared with the cursor */
    bool under_way;              /* an answer is awaited */
    int64_t breaks;              /* of the client, when it was verified */
    int count;                   /* entries asked for at once */
    struct redis_entry *first, *last;
    size_t bytes;                           /* of these */
    struct redis_entry *fresh, *fresh_last; /* read, and not confirmed by the replicas yet */
    size_t fresh_bytes;
    char before[REDIS_ID_BYTES]; /* the cursor before these */
    int64_t before_expected;
    int64_t slow;       /* for redis_log_few */
    int64_t generation; /* of the process */
};

struct redis_part_events {
    struct svi_bytes batch;           /* topics, orders and payloads, one after another */
    size_t length[REDIS_SCRIPT_ARGS]; /* of each of these words */
    int words;
    int64_t unanswered; /* events that Redis has not confirmed */
};

struct redis_part_saving {
    bool begun;  /* the process saves, or its checkpoint is on the way */
    bool failed; /* the last attempt */
    FILE *file;  /* to read pieces of */
    int64_t piece, pieces;
    int64_t size;
    char side[2]; /* the one that is written: "a" or "b" */
    char at[REDIS_AT_BYTES], hash[40];
    int64_t next;
    uint64_t epoch;
    char stored[REDIS_AT_BYTES]; /* `at` of the stored checkpoint */
    int64_t stored_next;         /* -1: none is stored */
    char stored_side[2];
    double due; /* svi_monotonic */
};

struct redis_part {
    struct redis_shared *shared;
    int number;
    struct redis_names names;
    enum redis_part_state state;
    bool taking;    /* the lease was asked for */
    double again;   /* svi_monotonic: the lease is not asked for before */
    char epoch[24]; /* of the lease, as text */
    double renewed; /* svi_monotonic: when the last renewal that was granted was sent */
    double asked;   /* svi_monotonic: the last renewal */
    bool renewing;
    double since; /* svi_monotonic: it is ours */
    struct partition_child *child;
    double child_again; /* svi_monotonic: a process that died is not begun before */
    double child_pause;
    bool releasing;
    char checkpoint[300]; /* path of the fetched file */
    struct redis_part_reading read;
    struct redis_part_events out;
    struct redis_part_saving save;
    int64_t refusals;             /* for redis_log_few */
    int64_t gaps;                 /* likewise: entries whose number is not the one expected */
    int errors;                   /* answers of Redis that were errors, since the last checkpoint */
    char reached[REDIS_AT_BYTES]; /* `at` of the last checkpoint that Redis had; "": none */
};

/* Runs a script with the fence in front of its keys and arguments. */
void redis_part_script(struct redis_part *p, int lane, enum redis_script script, const enum redis_key *keys,
                       int key_count, const struct redis_word *arguments, int count, redis_answer *done);

/* True if an answer to such a script says that the partition is not ours; it is then left. */
bool redis_part_lost(struct redis_part *p, const redisReply *reply);

/* Leaves the partition at once, whatever was under way. */
void redis_part_leave(struct redis_part *p, double pause);

/* redis_part_read.c */
void redis_part_read_begin(struct redis_part *p);
void redis_part_read_clear(struct redis_part *p);
void redis_part_read_turn(struct redis_part *p);
/* As the call of partition_child.h. */
void redis_part_read_refused(void *part, int64_t count, const char *code, const char *reason, const void *at,
                             size_t at_size);

/* Reports that Redis has lost what it had acknowledged. */
void redis_part_read_rewound(struct redis_part *p, const char *where, int64_t samples);

/* redis_part_out.c */
void redis_part_out_event(void *part, const struct subscription_event *e);
void redis_part_out_flush(struct redis_part *p);
/* An event of our own, `error.STREAM.` with this code. */
void redis_part_out_notice(struct redis_part *p, const char *code, const char *text);
bool redis_part_out_full(const struct redis_part *p);

/* redis_part_state.c: fetches the stored checkpoint, then begins the process. */
void redis_part_fetch(struct redis_part *p);
void redis_part_saved(void *part, const struct partition_saved *saved, const char *why);
/* Begins a checkpoint; false: there is nothing new to save. */
bool redis_part_save(struct redis_part *p);
void redis_part_state_clear(struct redis_part *p);

#endif
