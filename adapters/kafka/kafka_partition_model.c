/* The model of a partition: its process, the entries that go to it, and what comes back.
 *
 * The process is started on a checkpoint in a folder that nothing else uses, and names the offset at which to
 * read on. Entries go to it while it takes them and while not too much waits for the brokers; each carries
 * the offset after it as its cursor, so a checkpoint and its offset cannot differ. Events come back through
 * the calls: those of --publish and the sums are queued for the publisher in the order in which they come. An
 * entry that is no message is counted and left out; the cursor of the next one passes over it.
 *
 * The order: kafka_partition_start begins the process, kafka_partition_started takes the partition over once
 * it answers, and then each turn compares places (kafka_partition_follow) and hands entries on. All of it
 * relies on what kafka_partition_recall.c has found: the checkpoint, and the events after it. Calls of the
 * child run inside of its turn, so a failure only notes what is due (kafka_partition_fail). Read the story of
 * kafka_partition.c first, then kafka_partition_started. */
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

#define RECORDS_TURN  500                /* entries taken in one turn: other partitions wait for its end */
#define PUBLISHED_MAX ((size_t)16 << 20) /* bytes that may wait for the brokers */
#define ARGUMENTS_MAX 500

/* ---- calls of the child */

static bool partition_wants(const struct kafka_partition *p, enum svi_topic kind) {
    return p->worker->o->kinds >> kind & 1;
}

/* Sums are wanted whatever --publish names: they have a topic of their own. */
static bool partition_is_sums(enum svi_topic kind) {
    return kind < SVI_TOPIC_COUNT && strcmp(svi_topic_name(kind), "sums") == 0;
}

/* Events that arrive before the first entry are retained ones, which the checkpoint's owner has published. */
static void partition_event(void *user, const struct subscription_event *e) {
    struct kafka_partition *p = user;
    struct kafka_counters *c = &p->worker->counters;
    char key[2 * KAFKA_TOPIC];
    svs_error err;
    svs_code code = SVS_OK;
    c->events_lost += e->lost;
    if (e->lost > 0)
        kafka_log_few(++p->gaps, "partition %d: %" PRId64 " events of the model were lost on the way",
                      p->number, e->lost);
    /* Sums are absolute: a repeated record does no harm, so none is compared. One key a partition lets the
     * topic keep the newest alone. */
    if (partition_is_sums(e->kind)) {
        snprintf(key, sizeof key, "%s-%d", p->worker->o->stream, p->number);
        code = kafka_publisher_put(&p->publisher, KAFKA_TOPIC_SUMS, key, e->payload, e->size, &err);
    } else if (e->kind < SVI_TOPIC_COUNT && partition_wants(p, e->kind) && p->sent) {
        /* A replay makes the events again that were published after the checkpoint. */
        if (kafka_seen_has(&p->seen, e->topic, e->topic_length, e->payload, e->size)) {
            c->repeated++;
            return;
        }
        snprintf(key, sizeof key, "%.*s", (int)e->topic_length, e->topic);
        code = kafka_publisher_put(&p->publisher, KAFKA_TOPIC_OUT, key, e->payload, e->size, &err);
        c->events++;
    }
    if (code != SVS_OK)
        kafka_partition_fail(p, err.text);
}

/* The cursor is text of ours, as partition_entry writes it. -1: nothing of the log is in the model. */
static int64_t partition_offset(const void *at, size_t size) {
    char text[32] = "";
    memcpy(text, at ? at : "", size < sizeof text ? size : 0);
    return *text ? strtoll(text, NULL, 10) : -1;
}

static void partition_refused(void *user, int64_t count, const char *code, const char *reason, const void *at,
                              size_t at_size) {
    struct kafka_partition *p = user;
    p->worker->counters.refused += count;
    /* `at` is the offset after the entry. */
    kafka_log_few(++p->refusals,
                  "partition %d: %" PRId64 " samples of the entry before offset %" PRId64
                  " are refused: %s (%s)",
                  p->number, count, partition_offset(at, at_size), reason, code);
}

static void partition_saved(void *user, const struct partition_saved *saved, const char *why) {
    struct kafka_partition *p = user;
    svs_error err;
    p->saving = false;
    /* Counted from the end, also after a failure: a disk that is full is not asked again at once. */
    p->save_due = svi_monotonic() + p->worker->o->save;
    /* While the model starts, this is the first checkpoint, without which nothing may be published. Later an
     * older one is in the topic, and the log after it is still there. */
    if (!saved && p->phase == PHASE_STARTS)
        kafka_partition_fail(p, why);
    else if (!saved)
        kafka_log("partition %d: no checkpoint: %s", p->number, why);
    if (!saved)
        return;
    const int64_t at = partition_offset(saved->at, saved->at_size);
    /* Until the model has repeated all entries that earlier owners may have read, their events are ahead of
     * it: the next takeover must find them too. */
    struct state_closing what = {.at = at < 0 ? 0 : at,
                                 .out = at >= p->repeats_to ? p->saving_out : p->compared_from};
    /* The closing record is read word by word, so an absent hash needs a word too. */
    snprintf(what.state, sizeof what.state, "%s", *saved->hash ? saved->hash : "-");
    /* The epoch is used up even if this fails: no two checkpoints of ours share a key. */
    if (kafka_saving_begin(&p->store, saved->path, p->epoch++, &what, &err) != SVS_OK)
        kafka_log("partition %d: no checkpoint: %s", p->number, err.text);
}

