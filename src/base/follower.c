/* Pieces are handed over under a lock, eight at a time: the thread reserves them (`begun`), does them without
 * the lock, and counts them as done. The owner signals only a thread that sleeps, since a signal costs a
 * system call; the thread signals only an owner that waits.
 *
 * The task is handed over by its state alone, without the lock. The owner writes the task and then POSTED; the
 * thread that changes POSTED to TAKEN does it; DONE makes its results visible. The thread looks for it before each piece
 * and before it gives the lock back to sleep. An owner that finds it TAKEN polls for a bounded time and then
 * sleeps, and AWAITED asks for the signal.
 *
 * Read in order: the task, pieces, the owner's calls. */
#include "base/follower.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"

#define PIECES 8 /* done without the lock; the longest wait of an owner at a halt */

#define WAIT_POLLS 1000 /* of an owner for a task that is at work, about 20 us; then it sleeps */

/* AWAITED: taken, and its owner sleeps until it is done. */
enum follower_task_state { FREE, POSTED, TAKEN, AWAITED, DONE };

struct svi_follower {
    /* The state makes the other two and the task's results visible. On a cache line of its own, for the
     * thread reads it before each piece. */
    _Alignas(64) atomic_int task;
    svi_follower_task *run;
    void *run_user;
    _Alignas(64) pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work, progress;
    svi_follower_piece *piece;
    svi_follower_look *look; /* NULL: no announcement of pieces */
    void *user;
    bool started;
    /* guarded by the lock */
    uint64_t offered, done, begun; /* pieces below each; done <= begun <= offered unless halted */
    uint64_t wanted;               /* the owner waits until pieces below this are done; 0: it does not wait */
    bool sleeps, stopped, quit;
};

/* ---- the task */

/* Does the task if it is posted and nobody has begun it. */
static bool follower_take(svi_follower *f) {
    int state = POSTED;
    if (atomic_load_explicit(&f->task, memory_order_relaxed) != POSTED ||
        !atomic_compare_exchange_strong(&f->task, &state, TAKEN))
        return false;
    f->run(f->run_user);
    if (atomic_exchange(&f->task, DONE) == AWAITED) {
        /* The owner holds the lock from its change of the state until it sleeps. */
        pthread_mutex_lock(&f->lock);
        pthread_cond_signal(&f->progress);
        pthread_mutex_unlock(&f->lock);
    }
    return true;
}

void svi_follower_post(svi_follower *f, svi_follower_task *run, void *user) {
    f->run = run;
    f->run_user = user;
    atomic_store(&f->task, POSTED);
}

/* Waits until the thread has done the task that it has begun. It sleeps soon, since the thread may have lost
 * its processor in the middle of it. */
static void follower_await_task(svi_follower *f) {
    int state = TAKEN;
    for (int i = 0; i < WAIT_POLLS && atomic_load(&f->task) != DONE; i++) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    if (atomic_load(&f->task) == DONE)
        return;
    pthread_mutex_lock(&f->lock);
    if (atomic_compare_exchange_strong(&f->task, &state, AWAITED))
        while (atomic_load(&f->task) != DONE)
            pthread_cond_wait(&f->progress, &f->lock);
    pthread_mutex_unlock(&f->lock);
}

void svi_follower_finish(svi_follower *f) {
    if (atomic_load_explicit(&f->task, memory_order_relaxed) == FREE)
        return;
    if (!follower_take(f))
        follower_await_task(f);
    atomic_store_explicit(&f->task, FREE, memory_order_relaxed);
}

/* ---- pieces */

/* Does up to PIECES pieces. The lock is held on entry and return, but not while pieces run; `begun` reserves
 * them meanwhile, so that a halt cannot take them back. */
