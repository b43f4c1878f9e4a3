/* The engine as its surroundings see it: frames in, events out. */
#include "support/engine.h"

#include "store/checkpoint_file.h"
#include "support/quick.h"

#include "engine/counters.h"
#include "engine/engine_internal.h"
#include "support/apply.h"

static const char *const regress[] = {"task", "regress", NULL};

static void learn_some(struct speaker *f, int n) {
    for (int i = 0; i < n; i++)
        say(f, "{'x': [%d, %d.5], 'y': %d}", i % 5, i % 3, i % 2);
}

static void test_score_comes_before_learning(void **unused) {
    (void)unused;
    struct speaker f;
    speaker_open(&f, NULL);
    assert_int_equal(say(&f, "{'x': [1, 2], 'y': 'a', 'id': 7, 'ts': 5.5}"), SVS_OK);
    json_t *s = f.last[SVI_TOPIC_SCORE];
    assert_int_equal(f.count[SVI_TOPIC_SCORE], 1);
    assert_true(json_is_null(json_object_get(s, "yhat"))); /* no class was known */
    assert_string_equal(text_of(s, "y"), "a");
    assert_int_equal(number(s, "id"), 7);
    assert_true(number(s, "ts") == 5.5);
    assert_int_equal(number(s, "epoch"), 77);
    double before = number(s, "model");
    say(&f, "{'x': [1, 2], 'y': 'b', 'id': 'seven'}");
    s = f.last[SVI_TOPIC_SCORE];
    assert_string_equal(text_of(s, "yhat"), "a");
    assert_string_equal(text_of(s, "id"), "seven");
    assert_true(number(s, "ts") == NOW);
    assert_true(number(s, "model") > before);
    assert_int_equal(svi_stream_seen(f.e), 2);
    assert_true(stat(&f, "accuracy") == 0);
    assert_int_equal(stat(&f, "labelled"), 2);
    speaker_close(&f);
}

/* Rows of zeros fix no kind: the first row with features does. What an older program recorded is repeated as
 * it was. */
static void test_empty_rows_fix_no_kind(void **unused) {
    (void)unused;
    const struct {
        const char *good, *bad;
        int d;
    } cases[] = {{"{'x': [1, 2], 'y': 1}", "{'x': {'a': 1}, 'y': 1}", 2},
                 {"{'x': {'a': 1, 'b': 2, 'c': 3}, 'y': 1}", "{'x': [1, 2, 3], 'y': 1}", 3},
                 {"{'x': {}, 'y': 1}", "{'x': [], 'y': 1}", 0}};
    for (int i = 0; i < 3; i++)
        for (int novelty = 0; novelty < 2; novelty++) {
            struct speaker f;
            const char *settings[] = {"novelty", novelty ? "fosvm1" : "none", NULL};
            speaker_open(&f, settings);
            for (int k = 0; k < 3; k++)
                say(&f, "{'x': {}, 'y': %d}", k % 2);
            say(&f, "%s", cases[i].good);
            assert_int_equal(svi_stream_seen(f.e), 4);
            say(&f, "%s", cases[i].bad);
            say(&f, "{'x': {}, 'y': 0}");
            assert_int_equal(svi_stream_seen(f.e), 5);
            assert_int_equal(stat(&f, "d"), cases[i].d);
            speaker_close(&f);
        }
}

/* Only samples that wait take places of labels.max, however many between them have their labels. */
static void test_places_of_labels(void **unused) {
    (void)unused;
    struct speaker f;
    const char *settings[] = {"labels.max", "10", NULL};
    speaker_open(&f, settings);
    for (int i = 0; i < 5; i++)
        say(&f, "{'x': [%d], 'id': 'first %d'}", i, i);
    for (int i = 0; i < 1000; i++) { /* never more than five and four wait */
        say(&f, "{'x': [%d], 'id': %d}", i % 7, i);
        if (i >= 4)
            say(&f, "{'op': 'label', 'id': %d, 'y': %d}", i - 4, i % 2);
    }
    assert_int_equal(stat(&f, "labels_joined"), 996);
    assert_int_equal(stat(&f, "labels_evicted"), 0);
    assert_int_equal(stat(&f, "waiting"), 9);
    for (int i = 0; i < 5; i++)
        say(&f, "{'op': 'label', 'id': 'first %d', 'y': 1}", i);
    assert_int_equal(stat(&f, "labels_joined"), 1001);
    for (int i = 0; i < 20; i++)
        say(&f, "{'x': [%d], 'id': 'last %d'}", i, i);
    assert_int_equal(stat(&f, "waiting"), 10); /* it is full now */
    assert_int_equal(stat(&f, "labels_evicted"), 14);
    say(&f, "{'op': 'label', 'id': 'last 9', 'y': 1}");
    assert_int_equal(f.error, SVS_UNKNOWN_ID);
    say(&f, "{'op': 'label', 'id': 'last 10', 'y': 1}");
    assert_int_equal(stat(&f, "labels_joined"), 1002);
    assert_int_equal(f.count[SVI_TOPIC_ERROR], 1);
    speaker_close(&f);
}

