/* Parts of a stream with keys: the queue of those that fall due, groups of alerts, what policies that share a
 * budget have found. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "alerts/budget.h"
#include "base/random.h"
#include "fleet/alert_groups.h"
#include "fleet/key_queue.h"
#include "support/archived.h"

/* ---- the queue */

#define QUEUED 300

/* Held against a search through all. */
static void test_queue(void **state) {
    (void)state;
    svs_error err;
    struct svi_random r = {1};
    struct svi_key_queue q = {0};
    svi_key_table *t = svi_key_table_new(&err);
    struct svi_key_entry *k[QUEUED];
    double due[QUEUED]; /* as it is, which the queue may not know yet */
    for (int i = 0; i < QUEUED; i++) {
        char name[16];
        k[i] = svi_key_table_add(t, name, (size_t)snprintf(name, sizeof name, "k%d", i), 0, &err);
        k[i]->head.number = (uint64_t)i;
        due[i] = INFINITY;
    }
    assert_int_equal(svi_key_queue_reserve(&q, QUEUED, &err), SVS_OK);
    for (int step = 0; step < 20000; step++) {
        const int i = (int)svi_random_below(&r, QUEUED), what = (int)svi_random_below(&r, 10);
        if (what == 0) {
            svi_key_queue_leave(&q, k[i]);
            due[i] = INFINITY;
        } else if (what < 3) {
            due[i] = svi_random_below(&r, 100);
            svi_key_queue_set(&q, k[i], due[i]);
        } else {
            due[i] = isinf(due[i]) ? svi_random_below(&r, 100) : due[i] + svi_random_below(&r, 20) - 5.0;
            svi_key_queue_put_off(&q, k[i], due[i]);
        }
        int first = -1;
        for (int n = 0; n < QUEUED; n++)
            if (due[n] < INFINITY && (first < 0 || due[n] < due[first]))
                first = n;
        while (q.count > 0 && q.at[0].due != due[q.at[0].key->head.number])
            svi_key_queue_set(&q, q.at[0].key, due[q.at[0].key->head.number]);
        assert_int_equal(q.count > 0, first >= 0);
        if (first >= 0)
            assert_ptr_equal(q.at[0].key, k[first]);
    }
    svi_key_queue_clear(&q);
    svi_key_table_free(&t);
}

/* ---- groups */

static struct svi_alert_group *open_alert(svi_alert_groups *g, uint64_t key, int64_t alert, uint64_t cause,
                                          double time) {
    char name[24];
    snprintf(name, sizeof name, "k%d", (int)key);
    const struct svi_group_alert a = {.key = key, .name = name, .alert = alert, .cause = cause, .time = time};
    struct svi_alert_group *group = svi_alert_groups_open(g, &a, 60);
    if (group)
        group->reported = group->reported ? group->reported : 1;
    return group;
}

static void test_groups(void **state) {
    (void)state;
    svs_error err;
    svi_alert_groups *g = svi_alert_groups_new(&err);
    struct svi_alert_group *one = open_alert(g, 1, 1, 7, 100);
    assert_ptr_equal(open_alert(g, 2, 5, 7, 150), one);
    assert_ptr_equal(open_alert(g, 3, 1, 7, 205), one); /* within the time of the last one */
    assert_ptr_not_equal(open_alert(g, 4, 1, 8, 150), one);
    assert_int_equal(one->keys, 3);
    assert_string_equal(one->name[1], "k2");
    assert_int_equal(one->alerts[1], 5);
    assert_ptr_equal(svi_alert_groups_of(g, 2, 5), one);
    assert_null(svi_alert_groups_of(g, 2, 1));
    svi_alert_groups_close(g, one, 2, 5);
    assert_null(svi_alert_groups_of(g, 2, 5));
    assert_ptr_equal(open_alert(g, 2, 6, 7, 230), one); /* again */
    assert_int_equal(one->keys, 3);
    assert_int_equal(one->open, 3);
    assert_ptr_not_equal(open_alert(g, 5, 1, 7, 291), one); /* too late */
    assert_ptr_not_equal(open_alert(g, 3, 2, 7, 206), one); /* it has one in it */
    assert_ptr_equal(svi_alert_groups_drop(g, 1), one);
    assert_null(svi_alert_groups_drop(g, 1));
    uint64_t key;
    int64_t alert;
    svi_alert_groups_oldest(g, one, &key, &alert);
    assert_true(key == 2 && alert == 6);
    svi_alert_groups_forget(one, "k1");
    svi_alert_groups_set_leader(one, &(struct svi_group_alert){.key = 3, .name = "k3", .alert = 1});
    assert_int_equal(one->named, 2);
    assert_string_equal(one->name[0], "k3");
    assert_string_equal(one->name[1], "k2");
    svi_alert_groups_end(g, one);
    assert_null(svi_alert_groups_of(g, 3, 1));
    svi_alert_groups_free(&g);
}

