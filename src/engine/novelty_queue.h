/* novelty_queue.h: samples that the learner has finished and whose novelty is assessed on a second thread
 * (base/follower.h): their rows, the results, and their score events, which wait for them. */
#ifndef SVI_NOVELTY_QUEUE_H
#define SVI_NOVELTY_QUEUE_H

#include "base/follower.h"
#include "config/settings.h"
#include "data/message.h"
#include "alerts/alert_stage.h"
#include "wire/event.h"
#include "wire/reply_scores.h"

#define SVI_NOVELTY_QUEUE_CAPACITY 256 /* samples; a power of 2 */

/* A score event without the results of novelty. */
struct svi_score {
    bool published;                 /* it is due as an event */
    struct svi_reply_scores *reply; /* of its message, which receives it too; NULL: nobody asked */
    struct svi_event event;
    double interval[2];
    int predicted; /* class */
};

/* The part of a sample that both threads use: one cache line, besides the row. */
struct svi_pending_row {
    _Alignas(64) double *x; /* d values, in a buffer of the queue */
    uint8_t *gaps;          /* d flags, likewise; valid if `gapped` */
    int64_t number;         /* of the sample in the stream, from 1 */
    double time;            /* engine time */
    int d;
    bool gapped, labelled, timed;
    uint8_t change; /* enum svi_alert_change; this and the next are written by the thread that assesses */
    struct svi_alert_scores novelty;
};

/* The part that only the first thread uses. */
struct svi_pending {
    svs_value id, y; /* copies; strings are in `text` */
    char text[2][SVS_NAME_MAX];
    double ts;   /* of its events */
    bool scored; /* `score` is a score event to be published, or to go into a reply */
    struct svi_score score;
    double *scores; /* score_capacity values for its scores and probabilities */
};

/* Sample n (from 0, in the order of putting) has index n % SVI_NOVELTY_QUEUE_CAPACITY. */
struct svi_novelty_queue {
    struct svi_alert_stage *stage;
    svi_follower *follower;
    bool publishing;           /* events of queued samples are being published: no recursion into settle */
    uint64_t taken, published; /* samples put in; samples whose events were published */
    struct svi_pending_row *row;
    struct svi_pending *at;
    double *rows;   /* d for each sample, rounded up to whole cache lines */
    uint8_t *gaps;  /* d for each sample */
    double *scores; /* score_capacity for each sample */
    int d, score_capacity;
    int columns; /* capacity of the stage in columns, noted while no sample waits */
};

/* NULL: no thread, or no memory for it. The caller owns the stage, which must outlive the queue. */
struct svi_novelty_queue *svi_novelty_queue_new(struct svi_alert_stage *stage);
void svi_novelty_queue_free(struct svi_novelty_queue **q);

/* Capacity for rows of d columns and this number of scores; only while no sample waits. False: no memory. */
bool svi_novelty_queue_reserve(struct svi_novelty_queue *q, int d, int scores);

/* Does a sample wait for its events to be published? NULL is fine. */
static inline bool svi_novelty_queue_waits(const struct svi_novelty_queue *q) {
    return q && q->taken != q->published;
}

static inline struct svi_pending *svi_novelty_queue_at(const struct svi_novelty_queue *q, uint64_t n) {
    return &q->at[n % SVI_NOVELTY_QUEUE_CAPACITY];
}
static inline struct svi_pending_row *svi_novelty_queue_row(const struct svi_novelty_queue *q, uint64_t n) {
    return &q->row[n % SVI_NOVELTY_QUEUE_CAPACITY];
}

/* Puts a sample in, with its score event (NULL: none is due). The queue must not be full. */
void svi_novelty_queue_put(struct svi_novelty_queue *q, const struct svi_message *m, int64_t number,
                           double time, double ts, const struct svi_score *score);

/* Assesses sample n, on either thread; also learns it, unless the sample changes an alert. */
void svi_novelty_queue_assess(struct svi_novelty_queue *q, uint64_t n);

/* Sample n as the stage assesses, reports and learns it. Pointers are valid until its events are published.
 */
struct svi_alert_sample svi_novelty_queue_sample(const struct svi_novelty_queue *q, uint64_t n);

double svi_novelty_queue_memory(const struct svi_settings *s, int d, int classes); /* bytes */

#endif