static void test_which_scores_are_published(void **unused) {
    (void)unused;
    const struct {
        const char *scores;
        int expected;
    } cases[] = {{"all", 10}, {"none", 0}, {"3", 3}, {"10", 1}, {"11", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct speaker f;
        const char *settings[] = {"scores", cases[i].scores, NULL};
        speaker_open(&f, settings);
        learn_some(&f, 5);
        say(&f, "{'x': [1, 2, 3], 'y': 1}"); /* refused ones do not count */
        learn_some(&f, 5);
        assert_int_equal(f.count[SVI_TOPIC_SCORE], cases[i].expected);
        assert_int_equal(stat(&f, "published_scores"), cases[i].expected);
        speaker_close(&f);
    }
}

/* The score of an event is the published model's of that version. */
static void test_model_reproduces_scores(void **unused) {
    (void)unused;
    struct speaker f;
    const char *settings[] = {"method", "alsvm", "publish.every", "1", "publish.seconds", "0", NULL};
    speaker_open(&f, settings);
    learn_some(&f, 40);
    json_t *model = json_incref(f.last[SVI_TOPIC_MODEL]);
    say(&f, "{'x': [3.25, -1]}");
    json_t *s = f.last[SVI_TOPIC_SCORE], *w = json_object_get(model, "W");
    double made = json_number_value(json_array_get(w, 0)) * 3.25 - json_number_value(json_array_get(w, 1)) +
                  number(model, "b");
    assert_int_equal(number(model, "version"), number(s, "model"));
    assert_float_equal(made, json_number_value(json_array_get(json_object_get(s, "scores"), 0)), 1e-12);
    assert_int_equal(number(model, "seen"), 40);
    assert_int_equal(number(model, "learned"), 40);
    assert_true(number(json_object_get(model, "quality"), "accuracy") >= 0);
    json_decref(model);
    speaker_close(&f);
}

static void test_model_every_n_samples_if_it_changed(void **unused) {
    (void)unused;
    struct speaker f;
    const char *settings[] = {"publish.every", "10", "publish.seconds", "0", NULL};
    speaker_open(&f, settings);
    for (int i = 0; i < 10; i++)
        say(&f, "{'x': [1, 2]}");
    assert_int_equal(f.count[SVI_TOPIC_MODEL], 0); /* nothing was learned */
    learn_some(&f, 9);
    assert_int_equal(f.count[SVI_TOPIC_MODEL], 0);
    learn_some(&f, 1);
    assert_int_equal(f.count[SVI_TOPIC_MODEL], 1);
    assert_int_equal(number(f.last[SVI_TOPIC_MODEL], "seen"), 20);
    for (int i = 0; i < 10; i++)
        say(&f, "{'x': [1, 2], 'id': %d}", i);
    assert_int_equal(f.count[SVI_TOPIC_MODEL], 1); /* unchanged */
    for (int i = 0; i < 10; i++)
        say(&f, "{'op': 'label', 'id': %d, 'y': 1}", i); /* a label is no sample */
    assert_int_equal(f.count[SVI_TOPIC_MODEL], 1);
    svi_engine_publish_model(svi_stream_root(f.e), false);
    assert_int_equal(f.count[SVI_TOPIC_MODEL], 2);
    svi_engine_publish_model(svi_stream_root(f.e), false);
    assert_int_equal(f.count[SVI_TOPIC_MODEL], 2);
    svi_engine_publish_model(svi_stream_root(f.e), true);
    assert_int_equal(f.count[SVI_TOPIC_MODEL], 3);
    speaker_close(&f);
}

/* Which versions go out depends on when it is called; what a version is does not, nor does the state. */
static void test_model_when_it_is_due(void **unused) {
    (void)unused;
    struct speaker often, seldom;
    const char *settings[] = {"publish.every", "0", "publish.seconds", "1", NULL};
    char one[SVI_HASH_TEXT], other[SVI_HASH_TEXT];
    speaker_open(&often, settings);
    speaker_open(&seldom, settings);
    svi_stream_publish_due(often.e, NOW);
    assert_int_equal(often.count[SVI_TOPIC_MODEL], 0); /* nothing was learned */
    for (int i = 0; i < 20; i++) {
        say(&often, "{'x': [%d], 'y': %d, 'ts': %d}", i, i % 2, 17 * i);
        say(&seldom, "{'x': [%d], 'y': %d, 'ts': %d}", i, i % 2, 17 * i);
        assert_int_equal(often.count[SVI_TOPIC_MODEL], i);
        svi_stream_publish_due(often.e, NOW + i);
        svi_stream_publish_due(often.e, NOW + i); /* it has not changed */
    }
    svi_stream_publish_due(seldom.e, NOW + 20);
    assert_int_equal(often.count[SVI_TOPIC_MODEL], 20);
    assert_int_equal(seldom.count[SVI_TOPIC_MODEL], 1);
    assert_int_equal(often.count[SVI_TOPIC_STATS], 41);
    json_object_del(often.last[SVI_TOPIC_MODEL], "seq");
    json_object_del(seldom.last[SVI_TOPIC_MODEL], "seq");
    assert_true(json_equal(often.last[SVI_TOPIC_MODEL], seldom.last[SVI_TOPIC_MODEL]));
    assert_int_equal(svi_stream_hash(often.e, one, NULL), SVS_OK);
    assert_int_equal(svi_stream_hash(seldom.e, other, NULL), SVS_OK);
    assert_string_equal(one, other);
    speaker_close(&often);
    speaker_close(&seldom);
}

/* ---- refusals: each is one event, one count, and nothing else */

struct refusal {
    const char *settings[5];
    const char *before; /* sent first, accepted; NULL = nothing */
    const char *message;
    svs_code code;
    const char *good; /* accepted and learned behind it */
};

#define XY "{'x': [1, 2], 'y': 1}"

static const struct refusal refusals[] = {
    {{NULL}, NULL, "{'x': [1, 2], 'y': 1, 'stream': 'other'}", SVS_WRONG_STREAM, XY},
    {{"stream", "pump1"},
     NULL,
     "{'x': [1, 2], 'y': 1, 'stream': 'pump'}",
     SVS_WRONG_STREAM,
     "{'x': [1, 2], 'y': 1, 'stream': 'pump1'}"},
    {{NULL}, NULL, "{'x': [1, 2], 'y': 1, 'ts': 1000060.5}", SVS_TS_AHEAD, XY},
    {{"ts.ahead", "0"},
     NULL,
     "{'x': [1, 2], 'y': 1, 'ts': 1000000.5}",
     SVS_TS_AHEAD,
     "{'x': [1, 2], 'y': 1, 'ts': 1000000}"},
    {{NULL}, XY, "{'x': [1, 2, 3], 'y': 1}", SVS_WRONG_DIMENSION, XY},
    {{NULL}, XY, "{'x': {'a': 1}, 'y': 1}", SVS_WRONG_KIND, XY},
    {{NULL}, NULL, "{'x': [], 'y': 1}", SVS_WRONG_DIMENSION, XY},
    {{"max.features", "2"}, NULL, "{'x': [1, 2, 3], 'y': 1}", SVS_LIMIT, XY},
    {{"max.features", "2"},
     "{'x': {'a': 1, 'b': 2}, 'y': 1}",
     "{'x': {'c': 1}, 'y': 1}",
     SVS_LIMIT,
     "{'x': {'b': 1}, 'y': 1}"},
    {{"max.classes", "2"},
     "[{'x': [1], 'y': 1}, {'x': [2], 'y': 2}]",
     "{'x': [2], 'y': 3}",
     SVS_LIMIT,
     "{'x': [2], 'y': 2}"},
    {{NULL}, XY, "{'x': [1, null], 'y': 1}", SVS_MISSING_VALUE, XY},
    {{"missing", "carry"}, NULL, "{'x': [1, null], 'y': 1}", SVS_MISSING_VALUE, XY},
    {{NULL}, NULL, "{'x': [1, 2], 'y': 1.5}", SVS_BAD_LABEL, XY},
    {{"task", "regress"}, NULL, "{'x': [1, 2], 'y': 'a'}", SVS_BAD_LABEL, "{'x': [1, 2], 'y': 2.5}"},
    {{NULL}, NULL, "{'y': 1}", SVS_MISSING_X, XY},
    {{NULL}, NULL, "{'x': [1e101, 2], 'y': 1}", SVS_TOO_LARGE, "{'x': [1, 2, 3], 'y': 1}"},
    {{NULL}, NULL, "{'x': {'a': 1e101}, 'y': 1}", SVS_TOO_LARGE, "{'x': {'b': 1}, 'y': 1}"},
    {{NULL}, NULL, "{'x': [1, 2], 'y': 1, 'w': 0}", SVS_BAD_WEIGHT, XY},
    {{NULL}, NULL, "{'x': [1, 2], 'y': 1, 'id': 1.5}", SVS_BAD_ID, XY},
    {{NULL}, NULL, "{'x': [1, 2], 'y': 1, 'op': 'lern'}", SVS_UNKNOWN_OP, XY},
    {{NULL}, XY, "{'op': 'label', 'id': 9, 'y': 1}", SVS_UNKNOWN_ID, XY},
    {{NULL}, XY, "{'op': 'forget', 'id': 'nine'}", SVS_UNKNOWN_ID, XY},
    {{NULL},
     "{'x': [1, 2], 'id': 1}",
     "{'op': 'label', 'id': 1, 'y': 1.5}",
     SVS_BAD_LABEL,
     "{'op': 'label', 'id': 1, 'y': 2}"},
    {{NULL}, NULL, "{'op': 'label', 'id': 1}", SVS_BAD_LABEL, XY},
    {{NULL}, NULL, "{'op': 'forget'}", SVS_BAD_ID, XY},
    {{NULL}, NULL, "{'op': 'forget', 'id': 1, 'stream': 'other'}", SVS_WRONG_STREAM, XY},
    {{NULL}, NULL, "{'op': 'forget', 'id': 1, 'ts': 2e6}", SVS_TS_AHEAD, XY},
    {{NULL}, NULL, "7", SVS_WRONG_TYPE, XY},
    {{NULL}, NULL, "{'x': 'abc', 'y': 1}", SVS_WRONG_TYPE, XY},
};

static void check_refusal(const struct refusal *c) {
    struct speaker f;
    char name[64];
    speaker_open(&f, c->settings);
    if (c->before)
        say(&f, "%s", c->before);
    assert_int_equal(f.count[SVI_TOPIC_ERROR], 0);
    int64_t seen = svi_stream_seen(f.e);
    double learned = stat(&f, "learned"), d = stat(&f, "d"), version = stat(&f, "model_version");
    for (int round = 1; round <= 2; round++) {
        say(&f, "%s", c->message);
        json_t *error = f.last[SVI_TOPIC_ERROR];
        assert_int_equal(f.count[SVI_TOPIC_ERROR], round);
        assert_string_equal(text_of(error, "code"), svs_code_name(c->code));
        assert_int_equal(number(error, "count"), round);
        assert_true(strlen(text_of(error, "reason")) > 10);
        assert_true(json_string_length(json_object_get(error, "sample")) > 0);
    }
    snprintf(name, sizeof name, "refused.%s", svs_code_name(c->code));
    assert_int_equal(stat(&f, name), 2);
    assert_int_equal(stat(&f, "refused"), 2);
    assert_int_equal(svi_stream_errors(f.e), 2);
    assert_int_equal(svi_stream_seen(f.e), seen);
    assert_true(stat(&f, "learned") == learned && stat(&f, "d") == d && stat(&f, "model_version") == version);
    say(&f, "%s", c->good);
    assert_int_equal(f.count[SVI_TOPIC_ERROR], 2);
    assert_true(stat(&f, "learned") == learned + 1);
    speaker_close(&f);
}

static void test_every_refusal(void **unused) {
    (void)unused;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++)
        check_refusal(&refusals[i]);
}

