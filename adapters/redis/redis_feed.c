/* Rows of files (common/feed_entries) into the log.
 *
 * Under the name of the source, each partition counts the samples that it was given. The script that adds an
 * entry compares its number with that count: an entry that is there already is not added twice, neither after
 * a broken connection nor when the same command runs again. Rows below the count are not even sent
 * (feed_entry), part of an entry too.
 *
 * Entries of a partition form groups. A group is done when all of its entries have been answered and, with
 * --wait, enough replicas have confirmed them; the next group begins after that. WAIT is about the writes of
 * its own connection: when that broke in between, the whole group is sent again, in which each entry that is
 * there writes its count once more. Memory holds one group a partition, BYTES of them together.
 *
 * A count below the group is a log that lost entries that were acknowledged (log_rewound). That is reported,
 * and their numbers are skipped: the model may have those rows. */
#include "redis_feed.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../common/feed_entries.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/fnv.h"
#include "redis_log.h"
#include "redis_loop.h"
#include "redis_scripts.h"
#include "wire/pack.h"
#include "wire/cursor.h"
#include "wire/fields.h"

#define GROUP      64                 /* entries */
#define BYTES      ((size_t)32 << 20) /* of unconfirmed entries of all partitions */
#define WAIT_MS    "1000"             /* until a WAIT is sent again */
#define LANE       0
#define SOURCES    "10000"
#define SHOW_EVERY 10.0 /* seconds */

struct feed_item {
    struct feed_part *part;
    void *bytes; /* owned */
    size_t size;
    int64_t n;
    int count, answer; /* of the script: 1, 0, -1; 2: none yet */
    bool added;        /* it was not there before */
};

struct feed_part {
    struct redis_feed *feed;
    struct redis_names names;
    bool known;    /* `next` was asked for */
    int64_t next;  /* samples of this source that are there */
    int64_t place; /* number of the next row of the files in this partition */
    struct feed_item item[GROUP];
    int items, unanswered;
    bool closed;    /* no entry is added: its answers, or the replicas, are awaited */
    bool waiting;   /* for WAIT */
    int64_t breaks; /* of the client, when the first entry was sent */
};

struct redis_feed {
    const struct redis_options *options;
    struct redis_client client;
    struct redis_loop loop;
    struct feed_part *part; /* [count] */
    int count;
    char src[SVS_NAME_MAX + 1];
    size_t bytes;
    int64_t added, there, lost, slow; /* samples; waits for replicas */
    double began, show;
    char failure[480];
};

static void feed_part_turn(struct feed_part *p);

static void feed_answered(void *user, const redisReply *reply) {
    /* Not always in the order of the entries: one that Redis had no memory for is sent again. */
    struct feed_item *item = user;
    struct feed_part *p = item->part;
    const bool good = reply->type == REDIS_REPLY_ARRAY && reply->elements == 2;
    char shown[200];
    if (!good) {
        snprintf(
            p->feed->failure, sizeof p->feed->failure, "%s: Redis answers: %s", p->names.key[REDIS_KEY_IN],
            reply->type == REDIS_REPLY_ERROR ? svi_escape(shown, sizeof shown, reply->str, reply->len) : "?");
        item->answer = -1;
    } else {
        item->answer = (int)reply->element[0]->integer;
        p->next = reply->element[1]->integer;
        item->added = item->added || item->answer == 1;
        if (item->answer == 0 && p->next > item->n && p->next < item->n + item->count)
            snprintf(p->feed->failure, sizeof p->feed->failure,
                     "%s: another feed adds samples of %s, in batches of another size: let one of them end, "
                     "then repeat this one, which adds the rows that are missing",
                     p->names.key[REDIS_KEY_IN], p->feed->src);
    }
    p->unanswered--;
}

static void feed_send(struct feed_part *p, struct feed_item *item, bool force) {
    char n[24], count[16];
    const char *keys[] = {p->names.key[REDIS_KEY_SRC], p->names.key[REDIS_KEY_IN]};
    snprintf(n, sizeof n, "%" PRId64, item->n);
    snprintf(count, sizeof count, "%d", item->count);
    item->answer = 2;
    redis_script_send(&p->feed->client, LANE, REDIS_ADD, keys, 2,
                      (struct redis_word[]){redis_text(p->feed->src), redis_text(n), redis_text(count),
                                            redis_bytes(item->bytes, item->size), redis_text(SOURCES),
                                            redis_text(force ? "1" : "0")},
                      6, feed_answered, item);
}

