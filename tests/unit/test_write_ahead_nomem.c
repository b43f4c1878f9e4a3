/* Every allocation of a short life with a kept state fails, once and from then on: a reason is given, nothing
 * that was acknowledged is lost, and the next process goes on. Linked with --wrap for svi_alloc and
 * svi_realloc. */
#include "support/engine.h"
#include "support/folder.h"
#include "support/nomem.h"
#include "support/quick.h"

#include "base/fail.h"
#include "state/write_ahead.h"
#include "state/recovery.h"
#include "support/apply.h"

#define SAMPLES 30

struct life {
    char path[200];
    struct svi_settings s;
    svi_write_ahead *keeper;
    svi_stream *stream;
    int64_t acked; /* samples */
};

static void sink(void *user, const struct svi_event *event) {
    (void)user;
    (void)event;
}

static svs_code begin(struct life *l, svs_error *err) {
    l->keeper = svi_write_ahead_open(&l->s, sink, NULL, NULL, &l->stream, err);
    assert_true((l->keeper == NULL) == (l->stream == NULL));
    return l->keeper ? SVS_OK : err->code;
}

static void end(struct life *l) {
    svi_write_ahead_free(&l->keeper);
    svi_stream_free(&l->stream);
}

/* As the inlet does: nothing counts that is not written down, nothing is acknowledged that was not taken. */
static svs_code take(struct life *l, int n, const struct svi_bytes *frame, svs_error *err) {
    struct svi_receipt r;
    svs_code code = svi_write_ahead_append(l->keeper, SVI_RECORD_SOURCED, NOW, frame->data, frame->size, err);
    if (code != SVS_OK) {
        svi_write_ahead_abort(l->keeper);
        return code;
    }
    if ((code = svi_write_ahead_commit(l->keeper, err)) != SVS_OK)
        return code;
    apply_bytes(l->stream, frame->data, frame->size, NOW, true, &r);
    if (svi_stream_out_of_memory(l->stream))
        return svi_fail(err, SVS_NO_MEMORY, "starved");
    assert_int_equal(r.n, n);
    l->acked = n + 1;
    return n % 8 == 7 ? svi_write_ahead_save(l->keeper, NULL, NULL, err) : SVS_OK;
}

/* One life, from what the last left behind. */
static svs_code live(struct life *l, svs_error *err) {
    struct speaker f = {.now = NOW}; /* its frames alone */
    svs_code code = begin(l, err);
    const int64_t next = code == SVS_OK ? svi_entry_next(svi_stream_entry(l->stream), "a") : l->acked;
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
        svi_settings_settle_method(&l.s);
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

/* ---- a restart that lacks memory */

static const char *const changes[] = {"{'op': 'config', 'set': {'publish.every': 3}}",
                                      "{'op': 'label', 'id': 2, 'y': 1}", "{'op': 'publish'}"};

/* One record, and what it does. */
static void keep(struct life *l, struct speaker *f, enum svi_record_kind kind) {
    svs_error err;
    struct svi_bytes out = {0};
    struct svi_control c = {.stream = l->stream, .settings = &l->s};
    assert_int_equal(svi_write_ahead_write(l->keeper, kind, NOW, f->frame.data, f->frame.size, &err), SVS_OK);
    if (kind == SVI_RECORD_CONTROL)
        assert_int_equal(svi_control_handle(&c, f->frame.data, f->frame.size, NOW, &out), SVS_OK);
    else
        apply_bytes(l->stream, f->frame.data, f->frame.size, NOW, true, NULL);
    svi_bytes_clear(&out);
}

static void fill(struct life *l) {
    struct speaker f = {.now = NOW};
    char name[40], bytes[SVI_HASH_TEXT];
    svs_error err = {0};
    if (begin(l, &err) != SVS_OK)
        fail_msg("%s", err.text);
    for (int n = 0; n < 24; n++) { /* more features, classes, sources as it goes on */
        snprintf(name, sizeof name, "'f%d': %d, 'f%d': 1", n / 6, n, n % 3);
        speaker_build(&f, "{'x': {%s}, 'y': %d, 'id': %d, 'src': 's%d', 'n': 0, 'ts': %d}", name, n % 4, n, n,
                      n);
        keep(l, &f, SVI_RECORD_SOURCED);
        if (n == 12)
            assert_int_equal(svi_write_ahead_save(l->keeper, NULL, bytes, &err), SVS_OK);
        if (n % 5 == 4 && n < 15) {
            speaker_build(&f, "%s", changes[n / 5]);
            keep(l, &f, SVI_RECORD_CONTROL);
        }
    }
    end(l);
    svi_bytes_clear(&f.frame);
}

/* What it cannot repeat it must not pass over. */
static void test_a_restart(void **unused) {
    (void)unused;
    struct life l = {.acked = 0};
    svs_error err = {0};
    char expected[SVI_HASH_TEXT] = "", hash[SVI_HASH_TEXT];
    struct svi_state_dir folder;
    int failures = 0;
    bool failed = true;
    svi_settings_default(&l.s);
    assert_int_equal(svi_settings_set(&l.s, "refit", "none", &err), SVS_OK);
    svi_settings_settle_method(&l.s);
    assert_non_null(test_folder(l.path));
    assert_int_equal(svi_settings_set(&l.s, "state.dir", l.path, &err), SVS_OK);
    fill(&l);
    assert_int_equal(svi_state_dir_open(&folder, l.path, false, &err), SVS_OK);
    for (int n = -1; failed; n++) {
        const struct svi_recovery_options o = {
            .until = UINT64_MAX, .silent = true, .from = n % 2 ? SVI_FROM_START : SVI_FROM_NEWEST};
        struct svi_recovery r = {0};
        left = n < 0 ? -1 : n / 2;
        svs_code code = svi_recover(&folder, &o, sink, NULL, &r, &err);
        failed = n < 4 || left < 0;
        left = -1;
        if (code == SVS_OK) {
            assert_int_equal(svi_stream_hash(r.stream, hash, &err), SVS_OK);
            if (n < 0)
                strcpy(expected, hash);
            if (strcmp(hash, expected) != 0)
                fail_msg("allocation %d: another state, in silence", n / 2);
        } else {
            failures++;
            assert_int_equal(code, SVS_NO_MEMORY);
        }
        svi_stream_free(&r.stream);
    }
    assert_true(failures > 40);
    svi_state_dir_close(&folder);
    test_folder_remove(l.path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_once),
        cmocka_unit_test(test_from_then_on),
        cmocka_unit_test(test_a_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
