/* Acknowledged input: the table of producers, and the replies that each message gets. */
#include "support/engine.h"

#include "base/random.h"
#include "engine/sources.h"
#include "store/checkpoint_file.h"
#include "wire/archive_file.h"
#include "support/apply.h"

static bool ok(const json_t *reply) {
    return json_is_true(json_object_get(reply, "ok"));
}

/* The message is taken and acknowledged up to `n`. */
static void taken(struct speaker *f, int n, const char *message) {
    json_t *reply = route(f, "%s", message);
    assert_true(ok(reply));
    assert_int_equal(number(reply, "n"), n);
    assert_int_equal(number(reply, "applied"), n);
    assert_true(number(reply, "durable") == -1);
    assert_true(number(reply, "credit") > 0);
    json_decref(reply);
}

static void refused(struct speaker *f, const char *message, const char *code, int n, int next, bool final) {
    json_t *reply = route(f, "%s", message);
    assert_null(json_object_get(reply, "ok"));
    assert_string_equal(text_of(reply, "code"), code);
    assert_true(strlen(text_of(reply, "error")) > 10);
    assert_int_equal(number(reply, "n"), n);
    assert_int_equal(number(reply, "next"), next);
    assert_true(json_is_true(json_object_get(reply, "final")) == final);
    json_decref(reply);
}

static int hello(struct speaker *f, const char *src) {
    json_t *reply = route(f, "{'op': 'hello', 'src': '%s', 'epoch': 3}", src);
    assert_true(ok(reply));
    assert_int_equal(number(reply, "epoch"), 77);
    assert_true(number(reply, "credit") > 0);
    int next = (int)number(reply, "next");
    json_decref(reply);
    return next;
}

static void test_numbers_in_order(void **unused) {
    (void)unused;
    struct speaker f;
    speaker_open(&f, NULL);
    assert_int_equal(hello(&f, "a"), 0);
    taken(&f, 0, "{'x': [1], 'y': 1, 'src': 'a', 'n': 0}");
    taken(&f, 1, "{'x': [1], 'y': 0, 'src': 'a', 'n': 1.0}");
    taken(&f, 0, "{'x': [1], 'y': 0, 'src': 'b', 'n': 0}");
    taken(&f, 4, "[{'x': [1], 'y': 0, 'src': 'a', 'n': 2}, {'x': [2]}, {'x': [2], 'src': 'b', 'n': 77}]");
    assert_int_equal(hello(&f, "a"), 5);
    assert_int_equal(hello(&f, "b"), 1);
    assert_int_equal(hello(&f, "c"), 0);
    assert_int_equal(svi_entry_next(svi_stream_entry(f.e), "a"), 5);
    assert_int_equal(svi_stream_seen(f.e), 6);
    assert_int_equal(stat(&f, "sources"), 2); /* hello alone takes no place */
    speaker_close(&f);
}

static void test_duplicates_are_acknowledged_not_applied(void **unused) {
    (void)unused;
    struct speaker f;
    speaker_open(&f, NULL);
    taken(&f, 1, "[{'x': {'a': 1}, 'y': 1, 'src': 'a', 'n': 0}, {'x': {'a': 1}}]");
    taken(&f, 1, "{'x': {'a': 1}, 'y': 1, 'src': 'a', 'n': 0}");
    taken(&f, 1, "[{'x': {'a': 1, 'new': 3}, 'y': 1, 'src': 'a', 'n': 0}, {'x': 'bad'}]");
    assert_int_equal(svi_stream_seen(f.e), 2);
    assert_int_equal(stat(&f, "duplicates"), 3);
    taken(&f, 3,
          "[{'x': {'a': 1}, 'src': 'a', 'n': 1}, {'x': {'a': 1}}, {'x': {'a': 1}}]"); /* one old, two new */
    assert_int_equal(svi_stream_seen(f.e), 4);
    assert_int_equal(stat(&f, "duplicates"), 4);
    assert_int_equal(stat(&f, "d"), 1);
    assert_int_equal(f.count[SVI_TOPIC_ERROR], 0);
    speaker_close(&f);
}

