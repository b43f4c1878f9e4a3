#include "base/worker.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fail.h"

#define LOWEST_PRIORITY 19

struct svi_worker {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work;
    const struct svi_worker_task *task;
    void *in, *out; /* submitted, finished job; guarded by the lock, as the next two */
    void *running;
    bool stop;
    bool busy; /* only the owner's thread uses it */
    bool started;
    int done; /* eventfd: number of finished jobs not yet collected */
};

static void *worker_run(void *argument) {
    svi_worker *w = argument;
    const uint64_t one = 1;
    if (!w->task->prompt) /* affects this thread only (Linux); learning comes first */
        setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), LOWEST_PRIORITY);
    pthread_mutex_lock(&w->lock);
    while (!w->stop) {
        if (!w->in) {
            pthread_cond_wait(&w->work, &w->lock);
            continue;
        }
        w->running = w->in;
        w->in = NULL;
        pthread_mutex_unlock(&w->lock);
        w->task->run(w->running);
        pthread_mutex_lock(&w->lock);
        w->out = w->running;
        w->running = NULL;
        pthread_mutex_unlock(&w->lock); /* before the write: it wakes the owner, which takes the lock */
        ssize_t written = write(w->done, &one, sizeof one);
        (void)written; /* can fail only after 2^64 jobs */
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

svi_worker *svi_worker_new(const struct svi_worker_task *task, svs_error *err) {
    svi_worker *w = svi_new(sizeof *w, "the worker", err);
    if (!w)
        return NULL;
    w->task = task;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->work, NULL);
    w->done = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    /* pthread_create returns its error and leaves errno alone. */
    const int failure = w->done < 0 ? errno : pthread_create(&w->thread, NULL, worker_run, w);
    w->started = failure == 0;
    if (!w->started) {
        svi_fail(err, SVS_IO, "the thread for %s cannot start: %s", task->name, strerror(failure));
        svi_worker_free(&w);
    }
    return w;
}

void svi_worker_free(svi_worker **pw) {
    svi_worker *w = *pw;
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->stop = true; /* under the lock, so that no job starts between cancelling and joining */
    if (w->running && w->task->cancel)
        w->task->cancel(w->running);
    if (w->in && w->task->cancel)
        w->task->cancel(w->in);
    pthread_cond_signal(&w->work);
    pthread_mutex_unlock(&w->lock);
    if (w->started)
        pthread_join(w->thread, NULL);
    if (w->done >= 0)
        close(w->done);
    pthread_cond_destroy(&w->work);
    pthread_mutex_destroy(&w->lock);
    svi_free(w);
    *pw = NULL;
}

int svi_worker_fd(const svi_worker *w) {
    return w->done;
}

bool svi_worker_busy(const svi_worker *w) {
    return w->busy;
}

void svi_worker_submit(svi_worker *w, void *job) {
    pthread_mutex_lock(&w->lock);
    w->in = job;
    w->busy = true;
    pthread_cond_signal(&w->work);
    pthread_mutex_unlock(&w->lock);
}

/* Reads the eventfd first and takes the job only with its count: a count written after its job was taken
 * would stand for no job and leave the descriptor readable. */
void *svi_worker_collect(svi_worker *w) {
    uint64_t jobs;
    if (read(w->done, &jobs, sizeof jobs) < 0) {
        errno = 0; /* EAGAIN: no job has finished */
        return NULL;
    }
    pthread_mutex_lock(&w->lock);
    void *job = w->out;
    w->out = NULL;
    pthread_mutex_unlock(&w->lock);
    w->busy = false;
    return job;
}

void *svi_worker_wait(svi_worker *w) {
    struct pollfd done = {w->done, POLLIN, 0};
    void *job = NULL;
    while (w->busy && !(job = svi_worker_collect(w)))
        poll(&done, 1, -1); /* a signal only repeats the loop */
    return job;
}
