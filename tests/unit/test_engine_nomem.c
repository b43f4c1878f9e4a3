/* Every allocation of an engine fails once: a refusal with its event, never a crash, a leak or a half-taken
 * sample; and the same message is taken when memory is back. Linked with --wrap for svi_alloc and
 * svi_realloc. */
#include "support/engine.h"
#include "support/nomem.h"
#include "support/apply.h"

#include "engine/engine_internal.h"
#include "fleet/fleet.h"
#include "learner/learner_internal.h"

static const char *const settings[] = {
    "missing", "carry", "max.features", "40", "publish.every", "0", "features", "", "labels.max", "10", NULL};

static int errors;
static svs_code last;

/* Allocates nothing: what fails must be the engine. */
static void quiet_sink(void *user, const struct svi_event *event) {
    (void)user;
    if (event->topic == SVI_TOPIC_ERROR) {
        errors++;
        last = event->as.error.code;
    }
}

static void test_new(void **unused) {
    (void)unused;
    struct svi_settings s;
    svi_settings_default(&s);
    strcpy(s.features, "a,b,c");
    s.missing = SVI_MISSING_CARRY;
    int n = 0;
    for (bool failed = true; failed; n++) {
        svs_error err = {0};
        left = n;
        svi_stream *e = svi_stream_new(&s, 1, quiet_sink, NULL, &err);
        failed = left < 0;
        left = -1;
        if (failed) {
            assert_null(e);
            assert_int_equal(err.code, SVS_NO_MEMORY);
            assert_non_null(strstr(err.text, "memory"));
        } else {
            assert_non_null(e);
        }
        svi_stream_free(&e);
    }
    assert_true(n > 10);
}

/* One frame with the n-th allocation failing, until none is left to fail; it has to be taken then. */
static void take_at_last(struct speaker *f, bool sourced, const char *text) {
    struct svi_receipt r;
    speaker_build(f, "%s", text);
    for (int n = 0;; n++) {
        int64_t seen = svi_stream_seen(f->e);
        double learned = stat(f, "learned"), held = stat(f, "held"), waiting = stat(f, "waiting");
        errors = 0;
        left = n;
        apply_bytes(f->e, f->frame.data, f->frame.size, NOW, sourced, &r);
        bool used = left < 0;
        left = -1;
        assert_int_equal(errors, r.refused);
        if (r.refused == 0) {
            assert_int_equal(r.accepted, 1);
            assert_false(used);
            return;
        }
        assert_true(used);
        assert_int_equal(last, SVS_NO_MEMORY);
        assert_int_equal(r.error.code, SVS_NO_MEMORY);
        assert_int_equal(svi_stream_seen(f->e), seen);
        assert_true(stat(f, "learned") == learned && stat(f, "held") == held &&
                    stat(f, "waiting") == waiting);
        assert_true(n < 200);
    }
}

static void open_quietly_with(struct speaker *f, const char *const *with) {
    speaker_open(f, with);
    svi_stream_free(&f->e);
    f->e = svi_stream_new(&f->s, 1, quiet_sink, NULL, NULL);
    f->control.stream = f->e;
    assert_non_null(f->e);
}

static void open_quietly(struct speaker *f) {
    open_quietly_with(f, settings);
}

#define MESSAGES 6

static void build_messages(char text[MESSAGES][2000]) {
    const char *const first[] = {"{'x': {'first': 1}, 'y': 'one', 'id': 'x1'}",
                                 "{'x': {'second': 1, 'third': 2}, 'y': 'two', 'id': 2}",
                                 "{'x': {'first': 4}, 'id': 'waits'}", "{'x': {'first': 4}, 'y': 'three'}",
                                 "{'op': 'label', 'id': 'waits', 'y': 'four'}"};
    for (int i = 0; i < MESSAGES - 1; i++)
        strcpy(text[i], first[i]);
    char *names = text[MESSAGES - 1];
    strcpy(names, "{'x': {'a': 1");
    for (int i = 0; i < 30; i++)
        snprintf(names + strlen(names), 48, ", 'n%d': %d", i, i);
    strcat(names, "}, 'y': 'one'}");
}

static void test_samples(void **unused) {
    (void)unused;
    struct speaker f;
    char text[MESSAGES][2000];
    const char *with[sizeof settings / sizeof settings[0] + 2] = {"method", "alsvm"};
    memcpy(with + 2, settings, sizeof settings);
    build_messages(text);
    open_quietly_with(&f, with);
    for (int i = 0; i < MESSAGES; i++)
        take_at_last(&f, false, text[i]);
    assert_int_equal(stat(&f, "d"), 34);
    assert_int_equal(stat(&f, "classes"), 4);
    svi_engine_publish_model(svi_stream_root(f.e), true);
    assert_int_equal(stat(&f, "published_models"), 1);
    speaker_close(&f);
}

/* Of a bank: the n-th allocation of message `which` fails. It is refused, and taken when memory is back; or
 * the host has learned it, a member has no room, and the process ends for it. Returns whether one failed. */
