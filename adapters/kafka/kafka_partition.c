/* One partition, in the order of its phases.
 *
 * FENCES: the publisher ends earlier owners, so nothing of theirs is added to what is read next. RECALLS: the
 * state topic from its beginning gives the newest whole checkpoint. COMPARES: STREAM.out from the checkpoint
 * on gives the events that were published after it; a replay makes them again, and they are left out. STARTS:
 * the model begins on the checkpoint and names the offset at which to read on. RUNS: entries go to the model,
 * its events to the publisher, and now and then a checkpoint to the state topic.
 *
 * Invariants. A checkpoint is written after all events of its samples (one queue, in order), so what comes
 * after it can be made again from the log. Without a checkpoint one is stored before the first entry: it
 * holds the epoch of the stream, by which events are compared. Whatever fails (the model, the publisher)
 * leads back to FENCES: the checkpoint in the topic is the only memory, and the folder of the model is
 * disposable. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "kafka_log.h"
#include "kafka_partition_internal.h"
#include "wire/event.h"

#define PAUSE_FIRST 0.5
#define PAUSE_MAX   30.0

/* ---- begin, fail, end */

/* Everything but the number goes: the next attempt finds in the topics what counts. */
static void partition_drop(struct kafka_partition *p) {
    partition_child_free(&p->child);
    kafka_reader_stop(&p->reader);
    kafka_reader_stop(&p->claims);
    kafka_saving_end(&p->store);
    state_reader_end(&p->state);
    if (p->state.best.epoch > 0)
        unlink(p->state.best.path);
    p->state = (struct state_reader){0};
    kafka_seen_clear(&p->seen);
    kafka_publisher_close(&p->publisher);
    p->saving = p->sent = p->first = p->last_saved = false;
}

void kafka_partition_fail(struct kafka_partition *p, const char *why) {
    if (p->phase == PHASE_WAITS || p->phase == PHASE_REMOVED)
        return;
    p->pause = fmin(PAUSE_MAX, p->pause > 0 ? 2 * p->pause : PAUSE_FIRST);
    p->again = svi_monotonic() + p->pause;
    p->phase = PHASE_WAITS;
    p->worker->counters.restarts++;
    if (!p->worker->hopeless)
        kafka_log("partition %d begins again from its checkpoint in %.1f s: %s", p->number, p->pause, why);
}

static void partition_begin(struct kafka_partition *p) {
    const struct kafka_worker *w = p->worker;
    const char *const names[KAFKA_TOPIC_COUNT] = {w->topic[0], w->topic[1], w->topic[2]};
    char id[KAFKA_TOPIC];
    svs_error err;
    partition_drop(p);
    snprintf(id, sizeof id, "%s-%d", w->o->stream, p->number);
    p->phase = PHASE_FENCES;
    if (kafka_publisher_open(&p->publisher, &w->o->kafka, id, names, p->number, w->o->transactional, w->wake,
                             &err) != SVS_OK)
        kafka_partition_fail(p, err.text);
}

struct kafka_partition *kafka_partition_new(struct kafka_worker *w, int number) {
    struct kafka_partition *p = svi_alloc(sizeof *p);
    if (!p) {
        kafka_log("no memory for partition %d", number);
        return NULL;
    }
    p->worker = w;
    p->number = number;
    w->counters.takeovers++;
    partition_begin(p);
    return p;
}

void kafka_partition_free(struct kafka_partition **p) {
    if (!*p)
        return;
    partition_drop(*p);
    svi_free(*p);
    *p = NULL;
}

void kafka_partition_leave(struct kafka_partition *p, double seconds) {
    p->leaving = true;
    p->leave_by = svi_monotonic() + seconds;
    if (p->phase < PHASE_RUNS || seconds <= 0)
        p->phase = PHASE_REMOVED; /* nothing was done that a checkpoint could keep */
}

/* ---- turns */

/* Has anything been read that the stored checkpoint does not hold? */
static bool partition_is_new(const struct kafka_partition *p) {
    return p->offset > p->stored;
}

/* A revoked partition takes no more entries; what it has learned is stored, and then it is given up. */
static void partition_go(struct kafka_partition *p) {
    if (!p->saving && !p->store.active && (p->last_saved || !partition_is_new(p)))
        p->phase = PHASE_REMOVED;
    else if (!p->saving && !p->store.active && partition_child_state(p->child) == PARTITION_READY) {
        p->last_saved = true;
        kafka_partition_save(p);
    }
    if (svi_monotonic() > p->leave_by) {
        kafka_log("partition %d is given up without a last checkpoint: it took longer than --handover",
                  p->number);
        p->phase = PHASE_REMOVED;
    }
}

/* The group takes the partition from us in a moment. If it does not, the other worker is of another group, or
 * has left, and nobody else would read on. */
static void partition_taken(struct kafka_partition *p) {
    const double pause = 2 * kafka_group_session(&p->worker->group);
    p->worker->counters.fenced++;
    kafka_log("partition %d was taken by another worker; what was not committed is left to it. If the group "
              "still has it here in %.0f s (is another --group at work?), it is taken back",
              p->number, pause);
    p->phase = p->leaving ? PHASE_REMOVED : PHASE_WAITS;
    p->again = svi_monotonic() + pause;
}

