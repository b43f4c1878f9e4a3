/* A ring of samples on their way to the second thread and back. A sample is copied, since the row, the texts
 * and the scores of the engine are overwritten by the next one. What both threads use (svi_pending_row) is
 * apart from what only the first one uses, so that they do not share cache lines. */
#include "engine/novelty_queue.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

struct svi_alert_sample svi_novelty_queue_sample(const struct svi_novelty_queue *q, uint64_t n) {
    const struct svi_pending_row *r = svi_novelty_queue_row(q, n);
    return (struct svi_alert_sample){.x = r->x,
                                     .gaps = r->gapped ? r->gaps : NULL,
                                     .d = r->d,
                                     .number = r->number,
                                     .time = r->time,
                                     .timed = r->timed,
                                     .labelled = r->labelled};
}

void svi_novelty_queue_assess(struct svi_novelty_queue *q, uint64_t n) {
    struct svi_pending_row *r = svi_novelty_queue_row(q, n);
    const struct svi_alert_sample sample = svi_novelty_queue_sample(q, n);
    const enum svi_alert_change change = svi_alert_stage_assess(q->stage, &sample);
    r->change = (uint8_t)change;
    r->novelty = svi_alert_stage_scores(q->stage);
    if (change == SVI_ALERT_NONE)
        svi_alert_stage_learn(q->stage, &sample);
}

/* The task of the second thread. It stops at a sample that changes an alert: the change has to be reported
 * before the sample is learned, with names of the schema, which belongs to the other thread. */
static bool novelty_queue_piece(void *user, uint64_t n) {
    struct svi_novelty_queue *q = user;
    svi_novelty_queue_assess(q, n);
    return svi_novelty_queue_row(q, n)->change == SVI_ALERT_NONE;
}

struct svi_novelty_queue *svi_novelty_queue_new(struct svi_alert_stage *stage) {
    svs_error err;
    struct svi_novelty_queue *q = svi_alloc(sizeof *q);
    if (!q)
        return NULL;
    q->stage = stage;
    q->at = svi_alloc_array(SVI_NOVELTY_QUEUE_CAPACITY, sizeof *q->at);
    q->row = svi_alloc_array(SVI_NOVELTY_QUEUE_CAPACITY, sizeof *q->row);
    q->follower = q->at && q->row ? svi_follower_new("novelty", novelty_queue_piece, q, &err) : NULL;
    if (!q->follower)
        svi_novelty_queue_free(&q);
    return q;
}

void svi_novelty_queue_free(struct svi_novelty_queue **pq) {
    struct svi_novelty_queue *q = *pq;
    if (!q)
        return;
    svi_follower_free(&q->follower);
    svi_free(q->at);
    svi_free(q->row);
    svi_free(q->rows);
    svi_free(q->gaps);
    svi_free(q->scores);
    svi_free(q);
    *pq = NULL;
}

static size_t novelty_queue_stride(int d) {
    return ((size_t)d + 7) / 8 * 8;
}

/* Buffers for wider rows. The queue is empty, so nothing is copied. */
static bool novelty_queue_widen(struct svi_novelty_queue *q, int d) {
    const size_t stride = novelty_queue_stride(d);
    double *rows = svi_alloc_array(stride * SVI_NOVELTY_QUEUE_CAPACITY, sizeof *rows);
    uint8_t *gaps = svi_alloc((size_t)d * SVI_NOVELTY_QUEUE_CAPACITY);
    if (!rows || !gaps) {
        svi_free(rows);
        svi_free(gaps);
        return false;
    }
    svi_free(q->rows);
    svi_free(q->gaps);
    q->rows = rows;
    q->gaps = gaps;
    q->d = d;
    for (size_t i = 0; i < SVI_NOVELTY_QUEUE_CAPACITY; i++) {
        q->row[i].x = rows + i * stride;
        q->row[i].gaps = gaps + i * (size_t)d;
    }
    return true;
}

static bool novelty_queue_more_scores(struct svi_novelty_queue *q, int count) {
    const int capacity = count > 2 * q->score_capacity ? count : 2 * q->score_capacity;
    double *scores = svi_alloc_array((size_t)capacity * SVI_NOVELTY_QUEUE_CAPACITY, sizeof *scores);
    if (!scores)
        return false;
    svi_free(q->scores);
    q->scores = scores;
    q->score_capacity = capacity;
    for (size_t i = 0; i < SVI_NOVELTY_QUEUE_CAPACITY; i++)
        q->at[i].scores = scores + i * (size_t)capacity;
    return true;
}

bool svi_novelty_queue_reserve(struct svi_novelty_queue *q, int d, int scores) {
    return (d <= q->d || novelty_queue_widen(q, d)) &&
           (scores <= q->score_capacity || novelty_queue_more_scores(q, scores));
}

/* A copy of a value whose string, if it is one, lies in `text`. */
static svs_value pending_keep(svs_value v, char *text) {
    if (v.kind != SVS_STR)
        return v;
    memcpy(text, v.as.s, v.length);
    v.as.s = text;
    return v;
}

void svi_novelty_queue_put(struct svi_novelty_queue *q, const struct svi_message *m, int64_t number,
                           double time, double ts, const struct svi_score *score) {
    struct svi_pending *p = svi_novelty_queue_at(q, q->taken);
    struct svi_pending_row *r = svi_novelty_queue_row(q, q->taken++);
    r->d = m->d;
    r->number = number;
    r->time = time;
    r->labelled = m->y.kind != SVS_NONE;
    r->gapped = m->gaps != NULL;
    r->timed = !isnan(m->ts);
    memcpy(r->x, m->x, (size_t)m->d * sizeof *m->x);
    if (m->gaps)
        memcpy(r->gaps, m->gaps, (size_t)m->d);
    p->id = pending_keep(m->id, p->text[0]);
    p->y = pending_keep(m->y, p->text[1]);
    p->ts = ts;
    p->scored = score != NULL;
    if (!score)
        return;
    struct svi_event *e = &p->score.event;
    double *proba = p->scores ? p->scores + score->event.as.score.rows : NULL; /* method none has no scores */
    /* Every pointer of the event is redirected to the copies of the queue. */
    p->score = *score;
    e->as.score.id = p->id;
    e->as.score.y = p->y;
    if (e->as.score.rows > 0)
        memcpy(p->scores, e->as.score.scores, (size_t)e->as.score.rows * sizeof *p->scores);
    if (e->as.score.proba_count > 0)
        memcpy(proba, e->as.score.proba, (size_t)e->as.score.proba_count * sizeof *proba);
    e->as.score.x = r->x;
    e->as.score.gaps = r->gapped ? r->gaps : NULL;
    e->as.score.scores = p->scores;
    e->as.score.proba = proba;
    if (e->as.score.interval)
        e->as.score.interval = p->score.interval;
}

double svi_novelty_queue_memory(const struct svi_settings *s, int d, int classes) {
    if (s->novelty == SVI_NOVELTY_NONE || !svi_settings_two_threads(s))
        return 0;
    const double row = (double)novelty_queue_stride(d) * sizeof(double) + d,
                 scores = 4.0 * (classes > 1 ? classes : 1);
    return sizeof(struct svi_novelty_queue) +
           SVI_NOVELTY_QUEUE_CAPACITY *
               (sizeof(struct svi_pending) + sizeof(struct svi_pending_row) + row + scores * sizeof(double));
}