static void test_gaps_apply_nothing(void **unused) {
    (void)unused;
    struct speaker f;
    speaker_open(&f, NULL);
    refused(&f, "{'x': [1], 'y': 1, 'src': 'a', 'n': 1}", "source_forgotten", 1, 0, false);
    assert_int_equal(stat(&f, "sources"), 0);
    taken(&f, 0, "{'x': [1], 'y': 1, 'src': 'a', 'n': 0}");
    refused(&f, "[{'x': [1], 'y': 1, 'src': 'a', 'n': 7}, {'x': [1]}]", "gap", 7, 1, false);
    assert_int_equal(svi_stream_seen(f.e), 1);
    assert_int_equal(f.count[SVI_TOPIC_ERROR], 2);
    assert_int_equal(stat(&f, "refused.gap"), 1);
    assert_int_equal(stat(&f, "refused.source_forgotten"), 1);
    taken(&f, 1, "{'x': [1], 'y': 1, 'src': 'a', 'n': 1}");
    speaker_close(&f);
}

/* Where records are lost, the first that is left of a source says where it goes on: but not from anywhere. */
static void test_allowed_gaps(void **unused) {
    (void)unused;
    struct speaker f;
    struct svi_receipt r;
    speaker_open(&f, NULL);
    svi_entry_allow_gaps(svi_stream_entry(f.e), true);
    taken(&f, 7, "{'x': [1], 'y': 1, 'src': 'a', 'n': 7}");
    speaker_build(&f, "[{'x': [1], 'src': 'a', 'n': 9223372036854775807}, {'x': [1]}, {'x': [1]}]");
    assert_int_equal(apply_bytes(f.e, f.frame.data, f.frame.size, NOW, true, &r), SVS_GAP);
    assert_int_equal(svi_entry_next(svi_stream_entry(f.e), "a"), 8);
    taken(&f, 8, "{'x': [1], 'y': 1, 'src': 'a', 'n': 8}");
    speaker_close(&f);
}

static void test_refused_elements_use_their_number_up(void **unused) {
    (void)unused;
    struct speaker f;
    speaker_open(&f, NULL);
    refused(&f, "{'x': 'no', 'y': 1, 'src': 'a', 'n': 0}", "wrong_type", 0, 1, true);
    refused(&f, "{'src': 'a', 'n': 1}", "missing_x", 1, 2, true);
    json_t *reply = route(&f, "[{'x': [1], 'src': 'a', 'n': 2}, 7, {'x': [1, 2]}]");
    assert_true(ok(reply));
    assert_int_equal(number(reply, "refused"), 2);
    assert_int_equal(number(reply, "n"), 4);
    json_decref(reply);
    refused(&f, "[{'src': 'a', 'n': 5}, {}]", "missing_x", 5, 7, true);
    refused(&f, "{'op': 'hallo', 'n': 7, 'src': 'a'}", "unknown_op", 7, 8, true);
    refused(&f, "{'op': 'forget', 'id': 1, 'n': 8, 'src': 'a'}", "unknown_id", 8, 9, true);
    taken(&f, 8, "{'x': 'no', 'y': 1, 'src': 'a', 'n': 0}"); /* again: already answered for good */
    taken(&f, 9, "{'x': [3], 'src': 'a', 'n': 9}");
    assert_int_equal(svi_stream_seen(f.e), 2);
    speaker_close(&f);
}

static void plainly_refused(struct speaker *f, const char *message, const char *code) {
    json_t *reply = route(f, "%s", message);
    assert_string_equal(text_of(reply, "code"), code);
    assert_int_equal(json_object_size(reply), 2);
    json_decref(reply);
}

