/* outbox.h: an outbox and the model of a process that it talks to, with all that it told. */
#ifndef TEST_SUPPORT_OUTBOX_H
#define TEST_SUPPORT_OUTBOX_H

#include "support/receiver.h"

#include <math.h>

#include "client/outbox_internal.h"

struct bench {
    svs_outbox *box;
    struct receiver r;
    double now;
    int64_t put; /* ids so far */
    int64_t acked_to;
    svs_outbox_event last[SVS_OUTBOX_RESTARTED + 1];
    int told[SVS_OUTBOX_RESTARTED + 1];
    int64_t counted[SVS_OUTBOX_RESTARTED + 1];
    char code[64], reason[256]; /* of the last refusal, passing or not */
    char key[SVS_KEY_MAX + 1];  /* of the last refusal for good */
};

static inline void hark(void *user, const svs_outbox_event *e) {
    struct bench *b = user;
    b->last[e->kind] = *e;
    b->told[e->kind]++;
    b->counted[e->kind] += e->count;
    if (e->kind != SVS_OUTBOX_ACKED) {
        snprintf(b->code, sizeof b->code, "%s", e->code);
        snprintf(b->reason, sizeof b->reason, "%s", e->reason);
    }
    assert_true(e->count >= 0 && (e->count == 0 || e->last >= e->first));
    assert_non_null(e->code);
    assert_non_null(e->reason);
    assert_non_null(e->key);
    if (e->kind == SVS_OUTBOX_REFUSED)
        snprintf(b->key, sizeof b->key, "%s", e->key);
    if (e->kind == SVS_OUTBOX_ACKED) {
        assert_true(e->first >= b->acked_to || b->box->o.replay);
        b->acked_to = e->last + 1;
    }
}

static inline void begin(struct bench *b, svs_outbox_options o) {
    svs_error err;
    memset(b, 0, sizeof *b);
    b->r.epoch = 70;
    b->r.credit = 1000;
    b->r.last = -1;
    o.src = o.src ? o.src : "plant";
    o.notify = hark;
    o.user = b;
    b->box = svs_outbox_new(&o, &err);
    assert_non_null(b->box);
}

/* All that may go. Returns the messages. */
static inline int post(struct bench *b) {
    const void *bytes;
    size_t size;
    int count = 0;
    while (svs_outbox_frame(b->box, b->now, &bytes, &size)) {
        way_add(&b->r.in, bytes, size);
        svs_outbox_sent(b->box, b->now);
        assert_true(svi_outbox_check(b->box));
        count++;
    }
    return count;
}

static inline void receive(struct bench *b) {
    while (b->r.in.count > 0)
        receiver_turn(&b->r, false);
}

static inline void hear_one(struct bench *b) {
    struct letter l = way_take(&b->r.out);
    assert_int_equal(svs_outbox_reply(b->box, l.bytes, l.size, b->now, NULL), SVS_OK);
    assert_true(svi_outbox_check(b->box));
    free(l.bytes);
}

static inline void hear(struct bench *b) {
    while (b->r.out.count > 0)
        hear_one(b);
}

/* There, back and there again, until nothing moves. */
static inline void settle_down(struct bench *b) {
    for (int i = 0; i < 1000 && post(b) + b->r.in.count + b->r.out.count > 0; i++) {
        receive(b);
        hear(b);
    }
}

static inline svs_outbox_options defaults(void) {
    svs_outbox_options o;
    memset(&o, 0xa5, sizeof o);
    svs_outbox_defaults(&o);
    return o;
}

static inline void end(struct bench *b) {
    assert_true(svi_outbox_check(b->box));
    svs_outbox_free(&b->box);
    assert_null(b->box);
    svs_outbox_free(&b->box);
    receiver_clear(&b->r);
}

static inline svs_outbox_figures status(const struct bench *b) {
    svs_outbox_figures f;
    svs_outbox_status(b->box, &f);
    return f;
}

static inline svs_code put_id(struct bench *b, int64_t id, size_t ballast) {
    char text[512];
    msgpack_sbuffer s;
    msgpack_packer p;
    memset(text, 'a', sizeof text);
    msgpack_sbuffer_init(&s);
    msgpack_packer_init(&p, &s, msgpack_sbuffer_write);
    msgpack_pack_map(&p, 2);
    msgpack_pack_str_with_body(&p, "id", 2);
    msgpack_pack_int64(&p, id);
    msgpack_pack_str_with_body(&p, "ballast", 7);
    msgpack_pack_str_with_body(&p, text, ballast);
    svs_code code = svs_outbox_put(b->box, s.data, s.size, NULL);
    msgpack_sbuffer_destroy(&s);
    return code;
}

static inline void put(struct bench *b, int count) {
    for (int i = 0; i < count; i++)
        assert_int_equal(put_id(b, b->put++, 3), SVS_OK);
}

/* Greeted, and with `count` samples under way. */
static inline void begin_with(struct bench *b, svs_outbox_options o, int count) {
    begin(b, o);
    settle_down(b);
    put(b, count);
    post(b);
}

#endif
