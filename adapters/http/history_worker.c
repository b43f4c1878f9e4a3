/* The history's thread: a queue of jobs, the store, and what to do when its file fails.
 *
 * Points are written every COMMIT_SECONDS in one transaction, alert events at once. A write that fails is
 * tried again with the next; until then its points wait in memory (history_store.c).
 *
 * A file that SQLite calls damaged is closed and renamed, and a new one begins: nothing of it is deleted, and
 * the history continues in it. The alerts are fetched again from the stream, as far as it keeps them. A file
 * that somebody moved away or deleted is no longer written either, and a new one begins under its name.
 *
 * Old rows are removed only while the wall clock has run evenly for some minutes: a clock that jumps ahead
 * for a moment must not remove a year.
 * Two threads: the functions before the owner's side run on the history's (those that open a file also on the
 * owner's, before the thread exists), the others on the owner's. `mutex` guards what both use and is never
 * held during a call of the store. Read keeper_run, keeper_do, keeper_commit. Every job that is accepted is
 * done; those with a callback return by `done`. */
#include "history_worker.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "compress.h"
#include "http_log.h"

#define COMMIT_SECONDS 5.0
#define PRUNE_SECONDS  60.0  /* between removals of old rows */
#define PRUNE_SOON     1.0   /* ... while there are more */
#define EVEN_SECONDS   600.0 /* that the wall clock has run evenly */
#define JUMP_SECONDS   30.0  /* a larger step of the wall clock counts as a jump */
#define MAX_JOBS       20000
#define MAX_BYTES      ((size_t)64 << 20)
#define END_SECONDS    10 /* for a disk, at the end */

enum job_kind { JOB_POINT, JOB_EVENT, JOB_TAKE, JOB_ASK };

struct history_job {
    struct history_job *next;
    enum job_kind kind;
    size_t bytes; /* of the job, for the limit */
    bool ok;
    struct history_question question; /* its stream is that of every kind */
    struct history_point point;
    char measure[HISTORY_MEASURE];
    struct svi_bytes data; /* event or reply */
    struct history_taken taken;
    struct history_answer answer;
    history_reached *reached;
    history_answered *answered;
    void *user;
};

struct job_list {
    struct history_job *first, **last;
};

struct history_worker {
    pthread_t thread;
    pthread_mutex_t mutex; /* guards all up to `state` */
    pthread_cond_t wake;
    struct job_list todo, done;
    int64_t jobs;
    size_t bytes;
    bool ending;
    struct history_state state;
    uint64_t changes; /* of the state's text */
    /* of the owner */
    int event;
    uint64_t logged;
    /* of the thread */
    struct history_store store;
    const char *path; /* NULL: in memory, from the beginning or since its file failed */
    char *own_path;
    char lasting[HISTORY_REASON]; /* stays true until the end; "": nothing */
    uint64_t file;                /* counts the files that it has begun */
    double commit_at, prune_at;   /* svi_monotonic */
    double even_since, offset;    /* of the wall clock */
};

static void list_clear(struct job_list *l) {
    l->first = NULL;
    l->last = &l->first;
}

static void list_put(struct job_list *l, struct history_job *j) {
    j->next = NULL;
    *l->last = j;
    l->last = &j->next;
}

static void job_free(struct history_job *j) {
    svi_bytes_clear(&j->data);
    svi_bytes_clear(&j->answer.body);
    svi_free(j->answer.packed);
    svi_free(j);
}

/* ---- the state's text */

static void keeper_signal(struct history_worker *w) {
    const uint64_t one = 1;
    if (write(w->event, &one, sizeof one) < 0)
        return; /* the descriptor is readable already */
}

static void keeper_report(struct history_worker *w, bool ok, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void keeper_report(struct history_worker *w, bool ok, const char *format, ...) {
    char text[HISTORY_REASON];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&w->mutex);
    const bool changed = ok != w->state.ok || strcmp(text, w->state.reason) != 0;
    w->changes += changed;
    w->state.ok = ok;
    snprintf(w->state.reason, sizeof w->state.reason, "%s", text);
    pthread_mutex_unlock(&w->mutex);
    if (changed)
        keeper_signal(w);
}

