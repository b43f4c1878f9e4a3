/* From the log to the process: reads :in after the place that the process states, checks the entries, and
 * gives them to it as it takes them.
 *
 * One read is under way at a time; it blocks at Redis for BLOCK_MS where there is nothing new. What has been
 * read and not given waits in a list, BYTES of it at most; the number of entries asked for follows their
 * size.
 *
 * Entries that feed wrote state the number of their first sample in the log (e) and how many there are (c).
 * So a hole in the numbers is a part of the log that somebody else trimmed, and a number that returns is a
 * log that lost entries which the process has (a failover without WAIT): log_rewound. Both are reported and
 * counted. Neither stops the reading, and no sample is dropped for its number: the place is the id of the
 * entry, and the process counts samples itself. An end of the log below our place is looked for whenever a
 * connection was made again; the log is then read from that end on. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "redis_log.h"
#include "redis_part_internal.h"

#define BLOCK_MS   "500"
#define BYTES      ((size_t)4 << 20) /* of entries that wait */
#define COUNT_MAX  256
#define NUMBER_MAX ((int64_t)1 << 53) /* larger ones come from another program */

/* Splits "ID NUMBER". */
static void read_place(struct redis_part_reading *r, const char *at, size_t size) {
    char text[REDIS_AT_BYTES];
    snprintf(text, sizeof text, "%.*s", (int)size, at);
    char *space = strchr(text, ' ');
    r->expected = space ? atoll(space + 1) : -1;
    snprintf(r->cursor, sizeof r->cursor, "%.*s", (int)(space ? space - text : (int)strlen(text)), text);
    if (!r->cursor[0])
        strcpy(r->cursor, "0-0");
}

static int64_t read_breaks(const struct redis_part *p) {
    return p->shared->client->reconnects + p->shared->client->redirects;
}

/* Order of two ids MS-SEQ. */
static int read_compare(const char *a, const char *b) {
    char *end_a, *end_b;
    const uint64_t x = strtoull(a, &end_a, 10), y = strtoull(b, &end_b, 10);
    const uint64_t k = *end_a ? strtoull(end_a + 1, NULL, 10) : 0,
                   l = *end_b ? strtoull(end_b + 1, NULL, 10) : 0;
    return x != y ? (x < y ? -1 : 1) : k != l ? (k < l ? -1 : 1) : 0;
}

static void read_drop(struct redis_entry **first) {
    struct redis_entry *e;
    while ((e = *first)) {
        *first = e->next;
        svi_free(e);
    }
}

void redis_part_read_clear(struct redis_part *p) {
    read_drop(&p->read.first);
    read_drop(&p->read.fresh);
    p->read = (struct redis_part_reading){.part = p, .expected = -1};
}

void redis_part_read_begin(struct redis_part *p) {
    redis_part_read_clear(p);
    p->read.count = 1; /* until the size of an entry is known */
}

/* ---- the end of the log */

void redis_part_read_rewound(struct redis_part *p, const char *where, int64_t samples) {
    char text[500];
    snprintf(text, sizeof text,
             "log_rewound: partition %d of %s: %s: %" PRId64 " samples that Redis had acknowledged are no "
             "longer in the log (a failover, and the replica did not have them; `feed --wait 1` prevents "
             "that). New samples are taken as new",
             p->number, p->shared->stream, where, samples);
    p->shared->rewound++;
    redis_log_few(++p->gaps, "%s", text);
    redis_part_out_notice(p, "log_rewound", text);
}

static void read_rewound(struct redis_part *p, const char *where, int64_t from, int64_t to) {
    redis_part_read_rewound(p, where, from > to && to >= 0 ? from - to : 0);
}

/* [last id of the stream or nil, e]. */
static void read_verified(void *user, const redisReply *reply) {
    struct redis_part_reading *r = user;
    struct redis_part *p = r->part;
    r->under_way = false;
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2) {
        redis_part_lost(p, reply);
        return;
    }
    const redisReply *last = reply->element[0], *number = reply->element[1];
    const int64_t counted = number->type == REDIS_REPLY_STRING ? atoll(number->str) : -1;
    const char *end = last->type == REDIS_REPLY_STRING ? last->str : "0-0";
    r->verified = true;
    if (read_compare(end, r->cursor) < 0) {
        char where[120];
        snprintf(where, sizeof where, "the log ends at %.40s, the model stands at %.40s", end, r->cursor);
        read_rewound(p, where, r->expected, counted < 0 ? 0 : counted);
        snprintf(r->cursor, sizeof r->cursor, "%s", end);
        r->expected = counted < 0 ? 0 : counted;
        /* Entries that wait are of the lost end; the process gets them all the same: they were acknowledged.
         */
    }
}

static void read_verify(struct redis_part *p) {
    static const char text[] = "local last=false if redis.call('EXISTS',KEYS[1])==1 then "
                               "local i=redis.call('XINFO','STREAM',KEYS[1]) "
                               "for k=1,#i,2 do if i[k]=='last-generated-id' then last=i[k+1] end end end "
                               "return {last,redis.call('HGET',KEYS[2],'e')}";
    const char *in = p->names.key[REDIS_KEY_IN];
    const struct redis_word words[] = {redis_text("EVAL"), redis_text(text), redis_text("2"), redis_text(in),
                                       redis_text(p->names.key[REDIS_KEY_SRC])};
    p->read.under_way = true;
    p->read.breaks = read_breaks(p);
    redis_client_send(p->shared->client, REDIS_LANE_READ + p->number, in, words, 5, read_verified, &p->read);
}

