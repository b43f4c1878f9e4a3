/* The commands `sums` (records of all partitions to standard output, as `svmstream merge -` reads them) and
 * `status` (a line a partition). */
#include "redis_read.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/fnv.h"
#include "redis_log.h"
#include "redis_loop.h"
#include "redis_scripts.h"

#define FOLLOW_SECONDS 1.0

struct reading {
    struct redis_client client;
    struct redis_loop loop;
    uint64_t *seen; /* [count] hashes of the records that were written */
    int at;         /* partition */
    int records;
    bool failed;
};

static void sums_record(void *user, const redisReply *reply) {
    struct reading *r = user;
    if (reply->type != REDIS_REPLY_STRING)
        return;
    const uint64_t hash = svi_fnv(SVI_FNV_SEED, reply->str, reply->len);
    if (hash == r->seen[r->at])
        return;
    r->seen[r->at] = hash;
    r->records++;
    r->failed = r->failed || fwrite(reply->str, 1, reply->len, stdout) != reply->len;
}

/* One round over all partitions. False: it is time to end. */
static bool sums_round(struct reading *r, const char *stream, int count) {
    struct redis_names names;
    for (r->at = 0; r->at < count; r->at++) {
        redis_names_make(&names, stream, r->at);
        const char *key = names.key[REDIS_KEY_SUMS];
        const struct redis_word words[] = {redis_text("GET"), redis_text(key)};
        if (!redis_loop_ask(&r->loop, &r->client, key, words, 2, sums_record, r))
            return false;
    }
    r->failed = fflush(stdout) != 0 || r->failed;
    if (r->failed)
        redis_log("standard output: %s", strerror(errno));
    return !r->failed;
}

static int sums_all(struct reading *r, const struct redis_options *o, int count) {
    r->seen = redis_need((size_t)count, sizeof *r->seen);
    bool on = sums_round(r, o->stream, count);
    while (on && o->follow) {
        const double end = svi_monotonic() + FOLLOW_SECONDS;
        while (!r->loop.stop && svi_monotonic() < end)
            redis_loop_turn(&r->loop, &r->client, end - svi_monotonic(), NULL, 0, NULL);
        on = !r->loop.stop && sums_round(r, o->stream, count);
    }
    if (r->records == 0 && !r->failed && !r->client.hopeless)
        redis_log("stream %s has no sums: its workers need `-- --publish.sums SECONDS`", o->stream);
    svi_free(r->seen);
    return r->failed || r->client.hopeless || r->records == 0 ? 1 : 0;
}

/* ---- status */

struct status_row {
    long long length, left;
    char owner[80], epoch[24], samples[24], at[80], next[24], age[24];
};

static void status_text(char *out, size_t size, const redisReply *from) {
    if (from->type == REDIS_REPLY_STRING)
        svi_escape(out, size, from->str, from->len);
    else
        snprintf(out, size, "-");
}

/* [holder, ms left, epoch, entries, samples, at, next, seconds]. */
static void status_answer(void *user, const redisReply *reply) {
    struct status_row *row = user;
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 8) {
        redis_log("Redis answers: %s", reply->type == REDIS_REPLY_ERROR ? reply->str : "?");
        return;
    }
    redisReply **e = reply->element;
    status_text(row->owner, sizeof row->owner, e[0]);
    row->left = e[1]->integer;
    status_text(row->epoch, sizeof row->epoch, e[2]);
    row->length = e[3]->integer;
    status_text(row->samples, sizeof row->samples, e[4]);
    status_text(row->at, sizeof row->at, e[5]);
    status_text(row->next, sizeof row->next, e[6]);
    status_text(row->age, sizeof row->age, e[7]);
}

static int status_all(struct reading *r, const struct redis_options *o, int count) {
    static const char script[] =
        "local s=redis.call('HMGET',KEYS[5],'at','next','time') local t=redis.call('TIME')[1] "
        "return {redis.call('GET',KEYS[1]),redis.call('PTTL',KEYS[1]),redis.call('GET',KEYS[2]),"
        "redis.call('XLEN',KEYS[3]),redis.call('HGET',KEYS[4],'e'),s[1],s[2],s[3] and tostring(t-s[3])}";
    static const enum redis_key keys[] = {REDIS_KEY_LEASE, REDIS_KEY_EPOCH, REDIS_KEY_IN, REDIS_KEY_SRC,
                                          REDIS_KEY_STATE};
    struct redis_names names;
    printf("%-9s %-32s %6s %7s %9s %12s %12s %s\n", "partition", "owner", "epoch", "lease/s", "entries",
           "samples", "checkpoint", "age/s");
    for (int i = 0; i < count; i++) {
        struct status_row row = {0};
        struct redis_word words[8] = {redis_text("EVAL"), redis_text(script), redis_text("5")};
        redis_names_make(&names, o->stream, i);
        for (int k = 0; k < 5; k++)
            words[3 + k] = redis_text(names.key[keys[k]]);
        if (!redis_loop_ask(&r->loop, &r->client, names.key[REDIS_KEY_IN], words, 8, status_answer, &row))
            return 1;
        printf("%-9d %-32s %6s %7.1f %9lld %12s %12s %s\n", i, row.owner, row.epoch,
               row.left > 0 ? (double)row.left / 1000 : 0, row.length, row.samples, row.next, row.age);
    }
    return fflush(stdout) == 0 ? 0 : 1;
}

static int reading_run(const struct redis_options *o,
                       int (*all)(struct reading *r, const struct redis_options *o, int count)) {
    struct reading *r = redis_need(1, sizeof *r);
    redis_client_open(&r->client, &o->url, o->timeout);
    int code = redis_loop_open(&r->loop);
    const int count =
        code == 0 ? redis_loop_partitions(&r->loop, &r->client, o->stream, (int)o->count, false) : 0;
    code = count > 0 ? all(r, o, count) : r->loop.stop ? 0 : 1;
    redis_loop_close(&r->loop);
    redis_client_close(&r->client);
    svi_free(r);
    return code;
}

int redis_sums_run(const struct redis_options *o) {
    return reading_run(o, sums_all);
}

int redis_status_run(const struct redis_options *o) {
    return reading_run(o, status_all);
}
