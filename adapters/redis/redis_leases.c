#include "redis_leases.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "redis_log.h"

#define RENEWALS 4 /* in the length of a lease */

void redis_leases_open(struct redis_leases *l, struct redis_shared *s, int count, const bool *wanted) {
    *l = (struct redis_leases){.shared = s, .count = count};
    l->part = redis_need((size_t)count, sizeof *l->part);
    redis_names_make(&l->names, s->stream, 0);
    for (int i = 0; i < count; i++)
        if (!wanted || wanted[i]) {
            l->part[i] = redis_part_new(s, i);
            l->fixed += wanted != NULL;
        }
    l->balance = svi_monotonic() + 2 * s->lease; /* workers that start together find each other first */
}

void redis_leases_free(struct redis_leases *l) {
    for (int i = 0; i < l->count; i++)
        if (l->part[i])
            redis_part_free(&l->part[i]);
    svi_free(l->part);
    *l = (struct redis_leases){0};
}

static void leases_left(void *user, const redisReply *reply) {
    (void)user;
    (void)reply;
}

void redis_leases_close(struct redis_leases *l) {
    const char *workers = l->names.key[REDIS_KEY_WORKERS];
    const struct redis_word words[] = {redis_text("ZREM"), redis_text(workers), redis_text(l->shared->id)};
    if (!l->closing && !l->fixed)
        redis_client_send(l->shared->client, REDIS_LANE_LEASE, workers, words, 3, leases_left, l);
    l->closing = true;
    for (int i = 0; i < l->count; i++)
        if (l->part[i])
            redis_part_close(l->part[i]);
}

int redis_leases_held(const struct redis_leases *l) {
    int n = 0;
    for (int i = 0; i < l->count; i++)
        n += l->part[i] && redis_part_state(l->part[i]) != REDIS_PART_FREE;
    return n;
}

static void leases_beat_done(void *user, const redisReply *reply) {
    struct redis_leases *l = user;
    l->beating = false;
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2) {
        char shown[200];
        redis_log_few(
            ++l->refusals, "this worker cannot register in %s: Redis answers: %s",
            l->names.key[REDIS_KEY_WORKERS],
            reply->type == REDIS_REPLY_ERROR ? svi_escape(shown, sizeof shown, reply->str, reply->len) : "?");
        return;
    }
    const int workers = (int)reply->element[0]->integer;
    if (workers != l->workers)
        redis_log("%d worker%s of stream %s", workers, workers == 1 ? "" : "s", l->shared->stream);
    l->workers = workers;
    l->rank = (int)reply->element[1]->integer;
}

static void leases_beat(struct redis_leases *l, double now) {
    const char *keys[] = {l->names.key[REDIS_KEY_WORKERS]};
    char ms[24];
    if (l->beating || now < l->beat || l->fixed || l->closing)
        return;
    snprintf(ms, sizeof ms, "%.0f", 1000 * l->shared->lease);
    l->beating = true;
    l->beat = now + l->shared->lease / RENEWALS;
    redis_script_send(l->shared->client, REDIS_LANE_LEASE, REDIS_BEAT, keys, 1,
                      (struct redis_word[]){redis_text(l->shared->id), redis_text(ms)}, 2, leases_beat_done,
                      l);
}

/* Partitions that this worker should hold. */
static int leases_share(const struct redis_leases *l) {
    if (l->fixed)
        return l->fixed;
    return l->workers > 0 ? l->count / l->workers + (l->rank < l->count % l->workers) : 0;
}

double redis_leases_wait(const struct redis_leases *l) {
    const double now = svi_monotonic();
    double wait = fmin(fmax(0, l->renew - now), l->fixed || l->closing ? HUGE_VAL : fmax(0, l->beat - now));
    const bool more = !l->closing && redis_leases_held(l) < leases_share(l);
    for (int i = 0; i < l->count; i++)
        if (l->part[i] && (more || redis_part_state(l->part[i]) != REDIS_PART_FREE))
            wait = fmin(wait, redis_part_wait(l->part[i]));
    return wait;
}

/* Asks for further leases, each worker beginning at another partition, so they do not meet at each. */
static void leases_take(struct redis_leases *l) {
    int missing = leases_share(l);
    const int first = l->workers > 0 ? l->rank * l->count / l->workers : 0;
    for (int i = 0; i < l->count; i++)
        missing -= l->part[i] && redis_part_busy(l->part[i]);
    for (int i = 0; i < l->count && missing > 0 && !l->closing; i++) {
        struct redis_part *p = l->part[(first + i) % l->count];
        if (p && redis_part_wanted(p)) {
            redis_part_take(p);
            missing--;
        }
    }
}

static void leases_balance(struct redis_leases *l, double now) {
    if (l->fixed || l->closing || l->workers == 0 || now < l->balance ||
        redis_leases_held(l) <= leases_share(l))
        return;
    l->balance = now + l->shared->lease / 2;
    for (int i = l->count - 1; i >= 0; i--)
        if (l->part[i] && redis_part_state(l->part[i]) == REDIS_PART_RUNNING) {
            redis_log("partition %d is given up for another worker", i);
            redis_part_close(l->part[i]);
            return;
        }
}

void redis_leases_turn(struct redis_leases *l) {
    const double now = svi_monotonic();
    leases_beat(l, now);
    if (now >= l->renew) {
        l->renew = now + l->shared->lease / RENEWALS;
        for (int i = 0; i < l->count; i++)
            if (l->part[i])
                redis_part_renew(l->part[i]);
    }
    leases_take(l);
    leases_balance(l, now);
    for (int i = 0; i < l->count; i++)
        if (l->part[i])
            redis_part_turn(l->part[i]);
}
