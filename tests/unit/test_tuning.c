/* What is said of C as bytes and back, whatever the bytes are, and as a table for people. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/tuning_report.h"
#include "wire/cursor.h"
#include "wire/json_value.h"
#include "wire/tuning.h"

static svs_tuning a_tuning(bool regress) {
    svs_tuning t = {.count = 3, .present = 1, .best = 0, .better = true, .samples = 500, .skipped = 2};
    for (int g = 0; g < 3; g++)
        t.row[g] = (svs_tuning_row){.C = pow(4, g - 1),
                                    .squared = 0.25 + g,
                                    .wrong = regress ? NAN : 0.125 * g,
                                    .gain = 0.5 - 0.5 * g,
                                    .noise = g == 1 ? 0 : 0.0625};
    return t;
}

static void write_map(const svs_tuning *t, struct svi_bytes *out) {
    struct svi_pack p;
    out->size = 0;
    svi_pack_begin(&p, out);
    svi_pack_map(&p, SVI_TUNING_KEYS);
    svi_put_tuning(&p, t);
    assert_int_equal(svi_pack_end(&p), SVS_OK);
    assert_int_equal(svi_msgpack_check(out->data, out->size, SVI_DEPTH_MAX, NULL), SVS_OK);
}

static void there_and_back(void **unused) {
    (void)unused;
    struct svi_bytes bytes = {0};
    for (int regress = 0; regress < 2; regress++) {
        svs_tuning t = a_tuning(regress), back;
        t.row[2].noise = INFINITY;
        write_map(&t, &bytes);
        assert_int_equal(svi_tuning_read(bytes.data, bytes.data + bytes.size, &back, NULL), SVS_OK);
        assert_true(back.count == 3 && back.present == 1 && back.best == 0 && back.better);
        assert_true(back.samples == 500 && back.skipped == 2);
        for (int g = 0; g < 3; g++) {
            assert_true(back.row[g].C == t.row[g].C && back.row[g].squared == t.row[g].squared);
            assert_true(back.row[g].gain == t.row[g].gain && back.row[g].noise == t.row[g].noise);
            assert_true(regress ? isnan(back.row[g].wrong) : back.row[g].wrong == t.row[g].wrong);
        }
    }
    svi_bytes_clear(&bytes);
}

/* JSON whose ' stand for ". */
static void from_json(const char *text, struct svi_bytes *out) {
    char quoted[2000];
    struct svi_pack p;
    snprintf(quoted, sizeof quoted, "%s", text);
    for (char *c = quoted; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    out->size = 0;
    svi_pack_begin(&p, out);
    assert_int_equal(svi_pack_json(&p, quoted, NULL), SVS_OK);
    assert_int_equal(svi_pack_end(&p), SVS_OK);
}

#define HEAD "{'C': 1, 'best': 1, 'samples': 9, 'skipped': 0, 'better': false, 'table': "
#define ROW  "{'C': 1, 'squared': 1, 'wrong': 0.5, 'gain': 0, 'noise': 0}"

static void other_maps_are_refused(void **unused) {
    (void)unused;
    static const char *const wrong[] = {
        "{}",
        "[1]",
        "{'ok': true}",
        HEAD "7}",
        HEAD "[]}",
        HEAD "[7]}",
        HEAD "[{'C': 2, 'squared': 1, 'gain': 0}]}", /* not the C of now */
        HEAD "[{'C': 1, 'squared': 'x', 'gain': 0}]}",
        HEAD "[{'C': 1, 'gain': 0}]}",
        HEAD "[{'C': 1, 'squared': 1, 'wrong': 7, 'gain': 0}]}",
        HEAD "[" ROW "," ROW "," ROW "," ROW "," ROW "," ROW "," ROW "," ROW "," ROW "," ROW "," ROW "," ROW
             "," ROW "]}", /* 13 */
        "{'C': 1, 'best': 1, 'samples': 9, 'skipped': 0, 'better': 1, 'table': [" ROW "]}",
        "{'C': 1, 'best': 4, 'samples': 9, 'skipped': 0, 'better': true, 'table': [" ROW "]}",
        "{'C': 1, 'best': 1, 'samples': -9, 'skipped': 0, 'better': true, 'table': [" ROW "]}",
    };
    struct svi_bytes bytes = {0};
    svs_tuning t;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        svs_error err = {0};
        from_json(wrong[i], &bytes);
        if (svi_tuning_read(bytes.data, bytes.data + bytes.size, &t, &err) != SVS_WRONG_TYPE || !err.text[0])
            fail_msg("%s was read", wrong[i]);
    }
    from_json(HEAD "[" ROW "]}", &bytes);
    assert_int_equal(svi_tuning_read(bytes.data, bytes.data + bytes.size, &t, NULL), SVS_OK);
    svi_bytes_clear(&bytes);
}

/* The text of a report, to be freed. */
static char *report_of(const struct svi_bytes *b, void (*report)(FILE *, const uint8_t *, const uint8_t *)) {
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    report(to, b->data, b->data + b->size);
    fclose(to);
    return text;
}

static void assert_report(const struct svi_bytes *b, const char *expected) {
    char *text = report_of(b, svi_tuning_report);
    if (!strstr(text, expected))
        fail_msg("'%s' has no '%s'", text, expected);
    free(text);
}

static void tables_for_people(void **unused) {
    (void)unused;
    struct svi_bytes bytes = {0};
    svs_tuning t = a_tuning(false);
    write_map(&t, &bytes);
    assert_report(&bytes,
                  "           C      wrong    squared       gain      noise\n"
                  "        0.25          0       0.25        0.5     0.0625   best\n"
                  "           1      0.125       1.25          0          0   now\n"
                  "           4       0.25       2.25       -0.5     0.0625\n"
                  "500 samples, each left out once; 2 more were left out of this, as their weight determines their own score\n"
                  "C 0.25 is better than C 1 by more than twice the noise:\n"
                  "  svmstream ctl config C=0.25\n");
    t = a_tuning(true);
    t.better = false;
    write_map(&t, &bytes);
    assert_report(&bytes, "rmse");
    assert_report(&bytes, "        0.25        0.5       0.25 ");
    assert_report(&bytes, "less than twice the noise");
    t.best = 1;
    write_map(&t, &bytes);
    assert_report(&bytes, "no other C is better");
    from_json("{'ok': true}", &bytes);
    char *text = report_of(&bytes, svi_tuning_report);
    assert_string_equal(text, "");
    free(text);
    svi_bytes_clear(&bytes);
}

static void a_line_of_a_model(void **unused) {
    (void)unused;
    static const char *const models[][2] = {
        {"{'W': 1}", ""},
        {"{'loo': 7}", ""},
        {"{'W': 1, 'loo': " HEAD "[" ROW "]}}", "leave-one-out wrong 0.5\n"},
        {"{'loo': {'C': 1, 'best': 4, 'samples': 9, 'skipped': 0, 'better': true, 'table': [{'C': 1, "
         "'squared': 4, "
         "'gain': 0}, {'C': 4, 'squared': 1, 'gain': 3}]}}",
         "leave-one-out rmse 2; with C 4 1, clearly less\n"},
    };
    struct svi_bytes bytes = {0};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        from_json(models[i][0], &bytes);
        char *text = report_of(&bytes, svi_tuning_line);
        assert_string_equal(text, models[i][1]);
        free(text);
    }
    svi_bytes_clear(&bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back), cmocka_unit_test(other_maps_are_refused),
        cmocka_unit_test(tables_for_people), cmocka_unit_test(a_line_of_a_model)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
