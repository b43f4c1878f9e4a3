/* novelty_queue.h: samples that the learner is done with and whose novelty is judged on a second thread
 * (base/follower.h): their rows, what becomes of them, and their score events, which wait for that. */
#ifndef SVI_NOVELTY_QUEUE_H
#define SVI_NOVELTY_QUEUE_H

#include "base/follower.h"
#include "config/settings.h"
#include "data/message.h"
#include "alerts/alert_stage.h"
#include "wire/event.h"

#define SVI_NOVELTY_QUEUE_CAPACITY 256 /* samples; a power of 2 */

/* A score event but for what novelty says. */
struct svi_score {
    struct svi_event event;
    double interval[2];
    int predicted; /* class */
};

/* What goes to the second thread and comes back: a cache line beside the row. */
struct svi_pending_row {
    _Alignas(64) double *x;
    uint8_t *gaps; /* room for them */
    double time;   /* of the engine */
    int d;
    bool gapped, labelled, timed;
    uint8_t change; /* enum svi_alert_change; from here on the thread's, until it is done */
    struct svi_alert_scores said;
};

/* The rest of it, which stays with the first thread. */
struct svi_pending {
    svs_value id, y; /* copies */
    char text[2][SVS_NAME_MAX];
    double ts;   /* of its events */
    bool scored; /* there is a score event */
    struct svi_score score;
    double *scores; /* room for its scores and probabilities */
};

/* Sample n (from 0) of those that were taken has place n % SVI_NOVELTY_QUEUE_CAPACITY. */
struct svi_novelty_queue {
    struct svi_alert_stage *stage;
    svi_follower *follower;
    bool telling;         /* events of samples that waited go out */
    uint64_t taken, told; /* samples: put in; out again, with their events */
    struct svi_pending_row *row;
    struct svi_pending *at;
    double *rows;   /* for each d, rounded up to whole cache lines */
    uint8_t *gaps;  /* d for each */
    double *scores; /* score_capacity for each */
    int d, score_capacity;
    int columns; /* while somebody waits: those that the stage has room for */
};

/* NULL: no thread, or no memory for it. The stage is the owner's and stays where it is. */
struct svi_novelty_queue *svi_novelty_queue_new(struct svi_alert_stage *stage);
void svi_novelty_queue_free(struct svi_novelty_queue **q);

/* Room for rows of d columns and that number of scores, while nobody waits. False: there is none. */
bool svi_novelty_queue_reserve(struct svi_novelty_queue *q, int d, int scores);

/* Does somebody wait? NULL is fine. */
static inline bool svi_novelty_queue_waits(const struct svi_novelty_queue *q) {
    return q && q->taken != q->told;
}

static inline struct svi_pending *svi_novelty_queue_at(const struct svi_novelty_queue *q, uint64_t n) {
    return &q->at[n % SVI_NOVELTY_QUEUE_CAPACITY];
}
static inline struct svi_pending_row *svi_novelty_queue_row(const struct svi_novelty_queue *q, uint64_t n) {
    return &q->row[n % SVI_NOVELTY_QUEUE_CAPACITY];
}

/* Puts one more in, with its event (NULL: none); there is room. */
void svi_novelty_queue_put(struct svi_novelty_queue *q, const struct svi_message *m, double time, double ts,
                           const struct svi_score *score);

/* Judges sample n, on either thread; learns it too, unless something becomes of the alert. */
void svi_novelty_queue_assess(struct svi_novelty_queue *q, uint64_t n);

/* What of sample n the stage looks at when it judges, reports and learns. */
struct svi_alert_sample svi_novelty_queue_sample(const struct svi_novelty_queue *q, uint64_t n);

double svi_novelty_queue_memory(const struct svi_settings *s, int d, int classes); /* bytes */

#endif