static int64_t feed_breaks(const struct redis_feed *f) {
    return f->client.reconnects + f->client.redirects;
}

/* Entries that are there are counted once more and not added. */
static void feed_again(struct feed_part *p, bool force) {
    p->breaks = feed_breaks(p->feed);
    p->unanswered = p->items;
    for (int i = 0; i < p->items; i++)
        feed_send(p, &p->item[i], force);
}

static void feed_waited(void *user, const redisReply *reply) {
    struct feed_part *p = user;
    struct redis_feed *f = p->feed;
    const int64_t got = reply->type == REDIS_REPLY_INTEGER ? reply->integer : 0;
    p->waiting = false;
    if (got >= f->options->wait && p->breaks == feed_breaks(f)) {
        p->closed = false;
        for (int i = 0; i < p->items; i++) {
            *(p->item[i].added ? &f->added : &f->there) += p->item[i].count;
            f->bytes -= p->item[i].size;
            svi_free(p->item[i].bytes);
        }
        p->items = 0;
        return;
    }
    if (got < f->options->wait)
        redis_log_few(++f->slow,
                      "%" PRId64 " of %" PRId64
                      " replicas have confirmed the entries of %s; waiting for them",
                      got, f->options->wait, p->names.key[REDIS_KEY_IN]);
    feed_again(p, false);
}

/* A group whose entries are all answered: confirmed, or sent again. */
static void feed_part_turn(struct feed_part *p) {
    struct redis_feed *f = p->feed;
    bool gap = false;
    if (!p->closed || p->unanswered > 0 || p->waiting || f->failure[0])
        return;
    for (int i = 0; i < p->items; i++)
        gap = gap || p->item[i].answer < 0;
    if (gap) {
        /* The entries of this group are at hand: a server that lost them gets them again. */
        const int64_t first = p->item[0].n, lost = first > p->next ? first - p->next : 0;
        f->lost += lost;
        if (lost > 0)
            redis_log(
                "log_rewound: %s has %" PRId64 " samples of %s, after it had acknowledged %" PRId64
                ": the others were lost in a failover (--wait 1 prevents that). Going on with row %" PRId64
                " of the partition",
                p->names.key[REDIS_KEY_IN], p->next, f->src, first, first + 1);
        feed_again(p, lost > 0);
    } else if (f->options->wait > 0) {
        char replicas[24];
        snprintf(replicas, sizeof replicas, "%" PRId64, f->options->wait);
        p->waiting = true;
        redis_client_send(
            &f->client, LANE, p->names.key[REDIS_KEY_IN],
            (struct redis_word[]){redis_text("WAIT"), redis_text(replicas), redis_text(WAIT_MS)}, 3,
            feed_waited, p);
    } else {
        const redisReply confirmed = {.type = REDIS_REPLY_INTEGER, .integer = INT_MAX};
        p->breaks = feed_breaks(f); /* nothing was to be confirmed */
        feed_waited(p, &confirmed);
    }
}

/* False: a signal or a failure. */
static bool feed_turn(struct redis_feed *f) {
    redis_loop_turn(&f->loop, &f->client, 1, NULL, 0, NULL);
    for (int i = 0; i < f->count; i++)
        feed_part_turn(&f->part[i]);
    if (!f->options->quiet && svi_monotonic() >= f->show) {
        redis_log("%" PRId64 " samples added to the log", f->added);
        f->show = svi_monotonic() + SHOW_EVERY;
    }
    return !f->loop.stop && !f->client.hopeless && !f->failure[0];
}

static bool feed_flush(struct redis_feed *f) {
    bool good = true;
    for (int i = 0; i < f->count; i++)
        f->part[i].closed = f->part[i].closed || f->part[i].items > 0;
    for (int i = 0; i < f->count; i++) {
        feed_part_turn(&f->part[i]);
        while (f->part[i].closed && good)
            good = feed_turn(f);
    }
    return good;
}

/* ---- entries */

