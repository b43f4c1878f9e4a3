/* The key `columns`: arrays are matched by name with the columns of the stream, whichever order they come in.
 */
#include "support/engine.h"

#include "client/outbox_internal.h"
#include "store/checkpoint_file.h"

#define NAMES "'columns':['a','b','c']"

static void takes(struct speaker *f, const char *text) {
    json_t *reply = route(f, "%s", text);
    if (!json_is_true(json_object_get(reply, "ok")) || json_object_get(reply, "refused"))
        fail_msg("%s: %s", text, text_of(reply, "error"));
    json_decref(reply);
}

/* The whole message is refused with this code; the reason holds both parts. */
static void refuses(struct speaker *f, const char *text, const char *code, const char *one,
                    const char *other) {
    json_t *reply = route(f, "%s", text);
    if (strcmp(text_of(reply, "code"), code) != 0 || !strstr(text_of(reply, "error"), one) ||
        !strstr(text_of(reply, "error"), other))
        fail_msg("%s: %s (%s)", text, text_of(reply, "error"), text_of(reply, "code"));
    json_decref(reply);
}

/* The state of a stream to which these messages were sent, as a fingerprint. */
static const char *state_after(const char *const *settings, const char *const *messages, char *hash) {
    struct speaker f;
    speaker_open(&f, settings);
    for (; *messages; messages++)
        takes(&f, *messages);
    assert_int_equal(svi_stream_hash(f.e, hash, NULL), SVS_OK);
    speaker_close(&f);
    return hash;
}

static void test_any_order(void **state) {
    static const char *const straight[] = {"{" NAMES ",'x':[1,2,3],'y':1}", "{" NAMES ",'x':[4,5,9],'y':0}",
                                           "{'x':[7,8,1],'y':1}", NULL},
                             *const turned[] = {"{" NAMES ",'x':[1,2,3],'y':1}",
                                                "{'columns':['c','a','b'],'x':[9,4,5],'y':0}",
                                                "{'y':1,'x':[8,1,7],'columns':['b','c','a']}", NULL},
                             *const batch[] = {"[{" NAMES ",'x':[1,2,3],'y':1},{'x':[4,5,9],'y':0}]",
                                               "[{'columns':['c','b','a'],'x':[1,8,7],'y':1}]", NULL},
                             *const ahead[] = {"{" NAMES "}", "[{'x':[1,2,3],'y':1},{'x':[4,5,9],'y':0}]",
                                               "{'x':[7,8,1],'y':1}", NULL};
    static const char *const fixed[] = {"features", "a,b,c", NULL};
    char one[SVI_HASH_TEXT], other[SVI_HASH_TEXT];
    (void)state;
    state_after(NULL, straight, one);
    assert_string_equal(state_after(NULL, turned, other), one);
    assert_string_equal(state_after(NULL, batch, other), one);
    assert_string_equal(state_after(NULL, ahead, other), one);
    state_after(fixed, straight, one);
    assert_string_equal(state_after(fixed, turned, other), one);
}

/* Names reach a stream that began without them, and one that began with maps. */
static void test_begun_otherwise(void **state) {
    struct speaker f;
    (void)state;
    speaker_open(&f, NULL);
    takes(&f, "{'x':[1,2,3],'y':1}");
    refuses(&f, "{'columns':['a','b'],'x':[1,2]}", "wrong_columns", "a, b", "3 without names");
    takes(&f, "{" NAMES ",'x':[3,4,5],'y':0}");
    svi_engine_publish_model(svi_stream_root(f.e), true);
    assert_int_equal(json_array_size(json_object_get(f.last[SVI_TOPIC_MODEL], "features")), 3);
    speaker_close(&f);
    speaker_open(&f, NULL);
    takes(&f, "{'x':{'b':2,'a':1},'y':1}");
    takes(&f, "{'columns':['a','b'],'x':[1,2],'y':1}");
    refuses(&f, "{" NAMES ",'x':[1,2,3]}", "wrong_columns", "a, b, c", "has b, a");
    speaker_close(&f);
}

/* A header with other names is refused with both lists, and no number is used up. */
static void test_others_are_refused(void **state) {
    struct speaker f;
    (void)state;
    speaker_open(&f, NULL);
    takes(&f, "{'src':'p','n':0," NAMES ",'x':[1,2,3],'y':1}");
    json_t *reply = route(&f, "{'src':'p','n':1,'columns':['a','b','d'],'x':[1,2,3],'y':1}");
    assert_string_equal(text_of(reply, "code"), "wrong_columns");
    assert_string_equal(text_of(reply, "error"), "the columns are a, b, d, but this stream has a, b, c");
    assert_true(json_is_false(json_object_get(reply, "final")) && number(reply, "next") == 1);
    json_decref(reply);
    refuses(&f, "{'columns':['a','b'],'x':[1,2]}", "wrong_columns", "a, b,", "a, b, c");
    refuses(&f, "{'columns':['a','b','c','d'],'x':[1,2,3,4]}", "wrong_columns", "a, b, c, d", "has a, b, c");
    refuses(&f, "{'columns':['a','b','a'],'x':[1,2,3]}", "wrong_columns", "\"a\"", "twice");
    refuses(&f, "{'columns':['a','b',3],'x':[1,2,3]}", "wrong_columns", "an integer", "names");
    refuses(&f, "{'columns':[],'x':[1,2,3]}", "wrong_columns", "empty", "names");
    refuses(&f, "{'columns':'a','x':[1,2,3]}", "wrong_columns", "a string", "names");
    refuses(&f, "{" NAMES ",'x':[1,2]}", "wrong_dimension", "2", "3");
    takes(&f,
          "{'src':'p','n':0,'columns':['x'],'x':[1],'y':1}"); /* taken before: it is not looked at again */
    takes(&f, "{'src':'p','n':1,'columns':null,'x':[1,2,3],'y':1}");
    speaker_close(&f);
}

