/* history_store.h: the history of streams: their figures in four steps of time, and their alert events.
 *
 * Points enter at one second and are merged into the point of each step that spans them. Steps begin at
 * multiples of their length, UTC. What is not written yet is part of every answer. A failure to write keeps
 * it, up to a limit, for the next attempt. Used by one thread at a time.
 *
 * Functions that return int return SQLITE_OK or the error of SQLite (http_history_db_reason). */
#ifndef HTTP_HISTORY_STORE_H
#define HTTP_HISTORY_STORE_H

#include "base/bytes.h"
#include "history_db.h"
#include "history_point.h"

#define HISTORY_STEPS       4
#define HISTORY_STREAMS     256 /* at most */
#define HISTORY_MEASURE     16  /* bytes of the name of what quality measures, with the NUL */
#define HISTORY_MEMORY_DAYS 1   /* days that a history in memory holds */

/* Length of each step in seconds, and seconds for which its points are kept at least. */
extern const int64_t http_history_step[HISTORY_STEPS], http_history_keep[HISTORY_STEPS];

/* Points of one step that are not in the file yet, ascending. */
struct history_pending {
    struct history_point *point;
    int64_t count, capacity;
};

struct history_stream {
    char *name;
    int64_t id;                               /* of its row; 0: the file has none */
    int64_t last;                             /* begin of the second of its last measurement; -1: none */
    char measure[HISTORY_MEASURE];            /* what quality is: "accuracy" or "rmse"; "": not known */
    uint64_t epoch, number;                   /* all alert events of this epoch up to this number are here */
    bool changed;                             /* `last` or `measure` are not in the file */
    struct history_point open[HISTORY_STEPS]; /* the point that the last measurement is in */
    bool is_open[HISTORY_STEPS], unsaved[HISTORY_STEPS];
    struct history_pending pending[HISTORY_STEPS];
};

struct history_store {
    struct history_db db;
    double now;  /* seconds since 1970, set by the owner: alerts are as old as their record, whatever time
                    their  samples have */
    double days; /* limit of age of everything; 0: that of the steps, and alerts for ever */
    struct history_stream *stream[HISTORY_STREAMS];
    int count;
    int64_t dropped; /* points dropped because they could not be written for too long */
    int64_t damaged; /* points and events that were read and are damaged */
};

/* Opens the file (NULL: in memory). As http_history_db_open. http_history_store_close in any case. */
enum history_opening http_history_store_open(struct history_store *h, const char *path, double days,
                                             svs_error *err);
void http_history_store_close(struct history_store *h); /* without writing */

/* The same with another file, after closing the first: what is not written yet is written to it. */
enum history_opening http_history_store_reopen(struct history_store *h, const char *path, svs_error *err);

/* The stream of that name, made at first use. NULL: there are HISTORY_STREAMS, or no memory. *result: of
 * reading what is known of it. */
struct history_stream *http_history_store_stream(struct history_store *h, const char *name, int *result);

/* The same, but only if there is anything of it in the history; NULL with SQLITE_OK: there is not. name "":
 * the only stream of the history. */
struct history_stream *http_history_store_find(struct history_store *h, const char *name, int *result);

/* The names of its streams, escaped, as far as they fit: "a, b". Returns `out`. */
char *http_history_store_names(struct history_store *h, char *out, size_t size);

/* Adds the figures of the second at p->t. measure NULL: as before. */
int http_history_store_add(struct history_store *h, const char *stream, const struct history_point *p,
                           const char *measure);

/* Gives the stream its row, within a transaction. */
int http_history_store_identify(struct history_store *h, struct history_stream *s);

/* Writes what is not written yet. `all`: points that are not over, too. */
int http_history_store_commit(struct history_store *h, bool all);

/* Puts the open points among those that http_history_store_range sees. */
void http_history_store_settle(struct history_store *h, struct history_stream *s);

/* Calls `visit` with the points of a step that begin in [from, to), ascending. */
typedef void history_visit(void *user, const struct history_point *p);
int http_history_store_range(struct history_store *h, struct history_stream *s, int step, int64_t from,
                             int64_t to, history_visit *visit, void *user);

/* Begin of the oldest point of the stream, in seconds since 1970; -1: it has no points. */
int http_history_store_first(struct history_store *h, struct history_stream *s, int64_t *first);

/* Removes some of what is too old at `now`, seconds since 1970. *more: there is more of it. */
int http_history_store_prune(struct history_store *h, double now, bool *more);

#endif