static void test_src_and_n_belong_together(void **unused) {
    (void)unused;
    struct speaker f;
    speaker_open(&f, NULL);
    const char *bad[] = {"{'x': [1], 'src': 'a'}",
                         "{'x': [1], 'n': 0}",
                         "{'x': [1], 'src': 7, 'n': 0}",
                         "{'x': [1], 'src': 'a', 'n': -1}",
                         "{'x': [1], 'src': '', 'n': 0}",
                         "{'x': [1], 'src': 'a', 'n': 0.5}",
                         "{'x': [1], 'src': 'a', 'n': null}",
                         "{'x': [1], 'src': 'a\\u0000b', 'n': 0}"};
    for (int i = 0; i < 8; i++)
        plainly_refused(&f, bad[i], "missing_source");
    assert_int_equal(svi_stream_seen(f.e), 0);
    assert_int_equal(f.count[SVI_TOPIC_ERROR], 8);
    assert_int_equal(stat(&f, "sources"), 0);
    speaker_close(&f);
}

static void test_without_source(void **unused) {
    (void)unused;
    struct speaker f;
    speaker_open(&f, NULL);
    json_t *reply = route(&f, "[{'x': [1]}, {'x': [1]}, {}]");
    assert_true(ok(reply));
    assert_int_equal(number(reply, "seq"), 1);
    assert_int_equal(number(reply, "refused"), 1);
    json_decref(reply);
    reply = route(&f, "{'x': [1], 'id': 'hello'}"); /* the word alone is no greeting */
    assert_int_equal(number(reply, "seq"), 2);
    json_decref(reply);
    reply = route(&f, "[]");
    assert_true(ok(reply));
    json_decref(reply);
    plainly_refused(&f, "{'x': [1, 2]}", "wrong_dimension");
    plainly_refused(&f, "{'op': 'hello'}", "missing_source");
    plainly_refused(&f, "{'op': 'hello', 'src': 5}", "missing_source");
    plainly_refused(&f, "[{'op': 'hello', 'src': 'a'}]", "missing_source");
    plainly_refused(&f, "'hello'", "wrong_type");
    speaker_close(&f);
}

static void test_malformed_messages_get_a_reply(void **unused) {
    (void)unused;
    struct speaker f;
    const char *bad[] = {"", "\xc1", "\xc1hello", "\x82\xa2op"};
    const size_t length[] = {0, 1, 6, 4};
    const char *codes[] = {"empty", "not_msgpack", "not_msgpack", "truncated"};
    speaker_open(&f, NULL);
    for (int i = 0; i < 4; i++) {
        struct svi_bytes out = {0};
        assert_int_equal(route_bytes(&f.control, bad[i], length[i], NOW, &out), SVS_OK);
        json_t *reply = speaker_reply(&out);
        assert_string_equal(text_of(reply, "code"), codes[i]);
        json_decref(reply);
    }
    assert_int_equal(f.count[SVI_TOPIC_ERROR], 4);
    speaker_close(&f);
}

static void test_too_many_sources(void **unused) {
    (void)unused;
    struct speaker f;
    const char *settings[] = {"max.sources", "2", NULL};
    speaker_open(&f, settings);
    taken(&f, 0, "{'x': [1], 'src': 'a', 'n': 0}");
    taken(&f, 0, "{'x': [1], 'src': 'b', 'n': 0}");
    refused(&f, "{'x': [1], 'src': 'c', 'n': 0}", "limit", 0, 0, false);
    taken(&f, 1, "{'x': [1], 'src': 'a', 'n': 1}");
    assert_int_equal(svi_stream_seen(f.e), 3);
    speaker_close(&f);
}

/* Only who was silent for longer than sources.idle gives way, the most silent first, and only for want of
 * room. Checkpoints know when each was heard. */
