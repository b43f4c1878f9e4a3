/* What the encoders write, read back with msgpack-c; messages that come back through our own decoder. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/schema.h"
#include "wire/event.h"
#include "wire/event_record.h"
#include "wire/oracle.h"

static struct svi_event event_of(enum svi_topic topic) {
    return (struct svi_event){.topic = topic, .stream = "pump1", .epoch = UINT64_MAX, .seq = 41, .ts = 1.5};
}

/* Encodes, checks the form and unpacks; the caller destroys `u`. */
static const msgpack_object *encode(const struct svi_event *e, struct svi_bytes *b, msgpack_unpacked *u) {
    assert_int_equal(svi_event_encode(e, b), SVS_OK);
    assert_int_equal(svi_msgpack_check(b->data, b->size, SVI_DEPTH_MAX, NULL), SVS_OK);
    msgpack_unpacked_init(u);
    assert_int_equal(msgpack_unpack_next(u, (char *)b->data, b->size, NULL), MSGPACK_UNPACK_SUCCESS);
    assert_int_equal(u->data.type, MSGPACK_OBJECT_MAP);
    return &u->data;
}

/* The map has exactly these keys, in this order. */
static void assert_keys(const msgpack_object *map, const char *keys) {
    char found[500] = "";
    for (uint32_t i = 0; i < map->via.map.size; i++) {
        const msgpack_object *k = &map->via.map.ptr[i].key;
        assert_int_equal(k->type, MSGPACK_OBJECT_STR);
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s%.*s", i ? " " : "",
                 (int)k->via.str.size, k->via.str.ptr);
    }
    assert_string_equal(found, keys);
}

static void assert_text(const msgpack_object *map, const char *key, const char *text) {
    const msgpack_object *o = oracle_get(map, key);
    assert_non_null(o);
    assert_true(oracle_is(o, text));
}

static void assert_number(const msgpack_object *map, const char *key, double v) {
    const msgpack_object *o = oracle_get(map, key);
    assert_non_null(o);
    assert_true(oracle_number(o) == v);
}

static void assert_doubles(const msgpack_object *map, const char *key, const double *v, size_t count) {
    const msgpack_object *o = oracle_get(map, key);
    assert_non_null(o);
    assert_int_equal(o->type, MSGPACK_OBJECT_EXT);
    assert_int_equal(o->via.ext.type, 2);
    assert_int_equal(o->via.ext.size, count * 8);
    assert_memory_equal(o->via.ext.ptr, v, count * 8);
}

static void assert_common(const msgpack_object *map) {
    assert_number(map, "v", 1);
    assert_text(map, "stream", "pump1");
    assert_true(oracle_get(map, "epoch")->via.u64 == UINT64_MAX);
    assert_number(map, "seq", 41);
    assert_number(map, "ts", 1.5);
}

static void test_topics(void **state) {
    (void)state;
    char out[SVI_TOPIC_MAX], longest[SVI_STREAM_MAX + 1];
    memset(longest, 's', SVI_STREAM_MAX);
    longest[SVI_STREAM_MAX] = 0;
    assert_int_equal(svi_topic_write(SVI_TOPIC_MODEL, "pump1", NULL, out), 12);
    assert_string_equal(out, "model.pump1.");
    for (int t = 0; t < SVI_TOPIC_COUNT; t++) {
        size_t n = svi_topic_write((enum svi_topic)t, longest, NULL, out);
        assert_int_equal(n, strlen(out));
        assert_int_equal(n, strlen(svi_topic_name((enum svi_topic)t)) + SVI_STREAM_MAX + 2);
    }
}

static void test_score(void **state) {
    (void)state;
    const double scores[] = {0.25, -3};
    struct svi_bytes b = {0};
    msgpack_unpacked u;
    struct svi_event e = event_of(SVI_TOPIC_SCORE);
    e.as.score.id = svs_str("a7");
    e.as.score.yhat = svs_int(-1);
    e.as.score.y = svs_str("spam");
    e.as.score.scores = scores;
    e.as.score.rows = 2;
    e.as.score.version = 99;
    const msgpack_object *map = encode(&e, &b, &u);
    assert_keys(map, "v stream epoch seq ts id yhat scores y model");
    assert_common(map);
    assert_text(map, "id", "a7");
    assert_number(map, "yhat", -1);
    assert_text(map, "y", "spam");
    assert_number(map, "model", 99);
    const msgpack_object *s = oracle_get(map, "scores");
    assert_int_equal(s->via.array.size, 2);
    assert_true(s->via.array.ptr[0].via.f64 == 0.25 && s->via.array.ptr[1].via.f64 == -3);
    msgpack_unpacked_destroy(&u);
    e.as.score.id = e.as.score.yhat = e.as.score.y = svs_none();
    map = encode(&e, &b, &u);
    assert_keys(map, "v stream epoch seq ts id yhat scores model");
    assert_null(oracle_get(map, "id"));
    assert_null(oracle_get(map, "yhat"));
    msgpack_unpacked_destroy(&u);
    svi_bytes_clear(&b);
}

