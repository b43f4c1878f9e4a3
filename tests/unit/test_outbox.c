/* The outbox: what it sends, keeps and tells, against a model of the process, step by step; and against the
 * replies of a real one. Random walks: tests/property/test_outbox_walks.c. */
#include "support/engine.h"
#include "support/outbox.h"

#include "base/random.h"
#include "engine/engine_parts.h"
#include "support/apply.h"

/* A reply in JSON, single quotes will do. */
static void answer(struct bench *b, const char *json) {
    char text[512];
    struct svi_bytes bytes = {0};
    struct svi_pack p;
    size_t n = strlen(json);
    assert_true(n < sizeof text);
    for (size_t i = 0; i <= n; i++)
        text[i] = json[i] == '\'' ? '"' : json[i];
    json_t *j = json_loads(text, 0, NULL);
    assert_non_null(j);
    svi_pack_begin(&p, &bytes);
    speaker_pack(&p, j);
    assert_int_equal(svi_pack_end(&p), SVS_OK);
    assert_int_equal(svs_outbox_reply(b->box, bytes.data, bytes.size, b->now, NULL), SVS_OK);
    assert_true(svi_outbox_check(b->box));
    json_decref(j);
    svi_bytes_clear(&bytes);
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
    assert_true(fabs(svs_outbox_wait(b.box, b.now) - 0.05) < 1e-9);
    b.now += 0.05;
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

/* What the process cannot have yet is dropped, the oldest first; what it may have stays, and numbers stay
 * contiguous. */
static void test_drop(void **unused) {
    (void)unused;
    struct bench b;
    svs_outbox_options o = defaults();
    o.samples = 10;
    o.window = 4;
    begin(&b, o);
    b.r.skips = true;
    put(&b, 10);
    assert_true(svs_outbox_drop(b.box) && svi_outbox_check(b.box)); /* 0 */
    put(&b, 1);
    settle_down(&b);
    assert_true(status(&b).acked == 10 && status(&b).dropped == 1 && b.r.last == 10);
    put(&b, 10);
    assert_int_equal(post(&b), 4);
    for (int i = 0; i < 6; i++)
        assert_true(svs_outbox_drop(b.box) && svi_outbox_check(b.box)); /* 15 to 20 */
    assert_false(svs_outbox_drop(b.box));                               /* 11 to 14 are under way */
    assert_int_equal(svs_outbox_wanted(b.box), 14);
    put(&b, 3);
    settle_down(&b);
    assert_true(status(&b).acked == 17 && status(&b).dropped == 7 && b.r.last == 23 && b.r.next == 17);
    end(&b);
    o.replay = true;
    begin(&b, o);
    settle_down(&b);
    put(&b, 1);
    assert_false(svs_outbox_drop(b.box));
    end(&b);
}

/* Without acknowledgement: no hello, no numbers, and what the socket has is released. */
static void test_sent(void **unused) {
    (void)unused;
    struct bench b;
    const void *bytes;
    size_t size;
    svs_outbox_options o = defaults();
    o.release = SVS_OUTBOX_SENT;
    o.batch = 2;
    begin(&b, o);
    assert_false(svs_outbox_frame(b.box, 0, &bytes, &size));
    assert_true(svs_outbox_done(b.box) && isinf(svs_outbox_wait(b.box, 0)));
    for (int i = 0; i < 3; i++)
        assert_int_equal(svs_outbox_put(b.box, "\x81\xa1x\x90", 4, NULL), SVS_OK);
    assert_true(!svs_outbox_done(b.box) && svs_outbox_wait(b.box, 0) == 0);
    assert_true(svs_outbox_frame(b.box, 0, &bytes, &size));
    assert_true(size == 9 && memcmp(bytes, "\x92\x81\xa1x\x90\x81\xa1x\x90", 9) == 0);
    svs_outbox_broken(b.box, 0);
    svs_outbox_sent(b.box, 0);
    assert_true(svs_outbox_drop(b.box) && svi_outbox_check(b.box) && svs_outbox_done(b.box));
    assert_true(status(&b).acked == 2 && status(&b).dropped == 1 && status(&b).sent == 2);
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
        assert_int_equal(err.code, SVS_MISSING_SOURCE);
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
    for (int explains = 0; explains < 2; explains++) {
        struct bench b;
        svs_outbox_options o = defaults();
        o.batch = 10;
        begin(&b, o);
        settle_down(&b);
        b.r.explains = explains;
        b.r.refuse_every = 7;
        put(&b, 10); /* of these 0 and 7; which ones is not told */
        settle_down(&b);
        assert_true(status(&b).refused == 2 && status(&b).acked == 8);
        assert_true(b.last[SVS_OUTBOX_REFUSED].first == 0 && b.last[SVS_OUTBOX_REFUSED].last == 9);
        assert_int_equal(b.last[SVS_OUTBOX_REFUSED].count, 2);
        assert_int_equal(b.last[SVS_OUTBOX_ACKED].count, 8);
        assert_string_equal(b.code, explains ? "wrong_dimension" : "");
        assert_non_null(strstr(b.reason, explains ? "it is refused" : "error topic"));
        b.r.refuse_every = 1;
        put(&b, 10); /* all of them */
        settle_down(&b);
        assert_true(status(&b).refused == 12 && b.last[SVS_OUTBOX_REFUSED].count == 10);
        assert_string_equal(b.code, "wrong_dimension");
        end(&b);
    }
}

static void test_passing_refusal(void **unused) {
    (void)unused;
    static const char *const codes[] = {"limit", "disk_full"};
    for (int k = 0; k < 2; k++) {
        struct bench b;
        begin_with(&b, defaults(), 3);
        b.r.busy = codes[k];
        double expected = 0.05;
        for (int i = 0; i < 8; i++) {
            settle_down(&b);
            assert_int_equal(b.told[SVS_OUTBOX_LATER], i + 1);
            assert_string_equal(b.code, codes[k]);
            assert_true(fabs(b.last[SVS_OUTBOX_LATER].wait - expected) < 1e-9);
            assert_true(fabs(svs_outbox_wait(b.box, b.now) - expected) < 1e-9);
            assert_false(status(&b).greeted || svs_outbox_done(b.box));
            b.now += expected;
            expected = fmin(2 * expected, 2);
        }
        assert_true(expected == 2 && status(&b).kept == 3);
        b.r.busy = NULL;
        settle_down(&b);
        assert_true(status(&b).acked == 3 && svs_outbox_done(b.box));
        b.r.busy = codes[k]; /* the pauses begin anew */
        put(&b, 1);
        settle_down(&b);
        assert_true(fabs(b.last[SVS_OUTBOX_LATER].wait - 0.05) < 1e-9);
        end(&b);
    }
}

static void test_silence(void **unused) {
    (void)unused;
    struct bench b;
    begin(&b, defaults());
    double waits[] = {1, 2, 2, 2, 2}; /* hello, more seldom */
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
    begin_with(&b, o, 20);
    answer(&b, "{'error': 'x', 'n': 11, 'final': true}");
    answer(&b, "{'ok': true, 'n': 10}");
    assert_true(status(&b).acked == 0 && status(&b).refused == 0 && status(&b).kept == 20);
    settle_down(&b);
    assert_true(status(&b).acked == 20 && b.r.applied == 20);
    end(&b);
}

/* Contents come out as they went in, whatever the sizes, however often the block is gone round, and with
 * some taken out of the middle. */
static void test_store(void **unused) {
    (void)unused;
    struct svi_random r = {9};
    for (int turn = 0; turn < 8; turn++) {
        struct svi_store s = {.samples = 1 + svi_random_below(&r, 50),
                              .bytes = 1024 + svi_random_below(&r, 8000)};
        int64_t in = 0, held[50];
        uint8_t body[300];
        for (int i = 0; i < 2000; i++) {
            size_t size = svi_random_below(&r, turn % 2 ? 8 : sizeof body);
            memset(body, (int)(in % 251), size);
            int64_t before = s.count, count = svi_random_below(&r, 3);
            if (svi_random_below(&r, 5) && svi_outbox_store_push(&s, body, size, (uint32_t)in) == SVS_OK)
                held[before] = in++;
            before = s.count;
            svi_outbox_store_pop(&s, svi_random_below(&r, 3) ? 0 : count < s.count ? count : s.count);
            memmove(held, held + before - s.count, (size_t)s.count * sizeof *held);
            if (turn > 3 && s.count > 0 && svi_random_below(&r, 2)) {
                const int64_t gone = svi_random_below(&r, (uint32_t)s.count);
                svi_outbox_store_remove(&s, gone);
                memmove(held + gone, held + gone + 1, (size_t)(s.count - gone) * sizeof *held);
            }
            assert_true(svi_outbox_store_check(&s));
            for (int64_t k = 0; k < s.count; k++) {
                const struct svi_kept *kept = svi_outbox_store_at(&s, k);
                assert_int_equal(kept->pairs, held[k]);
                for (size_t j = 0; j < kept->size; j += 1 + kept->size / 3)
                    assert_int_equal(s.block[kept->at + j], held[k] % 251);
            }
        }
        assert_true(in > 200);
        svi_outbox_store_clear(&s);
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
    receiver_fall(&b.r, 14, 2, 4); /* nobody has heard of the four */
    b.now += 1;
    settle_down(&b);
    svs_outbox_figures f = status(&b);
    assert_true(f.acked == 16 && f.forgotten == 0 && f.resent == 2 && f.restarts == 0);
    assert_true(b.r.low == 14 && b.r.next == 16 && b.told[SVS_OUTBOX_RESTARTED] == 0);
    receiver_fall(&b.r, 12, 0, 0); /* a power cut: four acknowledged ones are gone */
    put(&b, 1);
    settle_down(&b);
    f = status(&b);
    assert_true(f.acked == 17 && f.forgotten == 4 && f.lost == 4 && b.r.next == 13 && b.r.low == 16 &&
                f.gaps == 1);
    assert_true(b.last[SVS_OUTBOX_RESTARTED].first == 12 && b.last[SVS_OUTBOX_RESTARTED].last == 15);
    assert_string_equal(b.code, "power_cut");
    assert_non_null(strstr(b.reason, "delivery durable"));
    end(&b);
}

/* ---- released when it is on disk */

static svs_outbox_options careful(svs_outbox_release release, int batch) {
    svs_outbox_options o = defaults();
    o.release = release;
    o.batch = batch;
    return o;
}

static void keep_state(struct bench *b, const char *level) {
    b->r.keeps = true;
    b->r.level = level;
}

static void test_release_on_disk(void **unused) {
    (void)unused;
    for (int told = 0; told < 2; told++) { /* whether the process tells its level, or its numbers do */
        struct bench b;
        begin(&b, careful(told ? SVS_OUTBOX_DURABLE : SVS_OUTBOX_SAFEST, 1));
        keep_state(&b, told ? "at-least-once" : NULL);
        b.r.synced = !told;
        b.r.next = !told; /* an earlier life of the producer */
        settle_down(&b);
        put(&b, 10);
        settle_down(&b);
        svs_outbox_figures f = status(&b);
        assert_true(f.acked == 0 && f.taken == 10 && f.kept == 10 && f.unsent == 0 && f.durable == 0);
        assert_true(b.told[SVS_OUTBOX_ACKED] == 0 && !svs_outbox_done(b.box));
        b.r.synced += 4;
        b.now += svs_outbox_wait(b.box, b.now); /* it asks by itself */
        settle_down(&b);
        f = status(&b);
        assert_true(f.acked == 4 && f.taken == 6 && f.kept == 6 && f.durable == 4);
        assert_true(b.last[SVS_OUTBOX_ACKED].first == 0 && b.last[SVS_OUTBOX_ACKED].last == 3);
        receiver_fall(&b.r, b.r.next - 3, 0, 0); /* a power cut: all that it took is sent again */
        svs_outbox_broken(b.box, b.now);
        settle_down(&b);
        f = status(&b);
        assert_true(f.taken == 6 && f.resent == 3 && f.forgotten == 0 && b.told[SVS_OUTBOX_RESTARTED] == 0);
        b.r.always = true; /* the next reply tells that all is there */
        put(&b, 1);
        settle_down(&b);
        f = status(&b);
        assert_true(f.acked == 11 && f.kept == 0 && f.durable == 11 && svs_outbox_done(b.box));
        assert_true(isinf(svs_outbox_wait(b.box, b.now)) && f.resent == 3 && b.r.next == 11 + !told);
        end(&b);
    }
}

/* The questions how much is on disk become rare, and frequent again when something is. */
static void test_curiosity(void **unused) {
    (void)unused;
    struct bench b;
    begin(&b, careful(SVS_OUTBOX_SAFEST, 1));
    keep_state(&b, "at-least-once");
    put(&b, 4);
    double waits[] = {0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2, 2};
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < 8; i++) {
            settle_down(&b);
            assert_true(fabs(svs_outbox_wait(b.box, b.now) - waits[i]) < 1e-9);
            b.now += svs_outbox_wait(b.box, b.now);
        }
        b.r.synced += 2;
    }
    settle_down(&b);
    assert_true(status(&b).acked == 4 && isinf(svs_outbox_wait(b.box, b.now)));
    end(&b);
}