static void test_the_silent_give_way(void **unused) {
    (void)unused;
    struct speaker f, g;
    struct svi_checkpoint c = {0};
    svs_error err;
    const char *settings[] = {"max.sources", "3", "sources.idle", "100", NULL};
    speaker_open(&f, settings);
    taken(&f, 0, "{'x': [1], 'src': 'a', 'n': 0}");
    f.now = NOW + 10;
    taken(&f, 0, "{'x': [1], 'src': 'b', 'n': 0}");
    f.now = NOW + 20;
    taken(&f, 0, "{'x': [1], 'src': 'c', 'n': 0}");
    taken(&f, 0, "{'x': [1], 'src': 'a', 'n': 0}"); /* again: it is heard of */
    f.now = NOW + 110;                              /* b for exactly 100 s */
    refused(&f, "{'x': [1], 'src': 'd', 'n': 0}", "limit", 0, 0, false);
    f.now = NOW + 119;
    assert_int_equal(svi_stream_save(f.e, &c, &err), SVS_OK);
    speaker_open(&g, settings);
    assert_int_equal(svi_stream_load(g.e, &c, &err), SVS_OK);
    g.now = NOW + 119;
    memcpy(g.count, f.count, sizeof g.count);
    struct speaker *both[] = {&f, &g};
    for (int i = 0; i < 2; i++) {
        taken(both[i], 0, "{'x': [1], 'src': 'd', 'n': 0}"); /* in the place of b */
        refused(both[i], "{'x': [1], 'src': 'b', 'n': 1}", "source_forgotten", 1, 0, false);
        refused(both[i], "{'x': [1], 'src': 'e', 'n': 0}", "limit", 0, 0, false);
        taken(both[i], 1, "{'x': [1], 'src': 'c', 'n': 1}");
        both[i]->now = NOW + 121;
        taken(both[i], 0, "{'x': [1], 'src': 'e', 'n': 0}"); /* in the place of a */
        assert_int_equal(hello(both[i], "a"), 0);
        assert_int_equal(hello(both[i], "c"), 2);
        assert_int_equal(hello(both[i], "d"), 1);
    }
    svi_checkpoint_clear(&c);
    speaker_close(&f);
    speaker_close(&g);
}

static void test_nobody_gives_way(void **unused) {
    (void)unused;
    struct speaker f;
    const char *settings[] = {"max.sources", "1", "sources.idle", "0", NULL};
    speaker_open(&f, settings);
    taken(&f, 0, "{'x': [1], 'src': 'a', 'n': 0}");
    f.now = NOW + 1e9;
    refused(&f, "{'x': [1], 'src': 'b', 'n': 0}", "limit", 0, 0, false);
    speaker_close(&f);
}

static void test_bye(void **unused) {
    (void)unused;
    struct speaker f;
    const char *settings[] = {"max.sources", "1", NULL};
    speaker_open(&f, settings);
    for (int i = 0; i < 3; i++) {
        char sample[80], bye[80];
        snprintf(sample, sizeof sample, "{'x': [1], 'src': 's%d', 'n': 0}", i);
        snprintf(bye, sizeof bye, "{'op': 'bye', 'src': 's%d'}", i);
        taken(&f, 0, sample);
        for (int twice = 0; twice < 2; twice++) {
            json_t *reply = route(&f, "%s", bye);
            assert_true(ok(reply) && json_is_true(json_object_get(reply, "bye")));
            json_decref(reply);
        }
        assert_int_equal(stat(&f, "sources"), 0);
    }
    assert_int_equal(svi_stream_seen(f.e), 3);
    assert_int_equal(f.count[SVI_TOPIC_ERROR], 0);
    plainly_refused(&f, "{'op': 'bye'}", "missing_source");
    plainly_refused(&f, "[{'op': 'bye', 'src': 's'}]",
                    "missing_source"); /* no message of its own: a bad element */
    speaker_close(&f);
}