static char *keeper_shown(const struct history_worker *w, char out[256]) {
    return w->path ? svi_escape(out, 256, w->path, strlen(w->path)) : strcpy(out, "the history in memory");
}

static void keeper_count(struct history_worker *w, int64_t errors) {
    pthread_mutex_lock(&w->mutex);
    w->state.errors += errors;
    w->state.damaged = w->store.damaged;
    pthread_mutex_unlock(&w->mutex);
}

/* ---- a file that fails */

static enum history_opening keeper_reopen(struct history_worker *w, svs_error *err) {
    pthread_mutex_lock(&w->mutex);
    w->state.file = ++w->file;
    pthread_mutex_unlock(&w->mutex);
    return http_history_store_reopen(&w->store, w->path, err);
}

static void keeper_to_memory(struct history_worker *w, const char *why) {
    svs_error err = {0};
    snprintf(w->lasting, sizeof w->lasting, "%s; the history is in memory until the next start", why);
    w->path = NULL;
    if (!(w->store.days > 0 && w->store.days < HISTORY_MEMORY_DAYS))
        w->store.days = HISTORY_MEMORY_DAYS;
    keeper_reopen(w, &err);
    keeper_report(w, false, "%s", w->lasting);
}

/* Renames the damaged file, and begins a new one. */
static void keeper_set_aside(struct history_worker *w) {
    char name[HISTORY_REASON], shown[256], other[256];
    svs_error err = {0};
    keeper_shown(w, shown);
    http_history_db_close(&w->store.db);
    if (w->path && http_history_db_set_aside(w->path, name, sizeof name, &err) != SVS_OK) {
        keeper_to_memory(w, err.text);
        return;
    }
    if (keeper_reopen(w, &err) != HISTORY_OPENED) {
        keeper_to_memory(w, err.text);
        return;
    }
    snprintf(w->lasting, sizeof w->lasting, "%s was damaged; it is kept as %s, and a new one has begun",
             shown, w->path ? svi_escape(other, sizeof other, name, strlen(name)) : "nothing");
    keeper_report(w, false, "%s", w->lasting);
}

/* A result of the store that is not SQLITE_OK. */
static void keeper_fail(struct history_worker *w, int result) {
    char shown[256];
    keeper_count(w, 1);
    /* Only damage moves the file: a full disk or a lock may pass, and pending points wait for that. */
    if (http_history_db_is_damage(result)) {
        keeper_set_aside(w);
        return;
    }
    keeper_report(
        w, false,
        "%s: %s; figures wait in memory for a while, and alerts are fetched again when it can be written",
        keeper_shown(w, shown), http_history_db_reason(&w->store.db, result));
}

static void keeper_commit(struct history_worker *w, bool all) {
    char shown[256];
    svs_error err = {0};
    if (!http_history_db_in_place(&w->store.db)) {
        keeper_count(w, 1);
        if (keeper_reopen(w, &err) != HISTORY_OPENED) {
            keeper_to_memory(w, err.text);
        } else {
            snprintf(w->lasting, sizeof w->lasting, "%s was moved or deleted; a new one has begun",
                     keeper_shown(w, shown));
            keeper_report(w, false, "%s", w->lasting);
        }
    }
    /* After the file was checked: a file that was moved away gets no more writes. */
    const int rc = http_history_store_commit(&w->store, all);
    pthread_mutex_lock(&w->mutex);
    w->state.dropped += w->store.dropped;
    w->state.damaged = w->store.damaged;
    pthread_mutex_unlock(&w->mutex);
    w->store.dropped = 0;
    if (rc != SQLITE_OK)
        keeper_fail(w, rc);
    else
        keeper_report(w, w->lasting[0] == '\0', "%s", w->lasting);
}