static void test_whole_frames_are_refused(void **unused) {
    (void)unused;
    const struct {
        const char *bytes;
        size_t length;
        svs_code code;
    } cases[] = {{"", 0, SVS_EMPTY},
                 {"\xc1", 1, SVS_NOT_MSGPACK},
                 {"\x92\x80", 2, SVS_TRUNCATED},
                 {"\x80\x80", 2, SVS_TRAILING},
                 {"\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x80", 13, SVS_TOO_DEEP}};
    struct speaker f;
    speaker_open(&f, NULL);
    for (int i = 0; i < 5; i++) {
        struct svi_receipt r;
        assert_int_equal(apply_bytes(f.e, cases[i].bytes, cases[i].length, NOW, false, &r), cases[i].code);
        assert_int_equal(r.error.code, cases[i].code);
        assert_int_equal(r.refused, 1);
        assert_int_equal(f.error, cases[i].code);
        assert_int_equal(f.count[SVI_TOPIC_ERROR], i + 1);
    }
    assert_int_equal(say(&f, XY), SVS_OK);
    assert_int_equal(stat(&f, "learned"), 1);
    speaker_close(&f);
}

static void test_elements_are_judged_alone(void **unused) {
    (void)unused;
    struct speaker f;
    struct svi_receipt r;
    speaker_open(&f, NULL);
    say(&f, "[]");
    assert_int_equal(f.count[SVI_TOPIC_ERROR], 0);
    say(&f,
        "[{'x': [1, 2], 'y': 1}, {'x': [1], 'y': 1}, 5, {'x': [3, 4], 'y': 0}, {'op': 'forget', 'id': 1}]");
    assert_int_equal(f.count[SVI_TOPIC_ERROR], 3);
    assert_int_equal(svi_stream_seen(f.e), 2);
    apply_bytes(f.e, f.frame.data, f.frame.size, NOW, false, &r);
    assert_int_equal(r.accepted, 2);
    assert_int_equal(r.refused, 3);
    assert_int_equal(r.seq, 3);
    assert_int_equal(r.error.code, SVS_UNKNOWN_ID);
    assert_string_equal(r.src, "");
    speaker_close(&f);
}

