/* Every allocation of the ground floors and the wire fails once: each time the call says SVS_NO_MEMORY,
 * leaves what was there as it was, and leaks nothing. Linked with --wrap for svi_alloc and svi_realloc. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/schema.h"
#include "support/nomem.h"

#include "base/alloc.h"
#include "data/feature_names.h"
#include "data/message.h"
#include "svmstream/model.h"
#include "wire/decode.h"
#include "wire/event.h"
#include "wire/json_message.h"
#include "wire/pack.h"
#include "wire/reply_scores.h"

/* Runs `attempt` with the first, second, ... allocation failing until it succeeds; returns how often it
 * failed. */
static int fail_each(svs_code (*attempt)(svs_error *err)) {
    for (int n = 0; n < 10000; n++) {
        svs_error e = {0};
        left = n;
        svs_code code = attempt(&e);
        bool used = left < 0;
        left = -1;
        if (code == SVS_OK) {
            assert_false(used); /* a failed allocation must not go unnoticed */
            return n;
        }
        assert_int_equal(code, SVS_NO_MEMORY);
        assert_true(e.code == SVS_OK || (e.code == SVS_NO_MEMORY && e.text[0]));
    }
    fail_msg("it never succeeds");
    return -1;
}

static svs_code add_forty_names(svs_error *err) {
    svs_features *f = svs_features_new(50, err);
    if (!f)
        return err->code;
    svs_code code = SVS_OK;
    for (int i = 0; i < 40 && code == SVS_OK; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        if (svs_features_add(f, name, strlen(name), err) < 0) {
            code = err->code;
            assert_int_equal(svs_features_count(f), i);
            assert_int_equal(svs_features_find(f, name, strlen(name)), -1);
        }
    }
    assert_true(svi_feature_names_check(f));
    svs_features_free(&f);
    return code;
}

/* The scores of a reply say that there was no memory, and hold nothing then. */
static svs_code collect_scores(svs_error *err) {
    struct svi_reply_scores all = {0}, part = {0};
    struct svi_bytes out = {0};
    const svs_error why = {SVS_MISSING_X, "the sample has no x"};
    for (int i = 0; i < 40; i++) {
        svi_reply_scores_refusal(&all, &why);
        svi_reply_scores_duplicate(&part);
        svi_reply_scores_nothing(&part);
    }
    svi_reply_scores_join(&all, &part);
    svs_code code = all.failed;
    assert_true(code == SVS_OK ? all.count == 120 : all.maps.size == 0 && code == SVS_NO_MEMORY);
    if (code == SVS_OK) {
        struct svi_pack p;
        svi_pack_begin(&p, &out);
        const struct svi_open_map map = svi_pack_open(&p);
        svi_reply_scores_put(&p, &all);
        svi_pack_close(&p, map);
        code = svi_pack_end(&p);
        assert_true(code != SVS_OK || svi_msgpack_check(out.data, out.size, SVI_DEPTH_MAX, err) == SVS_OK);
    }
    svi_reply_scores_clear(&all);
    svi_reply_scores_clear(&part);
    svi_bytes_clear(&out);
    return code;
}

/* A text that outgrows the first buffers, with a string that needs room of its own. */
static svs_code convert_json(svs_error *err) {
    struct svi_json_input in = {0};
    struct svi_bytes out = {0};
    char text[2000] = "{\"op\":\"";
    for (int i = 0; i < 300; i++)
        strcat(text, "\\n");
    strcat(text, "\",\"x\":[");
    for (int i = 0; i < 300; i++)
        strcat(text, "1.5,");
    strcat(text, "1]}");
    svs_code code = svi_json_message(&in, text, strlen(text), &out, err);
    assert_true(code == SVS_OK ? out.size > 2700 : out.size == 0);
    svi_bytes_clear(&out);
    svi_json_input_clear(&in);
    return code;
}

static svs_code init_shape(svs_error *err) {
    struct svi_schema s;
    svs_code code = schema_open(&s, 20, "a,b,c", err);
    assert_int_equal(s.shape.row == NULL, code != SVS_OK);
    svi_schema_clear(&s);
    return code;
}