static void partition_log(void *user, const char *text) {
    (void)user;
    kafka_log("%s", text); /* it names the partition */
}

static const struct partition_calls partition_calls = {partition_event, partition_refused, partition_saved,
                                                       partition_log};

/* ---- the model */

/* A takeover compares its events with those from here on. The place is that before the request: events of
 * samples behind the checkpoint may be published while it is made, and must be found again. */
void kafka_partition_save(struct kafka_partition *p) {
    p->saving = true;
    p->saving_out = p->publisher.end[KAFKA_TOPIC_OUT];
    partition_child_save(p->child);
}

/* Our arguments come first, so that the user's replace them. A part of a merged model is one partition. */
static void partition_arguments(const struct kafka_partition *p, const char **list, char part[KAFKA_TOPIC]) {
    const char *const *user = p->worker->o->arguments;
    int n = 0;
    bool sums = false;
    list[n++] = "--stream";
    list[n++] = p->worker->o->stream;
    /* A merger knows parts by their names, so sums of each partition need one of their own. */
    for (int i = 0; user && user[i]; i++)
        sums = sums || strncmp(user[i], "--publish.sums", 14) == 0;
    if (sums) {
        snprintf(part, KAFKA_TOPIC, "%s-%d", p->worker->o->stream, p->number);
        list[n++] = "--merge.part";
        list[n++] = part;
    }
    for (int i = 0; user && user[i] && n < ARGUMENTS_MAX; i++)
        list[n++] = user[i];
    list[n] = NULL;
}

void kafka_partition_start(struct kafka_partition *p) {
    const char *arguments[ARGUMENTS_MAX + 1];
    char part[KAFKA_TOPIC];
    svs_error err;
    /* It has read the events to compare. Entries are read only when the model has named its offset. */
    kafka_reader_stop(&p->reader);
    partition_arguments(p, arguments, part);
    struct partition_options o = {.program = p->worker->o->program,
                                  .folder = p->worker->o->folder,
                                  .partition = p->number,
                                  .arguments = arguments,
                                  .fresh = true,
                                  .checkpoint = p->first ? NULL : p->state.best.path,
                                  .topics = p->worker->o->kinds,
                                  .context = p->worker->context,
                                  .calls = &partition_calls,
                                  .user = p};
    for (int t = 0; t < SVI_TOPIC_COUNT; t++)
        o.topics |= partition_is_sums((enum svi_topic)t) ? 1u << t : 0;
    /* The phase comes before the attempt, because a failure replaces it. Generation 0 differs from every one
     * of a process, so the first place counts as another one (kafka_partition_follow). */
    p->phase = PHASE_STARTS;
    p->generation = 0;
    if (!(p->child = partition_child_new(&o, &err)))
        kafka_partition_fail(p, err.text);
}

static void partition_read_on(struct kafka_partition *p) {
    svs_error err;
    if (kafka_reader_start(&p->reader, &p->worker->readers, p->worker->o->topic, p->number,
                           p->offset < 0 ? RD_KAFKA_OFFSET_BEGINNING : p->offset, &err) != SVS_OK)
        kafka_partition_fail(p, err.text);
}

/* The model stands elsewhere than what is being read: after its start, or since it lost entries. */
void kafka_partition_follow(struct kafka_partition *p) {
    const void *at;
    size_t size;
    /* In a new generation unanswered entries of the older one are void, and are read again from the place. */
    const int64_t generation = partition_child_place(p->child, &at, &size);
    if (generation == p->generation)
        return;
    p->generation = generation;
    p->offset = partition_offset(at, size);
    partition_read_on(p);
}