/* A producer that was forgotten goes on where it was, in the run that had acknowledged it. */
static void test_the_forgotten_return(void **unused) {
    (void)unused;
    struct speaker f;
    speaker_open(&f, NULL);
    taken(&f, 1, "[{'x': [1], 'src': 'a', 'n': 0}, {'x': [1]}]");
    json_t *reply = route(&f, "{'op': 'hello', 'src': 'a'}");
    const long long run = (long long)number(reply, "run");
    assert_true(run > 0);
    json_decref(reply);
    json_decref(route(&f, "{'op': 'bye', 'src': 'a'}"));
    const char *const others[] = {"'n': 2", "'n': 2, 'run': 5", "'n': 0, 'run': %lld",
                                  "'n': -1, 'run': %lld"};
    for (int i = 0; i < 4; i++) {
        char text[80], end[40];
        snprintf(end, sizeof end, others[i], run);
        snprintf(text, sizeof text, "{'op': 'hello', 'src': 'a', %s}", end);
        reply = route(&f, "%s", text);
        assert_true(ok(reply) && number(reply, "next") == 0);
        json_decref(reply);
    }
    assert_int_equal(stat(&f, "sources"), 0);
    for (int i = 0; i < 2; i++) {
        reply = route(&f, "{'op': 'hello', 'src': 'a', 'n': %d, 'run': %lld}", 2 + 5 * i, run);
        assert_true(ok(reply) && number(reply, "next") == 2 && number(reply, "durable") == -1);
        json_decref(reply);
    }
    taken(&f, 2, "{'x': [1], 'src': 'a', 'n': 2}");
    assert_int_equal(svi_stream_seen(f.e), 3);
    speaker_close(&f);
}

/* hello returns this cursor; NULL: none. */
static void at_is(struct speaker *f, const char *src, int next, const char *at) {
    json_t *reply = route(f, "{'op': 'hello', 'src': '%s'}", src);
    assert_int_equal(number(reply, "next"), next);
    const json_t *got = json_object_get(reply, "at");
    if (at)
        assert_string_equal(json_string_value(got), at);
    else
        assert_null(got);
    json_decref(reply);
}

/* The cursor is that of the message which advanced `next` last. */
static void test_cursors(void **unused) {
    (void)unused;
    struct speaker f;
    char text[400], long_at[66];
    speaker_open(&f, NULL);
    at_is(&f, "a", 0, NULL);
    taken(&f, 0, "{'x': [1], 'y': 1, 'src': 'a', 'n': 0, 'at': 'o-0'}");
    at_is(&f, "a", 1, "o-0");
    taken(&f, 0, "{'x': [1], 'y': 1, 'src': 'b', 'n': 0}");
    at_is(&f, "b", 1, NULL);
    taken(&f, 2, "[{'x': [1], 'src': 'a', 'n': 1, 'at': 'o-2'}, {'x': [2], 'at': 'of a further element'}]");
    taken(&f, 2, "{'x': [1], 'src': 'a', 'n': 0, 'at': 'a duplicate'}");
    at_is(&f, "a", 3, "o-2");
    refused(&f, "{'x': [1], 'src': 'a', 'n': 7, 'at': 'a gap'}", "gap", 7, 3, false);
    at_is(&f, "a", 3, "o-2");
    taken(&f, 4, "[{'x': [1], 'src': 'a', 'n': 2, 'at': 'partly new'}, {'x': [1]}, {'x': [1]}]");
    at_is(&f, "a", 5, "partly new");
    taken(
        &f, 5,
        "[{'op': 'message', 'src': 'a', 'n': 5, 'at': 'of the message'}, {'x': [1], 'at': 'of the sample'}]");
    at_is(&f, "a", 6, "of the message");
    taken(&f, 6, "[{'op': 'message', 'src': 'a', 'n': 6}, {'x': [1], 'at': 'of the sample'}]");
    at_is(&f, "a", 7, "of the sample");
    refused(&f, "{'x': 'bad', 'src': 'a', 'n': 7, 'at': 'refused'}", "wrong_type", 7, 8, true);
    at_is(&f, "a", 8, "refused");
    taken(&f, 8, "{'x': [1], 'src': 'a', 'n': 8}");
    at_is(&f, "a", 9, NULL);
    taken(&f, 9, "{'x': [1], 'src': 'a', 'n': 9, 'at': ''}");
    at_is(&f, "a", 10, NULL);
    const int seen = (int)svi_stream_seen(f.e);
    refused(&f, "{'x': [1], 'src': 'a', 'n': 10, 'at': 7}", "bad_cursor", 10, 10, false);
    refused(&f, "{'x': [1], 'src': 'a', 'n': 10, 'at': ['o']}", "bad_cursor", 10, 10, false);
    memset(long_at, 'l', 65);
    long_at[65] = 0;
    snprintf(text, sizeof text, "{'x': [1], 'src': 'a', 'n': 10, 'at': '%s'}", long_at);
    refused(&f, text, "bad_cursor", 10, 10, false);
    long_at[64] = 0;
    assert_int_equal(svi_stream_seen(f.e), seen);
    snprintf(text, sizeof text, "{'x': [1], 'src': 'a', 'n': 10, 'at': '%s'}", long_at);
    taken(&f, 10, text);
    at_is(&f, "a", 11, long_at);
    json_t *reply = route(&f, "{'x': [1], 'at': 'alone'}");
    assert_string_equal(text_of(reply, "code"), "missing_source");
    json_decref(reply);
    speaker_close(&f);
}