/* A process that keeps nothing: it is as good as it can be, or nothing is sent at all. */
static void test_nothing_kept(void **unused) {
    (void)unused;
    struct bench b;
    begin_with(&b, careful(SVS_OUTBOX_SAFEST, 1), 5);
    settle_down(&b);
    assert_true(status(&b).acked == 5 && status(&b).durable == -1 && svs_outbox_done(b.box));
    end(&b);
    begin(&b, careful(SVS_OUTBOX_DURABLE, 1));
    b.r.level = "acked";
    put(&b, 5);
    settle_down(&b);
    assert_string_equal(b.code, "not_durable");
    assert_non_null(strstr(b.reason, "--state.dir"));
    assert_true(status(&b).kept == 5 && b.r.next == 0 && svs_outbox_wait(b.box, b.now) > 0.04);
    keep_state(&b, "durable"); /* started anew as it should be */
    b.r.always = true;
    b.now += 1;
    settle_down(&b);
    assert_true(status(&b).acked == 5 && status(&b).durable == 5);
    receiver_die(&b.r, 0, 0, 0); /* and without its folder: nothing is let go of */
    b.r.keeps = false;
    b.r.level = "acked";
    put(&b, 2);
    settle_down(&b);
    assert_true(b.told[SVS_OUTBOX_LATER] == 2 && status(&b).kept == 2);
    end(&b);
}

