/* Acknowledged input: the table of producers, and the replies that each message gets. */
#include "support/engine.h"

#include "base/random.h"
#include "engine/sources.h"
#include "store/checkpoint_file.h"
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
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_what_is_on_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