static void feed_next(void *user, const redisReply *reply) {
    struct feed_part *p = user;
    char shown[200];
    p->known = reply->type != REDIS_REPLY_ERROR;
    if (!p->known)
        snprintf(p->feed->failure, sizeof p->feed->failure, "%s: Redis answers: %s",
                 p->names.key[REDIS_KEY_SRC], svi_escape(shown, sizeof shown, reply->str, reply->len));
    p->next = reply->type == REDIS_REPLY_STRING ? atoll(reply->str) : 0;
}

static svs_code feed_stopped(const struct redis_feed *f, svs_error *err) {
    return svi_fail(err, SVS_IO, "%s",
                    f->failure[0]        ? f->failure
                    : f->client.hopeless ? "Redis refuses us"
                                         : "stopped; the same command again adds the rows that are missing");
}

static svs_code feed_know(struct feed_part *p, svs_error *err) {
    char field[SVS_NAME_MAX + 3];
    const char *key = p->names.key[REDIS_KEY_SRC];
    snprintf(field, sizeof field, "s:%s", p->feed->src);
    const struct redis_word words[] = {redis_text("HGET"), redis_text(key), redis_text(field)};
    if (!redis_loop_ask(&p->feed->loop, &p->feed->client, key, words, 3, feed_next, p) || !p->known)
        return feed_stopped(p->feed, err);
    return SVS_OK;
}

/* The entry without its first `skip` samples; the names of its columns, which the first one states, go to the
 * one that is the first then. */
static svs_code feed_cut(const void *bytes, size_t size, int skip, struct svi_bytes *out, svs_error *err) {
    const uint8_t *at = bytes, *end = at + size, *columns = NULL, *columns_end = NULL;
    struct svi_item array, map, key;
    struct svi_pack p;
    at = svi_item_read(at, &array);
    if (array.type != SVI_ARRAY)
        return svi_fail(err, SVS_WRONG_TYPE, "an entry is no batch");
    for (int i = 0; i < skip; i++) {
        const uint8_t *inside = svi_item_read(at, &map);
        for (uint32_t k = 0; i == 0 && map.type == SVI_MAP && k < map.length; k++) {
            const uint8_t *pair = inside, *value = svi_item_read(inside, &key);
            inside = value;
            svi_skip(&inside, end, SVI_WALK_MAX);
            if (svi_item_is(&key, "columns")) {
                columns = pair;
                columns_end = inside;
            }
        }
        svi_skip(&at, end, SVI_WALK_MAX);
    }
    svi_pack_begin(&p, out);
    svi_pack_array(&p, array.length - (uint32_t)skip);
    if (columns) {
        at = svi_item_read(at, &map);
        svi_pack_map(&p, map.length + 1);
        svi_pack_raw(&p, columns, (size_t)(columns_end - columns));
    }
    svi_pack_raw(&p, at, (size_t)(end - at));
    return svi_pack_end(&p) == SVS_OK ? SVS_OK : svi_fail_memory(err, "an entry");
}

static svs_code feed_entry(void *user, int partition, const void *bytes, size_t size, int count,
                           svs_error *err) {
    struct redis_feed *f = user;
    struct feed_part *p = &f->part[partition];
    struct svi_bytes cut = {0};
    while (p->closed)
        if (!feed_turn(f))
            return feed_stopped(f, err);
    if (!p->known)
        SVI_TRY(feed_know(p, err));
    const int64_t n = p->place;
    p->place += count;
    if (p->place <= p->next) {
        f->there += count;
        return SVS_OK;
    }
    const int skip = n < p->next ? (int)(p->next - n) : 0;
    f->there += skip;
    if (skip > 0)
        SVI_TRY(feed_cut(bytes, size, skip, &cut, err));
    const struct svi_bytes whole = {(uint8_t *)(uintptr_t)bytes, size, size},
                           *entry = skip > 0 ? &cut : &whole;
    struct feed_item *item = &p->item[p->items++];
    *item = (struct feed_item){p, redis_need(1, entry->size), entry->size, n + skip, count - skip, 2, false};
    memcpy(item->bytes, entry->data, entry->size);
    svi_bytes_clear(&cut);
    f->bytes += item->size;
    if (p->items == 1)
        p->breaks = feed_breaks(f);
    p->unanswered++;
    feed_send(p, item, false);
    p->closed = p->items == GROUP;
    if (f->bytes > BYTES ? !feed_flush(f) : p->closed && !feed_turn(f))
        return feed_stopped(f, err);
    return SVS_OK;
}