/* {"x": {"a": 1, "b": 2}} */
static const uint8_t named[] = {0x81, 0xa1, 'x', 0x82, 0xa1, 'a', 1, 0xa1, 'b', 2};

static svs_code decode_named(svs_error *err) {
    struct svi_schema s;
    struct svi_envelope f;
    struct svi_message m;
    long planned = left;
    left = -1;
    assert_int_equal(schema_open(&s, 20, NULL, NULL), SVS_OK);
    assert_int_equal(svi_envelope_read(&f, named, sizeof named), SVS_OK);
    left = planned;
    svs_code code = svi_envelope_next(&f, &s, &m, err);
    assert_ptr_equal(f.next, f.bytes + f.size);
    svi_schema_restore(&s);
    assert_int_equal(svs_features_count(s.shape.names), 0);
    svi_schema_clear(&s);
    return code;
}

static const double weights[300] = {1, 2, 3}, intercepts[3] = {4, 5, 6};
static const svs_value classes[3] = {
    {.kind = SVS_INT, .as.i = 1}, {.kind = SVS_INT, .as.i = 2}, {.kind = SVS_INT, .as.i = 3}};
static const char *const names[2] = {"a", "b"};

static svs_model model_of(int d) {
    return (svs_model){.method = "alsvm",
                       .d = d,
                       .rows = 3,
                       .class_count = 3,
                       .W = weights,
                       .b = intercepts,
                       .classes = classes,
                       .features = d == 2 ? names : NULL,
                       .C = 1};
}

static svs_code encode_event(svs_error *err) {
    (void)err;
    svs_model m = model_of(100);
    struct svi_bytes b = {0};
    struct svi_event e = {.topic = SVI_TOPIC_MODEL, .stream = "s", .as.model.model = &m};
    svs_code code = svi_event_encode(&e, &b);
    assert_int_equal(b.size == 0, code != SVS_OK);
    svi_bytes_clear(&b);
    return code;
}

/* What was in the buffer stays. */
static svs_code append_model(svs_error *err) {
    (void)err;
    svs_model m = model_of(100);
    struct svi_bytes b = {0};
    long planned = left;
    left = -1;
    assert_int_equal(svi_bytes_append(&b, "before", 6), SVS_OK);
    left = planned;
    svs_code code = svi_model_encode(&m, NULL, 0, &b);
    assert_memory_equal(b.data, "before", 6);
    assert_int_equal(b.size == 6, code != SVS_OK);
    svi_bytes_clear(&b);
    return code;
}

static svs_code encode_message(svs_error *err) {
    (void)err;
    double x[100] = {1};
    struct svi_bytes b = {0};
    struct svi_message m = {
        .has_x = true, .kind = SVI_DENSE, .d = 100, .x = x, .ts = NAN, .weight = 1, .n = -1};
    svs_code code = svi_message_encode(&m, NULL, true, &b);
    assert_int_equal(b.size == 0, code != SVS_OK);
    svi_bytes_clear(&b);
    return code;
}

static svs_code decode_model(svs_error *err) {
    svs_model m = model_of(2);
    struct svi_bytes b = {0};
    long planned = left;
    left = -1;
    assert_int_equal(svi_model_encode(&m, NULL, 0, &b), SVS_OK);
    left = planned;
    svs_model *got = svs_model_decode(b.data, b.size, err);
    svs_code code = got ? SVS_OK : err->code;
    svs_model_free(&got);
    svi_bytes_clear(&b);
    return code;
}

static void test_each_allocation_fails(void **state) {
    (void)state;
    assert_true(fail_each(add_forty_names) >= 40);
    assert_true(fail_each(init_shape) >= 6);
    assert_true(fail_each(decode_named) >= 2);
    assert_true(fail_each(encode_event) >= 2);
    assert_true(fail_each(append_model) >= 1);
    assert_true(fail_each(encode_message) >= 2);
    assert_true(fail_each(convert_json) >= 4);
    assert_true(fail_each(collect_scores) >= 3);
    assert_true(fail_each(decode_model) >= 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_allocation_fails)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
