/* partition_child.h: the `svmstream run` that holds one partition of a log, owned by the adapter of that log.
 *
 * It starts the process on a folder of the partition, with ipc sockets that this user alone can open, from a
 * checkpoint if one is given, and passes entries of the log on to it. The stream keeps the place in the log
 * (`at`) with the numbers of the source `log`, so an adapter keeps nothing:
 *
 *     child = partition_child_new(&options, &err);
 *     for (;;) {
 *         poll(partition_child_items, at most partition_child_wait seconds)
 *         partition_child_turn(child);
 *         if (partition_child_place(child, &at, &size) != generation)   another place than expected:
 *             generation = ..., read the log from `at` on (size 0: from its beginning)
 *         while (partition_child_takes(child) && there is a further entry)
 *             partition_child_send(child, entry, size, at, at_size, &err);
 *     }
 *
 * An entry is sent again while it has no reply. When the process does not stand at one of the entries that it
 * was sent (it was restarted and lost some), all unanswered entries are dropped and the generation changes.
 *
 * Nothing blocks: processes are started and waited for in turns. One thread; a child ends with that thread
 * (PR_SET_PDEATHSIG). Texts are printable. */
#ifndef PARTITION_CHILD_H
#define PARTITION_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <zmq.h>

#include "client/subscription.h"
#include "partition_entries.h"
#include "svmstream/error.h"

#define PARTITION_CHILD_ITEMS 5

/* A checkpoint with the states of keys, as `svmstream state export` writes it. */
struct partition_saved {
    const char *path; /* regular file; valid until the next save */
    const void *at;   /* place in the log: all before it is in the checkpoint */
    size_t at_size;   /* 0: nothing of the log is in it */
    int64_t next;     /* elements of the log in it */
    uint64_t epoch;   /* of the stream */
    char hash[33];    /* of the state, 32 hex digits, as `svmstream ctl save` states it */
};

/* Each may be NULL. None may free the child. */
struct partition_calls {
    /* An event of the topics wanted; its pointers are valid during the call. `lost`: events of this topic
     * that were lost before it. */
    void (*event)(void *user, const struct subscription_event *e);
    /* `count` elements of one entry, whose place was `at`, were refused for good; an entry that was refused
     * as a whole counts all of its elements (at least 1). */
    void (*refused)(void *user, int64_t count, const char *code, const char *reason, const void *at,
                    size_t at_size);
    /* A save has ended: why is NULL, or the reason why there is no new checkpoint (`saved` NULL). All events
     * of the samples in it went to `event` before. */
    void (*saved)(void *user, const struct partition_saved *saved, const char *why);
    void (*log)(void *user, const char *text); /* a line about the process, without a newline */
};

struct partition_options {
    const char *program;          /* svmstream; NULL: the one next to this program, else in PATH */
    const char *folder;           /* its parent must exist; made with mode 0700 if missing */
    int partition;                /* the files lie in folder/p<partition>/ */
    const char *const *arguments; /* of `svmstream run`, NULL at the end; may be NULL. The adapter's own (in,
                                     out, ctl, in.mode, state.dir) come after them and win */
    bool fresh;                   /* remove the state of an earlier run in the folder. Else it continues */
    const char *checkpoint;       /* a file to begin with instead (it implies fresh); NULL: none */
    bool restart;                 /* a process that dies is started again on its state, after a pause of .1 s
                                     that doubles up to 10 s; else PARTITION_DEAD */
    unsigned topics;              /* bit t: events of enum svi_topic t are wanted */
    int64_t unanswered;           /* entries without a reply, at most; 0: 64 */
    size_t bytes;                 /* of these entries, at most (one may always wait); 0: 8 MiB */
    void *context;                /* of ZeroMQ; not owned */
    const struct partition_calls *calls; /* not owned */
    void *user;                          /* of the calls */
};

enum partition_state {
    PARTITION_STARTING, /* it is being started, or has to answer a hello */
    PARTITION_READY,    /* entries go out */
    PARTITION_SAVING,   /* as READY, but no entry is taken until `saved` was called */
    PARTITION_ENDING,   /* after partition_child_end, until the process has ended */
    PARTITION_DEAD      /* no process; final. See partition_child_why */
};

struct partition_child;

/* Begins the start and returns at once; strings and the checkpoint's path are copied. NULL: SVS_IO (the
 * folder; a path too long for a socket), SVS_NO_MEMORY. */
struct partition_child *partition_child_new(const struct partition_options *o, svs_error *err);

/* Kills a process that still runs (its state is kept), and waits for the kernel to confirm it; then frees. */
void partition_child_free(struct partition_child **c);

enum partition_state partition_child_state(const struct partition_child *c);
const char *partition_child_why(const struct partition_child *c); /* of DEAD; "": it was asked to end */
/* DEAD: svmstream has read the checkpoint and refuses it. */
bool partition_child_refused(const struct partition_child *c);
int64_t partition_child_pid(const struct partition_child *c); /* 0: no process runs */
int64_t partition_child_restarts(const struct partition_child *c);

/* Fills the items to poll, at most PARTITION_CHILD_ITEMS; returns how many. */
int partition_child_items(const struct partition_child *c, zmq_pollitem_t *items);
/* Seconds until a turn has something to do without any item; HUGE_VAL: never. */
double partition_child_wait(const struct partition_child *c);
/* Does what is due; calls the calls. */
void partition_child_turn(struct partition_child *c);

/* May an entry be sent now? */
bool partition_child_takes(const struct partition_child *c);

/* Takes an entry: a message of the wire (msgpack or JSON: a sample or a batch) without `src`, `n` and `at`,
 * which are replaced, copied; `at`: where the log continues after it, at most 64 bytes. SVS_LIMIT: not now
 * (partition_child_takes). Otherwise the entry is no message: SVS_EMPTY, SVS_NOT_MSGPACK, SVS_TRUNCATED,
 * SVS_TRAILING, SVS_TOO_DEEP, SVS_WRONG_TYPE, SVS_TOO_LARGE (for max.message), SVS_DUPLICATE_KEY,
 * SVS_BAD_CURSOR: report it, and go on with the next. SVS_NO_MEMORY. */
svs_code partition_child_send(struct partition_child *c, const void *entry, size_t size, const void *at,
                              size_t at_size, svs_error *err);

/* Where the log is to be read from: after the last entry that was answered for. *size 0: from its beginning.
 * Returns the generation, which changes when entries that were sent are void; 0: not known yet. */
int64_t partition_child_place(const struct partition_child *c, const void **at, size_t *size);
int64_t partition_child_next(const struct partition_child *c);       /* elements of the log before it; -1 */
int64_t partition_child_unanswered(const struct partition_child *c); /* entries */
uint64_t partition_child_epoch(const struct partition_child *c);     /* of the stream; 0: not known yet */

/* Begins to save: waits for all replies, takes a checkpoint, exports it and calls `saved`. Nothing happens
 * unless it is READY. */
void partition_child_save(struct partition_child *c);

/* Ends the process: SIGTERM (it keeps a checkpoint), after 10 s SIGKILL. Turns follow until DEAD. */
void partition_child_end(struct partition_child *c);

#endif