static void test_no_allocation_once_grown(void **state) {
    (void)state;
    const double scores[] = {1};
    struct svi_bytes b = {0};
    struct svi_event e = event_of(SVI_TOPIC_SCORE);
    e.as.score.scores = scores;
    e.as.score.rows = 1;
    assert_int_equal(svi_event_encode(&e, &b), SVS_OK);
    uint8_t *data = b.data;
    size_t size = b.size;
    for (int i = 0; i < 100; i++)
        assert_int_equal(svi_event_encode(&e, &b), SVS_OK);
    assert_ptr_equal(b.data, data);
    assert_int_equal(b.size, size);
    svi_bytes_clear(&b);
    assert_null(b.data);
}

static void test_stats(void **state) {
    (void)state;
    const struct svi_figure figures[] = {{"seen", SVI_COUNT, {.count = INT64_MAX}},
                                         {"accuracy", SVI_NUMBER, {.number = 0.875}},
                                         {"auc", SVI_NUMBER, {.number = NAN}},
                                         {"isa", SVI_TEXT, {.text = "avx2"}},
                                         {"none", SVI_TEXT, {.text = NULL}}};
    struct svi_bytes b = {0};
    msgpack_unpacked u;
    struct svi_event e = event_of(SVI_TOPIC_STATS);
    e.as.stats.figures = figures;
    e.as.stats.count = 5;
    const msgpack_object *map = encode(&e, &b, &u);
    assert_keys(map, "v stream epoch seq ts seen accuracy auc isa none");
    assert_common(map);
    assert_true(oracle_get(map, "seen")->via.u64 == INT64_MAX);
    assert_number(map, "accuracy", 0.875);
    assert_null(oracle_get(map, "auc"));
    assert_text(map, "isa", "avx2");
    assert_null(oracle_get(map, "none"));
    msgpack_unpacked_destroy(&u);
    svi_bytes_clear(&b);
}

static void test_error(void **state) {
    (void)state;
    struct svi_bytes b = {0};
    msgpack_unpacked u;
    struct svi_event e = event_of(SVI_TOPIC_ERROR);
    e.as.error.code = SVS_NOT_FINITE;
    e.as.error.reason = "x[3] is NaN";
    e.as.error.count = 7;
    e.as.error.sample = "\xff\x00\x01";
    e.as.error.sample_size = 3;
    const msgpack_object *map = encode(&e, &b, &u);
    assert_keys(map, "v stream epoch seq ts code reason count sample");
    assert_common(map);
    assert_text(map, "code", "not_finite");
    assert_text(map, "reason", "x[3] is NaN");
    assert_number(map, "count", 7);
    const msgpack_object *s = oracle_get(map, "sample");
    assert_int_equal(s->type, MSGPACK_OBJECT_BIN);
    assert_int_equal(s->via.bin.size, 3);
    assert_memory_equal(s->via.bin.ptr, "\xff\x00\x01", 3);
    msgpack_unpacked_destroy(&u);
    e.as.error.sample = NULL;
    e.as.error.sample_size = 0;
    map = encode(&e, &b, &u);
    assert_int_equal(oracle_get(map, "sample")->via.bin.size, 0);
    msgpack_unpacked_destroy(&u);
    svi_bytes_clear(&b);
}

