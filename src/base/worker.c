#include "engine/worker.h"

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

#define LOWEST 19

struct svi_worker {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work;
    const struct svi_trade *trade;
    void *in, *out; /* guarded by the lock, as the next two */
    void *running;
    bool stop;
    bool busy; /* the owner's */
    bool started;
    int bell;
};

static void *run(void *argument) {
    svi_worker *w = argument;
    const uint64_t one = 1;
    if (!w->trade->prompt) /* of this thread alone; learning comes first */
        setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), LOWEST);
    pthread_mutex_lock(&w->lock);
    while (!w->stop) {
        if (!w->in) {
            pthread_cond_wait(&w->work, &w->lock);
            continue;
        }
        w->running = w->in;
        w->in = NULL;
        pthread_mutex_unlock(&w->lock);
        w->trade->run(w->running);
        pthread_mutex_lock(&w->lock);
        w->out = w->running;
        w->running = NULL;
        pthread_mutex_unlock(&w->lock); /* whom the bell wakes takes the processor, and wants the lock */
        ssize_t rung = write(w->bell, &one, sizeof one);
        (void)rung; /* it blocks after 2^64 rings only */
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

svi_worker *svi_worker_new(const struct svi_trade *trade, svs_error *err) {
    svi_worker *w = svi_alloc(sizeof *w);
    if (!w) {
        svi_fail_memory(err, "the worker");
        return NULL;
    }
    w->trade = trade;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->work, NULL);
    w->bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    w->started = w->bell >= 0 && pthread_create(&w->thread, NULL, run, w) == 0;
    if (!w->started) {
        svi_fail(err, SVS_IO, "the worker for %s cannot start: %s", trade->name, strerror(errno));
        svi_worker_free(&w);
    }
    return w;
}

void svi_worker_free(svi_worker **pw) {
    svi_worker *w = *pw;
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    if (w->running && w->trade->cancel)
        w->trade->cancel(w->running);
    if (w->in && w->trade->cancel)
        w->trade->cancel(w->in);
    pthread_cond_signal(&w->work);
    pthread_mutex_unlock(&w->lock);
    if (w->started)
        pthread_join(w->thread, NULL);
    if (w->bell >= 0)
        close(w->bell);
    pthread_cond_destroy(&w->work);
    pthread_mutex_destroy(&w->lock);
    svi_free(w);
    *pw = NULL;
}

int svi_worker_fd(const svi_worker *w) {
    return w->bell;
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

/* A job is taken with its ring and never before: a ring that came behind it would stand for no job, and wake
 * whoever waits for the bell for ever. */
void *svi_worker_collect(svi_worker *w) {
    uint64_t rings;
    if (read(w->bell, &rings, sizeof rings) < 0) {
        errno = 0; /* nothing had rung */
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
    struct pollfd bell = {w->bell, POLLIN, 0};
    void *job = NULL;
    while (w->busy && !(job = svi_worker_collect(w)))
        poll(&bell, 1, -1); /* an interrupted wait looks again */
    return job;
}
