/* novelty_queue.h: samples that the learner is done with and whose novelty is judged on a second thread
 * (base/follower.h): their rows, what becomes of them, and their score events, which wait for that. */
#ifndef SVI_NOVELTY_QUEUE_H
#define SVI_NOVELTY_QUEUE_H

#include "base/follower.h"
#include "config/settings.h"
#include "data/message.h"
#include "engine/novelty_stage.h"
#include "wire/event.h"

#define SVI_NOVELTY_QUEUE_ROOM 256 /* samples; a power of 2 */

/* A score event but for what novelty says. */
struct svi_score {
    struct svi_event event;
    double interval[2];
    int predicted; /* class */
};

struct svi_pending {
    struct svi_message m; /* x, d, gaps, id and y alone; copies */
    uint8_t *gaps;        /* room for them */
    char text[2][SVS_NAME_MAX];
    double time, ts; /* engine time; of its events */
    bool scored;     /* there is a score event */
    struct svi_score score;
    double *scores; /* room for its scores and probabilities */

    enum svi_alert_change change; /* from here on the thread's, until it is done */
    bool judged;
    struct svi_judgement judgement;
};

/* Sample n (from 0) of those that were taken has place n % SVI_NOVELTY_QUEUE_ROOM. */
struct svi_novelty_queue {
    struct svi_novelty_stage *stage;
    svi_follower *follower;
    bool telling;         /* events of samples that waited go out */
    uint64_t taken, told; /* samples: put in; out again, with their events */
    struct svi_pending *at;
    double *rows;   /* d for each */
    uint8_t *gaps;  /* d for each */
    double *scores; /* score_room for each */
    int d, score_room;
};

/* NULL: no thread, or no memory for it. The stage is the owner's and stays where it is. */
struct svi_novelty_queue *svi_novelty_queue_new(struct svi_novelty_stage *stage);
void svi_novelty_queue_free(struct svi_novelty_queue **q);

/* Room for rows of d columns and so many scores, while nobody waits. False: there is none. */
bool svi_novelty_queue_reserve(struct svi_novelty_queue *q, int d, int scores);

/* Does somebody wait? NULL is fine. */
static inline bool svi_novelty_queue_waits(const struct svi_novelty_queue *q) {
    return q && q->taken != q->told;
}

static inline struct svi_pending *svi_novelty_queue_at(const struct svi_novelty_queue *q, uint64_t n) {
    return &q->at[n % SVI_NOVELTY_QUEUE_ROOM];
}

/* Copies what the judgement needs, and the event; the place is free and there is room. */
void svi_pending_fill(struct svi_pending *p, const struct svi_message *m, double time, double ts,
                      const struct svi_score *score);

/* Judges it, on either thread; learns it too, unless something becomes of the alert. */
void svi_pending_judge(struct svi_pending *p, struct svi_novelty_stage *stage);

double svi_novelty_queue_memory(const struct svi_settings *s, int d, int classes); /* bytes */

#endif
