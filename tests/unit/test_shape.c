/* The shape of a stream: fixed names, what fits, what a refused message leaves behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "data/message.h"

static struct svi_message message(enum svi_kind kind, int d) {
    return (struct svi_message){.has_x = true, .kind = kind, .d = d};
}

static void expect(const struct svi_shape *s, enum svi_kind kind, int d, svs_code code) {
    svs_error e = {0};
    struct svi_message m = message(kind, d);
    assert_int_equal(svi_shape_fits(s, &m, &e), code);
    assert_int_equal(e.code, code);
    assert_int_equal(e.text[0] != 0, code != SVS_OK);
    assert_int_equal(svi_shape_fits(s, &m, NULL), code);
}

static void test_first_sample_fixes_the_form(void **state) {
    (void)state;
    static const struct {
        enum svi_kind kind;
        svs_code dense3, dense4, sparse4, named4, sparse9;
    } rows[] = {
        {SVI_DENSE, SVS_OK, SVS_WRONG_DIMENSION, SVS_WRONG_KIND, SVS_WRONG_KIND, SVS_WRONG_KIND},
        {SVI_SPARSE, SVS_WRONG_KIND, SVS_WRONG_KIND, SVS_OK, SVS_WRONG_KIND, SVS_LIMIT},
        {SVI_NAMED, SVS_WRONG_KIND, SVS_WRONG_KIND, SVS_WRONG_KIND, SVS_OK, SVS_WRONG_KIND},
    };
    for (int i = 0; i < 3; i++) {
        struct svi_shape s;
        struct svi_message first = message(rows[i].kind, 3);
        assert_int_equal(svi_shape_init(&s, 8, NULL, NULL), SVS_OK);
        expect(&s, rows[i].kind, 3, SVS_OK);
        svi_shape_commit(&s, &first);
        expect(&s, SVI_DENSE, 3, rows[i].dense3);
        expect(&s, SVI_DENSE, 4, rows[i].dense4);
        expect(&s, SVI_SPARSE, 4, rows[i].sparse4);
        expect(&s, SVI_NAMED, 4, rows[i].named4);
        expect(&s, SVI_SPARSE, 9, rows[i].sparse9);
        svi_shape_clear(&s);
    }
}

static void test_limits_of_an_open_shape(void **state) {
    (void)state;
    struct svi_shape s;
    svi_shape_init(&s, 8, "", NULL);
    expect(&s, SVI_DENSE, 8, SVS_OK);
    expect(&s, SVI_DENSE, 9, SVS_LIMIT);
    expect(&s, SVI_DENSE, 0, SVS_WRONG_DIMENSION);
    expect(&s, SVI_SPARSE, 0, SVS_OK);
    struct svi_message none = {.has_x = false, .d = 99};
    assert_int_equal(svi_shape_fits(&s, &none, NULL), SVS_OK);
    svi_shape_commit(&s, &none);
    assert_int_equal(s.kind, SVI_UNSET);
    assert_int_equal(s.d, 0);
    svi_shape_clear(&s);
}

static void test_fixed_names(void **state) {
    (void)state;
    struct svi_shape s;
    assert_int_equal(svi_shape_init(&s, 8, " temp , hum,p ", NULL), SVS_OK);
    assert_int_equal(s.d, 3);
    assert_true(s.fixed_names);
    assert_string_equal(svs_features_name(s.names, 0), "temp");
    assert_string_equal(svs_features_name(s.names, 1), "hum");
    assert_string_equal(svs_features_name(s.names, 2), "p");
    expect(&s, SVI_DENSE, 3, SVS_OK);
    expect(&s, SVI_DENSE, 2, SVS_WRONG_DIMENSION);
    expect(&s, SVI_SPARSE, 3, SVS_OK);
    expect(&s, SVI_SPARSE, 4, SVS_BAD_COLUMN);
    expect(&s, SVI_NAMED, 3, SVS_OK);
    svi_shape_restore(&s);
    assert_int_equal(svs_features_count(s.names), 3);
    svi_shape_clear(&s);
}

static void test_bad_settings(void **state) {
    (void)state;
    static const struct {
        int max;
        const char *fixed, *text;
    } rows[] = {{0, NULL, "max.features"}, {1000001, NULL, "max.features"}, {8, "a,,b", "1 to 64"},
                {8, ",", "1 to 64"},       {8, "a,b,a", "name 3 (a)"},      {2, "a,b,c", "at most 2"},
                {8, "a,\xff", "UTF-8"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct svi_shape s;
        svs_error e = {0};
        assert_int_equal(svi_shape_init(&s, rows[i].max, rows[i].fixed, &e), SVS_SETTING);
        assert_int_equal(e.code, SVS_SETTING);
        assert_non_null(strstr(e.text, rows[i].text));
        assert_null(s.row);
        assert_null(s.names);
        svi_shape_clear(&s);
    }
}

static void test_restore_takes_names_back(void **state) {
    (void)state;
    struct svi_shape s;
    svi_shape_init(&s, 8, NULL, NULL);
    svs_features_add(s.names, "a", 1, NULL);
    struct svi_message m = message(SVI_NAMED, 1);
    svi_shape_commit(&s, &m);
    svs_features_add(s.names, "b", 1, NULL);
    svi_shape_restore(&s);
    assert_int_equal(svs_features_count(s.names), 1);
    m = message(SVI_NAMED, 0);
    svi_shape_commit(&s, &m);
    assert_int_equal(s.d, 1);
    svi_shape_clear(&s);
}

static void test_marks_survive_the_wrap(void **state) {
    (void)state;
    struct svi_shape s;
    svi_shape_init(&s, 3, NULL, NULL);
    svi_shape_begin_row(&s);
    assert_true(svi_shape_mark(&s, 0));
    assert_true(svi_shape_mark(&s, 2));
    assert_false(svi_shape_mark(&s, 0));
    s.round = UINT32_MAX;
    s.marks[1] = 1; /* as if left from the first round */
    svi_shape_begin_row(&s);
    for (int j = 0; j < 3; j++) {
        assert_true(svi_shape_mark(&s, j));
        assert_false(svi_shape_mark(&s, j));
    }
    svi_shape_clear(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_sample_fixes_the_form),
        cmocka_unit_test(test_limits_of_an_open_shape),
        cmocka_unit_test(test_fixed_names),
        cmocka_unit_test(test_bad_settings),
        cmocka_unit_test(test_restore_takes_names_back),
        cmocka_unit_test(test_marks_survive_the_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
