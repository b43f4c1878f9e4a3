/* Each allocation of a merge fails once: taking a record and solving end with SVS_NO_MEMORY, nothing is lost,
 * the model of before stays, and the next try has the same bits as if nothing had failed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/nomem.h"

#include "merge/merge_solve.h"
#include "support/merge_parts.h"

static const struct svi_merge_options plain = {.max_features = 8, .max_classes = 4, .max_bytes = 1e6};

/* A part of named columns, one of them a category; damaged: its columns have a correlation beyond 1. */
static void named_part(struct svi_bytes *out, const char *part, bool damaged) {
    static const char *const names[] = {"temp", "shift=day"};
    /* {"missing": "mean", "columns": [{"name": "temp", "kind": "number", "feature": 0, "mean": 1},
     *                                 {"name": "shift", "kind": "category", "features": [1]}]} */
    static const char schema[] = "\x82\xa7missing\xa4mean\xa7"
                                 "columns\x92\x84\xa4name\xa4temp\xa4kind\xa6number\xa7"
                                 "feature\x00\xa4mean\x01\x83\xa4name\xa5shift\xa4kind\xa8"
                                 "category\xa8"
                                 "features\x91\x01";
    struct svi_sums s = {
        .part_epoch = 1, .offset = 7, .C = 1, .scale = SVS_SCALE_STANDARD, .features = names};
    struct rows r;
    rows_make(&r, 40, 2, 2, 10, false, 1);
    part_of_rows(&s, &r, 0, 40, 1);
    s.kind = SVI_SUMS_NAMED;
    snprintf(s.part, sizeof s.part, "%s", part);
    s.schema = schema;
    s.schema_size = sizeof schema - 1;
    if (damaged)
        s.sums.square[1] = 1e9;
    out->size = 0;
    assert_int_equal(svi_sums_encode(&s, out), SVS_OK);
    svi_window_sums_clear(&s.sums);
    rows_free(&r);
}

static int take_with_failures(struct svi_merge *m, const struct svi_bytes *b) {
    enum svi_merge_taken taken;
    const int64_t before = m->count;
    for (int n = 0; n < 200; n++) {
        svs_error err = {0};
        left = n;
        const svs_code code = svi_merge_take(m, b->data, b->size, 0, &taken, &err);
        left = -1;
        if (code == SVS_OK)
            return n;
        assert_int_equal(code, SVS_NO_MEMORY);
        assert_true(err.text[0] && m->count == before);
    }
    return -1;
}

static void test_each_allocation_fails(void **state) {
    struct svi_merge m = {0}, calm = {0};
    struct svi_bytes b = {0};
    enum svi_merge_taken taken;
    (void)state;
    svi_merge_init(&m, &plain);
    svi_merge_init(&calm, &plain);
    for (int part = 0; part < 3; part++) {
        char name[2] = {(char)('a' + part), 0};
        if (part == 2) { /* from here on there are two solutions each: with the damaged part, and without */
            named_part(&b, "damaged", true);
            assert_int_equal(svi_merge_take(&m, b.data, b.size, 0, &taken, NULL), SVS_OK);
            assert_int_equal(svi_merge_take(&calm, b.data, b.size, 0, &taken, NULL), SVS_OK);
        }
        named_part(&b, name, false);
        assert_in_range(take_with_failures(&m, &b), 3, 199);
        assert_int_equal(svi_merge_take(&calm, b.data, b.size, 0, &taken, NULL), SVS_OK);
        int n = 0;
        for (svs_code code = SVS_NO_MEMORY; code != SVS_OK; n++) {
            const uint64_t version = m.version;
            left = n;
            code = svi_merge_solve(&m);
            left = -1;
            assert_true(code == SVS_OK || (code == SVS_NO_MEMORY && m.changed && m.version == version &&
                                           (part == 0 || m.model->version == version)));
            assert_true(n < 2000);
        }
        assert_true(n > 30);
        assert_int_equal(svi_merge_solve(&calm), SVS_OK);
        assert_memory_equal(m.model->W, calm.model->W, 2 * sizeof(double));
        assert_int_equal(m.model->schema_size, calm.model->schema_size);
        assert_true(m.model->learned == 40 * (part + 1));
    }
    svi_bytes_clear(&b);
    svi_merge_clear(&m);
    svi_merge_clear(&calm);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_allocation_fails)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