static void groups_archive(struct svi_archive *a, void *object) {
    svi_alert_groups_archive(a, object);
}

/* No more groups than there is room for; the state is the same bytes after it was read, and damage is told.
 */
static void test_groups_kept(void **state) {
    (void)state;
    svs_error err;
    struct svi_bytes one = {0}, other = {0};
    svi_alert_groups *g = svi_alert_groups_new(&err), *again = svi_alert_groups_new(&err);
    for (int i = 0; i < SVI_GROUPS; i++)
        assert_non_null(open_alert(g, (uint64_t)i, 1, (uint64_t)i, 10));
    assert_null(open_alert(g, 1000, 1, 1000, 10));
    for (int i = 0; i < 3000; i++)
        assert_non_null(open_alert(g, 2000 + (uint64_t)i, 1, (uint64_t)i % 50, 11));
    for (int i = 0; i < 3000; i += 3)
        svi_alert_groups_close(g, svi_alert_groups_of(g, 2000 + (uint64_t)i, 1), 2000 + (uint64_t)i, 1);
    svi_alert_groups_end(g, svi_alert_groups_at(g, 20));
    assert_non_null(open_alert(g, 1000, 1, 1000, 500));
    assert_int_equal(svi_alert_groups_count(g), SVI_GROUPS);
    assert_non_null(
        open_alert(g, 1001, 1, 1001, 500)); /* those of one that nobody can join go for want of room */
    assert_int_equal(svi_alert_groups_count(g), 51);
    assert_int_equal(archived_save(groups_archive, g, &one, &err), SVS_OK);
    assert_int_equal(archived_load(groups_archive, again, one.data, one.size, &err), SVS_OK);
    assert_int_equal(archived_save(groups_archive, again, &other, &err), SVS_OK);
    assert_true(archived_same(&one, &other));
    assert_ptr_equal(svi_alert_groups_of(again, 2001, 1), svi_alert_groups_at(again, 1));
    for (size_t cut = 1; cut < one.size; cut += 997) {
        svi_alert_groups *broken = svi_alert_groups_new(&err);
        assert_int_equal(archived_load(groups_archive, broken, one.data, one.size - cut, &err), SVS_DAMAGED);
        svi_alert_groups_free(&broken);
    }
    svi_bytes_clear(&one);
    svi_bytes_clear(&other);
    svi_alert_groups_free(&g);
    svi_alert_groups_free(&again);
}

/* ---- what was found */

/* Findings of 100 policies, each 1 a day, exponential above 1: the factor lets as many through as the budget
 * says. */
static void test_pool(void **state) {
    (void)state;
    struct svi_random r = {5};
    struct svi_budget_pool p = {0};
    int over = 0;
    const int days = 200;
    assert_true(svi_budget_pool_factor(&p, 1) == 0); /* not known */
    for (int i = 0; i < 100 * days; i++) {
        const double found = 1 - log((svi_random_below(&r, 1 << 24) + 1) / (double)(1 << 24)) / 5;
        const double factor = svi_budget_pool_factor(&p, 1);
        assert_true(factor == 0 || factor >= 1);
        over += i >= 100 * 30 && found >= factor;
        svi_budget_pool_pass(&p, 1, 100, 1);
        svi_budget_pool_find(&p, found, 1);
    }
    assert_in_range(over, (days - 30) * 8 / 10, days - 30);
    const double before = svi_budget_pool_factor(&p, 1);
    for (int i = 0; i < 1000; i++) { /* one disturbance of all: one finding, however many they are */
        svi_budget_pool_pass(&p, 0.01 / 100, 100, 1);
        svi_budget_pool_find(&p, 5 + i % 7, 1);
    }
    svi_budget_pool_pass(&p, 100, 100, 1);
    const double after = svi_budget_pool_factor(&p, 1);
    assert_true(fabs(after - before) < 0.1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_queue), cmocka_unit_test(test_groups),
                                       cmocka_unit_test(test_groups_kept), cmocka_unit_test(test_pool)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
