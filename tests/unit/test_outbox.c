/* The outbox: what it sends, keeps and tells, against a model of the process, step by step and by random
 * walks; and against the replies of a real one. */
#include "support/engine.h"
#include "support/receiver.h"

#include "base/random.h"
#include "wire/outbox_state.h"

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
};

static void hark(void *user, const svs_outbox_event *e) {
    struct bench *b = user;
    b->last[e->kind] = *e;
    b->told[e->kind]++;
    b->counted[e->kind] += e->count;
    if (e->kind == SVS_OUTBOX_REFUSED || e->kind == SVS_OUTBOX_LATER) {
        snprintf(b->code, sizeof b->code, "%s", e->code);
        snprintf(b->reason, sizeof b->reason, "%s", e->reason);
    }
    assert_true(e->count >= 0 && (e->count == 0 || e->last >= e->first));
    assert_non_null(e->code);
    assert_non_null(e->reason);
    if (e->kind == SVS_OUTBOX_ACKED) {
        assert_true(e->first >= b->acked_to || b->box->o.replay);
        b->acked_to = e->last + 1;
    }
}

static void begin(struct bench *b, svs_outbox_options o) {
    svs_error err;
    memset(b, 0, sizeof *b);
    b->r.epoch = 70;
    b->r.credit = 1000;
    b->r.last = -1;
    o.src = o.src ? o.src : "plant";
    o.tell = hark;
    o.user = b;
    b->box = svs_outbox_new(&o, &err);
    assert_non_null(b->box);
}

static svs_outbox_options defaults(void) {
    svs_outbox_options o;
    memset(&o, 0xa5, sizeof o);
    svs_outbox_defaults(&o);
    return o;
}

static void end(struct bench *b) {
    assert_true(svi_outbox_check(b->box));
    svs_outbox_free(&b->box);
    assert_null(b->box);
    svs_outbox_free(&b->box);
    receiver_clear(&b->r);
}

static svs_outbox_figures status(const struct bench *b) {
    svs_outbox_figures f;
    svs_outbox_status(b->box, &f);
    return f;
}