/* With its folder gone it lacks what was released; the rest goes to it under new numbers. */
static void test_state_gone(void **unused) {
    (void)unused;
    struct bench b;
    begin(&b, careful(SVS_OUTBOX_SAFEST, 1));
    keep_state(&b, "at-least-once");
    put(&b, 10);
    b.r.synced = 4;
    settle_down(&b);
    receiver_die(&b.r, 0, 0, 0);
    b.r.always = true;
    put(&b, 1);
    settle_down(&b);
    svs_outbox_figures f = status(&b);
    assert_true(f.acked == 11 && f.lost == 4 && f.forgotten == 4 && f.restarts == 1 && f.durable == 11);
    assert_true(b.r.low == 4 && b.r.last == 10 && b.r.next == 7);
    assert_string_equal(b.code, "no_state");
    assert_non_null(strstr(b.reason, "state.dir"));
    end(&b);
}

/* Refused samples are counted once, and told once, though a power cut makes them come again. */
static void test_refused_again(void **unused) {
    (void)unused;
    for (int batch = 1; batch <= 10; batch += 9) {
        struct bench b;
        begin(&b, careful(SVS_OUTBOX_DURABLE, batch));
        keep_state(&b, "at-least-once");
        settle_down(&b);
        b.r.refuse_every = 4;
        put(&b, 10); /* 0, 4 and 8 */
        settle_down(&b);
        assert_true(b.counted[SVS_OUTBOX_REFUSED] == 3 && status(&b).refused == 0 && status(&b).taken == 10);
        receiver_fall(&b.r, 2, 0, 0);
        svs_outbox_broken(b.box, b.now);
        settle_down(&b);
        b.r.synced = 10;
        b.now += 10;
        settle_down(&b);
        svs_outbox_figures f = status(&b);
        assert_true(f.acked + f.refused == 10 && (batch > 1 || f.refused == 3) && f.refused >= 2);
        assert_int_equal(b.counted[SVS_OUTBOX_REFUSED], 3);
        end(&b);
    }
}

