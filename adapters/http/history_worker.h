/* history_worker.h: the thread that the history's file belongs to. Its owner never waits for a disk: it hands
 * over points, events and questions, and gets answers back when the descriptor is readable.
 *
 * The queue to the thread is bounded. Points and events that do not fit are dropped and counted; questions
 * that do not fit are not taken. */
#ifndef HTTP_HISTORY_WORKER_H
#define HTTP_HISTORY_WORKER_H

#include "history_answer.h"

struct history_worker;

#define HISTORY_REASON 600 /* bytes of a text that may hold two paths */

/* How the history is, at one moment. */
struct history_state {
    bool ok;                     /* false: `reason` says what is wrong, in one sentence */
    char reason[HISTORY_REASON]; /* printable */
    uint64_t file;               /* counts the files that it has begun */
    int64_t errors;              /* calls of the file that failed */
    int64_t dropped; /* points and events that are not in the history because a disk was slow or full */
    int64_t damaged; /* points and events that were read and were damaged */
};

/* Opens the history and starts the thread. path NULL: in memory. A file that cannot be used and is not the
 * user's mistake is reported in the state; the history is then in memory, or in a new file. NULL: SVS_IO,
 * SVS_INVALID, SVS_NO_MEMORY. */
struct history_worker *http_history_worker_new(const char *path, double days, svs_error *err);

/* Writes what there is, ends the thread, and calls no answer any more. Waits at most some seconds for a disk
 * that does not answer. *w becomes NULL. */
void http_history_worker_free(struct history_worker **w);

int http_history_worker_fd(const struct history_worker *w); /* readable: call the turn */
void http_history_worker_turn(struct history_worker *w);    /* calls answers, logs changes of the state */
void http_history_worker_state(struct history_worker *w, struct history_state *out);

/* Hands over the figures of one second. */
void http_history_worker_point(struct history_worker *w, const char *stream, const struct history_point *p,
                               const char *measure);

/* Hands over an alert event as it was published. */
void http_history_worker_event(struct history_worker *w, const char *stream, const void *event, size_t size);

/* Called by the turn, with what the stream's alerts reach to. ok false: they could not be
 * written, and how far they reach is to be asked again. */
typedef void history_reached(void *user, bool ok, const struct history_taken *taken);

/* Asks how far the alerts of a stream reach. False: the queue is full, and `done` is not called. */
bool http_history_worker_reach(struct history_worker *w, const char *stream, history_reached *done,
                               void *user);

/* Hands over a reply to the request `alerts`, which asked for what is above `taken`. Where a new file has
 * begun since, it is not taken. False: the queue is full, and `done` is not called. */
bool http_history_worker_take(struct history_worker *w, const char *stream, const struct history_taken *taken,
                              const void *reply, size_t size, history_reached *done, void *user);

/* Called by the turn, with an answer that is valid during the call. */
typedef void history_answered(void *user, const struct history_answer *a);

/* False: the queue is full, and `done` is not called. */
bool http_history_worker_ask(struct history_worker *w, const struct history_question *q,
                             history_answered *done, void *user);

#endif