/* A later claim in the state topic is that of another owner. Where the brokers fence, the next commit would
 * fail as well; this also ends an owner that has nothing to commit, or no transactions. */
static void partition_watch(struct kafka_partition *p) {
    rd_kafka_message_t *m;
    svs_error err;
    while (p->phase == PHASE_RUNS && (m = kafka_reader_next(&p->claims))) {
        const rd_kafka_resp_err_t code = m->err;
        uint64_t epoch;
        if (code == RD_KAFKA_RESP_ERR_NO_ERROR && state_is_claim(m->key, m->key_len, &epoch) &&
            epoch > p->claim && epoch - p->claim <= STATE_LEAP)
            partition_taken(p);
        rd_kafka_message_destroy(m);
        if (kafka_reader_out_of_range(code) &&
            kafka_reader_start(&p->claims, &p->worker->readers, p->worker->topic[KAFKA_TOPIC_STATE],
                               p->number, RD_KAFKA_OFFSET_END, &err) != SVS_OK)
            kafka_partition_fail(p, err.text);
    }
}

static void partition_run(struct kafka_partition *p) {
    partition_watch(p);
    if (p->phase != PHASE_RUNS)
        return;
    kafka_partition_follow(p);
    if (p->leaving) {
        partition_go(p);
        return;
    }
    if (!p->saving && !p->store.active && svi_monotonic() >= p->save_due && partition_is_new(p) &&
        partition_child_state(p->child) == PARTITION_READY) {
        kafka_partition_save(p);
    }
    kafka_partition_entries(p);
}

static void partition_child_turns(struct kafka_partition *p) {
    partition_child_turn(p->child);
    if (p->phase != PHASE_STARTS && p->phase != PHASE_RUNS)
        return;
    if (partition_child_state(p->child) == PARTITION_DEAD) {
        char why[400];
        const bool refused = partition_child_refused(p->child);
        snprintf(why, sizeof why, "its model has ended: %s", partition_child_why(p->child));
        if (refused) {
            p->limit = p->state.best.epoch;
            snprintf(why, sizeof why, "svmstream refuses checkpoint %" PRIu64 "; an older one is looked for",
                     p->limit);
        } else if (!p->worker->met) {
            p->worker->hopeless = true;
        }
        kafka_partition_fail(p, why);
    }
}

static void partition_store(struct kafka_partition *p) {
    bool stored;
    svs_error err;
    if (kafka_saving_turn(&p->store, &p->publisher, &stored, &err) != SVS_OK)
        kafka_partition_fail(p, err.text);
    else if (stored) {
        p->stored = p->store.closing.at;
        p->worker->counters.checkpoints++;
    }
}

void kafka_partition_turn(struct kafka_partition *p) {
    if (p->phase == PHASE_WAITS && p->leaving)
        p->phase = PHASE_REMOVED;
    if (p->phase == PHASE_WAITS &&
        p->publisher.producer) /* its sockets would wake the loop again and again */
        partition_drop(p);
    if (p->phase == PHASE_WAITS && svi_monotonic() >= p->again)
        partition_begin(p);
    p->more = false;
    if (p->phase == PHASE_WAITS || p->phase == PHASE_REMOVED)
        return;
    kafka_publisher_turn(&p->publisher);
    if (p->publisher.phase == PUBLISHER_FENCED) {
        partition_taken(p);
        return;
    }
    if (p->publisher.phase == PUBLISHER_FAILED) {
        kafka_partition_fail(p, p->publisher.why.text);
        return;
    }
    if (p->child)
        partition_child_turns(p);
    if (p->phase == PHASE_FENCES && p->publisher.phase == PUBLISHER_READY)
        kafka_partition_recall(p);
    if (p->phase == PHASE_RECALLS || p->phase == PHASE_COMPARES)
        kafka_partition_take(p);
    if (p->phase == PHASE_STARTS || p->phase == PHASE_RUNS)
        partition_store(p);
    if (p->phase == PHASE_STARTS)
        kafka_partition_started(p);
    if (p->phase == PHASE_RUNS)
        partition_run(p);
}

int kafka_partition_items(const struct kafka_partition *p, zmq_pollitem_t *items) {
    return p->child ? partition_child_items(p->child, items) : 0;
}

/* The clients of Kafka write to `wake`; here are the clocks. */
double kafka_partition_wait(const struct kafka_partition *p) {
    double wait = HUGE_VAL;
    if (p->phase == PHASE_WAITS)
        return fmax(0, p->again - svi_monotonic());
    if (p->phase == PHASE_REMOVED || p->more)
        return 0;
    wait = fmin(wait, kafka_publisher_wait(&p->publisher));
    if (p->child)
        wait = fmin(wait, partition_child_wait(p->child));
    if (p->phase == PHASE_RUNS && (p->leaving || (!p->saving && !p->store.active && partition_is_new(p))))
        wait = fmin(wait, fmax(0, (p->leaving ? p->leave_by : p->save_due) - svi_monotonic()));
    return wait;
}