/* A file: nothing is kept for the disk's sake, but it is asked how far that is; and rows are wanted again. */
static void test_replay_on_disk(void **unused) {
    (void)unused;
    struct bench b;
    svs_outbox_options o = careful(SVS_OUTBOX_DURABLE, 1);
    o.replay = true;
    begin(&b, o);
    keep_state(&b, "at-least-once");
    b.r.next = b.r.synced = 3; /* an earlier run */
    settle_down(&b);
    assert_true(svs_outbox_wanted(b.box) == 3 && svs_outbox_done(b.box));
    for (int64_t i = 3; i < 10; i++)
        assert_int_equal(put_id(&b, i, 1), SVS_OK);
    settle_down(&b);
    assert_true(status(&b).acked == 7 && status(&b).kept == 0 && !svs_outbox_done(b.box));
    receiver_fall(&b.r, 6, 0, 0);
    b.now += svs_outbox_wait(b.box, b.now);
    settle_down(&b);
    svs_outbox_figures f = status(&b);
    assert_true(svs_outbox_wanted(b.box) == 6 && f.forgotten == 4 && f.lost == 0 && f.restarts == 0);
    assert_true(b.last[SVS_OUTBOX_RESTARTED].first == 6 && b.last[SVS_OUTBOX_RESTARTED].last == 9);
    b.r.always = true;
    for (int64_t i = 6; i < 10; i++)
        assert_int_equal(put_id(&b, i, 1), SVS_OK);
    settle_down(&b);
    assert_true(svs_outbox_done(b.box) && b.r.next == 10 && status(&b).durable == 10);
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
    assert_string_equal(b.code, "missing_source");
    assert_non_null(strstr(b.reason, "no other producer"));
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
    assert_int_equal(put_id(&b, b.put++, 140), SVS_OK); /* larger than the process takes */
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
    assert_string_equal(b.code, "too_large");
    assert_non_null(strstr(b.reason, "max.message, 150"));
    end(&b);
}

