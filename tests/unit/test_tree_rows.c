/* The ring of rows for boosted trees against a list of all rows: columns that are added, renewed ones, rows
 * that are taken back, the turn of the ring, numbers that start again, the archive. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/archived.h"
#include "support/quick.h"

#include "bank/tree_rows.h"
#include "base/random.h"

enum { ROWS = 30000, D = 6 };

static struct {
    double x[D];
    bool live;
} all[ROWS];

static void rows_archive(struct svi_archive *a, void *user) {
    svi_tree_rows_archive(a, user, 3);
}

static void check_rows(const struct svi_tree_rows *r, int64_t pushed) {
    assert_int_equal(r->pushed, pushed);
    assert_int_equal(r->pushed - r->oldest, pushed < r->kept ? pushed : r->kept);
    for (int64_t i = r->oldest; i < r->pushed; i++) {
        const int64_t at = i % r->capacity;
        for (int j = 0; j < r->known; j++)
            assert_true(r->x[at * r->stride + j] == (float)(all[i].x[j] - r->origin[j]));
        assert_int_equal(r->live[at], all[i].live);
        assert_int_equal(r->label[at], i % 3);
        assert_true(r->weight[at] == (float)(i + 1));
        assert_int_equal(svi_tree_rows_live(r, 10 + 2 * i), all[i].live);
        assert_false(svi_tree_rows_live(r, 11 + 2 * i));
    }
}

static void a_ring_of_rows(void **state) {
    (void)state;
    struct svi_tree_rows r = {0}, again = {0};
    struct svi_random random = {3};
    struct svi_bytes bytes = {0}, other = {0};
    svs_error err = {0};
    int d = 2;
    assert_int_equal(svi_tree_rows_grow(&r, d, &err), SVS_OK);
    for (int64_t i = 0; i < ROWS; i++) {
        if (i == 700 || i == 701 || i == 9000 || i == 26000)
            assert_int_equal(svi_tree_rows_grow(&r, ++d, &err), SVS_OK);
        for (int j = 0; j < d; j++)
            all[i].x[j] = 1.7e9 * (j == 1) + (double)(svi_random_next(&random) % 1000) / 8;
        all[i].live = true;
        svi_tree_rows_push(&r,
                           &(struct svi_tree_row){
                               .x = all[i].x, .number = 10 + 2 * i, .weight = (double)i + 1, .label = i % 3});
        if (i == 5000 || i == 28000) {
            svi_tree_rows_renew(&r, 0);
            for (int64_t k = 0; k <= i; k++)
                all[k].x[0] = 0;
        }
        const int64_t gone = i - (int64_t)(svi_random_next(&random) % 100);
        if (i % 50 == 0 && gone >= 0) {
            svi_tree_rows_remove(&r, 10 + 2 * gone);
            svi_tree_rows_remove(&r, 11 + 2 * gone); /* no such row */
            all[gone].live = false;
        }
        if (i % 4999 == 4998 || i == 701)
            check_rows(&r, i + 1);
    }
    /* Seconds of today in a column of time stamps keep their eighths. */
    assert_true(fabs((double)r.x[(r.pushed - 1) % r.capacity * r.stride + 1] + r.origin[1] -
                     all[ROWS - 1].x[1]) < 1e-6);
    assert_int_equal(archived_save(rows_archive, &r, &bytes, &err), SVS_OK);
    assert_int_equal(svi_tree_rows_grow(&again, d, &err), SVS_OK);
    assert_int_equal(archived_load(rows_archive, &again, bytes.data, bytes.size, &err), SVS_OK);
    check_rows(&again, ROWS);
    assert_int_equal(archived_save(rows_archive, &again, &other, &err), SVS_OK);
    assert_true(archived_same(&bytes, &other));
    /* Numbers start again: the host has none of the earlier rows, and none is mistaken for a new one. */
    svi_tree_rows_push(&r, &(struct svi_tree_row){.x = all[0].x, .number = 10, .weight = 1});
    svi_tree_rows_remove(&r, 2 * ROWS);
    assert_true(svi_tree_rows_live(&r, 10));
    assert_false(svi_tree_rows_live(&r, 2 * ROWS));
    svi_bytes_clear(&bytes);
    svi_bytes_clear(&other);
    svi_tree_rows_clear(&r);
    svi_tree_rows_clear(&again);
}

/* Whatever byte is wrong: refused, or a ring like any other. */
static void damaged_rows(void **state) {
    (void)state;
    struct svi_tree_rows r = {0};
    struct svi_bytes bytes = {0};
    svs_error err = {0};
    const double x[2] = {1, 2};
    assert_int_equal(svi_tree_rows_grow(&r, 2, &err), SVS_OK);
    for (int i = 0; i < 5; i++)
        svi_tree_rows_push(&r, &(struct svi_tree_row){.x = x, .number = i, .weight = 1});
    assert_int_equal(archived_save(rows_archive, &r, &bytes, &err), SVS_OK);
    for (size_t i = 0; i < bytes.size; i++)
        for (int bit = (int)(i % 3); bit < 8; bit += 3) {
            struct svi_tree_rows again = {0};
            assert_int_equal(svi_tree_rows_grow(&again, 2, &err), SVS_OK);
            bytes.data[i] ^= (uint8_t)(1 << bit);
            err.code = SVS_OK;
            if (archived_load(rows_archive, &again, bytes.data, bytes.size, &err) == SVS_OK)
                assert_in_range(again.pushed - again.oldest, 0, again.kept);
            bytes.data[i] ^= (uint8_t)(1 << bit);
            svi_tree_rows_clear(&again);
        }
    svi_bytes_clear(&bytes);
    svi_tree_rows_clear(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_ring_of_rows), cmocka_unit_test(damaged_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