/* ---- entries */

static const redisReply *read_field(const redisReply *fields, const char *name) {
    for (size_t i = 0; i + 1 < fields->elements; i += 2)
        if (fields->element[i]->type == REDIS_REPLY_STRING && strcmp(fields->element[i]->str, name) == 0 &&
            fields->element[i + 1]->type == REDIS_REPLY_STRING)
            return fields->element[i + 1];
    return NULL;
}

void redis_part_read_refused(void *part, int64_t count, const char *code, const char *reason, const void *at,
                             size_t at_size) {
    struct redis_part *p = part;
    char shown[300];
    (void)code;
    p->shared->refused += count;
    redis_log_few(++p->refusals, "partition %d, entry %.*s: %" PRId64 " samples are refused: %s", p->number,
                  (int)at_size, (const char *)at, count,
                  svi_escape(shown, sizeof shown, reason, strlen(reason)));
}

/* Compares the numbers that an entry states with those expected. */
static void read_numbers(struct redis_part *p, const char *id, int64_t first) {
    struct redis_part_reading *r = &p->read;
    char where[160], text[500];
    if (r->expected >= 0 && first > r->expected) {
        const int64_t lost = first - r->expected;
        p->shared->lost += lost < INT64_MAX - p->shared->lost ? lost : 0;
        snprintf(text, sizeof text,
                 "log_trimmed: partition %d of %s: %" PRId64 " samples before entry %.40s were removed from "
                 "the log before they were read: something else than this program trims %s",
                 p->number, p->shared->stream, lost, id, p->names.key[REDIS_KEY_IN]);
        redis_log_few(++p->gaps, "%s", text);
        redis_part_out_notice(p, "log_trimmed", text);
    } else if (r->expected >= 0 && first < r->expected) {
        snprintf(where, sizeof where,
                 "entry %.40s begins at sample %" PRId64 ", the model stands at %" PRId64, id, first,
                 r->expected);
        read_rewound(p, where, r->expected, first);
    }
}

static void read_entry(struct redis_part *p, const redisReply *id, const redisReply *fields) {
    struct redis_part_reading *r = &p->read;
    if (id->type != REDIS_REPLY_STRING || id->len >= sizeof r->cursor)
        return;
    /* nil fields: the entry was deleted while it was read */
    const bool whole = fields->type == REDIS_REPLY_ARRAY;
    const redisReply *s = whole ? read_field(fields, "s") : NULL, *e = whole ? read_field(fields, "e") : NULL,
                     *c = whole ? read_field(fields, "c") : NULL;
    snprintf(r->cursor, sizeof r->cursor, "%s", id->str);
    const int64_t first = e ? atoll(e->str) : -1, count = c ? atoll(c->str) : 0;
    if (first >= 0 && first <= NUMBER_MAX && count > 0 && count <= NUMBER_MAX) {
        read_numbers(p, id->str, first);
        r->expected = first + count;
    }
    if (!s) {
        redis_part_read_refused(p, 1, "", "it has no field `s` with samples: another program wrote it",
                                id->str, id->len);
        return;
    }
    struct redis_entry *entry = redis_need(1, sizeof *entry + s->len);
    snprintf(entry->id, sizeof entry->id, "%s", id->str);
    entry->after = r->expected;
    entry->size = s->len;
    memcpy(entry->bytes, s->str, s->len);
    if (r->fresh)
        r->fresh_last->next = entry;
    else
        r->fresh = entry;
    r->fresh_last = entry;
    r->fresh_bytes += s->len;
}

/* What was read may be learned. */
static void read_accept(struct redis_part *p) {
    struct redis_part_reading *r = &p->read;
    if (!r->fresh)
        return;
    for (const struct redis_entry *e = r->fresh; e; e = e->next)
        p->shared->entries++;
    if (r->last)
        r->last->next = r->fresh;
    else
        r->first = r->fresh;
    r->last = r->fresh_last;
    r->bytes += r->fresh_bytes;
    r->fresh = r->fresh_last = NULL;
    r->fresh_bytes = 0;
}

static void read_confirm(struct redis_part *p);

static void read_confirmed(void *user, const redisReply *reply) {
    struct redis_part_reading *r = user;
    struct redis_part *p = r->part;
    const int64_t got = reply->type == REDIS_REPLY_INTEGER ? reply->integer : 0;
    r->under_way = false;
    if (r->breaks != read_breaks(p)) {
        /* These entries may be of a primary that has ended: they are read again. */
        read_drop(&r->fresh);
        r->fresh_last = NULL;
        r->fresh_bytes = 0;
        strcpy(r->cursor, r->before);
        r->expected = r->before_expected;
    } else if (got < p->shared->wait) {
        redis_log_few(++r->slow,
                      "partition %d: %" PRId64 " of %" PRId64
                      " replicas have confirmed what was read; waiting for them before it is learned",
                      p->number, got, p->shared->wait);
        read_confirm(p);
    } else
        read_accept(p);
}