/* However often the connection breaks just after a sample was sent: it is good, and comes through. */
static void test_cut_again_and_again(void **unused) {
    (void)unused;
    struct bench b;
    begin(&b, defaults());
    settle_down(&b);
    put(&b, 10);
    for (int i = 0; i < 50; i++) {
        assert_true(post(&b) > 0);
        way_lose(&b.r.in, b.r.in.count);
        svs_outbox_broken(b.box, b.now);
        post(&b); /* hello, and nothing else */
        receive(&b);
        hear(&b);
    }
    settle_down(&b);
    assert_true(status(&b).acked == 10 && status(&b).refused == 0 && b.r.last == 9);
    end(&b);
}

/* Replies without a number: of the oldest message when it could not be read, else of nothing that was sent,
 * as when a key was taken from the allow file. */
static void test_unnumbered(void **unused) {
    (void)unused;
    static const struct {
        const char *reply, *code;
        bool greeted; /* it comes after the hellos */
        int refused, later;
    } cases[] = {{"{'error': 'odd!', 'code': 'too_deep'}", "too_deep", true, 1, 0},
                 {"{'error': 'no!!', 'code': 'not_allowed'}", "not_allowed", true, 0, 1},
                 {"{'error': 'full', 'code': 'disk_full', 'final': false}", "disk_full", true, 0, 1},
                 {"{'error': 'odd!', 'code': 'missing_source'}", "missing_source", false, 0, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bench b;
        begin(&b, defaults());
        if (cases[i].greeted)
            settle_down(&b);
        put(&b, 3);
        post(&b);
        answer(&b, cases[i].reply);
        assert_string_equal(b.code, cases[i].code);
        assert_int_equal(b.told[SVS_OUTBOX_REFUSED], cases[i].refused);
        assert_int_equal(b.told[SVS_OUTBOX_LATER], cases[i].later);
        assert_true(status(&b).kept == 3 && (cases[i].refused || svs_outbox_wait(b.box, b.now) > 0.04));
        way_lose(&b.r.in, b.r.in.count);
        b.r.skips = true;
        b.now += 0.05;
        settle_down(&b);
        assert_true(status(&b).acked == 3 - cases[i].refused && status(&b).refused == cases[i].refused);
        assert_true(b.told[SVS_OUTBOX_REFUSED] == cases[i].refused && b.r.next == 3);
        end(&b);
    }
}

/* A batch that cannot be read: no sample of it is given up before it went alone. */
static void test_unnumbered_batch(void **unused) {
    struct bench b;
    svs_outbox_options o = defaults();
    (void)unused;
    o.batch = 4;
    begin_with(&b, o, 4);
    assert_int_equal(b.r.in.count, 1);
    way_lose(&b.r.in, 1);
    answer(&b, "{'error': 'odd!', 'code': 'too_deep'}");
    assert_int_equal(b.told[SVS_OUTBOX_REFUSED], 0);
    post(&b); /* hello */
    receive(&b);
    hear(&b);
    assert_int_equal(post(&b), 1);
    assert_int_equal(status(&b).unsent, 3);
    way_lose(&b.r.in, 1);
    answer(&b, "{'error': 'odd!', 'code': 'too_deep'}");
    assert_int_equal(b.told[SVS_OUTBOX_REFUSED], 1);
    assert_int_equal(b.last[SVS_OUTBOX_REFUSED].first, 0);
    settle_down(&b);
    assert_int_equal(status(&b).kept, 0);
    assert_int_equal(status(&b).acked, 3);
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
    expect_packed(&(svs_outbox_sample){.x = x, .d = 1, .key = "press 3/a"},
                  "{\"x\":[1],\"key\":\"press 3/a\",\"src\":\"plant\",\"n\":0}");
    expect_packed(&(svs_outbox_sample){.x = x, .d = 1, .key = ""}, "{\"x\":[1],\"src\":\"plant\",\"n\":0}");
    struct bench b;
    svs_error err;
    char longest[SVS_KEY_MAX + 2];
    begin(&b, defaults());
    memset(longest, 'k', sizeof longest);
    longest[SVS_KEY_MAX + 1] = '\0';
    assert_int_equal(svs_outbox_pack(b.box, &(svs_outbox_sample){.x = x, .d = 1, .key = longest}, &err),
                     SVS_BAD_KEY);
    assert_int_equal(svs_outbox_pack(b.box, &(svs_outbox_sample){.x = x, .d = 1, .key = "\xff"}, &err),
                     SVS_BAD_KEY);
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
        assert_int_equal(route_bytes(&s->control, bytes, size, s->now, &out), SVS_OK);
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
        assert_int_equal(svi_stream_seen(s.e), 90);
        assert_int_equal(s.count[SVI_TOPIC_ERROR], 10);
        speaker_close(&s);
        speaker_open(&s, NULL); /* another process */
        s.control.run++;
        s.now = b.now;
        svs_outbox_broken(b.box, b.now);
        assert_int_equal(svs_outbox_pack(b.box, &(svs_outbox_sample){.x = x, .d = 3}, NULL), SVS_OK);
        converse(&b, &s);
        assert_int_equal(status(&b).acked, 91);
        assert_int_equal(status(&b).forgotten, 100);
        assert_int_equal(svi_stream_seen(s.e), 1);
        speaker_close(&s);
        end(&b);
    }
}

