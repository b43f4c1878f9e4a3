/* When boosted trees are fitted: spacing by growth and by counted work, as functions of sample numbers. */
#include "support/quick.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "bank/tree_schedule.h"

static const int64_t rows[SVI_TREES_KINDS] = {5000, 20000};

struct walk {
    int64_t fits[SVI_TREES_KINDS], last[SVI_TREES_KINDS], begun, busy;
    double work;
};

/* A stream of n samples at `sample` ns each, whose fits count `each` ns a row. */
static struct walk walk_schedule(int64_t n, double sample, double each) {
    struct svi_tree_schedule s = {0};
    struct walk w = {0};
    for (int64_t i = 1; i <= n; i++) {
        if (s.due > 0 && i >= s.due) {
            assert_int_equal(i, s.due); /* at the number that was fixed when it began */
            svi_tree_schedule_end(&s);
        }
        const int kind = svi_tree_schedule_next(&s, i, rows);
        if (kind < 0)
            continue;
        const int64_t last = w.last[kind], count = i < rows[kind] ? i : rows[kind];
        assert_true(i >= 60 && s.due == 0);
        if (kind == SVI_TREES_ALL)
            assert_true(i > rows[SVI_TREES_RECENT]);
        assert_true(i - last >= (last / 4 < rows[kind] ? last / 4 : rows[kind]));
        svi_tree_schedule_begin(&s, kind, i, each * (double)count, sample);
        assert_true(s.due > i && s.next >= s.due);
        w.last[kind] = i;
        w.fits[kind]++;
        w.work += each * (double)count;
    }
    return w;
}

static void fits_come_by_growth(void **state) {
    (void)state;
    /* Work that is nothing: growth by a quarter from 60 to 20,000, then every 5000. */
    const struct walk w = walk_schedule(1000000, 10000, 1e-3);
    assert_in_range(w.fits[SVI_TREES_RECENT], 190 + 20, 200 + 30);
    assert_in_range(w.fits[SVI_TREES_ALL], 45 + 10, 50 + 20);
}

static void the_worker_has_its_share(void **state) {
    (void)state;
    for (double each = 10; each < 1e6; each *= 3) {
        const int64_t n = 200000;
        const struct walk w = walk_schedule(n, 10000, each);
        /* All but the last fit are spaced by their work. */
        assert_true(w.work - each * (double)rows[SVI_TREES_ALL] <= 0.3 * 10000 * (double)n);
        assert_true(w.fits[SVI_TREES_RECENT] > 0);
    }
}

static void neither_starves(void **state) {
    (void)state;
    /* So much work that growth hardly matters. */
    const struct walk w = walk_schedule(4000000, 10000, 20000);
    assert_true(w.fits[SVI_TREES_RECENT] > 10 && w.fits[SVI_TREES_ALL] > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(fits_come_by_growth),
                                       cmocka_unit_test(the_worker_has_its_share),
                                       cmocka_unit_test(neither_starves)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