static svs_code put_id(struct bench *b, int64_t id, size_t ballast) {
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

static void put(struct bench *b, int count) {
    for (int i = 0; i < count; i++)
        assert_int_equal(put_id(b, b->put++, 3), SVS_OK);
}

/* All that may go. Returns the messages. */
static int post(struct bench *b) {
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

static void receive(struct bench *b) {
    while (b->r.in.count > 0)
        receiver_turn(&b->r, false);
}

static void hear_one(struct bench *b) {
    struct letter l = way_take(&b->r.out);
    assert_int_equal(svs_outbox_reply(b->box, l.bytes, l.size, b->now, NULL), SVS_OK);
    assert_true(svi_outbox_check(b->box));
    free(l.bytes);
}

static void hear(struct bench *b) {
    while (b->r.out.count > 0)
        hear_one(b);
}

/* There, back and there again, until nothing moves. */
static void settle_down(struct bench *b) {
    for (int i = 0; i < 1000 && post(b) + b->r.in.count + b->r.out.count > 0; i++) {
        receive(b);
        hear(b);
    }
}

/* ---- one thing at a time */

static void test_in_order(void **unused) {
    (void)unused;
    struct bench b;
    begin(&b, defaults());
    assert_false(status(&b).greeted);
    assert_true(status(&b).credit == -1 && status(&b).durable == -1 && status(&b).epoch == 0);
    assert_true(svs_outbox_wait(b.box, b.now) == 0); /* hello */
    put(&b, 10);
    assert_int_equal(post(&b), 1);
    assert_true(svs_outbox_wait(b.box, b.now) == 1);
    settle_down(&b);
    svs_outbox_figures f = status(&b);
    assert_true(f.greeted && f.acked == 10 && f.kept == 0 && f.refused == 0 && f.resent == 0 &&
                f.duplicates == 0);
    assert_true(f.applied == 10 && f.durable == -1 && f.credit == 1000 && f.epoch == 70 && f.under_way == 0);
    assert_int_equal(b.counted[SVS_OUTBOX_ACKED], 10);
    assert_int_equal(svs_outbox_wanted(b.box), 10);
    assert_true(b.r.last == 9 && b.r.applied == 10 && isinf(svs_outbox_wait(b.box, b.now)));
    put(&b, 1);
    assert_true(svs_outbox_wait(b.box, b.now) == 0);
    settle_down(&b);
    assert_int_equal(status(&b).acked, 11);
    end(&b);
}

static void test_window_and_credit(void **unused) {
    (void)unused;
    struct bench b;
    svs_outbox_options o = defaults();
    o.window = 5;
    begin(&b, o);
    settle_down(&b);
    put(&b, 20);
    assert_int_equal(post(&b), 5);
    assert_int_equal(status(&b).under_way, 5);
    receiver_turn(&b.r, false);
    hear(&b);
    assert_int_equal(post(&b), 1);
    b.r.credit = 2;
    receive(&b);
    hear(&b);
    assert_int_equal(post(&b), 2);
    b.r.credit = 0; /* nothing may go: it asks again later */
    receive(&b);
    hear(&b);
    assert_int_equal(post(&b), 0);
    assert_true(fabs(svs_outbox_wait(b.box, b.now) - 0.1) < 1e-9);
    b.now += 0.1;
    b.r.credit = 100;
    settle_down(&b);
    assert_int_equal(status(&b).acked, 20);
    end(&b);
}

static void test_batches(void **unused) {
    (void)unused;
    struct bench b;
    svs_outbox_options o = defaults();
    o.batch = 8;
    o.message = 256;
    begin(&b, o);
    settle_down(&b);
    for (int i = 0; i < 20; i++) /* 50 bytes each: fewer than 8 fit */
        assert_int_equal(put_id(&b, i, 35), SVS_OK);
    b.put = 20;
    int messages = post(&b);
    assert_int_equal(messages, 10);
    for (int i = 0; i < b.r.in.count; i++)
        assert_true(b.r.in.letter[(b.r.in.first + i) % PIPE].size <= 256);
    receive(&b);
    hear(&b);
    assert_int_equal(status(&b).acked, 20);
    assert_int_equal(put_id(&b, 20, 200), SVS_TOO_LARGE);
    assert_int_equal(put_id(&b, 20, 140), SVS_OK);
    settle_down(&b);
    assert_int_equal(status(&b).acked, 21);
    end(&b);
}

static void test_full(void **unused) {
    (void)unused;
    struct bench b;
    svs_outbox_options o = defaults();
    o.samples = 7;
    begin(&b, o);
    put(&b, 7);
    assert_int_equal(put_id(&b, 7, 0), SVS_LIMIT);
    settle_down(&b);
    put(&b, 7);
    settle_down(&b);
    assert_int_equal(status(&b).acked, 14);
    end(&b);
    o = defaults();
    o.bytes = 1024;
    begin(&b, o);
    int64_t taken = 0;
    while (put_id(&b, taken, 100) == SVS_OK)
        taken++;
    assert_true(taken == 8 || taken == 9); /* 113 bytes each */
    assert_int_equal(put_id(&b, taken, 100), SVS_LIMIT);
    assert_int_equal(put_id(&b, taken, 0), taken == 9 ? SVS_LIMIT : SVS_OK);
    end(&b);
}

static void test_bad_samples(void **unused) {
    (void)unused;
    static const struct {
        const char *bytes;
        size_t size;
        svs_code code;
    } cases[] = {{"", 0, SVS_EMPTY},
                 {"\xc1", 1, SVS_NOT_MSGPACK},
                 {"\x81\xa1x", 3, SVS_TRUNCATED},
                 {"\x80\x80", 2, SVS_TRAILING},
                 {"\x90", 1, SVS_WRONG_TYPE},
                 {"\x07", 1, SVS_WRONG_TYPE},
                 {"\x81\xa3src\xa1z", 7, SVS_DUPLICATE_KEY},
                 {"\x82\xa1x\x01\xa1n\x05", 7, SVS_DUPLICATE_KEY},
                 {"\x81\xa1x\x91\x91\x91\x91\x91\x91\x91\x91\x01", 12, SVS_TOO_DEEP}};
    struct bench b;
    svs_error err;
    begin(&b, defaults());
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        err.text[0] = '\0';
        assert_int_equal(svs_outbox_put(b.box, cases[i].bytes, cases[i].size, &err), cases[i].code);
        assert_true(strlen(err.text) > 10);
    }
    assert_int_equal(status(&b).put, 0);
    assert_int_equal(svs_outbox_put(b.box, "\x80", 1, NULL),
                     SVS_OK); /* an empty map is a sample that is refused */
    settle_down(&b);
    assert_int_equal(status(&b).refused, 1);
    end(&b);
}

static void test_options(void **unused) {
    (void)unused;
    struct {
        void *field;
        int64_t value;
        size_t size;
    } bad[12];
    svs_outbox_options o;
    svs_error err;
    int count = 0;
#define BAD(name, v) bad[count++] = (__typeof__(bad[0])){&o.name, v, sizeof o.name}
    BAD(samples, 0);
    BAD(samples, 100000001);
    BAD(bytes, 1000);
    BAD(message, 255);
    BAD(message, (INT64_C(1) << 30) + 1);
    BAD(batch, 0);
    BAD(batch, 1000001);
    BAD(window, 0);
#undef BAD
    for (int i = 0; i < count; i++) {
        o = defaults();
        o.src = "a";
        memcpy(bad[i].field, &bad[i].value, bad[i].size); /* little-endian, as all of x86 and ARM are run */
        assert_null(svs_outbox_new(&o, &err));
        assert_int_equal(err.code, SVS_INVALID);
    }
    for (int i = 0; i < 6; i++) {
        o = defaults();
        o.src = "a";
        *(i / 2 == 0 ? &o.timeout : i / 2 == 1 ? &o.pause : &o.pause_max) = i % 2 ? 0 : (double)NAN;
        assert_null(svs_outbox_new(&o, &err));
        assert_int_equal(err.code, SVS_INVALID);
    }
    const char *const names[] = {NULL, "", "\xff",
                                 "0123456789012345678901234567890123456789012345678901234567890123x"};
    for (int i = 0; i < 4; i++) {
        o = defaults();
        o.src = names[i];
        assert_null(svs_outbox_new(&o, &err));
        assert_int_equal(err.code, SVS_NO_SOURCE);
    }
}

static void test_refusals(void **unused) {
    (void)unused;
    struct bench b;
    begin(&b, defaults());
    b.r.refuse_every = 4;
    put(&b, 9); /* 0, 4 and 8 */
    settle_down(&b);
    svs_outbox_figures f = status(&b);
    assert_true(f.refused == 3 && f.acked == 6 && f.kept == 0 && f.resent == 0);
    assert_int_equal(b.told[SVS_OUTBOX_REFUSED], 3);
    assert_true(b.last[SVS_OUTBOX_REFUSED].first == 8 && b.last[SVS_OUTBOX_REFUSED].last == 8);
    assert_string_equal(b.code, "wrong_dimension");
    assert_string_equal(b.reason, "it is refused");
    end(&b);
}

static void test_refusals_in_batches(void **unused) {
    (void)unused;
    struct bench b;
    svs_outbox_options o = defaults();
    o.batch = 10;
    begin(&b, o);
    settle_down(&b);
    b.r.refuse_every = 7;
    put(&b, 10); /* of these 0 and 7; which ones is not told */
    settle_down(&b);
    assert_true(status(&b).refused == 2 && status(&b).acked == 8);
    assert_true(b.last[SVS_OUTBOX_REFUSED].first == 0 && b.last[SVS_OUTBOX_REFUSED].last == 9);
    assert_int_equal(b.last[SVS_OUTBOX_REFUSED].count, 2);
    assert_int_equal(b.last[SVS_OUTBOX_ACKED].count, 8);
    b.r.refuse_every = 1;
    put(&b, 10); /* all of them */
    settle_down(&b);
    assert_true(status(&b).refused == 12 && b.last[SVS_OUTBOX_REFUSED].count == 10);
    assert_string_equal(b.code, "wrong_dimension");
    end(&b);
}

static void test_passing_refusal(void **unused) {
    (void)unused;
    struct bench b;
    begin(&b, defaults());
    settle_down(&b);
    put(&b, 3);
    b.r.busy = true;
    double expected = 0.1;
    for (int i = 0; i < 8; i++) {
        settle_down(&b);
        assert_int_equal(b.told[SVS_OUTBOX_LATER], i + 1);
        assert_string_equal(b.code, "limit");
        assert_true(fabs(b.last[SVS_OUTBOX_LATER].wait - expected) < 1e-9);
        assert_true(fabs(svs_outbox_wait(b.box, b.now) - expected) < 1e-9);
        assert_false(status(&b).greeted);
        b.now += expected;
        expected = fmin(2 * expected, 5);
    }
    assert_true(expected == 5 && status(&b).kept == 3);
    b.r.busy = false;
    settle_down(&b);
    assert_int_equal(status(&b).acked, 3);
    b.r.busy = true; /* the pauses begin anew */
    put(&b, 1);
    settle_down(&b);
    assert_true(fabs(b.last[SVS_OUTBOX_LATER].wait - 0.1) < 1e-9);
    end(&b);
}

static void test_silence(void **unused) {
    (void)unused;
    struct bench b;
    begin(&b, defaults());
    double waits[] = {1, 2, 4, 5, 5}; /* hello, ever more seldom */
    for (int i = 0; i < 5; i++) {
        assert_int_equal(post(&b), 1);
        assert_true(svs_outbox_wait(b.box, b.now) == waits[i]);
        assert_int_equal(post(&b), 0);
        b.now += waits[i];
    }
    receive(&b);
    hear(&b); /* five answers to one question */
    put(&b, 5);
    settle_down(&b);
    assert_int_equal(status(&b).acked, 5);
    put(&b, 5);
    post(&b);
    way_lose(&b.r.in, 2); /* two vanish: a gap, and hello tells where */
    settle_down(&b);
    svs_outbox_figures f = status(&b);
    assert_true(f.acked == 10 && f.resent == 5 && f.gaps == 1 && f.restarts == 0 && f.duplicates == 0);
    put(&b, 2);
    post(&b);
    receive(&b);
    way_cut(&b.r.out, b.r.out.count); /* taken, and the replies vanish */
    assert_int_equal(post(&b), 0);
    b.now += 1;
    settle_down(&b);
    f = status(&b);
    assert_true(f.acked == 12 && f.resent == 5 && b.r.repeated == 0);
    put(&b, 1);
    post(&b);
    way_lose(&b.r.in, 1);
    svs_outbox_broken(b.box, b.now); /* known at once */
    settle_down(&b);
    assert_true(status(&b).acked == 13 && status(&b).resent == 6);
    end(&b);
}

static void test_duplicates(void **unused) {
    (void)unused;
    struct bench b;
    begin(&b, defaults());
    put(&b, 6);
    while (status(&b).kept > 0) {
        post(&b);
        while (b.r.in.count > 0)
            receiver_turn(&b.r, true);
        hear(&b);
    }
    assert_true(status(&b).acked == 6 && status(&b).duplicates == 6 && b.r.applied == 6 && b.r.repeated == 0);
    end(&b);
}

/* More replies than messages: one was received twice, and the last one is lost all the same. */
static void test_silence_after_duplicates(void **unused) {
    (void)unused;
    struct bench b;
    begin(&b, defaults());
    settle_down(&b);
    put(&b, 2);
    post(&b);
    receiver_turn(&b.r, true);
    way_lose(&b.r.in, 1);
    hear(&b);
    assert_true(status(&b).acked == 1 && status(&b).under_way == 0);
    assert_true(svs_outbox_wait(b.box, b.now) == 1);
    b.now += 1;
    settle_down(&b);
    assert_int_equal(status(&b).acked, 2);
    end(&b);
}

/* Nobody can have taken what was never sent. */
static void test_impossible_reply(void **unused) {
    (void)unused;
    struct bench b;
    svs_outbox_options o = defaults();
    o.window = 5;
    begin(&b, o);
    settle_down(&b);
    put(&b, 20);
    post(&b);
    const char yes[] = "\x82\xa2ok\xc3\xa1n\x0a", no[] = "\x83\xa5"
                                                         "error\xa1x\xa1n\x0b\xa5"
                                                         "final\xc3";
    assert_int_equal(svs_outbox_reply(b.box, no, sizeof no - 1, b.now, NULL), SVS_OK);
    assert_int_equal(svs_outbox_reply(b.box, yes, sizeof yes - 1, b.now, NULL), SVS_OK);
    assert_true(status(&b).acked == 0 && status(&b).refused == 0 && status(&b).kept == 20);
    settle_down(&b);
    assert_true(status(&b).acked == 20 && b.r.applied == 20);
    end(&b);
}

/* Contents come out as they went in, whatever the sizes and however often the block is gone round. */
static void test_store(void **unused) {
    (void)unused;
    struct svi_random r = {9};
    for (int turn = 0; turn < 8; turn++) {
        struct svi_store s = {.samples = 1 + svi_random_below(&r, 50),
                              .bytes = 1024 + svi_random_below(&r, 8000)};
        int64_t in = 0, out = 0;
        uint8_t body[300];
        for (int i = 0; i < 2000; i++) {
            size_t size = svi_random_below(&r, turn % 2 ? 8 : sizeof body);
            memset(body, (int)(in % 251), size);
            if (svi_random_below(&r, 5) && svi_store_push(&s, body, size, (uint32_t)in) == SVS_OK)
                in++;
            int64_t count = svi_random_below(&r, 3);
            svi_store_pop(&s, svi_random_below(&r, 3) ? 0 : count < s.count ? count : s.count);
            out = in - s.count;
            assert_true(svi_store_check(&s));
            for (int64_t k = 0; k < s.count; k++) {
                const struct svi_kept *kept = svi_store_at(&s, k);
                assert_int_equal(kept->pairs, out + k);
                for (size_t j = 0; j < kept->size; j += 1 + kept->size / 3)
                    assert_int_equal(s.block[kept->at + j], (out + k) % 251);
            }
        }
        assert_true(in > 200);
        svi_store_clear(&s);
    }
}

static void test_restart(void **unused) {
    (void)unused;
    struct bench b;
    begin(&b, defaults());
    put(&b, 10);
    settle_down(&b);
    put(&b, 6);
    post(&b);
    for (int i = 0; i < 3; i++)
        receiver_turn(&b.r, false);
    hear_one(&b); /* of three that are taken one is acknowledged */
    receiver_die(&b.r, 0, 3, 2);
    b.now += 1;
    settle_down(&b);
    svs_outbox_figures f = status(&b);
    assert_true(f.acked == 16 && f.restarts == 1 && f.forgotten == 11 && f.resent == 5 && f.epoch == 71);
    assert_true(b.r.low == 11 && b.r.last == 15 && b.r.next == 5 && f.applied == 16);
    const svs_outbox_event *e = &b.last[SVS_OUTBOX_RESTARTED];
    assert_true(b.told[SVS_OUTBOX_RESTARTED] == 1 && e->first == 0 && e->last == 10 && e->count == 11);
    end(&b);
}

/* A process that keeps its state: numbers stay, and what it took is not sent again. */
static void test_restart_with_state(void **unused) {
    (void)unused;
    struct bench b;
    begin(&b, defaults());
    put(&b, 10);
    settle_down(&b);
    put(&b, 6);
    post(&b);
    for (int i = 0; i < 4; i++)
        receiver_turn(&b.r, false);
    receiver_die(&b.r, 14, 2, 4); /* nobody has heard of the four */
    b.now += 1;
    settle_down(&b);
    svs_outbox_figures f = status(&b);
    assert_true(f.acked == 16 && f.forgotten == 0 && f.resent == 2 && f.restarts == 1);
    assert_true(b.r.low == 14 && b.r.next == 16);
    receiver_die(&b.r, 12, 0, 0); /* a power cut: four acknowledged ones are gone */
    put(&b, 1);
    settle_down(&b);
    f = status(&b);
    assert_true(f.acked == 17 && f.forgotten == 4 && b.r.next == 13 && b.r.low == 16 && f.gaps == 1);
    end(&b);
}

static void test_earlier_life_of_the_producer(void **unused) {
    (void)unused;
    struct bench b;
    begin(&b, defaults());
    b.r.next = 40;
    put(&b, 5);
    post(&b);
    receive(&b);
    b.r.next = 43; /* three messages of that life still came through */
    hear(&b);
    settle_down(&b);
    assert_true(status(&b).acked == 5 && b.r.next == 48 && b.r.low == 0 && status(&b).applied == 5);
    end(&b);
}

static void test_another_producer(void **unused) {
    (void)unused;
    struct bench b;
    begin(&b, defaults());
    put(&b, 5);
    settle_down(&b);
    b.r.next = 30;
    put(&b, 1);
    settle_down(&b); /* an answer for numbers that were never sent */
    assert_string_equal(b.code, "no_source");
    assert_non_null(strstr(b.reason, "another producer"));
    assert_true(b.told[SVS_OUTBOX_LATER] == 1 && status(&b).acked == 6 && b.r.next == 31 && b.r.last == 5);
    end(&b);
}

/* ---- a producer that can read its samples again */

static svs_outbox_options replaying(void) {
    svs_outbox_options o = defaults();
    o.replay = true;
    return o;
}

static void replay_to(struct bench *b, int64_t total) {
    for (int turn = 0; turn < 10000; turn++) {
        while (svs_outbox_wanted(b->box) >= 0 && svs_outbox_wanted(b->box) < total &&
               put_id(b, svs_outbox_wanted(b->box), 3) == SVS_OK)
            assert_true(svi_outbox_check(b->box));
        if (status(b).greeted && status(b).kept == 0)
            return;
        b->now += post(b) > 0 ? 0 : svs_outbox_wait(b->box, b->now);
        receive(b);
        hear(b);
    }
    fail_msg("it never ended");
}

static void test_replay(void **unused) {
    (void)unused;
    struct bench b;
    begin(&b, replaying());
    assert_int_equal(svs_outbox_wanted(b.box), -1);
    assert_int_equal(put_id(&b, 0, 1), SVS_UNAVAILABLE);
    b.r.next = 4; /* an earlier run came to here */
    settle_down(&b);
    assert_int_equal(svs_outbox_wanted(b.box), 4);
    replay_to(&b, 10);
    assert_true(b.r.low == 4 && b.r.last == 9 && b.r.next == 10 && status(&b).acked == 6);
    receiver_die(&b.r, 0, 0, 0);
    put_id(&b, 10, 1);
    replay_to(&b, 11);
    svs_outbox_figures f = status(&b);
    assert_true(b.r.low == 0 && b.r.last == 10 && b.r.next == 11 && f.forgotten == 10 && f.dropped == 1 &&
                f.restarts == 1);
    assert_true(b.last[SVS_OUTBOX_RESTARTED].first == 0 && b.last[SVS_OUTBOX_RESTARTED].last == 9);
    end(&b);
}

/* Another run of the same command was faster. */
static void test_replay_overtaken(void **unused) {
    (void)unused;
    struct bench b;
    begin(&b, replaying());
    b.r.skips = true;
    settle_down(&b);
    for (int64_t i = 0; i < 5; i++)
        put_id(&b, i, 1);
    b.r.next = 3; /* before anything was sent */
    post(&b);
    way_lose(&b.r.in, b.r.in.count);
    b.now += 1;
    settle_down(&b);
    assert_true(status(&b).acked == 5 && svs_outbox_wanted(b.box) == 5);
    for (int64_t i = 5; i < 8; i++)
        put_id(&b, i, 1);
    b.r.next = 7;
    svs_outbox_broken(b.box, b.now);
    settle_down(&b);
    assert_true(status(&b).dropped == 2 && status(&b).acked == 6 && svs_outbox_wanted(b.box) == 8);
    b.r.next = 20;
    svs_outbox_broken(b.box, b.now);
    settle_down(&b);
    assert_int_equal(svs_outbox_wanted(b.box), 20);
    end(&b);
}

/* ---- samples that cannot be got through */

static void test_poison(void **unused) {
    (void)unused;
    struct bench b;
    svs_outbox_options o = defaults();
    o.batch = 4;
    begin(&b, o);
    b.r.largest = 150;
    b.r.skips = true;
    put(&b, 5);
    assert_int_equal(put_id(&b, b.put++, 140), SVS_OK); /* a message with this one is cut off */
    put(&b, 5);
    for (int i = 0; i < 60 && status(&b).kept > 0; i++) {
        settle_down(&b);
        b.now += svs_outbox_wait(b.box, b.now) < 10 ? svs_outbox_wait(b.box, b.now) : 0;
        b.r.last +=
            b.r.last == 4 && status(&b).acked == 5 && b.told[SVS_OUTBOX_REFUSED] == 1; /* 5 is left out */
    }
    svs_outbox_figures f = status(&b);
    assert_true(f.acked == 10 && f.refused == 1 && f.kept == 0 && b.r.last == 10 && b.r.next == 11);
    assert_int_equal(b.told[SVS_OUTBOX_REFUSED], 1);
    assert_true(b.last[SVS_OUTBOX_REFUSED].first == 5 && b.last[SVS_OUTBOX_REFUSED].count == 1);
    end(&b);
}

/* A refusal that tells no number is of the oldest message. */
static void test_unreadable(void **unused) {
    (void)unused;
    struct bench b;
    begin(&b, defaults());
    put(&b, 3);
    for (int i = 0; i < 2; i++) { /* two hellos */
        post(&b);
        receive(&b);
        hear(&b);
    }
    post(&b);
    way_lose(&b.r.in, 1);
    b.r.last = 0;
    const char no[] = "\x82\xa5"
                      "error\xa4odd!\xa4"
                      "code\xa8too_deep";
    assert_int_equal(svs_outbox_reply(b.box, no, sizeof no - 1, b.now, NULL), SVS_OK);
    assert_string_equal(b.code, "too_deep");
    assert_true(b.last[SVS_OUTBOX_REFUSED].first == 0 && b.told[SVS_OUTBOX_REFUSED] == 1);
    settle_down(&b);
    svs_outbox_figures f = status(&b);
    assert_true(f.refused == 1 && f.acked == 2 && f.kept == 0 && b.told[SVS_OUTBOX_REFUSED] == 1 &&
                b.r.next == 3);
    end(&b);
}

/* Neither is one that is not of the sample: a key that was taken from the allow file. */
static void test_not_allowed(void **unused) {
    (void)unused;
    struct bench b;
    begin(&b, defaults());
    settle_down(&b);
    put(&b, 3);
    post(&b);
    const char no[] = "\x82\xa5"
                      "error\xa4no!!\xa4"
                      "code\xabnot_allowed";
    assert_int_equal(svs_outbox_reply(b.box, no, sizeof no - 1, b.now, NULL), SVS_OK);
    assert_true(b.told[SVS_OUTBOX_LATER] == 1 && b.told[SVS_OUTBOX_REFUSED] == 0);
    assert_string_equal(b.code, "not_allowed");
    assert_true(status(&b).kept == 3 && svs_outbox_wait(b.box, b.now) > 0.09);
    way_lose(&b.r.in, 3);
    b.now += 0.1;
    settle_down(&b);
    assert_int_equal(status(&b).acked, 3);
    end(&b);
}

static void test_hello_refused(void **unused) {
    (void)unused;
    struct bench b;
    begin(&b, defaults());
    post(&b);
    const char no[] = "\x82\xa5"
                      "error\xa4odd!\xa4"
                      "code\xa9no_source";
    assert_int_equal(svs_outbox_reply(b.box, no, sizeof no - 1, b.now, NULL), SVS_OK);
    assert_true(b.told[SVS_OUTBOX_LATER] == 1 && svs_outbox_wait(b.box, b.now) > 0.09);
    assert_int_equal(post(&b), 0);
    end(&b);
}

static void test_junk_replies(void **unused) {
    (void)unused;
    struct bench b;
    struct svi_random r = {5};
    svs_error err;
    begin(&b, defaults());
    put(&b, 5);
    post(&b);
    assert_int_equal(svs_outbox_reply(b.box, "", 0, 0, &err), SVS_EMPTY);
    assert_int_equal(svs_outbox_reply(b.box, "\x93\x01\x02\x03", 4, 0, &err), SVS_WRONG_TYPE);
    assert_int_equal(svs_outbox_reply(b.box, "\x80", 1, 0, &err), SVS_WRONG_TYPE);
    assert_int_equal(svs_outbox_reply(b.box, "\x81\xa2ok\xc2", 5, 0, &err), SVS_WRONG_TYPE);
    for (int i = 0; i < 20000; i++) { /* well-formed replies with changed bytes: nothing breaks */
        struct letter l;
        b.r.in.count == 0 ? (void)post(&b) : receiver_turn(&b.r, false);
        if (b.r.out.count == 0)
            continue;
        l = way_take(&b.r.out);
        l.bytes[svi_random_below(&r, (uint32_t)l.size)] = (char)svi_random_next(&r);
        svs_outbox_reply(b.box, l.bytes, l.size, b.now, &err);
        free(l.bytes);
        assert_true(svi_outbox_check(b.box));
        b.now += 0.01;
        b.r.last = -1;
        if (status(&b).kept < 5)
            put(&b, 1);
    }
    end(&b);
}

/* ---- packing */

static void expect_packed(const svs_outbox_sample *s, const char *expected) {
    struct bench b;
    begin(&b, defaults());
    settle_down(&b);
    assert_int_equal(svs_outbox_pack(b.box, s, NULL), SVS_OK);
    const void *bytes;
    size_t size;
    struct svi_bytes text = {0};
    assert_true(svs_outbox_frame(b.box, b.now, &bytes, &size));
    assert_int_equal(svi_json_msgpack(&text, bytes, size, NULL), SVS_OK);
    assert_int_equal(svi_bytes_append(&text, "", 1), SVS_OK);
    assert_string_equal((const char *)text.data, expected);
    svi_bytes_clear(&text);
    end(&b);
}

static void test_pack(void **unused) {
    (void)unused;
    double x[] = {1, 2.5, NAN}, wild[] = {1, INFINITY};
    const char *names[] = {"a", "b", "c"};
    expect_packed(&(svs_outbox_sample){.x = x, .d = 2, .y = svs_int(1), .id = svs_str("r7")},
                  "{\"x\":[1,2.5],\"id\":\"r7\",\"y\":1,\"src\":\"plant\",\"n\":0}");
    expect_packed(&(svs_outbox_sample){.x = x, .d = 3, .names = names, .ts = 12, .weight = 2},
                  "{\"x\":{\"a\":1,\"b\":2.5,\"c\":null},\"ts\":12,\"w\":2,\"src\":"
                  "\"plant\",\"n\":0}");
    struct bench b;
    svs_error err;
    begin(&b, defaults());
    assert_int_equal(svs_outbox_pack(b.box, &(svs_outbox_sample){.d = 1}, &err), SVS_INVALID);
    assert_int_equal(svs_outbox_pack(b.box, &(svs_outbox_sample){.x = x}, &err), SVS_INVALID);
    assert_int_equal(svs_outbox_pack(b.box, &(svs_outbox_sample){.x = wild, .d = 2}, &err), SVS_NOT_FINITE);
    assert_int_equal(svs_outbox_pack(b.box, &(svs_outbox_sample){.x = x, .d = 3, .packed = true}, &err),
                     SVS_MISSING_VALUE);
    assert_int_equal(status(&b).put, 0);
    end(&b);
}

/* ---- the replies of a real process */

static void converse(struct bench *b, struct speaker *s) {
    const void *bytes;
    size_t size;
    struct svi_bytes out = {0};
    while (svs_outbox_frame(b->box, b->now, &bytes, &size)) {
        assert_int_equal(svi_router_handle(&s->control, bytes, size, s->now, &out), SVS_OK);
        svs_outbox_sent(b->box, b->now);
        assert_int_equal(svs_outbox_reply(b->box, out.data, out.size, b->now, NULL), SVS_OK);
        assert_true(svi_outbox_check(b->box));
    }
    svi_bytes_clear(&out);
}

static void test_real_replies(void **unused) {
    (void)unused;
    for (int batch = 1; batch <= 5; batch += 4) {
        struct bench b;
        struct speaker s;
        svs_outbox_options o = defaults();
        o.batch = batch;
        begin(&b, o);
        speaker_open(&s, NULL);
        double x[] = {1, 2, 3};
        for (int i = 0; i < 100; i++) /* every tenth has a feature too many */
            assert_int_equal(svs_outbox_pack(b.box,
                                             &(svs_outbox_sample){.x = x,
                                                                  .d = i % 10 == 7 ? 3 : 2,
                                                                  .y = svs_int(i % 2),
                                                                  .packed = i % 3 == 0},
                                             NULL),
                             SVS_OK);
        converse(&b, &s);
        svs_outbox_figures f = status(&b);
        assert_true(f.acked == 90 && f.refused == 10 && f.kept == 0 && f.applied == 100 && f.durable == -1);
        assert_int_equal(b.counted[SVS_OUTBOX_REFUSED], 10);
        assert_int_equal(svi_engine_seen(s.e), 90);
        assert_int_equal(s.count[SVI_TOPIC_ERROR], 10);
        speaker_close(&s);
        speaker_open(&s, NULL); /* another process */
        s.now = b.now;
        svs_outbox_broken(b.box, b.now);
        assert_int_equal(svs_outbox_pack(b.box, &(svs_outbox_sample){.x = x, .d = 3}, NULL), SVS_OK);
        converse(&b, &s);
        assert_int_equal(status(&b).acked, 91);
        assert_int_equal(status(&b).forgotten, 100);
        assert_int_equal(svi_engine_seen(s.e), 1);
        speaker_close(&s);
        end(&b);
    }
}

/* ---- random walks */

#define IDS 4000

struct walk {
    struct bench b;
    struct svi_random random;
    uint8_t taken[IDS];   /* in some life */
    uint8_t settled[IDS]; /* told to the producer before this life began */
    bool replay, keeps;
};

static uint32_t below(struct walk *w, uint32_t n) {
    return svi_random_below(&w->random, n);
}

static void on_taken(void *user, int64_t id) {
    struct walk *w = user;
    assert_true(id >= 0 && id < IDS);
    assert_false(w->settled[id] && !w->replay); /* what was acknowledged is never sent to a later process */
    w->taken[id] = 1;
}

static void on_event(void *user, const svs_outbox_event *e) {
    struct walk *w = user;
    hark(&w->b, e);
    if (e->kind == SVS_OUTBOX_ACKED || e->kind == SVS_OUTBOX_REFUSED)
        for (int64_t i = e->first; i <= e->last; i++)
            assert_true(w->taken[i]); /* nothing is acknowledged that no process has taken */
}

static void crash(struct walk *w) {
    struct receiver *r = &w->b.r;
    const svs_outbox *box = w->b.box;
    int64_t next = 0;
    if (w->keeps) /* the journal ends a little earlier, or with the last sample */
        next = r->next - (below(w, 2) ? 0 : below(w, 1 + (uint32_t)(r->next < 5 ? r->next : 5)));
    receiver_die(r, next, (int)below(w, (uint32_t)r->in.count + 1),
                 (int)below(w, (uint32_t)r->out.count + 1));
    for (int64_t i = 0; i < box->first; i++)
        w->settled[i] = 1;
    if (below(w, 2))
        svs_outbox_broken(w->b.box, w->b.now);
}

static void put_some(struct walk *w) {
    int64_t wanted = svs_outbox_wanted(w->b.box);
    for (uint32_t i = below(w, 20); i > 0 && wanted >= 0 && wanted < IDS; i--)
        if (put_id(&w->b, wanted, below(w, 100)) == SVS_OK)
            wanted++;
}

static void send_some(struct walk *w) {
    const void *bytes;
    size_t size;
    for (uint32_t i = below(w, 30); i > 0 && svs_outbox_frame(w->b.box, w->b.now, &bytes, &size); i--)
        if (below(w, 10) && w->b.r.in.count < PIPE - 10) { /* else the socket takes nothing */
            way_add(&w->b.r.in, bytes, size);
            svs_outbox_sent(w->b.box, w->b.now);
        }
}

static void receive_some(struct walk *w) {
    for (uint32_t i = below(w, 30); i > 0 && w->b.r.in.count > 0 && w->b.r.out.count < PIPE - 10; i--)
        receiver_turn(&w->b.r, below(w, 40) == 0);
}

static void hear_some(struct walk *w) {
    for (uint32_t i = below(w, 30); i > 0 && w->b.r.out.count > 0; i--)
        hear_one(&w->b);
}

static void step(struct walk *w) {
    switch (below(w, 12)) {
    case 0:
        if (below(w, 8) == 0)
            crash(w);
        break;
    case 1:
        w->b.r.busy = below(w, 10) == 0;
        w->b.r.credit = below(w, 4) ? below(w, 40) : 1000;
        break;
    case 2:
        w->b.now += below(w, 3) ? 0.05 : 1.1;
        break;
    case 3: /* the connection breaks, the process lives on */
        if (below(w, 10) == 0)
            way_lose(&w->b.r.in, (int)below(w, (uint32_t)w->b.r.in.count + 1));
        break;
    case 4:
    case 5:
        put_some(w);
        break;
    case 6:
    case 7:
        send_some(w);
        break;
    case 8:
    case 9:
        receive_some(w);
        break;
    default:
        hear_some(w);
    }
    assert_true(svi_outbox_check(w->b.box));
}

/* The faults end: everything must come through. */
static void calm_down(struct walk *w) {
    w->b.r.busy = false;
    w->b.r.credit = 100;
    for (int i = 0; i < 2000; i++) {
        int64_t wanted = svs_outbox_wanted(w->b.box);
        while (w->replay && wanted >= 0 && wanted < w->b.put && put_id(&w->b, wanted, 3) == SVS_OK)
            wanted++;
        settle_down(&w->b);
        svs_outbox_figures f = status(&w->b);
        if (f.greeted && f.kept == 0 && svs_outbox_wanted(w->b.box) >= w->b.put)
            return;
        double wait = svs_outbox_wait(w->b.box, w->b.now);
        w->b.now += wait < 100 ? wait : 0.1;
    }
    fail_msg("it does not come to an end");
}

static void random_walk(uint64_t seed) {
    static struct walk w;
    memset(&w, 0, sizeof w);
    w.random.state = seed;
    w.replay = below(&w, 2);
    w.keeps = below(&w, 2);
    svs_outbox_options o = defaults();
    o.replay = w.replay;
    o.samples = 1 + below(&w, 300);
    o.bytes = 1024 + below(&w, 20000);
    o.message = 256 + below(&w, 1000);
    o.batch = 1 + (int)below(&w, 10);
    o.window = 1 + (int)below(&w, 50);
    o.timeout = 1;
    begin(&w.b, o);
    w.b.box->o.tell = on_event;
    w.b.box->o.user = &w;
    w.b.r.took = on_taken;
    w.b.r.user = &w;
    w.b.r.refuse_every = below(&w, 2) ? 0 : 2 + (int)below(&w, 20);
    for (int i = 0; i < 3000; i++) {
        step(&w);
        int64_t wanted = svs_outbox_wanted(w.b.box);
        w.b.put = wanted > w.b.put ? wanted : w.b.put;
    }
    calm_down(&w);
    svs_outbox_figures f = status(&w.b);
    assert_int_equal(w.b.r.repeated, 0);
    for (int64_t i = 0; i < w.b.put; i++)
        assert_true(w.taken[i]);
    if (!w.replay)
        assert_true(f.acked + f.refused == w.b.put && f.dropped == 0);
    else
        assert_int_equal(w.b.r.next, w.b.put); /* the last process has all from the beginning */
    assert_true(f.under_way == 0 && f.kept == 0);
    end(&w.b);
}

static void test_walks(void **unused) {
    (void)unused;
    const int count = getenv("SVMSTREAM_QUICK") ? 60 : 400;
    for (int i = 0; i < count; i++)
        random_walk(1000 + (uint64_t)i);
}

/* The checker sees what is broken. */
static void test_checker(void **unused) {
    (void)unused;
    struct bench b;
    begin(&b, defaults());
    put(&b, 30);
    post(&b);
    struct svs_outbox *o = b.box;
    assert_true(svi_outbox_check(o));
    o->sent = 31;
    assert_false(svi_outbox_check(o));
    o->sent = 0;
    o->f.put++;
    assert_false(svi_outbox_check(o));
    o->f.put--;
    o->first++;
    assert_false(svi_outbox_check(o));
    o->first--;
    svi_store_at(&o->store, 3)->at++;
    assert_false(svi_outbox_check(o));
    svi_store_at(&o->store, 3)->at--;
    end(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_order),
        cmocka_unit_test(test_window_and_credit),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_bad_samples),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_refusals_in_batches),
        cmocka_unit_test(test_passing_refusal),
        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_duplicates),
        cmocka_unit_test(test_silence_after_duplicates),
        cmocka_unit_test(test_impossible_reply),
        cmocka_unit_test(test_store),
        cmocka_unit_test(test_restart),
        cmocka_unit_test(test_restart_with_state),
        cmocka_unit_test(test_earlier_life_of_the_producer),
        cmocka_unit_test(test_another_producer),
        cmocka_unit_test(test_replay),
        cmocka_unit_test(test_replay_overtaken),
        cmocka_unit_test(test_poison),
        cmocka_unit_test(test_unreadable),
        cmocka_unit_test(test_not_allowed),
        cmocka_unit_test(test_hello_refused),
        cmocka_unit_test(test_junk_replies),
        cmocka_unit_test(test_pack),
        cmocka_unit_test(test_real_replies),
        cmocka_unit_test(test_walks),
        cmocka_unit_test(test_checker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