static bool bank_fails(char text[MESSAGES][2000], int which, int n) {
    struct speaker f;
    struct svi_receipt r;
    open_quietly(&f);
    for (int i = 0; i < which; i++)
        assert_int_equal(say(&f, "%s", text[i]), SVS_OK);
    speaker_build(&f, "%s", text[which]);
    const int64_t seen = svi_stream_seen(f.e);
    errors = 0;
    left = n;
    apply_bytes(f.e, f.frame.data, f.frame.size, NOW, false, &r);
    const bool used = left < 0;
    left = -1;
    assert_int_equal(errors, r.refused);
    if (r.refused) {
        assert_true(used && last == SVS_NO_MEMORY && !svi_stream_root(f.e)->out_of_memory);
        assert_int_equal(svi_stream_seen(f.e), seen);
        apply_bytes(f.e, f.frame.data, f.frame.size, NOW, false, &r);
        assert_false(svi_stream_root(f.e)->out_of_memory);
    } else {
        assert_int_equal(used, svi_stream_root(f.e)->out_of_memory);
    }
    assert_int_equal(r.accepted, 1);
    speaker_close(&f);
    return used;
}

static void test_banks(void **unused) {
    (void)unused;
    char text[MESSAGES][2000];
    build_messages(text);
    for (int i = 0; i < MESSAGES; i++) {
        int n = 0;
        while (bank_fails(text, i, n))
            assert_true(++n < 300);
        assert_true(n > 0);
    }
}

/* A source that found no room may send the same number again. */
static void test_sources(void **unused) {
    (void)unused;
    struct speaker f;
    struct svi_receipt r;
    open_quietly(&f);
    say(&f, "{'x': [1], 'y': 1}");
    say(&f, "{'x': [1], 'y': 1, 'src': 'a', 'n': 0}");
    left = 0;
    svs_code code = apply_bytes(f.e, f.frame.data, f.frame.size, NOW, true, &r);
    left = -1;
    assert_int_equal(code, SVS_NO_MEMORY);
    assert_int_equal(r.n, -1);
    assert_int_equal(svi_entry_next(svi_stream_entry(f.e), "a"), 0);
    assert_int_equal(apply_bytes(f.e, f.frame.data, f.frame.size, NOW, true, &r), SVS_OK);
    assert_int_equal(r.n, 0);
    assert_int_equal(svi_stream_seen(f.e), 3);
    speaker_close(&f);
}

/* No reply, or a complete one. */
static void test_replies(void **unused) {
    (void)unused;
    const char *requests[] = {"{'op': 'status'}", "{'op': 'config'}", "{'op': 'model'}", "{'op': 'none'}"};
    struct speaker f;
    open_quietly(&f);
    for (int i = 0; i < 4; i++) {
        svs_code code = SVS_NO_MEMORY;
        json_t *reply = ask(&f, "%s", requests[i]); /* leaves the request in f.frame */
        json_decref(reply);
        for (int n = 0; code != SVS_OK; n++) {
            struct svi_bytes out = {0};
            left = n;
            code = svi_control_handle(&f.control, f.frame.data, f.frame.size, NOW, &out);
            left = -1;
            assert_true(n < 50);
            if (code == SVS_OK)
                json_decref(speaker_reply(&out));
            else
                assert_int_equal(code, SVS_NO_MEMORY);
            assert_int_equal(out.size, 0);
            svi_bytes_clear(&out);
        }
    }
    speaker_close(&f);
}

/* A refit that was written down and finds no room is not passed over: the process ends for it. */
static void test_a_refit(void **unused) {
    (void)unused;
    const char *refits[] = {"window", "50", "refit.every", "20", NULL};
    bool adopted = false;
    for (int n = 0; !adopted; n++) {
        struct speaker f;
        open_quietly_with(&f, refits);
        for (int i = 0; i < 25; i++)
            assert_int_equal(say(&f, "{'x': [%d, %d], 'y': %d}", i % 7, i % 3, i % 2), SVS_OK);
        struct svi_refit *job = svi_engine_refit_take(svi_stream_root(f.e));
        assert_non_null(job);
        svi_refit_run(job);
        assert_int_equal(job->error.code, SVS_OK);
        left = n;
        svi_engine_refit_give(svi_stream_root(f.e));
        left = -1;
        adopted = stat(&f, "refits") == 1;
        assert_true(adopted != svi_stream_out_of_memory(f.e));
        assert_true(n < 50);
        speaker_close(&f);
    }
}

/* A new value for which there was no memory leaves nothing: a number that comes instead is scaled like
 * others. */
static void test_values_leave_nothing(void **unused) {
    (void)unused;
    bool failed = true;
    for (int n = 0; failed; n++) {
        struct speaker f;
        speaker_open(&f, settings);
        svi_engine_send_to(svi_stream_root(f.e), quiet_sink, &f);
        say(&f, "{'x':{'a':1},'y':1}");
        speaker_build(&f, "{'x':{'k':'one','a':2,'j':'two','i':'three','h':'four','g':'five','e':'six','f':'"
                          "seven'},'y':0}");
        left = n;
        apply_bytes(f.e, f.frame.data, f.frame.size, NOW, false, NULL);
        failed = left < 0;
        left = -1;
        last = SVS_OK;
        say(&f, "{'x':{'b':5,'a':2,'c':1},'y':1}");
        assert_int_equal(last, SVS_OK);
        for (int j = 0; j < svi_stream_root(f.e)->schema.shape.d; j++)
            assert_int_equal(svi_scaler_unscaled(&svi_stream_root(f.e)->learner->scaler, j),
                             svi_schema_unscaled(&svi_stream_root(f.e)->schema, j));
        speaker_close(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_new),
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_banks),
        cmocka_unit_test(test_sources),
        cmocka_unit_test(test_replies),
        cmocka_unit_test(test_a_refit),
        cmocka_unit_test(test_values_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
