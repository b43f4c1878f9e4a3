/* worker.h: one thread that does one job at a time: a refit, the writing of a checkpoint, a sync. The owner
 * submits a job, a descriptor becomes readable when it is done, and the owner collects it. */
#ifndef SVI_WORKER_H
#define SVI_WORKER_H

#include <stdbool.h>

#include "svmstream/error.h"

typedef struct svi_worker svi_worker;

/* How a worker handles its jobs. */
struct svi_worker_task {
    const char *name;       /* "refits": for error texts */
    void (*run)(void *job); /* in the worker's thread */
    void (*cancel)(
        void *job); /* called from the owner's thread: makes run end soon; NULL: it ends by itself */
    bool prompt;    /* normal priority instead of the lowest: for short jobs that others wait for */
};

/* `task` must outlive the worker. NULL: SVS_NO_MEMORY, SVS_IO (no thread). */
svi_worker *svi_worker_new(const struct svi_worker_task *task, svs_error *err);

/* Cancels the running and the waiting job, waits for the thread and sets *w to NULL. */
void svi_worker_free(svi_worker **w);

int svi_worker_fd(const svi_worker *w); /* readable when a job is done */
bool svi_worker_busy(const svi_worker *w);
void svi_worker_submit(svi_worker *w, void *job); /* only when not busy; the job stays the owner's */
void *svi_worker_collect(svi_worker *w);          /* the finished job; NULL: it is not done yet */
void *svi_worker_wait(svi_worker *w);             /* the same, but waits; NULL: not busy */

#endif
