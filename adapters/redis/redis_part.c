/* The life of a partition: the lease, the process, the end.
 *
 * Answers of Redis arrive in callbacks, which change the state; redis_part_turn then does what is due. A
 * partition that is left (redis_part_leave) forgets all answers under way, so each callback can rely on the
 * state in which its request was made.
 *
 * Leaving is the only way out, and always the same: kill the process, drop what was read, forget, FREE. An
 * orderly end (redis_part_close) makes a last checkpoint and gives the lease up before that. Nothing of a
 * partition is kept in the folder for a later time: the worker that takes it over, this one included, begins
 * from the checkpoint in Redis. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "redis_log.h"
#include "redis_part_internal.h"
#include "redis_trouble.h"

#define CHILD_PAUSE_MAX 10.0 /* seconds between attempts to begin a process that dies */
#define CHILD_PAUSE     0.2
#define ERROR_PAUSE_MAX 10.0 /* seconds after an error that Redis answers, one more each time */
#define GOOD_SECONDS    30.0 /* a process that lives longer begins with the shortest pause again */

struct redis_part *redis_part_new(struct redis_shared *shared, int number) {
    struct redis_part *p = redis_need(1, sizeof *p);
    p->shared = shared;
    p->number = number;
    redis_names_make(&p->names, shared->stream, number);
    return p;
}

void redis_part_free(struct redis_part **p) {
    if (!*p)
        return;
    redis_part_leave(*p, 0);
    svi_bytes_clear(&(*p)->out.batch);
    svi_free(*p);
    *p = NULL;
}

enum redis_part_state redis_part_state(const struct redis_part *p) {
    return p->state;
}

bool redis_part_busy(const struct redis_part *p) {
    return p->state != REDIS_PART_FREE || p->taking;
}

bool redis_part_wanted(const struct redis_part *p) {
    return p->state == REDIS_PART_FREE && !p->taking && svi_monotonic() >= p->again;
}

void redis_part_script(struct redis_part *p, int lane, enum redis_script script, const enum redis_key *keys,
                       int key_count, const struct redis_word *arguments, int count, redis_answer *done) {
    const char *key[REDIS_KEY_COUNT + 2] = {p->names.key[REDIS_KEY_LEASE], p->names.key[REDIS_KEY_EPOCH]};
    struct redis_word word[REDIS_SCRIPT_ARGS] = {redis_text(p->shared->id), redis_text(p->epoch)};
    for (int i = 0; i < key_count; i++)
        key[2 + i] = p->names.key[keys[i]];
    for (int i = 0; i < count; i++)
        word[2 + i] = arguments[i];
    redis_script_send(p->shared->client, lane, script, key, 2 + key_count, word, 2 + count, done, p);
}

void redis_part_leave(struct redis_part *p, double pause) {
    redis_client_forget(p->shared->client, p);
    redis_client_forget(p->shared->client, &p->read);
    partition_child_free(&p->child);
    redis_part_read_clear(p);
    redis_part_state_clear(p);
    p->out.batch.size = 0;
    p->out.words = 0;
    p->out.unanswered = 0;
    p->taking = p->renewing = p->releasing = false;
    p->state = REDIS_PART_FREE;
    p->again = svi_monotonic() + pause;
}

bool redis_part_lost(struct redis_part *p, const redisReply *reply) {
    char shown[200];
    const bool fenced = redis_fenced(reply);
    if (!fenced && reply->type != REDIS_REPLY_ERROR)
        return false;
    if (fenced) {
        p->shared->fenced++;
        redis_log("partition %d: its lease (epoch %s) is over, so this write was refused and nothing more is "
                  "written: its process is ended, and the partition is left to its present owner",
                  p->number, p->epoch);
    } else
        redis_log("partition %d (keys {%s:%d}:*): Redis answers: %s; %s; trying again", p->number,
                  p->shared->stream, p->number, svi_escape(shown, sizeof shown, reply->str, reply->len),
                  redis_trouble_of_script(reply->str));
    /* A key of a wrong type stays until a person removes it. */
    redis_part_leave(p, fenced ? 0 : fmin(ERROR_PAUSE_MAX, ++p->errors));
    return true;
}

/* ---- the lease */

static void part_taken(void *user, const redisReply *reply) {
    struct redis_part *p = user;
    const redisReply *const *e = (const redisReply *const *)reply->element;
    char shown[200];
    p->taking = false;
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3 || e[0]->type != REDIS_REPLY_INTEGER) {
        redis_log_few(
            ++p->refusals, "partition %d: the lease cannot be taken: %s (keys %s and %s)", p->number,
            reply->type == REDIS_REPLY_ERROR ? svi_escape(shown, sizeof shown, reply->str, reply->len)
                                             : "an unexpected answer",
            p->names.key[REDIS_KEY_LEASE], p->names.key[REDIS_KEY_EPOCH]);
        p->again = svi_monotonic() + 1;
        return;
    }
    if (e[0]->integer == 0) {
        /* Asked again when it runs out; renewals make that later. */
        const double left = e[2]->type == REDIS_REPLY_INTEGER ? (double)e[2]->integer / 1000 : 1;
        p->again = svi_monotonic() + fmin(1, fmax(0.02, left + 0.01));
        return;
    }
    snprintf(p->epoch, sizeof p->epoch, "%lld", e[0]->integer);
    p->renewed = p->asked;
    p->since = svi_monotonic();
    p->child_pause = 0;
    p->shared->takeovers++;
    redis_part_fetch(p);
}

