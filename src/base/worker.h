/* worker.h: one thread that does one job at a time: a refit, the writing of a checkpoint, a sync. A job
 * is handed over, a descriptor becomes readable when it is done, and the job is collected. */
#ifndef SVI_WORKER_H
#define SVI_WORKER_H

#include <stdbool.h>

#include "svmstream/error.h"

typedef struct svi_worker svi_worker;

/* What it does with a job. */
struct svi_worker_task {
    const char *name;          /* "refits": for error texts */
    void (*run)(void *job);    /* in the worker's thread */
    void (*cancel)(void *job); /* from another thread: makes run end soon; NULL = it ends by itself */
    bool prompt;               /* at normal priority, not the lowest: for short jobs that are waited for */
};

/* `task` must live as long. NULL: SVS_NO_MEMORY, SVS_IO. */
svi_worker *svi_worker_new(const struct svi_worker_task *task, svs_error *err);

/* Cancels the running job and waits for the thread. */
void svi_worker_free(svi_worker **w);

int svi_worker_fd(const svi_worker *w); /* readable when a job is done */
bool svi_worker_busy(const svi_worker *w);
void svi_worker_submit(svi_worker *w, void *job); /* not busy */
void *svi_worker_collect(svi_worker *w);          /* NULL: none is done */
void *svi_worker_wait(svi_worker *w);             /* the same, but waits; NULL: not busy */

#endif
