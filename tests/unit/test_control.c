/* Control requests and their replies. */
#include "support/engine.h"

#include "state/recovery.h"
#include "svmstream/svmstream.h"
#include "wire/tuning.h"

static bool ok(const json_t *reply) {
    return json_is_true(json_object_get(reply, "ok"));
}

/* The request is refused with this code and a text. */
static void refused(struct speaker *f, const char *request, svs_code code, const char *part) {
    json_t *reply = ask(f, "%s", request);
    if (strcmp(text_of(reply, "code"), svs_code_name(code)) != 0)
        fail_msg("%s got the code %s, not %s", request, text_of(reply, "code"), svs_code_name(code));
    assert_non_null(strstr(text_of(reply, "error"), part));
    assert_null(json_object_get(reply, "ok"));
    json_decref(reply);
}

static void learn_some(struct speaker *f, int n) {
    for (int i = 0; i < n; i++)
        say(f, "{'x': {'temp': %d, 'wind': %d.5}, 'y': %d, 'id': %d}", i % 5, i % 3, i % 2, i);
}

static void test_status(void **unused) {
    (void)unused;
    struct speaker f;
    speaker_open(&f, NULL);
    learn_some(&f, 30);
    say(&f, "{'y': 1}");
    say(&f, "{'x': {'temp': 1}, 'id': 'w'}");
    f.now = NOW + 12.5;
    json_t *status = ask(&f, "{'op': 'status'}");
    assert_true(ok(status));
    assert_int_equal(number(status, "seen"), 31);
    assert_int_equal(number(status, "learned"), 30);
    assert_int_equal(number(status, "errors"), 1);
    assert_int_equal(number(status, "refused.missing_x"), 1);
    assert_int_equal(number(status, "waiting"), 1);
    assert_int_equal(number(status, "model_version"), (double)number(f.last[SVI_TOPIC_SCORE], "model"));
    assert_true(number(status, "uptime") == 12.5);
    assert_string_equal(text_of(status, "version"), svs_version());
    assert_int_equal(number(status, "epoch"), 77);
    assert_true(number(status, "accuracy") >= 0);
    assert_true(json_is_null(json_object_get(status, "rate"))); /* not known yet */
    json_decref(status);
    speaker_close(&f);
}

static void test_config(void **unused) {
    (void)unused;
    struct speaker f;
    const int rows = svi_settings_count;
    const char *settings[] = {"window", "123", "C", "0.5", "stream", "pump1", "scores", "none", NULL};
    const struct svi_setting *table = svi_settings_table;
    speaker_open(&f, settings);
    json_t *reply = ask(&f, "{'op': 'config'}"), *config = json_object_get(reply, "config");
    assert_true(ok(reply));
    assert_int_equal(json_object_size(config), rows);
    for (int i = 0; i < rows; i++)
        assert_non_null(json_object_get(config, table[i].key));
    assert_int_equal(number(config, "window"), 123);
    assert_true(number(config, "C") == 0.5);
    assert_int_equal(number(config, "max.message"), 1 << 20);
    assert_string_equal(text_of(config, "stream"), "pump1");
    assert_string_equal(text_of(config, "scores"), "none");
    assert_string_equal(text_of(config, "task"), "classify");
    json_decref(reply);
    speaker_close(&f);
}

/* The reply's model is the event's, byte for byte. */
static void test_model(void **unused) {
    (void)unused;
    struct speaker f;
    struct svi_bytes out = {0};
    speaker_open(&f, NULL);
    learn_some(&f, 30);
    svi_engine_publish_model(svi_stream_root(f.e), true);
    struct svi_bytes sent = {0};
    svi_bytes_append(&sent, f.event.data, f.event.size);
    assert_int_equal(svi_control_handle(&f.control, "\x81\xa2op\xa5model", 10, NOW, &out), SVS_OK);
    assert_true(out.size > sent.size);
    assert_memory_equal(out.data + out.size - sent.size, sent.data, sent.size);
    svi_bytes_clear(&sent);
    json_t *reply = speaker_reply(&out), *model = json_object_get(reply, "model");
    assert_true(ok(reply));
    assert_int_equal(number(model, "d"), 2);
    assert_int_equal(number(model, "seen"), 30);
    assert_int_equal(f.count[SVI_TOPIC_MODEL], 1);
    json_decref(reply);
    speaker_close(&f);
}

static void test_publish(void **unused) {
    (void)unused;
    struct speaker f;
    speaker_open(&f, NULL);
    json_t *reply = ask(&f, "{'op': 'publish'}"); /* even when nothing changed */
    assert_true(ok(reply));
    assert_int_equal(f.count[SVI_TOPIC_MODEL], 1);
    assert_int_equal(f.count[SVI_TOPIC_STATS], 1);
    json_decref(reply);
    speaker_close(&f);
}

static void test_forget_and_label(void **unused) {
    (void)unused;
    struct speaker f;
    speaker_open(&f, NULL);
    learn_some(&f, 10);
    say(&f, "[{'x': {'temp': 1}, 'id': 3}, {'x': {'temp': 2}, 'id': 'late'}]");
    json_t *reply = ask(&f, "{'op': 'forget', 'id': 3}");
    assert_true(ok(reply));
    assert_int_equal(number(reply, "count"), 2);
    json_decref(reply);
    refused(&f, "{'op': 'forget', 'id': 3}", SVS_UNKNOWN_ID, "3");
    refused(&f, "{'op': 'forget', 'id': '4'}", SVS_UNKNOWN_ID, "4"); /* 4 and "4" differ */
    reply = ask(&f, "{'op': 'label', 'id': 'late', 'y': true}");
    assert_true(ok(reply));
    json_decref(reply);
    refused(&f, "{'op': 'label', 'id': 'late', 'y': 1}", SVS_UNKNOWN_ID, "late");
    assert_int_equal(f.count[SVI_TOPIC_ERROR], 3);
    assert_int_equal(stat(&f, "labels_joined"), 1);
    assert_int_equal(stat(&f, "held"), 10);
    assert_int_equal(svi_stream_seen(f.e), 12);
    speaker_close(&f);
}