/* Scores come with the replies, each for its sample: none for what is refused, taken before, or no sample. */
struct scored {
    int64_t next; /* of the sample whose score comes next, in rising order */
    int count;
};

static void take_score(void *user, int64_t sample, const void *map, size_t size) {
    struct scored *s = user;
    struct svi_item item;
    const uint8_t *at = map, *end = at + size;
    assert_int_equal(svi_msgpack_check(map, size, SVI_DEPTH_MAX, NULL), SVS_OK);
    assert_true(sample >= s->next && sample % 10 != 7);
    s->next = sample + 1;
    s->count++;
    at = svi_item_read(at, &item);
    assert_true(item.type == SVI_MAP && item.length > 3);
    at = svi_item_read(at, &item); /* id, the sample's number */
    svi_item_read(at, &item);
    assert_true(at < end && item.type == SVI_INT && item.i == sample);
}

static void put_numbered(struct bench *b, int from, int to) {
    double x[] = {1, 2, 3};
    for (int i = from; i < to; i++)
        assert_int_equal(
            svs_outbox_pack(
                b->box,
                &(svs_outbox_sample){.x = x, .d = i % 10 == 7 ? 3 : 2, .id = svs_int(i), .y = svs_int(i % 2)},
                NULL),
            SVS_OK);
}