/* Sources that come, go on, give way and end at random are the same after they were saved and loaded, cursors
 * of any bytes included. */
static void test_saved_cursors(void **unused) {
    (void)unused;
    enum { STEPS = 3000, NAMES = 40 };
    struct svi_random random = {9};
    svs_error err;
    svi_sources *p = svi_sources_new(NAMES / 2, &err);
    for (int i = 0; i < STEPS; i++) {
        char name[8];
        const int length = snprintf(name, sizeof name, "s%u", (unsigned)svi_random_below(&random, NAMES));
        struct svi_source *s = svi_sources_find(p, name, (size_t)length);
        if (s && svi_random_below(&random, 10) == 0) {
            svi_sources_remove(p, s);
        } else if (s || (s = svi_sources_add(p, name, (size_t)length, i, 5, &err))) {
            uint8_t at[SVS_NAME_MAX];
            const size_t size =
                svi_random_below(&random, 3) == 0 ? 0 : svi_random_below(&random, SVS_NAME_MAX + 1);
            for (size_t k = 0; k < size; k++)
                at[k] = (uint8_t)svi_random_below(&random, 256);
            svi_sources_touch(p, s, i);
            svi_source_take(s, s->next + 1, 1);
            svi_source_set_at(s, at, size, svi_random_below(&random, 2));
        }
        if (i % 50 != 0)
            continue;
        struct svi_bytes bytes = {0};
        struct svi_archive_out out;
        struct svi_archive_in in;
        svi_archive_out_begin(&out, &bytes, "sources", &err);
        svi_sources_archive(&out.archive, p);
        assert_int_equal(svi_archive_out_end(&out), SVS_OK);
        svi_sources *loaded = svi_sources_new(NAMES / 2, &err);
        svi_archive_in_begin(&in, bytes.data, bytes.size, "sources", &err);
        svi_sources_archive(&in.archive, loaded);
        assert_int_equal(svi_archive_in_end(&in), SVS_OK);
        assert_int_equal(svi_sources_count(loaded), svi_sources_count(p));
        for (int k = 0; k < NAMES; k++) {
            const int l = snprintf(name, sizeof name, "s%d", k);
            const struct svi_source *a = svi_sources_find(p, name, (size_t)l),
                                    *b = svi_sources_find(loaded, name, (size_t)l);
            assert_true(!a == !b);
            if (!a)
                continue;
            assert_int_equal(a->next, b->next);
            assert_int_equal(a->at_size, b->at_size);
            assert_true(a->at_text == b->at_text);
            if (a->at_size > 0)
                assert_memory_equal(a->at, b->at, a->at_size);
        }
        svi_sources_free(&loaded);
        svi_bytes_clear(&bytes);
    }
    svi_sources_free(&p);
}