static void keeper_prune(struct history_worker *w, double now) {
    const double wall = svi_wall_clock(), offset = wall - now;
    bool more = false;
    if (fabs(offset - w->offset) > JUMP_SECONDS) {
        w->offset = offset;
        w->even_since = now;
    }
    w->prune_at = now + PRUNE_SECONDS;
    if (now - w->even_since < EVEN_SECONDS)
        return;
    const int rc = http_history_store_prune(&w->store, wall, &more);
    if (rc != SQLITE_OK)
        keeper_fail(w, rc);
    else if (more)
        w->prune_at = now + PRUNE_SOON;
}

/* ---- jobs */

static void keeper_do(struct history_worker *w, struct history_job *j) {
    const char *stream = j->question.stream;
    int rc = SQLITE_OK;
    w->store.now = svi_wall_clock();
    switch (j->kind) {
    case JOB_POINT:
        rc = http_history_store_add(&w->store, stream, &j->point, j->measure[0] ? j->measure : NULL);
        break;
    case JOB_EVENT:
        rc = http_history_alerts_add(&w->store, stream, j->data.data, j->data.size);
        break;
    case JOB_TAKE: {
        if (j->data.size > 0) {
            /* What lies below the reply is not in a file that has begun since it was asked for. */
            rc = j->taken.file != w->file
                     ? SQLITE_ABORT
                     : http_history_alerts_take(&w->store, stream, j->data.data, j->data.size, &j->taken);
            break;
        }
        const struct history_stream *s = http_history_store_stream(&w->store, stream, &rc);
        if (s)
            j->taken = (struct history_taken){.epoch = s->epoch, .number = s->number};
        break;
    }
    case JOB_ASK:
        rc = http_history_answer(&w->store, &j->question, &j->answer);
        if (rc != SQLITE_OK) {
            j->answer.status = 503;
            j->answer.code = "io";
            snprintf(j->answer.detail, sizeof j->answer.detail, "the history cannot be read: %s",
                     http_history_db_reason(&w->store.db, rc));
        }
    }
    j->ok = rc == SQLITE_OK;
    j->taken.file = w->file;
    if (rc != SQLITE_OK && rc != SQLITE_ABORT)
        keeper_fail(w, rc);
    else
        keeper_count(w, 0);
}

/* Here, and not on the owner's thread: a day takes longer to compress than everything else. */
static void keeper_pack(struct history_job *j) {
    const struct svi_bytes *body = &j->answer.body;
    if (j->ok && j->question.gzip && j->answer.status == 200 && http_compress_pays(HISTORY_TYPE, body->size))
        j->answer.packed = http_compress(body->data, body->size, &j->answer.packed_size);
}

/* The next job, after waiting for one until `until` (svi_monotonic). NULL: none. */
static struct history_job *keeper_next(struct history_worker *w, double until) {
    struct timespec at;
    pthread_mutex_lock(&w->mutex);
    at.tv_sec = (time_t)until;
    at.tv_nsec = (long)((until - floor(until)) * 1e9);
    while (!w->todo.first && !w->ending && pthread_cond_timedwait(&w->wake, &w->mutex, &at) == 0)
        ;
    struct history_job *j = w->todo.first;
    if (j && !(w->todo.first = j->next))
        w->todo.last = &w->todo.first;
    pthread_mutex_unlock(&w->mutex);
    return j;
}

static void keeper_finish(struct history_worker *w, struct history_job *j) {
    /* Once it is in `done` it belongs to the owner, which may free it at once. */
    const bool answers = j->kind == JOB_TAKE || j->kind == JOB_ASK;
    pthread_mutex_lock(&w->mutex);
    w->jobs--;
    w->bytes -= j->bytes;
    if (answers)
        list_put(&w->done, j);
    pthread_mutex_unlock(&w->mutex);
    if (answers)
        keeper_signal(w);
    else
        job_free(j);
}