static void follower_step(svi_follower *f) {
    const uint64_t from = f->done, to = f->offered - from < PIECES ? f->offered : from + PIECES;
    uint64_t n = from;
    bool good = true;
    f->begun = to;
    pthread_mutex_unlock(&f->lock);
    if (f->look)
        f->look(f->user, from, to);
    do /* its owner waits for the task, and for pieces only when many are waiting */
        follower_take(f);
    while (n < to && (good = f->piece(f->user, n)) && ++n);
    if (good)
        follower_take(f);
    pthread_mutex_lock(&f->lock);
    f->done = f->begun = n;
    f->stopped = !good;
}

static void *follower_run(void *argument) {
    svi_follower *f = argument;
    pthread_mutex_lock(&f->lock);
    while (!f->quit) {
        if (f->stopped || f->done == f->offered) {
            f->sleeps = true; /* the owner signals only a sleeping follower: a signal costs a system call */
            pthread_cond_wait(&f->work, &f->lock);
            f->sleeps = false;
            continue;
        }
        follower_step(f);
        if (f->wanted > 0 && (f->done >= f->wanted || f->stopped))
            pthread_cond_signal(&f->progress);
    }
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

/* ---- the owner's calls */

svi_follower *svi_follower_new(const char *name, svi_follower_piece *piece, void *user, svs_error *err) {
    svi_follower *f = svi_new(sizeof *f, name, err);
    if (!f)
        return NULL;
    f->piece = piece;
    f->user = user;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->work, NULL);
    pthread_cond_init(&f->progress, NULL);
    const int failure = pthread_create(&f->thread, NULL, follower_run, f);
    f->started = failure == 0;
    if (!f->started) {
        svi_fail(err, SVS_IO, "the thread for %s cannot start: %s", name, strerror(failure));
        svi_follower_free(&f);
    }
    return f;
}

void svi_follower_look_ahead(svi_follower *f, svi_follower_look *look) {
    pthread_mutex_lock(&f->lock);
    f->look = look;
    pthread_mutex_unlock(&f->lock);
}

void svi_follower_free(svi_follower **pf) {
    svi_follower *f = *pf;
    if (!f)
        return;
    pthread_mutex_lock(&f->lock); /* without the lock the signal could come just before the thread sleeps */
    f->quit = true;
    pthread_cond_signal(&f->work);
    pthread_mutex_unlock(&f->lock);
    if (f->started)
        pthread_join(f->thread, NULL);
    pthread_cond_destroy(&f->progress);
    pthread_cond_destroy(&f->work);
    pthread_mutex_destroy(&f->lock);
    svi_free(f);
    *pf = NULL;
}

/* Copies the state and releases the lock, in this order: afterwards it may change. */
static struct svi_follower_state follower_leave(svi_follower *f) {
    const struct svi_follower_state state = {f->done, f->stopped};
    pthread_mutex_unlock(&f->lock);
    return state;
}

/* The lock must be held; it is released while waiting. */
static void follower_await(svi_follower *f, uint64_t until) {
    f->wanted = until;
    while (f->done < until && !f->stopped)
        pthread_cond_wait(&f->progress, &f->lock);
    f->wanted = 0;
}

struct svi_follower_state svi_follower_offer(svi_follower *f, uint64_t end) {
    pthread_mutex_lock(&f->lock);
    f->offered = end;
    if (f->sleeps && !f->stopped)
        pthread_cond_signal(&f->work);
    return follower_leave(f);
}

struct svi_follower_state svi_follower_wait(svi_follower *f, uint64_t until) {
    pthread_mutex_lock(&f->lock);
    follower_await(f, until);
    return follower_leave(f);
}

struct svi_follower_state svi_follower_halt(svi_follower *f) {
    pthread_mutex_lock(&f->lock);
    f->offered = f->begun > f->done ? f->begun : f->done; /* the current batch cannot be taken back */
    follower_await(f, f->offered);
    return follower_leave(f);
}

void svi_follower_resume(svi_follower *f, uint64_t done) {
    pthread_mutex_lock(&f->lock);
    f->done = f->begun = done;
    f->offered = f->offered > done ? f->offered : done;
    f->stopped = false;
    if (f->sleeps && f->offered > done)
        pthread_cond_signal(&f->work);
    pthread_mutex_unlock(&f->lock);
}