/* Against a plain list. */
static void test_table(void **unused) {
    (void)unused;
    svs_error err;
    char name[16];
    svi_sources *p = svi_sources_new(1000, &err);
    assert_null(svi_sources_find(p, "x", 1));
    for (int i = 0; i < 1000; i++) {
        int length = snprintf(name, sizeof name, "p%d", i * 7919 % 1000);
        assert_null(svi_sources_find(p, name, (size_t)length));
        svi_sources_add(p, name, (size_t)length, 0, 0, &err)->next = i;
        assert_int_equal(svi_sources_count(p), i + 1);
    }
    for (int i = 0; i < 1000; i++) {
        int length = snprintf(name, sizeof name, "p%d", i * 7919 % 1000);
        assert_int_equal(svi_sources_find(p, name, (size_t)length)->next, i);
        assert_string_equal(svi_sources_find(p, name, (size_t)length)->name, name);
    }
    for (int i = 0; i < 1000; i += 3) {
        int length = snprintf(name, sizeof name, "p%d", i * 7919 % 1000);
        svi_sources_remove(p, svi_sources_find(p, name, (size_t)length));
    }
    for (int i = 0; i < 1000; i++) {
        int length = snprintf(name, sizeof name, "p%d", i * 7919 % 1000);
        const struct svi_source *s = svi_sources_find(p, name, (size_t)length);
        assert_true(i % 3 == 0 ? !s : s && s->next == i);
        if (!s)
            svi_sources_add(p, name, (size_t)length, 0, 0, &err);
    }
    assert_null(svi_sources_find(p, "p", 1));
    assert_null(svi_sources_find(p, "", 0));
    assert_null(svi_sources_add(p, "more", 4, 0, 0, &err));
    assert_int_equal(err.code, SVS_LIMIT);
    assert_true(svi_sources_memory(1000) > 1000 * 64);
    svi_sources_free(&p);
    svi_sources_free(&p);
    assert_null(svi_sources_new(0, &err));
    assert_int_equal(err.code, SVS_INVALID);
}

/* Eras begin and are kept at random, the last two may not be yet: what is said to be on disk is all that was
 * taken up to the era that is. */
static void test_what_is_on_disk(void **unused) {
    (void)unused;
    enum { STEPS = 20000 };
    static int64_t at_end[STEPS + 2]; /* what `next` was when an era ended */
    struct svi_source p = {.next = 0};
    struct svi_random random = {5};
    uint64_t era = 1, kept = 0;
    int64_t next = 0;
    for (int i = 0; i < STEPS; i++) {
        const uint64_t chance = svi_random_next(&random) % 8;
        if (chance < 4)
            svi_source_take(&p, next += 1 + (int64_t)chance, era);
        else if (chance < 6 && era - kept < 2)
            at_end[era++] = next;
        else if (chance == 7 && era - kept == 2)
            kept++;
        assert_int_equal(svi_source_durable(&p, kept), at_end[kept] - 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_in_order),
        cmocka_unit_test(test_duplicates_are_acknowledged_not_applied),
        cmocka_unit_test(test_gaps_apply_nothing),
        cmocka_unit_test(test_allowed_gaps),
        cmocka_unit_test(test_refused_elements_use_their_number_up),
        cmocka_unit_test(test_src_and_n_belong_together),
        cmocka_unit_test(test_without_source),
        cmocka_unit_test(test_malformed_messages_get_a_reply),
        cmocka_unit_test(test_too_many_sources),
        cmocka_unit_test(test_the_silent_give_way),
        cmocka_unit_test(test_nobody_gives_way),
        cmocka_unit_test(test_bye),
        cmocka_unit_test(test_the_forgotten_return),
        cmocka_unit_test(test_cursors),
        cmocka_unit_test(test_saved_cursors),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_what_is_on_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