static void *keeper_run(void *user) {
    struct history_worker *w = user;
    for (;;) {
        struct history_job *j = keeper_next(w, w->commit_at);
        if (j) {
            keeper_do(w, j);
            keeper_pack(j);
            keeper_finish(w, j);
        }
        pthread_mutex_lock(&w->mutex);
        /* Only with an empty queue: what was accepted is written before the end. */
        const bool over = w->ending && !w->todo.first;
        pthread_mutex_unlock(&w->mutex);
        if (over)
            break;
        /* After each job, too: a queue that never empties must not delay the commit. */
        const double now = svi_monotonic();
        if (now >= w->commit_at) {
            keeper_commit(w, false);
            w->commit_at = now + COMMIT_SECONDS;
        }
        if (now >= w->prune_at)
            keeper_prune(w, now);
    }
    keeper_commit(w, true);
    return NULL;
}

/* ---- the owner's side */

/* Opens the file, or what takes its place. False: the user has to do something first. */
static bool keeper_open(struct history_worker *w, double days, svs_error *err) {
    char why[HISTORY_REASON];
    switch (http_history_store_open(&w->store, w->path, days, err)) {
    case HISTORY_OPENED:
        return true;
    case HISTORY_REFUSED:
        return false;
    case HISTORY_DAMAGED:
        keeper_set_aside(w);
        return true;
    default:
        if (!w->path)
            return false;
        snprintf(why, sizeof why, "%s", err->text);
        keeper_to_memory(w, why);
        return true;
    }
}

static void keeper_prepare(struct history_worker *w) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&w->mutex, NULL);
    pthread_cond_init(&w->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    list_clear(&w->todo);
    list_clear(&w->done);
    w->state.ok = true;
    w->store.db.fd = -1;
    w->commit_at = w->prune_at = w->even_since = svi_monotonic();
    w->offset = svi_wall_clock() - w->even_since;
}

static svs_code keeper_start(struct history_worker *w, svs_error *err) {
    sigset_t all, before;
    /* Signals are for the owner's thread. */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    const int failed = pthread_create(&w->thread, NULL, keeper_run, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed ? svi_fail(err, SVS_IO, "no thread for the history: %s", strerror(failed)) : SVS_OK;
}

static void keeper_clear(struct history_worker *w) {
    http_history_store_close(&w->store);
    pthread_mutex_destroy(&w->mutex);
    pthread_cond_destroy(&w->wake);
    svi_free(w->own_path);
    svi_free(w);
}

struct history_worker *http_history_worker_new(const char *path, double days, svs_error *err) {
    struct history_worker *w = svi_new(sizeof *w, "the history", err);
    if (!w)
        return NULL;
    keeper_prepare(w);
    /* A file that reaches the limit of the process is a write that fails, not the end of the program. */
    signal(SIGXFSZ, SIG_IGN);
    if ((w->event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) < 0)
        svi_fail(err, SVS_IO, "no descriptor for the history: %s", strerror(errno));
    else if (path && !(w->own_path = svi_alloc_plain(strlen(path) + 1)))
        svi_fail_memory(err, "the history's path");
    else {
        w->path = path ? strcpy(w->own_path, path) : NULL;
        if (keeper_open(w, days, err) && keeper_start(w, err) == SVS_OK)
            return w;
    }
    if (w->event >= 0)
        close(w->event);
    keeper_clear(w);
    return NULL;
}

void http_history_worker_free(struct history_worker **worker) {
    struct history_worker *w = *worker;
    struct timespec until;
    *worker = NULL;
    if (!w)
        return;
    pthread_mutex_lock(&w->mutex);
    w->ending = true;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->mutex);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += END_SECONDS;
    if (pthread_timedjoin_np(w->thread, NULL, &until) != 0) {
        http_log("the disk of the history does not answer; its last seconds are lost");
        return; /* the thread still uses all of it: it is not freed */
    }
    for (struct history_job *j = w->done.first, *next; j; j = next) {
        next = j->next;
        job_free(j);
    }
    close(w->event);
    keeper_clear(w);
}

int http_history_worker_fd(const struct history_worker *w) {
    return w->event;
}

void http_history_worker_state(struct history_worker *w, struct history_state *out) {
    pthread_mutex_lock(&w->mutex);
    *out = w->state;
    pthread_mutex_unlock(&w->mutex);
}

