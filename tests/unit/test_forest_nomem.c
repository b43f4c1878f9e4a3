/* Allocations that fail during a fit, or while a forest is loaded: SVS_NO_MEMORY, the old forest as it was,
 * and the call can be made again. Linked with --wrap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/nomem.h"

#include "base/bytes.h"
#include "base/random.h"
#include "support/archived.h"
#include "trees/boost.h"

#define ROWS 300
#define D    3

static int scores;

static void archive(struct svi_archive *a, void *object) {
    svi_forest_archive(a, object, scores, D);
}

static float x[ROWS * D];
static int32_t label[ROWS];

static struct svi_boost_rows some_rows(int classes) {
    struct svi_random random = {7};
    for (int i = 0; i < ROWS * D; i++)
        x[i] = (float)svi_random_below(&random, 1000);
    for (int i = 0; i < ROWS; i++)
        label[i] = (int32_t)(x[i * D] + x[i * D + 1]) % 1000 * classes / 1000;
    return (struct svi_boost_rows){
        .x = x, .d = D, .stride = D, .count = ROWS, .capacity = ROWS, .label = label};
}

static void a_fit_that_fails_changes_nothing(void **unused) {
    (void)unused;
    for (int classes = 2; classes <= 4; classes += 2) {
        const struct svi_boost_options o = svi_boost_defaults(SVS_CLASSIFY, classes);
        const struct svi_boost_rows all = some_rows(classes);
        struct svi_boost_rows half = all;
        struct svi_boost_scratch first = {0};
        struct svi_forest f = {0};
        struct svi_bytes before = {0}, after = {0};
        svs_error err;
        long failures = 0;
        scores = classes > 2 ? classes : 1;
        half.count /= 2;
        assert_int_equal(svi_boost_fit(&o, &half, &first, &f, NULL), SVS_OK);
        assert_int_equal(archived_save(archive, &f, &before, &err), SVS_OK);
        for (long nth = 0, whole = 0; !whole; nth++) {
            struct svi_boost_scratch s = {0};
            left = nth;
            const svs_code code = svi_boost_fit(&o, &all, &s, &f, &err);
            whole = left >= 0;
            left = -1;
            assert_int_equal(code, whole ? SVS_OK : SVS_NO_MEMORY);
            assert_int_equal(archived_save(archive, &f, &after, &err), SVS_OK);
            assert_int_equal(whole, !archived_same(&before, &after));
            failures += !whole;
            svi_boost_scratch_clear(&s);
        }
        assert_true(failures >= 15);
        /* The same fit with scratch that has been in use, and with some of its blocks gone. */
        assert_int_equal(archived_save(archive, &f, &before, &err), SVS_OK);
        for (long nth = 0, whole = 0; !whole; nth++) {
            left = nth;
            whole = svi_boost_fit(&o, &all, &first, &f, &err) == SVS_OK && left >= 0;
            left = -1;
        }
        assert_int_equal(archived_save(archive, &f, &after, &err), SVS_OK);
        assert_true(archived_same(&before, &after));
        svi_boost_scratch_clear(&first);
        svi_forest_clear(&f);
        svi_bytes_clear(&before);
        svi_bytes_clear(&after);
    }
}

static void a_load_that_fails_is_no_memory(void **unused) {
    (void)unused;
    const struct svi_boost_options o = svi_boost_defaults(SVS_CLASSIFY, 2);
    const struct svi_boost_rows rows = some_rows(2);
    struct svi_boost_scratch s = {0};
    struct svi_forest f = {0}, other = {0};
    struct svi_bytes bytes = {0}, again = {0};
    svs_error err;
    scores = 1;
    assert_int_equal(svi_boost_fit(&o, &rows, &s, &f, NULL), SVS_OK);
    assert_int_equal(archived_save(archive, &f, &bytes, &err), SVS_OK);
    for (long nth = 0, whole = 0; !whole; nth++) {
        left = nth;
        const svs_code code = archived_load(archive, &other, bytes.data, bytes.size, &err);
        whole = left >= 0;
        left = -1;
        assert_int_equal(code, whole ? SVS_OK : SVS_NO_MEMORY);
    }
    assert_int_equal(archived_save(archive, &other, &again, &err), SVS_OK);
    assert_true(archived_same(&bytes, &again));
    svi_forest_clear(&f);
    svi_forest_clear(&other);
    svi_boost_scratch_clear(&s);
    svi_bytes_clear(&bytes);
    svi_bytes_clear(&again);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fit_that_fails_changes_nothing),
        cmocka_unit_test(a_load_that_fails_is_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