static void test_scores(void **unused) {
    (void)unused;
    static const uint8_t own[] = {0x81, 0xa5, 'r', 'e', 'p', 'l', 'y', 1};
    for (int batch = 1; batch <= 6; batch += 5) {
        struct bench b;
        struct speaker s;
        struct scored scored = {0};
        svs_outbox_options o = defaults();
        o.batch = batch;
        o.score = take_score;
        begin(&b, o);
        b.box->o.user = &scored;
        b.box->o.notify = NULL;
        assert_int_equal(svs_outbox_put(b.box, own, sizeof own, NULL), SVS_DUPLICATE_KEY);
        speaker_open(&s, NULL);
        put_numbered(&b, 0, 100);
        converse(&b, &s);
        assert_true(scored.count == 90 && scored.next == 100);
        assert_int_equal(status(&b).refused, 10);
        svs_outbox_broken(b.box, b.now); /* what is sent again was taken: nothing is scored twice */
        put_numbered(&b, 100, 150);
        converse(&b, &s);
        assert_true(scored.count == 135 && scored.next == 150);
        assert_int_equal(svi_stream_seen(s.e), 135);
        speaker_close(&s);
        end(&b);
    }
    svs_outbox_options o = defaults();
    o.release = SVS_OUTBOX_SENT;
    o.score = take_score;
    svs_error err;
    assert_null(svs_outbox_new(&o, &err));
    assert_int_equal(err.code, SVS_INVALID);
}

/* Whatever the messages hold, the process has the cursor of the last sample that it took. */
static void cursor_of(int64_t i, char text[32]) {
    text[0] = '\0';
    if (i % 10 != 9) /* every tenth has none */
        snprintf(text, 32, "offset %lld", (long long)(1000 * i));
}

static bool is_place(const svs_outbox *box, int64_t next) {
    char text[32] = "";
    size_t size;
    if (next > 0)
        cursor_of(next - 1, text);
    const void *at = svs_outbox_place(box, &size);
    return size == strlen(text) && (size == 0 ? !at : memcmp(at, text, size) == 0);
}

static void pack_from(struct bench *b, int from, int to) {
    char text[32];
    double x[] = {1, 2, 3};
    for (int i = from; i < to; i++) { /* every seventh is refused: its number is used up all the same */
        const svs_outbox_sample sample = {.x = x, .d = i > 0 && i % 7 == 0 ? 3 : 2, .y = svs_int(i % 2)};
        cursor_of(i, text);
        assert_int_equal(svs_outbox_cursor(b->box, "of another", 10, NULL), SVS_OK); /* the last one counts */
        assert_int_equal(svs_outbox_cursor(b->box, text, strlen(text), NULL), SVS_OK);
        assert_int_equal(svs_outbox_pack(b->box, &sample, NULL), SVS_OK);
    }
}

static void test_cursors(void **unused) {
    (void)unused;
    static const uint8_t own[] = {0x81, 0xa2, 'a', 't', 1};
    char longest[SVS_NAME_MAX + 1];
    svs_error err;
    memset(longest, 'l', sizeof longest);
    for (int batch = 1; batch <= 7; batch += 3) {
        struct bench b, after;
        struct speaker s;
        svs_outbox_options o = defaults();
        o.batch = batch;
        o.replay = true;
        speaker_open(&s, NULL);
        begin(&b, o);
        converse(&b, &s);
        assert_true(svs_outbox_wanted(b.box) == 0 && is_place(b.box, 0));
        assert_int_equal(svs_outbox_put(b.box, own, sizeof own, &err), SVS_DUPLICATE_KEY);
        assert_int_equal(svs_outbox_cursor(b.box, longest, sizeof longest, &err), SVS_BAD_CURSOR);
        for (int i = 0; i < 60; i += 1 + i % 4) {
            pack_from(&b, i, i + 1 + i % 4);
            converse(&b, &s);
            assert_true(is_place(b.box, i + 1 + i % 4));
        }
        const int count = (int)svs_outbox_wanted(b.box);
        /* A producer that knows nothing continues there. */
        begin(&after, o);
        assert_true(is_place(after.box, 0));
        converse(&after, &s);
        assert_true(svs_outbox_wanted(after.box) == count && is_place(after.box, count));
        pack_from(&after, count, count + 5);
        converse(&after, &s);
        /* The process has forgotten the name: the hello that restores its number restores the cursor. */
        struct svi_bytes out = {0};
        const char bye[] = "\x82\xa2op\xa3"
                           "bye\xa3src\xa5plant";
        assert_int_equal(route_bytes(&s.control, bye, sizeof bye - 1, s.now, &out), SVS_OK);
        svi_bytes_clear(&out);
        svs_outbox_broken(after.box, after.now);
        converse(&after, &s);
        assert_int_equal(status(&after).returned, 1);
        end(&b);
        begin(&b, o);
        converse(&b, &s);
        assert_true(svs_outbox_wanted(b.box) == count + 5 && is_place(b.box, count + 5));
        end(&after);
        end(&b);
        speaker_close(&s);
    }
}

