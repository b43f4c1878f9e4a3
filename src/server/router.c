/* Replies to the messages of in.mode router. Every reply is a map whose head is filled in at the end.
 *
 * There are three kinds: hello (the position of a source, the credit, the delivery level), an acknowledgement
 * (everything up to n is settled), and a refusal (final: the number is used up; otherwise the message may be
 * sent again). A client relies on this difference, so svi_router_decline decides it with care. */
#include "server/router.h"

#include <string.h>

#include "state/write_ahead.h"
#include "wire/fields.h"
#include "wire/pack.h"

#define CREDIT      1024 /* messages that a producer may have in flight */
#define NOT_DURABLE (-1) /* no number would survive a crash */

static int64_t router_durable(const struct svi_control *c, const char *src) {
    return c->write_ahead ? svi_write_ahead_durable(c->write_ahead, src) : NOT_DURABLE;
}

/* The cursor that belongs to `next`, as the producer sent it. */
static void reply_cursor(struct svi_pack *p, const struct svi_source *source) {
    if (!source || source->at_size == 0)
        return;
    svi_pack_key(p, "at");
    if (source->at_text)
        svi_pack_string(p, source->at, source->at_size);
    else
        svi_pack_bin(p, source->at, source->at_size);
}

static void reply_hello(struct svi_pack *p, const struct svi_control *c, const struct svi_envelope *env) {
    char name[SVS_NAME_MAX + 1];
    if (env->src_length < 1 || env->src_length > SVS_NAME_MAX || memchr(env->src, 0, env->src_length)) {
        const svs_error err = {SVS_MISSING_SOURCE, "hello needs src: give a name of 1 to 64 bytes"};
        svi_put_error(p, &err);
        return;
    }
    memcpy(name, env->src, env->src_length);
    name[env->src_length] = '\0';
    svi_put_bool(p, "ok", true);
    svi_put_int(p, "next", svi_entry_next(svi_stream_entry(c->stream), name));
    svi_put_int(p, "durable", router_durable(c, name));
    reply_cursor(p, svi_entry_source(svi_stream_entry(c->stream), name));
    svi_put_int(p, "credit", CREDIT);
    svi_put_uint(p, "epoch", svi_stream_epoch(c->stream));
    svi_put_uint(p, "run", c->run);
    /* `durable` is -1 before the first sync, so it does not show a client whether the state is kept */
    svi_put_text(p, "delivery", svi_settings_word("delivery", (int)svi_settings_delivery(c->settings)));
    svi_put_int(p, "max_message", c->settings->max_message);
}

/* `final`: the number of the message is used up; sending it again would not help. */
static void reply_refusal(struct svi_pack *p, const struct svi_receipt *r, bool with_next, bool final) {
    svi_put_error(p, &r->error);
    if (r->src[0] == '\0')
        return;
    svi_put_int(p, "n", r->first);
    if (with_next)
        svi_put_int(p, "next", r->n + 1);
    svi_put_bool(p, "final", final);
}

/* Acknowledges a message. Part of a batch may have been refused: how many, and why the last one was. */
static void reply_taken(struct svi_pack *p, const struct svi_control *c, const struct svi_receipt *r) {
    svi_put_bool(p, "ok", true);
    if (r->src[0] != '\0') {
        svi_put_int(p, "n", r->n);
        svi_put_int(p, "durable", router_durable(c, r->src));
        svi_put_int(p, "applied", r->n);
        svi_put_int(p, "credit", CREDIT);
    } else {
        svi_put_int(p, "seq", r->seq);
    }
    if (r->refused > 0) {
        svi_put_int(p, "refused", r->refused);
        svi_put_error(p, &r->error);
    }
}

/* Does the hello carry the id of this run? Then what the source says about its position can be trusted:
 * nothing acknowledged in this run is lost. */
static bool is_of_this_run(const struct svi_control *c, const struct svi_envelope *env) {
    static const struct svi_field field = {.name = "run", .type = SVI_FIELD_UINT, .optional = true};
    uint64_t run = 0;
    svi_fields_read("hello", &field, 1, env->bytes, env->bytes + env->size, &run, NULL);
    return run == c->run;
}

