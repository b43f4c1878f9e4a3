/* Every allocation of a short life with a kept state fails, once and from then on: a reason is given, nothing
 * that was acknowledged is lost, and the next process goes on. Linked with --wrap for svi_alloc and
 * svi_realloc. */
#include "support/engine.h"
#include "support/folder.h"
#include "support/nomem.h"
#include "support/quick.h"

#include "base/fail.h"
#include "engine/keeper.h"

#define SAMPLES 30

struct life {
    char path[200];
    struct svi_settings s;
    svi_keeper *keeper;
    svi_engine *engine;
    int64_t acked; /* samples */
};

static void sink(void *user, const struct svi_event *event) {
    (void)user;
    (void)event;
}

static svs_code begin(struct life *l, svs_error *err) {
    l->keeper = svi_keeper_open(&l->s, sink, NULL, NULL, &l->engine, err);
    assert_true((l->keeper == NULL) == (l->engine == NULL));
    return l->keeper ? SVS_OK : err->code;
}

static void end(struct life *l) {
    svi_keeper_free(&l->keeper);
    svi_engine_free(&l->engine);
}

/* As the inlet does: nothing counts that is not written down, nothing is acknowledged that was not taken. */
static svs_code take(struct life *l, int n, const struct svi_bytes *frame, svs_error *err) {
    struct svi_receipt r;
    svs_code code = svi_keeper_note(l->keeper, SVI_RECORD_SOURCED, NOW, frame->data, frame->size, err);
    if (code != SVS_OK) {
        svi_keeper_drop(l->keeper);
        return code;
    }
    if ((code = svi_keeper_commit(l->keeper, err)) != SVS_OK)
        return code;
    svi_engine_frame(l->engine, frame->data, frame->size, NOW, true, &r);
    if (svi_engine_starved(l->engine))
        return svi_fail(err, SVS_NO_MEMORY, "starved");
    assert_int_equal(r.n, n);
    l->acked = n + 1;
    return n % 8 == 7 ? svi_keeper_save(l->keeper, NULL, NULL, err) : SVS_OK;
}

/* One life, from what the last left behind. */
static svs_code live(struct life *l, svs_error *err) {
    struct speaker f = {.now = NOW}; /* its frames alone */
    svs_code code = begin(l, err);
    const int64_t next = code == SVS_OK ? svi_engine_source_next(l->engine, "a") : l->acked;
    assert_true(next >= l->acked);
    for (int n = (int)next; n < SAMPLES && code == SVS_OK; n++) {
        const long kept = left;
        left = -1; /* the message itself is the producer's */
        speaker_build(&f, "{'x': [%d, %d], 'y': %d, 'id': %d, 'src': 'a', 'n': %d, 'ts': %d}", n % 5, n % 3,
                      n % 2, n, n, n);
        left = kept;
        code = take(l, n, &f.frame, err);
    }
    end(l);
    svi_bytes_clear(&f.frame);
    return code;
}

static void fail_each(bool sticky) {
    struct life l = {.acked = 0};
    svs_error err;
    svi_settings_default(&l.s);
    const char *const settings[] = {"refit",   "none", "window",      "8",   "novelty.calibration", "10",
                                    "alert.p", "0.2",  "alert.clear", "0.2", "novelty.max",         "5"};
    const struct svi_settings before = l.s;
    int n = 0, failures = 0;
    for (bool failed = true; failed; n += every(5)) {
        l.s = before;
        l.acked = 0;
        for (int i = 0; i < 12; i += 2)
            assert_int_equal(svi_settings_set(&l.s, settings[i], settings[i + 1], &err), SVS_OK);
        assert_non_null(test_folder(l.path));
        assert_int_equal(svi_settings_set(&l.s, "state.dir", l.path, &err), SVS_OK);
        err.text[0] = '\0';
        from_then_on = sticky;
        left = n;
        svs_code code = live(&l, &err);
        failed = sticky ? left == 0 : left < 0;
        left = -1;
        from_then_on = false;
        if (code != SVS_OK) {
            failures++;
            assert_int_equal(code, SVS_NO_MEMORY);
            assert_non_null(strstr(err.text, "memory") ? err.text : strstr(err.text, "starved"));
        }
        if ((code = live(&l, &err)) != SVS_OK) /* memory is back */
            fail_msg("allocation %d: %s", n, err.text);
        assert_int_equal(l.acked, SAMPLES);
        test_folder_remove(l.path);
    }
    assert_true(failures > 20 / every(5));
}

static void test_once(void **unused) {
    (void)unused;
    fail_each(false);
}

static void test_from_then_on(void **unused) {
    (void)unused;
    fail_each(true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_once),
        cmocka_unit_test(test_from_then_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
