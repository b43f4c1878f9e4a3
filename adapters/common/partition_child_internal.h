/* partition_child_internal.h: what the files of partition_child share.
 *
 *   partition_child.c   the life of the process: phases, turns
 *   partition_child_link.c    its sockets: entries, replies, events
 *   partition_child_save.c    checkpoints */
#ifndef PARTITION_CHILD_INTERNAL_H
#define PARTITION_CHILD_INTERNAL_H

#include "partition_child.h"
#include "partition_entries.h"
#include "partition_folder.h"
#include "partition_process.h"

#define PARTITION_PAUSE                                                                                      \
    0.1 /* seconds before a process is started again; doubled until an entry is answered */

enum partition_phase {
    PHASE_IMPORT, /* `svmstream state import` fills the folder from a checkpoint */
    PHASE_START,  /* the process runs, and has not answered a hello */
    PHASE_LIVE,   /* entries go out, replies come in */
    PHASE_DRAIN,  /* nothing is sent until all that is under way is answered; then hello, at `due` or later */
    PHASE_PAUSE,  /* no process; the next one at `due` */
    PHASE_END,    /* it was asked to end; SIGKILL at `due` */
    PHASE_DEAD
};

enum partition_step {
    SAVE_NONE,
    SAVE_WAITS,  /* until all entries are answered */
    SAVE_ASKED,  /* `save`, at the control socket */
    SAVE_MARKED, /* a marker, after all events of the samples in the checkpoint */
    SAVE_EXPORTS /* the checkpoint becomes a file; entries go out again */
};

struct partition_child {
    struct partition_options o;
    char *program, *checkpoint; /* owned; checkpoint NULL: none, or the folder has it already */
    char **arguments;           /* owned; NULL at the end */
    char why[SVS_ERROR_TEXT];
    struct partition_folder folder;
    enum partition_phase phase;
    bool fresh;                         /* the state in the folder is to be removed first */
    struct partition_process run, tool; /* tool: import or export */
    int64_t restarts;
    double due, pause; /* svi_monotonic; seconds of the next pause between two processes */
    bool answered;     /* this process has answered a hello */

    void *in, *ctl; /* sockets; NULL: not connected */
    struct subscription events;
    bool greeted;      /* a hello is under way */
    char marker;       /* digit of the marker that is awaited; 0: none */
    char markers;      /* digit of the last one; 0: none yet */
    double last_reply; /* svi_monotonic; a mark, a hello or the first entry counts, too */
    double later;      /* seconds of the next pause after a refusal for now */
    bool blocked;      /* the socket takes nothing at the moment */
    bool waiting;      /* more events have arrived than a turn hands over */
    struct partition_entries entries;
    int64_t generation, largest, credit; /* largest message, messages under way: as hello says */
    uint64_t epoch;
    char at[SVS_NAME_MAX]; /* place in the log after all answered entries */
    size_t at_size;
    int64_t next; /* element of the log after them; -1: not known */

    enum partition_step step;
    uint64_t record; /* number of the checkpoint */
    struct partition_saved saved;
    char saved_at[SVS_NAME_MAX];
};

void partition_child_log(const struct partition_child *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Connects to the process, whose sockets are there, and asks for a marker. SVS_IO. */
svs_code partition_child_link_open(struct partition_child *c, svs_error *err);
void partition_child_link_close(struct partition_child *c);

/* Asks for the next marker; c->marker is 0 once it has arrived. SVS_IO. */
svs_code partition_child_link_mark(struct partition_child *c, svs_error *err);

/* Takes events, replies, and sends; moves on between START, LIVE and DRAIN. */
void partition_child_link_turn(struct partition_child *c);

/* Moves a save on; `partition_child_save_end` ends one with this reason (NULL: it is complete), if there is
 * one. */
void partition_child_save_turn(struct partition_child *c);
void partition_child_save_end(struct partition_child *c, const char *why);

#endif