static void test_arguments(void **unused) {
    (void)unused;
    struct speaker f;
    char request[400], name[100] = {0};
    speaker_open(&f, NULL);
    say(&f, "{'x': [1], 'id': 1}");
    const char *ids[] = {"1.5", "null", "[1]", "''", "true", "'\\u0000'"};
    for (int i = 0; i < 6; i++) {
        snprintf(request, sizeof request, "{'op': 'forget', 'id': %s}", ids[i]);
        svs_code code = i == 5 ? SVS_UNKNOWN_ID : SVS_BAD_ID;
        refused(&f, request, code, "id");
    }
    const char *labels[] = {"null", "{}", "''", "1.5"};
    for (int i = 0; i < 4; i++) {
        snprintf(request, sizeof request, "{'op': 'label', 'id': 1, 'y': %s}", labels[i]);
        refused(&f, request, SVS_BAD_LABEL, "y");
    }
    memset(name, 'x', SVS_NAME_MAX + 1);
    snprintf(request, sizeof request, "{'op': 'forget', 'id': '%s'}", name);
    refused(&f, request, SVS_BAD_ID, "64");
    refused(&f, "{'op': 'forget'}", SVS_BAD_ID, "id");
    refused(&f, "{'op': 'label', 'id': 1}", SVS_BAD_LABEL, "y");
    json_t *reply = ask(&f, "{'op': 'label', 'id': 1, 'y': 2.0, 'more': {'a': [1]}}");
    assert_true(ok(reply)); /* integral reals are integers, unknown keys are ignored */
    json_decref(reply);
    assert_int_equal(stat(&f, "classes"), 1);
    speaker_close(&f);
}

static void test_integers_above_the_range(void **unused) {
    (void)unused;
    struct speaker f;
    struct svi_bytes out = {0};
    const char request[] = "\x82\xa2op\xa6"
                           "forget\xa2id\xcf\xff\xff\xff\xff\xff\xff\xff\xff";
    speaker_open(&f, NULL);
    assert_int_equal(svi_control_handle(&f.control, request, sizeof request - 1, NOW, &out), SVS_OK);
    json_t *reply = speaker_reply(&out);
    assert_string_equal(text_of(reply, "code"), "bad_id");
    json_decref(reply);
    speaker_close(&f);
}

static void test_reset_and_stop(void **unused) {
    (void)unused;
    struct speaker f;
    speaker_open(&f, NULL);
    learn_some(&f, 10);
    json_t *reply = ask(&f, "{'op': 'reset'}");
    assert_true(ok(reply));
    json_decref(reply);
    assert_int_equal(stat(&f, "held"), 0);
    assert_false(f.control.stop);
    reply = ask(&f, "{'op': 'stop'}");
    assert_true(ok(reply));
    assert_true(f.control.stop);
    json_decref(reply);
    speaker_close(&f);
}

/* What the next sample's event will say, without anything being changed by asking. */
static void test_score(void **unused) {
    (void)unused;
    struct speaker f;
    char before[SVI_HASH_TEXT], after[SVI_HASH_TEXT];
    svs_error err = {0};
    speaker_open(&f, NULL);
    learn_some(&f, 200);
    const int events = f.count[SVI_TOPIC_SCORE];
    assert_int_equal(svi_stream_hash(f.e, before, &err), SVS_OK);
    json_t *reply = ask(&f, "{'op': 'score', 'sample': {'x': {'temp': 2.5, 'wind': 1, 'new': 7}}}");
    assert_int_equal(svi_stream_hash(f.e, after, &err), SVS_OK);
    assert_string_equal(before, after);
    assert_int_equal(f.count[SVI_TOPIC_SCORE], events);
    assert_true(ok(reply));
    say(&f, "{'x': {'temp': 2.5, 'wind': 1}}");
    const json_t *event = f.last[SVI_TOPIC_SCORE];
    assert_true(json_equal(json_object_get(reply, "yhat"), json_object_get(event, "yhat")));
    assert_true(number(reply, "model") == number(event, "model"));
    assert_true(number(reply, "novelty") == number(event, "novelty"));
    assert_true(number(reply, "p") == number(event, "p"));
    const double asked = json_number_value(json_array_get(json_object_get(reply, "scores"), 0)),
                 told = json_number_value(json_array_get(json_object_get(event, "scores"), 0));
    assert_true(fabs(asked - told) <= 1e-9 * (1 + fabs(told)));
    json_decref(reply);
    refused(&f, "{'op': 'score'}", SVS_MISSING_X, "sample");
    refused(&f, "{'op': 'score', 'sample': {'y': 1}}", SVS_MISSING_X, "x");
    refused(&f, "{'op': 'score', 'sample': {'x': [1, 2]}}", SVS_WRONG_KIND, "");
    refused(&f, "{'op': 'score', 'sample': {'x': {'temp': null}}}", SVS_MISSING_VALUE, "missing");
    refused(&f, "{'op': 'score', 'x': {'temp': 1}, 'sample': {'x': {'temp': 1}}}", SVS_INVALID, "x or sample");
    refused(&f, "{'op': 'score', 'columns': ['temp', 'wind']}", SVS_MISSING_X, "x");
    refused(&f, "{'op': 'score', 'x': {'temp': 1}, 'missing': 'never'}", SVS_WRONG_TYPE, "missing");
    refused(&f, "{'op': 'score', 'x': {'temp': 1}, 'key': 'a'}", SVS_BAD_KEY, "--key");
    refused(&f, "{'op': 'score', 'sample': {'x': {'temp': 1}, 'key': 'a'}}", SVS_BAD_KEY, "--key");
    refused(&f, "{'op': 'score', 'sample': 7}", SVS_WRONG_TYPE, "map");
    speaker_close(&f);
}

static json_t *element(const json_t *reply, size_t i) {
    return json_array_get(json_object_get(reply, "scores"), i);
}

/* The reply is that to another request, but for `ok`. */
static void same_reply(const json_t *reply, struct speaker *f, const char *request) {
    json_t *other = ask(f, "%s", request);
    if (!ok(other))
        fail_msg("%s: %s", request, text_of(other, "error"));
    json_object_del(other, "ok");
    json_t *own = json_copy((json_t *)(uintptr_t)reply);
    json_object_del(own, "ok");
    if (!json_equal(own, other))
        fail_msg("%s: %s is not %s", request, json_dumps(other, 0), json_dumps(own, 0));
    json_decref(own);
    json_decref(other);
}