/* Keys go with their samples, to a process that is started again too; of one that is refused the key is
 * reported.
 */
static void test_keys(void **unused) {
    (void)unused;
    const char *settings[] = {"key", "key", "keys.max", "3", "method", "alsvm", NULL};
    const char *names[] = {"a", "7", "b c/+#", ""};
    struct bench b;
    struct speaker s;
    double x[] = {1, 2, 3};
    begin(&b, defaults());
    speaker_open(&s, settings);
    for (int i = 0; i < 40; i++)
        assert_int_equal(
            svs_outbox_pack(
                b.box, &(svs_outbox_sample){.x = x, .d = 2, .y = svs_int(i / 4 % 2), .key = names[i % 4]},
                NULL),
            SVS_OK);
    converse(&b, &s);
    assert_true(status(&b).acked == 40 && svi_stream_key_count(s.e) == 3);
    assert_int_equal(svs_outbox_pack(b.box, &(svs_outbox_sample){.x = x, .d = 3, .key = "7"}, NULL), SVS_OK);
    converse(&b, &s);
    assert_string_equal(b.code, "wrong_dimension");
    assert_string_equal(b.key, "7");
    /* a map that a producer made: the key may be a number there */
    static const uint8_t made[] = "\x82\xa3key\xcd\x30\x39\xa1x\x91\x01";
    assert_int_equal(svs_outbox_put(b.box, made, sizeof made - 1, NULL), SVS_OK);
    converse(&b, &s);
    assert_string_equal(b.code, "limit");
    assert_string_equal(b.key, "12345");
    for (int i = 0; i < 3; i++)
        assert_int_equal(svs_outbox_pack(b.box, &(svs_outbox_sample){.x = x, .d = 2, .key = names[i]}, NULL),
                         SVS_OK);
    assert_int_equal(post(&b), 3); /* lost on the way */
    speaker_close(&s);
    speaker_open(&s, settings); /* another process: they go to it, with their keys */
    s.control.run++;
    s.now = b.now;
    svs_outbox_broken(b.box, b.now);
    converse(&b, &s);
    assert_true(status(&b).acked == 43 && svi_stream_key_count(s.e) == 3 && svi_stream_seen(s.e) == 3);
    for (int i = 0; i < 3; i++) {
        const svi_engine *key = svi_stream_engine(s.e, names[i], NULL);
        assert_true(key && key->kept[SVI_KEPT_SEEN] == 1);
    }
    speaker_close(&s);
    end(&b);
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
    svi_outbox_store_at(&o->store, 3)->at++;
    assert_false(svi_outbox_check(o));
    svi_outbox_store_at(&o->store, 3)->at--;
    end(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_order),
        cmocka_unit_test(test_window_and_credit),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_drop),
        cmocka_unit_test(test_sent),
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
        cmocka_unit_test(test_release_on_disk),
        cmocka_unit_test(test_curiosity),
        cmocka_unit_test(test_nothing_kept),
        cmocka_unit_test(test_state_gone),
        cmocka_unit_test(test_refused_again),
        cmocka_unit_test(test_replay_on_disk),
        cmocka_unit_test(test_earlier_life_of_the_producer),
        cmocka_unit_test(test_another_producer),
        cmocka_unit_test(test_replay),
        cmocka_unit_test(test_replay_overtaken),
        cmocka_unit_test(test_poison),
        cmocka_unit_test(test_cut_again_and_again),
        cmocka_unit_test(test_unnumbered),
        cmocka_unit_test(test_unnumbered_batch),
        cmocka_unit_test(test_junk_replies),
        cmocka_unit_test(test_pack),
        cmocka_unit_test(test_real_replies),
        cmocka_unit_test(test_scores),
        cmocka_unit_test(test_cursors),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_checker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
