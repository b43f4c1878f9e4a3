/* worker.h: one thread that does one job at a time: a refit, the writing of a checkpoint, a sync. Hand-over
 * is by message: a job goes in, the bell rings, the job comes out. */
#ifndef SVI_WORKER_H
#define SVI_WORKER_H

#include <stdbool.h>

#include "svmstream/error.h"

typedef struct svi_worker svi_worker;

/* What it does with a job. */
struct svi_trade {
    const char *name;          /* "refits": for error texts */
    void (*run)(void *job);    /* in the worker's thread */
    void (*cancel)(void *job); /* from another thread: run shall end soon; NULL = it ends by itself */
    bool prompt;               /* at the usual priority, not the lowest: it hardly computes, somebody waits */
};

/* `trade` must live as long. NULL: SVS_NO_MEMORY, SVS_IO. */
svi_worker *svi_worker_new(const struct svi_trade *trade, svs_error *err);

/* Tells the running job to end, waits for the thread. */
void svi_worker_free(svi_worker **w);

int svi_worker_fd(const svi_worker *w); /* readable when a job has come out */
bool svi_worker_busy(const svi_worker *w);
void svi_worker_submit(svi_worker *w, void *job); /* not busy */
void *svi_worker_collect(svi_worker *w);          /* NULL: nothing has come out */
void *svi_worker_wait(svi_worker *w);             /* the same, waits for it; NULL: not busy */

#endif
