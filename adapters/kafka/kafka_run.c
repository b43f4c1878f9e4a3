/* The worker: one thread, one loop. The group gives and takes partitions; each partition does what is
 * possible in a turn (kafka_partition); the loop waits for the sockets of the models, for the clients of
 * Kafka, which write to an eventfd, and for a signal. A signal makes every partition store a last checkpoint;
 * then the worker leaves the group, which gives its partitions to others at once.
 *
 * A revoked partition is answered for once its last checkpoint is stored: the group gives it to another only
 * then, which finds all of it. */
#include "kafka_run.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "kafka_log.h"
#include "kafka_partition.h"

#define CONNECT_SECONDS 15.0
#define LEAVE_SECONDS   5.0
#define LONGEST_WAIT    1.0
#define PARTITIONS_MAX  1000 /* of one worker: each is a process */

struct kafka_run {
    struct kafka_worker worker;
    struct kafka_partition *owned[PARTITIONS_MAX];
    int count;
    zmq_pollitem_t items[2 + PARTITIONS_MAX * PARTITION_CHILD_ITEMS];
    double stats_due;
    bool ending;
};

/* ---- what the group gives and takes */

static void run_assigned(void *user, int partition) {
    struct kafka_run *r = user;
    if (r->ending) /* the group has it back in a moment; begun now, it would keep this program from ending */
        return;
    for (int i = 0; i < r->count; i++)
        if (r->owned[i]->number == partition)
            return;
    if (r->count == PARTITIONS_MAX) {
        kafka_log("partition %d is more than this worker can hold (%d): start further workers", partition,
                  PARTITIONS_MAX);
        return;
    }
    struct kafka_partition *p = kafka_partition_new(&r->worker, partition);
    if (p)
        r->owned[r->count++] = p;
}

static void run_revoked(void *user, int partition, bool lost) {
    struct kafka_run *r = user;
    for (int i = 0; i < r->count; i++)
        if (r->owned[i]->number == partition) {
            kafka_log("partition %d %s", partition,
                      lost ? "is another worker's now" : "goes to another worker");
            kafka_partition_leave(r->owned[i], lost ? 0 : r->worker.o->handover);
        }
}

/* Frees what is given up. True: nothing that was revoked is left. */
static bool run_sweep(struct kafka_run *r) {
    int kept = 0;
    bool released = true;
    for (int i = 0; i < r->count; i++) {
        if (r->owned[i]->phase == PHASE_REMOVED) {
            kafka_partition_free(&r->owned[i]);
            continue;
        }
        released = released && !r->owned[i]->leaving;
        r->owned[kept++] = r->owned[i];
    }
    r->count = kept;
    return released;
}

/* ---- the loop */

