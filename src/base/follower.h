/* follower.h: a thread that does numbered pieces of work in their order, behind the thread that hands them
 * over. Which of the two does a piece is a question of time; that each is done once, in order, and after all
 * before it, is not. */
#ifndef SVI_FOLLOWER_H
#define SVI_FOLLOWER_H

#include <stdbool.h>
#include <stdint.h>

#include "svmstream/error.h"

typedef struct svi_follower svi_follower;

/* Does piece n, in the follower's thread. False: its owner has to go on with it (svi_follower_resume). */
typedef bool svi_follower_piece(void *user, uint64_t n);

/* How far it is. */
struct svi_follower_state {
    uint64_t done; /* pieces below this number are */
    bool stopped;  /* at that number: it returned false */
};

/* `name`: for error texts. The first piece is number 0. NULL: SVS_NO_MEMORY, SVS_IO (no thread). */
svi_follower *svi_follower_new(const char *name, svi_follower_piece *piece, void *user, svs_error *err);

/* From now on, while nothing is offered: called in its thread with the pieces, from..to - 1, that it is going
 * to do next. */
typedef void svi_follower_look(void *user, uint64_t from, uint64_t to);
void svi_follower_look_ahead(svi_follower *f, svi_follower_look *look);

/* Waits for the piece in hand. */
void svi_follower_free(svi_follower **f);

/* Pieces below `end` are there. Does not wait. What the follower wrote for those that are done may be read,
 * and while it is stopped all that pieces touch. */
struct svi_follower_state svi_follower_offer(svi_follower *f, uint64_t end);

/* Waits until pieces below `until`, which were offered, are done, or it has stopped. */
struct svi_follower_state svi_follower_wait(svi_follower *f, uint64_t until);

/* Takes back what it has not begun, and waits for the rest: from `done` on the pieces are the owner's, who
 * ends with svi_follower_resume. Where it has stopped instead, some pieces that it had begun with may be its
 * own still: they are done or taken back by svi_follower_resume and another halt. */
struct svi_follower_state svi_follower_halt(svi_follower *f);

/* After it was halted or has stopped: all below `done` are done, by the owner. It goes on there with what was
 * offered. */
void svi_follower_resume(svi_follower *f, uint64_t done);

#endif