void kafka_partition_started(struct kafka_partition *p) {
    const void *at;
    size_t size;
    char key[STATE_KEY];
    svs_error err;
    if (partition_child_state(p->child) != PARTITION_READY ||
        partition_child_place(p->child, &at, &size) == 0)
        return;
    /* The arguments are good: from now on a model that ends is begun again, and does not end the worker. */
    p->worker->met = true;
    if (p->first && p->store.kept[0].epoch == 0) {
        /* The stream's epoch must be in the topic before anything is published under it. `kept` names the
         * checkpoint once all of it is queued, and `active` ends when the brokers have it. */
        if (!p->saving && !p->store.active) {
            kafka_partition_save(p);
        }
        return;
    }
    if (p->store.active)
        return;
    /* The claim is above all epochs in the topic and below those of the checkpoints that follow. */
    p->claim = p->epoch++;
    p->limit = 0; /* svmstream has accepted this checkpoint */
    /* Claims are watched from the place at which the recall ended, so no other owner's falls between. */
    state_key(p->number, p->claim, STATE_CLAIM, key);
    if (kafka_publisher_put(&p->publisher, KAFKA_TOPIC_STATE, key, "", 0, &err) != SVS_OK ||
        kafka_saving_tidy(&p->publisher, &p->state, &err) != SVS_OK ||
        kafka_reader_start(&p->claims, &p->worker->readers, p->worker->topic[KAFKA_TOPIC_STATE], p->number,
                           p->recalled, &err) != SVS_OK) {
        kafka_partition_fail(p, err.text);
        return;
    }
    p->phase = PHASE_RUNS;
    p->pause = 0; /* a later failure begins with the shortest one */
    p->save_due = svi_monotonic() + p->worker->o->save;
    kafka_partition_follow(p);
    p->stored = p->offset; /* the topic has what the model has: nothing needs to be saved yet */
    kafka_log("partition %d: model at offset %" PRId64 ", %s", p->number, p->offset < 0 ? 0 : p->offset,
              p->first ? "new" : "from its checkpoint");
}

/* ---- entries */

/* The log does not have the offset: it dropped entries that were never read, or it lost its end. */
static void partition_out_of_range(struct kafka_partition *p) {
    const char *topic = p->worker->o->topic;
    int64_t low = 0, high = 0;
    svs_error err;
    if (kafka_reader_range(&p->worker->readers, topic, p->number, &low, &high, &err) != SVS_OK) {
        kafka_partition_fail(p, err.text);
        return;
    }
    /* Retention has passed the offset: only the gap can be counted. */
    if (p->offset < low) {
        p->worker->counters.offsets_lost += low - p->offset;
        kafka_log("partition %d: samples_lost: the entries at offsets %" PRId64 " to %" PRId64
                  " of topic %s were deleted before they were read (retention.ms, retention.bytes); the "
                  "model continues at %" PRId64,
                  p->number, p->offset, low - 1, topic, low);
        p->offset = low;
    } else if (p->offset > high) {
        /* The model cannot unlearn, so what follows in the log is taken as new. */
        kafka_log(
            "partition %d: log_rewound: topic %s ends at offset %" PRId64 ", but the model has learned up to "
            "%" PRId64 ": the log lost entries that were acknowledged (an unclean election of a leader, or a "
            "topic that was created again); the model keeps them, and continues at %" PRId64,
            p->number, topic, high, p->offset, high);
        p->offset = high;
    }
    partition_read_on(p);
}

static void partition_entry(struct kafka_partition *p, const rd_kafka_message_t *m) {
    char at[24];
    svs_error err;
    const int size = snprintf(at, sizeof at, "%" PRId64, m->offset + 1);
    const svs_code code = partition_child_send(p->child, m->payload, m->len, at, (size_t)size, &err);
    /* Passed in any case: an entry that is no message has no cursor, and the next one's passes over it. */
    p->offset = m->offset + 1;
    if (code == SVS_OK) {
        p->sent = true; /* events that follow are no longer the retained ones of the start */
        p->worker->counters.entries++;
    } else if (code == SVS_NO_MEMORY || code == SVS_LIMIT) {
        /* The entry may be good. To skip it would lose samples, so all begins again from the checkpoint. */
        kafka_partition_fail(p, err.text);
    } else {
        p->worker->counters.undecodable++;
        kafka_log_few(++p->skipped,
                      "partition %d: the entry at offset %" PRId64 " is no message, and is left out: %s",
                      p->number, m->offset, err.text);
    }
}

void kafka_partition_entries(struct kafka_partition *p) {
    rd_kafka_message_t *m;
    char text[700];
    int i = 0;
    /* The record is taken last: once out of the queue it cannot be put back. The phase is asked each time,
     * because an entry may end it. */
    while (i < RECORDS_TURN && p->phase == PHASE_RUNS && partition_child_takes(p->child) &&
           kafka_publisher_waiting(&p->publisher) < PUBLISHED_MAX && (m = kafka_reader_next(&p->reader))) {
        i++;
        const rd_kafka_resp_err_t code = m->err;
        if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
            partition_entry(p, m);
        else if (code != RD_KAFKA_RESP_ERR__PARTITION_EOF && !kafka_reader_out_of_range(code))
            kafka_log("partition %d: %s", p->number,
                      kafka_error_text(code, rd_kafka_message_errstr(m), text, sizeof text));
        rd_kafka_message_destroy(m);
        if (kafka_reader_out_of_range(code)) { /* after the record is freed: this replaces its reader */
            partition_out_of_range(p);
            return;
        }
    }
    /* Records may be left that no descriptor reports again: the loop must not sleep on them. */
    p->more = i == RECORDS_TURN;
}
