/* follower.h: a thread that does numbered pieces of work in order, for a thread that offers them, its owner.
 * Timing decides which of the two does a piece; but each piece is done exactly once, in order, after all
 * pieces before it.
 *
 * Between pieces the thread also does one task at a time that its owner needs back some pieces later
 * (svi_follower_post). A task never wakes the thread, and its owner does itself what the thread has not
 * begun. */
#ifndef SVI_FOLLOWER_H
#define SVI_FOLLOWER_H

#include <stdbool.h>
#include <stdint.h>

#include "svmstream/error.h"

typedef struct svi_follower svi_follower;

/* Does piece n, in the follower's thread. False: the follower stops, and its owner has to continue with this
 * piece (svi_follower_resume). */
typedef bool svi_follower_piece(void *user, uint64_t n);

/* Progress of the follower. */
struct svi_follower_state {
    uint64_t done; /* pieces below this number are done */
    bool stopped;  /* piece `done` returned false */
};

/* `name`: for error texts. The first piece is number 0. NULL: SVS_NO_MEMORY, SVS_IO (no thread). */
svi_follower *svi_follower_new(const char *name, svi_follower_piece *piece, void *user, svs_error *err);

/* Called in the follower's thread with the pieces from .. to - 1 that it will do next. Set it while nothing
 * is offered. */
typedef void svi_follower_look(void *user, uint64_t from, uint64_t to);
void svi_follower_look_ahead(svi_follower *f, svi_follower_look *look);

/* Waits for the pieces and the task that it has begun, ends the thread and sets *f to NULL. */
void svi_follower_free(svi_follower **f);

/* Makes the pieces below `end` available. Does not wait. The owner may read the results of the pieces that
 * are done, and everything that pieces touch while the follower is stopped. */
struct svi_follower_state svi_follower_offer(svi_follower *f, uint64_t end);

/* Waits until the pieces below `until`, which must have been offered, are done, or the follower has stopped.
 */
struct svi_follower_state svi_follower_wait(svi_follower *f, uint64_t until);

/* Takes back the pieces it has not begun and waits for the others: from `done` on the pieces are the owner's,
 * until svi_follower_resume. If the follower stopped instead, pieces of its current batch after `done` still
 * count as offered: svi_follower_resume and another halt finish them or take them back. */
struct svi_follower_state svi_follower_halt(svi_follower *f);

/* After a halt or a stop: states that the owner has done all pieces below `done`. The follower continues
 * there with the offered ones. */
void svi_follower_resume(svi_follower *f, uint64_t done);

typedef void svi_follower_task(void *user);

/* Leaves a task to the follower, if it has time before svi_follower_finish. One at a time: the last one was
 * finished. */
void svi_follower_post(svi_follower *f, svi_follower_task *run, void *user);

/* Returns when the task is done: does it here unless the follower has begun it. Its results can be read from
 * then on. Without a task it returns at once. */
void svi_follower_finish(svi_follower *f);

#endif