static void test_alert(void **state) {
    (void)state;
    const struct svi_contribution top[] = {
        {.feature = "vibration", .value = 4.1, .low = 0.9, .high = 1.3, .adds = 0.75},
        {.column = 3, .value = -2, .low = NAN, .high = NAN, .adds = -0.25}};
    struct svi_bytes b = {0};
    msgpack_unpacked u;
    struct svi_event e = event_of(SVI_TOPIC_ALERT);
    e.ts = NAN;
    e.as.alert.state = "open";
    e.as.alert.id = svs_int(7);
    e.as.alert.novelty = 0.82;
    e.as.alert.membership = 0.18;
    e.as.alert.p = 0.001;
    e.as.alert.grade = 0.5;
    e.as.alert.since = 350;
    e.as.alert.top = top;
    e.as.alert.count = 2;
    e.as.alert.text = "pump1 vibration 4.1";
    e.as.alert.kind = "novelty";
    e.as.alert.alert = 12;
    const msgpack_object *map = encode(&e, &b, &u);
    assert_keys(map, "v stream epoch seq ts kind alert state id novelty membership p grade since top text");
    assert_int_equal(oracle_get(map, "alert")->via.i64, 12);
    assert_null(oracle_get(map, "ts"));
    assert_true(oracle_get(map, "novelty")->via.f64 == 0.82 && oracle_get(map, "since")->via.f64 == 350);
    const msgpack_object *list = oracle_get(map, "top");
    assert_int_equal(list->via.array.size, 2);
    const msgpack_object *first = &list->via.array.ptr[0], *second = &list->via.array.ptr[1];
    assert_keys(first, "feature value normal contribution");
    assert_memory_equal(oracle_get(first, "feature")->via.str.ptr, "vibration", 9);
    assert_true(oracle_get(first, "normal")->via.array.ptr[1].via.f64 == 1.3);
    assert_int_equal(oracle_get(second, "feature")->via.i64, 3);
    assert_int_equal(oracle_get(second, "normal")->via.array.ptr[0].type, MSGPACK_OBJECT_NIL);
    assert_true(oracle_get(second, "contribution")->via.f64 == -0.25);
    msgpack_unpacked_destroy(&u);
    e.as.alert.kind = "quality";
    e.as.alert.measure = "rmse";
    e.as.alert.before = 0.4;
    e.as.alert.after = NAN;
    map = encode(&e, &b, &u);
    assert_keys(map, "v stream epoch seq ts kind alert state id measure before after since top text");
    assert_true(oracle_get(map, "before")->via.f64 == 0.4);
    assert_memory_equal(oracle_get(map, "measure")->via.str.ptr, "rmse", 4);
    msgpack_unpacked_destroy(&u);
    svi_bytes_clear(&b);
}

/* Values of an alert that opens: in single precision where that tells them apart, else in double; the same
 * bytes from an event that was stored for another thread. */
static void test_alert_history(void **state) {
    (void)state;
    const struct svi_contribution top[] = {
        {.feature = "vibration", .value = 4.1, .low = 0.9, .high = 1.3, .adds = 0.75},
        {.column = 3, .value = -2, .low = NAN, .high = NAN, .adds = -0.25}};
    const double times[] = {1700000000.25, 1700000060.25, 1700000120.25};
    const double small[] = {0.1, NAN, 4.1}, counter[] = {1e9, 1e9 + 0.01, 1e9 + 0.03};
    const struct svi_feature_history history[] = {{times, small, 3}, {times, counter, 3}};
    struct svi_bytes b = {0}, stored = {0}, scratch = {0}, again = {0};
    struct svi_recorded r;
    msgpack_unpacked u;
    size_t at = 0;
    struct svi_event e = event_of(SVI_TOPIC_ALERT);
    e.as.alert = (struct svi_alert_event){.number = 41,
                                          .kind = "rule",
                                          .rule = "limits",
                                          .severity = "notice",
                                          .state = "open",
                                          .id = svs_none(),
                                          .top = top,
                                          .count = 2,
                                          .text = "pump1 temp",
                                          .history = history,
                                          .history_count = 2};
    const msgpack_object *map = encode(&e, &b, &u);
    assert_keys(map, "v stream epoch seq ts number kind alert state id rule sensors severity since top text history");
    assert_int_equal(oracle_get(map, "number")->via.u64, 41);
    const msgpack_object *list = oracle_get(map, "history");
    assert_int_equal(list->via.array.size, 2);
    for (int i = 0; i < 2; i++) {
        const msgpack_object *one = &list->via.array.ptr[i];
        assert_keys(one, "feature times values");
        const msgpack_object_ext t = oracle_get(one, "times")->via.ext,
                                 v = oracle_get(one, "values")->via.ext;
        assert_int_equal(t.type, 2);
        assert_memory_equal(t.ptr, times, sizeof times);
        assert_int_equal(v.type, i + 1);
        assert_int_equal(v.size, 3 * 4 * (i + 1));
        for (int j = 0; j < 3; j++) {
            float f;
            double d;
            memcpy(i ? (void *)&d : (void *)&f, v.ptr + j * 4 * (i + 1), (size_t)(4 * (i + 1)));
            assert_true(i ? d == counter[j] : f == (float)small[j] || (isnan(f) && isnan(small[j])));
        }
    }
    msgpack_unpacked_destroy(&u);
    assert_int_equal(svi_event_record(&e, false, &scratch, &stored), SVS_OK);
    assert_true(svi_event_recorded(&stored, &at, &r));
    r.event.stream = e.stream;
    assert_int_equal(svi_event_encode(&r.event, &again), SVS_OK);
    assert_int_equal(again.size, b.size);
    assert_memory_equal(again.data, b.data, b.size);
    /* A verdict is kept and has no seq. */
    e.as.alert = (struct svi_alert_event){
        .number = 42, .kind = "novelty", .state = SVI_ALERT_VERDICT, .kept_only = true, .text = ""};
    map = encode(&e, &b, &u);
    assert_keys(map, "v stream epoch ts number kind alert state verdict text");
    msgpack_unpacked_destroy(&u);
    svi_bytes_clear(&b);
    svi_bytes_clear(&stored);
    svi_bytes_clear(&scratch);
    svi_bytes_clear(&again);
}

