/* Acknowledged input: every message gets one reply that says what became of it and what comes next. */
#include <string.h>

#include "engine/control.h"
#include "engine/keeper.h"
#include "engine/origin.h"
#include "engine/reply.h"
#include "wire/cursor.h"
#include "wire/decode.h"

#define CREDIT      1024 /* messages that a producer may have on the way */
#define NOT_DURABLE (-1) /* no number survives a crash */

static bool is_text(const struct svi_item *item, const char *text) {
    return item->type == SVI_STRING && item->length == strlen(text) &&
           memcmp(item->body, text, item->length) == 0;
}

/* Is this {op: hello, ...}? *src: the value of that key, SVI_NIL when there is none. The bytes are checked.
 */
static bool is_hello(const uint8_t *at, const uint8_t *end, struct svi_item *src) {
    struct svi_item map, key, value;
    bool hello = false;
    at = svi_item_read(at, &map);
    *src = (struct svi_item){.type = SVI_NIL};
    for (uint32_t i = 0; map.type == SVI_MAP && i < map.length; i++) {
        const uint8_t *behind = at;
        svi_item_read(at, &key);
        svi_walk(&behind, end, SVI_DEPTH_MAX);
        svi_item_read(behind, &value);
        if (is_text(&key, "op"))
            hello = is_text(&value, "hello");
        else if (is_text(&key, "src"))
            *src = value;
        at = behind;
        svi_walk(&at, end, SVI_DEPTH_MAX);
    }
    return hello;
}

static int64_t durable(const struct svi_control *c, const char *src) {
    return c->keeper ? svi_keeper_durable(c->keeper, src) : NOT_DURABLE;
}

static void reply_hello(struct svi_pack *p, const struct svi_control *c, const struct svi_item *src) {
    char name[SVS_NAME_MAX + 1];
    bool good = src->type == SVI_STRING && src->length >= 1 && src->length <= SVS_NAME_MAX;
    if (!good || memchr(src->body, 0, src->length)) {
        svs_error err = {SVS_NO_SOURCE, "hello needs src, a name of 1 to 64 bytes"};
        svi_pack_map(p, 2);
        svi_reply_error(p, &err);
        return;
    }
    memcpy(name, src->body, src->length);
    name[src->length] = '\0';
    svi_pack_map(p, 6);
    svi_reply_bool(p, "ok", true);
    svi_reply_int(p, "next", svi_engine_source_next(c->engine, name));
    svi_reply_int(p, "durable", durable(c, name));
    svi_reply_int(p, "credit", CREDIT);
    svi_pack_text(p, "epoch");
    svi_pack_uint(p, svi_engine_epoch(c->engine));
    svi_pack_text(p, "delivery"); /* before anything is on disk `durable` cannot tell whether it will be */
    svi_pack_text(p, svi_delivery_name(svi_settings_delivery(c->settings)));
}

/* `final`: the message's number is used up, sending it again would not help. */
static void reply_refusal(struct svi_pack *p, const struct svi_receipt *r, bool final) {
    bool sourced = r->src[0] != '\0';
    svi_pack_map(p, sourced ? 5 : 2);
    svi_reply_error(p, &r->error);
    if (!sourced)
        return;
    svi_reply_int(p, "n", r->first);
    svi_reply_int(p, "next", r->n + 1);
    svi_reply_bool(p, "final", final);
}

/* Of a batch some may have been refused: how many, and why the last one was. */
static void reply_taken(struct svi_pack *p, const struct svi_control *c, const struct svi_receipt *r) {
    bool sourced = r->src[0] != '\0', some = r->refused > 0;
    svi_pack_map(p, (sourced ? 5u : 2u) + (some ? 3u : 0u));
    svi_reply_bool(p, "ok", true);
    if (sourced) {
        svi_reply_int(p, "n", r->n);
        svi_reply_int(p, "durable", durable(c, r->src));
        svi_reply_int(p, "applied", r->n);
        svi_reply_int(p, "credit", CREDIT);
    } else {
        svi_reply_int(p, "seq", r->seq);
    }
    if (some) {
        svi_reply_int(p, "refused", r->refused);
        svi_reply_error(p, &r->error);
    }
}

/* Samples go straight on: whether a message says hello is only looked into when it has the word. */
static bool asks(const void *request, size_t length, struct svi_item *src) {
    return length > 0 && memmem(request, length, "hello", 5) &&
           svi_msgpack_check(request, length, SVI_DEPTH_MAX, NULL) == SVS_OK &&
           is_hello(request, (const uint8_t *)request + length, src);
}

bool svi_router_asks(const void *request, size_t length) {
    struct svi_item src;
    return asks(request, length, &src);
}

svs_code svi_router_handle(struct svi_control *c, const void *request, size_t length, double now,
                           struct svi_bytes *out) {
    struct svi_item src;
    struct svi_receipt r;
    struct svi_pack p;
    out->size = 0;
    svi_pack_begin(&p, out);
    if (asks(request, length, &src)) {
        reply_hello(&p, c, &src);
        return svi_pack_end(&p);
    }
    svi_engine_frame(c->engine, request, length, now, true, &r);
    if (r.refused > 0 && r.accepted == 0 && r.duplicates == 0)
        reply_refusal(&p, &r, r.first <= r.n);
    else
        reply_taken(&p, c, &r);
    return svi_pack_end(&p);
}

svs_code svi_router_decline(struct svi_control *c, const void *request, size_t length, const svs_error *why,
                            struct svi_bytes *out) {
    struct svi_receipt r = {.error = *why, .refused = 1};
    struct svi_origin o;
    struct svi_pack p;
    svi_origin_find(request, length, &o);
    if (svi_origin_name(&o, NULL) == SVS_OK && svi_origin_number(&o, &r.first, NULL) == SVS_OK) {
        memcpy(r.src, o.src.body, o.src.length);
        r.n = svi_engine_source_next(c->engine, r.src) - 1;
    }
    /* A full disk passes: whoever sends again what was taken long ago must not believe that it was refused.
     */
    const bool passes = why->code == SVS_DISK_FULL || why->code == SVS_NO_MEMORY;
    out->size = 0;
    svi_pack_begin(&p, out);
    reply_refusal(&p, &r, !passes && r.first <= r.n);
    return svi_pack_end(&p);
}