static void test_sample_bytes_are_cut(void **unused) {
    (void)unused;
    struct speaker f;
    char long_x[400] = "0";
    for (int i = 0; i < 100; i++)
        strcat(long_x, ",1");
    speaker_open(&f, NULL);
    say(&f, "{'x': ['%s', %s], 'y': 1}", "x", long_x);
    json_t *sample = json_object_get(f.last[SVI_TOPIC_ERROR], "sample");
    int shown = 0; /* bytes above 127 are shown as characters of two bytes */
    for (size_t i = 0; i < json_string_length(sample); i++)
        shown += (json_string_value(sample)[i] & 0xc0) != 0x80;
    assert_int_equal(shown, 64);
    svi_stream_refuse(f.e, SVS_PEER_DISCONNECTED, "too long", NULL, 0, 5);
    assert_string_equal(text_of(f.last[SVI_TOPIC_ERROR], "code"), "peer_disconnected");
    assert_true(number(f.last[SVI_TOPIC_ERROR], "ts") == 5);
    svi_stream_refuse(f.e, (svs_code)999, "nonsense", NULL, 0, 5);
    assert_string_equal(text_of(f.last[SVI_TOPIC_ERROR], "code"), "invalid");
    speaker_close(&f);
}

static void test_names_of_refused_samples_vanish(void **unused) {
    (void)unused;
    struct speaker f;
    const char *settings[] = {"publish.every", "1", NULL};
    speaker_open(&f, settings);
    say(&f, "{'x': {'temp': 1}, 'y': 1}");
    say(&f, "{'x': {'temp': 1, 'ghost': 2}, 'y': 1.5}");
    say(&f, "{'x': {'temp': 1, 'wind': 2}, 'y': 0}");
    json_t *names = json_object_get(f.last[SVI_TOPIC_MODEL], "features");
    assert_int_equal(json_array_size(names), 2);
    assert_string_equal(json_string_value(json_array_get(names, 0)), "temp");
    assert_string_equal(json_string_value(json_array_get(names, 1)), "wind");
    speaker_close(&f);
}