/* The request may be the sample, with all that a sample may have. */
static void test_score_as_a_sample(void **unused) {
    (void)unused;
    struct speaker f;
    speaker_open(&f, NULL);
    learn_some(&f, 200);
    json_t *reply = ask(&f, "{'op': 'score', 'sample': {'x': {'temp': 2.5, 'wind': 1}}}");
    assert_true(ok(reply));
    same_reply(reply, &f, "{'op': 'score', 'x': {'temp': 2.5, 'wind': 1}}");
    same_reply(reply, &f,
               "{'x': {'wind': 1, 'temp': 2.5}, 'ts': 5, 'y': 1, 'id': 'a', 'w': 3, 'op': 'score'}");
    same_reply(reply, &f, "{'op': 'score', 'x': [1, 2.5], 'columns': ['wind', 'temp']}");
    same_reply(reply, &f, "{'op': 'score', 'columns': true, 'x': [2.5, 1]}");
    json_decref(reply);
    reply = ask(&f, "{'op': 'score', 'x': {'temp': 2.5, 'wind': 0}}");
    same_reply(reply, &f, "{'op': 'score', 'x': {'temp': 2.5}, 'missing': 'zero'}");
    json_decref(reply);
    speaker_close(&f);
}

/* Each as it would be alone, in order; a refused one refuses no other, and nothing changes. */
static void test_score_of_a_batch(void **unused) {
    (void)unused;
    struct speaker f;
    char before[SVI_HASH_TEXT], after[SVI_HASH_TEXT];
    svs_error err = {0};
    speaker_open(&f, NULL);
    learn_some(&f, 200);
    assert_int_equal(svi_stream_hash(f.e, before, &err), SVS_OK);
    json_t *reply = ask(&f, "{'op': 'score', 'sample': [{'x': {'temp': 2.5, 'wind': 1}}, {'x': [1]}, 7, "
                            "{'x': {'new': 3, 'wind': 2}}, {'columns': ['wind', 'temp']}, {'x': [1, 2.5]}, "
                            "{'y': 1}]}");
    assert_true(ok(reply));
    assert_int_equal(json_object_size(reply), 2);
    assert_int_equal(json_array_size(json_object_get(reply, "scores")), 7);
    same_reply(element(reply, 0), &f, "{'op': 'score', 'x': {'temp': 2.5, 'wind': 1}}");
    same_reply(element(reply, 3), &f, "{'op': 'score', 'x': {'wind': 2, 'new': 3}}");
    same_reply(element(reply, 5), &f, "{'op': 'score', 'x': {'temp': 2.5, 'wind': 1}}");
    assert_string_equal(text_of(element(reply, 1), "code"), "wrong_kind");
    assert_string_equal(text_of(element(reply, 2), "code"), "wrong_type");
    assert_int_equal(json_object_size(element(reply, 4)), 0);
    assert_string_equal(text_of(element(reply, 6), "code"), "missing_x");
    assert_int_equal(json_object_size(element(reply, 6)), 2);
    json_decref(reply);
    assert_int_equal(svi_stream_hash(f.e, after, &err), SVS_OK);
    assert_string_equal(before, after);
    reply = ask(&f, "{'op': 'score', 'sample': []}");
    assert_true(ok(reply) && json_is_array(json_object_get(reply, "scores")));
    json_decref(reply);
    speaker_close(&f);
}

/* A request of msgpack with `count` times {"x": {}} . */
static json_t *ask_for_many(struct speaker *f, size_t count) {
    struct svi_bytes out = {0};
    struct svi_pack p;
    f->frame.size = 0;
    svi_pack_begin(&p, &f->frame);
    svi_pack_map(&p, 2);
    svi_put_text(&p, "op", "score");
    svi_put_array(&p, "sample", count);
    for (size_t i = 0; i < count; i++) {
        svi_pack_map(&p, 1);
        svi_put_map(&p, "x", 0);
    }
    assert_int_equal(svi_pack_end(&p), SVS_OK);
    assert_int_equal(svi_control_handle(&f->control, f->frame.data, f->frame.size, f->now, &out), SVS_OK);
    return speaker_reply(&out);
}

static void test_score_of_too_many(void **unused) {
    (void)unused;
    const char *settings[] = {"max.classes", "200", "novelty", "none", NULL};
    struct speaker f;
    speaker_open(&f, settings);
    learn_some(&f, 20);
    json_t *reply = ask_for_many(&f, SVI_BATCH_MAX);
    assert_int_equal(json_array_size(json_object_get(reply, "scores")), SVI_BATCH_MAX);
    json_decref(reply);
    reply = ask_for_many(&f, SVI_BATCH_MAX + 1);
    assert_string_equal(text_of(reply, "code"), "too_large");
    json_decref(reply);
    for (int i = 0; i < 200; i++) /* so that a reply takes 4 kB for each */
        say(&f, "{'x': {'temp': %d}, 'y': %d}", i, i);
    reply = ask_for_many(&f, SVI_BATCH_MAX);
    assert_string_equal(text_of(reply, "code"), "limit");
    assert_non_null(strstr(text_of(reply, "error"), "fewer"));
    json_decref(reply);
    speaker_close(&f);
}