void redis_part_take(struct redis_part *p) {
    const char *keys[] = {p->names.key[REDIS_KEY_LEASE], p->names.key[REDIS_KEY_EPOCH]};
    char ms[24];
    snprintf(ms, sizeof ms, "%.0f", 1000 * p->shared->lease);
    p->taking = true;
    p->asked = svi_monotonic();
    redis_script_send(p->shared->client, REDIS_LANE_LEASE, REDIS_TAKE, keys, 2,
                      (struct redis_word[]){redis_text(p->shared->id), redis_text(ms)}, 2, part_taken, p);
}

static void part_renewed(void *user, const redisReply *reply) {
    struct redis_part *p = user;
    p->renewing = false;
    if (!redis_part_lost(p, reply))
        p->renewed = p->asked;
}

void redis_part_renew(struct redis_part *p) {
    char ms[24];
    if (p->state == REDIS_PART_FREE || p->renewing || p->releasing)
        return;
    snprintf(ms, sizeof ms, "%.0f", 1000 * p->shared->lease);
    p->renewing = true;
    p->asked = svi_monotonic();
    redis_part_script(p, REDIS_LANE_LEASE, REDIS_RENEW, NULL, 0, (struct redis_word[]){redis_text(ms)}, 1,
                      part_renewed);
}

static void part_released(void *user, const redisReply *reply) {
    struct redis_part *p = user;
    if (redis_part_lost(p, reply))
        return;
    redis_log("partition %d: given up with its checkpoint at %s", p->number,
              p->save.stored[0] ? p->save.stored : "the beginning");
    redis_part_leave(p, p->shared->lease / 2);
}

/* After all writes: they are in the same lane, so the release cannot overtake one. */
static void part_release(struct redis_part *p) {
    if (p->releasing)
        return;
    p->releasing = true;
    redis_part_script(p, REDIS_LANE_WRITE, REDIS_RELEASE, NULL, 0, NULL, 0, part_released);
}

void redis_part_close(struct redis_part *p) {
    if (p->state == REDIS_PART_FREE && p->taking) /* an answer that grants it would come too late */
        redis_part_leave(p, 1);
    else if (p->state == REDIS_PART_FETCHING)
        part_release(p);
    if (p->state == REDIS_PART_RUNNING || p->state == REDIS_PART_FETCHING)
        p->state = REDIS_PART_CLOSING;
}

/* ---- the loop */

int redis_part_items(const struct redis_part *p, zmq_pollitem_t *items) {
    return p->child ? partition_child_items(p->child, items) : 0;
}

double redis_part_wait(const struct redis_part *p) {
    const double now = svi_monotonic();
    double wait = p->state == REDIS_PART_FREE && !p->taking ? fmax(0, p->again - now) : HUGE_VAL;
    if (p->child)
        wait = fmin(wait, partition_child_wait(p->child));
    else if (p->child_again > now)
        wait = fmin(wait, p->child_again - now);
    if (p->state == REDIS_PART_RUNNING && !p->save.begun)
        wait = fmin(wait, fmax(0, p->save.due - now));
    return wait;
}

/* It is begun again from the stored checkpoint, not on its own folder: events of samples that it had taken
 * may not have reached us, and only samples that it takes again publish theirs. */
static void part_child_dead(struct redis_part *p) {
    const double now = svi_monotonic();
    redis_log("partition %d: its process ended: %s", p->number, partition_child_why(p->child));
    if (p->read.generation == 0 && p->save.stored_next >= 0)
        redis_log("partition %d: it never began from the checkpoint in %s: without that key it begins from "
                  "nothing",
                  p->number, p->names.key[REDIS_KEY_STATE]);
    if (now - p->since > GOOD_SECONDS)
        p->child_pause = 0;
    p->child_pause = fmin(CHILD_PAUSE_MAX, fmax(CHILD_PAUSE, 2 * p->child_pause));
    p->child_again = now + p->child_pause;
    p->since = now;
    partition_child_free(&p->child);
    redis_part_read_clear(p);
    /* Answers under way are about a checkpoint and about reads of the process that has ended. That to a
     * release is awaited, and then none of these is. */
    if (!p->releasing) {
        redis_client_forget(p->shared->client, p);
        redis_client_forget(p->shared->client, &p->read);
        p->renewing = false;
        p->out.unanswered = 0;
    }
    redis_part_state_clear(p);
    if (p->state == REDIS_PART_CLOSING)
        part_release(p);
    else
        p->state = REDIS_PART_FETCHING;
}

static void part_running(struct redis_part *p) {
    const enum partition_state child = partition_child_state(p->child);
    const double now = svi_monotonic();
    const bool closing = p->state == REDIS_PART_CLOSING;
    /* A stream that begins stores its empty state before it takes anything: events are known by the epoch of
     * the stream, which a second beginning would choose again. */
    const bool begins = p->save.stored_next < 0;
    if (!begins)
        redis_part_read_turn(p);
    redis_part_out_flush(p);
    if (p->save.begun || p->releasing || child != PARTITION_READY)
        return;
    if (begins && !p->save.failed)
        p->save.due = now;
    /* One attempt: an older checkpoint and the log behind it lose nothing. */
    if (closing ? p->save.failed || !redis_part_save(p) : (now >= p->save.due && !redis_part_save(p))) {
        if (closing)
            part_release(p);
        p->save.due = now + p->shared->save;
    }
}

void redis_part_turn(struct redis_part *p) {
    if (p->state == REDIS_PART_FREE)
        return;
    if (p->child)
        partition_child_turn(p->child);
    if (p->child && partition_child_state(p->child) == PARTITION_DEAD)
        part_child_dead(p);
    if (p->child)
        part_running(p);
    else if (p->state == REDIS_PART_FETCHING && p->child_again > 0 && svi_monotonic() >= p->child_again) {
        p->child_again = 0;
        redis_part_fetch(p);
    }
}