static void test_missing_values(void **unused) {
    (void)unused;
    struct speaker f;
    const char *drop[] = {"missing", "drop", NULL}, *carry[] = {"missing", "carry", NULL};
    speaker_open(&f, drop);
    say(&f, "[{'x': [1, null], 'y': 1}, {'x': [1, 2], 'y': 1}, {'x': [null, 2], 'y': 1}]");
    assert_int_equal(stat(&f, "dropped_missing"), 2);
    assert_int_equal(stat(&f, "learned"), 1);
    assert_int_equal(f.count[SVI_TOPIC_ERROR], 0);
    speaker_close(&f);
    struct speaker full;
    speaker_open(&f, carry);
    speaker_open(&full, carry);
    say(&f, "[{'x': [1, 2], 'y': 1}, {'x': [5, 3, 3], 'y': 1}, {'x': [2, null], 'y': 0}, {'x': [null, 4], "
            "'y': 1}]");
    say(&full,
        "[{'x': [1, 2], 'y': 1}, {'x': [5, 3, 3], 'y': 1}, {'x': [2, 2], 'y': 0}, {'x': [2, 4], 'y': 1}]");
    assert_int_equal(f.deeds.size, full.deeds.size);
    assert_memory_equal(f.deeds.data, full.deeds.data, full.deeds.size);
    speaker_close(&f);
    speaker_close(&full);
}

/* ---- labels, removal, time */

static void test_late_label(void **unused) {
    (void)unused;
    struct speaker f;
    speaker_open(&f, NULL);
    learn_some(&f, 30);
    double hits = stat(&f, "accuracy") * 30;
    say(&f, "{'x': [4, 0.5], 'id': 'late'}");
    double predicted = number(f.last[SVI_TOPIC_SCORE], "yhat");
    for (int i = 0; i < 50; i++) /* turns the prediction over; the label is judged by the old one */
        say(&f, "{'x': [4, 0.5], 'y': %d}", predicted == 0);
    hits += stat(&f, "accuracy") * 80 - hits;
    int scores = f.count[SVI_TOPIC_SCORE];
    assert_int_equal(say(&f, "{'op': 'label', 'id': 'late', 'y': %d}", (int)predicted), SVS_OK);
    assert_float_equal(stat(&f, "accuracy") * 81, hits + 1, 1e-9);
    assert_int_equal(stat(&f, "labels_joined"), 1);
    assert_int_equal(stat(&f, "learned"), 81);
    assert_int_equal(stat(&f, "labelled"), 81);
    assert_int_equal(svi_stream_seen(f.e), 81); /* 30 + 1 + 50: the label is no sample */
    assert_int_equal(f.count[SVI_TOPIC_SCORE], scores);
    say(&f, "{'op': 'label', 'id': 'late', 'y': 1}");
    assert_int_equal(f.error, SVS_UNKNOWN_ID);
    speaker_close(&f);
}

static void test_late_label_by_call(void **unused) {
    (void)unused;
    struct speaker f;
    svs_error err;
    int count = 0;
    speaker_open(&f, regress);
    say(&f, "{'x': [1], 'id': 3}");
    assert_int_equal(svi_engine_label(svi_stream_root(f.e), svs_int(3), svs_str("a"), NOW, &err),
                     SVS_BAD_LABEL);
    assert_int_equal(svi_engine_label(svi_stream_root(f.e), svs_int(3), svs_real(2.5), NOW, NULL), SVS_OK);
    assert_true(stat(&f, "mae") == 2.5);
    assert_int_equal(svi_engine_label(svi_stream_root(f.e), svs_int(3), svs_real(2.5), NOW, &err),
                     SVS_UNKNOWN_ID);
    assert_int_equal(svi_engine_label(svi_stream_root(f.e), svs_none(), svs_real(2.5), NOW, &err),
                     SVS_BAD_ID);
    assert_int_equal(svi_engine_label(svi_stream_root(f.e), svs_int(3), svs_none(), NOW, &err),
                     SVS_BAD_LABEL);
    assert_int_equal(svi_engine_forget(svi_stream_root(f.e), svs_int(3), NOW, &count, &err), SVS_OK);
    assert_int_equal(count, 1);
    assert_int_equal(svi_engine_forget(svi_stream_root(f.e), svs_int(3), NOW, NULL, NULL), SVS_UNKNOWN_ID);
    assert_int_equal(f.count[SVI_TOPIC_ERROR], 5);
    speaker_close(&f);
}

static void test_waiting_ends_with_engine_time(void **unused) {
    (void)unused;
    struct speaker f;
    const char *settings[] = {"labels.ttl", "100", NULL};
    speaker_open(&f, settings);
    say(&f, "[{'x': [1], 'id': 1, 'ts': 10}, {'x': [1], 'id': 2, 'ts': 50}]");
    f.now += 1e6; /* the arrival clock has no say */
    say(&f, "[{'x': [1], 'ts': 120}, {'op': 'label', 'id': 2, 'y': 1}, {'op': 'label', 'id': 1, 'y': 1}]");
    assert_int_equal(f.count[SVI_TOPIC_ERROR], 1);
    assert_int_equal(f.error, SVS_UNKNOWN_ID);
    assert_int_equal(stat(&f, "labels_expired"), 1);
    assert_int_equal(stat(&f, "labels_joined"), 1);
    say(&f, "{'x': [1], 'id': 3, 'ts': 130}");
    say(&f, "{'op': 'label', 'id': 3, 'y': 1, 'ts': 240}"); /* a command's own time counts */
    assert_int_equal(f.count[SVI_TOPIC_ERROR], 2);
    speaker_close(&f);
}