void http_history_worker_turn(struct history_worker *w) {
    uint64_t count;
    struct history_state state;
    const ssize_t got = read(w->event, &count, sizeof count);
    (void)got; /* read before the list is taken: what is done after that signals again */
    pthread_mutex_lock(&w->mutex);
    struct history_job *j = w->done.first, *next;
    list_clear(&w->done);
    const bool changed = w->logged != w->changes;
    w->logged = w->changes;
    state = w->state;
    pthread_mutex_unlock(&w->mutex);
    if (changed)
        http_log("history: %s", state.ok ? "written again" : state.reason);
    for (; j; j = next) {
        next = j->next;
        if (j->kind == JOB_TAKE)
            j->reached(j->user, j->ok, &j->taken);
        else
            j->answered(j->user, &j->answer);
        job_free(j);
    }
}

/* A job with a copy of `data`. NULL: no memory. */
static struct history_job *job_new(enum job_kind kind, const char *stream, const void *data, size_t size) {
    struct history_job *j = svi_alloc(sizeof *j);
    if (j && svi_bytes_append(&j->data, data, size) != SVS_OK) {
        svi_free(j);
        return NULL;
    }
    if (j) {
        j->kind = kind;
        j->bytes = sizeof *j + size;
        snprintf(j->question.stream, sizeof j->question.stream, "%s", stream);
    }
    return j;
}

/* False: the queue is full, or there was no memory; the job is freed. */
static bool keeper_submit(struct history_worker *w, struct history_job *j) {
    pthread_mutex_lock(&w->mutex);
    const bool fits = j && w->jobs < MAX_JOBS && w->bytes + j->bytes <= MAX_BYTES;
    if (fits) {
        list_put(&w->todo, j);
        w->jobs++;
        w->bytes += j->bytes;
        pthread_cond_signal(&w->wake);
    }
    pthread_mutex_unlock(&w->mutex);
    if (!fits && j)
        job_free(j);
    return fits;
}

/* What is dropped here has a slow disk as its cause, which the thread itself cannot report. */
static void keeper_dropped(struct history_worker *w) {
    pthread_mutex_lock(&w->mutex);
    if (w->state.dropped++ == 0 || w->state.ok) {
        w->state.ok = false;
        snprintf(w->state.reason, sizeof w->state.reason,
                 "the disk does not keep up; figures and alerts are missing in the history");
        w->changes++;
    }
    pthread_mutex_unlock(&w->mutex);
    keeper_signal(w);
}

void http_history_worker_point(struct history_worker *w, const char *stream, const struct history_point *p,
                               const char *measure) {
    struct history_job *j = job_new(JOB_POINT, stream, NULL, 0);
    if (j) {
        j->point = *p;
        snprintf(j->measure, sizeof j->measure, "%s", measure ? measure : "");
    }
    if (!keeper_submit(w, j))
        keeper_dropped(w);
}

void http_history_worker_event(struct history_worker *w, const char *stream, const void *event, size_t size) {
    if (!keeper_submit(w, job_new(JOB_EVENT, stream, event, size)))
        keeper_dropped(w);
}

static bool keeper_submit_taken(struct history_worker *w, struct history_job *j, history_reached *done,
                                void *user) {
    if (j) {
        j->reached = done;
        j->user = user;
    }
    return keeper_submit(w, j);
}

bool http_history_worker_reach(struct history_worker *w, const char *stream, history_reached *done,
                               void *user) {
    return keeper_submit_taken(w, job_new(JOB_TAKE, stream, NULL, 0), done, user);
}

bool http_history_worker_take(struct history_worker *w, const char *stream, const struct history_taken *taken,
                              const void *reply, size_t size, history_reached *done, void *user) {
    struct history_job *j = job_new(JOB_TAKE, stream, reply, size);
    if (j)
        j->taken = *taken;
    return keeper_submit_taken(w, j, done, user);
}

bool http_history_worker_ask(struct history_worker *w, const struct history_question *q,
                             history_answered *done, void *user) {
    struct history_job *j = job_new(JOB_ASK, q->stream, NULL, 0);
    if (j) {
        j->question = *q;
        j->answered = done;
        j->user = user;
    }
    return keeper_submit(w, j);
}