/* Novelty and p stand in a score only when the sample was judged. */
static void test_judged_score(void **state) {
    (void)state;
    struct svi_bytes b = {0};
    msgpack_unpacked u;
    struct svi_event e = event_of(SVI_TOPIC_SCORE);
    const msgpack_object *map = encode(&e, &b, &u);
    assert_keys(map, "v stream epoch seq ts id yhat scores model");
    msgpack_unpacked_destroy(&u);
    e.as.score.judged = true;
    e.as.score.novelty = 0.25;
    e.as.score.p = 0.5;
    e.as.score.alarm = 0.75;
    e.as.score.anomaly = 0.625;
    map = encode(&e, &b, &u);
    assert_keys(map, "v stream epoch seq ts id yhat scores novelty p alarm surprise anomaly model");
    assert_true(oracle_get(map, "novelty")->via.f64 == 0.25 && oracle_get(map, "p")->via.f64 == 0.5);
    assert_true(oracle_get(map, "anomaly")->via.f64 == 0.625);
    msgpack_unpacked_destroy(&u);
    svi_bytes_clear(&b);
}

static void test_model(void **state) {
    (void)state;
    const double W[] = {1, 2, 3, 4, 5, 6}, intercepts[] = {0.5, -0.5, 0};
    const svs_value classes[] = {svs_int(3), svs_str("b"), svs_int(-1)};
    const char *const names[] = {"temp", "hum"};
    const struct svi_figure quality[] = {{"accuracy", SVI_NUMBER, {.number = 0.5}}};
    svs_model m = {.version = 12,
                   .method = "alsvm",
                   .d = 2,
                   .rows = 3,
                   .class_count = 3,
                   .W = W,
                   .b = intercepts,
                   .classes = classes,
                   .features = names,
                   .C = 0.1,
                   .window = 1000,
                   .seen = 50,
                   .learned = 40};
    struct svi_bytes b = {0};
    msgpack_unpacked u;
    struct svi_event e = event_of(SVI_TOPIC_MODEL);
    e.as.model.model = &m;
    e.as.model.quality = quality;
    e.as.model.quality_count = 1;
    const msgpack_object *map = encode(&e, &b, &u);
    assert_keys(map, "v stream epoch seq ts version method task d features classes W b C window seen learned "
                     "serves quality reproduces");
    assert_common(map);
    assert_text(map, "task", "classify");
    assert_text(map, "method", "alsvm");
    assert_doubles(map, "W", W, 6);
    assert_doubles(map, "b", intercepts, 3);
    assert_number(map, "C", 0.1);
    assert_number(map, "learned", 40);
    assert_true(oracle_is(&oracle_get(map, "features")->via.array.ptr[1], "hum"));
    assert_true(oracle_is(&oracle_get(map, "classes")->via.array.ptr[1], "b"));
    assert_number(oracle_get(map, "quality"), "accuracy", 0.5);
    msgpack_unpacked_destroy(&u);
    m.rows = 1;
    m.class_count = 0;
    m.features = NULL;
    m.task = SVS_REGRESS;
    map = encode(&e, &b, &u);
    assert_text(map, "task", "regress");
    assert_number(map, "b", 0.5);
    assert_null(oracle_get(map, "features"));
    assert_doubles(map, "W", W, 2);
    msgpack_unpacked_destroy(&u);
    svi_bytes_clear(&b);
}