static void test_time_window(void **unused) {
    (void)unused;
    struct speaker f;
    const char *settings[] = {"window.seconds", "10", NULL};
    speaker_open(&f, settings);
    for (int i = 0; i < 50; i++)
        say(&f, "{'x': [%d], 'y': %d, 'ts': %d}", i % 7, i % 2, i);
    double held = stat(&f, "held");
    assert_in_range((int)held, 10, 11);
    say(&f, "{'x': [1], 'y': 1, 'ts': 3}"); /* older ones are accepted, and do not turn time back */
    assert_int_equal(f.count[SVI_TOPIC_ERROR], 0);
    assert_true(number(f.last[SVI_TOPIC_SCORE], "ts") == 3);
    say(&f, "{'x': [1], 'y': 1, 'ts': 1000100}"); /* too far ahead: moves nothing */
    assert_int_equal(f.error, SVS_TS_AHEAD);
    say(&f, "{'x': [1], 'y': 1, 'ts': 49}");
    assert_true(stat(&f, "held") >= held);
    say(&f, "{'x': [1], 'y': 1, 'ts': 500}");
    assert_int_equal(stat(&f, "held"), 1);
    say(&f, "{'x': [1], 'y': 1}"); /* no ts: its arrival */
    assert_int_equal(stat(&f, "held"), 1);
    assert_true(number(f.last[SVI_TOPIC_SCORE], "ts") == NOW);
    say(&f, "{'x': [1], 'y': 1, 'ts': 1000060}"); /* as far ahead as ts.ahead allows */
    assert_int_equal(f.count[SVI_TOPIC_ERROR], 1);
    speaker_close(&f);
}

static void test_reset(void **unused) {
    (void)unused;
    struct speaker f;
    speaker_open(&f, NULL);
    learn_some(&f, 20);
    double version = stat(&f, "model_version");
    svi_engine_reset(svi_stream_root(f.e));
    assert_int_equal(stat(&f, "held"), 0);
    assert_int_equal(stat(&f, "learned"), 20);
    assert_int_equal(svi_stream_seen(f.e), 20);
    assert_true(stat(&f, "model_version") > version);
    assert_true(isnan(stat(&f, "accuracy")));
    learn_some(&f, 20);
    assert_int_equal(stat(&f, "learned"), 40);
    assert_int_equal(stat(&f, "classes"), 2);
    speaker_close(&f);
}

static void test_regression(void **unused) {
    (void)unused;
    for (int bank = 0; bank < 2; bank++) { /* which says "as before" for its first 16 rows */
        struct speaker f;
        speaker_open(&f, (const char *const[]){"task", "regress", "method", bank ? "auto" : "alsvm", NULL});
        for (int i = 0; i < (bank ? 1100 : 200); i++)
            say(&f, "{'x': [%d, %d], 'y': %.17g}", i % 7, i % 5, 2.0 * (i % 7) - (i % 5) + 0.5);
        assert_true(stat(&f, "r2.w") > (bank ? 0.999 : 0.9));
        assert_true(stat(&f, "mae") < 1);
        assert_true(isnan(stat(&f, "accuracy")));
        json_t *s = f.last[SVI_TOPIC_SCORE];
        assert_true(number(s, "yhat") == json_number_value(json_array_get(json_object_get(s, "scores"), 0)));
        assert_float_equal(number(s, "yhat"), number(s, "y"), 0.2);
        speaker_close(&f);
    }
}

static void test_messages_of_a_reader(void **unused) {
    (void)unused;
    struct speaker f;
    svs_error err;
    speaker_open(&f, NULL);
    struct svi_shape *shape = &svi_engine_schema(svi_stream_root(f.e))->shape;
    struct svi_message m = {.op = SVI_LEARN,
                            .has_x = true,
                            .kind = SVI_DENSE,
                            .d = 2,
                            .x = shape->row,
                            .y = svs_int(1),
                            .ts = NAN,
                            .weight = 1,
                            .n = -1};
    shape->row[0] = 1;
    assert_int_equal(svi_stream_message(f.e, &m, "1,0", 3, NOW, &err), SVS_OK);
    m.y = svs_real(1.5);
    assert_int_equal(svi_stream_message(f.e, &m, "1.5,0", 5, NOW, NULL), SVS_BAD_LABEL);
    assert_string_equal(text_of(f.last[SVI_TOPIC_ERROR], "sample"), "1.5,0");
    m.has_x = false;
    assert_int_equal(svi_stream_message(f.e, &m, "x", 1, NOW, &err), SVS_MISSING_X);
    assert_int_equal(err.code, SVS_MISSING_X);
    assert_int_equal(stat(&f, "learned"), 1);
    speaker_close(&f);
}

/* ---- how samples are framed changes no byte */

#define LENGTH often(3000, 1200)