/* The names of classes are beside what is said of each, in events and in replies. */
static void test_classes_of_scores(void **unused) {
    (void)unused;
    const char *none[] = {"method", "none", NULL}, *regress[] = {"task", "regress", NULL};
    struct speaker f;
    speaker_open(&f, NULL);
    say(&f, "{'x': [1, 2]}");
    assert_int_equal(json_array_size(json_object_get(f.last[SVI_TOPIC_SCORE], "classes")), 0);
    assert_non_null(json_object_get(f.last[SVI_TOPIC_SCORE], "classes"));
    for (int i = 0; i < 90; i++) {
        say(&f, "{'x': [%d, %d], 'y': %s}", i % 3, i % 7, i % 3 == 0 ? "'no'" : i % 3 == 1 ? "7" : "'yes'");
        const json_t *event = f.last[SVI_TOPIC_SCORE], *classes = json_object_get(event, "classes");
        const size_t known = i < 3 ? (size_t)i : 3, said = json_array_size(json_object_get(event, "proba"));
        assert_int_equal(json_array_size(classes), known);
        assert_int_equal(said, known > 1 ? known : 0);
    }
    json_t *names = json_pack("[s, i, s]", "no", 7, "yes"), *reply = ask(&f, "{'op': 'score', 'x': [2, 1]}");
    assert_true(json_equal(json_object_get(f.last[SVI_TOPIC_SCORE], "classes"), names));
    assert_true(json_equal(json_object_get(reply, "classes"), names));
    size_t best = 0;
    for (size_t k = 0; k < 3; k++)
        if (json_number_value(json_array_get(json_object_get(reply, "proba"), k)) >
            json_number_value(json_array_get(json_object_get(reply, "proba"), best)))
            best = k;
    assert_true(json_equal(json_array_get(names, best), json_object_get(reply, "yhat")));
    json_decref(names);
    json_decref(reply);
    speaker_close(&f);
    const char *const *const classless[] = {none, regress};
    for (int i = 0; i < 2; i++) {
        speaker_open(&f, classless[i]);
        for (int j = 0; j < 30; j++)
            say(&f, "{'x': [%d], 'y': %d}", j % 4, j % 4);
        reply = ask(&f, "{'op': 'score', 'x': [2]}");
        assert_true(ok(reply));
        assert_null(json_object_get(f.last[SVI_TOPIC_SCORE], "classes"));
        assert_null(json_object_get(reply, "classes"));
        json_decref(reply);
        speaker_close(&f);
    }
}