bool svi_router_changes(const struct svi_control *c, const struct svi_envelope *env) {
    /* A hello changes the state only if it restores a source that this run forgot. */
    return !env->hello || (env->src_good && env->n > 0 && is_of_this_run(c, env) &&
                           !svi_entry_owner(svi_stream_entry(c->stream), env->src, env->src_length));
}

static struct svi_open_map router_begin(struct svi_pack *p, struct svi_bytes *out) {
    out->size = 0;
    svi_pack_begin(p, out);
    return svi_pack_open(p);
}

/* The scores that the message asked for, or why it does not get them. */
static void reply_scores(struct svi_pack *p, const struct svi_envelope *env, const struct svi_receipt *r) {
    svs_error why;
    if (env->reply == SVI_REPLY_PLAIN)
        return;
    if (svi_envelope_check_reply(env, &why) != SVS_OK)
        svi_put_no_scores(p, &why);
    else if (r->scores)
        svi_reply_scores_put(p, r->scores);
}

static svs_code router_end(struct svi_pack *p, struct svi_open_map map) {
    svi_pack_close(p, map);
    return svi_pack_end(p);
}

svs_code svi_router_answer(struct svi_control *c, const struct svi_envelope *env, struct svi_bytes *out) {
    struct svi_pack p;
    const struct svi_open_map map = router_begin(&p, out);
    reply_hello(&p, c, env);
    return router_end(&p, map);
}

svs_code svi_router_reply(const struct svi_control *c, const struct svi_envelope *env,
                          const struct svi_receipt *r, struct svi_bytes *out) {
    struct svi_pack p;
    const struct svi_open_map map = router_begin(&p, out);
    if (env->hello && r->refused == 0) {
        reply_hello(&p, c, env);
    } else if (env->bye && r->refused == 0) {
        svi_put_bool(&p, "ok", true);
        svi_put_bool(&p, "bye", true);
        /* The whole message was refused: its number is used up if it counts as seen (first <= n). */
    } else if (r->refused > 0 && r->accepted == 0 && r->duplicates == 0) {
        reply_refusal(&p, r, true, r->first <= r->n);
        if (!r->scores || r->scores->count > 0) /* 0: no element was read */
            reply_scores(&p, env, r);
    } else {
        reply_taken(&p, c, r);
        reply_scores(&p, env, r);
    }
    return router_end(&p, map);
}

svs_code svi_router_handle(struct svi_control *c, struct svi_envelope *env, double now,
                           struct svi_bytes *out) {
    struct svi_receipt r;
    if (!svi_router_changes(c, env))
        return svi_router_answer(c, env, out);
    const bool asked = env->reply == SVI_REPLY_SCORE;
    if (asked)
        svi_stream_ask(c->stream, &c->scores);
    svi_stream_apply(c->stream, env, now, true, &r);
    if (!asked)
        return svi_router_reply(c, env, &r, out);
    /* The stream has waited for all scores of this message, those of other threads too. */
    svi_stream_ask(c->stream, NULL);
    const svs_code code = svi_router_reply(c, env, &r, out);
    svi_reply_scores_begin(&c->scores); /* for the next message */
    return code;
}

svs_code svi_router_decline(struct svi_control *c, const struct svi_envelope *env, const svs_error *why,
                            struct svi_bytes *out) {
    struct svi_receipt r = {.error = *why, .refused = 1};
    struct svi_pack p;
    if (env && env->src_good && env->n >= 0 && !env->hello) {
        r.first = env->n;
        memcpy(r.src, env->src, env->src_length);
        r.n = svi_entry_next(svi_stream_entry(c->stream), r.src) - 1;
    }
    /* A full disk is temporary: a producer that repeats a message accepted long ago must not conclude that it
     * was refused. A client that may not use the name learns nothing about its numbers. */
    const bool temporary = why->code == SVS_DISK_FULL || why->code == SVS_NO_MEMORY,
               forbidden = why->code == SVS_NOT_ALLOWED;
    const struct svi_open_map map = router_begin(&p, out);
    reply_refusal(&p, &r, !forbidden, !temporary && !forbidden && r.first <= r.n);
    return router_end(&p, map);
}