/* The i-th element of a stream with commands and bad elements between. */
static void element(struct svi_pack *p, int i, bool three, uint64_t *seed) {
    char text[256];
    double x[3];
    for (int j = 0; j < 3; j++) {
        *seed = *seed * 6364136223846793005u + 1442695040888963407u;
        x[j] = (double)(*seed >> 40) / 16777216.0;
    }
    int y = three ? i / 1000 + (x[0] > x[1]) : x[0] + 0.2 * x[2] > x[1];
    const char *form = "{\"x\": [%.17g, %.17g, %.17g], \"y\": %d, \"id\": %d, \"ts\": %d}";
    if (i % 17 == 5)
        form = "{\"x\": [%.17g, %.17g, %.17g], \"Y\": %d, \"id\": %d, \"ts\": %d}"; /* no label yet */
    snprintf(text, sizeof text, form, x[0], x[1], x[2], y, i, i / 10);
    if (i % 17 == 12)
        snprintf(text, sizeof text, "{\"op\": \"label\", \"id\": %d, \"y\": %d}", i - 7, y);
    if (i % 23 == 20)
        snprintf(text, sizeof text, "{\"op\": \"forget\", \"id\": %d}", i - 3 * (i % 5));
    if (i % 29 == 7)
        snprintf(text, sizeof text, "{\"x\": [1, 2, 3, 4], \"y\": 1}");
    if (i % 31 == 9)
        snprintf(text, sizeof text, "{\"x\": [1, \"nan\", 3], \"y\": 1, \"ts\": 1e5}");
    json_t *j = json_loads(text, 0, NULL);
    assert_non_null(j);
    speaker_pack(p, j);
    json_decref(j);
}

static void feed_in_batches(struct speaker *f, int batch, bool three, const char *const *settings) {
    uint64_t seed = 5;
    speaker_open(f, settings);
    for (int at = 0; at < LENGTH; at += batch) {
        struct svi_pack p;
        int size = at + batch < LENGTH ? batch : LENGTH - at;
        f->frame.size = 0;
        svi_pack_begin(&p, &f->frame);
        if (batch > 1)
            svi_pack_array(&p, (size_t)size);
        for (int i = at; i < at + size; i++)
            element(&p, i, three, &seed);
        f->now = NOW + at; /* arrival times differ; every sample has its ts */
        assert_int_equal(apply_bytes(f->e, f->frame.data, f->frame.size, f->now, false, NULL), SVS_OK);
    }
}

static void check_batches(bool three, const char *const *settings) {
    const int batches[] = {2, 7, 64, 1000};
    struct speaker one, f;
    feed_in_batches(&one, 1, three, settings);
    assert_true(one.count[SVI_TOPIC_MODEL] > 10);
    assert_true(one.count[SVI_TOPIC_ERROR] > LENGTH / 30);
    for (int i = 0; i < 4; i += often(1, 3)) {
        feed_in_batches(&f, batches[i], three, settings);
        assert_int_equal(f.deeds.size, one.deeds.size);
        assert_memory_equal(f.deeds.data, one.deeds.data, one.deeds.size);
        for (int t = 0; t < SVI_TOPIC_COUNT; t++)
            assert_int_equal(f.count[t], one.count[t]);
        speaker_close(&f);
    }
    speaker_close(&one);
}

/* One message must not keep everybody else waiting, nor fill the error topic. */
static void test_batches_have_a_limit(void **unused) {
    (void)unused;
    struct speaker f;
    static uint8_t nils[5 + 65537];
    const uint8_t head[5] = {0xdd, 0, 1, 0, 1};
    speaker_open(&f, NULL);
    memset(nils, 0xc0, sizeof nils);
    memcpy(nils, head, sizeof head);
    assert_int_equal(apply_bytes(f.e, nils, sizeof nils, NOW, false, NULL), SVS_TOO_LARGE);
    assert_int_equal(f.count[SVI_TOPIC_ERROR], 1);
    assert_non_null(strstr(text_of(f.last[SVI_TOPIC_ERROR], "reason"), "at most 65536"));
    nils[4] = 0;
    nils[2] = quick() ? 0 : 1;
    nils[3] = quick() ? 4 : 0;
    const int count = often(65536, 1024);
    assert_int_equal(apply_bytes(f.e, nils, 5 + (size_t)count, NOW, false, NULL), SVS_OK);
    assert_int_equal(f.count[SVI_TOPIC_ERROR], 1 + count);
    speaker_close(&f);
}

static void test_batches_change_no_byte(void **unused) {
    (void)unused;
    const char *plain[] = {"window", "200", "publish.every", "50", NULL};
    const char *timed[] = {
        "window.seconds", "15", "publish.every", "70", "publish.seconds", "3", "labels.ttl", "1", "scale",
        "none",           NULL};
    const char *falsvm[] = {"window", "100", "method", "falsvm", "publish.every", "20", NULL};
    check_batches(false, plain);
    check_batches(true, plain);
    check_batches(true, timed);
    check_batches(false, falsvm);
}

/* ---- figures */