/* Maps in x are columns whose names are joined by dots, for learning and for scoring. */
static void test_nested_x(void **unused) {
    (void)unused;
    const char *settings[] = {"ignore", "meta,sensor.serial", NULL};
    struct speaker f, flat;
    speaker_open(&f, settings);
    speaker_open(&flat, settings);
    for (int i = 0; i < 60; i++) {
        say(&f,
            "{'x': {'sensor': {'co2': %d, 'air': {'t': %d.5, 'kind': '%s'}, 'serial': 'a%d'}, 'empty': {}, "
            "'meta': {'a': [1, {}]}, 'load': 1}, 'y': %d}",
            i % 5, i % 3, i % 2 ? "in" : "out", i, i % 2);
        say(&flat,
            "{'x': {'sensor.co2': %d, 'sensor.air.t': %d.5, 'sensor.air.kind': '%s', 'sensor.serial': 'a', "
            "'load': 1}, 'y': %d}",
            i % 5, i % 3, i % 2 ? "in" : "out", i % 2);
        assert_int_equal(f.count[SVI_TOPIC_ERROR], 0);
    }
    assert_int_equal(f.deeds.size, flat.deeds.size);
    assert_memory_equal(f.deeds.data, flat.deeds.data, f.deeds.size);
    json_t *reply = ask(&f, "{'op': 'score', 'x': {'sensor': {'co2': 3, 'air': {'kind': 'in'}}}}");
    same_reply(reply, &flat, "{'op': 'score', 'x': {'sensor.co2': 3, 'sensor.air.kind': 'in'}}");
    json_decref(reply);
    const struct {
        const char *x;
        svs_code code;
        const char *part;
    } bad[] = {{"{'sensor': {'co2': 1}, 'sensor.co2': 2}", SVS_DUPLICATE_KEY, "sensor.co2"},
               {"{'sensor': {'co2': [1]}}", SVS_WRONG_TYPE, "sensor.co2"},
               {"{'sensor': {'co2': 'many'}}", SVS_WRONG_TYPE, "sensor.co2"},
               {"{'a': {'b': {'c': {'d': {'e': {'f': {'g': {'h': 1}}}}}}}}", SVS_TOO_DEEP, "8"},
               {"{'123456789012345678901234567890': {'123456789012345678901234567890': {'abc': 1}}}",
                SVS_BAD_COLUMN, "64"},
               {"[{'a': 1}, 2]", SVS_WRONG_TYPE, "a map"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char request[300];
        snprintf(request, sizeof request, "{'op': 'score', 'x': %s}", bad[i].x);
        json_t *refusal = ask(&flat, "%s", request);
        if (i != 5) /* x of that stream is no array */
            refused(&flat, request, bad[i].code, bad[i].part);
        assert_false(ok(refusal));
        json_decref(refusal);
    }
    say(&flat, "{'x': {'123456789012345678901234567890': {'123456789012345678901234567890': {'ab': 1}}}}");
    assert_int_equal(flat.count[SVI_TOPIC_ERROR], 0); /* of 64 bytes */
    speaker_close(&f);
    speaker_close(&flat);
}

/* Settings that may change while the model lives: all of a request or none. */
/* Leaving out each sample: figures of both tasks, nothing changed by asking, and why it cannot be. */
static void test_tune(void **unused) {
    (void)unused;
    struct speaker f;
    char before[SVI_HASH_TEXT], after[SVI_HASH_TEXT];
    const char *regress[] = {"task", "regress", "C", "3", NULL};
    const char *none[] = {"method", "none", NULL}, *no_window[] = {"window", "0", NULL};
    svs_error err = {0};
    speaker_open(&f, NULL);
    refused(&f, "{'op': 'tune'}", SVS_UNAVAILABLE, "nothing is learned");
    learn_some(&f, 60);
    assert_int_equal(svi_stream_hash(f.e, before, &err), SVS_OK);
    json_t *reply = ask(&f, "{'op': 'tune'}"), *table = json_object_get(reply, "table");
    assert_true(ok(reply));
    assert_int_equal(json_object_size(reply), 1 + SVI_TUNING_KEYS);
    assert_int_equal(number(reply, "samples"), 60);
    assert_int_equal(number(reply, "skipped"), 0);
    assert_int_equal(json_array_size(table), 11);
    assert_true(number(reply, "C") == 1);
    for (int g = 0; g < 11; g++) {
        const json_t *row = json_array_get(table, (size_t)g);
        assert_true(number(row, "C") == pow(4, g - 5));
        assert_true(number(row, "wrong") >= 0 && number(row, "wrong") <= 1 && number(row, "squared") > 0);
        assert_true(number(row, "gain") <= number(reply, "gain") && number(row, "noise") >= 0);
        assert_null(json_object_get(row, "rmse"));
    }
    json_decref(reply);
    assert_int_equal(svi_stream_hash(f.e, after, &err), SVS_OK);
    assert_string_equal(before, after);
    svs_tuning t;
    assert_int_equal(svi_engine_tune(svi_stream_root(f.e), 1000, &t, &err), SVS_LIMIT);
    assert_non_null(strstr(err.text, "smaller window"));
    speaker_close(&f);

    speaker_open(&f, regress);
    learn_some(&f, 60);
    reply = ask(&f, "{'op': 'tune'}");
    table = json_object_get(reply, "table");
    assert_int_equal(json_array_size(table), 12);
    const json_t *row = json_array_get(table, 6);
    assert_true(number(reply, "C") == 3 && number(row, "C") == 3 && number(row, "gain") == 0);
    assert_true(fabs(number(row, "rmse") * number(row, "rmse") - number(row, "squared")) < 1e-12);
    assert_null(json_object_get(row, "wrong"));
    json_decref(reply);
    speaker_close(&f);

    speaker_open(&f, none);
    refused(&f, "{'op': 'tune'}", SVS_UNAVAILABLE, "method none");
    speaker_close(&f);
    speaker_open(&f, no_window);
    learn_some(&f, 60);
    refused(&f, "{'op': 'tune'}", SVS_UNAVAILABLE, "window 0");
    speaker_close(&f);
}

/* A model has it when it is asked for, and else the bytes that are published. */
static void test_model_with_leave_one_out(void **unused) {
    (void)unused;
    struct speaker f;
    speaker_open(&f, NULL);
    learn_some(&f, 1);
    json_t *reply = ask(&f, "{'op': 'model', 'loo': true}");
    assert_true(ok(reply)); /* one sample: nothing is said */
    assert_null(json_object_get(json_object_get(reply, "model"), "loo"));
    json_decref(reply);
    learn_some(&f, 40);
    reply = ask(&f, "{'op': 'model'}");
    assert_null(json_object_get(json_object_get(reply, "model"), "loo"));
    json_decref(reply);
    reply = ask(&f, "{'op': 'model', 'loo': true}");
    json_t *tuned = ask(&f, "{'op': 'tune'}");
    json_object_del(tuned, "ok");
    assert_true(json_equal(json_object_get(json_object_get(reply, "model"), "loo"), tuned));
    json_decref(tuned);
    json_decref(reply);
    speaker_close(&f);
}

static void test_config_is_set(void **unused) {
    (void)unused;
    struct speaker f;
    speaker_open(&f, NULL);
    learn_some(&f, 30);
    json_t *reply =
        ask(&f, "{'op': 'config', 'set': {'publish.every': 3, 'alert.p': 0.01, 'scores': 'none'}}");
    assert_true(ok(reply));
    assert_int_equal(number(json_object_get(reply, "config"), "publish.every"), 3);
    json_decref(reply);
    assert_true(svi_stream_settings(f.e)->alert_p == 0.01);
    const int models = f.count[SVI_TOPIC_MODEL], scores = f.count[SVI_TOPIC_SCORE];
    learn_some(&f, 30);
    assert_int_equal(f.count[SVI_TOPIC_MODEL], models + 10);
    assert_int_equal(f.count[SVI_TOPIC_SCORE], scores);
    refused(&f, "{'op': 'config', 'set': {'publish.every': 5, 'seed': 2}}", SVS_SETTING,
            "seed is fixed for the lifetime");
    refused(&f, "{'op': 'config', 'set': {'publish.every': -5}}", SVS_SETTING, "out of range");
    refused(&f, "{'op': 'config', 'set': {'alert.p': 0.5, 'alert.clear': 0.1}}", SVS_SETTING, "alert.clear");
    refused(&f, "{'op': 'config', 'set': {'alert.pp': 0.5}}", SVS_SETTING, "alert.p");
    refused(&f, "{'op': 'config', 'set': {'scores': [1]}}", SVS_WRONG_TYPE, "scores");
    refused(&f, "{'op': 'config', 'set': 5}", SVS_WRONG_TYPE, "map");
    assert_int_equal(svi_stream_settings(f.e)->publish_every, 3);
    speaker_close(&f);
}

static void test_what_cannot_be_done(void **unused) {
    (void)unused;
    struct speaker f;
    speaker_open(&f, NULL);
    refused(&f, "{'op': 'refit'}", SVS_UNAVAILABLE, "refit");
    refused(&f, "{'op': 'save'}", SVS_UNAVAILABLE, "save");
    refused(&f, "{'op': 'load', 'checkpoint': 1}", SVS_UNAVAILABLE, "state.dir");
    refused(&f, "{'op': 'stauts'}", SVS_UNKNOWN_OP, "'status'");
    refused(&f, "{'op': 'forgett'}", SVS_UNKNOWN_OP, "'forget'");
    refused(&f, "{'op': '\\u0007\\u00e4'}", SVS_UNKNOWN_OP, "\\x07");
    refused(&f, "{'op': 7}", SVS_WRONG_TYPE, "op");
    refused(&f, "{}", SVS_UNKNOWN_OP, "op");
    refused(&f, "[1]", SVS_WRONG_TYPE, "map");
    assert_int_equal(f.count[SVI_TOPIC_ERROR], 0); /* not the stream's input: told to the asker alone */
    speaker_close(&f);
}

static void test_malformed_requests(void **unused) {
    (void)unused;
    const struct {
        const char *bytes;
        size_t length;
        const char *code;
    } cases[] = {{"", 0, "empty"},
                 {"\xc1", 1, "not_msgpack"},
                 {"\xdf\xff\xff\xff\xff", 5, "truncated"},
                 {"\x81\xa2op\xa4stopx", 10, "trailing"},
                 {"\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x80", 13, "too_deep"}};
    struct speaker f;
    speaker_open(&f, NULL);
    for (int i = 0; i < 5; i++) {
        struct svi_bytes out = {0};
        assert_int_equal(svi_control_handle(&f.control, cases[i].bytes, cases[i].length, NOW, &out), SVS_OK);
        json_t *reply = speaker_reply(&out);
        assert_string_equal(text_of(reply, "code"), cases[i].code);
        json_decref(reply);
    }
    assert_false(f.control.stop);
    speaker_close(&f);
}

/* ---- keys */

/* key k of `keys` has k + 1 samples, of which the first k / 10 of each ten are labelled wrongly: 1 a second.
 */
static void open_fleet(struct speaker *f, int keys) {
    const char *settings[] = {"key",     "key",  "method",    "alsvm", "window", "100",
                              "novelty", "none", "key.prior", "0",     NULL};
    speaker_open(f, settings);
    for (int k = 0; k < keys; k++)
        for (int i = 0; i <= 10 * k; i++, f->now++)
            say(f, "{'key': 'k%d', 'x': [%d, 1], 'y': %d, 'id': %d}", k, i % 2 ? 1 : -1,
                i % 10 < k ? (i / 10 + i) % 2 : i % 2, i);
}

static const char *key_at(const json_t *reply, size_t i) {
    return text_of(json_array_get(json_object_get(reply, "keys"), i), "key");
}

/* Whoever asks about a key gets what the engine of that key knows; who asks without one, the totals. */
static void test_requests_of_keys(void **unused) {
    (void)unused;
    struct speaker f;
    open_fleet(&f, 5);
    say(&f, "{'key': 'k2', 'x': [1, 2, 3]}");
    json_t *all = ask(&f, "{'op': 'status'}"), *one = ask(&f, "{'op': 'status', 'key': 'k2'}");
    assert_int_equal(number(all, "seen"), 1 + 11 + 21 + 31 + 41);
    assert_int_equal(number(all, "labelled"), 1 + 11 + 21 + 31 + 41);
    assert_int_equal(number(all, "refused"), 1);
    assert_int_equal(number(all, "errors"), 1);
    assert_int_equal(number(all, "keys"), 5);
    assert_int_equal(number(all, "keys_in_memory"), 5);
    assert_true(number(all, "keys_accuracy") > 0 && number(all, "keys_accuracy") < 1);
    assert_int_equal(number(one, "seen"), 21);
    assert_int_equal(number(one, "refused"), 1);
    assert_string_equal(text_of(one, "key"), "k2");
    assert_null(json_object_get(one, "keys"));
    assert_null(json_object_get(all, "key"));
    json_decref(all);
    json_decref(one);
    one = ask(&f, "{'op': 'model', 'key': 'k4'}");
    const json_t *model = json_object_get(one, "model");
    assert_int_equal(number(model, "seen"), 41);
    assert_string_equal(text_of(model, "key"), "k4");
    json_decref(one);
    const char *good[] = {"columns",
                          "tune",
                          "publish",
                          "score', 'sample': {'x': [1, 1]}, 'a': '",
                          "forget', 'id': 3, 'a': '",
                          "label', 'id': 'late', 'y': 1, 'a': '"};
    say(&f, "{'key': 'k4', 'x': [1, 1], 'id': 'late'}");
    for (int i = 0; i < 6; i++) {
        one = ask(&f, "{'op': '%s', 'key': 'k4'}", good[i]);
        if (!ok(one))
            fail_msg("%s: %s", good[i], text_of(one, "error"));
        json_decref(one);
    }
    json_decref(ask(&f, "{'op': 'reset', 'key': 'k4'}"));
    one = ask(&f, "{'op': 'status', 'key': 'k4'}");
    all = ask(&f, "{'op': 'status'}");
    assert_int_equal(number(one, "held"), 0);
    assert_int_equal(number(all, "seen"), 106);
    json_decref(one);
    json_decref(all);
    one = ask(&f, "{'op': 'drop', 'key': 'k3'}");
    assert_true(ok(one));
    json_decref(one);
    all = ask(&f, "{'op': 'status'}");
    assert_int_equal(number(all, "keys"), 4);
    assert_int_equal(number(all, "seen"), 106);
    json_decref(all);
    speaker_close(&f);
}

static void test_wrong_keys(void **unused) {
    (void)unused;
    struct speaker f, plain;
    char request[200], name[SVS_KEY_MAX + 2];
    open_fleet(&f, 2);
    speaker_open(&plain, NULL);
    memset(name, 'x', sizeof name);
    name[SVS_KEY_MAX + 1] = '\0';
    snprintf(request, sizeof request, "{'op': 'status', 'key': '%s'}", name);
    refused(&f, request, SVS_BAD_KEY, "65");
    const char *bad[] = {"1.5", "[]", "true", "'\\u0000'"};
    for (int i = 0; i < 4; i++) {
        snprintf(request, sizeof request, "{'op': 'model', 'key': %s}", bad[i]);
        refused(&f, request, SVS_BAD_KEY, "key");
    }
    const char *every[] = {"status", "model",   "columns", "score', 'x': [1, 1], 'a': '",
                           "tune",   "publish", "reset",   "forget",
                           "label",  "alert",   "drop",    "bank",
                           "prune"};
    for (int i = 0; i < 13; i++) {
        snprintf(request, sizeof request, "{'op': '%s', 'key': 'nobody'}", every[i]);
        refused(&f, request, SVS_UNKNOWN_KEY, "nobody");
        refused(&plain, request, SVS_BAD_KEY, "--key");
    }
    refused(&f, "{'op': 'config', 'key': 'k1', 'set': {'C': 2}}", SVS_NOT_SUPPORTED, "leave out key");
    json_t *read = ask(&f, "{'op': 'config', 'key': 'k1'}");
    assert_true(ok(read) && json_object_get(json_object_get(read, "config"), "C"));
    json_decref(read);
    const char *whole[] = {"refit", "load", "save", "stop", "keys"};
    for (int i = 0; i < 5; i++) {
        snprintf(request, sizeof request, "{'op': '%s', 'key': 'k1'}", whole[i]);
        refused(&f, request, SVS_NOT_SUPPORTED, "leave out key");
    }
    assert_false(f.control.stop);
    refused(&f, "{'op': 'label', 'id': 1, 'y': 1}", SVS_MISSING_KEY, "key");
    refused(&f, "{'op': 'forget', 'id': 1}", SVS_MISSING_KEY, "key");
    refused(&f, "{'op': 'drop'}", SVS_MISSING_KEY, "key");
    refused(&plain, "{'op': 'keys'}", SVS_BAD_KEY, "--key");
    say(&plain, "{'x': [1], 'key': null}");
    assert_int_equal(svi_stream_seen(plain.e), 1);
    say(&plain, "{'x': [1], 'key': 'a'}");
    assert_int_equal(plain.error, SVS_BAD_KEY);
    say(&plain, "[{'x': [1]}, {'x': [1], 'key': 7}, {'x': [1]}]");
    assert_int_equal(svi_stream_seen(plain.e), 3);
    assert_int_equal(stat(&plain, "refused.bad_key"), 2);
    speaker_close(&f);
    speaker_close(&plain);
}

/* An unknown key is scored as its first sample would be, and is not begun. */
static void prior_scores(const char *method, const char *task, bool named, int classes) {
    const char *settings[] = {"key", "key",        "method", method,   "novelty", "none", "task",
                              task,  "categories", "kind",   "window", "100",     NULL};
    if (strcmp(method, "auto") == 0)
        settings[10] = NULL; /* which has windows of its own */
    const char *form = named ? "{'%s': '%s', 'x': {'t': %d, 'kind': '%s', 'u': %d}%s}" : "";
    char before[SVI_HASH_TEXT], after[SVI_HASH_TEXT], message[300], label[20];
    svs_error err = {0};
    struct speaker f;
    speaker_open(&f, settings);
    refused(&f, "{'op': 'score', 'key': 'new', 'x': [1, 2]}", SVS_UNKNOWN_KEY, "new"); /* nothing is known */
    for (int i = 0; i < 1200; i++) {
        snprintf(label, sizeof label, ", 'y': %d", ((i / 3) % 8 + i % 5) * classes / 12);
        if (named)
            say(&f, form, "key", i % 2 ? "a" : "b", (i / 3) % 8, i % 5 ? "in" : "out", i % 11, label);
        else
            say(&f, "{'key': '%s', 'x': [%d, %d]%s}", i % 2 ? "a" : "b", (i / 3) % 8, i % 11, label);
    }
    assert_int_equal(f.count[SVI_TOPIC_ERROR], 0);
    const char *x = named ? "{'u': 3, 'kind': 'in', 't': 6, 'more': 2}" : "[6, 3]";
    assert_int_equal(svi_stream_hash(f.e, before, &err), SVS_OK);
    const double keys = stat(&f, "keys"), scores = f.count[SVI_TOPIC_SCORE];
    json_t *reply = ask(&f, "{'op': 'score', 'key': 'new', 'x': %s}", x),
           *known = ask(&f, "{'op': 'score', 'key': 'a', 'x': %s}", x);
    if (!ok(reply))
        fail_msg("%s", text_of(reply, "error"));
    assert_true(json_is_true(json_object_get(reply, "prior")));
    assert_true(ok(known) && !json_object_get(known, "prior"));
    json_t *batch = ask(&f,
                        "{'op': 'score', 'key': 'a', 'sample': [{'x': %s}, {'x': %s, 'key': 'new'}, "
                        "{'x': {'z': {'t': 1}, '0': 'w'}, 'key': 'other'}, {'x': %s, 'key': 'new'}]}",
                        x, x, x);
    assert_int_equal(svi_stream_hash(f.e, after, &err), SVS_OK);
    assert_string_equal(before, after);
    assert_true(stat(&f, "keys") == keys && f.count[SVI_TOPIC_SCORE] == scores);
    if (strcmp(method, "auto") == 0) {
        refused(&f, "{'op': 'bank', 'key': 'a'}", SVS_UNAVAILABLE, "key.shared");
        refused(&f, "{'op': 'tune', 'key': 'a'}", SVS_UNAVAILABLE, "auto");
        refused(&f, "{'op': 'config', 'set': {'method': 'alsvm'}}", SVS_SETTING, "key.shared");
        refused(&f, "{'op': 'config', 'set': {'auto.budget': 5}}", SVS_SETTING, "auto.budget");
    }
    refused(&f, "{'op': 'status', 'key': 'new'}", SVS_UNKNOWN_KEY, "new");
    refused(&f, "{'op': 'score', 'key': 1.5, 'x': [1]}", SVS_BAD_KEY, "key");
    json_object_del(reply, "ok");
    json_object_del(known, "ok");
    assert_true(json_equal(element(batch, 0), known));
    assert_true(json_equal(element(batch, 1), reply));
    assert_true(json_is_true(json_object_get(element(batch, 2), "prior")));
    assert_true(json_equal(element(batch, 3), reply));
    snprintf(message, sizeof message, "{'key': 'new', 'x': %s}", x);
    say(&f, "%s", message);
    const json_t *event = f.last[SVI_TOPIC_SCORE];
    const bool regress = strcmp(task, "regress") == 0;
    const char *same[] = {"model", "yhat", "classes"}, *near[] = {"scores", "proba"};
    for (int i = 0; i < (regress ? 1 : 3); i++)
        assert_true(json_equal(json_object_get(reply, same[i]), json_object_get(event, same[i])));
    for (int i = 0; i < 2; i++) {
        const json_t *a = json_object_get(reply, near[i]), *b = json_object_get(event, near[i]);
        assert_int_equal(json_array_size(a), json_array_size(b));
        for (size_t k = 0; k < json_array_size(a); k++) {
            const double said = json_number_value(json_array_get(b, k));
            if (!(fabs(json_number_value(json_array_get(a, k)) - said) <= 1e-9 * (1 + fabs(said))))
                fail_msg("%s, %d classes: %s %zu is off", task, classes, near[i], k);
        }
    }
    assert_true(json_array_size(json_object_get(reply, "scores")) > 0);
    json_t *moved = ask(&f, "{'op': 'score', 'key': 'other', 'x': %s}",
                        named ? "{'u': 3, 'kind': 'in', 't': 0}" : "[0, 3]");
    assert_false(json_equal(json_object_get(moved, "scores"), json_object_get(reply, "scores")));
    json_decref(moved);
    json_decref(reply);
    json_decref(known);
    json_decref(batch);
    speaker_close(&f);
}

static void test_score_by_the_prior(void **unused) {
    (void)unused;
    struct speaker f;
    for (int i = 0; i < 2; i++) {
        const char *method = i ? "auto" : "alsvm";
        prior_scores(method, "classify", false, 2);
        prior_scores(method, "classify", true, 2);
        prior_scores(method, "classify", true, 4);
        prior_scores(method, "classify", false, 5);
        prior_scores(method, "regress", false, 9);
        prior_scores(method, "regress", true, 9);
    }
    open_fleet(&f, 3); /* without key.prior */
    refused(&f, "{'op': 'score', 'key': 'new', 'x': [1, 2]}", SVS_UNKNOWN_KEY, "new");
    refused(&f, "{'op': 'score', 'sample': {'key': 'new', 'x': [1, 2]}}", SVS_UNKNOWN_KEY, "new");
    speaker_close(&f);
}

/* In each order, with each filter, and fewer than there are: as all of them sorted would begin. */
static void test_keys_are_listed(void **unused) {
    (void)unused;
    struct speaker f;
    enum { KEYS = 8 };
    open_fleet(&f, KEYS);
    json_t *all = ask(&f, "{'op': 'keys'}"), *list = json_object_get(all, "keys");
    assert_true(ok(all));
    assert_int_equal(number(all, "count"), KEYS);
    assert_int_equal(number(all, "matching"), KEYS);
    assert_string_equal(text_of(all, "measure"), "accuracy.w");
    assert_int_equal(json_array_size(list), KEYS);
    for (size_t i = 1; i < KEYS; i++)
        assert_true(number(json_array_get(list, i - 1), "excess_error") >=
                    number(json_array_get(list, i), "excess_error"));
    for (size_t i = 0; i < KEYS; i++) {
        const json_t *key = json_array_get(list, i);
        json_t *status = ask(&f, "{'op': 'status', 'key': '%s'}", text_of(key, "key"));
        assert_true(number(key, "quality") == number(status, "accuracy.w"));
        assert_true(number(key, "rows") == number(status, "seen"));
        json_decref(status);
    }
    for (int limit = 0; limit <= KEYS; limit++) {
        json_t *some = ask(&f, "{'op': 'keys', 'limit': %d}", limit);
        assert_int_equal(json_array_size(json_object_get(some, "keys")), limit);
        assert_int_equal(number(some, "matching"), KEYS);
        for (size_t i = 0; i < (size_t)limit; i++)
            assert_string_equal(key_at(some, i), key_at(all, i));
        json_decref(some);
    }
    json_decref(all);
    const struct {
        const char *query, *first, *last;
        int count;
    } queries[] = {{"'sort': 'rows'", "k7", "k0", KEYS},
                   {"'sort': 'age'", "k0", "k7", KEYS},
                   {"'sort': 'name'", "k0", "k7", KEYS},
                   {"'sort': 'alerts'", "k0", "k7", KEYS}, /* none: as they began */
                   {"'sort': 'name', 'like': 'k3'", "k3", "k3", 1},
                   {"'sort': 'name', 'like': 4", "k4", "k4", 1},
                   {"'sort': 'name', 'like': ''", "k0", "k7", KEYS},
                   {"'sort': 'name', 'prefix': 'k'", "k0", "k7", KEYS},
                   {"'sort': 'name', 'prefix': 'k6'", "k6", "k6", 1},
                   {"'sort': 'name', 'prefix': 'k', 'like': 6", "k6", "k6", 1},
                   {"'sort': 'name', 'open': false", "k0", "k7", KEYS},
                   {"'sort': 'name', 'silent': 100.5", "k0", "k5", 6},
                   {"'sort': 'name', 'silent': 0", "k0", "k7", KEYS}};
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        json_t *some = ask(&f, "{'op': 'keys', %s}", queries[i].query);
        if (number(some, "matching") != queries[i].count)
            fail_msg("%s: %g keys", queries[i].query, number(some, "matching"));
        assert_string_equal(key_at(some, 0), queries[i].first);
        assert_string_equal(key_at(some, (size_t)queries[i].count - 1), queries[i].last);
        json_decref(some);
    }
    json_t *none = ask(&f, "{'op': 'keys', 'prefix': '7'}"), *open = ask(&f, "{'op': 'keys', 'open': true}");
    assert_int_equal(number(none, "matching"), 0);
    assert_int_equal(number(open, "matching"), 0);
    json_decref(none);
    json_decref(open);
    say(&f, "{'x': [1, 2], 'y': 1}");
    none = ask(&f, "{'op': 'keys', 'limit': 0}");
    assert_int_equal(number(none, "unkeyed"), 1);
    json_decref(none);
    const char *bad[] = {"'sort': 'size'", "'sort': 1",        "'limit': -1",
                         "'limit': 10001", "'prefix': 1.5",    "'limit': 'a'",
                         "'like': [1]",    "'silent': 'long'", "'silent': -1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char request[100];
        snprintf(request, sizeof request, "{'op': 'keys', %s}", bad[i]);
        refused(&f, request, SVS_WRONG_TYPE, "must be");
    }
    speaker_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_status),
        cmocka_unit_test(test_config),
        cmocka_unit_test(test_model),
        cmocka_unit_test(test_publish),
        cmocka_unit_test(test_forget_and_label),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_integers_above_the_range),
        cmocka_unit_test(test_reset_and_stop),
        cmocka_unit_test(test_score),
        cmocka_unit_test(test_score_as_a_sample),
        cmocka_unit_test(test_score_of_a_batch),
        cmocka_unit_test(test_score_of_too_many),
        cmocka_unit_test(test_classes_of_scores),
        cmocka_unit_test(test_nested_x),
        cmocka_unit_test(test_score_by_the_prior),
        cmocka_unit_test(test_tune),
        cmocka_unit_test(test_model_with_leave_one_out),
        cmocka_unit_test(test_config_is_set),
        cmocka_unit_test(test_what_cannot_be_done),
        cmocka_unit_test(test_malformed_requests),
        cmocka_unit_test(test_requests_of_keys),
        cmocka_unit_test(test_wrong_keys),
        cmocka_unit_test(test_keys_are_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
