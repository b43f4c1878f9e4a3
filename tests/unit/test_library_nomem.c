/* The library's stream when memory runs out: each call reports it, the stream can still be used or freed, and
 * what was refused is taken when it is given again. Linked with --wrap for svi_alloc and svi_realloc. */
#include "support/library.h"

#include "support/nomem.h"
#include "support/quick.h"

/* Of each kind: a learner with words, a bank, a monitor with alerts, keys. */
static const int kinds[] = {3, 5, 7, 9};

/* Fails the n-th allocation from now on, for n = first, first + step, ... until `call` no longer meets one.
 * Returns how many failures were met. */
typedef svs_code tried(void *user, svs_error *err);

static int fail_each(tried *call, void *user, int step) {
    svs_error err;
    for (int n = 0;; n += step) {
        left = n;
        failed = false;
        memset(&err, 0, sizeof err);
        const svs_code code = call(user, &err);
        left = -1;
        if (!failed)
            return n;
        if (code != SVS_OK && code != SVS_NO_MEMORY)
            fail_msg("allocation %d: %s: %s", n, svs_code_name(code), err.text);
        assert_true(code == SVS_OK || strlen(err.text) > 5);
        assert_true(n < 100000);
    }
}

static svs_code try_new(void *user, svs_error *err) {
    const struct lib_case *c = user;
    svs_stream *s = svs_stream_new(c->settings, lib_setting_count(c), err);
    const svs_code code = s ? SVS_OK : err->code;
    svs_stream_free(&s);
    return code;
}

struct step {
    const struct lib_case *c;
    svs_stream *s;
    int row, alerts;
    void *bytes;
    size_t size;
};

static svs_code try_step(void *user, svs_error *err) {
    struct step *t = user;
    struct lib_row r;
    svs_outcome out;
    lib_make_row(t->c, t->row, &r);
    const svs_code code = svs_stream_step(t->s, &r.row, &out, err);
    t->row += code == SVS_OK;
    return code;
}

static svs_code try_block(void *user, svs_error *err) {
    struct step *t = user;
    double x[20 * 3];
    float narrow[20 * 3];
    const svs_value labels[] = {svs_str("c0"), svs_str("c1")};
    const char *const names[] = {"a", "b", "c"};
    int32_t index[20], predicted[20];
    int64_t row;
    for (int i = 0; i < 60; i++)
        narrow[i] = (float)(x[i] = (i * 37 % 11) / 8.0);
    for (int i = 0; i < 20; i++)
        index[i] = i % 2;
    svs_block b = {.n = 20, .d = 3, .x32 = narrow, .stride = 3, .names = names, .all = true};
    if (t->c->classes > 1) {
        b.labels = labels;
        b.label_count = 2;
        b.y_index = index;
    }
    svs_results r = {.predicted = predicted};
    const svs_code code = svs_stream_learn_block(t->s, &b, &r, &row, err);
    return code == SVS_OK ? svs_stream_score_block(t->s, &b, &r, &row, err) : code;
}

static svs_code try_score(void *user, svs_error *err) {
    struct step *t = user;
    struct lib_row r;
    svs_outcome out;
    lib_make_row(t->c, t->row, &r);
    return svs_stream_score(t->s, &r.row, &out, err);
}

static svs_code try_read(void *user, svs_error *err) {
    struct step *t = user;
    int count;
    size_t size;
    const svs_setting more[] = {{"alert.budget", "3/day"}};
    (void)svs_stream_figures(t->s, &count);
    (void)svs_stream_setting(t->s, "window");
    if (!svs_stream_report(t->s, 1, true, err))
        return err->code;
    if (!svs_stream_model_event(t->s, NULL, &size, err) && err->code != SVS_UNAVAILABLE)
        return err->code;
    return svs_stream_configure(t->s, more, 1, err);
}

static svs_code try_save(void *user, svs_error *err) {
    struct step *t = user;
    svs_bytes_free(&t->bytes);
    return svs_stream_save(t->s, &t->bytes, &t->size, err);
}

static svs_code try_load(void *user, svs_error *err) {
    struct step *t = user;
    svs_stream *s = svs_stream_load(t->bytes, t->size, err);
    const svs_code code = s ? SVS_OK : err->code;
    svs_stream_free(&s);
    return code;
}

static void test_each(void **state) {
    svs_error err;
    char hash[33];
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        struct step t = {.c = &lib_cases[kinds[k]]};
        print_message("  %s\n", t.c->name);
        assert_true(fail_each(try_new, (void *)t.c, every(7)) > 10);
        t.s = lib_stream(t.c);
        while (t.row < 40)
            fail_each(try_step, &t, every(5));
        fail_each(try_block, &t, every(3));
        while (t.row < (t.c->steps ? 640 : 150))
            assert_int_equal(try_step(&t, &err), SVS_OK);
        for (int i = 0; i < 5; i++)
            fail_each(try_step, &t, every(5));
        fail_each(try_score, &t, 1);
        fail_each(try_read, &t, every(3));
        fail_each(try_save, &t, every(3));
        assert_non_null(t.bytes);
        fail_each(try_load, &t, every(11));
        assert_int_equal(svs_stream_hash(t.s, hash, &err), SVS_OK);
        svs_bytes_free(&t.bytes);
        svs_stream_free(&t.s);
    }
}

/* Alerts that could not be decoded stay until memory is there. */
static void test_alerts_stay(void **state) {
    struct step t = {.c = &lib_cases[7]};
    int all = 0, count, refused = 0;
    svs_error err;
    (void)state;
    t.s = lib_stream(t.c);
    while (t.row < t.c->rows) {
        struct lib_row r;
        svs_outcome out;
        lib_make_row(t.c, t.row++, &r);
        assert_int_equal(svs_stream_step(t.s, &r.row, &out, &err), SVS_OK);
        all += out.alert_count;
    }
    assert_true(all > 2);
    for (int n = 0;; n++) {
        left = n;
        failed = false;
        const svs_alert *alerts = svs_stream_alerts(t.s, &count);
        left = -1;
        if (!failed)
            break;
        assert_true(count == -1 && !alerts);
        refused++;
    }
    assert_true(refused > 0);
    assert_int_equal(count, all);
    svs_stream_free(&t.s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each), cmocka_unit_test(test_alerts_stay)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