/* A message, sent and taken in again by a stream of its own. */
static void assert_round_trip(const struct svi_message *m, const svs_features *names, bool packed) {
    struct svi_schema s;
    struct svi_envelope f;
    struct svi_message got;
    svs_error err = {0};
    struct svi_bytes b = {0};
    assert_int_equal(schema_open(&s, 16, NULL, NULL), SVS_OK);
    assert_int_equal(svi_message_encode(m, names, packed, &b), SVS_OK);
    assert_int_equal(svi_envelope_read(&f, b.data, b.size), SVS_OK);
    assert_int_equal(svi_envelope_next(&f, &s, &got, &err), SVS_OK);
    assert_int_equal(got.op, m->op);
    assert_int_equal(got.has_x, m->has_x);
    for (int j = 0; m->has_x && j < m->d; j++)
        assert_true(oracle_same(j < got.d ? got.x[j] : 0, m->x[j]));
    assert_true(!m->has_x || (got.kind == m->kind && got.missing == m->missing));
    assert_true(svs_value_equal(got.y, m->y) && svs_value_equal(got.id, m->id));
    assert_true(svs_value_equal(got.stream, m->stream) && svs_value_equal(got.src, m->src));
    assert_true(oracle_same(got.ts, m->ts) && got.weight == m->weight && got.n == m->n);
    for (int j = 0; m->kind == SVI_NAMED && j < m->d; j++)
        assert_string_equal(svs_features_name(s.shape.names, j), svs_features_name(names, j));
    svi_bytes_clear(&b);
    svi_schema_clear(&s);
}

static void test_messages_round_trip(void **state) {
    (void)state;
    double full[] = {1.5, -2, 1e300}, holes[] = {0, NAN, 7};
    svs_features *names = svs_features_new(3, NULL);
    svs_features_add(names, "a", 1, NULL);
    svs_features_add(names, "b", 1, NULL);
    svs_features_add(names, "c", 1, NULL);
    struct svi_message m = {
        .has_x = true, .kind = SVI_DENSE, .d = 3, .x = full, .ts = NAN, .weight = 1, .n = -1};
    assert_round_trip(&m, NULL, false);
    assert_round_trip(&m, NULL, true);
    m.y = svs_real(0.5);
    m.id = svs_int(7);
    m.ts = 12.5;
    m.weight = 3;
    m.stream = svs_str("s");
    m.src = svs_str("me");
    m.n = 0;
    assert_round_trip(&m, NULL, true);
    m.x = holes;
    m.missing = 1;
    assert_round_trip(&m, NULL, false);
    m.kind = SVI_SPARSE;
    assert_round_trip(&m, NULL, true);
    m.kind = SVI_NAMED;
    assert_round_trip(&m, names, true);
    struct svi_message label = {
        .op = SVI_LABEL, .id = svs_str("q"), .y = svs_int(1), .ts = NAN, .weight = 1, .n = -1};
    assert_round_trip(&label, NULL, false);
    label.op = SVI_FORGET;
    label.y = svs_none();
    assert_round_trip(&label, NULL, false);
    svs_features_free(&names);
}

static void test_packed_cannot_miss(void **state) {
    (void)state;
    double x[] = {NAN};
    struct svi_bytes b = {0};
    struct svi_message m = {
        .has_x = true, .kind = SVI_DENSE, .d = 1, .x = x, .missing = 1, .ts = NAN, .weight = 1, .n = -1};
    assert_int_equal(svi_message_encode(&m, NULL, true, &b), SVS_MISSING_VALUE);
    assert_int_equal(b.size, 0);
    svi_bytes_clear(&b);
}

/* Messages are appended: a batch is a header and then its messages. */
static void test_messages_append(void **state) {
    (void)state;
    double x[] = {1, 2};
    struct svi_bytes b = {0};
    struct svi_schema s;
    struct svi_envelope f;
    struct svi_message got,
        m = {.has_x = true, .kind = SVI_DENSE, .d = 2, .x = x, .ts = NAN, .weight = 1, .n = -1};
    schema_open(&s, 4, NULL, NULL);
    assert_int_equal(svi_bytes_append(&b, "\x9f", 1), SVS_OK);
    for (int i = 0; i < 15; i++)
        assert_int_equal(svi_message_encode(&m, NULL, i & 1, &b), SVS_OK);
    assert_int_equal(svi_envelope_read(&f, b.data, b.size), SVS_OK);
    assert_int_equal(f.left, 15);
    while (f.left > 0)
        assert_int_equal(svi_envelope_next(&f, &s, &got, NULL), SVS_OK);
    svi_bytes_clear(&b);
    svi_schema_clear(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_topics),
        cmocka_unit_test(test_score),
        cmocka_unit_test(test_no_allocation_once_grown),
        cmocka_unit_test(test_stats),
        cmocka_unit_test(test_error),
        cmocka_unit_test(test_alert),
        cmocka_unit_test(test_alert_history),
        cmocka_unit_test(test_judged_score),
        cmocka_unit_test(test_model),
        cmocka_unit_test(test_messages_round_trip),
        cmocka_unit_test(test_packed_cannot_miss),
        cmocka_unit_test(test_messages_append),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