static bool feed_idle(void *user) {
    struct redis_feed *f = user;
    return feed_flush(f);
}

/* ---- start and end */

static void feed_log(void *user, const char *text) {
    const struct redis_feed *f = user;
    if (!f->options->quiet)
        redis_log("%s", text);
}

/* Files keep their name from run to run; what can be read once has a name of its own each time. */
static void feed_name(struct redis_feed *f) {
    const struct redis_options *o = f->options;
    char host[256] = "", whole[PATH_MAX];
    uint64_t h = SVI_FNV_SEED;
    struct stat s;
    if (o->src) {
        snprintf(f->src, sizeof f->src, "%s", o->src);
        return;
    }
    gethostname(host, sizeof host - 1);
    h = svi_fnv(h, host, strlen(host) + 1);
    for (int i = 0; i < o->paths; i++) {
        const char *path = realpath(o->path[i], whole) ? whole : o->path[i];
        h = svi_fnv(h, path, strlen(path) + 1);
        if (stat(o->path[i], &s) != 0 || !S_ISREG(s.st_mode)) {
            snprintf(f->src, sizeof f->src, "feed-%ld-%.0f", (long)getpid(), 1000 * svi_wall_clock());
            return;
        }
    }
    const char *slash = strrchr(o->path[0], '/');
    snprintf(f->src, sizeof f->src, "%.40s-%012" PRIx64, slash ? slash + 1 : o->path[0],
             h & UINT64_C(0xffffffffffff));
}

static int feed_report(const struct redis_feed *f, const struct feed_entries_figures *figures, svs_code code,
                       const svs_error *err) {
    const double seconds = svi_monotonic() - f->began;
    if (code != SVS_OK)
        redis_log("%s", err->text);
    if (f->there > 0 && !f->options->quiet)
        redis_log("%" PRId64 " rows had arrived in an earlier run as %s", f->there, f->src);
    if (figures->unread > 0)
        redis_log("%" PRId64 " rows could not be read", figures->unread);
    if (f->lost > 0)
        redis_log("%" PRId64 " samples that Redis had acknowledged were lost in a failover", f->lost);
    if (!f->options->quiet || code != SVS_OK)
        redis_log("%" PRId64 " samples added to the log in %.2f s, as %s", f->added, seconds, f->src);
    return code != SVS_OK || f->lost > 0 || figures->unread > 0 ? 1 : 0;
}

static int feed_start(struct redis_feed *f) {
    const struct redis_options *o = f->options;
    struct feed_entries_figures figures = {0};
    svs_error err = {0};
    f->count = redis_loop_partitions(&f->loop, &f->client, o->stream, (int)o->count, true);
    if (f->count == 0)
        return 1;
    f->part = redis_need((size_t)f->count, sizeof *f->part);
    for (int i = 0; i < f->count; i++) {
        f->part[i].feed = f;
        redis_names_make(&f->part[i].names, o->stream, i);
    }
    const struct feed_entries_options entries = {.settings = &o->settings,
                                                 .column = o->column,
                                                 .partitions = f->count,
                                                 .batch = (int)o->batch,
                                                 .packed = o->packed,
                                                 .quiet = o->quiet,
                                                 .entry = feed_entry,
                                                 .idle = feed_idle,
                                                 .log = feed_log,
                                                 .user = f};
    svs_code code = feed_entries_run(&entries, o->path, o->paths, &figures, &err);
    if (!feed_flush(f) && code == SVS_OK)
        code = feed_stopped(f, &err);
    const int result = feed_report(f, &figures, code, &err);
    for (int i = 0; i < f->count; i++)
        for (int k = 0; k < f->part[i].items; k++)
            svi_free(f->part[i].item[k].bytes);
    svi_free(f->part);
    return result;
}

int redis_feed_run(const struct redis_options *o) {
    struct redis_feed *f = redis_need(1, sizeof *f);
    f->options = o;
    f->began = svi_monotonic();
    f->show = f->began + SHOW_EVERY;
    redis_client_open(&f->client, &o->url, o->timeout);
    feed_name(f);
    int code = redis_loop_open(&f->loop);
    if (code == 0)
        code = feed_start(f);
    redis_loop_close(&f->loop);
    redis_client_close(&f->client);
    svi_free(f);
    return code;
}
