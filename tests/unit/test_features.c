/* The registry of feature names against a plain array, and every error of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "data/feature_names.h"
#include "svmstream/value.h"

#define MAX 300

static uint32_t draw(uint32_t *r, uint32_t below) {
    *r = *r * 1664525u + 1013904223u;
    return (*r >> 8) % below;
}

static int plain_find(char names[][16], int count, const char *name) {
    for (int j = 0; j < count; j++)
        if (strcmp(names[j], name) == 0)
            return j;
    return -1;
}

static void test_walk_against_array(void **state) {
    (void)state;
    static char names[MAX][16];
    uint32_t r = 7;
    int count = 0;
    svs_features *f = svs_features_new(MAX, NULL);
    for (int step = 0; step < 20000; step++) {
        char name[16];
        snprintf(name, sizeof name, "%s%u", step & 1 ? "feature_" : "f", draw(&r, 400));
        int found = plain_find(names, count, name);
        assert_int_equal(svs_features_find(f, name, strlen(name)), found);
        int column = svs_features_add(f, name, strlen(name), NULL);
        if (found < 0 && count < MAX) {
            strcpy(names[count], name);
            found = count++;
        }
        assert_int_equal(column, found);
        if (draw(&r, 50) == 0) {
            count = (int)draw(&r, (uint32_t)count + 1);
            svs_features_truncate(f, count);
        }
        assert_int_equal(svs_features_count(f), count);
        if (step % 100 == 0)
            assert_true(svi_feature_names_check(f));
    }
    for (int j = 0; j < count; j++)
        assert_string_equal(svs_features_name(f, j), names[j]);
    svs_features_free(&f);
    assert_null(f);
}

static void test_names_stay_where_they_are(void **state) {
    (void)state;
    svs_features *f = svs_features_new(1000, NULL);
    svs_features_add(f, "first", 5, NULL);
    const char *first = svs_features_name(f, 0);
    for (int i = 0; i < 900; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        assert_int_equal(svs_features_add(f, name, strlen(name), NULL), i + 1);
    }
    assert_ptr_equal(svs_features_name(f, 0), first);
    assert_true(svi_feature_names_is(f, 5, "n4", 2));
    assert_false(svi_feature_names_is(f, 5, "n5", 2));
    assert_false(svi_feature_names_is(f, 5, "n", 1));
    assert_false(svi_feature_names_is(f, -1, "n4", 2));
    assert_false(svi_feature_names_is(f, 901, "n4", 2));
    assert_null(svs_features_name(f, 901));
    assert_null(svs_features_name(f, -1));
    svs_features_free(&f);
}

static void expect_refusal(svs_features *f, const char *name, size_t length, svs_code code,
                           const char *text) {
    svs_error e = {0};
    int count = svs_features_count(f);
    assert_int_equal(svs_features_add(f, name, length, &e), -1);
    assert_int_equal(e.code, code);
    assert_non_null(strstr(e.text, text));
    assert_int_equal(svs_features_count(f), count);
    assert_true(svi_feature_names_check(f));
}

static void test_refusals(void **state) {
    (void)state;
    char longest[SVS_NAME_MAX + 2];
    memset(longest, 'x', sizeof longest);
    svs_features *f = svs_features_new(2, NULL);
    expect_refusal(f, "", 0, SVS_BAD_COLUMN, "1 to 64");
    expect_refusal(f, longest, SVS_NAME_MAX + 1, SVS_BAD_COLUMN, "65");
    expect_refusal(f, "a\xff", 2, SVS_BAD_COLUMN, "a\\xff");
    expect_refusal(f, "a\0b", 3, SVS_BAD_COLUMN, "a\\x00b");
    assert_int_equal(svs_features_add(f, longest, SVS_NAME_MAX, NULL), 0);
    assert_int_equal(svs_features_add(f, "b", 1, NULL), 1);
    expect_refusal(f, "c", 1, SVS_LIMIT, "at most 2");
    assert_int_equal(svs_features_add(f, "b", 1, NULL), 1);
    svs_features_free(&f);
    svs_features_free(&f);
    svs_error e;
    assert_null(svs_features_new(0, &e));
    assert_int_equal(e.code, SVS_INVALID);
    assert_null(svs_features_new(1000001, &e));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_walk_against_array),
        cmocka_unit_test(test_names_stay_where_they_are),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