static void read_renewed(void *user, const redisReply *reply) {
    redis_part_lost(user, reply);
}

/* WAIT is about writes of its own connection: a renewal of the lease is one, behind the entries in the
 * stream of replication. */
static void read_confirm(struct redis_part *p) {
    const int lane = REDIS_LANE_READ + p->number;
    char ms[24], replicas[24];
    snprintf(ms, sizeof ms, "%.0f", 1000 * p->shared->lease);
    snprintf(replicas, sizeof replicas, "%" PRId64, p->shared->wait);
    p->read.under_way = true;
    redis_part_script(p, lane, REDIS_RENEW, NULL, 0, (struct redis_word[]){redis_text(ms)}, 1, read_renewed);
    redis_client_send(p->shared->client, lane, p->names.key[REDIS_KEY_IN],
                      (struct redis_word[]){redis_text("WAIT"), redis_text(replicas), redis_text(BLOCK_MS)},
                      3, read_confirmed, &p->read);
}

/* [[key, [[id, [field, value ...]] ...]]], or nil after BLOCK_MS. */
static void read_done(void *user, const redisReply *reply) {
    struct redis_part_reading *r = user;
    struct redis_part *p = r->part;
    r->under_way = false;
    if (reply->type == REDIS_REPLY_ERROR) {
        redis_part_lost(p, reply);
        return;
    }
    const redisReply *stream = reply->type == REDIS_REPLY_ARRAY && reply->elements ? reply->element[0] : NULL;
    const redisReply *rows = stream && stream->elements == 2 ? stream->element[1] : NULL;
    strcpy(r->before, r->cursor);
    r->before_expected = r->expected;
    for (size_t i = 0; rows && i < rows->elements; i++)
        if (rows->element[i]->type == REDIS_REPLY_ARRAY && rows->element[i]->elements == 2)
            read_entry(p, rows->element[i]->element[0], rows->element[i]->element[1]);
    if (rows && rows->elements > 0) {
        const size_t each = r->fresh_bytes / rows->elements + 1, fit = BYTES / 2 / each;
        r->count = fit < 1 ? 1 : fit > COUNT_MAX ? COUNT_MAX : (int)fit;
    }
    if (r->fresh && p->shared->wait > 0)
        read_confirm(p);
    else
        read_accept(p);
}

static void read_ask(struct redis_part *p) {
    struct redis_part_reading *r = &p->read;
    const char *in = p->names.key[REDIS_KEY_IN];
    char count[16];
    snprintf(count, sizeof count, "%d", r->count);
    const struct redis_word words[] = {redis_text("XREAD"), redis_text("COUNT"),  redis_text(count),
                                       redis_text("BLOCK"), redis_text(BLOCK_MS), redis_text("STREAMS"),
                                       redis_text(in),      redis_text(r->cursor)};
    r->under_way = true;
    redis_client_send(p->shared->client, REDIS_LANE_READ + p->number, in, words, 8, read_done, r);
}

/* The first entry that waits goes to the process. False: it takes none now. */
static bool read_give(struct redis_part *p) {
    struct redis_part_reading *r = &p->read;
    struct redis_entry *e = r->first;
    char at[REDIS_AT_BYTES];
    svs_error err;
    if (!e || redis_part_out_full(p) || !partition_child_takes(p->child))
        return false;
    const int n = e->after >= 0 ? snprintf(at, sizeof at, "%s %" PRId64, e->id, e->after)
                                : snprintf(at, sizeof at, "%s", e->id);
    const svs_code code = partition_child_send(p->child, e->bytes, e->size, at, (size_t)n, &err);
    if (code == SVS_LIMIT)
        return false;
    if (code != SVS_OK)
        redis_part_read_refused(p, 1, svs_code_name(code), err.text, e->id, strlen(e->id));
    r->first = e->next;
    r->last = r->first ? r->last : NULL;
    r->bytes -= e->size;
    svi_free(e);
    return true;
}

void redis_part_read_turn(struct redis_part *p) {
    struct redis_part_reading *r = &p->read;
    const void *at;
    size_t size;
    const int64_t generation = partition_child_place(p->child, &at, &size);
    if (generation != r->generation) {
        /* What is under way is of the old place. */
        redis_client_forget(p->shared->client, r);
        redis_part_read_begin(p);
        r->generation = generation;
        read_place(r, at, size);
        /* The process knows what it began from. */
        if (generation > 0 && partition_child_next(p->child) < p->save.stored_next)
            p->save.stored_next = partition_child_next(p->child);
    }
    if (generation == 0)
        return;
    while (read_give(p))
        ;
    /* A connection that was made again may be one to another server, whose log may be shorter. */
    if (r->breaks != read_breaks(p))
        r->verified = false;
    if (p->state != REDIS_PART_RUNNING || r->under_way)
        return;
    if (!r->verified)
        read_verify(p);
    else if (r->bytes < BYTES)
        read_ask(p);
}
