/* Events of the process into :out, each once, and its sums into :sums.
 *
 * An event is known by its topic and its order: the epoch of the stream and what counts up with the samples.
 * That is `seq`; for a model, which is also published on request and by the clock, the number of samples and
 * the version. The script writes an event only above the last order of its topic (:seq), so a partition that
 * takes samples again after a takeover publishes nothing twice.
 *
 * Events are collected and sent in batches. The process gets no further entries while UNANSWERED events wait
 * for Redis, which bounds memory; the socket from the process holds those of the entries under way. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "redis_log.h"
#include "redis_part_internal.h"
#include "wire/fields.h"
#include "wire/pack.h"

#define BATCH_EVENTS 128
#define BATCH_BYTES  ((size_t)256 << 10)
#define UNANSWERED   4096
#define ORDER_BYTES  72

struct out_head {
    uint64_t epoch, seq;
    int64_t seen, version; /* of a model */
};

static void out_done(void *user, const redisReply *reply) {
    struct redis_part *p = user;
    if (redis_part_lost(p, reply))
        return;
    p->out.unanswered = 0 < p->out.unanswered - BATCH_EVENTS ? p->out.unanswered - BATCH_EVENTS : 0;
    if (reply->type == REDIS_REPLY_INTEGER)
        p->shared->events += reply->integer;
}

static void out_word(struct redis_part *p, const void *bytes, size_t size) {
    if (svi_bytes_append(&p->out.batch, bytes, size) != SVS_OK)
        redis_no_memory(size);
    p->out.length[p->out.words++] = size;
}

void redis_part_out_flush(struct redis_part *p) {
    static const enum redis_key keys[] = {REDIS_KEY_OUT, REDIS_KEY_SEQ};
    struct redis_word words[REDIS_SCRIPT_ARGS - 2];
    struct redis_part_events *o = &p->out;
    char keep[24];
    size_t at = 0;
    if (o->words == 0)
        return;
    snprintf(keep, sizeof keep, "%" PRId64, p->shared->keep);
    words[0] = redis_text(keep);
    for (int i = 0; i < o->words; at += o->length[i++])
        words[1 + i] = redis_bytes(o->batch.data + at, o->length[i]);
    /* Counted in whole batches, whatever they hold: an answer does not show how many it is about. */
    o->unanswered += BATCH_EVENTS;
    redis_part_script(p, REDIS_LANE_WRITE, REDIS_OUT, keys, 2, words, 1 + o->words, out_done);
    o->words = 0;
    o->batch.size = 0;
}

bool redis_part_out_full(const struct redis_part *p) {
    return p->out.unanswered >= UNANSWERED;
}

static void out_add(struct redis_part *p, const char *topic, size_t length, const char *order,
                    const void *payload, size_t size) {
    if (p->out.words + 3 > 3 * BATCH_EVENTS || p->out.batch.size > BATCH_BYTES)
        redis_part_out_flush(p);
    out_word(p, topic, length);
    out_word(p, order, strlen(order));
    out_word(p, payload, size);
}

static void out_sums_done(void *user, const redisReply *reply) {
    redis_part_lost(user, reply);
}

/* The record belongs to this owner: the epoch of the lease takes the place of that of the stream, so a later
 * owner's record wins, whatever it has seen. */
static void out_sums(struct redis_part *p, const struct subscription_event *e) {
    static const enum redis_key keys[] = {REDIS_KEY_SUMS};
    const uint8_t *at = e->payload, *end = at + e->size;
    struct svi_bytes out = {0};
    struct svi_item map, item;
    struct svi_pack pack;
    at = svi_item_read(at, &map);
    svi_pack_begin(&pack, &out);
    svi_pack_map(&pack, map.length);
    for (uint32_t i = 0; i < map.length; i++) {
        const uint8_t *key = at;
        const uint8_t *value = svi_item_read(at, &item);
        at = value;
        svi_skip(&at, end, SVI_WALK_MAX);
        if (svi_item_is(&item, "part_epoch"))
            svi_put_uint(&pack, "part_epoch", strtoull(p->epoch, NULL, 10));
        else
            svi_pack_raw(&pack, key, (size_t)(at - key));
    }
    if (svi_pack_end(&pack) != SVS_OK)
        redis_no_memory(e->size);
    redis_part_script(p, REDIS_LANE_WRITE, REDIS_SUMS, keys, 1,
                      (struct redis_word[]){redis_bytes(out.data, out.size)}, 1, out_sums_done);
    svi_bytes_clear(&out);
}

void redis_part_out_event(void *part, const struct subscription_event *e) {
    static const struct svi_field fields[] = {
        SVI_FIELD(struct out_head, epoch, UINT, 0, 0), SVI_FIELD(struct out_head, seq, UINT, 0, 0),
        SVI_FIELD_OPTIONAL(struct out_head, seen, INTEGER, 0, 0x1p62),
        SVI_FIELD_OPTIONAL(struct out_head, version, INTEGER, 0, 0x1p62)};
    struct redis_part *p = part;
    struct out_head head = {0};
    char order[ORDER_BYTES];
    if (e->lost > 0) {
        p->shared->lost += e->lost;
        redis_log("partition %d: %" PRId64 " events of its process were lost on the way here", p->number,
                  e->lost);
    }
    if (e->kind < SVI_TOPIC_COUNT && strcmp(svi_topic_name(e->kind), "sums") == 0) {
        out_sums(p, e);
        return;
    }
    if (svi_fields_read("event", SVI_FIELDS(fields), e->payload, (const uint8_t *)e->payload + e->size, &head,
                        NULL) != SVS_OK)
        return;
    if (e->kind == SVI_TOPIC_MODEL || e->kind == SVI_TOPIC_BANK)
        snprintf(order, sizeof order, "%020" PRIu64 " %020" PRId64 " %020" PRId64, head.epoch, head.seen,
                 head.version);
    else
        snprintf(order, sizeof order, "%020" PRIu64 " %020" PRIu64, head.epoch, head.seq);
    out_add(p, e->topic, e->topic_length, order, e->payload, e->size);
}

/* A worker's own events are ordered by the clock: each happens once. */
void redis_part_out_notice(struct redis_part *p, const char *code, const char *text) {
    struct svi_bytes out = {0};
    struct svi_pack pack;
    char topic[SVI_TOPIC_MAX], order[ORDER_BYTES];
    svi_pack_begin(&pack, &out);
    const struct svi_open_map map = svi_pack_open(&pack);
    svi_put_int(&pack, "v", 1);
    svi_put_text(&pack, "stream", p->shared->stream);
    svi_put_int(&pack, "partition", p->number);
    svi_put_real(&pack, "ts", svi_wall_clock());
    svi_put_text(&pack, "code", code);
    svi_put_text(&pack, "error", text);
    svi_pack_close(&pack, map);
    if (svi_pack_end(&pack) != SVS_OK)
        redis_no_memory(strlen(text));
    snprintf(topic, sizeof topic, "log.%.*s.", SVI_STREAM_MAX, p->shared->stream);
    snprintf(order, sizeof order, "%020.0f", 1e6 * svi_wall_clock());
    out_add(p, topic, strlen(topic), order, out.data, out.size);
    svi_bytes_clear(&out);
}