static void run_stats(const struct kafka_run *r) {
    char line[600];
    int n = snprintf(line, sizeof line, "partitions %d", r->count);
#define X(name)                                                                                              \
    n += snprintf(line + n, sizeof line - (size_t)n, ", " #name " %" PRId64, r->worker.counters.name);
    KAFKA_COUNTERS(X)
#undef X
    kafka_log("%s", line);
}

/* True: a signal has come. */
static bool run_turn(struct kafka_run *r, int stop) {
    uint64_t woken;
    int n = 0;
    double wait = LONGEST_WAIT;
    r->items[n++] = (zmq_pollitem_t){NULL, r->worker.wake, ZMQ_POLLIN, 0};
    if (!r->ending)
        r->items[n++] = (zmq_pollitem_t){NULL, stop, ZMQ_POLLIN, 0};
    const int sockets = n;
    for (int i = 0; i < r->count; i++) {
        n += kafka_partition_items(r->owned[i], r->items + n);
        wait = fmin(wait, kafka_partition_wait(r->owned[i]));
    }
    zmq_poll(r->items, n, (long)ceil(1000 * wait)); /* interrupted: another round */
    if (read(r->worker.wake, &woken, sizeof woken) < 0 && errno != EAGAIN)
        kafka_log("eventfd: %s", strerror(errno));
    rd_kafka_poll(r->worker.readers.client, 0);
    kafka_group_turn(&r->worker.group);
    for (int i = 0; i < r->count; i++)
        kafka_partition_turn(r->owned[i]);
    if (run_sweep(r))
        kafka_group_release(&r->worker.group);
    if (r->worker.o->stats > 0 && svi_monotonic() >= r->stats_due) {
        run_stats(r);
        r->stats_due = svi_monotonic() + r->worker.o->stats;
    }
    return sockets > 1 && r->items[1].revents;
}

/* The checkpoints first, while the partitions are still ours. */
static void run_end(struct kafka_run *r) {
    const struct kafka_options *o = r->worker.o;
    r->ending = true;
    for (int i = 0; i < r->count; i++)
        kafka_partition_leave(r->owned[i], o->handover);
    while (r->count > 0)
        run_turn(r, -1);
    kafka_group_leave(&r->worker.group);
    const double end = svi_monotonic() + LEAVE_SECONDS;
    while (!kafka_group_left(&r->worker.group) && svi_monotonic() < end)
        run_turn(r, -1);
    run_stats(r);
}

/* ---- the beginning */

/* All topics have the partitions of that of the entries: partition 3 of each belongs to one owner. */
static svs_code run_check_topics(struct kafka_run *r, svs_error *err) {
    struct kafka_worker *w = &r->worker;
    static const char *const tails[KAFKA_TOPIC_COUNT] = {
        [KAFKA_TOPIC_STATE] = "state", [KAFKA_TOPIC_SUMS] = "sums", [KAFKA_TOPIC_OUT] = "out"};
    const int wanted = kafka_partitions(w->readers.client, w->o->topic, CONNECT_SECONDS, err);
    if (wanted == 0)
        return err->code;
    for (int t = 0; t < KAFKA_TOPIC_COUNT; t++) {
        snprintf(w->topic[t], sizeof w->topic[t], "%.*s.%s", SVI_STREAM_MAX, w->o->stream, tails[t]);
        const int count = kafka_partitions(w->readers.client, w->topic[t], CONNECT_SECONDS, err);
        if (count == 0)
            return err->code;
        if (count < wanted)
            return svi_fail(err, SVS_SETTING,
                            "topic %s has %d partitions and topic %s has %d: raise the former "
                            "(kafka-topics.sh --alter --topic %s --partitions %d)",
                            w->topic[t], count, w->o->topic, wanted, w->topic[t], wanted);
    }
    return SVS_OK;
}

static svs_code run_open(struct kafka_run *r, svs_error *err) {
    struct kafka_worker *w = &r->worker;
    if (mkdir(w->o->folder, 0700) != 0 && errno != EEXIST)
        return svi_fail(err, SVS_IO, "--folder %.200s: %s", w->o->folder, strerror(errno));
    w->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    w->context = zmq_ctx_new();
    if (w->wake < 0 || !w->context)
        return svi_fail(err, SVS_IO, "the loop cannot start: %s", strerror(errno));
    SVI_TRY(kafka_readers_open(&w->readers, &w->o->kafka, w->wake, err));
    SVI_TRY(run_check_topics(r, err));
    w->group.assigned = run_assigned;
    w->group.revoked = run_revoked;
    w->group.user = r;
    return kafka_group_open(&w->group, w->o, w->wake, err);
}

int kafka_run(struct kafka_options *o, int stop) {
    struct kafka_run *r = svi_alloc(sizeof *r);
    svs_error err;
    if (!r) {
        kafka_log("no memory");
        return 1;
    }
    r->worker.o = o;
    r->worker.wake = -1;
    const svs_code code = run_open(r, &err);
    if (code != SVS_OK)
        kafka_log("%s", err.text);
    r->stats_due = svi_monotonic() + o->stats;
    while (code == SVS_OK && !r->worker.hopeless && !run_turn(r, stop))
        ;
    if (code == SVS_OK)
        run_end(r);
    kafka_group_close(&r->worker.group);
    kafka_readers_close(&r->worker.readers);
    while (r->worker.context && zmq_ctx_term(r->worker.context) != 0 && errno == EINTR)
        ;
    if (r->worker.wake >= 0)
        close(r->worker.wake);
    const bool failed = code != SVS_OK || r->worker.hopeless;
    svi_free(r);
    return failed ? 1 : 0;
}
