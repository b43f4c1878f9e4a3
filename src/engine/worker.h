/* worker.h: one thread at the lowest priority that runs one refit at a time. Hand-over is by message: a job
 * goes in, its number of the bell rings, the job comes out. */
#ifndef SVI_WORKER_H
#define SVI_WORKER_H

#include "engine/refit.h"

typedef struct svi_worker svi_worker;

/* NULL: SVS_NO_MEMORY, SVS_IO. */
svi_worker *svi_worker_new(svs_error *err);

/* Tells the running job to end, waits for the thread. */
void svi_worker_free(svi_worker **w);

int svi_worker_fd(const svi_worker *w); /* readable when a job has come out */
bool svi_worker_busy(const svi_worker *w);
void svi_worker_submit(svi_worker *w, struct svi_refit *job); /* not busy */
struct svi_refit *svi_worker_collect(svi_worker *w);          /* NULL: nothing has come out */

#endif