/* A refused row leaves no names; a list that is too long is a limit. */
static void test_nothing_stays(void **state) {
    static const char *const few[] = {"max.features", "2", NULL};
    struct speaker f;
    (void)state;
    speaker_open(&f, NULL);
    refuses(&f, "{" NAMES ",'x':[1,2,3],'y':[]}", "wrong_type", "y", "y");
    takes(&f, "{'columns':['p','q','r'],'x':[1,2,3],'y':1}");
    refuses(&f, "{" NAMES ",'x':[1,2,3]}", "wrong_columns", "a, b, c", "p, q, r");
    takes(&f, "[{'columns':['r','q','p'],'x':[1,2,3]},{'x':[1,2,3]}]");
    speaker_close(&f);
    speaker_open(&f, few);
    refuses(&f, "{" NAMES ",'x':[1,2,3]}", "limit", "max.features", "2");
    takes(&f, "{'x':[1,2]}");
    speaker_close(&f);
}

static void test_score(void **state) {
    struct speaker f;
    (void)state;
    speaker_open(&f, NULL);
    for (int i = 0; i < 20; i++) {
        char text[100];
        snprintf(text, sizeof text, "{" NAMES ",'x':[%d,%d,%d],'y':%d}", i, i * i % 7, i % 3, i % 2);
        takes(&f, text);
    }
    json_t *one = ask(&f, "{'op':'score','sample':{'x':[1,2,3]}}"),
           *other = ask(&f, "{'op':'score','sample':{'columns':['c','b','a'],'x':[3,2,1]}}"),
           *bad = ask(&f, "{'op':'score','sample':{'columns':['c','b','z'],'x':[3,2,1]}}");
    assert_true(json_equal(json_object_get(one, "scores"), json_object_get(other, "scores")));
    assert_string_equal(text_of(bad, "code"), "wrong_columns");
    json_decref(one);
    json_decref(other);
    json_decref(bad);
    speaker_close(&f);
}

/* The outbox sends the names with each message; samples keep their numbers while they are refused. */
static void test_outbox(void **state) {
    static const char *const names[] = {"a", "b"}, *const others[] = {"b", "a"}, *const hole[] = {"a", NULL};
    svs_outbox_options o;
    struct speaker f;
    struct svi_bytes out = {0};
    const void *bytes;
    size_t size;
    double x[] = {1, 2};
    (void)state;
    svs_outbox_defaults(&o);
    o.src = "plant";
    o.batch = 3;
    svs_outbox *box = svs_outbox_new(&o, NULL);
    speaker_open(&f, NULL);
    assert_int_equal(svs_outbox_columns(box, hole, 2, NULL), SVS_INVALID);
    assert_int_equal(svs_outbox_columns(box, NULL, 2, NULL), SVS_INVALID);
    assert_int_equal(svs_outbox_columns(box, names, 2, NULL), SVS_OK);
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < 7; i++)
            assert_int_equal(
                svs_outbox_pack(box, &(svs_outbox_sample){.x = x, .d = 2, .y = svs_int(i % 2)}, NULL),
                SVS_OK);
        while (svs_outbox_frame(box, turn, &bytes, &size)) {
            assert_int_equal(route_bytes(&f.control, bytes, size, NOW, &out), SVS_OK);
            svs_outbox_sent(box, turn);
            assert_int_equal(svs_outbox_reply(box, out.data, out.size, turn, NULL), SVS_OK);
        }
        assert_int_equal(svi_stream_seen(f.e), 7 * (turn + 1));
        assert_int_equal(svs_outbox_columns(box, others, 2, NULL), SVS_OK);
    }
    svi_engine_publish_model(svi_stream_root(f.e), true);
    assert_string_equal(
        json_string_value(json_array_get(json_object_get(f.last[SVI_TOPIC_MODEL], "features"), 1)), "b");
    svi_bytes_clear(&out);
    svs_outbox_free(&box);
    speaker_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_order),
        cmocka_unit_test(test_begun_otherwise),
        cmocka_unit_test(test_others_are_refused),
        cmocka_unit_test(test_nothing_stays),
        cmocka_unit_test(test_score),
        cmocka_unit_test(test_outbox),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
