/* Novelty on a second thread, which follows the learner, with the same events in the same order.
 *
 * The novelty of a sample depends on rows, labels and times alone, and the learner does not depend on
 * novelty. Therefore the stream's thread learns sample after sample and puts each into a queue; the second
 * thread assesses them in that order; and the stream's thread publishes each sample's score, then its alert,
 * when the result is known. When a sample changes an alert, the second thread stops: the stream's thread
 * reports the change, since it has the schema with the names, and before the sample is learned.
 *
 * Everything else first waits until the queue is empty (svi_engine_settle): other events, all that reads or
 * changes novelty, a change of names or columns, the end of a message unless more are known to follow. So
 * neither events nor states depend on which thread is faster. A sample that arrives alone is assessed by the
 * stream's thread in that settle. */
#include "engine/engine_internal.h"

/* Samples that are offered to the other thread together: waking it takes the stream's thread as long as a
 * sample. */
#define LOT 64

/* ---- out of the queue */

static void follow_publish(struct svi_engine *e, uint64_t n) {
    const struct svi_pending_row *r = svi_novelty_queue_row(e->queue, n);
    struct svi_pending *p = svi_novelty_queue_at(e->queue, n);
    if (p->scored)
        svi_publish_score(e, &p->score, &r->novelty);
}

/* Publishes sample n, the last one assessed, which changes an alert, and learns it. The order is that of
 * engine_publish_outcome: score, alert, and only then learning, which would change what the alert reports. */
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

/* Publishes all finished samples. If the other thread has stopped at an alert, publishes that one as well and
 * lets it continue. `publishing` keeps svi_publish from settling the queue in the middle of this. */
static void follow_report(struct svi_engine *e, struct svi_follower_state state) {
    struct svi_novelty_queue *q = e->queue;
    q->publishing = true;
    for (; q->published < state.done; q->published++)
        follow_publish(e, q->published);
    if (state.stopped) {
        follow_alert(e, q->published);
        svi_follower_resume(q->follower, ++q->published);
    }
    q->publishing = false;
}

/* Empties the queue: waits until the other thread has finished the samples that it has begun, and assesses
 * the rest here. */
void svi_engine_settle(svi_engine *e) {
    struct svi_novelty_queue *q = e->queue;
    if (!svi_novelty_queue_waits(q) || q->publishing)
        return;
    struct svi_follower_state state;
    do /* a thread that stopped at an alert continues with the samples it had begun, and may stop again */
        follow_report(e, state = svi_follower_halt(q->follower));
    while (state.stopped);
    q->publishing = true;
    for (; q->published < q->taken; q->published++) {
        svi_novelty_queue_assess(q, q->published);
        if (svi_novelty_queue_row(q, q->published)->change == SVI_ALERT_NONE)
            follow_publish(e, q->published);
        else
            follow_alert(e, q->published);
    }
    q->publishing = false;
    svi_follower_resume(q->follower, q->taken);
}

/* ---- into it */

/* The queue for the first sample of a series, while it is empty; NULL: no second thread. The thread starts
 * when it is first needed, so never without novelty. The capacity of the stage is noted here, because the
 * stream's thread must not read the stage while the other thread writes to it. */
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

/* Can the queue take this sample? Refused are rows wider than the stage, which only the stream's thread may
 * widen, and texts longer than their copies. A full queue is waited for until half of it is free. */
static bool follow_takes(struct svi_engine *e, const struct svi_message *m, const struct svi_score *score) {
    const int scores = score ? score->event.as.score.rows + score->event.as.score.proba_count : 0;
    struct svi_novelty_queue *q = svi_novelty_queue_waits(e->queue) ? e->queue : follow_queue(e);
    if (svi_engine_is_muted(e)) /* it waits for what is to be learned of it */
        return false;
    if (!q || q->columns < 1 || m->d > q->columns)
        return false;
    if ((m->id.kind == SVS_STR && m->id.length > SVS_NAME_MAX) ||
        (m->y.kind == SVS_STR && m->y.length > SVS_NAME_MAX))
        return false;
    if (q->columns > q->d || scores > q->score_capacity) {
        svi_engine_settle(e);
        return svi_novelty_queue_reserve(q, q->columns, scores);
    }
    while (q->taken - q->published == SVI_NOVELTY_QUEUE_CAPACITY)
        follow_report(e, svi_follower_wait(q->follower, q->taken - SVI_NOVELTY_QUEUE_CAPACITY / 2));
    return true;
}

bool svi_engine_queue(struct svi_engine *e, const struct svi_message *m, const struct svi_score *score) {
    if (!follow_takes(e, m, score))
        return false;
    struct svi_novelty_queue *q = e->queue;
    svi_novelty_queue_put(q, m, e->kept[SVI_KEPT_SEEN], e->time, e->event_ts, score);
    if (q->taken - q->published >= LOT && q->taken % LOT == 0)
        follow_report(e, svi_follower_offer(q->follower, q->taken));
    return true;
}