static void test_stats(void **unused) {
    (void)unused;
    struct speaker f;
    const struct svi_figure *figures;
    speaker_open(&f, NULL);
    svi_stream_publish_stats(f.e, NULL, NOW);
    learn_some(&f, 100);
    svi_stream_set_gauge(f.e, "queue", 3);
    svi_stream_set_gauge(f.e, "queue", 4);
    svi_stream_set_gauge(f.e, "lost", 5);
    svi_stream_publish_stats(f.e, NULL, NOW + 2);
    json_t *stats = f.last[SVI_TOPIC_STATS];
    assert_int_equal(f.count[SVI_TOPIC_STATS], 2);
    assert_true(number(stats, "ts") == NOW + 2);
    assert_true(number(stats, "rate") == 50);
    assert_true(number(stats, "uptime") == 2);
    assert_int_equal(number(stats, "queue"), 4);
    assert_int_equal(number(stats, "lost"), 5);
    assert_int_equal(number(stats, "seen"), 100);
    assert_int_equal(number(stats, "held"), 100);
    assert_true(number(stats, "memory_predicted") > 10000);
    svi_stream_publish_stats(f.e, NULL, NOW + 4);
    assert_true(number(f.last[SVI_TOPIC_STATS], "rate") == 25); /* halfway from 50 to 0 */
    int count = svi_stream_figures(f.e, NULL, NOW, &figures);
    for (int i = 0; i < SVI_COUNTER_COUNT; i++) {
        assert_string_equal(figures[i].name, svi_counter_table[i].name); /* the order is the list's */
        assert_true(strlen(svi_counter_table[i].text) > 5);
    }
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++)
            assert_string_not_equal(figures[i].name, figures[j].name);
    static char names[SVI_GAUGES_MAX + 6][16];
    for (int i = 0; i < SVI_GAUGES_MAX + 6; i++) {
        snprintf(names[i], sizeof names[i], "n%d", i);
        svi_stream_set_gauge(f.e, names[i], i);
    }
    assert_int_equal(svi_stream_figures(f.e, NULL, NOW, &figures), count + SVI_GAUGES_MAX - 2); /* at most */
    speaker_close(&f);
}

static void test_memory_is_predicted(void **unused) {
    (void)unused;
    struct svi_settings s;
    svi_settings_default(&s);
    const double bank = svi_engine_memory(&s, 10, 2);
    assert_true(svi_engine_memory(&s, 100, 2) > bank);
    s.method = SVI_METHOD_ALSVM;
    double small = svi_engine_memory(&s, 10, 2), wide = svi_engine_memory(&s, 100, 2);
    assert_true(small < bank);
    s.window = 100000;
    assert_true(wide > small && svi_engine_memory(&s, 10, 2) > small + 99000 * 8 * 10);
    s.window = 1000;
    s.missing = SVI_MISSING_CARRY;
    assert_true(svi_engine_memory(&s, 10, 2) > small);
}

static void test_bad_settings(void **unused) {
    (void)unused;
    struct svi_settings s;
    svs_error err = {0};
    svi_settings_default(&s);
    strcpy(s.features, "a,b,a");
    assert_null(svi_stream_new(&s, 1, speaker_sink, NULL, &err));
    assert_int_equal(err.code, SVS_SETTING);
    s.features[0] = '\0';
    s.method = SVI_METHOD_ALSVM;
    s.C = -1;
    assert_null(svi_stream_new(&s, 1, speaker_sink, NULL, &err));
    assert_int_equal(err.code, SVS_SETTING);
    svi_stream *none = NULL;
    svi_stream_free(&none);
}

static void test_fixed_names(void **unused) {
    (void)unused;
    struct speaker f;
    const char *settings[] = {"features", "temp,wind", "publish.every", "1", NULL};
    speaker_open(&f, settings);
    say(&f, "{'x': {'wind': 2}, 'y': 1}");
    json_t *names = json_object_get(f.last[SVI_TOPIC_MODEL], "features");
    assert_int_equal(json_array_size(names), 2);
    assert_string_equal(json_string_value(json_array_get(names, 1)), "wind");
    say(&f, "{'x': {'rain': 2}, 'y': 1}");
    assert_int_equal(f.error, SVS_BAD_COLUMN);
    speaker_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_score_comes_before_learning),
        cmocka_unit_test(test_empty_rows_fix_no_kind),
        cmocka_unit_test(test_places_of_labels),
        cmocka_unit_test(test_which_scores_are_published),
        cmocka_unit_test(test_model_reproduces_scores),
        cmocka_unit_test(test_model_every_n_samples_if_it_changed),
        cmocka_unit_test(test_model_when_it_is_due),
        cmocka_unit_test(test_every_refusal),
        cmocka_unit_test(test_whole_frames_are_refused),
        cmocka_unit_test(test_elements_are_judged_alone),
        cmocka_unit_test(test_sample_bytes_are_cut),
        cmocka_unit_test(test_names_of_refused_samples_vanish),
        cmocka_unit_test(test_missing_values),
        cmocka_unit_test(test_late_label),
        cmocka_unit_test(test_late_label_by_call),
        cmocka_unit_test(test_waiting_ends_with_engine_time),
        cmocka_unit_test(test_time_window),
        cmocka_unit_test(test_reset),
        cmocka_unit_test(test_regression),
        cmocka_unit_test(test_messages_of_a_reader),
        cmocka_unit_test(test_batches_have_a_limit),
        cmocka_unit_test(test_batches_change_no_byte),
        cmocka_unit_test(test_stats),
        cmocka_unit_test(test_memory_is_predicted),
        cmocka_unit_test(test_bad_settings),
        cmocka_unit_test(test_fixed_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
