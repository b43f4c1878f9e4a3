/* Novelty on a second thread, behind the learner, with the same events in the same order.
 *
 * What novelty makes of a sample depends on rows, labels and times alone, and nothing that the learner does
 * depends on novelty. So the stream's thread learns sample after sample and puts each into a queue; the
 * second thread judges them in their order; and the stream's thread publishes what waits for a judgement, a
 * sample's score and then its alert, as soon as it is there. A second thread that comes upon a change of an
 * alert stops: the stream's thread reports it, with the names it has and before the sample is learned.
 *
 * All else waits until nobody does (svi_engine_settle): other events, whatever looks at novelty or changes
 * it, a change of names or columns, the end of a message that nobody said others follow. So neither events
 * nor states depend on which thread was faster; with a sample that comes alone the second has no part. */
#include "engine/engine_internal.h"

#define LOT                                                                                                  \
    32 /* samples, after which the other thread gets to know of them: a wake-up costs as much as some */

/* ---- out of the queue */

static void follow_publish(struct svi_engine *e, uint64_t n) {
    const struct svi_pending_row *r = svi_novelty_queue_row(e->queue, n);
    struct svi_pending *p = svi_novelty_queue_at(e->queue, n);
    if (p->scored)
        svi_publish_score(e, &p->score, &r->said);
}

/* The sample was judged last, and the alert has changed by it. */
static void follow_alert(struct svi_engine *e, uint64_t n) {
    const struct svi_pending *p = svi_novelty_queue_at(e->queue, n);
    const enum svi_alert_change change = (enum svi_alert_change)svi_novelty_queue_row(e->queue, n)->change;
    const struct svi_alert_sample sample = svi_novelty_queue_sample(e->queue, n);
    struct svi_alert_report report;
    char subject[SVI_SUBJECT];
    const struct svi_alert_subject of = {&e->schema, svi_engine_subject(e, subject), p->id, p->ts};
    follow_publish(e, n);
    if (svi_alert_report_change(e->novelty, &sample, &of, change, &report))
        svi_publish_alert(e, &report, p->ts);
    svi_alert_stage_learn(e->novelty, &sample);
}

/* Publishes what is done. Where the other thread has stopped, it goes on. */
static void follow_report(struct svi_engine *e, struct svi_follower_state state) {
    struct svi_novelty_queue *q = e->queue;
    q->telling = true;
    for (; q->told < state.done; q->told++)
        follow_publish(e, q->told);
    if (state.stopped) {
        follow_alert(e, q->told);
        svi_follower_resume(q->follower, ++q->told);
    }
    q->telling = false;
}

/* Nobody waits after it: what the other thread has not begun is done here. */
void svi_engine_settle(svi_engine *e) {
    struct svi_novelty_queue *q = e->queue;
    if (!svi_novelty_queue_waits(q) || q->telling)
        return;
    struct svi_follower_state state;
    do /* one that has stopped goes on with what it had begun */
        follow_report(e, state = svi_follower_halt(q->follower));
    while (state.stopped);
    q->telling = true;
    for (; q->told < q->taken; q->told++) {
        svi_novelty_queue_assess(q, q->told);
        if (svi_novelty_queue_row(q, q->told)->change == SVI_ALERT_NONE)
            follow_publish(e, q->told);
        else
            follow_alert(e, q->told);
    }
    q->telling = false;
    svi_follower_resume(q->follower, q->taken);
}

/* ---- into it */

/* Nobody waits. The thread starts when it is first needed; without novelty it is not. What the stage has room
 * for is noted, so that nothing that the thread writes is looked at while it works, not even beside it. */
static struct svi_novelty_queue *follow_queue(struct svi_engine *e) {
    if (!e->two_threads || !e->novelty->on || !e->novelty->detector)
        return NULL;
    if (!e->queue)
        e->queue = svi_novelty_queue_new(e->novelty);
    e->two_threads = e->queue != NULL;
    if (e->queue)
        e->queue->columns = svi_alert_stage_columns(e->novelty);
    return e->queue;
}

/* Is there a place, or can there be one? */
static bool follow_takes(struct svi_engine *e, const struct svi_message *m, const struct svi_score *score) {
    const int scores = score ? score->event.as.score.rows + score->event.as.score.proba_count : 0;
    struct svi_novelty_queue *q = svi_novelty_queue_waits(e->queue) ? e->queue : follow_queue(e);
    if (!q || q->columns < 1 || m->d > q->columns)
        return false;
    if ((m->id.kind == SVS_STR && m->id.length > SVS_NAME_MAX) ||
        (m->y.kind == SVS_STR && m->y.length > SVS_NAME_MAX))
        return false;
    if (q->columns > q->d || scores > q->score_capacity) {
        svi_engine_settle(e);
        return svi_novelty_queue_reserve(q, q->columns, scores);
    }
    while (q->taken - q->told == SVI_NOVELTY_QUEUE_CAPACITY)
        follow_report(e, svi_follower_wait(q->follower, q->taken - SVI_NOVELTY_QUEUE_CAPACITY / 2));
    return true;
}

bool svi_engine_queue(struct svi_engine *e, const struct svi_message *m, const struct svi_score *score) {
    if (!follow_takes(e, m, score))
        return false;
    struct svi_novelty_queue *q = e->queue;
    svi_novelty_queue_put(q, m, e->time, e->event_ts, score);
    if (q->taken - q->told >= LOT && q->taken % LOT == 0)
        follow_report(e, svi_follower_offer(q->follower, q->taken));
    return true;
}
